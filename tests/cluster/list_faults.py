"""What can go wrong with one answer, as data: how it looks on the wire, and what a person is told."""

from __future__ import annotations

import gzip
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tests.cluster.https_server import Answer
from tests.cluster.object_server import status
from tests.cluster.replay import answer_of, recorded

_LONGEST_STALL = 20.0
"""Longer than any test bears a silent server."""


@dataclass(frozen=True)
class Fault:
    """`spoil` makes the answer out of the right one; `{what}` in `sentence` stands for what was asked for.

    A fault that is `refused` is an answer of its own, with a status that says so; an answer that is
    `unreadable` arrives well, but is not what was asked for.
    """

    name: str
    spoil: Callable[[Answer], Answer]
    sentence: str
    refused: int = 0

    @property
    def is_unreadable(self) -> bool:
        """Whether an answer comes, and cannot be read."""
        return self.sentence.startswith("the server's answer")

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
    """The first half of a body."""
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
