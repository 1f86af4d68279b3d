"""Notes on what a list is based on: who kills, what is missing, assumed, measured or old; and permissions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final

from kubectl_qos.errors import first_few
from kubectl_qos.k8s.kubelet import NodeSetup, Origin
from kubectl_qos.k8s.node_overrides import PROFILES
from kubectl_qos.k8s.objects import MEMORY
from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.k8s.rbac import TIERS, AccessLevel, AccessReview, Permission, PermissionScope, Tier
from kubectl_qos.k8s.snapshot import Missing, Snapshot
from kubectl_qos.k8s.usage import (
    NO_HISTORY,
    History,
    PodKey,
    PodUsage,
    Sampled,
    UsageOrigin,
    ended_since,
    sampled,
)
from kubectl_qos.present.format import NONE, UNKNOWN, binary, count, duration, escape, full_name
from kubectl_qos.present.killers import killer_sentence
from kubectl_qos.present.output import cell_table
from kubectl_qos.qos.eviction import evicts_for_memory
from kubectl_qos.qos.ranking import Basis
from kubectl_qos.qos.simulation.node_state import NodeState

if TYPE_CHECKING:
    from kubectl_qos.analysis.group_table import NodeRows, OrderBasis
    from kubectl_qos.analysis.pod_table import PodRows, RankedNode
    from kubectl_qos.qos.prediction import Assumption

WITHOUT_USAGE: Final = "without usage may die earlier than shown; distances on their nodes are upper bounds"
NO_PODS_ON_NODES: Final = "no pods that are on a node"
RECENT_SECONDS: Final = 90
"""The usual age of usage from a metrics server, which samples every minute."""
_USAGE_HINT: Final = (
    "it comes from the metrics API, or with -f from PodMetrics, kubectl top or a kubelet summary"
)


def profile_notes(assumed: Iterable[Assumption]) -> Iterator[str]:
    """Yield where the values of a profile were published, and when they were read."""
    for name in dict.fromkeys(assumption.basis.removeprefix("profile ") for assumption in assumed):
        profile = PROFILES.get(name)
        if profile is not None:
            yield f"profile {name}: as published on {profile.date} by {profile.source}"


def killer_notes(setups: Mapping[str, NodeSetup], *, has_ranks: bool = True) -> Iterator[str]:
    """Yield the sentences about these nodes' killers, each with its nodes."""
    nodes: dict[str, list[str]] = {}
    for name, setup in setups.items():
        nodes.setdefault(killer_sentence(setup, has_ranks=has_ranks), []).append(escape(name))
    for text, names in nodes.items():
        if text:
            yield f"{first_few(sorted(names))}: {text}" if any(names) else text


def setting_notes(setup: NodeSetup, node: str) -> Iterator[str]:
    """Yield which kubelet settings are left out, and that a given evictionHard is no change."""
    if setup.kubelet.qos_reserved_percent.get(MEMORY):
        yield f"left out: the memory limits of QoS classes on {node} (qosReserved): see kubectl qos tree"
    if setup.kubelet.origin("eviction_hard") is Origin.GIVEN and MEMORY in setup.node.status_allocatable:
        yield (
            f"evictionHard is taken as what {node} has now, so that its allocatable memory stays: kubectl qos"
            " compare shows what a change would do"
        )


def own_memory_phrase(own_bytes: int | None) -> str:
    """Return a node's memory outside of pods, `, the node itself 300Mi`; "" below 1Mi."""
    return f", the node itself {binary(own_bytes)}" if own_bytes and own_bytes >= 1 << 20 else ""


def own_memory_notes(own: Mapping[str, int | None], usage: Mapping[PodKey, PodUsage]) -> Iterator[str]:
    """Name the nodes whose memory outside of pods is unknown, and how to get it."""
    unknown = sorted(escape(name) or "the node" for name, own_bytes in own.items() if own_bytes is None)
    if unknown and usage:
        yield (
            f"memory used outside pods on {first_few(unknown)} is unknown: to show it, grant list on"
            " nodes.metrics.k8s.io (docs/rbac/nodes.yaml), or use --usage=summary, or NodeMetrics with -f"
        )


