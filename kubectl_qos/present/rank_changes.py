"""The cheapest changes of a pod's rank in words; they are found in analysis/rank_changes.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubectl_qos.analysis.pod_table import PodRow
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.present.format import full_name
from kubectl_qos.present.output import Line, Section, sentences
from kubectl_qos.qos.oom_score import is_mirror, is_static

if TYPE_CHECKING:
    from kubectl_qos.analysis.rank_changes import RankChange


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
