"""Reaching a server: TLS as strict as kubectl's and no stricter, and why a server was not reached."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kubectl_qos.cluster.kube_api import KubeApi
from kubectl_qos.errors import QosError, ServerUnreachable
from kubectl_qos.transport import ConnectionOptions, tls
from kubectl_qos.transport.client import REVIEWS, connect
from tests.cluster import certificates
from tests.cluster.certificates import Authority
from tests.cluster.cluster_objects import pod
from tests.cluster.https_server import Answer, Request
from tests.cluster.kubeconfigs import inline, kubeconfig, write
from tests.cluster.kubectl import needs_kubectl, said_by_kubectl
from tests.cluster.object_server import ObjectServer
from tests.cluster.serving import ConnectTo, Serve
from tests.transport.proxies import listening

ONE_POD = [pod("web")]


def unused_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
    return port


def failure(reach: Callable[[], Any]) -> str:
    with pytest.raises(ServerUnreachable) as caught:
        reach()
    return str(caught.value)


def test_the_ca_of_these_tests_is_one_that_strict_checking_refuses(
    serve: Serve, authority: Authority
) -> None:
    """Otherwise the tests below would prove nothing on Python >= 3.13."""
    server = serve(ObjectServer())
    strict = ssl.create_default_context(cadata=authority.certificate.decode())
    strict.verify_flags |= ssl.VERIFY_X509_STRICT
    with (
        socket.create_connection(("127.0.0.1", server.port), timeout=5) as plain,
        pytest.raises(ssl.SSLCertVerificationError),
    ):
        strict.wrap_socket(plain, server_hostname="127.0.0.1")


def test_a_ca_without_key_usage_and_key_identifiers_is_good_enough(connect_to: ConnectTo) -> None:
    assert len(KubeApi(connect_to(ObjectServer(pods=ONE_POD))).pods()) == 1


def test_a_ca_in_a_file_next_to_the_kubeconfig(serve: Serve, tmp_path: Path) -> None:
    server = serve(ObjectServer(pods=ONE_POD))
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "ca.crt").write_bytes(server.authority.certificate)
    config = kubeconfig(server, cluster={"certificate-authority": "ca.crt"})
    path = write(tmp_path / "config" / "kubeconfig", config)
    assert len(KubeApi(connect(ConnectionOptions(kubeconfig=str(path)))).pods()) == 1


def test_an_intermediate_ca_is_an_anchor_too(serve: Serve, connect_to: ConnectTo) -> None:
    """Go takes whatever the kubeconfig names as an anchor; the root need not be there."""
    intermediate = Authority("intermediate", signed_by=Authority("root"))
    server = serve(ObjectServer(pods=ONE_POD), authority=intermediate)
    assert len(KubeApi(connect_to(server)).pods()) == 1


@pytest.mark.parametrize("cluster", [{}, {"certificate-authority-data": inline(Authority().certificate)}])
def test_a_certificate_of_another_ca_is_refused(
    serve: Serve, connect_to: ConnectTo, cluster: dict[str, Any]
) -> None:
    server = serve(ObjectServer(pods=ONE_POD))
    reach = KubeApi(connect_to(server, cluster=cluster)).pods
    assert failure(reach) == (
        "Unable to connect to the server: tls: failed to verify certificate: x509: certificate signed by"
        " unknown authority"
    )
    assert server.requests == []


def test_without_a_ca_the_ones_of_this_machine_count_wherever_it_has_them(
    serve: Serve, connect_to: ConnectTo, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As the binary finds them on a system that has them elsewhere than the one where it was built."""
    server = serve(ObjectServer(pods=ONE_POD))
    bundle = tmp_path / "ca-bundle.crt"
    bundle.write_bytes(server.authority.certificate)
    nowhere = SimpleNamespace(cafile=None, capath=None)
    monkeypatch.setattr(tls, "ROOTS", (tmp_path / "no-such-file", bundle))
    assert "unknown authority" in failure(KubeApi(connect_to(server, cluster={})).pods)
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: nowhere)
    assert len(KubeApi(connect_to(server, cluster={})).pods()) == 1


def test_a_certificate_for_another_host_is_refused(serve: Serve, connect_to: ConnectTo) -> None:
    server = serve(ObjectServer(pods=ONE_POD), hosts=("kube.example.com",))
    assert "failed to verify certificate: x509: certificate is not valid for 127.0.0.1" in failure(
        KubeApi(connect_to(server)).pods
    )


