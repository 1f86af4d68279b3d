"""Kinds, owners and workloads: as a pod's owner says, or the owner's own owner by the rules of names."""

import json
from typing import Any, Final

import pytest

from kubectl_qos.cluster.files import DemoSource, pod_from_yaml
from kubectl_qos.k8s.kinds import (
    STATIC,
    Workload,
    belongs_to,
    dotted,
    find_controller,
    find_workload,
    is_workload,
    parse_kind,
    pods_from_custom,
)
from kubectl_qos.k8s.objects import Pod, convert
from kubectl_qos.k8s.snapshot import Scope
from tests.cluster.cluster_objects import recorded_pods
from tests.cluster.replay import recorded


def owner(kind: str, name: str, *, controller: bool | None = True) -> dict[str, Any]:
    reference = {"apiVersion": "v1", "kind": kind, "name": name, "uid": "u"}
    return reference if controller is None else {**reference, "controller": controller}


def raw(*owners: dict[str, Any], name: str = "p", labels: dict[str, str] | None = None) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "n", "ownerReferences": list(owners), "labels": labels}
    return {"metadata": metadata, "spec": {"containers": [{"name": "c"}]}}


def workload(*owners: dict[str, Any], **metadata: Any) -> tuple[str, str]:
    kind, namespace, name = find_workload(convert(raw(*owners, **metadata), Pod))
    assert namespace == "n"
    return kind, name


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("po", "Pod"),
        ("Deploy", "Deployment"),
        ("CRONJOBS", "CronJob"),
        ("no", "Node"),
        ("x", None),
        ("deployment.apps", "Deployment"),
        ("deployments.v1.apps", "Deployment"),
        ("cronjob.batch", "CronJob"),
        ("deployment.batch", None),
        ("deployment.example.com", None),
        ("pod.apps", None),
    ],
)
def test_names_of_kubectl(name: str, kind: str | None) -> None:
    assert parse_kind(name) == kind


def test_recorded_pods_of_a_deployment_lead_to_it_as_their_replica_set_does() -> None:
    (controller,) = {
        str(reference["name"]): reference
        for item in recorded("replicasets-list")["response"]["body"]["items"]
        if (reference := find_controller(item)) is not None
    }.values()
    pods = [convert(item, Pod) for item in recorded("pods-of-deployment")["response"]["body"]["items"]]
    assert len(pods) == 2
    assert {find_workload(pod) for pod in pods} == {Workload(controller["kind"], "rec", controller["name"])}


def test_recorded_pods_of_a_node_are_static_or_their_own_workload() -> None:
    workloads = [find_workload(convert(pod, Pod)) for pod in recorded_pods()]
    assert {found.kind for found in workloads} == {STATIC, "Pod"}
    assert not any(found.name.endswith("-node1") for found in workloads if found.kind == STATIC)


@pytest.mark.parametrize(
    ("labels", "kind", "name"),
    [
        ({"pod-template-hash": "6c7fd9b5d"}, "Deployment", "cart"),
        *[
            (labels, "ReplicaSet", "cart-6c7fd9b5d")
            for labels in (
                *({"pod-template-hash": text} for text in ("5d", "b5d", "cart-6c7fd9b5d", "other", "")),
                *(None, {}, {"app": "cart"}),
            )
        ],
    ],
)
def test_a_deployment_has_the_name_of_its_replica_set_without_the_hash_that_pods_have(
    labels: dict[str, str] | None, kind: str, name: str
) -> None:
    assert workload(owner("ReplicaSet", "cart-6c7fd9b5d"), labels=labels) == (kind, name)


@pytest.mark.parametrize(
    ("job", "kind", "name"),
    [
        ("backup-29384520", "CronJob", "backup"),
        ("backup-2026-29384520", "CronJob", "backup-2026"),
        *[
            (job, "Job", job)
            for job in (
                *("backup-2938452", "backup-293845201", "backup-29384520-x", "backup29384520", "29384520"),
                "migrate-2026-11",
            )
        ],
    ],
)
def test_a_cron_job_has_the_name_of_its_job_without_the_minutes(job: str, kind: str, name: str) -> None:
    assert workload(owner("Job", job)) == (kind, name)


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet", "Rollout", "Deployment"])
def test_any_other_owner_is_the_workload_itself(kind: str) -> None:
    labels = {"pod-template-hash": "29384520"}
    assert workload(owner(kind, "x-29384520"), labels=labels) == (kind, "x-29384520")


def test_a_static_pod_has_its_name_without_its_node() -> None:
    assert workload(owner("Node", "control-1"), name="kube-apiserver-control-1") == (STATIC, "kube-apiserver")


