"""What a node is like, worked out in a thread: a message brings it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from textual.message import Message

from kubectl_qos.cluster.source import Source
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.events import EventList
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.qos.kills.analyze import Kill, find_kills
from kubectl_qos.qos.simulation.node_state import NodeState, build_node_state
from kubectl_qos.tui.follower import unexpected_error
from kubectl_qos.tui.view_model import ViewModel


class NodeStateBuilt(Message):
    """What a node is like by those facts; None where it is not among them, an error where it is not known."""

    def __init__(self, facts: ViewModel, found: NodeState | QosError | None) -> None:
        super().__init__()
        self.facts = facts
        self.found = found


def load_node_state(node: str, facts: ViewModel) -> NodeStateBuilt:
    """What the node is like; runs in a thread, where a node of 500 pods takes 50 ms."""
    snapshot = facts.snapshot
    try:
        pods = snapshot.by_node().get(node, ())
        if node not in snapshot.nodes and not pods:
            return NodeStateBuilt(facts, None)
        setup = snapshot.setup(node)
        ours = [default_pod(pod, setup.release) for pod in pods]
        return NodeStateBuilt(facts, build_node_state(ours, setup, snapshot.usage))
    except QosError as error:
        return NodeStateBuilt(facts, error)
    except Exception as error:  # noqa: BLE001 - a thread's exception has nobody else to go to
        return NodeStateBuilt(facts, unexpected_error(error))


class KillScope(NamedTuple):
    """Whose deaths: of one node, of one namespace, of all where neither is named."""

    node: str | None
    namespace: str | None

    def has(self, pod: Pod) -> bool:
        """Whether a pod is meant."""
        in_namespace = self.namespace is None or pod.metadata.namespace == self.namespace
        return in_namespace and (self.node is None or pod.node_name == self.node)


class KillsLoaded(Message):
    """The events that were read, and the deaths, the newest first; or why there are none to be had."""

    def __init__(self, found: tuple[EventList, Sequence[Kill]] | QosError) -> None:
        super().__init__()
        self.found = found


def load_kills(source: Source, facts: ViewModel, whose: KillScope, known: EventList | None) -> KillsLoaded:
    """Ask for events, where they are not known; runs in a thread."""
    try:
        events = known if known is not None else source.event_list(whose.namespace)
        kills = find_kills(
            facts.snapshot,
            events,
            is_included=lambda pod: facts.scope.matches(pod) and whose.has(pod),
            outside_pods=False,
        )
        return KillsLoaded((events, kills))
    except QosError as error:
        return KillsLoaded(error)
    except Exception as error:  # noqa: BLE001 - a thread's exception has nobody else to go to
        return KillsLoaded(unexpected_error(error))
