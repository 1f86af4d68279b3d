"""The explanation of one pod, as it changes: the answers first, each with its proof below.

Explanations are built, and events read, in threads. What arrives after it was replaced by a newer request, or
after the screen was left, is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Static

from kubectl_qos.errors import QosError
from kubectl_qos.k8s.events import Event
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.present.events import LOADING, error_section, events_section
from kubectl_qos.present.explanation import Explanation, explain_pod, text_lines
from kubectl_qos.present.output import Section
from kubectl_qos.tui.actions import BindingGroup, bindings
from kubectl_qos.tui.follower import FollowStatus, attempt, run_in_background
from kubectl_qos.tui.screens.base import BuiltScreen
from kubectl_qos.tui.view_model import ViewModel, newest
from kubectl_qos.tui.widgets import text_view

_Explained = tuple[Pod, Explanation] | None
_LoadedEvents = tuple[Sequence[Event] | QosError, datetime]
"""The events or the error, and when they were read, by the source's clock."""


class ExplainScreen(BuiltScreen[_Explained], group=BindingGroup.EXPLAIN):
    """The sections of `kubectl qos explain` of a pod as it is now, and its events.

    The pod of a template, which only files have, does not change.
    """

    CSS_PATH = "explain.tcss"
    AUTO_FOCUS = "CollapsibleTitle"

    def __init__(self, pod: Pod, view_model: ViewModel) -> None:
        super().__init__(view_model)
        self._pod = pod
        self._explanation = explain_pod(pod, view_model.snapshot, view_model.taken)
        self._replaced = self._gone = ""
        self._events: _LoadedEvents | None = None
        self._request = 0
        self._is_loading_events = False
        self._folds: dict[str, Collapsible] = {}
        self._shown: dict[str, Section] = {}

    def compose_content(self) -> ComposeResult:
        yield Static(Content(self._subject), id="subject")
        with text_view.TextScroll(can_focus=False), Vertical(id="sections"):
            sections = self._sections()
            for section in sections:
                self._folds[section.title] = Collapsible(section.title)
                yield self._folds[section.title]
            self._fill(sections)

    def on_mount(self) -> None:
        if self._pod.kind == "Pod":
            self._load_events()
            self.watch(self.app, "view_model", self.follow)
            self.watch(self.app, "status", self._refreshed, init=False)

    def build(self, view_model: ViewModel) -> _Explained:
        """The pod of the same name explained; a node of 500 pods takes 20 ms. None where it is gone."""
        pod = newest(view_model, self._pod)
        return None if pod is None else (pod, explain_pod(pod, view_model.snapshot, view_model.taken))

    def show_built(self, built: _Explained | QosError) -> None:
        """Show the pod as it is now, or as it was last where it is gone."""
        since = f"{self._view_model.taken:%H:%M:%S %Z}"
        if built is None:
            self._gone = self._gone or f", gone since {since}; as it was last"
        elif isinstance(built, QosError):
            self._gone = f", as it was last: {built}"
        else:
            before, self._gone = self._pod, ""
            self._pod, self._explanation = built
            if self._pod.metadata.uid != before.metadata.uid:
                self._replaced = f", another pod of that name since {since}"
                self._events = None
                self._load_events()
        self._show()

    def action_edit(self) -> None:
        self.qos.edit(self._pod)

    def action_yaml(self) -> None:
        from kubectl_qos.tui.screens.read import yaml_screen

        self.qos.push_screen(yaml_screen(self.qos.source, self._pod))

    def action_logs(self) -> None:
        self.qos.show_log(self._pod)

    def action_copy(self) -> None:
        whole = replace(self._explanation, subject=self._subject, sections=tuple(self._sections()))
        self.qos.copy("\n".join(text_lines(whole)), "the explanation")

    def action_next(self) -> None:
        self.focus_next(CollapsibleTitle)

    def action_previous(self) -> None:
        self.focus_previous(CollapsibleTitle)

    def action_fold(self) -> None:
        titles = list(self.query(CollapsibleTitle))
        folded = not all(title.folded for title in titles)
        for title in titles:
            title.folded = folded

    @property
    def _subject(self) -> str:
        return self._explanation.subject + self._replaced + self._gone

    def _refreshed(self, before: FollowStatus, status: FollowStatus) -> None:
        """A refresh reads events too, unless the server has not answered the last request."""
        if status.loading and not before.loading and not self._is_loading_events:
            self._load_events()

    def _load_events(self) -> None:
        """Read the events: in a thread from a server, at once from anything else."""
        self._request += 1
        self._is_loading_events = True
        source = self.qos.source

        def work() -> _LoadedEvents:
            return attempt(partial(source.events, self._pod)), source.now()

        if source.is_live:
            run_in_background(self, work, partial(self._take_events, self._request))
            self._show()
        else:
            self._take_events(self._request, work())

    def _take_events(self, request: int, events: _LoadedEvents | QosError) -> None:
        if request == self._request and not isinstance(events, QosError):
            self._is_loading_events = False
            self._events = events
            self._show()

    def _sections(self) -> list[Section]:
        events = [self._events_section()] if self._pod.kind == "Pod" else []
        return [*self._explanation.sections, *events]

    def _events_section(self) -> Section:
        if self._events is None:
            return LOADING
        events, when = self._events
        if isinstance(events, QosError):
            section = error_section(events)
        else:
            section = events_section(events, max(when, self._view_model.taken))
        if self._is_loading_events:
            return replace(section, answer=LOADING.answer)
        if self.qos.source.is_live:
            section = replace(section, answer=f"{section.answer}; read at {when:%H:%M:%S %Z}")
        return section

    def _show(self) -> None:
        self.query_one("#subject", Static).update(Content(self._subject))
        sections = self._sections()
        for title in self._folds.keys() - {section.title for section in sections}:
            self._folds.pop(title).remove()
            self._shown.pop(title)
        below: Collapsible | None = None
        for section in reversed(sections):
            if section.title not in self._folds:
                self._folds[section.title] = Collapsible(section.title)
                self.query_one("#sections").mount(self._folds[section.title], before=below)
            below = self._folds[section.title]
        self._fill(sections)

    def _fill(self, sections: Sequence[Section]) -> None:
        """Show answers and texts; an equal text is not laid out again."""
        column = max(len(section.title) for section in sections)
        for section in sections:
            fold = self._folds[section.title]
            fold.show_title(section.answer, column)
            shown = self._shown.get(section.title)
            if shown is None or shown.lines != section.lines:
                fold.show_text(text_view.section_layout(section) if section.lines else None)
            self._shown[section.title] = section


