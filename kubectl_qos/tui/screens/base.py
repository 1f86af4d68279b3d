"""Leaving a screen once, however many keys or clicks say so before it is gone."""

from __future__ import annotations

from typing import ClassVar, TypeVar

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from kubectl_qos.tui.actions import BindingGroup
from kubectl_qos.tui.app_protocol import Host, host

ResultT = TypeVar("ResultT")


class SingleDismissScreen(Screen[ResultT]):
    """A screen that is left only while it is the uppermost one: Textual would take the next one away."""

    @property
    def is_uppermost(self) -> bool:
        """Whether keys come here; Textual's `is_current` is also true of the screen below that one."""
        return self.is_current and self.app.screen is self

    def dismiss(self, result: ResultT | None = None) -> AwaitComplete:
        """Leave with a result; a second time does nothing."""
        return super().dismiss(result) if self.is_uppermost else AwaitComplete()


class Dialog(ModalScreen[ResultT], SingleDismissScreen[ResultT]):
    """A dialog over a screen, left once. Textual takes styles from the first base."""


LEAST_WIDTH = 60
LEAST_HEIGHT = 15


class TooSmall(Static):
    """Shown instead of everything else below the least size."""

    def __init__(self) -> None:
        super().__init__(
            f"This terminal is a little small for kubectl qos: {LEAST_WIDTH} columns and "
            f"{LEAST_HEIGHT} lines are needed. Please enlarge it; q quits.",
            markup=False,
        )


class QosScreen(SingleDismissScreen[None]):
    """A screen of this UI; `binding_groups` are those whose actions it has, for the palette."""

    binding_groups: ClassVar[tuple[BindingGroup, ...]] = ()

    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - typed by Textual
        (0, "-tiny"),
        (LEAST_WIDTH, "-narrow"),
        (100, "-wide"),
    ]
    VERTICAL_BREAKPOINTS = [  # noqa: RUF012 - likewise
        (0, "-short"),
        (LEAST_HEIGHT, "-tall"),
        (30, "-roomy"),
    ]

    @property
    def qos(self) -> Host:
        """The app."""
        return host(self.app)

    @property
    def unsaved(self) -> bool:
        """Whether leaving would lose something that a person typed."""
        return False

    @property
    def last_question(self) -> str:
        """What is asked before the UI is left from here; nothing where it is empty."""
        return "The changes are not saved. Leave all the same?" if self.unsaved else ""

    def action_back(self) -> None:
        """Where escape leads."""
        self.dismiss()
