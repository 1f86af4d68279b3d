"""What would put an edited object back: each kind of manager, and what only looks like one."""

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
TRACKING: Final = "argocd.argoproj.io/tracking-id"
TRACKED: Final = {TRACKING: "shop-app:apps/Deployment:shop/web"}
ARGO: Final = [(ManagerKind.ARGO_CD, "shop-app")]
CI: Final = [(ManagerKind.APPLIER, "ci")]


def deployment(
    labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None, **metadata: Any
) -> dict[str, Any]:
    metadata |= {"name": "web", "namespace": "shop", "labels": labels or {}, "annotations": annotations or {}}
    return {"kind": "Deployment", "metadata": metadata}


def entry(name: str, operation: str = "Apply", spec: Any = TEMPLATE) -> dict[str, Any]:
    return {"manager": name, "operation": operation, "fieldsV1": {"f:spec": spec}}


def managers(raw: dict[str, Any], value: ManagedValue = MEMORY) -> list[tuple[ManagerKind, str]]:
    return [(manager.kind, manager.name) for manager in find_managers(raw, (value,), "kubectl-qos")]


def test_argo_cd_by_its_annotation() -> None:
    assert managers(deployment(annotations=TRACKED)) == ARGO


@pytest.mark.parametrize(
    "tracking", ["shop-app:example.com/Shop:shop/web", "shop-app:apps/Deployment:shop/other", "nonsense", ""]
)
def test_an_annotation_that_was_copied_from_another_object_is_no_proof(tracking: str) -> None:
    assert managers(deployment(annotations={TRACKING: tracking})) == []


def test_argo_cd_by_label_only_with_its_field_manager() -> None:
    label = {"app.kubernetes.io/instance": "shop-app"}
    assert managers(deployment(label)) == []
    assert managers(deployment(label, managedFields=[entry("argocd-controller", "Update", {})])) == ARGO


def test_argo_cd_that_applies_on_the_server_is_one_manager_not_two() -> None:
    fields = [entry("argocd-controller")]
    assert managers(deployment(annotations=TRACKED, managedFields=fields)) == ARGO
    assert managers(deployment(managedFields=fields)) == [(ManagerKind.ARGO_CD, "")]


@pytest.mark.parametrize(
    ("group", "kind"),
    [("kustomize", ManagerKind.FLUX_KUSTOMIZATION), ("helm", ManagerKind.FLUX_HELM_RELEASE)],
)
def test_flux(group: str, kind: ManagerKind) -> None:
    name, namespace = f"{group}.toolkit.fluxcd.io/name", f"{group}.toolkit.fluxcd.io/namespace"
    labels = {name: "apps", namespace: "flux-system"}
    assert managers(deployment(labels)) == [(kind, "flux-system/apps")]
    assert managers(deployment({name: "apps"})) == []
    off = {"kustomize.toolkit.fluxcd.io/reconcile": "disabled"}
    assert managers(deployment(labels, off)) == managers(deployment(labels | off)) == []


def test_helm_by_its_annotations_and_not_by_what_charts_write() -> None:
    label = {"app.kubernetes.io/managed-by": "Helm"}
    release = {"meta.helm.sh/release-name": "shop", "meta.helm.sh/release-namespace": "shop"}
    assert managers(deployment(label, release)) == [(ManagerKind.HELM, "shop/shop")]
    assert managers(deployment(label)) == []


def test_a_release_of_flux_is_reported_once() -> None:
    labels = {"helm.toolkit.fluxcd.io/name": "shop", "helm.toolkit.fluxcd.io/namespace": "flux-system"}
    raw = deployment(labels, {"meta.helm.sh/release-name": "shop"}, managedFields=[entry("helm-controller")])
    assert managers(raw) == [(ManagerKind.FLUX_HELM_RELEASE, "flux-system/shop")]


def test_an_operator_by_the_kind_of_the_controller() -> None:
    owner = {"kind": "Prometheus", "name": "k8s", "controller": True}
    owner |= {"apiVersion": "monitoring.coreos.com/v1"}
    assert managers(deployment(ownerReferences=[owner])) == [(ManagerKind.OPERATOR, "Prometheus k8s")]
    assert managers(deployment(ownerReferences=[{**owner, "controller": False}])) == []
    assert managers(deployment({"olm.owner": "prometheus.v1"})) == [(ManagerKind.OLM, "prometheus.v1")]
    for version, kind in (("apps/v1", "ReplicaSet"), ("batch/v1", "Job"), ("v1", "Node")):
        assert managers(deployment(ownerReferences=[{**owner, "apiVersion": version, "kind": kind}])) == []


