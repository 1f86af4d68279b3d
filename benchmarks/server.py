"""An API server of a made-up cluster in a process of its own; its pages are rendered before it listens.

    python benchmarks/server.py FOLDER --pods 20000 --nodes 200

Writes a kubeconfig and the CA into FOLDER, then prints `ready` and serves until its input ends.
"""

from __future__ import annotations

import argparse
import gzip
import json
import ssl
import sys
import threading
from collections.abc import Iterable, Mapping
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
CA_FILE = "ca.crt"
KUBECONFIG_FILE = "kubeconfig"

Pages = Mapping[tuple[str, str], bytes]


def main() -> None:
    """Render, listen, and end with the input."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--page", type=int, default=500)
    parser.add_argument("--gzip", action="store_true", help="compress for clients that offer it")
    options = parser.parse_args()
    pages = render(options.pods, options.nodes, options.page)
    compressed = {key: gzip.compress(body, 1) for key, body in pages.items()} if options.gzip else {}
    listener = listen(pages, compressed, options.folder)
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    print("ready", sum(map(len, pages.values())), flush=True)
    sys.stdin.read()


def render(pods: int, nodes: int, page: int) -> Pages:
    """Every answer by path and continue token."""
    names = cluster.node_names(nodes)
    found: dict[tuple[str, str], bytes] = {}
    samples = []
    batch: list[Any] = []
    for number, pod in enumerate(cluster.pods(pods, names), start=1):
        samples.append(cluster.metrics(pod))
        batch.append(pod)
        if len(batch) == page or number == pods:
            first = number - len(batch)
            following = str(number) if number < pods else ""
            found[PODS_PATH, str(first) if first else ""] = _list("PodList", batch, following, pods - number)
            batch = []
    found[NODES_PATH, ""] = _list("NodeList", map(cluster.node, names))
    found[METRICS_PATH, ""] = _list("PodMetricsList", samples)
    return found


def _list(kind: str, items: Iterable[Any], following: str = "", remaining: int = 0) -> bytes:
    metadata: dict[str, Any] = {"resourceVersion": "20000"}
    if following:
        metadata |= {"continue": following, "remainingItemCount": remaining}
    group = "metrics.k8s.io/v1beta1" if kind == "PodMetricsList" else "v1"
    value = {"kind": kind, "apiVersion": group, "metadata": metadata, "items": list(items)}
    return json.dumps(value, separators=(",", ":")).encode()


def listen(pages: Pages, compressed: Pages, folder: Path) -> ThreadingHTTPServer:
    """A listener with the pages, its kubeconfig written."""
    authority = Authority()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.server("127.0.0.1").write(folder, "server"))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            key = parts.path, parse_qs(parts.query).get("continue", [""])[0]
            body = pages.get(key)
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Type", "application/json")
            if key in compressed and "gzip" in self.headers.get("Accept-Encoding", ""):
                body = compressed[key]
                self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_: object) -> None:
            """Nothing is said while something is measured."""

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
