"""What hands expect: keys that answer, a footer that is never blank, a menu, a prompt without mistakes."""

from __future__ import annotations

import pytest
from textual.widgets._toast import Toast

from kubectl_qos.analysis.deaths import deaths_on_nodes
from kubectl_qos.cluster.files import DEMO_TIME, DemoSource
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.objects import (
    ContainerState,
    ContainerStateTerminated,
    ContainerStatus,
    ObjectMeta,
    Pod,
    PodStatus,
)
from kubectl_qos.present.next_death import distance, victim
from kubectl_qos.tui import view_model
from kubectl_qos.tui.screens import browse
from kubectl_qos.tui.screens.base import KeyFooter
from kubectl_qos.tui.screens.explain import log_screen
from kubectl_qos.tui.view import ListKind, View
from kubectl_qos.tui.widgets.line_table import LineTable
from kubectl_qos.tui.widgets.prompt import Prompt
from tests.tui.sources import API, Run, ScriptedSource, demo, pod_named, running, with_usage


def footer(pilot: Run) -> list[str]:
    return [key.binding.description for key in pilot.main.query_one(KeyFooter).shown]


def is_whole(pilot: Run) -> bool:
    """Whether the last line ends within the screen and says what it says as a whole."""
    last = pilot.text.splitlines()[-1]
    places = pilot.app.screen.query_one(KeyFooter).places()
    words = [f"{display} {key.binding.description}" for _, display, key in places]
    return bool(words) and all(word in last for word in words)


async def test_a_key_below_the_mouse_is_highlighted_and_says_what_it_does() -> None:
    async with running(size=(80, 24)) as pilot:
        line = pilot.main.query_one(KeyFooter)
        before = line.render().spans
        for begin, display, key in line.places():
            for place in (begin, begin + len(f"{display} {key.binding.description}") - 1):
                await pilot.hover(KeyFooter, offset=(place + 1, 0))
                assert line.tooltip == key.tooltip
                assert line.render().spans != before
        await pilot.hover(KeyFooter, offset=(0, 0))
        assert (line.tooltip, line.render().spans) == (None, before)


