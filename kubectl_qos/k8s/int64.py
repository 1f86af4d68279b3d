"""Go's integer arithmetic where it differs from Python's: wrapping, truncation, float conversion.

Kubernetes computes in int64; a predictor that is to agree to the last bit has to overflow as it does.
Source: the Go specification, go.dev/ref/spec (Arithmetic operators, Conversions).
"""

from __future__ import annotations

MAX_INT64 = (1 << 63) - 1
MIN_INT64 = -(1 << 63)
_MASK64 = (1 << 64) - 1


def fits(value: int) -> bool:
    """Whether `value` can be held in an int64."""
    return MIN_INT64 <= value <= MAX_INT64


def wrap(value: int) -> int:
    """`value` as an int64 that overflowed silently."""
    return ((value + (1 << 63)) & _MASK64) - (1 << 63)


def truncating_div(dividend: int, divisor: int) -> int:
    """Go's `/` on integers: the quotient rounded toward zero. Raises ZeroDivisionError as Go panics."""
    if dividend >= 0 < divisor:
        return dividend // divisor
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def from_float(value: float) -> int:
    """Go's `int64(float64)` on amd64: truncation, and the least int64 for what does not fit."""
    return int(value) if float(MIN_INT64) <= value < -float(MIN_INT64) else MIN_INT64
