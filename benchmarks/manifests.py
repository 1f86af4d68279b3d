"""Time and memory of reading manifests, against PyYAML's own loader on the same bytes.

    python benchmarks/manifests.py [--megabytes 1 50]

Yardstick: a process that goes through `yaml.load_all` with the loader of libyaml, keeping nothing. Ours: one
that reads the same file as commands do, up to the objects and what is wrong with them. The memory of a
document is what another one adds while documents are gone through and dropped. Last, a few hundred bytes of
nested aliases, which would expand to more than memory holds.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
os.environ["PYTHONPATH"] = str(ROOT)

MOST_RATIO = 1.3
MOST_BYTES_A_DOCUMENT = 100
MOST_BOMB_SECONDS, MOST_BOMB_MEGABYTES = 1.0, 60
POD = """\
---
apiVersion: v1
kind: Pod
metadata:
  name: web-{number}
  namespace: shop
  labels:
    app: web
    tier: front
spec:
  nodeName: node-{node}
  containers:
  - name: app
    image: registry.example.com/web:1.2.3
    args: ["--port", "8080", "--verbose=true"]
    ports:
    - containerPort: 8080
      name: http
    env:
    - name: LEVEL
      value: "1"
    resources:
      requests:
        cpu: 250m
        memory: {memory}Mi
      limits:
        memory: 1Gi
    livenessProbe:
      httpGet: {{path: /healthz, port: http}}
      initialDelaySeconds: 5
  volumes:
  - name: scratch
    emptyDir: {{}}
"""
BOMB = "kind: List\na0: &a0 {kind: List, items: [x]}\n" + "".join(
    f"a{level}: &a{level} {{kind: List, items: [{', '.join([f'*a{level - 1}'] * 9)}]}}\n"
    for level in range(1, 10)
)
_TIMED = """
import resource, sys, time
content = open(sys.argv[1], "rb").read()
{imports}
started = time.process_time()
{reading}
print(time.process_time() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""
_THEIRS = _TIMED.format(
    imports="import yaml", reading="for _ in yaml.load_all(content, Loader=yaml.CSafeLoader): pass"
)
_OURS = _TIMED.format(
    imports="import yaml; from kubectl_qos.cluster.documents import ParsedObjects",
    reading="ParsedObjects().add_file(content, 'x.yaml')",
)
_DROPPED = _TIMED.format(
    imports="import yaml; from kubectl_qos.cluster.documents import plain_documents",
    reading="for _ in plain_documents(content, 'x.yaml'): pass",
)


class Reading(NamedTuple):
    """CPU time in seconds without the start of the interpreter, peak memory in bytes."""

    cpu_seconds: float
    peak_bytes: float


def main() -> int:
    """Measure, print, and exit 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, nargs="+", default=[1, 50])
    options = parser.parse_args()
    print(f"Python {platform.python_version()}")
    with tempfile.TemporaryDirectory() as folder:
        reached, sizes = True, []
        for megabytes in options.megabytes:
            file = Path(folder) / f"{megabytes}.yaml"
            count = _write(file, megabytes * 1_000_000)
            found = _measure(file, 5 if megabytes < 5 else 1)
            ratio = found["ours"].cpu_seconds / found["yardstick"].cpu_seconds
            print(
                f"{megabytes} MB, {count:,} pods: {ratio:.2f} of the yardstick (target at most {MOST_RATIO})"
            )
            for name, run in found.items():
                print(f"  {name} {_words(run)}")
            reached &= ratio <= MOST_RATIO
            sizes.append((count, found["dropped"].peak_bytes - file.stat().st_size))
        (few, before), *_, (many, after) = sizes if len(sizes) > 1 else sizes * 2
        added = (after - before) / max(many - few, 1)
        print(f"{added:.0f} bytes for another document (target at most {MOST_BYTES_A_DOCUMENT})")
        bomb = Path(folder) / "bomb.yaml"
        bomb.write_text(BOMB)
        run = _measure(bomb, 5)["ours"]
        print(f"a bomb of {len(BOMB)} bytes: {_words(run)}")
    reached &= added <= MOST_BYTES_A_DOCUMENT
    reached &= run.cpu_seconds <= MOST_BOMB_SECONDS and run.peak_bytes <= MOST_BOMB_MEGABYTES * 1e6
    return int(not reached)


def _write(file: Path, size: int) -> int:
    count = 0
    with file.open("w") as opened:
        while opened.tell() < size:
            opened.write(POD.format(number=count, node=count % 50, memory=100 + count % 400))
            count += 1
    return count


def _measure(file: Path, times: int) -> dict[str, Reading]:
    """The median of each reader over rounds in which each runs once."""
    code = {"yardstick": _THEIRS, "ours": _OURS, "dropped": _DROPPED}
    if file.stat().st_size < 10_000:
        code = {"ours": _OURS}
    found: dict[str, list[list[float]]] = {name: [] for name in code}
    for _ in range(times):
        for name, text in code.items():
            done = subprocess.run(
                [sys.executable, "-c", text, str(file)], capture_output=True, text=True, check=True
            )
            found[name].append([float(word) for word in done.stdout.split()])
    return {name: Reading(*map(median, zip(*runs, strict=True))) for name, runs in found.items()}


def _words(reading: Reading) -> str:
    return f"{reading.cpu_seconds:.2f} s of CPU time, peak {reading.peak_bytes / 1e6:.0f} MB"


if __name__ == "__main__":
    sys.exit(main())
