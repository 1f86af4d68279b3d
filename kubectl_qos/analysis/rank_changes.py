"""The cheapest changes that let a pod outlive others on a full node."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from kubectl_qos.edit.edits import Edit
from kubectl_qos.edit.goals import outlive, reach_class
from kubectl_qos.edit.preview import Effects, preview
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.qos.qos_class import QosClass

_OTHERS: Final = (1, 4)
"""How many pods further on in the kill order those are that are outlived."""


class RankChange(NamedTuple):
    """Edits with their effects: the pod outlives another one, or is Guaranteed where that is None."""

    edits: tuple[Edit, ...]
    effects: Effects
    outlives: Pod | None


def cheapest_changes(pod: Pod, snapshot: Snapshot) -> Iterator[RankChange]:
    """Find the least requests with which a ranked pod outlives the next ones, and a way to Guaranteed."""
    setup, neighbours = snapshot.setup(pod.node_name), snapshot.by_node().get(pod.node_name, ())
    effects = preview(pod, (), setup, neighbours, snapshot.usage).effects
    ranked = [row.pod for row in effects.ranking_before.pods if row.rank is not None]
    place = next(index for index, other in enumerate(ranked) if other.metadata == pod.metadata)
    for other in [ranked[place + further] for further in _OTHERS if place + further < len(ranked)]:
        goal = outlive(pod, other, setup, neighbours, snapshot.usage)
        if goal.obstacle is None and goal.edits:
            then = preview(pod, goal.edits, setup, neighbours, snapshot.usage)
            yield RankChange(tuple(goal.edits), then.effects, other)
    goal = reach_class(pod, QosClass.GUARANTEED, setup.release)
    if goal.edits and not goal.to_choose:
        then = preview(pod, goal.edits, setup, neighbours, snapshot.usage)
        yield RankChange(tuple(goal.edits), then.effects, None)
