"""The words by which kubectl takes a kind on its command line: singular, plural and short.

Source: pkg/registry/core/pod/storage/storage.go and those of the other kinds (ShortNames).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

KIND_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "Pod": ("pod", "pods", "po"),
    "Deployment": ("deployment", "deployments", "deploy"),
    "StatefulSet": ("statefulset", "statefulsets", "sts"),
    "DaemonSet": ("daemonset", "daemonsets", "ds"),
    "ReplicaSet": ("replicaset", "replicasets", "rs"),
    "ReplicationController": ("replicationcontroller", "replicationcontrollers", "rc"),
    "Job": ("job", "jobs"),
    "CronJob": ("cronjob", "cronjobs", "cj"),
    "Node": ("node", "nodes", "no"),
}
"""Each kind with its words, the singular first."""

_KINDS: Final = {word: kind for kind, words in KIND_WORDS.items() for word in words}


def kind_of(word: str) -> str | None:
    """The kind that a word means, in upper or lower case; None for any other word."""
    return _KINDS.get(word.lower())
