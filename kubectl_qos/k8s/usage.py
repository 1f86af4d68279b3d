"""How much memory containers use, and which of the several numbers that is.

Pure values; where they are read from is `cluster/usage.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple


class MemoryMeasure(StrEnum):
    """Which number stands for "memory used"; the kernel ranks by RSS and swap."""

    WORKING_SET = "working set"
    RSS_AND_SWAP = "RSS and swap"


class ContainerUsage(NamedTuple):
    """One container's memory in bytes; None is not known."""

    memory_bytes: int
    swap_bytes: int | None = None


class PodUsage(NamedTuple):
    """A pod's memory by container name, what was measured, and when (RFC 3339)."""

    containers: Mapping[str, ContainerUsage]
    measure: MemoryMeasure = MemoryMeasure.WORKING_SET
    timestamp: str = ""

    @property
    def memory_bytes(self) -> int:
        """The sum over the containers."""
        return sum([found.memory_bytes for found in self.containers.values()])


PodKey = tuple[str, str]
"""Namespace and name."""
