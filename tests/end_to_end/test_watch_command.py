"""`top -w`: rows that follow the cluster, drawn on a terminal, appended elsewhere."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kubectl_qos.cluster.files import DEMO_FILE
from tests.cluster.changing_server import reference, workload
from tests.cluster.cluster_objects import metrics, node, pod
from tests.cluster.object_server import status
from tests.cluster.watch_server import WatchServer
from tests.end_to_end.command import TIMEOUT_SECONDS, Run
from tests.end_to_end.conftest import Live
from tests.end_to_end.terminal import Terminal

PODS = "/api/v1/pods"
Watch = Callable[..., Terminal]


@pytest.fixture
def objects() -> WatchServer:
    return WatchServer(
        pods=[pod("web", request="1Gi"), pod("db", request="4Gi", limit="4Gi")],
        nodes=[node()],
        metrics=[metrics("web", "2Gi"), metrics("db", "1Gi")],
    )


@pytest.fixture
def watching(objects: WatchServer, live: Live, tmp_path: Path) -> Iterator[Watch]:
    """Start `top -w`, or another command, on a terminal of a size or in a pipe."""
    live(objects, namespace="shop")
    started: list[Terminal] = []

    def start(*words: str, command: str = "top", size: tuple[int, int] | None = None) -> Terminal:
        started.append(Terminal(tmp_path, command, "-w", *words, size=size, pipe=size is None))
        return started[-1]

    yield start
    for one in started:
        one.kill()


def interrupted(watch: Terminal) -> int:
    watch.process.send_signal(signal.SIGINT)
    return watch.ended()[0]


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
    assert interrupted(watch) == 130
    assert "Traceback" not in watch.errors()


def test_a_row_that_stays_the_same_is_not_repeated(watching: Watch, objects: WatchServer) -> None:
    watch = watching("-o", "name")
    watch.until(lambda text: text == "pod/web\npod/db\n")
    objects.put(pod("zzz", request="16Gi", limit="16Gi"))
    watch.until(lambda text: text.endswith("pod/zzz\n"))
    assert watch.said.count("pod/web") == 1


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
    watch = watching(size=(24, 100))
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
    assert interrupted(watch) == 130


def test_a_terminal_shows_as_many_rows_as_it_has_room_for(watching: Watch, objects: WatchServer) -> None:
    for number in range(50):
        objects.put(pod(f"many-{number:02}"))
    watch = watching(size=(20, 120))
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


@pytest.mark.parametrize(
    ("words", "nothing"),
    [
        ((), "no pods that are on a node"),
        (("sts/db",), "statefulset/db has no pods on a node: no next death"),
    ],
)
def test_deaths_are_followed_through_a_time_without_pods(
    watching: Watch, objects: WatchServer, words: tuple[str, ...], nothing: str
) -> None:
    """As when a cluster begins again with a new etcd, or a workload is scaled to zero."""

    def screen_has(*words: str) -> Callable[[str], bool]:
        return lambda text: all(word in text.rpartition("\x1b[J")[2] for word in words)

    db = pod("db", request="4Gi", limit="4Gi")
    db["metadata"]["ownerReferences"] = [reference("StatefulSet/db")]
    objects.put(db)
    objects.others["/apis/apps/v1/namespaces/shop/statefulsets/db"] = workload("StatefulSet", "db", {})
    watch = watching(*words, command="next", size=(24, 100))
    watch.until(screen_has("worker-1", "db:"))
    for found in pod("web"), db:
        objects.delete(found)
    watch.until(screen_has("live", nothing))
    objects.put(db)
    watch.until(screen_has("worker-1", "db:"))
    assert interrupted(watch) == 130


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("next", "no pods that are on a node"),
        ("fix", "nothing to fix: no limit and no killer is near"),
        ("fix --priorities", "no pods that are on a node"),
    ],
)
def test_a_cluster_without_pods_is_no_error(
    run: Run, live: Live, objects: WatchServer, line: str, said: str
) -> None:
    objects.pods.clear()
    live(objects, namespace="shop")
    done = run(*line.split())
    assert (done.code, (done.out + done.err).splitlines()) == (0, [said])


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


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("nope", 1, 'pods "nope" not found'),
        ("--server https://127.0.0.1:9", 1, "The connection to the server 127.0.0.1:9 was refused"),
        (f"-f {DEMO_FILE}", 2, f"error: -w needs a cluster: {DEMO_FILE} does not change"),
    ],
)
def test_what_cannot_be_followed(
    run: Run, live: Live, objects: WatchServer, line: str, code: int, said: str
) -> None:
    live(objects, namespace="shop")
    done = run("top", "-w", *line.split())
    assert (done.code, said in done.err) == (code, True), done.err
