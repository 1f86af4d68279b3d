"""The first screen: what a key, a filter or another size of the terminal leads to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs
from textual.widgets import Input

from kubectl_qos.analysis.pod_table import build_rows
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.present.explanation import Explanation, explain_pod
from kubectl_qos.tui.lists.panes import ExplanationPanel
from kubectl_qos.tui.screens import browse
from tests.tui.sources import API, Run, ScriptedSource, demo, node_after_node, running

ALL = [row.name for row in node_after_node(build_rows(demo(), Scope()).rows)]


def explanation(pilot: Run) -> str:
    panel = pilot.main.query_one(ExplanationPanel)
    return "\n".join(line.text for line in panel.text_lines(200))


async def test_letters_of_a_filter_do_not_explain_the_same_pod_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the list of a wide screen is the explanation, which for 150,000 pods takes longer than a key."""
    requests: list[tuple[Any, ...]] = []

    def explain(*arguments: Any) -> Explanation:
        requests.append(arguments)
        return explain_pod(*arguments)

    monkeypatch.setattr(browse, "explain_pod", explain)
    async with running(size=(200, 50), at_first=False) as pilot:
        await pilot.listed()
        await pilot.keys("slash")
        await pilot.type("importer")
        assert "Class: Burstable, oom_score_adj 995" in pilot.words
        view_model = pilot.qos.view_model
        assert view_model is not None
        assert [arguments[0].name for arguments in requests] == ["importer-5f7b9c-2vtxk"]
        assert requests[0][3] is view_model.rows.sampled, "nor is the usage of all pods gone through"


async def test_a_filter_works_while_it_is_typed_and_can_be_typed_on() -> None:
    async with running(None, "slash") as pilot:
        await pilot.type("!db-")
        assert len(pilot.names) == 57
        await pilot.keys("escape")
        assert pilot.names == ALL
        await pilot.filter_by("db-")
        assert pilot.main.focused is pilot.main.table
        await pilot.keys("slash")
        await pilot.type("1")
        assert pilot.names == ["db-1"]
        await pilot.put("age:<1h")
        assert pilot.names == ["debug-shell"], "by the clock of the source"


async def test_a_wrong_filter_is_refused_and_the_last_good_one_stays() -> None:
    async with running(None, "slash") as pilot:
        await pilot.type("db-[")
        assert "! db-[: a ] is missing" in pilot.text
        assert pilot.names == ["db-0", "db-1", "db-2"]
        await pilot.keys("enter")
        assert isinstance(pilot.main.focused, Input), "enter does not leave a wrong filter"
        await pilot.type("01]")
        assert "! db-" not in pilot.text
        assert pilot.names == ["db-0", "db-1"]
        for text, sentence in (
            ("-l app=a b", "unable to parse label selector"),
            ("qos:x", "! qos is never 'x'; it is "),
            ("nod:x", "! unknown column 'nod'; columns are: rank, namespace"),
        ):
            await pilot.put(text)
            assert sentence in pilot.words
            assert pilot.names == ["db-0", "db-1"]


async def test_the_command_line_works_as_it_is_typed_and_has_a_history_of_its_own() -> None:
    async with running() as pilot:
        line = pilot.main.query_one("#line", Input)
        await pilot.filter_by("cart")
        await pilot.keys("escape", "slash", "up")
        assert all("cart" in name for name in pilot.names), "it works as if it were typed"
        await pilot.keys("escape")
        await pilot.go_to("node nope")
        assert '! node "nope" not found' in pilot.text
        await pilot.keys("ctrl+u")
        await pilot.type("pods sh")
        await pilot.keys("right")
        assert line.value == "pods shop"
        await pilot.keys("enter", "colon", "up")
        assert line.value == "pods shop"
        await pilot.keys("ctrl+u", "q", "enter")
        assert pilot.app._exit


async def test_sorting_goes_through_the_columns_and_begins_again() -> None:
    async with running() as pilot:
        table = pilot.main.table
        seen: list[str] = []
        while seen[-1:] != ["rank"]:
            await pilot.keys("s")
            key, is_reversed = table.sorted_by
            assert table.columns.column(key) is not None, "it stays in sight"
            assert table.columns.column("node" if key != "rank" else "namespace") is not None
            assert not is_reversed
            seen.append(key)
        assert set(seen) >= {"namespace", "pod", "node", "qos", "memory", "rank"}
        assert len(set(seen)) == len(seen)
        assert pilot.names == ALL


async def test_resizing_changes_the_layout_and_keeps_the_cursor() -> None:
    async with running(None, "j", "j", "j") as pilot:
        for size in ((80, 24), (59, 24), (120, 14), (60, 15), (200, 60), (20, 3), (1, 1), (120, 36)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert pilot.main.table.cursor == 3
            is_small = size in ((59, 24), (120, 14))
            assert ("60 columns and 15 lines are needed" in pilot.words) is is_small
            assert not (is_small and API[:17] in pilot.text)
        assert len(pilot.names) == 60


async def test_long_names_of_nodes_get_more_of_a_huge_screen() -> None:
    snapshot, name = demo(), "ip-10-1-140-17.eu-central-1.compute.internal"
    node = snapshot.nodes["worker-1"]
    other = structs.replace(node, metadata=structs.replace(node.metadata, name=name))
    source = ScriptedSource(replace(snapshot, nodes={**snapshot.nodes, name: other}))
    async with running(source, size=(120, 40)) as pilot:
        assert "ip-10-1-140-17…" not in pilot.words
        await pilot.resize_terminal(200, 50)
        await pilot.settled()
        await pilot.seen("ip-10-1-140-17…")
