"""Objects named as kubectl names them, in the commands that take pods, workloads and nodes."""

import json
from pathlib import Path
from typing import Any

import pytest

from kubectl_qos.cli.main import run

TWO_PODS = "api-7d9c5b6f8-x2mzq", "api-7d9c5b6f8-k8vwl"


def done(capsys: pytest.CaptureFixture[str], line: str) -> tuple[int, str, str]:
    code = run([*line.split(), "--demo"], open_ui=lambda _: 0)
    return code, *capsys.readouterr()


def document(capsys: pytest.CaptureFixture[str], line: str) -> Any:
    code, out, err = done(capsys, f"{line} -o json")
    assert code == 0, err
    return json.loads(out)


@pytest.mark.parametrize("command", ["explain", "next", "tree", "compare --to 1.37"])
def test_a_name_of_kubectl_get_o_name_is_taken_back(capsys: pytest.CaptureFixture[str], command: str) -> None:
    expected = done(capsys, f"{command} deploy/api -n shop")
    assert expected[0] == 0
    assert done(capsys, f"{command} deployment.apps/api -n shop") == expected


@pytest.mark.parametrize("command", ["explain", "next", "tree", "fix", "compare --to 1.37"])
def test_a_name_alone_is_that_of_a_pod(capsys: pytest.CaptureFixture[str], command: str) -> None:
    expected = done(capsys, f"{command} pod/{TWO_PODS[0]} -n shop")
    assert expected[0] == 0
    assert done(capsys, f"{command} {TWO_PODS[0]} -n shop") == expected


@pytest.mark.parametrize("command", ["explain", "next", "tree", "fix", "top", "kills"])
def test_a_victim_is_taken_back_as_tables_name_it(capsys: pytest.CaptureFixture[str], command: str) -> None:
    expected = done(capsys, f"{command} pod/{TWO_PODS[0]} -n shop")
    assert expected[0] == 0
    assert done(capsys, f"{command} shop/{TWO_PODS[0]}:c") == expected


def test_victims_of_two_namespaces_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = done(capsys, f"next shop/{TWO_PODS[0]}:c data/db-2:a")
    assert (code, "name pods of one namespace at a time" in err) == (2, True)


def test_the_hint_for_a_namespace_in_the_place_of_a_kind_is_the_right_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, _, err = done(capsys, "explain data/db-2")
    assert (code, "a pod of namespace data is pod/db-2 -n data" in err) == (2, True)


def test_a_kind_alone_names_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = done(capsys, "explain deploy")
    assert code
    assert "no name was specified" in err
    assert "write deploy/NAME" in err


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("set api --limits memory=1Gi", "write pod/api"),
        ("simulate worker-2 --free 1Gi", "for a node write node/worker-2"),
    ],
)
def test_where_a_pod_is_changed_or_a_node_filled_the_kind_is_named(
    capsys: pytest.CaptureFixture[str], line: str, kind: str
) -> None:
    code, _, err = done(capsys, line)
    assert (code, kind in err) == (2, True)


def test_a_node_alone_is_filled_until_the_first_kill(capsys: pytest.CaptureFixture[str]) -> None:
    expected = done(capsys, "simulate node/worker-2 --until-oom")
    assert done(capsys, "simulate node/worker-2") == expected
    assert done(capsys, "simulate node/worker-2 --eviction") != expected


def test_of_several_pods_the_one_that_dies_first_is_first(capsys: pytest.CaptureFixture[str]) -> None:
    items = document(capsys, f"next {' '.join(TWO_PODS)} -n shop")["items"]
    assert {item["pod"] for item in items} == set(TWO_PODS)
    assert items == document(capsys, "next deploy/api -n shop")["items"]


def test_of_several_nodes_the_next_death_of_each(capsys: pytest.CaptureFixture[str]) -> None:
    items = document(capsys, "next node/worker-3 node/worker-1")["items"]
    assert [item["node"] for item in items] == ["worker-1", "worker-3"]


def test_the_tree_of_a_workload_has_the_path_to_each_pod(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = done(capsys, "tree deploy/api -n shop")
    assert all(f"shop/{name}" in out for name in TWO_PODS)


def test_a_comparison_of_a_workload_is_of_its_pods(capsys: pytest.CaptureFixture[str]) -> None:
    pods = document(capsys, "compare deploy/api -n shop --to 1.37")["pods"]
    assert {pod["pod"] for pod in pods} == set(TWO_PODS)


def test_namespaces_are_those_of_the_cluster_and_workloads_those_of_a_namespace(
    capsys: pytest.CaptureFixture[str],
) -> None:
    namespaces = document(capsys, "top namespaces")["items"]
    pods = document(capsys, "top pods -A")["items"]
    assert {item["namespace"] for item in namespaces} == {pod["namespace"] for pod in pods}
    assert [item["rank"] for item in namespaces] == sorted(item["rank"] for item in namespaces)
    shop = [item for item in namespaces if item["namespace"] == "shop"]
    assert document(capsys, "top ns -n shop")["items"] == shop
    assert shop[0]["memoryBytes"] == sum(pod["memoryBytes"] for pod in pods if pod["namespace"] == "shop")
    _, names, _ = done(capsys, "top workloads -n shop -o name")
    for name in names.split():
        code, _, err = done(capsys, f"explain {name} -n shop")
        assert code == 0, err


@pytest.mark.parametrize("flag", ["--containers", "--min-risk high", "-L app", "--show-labels"])
def test_groups_of_pods_take_no_flags_of_pods(capsys: pytest.CaptureFixture[str], flag: str) -> None:
    code, _, err = done(capsys, f"top namespaces {flag}")
    assert (code, "not" in err and "namespaces" in err) == (2, True)


def test_no_hint_repeats_the_name_that_was_given(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "d", "controller": True}
    metadata = {"name": "agent-x1", "namespace": "default", "uid": "p", "ownerReferences": [owner]}
    orphan = tmp_path / "orphan.json"
    pod = {"metadata": metadata, "spec": {"nodeName": "n", "containers": [{"name": "c"}]}}
    orphan.write_text(json.dumps({"apiVersion": "v1", "kind": "Pod", **pod}))
    hints = []
    for name in ("agent", "agen"):
        assert run(["explain", f"ds/{name}", "-f", str(orphan)], open_ui=lambda _: 0) == 1
        hints.append("did you mean daemonset/agent?" in capsys.readouterr().err)
    assert hints == [False, True]
