"""Plans of priorities: laws for random nodes, brute force on small ones, examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

import msgspec
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from msgspec import structs

from kubectl_qos.edit.edits import Edit, current_value, effective_edits
from kubectl_qos.edit.fixes import NodeModel
from kubectl_qos.edit.goals import ObstacleReason, keep_burstable, raise_request
from kubectl_qos.edit.priorities import Inversion, PriorityPlan, plan_nodes, plan_priorities
from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.objects import (
    MEMORY,
    Container,
    ObjectMeta,
    OwnerReference,
    Pod,
    PodSpec,
    ResourceList,
    ResourceRequirements,
)
from kubectl_qos.k8s.quantity import in_bytes
from kubectl_qos.k8s.resources import pod_requests
from kubectl_qos.k8s.usage import ContainerUsage, PodKey, PodUsage
from kubectl_qos.k8s.validation import pod_refusals
from kubectl_qos.qos.eviction import node_eviction_ranks
from kubectl_qos.qos.killers import Killer
from kubectl_qos.qos.killers.eviction import EVICTION
from kubectl_qos.qos.killers.kernel import FULL_NODE
from kubectl_qos.qos.qos_class import computed_class
from kubectl_qos.qos.ranking import rank_node
from tests.edit.test_edit_laws import Cluster, clusters
from tests.edit.test_rank_goals import NODE, SETUP, pod, using

MI = 1 << 20
GI = 1 << 30
Edits = Mapping[PodKey, Sequence[Edit]]


def found_by_ranking(model: NodeModel, edits: Edits) -> set[Inversion]:
    """The inversions in the orders of the node with these edits."""
    setup = model.setup
    pods = [model.recreated(one, edits.get(one.key, ())) for one in model.pods]
    ranking = rank_node(pods, setup.node, setup.release, model.usage)
    kernel = {row.pod.key: row.rank for row in ranking.pods if row.rank is not None}
    orders: dict[Killer, dict[PodKey, int]] = {
        FULL_NODE: kernel,
        EVICTION: node_eviction_ranks(ranking, setup),
    }
    priority = {one.key: one.spec.priority or 0 for one in pods}
    return {
        Inversion(killer, first, second, (priority[first], priority[second]))
        for killer, order in orders.items()
        for first, second in product(order, order)
        if order[first] < order[second] and priority[first] > priority[second]
    }


def edits_of(plan: PriorityPlan) -> dict[PodKey, tuple[Edit, ...]]:
    return {move.pod.key: move.edits for move in plan.moves}


def without_each(edits: Edits) -> Iterator[tuple[PodKey, dict[PodKey, Sequence[Edit]]]]:
    for key, mine in edits.items():
        for edit in mine:
            yield key, {**edits, key: [one for one in mine if one is not edit]}


@st.composite
def models(draw: st.DrawFn) -> NodeModel:
    cluster: Cluster = draw(clusters())
    pods, setup, usage = cluster
    assume(not any(pod_refusals(default_pod(one, setup.release), setup.release) for one in pods))
    prioritized = [
        msgspec.structs.replace(one, spec=msgspec.structs.replace(one.spec, priority=priority))
        if one.spec.priority is None
        else one
        for one in pods
        for priority in [draw(st.integers(0, 3))]
    ]
    allocatable = draw(st.none() | st.integers(0, 200).map(lambda gi: gi * GI))
    known = {} if allocatable is None else {MEMORY: in_bytes(allocatable)}
    node = structs.replace(setup.node, status_allocatable=ResourceList(known))
    return NodeModel(NodeSetup(node, setup.kubelet, setup.release), prioritized, usage)


@given(models(), st.booleans())
def test_no_inversion_is_left_that_is_not_named_and_none_is_new(model: NodeModel, some: bool) -> None:
    keys = {one.key for one in model.pods[::2]} if some else None
    plan = plan_priorities(model, keys)
    before, after = found_by_ranking(model, {}), found_by_ranking(model, edits_of(plan))
    assert after <= before
    moves = list(edits_of(plan).items())
    assert all(found_by_ranking(model, dict(moves[:number])) <= before for number in range(len(moves)))
    requested = {one for one in after if keys is None or one.higher in keys}
    assert {one.inversion for one in plan.unsolved} == requested
    assert keys is None or edits_of(plan).keys() <= keys
    event(f"{len(plan.moves)} moves, {len(plan.unsolved)} unsolved")


@given(models())
def test_no_edit_is_superfluous_and_nobody_loses(model: NodeModel) -> None:
    plan = plan_priorities(model)
    edits = edits_of(plan)
    left = found_by_ranking(model, edits)
    pods = {one.key: one for one in model.pods}
    for key, fewer in without_each(edits):
        changed = model.recreated(pods[key], fewer[key])
        is_possible = not pod_refusals(changed, model.setup.release)
        if is_possible and computed_class(changed, model.setup.release) is model.qos_class(pods[key]):
            assert found_by_ranking(model, fewer) - left
    more = 0
    for move in plan.moves:
        assert model.qos_class(move.pod, move.edits) is model.qos_class(move.pod)
        for edit in move.edits:
            old = current_value(model.recreated(move.pod), *edit.target)
            assert edit.quantity is None or old is None or edit.quantity > old or old.is_zero
        requests = [
            pod_requests(model.recreated(move.pod, one), model.setup.release).get(MEMORY, in_bytes(0))
            for one in ((), move.edits)
        ]
        more += requests[1].value() - requests[0].value()
    assert more == sum(move.more_bytes for move in plan.moves)
    assert plan.free_bytes is None or more <= plan.free_bytes


# Workloads


@st.composite
def two_nodes(draw: st.DrawFn) -> list[NodeModel]:
    """The same pods on two nodes with another use each; some of them are of one workload."""
    model: NodeModel = draw(models())
    found = []
    for name in ("n1", "n2"):
        pods, usage = [], dict(model.usage)
        for number, one in enumerate(model.pods):
            owner = OwnerReference(kind="StatefulSet", name=f"w{number % 2}", controller=True)
            owners = (owner,) if number < 3 else ()
            metadata = msgspec.structs.replace(
                one.metadata, name=f"{one.name}-{name}", owner_references=owners
            )
            pods.append(msgspec.structs.replace(one, metadata=metadata))
            used = model.usage.get(one.key)
            if used is not None:
                usage[pods[-1].key] = draw(st.sampled_from([used, *model.usage.values()]))
        found.append(replace(model, pods=pods, usage=usage))
    return found


@settings(max_examples=settings().max_examples // 3)
@given(two_nodes())
def test_the_pods_of_a_workload_get_the_same_values_and_no_node_is_worse_off(found: list[NodeModel]) -> None:
    plans = plan_nodes(found, [None, None])
    largest: dict[object, set[str]] = {}
    for model, plan in zip(found, plans, strict=True):
        before, after = found_by_ranking(model, {}), found_by_ranking(model, edits_of(plan))
        assert after <= before
        assert {one.inversion for one in plan.unsolved} == after
        assert before - after <= {one for move in plan.moves for one in move.solves}
        assert plan.free_bytes is None or sum(move.more_bytes for move in plan.moves) <= plan.free_bytes
        for move in plan.moves:
            assert model.qos_class(move.pod, move.edits) is model.qos_class(move.pod)
            assert move.more_bytes >= 0
            if move.workload is not None:
                for edit in move.edits:
                    largest.setdefault((move.workload, edit.target), set()).add(str(edit.quantity))
    assert all(len(values) == 1 for values in largest.values())
    event(f"{len(largest)} values of templates")


def test_a_node_without_room_keeps_a_workload_as_it_is() -> None:
    """What one pod needs on its node all would get, and the other node has no room for that."""
    low, high = pod("low", "requests: {memory: 4Gi}"), pod("high", "requests: {memory: 1Gi}")
    low, high = (
        msgspec.structs.replace(one, spec=msgspec.structs.replace(one.spec, priority=priority))
        for priority, one in enumerate((low, high))
    )
    owner = (OwnerReference(kind="StatefulSet", name="db", controller=True),)
    mine, other = (
        msgspec.structs.replace(high, metadata=ObjectMeta(name=name, namespace="n", owner_references=owner))
        for name in ("db-0", "db-1")
    )
    roomy = NodeModel(SETUP, [low, mine], using(low=1, **{"db-0": 2}))
    room = ResourceList({MEMORY: in_bytes(GI)})
    tight_setup = structs.replace(SETUP, node=structs.replace(NODE, status_allocatable=room))
    for setup, ends in ((SETUP, True), (tight_setup, False)):
        tight = NodeModel(setup, [other], using(**{"db-1": 1}))
        plan, other_plan = plan_nodes([roomy, tight], [None, None])
        assert bool(plan.moves) is bool(other_plan.moves) is ends
        assert {one.obstacle.reason for one in plan.unsolved} == (set() if ends else {ObstacleReason.NO_ROOM})
        assert not ends or {move.edits for move in plan.moves} == {move.edits for move in other_plan.moves}


# Brute force

SIZES = [size * 64 * MI for size in range(1, 9)]


@st.composite
def small_nodes(draw: st.DrawFn) -> NodeModel:
    """Pods of one container on 1 Gi, all values on a grid; the kernel's steps are finer."""
    pods, usage = [], {}
    for number in range(draw(st.integers(2, 7))):
        size = draw(st.sampled_from(SIZES[:4]))
        limit = draw(st.none() | st.sampled_from([one for one in SIZES if one >= size]))
        resources = ResourceRequirements(
            requests=ResourceList({MEMORY: in_bytes(size)}),
            limits=ResourceList({} if limit is None else {MEMORY: in_bytes(limit)}),
        )
        name = f"p{number}"
        pods.append(
            Pod(
                metadata=ObjectMeta(name=name, namespace="n"),
                spec=PodSpec(
                    containers=(Container(name="a", resources=resources),),
                    node_name="n1",
                    priority=draw(st.integers(0, 3)),
                ),
            )
        )
        used = draw(st.sampled_from(SIZES[:5])) - draw(st.sampled_from([0, MI]))
        usage["n", name] = PodUsage.of_containers({"a": ContainerUsage(used)})
    node = structs.replace(NODE, memory_capacity_bytes=GI, status_allocatable=ResourceList())
    return NodeModel(structs.replace(SETUP, node=node), pods, usage)


