"""earlyoom and nohang, which kill the process with the highest oom_score before memory runs out.

They act when MemAvailable and free swap are both down to 10 % of their totals, nohang to 5 % of memory: with
SIGTERM, later with SIGKILL. Sources: earlyoom(1), its meminfo.c and kill.c (since 1.2); nohang(8), its
nohang.conf, find_victim_info and implement_corrective_action. No API returns what they prefer and avoid:
ignored.
"""

from collections.abc import Iterator
from typing import ClassVar, Final

from kubectl_qos.qos.killers.kernel import BadnessOrder
from kubectl_qos.qos.killers.killer import DaemonLog, Killer
from kubectl_qos.qos.simulation.ceiling import Ceiling, MemoryTimeline, Scope
from kubectl_qos.qos.simulation.node_state import NodeState

_SWAP_PERCENT: Final = 90
_LINE: Final = r"(?:earlyoom(?:\[\d{1,10}\])?: )?(?:sending SIG\w+ to|killing) process "
_WHOM: Final = r'(?P<pid>\d{1,10})(?: uid (?P<uid>\d+))? "(?P<comm>[^"]*)"(?: with signal \d+)?: ?(?P<why>.*)'
_OLDEST: Final = r"Killing process '(?P<comm>[^']*)' with signal \d+, pid: (?P<pid>\d{1,10}), (?P<why>.*)"


class Earlyoom(Killer):
    """earlyoom with its defaults, if it is assumed."""

    id = "earlyoom"
    scope = Scope.NODE
    measures = frozenset({Scope.NODE})
    settings = ("earlyoom",)
    sends_sigterm = True
    log = DaemonLog(
        lines=(_LINE + _WHOM, _OLDEST),
        programs=("earlyoom",),
        ends={r"MiB(?:,.*)?$": ("sending SIGTERM to ", "sending SIGKILL to ")},
        signs=(r"\bearlyoom\b", "mem avail: "),
    )
    memory_percent: ClassVar[int] = 90

    def ceilings(self, state: NodeState) -> Iterator[Ceiling]:
        """Yield the ceiling, as RAM and swap in use; none if that much swap cannot be used."""
        swap_bytes = state.swap_bytes * _SWAP_PERCENT // 100
        at_bytes = (state.capacity_bytes * self.memory_percent + state.swap_bytes * _SWAP_PERCENT) // 100
        at_bytes -= state.capacity_bytes - state.regular_bytes
        if state.use.most_bytes >= state.regular_bytes + swap_bytes:
            yield Ceiling(self.id, self.scope, -1, state.use.own + state.use.total, at_bytes, is_polled=True)

    def order(self, memory: MemoryTimeline) -> BadnessOrder:
        """Order all processes by oom_score, which is badness scaled by the machine."""
        return BadnessOrder(memory, self.scope, lambda state, _: state.total_bytes)


class Nohang(Earlyoom):
    """nohang with its defaults, if it is assumed."""

    id = "nohang"
    settings = ("nohang",)
    memory_percent = 95
    log = DaemonLog(
        lines=(r"Send(?:ing)? SIG\w+ to the victim",),
        details=(
            r"(?P<begins>Victim status) ",
            r"PID: +(?P<pid>\d{1,10})(?:, name: (?P<comm>.*?), state: .*)?$",
            r"Name: +(?P<comm>\S.*)",
            r"(?:cgroup|CGroup)_v[12]: (?P<cgroup>/\S+)",
            r"(?:badness|Vm, MiB|VmRSS): ",
        ),
        programs=("nohang", "nohang-desktop"),
        signs=(r"\bnohang\b", "implement_corrective_action"),
    )


EARLYOOM: Final = Earlyoom()
NOHANG: Final = Nohang()
