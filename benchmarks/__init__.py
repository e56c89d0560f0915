"""The benchmark: what a review costs, beside LangChain's own middleware, in one run on one machine."""
