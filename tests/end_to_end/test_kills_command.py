"""`kills` of a cluster and of logs from pipes; the rest is in test_transcripts.py."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs

from kubectl_qos.cli.commands.kills import KillFacts, doubt_notes, find_shown, source_notes
from kubectl_qos.cli.options import SourceOptions
from kubectl_qos.cli.sources import resolve_source
from kubectl_qos.k8s.events import Event, EventList
from kubectl_qos.k8s.objects import NodeObject, Pod, convert
from kubectl_qos.k8s.selectors import Selector
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.present.kills import other_causes
from kubectl_qos.qos.kills.analyze import find_kills
from kubectl_qos.qos.kills.report import KernelLog, OomReport
from kubectl_qos.qos.reason import Confidence
from tests.cluster.cluster_objects import node as node_object
from tests.cluster.cluster_objects import pod as pod_object
from tests.cluster.object_server import ObjectServer
from tests.end_to_end.command import Run
from tests.end_to_end.conftest import Live
from tests.end_to_end.stages import node_oom
from tests.host.kernel_logs import FORMS, recorded_log, rewritten
from tests.host.wrapped_logs import LOGS, REFUSED

DIED = "2026-11-20T12:00:00Z"


@pytest.fixture
def dump(run: Run) -> Path:
    node_oom(run.home)
    return run.home / "dump.json"


def columns(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("   ") if cell.strip()]


def test_a_log_from_a_pipe_and_whose_it_is(run: Run, dump: Path) -> None:
    text = "\n".join(rewritten(recorded_log("global-A"), FORMS["journalctl -o json"]))
    done = run("kills", "-f", dump, "--kernel-log", "node1=-", given=text)
    assert [columns(line)[5] for line in done.lines[1:]] == ["certain"] * 5


def test_a_log_that_no_flag_reads_has_a_hint(run: Run, dump: Path) -> None:
    (run.home / "oom.log").write_text("\n".join(recorded_log("global-A")))
    for word in ("oom.log", "./oom.log", "/no/oom.log"):
        hint = f"error: {word} is a file, not a pod\nhint: kubectl qos kills --kernel-log {word}\n"
        assert run("kills", "-f", dump, word).err == hint
    unread = "standard input is not read: --kernel-log - reads a kernel log from it\n"
    assert run("kills", "-f", dump, given="a log").err.startswith(unread)
    assert unread not in run("kills", "-f", dump).err


FULL = "kernel: node full"
ROWS = f"""\
TIME                   NAMESPACE   POD           CONTAINER   {"BY":<17}   SURE      OOM_SCORE   FREED   NODE
2026-11-20T21:23:13Z   default     oa-bu-under   c           {FULL}   certain        1209   300Mi   node1
2026-11-20T21:23:13Z   default     oa-bu-small   c           {FULL}   certain        1333    16Mi   node1
2026-11-20T21:23:07Z   default     oa-be-100     c           {FULL}   certain        1350   100Mi   node1
2026-11-20T21:22:57Z   default     oa-be-200     c           {FULL}   certain        1367   200Mi   node1
2026-11-20T21:22:40Z   default     oa-bu-over    c           {FULL}   certain        1390   400Mi   node1
"""


@pytest.mark.parametrize("kind", [*LOGS][::12])
def test_some_kinds_of_kernel_log(run: Run, dump: Path, kind: str) -> None:
    (run.home / "oom.log").write_bytes(LOGS[kind](list(recorded_log("global-A"))))
    done = run("kills", "-A", "-f", dump, "--kernel-log", "oom.log")
    assert (done.out, done.code, done.err) == (ROWS, 0, "")


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_kernel_log_is_an_error(run: Run, dump: Path, kind: str) -> None:
    content, reason = REFUSED[kind]
    (run.home / "file").write_bytes(content)
    done = run("kills", "-A", "-f", dump, "--kernel-log", "file")
    assert (done.code, done.out) == (1, "")
    assert reason in done.err
    assert "hint: " in done.err
    assert run("kills", "-A", "-f", dump, "--kernel-log", "-", given=content).code == 1


def test_what_a_log_says_is_escaped(run: Run, dump: Path) -> None:
    log = run.home / "odd.log"
    log.write_text(
        "oom-kill:constraint=CONSTRAINT_NONE,task_memcg=/a\x1b]0;x\x07b,task=\x1b[31m,pid=7,uid=0\n"
        "Out of memory: Killed process 7 (\x1b[31mx\x07) total-vm:1kB, anon-rss:1kB, file-rss:0kB\n"
    )
    done = run("kills", "-f", dump, "--kernel-log", log, "-o", "wide")
    assert "\x1b" not in done.out + done.err
    assert "\x07" not in done.out + done.err


def test_a_pod_that_only_an_event_names_is_found(run: Run) -> None:
    """As pasted in KubeFATE#64: of two evictions one was a refusal."""
    (run.home / "events.txt").write_text(
        "4m7s   Warning   Evicted   pod/egg-2   The node had condition: [MemoryPressure].\n"
    )
    done = run("kills", "pod/egg-2", "-f", "events.txt")
    assert (done.code, "NotFound" in done.err) == (0, False)
    assert done.lines[2] == "certain: not admitted by the kubelet: it never ran; no OOM, at an unknown time"
    assert run("kills", "pod/egg-3", "-f", "events.txt").err.endswith('pods "egg-3" not found\n')


