"""The line about a node's memory: what it says, and that it agrees with the table of nodes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
from textual.app import App, ComposeResult

import kubectl_qos.tui
from kubectl_qos.analysis.group_table import build_node_row, build_node_rows
from kubectl_qos.analysis.trends import Trends
from kubectl_qos.cluster.files import DEMO_TIME
from kubectl_qos.k8s.objects import Condition
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.k8s.usage import Pressure, Psi, PsiData
from kubectl_qos.present.format import binary
from kubectl_qos.present.node_columns import NODE_COLUMNS, memory_bar
from kubectl_qos.present.pod_columns import PSI_COLUMNS
from kubectl_qos.tui.lists.groups import NodeList
from kubectl_qos.tui.lists.panes import MemoryLine
from kubectl_qos.tui.themes import THEMES
from tests.end_to_end.command import Run as Command
from tests.tui.sources import ScriptedSource, demo, running, with_usage

GIB = 1 << 30
CAPACITY = {"control-1": "8Gi", "worker-1": "16Gi", "worker-2": "16Gi", "worker-3": "32Gi"}


class Line(App[None]):
    """Nothing but the line."""

    CSS_PATH = Path(kubectl_qos.tui.__file__).with_name("app.tcss")

    def __init__(self) -> None:
        super().__init__()
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = THEMES[0].name

    def compose(self) -> ComposeResult:
        """The line."""
        yield MemoryLine()


async def shown(snapshot: Snapshot, node: str, width: int = 80) -> str:
    """The text of the line at this width."""
    app = Line()
    async with app.run_test(size=(width, 3)) as pilot:
        line = app.query_one(MemoryLine)
        line.show(build_node_row(snapshot, node) if node else None)
        await pilot.pause()
        return line.render().plain


def with_conditions(snapshot: Snapshot, name: str, *types: str) -> Snapshot:
    node = snapshot.nodes[name]
    conditions = tuple(Condition(type=kind, status="True") for kind in types)
    ill = msgspec.structs.replace(node, status=msgspec.structs.replace(node.status, conditions=conditions))
    return replace(snapshot, nodes={**snapshot.nodes, name: ill})


async def test_nodes_of_the_demo_agree_with_the_table_of_nodes_and_the_command(tmp_path: Path) -> None:
    printed = {
        line.split()[0]: line.split() for line in Command(tmp_path)("top", "nodes", "--demo").out.splitlines()
    }
    snapshot = with_conditions(demo(), "worker-2", "MemoryPressure")
    for row in build_node_rows(snapshot, lambda *_: True).rows:
        for width in (60, 80, 120, 200):
            text = await shown(snapshot, row.name, width)
            assert NODE_COLUMNS["used_percent"].cell(row, DEMO_TIME) in printed[row.name]
            trouble = "  !memory" if row.name == "worker-2" else ""
            after = f"  {CAPACITY[row.name]}  pods use {binary(row.memory.used_bytes or 0)}{trouble}"
            assert text.startswith(f"{row.name}  ")
            assert text.endswith(after)
            bar = text.removeprefix(f"{row.name}  ").removesuffix(after)
            assert bar == "".join(part.text for part in memory_bar(row, len(bar)))
            assert len(text) == width, "the bar takes what room there is"


async def test_what_is_not_known_is_said() -> None:
    bare = replace(demo(), usage={}, node_usage={})
    assert await shown(bare, "worker-1") == "worker-1    16Gi  usage unknown"
    unknown = replace(demo(), nodes={})
    assert await shown(unknown, "worker-1") == "worker-1  memory capacity unknown"
    assert await shown(demo(), "nope") == "nope  memory capacity unknown"
    # A node without pods uses nothing.
    text = await shown(replace(demo(), pods=(), usage={}, node_usage={}), "worker-1")
    assert text.endswith("  16Gi  pods use 0")
    assert set(text.removeprefix("worker-1").removesuffix("16Gi  pods use 0")) == {" ", "·"}
    # Every trouble is named and takes the room of the bar.
    ill = with_conditions(demo(), "worker-1", "MemoryPressure", "DiskPressure", "PIDPressure")
    text = await shown(ill, "worker-1", 60)
    assert text.endswith("  !memory  !disk  !pids")
    assert len(text) == 60 or "▓" not in text
    # Trouble is named even where the capacity is not known.
    ill = with_conditions(demo(), "worker-1", "DiskPressure")
    node = ill.nodes["worker-1"]
    status = msgspec.structs.replace(node.status, capacity={}, allocatable={})
    bare = replace(ill, nodes={"worker-1": msgspec.structs.replace(node, status=status)})
    assert await shown(bare, "worker-1") == "worker-1  memory capacity unknown  !disk"


async def test_what_the_node_uses_itself_follows_its_pods() -> None:
    """It fills a node as they do, and no pod's number shows it."""
    snapshot = replace(demo(), node_usage={"worker-1": 10 * GIB})
    own = binary(snapshot.own_bytes("worker-1") or 0)
    assert (await shown(snapshot, "worker-1")).endswith(f"pods use 7.2Gi, the node itself {own}")


async def test_pressure_is_named_where_a_source_has_it_in_the_line_and_the_list() -> None:
    waits = Pressure(None, Psi(PsiData(10.0, 12.34, 3.0)), None)
    snapshot = replace(demo(), pressure={"worker-1": waits})
    assert (await shown(snapshot, "worker-1")).endswith("pods use 7.2Gi  PSI60 12.3%")
    assert "PSI" not in await shown(snapshot, "worker-3")
    definition = NodeList(Trends())
    for of, expected in ((snapshot, {"psi10", "psi60"}), (demo(), set())):
        rows = build_node_rows(of, lambda *_: True).rows
        layout = definition.fit(
            list(definition.columns.values()), rows, DEMO_TIME, 200, definition.importance
        )
        assert set(layout.by_key) & {column.key for column in PSI_COLUMNS} == expected


async def test_without_a_node_the_line_is_empty() -> None:
    assert await shown(demo(), "") == ""
    app = Line()
    async with app.run_test(size=(80, 3)):
        assert app.query_one(MemoryLine).render().plain == ""
        app.query_one(MemoryLine).show(None)
        assert app.query_one(MemoryLine).render().plain == ""


async def test_a_name_is_only_text() -> None:
    name = "[bold]x[/]\x1b[31m"
    snapshot = demo()
    pods = tuple(
        msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=name))
        for pod in snapshot.pods
    )
    named = replace(snapshot, pods=pods, nodes={name: snapshot.nodes["worker-1"]})
    assert (await shown(named, name)).startswith("[bold]x[/]\\x1b[31m  ")


async def test_it_follows_the_chosen_node_and_new_facts() -> None:
    source = ScriptedSource(demo(), with_usage(demo(), "crunch-x2k9f", 4 * GIB))
    async with running(source) as pilot:
        line = pilot.main.query_one(MemoryLine)
        first = line.render().plain
        assert first.startswith("worker-2  ")
        await pilot.refresh()
        assert line.render().plain.startswith("worker-2  ")
        assert line.render().plain != first
        await pilot.keys("G")
        assert line.render().plain.startswith("worker-2  "), "the next death of all nodes, whatever the row"
        await pilot.keys("tab", "G", "k")
        assert line.render().plain.startswith("control-1  "), "a node that was chosen"
