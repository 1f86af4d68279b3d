from __future__ import annotations

import inspect

import pytest
from textual.binding import Binding
from textual.dom import DOMNode

from kubectl_qos.present.columns import COLUMNS
from kubectl_qos.qos.flags import Flag
from kubectl_qos.tui.actions import ACTIONS, Action, Keys, Room, bindings, of_room, shown_key
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.screens.choose import Choose
from kubectl_qos.tui.screens.columns import ColumnsScreen
from kubectl_qos.tui.screens.compare import CompareScreen
from kubectl_qos.tui.screens.dialogs import AskNumber, Confirm, ConfirmWrite, SaveAs
from kubectl_qos.tui.screens.edit import EditScreen
from kubectl_qos.tui.screens.explain import ExplainScreen
from kubectl_qos.tui.screens.finder import Finder
from kubectl_qos.tui.screens.help import TextScreen, help_lines
from kubectl_qos.tui.screens.kills import KillsScreen
from kubectl_qos.tui.screens.landing import LandingScreen
from kubectl_qos.tui.screens.main import MainScreen
from kubectl_qos.tui.screens.palette import Palette
from kubectl_qos.tui.screens.patch import PatchScreen
from kubectl_qos.tui.screens.progress import ProgressScreen
from kubectl_qos.tui.screens.simulation import SimulationScreen
from kubectl_qos.tui.screens.tree import TreeScreen
from kubectl_qos.tui.screens.undo import UndoScreen
from kubectl_qos.tui.widgets.document import TextScroll
from kubectl_qos.tui.widgets.fold import FoldTitle
from kubectl_qos.tui.widgets.line_table import LineTable
from kubectl_qos.tui.widgets.prompt import Prompt

CLASSES: dict[Room, tuple[type[DOMNode], ...]] = {
    Room.APP: (QosApp,),
    Room.MAIN: (MainScreen,),
    Room.TABLE: (LineTable,),
    Room.TEXT: (TextScroll,),
    Room.EXPLAIN: (ExplainScreen,),
    Room.TREE: (TreeScreen,),
    Room.COMPARE: (CompareScreen,),
    Room.EDIT: (EditScreen,),
    Room.PATCH: (PatchScreen,),
    Room.PROMPT: (Prompt,),
    Room.FOLD: (FoldTitle,),
    Room.LANDING: (LandingScreen,),
    Room.PROGRESS: (ProgressScreen,),
    Room.UNDO: (UndoScreen,),
    Room.SIMULATION: (SimulationScreen,),
    Room.KILLS: (KillsScreen,),
    Room.CONFIRM: (Confirm, ConfirmWrite),
    Room.ASK: (AskNumber,),
    Room.SAVE: (SaveAs,),
    Room.SHEET: (TextScreen,),
    Room.FINDER: (Finder, Palette),
    Room.CHOOSE: (Choose,),
    Room.COLUMNS: (ColumnsScreen,),
}


def test_every_room_belongs_to_a_class() -> None:
    assert set(CLASSES) == set(Room)


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.name)
def test_every_action_is_a_method_and_bound(action: Action) -> None:
    for owner in CLASSES[action.room]:
        method = getattr(owner, f"action_{action.verb}")
        assert len(inspect.signature(method).parameters) == 1
        bound = [one for one in owner.BINDINGS if isinstance(one, Binding) and one.action == action.verb]
        assert [one.key.split(",") for one in bound] == [list(action.keys)]


@pytest.mark.parametrize("room", Room, ids=lambda room: room.name)
def test_classes_bind_nothing_that_is_not_in_the_registry(room: Room) -> None:
    for owner in CLASSES[room]:
        assert bindings(room) == owner.BINDINGS


@pytest.mark.parametrize("room", Room, ids=lambda room: room.name)
def test_no_key_has_two_meanings_in_a_room(room: Room) -> None:
    keys = [key for action in of_room(room) for key in action.keys]
    assert len(keys) == len(set(keys))


def test_keys_that_delete_and_kill_in_k9s_are_unbound() -> None:
    assert not {"ctrl+k", "ctrl+d"} & {key for action in ACTIONS for key in action.keys}


def test_names_are_unique() -> None:
    assert len({action.name for action in ACTIONS}) == len(ACTIONS)


def test_the_help_names_every_action_column_and_flag() -> None:
    lines = list(help_lines(Keys()))
    for action in ACTIONS:
        assert f"{' '.join(map(shown_key, action.keys))}\t{action.help}" in lines
    for column in COLUMNS:
        assert f"{column.header}\t{column.help}" in lines
    for flag in Flag:
        assert any(line.startswith(f"{flag}\t") for line in lines)


@pytest.mark.parametrize(
    ("key", "shown"),
    [("slash", "/"), ("ctrl+f", "ctrl-f"), ("S", "S"), ("question_mark", "?"), ("escape", "esc")],
)
def test_keys_are_shown_as_people_write_them(key: str, shown: str) -> None:
    assert shown_key(key) == shown
