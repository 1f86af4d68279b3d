"""Fixes for coming deaths: how they are found, and the dialog that lists them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Label

from kubectl_qos.analysis.fix_list import FixList, fixes_for_pods, fixes_on_nodes, node_model
from kubectl_qos.cluster.source import Source
from kubectl_qos.edit.edits import Side
from kubectl_qos.edit.fix_search import fixes_of_node
from kubectl_qos.edit.fixes import Fix, Fixes, FixKind
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.kinds import WORKLOADS, Workload, find_workload
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.k8s.usage import ContainerKey, PodKey
from kubectl_qos.present.fix_sentences import (
    first_fix_text,
    first_unfixed,
    fix_change,
    fix_effect,
    fix_evidence,
    fix_object,
    fix_requests,
    fix_sentence,
    fix_when,
    without_fix,
)
from kubectl_qos.present.format import count
from kubectl_qos.present.output import Column, column
from kubectl_qos.tui.actions import BindingGroup
from kubectl_qos.tui.screens.base import BuiltInBackground, Dialog
from kubectl_qos.tui.shell import Shell
from kubectl_qos.tui.view_model import ViewModel, pod_named
from kubectl_qos.tui.widgets.line_table import HEADER, LineTable, Spans
from kubectl_qos.tui.widgets.table import GAP, GUTTER, Fitting, Layout, fitting_columns

_COLUMNS: Final[tuple[Column[Fix], ...]] = (
    column("object", fix_object, header="WHAT"),
    column("change", fix_change),
    column("when", fix_when),
    column("evidence", fix_evidence, header="HOW SURE"),
)
_FITTING: Final[Fitting[Fix]] = partial(
    fitting_columns, _COLUMNS, "object change object change when evidence", {"object": 16, "change": 20}
)
_TOKENS: Final = {"change": "accent", "evidence": "muted"}
_FIX_LINES: Final = 2
"""The lines of a fix if there is room: the change, and below it the effect."""
_ROOMY: Final = 24
"""From this height of the terminal on there is room for both."""


def suggestion(snapshot: Snapshot, node: str) -> Fixes:
    """Return the fixes for the first death on a node that has any, and nearer deaths. Raises InputError."""
    return fixes_of_node(node_model(snapshot, node), only_nearest=True)


def suggested_line(snapshot: Snapshot, node: str) -> tuple[str, dict[ContainerKey, int]]:
    """Return the first fix for a node in words, or why there is none, and the limits that it changes.

    The words are "" if no death is coming. Raises InputError.
    """
    fixes = suggestion(snapshot, node)
    offers = {
        (fix.pod.key, edit.owner): edit.quantity.value()
        for fix in fixes.fixes
        for edit in fix.edits
        if edit.side is Side.LIMITS and edit.quantity is not None and fix.kind is FixKind.LIMIT
    }
    # Without usage no death is shown above that says whose container it is.
    pod = f"{fix_object(fixes.fixes[0])} " if fixes.fixes and not snapshot.usage else ""
    return f"{pod}{first_fix_text(fixes)}", offers


def find_fixes(
    source: Source,
    node: str,
    keys: Sequence[PodKey],
    workload: tuple[str, str] | None,
    snapshot: Snapshot,
    before: FixList | None,
) -> FixList:
    """Return the fixes for some pods after the first one for the node, or without pods those for the node.

    Autoscalers are read only if there is no list `before` this one. Raises InputError.
    """
    if before is None:
        snapshot = source.with_autoscalers(snapshot, keys[0][0] if keys else None)
    else:
        snapshot = replace(snapshot, autoscalers=before.snapshot.autoscalers)
    if not keys:
        return fixes_on_nodes(snapshot, [node], Scope())
    fixes = fixes_for_pods(snapshot, keys, workload)
    of_node = suggestion(snapshot, node) if node else Fixes()
    if not of_node.fixes:
        return fixes
    first = of_node.fixes[0]
    others = [fix for fix in fixes.fixes if (fix_object(fix), fix.edits) != (fix_object(first), first.edits)]
    return replace(fixes, fixes=(first, *others), unfixed=(*fixes.unfixed, *of_node.unfixed))


def list_fixes(
    qos: Shell,
    view_model: ViewModel,
    node: str,
    keys: Sequence[PodKey] = (),
    workload: Workload | None = None,
) -> None:
    """Open the fixes for some pods, or for a node; the chosen one fills the edit screen.

    For a single pod that has ended they are those for its workload.
    """
    pod = pod_named(view_model, keys[0]) if len(keys) == 1 and workload is None else None
    if pod is not None and pod.is_terminal:
        fix_workload_of(qos, view_model, keys[0])
    else:
        _open_fixes(qos, view_model, node, keys, workload)


def _open_fixes(
    qos: Shell, view_model: ViewModel, node: str, keys: Sequence[PodKey], workload: Workload | None
) -> None:
    if qos.refuses_change():
        return
    named = (workload.kind, workload.name) if workload is not None else None

    def take(fix: Fix | None) -> None:
        if fix is None:
            return
        if fix.workload is None or workload is None:
            qos.edit(fix.pod, fix.edits)
        else:
            qos.edit_workload(workload, fix.pod, fix.edits)

    find = partial(find_fixes, qos.source, node, keys, named)
    qos.push_screen(FixDialog(find, keys if qos.has_chosen_row() else (), view_model), take)


def fix_workload_of(qos: Shell, view_model: ViewModel, key: PodKey) -> None:
    """Open the fixes for the running pods of a pod's workload or, without any, for the OOMKilled pod."""
    pods = [(find_workload(pod), pod) for pod in view_model.snapshot.pods if pod.namespace == key[0]]
    alive = [(workload, pod) for workload, pod in pods if pod.node_name and not pod.is_terminal]
    same = [workload for workload, pod in pods if pod.name == key[1]]
    by_name = [workload for workload, _ in alive if key[1].startswith(f"{workload.name}-")]
    workload = max(same or by_name, key=lambda candidate: len(candidate.name), default=None)
    keys = [(key[0], pod.name) for owner, pod in alive if owner == workload]
    ended = pod_named(view_model, key)
    if ended is not None and not keys:
        was_killed = any(status.was_oom_killed for status in ended.status.every_container)
        keys = [key] if was_killed else []
    if key not in keys:
        name = f"{workload.kind.lower()}/{workload.name}" if workload is not None else "its workload"
        runs = f"{count(len(keys), 'pod')} of {name} {'runs' if len(keys) == 1 else 'run'}"
        qos.warn(f"{key[1]} {'has ended' if same else 'is gone'}; {runs}")
    if workload is not None and keys:
        _open_fixes(qos, view_model, "", keys, workload if workload.kind in WORKLOADS else None)


