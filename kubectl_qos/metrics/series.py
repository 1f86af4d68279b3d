"""PromQL for the memory of containers, now and over a time range.

A scrape without honor_labels renames labels of the target's series, such as pod to exported_pod. past.py
rebuilds pods and nodes of the past. Sources: cadvisor/metrics/prometheus.go, and docs/metrics of
kube-state-metrics.
"""

import time
from array import array
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final, NamedTuple

import msgspec
from msgspec import structs

from kubectl_qos.errors import QosError
from kubectl_qos.k8s.snapshot import Missing, Usage
from kubectl_qos.k8s.usage import (
    NO_HISTORY,
    ContainerHistory,
    ContainerKey,
    ContainerUsage,
    History,
    MemoryParts,
    PodKey,
    PodUsage,
    Pressure,
    Psi,
    PsiData,
    UsageOrigin,
)
from kubectl_qos.metrics.prometheus import Labels, Prometheus, Sample

NAMESPACE: Final = ("exported_namespace", "namespace")
POD: Final = ("exported_pod", "pod")
CONTAINER: Final = ("exported_container", "container")
NODE: Final = ("exported_node", "node", "kubernetes_io_hostname", "instance")
_CONTAINER_LABELS: Final = ",".join((*NAMESPACE, *POD, *CONTAINER, "cluster"))
BY: Final = ",".join((_CONTAINER_LABELS, *NODE))
"""The labels that identify a series. Labels of Prometheus' replicas, jobs and old cgroups are dropped."""

INFO: Final = "kube_pod_info"
WORKING_SET: Final = "container_memory_working_set_bytes"
_PARTS: Final = (
    *("container_memory_usage_bytes", "container_memory_rss", "container_memory_cache"),
    *("container_memory_total_active_file_bytes", "container_memory_total_inactive_file_bytes"),
)
_SWAP: Final = "container_memory_swap"
_MEMORY: Final = (WORKING_SET, "container_memory_rss", _SWAP)
CONTAINERS: Final = 'container!="POD",id!="/"'
KEPT_SECONDS: Final = 300.0
"""How long a history, or its refusal, is kept: it changes slowly, and is expensive for the store."""
_ROOT: Final = 'id="/"'
_PSI: Final = "container_pressure_memory_{}_seconds_total"
_PSI_SECONDS: Final = 120
"""The window of rate(), which needs two scrapes in it, so avg10 cannot be computed.

These two minutes have 86 % of the weight of the kernel's avg60.
"""
_HOUR: Final = 3600
_DAY: Final = 86_400
_POINTS: Final = 144
"""The points that growth is computed from: one for every ten minutes of a day."""
_STEPS: Final = 32
"""The steps of a drawn line: 45 minutes each for a day."""
_LEAST_POINTS: Final = 6
_FALL: Final = 0.8
"""Memory below this share of its last value was freed, or its container restarted: a new line begins."""
_STRAIGHT: Final = 0.9
"""The least coefficient of determination for which memory is said to grow along a line."""
_MUCH_THROTTLED: Final = 0.1
"""The share of the last hour's CPU periods below which throttling is not reported: it only slows bursts."""
_LEAST_GROWTH: Final = 0.05


def label(labels: Labels, names: Iterable[str]) -> str:
    """Return the value of the first of these labels that a series has."""
    return next((labels[name] for name in names if labels.get(name)), "")


def pod_of(labels: Labels) -> PodKey:
    """Return the namespace and name of a series' pod."""
    return label(labels, NAMESPACE), label(labels, POD)


def container_of(labels: Labels) -> ContainerKey | None:
    """Return the container of a series; None for series of pods, pause containers and others."""
    key, name = pod_of(labels), label(labels, CONTAINER)
    return (key, name) if name and name != "POD" and key[1] else None


def select(store: Prometheus, names: Sequence[str], more: str = "") -> str:
    """Return the selector for the series of some metrics."""
    name = f'__name__=~"{"|".join(names)}"' if len(names) > 1 else f'__name__="{names[0]}"'
    return f"{{{','.join(filter(None, (name, more, store.matchers)))}}}"


class StoreUsage(NamedTuple):
    """Usage of pods and of whole nodes, and the names of nodes by address."""

    by_pod: dict[PodKey, PodUsage]
    by_node: dict[str, int]
    node_names: Mapping[str, str] = {}

    def node_name(self, labels: Labels) -> str:
        """Return the name of a series' node, also if its label is the node's address."""
        name = label(labels, NODE)
        host = name.rpartition(":")[0] or name  # an `instance` has a port
        return self.node_names.get(host, host)


