"""Finding names by some of their letters, as people type them in a hurry. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from kubectl_qos.present.pod_rows import PodRow

LONGEST_QUERY: Final = 100
_MANY: Final = 20_000
_MANY_SCATTERED: Final = 2_000
"""Of so many names with each word, or with its letters only, the first in the kill order are enough."""


def fuzzy_matches(query: str, rows: Sequence[PodRow], most: int) -> list[PodRow]:
    """The rows whose namespace/name has the letters of each word of the query in their order, the best first.

    Those come first in which each word begins a part of the name, then those that hold each word, then those
    with the letters near each other; among equals the kill order decides.
    """
    words = query.casefold()[:LONGEST_QUERY].split()
    if not words:
        return list(rows[:most])
    best, whole = _holding(words, rows, most)
    best += whole[: most - len(best)]
    if len(best) < most:
        best += _scattered(words, rows, most - len(best))
    return best


def _holding(words: list[str], rows: Sequence[PodRow], most: int) -> tuple[list[PodRow], list[PodRow]]:
    """The rows that hold each word: those in which each begins a part, and the others."""
    for word in words:
        rows = [row for row in rows if word in row.words]
    best: list[PodRow] = []
    others: list[tuple[int, PodRow]] = []
    for row in rows:
        name = _name(row)
        inside = 0
        for word in words:
            at = name.find(word)
            if at < 0:
                break
            while at > 0 and name[at - 1].isalnum():
                at = name.find(word, at + 1)
            inside += at < 0
        else:
            if inside:
                others.append((inside, row))
            else:
                best.append(row)
            if len(best) == most or len(others) == _MANY:
                break
    others.sort(key=_first)
    return best, [row for _, row in others]


def _scattered(words: list[str], rows: Sequence[PodRow], most: int) -> list[PodRow]:
    """The rows that have the letters of each word, but do not hold each word."""
    first, *others = [_expression(word).search for word in words]
    found: list[tuple[int, PodRow]] = []
    for row in rows:
        if first(row.words) and all(search(row.words) for search in others):
            name = _name(row)
            distances = [_distance(word, name) for word in words]
            if None not in distances and not all(word in name for word in words):
                found.append((sum([distance or 0 for distance in distances]), row))
                if len(found) == _MANY_SCATTERED:
                    break
    found.sort(key=_first)
    return [row for _, row in found[:most]]


def _expression(word: str) -> re.Pattern[str]:
    """The letters of a word in their order, with no space between them. Nothing is tried twice."""
    first, *others = map(re.escape, word)
    return re.compile(first + "".join([f"[^ {letter}]*+{letter}" for letter in others]))


def _distance(word: str, name: str) -> int | None:
    """How many other letters lie between those of a word in a name, None if they are not in it."""
    best = None
    start = name.find(word[0])
    while start >= 0:
        at = start
        for letter in word[1:]:
            at = name.find(letter, at + 1)
            if at < 0:
                return best
        distance = at + 1 - start - len(word)
        best = distance if best is None else min(best, distance)
        start = name.find(word[0], start + 1)
    return best


def _name(row: PodRow) -> str:
    """Namespace/name, whatever their case."""
    return row.words.partition(" ")[0]


def _first(pair: tuple[int, PodRow]) -> int:
    return pair[0]
