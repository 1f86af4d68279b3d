"""Computed beside measured: what was predicted of a pod and its node, and what was read there.

What reads back otherwise for a known reason is predicted as it reads back (docs/differences.md), so whatever
differs is drift, with a cause where one is plausible (drift.py). Values that nobody predicts are left alone,
but for those that MemoryQoS leaves behind: they are known, and no drift.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.qos.cgroup.memory import MEMORY_HIGH, MEMORY_LOW, MEMORY_MIN
from kubectl_qos.qos.cgroup.tree import CgroupLevel, CgroupTree, Directory
from kubectl_qos.qos.prediction import ContainerPrediction, Prediction
from kubectl_qos.qos.verify.drift import (
    DIRECTORY,
    OOM_SCORE_ADJ,
    SUMS,
    Confidence,
    DriftCause,
    DriftCauses,
    DriftReason,
    cause_above,
)
from kubectl_qos.qos.verify.observed import (
    Files,
    Observed,
    ObservedContainer,
    ObservedProcess,
    file_value,
    pod_directory,
)

_UNPROTECTED = {MEMORY_MIN: "0", MEMORY_LOW: "0", MEMORY_HIGH: "max"}


@dataclass(frozen=True, slots=True)
class CheckedValue:
    """One value: computed and, unless it could not be read, measured.

    `file` is a cgroup file, `oom_score_adj` or `directory`; processes with one value are one check. A cause
    without drift says why a difference is none.
    """

    level: CgroupLevel
    container: str
    file: str
    computed: str | None
    measured: str | None
    drift: bool = False
    cause: DriftCause | None = None
    processes: tuple[ObservedProcess, ...] = ()


@dataclass(frozen=True, slots=True)
class Unread:
    """A container, or with an empty name the pod, that could not be looked at, and why."""

    container: str
    why: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Verified:
    """What became of one pod, or of the levels above the pods where there is none."""

    checks: tuple[CheckedValue, ...]
    pod: Pod | None = None
    unread: tuple[Unread, ...] = ()

    @property
    def drift(self) -> tuple[CheckedValue, ...]:
        """Those that differ."""
        return tuple(check for check in self.checks if check.drift)

    @property
    def compared(self) -> tuple[CheckedValue, ...]:
        """Those that could be compared."""
        return tuple(check for check in self.checks if check.measured is not None)


def verify_pod(prediction: Prediction, measured: Observed) -> tuple[CheckedValue, ...]:
    """Every value of the pod's own cgroup and of its containers that was predicted and read."""
    causes = DriftCauses(prediction, measured)
    found: list[CheckedValue] = []
    pod_path = _pod_path(prediction, measured)
    if pod_path is not None and prediction.setup.kubelet.cgroups_per_qos:
        found += _directories(prediction, pod_path, causes)
    is_elsewhere = any(check.level is CgroupLevel.CLASS and check.drift for check in found)
    if pod_path is not None and pod_path in measured.directories:
        files = measured.directories[pod_path]
        found += _files(
            CgroupLevel.POD, "", prediction.cgroup.files, files, partial(causes.of_file, CgroupLevel.POD, "")
        )
    for container in prediction.containers:
        read = measured.containers.get(container.name)
        if read is not None:
            found += _of_container(container, read, pod_path, causes, is_elsewhere=is_elsewhere)
    return tuple(found)


def verify_levels(
    tree: CgroupTree, directories: Mapping[str, Files], *, whole_node: bool = True
) -> tuple[CheckedValue, ...]:
    """The values of kubepods, the classes and the reserved cgroups, as far as they were read.

    Without `whole_node` those are left out that count pods of which some are not known.
    """
    found: list[CheckedValue] = []
    for one in tree.walk():
        if (
            one.level not in {CgroupLevel.KUBEPODS, CgroupLevel.CLASS, CgroupLevel.RESERVED}
            or one.path not in directories
        ):
            continue
        computed = {name: text for name, text in one.files.items() if whole_node or name not in SUMS}
        label = one.path if one.level is CgroupLevel.RESERVED else ""
        name = one.qos.value if one.qos is not None else label
        cause_of = _of_level(tree.setup, one)
        found += _files(one.level, name, computed, directories[one.path], cause_of)
    found += _left_hierarchy(tree, directories)
    return tuple(found)


def _of_level(setup: NodeSetup, directory: Directory) -> Callable[[str, str], DriftCause | None]:
    return lambda name, _: cause_above(setup, directory, name)


def _left_hierarchy(tree: CgroupTree, directories: Mapping[str, Files]) -> Iterator[CheckedValue]:
    """The tree of another driver stays when the driver is switched; the kubelet does not look there again."""
    roots = {one.path for one in tree.roots if one.level is CgroupLevel.KUBEPODS}
    for path in ("/kubepods", "/kubepods.slice"):
        if path in directories and roots and roots <= directories.keys() and path not in roots:
            cause = DriftCause(DriftReason.LEFT_HIERARCHY, Confidence.LIKELY, {"path": path})
            yield CheckedValue(CgroupLevel.KUBEPODS, "", DIRECTORY, None, path, cause=cause)


