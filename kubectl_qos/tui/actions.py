"""Every action of the UI with its keys and words: footer, help screen and palette are made from this list.

An action `room.verb` is the method `action_verb` of the class that binds the room. What the methods do is
in the screens and widgets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from textual.binding import Binding, BindingType


class BindingGroup(StrEnum):
    """Where an action can be used; the value is the heading in the help screen."""

    MAIN = "In a list"
    TABLE = "In a table"
    PROMPT = "In the line for filters and places"
    EXPLAIN = "Explanation"
    TREE = "Cgroups of a node"
    COMPARE = "What another setting would change"
    FOLD = "On the title of a section"
    EDIT = "Edit"
    LANDING = "Landing a change"
    PROGRESS = "After a change was sent"
    PATCH = "Patch and manifest"
    UNDO = "What was applied"
    SIMULATION = "Who dies as memory fills"
    KILLS = "What was killed"
    APP = "Everywhere"
    TEXT = "In a text"
    SAVE = "While a file is named"
    CONFIRM = "In a question"
    ASK = "While a number is asked for"
    FINDER = "While something is looked for"
    COLUMNS = "While columns are chosen"
    CHOOSE = "While a context is chosen"
    SHEET = "In help and notes"


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that a key does. `footer` says whether the bottom line shows it, `palette` the palette."""

    room: BindingGroup
    verb: str
    keys: tuple[str, ...]
    label: str
    help: str
    footer: bool = False
    palette: bool = True
    priority: bool = False

    @property
    def name(self) -> str:
        """What keymaps call it."""
        return f"{self.room.name.lower()}.{self.verb}"


def _table(verb: str, keys: tuple[str, ...], label: str, text: str) -> Action:
    return Action(BindingGroup.TABLE, verb, keys, label, text, palette=False)


def _text(verb: str, keys: tuple[str, ...], label: str, text: str) -> Action:
    return Action(BindingGroup.TEXT, verb, keys, label, text, palette=False)


