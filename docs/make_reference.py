"""Write docs/reference from the grammar of the command line: `make reference`.

A page for each command (that of `options` has the flags of every command), for the program, for the keys of
--assume, and for exit codes. Sphinx makes the reference of the site and the man pages of them.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from kubectl_qos.cli.commands import COMMANDS, exit_codes
from kubectl_qos.cli.main import Parser, build_parsers
from kubectl_qos.present.node_settings import node_settings

FOLDER: Final = Path(__file__).parent / "reference"
GENERATED: Final = "<!-- Made from the program's own grammar by docs/make_reference.py: make reference -->"
SPECIAL: Final = re.compile(r"([\\*<>\[\]])")
FLAG: Final = re.compile(r"(?<![\w`-])(--[a-z][\w-]*(?:=[a-z]+)?|-[a-zA-Z](?![\w`-]))(?!`)")
SITE: Final = "kubectl-qos.github.io/kubectl-qos"
SECTION: Final = re.compile(r"^(\S[^\n]*):\n((?: [^\n]*\n|\n)*)", re.MULTILINE)

OPTIONS: Final = "Flags that every command has are in [kubectl-qos-options(1)](options.md)."
GUIDES: Final[Mapping[str, str]] = {
    "edit": "ui",
    "undo": "set",
    "can-i": "rights",
    "options": "start",
    "completion": "start",
    "version": "troubleshooting",
}
"""The page with examples of a command; the others have a page of their name."""

FILES_AND_VARIABLES: Final = """\
## Environment

`KUBECONFIG`
: the kubeconfig files, as for kubectl

`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`
: proxies, as for kubectl

`KUBECTL_QOS_CONFIG`
: another file of settings; empty for none

`KUBECTL_QOS_STATE`
: another folder for what is kept between runs; empty keeps nothing

`NO_COLOR`
: no colours in the terminal UI

## Files

`~/.config/kubectl-qos/config.yaml`
: settings, see [configuration](../configuration.md); elsewhere on macOS and Windows

`~/.local/state/kubectl-qos/`
: what the terminal UI showed last, and the change history

## Exit codes

Those of each command are in [kubectl-qos-exit-codes(1)](exit-codes.md).
"""


def pages() -> dict[str, str]:
    """The text of each page by its file's name."""
    parsers = build_parsers()
    made = {f"{name}.md": "\n".join(_command_page(name, parsers[name])) for name in COMMANDS}
    made["assume.md"] = "\n".join(_assume_page())
    made["exit-codes.md"] = "\n".join(_exit_codes_page())
    made["index.md"] = "\n".join(_program_page(parsers[""]))
    return {name: text.rstrip("\n") + "\n" for name, text in made.items()}


def _command_page(name: str, command: Parser) -> Iterator[str]:
    yield from _head(f"kubectl qos {name}", COMMANDS[name])
    usage = [f"kubectl qos {name}", *map(_argument, _positionals(command)), "[FLAGS]"]
    yield from ("## Usage", "", f"    {' '.join(usage)}", "")
    yield from _description(command)
    if _positionals(command):
        yield from ("## Arguments", "", *_definitions(_positionals(command)))
    groups = command.shared_groups if name == "options" else _own_groups(command)
    flags = list(_grouped(groups))
    if flags:
        yield from ("## Flags", "", *flags)
    if name != "options":
        yield from (OPTIONS, "")
    yield from _epilog(command)
    yield from ("## Exit codes", "")
    for code, meaning in exit_codes(name).items():
        yield from (str(code), f": {_prose(meaning)}", "")
    guide = GUIDES.get(name, name)
    yield from ("## See also", "", f"[{SITE}/{guide}.html](../{guide}.md), [kubectl-qos(1)](index.md)")


def _assume_page() -> Iterator[str]:
    yield from _head("Keys of --assume", "the settings of nodes that --assume takes")
    yield from (
        "`--assume KEY=VALUE` states a setting of nodes that no API returns; `compare` shows its effect.",
        "A RuntimeClass has its own `ociRuntime.NAME`.",
        "",
        "## Keys",
        "",
    )
    for key, type_, default, effect in node_settings():
        yield from (f"`{key}` {_prose(type_)}", f": {_prose(effect)}; default: {_prose(default)}", "")
    yield from (
        "## See also",
        "",
        "[kubectl-qos-options(1)](options.md), [kubectl-qos-compare(1)](compare.md)",
    )


