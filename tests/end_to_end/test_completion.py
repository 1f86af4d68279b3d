"""`completion` as a shell uses it."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.end_to_end.command import Run


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (["kubectl-qos", "ex"], ["explain"]),
        (["kubectl-qos", "--vers"], ["--version"]),
        (["kubectl-qos", "compare", "--to"], ["--to", "--token"]),
        (["kubectl-qos", "-n", "shop", "tree", "--cg"], ["--cgroup-version"]),
        (["kubectl-qos", "top", "--to"], ["--token"]),
        (["kubectl-qos", "se"], ["set"]),
        (["kubectl-qos", "set", "--co"], ["--container", "--containers", "--context"]),
    ],
    ids=" ".join,
)
def test_bash_offers_commands_and_their_flags(run: Run, line: list[str], expected: list[str]) -> None:
    script = run("completion", "bash").out
    words = " ".join(f"'{word}'" for word in line)
    ask = (
        f'COMP_WORDS=({words}); COMP_CWORD={len(line) - 1}; _kubectl_qos; printf "%s\\n" "${{COMPREPLY[@]}}"'
    )
    done = subprocess.run(["bash", "-c", f"{script}\n{ask}"], capture_output=True, text=True, check=True)
    assert done.stdout.split() == expected


def test_zsh_takes_the_same_script(run: Run) -> None:
    assert run("completion", "zsh").out.endswith(run("completion", "bash").out)


def test_another_shell_is_named(run: Run) -> None:
    done = run("completion", "csh")
    assert done.code == 2
    assert "csh" in done.err
