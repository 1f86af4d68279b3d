"""Fixtures that start servers and connect to them, for every folder that needs them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kubectl_qos.transport import ConnectionOptions
from kubectl_qos.transport.client import Connection, connect
from tests.cluster.certificates import Authority
from tests.cluster.https_server import Answer, HttpsServer, Request
from tests.cluster.kubeconfigs import kubeconfig, write

Serve = Callable[..., HttpsServer]
ConnectTo = Callable[..., Connection]


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


@pytest.fixture
def own_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An empty home folder, and nothing of the environment that leads to a cluster."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "HTTPS_PROXY", "https_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))


@pytest.fixture
def connect_to(tmp_path: Path, serve: Serve) -> ConnectTo:
    """A connection by a kubeconfig for a server, or one that answers so; the options are `kubeconfig`'s."""

    def start(server: HttpsServer | str | Callable[[Request], Answer], **options: Any) -> Connection:
        server = server if isinstance(server, HttpsServer | str) else serve(server)
        path = write(tmp_path / "kubeconfig", kubeconfig(server, **options))
        return connect(ConnectionOptions(kubeconfig=str(path)))

    return start
