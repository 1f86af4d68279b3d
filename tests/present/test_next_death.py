"""The next deaths in words: killers, distances, the picture, and what several nodes show."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from msgspec import structs

from kubectl_qos.analysis.deaths import DeathRow, Deaths, NodeDeaths, deaths_of_pods, deaths_on_nodes
from kubectl_qos.analysis.group_table import build_node_row
from kubectl_qos.analysis.pod_table import build_rows
from kubectl_qos.cli.commands.next import EXAMPLES
from kubectl_qos.cluster.files import DEMO_TIME, DemoSource
from kubectl_qos.k8s.node_overrides import NodeOverride
from kubectl_qos.k8s.objects import Condition, PodStatus, convert
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.snapshot import NodeOverrides, Scope, Snapshot
from kubectl_qos.present import next_death
from kubectl_qos.present.explanation import explain_pod, text_lines
from kubectl_qos.present.next_death import (
    columns,
    dies_next,
    distance,
    foretold,
    how,
    killed_by,
    killer_words,
    nothing,
    rank_notes,
    victim,
    victim_notes,
)
from kubectl_qos.present.simulation import simulation_notes
from kubectl_qos.present.timeline import lines
from kubectl_qos.present.values import as_document
from kubectl_qos.present.values.incidents import death_list_values
from kubectl_qos.qos.eviction import Due, lacks_stats
from kubectl_qos.qos.killers.killer import Contender
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.simulation.ceiling import Scenario
from kubectl_qos.qos.simulation.engine import simulate
from kubectl_qos.qos.simulation.next_death import NextDeath, Precedent
from kubectl_qos.qos.simulation.node_state import state_of_node

MIB = 1 << 20
DEATH = NextDeath("node", 100 * MIB, ("shop", "api"), "c", QosClass.BURSTABLE, 30 * MIB)
OTHERS = [("a", 7), ("b", 8), ("c", 9), ("d", 10)]
IN_USE = {"limit_bytes": 400 * MIB, "used_bytes": 300 * MIB, "ceiling_bytes": 400 * MIB}


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    return DemoSource().snapshot(Scope())


def test_a_line_that_is_cut_keeps_the_distance_and_what_is_due_holds_in_the_past_too() -> None:
    full: dict[str, Any] = {**IN_USE, "mechanism": "pod limit", "is_own": True}
    own = DEATH._replace(precedent=Precedent.KILLED, **full)
    assert foretold(own) == "shop/api:c dies next: own limit 75%, +100Mi, killed there before"
    only_fullest = own._replace(precedent=None)
    assert foretold(only_fullest) == "shop/api:c dies next if it grows: own limit 75%, +100Mi"
    far_node = DEATH._replace(ceiling_bytes=400 * MIB, used_bytes=30 * MIB)
    assert (
        foretold(far_node) == "shop/api:c dies next unless another pod grows first: kernel: node full, +100Mi"
    )
    bound = own._replace(is_upper_bound=True, precedent=None)
    assert foretold(bound, is_first=False) == "shop/api:c dies at +100Mi at most: own limit 75%"
    assert how(own) == "own limit 75%, +100Mi, killed there before"
    assert how(own._replace(distance_bytes=399 * MIB)).startswith("own limit <1%, +399Mi"), "just restarted"
    due = own._replace(distance_bytes=0, precedent=None)
    assert foretold(due, "worker-2") == "shop/api:c on worker-2 dies at any moment: own limit 100%"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "is evicted next, +100Mi"),
        ({"grace_seconds": 90}, "is evicted next: kubelet evicts after 90s, +100Mi"),
        ({"distance_bytes": 0, "due": Due.NOW}, "is evicted at any moment, unless pressure just ended"),
        ({"due": Due.MAYBE}, "is evicted next (pressure ended, MemoryPressure stays up to 5 min), +100Mi"),
    ],
)
def test_a_sentence_names_an_eviction_once(changes: dict[str, Any], words: str) -> None:
    evicted = DEATH._replace(mechanism="kubelet eviction", container="", **changes)
    assert foretold(evicted, "worker-2") == f"shop/api on worker-2 {words}"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "kernel: node full"),
        ({"mechanism": "kubepods limit"}, "kubepods limit"),
        ({"mechanism": "kubelet eviction"}, "kubelet evicts"),
        ({"mechanism": "kubelet eviction", "grace_seconds": 90}, "kubelet evicts after 90s"),
        ({"mechanism": "kubelet eviction", "grace_seconds": 0}, "kubelet evicts after its grace period"),
        ({"mechanism": "container limit", **IN_USE, "is_own": True}, "own limit 75%"),
        ({"mechanism": "pod limit", **IN_USE}, "pod limit 75%"),
        ({"mechanism": "pod limit", **IN_USE, "ceiling_bytes": 500 * MIB}, "pod limit and swap 80%"),
    ],
)
def test_who_kills(changes: dict[str, Any], words: str) -> None:
    assert killed_by(DEATH._replace(**changes)) == words


def test_how_far_and_whom() -> None:
    assert (distance(DEATH), victim(DEATH)) == ("+100Mi", "shop/api:c")
    assert distance(DEATH._replace(distance_bytes=0)) == "due"
    assert [distance(DEATH._replace(distance_bytes=size)) for size in (1, MIB // 2)] == ["+0.1Mi", "+0.5Mi"]
    assert victim(DEATH._replace(container="")) == "shop/api"
    assert (
        victim(DEATH._replace(key=("", "dockerd"), container="", qos=None))
        == "dockerd (a process of the node)"
    )


@pytest.mark.parametrize("is_kernel_urgent", [True, False])
def test_two_killers_of_one_pod_within_seconds_come_before_the_distance(*, is_kernel_urgent: bool) -> None:
    rival = Contender("x", "a", "c", QosClass.BURSTABLE, 5, MIB)
    killed = DEATH._replace(mechanism="kubepods limit", seconds=49, rival=rival)
    evicted = DEATH._replace(mechanism="kubelet eviction", container="", distance_bytes=80 * MIB, seconds=46)
    both = "dies in ~46 s: kubelet evicts or kubepods limit, +80Mi"
    if is_kernel_urgent:
        assert foretold(killed._replace(earlier=evicted)) == (
            f"shop/api:c {both}, the latter if one process holds 1Mi, else x/a:c"
        )
        nearer = killed._replace(distance_bytes=40 * MIB, seconds=40, earlier=evicted)
        assert foretold(nearer, with_else=False) == (
            "shop/api:c dies in ~40 s: kubepods limit or kubelet evicts, +40Mi"
        )
    else:
        assert foretold(evicted._replace(earlier=killed)) == f"shop/api {both}"


def test_what_decides_about_the_victim_is_said_in_each_line_and_whom_else_below() -> None:
    others = [Contender("x", name, "c", QosClass.BURSTABLE, 5 * MIB, size * MIB) for name, size in OTHERS]
    oomd = NextDeath("systemd-oomd", 0, ("", ""), "", None, None)
    contested = DEATH._replace(rival=others[0], growing=tuple(others), earlier=oomd)
    assert killed_by(contested) == (
        "kernel: node full, unless systemd-oomd kills first, if one process holds 7Mi"
    )
    assert how(contested) == (
        "kernel: node full, +100Mi, 100% full, unless systemd-oomd kills first,"
        " if one process holds 7Mi, else x/a:c"
    )
    assert how(contested._replace(before=2)) == "kernel: node full, after 2 other deaths, +100Mi"
    evicted = DEATH._replace(mechanism="kubelet eviction", container="", distance_bytes=80 * MIB, seconds=4)
    assert killed_by(DEATH._replace(earlier=evicted)) == "kernel: node full, unless the kubelet evicts first"
    other = evicted._replace(key=("x", "a"))
    assert foretold(DEATH._replace(earlier=other, seconds=5)) == (
        "shop/api:c dies in ~5 s: kernel: node full, +100Mi, unless the kubelet evicts x/a first"
    )
    assert killed_by(DEATH._replace(grown_bytes=7 * MIB + 1)) == (
        "kernel: node full, if it alone grows (the victim from 8Mi on)"
    )
    assert killed_by(DEATH._replace(unless=others[1])) == (
        "kernel: node full, unless a process of x/b:c holds 8Mi"
    )
    assert list(victim_notes([DeathRow("n", DEATH)])) == []
    guaranteed = DEATH._replace(qos=QosClass.GUARANTEED)
    [outside] = victim_notes(
        [DeathRow("n", guaranteed), DeathRow("n", guaranteed._replace(mechanism="kubepods limit"))]
    )
    assert outside.startswith("shop/api:c: on a full node the kernel kills processes outside pods before a")
    sizes = (f"x/{name}:c from {size}Mi (kernel: node full)" for name, size in (("a", 7), ("b", 8), ("c", 9)))
    notes = [
        "if no process holds that much, x/a:c dies (kernel: node full)",
        f"if one pod alone grows, it may die instead: {', '.join(sizes)} and 1 more",
    ]
    rows = [DeathRow("n", contested), DeathRow("n", DEATH)]
    assert list(victim_notes(rows)) == notes
    assert list(victim_notes([*rows, DeathRow("other", DEATH)])) == [f"n: {note}" for note in notes]


def test_what_kills_a_pod_of_several_containers_names_the_one_that_dies(snapshot: Snapshot) -> None:
    """As measured at a pod's limit: the container that grew was killed, and not the larger one."""
    fields: dict[str, Any] = {**IN_USE, "mechanism": "pod limit"}
    at_limit = DEATH._replace(**fields)
    grown = at_limit._replace(container="b", grown_bytes=41 * MIB)
    evicted = DEATH._replace(mechanism="kubelet eviction", container="", ceiling_bytes=400 * MIB)
    state = state_of_node(snapshot, "worker-1")
    section = dies_next(NodeDeaths(state, (at_limit, grown, evicted)))
    assert section is not None
    assert [section.answer, *(line.text for line in section.lines)] == [
        "c: pod limit 75%, +100Mi",
        "b: pod limit 75%, +100Mi, if it alone grows (the victim from 41Mi on)",
        how(evicted),
    ]
    alone = dies_next(NodeDeaths(state, (at_limit, evicted)))
    assert alone is not None
    assert alone.answer == how(at_limit)


