"""An API server of a generated cluster in a separate process; all responses are rendered before it listens.

    python benchmarks/server.py FOLDER --pods 20000 --nodes 200

Writes a kubeconfig and the CA into FOLDER, then prints `ready` and the bytes of its lists, and serves until
its input ends. Like a real one it answers a list from its watch cache (resourceVersion=0) in one piece and
any other in pages, in whole objects or as the tables that kubectl requests; with discovery, for kubectl.
With --events a watch of pods gets that many changes, at --rate per second.

Below SLOW each answer is late, below BROKEN it is an error, and below GARBLED no JSON.
"""

from __future__ import annotations

import argparse
import gzip
import json
import ssl
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import cluster
from tests.cluster.certificates import Authority
from tests.cluster.kubeconfigs import inline, kubeconfig, write

PODS_PATH = "/api/v1/pods"
NODES_PATH = "/api/v1/nodes"
METRICS_PATH = "/apis/metrics.k8s.io/v1beta1/pods"
SENT_PATH = "/sent"
"""How many changes have been sent: a machine may be too busy for the rate."""
SLOW, BROKEN, GARBLED = "/slow", "/broken", "/garbled"
SLOW_SECONDS = 0.5
CA_FILE = "ca.crt"
KUBECONFIG_FILE = "kubeconfig"
REVISION = "20000"

_TABLE_COLUMNS = (
    ("Name", "string", 0),
    ("Ready", "string", 0),
    ("Status", "string", 0),
    ("Restarts", "string", 0),
    ("Age", "string", 0),
    ("IP", "string", 1),
    ("Node", "string", 1),
    ("Nominated Node", "string", 1),
    ("Readiness Gates", "string", 1),
)
_DISCOVERY: Mapping[str, Mapping[str, Any]] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "/api/v1": {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [
            {
                "name": "pods",
                "singularName": "pod",
                "namespaced": True,
                "kind": "Pod",
                "verbs": ["get", "list", "watch"],
                "shortNames": ["po"],
            }
        ],
    },
}


@dataclass
class Rendered:
    """The items of a list as JSON, joined by commas, in chunks of a fixed number."""

    kind: str
    api_version: str
    extra: str = ""
    key: str = "items"
    chunks: list[bytes] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def head(self, following: str = "", remaining: int = 0) -> bytes:
        """The JSON before the items."""
        metadata: dict[str, Any] = {"resourceVersion": REVISION}
        if following:
            metadata |= {"continue": following, "remainingItemCount": remaining}
        start = json.dumps(
            {"kind": self.kind, "apiVersion": self.api_version, "metadata": metadata}, separators=(",", ":")
        )
        return f'{start[:-1]},{self.extra}"{self.key}":['.encode()

    def page(self, number: int) -> bytes:
        """One page."""
        following = str(number + 1) if number + 1 < len(self.chunks) else ""
        chunk = self.chunks[number] if self.chunks else b""
        return self.head(following, sum(self.sizes[number + 1 :])) + chunk + b"]}"

    def whole(self) -> Iterator[bytes]:
        """Everything, in pieces."""
        yield self.head()
        for number, chunk in enumerate(self.chunks):
            yield b"," + chunk if number else chunk
        yield b"]}"


