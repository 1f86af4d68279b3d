"""Templates of `-o`: what kubectl answers is recorded, and compared with the kubectl that is installed."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from kubectl_qos.errors import QosError
from kubectl_qos.present.jsonpath import render_columns, render_jsonpath
from tests.end_to_end.command import Run, environment

RECORDED: Final = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
DOCUMENT: Final = RECORDED["document"]
KUBECTL: Final = shutil.which("kubectl")


@pytest.mark.parametrize("case", RECORDED["jsonpath"], ids=lambda case: case["template"])
def test_a_template_prints_what_kubectl_prints(case: dict[str, str]) -> None:
    if "error" not in case:
        assert render_jsonpath(case["template"], DOCUMENT) == case["prints"]
        return
    with pytest.raises(QosError) as caught:
        render_jsonpath(case["template"], DOCUMENT)
    assert str(caught.value) == case["error"].replace("Error executing template: ", "")


@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")
def test_the_installed_kubectl_answers_as_recorded(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(DOCUMENT))
    words = [str(KUBECTL), "label", "--local", "-f", str(path), "q=1", "--overwrite", "-o"]
    for case in RECORDED["jsonpath"][::8]:
        done = subprocess.run(
            [*words, f"jsonpath={case['template']}"],
            capture_output=True,
            text=True,
            check=False,
            env=environment(tmp_path),
        )
        assert done.stdout == case.get("prints", ""), case
        assert bool(done.returncode) == ("error" in case)


@pytest.mark.parametrize("case", RECORDED["columns"], ids=lambda case: case["spec"])
def test_columns_are_those_of_kubectl(case: dict[str, str]) -> None:
    if "error" not in case:
        assert render_columns(case["spec"], DOCUMENT) == case["prints"]
        return
    with pytest.raises(QosError) as caught:
        render_columns(case["spec"], DOCUMENT)
    assert str(caught.value) == case["error"]


@pytest.mark.parametrize("case", RECORDED["columns_of_items"], ids=lambda case: case["spec"])
def test_a_list_has_a_row_for_each_item(case: dict[str, str]) -> None:
    assert render_columns(case["spec"], {"items": DOCUMENT["rows"]}) == case["prints"]
    without = case["prints"].partition("\n")[2]
    bare = render_columns(case["spec"], {"items": DOCUMENT["rows"]}, headers=False)
    assert [line.split() for line in bare.splitlines()] == [line.split() for line in without.splitlines()]


def test_null_is_none_as_an_absent_field_is() -> None:
    assert render_columns("A:.a", {"a": None}) == "A\n<none>\n"


COMMANDS: Final[tuple[tuple[str, Any], ...]] = (
    ("top -A -o jsonpath={.kind}", "PodRankList"),
    ('top nodes -o jsonpath={.items[?(@.node=="worker-2")].node}', "worker-2"),
    ("top -A -o jsonpath --template {.apiVersion}", "kubectl-qos/v1"),
    ("simulate node/worker-2 --free 1Gi -o jsonpath={.steps[0].mechanism}", "node"),
    ("tree node/worker-2 -o jsonpath={.kind}", "CgroupTree"),
    ("version --client -o jsonpath={.kind}", "Version"),
    (
        "top nodes --sort-by node -o custom-columns=NODE:.node --no-headers",
        "control-1\nworker-1\nworker-2\nworker-3\n",
    ),
    (
        "top nodes --sort-by usedBytes -o name",
        "node/worker-2\nnode/worker-3\nnode/worker-1\nnode/control-1\n",
    ),
    ("simulate node/worker-2 --free 1Gi -o name", "pod/api-7d9c5b6f8-x2mzq\n"),
    ("tree node/worker-2 -o name", "node/worker-2\n"),
    ("set pod/api-7d9c5b6f8-x2mzq -n shop --limits memory=3Gi -o name", "pod/api-7d9c5b6f8-x2mzq\n"),
)


@pytest.mark.parametrize(("words", "prints"), COMMANDS, ids=[words for words, _ in COMMANDS])
def test_commands_take_templates_and_print_names(tmp_path: Path, words: str, prints: str) -> None:
    done = Run(tmp_path)(*words.split(), "--demo")
    assert (done.out, done.code) == (prints, 0)


def test_templates_come_from_files(tmp_path: Path) -> None:
    run = Run(tmp_path)
    (tmp_path / "t").write_text("{.kind}")
    (tmp_path / "c").write_text("NODE  KIND\n.node .kind\n")
    assert run("tree", "node/worker-2", "--demo", "-o", "jsonpath-file=t").out == "CgroupTree"
    assert run("tree", "node/worker-2", "--demo", "-o", "custom-columns-file=c").lines[0].split() == [
        "NODE",
        "KIND",
    ]
    missing = run("tree", "node/worker-2", "--demo", "-o", "jsonpath-file=none")
    assert (missing.code, missing.err) == (
        1,
        "error: error reading --template none: No such file or directory\n",
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--template", "{{.kind}}"], "--template without -o is a Go template, which is not supported"),
        (["-o", "go-template={{.kind}}"], "Go templates are not supported"),
        (["-o", "custom-columns"], "given\nhint: -o custom-columns=POD:.pod; "),
        (["-o", "jsonpath"], "given\nhint: -o jsonpath='{.items[*].pod}'; "),
        (["-o", "jsonpath={.kind"], "error: error parsing jsonpath {.kind, unclosed action"),
        (["-o", "jsonpath={.items[?(@.pod=]}"], "unexpected token '='"),
    ],
)
def test_what_is_no_template_is_one_sentence(tmp_path: Path, words: list[str], sentence: str) -> None:
    done = Run(tmp_path)("top", "--demo", *words)
    assert sentence in done.err
    assert done.code == 2
    assert not done.out
