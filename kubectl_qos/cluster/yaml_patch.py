"""Manifest files changed in place: the values of one object, and nothing else of the file that holds it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from kubectl_qos.atomic_file import replace_file
from kubectl_qos.cluster import documents as problems
from kubectl_qos.cluster.documents import (
    BYTE_ORDER_MARK,
    Document,
    json_value,
    plain_documents,
    yaml_value,
)
from kubectl_qos.cluster.files import FileSource, is_named
from kubectl_qos.cluster.yaml_positions import Branch, Leaf, Span, json_spans, yaml_spans
from kubectl_qos.edit.edits import Edit
from kubectl_qos.edit.patch import edit_object
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.yaml_loader import yaml_loader


def patch_document(document: Document, wanted: Any) -> str:
    """The text of a document that says what is wanted instead, which differs from it in few values.

    Raises InputError where that takes more than replacing, adding and removing entries of mappings.
    """
    text, value = document.text, document.value
    read: Callable[[str], Any] = partial(yaml_value, place=document.place)
    spans: Callable[[str], Span | None] = partial(yaml_spans, loader=yaml_loader())
    if document.is_json:
        read, spans = _read_json, json_spans
    for _ in range(_MOST_CHANGES):
        if value == wanted:
            return text
        try:
            text = _TextPatch(text, document.is_json).nearer(spans(text), value, wanted)
            value = read(text)
        except (_Impossible, InputError, RecursionError):
            break
    raise InputError(
        f"{document.place}: the values cannot be changed in place: anchors, merge keys or an unusual style"
        " stand in the way",
        hint="-o yaml prints the changed object",
    )


_MOST_CHANGES: Final = 1_000


def _read_json(text: str) -> Any:
    return json_value(text.encode())


class _Impossible(Exception):
    """This writer does not know how to change that text."""


class _TextPatch:
    """One change of one text; the next one needs the places anew."""

    def __init__(self, text: str, is_json: bool) -> None:
        self._text = text
        self._is_json = is_json

    def nearer(self, span: Span | None, have: Any, want: Any) -> str:
        """The text with the first of the differences gone."""
        if isinstance(span, Branch):
            if span.mapping and isinstance(have, dict) and isinstance(want, dict):
                return self._mapping(span, have, want)
            if not span.mapping and isinstance(want, list) and len(have) == len(want) == len(span.entries):
                for (_, item), old, new in zip(span.entries, have, want, strict=True):
                    if old != new:
                        return self.nearer(item, old, new)
        if (
            span is None
            or (isinstance(span, Branch) and not span.flow)
            or (isinstance(span, Leaf) and span.block)
        ):
            raise _Impossible
        return self._spliced(span.start, span.end, self._inline(want, quote=_quote(span)))

    def _mapping(self, span: Branch, have: Mapping[str, Any], want: Mapping[str, Any]) -> str:
        for key in have:
            if key not in want:
                return self._without(span, key)
        for key, new in want.items():
            if key in have and have[key] == new:
                continue
            found = span.entry(key)
            if found is None:
                return self._with(span, key, new)
            leaf, value = found
            if not span.flow and isinstance(new, dict):
                if not new and isinstance(value, Branch) and not value.flow:
                    return self._emptied(leaf, value)
                if new and self._is_nothing(value):
                    return self._filled(leaf, value, new)
            return self.nearer(value, have.get(key), new)
        raise _Impossible

    # -- removing ---------------------------------------------------------------------------------

    def _without(self, span: Branch, key: str) -> str:
        found = span.entry(key)
        if found is None:
            raise _Impossible
        leaf, value = found
        if not span.flow:
            begin = self._line_start(leaf.start)
            if self._text[begin : leaf.start].strip(" "):
                raise _Impossible
            end = self._next_line(_last(leaf, value))
            return self._spliced(begin, end, self._remarks(begin, end))
        at = span.entries.index(found)
        if len(span.entries) == 1:
            return self._spliced(span.start, span.end, "{}")
        if at:
            return self._spliced(span.entries[at - 1][1].end, value.end, "")
        following = span.entries[1][0]
        if following is None:
            raise _Impossible
        return self._spliced(leaf.start, following.start, "")

    def _emptied(self, key: Leaf, value: Branch) -> str:
        """`{}` in place of the lines of a block."""
        first = value.entries[0][0]
        if first is None:
            raise _Impossible
        colon = self._text.index(":", key.end) + 1
        begin = self._line_start(first.start)
        lines = self._text[colon:begin]
        end = self._next_line(_last(first, value))
        return self._spliced(colon, end, f" {{}}{lines}{self._remarks(begin, end)}")

    def _remarks(self, begin: int, end: int) -> str:
        """Of lines that go, those that are comments, and those that are empty."""
        lines = self._text[begin:end].splitlines(keepends=True)
        return "".join(line for line in lines if line.lstrip()[:1] in {"", "#"})

    # -- adding -----------------------------------------------------------------------------------

    def _with(self, span: Branch, key: str, value: Any) -> str:
        if span.flow:
            return self._with_in_flow(span, key, value)
        for leaf, other in reversed(span.entries):
            if leaf is not None and not _ends_in_block(other):
                column = leaf.start - self._line_start(leaf.start)
                return self._lines_behind(_last(leaf, other), self._block(key, value, column, leaf.quote))
        raise _Impossible

    def _with_in_flow(self, span: Branch, key: str, value: Any) -> str:
        quote = '"' if self._is_json else ""
        if not span.entries:
            return self._spliced(span.start, span.end, f"{{{self._entry(key, value, quote, ': ', None)}}}")
        last, behind = span.entries[-1]
        first = span.entries[0][0]
        if last is None or first is None:
            raise _Impossible
        colon = self._text[last.end : behind.start]
        between = self._text[span.start + 1 : first.start]
        separator = f",{between}" if "\n" in between else ", " if " " in colon else ","
        if not re.fullmatch(r",\s*", separator):
            separator = ", "
        lead = separator.rpartition("\n")[2] if "\n" in separator else None
        colon = colon if re.fullmatch(r":\s*", colon) else ": "
        entry = self._entry(key, value, last.quote or quote, colon, lead)
        return self._spliced(behind.end, behind.end, f"{separator}{entry}")

    def _filled(self, key: Leaf, value: Span, wanted: Mapping[str, Any]) -> str:
        """The lines of a block in place of nothing, `null` or `{}`."""
        column = key.start - self._line_start(key.start)
        inner = column + self._step
        lines = [line for name, one in wanted.items() for line in self._block(name, one, inner, key.quote)]
        start = len(self._text[: value.start].rstrip(" ")) if value.end > value.start else value.start
        longer = self._lines_behind(value.end, lines)
        return longer[:start] + longer[value.end :]

    def _is_nothing(self, value: Span) -> bool:
        written = self._text[value.start : value.end]
        return not (isinstance(value, Leaf) and value.alias) and (
            written in {"", "null", "~"}
            or (isinstance(value, Branch) and not value.entries and "\n" not in written)
        )

    # -- text -------------------------------------------------------------------------------------

    def _spliced(self, start: int, end: int, new: str) -> str:
        return self._text[:start] + new + self._text[end:]

    def _lines_behind(self, at: int, lines: list[str]) -> str:
        """The text with lines behind the one that holds this place."""
        end = self._next_line(at)
        added = "".join(f"{line}{self._newline}" for line in lines)
        if not self._text[:end].endswith("\n"):
            added = self._newline + added.removesuffix(self._newline)
        return self._spliced(end, end, added)

    @property
    def _newline(self) -> str:
        return "\r\n" if "\r\n" in self._text else "\n"

    def _line_start(self, at: int) -> int:
        return self._text.rfind("\n", 0, at) + 1

    def _next_line(self, at: int) -> int:
        return self._text.find("\n", at) + 1 or len(self._text)

    @property
    def _step(self) -> int:
        """By how many spaces this text indents: as many as its first line that is indented has."""
        found = _INDENTED.search(self._text)
        return len(found[1]) if found is not None else _STEP

    def _block(self, key: str, value: Any, column: int, quote: str) -> list[str]:
        """An entry as lines."""
        lead = " " * column
        if isinstance(value, dict) and value:
            inner = column + self._step
            lines = [line for name, one in value.items() for line in self._block(name, one, inner, quote)]
            return [f"{lead}{self._inline(key, quote=quote)}:", *lines]
        return [f"{lead}{self._inline(key, quote=quote)}: {self._inline(value)}"]

    def _entry(self, key: str, value: Any, quote: str, colon: str, lead: str | None) -> str:
        """An entry inside brackets; over several lines below `lead` where that is not None."""
        name = self._inline(key, quote=quote)
        if lead is None or not isinstance(value, dict) or not value:
            compact = ":" if colon == ":" else ": "
            return f"{name}{colon}{self._inline(value, quote=quote, colon=compact)}"
        inner = f"{lead}\t" if "\t" in lead else lead + " " * self._step
        entries = f",{self._newline}".join(
            f"{inner}{self._entry(one, held, quote, colon, inner)}" for one, held in value.items()
        )
        return f"{name}{colon}{{{self._newline}{entries}{self._newline}{lead}}}"

    def _inline(self, value: Any, *, quote: str = "", colon: str = ": ") -> str:
        """A value on one line."""
        if isinstance(value, dict):
            comma = ", " if " " in colon else ","
            parts = (
                f"{self._inline(key, quote=quote)}{colon}{self._inline(one, quote=quote, colon=colon)}"
                for key, one in value.items()
            )
            return f"{{{comma.join(parts)}}}"
        if isinstance(value, list):
            return f"[{', '.join(self._inline(one, quote=quote) for one in value)}]"
        if not isinstance(value, str) or self._is_json:
            return json.dumps(value, ensure_ascii=False)
        if quote == "'" and value.isprintable():
            return f"'{value.replace(quote, quote * 2)}'"
        if not quote and _PLAIN.fullmatch(value):
            return value
        return json.dumps(value, ensure_ascii=False)


_STEP: Final = 2
_INDENTED: Final = re.compile(r"^( +)[^\s#-]", re.MULTILINE)
_PLAIN: Final = re.compile(r"\d+(?:\.\d+)?(?:m|k|n|u|[KMGTPE]i|[MGTPE])|[a-z]{3,}(?:[-./][A-Za-z0-9]+)*")
"""Quantities with a suffix and names of resources: what no YAML takes for anything but a text."""


def _quote(span: Span) -> str:
    return span.quote if isinstance(span, Leaf) else ""


def _last(key: Leaf, value: Span) -> int:
    """A place in the last line of an entry."""
    while isinstance(value, Branch) and not value.flow and value.entries:
        inner, value = value.entries[-1]
        key = inner or key
    return max(value.end, key.end) if isinstance(value, Branch) or value.end > value.start else key.end


def _ends_in_block(value: Span) -> bool:
    while isinstance(value, Branch) and not value.flow and value.entries:
        value = value.entries[-1][1]
    return isinstance(value, Leaf) and value.block


_WRITABLE: Final = 0o222


def write(source: FileSource, pod: Pod, edits: Sequence[Edit]) -> str:
    """Make the edits in the file that holds the object, and return its name.

    The file is replaced at once, by one with the same mode; of a symbolic link, the file that it leads to.

    Raises:
        InputError: the object is not there, or more than once; the file cannot be written, or not in place.
    """
    found = [
        (name, content, document, path)
        for name, content in source.contents()
        for document in plain_documents(content, name)
        for path, raw in document.objects()
        if is_named(raw, pod)
    ]
    if len(found) != 1:
        there = f"there {len(found)} times" if found else "no longer there"
        raise InputError(f"{pod.kind.lower()}/{pod.name} is {there}", hint="run the command again")
    name, content, document, path = found[0]
    file = Path(name).resolve()
    _replace(file, name, _changed(content, name, document, _with_edits(document.value, path, pod, edits)))
    return name


def _with_edits(value: Any, path: tuple[str | int, ...], pod: Pod, edits: Sequence[Edit]) -> Any:
    """The whole document with the object changed."""
    if not path:
        return edit_object(value, pod, edits)
    items = list(value["items"])
    items[int(path[1])] = edit_object(items[int(path[1])], pod, edits)
    return {**value, "items": items}


def _changed(content: bytes, name: str, document: Document, wanted: Any) -> bytes:
    mark = BYTE_ORDER_MARK if content.startswith(BYTE_ORDER_MARK) else b""
    try:
        text = content.removeprefix(mark).decode()
    except UnicodeDecodeError as error:
        raise problems.not_text(name, error.start) from None
    end = document.begin + len(document.text)
    return mark + f"{text[: document.begin]}{patch_document(document, wanted)}{text[end:]}".encode()


def _replace(file: Path, name: str, content: bytes) -> None:
    """A file of its own takes the place of the old one. Raises InputError."""
    try:
        is_read_only = not file.stat().st_mode & _WRITABLE or not os.access(file, os.W_OK)
        if not is_read_only:
            replace_file(file, content, keep_rights=True)
    except OSError as error:
        raise InputError(f"{name}: cannot be written: {error.strerror}") from None
    if is_read_only:
        raise InputError(f"{name}: the file is read-only", hint="allow writing to it: chmod u+w")
