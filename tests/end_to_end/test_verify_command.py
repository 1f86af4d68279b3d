"""`verify`: what is run and where, a node's dump and folders; the rest is in test_transcripts.py."""

from __future__ import annotations

import copy
import json
import re
import threading
from pathlib import Path
from typing import Any

import pytest

from kubectl_qos.cluster import exec as exec_module
from tests.cluster.cluster_objects import recorded_node
from tests.cluster.exec_server import ended, failure, switched
from tests.end_to_end.command import Done, Run
from tests.end_to_end.conftest import Live
from tests.end_to_end.stages import SMALL
from tests.end_to_end.verifying import Cluster, container_of, dump, recorded, write_roots


@pytest.fixture
def verify(run: Run, live: Live) -> Any:
    """Run `verify` against a cluster of these recorded lines."""

    def start(cluster: Cluster, *words: str | Path) -> Done:
        live(cluster, namespace="default")
        return run("verify", *words)

    return start


@pytest.mark.parametrize(
    ("words", "execs"),
    [
        (["pod/bu-multi"], [("bu-multi", "a"), ("bu-multi", "b"), ("bu-multi", "d")]),
        (["node/node1", "--dry-run=client"], []),
        (["node/node1", "-n", "kube-system"], []),
    ],
)
def test_each_container_is_read_once_also_without_a_shell(
    verify: Any, words: list[str], execs: list[tuple[str, str]]
) -> None:
    cluster = Cluster(recorded(*SMALL))
    none = failure('exec: "sh": executable file not found in $PATH')
    cluster.answers["b"] = lambda request: switched(request, ended(status=none))
    verify(cluster, *words)
    assert sorted(cluster.execs) == execs


def test_nothing_is_run_on_windows(verify: Any) -> None:
    cluster = Cluster(recorded("bu-mem-odd"))
    cluster.objects.nodes = [copy.deepcopy(found) for found in cluster.objects.nodes]
    cluster.objects.nodes[0]["status"]["nodeInfo"]["operatingSystem"] = "windows"
    assert verify(cluster, "pod/bu-mem-odd").code == 2
    assert cluster.execs == []


def test_every_pod_of_a_node(verify: Any) -> None:
    lines = recorded()
    done = verify(Cluster(lines), "node/node1")
    assert (done.code, done.out) == (0, "")
    assert re.search(r"^\d{3} values of 7\d containers match, no drift$", done.err, re.MULTILINE)


