"""Manifests and dumps: all that kubectl takes is read, and bad documents among good ones are named."""

import json
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubectl_qos.cluster.documents import ParsedObjects, plain_documents
from tests.cluster.cluster_objects import node, pod, recorded_metrics, recorded_node, recorded_pods

TABLES: Final = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))

GOOD = "kind: Pod\nmetadata: {name: good}\nspec: {containers: [{name: a}]}\n"


def found_in(text: str | bytes) -> ParsedObjects:
    found = ParsedObjects()
    found.add_file(text.encode() if isinstance(text, str) else text, "x.yaml")
    return found


def names(found: ParsedObjects) -> list[str]:
    return [one.name for one in found.pods]


def plain_objects(content: bytes) -> list[dict[str, Any]]:
    return [raw for document in plain_documents(content, "x") for _, raw in document.objects()]


def problems(text: str | bytes) -> list[str]:
    return [str(problem) for problem in found_in(text).problems]


def a_list(*items: Any, kind: str = "List") -> dict[str, Any]:
    return {"kind": kind, "apiVersion": "v1", "metadata": {}, "items": list(items)}


def test_json_and_yaml_hold_the_same() -> None:
    objects = a_list(*recorded_pods(), recorded_node(), *recorded_metrics())
    from_json = found_in(json.dumps(objects))
    from_yaml = found_in(yaml.safe_dump(objects))
    assert from_json.problems == from_yaml.problems == []
    assert from_json.pods == from_yaml.pods
    assert len(from_json.pods) == 60
    assert from_json.nodes == from_yaml.nodes
    assert from_json.usage == from_yaml.usage
    assert len(from_json.usage) == 59


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"---\n{GOOD}",
        f"# a comment\n---\n{GOOD}...\n",
        f"---\n---\n{GOOD}---\n",
        GOOD.replace("\n", "\r\n"),
        f"\ufeff{GOOD}",
        json.dumps(yaml.safe_load(GOOD)),
        json.dumps(yaml.safe_load(GOOD), indent=4),
        json.dumps(a_list(yaml.safe_load(GOOD))),
        json.dumps(a_list({"metadata": {"name": "good"}, "spec": {"containers": [{}]}}, kind="PodList")),
        "\n\n  " + json.dumps(yaml.safe_load(GOOD)),
    ],
)
def test_every_form_of_one_pod(text: str) -> None:
    found = found_in(text)
    assert (names(found), found.problems) == (["good"], [])
    assert found.pods[0].kind == "Pod"


def test_documents_with_windows_line_ends_are_separated() -> None:
    text = f"{GOOD}---\n{GOOD.replace('good', 'second')}".replace("\n", "\r\n")
    assert names(found_in(text)) == ["good", "second"]


def test_two_json_dumps_in_one_stream() -> None:
    text = json.dumps(a_list(pod("a"), pod("b"))) + "\n" + json.dumps(a_list(node("n")))
    found = found_in(text)
    assert (names(found), list(found.nodes), found.problems) == (["a", "b"], ["n"], [])
    assert [one["metadata"]["name"] for one in plain_objects(text.encode())] == ["a", "b", "n"]


def test_a_stream_whose_second_dump_is_cut_off_keeps_the_first() -> None:
    text = json.dumps(a_list(pod("a"))) + '\n{"kind": "List", "items": ['
    assert names(found_in(text)) == ["a"]
    assert problems(text) == ["x.yaml: document 2 (line 2): not valid JSON: Input data was truncated"]


def test_an_unquoted_time_is_text_as_in_kubernetes() -> None:
    text = GOOD.replace("{name: good}", "{name: good, creationTimestamp: 2026-11-20T12:00:00Z}")
    assert found_in(text).pods[0].metadata.creation_timestamp == "2026-11-20T12:00:00Z"


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"])
def test_a_workload_is_read_as_its_pod(kind: str) -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "a"}]}}
    raw = {"kind": kind, "metadata": {"name": "w", "namespace": "shop"}, "spec": {"template": template}}
    (found,) = found_in(json.dumps(raw)).pods
    assert (found.kind, found.name, found.namespace) == (kind, "w", "shop")
    assert found.metadata.labels == {"app": "web"}


