"""Which workload a pod belongs to: as its owner says, or what stands behind that owner."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubectl_qos.cluster.demo import DemoSource
from kubectl_qos.cluster.files import pod_from_yaml
from kubectl_qos.k8s.kinds import STATIC, Workload, find_workload
from kubectl_qos.k8s.objects import Pod, convert
from kubectl_qos.k8s.snapshot import Scope
from tests.cluster.cluster_objects import NODE_1, recorded_pods

API_SERVER = NODE_1.parent / "apiserver-1.36"


def owner(kind: str, name: str, *, controller: bool | None = True) -> dict[str, Any]:
    found = {"apiVersion": "v1", "kind": kind, "name": name, "uid": "u"}
    return found if controller is None else {**found, "controller": controller}


def pod(*owners: dict[str, Any], name: str = "p", labels: dict[str, str] | None = None) -> Pod:
    metadata = {"name": name, "namespace": "n", "ownerReferences": list(owners), "labels": labels}
    return convert({"metadata": metadata, "spec": {"containers": [{"name": "c"}]}}, Pod)


def recorded(name: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = json.loads((API_SERVER / name).read_text())["response"]["body"]["items"]
    return items


def test_recorded_pods_of_a_deployment_lead_to_it_as_their_replica_set_does() -> None:
    (behind,) = {
        one["metadata"]["name"]: one["metadata"]["ownerReferences"][0]
        for one in recorded("052-replicasets-list.json")
        if one["metadata"].get("ownerReferences")
    }.values()
    pods = [convert(one, Pod) for one in recorded("053-pods-of-deployment.json")]
    assert len(pods) == 2
    assert {find_workload(one) for one in pods} == {Workload(behind["kind"], "rec", behind["name"])}


def test_recorded_pods_of_a_node_are_static_or_stand_for_themselves() -> None:
    found = [find_workload(convert(one, Pod)) for one in recorded_pods()]
    static = [one for one in found if one.kind == STATIC]
    assert static
    assert not any(one.name.endswith("-node1") for one in static)
    assert {one.kind for one in found} == {STATIC, "Pod"}


@pytest.mark.parametrize(
    ("label", "kind", "name"),
    [
        ("6c7fd9b5d", "Deployment", "cart"),
        ("5d", "ReplicaSet", "cart-6c7fd9b5d"),
        ("b5d", "ReplicaSet", "cart-6c7fd9b5d"),
        ("cart-6c7fd9b5d", "ReplicaSet", "cart-6c7fd9b5d"),
        ("other", "ReplicaSet", "cart-6c7fd9b5d"),
        ("", "ReplicaSet", "cart-6c7fd9b5d"),
    ],
)
def test_a_deployment_is_named_by_its_replica_set_without_the_hash_that_pods_carry(
    label: str, kind: str, name: str
) -> None:
    found = pod(owner("ReplicaSet", "cart-6c7fd9b5d"), labels={"pod-template-hash": label})
    assert find_workload(found) == Workload(kind, "n", name)


def test_a_replica_set_whose_pods_carry_no_hash_was_made_by_a_person() -> None:
    for labels in (None, {}, {"app": "cart"}):
        found = pod(owner("ReplicaSet", "cart-6c7fd9b5d"), labels=labels)
        assert find_workload(found) == Workload("ReplicaSet", "n", "cart-6c7fd9b5d")


@pytest.mark.parametrize(
    ("job", "kind", "name"),
    [
        ("backup-29384520", "CronJob", "backup"),
        ("backup-2026-29384520", "CronJob", "backup-2026"),
        ("backup-2938452", "Job", "backup-2938452"),
        ("backup-293845201", "Job", "backup-293845201"),
        ("backup-29384520-x", "Job", "backup-29384520-x"),
        ("backup29384520", "Job", "backup29384520"),
        ("29384520", "Job", "29384520"),
        ("migrate-2026-11", "Job", "migrate-2026-11"),
    ],
)
def test_a_cron_job_is_named_by_its_job_without_the_minutes(job: str, kind: str, name: str) -> None:
    assert find_workload(pod(owner("Job", job))) == Workload(kind, "n", name)


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet", "Rollout", "Deployment"])
def test_any_other_owner_is_the_workload_itself(kind: str) -> None:
    found = pod(owner(kind, "x-29384520"), labels={"pod-template-hash": "29384520"})
    assert find_workload(found) == Workload(kind, "n", "x-29384520")


def test_a_static_pod_is_named_without_its_node() -> None:
    found = pod(owner("Node", "control-1"), name="kube-apiserver-control-1")
    assert find_workload(found) == Workload(STATIC, "n", "kube-apiserver")


def test_of_several_owners_the_controller_counts() -> None:
    found = pod(owner("Backup", "b", controller=False), owner("StatefulSet", "db"))
    assert find_workload(found) == Workload("StatefulSet", "n", "db")


def test_of_several_owners_without_a_controller_none_counts() -> None:
    found = pod(owner("Backup", "b", controller=None), owner("Other", "o", controller=False), name="p")
    assert find_workload(found) == Workload("Pod", "n", "p")


def test_an_only_owner_counts_even_if_it_is_no_controller() -> None:
    assert find_workload(pod(owner("Backup", "b", controller=None))) == Workload("Backup", "n", "b")


def test_a_pod_that_nothing_made_stands_for_itself() -> None:
    assert find_workload(pod(name="p")) == Workload("Pod", "n", "p")


def test_a_template_is_the_workload_that_it_belongs_to() -> None:
    found = pod_from_yaml(
        "kind: Deployment\napiVersion: apps/v1\nmetadata: {name: cart, namespace: shop}\n"
        "spec: {template: {spec: {containers: [{name: c}]}}}\n"
    )
    assert find_workload(found) == Workload("Deployment", "shop", "cart")


def test_every_replica_set_of_the_demo_leads_to_a_deployment() -> None:
    pods = DemoSource().snapshot(Scope()).pods
    found = {find_workload(one) for one in pods}
    assert not [one for one in found if one.kind == "ReplicaSet"]
    assert Workload("Deployment", "shop", "api") in found
    assert Workload("DaemonSet", "monitoring", "node-exporter") in found
    assert Workload(STATIC, "kube-system", "kube-apiserver") in found
