"""Why one pod stands where it stands, as things change: the answers first, each with its proof below.

Explanations are worked out, and events asked for, in threads; what comes of it arrives as a message. A thread
cannot be stopped: what it brings after its question was given up, or after the screen was left, is dropped.
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
from textual.message import Message
from textual.widgets import Static

from kubectl_qos.cluster.source import Source
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.events import Event
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.present.events import LOADING, error_section, events_section
from kubectl_qos.present.explanation import Explanation, explain_pod, text_lines
from kubectl_qos.present.output import Section
from kubectl_qos.tui.actions import BindingGroup, bindings
from kubectl_qos.tui.follower import FollowStatus, in_background, unexpected_error
from kubectl_qos.tui.screens.base import QosScreen, TooSmall
from kubectl_qos.tui.view_model import ViewModel, newest
from kubectl_qos.tui.widgets.collapsible import Collapsible, CollapsibleTitle
from kubectl_qos.tui.widgets.footer import KeyFooter, unwatch
from kubectl_qos.tui.widgets.sections import section_layout
from kubectl_qos.tui.widgets.text_view import TextScroll
from kubectl_qos.tui.widgets.title_line import TitleLine


class ExplanationReady(Message):
    """A pod, as `facts` have it, was explained; None where it is not among them, an error where it failed."""

    def __init__(self, facts: ViewModel, found: tuple[Pod, Explanation] | QosError | None) -> None:
        super().__init__()
        self.facts = facts
        self.found = found


class EventsLoaded(Message):
    """The source's answer to a question for events, and when that came, by the source's clock."""

    def __init__(self, question: int, told: Sequence[Event] | QosError, when: datetime) -> None:
        super().__init__()
        self.question = question
        self.told = told
        self.when = when


class ExplainScreen(QosScreen):
    """The sections of `kubectl qos explain` of a pod as it is now, and its events.

    The pod of a template, which only files have, stays as it was.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(BindingGroup.EXPLAIN)
    CSS_PATH = "explain.tcss"
    AUTO_FOCUS = "CollapsibleTitle"
    rooms = (BindingGroup.EXPLAIN,)

    def __init__(self, pod: Pod, facts: ViewModel) -> None:
        super().__init__()
        self._pod = pod
        self._facts = self._wanted = facts
        self._explanation = explain_pod(pod, facts.snapshot, facts.taken)
        self._is_working = False
        self._remark = self._loss = ""
        self._told: EventsLoaded | None = None
        self._question = 0
        self._is_asking = False
        self._folds: dict[str, Collapsible] = {}
        self._shown: dict[str, Section] = {}

    def compose(self) -> ComposeResult:
        """The subject, then a fold for each section."""
        yield TitleLine()
        yield Static(Content(self._subject), id="subject")
        with TextScroll(can_focus=False), Vertical(id="sections"):
            sections = self._sections()
            for section in sections:
                self._folds[section.title] = Collapsible(section.title)
                yield self._folds[section.title]
            self._fill(sections)
        yield KeyFooter(show_command_palette=False, compact=True)
        yield TooSmall()

    def on_mount(self) -> None:
        """The title of the moment; from now on follow the facts and, for events, every refresh."""
        self.qos.show_title()
        if self._pod.kind == "Pod":
            self._ask()
            self.watch(self.app, "facts", self._follow)
            self.watch(self.app, "status", self._refreshed, init=False)

    def on_unmount(self) -> None:
        """Follow nothing any more."""
        unwatch(self.app, self)

    def on_explanation_ready(self, message: ExplanationReady) -> None:
        """Show the pod as it is now, as it was last where it is gone, and its successor as one."""
        self._is_working = False
        self._facts = message.facts
        since = f"{message.facts.taken:%H:%M:%S %Z}"
        if message.found is None:
            self._loss = self._loss or f", gone since {since}; as it was last"
        elif isinstance(message.found, QosError):
            self._loss = f", as it was last: {message.found}"
        else:
            before, self._loss = self._pod, ""
            self._pod, self._explanation = message.found
            if self._pod.metadata.uid != before.metadata.uid:
                self._remark = f", another pod of that name since {since}"
                self._told = None
                self._ask()
        self._show()
        if self._wanted is not message.facts:
            self._work_out()

    def on_events_loaded(self, message: EventsLoaded) -> None:
        """Show the events, if they are those asked for last."""
        if message.question == self._question:
            self._is_asking = False
            self._told = message
            self._show()

    def action_edit(self) -> None:
        """Change its requests and limits."""
        self.qos.edit(self._pod)

    def action_copy(self) -> None:
        """The same as text."""
        whole = replace(self._explanation, subject=self._subject, sections=tuple(self._sections()))
        self.qos.copy("\n".join(text_lines(whole)), "the explanation")

    def action_next(self) -> None:
        """The next section."""
        self.focus_next(CollapsibleTitle)

    def action_previous(self) -> None:
        """The section before."""
        self.focus_previous(CollapsibleTitle)

    def action_fold(self) -> None:
        """Fold everything; if everything is folded, unfold it."""
        titles = list(self.query(CollapsibleTitle))
        folded = not all(title.folded for title in titles)
        for title in titles:
            title.folded = folded

    def action_back(self) -> None:
        """Back to where we came from."""
        self.dismiss()

    @property
    def _subject(self) -> str:
        return self._explanation.subject + self._remark + self._loss

    def _follow(self, facts: ViewModel | None) -> None:
        """One explanation at a time: of facts that come meanwhile, the newest are next."""
        if facts is not None and facts is not self._wanted:
            self._wanted = facts
            if not self._is_working:
                self._work_out()

    def _work_out(self) -> None:
        self._is_working = True
        in_background(self, partial(_explained, self._pod, self._wanted))

    def _refreshed(self, before: FollowStatus, status: FollowStatus) -> None:
        """Who asks for new facts wants new events too; a server that does not answer is not asked twice."""
        if status.asking and not before.asking and not self._is_asking:
            self._ask()

    def _ask(self) -> None:
        """Ask for the events; what is no server answers at once."""
        self._question += 1
        self._is_asking = True
        ask = partial(_events_told, self.qos.source, self._pod, self._question)
        if self.qos.source.is_live:
            in_background(self, ask)
            self._show()
        else:
            self.on_events_loaded(ask())

    def _sections(self) -> list[Section]:
        events = [self._events()] if self._pod.kind == "Pod" else []
        return [*self._explanation.sections, *events]

    def _events(self) -> Section:
        told = self._told
        if told is None:
            return LOADING
        if isinstance(told.told, QosError):
            section = error_section(told.told)
        else:
            section = events_section(told.told, max(told.when, self._facts.taken))
        if self._is_asking:
            return replace(section, answer=LOADING.answer)
        if self.qos.source.is_live:
            section = replace(section, answer=f"{section.answer}; asked at {told.when:%H:%M:%S %Z}")
        return section

    def _show(self) -> None:
        """What changed, in place."""
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
        """Answers and texts; an equal text is not laid out again."""
        column = max(len(section.title) for section in sections)
        for section in sections:
            fold = self._folds[section.title]
            fold.show_title(section.answer, column)
            shown = self._shown.get(section.title)
            if shown is None or shown.lines != section.lines:
                fold.show_text(section_layout(section) if section.lines else None)
            self._shown[section.title] = section


def _explained(pod: Pod, facts: ViewModel) -> ExplanationReady:
    """The pod of the same name explained; runs in a thread, where a node of 500 pods takes 20 ms."""
    try:
        found = newest(facts, pod)
        if found is None:
            return ExplanationReady(facts, None)
        return ExplanationReady(facts, (found, explain_pod(found, facts.snapshot, facts.taken)))
    except Exception as error:  # noqa: BLE001 - a thread's exception has nobody else to go to
        return ExplanationReady(facts, unexpected_error(error))


def _events_told(source: Source, pod: Pod, question: int) -> EventsLoaded:
    """The answer or the refusal; runs in a thread where the source is a server."""
    told: Sequence[Event] | QosError
    try:
        told = source.events(pod)
    except QosError as error:
        told = error
    except Exception as error:  # noqa: BLE001 - a thread's exception has nobody else to go to
        told = unexpected_error(error)
    return EventsLoaded(question, told, source.now())
