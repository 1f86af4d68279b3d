"""Connections to servers on loopback; nothing of the machine's own configuration is seen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kubectl_qos.transport.client import Connection, connect
from kubectl_qos.transport.kubeconfig import ConnectionOptions
from tests.cluster.following import follow
from tests.cluster.https_server import HttpsServer
from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.serving import authority, serve

__all__ = ["authority", "follow", "serve"]

ConnectTo = Callable[..., Connection]


@pytest.fixture(autouse=True)
def _own_world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "HTTPS_PROXY", "https_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))


@pytest.fixture
def connect_to(tmp_path: Path) -> ConnectTo:
    """A connection by a kubeconfig for a server; the options are those of `kubeconfig`."""

    def start(server: HttpsServer | str, **options: Any) -> Connection:
        path = write(tmp_path / "kubeconfig", kubeconfig(server, **options))
        return connect(ConnectionOptions(kubeconfig=str(path)))

    return start
