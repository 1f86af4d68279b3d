"""Golden cases run through the predictions, in the shape of the result files (SCHEMA.md of the vectors).

Only translation lives here: field names, null for absent, and the order of lists. What is computed is
computed by kubectl_qos.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

import msgspec
from msgspec import structs

from kubectl_qos.errors import QosError, QuantityError
from kubectl_qos.k8s import defaulting, resources
from kubectl_qos.k8s.kubelet import (
    CgroupDriver,
    Kubelet,
    MemoryReservationPolicy,
    Node,
    NodeSetup,
)
from kubectl_qos.k8s.objects import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    Container,
    JsonDecoder,
    Pod,
    ResourceList,
    resource_list,
)
from kubectl_qos.k8s.quantity import MILLI, Format, Quantity, parse_duration
from kubectl_qos.k8s.releases import Change, Gate, Release, _has_gate
from kubectl_qos.k8s.resources import Count
from kubectl_qos.k8s.validation import kubelet_config_errors, pod_refusals
from kubectl_qos.qos import oom_score
from kubectl_qos.qos.cgroup import names as cgroup_names
from kubectl_qos.qos.cgroup import pod as pod_cgroup
from kubectl_qos.qos.cgroup import tree as node_cgroups
from kubectl_qos.qos.cgroup import values as cgroup_values
from kubectl_qos.qos.cgroup.names import CgroupName
from kubectl_qos.qos.cgroup.values import CgroupSettings, CriResources, named_hugepage_limits
from kubectl_qos.qos.qos_class import QosClass, qos_class
from tests.golden import reference

Json = Any

_pod_decoder = JsonDecoder(Pod)


def run(case: Mapping[str, Json], version: str) -> dict[str, Json]:
    gates = case.get("kubelet", {}).get("featureGates") or {}
    release = Release.of(version, gates)
    result = _KINDS[case["kind"]](case, release)
    if case["kind"] in {"pod", "qos", "node"}:
        result["kubeletConfigErrors"] = _refused_configuration(case["kubelet"], release)
    if case["kind"] != "cgroupname":
        result["gates"] = _gates(release)
        ignored = Release.of(version).ignored_gates(gates)
        if ignored:
            result["gatesIgnored"] = [f"{name}: {why}" for name, why in sorted(ignored.items())]
    return {"id": case["id"], "kind": case["kind"], **result}


def quantity(row: Mapping[str, Json]) -> dict[str, Json]:
    text = row["s"]
    result: dict[str, Json] = {"id": row["id"], "kind": "quantity", "s": text}
    try:
        parsed = Quantity.parse(text)
    except QuantityError as error:
        result["error"] = str(error)
    else:
        rounded = parsed.rounded_up(MILLI)
        result |= {
            "canonical": parsed.canonical(),
            "string": str(parsed),
            "value": parsed.value(),
            "milli": parsed.milli_value(),
            "sign": parsed.sign,
            "format": parsed.format.value,
            "roundUpMilli": {
                "canonical": rounded.canonical(),
                "string": str(rounded),
                "value": rounded.value(),
                "milli": rounded.milli_value(),
                "exact": rounded == parsed,
            },
        }
    try:
        from_json = Quantity.from_json(text)
    except QuantityError as error:
        result["jsonError"] = str(error)
    else:
        result["json"] = {"canonical": from_json.canonical(), "string": str(from_json)}
    return result


# -- inputs ----------------------------------------------------------------------------------------


def _pod(raw: Json) -> Pod:
    return _decoded(msgspec.json.encode(raw))


_decoded = cache(_pod_decoder.decode)  # Each release has the same pods.


def _kubelet(raw: Mapping[str, Json]) -> Kubelet:
    """The case's kubelet; singleProcessOOMKill null is true here, as the vectors bypass its default."""
    single = raw["singleProcessOOMKill"]
    exclusive = raw.get("exclusiveCPUContainers") or ()
    return Kubelet(
        cgroup_driver=CgroupDriver(raw["cgroupDriver"]),
        cgroup_root=raw["cgroupRoot"],
        cgroups_per_qos=raw["cgroupsPerQOS"],
        cpu_cfs_quota=raw["cpuCFSQuota"],
        cpu_cfs_quota_period_us=parse_duration(raw["cpuCFSQuotaPeriod"]) // 1000,
        exclusive_cpu_containers=frozenset(exclusive),
        pod_pids_limit=raw["podPidsLimit"],
        memory_throttling_factor=raw["memoryThrottlingFactor"],
        memory_reservation_policy=MemoryReservationPolicy(raw["memoryReservationPolicy"]),
        memory_swap_behavior=raw["memorySwapBehavior"],
        single_process_oom_kill=True if single is None else single,
        qos_reserved_percent=raw.get("qosReserved") or {},
        kube_reserved=resource_list(raw.get("kubeReserved") or {}),
        system_reserved=resource_list(raw.get("systemReserved") or {}),
        kube_reserved_cgroup=raw.get("kubeReservedCgroup") or "",
        system_reserved_cgroup=raw.get("systemReservedCgroup") or "",
        enforce_node_allocatable=tuple(raw.get("enforceNodeAllocatable") or ()),
        eviction_hard=raw.get("evictionHard") or {},
    )


