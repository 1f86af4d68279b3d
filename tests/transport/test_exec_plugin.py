"""Exec plugins: what they are given, what they may answer, and when they are run again."""

import json
import os
import pty
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_qos.cluster.kube_api import KubeApi
from kubectl_qos.errors import ApiError, QosError, ServerUnreachable
from kubectl_qos.transport import ConnectionOptions
from kubectl_qos.transport.auth import ExecPlugin
from kubectl_qos.transport.kubeconfig import resolve_context
from tests.cluster.certificates import Authority
from tests.cluster.https_server import Answer, HttpsServer, Request
from tests.cluster.kubeconfigs import inline, kubeconfig, write
from tests.cluster.kubectl import SAMPLE, needs_kubectl, said_by_kubectl
from tests.cluster.object_server import ObjectServer
from tests.cluster.plugins import API_VERSION, calls, gives, plugin
from tests.cluster.serving import ConnectTo, Serve

FAILED = "Unable to connect to the server: getting credentials: "


@pytest.fixture
def server(serve: Serve, authority: Authority) -> HttpsServer:
    return serve(ObjectServer(), clients=authority)


def sent(server: HttpsServer) -> list[str]:
    return [request.token for request in server.requests]


def in_minutes(minutes: float) -> str:
    return (datetime.now(UTC) + timedelta(minutes=minutes)).isoformat().replace("+00:00", "Z")


def test_a_token_is_requested_once(server: HttpsServer, connect_to: ConnectTo, tmp_path: Path) -> None:
    api = KubeApi(connect_to(server, user=plugin(tmp_path, gives(token="admin"))))
    api.nodes()
    api.nodes()
    assert (sent(server), calls(tmp_path)) == (["admin", "admin"], 1)


WITH_TABS = f"""print('{{\\n\\t"apiVersion": "{API_VERSION}", "status": {{"token": "admin"}}\\n}}')"""
IN_YAML = f"print('apiVersion: {API_VERSION}\\nkind: ExecCredential\\nstatus: {{token: admin}}')"
BETA = gives(token="admin").replace("k8s.io/v1", "k8s.io/v1beta1")
BY_ARGUMENTS = gives(token="=sys.argv[1] + os.environ['REST'] + os.environ['EMPTY']")
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "in YAML": (IN_YAML, {}),
    "in JSON with tabs": (WITH_TABS, {}),
    "the beta API without a mode": (BETA, {"apiVersion": f"{API_VERSION}beta1", "interactiveMode": None}),
    "a command next to the kubeconfig": (gives(token="admin"), {"command": "./plugin"}),
    "no arguments, as kubectl config writes it": (gives(token="admin"), {"args": None, "env": None}),
    "empty arguments": (gives(token="admin"), {"args": [], "env": []}),
    "arguments and environment": (
        BY_ARGUMENTS,
        {"args": ["ad"], "env": [{"name": "REST", "value": "min"}, {"name": "EMPTY"}]},
    ),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_plugin_is_run_as_it_is_written(
    server: HttpsServer, connect_to: ConnectTo, tmp_path: Path, variant: str
) -> None:
    code, changes = VARIANTS[variant]
    user = plugin(tmp_path, code)
    user["exec"] |= changes
    KubeApi(connect_to(server, user=user)).nodes()
    assert sent(server) == ["admin"]


def test_an_expired_token_is_replaced(server: HttpsServer, connect_to: ConnectTo, tmp_path: Path) -> None:
    code = gives(token="=['viewer', 'admin'][count > 1]", expirationTimestamp=f"={_expiry()}")
    api = KubeApi(connect_to(server, user=plugin(tmp_path, code)))
    api.nodes()
    api.nodes()
    assert (sent(server), calls(tmp_path)) == (["admin", "admin"], 2)


def _expiry() -> str:
    return f"{in_minutes(-1)!r} if count == 1 else {in_minutes(9)!r}"


def test_a_certificate(
    server: HttpsServer, connect_to: ConnectTo, authority: Authority, tmp_path: Path
) -> None:
    pair = authority.client("jane")
    code = gives(clientCertificateData=pair.certificate.decode(), clientKeyData=pair.key.decode())
    KubeApi(connect_to(server, user=plugin(tmp_path, code))).nodes()
    assert server.requests[-1].user == "jane"


def test_a_refused_token_is_replaced_once(server: HttpsServer, connect_to: ConnectTo, tmp_path: Path) -> None:
    """A token that a server no longer takes, though it has not expired."""
    code = gives(token="=['revoked', 'admin'][count > 1]")
    connection = connect_to(server, user=plugin(tmp_path, code))
    for _ in range(2):
        response = connection.patch("/version", {}, b"{}", "text/x")
        assert response.status == 415, "the token is taken, the type of the body is not"
        response.drain_conn()
    assert sent(server) == ["revoked", "admin", "admin"]
    assert [request.body for request in server.requests] == [b"{}"] * 3
    assert server.requests[1].headers["content-type"] == "text/x"
    assert (calls(tmp_path), server.connections) == (2, 1)


