"""What killed a container: recorded deaths with and without the kernel's log, then what decides each kind."""

import json
from collections.abc import Iterable
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from kubectl_qos.cluster.documents import ParsedObjects
from kubectl_qos.host.kernel_log import read_log
from kubectl_qos.k8s.events import Event, EventList
from kubectl_qos.k8s.objects import (
    ContainerState,
    ContainerStateTerminated,
    ContainerStatus,
    EmptyDir,
    NodeObject,
    Pod,
    Volume,
    convert,
)
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.present.evidence import evidence_sentence
from kubectl_qos.present.kills import detail_lines, mechanism_sentence, when
from kubectl_qos.qos.cgroup.names import PathLevel, path_level, pod_cgroup
from kubectl_qos.qos.killers import Mechanism
from kubectl_qos.qos.kills.analyze import Kill, find_kills
from kubectl_qos.qos.kills.evidence import Fact, Need, ended_evidence
from kubectl_qos.qos.kills.report import KernelLog
from kubectl_qos.qos.reason import Confidence
from kubectl_qos.qos.restart import oom_loops
from tests.host.kernel_logs import FORMS, RUNS, recorded_log, recorded_run, rewritten
from tests.qos.recorded import pods_c
from tests.recordings.files import read, read_json, read_lines

TABLE = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
LIMIT_OF_RUN = {"global-A": "node", "kubepods-C": "kubepods limit"}
"""What ran out; in the other runs it is the limit of a pod, which is that of its only container."""
NODE_RAN_OUT = "System OOM encountered, victim process: x, pid: 7"


@cache
def recorded(run: str) -> tuple[Snapshot, EventList]:
    """Pods and node as they were afterwards, and the events."""
    said = read_json(f"node-1.36/oom-{run}.json")
    node = convert(said["node_after"], NodeObject)
    pods = tuple(convert(pod, Pod) for pod in said["pods_after"].values())
    events = tuple(convert(event, Event) for event in said["events"])
    return Snapshot(pods=pods, nodes={node.name: node}), EventList(events)


def log_of(run: str, form: str = "dmesg") -> KernelLog:
    return structs.replace(read_log(rewritten(recorded_log(run), FORMS[form])), title="dmesg")


def facts(kill: Kill) -> set[Fact]:
    return {one.fact for one in kill.diagnosis.evidence}


def diagnosed(kill: Kill) -> tuple[Mechanism, Confidence]:
    return kill.diagnosis.mechanism, kill.diagnosis.confidence


def test_of_one_second_the_log_says_which_kill_was_later() -> None:
    """Both containers ended at 21:23:13 by their statuses, 1.1 s apart by the log."""
    kills = find_kills(*recorded("global-A"), [log_of("global-A")])
    assert [kill.pod for kill in kills if kill.time == "2026-11-20T21:23:13Z"] == [
        "oa-bu-under",
        "oa-bu-small",
    ]


# --- recorded


@pytest.mark.parametrize("run", RUNS)
def test_every_recorded_death_with_the_kernels_log(run: str) -> None:
    snapshot, event_list = recorded(run)
    kills = find_kills(snapshot, event_list, [log_of(run)])
    assert len(kills) == len(log_of(run).reports), "each report is about one death, and none is left out"
    for kill in kills:
        assert kill.diagnosis.mechanism == LIMIT_OF_RUN.get(run, "pod limit")
        assert kill.container
        assert kill.report is not None
        assert kill.report.task_memcg.find(kill.container_id) > 0
        assert kill.node == "node1"
        assert kill.time
        # One process of several was killed, and the log has no times of day: the container may have ended
        # for another reason later.
        doubtful = run == "memcg-singleprocess" and kill.pod == "m-pl"
        assert kill.diagnosis.confidence is (Confidence.LIKELY if doubtful else Confidence.CERTAIN)
        assert kill.diagnosis.needs is (Need.WALL_CLOCK if doubtful else None)


def test_times_of_day_make_the_doubtful_one_certain() -> None:
    snapshot, event_list = recorded("memcg-singleprocess")
    without = log_of("memcg-singleprocess")
    kills = find_kills(snapshot, event_list, [without])
    reported = next(kill.report for kill in kills if kill.pod == "m-pl" and kill.report is not None)
    assert reported.uptime is not None
    death = next(kill.time for kill in kills if kill.pod == "m-pl")
    pod = next(pod for pod in snapshot.pods if pod.name == "m-pl")
    assert pod.status.every_container[0].state is not None
    boot = datetime.fromisoformat(death).timestamp() - reported.uptime - 1
    certain = find_kills(snapshot, event_list, [without.with_boot_time(boot)])
    assert {kill.diagnosis.confidence for kill in certain} == {Confidence.CERTAIN}
    an_hour_off = find_kills(snapshot, event_list, [without.with_boot_time(boot - 3600)])
    assert {kill.pod for kill in an_hour_off if kill.diagnosis.confidence is Confidence.LIKELY} == {"m-pl"}


@pytest.mark.parametrize("run", [*RUNS, "eviction"])
def test_every_recorded_death_without_it_is_never_wrongly_certain(run: str) -> None:
    snapshot, event_list = recorded(run)
    kills = find_kills(snapshot, event_list)
    assert len(kills) == (
        6
        if run == "eviction"
        else len(find_kills(snapshot, event_list, [log_of(run)]))
        - {
            # Restarts of long ago, and processes of containers that went on, are in no status.
            "memcg-cgroupfs": 1,
            "memcg-oomgroup": 2,
            "memcg-singleprocess": 3,
        }.get(run, 0)
    )
    for kill in kills:
        if run == "eviction":
            assert diagnosed(kill) == ("kubelet eviction", Confidence.CERTAIN)
            assert kill.exit_code == 0
            continue
        assert kill.diagnosis.confidence is not Confidence.CERTAIN
        assert kill.diagnosis.mechanism == LIMIT_OF_RUN.get(run, "pod limit")
        assert kill.diagnosis.needs is Need.KERNEL_LOG
        # Neither the reason nor the exit code decides: `Error` with 137 is likely here and possible there.
        is_stated = kill.reason == "OOMKilled" or run == "global-A"
        assert kill.diagnosis.confidence is (Confidence.LIKELY if is_stated else Confidence.POSSIBLE)


