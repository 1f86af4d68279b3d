"""Ending what was begun with `watch`: Textual keeps whoever watches until what is watched changes."""

from __future__ import annotations

from typing import Any

from textual.binding import Binding
from textual.dom import DOMNode
from textual.widgets import Footer


def unwatch(watched: DOMNode, by: DOMNode | None = None) -> None:
    """Nothing about it is told to that one any more; without `by`, to nobody."""
    watchers: dict[str, list[tuple[Any, Any]]] = getattr(watched, "__watchers", {})
    for of_name in watchers.values():
        of_name[:] = [watcher for watcher in of_name if by is not None and watcher[0] is not by]


class KeyFooter(Footer):
    """The footer. Its keys watch it, and Textual's own would keep all that it ever showed."""

    _shown: list[tuple[Binding, bool, str]] | None = None

    async def recompose(self) -> None:
        """Other keys. Most signals that bindings changed come with the same ones."""
        if not self.is_attached:
            return
        shown = [
            (binding, enabled, tooltip)
            for _, binding, enabled, tooltip in self.screen.active_bindings.values()
            if binding.show
        ]
        if shown == self._shown:
            return
        self._shown = shown
        unwatch(self)
        await super().recompose()
