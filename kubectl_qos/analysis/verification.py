"""Predicted values of a pod and its node compared with observed ones, and the likely causes of drift.

Values are the contents of files, with paths below the cgroup mount. On cgroup v1, names of files begin with
their controller, as in predictions. Known read-back quirks are part of the prediction (docs/differences.md),
so every difference is drift. Values without a prediction are ignored, except leftovers of MemoryQoS, which
are reported but are not drift. Most causes are found by trial: the pod is predicted again with another
setting, an older release or its actuated resources, and the one that matches is a likely cause. Not here:
reading (cluster/exec.py, host/).
"""

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, partial
from typing import Final, NamedTuple

import msgspec

from kubectl_qos.errors import QosError
from kubectl_qos.k8s.allocation import resize_condition
from kubectl_qos.k8s.defaulting import with_containers
from kubectl_qos.k8s.kubelet import NodeSetup, Origin
from kubectl_qos.k8s.node_overrides import FEATURE_GATES, FIELDS, NodeOverride, apply_overrides
from kubectl_qos.k8s.objects import Container, Pod
from kubectl_qos.qos.cgroup.names import class_name, kubepods_name, literal, memory_path
from kubectl_qos.qos.cgroup.pod import UPDATED_IN_PLACE
from kubectl_qos.qos.cgroup.tree import CgroupLevel, CgroupTree, Directory
from kubectl_qos.qos.cgroup.values import MEMORY_HIGH, MEMORY_LOW, MEMORY_MIN, UNWRITTEN
from kubectl_qos.qos.oom_score import BEST_EFFORT_ADJ, LOWEST_BURSTABLE_ADJ, least_request
from kubectl_qos.qos.prediction import ContainerPrediction, Prediction, predict
from kubectl_qos.qos.process_order import HostProcess
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.reason import Confidence

MOUNT: Final = "/sys/fs/cgroup"
_ID: Final = re.compile(r"[0-9a-f]{64}")
_PROCESS: Final = re.compile(r"/proc/(\d+)/oom_score_adj")
_EVENTS: Final = re.compile(r"(?m)^(high|max|oom|oom_kill) (\d+)$")
_INNER: Final = "container"
"""Name of the cgroup below a scope that crun puts processes into."""

Files = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ObservedProcess:
    """A process of a container; `pid` is in the PID namespace of the reader (container or node)."""

    pid: int
    name: str
    oom_score_adj: int
    oom_score: int | None = None
    """From /proc, if it was read."""


@dataclass(frozen=True, slots=True)
class ObservedContainer:
    """Values read from one container."""

    files: Files = field(default_factory=dict)
    processes: tuple[ObservedProcess, ...] = ()
    path: str | None = None
    """Its cgroup; None if the container cannot see it."""
    runtime_adj: int | None = None
    """oom_score_adj of a process that the runtime started for reading: the value that it gives to all."""


@dataclass(frozen=True, slots=True)
class Observed:
    """Values read from a pod or node: containers by name, and the directories above them by path."""

    containers: Mapping[str, ObservedContainer] = field(default_factory=dict)
    directories: Mapping[str, Files] = field(default_factory=dict)

    @property
    def memory_events(self) -> dict[str, dict[str, int]]:
        """Counts of memory.events by container, since the container started."""
        counts = {}
        for name, observed in self.containers.items():
            events = re.findall(_EVENTS, observed.files.get("memory.events", ""))
            if events:
                counts[name] = {event: int(times) for event, times in events}
        return counts


def pod_directory(container_path: str) -> str:
    """Return the pod's directory for the path of a container or of its processes."""
    directory, name = posixpath.split(container_path)
    return posixpath.dirname(directory) if name == _INNER else directory


def container_scope(path: str) -> str:
    """Return the container's own directory for the path of its processes."""
    return posixpath.dirname(path) if posixpath.basename(path) == _INNER else path


