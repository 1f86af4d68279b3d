"""Comparison of predicted values of a pod and its node with measured ones.

Known read-back quirks are part of the prediction (docs/differences.md), so every difference is drift. Values
without a prediction are ignored, except leftovers of MemoryQoS, which are reported but are not drift.
"""

import posixpath
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import msgspec

from kubectl_qos.analysis.drift import (
    SUMS,
    CauseFinder,
    DriftCause,
    DriftReason,
    Files,
    Observed,
    ObservedContainer,
    ObservedProcess,
    cause_above,
    pod_directory,
)
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.qos.cgroup.tree import CgroupLevel, CgroupTree
from kubectl_qos.qos.cgroup.values import MEMORY_HIGH, MEMORY_LOW, MEMORY_MIN
from kubectl_qos.qos.prediction import ContainerPrediction, Prediction
from kubectl_qos.qos.reason import Confidence

_ABOVE_PODS = frozenset({CgroupLevel.KUBEPODS, CgroupLevel.CLASS, CgroupLevel.RESERVED})
_UNPROTECTED = {MEMORY_MIN: "0", MEMORY_LOW: "0", MEMORY_HIGH: "max"}


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
        """Processes of containers with several."""
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
        read = measured.containers.get(container.name)
        if read is not None:
            checks += _check_container(container, read, pod_path, causes, is_elsewhere=is_elsewhere)
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
    # The kubelet leaves the tree of the other driver behind when the driver is switched.
    roots = {root.path for root in tree.roots if root.level is CgroupLevel.KUBEPODS}
    for path in ("/kubepods", "/kubepods.slice"):
        if path in directories and roots and roots <= directories.keys() and path not in roots:
            cause = DriftCause(DriftReason.LEFT_HIERARCHY, Confidence.LIKELY, {"path": path})
            checks.append(CheckedValue(CgroupLevel.KUBEPODS, "", DIRECTORY, None, path, cause=cause))
    return tuple(checks)


def _pod_path(prediction: Prediction, measured: Observed) -> str | None:
    """Return the pod's directory: above one of its containers, or with its UID in the name."""
    above = [pod_directory(read.path) for read in measured.containers.values() if read.path is not None]
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
    read: ObservedContainer,
    pod_path: str | None,
    causes: CauseFinder,
    *,
    is_elsewhere: bool,
) -> Iterator[CheckedValue]:
    """Compare the values of one container; its directory only if the pod's has not moved."""
    if read.path is not None and pod_path is not None and not is_elsewhere:
        computed, measured = container.cgroup.path, read.path
        if posixpath.dirname(measured) == pod_path:
            computed, measured = posixpath.basename(computed), posixpath.basename(measured)
        drift, cause = computed != measured, None
        container_id = computed.removesuffix(".scope").rpartition("-")[2]
        if drift and container_id and container_id in measured:
            cause = DriftCause(DriftReason.OTHER_RUNTIME, Confidence.LIKELY)
        yield CheckedValue(CgroupLevel.CONTAINER, container.name, DIRECTORY, computed, measured, drift, cause)
    yield from _check_adj(container, read, causes)
    cause_of = partial(causes.for_file, CgroupLevel.CONTAINER, container.name, inner=read.path is None)
    # Without its path, it was read in the cgroup of its processes.
    cgroup = container.process_cgroup if read.path is None else container.cgroup
    yield from _check_files(CgroupLevel.CONTAINER, container.name, cgroup.files, read.files, cause_of)


def _check_adj(
    container: ContainerPrediction, read: ObservedContainer, causes: CauseFinder
) -> Iterator[CheckedValue]:
    """Compare the oom_score_adj of processes, grouped by value, with the computed value or range."""
    if container.oom_score_adj_range is None:
        return
    name, (lowest, highest) = container.name, container.oom_score_adj_range
    computed = str(lowest) if lowest == highest else f"{lowest}..{highest}"
    by_value: dict[int, list[ObservedProcess]] = {}
    for process in read.processes:
        by_value.setdefault(process.oom_score_adj, []).append(process)
    if not by_value and read.runtime_adj is not None:
        by_value[read.runtime_adj] = []
    for value, processes in by_value.items():
        drift = not lowest <= value <= highest
        cause = causes.for_adj(container, value, read) if drift else None
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


OOM_SCORE_ADJ: Final = "oom_score_adj"
DIRECTORY: Final = "directory"
