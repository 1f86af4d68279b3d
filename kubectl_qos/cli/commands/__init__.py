"""One file per command: its arguments and its run."""