def test_without_events_much_less_is_said() -> None:
    for run in ("global-A", "kubepods-C"):
        snapshot, _ = recorded(run)
        for kill in find_kills(snapshot, EventList(of_nodes=False)):
            by_kernel, unknown = (
                (Mechanism.KERNEL, Confidence.LIKELY),
                (Mechanism.UNKNOWN, Confidence.POSSIBLE),
            )
            assert diagnosed(kill) == (by_kernel if kill.reason == "OOMKilled" else unknown)
            assert Fact.NO_EVENTS in facts(kill)


def test_the_newest_first_and_estimated_times() -> None:
    snapshot, event_list = recorded("memcg-oomgroup")
    kills = find_kills(snapshot, event_list, [log_of("memcg-oomgroup")])
    times = [kill.time for kill in kills]
    assert times == sorted(times, reverse=True)
    assert [kill.pod for kill in kills if kill.time_is_estimated] == ["m-restart", "m-restart"]
    assert {kill.time for kill in kills if kill.time_is_estimated} == {
        "2026-11-20T21:37:21Z",
        "2026-11-20T21:37:24Z",
    }


def test_scores_and_what_was_freed() -> None:
    snapshot, event_list = recorded("global-A")
    found = {kill.pod: kill for kill in find_kills(snapshot, event_list, [log_of("global-A")])}
    assert {name: kill.score for name, kill in found.items()} == {
        "oa-bu-over": 1390,
        "oa-be-200": 1367,
        "oa-be-100": 1350,
        "oa-bu-small": 1333,
        "oa-bu-under": 1209,
    }
    assert found["oa-bu-over"].freed_bytes == 409600 * 1024


def test_pods_that_are_gone_and_processes_outside_pods() -> None:
    log = log_of("kubepods-C")
    kills = find_kills(Snapshot(), EventList(), [log])
    assert [kill.diagnosis.mechanism for kill in kills] == ["kubepods limit"] * 5
    assert {(kill.pod, kill.container) for kill in kills} == {("", "")}
    assert all(kill.pod_uid and kill.container_id for kill in kills)
    assert find_kills(Snapshot(), EventList(), [log], outside_pods=False) == []
    service = "/system.slice/a.service"
    line = f"oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg={service},task_memcg={service},task=a,pid=7,uid=0"
    outside = read_log([line])
    (kill,) = find_kills(Snapshot(), EventList(), [outside])
    assert (kill.diagnosis.mechanism, kill.pod_uid, kill.cgroup) == (
        Mechanism.CGROUP_LIMIT,
        "",
        "/system.slice/a.service",
    )


def test_only_the_wanted_pods() -> None:
    snapshot, event_list = recorded("global-A")
    kills = find_kills(
        snapshot,
        event_list,
        [log_of("global-A")],
        is_included=lambda pod: pod.name == "oa-be-100",
        outside_pods=False,
    )
    assert [kill.pod for kill in kills] == ["oa-be-100"]


# --- what decides


UID = "af389229-5fc5-4617-ae95-9160d576eb49"
DIED = "2026-11-20T12:00:00Z"


def pod(
    *,
    reason: str = "Error",
    exit_code: int = 137,
    limits: dict[str, str] | None = None,
    state: str = "state",
    kind: str = "containerStatuses",
    status: dict[str, Any] | None = None,
    **metadata: Any,
) -> Pod:
    """A pod with the containers a and b, of which a has ended."""
    container = {"name": "a", "resources": {"limits": {"memory": "64Mi"} if limits is None else limits}}
    spec: dict[str, Any] = {"nodeName": "node1", "containers": [container, {"name": "b"}]}
    if kind == "initContainerStatuses":
        spec |= {"containers": [{"name": "b"}], "initContainers": [container]}
    if kind == "ephemeralContainerStatuses":
        spec |= {"containers": [{"name": "b"}], "ephemeralContainers": [container]}
    end = {
        "exitCode": exit_code,
        "reason": reason,
        "finishedAt": DIED,
        "containerID": "containerd://aa11bb22cc33",
    }
    ended = {"name": "a", state: {"terminated": end}}
    return convert(
        {
            "kind": "Pod",
            "metadata": {"name": "web", "namespace": "shop", "uid": UID, **metadata},
            "spec": spec,
            "status": {kind: [ended], "phase": "Running", **(status or {})},
        },
        Pod,
    )


def event(
    reason: str, message: str = "", time: str = DIED, *, container: str = "", node: bool = False
) -> Event:
    involved = (
        {"kind": "Node", "name": "node1"}
        if node
        else {
            "kind": "Pod",
            "namespace": "shop",
            "name": "web",
            "uid": UID,
            "fieldPath": f"spec.containers{{{container}}}" if container else "",
        }
    )
    return convert(
        {"involvedObject": involved, "reason": reason, "message": message, "lastTimestamp": time}, Event
    )


OLD = event("Scheduled", time="2026-11-20T11:00:00Z")


def only(found: Pod, *events: Event, logs: Iterable[KernelLog] = (), of_nodes: bool = True) -> Kill:
    """The only death in a status: events of the node may tell of others."""
    kills = find_kills(Snapshot(pods=(found,)), EventList(events, of_nodes=of_nodes), list(logs))
    (kill,) = [kill for kill in kills if kill.pod]
    return kill