def read_now(store: Prometheus, at: float | None = None) -> StoreUsage:
    """Read usage at a time, by default now. Raises QosError."""
    samples = _read_containers(store, _MEMORY, CONTAINERS, at)
    moment = time.time() if at is None else at
    by_name = {name: by_container(item for item in samples if item.name == name) for name in _MEMORY}
    return read_nodes(store, at)._replace(by_pod=_usage(by_name, rfc3339(moment)))


def node_usage_query(store: Prometheus, over: str = "") -> str:
    """Return the query for the usage of nodes, or for its maximum `over` a range such as `[10m]`."""
    series = select(store, [WORKING_SET], _ROOT)
    return f"max by ({BY}) ({f'max_over_time({series}{over})' if over else series})"


def read_nodes(store: Prometheus, at: float | None, over: str = "") -> StoreUsage:
    """Read only the usage of nodes, or its maximum `over` a range such as `[10m]`. Raises QosError."""
    roots = store.query(node_usage_query(store, over), at)
    infos = store.query(select(store, ["kube_node_info"]), at)
    by_ip = {ip: label(info.labels, NODE) for info in infos if (ip := info.labels.get("internal_ip"))}
    nodes = StoreUsage({}, {}, by_ip)
    nodes.by_node.update({name: int(root.value) for root in roots if (name := nodes.node_name(root.labels))})
    return nodes


def _read_containers(store: Prometheus, names: Sequence[str], which: str, at: float | None) -> list[Sample]:
    """Read the values of each container's newest cgroup; stores still return the old one for five minutes."""
    series, with_id = select(store, names, which), f'{which},container!="",id!=""'
    samples = store.query(f"max by (__name__,{BY}) ({series})", at)
    cgroups = select(store, [WORKING_SET], with_id)
    starts = select(store, ["container_start_time_seconds"], with_id)
    has_several = f"count by ({_CONTAINER_LABELS}) ({cgroups}) > 1"
    if not store.query(has_several, at):
        return samples
    max_by_id, of_these = f"max by ({BY},id)", f"and on ({_CONTAINER_LABELS}) ({has_several})"
    started = store.query(f"({max_by_id} ({starts}) or {max_by_id} (timestamp({cgroups}))) {of_these}", at)
    started.sort(key=lambda sample: sample.value)
    newest = {container_of(sample.labels): sample.labels.get("id") for sample in started}
    by_cgroup = store.query(f"max by (__name__,{BY},id) ({series} {of_these})", at)
    return [
        *(sample for sample in samples if container_of(sample.labels) not in newest),
        *(item for item in by_cgroup if item.labels.get("id") == newest.get(container_of(item.labels), "")),
    ]


def read_pressure(
    store: Prometheus, now: StoreUsage, usage: Mapping[PodKey, PodUsage], at: float | None = None
) -> tuple[dict[PodKey, PodUsage], dict[str, Pressure]]:
    """Return `usage` with the memory pressure of pods and containers, and that of nodes. Raises QosError."""
    waiting = _rates(store, "waiting", CONTAINERS, at)
    if not waiting:
        return dict(usage), {}
    # Few cgroups stall at all, so only those are read; the pressure of the others is 0.
    stalled = _rates(store, "stalled", CONTAINERS, at, " > 0")
    nodes = [_rates(store, name, _ROOT, at) for name in ("waiting", "stalled")]
    some, full = ({now.node_name(sample.labels): sample.value for sample in samples} for samples in nodes)
    levels, stalls = (
        {(pod_of(sample.labels), label(sample.labels, CONTAINER)): sample.value for sample in samples}
        for samples in (waiting, stalled)
    )

    def pressure_of(pod: PodKey, container: str = "") -> Pressure | None:
        key = pod, container
        return _pressure(levels[key], stalls.get(key, 0.0)) if key in levels else None

    pods = {
        key: msgspec.structs.replace(
            pod,
            amounts=tuple(
                amount._replace(pressure=pressure_of(key, name)) for name, amount in pod.containers
            ),
            details=msgspec.structs.replace(pod.details, pressure=pressure_of(key)),
        )
        for key, pod in usage.items()
    }
    return pods, {node: _pressure(value, full.get(node, 0.0)) for node, value in some.items() if node}