def by_container_id(paths: Iterable[str]) -> dict[str, str]:
    """Return each container's directory, which has the limits, by the hex ID in its name."""
    scopes: dict[str, str] = {}
    for path in map(container_scope, paths):
        match = _ID.search(posixpath.basename(path))
        if match is not None:
            scopes.setdefault(match[0], path)
    return scopes


def observed_on_node(
    directories: Mapping[str, Files], processes: Iterable[HostProcess]
) -> dict[str, ObservedContainer]:
    """Group the directories and processes of a node by the container's hex ID."""
    inside: dict[str, list[ObservedProcess]] = {}
    for process in processes:
        observed = ObservedProcess(process.pid, process.comm, process.adj, process.score)
        inside.setdefault(container_scope(process.cgroup), []).append(observed)
    return {
        hex_id: ObservedContainer(directories.get(path, {}), tuple(inside.get(path, ())), path)
        for hex_id, path in by_container_id([*directories, *inside]).items()
    }


def observed_from_sections(sections: Mapping[str, str]) -> tuple[ObservedContainer, dict[str, Files]]:
    """Parse what a process inside a container read; return the container, and the visible directories above.

    `sections` are contents of files by absolute path, with `/proc/self/cgroup`; `$$` is the pid of the
    reader. Raises ValueError for invalid numbers.
    """
    own = sections.get("/proc/self/cgroup", "")
    path: str | None = memory_path(own).strip()
    if path in {"", "/"} or (path or "").startswith("/.."):
        path = None  # The container has a private cgroup namespace.
    scope = container_scope(path) if path else None
    reader = sections.get("$$", "").strip()
    processes = []
    for file, adj in sections.items():
        match = _PROCESS.fullmatch(file)
        if match is None or match[1] == reader:
            continue
        pid = match[1]
        if _is_in_container(sections.get(f"/proc/{pid}/cgroup"), own):
            comm, score = (sections.get(f"/proc/{pid}/{name}", "").strip() for name in ("comm", "oom_score"))
            known_score = int(score) if score.isdecimal() else None
            processes.append(ObservedProcess(int(pid), comm, int(adj), known_score))
    runtime_adj = sections.get("/proc/self/oom_score_adj")
    directories: dict[str, dict[str, str]] = {}
    for name, text in sections.items():
        if name.startswith(f"{MOUNT}/"):
            directory, file = _split_file(name.removeprefix(MOUNT))
            directories.setdefault(directory, {})[file] = text.strip()
    root = directories.pop("/", {})
    files = directories.pop(scope, root) if scope is not None else root
    directories.pop(path or "/", None)
    container_adj = int(runtime_adj) if runtime_adj is not None else None
    return ObservedContainer(files, tuple(processes), scope, container_adj), dict(directories)


def _is_in_container(text: str | None, own: str) -> bool:
    """Return whether another process is in the reader's cgroup or below it.

    With shareProcessNamespace or hostPID, processes of other containers are visible too, with paths such as
    `/../cri-containerd-….scope`.
    """
    if text is None:
        return True
    ours, theirs = (memory_path(lines).strip() or "/" for lines in (own, text))
    if theirs.startswith("/.."):
        return False
    return ours in {theirs, "/"} or theirs.startswith(f"{ours}/") or ours.startswith(f"{theirs}/")


_V1: Final = frozenset({"cpu", "memory", "pids", "cpuset", "hugetlb"})


def _split_file(path: str) -> tuple[str, str]:
    """Split into directory and name as in predictions; v1 has a tree for each controller."""
    directory, name = posixpath.split(path)
    controller, _, rest = directory.removeprefix("/").partition("/")
    if controller in _V1:
        return f"/{rest}", f"{controller}/{name}"
    return directory or "/", name


class DriftReason(StrEnum):
    """A possible cause of drift."""

    OWN_ADJ = "the application set its own"
    SETTING = "another setting"
    OLDER_RELEASE = "made before an upgrade"
    RESIZE_UNDER_WAY = "a resize is under way"
    BEFORE_RESIZE = "started before a resize"
    RESIZED = "resized"
    OTHER_DRIVER = "the other cgroup driver"
    STALE_HIERARCHY = "in the hierarchy of another driver"
    LEFT_HIERARCHY = "a hierarchy that was left behind"
    OTHER_CLASS = "made in another class"
    OTHER_RUNTIME = "another container runtime"
    MEMORY_QOS_LEFT = "left behind by MemoryQoS"
    INNER_CGROUP = "read in an inner cgroup"
    LAGS = "the classes lag behind"


