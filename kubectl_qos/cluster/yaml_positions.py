"""Where the values of a YAML or JSON text are written, so that one can be replaced and no other touched."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from json.decoder import scanstring  # type: ignore[attr-defined]  # what json.loads is made of
from typing import Any, Final, TypeAlias

from kubectl_qos.yaml_loader import yaml_loader

_QUOTES: Final = ("'", '"')
_BLOCKS: Final = ("|", ">")
_PROPERTIES: Final = re.compile(r"(?:[&!]\S*\s+)*(?:[&!]\S*$)?")
"""An anchor and a tag."""
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_WORD: Final = re.compile(r"[^\s,\]}]+")


@dataclass(slots=True)
class Leaf:
    """A scalar, `text[start:end]`; empty where a YAML key has no value.

    `quote` is its quotation mark, empty for a plain one; an `alias` stands for the value of its anchor, and a
    `block` has lines of its own.
    """

    start: int
    end: int
    value: str = ""
    quote: str = ""
    alias: bool = False
    block: bool = False


@dataclass(slots=True)
class Branch:
    """A mapping or a sequence; a `flow` one is in brackets and ends behind the closing one.

    The keys of a sequence are None, as are those of a mapping that are no text.
    """

    start: int
    end: int
    flow: bool
    mapping: bool
    entries: list[tuple[Leaf | None, Span]] = field(default_factory=list)

    def entry(self, key: str) -> tuple[Leaf, Span] | None:
        """The entry of a key as it is written here; of several the last, which counts."""
        for leaf, value in reversed(self.entries):
            if leaf is not None and leaf.value == key:
                return leaf, value
        return None


Span: TypeAlias = Leaf | Branch


def yaml_spans(text: str) -> Span | None:
    """The spans of one YAML document, None for an empty one. Raises yaml.YAMLError."""
    import yaml

    open_branches: list[tuple[Branch, list[Leaf | None]]] = []
    root: Span | None = None

    def add(span: Span) -> None:
        nonlocal root
        if not open_branches:
            root = span
            return
        branch, keys = open_branches[-1]
        if not branch.mapping:
            branch.entries.append((None, span))
        elif len(keys) == len(branch.entries):
            keys.append(span if isinstance(span, Leaf) and not span.alias else None)
        else:
            branch.entries.append((keys[-1], span))

    event: Any
    for event in yaml.parse(text, Loader=yaml_loader()):
        start, end = event.start_mark.index, event.end_mark.index
        value_start = _behind(_PROPERTIES, text, start, end)
        if isinstance(event, yaml.ScalarEvent):
            style = event.style or ""
            quote = style if style in _QUOTES else ""
            add(Leaf(value_start, end, event.value, quote, block=style in _BLOCKS))
        elif isinstance(event, yaml.AliasEvent):
            add(Leaf(start, end, alias=True))
        elif isinstance(event, yaml.CollectionStartEvent):
            is_mapping = isinstance(event, yaml.MappingStartEvent)
            branch = Branch(value_start, end, bool(event.flow_style), is_mapping)
            add(branch)
            open_branches.append((branch, []))
        elif isinstance(event, yaml.CollectionEndEvent):
            open_branches.pop()[0].end = end
    return root


def json_spans(text: str) -> Span:
    """The spans of a valid JSON text."""
    return _json_value(text, _behind(_SPACE, text, 0))


def _behind(pattern: re.Pattern[str], text: str, start: int, end: int | None = None) -> int:
    match = pattern.match(text, start, len(text) if end is None else end)
    return match.end() if match is not None else start


def _json_value(text: str, start: int) -> Span:
    if text[start] in "{[":
        return _json_branch(text, start)
    if text[start] == '"':
        value, end = scanstring(text, start + 1)
        return Leaf(start, end, value, '"')
    end = _behind(_WORD, text, start)
    return Leaf(start, end, text[start:end])


def _json_branch(text: str, start: int) -> Branch:
    branch = Branch(start, start, flow=True, mapping=text[start] == "{")
    at = _behind(_SPACE, text, start + 1)
    while text[at] not in "}]":
        key = None
        if branch.mapping:
            name, end = scanstring(text, at + 1)
            key = Leaf(at, end, name, '"')
            at = _behind(_SPACE, text, _behind(_SPACE, text, end) + 1)
        value = _json_value(text, at)
        branch.entries.append((key, value))
        at = _behind(_SPACE, text, value.end)
        if text[at] == ",":
            at = _behind(_SPACE, text, at + 1)
    branch.end = at + 1
    return branch