def test_a_token_that_stays_refused_is_requested_once_a_request(
    server: HttpsServer, connect_to: ConnectTo, tmp_path: Path
) -> None:
    api = KubeApi(connect_to(server, user=plugin(tmp_path, gives(token="=f'unknown {count}'"))))
    with pytest.raises(ApiError, match="You must be logged in"):
        api.nodes()
    assert sent(server) == ["unknown 1", "unknown 2"]


def test_a_plugin_with_nothing_new_is_not_tried_twice(
    server: HttpsServer, connect_to: ConnectTo, tmp_path: Path
) -> None:
    api = KubeApi(connect_to(server, user=plugin(tmp_path, gives(token="unknown"))))
    with pytest.raises(ApiError, match="You must be logged in"):
        api.nodes()
    assert (sent(server), calls(tmp_path)) == (["unknown"], 2)


def test_a_refused_certificate_is_replaced(
    serve: Serve, connect_to: ConnectTo, authority: Authority, tmp_path: Path
) -> None:
    def answer(request: Request) -> Answer:
        return Answer(200 if request.user == "new" else 401, b"{}")

    server = serve(answer, clients=authority)
    pairs = [authority.client(name) for name in ("old", "new")]
    certificates = [pair.certificate.decode() for pair in pairs]
    keys = [pair.key.decode() for pair in pairs]
    code = gives(clientCertificateData=f"={certificates!r}[count > 1]", clientKeyData=f"={keys!r}[count > 1]")
    connection = connect_to(server, user=plugin(tmp_path, code))
    response = connection.request("GET", "/version")
    response.drain_conn()
    assert response.status == 200
    assert [request.user for request in server.requests] == ["old", "new"]


def test_threads_that_are_refused_together_run_it_once(
    server: HttpsServer, connect_to: ConnectTo, tmp_path: Path
) -> None:
    connection = connect_to(server, user=plugin(tmp_path, gives(token="=['revoked', 'admin'][count > 1]")))
    together = threading.Barrier(8)

    def request_version(_: int) -> int:
        together.wait()
        response = connection.request("GET", "/version")
        response.drain_conn()
        return response.status

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(request_version, range(8)))
    assert (found, calls(tmp_path)) == ([200] * 8, 2)


def test_what_was_refused_is_replaced_once(server: HttpsServer, tmp_path: Path) -> None:
    user = plugin(tmp_path, gives(token="=f'token {count}'"))
    path = write(tmp_path / "config", kubeconfig(server, user=user))
    found = ExecPlugin(resolve_context(ConnectionOptions(kubeconfig=str(path))))
    refused = found.authorization()
    assert [found.renew(refused) for _ in range(2)] == [True, True]
    assert (refused, found.authorization(), calls(tmp_path)) == ("Bearer token 1", "Bearer token 2", 2)


def test_a_second_run_that_fails_says_what_the_plugin_said(
    server: HttpsServer, connect_to: ConnectTo, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code = f"if count > 1: sys.exit('the session is over,\\nlog in again')\n{gives(token='revoked')}"
    connection = connect_to(server, user=plugin(tmp_path, code))
    with pytest.raises(ServerUnreachable) as caught:
        connection.request("GET", "/version")
    assert str(caught.value) == f"{FAILED}exec: executable {tmp_path}/plugin failed with exit code 1"
    assert caught.value.hint == "its stderr: the session is over, log in again"
    assert capfd.readouterr().err == ""


ANSWERS = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))