def test_a_cron_job_is_read_as_the_pod_of_its_jobs() -> None:
    template = {"spec": {"containers": [{"name": "a"}]}}
    spec = {"jobTemplate": {"spec": {"template": template}}}
    (found,) = found_in(json.dumps({"kind": "CronJob", "metadata": {"name": "c"}, "spec": spec})).pods
    assert (found.kind, found.name, found.containers[0].name) == ("CronJob", "c", "a")


NULLS: Final = """\
kind: Deployment
apiVersion: apps/v1
metadata: {name: web, namespace: null, creationTimestamp: null, labels: {app: null}}
spec:
  replicas:
  template:
    metadata:
    spec:
      restartPolicy:
      securityContext:
      initContainers:
      containers:
      - {name: a, image: x, resources: null, resizePolicy: null}
      - {name: b, image: x, resources: {requests: null, limits: {memory: null, cpu: 1}}}
status:
"""


def test_a_field_that_is_null_is_absent_as_in_go() -> None:
    """A quantity that is null is 0, and the value of a label is empty; an item of a list is no object."""
    for text in (
        NULLS,
        json.dumps(yaml.safe_load(NULLS)),
        NULLS.replace("Deployment", "Rollout").replace("apps/", "argoproj.io/"),
    ):
        found = found_in(text)
        assert (found.problems, found.refused) == ([], []), text
        ((first, second),) = [one.containers for one in found.pods]
        assert (first.requests, first.limits, second.requests) == ({}, {}, {})
        assert {name: str(limit) for name, limit in second.limits.items()} == {"memory": "0", "cpu": "1"}
    (labelled,) = found_in(GOOD.replace("{name: good}", "{name: good, uid: u, labels: {app: null}}")).pods
    assert labelled.metadata.labels == {"app": ""}
    assert problems("kind: Pod\nspec: {containers: [null]}") == [
        "x.yaml: line 2: Pod: spec.containers[0]: Expected `object`, got `null`"
    ]


def test_other_objects_are_counted_and_left_alone() -> None:
    found = found_in(json.dumps(a_list(pod("a"), {"kind": "Service", "spec": 7}, {"kind": "ConfigMap"})))
    assert (names(found), found.ignored, found.problems) == (["a"], {"Service": 1, "ConfigMap": 1}, [])


BAD = TABLES["bad"]


@pytest.mark.parametrize(("text", "sentence"), BAD)
def test_a_bad_document_is_named(text: str, sentence: str) -> None:
    (problem,) = problems(text)
    assert problem.startswith("x.yaml: ")
    assert sentence in problem
    assert "\n" not in problem


@pytest.mark.parametrize(("text", "sentence"), BAD)
def test_a_bad_document_does_not_take_the_good_ones_with_it(text: str, sentence: str) -> None:
    found = found_in(f"{GOOD}---\n{text}---\n{GOOD.replace('good', 'last')}")
    assert names(found) == ["good", "last"]
    (problem,) = [str(problem) for problem in found.problems]
    assert "document 2" in problem
    assert sentence.rpartition("line ")[0] in problem


def test_the_line_is_that_of_the_file() -> None:
    (problem,) = problems(f"{GOOD}---\nkind: Pod\nmetadata: {{a: b: c}}\n---\n{GOOD}")
    assert problem.startswith("x.yaml: document 2, line 6, column ")
    (problem,) = problems(f"{GOOD}---\nkind: Pod\nmetadata: {{name: p}}\n")
    assert problem == "x.yaml: document 2, line 5: pod/p: spec.containers: Required value"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            '{"kind": "Pod",\n "spec": }',
            "x.yaml: line 2: not valid JSON: JSON is malformed: invalid character",
        ),
        ('{"kind": "List", "items": [', "x.yaml: not valid JSON: Input data was truncated"),
        (b'{"kind": "\xff"}', "x.yaml: not valid JSON: 'utf-8' codec can't decode byte 0xff"),
        (b"\xff\xfekind: Pod", "x.yaml: not a text file (byte 0)"),
        ("[", "x.yaml: line 2, column 1: did not find expected node content"),
        ("", "x.yaml: empty"),
        (" \n\t\n", "x.yaml: empty"),
    ],
)
def test_a_file_that_is_no_document(text: str | bytes, sentence: str) -> None:
    (problem,) = problems(text)
    assert problem.startswith(sentence)


