"""Deaths on a node as its memory fills."""
