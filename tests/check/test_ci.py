"""What a CI takes from the repository: the action, the pre-commit hook, and the recipe for GitLab."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import yaml

from kubectl_qos.cli.main import parse
from tests.check import normal_repository
from tests.check.test_rules import EXAMPLES
from tests.distribution.shell_examples import blocks
from tests.distribution.test_workflows import PINNED, check_schema
from tests.end_to_end.command import Run

ROOT = Path(__file__).parents[2]
ACTION = ROOT / "action.yml"


def test_the_action_is_one_and_is_pinned() -> None:
    check_schema("github-actions", ACTION)
    text = ACTION.read_text(encoding="utf-8")
    assert all(PINNED.fullmatch(line) for line in text.splitlines() if "uses:" in line)
    scripts = [step["run"] for step in yaml.safe_load(text)["runs"]["steps"] if "run" in step]
    assert not any("${{" in script for script in scripts), "what is given is no part of a script"


PYTHON = """\
#!/bin/sh
[ "$2" != pip ] || exit 0
[ "$2" != venv ] || { mkdir -p "$3/bin" && cp "$0" "$3/bin/python"; exit; }
exec %s "$@"
"""


def run_action(folder: Path, **inputs: str) -> tuple[int, str, dict[str, str]]:
    """The exit code, output and outputs of the action's scripts in the environment that a runner sets."""
    action = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
    python, outputs = folder / "python", folder / "outputs"
    python.write_text(PYTHON % sys.executable)
    python.chmod(0o755)
    outputs.touch()
    values = {f"inputs.{name}": entry["default"] for name, entry in action["inputs"].items()}
    values |= {f"inputs.{name}": text for name, text in inputs.items()}
    values |= {"github.action_path": str(ROOT), "steps.python.outputs.python-path": str(python)}
    paths = {"GITHUB_OUTPUT": outputs, "GITHUB_WORKSPACE": folder / "work", "RUNNER_TEMP": folder / "temp"}
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"]
    printed, code = "", 0
    for step in action["runs"]["steps"]:
        written = dict(line.partition("=")[::2] for line in outputs.read_text().splitlines())
        values |= {f"steps.check.outputs.{name}": text for name, text in written.items()}
        if "run" not in step or (
            step.get("if") == "steps.check.outputs.code != '0'" and written["code"] == "0"
        ):
            continue
        env = {
            name: values[text.removeprefix("${{ ").removesuffix(" }}")] for name, text in step["env"].items()
        }
        variables = {
            "PATH": os.environ["PATH"],
            "RUNNER_OS": "Linux",
            "PYTHONPATH": str(ROOT),
            **env,
            **{k: str(v) for k, v in paths.items()},
        }
        done = subprocess.run(
            [*shell, step["run"]],
            env=variables,
            cwd=paths["GITHUB_WORKSPACE"],
            capture_output=True,
            text=True,
            check=False,
        )
        printed, code = printed + done.stdout + done.stderr, done.returncode
        if code:
            break
    return code, printed, written


def test_the_action_checks_several_paths_and_fails_last(tmp_path: Path) -> None:
    work = tmp_path / "work"
    for name, text in {
        "a b/deep/bad.yaml": EXAMPLES["QOS005"]["fails"],
        "good/good.yaml": EXAMPLES["QOS005"]["passes"],
    }.items():
        (work / name).parent.mkdir(parents=True)
        (work / name).write_text(text, encoding="utf-8")
    code, printed, written = run_action(tmp_path, paths=f"good\r\n{work}/a b\n")
    assert (code, written["code"]) == (1, "1")
    assert "::error file=a b/deep/bad.yaml,line=" in printed
    for paths in (str(work), "./a b/", f"{work}/"):
        assert "::error file=a b/deep/bad.yaml,line=" in run_action(tmp_path, paths=paths)[1], paths
    code, printed, _ = run_action(tmp_path, paths="\r\n")
    assert (code, printed) == (2, "::error::paths names no file or folder\n"), "not what a cluster has"
    assert run_action(tmp_path, paths="good", flags="--fail-on error\n--rule QOS006=off")[0] == 0
    code, _, written = run_action(tmp_path, sarif="out/check.sarif")
    assert (code, written["sarif"]) == (1, "out/check.sarif"), "uploaded before the step fails"
    (run,) = json.loads((work / "out/check.sarif").read_text())["runs"]
    files = [one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in run["results"]]
    assert "a%20b/deep/bad.yaml" in files
    waived = EXAMPLES["QOS005"]["fails"].replace(
        "metadata: {", "metadata: {annotations: {kubectl-qos/waive: 'QOS005: odd'}, ", 1
    )
    (work / "a b/deep/bad.yaml").write_text(waived, encoding="utf-8")
    assert run_action(tmp_path, sarif="check.sarif")[0] == 0
    assert "QOS005: odd" in waived
    (run,) = json.loads((work / "check.sarif").read_text())["runs"]
    assert "QOS005" not in {one["ruleId"] for one in run["results"]}


def test_the_hook_is_given_files(run: Run) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    _, *words = shlex.split(hook["entry"])
    for name in ("fails", "passes"):
        (run.home / f"{name}.yaml").write_text(EXAMPLES["QOS005"][name], encoding="utf-8")
    assert run(*words, "passes.yaml").code == 0
    assert run(*words, "passes.yaml", "fails.yaml").code == 1


def test_the_hook_is_quiet_on_files_that_are_no_objects(run: Run) -> None:
    names = normal_repository.write(run.home)
    whole = run("check", *names)
    assert (whole.code, whole.out) == (0, "")
    assert whole.err.splitlines()[-1] == "nothing found in 1 object"
    for name in names:
        assert run("check", name).code == 0, name
    strict = run("check", "-f", "chart/values-prod.yaml")
    assert strict.code == 2, "what -f names is an object"


def test_the_recipes_are_command_lines_of_ours() -> None:
    found = [block for block in blocks((ROOT / "docs" / "check.md").read_text()) if block.kind == "yaml"]
    (script,) = (
        loaded["check"]["script"] for one in found if "check" in (loaded := yaml.safe_load(one.text))
    )
    command, _, _ = next(line for line in script if line.startswith("kubectl-qos")).partition(" >")
    assert parse(shlex.split(command)[1:]).command == "check"
    (job,) = (loaded for one in found if "steps" in (loaded := yaml.safe_load(one.text)))
    assert parse(["check", *job["steps"][1]["with"]["flags"].split()]).rule == ["QOS007=error"]
