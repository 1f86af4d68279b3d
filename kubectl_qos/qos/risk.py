"""How little has to happen for a pod to be killed, on a scale of five levels.

Made of its flags and its rank alone, so it says nothing that they do not say; it is there to select by.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import IntEnum
from typing import Final

from kubectl_qos.qos.flags import RISKS, Flag


class Risk(IntEnum):
    """The levels, the higher the less has to happen."""

    NONE = 0
    """No processes on any node: it has ended, or is not bound yet."""
    LOW = 1
    """It runs, and nothing marks it."""
    MEDIUM = 2
    """PRIORITY or OVER-REQUEST: gone before something less important, or evicted early."""
    HIGH = 3
    """NEAR-LIMIT: its own limit is enough to kill it, whatever the node has left."""
    NEXT = 4
    """Rank 1: the first to go when its node runs out of memory."""

    @property
    def word(self) -> str:
        """How people write it."""
        return self.name.lower()


WORDS: Final = tuple(level.word for level in Risk)


def risk(flags: Collection[Flag], rank: int | None, *, has_processes: bool) -> Risk:
    """The highest level that applies."""
    if not has_processes:
        return Risk.NONE
    if rank == 1:
        return Risk.NEXT
    if Flag.NEAR_LIMIT in flags:
        return Risk.HIGH
    return Risk.LOW if RISKS.isdisjoint(flags) else Risk.MEDIUM