def pod_table_notes(snapshot: Snapshot, rows: PodRows) -> Iterator[str]:
    """Yield what the kill orders of these pods are based on, and who kills in another order."""
    yield from _ranking_notes(snapshot, rows.nodes, "RANK{where} is by oom_score_adj alone")
    yield from killer_notes({name: node.setup for name, node in rows.nodes.items()})
    if snapshot.history.containers:
        yield history_note(snapshot.history)


_FULL: Final = 0.95


def node_table_notes(snapshot: Snapshot, nodes: NodeRows) -> Iterator[str]:
    """Yield what the kill orders of nodes are based on, and where their own memory use comes from."""
    orders = {name: node.order for name, node in nodes.nodes.items() if node.order is not None}
    yield from _ranking_notes(snapshot, orders, "who dies next{where} is unknown")
    yield from killer_notes({name: order.setup for name, order in orders.items()}, has_ranks=False)
    full = [
        f"{escape(row.name)} uses {binary(row.whole)}, {row.whole / row.capacity:.0%} of its capacity"
        for row in nodes.rows
        if row.whole
        and row.capacity
        and (row.whole >= _FULL * row.capacity or row.whole > (row.allocatable or row.capacity))
    ]
    if full:
        yield (
            f"{first_few(full)}: this is the working set, by which the kubelet evicts. It includes page"
            " cache in use and kernel memory, which the free command counts as available; %USED, like MEMORY%"
            " of kubectl top nodes, is a share of allocatable memory: above 100% a node uses reserved memory"
        )
    own = {row.name: row.own for row in nodes.rows if row.memory.used_bytes}
    yield from own_memory_notes(own, snapshot.usage)


def eviction_notes(assumed: Mapping[str, int | None]) -> Iterator[str]:
    """Say that the eviction thresholds of these nodes are assumed; nodes with None have no threshold."""
    thresholds = {name: threshold for name, threshold in assumed.items() if threshold is not None}
    if thresholds:
        of = escape(*thresholds) if len(thresholds) == 1 else count(len(thresholds), "node")
        least = binary(min(thresholds.values()))
        yield (
            f"the eviction threshold of {of} is assumed to be the default, {least}:"
            " no kubelet configuration states one"
        )


def never_evicted_notes(setups: Mapping[str, NodeSetup]) -> Iterator[str]:
    """Yield on which of these nodes the kubelet evicts no pod for memory, and why."""
    never = [
        escape(name) or "the node"
        for name, setup in setups.items()
        if not evicts_for_memory(setup) and not setup.node.is_windows
    ]
    if never:
        bases = {setup.kubelet.basis.get("eviction_hard", "") for setup in setups.values()} - {""}
        basis = f" (assumed from {escape(*sorted(bases))})" if len(bases) == 1 else ""
        nodes = first_few(never)
        yield f"no kubelet evicts for memory on {nodes}: there is no memory.available threshold{basis}"


def _ranking_notes(
    snapshot: Snapshot, nodes: Mapping[str, RankedNode | OrderBasis], without_usage: str
) -> Iterator[str]:
    """Yield what was missing, assumed or estimated for the kill orders of these nodes."""
    for missing in snapshot.missing:
        yield missing_sentence(missing)
    named = {name: node for name, node in nodes.items() if name or not snapshot.nodes}
    unmeasured = [escape(name) for name, node in named.items() if node.basis is Basis.ADJ]
    if unmeasured:
        where = "" if len(unmeasured) == len(named) else f" on {first_few(sorted(unmeasured))}"
        hint = "" if any("usage" in missing.what for missing in snapshot.missing) else f"; {_USAGE_HINT}"
        yield f"{without_usage.format(where=where)}: memory usage is unknown{hint}"
    unknown = sum(node.without_usage for node in nodes.values() if node.basis is Basis.USAGE)
    if unknown:
        yield f"{count(unknown, 'pod')} {WITHOUT_USAGE}"
        yield from ended_notes(snapshot)
    without_capacity = [name for name, node in named.items() if node.basis is Basis.NOTHING]
    if without_capacity:
        yield capacity_sentence(without_capacity)
    elif snapshot.overrides.memory_bytes and any(name not in snapshot.nodes for name in nodes):
        yield f"unknown nodes are assumed to have {binary(snapshot.overrides.memory_bytes)}"


