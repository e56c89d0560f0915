"""Where the pipeline's records come from: services, kept copies, and the data that is shipped."""
