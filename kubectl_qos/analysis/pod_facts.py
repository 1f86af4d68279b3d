"""Facts that `explain` shows about a pod or workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import structs

from kubectl_qos.analysis.pod_table import PodRow, PodRows, build_rows
from kubectl_qos.edit.preview import Effects, preview
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.allocation import is_resizing
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import PodsByNode, Scope, Snapshot
from kubectl_qos.k8s.usage import PodUsage, Pressure, Sampled, usage_of_runs
from kubectl_qos.qos.oom_score import Kernel, kernel_formula
from kubectl_qos.qos.prediction import Prediction, predict_running
from kubectl_qos.qos.simulation.node_state import NodeState, state_of_node

NO_COUNTS: Final[Mapping[str, Any]] = MappingProxyType({})


class PodFacts(msgspec.Struct, frozen=True):
    """Facts of a pod, or of a workload's template and pods."""

    prediction: Prediction
    row: PodRow | None
    rows: PodRows
    """All pods of `nodes`."""
    nodes: Sequence[str]
    replicas: Sequence[PodRow]
    """Rows of a workload's pods, or of the pod."""
    usage: PodUsage | None
    pressure: Mapping[str, Pressure]
    """Known memory pressure of `pod` and `node`."""
    tmpfs: Mapping[str, int]
    """Bytes in memory-backed volumes."""
    resize: Effects | None
    """Effects still pending from an unfinished resize."""
    events: Mapping[str, Mapping[str, int]]
    """Counts of memory.events by container."""
    score: ScoreParts | None
    state: NodeState | None
    """State of its node, None if that is unknown."""


def pod_facts(
    pod: Pod,
    snapshot: Snapshot,
    sampled: Sampled | None = None,
    events: Mapping[str, Mapping[str, int]] = NO_COUNTS,
    neighbour: PodFacts | None = None,
) -> PodFacts:
    """Return the facts of a pod, or of a workload by its template; `sampled` summarizes known usage.

    `neighbour` has the facts of another pod on the node in the same snapshot: the ranks and the state of the
    node are taken from it.
    """
    pods: Sequence[Pod] = [pod]
    if pod.kind != "Pod":
        from kubectl_qos.edit.compare import replicas_of

        pods = replicas_of(pod, snapshot.pods) or pods
    nodes = sorted({other.node_name for other in pods})
    pods_on = {name: snapshot.by_node().get(name, ()) for name in nodes}
    before = neighbour.rows if neighbour is not None else PodRows((), sampled=sampled)
    rows = build_rows(replace(snapshot, pods=PodsByNode(pods_on)), Scope(), before=before)
    state = neighbour.state if neighbour is not None else None
    if neighbour is None:
        with suppress(InputError):
            state = state_of_node(snapshot, pod.node_name)
    keys = {other.key for other in pods if other is not pod}
    usage = usage_of_runs(pod, snapshot.usage.get(pod.key))
    waits = {"pod": usage.details.pressure if usage else None, "node": snapshot.pressure.get(pod.node_name)}
    volumes = dict(usage.details.volumes) if usage is not None else {}
    row = next((row for row in rows.rows if row.pod.metadata == pod.metadata), None)
    resize = None
    if is_resizing(pod):
        setup = snapshot.setup(pod.node_name)
        resize = preview(pod, (), setup, pods_on[nodes[0]], snapshot.usage).effects
    return PodFacts(
        prediction=_on_nodes(pod, nodes, snapshot),
        row=row,
        rows=rows,
        nodes=nodes,
        replicas=[row for row in rows.rows if row.key[:2] in keys and row.pod.kind == "Pod"],
        usage=usage,
        pressure={name: pressure for name, pressure in waits.items() if pressure is not None},
        tmpfs={name: volumes[name] for name in pod.memory_volumes if name in volumes},
        resize=resize,
        events=events,
        score=score_parts(row, snapshot),
        state=state,
    )


def _on_nodes(pod: Pod, places: Sequence[str], snapshot: Snapshot) -> Prediction:
    """Predict for the first node; if oom_score_adj differs between nodes, give its range."""
    predictions = [predict_running(pod, snapshot.setup(name)) for name in places]
    if pod.kind == "Pod":
        return predictions[0]
    containers = []
    for alike in zip(*(prediction.containers for prediction in predictions), strict=True):
        bounds = [bound for container in alike for bound in container.oom_score_adj_range or ()]
        if len(set(bounds)) > 1:
            changed = replace(alike[0], oom_score_adj=None, adj_steps=None)
            containers.append(replace(changed, oom_score_adj_range=(min(bounds), max(bounds))))
        else:
            containers.append(alike[0])
    setup = predictions[0].setup
    nowhere = structs.replace(setup, node=structs.replace(setup.node, name=""))
    return structs.replace(predictions[0], setup=nowhere, containers=tuple(containers))


class ScoreParts(NamedTuple):
    """The oom_score of the container that is killed first, as a sum of points out of 2000."""

    container: str
    base: int
    """Points of every process."""
    adj: int
    """Points for oom_score_adj."""
    usage: int
    """Points for memory in use, not bytes."""
    score: int


_BASE: Final = 667
"""oom_score of a process that uses nothing and has oom_score_adj 0, of 2000 (`proc_oom_score`)."""
MOST_SCORE: Final = 2000


def score_parts(row: PodRow | None, snapshot: Snapshot) -> ScoreParts | None:
    """Return the parts of a pod's score, None if one of them is unknown."""
    if row is None or row.score is None or row.adj is None:
        return None
    node = snapshot.setup(row.node).node
    usage = snapshot.usage.get(row.key[:2])
    used = usage.of(row.worst) if usage is not None else None
    if used is None or node.memory_capacity_bytes is None:
        return None
    base, adj = 0, row.adj
    if kernel_formula(node.kernel) is Kernel.SIGNED:
        base, adj = _BASE, round(row.adj * 2 / 3)
    return ScoreParts(row.worst, base, adj, row.score - base - adj, row.score)