@pytest.mark.parametrize("row", TABLE["rows"], ids=[row["case"] for row in TABLE["rows"]])
def test_what_decides(row: dict[str, Any]) -> None:
    found, events = pod(**row["pod"]), tuple(event(**one) for one in row.get("events", ()))
    if row["is"] == "none":
        assert find_kills(Snapshot(pods=(found,)), EventList(events)) == []
        return
    kill = only(found, *events, of_nodes=row.get("of_nodes", True))
    mechanism, confidence = diagnosed(kill)
    assert row["is"] in {mechanism.value, f"{mechanism} {confidence}"}
    assert facts(kill) >= {Fact[name] for name in row.get("has", ())}
    assert facts(kill).isdisjoint(Fact[name] for name in row.get("lacks", ()))
    assert kill.container == row.get("container", kill.container)
    assert "needs" not in row or kill.diagnosis.needs is Need[row["needs"]]
    said = [evidence_sentence(one) for one in kill.diagnosis.evidence]
    assert any(sentence.startswith(row.get("says", "")) for sentence in said)


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("Unknown", "it ended unobserved, as in a restart of its node (exit code 255, Unknown)"),
        ("Error", "it ended with exit code 255 and Error"),
    ],
)
def test_an_end_that_the_runtime_did_not_see(reason: str, text: str) -> None:
    """As recorded of containerd after a restart of the node (node-1.36-c)."""
    (evidence,) = ended_evidence(ContainerStateTerminated(reason=reason, exit_code=255), "state")
    assert evidence_sentence(evidence) == text


@pytest.mark.parametrize(
    ("started", "when"),
    [("2026-02-11T10:11:23Z", "at some time since 2026-02-11T10:11:23Z"), (None, "in that run")],
)
def test_an_oom_kill_that_did_not_end_the_container_may_be_long_before(
    started: str | None, when: str
) -> None:
    """The runtime counts kills until the end (kubernetes#140716: 143 after a drain)."""
    end = ContainerStateTerminated(reason="OOMKilled", exit_code=143, started_at=started)
    text = evidence_sentence(next(ended_evidence(end, "state")))
    assert text == (
        f"it ended with exit code 143 and OOMKilled: {when} a process in it was killed, and its main process"
        " ended by SIGTERM, as on a normal stop"
    )


@pytest.mark.parametrize("kind", ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"])
@pytest.mark.parametrize("state", ["state", "lastState"])
def test_containers_of_every_kind(kind: str, state: str) -> None:
    kill = only(pod(reason="OOMKilled", kind=kind, state=state), OLD)
    assert (kill.container, kill.exit_code, kill.time) == ("a", 137, DIED)
    assert kill.diagnosis.confidence is Confidence.LIKELY


def test_an_ephemeral_container_does_not_restart() -> None:
    kinds = "ephemeralContainerStatuses", "containerStatuses"
    ended = [pod(reason="OOMKilled", kind=kind, state="state") for kind in kinds]
    assert [len(oom_loops(one)) for one in ended] == [0, 1]


@pytest.mark.parametrize(("medium", "is_said"), [("Memory", True), ("", False)])
def test_a_volume_in_memory_stays_when_the_container_restarts(medium: str, *, is_said: bool) -> None:
    raw = pod(reason="OOMKilled")
    volumes = (Volume(name="shm", empty_dir=EmptyDir(medium=medium)),)
    kill = only(msgspec.structs.replace(raw, spec=msgspec.structs.replace(raw.spec, volumes=volumes)), OLD)
    text = " ".join(" ".join(detail_lines(kill)).split())
    assert ("files in the volume shm are memory: they count toward that limit" in text) is is_said


@pytest.mark.parametrize(("code", "end"), [(0, "normally"), (143, "by SIGTERM"), (1, "by itself"), (137, "")])
def test_an_oom_kill_that_did_not_end_the_container(code: int, end: str) -> None:
    kill = only(pod(exit_code=code, reason="OOMKilled", limits={}), of_nodes=False)
    assert diagnosed(kill) == (Mechanism.KERNEL, Confidence.LIKELY)
    text = " ".join(detail_lines(kill))
    assert (f"its main process ended {end}" in " ".join(text.split())) == bool(end)


@pytest.mark.parametrize(
    ("kind", "code", "is_said"),
    [
        ("initContainerStatuses", 0, True),
        ("initContainerStatuses", 137, False),
        ("containerStatuses", 0, False),
    ],
)
def test_an_init_container_with_an_oom_kill_runs_again(kind: str, code: int, *, is_said: bool) -> None:
    kill = only(pod(exit_code=code, reason="OOMKilled", kind=kind), OLD)
    assert (Fact.INIT_RUNS_AGAIN in facts(kill)) is is_said


def test_a_kubelet_that_went_on_after_such_an_init_container() -> None:
    """Before 1.23 it counts as completed: then the containers have started."""
    ended = pod(exit_code=0, reason="OOMKilled", kind="initContainerStatuses", state="state")
    running = ContainerStatus(name="app", state=ContainerState())
    status = msgspec.structs.replace(ended.status, container_statuses=(running,))
    assert Fact.INIT_RUNS_AGAIN in facts(only(ended, OLD))
    assert Fact.INIT_RUNS_AGAIN not in facts(only(msgspec.structs.replace(ended, status=status), OLD))


def test_the_kernels_own_words_count_more_than_a_kubelets() -> None:
    of_kernel = event(
        "OOMKilling", "Memory cgroup out of memory: Killed process 7 (x) total-vm:9kB", node=True
    )
    of_kubelet = event("SystemOOM", NODE_RAN_OUT, node=True)
    for events in ((of_kernel, of_kubelet), (of_kubelet, of_kernel)):
        (kill,) = find_kills(Snapshot(), EventList(events))
        assert kill.diagnosis.mechanism is Mechanism.MEMORY_LIMIT
        assert only(pod(reason="OOMKilled"), *events).diagnosis.mechanism == "container limit"
    other = event("SystemOOM", NODE_RAN_OUT.replace("7", "8"), node=True)
    assert len(find_kills(Snapshot(), EventList((of_kernel, other)))) == 2


EVICTED = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. "
OLD_MEMORY = "The node was low on resource: [MemoryPressure]. "
PIDS = "The node was low on resource: pids. "
STORAGE_LIMIT = "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. "
CONTAINER_LIMIT = 'Container app exceeded its local ephemeral storage limit "2Gi". '
VOLUME_LIMIT = 'Usage of EmptyDir volume "cache" exceeds the limit "64Mi". '

TARGET = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}


