"""With -f, a bundle answers as its source did: the demo after its kill, recorded nodes live and as dumps."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from kubectl_qos.cli import sources
from kubectl_qos.cluster.bundle import BundleSource
from kubectl_qos.cluster.files import FileSource
from kubectl_qos.cluster.live import LiveSource
from kubectl_qos.k8s.snapshot import Scope
from tests.cluster.cluster_objects import node
from tests.cluster.https_server import Answer
from tests.cluster.object_server import ObjectServer
from tests.demo.living import FULL_AT, IMPORTER, Stepped
from tests.end_to_end.command import Run
from tests.end_to_end.conftest import Live
from tests.host.kernel_logs import recorded_run
from tests.recordings.files import read, read_json

COMMANDS = [
    ["top", "-A"],
    ["top", "-A", "--containers", "-o", "json"],
    ["top", "nodes"],
    ["explain", "{pod}"],
    ["kills", "-A", "-o", "json"],
    ["next"],
    ["simulate", "{node}", "--eviction", "--all-at-limit", "-o", "json"],
    ["tree"],
    ["fix", "{node}"],
    ["compare", "{node}", "--to", "1.37"],
    ["compare", "{pod}", "--assume", "cgroupVersion=1"],
]


def assert_same(
    run: Run, pod: str, node: str, *, given: list[str], bundle: Path, commands: list[list[str]] = COMMANDS
) -> None:
    """Every command writes the same to both streams and ends alike."""
    for command in commands:
        words = [word.format(pod=pod, node=node) for word in command]
        expected, done = run(*words, *given), run(*words, "-f", bundle)
        assert done == expected, words
        assert "kills" in words or words[0] == "fix" or done.out, words


def test_the_demo_after_its_kill(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    demo, bundle = Stepped(FULL_AT + 20, may_write=False), run.home / "demo.tar.gz"
    monkeypatch.setattr(sources, "_demo", lambda *_, **__: demo)
    done = run("report", "-A", "--demo", "--bundle", bundle)
    assert IMPORTER in done.out
    assert run("report", "-f", bundle).out == done.out
    assert run("check", "-A", "-f", bundle) == run("check", "-A", "--demo")
    assert done.err.splitlines()[-1].startswith(
        f"wrote {bundle} with real names (--anonymize replaces them): "
    )
    assert_same(run, f"pod/{IMPORTER}", "node/worker-2", given=["--demo"], bundle=bundle)
    workload = ["explain", "deployment/importer"]
    assert run(*workload, "-f", bundle) == run(*workload, "--demo")
    assert run(*workload, "-f", bundle).code == 0


def test_the_first_moment_of_the_demo(run: Run) -> None:
    """With the workloads, which its file has not, and in the same order."""
    page = run("report", "deploy/api", "--demo", "--bundle", "demo.tar.gz").out
    assert run("report", "-f", "demo.tar.gz") == (0, page, "")
    assert page.startswith("# Memory report: deployment shop/api\n")
    done = run("report", "deploy/api", "--demo", "--bundle", "nameless.tar.gz", "--anonymize")
    assert "with names replaced, as in this page" in done.err
    nameless = run("report", "-f", "nameless.tar.gz").out
    assert done.out == nameless
    assert len(nameless.splitlines()) == len(page.splitlines())
    assert not re.search(r"shop|\bapi\b|worker", nameless)
    for words in (["explain", "deploy/api"], ["fix", "deploy/api"], ["check", "-A"], ["top", "-A"]):
        done = run(*words, "-f", "demo.tar.gz")
        assert done == run(*words, "--demo")
        assert done.out
    assert "nothing is changed: demo.tar.gz at 20" in run("fix", "-f", "demo.tar.gz", "--apply", "1").err


class Recorded(ObjectServer):
    """The second recorded node with its kubelet's own endpoints."""

    def __init__(self) -> None:
        pods, nodes = (read_json(f"node-1.36-b/{name}.json")["items"] for name in ("pods", "nodes"))
        super().__init__(pods=pods, nodes=nodes)
        for path, file in (("configz", "configz"), ("stats/summary", "stats-summary")):
            self.faults[f"/api/v1/nodes/node1/proxy/{path}"] = Answer(body=read(f"node-1.36-b/{file}.json"))


