"""LimitRange: the defaults that a namespace gives to containers, and the bounds it refuses them by.

Source: plugin/pkg/admission/limitranger/admission.go and pkg/apis/core/v1/defaults.go
(SetDefaults_LimitRangeItem). Admission runs after the API's own defaulting and before validation, for
creations and (1.32 and later) for resizes. The sentences are the server's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from kubectl_qos.k8s.objects import (
    Container,
    LimitRange,
    LimitRangeItem,
    Pod,
    ResourceList,
    ResourceRequirements,
)
from kubectl_qos.k8s.quantity import MAX_INT64, ZERO, Quantity
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.resources import pod_limits, pod_requests

_MAX_MILLI: Final = MAX_INT64 // 1000
_Amounts = Mapping[str, Quantity]


def with_limit_ranges(pod: Pod, ranges: Sequence[LimitRange]) -> Pod:
    """A defaulted pod with what the LimitRanges add: absent values only, the first LimitRange winning.

    Ephemeral containers get nothing; a static pod gets nothing on its node, which uses the file unmodified.
    """
    for limit_range in ranges if pod.annotations.config_source in {None, "api"} else ():
        requests, limits = _defaults(limit_range)
        if not requests and not limits:
            continue
        spec = msgspec.structs.replace(
            pod.spec,
            containers=_filled(pod.spec.containers, requests, limits),
            init_containers=_filled(pod.spec.init_containers, requests, limits),
        )
        pod = msgspec.structs.replace(pod, spec=spec)
    return pod


def limit_range_refusals(pod: Pod, ranges: Sequence[LimitRange], release: Release) -> list[str]:
    """Why a LimitRange refuses a pod that has its defaults, one sentence each."""
    found: list[str] = []
    for limit_range in ranges:
        for item in map(stored, limit_range.spec.limits):
            if item.type == "Container":
                for container in (*pod.containers, *pod.init_containers):
                    found += _bounds(item, container.requests, container.limits)
            elif item.type == "Pod":
                requests = pod_requests(pod, release, overhead=False)
                found += _bounds(item, requests, pod_limits(pod, release, overhead=False))
    return found


def stored(item: LimitRangeItem) -> LimitRangeItem:
    """An item as the server stores it: default from max, defaultRequest from default and then from min."""
    if item.type != "Container":
        return item
    default = {**item.max, **item.default}
    default_request = {**item.min, **default, **item.default_request}
    return msgspec.structs.replace(
        item, default=ResourceList(default), default_request=ResourceList(default_request)
    )


def _defaults(limit_range: LimitRange) -> tuple[_Amounts, _Amounts]:
    """Requests and limits; within one LimitRange a later item overwrites an earlier one."""
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    for item in map(stored, limit_range.spec.limits):
        if item.type == "Container":
            requests.update(item.default_request)
            limits.update(item.default)
    return requests, limits


def _filled(
    containers: tuple[Container, ...] | None, requests: _Amounts, limits: _Amounts
) -> tuple[Container, ...] | None:
    if containers is None:
        return None
    return tuple(
        msgspec.structs.replace(
            container,
            resources=ResourceRequirements(
                requests=ResourceList({**requests, **container.requests}),
                limits=ResourceList({**limits, **container.limits}),
            ),
        )
        for container in containers
    )


def _bounds(item: LimitRangeItem, requests: _Amounts, limits: _Amounts) -> Iterator[str]:
    for name, bound in item.min.items():
        yield from _least(f"minimum {name} usage per {item.type} is {bound}", name, bound, requests, limits)
    for name, bound in item.max.items():
        yield from _most(f"maximum {name} usage per {item.type} is {bound}", name, bound, requests, limits)
    for name, bound in item.max_limit_request_ratio.items():
        said = f"{name} max limit to request ratio per {item.type} is {bound}, but"
        yield from _ratio(said, name, bound, requests, limits)


def _least(said: str, name: str, bound: Quantity, requests: _Amounts, limits: _Amounts) -> Iterator[str]:
    request, limit, least = _comparable(requests.get(name, ZERO), limits.get(name, ZERO), bound)
    if name not in requests:
        yield f"{said}.  No request is specified"
    elif request < least:
        yield f"{said}, but request is {requests[name]}"
    elif name in limits and limit < least:
        yield f"{said}, but limit is {limits[name]}"


def _most(said: str, name: str, bound: Quantity, requests: _Amounts, limits: _Amounts) -> Iterator[str]:
    request, limit, most = _comparable(requests.get(name, ZERO), limits.get(name, ZERO), bound)
    if name not in limits:
        yield f"{said}.  No limit is specified"
    elif limit > most:
        yield f"{said}, but limit is {limits[name]}"
    elif name in requests and request > most:
        yield f"{said}, but request is {requests[name]}"


def _ratio(said: str, name: str, bound: Quantity, requests: _Amounts, limits: _Amounts) -> Iterator[str]:
    request, limit, _ = _comparable(requests.get(name, ZERO), limits.get(name, ZERO), bound)
    if not request:
        yield f"{said} no request is specified or request is 0"
        return
    if not limit:
        yield f"{said} no limit is specified or limit is 0"
        return
    ratio = limit / request
    milli = bound.value() <= _MAX_MILLI
    if ratio * (1000 if milli else 1) > float(bound.milli_value() if milli else bound.value()):
        yield f"{said} provided ratio is {ratio:f}"


def _comparable(request: Quantity, limit: Quantity, bound: Quantity) -> tuple[int, int, int]:
    """All three in milli where that does not overflow, else rounded up to whole units."""
    values = request.value(), limit.value(), bound.value()
    if max(values) <= _MAX_MILLI:
        return request.milli_value(), limit.milli_value(), bound.milli_value()
    return values
