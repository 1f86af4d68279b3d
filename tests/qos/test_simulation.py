"""Simulated kills and evictions: laws that hold for any node, and the mechanisms one by one."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from kubectl_qos.edit.related import BUDGETS, convert_all
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.kubelet import Kubelet, Node, NodeSetup, kubelet_from_configz
from kubectl_qos.k8s.objects import ObjectMeta, Pod, convert
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.selectors import DisruptionBudget, Selector
from kubectl_qos.k8s.usage import ContainerUsage, PodUsage
from kubectl_qos.qos.eviction import Thresholds, eviction_ranks
from kubectl_qos.qos.killers import KILLERS
from kubectl_qos.qos.oom_score import OOM_SCORE_ADJ_MIN, badness
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.ranking import ContainerKind, rank_node
from kubectl_qos.qos.restart import Restart, restart_after_kill
from kubectl_qos.qos.simulation.ceiling import GROWN_PROCESS, ContainerGrowth, LimitHit, MemoryLevel, Scenario
from kubectl_qos.qos.simulation.engine import Run, Simulation, simulate
from kubectl_qos.qos.simulation.node_state import (
    Importance,
    ImportanceRules,
    NodeProcess,
    NodeState,
    SimulatedContainer,
    SimulatedPod,
)
from tests.node_states import build_node_state

MIB = 1 << 20
GIB = 1 << 30
PAGE = 4096
NODE = Node(name="n", memory_capacity_bytes=GIB, allocatable_memory_bytes=GIB - 64 * MIB, kernel="6.1")


def raw_pod(name: str = "a", priority: int = 0, **labels: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "x", "labels": labels},
        "spec": {"nodeName": "n", "priority": priority, "containers": [{"name": "c"}]},
        "status": {"phase": "Running"},
    }


def pod(name: str, priority: int = 0, **labels: str) -> Pod:
    return convert(raw_pod(name, priority, **labels), Pod)


def node_state(
    containers: list[tuple[str, SimulatedContainer]],
    *,
    limits: dict[str, int] | None = None,
    requests: dict[str, int] | None = None,
    priorities: dict[str, int] | None = None,
    node: Node = NODE,
    **changes: Any,
) -> NodeState:
    """Containers under the names of their pods; memory in bytes."""
    names = list(dict.fromkeys(name for name, _ in containers))
    pods = tuple(
        SimulatedPod(
            pod=pod(name, (priorities or {}).get(name, 0)),
            qos=QosClass.BURSTABLE,
            limit_bytes=(limits or {}).get(name, 0),
            request=Quantity.parse(str((requests or {}).get(name, 0))),
            critical=(priorities or {}).get(name, 0) >= 2_000_000_000,
            important=(),
        )
        for name in names
    )
    capacity = node.memory_capacity_bytes or 0
    found = NodeState(
        setup=NodeSetup.of(node),
        pods=pods,
        containers=tuple(structs.replace(one, pod_index=names.index(name)) for name, one in containers),
        total_bytes=capacity + node.swap_capacity_bytes,
        capacity_bytes=capacity,
        kubepods_bytes=node.allocatable_memory_bytes,
        thresholds=Thresholds(100 * MIB, 100 * MIB, 0),
        has_oom_group=True,
        without_usage=0,
        by_working_set=False,
    )
    return replace(found, **changes)


def container(
    adj: int, mebibytes: int, limit: int = 0, name: str = "c", *, restarts: bool = True
) -> SimulatedContainer:
    used = mebibytes * MIB
    return SimulatedContainer(
        0, name, adj, used, used, limit * MIB, restart=Restart.CONTAINER if restarts else Restart.NONE
    )


def acts(found: Simulation) -> list[tuple[str, str]]:
    return [(step.mechanism, step.key[1]) for step in found.steps]


def names(found: Simulation) -> list[str]:
    return [step.key[1] for step in found.steps]


# Laws

CONTAINERS = st.lists(
    st.builds(
        SimulatedContainer,
        pod_index=st.just(0),
        name=st.sampled_from("abc"),
        adj=st.one_of(st.integers(-999, 1000), st.just(OOM_SCORE_ADJ_MIN)),
        used_bytes=st.integers(0, 300 * MIB),
        working_set_bytes=st.integers(0, 300 * MIB),
        limit_bytes=st.one_of(st.just(0), st.integers(300 * MIB, 500 * MIB)),
        restart=st.sampled_from(Restart),
    ),
    min_size=1,
    max_size=8,
)


@st.composite
def node_states(draw: st.DrawFn) -> NodeState:
    containers = draw(CONTAINERS)
    pods = [draw(st.sampled_from("pqrs")) for _ in containers]
    own = draw(
        st.lists(st.builds(NodeProcess, st.just("d"), st.integers(-1000, 100), st.integers(0, 50 * MIB)))
    )
    # One container of a name in each pod.
    kept = {(name, one.name): (name, one) for name, one in zip(pods, containers, strict=True)}
    return node_state(
        list(kept.values()),
        limits={name: draw(st.sampled_from([0, 600 * MIB])) for name in "pqrs"},
        requests={name: draw(st.integers(0, 200 * MIB)) for name in "pqrs"},
        priorities={name: draw(st.sampled_from([0, 0, 5, 2_000_000_000])) for name in "pqrs"},
        own_processes=tuple(own),
        own_bytes=sum(one.used_bytes for one in own) + draw(st.integers(0, 100 * MIB)),
    )


AMOUNTS = st.integers(1, 3 * GIB)


@st.composite
def scenarios(draw: st.DrawFn, at: NodeState) -> Scenario:
    plain = Scenario(eviction=draw(st.booleans()), restarts=draw(st.booleans()))
    kind = draw(st.sampled_from(["free", "grow", "limit", "oom", "nothing"]))
    if kind == "free":
        return plain._replace(free_bytes=draw(AMOUNTS))
    if kind == "grow":
        grown = [
            ContainerGrowth(index, one.used_bytes + draw(AMOUNTS))
            for index, one in enumerate(at.containers)
            if draw(st.booleans())
        ]
        if draw(st.booleans()):
            grown.append(ContainerGrowth(None, (at.own_bytes or 0) + draw(AMOUNTS)))
        return plain._replace(growth=tuple(grown))
    return plain._replace(all_at_limit=kind == "limit", until_oom=kind == "oom")


@settings(deadline=None)
@given(st.data())
def test_every_step_is_accounted_for(data: st.DataObject) -> None:
    at = data.draw(node_states())
    found = simulate(at, data.draw(scenarios(at)))
    immune = {(at.pod_for(one).key, one.name) for one in at.containers if one.adj == OOM_SCORE_ADJ_MIN}
    killed: set[object] = set()
    for step in found.steps:
        who = step.key, step.container
        assert step.freed.free_bytes >= 0
        if step.qos is not None:
            assert who not in killed, "nothing dies twice"
            killed.add(who)
        if step.mechanism == "kubelet eviction":
            assert step.key not in {one.key for one in at.pods if one.critical}
        else:
            assert who not in immune
    if not (found.scenario.growth or found.scenario.all_at_limit or found.scenario.until_oom):
        lasting = sum(step.freed.free_bytes for step in found.steps if not step.restarts)
        assert found.after.free_bytes - found.before.free_bytes == lasting
        freed = sum(step.freed.free_bytes for step in found.steps)
        assert freed <= at.used_bytes + sum(one.used_bytes for one in at.own_processes)


@settings(deadline=None)
@given(st.data())
def test_what_is_free_at_the_end_is_what_nobody_holds(data: st.DataObject) -> None:
    """Added up again from who is left: at its target, or at what it had first if it came back."""
    at = data.draw(node_states())
    question = data.draw(scenarios(at).filter(lambda one: not one.until_oom))
    found = simulate(at, question)
    targets = {one.container: one.to_bytes for one in question.growth}
    own_victims = [step for step in found.steps if step.qos is None and step.key[1] != GROWN_PROCESS]
    # What has grown ends with its process.
    is_grown = GROWN_PROCESS not in names(found)
    own = targets.get(None, at.own_bytes or 0) if is_grown else at.own_bytes or 0
    own -= sum(step.freed.free_bytes for step in own_victims)
    held = 0
    evicted = {step.key for step in found.steps if step.mechanism == "kubelet eviction"}
    killed = {(step.key, step.container): step for step in found.steps if step.container}
    for index, one in enumerate(at.containers):
        key = at.pod_for(one).key
        step = killed.get((key, one.name))
        if key in evicted or (step is not None and not step.restarts):
            continue
        if step is not None:
            held += one.used_bytes
        elif question.all_at_limit:
            pod, members = at.pod_for(one), [x for x in at.containers if x.pod_index == one.pod_index]
            left = pod.limit_bytes - pod.left_bytes - sum(max(x.limit_bytes, x.used_bytes) for x in members)
            share = left // sum(not x.limit_bytes for x in members) if not one.limit_bytes else 0
            held += max(one.limit_bytes, one.used_bytes) + max(share, 0)
        else:
            held += targets.get(index, one.used_bytes)
    assert found.after.free_bytes == at.capacity_bytes - own - held


@settings(deadline=None)
@given(node_states(), AMOUNTS, AMOUNTS, st.booleans(), st.booleans())
def test_more_to_free_only_goes_on(
    at: NodeState, one: int, other: int, eviction: bool, restarts: bool
) -> None:
    less, more = sorted((one, other))
    few = simulate(at, Scenario(free_bytes=less, eviction=eviction, restarts=restarts))
    many = simulate(at, Scenario(free_bytes=more, eviction=eviction, restarts=restarts))
    assert many.steps[: len(few.steps)] == few.steps
    assert few.is_reached or not many.is_reached


@settings(deadline=None)
@given(node_states(), AMOUNTS)
def test_each_kill_is_the_one_of_the_kernel(at: NodeState, goal: int) -> None:
    """Against select_bad_process, run again with the processes that are left."""
    living = [(f"{at.pod_for(one).key}/{one.name}", one.adj, one.used_bytes) for one in at.containers] + [
        (f"own {index}", one.adj, one.used_bytes) for index, one in enumerate(at.own_processes)
    ]
    for step in simulate(at, Scenario(free_bytes=goal)).steps:
        points = {
            process: badness(process[2] // PAGE, process[1], at.total_bytes // PAGE, at.kernel)
            for process in living
            if process[1] != OOM_SCORE_ADJ_MIN
        }
        most = max(points.values())
        first, *tied = [process for process, score in points.items() if score == most]
        assert step.points == most
        assert step.tied == len(tied)
        living.remove(first)
        if step.qos is not None:
            assert first[0] == f"{step.key}/{step.container}"


@settings(deadline=None)
@given(node_states())
def test_each_eviction_is_the_one_of_the_kubelet(at: NodeState) -> None:
    found = simulate(at, Scenario(free_bytes=1 << 50, eviction=True))
    used = [0] * len(at.pods)
    for one in at.containers:
        used[one.pod_index] += one.working_set_bytes
    ranks = eviction_ranks([one.pod for one in at.pods], used, [one.request for one in at.pods])
    order = sorted(range(len(at.pods)), key=ranks.__getitem__)
    expected = [at.pods[index].key for index in order if not at.pods[index].critical]
    assert [step.key for step in found.steps if step.mechanism == "kubelet eviction"] == expected


@settings(deadline=None)
@given(st.data())
def test_a_pod_that_uses_nothing_and_is_no_victim_changes_nothing(data: st.DataObject) -> None:
    at = data.draw(node_states())
    question = data.draw(scenarios(at))
    before = simulate(at, question)
    idle = SimulatedContainer(len(at.pods), "idle", OOM_SCORE_ADJ_MIN, 0, 0)
    its_pod = SimulatedPod(
        pod("idle", 2_000_000_000), QosClass.GUARANTEED, 0, Quantity.parse("1Gi"), True, ()
    )
    after = simulate(replace(at, pods=(*at.pods, its_pod), containers=(*at.containers, idle)), question)
    assert after.steps == tuple(
        structs.replace(step, refused=found.refused)
        for step, found in zip(before.steps, after.steps, strict=True)
    )


@settings(deadline=None)
@given(node_states())
def test_growth_to_the_limits_never_hits_those_limits(at: NodeState) -> None:
    found = simulate(at, Scenario(all_at_limit=True))
    assert all(step.mechanism != "container limit" for step in found.steps)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 800), st.sampled_from([None, "64Mi", "500Mi"])), min_size=1, max_size=9)
)
def test_without_growth_pods_die_in_the_order_of_the_ranking(amounts: list[tuple[int, str | None]]) -> None:
    pods, usage = [], {}
    for number, (used, request) in enumerate(amounts):
        raw = raw_pod(f"p{number}")
        raw["spec"]["containers"][0]["resources"] = {"requests": {"memory": request}} if request else {}
        pods.append(convert(raw, Pod))
        usage["x", f"p{number}"] = PodUsage(("c",), (used * MIB,))
    setup = NodeSetup.of(NODE)
    ranking = rank_node(pods, NODE, setup.release, usage)
    found = simulate(build_node_state(pods, setup, usage), Scenario(free_bytes=1 << 50))
    assert names(found) == [row.pod.name for row in ranking.pods]
    assert [step.score for step in found.steps] == [row.worst.oom_score for row in ranking.pods if row.worst]


@given(node_states())
def test_whom_a_killer_ends_is_whom_its_steps_name(found: NodeState) -> None:
    for killer in (killer for killer in KILLERS if killer.is_node_wide):
        acting, ending = Run(found, Scenario()), Run(found, Scenario())
        while (step := acting.act(LimitHit(0.0, killer.id))) is not None:
            ended = ending.end(killer.id)
            assert ended is not None
            assert (ended.key, ended.container, ended.freed) == (step.key, step.container, step.freed)
        assert ending.end(killer.id) is None
        assert not ending.steps


# The mechanisms


def test_a_container_meets_its_own_limit_first() -> None:
    at = node_state([("a", container(900, 50, 100)), ("b", container(1000, 500))])
    found = simulate(at, Scenario(growth=(ContainerGrowth(0, 200 * MIB),)))
    assert [(step.mechanism, step.key[1], step.freed.free_bytes) for step in found.steps] == [
        ("container limit", "a", 100 * MIB)
    ]
    assert not found.is_reached


def test_the_score_of_a_kill_is_that_of_the_largest_process() -> None:
    """The others of the container are freed with it, and do not count."""
    largest = container(900, 200)
    several = structs.replace(largest, used_bytes=300 * MIB, others_bytes=100 * MIB)
    alone, among = (
        simulate(node_state([("a", one), ("b", container(0, 10))]), _to(1, 900)).steps[0]
        for one in (largest, several)
    )
    assert (among.key[1], among.freed.free_bytes) == ("a", 300 * MIB)
    assert among.score == alone.score


def test_growth_up_to_the_limit_is_no_kill() -> None:
    at = node_state([("a", container(900, 50, 100))], limits={"a": 100 * MIB})
    found = simulate(at, Scenario(growth=(ContainerGrowth(0, 100 * MIB),)))
    assert (found.steps, found.is_reached) == ((), True)
    assert found.before.free_bytes - found.after.free_bytes == 50 * MIB


def test_containers_without_a_limit_share_what_that_of_their_pod_leaves() -> None:
    containers = [("a", container(900, 50, 100)), ("a", container(900, 20)), ("a", container(900, 40))]
    for limit, grown in ((200, 90), (0, 50)):
        found = simulate(node_state(containers, limits={"a": limit * MIB}), Scenario(all_at_limit=True))
        assert found.before.free_bytes - found.after.free_bytes == grown * MIB


def test_the_limit_of_a_pod_takes_the_worst_of_its_containers() -> None:
    containers = [("a", container(900, 50, name="grows")), ("a", container(999, 90, name="other"))]
    at = node_state(containers, limits={"a": 200 * MIB})
    found = simulate(at, Scenario(growth=(ContainerGrowth(0, 150 * MIB),)))
    step = found.steps[0]
    assert (step.mechanism, step.container) == ("pod limit", "grows"), "110Mi outweigh 99 points of 200Mi"
    equal = simulate(replace(at, pods=(structs.replace(at.pods[0], limit_bytes=800 * MIB),)), _to(0, 750))
    assert equal.steps[0].container == "grows"
    near = simulate(node_state(containers, limits={"a": 150 * MIB}), _to(0, 150))
    assert near.steps[0].container == "other"


def _to(index: int, mebibytes: int, **more: Any) -> Scenario:
    return Scenario(growth=(ContainerGrowth(index, mebibytes * MIB),), **more)


def test_pods_as_a_whole_are_limited_before_the_node_is_full() -> None:
    at = node_state([("a", container(-997, 100)), ("b", container(1000, 300))])
    found = simulate(at, _to(0, 700))
    assert acts(found) == [("kubepods limit", "b")]
    assert found.is_reached
    unlimited = simulate(replace(at, kubepods_bytes=None), _to(0, 700))
    assert unlimited.steps == ()
    assert simulate(replace(at, kubepods_bytes=None), _to(0, 800)).steps[0].mechanism == "node"


def test_a_limit_of_pods_is_the_scale_there() -> None:
    at = node_state([("a", container(0, 100)), ("b", container(500, 10))], kubepods_bytes=200 * MIB)
    step = simulate(at, _to(0, 1000)).steps[0]
    assert (step.mechanism, step.key[1]) == ("kubepods limit", "a"), "190Mi outweigh half of 200Mi"
    assert step.points == step.freed.free_bytes // PAGE
    assert simulate(at, Scenario(free_bytes=1)).steps[0].key[1] == "b", "but not half of the machine"


def test_older_kernels_do_not_distinguish_protected_containers() -> None:
    containers = [("a", container(-997, 10)), ("b", container(-997, 300))]
    step = simulate(
        node_state(containers, node=structs.replace(NODE, kernel="4.19")), Scenario(free_bytes=1)
    ).steps[0]
    assert (step.key[1], step.points, step.tied) == ("a", 1, 1)
    new = simulate(node_state(containers), Scenario(free_bytes=1)).steps[0]
    assert (new.key[1], new.tied) == ("b", 0)


@pytest.mark.parametrize("bound", [960, 1024])
def test_a_node_that_is_full_to_the_last_byte_is_no_kill(bound: int) -> None:
    at = node_state([("a", container(0, 100))], kubepods_bytes=960 * MIB if bound == 960 else None)
    assert simulate(at, _to(0, bound)).steps == ()
    assert len(simulate(at, _to(0, bound + 1)).steps) == 1


def test_a_threshold_that_is_reached_to_the_byte_is_no_eviction() -> None:
    """Source: pkg/kubelet/eviction/helpers.go (thresholdsMet compares with >)."""
    at = node_state(
        [("a", container(0, 924))], kubepods_bytes=None, thresholds=Thresholds(100 * MIB, None, 0)
    )
    assert simulate(at, Scenario(eviction=True)).steps == ()
    assert len(simulate(replace(at, own_bytes=1), Scenario(eviction=True)).steps) == 1


def test_what_is_available_to_pods_counts_too() -> None:
    at = node_state([("a", container(0, 870))])
    found = simulate(at, Scenario(eviction=True))
    assert names(found) == ["a"], "154Mi of the node, but 90Mi of kubepods"
    assert found.before == MemoryLevel(154 * MIB, 90 * MIB, "allocatableMemory.available")
    own = simulate(replace(at, own_bytes=64 * MIB + 1), Scenario(eviction=True))
    assert own.before == MemoryLevel(90 * MIB - 1, 90 * MIB - 1)
    assert (
        simulate(replace(at, thresholds=Thresholds(100 * MIB, None, 0)), Scenario(eviction=True)).steps == ()
    )


def test_a_node_with_less_memory_than_is_in_use_kills_until_the_rest_fits() -> None:
    sizes = {"a": 700, "b": 500, "c": 400, "d": 100}
    at = node_state([(name, container(0, size)) for name, size in sizes.items()])
    found = simulate(at, Scenario(until_oom=True))
    assert acts(found) == [("kubepods limit", "a"), ("kubepods limit", "b")], "960Mi are for pods"
    assert found.is_over
    evicting = simulate(at, Scenario(until_oom=True, eviction=True))
    assert names(evicting) == ["a", "b"], "860Mi"
    fits = simulate(
        node_state([("a", container(0, 700)), ("b", container(0, 200))]), Scenario(until_oom=True)
    )
    assert (names(fits), fits.is_over) == (["a"], False)


def test_a_soft_threshold_evicts_too() -> None:
    """Its grace period passes if nothing grows (helpers.go, thresholdsMetGracePeriod)."""
    at = node_state([("a", container(1000, 300)), ("b", container(1000, 400))])
    soft = replace(at, thresholds=Thresholds(100 * MIB, 100 * MIB, 0, soft_bytes=700 * MIB))
    found = simulate(soft, Scenario(eviction=True))
    assert names(found) == ["b"], "324Mi of the node are available, 724Mi without it"
    assert found.before == MemoryLevel(324 * MIB, 324 * MIB), "260Mi of kubepods are above its threshold"
    alone = replace(at, thresholds=Thresholds(None, None, 400 * MIB, soft_bytes=700 * MIB))
    assert names(simulate(alone, Scenario(eviction=True))) == ["b", "a"], "the minimum reclaim counts"
    assert names(simulate(soft, Scenario(growth=(ContainerGrowth(0, 301 * MIB),)))) == []


def test_the_order_of_eviction_follows_what_has_died() -> None:
    containers = [
        ("a", container(1000, 50, 300)),
        ("a", container(1000, 100, name="d")),
        ("b", container(1000, 150)),
        ("c", container(1000, 400)),
    ]
    at = node_state(containers, kubepods_bytes=None, thresholds=Thresholds(100 * MIB, None, 0))
    question = Scenario(
        growth=(ContainerGrowth(0, 600 * MIB), ContainerGrowth(None, 800 * MIB)), eviction=True
    )
    found = simulate(at, question)
    assert acts(found) == [
        ("kubelet eviction", "c"),
        ("container limit", "a"),
        ("kubelet eviction", "b"),
    ]


def test_a_pod_that_is_evicted_takes_what_came_back_with_it() -> None:
    at = node_state([("a", container(1000, 50, 100))], kubepods_bytes=None)
    growth = (ContainerGrowth(0, 600 * MIB), ContainerGrowth(None, 900 * MIB))
    found = simulate(at, Scenario(growth=growth, eviction=True, restarts=True))
    assert [step.mechanism for step in found.steps] == ["container limit", "kubelet eviction"]
    assert found.steps[1].freed.free_bytes == 50 * MIB
    assert found.after.free_bytes == 124 * MIB


def test_equal_limits_are_one() -> None:
    at = node_state([("a", container(900, 50, 100))], limits={"a": 100 * MIB})
    distances = simulate(at, Scenario(until_oom=True)).distances
    assert [one.mechanism for one in distances] == [
        "pod limit",
        "kubepods limit",
        "node",
    ]


def test_the_kubelet_evicts_before_that_and_wants_its_reclaim() -> None:
    containers = [("a", container(-997, 100)), ("b", container(1000, 300)), ("c", container(1000, 200))]
    at = node_state(containers, requests={"a": 2 * GIB})
    found = simulate(at, _to(0, 500, eviction=True))
    assert acts(found) == [("kubelet eviction", "b")]
    greedy = replace(at, thresholds=Thresholds(100 * MIB, 100 * MIB, 400 * MIB))
    assert names(simulate(greedy, _to(0, 500, eviction=True))) == ["b", "c"]
    blind = replace(at, thresholds=Thresholds(None, None, 0))
    assert simulate(blind, _to(0, 700, eviction=True)).steps[0].mechanism == "kubepods limit"


def test_a_node_below_the_threshold_is_relieved_without_any_growth() -> None:
    at = node_state([("a", container(-997, 300)), ("b", container(1000, 600))], own_bytes=50 * MIB)
    assert names(simulate(at, Scenario(eviction=True))) == ["b"]
    assert simulate(replace(at, own_bytes=0, kubepods_bytes=None), Scenario(eviction=True)).steps == ()


def test_critical_pods_are_refused_and_the_kernel_comes() -> None:
    at = node_state(
        [("a", container(-997, 300)), ("b", container(1000, 400))],
        priorities={"a": 2 * 10**9, "b": 2 * 10**9},
    )
    found = simulate(at, _to(0, 700, eviction=True))
    assert acts(found) == [("kubepods limit", "b")]
    assert found.refused == (("x", "a"), ("x", "b")), "in the kubelet's order: a has grown past b by then"


def test_what_restarts_frees_nothing_that_lasts() -> None:
    containers = [
        ("a", container(1000, 300)),
        ("b", container(900, 200, restarts=False)),
        ("c", container(0, 100)),
    ]
    at = node_state(containers)
    found = simulate(at, Scenario(free_bytes=150 * MIB, restarts=True))
    assert [(step.key[1], step.restarts) for step in found.steps] == [("a", True), ("b", False)]
    assert found.after.free_bytes - found.before.free_bytes == 200 * MIB
    assert names(simulate(at, Scenario(free_bytes=150 * MIB))) == ["a"]


def test_how_far_each_mechanism_is() -> None:
    at = node_state(
        [("a", container(900, 100, 150)), ("b", container(1000, 400, 2000))], limits={"a": 190 * MIB}
    )
    found = simulate(at, Scenario(until_oom=True, eviction=True))
    assert [(one.mechanism, one.key[1]) for one in found.distances] == [
        ("container limit", "a"),
        ("kubelet eviction", "b"),
        ("pod limit", "a"),
        ("kubepods limit", "b"),
        ("node", "b"),
    ]
    assert found.distances[0].more_bytes == 250 * MIB
    assert found.distances[0].factor == 1.5
    assert names(found) == ["a"]


def test_swap_is_room_only_for_those_that_may_swap() -> None:
    node = structs.replace(NODE, swap_capacity_bytes=GIB)
    dry = node_state([("a", container(900, 50, 100))], limits={"a": 100 * MIB}, node=node)
    assert simulate(dry, _to(0, 150)).steps[0].mechanism == "pod limit"
    swaps = replace(dry, containers=(structs.replace(dry.containers[0], swap_bytes=100 * MIB),))
    assert simulate(swaps, _to(0, 150)).steps == ()
    assert simulate(swaps, _to(0, 250)).steps[0].freed.free_bytes == 200 * MIB
    full = node_state([("a", container(900, 50))], node=node, kubepods_bytes=None)
    assert simulate(full, _to(0, 1100)).steps[0].freed.free_bytes == GIB
    with_own = replace(full, own_bytes=200 * MIB)
    assert simulate(with_own, _to(0, 1000)).steps == (), "the node's own processes make room"


def test_growth_to_less_is_refused() -> None:
    with pytest.raises(InputError, match="already uses 50Mi"):
        simulate(node_state([("a", container(900, 50))]), _to(0, 10))


# Who matters


def budget(allowed: int | None, **labels: str) -> DisruptionBudget:
    raw: dict[str, Any] = {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "pdb", "namespace": "x"},
        "spec": {"selector": {"matchLabels": labels}},
    }
    if allowed is not None:
        raw["status"] = {"disruptionsAllowed": allowed}
    (found,) = convert_all([{"kind": "Pod"}, raw], BUDGETS)
    return found


def test_what_makes_a_pod_important() -> None:
    pods = [
        pod("web", app="web"),
        pod("db", app="db"),
        pod("high", 1_000_000_000),
        pod("plain"),
        pod("web2", app="web"),
    ]
    usage = {("x", one.name): PodUsage(("c",), (100 * MIB,)) for one in pods}
    rules = ImportanceRules(Selector.parse("app=db"), "app=db", [budget(1, app="web")])
    found = simulate(build_node_state(pods, NodeSetup.of(NODE), usage, rules), Scenario(free_bytes=1 << 50))
    reasons = {step.key[1]: [reason.reason for reason in step.important] for step in found.steps}
    assert reasons == {
        "db": [Importance.LABELS],
        "high": [Importance.PRIORITY],
        "plain": [],
        "web": [],
        "web2": [Importance.BUDGET],
    }
    assert found.first_important == names(found).index("db") + 1


def test_a_budget_that_nobody_has_counted_allows_none() -> None:
    pods = [pod("web", app="web"), replace_namespace(pod("web", app="web"), "y")]
    usage = {(one.namespace, "web"): PodUsage(("c",), (100 * MIB,)) for one in pods}
    at = build_node_state(pods, NodeSetup.of(NODE), usage, ImportanceRules(budgets=[budget(None, app="web")]))
    found = simulate(at, Scenario(free_bytes=1 << 50))
    assert {step.key[0]: len(step.important) for step in found.steps} == {"x": 1, "y": 0}


def replace_namespace(one: Pod, namespace: str) -> Pod:
    return msgspec.structs.replace(
        one, metadata=ObjectMeta(name=one.name, namespace=namespace, labels=one.metadata.labels)
    )


def test_who_restarts() -> None:
    def raw(policy: str, container: str | None = None) -> Pod:
        found = raw_pod()
        found["spec"] |= {
            "restartPolicy": policy,
            "containers": [{"name": "c", **({"restartPolicy": container} if container else {})}],
            "initContainers": [{"name": "s", "restartPolicy": "Always"}],
        }
        return convert(found, Pod)

    def restarting(one: Pod) -> dict[str, bool]:
        state = build_node_state([one], NodeSetup.of(NODE), {})
        return {each.name: each.restart is not Restart.NONE for each in state.containers}

    with_debugger = raw("Always")
    debugger = msgspec.structs.replace(with_debugger.containers[0], name="e")
    spec = msgspec.structs.replace(with_debugger.spec, ephemeral_containers=(debugger,))
    assert restarting(msgspec.structs.replace(with_debugger, spec=spec)) == {"c": True, "s": True, "e": False}
    assert restarting(raw("Always")) == {"c": True, "s": True}
    assert restarting(raw("OnFailure")) == {"c": True, "s": True}
    assert restarting(raw("Never")) == {"c": False, "s": True}
    assert restarting(raw("Always", "Never")) == {"c": False, "s": True}


def ruled(policy: str | None, *rules: tuple[str, str, list[int]], of_pod: str = "Never") -> Pod:
    """A pod whose container has restart rules of an action, an operator and exit codes."""
    found = raw_pod()
    listed = [
        {"action": action, "exitCodes": {"operator": operator, "values": values}}
        for action, operator, values in rules
    ]
    own = {"restartPolicyRules": listed} | ({"restartPolicy": policy} if policy else {})
    found["spec"] |= {"restartPolicy": of_pod, "containers": [{"name": "c", **own}]}
    return convert(found, Pod)


KILLED, OTHER = [137], [42]


@pytest.mark.parametrize(
    ("found", "at_34", "at_35", "at_36"),
    [
        (ruled("Never", ("Restart", "In", KILLED)), "NONE", "CONTAINER", "CONTAINER"),
        (ruled("Never", ("Restart", "In", OTHER)), "NONE", "NONE", "NONE"),
        (ruled("Never", ("Restart", "NotIn", OTHER)), "NONE", "CONTAINER", "CONTAINER"),
        (ruled("Never", ("Restart", "NotIn", KILLED)), "NONE", "NONE", "NONE"),
        (ruled("Never", ("RestartAllContainers", "In", KILLED)), "NONE", "NONE", "POD"),
        (ruled("Always", ("RestartAllContainers", "In", KILLED)), "NONE", "CONTAINER", "POD"),
        (
            ruled("Never", ("Restart", "In", OTHER), ("RestartAllContainers", "NotIn", OTHER)),
            *("NONE", "NONE", "POD"),
        ),
        (
            ruled("Never", ("Restart", "In", KILLED), ("RestartAllContainers", "In", KILLED)),
            *("NONE", "CONTAINER", "CONTAINER"),
        ),
        # Rules need a policy of their own, and a policy of an app container the gate of rules.
        (ruled(None, ("Restart", "In", KILLED)), "NONE", "NONE", "NONE"),
        (ruled("Never", of_pod="Always"), "CONTAINER", "NONE", "NONE"),
        (ruled("Always"), "NONE", "CONTAINER", "CONTAINER"),
    ],
)
def test_rules_decide_what_restarts_after_a_kill(found: Pod, at_34: str, at_35: str, at_36: str) -> None:
    for release, expected in (("1.34", at_34), ("1.35", at_35), ("1.36", at_36)):
        restart = restart_after_kill(found, found.containers[0], ContainerKind.APP, Release.of(release))
        assert restart is Restart[expected], release
    gates = Release.of("1.36", {"ContainerRestartRules": False})
    assert restart_after_kill(found, found.containers[0], ContainerKind.APP, gates) is Restart[at_34]


def test_a_step_says_that_all_containers_of_the_pod_restart() -> None:
    victim = structs.replace(container(1000, 300), restart=Restart.POD)
    at = node_state([("a", victim), ("b", container(0, 100))])
    for restarts in (True, False):
        first = simulate(at, Scenario(free_bytes=100 * MIB, restarts=restarts)).steps[0]
        assert (first.key[1], first.restarts, first.restart) == ("a", restarts, Restart.POD)


def test_a_process_of_the_node_that_has_grown_is_killed_before_guaranteed_pods() -> None:
    """The kernel goes by badness: it has oom_score_adj 0, and its growth ends with it."""
    at = node_state(
        [("be", container(1000, 10)), ("bu", container(900, 10)), ("gu", container(-997, 200))],
        own_bytes=50 * MIB,
    )
    found = simulate(at, Scenario(growth=(ContainerGrowth(None, 1200 * MIB),)))
    assert names(found) == ["be", "bu", GROWN_PROCESS]
    victim = found.steps[-1]
    assert (victim.mechanism, victim.qos, victim.adj, victim.container) == ("node", None, 0, "")
    assert victim.freed.free_bytes == pytest.approx((1024 - 50 - 200) * MIB, rel=0.001)
    assert not found.is_reached
    assert found.after.free_bytes == (1024 - 50 - 200) * MIB
    reached = simulate(at, Scenario(growth=(ContainerGrowth(None, 800 * MIB),)))
    assert (names(reached), reached.is_reached) == ([], True)


def test_known_processes_of_the_node_are_others_than_the_one_that_grows() -> None:
    processes = (NodeProcess("kubelet", -999, 30 * MIB), NodeProcess("sshd", 0, 5 * MIB))
    at = node_state([("gu", container(-997, 200))], own_bytes=50 * MIB, own_processes=processes)
    assert names(simulate(at, Scenario(growth=(ContainerGrowth(None, 2000 * MIB),)))) == [GROWN_PROCESS]


def test_thresholds_and_the_conditions_of_the_kubelet() -> None:
    kubelet = structs.replace(
        Kubelet(),
        eviction_hard={"memory.available": "10%"},
        eviction_minimum_reclaim={"memory.available": "1Mi"},
    )
    at = build_node_state([pod("a")], NodeSetup.of(NODE, kubelet), {})
    assert at.thresholds == Thresholds(107_374_184, 100_663_297, MIB), "percentages are float32"
    without = NodeSetup.of(NODE, structs.replace(kubelet, enforce_node_allocatable=()))
    assert build_node_state([pod("a")], without, {}).thresholds.kubepods_bytes is None
    assert build_node_state([pod("a")], without, {}).kubepods_bytes is None


def test_finding_who_grows() -> None:
    at = node_state([("a", container(0, 1)), ("b", container(0, 1)), ("b", container(0, 1, name="d"))])
    assert at.find_container("a") == 0
    assert at.find_container("b", "d", "x") == 2
    for words, message in (
        (("b",), "several containers: c, d"),
        (("z",), "no processes"),
        (("b", "e"), "pod b has no running container e"),
        (("a", "", "other"), "no processes"),
    ):
        with pytest.raises(InputError, match=message) as raised:
            at.find_container(*words)
        assert raised.value.hint == "it has c, d" or words != ("b", "e")


def test_an_unknown_capacity_and_pods_without_processes() -> None:
    with pytest.raises(InputError, match="capacity of n is unknown"):
        build_node_state(
            [pod("a")], NodeSetup.of(structs.replace(NODE, memory_capacity_bytes=None)), {}
        ).require_capacity()
    ended = msgspec.structs.replace(pod("a"), status=msgspec.structs.replace(pod("a").status, phase="Failed"))
    assert build_node_state([ended], NodeSetup.of(NODE), {}).containers == ()


def test_what_waits_for_its_restart_has_no_process() -> None:
    waiting = {"name": "c", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    raw = raw_pod()
    raw["status"] |= {"phase": "Running", "containerStatuses": [waiting]}
    found = convert(raw, Pod)
    assert build_node_state([found], NodeSetup.of(NODE), {}).containers == ()
    usage = {("x", "a"): PodUsage(("c",), (MIB,))}
    assert build_node_state([found], NodeSetup.of(NODE), usage).containers == ()


def test_static_pods_are_important() -> None:
    raw = raw_pod()
    raw["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "1"}
    found = convert(raw, Pod)
    (one,) = build_node_state([found], NodeSetup.of(NODE), {}).pods
    assert (one.critical, [reason.reason for reason in one.important]) == (True, [Importance.STATIC])


def test_the_two_counts_of_memory() -> None:
    usage = {("x", "a"): PodUsage.of_containers({"c": ContainerUsage(100 * MIB, 60 * MIB, 5 * MIB)})}
    at = build_node_state([pod("a")], NodeSetup.of(NODE), usage)
    (one,) = at.containers
    assert (one.used_bytes, one.working_set_bytes, at.by_working_set) == (105 * MIB, 100 * MIB, False)
    found = simulate(at, Scenario(free_bytes=1))
    assert found.steps[0].freed == MemoryLevel(105 * MIB, 100 * MIB)


@pytest.mark.parametrize(("version", "swap"), [(2, 50 * MIB), (1, 0)])
def test_what_is_in_swap_proves_that_it_may_swap(version: int, swap: int) -> None:
    """Cgroup v1 has one limit for memory and swap, which counts what is in swap too."""
    raw = raw_pod()
    raw["spec"]["containers"] = [{"name": "a", "resources": {"limits": {"memory": "128Mi"}}}]
    found = convert(raw, Pod)
    node = structs.replace(NODE, swap_capacity_bytes=GIB, cgroup_version=version)
    used = PodUsage.of_containers({"a": ContainerUsage(100 * MIB, swap_bytes=50 * MIB)})
    state = build_node_state([found], NodeSetup.of(node), {found.key: used})
    assert [container.swap_bytes for container in state.containers] == [swap]


def test_the_limits_of_pods_and_swap_are_those_of_the_rules() -> None:
    raw = raw_pod()
    limits = {"limits": {"memory": "128Mi"}, "requests": {"memory": "64Mi"}}
    raw["spec"]["containers"] = [{"name": "c", "resources": limits}, {"name": "d", "resources": limits}]
    found = convert(raw, Pod)
    node = structs.replace(NODE, swap_capacity_bytes=GIB)
    at = build_node_state(
        [found], NodeSetup.of(node, structs.replace(Kubelet(), memory_swap_behavior="LimitedSwap")), {}
    )
    assert at.pods[0].limit_bytes == 256 * MIB
    assert [(one.limit_bytes, one.swap_bytes) for one in at.containers] == [(128 * MIB, 64 * MIB)] * 2
    without = build_node_state([found], NodeSetup.of(node), {})
    assert [one.most_bytes for one in without.containers] == [128 * MIB] * 2
    flat = build_node_state(
        [found], NodeSetup.of(node, structs.replace(Kubelet(), cgroups_per_qos=False)), {}
    )
    assert (flat.pods[0].limit_bytes, flat.kubepods_bytes) == (0, None)


def test_the_minimum_reclaim_comes_from_the_kubelet() -> None:
    found = kubelet_from_configz({"evictionMinimumReclaim": {"memory.available": "50Mi"}}, Release.of("1.36"))
    assert found.eviction_minimum_reclaim == {"memory.available": "50Mi"}


def test_once_the_minimum_reclaim_is_reached_the_threshold_counts_again() -> None:
    containers = [
        ("a", container(0, 100)),
        ("b", container(0, 300)),
        ("c", container(0, 200)),
        ("d", container(0, 10, 50)),
    ]
    thresholds = Thresholds(100 * MIB, None, 100 * MIB)
    at = node_state(containers, kubepods_bytes=None, thresholds=thresholds)
    growth = (ContainerGrowth(3, 51 * MIB), ContainerGrowth(None, 560 * MIB))
    found = simulate(at, Scenario(growth=growth, eviction=True))
    assert acts(found) == [("kubelet eviction", "b"), ("container limit", "d")]
    assert 100 * MIB < found.steps[1].level.available_bytes < 200 * MIB
