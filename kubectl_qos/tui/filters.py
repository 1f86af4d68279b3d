r"""Filters typed after `/`: terms that must all match, a label selector, and completion. Pure.

A term is a regular expression over names, node, class and flags, or COLUMN:value; `!` negates it.
A row has `words`, one text in small letters that is searched, and the same as lists: `own_words` of this row
alone, and `common_words`, which many rows have.

Python's `re` backtracks and has no timeout: `(a+)+$` against forty letters takes longer than anyone waits. So
an expression is parsed here first, and `re` only gets expressions that take at most quadratic time:

- alternatives are written out (`web(a|b)` is `weba` and `webb`), at most MOST_BRANCHES of them;
- a group is not repeated, so repeats are never nested;
- two repeats that can take the same characters need something between them that neither can take
  (`\d+-\d+` is fine, `\d+\d+` is refused);
- at each `.*` an expression is split into pieces that are searched one after the other. That loses no match:
  a piece is a chain without branches, and the first match of lazy repeats is the one that ends first.

No library replaces this. The timeout of `regex` is that of one search, not of 150,000, and its compiler has
none: `((((a{99}){99}){99}){99})` takes 10 s and 4 GB. RE2 takes 5 times as long and has no wheels for musl.
"""

from __future__ import annotations

import operator
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, TypeVar

from kubectl_qos.errors import InputError, QuantityError, UsageError
from kubectl_qos.k8s.quantity import Quantity, parse_duration, parse_time
from kubectl_qos.k8s.selectors import Selector
from kubectl_qos.present.format import age, mebibytes
from kubectl_qos.present.output import Column, ColumnType, find_column
from kubectl_qos.present.pod_columns import BY_KEY
from kubectl_qos.tui.view_model import ViewModel

RowT = TypeVar("RowT")

Test = Callable[[Any, datetime | None], bool]

LONGEST_FILTER: Final = 1000

_COLUMN: Final = re.compile(r"(%?[^\W\d][\w-]*):(.*)", re.DOTALL)
_OPERATOR: Final = re.compile(r">=|<=|>|<|=|")
_SELECTOR: Final = re.compile(r"(?:^|(?<=\s))(!?)\s*-l(?=\s|$|\S*=)")
_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


@dataclass(frozen=True, slots=True)
class Fields:
    """What a filter can refer to: the columns of a list by key, and labels if its rows have any."""

    columns: Mapping[str, Column[Any]]
    labels: Callable[[Any], Mapping[str, str] | None] | None

    def column(self, name: str) -> Column[Any]:
        """Return the column of a name. Raises InputError with the columns that exist."""
        try:
            return find_column(name, self.columns)
        except UsageError:
            hint = f"columns are: {', '.join(self.columns)}"
            raise InputError(f"unknown column {name!r}", hint=hint) from None


PODS: Final = Fields(BY_KEY, lambda row: row.pod.metadata.labels)