@dataclass(frozen=True, slots=True)
class DriftCause:
    """A cause, its confidence, and the facts for its sentence."""

    reason: DriftReason
    confidence: Confidence
    inputs: Mapping[str, object] = field(default_factory=dict)


_SETTINGS: Final = (
    *("cgroupDriver=cgroupfs", "cgroupDriver=systemd", "ociRuntime=runc-1.2", "ociRuntime=runc"),
    *("cpuManagerPolicy=static", "cpuManagerPolicy=none", "cpuCFSQuota=false", "cpuCFSQuota=true"),
    *("singleProcessOOMKill=true", "singleProcessOOMKill=false", "ociRuntime=crun-1.22"),
    *("memorySwap.swapBehavior=NoSwap", "memorySwap.swapBehavior=LimitedSwap"),
    *("featureGates.MemoryQoS=false", "featureGates.MemoryQoS=true"),
    "featureGates.MemoryQoS=true memoryReservationPolicy=TieredReservation",
    "featureGates.MemoryQoS=true memoryReservationPolicy=None",
    *("pageSize=16Ki", "pageSize=64Ki"),
)
"""Settings to try, most specific first; a text with several sets them all."""

_RELEASES_BACK: Final = 4
_PROTECTION: Final = frozenset({MEMORY_MIN, MEMORY_LOW, MEMORY_HIGH})
KERNEL_DEFAULTS: Final = {**UNWRITTEN, "cpu.weight": "100"}
SUMS: Final = frozenset({"cpu.weight", "cpu/cpu.shares", MEMORY_MIN, MEMORY_LOW, "memory.max"})
"""Files of kubepods and the classes that sum over all pods of the node."""


class _Alternative(NamedTuple):
    prediction: Prediction
    cause: DriftCause


