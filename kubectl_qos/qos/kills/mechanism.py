"""What ended a container or a pod: a killer, or what only evidence names (words: present/killers.py)."""

from enum import StrEnum
from typing import Final, Self

from kubectl_qos.qos.killers import KILLERS

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
