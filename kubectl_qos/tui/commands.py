"""What is typed after `:`: places to go to, and their completion. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from kubectl_qos.errors import InputError
from kubectl_qos.tui.facts import Facts
from kubectl_qos.tui.view import Kind, View


class Goal(Enum):
    """What a place is."""

    LIST = auto()
    CONTEXT = auto()
    UNDO = auto()
    KILLS = auto()
    SIMULATION = auto()
    HELP = auto()
    QUIT = auto()


@dataclass(frozen=True, slots=True)
class Place:
    """Where to go; `view` is what a list shows, `name` a context (None: choose) or node (None: the row's)."""

    goal: Goal
    view: View | None = None
    name: str | None = None


_LISTS: Final = {
    "cluster": Kind.NODES,
    "nodes": Kind.NODES,
    "node": Kind.NODES,
    "no": Kind.NODES,
    "ns": Kind.NAMESPACES,
    "namespaces": Kind.NAMESPACES,
    "namespace": Kind.NAMESPACES,
    "workloads": Kind.WORKLOADS,
    "wl": Kind.WORKLOADS,
    "pods": Kind.PODS,
    "pod": Kind.PODS,
    "po": Kind.PODS,
    "containers": Kind.CONTAINERS,
    "co": Kind.CONTAINERS,
}
_CONTEXT: Final = frozenset({"ctx", "context", "contexts"})
_SIMULATION: Final = frozenset({"sim", "simulate"})
_OTHERS: Final = {
    "undo": Goal.UNDO,
    "kills": Goal.KILLS,
    "help": Goal.HELP,
    "q": Goal.QUIT,
    "quit": Goal.QUIT,
}
_SHOWN: Final = (
    "nodes, node NAME, ns NAME, workloads NAMESPACE, pods NAMESPACE, containers NAMESPACE, sim NODE, kills,"
    " ctx, undo, help, q"
)


def place_of(text: str, facts: Facts | None) -> Place:
    """The place that was typed. Raises InputError for one that is not there."""
    word, _, name = text.strip().partition(" ")
    word, name = word.lower(), name.strip()
    if word in _CONTEXT:
        return Place(Goal.CONTEXT, name=name or None)
    if word in _SIMULATION:
        if name and name not in _nodes(facts):
            raise InputError(f"there is no node {name!r}")
        return Place(Goal.SIMULATION, name=name or None)
    if word in _OTHERS:
        return Place(_OTHERS[word])
    if word not in _LISTS:
        raise InputError(f"there is no place {word!r}", hint=f"places are: {_SHOWN}")
    kind = _LISTS[word]
    if not name or name == "all":
        return Place(Goal.LIST, View(kind))
    if kind is Kind.NODES:
        if name not in _nodes(facts):
            raise InputError(f"there is no node {name!r}")
        return Place(Goal.LIST, View(node=name))
    if facts is None or name not in facts.namespaces:
        raise InputError(f"there are no pods in namespace {name!r}")
    return Place(Goal.LIST, View(Kind.PODS if kind is Kind.NAMESPACES else kind, namespace=name))


def completions(text: str, facts: Facts | None) -> Iterator[str]:
    """The places that begin with what was typed."""
    return (one for one in _places(facts) if text and one.startswith(text) and one != text)


def _places(facts: Facts | None) -> Iterator[str]:
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


def _nodes(facts: Facts | None) -> list[str]:
    return [group.key for group in facts.nodes if group.key] if facts is not None else []
