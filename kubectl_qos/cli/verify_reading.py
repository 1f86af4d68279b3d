"""What `verify` reads, wherever that is read: of which pods, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.qos.verify.compare import Unread
from kubectl_qos.qos.verify.observed import Files, Observed


@dataclass(frozen=True, slots=True)
class Wanted:
    """The pods to look at, and the node that they are on."""

    pods: tuple[Pod, ...]
    snapshot: Snapshot
    node: str

    @property
    def setup(self) -> NodeSetup:
        """What predictions depend on."""
        return self.snapshot.setup(self.node)


@dataclass(frozen=True, slots=True)
class Read:
    """What was read of one pod, and what could not be."""

    measured: Observed
    unread: tuple[Unread, ...] = ()
    failed: bool = False


Reader = Callable[[Wanted], tuple[Sequence[Read], dict[str, Files]]]
"""Reads all pods; and what is above them, by directory."""


def running(pod: Pod) -> list[str]:
    """The containers that have processes: started, and neither ended nor waiting."""
    return [
        one.name
        for one in pod.status.every_container
        if one.container_id
        and (one.state is None or (one.state.terminated is None and one.state.waiting is None))
    ]
