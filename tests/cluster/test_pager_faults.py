"""Every fault of a list, at each of its requests: one sentence, no wrong rows, nothing that hangs."""

from __future__ import annotations

import gzip
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from kubectl_qos.__main__ import main
from kubectl_qos.cluster import http as answers
from kubectl_qos.cluster.kube_api import KubeApi
from kubectl_qos.errors import ApiError, QosError
from kubectl_qos.transport.client import Connection
from tests.cluster.cluster_objects import metrics, node, pod
from tests.cluster.conftest import ConnectTo
from tests.cluster.https_server import Answer, Request
from tests.cluster.object_server import ObjectServer, status
from tests.cluster.replay import answer_of, recorded
from tests.cluster.serving import Serve

PODS, SHOP_PODS = "/api/v1/pods", "/api/v1/namespaces/shop/pods"
WORKER = "/api/v1/nodes/worker-1"
METRICS = "/apis/metrics.k8s.io/v1beta1/pods"
SILENCE_SECONDS = 0.3


_LONGEST_STALL = 20.0
"""Longer than any test waits for a silent server."""


@dataclass(frozen=True)
class Fault:
    """`spoil` makes the answer out of the right one; `{what}` in `sentence` is replaced by the request.

    A fault that is `refused` is an answer of its own, with that status.
    """

    name: str
    spoil: Callable[[Answer], Answer]
    sentence: str
    refused: int = 0

    def said(self, what: str) -> re.Pattern[str]:
        """What is said of a request for something."""
        return re.compile(self.sentence.replace("{what}", re.escape(what)))


def _unreachable(name: str, spoil: Callable[[Answer], Answer], why: str) -> Fault:
    return Fault(name, spoil, f"Unable to connect to the server: {why}")


def _unreadable(name: str, spoil: Callable[[Answer], Answer], why: str) -> Fault:
    return Fault(name, spoil, f"the server's answer for {{what}} cannot be read: {why}")


def _refused(name: str, answer: Answer, sentence: str) -> Fault:
    return Fault(name, lambda _: answer, sentence, answer.status)


def _instead(body: bytes, content_type: str = "application/json") -> Callable[[Answer], Answer]:
    return lambda _: Answer(200, body, content_type)


