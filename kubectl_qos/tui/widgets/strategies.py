"""The strategies of a change, one of them chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual import events
from textual.containers import Vertical
from textual.message import Message

from kubectl_qos.edit.strategy import Strategy
from kubectl_qos.present.apply import strategy_effect, strategy_title
from kubectl_qos.tui.widgets.text_view import TextLayout, TextLine, TextView, wrapped


class StrategyLine(TextView):
    """One strategy; a click chooses it."""

    @dataclass
    class Clicked(Message):
        """The strategy of this index was clicked."""

        index: int

    def __init__(self, index: int, layout: TextLayout) -> None:
        super().__init__(layout)
        self._index = index

    def on_click(self, event: events.Click) -> None:
        event.stop()
        self.post_message(self.Clicked(self._index))


class StrategyList(Vertical):
    """All strategies of a change."""

    DEFAULT_CSS = "StrategyList { height: auto; }"

    def show(self, strategies: Sequence[Strategy], chosen: int) -> None:
        column = max((len(strategy_title(strategy)) for strategy in strategies), default=0)
        layouts = [
            _layout(strategy, column, is_chosen=index == chosen) for index, strategy in enumerate(strategies)
        ]
        lines = list(self.query(StrategyLine))
        for line, layout in zip(lines, layouts, strict=False):
            line.show(layout)
        for line in lines[len(layouts) :]:
            line.remove()
        self.mount_all(StrategyLine(index, layouts[index]) for index in range(len(lines), len(layouts)))


def _layout(strategy: Strategy, column: int, *, is_chosen: bool) -> TextLayout:
    left = f"{'>' if is_chosen else ' '} {strategy_title(strategy).ljust(column)}  "
    token = "title" if is_chosen else "" if strategy.is_possible else "muted"

    def layout(width: int) -> list[TextLine]:
        first, *more = wrapped(strategy_effect(strategy), width - len(left), hanging="")
        return [TextLine(left + first, token), *(TextLine(" " * len(left) + text, token) for text in more)]

    return layout
