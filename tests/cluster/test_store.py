"""What is held of a cluster that is followed: how much room it takes, and that it stays so."""

import gc
import json
import time
import tracemalloc
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from kubectl_qos.cluster.informer import NODES, PODS, Store
from kubectl_qos.cluster.source import LIVE
from kubectl_qos.errors import QosError
from kubectl_qos.k8s import interning as sharing
from kubectl_qos.k8s.interning import Interner
from kubectl_qos.k8s.objects import JsonDecoder, Pod
from kubectl_qos.k8s.snapshot import NO_OVERRIDES, Arrived, Usage
from kubectl_qos.k8s.usage import PodUsage
from tests.cluster.cluster_objects import recorded_pods

MOST_BYTES_A_POD = 1500
_decoder = JsonDecoder(Pod)


def new_store() -> Store:
    return Store(NO_OVERRIDES, lambda: datetime.now(UTC))


def held_bytes(work: Callable[[], Any]) -> int:
    """What work leaves behind, in bytes; its result is kept meanwhile."""
    gc.collect()
    tracemalloc.start()
    try:
        result = work()
        gc.collect()
        return tracemalloc.get_traced_memory()[0] + 0 * len([result])
    finally:
        tracemalloc.stop()


def alike(copies: int) -> Iterator[bytes]:
    """The recorded pods of a real node, repeated as the replicas of workloads."""
    for copy in range(copies):
        for number, raw in enumerate(recorded_pods()):
            statuses = raw["status"].get("containerStatuses", [])
            containers = [
                {**status, "containerID": f"containerd://{copy:032x}{number:032x}"} for status in statuses
            ]
            metadata = {
                **raw["metadata"],
                "name": f"{raw['metadata']['name']}-{copy:06x}",
                "uid": f"{copy:08x}-1111-4222-8333-{number:012x}",
                "resourceVersion": str(1_000_000 + copy),
            }
            spec = {**raw["spec"], "nodeName": f"worker-{copy % 7}"}
            status = {**raw["status"], "containerStatuses": containers}
            yield json.dumps({**raw, "metadata": metadata, "spec": spec, "status": status}).encode()


def test_a_held_pod_takes_less_than_one_and_a_half_kilobytes() -> None:
    bodies = list(alike(10))
    store, share = new_store(), Interner()
    taken = held_bytes(lambda: store.replace_pods([share.pod(_decoder.decode(body)) for body in bodies]))
    assert len(store.snapshot().pods) == len(bodies) == 600
    assert 300 < taken / len(bodies) < MOST_BYTES_A_POD


def test_a_days_events_leave_no_more_behind_than_the_first_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each change brings a time, a state and a number that never come again."""
    monkeypatch.setattr(sharing, "MOST_PARTS", 150)
    raw: Any = json.loads(next(alike(1)))
    store, share = new_store(), Interner()

    def event(number: int) -> None:
        ended = {"exitCode": 137, "reason": "OOMKilled", "finishedAt": f"2026-11-20T{number:08}Z"}
        raw["status"]["containerStatuses"][0]["lastState"] = {"terminated": ended}
        raw["status"]["containerStatuses"][0]["restartCount"] = number
        raw["metadata"]["name"] = f"pod-{number % 30}"
        store.put_pod(share.pod(_decoder.decode(json.dumps(raw).encode())))
        if number % 10 == 0:
            store.snapshot()

    gc.freeze()  # each collection visits only what the events have made
    tracemalloc.start()
    try:
        sizes = []
        for number in range(900):
            event(number)
            if number % 25 == 0:
                gc.collect()  # the interpreter keeps the memory of freed tuples for later ones
                sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
        gc.unfreeze()
    assert len(store.snapshot().pods) == 30
    early, late = max(sizes[:20]), max(sizes[-20:])
    assert late < 1.2 * early


def test_usage_has_the_keys_of_the_pods_themselves() -> None:
    store = new_store()
    pods = [_decoder.decode(raw) for raw in alike(1)]
    store.replace_pods(pods)
    others = {(pod.namespace, "".join(pod.name)): PodUsage((), ()) for pod in pods}
    store.set_usage(Usage({("", "not listed yet"): PodUsage((), ()), **others}))
    usage = store.snapshot().usage
    names = {id(pod.name) for pod in pods}
    assert {name for _, name in usage if id(name) not in names} == {"not listed yet"}
    assert usage.keys() == {("", "not listed yet"), *others}


def test_what_did_not_change_is_the_same_object_in_the_next_snapshot() -> None:
    store, share = new_store(), Interner()
    pods = [share.pod(_decoder.decode(body)) for body in alike(7)]
    store.replace_pods(pods)
    before = store.snapshot().by_node()
    store.drop_pod(next(pod for pod in pods if pod.node_name == "worker-3"))
    after = store.snapshot().by_node()
    assert {name for name in before if before[name] is not after[name]} == {"worker-3"}
    store.replace_pods([share.pod(_decoder.decode(body)) for body in alike(7)])
    again = store.snapshot().by_node()
    assert {name for name in before if again[name] is after[name]} == before.keys() - {"worker-3"}
    assert len(again["worker-3"]) == len(before["worker-3"])


def test_stale_since_the_server_was_last_heard_with_the_error_that_came_last() -> None:
    now, store = datetime.now(UTC), new_store()
    store.synced(PODS)
    store._heard = time.monotonic() - 60
    assert round(store.silent_seconds()) == 60, "also before it is called stale"
    store.out_of_sync(PODS, QosError("first"), 1.0)
    store.heard()
    store.out_of_sync(NODES, QosError("second"), 9.0)
    health = store.health()
    assert health.since is not None
    assert (str(health.error), round((now - health.since).total_seconds())) == ("second", 60)
    assert 8 < health.retry_at - time.monotonic() <= 9
    store.out_of_sync(PODS, QosError("third"), 3.0)
    assert str(store.health().error) == "third"
    assert store.health().since == health.since, "never a newer time"
    assert round(store.silent_seconds()) == 60
    store.synced(PODS)
    store.synced(NODES)
    assert round(store.silent_seconds()) == 0


def test_while_it_is_listed_again_no_old_error_and_no_next_try_is_shown() -> None:
    store = new_store()
    store.synced(PODS)
    store.listing(PODS)
    assert store.health() is LIVE, "what is too old is listed at once, and was never stale"
    store.out_of_sync(PODS, QosError("connection refused"), 9.0)
    since = store.health().since
    store.listing(PODS)
    health = store.health()
    assert (str(health.error), health.since, health.retry_at) == ("listing pods again", since, 0.0)
    store.synced(PODS)
    assert store.health() is LIVE


def test_a_first_list_that_arrives_after_a_failure_is_no_error() -> None:
    store = new_store()
    store.out_of_sync(PODS, QosError("connection refused"), 9.0)
    store.arrive([], Arrived(0, None, 0))
    assert store.health() is LIVE


def test_the_same_usage_again_is_the_same_object() -> None:
    store = new_store()
    pods = [_decoder.decode(raw) for raw in alike(1)]
    store.replace_pods(pods)

    def usage_of(pod: Pod, *amounts: int) -> Usage:
        return Usage({pod.key: PodUsage(("app",), amounts)})

    seen = []
    for amount in (1, 1, 2):
        store.set_usage(usage_of(pods[0], amount))
        seen.append(store.snapshot().usage)
    assert seen[0] is seen[1]
    assert seen[1] is not seen[2]
