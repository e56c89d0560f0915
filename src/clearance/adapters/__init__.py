"""Adapters: one file, or one group of files, for each agent framework."""
