"""A day of a cluster in which three pods die, as kube-state-metrics and cAdvisor would have been scraped.

On worker-1 the container of shop/api-0 leaks into its own limit; on worker-2 a spike of batch/crunch fills
the node; on worker-3 the kubelet evicts web/cache, where the kernel may choose another.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

MI = 1 << 20
GI = 1 << 30
HOUR = 3600
STEP = 120
"""Seconds between scrapes."""
DAY = 24 * HOUR

Value = Callable[[int], float | None]
"""What a series has at a second of that day; None where it is not scraped."""


@dataclass(frozen=True)
class Made:
    """A pod with one container; `used` is its memory, `dies` the second of its death, if it does."""

    namespace: str
    name: str
    node: str
    used: Value
    request: int = 0
    limit: int = 0
    priority_class: str = ""
    dies: int = DAY * 2
    evicted: bool = False


API_DIES, CRUNCH_DIES, CACHE_DIES = 6 * HOUR, 12 * HOUR, 18 * HOUR
LEAK_FROM = 124 * MI
THROTTLED = 0.4
"""The share of its CPU periods in which api-0 is throttled."""
WAITS, STALLS = 0.25, 0.125
"""The shares of time in which tasks of api-0 wait for memory before it dies, and in which all of them do."""


def leak(second: int) -> float:
    """From LEAK_FROM to 1Gi in six hours, and flat after its restart."""
    if second >= API_DIES:
        return LEAK_FROM
    return LEAK_FROM + (GI - LEAK_FROM) * second / API_DIES


def spike(second: int) -> float:
    """Small for hours, and in the last ten minutes all that there is."""
    if not CRUNCH_DIES - 600 <= second < CRUNCH_DIES:
        return 200 * MI
    return 200 * MI + 4.6 * GI * (second - CRUNCH_DIES + 600) / 600


def slow(second: int) -> float:
    """It fills what its node has left over hours."""
    return 3 * GI + 2.7 * GI * min(second, CACHE_DIES) / CACHE_DIES


def steady(size: float) -> Value:
    return lambda _: size


PODS = (
    Made("shop", "api-0", "worker-1", leak, 512 * MI, GI, dies=API_DIES),
    Made("shop", "db-0", "worker-1", steady(3 * GI), 4 * GI, 4 * GI),
    Made("batch", "crunch", "worker-2", spike, dies=CRUNCH_DIES),
    Made("shop", "db-1", "worker-2", steady(3 * GI), 4 * GI, 4 * GI),
    Made("web", "cache", "worker-3", slow, 5 * GI, dies=CACHE_DIES, evicted=True),
    Made("kube-system", "agent", "worker-3", steady(900 * MI), priority_class="system-cluster-critical"),
    Made("web", "front", "worker-3", steady(600 * MI), 700 * MI, priority_class="web-high"),
)
NODES = {"worker-1": "10.0.0.1", "worker-2": "10.0.0.2", "worker-3": "10.0.0.3"}
CAPACITY = 8 * GI
OWN = 500 * MI
"""What a node uses itself."""

Key = tuple[str, tuple[tuple[str, str], ...]]


def series() -> Iterator[tuple[Key, Value]]:
    """Every series of that day."""
    for pod in PODS:
        yield from _pod_series(pod)
    for node, address in NODES.items():
        mine = [pod for pod in PODS if pod.node == node]
        info = {"node": node, "internal_ip": address, "kubelet_version": "v1.36.2", "kernel_version": "6.1.0"}
        yield _state("kube_node_info", {**info, "os_image": "Debian 12"})
        pool = "large" if node == "worker-3" else "small"
        yield _state("kube_node_labels", {"node": node, "label_node_pool": pool})
        for side, size in (("capacity", CAPACITY), ("allocatable", CAPACITY - 100 * MI)):
            labels = {"node": node, "resource": "memory", "unit": "byte"}
            yield _key(f"kube_node_status_{side}", labels), steady(size)
        for status in ("true", "false"):
            labels = {"node": node, "condition": "MemoryPressure", "status": status}
            yield _key("kube_node_status_condition", labels), _pressure(node, is_true=status == "true")
        root = {"id": "/", "instance": f"{address}:10250", "job": "kubelet"}
        yield _key("container_memory_working_set_bytes", root), _sum_of(mine)


def _pressure(node: str, *, is_true: bool) -> Value:
    def value(second: int) -> float:
        under = node == "worker-3" and CACHE_DIES - 60 <= second < CACHE_DIES + 300
        return float(under is is_true)

    return value


def _sum_of(pods: list[Made]) -> Value:
    return lambda second: OWN + sum(_used(pod, second) or 0 for pod in pods)


def _used(pod: Made, second: int) -> float | None:
    return None if pod.evicted and second >= pod.dies else pod.used(second)


def _waited(share: float, second: int) -> float | None:
    return share * second if API_DIES - 600 <= second < API_DIES else None


def _share(pod: Made, share: float, second: int) -> float | None:
    used = _used(pod, second)
    return None if used is None else used * share


def _run_share(pod: Made, share: float, is_first: bool, second: int) -> float | None:
    """Of the first run of a container, or the one after its death: each has a cgroup of its own."""
    is_of_run = is_first if pod.evicted or second < pod.dies else not is_first
    return _share(pod, share, second) if is_of_run else None


def _is_ended(pod: Made, wanted: bool, second: int) -> float:
    return float((pod.evicted and second >= pod.dies) is wanted)


def _after(dies: int, value: int, second: int) -> float | None:
    return float(value) if second >= dies else None


def _pod_series(pod: Made) -> Iterator[tuple[Key, Value]]:
    of_pod = {"namespace": pod.namespace, "pod": pod.name, "uid": f"{pod.name}-uid"}
    of_container = {**of_pod, "container": "app"}

    def died(second: int) -> bool:
        return second >= pod.dies

    yield _state(
        "kube_pod_info",
        {
            **of_pod,
            "node": pod.node,
            "priority_class": pod.priority_class,
            "created_by_kind": "ReplicaSet",
            "created_by_name": "made",
        },
    )
    name = pod.name.rpartition("-")[0] or pod.name
    yield _state("kube_pod_labels", {**of_pod, "label_app_kubernetes_io_name": name})
    yield _state("kube_pod_container_info", {**of_container, "container_id": f"containerd://{pod.name}"})
    yield _state("kube_pod_restart_policy", {**of_pod, "type": "Always"})
    for phase, wanted in (("Running", False), ("Failed", True)):
        key = _key("kube_pod_status_phase", {**of_pod, "phase": phase})
        yield key, partial(_is_ended, pod, wanted)
    yield (
        _key("kube_pod_status_reason", {**of_pod, "reason": "Evicted"}),
        lambda second: float(pod.evicted and died(second)),
    )
    for side, size in (("requests", pod.request), ("limits", pod.limit)):
        if size:
            for resource, amount in (("memory", size), ("cpu", 0.1)):
                labels = {**of_container, "node": pod.node, "resource": resource}
                yield _key(f"kube_pod_container_resource_{side}", labels), steady(amount)
    restarts = 0 if pod.evicted else 1
    yield (
        _key("kube_pod_container_status_restarts_total", of_container),
        lambda second: float(restarts if died(second) else 0),
    )
    if not pod.evicted and pod.dies < DAY:
        for name, value in (("exitcode", 137), ("timestamp", pod.dies)):
            key = _key(f"kube_pod_container_status_last_terminated_{name}", of_container)
            yield key, partial(_after, pod.dies, value)
        yield (
            _key("kube_pod_container_status_last_terminated_reason", {**of_container, "reason": "OOMKilled"}),
            partial(_after, pod.dies, 1),
        )
    cadvisor = {
        "namespace": pod.namespace,
        "pod": pod.name,
        "container": "app",
        "id": f"/kubepods/pod{pod.name}/first",
        "instance": f"{NODES[pod.node]}:10250",
        "job": "kubelet",
    }
    if pod.name == "api-0":
        yield from _pressure_series(pod, cadvisor)
    for name, share in (("working_set_bytes", 1.0), ("rss", 0.98), ("swap", 0.0)):
        second = {**cadvisor, "id": f"/kubepods/pod{pod.name}/second"}
        yield _key(f"container_memory_{name}", cadvisor), partial(_run_share, pod, share, True)
        yield _key(f"container_memory_{name}", second), partial(_run_share, pod, share, False)
    yield (
        _key("container_oom_events_total", cadvisor),
        lambda second: float(died(second) and not pod.evicted),
    )


def _pressure_series(pod: Made, of_container: Mapping[str, str]) -> Iterator[tuple[Key, Value]]:
    """Of the container, its pod and its node; CPU of the container alone."""
    of_pod = {key: text for key, text in of_container.items() if key != "container"} | {"id": "/kubepods/pod"}
    root = {"id": "/", "instance": f"{NODES[pod.node]}:10250", "job": "kubelet"}
    sizes = {"usage_bytes": 980, "cache": 28, "total_active_file_bytes": 15, "total_inactive_file_bytes": 5}
    for name, size in sizes.items():
        yield _key(f"container_memory_{name}", of_container), steady(size * MI)
    for name, rate in (("periods", 10.0), ("throttled_periods", 10 * THROTTLED)):
        yield _key(f"container_cpu_cfs_{name}_total", of_container), partial(_waited, rate)
    for labels, part in ((of_container, 1.0), (of_pod, 0.8), (root, 0.4)):
        for name, share in (("waiting", WAITS * part), ("stalled", STALLS * part)):
            yield _key(f"container_pressure_memory_{name}_seconds_total", labels), partial(_waited, share)


def _key(name: str, labels: Mapping[str, str]) -> Key:
    return name, tuple(labels.items())


def _state(name: str, labels: Mapping[str, str]) -> tuple[Key, Value]:
    return _key(name, labels), steady(1)


def exposition(begin: int, *, unit: int = 1) -> Iterator[str]:
    """All samples of the day that begins at this Unix time, a line each; `unit` is that of timestamps."""
    for (name, labels), value in sorted(series(), key=lambda one: one[0]):
        pairs = ",".join(f'{label}="{text}"' for label, text in labels)
        for second in range(0, DAY + 1, STEP if "pressure" not in name else STEP // 4):
            found = value(second)
            if found is not None:
                if name.endswith("timestamp"):
                    found += begin
                yield f"{name}{{{pairs}}} {found:.10g} {(begin + second) * unit}\n"
