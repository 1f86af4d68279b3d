"""The kernel at the memory limit of a container (mm/memcontrol.c, mem_cgroup_out_of_memory)."""

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


CONTAINER_LIMIT: Final = ContainerLimit()
