"""No command is quadratic: what it visits of a cluster grows as the cluster does."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kubectl_qos.cli import output
from kubectl_qos.cli.commands import COMMANDS
from kubectl_qos.cluster.files import FileSource
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.qos.kills.analyze import Kill
from kubectl_qos.qos.simulation import node_state
from tests.cluster.cluster_objects import metrics, node, pod
from tests.cluster.object_server import ObjectServer, status
from tests.end_to_end.command import Run
from tests.end_to_end.conftest import Live

NODES = 12
PODS_OF_NODE = 4
MOST_GROWTH = 2.5
"""Of twice the nodes and pods: what is linear grows 2 times, what is nodes times pods 4 times."""
OF_ALL = [
    ["top", "-A"],
    ["top", "-A", "-o", "json"],
    ["top", "nodes"],
    ["next", "-A"],
    ["fix", "-A"],
    ["fix", "-A", "-o", "json"],
    ["fix", "-A", "--priorities"],
    ["check", "-A"],
    ["compare", "-A", "--to", "1.37"],
    ["kills", "-A"],
    ["report", "-A"],
    ["report", "-A", "-o", "json"],
    ["tree", "-A"],
    ["explain", "pod/p0", "-n", "shop"],
    ["set", "pod/p0", "-n", "shop", "--limits=memory=1Gi"],
    ["simulate", "node/worker-0", "--until-oom"],
]
OOM_KILLED = {"reason": "OOMKilled", "exitCode": 137, "finishedAt": "2026-11-20T11:59:48Z"}
OF_ONE_OBJECT = {"edit", "host", "undo", "verify"}
WITHOUT_A_CLUSTER = {"can-i", "completion", "options", "version"}
SERVE = {"exporter", "web"}
"""They do for each change what the others do once."""


class Visits:
    """How many pods and nodes were visited, how often a fact of one was looked up, or one of a kill."""

    def __init__(self) -> None:
        self.count = self.of_kills = 0

    def of(self, items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            self.count += 1
            yield item


@pytest.fixture
def visits(monkeypatch: pytest.MonkeyPatch) -> Visits:
    visits = Visits()

    class Pods(tuple[Any, ...]):
        __slots__ = ()

        def __iter__(self) -> Iterator[Any]:
            return visits.of(super().__iter__())

    class ByName(dict[str, Any]):
        def __iter__(self) -> Iterator[str]:
            return visits.of(super().__iter__())

        def values(self) -> Any:
            return visits.of(super().values())

        def items(self) -> Any:
            return visits.of(super().items())

    build, by_node = Snapshot.__init__, Snapshot.by_node

    def build_counted(
        snapshot: Snapshot, pods: Any = (), nodes: Any = None, *others: Any, **named: Any
    ) -> None:
        counted = Pods(pods) if isinstance(pods, list | tuple) else pods
        build(snapshot, counted, ByName(nodes or {}), *others, **named)

    def by_node_counted(snapshot: Snapshot) -> Any:
        return ByName({name: Pods(pods) for name, pods in by_node(snapshot).items()})

    monkeypatch.setattr(Snapshot, "__init__", build_counted)
    monkeypatch.setattr(Snapshot, "by_node", by_node_counted)
    of_files = FileSource.raw_objects
    monkeypatch.setattr(FileSource, "raw_objects", lambda *given: visits.of(of_files(*given)))
    for owner, name in ((Snapshot, "setup"), (Snapshot, "usage_of"), (Scope, "matches")):
        original = getattr(owner, name)

        def counted(*given: Any, original: Any = original) -> Any:
            visits.count += 1
            return original(*given)

        monkeypatch.setattr(owner, name, counted)

    def read(kill: Kill, name: str) -> Any:
        visits.of_kills += 1
        return object.__getattribute__(kill, name)

    monkeypatch.setattr(Kill, "__getattribute__", read)
    return visits


def cluster(path: Path, nodes: int) -> Path:
    """A file of this many nodes, each with pods that die at their limits and of a full node."""
    names = [f"worker-{number}" for number in range(nodes)]
    pods = [
        pod(
            f"p{PODS_OF_NODE * place + number}", node=name, request="100Mi", limit="1Gi" if number % 2 else ""
        )
        for place, name in enumerate(names)
        for number in range(PODS_OF_NODE)
    ]
    for died in pods[::PODS_OF_NODE]:
        died["status"]["containerStatuses"] = [{"name": "app", "lastState": {"terminated": OOM_KILLED}}]
    usage = [
        metrics(one["metadata"]["name"], f"{900 + place // PODS_OF_NODE}Mi") for place, one in enumerate(pods)
    ]
    of_kind = {
        "Pod": ("v1", pods),
        "Node": ("v1", [node(name, memory="4Gi") for name in names]),
        "PodMetrics": ("metrics.k8s.io/v1beta1", usage),
    }
    items = [
        {"apiVersion": version, "kind": kind, **item}
        for kind, (version, objects) in of_kind.items()
        for item in objects
    ]
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))
    return path


@pytest.mark.parametrize("words", OF_ALL, ids=" ".join)
def test_visits_grow_as_the_cluster(run: Run, tmp_path: Path, visits: Visits, words: list[str]) -> None:
    counts = []
    for nodes in (NODES, 2 * NODES):
        visits.count = visits.of_kills = 0
        done = run(*words, "-f", cluster(tmp_path / f"{nodes}.json", nodes))
        assert done.code in {0, 1}, done.err
        assert done.out
        counts.append((visits.count, visits.of_kills))
    (small, few), (large, many) = counts
    assert small > 0
    assert large / small < MOST_GROWTH, counts
    assert many <= MOST_GROWTH * few, counts


def test_every_command_is_here() -> None:
    words = {of_all[0] for of_all in OF_ALL}
    assert words | OF_ONE_OBJECT | WITHOUT_A_CLUSTER | SERVE == set(COMMANDS)


@pytest.mark.parametrize("command", ["next", "fix"])
def test_a_terminal_shows_the_ten_that_come_first(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    path = cluster(tmp_path / "many.json", NODES)
    whole = run(command, "-A", "-f", path)
    monkeypatch.setattr(output, "terminal_width", lambda: 400)
    words = [command, "-A", "-o", "wide", "-f", str(path)]
    first, every = run(*words), run(*words, "--all")
    assert len(whole.lines) - 1 == NODES
    assert [line.split() for line in every.lines] == [line.split() for line in whole.lines]
    assert [line.split() for line in first.lines] == [line.split() for line in whole.lines[:11]]
    assert first.err.startswith("and 2 more: --all" if command == "next" else "and those of 2 more nodes")
    assert "--all" not in whole.err + every.err


def test_few_notes_are_printed_of_many_nodes(run: Run, tmp_path: Path) -> None:
    said = run("next", "-A", "-f", cluster(tmp_path / "many.json", NODES)).err.splitlines()
    assert sum("if one pod alone grows, it may die instead" in line for line in said) == 5
    assert "on 7 more nodes another pod may die instead: see -o json" in said


def test_namespaces_that_refuse_alike_are_one_line(run: Run, live: Live) -> None:
    names = ("a", "b", "c", "d")
    server = ObjectServer(pods=[pod("web", namespace=name) for name in names], nodes=[node()])
    for name in names:
        server.faults[f"/api/v1/namespaces/{name}/pods/web"] = status(403, "Forbidden", "no")
    live(server)
    why = "Error from server (Forbidden): no"
    line = f"the LimitRanges of 4 namespaces are unknown: {why} (a, b, c and 1 more)"
    assert line in run("check", "-A").err.splitlines()


def test_values_that_are_tried_for_one_pod_do_not_build_its_neighbours_again(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[str] = []
    build = node_state._build_containers

    def counted(row: Any, *others: Any) -> Any:
        built.append(row.pod.name)
        return build(row, *others)

    monkeypatch.setattr(node_state, "_build_containers", counted)
    assert run("fix", "pod/p1", "-n", "shop", "-f", cluster(tmp_path / "one.json", 1)).code == 0
    assert 5 < built.count("p1") < 50, "each value is tried, and few that are not the least"
    assert max(map(built.count, ("p0", "p2", "p3"))) <= built.count("p1") / 3
