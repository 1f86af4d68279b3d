"""The other edge, on a node: its processes, its cgroups and its kernel's log. No cluster is asked here."""
