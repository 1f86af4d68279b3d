"""Complete a command line: words → position in the grammar → candidates → the protocol of kubectl's scripts.

Shells run `kubectl-qos __complete WORDS…`, and kubectl runs `kubectl_complete-qos WORDS…`. Not here:
candidates for values (completers.py), and the flags themselves (cli/flags.py, cli/commands/).

Errors are not printed, as they would appear in the middle of the line that is being typed. If
BASH_COMP_DEBUG_FILE names a file, they are written to it, as by all programs that use cobra.

Source: github.com/spf13/cobra/completions.go (ShellCompDirective) and
k8s.io/kubectl/pkg/cmd/plugin/plugin_completion.go (getPluginCompletions).
"""

# argparse keeps its actions to itself.
# ruff: noqa: SLF001

import argparse
import gc
import os
import re
import sys
import threading
from collections.abc import Iterator, Sequence
from io import TextIOWrapper
from typing import Final

from kubectl_qos.cli import output
from kubectl_qos.cli.completion.candidates import (
    NO_FILES,
    NOTHING,
    Completion,
    Completions,
    Position,
    find_position,
)
from kubectl_qos.cli.flags import Switch

MAX_SECONDS: Final = 3.0
"""Time limit of a completion: a second for the server, the rest for plugins that fetch credentials."""
REQUEST_SECONDS: Final = 1.0
"""Time limit of a request, connecting included: a person who presses TAB waits."""


def main() -> int:
    """Run `kubectl_complete-qos WORDS…` for kubectl."""
    return answer(sys.argv[1:])


def answer(words: Sequence[str]) -> int:
    """Print completions of the last word, none if that takes too long. The exit code is always 0."""
    # The process ends before garbage could matter.
    gc.disable()
    _silence()
    done: list[Completions] = []
    thread = threading.Thread(target=lambda: done.append(_complete_quietly(words)), daemon=True)
    thread.start()
    thread.join(MAX_SECONDS)
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
    """Let nothing, plugins included, read standard input or print to stderr."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    log = os.environ.get("BASH_COMP_DEBUG_FILE") or os.devnull
    try:
        descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    except OSError:
        descriptor = os.open(os.devnull, os.O_WRONLY)
    os.dup2(descriptor, 2)


def complete(words: Sequence[str], seconds: float = REQUEST_SECONDS) -> Completions:
    """Complete the last of these words. Raises QosError for a kubeconfig that cannot be used."""
    position = find_position(words)
    completions = _complete_position(position, seconds).starting_with(position.word)
    return NOTHING if completions.directive == NO_FILES and _repeats_flag(position) else completions


def _repeats_flag(position: Position) -> bool:
    """Return True if kubectl's scripts for zsh and fish would insert the flag twice.

    They treat everything from the first dash to the last `=` as the flag: `--assume=KEY=`, and even `-of=` in
    `part-of=`.

    Source: github.com/spf13/cobra/zsh_completions.go and fish_completions.go (flagPrefix).
    """
    before = f"{position.flag}=" if position.flag else ""
    taken = re.search(r"-.*=", before + position.word)
    return taken is not None and taken[0] != before


def _complete_position(position: Position, seconds: float) -> Completions:
    action = position.action
    if action is None:
        return Completions(tuple(_flag_names(position))) if not position.flag else NOTHING
    # argparse has no public way to list what a parser accepts.
    if isinstance(action, argparse._SubParsersAction):
        return Completions(tuple(Completion(item.dest, item.help or "") for item in action._choices_actions))
    if action.choices is not None:
        return Completions.of(map(str, action.choices))
    if isinstance(action, Switch):
        return Completions.of(action.values)
    if action.nargs == 0:
        return NOTHING
    from kubectl_qos.cli.completion.completers import Names, find_completer
    from kubectl_qos.cli.options import SourceOptions, parse_options

    names = Names(parse_options(SourceOptions, position.namespace), seconds)
    return find_completer(position.command, action)(position, names)


def _flag_names(position: Position) -> Iterator[Completion]:
    for action in position.flags:
        is_repeatable = isinstance(action, argparse._AppendAction)
        if action.help == argparse.SUPPRESS or (action.dest in position.namespace and not is_repeatable):
            continue
        for flag in action.option_strings:
            yield Completion(flag, action.help or "")
