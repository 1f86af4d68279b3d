"""Strategies of a change: which exist, what each sends, and why others are impossible."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from kubectl_qos.edit.edits import POD_LEVEL, Edit, Side
from kubectl_qos.edit.preview import StrategyKind, preview
from kubectl_qos.edit.related import OWNER, Owner, RelatedObjects
from kubectl_qos.edit.strategy import RolloutPlan, Strategy, find_strategies, rollout_plan, rollout_reach
from kubectl_qos.k8s.kinds import pod_from_workload
from kubectl_qos.k8s.kubelet import Kubelet, Node, NodeSetup
from kubectl_qos.k8s.objects import Pod, convert, resource_list
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.snapshot import Missing
from tests.cluster.changing_server import reference, workload

ALLOCATABLE = resource_list({"cpu": "4", "memory": "15Gi"})
NODE = Node(name="n1", memory_capacity_bytes=16 << 30, status_allocatable=ALLOCATABLE)
SETUP = NodeSetup(NODE, Kubelet(), Release.of("1.36"))
BOUNDS = {"maxSurge": 0, "maxUnavailable": "10%"}
PARTITION_2 = {"rollingUpdate": {"partition": 2}}
RESOURCES = {"requests": {"memory": "64Mi"}, "limits": {"memory": "128Mi"}}


def memory(text: str | None, side: Side = Side.REQUESTS, owner: str = "app") -> Edit:
    return Edit(owner, side, "memory", None if text is None else Quantity.parse(text))


def raw_pod(owner: str = "", *, version: str = "apps/v1", **metadata: Any) -> dict[str, Any]:
    owners = {"ownerReferences": [reference(owner, version)]} if owner else {}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "web-1", "namespace": "shop", "uid": "u-p", "resourceVersion": "9"}
        | owners
        | metadata,
        "spec": {"nodeName": "n1", "containers": [{"name": "app", "resources": RESOURCES}, {"name": "mesh"}]},
        "status": {"phase": "Running", "qosClass": "Burstable"},
    }


def owner_of(kind: str, name: str = "web", *, owner: str = "", **spec: Any) -> Owner:
    raw = workload(kind, name, RESOURCES, owner=owner, **spec)
    raw["metadata"] |= {"uid": f"u-{name}", "resourceVersion": "33"}
    return Owner(raw, pod_from_workload(kind, raw))


def found(
    raw: dict[str, Any], *edits: Edit, owners: tuple[Owner, ...] = (), missing: tuple[Missing, ...] = ()
) -> tuple[Strategy, ...]:
    pod = convert(raw, Pod) if raw["kind"] == "Pod" else pod_from_workload(raw["kind"], raw)
    edits = edits or (memory("96Mi"),)
    return find_strategies(
        pod, edits, preview(pod, edits, SETUP), RelatedObjects(raw, owners, missing=missing)
    )


def kinds(strategies_: tuple[Strategy, ...]) -> list[tuple[StrategyKind, bool]]:
    return [(strategy.kind, strategy.is_possible) for strategy in strategies_]


def test_a_bare_pod() -> None:
    in_place, manifest = found(raw_pod())
    assert in_place.request is not None
    assert in_place.request.path == "/api/v1/namespaces/shop/pods/web-1/resize"
    assert in_place.request.body["metadata"] == {"uid": "u-p", "resourceVersion": "9"}
    assert in_place.request.before == (memory("64Mi"),)
    assert (manifest.kind, manifest.request, manifest.reason) == (StrategyKind.RECREATE, None, "")


def test_what_is_refused_in_place_comes_last() -> None:
    cpu = [structs.replace(memory("1", side), resource="cpu") for side in Side]
    edits = (memory("128Mi"), *cpu)
    raw = raw_pod()
    del raw["spec"]["containers"][1]
    manifest, in_place = found(raw, *edits)
    assert manifest.kind is StrategyKind.RECREATE
    assert in_place.request is None
    assert "Pod QOS Class may not change as a result of resizing" in in_place.reason
    assert in_place.restarts == ()


def test_the_topmost_workload_is_changed() -> None:
    chain = (owner_of("ReplicaSet", "web-5", owner="Deployment/web"), owner_of("Deployment", replicas=3))
    in_place, template = found(raw_pod("ReplicaSet/web-5"), owners=chain)
    assert kinds((in_place, template)) == [(StrategyKind.IN_PLACE, True), (StrategyKind.TEMPLATE, True)]
    request = template.request
    assert request is not None
    assert (request.kind, request.name, request.uid, request.resource_version) == (
        "Deployment",
        "web",
        "u-web",
        "33",
    )
    assert request.subresource == ""
    assert template.pods == 3


def test_a_replica_set_below_a_deployment_is_never_changed_itself() -> None:
    below = owner_of("ReplicaSet", "web-5", owner="Deployment/web")
    forbidden = (Missing(f"{OWNER} deployment/web", "forbidden", "grant"),)
    for raw, owners in ((raw_pod("ReplicaSet/web-5"), (below,)), (dict(below.raw), ())):
        template = found(raw, owners=owners, missing=forbidden)[-1]
        assert (template.kind, template.request) == (StrategyKind.TEMPLATE, None)
        assert template.reason == "its owner deployment/web could not be read: forbidden"
    above = owner_of("Deployment")
    (strategy,) = found(dict(below.raw), owners=(above,))
    assert strategy.request is not None
    assert strategy.request.kind == "Deployment"


def test_only_what_differs_from_the_template_is_sent() -> None:
    chain = (owner_of("StatefulSet"),)
    raw = raw_pod("StatefulSet/web")
    raw["spec"]["containers"][0]["resources"] = {"requests": {"memory": "70Mi"}, "limits": {"memory": "1Gi"}}
    edits = (memory("96Mi"), memory("128Mi", Side.LIMITS))
    template = found(raw, *edits, owners=chain)[1]
    assert template.request is not None
    assert template.request.edits == (memory("96Mi"),)
    assert template.request.before == (memory("64Mi"),)
    template = found(raw, memory("64Mi"), owners=chain)[-1]
    assert template.reason == "the template of statefulset/web already has these values"


def test_a_container_that_is_injected() -> None:
    chain = (owner_of("DaemonSet"),)
    in_place, template = found(raw_pod("DaemonSet/web"), memory("96Mi", owner="mesh"), owners=chain)
    assert in_place.request is not None
    assert "the template of daemonset/web has no container mesh" in template.reason
    edits = (Edit(POD_LEVEL, Side.REQUESTS, "memory", Quantity.parse("256Mi")),)
    template = next(
        strategy
        for strategy in found(raw_pod("DaemonSet/web"), *edits, owners=chain)
        if strategy.pods is None
    )
    assert "mesh" not in template.reason


def test_an_owner_without_a_template_that_is_known() -> None:
    unknown = Owner({"kind": "Rollout", "metadata": {"name": "web"}}, None)
    _, template = found(raw_pod("Rollout/web"), owners=(unknown,))
    assert template.reason == "rollout/web has no known pod template"
    below = owner_of("StatefulSet", owner="Database/db")
    _, template = found(raw_pod("StatefulSet/web"), owners=(below, unknown))
    assert template.request is not None
    assert template.request.kind == "StatefulSet"


def test_a_job_is_not_changed() -> None:
    raw = workload("Job", "once", RESOURCES)
    (strategy,) = found(raw)
    assert (strategy.kind, strategy.request) == (StrategyKind.NEVER, None)
    assert strategy.reason == "the template of job/once is immutable: delete and recreate the job"
    in_place, template = found(raw_pod("Job/once"), owners=(owner_of("Job", "once"),))
    assert in_place.request is not None
    assert (template.kind, template.request, template.reason) == (
        StrategyKind.TEMPLATE,
        None,
        strategy.reason,
    )
    cron = (owner_of("Job", "once", owner="CronJob/often"), owner_of("CronJob", "often"))
    _, template = found(raw_pod("Job/once"), owners=cron)
    assert template.request is not None
    assert template.request.path == "/apis/batch/v1/namespaces/shop/cronjobs/often"
    assert (template.pods, template.note) == (0, "the next run gets the new values; running jobs keep theirs")


@pytest.mark.parametrize("source", ["file", "http"])
def test_static_pods_are_files(source: str) -> None:
    raw = raw_pod("Node/n1", version="v1", annotations={"kubernetes.io/config.source": source})
    (strategy,) = found(raw)
    assert (strategy.kind, strategy.request) == (StrategyKind.NEVER, None)
    assert strategy.reason == "the kubelet creates it from a file: edit that file on the node n1"


def test_pods_that_have_ended_keep_their_values() -> None:
    raw = raw_pod()
    raw["status"] = {"phase": "Failed"}
    assert found(raw)[-1].reason == "the pod has ended: Failed"


def test_what_no_server_accepts_has_no_strategy() -> None:
    for raw, owners in ((raw_pod(), ()), (raw_pod("Deployment/web"), (owner_of("Deployment"),))):
        given = found(raw, memory("1Gi"), owners=owners)
        assert not any(strategy.is_possible for strategy in given)
        assert all("must be less than or equal to memory limit" in strategy.reason for strategy in given)


def test_nothing_to_change() -> None:
    assert {strategy.reason for strategy in found(raw_pod(), memory("64Mi"))} == {"nothing changes"}


@pytest.mark.parametrize(
    ("kind", "spec", "status", "pods", "note"),
    [
        ("Deployment", {}, {}, 1, ""),
        ("Deployment", {"replicas": 0}, {}, 0, ""),
        ("Deployment", {"replicas": 4, "paused": True}, {}, 0, "it is paused"),
        ("StatefulSet", {"replicas": 5}, {}, 5, ""),
        ("StatefulSet", {"replicas": 5, "updateStrategy": {"type": "OnDelete"}}, {}, 0, "OnDelete"),
        ("StatefulSet", {"replicas": 5, "updateStrategy": PARTITION_2}, {}, 3, "below the partition 2"),
        ("DaemonSet", {}, {"desiredNumberScheduled": 7}, 7, ""),
        ("DaemonSet", {}, {}, None, ""),
        ("DaemonSet", {"updateStrategy": {"type": "OnDelete"}}, {"desiredNumberScheduled": 7}, 0, "OnDelete"),
        ("ReplicaSet", {"replicas": 3}, {}, 0, "existing pods keep their values"),
        ("ReplicationController", {"replicas": 3}, {}, 0, "existing pods keep their values"),
        ("CronJob", {}, {}, 0, "the next run"),
    ],
)
def test_how_many_pods_are_replaced(
    kind: str, spec: dict[str, Any], status: dict[str, Any], pods: int | None, note: str
) -> None:
    (strategy,) = found(workload(kind, "web", RESOURCES, **spec) | {"status": status})
    assert strategy.request is not None
    assert strategy.pods == pods
    assert (note in strategy.note) if note else not strategy.note


def test_restarts_are_named_in_place_alone() -> None:
    raw = raw_pod()
    policy = {"resourceName": "memory", "restartPolicy": "RestartContainer"}
    raw["spec"]["containers"][0] |= {"resizePolicy": [policy]}
    in_place, manifest = found(raw)
    assert (in_place.restarts, manifest.restarts) == (("app",), ())


@pytest.mark.parametrize(
    ("kind", "spec_", "plan"),
    [
        ("Deployment", {"replicas": 10}, RolloutPlan(10, 10, 3, 2)),
        ("Deployment", {"replicas": 1}, RolloutPlan(1, 1, 1, 0)),
        ("Deployment", {"replicas": 3, "strategy": {"type": "Recreate"}}, RolloutPlan(3, 3, 0, 3)),
        ("Deployment", {"replicas": 2, "strategy": {"rollingUpdate": BOUNDS}}, RolloutPlan(2, 2, 0, 1)),
        ("StatefulSet", {"replicas": 3}, RolloutPlan(3, 3, 0, 1)),
        ("StatefulSet", {"replicas": 3, "updateStrategy": PARTITION_2}, RolloutPlan(1, 1, 0, 1)),
        ("CronJob", {"jobTemplate": {"spec": {"parallelism": 5}}}, RolloutPlan(5, 0, 5, 0)),
        ("ReplicaSet", {}, RolloutPlan(1, 1, 0, 1)),
    ],
)
def test_how_a_workload_replaces_its_pods(kind: str, spec_: dict[str, Any], plan: RolloutPlan) -> None:
    assert rollout_plan({"kind": kind, "spec": spec_}) == plan


def test_a_daemon_set_replaces_as_many_pods_as_it_has() -> None:
    raw = {"kind": "DaemonSet", "status": {"desiredNumberScheduled": 7}}
    assert rollout_plan(raw) == RolloutPlan(7, 7, 0, 1)


PODS = st.integers(min_value=0, max_value=30)


@given(pods=PODS, surge=PODS, missing=PODS, room=st.integers(min_value=0, max_value=80))
def test_a_rollout_never_leaves_its_bounds(pods: int, surge: int, missing: int, room: int) -> None:
    missing = missing if surge or missing else 1
    looked: list[tuple[int, int]] = []

    def fits(made: int, left: int) -> bool:
        looked.append((made, left))
        return made + left < room

    reached, old = rollout_reach(RolloutPlan(pods, pods, surge, missing), fits)
    assert 0 <= reached <= pods
    assert reached + old >= min(pods, pods - missing)
    assert all(pods - missing <= made + left < pods + surge for made, left in looked)
    if reached == pods:
        assert old == 0
    if room > pods + surge:
        assert reached == pods