def fewest_edits(model: NodeModel, most: int) -> int | None:
    """The fewest edits on the grid, fewer than `most`, without any inversion; None where there are none."""
    choices = []
    for one in sorted(model.pods, key=lambda one: one.spec.priority or 0):
        mine = []
        for size in SIZES:
            raised = keep_burstable(one, list(raise_request(one, "a", size)), model.setup.release)
            edits = effective_edits(one, raised if size > one.containers[0].requests[MEMORY].value() else ())
            changed = model.recreated(one, edits)
            ranking = rank_node([changed], model.setup.node, model.setup.release, model.usage)
            (row,) = ranking.pods
            assert row.worst is not None
            assert row.usage is not None
            exceeds = row.usage.working_set_bytes > changed.containers[0].requests[MEMORY].value()
            mine.append((len(edits), row.worst.points or 0, exceeds))
        choices.append((one.spec.priority or 0, sorted(set(mine))))

    def search(at: int, placed: list[tuple[int, int, bool]], left: int) -> int | None:
        if at == len(choices):
            return 0
        priority, mine = choices[at]
        best = None
        for cost, points, exceeds in mine:
            if cost > left:
                continue
            lower = [one for one in placed if one[0] < priority]
            if any(points > one[1] or (exceeds and not one[2]) for one in lower):
                continue
            rest = search(at + 1, [*placed, (priority, points, exceeds)], left - cost)
            if rest is not None:
                best, left = cost + rest, cost + rest - 1
        return best

    return search(0, [], most)


