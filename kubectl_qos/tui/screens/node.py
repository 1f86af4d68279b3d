"""Screens about a pod's node: its tree of cgroups, and what another release or setting would change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import PurePosixPath
from typing import Final

from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Input, Label, Static

from kubectl_qos.edit.compare import compare
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.node_overrides import apply_overrides
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.present.effects import comparison_subject, kubelet_sections, node_sections, pod_sections
from kubectl_qos.present.format import escape
from kubectl_qos.present.list_notes import missing_sentence
from kubectl_qos.present.node_settings import node_settings
from kubectl_qos.present.output import NO_AGES, Column, Line, Section, column, marked_lines
from kubectl_qos.present.preview import node_deaths_sections
from kubectl_qos.present.tree import (
    MOUNT,
    TreeRow,
    file_lines,
    tree_lines,
    tree_notes,
    tree_rows,
    tree_subject,
)
from kubectl_qos.qos.cgroup.tree import Directory, cgroup_tree
from kubectl_qos.qos.killers import parse_assumed
from kubectl_qos.tui.actions import BindingGroup
from kubectl_qos.tui.edit_target import with_units
from kubectl_qos.tui.screens.base import QosScreen
from kubectl_qos.tui.view import pod_name
from kubectl_qos.tui.view_model import ViewModel
from kubectl_qos.tui.widgets import text_view
from kubectl_qos.tui.widgets.line_table import LineTable
from kubectl_qos.tui.widgets.table import GAP, GUTTER, Layout, measured, unsorted


class TreeScreen(QosScreen, group=BindingGroup.TREE):
    """The cgroups of a node. All pods but the given one are folded. It does not follow updates."""

    AUTO_FOCUS = "LineTable"

    def __init__(self, pod: Pod, view_model: ViewModel) -> None:
        super().__init__()
        self._pod = pod
        self._view_model = view_model
        snapshot, node = view_model.snapshot, pod.node_name
        self._tree = cgroup_tree(snapshot.by_node().get(node, []), snapshot.setup(node))
        pods = (directory for directory in self._tree.walk() if directory.pod)
        self._folded = {directory.path for directory in pods if not self._is_of_pod(directory)}
        self._with_noise = False
        self._searched = ""

    def _is_of_pod(self, directory: Directory) -> bool:
        return directory.pod is not None and directory.pod.metadata == self._pod.metadata

    def compose_content(self) -> ComposeResult:
        yield Static(Content(tree_subject(self._tree) + self.qos.as_of(self._view_model)), id="subject")
        yield LineTable[TreeRow](natural="", key=lambda row: row.key, token=self._token)
        yield Input(placeholder="a name, a file or a content", compact=True, id="search")
        yield text_view.TextView(self._notes_layout, id="tree-notes")

    def on_mount(self) -> None:
        self.query_one("#search").display = False
        self._show()
        directory = next((directory for directory in self._tree.walk() if self._is_of_pod(directory)), None)
        if directory is not None:
            self.call_after_refresh(self._go_to, directory)

    def _go_to(self, directory: Directory) -> None:
        """Go to a directory, and scroll so that its files are in sight."""
        self.table.move_to((directory.path, ""))
        self.table.scroll_to(y=max(self.table.cursor - _LINES_ABOVE, 0), animate=False, immediate=True)

    @property
    def table(self) -> LineTable[TreeRow]:
        return self.query_one(LineTable)

    def _show(self) -> None:
        rows = tree_rows(self._tree, with_noise=self._with_noise)
        rows = list(_found(rows, self._searched) if self._searched else _unfolded(rows, self._folded))
        empty = f"Nothing has {escape(self._searched)}." if self._searched else "There are no cgroups."
        self.table.load(rows, self._fitting, NO_AGES, empty=empty)

    def _fitting(self, rows: Sequence[TreeRow], now: datetime, available: int) -> Layout[TreeRow]:
        """Return the columns with the longest names for which both fit."""
        for shortened in range(3):
            columns = self._columns(shortened)
            widths = measured(columns, rows, now)
            spare = available - GUTTER - sum(widths) - GAP * (len(widths) - 1)
            if spare >= 0 and all(len(columns[0].cell(row, now)) <= widths[0] for row in rows):
                break
        widths[0] = max(widths[0] + min(spare, 0), _MIN_NAME)
        widths[1] = min(widths[1], available - GUTTER - GAP - widths[0])
        return Layout(columns, widths)

    def _columns(self, shortened: int) -> Sequence[Column[TreeRow]]:
        def name(row: TreeRow) -> str:
            is_folded = row.directory.path in self._folded and not self._searched
            sign = "" if row.file else "▸ " if is_folded else "▾ "
            return f"{row.branch}{sign}{row.names[shortened]}"

        def content(row: TreeRow) -> str:
            return f"{row.content:<{_NUMBER_WIDTH}}  {row.meaning}" if row.meaning else row.content

        return (
            column("cgroup", lambda row: row.names[0], cell=name, sort_key=unsorted, header=MOUNT),
            column("content", content, empty="", sort_key=unsorted),
        )

    def _token(self, row: TreeRow, key: str) -> str:
        if row.file:
            return "" if key == "content" else "muted"
        if self._is_of_pod(row.directory):
            return "accent"
        return "" if key == "cgroup" or row.directory.pod is not None else "muted"

    def _notes_layout(self, width: int) -> list[text_view.TextLine]:
        key, is_roomy = self.qos.keys.first("tree.notes"), self.app.size.height >= _ROOMY
        return list(text_view.note_lines(self.notes_now(), key, width, is_roomy=is_roomy))

    def notes_now(self) -> list[str]:
        return tree_notes([self._tree], self._view_model.snapshot.missing)

    @on(LineTable.Selected)
    def action_fold(self) -> None:
        row = self.table.row
        if row is not None and not self._searched:
            self._folded ^= {row.directory.path}
            self._show()
            self.table.move_to((row.directory.path, ""))

    def action_fold_all(self) -> None:
        """Unfold everything, or fold every pod."""
        pods = {directory.path for directory in self._tree.walk() if directory.pod is not None}
        self._folded = set() if self._folded else pods
        self._show()

    def action_everything(self) -> None:
        self._with_noise = not self._with_noise
        self._show()

    def action_search(self) -> None:
        search = self.query_one("#search", Input)
        search.display = True
        search.focus()

    @on(Input.Changed, "#search")
    def _search_typed(self, event: Input.Changed) -> None:
        self._searched = event.value.strip()
        self._show()

    @on(Input.Submitted, "#search")
    def _search_entered(self) -> None:
        self.query_one("#search").display = bool(self._searched)
        self.table.focus()

    def action_back(self) -> None:
        """End the search, with the cursor on the row that was found; without a search, leave."""
        search, row = self.query_one("#search", Input), self.table.row
        if not search.display:
            self.dismiss()
            return
        if row is not None and self._searched:
            self._folded -= {path for path in self._folded if row.directory.path.startswith(path)}
        search.value, search.display = "", False
        self.table.focus()
        if row is not None:
            self.call_after_refresh(self.table.move_to, row.key)

    def action_copy(self) -> None:
        self.qos.copy("\n".join([tree_subject(self._tree), *tree_lines(self._tree)]), "the tree")

    def action_export(self) -> None:
        text = "".join(f"{line}\n" for line in file_lines(self._tree))
        name = self._tree.setup.node.name or "node"
        self.qos.save_as("the cgroup files", f"{name}-cgroups.txt", lambda _: text)


_ROOMY: Final = 30
_MIN_NAME: Final = 30
_LINES_ABOVE: Final = 3
"""Lines above the pod at first."""
_NUMBER_WIDTH: Final = 13
"""The cells of a number of bytes, before its meaning."""


def _unfolded(rows: Sequence[TreeRow], folded: set[str]) -> Iterator[TreeRow]:
    """Yield the rows that are in no folded directory."""
    for row in rows:
        path = PurePosixPath(row.directory.path)
        above = map(str, (path, *path.parents) if row.file else path.parents)
        if folded.isdisjoint(above):
            yield row


def _found(rows: Sequence[TreeRow], text: str) -> Iterator[TreeRow]:
    """Yield the rows that contain a text, and the directories above them."""
    wanted = text.casefold()
    hits = {
        row.key
        for row in rows
        if any(wanted in text.casefold() for text in (row.names[0], row.content, row.meaning))
    }
    above = {
        str(parent) for path, _ in hits for parent in (PurePosixPath(path), *PurePosixPath(path).parents)
    }
    return (row for row in rows if row.key in hits or (not row.file and row.directory.path in above))


EXAMPLE = "1.37 cgroupVersion=1 featureGates.MemoryQoS=true memory=32Gi"


class CompareScreen(QosScreen, group=BindingGroup.COMPARE):
    """What another release or other settings would change. It does not follow updates."""

    AUTO_FOCUS = "Input"

    def __init__(self, pod: Pod, view_model: ViewModel) -> None:
        super().__init__()
        snapshot = view_model.snapshot
        self._pod = pod
        self._view_model = view_model
        self._setup = snapshot.setup(pod.node_name)
        self._pods = snapshot.by_node().get(pod.node_name, [])
        self._missing = [missing_sentence(missing) for missing in snapshot.missing]
        self._shown: tuple[str, ...] = ()

    def compose_content(self) -> ComposeResult:
        node = self._setup.node.name or "its node"
        yield Static(
            Content(
                f"what if {escape(node)}, kubelet {self._setup.release}, were different? "
                f"{pod_name(self._pod)}{self.qos.as_of(self._view_model)}"
            ),
            id="subject",
        )
        yield Input(placeholder=f"such as {EXAMPLE}", compact=True, id="settings")
        yield Label(id="reason", markup=False)
        with text_view.TextScroll(can_focus=False):
            yield text_view.TextView()

    def on_mount(self) -> None:
        self._show_settings()

    def _show_settings(self) -> None:
        """Show which settings can be typed."""
        keys = [Line(f"{setting.key}={setting.type}", setting.effect) for setting in node_settings()]
        self._show((Section("Type a release, settings, or both", f"such as {EXAMPLE}", tuple(keys)),), "")

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        words = event.value.split()
        if not words:
            self._show_settings()
            return
        try:
            settings = [parse_assumed(word) for word in words if "=" in word]
            releases = [word for word in words if "=" not in word]
            after = apply_overrides(self._setup, settings, releases[-1] if releases else None)
        except QosError as error:
            self._show(None, f"! {error.with_hint()}")
            return
        comparison = compare(self._pods, self._setup, after, self._view_model.snapshot.usage)
        sections = (
            *kubelet_sections(comparison),
            *node_deaths_sections(comparison, self._view_model.snapshot.own_bytes(self._pod.node_name)),
            *pod_sections(comparison.of(self._pod)),
            *node_sections(comparison),
        )
        self._show(sections, comparison_subject(comparison, settings))

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        if not event.value.strip():
            self._show(None, f"! type a release, settings, or both, such as {EXAMPLE}")

    def _show(self, sections: tuple[Section, ...] | None, words: str) -> None:
        reason = self.query_one("#reason", Label)
        reason.set_class(sections is None, "wrong")
        reason.update(text_view.escape_lines(words))
        if sections is not None:
            self._shown = (words, *marked_lines(sections))
            layout = text_view.effects_layout(tuple(map(with_units, sections)), missing=self._missing)
            self.query_one(text_view.TextView).show(layout)

    def action_copy(self) -> None:
        self.qos.copy("\n".join(self._shown), "what changes")
