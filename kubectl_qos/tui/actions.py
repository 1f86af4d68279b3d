"""Every action of the UI with its keys and words: the source of footer, help, palette and docs/keys.md.

An action `group.verb` is the method `action_verb` of the class that binds the group: a screen or widget.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from enum import StrEnum
from itertools import accumulate
from types import MappingProxyType
from typing import Final

from textual.binding import Binding, BindingType


class BindingGroup(StrEnum):
    """Groups of actions, each of a screen or widget; the value is the heading in the help."""

    MAIN = "In a list"
    TABLE = "In a table"
    PROMPT = "In the prompt"
    EXPLAIN = "Explanation"
    TREE = "Cgroups of a node"
    COMPARE = "What if"
    FOLD = "On the title of a section"
    EDIT = "Edit"
    APPLY = "Apply a change"
    PROGRESS = "Progress of a change"
    PATCH = "Patch and manifest"
    UNDO = "Change history"
    SIMULATION = "Simulation"
    KILLS = "Kills"
    APP = "Everywhere"
    TEXT = "In a text"
    SAVE = "In the dialog for a file name"
    CONFIRM = "In a confirmation"
    NUMBER = "In the dialog for a number"
    PAST = "In the dialog for a time"
    SEARCH = "In a search"
    COLUMNS = "In the dialog for columns"
    SELECT = "In the dialog for contexts or fixes"
    READ = "YAML and log"
    HELP = "In notes"
    GUIDE = "In the help"


@dataclass(frozen=True, slots=True)
class Action:
    """What a key does. `keys_text` has the default keys in Textual's names; the default label is the verb.

    `footer`: shown in the footer, or on the border of a dialog; 0 is never, and larger numbers are left out
    first. `gap`: begins a group of keys in the footer. `palette`: is in the palette. `priority`: also works
    while an input has the focus. `yields`: settings may give its keys to another action.
    """

    verb: str
    keys_text: str
    help: str
    label: str = ""
    _: KW_ONLY
    footer: int = 0
    palette: bool = True
    priority: bool = False
    gap: bool = False
    yields: bool = False
    argument: str = ""
    group: BindingGroup = BindingGroup.APP

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", self.label or self.verb.replace("_", " "))

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self.keys_text.split())

    @property
    def name(self) -> str:
        verb = f"{self.verb}_{self.argument}" if self.argument else self.verb
        return f"{self.group.name.lower()}.{verb}"

    @property
    def meaning(self) -> str:
        return self.help if self.help.startswith(self.label) else f"{self.label}: {self.help}"

    @property
    def call(self) -> str:
        return f"{self.verb}({self.argument!r})" if self.argument else self.verb


def _sort(key: str, by: str, what: str) -> Action:
    return Action("sort_by", key, what, f"sort by {by}", palette=False, yields=True, argument=by)


def _list(kind: str, key: str, what: str, label: str) -> Action:
    return Action("list", key, what, label, argument=kind)


def _move(where: str, keys: str, what: str) -> Action:
    return Action("move", keys, what, where.replace("_", " "), argument=where)


def _scrolling(first: str, last: str) -> tuple[Action, ...]:
    return (
        Action("up", "up k", "up one line"),
        Action("down", "down j", "down one line"),
        Action("first", "home g", first),
        Action("last", "end G", last),
        Action("page_up", "pageup ctrl+b", "page up"),
        Action("page_down", "pagedown ctrl+f", "page down"),
    )


_BY_GROUP: Final = {
    BindingGroup.MAIN: (
        Action("explain", "d", "why this class, score and rank", footer=True),
        Action("edit", "e", "change requests and limits, with a preview", footer=True),
        Action("fix", "F", "fixes for the next deaths; enter fills one in", footer=True),
        Action("nearest", "exclamation_mark", "go to the next death of all nodes", "next death"),
        Action("tree", "v", "the cgroup tree of the pod's node, with its values", "cgroups"),
        Action("compare", "u", "what an upgrade or another setting would change", "what if"),
        Action("simulate", "o", "what is killed next on the node, as its memory fills", footer=2),
        Action("kills", "K", "what was killed, by which mechanism, and how certain that is", footer=True),
        Action("past", "at", "a past time of the last day, from Prometheus, with its deaths", "time"),
        Action("yaml", "y", "the object as the server has it", "YAML", footer=3, yields=True),
        Action("logs", "l", "the last lines of a container that has died", footer=3, yields=True),
        Action("owner", "J", "the workload of the pod", yields=True),
        Action("menu", "m", "what can be done with the row; a right click does the same", yields=True),
        Action(
            "filter", "slash", "text, !text, node:worker-2, -l app=web; see Filters", footer=True, gap=True
        ),
        Action("go_to", "colon", "type a command: po, dp, ns NAMESPACE, pod NAME, ctx …", footer=True),
        _list("clusters", "0", "the clusters of the kubeconfig; enter goes into one", "clusters"),
        _list("nodes", "1", "the nodes with their memory and next victims", "cluster"),
        _list("namespaces", "2", "the namespaces with the totals of their pods", "namespaces"),
        _list("workloads", "3", "Deployments and so on, by their worst rank", "workloads"),
        _list("pods", "4", "the pods in kill order", "pods"),
        _list("containers", "5", "the containers in kill order", "containers"),
        _list("deaths", "6", "the next deaths of all nodes, the most urgent first", "deaths"),
        Action("containers", "i", "the containers of the pod", "inside"),
        Action("next_pane", "tab", "the next pane", "panes", footer=2),
        Action("previous_pane", "shift+tab", "the previous pane", "back a pane"),
        Action("sort", "s", "sort by the next column", footer=2, gap=True),
        Action("reverse", "S", "reverse the order"),
        _sort("R", "rank", "the order in which the list is built"),
        _sort("N", "name", "its name; again: reversed"),
        _sort("P", "namespace", "its namespace"),
        _sort("O", "node", "the name of its node"),
        _sort("Q", "class", "the QoS class"),
        _sort("B", "score", "oom_score, the kernel's badness"),
        _sort("D", "adj", "oom_score_adj, which class and request decide"),
        _sort("M", "memory", "memory in use"),
        _sort("Z", "request", "memory requests"),
        _sort("L", "limit", "memory in use, of the limit"),
        _sort("T", "restarts", "how often containers have restarted"),
        _sort("I", "priority", "the pod's priority"),
        _sort("A", "age", "the youngest or the oldest first"),
        _sort("W", "risk", "the worst warning, or trouble"),
        Action("eviction", "E", "the pods in eviction order, or in kill order again", footer=2),
        Action("at_risk", "z", "only rows at risk: next victims, and flags of risk", "risk", footer=True),
        Action("wide", "w", "all columns, or those that fit", footer=2),
        Action("ages", "a", "ages, or the times of creation", yields=True),
        Action("find", "f", "go to a pod by some letters of its name"),
        Action("columns", "C", "choose the columns of the list and their order"),
        Action("mark", "space", "mark or unmark the row, for copying"),
        Action("copy", "c", "copy the marked rows, or the selected one"),
        Action("export", "x", "save the list as csv, json, yaml or text"),
        Action("notes", "n", "what is missing or assumed"),
        Action("back", "escape", "leave the pane; clear the filter; the previous location", palette=False),
    ),
    BindingGroup.TABLE: (
        *_scrolling("first line", "last line"),
        Action("left", "left", "columns to the left"),
        Action("right", "right", "columns to the right"),
        Action("select", "enter", "open the row: explain a pod, list the pods of anything else", "open"),
    ),
    BindingGroup.TEXT: _scrolling("the beginning", "the end"),
    BindingGroup.EXPLAIN: (
        Action("edit", "e", "change requests and limits", footer=True),
        Action("fix", "F", "fixes for its deaths; enter fills one in", footer=True),
        Action("tree", "v", "the cgroup tree of the pod's node, with its values", "cgroups", footer=2),
        Action("copy", "c", "copy all of it as text", footer=True),
        Action("next", "tab", "the next section; enter folds it", footer=True),
        Action("previous", "shift+tab", "the previous section"),
        Action("fold", "z", "fold or unfold every section", footer=True),
        Action("yaml", "y", "the object as the server has it", "YAML", footer=True, yields=True),
        Action("logs", "l", "the last lines of a container that has died", footer=True, yields=True),
        Action("back", "escape q", "back to the pods", footer=True, palette=False),
    ),
    BindingGroup.TREE: (
        Action("fold", "space", "fold or unfold the directory; enter does the same", footer=True),
        Action("fold_all", "z", "unfold everything, or fold every pod", "all", footer=True),
        Action("search", "slash", "show lines with a text; esc shows all", footer=True),
        Action("everything", "a", "show or hide limits of unused huge pages", "huge pages", footer=True),
        Action("notes", "n", "what is missing or assumed"),
        Action("copy", "c", "copy the tree as text", footer=True),
        Action("export", "x", "save every file with its path and content", footer=True),
        Action("back", "escape q", "back to the pods", footer=True, palette=False),
    ),
    BindingGroup.COMPARE: (
        Action("page_up", "pageup", "page up", priority=True),
        Action("page_down", "pagedown", "page down", priority=True),
        Action("copy", "ctrl+s", "copy the differences as text", footer=True, priority=True),
        Action("back", "escape", "back to the pods", footer=True, palette=False),
    ),
    BindingGroup.EDIT: (
        Action("apply", "ctrl+s", "apply in place, through the owner, or as a patch", footer=True),
        Action("guaranteed", "ctrl+g", "make requests equal to limits", "Guaranteed", footer=True),
        Action("outlive", "ctrl+o", "the least memory requests to be killed after another pod", footer=True),
        Action("rank", "ctrl+n", "the least memory requests for a kill rank of N or later", footer=True),
        Action("files", "ctrl+t", "fold or unfold the cgroup files that change", "cgroup", footer=True),
        Action("reset", "ctrl+r", "reset every field", footer=True),
        Action("below", "down", "the field below; tab goes to the next one"),
        Action("above", "up", "the field above; shift-tab goes to the previous one"),
        Action("page_up", "pageup ctrl+b", "scroll the preview one page up", priority=True),
        Action("page_down", "pagedown ctrl+f", "scroll the preview one page down", priority=True),
        Action("back", "escape", "leave; asks if something is not saved", footer=True),
    ),
    BindingGroup.APPLY: (
        Action("next_strategy", "tab", "the next strategy", "strategy", footer=True),
        Action("previous_strategy", "shift+tab", "previous strategy"),
        Action("dry_run", "d", "dry run by the server; nothing is changed", footer=True),
        Action("apply", "a", "dry run, confirmation, then send it", footer=True),
        Action("patch", "m", "the patch and the manifest, to save", footer=True),
        Action("trial", "f", "watch it for 10m, and revert it if it does not hold", footer=True),
        Action("copy", "c", "copy the request"),
        Action("reload", "l", "after a conflict: discard mine, reload", footer=True),
        Action("keep_mine", "o", "after a conflict: make the same change again", footer=True),
        Action("back", "escape q", "back to the fields; nothing is sent", footer=True),
    ),
    BindingGroup.PROGRESS: (
        Action(
            "back", "escape q", "leave; change and trial are still watched", "leave", footer=1, palette=False
        ),
    ),
    BindingGroup.UNDO: (
        Action("open", "u", "preview reverting it; enter does the same", "undo it", footer=True),
        Action("back", "escape q", "back to where you were", footer=True, palette=False),
    ),
    BindingGroup.SIMULATION: (
        Action("less", "left h", "less memory", footer=True, priority=True),
        Action("more", "right l", "more memory", footer=True, priority=True),
        Action("far_less", "shift+left H", "less, in larger steps", priority=True),
        Action("far_more", "shift+right L", "more, in larger steps", priority=True),
        Action("least", "home", "no memory", "nothing", priority=True),
        Action("most", "end", "all of the memory", "all of it", priority=True),
        Action("mode", "tab", "the next mode: what fills the memory", footer=True, priority=True),
        Action("previous_mode", "shift+tab", "previous mode", priority=True),
        Action("growing_pod", "f", "choose the pod that grows", "who grows"),
        Action("eviction", "E", "the kubelet evicts before the kernel kills, or not", footer=True),
        Action("restarts", "R", "killed containers restart and need memory again, or not", footer=True),
        Action("explain", "d", "explain the victim's rank; enter does the same", footer=True),
        Action("notes", "n", "what is estimated, missing or assumed"),
        Action("copy", "c", "copy it as text"),
        Action("back", "escape q", "back to the list", footer=True, palette=False),
    ),
    BindingGroup.KILLS: (
        Action("explain", "d", "explain the pod's rank now; enter does the same", footer=True),
        Action("fix", "F", "fixes for the deaths of the pod or its workload", footer=True),
        Action("next_pane", "tab shift+tab", "evidence or list", "evidence", footer=True),
        Action("copy", "c", "copy all kills with their evidence", footer=True),
        Action("logs", "l", "the last lines of the container that was killed", footer=True, yields=True),
        Action("notes", "n", "what could not be read"),
        Action("back", "escape q", "back to the list", footer=True, palette=False),
    ),
    BindingGroup.PATCH: (
        Action("other", "m tab", "the other of the two", "patch/manifest", footer=True),
        Action("copy", "c", "copy the text", footer=True),
        Action("save", "s ctrl+s", "save it to a file", footer=True),
        Action("back", "escape q", "back to the strategies", footer=True, palette=False),
    ),
    BindingGroup.PROMPT: (
        Action("complete", "tab", "take the completion", footer=True),
        Action("earlier", "up", "the previous entry"),
        Action("later", "down", "the next entry, then what was typed"),
        Action("leave", "escape", "leave the prompt", footer=True),
    ),
    BindingGroup.FOLD: (Action("fold", "enter", "fold or unfold the section"),),
    BindingGroup.SEARCH: (
        Action("above", "up ctrl+p", "up one line", priority=True),
        Action("below", "down ctrl+n", "down one line", priority=True),
        Action("leave", "escape", "cancel; enter takes the line", "cancel", footer=True),
    ),
    BindingGroup.COLUMNS: (
        Action("take", "enter", "show these", footer=True),
        Action("show", "space", "show or hide the column", "show or hide", footer=True),
        Action("lower", "J", "down: further right in the list", "down", footer=True),
        Action("raise", "K", "up: further left in the list", "up", footer=True),
        Action("fitting", "d", "default: the columns that fit", "default", footer=True),
        Action("leave", "escape q", "cancel", "cancel", footer=True),
    ),
    BindingGroup.SELECT: (
        Action("leave", "escape q", "cancel; enter takes the line", "cancel", footer=True),
    ),
    BindingGroup.CONFIRM: (
        Action("yes", "y", "yes", footer=True),
        Action("no", "n escape", "no; nothing happens", footer=True),
    ),
    BindingGroup.NUMBER: (
        Action("leave", "escape", "cancel; enter takes the number", "cancel", footer=True),
    ),
    BindingGroup.PAST: (
        _move("earlier", "left h", "five minutes"),
        _move("later", "right l", "five minutes"),
        _move("far_earlier", "shift+left H", "an hour"),
        _move("far_later", "shift+right L", "an hour"),
        _move("begin", "home g", "the first time that the store has"),
        _move("next_death", "tab down j", "the minute before it"),
        _move("previous_death", "shift+tab up k", "the minute before it"),
        Action("take", "enter", "go to that time", "go there"),
        Action("present", "end G", "back to the cluster as it is", "the present"),
        Action("leave", "escape q", "cancel", footer=True),
    ),
    BindingGroup.SAVE: (Action("leave", "escape", "cancel without saving", "cancel", footer=True),),
    BindingGroup.READ: (
        Action("copy", "c", "copy all of it", footer=True),
        Action("save", "x", "save it to a file", footer=True),
        Action("back", "escape q", "back to where you were", footer=True, palette=False),
    ),
    BindingGroup.HELP: (Action("close", "escape q question_mark f1", "close it", footer=True),),
    BindingGroup.GUIDE: (
        Action("up", "up", "up one line", priority=True),
        Action("down", "down", "down one line", priority=True),
        Action("page_up", "pageup ctrl+b", "page up", priority=True),
        Action("page_down", "pagedown ctrl+f", "page down", priority=True),
        Action("close", "escape f1", "close the help; ? does the same at first", footer=True, priority=True),
    ),
    BindingGroup.APP: (
        Action("help", "question_mark f1", "the keys of this screen, then all others", footer=True, gap=True),
        Action("previous", "left_square_bracket alt+left", "the previous location", "back"),
        Action("next", "right_square_bracket alt+right", "the next location, after back", "forward"),
        Action("refresh", "r", "refresh now"),
        Action("pause", "p", "pause or resume updates"),
        Action("save_screenshot", "X", "save a screenshot as svg or text", "screenshot"),
        Action("undo", "U", "the change history, to revert a change"),
        Action(
            "theme",
            "t",
            "the next theme: dark, light, high contrast, colour-blind safe, the terminal's own, yours",
        ),
        Action("command_palette", "ctrl+p", "all commands by name", "palette", palette=False),
        Action(
            "redraw",
            "ctrl+l",
            "redraw the screen after another program wrote to the terminal",
            priority=True,
        ),
        Action("suspend", "ctrl+z", "back to the shell; fg resumes", palette=False, priority=True),
        Action("quit", "q", "leave kubectl qos", footer=True),
        Action("interrupt", "ctrl+c ctrl+q", "leave from anywhere", "quit", palette=False, priority=True),
    ),
}

ACTIONS: Final = tuple(
    replace(action, group=group) for group, actions in _BY_GROUP.items() for action in actions
)


def _together(shared: BindingGroup, *groups: BindingGroup) -> Iterator[tuple[BindingGroup, ...]]:
    return ((group, shared, BindingGroup.APP) for group in groups)


TOGETHER: Final = (
    *_together(
        BindingGroup.TABLE,
        BindingGroup.MAIN,
        BindingGroup.COLUMNS,
        BindingGroup.UNDO,
        BindingGroup.SIMULATION,
        BindingGroup.KILLS,
        BindingGroup.TREE,
    ),
    *_together(
        BindingGroup.TEXT,
        BindingGroup.EXPLAIN,
        BindingGroup.APPLY,
        BindingGroup.PROGRESS,
        BindingGroup.PATCH,
        BindingGroup.READ,
        BindingGroup.KILLS,
    ),
    (BindingGroup.EXPLAIN, BindingGroup.FOLD, BindingGroup.TEXT, BindingGroup.APP),
)
"""Groups that are active at the same time."""


def actions_in_group(group: BindingGroup) -> Iterator[Action]:
    """Yield the actions of one group, in the order of the footer."""
    return (action for action in ACTIONS if action.group is group)


def footer_sections() -> Mapping[str, tuple[BindingGroup, int]]:
    """Return the section of the footer that an action belongs to, by the action's name."""
    gaps = accumulate(action.gap for action in ACTIONS)
    return {action.name: (action.group, gap) for action, gap in zip(ACTIONS, gaps, strict=True)}


