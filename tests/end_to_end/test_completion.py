"""`completion` as people use it: its scripts, in shells in which TAB is pressed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml

from kubectl_qos.cli.commands.completion import SHELLS, script
from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.kubectl import needs_kubectl
from tests.completion.installed import Bin
from tests.end_to_end.command import Run

if os.name == "nt":
    pytest.skip("no terminals of this kind on Windows", allow_module_level=True)

from tests.completion.shells import TAB, Shell

TABLES: Final = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))

CONTEXTS = ("me@there", "arn:aws:eks:eu-1", "arn:aws:eks:us-1", "my own", "$(touch evil)", "`touch evil`")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Bin:
    found = Bin(tmp_path_factory.mktemp("installed"))
    config = kubeconfig("https://127.0.0.1:1")
    config["contexts"] = [{**config["contexts"][0], "name": name} for name in CONTEXTS]
    write(found.home / "config", config)
    (found.home / "folder").mkdir()
    for name in ("pod.yaml", "pod.txt", "pod two.json"):
        (found.home / name).touch()
    return found


@pytest.fixture(scope="module", params=["bash", "zsh", "fish"])
def shell(request: pytest.FixtureRequest, installed: Bin) -> Iterator[Shell]:
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    started = Shell(request.param, installed)
    yield started
    started.end()


@pytest.mark.parametrize(
    ("line", "expected"),
    TABLES["tab"],
)
def test_tab(shell: Shell, installed: Bin, line: str, expected: list[str]) -> None:
    assert shell.words(f"kubectl-qos {line.replace('<TAB>', TAB)}") == expected
    assert not (installed.home / "evil").exists()


_BASH_COMPLETION = Path("/usr/share/bash-completion/bash_completion")
_BY_KUBECTL = {
    "bash": f"source {_BASH_COMPLETION}; source <(kubectl completion bash)",
    "zsh": "autoload -Uz compinit; compinit -D -u; source <(kubectl completion zsh)",
    "fish": "kubectl completion fish | source",
}


@pytest.fixture(scope="module", params=list(_BY_KUBECTL))
def kubectl_shell(request: pytest.FixtureRequest, installed: Bin) -> Iterator[Shell]:
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    if request.param == "bash" and not _BASH_COMPLETION.exists():
        pytest.skip("the package bash-completion, which kubectl needs there, is not installed")
    started = Shell(request.param, installed, _BY_KUBECTL[request.param])
    yield started
    started.end()


@needs_kubectl
@pytest.mark.parametrize(
    ("line", "expected"),
    TABLES["through_kubectl"],
)
def test_tab_through_kubectl(kubectl_shell: Shell, line: str, expected: list[str]) -> None:
    assert kubectl_shell.words(f"kubectl qos {line.replace('<TAB>', TAB)}") == expected


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_says_what_candidates_are_where_it_lists_them(installed: Bin) -> None:
    shell = Shell("bash", installed)
    shell.press(f"kubectl-qos tr{TAB}\x15kubectl-qos top --sort-by re{TAB}{TAB}")
    said = shell.until("restarts")
    assert "request   (memory request of the whole pod, with the overhead of its RuntimeClass)" in said
    shell.end()


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_without_compopt_as_on_macos(installed: Bin) -> None:
    """Bash 3.2 has no compopt, and leaves words whole that later ones cut at `=` and `:`."""
    line = (
        "enable -n compopt 2>/dev/null; COMP_LINE='kubectl-qos --context=arn:aws:eks:u';"
        "COMP_POINT=${#COMP_LINE}; COMP_WORDS=(kubectl-qos --context=arn:aws:eks:u); COMP_CWORD=1;"
        "unset COMP_TYPE; _kubectl_qos kubectl-qos; printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    done = installed.run("bash", "-c", f"{script('bash')}\n{line}")
    assert (done.stdout, done.stderr) == ("us-1\n", "")


@pytest.mark.parametrize("name", SHELLS)
def test_scripts_parse(name: str, tmp_path: Path) -> None:
    program = {"kubectl": "sh", "powershell": "pwsh"}.get(name, name)
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    file = tmp_path / "script.ps1"
    file.write_text(script(name))
    parse = ["pwsh", "-NoProfile", "-File", str(file)] if program == "pwsh" else [program, "-n", str(file)]
    done = subprocess.run(parse, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", SHELLS)
def test_scripts_run_nothing_that_was_typed(name: str) -> None:
    text = script(name)
    assert "__complete" in text
    assert "eval" not in text
    assert "Invoke-Expression" not in text


def test_kubectl_on_windows_starts_another_script() -> None:
    assert script("kubectl", windows=True).endswith("@kubectl-qos __complete %*\n")
    assert script("kubectl", windows=False).startswith("#!/bin/sh\n")


def test_without_a_shell_it_says_how_it_is_installed(run: Run) -> None:
    done = run("completion")
    assert done.code == 0
    assert "kubectl_complete-qos" in done.out
    assert all(f"completion {name}" in done.out for name in SHELLS)
    assert done.out in run("completion", "--help").out


def test_another_shell_is_named(run: Run) -> None:
    done = run("completion", "csh")
    assert done.code == 2
    assert "csh" in done.err
