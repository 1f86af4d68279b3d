"""ResourceQuotas and LimitRanges: what a namespace allows in total, and what it adds to pods and refuses.

The sentences are the server's. Sources of quotas:
k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go (CheckRequest),
k8s.io/apiserver/pkg/quota/v1/generic/evaluator.go (Matches) and pkg/quota/v1/evaluator/core/pods.go
(Constraints, podMatchesScopeFunc, PodUsageFunc). Admission only reads status: a quota whose status has no
`hard` yet limits nothing, and an edited spec.hard counts once the quota controller has copied it.
AdmissionConfiguration with limitedResources is ignored: no API shows it.

Sources of LimitRanges: plugin/pkg/admission/limitranger/admission.go and pkg/apis/core/v1/defaults.go
(SetDefaults_LimitRangeItem). Admission runs after the API's own defaulting and before validation, for
creations and (1.32 and later) for resizes.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import gt, lt
from typing import Final, NamedTuple

import msgspec

from kubectl_qos.k8s.defaulting import with_containers
from kubectl_qos.k8s.objects import (
    CPU,
    EMPTY_RESOURCES,
    EPHEMERAL_STORAGE,
    HUGEPAGES_PREFIX,
    MEMORY,
    ApiStruct,
    Container,
    Json,
    ObjectMeta,
    Pod,
    ResourceList,
    ResourceRequirements,
    nested,
    nested_list,
)
from kubectl_qos.k8s.quantity import MAX_INT64, ZERO, Quantity
from kubectl_qos.k8s.releases import Gate, Release
from kubectl_qos.k8s.resources import (
    admission_count,
    has_pod_level_resources,
    is_extended,
    pod_limits,
    pod_requests,
)

_Amounts = Mapping[str, Quantity]


class _ScopeExpression(ApiStruct, frozen=True):
    """A scope of a quota; `operator` is In, NotIn, Exists or DoesNotExist."""

    scope_name: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class _ScopeSelector(ApiStruct, frozen=True):
    match_expressions: tuple[_ScopeExpression, ...] = ()


class _ResourceQuotaSpec(ApiStruct, frozen=True):
    hard: ResourceList = EMPTY_RESOURCES
    scopes: tuple[str, ...] = ()
    scope_selector: _ScopeSelector | None = None


class ResourceQuotaStatus(ApiStruct, frozen=True):
    """The limits in force and what is used, by the quota controller's last count."""

    hard: ResourceList = EMPTY_RESOURCES
    used: ResourceList = EMPTY_RESOURCES


class ResourceQuota(ApiStruct, frozen=True):
    """A quota of a namespace."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _ResourceQuotaSpec = _ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()

    @property
    def name(self) -> str:
        """Return metadata.name."""
        return self.metadata.name


class QuotaPod(NamedTuple):
    """A pod, defaulted also by LimitRanges, with values for the scopes of quotas; `qos/` has its class."""

    pod: Pod
    is_best_effort: bool
    is_terminating: bool = False
    crosses_namespaces: bool = False


class QuotaRefusal(NamedTuple):
    """A quota that refuses a pod, with the server's sentence; unless `exceeded`, it always refuses it."""

    quota: str
    message: str
    exceeded: bool = False


class QuotaCharge(NamedTuple):
    """The count of a quota for a resource: used now, added by a pod, and the limit."""

    quota: str
    resource: str
    used: Quantity
    added: Quantity
    hard: Quantity

    @property
    def exceeds(self) -> bool:
        """Return whether the limit is exceeded."""
        return self.used + self.added > self.hard


def is_terminating(spec: Json) -> bool:
    """Return scope Terminating of a raw pod spec: activeDeadlineSeconds is set (`isTerminating`)."""
    seconds = spec.get("activeDeadlineSeconds")
    return isinstance(seconds, int) and seconds >= 0


def crosses_namespaces(spec: Json) -> bool:
    """Return scope CrossNamespacePodAffinity of a raw pod spec (`usesCrossNamespacePodAffinity`)."""
    for side in ("podAffinity", "podAntiAffinity"):
        rules = nested(spec, "affinity", side)
        terms = nested_list(rules, "requiredDuringSchedulingIgnoredDuringExecution")
        preferred = nested_list(rules, "preferredDuringSchedulingIgnoredDuringExecution")
        terms += [nested(weighted, "podAffinityTerm") for weighted in preferred]
        if any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms):
            return True
    return False


