from __future__ import annotations

import inspect

import pytest
from textual.binding import Binding
from textual.dom import DOMNode

from kubectl_qos.present.pod_columns import ALL_COLUMNS
from kubectl_qos.qos.flags import Flag
from kubectl_qos.tui.actions import ACTIONS, Action, BindingGroup, Keys, actions_in_group, bindings, shown_key
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.screens.apply import ApplyScreen, ProgressScreen
from kubectl_qos.tui.screens.dialogs import (
    ConfirmDialog,
    ConfirmWrite,
    NumberDialog,
    SaveAs,
    TextScreen,
    help_lines,
)
from kubectl_qos.tui.screens.edit import EditScreen
from kubectl_qos.tui.screens.explain import CollapsibleTitle, ExplainScreen
from kubectl_qos.tui.screens.kills import KillsScreen
from kubectl_qos.tui.screens.main import MainScreen
from kubectl_qos.tui.screens.node import CompareScreen, TreeScreen
from kubectl_qos.tui.screens.patch import PatchScreen
from kubectl_qos.tui.screens.search import ColumnsScreen, Finder, Palette, SelectDialog
from kubectl_qos.tui.screens.simulation import SimulationScreen
from kubectl_qos.tui.screens.undo import UndoScreen
from kubectl_qos.tui.widgets.line_table import LineTable
from kubectl_qos.tui.widgets.prompt import Prompt
from kubectl_qos.tui.widgets.text_view import TextScroll

CLASSES: dict[BindingGroup, tuple[type[DOMNode], ...]] = {
    BindingGroup.APP: (QosApp,),
    BindingGroup.MAIN: (MainScreen,),
    BindingGroup.TABLE: (LineTable,),
    BindingGroup.TEXT: (TextScroll,),
    BindingGroup.EXPLAIN: (ExplainScreen,),
    BindingGroup.TREE: (TreeScreen,),
    BindingGroup.COMPARE: (CompareScreen,),
    BindingGroup.EDIT: (EditScreen,),
    BindingGroup.PATCH: (PatchScreen,),
    BindingGroup.PROMPT: (Prompt,),
    BindingGroup.FOLD: (CollapsibleTitle,),
    BindingGroup.APPLY: (ApplyScreen,),
    BindingGroup.PROGRESS: (ProgressScreen,),
    BindingGroup.UNDO: (UndoScreen,),
    BindingGroup.SIMULATION: (SimulationScreen,),
    BindingGroup.KILLS: (KillsScreen,),
    BindingGroup.CONFIRM: (ConfirmDialog, ConfirmWrite),
    BindingGroup.NUMBER: (NumberDialog,),
    BindingGroup.SAVE: (SaveAs,),
    BindingGroup.HELP: (TextScreen,),
    BindingGroup.SEARCH: (Finder, Palette),
    BindingGroup.SELECT: (SelectDialog,),
    BindingGroup.COLUMNS: (ColumnsScreen,),
}


def test_every_room_belongs_to_a_class() -> None:
    assert set(CLASSES) == set(BindingGroup)


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.name)
def test_every_action_is_a_method_and_bound(action: Action) -> None:
    for owner in CLASSES[action.group]:
        method = getattr(owner, f"action_{action.verb}")
        assert len(inspect.signature(method).parameters) == 1
        bound = [one for one in owner.BINDINGS if isinstance(one, Binding) and one.action == action.verb]
        assert [one.key.split(",") for one in bound] == [list(action.keys)]


@pytest.mark.parametrize("room", BindingGroup, ids=lambda room: room.name)
def test_classes_bind_nothing_that_is_not_in_the_registry(room: BindingGroup) -> None:
    for owner in CLASSES[room]:
        assert bindings(room) == owner.BINDINGS


@pytest.mark.parametrize("room", BindingGroup, ids=lambda room: room.name)
def test_no_key_has_two_meanings_in_a_room(room: BindingGroup) -> None:
    keys = [key for action in actions_in_group(room) for key in action.keys]
    assert len(keys) == len(set(keys))


def test_keys_that_delete_and_kill_in_k9s_are_unbound() -> None:
    assert not {"ctrl+k", "ctrl+d"} & {key for action in ACTIONS for key in action.keys}


def test_names_are_unique() -> None:
    assert len({action.name for action in ACTIONS}) == len(ACTIONS)


def test_the_help_names_every_action_column_and_flag() -> None:
    lines = list(help_lines(Keys()))
    for action in ACTIONS:
        assert f"{' '.join(map(shown_key, action.keys))}\t{action.help}" in lines
    for column in ALL_COLUMNS:
        assert f"{column.header}\t{column.help}" in lines
    for flag in Flag:
        assert any(line.startswith(f"{flag}\t") for line in lines)


@pytest.mark.parametrize(
    ("key", "shown"),
    [("slash", "/"), ("ctrl+f", "ctrl-f"), ("S", "S"), ("question_mark", "?"), ("escape", "esc")],
)
def test_keys_are_shown_as_people_write_them(key: str, shown: str) -> None:
    assert shown_key(key) == shown
