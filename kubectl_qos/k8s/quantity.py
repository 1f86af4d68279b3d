"""resource.Quantity, exact: parsing, canonical text, values and sums; Go's int64, durations and times.

Source: k8s.io/apimachinery/pkg/api/resource (quantity.go, amount.go, suffix.go), Go's time.ParseDuration.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Final

from kubectl_qos.errors import InputError, QuantityError

MAX_INT64 = (1 << 63) - 1
MIN_INT64 = -(1 << 63)


def fits(value: int) -> bool:
    """Return whether `value` fits into an int64."""
    return MIN_INT64 <= value <= MAX_INT64


def wrap(value: int) -> int:
    """Return `value` as an int64 that overflowed silently."""
    return (value - MIN_INT64) % (1 << 64) + MIN_INT64


def truncating_div(dividend: int, divisor: int) -> int:
    """Divide as Go does: the quotient rounded toward zero. Raises ZeroDivisionError as Go panics."""
    if dividend >= 0 < divisor:
        return dividend // divisor
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def from_float(value: float) -> int:
    """Convert as Go's `int64(float64)` on amd64: truncate; the least int64 if it does not fit."""
    return int(value) if float(MIN_INT64) <= value < -float(MIN_INT64) else MIN_INT64


_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "y": 365 * 86_400}
_NANOSECONDS: Final = {"ns": 1, "us": 1_000, "µs": 1_000, "μs": 1_000, "ms": 1_000_000} | {
    unit: seconds * 10**9 for unit, seconds in _SECONDS.items()
}
_DURATION_PART = re.compile(r"(?=\.?[0-9])([0-9]{0,99})(?:\.([0-9]{0,99}))?(ns|us|µs|μs|ms|s|m|h|d|y)")


def parse_duration(text: str, *, days: bool = False) -> int:
    """Return a Go duration (`1h30m`, `-1.5s`) in nanoseconds, with `days` also `1y30d`. Raises InputError."""
    unsigned = text[1:] if text.startswith(("+", "-")) else text
    total = position = 0
    while (part := _DURATION_PART.match(unsigned, position)) is not None and (days or part[3] not in "dy"):
        whole, fraction, unit = part[1] or "0", part[2] or "", _NANOSECONDS[part[3]]
        total += int(whole) * unit + int(fraction or "0") * unit // 10 ** len(fraction)
        position = part.end()
    if unsigned != "0" and (not unsigned or position != len(unsigned) or total > MAX_INT64):
        raise InputError(f"{text!r} is not a duration such as {'1d12h' if days else '100ms'}")
    return -total if text.startswith("-") else total


def parse_time(text: str | None) -> datetime | None:
    """Return an RFC 3339 time, UTC without a zone; None for Go's zero time and anything else."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.year == 1:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


class Format(StrEnum):
    """The notation in which a quantity was written and is printed."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


NANO: Final = -9
MILLI: Final = -3

# The regular expression is part of the message of Kubernetes; it is quoted, not used.
FORMAT_WRONG: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
NUMERIC_WRONG: Final = "unable to parse numeric part of quantity"
SUFFIX_WRONG: Final = "unable to parse quantity's suffix"
_FOREIGN: Final = re.compile(r"(\d+(?:[.,]\d+)?)\s?([kmgt])i?b?", re.IGNORECASE)


_EXAMPLES: Final = {"cpu": "250m or 1.5", "memory": "512Mi or 1.5Gi"}


def quantity_hint(text: str, resource: str = "") -> str:
    """Return a hint how to write a quantity of a resource, or what another unit (`512MB`) probably means."""
    match = _FOREIGN.fullmatch(text) if resource != "cpu" else None
    examples = _EXAMPLES.get(resource, "250m, 1.5 or 512Mi")
    meant = f"{match[1].replace(',', '.')}{match[2].upper()}i" if match else examples
    return f"write a quantity such as {meant}"


_SCAN = re.compile(
    r"(?P<value>(?P<sign>[+-]?)0*(?P<integer>[0-9]*)(?:\.(?P<fraction>[0-9]*))?)"
    r"(?P<suffix>[eEinumkKMGTP]*[-+]?[0-9]*)",
    re.ASCII,
)
_DECIMAL_SUFFIX = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_SUFFIX = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX_OF = {exponent: suffix for suffix, exponent in _DECIMAL_SUFFIX.items()}
_BINARY_SUFFIX_OF = {exponent: suffix for suffix, exponent in _BINARY_SUFFIX.items()}
_EXPONENT_SUFFIX = re.compile(r"[eE][+-]?[0-9]+", re.ASCII)

