from __future__ import annotations

import inspect

import pytest
from textual.binding import ActiveBinding, Binding
from textual.dom import DOMNode

from kubectl_qos.present.pod_columns import ALL_COLUMNS
from kubectl_qos.qos.ranking import Flag
from kubectl_qos.tui.actions import (
    ACTIONS,
    BY_NAME,
    BindingGroup,
    Keys,
    actions_in_group,
    bindings,
    shown_key,
)
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.screens.apply import ApplyScreen, PatchScreen, ProgressScreen, UndoScreen
from kubectl_qos.tui.screens.base import fitting_keys
from kubectl_qos.tui.screens.dialogs import (
    ConfirmWrite,
    HelpScreen,
    HelpSection,
    LeaveDialog,
    NumberDialog,
    SaveAs,
    TextScreen,
    help_sections,
)
from kubectl_qos.tui.screens.edit import EditScreen
from kubectl_qos.tui.screens.explain import CollapsibleTitle, ExplainScreen, SourceTextScreen
from kubectl_qos.tui.screens.fix_dialog import FixDialog
from kubectl_qos.tui.screens.kills import KillsScreen, TimeSlider
from kubectl_qos.tui.screens.main import MainScreen
from kubectl_qos.tui.screens.node import CompareScreen, TreeScreen
from kubectl_qos.tui.screens.search import ColumnsScreen, Finder, Menu, Palette, SelectDialog
from kubectl_qos.tui.screens.simulation import SimulationScreen
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
    BindingGroup.CONFIRM: (LeaveDialog, ConfirmWrite),
    BindingGroup.NUMBER: (NumberDialog,),
    BindingGroup.PAST: (TimeSlider,),
    BindingGroup.SAVE: (SaveAs,),
    BindingGroup.HELP: (TextScreen,),
    BindingGroup.SEARCH: (Finder, Palette),
    BindingGroup.SELECT: (SelectDialog, Menu, FixDialog),
    BindingGroup.READ: (SourceTextScreen,),
    BindingGroup.GUIDE: (HelpScreen,),
    BindingGroup.COLUMNS: (ColumnsScreen,),
}


def test_every_room_belongs_to_a_class() -> None:
    assert set(CLASSES) == set(BindingGroup)


def test_every_action_is_a_method_and_bound() -> None:
    for action in ACTIONS:
        for owner in CLASSES[action.group]:
            method = getattr(owner, f"action_{action.verb}")
            assert len(inspect.signature(method).parameters) == (2 if action.argument else 1), action.name
            bindings_of_it = [
                binding
                for binding in owner.BINDINGS
                if isinstance(binding, Binding) and binding.action == action.call
            ]
            assert [binding.key.split(",") for binding in bindings_of_it] == [list(action.keys)], action.name


def test_classes_bind_nothing_that_is_not_in_the_registry() -> None:
    for room in BindingGroup:
        for owner in CLASSES[room]:
            assert bindings(room) == owner.BINDINGS, room


def test_no_key_has_two_meanings_in_a_room() -> None:
    for room in BindingGroup:
        keys = [key for action in actions_in_group(room) for key in action.keys]
        assert len(keys) == len(set(keys)), room


def test_keys_that_delete_and_kill_in_k9s_are_unbound() -> None:
    assert not {"ctrl+k", "ctrl+d"} & {key for action in ACTIONS for key in action.keys}


def test_names_are_unique() -> None:
    assert len({action.name for action in ACTIONS}) == len(ACTIONS)


def test_the_help_names_every_action_column_and_flag() -> None:
    entries = [entry for section in help_sections(Keys()) for entry in section.entries]
    for action in ACTIONS:
        assert (" ".join(map(shown_key, action.keys)), action.meaning) in entries
    for column in ALL_COLUMNS:
        assert (column.header, column.help) in entries
    assert {str(flag) for flag in Flag} <= {name for name, _ in entries}
    for command in ("deploy", "sts", "ns", "ctx"):
        assert any(command in name.split() for name, _ in entries)


def test_the_help_begins_with_the_keys_that_are_active() -> None:
    here = (BindingGroup.KILLS, BindingGroup.TABLE, BindingGroup.APP)
    titles = [section.title for section in help_sections(Keys(), here)]
    assert titles[:4] == ["Kills (here)", "In a table (here)", "Everywhere (here)", "In a list"]
    assert len(titles) == len(set(titles))


def test_a_search_of_the_help_looks_at_keys_words_and_headings() -> None:
    section = HelpSection("Kills", (("d", "explain: the rank"), ("c", "copy: all of it")))
    assert section.searched(["kills"]) == section
    assert section.searched(["rank", "explain"]).entries == section.entries[:1]
    assert not section.searched(["evict"]).entries
    assert section.searched(["c"]).entries == section.entries[1:]
    assert not section.searched(["C"]).entries


def test_a_person_may_take_a_key_that_yields() -> None:
    keys = Keys({"main.find": ("M",), "explain.fold": ("y",)})
    assert keys.first("main.sort_by_memory") == ""
    assert keys.first("main.yaml") == "y", "of another screen"
    assert keys.first("main.find") == "M"
    assert "" not in {key for section in help_sections(keys) for key, _ in section.entries}


def active(*names: str) -> list[ActiveBinding]:
    found = []
    for name in names:
        group = BY_NAME[name].group
        binding = next(one for one in bindings(group) if isinstance(one, Binding) and one.id == name)
        found.append(ActiveBinding(QosApp, binding, enabled=True, tooltip=""))  # type: ignore[arg-type]
    return found


def test_the_footer_drops_the_least_important_keys_and_none_in_part() -> None:
    shown = [action.name for action in ACTIONS if action.footer and action.group.name in {"MAIN", "APP"}]
    keys = active(*shown)

    def fitting(width: int) -> list[str | None]:
        return [one.binding.id for one in fitting_keys(keys, lambda binding: binding.key[:1], width)]

    assert fitting(1000) == shown
    at_80 = fitting(80)
    assert {"main.explain", "main.fix", "main.kills", "main.filter", "app.help"} <= set(at_80)
    widths = [len(fitting(width)) for width in range(20, 200)]
    assert widths == sorted(widths)
    assert fitting(20) == ["app.help", "app.quit"]


@pytest.mark.parametrize(
    ("key", "shown"),
    [("slash", "/"), ("ctrl+f", "ctrl-f"), ("S", "S"), ("question_mark", "?"), ("escape", "esc")],
)
def test_keys_are_shown_as_people_write_them(key: str, shown: str) -> None:
    assert shown_key(key) == shown
