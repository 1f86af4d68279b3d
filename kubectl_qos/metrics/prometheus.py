"""A client of Prometheus' HTTP API, which Thanos, Mimir and VictoriaMetrics have too.

Queries are POSTs, except through an API server's service proxy, where they are GETs: those need only `get`
on services/proxy. series.py and past.py have the queries. Sources: prometheus/web/api/v1/api.go (answers),
prometheus/promql/engine.go (ErrTooManySamples).
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote

import msgspec

from kubectl_qos.errors import InputError, QosError, UsageError
from kubectl_qos.k8s.objects import Json, nested, nested_list
from kubectl_qos.transport.net_errors import unreachable_error

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

    from kubectl_qos.transport.client import Connection

MAX_POINTS: Final = 11_000
"""The most points of a series: Prometheus refuses range queries with more."""
MAX_BYTES: Final = 128 << 20
"""The most bytes of an answer, unzipped: the usage of 150,000 containers takes 100 MB."""
_UNCACHED: Final = {"nocache": "1"}
"""Stops VictoriaMetrics from extending the range to whole steps, past its end; others ignore it."""
_MAX_QUOTED: Final = 200
_SELECTOR: Final = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*={1,2}\s*([^,=]+?)\s*")

Labels = Mapping[str, str]


class Sample(NamedTuple):
    """The value of a series at one time."""

    labels: Labels
    value: float

    @property
    def name(self) -> str:
        """The name of the metric."""
        return self.labels["__name__"]


class Series(NamedTuple):
    """The values of a series by Unix time, the oldest first."""

    labels: Labels
    points: Sequence[tuple[float, float]]


class _Series(msgspec.Struct):
    """A series of a vector (`value`) or a matrix (`values`)."""

    metric: dict[str, str]
    value: tuple[float, str] = (0.0, "NaN")
    values: list[tuple[float, str]] = []


class _Data(msgspec.Struct):
    result: list[_Series] = []


class _Answer(msgspec.Struct, rename="camel"):
    """An answer of a store, or of an API server in front of it (`message`)."""

    status: str = ""
    data: _Data | None = None
    error_type: str = ""
    error: str = ""
    message: str = ""
    warnings: list[str] | None = None
    is_partial: bool = False


_answer: Final = msgspec.json.Decoder(_Answer)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def parse_selector(text: str) -> str:
    """Return the matchers of PromQL for `cluster=prod,env=live`. Raises UsageError."""
    matchers = []
    for part in filter(None, text.split(",")):
        match = _SELECTOR.fullmatch(part)
        if match is None:
            raise UsageError(f"{part!r} selects no series", hint="write LABEL=VALUE, such as cluster=prod")
        matchers.append(f"{match[1]}={msgspec.json.encode(match[2]).decode()}")
    return ",".join(matchers)


class Prometheus:
    """A store; messages call it `name`, and every series must fulfil `matchers`.

    `path` is its path at the API server's service proxy, empty if the connection is to the store itself. The
    keys of `warnings` are the store's warnings.
    """

    def __init__(self, connection: Connection, name: str, matchers: str = "", path: str = "") -> None:
        self._connection, self._path = connection, path
        self.name = name
        self.matchers = matchers
        self.warnings: dict[str, None] = {}

    def now(self) -> float:
        """Return the store's own time, which fits its samples even if our clock is wrong.

        Raises QosError.
        """
        samples = self.query("vector(time())")
        if not samples:
            raise QosError(f"{self.name} does not say its time")
        return samples[0].value

    def query(self, expression: str, at: float | None = None) -> list[Sample]:
        """Return the values at a Unix time, by default at the store's own present. Raises QosError."""
        form = {"query": expression} | ({"time": f"{at:.3f}"} if at is not None else {})
        series = self._result("query", form)
        samples = (Sample(item.metric, _number(item.value[1])) for item in series)
        return [sample for sample in samples if math.isfinite(sample.value)]

    def query_range(self, expression: str, start: float, end: float, step: float) -> list[Series]:
        """Return the values from start to end; the step grows if MAX_POINTS require it. Raises QosError."""
        step = max(step, math.ceil((end - start) / (MAX_POINTS - 1)), 1)
        times = {"start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step:g}", **_UNCACHED}
        series = self._result("query_range", {"query": expression, **times})
        numbered = ((item, [(at, _number(text)) for at, text in item.values]) for item in series)
        return [
            Series(item.metric, [point for point in points if math.isfinite(point[1])])
            for item, points in numbered
        ]

    def _result(self, api: str, form: Mapping[str, str]) -> list[_Series]:
        path = f"/api/v1/{api}"
        if self._path:
            response = self._connection.request("GET", self._path + path, form)
        else:
            response = self._connection.query(path, form)
        body = _read_body(response, self._connection.server, self.name)
        try:
            answer = _answer.decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            answer = _Answer()
        if response.status != HTTPStatus.OK or answer.status != "success" or answer.data is None:
            raise self._error(response.status, answer, body)
        self.warnings |= dict.fromkeys(answer.warnings or ())
        if answer.is_partial:
            self.warnings["some of its storage nodes did not answer"] = None
        clusters = sorted({series.metric.get("cluster", "") for series in answer.data.result} - {""})
        if len(clusters) > 1:
            raise InputError(
                f"{self.name} has series of several clusters: {', '.join(clusters[:8])}",
                hint=f"--prometheus-selector cluster={clusters[0]} selects one",
            )
        return answer.data.result

    def _error(self, status: int, answer: _Answer, body: bytearray) -> QosError:
        text = answer.error or answer.message or body[: 4 * _MAX_QUOTED].decode(errors="replace")
        why = " ".join(text.split())[:_MAX_QUOTED]
        if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            hint = "docs/history.md says how to give credentials"
            if self._path:
                hint = "grant get on services/proxy in its namespace"
            return QosError(f"{self.name} refuses this user ({status}): {why}", hint=hint)
        if not answer.status or status == HTTPStatus.NOT_FOUND:
            hint = "leave /api/v1 out of the URL: Mimir's ends with /prometheus, vmselect's with /select/0/…"
            return QosError(f"{self.name} does not answer like Prometheus ({status}): {why}", hint=hint)
        is_much = re.search(r"too many (samples|points)|limit|exceed|max(Samples|Series)", why)
        is_late = answer.error_type in {"timeout", "canceled"} or "timeout" in why or "deadline" in why
        hint = _SMALLER_QUERY if is_much or is_late else ""
        return QosError(f"{self.name} refuses the query ({status} {answer.error_type}): {why}".rstrip(), hint)


