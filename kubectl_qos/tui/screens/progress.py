"""What becomes of a change that was confirmed: it is sent from here, once, then looked at until it settles.

Leaving ends the looking, not the change. An answer that comes after the screen was left is told by the app.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Static

from kubectl_qos.cluster.writer import ApplyResult
from kubectl_qos.edit.status import Progress, Stage
from kubectl_qos.errors import QosError
from kubectl_qos.present.apply import change_lines, progress_line
from kubectl_qos.present.format import duration, escape
from kubectl_qos.tui.actions import BindingGroup, bindings
from kubectl_qos.tui.follower import in_background
from kubectl_qos.tui.screens.base import KeyFooter, QosScreen, TitleLine, TooSmall
from kubectl_qos.tui.widgets.strategies import layout_lines, sent_error_lines
from kubectl_qos.tui.widgets.text_view import TextLine, TextScroll, TextView
from kubectl_qos.tui.workers import ApplyJob, ProgressChecked, check_apply_progress

LOOK_SECONDS: Final = 2.0
"""So long after one look comes the next."""
_TICK_SECONDS: Final = 1.0


class ProgressScreen(QosScreen):
    """One write and what is seen of it; `error` is why it was not done, or is not known to be."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(BindingGroup.PROGRESS)
    CSS_PATH = "apply.tcss"
    AUTO_FOCUS = "TextScroll"
    binding_groups = (BindingGroup.PROGRESS,)

    def __init__(self, job: ApplyJob) -> None:
        super().__init__()
        self._job = job
        self._written: ApplyResult | None = None
        self._progress: Progress | None = None
        self._stages: list[tuple[int, str]] = []
        self._trouble = ""
        self.error: QosError | None = None

    def compose(self) -> ComposeResult:
        """What was asked for, then one line for each thing that was seen."""
        yield TitleLine()
        yield Static(id="subject", markup=False)
        with TextScroll():
            yield TextView(layout_lines([]), id="seen")
        yield KeyFooter(show_command_palette=False, compact=True)
        yield TooSmall()

    def on_mount(self) -> None:
        """Send it."""
        self.qos.show_title()
        self._began = self.qos.source.now()
        self.qos.writing.send(self._job, self._take)
        self.set_interval(_TICK_SECONDS, self._show)
        self._show()

    @property
    def leave_question(self) -> str:
        """An answer that is under way should be heard."""
        if self._is_sending:
            return f"{self._job.name}: it was sent, and there is no answer yet. Leave all the same?"
        return ""

    @property
    def _is_sending(self) -> bool:
        return self._written is None and self.error is None

    @property
    def _is_settled(self) -> bool:
        return self.error is not None or (self._progress is not None and self._progress.settled)

    def _take(self, found: ApplyResult | QosError) -> bool:
        """The answer to the write; False where the screen was left before it came."""
        if not self.is_attached or self not in self.app.screen_stack:
            return False
        if isinstance(found, QosError):
            self.error = found
        else:
            self._written = found
            self._add("the server has it")
            self._look()
        self._show()
        return True

    def _look(self) -> None:
        if self._written is not None:
            in_background(self, partial(check_apply_progress, self._job.writer, self._written))

    def on_progress_checked(self, message: ProgressChecked) -> None:
        """Show it, and look again unless it has settled."""
        if isinstance(message.found, QosError):
            self._trouble = f"it cannot be looked at now: {message.found}"
        else:
            self._trouble = ""
            self._progress = message.found
            self._add(progress_line(message.found))
        if not self._is_settled:
            self.set_timer(LOOK_SECONDS, self._look)
        self._show()

    @property
    def _elapsed(self) -> int:
        return max(int((self.qos.source.now() - self._began).total_seconds()), 0)

    def _add(self, line: str) -> None:
        if not self._stages or self._stages[-1][1] != line:
            self._stages.append((self._elapsed, line))

    def _show(self) -> None:
        verb = "taking back a change of" if self._job.undoes else "changing"
        self.query_one("#subject", Static).update(
            Content(f"{verb} {escape(self._job.name)} in {escape(self._job.writer.context)}")
        )
        self.query_one("#seen", TextView).show(layout_lines(self._lines()))

    def _lines(self) -> list[TextLine]:
        request = self._job.dry_run_result.request
        lines = [TextLine(f"  {line}") for line in change_lines(request.before, request.edits)]
        if self._stages:
            lines.append(TextLine(""))
        *earlier, newest = self._stages or [(0, "")]
        lines += [TextLine(f"  {duration(seconds):>4}  {line}", "muted") for seconds, line in earlier]
        if newest[1]:
            lines.append(TextLine(f"> {duration(newest[0]):>4}  {newest[1]}", "title"))
        if self._trouble:
            lines.append(TextLine(f"! {escape(self._trouble)}", "wrong"))
        return [*lines, TextLine(""), *self._ending()]

    def _ending(self) -> Iterator[TextLine]:
        """How it goes on, or how it ended."""
        if self.error is not None:
            yield from sent_error_lines(self.error)
        elif self._is_sending:
            context = escape(self._job.writer.context)
            yield TextLine(f"  sent to {context}, no answer yet, {duration(self._elapsed)}")
        elif not self._is_settled:
            so_far = duration(self._elapsed)
            yield TextLine(f"  looking every {LOOK_SECONDS:.0f} s, {so_far} so far", "muted")
        else:
            yield from self._settled()

    def _settled(self) -> Iterator[TextLine]:
        is_done = self._progress is not None and self._progress.stage is Stage.DONE
        if not is_done:
            yield TextLine("! nothing more will happen by itself", "wrong")
        if not self._job.undoes:
            yield TextLine(f"  {self.qos.keys.first('app.undo')} takes it back", "muted")
        elif is_done:
            yield TextLine("  the values are back as they were before", "answer")
        problem = self.qos.writing.history.problem
        if problem:
            yield TextLine(f"! {escape(problem)}", "wrong")

    def action_back(self) -> None:
        """Look no longer."""
        undo = self.qos.keys.first("app.undo")
        if self._is_sending:
            self.qos.notify(
                f"{self._job.name} is under way: the answer will be shown, and {undo} lists it",
                severity="warning",
            )
        elif not self._is_settled:
            self.qos.notify(f"{self._job.name} goes on unwatched; {undo} lists it")
        self.dismiss()
