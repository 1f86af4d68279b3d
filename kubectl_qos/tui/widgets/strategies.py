"""What a server said, laid out as lines: sentences, the three values of a conflict, what to do next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textual import events
from textual.containers import Vertical
from textual.message import Message

from kubectl_qos.edit.apply import ConflictError, DryRunResult, UnknownOutcome
from kubectl_qos.edit.history import ValueConflict
from kubectl_qos.edit.strategy import Strategy
from kubectl_qos.errors import ApiError, QosError
from kubectl_qos.present.apply import conflict_lines, dry_run_lines, strategy_effect, strategy_title
from kubectl_qos.tui.widgets.text_view import TextLayout, TextLine, TextView, escape_lines, wrapped


def layout_lines(lines: Iterable[TextLine]) -> TextLayout:
    """Lines that only wrap, each keeping its own indentation and style; a table is not broken."""
    kept = list(lines)

    def layout(width: int) -> list[TextLine]:
        found = []
        for line in kept:
            indent = line.text[: len(line.text) - len(line.text.lstrip(" "))]
            found += [
                TextLine(part, line.token)
                for part in (
                    [line.text] if len(line.text) <= width else wrapped(line.text.strip(), width, indent)
                )
            ]
        return found

    return layout


def error_lines(about: str, error: QosError, remedies: Sequence[str] = ()) -> list[TextLine]:
    """A refusal in its own words, the three values of a conflict, its hint, and what can be done."""
    status = f" ({error.status})" if isinstance(error, ApiError) else ""
    lines = [TextLine(f"! {about}: {escape_lines(str(error))}{status}", "wrong")]
    if isinstance(error, ConflictError):
        lines += table_lines(error.conflicts)
    hints = [error.hint] if error.hint and not remedies else []
    return [*lines, *(TextLine(f"  {escape_lines(text)}") for text in (*hints, *remedies))]


def sent_error_lines(error: QosError, remedies: Sequence[str] = ()) -> list[TextLine]:
    """Why a change was not sent or not done, or is not known to be."""
    about = "not known to be done" if isinstance(error, UnknownOutcome) else "not done"
    return error_lines(about, error, remedies)


def table_lines(conflicts: Iterable[ValueConflict]) -> list[TextLine]:
    """Before, ours and theirs of each value."""
    return [TextLine(f"    {line}", "changed") for line in conflict_lines(conflicts)]


def accepted_lines(dry_run_result: DryRunResult) -> list[TextLine]:
    """What a server said that accepted the dry run."""
    first, *more = dry_run_lines(dry_run_result.request, dry_run_result.stored, dry_run_result.warnings)
    return [TextLine(f"  {first}", "answer"), *(TextLine(f"  {line}", "changed") for line in more)]


class StrategyLine(TextView):
    """One way; a click chooses it."""

    class Clicked(Message):
        """This one is to be chosen."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    def __init__(self, number: int, layout: TextLayout) -> None:
        super().__init__(layout)
        self._number = number

    def on_click(self, event: events.Click) -> None:
        """Choose it."""
        event.stop()
        self.post_message(self.Clicked(self._number))


class StrategyList(Vertical):
    """All of them below each other; which one is chosen, the screen knows."""

    DEFAULT_CSS = "StrategyList { height: auto; }"

    def show(self, strategies: Sequence[Strategy], chosen: int) -> None:
        """These, with a sign at the chosen one."""
        column = max((len(strategy_title(strategy)) for strategy in strategies), default=0)
        layouts = [
            _layout(strategy, column, is_chosen=number == chosen)
            for number, strategy in enumerate(strategies)
        ]
        lines = list(self.query(StrategyLine))
        for line, layout in zip(lines, layouts, strict=False):
            line.show(layout)
        for line in lines[len(layouts) :]:
            line.remove()
        self.mount_all(StrategyLine(number, layouts[number]) for number in range(len(lines), len(layouts)))


def _layout(strategy: Strategy, column: int, *, is_chosen: bool) -> TextLayout:
    left = f"{'>' if is_chosen else ' '} {strategy_title(strategy).ljust(column)}  "
    token = "title" if is_chosen else "" if strategy.is_possible else "muted"

    def layout(width: int) -> list[TextLine]:
        first, *more = wrapped(strategy_effect(strategy), width - len(left), hanging="")
        return [TextLine(left + first, token), *(TextLine(" " * len(left) + text, token) for text in more)]

    return layout
