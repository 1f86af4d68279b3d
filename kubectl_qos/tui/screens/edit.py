"""Change requests and limits, with a preview of the effects and of what would refuse the change."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from itertools import groupby
from typing import Final

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Static

from kubectl_qos.analysis.pod_table import PodRow
from kubectl_qos.cluster.background import run_in_background
from kubectl_qos.edit.compare import DeathsAt, deaths_at_moments
from kubectl_qos.edit.edits import Edit
from kubectl_qos.edit.goals import Goal, edits_for_step
from kubectl_qos.edit.preview import Effects, Preview
from kubectl_qos.edit.related import RelatedObjects
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.objects import MEMORY, Pod
from kubectl_qos.k8s.resources import declared_limits, pod_limits
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.present.effects import goal_section
from kubectl_qos.present.explanation import fix_text
from kubectl_qos.present.findings import obstacle_sentence
from kubectl_qos.present.format import escape
from kubectl_qos.present.output import Line, Section
from kubectl_qos.present.preview import cheapest_section
from kubectl_qos.present.reasons import step_sentence
from kubectl_qos.qos.oom_score import is_mirror, is_static
from kubectl_qos.qos.qos_class import QosClass, steps_to
from kubectl_qos.qos.simulation.node_state import growth_on
from kubectl_qos.tui.actions import BindingGroup
from kubectl_qos.tui.edit_target import (
    EditTarget,
    deaths_layout,
    files_layout,
    ladder_layout,
    pods_layout,
    related_sections,
    values_layout,
)
from kubectl_qos.tui.screens.apply import ApplyOutcome, ApplyScreen
from kubectl_qos.tui.screens.base import MIN_WIDTH, QosScreen
from kubectl_qos.tui.screens.dialogs import LeaveDialog, NumberDialog
from kubectl_qos.tui.screens.search import Finder
from kubectl_qos.tui.view import pod_name
from kubectl_qos.tui.view_model import ViewModel
from kubectl_qos.tui.widgets.graph import pod_graph
from kubectl_qos.tui.widgets.resource_form import ResourceForm
from kubectl_qos.tui.widgets.text_view import (
    TextLayout,
    TextScroll,
    TextView,
    effects_layout,
    paragraphs,
    section_layout,
    stacked,
)

_DEATHS: Final = "Next deaths by its own limits and by its node's killers"
_WIDE: Final = 112
"""From this width on there are two columns."""
_HUGE: Final = 160
"""From this width on the cgroup files are unfolded."""
_MIN_LADDER, _MAX_LADDER = 5, 60
"""How many pods of the kill order are shown."""
_BORDERS: Final = 2
_UNSAVED: Final = "  * not saved"
_GRAPH_FROM: Final = 45
"""From this height on there is a graph."""
_OTHER_LINES: Final = 4 + 3 * _BORDERS
"""Lines of a wide screen without the values, the kill order and the next deaths."""


def _panel(name: str, title: str, classes: str = "") -> TextView:
    panel = TextView(id=name, classes=f"panel {classes}")
    panel.border_title = title
    return panel


def suggestions(pod: Pod, row: PodRow | None, snapshot: Snapshot) -> list[Section]:
    """Find a fix for the pod's next death, and the cheapest change of its class or rank. Takes long."""
    fix = fix_text(pod, snapshot) if row is not None and pod.kind == "Pod" else ""
    against = Section("Fix for its next death", lines=(Line(fix),)) if fix else None
    return list(filter(None, [against, cheapest_section(pod, row, snapshot)]))


