"""Tables on a terminal fit into it; with -o wide and in a pipe they have every column."""

from pathlib import Path

import pytest

from kubectl_qos.cli import output
from kubectl_qos.cli.main import build_parsers, run
from kubectl_qos.k8s.rbac import PERMISSIONS, AccessReview
from kubectl_qos.present.list_notes import tier_lines

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
    "kills pod/api-7d9c5b6f8-x2mzq -n shop",
    "explain pod/api-7d9c5b6f8-x2mzq -n shop",
    "compare node/worker-2 --to 1.37 --assume memory=20Gi",
    "set pod/api-7d9c5b6f8-x2mzq -n shop --limits memory=3Gi --requests memory=1Gi",
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
    assert max(len(text) for text in lines if "kubectl " not in text) <= 80


def test_the_victims_now_and_then_fit_side_by_side(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    changed = printed(
        monkeypatch, capsys, "set deploy/api -n shop --requests memory=2Gi --limits memory=2Gi -o manifest"
    )
    (tmp_path / "change.yaml").write_text("\n".join(changed))
    words = f"simulate node/worker-2 --free 4Gi --what-if {tmp_path}/change.yaml"
    lines = printed(monkeypatch, capsys, words)
    assert any(line.startswith("*") for line in lines)
    assert max(map(len, lines)) <= 80


def test_a_column_that_does_not_fit_is_named_and_has_no_note_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for line, has_column in {"next notebook-0": False, "next notebook-0 -o wide": True}.items():
        monkeypatch.setattr(output, "terminal_width", lambda: 80)
        assert run([*line.split(), "--demo"], open_ui=lambda _: 0) == 0
        done = capsys.readouterr()
        assert ("BEFORE" in done.out, "BEFORE:" in done.err) == (has_column, has_column)
        assert ("hidden at 80 columns: FREES, BEFORE; -o wide shows them" in done.err) is not has_column


def test_permissions_fit_with_what_is_missing_below_them() -> None:
    reviews = {permission: AccessReview(None, "no answer") for permission in PERMISSIONS}
    lines = [*tier_lines(reviews, 60)]
    assert max(map(len, lines)) <= 60
    assert lines[0].split() == ["TIER", "ALLOWED"]
    assert any(line.startswith("    ") for line in lines)


def test_help_fits_with_each_comment_above_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(output, "terminal_width", lambda: 80)
    texts = {name: parser.format_help() for name, parser in build_parsers().items()}
    lines = [line for text in texts.values() for line in text.splitlines()]
    assert max(len(line) for line in lines if " kubectl " not in line) <= 80
    assert "\n  # what kills this pod\n  kubectl qos fix pod/search-0 -n shop\n" in texts["fix"]
    assert "\n  BY          own limit," in texts["kills"]


@pytest.mark.parametrize("line", ["top -A", "fix", "kills -A", "simulate node/worker-2 --free 4Gi"])
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
