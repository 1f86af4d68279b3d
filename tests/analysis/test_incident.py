"""What a report is made of: the timeline, deaths of one kind as one, and what is left out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec import structs

from kubectl_qos.analysis import incident
from kubectl_qos.analysis.incident import Incident, IncidentSubject
from kubectl_qos.k8s.events import Event, EventList
from kubectl_qos.k8s.objects import NodeObject, Pod, convert
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.k8s.usage import ContainerUsage, PodUsage
from kubectl_qos.present.page import Grid, Heading, Paragraph
from kubectl_qos.present.report import (
    TimelineEntry,
    blocks,
    others_sentence,
    prevention_sentence,
    summary,
    timeline,
)
from kubectl_qos.qos.killers import Mechanism
from kubectl_qos.qos.kills.analyze import Kill, find_kills
from kubectl_qos.qos.kills.evidence import Diagnosis, Evidence, Fact
from kubectl_qos.qos.kills.report import Constraint, Killed, OomReport, OomTask
from kubectl_qos.qos.reason import Confidence
from tests.cluster.cluster_objects import node as node_object
from tests.cluster.cluster_objects import pod as pod_object

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def time(hour: int, minute: int = 0) -> str:
    return f"2026-11-20T{hour:02}:{minute:02}:00Z"


def a_pod(name: str = "web-7f-x", **status: Any) -> Pod:
    raw = pod_object(name)
    raw["metadata"] |= {"creationTimestamp": time(9), "labels": {"pod-template-hash": "7f"}}
    raw["metadata"] |= {"ownerReferences": [{"kind": "ReplicaSet", "name": "web-7f", "controller": True}]}
    raw["status"] = {"phase": "Running", **status}
    return convert(raw, Pod)


def ended(hour: int, exit_code: int, reason: str) -> dict[str, Any]:
    return {"terminated": {"exitCode": exit_code, "reason": reason, "finishedAt": time(hour)}}


def an_event(kind: str, name: str, reason: str, message: str, hour: int, count: int = 1) -> Event:
    involved = {"kind": kind, "name": name, **({"namespace": "shop"} if kind != "Node" else {})}
    raw = {"involvedObject": involved, "reason": reason, "message": message, "count": count}
    return convert({**raw, "lastTimestamp": time(hour)}, Event)


@pytest.mark.parametrize("names", [("a",), ("a", "b")])
def test_an_eviction_is_one_line_of_the_timeline(names: tuple[str, ...]) -> None:
    """The ends of its containers, also those that the kubelet made up, are no other lines."""
    target = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
    target |= {"message": "The node was low on resource: memory. ", "lastTransitionTime": time(11)}
    unknown = {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown", "finishedAt": None}}
    for end in (unknown, ended(11, 143, "Error")):
        last = {"lastState": unknown} if end is unknown else {}
        statuses = [{"name": name, "state": end, **last} for name in names]
        pod = a_pod(reason="Evicted", conditions=[target], containerStatuses=statuses)
        lines = [one for one in entries(pod) if one.what != "rollout"]
        assert [(one.what, one.time, one.times) for one in lines] == [("evicted", time(11), 1)]
        without = timeline(incident_of((), snapshot=Snapshot(pods=(pod,))))
        assert any(one.what == "ended" for one in without) is (end is not unknown), "evicted long before"


@pytest.mark.parametrize("zero", ["0001-01-01T00:00:00Z", "garbage", ""])
def test_the_zero_time_of_go_and_no_time_are_unknown(zero: str) -> None:
    """A runtime that knows no time writes year 1: no minute is before that."""
    end = {"terminated": {"exitCode": 137, "reason": "OOMKilled", "startedAt": zero, "finishedAt": zero}}
    pod = a_pod(containerStatuses=[{"name": "a", "restartCount": 1, "lastState": end}])
    snapshot = Snapshot(pods=(pod,))
    kills = find_kills(snapshot, EventList())
    assert [kill.time for kill in kills] == [""]
    about = incident_of(kills, snapshot=snapshot)
    assert [(death.kill.time, death.state_time) for death in about.deaths] == [("", "")]


def incident_of(kills: Iterable[Kill] = (), **fields: Any) -> Incident:
    known = {"snapshot": Snapshot(), "event_list": EventList(), "since": None, **fields}
    about = IncidentSubject("Node", "", "worker-1")
    return Incident(about=about, source="x", now=NOW, scope=Scope(), kills=tuple(kills), **known)


def entries(
    pod: Pod, events: tuple[Event, ...] = (), since: datetime | None = None, conditions: tuple[Any, ...] = ()
) -> tuple[TimelineEntry, ...]:
    raw = node_object()
    raw["status"]["conditions"] = list(conditions)
    node, event_list = convert(raw, NodeObject), EventList(events)
    snapshot = Snapshot(pods=(pod,), nodes={node.name: node})
    kills = find_kills(snapshot, event_list)
    return timeline(incident_of(kills, snapshot=snapshot, event_list=event_list, since=since))


def status(**states: Any) -> dict[str, Any]:
    return {"name": "app", "restartCount": 1, **states}


def test_all_kinds_of_entries_in_order() -> None:
    pod = a_pod(
        containerStatuses=[
            status(state=ended(11, 3, "Error"), lastState=ended(10, 137, "OOMKilled")),
            {**status(state=ended(11, 0, "Completed")), "name": "done"},
        ],
        conditions=[{"type": "PodResizePending", "status": "True", "lastTransitionTime": time(8)}],
    )
    events = (
        an_event("Deployment", "web", "ScalingReplicaSet", "Scaled up", 7),
        an_event("Deployment", "other", "ScalingReplicaSet", "Scaled up", 7),
        an_event("Node", "worker-1", "SystemOOM", "victim", 6, 2),
        an_event("Node", "worker-1", "SystemOOM", "victim", 5),
        an_event("Pod", "web-7f-x", "Started", "no matter of memory", 5),
    )
    pressure = {"type": "MemoryPressure", "status": "False", "lastTransitionTime": time(4), "message": "fine"}
    later = {"type": "Ready", "status": "True", "lastTransitionTime": time(23)}
    found = entries(pod, events, NOW - timedelta(days=1), (pressure, later))
    assert [(one.time, one.what, one.times) for one in found] == [
        (time(4), "MemoryPressure", 1),
        (time(6), "SystemOOM", 3),
        (time(7), "ScalingReplicaSet", 1),
        (time(8), "resize", 1),
        (time(9), "rollout", 1),
        (time(10), "killed", 1),
        (time(11), "ended", 1),
        (time(23), "Ready", 1),
    ]
    assert found[0].message == "MemoryPressure is False: fine"
    assert (found[4].about, found[4].message) == (
        "deployment shop/web",
        "replicaset web-7f begins, 1 pod here",
    )
    assert found[5].about == "pod shop/web-7f-x, container app on worker-1"
    assert found[6].message == "it ended with exit code 3 and Error"


def test_what_is_older_is_left_out_and_what_has_no_time_comes_last() -> None:
    pod = a_pod(
        containerStatuses=[status(state=ended(11, 3, "Error"))],
        conditions=[{"type": "PodResizePending", "status": "True"}],
    )
    found = entries(pod, since=NOW - timedelta(hours=2))
    assert [one.what for one in found] == ["ended", "resize"]


def test_an_eviction_is_listed_once() -> None:
    pod = a_pod(phase="Failed", reason="Evicted", message="The node was low on resource: memory.")
    event = an_event("Pod", "web-7f-x", "Evicted", "The node was low on resource: memory.", 11)
    assert [one.what for one in entries(pod, (event,))].count("evicted") == 1
    assert "Evicted" not in [one.what for one in entries(pod, (event,))]


def a_kill(minute: int, mechanism: str, container: str = "app") -> Kill:
    diagnosis = Diagnosis(Mechanism(mechanism), Confidence.LIKELY, ())
    return Kill(diagnosis=diagnosis, time=time(11, minute), namespace="shop", pod="web", container=container)


def test_deaths_of_one_container_in_one_way_are_one() -> None:
    kills = [a_kill(minute, "container limit") for minute in (9, 8, 7)]
    kills += [a_kill(6, Mechanism.SIGKILL), a_kill(5, "container limit", "log")]
    found = incident_of(kills).deaths
    assert [(one.kill, one.earlier) for one in found] == [
        (kills[0], (kills[1], kills[2])),
        (kills[3], ()),
        (kills[4], ()),
    ]


def test_a_pod_that_only_the_kernel_names_is_one_victim() -> None:
    kill = structs.replace(a_kill(9, "pod limit"), namespace="", pod="", container="", pod_uid="u-1")
    kills = [a_kill(9, "node"), *(structs.replace(kill, container_id=str(number)) for number in range(7))]
    assert "Victims: a pod, uid u-1 7 times, shop/web." in [*summary(incident_of(kills))]


def test_the_past_is_read_of_the_newest_deaths_a_minute_before_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incident, "MOST_STATES", 2)
    monkeypatch.setattr(incident, "MOST_DEATHS", 3)
    kills = [a_kill(minute, "node", f"c{minute}") for minute in (9, 8, 7, 6)]
    read: list[datetime] = []
    assert len(incident_of(kills, past=read.append).deaths) == 3
    assert [f"{one:%H:%M}" for one in read] == ["11:08", "11:07"]


@pytest.mark.parametrize(("prefix", "is_said"), [("", False), ("(combined from similar events): ", True)])
def test_kills_that_an_event_combines_are_counted(prefix: str, *, is_said: bool) -> None:
    message = f"{prefix}System OOM encountered, victim process: a, pid: 7"
    kills = find_kills(Snapshot(), EventList((an_event("Node", "worker-1", "SystemOOM", message, 5, 16),)))
    said = "There were more: one event stands for 16 of them."
    assert (said in [*summary(incident_of(kills))]) == is_said


@pytest.mark.parametrize(
    ("pods", "nodes", "mechanism", "words"),
    [
        ([], {}, "node", "the pod no longer runs, and its node's usage at that time is unknown"),
        (["Failed"], {}, "node", "the pod no longer runs, and its node's usage at that time is"),
        (["Running"], {"worker-1"}, "node", "memory usage is unknown"),
        (["Running"], {}, "node", "memory usage is unknown"),
        (["Running"], {"worker-1"}, "container limit", "memory usage is unknown"),
    ],
)
def test_why_nothing_would_have_helped(pods: list[str], nodes: set[str], mechanism: str, words: str) -> None:
    objects = tuple(a_pod("web", phase=phase) for phase in pods)
    sized = {name: convert(node_object(name), NodeObject) for name in nodes}
    snapshot = Snapshot(pods=objects, nodes=sized)
    kill = structs.replace(a_kill(9, mechanism), node="worker-1")
    [death] = incident_of([kill], snapshot=snapshot).deaths
    assert words in prevention_sentence(death)
    assert ("no longer runs" in prevention_sentence(death)) == (pods != ["Running"])
    elsewhere = structs.replace(death.kill, node="")
    if not pods:
        assert prevention_sentence(replace(death, kill=elsewhere)).endswith("the pod's node is unknown")
    if pods == ["Running"]:
        usage = {("shop", "web"): PodUsage.of_containers({"app": ContainerUsage(1 << 20)})}
        measured = replace(snapshot, usage=usage)
        [death] = incident_of([a_kill(9, mechanism)], snapshot=measured).deaths
        is_own = mechanism == "container limit"
        why = "nothing would kill it that way now" if is_own else "" if nodes else "the memory capacity of"
        assert why in prevention_sentence(death)


def test_a_log_without_the_list_of_pods_names_the_process() -> None:
    """The page said that the pod no longer runs, and that numbers follow, where there are none."""
    report = OomReport(constraint=Constraint.NONE, victims=(Killed(7, "uwsgi"),))
    kill = structs.replace(a_kill(9, "node"), namespace="", pod="", pod_uid="u-1", report=report)
    page = incident_of([kill])
    assert "Victims: a pod, uid u-1 (uwsgi)." in [*summary(page)]
    assert "without its pod: kubectl get pods,nodes" in prevention_sentence(page.deaths[0])
    assert others_sentence(page.deaths[0]).endswith("; their order is unknown")


def test_a_large_process_outside_pods_is_limited_before_a_pod_is_changed() -> None:
    both = (OomTask(7, "web", rss=100, adj=1000), OomTask(8, "hog", rss=512, adj=-1000))
    for tasks, is_outside in ((both, True), (both[:1], False)):
        report = OomReport(constraint=Constraint.NONE, tasks=tasks, is_table_whole=True)
        kill = structs.replace(a_kill(9, "node"), node="worker-1", report=report)
        [death] = incident_of([kill]).deaths
        text = prevention_sentence(death)
        assert text.startswith("a memory limit for hog (8), which held 2Mi outside pods") is is_outside
        assert ("systemReserved" in text) is is_outside
        held = "hog, outside pods, held the most memory: 2Mi." if is_outside else "web held the most memory: "
        assert any(held in sentence for sentence in summary(incident_of([kill])))


def test_a_victim_that_held_the_memory_itself_needs_a_limit() -> None:
    tasks, nodes = (OomTask(7, "web", rss=500, adj=1000),), {"worker-1": convert(node_object(), NodeObject)}
    report = OomReport(
        constraint=Constraint.NONE, tasks=tasks, victims=(Killed(7, "web"),), is_table_whole=True
    )
    kill = structs.replace(a_kill(9, "node"), node="worker-1", report=report)
    for limit, is_said in (("", True), ("64Mi", False)):
        pods = (convert(pod_object("web", limit=limit), Pod),)
        [death] = incident_of([kill], snapshot=Snapshot(pods=pods, nodes=nodes)).deaths
        assert prevention_sentence(death).startswith("a memory limit: it had none, and held 2Mi") is is_said


def test_the_requests_that_an_eviction_names_are_not_contradicted() -> None:
    above = Evidence(Fact.EXCESS, {"above": {"app": (2, 1)}})
    kill = a_kill(9, "kubelet eviction")
    kill = structs.replace(
        kill, diagnosis=structs.replace(kill.diagnosis, confidence=Confidence.CERTAIN, evidence=(above,))
    )
    [death] = incident_of([kill]).deaths
    assert prevention_sentence(death) == ""


def test_a_long_timeline_has_the_like_deaths_of_a_pod_in_one_row() -> None:
    def rows(kills: int) -> list[list[str]]:
        loop = [a_kill(minute, "container limit", f"c{minute}") for minute in range(kills)]
        page = blocks(incident_of([*loop, a_kill(59, "node")]), "1")
        grid = next(block for block in page if isinstance(block, Grid))
        return [[str(cell) for cell in row] for row in grid.rows]

    assert len(rows(20)) == 21
    first, node = rows(50)
    assert first[:3] == [time(11), "killed (50 times)", f"pod shop/web, last at {time(11, 49)}"]
    assert "ran out of memory" in node[3]


def test_old_usage_is_not_the_present() -> None:
    def page(minutes: int) -> tuple[str, str]:
        at = f"{NOW - timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%SZ}"
        usage = {("shop", "web"): PodUsage.of_containers({"app": ContainerUsage(60 << 20)}, timestamp=at)}
        pod = pod_object("web", limit="64Mi")
        nodes = {"worker-1": convert(node_object("worker-1"), NodeObject)}
        snapshot = Snapshot(pods=(convert(pod, Pod),), nodes=nodes, usage=usage)
        titles = [
            block.text for block in blocks(incident_of(snapshot=snapshot), "1") if isinstance(block, Heading)
        ]
        return titles[2], [*summary(incident_of(snapshot=snapshot))][-1]

    assert page(1)[0] == "The situation now"
    assert page(1)[1].startswith("shop/web")
    title, said = page(60)
    assert title == f"The situation at {time(11)}"
    assert said.startswith(f"By the usage of {time(11)}, shop/web")


def test_that_usage_is_unknown_is_said_once() -> None:
    snapshot = Snapshot(pods=(a_pod("web", phase="Running"),))
    kills = [a_kill(minute, "node", f"c{minute}") for minute in (9, 8)]
    page = blocks(incident_of(kills, snapshot=snapshot), "1")
    helps = [block.text for block in page if isinstance(block, Paragraph) and "helped" in block.lead]
    assert helps[0].startswith("no change is offered: memory usage is unknown")
    assert helps[1:] == ["the same as for death 1."]


def test_a_time_without_year_and_zone_is_not_shown_as_one_with_them() -> None:
    guessed = OomReport("2026-11-20T11:00:00", node="worker-1", year_is_guessed=True)
    diagnosis = Diagnosis(Mechanism.KERNEL, Confidence.CERTAIN, ())
    kill = Kill(
        diagnosis=diagnosis, time=guessed.time, time_is_estimated=True, node="worker-1", report=guessed
    )
    page = [*blocks(incident_of([kill]), "1")]
    (table,) = [block for block in page if isinstance(block, Grid) and block.headers[0] == "Time"]
    ((shown, _, _, how),) = table.rows
    assert shown == "2026-11-20T11:00:00"
    assert "the log has no year: 2026 is a guess" in how


def test_each_killed_pod_has_its_own_limit() -> None:
    pods = []
    for name, limit in (("a", "64Mi"), ("b", "128Mi")):
        raw = pod_object(name, limit=limit)
        raw["status"] = {"containerStatuses": [{"name": "app", "lastState": ended(11, 137, "OOMKilled")}]}
        pods.append(convert(raw, Pod))
    kills = find_kills(Snapshot(pods=tuple(pods)), EventList())
    limits = {
        kill.pod: evidence.details["limit_bytes"] >> 20
        for kill in kills
        for evidence in kill.diagnosis.evidence
        if evidence.fact is Fact.OWN_LIMIT
    }
    assert limits == {"a": 64, "b": 128}
