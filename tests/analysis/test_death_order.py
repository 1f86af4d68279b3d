"""Whoever is asked names the same next death: every surface takes the order of deaths from one place."""

import random
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

import pytest
from hypothesis import settings
from msgspec import structs

from kubectl_qos.analysis.deaths import (
    deaths_of_pod,
    deaths_of_pods,
    deaths_on_node,
    deaths_on_nodes,
    without_far,
)
from kubectl_qos.analysis.fix_list import fixes_on_nodes
from kubectl_qos.analysis.group_table import build_node_rows, cluster_row
from kubectl_qos.analysis.incident import Incident, IncidentSubject
from kubectl_qos.analysis.pod_table import build_rows
from kubectl_qos.analysis.trends import Trends
from kubectl_qos.cluster.files import DEMO_TIME
from kubectl_qos.edit.compare import usage_of
from kubectl_qos.edit.fixes import EvidenceKind
from kubectl_qos.exporter.collector import FAMILIES, node_samples
from kubectl_qos.k8s.events import EventList
from kubectl_qos.k8s.objects import ContainerState, NodeObject, Pod, convert
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.k8s.usage import ContainerHistory, ContainerKey, ContainerUsage, History, PodKey, PodUsage
from kubectl_qos.present.explanation import explain_pod
from kubectl_qos.present.list_notes import old_usage_notes
from kubectl_qos.present.next_death import foretold
from kubectl_qos.qos.ranking import ProfileCache
from kubectl_qos.qos.restart import LOOP_RESTARTS
from kubectl_qos.qos.simulation.next_death import FAR_PERCENT, NextDeath, Precedent, next_deaths
from kubectl_qos.qos.simulation.node_state import state_of_node
from kubectl_qos.tui.view_model import build_view_model
from tests.demo.living import Stepped
from tests.qos.recorded import snapshot_of

MIB: Final = 1 << 20
SAMPLED: Final = "2026-11-20T12:00:00Z"
FAMILY: Final = next(place for place, family in enumerate(FAMILIES) if family.name == "node_next_death")


class Named(NamedTuple):
    """Who dies, by whom."""

    key: PodKey
    container: str
    mechanism: str


def named(death: NextDeath | None) -> Named | None:
    return None if death is None else Named(death.key, death.container, death.mechanism)


def a_pod(
    name: str,
    node: str,
    limit: int = 0,
    *,
    created: str = "2026-11-01T00:00:00Z",
    killed: str = "",
    restarts: int = 1,
) -> Pod:
    ended = {"terminated": {"reason": "OOMKilled", "exitCode": 137, "finishedAt": killed}} if killed else {}
    status = {
        "name": "c",
        "restartCount": restarts if killed else 0,
        "state": {"running": {}},
        "lastState": ended,
    }
    limits = {"memory": str(limit)} if limit else {}
    raw: dict[str, Any] = {
        "kind": "Pod",
        "metadata": {"namespace": "x", "name": name, "creationTimestamp": created},
        "spec": {"nodeName": node, "containers": [{"name": "c", "resources": {"limits": limits}}]},
        "status": {"phase": "Running", "containerStatuses": [status]},
    }
    return convert(raw, Pod)


def a_node(name: str, capacity: int, conditions: Iterable[Mapping[str, str]] = ()) -> NodeObject:
    memory = {"memory": str(capacity), "cpu": "8", "pods": "110"}
    info = {"kubeletVersion": "v1.36.0"}
    status = {"capacity": memory, "allocatable": memory, "nodeInfo": info, "conditions": list(conditions)}
    return convert({"metadata": {"name": name}, "status": status}, NodeObject)


def used(size: int) -> PodUsage:
    return PodUsage.of_containers({"c": ContainerUsage(size)}, timestamp=SAMPLED)


def a_cluster(
    used_of: Mapping[str, int],
    pods: Iterable[Pod],
    rates: Mapping[str, float] | None = None,
    capacity: int = 4096 * MIB,
    **more: Any,
) -> Snapshot:
    by_key: dict[ContainerKey, float] = {(("x", name), "c"): rate for name, rate in (rates or {}).items()}
    pods = tuple(pods)
    nodes = {pod.node_name: a_node(pod.node_name, capacity) for pod in pods}
    usage = {("x", name): used(size) for name, size in used_of.items()}
    return Snapshot(pods, nodes, usage, rates=lambda _: by_key, **more)


