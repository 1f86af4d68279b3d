"""Commands and their options: one list, a module each, frozen values, and no import without need."""

import pkgutil
import re
import shlex
import subprocess
import sys
from importlib import import_module
from typing import get_type_hints

import msgspec
import pytest

from kubectl_qos.cli import commands
from kubectl_qos.cli import options as shared_options
from kubectl_qos.cli.commands import COMMANDS, module_name
from kubectl_qos.cli.main import build_parsers, parse
from kubectl_qos.cli.options import ApplyOptions, SourceOptions, parse_options
from kubectl_qos.transport import ConnectionOptions

OPERANDS = {"edit": ["pod/a"], "verify": ["pod/a"], "set": ["pod/a", "--limits", "memory=1Gi"]}


def test_each_command_has_a_module_and_each_module_a_command() -> None:
    modules = {module.name for module in pkgutil.iter_modules(commands.__path__)}
    assert modules == {module_name(name).rpartition(".")[2] for name in COMMANDS}


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_options_are_frozen_values(name: str) -> None:
    options = parse_options(import_module(module_name(name)).Options, parse([name, *OPERANDS.get(name, [])]))
    for field in options._fields:
        with pytest.raises(AttributeError):
            setattr(options, field, None)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_options_have_the_types_of_their_fields(name: str) -> None:
    """By the examples of the command's help: `parse_options` takes what argparse has made of them."""
    module = import_module(module_name(name))
    types = get_type_hints(module.Options, localns=vars(shared_options))
    given = (
        example.removeprefix("  kubectl qos ") for example in getattr(module, "EXAMPLES", "").split("\n")
    )
    lines = [re.split(r"\s{2,}| [|>] ", line)[0] for line in given if line.startswith(f"{name} ")]
    for words in ([name, *OPERANDS.get(name, [])], *map(shlex.split, lines)):
        options = parse_options(module.Options, parse(words))
        for field, value in options._asdict().items():
            assert msgspec.convert(value, types[field]) == value, (words, field)


def test_shared_flags_that_are_not_given_are_the_defaults() -> None:
    assert parse_options(SourceOptions, parse(["top"])) == SourceOptions()


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--context", "a"], SourceOptions(ConnectionOptions(context="a"))),
        (["--as-group", "a", "--as-group=b"], SourceOptions(ConnectionOptions(as_groups=("a", "b")))),
        (["-f", "a", "-f", "b", "-R"], SourceOptions(files=("a", "b"), recursive=True)),
        (["--demo", "--usage=none"], SourceOptions(demo=True, usage="none")),
        (["--assume", "a=b"], SourceOptions(assume=("a=b",))),
    ],
)
def test_shared_flags_come_before_or_after_the_command(flags: list[str], expected: SourceOptions) -> None:
    for words in ([*flags, "top"], ["top", *flags]):
        assert parse_options(SourceOptions, parse(words)) == expected


def test_each_shared_field_has_a_flag() -> None:
    flags = {action.dest for name in ("set", "top") for action in build_parsers()[name]._actions}
    for options in (ConnectionOptions, SourceOptions, ApplyOptions):
        assert {*options._fields} - {"connection"} <= flags
    assert "headers" in parse(["top"])


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_no_flag_of_a_command_takes_the_name_of_a_shared_one(name: str) -> None:
    own = import_module(module_name(name)).Options._fields
    assert {*ConnectionOptions._fields, *SourceOptions._fields}.isdisjoint(own)


def test_values_are_made_of_others_without_writing() -> None:
    options = SourceOptions(ConnectionOptions(context="a", namespace="b"))
    assert options.on_node("n").node == "n"
    assert options.on_node(None) is options
    assert options.without_usage().usage == "none"
    assert options.in_context("c").connection == ConnectionOptions(context="c")


@pytest.mark.parametrize(
    ("words", "expected"), [(["--help"], set()), (["--version"], set()), (["top", "--help"], {"top"})]
)
def test_only_the_module_of_the_command_is_imported(words: list[str], expected: set[str]) -> None:
    code = (
        "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr));"
        "from kubectl_qos.__main__ import main; main(sys.argv[1:])"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split())
    assert {name for name in COMMANDS if module_name(name) in loaded} <= expected
    assert loaded.isdisjoint(
        {"dataclasses", "kubectl_qos.cli.resources", "kubectl_qos.cli.sources"}
        if not expected
        else {"msgspec"}
    )
