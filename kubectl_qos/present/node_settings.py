"""The keys of `--assume` in words: accepted values, the default, and what each key changes.

Not here: parsing and applying them (k8s/node_overrides.py).
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from kubectl_qos.k8s.kubelet import Kubelet, Node
from kubectl_qos.k8s.node_overrides import FEATURE_GATES, FIELDS, PROFILE, USERSPACE_OOM_KILLER
from kubectl_qos.k8s.objects import ResourceList
from kubectl_qos.k8s.releases import NEWEST_MINOR, OLDEST_MINOR, Gate, Release
from kubectl_qos.qos.killers import OOM_KILLERS_TEXT


class NodeSetting(NamedTuple):
    """A key of `--assume`, as a row of a table."""

    key: str
    type: str
    default: str
    effect: str


class _Words(NamedTuple):
    """Words for a key; an empty `type` or `default` is taken from the key's field."""

    effect: str
    type: str = ""
    default: str = ""


_THRESHOLDS: Final = "SIGNAL<AMOUNT,… or none; = for <"
_RESERVED: Final = "RESOURCE=AMOUNT,… or none"
_REPORTED: Final = "as the node reports"
_WORDS: Final[Mapping[str, _Words]] = {
    "cgroupDriver": _Words("names of cgroups; a CPU quota that systemd rounds"),
    "cgroupRoot": _Words("path of kubepods", "PATH"),
    "cgroupsPerQOS": _Words("whether kubepods and the cgroups of classes exist"),
    "cpuCFSQuota": _Words("whether CPU limits are in cpu.max"),
    "cpuCFSQuotaPeriod": _Words("the period in cpu.max", "1ms to 1s", "100ms"),
    "cpuManagerPolicy": _Words("exclusive CPUs: no quota in cpu.max of such containers; refused resizes"),
    "memoryManagerPolicy": _Words("refused resizes of Guaranteed pods"),
    "podPidsLimit": _Words("pids.max", "NUMBER, -1 for none"),
    "memoryThrottlingFactor": _Words("memory.high, with MemoryQoS", "above 0 to 1"),
    "memoryReservationPolicy": _Words("memory.min and memory.low, with MemoryQoS"),
    "memorySwap.swapBehavior": _Words("memory.swap.max, where the node has swap", default="NoSwap"),
    "singleProcessOOMKill": _Words(
        "memory.oom.group: whether a kill is of one process or of the container", default="false; true on v1"
    ),
    "evictionHard": _Words("when the kubelet evicts; what is allocatable", _THRESHOLDS),
    "evictionSoft": _Words("when the kubelet evicts after a grace period", _THRESHOLDS),
    "kubeReserved": _Words("memory.max of kubepods; what is allocatable", _RESERVED),
    "systemReserved": _Words("memory.max of kubepods; what is allocatable", _RESERVED),
    "cgroupVersion": _Words(
        "names of cgroup files, and the files that exist", default="2; 1 before kernel 4.15"
    ),
    "runtime": _Words("the OCI runtime that it was released with", "NAME://VERSION", _REPORTED),
    "ociRuntime": _Words(
        "cpu.weight from shares; the inner cgroup of crun. ociRuntime.CLASS is that of a RuntimeClass",
        "runc-VERSION or crun-VERSION",
        "by the version of the container runtime",
    ),
    "runtimeOOMScoreAdj": _Words(
        "the least oom_score_adj, of a rootless containerd", "-1000 to 1000", "none"
    ),
    "kernel": _Words("formula of OOM_SCORE and RANK; cgroup v1 before 4.15", "VERSION", _REPORTED),
    "osImage": _Words("whether Talos kills before the kernel", "TEXT", _REPORTED),
    "operatingSystem": _Words("whether there are cgroups and an OOM killer", default=_REPORTED),
    USERSPACE_OOM_KILLER: _Words("what kills before the kernel", OOM_KILLERS_TEXT, "by osImage"),
    "memory": _Words("oom_score_adj and RANK of Burstable pods; what is allocatable", "SIZE", _REPORTED),
    "swap": _Words("memory.swap.max with LimitedSwap; RANK", "SIZE", "0"),
    "pageSize": _Words("rounding of memory limits; RANK", "SIZE, a power of two", "4Ki"),
    "kubeletVersion": _Words("every rule that differs by release", "1.MINOR or 1.MINOR.PATCH", _REPORTED),
    PROFILE: _Words(
        "published defaults of such clusters, where nothing is known of the node", default="none"
    ),
}


