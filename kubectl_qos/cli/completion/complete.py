"""From words to an offer: commands, flags, and values by the table."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from typing import Final

from kubectl_qos.cli.completion.directives import NO_FILES, NOTHING, Candidate, Completions, completions
from kubectl_qos.cli.completion.parse import Position, position
from kubectl_qos.cli.main import build_parser

REQUEST_SECONDS: Final = 1.0
"""How long a server may take, connecting included: whoever presses TAB waits."""


def complete(words: Sequence[str], seconds: float = REQUEST_SECONDS) -> Completions:
    """What the last of these words may become. Raises QosError for a kubeconfig that cannot be used."""
    at = position(build_parser(), words)
    found = _offered(at, seconds).starting_with(at.word)
    return NOTHING if found.directive == NO_FILES and _is_taken_for_a_flag(at) else found


def _is_taken_for_a_flag(at: Position) -> bool:
    """Whether kubectl's scripts take more of the word for a flag than its flag, and would put it there twice.

    Those for zsh and fish do so with all from a dash to the last `=`: `--set=KEY=`, `part-of=`.

    Source: github.com/spf13/cobra/zsh_completions.go and fish_completions.go (flagPrefix).
    """
    before = f"{at.flag}=" if at.flag else ""
    taken = re.search(r"-.*=", before + at.word)
    return taken is not None and taken[0] != before


def _offered(at: Position, seconds: float) -> Completions:
    action = at.action
    if action is None:
        return Completions(tuple(_flag_names(at))) if not at.flag else NOTHING
    if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - argparse has no public way to ask
        return Completions(tuple(Candidate(one.dest, one.help or "") for one in action._choices_actions))  # noqa: SLF001
    if action.choices is not None:
        return completions(map(str, action.choices))
    if action.nargs == 0:
        return completions(_switch_values(at))
    from kubectl_qos.cli.completion.completers import completer
    from kubectl_qos.cli.completion.names import NameSources

    return completer(at.command, action.dest)(at, NameSources(at.options, seconds))


def _flag_names(at: Position) -> Iterator[Candidate]:
    """Those that may still be given, by their long and their short name."""
    for action in at.flags:
        is_repeatable = isinstance(action, argparse._AppendAction)  # noqa: SLF001 - likewise
        if action.help == argparse.SUPPRESS or (action.dest in at.options and not is_repeatable):
            continue
        for flag in action.option_strings:
            yield Candidate(flag, action.help or "")


def _switch_values(at: Position) -> Iterator[str]:
    """Behind `--wait=`: what the grammar has as flags of their own (flags.add_switch)."""
    for action in at.flags:
        for flag in action.option_strings:
            name, equals, value = flag.partition("=")
            if equals and name == at.flag:
                yield value
