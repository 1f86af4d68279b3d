"""What an API server (also with strict field validation) or a kubelet rejects in a pod or configuration.

The sentences are theirs. Sources: pkg/apis/core/validation/validation.go (ValidatePodCreate,
validateResourceRequirements, validatePodResourceConsistency), pkg/kubelet/apis/config/validation
(validation.go, validation_linux.go), k8s.io/apimachinery/pkg/runtime/serializer/json (strict decoding), and
fields.json, which tests/k8s/make_fields.py generates from the OpenAPI of Kubernetes. Fields that change no
prediction, such as images, are not checked, nor are objects that a server has stored, which may be newer than
fields.json.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from enum import StrEnum
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from kubectl_qos.errors import QuantityError
from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kinds import CustomWorkload, dotted, spec_path
from kubectl_qos.k8s.kubelet import (
    DEFAULT_CFS_PERIOD_US,
    MAX_CFS_PERIOD_US,
    MIN_CFS_PERIOD_US,
    Kubelet,
    MemoryReservationPolicy,
)
from kubectl_qos.k8s.objects import (
    CPU,
    EMPTY_RESOURCES,
    HUGEPAGES_PREFIX,
    LEAST_MEMORY,
    MEMORY,
    PIDS,
    Pod,
    ResourceRequirements,
)
from kubectl_qos.k8s.quantity import ZERO, Format, Quantity, parse_typed
from kubectl_qos.k8s.releases import Change, Gate, Release
from kubectl_qos.k8s.resources import (
    aggregate_limits,
    aggregate_requests,
    is_container_resource,
    is_extended,
    is_supported_at_pod_level,
)

_POD_LEVEL: Final = "spec.resources"
FIELDS_FILE: Final = Path(__file__).with_name("fields.json")
_RELEASE: Final = Release.of("1.36", {})
MOST_CPU_MILLI: Final = 256_000
"""More CPU than any container has: probably a missing `m`."""


_APPS: Final = ("apps/v1", "apps/v1beta2")
_VERSIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "Pod": ("v1",),
    "ReplicationController": ("v1",),
    "Deployment": (*_APPS, "apps/v1beta1", "extensions/v1beta1"),
    "StatefulSet": (*_APPS, "apps/v1beta1"),
    "DaemonSet": (*_APPS, "extensions/v1beta1"),
    "ReplicaSet": (*_APPS, "extensions/v1beta1"),
    "Job": ("batch/v1",),
    "CronJob": ("batch/v1", "batch/v1beta1"),
}
"""The versions of each kind that kubectl reads (k8s.io/api, register.go), the present one first."""
_OWN: Final = frozenset(chain.from_iterable(_VERSIONS.values()))
_TEMPLATES: Final = frozenset(
    ("PodTemplate", "ControllerRevision", "JobTemplate", "DeploymentConfig", "Template")
)
"""Other kinds of those versions that have pod templates, the last two in the v1 of OpenShift."""


class Refusal(NamedTuple):
    """A field error: its path, the message, and the container it is about, empty for the pod."""

    path: str
    message: str
    owner: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def pod_refusals(pod: Pod, release: Release) -> list[Refusal]:
    """Return the field errors of a defaulted pod, in the order of its fields."""
    refusals: list[Refusal] = []
    mirror = pod.annotations.config_mirror
    if mirror is not None and not pod.node_name:
        path = "metadata.annotations[kubernetes.io/config.mirror]"
        must = "must set spec.nodeName if mirror pod annotation is set"
        refusals.append(Refusal(path, f"{_invalid(mirror)}: {must}"))
    if not pod.containers:
        refusals.append(Refusal("spec.containers", "Required value"))
    for kind, containers in (("containers", pod.containers), ("initContainers", pod.init_containers)):
        for index, container in enumerate(containers):
            path = f"spec.{kind}[{index}].resources"
            refusals += _requirements(path, container.resources, container.name, release)
    if pod.spec.resources is not None and release.enabled(Gate.POD_LEVEL_RESOURCES):
        refusals += _unsupported(pod.spec.resources, release)
        refusals += _requirements(_POD_LEVEL, pod.spec.resources, "", release)
        refusals += _pod_level(pod, pod.spec.resources, release)
    return refusals


def admission_errors(pod: Pod, release: Release) -> list[Refusal]:
    """Return why a kubelet does not admit a pod that the API server has accepted (lifecycle/predicate.go)."""
    needs_support = release.has(Change.POD_LEVEL_NEEDS_SUPPORT)
    if pod.spec.resources is None or not needs_support or release.enabled(Gate.POD_LEVEL_RESOURCES):
        return []
    reason = "PodLevelResourcesNotSupported: PodLevelResources feature gate is disabled"
    return [Refusal(_POD_LEVEL, f"the kubelet rejects it: {reason}")]


def _invalid(value: object) -> str:
    return f'Invalid value: "{value}"'


def _requirements(
    path: str, resources: ResourceRequirements, owner: str, release: Release
) -> Iterator[Refusal]:
    requests = resources.requests or EMPTY_RESOURCES
    limits = resources.limits or EMPTY_RESOURCES
    for side, quantities in (("limits", limits), ("requests", requests)):
        for name, quantity in quantities.items():
            for value, message in _bad_quantity(path, name, quantity):
                yield Refusal(f"{path}.{side}[{name}]", f"{_invalid(value)}: {message}", owner)
    for name, request in requests.items():
        limit = limits.get(name)
        if limit is None:
            if not _may_be_overcommitted(name):
                message = "Required value: Limit must be set for non overcommitable resources"
                yield Refusal(f"{path}.limits", message, owner)
            continue
        if request != limit and not _may_be_overcommitted(name):
            must = "equal to"
        elif request > limit:
            must = "less than or equal to"
        else:
            continue
        of = f" of {limit}" if release.has(Change.REFUSAL_NAMES_LIMIT) else ""
        yield Refusal(f"{path}.requests", f"{_invalid(request)}: must be {must} {name} limit{of}", owner)
    names = {*requests, *limits}
    if any(name.startswith(HUGEPAGES_PREFIX) for name in names) and not names & {CPU, MEMORY}:
        yield Refusal(path, "Forbidden: HugePages require cpu or memory", owner)


def _bad_quantity(path: str, name: str, quantity: Quantity) -> Iterator[tuple[str | Quantity, str]]:
    """Yield the errors in a container's resource: in its name, and in its quantity by itself.

    Sources: `validateContainerResourceName`, `ValidateResourceQuantityValue`.
    """
    if path != _POD_LEVEL and not is_container_resource(name):
        yield name, "must be a standard resource type or fully qualified"
        yield name, "must be a standard resource for containers"
    if quantity.sign < 0:
        yield quantity, "must be greater than or equal to 0"
    if is_extended(name) and quantity.milli_value() % 1000:
        yield quantity, "must be an integer"
    if name.startswith(HUGEPAGES_PREFIX) and not _is_whole_number_of_pages(name, quantity):
        yield quantity, f"{quantity} is not positive integer multiple of {name}"


def _is_whole_number_of_pages(name: str, quantity: Quantity) -> bool:
    try:
        page = Quantity.parse(name.removeprefix(HUGEPAGES_PREFIX))
    except QuantityError:
        return False
    return page.sign > 0 and page.milli_value() % 1000 == 0 and quantity.value() % page.value() == 0


def _may_be_overcommitted(name: str) -> bool:
    """Return `IsOvercommitAllowed`: whether a request may be below its limit."""
    return not is_extended(name) and not name.startswith(HUGEPAGES_PREFIX)


def _unsupported(resources: ResourceRequirements, release: Release) -> Iterator[Refusal]:
    supported = '"cpu", "hugepages-", "memory"'
    if not release.has(Change.POD_LEVEL_HUGEPAGES):
        supported = '"cpu", "memory"'
    for side, quantities in (("limits", resources.limits), ("requests", resources.requests)):
        for name in quantities or EMPTY_RESOURCES:
            may_limit = side == "limits" and name == PIDS and release.enabled(Gate.PER_POD_PID_LIMIT)
            if not may_limit and not is_supported_at_pod_level(name, release):
                shown = f'"{name}"' if release.has(Change.REFUSAL_QUOTES_NAMES) else name
                path = f"spec.resources.{side}[{name}]"
                yield Refusal(path, f"Unsupported value: {shown}: supported values: {supported}")


def _pod_level(pod: Pod, resources: ResourceRequirements, release: Release) -> Iterator[Refusal]:
    """Check that requests cover the containers' sum, and limits each (`validatePodResourceConsistency`)."""
    requests = resources.requests or EMPTY_RESOURCES
    limits = resources.limits or EMPTY_RESOURCES
    for name, total in aggregate_requests(pod, release).items():
        if name not in requests and release.has(Change.POD_REQUEST_MAY_BE_MISSING):
            continue
        request = requests.get(name, ZERO)
        if request < total:
            yield _too_small("requests", name, request, total)
    if release.has(Change.POD_REQUEST_MAY_BE_MISSING):
        for name, total in aggregate_limits(pod, release).items():
            if name.startswith(HUGEPAGES_PREFIX) and name in limits and limits[name] < total:
                yield _too_small("limits", name, limits[name], total)
    for index, container in enumerate(pod.containers):
        for name, limit in container.limits.items():
            if name in limits and limit > limits[name]:
                path = f"spec.resources.containers[{index}][{name}].limits"
                must = f"must be less than or equal to pod limits of {limits[name]}"
                yield Refusal(path, f"{_invalid(limit)}: {must}", container.name)


