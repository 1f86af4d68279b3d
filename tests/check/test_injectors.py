"""Containers that something injects: those that will cost a pod its class, and those that have."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from tests.check.test_rules import found
from tests.end_to_end.command import Run

EQUAL: Final = {"cpu": "1", "memory": "1Gi"}
GUARANTEED: Final = {"resources": {"requests": EQUAL, "limits": EQUAL}}
ISTIO: Final = {
    "sidecar.istio.io/proxyCPU": "200m",
    "sidecar.istio.io/proxyCPULimit": "200m",
    "sidecar.istio.io/proxyMemory": "128Mi",
    "sidecar.istio.io/proxyMemoryLimit": "128Mi",
}


def manifests(
    *,
    namespace: dict[str, str],
    annotations: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    own: dict[str, str] | None = None,
    init: dict[str, Any] | None = None,
    app: dict[str, Any] | None = None,
    **spec: Any,
) -> str:
    """A namespace with labels and a Deployment in it, with more containers by their names."""
    more = {"initContainers": init or {}, "containers": {"app": GUARANTEED, **(app or {})}}
    for name, containers in more.items():
        spec[name] = [{"name": key, **resources} for key, resources in containers.items()]
    template = {"metadata": {"annotations": annotations, "labels": labels}, "spec": spec}
    metadata = {"name": "web", "namespace": "shop", "annotations": own}
    items = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": namespace}},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"template": template}},
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def messages(run: Run, rule: str, manifest: str) -> list[str]:
    return [one["message"] for one in found(run, manifest) if one["rule"] == rule]


INJECTED: Final = {"istio-injection": "enabled"}
GCSFUSE: Final = {
    "gke-gcsfuse/volumes": "true",
    "gke-gcsfuse/cpu-limit": "500m",
    "gke-gcsfuse/memory-limit": "512Mi",
}


def test_the_injected_containers_and_their_annotations_are_named(run: Run) -> None:
    (of_istio,) = messages(run, "QOS013", manifests(namespace=INJECTED))
    assert of_istio == (
        "Istio adds istio-proxy and istio-init to this Guaranteed pod, which becomes Burstable unless the"
        " annotations sidecar.istio.io/proxyCPU and sidecar.istio.io/proxyCPULimit are equal, and"
        " sidecar.istio.io/proxyMemory and sidecar.istio.io/proxyMemoryLimit are equal"
    )
    (of_kuma,) = messages(run, "QOS013", manifests(namespace={"kuma.io/sidecar-injection": "enabled"}))
    assert of_kuma == (
        "Kuma adds kuma-sidecar and kuma-init to this Guaranteed pod, which becomes Burstable unless their"
        " requests equal their limits"
    )


@pytest.mark.parametrize(
    "given",
    [
        {"namespace": INJECTED, "annotations": {**ISTIO, "sidecar.istio.io/proxyCPULimit": "2"}},
        {"namespace": INJECTED, "annotations": {"sidecar.istio.io/proxyCPU": "200m"}},
        # Only those of the pod template count.
        {"namespace": INJECTED, "own": ISTIO},
        {"namespace": INJECTED, "labels": {"sidecar.istio.io/inject": "true"}},
        {"namespace": {"istio.io/rev": "1-26"}},
        {"namespace": {}, "annotations": {"sidecar.istio.io/inject": "true"}},
        {"namespace": {"linkerd.io/inject": "enabled"}, "annotations": ISTIO},
        {"namespace": {}, "annotations": {"sidecar.opentelemetry.io/inject": "observability/agent"}},
        {"namespace": {}, "annotations": {"instrumentation.opentelemetry.io/inject-java": "true"}},
        {"namespace": {}, "own": {"sidecar.jaegertracing.io/inject": "true"}},
        {"namespace": {"appmesh.k8s.aws/sidecarInjectorWebhook": "enabled"}},
        {"namespace": {}, "annotations": {"openservicemesh.io/sidecar-injection": "enabled"}},
        {"namespace": {}, "annotations": {"gke-gcsfuse/volumes": "true"}},
        {"namespace": {}, "annotations": {**GCSFUSE, "gke-gcsfuse/memory-request": "256Mi"}},
        {"namespace": {}, "annotations": {**GCSFUSE, "gke-gcsfuse/cpu-limit": "0"}},
    ],
)
def test_what_will_cost_the_class_is_found(given: dict[str, Any], run: Run) -> None:
    assert len(messages(run, "QOS013", manifests(**given))) == 1


@pytest.mark.parametrize(
    "given",
    [
        {"namespace": INJECTED, "annotations": ISTIO},
        {"namespace": INJECTED, "init": {"istio-init": GUARANTEED}, "app": {"istio-proxy": GUARANTEED}},
        {"namespace": INJECTED, "init": {"istio-init": GUARANTEED, "istio-proxy": GUARANTEED}},
        {"namespace": INJECTED, "labels": {"sidecar.istio.io/inject": "false"}},
        {"namespace": INJECTED, "hostNetwork": True},
        {"namespace": {"linkerd.io/inject": "enabled"}, "annotations": {"linkerd.io/inject": "disabled"}},
        {"namespace": {"istio-injection": "disabled"}},
        {"namespace": {}, "annotations": {"sidecar.opentelemetry.io/inject": "false"}},
        # A request or limit that is missing is as the other.
        {"namespace": {}, "annotations": GCSFUSE},
    ],
)
def test_what_costs_nothing_is_not_found(given: dict[str, Any], run: Run) -> None:
    assert messages(run, "QOS013", manifests(**given)) == []


def test_a_service_of_knative_gets_a_container_too(run: Run) -> None:
    service = {
        "apiVersion": "serving.knative.dev/v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"template": {"spec": {"containers": [{"name": "app", **GUARANTEED}]}}},
    }
    (message,) = messages(run, "QOS013", json.dumps(service))
    assert message.startswith(
        "Knative adds queue-proxy to this Guaranteed pod, which becomes Burstable unless"
    )
    assert messages(run, "QOS013", json.dumps({**service, "apiVersion": "example.com/v1"})) == []


def test_a_quota_wants_limits_of_injected_containers_too(run: Run) -> None:
    linkerd = {"linkerd.io/inject": "enabled"}
    proxy = {
        f"config.linkerd.io/proxy-{name}": "1"
        for name in ("cpu-request", "cpu-limit", "memory-request", "memory-limit")
    }

    def said(
        annotations: dict[str, str], kind: str = "ResourceQuota", hard: str = "limits.memory"
    ) -> list[str]:
        manifest = json.loads(manifests(namespace={}, annotations=annotations))
        metadata = {"name": "caps", "namespace": "shop"}
        default = {"limits": [{"type": "Container", "default": {"memory": "1Gi"}}]}
        manifest["items"] += [
            {
                "apiVersion": "v1",
                "kind": each,
                "metadata": metadata,
                "spec": {"hard": {hard: "9Gi"}, **default},
            }
            for each in {kind, "ResourceQuota"}
        ]
        return messages(run, "QOS018", json.dumps(manifest))

    (message,) = said(linkerd)
    assert message == (
        "ResourceQuota caps refuses its pods: Linkerd adds linkerd-proxy and linkerd-init, which need"
        " limits.memory too: set them in annotations of the pod, in the settings of the injector or in a"
        " LimitRange"
    )
    assert said(linkerd | proxy) == said(linkerd, "LimitRange") == said(linkerd, hard="requests.memory") == []
    assert said({"sidecar.istio.io/inject": "true"}) == [], "it has limits by default"


def test_the_missing_one_of_the_injected_containers_is_named(run: Run) -> None:
    (message,) = messages(run, "QOS013", manifests(namespace=INJECTED, app={"istio-proxy": GUARANTEED}))
    assert message.startswith("Istio adds istio-init to ")


def test_the_injected_container_that_has_cost_the_class_is_named(run: Run) -> None:
    proxy = {"istio-proxy": {"resources": {"requests": {"cpu": "10m"}, "limits": EQUAL}}}
    places = {"container": manifests(namespace=INJECTED, app=proxy)}
    places["init container"] = manifests(namespace=INJECTED, init=proxy)
    costs = "costs the pod its class: the application's containers alone would be Guaranteed"
    for label, manifest in places.items():
        assert messages(run, "QOS012", manifest) == [f"{label} istio-proxy {costs}"]
    other = manifests(namespace={}, app={"other": proxy["istio-proxy"]})
    assert messages(run, "QOS012", other) == [
        "container other costs the pod its class: the other containers alone would be Guaranteed"
    ]
    both = manifests(namespace={}, app={"other": proxy["istio-proxy"], "third": {}})
    assert messages(run, "QOS012", both) == []
