"""Laws of changes, for random pods, changes, neighbours, usage and nodes."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from hypothesis import assume, event, given
from hypothesis import strategies as st

from kubectl_qos.edit.edits import (
    POD_LEVEL,
    Edit,
    Side,
    apply_edits,
    current_value,
    effective_edits,
    memory_value,
)
from kubectl_qos.edit.goals import UNIT_BYTES, Goal, outlive, rank_at_least, reach_class
from kubectl_qos.edit.preview import Preview, as_recreated, preview
from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kubelet import Kubelet, Node, NodeSetup
from kubectl_qos.k8s.objects import (
    MEMORY,
    Container,
    ObjectMeta,
    Pod,
    PodSpec,
    PodStatus,
    ResourceList,
    ResourceRequirements,
)
from kubectl_qos.k8s.quantity import ZERO, Format, Quantity
from kubectl_qos.k8s.releases import SUPPORTED_MINORS, Gate, Release
from kubectl_qos.k8s.usage import ContainerUsage, PodKey, PodUsage
from kubectl_qos.k8s.validation import admission_errors, pod_refusals
from kubectl_qos.qos.prediction import predict
from kubectl_qos.qos.qos_class import ClassStepKind, QosClass
from kubectl_qos.qos.ranking import rank_node

MI = 1 << 20
ADJ_GATES = (Gate.POD_LEVEL_RESOURCES, Gate.IN_PLACE_RESIZE, Gate.SIDECAR_CONTAINERS)
"""Those that change what counts as a request."""
RELEASES = [
    Release.of(f"1.{minor}", gates)
    for minor in SUPPORTED_MINORS
    for gates in ({}, *({gate.value: on} for gate in ADJ_GATES for on in (False, True)))
]
MEMORY_TEXTS = ["0", "1", "64Mi", "100M", "1Gi", "1.5Gi", "3Gi", "7Gi", "40Gi"]
CPU_TEXTS = ["0", "100m", "1"]
CRITICAL = ("system-node-critical", 2_000_001_000)


def quantities(texts: Sequence[str]) -> st.SearchStrategy[Quantity]:
    return st.sampled_from([Quantity.parse(text) for text in texts])


SIDES = st.none() | st.fixed_dictionaries(
    {}, optional={"cpu": quantities(CPU_TEXTS), "memory": quantities(MEMORY_TEXTS)}
).map(ResourceList)


@st.composite
def requirements(draw: st.DrawFn) -> ResourceRequirements:
    """Mostly such as a server takes: no request above its limit."""
    requests, limits = draw(SIDES), draw(SIDES)
    if requests and limits:
        limits = ResourceList({name: max(limit, requests.get(name, limit)) for name, limit in limits.items()})
    return ResourceRequirements(requests=requests, limits=limits)


@st.composite
def pods(draw: st.DrawFn, name: str) -> Pod:
    containers = tuple(
        Container(name=one, resources=draw(requirements())) for one in "abc"[: draw(st.integers(1, 3))]
    )
    init = tuple(
        Container(
            name=one, resources=draw(requirements()), restart_policy=draw(st.sampled_from(["Always", ""]))
        )
        for one in "ij"[: draw(st.integers(0, 2))]
    )
    own = draw(st.none() | st.none() | requirements())
    named, priority = draw(st.sampled_from([("", None)] * 9 + [CRITICAL]))
    return Pod(
        metadata=ObjectMeta(name=name, namespace="n", uid=f"u-{name}"),
        spec=PodSpec(
            containers=containers,
            init_containers=init,
            resources=own,
            node_name="n1",
            priority=priority,
            priority_class_name=named,
        ),
    )


@st.composite
def setups(draw: st.DrawFn) -> NodeSetup:
    node = Node(
        name="n1",
        memory_capacity_bytes=draw(st.sampled_from([500 * MI, 3_999_999_999, 16 << 30, 64 << 30])),
        swap_capacity_bytes=draw(st.sampled_from([0, 0, 2 << 30])),
        kernel=draw(st.sampled_from(["6.1.0", "6.1.0", "5.4.0"])),
        runtime_oom_score_adj=draw(st.sampled_from([None, None, None, -999, 500])),
    )
    return NodeSetup(node, Kubelet(), draw(st.sampled_from(RELEASES)))


@st.composite
def usages(draw: st.DrawFn, found: Sequence[Pod]) -> dict[PodKey, PodUsage]:
    """Of all pods, of some, or of none; of single containers it may be missing."""
    amounts = st.sampled_from([0, 1, 10 * MI, 700 * MI, 2 << 30, 5 << 30])
    known = draw(st.sampled_from(["all", "all", "some", "none"]))
    return {
        (pod.namespace, pod.name): PodUsage.of_containers(
            {
                one.name: ContainerUsage(draw(amounts))
                for one in (*pod.init_containers, *pod.containers)
                if known == "all" or draw(st.booleans())
            }
        )
        for pod in found
        if known == "all" or (known == "some" and draw(st.booleans()))
    }


Cluster = tuple[list[Pod], NodeSetup, dict[PodKey, PodUsage]]


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Pods of one node, the first of them the one to change."""
    found = [draw(pods(f"p{at}")) for at in range(draw(st.integers(2, 5)))]
    return found, draw(setups()), draw(usages(found))