def no_usage_reason(snapshot: Snapshot) -> str:
    """Say why no memory usage is known, and how to get it."""
    for missing in snapshot.missing:
        if missing.what.startswith(("memory usage", "the memory usage of")):
            return f"usage is not readable: {_cause(missing)}"
    return f"memory usage is unknown; {_USAGE_HINT}"


def unmeasured_notes(snapshot: Snapshot, states: Mapping[str, NodeState]) -> Iterator[str]:
    """Yield a note on nodes without any usage: why, how to get it, and a single node's order without it."""
    nodes = sorted(escape(name) for name, state in states.items() if state.is_unmeasured)
    where = "" if len(nodes) == len(states) else f"{first_few(nodes)}: "
    if nodes:
        state = next(iter(states.values()))
        order = oom_adj_order(state) if len(states) == 1 and state.capacity_bytes else ""
        yield f"{where}{no_usage_reason(snapshot)}; {order or 'kubectl qos top then sorts by oom_score_adj'}"


def oom_adj_order(state: NodeState) -> str:
    """Return the kill order under equal usage: pods by their highest oom_score_adj."""
    worst: dict[str, int] = {}
    for container in sorted(state.containers, key=lambda container: -container.adj):
        pod = state.pod_for(container).pod
        worst.setdefault(full_name(pod.namespace, pod.title), container.adj)
    named = first_few([f"{name} ({adj})" for name, adj in worst.items()], 5)
    return f"by oom_score_adj alone the kernel kills in this order: {named}"


def capacity_sentence(nodes: Iterable[str]) -> str:
    """Say what follows from an unknown memory capacity of nodes; a node's name may be empty."""
    names = sorted(map(escape, filter(None, nodes)))
    of = f" of {first_few(names)}" if names else ""
    return (
        f"the memory capacity{of} is unknown: oom_score_adj of Burstable pods is a range and they"
        " have no rank (--node-memory 16Gi assumes one)"
    )


def missing_sentence(missing: Missing) -> str:
    """Say what is missing, why, and the remedy."""
    return f"{missing.what} is missing: {_cause(missing)}"


def _cause(missing: Missing) -> str:
    return f"{missing.why} ({missing.remedy})" if missing.remedy else missing.why


def missing_notes(missing: Iterable[Missing], notes: Iterable[str]) -> list[str]:
    """Say what is missing, unless the other notes already give the reason."""
    text = "\n".join(notes)
    return [missing_sentence(gap) for gap in missing if not gap.why or gap.why not in text]


def usage_sentence(sampled: Sampled, now: datetime, history: History = NO_HISTORY) -> str:
    """Say where MEMORY and RANK come from, and how old these samples are."""
    source = f"{sampled.origin}{_ages(sampled, now)}"
    estimate, several = "the kernel counts RSS and swap of each process", ""
    if sampled.with_more_processes:
        several = f"{count(sampled.with_more_processes, 'pod has', 'pods have')} more than one in a container"
    if sampled.with_unknown_processes:
        estimate += f": one per container is assumed{f', but {several}' if several else ''}"
    elif several:
        estimate += f": {several}"
    if history.stat:
        source = f"{sampled.origin}, the {history.stat} over the last {history.over}"
    if sampled.origin is UsageOrigin.METRICS_API:
        return f"MEMORY and RANK are by the working set from {source}; {estimate}"
    counted = "RANK is by swap and the larger of working set and RSS, MEMORY by the working set"
    return f"{counted}, from {source}; {estimate}"


def old_usage_notes(snapshot: Snapshot, now: datetime, of_usage: Sampled | None = None) -> Iterator[str]:
    """Say how old usage is if that is more than usual; `of_usage` are its samples, if they are known.

    A statistic over hours has no age.
    """
    last = (of_usage or sampled(snapshot.usage)) if not snapshot.history.stat else None
    oldest = parse_time(last.oldest) if last is not None else None
    if last is not None and oldest is not None and (now - oldest).total_seconds() > RECENT_SECONDS:
        yield f"memory usage is from {last.origin}{_ages(last, now)}: growth since then is not counted"
    yield from ended_notes(snapshot) if of_usage is None else ()


