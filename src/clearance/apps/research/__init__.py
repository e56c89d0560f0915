"""The research pipeline: from a gene symbol to a plan that people clear, and to a report."""
