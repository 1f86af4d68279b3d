"""The command line: parse, dispatch, and errors as exit codes.

Only the module of the given command is imported. Not here: the commands (commands/).
"""

from __future__ import annotations

import argparse
import atexit
import gc
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from textwrap import fill, wrap
from typing import TYPE_CHECKING, Any, Final, NoReturn

from kubectl_qos.cli import output
from kubectl_qos.cli.commands import COMMANDS, module_name
from kubectl_qos.cli.flags import Formats, Switch, add_at, add_readonly, add_shared_flags, add_switch
from kubectl_qos.cli.output import logging_to
from kubectl_qos.errors import EXIT_INTERRUPTED, QosError, UsageError, did_you_mean, nearest
from kubectl_qos.version import __version__

if TYPE_CHECKING:
    from kubectl_qos.cli.commands.edit import Options as EditOptions

EXIT_DEFECT: Final = 2
"""The exit code for bugs, the same as when a Go program panics; 1 would mean a finding in some commands."""
DEFECT_HINT: Final = (
    "this is a bug in kubectl-qos; please report it with the output of -v=9 and kubectl qos version -o yaml"
)
_MISSING_ARGUMENT: Final = re.compile(r"argument (\S+): expected one argument")
_UNKNOWN_LETTER: Final = re.compile(r"argument \S+: ignored explicit argument '((.).*)'")
_KUBECTL_EQUIVALENTS: Final = {"get": "top", "describe": "explain", "patch": "set"}
"""The command that comes closest to a command of kubectl."""
_NEGATIVE: Final = re.compile(r"-\d")
"""The start of values such as `-1h`, which argparse would mistake for flags."""
EXAMPLES: Final = """\
examples:
  kubectl qos                                             # the terminal UI
  kubectl qos next                                        # who dies next on each node, by which killer
  kubectl qos explain deploy/api -n shop                  # why this class, this score, these cgroup values
  kubectl qos set deploy/api -n shop --limits memory=3Gi  # preview another value, then apply it
  kubectl get pods,nodes -A -o json | kubectl qos top -f -
  kubectl qos --demo                                      # the terminal UI on an embedded cluster
"""


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that raises QosErrors instead of exiting, and behaves and words errors like pflag."""

    _words: Sequence[str] = ()
    shared_groups: Sequence[argparse._ArgumentGroup] = ()

    def add_shared_flags(self) -> None:
        """Add the flags that every command has, and remember their groups as `shared_groups`."""
        own = len(self._action_groups)
        add_shared_flags(self)
        self.shared_groups = self._action_groups[own:]

    def format_help(self) -> str:
        """Return the description, examples and flags of the command in the order of kubectl's --help."""
        formatter = self._get_formatter()
        formatter._action_max_length = formatter._max_help_position  # noqa: SLF001 - one column for all
        paragraphs = (self.description or "").split("\n\n")
        formatter.add_text("\n\n".join(fill(text, formatter._width) for text in paragraphs))  # noqa: SLF001
        formatter.add_text("\n\n".join(_fitted_sections(self.epilog or "", output.terminal_width())))
        for group in self._action_groups:
            if group not in self.shared_groups:
                _add_section(formatter, group)
        actions = self._get_positional_actions()
        operands = (formatter._format_args(action, str(action.metavar)) for action in actions)  # noqa: SLF001
        formatter.add_text(f"usage:\n  {' '.join((self.prog, *operands))} [flags]")
        formatter.add_text(
            f'Use "{_program_name()} options" for the flags of every command (-n, -A, -f, --demo …).'
        )
        return formatter.format_help()

    def format_options(self) -> str:
        """Return the help of the flags that every command has."""
        formatter = self._get_formatter()
        formatter.add_text("Every command has these flags, before or after its name:")
        for group in self.shared_groups:
            _add_section(formatter, group)
        return formatter.format_help()

    def error(self, message: str) -> NoReturn:
        """Raise UsageError, in pflag's words for the errors that pflag knows."""
        without_value = _MISSING_ARGUMENT.fullmatch(message)
        if without_value is not None:
            names = without_value[1].split("/")
            flag = next((word for word in self._words[-1:] if word in names), names[-1])
            is_short = not flag.startswith("--")
            message = f"flag needs an argument: {f'{flag[1]!r} in ' if is_short else ''}{flag}"
        unknown = _UNKNOWN_LETTER.fullmatch(message)
        if unknown is not None:
            message = f"unknown shorthand flag: {unknown[2]!r} in -{unknown[1]}"
        raise UsageError(message, hint=f"see '{self.prog} --help'")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse words; a switch may have any value that Go reads as a boolean."""
        words = list(args)
        end = words.index("--") if "--" in words else len(words)
        self._words = words
        words[:end] = [part for word in words[:end] for part in self._with_switch_value(word)]
        self._negative_number_matcher = _NEGATIVE
        return super().parse_known_args(words, namespace)

    def _with_switch_value(self, word: str) -> Iterator[str]:
        """Yield the word with its boolean as `true` or `false`; in `-wA=1` the value is that of -A."""
        flag, equals, text = word.partition("=")
        flags = [flag] if flag.startswith("--") else [f"-{letter}" for letter in flag[1:]]
        actions = [self._option_string_actions.get(name) for name in flags]
        are_switches = flags and all(isinstance(action, Switch) for action in actions)
        last = actions[-1] if equals and are_switches else None
        if isinstance(last, Switch):
            yield from flags[:-1]
            yield f"{flags[-1]}={last.parse(text)}"
        else:
            yield word

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Raise UsageError for an unknown command, with the nearest one, and for an unknown format."""
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:  # noqa: SLF001
            # argparse took the value of an unknown flag for a command: report the flag.
            before = self._words[self._words.index(value) - 1] if value in self._words[1:] else ""
            if before.startswith("--") and before not in self._option_string_actions:
                self.take_words_left_over([before], argparse.Namespace())
            hint = did_you_mean(_resource_command(value)) or self._suggestion(value, action.choices)
            raise UsageError(f'unknown command "{value}" for "{self.prog}"', hint)
        if isinstance(action.choices, Formats) and value not in action.choices:
            if value.startswith("go-template"):
                raise UsageError("Go templates are not supported", hint="-o jsonpath='{.items[*].pod}'")
            self.error(
                f"argument -o/--output: invalid choice: {value!r} (choose from {action.choices.names})"
            )
        super()._check_value(action, value)

    def _suggestion(self, word: str, names: Iterable[str]) -> str:
        name = word.lstrip("-")
        if word in _KUBECTL_EQUIVALENTS:
            return did_you_mean(_KUBECTL_EQUIVALENTS[word])
        near = nearest(name, (other.lstrip("-") for other in names))
        return did_you_mean(near and word.removesuffix(name) + near) or f"see '{self.prog} --help'"

    def take_words_left_over(self, words: Sequence[str], namespace: argparse.Namespace) -> None:
        """Add words that argparse did not parse to the operand: words between flags, as kubectl allows them.

        Raises UsageError for a flag, and for words without an operand that takes several.
        """
        end = words.index("--") if "--" in words else len(words)
        for word in words[:end]:
            flag = word.partition("=")[0]
            if flag.startswith("--"):
                flags = [name for name in self._option_string_actions if "=" not in name]
                parsers = build_parsers().items()
                others = [name for name, parser in parsers if flag in parser._option_string_actions]  # noqa: SLF001
                if any(map(flag.startswith, flags)):  # a plural, say
                    others = []
                elsewhere = f"{flag} is a flag of {', '.join(filter(None, others))}" if others else ""
                raise UsageError(f"unknown flag: {flag}", hint=elsewhere or self._suggestion(flag, flags))
            if flag.startswith("-") and flag != "-":
                self.error(f"unknown shorthand flag: {flag[1]!r} in {word}")
        words = [*words[:end], *words[end + 1 :]]
        operands = [action for action in self._get_positional_actions() if action.nargs in {"*", "+"}]
        if words and not operands:
            self.error(f"unexpected arguments: {' '.join(words)}")
        for operand in operands:
            setattr(namespace, operand.dest, [*getattr(namespace, operand.dest), *words])


