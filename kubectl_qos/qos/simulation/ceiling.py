"""Where killers act: how many bytes are in use, and at how many each of them ends something.

Which killers there are, and whom they end, is in qos/killers/.
"""

from enum import Enum
from typing import NamedTuple, Self

from kubectl_qos.qos.eviction import Due
from kubectl_qos.qos.reason import Mechanism
from kubectl_qos.qos.simulation.node_state import NodeState


class Scope(Enum):
    """Whose memory is bounded."""

    CONTAINER = "a container"
    POD = "a pod"
    PODS = "all pods of a node"
    NODE = "the whole node"

    @property
    def is_wide(self) -> bool:
        """Whether all pods of a node are bounded."""
        return self is Scope.NODE or self is Scope.PODS


class Ceiling(NamedTuple):
    """A number of bytes in use at which a killer acts.

    `owner` is the index of a container or pod, -1 for all pods and for the node. `at_bytes` is None where it
    cannot be known: the killer then acts at `bound_bytes` at the latest. `by_working_set` is whether the
    kubelet's count decides, not the kernel's. A soft ceiling must be exceeded for `grace_seconds`.

    `is_polled` is whether the killer looks from time to time, so that it also acts where nothing grows; it
    goes on until `reclaim_bytes` more are free. `due` is whether the node says that it is reached.
    """

    killer: Mechanism
    scope: Scope
    owner: int
    used_bytes: int
    at_bytes: int | None
    bound_bytes: int = 0
    by_working_set: bool = False
    is_soft: bool = False
    grace_seconds: int | None = None
    is_polled: bool = False
    reclaim_bytes: int = 0
    due: Due = Due.NO

    @property
    def latest_bytes(self) -> int:
        """The bytes in use at which the killer acts at the latest."""
        return self.bound_bytes if self.at_bytes is None else self.at_bytes

    @property
    def distance_bytes(self) -> int:
        """Bytes of growth until the killer acts at the latest; below zero where it is due."""
        distance = self.latest_bytes - self.used_bytes
        return min(distance, 0) if self.due is Due.NOW else distance


class MemoryUse(NamedTuple):
    """What is in use on a node now, in bytes: of each pod and of all by the kernel's count, and of the node.

    `pod_swap` is what the containers of each pod may swap. `most_bytes` is what the node holds at most, in
    RAM and in the swap that its containers and its own processes may use.
    """

    pods: list[int]
    pod_swap: list[int]
    total: int
    working_set: int
    own: int
    may_swap: int
    most_bytes: int

    @classmethod
    def of(cls, state: NodeState) -> Self:
        """Add up the containers of a node."""
        pods, pod_swap, working_set = [0] * len(state.pods), [0] * len(state.pods), 0
        for container in state.containers:
            pods[container.pod_index] += container.used_bytes
            pod_swap[container.pod_index] += container.swap_bytes
            working_set += container.working_set_bytes
        may_swap, own = min(sum(pod_swap), state.swap_bytes), state.own_bytes or 0
        most = state.capacity_bytes + min(may_swap + own, state.swap_bytes)
        swap = [min(size, state.swap_bytes) for size in pod_swap]
        return cls(pods, swap, sum(pods), working_set, own, may_swap, most)

    @property
    def free_bytes(self) -> int:
        """What is free by the kernel's count."""
        return self.most_bytes - self.own - self.total
