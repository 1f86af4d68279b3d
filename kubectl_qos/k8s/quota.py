"""ResourceQuotas: what a namespace may use in all, and what they refuse.

Sources: plugin resourcequota (staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go,
CheckRequest), pkg/quota/v1/evaluator/core/pods.go (Constraints, podMatchesScopeFunc, PodUsageFunc) and
staging/src/k8s.io/apiserver/pkg/quota/v1/generic/evaluator.go (Matches). Admission looks at status alone: a
quota whose status has no `hard` yet limits nothing, and an edited spec.hard counts once the quota
controller has copied it. The sentences are the server's. Not here: AdmissionConfiguration with
limitedResources, which no API shows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from kubectl_qos.k8s.objects import (
    CPU,
    EMPTY_RESOURCES,
    EPHEMERAL_STORAGE,
    HUGEPAGES_PREFIX,
    MEMORY,
    ObjectMeta,
    Pod,
    ResourceList,
)
from kubectl_qos.k8s.quantity import ZERO, Quantity
from kubectl_qos.k8s.releases import Gate, Release
from kubectl_qos.k8s.resources import Count, has_pod_level_resources, pod_limits, pod_requests

_Amounts = Mapping[str, Quantity]


class _QuotaObject(msgspec.Struct, frozen=True, rename="camel", gc=False, kw_only=True):
    """Frozen, unknown fields skipped."""


class ScopeExpression(_QuotaObject, frozen=True):
    """One scope that a quota is restricted to: `operator` is In, NotIn, Exists or DoesNotExist."""

    scope_name: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class ScopeSelector(_QuotaObject, frozen=True):
    """All of these must hold."""

    match_expressions: tuple[ScopeExpression, ...] = ()


class ResourceQuotaSpec(_QuotaObject, frozen=True):
    """What is limited, and for which pods."""

    hard: ResourceList = EMPTY_RESOURCES
    scopes: tuple[str, ...] = ()
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(_QuotaObject, frozen=True):
    """What holds and what is used, as the quota controller last counted."""

    hard: ResourceList = EMPTY_RESOURCES
    used: ResourceList = EMPTY_RESOURCES


class ResourceQuota(_QuotaObject, frozen=True):
    """One quota of a namespace."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()

    @property
    def name(self) -> str:
        """metadata.name."""
        return self.metadata.name


class QuotaPod(NamedTuple):
    """A pod as quotas look at it: with what their scopes need and `Pod` does not hold.

    `pod` is defaulted, by LimitRanges too. `is_best_effort` is its class (`GetPodQOS`), which is worked out
    above this room.
    """

    pod: Pod
    is_best_effort: bool
    is_terminating: bool = False
    crosses_namespaces: bool = False


class QuotaRefusal(NamedTuple):
    """A quota that refuses a pod, and the server's sentence.

    `exceeded` tells one that is used up from one that refuses such a pod always.
    """

    quota: str
    message: str
    exceeded: bool = False


class QuotaCharge(NamedTuple):
    """What a quota that matches would count for a resource: used now, added, and the most there may be."""

    quota: str
    resource: str
    used: Quantity
    added: Quantity
    hard: Quantity

    @property
    def exceeds(self) -> bool:
        """Whether it is too much."""
        return self.used + self.added > self.hard


def is_terminating(spec: Mapping[str, Any]) -> bool:
    """Scope Terminating of a raw pod spec: activeDeadlineSeconds is set (`isTerminating`)."""
    seconds = spec.get("activeDeadlineSeconds")
    return isinstance(seconds, int) and seconds >= 0


def crosses_namespaces(spec: Mapping[str, Any]) -> bool:
    """Scope CrossNamespacePodAffinity of a raw pod spec (`usesCrossNamespacePodAffinity`)."""
    affinity = spec.get("affinity") or {}
    for side in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(side) or {}
        terms = list(rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ())
        terms += [
            weighted.get("podAffinityTerm") or {}
            for weighted in rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        ]
        if any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms):
            return True
    return False


def quota_refusals(
    claim: QuotaPod, quotas: Sequence[ResourceQuota], release: Release, before: QuotaPod | None = None
) -> Iterator[QuotaRefusal]:
    """Why quotas refuse a pod, in the order of admission; a server says the first of them alone.

    Args:
        claim: the pod as it would be stored.
        quotas: of its namespace.
        release: the server's.
        before: the stored pod that is resized, None for a new one.
    """
    matching = [quota for quota in quotas if matches(quota, claim)]
    for quota in matching:
        missing = _unspecified(claim.pod, _restricted(quota), release)
        if missing:
            yield QuotaRefusal(quota.name, f"failed quota: {quota.name}: must specify {missing}")
        if any(name not in quota.status.used for name in _restricted(quota)):
            names = ",".join(sorted(_restricted(quota)))
            yield QuotaRefusal(quota.name, f"status unknown for quota: {quota.name}, resources: {names}")
    for quota in matching:
        exceeded = [charge for charge in charges(claim, [quota], release, before) if charge.exceeds]
        if exceeded:
            requested = _listed({charge.resource: charge.added for charge in exceeded})
            used = _listed({charge.resource: charge.used for charge in exceeded})
            limited = _listed({charge.resource: charge.hard for charge in exceeded})
            sentence = f"requested: {requested}, used: {used}, limited: {limited}"
            message = f"exceeded quota: {quota.name}, {sentence}"
            yield QuotaRefusal(quota.name, message, exceeded=True)


