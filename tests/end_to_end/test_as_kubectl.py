"""Command lines and files that kubectl takes or refuses: so do we, in its words.

What kubectl says is recorded in test_as_kubectl.yaml, so that it holds where kubectl is not installed, and is
compared with kubectl's own answers where it is.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.kubectl import KUBECTL, SAMPLE, needs_kubectl
from tests.end_to_end.command import Run, environment

TABLES = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
LINES, FILES = TABLES["lines"], TABLES["files"]
REFUSED = "The connection to the server 127.0.0.1:1 was refused - did you specify the right host or port?"
LOG_LINE = re.compile(r"[EIWF]\d{4} ")

each_line = pytest.mark.parametrize("row", LINES, ids=[row["ours"] for row in LINES])
each_file = pytest.mark.parametrize("row", FILES, ids=[row["name"] for row in FILES])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home whose kubeconfig leads to a port where nobody listens."""
    cluster = {"insecure-skip-tls-verify": True}
    config = kubeconfig("https://127.0.0.1:1", context="c", user={"token": "t"}, cluster=cluster)
    write(tmp_path / ".kube" / "config", config)
    return tmp_path


def written(row: dict[str, Any], folder: Path) -> str:
    """The name of the row's file, which is written."""
    name = "file.json" if row.get("json") else "file.yaml"
    (folder / name).write_text(row["text"], encoding="utf-8", newline="")
    return name


def first_line(text: str) -> str:
    """The first line that is no log line, without the word that errors begin with."""
    lines = [line for line in text.splitlines() if not LOG_LINE.match(line)]
    return re.sub("^[eE]rror: ", "", lines[0]) if lines else ""


def run_kubectl(home: Path, *words: str) -> tuple[bool, str]:
    """Whether kubectl succeeds, and the first line of its errors."""
    assert KUBECTL is not None
    done = subprocess.run(
        [KUBECTL, *words],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env=environment(home) | {"PATH": os.environ["PATH"]},
        cwd=home,
        timeout=60,
        check=False,
    )
    return done.returncode == 0, first_line(done.stderr)


def test_there_are_enough() -> None:
    assert len(LINES) >= 60
    assert len(FILES) >= 40
    assert [row for row in (*LINES, *FILES) if "we_say" in row and "because" not in row] == []
    assert [row["name"] for row in FILES if "we_take" in row and "says" not in row] == []


@each_line
def test_a_command_line(run: Run, home: Path, row: dict[str, Any]) -> None:
    assert home == run.home
    done = run(*shlex.split(row["ours"]))
    if row.get("succeeds"):
        assert done.code == 0
        return
    assert done.code != 0
    assert first_line(done.err) == row.get("we_say", row.get("says", REFUSED))


@needs_kubectl
@pytest.mark.parametrize("row", LINES[::SAMPLE], ids=[row["kubectl"] for row in LINES[::SAMPLE]])
def test_a_command_line_of_kubectl(home: Path, row: dict[str, Any]) -> None:
    succeeds, line = run_kubectl(home, *shlex.split(row["kubectl"]))
    assert (succeeds, line) == (True, "") if row.get("succeeds") else (False, row.get("says", REFUSED))


@each_file
def test_a_file(run: Run, home: Path, row: dict[str, Any]) -> None:
    """We refuse what kubectl refuses, except for the reason in `we_take`, and more for that in `because`."""
    done = run("set", "-f", written(row, home), "--limits", "memory=2Gi", "-o", "yaml")
    is_refused = ("says" in row or "because" in row) and "we_take" not in row
    assert done.code == (1 if is_refused else 0), done.err
    assert row.get("words", "") in done.err


@needs_kubectl
@pytest.mark.parametrize("row", FILES[::SAMPLE], ids=[row["name"] for row in FILES[::SAMPLE]])
def test_a_file_of_kubectl(home: Path, row: dict[str, Any]) -> None:
    name = written(row, home)
    words = ("set", "resources", "-f", name, "--local", "--limits=memory=2Gi", "-o", "yaml")
    succeeds, line = run_kubectl(home, *words)
    said = row.get("says", "").replace("{file}", name)
    assert (succeeds, line[line.find(said) :]) == ("says" not in row, said)
