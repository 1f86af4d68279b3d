"""The position of the cursor in a command line, and candidates for its word with cobra's directive."""

# The positions are those of argparse, which keeps its actions to itself.
# ruff: noqa: SLF001

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from kubectl_qos.cli.flags import Switch
from kubectl_qos.cli.main import build_parser, subcommands

FILES: Final = 0
"""Directive: complete file names if there are no candidates."""
NO_SPACE: Final = 2
NO_FILES: Final = 4
EXTENSIONS: Final = 8
"""Directive: the candidates are file extensions."""
FOLDERS: Final = 16

_UNFINISHED: Final = ("=", "/", ":", "-")
"""Suffixes of candidates after which no space is added."""
_MAX_DESCRIPTION: Final = 80
_UNSAFE: Final = frozenset("`$\\\"'*?[]{}()<>|&;!#")
"""Names from servers and files that have one are left out: some shells' scripts evaluate candidates."""


class Completion(NamedTuple):
    """A completion of the word, with a short description."""

    value: str
    description: str = ""


class Completions(NamedTuple):
    """Candidates, and a directive for the shell."""

    candidates: tuple[Completion, ...] = ()
    directive: int = NO_FILES

    @staticmethod
    def of(values: Iterable[str]) -> Completions:
        """Make candidates of values without descriptions."""
        return Completions(tuple(map(Completion, values)))

    def starting_with(self, word: str) -> Completions:
        """Keep candidates that begin with the word, without duplicates. Only NO_FILES ones are filtered."""
        if self.directive != NO_FILES:
            return self
        kept = {item.value: item for item in self.candidates if item.value.startswith(word)}
        return Completions(tuple(kept.values()))

    def text(self) -> str:
        """Format one line for each safe candidate, then the directive."""
        kept = [item for item in self.candidates if _is_safe(item.value)]
        is_unfinished = any(item.value.endswith(_UNFINISHED) for item in kept)
        directive = self.directive | (NO_SPACE if is_unfinished else 0)
        return "".join(f"{line}\n" for line in (*map(_line, kept), f":{directive}"))


NOTHING: Final = Completions()


def _is_safe(value: str) -> bool:
    return bool(value) and value == value.strip() and value.isprintable() and _UNSAFE.isdisjoint(value)


def _line(candidate: Completion) -> str:
    printable = (char if char.isprintable() else " " for char in candidate.description)
    description = " ".join("".join(printable).split())
    if len(description) > _MAX_DESCRIPTION:
        description = f"{description[: _MAX_DESCRIPTION - 1].rstrip()}…"
    return f"{candidate.value}\t{description}" if description else candidate.value


class Position(NamedTuple):
    """The cursor's position in the command line."""

    command: str
    """The command before the cursor, or ""."""
    action: argparse.Action | None
    """The flag or operand whose value is being typed."""
    word: str
    """The typed part of the value, or of the name of a flag."""
    flag: str
    """`--flag` if `--flag=VALUE` is being typed, else ""."""
    flags: tuple[argparse.Action, ...]
    """All flags that the command accepts, if a flag's name is being typed."""
    operands: tuple[str, ...]
    """The operands before the cursor."""
    namespace: argparse.Namespace
    """The values of the flags before the cursor."""


def find_position(words: Sequence[str]) -> Position:
    """Return the position of the last of `words`, which may be empty; they lack the program's name."""
    *before, word = words[1:] if words[:1] == ["help"] and len(words) > 1 else words or [""]
    reader = _WordReader(build_parser())
    for complete_word in before:
        reader.read(complete_word)
    return reader.at(word)


class _WordReader:
    """Reads words one by one; argparse itself would stop at the first wrong one."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._parser: argparse.ArgumentParser | None = parser
        self._command = ""
        self._namespace = argparse.Namespace()
        self._operands: list[str] = []
        self._pending_flag: argparse.Action | None = None
        self._only_operands = False

    def read(self, word: str) -> None:
        pending, self._pending_flag = self._pending_flag, None
        if pending is not None and not _may_lack_value(pending, word):
            self._give(pending, word)
        elif self._only_operands or not word.startswith("-") or word == "-":
            self._read_operand(word)
        elif word == "--":
            self._only_operands = True
        else:
            self._read_flag(word)

    def at(self, word: str) -> Position:
        """Return the position of a word that is not complete."""
        action, flag = self._pending_flag, ""
        flags: tuple[argparse.Action, ...] = ()
        if action is None or _may_lack_value(action, word):
            action = None
            if self._only_operands or not word.startswith("-"):
                action = self._next_operand()
            else:
                flags = tuple(self._parser._actions) if self._parser is not None else ()
                if "=" in word:
                    flag, _, word = word.partition("=")
                    action = self._find_action(flag)
        return Position(self._command, action, word, flag, flags, tuple(self._operands), self._namespace)

    def _read_operand(self, word: str) -> None:
        if self._command or self._parser is None:
            self._operands.append(word)
            return
        commands = subcommands(self._parser)
        self._parser = commands[word].load() if word in commands else None
        self._command = word if word in commands else ""

    def _next_operand(self) -> argparse.Action | None:
        actions = self._parser._actions if self._parser is not None else ()
        for action in actions:
            if not action.option_strings and (action.nargs in {"*", "+"} or not self._operands):
                return action
        return None

    def _read_flag(self, word: str) -> None:
        flag, equals, value = word.partition("=")
        action = self._find_action(word) or self._find_action(flag)
        if action is None:
            if not word.startswith("--"):
                self._read_short_flags(word[1:])
        elif equals and action.nargs != 0:
            self._give(action, value)
        elif action.nargs == 0:
            self._give(action, value or None)
        else:
            self._pending_flag = action

    def _read_short_flags(self, letters: str) -> None:
        """Read `-Aw` as two flags, and `-Anshop` as two flags, the second with a value."""
        for end, letter in enumerate(letters, start=1):
            action = self._find_action(f"-{letter}")
            if action is None:
                return
            if action.nargs != 0:
                if letters[end:]:
                    self._give(action, letters[end:].removeprefix("="))
                else:
                    self._pending_flag = action
                return
            self._give(action, None)

    def _find_action(self, flag: str) -> argparse.Action | None:
        return self._parser._option_string_actions.get(flag) if self._parser is not None else None

    def _give(self, action: argparse.Action, value: str | None) -> None:
        if isinstance(action, Switch):
            setattr(self._namespace, action.dest, action.values.get(value or action.bare))
        elif value is None:
            setattr(self._namespace, action.dest, action.const)
        elif isinstance(action, argparse._AppendAction):
            values = vars(self._namespace).get(action.dest, ())
            setattr(self._namespace, action.dest, [*values, value])
        else:
            setattr(self._namespace, action.dest, value)


def _may_lack_value(action: argparse.Action, word: str) -> bool:
    """Return True if the word is the next flag, as this one needs no value."""
    return action.nargs == "?" and word.startswith("-") and word != "-"