class CauseFinder:
    """Finds causes of drift for one pod; alternatives are predicted once a value differs."""

    def __init__(self, prediction: Prediction, measured: Observed) -> None:
        self._prediction, self._measured = prediction, measured
        self._was_changed = prediction.pod.metadata.generation > 1
        """Whether the pod's spec has changed since it was created, by a resize or a smaller change."""

    def for_file(
        self, level: CgroupLevel, container: str, name: str, measured: str, *, inner: bool = False
    ) -> DriftCause | None:
        """Find the cause for a cgroup file; `inner`: it was read from the container's own root."""
        setup = self._prediction.setup
        knows_gates = setup.kubelet.origin("feature_gates") is not Origin.ASSUMED
        if name in _PROTECTION and knows_gates and measured not in {"0", "max"}:
            return DriftCause(DriftReason.MEMORY_QOS_LEFT, Confidence.LIKELY)
        if name.endswith("pids.max") and (measured.isdigit() or measured == "max"):
            limit = measured if measured.isdigit() else "-1"
            return _setting_cause(setup, (f"podPidsLimit={limit}",))
        for other in self._alternatives:
            files = other.prediction.cgroup.files
            if level is CgroupLevel.CONTAINER:
                predicted = other.prediction.container(container)
                files = (predicted.process_cgroup if inner else predicted.cgroup).files
            is_older = other.cause.reason is DriftReason.OLDER_RELEASE
            if is_older and self._was_changed and name in UPDATED_IN_PLACE:
                return DriftCause(DriftReason.RESIZED, Confidence.POSSIBLE)
            if files.get(name, KERNEL_DEFAULTS.get(name)) == measured:
                return other.cause
        if inner and KERNEL_DEFAULTS.get(name) == measured:
            return DriftCause(DriftReason.INNER_CGROUP, Confidence.POSSIBLE)
        return None

    def for_adj(
        self, container: ContainerPrediction, value: int, observed: ObservedContainer
    ) -> DriftCause | None:
        """Find the cause for an oom_score_adj.

        Processes inherit the value that the runtime sets. If another process of the container has the
        computed value, this process or an ancestor changed its own. Any process may raise its value
        (fs/proc/base.c, __set_oom_adj).
        """
        computed = container.oom_score_adj
        inputs = {"raised": computed is not None and value > computed}
        others = {process.oom_score_adj for process in observed.processes} | {observed.runtime_adj}
        if computed is not None and computed in others:
            return DriftCause(DriftReason.OWN_ADJ, Confidence.CERTAIN, inputs)
        is_from_runtime = observed.runtime_adj == value
        is_burstable = self._prediction.qos_class is QosClass.BURSTABLE
        if self._was_changed and is_burstable and LOWEST_BURSTABLE_ADJ <= value < BEST_EFFORT_ADJ:
            return DriftCause(DriftReason.BEFORE_RESIZE, Confidence.LIKELY, self._request_of(value))
        for other in self._alternatives:
            if other.prediction.container(container.name).oom_score_adj == value:
                return other.cause
        may_be_restricted = is_from_runtime or observed.runtime_adj is None
        if computed is not None and computed < 0 and value > computed and may_be_restricted:
            setting = f"runtimeOOMScoreAdj={value}"
            return _setting_cause(self._prediction.setup, (setting,), Confidence.POSSIBLE)
        if is_from_runtime:
            return None
        return DriftCause(DriftReason.OWN_ADJ, Confidence.POSSIBLE, inputs)

    def for_directory(self, pod_path: str) -> DriftCause | None:
        """Find the cause for a pod outside its predicted directory."""
        kubelet = self._prediction.setup.kubelet
        for other in self._alternatives:
            if other.prediction.cgroup.path == pod_path:
                driver = other.prediction.setup.kubelet.cgroup_driver
                kubepods = literal(kubepods_name(kubelet), kubelet.cgroup_driver)
                if driver is kubelet.cgroup_driver:
                    return other.cause
                if kubepods in self._measured.directories:
                    return DriftCause(DriftReason.STALE_HIERARCHY, Confidence.LIKELY, {"path": kubepods})
                return DriftCause(DriftReason.OTHER_DRIVER, Confidence.CERTAIN, {"driver": driver.value})
        for qos in QosClass:
            if pod_path.rpartition("/")[0] == literal(class_name(qos, kubelet), kubelet.cgroup_driver):
                return DriftCause(DriftReason.OTHER_CLASS, Confidence.LIKELY, {"qos": qos.value})
        return None

    def _request_of(self, value: int) -> dict[str, object]:
        capacity = self._prediction.setup.node.memory_capacity_bytes
        if not capacity or self._prediction.pod.spec.resources is not None:
            return {}
        return {"least": least_request(value, capacity), "most": least_request(value - 1, capacity) - 1}

    @cached_property
    def _alternatives(self) -> list[_Alternative]:
        alternatives, pod, setup = list[_Alternative](), self._prediction.pod, self._prediction.setup
        actuated = _with_actuated_resources(pod)
        if actuated is not None:
            condition = resize_condition(pod)
            words = f"{condition.type} {condition.reason}".strip() if condition is not None else ""
            cause = DriftCause(DriftReason.RESIZE_UNDER_WAY, Confidence.LIKELY, {"condition": words})
            alternatives.append(_Alternative(_predict(actuated, setup), cause))
        runtime_class = pod.spec.runtime_class_name
        key = f"ociRuntime.{runtime_class}=" if runtime_class else "ociRuntime="
        unlikely = "runc" if setup.node.oci_runtime.name == "crun" else "crun"
        for settings in sorted(_SETTINGS, key=lambda text: unlikely in text):
            texts = tuple(settings.replace("ociRuntime=", key).split())
            other = _with_settings(setup, texts)
            if other is not None:
                alternatives.append(_Alternative(_predict(pod, other), _setting_cause(setup, texts)))
        for back in range(1, _RELEASES_BACK + 1):
            release = f"1.{setup.release.minor - back}"
            other = _with_settings(setup, (), release)
            if other is not None:
                cause = DriftCause(DriftReason.OLDER_RELEASE, Confidence.LIKELY, {"release": release})
                alternatives.append(_Alternative(_predict(pod, other), cause))
        return alternatives