def _exit_codes_page() -> Iterator[str]:
    yield from _head("Exit codes", "what the exit code of each command means")
    for name in COMMANDS:
        yield from (f"## {name}", "")
        for code, meaning in exit_codes(name).items():
            yield from (str(code), f": {_prose(meaning)}", "")
    yield from ("## See also", "", "[kubectl-qos(1)](index.md)")


def _program_page(parser: Parser) -> Iterator[str]:
    yield from _head("kubectl qos", "who dies when a node runs out of memory, why, and what to change")
    yield from ("## Usage", "", "    kubectl qos [FLAGS]", "    kubectl qos COMMAND [FLAGS]", "")
    yield from _description(parser)
    yield from (
        "Without a command the terminal UI is opened, or `top` if standard output is not a terminal.",
        "",
    )
    yield from ("## Commands", "")
    for name, summary in COMMANDS.items():
        yield from (f"[{name}]({name}.md)", f": {_prose(summary)}", "")
    yield from ("## Flags", "", *_grouped(_own_groups(parser)), OPTIONS, "")
    yield from _epilog(parser)
    yield FILES_AND_VARIABLES
    yield from ("## See also", "", f"[{SITE}](../index.md)")


def _head(title: str, summary: str) -> tuple[str, ...]:
    return (f"# {title}", "", f"<!-- {summary} -->", "", GENERATED, "")


def _description(parser: argparse.ArgumentParser) -> Iterator[str]:
    for paragraph in (parser.description or "").strip().split("\n\n"):
        yield from (_prose(paragraph), "")


def _epilog(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The sections at the end of --help, such as its examples, word for word."""
    for number, section in enumerate(SECTION.finditer(parser.epilog or "")):
        if not section[1].startswith("kubectl"):  # the name of a command is no heading
            yield from (f"## {section[1].capitalize()}", "")
        else:
            yield from (*(() if number else ("## Examples", "")), f"{_prose(section[1])}:", "")
        yield "```text"
        lines = section[2].strip("\n").splitlines()
        yield from (line.removeprefix("  ") for line in lines)
        yield from ("```", "")


def _grouped(groups: Iterable[argparse._ArgumentGroup]) -> Iterator[str]:
    """The flags under the titles of their groups."""
    for group in groups:
        flags = [action for action in group._group_actions if action.option_strings]  # noqa: SLF001
        shown = [action for action in flags if action.help != argparse.SUPPRESS]
        if not shown:
            continue
        if group.title not in {"options", "positional arguments"}:
            yield from (f"### {_prose((group.title or '').capitalize())}", "")
        yield from _definitions(shown)


def _definitions(actions: Iterable[argparse.Action]) -> Iterator[str]:
    for action in actions:
        words = _prose(" ".join((action.help or "").split()))
        if isinstance(action, argparse._AppendAction) and "repeat" not in words:  # noqa: SLF001
            words += "; may repeat"
        yield from (", ".join(f"`{name}`" for name in _names(action)), f": {words}", "")


def _names(action: argparse.Action) -> list[str]:
    """A flag in its forms, each with what it takes, or the name of an argument."""
    if not action.option_strings:
        return [_argument(action)]
    if action.nargs == 0:
        return list(action.option_strings)
    value = _value(action)
    return [f"{name} {f'[{value}]' if action.nargs == '?' else value}" for name in action.option_strings]


def _argument(action: argparse.Action) -> str:
    name = _value(action)
    match action.nargs:
        case "*":
            return f"[{name} ...]"
        case "+":
            return f"{name} [{name} ...]"
        case "?":
            return f"[{name}]"
    return name


def _value(action: argparse.Action) -> str:
    if isinstance(action.metavar, str):
        return action.metavar
    return "|".join(map(str, action.choices)) if action.choices else action.dest.upper()


def _prose(text: str) -> str:
    """Plain words as Markdown: flags as code, and nothing that is markup by accident."""
    return FLAG.sub(r"`\1`", SPECIAL.sub(r"\\\1", text))


# argparse keeps what a parser has to itself; there is no public way to ask for it.


def _positionals(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return parser._get_positional_actions()  # noqa: SLF001


def _own_groups(parser: Parser) -> list[argparse._ArgumentGroup]:
    """The groups of flags that not every command has."""
    return [group for group in parser._action_groups if group not in parser.shared_groups]  # noqa: SLF001


def main() -> None:
    """Write every page, and remove those of commands that are gone."""
    FOLDER.mkdir(exist_ok=True)
    made = pages()
    for path in FOLDER.glob("*.md"):
        if path.name not in made:
            path.unlink()
    for name, text in made.items():
        (FOLDER / name).write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
