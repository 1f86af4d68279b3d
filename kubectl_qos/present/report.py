"""A report of an incident as a person reads it: its blocks, each sentence that of `kills`, `next` or `fix`.

Not here: what is in it (incident.py), and what Markdown and HTML make of the blocks (page.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.k8s.usage import sampled
from kubectl_qos.present.fixes import NO_FIX, fix_effect, fix_sentence, kubelet_sentence, unfixed_lines
from kubectl_qos.present.format import UNKNOWN, binary, count, duration, escape, first_few, full_name
from kubectl_qos.present.incident import OWN, About, Death, Incident, NodeAt, by_node
from kubectl_qos.present.kills import (
    MECHANISMS,
    RIGHT,
    TASK_HEADERS,
    candidates,
    choice_sentences,
    evidence_sentence,
    need_sentence,
    nothing_sentence,
    subject,
    victim_sentences,
    when,
)
from kubectl_qos.present.next_death import COLUMNS, distance, killed_by, victim
from kubectl_qos.present.output import NO_AGES, Align, Column
from kubectl_qos.present.page import Block, Bullets, Grid, Heading, Paragraph
from kubectl_qos.present.pod_columns import BY_KEY
from kubectl_qos.present.pod_rows import PodRow
from kubectl_qos.present.reasons import assumption_sentence, usage_sentence
from kubectl_qos.present.timeline import foremost
from kubectl_qos.qos.prediction import assumptions
from kubectl_qos.qos.reason import Confidence, Mechanism
from kubectl_qos.qos.simulation.next_death import OF_NODE

MOST_LINES: Final = 40
"""Of the timeline; -o json has all."""
MOST_NEXT: Final = 5
MOST_RIVALS: Final = 5


def about_text(about: About) -> str:
    """`node worker-2`, `pod shop/web-0`, `namespace shop`, `all namespaces`."""
    if about.kind == "Cluster":
        return "all namespaces"
    return f"{about.kind.lower()} {full_name(about.namespace, about.name)}"


def title(incident: Incident) -> str:
    """The title of the page."""
    return f"Memory report: {about_text(incident.about)}"


def blocks(incident: Incident, version: str) -> Iterator[Block]:
    """The page."""
    yield Heading(1, title(incident))
    yield Paragraph(
        f"Cluster {escape(incident.source)}. Written at {_clock(incident.now)} by kubectl-qos {version},"
        f" {window_text(incident)}."
    )
    yield Heading(2, "What happened")
    yield Paragraph(" ".join(summary(incident)))
    if incident.timeline:
        yield Heading(2, "Timeline")
        yield from _timeline(incident)
    if incident.deaths:
        yield Heading(2, "Each death")
        orders: dict[object, int] = {}
        for number, death in enumerate(incident.deaths, start=1):
            yield from _death(number, death, orders)
        left = len(incident.kills) - sum(1 + len(death.earlier) for death in incident.deaths)
        if left:
            yield Paragraph(f"{count(left, 'older death')} only in the timeline: --since shortens it.")
    yield Heading(2, "What stands now")
    yield from _next(incident)
    yield Heading(2, "Versions and assumptions")
    yield Bullets(tuple(_facts(incident)))


def window_text(incident: Incident) -> str:
    """Which time it is about."""
    if incident.since is None:
        return "about all that is known"
    seconds = round((incident.now - incident.since).total_seconds())
    return f"about the {duration(seconds)} since {_clock(incident.since)}"


def summary(incident: Incident) -> Iterator[str]:
    """What happened, in sentences counted from the values."""
    kills = incident.kills
    if not kills:
        about = incident.about
        yield f"{nothing_sentence(about.name if about.kind == 'Namespace' else None).rstrip('.')}."
    else:
        by = Counter(kill.diagnosis.mechanism for kill in kills).most_common()
        ways = "; ".join(f"{number} {MECHANISMS[mechanism]}" for mechanism, number in by)
        yield (
            f"{count(len(kills), 'death')} that memory may explain: {ways}."
            if len(by) > 1
            else (f"{count(len(kills), 'death')} that memory may explain, {MECHANISMS[by[0][0]]}.")
        )
        yield _who_died(incident)
        sure = Counter(kill.diagnosis.confidence for kill in kills)
        known = ", ".join(f"{sure[one]} {one.value}" for one in Confidence if sure[one])
        yield f"How sure that is: {known}."
    others = Counter(one.what for one in incident.timeline if one.what in _WORDS for _ in range(one.times))
    if others:
        texts = (count(others[one], *words) for one, words in _WORDS.items() if others[one])
        yield f"Also in that time: {', '.join(texts)}."
    yield from (f"{one}." for one in incident.doubts)
    if incident.next.rows:
        node, death, _ = incident.next.rows[0]
        where = f" on {escape(node)}" if len(incident.nodes) > 1 else ""
        away = " away" if death.distance_bytes > 0 else ""
        yield f"Next to die{where} is {victim(death)}: {killed_by(death)}, {distance(death)}{away}."


_WORDS: Final = {
    "ended": ("container that failed", "containers that failed"),
    "rollout": ("rollout",),
    "resize": ("resize that is not finished", "resizes that are not finished"),
}


def _who_died(incident: Incident) -> str:
    names = Counter(
        full_name(kill.namespace, kill.pod) if kill.pod else "a process outside pods"
        for kill in incident.kills
    )
    texts = [f"{name} {number} times" if number > 1 else name for name, number in names.most_common()]
    return f"It hit {first_few(texts, 5)}."


def _clock(time: datetime | str) -> str:
    moment = parse_time(time) if isinstance(time, str) else time
    if moment is None:
        return escape(str(time)) or UNKNOWN
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _timeline(incident: Incident) -> Iterator[Block]:
    lines = incident.timeline
    if len(lines) > MOST_LINES:
        # Deaths are never left out for others.
        told = [one for one in lines if one.what in _DEATHS][-MOST_LINES:]
        rest = [one for one in lines if one.what not in _DEATHS]
        kept = {*told, *rest[len(rest) - max(MOST_LINES - len(told), 0) :]}
        lines = tuple(one for one in lines if one in kept)
    rows = [
        (
            _clock(one.time).removesuffix(" UTC"),
            one.what if one.times == 1 else f"{one.what} ×{one.times}",
            one.about,
            one.text,
        )
        for one in lines
    ]
    yield Grid(("Time (UTC)", "What", "Where", "How"), rows)
    if len(lines) < len(incident.timeline):
        yield Paragraph(f"{len(incident.timeline) - len(lines)} more: -o json has them all.")


_DEATHS: Final = frozenset({"killed", "evicted", "preempted"})


def _death(number: int, death: Death, orders: dict[object, int]) -> Iterator[Block]:
    kill = death.kill
    diagnosis = kill.diagnosis
    yield Heading(3, f"{number}. {subject(kill)}")
    earlier = "".join(f"; before that {when(one)}" for one in death.earlier[:MOST_RIVALS])
    if len(death.earlier) > MOST_RIVALS:
        earlier += f" and {len(death.earlier) - MOST_RIVALS} more times"
    yield Paragraph(
        f"{MECHANISMS[diagnosis.mechanism]}, {when(kill)}{earlier}.", f"{diagnosis.confidence.value.title()}:"
    )
    yield Bullets(tuple(map(evidence_sentence, diagnosis.evidence)))
    # The kernel log of a node would make all of its deaths certain.
    if diagnosis.needs is not None and orders.setdefault((diagnosis.needs, kill.node), number) == number:
        yield Paragraph(f"{need_sentence(diagnosis.needs, kill.node)}.", "To be certain:")
    yield from _others(number, death, orders)
    if death.state is not None and death.state.at and death.row is not None:
        yield Paragraph(f"{state_sentence(death.state, death.row)}.", "A minute before:")
    text = prevention_sentence(death)
    if text:
        of_node = kill.diagnosis.mechanism in OF_NODE
        yield Paragraph(f"{text}.", f"What would have {'put it off' if of_node else 'prevented it'}:")


def _others(number: int, death: Death, orders: dict[object, int]) -> Iterator[Block]:
    kill, state = death.kill, death.state
    if kill.report is not None:
        sentences = [*victim_sentences(kill.report), *choice_sentences(kill)]
        yield Paragraph(f"{'; '.join(sentences)}.", "Who else could have died:")
        cells, rest = candidates(kill)
        if len(cells) > 1:
            yield Grid(TASK_HEADERS, cells, frozenset(map(TASK_HEADERS.index, RIGHT)))
            if rest > 0:
                yield Paragraph(f"And {rest} more.")
        return
    text = others_sentence(death)
    if text:
        yield Paragraph(f"{text}.", "Who else could have died:")
    rows = rivals(death)
    if not rows or state is None:
        return
    is_eviction = kill.diagnosis.mechanism is Mechanism.EVICTION
    first = orders.setdefault((state.node, state.at, is_eviction), number)
    if first != number:
        yield Paragraph(f"Their order stands at death {first}.")
        return
    columns = [BY_KEY[key] for key in ("eviction" if is_eviction else "rank", *_RIVALS)]
    yield _grid(columns, rows[:MOST_RIVALS])
    if len(rows) > MOST_RIVALS:
        yield Paragraph(f"And {len(rows) - MOST_RIVALS} more.")


_RIVALS: Final = ("namespace", "pod", "qos", "oom_score_adj", "oom_score", "memory", "request")


def _grid(columns: Sequence[Column[Any]], rows: Iterable[Any]) -> Grid:
    right = frozenset(number for number, one in enumerate(columns) if one.align is Align.RIGHT)
    return Grid(
        [one.header for one in columns], [[one.cell(row, NO_AGES) for one in columns] for row in rows], right
    )


def others_sentence(death: Death) -> str:
    """Whom the killer chose among, and why not the others; empty where it did not choose by memory."""
    mechanism, state = death.kill.diagnosis.mechanism, death.state
    if mechanism is Mechanism.CONTAINER_LIMIT:
        return "nobody outside of this container: at its limit the kernel chooses among its processes"
    if mechanism is Mechanism.POD_LIMIT:
        return "nobody outside of this pod: at its limit the kernel chooses among its containers"
    if mechanism not in OF_NODE:
        return ""
    if mechanism is Mechanism.EVICTION:
        why = "the kubelet evicts those first that use more than they request, of these the lowest priority"
    else:
        why = "the kernel kills the highest oom_score first"
    sentence = f"any pod of {escape(death.kill.node)}, but {why}"
    if state is None or not rivals(death):
        return f"{sentence}; their order is not known"
    then = f"a minute before, at {_clock(state.at)}" if state.at else "now, as that of then is not known"
    return f"{sentence}; their order is that of {then}"


def rivals(death: Death) -> list[PodRow]:
    """The pods among which its killer chose, in that killer's order."""
    mechanism, rows = death.kill.diagnosis.mechanism, death.state.rows if death.state is not None else ()
    if mechanism not in OF_NODE or death.kill.report is not None:
        return []
    if mechanism is not Mechanism.EVICTION:
        return [row for row in rows if row.rank is not None]
    return sorted(
        (row for row in rows if row.eviction_rank is not None), key=lambda row: row.eviction_rank or 0
    )


