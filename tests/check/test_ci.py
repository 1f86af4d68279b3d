"""What a CI takes from the repository: the action, the pre-commit hook, and the recipe for GitLab."""

from __future__ import annotations

import shlex
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
    (script,) = (step["run"] for step in yaml.safe_load(text)["runs"]["steps"] if "run" in step)
    assert "${{" not in script, "what is given is no part of a script"


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
    action = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
    assert parse(["check", *action["inputs"]["flags"]["default"].split()]).recursive
