"""Rows and transactions: what is kept, on SQLite or PostgreSQL, one file per concept."""
