"""Textual's command palette, made safe for keys that come before it is laid out."""

from __future__ import annotations

from textual.command import CommandList, CommandPalette

from kubectl_qos.tui.screens.once import OnceScreen

PALETTE_ID = "--command-palette"
"""By which Textual tells whether it is open."""


class Palette(CommandPalette, OnceScreen[None]):
    """The palette, left once."""

    def __init__(self) -> None:
        super().__init__(id=PALETTE_ID)

    def _action_command_list(self, action: str) -> None:
        """Without lines in sight Textual's list would look for the line of its highlighted one in vain."""
        if self.query_one(CommandList).size.height:
            super()._action_command_list(action)
