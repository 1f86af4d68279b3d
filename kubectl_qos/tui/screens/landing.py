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

from kubectl_qos.cluster.write import Rehearsed, Writer
from kubectl_qos.edit.change import Edit
from kubectl_qos.edit.preview import Landing
from kubectl_qos.edit.surroundings import Surroundings
from kubectl_qos.edit.undo import Conflict
from kubectl_qos.errors import QosError
from kubectl_qos.present.landing import confirm_lines, rehearsal_lines, request_lines
from kubectl_qos.tui.actions import Room, bindings
from kubectl_qos.tui.change import Subject
from kubectl_qos.tui.landing import Job, Rehearsal, SurroundingsRead, read_surroundings, rehearse
from kubectl_qos.tui.live import in_background
from kubectl_qos.tui.screens.base import QosScreen, TooSmall
from kubectl_qos.tui.screens.dialogs import ConfirmWrite
from kubectl_qos.tui.screens.patch import PatchScreen
from kubectl_qos.tui.screens.progress import ProgressScreen
from kubectl_qos.tui.standing import Standing
from kubectl_qos.tui.widgets.answers import laid_out
from kubectl_qos.tui.widgets.document import Document, TextScroll
from kubectl_qos.tui.widgets.effects import effects_layout
from kubectl_qos.tui.widgets.title_line import TitleLine
from kubectl_qos.tui.widgets.watching import Foot
from kubectl_qos.tui.widgets.ways import WayLine, Ways

_WRITES: Final = frozenset({"apply", "dry_run"})
_CONFLICT: Final = frozenset({"look", "ours"})


class End(Enum):
    """How the screen was left."""

    BACK = auto()
    LANDED = auto()
    LOOK_AGAIN = auto()