def _refused_configuration(raw: Mapping[str, Json], release: Release) -> list[str]:
    """Here singleProcessOOMKill null stays unset, and the kubelet's default enforcement counts."""
    kubelet = _kubelet(raw)
    if raw["singleProcessOOMKill"] is None:
        kubelet = structs.replace(kubelet, single_process_oom_kill=None)
    return sorted(kubelet_config_errors(kubelet, release, cgroup_version=raw["cgroupVersion"]))


def _node(raw: Mapping[str, Json], kubelet: Mapping[str, Json]) -> Node:
    return Node(
        memory_capacity_bytes=raw["memoryCapacity"],
        swap_capacity_bytes=raw["swapCapacity"],
        allocatable_memory_bytes=raw["memoryAllocatable"] or 0,  # null: the kubelet has none
        allocatable_cpu_milli=raw["cpuAllocatableMilli"],
        page_size_bytes=raw["pageSize"],
        hugepage_sizes=tuple(raw["hugePageSizes"] or ()),
        cgroup_version=kubelet["cgroupVersion"],
        swap_controller_available=kubelet["swapControllerAvailable"],
    )


# -- outputs ---------------------------------------------------------------------------------------


def _quantity(found: Quantity) -> Json:
    return {"s": str(found), "c": found.canonical(), "v": found.value(), "m": found.milli_value()}


def _list(found: Mapping[str, Quantity] | None) -> Json:
    return None if found is None else {name: _quantity(value) for name, value in found.items()}


@cache
def known_gates(release: Release) -> dict[str, bool]:
    """Every gate of a release that changes a prediction, with its value."""
    return {gate.value: release.enabled(gate) for gate in Gate if _has_gate(gate, release.minor)}


def _gates(release: Release) -> Json:
    unseen = {
        Gate.IN_PLACE_RESIZE_EXCLUSIVE_MEMORY.value,
        Gate.IN_PLACE_RESIZE_INIT_CONTAINERS.value,
        Gate.MUTABLE_SUSPENDED_JOBS.value,
        Gate.CONTAINER_RESTART_RULES.value,
        Gate.RESTART_ALL_CONTAINERS.value,
    }
    return {name: on for name, on in known_gates(release).items() if name not in unseen}


def _kind_of(container: Container, release: Release, *, init: bool) -> str:
    if not init:
        return "app"
    return "sidecar" if resources.is_sidecar(container, release) else "init"


def _cri(found: CriResources) -> Json:
    return {
        "cpuPeriod": found.cpu_period_us,
        "cpuQuota": found.cpu_quota_us,
        "cpuShares": found.cpu_shares,
        "memoryLimitInBytes": found.memory_limit_bytes,
        "memorySwapLimitInBytes": found.memory_swap_limit_bytes,
        "oomScoreAdj": found.oom_score_adj,
        "hugepageLimits": [
            {"limit": limit, "pageSize": size} for size, limit in found.hugepage_limits.items()
        ],
        "unified": found.unified or None,
    }


