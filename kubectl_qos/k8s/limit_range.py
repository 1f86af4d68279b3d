"""LimitRange: the defaults that a namespace gives to containers, and the bounds it refuses them by.

Source: plugin/pkg/admission/limitranger/admission.go and pkg/apis/core/v1/defaults.go
(SetDefaults_LimitRangeItem). Admission runs after the API's own defaulting and before validation, for
creations and (1.32 and later) for resizes. The sentences are the server's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import gt, lt
from typing import Final

import msgspec

from kubectl_qos.k8s.defaulting import with_containers
from kubectl_qos.k8s.objects import (
    EMPTY_RESOURCES,
    ApiStruct,
    Container,
    ObjectMeta,
    Pod,
    ResourceList,
    ResourceRequirements,
)
from kubectl_qos.k8s.quantity import MAX_INT64, ZERO, Quantity
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.resources import pod_limits, pod_requests

_MAX_MILLI: Final = MAX_INT64 // 1000
_Amounts = Mapping[str, Quantity]


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
        """The items as the server stores them: default from max, defaultRequest from default, then min."""
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
    """A defaulted pod with what the LimitRanges add: absent values only, the first LimitRange wins.

    Ephemeral containers get nothing, nor does a static pod, whose kubelet uses the file unchanged.
    """
    for limit_range in ranges if pod.annotations.config_source in {None, "api"} else ():
        requests: dict[str, Quantity] = {}
        limits: dict[str, Quantity] = {}
        for item in limit_range.items:
            if item.type == "Container":
                requests.update(item.default_request)
                limits.update(item.default)
        if requests or limits:
            add = partial(_with_defaults, requests=requests, limits=limits)
            pod = msgspec.structs.replace(pod, spec=with_containers(pod.spec, add))
    return pod


def _with_defaults(container: Container, *, requests: _Amounts, limits: _Amounts) -> Container:
    resources = ResourceRequirements(
        requests=ResourceList({**requests, **container.requests}),
        limits=ResourceList({**limits, **container.limits}),
    )
    return msgspec.structs.replace(container, resources=resources)


def limit_range_refusals(pod: Pod, ranges: Sequence[LimitRange], release: Release) -> list[str]:
    """Why the LimitRanges refuse a pod that has their defaults, one sentence each."""
    refusals: list[str] = []
    for item in (item for limit_range in ranges for item in limit_range.items):
        owners: list[tuple[_Amounts, _Amounts]] = []
        if item.type == "Container":
            owners = [(one.requests, one.limits) for one in (*pod.containers, *pod.init_containers)]
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
    """Request, limit and bound in milli where that does not overflow, else rounded up to whole units."""
    request, limit = requests.get(name, ZERO), limits.get(name, ZERO)
    values = request.value(), limit.value(), bound.value()
    if max(values) <= _MAX_MILLI:
        return request.milli_value(), limit.milli_value(), bound.milli_value()
    return values