class FixDialog(Dialog[Fix | None], BuiltInBackground[FixList], group=BindingGroup.SELECT):
    """Lists fixes. The cursor begins on the first fix for the pods `keys`."""

    enter_does = "try it"

    def __init__(
        self,
        find: Callable[[Snapshot, FixList | None], FixList],
        keys: Collection[PodKey],
        view_model: ViewModel,
    ) -> None:
        super().__init__()
        self._find, self._keys, self._view_model, self._newest = find, keys, view_model, view_model
        self._fix_list: FixList | None = None

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog-table") as dialog:
            dialog.border_title = "What to change"
            yield LineTable[Fix](natural="", key=_identity, token=lambda _, key: _TOKENS.get(key, ""))
            yield Label("Looking for fixes …", markup=False)

    def border_keys(self) -> list[tuple[str, str]]:
        has_fixes = self._fix_list is None or bool(self._fix_list.fixes)
        return [(key, does) for key, does in super().border_keys() if key != "enter" or has_fixes]

    def on_mount(self) -> None:
        if self.app.size.height < _ROOMY:  # the effect is in the label then
            self.query_one(LineTable).styles.max_height = "40vh"
        self.rebuild()
        self.watch(self.app, "view_model", self.follow)

    def build(self, view_model: ViewModel) -> FixList:
        return self._find(view_model.snapshot, self._fix_list)

    def show_built(self, built: FixList | QosError) -> None:
        if isinstance(built, QosError):
            self.query_one(Label).update(str(built))
            return
        is_first, self._fix_list, fixes = self._fix_list is None, built, built.fixes
        table = self.query_one(LineTable)
        longest = max((len(fix_effect(fix)) for fix in fixes), default=0)
        table.most_height, table.row_line = _FIX_LINES, partial(_effect, longest)
        table.load(fixes, _FITTING, datetime.now(UTC))
        own = next((fix for fix in fixes if fix.pod.key in self._keys), None)
        if is_first and own is not None:  # the first fix is for the nearest death on the node
            table.move_to(_identity(own))
        table.styles.height = _FIX_LINES * len(fixes) + HEADER
        table.display = bool(fixes)
        if is_first or not fixes:
            self.show_keys()
        if not fixes:
            self.query_one(Label).update("\n".join(without_fix(built)))

    @on(LineTable.Highlighted)
    def _describe(self, event: LineTable.Highlighted) -> None:
        if event.row is not None and self._fix_list is not None:
            fix: Fix = event.row
            effect = f"{fix_effect(fix)}\n"
            if self.app.size.height >= _ROOMY and len(effect) + GUTTER + GAP < event.table.size.width:
                effect = ""
            requests = f"{effect}requests {fix_requests(fix)}; known from {fix_evidence(fix)}"
            lines = fix_sentence(fix), requests, first_unfixed(self._fix_list)
            self.query_one(Label).update("\n".join(filter(None, lines)))

    @on(LineTable.Selected)
    def _selected(self, event: LineTable.Selected) -> None:
        self.dismiss(event.row)


def _effect(longest: int, fix: Fix, _: int, __: int, layout: Layout[Fix], width: int) -> Spans:
    """Return the effect, below the change unless the longest effect needs more room."""
    effect = fix_effect(fix)
    begin = min(GUTTER + GAP + layout.widths[0], max(width - longest, GUTTER + GAP))
    shown = effect if begin + len(effect) <= width else effect[: width - begin - 1] + "…"
    return ((" " * begin + shown, "muted"),)


def _identity(fix: Fix) -> Hashable:
    """Return the identity of a fix, which stays the same when its numbers change."""
    return fix_object(fix), fix.kind, fix.death.mechanism
