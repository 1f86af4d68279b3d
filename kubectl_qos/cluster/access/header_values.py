"""The values of headers as they can be sent, as Go does it.

Source: golang.org/x/net/http/httpguts (ValidHeaderFieldValue) and net/http/transport.go.
"""

from __future__ import annotations

import re
from typing import Final

from kubectl_qos.errors import ServerUnreachable

_CONTROLS: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def sendable(name: str, value: str) -> str:
    """The value in UTF-8, each byte as the character that Python's client makes that byte of.

    Raises ServerUnreachable for one that cannot be sent; Python's own error would repeat it, and it may be a
    token.
    """
    if _CONTROLS.search(value):
        why = f'net/http: invalid header field value for "{name}"'
        raise ServerUnreachable(f"Unable to connect to the server: {why}")
    return value.encode().decode("latin-1")
