"""Change requests and limits, and see at once what that does; ends in a patch, never in a cluster."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Static

from kubectl_qos.edit.goals import edits_of
from kubectl_qos.edit.preview import Preview, preview
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.present.amounts import escape
from kubectl_qos.present.diff import preview_parts
from kubectl_qos.present.notes import missing_sentence
from kubectl_qos.present.words import step_sentence
from kubectl_qos.qos.class_steps import steps_to
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.tui.actions import Room, bindings
from kubectl_qos.tui.facts import Facts
from kubectl_qos.tui.screens.base import QosScreen, TooSmall
from kubectl_qos.tui.screens.dialogs import Confirm
from kubectl_qos.tui.screens.patch import PatchScreen
from kubectl_qos.tui.widgets.document import Document, TextScroll
from kubectl_qos.tui.widgets.effects import effects_layout
from kubectl_qos.tui.widgets.resource_form import ResourceForm
from kubectl_qos.tui.widgets.title_line import TitleLine
from kubectl_qos.tui.widgets.watching import Foot


class EditScreen(QosScreen):
    """Fields on the left, their effects on the right; of a pod as it was when the screen was opened."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Room.EDIT)
    CSS_PATH = "edit.tcss"
    AUTO_FOCUS = "QuantityField"
    rooms = (Room.EDIT,)

    def __init__(self, pod: Pod, facts: Facts) -> None:
        super().__init__()
        snapshot = facts.snapshot
        self._facts = facts
        self._pod = pod
        self._setup = snapshot.setup(pod.node_name)
        self._neighbours = [one for one in snapshot.pods if one.node_name == pod.node_name]
        self._usage = snapshot.usage
        self._missing = [missing_sentence(missing) for missing in snapshot.missing]
        self._saved: list[tuple[str, str]] = []

    def compose(self) -> ComposeResult:
        """The form and the preview."""
        yield TitleLine()
        yield Static(id="subject")
        with Horizontal(id="body"):
            yield ResourceForm(self._pod, self._setup.release)
            with TextScroll(id="preview", can_focus=False):
                yield Document(lambda _: [], id="effects")
        yield Foot(show_command_palette=False, compact=True)
        yield TooSmall()

    def on_mount(self) -> None:
        """The effects of nothing."""
        self.qos.show_title()
        self._show_preview()

    def _show_subject(self) -> None:
        pod = self._pod
        name = f"{pod.namespace}/{pod.name}" if pod.namespace else pod.name
        where = f" on {escape(pod.node_name)}" if pod.node_name else ""
        saved = "  * not saved" if self.unsaved else ""
        text = f"edit {pod.kind.lower()} {escape(name)}{where}{self.qos.as_of(self._facts)}{saved}"
        self.query_one("#subject", Static).update(Content(text))

    @property
    def form(self) -> ResourceForm:
        """The fields."""
        return self.query_one(ResourceForm)

    @property
    def unsaved(self) -> bool:
        """Whether a field has a text that no patch was saved or copied of."""
        return self.form.touched not in ([], self._saved)

    def preview_now(self) -> Preview:
        """The effects of the fields that are right."""
        return preview(self._pod, self.form.edits, self._setup, self._neighbours, self._usage)

    @on(ResourceForm.Changed)
    def _show_preview(self) -> None:
        self._show_subject()
        parts = preview_parts(self.preview_now())
        layout = effects_layout(parts, len(self.form.wrong), self._missing)
        self.query_one("#effects", Document).show(layout)

    def action_guaranteed(self) -> None:
        """Requests equal to limits; says what it cannot know."""
        if self._complain():
            return
        after = self.preview_now().after
        release = after.setup.release
        steps = steps_to(after.pod, QosClass.GUARANTEED, release)
        if not steps:
            self.qos.tell("the pod is Guaranteed with these values")
            return
        found = {step: tuple(edits_of(step, after.pod, release)) for step in steps}
        self.form.put(edit for edits in found.values() for edit in edits)
        open_steps = [step_sentence(step) for step, edits in found.items() if not edits]
        if open_steps:
            self.qos.tell("still to do: " + "; ".join(open_steps), wrong=True)

    def action_reset(self) -> None:
        """Every field as stored."""
        self.form.reset()

    def action_below(self) -> None:
        """The field below."""
        self.form.move(1)

    def action_above(self) -> None:
        """The field above."""
        self.form.move(-1)

    def action_page_up(self) -> None:
        """The preview a page up."""
        self.query_one("#preview", TextScroll).action_page_up()

    def action_page_down(self) -> None:
        """The preview a page down."""
        self.query_one("#preview", TextScroll).action_page_down()

    def action_patch(self) -> None:
        """The change as a patch and as a manifest."""
        if self._complain():
            return
        found = self.preview_now()
        if not found.edits:
            self.qos.tell("nothing is changed: there is no patch", wrong=True)
            return
        touched = self.form.touched

        def saved() -> None:
            self._saved = touched
            self._show_subject()

        self.qos.push_screen(PatchScreen(self._pod, found, saved))

    def _complain(self) -> bool:
        """Whether a wrong field stands in the way; it gets the focus."""
        wrong = self.form.wrong
        if wrong:
            wrong[0].focus()
            self.qos.tell(f"{wrong[0].name_in_spec}: {wrong[0].problem}", wrong=True)
        return bool(wrong)

    def action_back(self) -> None:
        """Leave; what is not saved is asked about."""
        if self.unsaved:
            self.qos.push_screen(
                Confirm("The changes are not saved. Leave all the same?", "leave", "stay"), self._left
            )
        else:
            self.dismiss()

    def _left(self, really: bool | None) -> None:
        if really:
            self.dismiss()
