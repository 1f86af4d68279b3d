"""The words for killers, and for other ends of containers, in one table.

Which killer acts on which node, and its victims, is in qos/killers/.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.qos.killers import Killer, Mechanism, daemon_on


class Words(NamedTuple):
    """The words for a mechanism; all but `killed` are only for killers."""

    killed: str
    name: str = ""
    by: str = ""
    """The killer in lists of deaths, if that is not its name in JSON."""
    order: str = ""
    """Among whom it chooses, or which of the node's pods it kills first."""
    note: str = ""
    """An explanation of `by`."""
    acts: str = ""
    """When a daemon kills before the kernel."""
    first: Mapping[str, str] = MappingProxyType({})
    """Whom a daemon kills first, by the variant of its order."""
    dies: str = "dies"
    """What happens to its victim."""


OWN_LIMIT: Final = "own limit"
"""The limit of a container, or of a pod with a single one."""
_NEVER: Final = "never Guaranteed pods or pods with a memory limit"
_BY_SCORE: Final = "the kernel kills the highest oom_score first"

WORDS: Final[Mapping[str, Words]] = {
    "container limit": Words(
        f"killed by the kernel at its {OWN_LIMIT} (the container's memory limit)",
        name="the container limit",
        by=OWN_LIMIT,
        order="no other container: at a container's limit the kernel chooses among its processes",
    ),
    "pod limit": Words(
        "killed by the kernel at the pod limit (the pod's memory limit)",
        name="the pod limit",
        by="pod limit",
        order="no other pod: at a pod's limit the kernel chooses among its containers",
    ),
    "kubepods limit": Words(
        "killed by the kernel at the memory limit of all pods, or of those of a class",
        name="the kubepods limit",
        by="kubepods limit",
        order=_BY_SCORE,
        note=(
            "kubepods limit: the memory limit of all pods together (allocatable memory plus the eviction"
            " threshold). With a higher memory.available threshold the kubelet evicts first"
        ),
    ),
    "node": Words(
        "killed by the kernel because the node ran out of memory",
        name="the kernel, because the node is full",
        by="kernel: node full",
        order=_BY_SCORE,
    ),
    "kubelet eviction": Words(
        "evicted by the kubelet under memory pressure; no OOM",
        name="eviction",
        by="kubelet evicts",
        dies="is evicted",
        order="the kubelet first evicts pods that use more than they request, lowest priority first",
    ),
    "Talos": Words(
        "killed by the OOM controller of Talos under memory pressure, not by the kernel; OOMConfig in the"
        " machine configuration tunes it or turns it off",
        name="the OOM controller of Talos",
        by="Talos: pressure",
        order="Talos kills only pods without a memory limit, BestEffort before Burstable",
        acts="kills before the kernel under memory pressure (PSI), at the latest on a full node",
        first={
            "": f"the largest first (half of a Burstable pod's memory counts); {_NEVER}",
            "strict": f"BestEffort pods first, then Burstable ones, the largest of each first; {_NEVER}",
        },
    ),
    "systemd-oomd": Words(
        "killed by systemd-oomd under memory pressure, not by the kernel",
        name="systemd-oomd",
        by="systemd-oomd: pressure",
        order="systemd-oomd chooses by swap in use or by reclaim activity",
        first={"": "by swap in use or by reclaim activity, which no API reports"},
        acts=(
            "kills whole cgroups before the kernel, below units with ManagedOOMSwap or"
            " ManagedOOMMemoryPressure"
        ),
    ),
    "earlyoom": Words(
        "killed by earlyoom as memory became scarce, not by the kernel",
        name="earlyoom",
        by="earlyoom: 10% free",
        order="earlyoom kills the highest oom_score first",
        first={"": "the highest oom_score first (--prefer and --avoid are unknown)"},
        acts="kills before the kernel, when 10 % of RAM and of swap are left",
    ),
    "nohang": Words(
        "killed by nohang as memory became scarce, not by the kernel",
        name="nohang",
        by="nohang: 5% free",
        order="nohang kills the highest oom_score first",
        first={"": "the highest oom_score first (its settings for single processes are unknown)"},
        acts="kills before the kernel, when 5 % of RAM and 10 % of swap are left",
    ),
    "oomd": Words(
        "killed by oomd by a rule of its configuration, not by the kernel",
        name="oomd",
        by="oomd: its rules",
        order="oomd chooses cgroups by its rules",
        first={"": "by the rules of its configuration, which no API reports"},
        acts="kills whole cgroups before the kernel, by the rules of its configuration",
    ),
    Mechanism.MEMORY_NODES: Words(
        "killed by the kernel because NUMA nodes of a cpuset or memory policy ran out"
    ),
    Mechanism.START_LIMIT: Words("not started: its memory limit is less than the runtime needs to start it"),
    Mechanism.OTHER_EVICTION: Words("evicted by the kubelet, not for memory"),
    Mechanism.VOLUME_LIMIT: Words("evicted by the kubelet because an emptyDir was above its sizeLimit"),
    Mechanism.STORAGE_LIMIT: Words("evicted by the kubelet at an ephemeral-storage limit of its own"),
    Mechanism.UNKNOWN_EVICTION: Words("evicted by the kubelet; its status does not say for what"),
    Mechanism.REJECTION: Words("not admitted by the kubelet: it never ran; no OOM"),
    Mechanism.PREEMPTION: Words(
        "ended by the kubelet for a critical pod, by requests and not by usage; no OOM"
    ),
    Mechanism.SCHEDULER: Words(
        "removed by the scheduler for a pod of higher priority, by requests and not by usage; no OOM"
    ),
    Mechanism.SHUTDOWN: Words("ended by the kubelet as its node shut down; not for memory"),
    Mechanism.SIGKILL: Words("SIGKILL from elsewhere: no sign that it was for memory"),
    Mechanism.CGROUP_LIMIT: Words(
        "killed by the kernel at the memory limit of a cgroup that belongs to no pod"
    ),
    Mechanism.MEMORY_LIMIT: Words(
        "killed by the kernel at a memory limit; the log does not say which (the line that names it is"
        " missing or cut)"
    ),
    Mechanism.KERNEL: Words("killed by the kernel at a limit or on a full node"),
    Mechanism.PANIC: Words(
        "nothing was killed: the kernel panicked as memory ran out, and the machine went down"
    ),
    Mechanism.SYSRQ: Words("killed by the kernel on request (SysRq f): memory had not run out"),
    Mechanism.UNKNOWN: Words("killed for an unknown reason"),
}


