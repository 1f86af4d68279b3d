"""Allocated resources: what a node runs while a resize is pending, on a recorded node and by example."""

from collections import Counter
from typing import Final

import pytest

from kubectl_qos.analysis.pod_table import build_rows
from kubectl_qos.cluster.files import pod_from_yaml
from kubectl_qos.k8s.allocation import desired_pod, is_resizing, low_pod_limit, other_pod_limit, running_pod
from kubectl_qos.k8s.objects import CPU, EMPTY_RESOURCES, MEMORY, Pod, convert
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.k8s.usage import ContainerUsage, PodUsage
from kubectl_qos.present.evidence import evidence_sentence
from kubectl_qos.present.reasons import resize_sentence
from kubectl_qos.qos.kills.evidence import Fact, memory_limits
from kubectl_qos.qos.prediction import predict_running
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.ranking import RankedPod, rank_node
from kubectl_qos.qos.simulation.next_death import next_deaths
from tests.node_states import build_node_state
from tests.qos.recorded import pods_c, processes_c, rows_of, setup_c, setup_of
from tests.recordings.files import read_json

RELEASE = Release.of("1.36")
PENDING = "conditions: [{type: PodResizePending, status: 'True', reason: Infeasible}]"
WITH_OWN_ADJ = {"ownadj"}
"""A process raised its own oom_score_adj."""


def container_ids(pod: Pod) -> dict[str, str]:
    return {one.name: one.container_id.rpartition("/")[2] for one in pod.status.every_container}


def kill_order(run: str) -> list[RankedPod]:
    """The pods of a recorded moment by what the kernel counted of their processes."""
    used: Counter[str] = Counter()
    for process in processes_c(run):
        used[process.container_id] += process.used_bytes
    setup = setup_c(run)
    pods = [running_pod(pod, setup.release) for pod in pods_c(run)]
    usage = {
        (pod.namespace, pod.name): PodUsage.of_containers(
            {name: ContainerUsage(used[one], used[one], 0) for name, one in container_ids(pod).items()}
        )
        for pod in pods
    }
    return list(rank_node(pods, setup.node, setup.release, usage).pods)


@pytest.mark.parametrize("run", ["pending-resize", "crun-systemd"])
def test_every_process_has_the_adj_of_the_allocated_pod(run: str) -> None:
    measured: dict[str, set[int]] = {}
    for process in processes_c(run):
        measured.setdefault(process.container_id, set()).add(process.adj)
    checked = 0
    for pod in pods_c(run):
        prediction = predict_running(pod, setup_c(run))
        for name, container_id in container_ids(pod).items():
            adjs = measured.get(container_id, set()) if container_id else set()
            if adjs:
                assert prediction.container(name).oom_score_adj in adjs, (pod.name, name)
                assert len(adjs) == 1 or pod.name in WITH_OWN_ADJ
                checked += 1
    assert checked > 50


def test_the_first_victim_of_a_pending_resize_is_the_kernels() -> None:
    first, *others = kill_order("pending-resize")
    assert (first.pod.name, first.rank) == ("bu-over", 1)
    assert is_resizing(first.pod)
    (desired,) = desired_pod(first.pod).containers
    assert (str(desired.requests[MEMORY]), first.profile.request_bytes >> 20) == ("300Mi", 100)
    assert "be-a" in {row.pod.name for row in others}


def resized(status: str, spec: str = "requests: {memory: 1Gi}, limits: {memory: 2Gi}", pod: str = "") -> Pod:
    """A pod of one container with this status; `pod` is more of its spec."""
    return pod_from_yaml(
        "metadata: {name: p}\n"
        f"spec: {{nodeName: n, containers: [{{name: a, resources: {{{spec}}}}}], {pod}}}\n"
        f"status: {{phase: Running, {status}}}"
    )


def values(pod: Pod) -> dict[str, str]:
    """The memory of its container, and of the pod where it has its own."""
    (container,) = pod.containers
    found = {"request": container.requests, "limit": container.limits}
    at_pod_level = pod.spec.resources
    if at_pod_level is not None:
        found["pod request"] = at_pod_level.requests or EMPTY_RESOURCES
        found["pod limit"] = at_pod_level.limits or EMPTY_RESOURCES
    return {name: str(amounts[MEMORY]) for name, amounts in found.items() if MEMORY in amounts}


def test_a_resize_under_way_does_not_change_the_class_of_the_spec() -> None:
    """Its request is allocated before its limit is in force (kubernetes#124786)."""
    status = (
        "qosClass: Guaranteed, conditions: [{type: PodResizeInProgress, status: 'True'}],"
        " containerStatuses: [{name: a, allocatedResources: {memory: 1Mi, cpu: 1},"
        " state: {running: {}},"
        " resources: {requests: {memory: 1Mi, cpu: 1}, limits: {memory: 200Mi, cpu: 1}}}]"
    )
    pod = resized(status, "requests: {memory: 1Mi, cpu: 1}, limits: {memory: 1Mi, cpu: 1}")
    prediction = predict_running(pod, setup_of("systemd"))
    assert is_resizing(pod)
    assert (prediction.qos_class, prediction.computed_class) == (QosClass.GUARANTEED, QosClass.GUARANTEED)


def test_without_a_resize_the_pod_stays_the_same_object() -> None:
    status = "containerStatuses: [{name: a, allocatedResources: {memory: 1024Mi}, resources: {}}]"
    for pod in (resized(""), resized(status)):
        assert running_pod(pod, RELEASE) is pod
        assert desired_pod(pod) is pod