def _too_small(side: str, name: str, quantity: Quantity, total: Quantity) -> Refusal:
    must = f"must be greater than or equal to aggregate container {side} of {total}"
    return Refusal(f"spec.resources.{side}[{name}]", f"{_invalid(quantity)}: {must}")


_ENFORCE: Final = "enforceNodeAllocatable (--enforce-node-allocatable)"
_RESERVED: Final = {
    "system-reserved": "systemReservedCgroup (--system-reserved-cgroup)",
    "kube-reserved": "kubeReservedCgroup (--kube-reserved-cgroup)",
}
_COMPRESSIBLE: Final = "-compressible"


def kubelet_config_errors(kubelet: Kubelet, release: Release, *, cgroup_version: int = 2) -> list[str]:
    """Return every reason for which a kubelet of that release would not start, in its own order."""
    sentences = [
        *_without_cgroups(kubelet, release),
        *_cfs_period(kubelet, release),
        *_swap(kubelet, release),
        *_enforcements(kubelet, release),
        *_memory_settings(kubelet, release, cgroup_version),
    ]
    return [f"invalid configuration: {sentence}" for sentence in sentences]


def _without_cgroups(kubelet: Kubelet, release: Release) -> Iterator[str]:
    is_refused = kubelet.enforce_node_allocatable and not kubelet.cgroups_per_qos
    if is_refused and not release.has(Change.ENFORCEMENT_WITHOUT_CGROUPS):
        yield f"{_ENFORCE} is not supported unless cgroupsPerQOS (--cgroups-per-qos) is set to true"