def test_a_node_without_its_kubelet_is_left_after_the_first_containers(
    verify: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was measured, so nothing is said to match; the others would only wait as long."""
    monkeypatch.setattr(exec_module, "SECONDS", 1.0)
    released = threading.Event()
    cluster = Cluster(recorded())
    silent = {one["name"] for line in cluster.lines.values() for one in line["containers"]}
    cluster.answers = dict.fromkeys(
        silent, lambda request: switched(request, lambda *_: released.wait(60) and None)
    )
    done = verify(cluster, "node/node1")
    released.set()
    assert (done.code, done.out) == (2, "")
    assert len(cluster.execs) == 8
    first, not_tried, *_, last = done.err.splitlines()
    assert re.fullmatch(r"default/\S+ container .* and 5 more: no answer within 1 s: the API .*", first)
    assert re.fullmatch(r".* and 6\d more: skipped: no other container answered \(.*\)", not_tried)
    assert re.fullmatch(r"nothing was measured: 7\d containers could not be read", last)
    assert "no drift" not in done.err


def test_containers_with_several_processes_are_named(verify: Any) -> None:
    """The kernel scores each process: what a ranking counts as one may be many small ones."""
    lines = recorded("bu-multi")
    (container,) = (one for one in lines[0]["containers"] if one["name"] == "a")
    (process,) = container["processes"]
    container["processes"] = [{**process, "pid": 10 + score, "oom_score": score} for score in (700, 1343, 2)]
    done = verify(Cluster(lines), "pod/bu-multi", "-o", "json")
    found = json.loads(done.out)
    (note,) = (note for note in found["notes"] if "several processes" in note)
    assert note.endswith("default/bu-multi container a (3, the highest oom_score 1343)")
    checks = [check for one in found["items"] for check in one["checks"] if check["container"] == "a"]
    (adj,) = (check for check in checks if check["file"] == "oom_score_adj")
    assert [one["oomScore"] for one in adj["processes"]] == [700, 1343, 2]


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
    words = ("verify", "-f", objects, "node/node1", "--from-dump", path)
    lines[0]["levels"]["pod"]["memory.max"] = "4096"
    first = run(*words)
    # Only some of the node's pods are here, so the sums of the classes are not those that were recorded.
    assert first.code == 1
    assert {tuple(line.split()[:2]) for line in first.lines[1:]} == {("node", "class")}
    path.write_text(json.dumps(dump(lines)))
    again = [line.split() for line in run(*words).lines[1:]]
    (drift,) = (row for row in again if row[0] != "node")
    assert drift[1:6] == ["pod", "memory.max", "max", "4096", "yes"]


def with_events() -> list[dict[str, Any]]:
    """The lines of a pod of which two containers have reached their bounds."""
    lines = recorded("bu-multi")
    for number, name in enumerate("ab"):
        counts = f"low 1\nhigh {number}\nmax 4{number}\noom 2\noom_kill 1"
        container_of(lines[0], name)["cgroup"]["memory.events"] = counts
    return lines


def test_what_reached_a_bound_of_memory_is_named(verify: Any, run: Run, tmp_path: Path) -> None:
    lines = with_events()
    proc, root = write_roots(tmp_path, lines)
    words = ("-f", files_of(tmp_path, lines), "pod/bu-multi", "--local", "--proc-root", proc)
    for done in (
        verify(Cluster(lines), "pod/bu-multi", "-o", "json"),
        run("verify", *words, "--cgroup-root", root, "-o", "json"),
    ):
        found = json.loads(done.out)
        (note,) = (note for note in found["notes"] if "memory.events" in note)
        assert note == (
            "hit a memory bound since they started (memory.events): default/bu-multi container a"
            " (max 40, oom 2, oom_kill 1), default/bu-multi container b (high 1, max 41, oom 2, oom_kill 1)"
        )
        (events,) = (one["memoryEvents"] for one in found["items"] if one["pod"])
        assert events["a"] == {"high": 0, "max": 40, "oom": 2, "oom_kill": 1}


def test_explain_has_the_memory_events_of_a_dump(run: Run, tmp_path: Path) -> None:
    lines = with_events()
    objects, path = files_of(tmp_path, lines), tmp_path / "host.json"
    path.write_text(json.dumps(dump(lines)))
    words = ("explain", "-f", objects, "pod/bu-multi", "--from-dump", path)
    said = " ".join(run(*words).out.split())
    assert "Memory a memory.events: high 0, max 40, oom 2, oom_kill 1" in said
    assert "b memory.events: high 1, max 41, oom 2, oom_kill 1" in said
    first, *_ = json.loads(run(*words, "-o", "json").out)["containers"]
    assert (first["name"], first["memoryEvents"]) == ("a", {"high": 0, "max": 40, "oom": 2, "oom_kill": 1})
    first, *_ = json.loads(run(*words[:-2], "-o", "json").out)["containers"]
    assert first["memoryEvents"] is None


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
    assert again["driftCount"] == found["driftCount"] + 1


def test_another_node_than_this(run: Run, tmp_path: Path) -> None:
    lines = recorded("bu-multi")
    objects = files_of(tmp_path, lines)
    proc, root = write_roots(tmp_path, recorded("be-plain"))
    done = run("verify", "-f", objects, "pod/bu-multi", "--local", "--proc-root", proc, "--cgroup-root", root)
    assert "this machine has no cgroup with its id (is this node node1?)" in done.err