def state_sentence(state: NodeAt, row: PodRow) -> str:
    """A pod in the past: what it used, and its place."""
    used = f"it used {binary(row.memory)}" if row.memory is not None else "its usage is not known"
    limit = f"a limit of {binary(row.limit)}" if row.limit else "no limit"
    request = f"a request of {binary(row.request)}" if row.request else "no request"
    place = (
        f"; it was number {row.rank} in the kill order of {escape(state.node)}"
        if row.rank is not None
        else ""
    )
    whole = binary(sum(one.memory or 0 for one in state.rows))
    return f"{used}, with {request} and {limit}{place}, whose pods used {whole} ({_clock(state.at)})"


def prevention_sentence(death: Death) -> str:
    """The first change against such a death with its effect and when, or why none; may be empty."""
    if death.fix is not None:
        at = f"; by the state of {_clock(death.fixed_at)}" if death.fixed_at else ""
        return f"{fix_sentence(death.fix)}; {fix_effect(death.fix)}{at}"
    if death.unfixed is not None:
        return f"no change is offered: {NO_FIX[death.unfixed.reason]}"
    if death.kill.diagnosis.mechanism in OWN | OF_NODE:
        return "nothing can be tried: the pod is not there any more"
    return ""


def _next(incident: Incident) -> Iterator[Block]:
    rows = incident.next.rows
    if not rows:
        yield Paragraph(
            "No death is near: no limit, no threshold and no killer of a node reaches these pods."
        )
        return
    if incident.next.state is not None:
        near = foremost([row.death for row in rows], MOST_NEXT)
        rows = tuple(row for row in rows if row.death in near)
    rows = rows[:MOST_NEXT]
    hidden = {"node"} if len({row.node for row in rows}) == 1 else set()
    hidden |= set() if any(row.seconds for row in rows) else {"eta"}
    yield Paragraph("Who dies next, by whom, and how much more memory until then:")
    yield _grid([one for one in COLUMNS if one.key not in hidden], rows)
    left = len(incident.next.rows) - len(rows)
    if left:
        yield Paragraph(f"And {left} more: {_command('next', incident.about)}.")
    if incident.fixes.fixes:
        fix = incident.fixes.fixes[0]
        yield Paragraph(f"{fix_sentence(fix)}; {fix_effect(fix)}.", "The first change:")
        more = len(incident.fixes.fixes) - 1
        if more:
            yield Paragraph(f"And {more} more: {_command('fix', incident.about)}.")
    else:
        yield from (Paragraph(f"{line}.", "No change:") for line in list(unfixed_lines(incident.fixes))[:1])
    if incident.fixes.kubelet is not None:
        yield Paragraph(f"{kubelet_sentence(incident.fixes.kubelet)}.", "The kubelet:")


