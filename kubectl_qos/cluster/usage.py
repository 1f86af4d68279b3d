"""How much memory pods use, as the metrics API or the kubelets say it, and why that may be unknown.

The metrics API gives working sets of all pods in one answer. The kernel ranks by RSS and swap, which only the
kubelets' own summary has: one answer a node, by way of the node proxy, whose right allows far more than
reading (docs/rights.md).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from http import HTTPStatus
from typing import Final, NamedTuple

from kubectl_qos.cluster.kube_api import KubeApi
from kubectl_qos.cluster.pager import side_by_side
from kubectl_qos.errors import ApiError, QosError
from kubectl_qos.k8s.snapshot import Missing
from kubectl_qos.k8s.usage import PodKey, PodUsage, Summary, usage_by_pod, usage_from_summary
from kubectl_qos.transport import logging as log

NODES_AT_ONCE: Final = 8

_GRANT_METRICS: Final = "grant list on pods in the API group metrics.k8s.io in all namespaces"
_GRANT_PROXY: Final = (
    "grant get on nodes/proxy, which also allows commands in any container; or --usage=metrics"
)


class UsageChoice(StrEnum):
    """Where usage is read from."""

    METRICS = "metrics"
    SUMMARY = "summary"
    NONE = "none"


class Usage(NamedTuple):
    """Usage by namespace and name, and what of it could not be had."""

    by_pod: Mapping[PodKey, PodUsage]
    missing: Missing | None = None


NO_USAGE: Final = Usage({})


def read_usage(api: KubeApi, choice: UsageChoice, namespace: str | None, nodes: Collection[str]) -> Usage:
    """Usage of all pods, because a rank is among the pods of every namespace.

    Args:
        api: who is asked.
        choice: where usage comes from.
        namespace: what is asked about where all namespaces are forbidden.
        nodes: whose kubelets are asked for a summary.
    """
    usage = _read(api, choice, namespace, nodes)
    why = f", and not known: {usage.missing.what}: {usage.missing.why}" if usage.missing is not None else ""
    log.log(log.DECISIONS, f"usage from {choice}: of {len(usage.by_pod)} pods{why}")
    return usage


def _read(api: KubeApi, choice: UsageChoice, namespace: str | None, nodes: Collection[str]) -> Usage:
    if choice is UsageChoice.NONE:
        return NO_USAGE
    if choice is UsageChoice.SUMMARY:
        return _of_kubelets(api, nodes)
    try:
        return Usage(usage_by_pod(api.pod_metrics()))
    except ApiError as error:
        if error.status in {HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE}:
            remedy = "install metrics-server; without it the order is by oom_score_adj alone"
            return Usage({}, Missing("memory usage", "Metrics API not available", remedy))
        if error.status != HTTPStatus.FORBIDDEN or namespace is None:
            return Usage({}, Missing("memory usage", str(error), _GRANT_METRICS))
        of_others = Missing("the memory usage of other namespaces", str(error), _GRANT_METRICS)
    except QosError as error:
        return Usage({}, Missing("memory usage", str(error)))
    try:
        return Usage(usage_by_pod(api.pod_metrics(namespace)), of_others)
    except QosError as error:
        return Usage({}, Missing("memory usage", str(error), _GRANT_METRICS))


def _of_kubelets(api: KubeApi, nodes: Collection[str]) -> Usage:
    """What the kubelets of these nodes say; who may not ask the first is not made to ask the others."""
    first, *others = sorted(nodes) or [""]
    if not first:
        return NO_USAGE
    answers: dict[str, Callable[[], Summary]] = side_by_side(api.summary, [first], most=1)
    try:
        answers[first]()
    except QosError as error:
        if isinstance(error, ApiError) and error.status == HTTPStatus.FORBIDDEN:
            return Usage({}, Missing("memory usage", str(error), _GRANT_PROXY))
    answers |= side_by_side(api.summary, others, most=NODES_AT_ONCE)
    found: dict[PodKey, PodUsage] = {}
    silent: dict[str, QosError] = {}
    for name, answer in answers.items():
        try:
            found |= usage_from_summary(answer())
        except QosError as error:
            silent[name] = error
    if not silent:
        return Usage(found)
    name = min(silent)
    more = f" and {len(silent) - 1} more nodes" if len(silent) > 1 else ""
    return Usage(found, Missing(f"the memory usage of {name}{more}", str(silent[name])))