def test_requests_are_the_allocated_ones_and_limits_those_in_force() -> None:
    status = (
        "containerStatuses: [{name: a, allocatedResources: {memory: 512Mi},"
        " resources: {requests: {memory: 512Mi}, limits: {memory: 600Mi}}}]"
    )
    for more in ("", f", {PENDING}"):
        running = running_pod(resized(status + more), RELEASE)
        assert values(running) == {"request": "512Mi", "limit": "600Mi"}
        assert values(desired_pod(running)) == {"request": "1Gi", "limit": "2Gi"}
        assert running_pod(running, RELEASE) is running


def test_a_refused_limit_is_not_in_force() -> None:
    """The kubelet allocates it, and writes it only above usage: PodResizeInProgress with an Error."""
    status = (
        "conditions: [{type: PodResizeInProgress, status: 'True', reason: Error}], containerStatuses: "
        "[{name: a, allocatedResources: {memory: 1Gi},"
        " resources: {requests: {memory: 1Gi}, limits: {memory: 64Mi}}}]"
    )
    assert values(running_pod(resized(status), RELEASE)) == {"request": "1Gi", "limit": "64Mi"}


def test_a_value_that_a_resize_adds_is_not_in_force() -> None:
    status = f"{PENDING}, containerStatuses: [{{name: a, allocatedResources: {{cpu: 1}}, resources: {{}}}}]"
    running = running_pod(resized(status, "requests: {cpu: 2, memory: 1Gi}, limits: {memory: 2Gi}"), RELEASE)
    assert values(running) == {}
    assert str(running.containers[0].requests[CPU]) == "1"


LOW: Final = convert(read_json("node-1.36-d/low-pod-limit.json"), Pod)
"""Its container was raised to 200Mi, and the kubelet left its pod at 60Mi (kubernetes#138760)."""


def test_no_status_of_a_recorded_node_has_another_limit_than_its_containers() -> None:
    """In whole pages, with overhead, sidecars, init containers and at the pod level."""
    recorded = [convert(row["pod"], Pod) for row in rows_of("systemd")]
    pods = [*recorded, *pods_c("crun-systemd"), *pods_c("pending-resize")]
    assert sum(1 for pod in pods if pod.status.resources and pod.status.resources.limits) > 60
    assert [pod.name for pod in pods if other_pod_limit(pod) is not None] == []


def test_the_limit_in_force_is_that_of_the_cgroup() -> None:
    assert (str(other_pod_limit(LOW)), str(low_pod_limit(LOW)), is_resizing(LOW)) == ("60Mi", "60Mi", True)
    setup = setup_of("systemd")
    prediction = predict_running(LOW, setup)
    files = prediction.cgroup.files, prediction.container("c").cgroup.files
    assert [one["memory.max"] for one in files] == ["62914560", "209715200"], "as measured"
    usage = {("oom", "loop"): PodUsage.of_containers({"c": ContainerUsage(50 << 20)})}
    state = build_node_state([running_pod(LOW, setup.release)], setup, usage)
    death = next(iter(next_deaths(state)))
    assert (death.mechanism, death.distance_bytes >> 20) == ("pod limit", 10)
    (row,) = build_rows(Snapshot(pods=(LOW,), usage=usage), Scope()).rows
    assert (row.limit, row.limit_percent and round(row.limit_percent)) == (60 << 20, 83)


def test_kills_and_explain_name_the_limit_that_was_left() -> None:
    setup = setup_of("systemd")
    limits = memory_limits(LOW, "c", setup)
    assert (limits.pod, limits.own, limits.nearest) == (60 << 20, 200 << 20, "pod limit")
    assert [one.fact for one in limits.evidence()] == [Fact.OWN_LIMIT, Fact.POD_LIMIT, Fact.LOW_POD_LIMIT]
    command = "(kubectl qos set pod/loop -n oom -c c --limits memory=+1Mi)"
    assert command in resize_sentence(LOW)
    assert command in evidence_sentence([*limits.evidence()][-1])


def test_while_a_limit_is_raised_the_pods_comes_first() -> None:
    status = (
        "resources: {limits: {memory: 2Gi}}, conditions: [{type: PodResizeInProgress, status: 'True'}],"
        " containerStatuses: [{name: a, resources: {limits: {memory: 1Gi}}}]"
    )
    pod = resized(status)
    assert (str(other_pod_limit(pod)), low_pod_limit(pod)) == ("2Gi", None)
    assert resize_sentence(pod) == "a resize is in progress"


def test_until_1_32_the_resize_is_in_the_status() -> None:
    status = "resize: Infeasible, containerStatuses: [{name: a, resources: {requests: {memory: 256Mi}}}]"
    assert values(running_pod(resized(status), RELEASE)) == {"request": "256Mi"}


def test_the_pod_level_is_allocated_too_and_its_status_has_the_overhead() -> None:
    pod = "resources: {requests: {memory: 4Gi}, limits: {memory: 8Gi}}, overhead: {memory: 1Gi}"
    status = f"{PENDING}, allocatedResources: {{memory: 3Gi}}, resources: {{limits: {{memory: 5Gi}}}}"
    found = values(running_pod(resized(status, pod=pod), RELEASE))
    assert (found["pod request"], found["pod limit"]) == ("2Gi", "5Gi")


def test_a_container_without_a_status_has_its_own_resources() -> None:
    assert values(running_pod(resized(PENDING), RELEASE)) == {"request": "1Gi", "limit": "2Gi"}
