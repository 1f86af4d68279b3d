"""A pod's score in parts with its formula, and the cheapest changes of its rank.

Not here: the proof of class, score and rank (explanation.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kubectl_qos.analysis.pod_table import PodRow
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.present.format import full_name
from kubectl_qos.present.output import Line, Section, sentences
from kubectl_qos.present.reasons import score_formula
from kubectl_qos.qos.oom_score import Kernel, is_mirror, is_static, kernel_formula

if TYPE_CHECKING:
    from kubectl_qos.analysis.rank_changes import RankChange


class ScoreParts(NamedTuple):
    """The oom_score of the container that is killed first, in parts that add up to it.

    `base` is what every process has, `adj` what class and request add or take, `usage` what its memory adds,
    each in points of 2000, not in bytes; `formula` has the numbers.
    """

    container: str
    base: int
    adj: int
    usage: int
    score: int
    formula: str


_BASE: Final = 667
"""oom_score of a process that uses nothing and has oom_score_adj 0, of 2000 (`proc_oom_score`)."""
MOST_SCORE: Final = 2000


def score_parts(row: PodRow | None, snapshot: Snapshot) -> ScoreParts | None:
    """The parts of a pod's score; None where one of them is unknown."""
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
    formula = score_formula(used, row.adj, node)
    return ScoreParts(row.worst, base, adj, row.score - base - adj, row.score, formula)


def cheapest_section(pod: Pod, row: PodRow | None, snapshot: Snapshot) -> Section | None:
    """The least memory requests that let a pod outlive the next ones, and what makes it Guaranteed.

    It searches: a pod of a node with 500 pods takes some 100 ms. None where nothing is to be had; of a static
    pod it says where it is changed.
    """
    if is_static(pod) or is_mirror(pod):
        from kubectl_qos.present.effects import OF_FILE

        return Section("Where to change it", lines=sentences(OF_FILE))
    if row is None or row.rank is None or pod.kind != "Pod":
        return None
    from kubectl_qos.analysis.rank_changes import cheapest_changes

    changes = (_change_line(pod, change) for change in cheapest_changes(pod, snapshot))
    lines = {line.text: line for line in changes}  # the last one of the same does most
    return Section("Cheapest changes for a full node", lines=tuple(lines.values())) if lines else None


def _change_line(pod: Pod, change: RankChange) -> Line:
    from kubectl_qos.present.effects import edits_text, moment

    effects, outlived = change.effects, change.outlives
    what = "is Guaranteed" if outlived is None else f"outlives {full_name(outlived.namespace, outlived.name)}"
    when = moment(effects.rank_when, effects.restarting_later, effects.when)
    return Line(edits_text(pod, change.edits), f"{what}: rank {effects.rank_after} {when}")
