"""A command to run, and servers to run it against."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.https_server import Answer, HttpsServer, Request
from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.serving import Serve, authority, serve
from tests.end_to_end.command import Run

__all__ = ["authority", "serve"]

Live = Callable[..., HttpsServer]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


@pytest.fixture
def live(serve: Serve, tmp_path: Path) -> Live:
    """Start a server that the kubeconfig of the home leads to; the options are those of `kubeconfig`."""

    def start(answer: Callable[[Request], Answer], **options: Any) -> HttpsServer:
        server = serve(answer)
        write(tmp_path / ".kube" / "config", kubeconfig(server, **options))
        return server

    return start
