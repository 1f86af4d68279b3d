"""Laws of class, score and rank, for pods that nobody thought of."""

import random
from itertools import pairwise

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kubelet import Node
from kubectl_qos.k8s.objects import (
    Container,
    ObjectMeta,
    Pod,
    PodSpec,
    ResourceRequirements,
    all_containers,
    resource_list,
)
from kubectl_qos.k8s.quantity import ZERO
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.resources import aggregate_requests
from kubectl_qos.k8s.usage import ContainerUsage, PodUsage
from kubectl_qos.qos.oom_score import (
    NO_ADJ,
    OOM_SCORE_ADJ_MIN,
    Kernel,
    PodAdj,
    badness,
    burstable_adj,
    least_request,
    most_adj,
)
from kubectl_qos.qos.qos_class import ClassStepKind, QosClass, computed_class, steps_to
from kubectl_qos.qos.ranking import rank_node

RELEASES = st.sampled_from([Release.of(f"1.{minor}") for minor in range(25, 38)])
CPUS = st.sampled_from([None, "0", "1m", "100m", "0.5", "1", "2"])
MEMORIES = st.sampled_from([None, "0", "1", "64Mi", "0.7Gi", "1Gi", "1024Mi", "3G", "40Gi"])


@st.composite
def containers(draw: st.DrawFn, name: str = "c") -> Container:
    def side() -> dict[str, str]:
        found = {"cpu": draw(CPUS), "memory": draw(MEMORIES)}
        return {key: value for key, value in found.items() if value is not None}

    resources = ResourceRequirements(requests=resource_list(side()), limits=resource_list(side()))
    return Container(name=name, resources=resources)


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    app = [draw(containers(f"c{number}")) for number in range(draw(st.integers(1, 4)))]
    init = [draw(containers(f"i{number}")) for number in range(draw(st.integers(0, 2)))]
    return Pod(
        metadata=ObjectMeta(name=f"p{draw(st.integers(0, 99))}", namespace="n"),
        spec=PodSpec(containers=tuple(app), init_containers=tuple(init), node_name="n1"),
    )


@given(pods(), RELEASES, st.randoms())
def test_the_class_does_not_depend_on_the_order_of_containers(
    pod: Pod, release: Release, chance: random.Random
) -> None:
    mixed = list(pod.containers)
    chance.shuffle(mixed)
    other = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, containers=tuple(mixed)))
    assert computed_class(pod, release) is computed_class(other, release)


@given(pods(), RELEASES)
def test_the_class_does_not_depend_on_which_containers_are_init_containers(
    pod: Pod, release: Release
) -> None:
    everything = (*pod.init_containers, *pod.containers)
    other = msgspec.structs.replace(
        pod, spec=msgspec.structs.replace(pod.spec, containers=everything, init_containers=())
    )
    assert computed_class(pod, release) is computed_class(other, release)


@st.composite
def burstable_pods(draw: st.DrawFn, release: Release) -> Pod:
    """Pods with sidecars too, and with a pod-level memory request that the containers fit into."""
    pod = draw(pods())
    init = tuple(
        msgspec.structs.replace(container, restart_policy=draw(st.sampled_from([None, "Always"])))
        for container in pod.init_containers
    )
    spec = msgspec.structs.replace(pod.spec, init_containers=init)
    pod = msgspec.structs.replace(pod, spec=spec)
    if draw(st.booleans()):
        claimed = aggregate_requests(default_pod(pod, release), release).get("memory", ZERO).value()
        memory = {"memory": str(claimed + draw(st.integers(0, 1 << 40)))}
        shared = ResourceRequirements(requests=resource_list(memory))
        pod = msgspec.structs.replace(pod, spec=msgspec.structs.replace(spec, resources=shared))
    return default_pod(pod, release)


@given(st.data(), RELEASES, st.integers(1 << 28, 1 << 45))
def test_a_burstable_oom_score_adj_lies_between_3_and_999(
    data: st.DataObject, release: Release, capacity: int
) -> None:
    pod = data.draw(burstable_pods(release))
    adj = PodAdj(pod, QosClass.BURSTABLE, capacity, release)
    assert all(3 <= adj.steps_for(container).adj <= 999 for container in all_containers(pod))


