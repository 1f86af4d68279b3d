"""Registry of killers: everything that ends containers or pods for memory, a file for each kind.

Lists, simulation, fixes and exporter ask a killer here; its words are in present/killers.py. `Mechanism` also
has the ends for other reasons, which only evidence names (qos/kills/).
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Self

from kubectl_qos.errors import UsageError
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.node_overrides import USERSPACE_OOM_KILLER, NodeOverride
from kubectl_qos.qos.killers.daemons import EARLYOOM, NOHANG, OOMD, SYSTEMD_OOMD
from kubectl_qos.qos.killers.eviction import EVICTION
from kubectl_qos.qos.killers.kernel import CONTAINER_LIMIT, FULL_NODE, KUBEPODS_LIMIT, POD_LIMIT
from kubectl_qos.qos.killers.killer import Killer as Killer
from kubectl_qos.qos.killers.talos import TALOS

KILLERS: Final[tuple[Killer, ...]] = (
    EVICTION,
    POD_LIMIT,
    CONTAINER_LIMIT,
    KUBEPODS_LIMIT,
    EARLYOOM,
    NOHANG,
    SYSTEMD_OOMD,
    OOMD,
    TALOS,
    FULL_NODE,
)
"""All killers. If several ceilings are reached at the same time, the first killer acts."""
PRECEDENCE: Final = {killer.id: place for place, killer in enumerate(KILLERS)}
BY_RANK: Final = next(killer for killer in KILLERS if killer.has_ranks)
"""The killer whose order is RANK."""
EVICTING: Final = next(killer for killer in KILLERS if killer.evicts)
BY_ID: Final[Mapping[str, Killer]] = {killer.id: killer for killer in KILLERS}
OOM_KILLERS: Final = ("none", *sorted(setting for killer in KILLERS for setting in killer.settings))
"""The values of userspaceOOMKiller, the program that kills before the kernel; some have a VERSION."""
OOM_KILLERS_TEXT: Final = f"{', '.join(OOM_KILLERS[:-1])} or {OOM_KILLERS[-1]}"
_OOM_KILLER: Final = re.compile("|".join(OOM_KILLERS).replace("VERSION", r"\d+\.\d+(\.\d+)?"), re.ASCII)


def parse_assumed(assignment: str) -> NodeOverride:
    """Parse a setting of a node; its OOM killer is none or a daemon of KILLERS. Raises UsageError."""
    override = NodeOverride.parse(assignment)
    if override.key == USERSPACE_OOM_KILLER and _OOM_KILLER.fullmatch(override.text) is None:
        raise UsageError(f"{override}: must be {OOM_KILLERS_TEXT}")
    return override


def killers_on(setup: NodeSetup) -> list[Killer]:
    """Return the killers that apply to a node; on Windows only the kubelet."""
    return [killer for killer in KILLERS if killer.applies(setup)]


def daemon_on(setup: NodeSetup) -> Killer | None:
    """Return the daemon of the node that kills before the kernel, if any."""
    return next((killer for killer in _DAEMONS if killer.applies(setup)), None)


_DAEMONS: Final = tuple(killer for killer in KILLERS if killer.is_daemon)
OWN_LIMITS: Final = tuple(killer for killer in KILLERS if not killer.is_node_wide)
"""Killers that act at a limit of a container or of its pod."""


KILLED: Final = "killed"
_EVICTED: Final = "evicted"


class Mechanism(StrEnum):
    """What ends a container or a pod; `verb` says what happens to the victim."""

    verb: str

    MEMORY_NODES = "memory nodes"
    START_LIMIT = "limit at start"
    OTHER_EVICTION = "other eviction", _EVICTED
    VOLUME_LIMIT = "volume limit", _EVICTED
    STORAGE_LIMIT = "storage limit", _EVICTED
    UNKNOWN_EVICTION = "unknown eviction", _EVICTED
    REJECTION = "not admitted"
    PREEMPTION = "kubelet preemption", "preempted"
    SCHEDULER = "scheduler preemption", "preempted"
    SHUTDOWN = "node shutdown"
    SIGKILL = "other SIGKILL"
    CGROUP_LIMIT = "other limit"
    MEMORY_LIMIT = "memory limit"
    KERNEL = "OOM killer"
    PANIC = "kernel panic"
    SYSRQ = "SysRq"
    UNKNOWN = "unknown"
    vars().update({killer.id: (killer.id, _EVICTED if killer.evicts else KILLED) for killer in KILLERS})

    def __new__(cls, value: str, verb: str = KILLED) -> Self:
        """Create a member with the verb for its victims."""
        mechanism = str.__new__(cls, value)
        mechanism._value_ = value
        mechanism.verb = verb
        return mechanism

    @property
    def is_eviction(self) -> bool:
        """Whether the kubelet evicted the pod, for any resource."""
        return self.verb == _EVICTED
