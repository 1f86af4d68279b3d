"""Plans of priorities in words: of which nodes, the table, the patches, and what cannot be solved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import msgspec

from kubectl_qos.edit.patch import build_patch, kubectl_command
from kubectl_qos.edit.preview import StrategyKind
from kubectl_qos.edit.priorities import Inversion, Move, PriorityPlan, Unsolved, plan_priorities, priority_of
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.kinds import WORKLOADS, find_workload
from kubectl_qos.k8s.objects import MEMORY
from kubectl_qos.k8s.quantity import ZERO
from kubectl_qos.k8s.resources import pod_requests
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.present.effects import edits_text, moment
from kubectl_qos.present.findings import obstacle_sentence
from kubectl_qos.present.fixes import how_to_apply, keys_in_scope, node_model, requests_text
from kubectl_qos.present.format import count, escape, first_few, full_name
from kubectl_qos.present.output import NUMBER, Column, column, table
from kubectl_qos.qos.reason import Mechanism

KILLERS: Final = {Mechanism.NODE: "kernel", Mechanism.EVICTION: "kubelet"}
MOST_UNSOLVED: Final = 10
MANY_TIMES: Final = 10
"""A request that grows to as many times what it was is worth a look."""


class MoveRow(NamedTuple):
    """A pod's edits with their number, from 1, and the plan of its node."""

    number: int
    plan: PriorityPlan
    move: Move


@dataclass(frozen=True, slots=True)
class Plans:
    """The plans of several nodes, and why there is none for others."""

    plans: tuple[PriorityPlan, ...]
    problems: tuple[str, ...] = ()

    @property
    def rows(self) -> list[MoveRow]:
        """All moves, numbered through."""
        moves = [(plan, move) for plan in self.plans for move in plan.moves]
        return [MoveRow(number, *one) for number, one in enumerate(moves, start=1)]


def plans_of_nodes(snapshot: Snapshot, nodes: Sequence[str], scope: Scope) -> Plans:
    """A plan for each node, which edits only pods of the scope.

    Raises InputError where nothing can be said of a single node.
    """
    plans, problems = [], []
    for name in nodes:
        model = node_model(snapshot, name)
        try:
            model.state()
        except InputError as error:
            if len(nodes) == 1:
                raise
            problems.append(str(error))
            continue
        plans.append(plan_priorities(model, keys_in_scope(model, scope)))
    return Plans(tuple(plans), tuple(problems))


def _by_killer(found: Sequence[Inversion]) -> str:
    texts = []
    for killer, name in KILLERS.items():
        pods = [full_name(*one.lower) for one in found if one.killer is killer]
        texts += [f"{name}: {first_few(pods, most=1)}"] if pods else []
    return "; ".join(texts)


def move_sentence(move: Move) -> str:
    """One line: `shop/api-0 c requests.memory 512Mi → 820Mi, in place, when c restarts`."""
    name = full_name(move.pod.namespace, move.pod.name)
    return f"{name} {edits_text(move.pod, move.edits)}, {_how(move)}, {_when(move)}"


def _how(move: Move) -> str:
    kind, _, name = find_workload(move.pod)
    how = how_to_apply(move.strategy, kind, name)
    if move.strategy is StrategyKind.IN_PLACE and kind in WORKLOADS.keys() - {"Job"}:
        return f"{how}, undone by the next rollout of {kind.lower()}/{escape(name)}"
    return how


def _requests(row: MoveRow) -> str:
    return requests_text(row.move.more_bytes, row.plan.free_bytes)


def _when(move: Move) -> str:
    return moment(move.when, move.effects.restarting_later, move.effects.when)


COLUMNS: Final[tuple[Column[MoveRow], ...]] = (
    column("number", lambda row: row.number, "the number for --apply", NUMBER, header="N"),
    column("node", lambda row: row.plan.node, "the node's name"),
    column("pod", lambda row: full_name(row.move.pod.namespace, row.move.pod.name), "the pod to change"),
    column("priority", lambda row: priority_of(row.move.pod), "its priority", NUMBER),
    column("change", lambda row: edits_text(row.move.pod, row.move.edits), "each value before and after"),
    column("outlives", lambda row: _by_killer(row.move.solves), "pods of lower priority, by killer"),
    column("when", lambda row: _when(row.move), "when it takes effect"),
    column("requests", _requests, "how much more, of the node's allocatable memory"),
    column("how", lambda row: _how(row.move), "how it is applied"),
)