@st.composite
def edits_of(draw: st.DrawFn, pod: Pod) -> list[Edit]:
    owners = [POD_LEVEL, *(one.name for one in (*pod.containers, *pod.init_containers))]
    one = st.builds(
        Edit,
        st.sampled_from(owners),
        st.sampled_from(list(Side)),
        st.sampled_from(["cpu", "memory"]),
        st.none() | quantities(["0", "100m", "1", "64Mi", "1Gi", "3Gi", "40Gi"]),
    )
    return draw(st.lists(one, max_size=5))


def as_new(pod: Pod) -> Pod:
    return msgspec.structs.replace(pod, status=PodStatus())


@given(clusters(), st.data())
def test_a_preview_is_the_prediction_of_the_changed_pod(found: Cluster, data: st.DataObject) -> None:
    (pod, *others), setup, usage = found
    edits = data.draw(edits_of(pod))
    seen = preview(pod, edits, setup, others, usage)
    changed = apply_edits(pod, effective_edits(pod, edits))
    expected = predict(as_new(changed), setup.node, kubelet=setup.kubelet, release=setup.release)
    assert seen.after == expected
    assert bool(seen.effects.files) <= bool(seen.edits)
    assert seen.before == predict(pod, setup.node, kubelet=setup.kubelet, release=setup.release)
    ranking = rank_node(
        [default_pod(one, setup.release) for one in (changed, *others)], setup.node, setup.release, usage
    )
    assert seen.effects.rank_after == next(row.rank for row in ranking.pods if row.pod.name == pod.name)
    again = preview(changed, edits, setup, others, usage)
    assert again.edits == ()
    assert again.after == expected


@given(clusters(), st.sampled_from(list(QosClass)))
def test_a_class_is_reached_and_no_edit_can_be_left_out(found: Cluster, target: QosClass) -> None:
    (pod, *others), setup, usage = found
    assume(runs(pod, setup.release))
    towards = reach_class(pod, target, setup.release)
    assert not any(step.kind is ClassStepKind.REMOVE_ALL for step in towards.to_choose), "needs no number"
    if towards.to_choose:
        return
    seen = preview(pod, towards.edits, setup, others, usage)
    assert seen.after.computed_class is target
    assert not seen.refusals
    for at in range(len(towards.edits)):
        fewer = (*towards.edits[:at], *towards.edits[at + 1 :])
        left_out = preview(pod, fewer, setup, others, usage)
        assert left_out.after.computed_class is not target or left_out.refusals


def runs(pod: Pod, release: Release) -> bool:
    """Whether neither server nor kubelet refuses a pod."""
    default = default_pod(pod, release)
    return not pod_refusals(default, release) and not admission_errors(default, release)


def check_least(pod: Pod, towards: Goal, reached: list[bool], less: list[list[Edit]]) -> None:
    """The goal is reached, nothing is lowered, only memory is touched, and one unit less does not do."""
    assert reached == [True] + [False] * len(less)
    for edit in towards.edits:
        assert edit.resource == MEMORY
        if edit.quantity is None:
            assert edit.side is Side.LIMITS
            continue
        assert edit.quantity.value() % UNIT_BYTES == 0
        held = current_value(pod, *edit.target)
        assert held is None or held < edit.quantity


