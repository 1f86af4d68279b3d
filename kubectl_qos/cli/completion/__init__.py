"""What TAB offers: words → position in the grammar → candidates → lines in the protocol of kubectl's scripts.

Shells and kubectl start it as `kubectl-qos __complete WORDS…` and `kubectl_complete-qos WORDS…`. Not here:
candidates for values (completers.py), which flags there are (cli/flags.py, cli/commands/).

An error message in the middle of a command line that is being typed helps no one, so nothing is printed but
candidates. BASH_COMP_DEBUG_FILE names a file for what went wrong, as for all programs made with cobra.

Source: github.com/spf13/cobra/completions.go (ShellCompDirective) and
k8s.io/kubectl/pkg/cmd/plugin/plugin_completion.go (getPluginCompletions).
"""

# argparse keeps its actions to itself.
# ruff: noqa: SLF001

from __future__ import annotations

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
from kubectl_qos.cli.completion.candidates import NO_FILES, NOTHING, Candidate, Completions
from kubectl_qos.cli.completion.position import Position, find_position
from kubectl_qos.cli.flags import Switch

MAX_SECONDS: Final = 3.0
"""How long all of it may take: a server has a second, the rest is for plugins that fetch credentials."""
REQUEST_SECONDS: Final = 1.0
"""How long a server may take, connecting included: a person who presses TAB waits."""


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