def test_the_time_of_a_condition_is_that_of_the_eviction() -> None:
    """42 h ago is not within the last hour, though no event is left."""
    dated = {**TARGET, "message": EVICTED, "lastTransitionTime": DIED}
    kill = only(pod(exit_code=0, state="lastState", status={"conditions": [dated]}))
    assert (kill.container, kill.time, *diagnosed(kill)) == (
        "",
        DIED,
        "kubelet eviction",
        Confidence.CERTAIN,
    )
    ended = {**dated, "lastTransitionTime": "2026-11-20T12:10:00Z"}
    found = find_kills(Snapshot(pods=(pod(exit_code=143, status={"conditions": [ended]}),)), EventList())
    assert [(kill.container, kill.time) for kill in found] == [("", "2026-11-20T12:10:00Z")]


FULL = "the node need not be full. Write less there, or raise"
ORDER = "pods above their requests are evicted first, whatever their size, then by priority (0)"
USED = "Container {} was using {}, request is {}, has larger consumption of x. "
BOTH = USED.format("a", "300Mi", "64Mi") + USED.format("b", "2Mi", "1Mi")
OF_POD = "Pod p was using 300Mi, request is 64Mi, has larger consumption of memory. "
SUMS = "while the kubelet compares the pod's totals"
BY = "by the working set, which includes page cache in use"


@pytest.mark.parametrize(
    ("message", "medium", "parts"),
    [
        (
            VOLUME_LIMIT,
            "",
            ("the emptyDir cache held more than its sizeLimit of 64Mi", f"{FULL} the sizeLimit"),
        ),
        (
            VOLUME_LIMIT,
            "Memory",
            (f"{FULL} the sizeLimit, and the memory limit of the container that writes",),
        ),
        (STORAGE_LIMIT, "", ("held more than its ephemeral-storage limits together, 1Gi", FULL)),
        (CONTAINER_LIMIT, "", ("container app wrote more than its ephemeral-storage limit of 2Gi", FULL)),
        (EVICTED, "", (f"none of its containers was above its request: {ORDER}", "So no such pod was left")),
        (OLD_MEMORY, "", (f"{ORDER}; what it used is not said here (kubelets before 1.13 never say it)",)),
        (
            PIDS + USED.format("a", 900, 0),
            "",
            ("pods do not request pids: the order is by priority, then by usage",),
        ),
        (
            EVICTED + BOTH,
            "",
            (f"it used 302Mi of memory, 237Mi above its requests, {BY}: {ORDER}", "Requests of 300Mi for a,"),
        ),
        (EVICTED + OF_POD, "", (f"it used 300Mi of memory, 236Mi above its requests, {BY}: {ORDER}",)),
        (
            EVICTED + USED.format("a", "3Mi", 0),
            "",
            (f"container a used 3Mi of memory, 3Mi above its request, {BY}, {SUMS}",),
        ),
    ],
)
def test_why_the_kubelet_evicted_this_pod(message: str, medium: str, parts: tuple[str, ...]) -> None:
    raw = pod(exit_code=143, status={"reason": "Evicted", "message": message})
    volumes = (Volume(name="cache", empty_dir=EmptyDir(medium=medium)),)
    evicted = msgspec.structs.replace(raw, spec=msgspec.structs.replace(raw.spec, volumes=volumes))
    sentence = evidence_sentence(only(evicted).diagnosis.evidence[-1])
    assert [part for part in parts if part not in sentence] == [], sentence


def test_an_eviction_without_a_time_was_about_when_the_pod_stopped_being_ready() -> None:
    unready = {"type": "Ready", "status": "False", "lastTransitionTime": DIED}
    status = {"phase": "Failed", "reason": "Evicted", "message": EVICTED, "conditions": [unready]}
    evicted = pod(exit_code=0, status=status)
    bare = msgspec.structs.replace(evicted.status, container_statuses=())
    kill = only(msgspec.structs.replace(evicted, status=bare))
    assert when(kill) == f"about {DIED}"


def test_a_recorded_eviction_is_one_death_with_its_time() -> None:
    """1.36 leaves state and lastState as ContainerStatusUnknown, without a time, and one restart."""
    parsed = ParsedObjects()
    parsed.add_file(read("node-1.36-d/evicted.json"), "evicted.json")
    snapshot, events = Snapshot(pods=tuple(parsed.pods)), EventList(tuple(parsed.events))
    for event_list, time in ((events, "2026-11-23T19:09:42Z"), (EventList(), "2026-11-23T19:09:47Z")):
        (kill,) = find_kills(snapshot, event_list)
        assert (kill.container, kill.time, *diagnosed(kill)) == (
            "c",
            time,
            "kubelet eviction",
            Confidence.CERTAIN,
        )
        assert kill.diagnosis.needs is None


def test_an_evicted_pod_of_several_containers_is_one_death() -> None:
    raw = pod(
        exit_code=143, status={"conditions": [{**TARGET, "message": EVICTED, "lastTransitionTime": DIED}]}
    )
    first = raw.status.container_statuses or ()
    both = (*first, msgspec.structs.replace(first[0], name="b"))
    raw = msgspec.structs.replace(raw, status=msgspec.structs.replace(raw.status, container_statuses=both))
    kill = only(raw)
    assert (kill.container, kill.time, *diagnosed(kill)) == ("", DIED, "kubelet eviction", Confidence.CERTAIN)


