"""systemd-oomd and Meta's oomd, which kill whole cgroups by swap, pressure or reclaim, which no API returns.

systemd-oomd acts below units with ManagedOOMSwap or ManagedOOMMemoryPressure, oomd by rules of its own.
Sources: systemd-oomd(8), oomd.conf(5), systemd.resource-control(5), src/oom/oomd-manager.c (since 247);
oomd's BaseKillPlugin.cpp (since 0.2).
"""

from collections.abc import Iterator
from typing import Final

from kubectl_qos.qos.killers.killer import DaemonLog, Killer
from kubectl_qos.qos.simulation.ceiling import Ceiling, MemoryTimeline, Scope
from kubectl_qos.qos.simulation.node_state import NodeState

_WHOM: Final = r"(?:oomd kill: |\[\S+\] )?(?:\d+\.\d+ ){3}(?P<below_root>\S+) \d+ "


class SystemdOomd(Killer):
    """systemd-oomd with its defaults."""

    id = "systemd-oomd"
    scope = Scope.NODE
    measures = frozenset({Scope.NODE})
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
        lines=(_WHOM + r"ruleset:.* detectorgroup:\[(?P<why>.*)\] killer:(?!\(dry\))",),
        programs=("oomd",),
        mark="oomd kill: ",
        is_twice=True,
        signs=(r"(?<!-)\boomd(?:\[\d+\])?: ", r"\boomd kill: "),
    )


SYSTEMD_OOMD: Final = SystemdOomd()
OOMD: Final = Oomd()
