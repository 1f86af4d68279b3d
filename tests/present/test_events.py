"""Events in words: order, merging, ages, and what those of memory mean."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_qos.cluster.files import DEMO_TIME, DemoSource
from kubectl_qos.errors import ApiError, QosError
from kubectl_qos.k8s.events import Event, in_order
from kubectl_qos.k8s.objects import convert
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.present.output import Section
from kubectl_qos.present.pod_history import MOST_SHOWN, error_section, events_section
from tests.cluster.cluster_objects import recorded_events
from tests.recordings.cut_events import events as events_in
from tests.recordings.files import read_json


def event(reason: str = "BackOff", minutes_ago: float = 1, **fields: Any) -> Event:
    when = (DEMO_TIME - timedelta(minutes=minutes_ago)).isoformat().replace("+00:00", "Z")
    return convert({"type": "Warning", "reason": reason, "lastTimestamp": when, **fields}, Event)


def section(*events: Event) -> Section:
    return events_section(in_order(events), DEMO_TIME)


def table(found: Section) -> list[str]:
    return [f"{line.text.rstrip()}  {line.note}".rstrip() for line in found.lines if line.note]


def meanings(found: Section) -> list[str]:
    return [line.text for line in found.lines if not line.note]


def test_no_events_are_none_as_kubectl_says() -> None:
    assert section() == Section("Events", "<none>")


def test_the_newest_is_first_with_its_age_and_how_often_since_when() -> None:
    found = section(
        event("Started", 30, type="Normal", message="Started container app"),
        event("BackOff", 2.5, message="Back-off", count=3, firstTimestamp="2026-11-20T11:50:00Z"),
    )
    assert found.answer == "2, 1 warning, the newest 2m30s ago"
    assert table(found) == [
        "LAST SEEN  TYPE     REASON   COUNT  MESSAGE",
        "2m30s      Warning  BackOff  x3 over 10m  Back-off",
        "30m        Normal   Started  1  Started container app",
    ]
    assert len({len(line.text) for line in found.lines}) == 1, "the columns are padded"


def test_equal_ones_are_one_at_the_place_of_the_newest() -> None:
    found = section(
        event("Unhealthy", 20, message="no", count=2, firstTimestamp="2026-11-20T11:00:00Z"),
        event("Unhealthy", 10, message="other"),
        event("Unhealthy", 5, message="no"),
    )
    assert table(found)[1:] == [
        "5m         Warning  Unhealthy  x3 over 60m  no",
        "10m        Warning  Unhealthy  1  other",
    ]


def test_those_of_two_containers_are_two() -> None:
    one, other = (
        event(
            "Started", message="Container started", involvedObject={"fieldPath": f"spec.containers{{{name}}}"}
        )
        for name in ("a", "b")
    )
    assert [row.partition("1  ")[2] for row in table(section(one, other))[1:]] == [
        "b: Container started",
        "a: Container started",
    ]


def test_a_nodes_event_names_the_node_once() -> None:
    involved = {"kind": "Node", "name": "worker-2"}
    found = section(
        event("SystemOOM", 1, message="victim process: x", involvedObject=involved),
        event(
            "NodeNotReady", 2, message="Node worker-2 status is now: NodeNotReady", involvedObject=involved
        ),
    )
    assert [line.note for line in found.lines if line.note][1:] == [
        "node worker-2: victim process: x",
        "Node worker-2 status is now: NodeNotReady",
    ]


def test_no_more_than_fit_and_a_word_about_the_rest() -> None:
    many = [event(minutes_ago=number, message=f"number {number}") for number in range(MOST_SHOWN + 2)]
    found = section(*many)
    assert len(table(found)) == 1 + MOST_SHOWN
    assert table(found)[1].endswith("number 0")
    assert found.lines[-1].text == "and 2 older ones: see kubectl get events"
    assert section(*many[: MOST_SHOWN + 1]).lines[-1].text.startswith("and 1 older one:")
    assert not section(*many[:MOST_SHOWN]).lines[-1].text.startswith("and ")


def test_times_that_nobody_says_are_unknown() -> None:
    found = section(convert({"reason": "Odd", "count": 2}, Event))
    assert found.answer == "1, no warnings, the newest at an unknown time"
    assert table(found)[1].split("  ")[0] == "<unknown>"


def test_what_comes_from_a_clock_ahead_of_ours_is_just_now() -> None:
    assert section(event(minutes_ago=-5)).answer.endswith("the newest 0s ago")


def test_text_of_a_server_is_data() -> None:
    found = section(event("[b]\x1b[31mX", type="\x07", message="one\n two\x1b]0;x\x07 [red]three"))
    (row,) = table(found)[1:]
    assert row.isprintable()
    assert "[b]\\x1b[31mX" in row
    assert "one two\\x1b]0;x\\x07 [red]three" in row


@given(st.lists(st.builds(Event, reason=st.text(), type=st.text(), message=st.text()), max_size=4))
def test_every_text_can_be_shown(events: list[Event]) -> None:
    found = events_section(events, DEMO_TIME)
    assert all(line.text.isprintable() and line.note.isprintable() for line in found.lines)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 5), st.integers(0, 500)), max_size=12))
def test_merging_loses_no_occurrence(made: list[tuple[str, int, int]]) -> None:
    found = section(*(event(reason, minutes, count=count) for reason, count, minutes in made))
    counts = [row.split()[3] for row in (line.text for line in found.lines)][1:]
    assert len(counts) == len({reason for reason, _, _ in made})
    assert sum(int(count.removeprefix("x")) for count in counts) == sum(count for _, count, _ in made)


@pytest.mark.parametrize(
    ("reason", "message", "meaning"),
    [
        ("SystemOOM", "victim process: x", "the node ran out of memory"),
        ("OOMKilling", "Killed process 1", "at a limit or because the node ran out"),
        ("Evicted", "The node was low on resource: memory.", "by the rank under Eviction"),
        ("Evicted", "The node was low on resource: ephemeral-storage.", ""),
        ("EvictionThresholdMet", "Attempting to reclaim memory", "evicts pods"),
        ("EvictionThresholdMet", "Attempting to reclaim inodes", ""),
        ("FailedScheduling", "0/4 nodes are available: 4 Insufficient memory.", "usage does not count"),
        ("FailedScheduling", "0/4 nodes are available: 4 node(s) had untolerated taint(s).", ""),
        ("Preempted", "Preempted by pod x on node y", "one of higher priority"),
        ("ResizeDeferred", "Pod resize OutOfmemory", "it waits"),
        ("ResizeInfeasible", "", "can never fit"),
        ("BackOff", "out of memory", ""),
    ],
)
def test_what_an_event_of_memory_means(reason: str, message: str, meaning: str) -> None:
    said = meanings(section(event(reason, message=message)))
    assert [text.startswith(f"{reason}: ") for text in said] == [True] * bool(meaning)
    assert all(meaning in text for text in said)


def test_a_meaning_is_said_once_before_all_events() -> None:
    found = section(*(event("SystemOOM", number, message=f"pid: {number}") for number in range(4)))
    assert len(meanings(found)) == 1
    assert found.lines[0].text == meanings(found)[0]


def test_no_oom_of_the_node_is_said_where_a_container_reached_its_own_limit() -> None:
    """A kubelet tells no event of such a kill: the container starts again, and that is all."""
    source = DemoSource()
    promo = next(pod for pod in source.snapshot(Scope()).pods if pod.name.startswith("promo"))
    assert "SystemOOM" not in str(events_section(source.events(promo), DEMO_TIME))


def test_every_recorded_event_can_be_said() -> None:
    resizes = list(events_in(read_json("node-1.36/resize-exchanges.json")))
    whole = [found for _, found in recorded_events()] + resizes
    found = section(*(convert(one, Event) for one in whole))
    said = {text.partition(":")[0] for text in meanings(found)}
    assert {"SystemOOM", "Evicted", "EvictionThresholdMet", "ResizeDeferred", "ResizeError"} <= said


def test_a_refusal_is_one_sentence_with_the_right_that_is_missing() -> None:
    refused = error_section(
        ApiError(
            'Error from server (Forbidden): events is forbidden: User "v"', status=403, hint="grant list"
        )
    )
    assert refused.answer == "unknown"
    (line,) = refused.lines
    assert line.text == (
        "the list of the pod's events is missing: Error from server (Forbidden): events is forbidden:"
        ' User "v" (grant list)'
    )
    (line,) = error_section(QosError("x\x1b[2J")).lines
    assert line.text == "the list of the pod's events is missing: x\\x1b[2J"
