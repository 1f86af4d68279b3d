"""The living demo with a clock that only a test moves, and changes by the code that the UI uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from kubectl_qos.cluster.files import DEMO_TIME
from kubectl_qos.config.state import HistoryFile
from kubectl_qos.demo.source import LivingDemo
from kubectl_qos.edit.apply_state import ApplyResult
from kubectl_qos.edit.edits import Edit, PatchRequest, Side, build_request
from kubectl_qos.edit.history import undo_edits
from kubectl_qos.edit.related import decode_pod
from kubectl_qos.edit.status import Progress
from kubectl_qos.k8s.kinds import is_named
from kubectl_qos.k8s.objects import NodeObject, Pod, convert
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.qos.kills.analyze import Kill, find_kills
from kubectl_qos.qos.restart import oom_loops

IMPORTER = "importer-5f7b9c-2vtxk"
FULL_AT = 41
"""The second in which the importer reaches its limit for the first time."""
THUMBS_EVICTED_AT = 239
"""The second in which the kubelet of worker-1 evicts."""
NODE_FULL_AT = 321
"""The second in which worker-3 is full."""


def limit(text: str, owner: str = "c") -> Edit:
    return Edit(owner, Side.LIMITS, "memory", Quantity.parse(text))


def request(text: str, owner: str = "c") -> Edit:
    return Edit(owner, Side.REQUESTS, "memory", Quantity.parse(text))


class Stepped(LivingDemo):
    """The demo; `seconds` is how far its clock is."""

    def __init__(self, seconds: int = 0, *, may_write: bool = True) -> None:
        super().__init__(may_write=may_write, now=self.clock, tick_seconds=None)
        self.seconds = seconds
        self.history = HistoryFile(None)

    def with_kubelets(self, version: str) -> Stepped:
        """The same with other kubelets on all nodes."""
        nodes = self._advanced().world.api.nodes
        for raw in nodes:
            raw["status"]["nodeInfo"]["kubeletVersion"] = version
        found = [convert(raw, NodeObject) for raw in nodes]
        self._first = self._last = replace(self._first, nodes={one.name: one for one in found})
        return self

    def until_it_waits(self) -> int:
        """Until the importer waits after its second OOM kill; the second."""
        while not oom_loops(self.pod()):
            self.seconds += 1
        return self.seconds

    def clock(self) -> datetime:
        return DEMO_TIME + timedelta(seconds=self.seconds)

    def later(self, seconds: int) -> Snapshot:
        self.seconds += seconds
        return self.snapshot(Scope())

    def pods(self, name: str) -> list[Pod]:
        """Those whose names begin so."""
        return [pod for pod in self.snapshot(Scope()).pods if pod.name.startswith(name)]

    def pod(self, name: str = IMPORTER) -> Pod:
        return next(pod for pod in self.snapshot(Scope()).pods if is_named(pod, "Pod", name))

    def used(self, name: str = IMPORTER) -> int:
        usage = self.snapshot(Scope()).usage_of(self.pod(name))
        assert usage is not None
        return usage.working_set_bytes

    def restarts(self, name: str = IMPORTER) -> int:
        return sum(status.restart_count for status in self.pod(name).status.every_container)

    def kills(self, name: str = IMPORTER) -> Sequence[Kill]:
        snapshot = self.snapshot(Scope())
        kills = find_kills(snapshot, self.event_list(None), self.kernel_logs(), outside_pods=False)
        return [kill for kill in kills if kill.pod == name]

    def to(self, kind: str, namespace: str, name: str, *edits: Edit) -> PatchRequest:
        """The request of edits to an object as it is now."""
        raw = self.raw(self.find(kind, namespace, name))
        return build_request(raw, decode_pod(kind, raw), edits, in_place=kind == "Pod")

    def apply(self, wanted: PatchRequest, *, undoes: str = "") -> ApplyResult:
        writer = self.writer()
        return writer.apply(writer.dry_run(wanted), self.history, undoes=undoes)

    def undo(self, result: ApplyResult) -> ApplyResult:
        entry = self.history.entries()[-1]
        wanted = result.request
        raw = self.raw(self.find(wanted.kind, wanted.namespace, wanted.name))
        pod = decode_pod(wanted.kind, raw)
        edits = undo_edits(entry, pod, uid=wanted.uid)
        return self.apply(build_request(raw, pod, edits, in_place=wanted.kind == "Pod"), undoes=entry.id)

    def progress(self, result: ApplyResult) -> Progress:
        return self.writer().progress(result, self.history)
