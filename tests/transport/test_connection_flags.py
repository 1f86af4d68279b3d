"""The connection flags, seen from the server's side: each says what it says for kubectl, on every request."""

from pathlib import Path
from typing import Any

import pytest

from kubectl_qos.cli.main import parse
from kubectl_qos.errors import UsageError
from kubectl_qos.transport import ConnectionOptions
from kubectl_qos.transport import kubeconfig as kubeconfig_module
from tests.cluster.certificates import Authority
from tests.cluster.commanding import connected_by
from tests.cluster.https_server import Answer, HttpsServer
from tests.cluster.kubeconfigs import inline, kubeconfig, write
from tests.cluster.kubectl import needs_kubectl, said_by_kubectl
from tests.cluster.serving import Serve


@pytest.fixture
def server(serve: Serve, authority: Authority) -> HttpsServer:
    return serve(lambda _: Answer(body=b"{}"), clients=authority)


@pytest.fixture
def config(server: HttpsServer, tmp_path: Path) -> Path:
    return write(tmp_path / "config", kubeconfig(server))


@pytest.fixture
def ca(server: HttpsServer, tmp_path: Path) -> str:
    path = tmp_path / "ca.crt"
    path.write_bytes(server.authority.certificate)
    return str(path)


def request_version(kubeconfig: Path | None, *words: str) -> None:
    connected_by(kubeconfig, *words).request("GET", "/version").read()


def sent(server: HttpsServer, *names: str) -> list[str]:
    """The last request's headers of these names, in the order of arrival."""
    return [value for name, value in server.raw_headers[-1] if name in names]


SENT = ("Authorization", *(f"Impersonate-{name}" for name in ("User", "Uid", "Group", "Extra-why")))


@pytest.mark.parametrize(
    ("user", "words", "headers"),
    [
        ({"token": "t"}, "--token other", ["Bearer other"]),
        ({}, "--username jane --password secret", [f"Basic {inline(b'jane:secret')}"]),
        (
            {"token": "t"},
            "--as jane --as-uid 7 --as-group dev --as-group=ops",
            ["7", "Bearer t", "dev", "jane", "ops"],
        ),
        ({}, "--as jane --as-user-extra why=a --as-user-extra=why=b=c", ["a", "b=c", "jane"]),
        ({"token": "t", "as": "jane", "as-groups": ["a", "b"]}, "--as-group c", ["Bearer t", "c", "jane"]),
    ],
)
def test_who_we_are(
    server: HttpsServer, tmp_path: Path, user: dict[str, Any], words: str, headers: list[str]
) -> None:
    request_version(write(tmp_path / "config", kubeconfig(server, user=user)), *words.split())
    assert sorted(sent(server, *SENT)) == headers


def test_a_client_certificate_over_that_of_the_kubeconfig(
    server: HttpsServer, authority: Authority, tmp_path: Path
) -> None:
    inside = authority.client("joe")
    user = {"client-certificate-data": inline(inside.certificate), "client-key-data": inline(inside.key)}
    config = write(tmp_path / "config", kubeconfig(server, user=user))
    certificate, key = authority.client("jane").write(tmp_path, "jane")
    request_version(config)
    request_version(config, "--client-certificate", str(certificate), "--client-key", str(key))
    assert [request.user for request in server.requests] == ["joe", "jane"]


def test_another_cluster_and_another_user(server: HttpsServer, tmp_path: Path) -> None:
    config = kubeconfig("https://127.0.0.1:1", user={"token": "a"})
    other = kubeconfig(server, context="other", user={"token": "b"})
    config["clusters"] += other["clusters"]
    config["users"] += other["users"]
    request_version(write(tmp_path / "config", config), "--cluster", "other-cluster", "--user", "other-user")
    assert sent(server, "Authorization") == ["Bearer b"]


