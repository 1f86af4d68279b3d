"""What can go wrong with a watch, as data, and a server whose watches go wrong so until it is mended."""

import gzip
import json
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.cluster.cluster_objects import pod
from tests.cluster.https_server import Answer, Request
from tests.cluster.object_server import status
from tests.cluster.replay import answer_of, recorded
from tests.cluster.watch_server import Line, WatchServer

PODS = "/api/v1/pods"
SILENCE_SECONDS = 0.3
_LONGEST_STALL = 20.0
_CANNOT_BE_READ = "the server's answer for /api/v1/pods cannot be read: "


@dataclass(frozen=True)
class Fault:
    """`parts` are what a watch brings in place of what is right, or `answer` is there in place of a watch.

    `sentence` is how what is said begins; it is empty where following goes on without a word. A `line` can
    only come after whole lines.
    """

    name: str
    sentence: str
    parts: Callable[[threading.Event], Iterable[Line]] | None = None
    answer: Answer | None = None
    is_line: bool = False


class BreakableServer(WatchServer):
    """A server whose watches of pods break when they are told to, and stay broken until they are mended."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._fault: Fault | None = None
        self._inside = False
        self._healed = threading.Event()
        self.on_watch = self._watch

    def break_watches(self, fault: Fault, *, inside: bool = False) -> None:
        """From now on every watch of pods is broken; with `inside` in the middle of an event's line."""
        self._healed.clear()
        self._inside = inside
        self._fault = fault
        self.end_watches()

    def mend(self) -> None:
        """Watches are as they should be again."""
        self._fault = None
        self._healed.set()

    def _watch(self, request: Request, lines: Iterator[Line]) -> Answer | Iterable[Line]:
        if not request.path.endswith("/pods"):
            return lines
        if self._fault is not None and self._fault.answer is not None:
            return self._fault.answer
        return self._lines_until_broken(request, lines)

    def _lines_until_broken(self, request: Request, lines: Iterator[Line]) -> Iterator[Line]:
        listing = request.query.get("sendInitialEvents") == "true"
        while self._fault is None or listing:
            line = next(lines, b"end")
            if line == b"end" or (self._fault is not None and not listing):
                break
            yield line
            # Of a streaming list one object, and not its end.
            listing = listing and self._fault is None
        fault = self._fault
        if fault is None:
            return
        if self._inside:
            yield event("MODIFIED", pod("a", request="900Mi"))[:150]
        yield from fault.parts(self._healed) if fault.parts is not None else [None]


def event(kind: str, found: Any) -> bytes:
    """A line of a watch; what has no revision is from long ago."""
    return json.dumps({"type": kind, "object": found}, separators=(",", ":")).encode() + b"\n"


def newer(found: dict[str, Any], revision: str = "999999") -> dict[str, Any]:
    """The object as it is at a revision."""
    found["metadata"]["resourceVersion"] = revision
    return found


def _line(name: str, why: str, *lines: bytes) -> Fault:
    return Fault(name, _CANNOT_BE_READ + why, lambda _: lines, is_line=True)


def _reported(code: int, reason: str, message: str, sentence: str) -> Fault:
    events = json.loads(status(code, reason, message).body)
    return Fault(f"event {code}", sentence, lambda _: [event("ERROR", events)], is_line=True)


def _refused(name: str, answer: Answer, sentence: str) -> Fault:
    return Fault(name, sentence, answer=answer)


def _stall(healed: threading.Event) -> Iterator[Line]:
    yield b""
    healed.wait(_LONGEST_STALL)
    yield None


def _unusable(quantity: str) -> dict[str, Any]:
    return newer(pod("a", limit=quantity))


def _zip_cut_off() -> Answer:
    zipped = gzip.compress(event("BOOKMARK", {"metadata": {"resourceVersion": "1000"}}) * 50, mtime=0)
    return Answer(200, zipped[:-30], headers={"Content-Encoding": "gzip"})


_LOGIN = b"<html><body>sign in</body></html>\n"
_EXPIRED = json.loads(recorded("watch-expired")["response"]["lines"][0])["object"]

BROKEN_OFF = [
    Fault("cut off", "Unable to connect to the server: unexpected EOF", lambda _: [None]),
    Fault("stalls", "", _stall),
    Fault("ends at once", "very short watch: /api/v1/pods: ", lambda _: [], is_line=True),
]
SPOILED = [
    _line("html", "JSON is malformed", _LOGIN),
    _line("garbage", "", b"\x00\xff\x1b[31m\n"),
    _line("not an object", "Expected `object`", b"7\n"),
    _line("no UTF-8", "'utf-8' codec", event("ADDED", newer(pod("c"))).replace(b'"c"', b'"\xff"')),
    _line("deep", "maximum recursion", b'{"type":"ADDED","object":' + b"[" * 40000 + b"]" * 40000 + b"}\n"),
    _line("unknown type", "got invalid watch event type: CHANGED", event("CHANGED", newer(pod("c")))),
    _line("no type", "Object missing required field `type`", b'{"object":{}}\n'),
    _line("no object", "Object missing required field `object`", b'{"type":"ADDED"}\n'),
    _line("null", "Expected `object`, got `null`", event("ADDED", None)),
    _line("no name", "an object has no name", event("ADDED", {"kind": "Pod", "metadata": {}})),
    _line("quantity", "memory: 'lots': quantities must match", event("MODIFIED", _unusable("lots"))),
    _line("older", "revision 5 comes after", event("MODIFIED", newer(pod("a", request="900Mi"), "5"))),
]
REPORTED = [
    _reported(401, "Unauthorized", "Unauthorized", "You must be logged in to the server (Unauthorized)"),
    _reported(403, "Forbidden", "no", ""),
    _reported(500, "InternalError", "etcd: lost", "Error from server (InternalError): etcd: lost"),
    Fault(
        "event 410",
        "Error from server (Expired): The resourceVersion for the provided watch is too old.",
        lambda _: [event("ERROR", _EXPIRED)],
        is_line=True,
    ),
    Fault(
        "an error that says nothing",
        "Error from server (InternalError): an error on the server",
        lambda _: [event("ERROR", {})],
        is_line=True,
    ),
]
INSTEAD = [
    _refused("hangs up", Answer(hangs_up=True), "Unable to connect to the server: EOF"),
    _refused("speaks no HTTP", Answer(raw=b"SSH-2.0\r\n"), "Unable to connect to the server: net/http: "),
    _refused(
        "promises too much", Answer(promised_bytes=99), "Unable to connect to the server: unexpected EOF"
    ),
    _refused("zip cut off", _zip_cut_off(), _CANNOT_BE_READ),
    _refused("nothing", Answer(200, b""), "very short watch: /api/v1/pods: "),
    _refused("status 401", answer_of(recorded("bad-token-401")), "You must be logged in to the server"),
    _refused("status 403", answer_of(recorded("viewer-403-pods-403")), ""),
    _refused("status 410", status(410, "Expired", "too old"), "Error from server (Expired): too old"),
    _refused("status 429", Answer(429, b""), "Error from server (TooManyRequests): "),
    _refused(
        "status 500",
        Answer(500, b"boom", "text/plain"),
        'Error from server (InternalError): an error on the server ("boom")',
    ),
    _refused(
        "status 503",
        answer_of(recorded("metrics-unavailable-503")),
        "Error from server (ServiceUnavailable): ",
    ),
    _refused("status 504", Answer(504, b"", "text/html"), "Error from server (Timeout): "),
]