def test_rank_1_names_the_pod_that_may_come_before_it() -> None:
    contested = DEATH._replace(rival=Contender("x", "a", "c", QosClass.BURSTABLE, 5 * MIB, 7 * MIB))
    assert list(rank_notes({"n": [DEATH], "m": [contested]})) == [
        "RANK 1 of m: shop/api:c, if one process holds 7Mi, else x/a:c"
    ]
    assert list(rank_notes({f"n{number}": [contested] for number in range(9)})) == [
        "RANK 1 of 9 nodes depends on the sizes of processes: kubectl qos next node/NAME"
    ]


def test_a_pod_that_grows_alone_dies_before_those_that_the_kernel_names(snapshot: Snapshot) -> None:
    """It has both: if it alone grows, and after which others if it does not."""
    pod = next(pod for pod in snapshot.pods if pod.name == "notebook-0")
    found = deaths_of_pods(snapshot, [pod])
    of_node = [row.death for row in found.rows if row.death.mechanism == "node"]
    assert [(one.before, one.grown_bytes is not None) for one in of_node] == [(0, True), (2, False)]
    assert of_node[0].frees_bytes == of_node[0].distance_bytes + 1105 * MIB
    explained = list(text_lines(explain_pod(pod, snapshot, DEMO_TIME)))
    assert "  kernel: node full, +1.2Gi, 93% full, if it alone grows (the victim from 1439Mi on)" in explained
    items = as_document(death_list_values(found))["items"]
    values = next(one for one in items if one["mechanism"] == "node")
    assert (values["grownBytes"], values["rival"], values["growing"]) == (of_node[0].grown_bytes, None, [])
    on_node = deaths_on_nodes(snapshot, [pod.node_name])
    items = as_document(death_list_values(on_node))["items"]
    growing = next(one for one in items if one["mechanism"] == "node")["growing"]
    assert growing[1]["pod"] == "notebook-0"
    assert growing[1]["sizeBytes"] == of_node[0].grown_bytes


