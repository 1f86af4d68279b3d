"""Who we are to a server: every way of a kubeconfig's user entry, seen from the server's side."""

import socket
import ssl
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from kubectl_qos.cluster.kube_api import KubeApi
from kubectl_qos.errors import ApiError, QosError
from kubectl_qos.transport import ConnectionOptions, tls
from kubectl_qos.transport import auth as credentials
from kubectl_qos.transport.client import connect
from tests.cluster.certificates import Authority
from tests.cluster.https_server import HttpsServer
from tests.cluster.kubeconfigs import inline, kubeconfig, write
from tests.cluster.object_server import ObjectServer
from tests.cluster.serving import ConnectTo, Serve
from tests.transport.proxies import listening


@pytest.fixture
def server(serve: Serve, authority: Authority) -> HttpsServer:
    return serve(ObjectServer(), clients=authority)


def sent(server: HttpsServer) -> str:
    return server.requests[-1].headers.get("authorization", "")


@pytest.mark.parametrize(
    ("user", "header"),
    [
        ({"token": "admin"}, "Bearer admin"),
        ({"tokenFile": "token"}, "Bearer of the file"),
        ({"tokenFile": "token", "token": "stale"}, "Bearer of the file"),
        ({"username": "jane", "password": "pässword:1"}, f"Basic {inline('jane:pässword:1'.encode())}"),
    ],
    ids=["token", "file", "file before token", "password"],
)
def test_what_is_sent(
    server: HttpsServer, connect_to: ConnectTo, tmp_path: Path, user: dict[str, str], header: str
) -> None:
    (tmp_path / "token").write_text("of the file\n")
    connect_to(server, user=user).request("GET", "/version").drain_conn()
    assert sent(server) == header


def test_no_credentials_at_all_are_the_server_s_business(server: HttpsServer, connect_to: ConnectTo) -> None:
    with pytest.raises(ApiError, match="You must be logged in"):
        KubeApi(connect_to(server, user={})).pods()
    assert sent(server) == ""


