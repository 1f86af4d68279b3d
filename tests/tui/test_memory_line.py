"""The line about the memory of a node: what stands in it, and that it agrees with the table of nodes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from textual.app import App, ComposeResult

from kubectl_qos.cluster.files import DEMO_TIME, DemoSource
from kubectl_qos.k8s.objects import Condition
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.present.node_columns import NODE_COLUMNS, memory_bar
from kubectl_qos.present.node_rows import build_node_rows
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.lists.panes import MemoryLine
from kubectl_qos.tui.themes import THEMES
from kubectl_qos.tui.view_model import build_view_model
from tests.end_to_end.command import Run
from tests.tui.sources import ScriptedSource, demo, main_of, press, settled, with_usage

GIB = 1 << 30


class Line(App[None]):
    """Nothing but the line."""

    def __init__(self) -> None:
        super().__init__()
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = THEMES[0].name

    def compose(self) -> ComposeResult:
        """The line."""
        yield MemoryLine()


async def shown(snapshot: Snapshot, node: str, width: int = 80) -> str:
    """The text of the line in so many cells."""
    app = Line()
    async with app.run_test(size=(width, 3)) as pilot:
        line = app.query_one(MemoryLine)
        line.show(build_view_model(snapshot, Scope(), DEMO_TIME), node)
        await pilot.pause()
        return line.render().plain


def in_trouble(snapshot: Snapshot, name: str, *types: str) -> Snapshot:
    node = snapshot.nodes[name]
    conditions = tuple(Condition(type=kind, status="True") for kind in types)
    ill = msgspec.structs.replace(node, status=msgspec.structs.replace(node.status, conditions=conditions))
    return replace(snapshot, nodes={**snapshot.nodes, name: ill})


@pytest.mark.parametrize("name", ["control-1", "worker-1", "worker-2", "worker-3"])
@pytest.mark.parametrize("width", [60, 80, 120, 200])
async def test_a_node_of_the_demo_agrees_with_the_table_of_nodes(name: str, width: int) -> None:
    text = await shown(demo(), name, width)
    row = next(row for row in build_node_rows(demo(), lambda *_: True).rows if row.name == name)
    capacity = {"control-1": "8Gi", "worker-1": "16Gi", "worker-2": "16Gi", "worker-3": "32Gi"}[name]
    percent = NODE_COLUMNS["used_percent"].cell(row, DEMO_TIME)
    trouble = "  !memory" if name == "worker-2" else ""
    after = f"  {capacity}  pods use {percent}{trouble}"
    assert text.startswith(f"{name}  ")
    assert text.endswith(after)
    bar = text.removeprefix(f"{name}  ").removesuffix(after)
    assert bar == "".join(part.text for part in memory_bar(row, len(bar)))
    assert len(text) == width, "the bar takes what room there is"


def test_the_percentages_are_those_of_the_command_line(tmp_path: Path) -> None:
    done = Run(tmp_path)("top", "nodes", "--demo")
    for row in build_node_rows(DemoSource().snapshot(Scope()), lambda *_: True).rows:
        line = next(line for line in done.out.splitlines() if line.startswith(row.name))
        assert row.used_percent is not None
        assert f"{row.used_percent:.0f}%" in re.split(r"\s+", line)


async def test_what_is_not_known_is_said() -> None:
    bare = replace(demo(), usage={})
    assert await shown(bare, "worker-1") == "worker-1    16Gi  usage unknown"
    unknown = replace(demo(), nodes={})
    assert await shown(unknown, "worker-1") == "worker-1  memory capacity unknown"
    assert await shown(demo(), "nope") == "nope  memory capacity unknown"


async def test_a_node_without_pods_uses_nothing() -> None:
    text = await shown(replace(demo(), pods=(), usage={}), "worker-1")
    assert text.endswith("  16Gi  pods use 0%")
    assert set(text.removeprefix("worker-1").removesuffix("16Gi  pods use 0%")) == {" ", "·"}


async def test_without_a_node_the_line_is_empty() -> None:
    assert await shown(demo(), "") == ""
    app = Line()
    async with app.run_test(size=(80, 3)):
        assert app.query_one(MemoryLine).render().plain == ""
        app.query_one(MemoryLine).show(None, "worker-1")
        assert app.query_one(MemoryLine).render().plain == ""


async def test_every_trouble_is_named_and_takes_the_room_of_the_bar() -> None:
    ill = in_trouble(demo(), "worker-1", "MemoryPressure", "DiskPressure", "PIDPressure")
    text = await shown(ill, "worker-1", 60)
    assert text.endswith("  !memory  !disk  !pids")
    assert len(text) == 60 or "▓" not in text


async def test_trouble_is_named_even_where_the_capacity_is_not_known() -> None:
    ill = in_trouble(demo(), "worker-1", "DiskPressure")
    node = ill.nodes["worker-1"]
    status = msgspec.structs.replace(node.status, capacity={}, allocatable={})
    bare = replace(ill, nodes={"worker-1": msgspec.structs.replace(node, status=status)})
    assert await shown(bare, "worker-1") == "worker-1  memory capacity unknown  !disk"


async def test_a_name_is_only_text() -> None:
    name = "[bold]x[/]\x1b[31m"
    snapshot = demo()
    pods = tuple(
        msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=name))
        for pod in snapshot.pods
    )
    named = replace(snapshot, pods=pods, nodes={name: snapshot.nodes["worker-1"]})
    assert (await shown(named, name)).startswith("[bold]x[/]\\x1b[31m  ")


async def test_it_follows_the_cursor_and_new_facts() -> None:
    source = ScriptedSource(demo(), with_usage(demo(), "crunch-x2k9f", 4 * GIB))
    async with QosApp(source, Scope()).run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        line = main_of(pilot).query_one(MemoryLine)
        first = line.render().plain
        assert first.startswith("worker-2  ")
        await press(pilot, "r")
        await settled(pilot)
        assert line.render().plain.startswith("worker-2  ")
        assert line.render().plain != first
        row = next(row for row in main_of(pilot).table.rows if row.node == "worker-3")
        main_of(pilot).table.move_to(row.key)
        await pilot.pause()
        assert line.render().plain.startswith("worker-3  ")
        await press(pilot, "G")
        huge = next(row for row in main_of(pilot).table.rows if not row.node)
        main_of(pilot).table.move_to(huge.key)
        await pilot.pause()
        assert line.render().plain == ""
