"""Response times and memory while following a cluster that changes a thousand times a second.

    python benchmarks/watch.py [--pods 20000] [--nodes 200] [--seconds 15] [--events 1000000]

The server is a separate process that sends a change of a whole pod, some 7 KB, a thousand times a second.
The UI runs headless on one core; every 50 ms a key moves the cursor, and the time until it has moved and the
screen is painted is measured. Then --events events are read as fast as they come, without a screen, and the
resident memory after a tenth of them is compared with that at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.server import KUBECONFIG_FILE
from kubectl_qos.cluster.live import LiveSource
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.transport import ConnectionOptions
from kubectl_qos.transport.client import connect

HERE = Path(__file__).parent
RATE = 1_000
KEY_SECONDS = 0.05
MOST_KEY_MILLISECONDS = 50.0
MOST_GROWTH = 1.05


def main() -> int:
    """Measure, print, and exit 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=15)
    parser.add_argument("--events", type=int, default=1_000_000)
    options = parser.parse_args()
    print(f"Python {platform.python_version()}, {options.pods:,} pods on {options.nodes:,} nodes")
    size = ["--pods", str(options.pods), "--nodes", str(options.nodes)]
    with served([*size, "--events", "10000000", "--rate", str(RATE)]) as source:
        quick = asyncio.run(_keys(source, options.seconds))
    with served([*size, "--events", str(options.events)]) as source:
        flat = _flat(source, options.events)
    return int(not (quick and flat))


@contextmanager
def served(options: list[str]) -> Iterator[LiveSource]:
    """A live source of a server that runs meanwhile; on one core, the server on another."""
    with tempfile.TemporaryDirectory() as name:
        command = [sys.executable, str(HERE / "server.py"), name, *options]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            server.stdout.readline()
            if hasattr(os, "sched_setaffinity"):
                os.sched_setaffinity(0, {0})
                os.sched_setaffinity(server.pid, {max(os.sched_getaffinity(server.pid))})
            path = str(Path(name) / KUBECONFIG_FILE)
            yield LiveSource(connect(ConnectionOptions(kubeconfig=path)))
            server.kill()


async def _keys(source: LiveSource, seconds: int) -> bool:
    from textual.events import Key

    from kubectl_qos.tui.app import QosApp
    from kubectl_qos.tui.screens.main import MainScreen

    def cursor_of(app: QosApp) -> int:
        main = app.screen_stack[0]
        assert isinstance(main, MainScreen)
        return main.table.cursor

    app = QosApp(source, Scope())
    wanted, painted = 0, asyncio.Event()
    paint = app._display  # noqa: SLF001 - there is no other place to learn when something is painted

    def display(screen: Any, renderable: Any) -> None:
        paint(screen, renderable)
        if app.view_model is not None and cursor_of(app) == wanted:
            painted.set()

    app._display = display  # type: ignore[method-assign]  # noqa: SLF001
    taken: list[float] = []
    async with app.run_test(size=(120, 40)) as pilot:
        while app.view_model is None:
            await pilot.pause(0.1)
        first = app.view_model
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            key = "j" if len(taken) % 40 < 20 else "k"
            wanted = cursor_of(app) + (1 if key == "j" else -1)
            painted.clear()
            began = time.monotonic()
            app.post_message(Key(key, key))
            await asyncio.wait_for(painted.wait(), 10)
            taken.append(time.monotonic() - began)
            await asyncio.sleep(KEY_SECONDS)
        changed = sum(row.restarts > 100 for row in app.view_model.rows.rows)
        shown = app.view_model is not first
    taken.sort()
    half, most = (1000 * taken[int(len(taken) * share)] for share in (0.5, 0.95))
    print(
        f"{RATE:,} events a second: {len(taken)} keys, painted after {half:.0f} ms (half of them) and"
        f" {most:.0f} ms (95 of 100), the longest {1000 * taken[-1]:.0f} ms"
        f" (target {MOST_KEY_MILLISECONDS:.0f} ms); {changed:,} pods changed"
    )
    return most <= MOST_KEY_MILLISECONDS and shown and changed > 0


def _flat(source: LiveSource, events: int) -> bool:
    stream = source.follow(Scope())
    sizes: dict[int, int] = {}
    began = time.monotonic()
    taken = 0
    while taken < events - 10:
        update = stream.next()
        assert update is not None
        if update.snapshot is None:
            raise SystemExit(f"the watch failed: {update.health.error}")
        taken = max((_restarts(pod) for pod in update.snapshot.pods), default=0)
        sizes[taken] = _resident_bytes()
        time.sleep(0.5)
    seconds = time.monotonic() - began
    stream.close()
    early = max(size for number, size in sizes.items() if number <= events / 10)
    late = max(size for number, size in sizes.items() if number > events / 2)
    print(
        f"{events:,} events in {seconds:.0f} s ({events / seconds:,.0f} a second):"
        f" {early / 1e6:.0f} MB after a tenth of them, at most {late / 1e6:.0f} MB in the second half"
        f" ({late / early:.2f}, target at most {MOST_GROWTH})"
    )
    return late / early <= MOST_GROWTH


def _restarts(pod: object) -> int:
    statuses = pod.status.container_statuses or ()  # type: ignore[attr-defined]
    return max((status.restart_count for status in statuses), default=0)


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    sys.exit(main())
