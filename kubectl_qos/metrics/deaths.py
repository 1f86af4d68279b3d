"""Deaths over a time by a store of metrics: older ones than any status has.

They are restarts with their last reason, evicted pods, and OOM kills that cAdvisor counted. past.py reads the
cluster of one time, qos/kills the deaths in statuses, events and kernel logs.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, NamedTuple

from kubectl_qos.k8s.events import Event, is_of_node_memory
from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.k8s.usage import ContainerKey
from kubectl_qos.metrics.prometheus import Labels, Prometheus
from kubectl_qos.metrics.series import (
    BY,
    CONTAINERS,
    INFO,
    NODE,
    WORKING_SET,
    container_of,
    label,
    of_nodes,
    pod_of,
    read_nodes,
    rfc3339,
    select,
)
from kubectl_qos.qos.killers import BY_RANK, Mechanism
from kubectl_qos.qos.kills.analyze import Kill, newest_first
from kubectl_qos.qos.kills.evidence import (
    EVICTED,
    NEAR_SECONDS,
    OOM_KILLED,
    SIGKILLED,
    UNLIMITED_BYTES,
    Diagnosis,
    Evidence,
    Fact,
    MemoryLimits,
    Need,
    event_evidence,
    is_near,
)
from kubectl_qos.qos.reason import Confidence

_ENDED: Final = "kube_pod_container_status_last_terminated_"
_LIMITS: Final = "kube_pod_container_resource_limits"
_CAPACITY: Final = "kube_node_status_capacity"
_OF_MEMORY: Final = 'resource="memory"'
STEPS: Final = 1_440
"""The steps of the queries for deaths: a minute each for a day."""
_LEAST_STEP: Final = 60
_DAY: Final = 86_400
_BEFORE: Final = "[10m]"
_NEAR: Final = 0.9
"""Memory seen at this share of its limit, or of its node, may have reached it between two samples."""
_MOST_PEAKS: Final = 30
_POINTS: Final = 96
"""The points of a day's track: one for every quarter of an hour."""
MOST_NODES: Final = 200
"""The nodes whose memory of a day a store answers with a megabyte at most."""


@dataclass
class _End:
    """The end of a container by its series, or with an empty name of a pod; `at` is 0 if unknown.

    The most memory in the minutes before: `peak` of the cgroup with the nearest limit, `node_peak` of the
    node, with its capacity.
    """

    key: ContainerKey
    seen: float
    at: float = 0.0
    reason: str = ""
    exit_code: int | None = None
    oom_kills: int = 0
    node: str = ""
    limits: MemoryLimits = MemoryLimits(None, None)  # noqa: RUF009 - it is frozen
    peak: float | None = None
    node_peak: tuple[int, int] | None = None
    had_pressure: bool = False
    system_ooms: Sequence[Event] = ()

    @property
    def time(self) -> str:
        """Return when it ended, or was first seen to have ended."""
        return rfc3339(self.at or self.seen)

    @property
    def is_oom(self) -> bool:
        """Return whether an OOM kill was counted; those of a full node often are not."""
        return self.reason == OOM_KILLED or self.oom_kills > 0

    @property
    def is_of_memory(self) -> bool:
        """Return whether memory may explain it."""
        is_killed = self.exit_code == SIGKILLED and self.reason != "ContainerStatusUnknown"
        return self.is_oom or self.reason == EVICTED or is_killed

    @property
    def node_was_full(self) -> bool | None:
        """Return whether its node may have run out of memory, by its samples, condition and events."""
        if self.had_pressure or self.system_ooms:
            return True
        return self.node_peak[0] >= _NEAR * self.node_peak[1] if self.node_peak is not None else None


