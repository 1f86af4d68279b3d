"""Events: their forms, their order, and which pod they are about."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_qos.k8s.events import Event, EventSeries, in_order, is_about
from kubectl_qos.k8s.objects import ObjectMeta, Pod, convert
from kubectl_qos.k8s.quantity import parse_time

moments = st.integers(0, 10**14).map(
    lambda micros: (
        (datetime(2026, 11, 20, tzinfo=UTC) + timedelta(microseconds=micros))
        .isoformat()
        .replace("+00:00", "Z")
    )
)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, (1, "", "")),
        ({"firstTimestamp": "a", "lastTimestamp": "b", "count": 4}, (4, "a", "b")),
        ({"eventTime": "c", "firstTimestamp": None, "lastTimestamp": None, "count": None}, (1, "c", "c")),
        ({"eventTime": "c", "series": {"count": 7, "lastObservedTime": "d"}}, (7, "c", "d")),
        ({"eventTime": "c", "series": {"count": 7}}, (7, "c", "c")),
        ({"lastTimestamp": "b", "count": 0}, (1, "b", "b")),
        ({"firstTimestamp": "a", "count": -2, "series": None}, (1, "a", "a")),
    ],
)
def test_times_and_counts_of_all_forms(fields: dict[str, Any], expected: tuple[int, str, str]) -> None:
    found = convert(fields, Event)
    assert (found.times, found.first, found.last) == expected


@pytest.mark.parametrize(
    ("path", "container"),
    [
        ("spec.containers{app}", "app"),
        ("spec.initContainers{wait}", "wait"),
        ("spec.ephemeralContainers{debugger}", "debugger"),
        ("spec.containers", ""),
        ("", ""),
        ("implicitly required container POD", ""),
    ],
)
def test_the_container_of_an_event(path: str, container: str) -> None:
    assert convert({"involvedObject": {"fieldPath": path}}, Event).container == container


@given(st.lists(st.one_of(st.none(), moments), max_size=6))
def test_the_newest_is_last_whatever_its_precision(times: list[str | None]) -> None:
    ordered = in_order(Event(last_timestamp=one, series=EventSeries()) for one in times)
    known = [parse_time(one.last) for one in ordered if one.last]
    assert known == sorted(filter(None, known))
    assert all(not one.last for one in ordered[: len(times) - len(known)])


def test_an_event_is_about_a_pod_by_its_uid_before_its_name() -> None:
    def pod(name: str, uid: str = "", namespace: str = "shop") -> Pod:
        return Pod(metadata=ObjectMeta(name=name, namespace=namespace, uid=uid))

    def about(uid: str) -> Event:
        involved = {"kind": "Pod", "namespace": "shop", "name": "web", "uid": uid}
        return convert({"involvedObject": involved}, Event)

    assert is_about(about("uid-of-web"), pod("web", "uid-of-web"))
    assert not is_about(about("uid-of-web"), pod("web", "uid-of-its-successor"))
    assert is_about(about("uid-of-web"), pod("web"))
    assert is_about(about(""), pod("web", "uid-of-web"))
    assert not is_about(about("uid-of-web"), pod("web", namespace="other"))
