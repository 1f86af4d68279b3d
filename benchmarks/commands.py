"""CPU, time and memory of every command on a large cluster, against a plain download, and how they grow.

    python benchmarks/commands.py [--times 1] [--sizes 20000/1000 50000/2500] [--only NAME]

The cluster is served as in large.py. Yardstick: the download of pods, nodes and usage in pages, each parsed
with json.loads and dropped. The CPU time of a command at the second size is compared with that at the first:
what is linear in pods and nodes grows as they do.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import yaml

from benchmarks.large import HERE, served
from benchmarks.measure import Run, interleaved
from benchmarks.server import CA_FILE, KUBECONFIG_FILE, METRICS_PATH, NODES_PATH, PODS_PATH

COMMANDS = {
    "top -A": 0.75,
    "top -A -o json": 1.5,
    "top nodes": 1.0,
    "next -A": 1.0,
    "kills -A": 1.0,
    "fix -A": 2.5,
    "check -A": 2.5,
    "report -A": 3.0,
    "tree": 3.0,
    "fix --priorities": 3.0,
    "compare -A --to 1.37": 6.0,
}
"""The most CPU time of each, as a ratio of the yardstick's."""
MOST_MEGABYTES = {20_000: 110, 50_000: 170}
MOST_GROWTH = 1.2
"""Of the growth of the cluster."""
YARDSTICK = "download"


def main() -> int:
    """Measure, print, and exit 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--sizes", nargs="+", default=["20000/1000", "50000/2500"])
    parser.add_argument("--only", nargs="+", choices=COMMANDS, default=list(COMMANDS))
    options = parser.parse_args()
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.0f}")
    sizes = [tuple(map(int, size.split("/"))) for size in options.sizes]
    runs = [_measure(pods, nodes, options.only, options.times) for pods, nodes in sizes]
    missed = []
    for found, (pods, _) in zip(runs, sizes, strict=True):
        yardstick, megabytes = found[YARDSTICK], MOST_MEGABYTES.get(pods, 1000)
        for name, run in found.items():
            ratio = run.cpu_seconds / yardstick.cpu_seconds
            print(
                f"{name:<20} wall {run.wall_seconds:6.2f} s, cpu {run.cpu_seconds:6.2f} s,"
                f" {ratio:5.2f} of the yardstick, peak {run.peak_bytes / 1e6:4.0f} MB"
            )
            if ratio > COMMANDS.get(name, ratio) or (name in COMMANDS and run.peak_bytes > megabytes * 1e6):
                missed.append(name)
    for name in options.only if len(runs) > 1 else ():
        growth = runs[1][name].cpu_seconds / runs[0][name].cpu_seconds
        print(f"{name:<20} grows {growth:.2f} times, the cluster {sizes[1][0] / sizes[0][0]:.2f} times")
        if growth > MOST_GROWTH * sizes[1][0] / sizes[0][0]:
            missed.append(name)
    print(f"targets missed: {', '.join(dict.fromkeys(missed)) or 'none'}")
    return int(bool(missed))


def _measure(pods: int, nodes: int, names: list[str], times: int) -> dict[str, Run]:
    with served(pods, nodes) as folder:
        kubeconfig = folder / KUBECONFIG_FILE
        url = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
        paths = [PODS_PATH, NODES_PATH, METRICS_PATH]
        commands = {
            YARDSTICK: [sys.executable, str(HERE / "download.py"), url, str(folder / CA_FILE), *paths]
        }
        given = ["--kubeconfig", str(kubeconfig)]
        ours = [sys.executable, "-m", "kubectl_qos"]
        return interleaved(commands | {name: [*ours, *name.split(), *given] for name in names}, times)


if __name__ == "__main__":
    sys.exit(main())
