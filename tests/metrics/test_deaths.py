"""What killed a container, by the series of a store: a node out of memory needs evidence of its own."""

import re
from collections.abc import Iterator

import pytest

from kubectl_qos.k8s.events import Event, EventList
from kubectl_qos.k8s.objects import Pod, convert
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.metrics.past import read_kills, with_older
from kubectl_qos.metrics.prometheus import Prometheus, Sample, Series
from kubectl_qos.present.evidence import evidence_sentence
from kubectl_qos.qos.killers import EVICTING, Mechanism
from kubectl_qos.qos.kills.analyze import Kill, find_kills
from kubectl_qos.qos.kills.evidence import Fact
from kubectl_qos.qos.reason import Confidence
from kubectl_qos.transport import ConnectionOptions
from kubectl_qos.transport.client import connect

DIED, MI = 1_795_459_263, 1 << 20
CAPACITY = 4096 * MI
CALM, FULL = 851 * MI, 3900 * MI
"""Memory of the node: as at the deaths of node-1.36-d at limits, and where it had none left."""
POD = {"namespace": "oom", "pod": "lim2"}
APP, ON_NODE = {**POD, "container": "a"}, {"node": "node1"}


class Died(Prometheus):
    """A store in which one container died, sampled at 20 MiB, while its limit was 80 MiB."""

    pressure_at = DIED + 20

    def __init__(self, node_bytes: float | None, **changes: float | None) -> None:
        super().__init__(connect(ConnectionOptions(server="http://127.0.0.1:1")), "the store")
        values = {"limit": 80 * MI, "peak": 20 * MI, "pod_peak": 31 * MI, "exit_code": 137, **changes}
        samples = [
            ("kube_pod_info", {**POD, **ON_NODE}, 1),
            ("kube_node_info", {**ON_NODE, "internal_ip": "10.0.2.15"}, 1),
            ("kube_node_status_capacity", {**ON_NODE, "resource": "memory"}, CAPACITY),
            ("container_memory_working_set_bytes", {"id": "/", "instance": "10.0.2.15:10250"}, node_bytes),
            ("container_memory_working_set_bytes", {**APP, "id": "/kubepods/a"}, values["peak"]),
            ("container_memory_working_set_bytes", {**POD, "id": "/kubepods"}, values["pod_peak"]),
            ("kube_pod_container_resource_limits", {**APP, "resource": "memory"}, values["limit"]),
            ("container_spec_memory_limit_bytes", POD, values.get("pod_limit")),
            (
                "kube_node_status_condition",
                {**ON_NODE, "condition": "MemoryPressure"},
                values.get("pressure"),
            ),
            ("kube_pod_container_status_last_terminated_reason", APP | {"reason": "OOMKilled"}, 1),
            ("kube_pod_container_status_last_terminated_exitcode", APP, values["exit_code"]),
            ("kube_pod_container_status_last_terminated_timestamp", APP, DIED),
        ]
        if "is_oom" in changes:
            samples = [one for one in samples if not one[0].endswith("_reason")]
        self.samples = [(name, labels, value) for name, labels, value in samples if value is not None]

    def _of(self, expression: str) -> Iterator[Sample]:
        name = re.search(r'__name__="(\w+)"', expression)
        for known, labels, value in self.samples if name is not None else ():
            is_node = 'id="/"' in expression
            if known == name[1] and (labels.get("id") == "/") is is_node:  # type: ignore[index]
                yield Sample({"__name__": known, **labels}, value)

    def query(self, expression: str, at: float | None = None) -> list[Sample]:
        del at
        return list(self._of(expression))

    def query_range(self, expression: str, start: float, end: float, step: float) -> list[Series]:
        del start, end, step
        at = self.pressure_at if "MemoryPressure" in expression else DIED + 20
        return [Series(one.labels, [(at, one.value)]) for one in self._of(expression)]


def death(store: Prometheus, *events: Event) -> Kill:
    (kill,) = read_kills(store, DIED - 3600, DIED + 3600, events)
    return kill


def finding(kill: Kill) -> tuple[Mechanism, Confidence]:
    return kill.diagnosis.mechanism, kill.diagnosis.confidence


LIMIT, NODE = "container limit", "node"
LIKELY, POSSIBLE = Confidence.LIKELY, Confidence.POSSIBLE


@pytest.mark.parametrize(
    ("node_bytes", "confidence"), [(CALM, LIKELY), (None, POSSIBLE)], ids=["calm", "unknown"]
)
def test_without_evidence_of_the_node_it_was_the_limit(
    node_bytes: float | None, confidence: Confidence
) -> None:
    kill = death(Died(node_bytes))
    assert finding(kill) == (LIMIT, confidence)
    facts = [one.fact for one in kill.diagnosis.evidence]
    assert (Fact.LIMIT_NOT_SEEN in facts, Fact.NODE_PEAK in facts) == (True, node_bytes is not None)
    said = "; ".join(map(evidence_sentence, kill.diagnosis.evidence))
    assert "no sample shows it at the limit" in said
    assert ("its node used 851Mi of 4Gi at most" in said) == (node_bytes is not None)


