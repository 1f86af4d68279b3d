"""Text, tables and JSON for the command line and the UI: no IO, no clock, no textual or rich."""
