"""Leaving a screen once, however many keys or clicks say so before it is gone."""

from __future__ import annotations

from typing import TypeVar

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen, Screen

ResultT = TypeVar("ResultT")


class OnceScreen(Screen[ResultT]):
    """A screen that is left only while it is the uppermost one: Textual would take the next one away."""

    @property
    def is_uppermost(self) -> bool:
        """Whether keys come here; Textual's `is_current` is also true of the screen below that one."""
        return self.is_current and self.app.screen is self

    def dismiss(self, result: ResultT | None = None) -> AwaitComplete:
        """Leave with a result; a second time does nothing."""
        return super().dismiss(result) if self.is_uppermost else AwaitComplete()


class Question(ModalScreen[ResultT], OnceScreen[ResultT]):
    """A dialog over a screen, left once. Textual takes styles from the first base."""
