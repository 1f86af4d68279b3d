"""What is said of manifests that are wrong in some way: each with its exit code, rows and stderr."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import yaml

from tests.end_to_end.command import Run
from tests.end_to_end.golden_text import assert_as_kept

MANIFESTS: Final = {
    **yaml.safe_load(Path(__file__).with_name("manifests.yaml").read_text(encoding="utf-8")),
    "too deep": "kind: Pod\nspec: " + "[" * 100_000,
}
BINARY: Final = {
    "UTF-16, as of PowerShell": MANIFESTS["an unknown field of a container"].encode("utf-16"),
    "half of UTF-16": "kind: Pod\n".encode("utf-16")[:-1],
    "an image": b"\x89PNG\r\n\x1a\n\0\0\0",
    "not UTF-8 in one document": (
        b"{kind: Pod, metadata: {name: p}, spec: {containers: [{name: a}]}}\n---\nkind: \xff\n"
    ),
}


def test_every_manifest_is_answered_as_is_kept(run: Run) -> None:
    contents = {name: text.encode() for name, text in MANIFESTS.items()} | BINARY
    file, parts = run.home / "x.yaml", []
    for name, content in contents.items():
        file.write_bytes(content)
        done = run("top", "-f", file.name, "-o", "name")
        lines = [*done.out.splitlines(), *(f"2> {line}" for line in done.err.splitlines())]
        parts.append("\n".join([f"{name} [{done.code}]", *(f"  {line}" for line in lines), ""]))
        assert "unexpected" not in done.err, name
    assert_as_kept("manifests", "\n".join(parts))


def test_the_hint_for_pods_without_a_node_leads_on(run: Run) -> None:
    rules = Path(__file__).parents[1] / "check" / "rules.yaml"
    (run.home / "x.yaml").write_text(yaml.safe_load(rules.read_text(encoding="utf-8"))["QOS014"]["fails"])
    for words in (["fix", "--priorities"], ["next"]):
        done = run(*words, "-f", "x.yaml", "--node-memory", "16Gi")
        assert (done.code, "kubectl qos check --node-memory 16Gi compares the others" in done.err) == (
            1,
            True,
        )
    assert "QOS014" in run("check", "x.yaml", "--node-memory", "16Gi").out


def test_every_command_leaves_out_the_same_of_a_folder(run: Run) -> None:
    """Values of Helm made top and explain fail, which check left out."""
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {nodeName: n, containers: [{name: app}]}\n"
    folder = {
        "web.yaml": pod,
        "chart/Chart.yaml": "name: chart\n",
        "chart/values.yaml": "image: web\n",
        "chart/templates/web.yaml": "kind: {{ .kind }}\n",
        "overlay/kustomization.yaml": "patches: [{path: memory.yaml}]\n",
        "overlay/memory.yaml": pod.replace("containers: [{name: app}]", "containers: []"),
        "flat__values.yaml": "kind: Deployment\nimage: web\n",
    }
    for name, text in folder.items():
        (run.home / "all" / name).parent.mkdir(parents=True, exist_ok=True)
        (run.home / "all" / name).write_text(text)
    notes = None
    for words in (
        ["check"],
        ["top"],
        ["top", "nodes"],
        ["explain", "pod/web"],
        ["tree", "pod/web"],
        ["next"],
    ):
        done = run(*words, "-f", "all", "-R", "--node-memory", "16Gi")
        said = [line for line in done.err.splitlines() if "skipped" in line]
        notes = notes or said
        assert (done.code, len(said), said) == (0, 3, notes), (words, done.err)
