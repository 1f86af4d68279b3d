"""Versions of Kubernetes in words: which are supported, what runs where, what is assumed for others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kubectl_qos.edit.compare import Comparison
from kubectl_qos.edit.preview import Effects, FileChange
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.node_overrides import NodeOverride
from kubectl_qos.k8s.releases import SUPPORTED_MINORS, Release
from kubectl_qos.present.diff import EffectSection, ValueChange, effect_parts, file_parts
from kubectl_qos.present.format import NONE, UNKNOWN, escape
from kubectl_qos.present.output import lines
from kubectl_qos.present.pod_columns import Align
from kubectl_qos.qos.ranking import ContainerScore, RankedPod

OLDEST: Final = f"1.{SUPPORTED_MINORS[0]}"
NEWEST: Final = f"1.{SUPPORTED_MINORS[-1]}"
_MINOR: Final = re.compile(r"v?(1\.(\d{1,4}))(?!\d)", re.ASCII)


def minor_version(version: str) -> str:
    """`1.36` of `v1.36.2-eks-1`; what is no version of Kubernetes stays as it is."""
    found = _MINOR.match(version)
    return found[1] if found else version


def count_versions(names: Iterable[str]) -> dict[str, int]:
    """How often there is each name, in the order of their numbers."""
    return dict(sorted(Counter(names).items(), key=lambda pair: _in_order(pair[0])))


def version_counts_text(counts: Mapping[str, int], what: str = "node") -> str:
    """`1.33 (12 nodes), 1.34 (1 node)`."""
    return ", ".join(
        f"{name or 'unknown'} ({count:,} {what}{'' if count == 1 else 's'})" for name, count in counts.items()
    )


def range_notes(server: str, kubelets: Iterable[str]) -> Iterator[str]:
    """What there is to know where a server or kubelets are outside of the supported range.

    Predictions follow the release of each pod's kubelet; that of the server stands in for one not known.
    """
    for who, version in (("the server", server), *(("a kubelet", one) for one in kubelets)):
        minor = minor_version(version)
        if version and minor not in _SUPPORTED:
            yield f"{who} is {minor}, outside of {OLDEST} to {NEWEST}: {_instead(minor)}"


_SUPPORTED: Final = frozenset(f"1.{minor}" for minor in SUPPORTED_MINORS)


def _instead(minor: str) -> str:
    try:
        release = Release.of(minor)
    except InputError:
        return "it is no release of Kubernetes that is known"
    if release.assumed:
        return f"the rules of {release} are assumed"
    return f"the rules of {release} are used, and were not compared with Kubernetes' own code"


def _in_order(name: str) -> list[tuple[int, str]]:
    """Numbers in a name compared as such."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


ARROW = "→"
_HEADERS = ("RANK", "NAMESPACE", "POD", "NODE", "QOS", "OOM_ADJ", "OOM_SCORE", "FILES", "PATH")
_ALIGNS = (Align.LEFT,) * len(_HEADERS)


def comparison_subject(comparison: Comparison, settings: Iterable[NodeOverride]) -> str:
    """Which node, and what is different of it: `worker-2, kubelet 1.34 → 1.36, cgroupVersion=1`."""
    before, after = comparison.before.release, comparison.after.release
    words = [f"node {escape(comparison.before.node.name)}" if comparison.before.node.name else "a node"]
    words.append(f"kubelet {before}" if str(before) == str(after) else f"kubelet {before} {ARROW} {after}")
    return ", ".join([*words, *(escape(str(setting)) for setting in settings)])


def kubelet_parts(comparison: Comparison) -> tuple[EffectSection, ...]:
    """Why the new kubelet would not start, nothing where it does."""
    sentences = list(map(escape, comparison.refusals))
    if comparison.refuses_cgroup_v1:
        sentences.append("cgroup v1 is refused from 1.35 on, unless failCgroupV1 is set to false")
    return (
        (EffectSection("Kubelet", "would not start", sentences=tuple(sentences), warns=True),)
        if sentences
        else ()
    )


def pod_parts(effects: Effects) -> tuple[EffectSection, ...]:
    """Everything about one pod."""
    if effects.before.pod.is_terminal:
        return (EffectSection("Nothing changes", "the pod has ended, nothing of it is on a node"),)
    if not effects.changes_anything:
        return (EffectSection("Nothing changes", "class, scores, rank and cgroup files stay as they are"),)
    return effect_parts(effects)


def node_parts(comparison: Comparison) -> tuple[EffectSection, ...]:
    """The cgroups above the pods that change, a part for each."""
    return tuple(file_parts(comparison.node_files))


