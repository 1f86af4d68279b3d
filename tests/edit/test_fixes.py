"""Fixes: laws for random nodes, the recorded deaths, and examples of each kind."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final

import msgspec
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from msgspec import structs

from kubectl_qos.analysis.deaths import deaths_on_nodes
from kubectl_qos.analysis.fix_list import fixes_for_pods, fixes_on_nodes, node_model, with_refusals
from kubectl_qos.cluster.files import DemoSource, pod_from_yaml
from kubectl_qos.edit.edits import Edit, Side, as_flags
from kubectl_qos.edit.fix_search import fixes_of_node, fixes_of_pods
from kubectl_qos.edit.fixes import (
    EvidenceKind,
    Fix,
    Fixes,
    FixKind,
    NeedEvidence,
    NodeModel,
    NoFixReason,
    Unfixed,
    friendly,
    same_death,
)
from kubectl_qos.edit.goals import least_units, raise_request
from kubectl_qos.edit.preview import StrategyKind, When
from kubectl_qos.edit.related import Owner, RelatedObjects, recommended_edits
from kubectl_qos.k8s.allocation import running_pod
from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kubelet import Kubelet, Node, NodeSetup
from kubectl_qos.k8s.managers import VerticalAutoscaler
from kubectl_qos.k8s.objects import (
    CPU,
    MEMORY,
    ContainerStatus,
    NodeObject,
    Pod,
    ResourceList,
    ResourceRequirements,
    all_containers,
    convert,
)
from kubectl_qos.k8s.quantity import in_bytes
from kubectl_qos.k8s.quota import LimitRange
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.resources import pod_requests
from kubectl_qos.k8s.snapshot import NodeOverrides, Scope, Snapshot
from kubectl_qos.k8s.usage import ContainerUsage, PodKey, PodUsage
from kubectl_qos.k8s.validation import pod_refusals
from kubectl_qos.present.fix_sentences import (
    basis_notes,
    fix_change,
    fix_effect,
    fix_evidence,
    notes,
    unfixed_sentence,
)
from kubectl_qos.present.preview import deaths_section, heading
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.simulation.ceiling import ContainerGrowth, Scenario
from kubectl_qos.qos.simulation.engine import simulate
from kubectl_qos.qos.simulation.next_death import own_deaths
from kubectl_qos.qos.simulation.node_state import Growth, NodeProcess, NodeState, ranked_node_state
from tests.cluster.cluster_objects import node as node_object
from tests.cluster.cluster_objects import pod as pod_object
from tests.edit.test_edit_laws import Cluster, clusters, edits_of
from tests.edit.test_rank_goals import pod, using
from tests.node_states import build_node_state
from tests.qos import test_recorded_kills as recorded
from tests.qos import test_simulation as simulated
from tests.recordings.files import read_json

MIB = 1 << 20
GIB = 1 << 30


# Laws


def model_of(found: Cluster, threshold: str) -> NodeModel:
    pods, setup, usage = found
    assume(not any(pod_refusals(default_pod(pod, setup.release), setup.release) for pod in pods))
    capacity = setup.node.memory_capacity_bytes or 0
    node = structs.replace(
        setup.node,
        allocatable_memory_bytes=capacity * 9 // 10,
        status_allocatable=ResourceList({MEMORY: in_bytes(capacity * 9 // 10)}),
    )
    kubelet = structs.replace(
        setup.kubelet, eviction_hard={"memory.available": threshold} if threshold else {}
    )
    return NodeModel(NodeSetup(node, kubelet, setup.release), pods, usage)


def one_mi_less(edits: Sequence[Edit]) -> list[list[Edit]]:
    """The edits with the values of one owner an Mi lower, those of all limits together: 0 would be none.

    A limit alone is the request too, and that of a container raises its pod's.
    """
    limits = {
        one.owner: one.quantity for one in edits if one.side is Side.LIMITS and one.quantity is not None
    }
    groups = [{one.owner} for one in edits if one.owner not in limits]
    groups += [set(limits)] if limits and min(size.value() for size in limits.values()) > MIB else []
    return [
        [
            Edit(*one.target, in_bytes(max(one.quantity.value() - MIB, 0)))
            if one.owner in group and one.quantity is not None
            else one
            for one in edits
        ]
        for group in groups
    ]


def is_kept(model: NodeModel, fix: Fix, edits: Sequence[Edit], keys: Collection[PodKey]) -> bool:
    """Whether the claim holds on the node with these edits."""
    state = model.state(keys, edits)
    if fix.kind is FixKind.NEIGHBOUR:
        assert fix.after is not None
        later = same_death(state, fix.after)
        return later is not None and fix.claim.is_kept(later)
    return fix.claim.is_kept(same_death(state, fix.death))


def check(model: NodeModel, found: Fixes, group: Collection[PodKey] = ()) -> None:
    # One of several containers may grow past what the least requests of now are for: it is raised alone.
    is_least = not model.growth.containers or all(len([*all_containers(pod)]) == 1 for pod in model.pods)
    for fix in found.fixes:
        event(fix.kind)
        keys = group if fix.workload else {fix.pod.key}
        assert is_kept(model, fix, fix.edits, keys)
        assert is_kept(model, fix, fix.minimal, keys)
        before, after = fix.effects.before.qos_class, fix.effects.after.qos_class
        assert (before is not after) is (fix.kind is FixKind.CLASS)
        assert not fix.preview.refusals
        if is_least and (after is not QosClass.GUARANTEED or before is after):
            assert not any(is_kept(model, fix, less, keys) for less in one_mi_less(fix.minimal))
        requested = sum(
            pod_requests(model.recreated(pod, fix.edits if pod.key in keys else ()), model.setup.release)
            .get(MEMORY, in_bytes(0))
            .value()
            for pod in model.pods
        )
        if fix.more_bytes > 0:
            [capacity] = (one.capacity for one in fix.preview.node_fit if one.resource == MEMORY)
            assert fix.fits is (requested <= capacity)


FEWER: Final = settings(max_examples=settings().max_examples // 3)
"""Each example builds the node a few hundred times."""


@FEWER
@given(clusters(), st.sampled_from(["", "100Mi"]), st.booleans())
def test_a_fix_has_the_effect_that_it_claims_and_one_mi_less_has_not(
    found: Cluster, threshold: str, grows: bool
) -> None:
    model = model_of(found, threshold)
    if grows:
        first, rate = model.pods[0], float(MIB)
        key = first.key, first.containers[0].name
        model = replace(model, growth=Growth(rate, {first.key: rate}, {key: rate}))
    check(model, fixes_of_node(model))
    check(model, fixes_of_pods([model], [model.pods[0].key]))


@FEWER
@given(clusters())
def test_the_pods_of_a_workload_get_the_same_edits(found: Cluster) -> None:
    model = model_of(found, "100Mi")
    first, second, *others = model.pods
    twin = msgspec.structs.replace(second, spec=first.spec)
    model = replace(model, pods=[first, twin, *others])
    group = {first.key, twin.key}
    fixes = fixes_of_pods([model], group, ("Deployment", "web"))
    check(model, fixes, group)
    assert all(fix.strategy is StrategyKind.TEMPLATE for fix in fixes.fixes if fix.workload)


@given(clusters(), st.data())
def test_a_tried_edit_is_on_the_node_as_if_all_of_it_were_built_again(
    found: Cluster, data: st.DataObject
) -> None:
    model = model_of(found, "100Mi")
    edits = data.draw(edits_of(model.pods[0]))
    first = model.pods[0].key
    assume(not pod_refusals(model.recreated(model.pods[0], edits), model.setup.release))
    pods = [
        model.recreated(pod, edits) if pod.key == first else running_pod(pod, model.setup.release)
        for pod in model.pods
    ]
    assert model.state({first}, edits) == build_node_state(pods, model.setup, model.usage)


@given(st.integers(0, 100), st.integers(0, 100), st.integers(0, 100), st.none() | st.integers(-5, 105))
def test_the_least_number_that_works(low: int, high: int, first: int, guess: int | None) -> None:
    """A guess costs two tries where it is right, and the number never depends on it."""
    tried: list[int] = []

    def works(number: int) -> bool:
        tried.append(number)
        return number >= first

    expected = next((number for number in range(low + 1, high + 1) if number >= first), None)
    assert least_units(low, high, works, guess) == expected
    assert len(tried) == len(set(tried)) <= (2 if guess == expected else 14)
    assert all(low < number <= high for number in tried)


@given(st.integers(1, 1 << 40))
def test_a_friendly_size_is_at_most_an_eighth_more(size: int) -> None:
    units = -(-size // MIB)
    assert units <= friendly(size) // MIB <= units + units // 8 + (units % 8 > 0)
    assert friendly(friendly(size)) == friendly(size)


def test_a_limit_that_was_offered_is_offered_again_while_it_suffices() -> None:
    snapshot = DemoSource().snapshot(Scope())

    def offered_after(mib: int) -> int:
        offers = {(("data", "importer-5f7b9c-2vtxk"), "c"): mib * MIB}
        first = fixes_of_node(
            node_model(replace(snapshot, offers=offers), "worker-2"), only_nearest=True
        ).fixes[0]
        (edit,) = first.edits
        assert edit.quantity is not None
        return edit.quantity.value() // MIB

    assert [offered_after(mib) for mib in (0, 120, 128, 132, 144, 150)] == [144, 144, 144, 132, 144, 150]


def test_a_search_builds_its_node_and_counts_each_neighbour_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted, built = list[PodKey](), list[int]()

    def counting(pod: Pod, *given: Any, **options: Any) -> Any:
        counted.extend([pod.key] * ("count" in options))
        return pod_requests(pod, *given, **options)

    def building(*given: Any, **options: Any) -> NodeState:
        built.append(1)
        return ranked_node_state(*given, **options)

    monkeypatch.setattr("kubectl_qos.qos.resize.pod_requests", counting)
    monkeypatch.setattr("kubectl_qos.edit.fixes.ranked_node_state", building)
    model = node_model(DemoSource().snapshot(Scope()), "worker-2")
    found = fixes_of_node(model).fixes
    assert len(found) > 2
    assert len(counted) == len(set(counted)) <= len(model.pods)
    assert len(built) == 1


def test_nodes_are_searched_one_by_one_and_none_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[weakref.ref[NodeModel]]()

    def noting(*given: Any) -> NodeModel:
        model = node_model(*given)
        made.append(weakref.ref(model))
        return model

    monkeypatch.setattr("kubectl_qos.analysis.fix_list.node_model", noting)
    snapshot = DemoSource().snapshot(Scope())
    found = fixes_on_nodes(snapshot, sorted(snapshot.nodes), Scope())
    assert len(made) == len(snapshot.nodes) > 1
    assert [model for model in made if model() is not None] == [], "commands collect no garbage"
    assert all(len(state.containers) <= 1 for state in found.states.values())
    assert not any(fix.preview.effects.ranking_after.pods for fix in found.fixes)


def test_urgencies_that_are_known_spare_a_search_and_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = DemoSource().snapshot(Scope())
    nodes = sorted(snapshot.nodes)
    first = {row.node: row.death.urgency for row in reversed(deaths_on_nodes(snapshot, nodes).rows)}
    expected = fixes_on_nodes(snapshot, nodes, Scope(), most=2)
    searched = list[Any]()
    monkeypatch.setattr("kubectl_qos.analysis.fix_list.next_urgency", lambda *given: searched.append(given))
    found = fixes_on_nodes(snapshot, nodes, Scope(), most=2, urgencies=first)
    assert [fix_change(fix) for fix in found.fixes] == [fix_change(fix) for fix in expected.fixes] != []
    assert found.further == expected.further > 0
    assert searched == []


# Recorded deaths


def recorded_model(run: Any, setup: NodeSetup, **own: Any) -> NodeModel:
    state = recorded.node_state(run, setup)
    pods = [convert(found["pod"], Pod) for found in run["before"]["pods"].values()]
    usage: dict[PodKey, PodUsage] = {}
    for one_pod in pods:
        mine = [one for one in state.containers if state.pod_for(one).key == one_pod.key]
        usage[one_pod.key] = PodUsage.of_containers(
            {one.name: ContainerUsage(one.working_set_bytes, one.used_bytes, 0) for one in mine}
        )
    return NodeModel(setup, pods, usage, **own)


def saves(model: NodeModel, fix: Fix, victim: str, scenario: Scenario) -> bool:
    """Whether the pod survives the run with that change; the index of what grows may be another one then."""
    before, after = model.state(), model.state({fix.pod.key}, fix.edits)
    (growth,) = scenario.growth
    if growth.container is not None:
        grows = before.containers[growth.container]
        place = after.find_container(before.pod_for(grows).pod.name, grows.name)
        growth = growth._replace(container=place)
    steps = simulate(after, scenario._replace(growth=(growth,))).steps
    return victim not in {step.key[1] for step in steps}


def fixed_by(model: NodeModel, victim: str, scenario: Scenario) -> list[Fix]:
    """The fixes for a pod after which that run does not kill it any more."""
    key = next(pod.key for pod in model.pods if pod.name == victim)
    fixes = fixes_of_pods([model], [key]).fixes
    return [fix for fix in fixes if saves(model, fix, victim, scenario)]


@cache
def full_node() -> tuple[NodeModel, Scenario]:
    """A process in system.slice grew until five containers had died."""
    run = recorded.recorded("oom-global-A")
    setup = recorded.setup_of(run, "")
    memory = recorded.meminfo(run)
    reclaimable = sum(memory[one] for one in ("MemFree", "Buffers", "Active(file)", "Inactive(file)"))
    used = memory["MemTotal"] - reclaimable - recorded.node_state(run, setup).used_bytes
    (hog,) = (one for one in run["before"]["daemons"] if one["comm"] == "memhog")
    growth = ContainerGrowth(None, used + run["hog_mib"] * MIB - recorded.process_bytes(hog))
    own = {"own_bytes": used, "own_processes": tuple(recorded.daemons(run))}
    return recorded_model(run, setup, **own), Scenario(growth=(growth,))


@cache
def full_kubepods() -> tuple[NodeModel, Scenario]:
    """A node-critical pod grew past allocatable."""
    run = recorded.recorded("oom-kubepods-C")
    model = recorded_model(run, recorded.setup_of(run, ""))
    state = model.state()
    (index,) = (index for index, one in enumerate(state.containers) if state.pod_for(one).critical)
    return model, Scenario(growth=(ContainerGrowth(index, 2732 * MIB),))


@cache
def evicted() -> tuple[NodeModel, Scenario]:
    """A process outside of pods grew until six pods were evicted."""
    run = recorded.recorded("oom-eviction")
    setup = recorded.setup_of(run, "600Mi")
    events = [one for one in run["events"] if one["reason"] == "Evicted"]
    events.sort(key=lambda event: str(event["lastTimestamp"]))
    gone = [one["involvedObject"]["name"] for one in events[:-1]]
    alone = recorded.node_state(run, setup)
    working_set = sum(one.working_set_bytes for one in alone.containers)
    now = alone.capacity_bytes - recorded.meminfo(run)["MemAvailable"] - working_set
    available = int(events[-1]["message"].partition("available: ")[2].partition("Ki")[0]) << 10
    left = [one.working_set_bytes for one in alone.containers if alone.pod_for(one).pod.name not in gone]
    then = alone.capacity_bytes - sum(left) - available
    model = recorded_model(run, setup, own_bytes=now)
    return model, Scenario(growth=(ContainerGrowth(None, then),), eviction=True)


KUBEPODS = {"oc-be-150", "oc-bu-req64-250", "oc-bu-req400-350", "oc-two"}
EVICTED = {"ev-be-50", "ev-be-200", "ev-bu-over-small", "ev-bu-over-big", "ev-prio-be", "ev-gu"}


@pytest.mark.parametrize(
    ("run", "saved", "lost"),
    [
        (full_node, {"oa-be-100", "oa-bu-small"}, {"oa-bu-over", "oa-be-200", "oa-bu-under"}),
        (full_kubepods, KUBEPODS, set()),
        (evicted, EVICTED, set()),
    ],
)
def test_a_fixed_pod_survives_the_run_that_killed_it(
    run: Callable[[], tuple[NodeModel, Scenario]], saved: set[str], lost: set[str]
) -> None:
    """Those that are lost die even as the last of the pods: then a process of the node grew.

    No request that has room saves the first two; as Guaranteed all would live, with a CPU limit
    that nobody has written.
    """
    model, scenario = run()
    victims = {step.key[1] for step in simulate(model.state(), scenario).steps}
    assert victims == saved | lost
    for name in victims:
        assert bool(fixed_by(model, name, scenario)) is (name in saved)
    for mine in (one for one in model.pods if one.name in lost):
        amounts = ((MEMORY, in_bytes(GIB)), (CPU, in_bytes(1)))
        guaranteed = [Edit("c", side, *one) for side in Side for one in amounts]
        steps = simulate(model.state({mine.key}, guaranteed), scenario).steps
        assert mine.name not in {step.key[1] for step in steps}
    if lost:
        mine = next(one for one in model.pods if one.name == "oa-bu-over")
        free = model.free_bytes
        assert free is not None
        edits = list(raise_request(model.recreated(mine), "c", 64 * MIB + free))
        steps = simulate(model.state({mine.key}, edits), scenario).steps
        assert mine.name in {step.key[1] for step in steps}


@recorded.LIMIT_RUNS
def test_a_container_survives_with_the_limit_of_its_peak(name: str) -> None:
    """Each was seen to grow to 300Mi, which a history tells; a sample before does not."""
    run = recorded.recorded(f"oom-{name}")
    setup = recorded.setup_of(run, "", single_process=name == "memcg-singleprocess")
    for pod_name, container in dict.fromkeys(recorded.killed(run)):
        pod = convert({**run["pods_after"][pod_name], "status": {"phase": "Running"}}, Pod)
        names = tuple(one.name for one in pod.containers)
        usage = PodUsage(names, tuple(30 * MIB if one == "b" else 16 * MIB for one in names))
        peak = NeedEvidence(EvidenceKind.HISTORY, 300 * MIB)
        model = NodeModel(setup, [pod], {pod.key: usage}, {(pod.key, container): peak})
        growth = ContainerGrowth(model.state().find_container(pod_name, container), 300 * MIB)
        assert fixed_by(model, pod_name, Scenario(growth=(growth,)))
        leak = replace(model, history={(pod.key, container): replace(peak, grows_without_end=True)})
        found = fixes_of_pods([leak], [pod.key])
        assert not [fix for fix in found.fixes if fix.kind is FixKind.LIMIT]
        assert NoFixReason.LEAK in {one.reason for one in found.unfixed}


# Examples


ALLOCATABLE = ResourceList({MEMORY: in_bytes(15 * GIB)})
SETUP = NodeSetup(
    Node(
        name="n1",
        memory_capacity_bytes=16 * GIB,
        status_allocatable=ALLOCATABLE,
    ),
    Kubelet(eviction_hard={"memory.available": "100Mi"}),
    Release.of("1.36"),
)


def node(*pods: Pod, setup: NodeSetup = SETUP, **gi: float) -> NodeModel:
    return NodeModel(setup, pods, using(**gi))


def said(found: Fixes) -> list[str]:
    return [f"{one.pod.name} {' '.join(as_flags(one.edits))} {one.when}" for one in found.fixes]


def test_a_limit_leaves_more_room_the_less_is_known() -> None:
    mine = pod("mine", "requests: {memory: 1Gi}, limits: {memory: 4Gi}")
    key = ("n", "mine")
    wanted = {EvidenceKind.SAMPLE: "5Gi", EvidenceKind.OOM_KILLED: "6Gi", EvidenceKind.HISTORY: "4608Mi"}
    for kind, limit in wanted.items():
        peak = NeedEvidence(kind, int(3.9 * GIB))
        known = replace(node(mine, mine=3.9), history={(key, "a"): peak})
        (own,) = (fix for fix in fixes_of_pods([known], [key]).fixes if fix.kind is FixKind.LIMIT)
        assert (as_flags(own.edits), own.evidence) == ([f"-c a --limits memory={limit}"], peak)


def test_an_ephemeral_container_has_no_limit_and_its_pod_has_fixes() -> None:
    mine = pod("mine", "requests: {memory: 1Gi}, limits: {memory: 4Gi}", ephemeralContainers="[{name: dbg}]")
    found = node(mine, pod("other", "requests: {memory: 9Gi}"), mine=3.9, other=9)
    assert {fix.pod.name for fix in fixes_of_node(found).fixes} == {"mine"}
    assert found.evidence(mine, "dbg") == NeedEvidence(EvidenceKind.NONE, 0)


def test_a_guaranteed_pod_stays_guaranteed() -> None:
    mine = pod("mine", "requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 1, memory: 1Gi}")
    found = fixes_of_node(node(mine, mine=0.9))
    assert said(found)[0] == "mine -c a --requests memory=1152Mi --limits memory=1152Mi now"
    assert found.fixes[0].kind is FixKind.LIMIT
    assert found.fixes[0].more_bytes == 128 * MIB


def test_what_the_node_has_no_room_for_is_said() -> None:
    allocatable = ResourceList({MEMORY: in_bytes(5632 * MIB)})
    small = structs.replace(SETUP, node=structs.replace(SETUP.node, status_allocatable=allocatable))
    mine = pod("mine", "requests: {memory: 1Gi}")
    other = pod("other", "requests: {memory: 4Gi}")
    found = fixes_of_node(node(mine, other, setup=small, mine=3, other=5))
    assert found.fixes
    assert {fix.fits for fix in found.fixes if fix.more_bytes} == {False}


def test_a_neighbour_without_a_limit_gets_one() -> None:
    mine = pod("mine", "requests: {memory: 1Gi}, limits: {memory: 8Gi}")
    other = pod("other", "requests: {memory: 10Gi}")
    fixes = fixes_of_node(node(mine, other, mine=4, other=7)).fixes
    limited = [one for one in fixes if one.kind is FixKind.NEIGHBOUR]
    assert [as_flags(one.edits) for one in limited] == [["-c a --limits memory=10Gi"]]
    assert limited[0].after is not None
    assert limited[0].after.key == ("n", "other")
    swaps = NodeSetup(
        structs.replace(SETUP.node, swap_capacity_bytes=2 * GIB),
        structs.replace(SETUP.kubelet, memory_swap_behavior="LimitedSwap"),
        SETUP.release,
    )
    model = node(mine, other, setup=swaps, mine=4, other=9)
    (fix,) = (one for one in fixes_of_node(model).fixes if one.kind is FixKind.NEIGHBOUR)
    kept = [is_kept(model, fix, some, [("n", "other")]) for some in (fix.minimal, *one_mi_less(fix.minimal))]
    assert kept == [True, False], "swap is room too"
    critical = msgspec.structs.replace(
        other, spec=msgspec.structs.replace(other.spec, priority=2_000_000_000)
    )
    fixes = fixes_of_node(node(mine, critical, mine=4, other=7)).fixes
    assert FixKind.NEIGHBOUR not in {one.kind for one in fixes}, "nobody wants it killed"


@pytest.mark.parametrize(("grows", "is_limited"), [("other", True), ("victim", False), ("both", False)])
def test_only_a_neighbour_that_grows_is_limited(grows: str, is_limited: bool) -> None:
    victim = pod("victim", "requests: {memory: 1Gi}, limits: {memory: 8Gi}")
    model = node(victim, pod("other", "requests: {memory: 10Gi}"), victim=4, other=7)
    rates = {"victim": 2.0 * MIB, "other": 1.0 * MIB}
    pods = {("n", name): rate for name, rate in rates.items() if grows in {name, "both"}}
    growth = Growth(sum(pods.values()), pods, {(key, "a"): rate for key, rate in pods.items()})
    kinds = {fix.kind for fix in fixes_of_node(replace(model, growth=growth)).fixes}
    assert (FixKind.NEIGHBOUR in kinds) is is_limited


KEY: Final = ("n", "mine")
OOM_END: Final = {"reason": "OOMKilled", "exitCode": 137}
LOOP: Final = {
    "name": "a",
    "restartCount": 7,
    "state": {"waiting": {"reason": "CrashLoopBackOff"}},
    "resources": {"limits": {"memory": "1Gi"}},
}


def looping(
    name: str = "mine",
    end: Mapping[str, Any] = OOM_END,
    statuses: Sequence[Mapping[str, Any]] = (),
    **metadata: Any,
) -> Pod:
    """A pod whose container waits after its seventh OOM kill, or with other statuses."""
    resources = {"requests": {"memory": "512Mi"}, "limits": {"memory": "1Gi"}}
    raw = {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "n", **metadata},
        "spec": {"nodeName": "n1", "containers": [{"name": "a", "resources": resources}]},
        "status": {
            "phase": "Running",
            "qosClass": "Burstable",
            "containerStatuses": statuses or [LOOP | {"lastState": {"terminated": end}}],
        },
    }
    return convert(raw, Pod)


@pytest.mark.parametrize(
    ("version", "owner", "strategy", "when"),
    [
        ("1.36.3", "", StrategyKind.RECREATE, When.RECREATED),
        ("1.36.3", "StatefulSet", StrategyKind.TEMPLATE, When.RECREATED),
        ("1.36.4", "StatefulSet", StrategyKind.IN_PLACE, When.RESTART),
        ("1.36", "StatefulSet", StrategyKind.TEMPLATE, When.RECREATED),
    ],
)
def test_a_container_that_waits_after_an_oom_kill_gets_a_limit_that_ends_the_loop(
    version: str, owner: str, strategy: StrategyKind, when: When
) -> None:
    reference = {"apiVersion": "apps/v1", "kind": owner, "name": "db", "uid": "u", "controller": True}
    mine = looping(ownerReferences=[reference] if owner else [])
    model = node(mine, setup=structs.replace(SETUP, release=Release.of(version)))
    for found in (
        fixes_of_node(model),
        fixes_of_node(model, only_nearest=True),
        fixes_of_pods([model], [KEY]),
    ):
        assert said(found) == [f"mine -c a --limits memory=2Gi {when}"]
        (fix,) = found.fixes
        assert (fix.kind, fix.strategy, fix.evidence.kind) == (
            FixKind.LIMIT,
            strategy,
            EvidenceKind.KILLED_EACH_TIME,
        )
        assert (fix.death.distance_bytes, fix.claim.room_bytes) == (0, GIB)
    assert fixes_of_node(model, [("n", "other")]).fixes == ()


REFUSED = "container create failed: set memory limit 4194304 too low; should be at least 12582912"


@pytest.mark.parametrize(
    ("limit", "phase", "said_of", "wanted"),
    [
        ("4Mi", "Pending", "waiting", "32Mi"),
        ("4Mi", "Running", "terminated", "32Mi"),
        ("20Mi", "Running", "terminated", "40Mi"),
        ("128", "Pending", "ContainerCreating", "32Mi"),
    ],
)
def test_a_limit_in_which_no_runtime_starts_a_container_becomes_one_in_which_any_does(
    limit: str, phase: str, said_of: str, wanted: str
) -> None:
    message = REFUSED if said_of != "ContainerCreating" else ""
    state: dict[str, Any] = {"state": {"waiting": {"reason": "CreateContainerError", "message": message}}}
    if said_of == "terminated":
        end = {"reason": "StartError", "exitCode": 128, "message": REFUSED}
        state = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": end}}
    raw = {
        "metadata": {"name": "mine", "namespace": "n"},
        "spec": {
            "nodeName": "n1",
            "containers": [{"name": "a", "resources": {"limits": {"memory": limit}}}],
        },
        "status": {
            "phase": phase,
            "qosClass": "Burstable",
            "containerStatuses": [{"name": "a", "restartCount": 0, **state}],
        },
    }
    found = fixes_of_node(node(convert(raw, Pod)))
    assert said(found)[0].startswith(f"mine -c a --limits memory={wanted} ")
    assert found.fixes[0].evidence.kind is EvidenceKind.NEVER_STARTED


def test_an_init_container_that_is_killed_each_time_gets_a_larger_limit_too() -> None:
    mine = looping()
    container, *_ = mine.spec.containers or ()
    waits = convert({"name": "b", "state": {"waiting": {"reason": "PodInitializing"}}}, ContainerStatus)
    spec = structs.replace(
        mine.spec, init_containers=(container,), containers=(structs.replace(container, name="b"),)
    )
    status = structs.replace(
        mine.status,
        phase="Pending",
        init_container_statuses=mine.status.container_statuses,
        container_statuses=(waits,),
    )
    setup = structs.replace(SETUP, release=Release.of("1.36.4"))
    found = fixes_of_node(node(structs.replace(mine, spec=spec, status=status), setup=setup))
    assert said(found) == ["mine -c a --limits memory=2Gi restart"]


def test_a_death_before_a_resize_says_nothing_about_the_limit_of_now() -> None:
    end = {"reason": "OOMKilled", "exitCode": 137, "finishedAt": "2026-01-02T10:00:00Z"}
    for at, known in (
        ("2026-01-02T10:00:01Z", NeedEvidence(EvidenceKind.SAMPLE, GIB // 2)),
        ("2026-01-02T10:00:00Z", NeedEvidence(EvidenceKind.KILLED_EACH_TIME, GIB)),
        (None, NeedEvidence(EvidenceKind.KILLED_EACH_TIME, GIB)),
    ):
        entries = [{"subresource": "status", "time": "2026-02-02T10:00:00Z"}]
        entries += [{"subresource": "resize", "time": at}] if at else []
        mine = looping(end=end, managedFields=entries)
        model = node(mine, mine=0.5)
        assert model.evidence(mine, "a") == known
        loops = [one for one in fixes_of_node(model, [KEY]).fixes if one.death.distance_bytes <= 0]
        assert bool(loops) == (known.kind is EvidenceKind.KILLED_EACH_TIME)


@pytest.mark.parametrize(
    ("state", "finished", "sampled", "reason", "kind"),
    [
        ("terminated", "10:00:25", "", "OOMKilled", EvidenceKind.KILLED_EACH_TIME),
        ("waiting", "20:00:00", "", "OOMKilled", EvidenceKind.KILLED_EACH_TIME),
        ("waiting", "10:00:25", "10:10:00", "OOMKilled", EvidenceKind.KILLED_EACH_TIME),
        ("running", "10:00:25", "", "OOMKilled", EvidenceKind.KILLED_EACH_TIME),
        ("running", "10:10:00", "10:20:00", "OOMKilled", EvidenceKind.KILLED_EACH_TIME),
        ("running", "10:10:00", "10:20:01", "OOMKilled", EvidenceKind.OOM_KILLED),
        ("running", "10:00:25", "", "Error", EvidenceKind.SAMPLE),
    ],
)
def test_a_limit_that_no_run_had_enough_of_says_nothing_of_the_need(
    state: str, finished: str, sampled: str, reason: str, kind: EvidenceKind
) -> None:
    """A container of 43 restarts needed four times its limit: half as much again is killed again."""
    end = {"reason": reason, "exitCode": 137, "startedAt": "2026-01-02T10:00:00Z"}
    end["finishedAt"] = f"2026-01-02T{finished}Z"
    states = {"state": {state: end if state == "terminated" else {}}}
    states |= {"lastState": {"terminated": end}} if state != "terminated" else {}
    mine = looping(statuses=[{"name": "a", "restartCount": 1, **states}])
    model, at = node(mine, mine=0.4), f"2026-01-02T{sampled}Z" if sampled else ""
    model = replace(model, usage={KEY: structs.replace(model.usage[KEY], timestamp=at)})
    assert model.evidence(mine, "a").kind is kind
    seen = replace(model, history={(KEY, "a"): NeedEvidence(EvidenceKind.HISTORY, 600 * MIB)})
    assert seen.evidence(mine, "a").kind is (EvidenceKind.HISTORY if kind is EvidenceKind.SAMPLE else kind)


@pytest.mark.parametrize("of_pod", [False, True])
def test_a_container_that_runs_again_and_has_no_sample_gets_twice_the_limit_that_killed_it(
    of_pod: bool,
) -> None:
    """Between two crashes of a loop the status says only `running`."""
    states = {"state": {"running": {}}, "lastState": {"terminated": OOM_END}}
    mine = looping(statuses=[{"name": "a", "restartCount": 8, **states}])
    if of_pod:
        (own,) = mine.containers
        without = structs.replace(own, resources=ResourceRequirements())
        second = structs.replace(without, name="b")
        spec = structs.replace(mine.spec, containers=(without, second), resources=own.resources)
        mine = structs.replace(mine, spec=spec)
    (fix,) = fixes_of_pods([node(mine)], [KEY]).fixes
    assert as_flags(fix.edits) == [f"{'--pod-level' if of_pod else '-c a'} --limits memory=2Gi"]
    limit = "pod limit" if of_pod else "own limit"
    assert fix_effect(fix) == f"{limit} if it uses as much as before: again → +1.0Gi"
    sentence = unfixed_sentence(Unfixed("n1", fix.death, NoFixReason.NO_USAGE))
    assert sentence.startswith(f"n/mine:a: {limit} if it uses as much as before: "), (
        "nobody knows that it is due"
    )


def test_a_container_that_was_killed_at_the_limit_of_its_pod_raises_that() -> None:
    """As D3 of node-1.36-d: it has no limit of its own, and its usage now is no evidence of its need."""
    mine = pod_from_yaml(
        "kind: Pod\nmetadata: {name: mine, namespace: n}\n"
        "spec: {nodeName: n1, resources: {requests: {memory: 64Mi}, limits: {memory: 128Mi}},"
        " containers: [{name: a}, {name: b}]}\n"
        "status: {phase: Running, qosClass: Burstable, containerStatuses: [{name: b},"
        " {name: a, restartCount: 1, lastState: {terminated: {reason: OOMKilled, exitCode: 137}}}]}\n"
    )
    used = {"a": ContainerUsage(20 * MIB), "b": ContainerUsage(10 * MIB)}
    model = replace(node(mine), usage={KEY: PodUsage.of_containers(used)})
    found = fixes_of_pods([model], [KEY])
    (fix,) = [one for one in found.fixes if one.kind is FixKind.LIMIT]
    assert (fix.death.mechanism, fix.evidence) == (
        "pod limit",
        NeedEvidence(EvidenceKind.KILLED_EACH_TIME, 128 * MIB),
    )
    assert as_flags(fix.edits) == ["--pod-level --limits memory=256Mi"]


def test_a_resize_that_left_the_pod_at_its_old_limit_has_a_remedy_and_no_edit() -> None:
    """Its limit of 200Mi would do: the pod was killed at the 60Mi of its cgroup (kubernetes#138760)."""
    mine = convert(read_json("node-1.36-d/low-pod-limit.json"), Pod)
    model = replace(
        node(mine), usage={("oom", "loop"): PodUsage.of_containers({"c": ContainerUsage(50 * MIB)})}
    )
    found = fixes_of_pods([model], [("oom", "loop")])
    own = next(one for one in found.unfixed if one.death.mechanism == "pod limit")
    assert (own.reason, own.death.distance_bytes) == (NoFixReason.LOW_POD_LIMIT, 10 * MIB)
    assert "still 60Mi" in unfixed_sentence(own)
    assert "kubectl qos set pod/loop -n oom -c c --limits memory=+1Mi" in unfixed_sentence(own)
    assert said(found) == []


def test_the_preview_of_a_loop_says_that_a_waiting_container_uses_nothing() -> None:
    model = node(looping(), setup=structs.replace(SETUP, release=Release.of("1.36.4")))
    (fix,) = fixes_of_pods([model], [KEY]).fixes
    assert fix_effect(fix) == "own limit at its next start: again → +1.0Gi"
    section = deaths_section(fix.effects, 0)
    assert section is not None
    when = heading(fix.effects, fix.when)
    assert section.answer == f"of this pod again own limit at its next start → +1.0Gi above that limit {when}"
    assert [line.text for line in section.lines] == [
        "a uses nothing while it waits for its next start; it was OOMKilled, and may be again",
        "1Gi was too small for a; whether 2Gi is enough is unknown",
        "before: again n/mine:a, own limit at its next start",
        f"{when}: +1.0Gi n/mine:a, own limit at its next start",
    ]


def test_the_loop_of_one_pod_counts_for_all_of_its_workload() -> None:
    model = node(looping(), looping("twin"), setup=structs.replace(SETUP, release=Release.of("1.36.3")))
    found = fixes_of_pods([model], [KEY, ("n", "twin")], ("Deployment", "web"))
    assert said(found) == [f"mine -c a --limits memory=2Gi {When.RECREATED}"]


def test_a_loop_is_no_nearer_death_for_the_others_of_its_node() -> None:
    """What waits uses nothing now: the distances are those of `next`."""
    other = pod("other", "requests: {memory: 1Gi}, limits: {memory: 2Gi}")
    with_loop, alone = (node(*pods, setup=SETUP, other=1.9) for pods in ([looping(), other], [other]))
    fixes = [fix for fix in fixes_of_node(with_loop).fixes if fix.pod.name == "other"]
    assert fixes
    assert [fix.death for fix in fixes] == [fix.death for fix in fixes_of_node(alone).fixes]


def test_a_class_is_changed_by_its_own_kind_when_the_pod_is_recreated() -> None:
    mine = pod("mine", "requests: {cpu: 1, memory: 6Gi}, limits: {cpu: 1, memory: 8Gi}")
    other = pod("other", "requests: {memory: 10Gi}")
    found = fixes_of_pods([node(mine, other, mine=5, other=1)], [("n", "mine")])
    (fix,) = (one for one in found.fixes if one.kind is FixKind.CLASS)
    assert (fix.when, fix.strategy) == (When.RECREATED, StrategyKind.RECREATE)
    assert fix.effects.after.qos_class is QosClass.GUARANTEED


def test_a_process_of_the_node_and_a_static_pod_have_no_fix() -> None:
    static = pod_from_yaml(
        "kind: Pod\nmetadata: {name: static, namespace: n,"
        " annotations: {kubernetes.io/config.source: file}}\n"
        "spec: {nodeName: n1, containers: [{name: a}]}\n"
    )
    found = fixes_of_node(node(static, static=1))
    assert {one.reason for one in found.unfixed} == {NoFixReason.STATIC}
    process = replace(node(), own_bytes=GIB, own_processes=(NodeProcess("d", 0, GIB),))
    assert {one.reason for one in fixes_of_node(process).unfixed} == {NoFixReason.PROCESS}


def recommending(policy: str = "", target: str = "2Gi", kind: str = "Pod", name: str = "mine") -> Any:
    containers = [
        {
            "containerName": "a",
            "target": {"cpu": "250m", "memory": target},
            "lowerBound": {"memory": "1Gi"},
            "upperBound": {"memory": "4Gi"},
        },
        {"containerName": "gone", "target": {"memory": "1Gi"}},
    ]
    spec: dict[str, Any] = {"targetRef": {"kind": kind, "name": name}}
    if policy:
        spec["resourcePolicy"] = {"containerPolicies": [{"containerName": "*", "controlledValues": policy}]}
    return convert(
        {
            "metadata": {"name": "vpa", "namespace": "n"},
            "spec": spec,
            "status": {"recommendation": {"containerRecommendations": containers}},
        },
        VerticalAutoscaler,
    )


@pytest.mark.parametrize(
    ("resources", "policy", "expected"),
    [
        ("requests: {cpu: 100m, memory: 1Gi}, limits: {cpu: 300m, memory: 3Gi}", "", "cpu=750m,memory=6Gi"),
        ("limits: {cpu: 1, memory: 1Gi}", "", "cpu=250m,memory=2Gi"),
        ("requests: {memory: 1Gi}, limits: {memory: 3Gi}", "RequestsOnly", ""),
        ("requests: {memory: 1Gi}", "", ""),
    ],
)
def test_an_autoscaler_moves_limits_in_proportion(resources: str, policy: str, expected: str) -> None:
    edits = list(recommended_edits(pod("mine", resources), recommending(policy)))
    requests = "-c a --requests cpu=250m,memory=2Gi"
    assert as_flags(edits) == [f"{requests} --limits {expected}" if expected else requests]


def test_what_an_autoscaler_recommends_is_one_of_the_fixes_with_what_becomes_of_the_death() -> None:
    mine, other = pod("mine", "requests: {memory: 1Gi}"), pod("other", "requests: {memory: 10Gi}")
    model = node(mine, other, mine=4, other=6)
    found = fixes_of_pods([replace(model, recommending={KEY: recommending()})], [KEY])
    (fix,) = (one for one in found.fixes if one.kind is FixKind.RECOMMENDED)
    assert fix.after == same_death(model.state({KEY}, fix.edits), fix.death)
    others = [one for one in found.fixes if one is not fix]
    assert [one.edits for one in others] == [one.edits for one in fixes_of_pods([model], [KEY]).fixes]
    assert fix_evidence(fix) == "VPA recommends: 2Gi (1Gi to 4Gi)"


def test_an_autoscaler_that_will_take_an_edit_back_is_named() -> None:
    mine = pod("mine", "requests: {memory: 1Gi}")
    raw = {"kind": "Pod", "metadata": {"name": "mine", "namespace": "n"}}
    snapshot = Snapshot([mine], usage=using(mine=1), overrides=NodeOverrides(memory_bytes=16 * GIB))
    related = RelatedObjects(raw, autoscalers=(recommending(),))
    found = fixes_for_pods(snapshot, [KEY], related=related)
    words = "sets the requests of these pods (mode Auto) and will overwrite these values"
    assert next(basis_notes(found)).startswith(f"VerticalPodAutoscaler vpa: {words}")
    assert FixKind.RECOMMENDED in {fix.kind for fix in found.fixes}
    installed = {"kind": "Deployment", "metadata": {"name": "d", "labels": {"olm.owner": "op.v1"}}}
    owned = structs.replace(related, owners=(Owner(installed, None),))
    by_olm = "Operator Lifecycle Manager op.v1: installed this operator and restores its own values"
    assert next(basis_notes(fixes_for_pods(snapshot, [KEY], related=owned))).startswith(by_olm)
    elsewhere = RelatedObjects(raw, autoscalers=(recommending(name="other"),))
    others = fixes_for_pods(snapshot, [KEY], related=elsewhere)
    assert not any("VerticalPodAutoscaler" in note for note in list(basis_notes(others)))
    assert FixKind.RECOMMENDED not in {fix.kind for fix in others.fixes}


def test_a_fix_that_a_limit_range_refuses_says_so_where_the_owner_is_unread_too() -> None:
    full = pod("mine", "requests: {memory: 1Gi}, limits: {memory: 2Gi}")
    snapshot = Snapshot([full], usage=using(mine=1.9), overrides=NodeOverrides(memory_bytes=16 * GIB))
    spec = {"limits": [{"type": "Container", "max": {"memory": "2Gi"}}]}
    ranges = (convert({"metadata": {"name": "lr"}, "spec": spec}, LimitRange),)
    related = RelatedObjects({"kind": "Pod", "metadata": {"name": "mine", "namespace": "n"}})
    fixes = fixes_for_pods(snapshot, [KEY])
    fixes = replace(fixes, fixes=(replace(fixes.fixes[0], strategy=StrategyKind.TEMPLATE),))
    said = "1: LimitRange lr: refuses this: maximum memory usage per Container is 2Gi"
    refused = with_refusals(fixes, lambda _: structs.replace(related, limit_ranges=ranges))
    assert any(note.startswith(said) for note in notes(refused))
    assert not with_refusals(fixes, lambda _: related).refusals


def test_what_autoscalers_recommend_is_among_the_fixes_of_a_node_and_a_namespace() -> None:
    mine, other = pod("mine", "requests: {memory: 1Gi}"), pod("other", "requests: {memory: 10Gi}")
    overrides = NodeOverrides(memory_bytes=16 * GIB)
    snapshot = Snapshot([mine, other], usage=using(mine=4, other=6), overrides=overrides)
    known = replace(snapshot, autoscalers=(recommending(), recommending(name="gone")))
    for scope in (Scope(), Scope(namespace="n")):
        found = fixes_on_nodes(known, [mine.node_name], scope)
        kinds = {fix.pod.name: fix.kind for fix in found.fixes if fix.kind is FixKind.RECOMMENDED}
        assert kinds == {"mine": FixKind.RECOMMENDED}
        assert [
            note
            for note in list(basis_notes(found))
            if "VerticalPodAutoscaler vpa: sets the requests" in note
        ]
        of_pod = fixes_for_pods(known, [KEY])
        assert {fix.edits for fix in of_pod.fixes} >= {
            fix.edits for fix in found.fixes if fix.kind is FixKind.RECOMMENDED
        }
    without = fixes_on_nodes(snapshot, [mine.node_name], Scope())
    assert FixKind.RECOMMENDED not in {fix.kind for fix in without.fixes}


def test_a_container_whose_limit_is_above_its_pods_dies_at_the_pods() -> None:
    def state_with(limit: int) -> NodeState:
        containers = simulated.container(500, 60, limit, "a"), simulated.container(500, 10, 0, "b")
        return simulated.node_state([("p", part) for part in containers], limits={"p": 150 * MIB})

    first = own_deaths(state_with(100), ("x", "p"))[0]
    later = same_death(state_with(200), first)
    assert (first.mechanism, first.container) == ("container limit", "a")
    assert later is not None
    assert (later.mechanism, later.distance_bytes) == ("pod limit", 80 * MIB)


def test_a_pod_that_grows_is_offered_the_request_that_holds_at_its_size_by_then() -> None:
    """Seen in the demo: from its first known growth on no request was offered for crunch."""
    snapshot = DemoSource().snapshot(Scope())
    rate = {(("batch", "crunch-x2k9f"), "c"): 345766.0}
    grown = replace(snapshot, rates=lambda keys: {key: rate[key] for key in rate if key[0] in keys})
    sizes = [
        in_force.quantity.value() >> 20
        for at in (snapshot, grown)
        for in_force in fixes_for_pods(at, [("batch", "crunch-x2k9f")]).fixes[0].edits
        if in_force.quantity is not None
    ]
    assert sizes == [140, 140 + 586], "it grows by what is left until the eviction"


def test_a_container_that_is_killed_again_and_again_is_fixed_first() -> None:
    raw = pod_object("web", limit="64Mi")
    raw["spec"]["containers"].append({"name": "side", "resources": {"requests": {"memory": "1Mi"}}})
    killed = {"terminated": {"reason": "OOMKilled", "exitCode": 137, "finishedAt": "2026-11-20T11:00:00Z"}}
    loop = {"name": "app", "restartCount": 4, "lastState": killed}
    loop["state"] = {"waiting": {"reason": "CrashLoopBackOff"}}
    raw["status"] |= {"containerStatuses": [loop, {"name": "side", "state": {"running": {}}}]}
    pods = (convert(raw, Pod), convert(pod_object("other"), Pod))
    usage = {
        pods[0].key: PodUsage.of_containers({"side": ContainerUsage(600 << 20)}),
        pods[1].key: PodUsage.of_containers({"app": ContainerUsage(300 << 20)}),
    }
    nodes = {"worker-1": convert(node_object(memory="1Gi"), NodeObject)}
    fixes = fixes_for_pods(Snapshot(pods=pods, nodes=nodes, usage=usage), [pods[0].key]).fixes
    assert [fix.death.waits for fix in fixes][:2] == [True, False]
