"""A cluster as it was: a snapshot rebuilt from kube-state-metrics and cAdvisor, and deaths over a time.

What a store does not have is listed as missing and not guessed. Sources: docs/metrics of kube-state-metrics,
v1 (a metric for each resource) and v2 (a label). Not here: asking (prometheus.py), usage (series.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from kubectl_qos.errors import InputError
from kubectl_qos.k8s.objects import CPU, MEMORY, NodeObject, Pod, convert
from kubectl_qos.k8s.snapshot import NO_USAGE, Missing, Snapshot
from kubectl_qos.k8s.usage import ContainerKey, PodKey
from kubectl_qos.metrics.prometheus import Labels, Prometheus, Sample
from kubectl_qos.metrics.series import (
    BY,
    CONTAINERS,
    NODE,
    WORKING_SET,
    UsageHistory,
    by_container,
    container_of,
    label,
    pod_of,
    select,
)
from kubectl_qos.qos.kills.analyze import Kill
from kubectl_qos.qos.kills.evidence import (
    EVICTED,
    OOM_KILLED,
    SIGKILLED,
    Diagnosis,
    Evidence,
    Fact,
    Need,
)
from kubectl_qos.qos.reason import Confidence, Mechanism

_INFO: Final = "kube_pod_info"
_AMOUNTS: Final = (
    _INFO,
    "kube_pod_container_info",
    "kube_pod_init_container_info",
    "kube_pod_(init_)?container_resource_(requests|limits)(_memory_bytes|_cpu_cores)?",
    "kube_pod_overhead_memory_bytes",
    "kube_pod_created",
    "kube_pod_(init_)?container_status_restarts_total",
    "kube_pod_container_status_last_terminated_(exitcode|timestamp)",
    "kube_node_info",
    "kube_node_status_(capacity|allocatable)(_memory_bytes|_cpu_cores)?",
)
_STATES: Final = (
    "kube_pod_status_(phase|qos_class|reason)",
    "kube_pod_restart_policy",
    "kube_pod_(init_)?container_status_(waiting|terminated)(_reason)?",
    "kube_pod_container_status_last_terminated_reason",
    "kube_node_status_condition",
)
"""Those whose value is 1 for what is so."""
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
        """A container, which may have been unknown."""
        return (self.init if is_init else self.containers).setdefault(name, {"name": name, "resources": {}})

    def container_status(self, name: str) -> dict[str, Any]:
        """The status of a container."""
        return self.statuses.setdefault(name, {"name": name})

    def last_end(self, name: str) -> dict[str, Any]:
        """How a container's last run ended."""
        state: dict[str, dict[str, Any]] = self.container_status(name).setdefault("lastState", {})
        return state.setdefault("terminated", {})

    def pod(self) -> Pod:
        """The pod; a run that ended without a known reason has not ended."""
        for status in self.statuses.values():
            if "reason" not in status.get("lastState", {}).get("terminated", {"reason": ""}):
                del status["lastState"]
        of_init = [one for name, one in self.statuses.items() if name in self.init]
        others = [one for name, one in self.statuses.items() if name not in self.init]
        return convert(
            {
                "metadata": {"name": self.name, "namespace": self.namespace, **self.metadata},
                "spec": {
                    "containers": list(self.containers.values()),
                    "initContainers": list(self.init.values()),
                    **self.spec,
                },
                "status": {"containerStatuses": others, "initContainerStatuses": of_init, **self.status},
            },
            Pod,
        )

    def node(self) -> NodeObject:
        """The node."""
        return convert({"metadata": {"name": self.name}, "status": self.status}, NodeObject)