@pytest.mark.parametrize(
    ("owners", "expected"),
    [
        ([owner("Backup", "b", controller=False), owner("StatefulSet", "db")], ("StatefulSet", "db")),
        ([owner("Backup", "b", controller=None), owner("Other", "o", controller=False)], ("Pod", "p")),
        ([owner("Backup", "b", controller=None)], ("Backup", "b")),
        ([], ("Pod", "p")),
    ],
)
def test_the_controller_or_the_only_owner_counts(
    owners: list[dict[str, Any]], expected: tuple[str, str]
) -> None:
    assert workload(*owners) == expected
    controller = find_controller(raw(*owners)) or {"kind": "Pod", "name": "p"}
    assert (controller["kind"], controller["name"]) == expected


def test_a_pod_belongs_to_itself_its_owners_and_its_workload() -> None:
    pod = convert(raw(owner("ReplicaSet", "web-a1"), labels={"pod-template-hash": "a1"}), Pod)
    assert all(belongs_to(pod, *of) for of in (("Pod", "p"), ("ReplicaSet", "web-a1"), ("Deployment", "web")))
    assert not belongs_to(pod, "Deployment", "web-a1")


def test_a_template_is_the_workload_that_it_belongs_to() -> None:
    manifest = {
        "kind": "Deployment",
        "apiVersion": "apps/v1",
        "metadata": {"name": "cart", "namespace": "shop"},
    }
    manifest["spec"] = {"template": {"spec": {"containers": [{"name": "c"}]}}}
    assert find_workload(pod_from_yaml(json.dumps(manifest))) == Workload("Deployment", "shop", "cart")


def test_every_replica_set_of_the_demo_leads_to_a_deployment() -> None:
    workloads = {find_workload(pod) for pod in DemoSource().snapshot(Scope()).pods}
    assert not [found for found in workloads if found.kind == "ReplicaSet"]
    assert workloads >= {
        Workload("Deployment", "shop", "api"),
        Workload("DaemonSet", "monitoring", "node-exporter"),
        Workload(STATIC, "kube-system", "kube-apiserver"),
    }


SPEC = {"containers": [{"name": "a", "image": "x"}]}
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": SPEC}
CUSTOM: Final[dict[str, tuple[dict[str, Any], dict[str, str]]]] = {
    "Rollout": ({"spec": {"template": TEMPLATE}}, {"o": "spec.template.spec"}),
    "Service": (
        {"spec": {"template": {"spec": {"containers": [{"image": "x"}]}}}},
        {"o": "spec.template.spec"},
    ),
    "SparkApplication": (
        {"spec": {"driver": {"template": TEMPLATE}, "executor": {"cores": 1, "template": TEMPLATE}}},
        {"o:driver": "spec.driver.template.spec", "o:executor": "spec.executor.template.spec"},
    ),
    "RayCluster": (
        {"spec": {"headGroupSpec": {"template": TEMPLATE}, "workerGroupSpecs": [{"template": TEMPLATE}]}},
        {
            "o:headGroupSpec": "spec.headGroupSpec.template.spec",
            "o:workerGroupSpecs[0]": "spec.workerGroupSpecs[0].template.spec",
        },
    ),
    "PodTemplate": ({"template": TEMPLATE}, {"o": "template.spec"}),
    "Prometheus": ({"spec": SPEC}, {"o": "spec"}),
    "Agent": ({"spec": {"podSpec": SPEC}}, {"o": "spec.podSpec"}),
    "ConfigMap": ({"data": {"containers": "a"}}, {}),
    "Report": ({"status": {"template": TEMPLATE}, "spec": {"containers": ["a"]}}, {}),
    "Deep": ({"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": {"i": SPEC}}}}}}}}}, {}),
}


@pytest.mark.parametrize("kind", CUSTOM)
def test_pods_of_any_kind_are_found_by_their_structure(kind: str) -> None:
    fields, expected = CUSTOM[kind]
    pods = pods_from_custom(kind, {"kind": kind, "metadata": {"name": "o", "namespace": "shop"}, **fields})
    assert {pod.name: dotted(pod.path) for pod in pods} == expected
    assert {(pod.kind, pod.namespace, pod.object_name) for pod in pods} <= {(kind, "shop", "o")}


def test_a_kind_of_another_group_is_no_workload() -> None:
    assert is_workload("Job", "batch/v1")
    assert is_workload("Job", "")
    assert is_workload("Deployment", "extensions/v1beta1")
    assert not is_workload("Job", "batch.volcano.sh/v1alpha1")
    assert not is_workload("Rollout", "apps/v1")
