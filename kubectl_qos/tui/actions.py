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


class Room(StrEnum):
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

    room: Room
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
    return Action(Room.TABLE, verb, keys, label, text, palette=False)


def _text(verb: str, keys: tuple[str, ...], label: str, text: str) -> Action:
    return Action(Room.TEXT, verb, keys, label, text, palette=False)


ACTIONS: Final = (
    Action(Room.MAIN, "explain", ("d",), "explain", "why this class, score and rank", footer=True),
    Action(Room.MAIN, "edit", ("e",), "edit", "change requests and limits, with a preview", footer=True),
    Action(Room.MAIN, "tree", ("v",), "cgroups", "the cgroup tree of the pod's node, with its values"),
    Action(Room.MAIN, "compare", ("u",), "what if", "what an upgrade or another setting would change"),
    Action(
        Room.MAIN,
        "simulate",
        ("o",),
        "simulate",
        "who dies next on the node, and after that, as its memory fills",
    ),
    Action(Room.MAIN, "kills", ("K",), "kills", "what was killed, by which mechanism, and how sure that is"),
    Action(
        Room.MAIN,
        "filter",
        ("slash",),
        "filter",
        "show only some pods: /text, /!text, /node:worker-2, /-l app=web; see Filters",
        footer=True,
    ),
    Action(
        Room.MAIN,
        "go_to",
        ("colon",),
        "go to",
        "nodes, node NAME, ns, workloads, pods NAMESPACE, sim, kills, ctx and so on",
        footer=True,
    ),
    Action(Room.MAIN, "list_nodes", ("1",), "cluster", "the nodes with their memory and next victims"),
    Action(Room.MAIN, "list_namespaces", ("2",), "namespaces", "the namespaces with their pods added up"),
    Action(Room.MAIN, "list_workloads", ("3",), "workloads", "Deployments and so on, by their worst rank"),
    Action(Room.MAIN, "list_pods", ("4",), "pods", "the pods in kill order"),
    Action(Room.MAIN, "list_containers", ("5",), "containers", "the containers in kill order"),
    Action(Room.MAIN, "containers", ("i",), "inside", "the containers of the pod"),
    Action(Room.MAIN, "next_pane", ("tab",), "panes", "the next pane", footer=True),
    Action(Room.MAIN, "previous_pane", ("shift+tab",), "back a pane", "the previous pane"),
    Action(Room.MAIN, "sort", ("s",), "sort", "sort by the next column", footer=True),
    Action(Room.MAIN, "turn", ("S",), "turn", "sort the other way round"),
    Action(Room.MAIN, "at_risk", ("z",), "risk", "only those with a flag of risk, or all", footer=True),
    Action(Room.MAIN, "wide", ("w",), "wide", "all columns, or those that fit", footer=True),
    Action(Room.MAIN, "find", ("f",), "find", "go to a pod by some letters of its name"),
    Action(Room.MAIN, "columns", ("C",), "columns", "choose the columns of the list and their order"),
    Action(Room.MAIN, "mark", ("space",), "mark", "mark or unmark the line, for copying"),
    Action(Room.MAIN, "copy", ("c",), "copy", "copy the marked rows, or the selected one"),
    Action(Room.MAIN, "export", ("x",), "export", "save what is shown as csv, json, yaml or text"),
    Action(Room.MAIN, "notes", ("n",), "notes", "what is missing or assumed"),
    Action(
        Room.MAIN,
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
    Action(Room.EXPLAIN, "edit", ("e",), "edit", "change requests and limits", footer=True),
    Action(Room.EXPLAIN, "copy", ("c",), "copy", "copy all of it as text", footer=True),
    Action(Room.EXPLAIN, "next", ("tab",), "next", "the next section; enter folds it", footer=True),
    Action(Room.EXPLAIN, "previous", ("shift+tab",), "previous", "the previous section"),
    Action(Room.EXPLAIN, "fold", ("z",), "fold", "fold or unfold every section", footer=True),
    Action(Room.EXPLAIN, "back", ("escape",), "back", "back to the pods", footer=True, palette=False),
    Action(Room.TREE, "copy", ("c",), "copy", "copy the tree as text", footer=True),
    Action(Room.TREE, "export", ("x",), "export", "save every file with its path and content", footer=True),
    Action(Room.TREE, "back", ("escape",), "back", "back to the pods", footer=True, palette=False),
    Action(Room.COMPARE, "page_up", ("pageup",), "page up", "a page up", priority=True),
    Action(Room.COMPARE, "page_down", ("pagedown",), "page down", "a page down", priority=True),
    Action(
        Room.COMPARE, "copy", ("ctrl+s",), "copy", "copy what changes as text", footer=True, priority=True
    ),
    Action(Room.COMPARE, "back", ("escape",), "back", "back to the pods", footer=True, palette=False),
    Action(
        Room.EDIT,
        "land",
        ("ctrl+s",),
        "land",
        "how it can land: in place, through the owner, as a patch; with dry run and apply",
        footer=True,
    ),
    Action(
        Room.EDIT,
        "guaranteed",
        ("ctrl+g",),
        "Guaranteed",
        "requests equal to limits wherever a number is known",
        footer=True,
    ),
    Action(
        Room.EDIT,
        "outlive",
        ("ctrl+o",),
        "outlive",
        "the least memory requests with which it is killed after a pod that you choose",
        footer=True,
    ),
    Action(
        Room.EDIT,
        "rank",
        ("ctrl+n",),
        "rank",
        "the least memory requests with which its kill rank is N or later",
        footer=True,
    ),
    Action(Room.EDIT, "reset", ("ctrl+r",), "reset", "every field as it was", footer=True),
    Action(Room.EDIT, "below", ("down",), "below", "the field below; tab goes to the next one"),
    Action(Room.EDIT, "above", ("up",), "above", "the field above; shift-tab goes to the one before"),
    Action(Room.EDIT, "page_up", ("pageup", "ctrl+b"), "page up", "the preview a page up", priority=True),
    Action(
        Room.EDIT, "page_down", ("pagedown", "ctrl+f"), "page down", "the preview a page down", priority=True
    ),
    Action(Room.EDIT, "back", ("escape",), "back", "leave; asks if something is not saved", footer=True),
    Action(Room.LANDING, "other", ("tab",), "way", "the next way to land it", footer=True),
    Action(Room.LANDING, "previous_way", ("shift+tab",), "way before", "the way to land it before this one"),
    Action(
        Room.LANDING, "dry_run", ("d",), "dry run", "ask the server what it would make of it", footer=True
    ),
    Action(
        Room.LANDING, "apply", ("a",), "apply", "dry run, then a question, and then it is sent", footer=True
    ),
    Action(Room.LANDING, "patch", ("m",), "patch", "the patch and the manifest, to save", footer=True),
    Action(Room.LANDING, "copy", ("c",), "copy", "copy the request"),
    Action(
        Room.LANDING,
        "look",
        ("l",),
        "look again",
        "give ours up and edit what is there now, where someone else changed it",
        footer=True,
    ),
    Action(
        Room.LANDING,
        "ours",
        ("o",),
        "keep ours",
        "the same change of what is there now, where someone else changed it",
        footer=True,
    ),
    Action(Room.LANDING, "back", ("escape",), "back", "back to the fields; nothing is sent", footer=True),
    Action(
        Room.PROGRESS,
        "back",
        ("escape",),
        "leave",
        "look no longer; what was sent goes on",
        footer=True,
        palette=False,
    ),
    Action(
        Room.UNDO,
        "open",
        ("u",),
        "undo it",
        "what taking it back would do, and the way there; enter does the same",
        footer=True,
    ),
    Action(Room.UNDO, "back", ("escape",), "back", "back to where you were", footer=True, palette=False),
    Action(Room.SIMULATION, "less", ("left", "h"), "less", "less memory", footer=True, priority=True),
    Action(Room.SIMULATION, "more", ("right", "l"), "more", "more memory", footer=True, priority=True),
    Action(
        Room.SIMULATION, "far_less", ("shift+left", "H"), "far less", "less, in larger steps", priority=True
    ),
    Action(
        Room.SIMULATION, "far_more", ("shift+right", "L"), "far more", "more, in larger steps", priority=True
    ),
    Action(Room.SIMULATION, "least", ("home",), "nothing", "no memory", priority=True),
    Action(Room.SIMULATION, "most", ("end",), "all of it", "as much memory as there is", priority=True),
    Action(
        Room.SIMULATION,
        "mode",
        ("tab",),
        "mode",
        "memory is freed, a pod grows, all grow to their limits, all grow until the first is hit",
        footer=True,
        priority=True,
    ),
    Action(Room.SIMULATION, "mode_before", ("shift+tab",), "mode before", "the other way", priority=True),
    Action(Room.SIMULATION, "who", ("f",), "who grows", "choose the pod that grows"),
    Action(
        Room.SIMULATION,
        "eviction",
        ("E",),
        "eviction",
        "the kubelet evicts before the kernel kills, or not",
        footer=True,
    ),
    Action(
        Room.SIMULATION,
        "restarts",
        ("R",),
        "restarts",
        "killed containers come back and need their memory again, or not",
        footer=True,
    ),
    Action(
        Room.SIMULATION,
        "explain",
        ("d",),
        "explain",
        "why the victim stands there; enter does the same",
        footer=True,
    ),
    Action(Room.SIMULATION, "notes", ("n",), "notes", "what is estimated, missing or assumed"),
    Action(Room.SIMULATION, "copy", ("c",), "copy", "copy it as text"),
    Action(Room.SIMULATION, "back", ("escape",), "back", "back to the list", footer=True, palette=False),
    Action(
        Room.KILLS,
        "explain",
        ("d",),
        "explain",
        "why the pod stands where it stands now; enter does the same",
        footer=True,
    ),
    Action(Room.KILLS, "other", ("tab", "shift+tab"), "evidence", "the evidence, or the list", footer=True),
    Action(Room.KILLS, "copy", ("c",), "copy", "copy all deaths with their evidence", footer=True),
    Action(Room.KILLS, "notes", ("n",), "notes", "what could not be read"),
    Action(Room.KILLS, "back", ("escape",), "back", "back to the list", footer=True, palette=False),
    Action(Room.PATCH, "other", ("m", "tab"), "patch/manifest", "the other of the two", footer=True),
    Action(Room.PATCH, "copy", ("c",), "copy", "copy the text", footer=True),
    Action(Room.PATCH, "save", ("s", "ctrl+s"), "save", "save it to a file", footer=True),
    Action(Room.PATCH, "back", ("escape",), "back", "back to the ways", footer=True, palette=False),
    Action(Room.PROMPT, "complete", ("tab",), "complete", "take the completion", footer=True, palette=False),
    Action(Room.PROMPT, "earlier", ("up",), "earlier", "what was entered before", palette=False),
    Action(
        Room.PROMPT,
        "later",
        ("down",),
        "later",
        "what was entered after it, then what was typed",
        palette=False,
    ),
    Action(Room.PROMPT, "leave", ("escape",), "leave", "leave the line", footer=True, palette=False),
    Action(Room.FOLD, "fold", ("enter",), "fold", "fold or unfold the section", palette=False),
    Action(Room.FINDER, "above", ("up", "ctrl+p"), "above", "the one above", palette=False, priority=True),
    Action(Room.FINDER, "below", ("down", "ctrl+n"), "below", "the one below", palette=False, priority=True),
    Action(
        Room.FINDER,
        "leave",
        ("escape",),
        "leave",
        "take nothing; enter takes the line",
        palette=False,
    ),
    Action(Room.COLUMNS, "show", ("space",), "show or hide", "show or hide the column", palette=False),
    Action(Room.COLUMNS, "lower", ("J",), "down", "further down, which is to the right", palette=False),
    Action(Room.COLUMNS, "raise", ("K",), "up", "further up, which is to the left", palette=False),
    Action(Room.COLUMNS, "fitting", ("d",), "as it fits", "no choice: what fits", palette=False),
    Action(Room.COLUMNS, "take", ("enter",), "take", "show these", palette=False),
    Action(Room.COLUMNS, "leave", ("escape",), "leave", "as before", palette=False),
    Action(Room.CHOOSE, "leave", ("escape",), "leave", "as it was; enter goes there", palette=False),
    Action(Room.CONFIRM, "yes", ("y",), "yes", "yes", palette=False),
    Action(Room.CONFIRM, "no", ("n", "escape"), "no", "no; nothing happens", palette=False),
    Action(Room.ASK, "leave", ("escape",), "leave", "leave without; enter takes the number", palette=False),
    Action(Room.SAVE, "leave", ("escape",), "leave", "leave without saving", palette=False),
    Action(Room.SHEET, "close", ("escape", "q", "question_mark", "f1"), "close", "close it", palette=False),
    Action(Room.APP, "help", ("question_mark", "f1"), "help", "keys, columns and marks", footer=True),
    Action(
        Room.APP, "previous", ("left_square_bracket", "alt+left"), "back", "the place where you were before"
    ),
    Action(
        Room.APP,
        "next_place",
        ("right_square_bracket", "alt+right"),
        "forward",
        "the place that you left with back",
    ),
    Action(Room.APP, "refresh", ("r",), "refresh", "ask again now"),
    Action(Room.APP, "pause", ("p",), "pause", "hold what is shown as it is, or go on"),
    Action(Room.APP, "picture", ("X",), "picture", "save a picture of the screen as svg or text"),
    Action(Room.APP, "undo", ("U",), "undo", "what was applied to clusters, and taking it back"),
    Action(
        Room.APP, "theme", ("t",), "theme", "the next theme: dark, light, high contrast, colour-blind safe"
    ),
    Action(Room.APP, "command_palette", ("ctrl+p",), "palette", "all of these by name", palette=False),
    Action(
        Room.APP,
        "suspend",
        ("ctrl+z",),
        "suspend",
        "back to the shell, whose fg brings kubectl qos back",
        palette=False,
        priority=True,
    ),
    Action(Room.APP, "quit", ("q",), "quit", "leave kubectl qos", footer=True),
    Action(
        Room.APP,
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
        (room, Room.TABLE, Room.APP)
        for room in (Room.MAIN, Room.COLUMNS, Room.UNDO, Room.SIMULATION, Room.KILLS)
    ),
    *(
        (room, Room.TEXT, Room.APP)
        for room in (Room.EXPLAIN, Room.TREE, Room.LANDING, Room.PROGRESS, Room.PATCH, Room.KILLS)
    ),
    (Room.EXPLAIN, Room.FOLD, Room.TEXT, Room.APP),
)
"""Rooms whose keys are heard at the same time."""


def of_room(room: Room) -> Iterator[Action]:
    """The actions of one room, in the order of the footer."""
    return (action for action in ACTIONS if action.room is room)


def bindings(room: Room) -> list[BindingType]:
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
        for action in of_room(room)
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
