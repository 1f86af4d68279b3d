"""Daemons that kill before memory runs out: earlyoom, nohang, systemd-oomd, and Meta's oomd.

earlyoom and nohang kill the process with the highest oom_score, with SIGTERM and later with SIGKILL. They act
when free swap is down to 10 % of all swap, and MemAvailable to 10 % of memory (nohang: 5 %). Their options to
prefer or avoid processes are ignored here. The others kill whole cgroups by swap, pressure or reclaim:
systemd-oomd below units with ManagedOOMSwap or ManagedOOMMemoryPressure, oomd by its own rules. No API
returns these settings.

Sources: earlyoom(1), its meminfo.c and kill.c (since 1.2); nohang(8), its nohang.conf, find_victim_info and
implement_corrective_action; systemd-oomd(8), oomd.conf(5), systemd.resource-control(5),
src/oom/oomd-manager.c (since 247); oomd's BaseKillPlugin.cpp (since 0.2).
"""

from collections.abc import Iterator
from typing import ClassVar, Final

from kubectl_qos.qos.killers.kernel import BadnessOrder
from kubectl_qos.qos.killers.killer import DaemonLog, Killer
from kubectl_qos.qos.simulation.ceiling import Ceiling, CeilingScope, MemoryTimeline
from kubectl_qos.qos.simulation.node_state import NodeState

_SWAP_PERCENT: Final = 90
_SENDS: Final = r"(?:earlyoom(?:\[\d{1,10}\])?: )?(?:sending SIG\w+ to|killing) process "
_VICTIM: Final = (
    r'(?P<pid>\d{1,10})(?: uid (?P<uid>\d+))? "(?P<comm>[^"]*)"(?: with signal \d+)?: ?(?P<why>.*)'
)
_OLDEST: Final = r"Killing process '(?P<comm>[^']*)' with signal \d+, pid: (?P<pid>\d{1,10}), (?P<why>.*)"


class Earlyoom(Killer):
    """earlyoom with its defaults, if it is assumed."""

    id = "earlyoom"
    scope = CeilingScope.NODE
    measures = frozenset({CeilingScope.NODE})
    settings = ("earlyoom",)
    sends_sigterm = True
    log = DaemonLog(
        lines=(_SENDS + _VICTIM, _OLDEST),
        programs=("earlyoom",),
        ends={r"MiB(?:,.*)?$": ("sending SIGTERM to ", "sending SIGKILL to ")},
        signs=(r"\bearlyoom\b", "mem avail: "),
    )
    memory_percent: ClassVar[int] = 90

    def ceilings(self, state: NodeState) -> Iterator[Ceiling]:
        """Yield the ceiling, in RAM and swap in use; none if the pods may not use that much swap."""
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


_BY_OOMD: Final = r"(?:oomd kill: |\[\S+\] )?(?:\d+\.\d+ ){3}(?P<below_root>\S+) \d+ "


class SystemdOomd(Killer):
    """systemd-oomd with its defaults."""

    id = "systemd-oomd"
    scope = CeilingScope.NODE
    measures = frozenset({CeilingScope.NODE})
    ends_whole_pods = True
    settings = ("systemd-oomd",)
    log = DaemonLog(
        lines=(
            r"(?:Killed|Marked) (?P<cgroup>/\S+)(?: for killing)? due to (?P<why>.*)",
            r"(?P<cgroup>\S+\.(?:scope|service|slice)): systemd-oomd killed (?:\d+|some) process",
        ),
        programs=("systemd-oomd",),
        is_twice=True,
        ends={r"(?:reclaim activity|\d%|\ds)$": ("Killed /", "Marked /")},
    )

    def ceilings(self, state: NodeState) -> Iterator[Ceiling]:
        """Yield a ceiling of unknown size, bounded by a full node."""
        yield Ceiling(self.id, self.scope, -1, state.use.own + state.use.total, None, state.use.most_bytes)

    def order(self, memory: MemoryTimeline) -> None:
        """Return None: no API returns the swap or the reclaim of a cgroup."""
        return


class Oomd(SystemdOomd):
    """oomd, if it is assumed; a dry run kills nothing."""

    id = "oomd"
    settings = ("oomd",)
    log = DaemonLog(
        lines=(_BY_OOMD + r"ruleset:.* detectorgroup:\[(?P<why>.*)\] killer:(?!\(dry\))",),
        programs=("oomd",),
        mark="oomd kill: ",
        is_twice=True,
        signs=(r"(?<!-)\boomd(?:\[\d+\])?: ", r"\boomd kill: "),
    )


SYSTEMD_OOMD: Final = SystemdOomd()
OOMD: Final = Oomd()
