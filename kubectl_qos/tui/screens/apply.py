"""How a change can land: the ways, the exact request of the chosen one, its dry run, and the question.

Nothing is written here: apply asks (dialogs.ConfirmWrite), and what was confirmed is sent from the screen
that watches it (progress.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from enum import Enum, auto
from functools import partial
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import ActiveBinding, BindingType
from textual.content import Content
from textual.widgets import Static

from kubectl_qos.cluster.writer import DryRunResult, Writer
from kubectl_qos.edit.edits import Edit
from kubectl_qos.edit.history import ValueConflict
from kubectl_qos.edit.preview import StrategyKind
from kubectl_qos.edit.related import RelatedObjects
from kubectl_qos.errors import QosError
from kubectl_qos.present.apply import confirm_lines, dry_run_lines, request_lines
from kubectl_qos.tui.actions import BindingGroup, bindings
from kubectl_qos.tui.apply_state import ApplyState
from kubectl_qos.tui.edit_target import EditTarget
from kubectl_qos.tui.follower import in_background
from kubectl_qos.tui.screens.base import QosScreen, TooSmall
from kubectl_qos.tui.screens.dialogs import ConfirmWrite
from kubectl_qos.tui.screens.patch import PatchScreen
from kubectl_qos.tui.screens.progress import ProgressScreen
from kubectl_qos.tui.widgets.footer import KeyFooter
from kubectl_qos.tui.widgets.sections import effects_layout
from kubectl_qos.tui.widgets.strategies import StrategyLine, StrategyList, layout_lines
from kubectl_qos.tui.widgets.text_view import TextScroll, TextView
from kubectl_qos.tui.widgets.title_line import TitleLine
from kubectl_qos.tui.workers import ApplyJob, DryRunDone, RelatedLoaded, load_related, run_dry_run

_WRITES: Final = frozenset({"apply", "dry_run"})
_CONFLICT: Final = frozenset({"look", "ours"})


class ApplyOutcome(Enum):
    """How the screen was left."""

    BACK = auto()
    LANDED = auto()
    LOOK_AGAIN = auto()


class ApplyScreen(QosScreen):
    """The ways of one change.

    Args:
        subject: whose change it is.
        edits: the values to change.
        surroundings: what is around it; read here where that has not been done yet.
        undoes: the id of the entry of the journal that the change takes back, else empty.
        conflicts: values that someone else changed since that entry.
        saved: called when the patch was copied or saved.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(BindingGroup.LANDING)
    CSS_PATH = "apply.tcss"
    AUTO_FOCUS = "TextScroll"
    rooms = (BindingGroup.LANDING,)

    def __init__(
        self,
        subject: EditTarget,
        edits: Iterable[Edit],
        related: RelatedObjects | None = None,
        *,
        undoes: str = "",
        conflicts: Sequence[ValueConflict] = (),
        saved: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__()
        self._standing = ApplyState(subject, edits, conflicts)
        self._given = related
        self._undoes = undoes
        self._on_saved = saved
        self._keeps_ours = False
        self.end = ApplyOutcome.BACK

    def compose(self) -> ComposeResult:
        """What changes, the ways, what the server says, the request."""
        yield TitleLine()
        yield Static(id="subject", markup=False)
        with TextScroll():
            yield TextView(layout_lines([]), id="changes")
            yield StrategyList()
            yield TextView(layout_lines([]), id="answer")
            yield TextView(layout_lines([]), id="verdicts")
            yield TextView(layout_lines([]), id="request")
        yield KeyFooter(show_command_palette=False, compact=True)
        yield TooSmall()

    def on_mount(self) -> None:
        """The ways, as soon as it is known what is around."""
        self.qos.show_title()
        standing = self._standing
        standing.keys = self.qos.keys
        try:
            standing.writer = self.qos.writing.writer_of(standing.subject.source)
        except QosError as error:
            standing.writer = error
        if self._given is None:
            in_background(self, partial(load_related, standing.subject))
        else:
            standing.take(self._given)
        self._show()

    def on_related_loaded(self, message: RelatedLoaded) -> None:
        """The ways; and, where ours is kept, the same change of what is there now, and its dry run."""
        standing = self._standing
        if message.subject is not standing.subject:
            return
        anew, self._keeps_ours = self._keeps_ours, False
        if isinstance(message.found, QosError):
            standing.error = message.found
        else:
            standing.take(message.found, anew=anew)
        if anew and not standing.why_not():
            self._run_dry_run()
        self._show()

    def _show(self) -> None:
        standing = self._standing
        verb = "take back a change of" if self._undoes else "change"
        self.query_one("#subject", Static).update(Content(f"{verb} {standing.subject.name}"))
        self.query_one(StrategyList).show(standing.strategies, standing.chosen)
        for name, lines in (
            ("#changes", standing.change_lines()),
            ("#answer", standing.answer_lines()),
            ("#request", standing.request_lines()),
        ):
            document = self.query_one(name, TextView)
            document.show(layout_lines(lines))
            document.display = bool(lines)
        parts = standing.findings()
        findings = self.query_one("#verdicts", TextView)
        findings.show(effects_layout(parts))
        findings.display = bool(parts)
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Two keys are there for a conflict only."""
        del parameters
        return action not in _CONFLICT or self._standing.is_stale

    @property
    def active_bindings(self) -> dict[str, ActiveBinding]:
        """What cannot be done is not in the footer; its key says why."""
        standing = self._standing
        hidden = set(_WRITES) if standing.is_stale or isinstance(standing.writer, QosError) else set()
        if len(standing.strategies) < 2:
            hidden.add("other")
        return {
            key: found._replace(binding=replace(found.binding, show=False))
            if found.binding.action in hidden
            else found
            for key, found in super().active_bindings.items()
        }

    @on(StrategyLine.Clicked)
    def _clicked(self, event: StrategyLine.Clicked) -> None:
        if self._standing.choose(event.number):
            self._show()

    def action_other(self) -> None:
        """The next way."""
        if self._standing.choose(self._standing.chosen + 1):
            self._show()

    def action_previous_strategy(self) -> None:
        """The one before."""
        if self._standing.choose(self._standing.chosen - 1):
            self._show()

    def action_dry_run(self) -> None:
        """Ask the server."""
        if self._may_send() and self._standing.asking is None:
            self._run_dry_run()

    def action_apply(self) -> None:
        """Dry run, if there is none yet; then the question."""
        if not self._may_send():
            return
        if self._standing.dry_run_result is not None:
            self._confirm(self._standing.dry_run_result)
        elif self._standing.asking is None:
            self._run_dry_run(then_apply=True)
        else:
            self._standing.then_apply = True
            self._show()

    def _may_send(self) -> bool:
        why = self._standing.why_not()
        if why:
            self.qos.tell(why, wrong=True)
        return not why

    def _run_dry_run(self, *, then_apply: bool = False) -> None:
        standing = self._standing
        request, writer = standing.request, standing.writer
        assert request is not None
        assert isinstance(writer, Writer)
        standing.forget()
        standing.asking, standing.then_apply = request, then_apply
        in_background(self, partial(run_dry_run, writer, request))
        self._show()

    def on_dry_run_done(self, message: DryRunDone) -> None:
        """Show the answer to the last dry run; the question follows where it is waited for."""
        standing = self._standing
        if message.request is not standing.asking:
            return
        then_apply = standing.then_apply
        standing.forget()
        if isinstance(message.found, QosError):
            standing.error = message.found
        else:
            standing.dry_run_result = message.found
        self._show()
        if then_apply and standing.dry_run_result is not None and self.is_uppermost:
            self._confirm(standing.dry_run_result)

    def _confirm(self, dry_run_result: DryRunResult) -> None:
        writer, strategy, request = self._standing.writer, self._standing.strategy, dry_run_result.request
        assert isinstance(writer, Writer)
        lines = confirm_lines(writer.context, writer.server, request, self._standing.preview, strategy)
        lines += dry_run_lines(request, dry_run_result.stored, dry_run_result.warnings)[1:]
        how = "in place" if strategy.kind is StrategyKind.IN_PLACE else "by its template"
        name = f"{request.kind.lower()} {request.namespace}/{request.name} {how}"
        job = ApplyJob(writer, dry_run_result, name, self._undoes)

        def answered(really: bool | None) -> None:
            if really:
                screen = ProgressScreen(job)
                self.qos.push_screen(screen, lambda _: self._came_back(screen))

        typed = writer.context if self.qos.writing.confirms_by_name(writer.context) else ""
        self.qos.push_screen(ConfirmWrite(lines, typed), answered)

    def _came_back(self, screen: ProgressScreen) -> None:
        """From where it was watched: done, it need not land again; refused, the reason stays in sight."""
        if screen.error is None:
            self._leave(ApplyOutcome.LANDED)
        else:
            self._standing.forget()
            self._standing.error = screen.error
            self._show()

    def _leave(self, end: ApplyOutcome) -> None:
        self.end = end
        self.dismiss()

    def action_look(self) -> None:
        """Ours is given up."""
        self._leave(ApplyOutcome.LOOK_AGAIN)

    def action_ours(self) -> None:
        """The same change of what is there now."""
        self._standing.forget()
        self._standing.strategies = ()
        self._keeps_ours = True
        in_background(self, partial(load_related, self._standing.subject))
        self._show()

    def action_patch(self) -> None:
        """The patch and the manifest."""
        self.qos.push_screen(PatchScreen(self._standing.subject.pod, self._standing.preview, self._on_saved))

    def action_copy(self) -> None:
        """The request as text."""
        request = self._standing.request
        if request is not None:
            self.qos.copy("\n".join(request_lines(request)) + "\n", "the request")
        else:
            self.qos.tell("there is no request to copy", wrong=True)

    def action_back(self) -> None:
        """Back; nothing was sent."""
        self._leave(ApplyOutcome.BACK)
