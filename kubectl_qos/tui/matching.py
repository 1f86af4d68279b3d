r"""Match what a person types against the names of pods: regular expressions and fuzzy search. Pure.

Python's `re` backtracks and has no timeout: `(a+)+$` against forty letters takes longer than anyone waits. So
an expression is parsed here first, and `re` only gets what it answers in time quadratic in a short word:

- alternatives are written out (`web(a|b)` is `weba` and `webb`), at most MOST_BRANCHES of them;
- a group is not repeated, so repeats are never nested;
- two repeats that can take the same characters need something between them that neither can take
  (`\d+-\d+` is fine, `\d+\d+` is refused);
- at each `.*` an expression is split into pieces that are searched one after the other. That loses no match:
  a piece is a chain without branches, and the first match of lazy repeats is the one that ends first.

No library replaces this. The timeout of `regex` is that of one search, not of 150,000, and its compiler has
none: `((((a{99}){99}){99}){99})` takes 10 s and 4 GB. RE2 takes 5 times as long and has no wheels for musl.
Textual's fuzzy search takes 10 to 60 times as long, and exponentially long if letters repeat.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Final

from kubectl_qos.analysis.pod_table import PodRow
from kubectl_qos.errors import InputError

LONGEST_PATTERN: Final = 100
LONGEST_WORD: Final = 512
"""Names have at most 253 characters; a manifest can hold anything."""
MOST_BRANCHES: Final = 64
MOST_TIMES: Final = 253

_SPECIAL: Final = frozenset("\\^$.|?*+()[]")
_COUNT: Final = re.compile(r"\{(\d{1,4})(,?)(\d{0,4})\}", re.ASCII)
_CLASS: Final = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_ESCAPED_KINDS: Final = frozenset("dDwWsS")
_PROBES: Final = "".join(map(chr, range(128))) + "\xe9\xdf\u0131\u017f\u212a\u2260\u0661"


@dataclass(frozen=True, slots=True)
class _Item:
    """A character, class or position, and how often it is repeated; `most` None is without limit."""

    source: str
    least: int = 1
    most: int | None = 1

    @property
    def varies(self) -> bool:
        return self.least != self.most

    @property
    def is_gap(self) -> bool:
        return self.source == "." and self.most is None


_Branch = tuple[_Item, ...]


@dataclass(frozen=True, slots=True)
class SafePattern:
    """An expression; `branches` are alternatives, each a sequence of pieces."""

    branches: tuple[tuple[re.Pattern[str], ...], ...]

    @staticmethod
    def parse(text: str) -> SafePattern:
        """Parse an expression, ignoring case. Raises InputError for an invalid or unsafe one."""
        if len(text) > LONGEST_PATTERN:
            raise InputError(f"an expression has at most {LONGEST_PATTERN} characters, this one {len(text)}")
        reader = _Reader(text)
        branches = reader.alternatives()
        if reader.rest:
            raise InputError(f"{text}: there is no ( for this )")
        written = [[_written(text, piece) for piece in _pieces(branch)] for branch in branches]
        # Alternatives of one piece are searched together: `re` tells by one letter which of them can begin.
        whole = "|".join(dict.fromkeys("".join(pieces) for pieces in written if len(pieces) < 2))
        together = [[whole]] if any(len(pieces) < 2 for pieces in written) else []
        apart = [pieces for pieces in written if len(pieces) > 1]
        return SafePattern(tuple(tuple(map(_compiled, pieces)) for pieces in (*together, *apart)))

    def found_in(self, word: str) -> bool:
        """Return whether the expression matches somewhere in a word."""
        word = word[:LONGEST_WORD]
        return any(_in_turn(pieces, word) for pieces in self.branches)


def is_plain(text: str) -> bool:
    """Return whether a text is the same as an expression, so that a substring search is enough."""
    return _SPECIAL.isdisjoint(text) and _COUNT.search(text) is None


def _in_turn(pieces: Sequence[re.Pattern[str]], word: str) -> bool:
    start = 0
    for piece in pieces:
        match = piece.search(word, start)
        if match is None:
            return False
        start = match.end()
    return True


class _Reader:
    """Reads an expression from left to right into its branches."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.rest = text

    def alternatives(self) -> list[_Branch]:
        """Return the branches between `|`, up to the end or a `)`."""
        branches = self._sequence()
        while self.rest.startswith("|"):
            self.rest = self.rest[1:]
            branches = self._bounded(branches + self._sequence())
        return branches

    def _sequence(self) -> list[_Branch]:
        branches: list[_Branch] = [()]
        while self.rest and self.rest[0] not in "|)":
            is_group = self.rest[0] == "("
            following = self._group() if is_group else [self._repeated(self._atom())]
            branches = self._bounded([before + after for before in branches for after in following])
        return branches

    def _bounded(self, branches: list[_Branch]) -> list[_Branch]:
        if len(branches) > MOST_BRANCHES:
            raise InputError(f"{self._text}: too many alternatives, at most {MOST_BRANCHES} are supported")
        return branches

    def _group(self) -> list[_Branch]:
        self.rest = self.rest[1:].removeprefix("?:")
        if self.rest.startswith("?"):
            raise InputError(f"{self._text}: only ( ) and (?: ) are supported")
        branches = self.alternatives()
        if not self.rest.startswith(")"):
            raise InputError(f"{self._text}: a ) is missing")
        self.rest = self.rest[1:]
        least, most = self._times()
        if (least, most) == (0, 1):
            return [(), *branches]
        if (least, most) != (1, 1):
            raise InputError(f"{self._text}: groups cannot be repeated, only characters and classes")
        return branches

    def _atom(self) -> str:
        first = self.rest[0]
        size = 1
        if first in "*+?" or _COUNT.match(self.rest):
            raise InputError(f"{self._text}: there is nothing that {first} could repeat")
        if first == "\\":
            size = 2
            kind = self.rest[1:2]
            if not kind:
                raise InputError(f"{self._text}: a character must follow the backslash")
            if kind.isalnum() and kind not in _ESCAPED_KINDS and kind != "b":
                raise InputError(f"{self._text}: \\{kind} is not supported")
        elif first == "[":
            match = _CLASS.match(self.rest)
            if match is None:
                raise InputError(f"{self._text}: a ] is missing")
            size = match.end()
        source, self.rest = self.rest[:size], self.rest[size:]
        if first == "$":
            return r"\Z"
        return source if first in r"\[.^" else re.escape(source)

    def _repeated(self, source: str) -> _Branch:
        least, most = self._times()
        if source in {"^", r"\Z", r"\b"} and (least, most) != (1, 1):
            raise InputError(f"{self._text}: a position cannot be repeated")
        item = _Item(source, least, most)
        if item.is_gap and least:
            return (_Item(source, least, least), _Item(source, 0, None))
        return (item,)

    def _times(self) -> tuple[int, int | None]:
        """Return how often the atom before is repeated; a lazy repeat matches the same words."""
        ends: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        times = ends.get(self.rest[:1])
        match = _COUNT.match(self.rest)
        if match is not None:
            least = int(match[1])
            most = int(match[3]) if match[3] else None if match[2] else least
            if max(least, most or 0) > MOST_TIMES or (most is not None and most < least):
                raise InputError(f"{self._text}: {match[0]} is not a number of times up to {MOST_TIMES}")
            self.rest = self.rest[match.end() :]
            times = least, most
        elif times is not None:
            self.rest = self.rest[1:]
        else:
            return 1, 1
        self.rest = self.rest.removeprefix("?")
        if self.rest[:1] in {"*", "+", "?"} or _COUNT.match(self.rest):
            raise InputError(f"{self._text}: a repeat cannot be repeated")
        return times


