"""A cluster in memory that changes with time: its API server, its script, and its source."""
