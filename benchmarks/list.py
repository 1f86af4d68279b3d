"""The time of `top -A` for 20,000 pods, as a ratio against a plain download of the same pages.

    python benchmarks/list.py [--pods 20000] [--nodes 200] [--times 5] [--gzip]

Yardstick: a separate process that fetches the same pages as our command (pods in pages of 500,
nodes, pod metrics) over one TLS connection with http.client, parses each with json.loads, and drops it.
Ours: `kubectl-qos top -A` from start to exit, its output discarded. A second pair leaves out usage
on both sides. The server is a third process with every page rendered beforehand. With --gzip it compresses
for clients that offer it, which ours does (as kubectl) and the yardstick does not.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import yaml

from benchmarks.measure import interleaved
from benchmarks.server import CA_FILE, KUBECONFIG_FILE, METRICS_PATH, NODES_PATH, PODS_PATH

HERE = Path(__file__).parent
MOST_RATIO = 1.0
MOST_BYTES = 120 * 1000 * 1000


def main() -> int:
    """Measure, print, and exit 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--gzip", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        size = ["--pods", str(options.pods), "--nodes", str(options.nodes)]
        command = [sys.executable, str(HERE / "server.py"), name, *size]
        with subprocess.Popen(
            command + ["--gzip"] * options.gzip, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as server:
            assert server.stdout is not None
            served = int(server.stdout.readline().split()[1])
            print(f"{options.pods} pods on {options.nodes} nodes, {served / 1e6:.0f} MB of JSON")
            print(f"Python {platform.python_version()}, {os.cpu_count()} cores")
            missed = [
                _compare("with usage", folder, options.times, [PODS_PATH, NODES_PATH, METRICS_PATH], []),
                _compare("--usage=none", folder, options.times, [PODS_PATH, NODES_PATH], ["--usage=none"]),
            ]
            server.communicate("")
    return int(any(missed))


def _compare(title: str, folder: Path, times: int, paths: list[str], flags: list[str]) -> bool:
    """Print one pair and return whether a target was missed."""
    kubeconfig = folder / KUBECONFIG_FILE
    url = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    python = sys.executable
    found = interleaved(
        {
            "yardstick": [python, str(HERE / "download.py"), url, str(folder / CA_FILE), *paths],
            "ours": [python, "-m", "kubectl_qos", "top", "-A", "--kubeconfig", str(kubeconfig), *flags],
        },
        times,
    )
    ours, yardstick = found["ours"], found["yardstick"]
    ratio = ours.wall_seconds / yardstick.wall_seconds
    print(
        f"top -A {title:<12} wall {ratio:.2f} of the yardstick"
        f" ({ours.wall_seconds:.2f} s to {yardstick.wall_seconds:.2f} s, target at most {MOST_RATIO});"
        f" cpu {ours.cpu_seconds / yardstick.cpu_seconds:.2f};"
        f" peak {ours.peak_bytes / 1e6:.0f} MB to {yardstick.peak_bytes / 1e6:.0f} MB"
        f" (target under {MOST_BYTES / 1e6:.0f})"
    )
    return ratio > MOST_RATIO or ours.peak_bytes >= MOST_BYTES


if __name__ == "__main__":
    sys.exit(main())
