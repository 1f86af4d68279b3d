"""earlyoom, which kills the process with the highest oom_score before memory runs out.

It acts when MemAvailable and free swap are both down to 10 % of their totals: SIGTERM, and SIGKILL from 5 %.
Sources: earlyoom(1), its meminfo.c and kill.c. No API returns `--prefer` and `--avoid`: ignored.
"""

from collections.abc import Iterator
from typing import Final

from kubectl_qos.k8s.kubelet import Daemon
from kubectl_qos.qos.killers.badness import BadnessOrder
from kubectl_qos.qos.killers.killer import Killer
from kubectl_qos.qos.reason import Mechanism
from kubectl_qos.qos.simulation.ceiling import Ceiling, MemoryTimeline, Scope
from kubectl_qos.qos.simulation.node_state import NodeState

_PERCENT_IN_USE: Final = 90
_LINE: Final = r"(?:earlyoom(?:\[\d{1,10}\])?: )?(?:sending SIG\w+ to|killing) process "
_WHOM: Final = r'(?P<pid>\d{1,10})(?: uid (?P<uid>\d+))? "(?P<comm>[^"]*)"(?: with signal \d+)?: (?P<why>.*)'


class Earlyoom(Killer):
    """earlyoom with its defaults, if it is assumed."""

    id = Mechanism.EARLYOOM
    scope = Scope.NODE
    measures = frozenset({Scope.NODE})
    daemon = Daemon.EARLYOOM
    log_lines = (_LINE + _WHOM,)

    def ceilings(self, state: NodeState) -> Iterator[Ceiling]:
        """Yield the ceiling: 10 % of RAM and swap left; none if that much swap cannot be used."""
        at_bytes = state.total_bytes * _PERCENT_IN_USE // 100 - (state.capacity_bytes - state.regular_bytes)
        if state.use.most_bytes >= state.regular_bytes + state.swap_bytes * _PERCENT_IN_USE // 100:
            yield Ceiling(self.id, self.scope, -1, state.use.own + state.use.total, at_bytes, is_polled=True)

    def order(self, memory: MemoryTimeline) -> BadnessOrder:
        """Order all processes by oom_score, which is badness scaled by the machine."""
        return BadnessOrder(memory, self.scope, lambda state, _: state.total_bytes)


EARLYOOM: Final = Earlyoom()