@dataclass(frozen=True, slots=True)
class Term:
    """A condition as typed; terms of less `cost` are tested first."""

    text: str
    cost: int = field(compare=False)
    test: Test = field(compare=False)
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts in small letters that the words of a row must contain, and texts that they must not."""

    required: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.required or self.excluded)

    def selected(self, rows: Sequence[Any]) -> Sequence[Any]:
        for text in self.required:
            rows = [row for row in rows if text in row.name or text in row.words]  # Names need no joining.
        for text in self.excluded:
            rows = [row for row in rows if text not in row.words]
        return rows

    def implies(self, other: Texts) -> bool:
        """Return whether `other` certainly selects every row that this does, as `web` does for `web-1`."""
        return all(any(text in own for own in self.required) for text in other.required) and all(
            any(own in text for own in self.excluded) for text in other.excluded
        )


@dataclass(frozen=True, slots=True)
class RowFilter:
    """A filter as typed, and its conditions; an empty one selects every row."""

    text: str = ""
    texts: Texts = field(default=Texts(), compare=False)
    terms: tuple[Term, ...] = field(default=(), compare=False)

    @staticmethod
    def parse(text: str, fields: Fields = PODS) -> RowFilter:
        """Parse `web`, `!^db-`, `node:worker-2 memory:>1Gi` or `-l app=web`. Raises InputError."""
        typed = text.strip()
        if len(typed) > LONGEST_FILTER:
            raise InputError(f"a filter has at most {LONGEST_FILTER} characters, this one {len(typed)}")
        selector, words = _split(typed, fields)
        texts, others = _terms(words, fields)
        terms = sorted([*selector, *others], key=lambda term: term.cost)
        return RowFilter(typed, texts, tuple(terms))

    def __bool__(self) -> bool:
        return bool(self.texts or self.terms)

    def selected(self, rows: Sequence[RowT], now: datetime | None = None) -> Sequence[RowT]:
        """Return the selected rows; ages are counted to `now`, and without it unknown.

        Each term goes through all rows, which takes half as long as all terms for each row.
        """
        rows = self.texts.selected(rows)
        for term in self.terms:
            test, negated = term.test, term.negated
            rows = [row for row in rows if test(row, now) is not negated]
        return rows

    def implies(self, other: RowFilter) -> bool:
        """Return whether `other`, a filter of the same list, surely selects every row that this one does."""
        return self.texts.implies(other.texts) and set(self.terms) >= set(other.terms)


def split_negation(word: str) -> tuple[bool, str]:
    """Return whether a word is negated, and what follows its `!`."""
    bare = word.lstrip("!")
    return (len(word) - len(bare)) % 2 == 1, bare


def _split(typed: str, fields: Fields) -> tuple[list[Term], str]:
    """Split a filter into its terms and the label selector at its end, if there is one."""
    match = _SELECTOR.search(typed)
    if match is None:
        return [], typed
    labels = fields.labels
    if labels is None:
        raise InputError("-l selects pods by their labels; these are not pods", hint="list pods for that")
    words, text = typed[: match.start()], typed[match.end() :].strip()
    selector = Selector.parse(text)
    if not selector.requirements:
        return [], words
    return [Term(f"-l {text}", 1, lambda row, _: selector.matches(labels(row)), bool(match[1]))], words


def _terms(typed: str, fields: Fields) -> tuple[Texts, list[Term]]:
    """Return the plain texts, and every other condition."""
    required: list[str] = []
    excluded: list[str] = []
    terms: list[Term] = []
    for word in re.sub(r"(^|\s)(!+)\s+", r"\1\2", typed).split():
        negated, bare = split_negation(word)
        column = _COLUMN.fullmatch(bare)
        if column is not None:
            test = _column_test(fields.column(column[1]), column[2])
            if test is not None:
                terms.append(Term(bare, 0, test, negated))
        elif bare and is_plain(bare):
            (excluded if negated else required).append(bare.casefold())
        elif bare:
            terms.append(Term(bare, 3, _expression(bare), negated))
    return Texts(tuple(required), tuple(excluded)), terms


def _expression(text: str) -> Test:
    """Return the test of an expression, in which ^ and $ are the ends of each word of a row."""
    found_in = SafePattern.parse(text).found_in
    found_in_common = lru_cache(maxsize=8192)(found_in)

    def test(row: Any, _: datetime | None) -> bool:
        return any(map(found_in, row.own_words)) or any(map(found_in_common, row.common_words))

    return test


def _column_test(column: Column[Any], text: str) -> Test | None:
    """Return the test of COLUMN:text; None while nothing is typed after the colon."""
    if not text:
        return None
    match = _OPERATOR.match(text)
    sign = match[0] if match is not None else ""
    value = text[len(sign) :]
    if not value:
        raise InputError(f"{column.key}: a value must follow {sign}")
    if column.type in {ColumnType.BYTES, ColumnType.NUMBER, ColumnType.PERCENT}:
        return _number_test(column, sign, value)
    if column.type is ColumnType.TIME:
        return _age_test(column, sign, value)
    if column.type is ColumnType.LEVEL and sign in _COMPARE:
        return _level_test(column, sign, value)
    if sign in _COMPARE:
        raise InputError(f"{column.key} holds words: {sign} does not compare them")
    return _word_test(column, value, exact=sign == "=")


def _number_test(column: Column[Any], sign: str, text: str) -> Test:
    read = _READ.get(column.key, column.value)
    if text.casefold() == "none" and sign not in _COMPARE:
        return lambda row, _: read(row) is None
    number = _number(column, text)
    compare = _COMPARE.get(sign)
    if compare is not None:
        return lambda row, _: (value := read(row)) is not None and compare(value, number)
    shown = _SHOWN.get(column.type)
    if shown is None:
        return lambda row, _: read(row) == number
    same = shown(int(number)) if column.type is ColumnType.BYTES else number
    return lambda row, _: (value := read(row)) is not None and (value == number or shown(value) == same)


_SHOWN: Final[dict[ColumnType, Callable[[Any], Any]]] = {
    ColumnType.BYTES: mebibytes,
    ColumnType.PERCENT: round,
}
_READ: Final[dict[str, Callable[[Any], Any]]] = {"limit_percent": lambda row: row.limit_percent}
"""Values that JSON and CSV round, but a filter does not."""


def _number(column: Column[Any], text: str) -> int | float:
    digits = text.removesuffix("%") if column.type is ColumnType.PERCENT else text
    try:
        nano = Quantity.parse(digits).nano if any(map(str.isdigit, digits)) else None
    except QuantityError:
        nano = None
    if nano is None:
        hint = "write it as 512Mi or 1.5Gi" if column.type is ColumnType.BYTES else "write digits, or none"
        raise InputError(f"{column.key}: {text!r} is not a number", hint=hint)
    whole, rest = divmod(nano, 10**9)
    return whole if not rest else nano / 10**9


def _age_test(column: Column[Any], sign: str, text: str) -> Test:
    try:
        seconds = parse_duration(text, days=True) / 1e9
    except InputError:
        seconds = -1.0
    if seconds < 0:
        raise InputError(f"{column.key}: {text!r} is not a duration", hint="write it as 90s, 5m, 3h or 2d12h")
    compare = _COMPARE.get(sign)
    if compare is None:
        return lambda row, now: now is not None and age(column.value(row), now) == text

    def test(row: Any, now: datetime | None) -> bool:
        born = parse_time(column.value(row))
        return born is not None and now is not None and compare((now - born).total_seconds(), seconds)

    return test


def _level_test(column: Column[Any], sign: str, text: str) -> Test:
    levels = {word: level for level, word in enumerate(column.choices)}
    if text.casefold() not in levels:
        raise _unknown(column, text)
    level, compare = levels[text.casefold()], _COMPARE[sign]
    return lambda row, _: compare(levels[column.value(row)], level)


def _word_test(column: Column[Any], text: str, *, exact: bool) -> Test:
    """Return the test of an expression, or of a whole word. Raises InputError if no choice can match."""
    if exact:
        folded = text.casefold()

        def fits(word: str) -> bool:
            return word.casefold() == folded
    elif is_plain(text):
        folded = text.casefold()

        def fits(word: str) -> bool:
            return folded in word.casefold()
    else:
        fits = SafePattern.parse(text).found_in
    read = column.value
    if column.choices:
        good = frozenset(filter(fits, column.choices))
        if not good:
            raise _unknown(column, text)
        return lambda row, _: not good.isdisjoint(_as_list(read(row)))
    return lambda row, _: any(map(fits, _as_list(read(row))))


def _as_list(value: Any) -> Sequence[str]:
    return value if isinstance(value, list) else () if value is None else (str(value),)


def _unknown(column: Column[Any], text: str) -> InputError:
    return InputError(f"{column.key} is never {text!r}", hint=f"it is {', '.join(column.choices)}")


def filter_completions(text: str, view_model: ViewModel | None, fields: Fields = PODS) -> list[str]:
    """Return the completions of the last word of a filter."""
    word = text.rpartition(" ")[2]
    if not word or "-l" in text.split():
        return []
    _, bare = split_negation(word)
    name, colon, typed = bare.partition(":")
    if not colon:
        before, words = text.removesuffix(name), _beginning_with(name, (f"{key}:" for key in fields.columns))
    else:
        typed = typed.removeprefix("=")
        before, words = text.removesuffix(typed), _beginning_with(typed, _values(name, view_model, fields))
    return [before + word for word in words]


def _beginning_with(typed: str, words: Iterable[str]) -> list[str]:
    folded = typed.casefold()
    return [word for word in words if typed and word.casefold().startswith(folded) and word != typed]


def _values(name: str, view_model: ViewModel | None, fields: Fields) -> Iterable[str]:
    try:
        column = fields.column(name)
    except InputError:
        return ()
    if column.choices:
        return column.choices
    if view_model is None:
        return ()
    if column.key == "node":
        return view_model.node_names
    return filter(None, view_model.namespaces) if column.key == "namespace" else ()


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
    """A safe expression: alternatives, each a sequence of pieces that have to follow each other."""

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
        # Alternatives of one piece become one expression, which is faster.
        whole = "|".join(dict.fromkeys("".join(pieces) for pieces in written if len(pieces) < 2))
        together = [[whole]] if any(len(pieces) < 2 for pieces in written) else []
        apart = [pieces for pieces in written if len(pieces) > 1]
        return SafePattern(tuple(tuple(map(_compiled, pieces)) for pieces in (*together, *apart)))

    def found_in(self, word: str) -> bool:
        """Return whether the expression matches somewhere in a word."""
        word = word[:LONGEST_WORD]
        return any(_in_turn(pieces, word) for pieces in self.branches)


def is_plain(text: str) -> bool:
    """Return whether a text has nothing special, so that it is searched as it is."""
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
        """Read how often the atom before is repeated. A lazy repeat is the same, as only a match counts."""
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
    """Return a piece as an expression for `re`. Raises InputError for one that can take long."""
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
    """Return which of many characters an atom can take, to tell whether two atoms overlap."""
    try:
        return _characters(source, frozenset(text))
    except re.error as error:
        raise InputError(f"{text}: {error.msg}") from None


@lru_cache(maxsize=1024)
def _characters(source: str, added: frozenset[str]) -> frozenset[str]:
    atom = _compiled(source)
    return frozenset(character for character in added.union(_PROBES) if atom.fullmatch(character))


def _compiled(source: str) -> re.Pattern[str]:
    """Compile an expression; warnings about future changes of `re` are of no use here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return re.compile(source, re.IGNORECASE)