class EditScreen(QosScreen, group=BindingGroup.EDIT):
    """Fields with a preview of their effects. It does not follow updates."""

    AUTO_FOCUS = "QuantityField"
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (MIN_WIDTH, "-narrow"), (_WIDE, "-wide"), (_HUGE, "-huge")]  # noqa: RUF012

    def __init__(self, pod: Pod, view_model: ViewModel, edits: Sequence[Edit] = ()) -> None:
        super().__init__()
        self._edits = edits
        self._view_model = view_model
        self._pod = pod
        self._related: RelatedObjects | QosError | None = None
        self._reloads = False
        self._folds_files: bool | None = None
        self._saved: list[tuple[str, str]] = []
        self._advice: Sequence[Section] = ()
        self._shown: tuple[object, ...] = ()

    def compose_content(self) -> ComposeResult:
        self._target = EditTarget(self._pod, self._view_model, self.qos.source)
        yield Static(id="subject")
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield self._new_form()
                with TextScroll(id="before", can_focus=False) as before:
                    before.border_title = "Before you apply it"
                    yield TextView(classes="before")
                yield _panel("memory", "Memory below its limit")
            with TextScroll(id="preview", can_focus=False):
                yield _panel("values", "Effect")
                yield _panel("deaths-narrow", _DEATHS, "narrow")
                yield _panel("ladder", "Kill order")
                yield _panel("before-narrow", "Before you apply it", "before narrow")
                yield _panel("files", "cgroup")
        yield _panel("deaths", _DEATHS)

    def _new_form(self) -> ResourceForm:
        release = self._view_model.snapshot.setup(self._pod.node_name).release
        return ResourceForm(self._pod, release, self._target.uses(self.qos.trends))

    def on_mount(self) -> None:
        """Show the preview; the related objects and suggestions come from threads."""
        self._load_related()
        row = self._view_model.row_on(self._pod.node_name, self._pod.key)
        run_in_background(self, partial(suggestions, self._pod, row, self._view_model.snapshot), self._advise)
        self.form.put(self._edits)
        self._show_preview()

    def on_resize(self) -> None:
        self._show_preview()

    def _advise(self, sections: Sequence[Section] | QosError) -> None:
        self._advice = () if isinstance(sections, QosError) else sections
        self._show_preview()

    def _load_related(self) -> None:
        target = self._target
        work = partial(target.source.related, target.pod)
        run_in_background(self, work, partial(self._related_loaded, target))

    async def _related_loaded(self, target: EditTarget, related: RelatedObjects | QosError) -> None:
        """Show what the related objects mean for the change; after a conflict also reload the fields."""
        if target is not self._target:
            return
        self._related = related
        if self._reloads and not isinstance(related, QosError):
            self._reloads = False
            await self._reload(related)
        self._show_preview()

    async def _reload(self, related: RelatedObjects) -> None:
        try:
            self._target = self._target.refreshed(related.raw)
        except QosError as error:
            self.qos.warn(error)
            return
        self._pod, self._saved = self._target.pod, []
        await self.form.remove()
        form = self._new_form()
        await self.query_one("#left").mount(form, before=0)
        form.fields[0].focus()

    def _show_subject(self) -> None:
        pod = self._pod
        where = f" on {escape(pod.node_name)}" if pod.node_name else ""
        text = f"edit {pod_name(pod)}{where}{self.qos.as_of(self._view_model)}"
        if self.unsaved:
            is_long = cell_len(text) + len(_UNSAVED) > self.app.size.width - _BORDERS
            text += "\n* not saved" if is_long else _UNSAVED
        self.query_one("#subject", Static).update(Content(text))

    @property
    def form(self) -> ResourceForm:
        return self.query_one(ResourceForm)

    @property
    def unsaved(self) -> bool:
        return self.form.touched not in ([], self._saved)

    @property
    def not_in_footer(self) -> Collection[str]:
        return {"apply"} if is_static(self._pod) or is_mirror(self._pod) else ()

    def preview_now(self) -> Preview:
        return self._target.preview(self.form.edits)

    @on(ResourceForm.Changed)
    def _show_preview(self) -> None:
        self._show_subject()
        loaded = id(self._target), id(self._related), id(self._advice)
        shown = self.form.edits, self.form.wrong, loaded, self._folds, self.app.size
        if shown == self._shown:  # fields post a change also when they are mounted
            return
        self._shown = shown
        preview = self.preview_now()
        replicas = self._target.replicas(preview)
        effects = replicas[0].effects[0] if replicas else preview.effects
        workload = self._related.raw if isinstance(self._related, RelatedObjects) else None
        sections = list(related_sections(preview, self._target, self._related))
        width, height = self.app.size
        is_narrow = width < _WIDE
        # On a narrow screen the panel with the warnings is below the others.
        warnings = [(f"! {section.heading}", "wrong") for section in sections if section.warns and is_narrow]
        pods = pods_layout(replicas, self._target.others_of_workload, workload)
        values = stacked(pods, values_layout(effects))
        deaths = self._next_deaths(effects)
        has_files = bool(effects.files) or effects.changes_path
        spare = height - _OTHER_LINES - 3 * len(deaths) - len(values(width))
        spare -= _BORDERS + 1 if has_files else 0
        ladder_lines = _MIN_LADDER if is_narrow else max(_MIN_LADDER, min(spare, _MAX_LADDER))
        memory = self._graph(effects.after.pod)
        files_key = self.qos.keys.first("edit.files")
        layouts = {
            "#values": stacked(paragraphs(*warnings), values),
            "#ladder": ladder_layout(effects, ladder_lines),
            "#memory": memory,
            ".before": self._before_layout(preview, sections),
            "#deaths, #deaths-narrow": deaths_layout(deaths, effects),
            "#files": files_layout(effects, files_key, is_folded=self._folds),
        }
        for selector, layout in layouts.items():
            for view in self.query(selector).results(TextView):
                view.show(layout)
        self.query_one("#files").display = has_files
        has_memory = not is_narrow and height >= _GRAPH_FROM and bool(memory(width // 2))
        self.query_one("#memory").display = has_memory

    def _before_layout(self, preview: Preview, sections: Sequence[Section]) -> TextLayout:
        """Lay out what to know before the change is applied; without a change, what may be changed."""
        layout = effects_layout(sections, len(self.form.wrong), self._target.missing)
        for section in self._advice if not preview.edits else ():
            heading = paragraphs((f"  {section.title}", "answer"))
            layout = stacked(layout, heading, section_layout(section, "    "))
        return layout

    def _next_deaths(self, effects: Effects) -> list[DeathsAt]:
        """Return the next deaths after the change, at each moment at which they become other ones."""
        snapshot, node = self._view_model.snapshot, effects.before.pod.node_name
        moments = deaths_at_moments(effects, snapshot.own_bytes(node), growth_on(snapshot, node))
        return [next(same) for _, same in groupby(moments, key=lambda moment: moment.deaths)]

    def _graph(self, pod: Pod) -> TextLayout:
        """Draw the pod's recent memory below its limit after the change."""
        release, trends = self._view_model.snapshot.setup(pod.node_name).release, self.qos.trends
        bounded = pod_limits(pod, release) if declared_limits(pod, release).memory else {}
        limit = bounded[MEMORY].value() if MEMORY in bounded else None
        return lambda width: pod_graph(trends.of(pod.key), limit, width, trends.times(pod.key))

    def action_files(self) -> None:
        """Fold or unfold the cgroup files, and scroll to them."""
        self._folds_files = not self._folds
        self._show_preview()
        if not self._folds:
            self.call_after_refresh(self.query_one("#files").scroll_visible, animate=False, top=True)

    @property
    def _folds(self) -> bool:
        return self.app.size.width < _HUGE if self._folds_files is None else self._folds_files

    def action_guaranteed(self) -> None:
        if self._has_wrong_field():
            return
        after = self.preview_now().after
        release = after.setup.release
        steps = steps_to(after.pod, QosClass.GUARANTEED, release)
        if not steps:
            self.qos.notify("the pod is Guaranteed with these values")
            return
        edits_by_step = {step: tuple(edits_for_step(step, after.pod, release)) for step in steps}
        self.form.put(edit for edits in edits_by_step.values() for edit in edits)
        open_steps = [step_sentence(step) for step, edits in edits_by_step.items() if not edits]
        if open_steps:
            self.qos.warn("still to do: " + "; ".join(open_steps))

    def action_outlive(self) -> None:
        others = self._target.others()
        if not others:
            self.qos.warn("there is no other pod on its node to outlive")
        elif not self._has_wrong_field():
            finder = Finder(others, self.qos.source.now(), title="Outlive which pod?")
            self.qos.push_screen(finder, self._outlive)

    def _outlive(self, row: PodRow | None) -> None:
        if row is not None:
            other = self._view_model.pod_of(row)
            goal = self._target.outliving(self.form.edits, other)
            self._put_goal(goal, f"it is killed after {escape('/'.join(other.key))}")

    def action_rank(self) -> None:
        preview = self.preview_now()
        pods = [effects for node in self._target.replicas(preview) for effects in node.effects]
        most = max(effects.ranked for effects in pods or [preview.effects])
        if most < 2:
            self.qos.warn("there are no ranks on its node to choose among")
        elif not self._has_wrong_field():
            self.qos.push_screen(
                NumberDialog("Kill rank on its node once full, or later (1 dies first):", most), self._rank
            )

    def _rank(self, rank: int | None) -> None:
        if rank is not None:
            goal = self._target.ranking(self.form.edits, rank)
            self._put_goal(goal, f"its kill rank is {rank} or later")

    def _put_goal(self, goal: Goal, words: str) -> None:
        """Fill the fields with the edits of a goal, which `words` name, or say why it is out of reach."""
        if goal.obstacle is not None:
            guaranteed = f"{self.qos.keys.first('edit.guaranteed')} makes it Guaranteed."
            why = f"{obstacle_sentence(goal.obstacle)}."
            self.qos.show_text("Not by memory requests", [why, "", guaranteed])
        elif goal.edits:
            self.form.put(goal.edits)
            self.qos.notify(f"{words}: {goal_section(self.preview_now()).answer}")
        else:
            self.qos.notify(f"{words} with these values")

    def action_reset(self) -> None:
        self.form.reset()

    def action_below(self) -> None:
        self.form.move(1)

    def action_above(self) -> None:
        self.form.move(-1)

    def action_apply(self) -> None:
        if self._has_wrong_field():
            return
        preview = self.preview_now()
        if not preview.edits:
            self.qos.warn("nothing is changed: there is nothing to apply")
            return
        touched = self.form.touched

        def saved() -> None:
            self._saved = touched
            self._show_subject()

        related = self._related if isinstance(self._related, RelatedObjects) else None
        screen = ApplyScreen(self.qos.writing.begin(self._target, preview.edits, related), saved)
        self.qos.push_screen(screen, lambda _: self._came_back(screen, saved))

    def _came_back(self, screen: ApplyScreen, saved: Callable[[], None]) -> None:
        """Leave after the change was applied; reload after a conflict."""
        if screen.outcome is ApplyOutcome.APPLIED:
            saved()
            self.dismiss()
        elif screen.outcome is ApplyOutcome.RELOAD:
            self._reloads = True
            self._load_related()

    def _has_wrong_field(self) -> bool:
        wrong = self.form.wrong
        if wrong:
            wrong[0].focus()
            self.qos.warn(f"{wrong[0].name_in_spec}: {wrong[0].problem}")
        return bool(wrong)

    def action_back(self) -> None:
        if self.unsaved:
            self.qos.push_screen(LeaveDialog(self.leave_question), self._left)
        else:
            self.dismiss()

    def _left(self, really: bool | None) -> None:
        if really:
            self.dismiss()