def some_cluster(seed: int) -> Snapshot:
    chance = random.Random(seed)
    pods, amounts, rates = [], {}, {}
    capacity = int(MIB * 2 ** chance.uniform(9, 13))
    for node in range(chance.randint(1, 4)):
        for place in range(chance.randint(1, 7)):
            name = f"p{node}-{place}"
            limit = chance.choice([0, int(MIB * 2 ** chance.uniform(4, 11))])
            killed = chance.choice(["", "", "2026-11-20T10:00:00Z"])
            created = chance.choice(["2026-11-01T00:00:00Z", "2026-11-20T11:58:00Z"])
            restarts = chance.choice([1, LOOP_RESTARTS])
            pods.append(a_pod(name, f"n{node}", limit, created=created, killed=killed, restarts=restarts))
            amounts[name] = int((limit or capacity / 4) * chance.uniform(0.05, 1.0))
            if chance.random() < 0.3:
                rates[name] = MIB * 2 ** chance.uniform(-8, 4)
    return a_cluster(amounts, pods, rates, capacity)


def named_in_metrics(snapshot: Snapshot, node: str) -> Named | None:
    text = node_samples(snapshot, node, Scope(), None, ProfileCache())[FAMILY].decode()
    if not text:
        return None
    labels = dict(part.split("=", 1) for part in text.partition("{")[2].rpartition("}")[0].split(","))
    values = {name: value.strip('"') for name, value in labels.items()}
    key = values["namespace"], values["pod"]
    return Named(key, values["container"], values["mechanism"])


def assert_one_answer(snapshot: Snapshot, *, with_fixes: bool = True) -> None:
    """Compare what each surface says of the nodes, and of all of them together."""
    nodes = sorted(snapshot.nodes)
    listed = deaths_on_nodes(snapshot, nodes, only_next=True).rows
    by_node = {row.node: named(row.death) for row in listed}
    view_model = build_view_model(snapshot, Scope(), DEMO_TIME)
    view_model.compute_deaths()
    rows = {row.name: row for row in build_node_rows(snapshot, lambda *_: True).rows}
    for node in nodes:
        said = by_node.get(node)
        of_node = deaths_on_nodes(snapshot, [node])
        assert named(next(iter(deaths_on_node(snapshot, node).deaths), None)) == said
        for shown in (of_node.rows, without_far(of_node.rows)):
            assert named(next((row.death for row in shown), None)) == said
        victim = next((pod for pod in snapshot.pods if said and (pod.namespace, pod.name) == said.key), None)
        if victim is not None:
            of_victim = deaths_of_pod(state_of_node(snapshot, victim.node_name), victim)
            assert of_victim is not None
            assert named(of_victim.deaths[0]) == said
            assert named(deaths_of_pods(snapshot, [victim]).rows[0].death) == said
        assert named(rows[node].death) == said
        assert named_in_metrics(snapshot, node) == said
        found = view_model.deaths(node)
        assert found is not None
        assert named(next(iter(found.deaths), None)) == said
        if with_fixes:
            fixes = fixes_on_nodes(snapshot, [node], Scope(), only_nearest=True)
            answered = [fix.death for fix in fixes.fixes] + [one.death for one in fixes.unfixed]
            assert named(min(answered, key=lambda death: death.urgency, default=None)) == said
    first = named(listed[0].death) if listed else None
    assert named(view_model.first_deaths[0].death if view_model.first_deaths else None) == first
    row = cluster_row("c", snapshot, EventList(), now=DEMO_TIME, taken=DEMO_TIME).next_death_node
    assert named(row.death if row is not None else None) == first
    incident = Incident(
        about=IncidentSubject("Cluster"),
        source="",
        now=DEMO_TIME,
        since=None,
        scope=Scope(),
        snapshot=snapshot,
        event_list=EventList(),
        kills=(),
    )
    if with_fixes:
        listed_fixes = [fix.death.urgency for fix in fixes_on_nodes(snapshot, nodes, Scope()).fixes]
        assert listed_fixes == sorted(listed_fixes)
        assert named(next(iter(incident.coming[0].rows)).death if listed else None) == first


