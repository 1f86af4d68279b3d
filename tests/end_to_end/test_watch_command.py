"""`top -w`: rows that follow the cluster, drawn on a terminal, appended elsewhere."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from fcntl import ioctl
from pathlib import Path

import pytest

from tests.cluster.cluster_objects import metrics, node, pod
from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.object_server import status
from tests.cluster.serving import Serve
from tests.cluster.watch_server import WatchServer
from tests.end_to_end.command import TIMEOUT_SECONDS, environment

PODS = "/api/v1/pods"
START = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"


class Watching:
    """A `top -w` in a process of its own, and what it has written so far."""

    def __init__(
        self, folder: Path, arguments: list[str], *, terminal: tuple[int, int] | None = None
    ) -> None:
        words = ["top", "-w", *arguments]
        code = f"{START}from kubectl_qos.__main__ import main\nraise SystemExit(main({words!r}))"
        self.text = ""
        self._said = folder / "stderr"
        self._reader, inner = os.pipe() if terminal is None else pty.openpty()
        if terminal is not None:
            ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", *terminal, 0, 0))
        with self._said.open("wb") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-c", code], stdout=inner, stderr=said, env=environment(folder)
            )
        os.close(inner)
        self._stop_reading = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while not self._stop_reading.is_set():
            if not select.select([self._reader], [], [], 0.02)[0]:
                continue
            try:
                part = os.read(self._reader, 65536)
            except OSError:  # a terminal whose other end is closed
                return
            if not part:
                return
            self.text += part.decode()

    def close(self) -> None:
        if not self._stop_reading.is_set():
            self._stop_reading.set()
            self._thread.join()
            os.close(self._reader)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.close()

    def until(self, condition: Callable[[str], bool]) -> str:
        """Wait for what is written to be so."""
        end = time.monotonic() + TIMEOUT_SECONDS
        while time.monotonic() < end and self.process.poll() is None:
            if condition(self.text):
                return self.text
            time.sleep(0.02)
        raise AssertionError(f"never so: {self.text!r}, code {self.process.poll()}, {self.said()!r}")

    def said(self) -> str:
        return self._said.read_text()

    def interrupt(self) -> int:
        """Ctrl-c; the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(TIMEOUT_SECONDS)


Watch = Callable[..., Watching]


@pytest.fixture
def objects() -> WatchServer:
    return WatchServer(
        pods=[pod("web", request="1Gi"), pod("db", request="4Gi", limit="4Gi")],
        nodes=[node()],
        metrics=[metrics("web", "2Gi"), metrics("db", "1Gi")],
    )


@pytest.fixture
def watching(objects: WatchServer, serve: Serve, tmp_path: Path) -> Iterator[Watch]:
    path = write(tmp_path / "kubeconfig", kubeconfig(serve(objects), namespace="shop"))
    started: list[Watching] = []

    def start(*arguments: str, terminal: tuple[int, int] | None = None) -> Watching:
        given = [*arguments, "--kubeconfig", str(path)]
        started.append(Watching(tmp_path, given, terminal=terminal))
        return started[-1]

    yield start
    for one in started:
        one.end()


