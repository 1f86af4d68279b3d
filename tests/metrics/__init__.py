"""Stores of metrics: real ones with a made history, and answers made by hand."""
