"""What bears on a change: owners, limits, autoscalers; what cannot be had is said, and holds nothing up."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_qos.cluster.files import DemoSource, FileSource
from kubectl_qos.cluster.live import LiveSource
from kubectl_qos.edit.related import RelatedObjects
from kubectl_qos.errors import ApiError, InputError, QosError
from kubectl_qos.k8s.kinds import pod_from_workload
from kubectl_qos.k8s.objects import Pod, convert
from kubectl_qos.k8s.snapshot import Missing, Scope, Snapshot
from tests.cluster.changing_server import ChangingServer, reference, workload
from tests.cluster.cluster_objects import pod
from tests.cluster.conftest import ConnectTo
from tests.cluster.https_server import Answer, Request
from tests.cluster.object_server import status
from tests.cluster.serving import Serve

NAMESPACE = "/api/v1/namespaces/shop"
AUTOSCALERS = "/apis/autoscaling.k8s.io/v1/namespaces/shop/verticalpodautoscalers"
SCALERS = "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers"
BUDGETS = "/apis/policy/v1/namespaces/shop/poddisruptionbudgets"
RESOURCES = {"requests": {"memory": "64Mi"}}
LIMITS = [
    {
        "kind": "LimitRange",
        "metadata": {"name": "caps", "namespace": "shop"},
        "spec": {"limits": [{"type": "Container", "max": {"memory": "1Gi"}}]},
    },
    {
        "kind": "ResourceQuota",
        "metadata": {"name": "most", "namespace": "shop"},
        "spec": {"hard": {"requests.memory": "4Gi"}},
        "status": {"hard": {"requests.memory": "4Gi"}, "used": {"requests.memory": "1Gi"}},
    },
    {
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "auto", "namespace": "shop"},
        "spec": {"targetRef": {"kind": "Deployment", "name": "web"}},
    },
    {
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "more", "namespace": "shop"},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}},
    },
    {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep", "namespace": "shop"},
        "status": {"disruptionsAllowed": 1},
    },
]


def owned(owner: str, version: str = "apps/v1") -> dict[str, Any]:
    found = pod("web-1", request="64Mi")
    found["metadata"]["ownerReferences"] = [reference(owner, version)]
    return found


def chain() -> ChangingServer:
    server = ChangingServer(
        pods=[owned("ReplicaSet/web-5")],
        workloads=[
            workload("ReplicaSet", "web-5", RESOURCES, owner="Deployment/web"),
            workload("Deployment", "web", RESOURCES),
        ],
        limits=LIMITS,
    )
    server.absent.clear()
    return server


Around = Callable[[ChangingServer], RelatedObjects]


@pytest.fixture
def around(connect_to: ConnectTo) -> Around:
    """The objects related to the pod web-1 of a server."""
    return lambda server: LiveSource(connect_to(server)).related(convert(server.find("Pod", "web-1"), Pod))


def test_all_that_there_is(around: Around) -> None:
    server = chain()
    found = around(server)
    assert found.raw == server.find("Pod", "web-1")
    assert [(owner.kind, owner.name) for owner in found.owners] == [
        ("ReplicaSet", "web-5"),
        ("Deployment", "web"),
    ]
    assert [owner.raw for owner in found.owners] == [
        server.find("ReplicaSet", "web-5"),
        server.find("Deployment", "web"),
    ]
    assert [owner.template for owner in found.owners] == [
        pod_from_workload(owner.kind, owner.raw) for owner in found.owners
    ]
    assert [one.metadata.name for one in found.limit_ranges] == ["caps"]
    assert str(found.limit_ranges[0].spec.limits[0].max["memory"]) == "1Gi"
    assert str(found.quotas[0].status.used["requests.memory"]) == "1Gi"
    assert found.autoscalers[0].spec.target_ref.name == "web"
    assert found.scalers[0].spec.scale_target_ref.name == "web"
    assert found.budgets[0].status.disruptions_allowed == 1
    assert found.missing == ()


def test_of_a_workload(connect_to: ConnectTo) -> None:
    server = chain()
    source = LiveSource(connect_to(server))
    found = source.related(source.find("ReplicaSet", "shop", "web-5"))
    assert found.raw == server.find("ReplicaSet", "web-5")
    assert [owner.kind for owner in found.owners] == ["Deployment"]


def test_the_autoscalers_of_all_namespaces_or_of_one(connect_to: ConnectTo) -> None:
    server = chain()
    source = LiveSource(connect_to(server))
    for namespace, names in ((None, ["web"]), ("shop", ["web"]), ("elsewhere", [])):
        found = source.with_autoscalers(Snapshot(at="kept"), namespace)
        assert [one.spec.target_ref.name for one in found.autoscalers] == names
        assert (found.at, found.missing) == ("kept", ())
    server.absent.add("verticalpodautoscalers.autoscaling.k8s.io")
    assert source.with_autoscalers(Snapshot(), None) == Snapshot()


def test_a_cluster_without_autoscalers_misses_none(around: Around) -> None:
    server = chain()
    server.absent.add("verticalpodautoscalers.autoscaling.k8s.io")
    found = around(server)
    assert (found.autoscalers, found.missing) == ((), ())
    server.absent.add("limitranges")
    (missing,) = around(server).missing
    assert missing.what == "the list of LimitRanges in the namespace shop"
    assert missing.remedy == ""


def test_what_may_not_be_read_is_said_with_the_right_for_it(around: Around) -> None:
    server = chain()
    for path in (f"{NAMESPACE}/limitranges", f"{NAMESPACE}/resourcequotas", AUTOSCALERS, SCALERS, BUDGETS):
        server.faults[path] = status(403, "Forbidden", "no")
    server.faults["/apis/apps/v1/namespaces/shop/deployments/web"] = status(403, "Forbidden", "not this")
    found = around(server)
    no = "Error from server (Forbidden): no"
    in_shop = "in the namespace shop"
    assert found.missing == (
        Missing(
            "the owner deployment/web",
            "Error from server (Forbidden): not this",
            f"grant get on deployments.apps {in_shop}",
        ),
        Missing("the list of LimitRanges in the namespace shop", no, f"grant list on limitranges {in_shop}"),
        Missing(
            "the list of ResourceQuotas in the namespace shop", no, f"grant list on resourcequotas {in_shop}"
        ),
        Missing(
            "the list of VerticalPodAutoscalers in the namespace shop",
            no,
            f"grant list on verticalpodautoscalers.autoscaling.k8s.io {in_shop}",
        ),
        Missing(
            "the list of HorizontalPodAutoscalers in the namespace shop",
            no,
            f"grant list on horizontalpodautoscalers.autoscaling {in_shop}",
        ),
        Missing(
            "the list of PodDisruptionBudgets in the namespace shop",
            no,
            f"grant list on poddisruptionbudgets.policy {in_shop}",
        ),
    )
    assert [owner.kind for owner in found.owners] == ["ReplicaSet"]
    assert (found.limit_ranges, found.quotas, found.autoscalers) == ((), (), ())


def test_the_object_itself_must_be_there(connect_to: ConnectTo) -> None:
    server = chain()
    source = LiveSource(connect_to(server))
    requested = convert(server.find("Pod", "web-1"), Pod)
    server.delete("Pod", "web-1")
    with pytest.raises(ApiError, match='pods "web-1" not found'):
        source.related(requested)


@pytest.mark.parametrize(
    ("kind", "version"),
    [
        ("Rollout", "argoproj.io/v1alpha1"),
        ("Deployment", "example.com/v1"),
        ("Node", "v1"),
    ],
)
def test_kinds_that_are_not_known_are_only_named(
    serve: Serve, connect_to: ConnectTo, kind: str, version: str
) -> None:
    server = ChangingServer(pods=[owned(f"{kind}/web", version)], workloads=chain().others.values())
    running = serve(server)
    source = LiveSource(connect_to(running))
    (owner,) = source.related(convert(server.find("Pod", "web-1"), Pod)).owners
    assert owner.raw == {"apiVersion": version, "kind": kind, "metadata": {"name": "web"}}
    assert owner.template is None
    assert not any("deployments" in path for path in running.paths())


def test_an_owner_that_was_recreated_is_none(around: Around) -> None:
    server = chain()
    server.recreate("ReplicaSet", "web-5")
    found = around(server)
    assert found.owners == ()
    assert found.missing == (
        Missing(
            "the owner replicaset/web-5", "another object has its name now: it was deleted and recreated"
        ),
    )


def test_owners_that_own_each_other_end(around: Around) -> None:
    server = ChangingServer(
        pods=[owned("ReplicaSet/a")],
        workloads=[
            workload("ReplicaSet", "a", RESOURCES, owner="ReplicaSet/b"),
            workload("ReplicaSet", "b", RESOURCES, owner="ReplicaSet/a"),
        ],
    )
    assert len(around(server).owners) == 5


@pytest.mark.parametrize(
    "answer",
    [Answer(200, b"<html>"), Answer(hangs_up=True), Answer(500), Answer(429, headers={"Retry-After": "99"})],
)
def test_odd_answers_are_missing(around: Around, answer: Answer) -> None:
    server = chain()
    for path in (f"{NAMESPACE}/limitranges", "/apis/apps/v1/namespaces/shop/deployments/web"):
        server.faults[path] = answer
    started = time.monotonic()
    found = around(server)
    assert [one.what for one in found.missing] == [
        "the owner deployment/web",
        "the list of LimitRanges in the namespace shop",
    ]
    assert all(one.why for one in found.missing)
    assert time.monotonic() - started < 50


def test_a_server_that_is_slow_holds_nothing_up(around: Around, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubectl_qos.cluster.live.RELATED_SECONDS", 2.0)
    server = chain()
    slow = (
        f"{NAMESPACE}/limitranges",
        f"{NAMESPACE}/resourcequotas",
        AUTOSCALERS,
        "/apis/apps/v1/namespaces/shop/deployments/web",
    )
    arrived: list[float] = []

    def wait(_: Request) -> Answer:
        arrived.append(time.monotonic())
        return Answer(200, delay_seconds=30)

    for path in slow:
        server.faults[path] = wait
    started = time.monotonic()
    found = around(server)
    assert time.monotonic() - started < 20
    assert [owner.kind for owner in found.owners] == ["ReplicaSet"]
    assert [one.what for one in found.missing] == [
        "the owner deployment/web",
        "the list of LimitRanges in the namespace shop",
        "the list of ResourceQuotas in the namespace shop",
        "the list of VerticalPodAutoscalers in the namespace shop",
    ]
    assert {one.why for one in found.missing} == {
        "the server did not answer within 2 seconds",
        "the server did not answer in time",
    }
    assert max(arrived) - min(arrived) < 2, "they do not wait for one another"


def test_files_have_what_is_in_them(tmp_path: Path) -> None:
    server = chain()
    objects = [server.find("Pod", "web-1"), *server.others.values(), *LIMITS]
    other = [{**one, "metadata": {"name": "x", "namespace": "else"}} for one in LIMITS]
    path = tmp_path / "all.yaml"
    path.write_text(yaml.safe_dump_all([*objects, *other, {"kind": "LimitRange", "metadata": 7, "spec": 7}]))
    source = FileSource([str(path)])
    requested = next(one for one in source.snapshot(Scope()).pods if one.kind == "Pod")
    found = source.related(requested)
    assert found.raw == server.find("Pod", "web-1")
    assert [owner.kind for owner in found.owners] == ["ReplicaSet", "Deployment"]
    assert found.owners[1].template == pod_from_workload("Deployment", server.find("Deployment", "web"))
    assert [len(some) for some in (found.limit_ranges, found.quotas, found.autoscalers)] == [1, 1, 1]
    assert len(found.scalers) == 1
    assert found.missing == ()
    with pytest.raises(QosError, match="is no cluster"):
        source.writer()
    path.write_text("")
    with pytest.raises(InputError, match="pod web-1 is no longer in"):
        source.related(requested)


def test_the_demo_has_its_own() -> None:
    source = DemoSource()
    pods = source.snapshot(Scope()).pods
    for requested in pods:
        found = source.related(requested)
        assert found.raw["metadata"]["name"] == requested.name
        assert bool(found.owners) is bool(requested.metadata.owner_references)
