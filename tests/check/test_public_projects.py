"""Manifests of public projects: what is found in them, and that each finding has been explained."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.end_to_end.command import Done, Run

KNOWN: Final[dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("public_projects.yaml").read_text(encoding="utf-8")
)
SHAPES: Final[dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("public_shapes.yaml").read_text(encoding="utf-8")
)
FOLDER: Final = os.environ.get("KUBECTL_QOS_PUBLIC", "")


def test_every_finding_is_explained() -> None:
    rules = {one.split()[0] for project in KNOWN["projects"].values() for one in project["findings"]}
    assert rules == KNOWN["why"].keys()
    assert len(KNOWN["projects"]) >= 15


@pytest.mark.skipif(not FOLDER, reason="KUBECTL_QOS_PUBLIC names no folder with the manifests")
@pytest.mark.parametrize("name", KNOWN["projects"])
def test_the_findings_are_those_that_are_known(name: str, run: Run) -> None:
    file = Path(FOLDER, f"{name}.yaml").absolute()
    done = run("check", file, "--node-memory", "16Gi", "--to", "1.37", "-o", "json")
    assert findings_in(done) == KNOWN["projects"][name]["findings"]


def findings_in(done: Done) -> list[str]:
    assert done.code in {0, 1}, "all of it can be read"
    return sorted(
        " ".join(filter(None, (one["rule"], f"{about['kind'].lower()}/{about['name']}", one["container"])))
        for one in json.loads(done.out)["items"]
        for about in [one["object"]]
    )


@pytest.mark.parametrize("name", SHAPES)
def test_manifests_in_the_shapes_of_public_projects_are_answered_by_every_command(
    name: str, run: Run
) -> None:
    (run.home / "all.yaml").write_text(SHAPES[name]["text"], encoding="utf-8")
    flags = ("-f", "all.yaml", "--node-memory", "16Gi")
    assert findings_in(run("check", *flags, "--to", "1.37", "-o", "json")) == SHAPES[name]["findings"]
    for words in (["top"], ["next"], ["fix"], ["explain"], ["simulate", "--all-at-limit"], ["top", "nodes"]):
        done = run(*words, *flags)
        is_empty = not SHAPES[name]["findings"] and "no pods found" in done.err
        assert done.code == 0 or is_empty, (words, done.err)