ACTIONS: Final = (
    Action(BindingGroup.MAIN, "explain", ("d",), "explain", "why this class, score and rank", footer=True),
    Action(
        BindingGroup.MAIN, "edit", ("e",), "edit", "change requests and limits, with a preview", footer=True
    ),
    Action(
        BindingGroup.MAIN, "tree", ("v",), "cgroups", "the cgroup tree of the pod's node, with its values"
    ),
    Action(
        BindingGroup.MAIN, "compare", ("u",), "what if", "what an upgrade or another setting would change"
    ),
    Action(
        BindingGroup.MAIN,
        "simulate",
        ("o",),
        "simulate",
        "who dies next on the node, and after that, as its memory fills",
    ),
    Action(
        BindingGroup.MAIN,
        "kills",
        ("K",),
        "kills",
        "what was killed, by which mechanism, and how sure that is",
    ),
    Action(
        BindingGroup.MAIN,
        "filter",
        ("slash",),
        "filter",
        "show only some pods: /text, /!text, /node:worker-2, /-l app=web; see Filters",
        footer=True,
    ),
    Action(
        BindingGroup.MAIN,
        "go_to",
        ("colon",),
        "go to",
        "nodes, node NAME, ns, workloads, pods NAMESPACE, sim, kills, ctx and so on",
        footer=True,
    ),
    Action(
        BindingGroup.MAIN, "list_nodes", ("1",), "cluster", "the nodes with their memory and next victims"
    ),
    Action(
        BindingGroup.MAIN, "list_namespaces", ("2",), "namespaces", "the namespaces with their pods added up"
    ),
    Action(
        BindingGroup.MAIN, "list_workloads", ("3",), "workloads", "Deployments and so on, by their worst rank"
    ),
    Action(BindingGroup.MAIN, "list_pods", ("4",), "pods", "the pods in kill order"),
    Action(BindingGroup.MAIN, "list_containers", ("5",), "containers", "the containers in kill order"),
    Action(BindingGroup.MAIN, "containers", ("i",), "inside", "the containers of the pod"),
    Action(BindingGroup.MAIN, "next_pane", ("tab",), "panes", "the next pane", footer=True),
    Action(BindingGroup.MAIN, "previous_pane", ("shift+tab",), "back a pane", "the previous pane"),
    Action(BindingGroup.MAIN, "sort", ("s",), "sort", "sort by the next column", footer=True),
    Action(BindingGroup.MAIN, "turn", ("S",), "turn", "sort the other way round"),
    Action(
        BindingGroup.MAIN, "at_risk", ("z",), "risk", "only those with a flag of risk, or all", footer=True
    ),
    Action(BindingGroup.MAIN, "wide", ("w",), "wide", "all columns, or those that fit", footer=True),
    Action(BindingGroup.MAIN, "find", ("f",), "find", "go to a pod by some letters of its name"),
    Action(BindingGroup.MAIN, "columns", ("C",), "columns", "choose the columns of the list and their order"),
    Action(BindingGroup.MAIN, "mark", ("space",), "mark", "mark or unmark the line, for copying"),
    Action(BindingGroup.MAIN, "copy", ("c",), "copy", "copy the marked rows, or the selected one"),
    Action(BindingGroup.MAIN, "export", ("x",), "export", "save what is shown as csv, json, yaml or text"),
    Action(BindingGroup.MAIN, "notes", ("n",), "notes", "what is missing or assumed"),
    Action(
        BindingGroup.MAIN,
        "back",
        ("escape",),
        "back",
        "leave the pane; clear the filter; the place before",
        palette=False,
    ),
    _table("up", ("up", "k"), "up", "the line above"),
    _table("down", ("down", "j"), "down", "the line below"),
    _table("first", ("home", "g"), "first", "the first line"),
    _table("last", ("end", "G"), "last", "the last line"),
    _table("page_up", ("pageup", "ctrl+b"), "page up", "a page up"),
    _table("page_down", ("pagedown", "ctrl+f"), "page down", "a page down"),
    _table("left", ("left",), "left", "columns to the left"),
    _table("right", ("right",), "right", "columns to the right"),
    _table("select", ("enter",), "open", "open the line: explain a pod, list the pods of anything else"),
    _text("up", ("up", "k"), "up", "the line above"),
    _text("down", ("down", "j"), "down", "the line below"),
    _text("first", ("home", "g"), "first", "the beginning"),
    _text("last", ("end", "G"), "last", "the end"),
    _text("page_up", ("pageup", "ctrl+b"), "page up", "a page up"),
    _text("page_down", ("pagedown", "ctrl+f"), "page down", "a page down"),
    Action(BindingGroup.EXPLAIN, "edit", ("e",), "edit", "change requests and limits", footer=True),
    Action(BindingGroup.EXPLAIN, "copy", ("c",), "copy", "copy all of it as text", footer=True),
    Action(BindingGroup.EXPLAIN, "next", ("tab",), "next", "the next section; enter folds it", footer=True),
    Action(BindingGroup.EXPLAIN, "previous", ("shift+tab",), "previous", "the previous section"),
    Action(BindingGroup.EXPLAIN, "fold", ("z",), "fold", "fold or unfold every section", footer=True),
    Action(BindingGroup.EXPLAIN, "back", ("escape",), "back", "back to the pods", footer=True, palette=False),
    Action(BindingGroup.TREE, "copy", ("c",), "copy", "copy the tree as text", footer=True),
    Action(
        BindingGroup.TREE,
        "export",
        ("x",),
        "export",
        "save every file with its path and content",
        footer=True,
    ),
    Action(BindingGroup.TREE, "back", ("escape",), "back", "back to the pods", footer=True, palette=False),
    Action(BindingGroup.COMPARE, "page_up", ("pageup",), "page up", "a page up", priority=True),
    Action(BindingGroup.COMPARE, "page_down", ("pagedown",), "page down", "a page down", priority=True),
    Action(
        BindingGroup.COMPARE,
        "copy",
        ("ctrl+s",),
        "copy",
        "copy what changes as text",
        footer=True,
        priority=True,
    ),
    Action(BindingGroup.COMPARE, "back", ("escape",), "back", "back to the pods", footer=True, palette=False),
    Action(
        BindingGroup.EDIT,
        "land",
        ("ctrl+s",),
        "land",
        "how it can land: in place, through the owner, as a patch; with dry run and apply",
        footer=True,
    ),
    Action(
        BindingGroup.EDIT,
        "guaranteed",
        ("ctrl+g",),
        "Guaranteed",
        "requests equal to limits wherever a number is known",
        footer=True,
    ),
    Action(
        BindingGroup.EDIT,
        "outlive",
        ("ctrl+o",),
        "outlive",
        "the least memory requests with which it is killed after a pod that you choose",
        footer=True,
    ),
    Action(
        BindingGroup.EDIT,
        "rank",
        ("ctrl+n",),
        "rank",
        "the least memory requests with which its kill rank is N or later",
        footer=True,
    ),
    Action(BindingGroup.EDIT, "reset", ("ctrl+r",), "reset", "every field as it was", footer=True),
    Action(BindingGroup.EDIT, "below", ("down",), "below", "the field below; tab goes to the next one"),
    Action(BindingGroup.EDIT, "above", ("up",), "above", "the field above; shift-tab goes to the one before"),
    Action(
        BindingGroup.EDIT, "page_up", ("pageup", "ctrl+b"), "page up", "the preview a page up", priority=True
    ),
    Action(
        BindingGroup.EDIT,
        "page_down",
        ("pagedown", "ctrl+f"),
        "page down",
        "the preview a page down",
        priority=True,
    ),
    Action(
        BindingGroup.EDIT, "back", ("escape",), "back", "leave; asks if something is not saved", footer=True
    ),
    Action(BindingGroup.LANDING, "other", ("tab",), "way", "the next way to land it", footer=True),
    Action(
        BindingGroup.LANDING,
        "previous_strategy",
        ("shift+tab",),
        "way before",
        "the way to land it before this one",
    ),
    Action(
        BindingGroup.LANDING,
        "dry_run",
        ("d",),
        "dry run",
        "ask the server what it would make of it",
        footer=True,
    ),
    Action(
        BindingGroup.LANDING,
        "apply",
        ("a",),
        "apply",
        "dry run, then a question, and then it is sent",
        footer=True,
    ),
    Action(
        BindingGroup.LANDING, "patch", ("m",), "patch", "the patch and the manifest, to save", footer=True
    ),
    Action(BindingGroup.LANDING, "copy", ("c",), "copy", "copy the request"),
    Action(
        BindingGroup.LANDING,
        "look",
        ("l",),
        "look again",
        "give ours up and edit what is there now, where someone else changed it",
        footer=True,
    ),
    Action(
        BindingGroup.LANDING,
        "ours",
        ("o",),
        "keep ours",
        "the same change of what is there now, where someone else changed it",
        footer=True,
    ),
    Action(
        BindingGroup.LANDING, "back", ("escape",), "back", "back to the fields; nothing is sent", footer=True
    ),
    Action(
        BindingGroup.PROGRESS,
        "back",
        ("escape",),
        "leave",
        "look no longer; what was sent goes on",
        footer=True,
        palette=False,
    ),
    Action(
        BindingGroup.UNDO,
        "open",
        ("u",),
        "undo it",
        "what taking it back would do, and the way there; enter does the same",
        footer=True,
    ),
    Action(
        BindingGroup.UNDO, "back", ("escape",), "back", "back to where you were", footer=True, palette=False
    ),
    Action(BindingGroup.SIMULATION, "less", ("left", "h"), "less", "less memory", footer=True, priority=True),
    Action(
        BindingGroup.SIMULATION, "more", ("right", "l"), "more", "more memory", footer=True, priority=True
    ),
    Action(
        BindingGroup.SIMULATION,
        "far_less",
        ("shift+left", "H"),
        "far less",
        "less, in larger steps",
        priority=True,
    ),
    Action(
        BindingGroup.SIMULATION,
        "far_more",
        ("shift+right", "L"),
        "far more",
        "more, in larger steps",
        priority=True,
    ),
    Action(BindingGroup.SIMULATION, "least", ("home",), "nothing", "no memory", priority=True),
    Action(
        BindingGroup.SIMULATION, "most", ("end",), "all of it", "as much memory as there is", priority=True
    ),
    Action(
        BindingGroup.SIMULATION,
        "mode",
        ("tab",),
        "mode",
        "memory is freed, a pod grows, all grow to their limits, all grow until the first is hit",
        footer=True,
        priority=True,
    ),
    Action(
        BindingGroup.SIMULATION, "mode_before", ("shift+tab",), "mode before", "the other way", priority=True
    ),
    Action(BindingGroup.SIMULATION, "who", ("f",), "who grows", "choose the pod that grows"),
    Action(
        BindingGroup.SIMULATION,
        "eviction",
        ("E",),
        "eviction",
        "the kubelet evicts before the kernel kills, or not",
        footer=True,
    ),
    Action(
        BindingGroup.SIMULATION,
        "restarts",
        ("R",),
        "restarts",
        "killed containers come back and need their memory again, or not",
        footer=True,
    ),
    Action(
        BindingGroup.SIMULATION,
        "explain",
        ("d",),
        "explain",
        "why the victim stands there; enter does the same",
        footer=True,
    ),
    Action(BindingGroup.SIMULATION, "notes", ("n",), "notes", "what is estimated, missing or assumed"),
    Action(BindingGroup.SIMULATION, "copy", ("c",), "copy", "copy it as text"),
    Action(
        BindingGroup.SIMULATION, "back", ("escape",), "back", "back to the list", footer=True, palette=False
    ),
    Action(
        BindingGroup.KILLS,
        "explain",
        ("d",),
        "explain",
        "why the pod stands where it stands now; enter does the same",
        footer=True,
    ),
    Action(
        BindingGroup.KILLS,
        "other",
        ("tab", "shift+tab"),
        "evidence",
        "the evidence, or the list",
        footer=True,
    ),
    Action(BindingGroup.KILLS, "copy", ("c",), "copy", "copy all deaths with their evidence", footer=True),
    Action(BindingGroup.KILLS, "notes", ("n",), "notes", "what could not be read"),
    Action(BindingGroup.KILLS, "back", ("escape",), "back", "back to the list", footer=True, palette=False),
    Action(BindingGroup.PATCH, "other", ("m", "tab"), "patch/manifest", "the other of the two", footer=True),
    Action(BindingGroup.PATCH, "copy", ("c",), "copy", "copy the text", footer=True),
    Action(BindingGroup.PATCH, "save", ("s", "ctrl+s"), "save", "save it to a file", footer=True),
    Action(BindingGroup.PATCH, "back", ("escape",), "back", "back to the ways", footer=True, palette=False),
    Action(
        BindingGroup.PROMPT,
        "complete",
        ("tab",),
        "complete",
        "take the completion",
        footer=True,
        palette=False,
    ),
    Action(BindingGroup.PROMPT, "earlier", ("up",), "earlier", "what was entered before", palette=False),
    Action(
        BindingGroup.PROMPT,
        "later",
        ("down",),
        "later",
        "what was entered after it, then what was typed",
        palette=False,
    ),
    Action(BindingGroup.PROMPT, "leave", ("escape",), "leave", "leave the line", footer=True, palette=False),
    Action(BindingGroup.FOLD, "fold", ("enter",), "fold", "fold or unfold the section", palette=False),
    Action(
        BindingGroup.FINDER, "above", ("up", "ctrl+p"), "above", "the one above", palette=False, priority=True
    ),
    Action(
        BindingGroup.FINDER,
        "below",
        ("down", "ctrl+n"),
        "below",
        "the one below",
        palette=False,
        priority=True,
    ),
    Action(
        BindingGroup.FINDER,
        "leave",
        ("escape",),
        "leave",
        "take nothing; enter takes the line",
        palette=False,
    ),
    Action(
        BindingGroup.COLUMNS, "show", ("space",), "show or hide", "show or hide the column", palette=False
    ),
    Action(
        BindingGroup.COLUMNS, "lower", ("J",), "down", "further down, which is to the right", palette=False
    ),
    Action(BindingGroup.COLUMNS, "raise", ("K",), "up", "further up, which is to the left", palette=False),
    Action(BindingGroup.COLUMNS, "fitting", ("d",), "as it fits", "no choice: what fits", palette=False),
    Action(BindingGroup.COLUMNS, "take", ("enter",), "take", "show these", palette=False),
    Action(BindingGroup.COLUMNS, "leave", ("escape",), "leave", "as before", palette=False),
    Action(BindingGroup.CHOOSE, "leave", ("escape",), "leave", "as it was; enter goes there", palette=False),
    Action(BindingGroup.CONFIRM, "yes", ("y",), "yes", "yes", palette=False),
    Action(BindingGroup.CONFIRM, "no", ("n", "escape"), "no", "no; nothing happens", palette=False),
    Action(
        BindingGroup.ASK,
        "leave",
        ("escape",),
        "leave",
        "leave without; enter takes the number",
        palette=False,
    ),
    Action(BindingGroup.SAVE, "leave", ("escape",), "leave", "leave without saving", palette=False),
    Action(
        BindingGroup.SHEET,
        "close",
        ("escape", "q", "question_mark", "f1"),
        "close",
        "close it",
        palette=False,
    ),
    Action(BindingGroup.APP, "help", ("question_mark", "f1"), "help", "keys, columns and marks", footer=True),
    Action(
        BindingGroup.APP,
        "previous",
        ("left_square_bracket", "alt+left"),
        "back",
        "the place where you were before",
    ),
    Action(
        BindingGroup.APP,
        "next_place",
        ("right_square_bracket", "alt+right"),
        "forward",
        "the place that you left with back",
    ),
    Action(BindingGroup.APP, "refresh", ("r",), "refresh", "ask again now"),
    Action(BindingGroup.APP, "pause", ("p",), "pause", "hold what is shown as it is, or go on"),
    Action(BindingGroup.APP, "picture", ("X",), "picture", "save a picture of the screen as svg or text"),
    Action(BindingGroup.APP, "undo", ("U",), "undo", "what was applied to clusters, and taking it back"),
    Action(
        BindingGroup.APP,
        "theme",
        ("t",),
        "theme",
        "the next theme: dark, light, high contrast, colour-blind safe",
    ),
    Action(
        BindingGroup.APP, "command_palette", ("ctrl+p",), "palette", "all of these by name", palette=False
    ),
    Action(
        BindingGroup.APP,
        "suspend",
        ("ctrl+z",),
        "suspend",
        "back to the shell, whose fg brings kubectl qos back",
        palette=False,
        priority=True,
    ),
    Action(BindingGroup.APP, "quit", ("q",), "quit", "leave kubectl qos", footer=True),
    Action(
        BindingGroup.APP,
        "interrupt",
        ("ctrl+c", "ctrl+q"),
        "quit",
        "leave kubectl qos, from anywhere",
        palette=False,
        priority=True,
    ),
)