def lines(found: Plans, *, headers: bool = True) -> Iterator[str]:
    """The table, or that there is nothing to change."""
    if not found.rows:
        is_fine = not any(plan.unsolved for plan in found.plans)
        yield "nothing to change: no pod dies before one of lower priority" if is_fine else "no change helps"
        return
    yield from table(found.rows, COLUMNS, headers=headers)


def unsolved_sentences(plan: PriorityPlan) -> Iterator[str]:
    """The inversions of a plan that stay, one line for a pod and its obstacle."""
    grouped = dict[tuple[object, ...], list[Unsolved]]()
    for one in plan.unsolved:
        grouped.setdefault((one.inversion.higher, one.obstacle), []).append(one)
    for some in grouped.values():
        first = some[0]
        before = _by_killer([one.inversion for one in some])
        name = full_name(*first.inversion.higher)
        yield f"{name} still dies before others ({before}): {obstacle_sentence(first.obstacle)}"


def _much(rows: Sequence[MoveRow]) -> Iterator[str]:
    """The changes that take much of what is free, or are many times the request."""
    for number, plan, move in rows:
        more, free = move.more_bytes, plan.free_bytes
        now = move.preview.before.pod
        requested = pod_requests(now, move.preview.before.setup.release).get(MEMORY, ZERO).value()
        texts = []
        if requested and more + requested >= MANY_TIMES * requested:
            texts.append(f"requests {(more + requested) // requested} times as much as before")
        if free and more * 2 > free:
            texts.append(f"takes {100 * more // free}% of what {escape(plan.node)} has free for requests")
        if texts:
            yield f"{number}: {full_name(move.pod.namespace, move.pod.name)} {' and '.join(texts)}"


def _replicas(rows: Sequence[MoveRow]) -> Iterator[str]:
    """The workloads of which several pods get different values, as their template has one for all."""
    of_workload = dict[tuple[str, str, str], list[MoveRow]]()
    for row in rows:
        kind, _, name = find_workload(row.move.pod)
        if kind in WORKLOADS:
            of_workload.setdefault((row.move.pod.namespace, kind, name), []).append(row)
    for (namespace, kind, name), some in of_workload.items():
        if len({row.move.edits for row in some}) > 1:
            numbers = ", ".join(str(row.number) for row in some)
            owner = full_name(namespace, f"{kind.lower()}/{name}")
            yield f"{numbers}: pods of {owner}, whose template has one value for all: take the largest there"


def notes(found: Plans) -> Iterator[str]:
    """What stays and why, and what the plan is based on."""
    yield from found.problems
    solved = sum(len(row.move.solves) for row in found.rows)
    inversions = solved + sum(len(plan.unsolved) for plan in found.plans)
    if inversions:
        yield f"solves {solved} of {count(inversions, 'inversion')}"
    yield from _much(found.rows)
    yield from _replicas(found.rows)
    unsolved = [text for plan in found.plans for text in unsolved_sentences(plan)]
    yield from unsolved[:MOST_UNSOLVED]
    if len(unsolved) > MOST_UNSOLVED:
        yield f"{count(len(unsolved) - MOST_UNSOLVED, 'more pod')} like that: -o json lists them"
    if any(row.move.strategy is StrategyKind.TEMPLATE for row in found.rows):
        yield "a template changes all pods of its workload: look again once they are replaced"
    without = sum(plan.without_usage for plan in found.plans)
    if without:
        yield f"{count(without, 'pod')} without usage: the kernel's order is by oom_score_adj alone for them"


def patches(found: Plans) -> Iterator[tuple[str, dict[str, Any]]]:
    """How each change is applied, and its strategic merge patch."""
    for row in found.rows:
        pod, strategy = row.move.pod, row.move.strategy
        if strategy is StrategyKind.TEMPLATE:
            kind, _, name = find_workload(pod)
            metadata = msgspec.structs.replace(pod.metadata, name=name)
            pod = msgspec.structs.replace(pod, kind=kind, metadata=metadata)
        how = escape(kubectl_command(pod, in_place=strategy is StrategyKind.IN_PLACE))
        how = _how(row.move) if strategy is StrategyKind.RECREATE else how
        yield how, build_patch(pod, row.move.edits)