def read_kills(store: Prometheus, start: float, end: float, events: Iterable[Event] = ()) -> list[Kill]:
    """Return the OOM kills and evictions between two Unix times, the newest first. Raises QosError.

    If kube-state-metrics does not export the time, it is as exact as the step: a minute for a day. cAdvisor
    drops a counter together with its container, so that it shows kills that a container survived.
    """
    step = max(_LEAST_STEP, round((end - start) / STEPS))
    ends = [death for death in _read_ends(store, start, end, step) if death.is_of_memory]
    ends.sort(key=lambda death: -death.seen)
    if not ends:
        return []
    over = f"[{round(end - start)}s]"
    infos = store.query(f"last_over_time({select(store, [INFO])}{over})", end)
    nodes = {pod_of(info.labels): label(info.labels, NODE[:2]) for info in infos}
    limits = _largest(store, "container_spec_memory_limit_bytes", 'pod!="",container=""', over, end)
    limits |= _largest(store, _LIMITS, _OF_MEMORY, over, end)
    sizes = store.query(f"last_over_time({select(store, [_CAPACITY], _OF_MEMORY)}{over})", end)
    capacities = {label(size.labels, NODE[:2]): int(size.value) for size in sizes}
    system_ooms = [event for event in events if event.reason == "SystemOOM"]
    for death in ends:
        pod, death.node = (death.key[0], ""), nodes.get(death.key[0], "")
        own_limit, pod_limit = (round(limits.get(key, 0)) for key in (death.key, pod))
        death.limits = MemoryLimits(own_limit or None, pod_limit if 0 < pod_limit < UNLIMITED_BYTES else None)
        near = NEAR_SECONDS + (0 if death.at else 2 * step)
        of_node = (event for event in system_ooms if is_of_node_memory(event, death.node))
        death.system_ooms = [event for event in of_node if is_near(event, death.time, near)]
    pressure = select(store, ["kube_node_status_condition"], 'condition="MemoryPressure",status="true"')
    for at in list(dict.fromkeys(death.seen for death in ends if death.reason != EVICTED))[:_MOST_PEAKS]:
        peaks = _largest(store, WORKING_SET, CONTAINERS, _BEFORE, at)
        nodes_then = read_nodes(store, at, _BEFORE).by_node.items()
        node_peaks = {node: (used, capacities[node]) for node, used in nodes_then if node in capacities}
        conditions = store.query(f"max_over_time({pressure}{_BEFORE}) == 1", at)
        under_pressure = {label(condition.labels, NODE[:2]) for condition in conditions}
        for death in (death for death in ends if death.seen == at):
            is_of_pod = death.limits.is_of_pod
            death.peak = peaks.get((death.key[0], "") if is_of_pod else death.key)
            death.node_peak, death.had_pressure = node_peaks.get(death.node), death.node in under_pressure
    return [
        Kill(
            diagnosis=_diagnosis(death, store.name),
            time=death.time,
            time_is_estimated=not death.at,
            namespace=death.key[0][0],
            pod=death.key[0][1],
            container=death.key[1],
            node=death.node,
            exit_code=death.exit_code,
            reason=death.reason,
        )
        for death in ends
    ]


def _largest(store: Prometheus, name: str, more: str, over: str, at: float) -> dict[ContainerKey, float]:
    """Return the largest value of a metric over a time, by container; those of a whole pod have no name."""
    values: dict[ContainerKey, float] = {}
    for sample in store.query(f"max by ({BY}) (max_over_time({select(store, [name], more)}{over}))", at):
        key = container_of(sample.labels) or (pod_of(sample.labels), "")
        values[key] = max(sample.value, values.get(key, 0.0))
    return values


def with_older(recent: Sequence[Kill], older: Iterable[Kill], seconds: int) -> list[Kill]:
    """Add the deaths that `read_kills` has read, of `seconds`, which no status has any more.

    They replace a death whose status knows no time or no mechanism. An eviction is one of the whole pod.
    """
    by_container: dict[tuple[str, str, str], list[Kill]] = {}
    for kill in recent:
        is_eviction = kill.diagnosis.mechanism.is_eviction
        for container in {kill.container, "" if is_eviction else kill.container}:
            by_container.setdefault((kill.namespace, kill.pod, container), []).append(kill)
    kills = list(recent)
    for kill in older:
        near = timedelta(seconds=NEAR_SECONDS + (2 * seconds / STEPS if kill.time_is_estimated else 0))
        moment = parse_time(kill.time)
        for same in by_container.get((kill.namespace, kill.pod, kill.container), ()):
            time = parse_time(same.time)
            if time is None or moment is None or abs(time - moment) <= near:
                if time is not None and same.diagnosis.mechanism is not Mechanism.UNKNOWN:
                    break
                kills = [other for other in kills if other is not same]
        else:
            kills.append(kill)
    return sorted(kills, key=newest_first)


class Track(NamedTuple):
    """The last hours that a store has, as Unix times, and who died in them, the oldest first.

    `memory` is what nodes used, in bytes at Unix times; nothing with more than MOST_NODES.
    """

    begin: float
    end: float
    kills: tuple[Kill, ...] = ()
    memory: Mapping[str, Sequence[tuple[float, float]]] = {}