def _killed(*events: dict[str, Any]) -> ObjectServer:
    """A cluster with one pod that was OOMKilled."""
    died = pod_object("web")
    end = {"exitCode": 137, "reason": "OOMKilled", "finishedAt": DIED}
    statuses = [{"name": "app", "lastState": {"terminated": end}}]
    died["status"] = {"phase": "Running", "containerStatuses": statuses}
    return ObjectServer(pods=[died], nodes=[node_object("worker-1")], events=events)


EVENTS = "/api/v1/namespaces/shop/events"
NODE_EVENTS = "/api/v1/namespaces/default/events"


def _event(place: str, reason: str, **involved: str) -> dict[str, Any]:
    return {
        "metadata": {"name": reason.lower(), "namespace": place},
        "involvedObject": involved,
        "reason": reason,
        "message": "System OOM encountered, victim process: x, pid: 7",
        "lastTimestamp": DIED,
        "type": "Warning",
    }


DEMO = resolve_source(SourceOptions(demo=True))
SYSTEM_OOM = _event("default", "SystemOOM", kind="Node", name="worker-1")


def test_a_cluster_and_its_events(run: Run, live: Live) -> None:
    back_off = _event("shop", "BackOff", kind="Pod", namespace="shop", name="web")
    server = live(_killed(SYSTEM_OOM, back_off), namespace="shop")
    done = run("kills")
    assert columns(done.lines[1])[2:6] == ["web", "app", FULL, "likely"], done
    assert {EVENTS, NODE_EVENTS} <= set(server.paths())
    assert not any("metrics" in path for path in server.paths()), "usage is nothing to the dead"
    server.requests.clear()
    assert columns(run("kills", "-A").lines[1])[2:6] == ["web", "app", FULL, "likely"]
    assert "/api/v1/events" in server.paths()


def test_a_certain_kill_of_an_unknown_pod_is_no_doubt() -> None:
    snapshot = Snapshot(server_version="v1.34.1")
    kills = find_kills(snapshot, EventList((convert(SYSTEM_OOM, Event),)))
    assert [kill.diagnosis.confidence for kill in kills] == [Confidence.CERTAIN]
    doubt = "not every victim's pod is known: add kernel logs of worker-1 (--kernel-log)"
    assert [*doubt_notes(kills)] == [doubt]
    gone = msgspec.structs.replace(kills[0], is_unlisted=True, pod_uid="uid-of-gone")
    assert next(iter(doubt_notes([gone, gone]))) == (
        "1 pod of the kernel log is not in the list of pods: deleted since, or of another cluster"
    )


def test_the_process_that_died_is_named_where_its_pod_is_unknown(run: Run, dump: Path) -> None:
    (run.home / "oom.log").write_text("Out of memory: Killed process 7 (leaky) total-vm:1kB, anon-rss:1kB")
    done = run("kills", "-f", dump, "--kernel-log", "oom.log")
    assert [columns(done.lines[row])[-1] for row in (0, -1)] == ["VICTIM", "leaky/7"]


def test_a_pod_that_no_kill_is_of_has_a_note_on_kills_of_unknown_pods(run: Run, dump: Path) -> None:
    text = "[1.0] Out of memory: Killed process 7 (web) total-vm:1kB, anon-rss:1kB, oom_score_adj:1000\n"
    (run.home / "oom.log").write_text(text)
    killed = run("kills", "-A", "-f", dump).out
    pods = (item["metadata"] for item in json.loads(dump.read_text())["items"] if item["kind"] == "Pod")
    pod = next(pod for pod in pods if pod["name"] not in killed)
    words = ("-f", dump, "--kernel-log", "oom.log")
    note = "1 kill in the log without a known pod: see kubectl qos kills"
    assert note in run("kills", f"pod/{pod['name']}", "-n", pod["namespace"], *words).err
    assert note not in run("kills", *words).err


def test_a_log_of_a_node_that_was_not_read_is_named_with_those_that_were() -> None:
    nodes = {name: convert(node_object(name), NodeObject) for name in ("n1", "n2")}
    facts = KillFacts(DEMO, Snapshot(nodes=nodes), EventList(()), Scope(), datetime.now(UTC), ())
    log = KernelLog((OomReport(),), title="oom.log")
    assert [*source_notes(facts, [structs.replace(log, node="n2"), log])] == []
    assert [*source_notes(facts, [structs.replace(log, node="n3")])] == [
        "oom.log: there is no node n3 here, only n1, n2: its kills match no pod"
    ]


