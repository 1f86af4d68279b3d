"""Which service is the store: by the labels of the charts and operators that people install."""

import json
from typing import Any

import pytest

from kubectl_qos.errors import QosError
from kubectl_qos.metrics.prometheus import find_store, is_service
from tests.cluster.https_server import Answer
from tests.cluster.serving import ConnectTo

NAME, COMPONENT = "app.kubernetes.io/name", "app.kubernetes.io/component"


def service(namespace: str, name: str, labels: dict[str, str], **ports: int) -> dict[str, Any]:
    listed = [{"name": port, "port": number} for port, number in ports.items()]
    return {"metadata": {"namespace": namespace, "name": name, "labels": labels}, "spec": {"ports": listed}}


STACK = service(
    "monitoring",
    "kps",
    {"app": "kube-prometheus-stack-prometheus"},
    **{"http-web": 9090, "reloader-web": 8080},
)
OPERATED = service("monitoring", "prometheus-operated", {"operated-prometheus": "true"}, web=9090)
THANOS = service("monitoring", "thanos-query", {NAME: "thanos", COMPONENT: "query"}, http=9090, grpc=10901)
VMSELECT = service("victoria-metrics", "vmselect-vm", {NAME: "vmselect"}, http=8481)
OTHERS = (
    service("loki", "query-frontend", {NAME: "loki", COMPONENT: "query-frontend"}, http=3100),
    service("monitoring", "exporter", {NAME: "prometheus-node-exporter"}, metrics=9100),
    service("monitoring", "no-ports", {NAME: "prometheus"}),
)


@pytest.mark.parametrize(
    ("services", "name", "path"),
    [
        (
            [OPERATED, STACK],
            "service monitoring/kps",
            "/api/v1/namespaces/monitoring/services/kps:9090/proxy",
        ),
        ([OPERATED], "service monitoring/prometheus-operated", None),
        (
            [STACK, THANOS],
            "service monitoring/thanos-query",
            "/api/v1/namespaces/monitoring/services/thanos-query:9090/proxy",
        ),
        (
            [VMSELECT, OPERATED],
            "service victoria-metrics/vmselect-vm",
            "/api/v1/namespaces/victoria-metrics/services/vmselect-vm:8481/proxy/select/0/prometheus",
        ),
    ],
)
def test_the_store_of_a_cluster(
    connect_to: ConnectTo, services: list[dict[str, Any]], name: str, path: str | None
) -> None:
    paths = []

    def answer(request: Any) -> Answer:
        paths.append(request.path)
        found = {"status": "success", "data": {"result": []}}
        return Answer(
            200, json.dumps(found if "proxy" in request.path else {"items": [*OTHERS, *services]}).encode()
        )

    store = find_store(connect_to(answer))
    assert store.name == name
    store.query("up")
    assert path is None or paths[-1] == f"{path}/api/v1/query"


@pytest.mark.parametrize(
    ("answer", "sentence", "hint"),
    [
        (
            Answer(200, json.dumps({"items": OTHERS}).encode()),
            "no service of this cluster is labelled",
            "--prometheus URL",
        ),
        (Answer(403, b"{}"), "services may not be listed", "docs/rbac/history.yaml"),
        (Answer(502, b"<html>"), "the list of services cannot be read", "--prometheus URL"),
    ],
)
def test_why_there_is_none(connect_to: ConnectTo, answer: Answer, sentence: str, hint: str) -> None:
    with pytest.raises(QosError, match=sentence) as raised:
        find_store(connect_to(lambda _: answer))
    assert hint in raised.value.hint


FOREIGN = service("team-a", "prometheus", {NAME: "thanos-query-frontend"}, http=80)


def listing(*services: dict[str, Any]) -> Answer:
    return Answer(200, json.dumps({"items": services}).encode())


def test_a_service_outside_the_namespaces_of_monitoring_is_not_taken(connect_to: ConnectTo) -> None:
    """Its labels are looked for before those of the cluster's own store."""
    store = find_store(connect_to(lambda _: listing(FOREIGN, OPERATED)))
    assert store.name == "service monitoring/prometheus-operated"
    with pytest.raises(QosError, match="service team-a/prometheus is labelled") as raised:
        find_store(connect_to(lambda _: listing(FOREIGN)))
    assert raised.value.hint == "--prometheus team-a/prometheus uses it anyway"


def test_a_service_that_is_named_may_be_anywhere(connect_to: ConnectTo) -> None:
    connection = connect_to(lambda _: listing(FOREIGN, OPERATED))
    assert is_service("team-a/prometheus")
    assert not is_service("localhost:9090")
    assert find_store(connection, service="team-a/prometheus").name == "service team-a/prometheus"
    with pytest.raises(QosError, match="no service team-b/prometheus is labelled as Prometheus"):
        find_store(connection, service="team-b/prometheus")
