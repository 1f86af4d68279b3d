"""Time and memory of `top -A` on a large cluster, against a plain download and against kubectl.

    python benchmarks/large.py [--pods 150000] [--nodes 5000] [--times 3]

The cluster is generated, the same on every run, and served by a separate process that has everything rendered
beforehand. Yardstick: a process that downloads the same lists page by page over one TLS connection
with http.client, parses each page with json.loads, and drops it. At 20,000 pods on 200 nodes kubectl is
measured too, where it is installed: `kubectl get pods -A`, which fetches tables with the pods' metadata only.
There the terminal UI is measured as well, without a screen: when its first rows are shown, and when all are.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import yaml

from benchmarks.measure import Run, interleaved
from benchmarks.server import CA_FILE, KUBECONFIG_FILE, METRICS_PATH, NODES_PATH, PODS_PATH
from kubectl_qos.cluster.live import LiveSource
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.transport import ConnectionOptions
from kubectl_qos.transport.client import connect

HERE = Path(__file__).parent
MOST_RATIO = 1.0
MOST_MEGABYTES = 350
KUBECTL_PODS, KUBECTL_NODES, KUBECTL_MEGABYTES = 20_000, 200, 100
KUBECTL_RATIO, KUBECTL_MEMORY_RATIO = 0.5, 0.1
FIRST_ROWS_RATIO = 0.3


def main() -> int:
    """Measure, print, and exit 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pods", type=int, default=150_000)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args()
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores")
    reached = _against_download(options.pods, options.nodes, options.times, MOST_MEGABYTES)
    reached &= _against_download(KUBECTL_PODS, KUBECTL_NODES, options.times, KUBECTL_MEGABYTES)
    reached &= _against_kubectl(options.times)
    reached &= _first_rows(options.times)
    return int(not reached)


@contextmanager
def served(pods: int, nodes: int) -> Iterator[Path]:
    """The folder of a server's kubeconfig and CA, while it runs."""
    with tempfile.TemporaryDirectory() as name:
        size = ["--pods", str(pods), "--nodes", str(nodes)]
        command = [sys.executable, str(HERE / "server.py"), name, *size]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            served_bytes = int(server.stdout.readline().split()[1])
            print(f"{pods:,} pods on {nodes:,} nodes, {served_bytes / 1e6:,.0f} MB of JSON")
            yield Path(name)
            server.communicate("")


def ours(folder: Path) -> list[str]:
    """The measured command."""
    return [sys.executable, "-m", "kubectl_qos", "top", "-A", "--kubeconfig", str(folder / KUBECONFIG_FILE)]


def _against_download(pods: int, nodes: int, times: int, megabytes: int) -> bool:
    with served(pods, nodes) as folder:
        url = yaml.safe_load((folder / KUBECONFIG_FILE).read_text())["clusters"][0]["cluster"]["server"]
        paths = [PODS_PATH, NODES_PATH, METRICS_PATH]
        yardstick = [sys.executable, str(HERE / "download.py"), url, str(folder / CA_FILE), *paths]
        found = interleaved({"yardstick": yardstick, "ours": ours(folder)}, times)
    mine, other = found["ours"], found["yardstick"]
    ratio = mine.wall_seconds / other.wall_seconds
    print(f"  top -A {ratio:.2f} of the yardstick's wall time (target at most {MOST_RATIO}), {_words(mine)}")
    print(f"  yardstick {_words(other)}; target under {megabytes} MB")
    return ratio <= MOST_RATIO and mine.peak_bytes < megabytes * 1e6


def _against_kubectl(times: int) -> bool:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        print("not measured against kubectl: it is not installed")
        return True
    with served(KUBECTL_PODS, KUBECTL_NODES) as folder:
        given = ["--kubeconfig", str(folder / KUBECONFIG_FILE), "--cache-dir", str(folder / "cache")]
        theirs = [kubectl, "get", "pods", "-A", *given]
        found = interleaved({"kubectl": theirs, "ours": ours(folder)}, times)
    mine, other = found["ours"], found["kubectl"]
    ratio = mine.wall_seconds / other.wall_seconds
    memory = mine.peak_bytes / other.peak_bytes
    print(f"  top -A {ratio:.2f} of kubectl's wall time (target under {KUBECTL_RATIO}), {_words(mine)}")
    print(f"  {memory:.2f} of its memory (target under {KUBECTL_MEMORY_RATIO}); kubectl {_words(other)}")
    return ratio < KUBECTL_RATIO and memory < KUBECTL_MEMORY_RATIO


def _first_rows(times: int) -> bool:
    with served(KUBECTL_PODS, KUBECTL_NODES) as folder:
        path = str(folder / KUBECONFIG_FILE)
        found = [asyncio.run(_shown(path)) for _ in range(times)]
    first, whole = (median(seconds) for seconds in zip(*found, strict=True))
    ratio = first / whole
    print(
        f"  terminal UI: first rows after {first:.2f} s, all of them ranked after {whole:.2f} s:"
        f" {ratio:.2f} of it (target at most {FIRST_ROWS_RATIO})"
    )
    return bool(ratio <= FIRST_ROWS_RATIO)


async def _shown(kubeconfig: str) -> tuple[float, float]:
    """The seconds until there are rows, and until all are there, from the start of the UI."""
    from kubectl_qos.tui.app import QosApp

    app, first = QosApp(LiveSource(connect(ConnectionOptions(kubeconfig=kubeconfig))), Scope()), 0.0
    began = time.perf_counter()
    async with app.run_test(size=(120, 40)):
        while True:
            await asyncio.sleep(0.005)
            view_model = app.view_model
            if view_model is None:
                continue
            if not first and app.main.table.rows:
                first = time.perf_counter() - began
            if view_model.arrived is None:
                return first, time.perf_counter() - began


def _words(run: Run) -> str:
    return f"{run.wall_seconds:.2f} s, cpu {run.cpu_seconds:.2f} s, peak {run.peak_bytes / 1e6:.0f} MB"


if __name__ == "__main__":
    sys.exit(main())