def test_a_token_file_is_read_again_after_a_while(
    server: HttpsServer, connect_to: ConnectTo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("viewer")
    api = KubeApi(connect_to(server, user={"tokenFile": "token"}))
    (tmp_path / "token").write_text("admin")
    api.nodes()
    assert sent(server) == "Bearer viewer"
    monkeypatch.setattr(credentials, "FILE_SECONDS", -1.0)
    api.nodes()
    assert sent(server) == "Bearer admin"
    (tmp_path / "token").unlink()
    api.nodes()
    assert sent(server) == "Bearer admin"


def test_a_token_file_is_read_again_when_its_token_is_refused(
    server: HttpsServer, connect_to: ConnectTo, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("revoked")
    api = KubeApi(connect_to(server, user={"tokenFile": "token"}))
    (tmp_path / "token").write_text("admin")
    api.nodes()
    assert [request.token for request in server.requests] == ["revoked", "admin"]


def test_a_refused_token_is_not_sent_twice(server: HttpsServer, connect_to: ConnectTo) -> None:
    with pytest.raises(ApiError, match="You must be logged in"):
        KubeApi(connect_to(server, user={"token": "revoked"})).nodes()
    assert len(server.requests) == 1


def test_an_empty_token_file_is_named(server: HttpsServer, connect_to: ConnectTo, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("\n")
    with pytest.raises(QosError) as caught:
        connect_to(server, user={"tokenFile": "token"})
    assert str(caught.value) == f'read empty token from file "{tmp_path}/token"'


def test_a_certificate_in_files_that_are_replaced(
    server: HttpsServer,
    connect_to: ConnectTo,
    authority: Authority,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    authority.client("old").write(tmp_path, "me")
    api = KubeApi(connect_to(server, user={"client-certificate": "me.crt", "client-key": "me.key"}))
    api.nodes()
    authority.client("new").write(tmp_path, "me")
    api.nodes()
    monkeypatch.setattr(credentials, "FILE_SECONDS", -1.0)
    api.nodes()
    (tmp_path / "me.key").unlink()
    api.nodes()
    assert [request.user for request in server.requests] == ["old", "old", "new", "new"]


def test_plain_http_sends_no_credentials(tmp_path: Path) -> None:
    """As kubectl does; whom we would act as is no secret."""
    user = {"token": "secret", "as": "jane"}
    requested: list[bytes] = []

    def answer(connection: socket.socket) -> None:
        requested.append(connection.recv(65536))
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    with listening(answer) as port:
        path = write(tmp_path / "config", kubeconfig(f"http://127.0.0.1:{port}", user=user))
        assert connect(ConnectionOptions(kubeconfig=str(path))).request("GET", "/").read() == b"ok"
    assert b"secret" not in requested[0]
    assert b"Impersonate-User: jane" in requested[0]


def test_the_legacy_provider_of_oidc_is_refused_unless_there_is_a_token(
    server: HttpsServer, connect_to: ConnectTo
) -> None:
    provider = {"name": "oidc", "config": {"id-token": "x"}}
    with pytest.raises(QosError, match='"oidc" is not supported') as caught:
        connect_to(server, user={"auth-provider": provider})
    assert "kubelogin" in (caught.value.hint or "")
    user = {"auth-provider": provider, "token": "t"}
    connect_to(server, user=user).request("GET", "/version").drain_conn()
    assert sent(server) == "Bearer t"


def test_a_client_certificate_inline(
    server: HttpsServer, connect_to: ConnectTo, authority: Authority
) -> None:
    pair = authority.client("jane")
    user = {"client-certificate-data": inline(pair.certificate), "client-key-data": inline(pair.key)}
    KubeApi(connect_to(server, user=user)).pods()
    assert (server.requests[-1].user, sent(server)) == ("jane", "")


def test_a_client_certificate_in_files(
    server: HttpsServer, connect_to: ConnectTo, authority: Authority, tmp_path: Path
) -> None:
    certificate, key = authority.client("jane").write(tmp_path, "jane")
    user = {"client-certificate": certificate.name, "client-key": str(key)}
    KubeApi(connect_to(server, user=user)).pods()
    assert server.requests[-1].user == "jane"


def test_a_key_leaves_no_file_behind(tmp_path: Path, authority: Authority) -> None:
    pair = authority.client("jane")
    folder = tmp_path / "temporary"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tempfile.tempdir", str(folder))
        tls.load_pair(ssl.create_default_context(), tls.KeyPair(pair.certificate, pair.key))
    assert list(folder.iterdir()) == []


def encrypted(key: bytes) -> bytes:
    return serialization.load_pem_private_key(key, None).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda _: Authority().client("joe").key, "private key does not match public key"),
        (lambda _: b"x", "failed to find any PEM data in key input"),
        (encrypted, "failed to parse private key: it is encrypted"),
    ],
    ids=["another", "none", "encrypted"],
)
def test_a_key_that_cannot_be_used_is_named(
    server: HttpsServer, connect_to: ConnectTo, authority: Authority, spoil: Any, said: str
) -> None:
    pair = authority.client("jane")
    user = {"client-certificate-data": inline(pair.certificate), "client-key-data": inline(spoil(pair.key))}
    with pytest.raises(QosError, match=rf"^tls: {said}$"):
        connect_to(server, user=user)


def test_acting_as_another_user(serve: Serve, connect_to: ConnectTo) -> None:
    server = serve(ObjectServer())
    user = {
        "token": "admin",
        "as": "jane",
        "as-uid": "7",
        "as-groups": ["dev", "ops"],
        "as-user-extra": {"reason": ["a", "b"], "z.org/a b%": ["c"]},
    }
    KubeApi(connect_to(server, user=user)).pods()
    assert [pair for pair in server.raw_headers[-1] if pair[0].startswith("Impersonate")] == [
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Group", "ops"),
        ("Impersonate-Extra-reason", "a"),
        ("Impersonate-Extra-reason", "b"),
        ("Impersonate-Extra-z.org%2Fa%20b%25", "c"),
    ]
