"""Nothing that a command or screen says about a pod or a node contradicts what another one says.

The statements of commands and of the lists, panels and panes of the UI are read back as claims and compared:
of the demo, of the recorded nodes, and of random clusters.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import settings

from kubectl_qos.analysis.deaths import deaths_on_nodes
from kubectl_qos.analysis.group_table import build_node_row, build_node_rows
from kubectl_qos.analysis.pod_table import build_rows
from kubectl_qos.analysis.trends import Trends
from kubectl_qos.cluster.files import DEMO_TIME, DemoSource
from kubectl_qos.edit.compare import compare
from kubectl_qos.edit.edits import Edit, Side
from kubectl_qos.edit.preview import preview
from kubectl_qos.k8s.allocation import running_pod
from kubectl_qos.k8s.node_overrides import NodeOverride, apply_overrides
from kubectl_qos.k8s.objects import NodeObject, Pod, convert
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.k8s.usage import ContainerUsage, PodKey, PodUsage
from kubectl_qos.present import node_columns, pod_columns
from kubectl_qos.present.effects import changed_cells, comparison_table, preview_sections
from kubectl_qos.present.explanation import explain_pod
from kubectl_qos.present.next_death import distance, victim
from kubectl_qos.present.output import Section, marked_lines, table
from kubectl_qos.present.simulation import simulation_lines
from kubectl_qos.present.values import as_document
from kubectl_qos.present.values.pods import explanation_values
from kubectl_qos.qos.cgroup.tree import CgroupLevel, cgroup_tree
from kubectl_qos.qos.ranking import Flag
from kubectl_qos.qos.simulation.ceiling import Scenario
from kubectl_qos.qos.simulation.engine import simulate
from kubectl_qos.qos.simulation.node_state import state_of_node
from kubectl_qos.tui.actions import Keys
from kubectl_qos.tui.lists.pods import PodList
from kubectl_qos.tui.screens.browse import list_definitions
from kubectl_qos.tui.screens.dialogs import help_sections
from kubectl_qos.tui.screens.main import MainScreen
from kubectl_qos.tui.view import ListKind, RowCounts, View, ended_pods, list_title, title_words
from kubectl_qos.tui.view_model import ViewModel, build_view_model
from tests.end_to_end.claims import (
    UNREAD,
    About,
    Claim,
    claims_of_item,
    claims_of_json,
    comparison_claims,
    contradictions,
    node_claims,
    pod_claims,
    row_claims,
    table_rows,
)
from tests.end_to_end.command import Run
from tests.node_states import build_node_state
from tests.qos.recorded import node_of, pods_c, processes_c, rows_of, setup_c

ROOT: Final = Path(__file__).parents[2]
WIDTH: Final = 10_000
COLUMNS: Final = [pod_columns.BY_KEY[key] for key in pod_columns.WIDE_KEYS]


def statements(snapshot: Snapshot, now: datetime, every: int = 1) -> Iterator[Claim]:
    """All that is said about the pods and nodes of a snapshot; one pod in `every` is explained."""
    for pod in snapshot.pods[::every]:
        explained = explain_pod(pod, snapshot, now)
        about = ("pod", pod.namespace, pod.name)
        yield from pod_claims(about, [explained.subject, *_lines(explained.sections)])
        yield from claims_of_json(as_document(explanation_values(explained)))
        edit = Edit(pod.containers[0].name, Side.REQUESTS, "memory", Quantity.parse("100Mi"))
        setup, neighbours = snapshot.setup(pod.node_name), snapshot.by_node()[pod.node_name]
        shown = preview(pod, [edit], setup, neighbours, snapshot.usage)
        yield from pod_claims(about, marked_lines(preview_sections(shown)))
    for row in table_rows(table(build_rows(snapshot, Scope()).rows, COLUMNS, now)):
        yield from row_claims(row)
    nodes = build_node_rows(snapshot, lambda *_: True).rows
    columns_of_nodes = [node_columns.NODE_COLUMNS[key] for key in node_columns.NODE_COLUMNS]
    for row in table_rows(table(nodes, columns_of_nodes)):
        yield from node_claims(row, f"top nodes: {row}")
    for name in [one.name for one in nodes]:
        yield from node_statements(snapshot, name)
    yield from of_screens(build_view_model(snapshot, Scope(), now), now)


def _lines(sections: Iterable[Section]) -> Iterator[str]:
    """Sections as they are printed, but for the width: a sentence is in one line."""
    for section in sections:
        yield f"{section.title}   {section.answer}"
        yield from (f"{line.text}   {line.note}" for line in section.lines)


def node_statements(snapshot: Snapshot, name: str) -> Iterator[Claim]:
    """What `tree`, `compare` and `simulate` say."""
    pods, setup = snapshot.by_node().get(name, ()), snapshot.setup(name)
    tree = cgroup_tree(pods, setup)
    shown = [one for one in tree.walk() if one.level is CgroupLevel.POD]
    if not setup.node.is_windows:
        yield Claim(("node", name), "pods", str(len(shown) + tree.left_out), "the pods of its tree")
    for directory in tree.walk():
        if directory.level is CgroupLevel.POD and directory.pod is not None and directory.qos is not None:
            about = ("pod", directory.pod.namespace, directory.pod.name)
            yield Claim(about, "class", directory.qos.value, f"tree: {directory.path}")
            yield Claim(about, "node", name, f"tree: {directory.path}")
    larger = apply_overrides(setup, [NodeOverride.parse("memory=64Gi")], None)
    comparison = compare([pod for pod in pods if not pod.is_terminal], setup, larger, snapshot.usage)
    for row in table_rows(comparison_table([*changed_cells(comparison.pods)])):
        yield from comparison_claims(row)
    if not setup.node.memory_capacity_bytes or setup.node.is_windows:
        return
    state = build_node_state([running_pod(pod, setup.release) for pod in pods], setup, snapshot.usage)
    for eviction, what in ((False, "rank"), (True, "eviction")):
        lines = simulation_lines(state, simulate(state, Scenario(free_bytes=1, eviction=eviction)))
        for step in list(table_rows(list(lines)[3:]))[:1]:
            namespace, _, pod = step["VICTIM"].partition("/")
            if step["BY"] == ("eviction" if eviction else "node") and (namespace, pod) in snapshot.usage:
                yield Claim(("pod", namespace, pod), what, "1", f"simulate: {step}")
                yield Claim(("pod", namespace, pod), "class", step["QOS"], f"simulate: {step}")


def of_screens(model: ViewModel, now: datetime) -> Iterator[Claim]:
    """What lists, panels and panes of the UI say."""
    for kind, definition in list_definitions(Trends()).items():
        rows = definition.build(model, View(kind), None).rows
        columns = [one for key, one in definition.columns.items() if key not in {"trend", "memory", "age"}]
        for row, shown in zip(rows, table_rows(table(rows, columns, now)), strict=True):
            panel = [line.text for line in definition.panel(row, model)(WIDTH)]
            if kind in {ListKind.PODS, ListKind.CONTAINERS}:
                yield from of_pod_lists(shown, panel, of_containers=kind is ListKind.CONTAINERS)
            elif kind is ListKind.DEATHS:
                continue  # see of_deaths
            elif kind is ListKind.NODES:
                yield from node_claims(shown, f"list of nodes: {shown}")
                yield from _named_victim(row.name, " ".join(panel))
            else:
                about = ("namespace", row.key) if kind is ListKind.NAMESPACES else ("workload", *row.key)
                yield from of_groups(about, row.worst.pod.namespace, shown, panel[-1])
    yield from of_panes(model)
    for name in model.by_node:
        yield from of_deaths(model, name)
    for words in title_words("demo", model, now):
        yield from _number_of_pods(("cluster",), words)


def of_pod_lists(shown: Mapping[str, str], panel: list[str], *, of_containers: bool) -> Iterator[Claim]:
    """The row of a pod or container, and the panel that explains it."""
    about = ("pod", shown["NAMESPACE"], shown["POD"])
    yield from row_claims(shown, of_containers=of_containers)
    if of_containers:
        rank = re.search(r": rank (\d+)", panel[0])
        container = ("container", *about[1:], shown["CONTAINER"])
        yield Claim(container, "rank", rank and rank[1], panel.pop(0))
    yield from pod_claims(about, panel)


def of_groups(about: About, namespace: str, shown: Mapping[str, str], answer: str) -> Iterator[Claim]:
    """The row of a workload or namespace, and the last line of its panel."""
    yield Claim(about, "pods", shown["PODS"], str(shown))
    yield from _number_of_pods(about, answer)
    if shown["FIRST_TO_DIE"] != "<none>":
        first = ("pod", namespace, shown["FIRST_TO_DIE"])
        yield Claim(first, "rank", shown["RANK"].removesuffix("="), str(shown))
        yield Claim(first, "node", shown["NODE"], str(shown))
    elif "first" in answer:
        yield Claim(about, UNREAD, answer, answer)


def of_deaths(model: ViewModel, node: str) -> Iterator[Claim]:
    """What the picture, the headings of the list of pods, `next` and `top nodes` say of the next deaths."""
    found = model.deaths(node)
    if found is None or not found.deaths:
        return
    about, first = ("node", node), found.deaths[0]
    yield Claim(about, "next death", f"{distance(first)} {victim(first)}", "the picture")
    printed = deaths_on_nodes(model.snapshot, [node]).rows[0].death
    yield Claim(about, "next death", f"{distance(printed)} {victim(printed)}", "next")
    death = build_node_row(model.snapshot, node).death
    yield Claim(about, "next death", death and f"{distance(death)} {victim(death)}", "top nodes")
    pods = PodList(Trends(), lambda: model)
    row = model.rows.nodes[node].rows[0]
    heading = "".join(text for text, _ in pods.heading(row, WIDTH))
    said = re.search(r"next ((?:at most )?\S+ \S+(?: \(a process of the node\))?) ", heading)
    yield Claim(about, "next death", said and said[1], heading)
    evicted = {row.key[:2] for row in model.rows.nodes[node].rows if row.eviction_rank is not None}
    unseen = len(state_of_node(model.snapshot, node).without_stats)
    for one in found.deaths:
        if one.mechanism == "node" and one.qos is not None:
            yield Claim(("pod", *one.key), "rank", "1", f"the picture: {one}")
        elif one.mechanism == "kubelet eviction" and one.key in evicted:
            yield Claim(("pod", *one.key), "eviction", str(1 + unseen), f"the picture: {one}")


def of_panes(model: ViewModel) -> Iterator[Claim]:
    """The panes next to a list, the line of a node's memory, and the list's title."""
    for group in model.nodes:
        about = ("node", group.key) if group.key is not None else ("cluster",)
        said = f"pane of nodes: {group}"
        yield Claim(about, "pods", str(group.pods), said)
        yield Claim(about, "pods", str(group.guaranteed + group.burstable + group.best_effort), said)
        if group.key:
            yield Claim(about, "used", None if group.percent is None else group.percent_text, said)
        view = View(node=group.key)
        listed = view.pod_rows(model)
        counts = RowCounts(len(listed), len(listed), ended=ended_pods(view, model, listed))
        title = list_title(view, counts, "RANK")
        yield from _number_of_pods(about, title)
    for name, group in model.namespaces.items():
        yield Claim(("namespace", name), "pods", str(group.pods), f"pane of namespaces: {group}")


def _number_of_pods(about: About, text: str) -> Iterator[Claim]:
    """`19 pods, 2 ended` are 19."""
    match = re.search(r"([\d,]+) pods?\b", text)
    if match is not None:
        yield Claim(about, "pods", match[1].replace(",", ""), text)


def _named_victim(node: str, text: str) -> Iterator[Claim]:
    match = re.search(r"first to die: (\S+)/(\S+) \((?:(-?\d+), )?[GBE]\)", text)
    if match is not None:
        yield Claim(("pod", match[1], match[2]), "rank", "1", text)
        yield Claim(("pod", match[1], match[2]), "score", match[3], text)
    elif re.search("first|last|never", text):
        yield Claim(("node", node), UNREAD, text, text)


SIZES: Final = ("0", "1Mi", "64Mi", "0.7Gi", "1Gi", "3G", "40Gi")
PRIORITIES: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"priority": -5},
    {"priority": 100_000},
    {"priority": 2_000_000_000, "priorityClassName": "system-cluster-critical"},
    {"priority": 2_000_001_000, "priorityClassName": "system-node-critical"},
)
STATES: Final = ("running", "running", "running", "waiting", "terminated", "unknown")


def random_cluster(number: int) -> Snapshot:
    """Up to three nodes, one perhaps of unknown size, with pods of every kind and most of their usage."""
    chance = random.Random(number)
    names = [f"n{index}" for index in range(chance.randint(1, 3))]
    nodes = [_random_node(chance, name) for name in names if chance.random() < 0.9]
    pods = [_random_pod(chance, index, chance.choice([*names, ""])) for index in range(chance.randint(2, 8))]
    usage: dict[PodKey, PodUsage] = {}
    for pod in pods:
        states = [(one.name, one.state) for one in pod.status.every_container]
        alive = [name for name, state in states if state is None or not (state.waiting or state.terminated)]
        if alive and not pod.is_terminal and pod.node_name and chance.random() < 0.9:
            sizes = {name: chance.choice([0, 5 << 20, 200 << 20, 3 << 30]) for name in alive}
            rss = {name: size if chance.random() < 0.5 else None for name, size in sizes.items()}
            usage[pod.namespace, pod.name] = PodUsage.of_containers(
                {name: ContainerUsage(size, rss[name], 0) for name, size in sizes.items()}
            )
    return Snapshot(tuple(pods), {node.metadata.name: node for node in nodes}, usage)


def _random_node(chance: random.Random, name: str) -> NodeObject:
    memory = {"memory": f"{chance.choice([2, 16])}Gi"} if chance.random() < 0.9 else {}
    info = {
        "kubeletVersion": f"v1.{chance.randint(25, 37)}.0",
        "kernelVersion": chance.choice(["6.1.0", "5.4.0"]),
        "containerRuntimeVersion": chance.choice(["containerd://2.1.0", "cri-o://1.33.0"]),
        "operatingSystem": chance.choice(["linux"] * 8 + ["windows"]),
        "osImage": chance.choice(["Debian GNU/Linux 13"] * 8 + ["Talos (v1.14.0)"]),
    }
    status = {"capacity": memory | {"cpu": "4"}, "allocatable": memory | {"cpu": "4"}, "nodeInfo": info}
    return convert({"metadata": {"name": name}, "status": status}, NodeObject)


def _random_pod(chance: random.Random, index: int, node: str) -> Pod:
    names = ["a", "b"][: chance.randint(1, 2)]
    spec: dict[str, Any] = {
        "nodeName": node,
        "containers": [_random_container(chance, name) for name in names],
        **chance.choice(PRIORITIES),
    }
    if chance.random() < 0.3:
        spec["initContainers"] = [
            _random_container(chance, "i") | chance.choice([{}, {"restartPolicy": "Always"}])
        ]
    if chance.random() < 0.15:
        spec["resources"] = {"requests": {"memory": "1Gi"}, "limits": {"memory": "2Gi"}}
    if chance.random() < 0.15:
        spec["overhead"] = {"memory": "32Mi"}
    metadata: dict[str, Any] = {"name": f"p{index}", "namespace": chance.choice(["x", "y"])}
    if chance.random() < 0.15:
        metadata["annotations"] = {"kubernetes.io/config.source": "file"}
    phases = ("Running", "Running", "Running", "Pending", "Succeeded", "Failed") if node else ("Pending",)
    phase = chance.choice(phases)
    status: dict[str, Any] = {"phase": phase}
    if node:
        status["containerStatuses"] = [_random_status(chance, name, phase) for name in names]
        status["initContainerStatuses"] = [
            _random_status(chance, one["name"], phase) for one in spec.get("initContainers", ())
        ]
    if chance.random() < 0.2:
        reason = chance.choice(["Deferred", "Infeasible"])
        status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    if chance.random() < 0.1:
        status["qosClass"] = "Burstable"
    return convert({"metadata": metadata, "spec": spec, "status": status}, Pod)


def _random_container(chance: random.Random, name: str) -> dict[str, Any]:
    sides = chance.choice([("requests", "limits"), ("requests", "limits"), ("requests",), ()])
    memory, cpu = chance.choice(SIZES), chance.choice(["5m", "133m", "1"])
    return {"name": name, "resources": {side: {"memory": memory, "cpu": cpu} for side in sides}}


def _random_status(chance: random.Random, name: str, phase: str) -> dict[str, Any]:
    state = chance.choice(STATES) if phase == "Running" else "terminated" if phase != "Pending" else "waiting"
    end = {"terminated": {"exitCode": 137, "reason": chance.choice(["OOMKilled", "Error"])}}
    status: dict[str, Any] = {"name": name, "restartCount": chance.choice([0, 1, 57])}
    if state != "unknown":
        status["state"] = {"running": {"running": {}}, "waiting": {"waiting": {}}, "terminated": end}[state]
    if status["restartCount"]:
        status["lastState"] = end
    if chance.random() < 0.2:
        allocated = {"memory": chance.choice(SIZES)}
        limits = {"cpu": "100m", **allocated}  # A resize removes none.
        status |= {"allocatedResources": allocated, "resources": {"requests": allocated, "limits": limits}}
    return status


def recorded(pods: Sequence[Pod], node: NodeObject, used: Mapping[str, int]) -> Snapshot:
    """The pods of a recorded node; `used` is by container id what the kernel counts."""
    usage: dict[PodKey, PodUsage] = {}
    for pod in pods:
        ids = {one.name: one.container_id.rpartition("/")[2] for one in pod.status.every_container}
        alive = {name: used[one] for name, one in ids.items() if one and one in used}
        if alive:
            amounts = {name: ContainerUsage(amount, amount, 0) for name, amount in alive.items()}
            usage[pod.namespace, pod.name] = PodUsage.of_containers(amounts)
    return Snapshot(tuple(pods), {node.metadata.name: node}, usage)


def node_1_36() -> Snapshot:
    used: Counter[str] = Counter()
    for row in rows_of("systemd"):
        for container in row["containers"]:
            for process in container["processes"]:
                used[container["id"]] += int(process["VmRSS"].split()[0]) << 10
    node = convert(node_of("systemd")["node"], NodeObject)
    return recorded([convert(row["pod"], Pod) for row in rows_of("systemd")], node, used)


def node_1_36_c(run: str) -> Snapshot:
    used: Counter[str] = Counter()
    for process in processes_c(run):
        used[process.container_id] += process.used_bytes
    pods, setup = pods_c(run), setup_c(run)
    status = {
        "capacity": {"memory": str(setup.node.memory_capacity_bytes)},
        "nodeInfo": {"kubeletVersion": "v1.36.2", "kernelVersion": setup.node.kernel},
    }
    name = next(pod.node_name for pod in pods if pod.node_name)
    return recorded(pods, convert({"metadata": {"name": name}, "status": status}, NodeObject), used)


@pytest.mark.parametrize("number", range(6))
def test_at_risk_is_every_next_death_and_nobody_out_of_reach(number: int) -> None:
    snapshot = random_cluster(number) if number else DemoSource().snapshot(Scope())
    model = build_view_model(snapshot, Scope(), DEMO_TIME)
    pods = PodList(Trends(), lambda: model)
    for name, ranked in model.rows.nodes.items():
        found = model.deaths(name)
        deaths = found.deaths if found is not None else ()
        named = {one.key for one in deaths if one is deaths[0] or one.killer.is_node_wide}
        rows = {row.key[:2]: row for row in ranked.rows}
        shown = {key for key, row in rows.items() if pods.is_at_risk(row)}
        assert named & rows.keys() <= shown
        for key in shown - named:
            row = rows[key]
            near = row.nearest or Flag.NEAR_LIMIT in row.flags or 1 in {row.rank, row.eviction_rank}
            assert row.adj != -997 or near, key


@pytest.mark.parametrize(
    "read", [node_1_36, partial(node_1_36_c, "pending-resize"), partial(node_1_36_c, "crun-systemd")]
)
def test_a_recorded_node(read: Callable[[], Snapshot]) -> None:
    snapshot = read()
    assert len(snapshot.usage) > 40
    every = max(1, 120 // settings().max_examples)
    assert contradictions(statements(snapshot, DEMO_TIME, every)) == []


@pytest.mark.parametrize("chunk", range(10))
def test_random_clusters(chunk: int) -> None:
    each = settings().max_examples // 10
    for number in range(chunk * each, chunk * each + each):
        assert contradictions(statements(random_cluster(number), DEMO_TIME)) == [], number


def test_a_node_of_which_little_is_known() -> None:
    """At least 0 % is unknown in every list, not `0%+` in one of them: some of its pods have no usage."""
    assert contradictions(statements(random_cluster(269), DEMO_TIME)) == []


def test_commands_print_what_is_walked(run: Run) -> None:
    """The command line adds nothing to the lines that the walk reads, and its JSON agrees with them."""
    claims = list(statements(DemoSource().snapshot(Scope()), DEMO_TIME))
    for row in table_rows(run("top", "-A", "--demo", "-o", "wide").lines):
        claims += row_claims(row)
    for row in table_rows(run("top", "nodes", "--demo").lines):
        claims += node_claims(row, f"top nodes: {row}")
    for item in json.loads(run("top", "-A", "--demo", "-o", "json").out)["items"]:
        claims += claims_of_item(item)
    names = ("data/db-0", "shop/api-7d9c5b6f8-x2mzq", "kube-system/kube-proxy-7hc2x", "ml/huge-0")
    for namespace, _, name in (name.partition("/") for name in names):
        about = ("pod", namespace, name)
        claims += pod_claims(about, run("explain", f"pod/{name}", "-n", namespace, "--demo").lines)
        change = ("--requests", "memory=100Mi", "--demo")
        claims += pod_claims(about, run("set", f"pod/{name}", "-n", namespace, *change).lines)
    assert len(claims) > 3000
    assert contradictions(claims) == []


CLASS_MYTH: Final = re.compile(
    r"\b(BestEffort|Burstable|Guaranteed|[Cc]ritical)\b[^.|\n]{0,40}\b(killed|evicted|dies?) (first|last)\b"
)
"""A class alone decides no order."""
REFUTED: Final = ("| BestEffort is killed first |", "| Guaranteed is killed last |")
"""Lines of the page of misconceptions."""


def test_no_page_no_help_and_no_source_describes_a_class_by_a_rank() -> None:
    files = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("kubectl_qos/**/*.py")]
    assert len(files) > 200
    lines = [line for path in files for line in path.read_text(encoding="utf-8").splitlines()]
    lines += [meaning for section in help_sections(Keys()) for _, meaning in section.entries]
    assert [one for one in lines if CLASS_MYTH.search(one) and not one.startswith(REFUTED)] == []


def test_no_notes_is_not_nothing_assumed() -> None:
    """A list without notes rests on assumptions too: the explanation of each pod has them."""
    assert "nothing had to be assumed" not in MainScreen.no_notes
    snapshot = DemoSource().snapshot(Scope())
    sections = explain_pod(snapshot.pods[0], snapshot, DEMO_TIME).sections
    assert any("not measured, assumed: " in line for line in _lines(sections))


SEEN: Final = {
    "a range above a value": [
        "Class   Burstable, oom_score_adj from its memory request: 3 to 999",
        "c  adj -997   x",
    ],
    "first above rank 4": [
        "Class   BestEffort, killed first: oom_score_adj 1000",
        "OOM   rank 4 of 15, oom_score 7",
    ],
    "last with others behind it": ["Class   Guaranteed, killed last: x", "OOM   rank 4 of 15, oom_score 7"],
    "never above first": ["Eviction   never: critical pods are not evicted", "uses 4Mi more: goes first"],
    "eviction rank above first": ["Eviction   rank 9 of 17", "uses 4Mi more than it requests: evicted first"],
    "a superlative that nobody checks": ["it dies before all others"],
}
"""Sentences that were printed once."""


@pytest.mark.parametrize("lines", SEEN.values(), ids=SEEN)
def test_what_was_seen_once_is_found(lines: list[str]) -> None:
    assert contradictions(pod_claims(("pod", "x", "y"), lines))


def test_what_tables_once_said_is_found() -> None:
    row = next(iter(table_rows(table(build_rows(DemoSource().snapshot(Scope()), Scope()).rows[:1], COLUMNS))))
    assert contradictions(row_claims(row)) == []
    for old in ({"RESTARTS": "57 (1 OOM)"}, {"LIMIT": "<none>", "%LIMIT": "29%"}, {"RANK": "4"}):
        assert contradictions(row_claims({**row, **old})), old
