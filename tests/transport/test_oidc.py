"""The oidc auth provider: tokens that hold, tokens that are refreshed, and where the new ones are kept."""

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_qos.errors import ServerUnreachable
from tests.cluster.certificates import Authority
from tests.cluster.commanding import connected_by
from tests.cluster.https_server import Answer, HttpsServer
from tests.cluster.kubeconfigs import inline, kubeconfig, write
from tests.cluster.kubectl import needs_kubectl, said_by_kubectl
from tests.cluster.serving import Serve
from tests.transport.oidc_issuer import Issuer, token

ANSWERS = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
SAYS = "Unable to connect to the server: "


@pytest.fixture
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture
def provider(serve: Serve, issuer: Issuer) -> HttpsServer:
    """The issuer's server, by another CA than the cluster's."""
    found = serve(issuer, authority=Authority("issuer"))
    issuer.url = found.url
    return found


@pytest.fixture
def server(serve: Serve) -> HttpsServer:
    return serve(lambda _: Answer(body=b"{}"))


def config(server: HttpsServer, provider: HttpsServer, folder: Path, **more: str) -> Path:
    entries = {
        "idp-issuer-url": f"{provider.url}/",
        "client-id": "m:e",
        "client-secret": "s ",
        "idp-certificate-authority-data": inline(provider.authority.certificate),
        "refresh-token": "first",
        **more,
    }
    user = {
        "auth-provider": {"name": "oidc", "config": {name: value for name, value in entries.items() if value}}
    }
    return write(folder / "config", kubeconfig(server, user=user))


def request_version(path: Path) -> None:
    connected_by(path).request("GET", "/version").read()


def kept(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text())["users"][0]["user"]["auth-provider"]["config"]
    return found


def said(path: Path) -> str:
    with pytest.raises(ServerUnreachable) as caught:
        request_version(path)
    return str(caught.value)


def test_a_token_that_holds_is_used(server: HttpsServer, provider: HttpsServer, tmp_path: Path) -> None:
    holds = token(3600)
    request_version(config(server, provider, tmp_path, **{"id-token": holds}))
    assert (server.requests[-1].token, provider.requests) == (holds, [])


@pytest.mark.parametrize("seconds", [-60, 5], ids=["ended", "about to end"])
def test_a_token_that_has_ended_is_refreshed_and_kept(
    server: HttpsServer, provider: HttpsServer, issuer: Issuer, tmp_path: Path, seconds: int
) -> None:
    path = config(server, provider, tmp_path, **{"id-token": token(seconds)})
    path.chmod(0o600)
    before = yaml.safe_load(path.read_text())
    connection = connected_by(path)
    for _ in range(2):
        connection.request("GET", "/version").read()
    assert [request.token for request in server.requests] == [issuer.fresh] * 2
    assert provider.paths() == ["/.well-known/openid-configuration", "/token"]
    assert (kept(path)["id-token"], kept(path)["refresh-token"]) == (issuer.fresh, "second")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith("config")] == ["config"]
    before["users"][0]["user"]["auth-provider"]["config"] |= {
        "id-token": issuer.fresh,
        "refresh-token": "second",
    }
    assert yaml.safe_load(path.read_text()) == before


@needs_kubectl
def test_kubectl_goes_on_with_what_was_kept(
    server: HttpsServer, provider: HttpsServer, issuer: Issuer, tmp_path: Path
) -> None:
    path = config(server, provider, tmp_path)
    request_version(path)
    assert said_by_kubectl(path, "get", "--raw", "/version") == "{}"
    assert {request.token for request in server.requests} == {issuer.fresh}
    assert provider.paths().count("/token") == 1


def test_a_link_stays_a_link(
    server: HttpsServer, provider: HttpsServer, issuer: Issuer, tmp_path: Path
) -> None:
    path = config(server, provider, tmp_path)
    link = tmp_path / "link"
    link.symlink_to(path)
    request_version(link)
    assert link.is_symlink()
    assert kept(path)["id-token"] == issuer.fresh


def test_tokens_go_to_the_file_that_the_user_stands_in(
    server: HttpsServer,
    provider: HttpsServer,
    issuer: Issuer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = config(server, provider, tmp_path)
    parts = yaml.safe_load(whole.read_text())
    users = write(tmp_path / "users", {"users": parts.pop("users")})
    others = write(tmp_path / "others", parts)
    before = others.read_text()
    monkeypatch.setenv("KUBECONFIG", f"{others}:{users}:{whole}")
    connected_by(None).request("GET", "/version").read()
    assert (kept(users)["refresh-token"], others.read_text()) == ("second", before)
    assert kept(whole)["refresh-token"] == "first"


def test_a_client_may_be_named_in_the_form_only(
    server: HttpsServer, provider: HttpsServer, issuer: Issuer, tmp_path: Path
) -> None:
    issuer.only_by_form = True
    request_version(config(server, provider, tmp_path))
    assert server.requests[-1].token == issuer.fresh


def test_threads_refresh_once(
    server: HttpsServer, provider: HttpsServer, issuer: Issuer, tmp_path: Path
) -> None:
    connection = connected_by(config(server, provider, tmp_path))
    with ThreadPoolExecutor(6) as threads:
        list(threads.map(lambda path: connection.request("GET", path).read(), ["/version"] * 6))
    assert provider.paths().count("/token") == 1
    assert [request.token for request in server.requests] == [issuer.fresh] * 6


def test_a_provider_is_never_trusted_unseen(
    server: HttpsServer, provider: HttpsServer, tmp_path: Path
) -> None:
    """A refresh token is a login; without a CA of its own, a provider is judged by the system's."""
    path = config(server, provider, tmp_path, **{"idp-certificate-authority-data": ""})
    assert "CERTIFICATE_VERIFY_FAILED" in said(path)
    assert (provider.requests, server.requests) == ([], [])


@pytest.mark.parametrize("row", ANSWERS.values(), ids=ANSWERS)
def test_a_provider_that_gives_no_token(
    server: HttpsServer, provider: HttpsServer, issuer: Issuer, tmp_path: Path, row: dict[str, Any]
) -> None:
    issuer.answers[row["path"]] = Answer(row.get("status", 200), row["body"].encode())
    assert said(config(server, provider, tmp_path)).startswith(SAYS + row["said"])
    assert server.requests == []


def test_tokens_that_cannot_be_kept_are_not_used(
    server: HttpsServer, provider: HttpsServer, tmp_path: Path
) -> None:
    """kubectl's lock is held by someone else."""
    path = config(server, provider, tmp_path)
    (tmp_path / "config.lock").touch()
    assert said(path).startswith(f"{SAYS}could not persist new tokens: ")
    assert kept(path)["refresh-token"] == "first"


def test_a_token_flag_comes_before_it(server: HttpsServer, provider: HttpsServer, tmp_path: Path) -> None:
    connected_by(config(server, provider, tmp_path), "--token", "mine").request("GET", "/version").read()
    assert (server.requests[-1].token, provider.requests) == ("mine", [])