class LandingScreen(QosScreen):
    """The ways of one change.

    Args:
        subject: whose change it is.
        edits: the values to change.
        surroundings: what is around it; read here where that has not been done yet.
        undoes: the id of the entry of the journal that the change takes back, else empty.
        conflicts: values that someone else changed since that entry.
        saved: called when the patch was copied or saved.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Room.LANDING)
    CSS_PATH = "landing.tcss"
    AUTO_FOCUS = "TextScroll"
    rooms = (Room.LANDING,)

    def __init__(
        self,
        subject: Subject,
        edits: Iterable[Edit],
        surroundings: Surroundings | None = None,
        *,
        undoes: str = "",
        conflicts: Sequence[Conflict] = (),
        saved: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__()
        self._standing = Standing(subject, edits, conflicts)
        self._given = surroundings
        self._undoes = undoes
        self._on_saved = saved
        self._keeps_ours = False
        self.end = End.BACK

    def compose(self) -> ComposeResult:
        """What changes, the ways, what the server says, the request."""
        yield TitleLine()
        yield Static(id="subject", markup=False)
        with TextScroll():
            yield Document(laid_out([]), id="changes")
            yield Ways()
            yield Document(laid_out([]), id="answer")
            yield Document(laid_out([]), id="verdicts")
            yield Document(laid_out([]), id="request")
        yield Foot(show_command_palette=False, compact=True)
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
            in_background(self, partial(read_surroundings, standing.subject))
        else:
            standing.take(self._given)
        self._show()

    def on_surroundings_read(self, message: SurroundingsRead) -> None:
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
            self._rehearse()
        self._show()

    def _show(self) -> None:
        standing = self._standing
        verb = "take back a change of" if self._undoes else "change"
        self.query_one("#subject", Static).update(Content(f"{verb} {standing.subject.name}"))
        self.query_one(Ways).show(standing.ways, standing.chosen)
        for name, lines in (
            ("#changes", standing.change_lines()),
            ("#answer", standing.answer_lines()),
            ("#request", standing.request_lines()),
        ):
            document = self.query_one(name, Document)
            document.show(laid_out(lines))
            document.display = bool(lines)
        parts = standing.verdicts()
        verdicts = self.query_one("#verdicts", Document)
        verdicts.show(effects_layout(parts))
        verdicts.display = bool(parts)
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
        if len(standing.ways) < 2:
            hidden.add("other")
        return {
            key: found._replace(binding=replace(found.binding, show=False))
            if found.binding.action in hidden
            else found
            for key, found in super().active_bindings.items()
        }

    @on(WayLine.Clicked)
    def _clicked(self, event: WayLine.Clicked) -> None:
        if self._standing.choose(event.number):
            self._show()

    def action_other(self) -> None:
        """The next way."""
        if self._standing.choose(self._standing.chosen + 1):
            self._show()

    def action_previous_way(self) -> None:
        """The one before."""
        if self._standing.choose(self._standing.chosen - 1):
            self._show()

    def action_dry_run(self) -> None:
        """Ask the server."""
        if self._may_send() and self._standing.asking is None:
            self._rehearse()

    def action_apply(self) -> None:
        """Dry run, if there is none yet; then the question."""
        if not self._may_send():
            return
        if self._standing.rehearsed is not None:
            self._confirm(self._standing.rehearsed)
        elif self._standing.asking is None:
            self._rehearse(then_apply=True)
        else:
            self._standing.then_apply = True
            self._show()

    def _may_send(self) -> bool:
        why = self._standing.why_not()
        if why:
            self.qos.tell(why, wrong=True)
        return not why

    def _rehearse(self, *, then_apply: bool = False) -> None:
        standing = self._standing
        request, writer = standing.request, standing.writer
        assert request is not None
        assert isinstance(writer, Writer)
        standing.forget()
        standing.asking, standing.then_apply = request, then_apply
        in_background(self, partial(rehearse, writer, request))
        self._show()

    def on_rehearsal(self, message: Rehearsal) -> None:
        """Show the answer to the last dry run; the question follows where it is waited for."""
        standing = self._standing
        if message.request is not standing.asking:
            return
        then_apply = standing.then_apply
        standing.forget()
        if isinstance(message.found, QosError):
            standing.error = message.found
        else:
            standing.rehearsed = message.found
        self._show()
        if then_apply and standing.rehearsed is not None and self.is_uppermost:
            self._confirm(standing.rehearsed)

    def _confirm(self, rehearsed: Rehearsed) -> None:
        writer, way, request = self._standing.writer, self._standing.way, rehearsed.request
        assert isinstance(writer, Writer)
        lines = confirm_lines(writer.context, writer.server, request, self._standing.preview, way)
        lines += rehearsal_lines(request, rehearsed.stored, rehearsed.warnings)[1:]
        how = "in place" if way.landing is Landing.IN_PLACE else "by its template"
        name = f"{request.kind.lower()} {request.namespace}/{request.name} {how}"
        job = Job(writer, rehearsed, name, self._undoes)

        def answered(really: bool | None) -> None:
            if really:
                screen = ProgressScreen(job)
                self.qos.push_screen(screen, lambda _: self._came_back(screen))

        typed = writer.context if self.qos.writing.confirms_by_name(writer.context) else ""
        self.qos.push_screen(ConfirmWrite(lines, typed), answered)

    def _came_back(self, screen: ProgressScreen) -> None:
        """From where it was watched: done, it need not land again; refused, the reason stays in sight."""
        if screen.error is None:
            self._leave(End.LANDED)
        else:
            self._standing.forget()
            self._standing.error = screen.error
            self._show()

    def _leave(self, end: End) -> None:
        self.end = end
        self.dismiss()

    def action_look(self) -> None:
        """Ours is given up."""
        self._leave(End.LOOK_AGAIN)

    def action_ours(self) -> None:
        """The same change of what is there now."""
        self._standing.forget()
        self._standing.ways = ()
        self._keeps_ours = True
        in_background(self, partial(read_surroundings, self._standing.subject))
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
        self._leave(End.BACK)
