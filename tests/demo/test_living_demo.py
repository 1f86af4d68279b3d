"""The demo follows its clock: memory creeps, containers die, rollouts happen, and writes take effect."""

import re
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise
from operator import attrgetter
from typing import Any

import pytest
from msgspec import structs

from kubectl_qos.analysis.deaths import deaths_on_node, deaths_on_nodes
from kubectl_qos.analysis.group_table import bad_conditions
from kubectl_qos.analysis.trends import Trends
from kubectl_qos.cluster.files import DEMO_TIME, DemoSource
from kubectl_qos.demo.script import (
    BACKOFF_SECONDS,
    PRESSURE_SECONDS,
    RESTART_AT,
    RESTARTED,
    SAMPLE_SECONDS,
)
from kubectl_qos.demo.source import running_clock
from kubectl_qos.demo.world import RESIZE_SECONDS
from kubectl_qos.edit.apply_state import ConflictError
from kubectl_qos.edit.edits import Edit
from kubectl_qos.edit.history import EntryState
from kubectl_qos.edit.status import Stage
from kubectl_qos.errors import ApiError, QosError
from kubectl_qos.k8s.allocation import is_resizing
from kubectl_qos.k8s.events import NODE_EVENTS_NAMESPACE, Event, EventList
from kubectl_qos.k8s.objects import convert
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.present.explanation import explain_pod
from kubectl_qos.present.kills import death_line, deaths_line
from kubectl_qos.qos.kills.analyze import find_kills
from kubectl_qos.qos.kills.evidence import memory_limits
from kubectl_qos.qos.kills.new_kills import kills_since, with_seen, without_repeats
from kubectl_qos.qos.reason import Confidence
from kubectl_qos.qos.restart import oom_loops
from kubectl_qos.qos.simulation.next_death import next_deaths
from kubectl_qos.qos.simulation.node_state import state_of_node
from kubectl_qos.tui.screens.fix_dialog import suggestion
from kubectl_qos.tui.view import title_words
from kubectl_qos.tui.view_model import build_view_model
from tests.demo.living import FULL_AT, IMPORTER, NODE_FULL_AT, THUMBS_EVICTED_AT, Stepped, limit, request

PLACE = attrgetter("namespace", "name")


def test_the_first_moment_is_the_frozen_demo() -> None:
    demo, frozen = Stepped(), DemoSource().snapshot(Scope())
    assert sorted(demo.snapshot(Scope()).pods, key=PLACE) == sorted(frozen.pods, key=PLACE)
    assert demo.snapshot(Scope()).usage == frozen.usage
    said = [sorted(event.message for event in one.event_list(None).events) for one in (demo, DemoSource())]
    assert said[0] == said[1]
    assert not any(map(is_resizing, demo.pods("")))


