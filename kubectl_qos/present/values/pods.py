"""One pod in full, `explain`, and the cgroups of a node, `tree`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubectl_qos.edit.preview import ContainerEffects, Effects
from kubectl_qos.k8s.allocation import RESIZE_IN_PROGRESS, desired_pod, resize_condition
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.usage import MemoryParts, Psi
from kubectl_qos.present.explanation import Explanation, desired_values
from kubectl_qos.present.tree import MOUNT
from kubectl_qos.present.values import TimedDocument, Values, camel, copied, plain
from kubectl_qos.present.values.changes import EditValues, RankValues, edit_values, rank_values
from kubectl_qos.qos.cgroup.tree import CgroupLevel, CgroupTree, Directory
from kubectl_qos.qos.prediction import CgroupPrediction, ContainerPrediction
from kubectl_qos.qos.qos_class import ClassStepKind, QosClass, steps_by_class
from kubectl_qos.qos.ranking import ContainerKind
from kubectl_qos.qos.reason import Reason


class ReasonValues(Values, frozen=True, kw_only=True):
    """Why a value is what it is: the rule with its inputs, and where upstream has it."""

    rule: str
    result: Any
    inputs: dict[str, Any]
    source: str
    children: tuple[ReasonValues, ...]


class ClassStepValues(Values, frozen=True):
    """One change on the way to a class; `container` is null if any container will do."""

    action: ClassStepKind
    container: str | None
    resource: str | None
    value: str | None


class CgroupValues(Values, frozen=True):
    """A directory below the mount, and the contents of its files."""

    path: str
    files: dict[str, str]


class ContainerValues(Values, frozen=True, kw_only=True):
    """A container; without the node's memory only a range of its oom_score_adj is known.

    `memoryEvents` are counts of memory.events, `pressure` is that of the container's cgroup.
    """

    name: str
    type: ContainerKind
    oom_score_adj: int | None
    oom_score_adj_range: tuple[int, int] | None
    oom_score_adj_reason: ReasonValues | None
    cgroup: CgroupValues
    process_cgroup: CgroupValues | None
    memory: MemoryParts | None
    memory_events: dict[str, int] | None
    pressure: dict[str, Psi | None] | None


class ResizeValues(Values, frozen=True, kw_only=True):
    """An unfinished resize: its status in the kubelet's word, and the values in force and desired.

    `containers` and `rank` compare now with the time after the resize and the restarts that it needs.
    """

    status: str
    message: str | None
    changes: tuple[EditValues, ...]
    containers: tuple[ContainerEffects, ...]
    rank: RankValues


class PodExplanationValues(TimedDocument, frozen=True, kw_only=True, tag="PodExplanation"):
    """A pod, or the pod of a workload's template: `explain`.

    `classSteps` are the steps to each class. `assumed` has the inputs that were neither measured nor
    configured, `assumedFrom` the evidence for some of them. `pressure` has the pod's and its node's, if the
    kubelet reports them; `tmpfsVolumeBytes` is the usage of volumes with medium Memory.
    """

    namespace: str | None
    pod: str
    node: str | None
    release: str
    qos_class: QosClass
    computed_class: QosClass
    class_reason: ReasonValues
    class_steps: dict[str, tuple[ClassStepValues, ...]]
    rank: int | None
    oom_score: int | None
    eviction_rank: int | None
    critical: bool
    node_critical: bool
    static: bool
    containers: tuple[ContainerValues, ...]
    cgroup: CgroupValues
    resize: ResizeValues | None
    pressure: dict[str, dict[str, Psi | None]]
    tmpfs_volume_bytes: dict[str, int]
    assumed: dict[str, Any]
    assumed_from: dict[str, str]


class DirectoryValues(Values, frozen=True):
    """A directory of the tree with its own files; parents come first, and paths are below the mount."""

    path: str
    level: CgroupLevel
    qos_class: QosClass | None
    namespace: str | None
    pod: str | None
    container: str | None
    files: dict[str, str]


class CgroupTreeValues(TimedDocument, frozen=True, kw_only=True, tag="CgroupTree"):
    """The cgroups of a node, or those on the path to one pod: `tree`."""

    node: str | None
    release: str
    cgroup_version: int
    cgroup_driver: str
    mount: str
    directories: tuple[DirectoryValues, ...]
    notes: tuple[str, ...]


def explanation_values(explanation: Explanation) -> PodExplanationValues:
    """Return an explanation without its sentences."""
    prediction, row = explanation.facts.prediction, explanation.facts.row
    pod, node = prediction.pod, prediction.setup.node
    return copied(
        PodExplanationValues,
        prediction,
        namespace=pod.namespace or None,
        pod=pod.title,
        node=node.name or None,
        release=str(prediction.setup.release),
        class_reason=_reason_values(prediction.class_reason),
        class_steps={
            target.value: tuple(
                ClassStepValues(
                    step.kind,
                    step.owner or None,
                    step.resource or None,
                    None if step.value is None else str(step.value),
                )
                for step in steps
            )
            for target, steps in steps_by_class(desired_pod(pod), prediction.setup.release).items()
        },
        rank=row.rank if row is not None else None,
        oom_score=row.score if row is not None else None,
        eviction_rank=row.eviction_rank if row is not None else None,
        static=prediction.static or prediction.mirror,
        containers=tuple(_container_values(container, explanation) for container in prediction.containers),
        cgroup=_cgroup_values(prediction.cgroup),
        resize=_resize_values(pod, explanation.facts.resize),
        pressure={resource: waits._asdict() for resource, waits in explanation.facts.pressure.items()},
        tmpfs_volume_bytes=dict(explanation.facts.tmpfs),
        assumed={camel(assumption.name): plain(assumption.value) for assumption in prediction.assumptions},
        assumed_from={camel(used.name): used.basis for used in prediction.assumptions if used.basis},
    )


def _resize_values(pod: Pod, effects: Effects | None) -> ResizeValues | None:
    if effects is None:
        return None
    condition = resize_condition(pod)
    status = "Proposed"
    if condition is not None:
        status = condition.reason or ("InProgress" if condition.type == RESIZE_IN_PROGRESS else "Pending")
    return ResizeValues(
        status=status,
        message=condition.message or None if condition is not None else None,
        changes=tuple(edit_values(edit, now) for edit, now in desired_values(pod)),
        containers=effects.containers,
        rank=rank_values(effects),
    )


def _reason_values(reason: Reason) -> ReasonValues:
    return ReasonValues(
        rule=reason.rule.value,
        result=plain(reason.result),
        inputs={camel(name): plain(value) for name, value in reason.inputs.items()},
        source=reason.rule.source,
        children=tuple(map(_reason_values, reason.children)),
    )


def _container_values(container: ContainerPrediction, explanation: Explanation) -> ContainerValues:
    reason, events = container.oom_score_adj_reason, explanation.facts.events.get(container.name)
    used = explanation.facts.usage.of(container.name) if explanation.facts.usage is not None else None
    return copied(
        ContainerValues,
        container,
        type=container.kind,
        oom_score_adj_reason=None if reason is None else _reason_values(reason),
        cgroup=_cgroup_values(container.cgroup),
        process_cgroup=_cgroup_values(container.process_cgroup) if container.has_process_cgroup else None,
        memory=used.parts if used is not None else None,
        memory_events=dict(events) if events is not None else None,
        pressure=used.pressure._asdict() if used is not None and used.pressure is not None else None,
    )


def _cgroup_values(cgroup: CgroupPrediction) -> CgroupValues:
    return CgroupValues(cgroup.path, dict(cgroup.files))


def tree_values(tree: CgroupTree, notes: Sequence[str]) -> CgroupTreeValues:
    """Return a tree with its directories in a flat list."""
    setup = tree.setup
    return CgroupTreeValues(
        node=setup.node.name or None,
        release=str(setup.release),
        cgroup_version=setup.node.cgroup_version,
        cgroup_driver=setup.kubelet.cgroup_driver.value,
        mount=MOUNT,
        directories=tuple(map(_directory_values, tree.walk())),
        notes=tuple(notes),
    )


def _directory_values(directory: Directory) -> DirectoryValues:
    pod, container = directory.pod, directory.container
    return DirectoryValues(
        directory.path,
        directory.level,
        directory.qos,
        pod.namespace or None if pod is not None else None,
        pod.title if pod is not None else None,
        container.name if container is not None else None,
        dict(directory.files),
    )
