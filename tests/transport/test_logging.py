"""What -v logs of connections: each level, whole lines, nothing that a terminal would act on."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest
import yaml

from kubectl_qos.cli.output import klog
from kubectl_qos.cluster.kube_api import KubeApi
from kubectl_qos.errors import ApiError, ServerUnreachable
from kubectl_qos.transport import logging as log
from tests.cluster.cluster_objects import pod
from tests.cluster.commanding import connected_by
from tests.cluster.https_server import Answer, HttpsServer, Request
from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.object_server import ObjectServer, status
from tests.cluster.plugins import gives, plugin
from tests.cluster.serving import ConnectTo, Serve

TABLES: Final = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))

HEAD = re.compile(r"I[01]\d[0-3]\d \d\d:\d\d:\d\d\.\d{6} +\d+ \w+\.py:\d+\] ")


class Log:
    """What is logged from `start` on."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.running = ExitStack()

    def start(self, level: int) -> None:
        self.running.close()
        self.running.enter_context(klog(level, self.lines.append))

    def texts(self) -> list[str]:
        """The lines without klog's heads, with the port of the server and durations made the same."""
        assert all(map(HEAD.match, self.lines)), self.lines
        found = (HEAD.sub("", line) for line in self.lines)
        return [re.sub(r"in \d+ m", "in N m", re.sub(r"127\.0\.0\.1:\d+", "SERVER", line)) for line in found]


@pytest.fixture
def logged() -> Iterator[Log]:
    found = Log()
    with found.running:
        yield found


@pytest.mark.parametrize(("url", "shown"), TABLES["urls"])
def test_a_url_is_shown_without_secrets(url: str, shown: str) -> None:
    assert log.masked_url(url) == shown


@pytest.mark.parametrize(("name", "value", "shown"), TABLES["headers"])
def test_a_header_has_to_be_known_to_be_shown(name: str, value: str, shown: str) -> None:
    assert log.masked_header(name, value) == shown


def test_each_level_logs_more(serve: Serve, tmp_path: Path, logged: Log) -> None:
    objects = ObjectServer(pods=[pod("web-0")])
    objects.faults["/version"] = Answer(
        body=b"{}", headers={"Audit-Id": "7", "Set-Cookie": "a=b", "X-New": "c"}
    )
    path = write(tmp_path / "config", kubeconfig(serve(objects), namespace="shop"))
    found: list[list[str]] = []
    for level in range(11):
        logged.start(level)
        KubeApi(connected_by(path, "--as", "jane")).server_version()
        found.append(logged.texts())
        logged.lines.clear()
    decided = [
        f"kubeconfig {path}: loaded",
        'context "test" (the kubeconfig)',
        'cluster "test-cluster" (the context)',
        'user "test-user" (the context)',
        'namespace "shop" (the context)',
        "credentials: a token",
    ]
    requested = "GET https://SERVER/version"
    ended = [f"{requested} 200 OK in N milliseconds", f"{requested} received 2 bytes in N milliseconds"]
    assert found[:4] == [[]] * 4
    assert found[4] == found[5] == decided
    assert found[6] == [*decided, *ended]
    assert set(found[7]) - set(found[6]) == {
        f"{requested} with",
        "    Accept: application/json",
        "    Accept-Encoding: gzip",
        "    Authorization: Bearer <masked>",
        "    Impersonate-User: jane",
        *(line for line in found[7] if line.startswith("    User-Agent: kubectl-qos/")),
    }
    more = set(found[8]) - set(found[7])
    assert {"    Audit-Id: 7", "    Set-Cookie: <masked>", "    X-New: <masked>"} <= more
    assert "    Content-Length: 2" in more
    assert set(found[9]) - set(found[8]) >= {"connecting to https://SERVER without a proxy"}
    assert [line for line in found[9] if line.startswith("    TLSv1.")]
    assert set(found[10]) ^ set(found[9]) <= {line for line in found[9] + found[10] if "Date: " in line}


def test_where_the_names_come_from(serve: Serve, tmp_path: Path, logged: Log) -> None:
    path = write(tmp_path / "config", kubeconfig(serve(ObjectServer())))
    logged.start(4)
    names = ["--context", "test", "--cluster", "test-cluster", "--user", "test-user", "-n", "mine"]
    connected_by(path, *names)
    assert [line.partition("(")[2] for line in logged.texts()[1:5]] == [
        "--context)",
        "--cluster)",
        "--user)",
        "--namespace)",
    ]


def test_files_that_are_not_there(
    serve: Serve, tmp_path: Path, logged: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "config", kubeconfig(serve(ObjectServer())))
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'none'}{os.pathsep}{path}")
    logged.start(4)
    connected_by(None)
    assert logged.texts()[:2] == [f"kubeconfig {tmp_path / 'none'}: not found", f"kubeconfig {path}: loaded"]


def test_at_level_0_nothing_is_in_the_way(connect_to: ConnectTo) -> None:
    response = connect_to(ObjectServer()).request("GET", "/version")
    assert type(response).__module__.startswith("urllib3")
    response.release_conn()


def test_a_request_that_fails(tmp_path: Path, logged: Log) -> None:
    connection = connected_by(write(tmp_path / "config", kubeconfig("https://127.0.0.1:1")))
    logged.start(6)
    with pytest.raises(ServerUnreachable):
        connection.request("GET", "/version")
    (line,) = logged.texts()
    assert line.startswith(
        "GET https://SERVER/version failed in N milliseconds: The connection to the server"
    )


