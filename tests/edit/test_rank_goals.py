"""Goals about the kill order: the least requests that reach them, and why there are none."""

from __future__ import annotations

from dataclasses import replace

import pytest

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


def test_the_request_is_the_least_that_gives_the_step_of_the_score() -> None:
    mine = pod("mine", "requests: {memory: 1Gi}")
    # One Mi below 4Gi + 1/1000 of 16Gi, which is 749, would still be 750: as high as the other.
    assert said(outlive(mine, OTHER, SETUP, [mine, OTHER], using(mine=1, other=1))) == [
        "a requests.memory=4113Mi"
    ]


def test_usage_has_to_be_outweighed() -> None:
    mine = pod("mine", "requests: {memory: 1Gi}")
    assert said(outlive(mine, OTHER, SETUP, [mine, OTHER], using(mine=3, other=1))) == [
        "a requests.memory=6161Mi"
    ]
    assert said(outlive(mine, OTHER, SETUP, [mine, OTHER], using(mine=0.5, other=4))) == []


def test_only_limits_that_would_be_exceeded_are_raised() -> None:
    low = pod("mine", "requests: {memory: 1Gi}, limits: {memory: 2Gi}")
    high = pod("mine", "requests: {memory: 1Gi}, limits: {memory: 8Gi}")
    usage = using(mine=1, other=1)
    assert said(outlive(low, OTHER, SETUP, [OTHER], usage)) == [
        "a requests.memory=4113Mi",
        "a limits.memory=4113Mi",
    ]
    assert said(outlive(high, OTHER, SETUP, [OTHER], usage)) == ["a requests.memory=4113Mi"]
    none = pod("mine", "limits: {memory: 0}")
    assert said(outlive(none, OTHER, SETUP, [OTHER], usage)) == [
        "a requests.memory=4113Mi",
        "a limits.memory=None",
    ]


def test_a_request_that_is_not_written_goes_up_with_its_limit() -> None:
    mine = pod("mine", "limits: {memory: 2Gi}")
    assert said(outlive(mine, OTHER, SETUP, [OTHER], using(mine=1, other=1))) == ["a limits.memory=4113Mi"]


def test_the_class_stays_by_a_limit_above_the_request() -> None:
    mine = pod("mine", "requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 1, memory: 2Gi}")
    found = outlive(mine, OTHER, SETUP, [OTHER], using(mine=1, other=1))
    assert said(found) == ["a requests.memory=4113Mi", "a limits.memory=4114Mi"]
    assert preview(mine, found.edits, SETUP, [OTHER]).after.qos_class is QosClass.BURSTABLE


def test_each_container_is_raised_as_far_as_it_has_to_be() -> None:
    mine = pod("mine", "requests: {memory: 1Gi}", "", "requests: {memory: 8Gi}")
    usage = using(other=1) | {
        ("n", "mine"): PodUsage.of_containers({"a": ContainerUsage(GI), "b": ContainerUsage(GI // 2)})
    }
    assert said(outlive(mine, OTHER, SETUP, [OTHER], usage)) == [
        "a requests.memory=4113Mi",
        "b requests.memory=3589Mi",
    ]


def test_a_pod_without_any_request_gets_one() -> None:
    mine, best_effort = pod("mine", ""), pod("other", "")
    assert said(outlive(mine, best_effort, SETUP, [best_effort])) == ["a requests.memory=1Mi"]


def sidecars(*requests: str) -> str:
    one = "{{name: s{}, restartPolicy: Always, resources: {{requests: {{memory: {}}}}}}}"
    return f"[{', '.join(one.format(at, held) for at, held in enumerate(requests))}]"


def test_a_sidecar_is_raised_or_the_app_container_whichever_is_less() -> None:
    # A sidecar is spared like the least of the app containers.
    usage = using(other=1) | {
        ("n", "mine"): PodUsage.of_containers({"a": ContainerUsage(0), "s0": ContainerUsage(GI)})
    }
    mine = pod("mine", "requests: {memory: 3Gi}", initContainers=sidecars("64Mi"))
    assert said(outlive(mine, OTHER, SETUP, [OTHER], usage)) == ["a requests.memory=4113Mi"]
    mine = pod("mine", "requests: {memory: 3500Mi}", initContainers=sidecars("4Gi"))
    assert said(outlive(mine, OTHER, SETUP, [OTHER], usage)) == ["s0 requests.memory=4113Mi"]


def test_where_the_pod_has_the_request_it_is_raised() -> None:
    mine = pod(
        "mine", "requests: {memory: 1Gi}", "", resources="{requests: {memory: 2Gi}, limits: {memory: 4Gi}}"
    )
    found = outlive(mine, OTHER, SETUP, [OTHER], using(mine=1, other=1))
    # a has 1Gi and half of what is left of the pod's, which together have to be 251/1000 of 16Gi.
    assert said(found) == ["pod requests.memory=7201Mi", "pod limits.memory=7201Mi"]


def test_what_is_reached_needs_nothing() -> None:
    mine = pod("mine", "requests: {memory: 8Gi}")
    assert outlive(mine, OTHER, SETUP, [OTHER], using(mine=1, other=1)) == Goal(())


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
    unknown = replace(SETUP, node=Node(name="n1"))
    assert outlive(mine, OTHER, unknown, [OTHER]).obstacle == Obstacle(ObstacleReason.NO_CAPACITY)
    assert rank_at_least(mine, 2, unknown, [OTHER]).obstacle == Obstacle(ObstacleReason.NO_CAPACITY)


def test_what_containerd_holds_up() -> None:
    setup = replace(SETUP, node=replace(NODE, runtime_oom_score_adj=800))
    mine = pod("mine", "requests: {memory: 1Gi}")
    found = outlive(mine, OTHER, setup, [OTHER], using(mine=1, other=1))
    assert found.obstacle == Obstacle(ObstacleReason.RESTRICTED, "a", 799, 800)


def test_an_old_kernel_knows_nothing_below_one_point() -> None:
    setup = replace(SETUP, node=replace(NODE, kernel="5.4.0"))
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
