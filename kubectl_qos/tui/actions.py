"""Every action of the UI with its keys and words: the source of footer, help, palette and docs/keys.md.

An action `group.verb` is the method `action_verb` of the class that binds the group: a screen or widget.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import accumulate
from types import MappingProxyType
from typing import Final

from textual.binding import Binding, BindingType


class BindingGroup(StrEnum):
    """The places of actions; the value is the heading in the help screen."""

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
    """One thing that a key does; `keys` are Textual's names.

    The bottom line, or the border of a dialog, shows it unless `footer` is 0; the largest numbers need room.
    With a `gap` it begins a group of keys there. `palette` False keeps it out of the palette of its screen; a
    `priority` key also works while an input has the focus. The settings may give keys of one that `yields` to
    another action.
    """

    verb: str
    keys: tuple[str, ...]
    help: str
    label: str
    footer: int = 0
    palette: bool = True
    priority: bool = False
    gap: bool = False
    yields: bool = False
    argument: str = ""
    group: BindingGroup = BindingGroup.APP

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


def _action(  # noqa: PLR0913 - the declaration of a key
    verb: str,
    keys: str,
    help: str,  # noqa: A002 - as the field is called
    label: str = "",
    *,
    footer: int = 0,
    palette: bool = True,
    priority: bool = False,
    gap: bool = False,
    yields: bool = False,
) -> Action:
    """Return an action; its label is its verb unless another is given."""
    name = label or verb.replace("_", " ")
    return Action(verb, tuple(keys.split()), help, name, footer, palette, priority, gap, yields)


def _sort(key: str, by: str, what: str) -> Action:
    return Action("sort_by", (key,), what, f"sort by {by}", palette=False, yields=True, argument=by)


def _list(kind: str, key: str, what: str, label: str) -> Action:
    return Action("list", (key,), what, label, argument=kind)


def _move(where: str, keys: str, what: str) -> Action:
    return Action("move", tuple(keys.split()), what, where.replace("_", " "), argument=where)


def _scrolling(first: str, last: str) -> tuple[Action, ...]:
    return (
        _action("up", "up k", "one line up"),
        _action("down", "down j", "one line down"),
        _action("first", "home g", first),
        _action("last", "end G", last),
        _action("page_up", "pageup ctrl+b", "one page up"),
        _action("page_down", "pagedown ctrl+f", "one page down"),
    )


_BY_GROUP: Final = {
    BindingGroup.MAIN: (
        _action("explain", "d", "why this class, score and rank", footer=True),
        _action("edit", "e", "change requests and limits, with a preview", footer=True),
        _action("fix", "F", "what to change about the next deaths; enter fills it in", footer=True),
        _action("nearest", "exclamation_mark", "go to the next death of all nodes", "next death"),
        _action("tree", "v", "the cgroup tree of the pod's node, with its values", "cgroups"),
        _action("compare", "u", "what an upgrade or another setting would change", "what if"),
        _action("simulate", "o", "what is killed next on the node, as its memory fills", footer=2),
        _action("kills", "K", "what was killed, by which mechanism, and how sure that is", footer=True),
        _action(
            "past", "at", "another time of the last day, from Prometheus, where deaths are marked", "time"
        ),
        _action("yaml", "y", "the object as the server has it", "YAML", footer=3, yields=True),
        _action("logs", "l", "the last lines of a container that has died", footer=3, yields=True),
        _action("owner", "J", "the workload of the pod", yields=True),
        _action("menu", "m", "what can be done with the row; a right click does the same", yields=True),
        _action(
            "filter", "slash", "text, !text, node:worker-2, -l app=web; see Filters", footer=True, gap=True
        ),
        _action("go_to", "colon", "type a command: po, dp, ns NAMESPACE, pod NAME, ctx …", footer=True),
        _list("clusters", "0", "the clusters of the kubeconfig; enter goes into one", "clusters"),
        _list("nodes", "1", "the nodes with their memory and next victims", "cluster"),
        _list("namespaces", "2", "the namespaces with the totals of their pods", "namespaces"),
        _list("workloads", "3", "Deployments and so on, by their worst rank", "workloads"),
        _list("pods", "4", "the pods in kill order", "pods"),
        _list("containers", "5", "the containers in kill order", "containers"),
        _list("deaths", "6", "every death that waits on the nodes, the most urgent first", "deaths"),
        _action("containers", "i", "the containers of the pod", "inside"),
        _action("next_pane", "tab", "the next pane", "panes", footer=2),
        _action("previous_pane", "shift+tab", "the previous pane", "back a pane"),
        _action("sort", "s", "sort by the next column", footer=2, gap=True),
        _action("reverse", "S", "reverse the order"),
        _sort("R", "rank", "the order in which the list is built"),
        _sort("N", "name", "that of what is listed; again: reversed"),
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
        _action("eviction", "E", "the pods in eviction order, or in kill order again", footer=2),
        _action(
            "at_risk", "z", "only those at risk: the next deaths, and flags of risk", "risk", footer=True
        ),
        _action("wide", "w", "all columns, or those that fit", footer=2),
        _action("ages", "a", "ages, or the times of creation", yields=True),
        _action("find", "f", "go to a pod by some letters of its name"),
        _action("columns", "C", "choose the columns of the list and their order"),
        _action("mark", "space", "mark or unmark the row, for copying"),
        _action("copy", "c", "copy the marked rows, or the selected one"),
        _action("export", "x", "save the list as csv, json, yaml or text"),
        _action("notes", "n", "what is missing or assumed"),
        _action("back", "escape", "leave the pane; clear the filter; the previous location", palette=False),
    ),
    BindingGroup.TABLE: (
        *_scrolling("the first line", "the last line"),
        _action("left", "left", "columns to the left"),
        _action("right", "right", "columns to the right"),
        _action("select", "enter", "open the row: explain a pod, list the pods of anything else", "open"),
    ),
    BindingGroup.TEXT: _scrolling("the beginning", "the end"),
    BindingGroup.EXPLAIN: (
        _action("edit", "e", "change requests and limits", footer=True),
        _action("fix", "F", "what to change about its deaths; enter fills it in", footer=True),
        _action("tree", "v", "the cgroup tree of the pod's node, with its values", "cgroups", footer=2),
        _action("copy", "c", "copy all of it as text", footer=True),
        _action("next", "tab", "the next section; enter folds it", footer=True),
        _action("previous", "shift+tab", "the previous section"),
        _action("fold", "z", "fold or unfold every section", footer=True),
        _action("yaml", "y", "the object as the server has it", "YAML", footer=True, yields=True),
        _action("logs", "l", "the last lines of a container that has died", footer=True, yields=True),
        _action("back", "escape q", "back to the pods", footer=True, palette=False),
    ),
    BindingGroup.TREE: (
        _action("fold", "space", "fold or unfold the directory; enter does the same", footer=True),
        _action("fold_all", "z", "unfold everything, or fold every pod", "all", footer=True),
        _action("search", "slash", "show what has a text; esc ends it", footer=True),
        _action(
            "everything", "a", "show or hide limits of huge pages that nobody uses", "huge pages", footer=True
        ),
        _action("notes", "n", "what is missing or assumed"),
        _action("copy", "c", "copy the tree as text", footer=True),
        _action("export", "x", "save every file with its path and content", footer=True),
        _action("back", "escape q", "back to the pods", footer=True, palette=False),
    ),
    BindingGroup.COMPARE: (
        _action("page_up", "pageup", "one page up", priority=True),
        _action("page_down", "pagedown", "one page down", priority=True),
        _action("copy", "ctrl+s", "copy the differences as text", footer=True, priority=True),
        _action("back", "escape", "back to the pods", footer=True, palette=False),
    ),
    BindingGroup.EDIT: (
        _action("apply", "ctrl+s", "how to apply it: in place, through the owner, as a patch", footer=True),
        _action("guaranteed", "ctrl+g", "make requests equal to limits", "Guaranteed", footer=True),
        _action("outlive", "ctrl+o", "the least memory requests to be killed after another pod", footer=True),
        _action("rank", "ctrl+n", "the least memory requests for a kill rank of N or later", footer=True),
        _action("files", "ctrl+t", "fold or unfold the cgroup files that change", "cgroup", footer=True),
        _action("reset", "ctrl+r", "reset every field", footer=True),
        _action("below", "down", "the field below; tab goes to the next one"),
        _action("above", "up", "the field above; shift-tab goes to the previous one"),
        _action("page_up", "pageup ctrl+b", "scroll the preview one page up", priority=True),
        _action("page_down", "pagedown ctrl+f", "scroll the preview one page down", priority=True),
        _action("back", "escape", "leave; asks if something is not saved", footer=True),
    ),
    BindingGroup.APPLY: (
        _action("next_strategy", "tab", "the next strategy", "strategy", footer=True),
        _action("previous_strategy", "shift+tab", "the previous strategy"),
        _action("dry_run", "d", "a dry run: what the server would make of it", footer=True),
        _action("apply", "a", "dry run, confirmation, then send it", footer=True),
        _action("patch", "m", "the patch and the manifest, to save", footer=True),
        _action("trial", "f", "follow it for 10m, and revert it if it does not hold", footer=True),
        _action("copy", "c", "copy the request"),
        _action("reload", "l", "after a conflict: discard mine, reload", footer=True),
        _action("keep_mine", "o", "after a conflict: make the same change again", footer=True),
        _action("back", "escape q", "back to the fields; nothing is sent", footer=True),
    ),
    BindingGroup.PROGRESS: (
        _action("back", "escape q", "change and trial are followed on", "leave", footer=1, palette=False),
    ),
    BindingGroup.UNDO: (
        _action("open", "u", "preview reverting it; enter does the same", "undo it", footer=True),
        _action("back", "escape q", "back to where you were", footer=True, palette=False),
    ),
    BindingGroup.SIMULATION: (
        _action("less", "left h", "less memory", footer=True, priority=True),
        _action("more", "right l", "more memory", footer=True, priority=True),
        _action("far_less", "shift+left H", "less, in larger steps", priority=True),
        _action("far_more", "shift+right L", "more, in larger steps", priority=True),
        _action("least", "home", "no memory", "nothing", priority=True),
        _action("most", "end", "as much memory as there is", "all of it", priority=True),
        _action("mode", "tab", "the next mode: what fills the memory", footer=True, priority=True),
        _action("previous_mode", "shift+tab", "the previous mode", priority=True),
        _action("growing_pod", "f", "choose the pod that grows", "who grows"),
        _action("eviction", "E", "the kubelet evicts before the kernel kills, or not", footer=True),
        _action("restarts", "R", "killed containers restart and need memory again, or not", footer=True),
        _action("explain", "d", "explain the victim's rank; enter does the same", footer=True),
        _action("notes", "n", "what is estimated, missing or assumed"),
        _action("copy", "c", "copy it as text"),
        _action("back", "escape q", "back to the list", footer=True, palette=False),
    ),
    BindingGroup.KILLS: (
        _action("explain", "d", "explain the pod's rank now; enter does the same", footer=True),
        _action("fix", "F", "what to change about the deaths of the pod or its workload", footer=True),
        _action("next_pane", "tab shift+tab", "the evidence, or the list", "evidence", footer=True),
        _action("copy", "c", "copy all kills with their evidence", footer=True),
        _action("logs", "l", "the last lines of the container that was killed", footer=True, yields=True),
        _action("notes", "n", "what could not be read"),
        _action("back", "escape q", "back to the list", footer=True, palette=False),
    ),
    BindingGroup.PATCH: (
        _action("other", "m tab", "the other of the two", "patch/manifest", footer=True),
        _action("copy", "c", "copy the text", footer=True),
        _action("save", "s ctrl+s", "save it to a file", footer=True),
        _action("back", "escape q", "back to the strategies", footer=True, palette=False),
    ),
    BindingGroup.PROMPT: (
        _action("complete", "tab", "take the completion", footer=True),
        _action("earlier", "up", "the previous entry"),
        _action("later", "down", "the next entry, then what was typed"),
        _action("leave", "escape", "leave the prompt", footer=True),
    ),
    BindingGroup.FOLD: (_action("fold", "enter", "fold or unfold the section"),),
    BindingGroup.SEARCH: (
        _action("above", "up ctrl+p", "one line up", priority=True),
        _action("below", "down ctrl+n", "one line down", priority=True),
        _action("leave", "escape", "cancel; enter takes the line", "cancel", footer=True),
    ),
    BindingGroup.COLUMNS: (
        _action("take", "enter", "show these", footer=True),
        _action("show", "space", "show or hide the column", "show or hide", footer=True),
        _action("lower", "J", "further down, which is to the right", "down", footer=True),
        _action("raise", "K", "further up, which is to the left", "up", footer=True),
        _action("fitting", "d", "the default: the columns that fit", "default", footer=True),
        _action("leave", "escape q", "cancel", "cancel", footer=True),
    ),
    BindingGroup.SELECT: (
        _action("leave", "escape q", "cancel; enter takes the line", "cancel", footer=True),
    ),
    BindingGroup.CONFIRM: (
        _action("yes", "y", "yes", footer=True),
        _action("no", "n escape", "no; nothing happens", footer=True),
    ),
    BindingGroup.NUMBER: (
        _action("leave", "escape", "cancel; enter takes the number", "cancel", footer=True),
    ),
    BindingGroup.PAST: (
        _move("earlier", "left h", "five minutes"),
        _move("later", "right l", "five minutes"),
        _move("far_earlier", "shift+left H", "an hour"),
        _move("far_later", "shift+right L", "an hour"),
        _move("begin", "home g", "the first time that the store has"),
        _move("next_death", "tab down j", "the minute before it"),
        _move("previous_death", "shift+tab up k", "the minute before it"),
        _action("take", "enter", "go to that time", "go there"),
        _action("present", "end G", "back to the cluster as it is", "the present"),
        _action("leave", "escape q", "cancel", footer=True),
    ),
    BindingGroup.SAVE: (_action("leave", "escape", "cancel without saving", "cancel", footer=True),),
    BindingGroup.READ: (
        _action("copy", "c", "copy all of it", footer=True),
        _action("save", "x", "save it to a file", footer=True),
        _action("back", "escape q", "back to where you were", footer=True, palette=False),
    ),
    BindingGroup.HELP: (_action("close", "escape q question_mark f1", "close it", footer=True),),
    BindingGroup.GUIDE: (
        _action("up", "up", "one line up", priority=True),
        _action("down", "down", "one line down", priority=True),
        _action("page_up", "pageup ctrl+b", "one page up", priority=True),
        _action("page_down", "pagedown ctrl+f", "one page down", priority=True),
        _action("close", "escape f1", "close it; so does ? at first", footer=True, priority=True),
    ),
    BindingGroup.APP: (
        _action(
            "help", "question_mark f1", "the keys of this screen, then all others", footer=True, gap=True
        ),
        _action("previous", "left_square_bracket alt+left", "the previous location", "back"),
        _action("next", "right_square_bracket alt+right", "the next location, after back", "forward"),
        _action("refresh", "r", "refresh now"),
        _action("pause", "p", "pause or resume updates"),
        _action("save_screenshot", "X", "save a screenshot as svg or text", "screenshot"),
        _action("undo", "U", "the change history, to revert a change"),
        _action(
            "theme",
            "t",
            "the next theme: dark, light, high contrast, colour-blind safe, the terminal's own, yours",
        ),
        _action("command_palette", "ctrl+p", "all of these by name", "palette", palette=False),
        _action(
            "redraw",
            "ctrl+l",
            "paint all of the screen, where something else wrote to the terminal",
            priority=True,
        ),
        _action("suspend", "ctrl+z", "back to the shell; fg resumes", palette=False, priority=True),
        _action("quit", "q", "leave kubectl qos", footer=True),
        _action("interrupt", "ctrl+c ctrl+q", "leave from anywhere", "quit", palette=False, priority=True),
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
    """Return the section of the footer for each action, by its name; equal values stand together."""
    gaps = accumulate(action.gap for action in ACTIONS)
    return {action.name: (action.group, gap) for action, gap in zip(ACTIONS, gaps, strict=True)}


def bindings(group: BindingGroup) -> list[BindingType]:
    """Return a class's BINDINGS: each key of each action of the group."""
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
        """Return the keys of an action, in Textual's names; one that yields may have lost them."""
        if action.name in self._changed or not action.yields:
            return tuple(self._changed.get(action.name, action.keys))
        group = action.group.name.lower()
        return tuple([key for key in action.keys if (group, key) not in self._taken])

    def shown(self, action: Action) -> str:
        return " ".join(map(shown_key, self.of(action)))

    def first(self, name: str) -> str:
        """Return the first key of the action of that name, for a sentence."""
        return shown_key(next(iter(self.of(BY_NAME[name])), ""))


BY_NAME: Final = {action.name: action for action in ACTIONS}
