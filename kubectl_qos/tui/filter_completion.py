"""What tab adds to a filter: names of columns, and what those columns can hold. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from kubectl_qos.errors import UsageError
from kubectl_qos.present.columns import BY_KEY, column_named
from kubectl_qos.tui.facts import Facts
from kubectl_qos.tui.filters import CHOICES, split_negation


def completed_filter(text: str, facts: Facts | None) -> str | None:
    """The text with its last word completed; None if there is nothing to add."""
    word = text.rpartition(" ")[2]
    if not word or "-l" in text.split():
        return None
    _, bare = split_negation(word)
    name, colon, typed = bare.partition(":")
    if not colon:
        found = _beginning_so(name, (f"{key}:" for key in BY_KEY))
        return None if found is None else text.removesuffix(name) + found
    typed = typed.removeprefix("=")
    found = _beginning_so(typed, _values(name, facts))
    return None if found is None else text.removesuffix(typed) + found


def _beginning_so(typed: str, words: Iterable[str]) -> str | None:
    if not typed:
        return None
    folded = typed.casefold()
    return next((word for word in words if word.casefold().startswith(folded) and word != typed), None)


def _values(name: str, facts: Facts | None) -> Iterable[str]:
    try:
        key = column_named(name).key
    except UsageError:
        return ()
    if key in CHOICES:
        return CHOICES[key]
    if facts is None:
        return ()
    if key == "node":
        return [group.key for group in facts.nodes if group.key]
    return filter(None, facts.namespaces) if key == "namespace" else ()