def with_parts(store: Prometheus, pod: PodKey, usage: PodUsage, at: float | None = None) -> PodUsage:
    """Add the parts of the memory of a pod's containers. Raises QosError.

    Shared memory is the part of cAdvisor's cache that is in no list of files. On cgroup v2 cAdvisor has no
    kernel memory, which is the remainder (container/libcontainer/handler.go).
    """
    namespace, name = (msgspec.json.encode(text).decode() for text in pod)
    which = f"{CONTAINERS},namespace={namespace},pod={name}"
    samples = _read_containers(store, (*_PARTS, _SWAP), which, at)
    values = {(container_of(item.labels), item.name): round(item.value) for item in samples}

    def parts(container: str) -> MemoryParts | None:
        whole, anon, cache, *files = (values.get(((pod, container), metric), -1) for metric in _PARTS)
        if min(whole, anon, cache, *files) < 0:
            return None
        swap, kernel = values.get(((pod, container), _SWAP)), max(whole - anon - cache, 0)
        return MemoryParts(anon, sum(files), max(cache - sum(files), 0), kernel, swap_bytes=swap)

    amended = tuple(amount._replace(parts=parts(name)) for name, amount in usage.containers)
    return msgspec.structs.replace(usage, amounts=amended)


def _rates(store: Prometheus, name: str, which: str, at: float | None, condition: str = "") -> list[Sample]:
    series = f"{select(store, [_PSI.format(name)], which)}[{_PSI_SECONDS}s]"
    return store.query(f"max by ({BY}) (rate({series})){condition}", at)


def _pressure(some: float, full: float) -> Pressure:
    psi = Psi(*(PsiData(avg60=min(round(100 * share, 2), 100.0)) for share in (some, full)))
    return Pressure(None, psi, None)


def rfc3339(at: datetime | float) -> str:
    """Format a time, or a Unix time, as the API does."""
    at = datetime.fromtimestamp(round(at), UTC) if isinstance(at, float | int) else at.astimezone(UTC)
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")


def by_container(samples: Iterable[Sample]) -> dict[ContainerKey, float]:
    """Return the largest value of each container."""
    values: dict[ContainerKey, float] = {}
    for sample in samples:
        key = container_of(sample.labels)
        if key is not None:
            values[key] = max(sample.value, values.get(key, 0.0))
    return values


def _usage(by_metric: Mapping[str, Mapping[ContainerKey, float]], timestamp: str) -> dict[PodKey, PodUsage]:
    """Return usage by pod; a container's RSS and swap are None if the store does not have them."""
    pods: dict[PodKey, dict[str, ContainerUsage]] = {}
    working_sets, *others = (by_metric[name] for name in _MEMORY)
    for key, value in working_sets.items():
        rss, swap = (int(amounts[key]) if key in amounts else None for amounts in others)
        pods.setdefault(key[0], {})[key[1]] = ContainerUsage(int(value), rss, swap)
    origin = UsageOrigin.PROMETHEUS
    return {key: PodUsage.of_containers(containers, origin, timestamp) for key, containers in pods.items()}