def with_requests_added(quota: ResourceQuota, more_bytes: int) -> ResourceQuota:
    """Return the quota with further memory requests counted as used."""
    more, used = Quantity(more_bytes), dict(quota.status.used)
    used |= {name: used[name] + more for name in (MEMORY, f"requests.{MEMORY}") if name in used}
    status = msgspec.structs.replace(quota.status, used=ResourceList(used))
    return msgspec.structs.replace(quota, status=status)


def quota_refusals(
    quota_pod: QuotaPod, quotas: Sequence[ResourceQuota], release: Release, before: QuotaPod | None = None
) -> Iterator[QuotaRefusal]:
    """Yield why the quotas of a namespace refuse a pod, in the order of admission; servers report one.

    `quota_pod` is the pod as it would be stored, `before` the stored one that is resized, None for a new pod.
    """
    matching = [quota for quota in quotas if matches(quota, quota_pod)]
    for quota in matching:
        limited = _limited_resources(quota)
        missing = _unspecified(quota_pod.pod, limited, release)
        if missing:
            yield QuotaRefusal(quota.name, f"failed quota: {quota.name}: must specify {missing}")
        if any(name not in quota.status.used for name in limited):
            names = ",".join(sorted(limited))
            yield QuotaRefusal(quota.name, f"status unknown for quota: {quota.name}, resources: {names}")
    for quota in matching:
        exceeded = [charge for charge in charges(quota_pod, [quota], release, before) if charge.exceeds]
        if exceeded:
            requested = ",".join(f"{charge.resource}={charge.added}" for charge in exceeded)
            used = ",".join(f"{charge.resource}={charge.used}" for charge in exceeded)
            hard = ",".join(f"{charge.resource}={charge.hard}" for charge in exceeded)
            amounts = f"requested: {requested}, used: {used}, limited: {hard}"
            yield QuotaRefusal(quota.name, f"exceeded quota: {quota.name}, {amounts}", exceeded=True)


def charges(
    quota_pod: QuotaPod, quotas: Iterable[ResourceQuota], release: Release, before: QuotaPod | None = None
) -> Iterator[QuotaCharge]:
    """Yield what the matching quotas would count in addition, by resource; for a resize only the growth.

    A pod that a quota did not match before is charged in full. Smaller values are credited only when the
    quota controller counts again (`SubtractWithNonNegativeResult`).
    """
    usage = quota_usage(quota_pod.pod, release)
    for quota in quotas:
        if not matches(quota, quota_pod):
            continue
        old = quota_usage(before.pod, release) if before is not None and matches(quota, before) else {}
        for name, hard in sorted(quota.status.hard.items()):
            if name in usage:
                added = usage[name] - old[name] if name in old else usage[name]
                if added.sign > 0:
                    yield QuotaCharge(quota.name, name, quota.status.used.get(name, ZERO), added, hard)


def quota_usage(pod: Pod, release: Release) -> dict[str, Quantity]:
    """Return what quotas count for a pod (`PodUsageFunc`); for an ended pod only the object."""
    usage = {"count/pods": _ONE}
    if pod.is_terminal:
        return usage
    count = admission_count(release)
    return usage | _counted(pod_requests(pod, release, count=count), pod_limits(pod, release, count=count))


def matches(quota: ResourceQuota, quota_pod: QuotaPod) -> bool:
    """Return whether a quota counts a pod: it limits a resource of pods, and every scope matches."""
    scopes = [_ScopeExpression(scope_name=name, operator="Exists") for name in quota.spec.scopes]
    if quota.spec.scope_selector is not None:
        scopes += quota.spec.scope_selector.match_expressions
    return bool(_limited_resources(quota)) and all(_in_scope(scope, quota_pod) for scope in scopes)