def _settings(found: CgroupSettings) -> Json:
    """ResourceConfig: an absent key is a nil pointer."""
    fields: dict[str, Json] = {
        "cpuShares": found.cpu_shares,
        "cpuQuota": found.cpu_quota_us,
        "cpuPeriod": found.cpu_period_us,
        "memory": found.memory_limit_bytes,
        "pidsLimit": found.pids_limit,
        "cpuSet": found.cpus or None,
        "unified": found.unified or None,
        "hugePageLimit": None,
    }
    if found.hugepage_limits is not None:
        limits = {str(size): limit for size, limit in found.hugepage_limits.items()}
        fields["hugePageLimit"] = limits
    return {name: value for name, value in fields.items() if value is not None}


def _libcontainer(
    name: CgroupName, found: CgroupSettings, node: Node, kubelet: Kubelet, release: Release
) -> Json:
    """The library's configuration: the same settings under other names, 0 for absent."""
    systemd = kubelet.cgroup_driver is CgroupDriver.SYSTEMD
    parent, unit = reference.systemd_unit(name) if systemd else ("", "")
    v1 = node.cgroup_version == 1
    shares = found.cpu_shares
    limits = named_hugepage_limits(found.hugepage_limits or {}, node.hugepage_sizes)
    no_pids = None if release.has(Change.PIDS_LIMIT_OPTIONAL) else 0
    return {
        "name": unit,
        "parent": parent,
        "path": "" if systemd else cgroup_names.to_cgroupfs(name),
        "systemd": systemd,
        "resources": {
            "cpuShares": (shares or 0) if v1 else 0,
            "cpuWeight": 0 if v1 or shares is None else cgroup_values.shares_to_weight_linear(shares),
            "cpuQuota": found.cpu_quota_us or 0,
            "cpuPeriod": found.cpu_period_us or 0,
            "cpusetCpus": found.cpus,
            "memory": found.memory_limit_bytes or 0,
            "memorySwap": 0,
            "pidsLimit": no_pids if found.pids_limit is None else found.pids_limit,
            "hugetlbLimit": [{"limit": limit, "pageSize": size} for size, limit in sorted(limits.items())],
            "unified": None if v1 else found.unified or None,
        },
    }


def _writes(
    writes: Iterable[node_cgroups.CgroupWrite], op: str, node: Node, kubelet: Kubelet, release: Release
) -> Json:
    rows = [
        {
            "op": op,
            "name": list(write.name),
            "cgroupfs": cgroup_names.literal(write.name, kubelet.cgroup_driver),
            "resourceConfig": _settings(write.settings),
            "libcontainer": _libcontainer(write.name, write.settings, node, kubelet, release),
            "files": cgroup_values.kubelet_files(write.settings, node, release),
        }
        for write in writes
    ]
    return sorted(rows, key=lambda row: str(row["cgroupfs"]))


def _or_panic(compute: Callable[[], Json]) -> Json:
    try:
        return compute()
    except QosError as error:
        return {"panic": str(error)}


# -- kinds -----------------------------------------------------------------------------------------


def _run_pod(case: Mapping[str, Json], release: Release) -> dict[str, Json]:
    pod = defaulting.default_pod(_pod(case["pod"]), release)
    kubelet, node = _kubelet(case["kubelet"]), _node(case["node"], case["kubelet"])
    qos = qos_class(pod, release)
    setup = NodeSetup(node, kubelet, release)
    adj = oom_score.PodAdj(pod, qos, node.memory_capacity_bytes, release)

    def container(found: Container, kind: str) -> Json:
        steps = adj.steps_for(found)
        resources = pod_cgroup.container_resources(pod, found, qos, steps.adj, setup)
        return {"name": found.name, "type": kind, "oomScoreAdj": steps.adj, "resources": _cri(resources)}

    def containers() -> Json:
        init = [(found, _kind_of(found, release, init=True)) for found in pod.init_containers]
        app = [(found, "app") for found in pod.containers]
        ephemeral = [(found, "ephemeral") for found in pod.ephemeral_containers]
        return [container(found, kind) for found, kind in (*init, *app, *ephemeral)]

    result = {
        "validation": sorted(str(refusal) for refusal in pod_refusals(pod, release)),
        "defaulted": _defaulted(pod, release),
        "qosClass": qos.value,
        "critical": oom_score.is_critical(pod),
        "nodeCritical": oom_score.is_node_critical(pod),
        "static": oom_score.is_static(pod),
        "mirror": oom_score.is_mirror(pod),
        "totals": _totals(pod, release),
        "containers": _or_panic(containers),
        "sandbox": {
            "resources": _cri(reference.sandbox_resources(pod, qos, setup)),
            "overhead": _cri(reference.sandbox_overhead(pod, setup)),
        },
        "podCgroup": _or_panic(lambda: _pod_cgroup(pod, qos, setup)),
        "kubepodsRoot": cgroup_names.literal(cgroup_names.kubepods_name(kubelet), kubelet.cgroup_driver),
    }
    if kubelet.cgroups_per_qos:
        result["qosCgroups"] = _qos_cgroups(kubelet)
    return result


