"""What another release or setting of a node changes for its pods, which stay as they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from kubectl_qos.edit.preview import Effects, FileChange, build_effects
from kubectl_qos.k8s.defaulting import with_system_priority
from kubectl_qos.k8s.kinds import belongs_to
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.objects import ContainerStatus, Pod
from kubectl_qos.k8s.releases import Change
from kubectl_qos.k8s.usage import PodKey, PodUsage
from kubectl_qos.k8s.validation import kubelet_refusals
from kubectl_qos.qos.cgroup.tree import CgroupLevel, CgroupTree, Directory, cgroup_tree
from kubectl_qos.qos.prediction import Prediction, predict
from kubectl_qos.qos.ranking import rank_node


@dataclass(frozen=True, slots=True)
class Comparison:
    """One node before and after: its pods in their order, and the cgroups above them.

    `node_files` are of kubepods, the classes and the reserved cgroups, which count every pod of the node.
    `refusals` are why a kubelet would not start with the new configuration, in its own words.
    """

    before: NodeSetup
    after: NodeSetup
    pods: tuple[Effects, ...]
    node_files: tuple[FileChange, ...]
    refusals: tuple[str, ...] = ()

    @property
    def refuses_cgroup_v1(self) -> bool:
        """Whether the new kubelet, unlike the old one, does not start on cgroup v1 by itself."""
        return _refuses_v1(self.after) and not _refuses_v1(self.before)

    def of(self, pod: Pod) -> Effects:
        """The effects on one pod; files may hold workloads of one name and several kinds."""
        return next(
            one
            for one in self.pods
            if one.before.pod.kind == pod.kind and one.before.pod.metadata == pod.metadata
        )


def compare(
    pods: Iterable[Pod],
    before: NodeSetup,
    after: NodeSetup,
    usage: Mapping[PodKey, PodUsage] | None = None,
) -> Comparison:
    """The pods of one node with one setup and with the other.

    Args:
        pods: every pod that is known of the node, as stored or written.
        before: the node as it is.
        after: the node as it would be (k8s/settings.py makes it).
        usage: memory by pod, for the ranks; taken to be the same before and after.
    """
    pods = list(pods)
    old = _predictions(pods, before)
    new = _predictions(map(_without_ids, pods) if _other_runtime(before, after) else pods, after)
    ranking_before = rank_node([one.pod for one in old], before.node, before.release, usage)
    ranking_after = rank_node([one.pod for one in new], after.node, after.release, usage)
    return Comparison(
        before,
        after,
        tuple(build_effects(zip(old, new, strict=True), ranking_before, ranking_after)),
        tuple(_node_files(cgroup_tree(pods, before), cgroup_tree(pods, after))),
        tuple(one for one in _refusals(after) if one not in _refusals(before)),
    )


def _predictions(pods: Iterable[Pod], setup: NodeSetup) -> list[Prediction]:
    return [predict(pod, setup.node, kubelet=setup.kubelet, release=setup.release) for pod in pods]


def _refusals(setup: NodeSetup) -> list[str]:
    return kubelet_refusals(setup.kubelet, setup.release, cgroup_version=setup.node.cgroup_version)


def _refuses_v1(setup: NodeSetup) -> bool:
    return setup.node.cgroup_version == 1 and setup.release.has(Change.CGROUP_V1_IS_REFUSED)


def _other_runtime(before: NodeSetup, after: NodeSetup) -> bool:
    names = {setup.node.runtime.partition(":")[0] for setup in (before, after)}
    return len(names) > 1


def _without_ids(pod: Pod) -> Pod:
    """Another runtime makes the containers anew, under ids that nobody knows yet."""

    def without(statuses: tuple[ContainerStatus, ...] | None) -> tuple[ContainerStatus, ...] | None:
        return statuses and tuple(msgspec.structs.replace(one, container_id="") for one in statuses)

    status = msgspec.structs.replace(
        pod.status,
        container_statuses=without(pod.status.container_statuses),
        init_container_statuses=without(pod.status.init_container_statuses),
        ephemeral_container_statuses=without(pod.status.ephemeral_container_statuses),
    )
    return msgspec.structs.replace(pod, status=status)


_ABOVE_PODS = (CgroupLevel.RESERVED, CgroupLevel.KUBEPODS, CgroupLevel.CLASS)


def _node_files(before: CgroupTree, after: CgroupTree) -> Iterable[FileChange]:
    """The files above the pods that differ, by level and class: another driver names directories anew."""
    old, new = _above_pods(before), _above_pods(after)
    for key in {**old, **new}:
        was, now = old.get(key), new.get(key)
        files_before = was.files if was is not None else {}
        files_after = now.files if now is not None else {}
        path = (now or was or _NOWHERE).path
        for name in {**files_before, **files_after}:
            if files_before.get(name) != files_after.get(name):
                yield FileChange(path, name, files_before.get(name), files_after.get(name))


_NOWHERE = Directory("", CgroupLevel.KUBEPODS, {})


def _above_pods(tree: CgroupTree) -> dict[tuple[object, ...], Directory]:
    return {
        (found.level, found.qos, found.path if found.level is CgroupLevel.RESERVED else ""): found
        for found in tree.walk()
        if found.level in _ABOVE_PODS
    }


class WhatIf(NamedTuple):
    """The pods with the changes, and which of those are about no pod of the node."""

    pods: tuple[Pod, ...]
    unused: tuple[Pod, ...]


def with_manifests(pods: Iterable[Pod], changes: Sequence[Pod]) -> WhatIf:
    """Each pod as the change for it has it: one of its own name, or the template of its workload.

    A change without a namespace is about any. A pod keeps its name, node and statuses, so its usage too; its
    class is worked out anew. The number of a PriorityClass that only a server knows is kept where the class
    stays, and is 0 for another.
    """
    used: set[int] = set()
    found = []
    for pod in pods:
        place = next((place for place, change in enumerate(changes) if _is_about(change, pod)), None)
        if place is None or pod.is_terminal:
            found.append(pod)
        else:
            used.add(place)
            found.append(_changed(pod, changes[place]))
    return WhatIf(tuple(found), tuple(one for place, one in enumerate(changes) if place not in used))


def _is_about(change: Pod, pod: Pod) -> bool:
    if change.namespace and pod.namespace and change.namespace != pod.namespace:
        return False
    return belongs_to(pod, change.kind, change.name)


def _changed(pod: Pod, change: Pod) -> Pod:
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
    status = msgspec.structs.replace(pod.status, qos_class="")
    return with_system_priority(msgspec.structs.replace(pod, metadata=metadata, spec=spec, status=status))
