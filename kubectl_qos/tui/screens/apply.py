"""The screens of a change: apply it, watch its progress, save its patch, and revert it from the history.

They show the state of a change (edit/apply_state.py) and call its steps; the change itself sends requests.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime
from enum import Enum, auto
from functools import partial
from itertools import accumulate
from typing import Final

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from kubectl_qos.cluster.background import run_in_background
from kubectl_qos.cluster.source import Source
from kubectl_qos.edit.apply_state import Blocked, Phase
from kubectl_qos.edit.edits import build_manifest, build_patch, kubectl_command
from kubectl_qos.edit.history import Entry, EntryState, undos
from kubectl_qos.edit.preview import Preview, StrategyKind
from kubectl_qos.edit.related import RelatedObjects, pod_reference
from kubectl_qos.edit.status import TrialPlan
from kubectl_qos.edit.strategy import Strategy
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.present.changes import (
    change_lines,
    confirm_lines,
    dry_run_lines,
    entry_change,
    entry_object,
    entry_state,
    entry_when,
    kubelet_caveat,
    request_lines,
    strategy_effect,
    strategy_title,
)
from kubectl_qos.present.format import escape
from kubectl_qos.present.output import Column, ColumnType, column, largest_first, to_yaml
from kubectl_qos.tui import running_change
from kubectl_qos.tui.actions import BindingGroup
from kubectl_qos.tui.running_change import ChangeUpdated, RunningChange, error_lines
from kubectl_qos.tui.screens.base import QosScreen
from kubectl_qos.tui.screens.dialogs import ConfirmWrite
from kubectl_qos.tui.view_model import ViewModel
from kubectl_qos.tui.widgets.line_table import LineTable
from kubectl_qos.tui.widgets.table import Layout, fitting_columns
from kubectl_qos.tui.widgets.text_view import (
    TextLayout,
    TextLine,
    TextScroll,
    TextView,
    effects_layout,
    escape_lines,
    layout_lines,
    paragraphs,
    stacked,
    wrapped,
    yaml_layout,
)

_WRITES: Final = frozenset({"apply", "dry_run", "trial"})
_CONFLICT: Final = frozenset({"reload", "keep_mine"})
_TICK_SECONDS: Final = 1.0


class StrategyList(TextView):
    """The strategies of a change, one of which is chosen."""

    _layouts: Sequence[TextLayout] = ()

    def show_strategies(self, strategies: Sequence[Strategy], chosen: int) -> None:
        column = max((len(strategy_title(strategy)) for strategy in strategies), default=0)
        self._layouts = [
            _as_lines(strategy, column, is_chosen=index == chosen)
            for index, strategy in enumerate(strategies)
        ]
        self.show(stacked(*self._layouts))

    def index_at(self, line: int) -> int:
        """Return the index of the strategy at a line."""
        ends = accumulate(len(layout(self.content_size.width)) for layout in self._layouts)
        return bisect_right(list(ends), line)


def _as_lines(strategy: Strategy, column: int, *, is_chosen: bool) -> TextLayout:
    left = f"{'>' if is_chosen else ' '} {strategy_title(strategy).ljust(column)}  "
    token = "title" if is_chosen else "" if strategy.is_possible else "muted"

    def layout(width: int) -> list[TextLine]:
        first, *more = wrapped(strategy_effect(strategy), width - len(left), hanging="")
        return [TextLine(left + first, token), *(TextLine(" " * len(left) + text, token) for text in more)]

    return layout


class ApplyOutcome(Enum):
    """How the screen was left."""

    BACK = auto()
    APPLIED = auto()
    RELOAD = auto()


class ApplyScreen(QosScreen, group=BindingGroup.APPLY):
    """Applies a change. `saved` is called when its patch was copied or saved."""

    AUTO_FOCUS = "TextScroll"

    def __init__(self, change: RunningChange, saved: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.change = change
        self._on_saved = saved
        self.outcome = ApplyOutcome.BACK

    def compose_content(self) -> ComposeResult:
        yield Static(id="subject", markup=False)
        with TextScroll() as scroll:
            scroll.border_title = "How to apply it"
            with Vertical(id="facts"):
                yield TextView(id="changes")
                yield StrategyList()
                yield TextView(id="answer")
                yield TextView(id="findings")
            yield TextView(id="request")

    def on_mount(self) -> None:
        self.watch(self.app, "view_model", self._show)

    def on_change_updated(self, message: ChangeUpdated) -> None:
        """Show the state, and ask for confirmation unless another screen is open above this one."""
        if message.change is not self.change:
            return
        self._show()
        if message.confirms:
            if self.is_uppermost:
                self._confirm()
            else:
                self.change.advance(self.change.state.confirm(yes=False))

    def _show(self) -> None:
        state, target, keys = self.change.state, self.change.target, self.qos.keys
        verb = "revert a change of" if state.undoes else "change"
        self.query_one("#subject", Static).update(Content(f"{verb} {target.name}"))
        self.query_one(StrategyList).show_strategies(
            state.strategies if state.is_loaded else (), state.chosen
        )
        sections = running_change.state_findings(state)
        for name, shown, layout in (
            ("#changes", lines := running_change.change_lines(state), layout_lines(lines)),
            ("#answer", lines := self._answer_lines(), layout_lines(lines)),
            ("#request", lines := running_change.request_lines(state, keys), layout_lines(lines)),
            ("#findings", sections, effects_layout(sections)),
        ):
            view = self.query_one(name, TextView)
            view.show(layout)
            view.display = bool(shown)
        self.refresh_bindings()

    def _answer_lines(self) -> list[TextLine]:
        change = self.change
        lines = running_change.answer_lines(change.state, change.target, self.qos.keys)
        killed = running_change.killed_lines(change.target.pod, self.qos.view_model)
        return [*killed, *lines, *running_change.promise_lines(change.state)]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action not in _CONFLICT or self.change.state.has_conflict

    @property
    def not_in_footer(self) -> Collection[str]:
        state = self.change.state
        hidden = set() if state.blocked in {None, Blocked.LOADING} else set(_WRITES)
        if len(state.strategies) < 2 or not state.is_loaded:
            hidden.add("next_strategy")
        return hidden

    @on(events.Click, "StrategyList")
    def _choose(self, event: events.Click) -> None:
        self.change.advance(self.change.state.choose(self.query_one(StrategyList).index_at(event.y)))

    def action_next_strategy(self) -> None:
        self.change.advance(self.change.state.choose(self.change.state.chosen + 1))

    def action_previous_strategy(self) -> None:
        self.change.advance(self.change.state.choose(self.change.state.chosen - 1))

    def action_dry_run(self) -> None:
        if self._may_send():
            self.change.advance(self.change.state.dry_run())

    def action_apply(self) -> None:
        """Ask for confirmation, after a dry run if none was accepted yet."""
        if self._may_send():
            self.change.advance(self.change.state.apply())

    def _may_send(self) -> bool:
        why = running_change.blocked_sentence(self.change.state, self.qos.keys)
        if why:
            self.qos.warn(why)
        return not why

    def _confirm(self) -> None:
        state, writer = self.change.state, self.change.writer
        assert state.accepted is not None
        assert state.strategy is not None
        request = state.accepted.request
        lines = confirm_lines(writer.context, writer.server, request, state.preview, state.strategy)
        lines += dry_run_lines(request, state.accepted.stored, state.accepted.warnings)[1:]
        lines += [line.text.lstrip() for line in running_change.promise_lines(self.change.state)]
        typed = writer.context if self.qos.writing.confirms_by_name(writer.context) else ""
        question = f"Write this to the cluster{kubelet_caveat(state.preview, state.strategy)}?"
        self.qos.push_screen(ConfirmWrite(question, lines, typed), self._confirmed)

    def _confirmed(self, yes: bool | None) -> None:
        self.change.advance(self.change.state.confirm(yes=bool(yes)))
        if self.change.state.phase is Phase.SENDING:
            self.qos.push_screen(ProgressScreen(self.change), self._watched)

    def _watched(self, _: None) -> None:
        """Leave, unless the change was refused and can be tried again."""
        if self.change.state.phase is not Phase.READY:
            self._leave(ApplyOutcome.APPLIED)

    def _leave(self, outcome: ApplyOutcome) -> None:
        self.outcome = outcome
        self.change.leave()
        self.dismiss()

    def action_reload(self) -> None:
        self._leave(ApplyOutcome.RELOAD)

    def action_keep_mine(self) -> None:
        self.change.advance(self.change.state.keep_mine())

    def action_patch(self) -> None:
        state = self.change.state
        self.qos.push_screen(PatchScreen(state.pod, state.preview, self._on_saved))

    def action_trial(self) -> None:
        """Turn the trial after the change on or off."""
        if self.change.state.undoes:
            self.qos.warn("a revert cannot be put on trial")
        else:
            plan = TrialPlan() if self.change.state.plan is None else None
            self.change.advance((replace(self.change.state, plan=plan), None))

    def action_copy(self) -> None:
        request = self.change.state.request
        if request is not None:
            self.qos.copy("\n".join(request_lines(request)) + "\n", "the request")
        else:
            self.qos.warn("there is no request to copy")

    def action_back(self) -> None:
        self._leave(ApplyOutcome.BACK)


class ProgressScreen(QosScreen, group=BindingGroup.PROGRESS):
    """The progress of a change. After the screen is left, a notification says how the change has ended.

    It is left too when the change is reverted from the history.
    """

    AUTO_FOCUS = "TextScroll"
    _is_reverted = False

    def __init__(self, change: RunningChange) -> None:
        super().__init__()
        assert change.state.accepted is not None
        self._request = change.state.accepted.request
        self.change = change

    def compose_content(self) -> ComposeResult:
        yield Static(id="subject", markup=False)
        with TextScroll() as scroll:
            scroll.border_title = "Progress"
            yield TextView(id="seen")

    def on_mount(self) -> None:
        self.set_interval(_TICK_SECONDS, self._show)
        self._show()

    def on_change_updated(self, message: ChangeUpdated) -> None:
        result, other = self.change.state.result, message.change.state
        if message.change is self.change:
            self._show()
        elif result is not None and other.result is not None:
            self._is_reverted |= other.undoes == result.entry.id

    def on_screen_resume(self) -> None:
        super().on_screen_resume()
        if self._is_reverted:
            self.dismiss()

    def _show(self) -> None:
        change, context = self.change, self.change.writer.context
        verb = "reverting a change of" if change.state.undoes else "changing"
        self.query_one("#subject", Static).update(
            Content(f"{verb} {escape(change.name)} in {escape(context)}")
        )
        seconds, keys = int(change.elapsed), self.qos.keys
        lines = list(running_change.progress_lines(change.state, self._request, context, seconds, keys))
        if change.state.plan is None:
            lines += running_change.killed_lines(change.target.pod, self.qos.view_model, change.sent_at)
        if change.state.is_done and self.qos.view_model is not None:
            lines += running_change.death_lines(change.target, self.qos.view_model)
        lines += running_change.trial_lines(change, keys)
        problem = self.qos.writing.history.problem
        if problem and change.state.phase is Phase.SETTLED:
            lines.append(TextLine(f"! {escape(problem)}", "wrong"))
        self.query_one("#seen", TextView).show(layout_lines(lines))

    def action_back(self) -> None:
        name, phase, undo = self.change.name, self.change.state.phase, self.qos.keys.first("app.undo")
        if phase is Phase.SENDING:
            self.qos.warn(f"{name} is under way: its answer will be shown, and {undo} lists it")
        elif phase is Phase.FOLLOWING:
            goes_on = "goes on" if self.change.state.plan is None else "stays on trial"
            self.qos.notify(f"{name} {goes_on}: its end will be shown, and {undo} lists it")
        self.dismiss()


class PatchScreen(QosScreen, group=BindingGroup.PATCH):
    """The patch of a change, or the whole manifest. `saved` is called when one was copied or saved."""

    AUTO_FOCUS = "TextScroll"

    def __init__(self, pod: Pod, preview: Preview, saved: Callable[[], None]) -> None:
        super().__init__()
        self._pod = pod
        self._preview = preview
        self._on_saved = saved
        self._kind = "patch"
        self._texts = {"patch": to_yaml(build_patch(pod, preview.edits))}

    def compose_content(self) -> ComposeResult:
        yield Static(id="what", markup=False)
        with TextScroll():
            yield TextView(id="text")

    def on_mount(self) -> None:
        """Show the patch; a thread reads the manifest."""
        work = partial(_read_manifest, self.qos.source, self._pod, self._preview)
        run_in_background(self, work, self._take_manifest)
        self._show()

    def _take_manifest(self, manifest: str | QosError) -> None:
        if isinstance(manifest, QosError):
            self._kind = "patch"
            self.qos.warn(f"there is no manifest: {manifest}")
        else:
            self._texts["manifest"] = manifest
        self._show()

    def _show(self) -> None:
        strategy_kind = self._preview.strategy_kind
        name = f"{self._pod.kind.lower()} {self._pod.name}"
        lines = [f"{self._kind} of {name}, how to apply: {strategy_kind.value}"]
        if self._kind == "manifest":
            lines.append("the whole changed object, without the fields that only a server sets")
        elif strategy_kind is StrategyKind.RECREATE:
            lines.append("the server refuses this patch: save the manifest, then delete and recreate the pod")
        elif strategy_kind is not StrategyKind.NEVER:
            lines.append(kubectl_command(self._pod, in_place=strategy_kind is StrategyKind.IN_PLACE))
        self.query_one("#what", Static).update(Content(escape_lines("\n".join(lines))))
        self.query_one(TextScroll).border_title = self._kind
        text = self.text
        waits = paragraphs((f"Reading from {self.qos.source.title} …", ""))
        self.query_one("#text", TextView).show(waits if text is None else yaml_layout(escape_lines(text)))

    @property
    def text(self) -> str | None:
        """Return the shown text, None while the manifest is being read."""
        return self._texts.get(self._kind)

    def action_other(self) -> None:
        self._kind = "manifest" if self._kind == "patch" else "patch"
        self._show()

    def action_copy(self) -> None:
        if self.text is not None:
            self.qos.copy(self.text, f"the {self._kind}")
            self._on_saved()

    def action_save(self) -> None:
        text = self.text
        if text is not None:
            name = f"{self._pod.name or 'pod'}-{self._kind}.yaml"
            self.qos.save_as(f"the {self._kind}", name, lambda _: text, self._on_saved)


def _read_manifest(source: Source, pod: Pod, preview: Preview) -> str:
    """Return the whole object with the change. Raises QosError."""
    try:
        return to_yaml(build_manifest(source.raw(pod), pod, preview.edits))
    except KeyError as error:
        raise QosError(str(error)) from None


_IMPORTANCE: Final = "change object state when context object change context"
_SQUEEZED: Final = {"object": 16, "change": 20, "context": 8}


class UndoScreen(QosScreen, group=BindingGroup.UNDO):
    """The change history, the newest change first; below it the change under the cursor in full."""

    AUTO_FOCUS = "LineTable"

    def __init__(self, view_model: ViewModel, source: Source) -> None:
        super().__init__()
        self._view_model = view_model
        self._source = source
        self._undone: dict[str, Entry] = {}
        self._loading: Entry | None = None
        self._error: tuple[Entry, QosError] | None = None

    def compose_content(self) -> ComposeResult:
        yield Static(Content("change history"), id="subject")
        table = LineTable[Entry](natural="when", key=lambda entry: entry.id, token=_token)
        table.border_title = "Applied, the newest first"
        yield table
        entry = TextView(id="entry")
        entry.border_title = "Change"
        yield entry

    def on_mount(self) -> None:
        self.watch(self.app, "view_model", self._read)  # ages and states change

    @property
    def not_in_footer(self) -> Collection[str]:
        return () if self.table.rows else {"open"}

    @property
    def table(self) -> LineTable[Entry]:
        return self.query_one(LineTable)

    def _read(self) -> None:
        run_in_background(self, self.qos.writing.history.entries, self._history_loaded)

    def _history_loaded(self, history: Sequence[Entry] | QosError) -> None:
        entries = () if isinstance(history, QosError) else tuple(reversed(history))
        self._undone = undos(entries)
        now = self.qos.source.now()
        empty = "Nothing has been applied yet." + (
            f" {problem}" if (problem := self.qos.writing.history.problem) else ""
        )
        self.table.load(entries, self._fitting, now, empty=empty)
        self.refresh_bindings()
        self._show()

    def _fitting(self, entries: Sequence[Entry], now: datetime, available: int) -> Layout[Entry]:
        contexts: list[Column[Entry]] = [column("context", lambda entry: entry.context)]
        columns = [
            column(
                "when", lambda entry: entry.at, type=ColumnType.TIME, header="AGE", sort_key=_newest_first
            ),
            *(contexts if len({entry.context for entry in entries}) > 1 else []),
            column("object", entry_object),
            column("change", entry_change),
            column("state", lambda entry: entry_state(entry, self._undone.get(entry.id)).partition(":")[0]),
        ]
        return fitting_columns(columns, _IMPORTANCE, _SQUEEZED, entries, now, available)

    @on(LineTable.Highlighted)
    def _show(self) -> None:
        entry = self.table.row
        self.query_one("#entry", TextView).show(layout_lines(self._lines(entry) if entry is not None else []))

    def _lines(self, entry: Entry) -> list[TextLine]:
        lines = [TextLine(f"{entry_object(entry)} in {escape(entry.context)}", "answer")]
        lines.append(TextLine(f"  {entry_when(entry, self.qos.source.now())}", "muted"))
        lines += [TextLine(f"  {line}") for line in change_lines(entry.before, entry.after)]
        lines.append(TextLine(f"  {entry_state(entry, self._undone.get(entry.id))}"))
        if self._error is not None and self._error[0].id == entry.id:
            lines += error_lines("cannot be reverted", self._error[1])
        elif self._loading is not None and self._loading.id == entry.id:
            lines.append(TextLine("  loading the object …", "muted"))
        return lines

    @on(LineTable.Selected)
    def action_open(self) -> None:
        entry = self.table.row
        if entry is None or self._loading is not None:
            return
        why_not = self._why_not(entry)
        if why_not:
            self._error = entry, QosError(why_not)
        else:
            self._loading, self._error = entry, None
            pod = pod_reference(entry.kind, entry.namespace, entry.name)
            run_in_background(self, partial(self._source.related, pod), partial(self._related_loaded, entry))
        self._show()

    def _why_not(self, entry: Entry) -> str:
        if entry.state is EntryState.REFUSED:
            return "the server refused it: nothing was changed"
        if (undo := self._undone.get(entry.id)) is not None:
            return "already reverted" if undo.state is EntryState.DONE else "it is being reverted"
        if entry.context != self._source.title:
            return f"it was applied in {entry.context}, this is {self._source.title}: go there first (:ctx)"
        return ""

    def _related_loaded(self, entry: Entry, related: RelatedObjects | QosError) -> None:
        self._loading = None
        try:
            if isinstance(related, QosError):
                raise related
            change = self.qos.writing.begin_undo(entry, related, self._view_model, self._source)
            screen = ApplyScreen(change)
        except QosError as error:
            self._error = entry, error
        else:
            if self.is_uppermost:
                self.qos.push_screen(screen, lambda _: self._came_back(screen))
        self._show()

    def _came_back(self, screen: ApplyScreen) -> None:
        self._read()
        if screen.outcome is ApplyOutcome.RELOAD:
            self.action_open()


def _newest_first(entry: Entry) -> float:
    when = parse_time(entry.at)
    return largest_first(when.timestamp() if when is not None else None)


def _token(entry: Entry, key: str) -> str:
    if key != "state":
        return ""
    if entry.is_stored and entry.state is not EntryState.FAILED:
        return ""
    return "muted" if entry.state is EntryState.REFUSED else "warning"
