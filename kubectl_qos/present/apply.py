"""The ways in which a change lands, its request, what is confirmed, and how far it has come: in words.

Lines of plain text, the same for the command line and the UI. Names and sentences of servers are escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlencode

from kubectl_qos.edit.edits import Edit
from kubectl_qos.edit.history import Entry, EntryState, ValueConflict
from kubectl_qos.edit.patch import CONTENT_TYPE, METHOD, PatchRequest
from kubectl_qos.edit.preview import Preview, StrategyKind
from kubectl_qos.edit.server_response import ServerRefusal
from kubectl_qos.edit.status import Progress
from kubectl_qos.edit.strategy import Strategy
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.present.format import NONE, UNKNOWN, escape
from kubectl_qos.present.output import to_yaml
from kubectl_qos.qos.qos_class import SPEC_RESOURCES

_TITLES: Final = {
    StrategyKind.IN_PLACE: "in place",
    StrategyKind.TEMPLATE: "through the owner's template",
    StrategyKind.RECREATE: "as a manifest",
    StrategyKind.NEVER: "not at all",
}


def strategy_title(strategy: Strategy) -> str:
    """What a way is called: `in place`, `through deployment/web`."""
    if strategy.strategy_kind is StrategyKind.TEMPLATE and strategy.request is not None:
        return f"through {escape(strategy.request.reference)}"
    return _TITLES[strategy.strategy_kind]


def strategy_effect(strategy: Strategy) -> str:
    """What a way does besides the change, or why there is no such way."""
    if not strategy.is_possible:
        return f"not possible: {escape(strategy.reason)}"
    if strategy.strategy_kind is StrategyKind.IN_PLACE:
        effect = restarts_sentence(strategy.restarts)
    elif strategy.strategy_kind is StrategyKind.TEMPLATE:
        effect = roll_sentence(strategy.pods)
    else:
        effect = "save it, delete the pod and create it anew; nothing is sent from here"
    return f"{effect}; {escape(strategy.note)}" if strategy.note else effect


def restarts_sentence(names: Sequence[str]) -> str:
    """Which containers restart when a pod is changed in place."""
    if not names:
        return "no container restarts"
    if len(names) == 1:
        return f"container {escape(names[0])} restarts"
    return f"containers {', '.join(map(escape, names))} restart"


def roll_sentence(pods: int | None) -> str:
    """How many pods a changed template replaces."""
    if pods is None:
        return "its pods roll: new ones replace them"
    if pods == 0:
        return "no pod rolls"
    if pods == 1:
        return "1 pod rolls: a new one replaces it"
    return f"{pods} pods roll: new ones replace them"


def strategy_lines(strategies: Iterable[Strategy]) -> list[str]:
    """Every way with what it does, or why it is none."""
    found = [(strategy_title(strategy), strategy_effect(strategy)) for strategy in strategies]
    width = max((len(title) for title, _ in found), default=0)
    return [f"{title.ljust(width)}  {effect}" for title, effect in found]


def request_lines(request: PatchRequest, *, dry_run: bool = False) -> list[str]:
    """The exact request: method and path with query, media type, and the body as YAML."""
    query = urlencode(request.query(dry_run=dry_run))
    body = to_yaml(request.body).rstrip("\n").split("\n")
    return [
        f"{METHOD} {escape(request.path)}?{query}",
        f"Content-Type: {CONTENT_TYPE}",
        "",
        *map(escape, body),
    ]


def target_words(owner: str, side: str, resource: str) -> str:
    """What of whom a value is: `app requests.memory`."""
    return f"{escape(owner) or SPEC_RESOURCES} {side}.{escape(resource)}"


def change_lines(before: Iterable[Edit], after: Iterable[Edit]) -> list[str]:
    """Each value before and after: `app requests.memory 512Mi → 1Gi`."""
    was = {edit.target: edit.quantity for edit in before}
    return [
        f"{target_words(*edit.target)} {_quantity(was.get(edit.target))} → {_quantity(edit.quantity)}"
        for edit in after
    ]


def confirm_lines(
    context: str, server: str, request: PatchRequest, preview: Preview, strategy: Strategy
) -> list[str]:
    """What is to be confirmed: where, what, and what comes of it. Each line begins with what it is about."""
    rows = [
        ("cluster", f"{escape(context)}  {escape(server)}" if server else escape(context)),
        ("namespace", escape(request.namespace) or NONE),
        ("object", escape(request.reference)),
    ]
    rows += [("change", line) for line in change_lines(request.before, request.edits)]
    rows += [("class", _class(preview)), ("kill rank", _rank(preview)), ("effect", strategy_effect(strategy))]
    width = max(len(label) for label, _ in rows)
    return [f"{label.ljust(width)}  {text}" for label, text in _once(rows)]


def _once(rows: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    """A label that stands above is not said again."""
    above = ""
    for label, text in rows:
        yield "" if label == above else label, text
        above = label


def _class(preview: Preview) -> str:
    before, after = preview.before.qos_class, preview.after.qos_class
    return f"{before.value}, stays" if before is after else f"{before.value} → {after.value}"


def _rank(preview: Preview) -> str:
    before, after = preview.effects.rank_before, preview.effects.rank_after
    node = preview.after.setup.node.name
    where = f" on {escape(node)}" if node else ""
    if before is None or after is None:
        return UNKNOWN
    if before == after:
        return f"{before} of {preview.effects.ranked}{where}, stays"
    return f"{before} → {after} of {preview.effects.ranked}{where}"


def dry_run_lines(request: PatchRequest, stored: Iterable[Edit], warnings: Iterable[str]) -> list[str]:
    """What a server answered to the dry run: what it would store otherwise than asked, and its warnings."""
    kept = {edit.target: edit.quantity for edit in stored}
    lines = ["dry run: the server accepts it"]
    for edit in request.edits:
        found = kept.get(edit.target, edit.quantity)
        if not _equal(found, edit.quantity):
            said = f"{_quantity(found)}, not {_quantity(edit.quantity)}"
            lines.append(f"! {target_words(*edit.target)} would be stored as {said}")
    return lines + [f"! the server warns: {escape(warning)}" for warning in warnings]


def expected_response_line(refused: ServerRefusal) -> str:
    """What a server is expected to answer, before it is asked."""
    return f"expected: the server refuses it: {escape(refused.message)} ({refused.status} {refused.reason})"


def progress_line(progress: Progress) -> str:
    """Where a change stands: `rolling out: 1 of 3 pods: message`."""
    words = [progress.stage.value]
    if progress.done is not None and progress.total is not None:
        words.append(f"{progress.done} of {progress.total} pod{'' if progress.total == 1 else 's'}")
    if progress.message:
        words.append(escape(progress.message))
    return ": ".join(words)


def conflict_lines(conflicts: Iterable[ValueConflict]) -> list[str]:
    """Values that someone else changed meanwhile: as they were, as we want them, as they are."""
    rows = [("", "before", "ours", "theirs")]
    for one in conflicts:
        before, ours, theirs = map(_quantity, (one.before, one.ours, one.theirs))
        rows.append((target_words(*one.target), before, ours, theirs))
    if len(rows) == 1:
        return []
    widths = [max(len(row[place]) for row in rows) for place in range(4)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def _equal(left: Quantity | None, right: Quantity | None) -> bool:
    return left is right if left is None or right is None else left == right


def _quantity(value: Quantity | None) -> str:
    return NONE if value is None else escape(str(value))


_STATES: Final = {
    EntryState.SENT: "unknown: sent, and no answer was put down",
    EntryState.DONE: "done",
    EntryState.REFUSED: "refused",
    EntryState.UNKNOWN: "unknown",
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
    if entry.state in {EntryState.REFUSED, EntryState.UNKNOWN} and entry.said:
        words += f": {escape(entry.said)}"
    return f"{words} (an undo)" if entry.undoes else words


def entry_when(entry: Entry, now: datetime) -> str:
    """The time of day, with the date where that is another one; in UTC."""
    try:
        at = datetime.fromisoformat(entry.at).astimezone(UTC)
    except ValueError:
        return escape(entry.at)
    return f"{at:%H:%M:%S}" if at.date() == now.astimezone(UTC).date() else f"{at:%Y-%m-%d %H:%M}"