def test_the_last_kill_before_since_is_named_if_there_is_none_after_it() -> None:
    now = datetime(2026, 11, 20, 14, tzinfo=UTC)
    facts = KillFacts(DEMO, Snapshot(), EventList((convert(SYSTEM_OOM, Event),)), Scope(), now, ())
    for seconds, shown in ((10_000, 1), (3600, 0)):
        kills, read = find_shown(facts, [], [], SourceOptions(), seconds)
        assert (len(kills), read.last_before is None) == (shown, bool(shown))
    (note,) = other_causes(Snapshot(), (), read.last_before)
    assert note == f"the last before that: a process in an unknown cgroup on worker-1, {DIED}"


def test_since_counts_from_the_newest_time_in_files_and_from_a_time(run: Run) -> None:
    """It counted from the present, so that all of an older dump was too long ago."""
    pod, node = pod_object("web"), node_object("worker-1")
    end = {"reason": "OOMKilled", "exitCode": 137, "finishedAt": DIED}
    pod["status"]["containerStatuses"] = [{"name": "app", "lastState": {"terminated": end}}]
    heartbeat = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-11-20T14:00:00Z"}
    node["status"]["conditions"] = [heartbeat]
    (run.home / "dump.json").write_text(json.dumps({"kind": "List", "items": [pod, node]}))
    for since, shown in (("1h", 0), ("3h", 1), ("2026-11-20T13:00:00Z", 0), ("2026-11-20T11:00:00Z", 1)):
        assert len(run("kills", "-A", "-f", "dump.json", "--since-time", since).lines[1:]) == shown, since
        assert ("## Each death" in run("report", "-f", "dump.json", "--since", since).out) == bool(shown)
    done = run("kills", "-A", "-f", "dump.json", "--since", "2225-01-02T11:00:00Z")
    assert (done.code, done.err) == (2, "error: --since 2225-01-02T11:00:00Z is in the future\n")


def test_a_selector_also_chooses_the_deaths_of_a_store(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = {"web": {"app": "web"}, "db": {"app": "db"}}
    pods = [pod_object(name, node="worker-2") for name in labels]
    for raw in pods:
        raw["metadata"]["labels"] = labels[raw["metadata"]["name"]]
    snapshot = Snapshot(pods=tuple(convert(raw, Pod) for raw in pods))
    scope = Scope(node="worker-1", selector=Selector.parse("app=web"), selector_text="app=web")
    (kill,) = find_kills(Snapshot(), EventList((convert(SYSTEM_OOM, Event),)))
    older = [structs.replace(kill, namespace="shop", pod=name) for name in ("web", "db", "gone")]
    monkeypatch.setattr("kubectl_qos.cli.sources.open_store", lambda _: None)
    monkeypatch.setattr("kubectl_qos.metrics.past.read_kills", lambda *_: older)
    facts = KillFacts(DEMO, snapshot, EventList(()), scope, datetime.now(UTC), ())
    kills, facts = find_shown(facts, [], [], SourceOptions(prometheus="http://store"), None)
    assert [kill.pod for kill in kills] == ["web"], "it died on another node than it is on now"
    (note,) = facts.notes
    assert note == "2 older deaths not listed: the pods are gone, or the selector does not match them"


def test_an_eviction_whose_events_are_gone_has_a_time_for_since(run: Run, live: Live) -> None:
    """Its condition is dated: what was 42 h ago is not of the last hour."""
    evicted = pod_object("web")
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
    ago = datetime.now(UTC) - timedelta(hours=42)
    condition |= {"message": "The node was low on resource: memory.", "lastTransitionTime": f"{ago:%FT%TZ}"}
    evicted["status"] = {"phase": "Failed", "reason": "Evicted", "conditions": [condition]}
    live(ObjectServer(pods=[evicted], nodes=[node_object("worker-1")]), namespace="shop")
    assert columns(run("kills", "--since", "43h").lines[1])[:1] == [f"{ago:%FT%TZ}"]
    done = run("kills", "--since", "1h")
    assert (done.out, done.code) == ("", 0)
    assert "No OOM kills or evictions found" in done.err
    assert "No OOM kills or evictions of web found in shop" in run("kills", "web", "--since", "1h").err


@pytest.mark.parametrize(
    ("forbidden", "what"), [((EVENTS, NODE_EVENTS), "events"), ((NODE_EVENTS,), "the nodes' events")]
)
def test_without_the_right_to_events(run: Run, live: Live, forbidden: tuple[str, ...], what: str) -> None:
    cluster = _killed(SYSTEM_OOM)
    cluster.forbidden = set(forbidden)
    live(cluster, namespace="shop")
    done = run("kills")
    assert done.code == 0
    assert columns(done.lines[1])[4:6] == ["OOM killer", "likely"]
    assert f"the list of {what} is missing" in done.err
    assert "docs/rbac/events.yaml" in done.err
