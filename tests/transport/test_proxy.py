"""Which proxy leads to a server, and that it does."""

import base64
import os
import socket
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import pytest
import yaml

from kubectl_qos.cluster.kube_api import KubeApi
from kubectl_qos.errors import QosError, ServerUnreachable
from kubectl_qos.transport.proxy import find_proxy
from tests.cluster.cluster_objects import pod
from tests.cluster.kubeconfigs import inline
from tests.cluster.object_server import ObjectServer
from tests.cluster.serving import ConnectTo, Serve
from tests.transport.proxies import ConnectProxy, SocksProxy, through

TABLES: Final = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))

URL = "https://kube.example.com:6443"
PROXY = "http://proxy:3128"


def chosen(environment: dict[str, str], *, url: str = URL, configured: str | None = None) -> str | None:
    """The proxy in an environment with these variables only."""
    with patch.dict(os.environ, environment, clear=True):
        return find_proxy(url, configured)


@pytest.mark.parametrize(("environment", "proxy"), TABLES["environments"])
def test_the_environment_decides_as_for_kubectl(environment: dict[str, str], proxy: str | None) -> None:
    assert chosen(environment) == proxy


@pytest.mark.parametrize(("url", "exceptions", "direct"), TABLES["addresses"])
def test_addresses_are_compared_as_addresses(url: str, exceptions: str, direct: bool) -> None:
    found = chosen({"HTTPS_PROXY": PROXY, "NO_PROXY": exceptions}, url=url)
    assert (found is None) is direct


def test_the_proxy_of_the_kubeconfig_is_not_to_be_excepted() -> None:
    assert chosen({"NO_PROXY": "*", "HTTPS_PROXY": "http://other:1"}, configured=PROXY) == PROXY


def test_a_proxy_that_we_cannot_speak_to_is_named() -> None:
    with pytest.raises(QosError, match=r'^invalid proxy address "ftp://proxy": unsupported scheme "ftp"'):
        chosen({"HTTPS_PROXY": "ftp://proxy"})


@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
def test_a_socks_proxy_looks_names_up(scheme: str) -> None:
    """Go leaves it to the proxy for both."""
    assert chosen({"HTTPS_PROXY": f"{scheme}://proxy:1080"}) == "socks5h://proxy:1080"


def test_all_proxy_means_nothing() -> None:
    assert chosen({"ALL_PROXY": PROXY, "all_proxy": PROXY}) is None


def test_requests_go_through_a_socks_proxy(serve: Serve, connect_to: ConnectTo) -> None:
    """TLS ends at the server, and its name is looked up behind the proxy."""
    server = serve(ObjectServer())
    with SocksProxy() as proxy:
        KubeApi(connect_to(server, cluster=through(f"socks5://{proxy.address}", server))).nodes()
        assert proxy.requested == [("kube.invalid", server.port)]
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
    ca = inline(server.authority.certificate)
    with ConnectProxy() as proxy:
        cluster = {"certificate-authority-data": ca, "proxy-url": proxy.url}
        assert len(KubeApi(connect_to(server, cluster=cluster)).pods()) == 1
    assert [line.split()[:2] for line in proxy.requested] == [["CONNECT", f"127.0.0.1:{server.port}"]]


def test_a_proxy_may_want_a_name_and_a_password(serve: Serve, connect_to: ConnectTo) -> None:
    server = serve(ObjectServer())
    ca = inline(server.authority.certificate)
    with ConnectProxy() as proxy:
        url = proxy.url.replace("//", "//me:s%40cret@")
        KubeApi(connect_to(server, cluster={"certificate-authority-data": ca, "proxy-url": url})).nodes()
    login = base64.b64encode(b"me:s@cret").decode()
    assert f"proxy-authorization: basic {login}".lower() in proxy.heads[0].lower()


def test_a_proxy_that_refuses_is_not_taken_for_the_server(connect_to: ConnectTo) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    with pytest.raises(ServerUnreachable, match=r"proxyconnect tcp: dial tcp the proxy: connection refused"):
        KubeApi(connect_to("https://kube.invalid", cluster={"proxy-url": url})).pods()
