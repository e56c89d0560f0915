"""One module per method, named after its card; `clearance.apps.research.methods` has the contract."""