def read_track(store: Prometheus, end: float) -> Track:
    """Read a day at most until a Unix time, from the first time at which pods are known. Raises QosError."""
    begin = end - _DAY
    counts = store.query_range(f"count({select(store, [INFO])})", begin, end, _DAY / _POINTS)
    begin = max(begin, min((at for series in counts for at, _ in series.points), default=begin))
    nodes, memory = read_nodes(store, end), dict[str, Sequence[tuple[float, float]]]()
    if len(nodes.by_node) <= MOST_NODES:
        for series in store.query_range(of_nodes(store), begin, end, _DAY / _POINTS):
            memory[nodes.node_name(series.labels)] = series.points
    return Track(begin, end, tuple(reversed(read_kills(store, begin, end))), memory)


def _read_ends(store: Prometheus, start: float, end: float, step: int) -> list[_End]:
    """Return the ends of containers, at the points of range queries at which something has changed."""
    ends: dict[tuple[ContainerKey, float], _End] = {}

    def points(query: str) -> Iterator[tuple[Labels, _End, float]]:
        for series in store.query_range(query, start, end, step):
            key = container_of(series.labels) or (pod_of(series.labels), "")
            for seen, value in series.points:
                yield series.labels, ends.setdefault((key, seen), _End(key, seen)), value

    def risen(name: str, more: str = "") -> str:
        series = select(store, [name], more)
        return f"({series} - {series} offset {step}s > 0)"

    restarted = risen("kube_pod_container_status_restarts_total")
    for labels, death, _ in points(
        f"({select(store, [_ENDED + 'reason'])} == 1) and ignoring(reason) {restarted}"
    ):
        death.reason = labels.get("reason", "")
    for _, death, value in points(f"{select(store, [_ENDED + 'exitcode'])} and {restarted}"):
        death.exit_code = int(value)
    for _, death, value in points(f"{select(store, [_ENDED + 'timestamp'])} and {restarted}"):
        death.at = max(value, 0.0)  # A kubelet that knows no time leaves year 1.
    evicted = select(store, ["kube_pod_status_reason"], f'reason="{EVICTED}"')
    for _, death, _ in points(f"({evicted} == 1) unless ({evicted} offset {step}s == 1)"):
        death.reason = EVICTED
    deaths = list(ends.values())
    for _, death, value in points(f"max by ({BY}) {risen('container_oom_events_total', CONTAINERS)}"):
        same = (other for other in deaths if other.key == death.key)
        near = (other for other in same if abs(other.seen - death.seen) <= 2 * step)
        next(near, death).oom_kills += round(value)
    return list(ends.values())


def _diagnosis(death: _End, title: str) -> Diagnosis:
    """Diagnose by the series: they say that a pod was evicted, but not why; other deaths are uncertain."""
    if death.reason == EVICTED:
        evicted = Evidence(Fact.POD_ENDED, {"reason": EVICTED, "message": ""}, death.time)
        return Diagnosis(Mechanism.UNKNOWN_EVICTION, Confidence.CERTAIN, (evicted,))
    evidence, nearest = tuple(_evidence(death, title)), death.limits.nearest
    mechanism, is_likely = Mechanism.UNKNOWN, False
    limit = death.limits.pod if death.limits.is_of_pod else death.limits.own
    if nearest is not None and death.peak is not None and death.peak >= _NEAR * (limit or 0):
        mechanism, is_likely = nearest, death.is_oom
    elif death.node_was_full:
        mechanism = Mechanism(BY_RANK.id)
    elif nearest is not None and (death.is_oom or death.peak is None):
        mechanism, is_likely = nearest, death.is_oom and death.node_was_full is False
        evidence += (Evidence(Fact.LIMIT_NOT_SEEN),) if death.peak is not None else ()
    confidence = Confidence.LIKELY if is_likely else Confidence.POSSIBLE
    return Diagnosis(mechanism, confidence, evidence, Need.KERNEL_LOG)


def _evidence(death: _End, title: str) -> Iterator[Evidence]:
    if death.reason or death.exit_code is not None:
        details = {"state": "lastState", "exit_code": death.exit_code, "reason": death.reason}
        yield Evidence(Fact.ENDED, details, death.time)
    if death.reason == OOM_KILLED:
        yield Evidence(Fact.OOM_KILLED)
    if death.oom_kills:
        yield Evidence(Fact.OOM_EVENTS, {"count": death.oom_kills})
    if death.limits.nearest is not None:
        yield from death.limits.evidence()
    if death.peak is not None:
        yield Evidence(Fact.PEAK, {"bytes": round(death.peak), "title": title})
    if death.had_pressure:
        yield Evidence(Fact.NODE_PRESSURE)
    if death.node_peak is not None:
        used, capacity = death.node_peak
        yield Evidence(Fact.NODE_PEAK, {"bytes": used, "capacity_bytes": capacity})
    yield from map(event_evidence, death.system_ooms)
