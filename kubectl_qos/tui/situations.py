"""What a node is like, worked out in a thread: a message brings it."""

from __future__ import annotations

from textual.message import Message

from kubectl_qos.errors import QosError
from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.qos.situation import Situation, situation_of
from kubectl_qos.tui.facts import Facts
from kubectl_qos.tui.live import defect


class SituationMade(Message):
    """What a node is like by those facts; None where it is not among them, an error where it is not known."""

    def __init__(self, facts: Facts, found: Situation | QosError | None) -> None:
        super().__init__()
        self.facts = facts
        self.found = found


def situation_made(node: str, facts: Facts) -> SituationMade:
    """What the node is like; runs in a thread, where a node of 500 pods takes 50 ms."""
    snapshot = facts.snapshot
    try:
        pods = snapshot.by_node().get(node, ())
        if node not in snapshot.nodes and not pods:
            return SituationMade(facts, None)
        setup = snapshot.setup(node)
        ours = [default_pod(pod, setup.release) for pod in pods]
        return SituationMade(facts, situation_of(ours, setup, snapshot.usage))
    except QosError as error:
        return SituationMade(facts, error)
    except Exception as error:  # noqa: BLE001 - a thread's exception has nobody else to go to
        return SituationMade(facts, defect(error))
