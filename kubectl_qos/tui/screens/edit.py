"""Change requests and limits, and see at once what that does and what speaks against it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Static

from kubectl_qos.edit.edits import apply_edits
from kubectl_qos.edit.goals import Goal, edits_for_step
from kubectl_qos.edit.preview import Preview
from kubectl_qos.edit.related import RelatedObjects
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.present.effects import preview_sections
from kubectl_qos.present.findings import obstacle_sentence
from kubectl_qos.present.format import escape
from kubectl_qos.present.pod_rows import PodRow
from kubectl_qos.present.reasons import step_sentence
from kubectl_qos.qos.qos_class import QosClass, steps_to
from kubectl_qos.tui.actions import BindingGroup, bindings
from kubectl_qos.tui.edit_target import EditTarget, related_sections
from kubectl_qos.tui.follower import run_in_background
from kubectl_qos.tui.screens.apply import ApplyOutcome, ApplyScreen
from kubectl_qos.tui.screens.base import QosScreen, TooSmall
from kubectl_qos.tui.screens.dialogs import AskNumber, Confirm
from kubectl_qos.tui.screens.search import Finder
from kubectl_qos.tui.view_model import ViewModel
from kubectl_qos.tui.widgets.footer import KeyFooter
from kubectl_qos.tui.widgets.resource_form import ResourceForm
from kubectl_qos.tui.widgets.sections import effects_layout
from kubectl_qos.tui.widgets.text_view import TextScroll, TextView
from kubectl_qos.tui.widgets.title_line import TitleLine


class EditScreen(QosScreen):
    """Fields on the left, their effects on the right; of a pod as it was when the screen was opened."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(BindingGroup.EDIT)
    CSS_PATH = "edit.tcss"
    AUTO_FOCUS = "QuantityField"
    rooms = (BindingGroup.EDIT,)

    def __init__(self, pod: Pod, facts: ViewModel) -> None:
        super().__init__()
        self._facts = facts
        self._pod = pod
        self._around: RelatedObjects | QosError | None = None
        self._reloads = False
        self._saved: list[tuple[str, str]] = []

    def compose(self) -> ComposeResult:
        """The form and the preview."""
        yield TitleLine()
        yield Static(id="subject")
        with Horizontal(id="body"):
            yield ResourceForm(self._pod, self._facts.snapshot.setup(self._pod.node_name).release)
            with TextScroll(id="preview", can_focus=False):
                yield TextView(lambda _: [], id="effects")
        yield KeyFooter(show_command_palette=False, compact=True)
        yield TooSmall()

    def on_mount(self) -> None:
        """The effects of nothing; what is around the pod is read meanwhile."""
        self.qos.show_title()
        self._subject = EditTarget(self._pod, self._facts, self.qos.source)
        self._load_related()
        self._show_preview()

    def _load_related(self) -> None:
        target = self._subject
        run_in_background(
            self, lambda: target.source.related(target.pod), partial(self._related_loaded, target)
        )

    async def _related_loaded(self, target: EditTarget, related: RelatedObjects | QosError) -> None:
        """Show the findings from now on; after a conflict, the fields of the object as it is now."""
        if target is not self._subject:
            return
        self._around = related
        if self._reloads and not isinstance(related, QosError):
            self._reloads = False
            await self._reload_fields(related)
        self._show_preview()

    async def _reload_fields(self, related: RelatedObjects) -> None:
        """The fields of the object as it is now."""
        try:
            self._subject = self._subject.now(related.raw)
        except QosError as error:
            self.qos.tell(str(error), wrong=True)
            return
        self._pod, self._saved = self._subject.pod, []
        await self.form.remove()
        form = ResourceForm(self._pod, self._subject.setup.release)
        await self.query_one("#body").mount(form, before="#preview")
        form.fields[0].focus()

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
        return self._subject.preview(self.form.edits)

    @on(ResourceForm.Changed)
    def _show_preview(self) -> None:
        self._show_subject()
        found = self.preview_now()
        parts = (*related_sections(found, self._subject, self._around), *preview_sections(found))
        layout = effects_layout(parts, len(self.form.wrong), self._subject.missing)
        self.query_one("#effects", TextView).show(layout)

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
        found = {step: tuple(edits_for_step(step, after.pod, release)) for step in steps}
        self.form.put(edit for edits in found.values() for edit in edits)
        open_steps = [step_sentence(step) for step, edits in found.items() if not edits]
        if open_steps:
            self.qos.tell("still to do: " + "; ".join(open_steps), wrong=True)

    def action_outlive(self) -> None:
        """Behind a pod of the node that is chosen by some letters of its name."""
        others = self._subject.others()
        if not others:
            self.qos.tell("there is no other pod on its node to outlive", wrong=True)
        elif not self._complain():
            finder = Finder(others, self.qos.source.now(), title="Outlive which pod?")
            self.qos.push_screen(finder, self._outlive)

    def _outlive(self, row: PodRow | None) -> None:
        if row is not None:
            other = self._facts.pod_of(row)
            after = apply_edits(self._pod, self.form.edits)
            name = escape(f"{other.namespace}/{other.name}")
            self._reach(self._subject.outliving(after, other), f"it is killed after {name}")

    def action_rank(self) -> None:
        """To a kill rank or a later one."""
        most = self.preview_now().effects.ranked
        if most < 2:
            self.qos.tell("there are no ranks on its node to choose among", wrong=True)
        elif not self._complain():
            self.qos.push_screen(
                AskNumber("Kill rank on its node, or later (1 dies first):", most), self._rank
            )

    def _rank(self, rank: int | None) -> None:
        if rank is not None:
            after = apply_edits(self._pod, self.form.edits)
            self._reach(self._subject.ranking(after, rank), f"its kill rank is {rank} or later")

    def _reach(self, goal: Goal, words: str) -> None:
        """Fill in what reaches a goal; else say why it cannot be reached, over the screen."""
        if goal.obstacle is not None:
            guaranteed = f"{self.qos.keys.first('edit.guaranteed')} makes it Guaranteed."
            why = f"{obstacle_sentence(goal.obstacle)}."
            self.qos.read("Not by memory requests", [why, "", guaranteed])
        elif goal.edits:
            self.form.put(goal.edits)
        else:
            self.qos.tell(f"{words} with these values")

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

    def action_land(self) -> None:
        """Show the strategies of applying the change."""
        if self._complain():
            return
        found = self.preview_now()
        if not found.edits:
            self.qos.tell("nothing is changed: there is nothing to apply", wrong=True)
            return
        touched = self.form.touched

        def saved() -> None:
            self._saved = touched
            self._show_subject()

        related = self._around if isinstance(self._around, RelatedObjects) else None
        screen = ApplyScreen(self.qos.writing.begin(self._subject, found.edits, related), saved)
        self.qos.push_screen(screen, lambda _: self._came_back(screen, saved))

    def _came_back(self, screen: ApplyScreen, saved: Callable[[], None]) -> None:
        """What was applied needs no fields any more; after a conflict the object is read again."""
        if screen.outcome is ApplyOutcome.APPLIED:
            saved()
            self.dismiss()
        elif screen.outcome is ApplyOutcome.RELOAD:
            self._reloads = True
            self._load_related()

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
