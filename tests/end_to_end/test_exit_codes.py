"""Every exit code in the tables of commands, with a command line that ends so."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from kubectl_qos.cli.commands import COMMANDS, exit_codes
from kubectl_qos.errors import EXIT_INTERRUPTED
from tests.end_to_end.command import Run

TABLES = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
LINES = [
    (command, code, line)
    for command, codes in TABLES["lines"].items()
    for code, lines in codes.items()
    for line in lines
]


@pytest.mark.parametrize(("command", "code", "line"), LINES)
def test_a_command_line_ends_with_its_code(
    run: Run, tmp_path: Path, command: str, code: int, line: str
) -> None:
    for name, text in TABLES["files"].items():
        (tmp_path / name).write_text(text)
    done = run(command, *line.split())
    assert (done.code, bool(done.err) or not code or "--exit-code" in line) == (code, True), done.err
    assert "unexpected" not in done.err.replace("unexpected arguments", "")
    assert {name: (tmp_path / name).read_text() for name in TABLES["files"]} == TABLES["files"]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_code_of_a_table_has_a_command_line(command: str) -> None:
    tried = {*TABLES["lines"].get(command, {}), *TABLES["elsewhere"].get(command, {})}
    assert tried == exit_codes(command).keys() - {EXIT_INTERRUPTED}


def test_of_several_pods_a_missing_one_does_not_hide_the_others(run: Run) -> None:
    done = run("explain", "--demo", "-n", "shop", "pod/none", "pod/cart-6c7fd9b5d-9qj4t", "pod/nobody")
    assert (done.code, done.lines[0].split(",")[0]) == (1, "pod shop/cart-6c7fd9b5d-9qj4t on worker-2")
    assert 'Error from server (NotFound): pods "none" not found' in done.err
    assert 'pods "nobody" not found' in done.err