def test_tls_server_name_says_whose_certificate_to_expect(serve: Serve, connect_to: ConnectTo) -> None:
    server = serve(ObjectServer(pods=ONE_POD), hosts=("kube.example.com",))
    ca = {"certificate-authority-data": inline(server.authority.certificate)}
    named = connect_to(server, cluster={**ca, "tls-server-name": "kube.example.com"})
    assert len(KubeApi(named).pods()) == 1
    other = connect_to(server, cluster={**ca, "tls-server-name": "other.example.com"})
    assert "certificate is not valid for other.example.com" in failure(KubeApi(other).pods)


def test_insecure_skip_tls_verify_takes_any_certificate(serve: Serve, connect_to: ConnectTo) -> None:
    server = serve(ObjectServer(pods=ONE_POD), hosts=("kube.example.com",))
    found = connect_to(server, cluster={"insecure-skip-tls-verify": True})
    assert len(KubeApi(found).pods()) == 1


def test_insecure_skip_tls_verify_false_verifies(serve: Serve, connect_to: ConnectTo) -> None:
    server = serve(ObjectServer(pods=ONE_POD))
    assert "certificate" in failure(
        KubeApi(connect_to(server, cluster={"insecure-skip-tls-verify": False})).pods
    )


@needs_kubectl
def test_kubectl_takes_this_server_too(serve: Serve, tmp_path: Path) -> None:
    server = serve(ObjectServer(version="v1.36.7"))
    path = write(tmp_path / "kubeconfig", kubeconfig(server))
    assert '"gitVersion":"v1.36.7"' in said_by_kubectl(path, "get", "--raw", "/version")


def test_an_unknown_host(connect_to: ConnectTo, monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", nowhere)
    assert failure(KubeApi(connect_to("https://kube.invalid:6443")).pods) == (
        "Unable to connect to the server: dial tcp: lookup kube.invalid: no such host"
    )


@pytest.mark.parametrize(
    ("cluster", "url"),
    [
        ({}, "http://h:1"),
        ({"insecure-skip-tls-verify": True}, "http://h:1"),
        ({"certificate-authority-data": inline(Authority().certificate)}, "http://h:1"),
        ({"server": "https://h:1/k8s/clusters/c/?a=b#c"}, "https://h:1/k8s/clusters/c"),
    ],
)
def test_a_server_without_a_scheme(
    connect_to: ConnectTo, monkeypatch: pytest.MonkeyPatch, cluster: dict[str, Any], url: str
) -> None:
    found = connect_to("h:1", cluster=cluster)
    requested: list[str] = []

    def request(_: str, where: str, **__: object) -> None:
        requested.append(where)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(found._pool, "request", request)
    failure(lambda: found.request("GET", "/version"))
    assert requested == [f"{url}/version"]


def test_a_server_is_named_as_kubectl_names_it(connect_to: ConnectTo) -> None:
    assert connect_to("https://[::1]:6443").server == "[::1]:6443"
    assert connect_to("https://kube.example.com").server == "kube.example.com"


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"nonsense", "unable to parse bytes as PEM block"),
        (
            b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "no valid certificate authority data seen",
        ),
    ],
)
def test_a_ca_that_is_none(connect_to: ConnectTo, data: bytes, sentence: str) -> None:
    with pytest.raises(QosError, match=rf"^unable to load root certificates: .*{sentence}"):
        connect_to("https://127.0.0.1:1", cluster={"certificate-authority-data": inline(data)})


def test_a_ca_among_other_words(serve: Serve, connect_to: ConnectTo, authority: Authority) -> None:
    """As `openssl x509 -text` writes it, with a name that is not ASCII."""
    bundle = "Certificate of Zoë:\n".encode() + authority.certificate
    server = serve(ObjectServer(nodes=[]))
    KubeApi(connect_to(server, cluster={"certificate-authority-data": inline(bundle)})).nodes()
    assert server.paths() == ["/api/v1/nodes"]


def test_a_remedy_is_named(serve: Serve, connect_to: ConnectTo) -> None:
    server = serve(ObjectServer(), hosts=("kube.example.com",))
    with pytest.raises(ServerUnreachable) as caught:
        KubeApi(connect_to(server)).pods()
    assert caught.value.hint == "--tls-server-name NAME says which name the certificate must have"


