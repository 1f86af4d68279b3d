"""The speed of the rules alone, on one core: no cluster, no files, no printing.

    python benchmarks/predict.py [--pods 20000] [--times 5]

Pods: those of the recorded node, of the demo cluster and of the golden cases that a server accepts, repeated
under other names as the replicas of a workload are, decoded and shared as a list from a server is.
Yardstick: `json.loads` of the same pods' JSON, in the same process. What is printed is the best round, with
the garbage collector off, as it is in every command.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import msgspec

from kubectl_qos.cluster.files import DEMO_FILE
from kubectl_qos.edit.fixes import NodeModel
from kubectl_qos.edit.priorities import plan_priorities
from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.interning import Interner
from kubectl_qos.k8s.kubelet import Node, NodeSetup
from kubectl_qos.k8s.objects import MEMORY, JsonDecoder, Pod, ResourceList, convert
from kubectl_qos.k8s.quantity import in_bytes
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.usage import ContainerUsage, PodUsage
from kubectl_qos.qos.prediction import predict
from kubectl_qos.qos.ranking import rank_node
from tests.golden.compare import read

TESTS = Path(__file__).resolve().parents[1] / "tests"
RECORDED = TESTS / "recordings" / "node-1.36"
GOLDEN = TESTS / "golden" / "data"

RELEASE = Release.of("1.36")
NODE = Node(name="n1", memory_capacity_bytes=64 << 30, allocatable_memory_bytes=63 << 30)
LEAST_RANKED = 60_000
LEAST_PREDICTED = 5_000
MOST_SECONDS_A_NODE = 0.010
PODS_OF_A_NODE = 500
MOST_SECONDS_A_PLAN = 1.0
PODS_OF_A_PLAN = 200


class Rate(NamedTuple):
    """A number of pods and the time that they took."""

    pods: int
    seconds: float

    @property
    def pods_per_second(self) -> float:
        """The rate."""
        return self.pods / self.seconds


def main() -> int:
    """Measure, print, and exit 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--times", type=int, default=5)
    options = parser.parse_args()
    texts = list(named_pods(options.pods))
    pods = decoded(texts)
    usage = used(pods)
    node = pods[:: max(len(pods) // PODS_OF_A_NODE, 1)][:PODS_OF_A_NODE]

    def rank(found: Sequence[Pod]) -> None:
        rank_node([default_pod(pod, RELEASE) for pod in found], NODE, RELEASE, usage)

    def predict_each(found: Sequence[Pod]) -> None:
        for pod in found:
            predict(pod, NODE, release=RELEASE)

    parsed = best(lambda: list(map(json.loads, texts)), len(texts), options.times)
    ranked = best(lambda: rank(pods), len(pods), options.times)
    predicted = best(lambda: predict_each(pods), len(pods), options.times)
    one_node = best(lambda: rank(node), len(node), 5 * options.times)
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores; {len(pods)} pods")
    print(f"yardstick: json.loads {parsed.pods_per_second:9,.0f} pods per second")
    missed = [
        _report("class, oom_score_adj, rank", ranked, parsed, LEAST_RANKED),
        _report("predict()", predicted, parsed, LEAST_PREDICTED),
    ]
    print(
        f"ranking a node of {one_node.pods} pods {1000 * one_node.seconds:.1f} ms"
        f" (target under {1000 * MOST_SECONDS_A_NODE:.0f}),"
        f" {one_node.seconds / (parsed.seconds / parsed.pods * one_node.pods):.2f} of the yardstick's time"
    )
    slowest = max(plan_rate(room_gib, levels).seconds for room_gib in (350, 4096) for levels in (3, 200))
    print(
        f"a plan of priorities for {PODS_OF_A_PLAN} pods, with and without room for all: {slowest:.2f} s"
        f" (target under {MOST_SECONDS_A_PLAN:.0f})"
    )
    is_slow = one_node.seconds >= MOST_SECONDS_A_NODE or slowest >= MOST_SECONDS_A_PLAN
    return int(any(missed) or is_slow)


def plan_rate(room_gib: int, levels: int) -> Rate:
    """A plan for a node of so much allocatable memory whose pods have so many different priorities."""
    draw = random.Random(7)
    pods, usage = [], {}
    for number in range(PODS_OF_A_PLAN):
        request = draw.randrange(16, 1500)
        limit = {"limits": {"memory": f"{request * draw.randrange(1, 4)}Mi"}} if draw.random() < 0.5 else {}
        resources = {"requests": {"memory": f"{request}Mi"}, **limit}
        containers = [{"name": name, "resources": resources} for name in "ab"[: draw.choice([1, 1, 2])]]
        spec = {"nodeName": NODE.name, "priority": draw.randrange(levels), "containers": containers}
        pods.append(convert({"metadata": {"name": f"pod-{number}", "namespace": "bench"}, "spec": spec}, Pod))
        used = {str(one["name"]): ContainerUsage(draw.randrange(2 << 30)) for one in containers}
        usage["bench", f"pod-{number}"] = PodUsage.of_containers(used)
    allocatable = ResourceList({MEMORY: in_bytes(room_gib << 30)})
    node = Node(name=NODE.name, memory_capacity_bytes=512 << 30, status_allocatable=allocatable)
    model = NodeModel(NodeSetup.of(node), pods, usage)
    return best(lambda: plan_priorities(model), len(pods), 2)


def shapes() -> Iterator[dict[str, Any]]:
    """The different pods, as JSON objects."""
    for path in sorted(RECORDED.glob("measured-*.jsonl.xz")):
        yield from (row["pod"] for row in read(path))
    yield from (item for item in json.loads(DEMO_FILE.read_text())["items"] if item["kind"] == "Pod")
    results = read(GOLDEN / "results-dev.jsonl.xz", "1.36")
    accepted = {row["id"] for row in results if row.get("validation") == []}
    cases = read(GOLDEN / "cases-dev.jsonl.xz")
    yield from (stored(case["pod"]) for case in cases if case["kind"] == "pod" and case["id"] in accepted)


def stored(manifest: dict[str, Any]) -> Any:
    """The pod of a manifest as a server stores it."""
    pod = default_pod(convert(manifest, Pod), RELEASE)
    return msgspec.json.decode(msgspec.json.encode(pod, enc_hook=str))


def named_pods(count: int) -> Iterator[str]:
    """The JSON of that many pods, each shape in turn under a name of its own."""
    found = list(shapes())
    for number in range(count):
        pod = found[number % len(found)]
        metadata = {**pod["metadata"], "name": f"pod-{number}", "namespace": "bench"}
        spec = {**pod["spec"], "nodeName": NODE.name}
        yield json.dumps({**pod, "metadata": metadata, "spec": spec})


def decoded(texts: Sequence[str]) -> list[Pod]:
    """The pods as a list from a server holds them."""
    decoder, sharing = JsonDecoder(Pod), Interner()
    return [sharing.pod(decoder.decode(text)) for text in texts]


def used(pods: Sequence[Pod]) -> dict[tuple[str, str], PodUsage]:
    """Usage of every container, the same on every run."""
    draw = random.Random(len(pods))
    return {
        (pod.namespace, pod.name): PodUsage.of_containers(
            {one.name: ContainerUsage(draw.randrange(1 << 30)) for one in pod.containers}
        )
        for pod in pods
    }


def best(work: Callable[[], object], pods: int, times: int) -> Rate:
    """The fastest of several rounds: other load on the machine only slows a round down."""
    seconds = []
    gc.disable()
    for _ in range(times):
        started = time.process_time()
        work()
        seconds.append(time.process_time() - started)
        gc.collect()
    return Rate(pods, min(seconds))


def _report(title: str, found: Rate, yardstick: Rate, least: int) -> bool:
    """Print one rate and return whether its target was missed."""
    print(
        f"{title:<27} {found.pods_per_second:9,.0f} pods per second (target at least {least:,}),"
        f" {found.pods_per_second / yardstick.pods_per_second:.2f} times the yardstick"
    )
    return found.pods_per_second < least


if __name__ == "__main__":
    sys.exit(main())