def test_a_node_has_the_victims_of_the_kill_order_and_of_the_eviction_order(snapshot: Snapshot) -> None:
    rows = build_rows(snapshot, Scope()).rows
    for name in snapshot.nodes:
        found = {row.death.mechanism: row.death for row in deaths_on_nodes(snapshot, [name]).rows}
        of_node = [row for row in rows if row.node == name]
        assert found["node"].key in {row.key[:2] for row in of_node if row.rank == 1}
        summary = build_node_row(snapshot, name)
        assert summary.victim is not None
        assert found["node"].key == summary.victim.key
        if "kubelet eviction" in found:
            first = {row.key[:2] for row in of_node if row.eviction_rank == 1}
            assert found["kubelet eviction"].key in first
            assert found["kubelet eviction"].distance_bytes == summary.to_eviction


def test_the_kubelet_evicts_a_pod_between_two_crashes_first(snapshot: Snapshot) -> None:
    """As measured: `pods ranked for eviction`: loop in CrashLoopBackOff, then bu-over with 401Mi."""
    rows = build_rows(snapshot, Scope(node="worker-2")).rows
    rows_by_eviction = sorted(
        (row for row in rows if row.eviction_rank), key=lambda row: row.eviction_rank or 0
    )
    last = rows_by_eviction[-1].pod
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    statuses = [{"name": container.name, "state": waiting} for container in last.containers]
    status = convert({"phase": "Running", "containerStatuses": statuses}, PodStatus)
    loop = msgspec.structs.replace(last, status=status)
    usage = {key: value for key, value in snapshot.usage.items() if key[1] != last.name}
    pods = tuple(loop if pod is last else pod for pod in snapshot.pods)
    changed = replace(snapshot, pods=pods, usage=usage)
    said = (
        "before all others, which frees nothing: no container is running, so the kubelet has no stats"
        " for the pod"
    )
    notes = list(next_death.notes(deaths_on_nodes(changed, ["worker-2"])))
    assert f"the kubelet evicts data/db-0 {said}" in notes
    assert not any("no stats" in note for note in next_death.notes(deaths_on_nodes(snapshot, ["worker-2"])))
    (eviction,) = [line for line in text_lines(explain_pod(loop, changed, DEMO_TIME)) if "Eviction" in line]
    assert eviction.endswith(
        "before all others under memory pressure: no container is running, so the kubelet has no"
        " stats for the pod"
    )
    first = min(build_rows(changed, Scope(node="worker-2")).rows, key=lambda row: row.eviction_rank or 99)
    assert (first.pod.name, first.eviction_rank) == (loop.name, 1), "the last one, as long as it ran"
    evictions = simulate(
        state_of_node(changed, "worker-2"), Scenario(eviction=True, free_bytes=1 << 20)
    ).steps
    assert [(step.key[1], bool(step.freed.available_bytes)) for step in evictions] == [
        (loop.name, False),
        (rows_by_eviction[0].pod.name, True),
    ]
    assert not lacks_stats(msgspec.structs.replace(loop, status=PodStatus(phase="Running"))), "left out"
    assert not lacks_stats(last), "it runs"
    critical = msgspec.structs.replace(loop.spec, priority=2_000_000_000)
    assert not lacks_stats(msgspec.structs.replace(loop, spec=critical)), "it is never evicted"
    assert lacks_stats(msgspec.structs.replace(loop, status=PodStatus(phase="Pending"))), (
        "its image is pulled"
    )