def _pod_path(prediction: Prediction, measured: Observed) -> str | None:
    """Where the pod is: above one of its containers, or where its UID is in the name."""
    for read in measured.containers.values():
        if read.path is not None:
            above = pod_directory(read.path)
            if above in measured.directories or not measured.directories:
                return above
    uid = posixpath.basename(prediction.cgroup.path).rpartition("pod")[2].removesuffix(".slice")
    spelled = {f"pod{uid}", f"pod{uid.replace('_', '-')}", f"pod{uid.replace('-', '_')}"}
    for path in measured.directories:
        name = posixpath.basename(path).removesuffix(".slice")
        if name in spelled or any(name.endswith(f"-{one}") for one in spelled):
            return path
    return next((pod_directory(one.path) for one in measured.containers.values() if one.path), None)


def _directories(prediction: Prediction, pod_path: str, causes: DriftCauses) -> Iterator[CheckedValue]:
    """The class directory, and the pod's below it; what is wrong above is not said again below."""
    above, name = posixpath.split(pod_path)
    computed = prediction.class_cgroup_path
    if above != computed:
        cause = causes.of_directory(pod_path)
        yield CheckedValue(CgroupLevel.CLASS, "", DIRECTORY, computed, above, drift=True, cause=cause)
        return
    yield CheckedValue(CgroupLevel.CLASS, "", DIRECTORY, computed, above)
    wanted = posixpath.basename(prediction.cgroup.path)
    yield CheckedValue(CgroupLevel.POD, "", DIRECTORY, wanted, name, drift=wanted != name)


def _of_container(
    container: ContainerPrediction,
    read: ObservedContainer,
    pod_path: str | None,
    causes: DriftCauses,
    *,
    is_elsewhere: bool,
) -> Iterator[CheckedValue]:
    """Of one container; where its pod is `is_elsewhere`, its directory is too, and that is said there."""
    if read.path is not None and pod_path is not None and not is_elsewhere:
        computed, measured = container.cgroup.path, read.path
        if posixpath.dirname(measured) == pod_path:
            computed, measured = posixpath.basename(computed), posixpath.basename(measured)
        drift = computed != measured
        cause = causes.of_container_directory(computed, measured) if drift else None
        yield CheckedValue(CgroupLevel.CONTAINER, container.name, DIRECTORY, computed, measured, drift, cause)
    yield from _scores(container, read, causes)
    cause_of = partial(causes.of_file, CgroupLevel.CONTAINER, container.name, inner=read.path is None)
    yield from _files(CgroupLevel.CONTAINER, container.name, container.cgroup.files, read.files, cause_of)


def _scores(
    container: ContainerPrediction, read: ObservedContainer, causes: DriftCauses
) -> Iterator[CheckedValue]:
    """The oom_score_adj of each process, those with the same value together.

    Without a computed value (the node's memory is not known) its range decides.
    """
    lowest, highest = container.oom_score_adj_range
    computed = str(lowest) if lowest == highest else f"{lowest}..{highest}"
    by_value: dict[int, list[ObservedProcess]] = {}
    for process in read.processes:
        by_value.setdefault(process.oom_score_adj, []).append(process)
    if not by_value and read.beside is not None:
        by_value[read.beside] = []
    for value, processes in by_value.items():
        drift = not lowest <= value <= highest
        cause = causes.of_adj(container, value, read) if drift else None
        yield CheckedValue(
            CgroupLevel.CONTAINER,
            container.name,
            OOM_SCORE_ADJ,
            computed,
            str(value),
            drift,
            cause,
            tuple(processes),
        )


def _files(
    level: CgroupLevel,
    container: str,
    computed: Files,
    measured: Files,
    cause_of: Callable[[str, str], DriftCause | None],
) -> Iterator[CheckedValue]:
    for name, wanted in computed.items():
        text = measured.get(name)
        if text is None:
            yield CheckedValue(level, container, name, wanted, None)
            continue
        found = file_value(text)
        drift = found != wanted
        cause = cause_of(name, found) if drift else None
        yield CheckedValue(level, container, name, wanted, found, drift, cause)
    for name, default in _UNPROTECTED.items():
        found = file_value(measured.get(name, default))
        if name not in computed and found not in {"0", "max"}:
            cause = DriftCause(DriftReason.MEMORY_QOS_LEFT, Confidence.LIKELY)
            yield CheckedValue(level, container, name, default, found, cause=cause)


def drifted(found: Iterable[Verified]) -> bool:
    """Whether anything differs."""
    return any(one.drift for one in found)