def _in_scope(expression: _ScopeExpression, quota_pod: QuotaPod) -> bool:
    """Apply `podMatchesScopeFunc`: operator and values only matter for PriorityClass."""
    values = {
        "Terminating": quota_pod.is_terminating,
        "NotTerminating": not quota_pod.is_terminating,
        "BestEffort": quota_pod.is_best_effort,
        "NotBestEffort": not quota_pod.is_best_effort,
        "CrossNamespacePodAffinity": quota_pod.crosses_namespaces,
    }
    if expression.scope_name != "PriorityClass":
        return values.get(expression.scope_name, False)
    name = quota_pod.pod.spec.priority_class_name
    if expression.operator == "In":
        return bool(name) and name in expression.values
    if expression.operator == "NotIn":
        return not name or name not in expression.values
    return bool(name) if expression.operator == "Exists" else not name


_ONE: Final = Quantity.parse("1")
_REQUESTS: Final = "requests."
_COMPUTE: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)
_POD_RESOURCES: Final = frozenset(
    ("count/pods", "pods", *(side + name for side in ("", _REQUESTS, "limits.") for name in _COMPUTE))
)
_REQUIRED: Final = frozenset(side + name for side in ("", _REQUESTS, "limits.") for name in (CPU, MEMORY))
"""`validationSet`: a quota on one of these requires it of every container."""


def _limited_resources(quota: ResourceQuota) -> list[str]:
    """Return the resources of pods that a quota limits (`MatchingResources`)."""
    return [
        name
        for name in quota.status.hard
        if name in _POD_RESOURCES
        or name.removeprefix(_REQUESTS).startswith(HUGEPAGES_PREFIX)
        or (name.startswith(_REQUESTS) and is_extended(name))
    ]


def _unspecified(pod: Pod, limited: Collection[str], release: Release) -> str:
    """List required values that containers lack, as the server does; pod-level values are enough."""
    if release.enabled(Gate.POD_LEVEL_RESOURCES) and has_pod_level_resources(pod, release):
        return ""
    missing: dict[str, set[str]] = {}
    for container in (*pod.containers, *pod.init_containers):
        counted = _counted(container.requests, container.limits)
        for name in _REQUIRED.intersection(limited):
            if name not in counted:
                missing.setdefault(name, set()).add(container.name)
    return "; ".join(f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing))


def _counted(requests: _Amounts, limits: _Amounts) -> dict[str, Quantity]:
    """Return requests and limits by the names that quotas have for them (`podComputeUsageHelper`)."""
    counted = {"pods": _ONE}
    for name, quantity in requests.items():
        is_compute = name in _COMPUTE or name.startswith(HUGEPAGES_PREFIX)
        if is_compute:
            counted[name] = quantity
        if is_compute or is_extended(name):
            counted[_REQUESTS + name] = quantity
    for name, quantity in limits.items():
        if name in _COMPUTE:
            counted[f"limits.{name}"] = quantity
    return counted


_MAX_MILLI: Final = MAX_INT64 // 1000


class _LimitRangeItem(ApiStruct, frozen=True):
    type: str = ""
    default: ResourceList = EMPTY_RESOURCES
    default_request: ResourceList = EMPTY_RESOURCES
    min: ResourceList = EMPTY_RESOURCES
    max: ResourceList = EMPTY_RESOURCES
    max_limit_request_ratio: ResourceList = EMPTY_RESOURCES


class _LimitRangeSpec(ApiStruct, frozen=True):
    limits: tuple[_LimitRangeItem, ...] = ()


