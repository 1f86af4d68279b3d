"""A picture of the next deaths on an axis of a node's memory, for both shells.

Each death has a mark with its distance and time, and below it its victim and killer; a narrow picture is a
list. Not here: which deaths there are, and their words (next_death.py).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, pairwise, repeat
from typing import Final, NamedTuple

from kubectl_qos.analysis.deaths import DeathRow, Deaths
from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.present.format import binary, count, escape, eta, rounded, shortened
from kubectl_qos.present.next_death import columns, distance, killer_label, nothing, short_victim
from kubectl_qos.present.output import Column, fit_columns, table
from kubectl_qos.qos.killers import PRECEDENCE
from kubectl_qos.qos.simulation.ceiling import CeilingScope
from kubectl_qos.qos.simulation.next_death import NextDeath
from kubectl_qos.qos.simulation.node_state import NO_GROWTH, Growth

LIST_BELOW: Final = 62
"""Narrower pictures are a list."""
_NAMES: Final = (24, 20, 16, 12)
"""Widths of a victim's name: the picture takes the widest at which most killers of the whole node fit."""
LISTED: Final = 5
LINES: Final = 3
_MOST: Final = 12
"""How many own limits a picture may show."""
_AXIS, _SEEN, _GAP = "─", "●", 2


class Span(NamedTuple):
    """A piece of a line."""

    text: str
    style: str = ""
    """A token of the UI: `mine` is the pod asked about, `danger` the next death of a node in danger."""
    victim: PodKey | None = None
    """The pod that it is about."""


Line = tuple[Span, ...]
_Cell = tuple[Line, ...]


def table_columns(on_nodes: Deaths, width: int | None) -> list[Column[DeathRow]]:
    """Return the columns of the table, fitted into a width if given; a single node has no column NODE."""
    rows, state = on_nodes.rows, on_nodes.state
    shown = [column for column in columns(rows) if state is None or column.key != "node"]
    return shown if width is None else fit_columns(rows, shown, ("frees", "before"), width)


def lines(
    on_nodes: Deaths, shown: Sequence[Column[DeathRow]], width: int, *, headers: bool = True
) -> Iterator[str]:
    """Yield the picture of one node and a table, or only the table."""
    rows, state = on_nodes.rows, on_nodes.state
    if not rows:
        yield nothing(on_nodes)
        return
    if state is not None:
        head = f"{escape(rows[0].node)}  {binary(state.used_bytes + (state.own_bytes or 0))}  "
        yield from map(text, timeline([row.death for row in rows], width, head=head))
        yield ""
    yield from table(rows, shown, headers=headers)


def timeline(
    deaths: Sequence[NextDeath],
    width: int,
    *,
    head: str = "",
    growth: Growth = NO_GROWTH,
    pod: PodKey | None = None,
    in_danger: bool = False,
) -> list[Line]:
    """Draw the axis with distances and times, victims, and killers.

    `deaths` begin with the next one. If not all fit, the next death and the killers of the whole node are
    drawn first, and the others are counted; the next one is called so if others are nearer. Below LIST_BELOW
    cells of `width` it is a list of at most LISTED deaths. The lines of `head` come before the axis and the
    lines below it. The deaths of `pod` are highlighted, and on a node `in_danger` the next death has the
    colour of danger.
    """
    nearest = deaths[0] if deaths else None
    styles = partial(_styles, nearest=nearest, pod=pod, in_danger=in_danger)
    if width < LIST_BELOW:
        return list(_list(deaths, styles, width, head, growth))
    now = _now_cell(growth)
    heads = head.split("\n")
    room = width - len(heads[0]) - _length(now[0])
    deaths = sorted(deaths, key=lambda death: max(death.distance_bytes, 0))
    next_place = [place for place, death in enumerate(deaths) if death is nearest]
    # The axis says how far, and the headline who dies next, which need not be the first on the axis.
    label = "next " if next_place != [0] else ""
    of_node = [place for place, death in enumerate(deaths) if death.killer.is_node_wide]
    # Killers of the whole node come before the limit of all pods.
    of_node.sort(
        key=lambda place: (
            deaths[place].killer.scope is CeilingScope.PODS,
            PRECEDENCE[deaths[place].mechanism],
        )
    )
    candidates = list(dict.fromkeys([*next_place, *of_node, *range(len(deaths))[:_MOST]]))
    shown: dict[int, _Cell] = {}
    for name in _NAMES:
        cells = {
            place: _cell(deaths[place], styles(deaths[place]), name, label * (deaths[place] is nearest))
            for place in candidates
        }
        fitting = _fitting(cells, room)
        if not shown or len(fitting.keys() & {*of_node}) > len(shown.keys() & {*of_node}):
            shown = fitting
        if shown.keys() >= {*of_node}:
            break
    gaps = _gaps(shown)
    wide = list(map(_width, shown.values()))
    spare = (room - sum(wide) - sum(_length(_folded(gap)[0]) for gap in gaps)) // max(len(shown), 1)
    stretch = max(min(spare, 8), 0)
    titles = (Span(heading.ljust(len(heads[0])), "title") for heading in chain(heads, repeat("")))
    drawn = [[title, *part] for title, part in zip(titles, now, strict=False)]
    for cell, gap, width_of_cell in zip(shown.values(), gaps, wide, strict=True):
        folded = _folded(gap)
        for number, (line, part) in enumerate(zip(drawn, cell, strict=True)):
            rest = width_of_cell + stretch - _length(part)
            filler = Span(_AXIS * rest if number == 0 else " " * rest, "muted")
            line.extend((*folded[number], *part, filler))
    return list(map(_trimmed, drawn))