# Digits up to which Go's parser uses an int64 instead of arbitrary precision.
_INT64_DIGITS: Final = 18
_BINARY_DIGITS: Final = 15
# Multipliers that Go applies in one step: their overflow wraps, that of all others gives 0.
_ONE_STEP_SHIFTS: Final = frozenset((1, 2, 3, 6, 9))
# Larger powers are cut to this one: exact arithmetic with them would only burn CPU.
_LARGEST_POWER: Final = 5000

# What Go's strings.TrimSpace removes from a JSON token: tabs and newlines are still escaped there.
_GO_SPACE: Final = (
    " \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)


class Quantity:
    """An immutable resource quantity: `unscaled * 10 ** exponent`, exact.

    Equality, order and hash are numeric (`1Gi == 1024Mi`); `str()` is what Kubernetes prints: the original
    text if Go keeps it. With `is_decimal` Go has it in arbitrary precision (inf.Dec), whatever the format.
    """

    __slots__ = ("_milli", "_nano", "_text", "_value", "exponent", "format", "is_decimal", "unscaled")

    def __init__(
        self,
        unscaled: int,
        exponent: int = 0,
        format: Format = Format.DECIMAL_SI,  # noqa: A002 - the field's name in Kubernetes
        *,
        is_decimal: bool = False,
        text: str | None = None,
    ) -> None:
        self.unscaled = unscaled
        self.exponent = exponent
        self.format = format
        self.is_decimal = is_decimal
        self._text = text
        self._value: int | None = None
        self._milli: int | None = None
        self._nano: int | None = None

    @staticmethod
    @lru_cache(maxsize=4096)
    def parse(text: str) -> Quantity:
        """Parse as `resource.ParseQuantity`. Raises QuantityError with the message of Kubernetes."""
        if text == "0":
            return Quantity(0, text="0")
        match = _SCAN.fullmatch(text) if text else None
        if match is None:
            raise QuantityError(FORMAT_WRONG)
        integer = match["integer"] or "0"
        fraction = match["fraction"] or ""
        if match["integer"] == "" and match["fraction"] is None and match["suffix"] == "":
            return Quantity(0)
        exponent, format_ = _interpret_suffix(match["suffix"])
        negative = match["sign"] == "-"
        digits = integer + fraction

        # Up to this precision Go uses an int64; only there can it keep the original text.
        if format_ is Format.BINARY_SI:
            precision = _BINARY_DIGITS - len(integer) - exponent * 3 // 10 - 1 if not fraction else -1
            scale, multiplier = 0, 1 << exponent
        else:
            precision = _INT64_DIGITS - len(digits)
            scale, multiplier = exponent - len(fraction), 1
        if precision >= 0 and scale >= NANO:
            number = int(digits) * multiplier
            if fits(number):
                if format_ is Format.BINARY_SI:
                    kept = int(digits) & 7 != 0
                else:
                    kept = scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
                number = -number if negative else number
                return Quantity(number, scale, format_, text=text if kept else None)

        if not any(character.isdigit() for character in match["value"]):
            raise QuantityError(NUMERIC_WRONG)
        return _decimal(int(digits), len(fraction), exponent, format_, negative=negative)

    @staticmethod
    def from_json(value: object) -> Quantity:
        """Return the quantity of a decoded JSON or YAML scalar (`Quantity.UnmarshalJSON`); null is 0.

        Space around the text is allowed only here. Raises QuantityError.
        """
        if value is None:
            return Quantity(0)
        if isinstance(value, str):
            return Quantity.parse(value.strip(_GO_SPACE))
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise QuantityError(FORMAT_WRONG)
        return Quantity.parse(repr(value))

    @property
    def nano(self) -> int:
        """Return the exact value in units of 1e-9, the finest that Kubernetes stores."""
        if self._nano is None:
            self._nano = self.unscaled * _power(self.exponent - NANO)
        return self._nano

    @property
    def sign(self) -> int:
        """Return -1, 0 or 1 (`Quantity.Sign`)."""
        return (self.unscaled > 0) - (self.unscaled < 0)

    @property
    def is_zero(self) -> bool:
        """`Quantity.IsZero`."""
        return self.unscaled == 0

    def value(self) -> int:
        """Return `Quantity.Value()`: rounded up to an integer, overflowing as Go's int64 does."""
        if self._value is None:
            self._value = self._scaled(0)
        return self._value

    def milli_value(self) -> int:
        """Return `Quantity.MilliValue()`: thousandths, rounded up, overflowing as Go's int64 does."""
        if self._milli is None:
            self._milli = self._scaled(MILLI)
        return self._milli

    def _scaled(self, scale: int) -> int:
        """Return `Quantity.ScaledValue` (amount.go AsScaledInt64, scale_int.go scaledValue)."""
        if self.is_decimal:
            return self._scaled_decimal(scale)
        shift = self.exponent - scale
        if shift < 0:
            return _divide_away(self.unscaled, -shift)
        scaled = self.unscaled * _power(shift)
        return wrap(scaled) if fits(scaled) or shift in _ONE_STEP_SHIFTS else 0

    def _scaled_decimal(self, scale: int) -> int:
        down = scale - self.exponent
        if down <= 0:
            power = 10**-down
            return wrap(_low64(self.unscaled) * (power if fits(power) else MIN_INT64))
        divisor = 10**down
        # Go's fast path wraps a very negative number and then rounds any remainder up.
        if self.unscaled < MAX_INT64 and down < _INT64_DIGITS + 1:
            low = _low64(self.unscaled)
            quotient = truncating_div(low, divisor)
            return quotient + 1 if low - quotient * divisor else quotient
        quotient, remainder = divmod(self.unscaled, divisor)
        return wrap(_low64(quotient) + (1 if remainder else 0))

    def canonical(self) -> str:
        """Return `Quantity.CanonicalizeBytes`: with the largest suffix that loses nothing."""
        if self.is_zero:
            return "0"
        format_ = self.format
        if format_ is Format.BINARY_SI:
            small = -1024 * 10**9 < self.nano < 1024 * 10**9
            if small or self.nano % 10**9:
                format_ = Format.DECIMAL_SI
        if format_ is Format.BINARY_SI:
            mantissa, power = _strip_factors(self.nano // 10**9, 1024)
            return f"{mantissa}{_BINARY_SUFFIX_OF.get(power * 10, '')}"
        mantissa, power = _strip_factors(self.unscaled, 10)
        exponent = self.exponent + power
        mantissa *= 10 ** (exponent % 3)
        exponent -= exponent % 3
        if format_ is Format.DECIMAL_SI:
            return f"{mantissa}{_DECIMAL_SUFFIX_OF.get(exponent, '')}"
        return f"{mantissa}e{exponent}" if exponent else str(mantissa)

    def __str__(self) -> str:
        if self._text is None:
            self._text = self.canonical()
        return self._text

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __add__(self, other: Quantity) -> Quantity:
        """Add as `Quantity.Add`: a zero takes the other's format; int64 overflow becomes an inf.Dec."""
        format_ = other.format if self.is_zero else self.format
        is_decimal = self.is_decimal or other.is_decimal
        if not is_decimal and other.is_zero:
            return Quantity(self.unscaled, self.exponent, format_)
        if not is_decimal and self.is_zero:
            return Quantity(other.unscaled, other.exponent, format_)
        exponent, left, right = self.exponent, self.unscaled, other.unscaled
        if exponent != other.exponent:
            exponent = min(exponent, other.exponent)
            left *= _power(self.exponent - exponent)
            right *= _power(other.exponent - exponent)
        is_decimal = is_decimal or not (fits(left) and fits(right) and fits(left + right))
        return Quantity(left + right, exponent, format_, is_decimal=is_decimal)

    def __sub__(self, other: Quantity) -> Quantity:
        """Subtract as `Quantity.Sub`."""
        return self + Quantity(-other.unscaled, other.exponent, other.format, is_decimal=other.is_decimal)

    def as_decimal(self) -> Quantity:
        """Return the arbitrary-precision form of the value (`Quantity.ToDec`); it overflows differently."""
        if self.is_decimal:
            return self
        return Quantity(self.unscaled, self.exponent, self.format, is_decimal=True, text=self._text)

    def rounded_up(self, exponent: int) -> Quantity:
        """Round as `Quantity.RoundUp`: no finer than `10 ** exponent`, away from zero."""
        if not self.is_decimal and self.exponent >= exponent:
            return self
        if self.exponent >= exponent:
            unscaled = self.unscaled * 10 ** (self.exponent - exponent)
        else:
            unscaled = _divide_away(self.unscaled, exponent - self.exponent)
        return Quantity(unscaled, exponent, self.format, is_decimal=self.is_decimal)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Quantity) and self.nano == other.nano)

    def __lt__(self, other: Quantity) -> bool:
        return self.nano < other.nano

    def __le__(self, other: Quantity) -> bool:
        return self.nano <= other.nano

    def __gt__(self, other: Quantity) -> bool:
        return self.nano > other.nano

    def __ge__(self, other: Quantity) -> bool:
        return self.nano >= other.nano

    def __hash__(self) -> int:
        return hash(self.nano)


