"""The ways in which a change lands, its request, what is confirmed, and how far it has come: in words.

Lines of plain text, the same for the command line and the UI. Names and sentences of servers are escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import urlencode

from kubectl_qos.edit.change import Edit
from kubectl_qos.edit.forecast import Refused
from kubectl_qos.edit.landing import Way
from kubectl_qos.edit.preview import Landing, Preview
from kubectl_qos.edit.progress import Progress
from kubectl_qos.edit.request import CONTENT_TYPE, METHOD, Request
from kubectl_qos.edit.undo import Conflict
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.present.amounts import NONE, UNKNOWN, escape
from kubectl_qos.present.structured import to_yaml
from kubectl_qos.qos.class_steps import SPEC_RESOURCES

_TITLES: Final = {
    Landing.IN_PLACE: "in place",
    Landing.TEMPLATE: "through the owner's template",
    Landing.RECREATE: "as a manifest",
    Landing.NEVER: "not at all",
}


def way_title(way: Way) -> str:
    """What a way is called: `in place`, `through deployment/web`."""
    if way.landing is Landing.TEMPLATE and way.request is not None:
        return f"through {escape(way.request.reference)}"
    return _TITLES[way.landing]


def way_effect(way: Way) -> str:
    """What a way does besides the change, or why there is no such way."""
    if not way.is_possible:
        return f"not possible: {escape(way.reason)}"
    if way.landing is Landing.IN_PLACE:
        effect = restarts_sentence(way.restarts)
    elif way.landing is Landing.TEMPLATE:
        effect = roll_sentence(way.pods)
    else:
        effect = "save it, delete the pod and create it anew; nothing is sent from here"
    return f"{effect}; {escape(way.note)}" if way.note else effect


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


def landing_lines(ways: Iterable[Way]) -> list[str]:
    """Every way with what it does, or why it is none."""
    found = [(way_title(way), way_effect(way)) for way in ways]
    width = max((len(title) for title, _ in found), default=0)
    return [f"{title.ljust(width)}  {effect}" for title, effect in found]


def request_lines(request: Request, *, dry_run: bool = False) -> list[str]:
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


def confirm_lines(context: str, server: str, request: Request, preview: Preview, way: Way) -> list[str]:
    """What is to be confirmed: where, what, and what comes of it. Each line begins with what it is about."""
    rows = [
        ("cluster", f"{escape(context)}  {escape(server)}" if server else escape(context)),
        ("namespace", escape(request.namespace) or NONE),
        ("object", escape(request.reference)),
    ]
    rows += [("change", line) for line in change_lines(request.before, request.edits)]
    rows += [("class", _class(preview)), ("kill rank", _rank(preview)), ("effect", way_effect(way))]
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


def rehearsal_lines(request: Request, stored: Iterable[Edit], warnings: Iterable[str]) -> list[str]:
    """What a server answered to the dry run: what it would store otherwise than asked, and its warnings."""
    kept = {edit.target: edit.quantity for edit in stored}
    lines = ["dry run: the server accepts it"]
    for edit in request.edits:
        found = kept.get(edit.target, edit.quantity)
        if not _equal(found, edit.quantity):
            said = f"{_quantity(found)}, not {_quantity(edit.quantity)}"
            lines.append(f"! {target_words(*edit.target)} would be stored as {said}")
    return lines + [f"! the server warns: {escape(warning)}" for warning in warnings]


def forecast_line(refused: Refused) -> str:
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


def conflict_lines(conflicts: Iterable[Conflict]) -> list[str]:
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
