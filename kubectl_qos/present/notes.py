"""What a reader of a ranking has to know: what was missing, assumed or estimated, one sentence each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Protocol

from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.snapshot import Missing, Snapshot
from kubectl_qos.k8s.usage import Sampled, UsageOrigin
from kubectl_qos.present.format import binary, duration, parse_time
from kubectl_qos.qos.ranking import Basis


class OrderOfNode(Protocol):
    """What the notes need to know of a node's order."""

    @property
    def setup(self) -> NodeSetup:
        """What predictions depended on."""

    @property
    def basis(self) -> Basis:
        """What the order rests on."""

    @property
    def without_usage(self) -> int:
        """How many pods with processes have no usage."""


def ranking_notes(snapshot: Snapshot, nodes: Mapping[str, OrderOfNode]) -> Iterable[str]:
    """What was missing, assumed or estimated, one sentence each."""
    for missing in snapshot.missing:
        yield missing_sentence(missing)
    bases = {node.basis for node in nodes.values()}
    if Basis.ADJ in bases:
        yield "RANK is by oom_score_adj alone: no memory usage is known"
    elif Basis.USAGE in bases:
        partly = sum(node.without_usage for node in nodes.values())
        if partly:
            yield f"{_count(partly, 'pod')} without usage counted as using nothing"
    unknown = [
        name
        for name, node in nodes.items()
        if not node.setup.node.memory_capacity_bytes and (name or not snapshot.nodes)
    ]
    if unknown:
        yield capacity_sentence(unknown)
    elif snapshot.overrides.memory_bytes and any(name not in snapshot.nodes for name in nodes):
        yield f"nodes that are not known are assumed to have {binary(snapshot.overrides.memory_bytes)}"
    outside = {str(node.setup.release) for node in nodes.values() if node.setup.release.assumed}
    if outside:
        stand_in = ", ".join(sorted(outside))
        yield f"some nodes run a release outside 1.20 to 1.37; they are predicted as {stand_in}"


def capacity_sentence(nodes: Iterable[str]) -> str:
    """What an unknown memory capacity of nodes means; the name of a node may be empty."""
    named = sorted(filter(None, nodes))
    of = f" of {', '.join(named[:3])}" if named else ""
    return (
        f"the memory capacity{of} is unknown: oom_score_adj of Burstable pods is a range and they"
        " have no rank (--node-memory 16Gi assumes one)"
    )


def usage_sentence(found: Sampled, now: datetime) -> str:
    """What MEMORY and RANK go by, and how old that is."""
    age = _ages(found, now)
    if found.origin is UsageOrigin.KUBELET_SUMMARY:
        return f"RANK is by RSS and swap, MEMORY is the working set, both by {found.origin}{age}"
    return f"MEMORY, and so RANK, is the working set by {found.origin}{age}; the kernel counts RSS and swap"


def usage_values(found: Sampled) -> dict[str, str]:
    """The same for JSON and YAML."""
    return {"origin": found.origin.value, "oldest": found.oldest, "newest": found.newest}


def _ages(found: Sampled, now: datetime) -> str:
    oldest, newest = (
        duration(max(int((now - moment).total_seconds()), 0)) if moment is not None else ""
        for moment in (parse_time(found.oldest), parse_time(found.newest))
    )
    if not oldest:
        return ""
    return f", {oldest} old" if oldest == newest else f", {newest} to {oldest} old"


def missing_sentence(missing: Missing) -> str:
    """One line: what is missing, why, and the remedy."""
    remedy = f" ({missing.remedy})" if missing.remedy else ""
    return f"{missing.what} is missing: {missing.why}{remedy}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