def test_several_nodes_show_the_nearest_of_each_and_a_namespace_its_own(snapshot: Snapshot) -> None:
    nodes = sorted(snapshot.nodes)
    found = deaths_on_nodes(snapshot, nodes)
    assert sorted(row.node for row in found.rows) == nodes
    for row in found.rows:
        assert row.death == deaths_on_nodes(snapshot, [row.node]).rows[0].death
    in_shop = deaths_on_nodes(snapshot, nodes, Scope(namespace="shop")).rows
    assert in_shop
    assert {row.death.key[0] for row in in_shop} == {"shop"}


def test_a_pod_dies_by_its_own_limit_and_in_its_turn(snapshot: Snapshot) -> None:
    pod = next(pod for pod in snapshot.pods if pod.name.startswith("api-") and pod.node_name == "worker-2")
    found = [row.death for row in deaths_of_pods(snapshot, [pod]).rows]
    assert {one.key for one in found} == {(pod.namespace, pod.name)}
    assert {one.mechanism for one in found} >= {"pod limit", "node", "kubelet eviction"}


def test_a_node_of_unknown_size_has_own_limits_and_evictions_that_are_due(snapshot: Snapshot) -> None:
    nodes = {name: node for name, node in snapshot.nodes.items() if name != "worker-2"}
    unknown = replace(snapshot, nodes=nodes)
    found = deaths_on_nodes(unknown, ["worker-1", "worker-2"])
    assert {row.node for row in found.rows} == {"worker-1", "worker-2"}
    assert "memory capacity of worker-2 is unknown" in next(next_death.notes(found))
    limits = [row.death for row in deaths_on_nodes(snapshot, ["worker-2"]).rows if row.death.is_own]
    alone = [row.death for row in deaths_on_nodes(unknown, ["worker-2"]).rows]
    assert alone == [death._replace(beyond=0.0) for death in limits]
    short = replace(unknown, shortages={"worker-2": "2026-11-20T12:00:00Z"})
    first = deaths_on_nodes(short, ["worker-2"]).rows[0].death
    whole = deaths_on_nodes(replace(snapshot, shortages=short.shortages), ["worker-2"]).rows[0].death
    assert (first.key, distance(first), killed_by(first)) == (whole.key, "due", killed_by(whole))
    assert nothing(deaths_on_nodes(replace(snapshot, pods=()), ["worker-1"])) == (
        "no death is foreseen: no limit, threshold or killer reaches these pods"
    )