def test_a_node_that_was_full_may_have_killed() -> None:
    assert finding(death(Died(FULL))) == (NODE, POSSIBLE)
    assert finding(death(Died(CALM, pressure=1))) == (NODE, POSSIBLE)
    kill = death(Died(FULL, is_oom=0))
    assert finding(kill) == (NODE, POSSIBLE), "a victim of the node often ends as Error"
    assert finding(death(Died(FULL, peak=75 * MI))) == (LIMIT, LIKELY), "its own limit was nearer"


@pytest.mark.parametrize(
    ("node", "seconds", "mechanism"), [("node1", 3, NODE), ("node1", -90, LIMIT), ("node2", 3, LIMIT)]
)
def test_an_event_of_that_node_and_time_is_evidence(node: str, seconds: int, mechanism: Mechanism) -> None:
    at = f"2026-11-23T18:41:{3 + seconds:02}Z" if seconds > 0 else "2026-11-23T18:39:33Z"
    raw = {"reason": "SystemOOM", "involvedObject": {"kind": "Node", "name": node}, "lastTimestamp": at}
    kill = death(Died(CALM), convert(raw, Event))
    assert kill.time == "2026-11-23T18:41:03Z"
    assert kill.diagnosis.mechanism == mechanism


def test_the_limit_of_the_pod_counts_where_the_store_has_it() -> None:
    pod_limit = 40 * MI
    assert finding(death(Died(CALM, pod_limit=pod_limit))) == ("pod limit", LIKELY)
    near = death(Died(FULL, pod_limit=pod_limit, pod_peak=39 * MI, limit=None))
    assert finding(near) == ("pod limit", LIKELY)
    without = death(Died(CALM, limit=None))
    assert finding(without) == (Mechanism.UNKNOWN, POSSIBLE), "a limit that the store does not have"
    assert Fact.NO_LIMIT not in [one.fact for one in without.diagnosis.evidence]


def test_a_kill_without_an_oom_needs_a_sample_at_the_limit() -> None:
    assert finding(death(Died(CALM, is_oom=0))) == (Mechanism.UNKNOWN, POSSIBLE)
    assert finding(death(Died(CALM, is_oom=0, peak=79 * MI))) == (LIMIT, POSSIBLE)


def test_an_eviction_is_one_death_of_the_pod_with_its_time() -> None:
    """A kubelet of 1.36 makes up an exit code and no time for its container, which is no second death."""
    store, year_1 = Died(CALM), -62_135_596_800
    ended = "kube_pod_container_status_last_terminated_"
    store.samples = [
        *(one for one in store.samples if one[0] == "kube_pod_info"),
        ("kube_pod_status_reason", {**POD, "reason": "Evicted"}, 1),
        (f"{ended}reason", {**APP, "reason": "ContainerStatusUnknown"}, 1),
        (f"{ended}exitcode", APP, 137),
        (f"{ended}timestamp", APP, year_1),
    ]
    older = death(store)
    evicted = Mechanism.UNKNOWN_EVICTION, Confidence.CERTAIN
    assert (older.container, older.time, finding(older)) == ("", "2026-11-23T18:41:23Z", evicted)
    end = {"terminated": {"reason": "ContainerStatusUnknown", "exitCode": 137}}
    last = {"terminated": {**end["terminated"], "finishedAt": "0001-01-01T00:00:00Z"}}
    statuses = [{"name": "a", "state": end, "lastState": last}]
    raw = {
        "metadata": {"name": "lim2", "namespace": "oom"},
        "spec": {"containers": [{"name": "a"}]},
        "status": {"phase": "Failed", "reason": "Evicted", "containerStatuses": statuses},
    }
    kills = find_kills(Snapshot(pods=(convert(raw, Pod),)), EventList())
    assert [(kill.time, finding(kill)) for kill in kills] == [("", evicted)]
    assert with_older(kills, [older], 3600) == [older], "--at: no store has what the status says"


@pytest.mark.parametrize(
    ("seconds_before", "expected"),
    [
        (0, (EVICTING.id, LIKELY)),
        (599, (EVICTING.id, LIKELY)),
        (601, (Mechanism.UNKNOWN_EVICTION, Confidence.CERTAIN)),
        (-61, (Mechanism.UNKNOWN_EVICTION, Confidence.CERTAIN)),
    ],
)
def test_an_eviction_under_pressure_of_its_node_is_one_for_memory(
    seconds_before: int, expected: tuple[str, Confidence]
) -> None:
    store = Died(CALM, pressure=1)
    store.pressure_at = DIED + 20 - seconds_before
    of_node = [
        sample for sample in store.samples if sample[0] in {"kube_pod_info", "kube_node_status_condition"}
    ]
    store.samples = [*of_node, ("kube_pod_status_reason", {**POD, "reason": "Evicted"}, 1)]
    assert finding(death(store)) == expected
