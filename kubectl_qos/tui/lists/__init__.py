"""What the UI lists: nodes, namespaces, workloads, pods and containers, one file each."""
