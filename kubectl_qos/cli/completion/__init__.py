"""What TAB offers: words → position in the grammar → candidates → lines in the protocol of kubectl's scripts.

Shells and kubectl start it as `kubectl-qos __complete WORDS…` and `kubectl_complete-qos WORDS…`. Not here:
candidates for values (completers.py), which flags there are (cli/flags.py, cli/commands/).

An error message in the middle of a command line that is being typed helps no one, so nothing is printed but
candidates. BASH_COMP_DEBUG_FILE names a file for what went wrong, as for all programs made with cobra.

Source: github.com/spf13/cobra/completions.go (ShellCompDirective) and
k8s.io/kubectl/pkg/cmd/plugin/plugin_completion.go (getPluginCompletions).
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from io import TextIOWrapper
from typing import Final, NamedTuple

from kubectl_qos.cli import output
from kubectl_qos.cli.flags import Switch
from kubectl_qos.cli.main import build_parser, subcommands

MAX_SECONDS: Final = 3.0
"""How long all of it may take: a server has a second, the rest is for plugins that fetch credentials."""
REQUEST_SECONDS: Final = 1.0
"""How long a server may take, connecting included: a person who presses TAB waits."""

FILES: Final = 0
"""The shell completes file names where there are no candidates."""
NO_SPACE: Final = 2
NO_FILES: Final = 4
EXTENSIONS: Final = 8
"""The candidates are endings of file names."""
FOLDERS: Final = 16

_UNFINISHED: Final = ("=", "/", ":", "-")
"""The ends of candidates after which more is to be typed."""
_MAX_DESCRIPTION: Final = 80
_UNSAFE: Final = frozenset("`$\\\"'*?[]{}()<>|&;!#")
"""Some versions of the shells' scripts evaluate candidates, and these come from servers and files."""


class Candidate(NamedTuple):
    """What the word being typed may become, with a description in a few words."""

    value: str
    description: str = ""


class Completions(NamedTuple):
    """Candidates, and a directive for the shell."""

    candidates: tuple[Candidate, ...] = ()
    directive: int = NO_FILES

    @staticmethod
    def of(values: Iterable[str]) -> Completions:
        """These values, without descriptions."""
        return Completions(tuple(map(Candidate, values)))

    def starting_with(self, word: str) -> Completions:
        """The candidates that continue a word, each once; endings of files are no candidates."""
        if self.directive != NO_FILES:
            return self
        kept = {item.value: item for item in self.candidates if item.value.startswith(word)}
        return Completions(tuple(kept.values()))

    def text(self) -> str:
        """The lines that shells read, one for each candidate whatever its name has in it."""
        kept = [item for item in self.candidates if _is_safe(item.value)]
        is_unfinished = any(item.value.endswith(_UNFINISHED) for item in kept)
        directive = self.directive | (NO_SPACE if is_unfinished else 0)
        return "".join(f"{line}\n" for line in (*map(_line, kept), f":{directive}"))


NOTHING: Final = Completions()


def _is_safe(value: str) -> bool:
    return bool(value) and value == value.strip() and value.isprintable() and _UNSAFE.isdisjoint(value)


def _line(candidate: Candidate) -> str:
    printable = (char if char.isprintable() else " " for char in candidate.description)
    description = " ".join("".join(printable).split())
    if len(description) > _MAX_DESCRIPTION:
        description = f"{description[: _MAX_DESCRIPTION - 1].rstrip()}…"
    return f"{candidate.value}\t{description}" if description else candidate.value


def main() -> int:
    """`kubectl_complete-qos WORDS…`, which kubectl starts."""
    return answer(sys.argv[1:])


def answer(words: Sequence[str], *, seconds: float = MAX_SECONDS) -> int:
    """Print what the last word may become, nothing if that takes too long; the exit code is always 0."""
    # The process ends before garbage could matter.
    gc.disable()
    _silence()
    done: list[Completions] = []
    thread = threading.Thread(target=lambda: done.append(_complete_quietly(words)), daemon=True)
    thread.start()
    thread.join(seconds)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    output.print_text((done[0] if done else NOTHING).text())
    return 0


def _complete_quietly(words: Sequence[str]) -> Completions:
    try:
        return complete(words)
    except Exception:  # noqa: BLE001 - see the module
        import traceback

        traceback.print_exc()
        return NOTHING