def lines(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_changed_rows_follow_the_first_table(watching: Watch, objects: WatchServer) -> None:
    watch = watching()
    first = lines(watch.until(lambda text: text.count("\n") == 3))
    assert [line[:3] for line in first] == [
        ["RANK", "NAMESPACE", "POD"],
        ["1", "shop", "web"],
        ["2", "shop", "db"],
    ]
    objects.put(pod("new"))
    text = watch.until(lambda text: "new" in text)
    assert text.count("RANK") == 1
    objects.delete(pod("db", request="4Gi", limit="4Gi"))
    objects.put(pod("last", request="8Gi"))
    watch.until(lambda text: "last" in text)
    assert watch.interrupt() == 130
    assert "Traceback" not in watch.said()


def test_a_row_that_stays_the_same_is_not_repeated(watching: Watch, objects: WatchServer) -> None:
    watch = watching("-o", "name")
    watch.until(lambda text: text == "pod/web\npod/db\n")
    objects.put(pod("zzz", request="16Gi", limit="16Gi"))
    watch.until(lambda text: text.endswith("pod/zzz\n"))
    assert watch.text.count("pod/web") == 1


def test_each_changed_row_is_a_json_object(watching: Watch, objects: WatchServer) -> None:
    watch = watching("-o", "json")
    watch.until(lambda text: text.count("\n}\n") == 2)
    objects.put(pod("new"))
    text = watch.until(lambda text: '"pod": "new"' in text and text.endswith("\n}\n"))
    decoder, found = json.JSONDecoder(), []
    while text.strip():
        value, end = decoder.raw_decode(text.lstrip())
        text = text.lstrip()[end:]
        found.append(value["pod"])
    assert found[:2] == ["web", "db"]
    assert "new" in found[2:]


def test_csv_has_one_header(watching: Watch, objects: WatchServer) -> None:
    watch = watching("-o", "csv")
    watch.until(lambda text: text.count("\n") == 3)
    objects.put(pod("new"))
    text = watch.until(lambda text: ",new," in text)
    assert text.count("rank,namespace") == 1


def test_a_terminal_is_redrawn_and_says_how_fresh_it_is(watching: Watch, objects: WatchServer) -> None:
    watch = watching(terminal=(24, 100))
    watch.until(lambda text: "\x1b[H\x1b[J" in text and "db" in text and "live" in text)
    objects.put(pod("new"))
    screen = watch.until(lambda text: "new" in text.rpartition("\x1b[J")[2]).rpartition("\x1b[J")[2]
    assert max(map(len, screen.splitlines())) <= 100
    assert "MEMORY and RANK are by the working set from the metrics API" in screen
    objects.faults[f"watch {PODS}"] = status(503, "ServiceUnavailable", "etcd is away")
    objects.end_watches()
    screen = watch.until(lambda text: "stale since" in text.rpartition("\x1b[J")[2]).rpartition("\x1b[J")[2]
    assert "next try at" in screen
    assert "web" in screen
    objects.faults.clear()
    watch.until(lambda text: "live" in text.rpartition("\x1b[J")[2].splitlines()[0])
    assert watch.interrupt() == 130


def test_a_terminal_shows_as_many_rows_as_it_has_room_for(watching: Watch, objects: WatchServer) -> None:
    for number in range(50):
        objects.put(pod(f"many-{number:02}"))
    watch = watching(terminal=(20, 120))
    text = watch.until(lambda text: "more" in text)
    screen = text.rpartition("\x1b[J")[2].splitlines()
    assert len(screen) <= 20
    shown = sum("many-" in line or "web" in line or " db " in line for line in screen)
    assert f"… {52 - shown} more" in screen


def test_nodes_can_be_followed(watching: Watch, objects: WatchServer) -> None:
    watch = watching("nodes")
    watch.until(lambda text: "worker-1" in text)
    objects.put(node("worker-2"))
    watch.until(lambda text: "worker-2" in text)


def test_a_reader_that_went_away_ends_it(watching: Watch, objects: WatchServer) -> None:
    watch = watching()
    watch.until(lambda text: "db" in text)
    watch.close()
    for number in range(200):
        if watch.process.poll() is not None:
            break
        objects.put(pod(f"p{number}"))
        with suppress(subprocess.TimeoutExpired):
            watch.process.wait(0.05)
    assert watch.process.wait(TIMEOUT_SECONDS) == 0


def test_a_pod_that_is_not_there_is_an_error(watching: Watch) -> None:
    watch = watching("nope")
    assert watch.process.wait(TIMEOUT_SECONDS) == 1
    assert 'pods "nope" not found' in watch.said()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--server", "https://127.0.0.1:9"], 1, "The connection to the server 127.0.0.1:9 was refused"),
        (["--demo"], 2, "error: -w needs a cluster: demo does not change"),
    ],
)
def test_what_cannot_be_followed(tmp_path: Path, arguments: list[str], code: int, said: str) -> None:
    watch = Watching(tmp_path, arguments)
    try:
        assert watch.process.wait(TIMEOUT_SECONDS) == code
        assert said in watch.said()
    finally:
        watch.end()
