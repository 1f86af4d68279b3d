"""The cgroups of pods and nodes: names, values and why."""
