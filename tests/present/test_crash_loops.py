"""Containers that restart at a limit: what statuses and samples do not show is said."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from msgspec import structs

from kubectl_qos.analysis.deaths import DeathRow, Deaths, deaths_of_pods, deaths_on_nodes
from kubectl_qos.analysis.fix_list import fixes_for_pods
from kubectl_qos.k8s.events import EventList
from kubectl_qos.k8s.objects import NodeObject, ObjectMeta, Pod, Volume, convert
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.k8s.usage import ContainerUsage, PodUsage, UsageOrigin
from kubectl_qos.present import next_death
from kubectl_qos.present.explanation import explain_pod, with_fix
from kubectl_qos.present.fix_sentences import basis_notes, first_fix_text
from kubectl_qos.present.format import percent
from kubectl_qos.present.kills import by_text
from kubectl_qos.present.reasons import PAGE_CACHE, cache_text
from kubectl_qos.present.restart_notes import HIDDEN_KILL_TEXT, hidden_note, loop_notes, volume_sentence
from kubectl_qos.present.values.incidents import death_values
from kubectl_qos.qos.kills.analyze import find_kills
from kubectl_qos.qos.simulation.next_death import Precedent
from kubectl_qos.qos.simulation.node_state import state_of_node
from tests.recordings.files import read_json

RUNNING: Mapping[str, Any] = {"running": {}}
LOOP = {"waiting": {"reason": "CrashLoopBackOff"}}
NODE = {
    "kind": "Node",
    "metadata": {"name": "n1"},
    "status": {"capacity": {"memory": "8Gi"}, "allocatable": {"memory": "7Gi"}},
}


def a_pod(
    state: Mapping[str, Any], exit_code: int, reason: str, restarts: int = 4, limit: str = "100Mi"
) -> Pod:
    end = {"exitCode": exit_code, "reason": reason, "startedAt": "2026-01-01T00:00:00Z"}
    last = {"terminated": end | {"finishedAt": "2026-01-01T00:00:09Z"}}
    resources = {"limits": {"memory": limit}} if limit else {}
    raw = {
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "resources": resources}]},
        "status": {
            "phase": "Running",
            "containerStatuses": [{"name": "c", "restartCount": restarts, "state": state, "lastState": last}],
        },
    }
    return convert(raw, Pod)


def snapshot(*pods: Pod, used_mi: int = 0) -> Snapshot:
    usage = {("shop", "web"): PodUsage.of_containers({"c": ContainerUsage(used_mi << 20)})} if used_mi else {}
    return Snapshot(pods=pods, nodes={"n1": convert(NODE, NodeObject)}, usage=usage)


def notes(pod: Pod, used_mi: int = 0) -> list[str]:
    """What `next` says of a pod and does not say of one that never restarted."""
    own, plain = (
        list(next_death.notes(deaths_of_pods(snapshot(one, used_mi=used_mi), [one])))
        for one in (pod, a_pod(RUNNING, 0, "Completed", 0))
    )
    return [note.removeprefix("shop/web:c ") for note in own if note not in plain]


def test_the_explanation_of_a_loop_begins_with_it() -> None:
    looping = a_pod(LOOP, 137, "OOMKilled")
    first = explain_pod(looping, snapshot(looping), datetime(2026, 1, 1, tzinfo=UTC)).sections[0]
    assert first.title == "Its death"
    assert first.answer.startswith(
        "c waits in CrashLoopBackOff (4 restarts): no process to rank; it was OOMKilled"
    )
    running = a_pod(RUNNING, 0, "Completed", 0)
    first = explain_pod(running, snapshot(running), datetime(2026, 1, 1, tzinfo=UTC)).sections[0]
    assert first.answer == "unknown: memory usage is unknown"


def test_without_usage_only_a_loop_that_waits_dies_next() -> None:
    """Of a running one it is unknown how far away it is."""
    running = a_pod(RUNNING, 0, "Completed", 0)
    other = structs.replace(running, metadata=structs.replace(running.metadata, name="other"))
    for state, found in ((LOOP, ["c"]), (RUNNING, [])):
        pod = a_pod(state, 137, "OOMKilled")
        rows = deaths_of_pods(snapshot(pod, other), [pod]).rows
        assert [row.death.container for row in rows] == found


def test_a_container_that_was_killed_without_a_limit() -> None:
    """Nothing was said of its past, as no limit is to be raised."""
    for state, used_mi in ((RUNNING, 0), (RUNNING, 60), (LOOP, 0)):
        said = notes(a_pod(state, 137, "OOMKilled", limit=""), used_mi)
        text = "was OOMKilled (4 restarts) without a memory limit: the node, or all pods together, ran out"
        assert sum(note.startswith(text) for note in said) == 1
    assert not any("OOMKilled" in note for note in notes(a_pod(RUNNING, 1, "Error", limit="")))


def test_a_pod_whose_limits_are_unknown_is_not_without_one() -> None:
    killed = a_pod(RUNNING, 137, "OOMKilled", limit="")
    assert "without a memory limit" in " ".join(notes(killed))
    unknown = msgspec.structs.replace(killed, spec=msgspec.structs.replace(killed.spec, containers=()))
    assert [*loop_notes([unknown], {}, {"n1": snapshot().setup("n1")})] == []


def test_no_death_is_foreseen_only_where_limits_are_known() -> None:
    running = a_pod(RUNNING, 0, "Completed", 0)
    unknown = msgspec.structs.replace(running, spec=msgspec.structs.replace(running.spec, containers=()))
    ended = msgspec.structs.replace(running, status=msgspec.structs.replace(running.status, phase="Failed"))
    cases = {"does not show the limits of these pods": unknown, "these pods have ended": ended}
    for said, pod in cases.items():
        state = state_of_node(snapshot(pod), "n1")
        assert next_death.nothing(Deaths((), snapshot(pod), [pod], {"n1": state})).endswith(said)


def test_the_working_set_near_a_limit_may_be_page_cache() -> None:
    pod = a_pod(RUNNING, 0, "Completed", 0)
    parts = "30Mi of its working set of 95Mi is anonymous memory"
    for used, rss, start in ((95, None, PAGE_CACHE), (80, None, ""), (95, 30, parts), (95, 80, "")):
        usage = ContainerUsage(used << 20, None if rss is None else rss << 20)
        measured = replace(snapshot(pod), usage={pod.key: PodUsage.of_containers({"c": usage})})
        said = [note for note in next_death.notes(deaths_of_pods(measured, [pod])) if "page cache" in note]
        assert len(said) == bool(start)
        assert not start or said[0].startswith(f"shop/web:c: {start}")


def test_the_summary_is_not_advised_where_it_was_read_and_has_no_parts() -> None:
    used = {"c": ContainerUsage(95 << 20)}
    by_metrics, by_summary = (
        cache_text(PodUsage.of_containers(used, origin), "c")
        for origin in (UsageOrigin.METRICS_API, UsageOrigin.KUBELET_SUMMARY)
    )
    assert "explain --usage=summary" in by_metrics
    assert by_summary == f"{PAGE_CACHE}the kubelets' summary does not say how much"


def test_a_crash_loop_at_a_limit_is_never_no_death() -> None:
    waits = "waits in CrashLoopBackOff (4 restarts): no process to rank"
    assert notes(a_pod(LOOP, 137, "OOMKilled")) == [
        f"{waits}; it was OOMKilled, and starts again with a limit of 100Mi"
    ]
    ended = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    assert notes(a_pod(ended, 0, "Completed", 0)) == [
        "has ended (0 restarts): no process to rank; it was OOMKilled, and starts again with a limit of 100Mi"
    ], "the kubelet has not started it again yet"
    assert notes(a_pod(LOOP, 137, "Error")) == [waits]
    assert notes(a_pod(LOOP, 1, "Error")) == [
        f"{waits}; exit code 1 does not rule out an OOM kill at its limit of 100Mi: {HIDDEN_KILL_TEXT}"
    ]
    assert notes(a_pod(LOOP, 1, "Error", limit="")) == []
    runs = "was OOMKilled (4 restarts), and runs again with a limit of 100Mi: kubectl qos fix"
    assert notes(a_pod(RUNNING, 137, "OOMKilled")) == [runs]
    for found in (
        deaths_of_pods(snapshot(looping := a_pod(LOOP, 1, "Error")), [looping]),
        deaths_on_nodes(snapshot(looping), ["n1"]),
    ):
        assert (found.rows, next_death.nothing(found)) == ((), next(next_death.notes(found)))
        assert next_death.nothing(found).startswith(f"shop/web:c {waits}")


def test_a_loop_that_no_edit_ends_is_not_sent_to_fix() -> None:
    """Its cgroup kept 60Mi of a limit of 200Mi: `fix` says "no fix", and `kills` names that limit."""
    pod = convert(read_json("node-1.36-d/low-pod-limit.json"), Pod)
    (text,) = loop_notes([pod], {}, {"node1": Snapshot(pods=(pod,)).setup("node1")})
    assert text == "oom/loop:c was OOMKilled (23 restarts), and runs again with a limit of 60Mi"
    (kill,) = find_kills(Snapshot(pods=(pod,)), EventList())
    assert by_text(kill) == "pod limit"


def test_a_death_that_repeats_has_no_distance() -> None:
    """What a container uses after its next start, or since its last one, is unknown."""
    side = msgspec.structs.replace(a_pod(RUNNING, 0, "Completed", 0), metadata=ObjectMeta("side", "shop"))
    usage = {side.key: PodUsage.of_containers({"c": ContainerUsage(9 << 20)})}
    for state, when in ((LOOP, "at its next start"), (RUNNING, "if it uses as much as before")):
        looping = a_pod(state, 137, "OOMKilled")
        first = deaths_on_nodes(replace(snapshot(looping, side), usage=usage), ["n1"]).rows[0].death
        by = f"own limit {when}, killed there again and again"
        assert next_death.foretold(first) == f"shop/web:c dies again: {by}"
        assert next_death.how(first) == by
        values = death_values(DeathRow("n1", first))
        assert (values.waits, values.precedent, values.used_bytes) == (True, Precedent.LOOP, None)


def test_a_limit_that_killed_once_is_explained_with_its_fix_before_deaths_of_others() -> None:
    killed = a_pod(RUNNING, 137, "OOMKilled", 1)
    side = msgspec.structs.replace(a_pod(RUNNING, 0, "Completed", 0), metadata=ObjectMeta("side", "shop"))
    usage = {side.key: PodUsage.of_containers({"c": ContainerUsage(9 << 20)})}
    shown = replace(snapshot(killed, side), usage=usage)
    first = with_fix(explain_pod(killed, shown, datetime.now(UTC)), shown).sections[0]
    again, fix = "own limit if it uses as much as before", "container c: memory limit 100Mi → 200Mi"
    assert first.answer == f"{again}, killed there before"
    assert first.lines[0].text.startswith(f"fix: {fix}")
    assert first.lines[1].text.startswith("kubelet evicts, after 1 other death")
    text = first_fix_text(fixes_for_pods(shown, [killed.key]), "kubelet evicts")
    assert text.startswith(f"none: its memory usage is unknown; for {again}: {fix}")


def test_a_share_of_a_limit_of_a_byte_is_cut() -> None:
    assert [percent(part, 1) for part in (12.5, 3053453312)] == ["1250%", ">9999%"]


def test_a_volume_in_memory_may_be_what_kills_at_each_start() -> None:
    scratch = {"name": "scratch", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}
    pod = a_pod(LOOP, 137, "OOMKilled")
    pod = msgspec.structs.replace(
        pod, spec=msgspec.structs.replace(pod.spec, volumes=(convert(scratch, Volume),))
    )
    (text,) = notes(pod)
    assert text.endswith(f"starts again with a limit of 100Mi; {volume_sentence(['scratch'])}")
    explained = explain_pod(pod, snapshot(pod), datetime.now(UTC)).sections
    assert volume_sentence(["scratch"]) in {line.text for section in explained for line in section.lines}
    fixes = fixes_for_pods(snapshot(pod), [pod.key])
    assert f"shop/web: {volume_sentence(['scratch'])}" in list(basis_notes(fixes))


@pytest.mark.parametrize(("used_mi", "is_missed"), [(60, True), (89, True), (90, False)])
def test_a_sample_below_a_limit_that_killed_has_missed_the_peak(used_mi: int, is_missed: bool) -> None:
    words = f"{used_mi}% of its limit when sampled, although OOMKilled (4 restarts): sampling misses peaks"
    killed = a_pod(RUNNING, 137, "OOMKilled")
    assert notes(killed, used_mi) == ([f"used {words}"] if is_missed else [])
    explained = explain_pod(killed, snapshot(killed, used_mi=used_mi), datetime.now(UTC)).sections
    assert (f"c: {words}" in {line.text for section in explained for line in section.lines}) is is_missed
    assert notes(a_pod(RUNNING, 137, "Error"), used_mi) == []


def test_a_cluster_of_loops_is_counted() -> None:
    pods = [a_pod(LOOP, 1, "Error") for _ in range(7)]
    found = deaths_on_nodes(snapshot(*pods), ["n1"])
    *_, last = next_death.notes(found)
    assert last == "2 more containers like these: see kubectl qos explain POD"


@pytest.mark.parametrize(
    ("exit_code", "used_mi", "is_hidden"),
    [(1, 0, True), (1, 50, True), (1, 49, False), (137, 0, False), (139, 90, False), (143, 90, False)],
)
def test_kills_says_which_pods_may_hide_one(exit_code: int, used_mi: int, is_hidden: bool) -> None:
    """SIGSEGV and SIGTERM end by themselves, and far below the limit nothing is killed there."""
    pod = a_pod(RUNNING, exit_code, "Error")
    text = f"shop/web:c restarts with a memory limit and shows no OOM kill: {HIDDEN_KILL_TEXT}"
    assert list(hidden_note(snapshot(pod, used_mi=used_mi), [pod])) == [text] * is_hidden
    explained = explain_pod(pod, snapshot(pod, used_mi=used_mi), datetime.now(UTC)).sections
    lines = "".join(line.text for section in explained for line in section.lines)
    assert ("does not rule out an OOM kill" in lines) is is_hidden


def test_several_that_may_hide_one_are_one_note() -> None:
    pods = [a_pod(RUNNING, 1, "Error")] * 2
    (note,) = hidden_note(snapshot(), pods)
    assert note.startswith("shop/web:c, shop/web:c restart with a memory limit and show no OOM kill: ")


def test_a_node_is_not_put_together_for_what_hides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Snapshot, "setup", lambda *_: pytest.fail("put together for nothing"))
    assert list(hidden_note(snapshot(), [a_pod(RUNNING, 137, "Error")])) == []
