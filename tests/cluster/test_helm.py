"""Charts in a working tree: which values are edited, proven by rendering before and after.

Helm itself is not here: `helm_stand_in.py` renders these charts in its place.
"""

import subprocess
import sys
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, Final

import pytest
import yaml

from kubectl_qos.cluster.working_tree import WorkingTree
from kubectl_qos.edit.edits import WriteBack
from kubectl_qos.edit.related import pod_reference
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.managers import Manager, ManagerKind
from tests.cluster import helm_stand_in
from tests.cluster.test_working_tree import contents, difference, edits, write

TABLE: Final = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))


def in_this_process(words: list[str], **_: Any) -> CompletedProcess[bytes]:
    try:
        return CompletedProcess(words, 0, helm_stand_in.main(words[1:]).encode(), b"")
    except SystemExit as error:
        return CompletedProcess(words, 1, b"", str(error).encode())


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "bin" / "helm"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {helm_stand_in.__file__} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    return written(tmp_path / "tree")


def written(root: Path) -> Path:
    (root / ".git").mkdir(parents=True)
    write(root, {name: text.replace("{POD}", TABLE["pod"]) for name, text in TABLE["files"].items()})
    return root


def write_back(case: dict[str, Any], tree: Path) -> WriteBack:
    kind, name, namespace = case["object"]
    managers = [Manager(ManagerKind[kind], name, "") for kind, name in case.get("managers", ())]
    source = WorkingTree(str(tree / case.get("folder", ".")))
    pod = pod_reference(kind, namespace, name)
    return source.write(pod, edits(case["edits"]), managers, case.get("into"))


@pytest.mark.parametrize("case", TABLE["cases"], ids=lambda case: str(case["why"]))
def test_only_the_values_change_that_become_the_edit(
    case: dict[str, Any], tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(tree)
    if case is not TABLE["cases"][0]:
        monkeypatch.setattr(subprocess, "run", in_this_process)
    if "error" in case:
        with pytest.raises(InputError) as caught:
            write_back(case, tree)
        assert (str(caught.value), caught.value.hint) == (case["error"], case["hint"])
        assert contents(tree) == before
        return
    done = write_back(case, tree)
    assert difference(before, contents(tree)) == case["lines"]
    assert [what for _, what in done.others] == case.get("others", [])
    assert not write_back({**case, "into": None}, tree).edits, "as it is rendered then"


def test_without_helm_the_values_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    tree = written(tmp_path / "tree")
    with pytest.raises(InputError, match="is in no manifest and no kustomization") as caught:
        write_back({"object": ["Deployment", "r-web", "shop"], "edits": {"app limits": "memory=1Gi"}}, tree)
    assert "charts/web/templates/web.yaml is a Helm template: look for resources" in caught.value.hint
    assert "charts/db/charts/proxy/templates/proxy.yaml is a Helm template: look for proxy.resources in" in (
        caught.value.hint
    )
