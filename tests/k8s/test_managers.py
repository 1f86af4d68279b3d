"""Who would put an edited object back: each kind of keeper, and what only looks like one."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from kubectl_qos.k8s.managers import (
    ManagedValue,
    Manager,
    ManagerKind,
    VerticalAutoscaler,
    find_managers,
    matching_autoscalers,
)
from kubectl_qos.k8s.objects import convert
from tests.cluster.replay import recorded

MEMORY = ManagedValue("web", "limits", "memory")
RESOURCES: Final[dict[str, Any]] = {
    "f:limits": {".": {}, "f:memory": {}},
    "f:requests": {".": {}, "f:cpu": {}},
}
TEMPLATE = {"f:template": {"f:spec": {"f:containers": {'k:{"name":"web"}': {"f:resources": RESOURCES}}}}}


def deployment(
    labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None, **metadata: Any
) -> dict[str, Any]:
    return {
        "kind": "Deployment",
        "metadata": {
            "name": "web",
            "namespace": "shop",
            "labels": labels or {},
            "annotations": annotations or {},
            **metadata,
        },
    }


def manager(name: str, operation: str = "Apply", fields: Any = None) -> dict[str, Any]:
    return {
        "manager": name,
        "operation": operation,
        "fieldsV1": {"f:spec": TEMPLATE if fields is None else fields},
    }


def kinds(raw: dict[str, Any], *fields: ManagedValue) -> list[tuple[ManagerKind, str]]:
    return [(one.kind, one.name) for one in find_managers(raw, fields or (MEMORY,), "kubectl-qos")]


TRACKING = "argocd.argoproj.io/tracking-id"


def test_argo_cd_by_its_annotation() -> None:
    raw = deployment(annotations={TRACKING: "shop-app:apps/Deployment:shop/web"})
    assert kinds(raw) == [(ManagerKind.ARGO_CD, "shop-app")]


@pytest.mark.parametrize(
    "tracking", ["shop-app:example.com/Shop:shop/web", "shop-app:apps/Deployment:shop/other", "nonsense", ""]
)
def test_an_annotation_that_was_copied_from_another_object_is_no_proof(tracking: str) -> None:
    assert kinds(deployment(annotations={TRACKING: tracking})) == []


def test_argo_cd_by_label_only_with_its_field_manager() -> None:
    label = {"app.kubernetes.io/instance": "shop-app"}
    assert kinds(deployment(label)) == []
    update = manager("argocd-controller", "Update", {})
    assert kinds(deployment(label, managedFields=[update])) == [(ManagerKind.ARGO_CD, "shop-app")]


def test_argo_cd_that_applies_on_the_server_is_one_keeper_not_two() -> None:
    raw = deployment(
        annotations={TRACKING: "shop-app:apps/Deployment:shop/web"},
        managedFields=[manager("argocd-controller")],
    )
    assert kinds(raw) == [(ManagerKind.ARGO_CD, "shop-app")]
    nameless = deployment(managedFields=[manager("argocd-controller")])
    assert kinds(nameless) == [(ManagerKind.ARGO_CD, "")]


@pytest.mark.parametrize(
    ("group", "kind"),
    [("kustomize", ManagerKind.FLUX_KUSTOMIZATION), ("helm", ManagerKind.FLUX_HELM_RELEASE)],
)
def test_flux(group: str, kind: ManagerKind) -> None:
    labels = {
        f"{group}.toolkit.fluxcd.io/name": "apps",
        f"{group}.toolkit.fluxcd.io/namespace": "flux-system",
    }
    assert kinds(deployment(labels)) == [(kind, "flux-system/apps")]
    assert kinds(deployment({f"{group}.toolkit.fluxcd.io/name": "apps"})) == []


def test_an_object_may_opt_out_of_flux() -> None:
    labels = {
        "kustomize.toolkit.fluxcd.io/name": "apps",
        "kustomize.toolkit.fluxcd.io/namespace": "flux-system",
    }
    assert kinds(deployment(labels, {"kustomize.toolkit.fluxcd.io/reconcile": "disabled"})) == []


def test_helm_by_its_annotations_and_not_by_what_charts_write() -> None:
    managed = {"app.kubernetes.io/managed-by": "Helm"}
    release = {"meta.helm.sh/release-name": "shop", "meta.helm.sh/release-namespace": "shop"}
    assert kinds(deployment(managed, release)) == [(ManagerKind.HELM, "shop/shop")]
    assert kinds(deployment(managed)) == []


def test_a_release_of_flux_is_told_once() -> None:
    labels = {"helm.toolkit.fluxcd.io/name": "shop", "helm.toolkit.fluxcd.io/namespace": "flux-system"}
    raw = deployment(
        labels, {"meta.helm.sh/release-name": "shop"}, managedFields=[manager("helm-controller")]
    )
    assert kinds(raw) == [(ManagerKind.FLUX_HELM_RELEASE, "flux-system/shop")]


def test_an_operator_by_the_kind_of_the_controller() -> None:
    owner = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "Prometheus",
        "name": "k8s",
        "controller": True,
    }
    assert kinds(deployment(ownerReferences=[owner])) == [(ManagerKind.OPERATOR, "Prometheus k8s")]
    assert kinds(deployment(ownerReferences=[{**owner, "controller": False}])) == []
    for version, kind in (("apps/v1", "ReplicaSet"), ("batch/v1", "Job"), ("v1", "Node")):
        assert kinds(deployment(ownerReferences=[{**owner, "apiVersion": version, "kind": kind}])) == []


def test_server_side_apply_keeps_only_the_fields_that_it_owns() -> None:
    raw = deployment(managedFields=[manager("ci")])
    assert find_managers(raw, [MEMORY]) == (Manager(ManagerKind.APPLIER, "ci", "web.limits.memory"),)
    assert kinds(raw, ManagedValue("web", "requests", "cpu")) == [(ManagerKind.APPLIER, "ci")]
    assert kinds(raw, ManagedValue("web", "requests", "memory")) == []
    assert kinds(raw, ManagedValue("other", "limits", "memory")) == []
    assert kinds(deployment(managedFields=[manager("ci", "Update")])) == [], "an update is not repeated"
    assert kinds(deployment(managedFields=[manager("kubectl-qos")])) == [], "that is us"


def test_fields_of_pods_init_containers_cron_jobs_and_the_pod_itself() -> None:
    init = {"f:initContainers": {'k:{"name":"web"}': {"f:resources": RESOURCES}}}
    pod = {"kind": "Pod", "metadata": {"name": "p", "managedFields": [manager("ci", fields=init)]}}
    assert kinds(pod) == [(ManagerKind.APPLIER, "ci")]
    whole = {"kind": "Pod", "metadata": {"managedFields": [manager("ci", fields={"f:resources": RESOURCES})]}}
    assert kinds(whole, ManagedValue("", "limits", "memory")) == [(ManagerKind.APPLIER, "ci")]
    nested = {"f:jobTemplate": {"f:spec": TEMPLATE}}
    cron = {"kind": "CronJob", "metadata": {"managedFields": [manager("ci", fields=nested)]}}
    assert kinds(cron) == [(ManagerKind.APPLIER, "ci")]


def test_client_side_apply_notes_what_it_set() -> None:
    containers = [{"name": "web", "resources": {"limits": {"memory": "1Gi"}}}]
    applied = {"spec": {"template": {"spec": {"containers": containers}}}}
    note = "kubectl.kubernetes.io/last-applied-configuration"
    raw = deployment(annotations={note: json.dumps(applied)})
    assert kinds(raw) == [(ManagerKind.CLIENT_APPLIER, "")]
    assert kinds(raw, ManagedValue("web", "limits", "cpu")) == []
    assert kinds(deployment(annotations={note: "{"})) == []
    argo = {note: json.dumps(applied), TRACKING: "shop-app:apps/Deployment:shop/web"}
    assert kinds(deployment(annotations=argo)) == [(ManagerKind.ARGO_CD, "shop-app")], "it applies like that"


def test_a_deployment_that_a_real_server_had_is_kept_by_nobody() -> None:
    assert kinds(recorded("deployment-patch")["response"]["body"]) == []


@pytest.mark.parametrize(
    "odd", [{}, {"metadata": None}, {"kind": "Pod", "metadata": {"managedFields": [None]}}]
)
def test_odd_objects(odd: dict[str, Any]) -> None:
    assert find_managers(odd, [MEMORY]) == ()


def autoscaler(kind: str, name: str, mode: str | None) -> VerticalAutoscaler:
    policy = {"updatePolicy": {"updateMode": mode}} if mode else {}
    raw = {"metadata": {"name": "vpa"}, "spec": {"targetRef": {"kind": kind, "name": name}, **policy}}
    return convert(raw, VerticalAutoscaler)


def test_autoscalers_of_the_object_and_of_its_owners() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "controller": True}
    replica_set = {"kind": "ReplicaSet", "metadata": {"name": "web-1", "ownerReferences": [owner]}}
    chains: list[list[dict[str, Any]]] = [[deployment()], [{"kind": "Pod"}, replica_set]]
    for chain in chains:
        [manager] = matching_autoscalers(chain, [autoscaler("Deployment", "web", None)])
        assert (manager.kind, manager.name, manager.mode) == (ManagerKind.VERTICAL_AUTOSCALER, "vpa", "Auto")
    assert matching_autoscalers([deployment()], [autoscaler("Deployment", "web", "Off")]) == ()
    assert matching_autoscalers([deployment()], [autoscaler("StatefulSet", "web", "Auto")]) == ()
    assert (
        matching_autoscalers([deployment()], [autoscaler("Deployment", "web", "Initial")])[0].mode
        == "Initial"
    )
