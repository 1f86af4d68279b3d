"""What another release or setting of a node changes for its pods, which stay as they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kubectl_qos.edit.effects import Effects, FileChange, effects_of
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.usage import PodKey, PodUsage
from kubectl_qos.qos.cgroup_tree import CgroupTree, Directory, Level, cgroup_tree
from kubectl_qos.qos.prediction import predict
from kubectl_qos.qos.ranking import rank_node


@dataclass(frozen=True, slots=True)
class Comparison:
    """One node before and after: its pods in their order, and the cgroups above them.

    `node_files` are of kubepods, the classes and the reserved cgroups, which count every pod of the node.
    """

    before: NodeSetup
    after: NodeSetup
    pods: tuple[Effects, ...]
    node_files: tuple[FileChange, ...]


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
    old, new = (
        [predict(pod, setup.node, kubelet=setup.kubelet, release=setup.release) for pod in pods]
        for setup in (before, after)
    )
    ranking_before = rank_node([one.pod for one in old], before.node, before.release, usage)
    ranking_after = rank_node([one.pod for one in new], after.node, after.release, usage)
    return Comparison(
        before,
        after,
        tuple(effects_of(was, now, ranking_before, ranking_after) for was, now in zip(old, new, strict=True)),
        tuple(_node_files(cgroup_tree(pods, before), cgroup_tree(pods, after))),
    )


_ABOVE_PODS = (Level.RESERVED, Level.KUBEPODS, Level.CLASS)


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


_NOWHERE = Directory("", Level.KUBEPODS, {})


def _above_pods(tree: CgroupTree) -> dict[tuple[object, ...], Directory]:
    return {
        (found.level, found.qos, found.path if found.level is Level.RESERVED else ""): found
        for found in tree.walk()
        if found.level in _ABOVE_PODS
    }
