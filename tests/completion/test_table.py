"""The table of completers beside the grammars: no flag and no operand is forgotten."""

import argparse
from collections.abc import Iterator

import pytest

from kubectl_qos.cli.completion.completers import EVERY_COMMAND, OF_COMMAND, find_completer
from kubectl_qos.cli.main import build_parsers
from kubectl_qos.errors import UsageError
from kubectl_qos.k8s.node_overrides import FIELDS, NodeOverride


def _with_values(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        if action.nargs != 0 and not isinstance(action, argparse._SubParsersAction):
            yield action


@pytest.mark.parametrize("command", build_parsers())
def test_every_value_has_choices_or_a_line(command: str) -> None:
    for action in _with_values(build_parsers()[command]):
        if action.choices is None:
            find_completer(command, action.dest)


def test_no_line_is_about_what_is_no_longer_there() -> None:
    parsers = build_parsers()
    known = {name: {one.dest for one in _with_values(parser)} for name, parser in parsers.items()}
    assert set(EVERY_COMMAND) <= known[""]
    for command, lines in OF_COMMAND.items():
        assert set(lines) <= known[command], command


MORE = {"runtime": "2.1.4", "ociRuntime": "1.3.0", "kubeletVersion": "36"} | dict.fromkeys(
    ("evictionHard", "evictionSoft", "kubeReserved", "systemReserved"), "1Gi"
)


@pytest.mark.parametrize(
    ("key", "value"), [(key, value) for key, field in FIELDS.items() for value in field.begins]
)
def test_offered_values_are_taken(key: str, value: str) -> None:
    whole = value + MORE.get(key, "")
    assert NodeOverride.parse(f"{key}={whole}")


def test_other_values_are_not_taken() -> None:
    with pytest.raises(UsageError):
        NodeOverride.parse("cpuManagerPolicy=else")
