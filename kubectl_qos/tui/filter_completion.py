"""What tab adds to a filter: names of columns, and what those columns can hold. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from kubectl_qos.errors import InputError
from kubectl_qos.tui.facts import Facts
from kubectl_qos.tui.filters import PODS, Fields, split_negation


def filter_completions(text: str, facts: Facts | None, fields: Fields = PODS) -> list[str]:
    """The text with its last word completed, in every way that there is."""
    word = text.rpartition(" ")[2]
    if not word or "-l" in text.split():
        return []
    _, bare = split_negation(word)
    name, colon, typed = bare.partition(":")
    if not colon:
        before, words = text.removesuffix(name), _beginning_so(name, (f"{key}:" for key in fields.columns))
    else:
        typed = typed.removeprefix("=")
        before, words = text.removesuffix(typed), _beginning_so(typed, _values(name, facts, fields))
    return [before + word for word in words]


def _beginning_so(typed: str, words: Iterable[str]) -> list[str]:
    folded = typed.casefold()
    return [word for word in words if typed and word.casefold().startswith(folded) and word != typed]


def _values(name: str, facts: Facts | None, fields: Fields) -> Iterable[str]:
    try:
        column = fields.column(name)
    except InputError:
        return ()
    if column.choices:
        return column.choices
    if facts is None:
        return ()
    if column.key == "node":
        return [group.key for group in facts.nodes if group.key]
    return filter(None, facts.namespaces) if column.key == "namespace" else ()
