"""The next deaths of a node: the victims of the simulation, at distances that growth reaches."""

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import structs

from kubectl_qos.k8s.kubelet import Kubelet, Node, NodeSetup
from kubectl_qos.present.next_death import killed_by
from kubectl_qos.qos.eviction import Thresholds
from kubectl_qos.qos.killers import KILLERS
from kubectl_qos.qos.oom_score import OOM_SCORE_ADJ_MIN, badness
from kubectl_qos.qos.simulation.ceiling import ContainerGrowth, Scenario
from kubectl_qos.qos.simulation.engine import simulate
from kubectl_qos.qos.simulation.next_death import NextDeath, deaths_of, first_deaths, next_deaths
from kubectl_qos.qos.simulation.node_state import Growth, NodeState, SimulatedContainer
from tests.node_states import build_node_state
from tests.qos.test_simulation import MIB, container, node_state, node_states

ONE_BYTE = Scenario(free_bytes=1)


def death(found: list[NextDeath], mechanism: str) -> NextDeath:
    return next(one for one in found if one.mechanism == mechanism)


# Laws


def assert_first_deaths(state: NodeState, deaths: list[NextDeath]) -> None:
    """The first deaths have the first by each killer, in their order."""
    by_killer = {death.mechanism: death for death in reversed(deaths)}
    firsts = first_deaths(state, KILLERS)
    assert {death.mechanism: death for death in reversed(firsts)} == by_killer
    assert firsts == [death for death in deaths if death in firsts]
    assert first_deaths(state)[:1] == deaths[:1]


@given(node_states(), st.sets(st.integers(0, 20)))
def test_an_outline_says_of_a_node_what_notes_on_many_nodes_say(state: NodeState, unknown: set[int]) -> None:
    containers = (
        structs.replace(item, has_usage=i not in unknown) for i, item in enumerate(state.containers)
    )
    state = replace(state, containers=tuple(containers))
    outline = state.outline()
    assert len(outline.containers) <= 1
    for name in ("is_known", "is_unmeasured", "without_usage", "own_bytes", "capacity_bytes"):
        assert getattr(outline, name) == getattr(state, name), name


@given(node_states())
def test_the_kernel_and_the_kubelet_choose_as_in_the_simulation(found: NodeState) -> None:
    assume(found.used_bytes)
    deaths = next_deaths(found)
    for mechanism, scenario in (
        ("node", ONE_BYTE),
        ("kubelet eviction", ONE_BYTE._replace(eviction=True)),
    ):
        first = next(iter(simulate(found, scenario).steps), None)
        mine = [one for one in deaths if one.mechanism == mechanism]
        if first is not None and first.mechanism == mechanism:
            assert [(one.key, one.container) for one in mine] == [(first.key, first.container)]
    assert deaths == sorted(deaths, key=lambda one: one.urgency)
    assert_first_deaths(found, deaths)


@given(node_states())
def test_growth_by_a_byte_more_than_the_distance_is_the_death(found: NodeState) -> None:
    found = replace(found, thresholds=Thresholds(None, None, 0), kubepods_bytes=None, own_processes=())
    first = min(next_deaths(found), key=lambda one: one.distance_bytes, default=None)
    assume(first is not None and first.distance_bytes > 0)
    assert first is not None
    grows = None if first.killer.is_node_wide else found.find_container(first.key[1], first.container)
    used = found.own_bytes or 0 if grows is None else found.containers[grows].used_bytes
    for more, dies in ((0, False), (1, True)):
        growth = ContainerGrowth(grows, used + first.distance_bytes + more)
        steps = simulate(found, Scenario(growth=(growth,))).steps
        assert bool(steps) is dies
    if grows is not None:
        assert (steps[0].key, steps[0].container) == (first.key, first.container)


@given(node_states())
def test_a_pod_dies_in_its_turn(found: NodeState) -> None:
    """What is freed before a pod's turn is used again first: the order is that of the simulation."""
    order = simulate(found, Scenario(free_bytes=1 << 60)).steps
    seen = set()
    for place, step in enumerate(order):
        if not step.key[0] or step.key in seen:
            continue
        seen.add(step.key)
        mine = death(deaths_of(found, {step.key}), "node")
        assert (mine.container, mine.frees_bytes) == (step.container, step.freed.free_bytes)
        freed_before = sum(one.freed.free_bytes for one in order[:place])
        first = death(next_deaths(found), "node")
        assert (mine.before, mine.distance_bytes) == (place, first.distance_bytes + freed_before)


def only_the_machine(found: NodeState) -> NodeState:
    """The node without any limit and without eviction: the kernel kills where it is full."""
    pods = tuple(structs.replace(pod, limit_bytes=0) for pod in found.pods)
    containers = tuple(structs.replace(one, limit_bytes=0) for one in found.containers)
    bare = replace(found, pods=pods, containers=containers, kubepods_bytes=None, own_processes=())
    return replace(bare, thresholds=Thresholds(None, None, 0))