def test_a_text_of_kubectl_that_is_not_read_is_refused_with_what_has_usage() -> None:
    found = ParsedObjects()
    found.add_file(b"NAME    STATUS   AGE\nshop    Active   10d\n", "namespaces.txt")
    (problem,) = found.problems
    assert "and with podmetrics,nodemetrics usage; of kubectl's text" in problem.hint


def test_a_bad_item_of_a_dump_is_named_by_its_place() -> None:
    bad = pod("bad", request="1Gx")
    found = found_in(json.dumps(a_list(pod("a"), bad, 7, {"kind": 5}, pod("z"))))
    assert names(found) == ["a", "z"]
    assert [str(one).partition(": Invalid value")[0] for one in found.problems] == [
        "x.yaml: items[1]: pod/bad: spec.containers[0].resources.requests.memory",
        "x.yaml: items[2]: an object was expected, not 7",
        "x.yaml: items[3]: Object 'Kind' is missing",
    ]


def test_a_compose_file_is_named() -> None:
    (problem,) = found_in("services: {api: {image: api, mem_limit: 1g}}").problems
    assert (str(problem), problem.hint) == (
        "x.yaml: services of Compose are not objects of Kubernetes",
        "kompose convert makes manifests of them",
    )


def test_values_of_helm_are_named() -> None:
    parsed = ParsedObjects()
    parsed.add_file(b"replicaCount: 2\nresources: {limits: {memory: 1Gi}}\n", "chart/values-prod.yaml")
    (problem,) = parsed.problems
    assert str(problem) == "chart/values-prod.yaml: values of a Helm chart are not objects"
    (template,) = found_in("kind: Pod\nmetadata:\n{{- if a }}\n").problems
    rendered = "helm template renders templates: helm template CHART | kubectl qos check -f -"
    assert problem.hint == template.hint == rendered


def test_a_deep_document_is_no_crash() -> None:
    (problem,) = problems("kind: Pod\nspec: " + "[" * 5000)
    assert problem.startswith("x.yaml: ")


@given(st.binary(max_size=200))
def test_no_bytes_whatsoever_raise(content: bytes) -> None:
    ParsedObjects().add_file(content, "x")


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["kind", "items", "metadata", "spec", "containers", "resources", "limits", "name"]
                ),
                inner | st.sampled_from(["Pod", "List", "Node", "Deployment"]),
                max_size=4,
            )
        ),
        max_leaves=20,
    )
)
def test_no_values_whatsoever_raise(value: Any) -> None:
    content = json.dumps(value).encode()
    as_json, as_yaml = ParsedObjects(), ParsedObjects()
    as_json.add_file(content, "x")
    as_yaml.add_file(b"---\n" + content, "x")
    assert as_json.pods == as_yaml.pods
    assert len(as_json.problems) == len(as_yaml.problems)
    plain_objects(content)


def test_a_tab_in_yaml_has_a_hint() -> None:
    parsed = ParsedObjects(objects=None)
    parsed.add_file(b"a:\n\tb: 1\n", "x.yaml")
    (problem,) = parsed.problems
    assert str(problem).startswith("x.yaml: line 2, column 1: found character that cannot start")
    assert problem.hint == "YAML is indented with spaces, not with tabs"


def test_what_kubectl_refuses_around_a_manifest_is_an_error_only_for_check() -> None:
    quoted = (
        b"```yaml\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c}]}\n```\n"
    )
    for is_check in (False, True):
        parsed = ParsedObjects(objects=[] if is_check else None)
        parsed.add_file(quoted, "x.yaml")
        assert [pod.name for pod in parsed.pods] == ["a"]
        assert len(parsed.problems) == is_check