def test_where_others_die_first_that_is_why_nothing_is_listed(snapshot: Snapshot) -> None:
    of_team = deaths_on_nodes(snapshot, ["worker-1", "worker-2"], Scope(namespace="team-a"))
    assert of_team.others_first == ("worker-2",)
    alone = deaths_on_nodes(snapshot, ["worker-2"], Scope(namespace="kube-system"))
    assert nothing(alone) == "no limit of these pods is near, and on worker-2 others die first"


def test_what_the_nodes_own_processes_use_makes_distances_shorter(snapshot: Snapshot) -> None:
    bare = deaths_on_nodes(snapshot, ["worker-2"])
    assert bare.state is not None
    by_pods = sum(container.working_set_bytes for container in bare.state.containers)
    known = deaths_on_nodes(replace(snapshot, node_usage={"worker-2": by_pods + 300 * MIB}), ["worker-2"])
    assert [*next_death.notes(bare)] == [*next_death.notes(known)]
    shorter = {
        (before.death.mechanism, before.death.distance_bytes - after.death.distance_bytes)
        for before in bare.rows
        for after in known.rows
        if (after.death.mechanism, after.death.key, after.death.container)
        == (before.death.mechanism, before.death.key, before.death.container)
        if before.death.mechanism in {"node", "container limit"}
    }
    assert shorter == {("node", 300 * MIB), ("container limit", 0)}


def test_without_the_nodes_own_memory_distances_are_upper_bounds(snapshot: Snapshot) -> None:
    bare = deaths_on_nodes(replace(snapshot, node_usage={}), ["worker-2"])
    words = {killer_words(row.death): distance(row.death) for row in bare.rows}
    assert words["kubelet evicts"] == "at most +587Mi"
    assert words["kernel: node full"] == "at most +1.2Gi"
    assert words["kubepods limit"] == "+687Mi", "the limit of all pods counts pods alone"
    assert any("at most +587Mi" in line for line in lines(bare, columns(bare.rows), 120))
    unknown = "memory used outside pods on worker-2 is unknown: to show it, grant list on nodes"
    assert any(note.startswith(unknown) for note in next_death.notes(bare))


def test_where_only_fullness_orders_the_deaths_of_a_node_it_is_said(snapshot: Snapshot) -> None:
    words = "everything is below 80 %, and growth is unknown: whatever grows first dies first"
    for node, is_said in (("control-1", True), ("worker-2", False)):
        assert (words in [*next_death.notes(deaths_on_nodes(snapshot, [node]))]) is is_said
    far = DeathRow("n", DEATH._replace(ceiling_bytes=100 * MIB, distance_bytes=80 * MIB))
    for row, is_expected in (
        (far, False),
        (far._replace(seconds=60), True),
        (far._replace(death=far.death._replace(precedent=Precedent.KILLED)), True),
        (far._replace(death=far.death._replace(distance_bytes=0)), True),
    ):
        assert row.is_expected is is_expected


