"""Tables on a terminal fit into it; with -o wide and in a pipe they have every column."""

import pytest

from kubectl_qos.cli import output
from kubectl_qos.cli.main import run
from kubectl_qos.k8s.rbac import PERMISSIONS, AccessReview
from kubectl_qos.present.rbac import tier_lines

TABLES = [
    "top -A",
    "top -A --containers",
    "top -A --sort-by oom_score",
    "top nodes",
    "top namespaces",
    "top workloads -A",
    "next",
    "next node/worker-2",
    "fix",
    "fix --priorities",
    "kills -A",
    "simulate node/worker-2 --free 4Gi",
    "simulate node/worker-2 --until-oom --eviction",
]


def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: str) -> list[str]:
    monkeypatch.setattr(output, "terminal_width", lambda: 80)
    assert run([*line.split(), "--demo"], open_ui=lambda _: 0) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("line", TABLES)
def test_a_table_is_as_wide_as_the_terminal_at_most(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    lines = printed(monkeypatch, capsys, line)
    prose = lines[-1:] if line.startswith("simulate") else []
    assert max(len(text) for text in lines if text not in prose) <= 80


def test_permissions_fit_with_what_is_missing_below_them() -> None:
    reviews = {permission: AccessReview(None, "no answer") for permission in PERMISSIONS}
    lines = [*tier_lines(reviews, 60)]
    assert max(map(len, lines)) <= 60
    assert lines[0].split() == ["TIER", "ALLOWED"]
    assert any(line.startswith("    ") for line in lines)


@pytest.mark.parametrize("line", ["top -A", "fix", "kills -A"])
def test_wide_output_has_every_column(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    assert max(map(len, printed(monkeypatch, capsys, f"{line} -o wide"))) > 80


def test_nodes_are_headings_on_a_terminal_unless_rows_are_sorted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = printed(monkeypatch, capsys, "top -A --min-risk next")
    assert [line for line in lines if line.startswith("node ")] == [
        f"node {name}" for name in ("worker-2", "worker-1", "worker-3", "control-1")
    ]
    assert " NODE " not in lines[0]
    assert "node worker-2" not in printed(monkeypatch, capsys, "top -A --min-risk next --sort-by memory")
