"""Commands on several clusters: one table in one order, a line for each failure, and what is refused."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Iterable
from typing import Any

import pytest

from kubectl_qos.cli.options import SourceOptions
from kubectl_qos.cli.tables import merged_notes, read_clusters
from kubectl_qos.errors import QosError
from kubectl_qos.transport import ConnectionOptions
from tests.cluster.cluster_objects import metrics, node, pod
from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.object_server import ObjectServer, status
from tests.cluster.serving import Serve
from tests.end_to_end.command import Run

KILLED = "2026-11-20T11:5{}:00Z"


def cluster(used: dict[str, int], *, killed: int) -> ObjectServer:
    """A node of 4 Gi whose pods use these Mi of 1000; the first one was killed at that minute."""
    pods = [pod(name, request="100Mi", limit="1000Mi") for name in used]
    terminated = {"exitCode": 137, "reason": "OOMKilled", "finishedAt": KILLED.format(killed)}
    pods[0]["status"]["containerStatuses"] = [
        {"name": "app", "restartCount": 1, "lastState": {"terminated": terminated}}
    ]
    samples = [metrics(name, f"{size}Mi") for name, size in used.items()]
    return ObjectServer(pods=pods, nodes=[node(memory="4Gi")], metrics=samples)


@pytest.fixture
def fleet(run: Run, serve: Serve) -> Run:
    """Run a command; two clusters of the kubeconfig answer, one fails and one is not there."""
    broken = ObjectServer()
    broken.faults = {"/api/v1/pods": status(500, "InternalError", "etcd is full")}
    servers: dict[str, Any] = {
        "prod-us": serve(cluster({"web": 300, "api": 900}, killed=2)),
        "broken": serve(broken),
        "prod-eu": serve(cluster({"web": 950, "db": 100}, killed=1)),
        "gone": "http://127.0.0.1:1",
    }
    whole: dict[str, Any] = {"kind": "Config", "current-context": "prod-us"}
    for name, server in servers.items():
        one = kubeconfig(server, context=name)
        for key in ("clusters", "users", "contexts"):
            whole.setdefault(key, []).extend(one[key])
    write(run.home / ".kube" / "config", whole)
    return run


FAILURES = [
    "broken: Error from server (InternalError): etcd is full",
    "gone: The connection to the server 127.0.0.1:1 was refused - did you specify the right host or port?",
]
ORDERED = {
    # The fullest node first.
    "top nodes": ["prod-us worker-1 2", "prod-eu worker-1 2"],
    # Node by node, the nearest next death first, and the kill order of each.
    "top -A": ["prod-eu 1 shop web", "prod-eu 2 shop db", "prod-us 1 shop api", "prod-us 2 shop web"],
    "top -A --sort-by restarts": ["prod-us 2 shop web", "prod-eu 1 shop web"],
    # The nearest next death first, one of each node.
    "next": ["prod-eu worker-1 +50Mi shop/web:app", "prod-us worker-1 +100Mi shop/api:app"],
    "next node/worker-1": ["prod-eu worker-1 +50Mi", "prod-us worker-1 +100Mi", "prod-us worker-1 +700Mi"],
    # The newest first.
    "kills -A": ["prod-us 2026-11-20T11:52:00Z shop web", "prod-eu 2026-11-20T11:51:00Z shop web"],
    # Against the nearest death first, each with its number for `fix --context NAME --apply N`.
    "fix": ["prod-eu 1 worker-1 shop/web", "prod-us 1 worker-1 shop/api"],
    "check -A": ["prod-us: note: shop/pod/api:", "prod-us: note: shop/pod/web:"],
}


@pytest.mark.parametrize("line", ORDERED)
def test_rows_of_all_clusters_in_one_order_and_a_line_for_each_failure(fleet: Run, line: str) -> None:
    done = fleet(*line.split(), "--all-contexts")
    rows = [" ".join(row.split()) for row in done.lines if not row.startswith("CLUSTER ")]
    wanted = ORDERED[line]
    assert [row[: len(start)] for row, start in zip(rows, wanted, strict=False)] == wanted
    assert [row.split()[0].rstrip(":") in {"prod-us", "prod-eu"} for row in rows] == [True] * len(rows)
    assert set(FAILURES) <= set(done.err.splitlines())
    assert done.code == (2 if line.startswith("check") else 1), "something was not answered"


@pytest.mark.parametrize("command", ["top", "next", "fix", "kills", "check"])
def test_a_document_without_any_answer_has_the_errors(fleet: Run, command: str) -> None:
    document = json.loads(fleet(command, "--contexts", "gone", "-o", "json").out)
    assert [f"{one['cluster']}: {one['error']}" for one in document["clusters"]] == FAILURES[1:]
    assert document["items"] == []


@pytest.mark.parametrize("line", [*ORDERED, "top -A --containers --show-labels"])
def test_documents_have_each_items_cluster_and_why_others_did_not_answer(fleet: Run, line: str) -> None:
    """That they are as the schema says is checked where commands are run."""
    words = line.split()
    document = json.loads(fleet(*words, "--all-contexts", "-o", "json").out)
    assert {item["cluster"] for item in document["items"]} == {"prod-us", "prod-eu"}
    errors = {one["cluster"]: one["error"] for one in document["clusters"]}
    assert [f"{name}: {errors[name]}" for name in ("broken", "gone")] == FAILURES
    assert errors["prod-us"] is errors["prod-eu"] is None
    table = fleet(*words, "--all-contexts", "--no-headers") if not line.startswith("check") else None
    if table is not None:
        assert [row.split()[0] for row in table.lines] == [item["cluster"] for item in document["items"]]


def test_a_baseline_accepts_a_finding_only_in_its_own_cluster(fleet: Run) -> None:
    def checked(*flags: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = json.loads(
            fleet("check", "-A", "--contexts", "prod-*", "-o", "json", *flags).out
        )["items"]
        return items

    everywhere = checked()
    (fleet.home / "baseline.json").write_text(
        json.dumps({"items": [item for item in everywhere if item["cluster"] == "prod-us"]})
    )
    left = checked("--baseline", "baseline.json")
    assert left == [item for item in everywhere if item["cluster"] == "prod-eu"]
    assert "web" in {item["object"]["name"] for item in left}, "a pod of this name is in both clusters"


def test_clusters_that_all_answer_end_well_and_say_alike_notes_once(fleet: Run) -> None:
    done = fleet("top", "nodes", "--contexts", "prod-*")
    rights = (
        "to show it, grant list on nodes.metrics.k8s.io (docs/rbac/nodes.yaml), or use --usage=summary, or"
        " NodeMetrics with -f"
    )
    notes = [f"memory used outside pods on worker-1 is unknown: {rights}"]
    assert (done.code, done.err.splitlines(), len(done.lines)) == (0, notes, 3)
    of_one = fleet("top", "nodes", "--contexts", "prod-eu,gone")
    assert (of_one.code, of_one.err.splitlines()) == (1, [FAILURES[1], f"prod-eu: {notes[0]}"])
    csv = fleet("top", "nodes", "--contexts", "prod-*", "-o", "csv").lines
    assert [line.split(",")[:2] for line in csv] == [
        ["cluster", "node"],
        ["prod-us", "worker-1"],
        ["prod-eu", "worker-1"],
    ]


def test_what_is_named_and_missing_in_one_cluster_is_its_failure(fleet: Run) -> None:
    done = fleet("top", "pod/api", "-n", "shop", "--contexts", "prod-*")
    assert [line.split()[:2] for line in done.lines[1:]] == [["prod-us", "1"]]
    assert done.err.splitlines()[0] == 'prod-eu: Error from server (NotFound): pods "api" not found'
    assert done.code == 1


def test_answers_and_failures_are_in_the_kubeconfigs_order(
    fleet: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def last_first(contexts: Iterable[str], _: object) -> list[tuple[str, object]]:
        return [(one, QosError(one) if one in {"broken", "gone"} else 1) for one in reversed([*contexts])]

    monkeypatch.setattr("kubectl_qos.cluster.background.read_each", last_first)
    config = ConnectionOptions(kubeconfig=str(fleet.home / ".kube" / "config"))
    answers, errors = read_clusters(SourceOptions(config, all_contexts=True), lambda _: 1)
    assert (list(answers), list(errors)) == (["prod-us", "prod-eu"], ["broken", "gone"])


class Pods:
    itself: object = None


def test_nothing_of_a_cluster_is_kept_but_its_answer(fleet: Run) -> None:
    """Commands collect no garbage, and what an error's traceback holds is garbage."""
    kept: list[weakref.ref[Any]] = []

    def read(source: SourceOptions) -> str:
        pods = Pods()
        pods.itself = pods
        kept.append(weakref.ref(pods))
        return str(source.connection.context).upper()

    config = ConnectionOptions(kubeconfig=str(fleet.home / ".kube" / "config"))
    gc.disable()
    try:
        answers, _ = read_clusters(SourceOptions(config, all_contexts=True), read)
        assert [one() for one in kept] == [None] * 4
    finally:
        gc.enable()
        gc.unfreeze()
    assert set(answers.values()) == {"PROD-US", "BROKEN", "PROD-EU", "GONE"}