ZERO: Final = Quantity(0)


def in_bytes(size: int) -> Quantity:
    """Return a quantity of bytes in the largest unit that is exact."""
    return Quantity(size, 0, Format.BINARY_SI)


def parse_typed(text: str) -> Quantity:
    """Parse what a person typed. Raises QuantityError in plain words."""
    try:
        return Quantity.parse(text)
    except QuantityError:
        subject = "a percentage" if text.endswith("%") else "this"
        raise QuantityError(f"{subject} is not a quantity") from None


def _decimal(digits: int, places: int, exponent: int, format_: Format, *, negative: bool) -> Quantity:
    """Return the arbitrary-precision form: at most nine places, rounded up; binary capped at 2^63-1."""
    if format_ is Format.BINARY_SI:
        unscaled, exponent = digits << exponent, -places
    else:
        unscaled, exponent = digits, exponent - places
    if unscaled:
        if exponent >= NANO:
            unscaled *= _power(exponent - NANO)
        elif NANO - exponent > len(str(unscaled)):
            unscaled = 1
        else:
            unscaled = _divide_away(unscaled, NANO - exponent)
        exponent = NANO
    if format_ is Format.BINARY_SI:
        if unscaled > MAX_INT64 * 10**-exponent:
            unscaled, exponent = MAX_INT64, 0
        elif 0 < unscaled < 10**-exponent:
            format_ = Format.DECIMAL_SI
    return Quantity(-unscaled if negative else unscaled, exponent, format_, is_decimal=True)


