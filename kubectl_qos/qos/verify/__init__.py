"""Predicted values beside observed ones, and likely causes of drift."""
