"""What a pod's spec means on a node is computed once for pods that share it, and never for others."""

import msgspec
import pytest
from msgspec import structs

from kubectl_qos.cli.commands.top import RISKS as OF_THE_COMMAND_LINE
from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.interning import Interner
from kubectl_qos.k8s.kubelet import Node
from kubectl_qos.k8s.objects import Annotations, Pod, ResourceRequirements, convert, resource_list
from kubectl_qos.k8s.releases import Release
from kubectl_qos.qos import ranking as of_nodes
from kubectl_qos.qos.ranking import RISKS, WORDS, Flag, Profiles, Ranking, Risk, rank_node, risk
from tests.cluster.cluster_objects import recorded_pods

CAPACITY = 4 << 30
NODE = Node(name="node1", memory_capacity_bytes=CAPACITY)


def facts(ranking: Ranking) -> list[tuple[object, ...]]:
    """Everything that a ranking says, the totals that are made when asked for too."""
    return [
        (
            *structs.astuple(row)[:-1],
            row.profile.qos,
            row.profile.computed_class,
            row.profile.containers,
            row.profile.request_bytes,
            row.profile.limit_bytes,
            row.profile.pod_level_limit_bytes,
            row.profile.eviction_request,
        )
        for row in ranking.pods
    ]


@pytest.mark.parametrize("version", ["1.20", "1.28", "1.30", "1.33", "1.36"])
def test_sharing_changes_no_ranking(version: str) -> None:
    release = Release.of(version)
    sharing, profiles = Interner(), Profiles(CAPACITY, release)
    plain = [default_pod(Interner().pod(convert(raw, Pod)), release) for raw in recorded_pods()]
    shared = [default_pod(sharing.pod(convert(raw, Pod)), release) for raw in recorded_pods() * 2][60:]
    rank_node(shared, NODE, release, profiles=profiles)
    again = rank_node(shared, NODE, release, profiles=profiles)
    assert facts(again) == facts(rank_node(plain, NODE, release))


def test_what_changes_a_profile_is_part_of_it() -> None:
    release = Release.of("1.36")
    profiles = Profiles(CAPACITY, release)
    pod = convert(
        {"spec": {"containers": [{"resources": {"requests": {"memory": "1Gi"}}}], "priority": 0}}, Pod
    )

    def adj(found: Pod) -> int | None:
        return profiles.profile_for(found).containers[0].adj

    assert adj(pod) == 750
    replace = msgspec.structs.replace
    critical = replace(pod.spec, priority=2_000_001_000, priority_class_name="system-node-critical")
    assert adj(replace(pod, spec=critical)) == -997
    assert adj(replace(pod, status=replace(pod.status, qos_class="BestEffort"))) == 1000
    shared = ResourceRequirements(requests=resource_list({"memory": "2Gi"}))
    assert adj(replace(pod, spec=replace(pod.spec, resources=shared))) == 500
    static = replace(pod.metadata, annotations=Annotations(config_source="file"))
    named = replace(pod.spec, priority_class_name="system-node-critical")
    assert adj(replace(pod, spec=named)) == 750
    assert adj(replace(pod, spec=named, metadata=static)) == -997


def test_the_same_spec_is_computed_once() -> None:
    release = Release.of("1.36")
    sharing, profiles = Interner(), Profiles(CAPACITY, release)
    of_the_pod = {"requests": {"memory": "2Gi"}}
    raw = {"spec": {"containers": [{"resources": {"requests": {"memory": "1Gi"}}}], "resources": of_the_pod}}
    first, second = (profiles.profile_for(sharing.pod(convert(raw, Pod))) for _ in range(2))
    assert first is second


def test_of_pods_that_all_differ_few_profiles_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_nodes, "MOST_PROFILES", 2)
    profiles = Profiles(CAPACITY, Release.of("1.36"))
    pods = [convert({"spec": {"containers": [{"name": name}]}}, Pod) for name in "abc"]
    kept = [profiles.profile_for(pod) for pod in pods[:2]]
    assert [profiles.profile_for(pod) for pod in pods[:2]] == kept
    profiles.profile_for(pods[2])
    assert profiles.profile_for(pods[0]) is not kept[0]


@pytest.mark.parametrize(
    ("flags", "rank", "expected"),
    [
        ((), 2, Risk.LOW),
        ((), None, Risk.LOW),
        ((Flag.CRITICAL, Flag.STATIC, Flag.RESIZING, Flag.CLASS_DIFFERS), 2, Risk.LOW),
        ((Flag.PRIORITY,), 2, Risk.MEDIUM),
        ((Flag.OVER_REQUEST,), None, Risk.MEDIUM),
        ((Flag.NEAR_LIMIT, Flag.OVER_REQUEST), 2, Risk.HIGH),
        ((), 1, Risk.NEXT),
        ((Flag.NEAR_LIMIT,), 1, Risk.NEXT),
    ],
)
def test_the_levels(flags: tuple[Flag, ...], rank: int | None, expected: Risk) -> None:
    assert risk(flags, rank, has_processes=True) is expected
    assert risk(flags, rank, has_processes=False) is Risk.NONE


def test_every_flag_of_risk_raises_the_level() -> None:
    assert {flag for flag in Flag if risk((flag,), 2, has_processes=True) > Risk.LOW} == RISKS


def test_the_command_line_knows_every_level_in_order() -> None:
    assert OF_THE_COMMAND_LINE == WORDS == tuple(level.word for level in sorted(Risk))
