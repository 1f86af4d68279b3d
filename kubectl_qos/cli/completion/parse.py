"""Where in the grammar the word that is being typed stands, and what the words before it say."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

from kubectl_qos.cli.main import CommandParser


class Position(NamedTuple):
    """What is being typed.

    Attributes:
        command: the command, empty before any.
        action: the flag or the operand whose value is being typed, if it is one.
        word: as much of the value, or of the name of a flag, as there is.
        flag: for `--flag=VALUE` what stands before the sign.
        flags: those of the command where the name of one is being typed, or `--flag=VALUE`.
        operands: the words before it that belong to no flag.
        options: what the flags before it say, under the names that commands read.
    """

    command: str
    action: argparse.Action | None
    word: str
    flag: str
    flags: tuple[argparse.Action, ...]
    operands: tuple[str, ...]
    options: argparse.Namespace


def position(parser: argparse.ArgumentParser, words: Sequence[str]) -> Position:
    """The position of the last word, which may be empty, among all words behind the program's name."""
    *before, word = words or [""]
    reading = _Reading(parser)
    for one in before:
        reading.take(one)
    return reading.at(word)


class _Reading:
    """What is known after the words so far; argparse itself would stop at the first that is wrong."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._parser: argparse.ArgumentParser | None = parser
        self._command = ""
        self._options = argparse.Namespace()
        self._operands: list[str] = []
        self._waiting: argparse.Action | None = None
        self._only_operands = False

    def take(self, word: str) -> None:
        """Read a complete word."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not _may_lack_value(waiting, word):
            self._give(waiting, word)
        elif self._only_operands or not word.startswith("-") or word == "-":
            self._operand(word)
        elif word == "--":
            self._only_operands = True
        else:
            self._flag(word)

    def at(self, word: str) -> Position:
        """What this word is, if it is the one being typed."""
        if self._waiting is not None and not _may_lack_value(self._waiting, word):
            return self._position(self._waiting, word)
        if self._only_operands or not word.startswith("-"):
            return self._position(self._open_operand(), word)
        flags = tuple(self._parser._actions) if self._parser is not None else ()  # noqa: SLF001 - see _commands
        flag, equals, value = word.partition("=")
        if equals:
            return self._position(self._action(flag), value, flag, flags)
        return self._position(None, word, "", flags)

    def _position(
        self,
        action: argparse.Action | None,
        word: str,
        flag: str = "",
        flags: tuple[argparse.Action, ...] = (),
    ) -> Position:
        return Position(self._command, action, word, flag, flags, tuple(self._operands), self._options)

    def _operand(self, word: str) -> None:
        if self._command or self._parser is None:
            self._operands.append(word)
            return
        commands = _commands(self._parser)
        self._parser = commands[word].load() if word in commands else None
        self._command = word if word in commands else ""

    def _open_operand(self) -> argparse.Action | None:
        """The operand that there is still room for."""
        actions = self._parser._actions if self._parser is not None else ()  # noqa: SLF001 - see _commands
        for action in actions:
            if not action.option_strings and (action.nargs in {"*", "+"} or not self._operands):
                return action
        return None

    def _flag(self, word: str) -> None:
        flag, equals, value = word.partition("=")
        action = self._action(word) or self._action(flag)
        if action is None:
            if not word.startswith("--"):
                self._short_flags(word[1:])
        elif equals and action.nargs != 0:
            self._give(action, value)
        elif action.nargs == 0:
            self._give(action, None)
        else:
            self._waiting = action

    def _short_flags(self, letters: str) -> None:
        """`-Aw` are two flags, `-Anshop` two with a value."""
        for place, letter in enumerate(letters, start=1):
            action = self._action(f"-{letter}")
            if action is None:
                return
            if action.nargs != 0:
                if letters[place:]:
                    self._give(action, letters[place:].removeprefix("="))
                else:
                    self._waiting = action
                return
            self._give(action, None)

    def _action(self, flag: str) -> argparse.Action | None:
        if self._parser is None:
            return None
        return self._parser._option_string_actions.get(flag)  # noqa: SLF001 - see _commands

    def _give(self, action: argparse.Action, value: str | None) -> None:
        if value is None:
            setattr(self._options, action.dest, action.const)
        elif isinstance(action, argparse._AppendAction):  # noqa: SLF001 - see _commands
            setattr(self._options, action.dest, [*getattr(self._options, action.dest, ()), value])
        else:
            setattr(self._options, action.dest, value)


def _may_lack_value(action: argparse.Action, word: str) -> bool:
    """Whether the word is the next flag, since this one goes without a value too."""
    return action.nargs == "?" and word.startswith("-") and word != "-"


def _commands(parser: argparse.ArgumentParser) -> dict[str, CommandParser]:
    for action in parser._actions:  # noqa: SLF001 - argparse has no public way to ask
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - likewise
            return dict(action.choices)
    return {}