REFUSED = {
    "next --contexts prd": 'context "prd" does not exist',
    "next --contexts test-*": 'no context matches "test-*"',
    "top --all-contexts -w": "-w and --all-contexts cannot be used together",
    "fix --contexts prod-eu --apply 1": "--apply and --contexts cannot be used together",
    "fix --all-contexts -o patch": "-o patch and --all-contexts cannot be used together",
    "fix --all-contexts --priorities": "--priorities and --all-contexts cannot be used together",
    "kills --all-contexts --kernel-log x": "--kernel-log and --all-contexts cannot be used together",
    "top --all-contexts --context prod-eu": "--context and --all-contexts cannot be used together",
    "top --all-contexts --token x": "--token and --all-contexts cannot be used together",
    "check x.yaml --all-contexts": "-f and --all-contexts cannot be used together",
    "next --all-contexts --demo": "--demo and --all-contexts cannot be used together",
    "next --all-contexts --at 2h": "--at and --all-contexts cannot be used together",
    "top --all-contexts -n shop web -l a=b": "only one of NAME or selector can be provided",
}


@pytest.mark.parametrize("line", REFUSED)
def test_what_is_of_one_cluster_is_refused_in_a_sentence(fleet: Run, line: str) -> None:
    done = fleet(*line.split())
    assert (done.code, done.out, done.err.splitlines()[0]) == (2, "", f"error: {REFUSED[line]}")


def test_a_note_names_its_clusters_unless_it_is_about_all() -> None:
    most = {name: ["all", "most"] for name in "abcde"} | {"f": ["all", "one", "one"]}
    assert merged_notes(most) == ("all", "a, b, c and 2 more: most", "f: one")
    assert merged_notes({"a": ["all"]}) == ("a: all",)
