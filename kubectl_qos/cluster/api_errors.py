"""An API server's refusals: kubectl's words for them, and which of them are worth another try.

Sources: k8s.io/apimachinery/pkg/api/errors/errors.go (NewGenericServerResponse),
k8s.io/client-go/rest/request.go and with_retry.go, k8s.io/kubectl/pkg/cmd/util/helpers.go
(StandardErrorMessage).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

import msgspec

from kubectl_qos.errors import ApiError, QosError
from kubectl_qos.k8s.snapshot import OTHER_PODS, Missing

MOST_RETRIES: Final = 10
LONGEST_WAIT_SECONDS: Final = 30.0
_LONGEST_TEXT: Final = 200
_LOGIN_HINT: Final = "the token or certificate has expired or is not known to this cluster"
_GENERIC: Final[Mapping[int, tuple[str, str]]] = {
    400: ("BadRequest", "the server rejected our request for an unknown reason"),
    404: ("NotFound", "the server could not find the requested resource"),
    405: ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
    406: ("NotAcceptable", "the server was unable to respond with a content type that the client supports"),
    409: ("Conflict", "the server reported a conflict"),
    422: ("Invalid", "the server rejected our request due to an error in our request"),
    429: (
        "TooManyRequests",
        "the server has received too many requests and has asked us to try again later",
    ),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: (
        "Timeout",
        (
            "the server was unable to return a response in the time allotted, but may still be processing"
            " the request"
        ),
    ),
}
"""What client-go makes of an answer that says nothing itself: a proxy's, say."""


class Status(msgspec.Struct):
    """metav1.Status, the body of a refusal."""

    kind: str = ""
    reason: str = ""
    message: str = ""


_status = msgspec.json.Decoder(Status)


def refusal(status: int, body: bytes, content_type: str = "") -> ApiError:
    """A refusal in the words of the server, or in client-go's where it has none."""
    if status == HTTPStatus.UNAUTHORIZED:
        return ApiError(
            "You must be logged in to the server (Unauthorized)",
            status=status,
            reason="Unauthorized",
            hint=_LOGIN_HINT,
        )
    try:
        told = _status.decode(body)
    except msgspec.MsgspecError:
        told = Status()
    if told.kind == "Status" and (told.message or told.reason):
        reason, message = told.reason, told.message or "unknown"
    else:
        is_text = not content_type or content_type.startswith("text/")
        reason, message = _generic(status, body if is_text else b"")
    where = f"Error from server ({reason})" if reason else "Error from server"
    return ApiError(f"{where}: {message}", status=status, reason=reason)


def retry_after(status: int, headers: Mapping[str, str]) -> float | None:
    """After how many seconds the server wants to be asked again; None for never, or too late to wait."""
    if status != HTTPStatus.TOO_MANY_REQUESTS and status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return None
    text = headers.get("Retry-After", "")
    seconds = float(text) if text.isascii() and text.isdigit() else None
    return seconds if seconds is not None and seconds <= LONGEST_WAIT_SECONDS else None


def _generic(status: int, text: bytes) -> tuple[str, str]:
    said = " ".join(text.decode(errors="replace").split())[:_LONGEST_TEXT] or "unknown"
    if status in _GENERIC:
        return _GENERIC[status]
    if status == HTTPStatus.FORBIDDEN:
        return "Forbidden", said
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        quoted = json.dumps(said)
        return "InternalError", f"an error on the server ({quoted}) has prevented the request from succeeding"
    return "", f"the server responded with the status code {status} but did not return more information"


def no_neighbours(error: QosError) -> Missing:
    """Where the pods of other namespaces may not be listed."""
    return Missing(
        OTHER_PODS,
        str(error),
        "grant list on pods in all namespaces; until then ranks are among the pods shown",
    )


def no_capacity(error: QosError) -> Missing:
    """Where nodes may not be read."""
    return Missing(
        "the nodes' memory capacity",
        str(error),
        "grant get and list on nodes; or give --node-memory 16Gi",
    )
