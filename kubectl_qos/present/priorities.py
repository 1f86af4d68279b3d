"""Plans of priorities in words: the table, the patches, and what cannot be solved."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from kubectl_qos.analysis.fix_list import MoveRow, PriorityPlans
from kubectl_qos.edit.edits import build_patch, kubectl_command
from kubectl_qos.edit.preview import StrategyKind
from kubectl_qos.edit.priorities import Inversion, Move, PriorityPlan, Unsolved, priority_of
from kubectl_qos.errors import first_few
from kubectl_qos.k8s.kinds import find_workload
from kubectl_qos.present.effects import edits_text, effect_moment
from kubectl_qos.present.findings import finding_line, obstacle_remedy, obstacle_sentence
from kubectl_qos.present.fix_sentences import far_above_usage, how_to_apply, requests_text
from kubectl_qos.present.format import count, escape, full_name
from kubectl_qos.present.killers import actor
from kubectl_qos.present.list_notes import NO_PODS_ON_NODES, no_usage_reason, unmeasured_notes
from kubectl_qos.present.output import NUMBER, Column, column, fitted_table
from kubectl_qos.qos.killers import BY_RANK, EVICTING

MOST_UNSOLVED: Final = 10


def problem_sentences(plans: PriorityPlans) -> Iterator[str]:
    """Yield why some nodes have no plan."""
    has_no_model = all(isinstance(problem, str) for problem in plans.problems)
    if not plans.plans and not plans.problems:
        yield NO_PODS_ON_NODES
    elif not plans.plans and not plans.snapshot.usage and has_no_model:
        yield no_usage_reason(plans.snapshot)
    for problem in plans.problems:
        if isinstance(problem, str):
            yield problem
        else:
            yield from unmeasured_notes(plans.snapshot, {problem.setup.node.name: problem})


def _outliving(inversions: Sequence[Inversion]) -> str:
    """Return the pods of lower priority that outlive a pod, and who kills it."""
    texts = []
    for killer in (BY_RANK, EVICTING):
        chosen = [inversion for inversion in inversions if inversion.killer is killer]
        lower = {inversion.lower: inversion.priorities[1] for inversion in chosen}
        pods = [f"{full_name(*key)} (priority {priority})" for key, priority in lower.items()]
        texts += [f"{first_few(pods, most=1)}, by the {actor(killer)}"] if pods else []
    return "; ".join(texts)


def move_sentence(move: Move) -> str:
    """Return a line: `shop/api-0 c requests.memory 512Mi → 820Mi, through deployment/api, when recreated`."""
    name = full_name(move.pod.namespace, move.pod.name)
    return (
        f"{name} {edits_text(move.pod, move.edits)}, {_how(move)}, {effect_moment(move.effects, move.when)}"
    )


def _how(move: Move) -> str:
    kind, _, name = find_workload(move.pod)
    return how_to_apply(move.strategy, kind, name)


def _object(row: MoveRow) -> str:
    workload = row.move.workload
    if workload is None:
        return full_name(row.move.pod.namespace, row.move.pod.name)
    name = full_name(workload.namespace, f"{workload.kind.lower()}/{workload.name}")
    return f"{name} ({count(len(row.moves), 'pod')})"


def _requests(row: MoveRow) -> str:
    plan, more = row.tightest
    pods = len(row.on_node(plan)) if row.move.workload is not None else None
    return requests_text(more, plan.free_bytes, pods)


COLUMNS: Final[tuple[Column[MoveRow], ...]] = (
    column("number", lambda row: row.number, "the number for --apply", NUMBER, header="N"),
    column(
        "node",
        lambda row: first_few([*dict.fromkeys(plan.node for plan, _ in row.moves)]),
        "the nodes' names",
    ),
    column("object", _object, "the pod to change, or the workload and how many of its pods"),
    column("priority", lambda row: priority_of(row.move.pod), "its priority", NUMBER),
    column(
        "outlives",
        lambda row: _outliving(row.solves),
        "the pods of lower priority that die after it now, and before it with the change",
        header="NOW DIES BEFORE",
    ),
    column("change", lambda row: edits_text(row.move.pod, row.move.edits), "each value before and after"),
    column("when", lambda row: effect_moment(row.move.effects, row.move.when), "when it takes effect"),
    column("requests", _requests, "how much more, of the node's allocatable memory"),
    column("how", lambda row: _how(row.move), "how it is applied"),
)


def lines(plans: PriorityPlans, *, headers: bool = True, width: int | None = None) -> Iterator[str]:
    """Yield the table, or that there is nothing to change."""
    if not plans.plans:
        yield from islice(problem_sentences(plans), 1)
    elif not plans.rows:
        is_fine = not any(plan.unsolved for plan in plans.plans)
        yield "nothing to change: no pod dies before one of lower priority" if is_fine else "no change helps"
    else:
        below, hidden_first = ("change", "outlives"), ("how", "requests", "when")
        yield from fitted_table(plans.rows, COLUMNS, width, below, hidden_first, headers=headers)


def unsolved_sentences(plan: PriorityPlan) -> Iterator[str]:
    """Yield which pods still die too early, one line for a pod and its obstacle, and what helps."""
    grouped = dict[tuple[object, ...], list[Unsolved]]()
    for unsolved in plan.unsolved:
        grouped.setdefault((unsolved.inversion.higher, unsolved.obstacle), []).append(unsolved)
    for equal in grouped.values():
        (inversion, obstacle), before = equal[0], _outliving([unsolved.inversion for unsolved in equal])
        name = f"{full_name(*inversion.higher)} (priority {inversion.priorities[0]})"
        why = filter(None, (obstacle_sentence(obstacle), obstacle_remedy(obstacle)))
        yield f"{name} still dies before {before}: {'; '.join(why)}"


def notes(plans: PriorityPlans) -> Iterator[str]:
    """Yield what stays and why, and what the plan is based on."""
    # Without a plan the first problem is the answer.
    yield from islice(problem_sentences(plans), 0 if plans.plans else 1, None)
    solved = sum(len(row.solves) for row in plans.rows)
    cases = solved + sum(len(plan.unsolved) for plan in plans.plans)
    if cases:
        fixed = "all" if solved == cases else str(solved)
        change = f"these changes fix {fixed} of them" if solved else "no change fixes any"
        yield f"in {count(cases, 'case')} a pod dies before one of lower priority; {change}"
    yield from far_above_usage((row.number, row.move.times_usage) for row in plans.rows)
    yield from (f"{number}: {finding_line(finding)}" for number, finding in plans.refusals)
    unsolved = [text for plan in plans.plans for text in unsolved_sentences(plan)]
    yield from unsolved[:MOST_UNSOLVED]
    if len(unsolved) > MOST_UNSOLVED:
        yield f"{count(len(unsolved) - MOST_UNSOLVED, 'more pod')} like these: see -o json"
    without = sum(plan.without_usage for plan in plans.plans)
    if without:
        yield f"{count(without, 'pod')} without usage: the kernel's order is by oom_score_adj alone for them"


def patches(plans: PriorityPlans) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield how each change is applied, and its strategic merge patch."""
    for row in plans.rows:
        pod, strategy = row.move.pod, row.move.strategy
        if strategy is StrategyKind.TEMPLATE:
            kind, _, name = find_workload(pod)
            metadata = msgspec.structs.replace(pod.metadata, name=name)
            pod = msgspec.structs.replace(pod, kind=kind, metadata=metadata)
        how = escape(kubectl_command(pod, in_place=strategy is StrategyKind.IN_PLACE))
        how = _how(row.move) if strategy is StrategyKind.RECREATE else how
        yield how, build_patch(pod, row.move.edits)
