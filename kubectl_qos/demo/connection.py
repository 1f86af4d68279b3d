"""A connection that ends in this process: requests to the API in memory, answered as a server does."""

from collections.abc import Callable, Mapping
from datetime import datetime
from email.utils import format_datetime
from io import BytesIO
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from urllib3 import BaseHTTPResponse, HTTPResponse

from kubectl_qos.demo.api import Reply
from kubectl_qos.transport.client import ApiRequest, Connection

Answer = Callable[[str, str, Mapping[str, str], bytes, str], Reply]
"""Method, path, query, body and its content type."""
_URL: Final = "https://in-memory"


class MemoryConnection(Connection):
    """Nothing is resolved, and nothing leaves the process; `now` is the server's clock."""

    def __init__(self, context: str, answer: Answer, now: Callable[[], datetime]) -> None:
        self.context = context
        self.namespace = "default"
        self._base_url = _URL
        self._request_seconds = None
        self._answer = answer
        self._now = now

    def _respond(self, request: ApiRequest) -> BaseHTTPResponse:
        url, type_ = urlsplit(request.url), request.headers.get("Content-Type", "")
        reply = self._answer(request.method, url.path, dict(parse_qsl(url.query)), request.body or b"", type_)
        date = format_datetime(self._now(), usegmt=True)
        headers = {"Content-Type": reply.content_type, "Date": date}
        return HTTPResponse(BytesIO(reply.body), headers, reply.status, preload_content=False)
