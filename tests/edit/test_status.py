"""Progress: what a real kubelet reported, step by step, and the controllers' own words."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import pytest

from kubectl_qos.edit.edits import POD_LEVEL, Edit, PatchRequest, Side, build_request, value_now
from kubectl_qos.edit.related import decode_pod
from kubectl_qos.edit.status import Progress, Stage, check_progress
from kubectl_qos.k8s.kinds import pod_from_workload
from kubectl_qos.k8s.objects import Pod, convert
from kubectl_qos.k8s.quantity import Quantity
from tests.cluster.changing_server import workload
from tests.recordings.files import read_json


@cache
def rounds() -> dict[str, Any]:
    return {found["round"]: found for found in read_json("node-1.36/resize-exchanges.json")}


def resized(kind: str, name: str) -> tuple[PatchRequest, dict[str, Any], dict[str, Any]]:
    """The recorded request of a pod, the answer to it, and the pod as it was in the end."""
    found = rounds()[kind]
    exchange = next(
        one for one in found["exchanges"] if one["pod"] == name and one["response"]["status"] == 200
    )
    body = exchange["request"]["body"]
    edits = [
        Edit(owner, Side(side), resource, Quantity.parse(value))
        for owner, resources in _resources(body["spec"])
        for side, values in resources.items()
        for resource, value in values.items()
    ]
    answer = {"kind": "Pod", **exchange["response"]["body"]}
    return (
        build_request(answer, convert(answer, Pod), edits, in_place=True),
        answer,
        {"kind": "Pod", **found["after"][name]["pod"]},
    )


def _resources(spec: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    containers = [*spec.get("containers", ()), *spec.get("initContainers", ())]
    found = [(one["name"], one["resources"]) for one in containers]
    return [*found, (POD_LEVEL, spec["resources"])] if "resources" in spec else found


DONE = [
    *(("allowed-1", name) for name in ("rz-bu", "rz-gu", "rz-restart", "rz-two", "rz-side", "rz-pl")),
    *(("allowed-2", name) for name in ("rz-bu", "rz-restart", "rz-hog", "rz-two")),
]


@pytest.mark.parametrize(("kind", "name"), DONE)
def test_recorded_resizes_that_were_done(kind: str, name: str) -> None:
    request, answer, after = resized(kind, name)
    assert check_progress(request, answer, answer).stage is Stage.WAITING
    assert check_progress(request, answer, after) == Progress(Stage.DONE, settled=True)


@pytest.mark.parametrize(
    ("name", "stage", "words"),
    [
        ("rz-defer", Stage.DEFERRED, "Node didn't have enough resource: cpu, requested: 1500, used: "),
        ("rz-hog", Stage.ERROR, "cannot decrease memory limits: [attempting to set pod memory limit"),
    ],
)
def test_recorded_resizes_that_were_not(name: str, stage: Stage, words: str) -> None:
    request, answer, after = resized("allowed-1", name)
    found = check_progress(request, answer, after)
    assert (found.stage, found.settled) == (stage, False)
    assert found.message.startswith(words)


@pytest.mark.parametrize("kind", ["allowed-1", "allowed-2"])
def test_the_recorded_steps(kind: str) -> None:
    """Each step of the conditions, put into the pod as it was answered: never done before the end."""
    stages: dict[str, list[Stage]] = {}
    for step in rounds()[kind]["condition_history"]:
        if (kind, step["pod"]) not in {*DONE, ("allowed-1", "rz-hog"), ("allowed-1", "rz-defer")}:
            continue
        request, answer, _ = resized(kind, step["pod"])
        now = copy.deepcopy(answer)
        others = [one for one in now["status"].get("conditions", ()) if "Resize" not in one["type"]]
        now["status"]["conditions"] = others + step["conditions"]
        now["status"]["observedGeneration"] = step["observedGeneration"]
        now["metadata"]["generation"] = step["generation"]
        found = check_progress(request, answer, now).stage
        if found not in stages.setdefault(step["pod"], []):
            stages[step["pod"]].append(found)
    assert all(found[0] is Stage.WAITING for found in stages.values())
    assert all(Stage.DONE not in found for found in stages.values()), "the values were not actual yet"
    if kind == "allowed-1":
        assert stages["rz-defer"] == [Stage.WAITING, Stage.DEFERRED]
        assert stages["rz-hog"] == [Stage.WAITING, Stage.IN_PROGRESS, Stage.ERROR]
        assert Stage.IN_PROGRESS in stages["rz-bu"]


def at(name: str = "rz-bu", kind: str = "allowed-1") -> tuple[PatchRequest, dict[str, Any], dict[str, Any]]:
    request, answer, after = resized(kind, name)
    return request, answer, copy.deepcopy(after)


def test_a_condition_of_an_earlier_version_says_nothing() -> None:
    request, answer, after = at()
    pending = {"type": "PodResizePending", "status": "True", "reason": "Infeasible", "message": "no"}
    for observed, stage in ((2, Stage.DONE), (3, Stage.INFEASIBLE), (None, Stage.INFEASIBLE)):
        condition = pending if observed is None else pending | {"observedGeneration": observed}
        after["status"]["conditions"] = [condition]
        found = check_progress(request, answer, after)
        assert found.stage is stage
        assert found.settled
    after["status"]["conditions"] = [pending | {"status": "False"}]
    assert check_progress(request, answer, after).stage is Stage.DONE
    in_progress = {"type": "PodResizeInProgress", "status": "True"}
    after["status"]["conditions"] = [in_progress, pending | {"reason": "Deferred"}]
    assert check_progress(request, answer, after) == Progress(Stage.DEFERRED, settled=False, message="no")


@pytest.mark.parametrize(
    ("said", "stage", "settled"),
    [
        ("Proposed", Stage.WAITING, False),
        ("InProgress", Stage.IN_PROGRESS, False),
        ("Deferred", Stage.DEFERRED, False),
        ("Infeasible", Stage.INFEASIBLE, True),
        ("", Stage.DONE, True),
    ],
)
def test_before_there_were_conditions(said: str, stage: Stage, settled: bool) -> None:
    request, answer, after = at()
    del after["status"]["observedGeneration"]
    after["status"]["conditions"] = []
    after["status"]["resize"] = said
    found = check_progress(request, answer, after)
    assert (found.stage, found.settled) == (stage, settled)


def test_what_is_not_observed_is_not_done() -> None:
    request, answer, after = at()
    after["status"]["observedGeneration"] = 2
    assert check_progress(request, answer, after).stage is Stage.WAITING


@pytest.mark.parametrize(
    ("part", "side", "stage"),
    [
        ("allocatedResources", None, Stage.WAITING),
        ("resources", "requests", Stage.IN_PROGRESS),
        ("resources", "limits", Stage.IN_PROGRESS),
    ],
)
def test_allocated_and_actual_values_decide(part: str, side: str | None, stage: Stage) -> None:
    request, answer, after = at()
    status = after["status"]["containerStatuses"][0]
    values = status[part] if side is None else status[part][side]
    values["memory"] = "1Mi"
    assert check_progress(request, answer, after).stage is stage
    del values["memory"]
    assert check_progress(request, answer, after).stage is stage
    if side is not None:
        status["state"] = {"terminated": {"exitCode": 0}}
        assert check_progress(request, answer, after).stage is Stage.NOT_RUNNING
        for policy in ("Never", "OnFailure"):  # it is not started again
            after["spec"]["restartPolicy"] = policy
            assert check_progress(request, answer, after).stage is Stage.DONE


def test_nothing_is_done_while_the_container_waits() -> None:
    """It starts with the new values; until then an OOM loop has not ended (kubernetes#138760)."""
    request, answer, after = at()
    after["status"]["containerStatuses"][0]["state"] = {"waiting": {"reason": "CrashLoopBackOff"}}
    found = check_progress(request, answer, after)
    assert (found.stage, found.settled) == (Stage.NOT_RUNNING, False)
    assert found.message == "c does not run: it gets the values when it starts"


def test_a_resize_that_left_the_pod_at_its_old_limit_is_not_done() -> None:
    """The container's status has the new limit; the pod's cgroup kept 60Mi, and it was killed 14 times."""
    after = read_json("node-1.36-d/low-pod-limit.json")
    limit = Edit("c", Side.LIMITS, "memory", Quantity.parse("200Mi"))
    request = build_request(after, convert(after, Pod), [limit], in_place=True)
    found = check_progress(request, after, after)
    assert (found.stage, found.settled) == (Stage.ERROR, True)
    assert found.message == (
        "the memory limit of the whole pod is still 60Mi (kubernetes#138760): to raise it, resize"
        " the container while it runs (kubectl qos set pod/loop -n oom -c c --limits memory=+1Mi),"
        " or recreate the pod"
    )
    after["status"]["resources"]["limits"]["memory"] = "200Mi"
    assert check_progress(request, after, after).stage is Stage.DONE


def test_the_limit_of_a_pod_is_awaited_too() -> None:
    """Without a container that ended the kubelet is not done yet."""
    request, answer, after = at("rz-pl")
    after["status"]["resources"]["limits"]["memory"] = "256Mi"
    assert check_progress(request, answer, after) == Progress(Stage.IN_PROGRESS, settled=False)


def test_less_cpu_than_a_cgroup_can_hold() -> None:
    request, answer, after = at()
    for raw in (answer := copy.deepcopy(answer), after):
        raw["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "5m"
    after["status"]["containerStatuses"][0]["resources"]["limits"]["cpu"] = "10m"
    assert check_progress(request, answer, after).stage is Stage.DONE
    after["status"]["containerStatuses"][0]["resources"]["limits"]["cpu"] = "11m"
    assert check_progress(request, answer, after).stage is Stage.IN_PROGRESS


def test_pod_level_values_are_allocated_and_never_read_back() -> None:
    request, answer, after = at("rz-pl")
    actual = after["status"]["resources"]["requests"]
    assert any(
        Quantity.parse(actual[edit.resource]) != edit.quantity
        for edit in request.edits
        if edit.side is Side.REQUESTS
    )
    after["status"]["allocatedResources"]["memory"] = "1Mi"
    assert check_progress(request, answer, after).stage is Stage.WAITING


def test_a_pod_on_no_node_starts_with_the_values() -> None:
    request, answer, after = at()
    del after["spec"]["nodeName"]
    after["status"] = {"phase": "Pending"}
    found = check_progress(request, answer, after)
    assert (found.stage, found.settled) == (Stage.DONE, True)
    assert "not scheduled yet" in found.message


def test_somebody_else_and_nobody() -> None:
    request, answer, after = at()
    other = copy.deepcopy(after)
    other["spec"]["containers"][0]["resources"]["requests"]["memory"] = "7Mi"
    assert check_progress(request, answer, other) == Progress(Stage.OVERTAKEN, settled=True)
    assert check_progress(request, answer, None).stage is Stage.GONE
    for changes in ({"uid": "other"}, {"deletionTimestamp": "2026-11-21T10:00:00Z"}):
        gone = check_progress(request, answer, after | {"metadata": after["metadata"] | changes})
        assert (gone.stage, gone.settled) == (Stage.GONE, True)
        assert gone.message
    ended = copy.deepcopy(after)
    ended["status"]["phase"] = "Failed"
    assert check_progress(request, answer, ended).message == "the pod has ended: Failed"


def rollout(kind: str, status: dict[str, Any], generation: int = 2, **spec: Any) -> Progress:
    raw = workload(kind, "web", {"requests": {"memory": "96Mi"}}, **spec)
    raw["metadata"] |= {"uid": "u-1", "generation": generation}
    raw["status"] = status
    edit = Edit("app", Side.REQUESTS, "memory", Quantity.parse("96Mi"))
    request = build_request(raw, pod_from_workload(kind, raw), [edit], in_place=False)
    assert value_now(decode_pod(request.kind, raw), edit) == edit.quantity
    return check_progress(request, raw, raw)


def counted(**counts: int) -> dict[str, Any]:
    return {"observedGeneration": 2, **counts}


def condition(kind: str, status: str, reason: str = "", message: str = "") -> dict[str, Any]:
    return {"conditions": [{"type": kind, "status": status, "reason": reason, "message": message}]}


THREE: dict[str, Any] = {"replicas": 3}
ON_DELETE: dict[str, Any] = {"updateStrategy": {"type": "OnDelete"}}
PARTITION: dict[str, Any] = THREE | {"updateStrategy": {"rollingUpdate": {"partition": 1}}}
REVISIONS = {"updateRevision": "b", "currentRevision": "a"}
UNSEEN = {"observedGeneration": 1}
FOUR = {"desiredNumberScheduled": 4}

ROLLING = [
    ("Deployment", UNSEEN | {"updatedReplicas": 3}, THREE, 0, 3, "to be observed"),
    ("Deployment", counted(updatedReplicas=1, replicas=4), THREE, 1, 3, "1 out of 3 new replicas"),
    ("Deployment", counted(updatedReplicas=3, replicas=4), THREE, 3, 3, "1 old replicas are pending"),
    ("Deployment", counted(updatedReplicas=3, replicas=3, availableReplicas=2), THREE, 3, 3, "2 of 3"),
    ("Deployment", counted(), {}, 0, 1, "0 out of 1 new replicas"),
    ("Deployment", UNSEEN, THREE | {"paused": True}, 0, 3, "to be observed"),
    ("StatefulSet", UNSEEN, THREE, 0, 3, "to be observed"),
    ("StatefulSet", UNSEEN | {"updatedReplicas": 3}, THREE | ON_DELETE, 0, 3, "to be observed"),
    ("StatefulSet", counted(updatedReplicas=1, readyReplicas=3), THREE, 1, 3, "1 out of 3 new pods"),
    ("StatefulSet", counted(updatedReplicas=3, readyReplicas=2), THREE, 3, 3, "1 pods to be ready"),
    ("StatefulSet", counted(updatedReplicas=1, readyReplicas=3), PARTITION, 1, 2, "1 out of 2 new pods"),
    ("StatefulSet", counted(updatedReplicas=3, readyReplicas=3) | REVISIONS, THREE, 3, 3, "at revision b"),
    ("DaemonSet", UNSEEN | FOUR, {}, 0, 4, "to be observed"),
    ("DaemonSet", UNSEEN | FOUR | {"updatedNumberScheduled": 4}, ON_DELETE, 0, 4, "to be observed"),
    ("DaemonSet", counted(**FOUR, updatedNumberScheduled=1), {}, 1, 4, "1 out of 4 new pods"),
    ("DaemonSet", counted(**FOUR, updatedNumberScheduled=4, numberAvailable=3), {}, 4, 4, "3 of 4 updated"),
]


@pytest.mark.parametrize(("kind", "status", "spec", "done", "total", "words"), ROLLING)
def test_a_rollout_on_its_way(
    kind: str, status: dict[str, Any], spec: dict[str, Any], done: int, total: int, words: str
) -> None:
    found = rollout(kind, status, **spec)
    assert (found.stage, found.settled, found.done, found.total) == (Stage.ROLLING, False, done, total)
    assert words in found.message


DONE_OF_THREE = counted(updatedReplicas=3, replicas=3, availableReplicas=3, readyReplicas=3)
OVER = [
    ("Deployment", DONE_OF_THREE, THREE, 3, 3, ""),
    ("Deployment", counted(), {"replicas": 0}, 0, 0, ""),
    ("StatefulSet", DONE_OF_THREE, THREE, 3, 3, ""),
    (
        "StatefulSet",
        DONE_OF_THREE | REVISIONS | {"updatedReplicas": 2},
        PARTITION,
        2,
        2,
        "below the partition",
    ),
    ("StatefulSet", counted(updatedReplicas=1), THREE | ON_DELETE, 1, 3, "until they are deleted"),
    ("DaemonSet", counted(**FOUR, updatedNumberScheduled=4, numberAvailable=4), {}, 4, 4, ""),
    ("DaemonSet", counted(**FOUR), ON_DELETE, 0, 4, "until they are deleted"),
    ("ReplicaSet", counted(replicas=3), THREE, 0, 3, "existing pods keep their values"),
    ("ReplicationController", counted(replicas=3), THREE, 0, 3, "existing pods keep their values"),
    ("CronJob", {}, {}, None, None, "the next run gets the new values"),
    ("CronJob", {}, {"suspend": True}, None, None, "it is suspended"),
]


@pytest.mark.parametrize(("kind", "status", "spec", "done", "total", "words"), OVER)
def test_a_rollout_that_is_over(
    kind: str, status: dict[str, Any], spec: dict[str, Any], done: int | None, total: int | None, words: str
) -> None:
    found = rollout(kind, status, **spec)
    assert (found.stage, found.settled, found.done, found.total) == (Stage.DONE, True, done, total)
    assert (words in found.message) if words else not found.message


def test_rollouts_that_do_not_get_on() -> None:
    paused = rollout("Deployment", counted(updatedReplicas=0), replicas=3, paused=True)
    assert (paused.stage, paused.settled) == (Stage.STUCK, True)
    assert "paused" in paused.message
    late = condition("Progressing", "False", "ProgressDeadlineExceeded", 'ReplicaSet "web-1" has timed out.')
    found = rollout("Deployment", counted(updatedReplicas=1, replicas=4) | late, replicas=3)
    assert (found.stage, found.settled, found.message) == (
        Stage.STUCK,
        True,
        'ReplicaSet "web-1" has timed out.',
    )
    assert (found.done, found.total) == (1, 3)
    # What is said of an earlier version is not said of this one.
    assert rollout("Deployment", {"observedGeneration": 1} | late, replicas=3).stage is Stage.ROLLING
    quota = condition("ReplicaFailure", "True", "FailedCreate", "exceeded quota: most")
    found = rollout("Deployment", counted(updatedReplicas=1, replicas=3) | quota, replicas=3)
    assert (found.stage, found.settled, found.message) == (Stage.STUCK, False, "exceeded quota: most")


@pytest.mark.parametrize("status", [{"conditions": 7}, {"conditions": [7, {}]}, {"observedGeneration": "2"}])
def test_odd_objects_break_nothing(status: dict[str, Any]) -> None:
    for kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "CronJob"):
        assert rollout(kind, status).stage in Stage