async def test_every_key_gets_an_answer_and_the_footer_is_never_blank() -> None:
    async with running(size=(80, 24)) as pilot:
        assert is_whole(pilot)
        before = footer(pilot)
        assert {"fix", "kills"} <= set(before)
        for key, answer in (
            ("h", "h does nothing here: ? shows the keys"),
            ("h", "h does nothing here: ? shows the keys"),
            ("ctrl+k", "ctrl-k does nothing here: ? shows the keys"),
            ("left_square_bracket", "there is no previous location"),
            ("right_square_bracket", "there is no next location"),
            ("a", f"{API} was created 3d ago, 2026-11-17T12:00:00Z"),
        ):
            await pilot.keys(key)
            assert pilot.notifications[-1] == answer
        said = len(pilot.notifications)
        await pilot.keys("escape")
        assert len(pilot.notifications) == said, "there is nothing to leave"
        await pilot.press_each("1", "tab")
        assert pilot.notifications[-1].startswith("tab does nothing here")
        await pilot.keys("D")
        assert pilot.notifications[-1] == "nodes have no adj to sort by"
        await pilot.press_each("4", "question_mark")
        assert footer(pilot) == before, "behind a dialog"
        await pilot.keys("question_mark")
        assert footer(pilot) == before, "after it"
        for size in ((60, 24), (100, 24), (200, 24)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert is_whole(pilot), size
        # As a terminal or a page does that loses the focus.
        pilot.app.app_focus = False
        pilot.main.action_explain()
        await pilot.pause()
        await pilot.until(lambda: is_whole(pilot))
        await pilot.keys("q")
        assert pilot.screen_name == "MainScreen"


async def test_the_menu_is_opened_with_the_right_button_and_takes_keys() -> None:
    async with running(size=(120, 40)) as pilot:
        table = pilot.main.table
        await pilot.click(table, offset=(9, 5), button=3)
        await pilot.pause()
        assert pilot.screen_name == "Menu"
        assert table.cursor == 2
        assert "J   owner" in pilot.text
        await pilot.keys("e")
        assert pilot.screen_name == "EditScreen"
        await pilot.keys("escape", "m", "down", "enter")
        assert pilot.screen_name == "EditScreen"
        await pilot.keys("escape")
        # The owner of a pod, under the cursor.
        await pilot.keys("J")
        await pilot.listed()
        assert pilot.main.view.kind is ListKind.WORKLOADS
        # Only what was understood is worth to be recalled.
        for text in ("dp", "deplyo"):
            await pilot.go_to(text)
        assert 'unknown command "deplyo"; did you mean deploy?' in pilot.words
        await pilot.keys("escape")
        await pilot.listed()
        assert {row.key.kind for row in pilot.main.table.rows} == {"Deployment"}
        assert pilot.main.query_one(Prompt).entered(":") == ("dp",)
        await pilot.keys("colon")
        for word in ("pods", "deploy", "sts", "containers", "ctx"):
            assert word in pilot.words, "each of them is offered"
        await pilot.keys("escape")
        for text, screen in (
            ("fix", "FixDialog"),
            ("compare", "CompareScreen"),
            (f"explain {API}", "ExplainScreen"),
        ):
            await pilot.go_to(text)
            assert pilot.screen_name == screen
            await pilot.keys("escape")


async def test_yaml_of_a_node_and_every_death_that_waits_on_all_or_one() -> None:
    async with running(size=(120, 40)) as pilot:
        await pilot.keys("1")
        await pilot.listed()
        await pilot.keys("y")
        await pilot.seen("kind: Node")
        assert "YAML of node worker-2" in pilot.words
        await pilot.keys("q")
        for text, nodes in (
            ("next worker-1", {"worker-1"}),
            ("deaths", {"worker-1", "worker-2", "worker-3"}),
        ):
            await pilot.go_to(text)
            await pilot.until(lambda nodes=nodes: nodes <= {row.node for row in pilot.main.table.rows})  # type: ignore[misc]
            assert text == "deaths" or {row.node for row in pilot.main.table.rows} == nodes
        await pilot.keys("enter")
        assert pilot.screen_name == "ExplainScreen"


async def test_the_fix_under_the_cursor_is_that_of_the_headline_until_a_person_moves_to_a_pod() -> None:
    source = ScriptedSource(demo(), with_usage(demo(), "promo-", (64 << 20) - 4096))
    async with running(source, size=(120, 40), at_first=False) as pilot:
        under_cursor = pilot.main.table.row
        await pilot.refresh()
        await pilot.seen("shop/promo-7c4b-l9dk2:c on worker-1 dies at any allocation")
        await pilot.seen("F fix container c: memory limit 64Mi")
        moved = pilot.main.table.row
        assert under_cursor is not None
        assert moved is not None
        assert under_cursor.key == moved.key
        for pressed in ("", "j"):
            await pilot.keys(*pressed, "F")
            await pilot.seen("known from")
            fixes, row = pilot.app.screen.query_one(LineTable), pilot.main.table.row
            assert row is not None
            assert fixes.row is not None
            assert fixes.rows[0].pod.name == "promo-7c4b-l9dk2"
            assert fixes.row.pod.name == (row.name if pressed else "promo-7c4b-l9dk2")
            await pilot.keys("escape")


async def test_cursor_headline_fixes_and_next_name_the_same_death(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = with_usage(demo(), "promo-", 63 << 20)
    first = deaths_on_nodes(snapshot, sorted(snapshot.nodes)).rows[0]
    assert (first.node, distance(first.death)) == ("worker-1", "+1Mi")
    said = f"{victim(first.death)} on worker-1 dies next: own limit 98%, +1Mi"

    def under_cursor() -> object:
        return getattr(pilot.main.table.row, "key", ())[:2]

    async with running(ScriptedSource(snapshot), size=(120, 40), at_first=False) as pilot:
        assert under_cursor() == first.death.key
        assert said in pilot.words
        assert "worker-1 ██" in pilot.words, "the headline is of its node"
        await pilot.keys("F")
        await pilot.seen("known from")
        assert pilot.app.screen.query_one(LineTable).rows[0].pod.name == first.death.key[1]
        # Whatever the row, the headline is of all nodes; of a node that is chosen it names the other one.
        await pilot.keys("escape", "g")
        assert under_cursor() == ("shop", API)
        assert "worker-1 ██" in pilot.words
        await pilot.keys("tab", "j")
        assert pilot.main.view.node == "worker-2"
        assert f"! sooner {said}" in pilot.words
        await pilot.keys("!")
        await pilot.until(lambda: under_cursor() == first.death.key)
        assert pilot.main.view.node == "worker-1"
        # Of many nodes the headline has the fullest, whatever the row, and a note says so.
        for module in (view_model, browse):
            monkeypatch.setattr(module, "FEW_NODES", 1)
        await pilot.keys("r")
        pilot.main.change_view(View())
        await pilot.seen("the next death is that of the 1 fullest of 4 nodes; ! looks at all of them")
        for key in ("g", "G"):
            await pilot.keys(key)
            assert "data/importer-5f7b9c-2vtxk:c on worker-2 dies next: own limit 98%" in pilot.words
        await pilot.keys("!")
        await pilot.until(lambda: under_cursor() == first.death.key)
        assert "then data/importer" in pilot.words, "what is sooner than this one is not among the fullest"


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (200, 50)])
@pytest.mark.parametrize("words", ["there is no row to copy", "lines, that are too long " * 8])
async def test_a_toast_covers_neither_the_title_nor_an_answer_nor_keys(
    size: tuple[int, int], words: str
) -> None:
    async with running(size=size, notifications=True) as pilot:
        before = pilot.text.splitlines()
        pilot.qos.warn(words)
        await pilot.until(lambda: bool(pilot.app.screen.query(Toast)))
        await pilot.settled()
        toast = pilot.app.screen.query_one(Toast).region
        lines = pilot.text.splitlines()
        assert (toast.y, toast.right) == (0, size[0])
        assert "".join(line[toast.x :] for line in lines[: toast.height]).split() == words.split()
        title = lines[0][: toast.x].split()
        assert title[:2] == ["kubectl", "qos"]
        assert title[-2:] == ["not", "live"]
        assert not set(title) - {*before[0].split(), "…"}, "each word is whole"
        assert pilot.main.query_one("#headline").region.y >= toast.bottom
        assert lines[-1] == before[-1]
        pilot.app.clear_notifications()
        await pilot.until(lambda: pilot.text.splitlines() == before)