def bindings(group: BindingGroup) -> list[BindingType]:
    """Return the BINDINGS of the class that has the group."""
    return [
        Binding(
            ",".join(action.keys),
            action.call,
            action.label,
            show=bool(action.footer),
            tooltip=action.help,
            priority=action.priority,
            id=action.name,
        )
        for action in actions_in_group(group)
    ]


_SHOWN: Final = {
    "slash": "/",
    "colon": ":",
    "at": "@",
    "exclamation_mark": "!",
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
    """Return a key as people write it: `/`, `ctrl-f`, `S`."""
    return _SHOWN.get(key, key.replace("+", "-"))


class Keys:
    """The keys of actions: the default ones, or those of the person's settings."""

    def __init__(self, changed: Mapping[str, Sequence[str]] = MappingProxyType({})) -> None:
        self._changed = changed
        self._taken = {(name.partition(".")[0], key) for name, keys in changed.items() for key in keys}

    def of(self, action: Action) -> tuple[str, ...]:
        """Return the keys of an action in Textual's names; none if it yields and others have taken them."""
        if action.name in self._changed or not action.yields:
            return tuple(self._changed.get(action.name, action.keys))
        group = action.group.name.lower()
        return tuple([key for key in action.keys if (group, key) not in self._taken])

    def shown(self, action: Action) -> str:
        return " ".join(map(shown_key, self.of(action)))

    def first(self, name: str) -> str:
        """Return the first key of an action as people write it, for a sentence."""
        return shown_key(next(iter(self.of(BY_NAME[name])), ""))


BY_NAME: Final = {action.name: action for action in ACTIONS}