_SMALLER_QUERY: Final = "a shorter --over, or fewer series with --prometheus-selector"
_NAME_ONE: Final = "--prometheus URL names one"


def _read_body(response: BaseHTTPResponse, server: str, name: str) -> bytearray:
    """Return the body, unzipped. Raises ServerUnreachable, and QosError for more than MAX_BYTES."""
    is_zipped, body = response.headers.get("Content-Encoding") == "gzip", bytearray()
    unzip = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        while len(body) <= MAX_BYTES and (part := response.read(1 << 16, decode_content=False)):
            body += unzip.decompress(part, MAX_BYTES + 1 - len(body)) if is_zipped else part
    except Exception as error:
        response.close()
        raise unreachable_error(error, server) from error
    if len(body) > MAX_BYTES:
        response.close()
        raise QosError(f"{name} answers with more than {MAX_BYTES >> 20} MiB", hint=_SMALLER_QUERY)
    response.release_conn()
    return body


_NAME: Final = "app.kubernetes.io/name"
_COMPONENT: Final = "app.kubernetes.io/component"
KINDS: Final[tuple[tuple[Mapping[str, str], tuple[str, ...]], ...]] = (
    ({_NAME: "thanos-query-frontend"}, ("http",)),
    ({_NAME: "thanos-query"}, ("http",)),
    ({_NAME: "thanos", _COMPONENT: "query-frontend"}, ("http",)),
    ({_NAME: "thanos", _COMPONENT: "query"}, ("http",)),
    ({_NAME: "vmselect"}, ("http",)),
    ({_NAME: "vmsingle"}, ("http",)),
    ({_NAME: "victoria-metrics-single"}, ("http",)),
    ({"app": "kube-prometheus-stack-prometheus"}, ("http-web", "web")),
    ({_NAME: "prometheus"}, ("http", "web", "http-web")),
    ({"operated-prometheus": "true"}, ("web", "http-web")),
    ({"app": "prometheus"}, ("http", "web")),
)
"""The labels of services, and the names of their port for queries, by operators and charts of each store.

The first match wins; stores that query several others come first.
"""
_PATHS: Final = {"vmselect": "/select/0/prometheus"}
NAMESPACES: Final = frozenset(
    {"cattle-monitoring-system", "kube-monitoring", "kube-prometheus-stack", "kube-system", "lens-metrics"}
    | {"kubesphere-monitoring-system", "monitoring", "observability", "openshift-monitoring", "prometheus"}
    | {"prometheus-operator", "thanos", "victoria-metrics"}
)
"""The namespaces where charts and distributions install stores; elsewhere a tenant may set such labels."""