def _cfs_period(kubelet: Kubelet, release: Release) -> Iterator[str]:
    period = kubelet.cpu_cfs_quota_period_us
    subject = f"cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {{{_go_duration(period)}}}"
    if not release.enabled(Gate.CUSTOM_CFS_QUOTA_PERIOD):
        if period != DEFAULT_CFS_PERIOD_US:
            yield f"{subject} requires feature gate CustomCPUCFSQuotaPeriod"
    elif not MIN_CFS_PERIOD_US <= period <= MAX_CFS_PERIOD_US:
        yield f"{subject} must be between 1ms and 1sec, inclusive"


def _swap(kubelet: Kubelet, release: Release) -> Iterator[str]:
    behavior = kubelet.memory_swap_behavior
    if release.has(Change.NO_UNLIMITED_SWAP):
        behaviors, listed = {"", "NoSwap", "LimitedSwap"}, '"", "LimitedSwap" or "NoSwap"'
    else:
        behaviors, listed = {"", "LimitedSwap", "UnlimitedSwap"}, '"", "LimitedSwap", or "UnlimitedSwap"'
    if not release.enabled(Gate.NODE_SWAP):
        if behavior:
            yield "memorySwap.swapBehavior cannot be set when NodeSwap feature flag is disabled"
    elif behavior not in behaviors:
        yield f'memorySwap.swapBehavior "{behavior}" must be one of: {listed}'


