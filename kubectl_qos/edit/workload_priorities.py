"""Priorities that hold on all nodes at once: the pods of a workload get the same values, by its template.

Each node is planned by itself (priorities.py). All pods of a workload get what one of them needs, and the
nodes are planned again with that, until nothing is added. A workload stays as it is if a node cannot take
its values (no room, a pod of higher priority overtaken, another class).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from kubectl_qos.edit.edits import Edit, Side, apply_edits, current_value, effective_edits, own_edits
from kubectl_qos.edit.fixes import NodeModel
from kubectl_qos.edit.goals import ObstacleReason
from kubectl_qos.edit.preview import StrategyKind
from kubectl_qos.edit.priorities import (
    Exposure,
    Move,
    PriorityPlan,
    build_move,
    exposure,
    inversions,
    plan_priorities,
    priority_of,
)
from kubectl_qos.k8s.kinds import WORKLOADS, Workload, find_workload
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.k8s.validation import pod_refusals

ROLLED_OUT: Final = WORKLOADS.keys() - {"Job", "CronJob"}
"""Kinds whose running pods follow the template."""
_MOST_ROUNDS: Final = 10
_Values = dict[Workload, tuple[Edit, ...]]


def plan_nodes(
    models: Sequence[NodeModel], keys: Sequence[Collection[PodKey] | None]
) -> tuple[PriorityPlan, ...]:
    """Return the plan of each node, of some pods or all, with the same values for pods of a workload.

    A workload whose values do not fit a node gets what its pods there can share, and nothing if that is too
    much as well. Nodes that only have other pods of the workloads have no `keys`.
    """
    search = _Search(models, keys)
    while True:
        values, plans = search.common_values()
        nodes = [_Node(model, plan, values) for model, plan in zip(models, plans, strict=True)]
        too_much = {workload for node in nodes for workload in node.too_much()}
        if not too_much:
            return tuple(node.plan() for node in nodes)
        for workload in too_much:
            search.restrict(workload)


class _Search:
    def __init__(self, models: Sequence[NodeModel], keys: Sequence[Collection[PodKey] | None]) -> None:
        self._models, self._keys = models, keys
        self._workloads = {pod.key: find_workload(pod) for model in models for pod in model.pods}
        self._fixed: dict[PodKey, ObstacleReason] = {}
        self._most: dict[Workload, int] = {}

    def restrict(self, workload: Workload) -> None:
        """Let a workload request no more than its pods can share on each node; the second time nothing."""
        keys = [key for key, owner in self._workloads.items() if owner == workload]
        if workload in self._most or workload.kind not in ROLLED_OUT:
            self._fixed |= dict.fromkeys(keys, ObstacleReason.REPLICAS)
            return
        shares = []
        for model in self._models:
            count = sum(self._workloads[pod.key] == workload for pod in model.pods)
            if count and model.free_bytes is not None:
                shares.append(model.free_bytes // count)
        self._most[workload] = min(shares, default=0)

    def common_values(self) -> tuple[_Values, list[PriorityPlan]]:
        """Return the values of the templates, and the plans of the nodes with them."""
        values: _Values = {}
        for _ in range(_MOST_ROUNDS):
            plans = [self._plan(*keys, values) for keys in zip(self._models, self._keys, strict=True)]
            moves = [(self._workloads[move.pod.key], move) for plan in plans for move in plan.moves]
            grown = [(workload, move.edits) for workload, move in moves if workload.kind in ROLLED_OUT]
            if not grown:
                return values, plans
            for workload, edits in grown:
                values[workload] = tuple(_largest(self._pods(workload), [*values.get(workload, ()), *edits]))
        for workload in {workload for workload, _ in grown}:
            self.restrict(workload)
        return self.common_values()

    def _plan(self, model: NodeModel, keys: Collection[PodKey] | None, values: _Values) -> PriorityPlan:
        edits = {pod.key: _edits(pod, values) for pod in model.pods}
        edited = replace(model, pods=[apply_edits(pod, edits[pod.key]) for pod in model.pods])
        most = {}
        for pod in model.pods:
            workload = self._workloads[pod.key]
            if workload in self._most:
                most[pod.key] = self._most[workload] - model.more_bytes(pod, edits[pod.key])
        return plan_priorities(edited, keys, self._fixed, most)

    def _pods(self, workload: Workload) -> list[Pod]:
        pods = ((model, pod) for model in self._models for pod in model.pods)
        return [model.recreated(pod) for model, pod in pods if self._workloads[pod.key] == workload]


def _largest(pods: Sequence[Pod], edits: Iterable[Edit]) -> Iterator[Edit]:
    """Return the largest value of the edits and of any pod; no limit is the largest."""
    wanted: dict[tuple[str, Side, str], list[Edit]] = {}
    for edit in edits:
        wanted.setdefault(edit.target, []).append(edit)
    for target, some in wanted.items():
        now = [current_value(pod, *target) for pod in pods if own_edits(pod, some[:1])]
        sizes = [edit.quantity for edit in some]
        amounts = [amount for amount in (*sizes, *now) if amount is not None]
        is_unlimited = target[1] is Side.LIMITS and None in now
        yield Edit(*target, None if is_unlimited or None in sizes else max(amounts))


def _edits(pod: Pod, values: Mapping[Workload, Sequence[Edit]]) -> tuple[Edit, ...]:
    return effective_edits(pod, own_edits(pod, values.get(find_workload(pod), ())))


class _Node:
    """A node with the values of templates and the moves of its other pods."""

    def __init__(self, model: NodeModel, plan: PriorityPlan, values: _Values) -> None:
        self._model, self._plan, self._values = model, plan, values
        pods = sorted(model.pods, key=lambda pod: (priority_of(pod), pod.key))
        self._pods = {pod.key: pod for pod in pods if not pod.is_terminal}
        self._edits = {key: _edits(pod, values) for key, pod in self._pods.items()}
        self._edits |= {move.pod.key: move.edits for move in plan.moves}
        self._priorities = {key: priority_of(pod) for key, pod in self._pods.items()}
        self._before = self._exposures({})
        self._after = self._exposures(self._edits)

    def _exposures(self, edits: Mapping[PodKey, Sequence[Edit]]) -> dict[PodKey, Exposure]:
        return {key: exposure(self._model, pod, edits.get(key, ())) for key, pod in self._pods.items()}

    def too_much(self) -> Iterator[Workload]:
        """Return the workloads whose values this node cannot take."""
        before = set(inversions(self._priorities, self._before))
        after = set(inversions(self._priorities, self._after))
        changed = {key: find_workload(self._pods[key]) for key, edits in self._edits.items() if edits}
        overtaken = (changed.get(inversion.lower) for inversion in after - before)
        yield from (workload for workload in overtaken if workload is not None and workload in self._values)
        release = self._model.setup.release
        templates = {key: workload for key, workload in changed.items() if workload in self._values}
        for key, workload in templates.items():
            pod, edits = self._pods[key], self._edits[key]
            is_other = self._model.qos_class(pod, edits) is not self._model.qos_class(pod)
            if (
                is_other
                or self._more_bytes(key) < 0
                or pod_refusals(self._model.recreated(pod, edits), release)
            ):
                yield workload
        free = self._model.free_bytes
        if templates and free is not None and sum(map(self._more_bytes, changed)) > free:
            yield templates[min(templates, key=lambda key: (self._priorities[key], key))]

    def _more_bytes(self, key: PodKey) -> int:
        return self._model.more_bytes(self._pods[key], self._edits[key])

    def plan(self) -> PriorityPlan:
        """Return the moves of all pods, of the highest priority first."""
        order = sorted(self._edits, key=lambda key: -self._priorities[key])
        moves = [self._move(key) for key in order if self._edits[key]]
        return replace(self._plan, moves=tuple(moves), free_bytes=self._model.free_bytes)

    def _move(self, key: PodKey) -> Move:
        move = next((move for move in self._plan.moves if move.pod.key == key), None)
        if move is not None:
            return move
        pod, edits = self._pods[key], self._edits[key]
        move = build_move(self._model, pod, edits, self._priorities, self._before, self._after)
        return replace(move, strategy=StrategyKind.TEMPLATE, workload=find_workload(pod))
