"""Where in a YAML or JSON text its values are written, so that one can be replaced and no other touched.

Not here: what the text says (documents.py), and what is to be written instead (rewriting.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from json.decoder import scanstring  # type: ignore[attr-defined]  # what json.loads is made of
from typing import Any, Final, TypeAlias


@dataclass(slots=True)
class Leaf:
    """A value without parts, `text[start:end]`; nothing at all where a YAML key has no value.

    `quote` is its quotation mark, empty for a plain one; an `alias` stands for what its anchor says, and a
    `block` goes over lines of its own.
    """

    start: int
    end: int
    said: str = ""
    quote: str = ""
    alias: bool = False
    block: bool = False


@dataclass(slots=True)
class Branch:
    """A mapping or a sequence; `flow` is the one in brackets, whose end is behind the bracket.

    The keys of a sequence are None, as are those of a mapping that are no text.
    """

    start: int
    end: int
    flow: bool
    mapping: bool
    entries: list[tuple[Leaf | None, Span]] = field(default_factory=list)

    def entry(self, key: str) -> tuple[Leaf, Span] | None:
        """The entry of a key as it is written here; of several the last, which counts."""
        for found, value in reversed(self.entries):
            if found is not None and found.said == key:
                return found, value
        return None


Span: TypeAlias = Leaf | Branch


def yaml_spans(text: str, loader: Any) -> Span | None:
    """The spans of one YAML document, None for an empty one. Raises yaml.YAMLError."""
    import yaml

    open_branches: list[tuple[Branch, list[Leaf | None]]] = []
    root: Span | None = None

    def add(found: Span) -> None:
        nonlocal root
        if not open_branches:
            root = found
            return
        branch, keys = open_branches[-1]
        if not branch.mapping:
            branch.entries.append((None, found))
        elif len(keys) == len(branch.entries):
            keys.append(found if isinstance(found, Leaf) and not found.alias else None)
        else:
            branch.entries.append((keys[-1], found))

    for event in yaml.parse(text, Loader=loader):
        start, end = _index(event.start_mark), _index(event.end_mark)
        if isinstance(event, yaml.ScalarEvent):
            style = event.style or ""
            start = _without_properties(text, start, end)
            add(Leaf(start, end, event.value, style if style in _QUOTES else "", block=style in _BLOCKS))
        elif isinstance(event, yaml.AliasEvent):
            add(Leaf(start, end, alias=True))
        elif isinstance(event, yaml.CollectionStartEvent):
            mapping = isinstance(event, yaml.MappingStartEvent)
            branch = Branch(_without_properties(text, start, end), end, bool(event.flow_style), mapping)
            add(branch)
            open_branches.append((branch, []))
        elif isinstance(event, yaml.CollectionEndEvent):
            open_branches.pop()[0].end = end
    return root


def _index(mark: Any) -> int:
    """Every event has marks, though their type says that some have none."""
    index: int = mark.index
    return index


_QUOTES: Final = ("'", '"')
_BLOCKS: Final = ("|", ">")
_PROPERTIES: Final = re.compile(r"(?:[&!]\S*\s+)*(?:[&!]\S*$)?")


def _without_properties(text: str, start: int, end: int) -> int:
    """Where a value begins behind its anchor and its tag."""
    found = _PROPERTIES.match(text, start, end)
    return found.end() if found is not None else start


def json_spans(text: str) -> Span:
    """The spans of one JSON text that is known to be one."""
    return _json_value(text, _behind_space(text, 0))


_SPACE: Final = re.compile(r"[ \t\r\n]*")
_WORD: Final = re.compile(r"[^\s,\]}]+")


def _behind_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found is not None else at


def _json_value(text: str, at: int) -> Span:
    if text[at] in "{[":
        return _json_branch(text, at)
    if text[at] == '"':
        said, end = scanstring(text, at + 1)
        return Leaf(at, end, said, '"')
    word = _WORD.match(text, at)
    assert word is not None, "the text was read before"
    return Leaf(at, word.end(), word[0])


def _json_branch(text: str, start: int) -> Branch:
    branch = Branch(start, start, flow=True, mapping=text[start] == "{")
    at = _behind_space(text, start + 1)
    while text[at] not in "}]":
        key = None
        if branch.mapping:
            said, end = scanstring(text, at + 1)
            key = Leaf(at, end, said, '"')
            at = _behind_space(text, _behind_space(text, end) + 1)
        value = _json_value(text, at)
        branch.entries.append((key, value))
        at = _behind_space(text, value.end)
        if text[at] == ",":
            at = _behind_space(text, at + 1)
    branch.end = at + 1
    return branch
