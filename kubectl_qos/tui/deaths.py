"""What was killed, read and worked out in a thread: a message brings it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from textual.message import Message

from kubectl_qos.cluster.source import Chronicle, Source
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.events import Happenings
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.qos.kill_facts import Kill
from kubectl_qos.qos.kills import kills_of
from kubectl_qos.tui.facts import Facts
from kubectl_qos.tui.live import defect


class Whose(NamedTuple):
    """Whose deaths: of one node, of one namespace, of all where neither is named."""

    node: str | None
    namespace: str | None

    def has(self, pod: Pod) -> bool:
        """Whether a pod is meant."""
        in_namespace = self.namespace is None or pod.metadata.namespace == self.namespace
        return in_namespace and (self.node is None or pod.node_name == self.node)


class DeathsRead(Message):
    """The events that were read, and the deaths, the newest first; or why there are none to be had."""

    def __init__(self, found: tuple[Happenings, Sequence[Kill]] | QosError) -> None:
        super().__init__()
        self.found = found


def deaths_read(source: Source, facts: Facts, whose: Whose, known: Happenings | None) -> DeathsRead:
    """Ask for events, where they are not known; runs in a thread."""
    try:
        events = known
        if events is None:
            events = Happenings(of_nodes=False)
            if isinstance(source, Chronicle):
                events = source.happenings(whose.namespace)
        kills = kills_of(
            facts.snapshot,
            events,
            wanted=lambda pod: facts.scope.matches(pod) and whose.has(pod),
            outside_pods=False,
        )
        return DeathsRead((events, kills))
    except QosError as error:
        return DeathsRead(error)
    except Exception as error:  # noqa: BLE001 - a thread's exception has nobody else to go to
        return DeathsRead(defect(error))