def test_a_death_before_the_eviction_is_another() -> None:
    kills = find_kills(
        Snapshot(pods=(pod(reason="OOMKilled"),)),
        EventList((OLD, event("Evicted", EVICTED, "2026-11-20T12:10:00Z"))),
    )
    assert [(kill.container, kill.diagnosis.mechanism) for kill in kills] == [
        ("", "kubelet eviction"),
        ("a", "container limit"),
    ]


def test_containers_that_went_on() -> None:
    snapshot, event_list = recorded("memcg-singleprocess")
    kills = find_kills(snapshot, event_list, [log_of("memcg-singleprocess")])
    assert {kill.pod for kill in kills if Fact.WENT_ON in facts(kill)} == {"m-group", "m-tmpfs"}


@pytest.mark.parametrize(
    ("group", "went_on", "left_out"), [(True, False, ""), (False, True, ""), (False, True, "dd44")]
)
def test_a_container_whose_status_is_older_than_its_death_did_not_go_on(
    *, group: bool, went_on: bool, left_out: str
) -> None:
    """Of its ID, a person may have left out the end."""
    status = {"name": "a", "containerID": f"containerd://aa11bb22cc33{left_out}", "state": {"running": {}}}
    kill = only(pod(status={"containerStatuses": [status]}), OLD, logs=[kernel(CGROUP, DIED, group=group)])
    assert (kill.container, Fact.WENT_ON in facts(kill)) == ("a", went_on)


CGROUP = f"/kubepods/burstable/pod{UID}"


def kernel(memcg: str, time: str, *, node: str = "", group: bool = True, silent: bool = False) -> KernelLog:
    """A log of two hours with one report about the container."""
    path = f"{CGROUP}/aa11bb22cc33"
    victim = f"task_memcg={path},task=x,pid=7,uid=0"
    sizes = "total-vm:9kB, anon-rss:8kB, file-rss:0kB, shmem-rss:0kB"
    lines = [
        "2026-11-20T11:00:00Z node1 kernel: eth0: up",
        f"{time} node1 kernel: x invoked oom-killer: gfp_mask=0xcc0, order=0, oom_score_adj=5",
        f"{time} node1 kernel: CPU: 1 PID: 7 Comm: x Not tainted 6.1.0 #1",
        f"{time} node1 kernel: memory: usage 65536kB, limit 65536kB, failcnt 9",
        f"{time} node1 kernel: oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg={memcg},{victim}",
        f"{time} node1 kernel: Memory cgroup out of memory: Killed process 7 (x) {sizes}",
        f"{time} node1 kernel: Tasks in {path} are going to be killed due to memory.oom.group set",
        "2026-11-20T13:00:00Z node1 kernel: eth0: down",
    ]
    lines = lines if group else [*lines[:-2], lines[-1]]
    return structs.replace(read_log([lines[0], lines[-1]] if silent else lines), node=node)


@pytest.mark.parametrize(
    ("memcg", "mechanism"),
    [
        (f"{CGROUP}/aa11bb22cc33", "container limit"),
        (f"{CGROUP}/aa11bb22cc33/container", "container limit"),
        (f"{CGROUP}/aa11bb22cc33/docker/dd44", "other limit"),
        (CGROUP, "pod limit"),
        ("/kubepods/burstable", "kubepods limit"),
        ("/kubepods", "kubepods limit"),
        ("/", "node"),
    ],
)
def test_the_kernel_says_whose_limit(memcg: str, mechanism: Mechanism) -> None:
    kill = only(pod(), logs=[kernel(memcg, DIED)])
    assert (*diagnosed(kill), kill.diagnosis.needs) == (mechanism, Confidence.CERTAIN, None)


@pytest.mark.parametrize(
    ("time", "confidence"),
    [
        ("2026-11-20T11:59:58Z", Confidence.CERTAIN),
        ("2026-11-20T11:59:58", Confidence.LIKELY),
        ("2026-11-20T11:30:00Z", Confidence.LIKELY),
    ],
)
def test_one_process_of_several_needs_the_time(time: str, confidence: Confidence) -> None:
    kill = only(pod(), logs=[kernel(CGROUP, time, group=False)])
    assert diagnosed(kill) == ("pod limit", confidence)
    assert (kill.diagnosis.needs is Need.WALL_CLOCK) == (confidence is Confidence.LIKELY)


def test_a_process_of_a_container_that_ended_by_itself_later() -> None:
    kill = only(pod(exit_code=1), logs=[kernel(CGROUP, DIED, group=False)])
    assert (*diagnosed(kill), kill.exit_code) == ("pod limit", Confidence.CERTAIN, None)
    kill = only(pod(exit_code=1), logs=[kernel(CGROUP, DIED)])
    assert kill.exit_code == 1


def test_a_kernel_that_is_silent_speaks_for_somebody_else() -> None:
    silent = kernel(CGROUP, DIED, node="node1", silent=True)
    kill = only(pod(), logs=[silent])
    assert diagnosed(kill) == (Mechanism.SIGKILL, Confidence.LIKELY)
    assert Fact.KERNEL_SILENT in facts(kill)
    assert kill.diagnosis.needs is None
    assert only(pod(reason="OOMKilled"), OLD, logs=[silent]).diagnosis.mechanism == "container limit"
    for other in (
        structs.replace(silent, node="node2"),
        structs.replace(silent, first="2026-11-20T12:30:00Z"),
        structs.replace(silent, last="2026-11-20T11:30:00Z"),
        structs.replace(silent, first="2026-11-20T11:00:00"),
        structs.replace(silent, left_out=1),
    ):
        kill = only(pod(), OLD, logs=[other])
        assert kill.diagnosis.mechanism == "container limit"
        wanted = Need.KERNEL_LOG if other.node == "node2" else Need.LOG_OF_THAT_TIME
        assert kill.diagnosis.needs is wanted