@given(st.data(), RELEASES, st.integers(0, 1 << 52), st.integers(0, 1 << 52), st.integers(1 << 28, 1 << 45))
def test_raising_a_memory_request_never_raises_the_score(
    data: st.DataObject, release: Release, one: int, other: int, capacity: int
) -> None:
    """Not the container's own, nor any other's, where no pod-level request is shared between them."""
    pod = data.draw(burstable_pods(release).filter(lambda pod: pod.spec.resources is None))
    name = data.draw(st.sampled_from([container.name for container in all_containers(pod)]))

    def adjs(request: int) -> list[int]:
        changed = _with(pod, name, "memory", str(request), requests=True, limits=False)
        found = PodAdj(changed, QosClass.BURSTABLE, capacity, release)
        return [found.steps_for(container).adj for container in all_containers(changed)]

    assert all(
        after <= before for after, before in zip(adjs(max(one, other)), adjs(min(one, other)), strict=True)
    )


NODE = Node(name="n1", memory_capacity_bytes=16 << 30)


@given(st.lists(pods(), max_size=8, unique_by=lambda pod: pod.name), st.randoms(), st.data())
def test_the_kill_order_is_a_total_preorder_whatever_the_input_order(
    found: list[Pod], chance: random.Random, data: st.DataObject
) -> None:
    release = Release.of("1.36")
    found = [default_pod(pod, release) for pod in found]
    usage = {
        (pod.namespace, pod.name): PodUsage.of_containers(
            {
                container.name: ContainerUsage(data.draw(st.integers(0, 1 << 33)))
                for container in pod.containers
            }
        )
        for pod in found
    }
    ranked = rank_node(found, NODE, release, usage).pods
    mixed = list(found)
    chance.shuffle(mixed)
    assert [row.pod.name for row in rank_node(mixed, NODE, release, usage).pods] == [
        row.pod.name for row in ranked
    ]
    ranks = [row.rank for row in ranked]
    points = [row.worst.points for row in ranked if row.worst is not None]
    assert None not in ranks
    for (rank, mine), (next_rank, next_mine) in pairwise(zip(ranks, points, strict=True)):
        assert rank is not None
        assert next_rank is not None
        assert mine is not None
        assert next_mine is not None
        assert (rank == next_rank) is (mine == next_mine)
        assert rank <= next_rank
        assert mine >= next_mine
    assert ranks[:1] in ([], [1])
    assert all(row.tied is (ranks.count(row.rank) > 1) for row in ranked)


@given(pods())
def test_the_steps_to_guaranteed_lead_there(pod: Pod) -> None:
    release = Release.of("1.36")
    pod = default_pod(pod, release)
    steps = steps_to(pod, QosClass.GUARANTEED, release)
    assert (not steps) is (computed_class(pod, release) is QosClass.GUARANTEED)
    for step in steps:
        value = str(step.value) if step.value is not None else {"cpu": "1", "memory": "1Gi"}[step.resource]
        pod = _with(
            pod,
            step.owner,
            step.resource,
            value,
            requests=True,
            limits=step.kind is not ClassStepKind.SET_REQUEST,
        )
    assert computed_class(pod, release) is QosClass.GUARANTEED


def _with(pod: Pod, owner: str, resource: str, value: str, *, requests: bool, limits: bool) -> Pod:
    def change(container: Container) -> Container:
        if container.name != owner:
            return container
        held = container.resources
        sides = {}
        for side, wanted in (("requests", requests), ("limits", limits)):
            values = {name: str(one) for name, one in (getattr(held, side) or {}).items()}
            sides[side] = resource_list({**values, resource: value} if wanted else values)
        return msgspec.structs.replace(container, resources=ResourceRequirements(**sides))

    changed = msgspec.structs.replace(
        pod.spec,
        containers=tuple(map(change, pod.containers)),
        init_containers=tuple(map(change, pod.init_containers)),
    )
    return msgspec.structs.replace(pod, spec=changed)


@given(st.integers(3, 998), st.integers(1 << 20, 1 << 45))
def test_the_least_request_for_an_oom_score_adj_is_the_inverse_of_the_formula(
    adj: int, capacity: int
) -> None:
    least = least_request(adj, capacity)
    assert burstable_adj(least, capacity) <= adj < burstable_adj(least - 1, capacity)
    assert least_request(999, capacity) == 0, "no Burstable container has more"


@given(
    st.integers(0, 1 << 30),
    st.integers(-(1 << 30), 1 << 31),
    st.integers(1000, 1 << 28),
    st.sampled_from([Kernel.SIGNED, Kernel.FLOORED]),
)
def test_the_highest_oom_score_adj_for_so_much_badness_is_the_inverse_of_it(
    used: int, points: int, total: int, kernel: Kernel
) -> None:
    adj = most_adj(used, points, total, kernel)
    if adj == NO_ADJ:
        assert badness(used, OOM_SCORE_ADJ_MIN, total, kernel) > points
        return
    assert badness(used, adj, total, kernel) <= points < badness(used, adj + 1, total, kernel)
