"""Interning: nothing about a pod changes, not even the text of a quantity."""

from typing import Any

import msgspec
import pytest

from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.interning import Ids, Interner
from kubectl_qos.k8s.objects import JsonDecoder, Pod, Volume
from kubectl_qos.k8s.releases import Release
from tests.cluster.cluster_objects import recorded_pods


def decoded(raw: object) -> Pod:
    return JsonDecoder(Pod).decode(msgspec.json.encode(raw))


def with_resources(name: str = "a", **resources: Any) -> Pod:
    return decoded(
        {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "resources": resources}]}}
    )


def without_unused(pod: Pod) -> Pod:
    """The pod without its version, volumes that only have a name, and conditions that nothing looks at."""
    volumes = pod.spec.volumes and tuple(one for one in pod.spec.volumes if one != Volume(name=one.name))
    entries = tuple(one for one in pod.metadata.managed_fields or () if one.subresource == "resize")
    metadata = msgspec.structs.replace(pod.metadata, resource_version="", managed_fields=entries)
    used = {"DisruptionTarget", "PodResizePending", "PodResizeInProgress"}
    conditions = pod.status.conditions and tuple(one for one in pod.status.conditions if one.type in used)
    return msgspec.structs.replace(
        pod,
        metadata=metadata,
        spec=msgspec.structs.replace(pod.spec, volumes=volumes),
        status=msgspec.structs.replace(pod.status, conditions=conditions),
    )


def test_recorded_pods_do_not_change() -> None:
    interner = Interner()
    pods = [decoded(raw) for raw in recorded_pods()]
    assert [without_unused(interner.pod(pod)) for pod in pods] == [without_unused(pod) for pod in pods]


@pytest.mark.parametrize(("phase", "kept"), [("Failed", 1), ("Running", 0)])
def test_when_a_failed_pod_was_no_longer_ready_is_kept(phase: str, kept: int) -> None:
    """Evictions have no other time, once their events are gone."""
    unready = {"type": "Ready", "status": "False", "lastTransitionTime": "2026-11-20T12:00:00Z"}
    pod = decoded({"status": {"phase": phase, "conditions": [unready]}})
    assert len(Interner().pod(pod).status.conditions or ()) == kept


def test_of_who_changed_a_pod_the_resizes_are_kept() -> None:
    resize = {"subresource": "resize", "time": "t"}
    pod = decoded({"metadata": {"managedFields": [{"time": "1"}, resize, {"subresource": "status"}]}})
    assert msgspec.to_builtins(Interner().pod(pod).metadata.managed_fields) == (resize,)


def test_pods_of_a_list_keep_their_own_uid_and_share_the_statuses_of_their_containers() -> None:
    status = {"name": "c", "state": {"running": {}}}
    interner, statuses = Interner(ids="pods"), set()
    for name in ("a", "b"):
        raw = {"metadata": {"uid": name}, "status": {"containerStatuses": [status | {"containerID": name}]}}
        pod = interner.pod(decoded(raw))
        assert pod.metadata.uid == name
        statuses.add(id(pod.status.container_statuses))
    assert len(statuses) == 1


def test_without_ids_nothing_else_is_missing() -> None:
    interner = Interner(ids="none")
    for pod in map(decoded, recorded_pods()):
        bare = interner.pod(pod)
        assert bare.metadata.uid == ""
        assert not any(status.container_id for status in bare.status.container_statuses or ())
        assert bare.spec == without_unused(pod).spec
        with_ids, without = (
            [
                (one.name, one.restart_count, one.state, one.last_state, one.resources)
                for one in status.container_statuses or ()
            ]
            for status in (pod.status, bare.status)
        )
        assert without == with_ids


def test_pods_of_one_workload_share_their_containers() -> None:
    interner = Interner()
    first, second = (interner.pod(with_resources(name, requests={"memory": "1Gi"})) for name in "ab")
    assert first.spec.containers is second.spec.containers
    assert (first.name, second.name) == ("a", "b")


def test_equal_quantities_keep_their_own_texts() -> None:
    interner, texts = Interner(), ["1Gi", "1073741824"]
    first, second = (interner.pod(with_resources(requests={"memory": text})) for text in texts)
    assert first == second
    assert [str(pod.containers[0].requests["memory"]) for pod in (first, second)] == texts


def test_a_pod_with_nothing_left_to_default_is_the_same_pod() -> None:
    """So that a ranking does not hold every pod twice."""
    release = Release.of("1.36")
    pods = [decoded(raw) for raw in recorded_pods()]
    assert all(default_pod(pod, release) is pod for pod in pods)
    limited = with_resources(limits={"memory": "1Gi"})
    assert default_pod(limited, release) is not limited


@pytest.mark.parametrize(
    "statuses",
    [
        [{"containerStatuses": [{"name": "c", "restartCount": count}]} for count in (3, 4, 3)],
        [
            {"phase": "Failed", "reason": "Evicted", "message": f"low on resource: {name}"}
            for name in ("memory", "ephemeral-storage")
        ],
    ],
)
def test_pods_that_differ_in_restarts_or_messages_keep_their_own(statuses: list[dict[str, Any]]) -> None:
    interner = Interner(ids="none")
    for raw in statuses:
        pod = decoded({"status": raw})
        assert interner.pod(pod).status == pod.status


@pytest.mark.parametrize("kind", ["terminated", "waiting"])
def test_without_ids_messages_of_states_are_missing_too(kind: str) -> None:
    """A termination message may have 4 KB, and a back-off names its pod."""
    raw = {
        "status": {"containerStatuses": [{"name": "c", "state": {kind: {"reason": "Error", "message": "x"}}}]}
    }
    ways: tuple[tuple[Ids, str], ...] = (("all", "x"), ("pods", "x"), ("none", ""))
    for ids, expected in ways:
        (status,) = Interner(ids=ids).pod(decoded(raw)).status.container_statuses or ()
        state = getattr(status.state, kind)
        assert (state.reason, state.message) == ("Error", expected)


@pytest.mark.parametrize(("ids", "expected"), [("all", "containerd://a"), ("pods", ""), ("none", "")])
def test_without_ids_those_of_ended_containers_are_missing_too(ids: Ids, expected: str) -> None:
    ended = {"state": {"terminated": {"exitCode": 137, "containerID": "containerd://a"}}}
    raw = {"status": {"containerStatuses": [{"name": "c", **ended}]}}
    (status,) = Interner(ids=ids).pod(decoded(raw)).status.container_statuses or ()
    assert status.state is not None
    assert status.state.terminated is not None
    assert (status.state.terminated.container_id, status.state.terminated.exit_code) == (expected, 137)