@pytest.mark.parametrize("of_ten", range(10))
def test_all_surfaces_name_the_same_first_death(of_ten: int) -> None:
    each = settings().max_examples // 6
    for seed in range(each * of_ten, each * of_ten + each):
        assert_one_answer(some_cluster(seed), with_fixes=seed % 5 == 0)


def test_all_surfaces_name_the_same_first_death_all_through_the_demo() -> None:
    demo, trends, last, firsts = Stepped(), Trends(), None, set()
    step = max(1, 1200 // settings().max_examples)
    for second in range(0, 330, step):
        snapshot = demo.later(min(second, step))
        if snapshot is last:
            continue
        last = snapshot
        known = trends.with_rates(snapshot)
        assert_one_answer(known, with_fixes=second % 60 == 0)
        firsts.add(deaths_on_nodes(known, sorted(known.nodes), only_next=True).rows[0].death.key)
    assert len(firsts) > 1, "the headline moves on"


@pytest.mark.parametrize("name", ["node-1.36", "node-1.36-b", "node-1.36-d"])
def test_all_surfaces_name_the_same_first_death_of_the_recorded_nodes(name: str) -> None:
    assert_one_answer(snapshot_of(name))


def order(snapshot: Snapshot, node: str = "n") -> list[str]:
    return [death.key[1] for death in deaths_on_node(snapshot, node).deaths if death.is_own]


def test_fullness_comes_before_bytes_and_time_before_fullness() -> None:
    """98 % of a large limit is nearer than 81 % of a small one, and what grows comes before both."""
    pods = [a_pod("large", "n", 1000 * MIB), a_pod("small", "n", 40 * MIB), a_pod("grows", "n", 400 * MIB)]
    amounts = {"large": 980 * MIB, "small": 33 * MIB, "grows": 100 * MIB}
    assert order(a_cluster(amounts, pods)) == ["large", "small", "grows"]
    assert order(a_cluster(amounts, pods, {"grows": MIB})) == ["grows", "large", "small"]
    assert order(a_cluster(amounts, pods, {"grows": MIB / 60})) == ["large", "small", "grows"], "in 5 hours"


def test_at_a_full_limit_any_allocation_may_be_the_last_also_without_growth() -> None:
    pods = [a_pod("full", "n", 1000 * MIB), a_pod("grows", "n", 400 * MIB)]
    for used_mib, first in ((996, "full"), (994, "grows")):
        snapshot = a_cluster({"full": used_mib * MIB, "grows": 300 * MIB}, pods, {"grows": 4 * MIB})
        assert order(snapshot)[0] == first
        death = deaths_on_node(snapshot, "n").deaths[0]
        assert ("dies at any allocation: own limit 100%, +4Mi" in foretold(death)) is (first == "full")
        assert_one_answer(snapshot)


def test_what_is_due_comes_first_by_the_delay_of_its_killer() -> None:
    """The kubelet checks every ten seconds: what is reached in five comes before."""
    pods = [a_pod("own", "n", 400 * MIB), a_pod("other", "n")]
    pressed = [{"type": "MemoryPressure", "status": "True"}]
    for rate, first in ((20, "pod limit"), (5, "kubelet eviction")):
        snapshot = a_cluster({"own": 300 * MIB, "other": 3000 * MIB}, pods, {"own": rate * MIB})
        snapshot = replace(snapshot, nodes={"n": a_node("n", 4096 * MIB, pressed)})
        assert deaths_on_node(snapshot, "n").deaths[0].mechanism == first


@pytest.mark.parametrize(("used_percent", "first"), [(92, "killed"), (85, "calm")])
def test_a_limit_that_killed_before_comes_first_within_ten_points(used_percent: int, first: str) -> None:
    pods = [a_pod("calm", "n", 100 * MIB), a_pod("killed", "n", 100 * MIB, killed="2026-11-20T09:00:00Z")]
    snapshot = a_cluster({"calm": 96 * MIB, "killed": used_percent * MIB}, pods)
    assert order(snapshot)[0] == first
    found = {death.key[1]: death.precedent for death in deaths_on_node(snapshot, "n").deaths if death.is_own}
    assert found == {"calm": None, "killed": Precedent.KILLED}


def test_what_is_killed_again_and_again_comes_first_in_next_and_fix() -> None:
    """As seen: OOMKilled 23 times, and listed last or not at all."""
    full = a_pod("full", "n", 100 * MIB)
    killed = "2026-11-20T10:00:00Z"
    looping = a_pod("loops", "n", 100 * MIB, killed=killed, restarts=LOOP_RESTARTS)
    waiting = a_pod("loops", "n", 100 * MIB, killed=killed)
    [status] = waiting.status.container_statuses or ()
    waits = convert({"waiting": {"reason": "CrashLoopBackOff"}}, ContainerState)
    stopped = structs.replace(
        waiting.status, container_statuses=(structs.replace(status, state=waits, restart_count=23),)
    )
    used_of = {"full": 99 * MIB, "loops": 15 * MIB}
    nodes = (
        a_cluster(used_of, [full, looping]),
        a_cluster({"full": 99 * MIB}, [full, looping]),
        a_cluster({"full": 99 * MIB}, [full, structs.replace(waiting, status=stopped)]),
    )
    for snapshot, distance in zip(nodes, (85 * MIB, 0, 0), strict=True):
        first, second, *_ = deaths_on_node(snapshot, "n").deaths
        assert (first.key[1], second.key[1]) == ("loops", "full")
        assert (first.precedent, first.distance_bytes) == (Precedent.LOOP, distance)
        assert deaths_on_nodes(snapshot, ["n"], only_next=True).rows[0].death == first
        assert deaths_on_nodes(snapshot, ["n"], Scope(namespace="x")).rows[0].death.key == first.key
        fix = fixes_on_nodes(snapshot, ["n"], Scope()).fixes[0]
        assert (fix.pod.name, fix.evidence.kind) == ("loops", EvidenceKind.KILLED_EACH_TIME)
    once = a_cluster(used_of, [full, a_pod("loops", "n", 100 * MIB, killed=killed)])
    assert order(once)[0] == "full", "one kill is no loop"


def test_a_limit_comes_before_farther_killers_of_the_node_that_end_its_pod() -> None:
    """With 200Mi left of its limit a pod does not use up the 310Mi that the node has left."""
    pods, own = [a_pod("large", "n", 2100 * MIB)], 4000 * MIB
    for used, is_near in ((1900, True), (1600, False)):
        room = 2100 - used + 110
        nodes = {"node_usage": {"n": own + used * MIB}}
        snapshot = a_cluster({"large": used * MIB}, pods, capacity=own + (used + room) * MIB, **nodes)
        deaths = [row.death for row in deaths_on_nodes(snapshot, ["n"]).rows]
        assert deaths[0].is_own is is_near, "a limit that is far is not expected to be reached"
        assert (deaths[0].fullness < deaths[1].fullness) is is_near
        assert [row.death for row in deaths_of_pods(snapshot, pods).rows] == deaths


def test_a_peak_that_reached_the_limit_comes_first_within_ten_points() -> None:
    pods = [a_pod("calm", "n", 100 * MIB), a_pod("peaked", "n", 100 * MIB)]
    keys = {name: (("x", name), "c") for name in ("calm", "peaked")}
    past = {keys["calm"]: ContainerHistory(96 * MIB - 1), keys["peaked"]: ContainerHistory(99 * MIB)}
    snapshot = a_cluster({"calm": 94 * MIB, "peaked": 90 * MIB}, pods)
    assert order(snapshot)[0] == "calm"
    past[keys["calm"]] = ContainerHistory(94 * MIB)
    assert order(replace(snapshot, history=History(past, {}, "7d")))[0] == "peaked"


@pytest.mark.parametrize(
    ("created", "killed", "is_trend"),
    [
        ("2026-11-20T11:57:00Z", "", False),
        ("2026-11-20T11:50:00Z", "", True),
        ("2026-11-20T11:57:00Z", "2026-11-20T11:58:00Z", True),
    ],
)
def test_growth_of_a_start_is_no_trend_unless_it_was_killed_so(
    created: str, killed: str, is_trend: bool
) -> None:
    """A container that was OOMKilled grows towards the same end again."""
    pods = [a_pod("new", "n", 400 * MIB, created=created, killed=killed)]
    state = state_of_node(a_cluster({"new": 100 * MIB}, pods, {"new": MIB}), "n")
    assert (next_deaths(state)[0].seconds is not None) is is_trend
    assert state.growth.starting == (frozenset() if is_trend else {(("x", "new"), "c")})


def test_a_sample_of_an_earlier_run_is_the_usage_of_no_command() -> None:
    """As seen: rank 1 with 99Mi in top, `own limit <1%` in next, and not in the simulation."""
    pods = [a_pod("full", "n", 100 * MIB, killed="2026-11-20T12:00:01Z"), a_pod("half", "n", 100 * MIB)]
    snapshot = a_cluster({"full": 99 * MIB, "half": 50 * MIB}, pods, {"full": MIB})
    assert order(snapshot) == ["half"]
    state = state_of_node(snapshot, "n")
    assert [container.has_usage for container in state.containers if container.used_bytes == 0] == [False]
    (row,) = (row for row in build_rows(snapshot, Scope()).rows if row.name == "full")
    assert (row.memory, row.score, row.limit_percent) == (None, None, None)
    assert explain_pod(pods[0], snapshot, DEMO_TIME).facts.usage is None
    assert usage_of(pods[0], snapshot) is None
    note = "x/full:c has restarted since the last sample: memory in use is unknown"
    assert list(old_usage_notes(snapshot, DEMO_TIME)) == [note]


@pytest.mark.parametrize(
    ("node_sampled", "used", "is_bound"),
    [("", 700, True), (SAMPLED, 700, True), ("2026-11-20T12:00:02Z", 800, False)],
)
def test_a_sample_of_the_node_counts_what_ran_at_its_time(
    node_sampled: str, used: int, is_bound: bool
) -> None:
    pods = [a_pod("full", "n", 200 * MIB, killed="2026-11-20T12:00:01Z"), a_pod("half", "n", 200 * MIB)]
    snapshot = replace(
        a_cluster({"full": 100 * MIB, "half": 50 * MIB}, pods),
        node_usage={"n": 800 * MIB},
        node_sampled={"n": node_sampled} if node_sampled else {},
    )
    assert snapshot.used_bytes("n") == used * MIB
    assert snapshot.own_bytes("n") == (used - 50) * MIB
    state = state_of_node(snapshot, "n")
    deaths = {death.mechanism: death for death in next_deaths(state)}
    kernel, kubelet = deaths["node"], deaths["kubelet eviction"]
    assert (kernel.distance_bytes, kernel.is_upper_bound) == (state.regular_bytes - used * MIB, is_bound)
    (row,) = build_node_rows(snapshot, lambda *_: True).rows
    assert (row.to_eviction, row.is_bound) == (kubelet.distance_bytes, kubelet.is_upper_bound)


def test_limits_that_nothing_approaches_are_left_out() -> None:
    pods = [a_pod("low", "n", 100 * MIB), a_pod("full", "n", 100 * MIB), a_pod("grows", "n", 500 * MIB)]
    pods.append(a_pod("killed", "n", 100 * MIB, killed="2026-11-20T09:00:00Z"))
    amounts = dict.fromkeys(("low", "grows", "killed"), FAR_PERCENT * MIB - 1) | {"full": FAR_PERCENT * MIB}
    listed = deaths_on_nodes(a_cluster(amounts, pods, {"grows": MIB}), ["n"])
    hidden = [row.death.key[1] for row in listed.rows if row not in without_far(listed.rows)]
    assert hidden == ["low"]
