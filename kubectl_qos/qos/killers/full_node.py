"""The kernel on a full node (mm/oom_kill.c, out_of_memory)."""

from collections.abc import Iterator
from typing import Final

from kubectl_qos.qos.cgroup.names import PathLevel
from kubectl_qos.qos.killers.badness import BadnessOrder
from kubectl_qos.qos.killers.killer import Killer
from kubectl_qos.qos.simulation.ceiling import Ceiling, MemoryTimeline, Scope
from kubectl_qos.qos.simulation.node_state import NodeState


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


FULL_NODE: Final = FullNode()
