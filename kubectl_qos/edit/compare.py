"""What another release or other settings of a node change for its pods; and pods with changed manifests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from kubectl_qos.edit.preview import Effects, FileChange, as_recreated, build_effects, file_changes
from kubectl_qos.k8s.defaulting import with_system_priority
from kubectl_qos.k8s.kinds import belongs_to
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.objects import ContainerStatus, Pod
from kubectl_qos.k8s.releases import Change
from kubectl_qos.k8s.usage import PodKey, PodUsage
from kubectl_qos.k8s.validation import kubelet_refusals
from kubectl_qos.qos.cgroup.tree import CgroupLevel, CgroupTree, Directory, cgroup_tree
from kubectl_qos.qos.prediction import Prediction, predict_running
from kubectl_qos.qos.ranking import rank_node


@dataclass(frozen=True, slots=True)
class Comparison:
    """One node before and after: its pods, and the cgroups above them.

    `node_files` are those of kubepods, the classes and the reserved cgroups, which depend on every pod of the
    node. `refusals` are the kubelet's own words where it would not start with the new configuration.
    """

    before: NodeSetup
    after: NodeSetup
    pods: tuple[Effects, ...]
    node_files: tuple[FileChange, ...]
    refusals: tuple[str, ...] = ()

    @property
    def refuses_cgroup_v1(self) -> bool:
        """Whether the new kubelet, unlike the old one, does not start on cgroup v1 by default."""
        return _refuses_v1(self.after) and not _refuses_v1(self.before)

    def of(self, pod: Pod) -> Effects:
        """The effects on one pod; files may have workloads of one name and several kinds."""
        return next(
            effects
            for effects in self.pods
            if effects.before.pod.kind == pod.kind and effects.before.pod.metadata == pod.metadata
        )


def compare(
    pods: Iterable[Pod], before: NodeSetup, after: NodeSetup, usage: Mapping[PodKey, PodUsage] | None = None
) -> Comparison:
    """The pods of one node as it is, and as it would be (see k8s/node_overrides.py).

    `pods` are every known pod of the node, as stored or written. Their usage is assumed to stay.
    """
    pods = list(pods)
    runtimes = {setup.node.runtime.partition(":")[0] for setup in (before, after)}
    old = _predict_all(pods, before)
    new = _predict_all(map(_without_ids, pods) if len(runtimes) > 1 else pods, after)
    ranking_before = rank_node([prediction.pod for prediction in old], before.node, before.release, usage)
    ranking_after = rank_node([prediction.pod for prediction in new], after.node, after.release, usage)
    old_refusals = _refusals(before)
    return Comparison(
        before,
        after,
        tuple(build_effects(zip(old, new, strict=True), ranking_before, ranking_after)),
        tuple(_node_files(cgroup_tree(pods, before), cgroup_tree(pods, after))),
        tuple(refusal for refusal in _refusals(after) if refusal not in old_refusals),
    )


def _predict_all(pods: Iterable[Pod], setup: NodeSetup) -> list[Prediction]:
    return [predict_running(pod, setup) for pod in pods]


def _refusals(setup: NodeSetup) -> list[str]:
    return kubelet_refusals(setup.kubelet, setup.release, cgroup_version=setup.node.cgroup_version)


def _refuses_v1(setup: NodeSetup) -> bool:
    return setup.node.cgroup_version == 1 and setup.release.has(Change.CGROUP_V1_IS_REFUSED)


def _without_ids(pod: Pod) -> Pod:
    """Another runtime recreates the containers, with ids that are not known yet."""
    status = pod.status
    for name in ("container_statuses", "init_container_statuses", "ephemeral_container_statuses"):
        statuses: tuple[ContainerStatus, ...] = getattr(status, name) or ()
        without = tuple(msgspec.structs.replace(status, container_id="") for status in statuses)
        status = msgspec.structs.replace(status, **{name: without})
    return msgspec.structs.replace(pod, status=status)


_ABOVE_PODS: Final = (CgroupLevel.RESERVED, CgroupLevel.KUBEPODS, CgroupLevel.CLASS)


def _node_files(before: CgroupTree, after: CgroupTree) -> Iterable[FileChange]:
    """The differing files above the pods, matched by level and class: another driver renames directories."""
    old, new = _above_pods(before), _above_pods(after)
    for key in {**old, **new}:
        files_before = old[key].files if key in old else {}
        files_after = new[key].files if key in new else {}
        path = (new.get(key) or old[key]).path
        yield from file_changes(path, files_before, files_after)


def _above_pods(tree: CgroupTree) -> dict[tuple[object, ...], Directory]:
    above: dict[tuple[object, ...], Directory] = {}
    for directory in tree.walk():
        if directory.level in _ABOVE_PODS:
            path = directory.path if directory.level is CgroupLevel.RESERVED else ""
            above[directory.level, directory.qos, path] = directory
    return above


class WhatIf(NamedTuple):
    """Pods with changed manifests, and the manifests that match no pod."""

    pods: tuple[Pod, ...]
    unused: tuple[Pod, ...]


def with_manifests(pods: Iterable[Pod], changes: Sequence[Pod]) -> WhatIf:
    """The pods, each changed by the manifest of its own name or by the template of its workload.

    A manifest without a namespace matches in any. A pod keeps its name, node and statuses, and so its usage;
    its class is computed again. The number of a PriorityClass that only a server knows is kept with the
    class, and 0 for another one.
    """
    used: set[int] = set()
    result = []
    for pod in pods:
        index = next((index for index, change in enumerate(changes) if _matches(change, pod)), None)
        if index is None or pod.is_terminal:
            result.append(pod)
        else:
            used.add(index)
            result.append(_with_manifest(pod, changes[index]))
    return WhatIf(tuple(result), tuple(change for index, change in enumerate(changes) if index not in used))


def _matches(change: Pod, pod: Pod) -> bool:
    if change.namespace and pod.namespace and change.namespace != pod.namespace:
        return False
    return belongs_to(pod, change.kind, change.name)


def _with_manifest(pod: Pod, change: Pod) -> Pod:
    spec = change.spec
    priority = spec.priority
    if priority is None and spec.priority_class_name == pod.spec.priority_class_name:
        priority = pod.spec.priority
    spec = msgspec.structs.replace(
        spec,
        node_name=pod.spec.node_name,
        priority=priority,
        ephemeral_containers=pod.spec.ephemeral_containers,
    )
    metadata = msgspec.structs.replace(pod.metadata, labels=change.metadata.labels or pod.metadata.labels)
    changed = msgspec.structs.replace(pod, metadata=metadata, spec=spec)
    return with_system_priority(as_recreated(changed))
