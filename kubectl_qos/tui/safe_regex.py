r"""Regular expressions that a person types into a filter, in a form that cannot hang the UI. Pure.

Python's `re` backtracks and has no timeout: `(a+)+$` against forty letters takes longer than anyone waits. So
an expression is read here first, and `re` is only handed what it answers in time quadratic in a short word:

- alternatives are written out (`web(a|b)` is `weba` and `webb`), at most MOST_BRANCHES of them;
- a group is not repeated, so repeats are never nested;
- two repeats that can take the same characters need something between them that neither can be taken for
  (`\d+-\d+` is fine, `\d+\d+` is refused);
- at each `.*` an expression falls into pieces that are looked for one after the other. That loses no match:
  a piece is a chain without branches, and the first match of lazy repeats is the one that ends first.

Not here: what the expressions are held against (filters.py).
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

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
    """A character, class or position, and how often it comes; `most` None is without an end."""

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
    """An expression; `branches` are alternatives, each of pieces that follow one another."""

    branches: tuple[tuple[re.Pattern[str], ...], ...]

    @staticmethod
    def parse(text: str) -> SafePattern:
        """The expression, whatever the case of letters. Raises InputError for one that is wrong or unsafe."""
        if len(text) > LONGEST_PATTERN:
            raise InputError(f"an expression has at most {LONGEST_PATTERN} characters, this one {len(text)}")
        reader = _Reader(text)
        branches = reader.alternatives()
        if reader.rest:
            raise InputError(f"{text}: there is no ( for this )")
        written = [[_written(text, piece) for piece in _pieces(one)] for one in branches]
        # Alternatives of one piece are looked for together: `re` tells by one letter which of them can begin.
        whole = "|".join(dict.fromkeys("".join(pieces) for pieces in written if len(pieces) < 2))
        together = [[whole]] if any(len(pieces) < 2 for pieces in written) else []
        apart = [pieces for pieces in written if len(pieces) > 1]
        return SafePattern(tuple(tuple(map(_compiled, pieces)) for pieces in (*together, *apart)))

    def found_in(self, word: str) -> bool:
        """Whether it matches somewhere in a word."""
        word = word[:LONGEST_WORD]
        return any(_in_turn(pieces, word) for pieces in self.branches)


def is_plain(text: str) -> bool:
    """Whether a text means itself as an expression too, so that looking for it is enough."""
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
        """What stands between `|`, up to the end or a `)`."""
        found = self._sequence()
        while self.rest.startswith("|"):
            self.rest = self.rest[1:]
            found = self._bounded(found + self._sequence())
        return found

    def _sequence(self) -> list[_Branch]:
        found: list[_Branch] = [()]
        while self.rest and self.rest[0] not in "|)":
            is_group = self.rest[0] == "("
            following = self._group() if is_group else [self._repeated(self._atom())]
            found = self._bounded([before + after for before in found for after in following])
        return found

    def _bounded(self, branches: list[_Branch]) -> list[_Branch]:
        if len(branches) > MOST_BRANCHES:
            raise InputError(f"{self._text}: too many alternatives, at most {MOST_BRANCHES} are looked for")
        return branches

    def _group(self) -> list[_Branch]:
        self.rest = self.rest[1:].removeprefix("?:")
        if self.rest.startswith("?"):
            raise InputError(f"{self._text}: only ( ) and (?: ) are known here")
        found = self.alternatives()
        if not self.rest.startswith(")"):
            raise InputError(f"{self._text}: a ) is missing")
        self.rest = self.rest[1:]
        least, most = self._times()
        if (least, most) == (0, 1):
            return [(), *found]
        if (least, most) != (1, 1):
            raise InputError(f"{self._text}: a group is not repeated here, only a character or a class is")
        return found

    def _atom(self) -> str:
        first = self.rest[0]
        size = 1
        if first in "*+?" or _COUNT.match(self.rest):
            raise InputError(f"{self._text}: there is nothing that {first} could repeat")
        if first == "\\":
            size = 2
            kind = self.rest[1:2]
            if not kind:
                raise InputError(f"{self._text}: something has to follow the backslash")
            if kind.isalnum() and kind not in _ESCAPED_KINDS and kind != "b":
                raise InputError(f"{self._text}: \\{kind} is not known here")
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
        """How often what was read comes; that a repeat is lazy makes no difference to whether it matches."""
        ends: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        found = ends.get(self.rest[:1])
        match = _COUNT.match(self.rest)
        if match is not None:
            least = int(match[1])
            most = int(match[3]) if match[3] else None if match[2] else least
            if max(least, most or 0) > MOST_TIMES or (most is not None and most < least):
                raise InputError(f"{self._text}: {match[0]} is no number of times up to {MOST_TIMES}")
            self.rest = self.rest[match.end() :]
            found = least, most
        elif found is not None:
            self.rest = self.rest[1:]
        else:
            return 1, 1
        self.rest = self.rest.removeprefix("?")
        if self.rest[:1] in {"*", "+", "?"} or _COUNT.match(self.rest):
            raise InputError(f"{self._text}: a repeat cannot be repeated")
        return found


def _pieces(branch: _Branch) -> list[list[_Item]]:
    pieces: list[list[_Item]] = [[]]
    for item in branch:
        if item.is_gap:
            pieces.append([])
        else:
            pieces[-1].append(item)
    return [piece for piece in pieces if piece]


def _written(text: str, piece: Sequence[_Item]) -> str:
    """What `re` is handed for a piece. Raises InputError for one that can take long."""
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
    """Which characters an atom can be, among enough of them to tell whether two atoms meet."""
    try:
        return _characters(source, frozenset(text))
    except re.error as error:
        raise InputError(f"{text}: {error.msg}") from None


@lru_cache(maxsize=1024)
def _characters(source: str, besides: frozenset[str]) -> frozenset[str]:
    atom = _compiled(source)
    return frozenset(one for one in besides.union(_PROBES) if atom.fullmatch(one))


def _compiled(source: str) -> re.Pattern[str]:
    """`re` warns of classes that may mean something else one day; that helps nobody who types."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return re.compile(source, re.IGNORECASE)
