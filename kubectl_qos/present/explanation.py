"""Everything about one pod in sections, as lines of text and as plain values with the same names."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from kubectl_qos.k8s.objects import MEMORY, ContainerStateTerminated, ContainerStatus, Pod, PodStatus
from kubectl_qos.k8s.releases import Gate
from kubectl_qos.k8s.resources import eviction_request
from kubectl_qos.k8s.snapshot import PodsByNode, Scope, Snapshot
from kubectl_qos.present.format import age, binary, duration, escape, parse_time
from kubectl_qos.present.pod_rows import PodRow, PodRows, all_statuses, build_rows
from kubectl_qos.present.reasons import (
    CLASS_MEANINGS,
    assumption_sentence,
    class_lacks,
    formula,
    sentence,
    step_sentence,
)
from kubectl_qos.qos.cgroup.memory import has_memory_qos
from kubectl_qos.qos.prediction import CgroupPrediction, ContainerPrediction, Prediction, predict
from kubectl_qos.qos.qos_class import QosClass, steps_to
from kubectl_qos.qos.ranking import Basis, ContainerKind
from kubectl_qos.qos.reason import Reason, Rule

TEXT_WIDTH = 100


@dataclass(frozen=True, slots=True)
class ExplanationLine:
    """One line of a section; `depth` is its indentation, `note` what is said behind it."""

    text: str
    note: str = ""
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with its answer beside it, and the proof below."""

    title: str
    answer: str
    lines: tuple[ExplanationLine, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """A pod explained: `subject` is the first line."""

    subject: str
    prediction: Prediction
    row: PodRow | None
    sections: tuple[Section, ...]


def explain_pod(pod: Pod, snapshot: Snapshot, now: datetime) -> Explanation:
    """One pod of a snapshot explained, with its rank on its node."""
    setup = snapshot.setup(pod.node_name)
    prediction = predict(pod, setup.node, kubelet=setup.kubelet, release=setup.release)
    neighbours = {pod.node_name: snapshot.by_node().get(pod.node_name, ())}
    rows = build_rows(replace(snapshot, pods=PodsByNode(neighbours)), Scope())
    row = next((one for one in rows.rows if one.pod.metadata == pod.metadata), None)
    return explain(prediction, row, rows, now)


def explain(prediction: Prediction, row: PodRow | None, rows: PodRows, now: datetime) -> Explanation:
    """The sections of one pod.

    Args:
        prediction: of the pod on its node.
        row: the pod's row in the ranking, None where it is not ranked.
        rows: the ranking of its node, for its neighbours.
        now: for ages.
    """
    pod = prediction.pod
    kind = pod.kind.lower()
    name = f"{pod.namespace}/{pod.name}" if pod.namespace else pod.name or "(unnamed)"
    node = prediction.setup.node
    where = f" on {escape(node.name)}" if node.name else ""
    return Explanation(
        subject=f"{kind} {escape(name)}{where}, kubelet {prediction.setup.release}",
        prediction=prediction,
        row=row,
        sections=tuple(
            section
            for section in (
                _class(prediction),
                _oom(prediction, row, rows),
                _cgroup(prediction),
                _swap(prediction),
                _eviction(prediction, row, rows),
                _resize(prediction),
                _history(prediction, now),
                _assumed(prediction, rows),
            )
            if section is not None
        ),
    )


def text_lines(explanation: Explanation) -> Iterable[str]:
    """The explanation as plain text."""
    yield explanation.subject
    width = max(len(section.title) for section in explanation.sections) + 3
    for section in explanation.sections:
        yield ""
        yield f"{section.title:<{width}}{section.answer}".rstrip()
        notes = [line for line in section.lines if line.note]
        column = min(max((len(line.text) + 2 * line.depth for line in notes), default=0), 44)
        for line in section.lines:
            indent = "  " * (line.depth + 1)
            if line.note:
                yield f"{indent + line.text:<{column + 2}}   {line.note}"
            else:
                yield from textwrap.wrap(
                    line.text, TEXT_WIDTH, initial_indent=indent, subsequent_indent=indent + "  "
                )


def _class(prediction: Prediction) -> Section:
    qos, release = prediction.qos_class, prediction.setup.release
    lines = []
    reason = prediction.class_reason
    if reason.rule is Rule.CLASS_STORED and prediction.computed_class is not qos:
        lines.append(ExplanationLine(sentence(reason)))
    decided = reason.children[0] if reason.rule is Rule.CLASS_STORED else reason
    lines.append(ExplanationLine(sentence(decided)))
    if qos is not QosClass.GUARANTEED:
        lines += [ExplanationLine(text) for text in class_lacks(reason)]
    for target in QosClass:
        steps = steps_to(prediction.pod, target, release)
        if steps:
            lines.append(ExplanationLine(f"to become {target.value}:"))
            lines += [ExplanationLine(step_sentence(step), depth=1) for step in steps]
    return Section("Class", f"{qos.value}, {CLASS_MEANINGS[qos]}", tuple(lines))


def _oom(prediction: Prediction, row: PodRow | None, rows: PodRows) -> Section:
    lines = [_container_line(container) for container in prediction.containers]
    if prediction.node_critical:
        lines.append(
            ExplanationLine("system-node-critical is the only priority class that the kernel's order knows")
        )
    node = rows.nodes.get(row.node) if row is not None else None
    answer = "rank unknown: the node's memory capacity is not known"
    if row is not None and node is not None:
        ranked = [one for one in rows.rows if one.node == row.node and one.rank is not None]
        if row.rank is not None:
            shared = " (shared)" if row.tied else ""
            answer = f"rank {row.rank}{shared} of {len(ranked)}, oom_score {row.score}"
            lines += _neighbours(row, ranked)
            if node.basis is Basis.ADJ:
                lines.append(ExplanationLine("no memory usage is known: the rank is by oom_score_adj alone"))
        elif row.adj is not None or node.basis is not Basis.NOTHING:
            answer = "no rank: the pod has no processes on a node"
    return Section("OOM", answer, tuple(lines))


def _container_line(container: ContainerPrediction) -> ExplanationLine:
    name = escape(container.name)
    if container.kind is not ContainerKind.APP:
        name += f" ({container.kind.value})"
    reason = container.oom_score_adj_reason
    if reason is None:
        low, high = container.oom_score_adj_range
        return ExplanationLine(
            f"{name}  adj {low}..{high}", "1000 - 1000 × request / capacity, capacity unknown"
        )
    return ExplanationLine(f"{name}  adj {container.oom_score_adj}", formula(reason))


def _neighbours(row: PodRow, ranked: Sequence[PodRow]) -> Iterable[ExplanationLine]:
    place = next(index for index, one in enumerate(ranked) if one.key == row.key)
    before = [one for one in ranked[:place] if one.rank != row.rank]
    after = [one for one in ranked[place + 1 :] if one.rank != row.rank]
    if before:
        first = ", ".join(_short(one) for one in before[:3])
        more = f" and {len(before) - 3} more" if len(before) > 3 else ""
        yield ExplanationLine(f"killed before it: {first}{more}")
    else:
        yield ExplanationLine("the next victim of this node")
    if after:
        yield ExplanationLine(f"killed after it: {_short(after[0])}")


def _short(row: PodRow) -> str:
    return f"{escape(row.pod.namespace)}/{escape(row.name)} ({row.score})"


def _cgroup(prediction: Prediction) -> Section:
    version = prediction.setup.node.cgroup_version
    driver = prediction.setup.kubelet.cgroup_driver
    lines = [ExplanationLine(prediction.class_cgroup_path)]
    lines += _cgroup_lines("pod", prediction.cgroup, 1)
    for container in prediction.containers:
        lines += _cgroup_lines(f"container {escape(container.name)}", container.cgroup, 2)
        if container.process_path != container.cgroup.path:
            lines.append(
                ExplanationLine(f"{short_path(container.process_path)}/", "its processes, by crun", 3)
            )
    answer = f"v{version}, {driver} driver"
    if version != 1:
        answer += f", MemoryQoS {'on' if has_memory_qos(prediction.setup) else 'off'}"
    return Section("cgroup", answer, tuple(lines))


def _cgroup_lines(title: str, cgroup: CgroupPrediction, depth: int) -> Iterable[ExplanationLine]:
    yield ExplanationLine(f"{short_path(cgroup.path)}/", title, depth)
    for name, value in cgroup.files.items():
        if "hugetlb." in name and value in _NO_HUGEPAGES:
            continue
        reason = cgroup.reasons.get(name)
        yield ExplanationLine(f"{name} = {value}", sentence(reason) if reason is not None else "", depth + 1)


_NO_HUGEPAGES = ("0", "max")


def short_path(path: str) -> str:
    """The last component, with the container's id cut to the twelve digits that tools show."""
    return escape(re.sub(r"([0-9a-f]{12})[0-9a-f]{52}", r"\1…", path.rpartition("/")[2]))


def _swap(prediction: Prediction) -> Section | None:
    swap = prediction.setup.node.swap_capacity_bytes
    if not swap:
        return None
    behavior = prediction.setup.kubelet.memory_swap_behavior or "NoSwap"
    lines = []
    for container in prediction.containers:
        value = container.cgroup.files.get("memory.swap.max")
        if value is not None:
            shown = value if value == "max" else binary(int(value))
            reason = container.cgroup.reasons.get("memory.swap.max")
            why = sentence(reason) if reason is not None else ""
            lines.append(ExplanationLine(f"{escape(container.name)}  {shown}", why))
    return Section("Swap", f"{behavior}, node has {binary(swap)}", tuple(lines))


def _eviction(prediction: Prediction, row: PodRow | None, rows: PodRows) -> Section:
    pod, release = prediction.pod, prediction.setup.release
    request = eviction_request(pod, release, MEMORY).value()
    lines = [ExplanationLine(f"counted request {binary(request)}, priority {pod.spec.priority or 0}")]
    answer = "rank unknown: no memory usage is known"
    if row is not None and row.eviction_rank is not None and row.memory is not None:
        total = sum(1 for one in rows.rows if one.node == row.node and one.eviction_rank is not None)
        answer = f"rank {row.eviction_rank} of {total} under memory pressure"
        over = row.memory - request
        lines.append(
            ExplanationLine(f"uses {binary(over)} more than it requests: goes first")
            if over > 0
            else ExplanationLine(f"uses {binary(-over)} less than it requests")
        )
    if prediction.critical:
        answer = "spared: critical pods are never evicted"
    return Section("Eviction", answer, tuple(lines))


def _resize(prediction: Prediction) -> Section:
    release = prediction.setup.release
    if prediction.static or prediction.mirror:
        return Section("Resize", "static pods cannot be resized")
    if not release.enabled(Gate.IN_PLACE_RESIZE):
        return Section("Resize", f"not in place on {release}: the pod has to be replaced")
    lines = [ExplanationLine(f"the class stays {prediction.qos_class.value}: a resize may not change it")]
    for container in prediction.containers:
        restarts = [
            policy.resource_name
            for policy in container.container.resize_policy or ()
            if policy.restart_policy == "RestartContainer"
        ]
        if restarts:
            lines.append(
                ExplanationLine(f"{escape(container.name)} restarts when its {' or '.join(restarts)} changes")
            )
    lines.append(ExplanationLine("oom_score_adj changes only when a container restarts"))
    lines += _resize_under_way(prediction.pod.status)
    return Section("Resize", "cpu and memory may change in place", tuple(lines))


def _resize_under_way(status: PodStatus) -> Iterable[ExplanationLine]:
    """What the kubelet says of a resize that was asked for: by conditions, until 1.32 by a word."""
    if status.resize:
        yield ExplanationLine(f"a resize is {escape(status.resize)}")
    for condition in status.conditions or ():
        if condition.type in _RESIZES and condition.status == "True":
            why = f": {escape(condition.reason)}" if condition.reason else ""
            yield ExplanationLine(f"{_RESIZES[condition.type]}{why}", escape(condition.message))


_RESIZES: Final = {
    "PodResizePending": "a resize waits",
    "PodResizeInProgress": "a resize is under way",
}


def _history(prediction: Prediction, now: datetime) -> Section | None:
    pod = prediction.pod
    statuses, disruptions = all_statuses(pod), list(_disruptions(pod.status))
    if not statuses and not disruptions:
        return None
    restarts = sum(status.restart_count for status in statuses)
    lines = [ExplanationLine(text) for text in disruptions]
    lines += [line for status in statuses for line in _states(status, now)]
    if any(end.reason == "OOMKilled" or end.exit_code == SIGKILLED for end in _ends(statuses)):
        lines.append(ExplanationLine(_NO_PROOF))
    answer = "never restarted" if not restarts else f"restarted {restarts} time{'s' if restarts > 1 else ''}"
    if pod.status.reason == "Evicted":
        answer = f"evicted, {answer}"
    return Section("History", answer, tuple(lines))


SIGKILLED: Final = 137
"""128 and the number of the signal, as a shell says it."""

_NO_PROOF: Final = (
    "neither OOMKilled nor exit code 137 proves what happened: with the systemd driver many a victim of the"
    " kernel ends as Error, and SIGKILL has other senders; the node's kernel log tells"
)
_DISRUPTIONS: Final = {
    "TerminationByKubelet": "its kubelet ended it: node pressure, a shutdown or room for a critical pod",
    "PreemptionByScheduler": "the scheduler gave its place to a pod of higher priority",
    "EvictionByEvictionAPI": "it was evicted through the API, as a drain does it: not for memory",
    "DeletionByTaintManager": "a taint of its node drove it away",
    "DeletionByPodGC": "it was deleted because its node is gone",
}
"""k8s.io/api/core/v1/types.go PodReason, the reasons of the condition DisruptionTarget."""


def _disruptions(status: PodStatus) -> Iterable[str]:
    """Why the pod as a whole had to go. One that ends well on SIGTERM has no reason Evicted to tell."""
    if status.reason == "Evicted":
        yield "its kubelet evicted it"
    for condition in status.conditions or ():
        if condition.type == "DisruptionTarget" and condition.status == "True":
            meaning = _DISRUPTIONS.get(condition.reason, "it was disrupted")
            yield f"{meaning} ({escape(condition.reason)})" if condition.reason else meaning
            if condition.message:
                yield escape(condition.message)


def _ends(statuses: Iterable[ContainerStatus]) -> Iterable[ContainerStateTerminated]:
    for status in statuses:
        for state in (status.state, status.last_state):
            if state is not None and state.terminated is not None:
                yield state.terminated


def _states(status: ContainerStatus, now: datetime) -> Iterable[ExplanationLine]:
    name = escape(status.name)
    waiting = status.state.waiting if status.state is not None else None
    if waiting is not None:
        yield ExplanationLine(f"{name} waits: {escape(waiting.reason or 'without a reason')}")
    for word, state in (("ended", status.state), ("last ended", status.last_state)):
        end = state.terminated if state is not None else None
        if end is not None:
            reason = escape(end.reason or "without a reason")
            yield ExplanationLine(
                f"{name} {word} {reason}, exit code {end.exit_code}{_when(end, now)}", _meaning(end)
            )


def _when(end: ContainerStateTerminated, now: datetime) -> str:
    """How long ago, and after how long."""
    ago = f", {age(end.finished_at, now)} ago" if end.finished_at else ""
    started, finished = parse_time(end.started_at), parse_time(end.finished_at)
    if started is None or finished is None or finished < started:
        return ago
    return f"{ago} after {duration(int((finished - started).total_seconds()))}"


def _meaning(end: ContainerStateTerminated) -> str:
    if end.reason == "OOMKilled":
        return "killed for memory: its own limit, its pod's or the node's"
    if end.exit_code == SIGKILLED:
        return "SIGKILL: perhaps for memory, the reason alone does not say"
    return ""


def _assumed(prediction: Prediction, rows: PodRows) -> Section | None:
    assumed = [assumption_sentence(one) for one in prediction.assumptions]
    lines = [ExplanationLine(note) for note in rows.notes]
    if assumed:
        lines.append(ExplanationLine(f"not measured, assumed: {', '.join(assumed)}"))
    return Section("Assumed", "", tuple(lines)) if lines else None


def as_values(explanation: Explanation) -> dict[str, Any]:
    """The same facts for JSON and YAML."""
    prediction, row = explanation.prediction, explanation.row
    pod, node = prediction.pod, prediction.setup.node
    return {
        "kind": "PodExplanation",
        "namespace": pod.namespace,
        "name": pod.name,
        "node": node.name or None,
        "release": str(prediction.setup.release),
        "qos": {
            "class": prediction.qos_class.value,
            "computed": prediction.computed_class.value,
            "reason": reason_values(prediction.class_reason),
            "steps": {
                target.value: [
                    {
                        "kind": step.kind.value,
                        "owner": step.owner,
                        "resource": step.resource,
                        "value": None if step.value is None else str(step.value),
                    }
                    for step in steps_to(pod, target, prediction.setup.release)
                ]
                for target in QosClass
            },
        },
        "rank": row.rank if row is not None else None,
        "oom_score": row.score if row is not None else None,
        "eviction_rank": row.eviction_rank if row is not None else None,
        "critical": prediction.critical,
        "node_critical": prediction.node_critical,
        "static": prediction.static or prediction.mirror,
        "containers": [_container_values(container) for container in prediction.containers],
        "cgroup": _cgroup_values(prediction.cgroup),
        "assumed": {one.name: _plain(one.value) for one in prediction.assumptions},
    }


def reason_values(reason: Reason) -> dict[str, Any]:
    """A Reason as plain values."""
    return {
        "rule": reason.rule.value,
        "result": _plain(reason.result),
        "inputs": {name: _plain(value) for name, value in reason.inputs.items()},
        "source": reason.rule.source,
        "children": [reason_values(child) for child in reason.children],
    }


def _container_values(container: ContainerPrediction) -> dict[str, Any]:
    reason = container.oom_score_adj_reason
    return {
        "name": container.name,
        "kind": container.kind.value,
        "oom_score_adj": container.oom_score_adj,
        "oom_score_adj_range": list(container.oom_score_adj_range),
        "reason": None if reason is None else reason_values(reason),
        "cgroup": _cgroup_values(container.cgroup),
        "processCgroupPath": container.process_path,
    }


def _cgroup_values(cgroup: CgroupPrediction) -> dict[str, Any]:
    return {"path": cgroup.path, "files": dict(cgroup.files)}


def _plain(value: object) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    return str(value)
