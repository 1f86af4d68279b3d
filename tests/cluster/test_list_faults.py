"""Every fault at every request of a list: one sentence, no rows that are not so, nothing that hangs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kubectl_qos.__main__ import main
from kubectl_qos.cluster import http as answers
from kubectl_qos.cluster.kube_api import KubeApi
from kubectl_qos.cluster.live import LiveSource
from kubectl_qos.cluster.usage import UsageChoice
from kubectl_qos.errors import ApiError, QosError
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.transport.client import Connection
from tests.cluster.cluster_objects import metrics, node, pod
from tests.cluster.conftest import ConnectTo
from tests.cluster.https_server import Answer, Request
from tests.cluster.list_faults import FAULTS, Fault
from tests.cluster.object_server import ObjectServer
from tests.cluster.serving import Serve

PODS, SHOP_PODS = "/api/v1/pods", "/api/v1/namespaces/shop/pods"
WORKER = "/api/v1/nodes/worker-1"
METRICS = "/apis/metrics.k8s.io/v1beta1/pods"
SILENCE_SECONDS = 0.3
SHOP = Scope(namespace="shop")


@dataclass(frozen=True)
class Point:
    """A request that something goes wrong with, and the question that leads to it.

    `what` is how answers to it are called; `is_fatal` where nothing can be said without it.
    """

    name: str
    path: str
    flags: tuple[str, ...]
    scope: Scope
    what: str = ""
    is_fatal: bool = True
    of_query: Callable[[Mapping[str, str]], bool] = lambda _: True
    forbidden: frozenset[str] = frozenset()

    def is_meant(self, path: str, query: Mapping[str, str]) -> bool:
        """Whether a request is this one."""
        return path == self.path and self.of_query(query)


IN_SHOP = ("-n", "shop")
POINTS = [
    Point("one page", SHOP_PODS, IN_SHOP, SHOP),
    Point("second page", SHOP_PODS, IN_SHOP, SHOP, of_query=lambda query: "continue" in query),
    Point("in one piece", PODS, ("-A",), Scope()),
    Point("neighbours", PODS, IN_SHOP, SHOP, of_query=lambda query: bool(query.get("fieldSelector"))),
    Point(
        "namespace instead of node",
        SHOP_PODS,
        ("--node", "worker-1", *IN_SHOP),
        Scope(namespace="shop", node="worker-1"),
        forbidden=frozenset({PODS}),
    ),
    Point("node", WORKER, IN_SHOP, SHOP, "node worker-1", is_fatal=False),
    Point("usage", METRICS, IN_SHOP, SHOP, is_fatal=False),
]


class Spoiling:
    """A server of 40 pods, one of whose answers a fault makes anew."""

    def __init__(self, fault: Fault, point: Point) -> None:
        pods = [pod(f"p{number:02}", request=f"{number + 1}Mi") for number in range(40)]
        self._right = ObjectServer(pods=pods, nodes=[node()], metrics=[metrics("p07", "900Mi")])
        self._right.forbidden = set(point.forbidden)
        self._fault = fault
        self._point = point

    def __call__(self, request: Request) -> Answer:
        right = self._right(request)
        return self._fault.spoil(right) if self._point.is_meant(request.path, request.query) else right


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> Callable[[Point], None]:
    """Pages as small, and parts of bodies as short, as the point wants them; who is meant is waited for."""

    def start(point: Point) -> None:
        if point.name == "second page":
            monkeypatch.setitem(KubeApi.__init__.__kwdefaults__, "page_size", 15)  # type: ignore[arg-type]
        if point.name == "in one piece":
            monkeypatch.setattr(answers, "PART_BYTES", 2048)
        request = Connection.request

        def impatient(self: Connection, method: str, path: str, query: Any = None, **more: Any) -> Any:
            if point.is_meant(path, query or {}):
                more["read_seconds"] = SILENCE_SECONDS
            return request(self, method, path, query, **more)

        monkeypatch.setattr(Connection, "request", impatient)

    return start


def cases() -> Iterator[Any]:
    for point in POINTS:
        for fault in FAULTS:
            if (point.name, fault.refused) in {("neighbours", 403), ("node", 404)}:
                continue  # a right that is wanting, and a node that is gone, are no faults: test_live.py
            yield pytest.param(fault, point, id=f"{point.name}: {fault.name}")


@pytest.mark.parametrize(("fault", "point"), cases())
def test_a_fault_is_one_sentence(
    serve: Serve,
    connect_to: ConnectTo,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    pages: Callable[[Point], None],
    fault: Fault,
    point: Point,
) -> None:
    pages(point)
    connection = connect_to(serve(Spoiling(fault, point)))
    said = fault.said(point.path if "zip" in fault.name else point.what or point.path)
    code = main(["top", *point.flags, "--kubeconfig", str(tmp_path / "kubeconfig"), "-o", "csv"])
    out, err = capsys.readouterr()
    first = err.splitlines()[0]
    assert "Traceback" not in err
    assert "defect" not in err
    if not point.is_fatal:
        assert code == 0
        assert len(out.splitlines()) == 41
        (why,) = [line.partition(" is missing: ")[2] for line in err.splitlines() if " is missing: " in line]
        if point.name == "usage" and fault.refused in {404, 503}:
            assert why.startswith("Metrics API not available")
        else:
            assert said.match(why)
        return
    assert (code, out) == (1, "")
    assert said.fullmatch(first.removeprefix("error: "))
    with pytest.raises(QosError) as caught:
        LiveSource(connection, usage=UsageChoice.NONE, only_ranking=True).snapshot(point.scope)
    assert said.fullmatch(str(caught.value))


def test_a_page_whose_next_one_is_not_found_is_no_end(serve: Serve, connect_to: ConnectTo) -> None:
    """Where the continue token stands too far inside, the list is known to be short, and refused."""
    far = {"metadata": {"selfLink": "x" * 9000, "continue": "t"}, "items": [pod("a")] * 30}
    objects = ObjectServer()
    objects.faults[PODS] = Answer(body=json.dumps(far, separators=(",", ":")).encode())
    with pytest.raises(QosError, match="the list goes on, but where it does was not found"):
        KubeApi(connect_to(serve(objects))).pods()


def test_waiting_for_a_busy_server_is_part_of_the_request(
    serve: Serve, connect_to: ConnectTo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --request-timeout=5s, a server that wants to be asked again in 30 seconds has refused."""
    monkeypatch.setattr(Connection, "deadline", lambda _: time.monotonic() + 5)
    objects = ObjectServer()
    objects.faults[PODS] = Answer(429, b"", headers={"Retry-After": "30"})
    server = serve(objects)
    with pytest.raises(ApiError, match="TooManyRequests"):
        KubeApi(connect_to(server)).pods()
    assert len(server.requests) == 1
