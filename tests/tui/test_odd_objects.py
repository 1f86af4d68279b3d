"""Odd names in the UI, and what it keeps when a server goes away."""

from __future__ import annotations

from pathlib import Path

from kubectl_qos.cluster.live import LiveSource
from kubectl_qos.errors import ApiError
from kubectl_qos.transport import ConnectionOptions
from kubectl_qos.transport.client import connect
from tests.cluster.cluster_objects import node, pod
from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.object_server import status
from tests.cluster.odd_objects import ODD_NAMES, has_controls, odd_cluster
from tests.cluster.serving import Serve, authority, serve
from tests.cluster.watch_server import WatchServer
from tests.tui.sources import ScriptedSource, demo, running

__all__ = ["authority", "serve"]


def source(serve: Serve, folder: Path, objects: WatchServer) -> LiveSource:
    path = write(folder / "config", kubeconfig(serve(objects)))
    return LiveSource(connect(ConnectionOptions(kubeconfig=str(path))))


async def test_odd_names_are_escaped_on_a_line_each(serve: Serve, tmp_path: Path) -> None:
    objects = WatchServer(**odd_cluster())
    async with running(source(serve, tmp_path, objects), size=(150, 40), ready=False) as pilot:
        await pilot.until(lambda: len(pilot.names) == len(ODD_NAMES))
        text = pilot.text
        assert not has_controls(text)
        for escaped in ODD_NAMES.values():
            assert text.count(escaped[:8]) >= 1, escaped
        for _ in ODD_NAMES:
            await pilot.keys("j")
            assert not has_controls(pilot.text)
        await pilot.keys("enter")
        assert not has_controls(pilot.text)


async def test_an_odd_message_is_escaped() -> None:
    error = ApiError("Error from server: no\n\x1b[2Jscreen\u202e", status=500)
    async with running(ScriptedSource(demo(), error), size=(160, 40)) as pilot:
        held = pilot.names
        await pilot.refresh()
        assert pilot.names == held
        assert not has_controls(pilot.text)
        assert r"no \x1b[2Jscreen\x202e" in pilot.words


async def test_what_was_shown_stays_while_the_server_is_away(serve: Serve, tmp_path: Path) -> None:
    objects = WatchServer(pods=[pod("web", request="1Gi"), pod("db")], nodes=[node()], metrics=[])
    async with running(source(serve, tmp_path, objects), size=(160, 40), ready=False) as pilot:
        await pilot.until(lambda: sorted(pilot.names) == ["db", "web"])
        objects.faults["watch /api/v1/pods"] = status(503, "ServiceUnavailable", "etcd is away")
        objects.end_watches()
        await pilot.until(lambda: "etcd is away" in pilot.words)
        assert sorted(pilot.names) == ["db", "web"]
        objects.faults.clear()
        objects.put(pod("new"))
        await pilot.keys("r")
        await pilot.until(lambda: sorted(pilot.names) == ["db", "new", "web"])
        await pilot.until(lambda: "etcd is away" not in pilot.words)
