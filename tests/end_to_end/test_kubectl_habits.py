"""What a person who knows kubectl types: workloads, labels, fields, help, and names that do not exist."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cluster.cluster_objects import metrics, node, pod
from tests.cluster.object_server import ObjectServer
from tests.end_to_end.command import Run
from tests.end_to_end.conftest import Live

DEMO = ("top", "--demo", "--no-headers")
OWNER = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "controller": True}


def cells(text: str, column: str) -> list[str]:
    """The cells of a left-aligned column."""
    header, *rows = text.splitlines()
    start = header.index(column)
    return [row[start:].split("   ")[0].strip() for row in rows]


def test_help_is_that_of_the_command(run: Run) -> None:
    assert run("help", "top") == run("top", "--help")
    assert run("help") == run("--help")
    assert run("help", "tpo").err.startswith('error: unknown command "tpo"')


@pytest.mark.parametrize("words", [["daemonset/kube-proxy", "-A"], ["ds", "kube-proxy", "-A"]])
def test_the_pods_of_a_workload(run: Run, words: list[str]) -> None:
    found = run(*DEMO, *words, "-o", "name").lines
    assert found
    assert all(line.startswith("pod/kube-proxy-") for line in found)


def test_the_pods_of_two_workloads_and_a_pod(run: Run) -> None:
    named = run(*DEMO, "-o", "name", "daemonset/kube-proxy", "pod/db-0").lines
    assert {"pod/db-0"} < set(named)
    assert len(named) > 2


def test_a_workload_without_pods_and_one_that_is_not_there(run: Run, live: Live) -> None:
    server = ObjectServer(pods=[pod("db-0"), pod("web")], nodes=[node()], metrics=[])
    server.pods[0]["metadata"]["ownerReferences"] = [OWNER]
    path = "/apis/apps/v1/namespaces/shop/statefulsets/idle"
    template = {"spec": {"template": {"spec": {"containers": [{"name": "a"}]}}}}
    server.others[path] = {
        "kind": "StatefulSet",
        "metadata": {"name": "idle", "namespace": "shop"},
        **template,
    }
    live(server, namespace="shop")
    assert run("top", "sts/db", "-o", "name").lines == ["pod/db-0"]
    idle, none = run("top", "sts/idle"), run("top", "sts/none")
    assert (idle.code, idle.err.splitlines()[0]) == (0, "No resources found in shop namespace.")
    assert (none.code, none.out) == (1, "")


def test_the_next_deaths_of_a_workload_are_those_of_its_pods(run: Run, live: Live) -> None:
    def deaths(*words: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = json.loads(run("next", *words, "-o", "json").out)["items"]
        return items

    pods = {"db-0": pod("db-0", limit="1Gi"), "db-1": pod("db-1", limit="2Gi", node="worker-2")}
    for raw in pods.values():
        raw["metadata"]["ownerReferences"] = [OWNER]
    used = [metrics(name, "100Mi") for name in (*pods, "web")]
    server = ObjectServer(pods=[*pods.values(), pod("web")], nodes=[node(), node("worker-2")], metrics=used)
    server.others["/apis/apps/v1/namespaces/shop/statefulsets/idle"] = {
        "kind": "StatefulSet",
        "metadata": {"name": "idle", "namespace": "shop"},
        "spec": {"template": {"spec": {"containers": [{"name": "a"}]}}},
    }
    live(server, namespace="shop")
    waiting = [one for name in pods for one in deaths(f"pod/{name}")]
    assert {one["pod"] for one in waiting} == pods.keys()
    assert sorted(map(str, deaths("sts/db"))) == sorted(map(str, waiting))
    sentence = "error: statefulset/idle has no pods on a node: no next death\n"
    hint = "hint: kubectl qos explain statefulset/idle predicts its pods, "
    assert run("next", "sts/idle").err.startswith(sentence + hint)


def test_labels_as_columns(run: Run) -> None:
    out = run("top", "--demo", "-n", "shop", "-L", "app,no/such", "--show-labels").out
    assert set(cells(out, "SUCH")) == {"<none>"}
    assert [f"app={app}" for app in cells(out, "APP")] == [one.split(",")[0] for one in cells(out, "LABELS")]
    assert run("top", "--demo", "-L", "app", "-o", "csv").lines[0].endswith(",desiredLimitBytes,app")
    assert "app" not in run("top", "--demo", "-L", "app", "-o", "json").out.partition('"node"')[0]


def test_labels_of_nodes(run: Run) -> None:
    out = run("top", "nodes", "--demo", "-L", "kubernetes.io/hostname").out
    assert cells(out, "HOSTNAME")


@pytest.mark.parametrize(
    ("selector", "same"),
    [
        ("metadata.name=db-0", ["pod/db-0"]),
        ("metadata.namespace=data,metadata.name!=db-0", ["-n", "data"]),
        ("spec.nodeName==worker-1", ["--node", "worker-1"]),
    ],
)
def test_fields(run: Run, selector: str, same: list[str]) -> None:
    found = run(*DEMO, "-o", "name", "--field-selector", selector).lines
    expected = run(*DEMO, "-o", "name", *same).lines
    assert found == [name for name in expected if name != "pod/db-0" or "!=" not in selector]
    assert found


def test_fields_are_sent_to_the_server(run: Run, live: Live) -> None:
    server = live(ObjectServer(pods=[pod("a"), pod("b")], nodes=[node()], metrics=[]), namespace="shop")
    assert run("top", "-o", "name", "--field-selector", "metadata.name=b").lines == ["pod/b"]
    assert any("metadata.name=b" in str(request.query) for request in server.requests)


@pytest.mark.parametrize(
    ("selector", "sentence"),
    [
        ("spec.foo=a", "error: field label not supported: spec.foo"),
        ("status.phase", "error: invalid field selector: 'status.phase'; can't understand 'status.phase'"),
    ],
)
def test_fields_that_no_pod_has(run: Run, selector: str, sentence: str) -> None:
    done = run(*DEMO, "--field-selector", selector)
    assert (done.code, done.err.splitlines()[0]) == (2, sentence)


TO_GROW = "to let it grow on its node: kubectl qos simulate node/NAME"


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("next worker-2", "did you mean node/worker-2?"),
        ("tree worker-2", "did you mean node/worker-2?"),
        ("compare worker-2 --to 1.37", "did you mean node/worker-2?"),
        (
            "simulate worker-2 --free 1Gi",
            f"{TO_GROW} --grow pod/worker-2=+1Gi; for a node write node/worker-2",
        ),
        (
            "simulate pod/db-2 --free 1Gi",
            f"{TO_GROW} --grow pod/db-2=+1Gi",
        ),
        ("simulate deploy/api --free 1Gi", "write node/NAME"),
        ("next namespace/shop", "for all pods of a namespace: -n shop"),
        ("explain worker-2", "did you mean node/worker-2?"),
        ("top worker-2", "did you mean node/worker-2?"),
        ("kills worker-2", "did you mean node/worker-2?"),
        ("next pod/worker-2", "did you mean node/worker-2?"),
        ("next pod/none", "kubectl qos top lists what there is in demo"),
        ("next pod/db-2 -n shop", "there is one in namespace data: -n data"),
        ("next api-7d9c5b6f8", "did you mean pod/api-7d9c5b6f8-x2mzq?"),
        ("explain api", "did you mean deployment/api?"),
        ("fix sts/notebok -n ml", "did you mean statefulset/notebook?"),
        (
            "explain node/worker-2",
            "who dies there: kubectl qos next node/worker-2; fix, tree and report take nodes too",
        ),
        ("next node/worker2", "did you mean worker-2?"),
        ("top --node worker-9", "kubectl qos top nodes lists them"),
    ],
)
def test_a_wrong_name_is_answered_with_a_near_one(run: Run, words: str, hint: str) -> None:
    assert run(*words.split(), "--demo").err.splitlines()[-1] == f"hint: {hint}"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("top --node-memory 16", "--node-memory '16': 16 is 16 bytes; 16Gi was meant?"),
        ("simulate node/worker-2 --free 4", "--free '4': 4 is 4 bytes; 4Gi was meant?"),
        (
            "simulate node/worker-2 --grow pod/db-0=+512m",
            "--grow '512m': 512m is 0.512 bytes; 512Mi was meant?",
        ),
        ("set pod/db-0 -n data --outlive a/b/c", "--outlive 'a/b/c' does not name a pod"),
        ("set pod/db-0 -n data --outlive pod/", "--outlive 'pod/' does not name a pod"),
        ("set pod/db-0 -n data --outlive /x", "--outlive '/x' does not name a pod"),
        (
            "set pod/db-0 -n data --outlive deploy/x",
            "--outlive deploy/x: --outlive takes a pod, not a deployment",
        ),
    ],
)
def test_what_nobody_means_is_refused(run: Run, words: str, sentence: str) -> None:
    done = run(*words.split(), "--demo")
    assert (done.code, done.err.splitlines()[0]) == (2, f"error: {sentence}")


@pytest.mark.parametrize("command", ["next", "kills", "tree", "compare --to 1.37", "explain pod/a", "top a"])
@pytest.mark.parametrize("place", [("--node", "nodes"), ("-n", "namespaces")])
def test_a_place_that_does_not_exist_is_not_found(
    run: Run, live: Live, command: str, place: tuple[str, str]
) -> None:
    live(ObjectServer(pods=[pod("web")], nodes=[node()], metrics=[]))
    done = run(*command.split(), place[0], "none")
    is_pod = command == "explain pod/a" or (command, place[0]) == ("top a", "--node")
    words = 'pods "a" not found' if is_pod else f'{place[1]} "none" not found'
    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines()[0] == f"Error from server (NotFound): {words}"


def test_nodes_without_a_change_share_a_line(run: Run) -> None:
    assert run("compare", "--demo", "--to", "1.37").lines[1:] == [
        "pods without a node, node control-1, node worker-1 and 1 more: kubelet 1.36 → 1.37",
        "node worker-3, kubelet 1.34 → 1.37",
    ]


def test_an_empty_namespace_is_no_error_nor_is_a_forbidden_one(run: Run, live: Live) -> None:
    server = ObjectServer(pods=[pod("web")], nodes=[node()], metrics=[])
    server.forbidden.add("/api/v1/namespaces/secret")
    live(server)
    for namespace in ("secret", "none"):
        done = run("top", "-n", namespace)
        assert (done.code, done.err) == (0, f"No resources found in {namespace} namespace.\n")
    assert run("top", "--node", "none").code == 1


@pytest.mark.parametrize(
    ("words", "same"),
    [
        ("--sort-by=.metadata.name", "--sort-by=pod"),
        ("--sort-by={.metadata.namespace} -A", "--sort-by=namespace -A"),
        ("nodes --sort-by .metadata.name", "nodes --sort-by=node"),
        ("po,pods", "pods"),
        ("deploy,sts search", "sts/search"),
        ("db-0 none --ignore-not-found", "db-0"),
    ],
)
def test_words_of_kubectl(run: Run, words: str, same: str) -> None:
    done, expected = (run(*DEMO, "-o", "name", *line.split()) for line in (words, same))
    assert (done.code, done.lines) == (0, expected.lines)
    assert done.out


def test_a_name_that_is_not_there_may_be_ignored(run: Run) -> None:
    done = run("top", "none", "--demo", "--ignore-not-found")
    assert done == (0, "", "")
    assert run("top", "--demo", "--ignore-not-found", "--at", "1h").code, "other errors are not"


@pytest.mark.parametrize(
    ("words", "column"), [("", "POD"), ("nodes", "NODE"), ("ns", "NAMESPACE"), ("workloads", "WORKLOAD")]
)
def test_names_with_their_kinds(run: Run, words: str, column: str) -> None:
    shown = run("top", *words.split(), "--demo", "--show-kind").out
    assert sorted(cells(shown, column)) == sorted(run("top", *words.split(), "--demo", "-o", "name").lines)


@pytest.mark.parametrize(
    ("words", "field"), [("top", "pod"), ("top nodes", "node"), ("top ns", "namespace"), ("next -A", "pod")]
)
def test_templates_of_kubectl_find_names(run: Run, words: str, field: str) -> None:
    templates = (f"jsonpath={{.items[*].{path}}}" for path in (field, "metadata.name"))
    expected, names = (run(*words.split(), "--demo", "-o", template).out for template in templates)
    assert names == expected != ""
    assert "metadata" not in run(*words.split(), "--demo", "-o", "json").out


@pytest.mark.parametrize("words", ["top po,no", "top nodes,pods", "next no,po"])
def test_a_list_of_types_is_no_selector(run: Run, words: str) -> None:
    assert run(*words.split(), "--demo").err.startswith("error: pods and nodes cannot be shown in one table")


def test_flags_without_effect(run: Run) -> None:
    plain = run(*DEMO)
    assert run(*DEMO, "--cache-dir", "x", "--match-server-version", "--log-flush-frequency=1s") == plain
    assert run(*DEMO, "--chunk-size=0") == plain


def test_set_resources(run: Run) -> None:
    words = ("pod/db-0", "--demo", "-n", "data", "--limits", "memory=9Gi", "-o", "patch")
    assert run("set", "resources", *words) == run("set", *words)


def test_growth_without_the_settings_of_a_kubelet_is_refused(run: Run) -> None:
    done = run("fix", "node/worker-2", "--growth", "20Mi", "--demo")
    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines()[-1] == "hint: add -o kubelet-config or -o json"
