"""The start-up time of short commands, against the bare interpreter.

    python benchmarks/startup.py [--times 15]

Yardstick: `python -c pass` with the same interpreter. Ours: `version --client`, `--help`, `completion`, the
request of TAB, and `explain -f` of one small manifest as YAML and as JSON, each from start to exit as a user
runs it. All take turns, so that noise hits them alike; printed are the median, the difference and the ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import yaml

from benchmarks.measure import Run, interleaved

YARDSTICK = "python -c pass"
MOST_SECONDS_OVER = {
    "version --client": 0.060,
    "--help": 0.060,
    "completion bash": 0.060,
    "__complete top --": 0.060,
    "explain -f pod.yaml": 0.150,
    "explain -f pod.json": 0.150,
}
MANIFEST = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web-0", "namespace": "shop", "labels": {"app": "web"}},
    "spec": {
        "initContainers": [
            {
                "name": "proxy",
                "image": "proxy:1",
                "restartPolicy": "Always",
                "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
            }
        ],
        "containers": [
            {
                "name": "web",
                "image": "web:1",
                "resources": {
                    "requests": {"cpu": "250m", "memory": "512Mi"},
                    "limits": {"memory": "1Gi"},
                },
            }
        ],
    },
}


def main() -> int:
    """Measure, print, and exit 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pod.yaml").write_text(yaml.safe_dump(MANIFEST))
        (folder / "pod.json").write_text(json.dumps(MANIFEST))
        ours = str(Path(sys.executable).with_name("kubectl-qos"))
        commands = {
            title: [
                ours,
                *(str(folder / word) if word.startswith("pod.") else word for word in title.split()),
            ]
            for title in MOST_SECONDS_OVER
        }
        found = interleaved({YARDSTICK: [sys.executable, "-c", "pass"], **commands}, options.times)
    bare = found.pop(YARDSTICK)
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores")
    print(f"{YARDSTICK:<22} {1000 * bare.wall_seconds:4.0f} ms")
    missed = [_report(title, run, bare) for title, run in found.items()]
    return int(any(missed))


def _report(title: str, run: Run, bare: Run) -> bool:
    """Print one command and return whether its target was missed."""
    over = run.wall_seconds - bare.wall_seconds
    most = MOST_SECONDS_OVER[title]
    print(
        f"{title:<22} {1000 * run.wall_seconds:4.0f} ms, {1000 * over:4.0f} ms over"
        f" (target at most {1000 * most:.0f}), {run.wall_seconds / bare.wall_seconds:.1f} times"
    )
    return over > most


if __name__ == "__main__":
    sys.exit(main())