def test_server_side_apply_only_manages_the_fields_that_it_owns() -> None:
    raw = deployment(managedFields=[entry("ci")])
    assert find_managers(raw, [MEMORY]) == (Manager(ManagerKind.APPLIER, "ci", "web.limits.memory"),)
    assert managers(raw, ManagedValue("web", "requests", "cpu")) == CI
    assert managers(raw, ManagedValue("web", "requests", "memory")) == []
    assert managers(raw, ManagedValue("other", "limits", "memory")) == []
    assert managers(deployment(managedFields=[entry("ci", "Update")])) == [], "an update is not repeated"
    assert managers(deployment(managedFields=[entry("kubectl-qos")])) == [], "that is us"


def test_fields_of_pods_init_containers_cron_jobs_and_the_pod_itself() -> None:
    init = {"f:initContainers": {'k:{"name":"web"}': {"f:resources": RESOURCES}}}
    for kind, spec, container in (
        ("Pod", init, "web"),
        ("Pod", {"f:resources": RESOURCES}, ""),
        ("CronJob", {"f:jobTemplate": {"f:spec": TEMPLATE}}, "web"),
    ):
        raw = {"kind": kind, "metadata": {"name": "p", "managedFields": [entry("ci", spec=spec)]}}
        assert managers(raw, ManagedValue(container, "limits", "memory")) == CI


def test_client_side_apply_notes_what_it_set() -> None:
    containers = [{"name": "web", "resources": {"limits": {"memory": "1Gi"}}}]
    applied = {"spec": {"template": {"spec": {"containers": containers}}}}
    note = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(applied)}
    raw = deployment(annotations=note)
    assert managers(raw) == [(ManagerKind.CLIENT_APPLIER, "")]
    assert managers(raw, ManagedValue("web", "limits", "cpu")) == []
    assert managers(deployment(annotations=dict.fromkeys(note, "{"))) == []
    assert managers(deployment(annotations=note | TRACKED)) == ARGO, "Argo CD applies like that"


def test_a_recorded_deployment_has_no_manager() -> None:
    assert managers(recorded("deployment-patch")["response"]["body"]) == []


@pytest.mark.parametrize(
    "odd", [{}, {"metadata": None}, {"kind": "Pod", "metadata": {"managedFields": [None]}}]
)
def test_odd_objects(odd: dict[str, Any]) -> None:
    assert find_managers(odd, [MEMORY]) == ()


def autoscaler(kind: str, mode: str | None) -> list[VerticalAutoscaler]:
    policy = {"updatePolicy": {"updateMode": mode}} if mode else {}
    raw = {"metadata": {"name": "vpa"}, "spec": {"targetRef": {"kind": kind, "name": "web"}, **policy}}
    return [convert(raw, VerticalAutoscaler)]


REQUEST, LIMIT = (ManagedValue("app", side, "memory") for side in ("requests", "limits"))


def test_an_autoscaler_of_requests_alone_leaves_limits() -> None:
    raw = {
        "metadata": {"name": "vpa"},
        "spec": {
            "targetRef": {"kind": "Deployment", "name": "web"},
            "resourcePolicy": {
                "containerPolicies": [{"containerName": "*", "controlledValues": "RequestsOnly"}]
            },
        },
    }
    scalers = [convert(raw, VerticalAutoscaler)]
    found = [matching_autoscalers([deployment()], scalers, values) for values in ([LIMIT], [REQUEST, LIMIT])]
    assert [len(managers) for managers in found] == [0, 1]


def test_autoscalers_of_the_object_and_of_its_owners() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "controller": True}
    replica_set = {"kind": "ReplicaSet", "metadata": {"name": "web-1", "ownerReferences": [owner]}}
    chains: list[list[dict[str, Any]]] = [[deployment()], [{"kind": "Pod"}, replica_set]]
    for chain in chains:
        for mode, expected in ((None, "Auto"), ("Initial", "Initial")):
            [manager] = matching_autoscalers(chain, autoscaler("Deployment", mode), [REQUEST])
            assert (manager.kind, manager.name, manager.mode) == (
                ManagerKind.VERTICAL_AUTOSCALER,
                "vpa",
                expected,
            )
        assert matching_autoscalers(chain, autoscaler("Deployment", "Off"), [REQUEST]) == ()
        assert matching_autoscalers(chain, autoscaler("StatefulSet", "Auto"), [REQUEST]) == ()
