"""What may have caused drift: a difference between what was computed of a pod and what was read.

Causes are mostly found by trial: the same pod is predicted with another setting, an older release or the
resources in force, and where that gives the measured value, it is likely.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Final, NamedTuple

import msgspec

from kubectl_qos.analysis.observed import Observed, ObservedContainer
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.allocation import resize_condition
from kubectl_qos.k8s.defaulting import with_containers
from kubectl_qos.k8s.kubelet import NodeSetup, Origin
from kubectl_qos.k8s.node_overrides import FEATURE_GATES, FIELDS, NodeOverride, apply_overrides
from kubectl_qos.k8s.objects import Container, Pod
from kubectl_qos.qos.cgroup.memory import MEMORY_HIGH, MEMORY_LOW, MEMORY_MIN
from kubectl_qos.qos.cgroup.names import class_name, kubepods_name, literal
from kubectl_qos.qos.cgroup.pod import UPDATED_IN_PLACE
from kubectl_qos.qos.cgroup.tree import CgroupLevel, Directory
from kubectl_qos.qos.cgroup.values import UNWRITTEN
from kubectl_qos.qos.oom_score import BEST_EFFORT_ADJ, LOWEST_BURSTABLE_ADJ, least_request
from kubectl_qos.qos.prediction import ContainerPrediction, Prediction, predict
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.reason import Confidence


class DriftReason(StrEnum):
    """What may have caused a difference."""

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
    """One cause, how sure it is, and the facts that its sentence needs."""

    reason: DriftReason
    confidence: Confidence
    inputs: Mapping[str, object] = field(default_factory=dict)


_SETTINGS: Final[tuple[tuple[str, ...], ...]] = (
    *(("cgroupDriver=cgroupfs",), ("cgroupDriver=systemd",)),
    *(("ociRuntime=runc-1.2",), ("ociRuntime=runc",)),
    *(("cpuManagerPolicy=static",), ("cpuManagerPolicy=none",)),
    *(("cpuCFSQuota=false",), ("cpuCFSQuota=true",)),
    *(("singleProcessOOMKill=true",), ("singleProcessOOMKill=false",)),
    ("ociRuntime=crun-1.22",),
    *(("memorySwap.swapBehavior=NoSwap",), ("memorySwap.swapBehavior=LimitedSwap",)),
    *(("featureGates.MemoryQoS=false",), ("featureGates.MemoryQoS=true",)),
    ("featureGates.MemoryQoS=true", "memoryReservationPolicy=TieredReservation"),
    ("featureGates.MemoryQoS=true", "memoryReservationPolicy=None"),
    *(("pageSize=16Ki",), ("pageSize=64Ki",)),
)
"""The settings to try, the most specific first."""

_RELEASES_BACK: Final = 4
_PROTECTION: Final = frozenset({MEMORY_MIN, MEMORY_LOW, MEMORY_HIGH})
KERNEL_DEFAULTS: Final = {**UNWRITTEN, "cpu.weight": "100"}
SUMS: Final = frozenset({"cpu.weight", "cpu/cpu.shares", MEMORY_MIN, MEMORY_LOW, "memory.max"})
"""The files of kubepods and the classes whose values count every pod of the node."""


class _Alternative(NamedTuple):
    prediction: Prediction
    cause: DriftCause


class CauseFinder:
    """Finds causes of drift for one pod; alternatives are predicted when the first value differs."""

    def __init__(self, prediction: Prediction, measured: Observed) -> None:
        self._prediction = prediction
        self._measured = measured

    def for_file(
        self, level: CgroupLevel, container: str, name: str, measured: str, *, inner: bool = False
    ) -> DriftCause | None:
        """Of a cgroup file's content; `inner` is whether it was read from the container's own root."""
        setup = self._prediction.setup
        if name in _PROTECTION and _knows_gates(setup) and measured not in {"0", "max"}:
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
        self, container: ContainerPrediction, value: int, read: ObservedContainer
    ) -> DriftCause | None:
        """Of an oom_score_adj.

        The runtime gives each process that it starts the container's value, and children inherit it; so
        where another process has the computed one, this one, or one above it, wrote its own. Any process may
        raise it (fs/proc/base.c, __set_oom_adj).
        """
        computed = container.oom_score_adj
        inputs = {"raised": computed is not None and value > computed}
        others = {process.oom_score_adj for process in read.processes} | {read.beside}
        if computed is not None and computed in others:
            return DriftCause(DriftReason.OWN_ADJ, Confidence.CERTAIN, inputs)
        is_from_runtime = read.beside == value
        if (
            self._was_changed
            and self._prediction.qos_class is QosClass.BURSTABLE
            and LOWEST_BURSTABLE_ADJ <= value < BEST_EFFORT_ADJ
        ):
            return DriftCause(DriftReason.BEFORE_RESIZE, Confidence.LIKELY, self._request_of(value))
        for other in self._alternatives:
            if other.prediction.container(container.name).oom_score_adj == value:
                return other.cause
        may_be_restricted = is_from_runtime or read.beside is None
        if computed is not None and computed < 0 and value > computed and may_be_restricted:
            setting = f"runtimeOOMScoreAdj={value}"
            return _setting_cause(self._prediction.setup, (setting,), Confidence.POSSIBLE)
        if is_from_runtime:
            return None
        return DriftCause(DriftReason.OWN_ADJ, Confidence.POSSIBLE, inputs)

    def for_directory(self, pod_path: str) -> DriftCause | None:
        """Of a pod in another place of the tree."""
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

    @property
    def _was_changed(self) -> bool:
        """Whether the pod's spec was changed since it was created: by a resize, if by nothing smaller."""
        return self._prediction.pod.metadata.generation > 1

    @cached_property
    def _alternatives(self) -> tuple[_Alternative, ...]:
        return tuple(self._predict_alternatives())

    def _predict_alternatives(self) -> Iterator[_Alternative]:
        pod, setup = self._prediction.pod, self._prediction.setup
        actuated = _with_actuated_resources(pod)
        if actuated is not None:
            inputs = {"condition": _resize_condition(pod)}
            cause = DriftCause(DriftReason.RESIZE_UNDER_WAY, Confidence.LIKELY, inputs)
            yield _Alternative(_predict(actuated, setup), cause)
        runtime_class = pod.spec.runtime_class_name
        key = f"ociRuntime.{runtime_class}=" if runtime_class else "ociRuntime="
        unlikely = "runc" if setup.node.oci_runtime.name == "crun" else "crun"
        for settings in sorted(_SETTINGS, key=lambda alternative: unlikely in alternative[0]):
            texts = tuple(text.replace("ociRuntime=", key) for text in settings)
            other = _with_settings(setup, texts)
            if other is not None:
                yield _Alternative(_predict(pod, other), _setting_cause(setup, texts))
        for back in range(1, _RELEASES_BACK + 1):
            release = f"1.{setup.release.minor - back}"
            other = _with_settings(setup, (), release)
            if other is not None:
                cause = DriftCause(DriftReason.OLDER_RELEASE, Confidence.LIKELY, {"release": release})
                yield _Alternative(_predict(pod, other), cause)


