"""The object whose requests and limits are changed, with all that its change is judged on.

Not here: the edits themselves (edit/), asking the source (landing.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from kubectl_qos.cluster.source import Source
from kubectl_qos.edit.change import Edit
from kubectl_qos.edit.goals import Goal
from kubectl_qos.edit.preview import Preview, preview
from kubectl_qos.edit.rank_goals import outlive, rank_at_least
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.kinds import WORKLOADS, pod_of_workload
from kubectl_qos.k8s.objects import ObjectMeta, Pod, convert
from kubectl_qos.present.amounts import escape
from kubectl_qos.present.notes import missing_sentence
from kubectl_qos.present.rows import PodRow
from kubectl_qos.tui.facts import Facts


class Subject:
    """A pod, or the template of a workload, as it was at one moment.

    It keeps the source that it came from: the UI may go to another cluster while a screen is open, and a
    change is never written to another one than it was made for.
    """

    def __init__(self, pod: Pod, facts: Facts, source: Source) -> None:
        snapshot = facts.snapshot
        self.pod = pod
        self.facts = facts
        self.source = source
        self.setup = snapshot.setup(pod.node_name)
        self.usage = snapshot.usage.get((pod.namespace, pod.name)) if pod.kind == "Pod" else None
        self.missing = [missing_sentence(missing) for missing in snapshot.missing]
        self._neighbours = [one for one in snapshot.pods if one.node_name == pod.node_name]

    @property
    def name(self) -> str:
        """What a sentence calls it: `pod shop/web-0`."""
        pod = self.pod
        name = f"{pod.namespace}/{pod.name}" if pod.namespace else pod.name
        return f"{pod.kind.lower()} {escape(name)}"

    def preview(self, edits: Iterable[Edit]) -> Preview:
        """What these edits do."""
        snapshot = self.facts.snapshot
        return preview(self.pod, edits, self.setup, self._neighbours, snapshot.usage)

    def others(self) -> list[PodRow]:
        """The rows of the other pods of its node, in kill order."""
        ranked = self.facts.rows.nodes.get(self.pod.node_name)
        rows = ranked.rows if ranked is not None and self.pod.node_name else ()
        key = (self.pod.namespace, self.pod.name)
        return [row for row in rows if (row.pod.namespace, row.pod.name) != key]

    def outliving(self, pod: Pod, other: Pod) -> Goal:
        """What takes `pod`, which is this one with edits, behind another one of its node."""
        return outlive(pod, other, self.setup, self._neighbours, self.facts.snapshot.usage)

    def ranking(self, pod: Pod, rank: int) -> Goal:
        """What takes `pod`, which is this one with edits, to a kill rank or a later one."""
        return rank_at_least(pod, rank, self.setup, self._neighbours, self.facts.snapshot.usage)

    def now(self, raw: Mapping[str, Any]) -> Subject:
        """The same object as a server has it now. Raises QosError where nothing can be made of it."""
        return Subject(pod_of(self.pod.kind, raw), self.facts, self.source)


def pod_of(kind: str, raw: Mapping[str, Any]) -> Pod:
    """The pod, or the template of a workload, that an object holds. Raises QosError."""
    try:
        return pod_of_workload(kind, raw) if kind in WORKLOADS else convert(raw, Pod)
    except msgspec.ValidationError as error:
        raise QosError(f"the server's {kind.lower()} cannot be read: {error}") from None


def stub(kind: str, namespace: str, name: str) -> Pod:
    """What asks a source for an object of which only the name is known."""
    return Pod(kind=kind, metadata=ObjectMeta(name=name, namespace=namespace))
