"""Goals about the kill order: the least requests that reach them, and why there are none."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from kubectl_qos.cli.set_edits import EditRequest, build_edits
from kubectl_qos.cluster.files import pod_from_yaml
from kubectl_qos.edit.goals import Goal, Obstacle, ObstacleReason, RankGoal, outlive, rank_at_least
from kubectl_qos.edit.preview import preview
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.kinds import pod_from_workload
from kubectl_qos.k8s.kubelet import Kubelet, Node, NodeSetup
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.snapshot import NodeOverrides, Snapshot
from kubectl_qos.k8s.usage import ContainerUsage, PodUsage
from kubectl_qos.present.findings import obstacle_remedy, obstacle_sentence
from kubectl_qos.qos.qos_class import QosClass

GI = 1 << 30
NODE = Node(name="n1", memory_capacity_bytes=16 * GI)
SETUP = NodeSetup(NODE, Kubelet(), Release.of("1.36"))


def pod(name: str, *resources: str, **fields: str) -> Pod:
    """A pod of containers a, b, c with these resources; `init` and other fields of its spec."""
    listed = ", ".join(f"{{name: {'abc'[at]}, resources: {{{one}}}}}" for at, one in enumerate(resources))
    more = "".join(f", {key}: {value}" for key, value in fields.items())
    return pod_from_yaml(
        f"kind: Pod\nmetadata: {{name: {name}, namespace: n}}\n"
        f"spec: {{nodeName: n1, containers: [{listed}]{more}}}\n"
    )


def using(**gi: float) -> dict[tuple[str, str], PodUsage]:
    """The same use by the first container of each pod."""
    return {
        ("n", name): PodUsage.of_containers({"a": ContainerUsage(int(amount * GI))})
        for name, amount in gi.items()
    }


def said(found: Goal) -> list[str]:
    assert found.obstacle is None
    assert not found.to_choose
    return [f"{one.owner or 'pod'} {one.side.value}.{one.resource}={one.quantity}" for one in found.edits]


OTHER = pod("other", "requests: {memory: 4Gi}")
"""750 at 16Gi."""


def sidecar(request: str) -> str:
    return f"[{{name: s, restartPolicy: Always, resources: {{requests: {{memory: {request}}}}}}}]"


SMALL = "requests: {memory: 1Gi}"
OF_POD = {"resources": "{requests: {memory: 2Gi}, limits: {memory: 4Gi}}"}
OUTLIVES: dict[str, tuple[Any, ...]] = {
    # One Mi below 4Gi + 1/1000 of 16Gi, which is 749, would still be 750: as high as the other.
    "the least that gives the step": (pod("mine", SMALL), {"a": 1}, 1, "a requests.memory=4113Mi"),
    "usage has to be outweighed": (pod("mine", SMALL), {"a": 3}, 1, "a requests.memory=6161Mi"),
    "usage outweighs": (pod("mine", SMALL), {"a": 0.5}, 4, ""),
    "a limit that would be exceeded": (
        *(pod("mine", f"{SMALL}, limits: {{memory: 2Gi}}"), {"a": 1}, 1),
        "a requests.memory=4113Mi, a limits.memory=4113Mi",
    ),
    "a limit that would not": (
        *(pod("mine", f"{SMALL}, limits: {{memory: 8Gi}}"), {"a": 1}, 1),
        "a requests.memory=4113Mi",
    ),
    "a limit of nothing": (
        *(pod("mine", "limits: {memory: 0}"), {"a": 1}, 1),
        "a requests.memory=4113Mi, a limits.memory=None",
    ),
    "a request that is not written": (
        *(pod("mine", "limits: {memory: 2Gi}"), {"a": 1}, 1),
        "a limits.memory=4113Mi",
    ),
    "the class stays by a limit above the request": (
        *(pod("mine", "requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 1, memory: 2Gi}"), {"a": 1}, 1),
        "a requests.memory=4113Mi, a limits.memory=4114Mi",
    ),
    "each container as far as it has to be": (
        *(pod("mine", SMALL, "", "requests: {memory: 8Gi}"), {"a": 1, "b": 0.5}, 1),
        "a requests.memory=4113Mi, b requests.memory=3589Mi",
    ),
    # A sidecar is spared like the least of the app containers: what is less is raised.
    "the app container of a sidecar": (
        *(pod("mine", "requests: {memory: 3Gi}", initContainers=sidecar("64Mi")), {"a": 0, "s": 1}, 1),
        "a requests.memory=4113Mi",
    ),
    "a sidecar": (
        *(pod("mine", "requests: {memory: 3500Mi}", initContainers=sidecar("4Gi")), {"a": 0, "s": 1}, 1),
        "s requests.memory=4113Mi",
    ),
    # a has 1Gi and half of what is left of the pod's, which together have to be 251/1000 of 16Gi.
    "where the pod has the request": (
        *(pod("mine", SMALL, "", **OF_POD), {"a": 1}, 1),
        "pod requests.memory=7201Mi, pod limits.memory=7201Mi",
    ),
    "what is reached needs nothing": (pod("mine", "requests: {memory: 8Gi}"), {"a": 1}, 1, ""),
}


@pytest.mark.parametrize(("mine", "gi", "other_gi", "edits"), OUTLIVES.values(), ids=OUTLIVES)
def test_the_least_that_outlives(mine: Pod, gi: dict[str, float], other_gi: float, edits: str) -> None:
    own = PodUsage.of_containers({name: ContainerUsage(int(one * GI)) for name, one in gi.items()})
    found = outlive(mine, OTHER, SETUP, [mine, OTHER], using(other=other_gi) | {("n", "mine"): own})
    assert ", ".join(said(found)) == edits
    assert preview(mine, found.edits, SETUP, [OTHER]).after.qos_class is QosClass.BURSTABLE


def test_a_pod_without_any_request_gets_one() -> None:
    mine, best_effort = pod("mine", ""), pod("other", "")
    assert said(outlive(mine, best_effort, SETUP, [best_effort])) == ["a requests.memory=1Mi"]


def test_the_nth_to_die_or_later() -> None:
    others = [pod(f"p{gi}", f"requests: {{memory: {gi}Gi}}") for gi in (2, 4, 8)]
    mine = pod("mine", "requests: {memory: 1Gi}")
    assert rank_at_least(mine, 1, SETUP, others) == Goal(())
    wanted = {2: "2065Mi", 3: "4113Mi", 4: "8209Mi"}
    for rank, text in wanted.items():
        found = rank_at_least(mine, rank, SETUP, others)
        assert said(found) == [f"a requests.memory={text}"]
        assert preview(mine, found.edits, SETUP, others).effects.rank_after == rank
    late = pod("mine", "requests: {memory: 12Gi}")
    assert rank_at_least(late, 2, SETUP, others) == Goal(())
    assert rank_at_least(mine, 5, SETUP, others).obstacle == Obstacle(ObstacleReason.TOO_FEW_PODS, ranked=4)


def test_of_pods_of_the_same_rank_none_outlives_the_other() -> None:
    twins = [pod("p1", "requests: {memory: 4Gi}"), pod("p2", "requests: {memory: 4Gi}")]
    mine = pod("mine", "requests: {memory: 4Gi}")
    assert said(rank_at_least(mine, 2, SETUP, twins)) == ["a requests.memory=4113Mi"]
    assert said(rank_at_least(mine, 3, SETUP, twins)) == ["a requests.memory=4113Mi"]


GUARANTEED = pod("other", "limits: {cpu: 1, memory: 1Gi}")
CRITICAL = {"priority": "2000001000", "priorityClassName": "system-node-critical"}


@pytest.mark.parametrize(
    ("mine", "other", "usage", "why", "sentence"),
    [
        (
            pod("mine", "requests: {memory: 1Gi}"),
            GUARANTEED,
            using(mine=1, other=1),
            Obstacle(ObstacleReason.BEYOND_BURSTABLE, "a", -998, 3),
            "container a needs an oom_score_adj of -998 or less, but a Burstable container has at least 3",
        ),
        (
            pod("mine", "limits: {cpu: 1, memory: 1Gi}"),
            GUARANTEED,
            using(mine=2, other=1),
            Obstacle(ObstacleReason.GUARANTEED, "a", -1060, -997),
            "it is Guaranteed: its oom_score_adj is -997 whatever it requests",
        ),
        (
            pod("mine", "requests: {memory: 1Gi}", **CRITICAL),
            GUARANTEED,
            using(mine=2, other=1),
            Obstacle(ObstacleReason.CRITICAL, "a", -1060, -997),
            "it is critical: its oom_score_adj is -997 whatever it requests",
        ),
        (
            pod("mine", "requests: {memory: 1Gi}"),
            OTHER,
            using(other=1),
            Obstacle(ObstacleReason.NO_USAGE),
            "its memory usage is unknown, unlike that of other pods on the node",
        ),
        (
            pod("mine", "requests: {memory: 1Gi}"),
            pod("elsewhere", ""),
            {},
            Obstacle(ObstacleReason.OTHER_NOT_THERE),
            "the two are not on the same node",
        ),
    ],
)
def test_why_none_reaches_it(
    mine: Pod, other: Pod, usage: dict[tuple[str, str], PodUsage], why: Obstacle, sentence: str
) -> None:
    found = outlive(mine, other, SETUP, [mine, OTHER if other is not GUARANTEED else GUARANTEED], usage)
    assert found == Goal((), obstacle=why)
    assert obstacle_sentence(why) == sentence


def test_pods_that_have_ended_and_nodes_of_unknown_size() -> None:
    mine = pod("mine", "requests: {memory: 1Gi}")
    ended = pod_from_yaml(
        "kind: Pod\nmetadata: {name: other, namespace: n}\nspec: {nodeName: n1, containers: [{name: a}]}\n"
        "status: {phase: Succeeded}\n"
    )
    assert outlive(mine, ended, SETUP, [ended]).obstacle == Obstacle(ObstacleReason.OTHER_HAS_NO_PROCESSES)
    assert outlive(ended, mine, SETUP, [mine]).obstacle == Obstacle(ObstacleReason.NO_PROCESSES)
    unknown = structs.replace(SETUP, node=Node(name="n1"))
    assert outlive(mine, OTHER, unknown, [OTHER]).obstacle == Obstacle(ObstacleReason.NO_CAPACITY)
    assert rank_at_least(mine, 2, unknown, [OTHER]).obstacle == Obstacle(ObstacleReason.NO_CAPACITY)


def test_what_containerd_holds_up() -> None:
    setup = structs.replace(SETUP, node=structs.replace(NODE, runtime_oom_score_adj=800))
    mine = pod("mine", "requests: {memory: 1Gi}")
    found = outlive(mine, OTHER, setup, [OTHER], using(mine=1, other=1))
    assert found.obstacle == Obstacle(ObstacleReason.RESTRICTED, "a", 799, 800)


def test_an_old_kernel_knows_nothing_below_one_point() -> None:
    setup = structs.replace(SETUP, node=structs.replace(NODE, kernel="5.4.0"))
    mine = pod("mine", "requests: {memory: 1Gi}")
    found = outlive(mine, GUARANTEED, setup, [GUARANTEED], using(mine=1, other=1))
    assert found.obstacle is not None
    assert found.obstacle.reason is ObstacleReason.BEYOND_BURSTABLE


@pytest.mark.parametrize("why", list(ObstacleReason))
def test_every_obstacle_has_a_sentence(why: ObstacleReason) -> None:
    assert obstacle_sentence(Obstacle(why, "c", 1, 3, 2))
    assert not obstacle_remedy(Obstacle(why)).endswith(".")


def test_a_workload_gets_what_its_pod_needs_most_and_its_other_pods_are_no_neighbours() -> None:
    def replica(name: str) -> Pod:
        return pod_from_yaml(
            f"kind: Pod\nmetadata: {{name: {name}, namespace: n, ownerReferences: [{owner}]}}\n"
            "spec: {nodeName: n1, containers: [{name: a}]}\n"
        )

    owner = "{kind: ReplicaSet, name: web, controller: true}"
    template = {"spec": {"containers": [{"name": "a"}]}}
    raw = {"metadata": {"name": "web", "namespace": "n"}, "spec": {"template": template}}
    workload = pod_from_workload("ReplicaSet", raw)
    replicas = [replica("web-1"), replica("web-2")]
    for order in (replicas, replicas[::-1]):
        snapshot = Snapshot(
            [*order, OTHER],
            usage=using(**{"web-1": 1, "web-2": 3, "other": 1}),
            overrides=NodeOverrides(memory_bytes=16 * GI),
        )
        request = EditRequest((), (), pod_level=False, kill_rank=RankGoal(("n", "other")))
        alone = Snapshot([replicas[1], OTHER], usage=snapshot.usage, overrides=snapshot.overrides)
        most = build_edits(request, replicas[1], alone)
        assert build_edits(request, workload, snapshot) == most
    request = EditRequest((), (), pod_level=False, kill_rank=RankGoal(rank=3))
    with pytest.raises(InputError, match="kill rank 3"):
        build_edits(request, workload, snapshot)
