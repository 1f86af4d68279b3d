"""The memory that pods use, by the metrics API or the kubelets' summaries, and why it may be unknown.

The metrics API has the working sets of all pods in one answer. The kernel counts swap too, which only the
kubelets' summaries have, through the node proxy: a right to far more than reading (docs/rights.md). They also
have the number of processes of a pod, and pressure stall information.
"""

from collections.abc import Callable, Collection, Container
from enum import StrEnum
from http import HTTPStatus
from typing import Final

from kubectl_qos.cluster.background import run_all
from kubectl_qos.cluster.kube_api import KubeApi, read_shortages
from kubectl_qos.errors import ApiError, QosError
from kubectl_qos.k8s.snapshot import NO_USAGE, Missing, Usage
from kubectl_qos.k8s.usage import PodKey, PodUsage, Pressure, usage_by_node, usage_by_pod, usage_from_summary
from kubectl_qos.transport import logging as log

NODES_AT_ONCE: Final = 8

_GRANT_PROXY: Final = (
    "grant get on nodes/proxy, which also allows commands in any container; or --usage=metrics"
)


class UsageChoice(StrEnum):
    """Where to read usage from."""

    METRICS = "metrics"
    SUMMARY = "summary"
    PROMETHEUS = "prometheus"
    NONE = "none"


UsageReader = Callable[[], Usage]
"""Reads usage elsewhere than from the cluster, such as from Prometheus."""


def read_usage(
    api: KubeApi,
    choice: UsageChoice,
    namespace: str | None,
    nodes: Collection[str],
    reader: UsageReader | None = None,
    of: Container[PodKey] | None = None,
) -> Usage:
    """Read the usage of all pods, as ranks need; of `namespace` if the others' is forbidden.

    With `of`, only the usage of these pods is kept if a source has that of all nodes.
    """
    if choice is UsageChoice.NONE:
        usage = NO_USAGE
    elif reader is not None:
        usage = reader()
        if of is not None:
            usage = usage._replace(by_pod={key: pod for key, pod in usage.by_pod.items() if key in of})
        if not usage.by_pod and choice is UsageChoice.METRICS:
            usage = _from_metrics(api, namespace, of)._replace(missing=usage.missing)
    else:
        by_metrics = choice is UsageChoice.METRICS
        usage = _from_metrics(api, namespace, of) if by_metrics else _from_summaries(api, nodes)
    why = f", and not known: {usage.missing.what}: {usage.missing.why}" if usage.missing is not None else ""
    log.log(log.DECISIONS, f"usage from {choice}: of {len(usage.by_pod)} pods{why}")
    return usage


def with_shortages(api: KubeApi, usage: Usage) -> Usage:
    """Add when memory was last short on nodes, if any usage is known: only distances need it."""
    try:
        if not usage.by_pod:
            return usage
        return usage._replace(shortages=read_shortages(api.client))
    except QosError as error:
        log.log(log.DECISIONS, f"the events of nodes are not known: {error}")
        return usage


def _from_metrics(api: KubeApi, namespace: str | None, of: Container[PodKey] | None) -> Usage:
    try:
        return _with_nodes(api, Usage(usage_by_pod(api.pod_metrics(), of)))
    except ApiError as error:
        if error.status in {HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE}:
            remedy = "install metrics-server; without it the order is by oom_score_adj alone"
            return Usage({}, Missing("memory usage", "Metrics API not available", remedy))
        if error.status != HTTPStatus.FORBIDDEN or namespace is None:
            return Usage({}, Missing("memory usage", str(error), _grant_metrics("in all namespaces")))
        grant = _grant_metrics("in all namespaces")
        of_others = Missing("the memory usage of other namespaces", str(error), grant)
    except QosError as error:
        return Usage({}, Missing("memory usage", str(error)))
    try:
        return _with_nodes(api, Usage(usage_by_pod(api.pod_metrics(namespace), of), of_others))
    except QosError as error:
        remedy = ""
        if isinstance(error, ApiError) and error.status == HTTPStatus.FORBIDDEN:
            remedy = _grant_metrics(f"in the namespace {namespace}, or in all")
        return Usage({}, Missing("memory usage", str(error), remedy))


def _with_nodes(api: KubeApi, usage: Usage) -> Usage:
    """Add the usage of whole nodes; without it distances say that they are upper bounds."""
    try:
        return usage._replace(by_node=usage_by_node(api.node_metrics()))
    except QosError as error:
        log.log(log.DECISIONS, f"the usage of whole nodes is not known: {error}")
        return usage


def _grant_metrics(where: str) -> str:
    return f"grant list on pods in the API group metrics.k8s.io {where}"


def _from_summaries(api: KubeApi, nodes: Collection[str]) -> Usage:
    first, *others = sorted(nodes) or [""]
    if not first:
        return NO_USAGE
    summaries = run_all(api.summary, [first], at_once=1)
    refused = summaries[first]
    if isinstance(refused, ApiError) and refused.status == HTTPStatus.FORBIDDEN:
        return Usage({}, Missing("memory usage", str(refused), _GRANT_PROXY))
    summaries |= run_all(api.summary, others, at_once=NODES_AT_ONCE)
    by_pod: dict[PodKey, PodUsage] = {}
    pressure: dict[str, Pressure] = {}
    by_node: dict[str, int] = {}
    node_swap: dict[str, int] = {}
    failed: dict[str, QosError] = {}
    for node, summary in summaries.items():
        if isinstance(summary, QosError):
            failed[node] = summary
        else:
            by_pod |= usage_from_summary(summary)
            if summary.node.working_set_bytes is not None:
                by_node[node] = summary.node.working_set_bytes
            if summary.node.pressure is not None:
                pressure[node] = summary.node.pressure
            node_swap |= summary.node.swap_of(node)
    missing = None
    if failed:
        more = f" and {len(failed) - 1} more nodes" if len(failed) > 1 else ""
        missing = Missing(f"the memory usage of {min(failed)}{more}", str(failed[min(failed)]))
    return Usage(by_pod, missing, pressure, by_node, node_swap=node_swap)
