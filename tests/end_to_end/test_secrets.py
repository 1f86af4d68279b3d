"""What gives access is in nothing that is printed, at no level of -v, whatever fails."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from tests.cluster.certificates import Authority
from tests.cluster.cluster_objects import node, pod
from tests.cluster.https_server import Answer, HttpsServer, Request
from tests.cluster.kubeconfigs import inline, kubeconfig, write
from tests.cluster.object_server import ObjectServer
from tests.cluster.plugins import gives, plugin
from tests.cluster.serving import Serve
from tests.end_to_end.command import Done, Run
from tests.end_to_end.verifying import Cluster, recorded
from tests.transport.proxies import ConnectProxy

COMMANDS = (["top", "-A"], ["explain", "pod/web-0", "-n", "shop"], ["version"], ["can-i"])


class Secrets:
    """Words that must not come out; each is made once."""

    def __init__(self) -> None:
        self._made: dict[str, str] = {}

    def __call__(self, place: str) -> str:
        """The secret of a place, with characters that URLs escape."""
        return self._made.setdefault(place, f"h1dd3n/{place.encode().hex()}+&x")

    def add(self, place: str, secret: str) -> str:
        self._made[place] = secret
        return secret

    def assert_kept(self, done: Done) -> None:
        """None of them was printed, as it is, as URLs or base64 have it."""
        said = done.out + done.err
        for place, secret in self._made.items():
            for form in _forms(secret):
                assert form not in said, f"{place}: {form}"


def _forms(secret: str) -> Iterator[str]:
    yield from (secret, quote(secret), quote(secret, safe=""), quote_plus(secret), repr(secret)[1:-1])
    for before in range(3):
        # What surrounds it moves base64 by up to two bytes; the ends depend on the neighbours.
        yield base64.b64encode(b" " * before + secret.encode()).decode().rstrip("=")[4:-4]
        yield base64.urlsafe_b64encode(b" " * before + secret.encode()).decode().rstrip("=")[4:-4]


@pytest.fixture
def secrets() -> Secrets:
    return Secrets()


@pytest.fixture
def check(run: Run, secrets: Secrets) -> Callable[..., list[Done]]:
    """Run commands at the highest level and look at all that they print."""

    def start(*flags: str | Path, commands: Any = COMMANDS, **variables: str) -> list[Done]:
        done = [run(*words, *flags, "-v=10", variables=variables) for words in commands]
        for one in done:
            secrets.assert_kept(one)
        return done

    return start


def has_log(done: list[Done], text: str = " milliseconds") -> None:
    """There is a log, so that a secret could have been in it."""
    assert all(text in one.err for one in done), done[0].err


def talkative(secrets: Secrets, *, takes: Callable[[Request], bool] = lambda _: True) -> Any:
    """A server with secrets in all that it says."""
    made = pod("web-0", node="n1")
    made["metadata"]["annotations"] = {"password": secrets("annotation")}
    made["spec"]["containers"][0]["env"] = [{"name": "A", "value": secrets("environment of a container")}]
    objects = ObjectServer(pods=[made], nodes=[node("n1")], metrics=[])

    def answer(request: Request) -> Answer:
        found = objects(request) if takes(request) else Answer(401, b"{}")
        headers = {
            "Set-Cookie": f"session={secrets('Set-Cookie')}",
            "WWW-Authenticate": f'Bearer nonce="{secrets("WWW-Authenticate")}"',
            "Location": f"https://a:{secrets.add('Location', 's3cr3tl0c4t10n')}@h/?code={secrets('code')}",
            "X-Auth-Token": secrets("X-Auth-Token"),
            "Link": f"<https://h/?ticket={secrets('Link')}>",
        }
        return Answer(found.status, found.body, found.content_type, headers)

    def known(request: Request) -> Answer:
        request.headers["authorization"] = "Bearer admin"  # type: ignore[index]
        return answer(request)

    return known


def config(folder: Path, server: HttpsServer | str, **options: Any) -> str:
    return str(write(folder / "config", kubeconfig(server, **options)))


def test_a_token(serve: Serve, tmp_path: Path, secrets: Secrets, check: Any) -> None:
    server = serve(talkative(secrets))
    user = {"token": secrets("token")}
    has_log(check("--kubeconfig", config(tmp_path, server, user=user)))
    assert server.requests[0].token
    has_log(check("--kubeconfig", config(tmp_path, server), "--token", secrets("--token")))


def test_a_token_in_a_file(serve: Serve, tmp_path: Path, secrets: Secrets, check: Any) -> None:
    file = tmp_path / "token"
    file.write_text(secrets("token file"))
    has_log(check("--kubeconfig", config(tmp_path, serve(talkative(secrets)), user={"tokenFile": str(file)})))


def test_a_password(serve: Serve, tmp_path: Path, secrets: Secrets, check: Any) -> None:
    server = serve(talkative(secrets))
    user = {"username": "me", "password": secrets("password")}
    has_log(check("--kubeconfig", config(tmp_path, server, user=user)))
    flags = ["--username", "me", "--password", secrets("--password")]
    has_log(check("--kubeconfig", config(tmp_path, server, user={}), *flags))


@pytest.mark.parametrize("password", ["s3cr3tw0rd", "s3cr3t/w0rd", "s3cr3t%2Fw0rd@x"])
def test_credentials_in_the_url_of_the_server(
    serve: Serve, tmp_path: Path, secrets: Secrets, check: Any, password: str
) -> None:
    server = serve(talkative(secrets))
    secrets.add("URL", password)
    url = f"https://me:{password}@127.0.0.1:{server.port}"
    cluster = {"certificate-authority-data": inline(server.authority.certificate)}
    check("--kubeconfig", config(tmp_path, url, cluster=cluster))
    check("--kubeconfig", config(tmp_path, f"https://me:{password}@127.0.0.1:1"))
    check("--kubeconfig", config(tmp_path, f"ftp://me:{password}@h"), "-s", f"h:{password}@h:x/y")


@pytest.mark.parametrize("password", ["s3cr3tw0rd", "s3cr3tw0rd/x", "x@s3cr3tw0rd"])
def test_credentials_in_the_url_of_a_file(secrets: Secrets, check: Any, password: str) -> None:
    """It is named by errors, by their places in documents, and by hints."""
    secrets.add("URL", "s3cr3tw0rd")
    url = f"https://me:{password}@127.0.0.1:1/x.yaml?signature={password}"
    reading = [("top", "-f"), ("check", "-o", "sarif", "-f"), ("top", "-k")]
    others = [("top", "-A", "--usage=prometheus", "--prometheus"), ("kills", "--demo", "--kernel-log")]
    others.append(("set", "deployment/x", "--limits", "memory=1Gi", "--write"))
    check(commands=[(*words, url) for words in (*reading, *others)])
    check(commands=[("top", "-f", url.replace(".yaml", ".tar.gz"))])


def test_a_client_key(
    serve: Serve, tmp_path: Path, authority: Authority, secrets: Secrets, check: Any
) -> None:
    pair = authority.client("jane")
    body = pair.key.decode().splitlines()
    secrets.add("key", body[1])
    secrets.add("key, inline", inline(pair.key)[60:120])
    server = serve(talkative(secrets), clients=authority)
    user = {
        "client-certificate-data": inline(pair.certificate),
        "client-key-data": inline(pair.key),
    }
    has_log(check("--kubeconfig", config(tmp_path, server, user=user)))
    broken = pair.key.replace(b"-----END", b"-----ENDS")
    check("--kubeconfig", config(tmp_path, server, user=user | {"client-key-data": inline(broken)}))


def test_an_exec_plugin(serve: Serve, tmp_path: Path, secrets: Secrets, check: Any) -> None:
    code = f"print('x' if count > 3 else '', end='')\n{gives(token=secrets('output'))}"
    user = plugin(tmp_path, code)
    user["exec"] |= {
        "args": ["--secret", secrets("argument")],
        "env": [{"name": "A", "value": secrets("variable of a plugin")}],
    }
    path = config(tmp_path, serve(talkative(secrets)), user=user)
    done = check("--kubeconfig", path, OTHER=secrets("variable"))
    has_log(done, "exec plugin plugin ended with exit code 0 in ")
    assert any("decoding stdout" in one.err for one in done)


def test_an_exec_plugin_whose_token_is_not_taken(
    serve: Serve, tmp_path: Path, secrets: Secrets, check: Any
) -> None:
    user = plugin(tmp_path, gives(token=secrets("output")))
    server = serve(talkative(secrets, takes=lambda _: False))
    has_log(check("--kubeconfig", config(tmp_path, server, user=user)), "401 Unauthorized in ")


def test_a_proxy(serve: Serve, tmp_path: Path, secrets: Secrets, check: Any) -> None:
    server = serve(talkative(secrets))
    cluster = {"certificate-authority-data": inline(server.authority.certificate)}
    word = quote(secrets("password of the proxy"), safe="")
    with ConnectProxy() as proxy:
        url = proxy.url.replace("//", f"//me:{word}@")
        done = check("--kubeconfig", config(tmp_path, server, cluster=cluster | {"proxy-url": url}))
        has_log(done[:4], f"through the proxy {proxy.url}")
        assert proxy.requested


@pytest.mark.parametrize(
    "proxy",
    [
        "http://me:{}@127.0.0.1:1",
        "http://me:{}@127.0.0.1:x",
        "socks5://me:{}@127.0.0.1:1",
        "ftp://me:{}@h",
        "me:{}@127.0.0.1:1",
    ],
)
def test_a_proxy_that_cannot_be_used(tmp_path: Path, secrets: Secrets, check: Any, proxy: str) -> None:
    url = proxy.format(secrets.add("password of the proxy", "s3cr3tpr0xy"))
    server = "https://kube.invalid:6443"
    check("--kubeconfig", config(tmp_path, server, cluster={"proxy-url": url}))
    check("--kubeconfig", config(tmp_path, server), HTTPS_PROXY=url, commands=COMMANDS[:1])


def test_a_token_that_is_no_header(serve: Serve, tmp_path: Path, secrets: Secrets, check: Any) -> None:
    user = {"token": f"a\n{secrets('token')}"}
    done = check("--kubeconfig", config(tmp_path, serve(talkative(secrets)), user=user))
    assert "invalid header field value" in done[0].err
    assert "Traceback" in done[0].err


def test_a_look_into_containers(serve: Serve, tmp_path: Path, secrets: Secrets, check: Any) -> None:
    cluster = Cluster(recorded("bu-multi"))
    lock = threading.Lock()

    def answer(request: Request) -> Answer:
        with lock:
            request.headers["authorization"] = "Bearer admin"  # type: ignore[index]
            return cluster(request)

    user = {"token": secrets("token")}
    path = config(tmp_path, serve(answer), user=user, namespace="default")
    done = check("--kubeconfig", path, commands=(["verify", "pod/bu-multi"],))
    has_log(done, "command=<masked>&command=<masked>&command=<masked>&container=a")
    has_log(done, "101 Switching Protocols in ")
    has_log(done, "characters on stdout, success")