def test_a_retry_is_logged(connect_to: ConnectTo, logged: Log) -> None:
    objects = ObjectServer()
    busy = Answer(429, b"", headers={"Retry-After": "0"})
    answers = iter([busy, None])
    objects.faults["/version"] = lambda _: next(answers)
    api = KubeApi(connect_to(objects))
    logged.start(6)
    api.server_version()
    lines = logged.texts()
    assert lines[0] == "GET https://SERVER/version 429 Too Many Requests in N milliseconds"
    assert lines[2].startswith("/version: retry in 0 s: Error from server (TooManyRequests)")
    assert lines[3] == "GET https://SERVER/version 200 OK in N milliseconds"


def test_credentials_that_are_renewed(serve: Serve, tmp_path: Path, logged: Log) -> None:
    user = plugin(tmp_path, gives(token="=['old', 'admin'][count > 1]"))
    path = write(tmp_path / "config", kubeconfig(serve(ObjectServer()), user=user))
    logged.start(6)
    KubeApi(connected_by(path)).server_version()
    lines = [line for line in logged.texts() if "plugin" in line or "GET" in line or "renewed" in line]
    assert lines == [
        "credentials: an exec plugin",
        "exec plugin plugin ended with exit code 0 in N milliseconds",
        "GET https://SERVER/version 401 Unauthorized in N milliseconds",
        "exec plugin plugin ended with exit code 0 in N milliseconds",
        "the credentials were refused and renewed: sending it again",
        "GET https://SERVER/version 200 OK in N milliseconds",
        *(line for line in lines if "received" in line),
    ]


def test_lists_are_logged(connect_to: ConnectTo, logged: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubectl_qos.cluster.http.PAGE_SIZE", 1)
    objects = ObjectServer(pods=[pod(f"web-{number}") for number in range(3)])
    objects.expire_after = 1
    api = KubeApi(connect_to(objects))
    logged.start(4)
    api.pods()
    assert logged.texts() == [
        "list /api/v1/pods from the watch cache",
        "list /api/v1/pods again in one piece: its resourceVersion expired meanwhile",
    ]


def test_a_refusal_logs_its_size_once(connect_to: ConnectTo, logged: Log) -> None:
    api = KubeApi(connect_to(lambda _: status(403, "Forbidden", "no")))
    logged.start(6)
    with pytest.raises(ApiError):
        api.nodes()
    lines = logged.texts()
    assert [line for line in lines if "403 Forbidden" in line]
    assert len([line for line in lines if " received " in line]) == 1


def raw(_: Request) -> Answer:
    return Answer(
        raw=b'HTTP/1.1 200 O\x1b[2JK\r\nWarning: 299 - "\x1b[31mred"\r\nContent-Length: 2\r\n\r\n{}'
    )


def test_a_token_that_is_no_header_is_not_repeated(serve: Serve, tmp_path: Path) -> None:
    server = serve(ObjectServer())
    connection = connected_by(write(tmp_path / "config", kubeconfig(server, user={"token": "a\nsecret"})))
    with pytest.raises(ServerUnreachable) as caught:
        connection.request("GET", "/version")
    assert str(caught.value) == (
        'Unable to connect to the server: net/http: invalid header field value for "Authorization"'
    )
    assert server.requests == []


def test_a_user_of_any_script_may_be_acted_as(serve: Serve, tmp_path: Path) -> None:
    server = serve(ObjectServer())
    connection = connected_by(write(tmp_path / "config", kubeconfig(server)), "--as", "猫")
    connection.request("GET", "/version").release_conn()
    assert server.requests[0].headers["impersonate-user"].encode("latin-1").decode() == "猫"


def test_lines_of_threads_are_whole_and_stay_together() -> None:
    pieces: list[str] = []

    def write(line: str) -> None:
        for piece in line.rpartition("] ")[2].split():
            pieces.append(piece)
            os.sched_yield()

    def work(number: int) -> None:
        for _ in range(50):
            log.log(6, f"a{number} b{number}", f"c{number} d{number}")

    with klog(6, write), ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    assert len(pieces) == 8 * 50 * 4
    for start in range(0, len(pieces), 4):
        number = pieces[start][1:]
        assert pieces[start : start + 4] == [f"{letter}{number}" for letter in "abcd"]


def test_a_line_names_its_caller(logged: Log, connect_to: ConnectTo) -> None:
    logged.start(7)
    log.log(6, "here", "and here")
    request = log.LoggedRequest("GET", "/", [("a", "b")])
    request.failed(OSError())
    response = request.answered(connect_to(ObjectServer()).request("GET", "/version"))
    response.drain_conn()
    response.release_conn()
    response.close()
    places = [re.findall(r" (\w+)\.py:\d+\] (?!    )(.*)", line) for line in logged.lines]
    ours = [text for found in places for name, text in found if name == "test_logging"]
    assert [re.sub(r"[\d.]+", "N", text) for text in ours] == [
        "here",
        "and here",
        "GET / with",
        "GET / failed in N milliseconds: ",
        "GET / N OK in N milliseconds",
        "GET / received N bytes in N milliseconds",
    ]


def test_nothing_is_imported_to_log_nothing() -> None:
    code = """
import sys
from kubectl_qos.transport import kubeconfig
kubeconfig.entry_names(kubeconfig.ConnectionOptions())
assert "logging" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_nothing_is_logged_while_another_thread_imports_logging(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "logging", ModuleType("logging"))
    assert not log.is_logged(0)


def test_a_server_cannot_act_on_the_terminal(
    serve: Serve, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from kubectl_qos.__main__ import main

    server: HttpsServer = serve(raw)
    path = write(tmp_path / "config", kubeconfig(server))
    main(["version", "--kubeconfig", str(path), "-v=8"])
    err = capsys.readouterr().err
    assert "200 O\\x1b[2JK in " in err
    assert '    Warning: 299 - "\\x1b[31mred"' in err
    assert "\x1b" not in err
