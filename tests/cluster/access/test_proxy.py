"""Which proxy leads to a server, and that it does."""

from __future__ import annotations

import base64
import select
import socket
import threading
from contextlib import suppress
from typing import Any, Self

import pytest

from kubectl_qos.cluster.kube_api import KubeApi
from kubectl_qos.errors import QosError, ServerUnreachable
from kubectl_qos.transport.proxy import find_proxy
from tests.cluster.cluster_objects import pod
from tests.cluster.conftest import ConnectTo
from tests.cluster.https_server import HttpsServer
from tests.cluster.kubeconfigs import inline
from tests.cluster.object_server import ObjectServer
from tests.cluster.serving import Serve

URL = "https://kube.example.com:6443"
PROXY = "http://proxy:3128"


class ConnectProxy:
    """An HTTP proxy that only tunnels; `asked` are the request lines."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.heads: list[str] = []
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
            head = client.recv(65536).decode()
            line = head.split("\r\n")[0]
            self.asked.append(line)
            self.heads.append(head)
            host, _, port = line.split()[1].rpartition(":")
            with socket.create_connection((host, int(port))) as server:
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                pass_on(client, server)


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
    assert find_proxy(URL, None, environment) == proxy


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
    found = find_proxy(url, None, {"HTTPS_PROXY": PROXY, "NO_PROXY": exceptions})
    assert (found is None) is direct


def test_the_proxy_of_the_kubeconfig_is_not_to_be_excepted() -> None:
    assert find_proxy(URL, PROXY, {"NO_PROXY": "*", "HTTPS_PROXY": "http://other:1"}) == PROXY


def test_a_proxy_that_we_cannot_speak_to_is_named() -> None:
    with pytest.raises(QosError, match=r'^invalid proxy address "ftp://proxy": unsupported scheme "ftp"'):
        find_proxy(URL, None, {"HTTPS_PROXY": "ftp://proxy"})


@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
def test_a_socks_proxy_looks_names_up(scheme: str) -> None:
    """Go leaves it to the proxy for both."""
    assert find_proxy(URL, None, {"HTTPS_PROXY": f"{scheme}://proxy:1080"}) == "socks5h://proxy:1080"


def test_all_proxy_means_nothing() -> None:
    assert find_proxy(URL, None, {"ALL_PROXY": PROXY, "all_proxy": PROXY}) is None


class SocksProxy:
    """A SOCKS5 proxy that knows one host by name; it keeps what it was `asked` for, and `logins`."""

    def __init__(
        self, *, known: str = "kube.invalid", login: tuple[str, str] | None = None, code: int = 0
    ) -> None:
        self.asked: list[tuple[str, int]] = []
        self.logins: list[tuple[str, str]] = []
        self._known, self._login, self._code = known, login, code
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, client.makefile("rb") as read:
            methods = read.read(read.read(2)[1])
            method = 2 if self._login else 0
            client.sendall(bytes([5, method if method in methods else 255]))
            if method not in methods:
                return
            if self._login:
                name = read.read(read.read(2)[1]).decode()
                self.logins.append((name, read.read(read.read(1)[0]).decode()))
                client.sendall(bytes([1, 0 if self.logins[-1] == self._login else 1]))
            kind = read.read(4)[3]
            host = read.read(read.read(1)[0]).decode() if kind == 3 else socket.inet_ntoa(read.read(4))
            port = int.from_bytes(read.read(2), "big")
            self.asked.append((host, port))
            client.sendall(bytes([5, self._code, 0, 1, 0, 0, 0, 0, 0, 0]))
            if self._code:
                return
            with socket.create_connection(("127.0.0.1" if host == self._known else host, port)) as server:
                pass_on(client, server)


def pass_on(client: socket.socket, server: socket.socket) -> None:
    """What either says, to the other, until one hangs up."""
    with suppress(ConnectionError):
        while ready := select.select([client, server], [], [], 10)[0]:
            data = ready[0].recv(65536)
            if not data:
                return
            (server if ready[0] is client else client).sendall(data)


def through(proxy: str, server: HttpsServer) -> dict[str, str]:
    return {
        "server": f"https://kube.invalid:{server.port}",
        "tls-server-name": "localhost",
        "certificate-authority-data": inline(server.authority.certificate),
        "proxy-url": proxy,
    }


def test_requests_go_through_a_socks_proxy(serve: Serve, connect_to: ConnectTo) -> None:
    """TLS ends at the server, and its name is looked up behind the proxy."""
    server = serve(ObjectServer())
    with SocksProxy() as proxy:
        KubeApi(connect_to(server, cluster=through(f"socks5://{proxy.address}", server))).nodes()
        assert proxy.asked == [("kube.invalid", server.port)]
    assert server.paths() == ["/api/v1/nodes"]


def test_a_socks_proxy_of_the_environment(
    serve: Serve, connect_to: ConnectTo, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(ObjectServer())
    cluster = through("", server)
    with SocksProxy(login=("me", "s@cret")) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"socks5h://me:s%40cret@{proxy.address}")
        KubeApi(connect_to(server, cluster=cluster)).nodes()
        assert proxy.logins == [("me", "s@cret")]
    assert server.paths() == ["/api/v1/nodes"]


def test_connections_through_a_socks_proxy_notice_a_dead_peer(serve: Serve, connect_to: ConnectTo) -> None:
    server = serve(ObjectServer())
    with SocksProxy() as proxy:
        connection = connect_to(server, cluster=through(f"socks5://{proxy.address}", server))
        response = connection.request("GET", "/version")
        found = getattr(response.connection, "sock")  # noqa: B009 - the protocol of urllib3 does not name it
        assert found.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        response.drain_conn()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"code": 5}, "Connection refused"),
        ({"code": 1}, "General SOCKS server failure"),
        ({"login": ("me", "secret")}, "All offered SOCKS5 authentication methods were rejected"),
    ],
)
def test_a_socks_proxy_that_refuses_is_not_taken_for_the_server(
    serve: Serve, connect_to: ConnectTo, options: dict[str, Any], why: str
) -> None:
    server = serve(ObjectServer())
    with (
        SocksProxy(**options) as proxy,
        pytest.raises(
            ServerUnreachable, match=rf"^Unable to connect to the server: socks connect tcp: .*{why}"
        ),
    ):
        KubeApi(connect_to(server, cluster=through(f"socks5://{proxy.address}", server))).nodes()


def test_a_socks_proxy_that_is_not_there_is_not_taken_for_the_server(
    serve: Serve, connect_to: ConnectTo
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        address = f"127.0.0.1:{gone.getsockname()[1]}"
    server = serve(ObjectServer())
    with pytest.raises(ServerUnreachable, match=rf"socks connect tcp: .*{address}.*refused"):
        KubeApi(connect_to(server, cluster=through(f"socks5://{address}", server))).nodes()


def test_requests_go_through_the_proxy(serve: Serve, connect_to: ConnectTo) -> None:
    server = serve(ObjectServer(pods=[pod("web")]))
    proxy = ConnectProxy()
    cluster = {
        "certificate-authority-data": inline(server.authority.certificate),
        "proxy-url": proxy.url,
    }
    try:
        assert len(KubeApi(connect_to(server, cluster=cluster)).pods()) == 1
    finally:
        proxy.close()
    assert [line.split()[:2] for line in proxy.asked] == [["CONNECT", f"127.0.0.1:{server.port}"]]


def test_a_proxy_may_want_a_name_and_a_password(serve: Serve, connect_to: ConnectTo) -> None:
    server = serve(ObjectServer())
    proxy = ConnectProxy()
    cluster = {
        "certificate-authority-data": inline(server.authority.certificate),
        "proxy-url": proxy.url.replace("//", "//me:s%40cret@"),
    }
    try:
        KubeApi(connect_to(server, cluster=cluster)).nodes()
    finally:
        proxy.close()
    login = base64.b64encode(b"me:s@cret").decode()
    assert f"proxy-authorization: basic {login}".lower() in proxy.heads[0].lower()


def test_a_proxy_that_refuses_is_not_taken_for_the_server(connect_to: ConnectTo) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    with pytest.raises(ServerUnreachable, match=r"proxyconnect tcp: dial tcp the proxy: connection refused"):
        KubeApi(connect_to("https://kube.invalid", cluster={"proxy-url": url})).pods()