@pytest.fixture(params=ANSWERS)
def answer(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[dict[str, Any], str]:
    """A user entry, and what is said of what its plugin answers."""
    row = ANSWERS[request.param]
    credential = {"apiVersion": API_VERSION, "kind": "ExecCredential", **row.get("credential", {})}
    code = row.get("code", f"print({json.dumps(credential)!r})")
    return plugin(tmp_path, code), FAILED + row["said"].replace("{plugin}", f"{tmp_path}/plugin")


def test_an_answer_that_is_none(
    server: HttpsServer, connect_to: ConnectTo, answer: tuple[dict[str, Any], str]
) -> None:
    user, said = answer
    with pytest.raises(ServerUnreachable) as caught:
        connect_to(server, user=user)
    assert str(caught.value) == said
    assert server.requests == []


@needs_kubectl
@pytest.mark.parametrize("answer", [*ANSWERS][::SAMPLE], indirect=True)
def test_kubectl_says_the_same_of_it(
    server: HttpsServer, tmp_path: Path, answer: tuple[dict[str, Any], str]
) -> None:
    user, said = answer
    path = write(tmp_path / "config", kubeconfig(server, user=user))
    theirs = said_by_kubectl(path, "get", "--raw", "/version")
    is_ours = " must be " in said  # kubectl names types of Go
    assert theirs.startswith(f"{FAILED}decoding stdout: " if is_ours else said)


def test_what_it_says_goes_to_the_terminal_at_first(
    server: HttpsServer, connect_to: ConnectTo, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code = f"print('log in at https://x', file=sys.stderr)\n{gives(token='admin')}"
    connect_to(server, user=plugin(tmp_path, code))
    assert capfd.readouterr().err == "log in at https://x\n"


@pytest.mark.parametrize(
    ("more", "hint"),
    [
        ({"installHint": "install it\nso\n"}, "install it so"),
        ({}, "it looks like a client-go credential plugin"),
    ],
)
def test_a_plugin_that_is_not_installed(
    server: HttpsServer, connect_to: ConnectTo, more: dict[str, str], hint: str
) -> None:
    entry = {"apiVersion": API_VERSION, "command": "no-such-plugin", "interactiveMode": "Never", **more}
    with pytest.raises(QosError) as caught:
        connect_to(server, user={"exec": entry})
    assert str(caught.value) == f"{FAILED}exec: executable no-such-plugin not found"
    assert caught.value.hint.startswith(hint)


def exec_info(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "exec_info").read_text())
    return found


def telling(folder: Path) -> str:
    keep = f"open({str(folder / 'exec_info')!r}, 'w').write(os.environ['KUBERNETES_EXEC_INFO'])"
    return f"{keep}\n{gives(token='admin')}"


@pytest.mark.parametrize("requested", [True, False])
def test_it_may_require_the_cluster(
    server: HttpsServer, connect_to: ConnectTo, tmp_path: Path, requested: bool
) -> None:
    (tmp_path / "ca.crt").write_bytes(server.authority.certificate)
    cluster = {
        "certificate-authority": "ca.crt",
        "tls-server-name": "localhost",
        "disable-compression": True,
        "extensions": [
            {"name": "other", "extension": 7},
            {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}},
        ],
    }
    user = plugin(tmp_path, telling(tmp_path))
    user["exec"]["provideClusterInfo"] = requested
    connect_to(server, cluster=cluster, user=user)
    info = {
        "server": server.url,
        "tls-server-name": "localhost",
        "disable-compression": True,
        "certificate-authority-data": inline(server.authority.certificate),
        "config": {"audience": "a"},
    }
    spec = {"interactive": False, **({"cluster": info} if requested else {})}
    assert exec_info(tmp_path) == {"kind": "ExecCredential", "apiVersion": API_VERSION, "spec": spec}


@needs_kubectl
def test_kubectl_gives_it_the_same(server: HttpsServer, connect_to: ConnectTo, tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(server.authority.certificate)
    user = plugin(tmp_path, telling(tmp_path))
    user["exec"]["provideClusterInfo"] = True
    connect_to(server, cluster={"certificate-authority": "ca.crt"}, user=user)
    ours = exec_info(tmp_path)
    said_by_kubectl(tmp_path / "kubeconfig", "get", "--raw", "/version")
    assert (calls(tmp_path), exec_info(tmp_path)) == (2, ours)


_ON_A_TERMINAL = """
import sys
from kubectl_qos.transport.client import connect
from kubectl_qos.transport import ConnectionOptions
connection = connect(ConnectionOptions(kubeconfig=sys.argv[1]))
response = connection.request("GET", "/version")
response.drain_conn()
print("status", response.status)
"""


@pytest.mark.parametrize("mode", ["Never", "IfAvailable", "Always"])
def test_only_the_first_run_may_be_interactive(server: HttpsServer, tmp_path: Path, mode: str) -> None:
    """On a terminal, a plugin that may reads from it; when it is run again it gets nothing to read."""
    code = f"""
        interactive = json.loads(os.environ["KUBERNETES_EXEC_INFO"])["spec"]["interactive"]
        with open({str(tmp_path / "log")!r}, "a") as log:
            log.write(f"{{interactive}} {{sys.stdin.isatty()}}\\n")
        {gives(token="=['revoked', 'admin'][count > 1]")}
    """
    user = plugin(tmp_path, code)
    user["exec"]["interactiveMode"] = mode
    path = write(tmp_path / "config", kubeconfig(server, user=user))
    leader, terminal = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-c", _ON_A_TERMINAL, str(path)],
            stdin=terminal,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        os.close(leader)
        os.close(terminal)
    log = (tmp_path / "log").read_text().splitlines()
    if mode == "Always":
        assert log == ["True True"]
        assert "exec plugin cannot support interactive mode: standard input is unavailable" in done.stderr
    else:
        first = "True True" if mode == "IfAvailable" else "False False"
        assert (log, done.stdout) == ([first, "False False"], "status 200\n")


def test_a_certificate_in_the_kubeconfig_comes_before_it(
    server: HttpsServer, connect_to: ConnectTo, authority: Authority, tmp_path: Path
) -> None:
    pair = authority.client("jane")
    user = plugin(tmp_path, gives(token="admin"))
    user |= {"client-certificate-data": inline(pair.certificate), "client-key-data": inline(pair.key)}
    KubeApi(connect_to(server, user=user)).nodes()
    assert (server.requests[-1].user, sent(server), calls(tmp_path)) == ("jane", [""], 0)
