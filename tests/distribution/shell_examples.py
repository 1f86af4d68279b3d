"""The shell examples of a Markdown page: what is typed, and what is shown under it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

FENCE = re.compile(r"^(?P<marks>`{3,})(?P<kind>[^`\n]*)\n(?P<text>.*?)^(?P=marks)$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?:\A|\n\n)((?: {4}[^\n]*\n)(?:(?: {4}[^\n]*)?\n)*)")
COMMENT = re.compile(r"\s+# ")
SYNOPSIS = "[FLAGS]"
PROGRAMS = frozenset(
    {
        "kubectl",
        "kubectl-qos",
        "make",
        "pip",
        "pipx",
        "uv",
        "git",
        "ssh",
        "talosctl",
        "sudo",
        "tar",
        "sha256sum",
    }
)


@dataclass(frozen=True, slots=True)
class Example:
    """One command; `shown` is what the page claims that it prints, None where it shows nothing."""

    line: int
    command: str
    shown: str | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a page that is not prose; `start` is where its text begins."""

    kind: str
    text: str
    start: int


def blocks(page: str) -> Iterator[Block]:
    """Fenced blocks by their kind, and indented ones, whose kind is empty."""
    left = list(page)
    for fence in FENCE.finditer(page):
        yield Block(fence["kind"].strip(), fence["text"], fence.start("text"))
        left[fence.start() : fence.end()] = ["\n" if sign == "\n" else "." for sign in fence[0]]
    for found in INDENTED.finditer("".join(left)):
        yield Block("", found[1], found.start(1))


def examples(page: str) -> list[Example]:
    """All of them in the order of the page. Raises ValueError for a line that is no command and should be."""
    found: list[Example] = []
    for block in blocks(page):
        line = page.count("\n", 0, block.start) + 1
        if block.kind == "console":
            found += _typed(block.text, line)
        elif block.kind in {"sh", "text", ""}:
            found += _listed(block, line)
    return sorted(found, key=lambda one: one.line)


def _typed(text: str, line: int) -> Iterator[Example]:
    """Of a terminal's window: the command after `$ `, and all that follows as its output."""
    if not text.startswith("$ "):
        raise ValueError(f"line {line}: a console block begins with '$ '")
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield Example(line, command, shown)
        line += part.count("\n")


def _listed(block: Block, line: int) -> Iterator[Example]:
    """Of a list: a command a line, as a shell takes it: explained after `#`, continued after `\\`."""
    number, whole = line, ""
    for text in block.text.splitlines():
        whole += text.removeprefix("    ") if not block.kind else text
        if whole.endswith("\\"):
            whole = whole.removesuffix("\\")
            continue
        command = COMMENT.split(whole.strip(), maxsplit=1)[0]
        if command.endswith(SYNOPSIS):
            pass
        elif command.split(" ", 1)[0] in PROGRAMS:
            if "  " in command:
                raise ValueError(f"line {number}: {command!r} has an explanation that is no comment")
            yield Example(number, command)
        elif block.kind == "sh" and command and not command.startswith("#"):
            raise ValueError(f"line {number}: {command!r} begins with no program that is known")
        number += 1
        whole = ""


def with_shown(page: str, outputs: dict[int, str]) -> str:
    """The page with other outputs under its examples, by their lines."""
    lines = page.splitlines(keepends=True)
    for one in reversed(examples(page)):
        if one.shown is not None and one.line in outputs:
            height = one.shown.count("\n")
            lines[one.line : one.line + height] = [outputs[one.line]]
    return "".join(lines)
