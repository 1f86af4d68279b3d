"""Working lists out without stopping the UI: in a thread, one at a time, always for the newest facts."""

from __future__ import annotations

from typing import Any, NamedTuple

from textual.message import Message
from textual.message_pump import MessagePump

from kubectl_qos.tui.facts import Facts
from kubectl_qos.tui.lists.base import Listing, WorkedOut
from kubectl_qos.tui.live import in_background
from kubectl_qos.tui.view import View


class _Question(NamedTuple):
    listing: Listing[Any]
    facts: Facts
    view: View


class WorkedOutList(Message):
    """A list was worked out in a thread, or could not be: then `answer` is the exception."""

    def __init__(self, question: _Question, answer: WorkedOut | Exception) -> None:
        super().__init__()
        self.question = question
        self.answer = answer


class Lister:
    """Answers from what is known, and has older answers made anew; its owner hands the messages to `take`."""

    def __init__(self, pump: MessagePump) -> None:
        self._pump = pump
        self._question: _Question | None = None
        self._answer: WorkedOut | None = None
        self._running: _Question | None = None
        self._quick: tuple[_Question, WorkedOut] | None = None

    def of(self, listing: Listing[Any], facts: Facts, view: View) -> WorkedOut | None:
        """The rows of a view, from older facts while those of the newest are worked out; None at first."""
        asked = _Question(listing, facts, view.whole)
        if self._quick is not None and self._quick[0].facts is not facts:
            self._quick = None
        if listing.is_quick:
            if self._quick is None or self._quick[0] != asked:
                self._quick = asked, listing.work_out(facts, asked.view, None)
            return self._quick[1]
        known = self._answer if self._is_alike(asked) else None
        if known is None or self._question is None or self._question.facts is not facts:
            self._work_out(asked, known)
        return known

    def forget(self) -> None:
        """Know nothing: from now on facts are those of another cluster."""
        self._question = self._answer = self._running = self._quick = None

    def take(self, message: WorkedOutList) -> None:
        """An answer has come. Raises what working it out has raised."""
        if message.question is not self._running:
            return
        self._running = None
        if isinstance(message.answer, Exception):
            raise message.answer
        self._question, self._answer = message.question, message.answer

    def _is_alike(self, asked: _Question) -> bool:
        """Whether the last answer is one to this question, if perhaps of older facts."""
        known = self._question
        return known is not None and known.listing is asked.listing and known.view == asked.view

    def _work_out(self, asked: _Question, before: WorkedOut | None) -> None:
        """Begin, unless something is being worked out: its answer makes the screen ask again."""
        if self._running is not None:
            return
        self._running = asked

        def work() -> WorkedOutList:
            try:
                return WorkedOutList(asked, asked.listing.work_out(asked.facts, asked.view, before))
            except Exception as error:  # noqa: BLE001 - a thread's exception has nobody else to go to
                return WorkedOutList(asked, error)

        in_background(self._pump, work)
