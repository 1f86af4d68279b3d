"""What all screens share: classes by size, the sentence for terminals that are too small, and messages."""

from __future__ import annotations

from typing import ClassVar

from textual.widgets import Static

from kubectl_qos.tui.actions import Room
from kubectl_qos.tui.host import Host, host
from kubectl_qos.tui.screens.once import OnceScreen

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


class QosScreen(OnceScreen[None]):
    """A screen of this UI; `rooms` are those whose actions it has, for the palette."""

    rooms: ClassVar[tuple[Room, ...]] = ()

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