def one_unit_less(pod: Pod, edits: Sequence[Edit], release: Release) -> list[list[Edit]]:
    """The edits with one request an Mi lower, but never lower than it is without them.

    A limit alone is the request too, where none is written.
    """
    default = default_pod(pod, release)
    requested = {edit.owner for edit in edits if edit.side is Side.REQUESTS}
    found = []
    for at, edit in enumerate(edits):
        if edit.quantity is None or (edit.side is Side.LIMITS and edit.owner in requested):
            continue
        lower = Quantity(edit.quantity.value() - UNIT_BYTES, 0, Format.BINARY_SI)
        held = current_value(default, edit.owner, Side.REQUESTS, edit.resource) or ZERO
        found.append([*edits[:at], Edit(*edit.target, max(lower, held)), *edits[at + 1 :]])
    return found


def is_outlived(seen: Preview, name: str) -> bool:
    rows = {row.pod.name: row for row in seen.effects.ranking_after.pods}
    other, mine = rows[name].rank, seen.effects.row_after.rank
    assert other is not None
    assert mine is not None
    return mine > other and not seen.refusals


@given(clusters())
def test_a_pod_outlives_another_and_one_unit_less_does_not_do(found: Cluster) -> None:
    (pod, *others), setup, usage = found
    assume(runs(pod, setup.release))
    towards = outlive(pod, others[0], setup, others, usage)
    event(str(towards.obstacle.reason) if towards.obstacle is not None else f"{len(towards.edits)} edits")
    if towards.obstacle is not None:
        assert towards.edits == ()
        return
    less = one_unit_less(pod, towards.edits, setup.release)
    seen = [preview(pod, edits, setup, others, usage) for edits in (towards.edits, *less)]
    check_least(pod, towards, [is_outlived(one, others[0].name) for one in seen], less)
    assert not seen[0].refusals
    assert seen[0].after.qos_class is not QosClass.GUARANTEED or not towards.edits
    for at in range(len(towards.edits)):
        fewer = preview(pod, [*towards.edits[:at], *towards.edits[at + 1 :]], setup, others, usage)
        assert not is_outlived(fewer, others[0].name) or fewer.after.qos_class is QosClass.GUARANTEED


def _is_late(seen: Preview, rank: int) -> bool:
    assert rank == 1 or seen.effects.rank_after is not None
    return rank == 1 or ((seen.effects.rank_after or 0) >= rank and not seen.refusals)


@given(clusters(), st.integers(1, 6))
def test_a_pod_dies_as_the_nth_or_later_and_one_unit_less_does_not_do(found: Cluster, rank: int) -> None:
    (pod, *others), setup, usage = found
    assume(runs(pod, setup.release))
    towards = rank_at_least(pod, rank, setup, others, usage)
    if towards.obstacle is not None:
        return
    less = one_unit_less(pod, towards.edits, setup.release)
    seen = [preview(pod, edits, setup, others, usage) for edits in (towards.edits, *less)]
    check_least(pod, towards, [_is_late(one, rank) for one in seen], less)


@given(clusters())
def test_where_there_is_no_way_no_request_is_one(found: Cluster) -> None:
    (pod, *others), setup, usage = found
    assume(runs(pod, setup.release))
    towards = outlive(pod, others[0], setup, others, usage)
    if towards.obstacle is None or (usage and (pod.namespace, pod.name) not in usage):
        return
    owners = [one.name for one in (*pod.containers, *pod.init_containers)]
    cap = Quantity(setup.node.memory_capacity_bytes or 0, 0, Format.BINARY_SI)
    recreated = default_pod(as_recreated(pod), setup.release)
    if any(memory_value(recreated, owner, Side.REQUESTS) > cap.value() for owner in owners):
        return  # The requests below would be lower ones.
    most = [Edit(owner, Side.REQUESTS, MEMORY, cap) for owner in owners]
    most += [Edit(owner, Side.LIMITS, MEMORY, None) for owner in owners]
    if pod.spec.resources is not None:
        total = Quantity(cap.value() * (len(owners) + 1), 0, Format.BINARY_SI)
        most += [Edit(POD_LEVEL, Side.REQUESTS, MEMORY, total), Edit(POD_LEVEL, Side.LIMITS, MEMORY, None)]
    assert not is_outlived(preview(pod, most, setup, others, usage), others[0].name)
