"""The kernel's OOM killer, at memory limits and on a full node.

Sources: mm/memcontrol.c (mem_cgroup_out_of_memory), mm/oom_kill.c (out_of_memory). badness.py has its order.
"""

from collections.abc import Iterator
from typing import Final

from kubectl_qos.qos.cgroup.names import PathLevel
from kubectl_qos.qos.killers.badness import BadnessOrder
from kubectl_qos.qos.killers.killer import Killer
from kubectl_qos.qos.simulation.ceiling import Ceiling, MemoryTimeline, Scope
from kubectl_qos.qos.simulation.node_state import NodeState


class ContainerLimit(Killer):
    """The kernel at memory.max of a container plus its swap."""

    id = "container limit"
    scope = Scope.CONTAINER
    levels = frozenset({PathLevel.CONTAINER})

    def ceilings(self, state: NodeState) -> Iterator[Ceiling]:
        """Yield the limit of each container that has one."""
        killer, scope = self.id, self.scope
        for index, container in enumerate(state.containers):
            if container.limit_bytes:
                yield Ceiling(killer, scope, index, container.used_bytes, container.most_bytes)

    def order(self, memory: MemoryTimeline) -> BadnessOrder:
        """Order the container's own processes."""
        return BadnessOrder(memory, self.scope, lambda state, owner: state.containers[owner].most_bytes)


class PodLimit(Killer):
    """The kernel at memory.max of a pod: declared, or the sum of its containers' limits.

    The pod's cgroup contains its pause container too, so its limit is reached before an equal limit of a
    container. A cgroup above containers has no swap limit of its own: it may use their swap.
    """

    id = "pod limit"
    scope = Scope.POD
    levels = frozenset({PathLevel.POD})

    def ceilings(self, state: NodeState) -> Iterator[Ceiling]:
        """Yield the limit of each pod that has one."""
        killer, scope, use = self.id, self.scope, state.use
        for index, pod in enumerate(state.pods):
            if pod.limit_bytes:
                yield Ceiling(killer, scope, index, use.pods[index], pod.limit_bytes + use.pod_swap[index])

    def order(self, memory: MemoryTimeline) -> BadnessOrder:
        """Order the containers of the pod."""
        return BadnessOrder(
            memory, self.scope, lambda state, owner: state.pods[owner].limit_bytes + state.swap_bytes
        )


class KubepodsLimit(Killer):
    """The kernel at memory.max of kubepods, if the kubelet writes it."""

    id = "kubepods limit"
    scope = Scope.PODS
    levels = frozenset({PathLevel.PODS, PathLevel.QOS_CLASS})
    measures = frozenset({Scope.PODS})

    def ceilings(self, state: NodeState) -> Iterator[Ceiling]:
        """Yield the ceiling: the node's allocatable memory plus the containers' swap."""
        if state.kubepods_bytes is not None:
            yield Ceiling(self.id, self.scope, -1, state.use.total, state.kubepods_bytes + state.use.may_swap)

    def order(self, memory: MemoryTimeline) -> BadnessOrder:
        """Order all containers of the node's pods."""
        return BadnessOrder(
            memory, self.scope, lambda state, _: (state.kubepods_bytes or 0) + state.swap_bytes
        )


class FullNode(Killer):
    """The kernel when neither RAM nor swap is free."""

    id = "node"
    scope = Scope.NODE
    levels = frozenset({PathLevel.ABOVE})
    measures = frozenset({Scope.NODE})
    has_ranks = True

    def ceilings(self, state: NodeState) -> Iterator[Ceiling]:
        """Yield the ceiling: RAM plus usable swap."""
        yield Ceiling(self.id, self.scope, -1, state.use.own + state.use.total, state.use.most_bytes)

    def order(self, memory: MemoryTimeline) -> BadnessOrder:
        """Order all containers and the known processes of the node."""
        return BadnessOrder(memory, self.scope, lambda state, _: state.total_bytes)


CONTAINER_LIMIT: Final = ContainerLimit()
POD_LIMIT: Final = PodLimit()
KUBEPODS_LIMIT: Final = KubepodsLimit()
FULL_NODE: Final = FullNode()