def _enforcements(kubelet: Kubelet, release: Release) -> Iterator[str]:
    values = kubelet.enforce_node_allocatable
    has_compressible = release.has(Change.RESERVED_COMPRESSIBLE)
    one_by_one = release.has(Change.ENFORCEMENT_WITHOUT_CGROUPS)
    for key in _RESERVED if has_compressible else ():
        if {key, key + _COMPRESSIBLE} <= set(values):
            yield f'both "{key}" and "{key}{_COMPRESSIBLE}" cannot be specified together in {_ENFORCE}'
    cgroups = {
        "system-reserved": kubelet.system_reserved_cgroup,
        "kube-reserved": kubelet.kube_reserved_cgroup,
    }
    for index, value in enumerate(values):
        base = value.removesuffix(_COMPRESSIBLE)
        key = base if has_compressible and base in _RESERVED else value
        if one_by_one and value in values[:index]:
            yield f'duplicated enforcements "{value}" in {_ENFORCE}'
            continue
        if key in cgroups and not cgroups[key]:
            keys = f'"{key}" or "{key}{_COMPRESSIBLE}" included' if has_compressible else f'"{key}" contained'
            yield f"{_RESERVED[key]} must be specified when {keys} in {_ENFORCE}"
        elif value == "none" and len(values) > 1:
            yield f'{_ENFORCE} may not contain additional enforcements when "none" is specified'
        elif key not in {*_RESERVED, "none", "pods"}:
            yield _unknown_enforcement(value, has_compressible=has_compressible)
        if one_by_one and not kubelet.cgroups_per_qos and key in {*_RESERVED, "pods"}:
            must = "cgroupsPerQOS (--cgroups-per-qos) must be set to true when"
            yield f'{must} "{value}" contained in {_ENFORCE}'


def _unknown_enforcement(value: str, *, has_compressible: bool) -> str:
    options = ["pods"]
    for key in _RESERVED:
        options += [key, key + _COMPRESSIBLE] if has_compressible else [key]
    separator = " or" if has_compressible else ", or"
    listed = ", ".join(f'"{option}"' for option in options)
    return f'option "{value}" specified for {_ENFORCE}. Valid options are {listed}{separator} "none"'


def _memory_settings(kubelet: Kubelet, release: Release, cgroup_version: int) -> Iterator[str]:
    is_off = kubelet.single_process_oom_kill is False
    if cgroup_version == 1 and is_off and release.has(Change.SINGLE_PROCESS_OOM_KILL):
        yield "singleProcessOOMKill must not be explicitly set to false when using cgroup v1"
    factor, policy = kubelet.memory_throttling_factor, kubelet.memory_reservation_policy
    has_gate = release.enabled(Gate.MEMORY_QOS)
    if has_gate and factor is None and not release.has(Change.MEMORY_HIGH_NEEDS_FACTOR):
        yield "memoryThrottlingFactor is required when MemoryQoS feature flag is enabled"
    if factor is not None and not 0 < factor <= 1:
        yield f"memoryThrottlingFactor {factor:g} must be greater than 0 and less than or equal to 1.0"
    if not release.has(Change.MEMORY_RESERVATION_POLICY):
        return
    if policy is MemoryReservationPolicy.TIERED and not has_gate:
        yield f'memoryReservationPolicy "{policy}" requires MemoryQoS feature gate to be enabled'
    if policy is MemoryReservationPolicy.UNSET:
        options = '"None" or "TieredReservation"'
        yield f'option "" specified for memoryReservationPolicy. Valid options are {options}'