def read_snapshot(store: Prometheus, at: datetime, over_seconds: int, stat: str, *, usage: bool) -> Snapshot:
    """The cluster at a time; `usage` is whether its memory is read. Raises QosError without its pods."""
    moment = at.timestamp()
    found = store.query(select(store, _AMOUNTS), moment)
    found += store.query(f"{select(store, _STATES)} == 1", moment)
    pods, nodes = _Builder().build(found)
    if not pods:
        raise InputError(
            f"{store.name} has no {_INFO} at {rfc3339(at)}",
            hint="kube-state-metrics was not scraped then, the store does not go back so far, or a"
            " --prometheus-selector leaves it out",
        )
    read = UsageHistory(store, over_seconds, stat, moment).read() if usage else NO_USAGE
    return Snapshot(
        pods=tuple(pod for raw in pods if (pod := raw.pod()).containers or pod.is_terminal),
        nodes={raw.name: raw.node() for raw in nodes if "capacity" in raw.status},
        usage=read.by_pod,
        node_usage=read.by_node,
        missing=(*_missing(pods, nodes), *((read.missing,) if read.missing is not None else ())),
        history=read.history,
        at=rfc3339(at),
    )


def rfc3339(at: datetime) -> str:
    """A time as the API writes it."""
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _missing(pods: Sequence[_Raw], nodes: Sequence[_Raw]) -> Iterator[Missing]:
    yield _NOT_STORED
    classes = {raw.spec.get("priorityClassName", "") for raw in pods}
    unknown = sorted(classes - _PRIORITIES.keys())
    if unknown:
        names = ", ".join(unknown[:5])
        yield Missing(f"the value of priority class {names}", "no metric has it", "0 is assumed")
    if not any("resources" in one and one["resources"] for raw in pods for one in raw.containers.values()):
        yield Missing("requests and limits", "the store has none at that time", _SOURCE)
    without = [raw.name for raw in nodes if "capacity" not in raw.status]
    if without or not nodes:
        yield Missing(
            f"the capacity of {', '.join(without[:5]) or 'nodes'}", "the store has none then", _SOURCE
        )


class _Builder:
    """Puts pods and nodes together, a series at a time."""

    def __init__(self) -> None:
        self._pods: dict[PodKey, _Raw] = {}
        self._nodes: dict[str, _Raw] = {}

    def build(self, found: Iterable[Sample]) -> tuple[list[_Raw], list[_Raw]]:
        """Those that kube-state-metrics has; series may come in any order."""
        samples = list(found)
        for sample in samples:
            if sample.labels["__name__"] == _INFO:
                self._add_pod(sample.labels)
        for sample in samples:
            name = sample.labels["__name__"]
            if name.startswith("kube_node_"):
                self._add_to_node(name, sample)
            elif (raw := self._pods.get(pod_of(sample.labels))) is not None:
                container = container_of(sample.labels)
                if container is not None and "container_" in name:
                    self._add_to_container(raw, container[1], name, sample)
                else:
                    _add_to_pod(raw, name, sample)
        return list(self._pods.values()), list(self._nodes.values())

    def _add_pod(self, labels: Labels) -> None:
        key = pod_of(labels)
        raw = self._pods[key] = _Raw(key[1], key[0])
        uid, kind, owner = labels.get("uid", ""), labels.get("created_by_kind"), labels.get("created_by_name")
        raw.metadata["uid"] = uid
        raw.spec["nodeName"] = label(labels, NODE[:2])
        raw.spec["priorityClassName"] = labels.get("priority_class", "")
        raw.spec["priority"] = _PRIORITIES.get(labels.get("priority_class", ""), 0)
        if kind == "Node":
            raw.metadata["annotations"] = {"kubernetes.io/config.mirror": uid or key[1]}
        elif kind and owner and "<none>" not in {kind, owner}:
            raw.metadata["ownerReferences"] = [{"kind": kind, "name": owner, "controller": True}]

    @staticmethod
    def _add_to_container(raw: _Raw, container: str, name: str, sample: Sample) -> None:
        labels, is_init = sample.labels, "_init_" in name
        if name.endswith("container_info"):
            found = raw.container(container, is_init=is_init)
            if labels.get("restart_policy"):
                found["restartPolicy"] = labels["restart_policy"]
            raw.container_status(container)["containerID"] = labels.get("container_id", "")
        elif "_resource_" in name:
            side = "requests" if "_requests" in name else "limits"
            resource = _resource(name, labels)
            if resource is not None:
                found = raw.container(container, is_init=is_init)["resources"]
                found.setdefault(side, {})[resource] = _quantity(resource, sample.value)
        elif name.endswith("restarts_total"):
            raw.container_status(container)["restartCount"] = int(sample.value)
        elif "_last_terminated_" in name:
            field_name, value = _end(name, sample)
            raw.last_end(container)[field_name] = value
        else:
            state = raw.container_status(container).setdefault("state", {})
            found = state.setdefault("waiting" if "_waiting" in name else "terminated", {})
            found |= {"reason": labels["reason"]} if labels.get("reason") else {}

    def _add_to_node(self, name: str, sample: Sample) -> None:
        labels = sample.labels
        node = label(labels, NODE[:2])
        raw = self._nodes.setdefault(node, _Raw(node))
        if name == "kube_node_info":
            raw.status["nodeInfo"] = {
                "kubeletVersion": labels.get("kubelet_version", ""),
                "kernelVersion": labels.get("kernel_version", ""),
                "osImage": labels.get("os_image", ""),
                "containerRuntimeVersion": labels.get("container_runtime_version", ""),
                "operatingSystem": "windows" if "windows" in labels.get("os_image", "").lower() else "linux",
            }
        elif name == "kube_node_status_condition":
            condition = {"type": labels.get("condition", ""), "status": labels.get("status", "").capitalize()}
            raw.status.setdefault("conditions", []).append(condition)
        elif (resource := _resource(name, labels)) is not None:
            side = "capacity" if "_capacity" in name else "allocatable"
            raw.status.setdefault(side, {})[resource] = _quantity(resource, sample.value)