TOGETHER: Final = (
    *(
        (room, BindingGroup.TABLE, BindingGroup.APP)
        for room in (
            BindingGroup.MAIN,
            BindingGroup.COLUMNS,
            BindingGroup.UNDO,
            BindingGroup.SIMULATION,
            BindingGroup.KILLS,
        )
    ),
    *(
        (room, BindingGroup.TEXT, BindingGroup.APP)
        for room in (
            BindingGroup.EXPLAIN,
            BindingGroup.TREE,
            BindingGroup.LANDING,
            BindingGroup.PROGRESS,
            BindingGroup.PATCH,
            BindingGroup.KILLS,
        )
    ),
    (BindingGroup.EXPLAIN, BindingGroup.FOLD, BindingGroup.TEXT, BindingGroup.APP),
)
"""Rooms whose keys are heard at the same time."""


def actions_in_group(room: BindingGroup) -> Iterator[Action]:
    """The actions of one room, in the order of the footer."""
    return (action for action in ACTIONS if action.room is room)


def bindings(room: BindingGroup) -> list[BindingType]:
    """A class's BINDINGS: each key of each action of the room."""
    return [
        Binding(
            ",".join(action.keys),
            action.verb,
            action.label,
            show=action.footer,
            tooltip=action.help,
            priority=action.priority,
            id=action.name,
        )
        for action in actions_in_group(room)
    ]


_SHOWN: Final = {
    "slash": "/",
    "colon": ":",
    "question_mark": "?",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "escape": "esc",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
}


def shown_key(key: str) -> str:
    """A key as people write it: `/`, `ctrl-f`, `S`."""
    return _SHOWN.get(key, key.replace("+", "-"))


class Keys:
    """The keys that actions have by now: their own, or those that the person's settings give them."""

    def __init__(self, changed: Mapping[str, Sequence[str]] = MappingProxyType({})) -> None:
        self._changed = changed

    def of(self, action: Action) -> tuple[str, ...]:
        """The keys of an action, in Textual's names."""
        return tuple(self._changed.get(action.name, action.keys))

    def shown(self, action: Action) -> str:
        """All of them, as people write them."""
        return " ".join(map(shown_key, self.of(action)))

    def first(self, name: str) -> str:
        """The first key of the action of that name, as a sentence mentions it."""
        return shown_key(self.of(_BY_NAME[name])[0])


_BY_NAME: Final = {action.name: action for action in ACTIONS}
