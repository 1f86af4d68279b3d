"""A report of an incident for people: blocks of sentences from `kills`, `next` and `fix`.

Not here: its content (analysis/incident.py), and Markdown and HTML (page.py).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import structs

from kubectl_qos.analysis.deaths import most_important
from kubectl_qos.analysis.incident import (
    DEATHS,
    ConditionChange,
    ContainerEnd,
    Death,
    Incident,
    IncidentSubject,
    Rollout,
)
from kubectl_qos.errors import first_few
from kubectl_qos.k8s.events import COMBINED, Event
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.quantity import parse_time
from kubectl_qos.k8s.usage import sampled
from kubectl_qos.present import fix_sentences
from kubectl_qos.present import kills as of_kills
from kubectl_qos.present.evidence import evidence_sentence
from kubectl_qos.present.format import UNKNOWN, binary, count, duration, escape, full_name, in_mi
from kubectl_qos.present.killers import WORDS
from kubectl_qos.present.list_notes import RECENT_SECONDS, missing_sentence, usage_sentence
from kubectl_qos.present.next_death import columns, foretold, notes, nothing
from kubectl_qos.present.output import NO_AGES, Align, Column
from kubectl_qos.present.page import Block, Bullets, Grid, Heading, LaneMark, Lanes, Paragraph
from kubectl_qos.present.pod_columns import BY_KEY
from kubectl_qos.present.pod_history import event_text
from kubectl_qos.present.reasons import assumption_sentence
from kubectl_qos.present.values import Values
from kubectl_qos.qos.killers import OWN_LIMITS
from kubectl_qos.qos.kills.analyze import Kill
from kubectl_qos.qos.prediction import assumptions
from kubectl_qos.qos.reason import Confidence

_MOST_LINES: Final = 40
"""Lines of the timeline, which leaves out deaths last; -o json has all."""
_MOST_LANES: Final = 12
_MOST: Final = 5
_PLACES: Final = ("namespace", "pod", "qos", "oom_score_adj", "oom_score", "memory", "request")
_OTHERS: Final = {
    "ended": ("container that failed", "containers that failed"),
    "rollout": ("rollout",),
    "resize": ("unfinished resize",),
}


def title(about: IncidentSubject) -> str:
    """Return the title of the page: `Memory report: node worker-2`."""
    name = full_name(about.namespace, about.name)
    return f"Memory report: {f'{about.kind.lower()} {name}' if about.name else 'all namespaces'}"


def clock(time: datetime | str) -> str:
    """Return a time in UTC, as the API writes it; one without a zone stays as it is."""
    moment = parse_time(time) if isinstance(time, str) else time
    if moment is None or (isinstance(time, str) and datetime.fromisoformat(time).tzinfo is None):
        return escape(str(time)) or UNKNOWN
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def blocks(incident: Incident, version: str) -> Iterator[Block]:
    """Yield the blocks of the page."""
    yield Heading(1, title(incident.about))
    at, since, window = "as of" if incident.snapshot.at else "written at", incident.since, "all known deaths"
    if since is not None:
        window = f"the {duration(round((incident.now - since).total_seconds()))} since {clock(since)}"
    if incident.unread:
        window += " in what could be read"
    labels = f", pods with {escape(incident.scope.selector_text)}" if incident.scope.selector_text else ""
    where = f"From {escape(incident.source)}{labels}, {at} {clock(incident.now)} by kubectl-qos {version}"
    yield Paragraph(f"{where}, covering {window}.")
    yield Heading(2, "What happened")
    yield Paragraph(" ".join(summary(incident)))
    lines = timeline(incident)
    if lines:
        yield Heading(2, "Timeline")
        yield from _timeline(lines)
    if incident.deaths:
        yield Heading(2, "Each death")
        first_at: dict[object, int] = {}
        for number, death in enumerate(incident.deaths, start=1):
            yield from _death(number, death, first_at)
        left = len(incident.kills) - sum(1 + len(death.earlier) for death in incident.deaths)
        if left:
            yield Paragraph(f"And {count(left, 'older death')}: kubectl qos kills lists all.")
    yield Heading(2, "The situation now" if not (old := _old_usage(incident)) else f"The situation at {old}")
    yield from _next(incident)
    yield Heading(2, "Versions and assumptions")
    yield Bullets(tuple(_facts(incident)))


def summary(incident: Incident) -> Iterator[str]:
    """Yield what happened, in sentences with counts."""
    kills, about = incident.kills, incident.about
    unread = [escape(note.removeprefix("error: ")) for note in incident.unread if note.startswith("error: ")]
    if unread:
        yield f"This page leaves out what could not be read: {'; '.join(unread)}."
    if not kills:
        namespace = about.name if about.kind == "Namespace" else None
        nothing = of_kills.nothing_sentence(namespace, of_part=bool(incident.unread))
        yield f"{nothing.rstrip('.')}."
    else:
        counted = Counter(map(of_kills.mechanism_sentence, kills)).most_common()
        by = ", ".join(f"{number} {mechanism}" for mechanism, number in counted)
        by = f", {counted[0][0]}" if len(counted) == 1 else f": {by}"
        yield f"{count(len(kills), 'OOM kill or eviction', 'OOM kills or evictions')}{by}."
        evidence = (evidence.details for kill in kills for evidence in kill.diagnosis.evidence)
        times = [item["times"] for item in evidence if str(item.get("message")).startswith(COMBINED)]
        if times:
            stand = "one event stands" if len(times) == 1 else f"{len(times)} events stand"
            yield f"There were more: {stand} for {sum(times)} of them."
        names = Counter(map(_victim, kills))
        hits = [f"{name} {number} times" if number > 1 else name for name, number in names.most_common()]
        yield f"Victims: {first_few(hits, _MOST)}."
        yield from _largest_users(kills)
        sure = Counter(kill.diagnosis.confidence for kill in kills)
        levels = [f"{sure[level]} {level.value}" for level in Confidence if sure[level]]
        yield f"Confidence: {', '.join(levels)}."
    others = Counter(line.what for line in timeline(incident) for _ in range(line.times))
    texts = [count(others[what], *words) for what, words in _OTHERS.items() if others[what]]
    if texts:
        yield f"Also in that time: {', '.join(texts)}."
    yield from (f"{doubt}." for doubt in incident.missing_evidence)
    for node, death, _ in incident.coming[0].rows[:1]:
        where, old = node if len(incident.nodes) > 1 else "", _old_usage(incident)
        sampled_at = f"By the usage of {old}, " if old else ""
        yield f"{sampled_at}{foretold(death, where, is_first=not death.before)}."


def _largest_users(kills: Iterable[Kill]) -> Iterator[str]:
    """Say which processes held the most memory when a node was full: seldom the victims."""
    sizes: dict[str, list[int]] = {}
    for user in filter(None, map(of_kills.largest_user, kills)):
        name = escape(user.name) + ("" if user.is_in_pod else ", outside pods,")
        sizes.setdefault(name, []).append(user.rss_bytes)
    for name, rss in sorted(sizes.items(), key=lambda user: -len(user[1])):
        times = f" {len(rss)} times" if len(rss) > 1 else ""
        most = f"{'up to ' if len(rss) > 1 else ''}{in_mi(max(rss))}"
        yield f"When the node was full, {name} held the most memory{times}: {most}."


def _old_usage(incident: Incident) -> str:
    """Return the time of the newest usage sample if it is no longer recent, else ""."""
    usage = sampled(incident.snapshot.usage) if not incident.snapshot.history.stat else None
    newest = parse_time(usage.newest) if usage is not None else None
    is_old = newest is not None and (incident.now - newest).total_seconds() > RECENT_SECONDS
    return clock(newest) if newest is not None and is_old else ""


def _victim(kill: Kill) -> str:
    if kill.pod:
        return full_name(kill.namespace, kill.pod)
    victim = kill.report.victim if kill.report is not None else None
    process = f" ({escape(victim.comm)})" if victim is not None else ""
    return of_kills.subject(structs.replace(kill, container_id="") if kill.pod_uid else kill) + process


class TimelineEntry(Values, frozen=True):
    """One line of the timeline; `times` is how often it happened until then."""

    time: str | None
    what: str
    about: str
    message: str
    times: int


def timeline(incident: Incident) -> tuple[TimelineEntry, ...]:
    """Return what happened, in order; entries with equal texts are merged, except deaths."""
    merged: dict[object, TimelineEntry] = {}
    for time, what, fact in incident.timeline:
        times = fact.times if isinstance(fact, Event) else 1
        about, message = _about_and_text(fact)
        key = (time if what in DEATHS else "", what, about, message)
        before = merged.pop(key, None)
        times += before.times if before is not None else 0
        merged[key] = TimelineEntry(time or None, escape(what), about, message, times)
    return tuple(merged.values())


def _about_and_text(fact: Kill | ContainerEnd | Rollout | ConditionChange | Event) -> tuple[str, str]:
    if isinstance(fact, ContainerEnd):
        about = f"pod {full_name(fact.pod.namespace, fact.pod.name)}, container {escape(fact.container)}"
        return about, evidence_sentence(fact.evidence)
    if isinstance(fact, Rollout):
        workload = fact.workload
        about = f"{workload.kind.lower()} {full_name(workload.namespace, workload.name)}"
        return about, f"replicaset {escape(fact.replica_set)} begins, {count(fact.pods, 'pod')} here"
    if isinstance(fact, ConditionChange):
        owner, condition = fact.about, fact.condition
        text = f"{condition.type} is {condition.status}"
        text += f", {condition.reason}" if condition.reason else ""
        text += f": {condition.message}" if condition.message else ""
        if isinstance(owner, Pod):
            return f"pod {full_name(owner.namespace, owner.name)}", escape(text)
        return f"node {escape(owner.name)}", escape(text)
    if isinstance(fact, Event):
        involved = fact.involved_object
        name = full_name("" if fact.is_of_node else involved.namespace, involved.name)
        text = escape(" ".join(fact.message.split())) if fact.is_of_node else event_text(fact)
        return f"{escape(involved.kind.lower())} {name}", text
    sure = fact.diagnosis.confidence.value
    doubt = f", {of_kills.when(fact)}" if fact.time_is_estimated else ""
    return of_kills.subject(fact), f"{of_kills.mechanism_sentence(fact)} ({sure}){doubt}"


def _timeline(lines: Sequence[TimelineEntry]) -> Iterator[Block]:
    if len(lines) > _MOST_LINES:
        lines = tuple(_grouped(lines))
    newest = sorted(range(len(lines)), key=lambda place: (lines[place].what not in DEATHS, -place))
    kept = [lines[place] for place in sorted(newest[:_MOST_LINES])]
    rows = []
    for entry in kept:
        often = f" ({entry.times} times)" if entry.times > 1 else ""
        rows.append((clock(entry.time or ""), entry.what + often, entry.about, entry.message))
    yield from _lanes(kept)
    yield Grid(("Time", "What", "Where", "How"), rows)
    yield from _more(len(lines) - len(kept), f" of {len(lines)}: -o json has them all")


def _grouped(lines: Iterable[TimelineEntry]) -> Iterable[TimelineEntry]:
    """Return the entries with the like deaths of a pod as one, at the time of the first."""
    grouped: dict[object, TimelineEntry] = {}
    for entry in lines:
        pod = entry.about.partition(", container ")[0]
        key = (pod, entry.what, entry.message) if entry.what in DEATHS else id(entry)
        first = grouped.get(key)
        if first is None:
            grouped[key] = entry
        else:
            times = first.times + entry.times
            grouped[key] = structs.replace(
                first, about=f"{pod}, last at {clock(entry.time or '')}", times=times
            )
    return grouped.values()


def _lanes(lines: Sequence[TimelineEntry]) -> Iterator[Lanes]:
    """Yield the timed entries in lanes, one for each pod, node or workload, those with deaths first."""
    timed = [(moment, entry) for entry in lines if (moment := parse_time(entry.time or "")) is not None]
    moments = [moment for moment, _ in timed]
    if not timed or min(moments) == max(moments):
        return
    begin, whole = min(moments), max(moments) - min(moments)
    lanes = dict[str, list[LaneMark]]()
    for moment, entry in timed:
        name, is_death = entry.about.partition(", container ")[0], entry.what in DEATHS
        text = f"{clock(moment)} {entry.what}: {entry.message}"
        lanes.setdefault(name, []).append(LaneMark((moment - begin) / whole, text, is_death))
    ordered = sorted(lanes.items(), key=lambda lane: not any(mark.is_death for mark in lane[1]))
    yield Lanes(clock(begin), clock(max(moments)), ordered[:_MOST_LANES])


def _death(number: int, death: Death, first_at: dict[object, int]) -> Iterator[Block]:
    """Yield the blocks about a death.

    `first_at` has the number of the first death with a need, an order or a prevention: later deaths with the
    same one refer to it.
    """
    kill, diagnosis = death.kill, death.kill.diagnosis
    yield Heading(3, f"{number}. {of_kills.subject(kill)}")
    text = f"{of_kills.mechanism_sentence(kill)}, {of_kills.when(kill)}"
    if death.earlier:
        text += f", before that {first_few(list(map(of_kills.when, death.earlier)), _MOST)}"
    yield Paragraph(f"{text}.", f"{diagnosis.confidence.value.title()}:")
    yield Bullets(tuple(map(evidence_sentence, diagnosis.evidence)))
    if diagnosis.needs is not None and first_at.setdefault((diagnosis.needs, kill.node), number) == number:
        yield Paragraph(f"{of_kills.need_sentence(diagnosis.needs, kill.node)}.", "To be certain:")
    if others_sentence(death):
        yield Paragraph(f"{others_sentence(death)}.", "Who else could have died:")
    if kill.report is not None:
        yield Bullets((*of_kills.victim_sentences(kill.report), *of_kills.choice_sentences(kill)))
        cells, rest = of_kills.candidates(kill)
        # At an own limit the pause container is the other candidate.
        if len(cells) > (2 if diagnosis.killer in OWN_LIMITS else 1):
            right = frozenset(map(of_kills.TASK_HEADERS.index, of_kills.RIGHT))
            yield Grid(of_kills.TASK_HEADERS, cells, right)
            yield from _more(rest)
    order = kill.node, death.state_time, diagnosis.evicts
    if death.rivals and (first := first_at.setdefault(order, number)) != number:
        yield Paragraph(f"For their order see death {first}.")
    elif death.rivals:
        columns = [BY_KEY[key] for key in ("eviction" if diagnosis.evicts else "rank", *_PLACES)]
        yield _grid(columns, death.rivals[:_MOST])
        yield from _more(len(death.rivals) - _MOST)
    if state_sentence(death):
        yield Paragraph(f"{state_sentence(death)}.", f"A minute before, at {clock(death.state_time)}:")
    yield from _prevention(number, death, first_at)


def _prevention(number: int, death: Death, first_at: dict[object, int]) -> Iterator[Block]:
    helps = prevention_sentence(death)
    if death.tried is not None and (said_at := first_at.setdefault(helps, number)) != number:
        helps = f"the same as for death {said_at}"
    if helps:
        yield Paragraph(f"{helps}.", "What would have helped:")


def _more(rest: int, where: str = "") -> Iterator[Block]:
    if rest > 0:
        yield Paragraph(f"And {rest} more{where}.")


def _grid(columns: Sequence[Column[Any]], rows: Iterable[Any]) -> Grid:
    right = frozenset(number for number, column in enumerate(columns) if column.align is Align.RIGHT)
    cells = [[column.cell(row, NO_AGES) for column in columns] for row in rows]
    return Grid([column.header for column in columns], cells, right)


def others_sentence(death: Death) -> str:
    """Say whom the killer chose among, and why not the others; "" if it did not choose by memory."""
    killer = death.kill.diagnosis.killer
    if killer is None:
        return ""
    why = WORDS[killer.id].order
    if not killer.is_node_wide:
        return why
    order = "the order below is the current one; the order at that time is unknown"
    if death.state_time:
        order = f"the order below is from a minute before, at {clock(death.state_time)}"
    if of_kills.candidates(death.kill)[0]:
        order = "the numbers below are from its own report"
    elif not death.rivals:
        order = "their order is unknown"
    where = escape(death.kill.node) or "the node"
    return f"any pod on {where}, but {why}; {order}"


def state_sentence(death: Death) -> str:
    """Return the usage and place of a pod a minute before its death; "" if unknown."""
    row = death.row
    if not death.state_time or row is None:
        return ""
    used = f"it used {binary(row.memory)}" if row.memory is not None else "its usage is unknown"
    limit = f"a limit of {binary(row.limit)}" if row.limit else "no limit"
    request = f"a request of {binary(row.request)}" if row.request else "no request"
    whole = f"the pods of {escape(row.node)} used {binary(sum(row.memory or 0 for row in death.rows))}"
    place = f", where it was number {row.rank} in the kill order" if row.rank is not None else ""
    return f"{used}, with {request} and {limit}; {whole}{place}"


def prevention_sentence(death: Death) -> str:
    """Say what would have prevented such a death, or why no change is known; may be ""."""
    user, change = of_kills.largest_user(death.kill), _change_sentence(death)
    if user is None:
        return change
    if user.is_in_pod:
        report, row = death.kill.report, death.row
        is_victim = report is not None and report.victim is not None and report.victim.pid == user.pid
        if death.fix is not None or not is_victim or row is None or row.limit:
            return change
        return (
            f"a memory limit: it had none, and held {in_mi(user.rss_bytes)}, more than any other process."
            " With a limit it dies alone, before the node is full"
        )
    text = (
        f"a memory limit for {escape(user.name)} ({user.pid}), which held {in_mi(user.rss_bytes)} outside"
        " pods, more than any process of a pod: MemoryMax= of its systemd unit, which systemctl status"
        f" {user.pid} names, or memory that systemReserved of the kubelet keeps for it"
    )
    if death.fix is None:
        return text
    return f"{text}. A change to the pod only moves the death to the next victim: {change}"


def _change_sentence(death: Death) -> str:
    """Return the first fix for such a death, or why there is none; may be ""."""
    if death.fix is None and any(evidence.details.get("above") for evidence in death.kill.diagnosis.evidence):
        return ""  # The evidence says which requests would have kept the pod.
    fix, at = death.fix, f"; by the state of {clock(death.fix_time)}" if death.fix_time else ""
    if fix is not None:
        now = ""
        if not at and fix.death.killer.is_node_wide:
            now = (
                "against that killer, on the node as it is now (kubectl qos fix starts with the"
                " first death): "
            )
        return f"{now}{fix_sentences.fix_sentence(fix)}; {fix_sentences.fix_effect(fix)}{at}"
    if death.unfixed is not None:
        why = fix_sentences.no_fix_sentence(death.unfixed)
        if not at and death.unfixed.evidence is not None:
            at = "; this is for its usage now: its usage when it died is unknown"
        return f"no change is offered: {why}{at}"
    if death.tried is not None:
        why = fix_sentences.unknown_text(death.tried) or "nothing would kill it that way now"
        return f"no change is offered: {why}"
    if not (death.kill.pod or death.kill.pod_uid):
        return "no change can be tried: the pod of this process is unknown"
    if not (death.kill.pod or death.kill.is_unlisted):
        return "no change can be tried without its pod: kubectl get pods,nodes -A -o json has it, for -f"
    if death.kill.diagnosis.killer is not None:
        gone = "the pod no longer runs, and its node's usage at that time is unknown"
        why = gone if death.kill.node else "the pod's node is unknown"
        return f"no change can be tried: {why}"
    return ""


def _next(incident: Incident) -> Iterator[Block]:
    (coming, fixes), about = incident.coming, incident.about
    rows = coming.rows
    if not rows:
        unknown = map(missing_sentence, () if incident.snapshot.pods else incident.snapshot.missing)
        why = next(unknown, nothing(coming))
        yield Paragraph(f"{why[:1].upper()}{why[1:]}.")
        return
    shown = most_important([row.death for row in rows], _MOST) if coming.state is not None else ()
    shown_rows = [row for row in rows if not shown or row.death in shown][:_MOST]
    has_nodes = len({row.node for row in rows}) > 1
    namespace = about.name if about.kind == "Namespace" else about.namespace
    what = f" {about.kind.lower()}/{about.name}" if about.kind not in {"Namespace", "Cluster"} else ""
    what = escape(what + (f" -n {namespace}" if namespace else ""))
    yield Paragraph("Who dies next, by whom, and how much more memory until then:")
    yield _grid([column for column in columns(shown_rows) if has_nodes or column.key != "node"], shown_rows)
    between = rows.index(shown_rows[-1]) + 1 - len(shown_rows)
    among = f", {between} of them between the rows above" if between > 0 else ""
    yield from _more(len(rows) - len(shown_rows), f"{among}: kubectl qos next{what}")
    for fix in fixes.fixes[:1]:
        yield Paragraph(
            f"{fix_sentences.fix_sentence(fix)}; {fix_sentences.fix_effect(fix)}.", "The first change:"
        )
        if first := fix_sentences.first_unfixed(fixes):
            yield Paragraph(f"{first}.", "Comes first, but has no fix:")
    later = f", and those of {count(fixes.further, 'more node')}" if fixes.further else ""
    yield from _more(len(fixes.fixes) - 1, f"{later}: kubectl qos fix{what}")
    for line in [] if fixes.fixes else list(fix_sentences.unfixed_lines(fixes))[:1]:
        yield Paragraph(f"{line}.", "No change:")
    if fixes.kubelet is not None:
        warnings = fix_sentences.kubelet_warnings(fixes.kubelet)
        text = "; ".join((fix_sentences.kubelet_sentence(fixes.kubelet), *warnings))
        yield Paragraph(f"{text}.", "The kubelet:")


def _facts(incident: Incident) -> Iterator[str]:
    snapshot, by_text = incident.snapshot, dict[str, list[str]]()
    for name in incident.nodes:
        raw = snapshot.nodes.get(name)
        if raw is not None:
            info = raw.status.node_info
            parts = {"kubelet ": info.kubelet_version, "": info.container_runtime_version}
            parts |= {"kernel ": info.kernel_version, "OS ": info.os_image}
            versions = ", ".join(what + escape(value) for what, value in parts.items() if value)
            by_text.setdefault(versions or "versions unknown", []).append(escape(name))
        texts = [assumption_sentence(assumption) for assumption in assumptions(snapshot.setup(name))]
        if texts:
            by_text.setdefault(f"not measured, assumed: {', '.join(texts)}", []).append(escape(name))
    yield from (f"{first_few(names)}: {text}" for text, names in by_text.items())
    usage = sampled(snapshot.usage)
    if usage is not None:
        yield usage_sentence(usage, incident.now, snapshot.history)
    coming, fixes = incident.coming
    of_deaths = notes(coming) if coming.rows else ()
    later = (note for note in incident.notes if note not in incident.unread)
    yield from dict.fromkeys((*later, *of_deaths, *fix_sentences.basis_notes(fixes)))
