"""The command line's grammar, put together from those of its commands."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Final

from kubectl_qos.cli.grammar.shared import Parser, shared_flags
from kubectl_qos.cli.grammar.switches import add_readonly

COMMANDS: Final = (
    "top",
    "explain",
    "tree",
    "compare",
    "edit",
    "set",
    "undo",
    "kills",
    "simulate",
    "verify",
    "host",
    "can-i",
    "web",
    "completion",
    "version",
    "bug-report",
)
"""In the order of --help; the grammar of each is a module of its name."""

EXAMPLES: Final = """\
examples:
  kubectl qos                                the terminal UI
  kubectl qos top -A                         every pod, the next victims first
  kubectl qos top --node worker-2            the kill order of one node
  kubectl qos explain pod/web-0 -n shop      why this class, this score, these cgroup values
  kubectl qos tree node/worker-2             its cgroups and what is written there
  kubectl qos compare node/worker-2 --to 1.37  what an upgrade changes for its pods
  kubectl qos set pod/web-0 --limits memory=1Gi  change them, with what that does shown first
  kubectl qos undo                           take the last change back
  kubectl qos verify pod/web-0               whether the node has what was computed
  kubectl qos kills -A --since 1h            what was killed, by which mechanism, and how sure that is
  kubectl qos host                           on a node: its own processes, daemons too, in the kernel's order
  kubectl qos simulate node/worker-2 --free 4Gi  who dies, in which order, until so much is free
  kubectl qos can-i                          which rights you have, and what more would give
  kubectl get pods,nodes -A -o json | kubectl qos top -f -
  kubectl qos --demo                         the terminal UI on an embedded cluster
  kubectl qos web --open                     the same UI in a browser
"""


def program_name() -> str:
    """`kubectl qos` when started as a kubectl plugin, else `kubectl-qos`."""
    name = Path(sys.argv[0]).name
    as_plugin = name.startswith("kubectl-") and "KUBECTL_PATH" in os.environ
    return "kubectl qos" if as_plugin or name.startswith("kubectl-qos") else "kubectl-qos"


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The parsed command line; `command` is None for the terminal UI. Raises UsageError."""
    return build(arguments).parse_args(arguments)


def spelled(options: argparse.Namespace) -> list[str]:
    """The flags of every command that were given, a word each: parsed anew, they say the same."""
    words: dict[str, list[str]] = {}
    for action in shared_flags()._actions:  # noqa: SLF001 - argparse has no public way to ask
        if action.dest not in options:
            continue
        value, flag = getattr(options, action.dest), action.option_strings[-1]
        if action.nargs != 0:
            words[action.dest] = [f"{flag}={one}" for one in (value if isinstance(value, list) else [value])]
        elif value == action.const:
            words[action.dest] = [flag]
    return [word for given in words.values() for word in given]


def build(words: Sequence[str] = ()) -> argparse.ArgumentParser:
    """The whole grammar; for words that begin with a command its grammar alone, in half of the time."""
    shared = shared_flags()
    parser = Parser(
        prog=program_name(),
        description="When a node runs out of memory, who dies, why, and what do I change?",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[shared],
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    add_readonly(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    for name in words[:1] if words and words[0] in COMMANDS else COMMANDS:
        grammar = import_module(f"kubectl_qos.cli.grammar.{name.replace('-', '_')}")
        examples = getattr(grammar, "EXAMPLES", None)
        command = commands.add_parser(
            name,
            help=grammar.SUMMARY,
            description=grammar.DESCRIPTION,
            epilog=examples,
            formatter_class=argparse.RawDescriptionHelpFormatter if examples else argparse.HelpFormatter,
            parents=[shared],
            allow_abbrev=False,
            argument_default=argparse.SUPPRESS,
        )
        grammar.fill(command)
    return parser