def test_a_node_says_what_growth_the_kubelet_may_notice_too_late(snapshot: Snapshot) -> None:
    """As measured: with 100Mi between them the kubelet evicted at 3 MiB/s, and the kernel killed at 38."""
    words = "the kubelet checks every 10 s: if memory grows by more than 10Mi per second, the kernel may"
    alone = [*next_death.notes(deaths_on_nodes(snapshot, ["worker-3"]))]
    assert [note for note in alone if "checks every" in note] == [f"{words} kill first"]
    evicted = DEATH._replace(mechanism="kubelet eviction", container="", seconds=60)
    for mechanism, is_said in (("node", True), ("systemd-oomd", False)):
        earlier = DEATH._replace(mechanism=mechanism)
        row = DeathRow("worker-3", evicted._replace(earlier=earlier, seconds=9.0))
        raced = next_death.notes(deaths_on_nodes(snapshot, ["worker-3"])._replace(rows=(row,)))
        assert any("memory may run out in between" in note for note in raced) is is_said
    of_two = DeathRow("worker-2", evicted), DeathRow("worker-3", DEATH._replace(distance_bytes=900 * MIB))
    several = next_death.notes(deaths_on_nodes(snapshot, ["worker-2", "worker-3"])._replace(rows=of_two))
    assert not [note for note in several if "checks every" in note]


def test_a_kubelet_without_a_threshold_is_named(snapshot: Snapshot) -> None:
    k3s = replace(snapshot, overrides=NodeOverrides(settings=(NodeOverride.parse("profile=k3s"),)))
    said = (
        "no kubelet evicts for memory on worker-2: there is no memory.available threshold (assumed from"
        " profile k3s)"
    )
    for given, is_said in ((k3s, True), (snapshot, False)):
        assert (said in next_death.notes(deaths_on_nodes(given, ["worker-2"]))) is is_said


@pytest.mark.parametrize(("release", "is_said"), [("1.36", True), ("1.37", False)])
def test_hugepages_that_a_kubelet_counts_as_available_memory_are_named(
    snapshot: Snapshot, release: str, *, is_said: bool
) -> None:
    """As in kubernetes#137984: the kernel kills long before memory.available is below the threshold."""
    raw = snapshot.nodes["worker-2"]
    capacity = {**(raw.status.capacity or {}), "hugepages-2Mi": Quantity.parse("4Gi")}
    info = msgspec.structs.replace(raw.status.node_info, kubelet_version=f"v{release}.0")
    status = msgspec.structs.replace(raw.status, capacity=capacity, node_info=info)
    nodes = {**snapshot.nodes, "worker-2": msgspec.structs.replace(raw, status=status)}
    counts = "the kubelet of worker-2 counts its hugepages, 4Gi, as available memory"
    notes = next_death.notes(deaths_on_nodes(replace(snapshot, nodes=nodes), ["worker-2"]))
    assert (f"{counts}: before 1.37 it evicts that much too late" in notes) is is_said


def test_limits_of_classes_are_said_to_be_left_out(snapshot: Snapshot) -> None:
    kubelet = structs.replace(snapshot.setup("worker-2").kubelet, qos_reserved_percent={"memory": 50})
    reserving = replace(snapshot, kubelets={**snapshot.kubelets, "worker-2": kubelet})
    said = "left out: the memory limits of QoS classes on worker-2 (qosReserved): see kubectl qos tree"
    for given, is_said in ((reserving, True), (snapshot, False)):
        assert (said in next_death.notes(deaths_on_nodes(given, ["worker-2"]))) is is_said
        state = state_of_node(given, "worker-2")
        assert (said in simulation_notes(state, simulate(state, Scenario(free_bytes=1)))) is is_said


