"""`set` and `undo` on a terminal: what is confirmed, and ctrl-c; the rest is in test_transcripts.py."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster.serving import Serve
from tests.end_to_end.changing import Cluster
from tests.end_to_end.command import Run
from tests.end_to_end.terminal import Terminal

ALONE = ("set", "pod/alone", "--requests", "memory=96Mi")


@pytest.fixture
def cluster(tmp_path: Path, serve: Serve) -> Cluster:
    return Cluster(tmp_path, serve)


Start = Callable[..., Terminal]


@pytest.fixture
def start(cluster: Cluster, tmp_path: Path) -> Start:
    return lambda *words: Terminal(tmp_path, *words)


def test_the_question_names_what_is_written_where(cluster: Cluster, start: Start) -> None:
    terminal = start(*ALONE)
    terminal.until("Apply this to test? Type yes:")
    assert cluster.sent() == ["dry run"]
    terminal.answer("yes")
    code, said = terminal.ended()
    assert code == 0, said
    assert cluster.sent() == ["dry run", "write"]
    for line in (
        "namespace  shop",
        "object     pod/alone",
        "change     app requests.memory 64Mi → 96Mi",
        "effect     no container restarts",
    ):
        assert line in said.splitlines()
    assert any(line.startswith("cluster    test  ") for line in said.splitlines())


@pytest.mark.parametrize("answer", ["y", "\x04"])
def test_any_other_answer_is_no(cluster: Cluster, start: Start, answer: str) -> None:
    terminal = start(*ALONE)
    terminal.until("Type yes:")
    terminal.answer(answer)
    code, said = terminal.ended()
    assert (code, cluster.sent()) == (1, ["dry run"])
    assert said.splitlines()[-1] == "error: aborted: pod/alone is not changed"


def test_some_contexts_want_their_name(serve: Serve, tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, serve, "prod-1")
    settings = tmp_path / ".config" / "kubectl-qos" / "config.yaml"
    settings.parent.mkdir(parents=True)
    settings.write_text("contexts: {'prod-*': {confirm: name}}\n")
    for answer, code in (("yes", 1), ("prod-1", 0)):
        terminal = Terminal(tmp_path, *ALONE)
        terminal.until("Apply this to prod-1? Type the context's name:")
        terminal.answer(answer)
        assert terminal.ended()[0] == code
    assert cluster.sent() == ["dry run", "dry run", "write"]


def test_a_conflict_is_overwritten_after_yes(cluster: Cluster, start: Start, run: Run) -> None:
    assert run(*ALONE, "--yes").code == 0
    cluster("set", "pod/alone", "80Mi")
    terminal = start("undo")
    said = terminal.until("Type yes:")
    assert "app requests.memory  64Mi    96Mi  80Mi" in said
    assert "change     app requests.memory 80Mi → 64Mi" in said
    terminal.answer("yes")
    assert terminal.ended()[0] == 0
    assert cluster.memory("pod/alone") == "64Mi"


def test_ctrl_c_leaves_and_says_what_is_known(cluster: Cluster, start: Start) -> None:
    cluster("is", "never-done")
    terminal = start(*ALONE, "--yes")
    terminal.until("pod/alone: waiting for the kubelet")
    terminal.process.send_signal(signal.SIGINT)
    code, said = terminal.ended()
    assert code == 130
    assert " ".join(said.split()).endswith(
        "stopped watching: pod/alone was changed, last status: waiting for the kubelet; the change goes on"
    )


def test_ctrl_c_at_the_question_writes_nothing(cluster: Cluster, start: Start) -> None:
    terminal = start(*ALONE)
    terminal.until("Type yes:")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.ended()[0] == 130
    assert cluster.sent() == ["dry run"]
