"""The smallest request changes with which pods die in order of priority, on several nodes.

Not here: how a plan is found (edit/priorities.py), and its words (present/priorities.py).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from kubectl_qos.analysis.fix_list import keys_in_scope, node_model
from kubectl_qos.edit.findings import Finding, FindingCode, find_findings
from kubectl_qos.edit.fixes import NodeModel
from kubectl_qos.edit.priorities import Inversion, Move, PriorityPlan, priority_of
from kubectl_qos.edit.related import RelatedObjects
from kubectl_qos.edit.workload_priorities import plan_nodes
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.kinds import find_workload
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.quota import with_requests_added
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.qos.simulation.node_state import NodeState


class PlannedMove(NamedTuple):
    """A pod's edits and the plan of its node."""

    plan: PriorityPlan
    move: Move


class MoveRow(NamedTuple):
    """Edits of a pod, or of all pods of a workload, with their number from 1."""

    number: int
    moves: tuple[PlannedMove, ...]

    @property
    def move(self) -> Move:
        """The first move, of the highest priority on its node."""
        return self.moves[0].move

    @property
    def solves(self) -> list[Inversion]:
        """Inversions that end."""
        return [inversion for _, move in self.moves for inversion in move.solves]

    def on_node(self, plan: PriorityPlan) -> list[Move]:
        """Return the moves of pods on a node."""
        return [row.move for row in self.moves if row.plan is plan]

    @property
    def tightest(self) -> tuple[PriorityPlan, int]:
        """The node with the least room for its pods' requests, and the additional bytes."""

        def requested(plan: PriorityPlan) -> int:
            return sum(move.more_bytes for move in self.on_node(plan))

        plans = (plan for plan, _ in self.moves)
        tightest = min(plans, key=lambda plan: (plan.free_bytes or 0) - requested(plan))
        return tightest, requested(tightest)


@dataclass(frozen=True, slots=True)
class Plans:
    """Plans of several nodes."""

    plans: tuple[PriorityPlan, ...]
    snapshot: Snapshot
    problems: tuple[NodeState | str, ...] = ()
    """Nodes without a plan: NodeState if usage is missing, else a message."""
    refusals: tuple[tuple[int, Finding], ...] = ()
    """Findings that refuse a row, by its number."""

    @property
    def rows(self) -> list[MoveRow]:
        """All moves, numbered, highest priority first; moves of a workload share a number."""
        rows = dict[object, list[PlannedMove]]()
        for plan in self.plans:
            for move in plan.moves:
                rows.setdefault(move.workload or id(move), []).append(PlannedMove(plan, move))
        ordered = sorted(rows.values(), key=lambda some: -priority_of(some[0].move.pod))
        return [MoveRow(number, tuple(some)) for number, some in enumerate(ordered, start=1)]


def plans_of_nodes(snapshot: Snapshot, nodes: Sequence[str], scope: Scope) -> Plans:
    """Return a plan for each node, which edits pods in scope and the other pods of their workloads.

    Raises InputError if there is a single node, and its memory is unknown.
    """
    models, problems = dict[str, NodeModel](), list[NodeState | str]()
    for name in nodes:
        model = node_model(snapshot, name)
        try:
            state = model.state().require_capacity()
        except InputError as error:
            if len(nodes) == 1:
                raise
            problems.append(str(error))
            continue
        if state.is_unmeasured:
            problems.append(state)
        else:
            models[name] = model
    keys = [keys_in_scope(model, scope) for model in models.values()]
    workloads = {find_workload(pod) for model in models.values() for pod in model.pods}
    for name, pods in snapshot.by_node().items():
        if name and name not in nodes and not workloads.isdisjoint(map(find_workload, pods)):
            models[name] = node_model(snapshot, name)
            keys.append(set())
    plans = plan_nodes(list(models.values()), keys)
    shown = tuple(plan for plan in plans if plan.moves or plan.node in nodes)
    return Plans(shown, snapshot, tuple(problems))


_REFUSE: Final = {
    FindingCode.LIMIT_RANGE_REFUSES,
    FindingCode.QUOTA_REFUSES,
    FindingCode.NEW_PODS_REFUSED,
    FindingCode.ROLLOUT_STALLS,
}


def with_refusals(plans: Plans, read: Callable[[Pod], RelatedObjects | None]) -> Plans:
    """Check each row against LimitRanges and quotas, after the rows before it."""
    refusals, spent = [], dict[str, int]()
    for row in plans.rows:
        pod, related = row.move.pod, read(row.move.pod)
        if related is None:
            continue
        before = spent.get(pod.namespace, 0)
        related = replace(
            related, quotas=tuple(with_requests_added(quota, before) for quota in related.quotas)
        )
        findings = find_findings(row.move.preview, related, row.move.strategy, None)
        refusals += [(row.number, finding) for finding in findings if finding.code in _REFUSE]
        spent[pod.namespace] = before + sum(planned.move.more_bytes for planned in row.moves)
    return replace(plans, refusals=tuple(refusals))