def test_a_node_that_is_short_of_something_else_evicts_for_it(snapshot: Snapshot) -> None:
    raw = snapshot.nodes["worker-2"]
    said = "worker-2 reports DiskPressure: the kubelet may evict pods for that, in another order"
    for state in ("True", "False"):
        short = Condition(type="DiskPressure", status=state)
        status = structs.replace(raw.status, conditions=(*(raw.status.conditions or ()), short))
        nodes = {**snapshot.nodes, "worker-2": structs.replace(raw, status=status)}
        notes = next_death.notes(deaths_on_nodes(replace(snapshot, nodes=nodes), ["worker-2"]))
        assert (said in notes) is (state == "True")


def test_how_many_die_before_is_a_column_only_where_some_do(snapshot: Snapshot) -> None:
    def keys(found: Deaths) -> list[str]:
        return [one.key for one in columns(found.rows)]

    assert "before" not in keys(deaths_on_nodes(snapshot, ["worker-2"]))
    pods = [pod for pod in snapshot.pods if pod.name == "api-7d9c5b6f8-x2mzq"]
    assert keys(deaths_of_pods(snapshot, pods))[-1] == "before"


def test_swap_that_containers_may_use_is_part_of_distances(snapshot: Snapshot) -> None:
    for behavior, is_said in (("NoSwap", False), ("LimitedSwap", True)):
        texts = ("swap=4Gi", f"memorySwap.swapBehavior={behavior}")
        given = NodeOverrides(settings=tuple(map(NodeOverride.parse, texts)))
        on_node = deaths_on_nodes(replace(snapshot, overrides=given), ["worker-2"])
        assert any("that pods may swap" in note for note in next_death.notes(on_node)) is is_said


def test_of_several_named_pods_one_dies_first_and_its_line_says_what_would_change_that(
    snapshot: Snapshot,
) -> None:
    def first_of(*names: str) -> str:
        named = [pod for pod in snapshot.pods if pod.name in names]
        return "\n".join(next_death.first_of_named(deaths_of_pods(snapshot, named)))

    said = first_of("api-7d9c5b6f8-x2mzq", "crunch-x2k9f")
    assert said == (
        "first on worker-2: batch/crunch-x2k9f (kubelet evicts, +587Mi); shop/api-7d9c5b6f8-x2mzq:c only"
        " if it alone grows by 118Mi (own limit 94%); on a full node the kernel kills"
        " shop/api-7d9c5b6f8-x2mzq:c first, if one process holds 1748Mi (RANK in top)"
    )
    assert "(kubelet evicts, +587Mi); ml/notebook-0 from 1245Mi, if it alone grows" in first_of(
        "notebook-0", "crunch-x2k9f"
    )
    assert first_of("db-0", "cache-0").endswith("; then data/cache-0:c (own limit 72%, +568Mi)")
    third = first_of("importer-5f7b9c-2vtxk", "crunch-x2k9f", "notebook-0")
    assert third.index("then batch/crunch-x2k9f (") < third.index("then ml/notebook-0:c (")
    assert (first_of("db-0", "db-1"), first_of("db-0")) == ("", "")
    pair = [pod for pod in snapshot.pods if pod.name in {"notebook-0", "cart-6c7fd9b5d-9qj4t"}]
    row, *_ = deaths_of_pods(snapshot, pair).rows
    assert first_of(*(pod.name for pod in pair)).startswith(
        f"first on worker-2: {'/'.join(row.death.key)}:a ("
    )

    both = deaths_of_pods(snapshot, [pod for pod in snapshot.pods if pod.name in {"db-0", "db-1"}])
    assert list(next_death.apart_notes(both)) == ["pods on different nodes do not compete for memory"]


def test_of_one_pod_killers_of_the_node_are_in_the_order_of_their_distances(snapshot: Snapshot) -> None:
    """The kubelet's threshold was after the kernel's, which is farther."""
    pods = [pod for pod in snapshot.pods if pod.name == "api-7d9c5b6f8-k8vwl"]
    distances = [row.death.distance_bytes for row in deaths_of_pods(snapshot, pods).rows if row.death.before]
    assert len(distances) == 3
    assert distances == sorted(distances)


def test_the_help_explains_the_columns_as_the_library_does() -> None:
    for column in next_death.COLUMNS[1:]:
        assert f"  {column.header:<8}{column.help}\n" in EXAMPLES