def cause_above(setup: NodeSetup, directory: Directory, name: str, _measured: str) -> DriftCause | None:
    """Of a file of kubepods or a class: what the kubelet writes there is a minute old at most."""
    if name in _PROTECTION and _knows_gates(setup) and directory.files.get(name) == "0":
        return DriftCause(DriftReason.MEMORY_QOS_LEFT, Confidence.LIKELY)
    if name in SUMS and directory.level is CgroupLevel.CLASS:
        return DriftCause(DriftReason.LAGS, Confidence.POSSIBLE)
    return None


def _knows_gates(setup: NodeSetup) -> bool:
    return setup.kubelet.origin("feature_gates") is not Origin.ASSUMED


def _with_actuated_resources(pod: Pod) -> Pod | None:
    """The pod with the resources that its status says are in force, None where they are those of its spec.

    Source: status.containerStatuses[].resources, what is actuated (KEP-1287).
    """
    statuses = pod.status.every_container
    actuated = {status.name: status.resources for status in statuses if status.resources is not None}

    def change(container: Container) -> Container:
        resources = actuated.get(container.name)
        return container if resources is None else msgspec.structs.replace(container, resources=resources)

    spec = with_containers(pod.spec, change)
    return msgspec.structs.replace(pod, spec=spec) if spec != pod.spec else None


def _resize_condition(pod: Pod) -> str:
    """PodResizePending or PodResizeInProgress with its reason, empty without either."""
    condition = resize_condition(pod)
    return f"{condition.type} {condition.reason}".strip() if condition is not None else ""


def _predict(pod: Pod, setup: NodeSetup) -> Prediction:
    return predict(pod, setup.node, kubelet=setup.kubelet, release=setup.release)


def _with_settings(setup: NodeSetup, texts: tuple[str, ...], release: str | None = None) -> NodeSetup | None:
    """The node with these settings, None where its release has no such setting."""
    try:
        return apply_overrides(setup, [NodeOverride.parse(text) for text in texts], release)
    except QosError:
        return None


def _setting_cause(
    setup: NodeSetup, texts: tuple[str, ...], confidence: Confidence = Confidence.LIKELY
) -> DriftCause:
    """Another setting: the real one where ours was assumed, else the one when the pod was created."""
    keys = [text.partition("=")[0] for text in texts]
    names = ["ociRuntime" if key.startswith("ociRuntime.") else key for key in keys]
    fields = ["feature_gates" if name.startswith(FEATURE_GATES) else FIELDS[name].name for name in names]
    is_known = any(setup.kubelet.origin(field) is not Origin.ASSUMED for field in fields)
    is_of_node = any(name in {"ociRuntime", "pageSize", "runtimeOOMScoreAdj"} for name in names)
    inputs = {"settings": texts, "assumed": is_of_node or not is_known}
    return DriftCause(DriftReason.SETTING, confidence, inputs)