def charges(
    claim: QuotaPod, quotas: Iterable[ResourceQuota], release: Release, before: QuotaPod | None = None
) -> Iterator[QuotaCharge]:
    """What the quotas that match would count more than now; of a resize the growth alone.

    A pod that a quota did not match before is charged in full; what shrinks is not credited until the quota
    controller counts anew (`SubtractWithNonNegativeResult`).
    """
    usage = quota_usage(claim.pod, release)
    for quota in quotas:
        if not matches(quota, claim):
            continue
        held = quota_usage(before.pod, release) if before is not None and matches(quota, before) else {}
        for name, hard in sorted(quota.status.hard.items()):
            if name not in usage:
                continue
            added = usage[name] - held[name] if name in held else usage[name]
            if added.sign > 0:
                yield QuotaCharge(quota.name, name, quota.status.used.get(name, ZERO), added, hard)


def quota_usage(pod: Pod, release: Release) -> dict[str, Quantity]:
    """What a pod counts for (`PodUsageFunc`): of one that has ended only that it is there."""
    usage = {"count/pods": _ONE}
    if pod.is_terminal:
        return usage
    count = Count.SPEC
    if release.enabled(Gate.IN_PLACE_RESIZE):
        pod_level = release.enabled(Gate.IN_PLACE_RESIZE_POD_LEVEL)
        count = Count.STATUS_WITH_POD_LEVEL if pod_level else Count.STATUS
    return usage | _counted(pod_requests(pod, release, count=count), pod_limits(pod, release, count=count))


def matches(quota: ResourceQuota, claim: QuotaPod) -> bool:
    """Whether a quota is about such pods: it limits something of them, and every scope holds."""
    expressions = [ScopeExpression(scope_name=name, operator="Exists") for name in quota.spec.scopes]
    if quota.spec.scope_selector is not None:
        expressions += quota.spec.scope_selector.match_expressions
    return bool(_restricted(quota)) and all(_in_scope(one, claim) for one in expressions)


def _in_scope(expression: ScopeExpression, claim: QuotaPod) -> bool:
    """`podMatchesScopeFunc`: only PriorityClass looks at operator and values."""
    plain = {
        "Terminating": claim.is_terminating,
        "NotTerminating": not claim.is_terminating,
        "BestEffort": claim.is_best_effort,
        "NotBestEffort": not claim.is_best_effort,
        "CrossNamespacePodAffinity": claim.crosses_namespaces,
    }
    if expression.scope_name != "PriorityClass":
        return plain.get(expression.scope_name, False)
    name = claim.pod.spec.priority_class_name
    if expression.operator == "In":
        return bool(name) and name in expression.values
    if expression.operator == "NotIn":
        return not name or name not in expression.values
    return bool(name) if expression.operator == "Exists" else not name


_ONE: Final = Quantity.parse("1")
_REQUESTS: Final = "requests."
_COMPUTE: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)
_NAMED: Final = frozenset(
    (
        "count/pods",
        "pods",
        *_COMPUTE,
        *(f"{side}.{name}" for side in ("requests", "limits") for name in _COMPUTE),
    )
)
_DEMANDED: Final = frozenset(
    (CPU, MEMORY, *(f"{side}.{name}" for side in ("requests", "limits") for name in (CPU, MEMORY)))
)
"""`validationSet`: a quota on one of these makes every container set it."""


def _restricted(quota: ResourceQuota) -> list[str]:
    """What of the quota is about pods (`MatchingResources`)."""
    return [
        name
        for name in quota.status.hard
        if name in _NAMED
        or name.removeprefix(_REQUESTS).startswith(HUGEPAGES_PREFIX)
        or (name.startswith(_REQUESTS) and _is_extended(name))
    ]


def _is_extended(name: str) -> bool:
    return "/" in name and "kubernetes.io/" not in name


def _unspecified(pod: Pod, restricted: Collection[str], release: Release) -> str:
    """What containers would have to set, as the server lists it; pods with pod-level values need not."""
    if release.enabled(Gate.POD_LEVEL_RESOURCES) and has_pod_level_resources(pod, release):
        return ""
    missing: dict[str, set[str]] = {}
    for container in (*pod.containers, *pod.init_containers):
        held = _counted(container.requests, container.limits)
        for name in _DEMANDED.intersection(restricted):
            if name not in held:
                missing.setdefault(name, set()).add(container.name)
    return "; ".join(f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing))


def _counted(requests: _Amounts, limits: _Amounts) -> dict[str, Quantity]:
    """Requests and limits under the names of quotas (`podComputeUsageHelper`)."""
    found = {"pods": _ONE}
    for name, quantity in requests.items():
        if name in _COMPUTE or name.startswith(HUGEPAGES_PREFIX):
            found[name] = quantity
            found[f"{_REQUESTS}{name}"] = quantity
        elif _is_extended(name):
            found[f"{_REQUESTS}{name}"] = quantity
    for name, quantity in limits.items():
        if name in _COMPUTE:
            found[f"limits.{name}"] = quantity
    return found


def _listed(amounts: _Amounts) -> str:
    return ",".join(f"{name}={amounts[name]}" for name in sorted(amounts))
