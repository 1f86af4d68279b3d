"""The kernel at the memory limit of all pods, kubepods (mm/memcontrol.c, mem_cgroup_out_of_memory)."""

from collections.abc import Iterator
from typing import Final

from kubectl_qos.qos.cgroup.names import PathLevel
from kubectl_qos.qos.killers.badness import BadnessOrder
from kubectl_qos.qos.killers.killer import Killer
from kubectl_qos.qos.simulation.ceiling import Ceiling, MemoryTimeline, Scope
from kubectl_qos.qos.simulation.node_state import NodeState


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


KUBEPODS_LIMIT: Final = KubepodsLimit()