def _command(name: str, about: About) -> str:
    """The command that shows more of the same."""
    where = {"Node": f" node/{about.name}", "Pod": f" pod/{about.name} -n {about.namespace}", "Cluster": ""}
    return escape(f"kubectl qos {name}{where.get(about.kind, f' -n {about.name}')}")


def _facts(incident: Incident) -> Iterator[str]:
    snapshot = incident.snapshot
    if snapshot.server_version:
        yield f"API server {escape(snapshot.server_version)}"
    software, assumed = {}, {}
    for name in incident.nodes:
        raw = snapshot.nodes.get(name)
        info = raw.status.node_info if raw is not None else None
        parts = (
            (
                f"kubelet {info.kubelet_version}",
                info.container_runtime_version,
                f"kernel {info.kernel_version}",
            )
            if info is not None
            else ("node not known",)
        )
        software[name] = ", ".join(escape(part) for part in parts if part and not part.endswith(" "))
        texts = [assumption_sentence(one) for one in assumptions(snapshot.setup(name))]
        if texts:
            assumed[name] = f"not measured, assumed: {', '.join(texts)}"
    for values in (software, assumed):
        for text, names in by_node(values):
            yield f"{first_few(list(map(escape, names)))}: {text}"
    known = sampled(snapshot.usage)
    if known is not None:
        yield usage_sentence(known, incident.now, snapshot.history)
    yield from dict.fromkeys((*incident.notes, *incident.next.notes, *incident.fixes.notes))
