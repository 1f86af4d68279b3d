"""Who dies on a node as its memory fills."""
