"""The command line: parse, dispatch, and errors as exit codes.

Only the module of the command that is given is imported. Not here: what commands do (commands/).
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NoReturn

from kubectl_qos import __version__
from kubectl_qos.cli import output
from kubectl_qos.cli.commands import COMMANDS, module_name
from kubectl_qos.cli.flags import add_readonly, add_shared_flags
from kubectl_qos.errors import EXIT_INTERRUPTED, QosError, UsageError

if TYPE_CHECKING:
    from kubectl_qos.cli.commands.edit import Options as EditOptions

EXIT_DEFECT: Final = 2
"""As of a Go program that panics; 1 of some commands means that they found something."""
DEFECT_HINT: Final = (
    "this is a defect of kubectl-qos; please report it with what -v=9 and kubectl qos bug-report print"
)
EXAMPLES: Final = """\
examples:
  kubectl qos                                the terminal UI
  kubectl qos top -A                         every pod, the next victims first
  kubectl qos top --node worker-2            the kill order of one node
  kubectl qos explain pod/web-0 -n shop      why this class, this score, these cgroup values
  kubectl qos tree node/worker-2             its cgroups and what is written there
  kubectl qos compare node/worker-2 --to 1.37  what an upgrade changes for its pods
  kubectl qos set pod/web-0 --limits memory=1Gi  preview another value, then apply it
  kubectl qos undo                           revert the last change
  kubectl qos verify pod/web-0               compare computed values with measured ones
  kubectl qos kills -A --since 1h            what was killed, by which mechanism, with the evidence
  kubectl qos host                           on a node: its processes in kill order
  kubectl qos simulate node/worker-2 --free 4Gi  simulate kills until 4Gi has been freed
  kubectl qos can-i                          your permissions, and what more would enable
  kubectl get pods,nodes -A -o json | kubectl qos top -f -
  kubectl qos --demo                         the terminal UI on an embedded cluster
  kubectl qos web --open                     the same UI in a browser
"""


class Parser(argparse.ArgumentParser):
    """argparse with our exceptions in place of its own exit."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError with a sentence of argparse's."""
        raise UsageError(message, hint=f"see '{self.prog} --help'")


class CommandParser(Parser):
    """The parser of a command, which imports its module once its arguments are needed."""

    command = ""

    def load(self) -> CommandParser:
        """Add the shared flags and those of the command."""
        if self.command:
            module, self.command = import_module(module_name(self.command)), ""
            self.description, self.epilog = module.DESCRIPTION, getattr(module, "EXAMPLES", None)
            if self.epilog:
                self.formatter_class = argparse.RawDescriptionHelpFormatter
            add_shared_flags(self)
            module.add_arguments(self)
        return self

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse what stands behind the command's name."""
        return super(CommandParser, self.load()).parse_known_args(args, namespace)


def build_parser() -> Parser:
    """The grammar of the command line; the arguments of a command are added by `CommandParser.load`."""
    parser = Parser(
        prog=_program_name(),
        description="When a node runs out of memory, who dies, why, and what do I change?",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add_shared_flags(parser)
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    add_readonly(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=CommandParser)
    for name, summary in COMMANDS.items():
        commands.add_parser(name, help=summary, allow_abbrev=False).command = name
    return parser


def subcommands(parser: argparse.ArgumentParser) -> dict[str, CommandParser]:
    """The parser of each command."""
    (commands,) = (action.choices for action in parser._actions if isinstance(action.choices, dict))  # noqa: SLF001
    return commands


def build_parsers() -> dict[str, Parser]:
    """The parser of the program, under an empty name, and of each command, with all arguments."""
    parser = build_parser()
    return {"": parser, **{name: command.load() for name, command in subcommands(parser).items()}}


def parse(words: Sequence[str]) -> argparse.Namespace:
    """The parsed words, with the shared flags among them; `command` is None for the terminal UI.

    Raises UsageError.
    """
    parser = build_parser()
    namespace = parser.parse_args(words, argparse.Namespace(readonly=False))
    if namespace.command is None and not namespace.version and not sys.stdout.isatty():
        parser.parse_args(["top"], namespace)
    return namespace


def run(words: Sequence[str], open_ui: Callable[[EditOptions], int]) -> int:
    """The exit code of a command line; `open_ui` runs the terminal UI."""
    return exit_code_for(lambda: _run(words, open_ui))


def _run(words: Sequence[str], open_ui: Callable[[EditOptions], int]) -> int:
    namespace = parse(words)
    if namespace.version:
        output.print_lines([f"kubectl-qos {__version__}"])
        return 0
    opens_ui = namespace.command in {None, "edit"}
    command = import_module(module_name(namespace.command or "edit"))
    from kubectl_qos.cli.options import parse_options

    def act() -> int:
        run: Callable[[Any], int] = open_ui if opens_ui else command.run
        return run(parse_options(command.Options, namespace))

    if not opens_ui:
        # A command keeps what it makes until it ends: collecting garbage took a fifth of its time.
        gc.disable()
    try:
        verbosity = vars(namespace).get("verbosity", 0)
        if not verbosity:
            return act()
        from kubectl_qos.cli.logging import logging_to

        with logging_to(verbosity, on_screen=opens_ui):
            return act()
    finally:
        gc.enable()


def exit_code_for(action: Callable[[], int]) -> int:
    """Run an action; an error becomes its sentence and exit code, here and nowhere else."""
    output.prepare()
    try:
        return action()
    except QosError as error:
        output.print_error(error)
        return error.exit_code
    except KeyboardInterrupt:
        output.end_progress()
        return EXIT_INTERRUPTED
    except Exception as error:  # noqa: BLE001 - a defect of any kind
        output.note(f"error: unexpected {type(error).__name__}: {error}")
        output.note(f"hint: {DEFECT_HINT}")
        return EXIT_DEFECT


def _program_name() -> str:
    """`kubectl qos` when started as a kubectl plugin, else `kubectl-qos`."""
    name = sys.argv[0].replace(os.sep, "/").rpartition("/")[2]
    as_plugin = name.startswith("kubectl-") and "KUBECTL_PATH" in os.environ
    return "kubectl qos" if as_plugin or name.startswith("kubectl-qos") else "kubectl-qos"