def _resource_command(word: str) -> str:
    """Return the command that shows a resource such as `pods` or `deploy/api`, or "" if it is none."""
    from kubectl_qos.cli.resources import parse_group, parse_kind

    type_, slash, _ = word.partition("/")
    kind = parse_kind(type_)
    if slash and kind:
        return f"{'next' if kind == 'Node' else 'explain'} {word}"
    if kind in {"Pod", "Node"} or parse_group([word]):
        return f"top {word}"
    return "top workloads" if kind else ""


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """argparse's formatter, but a value is printed once, after all names of its flag, and breaks at `|`."""

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        text = f"{', '.join(action.option_strings)} {value}".replace("|", "| ")
        lines = wrap(text, self._width - 6, break_on_hyphens=False)
        return "\n      ".join(lines).replace("| ", "|")


def _fitted_sections(epilog: str, width: int | None) -> Iterator[str]:
    """Yield sections of help that fit a terminal; in a narrow one comments are above their commands."""
    for section in epilog.strip("\n").split("\n\n"):
        title, *lines = section.split("\n")
        if width is None or max(map(len, lines), default=0) <= width:
            yield section
        elif title == "examples:":
            parts = [line.partition("  # ") for line in lines]
            comments = [wrap(text, width - 4) for _, _, text in parts]
            texts = (
                "\n".join([*(f"  # {line}" for line in comment), command.rstrip()])
                for (command, _, _), comment in zip(parts, comments, strict=True)
            )
            yield "\n".join([title, *texts])
        else:
            text = re.sub(r"\n {4,}", " ", "\n".join(lines))
            yield "\n".join(
                [title, *(line for row in text.split("\n") for line in _with_hanging_indent(row, width))]
            )