def _silence() -> None:
    """Keep plugins, and us, from reading input and printing anything."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    log = os.environ.get("BASH_COMP_DEBUG_FILE") or os.devnull
    try:
        descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    except OSError:
        descriptor = os.open(os.devnull, os.O_WRONLY)
    os.dup2(descriptor, 2)


def complete(words: Sequence[str], seconds: float = REQUEST_SECONDS) -> Completions:
    """What the last of these words may become. Raises QosError for a kubeconfig that cannot be used."""
    at = find_position(words)
    offered = _offer(at, seconds).starting_with(at.word)
    return NOTHING if offered.directive == NO_FILES and _is_taken_for_a_flag(at) else offered


def _is_taken_for_a_flag(at: Position) -> bool:
    """Whether kubectl's scripts take more of the word for a flag than its flag, and would repeat it.

    Those for zsh and fish do so with all from a dash to the last `=`: `--assume=KEY=`, `part-of=`.

    Source: github.com/spf13/cobra/zsh_completions.go and fish_completions.go (flagPrefix).
    """
    before = f"{at.flag}=" if at.flag else ""
    taken = re.search(r"-.*=", before + at.word)
    return taken is not None and taken[0] != before


# argparse has no public way to list what a parser accepts.
# ruff: noqa: SLF001


def _offer(at: Position, seconds: float) -> Completions:
    action = at.action
    if action is None:
        return Completions(tuple(_flag_names(at))) if not at.flag else NOTHING
    if isinstance(action, argparse._SubParsersAction):
        return Completions(tuple(Candidate(item.dest, item.help or "") for item in action._choices_actions))
    if action.choices is not None:
        return Completions.of(map(str, action.choices))
    if isinstance(action, Switch):
        return Completions.of(action.values)
    if action.nargs == 0:
        return NOTHING
    from kubectl_qos.cli.completion.completers import Names, find_completer
    from kubectl_qos.cli.options import SourceOptions, parse_options

    return find_completer(at.command, action.dest)(
        at, Names(parse_options(SourceOptions, at.namespace), seconds)
    )


def _flag_names(at: Position) -> Iterator[Candidate]:
    for action in at.flags:
        is_repeatable = isinstance(action, argparse._AppendAction)
        if action.help == argparse.SUPPRESS or (action.dest in at.namespace and not is_repeatable):
            continue
        for flag in action.option_strings:
            yield Candidate(flag, action.help or "")


class Position(NamedTuple):
    """Where in the grammar the word that is being typed stands; before any command that is empty.

    `action` is the flag or operand whose value is being typed, if it is one, `word` as much as there is of
    that, or of the name of a flag; `flag` is what stands before the sign in `--flag=VALUE`. `flags` are those
    of the command where the name of one is being typed, or `--flag=VALUE`. `operands` are the words before it
    that belong to no flag, `namespace` has the values of the flags there.
    """

    command: str
    action: argparse.Action | None
    word: str
    flag: str
    flags: tuple[argparse.Action, ...]
    operands: tuple[str, ...]
    namespace: argparse.Namespace


def find_position(words: Sequence[str]) -> Position:
    """The position of the last word, which may be empty, among all words behind the program's name."""
    *before, word = words[1:] if words[:1] == ["help"] and len(words) > 1 else words or [""]
    reader = _WordReader(build_parser())
    for complete_word in before:
        reader.read(complete_word)
    return reader.at(word)


class _WordReader:
    """What is known after the words so far; argparse itself would stop at the first that is wrong."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._parser: argparse.ArgumentParser | None = parser
        self._command = ""
        self._namespace = argparse.Namespace()
        self._operands: list[str] = []
        self._waiting: argparse.Action | None = None
        self._only_operands = False

    def read(self, word: str) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not _may_lack_value(waiting, word):
            self._give(waiting, word)
        elif self._only_operands or not word.startswith("-") or word == "-":
            self._read_operand(word)
        elif word == "--":
            self._only_operands = True
        else:
            self._read_flag(word)

    def at(self, word: str) -> Position:
        """The position of a word that is not complete."""
        action, flag = self._waiting, ""
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
            self._waiting = action

    def _read_short_flags(self, letters: str) -> None:
        """`-Aw` are two flags, `-Anshop` two with a value."""
        for end, letter in enumerate(letters, start=1):
            action = self._find_action(f"-{letter}")
            if action is None:
                return
            if action.nargs != 0:
                if letters[end:]:
                    self._give(action, letters[end:].removeprefix("="))
                else:
                    self._waiting = action
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
    """Whether the word is the next flag, since this one may stand without a value."""
    return action.nargs == "?" and word.startswith("-") and word != "-"
