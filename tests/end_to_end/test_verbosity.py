"""-v: its spellings, tracebacks, and the file of the terminal UI."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import pytest

from kubectl_qos.cli import main as running
from kubectl_qos.cli.main import parse
from kubectl_qos.cli.output import MAX_FILES, LogFile, logging_to
from kubectl_qos.errors import UsageError
from kubectl_qos.transport import logging as log
from tests.end_to_end.command import Run


@pytest.mark.parametrize("words", [["-v=6"], ["-v6"], ["-v", "6"], ["--v=6"], ["--v", "6"]])
def test_the_spellings(words: list[str]) -> None:
    assert parse([*words, "top"]).verbosity == parse(["top", *words]).verbosity == 6


@pytest.mark.parametrize(
    "words", [["-v=x"], ["-v=-1"], ["-v", "-1"], ["--v="], ["-v="], ["-v=2.5"], ["-v=٣"], [f"-v={'9' * 10}"]]
)
def test_what_is_no_level(words: list[str]) -> None:
    with pytest.raises(UsageError, match=r'invalid argument ".*" for "-v, --v" flag'):
        parse(["top", *words])


def test_a_level_is_needed() -> None:
    with pytest.raises(UsageError, match="flag needs an argument: 'v' in -v"):
        parse(["top", "-v"])


@pytest.mark.parametrize("words", [["-v=9"], ["-v10"], ["--v", "99"]])
def test_a_traceback_is_added_to_the_sentence(run: Run, words: list[str]) -> None:
    done = run("top", "-f", "none\x1b.yaml", *words)
    assert done.code == 1
    lines = done.err.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-2].startswith("kubectl_qos.errors.InputError: ")
    assert lines[-1].startswith("error: ")
    assert "\x1b" not in done.err


def test_below_9_there_is_no_traceback(run: Run) -> None:
    done = run("top", "-f", "none.yaml", "-v=8")
    assert "Traceback" not in done.err


def test_a_defect_is_distinguished_from_a_finding(capsys: pytest.CaptureFixture[str]) -> None:
    def broken() -> int:
        raise ZeroDivisionError("a\nb")

    assert running.exit_code_for(broken) == running.EXIT_DEFECT == 2
    assert capsys.readouterr().err.splitlines() == [
        "error: unexpected ZeroDivisionError: a\\nb",
        f"hint: {running.DEFECT_HINT}",
    ]


def test_a_command_that_breaks_found_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1 of `verify` and `set --exit-code` says that something differs."""
    from kubectl_qos.__main__ import main
    from kubectl_qos.cli.commands import set as setting
    from kubectl_qos.cli.commands import verify

    def broken(_: object) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(verify, "_choose_reader", broken)
    monkeypatch.setattr(setting, "_set", broken)
    assert main(["verify", "pod/a", "--demo"]) == 2
    assert main(["set", "pod/a", "--limits", "memory=1Gi", "--demo", "--exit-code"]) == 2
    assert "unexpected ZeroDivisionError" in capsys.readouterr().err


def test_a_log_file_is_for_its_owner_and_has_an_end(tmp_path: Path) -> None:
    file = LogFile(tmp_path / "state" / "log.txt", max_bytes=100)
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.path.parent.stat().st_mode) == 0o700
    for number in range(30):
        file.write(f"line {number} \x1b[2J")
    file.close()
    lines = file.path.read_text().splitlines()
    assert lines[0] == "line 0 \\x1b[2J"
    assert lines[-1] == "the log is cut off at 100 bytes"
    assert len(lines) < 10
    with pytest.raises(FileExistsError):
        LogFile(file.path)


def test_on_a_screen_it_goes_to_a_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBECTL_QOS_STATE", str(tmp_path))
    for number in range(MAX_FILES + 3):
        (tmp_path / f"log-20200101T0000{number:02}-1.txt").touch()
    with logging_to(6, to_file=True):
        log.log(6, "this")
        assert capsys.readouterr().err == ""
    log.log(6, "nothing more")
    files = sorted(tmp_path.glob("log-*.txt"))
    assert len(files) == MAX_FILES
    assert re.fullmatch(r"I\d{4} .* test_verbosity\.py:\d+\] this\n", files[-1].read_text())
    assert capsys.readouterr().err == f"the log of -v=6 is in {files[-1]}\n"


def test_without_a_folder_it_goes_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBECTL_QOS_STATE", "")
    with logging_to(6, to_file=True):
        log.log(6, "this")
    (tmp_path / "file").touch()
    monkeypatch.setenv("KUBECTL_QOS_STATE", str(tmp_path / "file" / "x"))
    with logging_to(6, to_file=True):
        log.log(6, "this")
    first, second = capsys.readouterr().err.splitlines()
    assert first == "nothing is logged: there is no state folder ($KUBECTL_QOS_STATE)"
    assert second.startswith("nothing is logged: ")


def test_what_opens_the_terminal_ui_names_its_file(run: Run) -> None:
    done = run("edit", "pod/db-0", "-n", "data", "--demo", "-v=6")
    assert done.code == 2
    assert re.match(r"the log of -v=6 is in \S+/log-\S+\.txt\n", done.err)