def main() -> None:
    """Render, listen, and end with the input."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--page", type=int, default=500)
    parser.add_argument("--gzip", action="store_true", help="compress for clients that offer it")
    parser.add_argument("--events", type=int, default=0)
    parser.add_argument("--rate", type=int, default=0, help="events a second, as many as go if not given")
    options = parser.parse_args()
    lists, tables = render(options.pods, options.nodes, options.page)
    events = Events(lists[PODS_PATH], options.events, options.rate)
    listener = listen(Answering(lists, tables, events), options.folder, zipped=options.gzip)
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    print("ready", sum(len(chunk) for found in lists.values() for chunk in found.chunks), flush=True)
    sys.stdin.read()


def render(pods: int, nodes: int, page: int) -> tuple[dict[str, Rendered], dict[str, Rendered]]:
    """The lists by path, and the tables of those that kubectl requests as tables."""
    names = cluster.node_names(nodes)
    columns = [
        {"name": name, "type": kind, "format": "", "description": name, "priority": priority}
        for name, kind, priority in _TABLE_COLUMNS
    ]
    lists = {
        PODS_PATH: Rendered("PodList", "v1"),
        NODES_PATH: Rendered("NodeList", "v1"),
        METRICS_PATH: Rendered("PodMetricsList", "metrics.k8s.io/v1beta1"),
    }
    table = Rendered("Table", "meta.k8s.io/v1", f'"columnDefinitions":{json.dumps(columns)},', "rows")
    for batch in _batches(cluster.pods(pods, names), page):
        _add(lists[PODS_PATH], batch)
        _add(lists[METRICS_PATH], [cluster.metrics(pod) for pod in batch])
        _add(table, [_table_row(pod) for pod in batch])
    for batch in _batches(map(cluster.node, names), page):
        _add(lists[NODES_PATH], batch)
    return lists, {PODS_PATH: table}


def _batches(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    batch: list[Any] = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def _add(rendered: Rendered, batch: list[Any]) -> None:
    rendered.chunks.append(json.dumps(batch, separators=(",", ":"))[1:-1].encode())
    rendered.sizes.append(len(batch))


def _table_row(pod: Mapping[str, Any]) -> dict[str, Any]:
    statuses = pod["status"]["containerStatuses"]
    restarts = sum(status["restartCount"] for status in statuses)
    count = len(statuses)
    cells = [
        pod["metadata"]["name"],
        f"{count}/{count}",
        "Running",
        str(restarts),
        "19d",
        pod["status"]["podIP"],
        pod["spec"]["nodeName"],
        "<none>",
        "<none>",
    ]
    found = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": pod["metadata"]}
    return {"cells": cells, "object": found}


class Events:
    """Changes of pods as a watch sends them: each has a new resourceVersion and restart count."""

    def __init__(self, pods: Rendered, count: int, rate: int) -> None:
        self._count = count
        self._rate = rate
        self.sent = 0
        self._pods = [pod for chunk in pods.chunks[:10] for pod in json.loads(b"[" + chunk + b"]")]

    def __iter__(self) -> Iterator[bytes]:
        """The lines; then nothing more for a long time."""
        began = time.monotonic()
        for number in range(self._count):
            self.sent = number
            pod = self._pods[number * 7919 % len(self._pods)]
            pod["metadata"]["resourceVersion"] = str(int(REVISION) + number + 1)
            pod["status"]["containerStatuses"][0]["restartCount"] = number
            yield json.dumps({"type": "MODIFIED", "object": pod}, separators=(",", ":")).encode() + b"\n"
            if self._rate:
                time.sleep(max(0.0, began + (number + 1) / self._rate - time.monotonic()))
        time.sleep(3600)


@dataclass(frozen=True)
class Answering:
    """The request handler."""

    lists: Mapping[str, Rendered]
    tables: Mapping[str, Rendered]
    events: Events

    def body(self, path: str, query: Mapping[str, list[str]], accept: str) -> Iterator[bytes] | None:
        """The pieces of a body, None if the request has no response."""
        if path == SENT_PATH:
            return iter([str(self.events.sent).encode()])
        if path in _DISCOVERY:
            return iter([json.dumps(_DISCOVERY[path]).encode()])
        if "sendInitialEvents" in query:
            return None
        if "watch" in query:
            return iter(self.events) if path == PODS_PATH else _silence()
        found = (self.tables if "as=Table" in accept else self.lists).get(path)
        if found is None:
            return None
        if query.get("resourceVersion") == ["0"] or "limit" not in query:
            return found.whole()
        return iter([found.page(int(query.get("continue", ["0"])[0] or 0))])


def _silence() -> Iterator[bytes]:
    time.sleep(3600)
    yield b""


def listen(answering: Answering, folder: Path, *, zipped: bool) -> ThreadingHTTPServer:
    """A listener, its kubeconfig written."""
    authority = Authority()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.server("127.0.0.1").write(folder, "server"))
    compressed: dict[tuple[str, str, bool], bytes] = {}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = parse_qs(parts.query)
            accept = self.headers.get("Accept", "")
            fault = next((one for one in (SLOW, BROKEN, GARBLED) if parts.path.startswith(f"{one}/")), "")
            time.sleep(SLOW_SECONDS if fault == SLOW else 0)
            pieces = answering.body(parts.path.removeprefix(fault), query, accept)
            if fault in {BROKEN, GARBLED}:
                pieces = iter([b"{]" if fault == GARBLED else b"{}"])
            failed = 422 if "watch" in query else 404
            self.send_response(500 if fault == BROKEN else 200 if pieces is not None else failed)
            self.send_header("Content-Type", "application/json")
            if pieces is not None and zipped and "gzip" in self.headers.get("Accept-Encoding", ""):
                key = parts.path, parts.query, "as=Table" in accept
                if key not in compressed:
                    compressed[key] = gzip.compress(b"".join(pieces), 1)
                self.send_header("Content-Encoding", "gzip")
                pieces = iter([compressed[key]])
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for piece in pieces or ():
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")

        def log_message(self, *_: object) -> None:
            """Log nothing during a measurement."""

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listener.daemon_threads = True
    listener.socket = context.wrap_socket(listener.socket, server_side=True)
    url = f"https://127.0.0.1:{listener.server_address[1]}"
    (folder / CA_FILE).write_bytes(authority.certificate)
    ca = {"certificate-authority-data": inline(authority.certificate)}
    write(folder / KUBECONFIG_FILE, kubeconfig(url, cluster=ca))
    return listener


if __name__ == "__main__":
    main()