def _with_hanging_indent(row: str, width: int) -> list[str]:
    """Return the lines of a name and its text; all after the first are indented to the text."""
    label = re.match(r" *\S.*? {2,}", row)
    name = label[0] if label else ""
    return wrap(row[len(name) :], width, initial_indent=name, subsequent_indent=" " * len(name))


def _add_section(formatter: argparse.HelpFormatter, group: argparse._ArgumentGroup) -> None:
    formatter.start_section(group.title)
    formatter.add_arguments(group._group_actions)  # noqa: SLF001
    formatter.end_section()


class CommandParser(Parser):
    """The parser of a command; it imports the command's module when the arguments are needed."""

    command = ""
    more_help: Callable[[], Iterable[str]] = staticmethod(tuple)

    def load(self) -> CommandParser:
        """Add the flags of the command, then the shared ones."""
        if self.command:
            module, self.command = import_module(module_name(self.command)), ""
            self.description, self.epilog = module.DESCRIPTION, getattr(module, "EXAMPLES", None)
            self.more_help = getattr(module, "more_help", tuple)
            module.add_arguments(self)
            self.add_shared_flags()
        return self

    def format_help(self) -> str:
        """Return the text of --help, with the command's `more_help` at its end."""
        lines, width = [*self.more_help()], output.terminal_width()
        if lines and width is not None:
            from kubectl_qos.present.output import wrapped

            lines = [*wrapped(lines, width)]
        return "".join((super().format_help(), *(f"{line}\n" for line in lines)))

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse what follows the command's name."""
        namespace, words = super(CommandParser, self.load()).parse_known_args(args, namespace)
        self.take_words_left_over(words, namespace)
        return namespace, []


def build_parser() -> Parser:
    """Return the grammar of the command line; `CommandParser.load` adds the arguments of a command."""
    parser = Parser(
        prog=_program_name(),
        description="When a node runs out of memory, who dies, why, and what do I change?",
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
        add_help=False,
    )
    parser.add_shared_flags()
    add_switch(parser, "--version", help="print the version and exit")
    add_readonly(parser)
    add_at(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=CommandParser)
    for name, summary in COMMANDS.items():
        command_parser = commands.add_parser(
            name, help=summary, allow_abbrev=False, add_help=False, formatter_class=HelpFormatter
        )
        command_parser.command = name
    return parser


def subcommands(parser: argparse.ArgumentParser) -> dict[str, CommandParser]:
    """Return the parser of each command."""
    (commands,) = (action.choices for action in parser._actions if isinstance(action.choices, dict))  # noqa: SLF001
    return commands


def build_parsers() -> dict[str, Parser]:
    """Return the parser of the program, under an empty name, and of each command, with all arguments."""
    parser = build_parser()
    return {"": parser, **{name: command.load() for name, command in subcommands(parser).items()}}


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Return the parsed words with shared flags; `command` is None for the terminal UI. Raises UsageError."""
    parser = build_parser()
    namespace = argparse.Namespace(readonly=False)
    parser.take_words_left_over(parser.parse_known_args(words, namespace)[1], namespace)
    command = namespace.command
    if "at" in namespace and command and "--at" not in subcommands(parser)[command]._option_string_actions:  # noqa: SLF001
        raise UsageError(
            f"{command} does not support --at",
            hint="--at is for the UI and for commands that only read: top, next, explain, kills, …",
        )
    if namespace.command is None and not namespace.version and not sys.stdout.isatty():
        parser.parse_args(["top"], namespace)
    if "target" in namespace:
        from kubectl_qos.cli.resources import take_namespace

        take_namespace(namespace)
    return namespace


def run(words: Sequence[str], open_ui: Callable[[EditOptions], int]) -> int:
    """Run a command line and return its exit code; `open_ui` runs the terminal UI."""
    # Objects live until the process ends: collecting garbage took a fifth of its time, some of it at the end.
    gc.disable()
    atexit.register(gc.freeze)
    try:
        return exit_code_for(lambda: _run(words, open_ui))
    finally:
        gc.enable()


def _run(words: Sequence[str], open_ui: Callable[[EditOptions], int]) -> int:
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
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

    if opens_ui:
        gc.enable()
    verbosity = vars(namespace).get("verbosity", 0)
    if not verbosity:
        return act()
    with logging_to(verbosity, to_file=opens_ui):
        return act()


def exit_code_for(action: Callable[[], int]) -> int:
    """Run an action and turn an error into its sentence and exit code, here and nowhere else."""
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
    """Return `kubectl qos` if started as a kubectl plugin, else `kubectl-qos`."""
    name = sys.argv[0].replace(os.sep, "/").rpartition("/")[2]
    as_plugin = name.startswith("kubectl-") and "KUBECTL_PATH" in os.environ
    return "kubectl qos" if as_plugin or name.startswith("kubectl-qos") else "kubectl-qos"
