"""Deaths over a time, as a store of metrics knows them: older ones than any status.

Restarts with their last reason, evicted pods, and OOM kills that cAdvisor counted. Not here: the cluster of
one time (past.py), and deaths in statuses, events and kernel logs (qos/kills).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, NamedTuple

from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.k8s.usage import ContainerKey
from kubectl_qos.metrics.prometheus import Labels, Prometheus
from kubectl_qos.metrics.series import (
    BY,
    CONTAINERS,
    INFO,
    NODE,
    WORKING_SET,
    by_container,
    container_of,
    label,
    pod_of,
    rfc3339,
    select,
)
from kubectl_qos.qos.kills.analyze import Kill, newest_first
from kubectl_qos.qos.kills.evidence import (
    EVICTED,
    NEAR_SECONDS,
    OOM_KILLED,
    SIGKILLED,
    Diagnosis,
    Evidence,
    Fact,
    Need,
)
from kubectl_qos.qos.reason import Confidence, Mechanism

_ENDED: Final = "kube_pod_container_status_last_terminated_"
_LIMITS: Final = "kube_pod_container_resource_limits"
STEPS: Final = 1_440
"""Of the queries for deaths: a minute each for a day."""
_LEAST_STEP: Final = 60
_DAY: Final = 86_400
_BEFORE: Final = "10m"
_NEAR_LIMIT: Final = 0.9
"""A container that was seen to use less of its limit may have died of something else."""
_MOST_PEAKS: Final = 30


@dataclass
class _End:
    """What series say of an end of a container, or with an empty name of a pod; `at` is 0 if unknown."""

    key: ContainerKey
    seen: float
    at: float = 0.0
    reason: str = ""
    exit_code: int | None = None
    oom_kills: int = 0

    @property
    def is_of_memory(self) -> bool:
        """Whether memory may explain it."""
        return self.reason in {OOM_KILLED, EVICTED} or self.exit_code == SIGKILLED or self.oom_kills > 0


def read_kills(store: Prometheus, start: float, end: float) -> list[Kill]:
    """The deaths that memory may explain between two Unix times, the newest first. Raises QosError.

    Where kube-state-metrics does not export the time it is as exact as the step: a minute for a day. cAdvisor
    drops a counter together with its container, so that it shows kills that a container survived.
    """
    step = max(_LEAST_STEP, round((end - start) / STEPS))
    ends = [one for one in _read_ends(store, start, end, step) if one.is_of_memory]
    ends.sort(key=lambda one: -one.seen)
    if not ends:
        return []
    over = f"[{round(end - start)}s]"
    infos = store.query(f"last_over_time({select(store, [INFO])}{over})", end)
    nodes = {pod_of(one.labels): label(one.labels, NODE[:2]) for one in infos}
    limits: dict[ContainerKey, float] = {}
    for series in (select(store, [_LIMITS], 'resource="memory"'), select(store, [f"{_LIMITS}_memory_bytes"])):
        limits |= by_container(store.query(f"max by ({BY}) (max_over_time({series}{over}))", end))
    memory = f"max by ({BY}) (max_over_time({select(store, [WORKING_SET], CONTAINERS)}[{_BEFORE}]))"
    times = dict.fromkeys([one.seen for one in ends if one.key in limits][:_MOST_PEAKS])
    peaks = {at: by_container(store.query(memory, at)) for at in times}
    return [
        _kill(
            one,
            nodes.get(one.key[0], ""),
            limits.get(one.key),
            peaks.get(one.seen, {}).get(one.key),
            store.name,
        )
        for one in ends
    ]


def with_older(found: Sequence[Kill], older: Iterable[Kill], seconds: int) -> list[Kill]:
    """Deaths with those that `read_kills` has read of so many seconds, which no status has any more.

    They replace a death whose status knows no time or no mechanism.
    """
    known: dict[tuple[str, str, str], list[Kill]] = {}
    for kill in found:
        known.setdefault((kill.namespace, kill.pod, kill.container), []).append(kill)
    kills = list(found)
    for kill in older:
        near = timedelta(seconds=NEAR_SECONDS + (2 * seconds / STEPS if kill.time_is_estimated else 0))
        moment = parse_time(kill.time)
        for same in known.get((kill.namespace, kill.pod, kill.container), ()):
            time = parse_time(same.time)
            if time is None or moment is None or abs(time - moment) <= near:
                if time is not None and same.diagnosis.mechanism is not Mechanism.UNKNOWN:
                    break
                kills.remove(same)
        else:
            kills.append(kill)
    return sorted(kills, key=newest_first)


class Track(NamedTuple):
    """The last hours that a store has, as Unix times, and who died in them, the oldest first."""

    begin: float
    end: float
    kills: tuple[Kill, ...] = ()


def read_track(store: Prometheus, end: float) -> Track:
    """At most a day until a Unix time, from the first time at which pods are known. Raises QosError."""
    begin = end - _DAY
    known = store.query_range(f"count({select(store, [INFO])})", begin, end, _DAY / 96)
    begin = min((at for series in known for at, _ in series.points), default=begin)
    return Track(begin, end, tuple(reversed(read_kills(store, begin, end))))


def _read_ends(store: Prometheus, start: float, end: float, step: int) -> list[_End]:
    """The ends of containers, at the points of range queries at which something has changed."""
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
    for labels, one, _ in points(
        f"({select(store, [_ENDED + 'reason'])} == 1) and ignoring(reason) {restarted}"
    ):
        one.reason = labels.get("reason", "")
    for _, one, value in points(f"{select(store, [_ENDED + 'exitcode'])} and {restarted}"):
        one.exit_code = int(value)
    for _, one, value in points(f"{select(store, [_ENDED + 'timestamp'])} and {restarted}"):
        one.at = value
    evicted = select(store, ["kube_pod_status_reason"], f'reason="{EVICTED}"')
    for _, one, _ in points(f"({evicted} == 1) unless ({evicted} offset {step}s == 1)"):
        one.reason = EVICTED
    known = list(ends.values())
    for _, one, value in points(f"max by ({BY}) {risen('container_oom_events_total', CONTAINERS)}"):
        near = (each for each in known if each.key == one.key and abs(each.seen - one.seen) <= 2 * step)
        next(near, one).oom_kills += round(value)
    return list(ends.values())


def _kill(one: _End, node: str, limit: float | None, peak: float | None, title: str) -> Kill:
    (namespace, pod), container = one.key
    time = rfc3339(one.at or one.seen)
    return Kill(
        diagnosis=_diagnosis(one, limit, peak, title, time),
        time=time,
        time_is_estimated=not one.at,
        namespace=namespace,
        pod=pod,
        container=container,
        node=node,
        exit_code=one.exit_code,
        reason=one.reason,
    )


def _diagnosis(one: _End, limit: float | None, peak: float | None, title: str, time: str) -> Diagnosis:
    """The evidence of the series: they name no mechanism, so that none of it is certain."""
    if one.reason == EVICTED:
        evidence = [Evidence(Fact.POD_ENDED, {"reason": EVICTED, "message": ""}, time)]
        return Diagnosis(Mechanism.EVICTION, Confidence.POSSIBLE, tuple(evidence))
    evidence = []
    if one.reason or one.exit_code is not None:
        details = {"state": "lastState", "exit_code": one.exit_code, "reason": one.reason}
        evidence.append(Evidence(Fact.ENDED, details, time))
    if one.reason == OOM_KILLED:
        evidence.append(Evidence(Fact.OOM_KILLED))
    if one.oom_kills:
        evidence.append(Evidence(Fact.OOM_EVENTS, {"count": one.oom_kills}))
    is_oom = one.reason == OOM_KILLED or one.oom_kills > 0
    evidence.append(
        Evidence(Fact.NO_LIMIT) if limit is None else Evidence(Fact.OWN_LIMIT, {"limit_bytes": limit})
    )
    if peak is not None:
        evidence.append(Evidence(Fact.PEAK, {"bytes": round(peak), "title": title}))
    is_near = limit is not None and (peak is None or peak >= _NEAR_LIMIT * limit)
    mechanism = Mechanism.CONTAINER_LIMIT if is_near else Mechanism.NODE if is_oom else Mechanism.UNKNOWN
    confidence = Confidence.LIKELY if is_oom and is_near and peak is not None else Confidence.POSSIBLE
    return Diagnosis(mechanism, confidence, tuple(evidence), Need.KERNEL_LOG)