def _defaulted(pod: Pod, release: Release) -> Json:
    def row(found: Container, kind: str) -> Json:
        return {
            "name": found.name,
            "type": kind,
            "requests": _list(found.resources.requests),
            "limits": _list(found.resources.limits),
        }

    result = {
        "containers": [row(found, "app") for found in pod.containers],
        "initContainers": [row(found, _kind_of(found, release, init=True)) for found in pod.init_containers],
        "overhead": _list(pod.spec.overhead),
    }
    if pod.spec.resources is not None and Gate.POD_LEVEL_RESOURCES.value in known_gates(release):
        result["podResources"] = {
            "requests": _list(pod.spec.resources.requests),
            "limits": _list(pod.spec.resources.limits),
        }
    return result


def _totals(pod: Pod, release: Release) -> Json:
    requests, limits = resources.pod_requests, resources.pod_limits
    found = {
        "requests": requests(pod, release, count=resources.kubelet_count(release)),
        "limits": limits(pod, release),
        "requestsNoOverhead": requests(pod, release, overhead=False),
        "limitsNoOverhead": limits(pod, release, overhead=False),
    }
    if release.has(Change.STATUS_RESOURCES):
        found |= {
            "requestsStatus": requests(pod, release, count=Count.STATUS),
            "limitsStatus": limits(pod, release, count=Count.STATUS),
            "requestsContainersOnly": requests(pod, release, pod_level=False, overhead=False),
            "limitsContainersOnly": resources.aggregate_limits(pod, release),
        }
    elif Gate.IN_PLACE_RESIZE.value in known_gates(release):
        found |= {
            "requestsStatus": requests(pod, release, count=Count.STATUS),
            "limitsStatus": limits(pod, release, count=Count.STATUS),
        }
    if Gate.IN_PLACE_RESIZE_POD_LEVEL.value in known_gates(release):
        count = Count.STATUS_WITH_POD_LEVEL
        found |= {
            "requestsStatusPodLevel": requests(pod, release, count=count),
            "limitsStatusPodLevel": limits(pod, release, count=count),
        }
    totals = {name: _list(value) for name, value in found.items()}
    names = (CPU, MEMORY, EPHEMERAL_STORAGE)
    totals["evictionRequest"] = {
        name: _quantity(resources.eviction_request(pod, release, name)) for name in names
    }
    return totals


def _pod_cgroup(pod: Pod, qos: QosClass, setup: NodeSetup) -> Json:
    node, kubelet, release = setup.node, setup.kubelet, setup.release
    name = cgroup_names.pod_name(pod.metadata.uid, qos, kubelet)
    systemd = cgroup_names.to_systemd(name)
    result = {
        "name": list(name),
        "toSystemd": systemd,
        "toCgroupfs": cgroup_names.to_cgroupfs(name),
        "parseSystemd": list(cgroup_names.parse_systemd(systemd)),
        "cgroupParent": "",
    }
    if not kubelet.cgroups_per_qos:
        return result
    totals = pod_cgroup.pod_totals(pod, qos, setup)
    settings = pod_cgroup.pod_settings(pod, qos, totals, setup)
    return result | {
        "cgroupParent": cgroup_names.literal(name, kubelet.cgroup_driver),
        "resourceConfig": _settings(settings),
        "libcontainer": _libcontainer(name, settings, node, kubelet, release),
        "files": cgroup_values.kubelet_files(settings, node, release),
    }


def _qos_cgroups(kubelet: Kubelet) -> Json:
    rows = {}
    for found in QosClass:
        name = cgroup_names.class_name(found, kubelet)
        path = cgroup_names.literal(name, kubelet.cgroup_driver)
        rows[found.value] = {"name": list(name), "cgroupfs": path}
    return rows