def test_a_victim_above_the_rate_limit_may_be_anybodys() -> None:
    quiet = kernel(CGROUP, DIED, node="node1", silent=True)
    nameless = "Memory cgroup out of memory: Killed process 7 (x) total-vm:9kB, anon-rss:8kB"
    for time, mechanism in (
        ("2026-11-20T11:59:57Z", Mechanism.UNKNOWN),
        ("2026-11-20T11:30:00Z", Mechanism.SIGKILL),
    ):
        (report,) = read_log([f"{time} node1 kernel: {nameless}"]).reports
        kills = find_kills(Snapshot(pods=(pod(),)), EventList(), [structs.replace(quiet, reports=(report,))])
        assert {kill.pod: kill.diagnosis.mechanism for kill in kills} == {
            "web": mechanism,
            "": Mechanism.MEMORY_LIMIT,
        }


def test_a_status_without_the_id_is_found_by_the_time() -> None:
    raw = pod(reason="OOMKilled")
    without = msgspec.convert(
        json.loads(
            msgspec.json.encode(msgspec.to_builtins(raw.status)).replace(b"containerd://aa11bb22cc33", b"")
        ),
        type(raw.status),
    )
    found = msgspec.structs.replace(raw, status=without)
    assert only(found, logs=[kernel(CGROUP, DIED)]).diagnosis.confidence is Confidence.CERTAIN
    of_host = f"{DIED} node1 kernel: Out of memory: Killed process 8 (y) total-vm:9kB, anon-rss:8kB"
    kills = find_kills(Snapshot(pods=(found,)), EventList(), [read_log([of_host])])
    assert [(kill.pod, kill.report is None) for kill in kills] == [("", False), ("web", True)]


def test_a_static_pod_is_known_by_the_hash_of_its_file() -> None:
    digest = "e1f2" * 8
    annotations = {"kubernetes.io/config.mirror": digest, "kubernetes.io/config.hash": digest}
    found = pod(annotations=annotations, exit_code=0)
    path = f"/kubepods.slice/kubepods-pod{digest}.slice/cri-containerd-{'dd' * 32}.scope"
    log = read_log([f"oom-kill:constraint=CONSTRAINT_NONE,task_memcg={path},task=x,pid=7,uid=0"])
    kill = only(found, logs=[log])
    assert (kill.pod, kill.container) == ("web", "")


def test_a_report_in_two_logs_is_one_kill() -> None:
    """A log twice, the same as dmesg and from the journal, and one that shares a part with another."""
    snapshot, event_list = recorded("global-A")
    once = find_kills(snapshot, event_list, [log_of("global-A")])
    journal = log_of("global-A", "journalctl -o json")
    assert journal.reports[0].time
    part = structs.replace(journal, reports=journal.reports[2:])
    for logs in ([log_of("global-A")] * 2, [log_of("global-A"), journal], [part, journal]):
        found = find_kills(snapshot, event_list, logs)
        assert len(found) == len(once) == len(find_kills(Snapshot(), EventList(), logs)) == 5
        assert not any(Fact.OTHER_PROCESSES in facts(kill) for kill in found)
    elsewhere = structs.replace(log_of("global-A"), node="node2")
    both = [structs.replace(log_of("global-A"), node="node1"), elsewhere]
    assert len(find_kills(Snapshot(), EventList(), both)) == 10, "two nodes that the user names are two"


def test_the_same_victim_an_hour_later_is_another_kill() -> None:
    early, late = (kernel(CGROUP, f"2026-11-20T1{hour}:30:00Z") for hour in (1, 2))
    assert len(find_kills(Snapshot(), EventList(), [early, late])) == 2


@pytest.mark.parametrize("name", ["CPUSET", "MEMORY_POLICY"])
def test_only_some_memory_nodes_ran_out(name: str) -> None:
    path = f"task_memcg={CGROUP}/aa11bb22cc33"
    lines = [
        f"oom-kill:constraint=CONSTRAINT_{name},nodemask=1,cpuset=a,mems_allowed=1,{path},task=x,pid=7,uid=0",
        "Out of memory: Killed process 7 (x) total-vm:9kB, anon-rss:8kB, file-rss:0kB, shmem-rss:0kB",
    ]
    kill = only(pod(), logs=[read_log(lines)])
    assert kill.diagnosis.mechanism is Mechanism.MEMORY_NODES
    assert f"CONSTRAINT_{name}, NUMA node 1 (" in evidence_sentence(kill.diagnosis.evidence[0])
    said = "\n".join(detail_lines(kill, 200))
    assert "because NUMA nodes of a cpuset or memory policy ran out" in said
    assert f"the kernel killed x (7): CONSTRAINT_{name}" in said
    assert "the node ran out" not in said


# --- what a runtime names

