"""Odd names in the UI, and what it keeps when a server goes away."""

from __future__ import annotations

from pathlib import Path

from kubectl_qos.cluster.live import LiveSource
from kubectl_qos.errors import ApiError
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.transport import ConnectionOptions
from kubectl_qos.transport.client import connect
from kubectl_qos.tui.app import QosApp
from tests.cluster.cluster_objects import node, pod
from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.object_server import status
from tests.cluster.odd_objects import ODD_NAMES, has_controls, odd_cluster
from tests.cluster.serving import Serve, authority, serve
from tests.cluster.watch_server import WatchServer
from tests.tui.sources import ScriptedSource, demo, names, press, screen_text, settled, until, words

__all__ = ["authority", "serve"]


def source(serve: Serve, folder: Path, objects: WatchServer) -> LiveSource:
    path = write(folder / "config", kubeconfig(serve(objects)))
    return LiveSource(connect(ConnectionOptions(kubeconfig=str(path))))


async def test_odd_names_are_spelled_out_on_a_line_each(serve: Serve, tmp_path: Path) -> None:
    objects = WatchServer(**odd_cluster())
    async with QosApp(source(serve, tmp_path, objects), Scope()).run_test(size=(160, 40)) as pilot:
        await until(pilot, lambda: len(names(pilot)) == len(ODD_NAMES))
        text = screen_text(pilot)
        assert not has_controls(text)
        for spelled in ODD_NAMES.values():
            assert text.count(spelled[:20]) >= 1, spelled
        for _ in ODD_NAMES:
            await press(pilot, "j")
            assert not has_controls(screen_text(pilot))
        await press(pilot, "enter")
        assert not has_controls(screen_text(pilot))


async def test_an_odd_message_is_spelled_out() -> None:
    error = ApiError("Error from server: no\n\x1b[2Jscreen\u202e", status=500)
    async with QosApp(ScriptedSource(demo(), error), Scope()).run_test(size=(160, 40)) as pilot:
        await settled(pilot)
        held = names(pilot)
        await press(pilot, "r")
        await settled(pilot)
        assert names(pilot) == held
        assert not has_controls(screen_text(pilot))
        assert r"no \x1b[2Jscreen\x202e" in words(pilot)


async def test_what_was_shown_stays_while_the_server_is_away(serve: Serve, tmp_path: Path) -> None:
    objects = WatchServer(pods=[pod("web", request="1Gi"), pod("db")], nodes=[node()], metrics=[])
    async with QosApp(source(serve, tmp_path, objects), Scope()).run_test(size=(160, 40)) as pilot:
        await until(pilot, lambda: sorted(names(pilot)) == ["db", "web"])
        objects.faults["watch /api/v1/pods"] = status(503, "ServiceUnavailable", "etcd is away")
        objects.end_watches()
        await until(pilot, lambda: "etcd is away" in words(pilot))
        assert sorted(names(pilot)) == ["db", "web"]
        objects.faults.clear()
        objects.put(pod("new"))
        await press(pilot, "r")
        await until(pilot, lambda: sorted(names(pilot)) == ["db", "new", "web"])
        await until(pilot, lambda: "etcd is away" not in words(pilot))
