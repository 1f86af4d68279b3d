"""Edit YAML manifests in place: find where the values of an object are written, and replace them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, Final, TypeAlias

from kubectl_qos.cluster.documents import FileDocument, json_value, yaml_value
from kubectl_qos.edit.edits import Edit, edit_object
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.yaml_loader import yaml_loader

_QUOTES: Final = ("'", '"')
_BLOCKS: Final = ("|", ">")
_PROPERTIES: Final = re.compile(r"(?:[&!]\S*\s+)*(?:[&!]\S*$)?")
"""An anchor and a tag."""


@dataclass(slots=True)
class Leaf:
    """A scalar, `text[start:end]`; empty if a YAML key has no value.

    `quote` is empty for a plain scalar; an `alias` has its anchor's value, and a `block` has lines of its
    own.
    """

    start: int
    end: int
    value: str = ""
    quote: str = ""
    alias: bool = False
    block: bool = False


@dataclass(slots=True)
class Branch:
    """A mapping or sequence, in brackets if `flow`; keys are None in sequences, and for aliases."""

    start: int
    end: int
    flow: bool
    mapping: bool
    entries: list[tuple[Leaf | None, Span]] = field(default_factory=list)

    def entry(self, key: str) -> tuple[Leaf, Span] | None:
        """Return the entry of a key, the last one if there are several."""
        for leaf, value in reversed(self.entries):
            if leaf is not None and leaf.value == key:
                return leaf, value
        return None


Span: TypeAlias = Leaf | Branch


_NOT_YAML: Final = re.compile(r"\\.|[^\n\r -~]")
"""Parts of JSON that YAML may refuse: escapes such as those of surrogates, tabs, control characters."""


def _spans(text: str, *, is_json: bool) -> Span | None:
    import yaml

    readable = _NOT_YAML.sub(lambda match: " " * len(match[0]), text) if is_json else text
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
    for event in yaml.parse(readable, Loader=yaml_loader()):
        start, end = event.start_mark.index, event.end_mark.index
        properties = _PROPERTIES.match(text, start, end)
        value_start = properties.end() if properties is not None else start
        if isinstance(event, yaml.ScalarEvent):
            style = event.style or ""
            quote = style if style in _QUOTES else ""
            is_whole = text.startswith(readable[start:end], start)
            value = event.value if is_whole else json.loads(text[start:end])
            add(Leaf(value_start, end, value, quote, block=style in _BLOCKS))
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


_MAX_CHANGES: Final = 1_000
_DEFAULT_INDENT: Final = 2
_INDENTED: Final = re.compile(r"^( +)[^\s#-]", re.MULTILINE)
_PLAIN: Final = re.compile(
    r"\d+(?:\.\d+)?(?:m|k|n|u|[KMGTPE]i|[MGTPE])"
    r"|(?!(?:true|false|null|yes|off)$)[a-z]{3,}[A-Za-z]*(?:[-./][A-Za-z0-9]+)*"
)
"""Quantities with a suffix, and names of resources and keys, which every YAML parser reads as text."""


def patch_object(
    content: bytes, document: FileDocument, numbers: tuple[int, ...], pod: Pod, edits: Sequence[Edit]
) -> bytes:
    """Make edits in an object of a document, given by its indexes in Lists. Raises InputError."""

    def edited(value: Any, numbers: tuple[int, ...]) -> Any:
        if not numbers:
            return edit_object(value, pod, edits)
        items = list(value["items"])
        items[numbers[0]] = edited(items[numbers[0]], numbers[1:])
        return {**value, "items": items}

    return patch_document(content, document, edited(document.value, numbers))


def patch_document(content: bytes, document: FileDocument, wanted: Any) -> bytes:
    """Change a document in few places. Raises InputError if it had to be rewritten."""
    import yaml

    text, value = document.text, document.value
    read = json_value if document.is_json else partial(yaml_value, location=document.location)
    for _ in range(_MAX_CHANGES):
        if value == wanted:
            end = document.begin + len(document.text.encode())
            return content[: document.begin] + text.encode() + content[end:]
        try:
            spans = _spans(text, is_json=document.is_json)
            before, text = text, _TextChange(text, document.is_json).change(spans, value, wanted)
            if text == before:
                break
            value = read(text)
        except (_NotInPlace, InputError, RecursionError, yaml.YAMLError):
            break
    raise InputError(
        f"{document.location}: the values cannot be changed in place: the file uses anchors, merge keys or an"
        " unusual style",
        hint="-o manifest prints the changed object",
    )


class _NotInPlace(Exception):
    """The text has a style in which this value cannot be changed in place."""


class _TextChange:
    def __init__(self, text: str, is_json: bool) -> None:
        self._text = text
        self._is_json = is_json
        self._newline = "\r\n" if "\r\n" in text else "\n"
        indented = _INDENTED.search(text)
        self._indent = len(indented[1]) if indented is not None else _DEFAULT_INDENT

    def change(self, span: Span | None, old: Any, new: Any) -> str:
        if isinstance(span, Branch):
            if span.mapping and isinstance(old, dict) and isinstance(new, dict):
                return self._change_mapping(span, old, new)
            if not span.mapping and isinstance(new, list) and len(old) == len(new) == len(span.entries):
                for (_, item), old_item, new_item in zip(span.entries, old, new, strict=True):
                    if old_item != new_item:
                        return self.change(item, old_item, new_item)
            if not span.mapping and span.entries and isinstance(new, list) and new[:-1] == old:
                return self._append(span, new[-1])
        if isinstance(span, Leaf) and span.block and isinstance(new, str):
            return self._change_block(span, new)
        if isinstance(span, Leaf) and not span.block:
            return self._splice(span.start, span.end, self._inline(new, quote=span.quote))
        if isinstance(span, Branch) and span.flow:
            return self._splice(span.start, span.end, self._inline(new))
        raise _NotInPlace

    def _append(self, span: Branch, value: Any) -> str:
        """Append an item; a block scalar at the end is followed after its lines, not after its empty ones."""
        first, last = span.entries[0][1], span.entries[-1][1]
        if span.flow:
            return self._splice(last.end, last.end, f", {self._inline(value)}")
        lead = self._text[self._line_start(first.start) : first.start]
        if lead.strip(" ") != "-":
            raise _NotInPlace
        lines = self._item_lines(value, len(lead) - len(lead.lstrip(" ")))
        return self._insert_lines(len(self._text[: _last(Leaf(0, 0), last)].rstrip()), lines)

    def _change_block(self, span: Leaf, new: str) -> str:
        """Change the lines of a literal text that differ, indented as its first line; not of folded text."""
        old = self._text[span.start : span.end].splitlines(keepends=True)
        indent = next((line[: -len(line.lstrip(" "))] for line in old[1:] if line.strip()), "")
        if not indent or not self._text.startswith("|", span.start):
            raise _NotInPlace
        wanted = [f"{indent}{line}" if line else "" for line in new.rstrip("\n").splitlines()]
        begin, end, most = 1, len(old), len(wanted) + 1
        while begin < min(end, most) and old[begin].rstrip() == wanted[begin - 1].rstrip():
            begin += 1
        while end > begin and not old[end - 1].strip():
            end -= 1
        while end > begin and most > begin and old[end - 1].rstrip() == wanted[most - 2].rstrip():
            end, most = end - 1, most - 1
        if end < len(old) or self._text[: span.end].endswith("\n"):
            changed = [f"{line}{self._newline}" for line in wanted[begin - 1 : most - 1]]
        else:
            changed = [self._newline.join(wanted[begin - 1 : most - 1])]
        return self._splice(span.start, span.end, "".join([*old[:begin], *changed, *old[end:]]))

    def _change_mapping(self, span: Branch, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
        for key in old:
            if key not in new:
                return self._remove(span, key)
        for key, value in new.items():
            if key in old and old[key] == value:
                continue
            entry = span.entry(key)
            if entry is None:
                return self._add(span, key, value)
            leaf, old_value = entry
            if not span.flow and isinstance(value, dict):
                if not value and isinstance(old_value, Branch) and not old_value.flow:
                    return self._empty(leaf, old_value)
                if value and self._is_empty(old_value):
                    return self._fill(leaf, old_value, value)
            return self.change(old_value, old.get(key), value)
        raise _NotInPlace

    def _remove(self, span: Branch, key: str) -> str:
        entry = span.entry(key)
        if entry is None:
            raise _NotInPlace
        leaf, value = entry
        if not span.flow:
            begin = self._line_start(leaf.start)
            if self._text[begin : leaf.start].strip(" "):
                raise _NotInPlace
            end = self._next_line(_last(leaf, value))
            return self._splice(begin, end, self._comments(begin, end))
        index = span.entries.index(entry)
        if len(span.entries) == 1:
            return self._splice(span.start, span.end, "{}")
        if index:
            return self._splice(span.entries[index - 1][1].end, value.end, "")
        return self._splice(leaf.start, _known(span.entries[1][0]).start, "")

    def _empty(self, key: Leaf, value: Branch) -> str:
        first = _known(value.entries[0][0])
        colon = self._text.index(":", key.end) + 1
        begin = self._line_start(first.start)
        end = self._next_line(_last(first, value))
        return self._splice(colon, end, f" {{}}{self._text[colon:begin]}{self._comments(begin, end)}")

    def _comments(self, begin: int, end: int) -> str:
        lines = self._text[begin:end].splitlines(keepends=True)
        return "".join(line for line in lines if line.lstrip()[:1] in {"", "#"})

    def _add(self, span: Branch, key: str, value: Any) -> str:
        if span.flow:
            return self._add_in_flow(span, key, value)
        for leaf, other in reversed(span.entries):
            if leaf is not None and not _ends_in_block(other):
                column = leaf.start - self._line_start(leaf.start)
                return self._insert_lines(_last(leaf, other), self._lines(key, value, column, leaf.quote))
        raise _NotInPlace

    def _add_in_flow(self, span: Branch, key: str, value: Any) -> str:
        quote = '"' if self._is_json else ""
        if not span.entries:
            return self._splice(
                span.start, span.end, f"{{{self._flow_entry(key, value, quote, ': ', None)}}}"
            )
        leaf, last_value = span.entries[-1]
        last, first = _known(leaf), _known(span.entries[0][0])
        colon = self._text[last.end : last_value.start]
        between = self._text[span.start + 1 : first.start]
        separator = f",{between}" if "\n" in between else ", " if " " in colon else ","
        if not re.fullmatch(r",\s*", separator):
            separator = ", "
        indent = separator.rpartition("\n")[2] if "\n" in separator else None
        colon = colon if re.fullmatch(r":\s*", colon) else ": "
        entry = self._flow_entry(key, value, last.quote or quote, colon, indent)
        return self._splice(last_value.end, last_value.end, f"{separator}{entry}")

    def _fill(self, key: Leaf, value: Span, new: Mapping[str, Any]) -> str:
        column = key.start - self._line_start(key.start) + self._indent
        lines = [line for name, item in new.items() for line in self._lines(name, item, column, key.quote)]
        start = len(self._text[: value.start].rstrip(" ")) if value.end > value.start else value.start
        longer = self._insert_lines(value.end, lines)
        return longer[:start] + longer[value.end :]

    def _is_empty(self, value: Span) -> bool:
        if isinstance(value, Leaf) and value.alias:
            return False
        written = self._text[value.start : value.end]
        is_empty_flow = isinstance(value, Branch) and not value.entries and "\n" not in written
        return written in {"", "null", "~"} or is_empty_flow

    def _splice(self, start: int, end: int, new: str) -> str:
        return self._text[:start] + new + self._text[end:]

    def _insert_lines(self, at: int, lines: list[str]) -> str:
        end = self._next_line(at)
        added = "".join(f"{line}{self._newline}" for line in lines)
        if not self._text[:end].endswith("\n"):
            added = self._newline + added.removesuffix(self._newline)
        return self._splice(end, end, added)

    def _line_start(self, at: int) -> int:
        return self._text.rfind("\n", 0, at) + 1

    def _next_line(self, at: int) -> int:
        return self._text.find("\n", at) + 1 or len(self._text)

    def _lines(self, key: str, value: Any, column: int, quote: str) -> list[str]:
        name = " " * column + self._inline(key, quote=quote)
        if isinstance(value, list) and value:
            return [f"{name}:", *(line for item in value for line in self._item_lines(item, column))]
        if not isinstance(value, dict) or not value:
            return [f"{name}: {self._inline(value)}"]
        column += self._indent
        inner = (self._lines(key, item, column, quote) for key, item in value.items())
        return [f"{name}:", *chain.from_iterable(inner)]

    def _item_lines(self, value: Any, column: int) -> list[str]:
        dash = " " * column + "- "
        if not isinstance(value, dict) or not value:
            return [dash + self._inline(value)]
        first, *lines = (
            line for key, item in value.items() for line in self._lines(key, item, len(dash), "")
        )
        return [dash + first[len(dash) :], *lines]

    def _flow_entry(self, key: str, value: Any, quote: str, colon: str, indent: str | None) -> str:
        name = self._inline(key, quote=quote)
        if indent is None or not isinstance(value, dict) or not value:
            compact = ":" if colon == ":" else ": "
            return f"{name}{colon}{self._inline(value, quote=quote, colon=compact)}"
        inner = f"{indent}\t" if "\t" in indent else indent + " " * self._indent
        entries = f",{self._newline}".join(
            f"{inner}{self._flow_entry(key, item, quote, colon, inner)}" for key, item in value.items()
        )
        return f"{name}{colon}{{{self._newline}{entries}{self._newline}{indent}}}"

    def _inline(self, value: Any, *, quote: str = "", colon: str = ": ") -> str:
        if isinstance(value, dict):
            entries = (
                f"{self._inline(key, quote=quote)}{colon}{self._inline(item, quote=quote, colon=colon)}"
                for key, item in value.items()
            )
            return f"{{{(', ' if ' ' in colon else ',').join(entries)}}}"
        if isinstance(value, list):
            return f"[{', '.join(self._inline(item, quote=quote) for item in value)}]"
        if isinstance(value, str) and not self._is_json:
            if quote == "'" and value.isprintable():
                return f"'{value.replace(quote, quote * 2)}'"
            if not quote and _PLAIN.fullmatch(value):
                return value
        return json.dumps(value, ensure_ascii=False)


def _known(key: Leaf | None) -> Leaf:
    if key is None:
        raise _NotInPlace
    return key


def _last(key: Leaf, value: Span) -> int:
    while isinstance(value, Branch) and not value.flow and value.entries:
        inner, value = value.entries[-1]
        key = inner or key
    return max(value.end, key.end) if isinstance(value, Branch) or value.end > value.start else key.end


def _ends_in_block(value: Span) -> bool:
    while isinstance(value, Branch) and not value.flow and value.entries:
        value = value.entries[-1][1]
    return isinstance(value, Leaf) and value.block