RUNC = (
    "failed to create containerd task: failed to create shim task: OCI runtime create failed:"
    " runc create failed: unable to start container process:"
    " container init was OOM-killed (memory limit too low?): unknown"
)
V1 = "memory.limit_in_bytes: device or resource busy"
TOO_SMALL = [
    f'init caused \\"failed to write 8388608 to \\"{V1[:21]}\\": write /sys/fs/cgroup/memory/b/{V1}',
    "OCI create failed: unable to set memory limit to 1 (current usage: 2158592, peak usage: 5947392)",
    "container create failed: set memory limit 8388608 too low; should be at least 12582912",
    "Error response from daemon: Minimum memory limit allowed is 6MB",
    "container create failed: the memory limit could be too low: read from the init process",
]
CRUN = "container create failed: OOM: the memory limit could be too low: read from the init process"
GONE = [
    r'container init caused \"read init-p: connection reset by peer\"": unknown',
    "process_linux.go:348: copying bootstrap data to pipe caused: write init-p: broken pipe",
    r"""process_linux.go:303: getting the final child's pid from pipe caused \"EOF\"": unknown""",
    "unable to start container process: can't get final child's PID from pipe: EOF: unknown",
    "unable to start container process: waiting for init preliminary setup: EOF: unknown",
    r'running exec setns process for init caused \"signal: killed\"": unknown',
    "/usr/bin/runc start 42b failed: cannot start a container that has stopped",
    "OCI runtime create failed: runc did not terminate sucessfully: unknown",
]
"""As issues of runc, moby, podman and Kubernetes quote it where a limit was too small."""


def not_started(message: str, *, waiting: str = "", ended: bool = True, **fields: Any) -> Pod:
    """A pod whose container `a` could not be started, as containerd reports it, or CRI-O (not `ended`)."""
    found = pod(exit_code=128, reason="StartError", state="lastState", **fields)
    (raw,) = msgspec.to_builtins(found.status.container_statuses)
    raw["lastState"] = (
        {"terminated": {**raw["lastState"]["terminated"], "message": message}} if ended else None
    )
    raw["state"] = {
        "waiting": {"reason": waiting or "CrashLoopBackOff", "message": message if waiting else ""}
    }
    status = convert({"phase": "Running", "containerStatuses": [raw]}, type(found.status))
    return msgspec.structs.replace(found, status=status)


@pytest.mark.parametrize("message", [RUNC, CRUN, *TOO_SMALL])
@pytest.mark.parametrize("waiting", ["", "RunContainerError"])
def test_a_runtime_names_an_oom_at_the_start(message: str, waiting: str) -> None:
    """Once, also where the waiting state repeats what the last one says."""
    kill = only(not_started(message, waiting=waiting))
    assert diagnosed(kill) == (Mechanism.START_LIMIT, Confidence.CERTAIN)
    assert (kill.time, kill.exit_code, kill.reason, kill.diagnosis.needs) == (DIED, 128, "StartError", None)
    said = "\n".join(detail_lines(kill, 200))
    assert "the runtime says: " in said
    assert ("container init was OOM-killed (memory limit too low?)" in said) is (message is RUNC)


@pytest.mark.parametrize("message", GONE)
def test_a_first_process_that_is_gone_is_likely_an_oom_within_a_few_mi(message: str) -> None:
    kill = only(not_started(message, limits={"memory": "6Mi"}, waiting="RunContainerError", ended=False))
    assert (*diagnosed(kill), kill.diagnosis.needs) == (
        Mechanism.START_LIMIT,
        Confidence.LIKELY,
        Need.KERNEL_LOG,
    )
    assert ", as it does when memory runs out. Starting takes" in "\n".join(detail_lines(kill, 400))
    larger = not_started(message, limits={"memory": "64Mi"}, waiting="RunContainerError", ended=False)
    assert find_kills(Snapshot(pods=(larger,)), EventList()) == []


def test_a_container_that_only_waits_was_killed_at_its_start_too() -> None:
    """CRI-O keeps no container that it could not create: the event has the time."""
    found = not_started(CRUN, waiting="CreateContainerError", ended=False)
    kill = only(found, event("Failed", f"Error: {CRUN}", container="a"))
    assert diagnosed(kill) == (Mechanism.START_LIMIT, Confidence.CERTAIN)
    assert (kill.time, kill.exit_code, kill.reason) == (DIED, None, "CreateContainerError")
    assert "it could not be started: CreateContainerError" in "\n".join(detail_lines(kill, 200))
    assert only(found).time == ""


@pytest.mark.parametrize(
    ("fields", "priority"),
    [
        ({"priority": 7, "priorityClassName": "high"}, "(7)"),
        ({"priorityClassName": "high"}, "of PriorityClass"),
    ],
)
def test_the_priority_of_a_class_that_is_not_resolved_is_not_0(fields: dict[str, Any], priority: str) -> None:
    message = f"{EVICTED}Container a was using 70Mi, which exceeds its request of 0. "
    found = msgspec.convert(
        {
            "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "a"}], **fields},
            "status": {"phase": "Failed", "reason": "Evicted", "message": message},
        },
        Pod,
    )
    text = "\n".join(detail_lines(only(found), 400))
    assert f"then by priority {priority}" in text.replace("(of", "of")
    assert "Requests of 70Mi for a would have put it behind" in text


def test_a_sandbox_that_is_not_created_is_known_by_its_event() -> None:
    """The status of the container says only that it is being created."""
    found = not_started("", waiting="ContainerCreating", ended=False)
    spec = msgspec.structs.replace(found.spec, containers=found.containers[:1])
    alone, unknown = msgspec.structs.replace(found, spec=spec), Pod(metadata=found.metadata)
    of_sandbox = event("FailedCreatePodSandBox", f"Failed to create pod sandbox: {RUNC}")
    for listed, container in ((alone, "a"), (unknown, "")):
        kill = only(listed, of_sandbox)
        assert (*diagnosed(kill), kill.time) == (Mechanism.START_LIMIT, Confidence.CERTAIN, DIED)
        assert kill.container == container
    (gone,) = find_kills(Snapshot(), EventList((of_sandbox,)))
    assert (gone.pod, *diagnosed(gone)) == (found.name, Mechanism.START_LIMIT, Confidence.CERTAIN)
    assert find_kills(Snapshot(pods=(found,)), EventList()) == []
    assert find_kills(Snapshot(pods=(found,)), EventList((of_sandbox,))) == [], "its pod has no limit"