_GATES: Final[Mapping[Gate, str]] = {
    Gate.POD_LEVEL_RESOURCES: "spec.resources of pods: class, oom_score_adj, limits of the pod's cgroup",
    Gate.IN_PLACE_RESIZE: "whether a resize in place is possible",
    Gate.IN_PLACE_RESIZE_ALLOCATED_STATUS: "whether status.allocatedResources is believed",
    Gate.IN_PLACE_RESIZE_EXCLUSIVE_CPUS: "resizes of containers with exclusive CPUs",
    Gate.IN_PLACE_RESIZE_EXCLUSIVE_MEMORY: "resizes of containers with exclusive memory",
    Gate.IN_PLACE_RESIZE_INIT_CONTAINERS: "resizes of init containers",
    Gate.MUTABLE_SUSPENDED_JOBS: "whether requests and limits of suspended Jobs can be changed",
    Gate.IN_PLACE_RESIZE_POD_LEVEL: "resizes of spec.resources",
    Gate.IN_PLACE_RESIZE_VOLUMES: "resizes of pods with volumes in memory",
    Gate.IN_PLACE_RESIZE_PREEMPTION: "whether a deferred resize preempts pods",
    Gate.POD_LEVEL_FIX_QOS_CLASS: "class of pods with an empty spec.resources",
    Gate.POD_LEVEL_RESOURCE_MANAGERS: "exclusive CPUs of pods with spec.resources",
    Gate.PER_POD_PID_LIMIT: "pids.max of pods that limit pids",
    Gate.HUGEPAGE_AWARE_EVICTION: "memory that evictions count, on nodes with huge pages",
    Gate.SIDECAR_CONTAINERS: "oom_score_adj and totals of pods with sidecars",
    Gate.MEMORY_QOS: "memory.min, memory.low and memory.high",
    Gate.NODE_SWAP: "memory.swap.max",
    Gate.NO_QUOTA_WITH_EXCLUSIVE_CPUS: "cpu.max of containers with exclusive CPUs",
    Gate.CUSTOM_CFS_QUOTA_PERIOD: "whether cpuCFSQuotaPeriod is used",
    Gate.QOS_RESERVED: "memory.max of the cgroups of classes",
    Gate.DRA_NODE_ALLOCATABLE: "requests that come from resource claims",
    Gate.CONTAINER_RESTART_RULES: "whether a killed container with restartPolicyRules restarts",
    Gate.RESTART_ALL_CONTAINERS: "whether the action RestartAllContainers is known",
}


def node_settings() -> Iterator[NodeSetting]:
    """Yield every key of `--assume`: the kubelet's, the node's, and feature gates."""
    releases = {minor: Release.of(f"1.{minor}") for minor in range(OLDEST_MINOR, NEWEST_MINOR + 1)}
    kubelets = {minor: Kubelet.defaults(release) for minor, release in releases.items()}
    node, gates = Node(), {FEATURE_GATES + gate: gate for gate in Gate}
    for key, field in FIELDS.items():
        type_ = "|".join(field.begins)
        if key in gates:
            gate = gates[key]
            since = {minor: release for minor, release in releases.items() if minor >= gate.since}
            enabled = {minor: release.enabled(gate) for minor, release in since.items()}
            yield NodeSetting(key, type_, _by_release(enabled), _GATES[gate])
            continue
        words, default = _WORDS[key], _WORDS[key].default
        if not default and hasattr(node, field.name):
            default = _format(getattr(node, field.name))
        elif not default:
            values = {minor: getattr(kubelet, field.name) for minor, kubelet in kubelets.items()}
            default = _by_release(values)
        yield NodeSetting(key, words.type or type_, default, words.effect)


def _by_release(values: Mapping[int, object]) -> str:
    """Return `0.8; 0.9 from 1.27; none from 1.37`, with the first release of each value."""
    texts, before = [], None
    for minor, value in values.items():
        text = _format(value)
        if text != before:
            texts.append(text if minor == OLDEST_MINOR else f"{text} from 1.{minor}")
        before = text
    return "; ".join(texts)


def _format(value: object) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case Mapping():
            sign = "=" if isinstance(value, ResourceList) else "<"
            return ", ".join(f"{name}{sign}{amount}" for name, amount in value.items()) or "none"
    return str(value)