def _interpret_suffix(suffix: str) -> tuple[int, Format]:
    """Return exponent (of 2 for binary suffixes, else of 10) and format; suffix.go `interpret`."""
    if suffix in _DECIMAL_SUFFIX:
        return _DECIMAL_SUFFIX[suffix], Format.DECIMAL_SI
    if suffix in _BINARY_SUFFIX:
        return _BINARY_SUFFIX[suffix], Format.BINARY_SI
    if not _EXPONENT_SUFFIX.fullmatch(suffix) or not fits(int(suffix[1:])):
        raise QuantityError(SUFFIX_WRONG)
    exponent = (int(suffix[1:]) + (1 << 31)) % (1 << 32) - (1 << 31)
    return exponent, Format.DECIMAL_EXPONENT


def _power(exponent: int) -> int:
    power: int = 10 ** min(exponent, _LARGEST_POWER)
    return power


def _divide_away(number: int, digits: int) -> int:
    """Return `number / 10 ** digits`, rounded away from zero."""
    quotient, remainder = divmod(abs(number), int(10**digits))
    quotient += remainder > 0
    return quotient if number >= 0 else -quotient


def _strip_factors(number: int, factor: int) -> tuple[int, int]:
    """Return `number` without its factors, and how many there were; zero has none."""
    times = 0
    while number and number % factor == 0:
        number //= factor
        times += 1
    return number, times


def _low64(number: int) -> int:
    """Return the low 64 bits of the magnitude with the sign, as big.Int.Int64."""
    return wrap(abs(number)) if number >= 0 else wrap(-wrap(abs(number)))
