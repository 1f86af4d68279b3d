"""The time of `check` on many manifests, against reading them alone.

    python benchmarks/check.py [--manifests 1000]

Yardstick: `yaml.load_all` with the loader of libyaml on the same files, in a process of its own. Ours: the
whole command, with every rule and SARIF as output. Both are CPU seconds, the median of five runs.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
MOST_SECONDS = 3.0
MANIFEST = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web-{number}, namespace: shop-{namespace}, labels: {{app: web, tier: front}}}}
spec:
  replicas: 3
  selector: {{matchLabels: {{app: web-{number}}}}}
  template:
    metadata: {{labels: {{app: web-{number}}}}}
    spec:
      initContainers:
      - name: setup
        image: registry.example.com/setup:1
      containers:
      - name: app
        image: registry.example.com/web:1.2.3
        args: ["--port", "8080", "--verbose=true"]
        ports: [{{containerPort: 8080, name: http}}]
        env: [{{name: LEVEL, value: "1"}}]
        resources:
          requests: {{cpu: 250m, memory: {memory}Mi}}
          limits: {{memory: 2Gi}}
        livenessProbe: {{httpGet: {{path: /healthz, port: http}}, initialDelaySeconds: 5}}
      volumes: [{{name: scratch, emptyDir: {{}}}}]
"""
READING = """
import sys, yaml
from pathlib import Path
for file in Path(sys.argv[1]).iterdir():
    for _ in yaml.load_all(file.read_bytes(), Loader=yaml.CSafeLoader): pass
"""


def seconds(*words: str) -> float:
    """The CPU seconds of a process."""
    used = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, *words],
            check=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return median(used)


def main() -> int:
    """Print both times; 1 if ours is more than it may be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--manifests", type=int, default=1000)
    number = parser.parse_args().manifests
    with tempfile.TemporaryDirectory() as folder:
        for one in range(number):
            text = MANIFEST.format(number=one, namespace=one % 50, memory=100 + one % 900)
            (Path(folder) / f"{one}.yaml").write_text(text, encoding="utf-8")
        theirs = seconds("-c", READING, folder)
        ours = seconds("-m", "kubectl_qos", "check", folder, "-o", "sarif")
    print(f"{number:,} manifests: read {theirs:.2f} s, checked {ours:.2f} s, {ours / theirs:.1f} times")
    return int(ours > MOST_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
