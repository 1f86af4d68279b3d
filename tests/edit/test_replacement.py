"""Pods of a node with changed manifests in their place."""

from __future__ import annotations

from typing import Any

import msgspec

from kubectl_qos.edit.compare import with_manifests
from kubectl_qos.k8s.objects import Pod, convert


def pod(name: str = "a", **fields: Any) -> Pod:
    raw: dict[str, Any] = {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "x", **fields.pop("metadata", {})},
        "spec": {"nodeName": "n", "containers": [{"name": "c"}], **fields.pop("spec", {})},
        "status": {"phase": "Running", "qosClass": "BestEffort", **fields.pop("status", {})},
    }
    return convert({**raw, **fields}, Pod)


def change(kind: str = "Pod", name: str = "a", namespace: str = "", **spec: Any) -> Pod:
    raw = {
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [{"name": "c", "resources": {"limits": {"memory": "1Gi"}}}], **spec},
    }
    return convert(raw, Pod)


def test_a_pod_keeps_who_and_where_it_is() -> None:
    before = pod(metadata={"labels": {"app": "a"}})
    (after,), unused = with_manifests([before], [change()])
    assert unused == ()
    assert (after.name, after.node_name, after.metadata.labels) == ("a", "n", {"app": "a"})
    assert after.status.phase == "Running"
    assert after.status.qos_class == "", "its class follows from what it is now"
    assert after.containers == change().containers


def test_what_a_change_is_about() -> None:
    owned = pod(
        "a-7d9c5-x", metadata={"labels": {"pod-template-hash": "7d9c5"}, "ownerReferences": _owner("a-7d9c5")}
    )
    for found in (change(), change(namespace="x")):
        assert with_manifests([pod()], [found]).unused == ()
    for found in (change("Deployment"), change("ReplicaSet", "a-7d9c5"), change("Pod", "a-7d9c5-x")):
        assert with_manifests([owned], [found]).unused == ()
    for found in (change(namespace="y"), change(name="b"), change("StatefulSet")):
        assert with_manifests([pod(), owned], [found]) == ((pod(), owned), (found,))


def _owner(name: str) -> list[dict[str, Any]]:
    return [{"kind": "ReplicaSet", "name": name, "controller": True}]


def test_a_pod_that_has_ended_stays() -> None:
    ended = pod(status={"phase": "Failed"})
    assert with_manifests([ended], [change()]).pods == (ended,)


def test_the_number_of_a_priority_class() -> None:
    before = pod(spec={"priority": 7, "priorityClassName": "high"})

    def priority(**spec: Any) -> int | None:
        return with_manifests([before], [change(**spec)]).pods[0].spec.priority

    assert priority(priorityClassName="high") == 7
    assert priority(priorityClassName="other") is None
    assert priority(priorityClassName="other", priority=9) == 9
    assert priority(priorityClassName="system-node-critical") == 2_000_001_000


def test_debuggers_stay() -> None:
    before = pod(spec={"ephemeralContainers": [{"name": "e"}]})
    (after,) = with_manifests([before], [change()]).pods
    assert [one.name for one in after.ephemeral_containers] == ["e"]
    assert msgspec.structs.replace(after, spec=before.spec, status=before.status) == before