def ended_notes(snapshot: Snapshot) -> Iterator[str]:
    """Say which running containers have only a sample of an earlier run."""
    names = [
        full_name(*pod.key, status.name)
        for pod in snapshot.pods
        if (ended := ended_since(pod, snapshot.usage_of(pod)))
        for status in pod.status.every_container
        if status.name in ended and status.has_processes
    ]
    if names:
        have = "has" if len(names) == 1 else "have"
        yield f"{first_few(names)} {have} restarted since the last sample: memory in use is unknown"


def history_note(history: History) -> str:
    """Say what PEAK and P99 cover, and what ETA assumes."""
    return (
        f"PEAK and P99 are of the last {history.over}; ETA assumes that memory keeps growing at the rate of"
        " GROWTH"
    )


def _ages(sampled: Sampled, now: datetime) -> str:
    oldest, newest = (
        duration(max(int((now - when).total_seconds()), 0)) if when is not None else ""
        for when in (parse_time(sampled.oldest), parse_time(sampled.newest))
    )
    if not oldest:
        return ""
    return f", {oldest} old" if oldest == newest else f", {newest} to {oldest} old"


_WORDS: Final = {True: "yes", False: "no", None: UNKNOWN}

Reviews = Mapping[Permission, AccessReview]


def tier_lines(reviews: Reviews, width: int | None = None) -> Iterator[str]:
    """Yield a row for each tier, fitted into a terminal."""
    words = {level: level.value for level in AccessLevel} | {AccessLevel.UNKNOWN: UNKNOWN}
    cells = [(tier.name, words[tier.level(reviews)], gives(tier), _missing(tier, reviews)) for tier in TIERS]
    return cell_table(cells, ("TIER", "ALLOWED", "GIVES", "MISSING"), width, ("GIVES", "MISSING"))


def permission_lines(reviews: Reviews, namespace: str | None) -> Iterator[str]:
    """Yield a row for each permission."""
    cells = [
        (
            tier.name,
            f"{permission.verb} {permission.target}",
            _where(permission, namespace),
            _WORDS[reviews[permission].allowed],
            gives(tier),
            escape(reviews[permission].reason) or NONE,
        )
        for tier in TIERS
        for permission in permissions(tier, namespace)
    ]
    return cell_table(cells, ("TIER", "RIGHT", "WHERE", "ALLOWED", "GIVES", "REASON"))


def permission_notes(reviews: Reviews, namespace: str | None) -> Iterator[str]:
    """Yield why a permission is unknown, and what grants the first missing tier."""
    for reason in dict.fromkeys(review.reason for review in reviews.values() if review.allowed is None):
        yield f"some permissions are {UNKNOWN}: {reason}"
    # For all namespaces the first two tiers are the same.
    for tier in TIERS if namespace is not None else TIERS[1:]:
        denied = tier.denied(reviews)
        if denied and not tier.caution:
            # The last has the widest scope.
            yield f"hint: {tier.file} grants {', '.join(phrases(denied))} ({_where(denied[-1], namespace)})"
            return


def gives(tier: Tier) -> str:
    """Return what a tier enables, with the caution about it."""
    return f"{tier.gives} ({tier.caution})" if tier.caution else tier.gives


def phrases(permissions: Iterable[Permission]) -> list[str]:
    """Return permissions in short: `get,list pods`, one phrase for each resource."""
    verbs: dict[str, dict[str, None]] = {}
    for permission in permissions:
        verbs.setdefault(permission.target, {})[permission.verb] = None
    return [f"{','.join(some)} {target}" for target, some in verbs.items()]


def permissions(tier: Tier, namespace: str | None) -> Iterable[Permission]:
    """Return the permissions of a tier; for all namespaces, namespaced and global ones coincide."""
    distinct = {}
    for permission in tier.permissions:
        distinct[permission.verb, permission.target, permission.namespace(namespace)] = permission
    return distinct.values()


def _missing(tier: Tier, reviews: Reviews) -> str:
    nothing = NONE if tier.level(reviews) is AccessLevel.YES else UNKNOWN
    first, *others = phrases(tier.denied(reviews)) or [nothing]
    return f"{first} +{len(others)}" if others else first


def _where(permission: Permission, namespace: str | None) -> str:
    inside = permission.namespace(namespace)
    if inside is not None:
        return f"namespace {escape(inside)}"
    is_cluster = permission.scope is PermissionScope.CLUSTER
    return PermissionScope.CLUSTER.value if is_cluster else PermissionScope.EVERYWHERE.value
