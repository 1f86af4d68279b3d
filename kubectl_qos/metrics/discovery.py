"""`--prometheus auto`: a store among the cluster's services, reached through the API server's service proxy.

Operators and charts label their services; the first kind that is there is taken, those that answer for
several stores first. Not here: asking it (prometheus.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote

import msgspec

from kubectl_qos.errors import QosError
from kubectl_qos.k8s.objects import Json, nested, nested_list
from kubectl_qos.metrics.prometheus import Prometheus

if TYPE_CHECKING:
    from kubectl_qos.transport.client import Connection

_HINT: Final = "--prometheus URL names one"


class _Kind(NamedTuple):
    """Services of a kind of store: their labels, and the names of the port for queries."""

    labels: Mapping[str, str]
    ports: tuple[str, ...]


_NAME: Final = "app.kubernetes.io/name"
_COMPONENT: Final = "app.kubernetes.io/component"
KINDS: Final = (
    _Kind({_NAME: "thanos-query-frontend"}, ("http",)),
    _Kind({_NAME: "thanos-query"}, ("http",)),
    _Kind({_NAME: "thanos", _COMPONENT: "query-frontend"}, ("http",)),
    _Kind({_NAME: "thanos", _COMPONENT: "query"}, ("http",)),
    _Kind({_NAME: "vmselect"}, ("http",)),
    _Kind({_NAME: "vmsingle"}, ("http",)),
    _Kind({_NAME: "victoria-metrics-single"}, ("http",)),
    _Kind({"app": "kube-prometheus-stack-prometheus"}, ("http-web", "web")),
    _Kind({_NAME: "prometheus"}, ("http", "web", "http-web")),
    _Kind({"operated-prometheus": "true"}, ("web", "http-web")),
    _Kind({"app": "prometheus"}, ("http", "web")),
)
"""Thanos, VictoriaMetrics, kube-prometheus-stack, charts of Prometheus alone, and the operator's service."""
_PATHS: Final = {"vmselect": "/select/0/prometheus"}


def find_store(connection: Connection, matchers: str = "") -> Prometheus:
    """The store of the cluster. Raises QosError where there is none, or services may not be listed."""
    services = _list_services(connection)
    for kind in KINDS:
        for service in services:
            labels, ports = nested(service, "metadata", "labels"), nested_list(service, "spec", "ports")
            port = next((one for one in ports if one.get("name") in kind.ports or len(ports) == 1), None)
            if port is not None and kind.labels.items() <= labels.items():
                namespace, name = (str(nested(service, "metadata").get(key)) for key in ("namespace", "name"))
                path = (
                    f"/api/v1/namespaces/{quote(namespace)}/services/{quote(name)}:{port.get('port')}/proxy"
                )
                path += _PATHS.get(str(labels.get(_NAME)), "")
                return Prometheus(connection, f"service {namespace}/{name}", matchers, path)
    raise QosError(
        "no service of this cluster is labelled as Prometheus, Thanos or VictoriaMetrics", hint=_HINT
    )


def _list_services(connection: Connection) -> list[Json]:
    response = connection.request("GET", "/api/v1/services")
    try:
        body = response.read(decode_content=True)
    finally:
        response.release_conn()
    if response.status == HTTPStatus.FORBIDDEN:
        grant = "grant list on services and get on services/proxy, as docs/rbac/history.yaml does"
        raise QosError("services may not be listed, so that no Prometheus is found", hint=f"{grant}; {_HINT}")
    try:
        return nested_list(msgspec.json.decode(body), "items")
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise QosError(f"the list of services cannot be read ({response.status})", hint=_HINT) from None