def _go_duration(duration_us: int) -> str:
    """Format microseconds as Go prints a Duration below a minute: `100ms`, `123.456ms`, `1.5s`, `50µs`."""
    for unit, size in (("s", 1_000_000), ("ms", 1000)):
        if duration_us >= size:
            return f"{duration_us / size:.6f}".rstrip("0").removesuffix(".") + unit
    return f"{duration_us}µs" if duration_us else "0s"


class MistakeCode(StrEnum):
    """The kinds of mistakes."""

    VERSION = "version"
    UNKNOWN_FIELD = "unknown field"
    REFUSAL = "refusal"
    ODD_SIZE = "odd size"


class Mistake(NamedTuple):
    """A mistake at a path of an object; `is_refused` is True if a server refuses it."""

    code: MistakeCode
    path: str
    message: str
    is_refused: bool


def manifest_mistakes(raw: Mapping[str, Any], pod: Pod) -> Iterator[Mistake]:
    """Yield the mistakes in a manifest of a pod or workload.

    For custom resources only the containers are checked, and no mistake means a refusal.
    """
    is_own, spec = not isinstance(pod, CustomWorkload), dotted(spec_path(pod))
    yield from _version_mistakes(raw, pod)
    for field in unknown_fields(raw, pod.kind) if is_own else _unknown_in_containers(raw, pod):
        yield Mistake(MistakeCode.UNKNOWN_FIELD, field, f'unknown field "{field}"', is_refused=is_own)
    for refusal in _refusals(pod):
        path = re.sub("^spec", spec, refusal.path)
        yield Mistake(MistakeCode.REFUSAL, path, f"{path}: {refusal.message}", is_refused=is_own)
    for where, message in _odd_sizes(pod):
        path = re.sub("^spec", spec, where)
        yield Mistake(MistakeCode.ODD_SIZE, path, f"{path}: {message}", is_refused=False)


def _version_mistakes(raw: Mapping[str, Any], pod: Pod) -> Iterator[Mistake]:
    """Yield the mistakes in apiVersion and kind; old versions are those of servers before 1.25."""
    version, is_own = raw.get("apiVersion"), not isinstance(pod, CustomWorkload)
    versions = _VERSIONS[pod.kind] if is_own else ()
    if not version and "kind" in raw:
        missing = "Object 'apiVersion' is missing: kubectl does not take it"
        yield Mistake(MistakeCode.VERSION, "kind", missing, is_refused=False)
    elif version in versions and version != versions[0]:
        old = f'no server has kind "{pod.kind}" of version "{version}" any more: write {versions[0]}'
        yield Mistake(MistakeCode.VERSION, "apiVersion", old, is_refused=False)
    elif version and version not in versions and (is_own or (version in _OWN and pod.kind not in _TEMPLATES)):
        no_kind = f'no kind "{pod.kind}" is registered for version "{version}"'
        yield Mistake(MistakeCode.VERSION, "apiVersion", no_kind, is_refused=True)


def _refusals(pod: Pod) -> Iterable[Refusal]:
    """Return the first refusal of each value, without those of a request that is defaulted from its limit.

    Names of earlier containers are refused too (`validateContainers`, `validateInitContainers`).
    """
    written = {refusal.path for refusal in pod_refusals(pod, _RELEASE)}
    refusals: dict[str, Refusal] = {}
    for refusal in pod_refusals(default_pod(pod, _RELEASE), _RELEASE):
        if ".requests[" not in refusal.path or refusal.path in written:
            is_of_several = refusal.path.endswith(".requests")
            refusals.setdefault(str(refusal) if is_of_several else refusal.path, refusal)
    names: set[str] = set()
    for kind, containers in (("containers", pod.containers), ("initContainers", pod.init_containers)):
        for index, name in enumerate(container.name for container in containers):
            path = f"spec.{kind}[{index}].name"
            if name and name in names:
                refusals[path] = Refusal(path, f'Duplicate value: "{name}"', name)
            names.add(name)
    return refusals.values()


