"""An API server whose objects change while it is watched, with a history that can be forgotten."""

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from kubectl_qos.demo.api import has_fields, key_of, without_kind
from tests.cluster.https_server import Answer, Request
from tests.cluster.object_server import Object, ObjectServer, status

Line = bytes | None
"""A part of a watch's body; None breaks the connection off."""

BASE = 1000
"""The revision of what is there from the beginning."""


_TOO_OLD = json.loads(status(410, "Expired", "too old resource version").body)


class WatchServer(ObjectServer):
    """Lists with revisions, and watches from a revision or, with `streams`, of everything first.

    `on_watch` may take the place of a watch: it gets the request and the events that the server would send.
    """

    def __init__(self, *, streams: bool = True, **objects: Any) -> None:
        super().__init__(**objects)
        self.streams = streams
        self.on_watch: Callable[[Request, Iterator[Line]], Answer | Iterable[Line]] | None = None
        self.revision = BASE
        self._oldest = BASE
        self._history: list[tuple[int, str, Object]] = []
        self._changed = threading.Condition()
        self._round = 0
        self._breaks = False
        for found in (*self.pods, *self.nodes):
            found["metadata"]["resourceVersion"] = str(BASE)

    def put(self, found: Object) -> None:
        with self._changed:
            held = self._held(found)
            self.revision += 1
            found["metadata"]["resourceVersion"] = str(self.revision)
            known = [one for one in held if key_of(one) == key_of(found)]
            for one in known:
                held.remove(one)
            held.append(found)
            held.sort(key=key_of)
            self._publish("MODIFIED" if known else "ADDED", found)

    def delete(self, found: Object) -> None:
        with self._changed:
            held = self._held(found)
            held[:] = [one for one in held if key_of(one) != key_of(found)]
            self.revision += 1
            gone = {**found, "metadata": {**found["metadata"], "resourceVersion": str(self.revision)}}
            self._publish("DELETED", gone)

    def bookmark(self) -> None:
        """Tell every watch how far it is."""
        with self._changed:
            self.revision += 1
            self._publish("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": str(self.revision)}})

    def forget(self) -> None:
        """Compact: what was before now can neither be watched from nor be continued."""
        with self._changed:
            self._oldest = self.revision
            self._history.clear()

    def end_watches(self, *, abruptly: bool = False) -> None:
        """End every watch that is open, as after its time, or as by a crash."""
        with self._changed:
            self._round += 1
            self._breaks = abruptly
            self._changed.notify_all()

    def __call__(self, request: Request) -> Answer:
        if request.query.get("watch") != "true":
            with self._changed:
                requested = int(request.query.get("resourceVersion") or 0)
                if requested > self.revision:
                    too_large = f"Too large resource version: {requested}, current: {self.revision}"
                    return status(504, "Timeout", too_large)
                return super().__call__(request)
        # Before anything else: what ends all watches from now on ends this one.
        began = self._round
        fault = self.faults.get(f"watch {request.path}")
        if callable(fault):
            fault = fault(request)
        if fault is not None:
            return fault
        first = super().__call__(
            Request(request.method, request.path, {}, request.headers, user=request.user)
        )
        if first.status != 200:
            return first
        initial = request.query.get("sendInitialEvents") == "true"
        if initial and not self.streams:
            message = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
            return status(422, "Invalid", message)
        revision = int(request.query.get("resourceVersion") or 0)
        if not initial and revision < self._oldest:
            return Answer(chunks=[_line("ERROR", _TOO_OLD)])
        lines = self._lines(request, revision, began, initial=initial)
        found = self.on_watch(request, lines) if self.on_watch is not None else lines
        return found if isinstance(found, Answer) else Answer(chunks=found)

    def _lines(self, request: Request, revision: int, began: int, *, initial: bool) -> Iterator[Line]:
        is_pods = request.path.endswith("/pods")
        if initial:
            with self._changed:
                revision = self.revision
                held = list(self.pods if is_pods else self.nodes)
            yield from (_line("ADDED", found) for found in held if self._wanted(request, found))
            yield _end_of_list(revision)
        ends = time.monotonic() + float(request.query.get("timeoutSeconds", "60"))
        news: list[tuple[int, str, Object]] = []
        while True:
            with self._changed:
                self._changed.wait_for(
                    partial(self._has_news, began, revision), max(0.0, ends - time.monotonic())
                )
                if self._round != began or time.monotonic() >= ends:
                    broken = self._breaks
                    break
                behind = revision < self._oldest
                news = [one for one in self._history if one[0] > revision]
                revision = self.revision
            if behind:
                yield _line("ERROR", _TOO_OLD)
                return
            for _, kind, found in news:
                if kind == "BOOKMARK" or (_is_pod(found) == is_pods and self._wanted(request, found)):
                    yield _line(kind, found)
        if broken:
            yield None

    def _has_news(self, began: int, revision: int) -> bool:
        return self._round != began or self.revision > revision

    def _wanted(self, request: Request, found: Object) -> bool:
        namespace = request.path.split("/")[4] if "/namespaces/" in request.path else None
        in_place = namespace is None or found["metadata"].get("namespace") == namespace
        return in_place and has_fields(found, request.query.get("fieldSelector", ""))

    def _held(self, found: Object) -> list[Object]:
        return self.pods if _is_pod(found) else self.nodes

    def _publish(self, kind: str, found: Object) -> None:
        self._history.append((self.revision, kind, found))
        self._changed.notify_all()

    def list_revision(self) -> str:
        return str(self.revision)


def _is_pod(found: Object) -> bool:
    return "containers" in found.get("spec", {})


def _end_of_list(revision: int) -> bytes:
    annotations = {"k8s.io/initial-events-end": "true"}
    return _line("BOOKMARK", {"metadata": {"resourceVersion": str(revision), "annotations": annotations}})


def _line(kind: str, found: Object) -> bytes:
    whole = found if kind in {"BOOKMARK", "ERROR"} else {"kind": "Pod", **without_kind(found)}
    return json.dumps({"type": kind, "object": whole}, separators=(",", ":")).encode() + b"\n"