def is_service(store: str) -> bool:
    """Return whether --prometheus names a service of the cluster: NAMESPACE/NAME, or `auto`."""
    return store == "auto" or re.fullmatch(r"[a-z0-9-]+/[a-z0-9-]+", store) is not None


def find_store(connection: Connection, matchers: str = "", service: str = "auto") -> Prometheus:
    """Return the store of a cluster, reached through the API server's service proxy.

    Raises QosError if there is none, or if services may not be listed.
    """
    elsewhere = ""
    services = _list_services(connection)
    for wanted, port_names in KINDS:
        for raw in services:
            labels, ports = nested(raw, "metadata", "labels"), nested_list(raw, "spec", "ports")
            port = next((item for item in ports if item.get("name") in port_names or len(ports) == 1), None)
            if port is None or not wanted.items() <= labels.items():
                continue
            namespace, name = (str(nested(raw, "metadata").get(key)) for key in ("namespace", "name"))
            if service == f"{namespace}/{name}" or (service == "auto" and namespace in NAMESPACES):
                path = (
                    f"/api/v1/namespaces/{quote(namespace)}/services/{quote(name)}:{port.get('port')}/proxy"
                )
                path += _PATHS.get(str(labels.get(_NAME)), "")
                return Prometheus(connection, f"service {namespace}/{name}", matchers, path)
            elsewhere = elsewhere or f"{namespace}/{name}"
    if elsewhere and service == "auto":
        why = f"service {elsewhere} is labelled as a store of metrics, but a tenant may have labelled it"
        raise QosError(why, hint=f"--prometheus {elsewhere} uses it anyway")
    what = "service of this cluster" if service == "auto" else f"service {service}"
    raise QosError(f"no {what} is labelled as Prometheus, Thanos or VictoriaMetrics", hint=_NAME_ONE)


def _list_services(connection: Connection) -> list[Json]:
    response = connection.request("GET", "/api/v1/services")
    body = _read_body(response, connection.server, "the API server")
    if response.status == HTTPStatus.FORBIDDEN:
        grant = "grant list on services and get on services/proxy, as docs/rbac/history.yaml does"
        raise QosError(
            "services may not be listed, which finding Prometheus needs", hint=f"{grant}; {_NAME_ONE}"
        )
    try:
        return nested_list(msgspec.json.decode(body), "items")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise QosError(f"the list of services cannot be read ({response.status})", hint=_NAME_ONE) from None