def part_lines(parts: Iterable[EffectSection]) -> Iterator[str]:
    """Parts as plain text; `*` marks what changes, `!` what stands in the way."""
    for part in parts:
        sign = "!" if part.warns else "*" if part.changed else " "
        yield f"{sign} {part.title}: {part.answer}" if part.answer else f"{sign} {part.title}"
        width = max((len(change.label) for change in part.changes), default=0)
        for change in part.changes:
            yield f"    {change.label:<{width}}  {_values(change)}"
        for sentence in part.sentences:
            yield f"    {sentence}"


def _values(change: ValueChange) -> str:
    if not change.changed:
        return change.before
    delta = f"  ({change.delta})" if change.delta else ""
    return f"{change.before} {ARROW} {change.after}{delta}"


def changed_pods(comparisons: Iterable[Comparison]) -> list[Effects]:
    """The pods for which anything differs, node by node in the order in which they are killed now."""
    return [
        one
        for comparison in comparisons
        for one in sorted(comparison.pods, key=lambda one: (one.rank_before is None, one.rank_before))
        if one.changes_anything
    ]


def table(changed: Sequence[Effects]) -> Iterator[str]:
    """A row for each changed pod: what differs as `before → after`, the rest as it is."""
    return lines([_row(one) for one in changed], _ALIGNS, _HEADERS)


def _row(effects: Effects) -> list[str]:
    pod = effects.before.pod
    old, new = effects.before, effects.after
    adj, score = _killed_first(effects)
    return [
        _moved(effects.rank_before, effects.rank_after, "-"),
        escape(pod.namespace) or NONE,
        escape(pod.name if pod.kind == "Pod" else f"{pod.kind.lower()}/{pod.name}"),
        escape(pod.node_name) or NONE,
        _moved(old.qos_class.value, new.qos_class.value),
        adj,
        score,
        str(len(effects.files)),
        "moves" if effects.changes_path else "stays",
    ]


def _killed_first(effects: Effects) -> tuple[str, str]:
    """oom_score_adj and oom_score of the container that is killed first, before and after.

    Where both stay but another container's do not, that one is named and shown.
    """
    was, now = (_worst(row) for row in (effects.mine_before, effects.mine_after))
    others = [one for one in effects.containers if one.changed]
    if (was.adj, was.oom_score) == (now.adj, now.oom_score) and others:
        other = others[0]
        name = escape(other.name)
        return (
            f"{name}: {_moved(other.adj_before, other.adj_after)}",
            f"{name}: {_moved(other.score_before, other.score_after)}",
        )
    return _moved(was.adj, now.adj), _moved(was.oom_score, now.oom_score)


def _worst(row: RankedPod) -> ContainerScore:
    """By what the pod is ranked; of a pod without processes, the container with the highest adj."""
    return row.worst or max(row.containers, key=lambda one: one.adj or 0)


def _moved(before: object, after: object, unknown: str = UNKNOWN) -> str:
    was, now = (unknown if value is None else str(value) for value in (before, after))
    return was if was == now else f"{was} {ARROW} {now}"


def comparison_values(
    comparison: Comparison, settings: Sequence[NodeOverride], pods: Iterable[Effects]
) -> dict[str, Any]:
    """The same facts as plain values."""
    return {
        "node": comparison.before.node.name,
        "before": _setup_values(comparison.before),
        "after": _setup_values(comparison.after),
        "settings": {setting.key: setting.text for setting in settings},
        "kubeletRefusals": [sentence for part in kubelet_parts(comparison) for sentence in part.sentences],
        "nodeFiles": [_file_values(file) for file in comparison.node_files],
        "pods": [_pod_values(one) for one in pods],
    }


def _setup_values(setup: NodeSetup) -> dict[str, Any]:
    return {
        "release": str(setup.release),
        "cgroupDriver": setup.kubelet.cgroup_driver.value,
        "cgroupVersion": setup.node.cgroup_version,
    }


def _pod_values(effects: Effects) -> dict[str, Any]:
    pod = effects.before.pod
    return {
        "namespace": pod.namespace,
        "pod": pod.name,
        "changed": effects.changes_anything,
        "qosClass": _pair(effects.before.qos_class.value, effects.after.qos_class.value),
        "rank": _pair(effects.rank_before, effects.rank_after),
        "cgroupPath": _pair(effects.before.cgroup.path, effects.after.cgroup.path),
        "containers": [
            {
                "name": one.name,
                "oomScoreAdj": _pair(one.adj_before, one.adj_after),
                "oomScore": _pair(one.score_before, one.score_after),
            }
            for one in effects.containers
        ],
        "files": [{"container": file.container or None, **_file_values(file)} for file in effects.files],
    }


def _file_values(file: FileChange) -> dict[str, Any]:
    return {"path": file.path, "file": file.name, **_pair(file.before, file.after)}


def _pair(before: object, after: object) -> dict[str, Any]:
    return {"before": before, "after": after}
