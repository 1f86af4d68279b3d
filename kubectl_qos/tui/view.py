"""What of the facts is shown at the moment, and the sentences about that. Pure values."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from kubectl_qos.k8s.kinds import Workload, find_workload
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.k8s.usage import PodKey, UsageOrigin
from kubectl_qos.present.format import duration, escape
from kubectl_qos.present.pod_rows import PodRow
from kubectl_qos.tui.actions import Keys
from kubectl_qos.tui.filters import RowFilter
from kubectl_qos.tui.follower import FollowStatus
from kubectl_qos.tui.view_model import ViewModel, oldest_usage

EVERYTHING: Final = RowFilter()
"""The filter that lets every row through."""


class ListKind(StrEnum):
    """What a list is of; the value is what people call it."""

    NODES = "nodes"
    NAMESPACES = "namespaces"
    WORKLOADS = "workloads"
    PODS = "pods"
    CONTAINERS = "containers"


@dataclass(frozen=True, slots=True)
class View:
    """What is shown: a list, of which node, namespace, workload and pod (None: all), and how much of it."""

    kind: ListKind = ListKind.PODS
    node: str | None = None
    namespace: str | None = None
    workload: Workload | None = None
    pod: PodKey | None = None
    filter: RowFilter = EVERYTHING
    at_risk: bool = False
    wide: bool = False

    @property
    def is_narrowed(self) -> bool:
        """Whether something is left out by filter or by risk."""
        return bool(self.filter) or self.at_risk

    @property
    def whole(self) -> View:
        """The same list with nothing left out and only what fits of each row."""
        return replace(self, filter=EVERYTHING, at_risk=False, wide=False)

    def pod_rows(self, facts: ViewModel) -> Sequence[PodRow]:
        """The pods of the node, namespace and workload, in kill order."""
        rows = facts.rows.rows
        if self.node is not None:
            ranked = facts.rows.nodes.get(self.node)
            rows = ranked.rows if ranked is not None else ()
        if self.namespace is not None:
            rows = tuple([row for row in rows if row.pod.metadata.namespace == self.namespace])
        if self.workload is not None:
            rows = tuple([row for row in rows if find_workload(row.pod) == self.workload])
        return rows


def view_values(view: View) -> dict[str, Any]:
    """A view as JSON, to be kept for the next run: the place, not what of it was filtered."""
    values = {"kind": view.kind.value, "node": view.node, "namespace": view.namespace}
    return {**values, "workload": None if view.workload is None else list(view.workload)}


def view_from_values(values: Mapping[str, Any]) -> View | None:
    """The view of such JSON, None where it is of another form."""
    try:
        workload = values.get("workload")
        view = View(
            kind=ListKind(str(values.get("kind"))),
            node=values.get("node"),
            namespace=values.get("namespace"),
            workload=None if workload is None else Workload(*workload),
        )
    except (TypeError, ValueError):
        return None
    texts = (view.node, view.namespace, *(view.workload or ()))
    return view if all(text is None or isinstance(text, str) for text in texts) else None


def crumbs(view: View, shown: int, total: int, sorted_by: str, marked: int = 0) -> str:
    """Where we are: node, namespace, workload and pod, how much of the list, and in which order."""
    number = count(shown, view.kind) if shown == total else f"{shown:,} of {count(total, view.kind)}"
    words = [number]
    if view.filter:
        words.append(f"filter {view.filter.text}")
    if view.at_risk:
        words.append("only at risk")
    if marked:
        words.append(f"{marked:,} marked")
    words.append(f"by {sorted_by}")
    return " / ".join(breadcrumbs(view)) + "  " + "  ".join(words)


def breadcrumbs(view: View) -> list[str]:
    """The way down to what is listed, the largest first."""
    if view.kind is ListKind.NODES:
        return ["cluster"]
    if view.kind is ListKind.NAMESPACES:
        return ["namespaces"]
    found = [_node(view.node), _namespace(view.namespace)]
    if view.workload is not None:
        found.append(escape(f"{view.workload.kind}/{view.workload.name}"))
    if view.pod is not None:
        found.append(escape(view.pod[1]))
    return found


def empty_sentence(view: View, facts: ViewModel, title: str, total: int, keys: Keys) -> str:
    """Why nothing is listed, and what shows something; `total` is how many there are without a filter."""
    if view.kind is not ListKind.NODES and not facts.rows.rows:
        asked = _asked(facts.scope)
        return f"There are no pods{asked} of {escape(title)}." if asked else _none("pods", title)
    if not total:
        if view.kind in {ListKind.NODES, ListKind.NAMESPACES}:
            return _none(view.kind, title)
        return f"There are no {view.kind}{_where(view)}. {keys.first('main.next_pane')} goes to other places."
    one = view.kind.removesuffix("s")
    back = keys.first("main.back")
    if view.filter and view.at_risk:
        return f"No {one} at risk matches {view.filter.text}. {back} clears the filter."
    if view.filter:
        return f"No {one} matches {view.filter.text}. {back} shows all {total:,} again."
    return f"No {one} here is at risk. {keys.first('main.at_risk')} shows all {total:,}."


def _none(what: str, title: str) -> str:
    return f"There are no {what} in {escape(title)}."


def _asked(scope: Scope) -> str:
    """To which pods a question was narrowed, empty where it was for all."""
    found = ""
    if scope.namespace is not None:
        found += f" in namespace {escape(scope.namespace)}"
    if scope.node is not None:
        found += f" on {_node(scope.node)}"
    if scope.selector_text:
        found += f" with {escape(scope.selector_text)}"
    return found


def _where(view: View) -> str:
    """Of what a list is, as a sentence says it; empty where it is of everything."""
    found = ""
    if view.pod is not None:
        found += f" of {escape(view.pod[1])}"
    if view.workload is not None:
        found += f" of {view.workload.kind}/{escape(view.workload.name)}"
    if view.namespace is not None:
        found += f" in namespace {escape(view.namespace)}" if view.namespace else " in no namespace"
    if view.node is not None:
        found += f" on {_node(view.node)}"
    return found


def title_words(title: str, facts: ViewModel | None, now: datetime, *, readonly: bool = False) -> list[str]:
    """The title line: source, version, counts and the age of usage."""
    words = ["kubectl qos", escape(title)]
    if readonly:
        words.append("read-only")
    if facts is not None:
        snapshot = facts.snapshot
        version = _version(snapshot)
        if version:
            words.append(version)
        words += [
            count(len([name for name in facts.by_node if name]), ListKind.NODES),
            count(len(facts.rows.rows), ListKind.PODS),
        ]
        sampled = oldest_usage(facts)
        if sampled is None:
            words.append("no usage" if not snapshot.usage else "usage of unknown age")
        else:
            words.append(f"{_measure(facts)} {duration(max(int((now - sampled).total_seconds()), 0))} old")
    return words


def freshness(facts: ViewModel | None, status: FollowStatus) -> str:
    """Whether what is shown is what is: live, paused, stale and until when, or read once."""
    health = status.health
    if health.error is not None:
        seconds = math.ceil(health.retry_at - time.monotonic())
        retry = f", retry in {seconds} s" if seconds > 0 else ""
        since = health.since
        return f"! stale since {since:%H:%M:%S %Z}{retry}" if facts and since else f"! no answer{retry}"
    if facts is None:
        return "asking …"
    if status.asking:
        return "asking …"
    if not status.is_live:
        return "not live"
    return "paused" if status.paused else "live"


def _measure(facts: ViewModel) -> str:
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


def count(number: int, kind: ListKind) -> str:
    """`1 pod`, `1,234 pods`."""
    return f"{number:,} {kind if number != 1 else kind.removesuffix('s')}"
