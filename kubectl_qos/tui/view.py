"""What of the facts is shown at the moment, and the sentences about that. Pure values."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.k8s.usage import UsageOrigin
from kubectl_qos.present.amounts import duration, escape
from kubectl_qos.present.rows import PodRow, kill_order
from kubectl_qos.qos.flags import RISKS
from kubectl_qos.tui.facts import Facts, oldest_usage
from kubectl_qos.tui.filters import RowFilter
from kubectl_qos.tui.live import Status

EVERYTHING: Final = RowFilter()
"""The filter that lets every row through."""


@dataclass(frozen=True, slots=True)
class View:
    """The selection: a node, a namespace (None: all), a filter, and how much of each row."""

    node: str | None = None
    namespace: str | None = None
    filter: RowFilter = EVERYTHING
    at_risk: bool = False
    wide: bool = False

    def selected(self, facts: Facts) -> Sequence[PodRow]:
        """The rows of the node and namespace, in kill order."""
        rows = facts.rows.rows
        if self.node is not None:
            ranked = facts.rows.nodes.get(self.node)
            rows = tuple(sorted(ranked.rows, key=kill_order)) if ranked is not None else ()
        if self.namespace is None:
            return rows
        return [row for row in rows if row.pod.metadata.namespace == self.namespace]

    def rows(self, facts: Facts) -> Sequence[PodRow]:
        """The selected rows that the filter and `only at risk` let through."""
        rows = self.filter.selected(self.selected(facts), facts.taken)
        if self.at_risk:
            rows = [row for row in rows if not RISKS.isdisjoint(row.flags)]
        return rows


def crumbs(view: View, shown: int, total: int, sorted_by: str) -> str:
    """Where we are: node, namespace, number of pods, filter and order."""
    number = _pods(shown) if shown == total else f"{shown} of {_pods(total)}"
    words = [_node(view.node), _namespace(view.namespace), number]
    if view.filter:
        words.append(f"filter {view.filter.text}")
    if view.at_risk:
        words.append("only at risk")
    words.append(f"by {sorted_by}")
    return " / ".join(words[:2]) + "  " + "  ".join(words[2:])


def empty_sentence(view: View, facts: Facts, title: str) -> str:
    """Why no pod is shown, and what shows some."""
    if not facts.rows.rows:
        return f"There are no pods in {escape(title)}."
    selected = len(view.selected(facts))
    if not selected:
        return f"There are no pods of {_namespace(view.namespace)} on {_node(view.node)}."
    if view.filter:
        return f"No pod matches {view.filter.text}. esc shows all {selected} again."
    return f"No pod here is at risk. z shows all {selected}."


def title_words(title: str, facts: Facts | None, now: datetime) -> list[str]:
    """The title line: source, version, counts and the age of usage."""
    words = ["kubectl qos", escape(title)]
    if facts is not None:
        snapshot = facts.snapshot
        version = _version(snapshot)
        if version:
            words.append(version)
        words += [_count(len(snapshot.nodes), "node"), _pods(len(facts.rows.rows))]
        sampled = oldest_usage(facts)
        if sampled is None:
            words.append("no usage" if not snapshot.usage else "usage of unknown age")
        else:
            words.append(f"{_measure(facts)} {duration(max(int((now - sampled).total_seconds()), 0))} old")
    return words


def freshness(facts: Facts | None, status: Status) -> str:
    """Whether what is shown is what is: live, paused, stale and until when, or read once."""
    health = status.health
    if health.error is not None:
        seconds = math.ceil(health.retry_at - time.monotonic())
        retry = f", retry in {seconds} s" if seconds > 0 else ""
        since = health.since
        return f"! stale since {since:%H:%M:%S %Z}{retry}" if facts and since else f"! no answer{retry}"
    if facts is None:
        return "asking …"
    if not status.is_live:
        return "not live"
    return "paused" if status.paused else "live"


def _measure(facts: Facts) -> str:
    """What the order goes by: the kubelets' summary has what the kernel counts."""
    found = facts.rows.sampled
    by_kubelet = found is not None and found.origin is UsageOrigin.KUBELET_SUMMARY
    return "RSS and swap" if by_kubelet else "usage"


def _version(snapshot: Snapshot) -> str:
    """The server's version, else the kubelets' oldest and newest."""
    if snapshot.server_version:
        return f"v{snapshot.server_version.removeprefix('v')}"
    found = {node.status.node_info.kubelet_version for node in snapshot.nodes.values()} - {""}
    ordered = sorted(found, key=_as_numbers)
    if len(ordered) < 2:
        return "".join(ordered)
    oldest, newest = (version.rpartition(".")[0] for version in (ordered[0], ordered[-1]))
    return ordered[-1] if oldest == newest else f"{oldest} to {newest}"


def _as_numbers(version: str) -> list[int]:
    return [int(part) for part in version.removeprefix("v").split("+")[0].split(".") if part.isdigit()]


def _node(key: str | None) -> str:
    if key is None:
        return "all nodes"
    return escape(key) or "no node"


def _namespace(key: str | None) -> str:
    if key is None:
        return "all namespaces"
    return escape(key) or "no namespace"


def _pods(number: int) -> str:
    return _count(number, "pod")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