UNREACHABLE = "Unable to connect to the server: "
NOT_VERIFIED = f"{UNREACHABLE}tls: failed to verify certificate: x509:"
REFUSED = "The connection to the server {server} was refused - did you specify the right host or port?"
FAULTS = {
    "unknown authority": f"{NOT_VERIFIED} certificate signed by unknown authority",
    "expired": f"{NOT_VERIFIED} certificate has expired or is not yet valid",
    "no TLS": f"{UNREACHABLE}tls: first record does not look like a TLS handshake",
    "no HTTP": f'{UNREACHABLE}net/http: HTTP/1.x transport connection broken: malformed HTTP response "SSH"',
    "hang-up": f"{UNREACHABLE}EOF",
    "refused": REFUSED,
}


@pytest.fixture(params=FAULTS)
def fault(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[tuple[Path, str]]:
    """A kubeconfig of a server with a fault, and what is said of it."""

    def answer(connection: socket.socket) -> None:
        connection.recv(65536)
        if request.param != "hang-up":
            connection.sendall(b"SSH\r\n")

    cluster = {"certificate-authority-data": inline(Authority().certificate)}
    monkeypatch.setattr(certificates, "LIFE", timedelta(minutes=-1 if request.param == "expired" else 60))
    with listening(answer) as used:
        port = unused_port() if request.param == "refused" else used
        scheme = "http" if request.param in {"no HTTP", "hang-up"} else "https"
        server: Any = f"{scheme}://127.0.0.1:{port}"
        if request.param in {"unknown authority", "expired"}:
            server = serve(ObjectServer())
        config = kubeconfig(server, cluster=cluster if request.param == "unknown authority" else None)
        yield write(tmp_path / "kubeconfig", config), FAULTS[request.param].format(server=f"127.0.0.1:{port}")


def test_a_fault_is_named(fault: tuple[Path, str]) -> None:
    path, said = fault
    assert failure(KubeApi(connect(ConnectionOptions(kubeconfig=str(path)))).pods) == said


@needs_kubectl
def test_kubectl_says_the_same_of_a_fault(fault: tuple[Path, str]) -> None:
    """Or more: the time of a certificate's end, why a signature does not fit."""
    path, said = fault
    assert said_by_kubectl(path, "get", "--raw", "/api").startswith(said)


def test_a_body_and_its_type(serve: Serve, connect_to: ConnectTo) -> None:
    server = serve(lambda _: Answer(body=b"{}"))
    connection = connect_to(server)
    connection.request("POST", REVIEWS, {"a": "b"}, body=b"[]").read()
    connection.request("GET", "/x", accept="text/y").read()
    sent, plain = server.requests
    assert (sent.method, sent.query, sent.body) == ("POST", {"a": "b"}, b"[]")
    assert (sent.headers["content-type"], plain.headers["accept"]) == ("application/json", "text/y")
    assert sent.headers["content-length"] == "2"
    assert "transfer-encoding" not in sent.headers
    assert "content-type" not in plain.headers


def test_a_dead_peer_is_noticed(connect_to: ConnectTo) -> None:
    response = connect_to(lambda _: Answer(body=b"x" * 100)).request("GET", "/")
    found = getattr(response.connection, "sock")  # noqa: B009 - the protocol of urllib3 does not name it
    assert found.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    if hasattr(socket, "TCP_KEEPIDLE"):
        names = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        assert [found.getsockopt(socket.IPPROTO_TCP, name) for name in names] == [30, 10, 3]
    response.drain_conn()


def test_watches_and_short_requests_share_a_pool(
    serve: Serve, connect_to: ConnectTo, caplog: pytest.LogCaptureFixture
) -> None:
    """None waits for another, and what is finished is kept for the next."""
    together = threading.Barrier(12)

    def answer(request: Request) -> Answer:
        if request.path != "/again":
            together.wait(120)
        return Answer(body=b"{}")

    server = serve(answer)
    connection = connect_to(server)
    with ThreadPoolExecutor(12) as threads:
        for path in ("/first", "/again"):
            list(threads.map(lambda path: connection.request("GET", path).read(), [path] * 12))
    assert len(server.requests) == 24
    assert server.connections == 12
    assert "Connection pool is full" not in caplog.text
