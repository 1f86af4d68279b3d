"""The predictions: pure functions of a pod, its node, the kubelet's configuration and its release.

Nothing here reads a clock, a file or a socket, and nothing formats text for people (that is `present/`).
"""
