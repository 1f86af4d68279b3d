"""The app as its screens see it: their shared state, navigation, and the changes that they make.

app.py implements it. The UI writes to a cluster only through `WriteService`. Each change is a
`RunningChange`, which is imported with the first change, so that the UI starts faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from textual.app import App
from textual.reactive import var

from kubectl_qos.analysis.trends import Trends
from kubectl_qos.cluster.background import run_in_background
from kubectl_qos.cluster.source import Source
from kubectl_qos.config.settings import UserSettings
from kubectl_qos.config.state import HistoryFile, UiState
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.kinds import Workload
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.present.format import arrived_text
from kubectl_qos.tui.actions import Keys
from kubectl_qos.tui.lists.base import ListCache, ListRows
from kubectl_qos.tui.view import Detail, FollowStatus, ListKind, Navigation, View, past_words
from kubectl_qos.tui.view_model import ViewModel
from kubectl_qos.tui.widgets.text_view import escape_lines

if TYPE_CHECKING:
    from kubectl_qos.edit.edits import Edit
    from kubectl_qos.edit.history import Entry
    from kubectl_qos.edit.related import RelatedObjects
    from kubectl_qos.metrics.past import Track
    from kubectl_qos.qos.kills.analyze import Kill
    from kubectl_qos.tui.edit_target import EditTarget
    from kubectl_qos.tui.running_change import RunningChange


class WriteService:
    """Begins changes, and knows the pending ones, which have no answer yet or are on trial.

    `readonly` is the flag of the command line; settings can have it too.
    """

    def __init__(
        self, app: App[Any], settings: UserSettings, keys: Keys, history: HistoryFile, *, readonly: bool
    ) -> None:
        self._settings = settings
        self._readonly = readonly
        self._pending: list[RunningChange] = []
        self.app = app
        self.keys = keys
        self.history = history

    def run(self, work: Callable[[], Any], then: Callable[[Any], object]) -> None:
        """Run work in a thread, and `then` with its result or its QosError in the UI's thread."""
        run_in_background(self.app, work, then)

    def is_readonly(self, context: str) -> bool:
        return self._readonly or bool(self._settings.for_context(context).readonly)

    def confirms_by_name(self, context: str) -> bool:
        """Return whether the name of a context must be typed before anything is written to it."""
        return self._settings.for_context(context).confirm == "name"

    @property
    def leave_question(self) -> str:
        """Return the question before the UI is left; empty if nothing is pending."""
        pending = "; ".join(change.pending for change in self._pending)
        return f"{pending}. Leave anyway?" if pending else ""

    def begin(
        self,
        target: EditTarget,
        edits: Iterable[Edit],
        related: RelatedObjects | None = None,
        undoes: Entry | None = None,
    ) -> RunningChange:
        """Begin a change, or with `undoes` the revert of one; see `Apply.begin`.

        Raises QosError if it cannot be previewed.
        """
        from kubectl_qos.tui.running_change import RunningChange

        writer, read_only, context = None, None, target.source.title
        if self.is_readonly(context):
            by = "--readonly" if self._readonly else f"your settings for {context}"
            read_only = QosError(f"nothing is written: {by} says read-only")
        else:
            try:
                writer = target.source.writer()
            except QosError as error:
                read_only = error
        edits = tuple(edits)
        change = replace(target.change(edits, target.preview(edits)), read_only=read_only)
        change = change.as_undo(undoes) if undoes is not None else change
        step = change.begin(related)
        running = RunningChange(self, target, writer, step[0])
        running.advance(step)
        return running

    def begin_undo(
        self, entry: Entry, related: RelatedObjects, view_model: ViewModel, source: Source
    ) -> RunningChange:
        """Return the change that reverts an entry. Raises QosError if there is none."""
        from kubectl_qos.edit.history import undo_edits
        from kubectl_qos.edit.related import pod_from_raw
        from kubectl_qos.tui.edit_target import EditTarget

        pod = pod_from_raw(entry.kind, related.raw)
        uid = str((related.raw.get("metadata") or {}).get("uid", ""))
        edits = undo_edits(entry, pod, uid=uid)
        return self.begin(EditTarget(pod, view_model, source), edits, related, entry)

    def updated(self, change: RunningChange) -> None:
        """Remember what is pending."""
        self._pending = [pending for pending in dict.fromkeys((*self._pending, change)) if pending.pending]