def cause_above(setup: NodeSetup, directory: Directory, name: str, _measured: str) -> DriftCause | None:
    """Find the cause for a file of kubepods or a class; the kubelet updates those once a minute."""
    knows_gates = setup.kubelet.origin("feature_gates") is not Origin.ASSUMED
    if name in _PROTECTION and knows_gates and directory.files.get(name) == "0":
        return DriftCause(DriftReason.MEMORY_QOS_LEFT, Confidence.LIKELY)
    if name in SUMS and directory.level is CgroupLevel.CLASS:
        return DriftCause(DriftReason.LAGS, Confidence.POSSIBLE)
    return None


def _with_actuated_resources(pod: Pod) -> Pod | None:
    """Return the pod with its actuated resources, or None if they equal those of its spec.

    Source: status.containerStatuses[].resources (KEP-1287).
    """
    statuses = pod.status.every_container
    actuated = {status.name: status.resources for status in statuses if status.resources is not None}

    def change(container: Container) -> Container:
        resources = actuated.get(container.name)
        return container if resources is None else msgspec.structs.replace(container, resources=resources)

    spec = with_containers(pod.spec, change)
    return msgspec.structs.replace(pod, spec=spec) if spec != pod.spec else None


def _predict(pod: Pod, setup: NodeSetup) -> Prediction:
    return predict(pod, setup.node, kubelet=setup.kubelet, release=setup.release)


def _with_settings(setup: NodeSetup, texts: tuple[str, ...], release: str | None = None) -> NodeSetup | None:
    """Return the setup with these settings, or None if its release lacks one of them."""
    try:
        return apply_overrides(setup, [NodeOverride.parse(text) for text in texts], release)
    except QosError:
        return None


def _setting_cause(
    setup: NodeSetup, texts: tuple[str, ...], confidence: Confidence = Confidence.LIKELY
) -> DriftCause:
    """Return a cause: the assumed value of a setting is wrong, or it has changed since the pod started."""
    keys = [text.partition("=")[0] for text in texts]
    names = ["ociRuntime" if key.startswith("ociRuntime.") else key for key in keys]
    fields = ["feature_gates" if name.startswith(FEATURE_GATES) else FIELDS[name].name for name in names]
    is_known = any(setup.kubelet.origin(field) is not Origin.ASSUMED for field in fields)
    is_of_node = any(name in {"ociRuntime", "pageSize", "runtimeOOMScoreAdj"} for name in names)
    inputs = {"settings": texts, "assumed": is_of_node or not is_known}
    return DriftCause(DriftReason.SETTING, confidence, inputs)


OOM_SCORE_ADJ: Final = "oom_score_adj"
DIRECTORY: Final = "directory"
_ABOVE_PODS: Final = frozenset({CgroupLevel.KUBEPODS, CgroupLevel.CLASS, CgroupLevel.RESERVED})
_UNPROTECTED: Final = {MEMORY_MIN: "0", MEMORY_LOW: "0", MEMORY_HIGH: "max"}


@dataclass(frozen=True, slots=True)
class CheckedValue:
    """A computed value with the measured one (None if unread); processes with equal values are one check.

    `cause` without `drift`: why the difference is ignored.
    """

    level: CgroupLevel
    container: str
    file: str
    """A cgroup file, `oom_score_adj` or `directory`."""
    computed: str | None
    measured: str | None
    drift: bool = False
    cause: DriftCause | None = None
    processes: tuple[ObservedProcess, ...] = ()


class Unread(msgspec.Struct, frozen=True):
    """Why a container, or the whole pod, could not be read."""

    container: str | None
    message: str
    remedy: str | None


