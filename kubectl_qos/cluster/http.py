"""What a server answers to one request: its body as it arrives, unzipped, or its refusal as an error.

Not here: connections (access/), what a refusal is called (refusals.py), what bodies mean (lists.py).
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from kubectl_qos.cluster.api_errors import MOST_RETRIES, refusal, retry_after
from kubectl_qos.errors import ApiError, QosError, QuantityError, ServerUnreachable
from kubectl_qos.transport import logging as log
from kubectl_qos.transport.client import Connection
from kubectl_qos.transport.net_errors import unreachable_error

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

PART_BYTES: Final = 1 << 20
"""A body is read, and unzipped, in parts of about this size."""

UNDECODABLE: Final = (msgspec.MsgspecError, QuantityError, UnicodeDecodeError, RecursionError)
"""What decoding raises for a body that is not what was asked for, however odd it is."""

V = TypeVar("V")

_LONGEST_REFUSAL: Final = 1 << 20
_SAME_TIME: Final = timedelta(seconds=5)
"""The header Date is in whole seconds and takes its time to arrive."""


class RestClient:
    """Asks one server; every answer that is not a success is raised as an ApiError in kubectl's words.

    One that is `patient` asks again by itself where the server says when.
    """

    def __init__(self, connection: Connection, *, patient: bool = True) -> None:
        self._connection = connection
        self._patient = patient
        self._ahead = timedelta()

    def impatient(self) -> RestClient:
        """The same for who waits, and says so, without our help."""
        return RestClient(self._connection, patient=False)

    def now(self) -> datetime:
        """The present by the server's clock, whose times are compared with it; ours may be wrong."""
        return datetime.now(UTC) + self._ahead

    def whole(self, path: str, query: Mapping[str, str]) -> bytes:
        """The whole body."""
        return b"".join(self.parts(path, query))

    def parts(self, path: str, query: Mapping[str, str]) -> Iterator[bytes]:
        """The body, part by part; asked for when the first part is."""
        response = self.response(path, query)
        try:
            raw = self._raw_parts(response)
            zipped = response.headers.get("Content-Encoding") == "gzip"
            yield from _unzipped(raw, path) if zipped else raw
        finally:
            response.release_conn()

    def response(self, path: str, query: Mapping[str, str]) -> BaseHTTPResponse:
        """A successful response with its body unread, asked for again where the server says when.

        Waiting counts as part of the request: a server that wants more time than is left has refused.
        """
        deadline = self._connection.deadline()
        for _ in range(MOST_RETRIES if self._patient else 0):
            try:
                return self.at_once(path, query)
            except ApiError as error:
                wait = error.retry_after
                if wait is None or (deadline is not None and time.monotonic() + wait >= deadline):
                    raise
                log.log(log.REQUESTS, f"{path} is asked for again in {wait:.0f} s: {error}")
                time.sleep(wait)
        return self.at_once(path, query)

    def at_once(
        self, path: str, query: Mapping[str, str], *, watch_seconds: float | None = None
    ) -> BaseHTTPResponse:
        """A successful response with its body unread; a refusal is raised, whatever it says of retrying.

        `watch_seconds` is how long the server has nothing to say at most, where the answer is a watch.
        """
        response = self._connection.request(
            "GET", path, query, read_seconds=watch_seconds, is_watch=watch_seconds is not None
        )
        self._compare_clocks(response.headers.get("Date"))
        if HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
            return response
        error = refusal(response.status, self._said(response), response.headers.get("Content-Type", ""))
        error.retry_after = retry_after(response.status, response.headers)
        raise error

    def _compare_clocks(self, said: str | None) -> None:
        with suppress(ValueError, TypeError):
            ahead = parsedate_to_datetime(said or "") - datetime.now(UTC)
            self._ahead = ahead if abs(ahead) > _SAME_TIME else timedelta()

    @staticmethod
    def bear_silence(response: BaseHTTPResponse, seconds: float) -> None:
        """From now on the server may have nothing to say for so long."""
        sock = getattr(response.connection, "sock", None)
        if sock is not None:
            sock.settimeout(seconds)

    def unreachable(self, error: Exception) -> ServerUnreachable:
        """Kubectl's sentence for an answer that broke off."""
        return unreachable_error(error, self._connection.server)

    def _raw_parts(self, response: BaseHTTPResponse) -> Iterator[bytes]:
        try:
            while part := response.read(PART_BYTES, decode_content=False):
                yield part
        except Exception as error:
            response.close()
            raise self.unreachable(error) from error

    def _said(self, response: BaseHTTPResponse) -> bytes:
        """The body of a refusal, as much of it as there is."""
        try:
            return response.read(_LONGEST_REFUSAL, decode_content=True)
        except Exception:  # noqa: BLE001 - the status alone says enough
            return b""
        finally:
            response.release_conn()


def decode_error(what: str, error: Exception) -> QosError:
    """The error for a body that is not what was asked for."""
    return QosError(
        f"the server's answer for {what} cannot be read: {error}",
        hint="a proxy between here and the API server may have answered in its place",
    )


def decode_body(decoder: msgspec.json.Decoder[V], body: bytes | bytearray | msgspec.Raw, what: str) -> V:
    """A body as what was asked for. Raises QosError for anything else."""
    try:
        return decoder.decode(body)
    except UNDECODABLE as error:
        raise decode_error(what, error) from None


def _unzipped(parts: Iterator[bytes], what: str) -> Iterator[bytes]:
    """What gzip parts hold, in parts again, so that a body never needs room for all of it."""
    unzip = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        for part in parts:
            left = part
            while left:
                yield unzip.decompress(left, PART_BYTES)
                left = unzip.unconsumed_tail
        yield unzip.flush()
    except zlib.error as error:
        raise decode_error(what, error) from None
    if not unzip.eof:
        raise decode_error(what, EOFError("the compressed body breaks off"))