def _pieces(branch: _Branch) -> list[list[_Item]]:
    pieces: list[list[_Item]] = [[]]
    for item in branch:
        if item.is_gap:
            pieces.append([])
        else:
            pieces[-1].append(item)
    return [piece for piece in pieces if piece]


def _written(text: str, piece: Sequence[_Item]) -> str:
    """Return the expression for `re` of a piece. Raises InputError for one that can take long."""
    for index, item in enumerate(piece):
        taken = _taken(text, item.source)
        if not item.varies:
            continue
        for later in piece[index + 1 :]:
            others = _taken(text, later.source)
            if later.varies and taken & others:
                raise InputError(
                    f"{text}: two repeats that can take the same text take too long; put .* in their place"
                )
            if later.least and others and not taken & others:
                break
    return "".join(map(_item, piece))


def _item(item: _Item) -> str:
    if not item.varies:
        return item.source if item.least == 1 else f"{item.source}{{{item.least}}}"
    return f"{item.source}{{{item.least},{'' if item.most is None else item.most}}}?"


def _taken(text: str, source: str) -> frozenset[str]:
    """Return the characters that an atom can take, among enough of them to tell whether two atoms overlap."""
    try:
        return _characters(source, frozenset(text))
    except re.error as error:
        raise InputError(f"{text}: {error.msg}") from None


