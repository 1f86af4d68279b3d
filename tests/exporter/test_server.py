"""The HTTP server: probes, passwords, TLS, and what it refuses; the command around it."""

import base64
import gzip
import http.client
import os
import signal
import socket
import ssl
import subprocess
import threading
import time
from contextlib import closing
from pathlib import Path

import bcrypt
import pytest
import yaml

from kubectl_qos.cluster.files import DEMO_TIME
from kubectl_qos.cluster.source import LIVE, Health, Update, UpdateStream
from kubectl_qos.errors import ApiError, QosError
from kubectl_qos.exporter import collector
from kubectl_qos.exporter import server as server_module
from kubectl_qos.exporter.collector import Exporter
from kubectl_qos.exporter.server import GRACE_SECONDS, MAX_SCRAPES, Server, WebConfigFile
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from tests.cluster.certificates import Authority
from tests.demo.living import Stepped
from tests.end_to_end.command import TIMEOUT_SECONDS, Run, command, environment, signals_arrive
from tests.exporter.scraping import OPENMETRICS, exporter_of, parsed, served, show

PASSWORD = "a long: passwörd"
HASH = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()


def get(
    server: Server, path: str, *, tls: ssl.SSLContext | None = None, method: str = "GET", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of a response."""
    port = int(server.server_address[1])
    if tls is not None:
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            "localhost", port, context=tls, timeout=10
        )
    else:
        connection = http.client.HTTPConnection("localhost", port, timeout=60)
    with closing(connection):
        connection.request(
            method, path, headers={name.replace("_", "-"): text for name, text in headers.items()}
        )
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()


def basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def config_file(folder: Path, **settings: object) -> str:
    path = folder / "web.yml"
    path.write_text(yaml.safe_dump(settings))
    return str(path)


def test_it_is_ready_once_it_has_synced() -> None:
    demo = Stepped()
    exporter = Exporter(demo, Scope(), 5)
    with served(exporter) as server:
        assert get(server, "/healthz")[::2] == (200, b"ok\n")
        assert get(server, "/readyz")[::2] == (503, b"not synced yet\n")
        before = get(server, "/metrics")
        exporter._stream = stream = Silent()
        stream.current = Health(ApiError("pods is forbidden", status=403, reason="Forbidden"), demo.now())
        exporter.accept(Update(None, Scope(), stream.current, demo.now()))
        assert get(server, "/readyz")[::2] == (503, b"not synced: pods is forbidden\n")
        stream.current = LIVE
        show(exporter, demo.snapshot(Scope()))
        assert get(server, "/readyz")[::2] == (200, b"ok\n")
        after = get(server, "/metrics")
        exporter.failure = QosError("the stream has ended")
        assert get(server, "/healthz")[::2] == (503, b"the stream has ended\n")
    assert b"kubectl_qos_exporter_synced 0.0" in before[2]
    assert b"kubectl_qos_node_pods" not in before[2]
    assert b"kubectl_qos_node_pods{" in after[2]


class Silent(UpdateStream):
    """A stream of one update and then of none, whose server is as healthy as a test says."""

    def __init__(self, *updates: Update) -> None:
        self.updates = list(updates)
        self.current = LIVE
        self.seconds = 0.0
        self.ended = threading.Event()

    def next(self) -> Update | None:
        if self.updates:
            return self.updates.pop(0)
        self.ended.wait()
        return None

    def health(self) -> Health:
        return self.current

    def silent_seconds(self) -> float:
        return self.seconds

    def refresh(self) -> None:
        """Nothing is read."""

    def close(self) -> None:
        self.ended.set()


def stale_seconds(exporter: Exporter) -> float:
    """What a scrape has."""
    return parsed(exporter.exposition("")[0])["kubectl_qos_exporter_stale_seconds", frozenset()]


def test_it_is_not_ready_while_the_server_is_silent_for_too_long() -> None:
    exporter = Exporter(Stepped(), Scope(), 5, 60)
    show(exporter, exporter._source.snapshot(Scope()))
    exporter._stream = stream = Silent()
    for seconds, health, reason in (
        (0, LIVE, ""),
        (61, LIVE, ""),
        (60, Health(QosError("timed out"), DEMO_TIME), ""),
        (61, Health(QosError("timed out"), DEMO_TIME), "stale for 61 s: timed out"),
        (0, LIVE, ""),
    ):
        stream.seconds, stream.current = seconds, health
        assert (stale_seconds(exporter), exporter.not_ready()) == (seconds, reason)


def test_it_is_stale_and_live_again_while_samples_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of 20,000 pods take seconds, and after them it rests; probes and the gauge do not wait."""
    demo = Stepped()
    stream = Silent(*[Update(demo.snapshot(Scope()), Scope(), LIVE, demo.now())] * 2)
    monkeypatch.setattr(demo, "follow", lambda _: stream)
    monkeypatch.setattr(collector, "MIN_REST_SECONDS", 0.0)
    exporter = Exporter(demo, Scope(), 5, 10)
    begun, goes_on = threading.Semaphore(0), threading.Event()
    update = exporter.samples.update

    def slow(snapshot: Snapshot, scope: Scope) -> int:
        begun.release()
        assert not exporter.is_synced or goes_on.wait(120)
        return update(snapshot, scope)

    monkeypatch.setattr(exporter.samples, "update", slow)
    exporter.start()
    assert begun.acquire(timeout=120)
    assert begun.acquire(timeout=120), "the second update is computed"
    stream.current, stream.seconds = Health(QosError("timed out"), demo.now()), 12.0
    assert (stale_seconds(exporter), exporter.not_ready()) == (12, "stale for 12 s: timed out")
    stream.current, stream.seconds = LIVE, 1.0
    assert (stale_seconds(exporter), exporter.not_ready()) == (1, "")
    goes_on.set()
    exporter.close()


def test_formats_compression_and_other_paths() -> None:
    exporter = exporter_of(Stepped())
    with served(exporter) as server:
        _, plain, text = get(server, "/metrics")
        _, zipped, small = get(server, "/metrics", Accept=OPENMETRICS, Accept_Encoding="gzip")
        page, head, missing = get(server, "/"), get(server, "/metrics", method="HEAD"), get(server, "/x")
        posted = get(server, "/metrics", method="POST")
    assert plain["Content-Type"].startswith("text/plain")
    assert zipped["Content-Encoding"] == "gzip"
    assert zipped["Content-Type"].startswith("application/openmetrics-text")
    assert gzip.decompress(small).endswith(b"# EOF\n")
    assert len(small) < len(text) / 4
    assert b'href="/metrics"' in page[2]
    assert (head[0], head[2]) == (200, b"")
    assert missing[0] == 404
    assert posted[0] == 501


def test_a_scrape_counts_until_it_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    exporter = exporter_of(Stepped())
    monkeypatch.setattr(exporter, "exposition", lambda _: ([bytes(64 << 20)], "text/plain"))
    with (
        served(exporter) as server,
        socket.create_connection(("127.0.0.1", int(server.server_address[1])), 60) as client,
    ):
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        assert client.recv(12) == b"HTTP/1.1 200"
        free = [server.scrapes.acquire(blocking=False) for _ in range(MAX_SCRAPES)]
        for _ in range(sum(free)):
            server.scrapes.release()
        client.close()
    assert free == [True] * (MAX_SCRAPES - 1) + [False]


class Held(threading.BoundedSemaphore):
    """Scrapes that never end, and the clock of whoever waits for them."""

    now = 0.0

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:  # noqa: FBT002
        self.now += timeout or 0
        return False

    def monotonic(self) -> float:
        return self.now


def test_it_ends_in_time_with_every_scrape_in_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(MAX_SCRAPES)
    with served(exporter_of(Stepped())) as server:
        server.scrapes = held
        monkeypatch.setattr(server_module, "time", held)
    assert held.now == GRACE_SECONDS


def test_without_a_host_it_listens_on_ipv4_where_ipv6_does_not_take_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    with closing(Server("", 0, exporter_of(Stepped()), WebConfigFile(None)).socket) as listening:
        assert listening.getsockname()[0] == "0.0.0.0"


def test_a_password_is_needed_but_for_probes(tmp_path: Path) -> None:
    path = config_file(tmp_path, basic_auth_users={"prometheus": HASH})
    with served(exporter_of(Stepped()), path) as server:
        tried = {
            "none": get(server, "/metrics"),
            "wrong": get(server, "/metrics", Authorization=basic("prometheus", "x")),
            "other": get(server, "/metrics", Authorization=basic("grafana", PASSWORD)),
            "odd": get(server, "/", Authorization="Basic %%%"),
            "bearer": get(
                server, "/", Authorization=basic("prometheus", PASSWORD).replace("Basic", "Bearer")
            ),
            "right": get(server, "/metrics", Authorization=basic("prometheus", PASSWORD)),
            "again": get(server, "/metrics", Authorization=basic("prometheus", PASSWORD)),
            "probe": get(server, "/readyz"),
        }
    assert {name: found[0] for name, found in tried.items()} == {
        **dict.fromkeys(("none", "wrong", "other", "odd", "bearer"), 401),
        **dict.fromkeys(("right", "again", "probe"), 200),
    }
    assert tried["none"][1]["WWW-Authenticate"] == 'Basic realm="kubectl-qos"'
    assert b"node_pods" not in tried["wrong"][2]


def test_tls_headers_and_a_renewed_certificate(tmp_path: Path) -> None:
    old, new = Authority(), Authority()
    old.server("localhost").write(tmp_path, "server")
    names = {path.suffix: path.name for path in tmp_path.iterdir()}
    files = {"cert_file": names[".crt"], "key_file": names[".key"]}
    path = config_file(
        tmp_path,
        tls_server_config={**files, "min_version": "TLS13"},
        http_server_config={"headers": {"Strict-Transport-Security": "max-age=60"}},
    )

    def trusts(authority: Authority) -> ssl.SSLContext:
        return authority.trusted()

    with served(exporter_of(Stepped()), path) as server:
        assert server.url.startswith("https://127.0.0.1:")
        status, headers, _ = get(server, "/metrics", tls=trusts(old))
        with pytest.raises((ConnectionError, http.client.HTTPException, OSError)):
            get(server, "/metrics")
        new.server("localhost").write(tmp_path, "server")
        for name in names.values():
            os.utime(tmp_path / name, (2**31, 2**31))
        assert get(server, "/metrics", tls=trusts(new))[0] == 200
        with pytest.raises(ssl.SSLError):
            get(server, "/metrics", tls=trusts(old))
    assert (status, headers["Strict-Transport-Security"]) == (200, "max-age=60")


def test_clients_may_need_a_certificate(tmp_path: Path) -> None:
    authority = Authority()
    authority.server("localhost").write(tmp_path, "server")
    names = {path.suffix: path.name for path in tmp_path.iterdir()}
    (tmp_path / "ca.pem").write_bytes(authority.certificate)
    tls = {"cert_file": names[".crt"], "key_file": names[".key"], "client_ca_file": "ca.pem"}
    path = config_file(tmp_path, tls_server_config={**tls, "client_auth_type": "RequireAndVerifyClientCert"})
    trusting = authority.trusted()
    with served(exporter_of(Stepped()), path) as server, pytest.raises((ssl.SSLError, OSError)):
        get(server, "/metrics", tls=trusting)


def test_a_file_that_is_broken_later_changes_nothing(tmp_path: Path) -> None:
    path = config_file(tmp_path, basic_auth_users={"prometheus": HASH})
    file = WebConfigFile(path)
    before = file.current()
    Path(path).write_text("basic_auth_users: {a: plain}")
    os.utime(path, (2**31, 2**31))
    assert file.current() is before
    config_file(tmp_path)
    os.utime(path, (2**31 - 1, 2**31 - 1))
    assert not file.current().users


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[]", "the file and its sections must be mappings"),
        ("tls_server_config: 1", "the file and its sections must be mappings"),
        ("tls: {}", "tls is not supported"),
        ("tls_server_config: {cipher_suites: [x]}", "tls_server_config.cipher_suites is not supported"),
        ("tls_server_config: {cert_file: x}", "tls_server_config needs key_file"),
        ("tls_server_config: {cert_file: x, key_file: y}", "the certificates cannot be used"),
        (
            "tls_server_config: {cert_file: x, key_file: y, min_version: SSL3}",
            "min_version SSL3 is not supported",
        ),
        ("basic_auth_users: {me: secret}", "the password of me is not a bcrypt hash"),
        ("a: [", "while parsing"),
    ],
)
def test_a_wrong_file_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "web.yml"
    path.write_text(text)
    with pytest.raises(QosError) as raised:
        WebConfigFile(str(path))
    assert str(raised.value).startswith(f"{path}: ")
    assert sentence in str(raised.value)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--listen", "9857"], "'9857' is not an address: write HOST:PORT, or :PORT for all addresses"),
        (["--listen", ":70000"], "':70000' is not an address"),
        (["--listen", "no.such.host.invalid:0"], "cannot listen on no.such.host.invalid:0: "),
        (["--per-pod", "-1"], "'-1' is not a number of pods: write 5, or all"),
        (["--shard", "3/3"], "'3/3' is not a shard: write 0/3, 1/3 or 2/3 for three shards"),
        (["--shard", "one"], "'one' is not a shard"),
        (["--web.config.file", "/no/such/file"], "/no/such/file: No such file or directory"),
        (["-f", "-"], "exporter does not support -f -"),
    ],
)
def test_wrong_flags_are_one_sentence(tmp_path: Path, words: list[str], sentence: str) -> None:
    done = Run(tmp_path)("exporter", *(["--demo"] if words[0] != "-f" else []), *words)
    assert done.code in {1, 2}
    assert sentence in done.err


