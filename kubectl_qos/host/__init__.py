"""Read a node: its processes, cgroups and kernel log. Nothing here contacts a cluster."""