@lru_cache(maxsize=1024)
def _characters(source: str, added: frozenset[str]) -> frozenset[str]:
    atom = _compiled(source)
    return frozenset(character for character in added.union(_PROBES) if atom.fullmatch(character))


def _compiled(source: str) -> re.Pattern[str]:
    """Compile without `re`'s warnings of future changes, which are not for people who type."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return re.compile(source, re.IGNORECASE)


LONGEST_QUERY: Final = 100
_MANY: Final = 20_000
_MANY_SCATTERED: Final = 2_000
"""The most names that are compared for words, or for letters only: the first in kill order."""


def fuzzy_matches(query: str, rows: Sequence[PodRow], most: int) -> list[PodRow]:
    """Return the rows whose namespace/name has the letters of each word in their order, the best first.

    First those in which each word begins a part of the name, then those with each word, then those with the
    letters near each other; among equals the kill order decides.
    """
    words = query.casefold()[:LONGEST_QUERY].split()
    if not words:
        return list(rows[:most])
    best, whole = _with_words(words, rows, most)
    best += whole[: most - len(best)]
    if len(best) < most:
        best += _scattered(words, rows, most - len(best))
    return best


def _with_words(words: list[str], rows: Sequence[PodRow], most: int) -> tuple[list[PodRow], list[PodRow]]:
    """Return the rows with each word: those in which each begins a part, and the others."""
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
    others.sort(key=itemgetter(0))
    return best, [row for _, row in others]


def _scattered(words: list[str], rows: Sequence[PodRow], most: int) -> list[PodRow]:
    """Return the rows with the letters of each word, but not with each word."""
    first, *others = [_expression(word).search for word in words]
    matches: list[tuple[int, PodRow]] = []
    for row in rows:
        text = row.words
        if first(text) and all(search(text) for search in others):
            name = _name(row)
            distances = [_distance(word, name) for word in words]
            if None not in distances and not all(word in name for word in words):
                matches.append((sum([distance or 0 for distance in distances]), row))
                if len(matches) == _MANY_SCATTERED:
                    break
    matches.sort(key=itemgetter(0))
    return [row for _, row in matches[:most]]


def _expression(word: str) -> re.Pattern[str]:
    """Match the letters of a word in their order, without a space between them and without backtracking."""
    first, *others = map(re.escape, word)
    return re.compile(first + "".join([f"[^ {letter}]*+{letter}" for letter in others]))


def _distance(word: str, name: str) -> int | None:
    """Return the number of other letters between those of a word in a name, None if they are not in it."""
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
    return row.words.partition(" ")[0]