def half(answer: Answer) -> bytes:
    return answer.body[: len(answer.body) // 2]


def _stalled(answer: Answer) -> Answer:
    """Half of the body, then nothing, and the connection stays open."""

    def chunks() -> Iterator[bytes | None]:
        yield half(answer)
        threading.Event().wait(_LONGEST_STALL)
        yield None

    return replace(answer, chunks=chunks())


def _never(right: Answer) -> Answer:
    threading.Event().wait(_LONGEST_STALL)
    return right


def _zipped(answer: Answer, spoil: Callable[[bytes], bytes]) -> Answer:
    zipped = gzip.compress(answer.body, mtime=0)
    return Answer(answer.status, spoil(zipped), headers={"Content-Encoding": "gzip"})


def _bent(zipped: bytes) -> bytes:
    """Other bytes at the end, where the sum of what was sent is."""
    return zipped[:-8] + b"12345678"


LOGIN = "<html><body>sign in</body></html>"
TIMEOUT = r"read tcp 127\.0\.0\.1:\d+: i/o timeout"

UNREACHABLE = [
    _unreachable("hangs up", lambda _: Answer(hangs_up=True), "EOF"),
    _unreachable("never answers", _never, TIMEOUT),
    _unreachable(
        "speaks no HTTP",
        lambda _: Answer(raw=b"SSH-2.0-OpenSSH_9.2\r\n"),
        r"net/http: HTTP/1\.x transport connection broken: malformed HTTP response .*",
    ),
    _unreachable(
        "cut off",
        lambda right: replace(right, body=half(right), promised_bytes=len(right.body)),
        "unexpected EOF",
    ),
    _unreachable("promises too much", lambda right: replace(right, promised_bytes=10**7), "unexpected EOF"),
    _unreachable(
        "chunks cut off", lambda right: replace(right, chunks=[half(right), None]), "unexpected EOF"
    ),
    _unreachable("no first chunk", lambda right: replace(right, chunks=[None]), "unexpected EOF"),
    _unreachable("stalls in the middle", _stalled, TIMEOUT),
]
UNREADABLE = [
    _unreadable("promises too little", lambda right: replace(right, body=half(right)), ".*"),
    _unreadable("zip cut off", lambda right: _zipped(right, lambda zipped: zipped[:-12]), "the compressed.*"),
    _unreadable("zip bent", lambda right: _zipped(right, _bent), ".*incorrect data check"),
    _unreadable("no zip", lambda right: replace(right, headers={"Content-Encoding": "gzip"}), ".*header.*"),
    _unreadable("nothing", _instead(b""), ".*"),
    _unreadable("html", _instead(LOGIN.encode(), "text/html"), ".*malformed.*"),
    _unreadable("garbage", _instead(b"\x00\xff\x1b[31m{" * 9), ".*"),
    _unreadable("null", _instead(b"null"), "Expected `object`, got `null`"),
    _unreadable("a list", _instead(b"[]"), "Expected `object`, got `array`"),
    _unreadable("something else", _instead(b'{"message":"sign in"}'), ".*"),
    _unreadable("a status", lambda _: replace(status(403, "Forbidden", "no"), status=200), ".*"),
    _unreadable(
        "no UTF-8",
        lambda right: replace(right, body=right.body.replace(b'"name":"', b'"name":"\xff', 1)),
        ".*",
    ),
    _unreadable(
        "deep",
        lambda right: replace(right, body=_first(right.body, b'{"x":' + b"[" * 40000 + b"]" * 40000 + b",")),
        ".*",
    ),
]
REFUSED = [
    _refused(
        "401", answer_of(recorded("bad-token-401")), r"You must be logged in to the server \(Unauthorized\)"
    ),
    _refused(
        "403",
        answer_of(recorded("viewer-403-pods-403")),
        r"Error from server \(Forbidden\): pods is forbidden: .*",
    ),
    _refused(
        "404",
        Answer(404, b"404 page not found\n", "text/plain"),
        r"Error from server \(NotFound\): the server could not find the requested resource",
    ),
    _refused(
        "429", Answer(429, b""), r"Error from server \(TooManyRequests\): the server has received too many .*"
    ),
    _refused(
        "500",
        status(500, "InternalError", "Internal error occurred: etcdserver: leader changed"),
        r"Error from server \(InternalError\): Internal error occurred: etcdserver: leader changed",
    ),
    _refused(
        "502",
        Answer(502, LOGIN.encode(), "text/html"),
        r'Error from server \(InternalError\): an error on the server \("<html>.*"\) has prevented .*',
    ),
    _refused(
        "503",
        answer_of(recorded("metrics-unavailable-503")),
        r"Error from server \(ServiceUnavailable\): the server is currently unable to handle the request",
    ),
    _refused(
        "504",
        status(504, "Timeout", "Timeout: request did not complete within the allotted timeout"),
        r"Error from server \(Timeout\): Timeout: request did not complete within the allotted timeout",
    ),
    _refused(
        "a redirect",
        Answer(302, b"", headers={"Location": "/login"}),
        "Error from server: the server responded with the status code 302 but did not return more .*",
    ),
]
FAULTS = [*UNREACHABLE, *UNREADABLE, *REFUSED]


def _first(body: bytes, start: bytes) -> bytes:
    """The body with a field before all others."""
    return start + body[1:]


@dataclass(frozen=True)
class Point:
    """A request that something goes wrong with, and the question that leads to it.

    `what` is how answers to it are called; `is_fatal` where nothing can be said without it.
    """

    name: str
    path: str
    flags: tuple[str, ...]
    what: str = ""
    is_fatal: bool = True
    of_query: Callable[[Mapping[str, str]], bool] = lambda _: True
    forbidden: frozenset[str] = frozenset()

    def is_meant(self, path: str, query: Mapping[str, str]) -> bool:
        return path == self.path and self.of_query(query)


IN_SHOP = ("-n", "shop")
POINTS = [
    Point("one page", SHOP_PODS, IN_SHOP),
    Point("second page", SHOP_PODS, IN_SHOP, of_query=lambda query: "continue" in query),
    Point("in one piece", PODS, ("-A",)),
    Point("neighbours", PODS, IN_SHOP, of_query=lambda query: bool(query.get("fieldSelector"))),
    Point(
        "namespace instead of node",
        SHOP_PODS,
        ("--node", "worker-1", *IN_SHOP),
        forbidden=frozenset({PODS}),
    ),
    Point("node", WORKER, IN_SHOP, "node worker-1", is_fatal=False),
    Point("usage", METRICS, IN_SHOP, is_fatal=False),
]


class Spoiling:
    """A server of 40 pods, one of whose answers a fault replaces."""

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
def pages(monkeypatch: pytest.MonkeyPatch) -> Callable[[Point, float], None]:
    """Pages as small, and parts of bodies as short, as the point wants them; how long its answer may take."""

    def start(point: Point, seconds: float) -> None:
        if point.name == "second page":
            monkeypatch.setattr("kubectl_qos.cluster.http.PAGE_SIZE", 15)
        if point.name == "in one piece":
            monkeypatch.setattr(answers, "PART_BYTES", 2048)
        request = Connection.request

        def without_retries(self: Connection, method: str, path: str, query: Any = None, **more: Any) -> Any:
            if point.is_meant(path, query or {}):
                more["read_seconds"] = seconds
            return request(self, method, path, query, **more)

        monkeypatch.setattr(Connection, "request", without_retries)

    return start


OF_EACH_KIND = {"cut off", "html", "403", "404", "503"}
AT_POINT = {"one page": FAULTS, "in one piece": [*UNREACHABLE, *UNREADABLE]}
"""A request is sent and read in the same way wherever it leads; a list in one piece is read in parts."""


def cases() -> Iterator[Any]:
    for point in POINTS:
        few = [fault for fault in FAULTS if fault.name in OF_EACH_KIND]
        for fault in AT_POINT.get(point.name, few):
            if (point.name, fault.refused) in {("neighbours", 403), ("node", 404)}:
                continue  # a right that is wanting, and a node that is gone, are no faults: test_live.py
            yield pytest.param(fault, point, id=f"{point.name}: {fault.name}")


@pytest.mark.parametrize(("fault", "point"), cases())
def test_a_fault_is_one_sentence(
    connect_to: ConnectTo,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    pages: Callable[[Point, float], None],
    fault: Fault,
    point: Point,
) -> None:
    pages(point, SILENCE_SECONDS if TIMEOUT in fault.sentence else 60)
    connect_to(Spoiling(fault, point))
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


def test_a_page_whose_next_one_is_not_found_is_no_end(connect_to: ConnectTo) -> None:
    """A list with its continue token too far inside is known to be incomplete, and refused."""
    far = {"metadata": {"selfLink": "x" * 9000, "continue": "t"}, "items": [pod("a")] * 30}
    objects = ObjectServer()
    objects.faults[PODS] = Answer(body=json.dumps(far, separators=(",", ":")).encode())
    with pytest.raises(QosError, match="the list goes on, but its continue token was not found"):
        KubeApi(connect_to(objects)).pods()


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