def test_a_recorded_node_of_a_cluster(run: Run, live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its kubelet's configuration and summary, as of the server's time then."""
    server = Recorded()
    server.forbidden = {"/apis/autoscaling.k8s.io/v1/verticalpodautoscalers"}
    live(server, namespace="default")
    then = datetime(2026, 11, 23, 2, tzinfo=UTC)
    monkeypatch.setattr(LiveSource, "now", lambda _: then)
    bundle = run.home / "node.tar.gz"
    done = run("report", "-A", "--usage", "summary", "--bundle", bundle)
    assert done.code == 0, done.err
    assert BundleSource(str(bundle)).now() == then
    assert run("report", "-f", bundle) == (0, done.out, "")
    assert "VerticalPodAutoscalers" in done.out
    assert run("check", "-f", bundle).out == run("check").out != ""
    commands = [words for words in COMMANDS if "compare" not in words and "--containers" not in words]
    assert_same(
        run, "pod/rz-pl", "node/node1", given=["--usage", "summary"], bundle=bundle, commands=commands
    )
    assert run("report", "-A", "--bundle", "bare.tar.gz").code == 0
    assert "memory usage is missing" in run("top", "-A").err
    for words in (["tree"], ["top", "-A"]):
        assert run(*words, "-f", "bare.tar.gz") == run(*words)


def dump(name: str) -> list[dict[str, Any]]:
    """The objects of a recorded node after an OOM, with made-up usage, no two containers alike."""
    if name == "global-A":
        said = recorded_run(name)
        pods, others = said["pods_after"].values(), [said["node_after"]]
        others += [{**event, "kind": "Event"} for event in said["events"]]
    else:
        pods = read_json(f"node-1.36-c/{name}-pods.json")["items"]
        others = [node("node1", memory="3984140Ki")]
    used = count(20)
    samples = [
        {
            "kind": "PodMetrics",
            "metadata": {key: one["metadata"][key] for key in ("name", "namespace")},
            "timestamp": "2026-11-20T21:00:00Z",
            "containers": [
                {"name": container["name"], "usage": {"memory": f"{next(used)}Mi"}}
                for container in one["spec"]["containers"]
            ],
        }
        for one in pods
    ]
    return [*({**one, "kind": "Pod"} for one in pods), *others, *samples]


@pytest.mark.parametrize(
    ("name", "log", "pod"),
    [
        ("global-A", "node-1.36/oom-global-A.dmesg.txt", "pod/oa-bu-over"),
        ("pending-resize", "node-1.36-c/pending-resize-oom.dmesg.txt", "pod/bu-over"),
    ],
)
def test_a_recorded_node_as_a_dump_with_its_kernel_log(
    run: Run, monkeypatch: pytest.MonkeyPatch, name: str, log: str, pod: str
) -> None:
    then = datetime(2026, 11, 23, 2, tzinfo=UTC)
    monkeypatch.setattr(FileSource, "now", lambda _: then)
    (run.home / "node.log").write_bytes(read(log))
    (run.home / "dump.json").write_text(json.dumps({"kind": "List", "items": dump(name)}))
    given, logs = ["-f", "dump.json"], ["--kernel-log", "node1=node.log"]
    for anonymize in ([], ["--anonymize"]):
        bundle = Path(f"{name}{''.join(anonymize)}.tar.gz")
        assert run("report", "-A", *given, *logs, "--bundle", bundle, *anonymize).code == 0
    for words in (["-o", "wide"], ["-o", "json"], [pod]):
        expected = run("kills", "-A", *words, *given, *logs)
        assert run("kills", "-A", *words, "-f", f"{name}.tar.gz") == expected
    assert "certain" in expected.out
    forms = {"global-A": ((["node/node1", "--since", "3d"], "html"), ([pod], "json"))}
    for about, form in forms.get(name, ((["-A"], "markdown"),)):
        written = run("report", *about, *given, *logs, "-o", form, "--bundle", "r.tar.gz")
        assert run("report", "-f", "r.tar.gz", "-o", form) == (0, written.out, "")
    explained = run("explain", pod, "-f", f"{name}.tar.gz").out
    assert ("killed by the kernel because" in explained) is (name == "global-A"), "the log is in the bundle"
    commands = [["top", "-A"], ["top", "nodes"], ["next"]]
    assert_same(run, pod, "node/node1", given=given, bundle=Path(f"{name}.tar.gz"), commands=commands)
    table = run("kills", "-A", *given, *logs).lines
    nameless = run("kills", "-A", "-f", bundle).lines
    assert [line.split()[0] for line in nameless] == [line.split()[0] for line in table]
    assert [re.findall(r"certain|likely|\d+Mi", line) for line in nameless] == [
        re.findall(r"certain|likely|\d+Mi", line) for line in table
    ]


def test_a_bundle_of_a_namespace_has_its_pods_and_their_neighbours(run: Run) -> None:
    assert run("report", "-n", "shop", "--demo", "--bundle", "b.tar.gz").code == 0
    assert run("top", "-n", "shop", "--demo") == run("top", "-f", "b.tar.gz")
    everything, found = (
        run("top", "-A", *source, "-o", "name").lines for source in (["--demo"], ["-f", "b.tar.gz"])
    )
    assert set(found) < set(everything)
    source = BundleSource(str(run.home / "b.tar.gz"))
    pods = source.snapshot(Scope()).pods
    nodes = {pod.node_name for pod in pods if pod.namespace == "shop"}
    assert {pod.node_name for pod in pods} == nodes
    assert {line.split()[0] for line in run("top", "nodes", "-f", "b.tar.gz", "--no-headers").lines} == nodes
    assert {one.involved_object.namespace for one in source.event_list(None).events} <= {"", "shop"}
    assert {
        one["metadata"].get("namespace") for one in source.raw_objects() if one["kind"] == "Deployment"
    } <= {"shop"}


def test_a_bundle_is_not_changed_and_needs_no_other_file(run: Run) -> None:
    assert run("report", "-A", "--demo", "--bundle", "b.tar.gz").code == 0
    before = (run.home / "b.tar.gz").read_bytes()
    words = ["set", "pod/api-7d9c5b6f8-x2mzq", "-n", "shop", "--requests", "memory=1Gi", "-f", "b.tar.gz"]
    done = run(*words, "--write")
    assert (done.code, done.err.splitlines()[-1]) == (
        1,
        "error: b.tar.gz at 2026-11-20 12:00:00 UTC has no manifest to change",
    )
    assert (run.home / "b.tar.gz").read_bytes() == before
    done = run("top", "-f", "b.tar.gz", "-f", "other.yaml")
    assert (done.code, done.err) == (
        2,
        "error: b.tar.gz is a bundle, which has everything\nhint: give it alone\n",
    )
    done = run("report", "-A", "--demo", "--bundle", "b.zip")
    assert (done.code, done.err.splitlines()[-1]) == (
        2,
        "error: --bundle 'b.zip': the name of a bundle ends in .tar.gz",
    )
    assert run("top", "-f", "none.tar.gz").err == 'error: the path "none.tar.gz" does not exist\n'
