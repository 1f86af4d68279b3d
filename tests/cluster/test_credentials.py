"""Who we are to a server: every way of a kubeconfig's user entry, seen from the server's side."""

from __future__ import annotations

import base64
import json
import ssl
import stat
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from kubectl_qos.cluster import credentials
from kubectl_qos.cluster.api import Api
from kubectl_qos.errors import ApiError, QosError
from tests.cluster.certificates import Authority
from tests.cluster.conftest import ConnectTo
from tests.cluster.https_server import HttpsServer
from tests.cluster.kubeconfigs import inline
from tests.cluster.object_server import ObjectServer
from tests.cluster.serving import Serve

API_VERSION = "client.authentication.k8s.io/v1"


@pytest.fixture
def server(serve: Serve, authority: Authority) -> HttpsServer:
    return serve(ObjectServer(), clients=authority)


def sent(server: HttpsServer) -> str:
    return server.requests[-1].headers.get("authorization", "")


def plugin(folder: Path, code: str) -> dict[str, Any]:
    """A user entry with an exec plugin that runs this Python code and counts its calls in `calls`."""
    script = folder / "plugin"
    counted = f"import json, sys\nwith open({str(folder / 'calls')!r}, 'a') as calls: calls.write('x')\n"
    script.write_text(f"#!{sys.executable}\n{counted}{textwrap.dedent(code)}")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": API_VERSION, "command": str(script), "interactiveMode": "Never"}}


def gives(**status: str) -> str:
    found = {"kind": "ExecCredential", "apiVersion": API_VERSION, "status": status}
    return f"print(json.dumps({found!r}))"


def calls(folder: Path) -> int:
    return len((folder / "calls").read_text())


def test_a_token(server: HttpsServer, connect_to: ConnectTo) -> None:
    Api(connect_to(server, user={"token": "admin"})).pods()
    assert sent(server) == "Bearer admin"


def test_no_credentials_at_all_are_the_server_s_business(server: HttpsServer, connect_to: ConnectTo) -> None:
    with pytest.raises(ApiError, match="You must be logged in"):
        Api(connect_to(server, user={})).pods()
    assert sent(server) == ""


def test_a_name_and_a_password(server: HttpsServer, connect_to: ConnectTo) -> None:
    with pytest.raises(ApiError):
        Api(connect_to(server, user={"username": "jane", "password": "pässword:1"})).pods()
    assert base64.b64decode(sent(server).removeprefix("Basic ")).decode() == "jane:pässword:1"


