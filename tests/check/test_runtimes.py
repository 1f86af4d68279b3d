"""What Java, Node.js and Go may use by their flags and variables, and volumes in memory, against limits."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from kubectl_qos.check.rules.memory import runtime_problems
from tests.check.test_rules import found
from tests.end_to_end.command import Run

MI: Final = 1 << 20
CASES: Final[dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("runtimes.yaml").read_text(encoding="utf-8")
)


def sizes(container: dict[str, Any], limit: int = 300) -> dict[str, int | None]:
    """The size that counts in Mi, by where it is said, where it is above a small limit."""
    texts = [text for _, text in runtime_problems(container, limit * MI)]
    read = [
        re.fullmatch(r"(.+) is (?:not a valid size|an? .+ of (\d+)Mi in a memory limit).*", text)
        for text in texts
    ]
    return {match[1]: None if match[2] is None else int(match[2]) for match in read if match is not None}


@pytest.mark.parametrize("case", CASES["sizes"], ids=lambda case: json.dumps(case["container"])[:60])
def test_a_size_is_read_as_the_runtime_reads_it(case: dict[str, Any]) -> None:
    assert sizes(case["container"]) == case["said"]


@pytest.mark.parametrize(
    ("arguments", "late"),
    [
        (["java", "-jar", "/app.jar", "-Xmx900m"], {"-Xmx900m": "-jar /app.jar"}),
        (["sh", "-c", "java -jar a.jar; java -Xmx100m -jar b.jar"], {}),
        (["node -r ./a.js index.js --max-old-space-size=900"], {"--max-old-space-size=900": "index.js"}),
        (["node", "-r", "./a.js", "--max-old-space-size=100", "index.js", "--port=80"], {}),
    ],
)
def test_what_follows_the_program_is_its_own_argument(arguments: list[str], late: dict[str, str]) -> None:
    texts = [text for _, text in runtime_problems({"args": arguments}, 300 * MI)]
    assert texts == [
        f"{words} comes after {program}, which gets it as an argument: it sets no heap:"
        f" write it before {program}"
        for words, program in late.items()
    ]


@pytest.mark.parametrize(
    ("options", "limit", "heap"),
    [
        ("-XX:MaxRAMPercentage=90", 249, None),
        ("-XX:MaxRAMPercentage=90", 250, 225),
        ("-XX:MaxRAMPercentage=90 -XX:MinRAMPercentage=80", 150, 120),
        ("-XX:MinRAMPercentage=80", 200, None),
    ],
)
def test_of_a_small_memory_the_jvm_takes_the_least_percentage(
    options: str, limit: int, heap: int | None
) -> None:
    container = {"env": [{"name": "JAVA_OPTS", "value": options}]}
    assert list(sizes(container, limit).values()) == [heap] * (heap is not None)


def pod(limits: dict[str, str], **fields: Any) -> dict[str, Any]:
    container = {"name": "app", "resources": {"requests": {"cpu": "1"}, "limits": limits}, **fields}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web"},
        "spec": {"containers": [container]},
    }


@pytest.mark.parametrize("case", CASES["problems"], ids=lambda case: case["env"].get("value", "the limit"))
def test_what_leaves_too_little_of_the_limit_is_found(case: dict[str, Any], run: Run) -> None:
    manifest = json.dumps(
        pod(case.get("limits", {"memory": "1Gi"}), env=[{"name": "A", "value": "1"}, case["env"]])
    )
    findings = [one for one in found(run, manifest) if one["rule"] == "QOS020"]
    said = case.get("said")
    assert [one["message"] for one in findings] == ([f"container app: {said}"] if said else [])
    assert {one["path"] for one in findings} <= {"spec.containers[0].env[1]"}


@pytest.mark.parametrize("case", CASES["volumes"])
def test_a_volume_in_memory_counts_to_the_limit(case: dict[str, Any], run: Run) -> None:
    manifest = pod(case["limits"], volumeMounts=[{"name": "tmp", **case.get("mount", {})}])
    manifest["spec"]["volumes"] = [{"name": "key", "secret": {}}, {"name": "tmp", "emptyDir": case["volume"]}]
    findings = [one for one in found(run, json.dumps(manifest)) if one["rule"] == "QOS021"]
    said = [case["said"]] if "said" in case else []
    assert [f"{one['level']}: {one['message']}" for one in findings] == said
    assert {one["path"] for one in findings} <= {"spec.volumes[1].emptyDir"}


def test_a_volume_of_two_containers_counts_to_the_one_that_writes(run: Run) -> None:
    manifest = pod({"memory": "1Gi"}, volumeMounts=[{"name": "tmp"}])
    (container,) = manifest["spec"]["containers"]
    manifest["spec"]["containers"] += [container | {"name": "reader"}]
    manifest["spec"]["volumes"] = [{"name": "tmp", "emptyDir": {"medium": "Memory"}}]
    (finding,) = (one for one in found(run, json.dumps(manifest)) if one["rule"] == "QOS021")
    assert "the memory limit of the container that writes (1Gi for container app), and" in finding["message"]


@pytest.mark.parametrize("gives", ["pod", "LimitRange"])
def test_the_limit_may_be_that_of_the_pod_or_of_a_limit_range(gives: str, run: Run) -> None:
    manifest = pod({}, env=[{"name": "JAVA_OPTS", "value": "-Xmx1g"}])
    default = {"limits": [{"type": "Container", "default": {"memory": "1Gi"}}]}
    manifests = [manifest, {"kind": "LimitRange", "metadata": {"name": "caps"}, "spec": default}]
    if gives == "pod":
        manifest["spec"]["resources"] = {"limits": {"memory": "1Gi"}}
        manifests = [manifest]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
    assert "QOS020" in {one["rule"] for one in found(run, text)}


def test_variables_may_come_from_a_config_map_of_the_input(run: Run) -> None:
    manifest = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: jvm, namespace: NAMESPACE}
data: {JAVA_OPTS: -Xmx1g}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec:
  containers:
  - {name: all, envFrom: [{configMapRef: {name: jvm}}], resources: {limits: {cpu: 1, memory: 1Gi}}}
  - name: one
    env: [{name: A, value: b}, {name: HEAP, valueFrom: {configMapKeyRef: {name: jvm, key: JAVA_OPTS}}}]
    resources: {limits: {cpu: 1, memory: 1Gi}}
"""
    for namespace, paths in (
        ("shop", ["spec.containers[0].envFrom", "spec.containers[1].env[1]"]),
        ("other", []),
    ):
        items = found(run, manifest.replace("NAMESPACE", namespace))
        assert [item["path"] for item in items if item["rule"] == "QOS020"] == paths