@given(node_states())
def test_whoever_grows_far_enough_is_the_victim_itself(found: NodeState) -> None:
    found = only_the_machine(found)
    deaths = next_deaths(found, contests=True)
    assume(deaths and deaths[0].distance_bytes > 0)
    (first,) = deaths
    sizes = {(one.key, one.container): one.size_bytes for one in first.growing}
    for index, one in enumerate(found.containers):
        key, grown = (found.pod_for(one).key, one.name), one.used_bytes + first.distance_bytes
        if key == (first.key, first.container) or one.adj == OOM_SCORE_ADJ_MIN:
            continue
        step = simulate(found, Scenario(growth=(ContainerGrowth(index, grown + 1),))).steps[0]
        is_itself = (step.key, step.container) == key
        if key in sizes:
            assert is_itself
            assert sizes[key] <= grown
        elif is_itself:
            bytes_short = (first_points(found) - points_of(found, index)) * 4096 - first.distance_bytes
            assert bytes_short <= 4096, "no more than a page decides"


def first_points(found: NodeState) -> int:
    return simulate(found, ONE_BYTE).steps[0].points or 0


def points_of(found: NodeState, index: int) -> int:
    one = found.containers[index]
    return badness(one.used_bytes // 4096, one.adj, found.total_bytes // 4096, found.kernel)


def test_whoever_its_own_limit_ends_before_does_not_fill_the_node() -> None:
    """Neither `lim1` with 79Mi left nor `pl` with 80Mi in its pod grow by the 3Gi that the node has left."""
    found = node_state(
        [
            ("most", container(1000, 300)),
            ("free", container(990, 20)),
            ("lim1", container(990, 20, 100)),
            ("pl", container(990, 20)),
        ],
        limits={"pl": 100 * MIB},
    )
    full = death(next_deaths(found, contests=True), "node")
    assert (full.key[1], [one.pod for one in full.growing]) == ("most", ["free"])


@given(node_states(), st.lists(st.integers(0, 100 * MIB), min_size=8, max_size=8))
def test_with_known_growth_the_victim_is_that_of_the_moment_of_death(
    found: NodeState, rates: list[int]
) -> None:
    """As `simulate --grow` has it: what every container has grown by then."""
    found = only_the_machine(found)
    paces = {
        (found.pod_for(one).key, one.name): rate for one, rate in zip(found.containers, rates, strict=False)
    }
    growth = Growth(sum(paces.values()), containers=paces)
    deaths = next_deaths(replace(found, growth=growth))
    assume(growth.node and deaths and deaths[0].distance_bytes > 0)
    targets = tuple(
        ContainerGrowth(index, one.used_bytes + 10**10 * paces[found.pod_for(one).key, one.name])
        for index, one in enumerate(found.containers)
    )
    step = simulate(found, Scenario(growth=targets)).steps[0]
    assert (deaths[0].key, deaths[0].container) == (step.key, step.container)
    assert deaths[0].distance_bytes == next_deaths(found)[0].distance_bytes


@given(node_states(), st.integers(0, 5))
def test_the_rival_dies_where_the_victims_memory_is_in_several_processes(
    found: NodeState, processes: int
) -> None:
    found = only_the_machine(found)
    assert all(one.rival is None for one in next_deaths(found, contests=True)), "one process each"
    several = tuple(structs.replace(one, processes=processes) for one in found.containers)
    for one in next_deaths(replace(found, containers=several), contests=True):
        victim = found.containers[found.find_container(one.key[1], one.container)]
        if one.rival is None:
            continue
        assert victim.used_bytes // processes < one.rival.size_bytes if processes else processes == 0
        for largest, dies in ((one.rival.size_bytes - 8192, one.rival), (one.rival.size_bytes + 8192, one)):
            spread = structs.replace(victim, others_bytes=victim.used_bytes - largest)
            changed = tuple(spread if other is victim else other for other in found.containers)
            (then,) = next_deaths(replace(found, containers=changed))
            assert (then.key, then.container) == (dies.key, dies.container) or then.tied


@st.composite
def limited_pods(draw: st.DrawFn) -> NodeState:
    """One pod with a limit, whose containers have limits of their own or none."""
    containers = []
    for name in draw(st.sampled_from(["a", "ab", "abc"])):
        used, room = draw(st.integers(0, 40)), draw(st.integers(1, 60))
        limit = draw(st.sampled_from([0, used + room]))
        containers.append(("p", container(draw(st.sampled_from([500, 500, 990])), used, limit, name)))
    used = sum(grows.used_bytes for _, grows in containers) // MIB
    return node_state(
        containers,
        limits={"p": (used + draw(st.integers(1, 100))) * MIB},
        kubepods_bytes=None,
        thresholds=Thresholds(None, None, 0),
    )


@given(limited_pods())
def test_the_limit_of_a_pod_hits_whom_it_hits_in_the_simulation(state: NodeState) -> None:
    """Whichever container grows alone: the victim of the death, or itself where that names it."""
    (pod,) = state.pods
    deaths = next_deaths(state, contests=True)
    assert_first_deaths(state, next_deaths(state))
    at_limit = [death for death in deaths if death.mechanism == "pod limit"]
    distance = pod.limit_bytes - state.used_bytes
    for index, grows in enumerate(state.containers):
        growth = ContainerGrowth(index, grows.used_bytes + distance + 4096)
        step = simulate(state, Scenario(growth=(growth,))).steps[0]
        if step.mechanism != "pod limit":
            assert 0 < grows.limit_bytes - grows.used_bytes < distance
            continue
        (of_pod,) = at_limit
        assert of_pod.distance_bytes == distance
        itself = {contender.container for contender in of_pod.growing}
        assert step.container == (grows.name if grows.name in itself else of_pod.container) or step.tied


@pytest.mark.parametrize(
    ("pod_limit", "containers", "deaths"),
    [
        (150, {"a": (60, 100), "b": (10, 0)}, [("a", 40, False), ("b", 80, True)]),
        (150, {"a": (100, 130), "b": (10, 0)}, [("a", 30, False), ("a", 40, True)]),
        (
            200,
            {"a": (40, 60), "b": (20, 50), "c": (10, 0)},
            [("a", 20, False), ("b", 30, False), ("c", 130, True)],
        ),
        (180, {"a": (70, 100), "b": (70, 100)}, [("a", 30, False), ("b", 30, False), ("a", 40, True)]),
        (200, {"a": (70, 100), "b": (70, 100)}, [("a", 30, False), ("b", 30, False)]),
        (150, {"a": (60, 100), "b": (60, 100)}, [("a", 30, True)]),
        (100, {"a": (60, 100)}, [("a", 40, True)]),
    ],
)
def test_which_limits_of_a_pod_can_be_reached(
    pod_limit: int, containers: dict[str, tuple[int, int]], deaths: list[tuple[str, int, bool]]
) -> None:
    """Not one that a nearer limit always ends before; the last part says whether it is that of the pod."""
    state = node_state(
        [("p", container(500, used, limit, name)) for name, (used, limit) in containers.items()],
        limits={"p": pod_limit * MIB},
        kubepods_bytes=None,
        thresholds=Thresholds(None, None, 0),
    )
    own = (death for death in next_deaths(state) if not death.killer.is_node_wide)
    assert sorted(deaths) == sorted(
        (death.container, death.distance_bytes // MIB, death.mechanism == "pod limit") for death in own
    )


# Examples


def test_the_next_deaths_of_a_node() -> None:
    """`big` is near its limit, `small` has none."""
    found = node_state(
        [("big", container(500, 290, 300)), ("small", container(1000, 200))],
        limits={"big": 300 * MIB},
    )
    deaths = [
        (one.mechanism, one.distance_bytes // MIB, one.key[1], one.container, (one.frees_bytes or 0) // MIB)
        for one in next_deaths(found)
    ]
    capacity, kubepods = found.capacity_bytes // MIB, (found.kubepods_bytes or 0) // MIB
    evicted = min(capacity, kubepods) - 100 - 490
    assert deaths == sorted(
        [
            ("pod limit", 10, "big", "c", 290),
            ("kubelet eviction", evicted, "big", "", 290),
            ("kubepods limit", kubepods - 490, "small", "c", 200),
            ("node", capacity - 490, "small", "c", 200),
        ],
        key=lambda one: one[1],
    )


def test_a_soft_threshold_is_nearer_and_has_its_grace_period() -> None:
    kubelet = Kubelet(
        eviction_hard={"memory.available": "100Mi"},
        eviction_soft={"memory.available": "300Mi"},
        eviction_soft_grace_period={"memory.available": "1m30s"},
    )
    setup = NodeSetup.of(
        Node(memory_capacity_bytes=1000 * MIB, allocatable_memory_bytes=None), kubelet=kubelet
    )
    thresholds = build_node_state([], setup, {}).thresholds
    found = replace(node_state([("a", container(1000, 500))]), thresholds=thresholds)
    evictions = [one for one in next_deaths(found) if one.mechanism == "kubelet eviction"]
    assert [one.grace_seconds for one in evictions] == [90, None]
    assert evictions[1].distance_bytes - evictions[0].distance_bytes == 200 * MIB


@pytest.mark.parametrize(
    ("mib_per_second", "soft", "first", "earlier"),
    [
        (9, "", "kubelet eviction", None),
        (11, "", "node", "kubelet eviction"),
        (9, "300Mi", "node", "kubelet eviction"),
        (11, "300Mi", "node", None),
        (5, "300Mi", "kubelet eviction", None),
    ],
    ids=("noticed", "between two checks", "grace and a check", "within the grace period", "after it"),
)
def test_the_kernel_comes_first_where_memory_runs_out_before_the_kubelet_has_noticed(
    mib_per_second: int, soft: str, first: str, earlier: str | None
) -> None:
    """It checks every 10 s, and a soft threshold has its grace period of 30 s before that."""
    kubelet = Kubelet(
        eviction_hard={"memory.available": "0%" if soft else "100Mi"},
        eviction_soft={"memory.available": soft} if soft else {},
        eviction_soft_grace_period={"memory.available": "30s"} if soft else {},
    )
    setup = NodeSetup.of(Node(memory_capacity_bytes=1000 * MIB), kubelet=kubelet)
    state = node_state([("a", container(1000, 500)), ("b", container(1000, 100))], capacity_bytes=1000 * MIB)
    growth = Growth(mib_per_second * MIB, containers={(("x", "a"), "c"): mib_per_second * MIB})
    state = replace(
        state,
        thresholds=build_node_state([], setup, {}).thresholds,
        kubepods_bytes=None,
        growth=growth,
    )
    deaths = next_deaths(state)
    assert (deaths[0].mechanism, deaths[0].earlier and deaths[0].earlier.mechanism) == (first, earlier)
    assert deaths[0].earlier is None or (deaths[1].earlier and deaths[1].earlier.mechanism) is first


def on_a_node(own: int, evicts_at: int, reserved: int) -> NodeState:
    """A node of 16000 MiB, 10000 of which pods use; the kubelet evicts with less than `evicts_at` free."""
    state = node_state([("a", container(1000, 6000)), ("b", container(900, 4000))], own_bytes=own * MIB)
    return replace(
        state,
        capacity_bytes=16000 * MIB,
        total_bytes=16000 * MIB,
        kubepods_bytes=(16000 - reserved) * MIB,
        thresholds=Thresholds(evicts_at * MIB, evicts_at * MIB, 0),
    )


def test_of_the_killers_of_a_node_the_one_that_less_growth_reaches_comes_first() -> None:
    """By allocatable memory eviction is nearer, and less full than the node, which comes after it."""
    deaths = next_deaths(on_a_node(own=1850, evicts_at=100, reserved=1900))
    assert [(death.mechanism, death.distance_bytes // MIB) for death in deaths] == [
        ("kubelet eviction", 4000),
        ("kubepods limit", 4100),
        ("node", 4150),
    ]
    assert deaths[0].fullness < deaths[2].fullness
    assert_first_deaths(on_a_node(own=1850, evicts_at=100, reserved=1900), deaths)


@pytest.mark.parametrize(("evicts_at", "either"), [(30, True), (50, False), (500, False)])
def test_two_killers_as_near_as_a_sample_may_be_wrong_are_both_named(evicts_at: int, *, either: bool) -> None:
    """D11 of the recorded deaths: the threshold was 1Mi, and the kernel killed."""
    deaths = next_deaths(on_a_node(own=1000, evicts_at=evicts_at, reserved=0))
    earlier = {death.mechanism: death.earlier and death.earlier.mechanism for death in deaths}
    assert deaths[0].mechanism == "kubelet eviction"
    assert earlier["kubelet eviction"] == ("node" if either else None)
    assert earlier["node"] == ("kubelet eviction" if either else None)
    words = killed_by(deaths[0])
    assert words == ("kubelet evicts, unless the kernel kills first" if either else "kubelet evicts")


@pytest.mark.parametrize("adj", [OOM_SCORE_ADJ_MIN, 1000])
def test_an_immune_container_has_no_death_by_the_kernel(adj: int) -> None:
    found = next_deaths(node_state([("a", container(adj, 500, 600))]))
    by_kernel = [one for one in found if one.mechanism != "kubelet eviction"]
    assert bool(by_kernel) is (adj == 1000)


def test_a_pod_that_no_killer_can_reach_has_no_deaths() -> None:
    found = node_state([("a", container(OOM_SCORE_ADJ_MIN, 500))], priorities={"a": 2_000_000_000})
    assert deaths_of(found, {("", "a")}) == [] == next_deaths(found)


@pytest.mark.parametrize(
    ("pods", "is_own"),
    [
        ([("a", container(1000, 100, 200))], True),
        ([("a", container(1000, 90, 200)), ("a", container(1000, 90, 200, "d"))], False),
    ],
)
def test_the_limit_of_a_pod_with_one_container_is_that_containers_own(
    pods: list[tuple[str, SimulatedContainer]], is_own: bool
) -> None:
    found = node_state(pods, limits={"a": 200 * MIB})
    assert death(next_deaths(found), "pod limit").is_own is is_own
