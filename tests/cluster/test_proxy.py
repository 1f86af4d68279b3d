"""Which proxy leads to a server, and that it does."""

from __future__ import annotations

import select
import socket
import threading

import pytest

from kubectl_qos.cluster.api import Api
from kubectl_qos.cluster.proxy import proxy_of
from kubectl_qos.errors import QosError, ServerUnreachable
from tests.cluster.cluster_objects import pod
from tests.cluster.conftest import ConnectTo
from tests.cluster.kubeconfigs import inline
from tests.cluster.object_server import ObjectServer
from tests.cluster.serving import Serve

URL = "https://kube.example.com:6443"
PROXY = "http://proxy:3128"


class ConnectProxy:
    """An HTTP proxy that only tunnels; `asked` are the request lines."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._tunnel, args=(client,), daemon=True).start()

    def _tunnel(self, client: socket.socket) -> None:
        with client:
            line = client.recv(65536).split(b"\r\n")[0].decode()
            self.asked.append(line)
            host, _, port = line.split()[1].rpartition(":")
            with socket.create_connection((host, int(port))) as server:
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                while ready := select.select([client, server], [], [], 10)[0]:
                    data = ready[0].recv(65536)
                    if not data:
                        return
                    (server if ready[0] is client else client).sendall(data)


@pytest.mark.parametrize(
    ("environment", "proxy"),
    [
        ({}, None),
        ({"HTTPS_PROXY": PROXY}, PROXY),
        ({"https_proxy": PROXY}, PROXY),
        ({"HTTPS_PROXY": "proxy:3128"}, PROXY),
        ({"HTTP_PROXY": PROXY}, None),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": "example.com"}, None),
        ({"HTTPS_PROXY": PROXY, "no_proxy": "kube.example.com"}, None),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": ".example.com"}, None),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": "*.example.com"}, None),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": "a.b, KUBE.example.com:6443"}, None),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": "kube.example.com:443"}, PROXY),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": ".kube.example.com"}, PROXY),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": "ple.com"}, PROXY),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": "*"}, None),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": ","}, PROXY),
    ],
)
def test_the_environment_decides_as_for_kubectl(environment: dict[str, str], proxy: str | None) -> None:
    assert proxy_of(URL, None, environment) == proxy


@pytest.mark.parametrize(
    ("url", "exceptions", "direct"),
    [
        ("https://10.1.2.3", "10.0.0.0/8", True),
        ("https://10.1.2.3", "10.1.2.3", True),
        ("https://11.1.2.3", "10.0.0.0/8", False),
        ("https://[fd00::7]:6443", "fd00::/8", True),
        ("https://10.1.2.3", "2.3", False),
        ("https://localhost:1", "", True),
        ("https://127.0.0.1:1", "", True),
        ("https://[::1]:1", "", True),
    ],
)
def test_addresses_are_compared_as_addresses(url: str, exceptions: str, direct: bool) -> None:
    found = proxy_of(url, None, {"HTTPS_PROXY": PROXY, "NO_PROXY": exceptions})
    assert (found is None) is direct


def test_the_proxy_of_the_kubeconfig_is_not_to_be_excepted() -> None:
    assert proxy_of(URL, PROXY, {"NO_PROXY": "*", "HTTPS_PROXY": "http://other:1"}) == PROXY


def test_a_proxy_that_we_cannot_speak_to_is_named() -> None:
    with pytest.raises(QosError, match="socks5://proxy:1080 speaks socks5"):
        proxy_of(URL, "socks5://proxy:1080", {})


def test_requests_go_through_the_proxy(serve: Serve, connect_to: ConnectTo) -> None:
    server = serve(ObjectServer(pods=[pod("web")]))
    proxy = ConnectProxy()
    cluster = {
        "certificate-authority-data": inline(server.authority.certificate),
        "proxy-url": proxy.url,
    }
    try:
        assert len(Api(connect_to(server, cluster=cluster)).pods()) == 1
    finally:
        proxy.close()
    assert [line.split()[:2] for line in proxy.asked] == [["CONNECT", f"127.0.0.1:{server.port}"]]


def test_a_proxy_that_refuses_is_not_taken_for_the_server(connect_to: ConnectTo) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    with pytest.raises(ServerUnreachable, match=r"proxyconnect tcp: dial tcp the proxy: connection refused"):
        Api(connect_to("https://kube.invalid", cluster={"proxy-url": url})).pods()
