"""The changes that the UI makes, and who may write where. Everything that writes goes through here.

Each is a `RunningChange`, imported with the first one: what changes need is a tenth of the first frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from textual.app import App

from kubectl_qos.cluster.source import Source
from kubectl_qos.config.settings import UserSettings
from kubectl_qos.config.state import HistoryFile
from kubectl_qos.errors import QosError
from kubectl_qos.tui.actions import Keys
from kubectl_qos.tui.background import run_in_background

if TYPE_CHECKING:
    from kubectl_qos.cluster.writer import Writer
    from kubectl_qos.edit.edits import Edit
    from kubectl_qos.edit.history import Entry
    from kubectl_qos.edit.related import RelatedObjects
    from kubectl_qos.tui.edit_target import EditTarget
    from kubectl_qos.tui.running_change import RunningChange
    from kubectl_qos.tui.view_model import ViewModel


class WriteService:
    """Begins changes, and knows those that have no answer yet or are on trial.

    With `readonly`, from the command line, nothing is written.
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
        """Return a change that is shown next; see `Apply.begin`.

        Raises QosError if it cannot be previewed.
        """
        from kubectl_qos.tui.running_change import RunningChange

        writer, read_only = None, None
        try:
            writer = self._writer(target.source)
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

    def _writer(self, source: Source) -> Writer:
        if self.is_readonly(source.title):
            by = "--readonly" if self._readonly else f"your settings for {source.title}"
            raise QosError(f"nothing is written: {by} says read-only")
        return source.writer()

    def updated(self, change: RunningChange) -> None:
        """Remember what is pending."""
        self._pending = [pending for pending in dict.fromkeys((*self._pending, change)) if pending.pending]