@dataclass(frozen=True, slots=True)
class ContextSwitch:
    """The contexts of the kubeconfig. `open`, which connects to one, may take time. All raise QosError.

    With None, `open` and `past` take the context of the command line.
    """

    names: Callable[[], tuple[str, ...]]
    open: Callable[[str | None], Source]
    past: Callable[[str | None], Past]


class Past(Protocol):
    """The past of a cluster. Raises QosError."""

    def track(self) -> Track:
        """Return the memory of nodes and the deaths of the last hours, from the store; may take time."""

    def older_deaths(self, now: datetime, *, is_past: bool) -> tuple[Sequence[Kill], int]:
        """Return the deaths in the store, and over how many seconds back from now it was read."""

    def source(self, at: datetime) -> Source:
        """Return the cluster at a time of the track."""


def _no_context(name: str | None) -> Any:
    raise QosError(f'context "{name}" does not exist')


NO_CONTEXTS: Final = ContextSwitch(tuple, _no_context, _no_context)


class Shell(App[QosError]):
    """The state that all screens share, and navigation between them."""

    NOTIFICATION_TIMEOUT = 4

    view_model: var[ViewModel | None] = var(None)
    status: var[FollowStatus] = var(FollowStatus(is_live=False))
    source: Source
    notes: Sequence[str]
    settings: UserSettings
    state: UiState
    keys: Keys
    writing: WriteService
    lists: ListCache
    navigation: Navigation
    trends: Trends

    cluster_rows: Callable[[], ListRows]
    """Return the rows of all clusters as far as they have been read."""
    read_open_cluster: Callable[[], None]
    poll_clusters: Callable[[], None]
    past: Callable[[], Past | None]
    has_chosen_row: Callable[[], bool]
    """Whether a person has put the cursor on a row."""
    is_listing: Callable[[ListKind], bool]
    show_rows: Callable[[], None]
    show_title: Callable[[], None]
    keep_view: Callable[[View], None]
    go_into: Callable[[str], None]
    go_to_context: Callable[[str | None], None]
    go_back: Callable[[], bool]
    """Go from the list to the previous location, and return whether there was one."""
    choose_time: Callable[[], None]
    show_text: Callable[[str, Iterable[str]], None]
    leave: Callable[[], None]
    action_help: Callable[[], None]
    action_undo: Callable[[], None]

    def open(self, detail: Detail, pod: Pod, edits: tuple[Edit, ...] = ()) -> None: ...

    def edit(self, pod: Pod, edits: tuple[Edit, ...] = ()) -> None: ...

    def edit_workload(self, workload: Workload, pod: Pod, edits: tuple[Edit, ...] = ()) -> None: ...

    def show_log(self, pod: Pod, container: str = "") -> None: ...

    def save_as(
        self, what: str, name: str, text_for: Callable[[Path], str], saved: Callable[[], None] | None = None
    ) -> None: ...

    def as_of(self, view_model: ViewModel) -> str:
        """Return `, as of TIME` for a screen that does not follow updates; "" if the source never changes."""
        return f", as of {view_model.taken:%H:%M:%S %Z}" if self.source.is_live else ""

    def whole_view_model(self) -> ViewModel | None:
        """Return the view model if it has all pods, else None with a notification that says so."""
        view_model = self.view_model
        if view_model is None:
            self.warn("the cluster has not answered yet")
        elif view_model.arrived is not None:
            so_far = arrived_text(*view_model.arrived)
            self.warn(f"{so_far} so far: this needs all of them")
        else:
            return view_model
        return None

    def refuses_change(self) -> bool:
        """Return whether the past is shown, with a notification that it cannot be changed."""
        past, key = self.source.past, self.keys.first("main.past")
        if past is not None:
            why = f"this is the past, {past_words(past)}: nothing can be changed"
            self.warn(f"{why}; {key} leads to the present")
        return past is not None

    def notify(self, message: str, **options: Any) -> None:
        """Show a notification; its text may come from a server."""
        super().notify(escape_lines(message), markup=False, **options)

    def warn(self, problem: str | QosError) -> None:
        """Show what went wrong, or why a key does nothing, as a notification."""
        self.notify(str(problem), severity="warning")

    def copy(self, text: str, what: str) -> None:
        self.copy_to_clipboard(text)
        self.notify(f"copied {what}: {len(text.splitlines())} lines")
