"""`verify` from the outside: what differs, exit codes, what is run and where, a node's dump and folders."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_qos.cluster.exec import SHELL
from tests.cluster.cluster_objects import recorded_node
from tests.cluster.exec_server import ended, exit_code, failure, said, switched
from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.object_server import status
from tests.cluster.serving import Serve
from tests.end_to_end.command import Done, Run
from tests.end_to_end.test_process import with_modules
from tests.end_to_end.verifying import Cluster, container_of, dump, recorded, write_roots

SMALL = ("bu-mem-odd", "bu-multi", "be-plain", "sidecar-small", "gu-frac")


@pytest.fixture
def ask(run: Run, serve: Serve, tmp_path: Path) -> Any:
    """Run `verify` against a cluster of these recorded lines."""

    def start(cluster: Cluster, *words: str | Path) -> Done:
        config = write(tmp_path / "config", kubeconfig(serve(cluster), namespace="default"))
        return run("verify", *words, "--kubeconfig", config)

    return start


def test_a_recorded_pod_has_no_drift(ask: Any) -> None:
    cluster = Cluster(recorded(*SMALL))
    done = ask(cluster, "pod/bu-multi")
    assert (done.code, done.out) == (0, "")
    assert done.err == "24 values of 3 containers as computed, no drift\n"
    assert sorted(cluster.execs) == [("bu-multi", name) for name in "abd"]


def test_one_value_that_differs(ask: Any) -> None:
    lines = recorded("bu-mem-odd")
    container_of(lines[0], "c")["cgroup"]["memory.max"] = "123456789"
    done = ask(Cluster(lines), "pod/bu-mem-odd")
    assert done.code == 1
    assert [line.split() for line in done.lines] == [
        ["LEVEL", "FILE", "COMPUTED", "MEASURED", "DRIFT", "CAUSE"],
        ["container", "c", "memory.max", "123453440", "123456789", "yes", "none", "known"],
    ]
    assert done.err.splitlines()[-1].endswith("values of 1 container as computed, 1 drift")


def test_an_application_that_set_its_own_adj(ask: Any) -> None:
    lines = recorded("bu-mem-odd")
    (process,) = container_of(lines[0], "c")["processes"]
    process |= {"oom_score_adj": 1000, "comm": "a\x1b[2Jb"}
    done = ask(Cluster(lines), "pod/bu-mem-odd")
    assert done.code == 1
    assert f"oom_score_adj of {process['pid']} a\\x1b[2Jb" in done.out
    assert done.lines[1].endswith("the application set its own: any process may raise it")
    found = json.loads(ask(Cluster(lines), "pod/bu-mem-odd", "-o", "json").out)
    assert found["drift"] == 1
    (check,) = (one for one in found["items"][0]["checks"] if one["drift"])
    assert check["cause"] == {
        "why": "the application set its own",
        "confidence": "certain",
        "sentence": "the application set its own: any process may raise it",
    }


def test_wide_has_every_value_and_both_formats_are_one_truth(ask: Any) -> None:
    lines = recorded("gu-frac")
    wide = ask(Cluster(lines), "pod/gu-frac", "-o", "wide")
    assert wide.code == 0
    assert "container c   cpu.max" in wide.out
    found = json.loads(ask(Cluster(lines), "pod/gu-frac", "-o", "json").out)
    assert yaml.safe_load(ask(Cluster(lines), "pod/gu-frac", "-o", "yaml").out) == found
    assert len(found["items"][0]["checks"]) == len(wide.lines) - 1
    assert {one["drift"] for one in found["items"][0]["checks"]} <= {False, None}


def test_every_pod_of_a_node(ask: Any) -> None:
    lines = recorded()
    done = ask(Cluster(lines), "node/node1")
    assert (done.code, done.out) == (0, "")
    assert re.search(r"^\d{3} values of 7\d containers as computed, no drift$", done.err, re.MULTILINE)


def test_of_a_node_each_row_names_its_pod(ask: Any) -> None:
    lines = recorded(*SMALL)
    container_of(lines[-1], "c")["cgroup"]["cpu.weight"] = "7"
    done = ask(Cluster(lines), "node/node1", "-A")
    name = lines[-1]["pod"]["metadata"]["name"]
    assert done.code == 1
    assert done.lines[0].split()[:2] == ["POD", "LEVEL"]
    assert [line.split()[0] for line in done.lines[1:]] == [f"default/{name}"]


def test_a_namespace_of_a_node(ask: Any) -> None:
    cluster = Cluster(recorded(*SMALL))
    assert ask(cluster, "node/node1", "-n", "kube-system").code == 2
    assert cluster.execs == []


def test_a_dry_run_asks_no_container(ask: Any) -> None:
    cluster = Cluster(recorded(*SMALL))
    done = ask(cluster, "node/node1", "--dry-run")
    assert done.code == 0
    assert cluster.execs == []
    assert SHELL[2].split("'")[0] in done.lines[0]
    assert "default/be-plain container c" in done.lines
    assert done.err.splitlines()[-1] == f"{len(done.lines) - 1} execs would be made; nothing was run"


def test_an_image_with_neither_is_named_and_does_not_hide_the_others(ask: Any) -> None:
    cluster = Cluster(recorded("bu-multi"))
    none = failure('exec: "sh": executable file not found in $PATH')
    cluster.answers["b"] = lambda request: switched(request, ended(status=none))
    done = ask(cluster, "pod/bu-multi")
    assert (done.code, done.out) == (0, "")
    assert "default/bu-multi container b: neither sh nor cat could be run in it" in done.err
    assert "kubectl debug" in done.err
    assert cluster.execs.count(("bu-multi", "b")) == 2


def test_where_nothing_could_be_read_it_is_trouble(ask: Any) -> None:
    cluster = Cluster(recorded("bu-mem-odd"))
    cluster.answers["c"] = lambda request: switched(request, ended(b"", b"", exit_code(126)))
    done = ask(cluster, "pod/bu-mem-odd")
    assert (done.code, done.out) == (2, "")


@pytest.mark.parametrize("pod", ["bu-mem-odd", "bu-multi"], ids=["one container", "several"])
def test_who_may_not_exec_is_told_what_grants_it(ask: Any, pod: str) -> None:
    cluster = Cluster(recorded(pod))
    refused = status(
        403, "Forbidden", 'pods "x" is forbidden: User "viewer" cannot create resource "pods/exec"'
    )
    for container in ("a", "b", "c", "d"):
        cluster.answers[container] = lambda _: refused
    done = ask(cluster, f"pod/{pod}")
    assert done.code == 2
    assert 'cannot create resource "pods/exec"' in done.err
    assert "docs/rbac/exec.yaml" in done.err


def test_a_server_that_breaks_off_is_trouble_and_the_rest_is_shown(ask: Any) -> None:
    lines = recorded("bu-multi")
    cluster = Cluster(lines)
    cluster.answers["a"] = lambda request: switched(request, [said(1, b"==> $$\n")])
    done = ask(cluster, "pod/bu-multi")
    assert done.code == 2
    assert "container a: Unable to connect to the server: the websocket broke off" in done.err
    container_of(lines[0], "b")["cgroup"]["cpu.weight"] = "7"
    assert ask(cluster, "pod/bu-multi").code == 1


def test_numbers_that_are_none(ask: Any) -> None:
    cluster = Cluster(recorded("bu-mem-odd"))
    text = b"==> $$\n7\n==> /proc/self/cgroup\n0::/\n==> /proc/1/oom_score_adj\nx\x1b[2J\n"
    cluster.answers["c"] = lambda request: switched(request, ended(text))
    done = ask(cluster, "pod/bu-mem-odd")
    assert done.code == 2
    assert "what it said cannot be read" in done.err
    assert "\x1b" not in done.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--demo", "pod/db-0", "-n", "data"], "neither --demo nor -f has any that run"),
        (["deployment/web"], "a deployment has no cgroups"),
        (["pod/a", "pod/b"], "one pod or node can be verified at a time"),
        (["pod/a", "--proc-root", "/x"], "go with --local"),
        (["pod/a", "--local", "--dump", "x"], "cannot be used together"),
        (["pod/a", "--local", "--dry-run"], "run nothing"),
        (["--demo", "pod/none", "--dump", "absent.json"], 'pods "none" not found in demo'),
        (["--demo", "node/worker-2", "--dump", "absent.json"], "open absent.json: no such file"),
    ],
)
def test_what_cannot_be_asked_is_trouble(run: Run, words: list[str], message: str) -> None:
    done = run("verify", *words)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def files_of(folder: Path, lines: list[dict[str, Any]]) -> Path:
    """The objects of the API in a file."""
    path = folder / "objects.json"
    items = [recorded_node(), *({"kind": "Pod", "apiVersion": "v1", **one["pod"]} for one in lines)]
    path.write_text(json.dumps({"kind": "List", "items": items}))
    return path


def test_a_dump_of_the_node(run: Run, tmp_path: Path) -> None:
    lines = recorded(*SMALL)
    objects = files_of(tmp_path, lines)
    path = tmp_path / "host.json"
    path.write_text(json.dumps(dump(lines)))
    words = ("verify", "-f", objects, "node/node1", "--dump", path)
    lines[0]["levels"]["pod"]["memory.max"] = "4096"
    first = run(*words)
    # Only some of the node's pods are here, so the sums of the classes are not those that were recorded.
    assert first.code == 1
    assert {tuple(line.split()[:2]) for line in first.lines[1:]} == {("node", "class")}
    path.write_text(json.dumps(dump(lines)))
    again = [line.split() for line in run(*words).lines[1:]]
    (drift,) = (row for row in again if row[0] != "node")
    assert drift[1:6] == ["pod", "memory.max", "max", "4096", "yes"]


def test_the_folders_of_a_node(run: Run, tmp_path: Path) -> None:
    lines = recorded(*SMALL)
    objects = files_of(tmp_path, lines)
    proc, root = write_roots(tmp_path, lines)
    words = ("verify", "-f", objects, "pod/bu-multi", "--local", "--proc-root", proc, "--cgroup-root", root)
    done = run(*words, "-o", "json")
    found = json.loads(done.out)
    checks = [check for one in found["items"] for check in one["checks"]]
    assert {check["level"] for check in checks} == {"kubepods", "class", "pod", "container"}
    assert [(check["level"], check["file"]) for check in checks if check["drift"]] == [
        ("class", "cpu.weight")
    ]
    assert {check["file"] for check in checks} >= {
        "directory",
        "oom_score_adj",
        "memory.max",
        "hugetlb.2MB.max",
    }
    for line in lines:
        if line["pod"]["metadata"]["name"] == "bu-multi":
            (root / line["levels"]["pod"]["path"].strip("/") / "cpu.weight").write_text("5\n")
    again = json.loads(run(*words, "-o", "json").out)
    assert again["drift"] == found["drift"] + 1


def test_another_node_than_this(run: Run, tmp_path: Path) -> None:
    lines = recorded("bu-multi")
    objects = files_of(tmp_path, lines)
    proc, root = write_roots(tmp_path, recorded("be-plain"))
    done = run("verify", "-f", objects, "pod/bu-multi", "--local", "--proc-root", proc, "--cgroup-root", root)
    assert "no cgroup here is that of its id (is this node node1?)" in done.err


def test_a_sandboxed_runtime_is_said_where_something_differs(ask: Any) -> None:
    lines = recorded("bu-mem-odd")
    lines[0]["pod"]["spec"]["runtimeClassName"] = "kata"
    assert "kata" not in ask(Cluster(lines), "pod/bu-mem-odd").err
    container_of(lines[0], "c")["cgroup"]["cpu.weight"] = "7"
    assert "default/bu-mem-odd has the RuntimeClass kata" in ask(Cluster(lines), "pod/bu-mem-odd").err


def test_windows_has_nothing_to_verify(ask: Any) -> None:
    cluster = Cluster(recorded("bu-mem-odd"))
    (found,) = cluster.objects.nodes
    info = {**found["status"]["nodeInfo"], "operatingSystem": "windows"}
    cluster.objects.nodes = [{**found, "status": {**found["status"], "nodeInfo": info}}]
    done = ask(cluster, "pod/bu-mem-odd")
    assert (done.code, done.out, cluster.execs) == (2, "", [])
    assert "runs Windows" in done.err


def test_a_pod_that_cannot_be_verified(ask: Any) -> None:
    lines = recorded("bu-mem-odd", "be-plain", "gu-frac")
    lines[0]["pod"]["status"]["phase"] = "Succeeded"
    del lines[1]["pod"]["spec"]["nodeName"]
    lines[2]["pod"]["status"]["containerStatuses"][0]["state"] = {"waiting": {"reason": "CrashLoopBackOff"}}
    words = ("has ended: its cgroup is gone", "is on no node yet", "no container runs")
    for line, message in zip(lines, words, strict=True):
        done = ask(Cluster(lines), f"pod/{line['pod']['metadata']['name']}")
        assert (done.code, done.out) == (2, "")
        assert message in done.err


def test_the_help_says_what_is_run(run: Run) -> None:
    text = " ".join(run("verify", "--help").out.split())
    assert "one command is run by exec: sh" in text
    assert "--dry-run prints it" in text
    assert "Exit code 0 if nothing differs, 1 if something does, 2 if it could not be told." in text


def test_no_more_is_loaded_than_for_a_list(serve: Serve, tmp_path: Path) -> None:
    config = write(tmp_path / "config", kubeconfig(serve(Cluster(recorded("be-plain"))), namespace="default"))
    done = with_modules(tmp_path, "verify", "pod/be-plain", "--kubeconfig", str(config))
    assert done.returncode == 0, done.stderr
    loaded = set(done.stderr.splitlines()[-1].split())
    assert loaded & {"textual", "rich", "kubernetes"} == set()
