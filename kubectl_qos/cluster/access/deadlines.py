"""How long one request may take: kubectl's --request-timeout, and bodies that end when it is over.

Source: k8s.io/client-go/tools/clientcmd/helpers.go (ParseTimeout), Go's time.ParseDuration and
http.Client.Timeout.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from kubectl_qos.errors import QosError

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

_UNITS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_DURATION = re.compile(rf"[+-]?({_PART.pattern})+")
_PART_BYTES: Final = 1 << 16


class DeadlinePassed(TimeoutError):
    """The request timeout was over before the body was."""


def seconds_of(duration: str | None) -> float | None:
    """--request-timeout in seconds, None for no limit; zero and less are none. Raises QosError."""
    if not duration:
        return None
    if re.fullmatch(r"\+?[0-9]+", duration):
        return float(duration) or None
    if not _DURATION.fullmatch(duration) and duration != "-0":
        raise QosError(
            "Invalid timeout value. Timeout must be a single integer in seconds, or an integer followed by a"
            " corresponding time unit (e.g. 1s | 2m | 3h)"
        )
    seconds = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(duration))
    return seconds if seconds > 0 and not duration.startswith("-") else None


class BoundedResponse:
    """A response whose body must have arrived by a deadline, on the clock of `time.monotonic`.

    It reads from the socket no more than once before it looks at the clock, and never waits longer than is
    left, so that neither silence nor a trickle outlasts the deadline. Everything else is the response's own.
    """

    def __init__(self, response: BaseHTTPResponse, deadline: float) -> None:
        self._response = response
        self._deadline = deadline

    def __getattr__(self, name: str) -> Any:
        return getattr(self._response, name)

    def read1(self, amt: int | None = None, decode_content: bool | None = None) -> bytes:
        """What one read of the socket gives. Raises DeadlinePassed."""
        from urllib3.exceptions import ReadTimeoutError

        left = self._deadline - time.monotonic()
        sock = getattr(self._response.connection, "sock", None)
        if sock is not None and left > 0:
            sock.settimeout(left)
        with suppress(ReadTimeoutError):
            if left > 0:
                return self._response.read1(amt, decode_content=decode_content)
        # What is left of this body must not be taken for the next answer's.
        self._response.close()
        raise DeadlinePassed

    def read(self, amt: int | None = None, decode_content: bool | None = None) -> bytes:
        """`amt` bytes, fewer only at the body's end; all of it without. Raises DeadlinePassed."""
        parts: list[bytes] = []
        missing = amt
        while missing is None or missing > 0:
            part = self.read1(min(missing or _PART_BYTES, _PART_BYTES), decode_content)
            if not part:
                break
            parts.append(part)
            missing = None if missing is None else missing - len(part)
        return b"".join(parts)

    def stream(self, amt: int | None = _PART_BYTES, decode_content: bool | None = None) -> Iterator[bytes]:
        """The body in parts, each as soon as it is there. Raises DeadlinePassed."""
        while part := self.read1(amt, decode_content):
            yield part

    @property
    def data(self) -> bytes:
        """The whole body, decoded. Raises DeadlinePassed."""
        return self.read(decode_content=True)