def test_another_server_keeps_the_ca_but_not_the_name(server: HttpsServer, tmp_path: Path) -> None:
    cluster = {
        "certificate-authority-data": inline(server.authority.certificate),
        "tls-server-name": "kube.example.com",
    }
    config = write(tmp_path / "config", kubeconfig("https://127.0.0.1:1", cluster=cluster))
    request_version(config, "-s", server.url)
    request_version(config, "--server", server.url, "--tls-server-name", "localhost")
    assert server.paths() == ["/version", "/version"]


def test_a_server_without_any_kubeconfig(server: HttpsServer, ca: str) -> None:
    request_version(None, "--server", server.url, "--certificate-authority", ca, "--token", "t")
    assert sent(server, "Authorization") == ["Bearer t"]


def test_a_server_of_the_environment(server: HttpsServer, ca: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_MASTER", server.url)
    request_version(None, "--certificate-authority", ca)
    assert server.paths() == ["/version"]


def test_a_ca_over_that_of_the_kubeconfig(server: HttpsServer, ca: str, tmp_path: Path) -> None:
    wrong = {"certificate-authority-data": inline(Authority().certificate)}
    request_version(write(tmp_path / "1", kubeconfig(server, cluster=wrong)), "--certificate-authority", ca)
    anyone = {"insecure-skip-tls-verify": True}
    request_version(write(tmp_path / "2", kubeconfig(server, cluster=anyone)), "--certificate-authority", ca)
    assert len(server.requests) == 2


def test_trust_in_anyone_over_the_ca_of_the_kubeconfig(server: HttpsServer, tmp_path: Path) -> None:
    wrong = {"certificate-authority-data": inline(Authority().certificate)}
    request_version(
        write(tmp_path / "config", kubeconfig(server, cluster=wrong)), "--insecure-skip-tls-verify"
    )
    assert server.paths() == ["/version"]


def test_compression(server: HttpsServer, config: Path) -> None:
    request_version(config)
    request_version(config, "--disable-compression")
    request_version(config, "--disable-compression=false")
    found = [request.headers["accept-encoding"] for request in server.requests]
    assert found == ["gzip", "identity", "gzip"]


def test_a_namespace(config: Path) -> None:
    assert connected_by(config).namespace == "default"
    assert connected_by(config, "-n", "shop").namespace == "shop"


def test_a_pod_s_account_with_another_server(
    server: HttpsServer, ca: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("of the pod")
    monkeypatch.setattr(kubeconfig_module, "_SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(server.port))
    request_version(None, "--request-timeout=9s", "--as", "jane")
    assert sent(server, "Authorization", "Impersonate-User") == ["jane", "Bearer of the pod"]
    request_version(None, "--token", "mine")
    assert sent(server, "Authorization") == ["Bearer mine"]


@pytest.mark.parametrize(
    "words",
    [
        ("--token", "t", "--insecure-skip-tls-verify", "--as-group", "g", "top", "web"),
        ("top", "--token", "t", "--insecure-skip-tls-verify", "--as-group", "g", "web"),
        ("top", "web", "--insecure-skip-tls-verify=true", "--as-group=g", "--token=t"),
    ],
)
def test_flags_may_be_anywhere(words: tuple[str, ...]) -> None:
    found = parse(words)
    assert (found.token, found.insecure_skip_tls_verify, found.as_groups) == ("t", True, ["g"])
    assert found.target == ["web"]


def test_a_switch_is_true_or_false() -> None:
    assert parse(["top", "--disable-compression=false"]).disable_compression is False
    with pytest.raises(UsageError):
        parse(["top", "--disable-compression=maybe"])


@needs_kubectl
def test_every_flag_is_one_of_kubectl() -> None:
    theirs = said_by_kubectl(None, "options")
    ours = {f"--{name.replace('_', '-')}" for name in ConnectionOptions._fields}
    renamed = {"--as-user": "--as", "--as-groups": "--as-group"}
    # kubectl takes a name and a password without saying so, and extras from 1.34 on.
    hidden = {"--username", "--password", "--as-user-extra"}
    missing = {flag for flag in ours - hidden if f"{renamed.get(flag, flag)}=" not in theirs}
    assert missing == set()
