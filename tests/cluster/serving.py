"""Fixtures that start servers, for every folder that needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.cluster.certificates import Authority
from tests.cluster.https_server import Answer, HttpsServer, Request

Serve = Callable[..., HttpsServer]


@pytest.fixture(scope="session")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def serve(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[Serve]:
    """Start a server that answers by a function; it ends with the test."""
    with ExitStack() as running:

        def start(answer: Callable[[Request], Answer], **options: Any) -> HttpsServer:
            folder = tmp_path_factory.mktemp("server")
            signed_by = options.pop("authority", authority)
            return running.enter_context(HttpsServer(answer, folder, signed_by, **options))

        yield start
