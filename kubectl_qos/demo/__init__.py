"""A cluster in memory that lives: its API server, its script, and the source that shows it."""