def test_an_address_in_use_is_one_sentence(tmp_path: Path) -> None:
    with served(exporter_of(Stepped())) as server:
        port = server.server_address[1]
        done = Run(tmp_path)("exporter", "--demo", "--listen", f"127.0.0.1:{port}")
    assert (done.code, done.err) == (1, f"error: cannot listen on 127.0.0.1:{port}: Address already in use\n")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_it_serves_until_a_signal_comes(tmp_path: Path, number: int, code: int) -> None:
    words = command("exporter", "--demo", "--listen", "127.0.0.1:0")
    with (
        signals_arrive(),
        subprocess.Popen(
            words,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=_environment(tmp_path),
        ) as process,
    ):
        assert process.stdout is not None
        line = process.stdout.readline()
        port = int(line.rstrip().removesuffix("/metrics").rpartition(":")[2])
        end, status = time.monotonic() + TIMEOUT_SECONDS, 0
        while status != 200:
            assert time.monotonic() < end
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
                connection.request("GET", "/readyz")
                status = connection.getresponse().status
        process.send_signal(number)
        out, err = process.communicate(timeout=TIMEOUT_SECONDS)
    assert (process.returncode, out, err) == (code, "", "")
    assert line == f"Starting to serve on http://127.0.0.1:{port}/metrics\n"


def _environment(home: Path) -> dict[str, str]:
    path = os.environ.get("PYTHONPATH")
    return environment(home, {"PYTHONPATH": path} if path else None)
