"""The kernel at the memory limit of a pod: declared, or the sum of its containers' limits.

The pod's cgroup contains its pause container too, so a pod's limit is reached before an equal limit of a
container (mm/memcontrol.c, mem_cgroup_out_of_memory).
"""

from collections.abc import Iterator
from typing import Final

from kubectl_qos.qos.cgroup.names import PathLevel
from kubectl_qos.qos.killers.badness import BadnessOrder
from kubectl_qos.qos.killers.killer import Killer
from kubectl_qos.qos.simulation.ceiling import Ceiling, MemoryTimeline, Scope
from kubectl_qos.qos.simulation.node_state import NodeState


class PodLimit(Killer):
    """The kernel at memory.max of a pod.

    A cgroup above containers has no swap limit of its own: it may use their swap.
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


POD_LIMIT: Final = PodLimit()