def test_a_token_in_a_file_ends_before_its_newline(
    server: HttpsServer, connect_to: ConnectTo, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("admin\n")
    Api(connect_to(server, user={"tokenFile": "token"})).pods()
    assert sent(server) == "Bearer admin"


def test_a_token_file_comes_before_a_token(
    server: HttpsServer, connect_to: ConnectTo, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("admin")
    Api(connect_to(server, user={"tokenFile": "token", "token": "stale"})).pods()
    assert sent(server) == "Bearer admin"


def test_a_token_file_is_read_again_after_a_while(
    server: HttpsServer, connect_to: ConnectTo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("viewer")
    api = Api(connect_to(server, user={"tokenFile": "token"}))
    (tmp_path / "token").write_text("admin")
    api.pods()
    assert sent(server) == "Bearer viewer"
    monkeypatch.setattr(credentials, "TOKEN_FILE_SECONDS", -1.0)
    api.pods()
    assert sent(server) == "Bearer admin"
    (tmp_path / "token").unlink()
    api.pods()
    assert sent(server) == "Bearer admin"


def test_a_missing_token_file_is_named(server: HttpsServer, connect_to: ConnectTo) -> None:
    with pytest.raises(QosError) as caught:
        connect_to(server, user={"tokenFile": "/nowhere/token"})
    assert str(caught.value) == (
        "the token file cannot be read: open /nowhere/token: no such file or directory"
    )


def test_a_client_certificate_inline(
    server: HttpsServer, connect_to: ConnectTo, authority: Authority
) -> None:
    pair = authority.client("jane")
    user = {"client-certificate-data": inline(pair.certificate), "client-key-data": inline(pair.key)}
    Api(connect_to(server, user=user)).pods()
    assert (server.requests[-1].user, sent(server)) == ("jane", "")


def test_a_client_certificate_in_files(
    server: HttpsServer, connect_to: ConnectTo, authority: Authority, tmp_path: Path
) -> None:
    certificate, key = authority.client("jane").write(tmp_path, "jane")
    user = {"client-certificate": certificate.name, "client-key": str(key)}
    Api(connect_to(server, user=user)).pods()
    assert server.requests[-1].user == "jane"


def test_a_key_leaves_no_file_behind(tmp_path: Path, authority: Authority) -> None:
    pair = authority.client("jane")
    folder = tmp_path / "temporary"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tempfile.tempdir", str(folder))
        credentials.load_pair(ssl.create_default_context(), pair.certificate, pair.key)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("key", [b"", b"nonsense"], ids=["no key", "no PEM"])
def test_a_certificate_without_its_key_is_named(
    server: HttpsServer, connect_to: ConnectTo, authority: Authority, key: bytes
) -> None:
    certificate = inline(authority.client("jane").certificate)
    with pytest.raises(QosError, match=r"^the kubeconfig's client certificate or key cannot be used: "):
        connect_to(server, user={"client-certificate-data": certificate, "client-key-data": inline(key)})


def test_an_encrypted_key_asks_nobody(
    server: HttpsServer, connect_to: ConnectTo, authority: Authority
) -> None:
    pair = authority.client("jane")
    key = serialization.load_pem_private_key(pair.key, None).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    user = {"client-certificate-data": inline(pair.certificate), "client-key-data": inline(key)}
    with pytest.raises(QosError, match="client certificate or key cannot be used"):
        connect_to(server, user=user)


def test_acting_as_another_user(serve: Serve, connect_to: ConnectTo) -> None:
    server = serve(ObjectServer())
    user = {
        "token": "admin",
        "as": "jane",
        "as-uid": "7",
        "as-groups": ["dev", "ops"],
        "as-user-extra": {"reason": ["a", "b"]},
    }
    Api(connect_to(server, user=user)).pods()
    assert [pair for pair in server.raw_headers[-1] if pair[0].startswith("Impersonate")] == [
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Group", "ops"),
        ("Impersonate-Extra-reason", "a"),
        ("Impersonate-Extra-reason", "b"),
    ]


def test_a_plugin_gives_a_token_once(server: HttpsServer, connect_to: ConnectTo, tmp_path: Path) -> None:
    api = Api(connect_to(server, user=plugin(tmp_path, gives(token="admin"))))
    api.pods()
    api.pods()
    assert sent(server) == "Bearer admin"
    assert calls(tmp_path) == 1


def test_a_plugin_is_asked_again_when_its_token_has_expired(
    server: HttpsServer, connect_to: ConnectTo, tmp_path: Path
) -> None:
    expired = gives(token="admin", expirationTimestamp="2020-01-01T00:00:00Z")
    api = Api(connect_to(server, user=plugin(tmp_path, expired)))
    api.pods()
    assert calls(tmp_path) == 2


def test_a_plugin_gives_a_certificate(
    server: HttpsServer, connect_to: ConnectTo, authority: Authority, tmp_path: Path
) -> None:
    pair = authority.client("jane")
    code = gives(clientCertificateData=pair.certificate.decode(), clientKeyData=pair.key.decode())
    Api(connect_to(server, user=plugin(tmp_path, code))).pods()
    assert server.requests[-1].user == "jane"


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("sys.exit('token has expired, log in again')", "token has expired, log in again"),
        ("sys.exit(3)", "process returned 3"),
        ("print('garbage')", "failed to decode process output"),
        ("", "failed to decode process output"),
        ("print('{}')", "missing key 'apiVersion'"),
        (gives(), "missing token or clientCertificateData"),
        (gives(clientCertificateData="x"), "missing clientKeyData"),
        (gives(token="t").replace("/v1", "/v1beta1"), "does not match"),
    ],
    ids=["says why", "exit code", "garbage", "nothing", "no fields", "no token", "no key", "other version"],
)
def test_a_plugin_that_fails_is_named(
    server: HttpsServer, connect_to: ConnectTo, tmp_path: Path, code: str, reason: str
) -> None:
    user = plugin(tmp_path, code)
    with pytest.raises(QosError) as caught:
        connect_to(server, user=user)
    assert str(caught.value).startswith("getting credentials: ")
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.hint == f"run {user['exec']['command']} by hand to see what it says"
    assert server.requests == []


def test_a_plugin_that_is_not_installed_says_how_to_install_it(
    server: HttpsServer, connect_to: ConnectTo
) -> None:
    entry = {"apiVersion": API_VERSION, "command": "no-such-plugin", "installHint": "install it\nso\n"}
    with pytest.raises(QosError) as caught:
        connect_to(server, user={"exec": entry})
    assert "No such file or directory: 'no-such-plugin'" in str(caught.value)
    assert caught.value.hint == "install it so"


def test_a_plugin_that_may_not_be_run_is_named(
    server: HttpsServer, connect_to: ConnectTo, tmp_path: Path
) -> None:
    user = plugin(tmp_path, gives(token="admin"))
    (tmp_path / "plugin").chmod(0o600)
    with pytest.raises(QosError, match=r"getting credentials: .*Permission denied"):
        connect_to(server, user=user)


def test_an_exec_entry_without_a_command(server: HttpsServer, connect_to: ConnectTo) -> None:
    with pytest.raises(
        QosError, match=r"getting credentials: exec: malformed request. missing key 'command'"
    ):
        connect_to(server, user={"exec": {"apiVersion": API_VERSION}})


def test_a_plugin_sees_its_arguments_and_environment(
    server: HttpsServer, connect_to: ConnectTo, tmp_path: Path
) -> None:
    code = f"""
        import os
        assert json.loads(os.environ["KUBERNETES_EXEC_INFO"])["kind"] == "ExecCredential"
        status = {{"token": sys.argv[1] + os.environ["REST"]}}
        print(json.dumps({{"kind": "ExecCredential", "apiVersion": "{API_VERSION}", "status": status}}))
    """
    user = plugin(tmp_path, code)
    user["exec"] |= {"args": ["ad"], "env": [{"name": "REST", "value": "min"}]}
    Api(connect_to(server, user=user)).pods()
    assert sent(server) == "Bearer admin"


def test_an_oidc_token_that_still_holds(server: HttpsServer, connect_to: ConnectTo) -> None:
    payload = base64.urlsafe_b64encode(json.dumps({"exp": 4102444800}).encode()).decode().rstrip("=")
    provider = {"name": "oidc", "config": {"id-token": f"h.{payload}.s"}}
    with pytest.raises(ApiError):
        Api(connect_to(server, user={"auth-provider": provider})).pods()
    assert sent(server) == f"Bearer h.{payload}.s"
