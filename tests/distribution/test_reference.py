"""docs/reference is what the grammar makes of it, and says of each command what its --help says."""

from __future__ import annotations

import re
import runpy
from functools import cache
from pathlib import Path
from typing import Any

from kubectl_qos.cli.commands import COMMANDS as LISTED
from kubectl_qos.cli.main import build_parser
from tests.end_to_end.command import Run

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "reference"
COMMANDS = sorted(
    path.stem for path in FOLDER.glob("*.md") if path.stem not in {"index", "assume", "exit-codes"}
)
IN_HELP = re.compile(r"^ {2}(-[^\n]*?)(?: {2,}[^\n]*)?$", re.MULTILINE)
TERM = re.compile(r"^(`-.*`)\n: ", re.MULTILINE)
WORD = re.compile(r"(?<![\w-])(--?[A-Za-z][\w-]*)(?=[ =\[`,]|$)")


def made(name: str) -> Any:
    """What a function of docs/make_reference.py makes."""
    return runpy.run_path(str(ROOT / "docs" / "make_reference.py"))[name]()


@cache
def help_of(*command: str) -> str:
    """What a person reads, in a terminal of 80 columns."""
    return Run(ROOT)(*command, "--help", variables={"COLUMNS": "80"}).out


def flags_of_help(text: str) -> set[str]:
    """All spellings of the flags that --help lists."""
    return {word for line in IN_HELP.findall(text) for word in WORD.findall(line)}


def flags_of_page(name: str) -> set[str]:
    """All spellings of the flags that a page defines."""
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    return {word for term in TERM.findall(text) for word in WORD.findall(term)}


def test_the_pages_are_those_of_the_grammar() -> None:
    kept = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}
    assert kept == made("pages"), "make reference renews them"


def test_every_command_of_help_has_a_page() -> None:
    listed = re.findall(r"^ {4}([a-z][a-z-]*) ", help_of(), re.MULTILINE)
    assert sorted(listed) == COMMANDS
    assert set(COMMANDS) == LISTED.keys()


def test_help_and_the_page_of_a_command_have_its_own_flags_alone() -> None:
    shared = flags_of_page("options")
    for name in sorted({"", *COMMANDS} - {"options"}):
        own = flags_of_help(help_of(*name.split()))
        assert own == flags_of_page(name or "index"), name
        assert not own & shared, name
    assert {"-n", "--namespace", "--demo", "-s", "--usage", "-v", "-h"} <= shared


def test_options_prints_the_flags_of_its_page() -> None:
    assert flags_of_help(build_parser().format_options()) == flags_of_page("options")


def test_a_page_says_what_help_says_of_each_flag() -> None:
    for name in COMMANDS:
        text = letters(help_of(name) if name != "options" else build_parser().format_options())
        page = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
        for meaning in re.findall(r"^`.*`\n: (.*)$", page, re.MULTILINE):
            assert letters(meaning.replace("\\", "").removesuffix("; may repeat")) in text, name


def letters(text: str) -> str:
    """Leave out where argparse breaks lines, which it does at hyphens too, and what marks code."""
    return re.sub(r"[\s`-]", "", text)
