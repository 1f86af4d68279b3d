"""The plugins and views for k9s: as k9s reads them, on keys that it leaves free, with commands that run."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_qos.__main__ import main
from kubectl_qos.cli.main import parse

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "k9s"
PLUGINS: dict[str, dict[str, Any]] = yaml.safe_load((FOLDER / "plugins.yaml").read_text(encoding="utf-8"))[
    "plugins"
]
each = pytest.mark.parametrize("plugin", PLUGINS.values(), ids=PLUGINS.keys())

# From k9s' internal/config/json/schemas/plugins.json and internal/config/plugin.go.
REQUIRED = {"shortCut", "description", "scopes", "command"}
OPTIONAL = {"args", "background", "confirm", "dangerous", "inputs", "override", "overwriteOutput", "pipes"}

# What k9s 0.51 has on its lists of pods and of nodes (internal/view: app, browser, table, pod, node and what
# extends them), and the keys with shift by which releases since 0.32 sorted.
TAKEN = {
    *(f"Shift-{letter}" for letter in "ACFIJMNOPRSTVXZ"),
    *(f"Ctrl-{letter}" for letter in "ACDEGKQRSWXZ"),
    *"abcdefghijklmnopqrstuvwxyz0123456789",
}
SELECTED = {
    "NAME": "prometheus-0",
    "NAMESPACE": "monitoring",
    "COL-NODE": "worker-2",
    "CONTEXT": 'my "own"; context',
}
"""What k9s fills in, from its README."""


def filled(argument: str, name: str) -> str:
    """An argument as k9s fills it in; what k9s does not know it leaves as it is."""
    known = SELECTED | {"NAME": name}
    return re.sub(r"\$([\w-]+)", lambda found: known.get(found[1], found[0]), argument)


def arguments_of(plugin: dict[str, Any]) -> list[str]:
    name = "worker-2" if plugin["scopes"] == ["nodes"] else SELECTED["NAME"]
    arguments = [filled(argument, name) for argument in plugin["args"]]
    return arguments[3:] if plugin["command"] == "sh" else arguments[1:]


@each
def test_k9s_reads_it(plugin: dict[str, Any]) -> None:
    assert REQUIRED <= plugin.keys() <= REQUIRED | OPTIONAL
    assert all(isinstance(argument, str) for argument in plugin["args"])
    assert {*plugin["scopes"]} <= {"pods", "nodes"}


@each
def test_its_key_is_free(plugin: dict[str, Any]) -> None:
    assert re.fullmatch("Shift-[A-Z]", plugin["shortCut"])
    assert plugin["shortCut"] not in TAKEN
    assert "override" not in plugin
    same = [
        other
        for other in PLUGINS.values()
        if other["shortCut"] == plugin["shortCut"] and {*other["scopes"]} & {*plugin["scopes"]}
    ]
    assert same == [plugin]


@each
def test_it_uses_what_k9s_fills_in(plugin: dict[str, Any]) -> None:
    used = {name for argument in plugin["args"] for name in re.findall(r"\$([\w-]+)", argument)}
    assert used <= SELECTED.keys()
    assert "CONTEXT" in used
    if plugin["command"] == "sh":
        assert not re.search(r"\$[\w{]", plugin["args"][1]), "names go past the shell, not through it"


@each
def test_the_parser_takes_its_command(plugin: dict[str, Any]) -> None:
    options = parse(arguments_of(plugin))
    assert options.context == SELECTED["CONTEXT"]


@each
def test_only_what_changes_a_cluster_is_dangerous(plugin: dict[str, Any]) -> None:
    assert plugin.get("dangerous", False) is (parse(arguments_of(plugin)).command == "edit")


@pytest.mark.parametrize("name", [name for name, plugin in PLUGINS.items() if plugin["command"] == "sh"])
def test_it_runs_on_the_demo(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [word for word in arguments_of(PLUGINS[name]) if not word.startswith("--context=")]
    monkeypatch.setattr(sys, "argv", ["kubectl-qos", *words, "--demo"])
    assert main() == 0
    assert len(capsys.readouterr().out.splitlines()) > 5


@pytest.mark.skipif(shutil.which("sh") is None, reason="there is no sh")
def test_a_context_of_any_name_arrives_whole(tmp_path: Path) -> None:
    plugin = PLUGINS["qos-explain"]
    for name, text in (("kubectl", 'printf "%s\\n" "$@"'), ("less", "exec cat")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    arguments = [filled(argument, "web-0") for argument in plugin["args"]]
    path = f"{tmp_path}:/bin:/usr/bin"
    done = subprocess.run(["sh", *arguments], env={"PATH": path}, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == f"--context={SELECTED['CONTEXT']}"


def test_the_page_names_every_key() -> None:
    rows = re.findall(
        r"^\| `shift-(\w)` \| (.*?) \|", (FOLDER / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    listed = {
        (f"Shift-{key.upper()}", f"{kind.split()[-1]}s") for key, kinds in rows for kind in kinds.split(",")
    }
    assert listed == {
        (plugin["shortCut"], scope) for plugin in PLUGINS.values() for scope in plugin["scopes"]
    }


def test_the_view_shows_the_class_though_it_is_wide() -> None:
    views = yaml.safe_load((FOLDER / "views.yaml").read_text(encoding="utf-8"))["views"]
    assert views.keys() == {"v1/pods"}
    assert views["v1/pods"].keys() == {"columns"}
    assert "QOS|S" in views["v1/pods"]["columns"]
    assert "NODE" in views["v1/pods"]["columns"], "the kill order of a pod's node is found by it"
