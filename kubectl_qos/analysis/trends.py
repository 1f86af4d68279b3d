"""Memory of pods since the program was started, and how fast it grows."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from operator import gt
from typing import Final, NamedTuple

from kubectl_qos.analysis.deaths import FEW_NODES
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.k8s.usage import NO_HISTORY, ContainerKey, History, PodKey, PodUsage
from kubectl_qos.qos.qos_class import QosClass, qos_class

MOST: Final = 32
"""Samples kept per pod."""
WINDOW_SECONDS: Final = 1800
"""Time in seconds over which growth is measured."""
STEADY: Final = 0.02
"""Relative variation that does not count as growth."""
LEVEL: Final = 0.25
_FEW: Final = 6
"""The samples needed to tell that growth is over: the later half grew by less than LEVEL of the earlier."""
_LASTING: Final = 3
"""Samples over which a node has to grow."""
TOO_MANY: Final = 20_000
"""From this number of pods on, times of samples would take too much memory."""
_NO_TIMES: Final = array("Q")
_KIB: Final = 1024


class _Line(NamedTuple):
    """The samples of a pod. `since` and `peaks` begin with a time in seconds, then have KiB per container."""

    samples: array[int]
    """KiB of the pod, newest last."""
    times: array[int]
    """When they were taken, in seconds; empty with TOO_MANY pods."""
    since: array[int]
    """Start point of the growth line."""
    peaks: array[int] | None
    """None for a pod with one container."""


class Trends:
    """Samples of each pod, newest last, and its growth. Written by one thread, read by widgets.

    Metrics history of the last hours precedes the samples since the start.
    """

    def __init__(self) -> None:
        self._history = NO_HISTORY
        self._last: Mapping[PodKey, PodUsage] = {}
        self._lines: dict[PodKey, _Line] = {}
        self._nodes: dict[str, list[array[int]]] = {}
        """By node, samples of time and KiB used outside pods, since that usage last shrank."""
        self._classes: dict[str, list[tuple[int, ...]]] = {}
        """By node, samples of KiB used by the pods of each class, newest last."""
        self.offers: dict[ContainerKey, int] = {}
        """Limits in bytes that fixes have offered; they are offered again while they suffice."""

    def add(self, usage: Mapping[PodKey, PodUsage], history: History = NO_HISTORY) -> None:
        """Add samples, and forget pods without usage. The first sample is stored only with the second."""
        self._history = history
        if usage is self._last:
            return
        lines: dict[PodKey, _Line] = {}
        for key, sample in usage.items():
            before, line = self._last.get(key), self._lines.get(key)
            if before is None:
                continue
            if before is not sample and (before.timestamp, before) != (sample.timestamp, sample):
                line = _longer(line, before, sample, is_timed=len(usage) < TOO_MANY)
            if line is not None:
                lines[key] = line
        self._last, self._lines = usage, lines

    def with_rates(self, snapshot: Snapshot) -> Snapshot:
        """Add the samples of a snapshot, and return it with growth rates of containers and nodes."""
        if snapshot.usage is not self._last:
            self._nodes = dict(self._node_samples(snapshot))
            self._classes = dict(self._class_samples(snapshot))
        self.add(snapshot.usage, snapshot.history)
        return replace(
            snapshot, rates=self.rates(), node_rates=self.node_rates(snapshot), offers=dict(self.offers)
        )

    def _node_samples(self, snapshot: Snapshot) -> Iterator[tuple[str, list[array[int]]]]:
        """Yield the newest samples of each node.

        A node with a running pod of unknown usage is left out: that usage would count as the node's own.
        """
        for name, pods in snapshot.by_node().items() if snapshot.node_usage else ():
            own = snapshot.own_bytes(name)
            usage = next(filter(None, map(snapshot.usage_of, pods)), None)
            if own is None or usage is None or any(_has_no_sample(pod, snapshot) for pod in pods):
                continue
            line = self._nodes.get(name, [])[-_LASTING:]
            now = array("Q", [_seconds(usage.timestamp), max(own, 0) // _KIB])
            yield name, [*line, now] if line and line[-1][1] <= now[1] else [now]

    def _class_samples(self, snapshot: Snapshot) -> Iterator[tuple[str, list[tuple[int, ...]]]]:
        """Yield the samples of each node with a new one, after its history or its earlier samples.

        With many nodes there is no room for graphs, and no samples.
        """
        history, was_stored = snapshot.history, bool(self._history.lines)
        steps = len(next(iter(history.lines.values()), ()))
        for name, pods in snapshot.by_node().items() if len(snapshot.nodes) <= FEW_NODES else ():
            release, kib = snapshot.setup(name).release, dict.fromkeys(QosClass, 0)
            no_line = [0] * steps
            stored: dict[QosClass, list[Sequence[int]]] = {qos: [no_line] for qos in QosClass}
            for pod in pods:
                usage = history.now.get(pod.key) or snapshot.usage_of(pod)
                if usage is not None and not pod.is_terminal:
                    qos = qos_class(pod, release)
                    kib[qos] += _kibibytes(usage)
                    stored[qos].append(history.lines.get(pod.key, no_line))
            before: Sequence[tuple[int, ...]] = () if was_stored else self._classes.get(name, ())
            if steps:
                totals = [map(sum, zip(*lines, strict=True)) for lines in stored.values()]
                before = [*zip(*totals, strict=True)]
            yield name, [*before[1 - MOST :], tuple(kib.values())]

    def node_rates(self, snapshot: Snapshot) -> dict[str, float]:
        """Return the growth of memory outside pods in bytes per second, of nodes that grow steadily."""
        rates = {}
        for name, line in self._nodes.items():
            seconds, grown = (after - before for before, after in zip(line[0], line[-1], strict=True))
            # A node may have lost its metrics while the samples of its pods are still the same.
            used = snapshot.node_usage.get(name)
            if len(line) >= _LASTING and seconds > 0 and used is not None and grown * _KIB > used * STEADY:
                rates[name] = grown * _KIB / seconds
        return rates

    def clear(self) -> None:
        """Forget everything."""
        self._last, self._lines, self._nodes, self._classes = {}, {}, {}, {}
        self._history = NO_HISTORY

    def of(self, key: PodKey) -> Sequence[int]:
        """Return the usage of a pod in KiB, newest last; empty before its second sample without history."""
        if key in self._history.lines:
            return self._history.lines[key]
        line = self._lines.get(key)
        return line.samples if line is not None else ()

    def times(self, key: PodKey) -> Sequence[int]:
        """Return when these samples were taken, in seconds; empty for metrics history, and with many pods."""
        line = self._lines.get(key)
        return line.times if line is not None and key not in self._history.lines else ()

    def of_node(self, name: str) -> Sequence[tuple[int, ...]]:
        """Return what the pods of each class used on a node in KiB, newest last; empty with many nodes."""
        return self._classes.get(name, ())

    def peaks(self, key: PodKey) -> Mapping[str, int]:
        """Return the peak in bytes of each container of a pod with several."""
        line, usage = self._lines.get(key), self._last.get(key)
        if line is None or line.peaks is None or usage is None:
            return {}
        return {name: kib * _KIB for name, kib in zip(usage.names, line.peaks[1:], strict=False)}

    def total(self, keys: Iterable[PodKey]) -> Sequence[int]:
        """Return the usage of several pods together in KiB, newest last."""
        by_pod = list(filter(None, map(self.of, keys)))
        most = max(map(len, by_pod), default=0)
        return [sum([kib[max(len(kib) - back, 0)] for kib in by_pod]) for back in range(most, 0, -1)]

    def rates(self) -> Callable[[Iterable[PodKey]], Mapping[ContainerKey, float]]:
        """Return a function from pods to the growth of their containers in bytes per second.

        Variation below STEADY is not growth, and growth that has levelled off does not count.
        """
        return partial(_rates, self._last, self._lines)


def _longer(line: _Line | None, before: PodUsage, sample: PodUsage, *, is_timed: bool) -> _Line:
    was, now = _amounts(before), _amounts(sample)
    line = line or _Line(array("Q", [_kibibytes(before)]), was[:1], was, None)
    samples = array("Q", [*line.samples[1 - MOST :], _kibibytes(sample)])
    times = array("Q", [*line.times[1 - MOST :], now[0]]) if is_timed else _NO_TIMES
    has_several = before.names == sample.names and len(sample.names) > 1
    peaks = array("Q", map(max, line.peaks or was, now)) if has_several else None
    return _Line(samples, times, _since(line.since, now), peaks)


def _rates(
    last: Mapping[PodKey, PodUsage], lines: Mapping[PodKey, _Line], keys: Iterable[PodKey]
) -> dict[ContainerKey, float]:
    containers: dict[ContainerKey, float] = {}
    for key in keys:
        line, usage = lines.get(key), last.get(key)
        if line is None or usage is None or len(line.since) != len(usage.names) + 1:
            continue
        first, middle, newest = line.samples[0], line.samples[len(line.samples) // 2], line.samples[-1]
        if len(line.samples) >= _FEW and newest - middle < (middle - first) * LEVEL:
            continue  # Growth has nearly stopped in the later half.
        now = _amounts(usage)
        seconds = now[0] - line.since[0]
        for name, before, after in zip(usage.names, line.since[1:], now[1:], strict=True):
            grown = after - before
            if seconds > 0 and grown > max(after * STEADY, _KIB):
                containers[key, name] = grown * _KIB / seconds
    return containers


def _amounts(usage: PodUsage) -> array[int]:
    """Return the time of the sample in seconds, and the usage of each container in KiB."""
    amounts = (amount if isinstance(amount, int) else amount.working_set_bytes for amount in usage.amounts)
    return array("Q", [_seconds(usage.timestamp), *(max(amount, 0) // _KIB for amount in amounts)])


@lru_cache(1024)
def _seconds(timestamp: str) -> int:
    moment = parse_time(timestamp)
    return max(int(moment.timestamp()), 0) if moment is not None else 0


def _since(since: array[int], now: array[int]) -> array[int]:
    """Return the start point of the growth line: now after shrinking, else at most WINDOW ago."""
    if len(since) != len(now) or any(map(gt, since[1:], now[1:])):
        return now
    if now[0] - since[0] > WINDOW_SECONDS:
        return array("Q", [(before + after) // 2 for before, after in zip(since, now, strict=True)])
    return since


def _has_no_sample(pod: Pod, snapshot: Snapshot) -> bool:
    return snapshot.usage_of(pod) is None and any(
        status.has_processes for status in pod.status.every_container
    )


def _kibibytes(usage: PodUsage) -> int:
    return max(usage.working_set_bytes, 0) // _KIB