async def test_fixes_fit_into_the_smallest_terminal() -> None:
    async with running(ScriptedSource(demo()), size=(60, 15)) as pilot:
        await pilot.seen("F fix container c: memory limit 117.7Mi → 144Mi, now")
        await pilot.keys("F")
        await pilot.seen("known from")
        dialog = pilot.app.screen.query_one(".dialog-table")
        assert pilot.app.screen.region.contains_region(dialog.region)
        assert (dialog.show_vertical_scrollbar, dialog.show_horizontal_scrollbar) == (False, False)
        assert "esc cancel" in pilot.words


def died(exit_code: int, *, is_over: bool) -> Pod:
    """A pod whose container has ended, and may have been started again."""
    ended = ContainerState(terminated=ContainerStateTerminated(exit_code=exit_code))
    status = ContainerStatus("app", state=ended) if is_over else ContainerStatus("app", last_state=ended)
    return Pod(metadata=ObjectMeta(name="web"), status=PodStatus(container_statuses=(status,)))


@pytest.mark.parametrize("is_over", [True, False])
def test_the_log_is_of_the_previous_run_once_there_is_another(*, is_over: bool) -> None:
    class Logs(DemoSource):
        def log(self, pod: Pod, container: str, *, is_previous: bool) -> str:
            return f"{pod.name} {container} {is_previous}"

    assert log_screen(Logs(), died(137, is_over=is_over))._read() == f"web app {not is_over}"
    with pytest.raises(QosError, match="no container of pod web has died"):
        log_screen(DemoSource(), died(0, is_over=is_over))


def test_the_log_is_that_of_a_death() -> None:
    source = DemoSource()
    screen = log_screen(source, pod_named(demo(), API))
    assert screen._subject == f"last lines of container c of pod shop/{API}, OOMKilled 18h ago"
    assert source.now() == DEMO_TIME
    with pytest.raises(
        QosError, match="no container of pod ml/notebook-0 has died: there is no log of a death"
    ):
        log_screen(source, pod_named(demo(), "notebook-0"))
    with pytest.raises(QosError, match=f"container x of pod shop/{API} has not died"):
        log_screen(source, pod_named(demo(), API), "x")
