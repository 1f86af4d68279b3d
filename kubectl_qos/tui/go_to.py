"""Where a person has been: back and forward, as in a browser. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from kubectl_qos.errors import InputError
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.tui.view import ListKind, View
from kubectl_qos.tui.view_model import ViewModel

MOST: Final = 100


class Detail(Enum):
    """The screens about one pod."""

    EXPLAIN = auto()
    EDIT = auto()
    TREE = auto()
    COMPARE = auto()


@dataclass(frozen=True, slots=True)
class Location:
    """A place: what is listed, and the screen above it, of the pod as it was.

    `row` is the key of the row where the cursor was when the place was left.
    """

    view: View
    detail: Detail | None = None
    pod: Pod | None = None
    row: Hashable = field(default=None, compare=False)


class Navigation:
    """The places that were gone to, and which of them is shown."""

    def __init__(self, first: Location) -> None:
        self._places = [first]
        self._at = 0

    @property
    def place(self) -> Location:
        """The place that is shown."""
        return self._places[self._at]

    def go(self, place: Location) -> None:
        """Another place; what lay ahead is forgotten."""
        if place != self.place:
            self._places = [*self._places[: self._at + 1], place][-MOST:]
            self._at = len(self._places) - 1

    def replace(self, place: Location) -> None:
        """The same place, seen otherwise."""
        self._places[self._at] = place

    def back(self) -> Location | None:
        """The place before, None at the first."""
        return self._moved(-1)

    def forward(self) -> Location | None:
        """The place that was left with back, None at the last."""
        return self._moved(1)

    def _moved(self, by: int) -> Location | None:
        at = self._at + by
        if not 0 <= at < len(self._places):
            return None
        self._at = at
        return self.place


class Destination(Enum):
    """What a place is."""

    LIST = auto()
    CONTEXT = auto()
    UNDO = auto()
    KILLS = auto()
    SIMULATION = auto()
    HELP = auto()
    QUIT = auto()


@dataclass(frozen=True, slots=True)
class GoToTarget:
    """Where to go; `view` is what a list shows, `name` a context (None: choose) or node (None: the row's)."""

    goal: Destination
    view: View | None = None
    name: str | None = None


_LISTS: Final = {
    "cluster": ListKind.NODES,
    "nodes": ListKind.NODES,
    "node": ListKind.NODES,
    "no": ListKind.NODES,
    "ns": ListKind.NAMESPACES,
    "namespaces": ListKind.NAMESPACES,
    "namespace": ListKind.NAMESPACES,
    "workloads": ListKind.WORKLOADS,
    "wl": ListKind.WORKLOADS,
    "pods": ListKind.PODS,
    "pod": ListKind.PODS,
    "po": ListKind.PODS,
    "containers": ListKind.CONTAINERS,
    "co": ListKind.CONTAINERS,
}
_CONTEXT: Final = frozenset({"ctx", "context", "contexts"})
_SIMULATION: Final = frozenset({"sim", "simulate"})
_OTHERS: Final = {
    "undo": Destination.UNDO,
    "kills": Destination.KILLS,
    "help": Destination.HELP,
    "q": Destination.QUIT,
    "quit": Destination.QUIT,
}
_SHOWN: Final = (
    "nodes, node NAME, ns NAME, workloads NAMESPACE, pods NAMESPACE, containers NAMESPACE, sim NODE, kills,"
    " ctx, undo, help, q"
)


def parse_target(text: str, facts: ViewModel | None) -> GoToTarget:
    """The place that was typed. Raises InputError for one that is not there."""
    word, _, name = text.strip().partition(" ")
    word, name = word.lower(), name.strip()
    if word in _CONTEXT:
        return GoToTarget(Destination.CONTEXT, name=name or None)
    if word in _SIMULATION:
        if name and name not in _nodes(facts):
            raise InputError(f"there is no node {name!r}")
        return GoToTarget(Destination.SIMULATION, name=name or None)
    if word in _OTHERS:
        return GoToTarget(_OTHERS[word])
    if word not in _LISTS:
        raise InputError(f"there is no place {word!r}", hint=f"places are: {_SHOWN}")
    kind = _LISTS[word]
    if not name or name == "all":
        return GoToTarget(Destination.LIST, View(kind))
    if kind is ListKind.NODES:
        if name not in _nodes(facts):
            raise InputError(f"there is no node {name!r}")
        return GoToTarget(Destination.LIST, View(node=name))
    if facts is None or name not in facts.namespaces:
        raise InputError(f"there are no pods in namespace {name!r}")
    return GoToTarget(
        Destination.LIST, View(ListKind.PODS if kind is ListKind.NAMESPACES else kind, namespace=name)
    )


def completions(text: str, facts: ViewModel | None) -> Iterator[str]:
    """The places that begin with what was typed."""
    return (one for one in _places(facts) if text and one.startswith(text) and one != text)


def _places(facts: ViewModel | None) -> Iterator[str]:
    yield from (
        "nodes",
        "namespaces",
        "workloads",
        "pods",
        "containers",
        "ctx",
        "undo",
        "kills",
        "sim",
        "help",
        "quit",
        "pods all",
    )
    for word in ("node", "sim"):
        yield from (f"{word} {name}" for name in _nodes(facts))
    if facts is not None:
        for word in ("pods", "ns", "workloads", "containers"):
            yield from (f"{word} {name}" for name in facts.namespaces if name)


def _nodes(facts: ViewModel | None) -> list[str]:
    return [group.key for group in facts.nodes if group.key] if facts is not None else []
