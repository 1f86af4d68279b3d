"""The lists of the UI: nodes, namespaces, workloads, pods and containers, one file each."""
