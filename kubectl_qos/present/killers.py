"""What people read of killers, and of other ends of containers: one table.

Who kills where, and whom, is in qos/killers/.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.qos.killers import Killer, daemon_on
from kubectl_qos.qos.reason import Mechanism


class Words(NamedTuple):
    """The words of a mechanism.

    `killed` is what it did. The rest is of killers alone: `name` who it is in a sentence, `by` who kills in
    lists of coming deaths (`note` explains that), `step` the same in a simulation where it is not the name in
    JSON, and `order` whom it chooses among, or whom of the node's pods it takes first. A daemon `acts` at
    some moment before the kernel, and `first` is whom it takes first, by the variant of its order. `dies` is
    what becomes of its victim.
    """

    killed: str
    name: str = ""
    by: str = ""
    step: str = ""
    order: str = ""
    note: str = ""
    acts: str = ""
    first: Mapping[str, str] = MappingProxyType({})
    dies: str = "dies"


OWN_LIMIT: Final = "own limit"
"""That of a container, and of the pod of a single one."""
_NEVER: Final = "pods with a memory limit and Guaranteed ones never"
_BY_SCORE: Final = "the kernel kills the highest oom_score first"

WORDS: Final = {
    Mechanism.CONTAINER_LIMIT: Words(
        "killed by the kernel at the container's memory limit",
        name="the container limit",
        by=OWN_LIMIT,
        order="nobody outside of this container: at its limit the kernel chooses among its processes",
    ),
    Mechanism.POD_LIMIT: Words(
        "killed by the kernel at the pod's memory limit",
        name="the pod limit",
        by="pod limit",
        order="nobody outside of this pod: at its limit the kernel chooses among its containers",
    ),
    Mechanism.KUBEPODS_LIMIT: Words(
        "killed by the kernel at the memory limit of all pods, or of those of a class",
        name="the kubepods limit",
        by="kubepods limit",
        order=_BY_SCORE,
        note=(
            "kubepods limit: the memory limit of all pods together, what the node has less what is reserved;"
            " with a higher eviction threshold (memory.available) the kubelet evicts before it"
        ),
    ),
    Mechanism.NODE: Words(
        "killed by the kernel because the node ran out of memory",
        name="the kernel, because the node is full",
        by="kernel: node full",
        order=_BY_SCORE,
    ),
    Mechanism.EVICTION: Words(
        "evicted by the kubelet under memory pressure; no OOM",
        name="eviction",
        by="kubelet evicts",
        dies="is evicted",
        step="eviction",
        order="the kubelet evicts those first that use more than they request, of these the lowest priority",
    ),
    Mechanism.TALOS: Words(
        "killed by the OOM controller of Talos under memory pressure, not by the kernel; OOMConfig in the"
        " machine configuration tunes it or turns it off",
        name="the OOM controller of Talos",
        by="Talos: pressure",
        order="Talos kills BestEffort pods before Burstable ones, those without a limit alone",
        acts="kills before the kernel under memory pressure (PSI), at the latest on a full node",
        first={
            "": f"the largest first, of Burstable pods half of the memory counts; {_NEVER}",
            "strict": f"BestEffort pods first, then Burstable ones, of each class the largest; {_NEVER}",
        },
    ),
    Mechanism.SYSTEMD_OOMD: Words(
        "killed by systemd-oomd under memory pressure, not by the kernel",
        name="systemd-oomd",
        by="systemd-oomd: pressure",
        order="systemd-oomd goes by swap in use or by reclaim",
        first={"": "by swap in use or by reclaim, which no API returns"},
        acts=(
            "kills whole cgroups before the kernel, below units with ManagedOOMSwap or"
            " ManagedOOMMemoryPressure"
        ),
    ),
    Mechanism.EARLYOOM: Words(
        "killed by earlyoom as memory became scarce, not by the kernel",
        name="earlyoom",
        by="earlyoom: 10% free",
        order="earlyoom kills the highest oom_score first",
        first={"": "the highest oom_score first, --prefer and --avoid left out"},
        acts="kills before the kernel, as 10 % of RAM and of swap are left",
    ),
    Mechanism.MEMORY_NODES: Words(
        "killed by the kernel because NUMA nodes of a cpuset or memory policy ran out"
    ),
    Mechanism.START_LIMIT: Words("not started: its memory limit is less than the runtime takes to start it"),
    Mechanism.OTHER_EVICTION: Words("evicted by the kubelet, not for memory"),
    Mechanism.VOLUME_LIMIT: Words("evicted by the kubelet because an emptyDir was above its sizeLimit"),
    Mechanism.STORAGE_LIMIT: Words("evicted by the kubelet at an ephemeral-storage limit of its own"),
    Mechanism.UNKNOWN_EVICTION: Words("evicted by the kubelet; its status does not say for what"),
    Mechanism.REJECTION: Words("not admitted by the kubelet: it never ran"),
    Mechanism.PREEMPTION: Words(
        "ended by the kubelet for a critical pod, by requests and not by usage; no OOM"
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
    Mechanism.KERNEL: Words("killed by the kernel; it is not known whether at a limit or on a full node"),
    Mechanism.PANIC: Words(
        "nothing was killed: the kernel panicked as memory ran out, and the machine went down"
    ),
    Mechanism.SYSRQ: Words(
        "killed by the kernel's OOM killer, which somebody called (SysRq f): no memory ran out"
    ),
    Mechanism.UNKNOWN: Words("killed; by what is unknown"),
}


def actor(killer: Killer) -> str:
    """Who kills, in a word: kernel, kubelet, or the name of a daemon."""
    return "kubelet" if killer.evicts else "kernel" if killer.is_kernel else WORDS[killer.id].name


def step_name(mechanism: Mechanism) -> str:
    """Who acts in a step of a simulation, as the column BY has it."""
    return WORDS[mechanism].step or mechanism.value


def killer_sentence(setup: NodeSetup, *, has_ranks: bool = True) -> str:
    """Who kills before the kernel, or in its place, and in which order; empty where the kernel's holds.

    `has_ranks` is whether it stands below a list that has RANK.
    """
    if setup.node.is_windows:
        return "Windows has no OOM killer, oom_score_adj or cgroups: only class, scheduling and eviction hold"
    daemon = daemon_on(setup)
    if daemon is None:
        return ""
    words = WORDS[daemon.id]
    assumed = " (assumed)" if daemon.is_assumed(setup) else ""
    first = words.first[daemon.variant(setup)]
    rank = ". RANK is the kernel's order" if has_ranks else ""
    return f"{words.name}{assumed} {words.acts}: {first}{rank}"