@dataclass(frozen=True, slots=True)
class Verified:
    """The checks of one pod, or of the levels above the pods (no `pod`)."""

    checks: tuple[CheckedValue, ...]
    pod: Pod | None = None
    unread: tuple[Unread, ...] = ()
    events: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Counts of memory.events by container."""

    @property
    def drift(self) -> tuple[CheckedValue, ...]:
        """Checks that differ."""
        return tuple(check for check in self.checks if check.drift)

    @property
    def compared(self) -> tuple[CheckedValue, ...]:
        """Checks whose value could be read."""
        return tuple(check for check in self.checks if check.measured is not None)

    @property
    def multi_process(self) -> dict[str, tuple[ObservedProcess, ...]]:
        """Processes of each container that has several."""
        processes: dict[str, tuple[ObservedProcess, ...]] = {}
        for check in self.checks:
            processes[check.container] = (*processes.get(check.container, ()), *check.processes)
        return {name: checks for name, checks in processes.items() if len(checks) > 1}


def verify_pod(prediction: Prediction, measured: Observed) -> tuple[CheckedValue, ...]:
    """Compare the values of the pod's cgroup and of its containers."""
    causes = CauseFinder(prediction, measured)
    checks: list[CheckedValue] = []
    pod_path = _pod_path(prediction, measured)
    if pod_path is not None and prediction.setup.kubelet.cgroups_per_qos:
        checks += _check_directories(prediction, pod_path, causes)
    is_elsewhere = any(check.level is CgroupLevel.CLASS and check.drift for check in checks)
    if pod_path is not None and pod_path in measured.directories:
        cause_of = partial(causes.for_file, CgroupLevel.POD, "")
        files = measured.directories[pod_path]
        checks += _check_files(CgroupLevel.POD, "", prediction.cgroup.files, files, cause_of)
    for container in prediction.containers:
        observed = measured.containers.get(container.name)
        if observed is not None:
            checks += _check_container(container, observed, pod_path, causes, is_elsewhere=is_elsewhere)
    return tuple(checks)


def verify_levels(
    tree: CgroupTree, directories: Mapping[str, Files], *, whole_node: bool = True
) -> tuple[CheckedValue, ...]:
    """Compare the values of kubepods, the classes and the reserved cgroups.

    Without `whole_node`, skip files that sum over all pods, because some pods are unknown.
    """
    checks: list[CheckedValue] = []
    for directory in tree.walk():
        level, path = directory.level, directory.path
        if level not in _ABOVE_PODS or path not in directories:
            continue
        computed = {name: text for name, text in directory.files.items() if whole_node or name not in SUMS}
        label = path if level is CgroupLevel.RESERVED else ""
        name = directory.qos.value if directory.qos is not None else label
        cause_of = partial(cause_above, tree.setup, directory)
        checks += _check_files(level, name, computed, directories[path], cause_of)
    # When the cgroup driver is switched, the kubelet leaves the old tree behind.
    roots = {root.path for root in tree.roots if root.level is CgroupLevel.KUBEPODS}
    for path in ("/kubepods", "/kubepods.slice"):
        if path in directories and roots and roots <= directories.keys() and path not in roots:
            cause = DriftCause(DriftReason.LEFT_HIERARCHY, Confidence.LIKELY, {"path": path})
            checks.append(CheckedValue(CgroupLevel.KUBEPODS, "", DIRECTORY, None, path, cause=cause))
    return tuple(checks)


def _pod_path(prediction: Prediction, measured: Observed) -> str | None:
    """Return the pod's directory: above one of its containers, or with its UID in the name."""
    paths = (observed.path for observed in measured.containers.values())
    above = [pod_directory(path) for path in paths if path is not None]
    for path in above:
        if path in measured.directories or not measured.directories:
            return path
    uid = posixpath.basename(prediction.cgroup.path).rpartition("pod")[2].removesuffix(".slice")
    names = {f"pod{uid}", f"pod{uid.replace('_', '-')}", f"pod{uid.replace('-', '_')}"}
    endings = tuple(f"-{name}" for name in names)
    for path in measured.directories:
        name = posixpath.basename(path).removesuffix(".slice")
        if name in names or name.endswith(endings):
            return path
    return above[0] if above else None


