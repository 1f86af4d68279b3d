"""What was written to clusters, in words: one line for each entry of the journal."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from kubectl_qos.edit.journal import Entry, State
from kubectl_qos.present.amounts import escape
from kubectl_qos.present.landing import change_lines

_STATES: Final = {
    State.SENT: "unknown: sent, and no answer was put down",
    State.DONE: "done",
    State.REFUSED: "refused",
    State.UNKNOWN: "unknown",
}


def entry_object(entry: Entry) -> str:
    """Whose values they are: `shop/deployment/web`, with `in place` for a pod's resize."""
    name = f"{entry.kind.lower()}/{entry.name}"
    return escape(f"{entry.namespace}/{name}" if entry.namespace else name)


def entry_change(entry: Entry) -> str:
    """Each value before and after, in one line."""
    return ", ".join(change_lines(entry.before, entry.after))


def entry_state(entry: Entry, *, undone: bool = False) -> str:
    """What is known of it, in the server's words where it refused."""
    if undone:
        return "undone"
    words = _STATES[entry.state]
    if entry.state in {State.REFUSED, State.UNKNOWN} and entry.said:
        words += f": {escape(entry.said)}"
    return f"{words} (an undo)" if entry.undoes else words


def entry_when(entry: Entry, now: datetime) -> str:
    """The time of day, with the date where that is another one; in UTC."""
    try:
        at = datetime.fromisoformat(entry.at).astimezone(UTC)
    except ValueError:
        return escape(entry.at)
    return f"{at:%H:%M:%S}" if at.date() == now.astimezone(UTC).date() else f"{at:%Y-%m-%d %H:%M}"