def test_a_stateful_set_creates_an_evicted_pod_again_under_its_name() -> None:
    """The events have the UIDs of the evicted pods, the list of pods that of the newest."""
    new = pod(reason="Completed", exit_code=0)
    last = event("Evicted", "The node was low on resource: memory.")
    before, first = (
        structs.replace(last, involved_object=structs.replace(last.involved_object, uid=uid))
        for uid in ("before", "first")
    )
    for events in ((before, first), (last,), (last, first)):
        kills = find_kills(Snapshot(pods=(new,)), EventList(events))
        assert sorted(kill.pod_uid for kill in kills) == sorted(one.involved_object.uid for one in events)
        assert {(kill.pod, kill.diagnosis.mechanism) for kill in kills} == {("web", "kubelet eviction")}


def test_without_any_limit_a_runtime_does_not_name_what_ran_out() -> None:
    kill = only(not_started(RUNC, limits={}), OLD)
    assert diagnosed(kill) == ("kubepods limit", Confidence.LIKELY)


def test_another_error_at_the_start_is_no_kill() -> None:
    found = not_started(
        'exec: "nope": executable file not found in $PATH: unknown', waiting="RunContainerError"
    )
    assert find_kills(Snapshot(pods=(found,)), EventList()) == []


def test_the_kernels_report_of_an_oom_at_the_start_is_that_death() -> None:
    kill = only(not_started(RUNC), logs=[kernel(CGROUP, DIED)])
    assert (*diagnosed(kill), kill.exit_code) == ("pod limit", Confidence.CERTAIN, 128)
    assert Fact.WENT_ON not in facts(kill)


def test_a_kernel_that_names_a_victim_twice_killed_it_once() -> None:
    """Linux 6.12 with memory.oom.group: two lines about one process, and one kill of 500 MiB."""
    log = read_log(read_lines("node-1.36-c/pending-resize-oom.dmesg.txt"))
    victims = [killed.pid for report in log.reports for killed in report.victims]
    assert victims == [6295, 6483, 6483]
    kills = find_kills(Snapshot(pods=pods_c("pending-resize")), EventList(), [log])
    assert {kill.pod: kill.freed_bytes for kill in kills} == {"be-a": 614876 * 1024, "bu-over": 512604 * 1024}
    assert [len(kill.report.processes) for kill in kills if kill.report is not None] == [1, 1]


# --- paths


@pytest.mark.parametrize(
    ("path", "uid", "container"),
    [
        (
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice/crio-{}.scope",
            "1-2",
            True,
        ),
        ("/kubepods.slice/kubepods-pod1_2.slice/cri-containerd-{}.scope/own/deep", "1-2", True),
        ("/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod1_2.slice", "1-2", False),
        ("/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod1_2.slice/docker-{}.scope", "1-2", True),
        ("/docker/{}/kubelet/kubepods/burstable/pod1-2/{}", "1-2", True),
        ("/lxc.payload.a-lxc/kubepods/besteffort/pod1-2/crio-{}", "1-2", True),
        ("/kubepods/pod1-2/{}", "1-2", True),
        ("/kubepods/pod1-2", "1-2", False),
        ("/system.slice/a.service", "", False),
        ("/kubepods.slice", "", False),
        ("", "", False),
    ],
)
def test_paths_of_every_driver_and_runtime(path: str, uid: str, *, container: bool) -> None:
    digest = "0123456789abcdef" * 4
    found = pod_cgroup(path.replace("{}", digest))
    if not uid:
        assert found is None
        return
    assert found is not None
    assert (found.pod_uid, found.container_id) == (uid, digest if container else "")
    qos = next((one for one in ("burstable", "besteffort") if one in path), "guaranteed")
    assert found.qos.value.lower() == qos


@pytest.mark.parametrize(
    ("path", "level"),
    [
        ("/", PathLevel.ABOVE),
        ("/docker/abc", PathLevel.ABOVE),
        ("/docker/abc/kubelet/kubepods", PathLevel.PODS),
        ("/kubelet.slice/kubelet-kubepods.slice", PathLevel.PODS),
        ("/kubepods.slice/kubepods-burstable.slice", PathLevel.QOS_CLASS),
        ("/docker/abc/kubelet/kubepods/besteffort", PathLevel.QOS_CLASS),
        ("/system.slice", PathLevel.OTHER),
    ],
)
def test_levels(path: str, level: PathLevel) -> None:
    assert path_level(path, "/docker/abc/kubelet/kubepods/besteffort/pod1/0123456789ab") is level


@given(st.text(max_size=80))
def test_any_path(path: str) -> None:
    pod_cgroup(path)
    path_level(path, path)


def test_recorded_paths_are_those_that_are_predicted() -> None:
    for run in RUNS:
        snapshots = recorded_run(run)["before"].get("snapshots") or [recorded_run(run)["before"]["pods"]]
        for snapshot in snapshots:
            for found in snapshot.values():
                for container in found["containers"]:
                    for process in container["processes"]:
                        cgroup = pod_cgroup(process["cgroup"].removeprefix("0::"))
                        assert cgroup is not None
                        assert cgroup.pod_uid == found["pod"]["metadata"]["uid"]
                        assert cgroup.container_id in process["cgroup"]
                        assert cgroup.level is PathLevel.CONTAINER


def test_without_a_limit_all_pods_or_the_node_were_full() -> None:
    kill = only(pod(reason="OOMKilled", limits={}), of_nodes=False)
    assert mechanism_sentence(kill) == "killed by the kernel at the limit of all pods or on a full node"


def test_usage_below_a_request_is_no_excess() -> None:
    message = EVICTED + USED.format("a", "60Mi", "64Mi")
    kill = only(pod(exit_code=143, status={"reason": "Evicted", "message": message}, uid="u"))
    assert "none of its containers was above its request" in " ".join(detail_lines(kill))
