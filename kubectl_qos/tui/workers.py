"""What a node is like, worked out in a thread: a message brings it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from textual.message import Message

from kubectl_qos.cluster.source import Source
from kubectl_qos.edit.history import HistoryStore
from kubectl_qos.edit.patch import PatchRequest
from kubectl_qos.edit.related import RelatedObjects
from kubectl_qos.edit.status import Progress
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.events import EventList
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.qos.kills.analyze import Kill, find_kills
from kubectl_qos.qos.simulation.node_state import NodeState, build_node_state
from kubectl_qos.tui.edit_target import EditTarget
from kubectl_qos.tui.follower import unexpected_error
from kubectl_qos.tui.view_model import ViewModel

if TYPE_CHECKING:
    from kubectl_qos.cluster.writer import Writer
    from kubectl_qos.edit.apply import ApplyResult, DryRunResult


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


T = TypeVar("T")


class RelatedLoaded(Message):
    """What there is around an object, or why that cannot be had; `subject` is whom it was asked for."""

    def __init__(self, subject: EditTarget, found: RelatedObjects | QosError) -> None:
        super().__init__()
        self.subject = subject
        self.found = found


class DryRunDone(Message):
    """The server's answer to the dry run of a request."""

    def __init__(self, request: PatchRequest, found: DryRunResult | QosError) -> None:
        super().__init__()
        self.request = request
        self.found = found


class ProgressChecked(Message):
    """How far a write has come, or why that cannot be seen now."""

    def __init__(self, found: Progress | QosError) -> None:
        super().__init__()
        self.found = found


@dataclass(frozen=True, slots=True, eq=False)
class ApplyJob:
    """One write that a person confirmed.

    Attributes:
        writer: of the cluster that was named in the question.
        rehearsed: what its server accepted in the dry run.
        name: what sentences call it: `pod shop/web-0 in place`.
        undoes: the id of the entry of the journal that it takes back, else empty.
    """

    writer: Writer
    dry_run_result: DryRunResult
    name: str
    undoes: str = ""


class ApplyDone(Message):
    """The answer to a write."""

    def __init__(self, job: ApplyJob, found: ApplyResult | QosError) -> None:
        super().__init__()
        self.job = job
        self.found = found


def load_related(subject: EditTarget) -> RelatedLoaded:
    """Ask for what bears on a change of the object."""
    return RelatedLoaded(subject, _answer(lambda: subject.source.related(subject.pod)))


def run_dry_run(writer: Writer, request: PatchRequest) -> DryRunDone:
    """The dry run."""
    return DryRunDone(request, _answer(lambda: writer.dry_run(request)))


def run_apply(job: ApplyJob, history: HistoryStore) -> ApplyDone:
    """Write, once."""
    return ApplyDone(job, _answer(lambda: job.writer.apply(job.dry_run_result, history, undoes=job.undoes)))


def check_apply_progress(writer: Writer, written: ApplyResult) -> ProgressChecked:
    """Look once at what became of a write."""
    return ProgressChecked(_answer(lambda: writer.progress(written)))


def _answer(ask: Callable[[], T]) -> T | QosError:
    try:
        return ask()
    except QosError as error:
        return error
    except Exception as error:  # noqa: BLE001 - a thread's exception has nobody else to go to
        return unexpected_error(error)