def _fitting(cells: Mapping[int, _Cell], room: int) -> dict[int, _Cell]:
    """Choose the cells that fit, the first always; they come by importance, and are returned by place."""
    chosen: list[int] = []
    for place in cells:
        wanted = sorted([*chosen, place])
        needed = sum(_width(cells[place]) for place in wanted) - _GAP
        if not chosen or needed + sum(_length(_folded(gap)[0]) for gap in _gaps(wanted)) <= room:
            chosen = wanted
    return {place: cells[place] for place in chosen}


def text(line: Line) -> str:
    """Return a line without its styles."""
    return "".join(span.text for span in line)


def rate(growth: Growth) -> str:
    """Return the growth of the node: `↗ 42Mi/min`; "" without growth."""
    per_minute = growth.node * 60
    if per_minute < 1 << 19:
        return f"↗ {int(per_minute) >> 10}Ki/min" if per_minute >= 1 << 10 else ""
    return f"↗ {rounded(round(per_minute) + (1 << 19))}/min"


def is_near(death: NextDeath, capacity_bytes: int) -> bool:
    """Return whether a death is near: within a twentieth of its limit, or of the node's bytes."""
    return death.distance_bytes * 20 < (death.limit_bytes or capacity_bytes)


class _Styles(NamedTuple):
    mark: str
    far: str
    name: str


def _styles(death: NextDeath, nearest: NextDeath | None, pod: PodKey | None, *, in_danger: bool) -> _Styles:
    name = "mine" if pod == death.key else ""
    if death is not nearest:
        return _Styles("key", "answer", name)
    return _Styles("danger", "danger", "danger") if in_danger else _Styles("changed", "changed", name)


def _now_cell(growth: Growth) -> _Cell:
    growing = rate(growth)
    width = max(len(growing) + _GAP, 7)
    return (
        (Span(_SEEN, "title"), Span(_AXIS * (width - 1), "muted")),
        (Span("used".ljust(width), "muted"),),
        (Span(growing.ljust(width), "warning"),),
    )


def _cell(death: NextDeath, styles: _Styles, name: int, label: str) -> _Cell:
    pod = death.key
    return (
        (
            Span("◆ ", styles.mark, pod),
            Span(f"{label}{distance(death)}", styles.far, pod),
            Span(f" {eta(death.seconds)}".rstrip(), "warning", pod),
            Span(" ", "muted"),
        ),
        (Span(shortened(short_victim(death), name), styles.name, pod),),
        (Span(killer_label(death), "muted", pod),),
    )


def _width(cell: _Cell) -> int:
    return max(map(_length, cell)) + _GAP


def _gaps(places: Iterable[int]) -> list[int]:
    """Return how many deaths are hidden before each of these places."""
    return [after - before - 1 for before, after in pairwise([-1, *places])]


def _folded(hidden: int) -> _Cell:
    axis = f"┄ {hidden} ┄ " if hidden else ""
    below = (word.ljust(len(axis)) if hidden else "" for word in ("more", ""))
    return (Span(axis, "muted"),), *((Span(word, "muted"),) for word in below)


def _list(
    deaths: Sequence[NextDeath], styles: Callable[[NextDeath], _Styles], width: int, head: str, growth: Growth
) -> Iterator[Line]:
    if head.strip():
        yield Span(head.strip().replace("  \n", " "), "title"), Span(f"  {rate(growth)}".rstrip(), "warning")
    shown = list(deaths[:LISTED])
    mechanisms = {death.mechanism for death in shown}
    of_node = (death for death in deaths[LISTED:] if death.killer.is_node_wide)
    missing = [death for death in of_node if death.mechanism not in mechanisms]
    if missing:
        shown = [*shown[: max(LISTED - len(missing), 1)], *missing][:LISTED]
    far = max((len(distance(death)) for death in shown), default=0)
    by = max((len(killer_label(death)) for death in shown), default=0)
    times = max((len(eta(death.seconds)) for death in shown), default=0)
    room = max(width - 2 - far - by - 4 - (times + 2 if times else 0), 8)
    for death in shown:
        style = styles(death)
        name = shortened(short_victim(death), room)
        yield _trimmed(
            [
                Span("◆ ", style.mark, death.key),
                Span(distance(death).rjust(far), style.far, death.key),
                Span(f"  {name.ljust(min(room, 32))}", style.name, death.key),
                Span(f"  {killer_label(death).ljust(by)}", "muted", death.key),
                Span(f"  {eta(death.seconds)}", "warning", death.key),
            ]
        )
    if len(deaths) > len(shown):
        yield (Span(f"  and {count(len(deaths) - len(shown), 'more limit')}", "muted"),)


def _length(spans: Line) -> int:
    return sum(len(span.text) for span in spans)


def _trimmed(line: Sequence[Span]) -> Line:
    kept = list(line)
    while kept and not kept[-1].text.strip(f" {_AXIS}"):
        kept.pop()
    return (*kept[:-1], kept[-1]._replace(text=kept[-1].text.rstrip())) if kept else ()