def _check_directories(prediction: Prediction, pod_path: str, causes: CauseFinder) -> Iterator[CheckedValue]:
    """Compare the class directory and the pod's; report a moved directory once, at the highest level."""
    above, name = posixpath.split(pod_path)
    computed = prediction.class_cgroup_path
    if above != computed:
        cause = causes.for_directory(pod_path)
        yield CheckedValue(CgroupLevel.CLASS, "", DIRECTORY, computed, above, drift=True, cause=cause)
        return
    yield CheckedValue(CgroupLevel.CLASS, "", DIRECTORY, computed, above)
    computed = posixpath.basename(prediction.cgroup.path)
    yield CheckedValue(CgroupLevel.POD, "", DIRECTORY, computed, name, drift=computed != name)


def _check_container(
    container: ContainerPrediction,
    observed: ObservedContainer,
    pod_path: str | None,
    causes: CauseFinder,
    *,
    is_elsewhere: bool,
) -> Iterator[CheckedValue]:
    """Compare the values of one container; its directory only if the pod's has not moved."""
    if observed.path is not None and pod_path is not None and not is_elsewhere:
        computed, measured = container.cgroup.path, observed.path
        if posixpath.dirname(measured) == pod_path:
            computed, measured = posixpath.basename(computed), posixpath.basename(measured)
        drift, cause = computed != measured, None
        container_id = computed.removesuffix(".scope").rpartition("-")[2]
        if drift and container_id and container_id in measured:
            cause = DriftCause(DriftReason.OTHER_RUNTIME, Confidence.LIKELY)
        yield CheckedValue(CgroupLevel.CONTAINER, container.name, DIRECTORY, computed, measured, drift, cause)
    yield from _check_adj(container, observed, causes)
    cause_of = partial(causes.for_file, CgroupLevel.CONTAINER, container.name, inner=observed.path is None)
    # Without a path, the values were read in the cgroup of the processes.
    cgroup = container.process_cgroup if observed.path is None else container.cgroup
    yield from _check_files(CgroupLevel.CONTAINER, container.name, cgroup.files, observed.files, cause_of)


def _check_adj(
    container: ContainerPrediction, observed: ObservedContainer, causes: CauseFinder
) -> Iterator[CheckedValue]:
    """Compare the oom_score_adj of processes, grouped by value, with the computed value or range."""
    if container.oom_score_adj_range is None:
        return
    name, (lowest, highest) = container.name, container.oom_score_adj_range
    computed = str(lowest) if lowest == highest else f"{lowest}..{highest}"
    by_value: dict[int, list[ObservedProcess]] = {}
    for process in observed.processes:
        by_value.setdefault(process.oom_score_adj, []).append(process)
    if not by_value and observed.runtime_adj is not None:
        by_value[observed.runtime_adj] = []
    for value, processes in by_value.items():
        drift = not lowest <= value <= highest
        cause = causes.for_adj(container, value, observed) if drift else None
        yield CheckedValue(
            CgroupLevel.CONTAINER, name, OOM_SCORE_ADJ, computed, str(value), drift, cause, tuple(processes)
        )


def _check_files(
    level: CgroupLevel,
    container: str,
    computed: Files,
    measured: Files,
    cause_of: Callable[[str, str], DriftCause | None],
) -> Iterator[CheckedValue]:
    for name, expected in computed.items():
        text = measured.get(name)
        if text is None:
            yield CheckedValue(level, container, name, expected, None)
            continue
        value = text.strip()
        drift = value != expected
        cause = cause_of(name, value) if drift else None
        yield CheckedValue(level, container, name, expected, value, drift, cause)
    for name, default in _UNPROTECTED.items():
        value = measured.get(name, default).strip()
        if name not in computed and value not in {"0", "max"}:
            cause = DriftCause(DriftReason.MEMORY_QOS_LEFT, Confidence.LIKELY)
            yield CheckedValue(level, container, name, default, value, cause=cause)
