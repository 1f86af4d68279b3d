"""The workflows: valid, pinned, with few rights, and about the same Pythons and platforms as the rest."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sysconfig
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from release.krew_manifest import TEMPLATE, archives_of

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
each = pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)

PINNED = re.compile(r"\s+(?:- )?uses: [\w-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
OURS = re.compile(r"\s+uses: \$/\.github/workflows/(?P<name>[\w.-]+)")


def workflow(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(
        (ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8")
    )
    return loaded


def steps(file: Path) -> Iterator[dict[str, Any]]:
    for job in workflow(file.name)["jobs"].values():
        yield from job.get("steps", ())


def check_schema(name: str, *files: Path) -> None:
    """Raise ValidationError unless files are as a schema that check-jsonschema ships."""
    package = find_spec("check_jsonschema")
    assert package is not None
    assert package.origin is not None
    path = Path(package.origin).parent / "builtin_schemas" / "vendor" / f"{name}.json"
    schema = json.loads(path.read_text(encoding="utf-8"))
    for file in files:
        loaded = yaml.safe_load(file.read_text(encoding="utf-8"))
        # `on` is a boolean of YAML 1.1
        jsonschema.validate({"on" if key is True else key: value for key, value in loaded.items()}, schema)


def test_they_are_as_their_schemas_say() -> None:
    check_schema("github-workflows", *FILES)
    check_schema("dependabot", ROOT / ".github" / "dependabot.yml")


def test_an_auditor_finds_nothing() -> None:
    program = shutil.which("zizmor", path=sysconfig.get_path("scripts"))
    assert program is not None
    arguments = [program, "--offline", "--no-progress", "--quiet", str(ROOT / ".github")]
    done = subprocess.run(arguments, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@each
def test_every_action_is_pinned(file: Path) -> None:
    for line in file.read_text(encoding="utf-8").splitlines():
        if "uses:" not in line:
            continue
        ours = OURS.fullmatch(line)
        assert ours is not None or PINNED.fullmatch(line), line
        assert ours is None or (file.parent / ours["name"]).exists(), line


def test_an_action_has_one_version() -> None:
    text = "".join(file.read_text(encoding="utf-8") for file in FILES)
    pins = {tuple(pin) for pin in re.findall(r"uses: ([\w./-]+)@([0-9a-f]{40} # \S+)", text)}
    assert len(pins) == len({action for action, _ in pins})


@each
def test_rights_are_given_job_by_job(file: Path) -> None:
    assert workflow(file.name)["permissions"] == {"contents": "read"}


def test_who_may_write_what() -> None:
    given = {
        (file.name, name): {right for right, level in job["permissions"].items() if level == "write"}
        for file in FILES
        for name, job in workflow(file.name)["jobs"].items()
        if "permissions" in job
    }
    assert given == {
        ("release.yml", "github"): {"contents", "id-token", "attestations"},
        ("release.yml", "image"): {"packages", "id-token", "attestations"},
        ("release.yml", "pypi"): {"id-token"},
        ("site.yml", "deploy"): {"pages", "id-token"},
    }


@each
def test_every_job_ends(file: Path) -> None:
    for job in workflow(file.name)["jobs"].values():
        assert "uses" in job or job["timeout-minutes"] <= 60


@each
def test_no_checkout_keeps_the_token(file: Path) -> None:
    for step in steps(file):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


@each
def test_what_needs_the_tag_has_the_history(file: Path) -> None:
    for job in workflow(file.name)["jobs"].values():
        runs = " ".join(step.get("run", "") for step in job.get("steps", ()))
        if re.search(r"make (wheel|binary|site)", runs):
            (checkout,) = (
                each for each in job["steps"] if each.get("uses", "").startswith("actions/checkout@")
            )
            assert checkout["with"]["fetch-depth"] == 0


def test_no_secret_is_used() -> None:
    assert not [file.name for file in FILES if "secrets." in file.read_text(encoding="utf-8")]


def test_every_python_that_is_promised_is_tried_on_every_system() -> None:
    matrix = workflow("test.yml")["jobs"]["test"]["strategy"]["matrix"]
    prefix = "Programming Language :: Python :: 3."
    promised = [name.removeprefix(prefix) for name in PROJECT["classifiers"] if name.startswith(prefix)]
    assert matrix["python"] == [f"3.{minor}" for minor in promised]
    assert {system.partition("-")[0] for system in matrix["system"]} == {"ubuntu", "macos", "windows"}
    assert matrix["python"][0] == PROJECT["requires-python"].removeprefix(">=")


def test_every_platform_of_the_manifest_is_built() -> None:
    built = workflow("binary.yml")["jobs"]["binary"]["strategy"]["matrix"]["include"]
    wanted = archives_of(TEMPLATE.read_text(encoding="utf-8"))
    assert [f"kubectl-qos_{each['platform']}.tar.gz" for each in built] == wanted
    systems = {"linux": "ubuntu", "darwin": "macos", "windows": "windows"}
    assert all(each["system"].startswith(systems[each["platform"].partition("_")[0]]) for each in built)


@each
def test_every_target_is_in_the_makefile(file: Path) -> None:
    targets = {*re.findall(r"^([\w-]+):", MAKEFILE, re.MULTILINE)}
    for step in steps(file):
        for line in re.findall(r"(?m)^\s*make (.*)$", step.get("run", "")):
            assert {word for word in line.split() if "=" not in word} <= targets


@each
def test_every_script_is_there(file: Path) -> None:
    for step in steps(file):
        for script in re.findall(r"\b(?:release|tests)/[\w/]+\.py\b", step.get("run", "")):
            assert (ROOT / script).exists()


def test_windows_builds_as_the_makefile_does() -> None:
    (recipe,) = re.findall(r"^binary:(?! export).*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    commands = recipe.replace("$(BIN)/pyinstaller", "python -m PyInstaller").replace("$(BIN)/", "")
    (step,) = (
        each
        for each in steps(ROOT / ".github" / "workflows" / "binary.yml")
        if each.get("if") == "runner.os == 'Windows'"
    )
    assert step["env"] == dict(re.findall(r"^binary: export (\w+) = (.*)$", MAKEFILE, re.MULTILINE))
    assert {line.strip() for line in commands.splitlines()} <= {*step["run"].splitlines()}
