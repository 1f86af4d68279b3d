"""How the memory of pods has changed since the UI was opened, as bars of a cell each."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Final

from kubectl_qos.k8s.usage import PodKey, PodUsage

BARS: Final = "▁▂▃▄▅▆▇█"
MOST: Final = 32
"""So many samples of a pod are kept."""
_KIB: Final = 1024


class Trends:
    """The samples of each pod, the newest last. A thread adds, widgets read."""

    def __init__(self) -> None:
        self._last: Mapping[PodKey, PodUsage] = {}
        self._samples: dict[PodKey, array[int]] = {}

    def add(self, usage: Mapping[PodKey, PodUsage]) -> None:
        """Another answer: every pod with a new sample has one more; pods without usage are forgotten.

        The first answer costs nothing: a pod's first sample is kept when its second one comes.
        """
        last, kept = self._last, self._samples
        if usage is last:
            return
        found: dict[PodKey, array[int]] = {}
        for key, sample in usage.items():
            before, samples = last.get(key), kept.get(key)
            if before is None:
                continue
            if before is not sample and (before.timestamp, before) != (sample.timestamp, sample):
                samples = samples if samples is not None else array("Q", [_kibibytes(before)])
                samples = array("Q", [*samples[1 - MOST :], _kibibytes(sample)])
            if samples is not None:
                found[key] = samples
        self._last, self._samples = usage, found

    def clear(self) -> None:
        """Forget everything: other pods of the same names follow."""
        self._last, self._samples = {}, {}

    def of(self, key: PodKey) -> Sequence[int]:
        """What a pod used, in KiB, the newest last; nothing before its second sample."""
        return self._samples.get(key, ())


def sparkline(samples: Sequence[int], most: int | None, cells: int) -> str:
    """The last samples as bars, between nothing and `most`, or the highest of them where it is not known."""
    shown = samples[-cells:]
    highest = max(most or 0, *shown) if shown else 0
    if not highest:
        return ""
    return "".join(BARS[min(sample * len(BARS) // highest, len(BARS) - 1)] for sample in shown)


def _kibibytes(usage: PodUsage) -> int:
    return max(usage.working_set_bytes, 0) // _KIB