@given(small_nodes())
def test_there_are_never_more_edits_than_the_optimum(model: NodeModel) -> None:
    plan = plan_priorities(model)
    number = sum(len(move.edits) for move in plan.moves)
    event(f"{number} edits, {bool(plan.unsolved)}")
    if plan.unsolved:
        assert fewest_edits(model, 2 * len(model.pods)) is None
    else:
        assert fewest_edits(model, number - 1) is None


# Examples


def found_with(*pods: Pod, priorities: Sequence[int], **used: float) -> PriorityPlan:
    """Those of 16 Gi with these priorities, and the same use by the first container of each."""
    known = [
        msgspec.structs.replace(one, spec=msgspec.structs.replace(one.spec, priority=priority))
        for one, priority in zip(pods, priorities, strict=True)
    ]
    return plan_priorities(NodeModel(SETUP, known, using(**used)))


def test_what_follows_moves_too() -> None:
    """The second by 1 Gi and a step of the score, of 16.4 Mi, behind the first; the third behind it."""
    low, middle, high = (pod(name, "requests: {memory: 4Gi}") for name in ("low", "middle", "high"))
    plan = found_with(low, middle, high, priorities=[0, 1, 2], low=1, middle=2, high=2)
    assert [(move.pod.name, str(move.edits[0].quantity)) for move in plan.moves] == [
        ("high", "5129Mi"),
        ("middle", "5129Mi"),
    ]
    assert not plan.unsolved


def test_one_that_cannot_follow_keeps_others_from_passing_it() -> None:
    """Of the two of lower priority none may die after the highest, which is BestEffort."""
    low, middle = pod("low", "requests: {memory: 8Gi}"), pod("middle", "requests: {memory: 64Mi}")
    plan = found_with(low, middle, pod("high", ""), priorities=[0, 1, 2], low=1, middle=3, high=1)
    reasons = {
        (one.inversion.higher[1], one.inversion.lower[1]): one.obstacle.reason for one in plan.unsolved
    }
    assert reasons["high", "low"] is ObstacleReason.BEST_EFFORT
    assert reasons["middle", "low"] is ObstacleReason.ANOTHER_FIRST