class LimitRange(ApiStruct, frozen=True):
    """A namespace's defaults and bounds."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _LimitRangeSpec = _LimitRangeSpec()

    @property
    def items(self) -> Iterator[_LimitRangeItem]:
        """Yield the items as stored: default from max, defaultRequest from default, then min."""
        for item in self.spec.limits:
            if item.type != "Container":
                yield item
                continue
            default = {**item.max, **item.default}
            default_request = {**item.min, **default, **item.default_request}
            yield msgspec.structs.replace(
                item, default=ResourceList(default), default_request=ResourceList(default_request)
            )


def with_limit_ranges(pod: Pod, ranges: Sequence[LimitRange]) -> Pod:
    """Return a defaulted pod with absent values filled in by the LimitRanges; the first LimitRange wins.

    Its annotation lists these values, as the server's does. Ephemeral containers get none, nor does a static
    pod, whose kubelet uses the file unchanged.
    """
    filled = pod
    for limit_range in ranges if pod.annotations.config_source in {None, "api"} else ():
        requests: dict[str, Quantity] = {}
        limits: dict[str, Quantity] = {}
        for item in limit_range.items:
            if item.type == "Container":
                requests.update(item.default_request)
                limits.update(item.default)
        if requests or limits:
            add = partial(_with_defaults, requests=requests, limits=limits)
            filled = msgspec.structs.replace(filled, spec=with_containers(filled.spec, add))
    added = "; ".join(
        f"{', '.join(sorted(names))} {side.removesuffix('s')} for {kind} {after.name}"
        for kind, containers, others in (
            ("container", pod.containers, filled.containers),
            ("init container", pod.init_containers, filled.init_containers),
        )
        for before, after in zip(containers, others, strict=True)
        for side in ("requests", "limits")
        if (names := getattr(after, side).keys() - getattr(before, side).keys())
    )
    if not added:
        return pod
    marked = msgspec.structs.replace(pod.annotations, limit_ranger=f"LimitRanger plugin set: {added}")
    return msgspec.structs.replace(filled, metadata=msgspec.structs.replace(pod.metadata, annotations=marked))


def _with_defaults(container: Container, *, requests: _Amounts, limits: _Amounts) -> Container:
    resources = ResourceRequirements(
        requests=ResourceList({**requests, **container.requests}),
        limits=ResourceList({**limits, **container.limits}),
    )
    return msgspec.structs.replace(container, resources=resources)


def limit_range_refusals(pod: Pod, ranges: Sequence[LimitRange], release: Release) -> list[str]:
    """Return why the LimitRanges refuse a pod that has their defaults, one sentence each."""
    refusals: list[str] = []
    for item in (item for limit_range in ranges for item in limit_range.items):
        owners: list[tuple[_Amounts, _Amounts]] = []
        if item.type == "Container":
            containers = (*pod.containers, *pod.init_containers)
            owners = [(container.requests, container.limits) for container in containers]
        elif item.type == "Pod":
            totals = pod_requests(pod, release, overhead=False), pod_limits(pod, release, overhead=False)
            owners = [totals]
        for requests, limits in owners:
            refusals += _out_of_bounds(item, requests, limits)
            refusals += _above_ratio(item, requests, limits)
    return refusals


def _out_of_bounds(item: _LimitRangeItem, requests: _Amounts, limits: _Amounts) -> Iterator[str]:
    amounts = {"request": requests, "limit": limits}
    for word, bounds, first, second, is_beyond in (
        ("minimum", item.min, "request", "limit", lt),
        ("maximum", item.max, "limit", "request", gt),
    ):
        for name, bound in bounds.items():
            rule = f"{word} {name} usage per {item.type} is {bound}"
            request, limit, comparable_bound = _comparable(name, requests, limits, bound)
            values = {"request": request, "limit": limit}
            if name not in amounts[first]:
                yield f"{rule}.  No {first} is specified"
            elif is_beyond(values[first], comparable_bound):
                yield f"{rule}, but {first} is {amounts[first][name]}"
            elif name in amounts[second] and is_beyond(values[second], comparable_bound):
                yield f"{rule}, but {second} is {amounts[second][name]}"


def _above_ratio(item: _LimitRangeItem, requests: _Amounts, limits: _Amounts) -> Iterator[str]:
    for name, bound in item.max_limit_request_ratio.items():
        request, limit, _ = _comparable(name, requests, limits, bound)
        rule = f"{name} max limit to request ratio per {item.type} is {bound}, but"
        is_milli = bound.value() <= _MAX_MILLI
        maximum = bound.milli_value() if is_milli else bound.value()
        if not request:
            yield f"{rule} no request is specified or request is 0"
        elif not limit:
            yield f"{rule} no limit is specified or limit is 0"
        elif limit / request * (1000 if is_milli else 1) > float(maximum):
            yield f"{rule} provided ratio is {limit / request:f}"


def _comparable(name: str, requests: _Amounts, limits: _Amounts, bound: Quantity) -> tuple[int, int, int]:
    """Return request, limit and bound in milli, or rounded up to whole units if milli overflow."""
    request, limit = requests.get(name, ZERO), limits.get(name, ZERO)
    values = request.value(), limit.value(), bound.value()
    if max(values) <= _MAX_MILLI:
        return request.milli_value(), limit.milli_value(), bound.milli_value()
    return values
