"""Eviction thresholds as amounts.

Source: pkg/kubelet/eviction/helpers.go (parseThresholdStatement, GetThresholdQuantity).
"""

from __future__ import annotations

import struct

from kubectl_qos.k8s.int64 import from_float
from kubectl_qos.k8s.quantity import Format, Quantity


def threshold(text: str, capacity: Quantity) -> Quantity:
    """`100Mi` or `5%` of a capacity; a percentage is float32 upstream, and so here."""
    if not text.endswith("%"):
        return Quantity.parse(text)
    percentage = _float32(_float32(float(text.rstrip("%"))) / 100)
    return Quantity(from_float(float(capacity.value()) * percentage), 0, Format.BINARY_SI)


def _float32(value: float) -> float:
    rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    return rounded