def _run_qos(case: Mapping[str, Json], release: Release) -> dict[str, Json]:
    pods = [defaulting.default_pod(_pod(raw), release) for raw in case["pods"]]
    kubelet, node = _kubelet(case["kubelet"]), _node(case["node"], case["kubelet"])
    start = reference.classes_at_start(node, kubelet)
    update = node_cgroups.classes(pods, NodeSetup(node, kubelet, release))
    return {
        "qosClasses": [qos_class(pod, release).value for pod in pods],
        "start": _writes(start, "create", node, kubelet, release),
        "update": _writes(update, "update", node, kubelet, release),
    }


def _run_node(case: Mapping[str, Json], release: Release) -> dict[str, Json]:
    raw = case["node"]
    kubelet, node = _kubelet(case["kubelet"]), _node(raw, case["kubelet"])
    capacity = _capacity(raw)
    internal = dict(capacity)
    internal.pop(EPHEMERAL_STORAGE, None)
    if raw["maxPID"]:
        internal[node_cgroups.PID] = Quantity(raw["maxPID"])
    kubepods = node_cgroups.kubepods(internal, raw["numCores"], kubelet, release)
    reserved = node_cgroups.reserved(raw["numCores"], kubelet, release)
    result = {
        "capacity": _list(capacity),
        "allocatableAbsolute": _list(node_cgroups.allocatable(capacity, kubelet)),
        "internalAllocatableAbsolute": _list(node_cgroups.allocatable(internal, kubelet)),
        "reservation": _list(reference.reservation(capacity, kubelet)),
        "create": _writes([kubepods], "create", node, kubelet, release),
        "enforce": _writes(
            [kubepods, *reserved] if kubepods.name else reserved, "update", node, kubelet, release
        ),
        "kubepodsRoot": cgroup_names.literal(cgroup_names.kubepods_name(kubelet), kubelet.cgroup_driver),
    }
    start = reference.classes_at_start(node, kubelet) if kubelet.cgroups_per_qos else None
    result["qosStart"] = None if start is None else _writes(start, "create", node, kubelet, release)
    excess = [
        _overcommitted(name, reserved, capacity[name], release)
        for name, reserved in reference.reservation(capacity, kubelet).items()
        if capacity[name] < reserved
    ]
    if excess:
        result["validate"] = sorted([*excess, "invalid Node Allocatable configuration."])
    return result


def _capacity(raw: Mapping[str, Json]) -> ResourceList:
    capacity = {
        CPU: Quantity(raw["numCores"] * 1000, MILLI),
        MEMORY: Quantity(raw["memoryCapacity"], 0, Format.BINARY_SI),
    }
    for pages in raw["hugePages"] or ():
        size = pages["pageSizeKB"] * 1024
        name = f"hugepages-{Quantity(size, 0, Format.BINARY_SI)}"
        capacity[name] = Quantity(size * pages["numPages"], 0, Format.BINARY_SI)
    if raw.get("ephemeralStorage"):
        capacity[EPHEMERAL_STORAGE] = Quantity.parse(raw["ephemeralStorage"])
    return ResourceList(capacity)


def _overcommitted(name: str, reserved: Quantity, capacity: Quantity, release: Release) -> str:
    """The sentence of `validateNodeAllocatable`, which prints Go structs; up to 1.29 it was another one.

    What does not fit an int64 is behind a pointer, whose value nobody can know: the vectors have 0xPTR.
    """

    def struct(found: Quantity) -> str:
        if found.is_decimal:
            return f"{{{{0 0}} {{0xPTR}}  {found.format}}}"
        return f"{{{{{found.unscaled} {found.exponent}}} {{<nil>}}  {found.format}}}"

    if release.minor < 30:
        return f'"{name}" has an allocatable of {struct(reserved)}, capacity of {struct(capacity - reserved)}'
    return (
        f'"{name}" has a reservation of {struct(reserved)} but capacity of '
        f"{struct(capacity)}. Expected capacity >= reservation."
    )