def _end(name: str, sample: Sample) -> tuple[str, object]:
    """A field of how a container's last run ended."""
    if name.endswith("reason"):
        return "reason", sample.labels.get("reason", "")
    if name.endswith("exitcode"):
        return "exitCode", int(sample.value)
    return "finishedAt", rfc3339(datetime.fromtimestamp(sample.value, UTC))


def _add_to_pod(raw: _Raw, name: str, sample: Sample) -> None:
    labels = sample.labels
    if name == "kube_pod_status_phase":
        raw.status["phase"] = labels.get("phase", "")
    elif name == "kube_pod_status_qos_class":
        raw.status["qosClass"] = labels.get("qos_class", "")
    elif name == "kube_pod_status_reason":
        raw.status["reason"] = labels.get("reason", "")
    elif name == "kube_pod_restart_policy":
        raw.spec["restartPolicy"] = labels.get("type", "")
    elif name == "kube_pod_created":
        raw.metadata["creationTimestamp"] = rfc3339(datetime.fromtimestamp(sample.value, UTC))
    elif name == "kube_pod_overhead_memory_bytes":
        raw.spec["overhead"] = {MEMORY: _quantity(MEMORY, sample.value)}


def _resource(name: str, labels: Labels) -> str | None:
    """The resource of a series: by its name (v1) or its label (v2); None for those that do not matter."""
    if name.endswith("_memory_bytes"):
        return MEMORY
    if name.endswith("_cpu_cores"):
        return CPU
    resource = labels.get("resource", "")
    return resource if resource in {CPU, MEMORY} else None


def _quantity(resource: str, value: float) -> str:
    return str(round(value)) if resource == MEMORY else f"{round(value * 1000)}m"


# -- deaths over a time -------------------------------------------------------------------------------------

_ENDED: Final = "kube_pod_container_status_last_terminated_"
_LIMITS: Final = "kube_pod_container_resource_limits"
STEPS: Final = 1_440
"""Of the queries for deaths: a minute each for a day."""
_LEAST_STEP: Final = 60
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
    ends = sorted(
        filter(lambda one: one.is_of_memory, _read_ends(store, start, end, step)), key=_newest_first
    )
    if not ends:
        return []
    over = f"[{round(end - start)}s]"
    infos = store.query(f"last_over_time({select(store, [_INFO])}{over})", end)
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


def _newest_first(one: _End) -> float:
    return -one.seen


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
    time = rfc3339(datetime.fromtimestamp(one.at or one.seen, UTC))
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