class UsageHistory:
    """Reads usage and its history repeatedly: `over_seconds` that end at a time, or now.

    With `stat`, usage is a statistic of that time range, else the last usage.
    """

    def __init__(self, store: Prometheus, over_seconds: int, stat: str = "", at: float | None = None) -> None:
        self._store, self._over, self._stat, self._at = store, over_seconds, stat, at
        self._kept: tuple[History, dict[PodKey, PodUsage], Missing | None, float] | None = None

    def read(self) -> Usage:
        """Read usage; errors of the store become reasons why usage is missing."""
        store = self._store
        try:
            now = read_now(store, self._at)
        except QosError as error:
            return Usage({}, Missing("memory usage", str(error), error.hint))
        if not now.by_pod:
            why = f"{store.name} has no {WORKING_SET} of containers"
            remedy = (
                "cAdvisor's metrics are those of kubelets at /metrics/cadvisor; --at may be before the first"
            )
            return Usage({}, Missing("memory usage", why, remedy), by_node=now.by_node)
        pressure: dict[str, Pressure] = {}
        if self._kept is None or time.monotonic() - self._kept[-1] > KEPT_SECONDS:
            self._kept = *self._longest_history(), time.monotonic()
        history, usage, missing, _ = self._kept
        usage = {**now.by_pod, **usage}
        try:
            usage, pressure = read_pressure(store, now, usage, self._at)
        except QosError as error:
            missing = missing or Missing("the memory pressure", str(error), error.hint)
        if missing is None and store.warnings:
            why = f"{store.name} warns: {'; '.join(store.warnings)}"
            missing = Missing("a part of the memory usage", why)
        history = structs.replace(history, now=now.by_pod)
        return Usage(usage, missing, pressure, now.by_node, history)

    def _longest_history(self) -> tuple[History, dict[PodKey, PodUsage], Missing | None]:
        """Read the requested history, or only its last day if the store refuses the whole as too much."""
        try:
            return *self._history(), None
        except QosError as error:
            refused = Missing("the history of memory usage", str(error), error.hint)
        if self._over <= _DAY:
            return NO_HISTORY, {}, refused
        last_day = UsageHistory(self._store, _DAY, self._stat, self._at)
        history, usage, missing = last_day._longest_history()
        what = f"the history of {_duration(self._over)} before its last day"
        return history, usage, missing or structs.replace(refused, what=what)

    def _history(self) -> tuple[History, dict[PodKey, PodUsage]]:
        end = self._store.now() if self._at is None else self._at
        peaks = self._over_time("max", end)
        p99 = self._amounts(WORKING_SET, "p99", end)
        lines, drawn = self._growth(end)
        # The share of the last hour's CPU periods in which limits throttled containers, if it is large.
        names = (f"container_cpu_cfs_{name}_total" for name in ("throttled_periods", "periods"))
        part, whole = (f"increase({select(self._store, [name], CONTAINERS)}[{_HOUR}s])" for name in names)
        much = self._store.query(f"max by ({BY}) ({part} / {whole}) > {_MUCH_THROTTLED}", end)
        throttled = by_container(much)
        containers = {
            (key, name): ContainerHistory(
                usage.kernel_bytes,
                int(p99[key, name]) if (key, name) in p99 else None,
                *lines.get((key, name), (0.0, False)),
                _duration(self._over),
                throttled.get((key, name), 0.0),
            )
            for key, pod in peaks.items()
            for name, usage in pod.containers
        }
        by_pod: dict[PodKey, PodUsage] = {}
        if self._stat:
            by_pod = peaks if self._stat == "max" else self._over_time(self._stat, end)
        return History(containers, {}, _duration(self._over), self._stat, drawn), by_pod

    def _over_time(self, stat: str, end: float) -> dict[PodKey, PodUsage]:
        return _usage({name: self._amounts(name, stat, end) for name in _MEMORY}, rfc3339(end))

    def _amounts(self, metric: str, stat: str, end: float) -> dict[ContainerKey, float]:
        series = f"{select(self._store, [metric], CONTAINERS)}[{self._over}s]"
        function = (
            f"quantile_over_time(0.{stat[1:]},{series})" if stat[0] == "p" else f"{stat}_over_time({series})"
        )
        return by_container(self._store.query(f"max by ({BY}) ({function})", end))

    def _growth(
        self, end: float
    ) -> tuple[dict[ContainerKey, tuple[float, bool]], Mapping[PodKey, Sequence[int]]]:
        """Return the growth of containers in bytes a second and whether it is a leak; `History.lines`."""
        seconds = min(self._over, _DAY)
        expression = f"max by ({BY}) ({select(self._store, [WORKING_SET], CONTAINERS)})"
        lines = self._store.query_range(expression, end - seconds, end, seconds / _POINTS)
        named = [(key, line.points) for line in lines if (key := container_of(line.labels)) is not None]
        grows = {key: line for key, points in named if (line := growth_line(points)) is not None}
        drawn: dict[PodKey, array[int]] = {}
        for (pod, _), points in named:
            # The last value of each step counts.
            steps = {_STEPS - 1 - int((end - at) * _STEPS / seconds): int(used) >> 10 for at, used in points}
            kib = drawn.setdefault(pod, array("Q", [0] * _STEPS))
            for step, used in steps.items():
                kib[max(step, 0)] += used
        return grows, drawn


def growth_line(points: Sequence[tuple[float, float]]) -> tuple[float, bool] | None:
    """Return the slope of the line through the values since the last fall, and whether it is a leak.

    None if the values are not along a line, by a least-squares fit. A leak has brought half of the memory in
    use over an hour or more.
    """
    falls = [index for index, (before, now) in enumerate(pairwise(points), 1) if now[1] < before[1] * _FALL]
    rise = points[falls[-1] if falls else 0 :]
    if len(rise) < _LEAST_POINTS:
        return None
    mean_time = sum(at for at, _ in rise) / len(rise)
    mean_value = sum(value for _, value in rise) / len(rise)
    # Sums of squares and of products, as of variance and covariance.
    times = sum((at - mean_time) ** 2 for at, _ in rise)
    values = sum((value - mean_value) ** 2 for _, value in rise)
    products = sum((at - mean_time) * (value - mean_value) for at, value in rise)
    slope, last = products / times, rise[-1][1]
    seconds = rise[-1][0] - rise[0][0]
    grown = slope * seconds
    if slope <= 0 or products**2 < _STRAIGHT * times * values or grown < _LEAST_GROWTH * last:
        return None
    return slope, seconds >= _HOUR and grown * 2 >= last


def _duration(seconds: int) -> str:
    for size, unit in ((_DAY, "d"), (_HOUR, "h"), (60, "m")):
        if seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