def _run_eviction(case: Mapping[str, Json], release: Release) -> dict[str, Json]:
    pods = [defaulting.default_pod(_pod(raw), release) for raw in case["pods"]]
    stats = [None if raw is None else _stats(raw) for raw in case["stats"]]
    result: dict[str, Json] = {
        "pods": [
            {
                "uid": pod.metadata.uid,
                "critical": oom_score.is_critical(pod),
                "memoryRequest": _quantity(resources.eviction_request(pod, release, MEMORY)),
                "storageRequest": _quantity(resources.eviction_request(pod, release, EPHEMERAL_STORAGE)),
            }
            for pod in pods
        ]
    }
    for signal in ("memory", "pid", "disk"):
        positions = reference.eviction_positions(signal, pods, stats, release)
        # Ties are in the order of the input, which is Go's for up to twelve pods.
        order = sorted(range(len(pods)), key=positions.__getitem__)
        result[signal] = {"order": order, "ties": len(set(positions)) < len(positions)}
    return result


def eviction_positions(case: Mapping[str, Json], signal: str, version: str) -> dict[int, int]:
    """Pod index to the position it shares with its equals, of one eviction signal."""
    release = Release.of(version, case["kubelet"].get("featureGates") or {})
    pods = [defaulting.default_pod(_pod(raw), release) for raw in case["pods"]]
    stats = [None if raw is None else _stats(raw) for raw in case["stats"]]
    return dict(enumerate(reference.eviction_positions(signal, pods, stats, release)))


def _stats(raw: Mapping[str, Json]) -> reference.PodStats:
    def used(found: Mapping[str, Json] | None) -> int:
        return int((found or {}).get("usedBytes") or 0)

    return reference.PodStats(
        working_set_bytes=(raw.get("memory") or {}).get("workingSetBytes") or 0,
        processes=(raw.get("process_stats") or {}).get("process_count") or 0,
        container_disk_bytes=sum(
            used(row.get("rootfs")) + used(row.get("logs")) for row in raw.get("containers") or ()
        ),
        volume_disk_bytes={row["name"]: used(row) for row in raw.get("volume") or ()},
    )


def _run_conv(case: Mapping[str, Json], release: Release) -> dict[str, Json]:
    configured = parse_duration(case["kubelet"]["cpuCFSQuotaPeriod"]) // 1000
    custom = release.enabled(Gate.CUSTOM_CFS_QUOTA_PERIOD)
    period = configured if custom else 100_000
    newer = release.has(Change.QUADRATIC_CPU_WEIGHT)
    rows = []
    for n in case["values"]:
        row = {
            "n": n,
            "milliCPUToShares": cgroup_values.milli_to_shares(n),
            "milliCPUToQuota": cgroup_values.milli_to_quota(n, period),
            "libcontainerSharesToWeight": (
                cgroup_values.shares_to_weight_quadratic(n)
                if newer
                else reference.shares_to_weight_linear_runtime(n)
            ),
        }
        if n >= cgroup_values.MIN_SHARES:
            row["kubeletSharesToWeight"] = cgroup_values.shares_to_weight_linear(n)
        if n >= 1 and release.minor >= 27:
            row["kubeletWeightToShares"] = reference.weight_to_shares(n)
        if release.minor >= 36:
            row["sharesToMilliCPU"] = reference.shares_to_milli(n)
            row["quotaToMilliCPU"] = reference.quota_to_milli(n, configured)
        rows.append(row)
    return {"values": rows}


def _run_cgroupname(case: Mapping[str, Json], _: Release) -> dict[str, Json]:
    def names() -> Json:
        name = cgroup_names.compose((), *case["parts"])
        systemd, plain = cgroup_names.to_systemd(name), cgroup_names.to_cgroupfs(name)
        return {
            "toSystemd": systemd,
            "toCgroupfs": plain,
            "parseSystemd": list(cgroup_names.parse_systemd(systemd)),
            "parseCgroupfs": list(cgroup_names.parse_cgroupfs(plain)),
        }

    result = _or_panic(names)
    return dict(result)


_KINDS: dict[str, Callable[[Mapping[str, Json], Release], dict[str, Json]]] = {
    "pod": _run_pod,
    "qos": _run_qos,
    "node": _run_node,
    "eviction": _run_eviction,
    "conv": _run_conv,
    "cgroupname": _run_cgroupname,
}
