"""Parts of pods held once: nothing about a pod changes, not even how a quantity is spelled."""

from __future__ import annotations

import msgspec

from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.interning import Interner
from kubectl_qos.k8s.objects import Pod, Volume, json_decoder
from kubectl_qos.k8s.releases import Release
from tests.cluster.cluster_objects import recorded_pods

RELEASE = Release.of("1.36")


def decoded(raw: object) -> Pod:
    return json_decoder(Pod).decode(msgspec.json.encode(raw))


def with_request(memory: str, *, name: str = "a") -> Pod:
    spec = {"containers": [{"name": "c", "resources": {"requests": {"memory": memory}}}]}
    return decoded({"metadata": {"name": name}, "spec": spec})


def what_is_read(pod: Pod) -> Pod:
    """The pod without what no prediction depends on: its revision, and volumes that are only a name."""
    volumes = pod.spec.volumes and tuple(one for one in pod.spec.volumes if one != Volume(name=one.name))
    return msgspec.structs.replace(
        pod,
        metadata=msgspec.structs.replace(pod.metadata, resource_version=""),
        spec=msgspec.structs.replace(pod.spec, volumes=volumes),
    )


def test_recorded_pods_stay_as_they_are() -> None:
    sharing = Interner()
    pods = [decoded(raw) for raw in recorded_pods()]
    assert [what_is_read(sharing.pod(pod)) for pod in pods] == [what_is_read(pod) for pod in pods]


def test_without_ids_nothing_else_is_missing() -> None:
    sharing = Interner(ids=False)
    for raw in recorded_pods():
        pod = decoded(raw)
        bare = sharing.pod(pod)
        assert bare.metadata.uid == ""
        assert not any(status.container_id for status in bare.status.container_statuses or ())
        assert bare.spec == what_is_read(pod).spec
        kept = (
            [
                (one.name, one.restart_count, one.state, one.last_state, one.resources)
                for one in found.status.container_statuses or ()
            ]
            for found in (bare, pod)
        )
        assert next(kept) == next(kept)


def test_pods_that_differ_in_restarts_alone_keep_their_own_number() -> None:
    sharing = Interner(ids=False)
    for count in (3, 4, 3):
        status = {"containerStatuses": [{"name": "c", "restartCount": count}]}
        pod = sharing.pod(decoded({"status": status}))
        assert [one.restart_count for one in pod.status.container_statuses or ()] == [count]


def test_pods_of_one_workload_hold_the_same_containers() -> None:
    sharing = Interner()
    first, second = (sharing.pod(with_request("1Gi", name=name)) for name in "ab")
    assert first.spec.containers is second.spec.containers
    assert (first.name, second.name) == ("a", "b")


def test_equal_quantities_keep_their_own_spelling() -> None:
    sharing = Interner()
    first, second = sharing.pod(with_request("1Gi")), sharing.pod(with_request("1073741824"))
    assert first == second
    assert [str(pod.containers[0].requests["memory"]) for pod in (first, second)] == ["1Gi", "1073741824"]


def test_a_pod_with_nothing_left_to_default_is_the_same_pod() -> None:
    """So that a ranking does not hold every pod twice."""
    for raw in recorded_pods():
        stored = decoded(raw)
        assert default_pod(stored, RELEASE) is stored
    limited = decoded({"spec": {"containers": [{"resources": {"limits": {"memory": "1Gi"}}}]}})
    assert default_pod(limited, RELEASE) is not limited


def test_pods_that_ended_for_different_causes_keep_their_own_message() -> None:
    sharing = Interner(ids=False)
    for message in ("low on resource: memory", "low on resource: ephemeral-storage"):
        pod = sharing.pod(decoded({"status": {"phase": "Failed", "reason": "Evicted", "message": message}}))
        assert pod.status.message == message


def test_without_ids_those_of_ended_containers_go_too() -> None:
    ended = {"state": {"terminated": {"exitCode": 137, "containerID": "containerd://a"}}}
    raw = {"status": {"containerStatuses": [{"name": "c", **ended}]}}
    for ids, expected in ((True, "containerd://a"), (False, "")):
        (status,) = Interner(ids=ids).pod(decoded(raw)).status.container_statuses or ()
        assert status.state is not None
        assert status.state.terminated is not None
        assert (status.state.terminated.container_id, status.state.terminated.exit_code) == (expected, 137)