def _unknown_in_containers(raw: Any, pod: Pod) -> Iterator[str]:
    """Yield unknown fields of containers; the kind may add fields to them, unless the name looks mistyped."""
    for key in spec_path(pod):
        raw = raw[key]
    for index, container in enumerate(raw["containers"]):
        path = f"{dotted(spec_path(pod))}.containers[{index}]."
        is_pod = spec_path(pod)[-1] == "spec"
        for field in unknown_fields(container, "Container", path):
            name = field.removeprefix(path)
            is_mistyped = is_pod and get_close_matches(name, _fields()["Container"], 1, 0.85)
            if "." in name or is_mistyped:
                yield field


def unknown_fields(raw: Mapping[str, Any], type_: str, path: str = "") -> Iterator[str]:
    """Yield the paths of fields that an object of this type does not have."""
    fields = _fields()[type_]
    for name, value in raw.items():
        inner = fields.get(name)
        if inner is None:
            yield f"{path}{name}"
        elif inner:
            if isinstance(value, Mapping):
                yield from unknown_fields(value, inner, f"{path}{name}.")
            elif isinstance(value, list):
                for index, item in enumerate(value):
                    if isinstance(item, Mapping):
                        yield from unknown_fields(item, inner, f"{path}{name}[{index}].")


def odd_size(resource: str, quantity: Quantity, unit: str = "Mi") -> str:
    """Return a hint if a quantity is implausibly small or large (a forgotten unit), else "".

    `unit` is the unit of memory that was most likely meant.
    """
    text = str(quantity)
    number = text.rstrip("numkKMGTPEi")
    if resource == MEMORY and 0 < quantity.milli_value() < LEAST_MEMORY * 1000:
        size = f"{quantity.milli_value() / 1000:,.3f}".rstrip("0").rstrip(".")
        return f"{text} is {size} byte{'' if size == '1' else 's'}; {number}{unit} was meant?"
    if resource == CPU and quantity.format is Format.BINARY_SI and quantity.sign > 0:
        return f"{text} is {quantity.value():,} cores; is it a size of memory?"
    if resource == CPU and quantity.milli_value() >= MOST_CPU_MILLI:
        return f"{text} is {quantity.value():,} cores; {quantity.value()}m was meant?"
    return ""


def memory_bytes(text: str) -> int:
    """Return the bytes of a person's size of memory. Raises QuantityError, also for absurd sizes."""
    size = parse_typed(text)
    if size.sign <= 0:
        raise QuantityError("must be positive")
    if odd := odd_size(MEMORY, size, "Gi" if text.isdecimal() else "Mi"):
        raise QuantityError(odd)
    return size.value()


def _odd_sizes(pod: Pod) -> Iterator[tuple[str, str]]:
    owners = [(f"spec.containers[{index}]", item.resources) for index, item in enumerate(pod.containers)]
    owners += [
        (f"spec.initContainers[{index}]", item.resources) for index, item in enumerate(pod.init_containers)
    ]
    if pod.spec.resources is not None:
        owners.append(("spec", pod.spec.resources))
    for owner, resources in owners:
        for side, quantities in (("limits", resources.limits), ("requests", resources.requests)):
            for name, quantity in (quantities or {}).items():
                message = odd_size(name, quantity)
                if message:
                    yield f"{owner}.resources.{side}[{name}]", message


@cache
def _fields() -> dict[str, dict[str, str]]:
    """Return the fields of each type, with the type of those that are objects or lists of them."""
    return msgspec.json.decode(FIELDS_FILE.read_bytes(), type=dict[str, dict[str, str]])
