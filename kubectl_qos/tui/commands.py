"""What is typed after `:`: places to go to, and their completion. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from kubectl_qos.errors import InputError
from kubectl_qos.tui.facts import Facts


class Goal(Enum):
    """What a place is."""

    NODES = auto()
    NAMESPACES = auto()
    PODS = auto()
    NODE = auto()
    HELP = auto()
    QUIT = auto()


@dataclass(frozen=True, slots=True)
class Place:
    """Where to go; `name` of a node or namespace, None for all of them."""

    goal: Goal
    name: str | None = None


_WORDS: Final = {
    "nodes": Goal.NODES,
    "ns": Goal.NAMESPACES,
    "namespaces": Goal.NAMESPACES,
    "pods": Goal.PODS,
    "po": Goal.PODS,
    "node": Goal.NODE,
    "no": Goal.NODE,
    "help": Goal.HELP,
    "q": Goal.QUIT,
    "quit": Goal.QUIT,
}
_SHOWN: Final = "nodes, ns, pods NAMESPACE, node NAME, help, q"


def place_of(text: str, facts: Facts | None) -> Place:
    """The place that was typed. Raises InputError for one that is not there."""
    word, _, name = text.strip().partition(" ")
    name = name.strip()
    goal = _WORDS.get(word.lower())
    if goal is None:
        raise InputError(f"there is no place {word!r}", hint=f"places are: {_SHOWN}")
    if goal in {Goal.NODES, Goal.NODE} and name:
        if name not in _nodes(facts):
            raise InputError(f"there is no node {name!r}")
        return Place(Goal.NODE, name)
    if goal is Goal.NODE:
        return Place(Goal.NODES)
    if goal in {Goal.PODS, Goal.NAMESPACES} and name not in {"", "all"}:
        if facts is None or name not in facts.namespaces:
            raise InputError(f"there are no pods in namespace {name!r}")
        return Place(Goal.PODS, name)
    return Place(goal)


def completed(text: str, facts: Facts | None) -> str | None:
    """The first place that begins with what was typed, None if there is none."""
    if not text:
        return None
    return next((one for one in _places(facts) if one.startswith(text) and one != text), None)


def _places(facts: Facts | None) -> Iterator[str]:
    yield from ("nodes", "ns", "pods", "help", "quit", "pods all")
    yield from (f"node {name}" for name in _nodes(facts))
    if facts is not None:
        yield from (f"pods {name}" for name in facts.namespaces if name)


def _nodes(facts: Facts | None) -> list[str]:
    return [group.key for group in facts.nodes if group.key] if facts is not None else []
