"""The past by a store of metrics: a cluster as it was, and deaths that are older than any status.

The snapshot of a time is rebuilt from kube-state-metrics and cAdvisor; what a store does not have is listed
as missing, not guessed. Deaths are restarts with their last reason, evicted pods, and OOM kills that cAdvisor
counted. prometheus.py is the client, series.py reads usage, qos/kills has the deaths in statuses, events and
kernel logs. Source: docs/metrics of kube-state-metrics 2.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from kubectl_qos.errors import InputError
from kubectl_qos.k8s.events import Event, is_of_node_memory
from kubectl_qos.k8s.objects import CPU, MEMORY, NodeObject, Pod, convert
from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.k8s.snapshot import NO_USAGE, Missing, Snapshot
from kubectl_qos.k8s.usage import ContainerKey
from kubectl_qos.metrics.prometheus import Labels, Prometheus, Sample
from kubectl_qos.metrics.series import (
    BY,
    CONTAINERS,
    INFO,
    NODE,
    WORKING_SET,
    UsageHistory,
    container_of,
    label,
    node_usage_query,
    pod_of,
    read_nodes,
    rfc3339,
    select,
)
from kubectl_qos.qos.killers import BY_RANK, EVICTING, Mechanism
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

_AMOUNTS: Final = (
    INFO,
    "kube_pod_container_info",
    "kube_pod_init_container_info",
    "kube_pod_(init_)?container_resource_(requests|limits)",
    "kube_pod_overhead_memory_bytes",
    "kube_pod_created",
    "kube_pod_(init_)?container_status_restarts_total",
    "kube_pod_container_status_last_terminated_(exitcode|timestamp)",
    "kube_node_info",
    "kube_node_status_(capacity|allocatable)",
)
_RESOURCES: Final = (CPU, MEMORY)
_LABELS: Final = ("kube_pod_labels", "kube_node_labels")
_STATES: Final = (
    "kube_pod_status_(phase|qos_class|reason)",
    "kube_pod_restart_policy",
    "kube_pod_(init_)?container_status_(waiting|terminated)(_reason)?",
    "kube_pod_container_status_last_terminated_reason",
    "kube_node_status_condition",
)
"""Series whose value is 1 for the current state."""
_PRIORITIES: Final = {"": 0, "system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_NOT_STORED: Final = Missing(
    "what no metric has",
    "volumes, pod-level resources, swap behaviour, kubelet settings",
    "defaults of the release are assumed",
)
_SOURCE: Final = "kube-state-metrics 2 has them, if it was scraped then"


@dataclass
class _Raw:
    """A pod or node as the API would have had it, put together from series."""

    name: str
    namespace: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=dict)
    status: dict[str, Any] = field(default_factory=dict)
    containers: dict[str, dict[str, Any]] = field(default_factory=dict)
    init: dict[str, dict[str, Any]] = field(default_factory=dict)
    statuses: dict[str, dict[str, Any]] = field(default_factory=dict)

    def container(self, name: str, *, is_init: bool) -> dict[str, Any]:
        """Return a container, which is added if it is unknown."""
        return (self.init if is_init else self.containers).setdefault(name, {"name": name, "resources": {}})

    def container_status(self, name: str) -> dict[str, Any]:
        """Return the status of a container."""
        return self.statuses.setdefault(name, {"name": name})

    def pod(self) -> Pod:
        """Return the pod; a run that ended without a known reason has not ended."""
        for status in self.statuses.values():
            ended = status.get("lastState", {}).get("terminated")
            if ended is not None and "reason" not in ended:
                del status["lastState"]
        of_init = [status for name, status in self.statuses.items() if name in self.init]
        others = [status for name, status in self.statuses.items() if name not in self.init]
        containers, init = [*self.containers.values()], [*self.init.values()]
        return convert(
            {
                "metadata": {"name": self.name, "namespace": self.namespace, **self.metadata},
                "spec": {"containers": containers, "initContainers": init, **self.spec},
                "status": {"containerStatuses": others, "initContainerStatuses": of_init, **self.status},
            },
            Pod,
        )

    def node(self) -> NodeObject:
        """Return the node."""
        metadata = {"name": self.name, **self.metadata}
        return convert({"metadata": metadata, "status": self.status}, NodeObject)


def read_snapshot(
    store: Prometheus, at: datetime, over_seconds: int, stat: str, *, usage: bool, keys: Collection[str] = ()
) -> Snapshot:
    """Read the cluster at a time; without `usage` not its memory. `keys` are those of labels that select.

    Raises QosError without its pods, and InputError if no object has a label of such a key.
    """
    moment = at.timestamp()
    samples = store.query(select(store, (*_AMOUNTS, *(_LABELS if keys else ()))), moment)
    samples += store.query(f"{select(store, _STATES)} == 1", moment)
    pods, nodes = _build(samples, keys)
    if not pods:
        raise InputError(
            f"{store.name} has no {INFO} at {rfc3339(at)}",
            hint=(
                "kube-state-metrics was not scraped then, the store does not go back that far, or"
                " --prometheus-selector excludes it"
            ),
        )
    stored = {key for raw in (*pods, *nodes) for key in raw.metadata.get("labels", ())}
    if unknown := sorted(set(keys) - stored):
        raise InputError(
            f"{store.name} has no label {unknown[0]} of pods or nodes at {rfc3339(at)}",
            hint="kube-state-metrics exports those of --metric-labels-allowlist; -n, --node and names select"
            " too",
        )
    read = UsageHistory(store, over_seconds, stat, moment).read() if usage else NO_USAGE
    return Snapshot(
        pods=tuple(pod for raw in pods if (pod := raw.pod()).containers or pod.is_terminal),
        nodes={raw.name: raw.node() for raw in nodes if "capacity" in raw.status},
        usage=read.by_pod,
        node_usage=read.by_node,
        pressure=read.pressure,
        missing=(*_missing(pods, nodes), *((read.missing,) if read.missing is not None else ())),
        history=read.history,
        at=rfc3339(at),
    ).with_missing_releases()


def _missing(pods: Sequence[_Raw], nodes: Sequence[_Raw]) -> Iterator[Missing]:
    yield _NOT_STORED
    classes = {raw.spec.get("priorityClassName", "") for raw in pods}
    unknown = sorted(classes - _PRIORITIES.keys())
    if unknown:
        names = ", ".join(unknown[:5])
        yield Missing(f"the value of priority class {names}", "no metric has it", "0 is assumed")
    containers = (container for raw in pods for container in raw.containers.values())
    if not any(container.get("resources") for container in containers):
        yield Missing("requests and limits", "the store has none at that time", _SOURCE)
    without = [raw.name for raw in nodes if "capacity" not in raw.status]
    if without or not nodes:
        what = f"the capacity of {', '.join(without[:5]) or 'nodes'}"
        yield Missing(what, "the store has none then", _SOURCE)


def _build(samples: Sequence[Sample], keys: Collection[str]) -> tuple[list[_Raw], list[_Raw]]:
    """Return the pods and nodes that kube-state-metrics has; series may come in any order."""
    # kube-state-metrics spells label names as Prometheus takes them (internal/store/utils.go).
    key_by_label = {f"label_{_snake(key)}": key for key in keys}
    pods = {pod_of(sample.labels): _pod(sample.labels) for sample in samples if sample.name == INFO}
    nodes: dict[str, _Raw] = {}
    for sample in samples:
        name, labels, raw = sample.name, sample.labels, pods.get(pod_of(sample.labels))
        if name.startswith("kube_node_"):
            node = label(labels, NODE[:2])
            raw = nodes.setdefault(node, _Raw(node))
        if raw is None:
            continue
        container = container_of(labels)
        if name in _LABELS:
            own = {key: labels[metric] for metric, key in key_by_label.items() if metric in labels}
            raw.metadata["labels"] = own
        elif name.startswith("kube_node_"):
            _add_to_node(raw, sample)
        elif container is not None and "container_" in name:
            _add_to_container(raw, container[1], sample)
        elif name in _STATES_OF_PODS:
            part, field_name, of = _STATES_OF_PODS[name]
            getattr(raw, part)[field_name] = labels.get(of, "")
        elif name == "kube_pod_created":
            raw.metadata["creationTimestamp"] = rfc3339(sample.value)
        elif name == "kube_pod_overhead_memory_bytes":
            raw.spec["overhead"] = {MEMORY: _quantity(MEMORY, sample.value)}
    return list(pods.values()), list(nodes.values())


_STATES_OF_PODS: Final = {
    "kube_pod_status_phase": ("status", "phase", "phase"),
    "kube_pod_status_qos_class": ("status", "qosClass", "qos_class"),
    "kube_pod_status_reason": ("status", "reason", "reason"),
    "kube_pod_restart_policy": ("spec", "restartPolicy", "type"),
}
"""The part of a pod and its field that have the value of a label, by metric."""


def _pod(labels: Labels) -> _Raw:
    (namespace, name), uid, priority = pod_of(labels), labels.get("uid", ""), labels.get("priority_class", "")
    raw = _Raw(name, namespace, {"uid": uid}, {"nodeName": label(labels, NODE[:2])})
    raw.spec |= {"priorityClassName": priority, "priority": _PRIORITIES.get(priority, 0)}
    kind, owner = labels.get("created_by_kind"), labels.get("created_by_name")
    if kind == "Node":
        raw.metadata["annotations"] = {"kubernetes.io/config.mirror": uid or name}
    elif kind and owner and "<none>" not in {kind, owner}:
        raw.metadata["ownerReferences"] = [{"kind": kind, "name": owner, "controller": True}]
    return raw


def _add_to_container(raw: _Raw, container: str, sample: Sample) -> None:
    name, labels, is_init = sample.name, sample.labels, "_init_" in sample.name
    if name.endswith("container_info"):
        spec = raw.container(container, is_init=is_init)
        if labels.get("restart_policy"):
            spec["restartPolicy"] = labels["restart_policy"]
        raw.container_status(container)["containerID"] = labels.get("container_id", "")
    elif "_resource_" in name:
        side = "requests" if "_requests" in name else "limits"
        _add_amount(raw.container(container, is_init=is_init)["resources"], side, sample)
    elif name.endswith("restarts_total"):
        raw.container_status(container)["restartCount"] = int(sample.value)
    elif "_last_terminated_" in name:
        end = raw.container_status(container).setdefault("lastState", {}).setdefault("terminated", {})
        if name.endswith("reason"):
            end["reason"] = labels.get("reason", "")
        elif name.endswith("exitcode"):
            end["exitCode"] = int(sample.value)
        else:
            end["finishedAt"] = rfc3339(sample.value)
    else:
        state = raw.container_status(container).setdefault("state", {})
        details = state.setdefault("waiting" if "_waiting" in name else "terminated", {})
        details |= {"reason": labels["reason"]} if labels.get("reason") else {}


def _add_to_node(raw: _Raw, sample: Sample) -> None:
    labels = sample.labels
    if sample.name == "kube_node_info":
        raw.status["nodeInfo"] = {
            "kubeletVersion": labels.get("kubelet_version", ""),
            "kernelVersion": labels.get("kernel_version", ""),
            "osImage": labels.get("os_image", ""),
            "containerRuntimeVersion": labels.get("container_runtime_version", ""),
            "operatingSystem": "windows" if "windows" in labels.get("os_image", "").lower() else "linux",
        }
    elif sample.name == "kube_node_status_condition":
        condition = {"type": labels.get("condition", ""), "status": labels.get("status", "").capitalize()}
        raw.status.setdefault("conditions", []).append(condition)
    else:
        side = "capacity" if "_capacity" in sample.name else "allocatable"
        _add_amount(raw.status, side, sample)


def _add_amount(owner: dict[str, Any], side: str, sample: Sample) -> None:
    if (resource := sample.labels.get("resource")) in _RESOURCES:
        owner.setdefault(side, {})[resource] = _quantity(resource, sample.value)


def _snake(key: str) -> str:
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", re.sub(r"[^a-zA-Z0-9_]", "_", key)).lower()


def _quantity(resource: str, value: float) -> str:
    return str(round(value)) if resource == MEMORY else f"{round(value * 1000)}m"


_ENDED: Final = "kube_pod_container_status_last_terminated_"
_LIMITS: Final = "kube_pod_container_resource_limits"
_CAPACITY: Final = "kube_node_status_capacity"
_OF_MEMORY: Final = 'resource="memory"'
STEPS: Final = 1_440
"""The steps of the queries for deaths: a minute each for a day."""
_LEAST_STEP: Final = 60
_DAY: Final = 86_400
_BEFORE: Final = 600
"""Memory and pressure this many seconds before a death count as related."""
_NEAR: Final = 0.9
"""Memory seen at this share of its limit, or of its node, may have reached it between two samples."""
_MOST_PEAKS: Final = 30
_POINTS: Final = 96
"""The points of a day's track: one for every quarter of an hour."""
MOST_NODES: Final = 200
"""Above this many nodes, a day of memory would exceed 1 MB, so it is not read."""


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
    step, before = max(_LEAST_STEP, round((end - start) / STEPS)), f"[{_BEFORE}s]"
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
    pressure = select(store, ["kube_node_status_condition"], 'condition="MemoryPressure",status="true"')
    under_pressure: dict[str, list[float]] = {}
    for series in store.query_range(f"max_over_time({pressure}[{step}s]) == 1", start, end, step):
        under_pressure.setdefault(label(series.labels, NODE[:2]), []).extend(at for at, _ in series.points)
    for death in ends:
        pod, death.node = (death.key[0], ""), nodes.get(death.key[0], "")
        times = under_pressure.get(death.node, ())
        death.had_pressure = any(-step <= death.seen - at <= _BEFORE for at in times)
        own_limit, pod_limit = (round(limits.get(key, 0)) for key in (death.key, pod))
        death.limits = MemoryLimits(own_limit or None, pod_limit if 0 < pod_limit < UNLIMITED_BYTES else None)
        near = NEAR_SECONDS + (0 if death.at else 2 * step)
        of_node = (event for event in system_ooms if is_of_node_memory(event, death.node))
        death.system_ooms = [event for event in of_node if is_near(event, death.time, near)]
    for at in list(dict.fromkeys(death.seen for death in ends if death.reason != EVICTED))[:_MOST_PEAKS]:
        peaks = _largest(store, WORKING_SET, CONTAINERS, before, at)
        nodes_then = read_nodes(store, at, before).by_node.items()
        node_peaks = {node: (used, capacities[node]) for node, used in nodes_then if node in capacities}
        for death in (death for death in ends if death.seen == at):
            is_of_pod = death.limits.is_of_pod
            death.peak = peaks.get((death.key[0], "") if is_of_pod else death.key)
            death.node_peak = node_peaks.get(death.node)
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

    They replace a death whose status knows no time or no mechanism. A pod eviction matches all of the pod's
    containers.
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
        for series in store.query_range(node_usage_query(store), begin, end, _DAY / _POINTS):
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
    """Diagnose by the series: they say that a pod was evicted, but not why; no other end is certain."""
    if death.reason == EVICTED:
        evicted = Evidence(Fact.POD_ENDED, {"reason": EVICTED, "message": ""}, death.time)
        if death.had_pressure:
            pressure = Evidence(Fact.NODE_PRESSURE)
            return Diagnosis(Mechanism(EVICTING.id), Confidence.LIKELY, (evicted, pressure))
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