class CollapsibleTitle(Widget, can_focus=True):
    """The title of a section; enter and a click fold and unfold."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(BindingGroup.FOLD)

    folded = reactive(False)
    foldable = reactive(False)
    answer = reactive("", layout=True)
    column = reactive(0, layout=True)

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title

    def render(self) -> Content:
        sign = ("▸" if self.folded else "▾") if self.foldable else " "
        title = self._title.ljust(self.column)
        left = len(title) + 4
        lines = text_view.wrapped(self.answer, self.content_size.width - left, hanging="")
        answer = f"\n{' ' * left}".join(lines)
        return Content.assemble(
            f"{sign} ", Content.styled(title, "bold $accent"), "  ", Content.styled(answer, "bold")
        )

    def action_fold(self) -> None:
        self.folded = not self.folded

    def on_click(self) -> None:
        self.action_fold()


class Collapsible(Vertical):
    """A title and a text below it; both may change, and what is folded stays so."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self.title = CollapsibleTitle(title)
        self._body = text_view.TextView()

    def compose(self) -> ComposeResult:
        yield self.title
        yield self._body

    def on_mount(self) -> None:
        self.watch(self.title, "folded", self._show_body)

    def show_title(self, answer: str, column: int) -> None:
        self.title.answer = answer
        self.title.column = column

    def show_text(self, layout: text_view.TextLayout | None) -> None:
        """Show a text, or none, which cannot be folded."""
        self.title.foldable = layout is not None
        self._body.show(layout or text_view.no_text)
        self._show_body()

    def _show_body(self) -> None:
        self._body.display = self.title.foldable and not self.title.folded
