"""Why a pod stands where it stands, in a line or two, for places without room for the whole explanation."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_qos.present.amounts import binary, escape
from kubectl_qos.present.rows import PodRow, RankedNode, Rows
from kubectl_qos.present.words import FLAG_MEANINGS, formula
from kubectl_qos.qos.prediction import ContainerPrediction, Prediction
from kubectl_qos.qos.ranking import Basis
from kubectl_qos.qos.reason import Rule


def why_lines(prediction: Prediction, row: PodRow, rows: Rows) -> Iterator[str]:
    """The verdict, the numbers behind it, and what its flags mean.

    Args:
        prediction: of the pod on its node.
        row: the pod's row.
        rows: the rows that it is among, with the ranking of its node.
    """
    name = escape(f"{row.pod.namespace}/{row.name}" if row.pod.namespace else row.name)
    yield f"{name} is {row.qos.value}{verdict(row, rows.nodes.get(row.node))}"
    yield _numbers(prediction, row)
    if row.flags:
        yield "; ".join(f"{flag}: {FLAG_MEANINGS[flag]}" for flag in row.flags)


def verdict(row: PodRow, node: RankedNode | None) -> str:
    """What follows the class: `, the next victim of worker-2` or its place in the order."""
    where = escape(row.node)
    if row.rank is None:
        if not where:
            return ", without a rank: it is on no node"
        if node is not None and node.basis is Basis.NOTHING:
            return ", rank unknown: the node's memory capacity is not known"
        return ", without a rank: it has no processes on a node"
    total = node.ranked if node is not None else 0
    of_node = f" of {where}" if where else ""
    if row.rank == 1:
        what = "one of the next victims" if row.tied else "the next victim"
        return f", {what}{of_node}: rank 1 of {total}, oom_score {row.score}"
    shared = " (shared)" if row.tied else ""
    on_node = f" on {where}" if where else ""
    return f", rank {row.rank}{shared} of {total}{on_node}, oom_score {row.score}"


def _numbers(prediction: Prediction, row: PodRow) -> str:
    found = _worst(prediction, row)
    text = escape(found.name)
    reason = found.oom_score_adj_reason
    if reason is None:
        low, high = found.oom_score_adj_range
        text += f": oom_score_adj {low}..{high}"
    elif reason.rule is Rule.ADJ_BURSTABLE:
        text += f": oom_score_adj = {formula(reason)}"
    else:
        text += f": oom_score_adj {found.oom_score_adj} ({formula(reason)})"
    if row.memory is None:
        return f"{text}; usage unknown"
    of = f" of {binary(row.limit)}" if row.limit is not None else ""
    return f"{text}; the pod uses {binary(row.memory)}{of}"


def _worst(prediction: Prediction, row: PodRow) -> ContainerPrediction:
    """The container by which the pod is ranked; without any the first one."""
    return next((one for one in prediction.containers if one.name == row.worst), prediction.containers[0])
