"""Variables are called what they hold: none of the names that say nothing, in the rooms that are done.

The names, the rooms that still have them, and the uses that are allowed: test_variable_names.yaml.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

PACKAGE: Final = Path(__file__).parents[2] / "kubectl_qos"

SETTINGS: Final[dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
)
NAMES: Final = frozenset(SETTINGS["names"])
ANY_NAME: Final = re.compile(rf"\b({'|'.join(NAMES)})\s*([,=:)\]}}]|in\b|\W=|$)", re.MULTILINE)
"""What every name that is bound looks like, and some words of prose: only files with one are parsed."""
TO_DO: Final[list[str]] = SETTINGS["to_do"]
ALLOWED: Final[dict[str, str]] = SETTINGS["allowed"]


def bound_names(text: str) -> Iterator[tuple[int, str]]:
    """The line and name of each parameter and of each variable that is assigned."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield node.lineno, name
            case (
                ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name))
            ):
                yield node.lineno, name
            case ast.ExceptHandler(name=str(name)):
                yield node.lineno, name


def is_below(path: str, room: str) -> bool:
    return path == room or path.startswith(f"{room}/")


@pytest.fixture(scope="module")
def bound() -> dict[str, int]:
    """The last line of each name of ours that says nothing, as `file:name`."""
    return {
        f"{path.relative_to(PACKAGE).as_posix()}:{name}": line
        for path in sorted(PACKAGE.rglob("*.py"))
        for text in [path.read_text(encoding="utf-8")]
        if ANY_NAME.search(text)
        for line, name in bound_names(text)
        if name in NAMES
    }


def test_variables_say_what_they_hold(bound: dict[str, int]) -> None:
    places = {place: line for place, line in bound.items() if place not in ALLOWED}
    assert not {
        place: line
        for place, line in places.items()
        if not any(is_below(place.partition(":")[0], room) for room in TO_DO)
    }


def test_every_way_to_bind_a_name_is_seen() -> None:
    text = """
def f(one, *found, mine=0):
    for known in one:
        held = [each for each in known]
    match held:
        case [a, *others]:
            pass
"""
    names = {name for _, name in bound_names(text)}
    assert names == {"one", "found", "mine", "known", "held", "each", "a", "others"}


def test_rooms_that_are_done_and_unused_exceptions_leave_the_lists(bound: dict[str, int]) -> None:
    """A room of `to_do` still has such names, and so does a file of `allowed`."""
    paths = {place.partition(":")[0] for place in bound}
    assert not [room for room in TO_DO if not any(is_below(path, room) for path in paths)]
    assert not ALLOWED.keys() - bound.keys()