def test_until_the_first_moment_is_shown_nothing_of_it_is_loaded() -> None:
    code = (
        "import sys; from kubectl_qos.demo.source import LivingDemo;"
        "from kubectl_qos.k8s.snapshot import Scope;"
        "LivingDemo().follow(Scope()).next(); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "kubectl_qos.demo.source" in loaded
    assert not loaded & {
        "kubectl_qos.demo.script",
        "kubectl_qos.demo.api",
        "kubectl_qos.cluster.live",
        "urllib3",
    }


def test_memory_creeps_and_makes_a_trend() -> None:
    demo, trends = Stepped(), Trends()
    for _ in range(6):
        trends.add(demo.snapshot(Scope()).usage)
        demo.later(SAMPLE_SECONDS)
    seen = trends.of(("data", IMPORTER))
    assert len(seen) == 6
    steps = {after - before for before, after in pairwise(seen)}
    assert steps == {70 * SAMPLE_SECONDS}


def test_the_headline_foretells_each_death_for_twenty_seconds() -> None:
    """Whoever dies was named first of all nodes for so long, within the minute and a half before.

    Of kubelet and kernel, the one that killed was named first, or as the one that may come before.
    """
    demo, trends, last = Stepped(), Trends(), None
    named: dict[str, list[int]] = {}
    killers: dict[str, tuple[str, ...]] = {}
    for second in range(NODE_FULL_AT):
        snapshot = demo.later(int(second > 0))
        if snapshot is not last:
            last, seen = snapshot, trends.with_rates(snapshot)
            (first, *_) = deaths_on_nodes(seen, sorted(seen.nodes), only_next=True).rows
        named.setdefault(first.death.key[1], []).append(second)
        or_earlier = filter(None, (first.death, first.death.earlier))
        killers[first.death.key[1]] = tuple(death.mechanism for death in or_earlier)
    demo.later(1)
    kills = find_kills(demo.later(0), demo.event_list(None), demo.kernel_logs(), outside_pods=False)
    began = f"{DEMO_TIME:%Y-%m-%dT%H:%M:%S}"
    deaths = [kill for kill in kills if kill.time >= began]
    assert len(deaths) == 5
    for kill in deaths:
        died = (datetime.fromisoformat(kill.time) - DEMO_TIME).total_seconds()
        before = [second for second in named[kill.pod] if died - 90 <= second < died]
        assert len(before) >= 20, (kill.pod, died)
    on_nodes = {"thumbs-28934-d5k8p": "kubepods limit", "warehouse-0": "node"}
    assert {pod: killers[pod] for pod in on_nodes} == {
        pod: (kernel, "kubelet eviction") for pod, kernel in on_nodes.items()
    }


def test_every_death_is_seen_once_and_keeps_what_its_status_said() -> None:
    demo, view_model, lines = Stepped(), None, list[str]()
    for _ in range(0, NODE_FULL_AT + SAMPLE_SECONDS, SAMPLE_SECONDS):
        newer = build_view_model(demo.snapshot(Scope()), Scope(), demo.now(), before=view_model)
        newer.find_kills(view_model, demo.kernel_logs, partial(demo.event_list, NODE_EVENTS_NAMESPACE))
        more = len(newer.kills) - (len(view_model.kills) if view_model is not None else 0)
        lines += map(death_line, newer.kills[:more])
        view_model = newer
        demo.later(SAMPLE_SECONDS)
    of_pod = "killed by the kernel at its own limit"
    assert lines == [
        f"12:00:41 data/importer-5f7b9c-2vtxk:c {of_pod}",
        f"12:02:03 shop/promo-7c4b-l9dk2:c {of_pod}",
        f"12:03:34 data/importer-5f7b9c-2vtxk:c {of_pod}",
        "12:03:59 batch/thumbs-28934-d5k8p:c evicted by the kubelet under memory pressure; no OOM",
        "12:05:21 data/warehouse-0:c killed by the kernel because the node ran out of memory",
    ]
    assert view_model is not None
    assert deaths_line(view_model.kills[:1]) == "12:05:21 data/warehouse-0:c kernel: node full"
    two = "2 deaths: warehouse-0 kernel: node full, thumbs-28934-d5k8p kubelet evicts"
    assert deaths_line(view_model.kills[:2]) == two
    assert "5 deaths in 5m" in title_words("demo", view_model, demo.now())
    snapshot, logs = demo.snapshot(Scope()), demo.kernel_logs()
    of_importer = [kill for kill in find_kills(snapshot, EventList(), logs) if kill.pod == IMPORTER]
    assert [kill.exit_code for kill in of_importer] == [137, None], "its status has the last end alone"
    assert [kill.exit_code for kill in with_seen(of_importer, view_model.kills)] == [137, 137]


def test_the_death_of_a_process_of_the_node_is_seen_by_its_new_event() -> None:
    def killed(name: str, at: str) -> Event:
        message = f"System OOM encountered, victim process: {name}, pid: 7"
        node = {"kind": "Node", "name": "worker-2"}
        raw = {"reason": "SystemOOM", "message": message, "lastTimestamp": at, "involvedObject": node}
        return convert(raw, Event)

    times = "2026-11-20T12:00:10Z", "2026-11-20T12:00:30Z"
    before, snapshot = (
        replace(DemoSource().snapshot(Scope()), shortages={"worker-2": time}) for time in times
    )
    events = EventList(tuple(map(killed, ("sshd", "containerd"), times)))
    (kill,) = kills_since(before, snapshot, lambda: (), lambda: events)
    reason = "killed by the kernel because the node ran out of memory"
    assert death_line(kill) == f"12:00:30 containerd (a process of worker-2) {reason}"
    assert kills_since(snapshot, snapshot, lambda: (), lambda: events) == []
    ended = structs.replace(kill, namespace="shop", pod="web-0", container="web", report=None)
    assert without_repeats([kill], [structs.replace(ended, time="2026-11-20T12:00:33Z")]) == [], "told once"
    assert without_repeats([kill], [structs.replace(ended, time="2026-11-20T12:03:33Z")]) == [kill]
    assert without_repeats([kill], [structs.replace(ended, node="worker-1")]) == [kill]


def test_while_a_container_restarts_the_fix_is_against_a_death_of_the_axis() -> None:
    demo = Stepped()
    demo.until_it_waits()
    snapshot = demo.later(0)
    axis = deaths_on_node(snapshot, "worker-2").deaths
    assert axis[0].key[1] == IMPORTER, "it will be killed at the same limit again"
    fix, *_ = suggestion(snapshot, "worker-2").fixes
    assert (fix.death.key, fix.death.mechanism) == (axis[0].key, axis[0].mechanism)


def test_explain_says_of_a_death_what_kills_says() -> None:
    demo = Stepped(FULL_AT + SAMPLE_SECONDS)
    explained = explain_pod(demo.pod(), demo.snapshot(Scope()), demo.now(), logs=demo.kernel_logs())
    (history,) = (section for section in explained.sections if section.title == "History")
    assert [line.note for line in history.lines] == [
        "killed by the kernel at its own limit (the pod's memory limit)"
    ]


def test_between_two_samples_nothing_is_another_object() -> None:
    demo = Stepped(SAMPLE_SECONDS)
    before = demo.snapshot(Scope())
    assert demo.later(SAMPLE_SECONDS - 1) is before
    after = demo.later(1)
    assert after.usage is not before.usage
    assert all(one is other for one, other in zip(after.pods, before.pods, strict=True))


def test_a_container_dies_at_its_limit_and_the_kernel_says_why() -> None:
    demo = Stepped(FULL_AT - 1)
    assert (demo.restarts(), list(demo.kills())) == (0, [])
    nearest = memory_limits(demo.pod(), "c", demo.snapshot(Scope()).setup("worker-2")).nearest
    demo.later(1)
    (status,) = demo.pod().status.container_statuses or ()
    assert status.restart_count == 1
    assert status.last_state is not None
    assert status.last_state.terminated is not None
    assert (status.last_state.terminated.reason, status.last_state.terminated.exit_code) == ("OOMKilled", 137)
    (kill,) = demo.kills()
    assert (kill.diagnosis.confidence, kill.diagnosis.mechanism) == (Confidence.CERTAIN, nearest)
    assert (kill.container, kill.node, kill.time) == ("c", "worker-2", "2026-11-20T12:00:41Z")
    assert kill.report is not None
    assert kill.freed_bytes is not None
    assert 0.95 < kill.freed_bytes / 123456789 <= 1
    assert "Started" in {event.reason for event in demo.events(demo.pod())}
    demo.later(SAMPLE_SECONDS)
    assert demo.used() < 107 << 20


def test_a_container_says_what_it_used_and_has_no_last_words() -> None:
    demo = Stepped(FULL_AT)
    first, *others = demo.log(demo.pod(), "c", is_previous=True).splitlines()
    assert first == "2026-11-17T12:00:00Z started, memory limit 123456789"
    assert len(others) == 7
    assert all("items done, heap" in line for line in others)
    assert others[-1].startswith("2026-11-20T12:00:31Z "), "it is killed, and says nothing of it"
    assert others[-1].endswith(", heap 113Mi")
    demo.apply(demo.to("Pod", "data", IMPORTER, limit("192Mi")))
    demo.later(60)
    assert demo.log(demo.pod(), "c", is_previous=True).splitlines() == [first, *others], "that run had less"
    assert " memory limit 192Mi\n" in demo.log(demo.pod(), "c", is_previous=False)
    with pytest.raises(QosError, match='previous terminated container "c" in pod'):
        Stepped(1).log(demo.pod(), "c", is_previous=True)


def test_its_nodes_can_be_read() -> None:
    assert Stepped().raw_node("worker-2")["status"] == DemoSource().raw_node("worker-2")["status"]
    for source in (Stepped(), DemoSource()):
        with pytest.raises(QosError, match="worker-9"):
            source.raw_node("worker-9")


def test_it_goes_on_and_the_log_keeps_what_the_status_forgets() -> None:
    demo = Stepped(650)
    assert demo.restarts() == 4
    assert [kill.report is not None for kill in demo.kills()] == [True] * 4
    assert len({kill.container_id for kill in demo.kills()}) == 4


def test_the_kubelet_waits_longer_before_each_start() -> None:
    """Twice as long each time, the container's memory being free meanwhile."""
    demo = Stepped(FULL_AT)
    assert demo.restarts() == 1, "the first start is at once"
    demo.until_it_waits()
    (loop,) = oom_loops(demo.pod())
    assert (loop.restarts, loop.reason) == (1, "CrashLoopBackOff")
    demo.later(SAMPLE_SECONDS)
    assert demo.snapshot(Scope()).usage_of(demo.pod()) is None
    demo.later(BACKOFF_SECONDS - SAMPLE_SECONDS - 1)
    assert demo.restarts() == 1
    demo.later(1)
    assert (demo.restarts(), oom_loops(demo.pod())) == (2, ())
    second = demo.until_it_waits()
    demo.later(2 * BACKOFF_SECONDS - 1)
    assert (demo.restarts(), demo.seconds) == (2, second + 2 * BACKOFF_SECONDS - 1)
    demo.later(1)
    assert demo.restarts() == 3


@pytest.mark.parametrize(("version", "ends"), [("v1.36.2", False), ("v1.36.4", True)])
def test_a_higher_limit_in_place_ends_a_loop_on_new_kubelets_alone(version: str, ends: bool) -> None:
    """kubernetes#138760: an old one starts it with the new limit, below the one that its pod had."""
    demo = Stepped(FULL_AT).with_kubelets(version)
    demo.until_it_waits()
    demo.apply(demo.to("Pod", "data", IMPORTER, limit("160Mi")))
    demo.later(BACKOFF_SECONDS)
    (status,) = demo.pod().status.container_statuses or ()
    assert status.resources is not None
    assert status.resources.limits is not None
    assert str(status.resources.limits["memory"]) == "160Mi"
    before = demo.restarts()
    demo.later(300)
    assert (demo.restarts() == before) is ends
    if not ends:
        changed = demo.apply(demo.to("Pod", "data", IMPORTER, limit("170Mi")))
        demo.later(1)
        demo.later(RESIZE_SECONDS)
        assert demo.progress(changed).stage is Stage.DONE
        before = demo.restarts()
        demo.later(300)
        assert demo.restarts() == before, "changed while it runs, the limit of its pod follows"


@pytest.mark.parametrize(
    ("node", "before", "mechanism", "key", "reasons"),
    [
        (
            "worker-1",
            THUMBS_EVICTED_AT - 1,
            "kubelet eviction",
            ("batch", "thumbs-28934-d5k8p"),
            {"Evicted", "Killing", "EvictionThresholdMet", "NodeHasInsufficientMemory"},
        ),
        ("worker-3", NODE_FULL_AT - 1, "node", ("data", "warehouse-0"), {"SystemOOM", "Started"}),
    ],
)
def test_on_a_node_dies_whom_it_has_predicted(
    node: str, before: int, mechanism: str, key: tuple[str, str], reasons: set[str]
) -> None:
    demo = Stepped(before)
    assert demo.kills(key[1]) == []
    deaths = next_deaths(state_of_node(demo.snapshot(Scope()), node))
    predicted = next(death for death in deaths if death.mechanism == mechanism)
    assert (predicted.key, predicted.distance_bytes < 3 << 30) == (key, True)
    demo.later(1)
    (kill,) = demo.kills(key[1])
    assert (kill.diagnosis.mechanism, kill.diagnosis.confidence) == (mechanism, Confidence.CERTAIN)
    assert (kill.namespace, kill.pod, kill.node, kill.container) == (*key, node, predicted.container or "c")
    if mechanism == "node":
        assert kill.report is not None
        assert kill.report.invoker is not None
        assert kill.report.invoker.comm == "restic"
        assert kill.choice is not None
        assert kill.freed_bytes == pytest.approx(predicted.frees_bytes, rel=0.02)
    new = {event.reason for event in demo.event_list(None).events if event.last == kill.time}
    assert new >= reasons


def test_a_pod_that_is_not_restarted_has_failed_once_its_node_was_full() -> None:
    demo = Stepped(1)
    raw = demo._advanced().world.api.get("Pod", "data", "warehouse-0")
    assert raw is not None
    raw["spec"]["restartPolicy"] = "Never"
    demo._advanced().world.api.save(raw)
    demo.later(NODE_FULL_AT + SAMPLE_SECONDS)
    pod = demo.pod("warehouse-0")
    assert (pod.status.phase, demo.snapshot(Scope()).usage_of(pod)) == ("Failed", None)


def test_an_evicted_pod_and_its_node_say_why() -> None:
    demo = Stepped(THUMBS_EVICTED_AT)
    status = demo.pod("thumbs-28934-d5k8p").status
    assert (status.phase, status.reason) == ("Failed", "Evicted")
    said = re.fullmatch(
        r"The node was low on resource: memory. Threshold quantity: 100Mi, available: (\d+)Ki. Container c"
        r" was using \d+Ki, request is 0, has larger consumption of memory. ",
        status.message,
    )
    assert said is not None
    assert int(said[1]) < 100 << 10
    pressure = [bad_conditions(demo.snapshot(Scope()).nodes["worker-1"])]
    pressure.append(bad_conditions(demo.later(PRESSURE_SECONDS - 1).nodes["worker-1"]))
    pressure.append(bad_conditions(demo.later(1).nodes["worker-1"]))
    assert pressure == [("memory",), ("memory",), ()]
    assert demo.snapshot(Scope()).usage_of(demo.pod("thumbs-28934-d5k8p")) is None


def test_only_the_clock_decides_not_how_often_it_is_looked_at() -> None:
    jumped, walked = Stepped(400), Stepped()
    for _ in range(40):
        walked.later(10)
    assert walked.snapshot(Scope()) == jumped.snapshot(Scope())
    assert walked.kernel_logs() == jumped.kernel_logs()
    assert walked.event_list(None) == jumped.event_list(None)


def test_a_rollout_replaces_pods_one_by_one() -> None:
    demo = Stepped(RESTART_AT)
    _, namespace, name = RESTARTED
    before = {pod.name for pod in demo.pods("front-")}
    seen = []
    for _ in range(12):
        demo.later(1)
        seen.append(len({pod.name for pod in demo.pods("front-")} - before))
    assert set(seen) == {1, 2}
    assert sorted(seen) == seen
    raw = demo.raw(demo.find("Deployment", namespace, name))
    assert raw["status"]["updatedReplicas"] == raw["spec"]["replicas"] == 2
    new = demo.pods("front-")[0]
    assert {event.reason for event in demo.events(new)} >= {"Scheduled", "Started"}
    (owner,) = new.metadata.owner_references or ()
    assert demo.find("ReplicaSet", "shop", owner.name).containers == new.containers
    assert demo.used(new.name) > 0


def test_a_dry_run_changes_nothing() -> None:
    demo = Stepped(10)
    before = demo.raw(demo.pod())
    result = demo.writer().dry_run(demo.to("Pod", "data", IMPORTER, limit("160Mi")))
    assert result.stored == (limit("160Mi"),)
    assert demo.raw(demo.pod()) == before


def test_another_change_meanwhile_is_a_conflict() -> None:
    demo = Stepped(10)
    wanted = demo.to("Pod", "data", IMPORTER, limit("160Mi"))
    tried = demo.writer().dry_run(wanted)
    demo.apply(demo.to("Pod", "data", IMPORTER, limit("150Mi")))
    with pytest.raises(ConflictError, match='Operation cannot be fulfilled on pods "importer-') as caught:
        demo.writer().apply(tried, demo.history)
    assert "the object has been modified" in str(caught.value)


def test_the_quota_refuses_in_the_words_of_the_server() -> None:
    demo = Stepped()
    wanted = demo.to("Pod", "data", IMPORTER, request("4Gi"), limit("4Gi"))
    with pytest.raises(ApiError) as caught:
        demo.writer().dry_run(wanted)
    assert (caught.value.status, caught.value.reason) == (403, "Forbidden")
    assert 'pods "importer-5f7b9c-2vtxk" is forbidden: exceeded quota: memory, requested:' in str(
        caught.value
    )
    assert demo.related(demo.pod()).quotas[0].name == "memory"


def test_a_fix_in_place_is_carried_out_keeps_it_alive_and_is_undone() -> None:
    demo = Stepped(10)
    fix = demo.apply(demo.to("Pod", "data", IMPORTER, limit("160Mi")))
    assert demo.progress(fix).stage is Stage.WAITING
    demo.later(1)
    assert demo.progress(fix).stage is Stage.IN_PROGRESS
    assert is_resizing(demo.pod())
    demo.later(2)
    assert demo.progress(fix).stage is Stage.DONE
    assert "ResizeCompleted" in {event.reason for event in demo.events(demo.pod())}
    demo.later(600)
    assert demo.restarts() == 0
    undone = demo.undo(fix)
    demo.later(400)
    assert demo.progress(undone).stage is Stage.DONE
    assert demo.pod().containers[0].limits["memory"].value() == 123456789
    assert demo.restarts() > 0
    assert [entry.state for entry in demo.history.entries()] == [EntryState.DONE] * 2
    assert all(entry.at.startswith("2026-11-20T12:") for entry in demo.history.entries())


def test_a_limit_below_what_is_used_waits_until_less_is_used() -> None:
    demo = Stepped(1)
    demo.apply(demo.to("Pod", "data", IMPORTER, limit("160Mi")))
    demo.later(180)
    assert demo.used() > 120 << 20
    lower = demo.apply(demo.to("Pod", "data", IMPORTER, limit("118Mi")))
    demo.later(5)
    progress = demo.progress(lower)
    assert (progress.stage, progress.settled) == (Stage.ERROR, False)
    assert "below current usage" in progress.message
    demo.later(120)
    assert demo.progress(lower).stage is Stage.DONE


@pytest.mark.parametrize(
    ("kind", "namespace", "name", "edit"),
    [
        ("Deployment", "data", "importer", limit("160Mi")),
        ("StatefulSet", "shop", "search", limit("5Gi")),
        ("DaemonSet", "monitoring", "log-agent", limit("256Mi")),
    ],
)
def test_a_changed_template_rolls_out_and_back(kind: str, namespace: str, name: str, edit: Edit) -> None:
    demo = Stepped(3)
    before = {pod.metadata.uid for pod in demo.pods(f"{name}-")}
    change = demo.apply(demo.to(kind, namespace, name, edit))
    stages = set()
    for _ in range(30):
        stages.add(demo.progress(change).stage)
        demo.later(1)
    assert stages == {Stage.ROLLING, Stage.DONE}
    pods = demo.pods(f"{name}-")
    assert len(pods) == len(before)
    assert not {pod.metadata.uid for pod in pods} & before
    assert {one.limits.get("memory") for pod in pods for one in pod.containers if one.name == "c"} == {
        edit.quantity
    }
    undone = demo.undo(change)
    demo.later(30)
    assert demo.progress(undone).stage is Stage.DONE
    assert edit.quantity not in {
        one.limits.get("memory") for pod in demo.pods(f"{name}-") for one in pod.containers
    }


def test_a_limit_below_what_a_new_pod_begins_with_kills_it_at_once_and_again() -> None:
    demo = Stepped(3)
    demo.apply(demo.to("Deployment", "data", "importer", request("40Mi"), limit("50Mi")))
    demo.later(4)
    (pod,) = demo.pods("importer-")
    assert demo.restarts(pod.name) == 1
    demo.later(200)
    assert demo.restarts(pod.name) == 3


def test_a_rollout_that_the_quota_refuses_is_stuck_until_it_is_undone() -> None:
    demo = Stepped(3)
    change = demo.apply(demo.to("Deployment", "data", "importer", request("4Gi"), limit("4Gi")))
    demo.later(10)
    progress = demo.progress(change)
    assert (progress.stage, progress.settled) == (Stage.STUCK, False)
    assert "exceeded quota: memory" in progress.message
    assert demo.pod().name == IMPORTER
    undone = demo.undo(change)
    demo.later(10)
    assert demo.progress(undone).stage is Stage.DONE


def test_it_has_what_a_cluster_has() -> None:
    demo = Stepped()
    assert demo.has("nodes", "worker-1")
    assert not demo.has("nodes", "worker-9")
    assert demo.find("StatefulSet", None, "db").namespace == "data"
    assert [owner.kind for owner in demo.related(demo.pod()).owners] == ["ReplicaSet", "Deployment"]
    with pytest.raises(ApiError, match=r'deployments\.apps "none" not found'):
        demo.find("Deployment", None, "none")


def test_without_leave_nothing_is_written() -> None:
    with pytest.raises(QosError, match="demo is read-only here"):
        Stepped(may_write=False).writer()


def test_a_stream_begins_with_the_first_moment_then_has_what_changes() -> None:
    demo = Stepped(30)
    stream = demo.follow(Scope())
    first = stream.next()
    assert first is not None
    assert (first.snapshot, first.taken) == (demo.first(), DEMO_TIME)
    stream.refresh()
    second = stream.next()
    assert second is not None
    assert second.taken == DEMO_TIME + timedelta(seconds=30)
    assert second.snapshot is not None
    assert second.snapshot.usage != demo.first().usage
    demo.tick_seconds = 0
    demo.seconds += SAMPLE_SECONDS
    third = stream.next()
    assert third is not None
    assert third.snapshot is not second.snapshot
    demo.tick_seconds = None
    waiting: list[Any] = []
    thread = threading.Thread(target=lambda: waiting.append(stream.next()))
    thread.start()
    stream.close()
    thread.join(10)
    assert waiting == [None]


def test_its_own_clock_runs_from_the_first_moment_on(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = [100.0]
    clock: Callable[[], float] = lambda: seconds[0]  # noqa: E731
    monkeypatch.setattr("kubectl_qos.demo.source.time.monotonic", clock)
    now = running_clock()
    seconds[0] += 90
    assert now() == DEMO_TIME + timedelta(seconds=90)