def actor(killer: Killer) -> str:
    """Return who kills, in a word: kernel, kubelet, or the name of a daemon."""
    return "kubelet" if killer.evicts else "kernel" if killer.is_kernel else WORDS[killer.id].name


def killer_name(mechanism: str, *, is_own: bool) -> str:
    """Return the name of a killer in lists of deaths; `is_own`: the limit is the container's own."""
    return OWN_LIMIT if is_own else WORDS[mechanism].by or str(mechanism)


def killer_sentence(setup: NodeSetup, *, has_ranks: bool = True) -> str:
    """Say who kills before or instead of the kernel, and in which order; "" for the kernel alone.

    `has_ranks` is whether the list above the sentence has RANK.
    """
    if setup.node.is_windows:
        return (
            "Windows has no OOM killer, oom_score_adj or cgroups: class, scheduling and eviction apply, and"
            " at a memory limit nothing is killed, but an allocation fails, which may end the program"
        )
    daemon = daemon_on(setup)
    if daemon is None:
        return ""
    words = WORDS[daemon.id]
    assumed = " (assumed)" if daemon.is_assumed(setup) else ""
    first = words.first[daemon.variant(setup)]
    rank = ". RANK is the kernel's order" if has_ranks else ""
    return f"{words.name}{assumed} {words.acts}: {first}{rank}"
