"""Fixes in words: the table, one fix in a sentence, and why a death has none."""

from collections.abc import Iterable, Iterator
from itertools import chain
from math import inf
from typing import Final, NamedTuple

from kubectl_qos.analysis.fix_list import FixList, Throttled
from kubectl_qos.edit.edits import as_flags, current_value
from kubectl_qos.edit.fixes import (
    RESERVE_PERCENT,
    EvidenceKind,
    Fix,
    Fixes,
    FixKind,
    KubeletFix,
    NeedEvidence,
    NodeModel,
    NoFixReason,
    Unfixed,
    friendly,
    order_of_fixes,
)
from kubectl_qos.edit.preview import StrategyKind, When
from kubectl_qos.edit.status import low_limit_sentence
from kubectl_qos.edit.strategy import loop_obstacles
from kubectl_qos.errors import first_few
from kubectl_qos.k8s.allocation import is_resizing, limit_in_force
from kubectl_qos.k8s.kinds import find_workload
from kubectl_qos.k8s.kubelet import MEMORY_AVAILABLE, Node, Origin
from kubectl_qos.k8s.objects import Pod, all_containers
from kubectl_qos.k8s.releases import Release
from kubectl_qos.present.changes import STRATEGY_NAMES
from kubectl_qos.present.effects import edits_text, effect_moment
from kubectl_qos.present.evidence import evidence_sentence
from kubectl_qos.present.findings import finding_line, manager_line
from kubectl_qos.present.format import NONE, binary, count, escape, eta, full_name, mebibytes, quantity_text
from kubectl_qos.present.killers import WORDS
from kubectl_qos.present.kills import subject, when
from kubectl_qos.present.list_notes import unmeasured_notes
from kubectl_qos.present.next_death import (
    KUBELET_CHECKS,
    bounded,
    capacity_notes,
    death_condition,
    distance,
    in_time,
    killer_label,
    killer_words,
    mechanism_notes,
    others_first_text,
    state_notes,
    turn,
    victim,
)
from kubectl_qos.present.output import ARROW, NUMBER, Column, column, fitted_table
from kubectl_qos.present.reasons import resize_sentence
from kubectl_qos.present.restart_notes import volume_sentence
from kubectl_qos.present.simulation import of_limit
from kubectl_qos.qos.killers import EVICTING
from kubectl_qos.qos.kills.analyze import Kill
from kubectl_qos.qos.kills.evidence import Fact, kubelet_kill
from kubectl_qos.qos.oom_score import burstable_adj
from kubectl_qos.qos.simulation.next_death import HORIZON_SECONDS, NextDeath, Urgency

MOST_ROWS: Final = 10
THROTTLES: Final = "above it the kernel throttles the container, even on an idle node"
"""Rows of the table; further ones are for more distant deaths."""
DOUBLED: Final = (
    "it was OOMKilled at this limit, so its need is unknown and the limit is doubled. Double it again"
    " until the container survives, then measure its peak (memory.peak of its cgroup, or --prometheus) and"
    " leave room above that. Controllers need more at their start as the cluster grows"
)
STARTS: Final = (
    "the container runtime could not start it within its limit. 32Mi is enough for any runtime; how much"
    " its processes need is unknown: measure it once it runs"
)
PRIORITY: Final = (
    "eviction also depends on priority, which no edit here changes: the pod's PriorityClass decides"
)


def unmeasured(fixes: FixList) -> str:
    """Say why the usage of nodes is unknown, and what would help; "" if it is known."""
    text = "".join(unmeasured_notes(fixes.snapshot, fixes.states))
    sizes = [state.capacity_bytes for state in fixes.states.values()]
    if text and len(sizes) == 1 and sizes[0]:
        lowered = 1000 - burstable_adj(1 << 30, sizes[0])
        text += f"; a memory request of 1Gi lowers a pod's oom_score_adj by {lowered}"
    return text


def ended_notes(fixes: FixList) -> Iterator[str]:
    """Yield why pods have ended, and what would have kept them."""
    for pod in fixes.ended[:MOST_ROWS]:
        yield ended_text(pod, fixes.snapshot.setup(pod.node_name).release)
    if len(fixes.ended) > MOST_ROWS:
        yield f"{count(len(fixes.ended) - MOST_ROWS, 'more pod')} ended like this: see kubectl qos kills"


def ended_text(pod: Pod, release: Release) -> str:
    """Say why its kubelet ended a pod and what would have kept it, or that it was OOMKilled."""
    name, owner, kill = full_name(pod.namespace, pod.name), find_workload(pod), kubelet_kill(pod, ())
    if kill is None:
        return f"{name} {_oom_ended(pod, release)}"
    own = [fact for fact in kill.evidence if fact.fact in {Fact.EXCESS, Fact.OWN_STORAGE_LIMIT}]
    if not own:
        message = escape(" ".join(kill.evidence[0].details["message"].split()).rstrip("."))
        return f"{name} was {WORDS[kill.mechanism].killed}{f': {message}' if message else ''}"
    above, resource = own[0].details.get("above"), escape(own[0].details.get("resource", ""))
    if not above:
        return f"{name} was evicted{f' for {resource}' if resource else ''}: {evidence_sentence(own[0])}"
    used = {key: NeedEvidence(EvidenceKind.SAMPLE, size) for key, (size, _) in above.items()}
    sizes = {key: friendly(need.wanted_bytes) for key, need in used.items()}
    where = escape(f"{owner.kind.lower()}/{owner.name}")
    requests = (f"{binary(size)} for {escape(key)}" for key, size in sizes.items())
    request = f"request {resource} {', '.join(requests)} in {where}"
    what = (
        "its requests" if own[0].details["is_all"] else f"the request of {first_few([*map(escape, above)])}"
    )
    limits = {container.name: container.limits.get(resource) for container in all_containers(pod)}
    low = [key for key, size in sizes.items() if (limit := limits.get(key)) and limit.value() < size]
    text = f"{name} was evicted for {resource} above {what}: {request}. Below its requests, priority decides"
    return f"{text}; raise limits.{resource} of {first_few([*map(escape, low)])} to that too" if low else text


def _oom_ended(pod: Pod, release: Release) -> str:
    killed = [status for status in pod.status.every_container if status.was_oom_killed]
    ended = "ended OOMKilled"
    if not any(end.exit_code for status in killed for end in status.ends):
        ended = f"succeeded, but a process in {escape(killed[0].name)} was OOM killed"
    limits = [limit_in_force(pod, status.name, release) for status in killed]
    if not any(limits):
        return f"{ended} without a memory limit: a memory request lowers its oom_score_adj"
    command = f"kubectl qos fix pod/{escape(pod.name)}"
    command += f" -n {escape(pod.namespace)}" if pod.namespace else ""
    return f"{ended} with a limit of {binary(max(limits))}: {command} raises it"


def basis_notes(fix_list: FixList) -> Iterator[str]:
    """Yield what the fixes are based on, and what speaks against them."""
    fixes = fix_list.fixes
    yield from capacity_notes(fix_list.states)
    yield from fix_list.problems
    yield from dict.fromkeys(map(manager_line, fix_list.managers))
    obstacles = (
        f"{full_name(fix.pod.namespace, fix.pod.name)} is not fixed in place: {escape(obstacle)}"
        for fix in fixes
        for obstacle in loop_obstacles(fix.preview)
    )
    yield from dict.fromkeys(obstacles)
    for kind, text in ((EvidenceKind.KILLED_EACH_TIME, DOUBLED), (EvidenceKind.NEVER_STARTED, STARTS)):
        names = {victim(fix.death) for fix in fixes if fix.evidence.kind is kind}
        if names:
            yield f"{first_few(sorted(names))}: {text}"
    killed = (fix.pod for fix in fixes if fix.evidence.kind is EvidenceKind.KILLED_EACH_TIME)
    for key, volumes in {pod.key: pod.memory_volumes for pod in killed if pod.memory_volumes}.items():
        yield f"{full_name(*key)}: {volume_sentence(volumes)}"
    if any(fix.death.killer.evicts for fix in fixes):
        yield PRIORITY
    yield from mechanism_notes(
        death for fix in fixes for death in (fix.death, fix.sooner) if death is not None
    )
    yield from state_notes(fix_list.states, fix_list.snapshot.usage)
    yield from map(_throttled_note, fix_list.throttled)
    if fix_list.left_out:
        changes, absent = count(fix_list.left_out, "change"), escape(", ".join(fix_list.absent))
        yield f"not offered: {changes} of containers that the template lacks ({absent})"


def _throttled_note(throttled: Throttled) -> str:
    old, new = throttled.class_before, throttled.class_after
    change = f", {old.value} {ARROW} {new.value}" if old is not new else ""
    flags = escape(" ".join(as_flags(throttled.edits)))
    share = f"throttled in {throttled.share:.0%} of its CPU periods in the last hour"
    remedy = f"by its limit of {escape(str(throttled.limit))}: raise or remove the limit"
    return f"{full_name(*throttled.key, throttled.container)} was {share} {remedy} (set {flags}{change})"


class FixRow(NamedTuple):
    """A fix with its number, from 1."""

    number: int
    fix: Fix


def numbered(fixes: FixList) -> list[FixRow]:
    """Number the fixes from 1."""
    return [FixRow(number, fix) for number, fix in enumerate(fixes.fixes, start=1)]


def fix_object(fix: Fix) -> str:
    """Return what is changed: `shop/api-0`, `shop/deployment/api`."""
    if fix.workload is None:
        return full_name(fix.pod.namespace, fix.pod.name)
    kind, name = fix.workload
    return full_name(fix.pod.namespace, f"{kind.lower()}/{name}")


def fix_change(fix: Fix) -> str:
    """Return values before, after and at least: `c limits.memory 1Gi → 2Gi (at least 1500Mi)`."""
    return edits_text(fix.pod, fix.edits, fix.minimal)


def fix_effect(fix: Fix) -> str:
    """Say what happens to the death, what else kills before it, and how the class changes."""
    death, after = fix.death, fix.after
    words = killer_words(death)
    if fix.kind is FixKind.NEIGHBOUR:
        assert after is not None, "a limit that was set can be hit"
        return f"{words}: {victim(death)} survives; {victim(after)} dies instead after {in_time(after)}"
    words += _delay(death, after, fix.instead)
    if fix.sooner is not None:
        unless = _unless(fix.sooner, fix.instead)
        first = f"{killer_label(fix.sooner)}{_whose(fix, fix.sooner)}"
        words += f", but first {first} ({in_time(fix.sooner)}{unless})"
    before, changed = fix.effects.before.qos_class, fix.effects.after.qos_class
    words += f"; {before.value} {ARROW} {changed.value}" if before is not changed else ""
    return words if fix.fits else f"{words}; no room"


def _unless(sooner: NextDeath, instead: NextDeath | None) -> str:
    """Say that a nearer death frees memory, so that a killer of the whole node does not act that early."""
    if instead is None or not sooner.killer.is_node_wide or sooner.before:
        return ""
    if instead.distance_bytes >= sooner.distance_bytes:
        return ""
    return f", unless {victim(instead)} dies before"


def _delay(death: NextDeath, after: NextDeath | None, instead: NextDeath | None) -> str:
    """Return a death's distance before and after; if both read the same, its turn among other deaths.

    `instead` is the first of the others that die before.
    """
    far, turns = in_time(death), turn(death)
    if after is None:
        return f": {far}{turns} {ARROW} never"
    if distance(after) != distance(death):
        return f": {far}{turns} {ARROW} {in_time(after)}{_turn_after(after, instead)}"
    if after.before == death.before:
        return f": still {far}{turns}"
    was = turn(death).removeprefix(", ") or "first"
    becomes = _turn_after(after, instead).removeprefix(", ") or "first"
    at = f" at {bounded(death)}" if death.distance_bytes > 0 else f", {distance(death)}"
    return f"{at}: {was} {ARROW} {becomes}"


def _turn_after(after: NextDeath, instead: NextDeath | None) -> str:
    if instead is None or not after.before:
        return turn(after)
    more = f" and {count(after.before - 1, 'other death')}" if after.before > 1 else ""
    return f", after {victim(instead)}{more}"


def _whose(fix: Fix, sooner: NextDeath) -> str:
    if sooner.key != fix.death.key:
        return f" of {victim(sooner)}"
    is_clear = sooner.killer.is_node_wide or len(list(all_containers(fix.pod))) == 1
    return "" if is_clear else f" of {escape(sooner.container)}"


def fix_when(fix: Fix) -> str:
    """Say when a fix takes effect."""
    return effect_moment(fix.effects, fix.when)


def fix_requests(fix: Fix) -> str:
    """Return how a fix changes the memory requests on its node: `unchanged`, `+64Mi of 1.2Gi free`."""
    pods = fix.node_pods if fix.workload is not None else None
    return requests_text(fix.node_bytes, fix.free_bytes, pods)


def requests_text(more_bytes: int, free_bytes: int | None, pods: int | None = None) -> str:
    """Return the change of a node's memory requests, and the free bytes (None: unknown) if it is more.

    `pods` is how many pods of a workload on the node change, None for a single pod.
    """
    if not more_bytes:
        return "unchanged"
    text = f"+{binary(more_bytes)}" if more_bytes > 0 else f"-{binary(-more_bytes)}"
    text += " each" if pods == 1 else f" for {pods} pods" if pods else ""
    if more_bytes < 0 or free_bytes is None:
        return text
    return f"{text} of {binary(free_bytes)} free{': no room' if more_bytes > free_bytes else ''}"


def fix_how(fix: Fix) -> str:
    """Say how a fix is applied: `in place until the pod is replaced`, `through deployment/api`."""
    return how_to_apply(fix.strategy, *(fix.workload or find_workload(fix.pod)[::2]))


def how_to_apply(strategy: StrategyKind, kind: str, name: str) -> str:
    """Name a strategy with its workload, or with the pod's own kind and name."""
    owner = escape(f"{kind.lower()}/{name}")
    if strategy is StrategyKind.TEMPLATE:
        return f"through {owner}"
    if strategy is StrategyKind.RECREATE:
        return f"recreate {owner}"
    return f"{STRATEGY_NAMES[strategy]}{_UNTIL_REPLACED if kind != 'Pod' else ''}"


_UNTIL_REPLACED: Final = " until the pod is replaced"


def fix_evidence(fix: Fix | Unfixed) -> str:
    """Say how the need is known: `usage seen: 115Mi`; "" if there is none."""
    need = fix.evidence
    if need is None:
        return ""
    kind, lower, upper = need.kind, need.lower_bytes, need.upper_bytes
    between = f" ({binary(lower)} to {binary(upper)})" if lower and upper else ""
    has_size = kind not in {EvidenceKind.NONE, EvidenceKind.NEVER_STARTED}
    return f"{kind.value}: {binary(need.peak_bytes)}{between}" if has_size else kind.value


def fix_sentence(fix: Fix) -> str:
    """Return a fix in a line: `shop/api-0 c limits.memory 1Gi → 2Gi, now, in place`."""
    waits = f"{resize_sentence(fix.pod)}; " if is_resizing(fix.pod) else ""
    return f"{waits}{fix_object(fix)} {fix_change(fix)}{_times_peak(fix)}, {_takes_effect(fix, fix_how(fix))}"


def far_above_usage(times_by_number: Iterable[tuple[int, int]]) -> Iterator[str]:
    """Name the changes whose requests are many times the usage, none for 0 times."""
    far = [f"{number} ({times} times)" for number, times in times_by_number if times]
    if far:
        yield f"far above usage: {', '.join(far)}; such a request only makes others die first"


def _times_peak(fix: Fix) -> str:
    """Say what a request is for that is far above usage, or return ""."""
    return f" ({fix.times_peak} times its usage, so that others die first)" if fix.times_peak else ""


def _takes_effect(fix: Fix, how: str) -> str:
    """Say when and how a fix takes effect: `now, in place`, `once job/etl is recreated`."""
    if fix.strategy is StrategyKind.RECREATE and fix.when is When.RECREATED:
        kind, name = fix.workload or find_workload(fix.pod)[::2]
        return f"once {escape(f'{kind.lower()}/{name}')} is recreated"
    return f"{fix_when(fix)}, {how}"


NO_FIX: Final = {
    NoFixReason.PROCESS: "a process of the node has no requests or limits",
    NoFixReason.ANYBODY: "its victim is unknown, so no edit can be simulated",
    NoFixReason.STATIC: "static pod: change its file on the node; kubectl qos set previews values for it",
    NoFixReason.LEAK: "it grows without bound, so no limit is enough: look for a leak",
    NoFixReason.HAS_ROOM: "enough headroom above its known usage, unless it grows",
    NoFixReason.RESIZING: "its unfinished resize gives it enough room once it is done",
    NoFixReason.NO_USAGE: "its memory usage is unknown",
    NoFixReason.NOT_BY_EDITS: "no memory request delays it",
}


def no_fix_sentence(unfixed: Unfixed) -> str:
    """Say why there is no fix."""
    death = unfixed.death
    if unfixed.reason is NoFixReason.LOW_POD_LIMIT:
        low = binary(death.limit_bytes or 0)
        return low_limit_sentence(low, *map(escape, (*death.key, death.container, death.qos or "")))
    seen = fix_evidence(unfixed)
    text = f"{NO_FIX[unfixed.reason]} ({seen})" if seen else NO_FIX[unfixed.reason]
    if unfixed.reason is NoFixReason.HAS_ROOM and (death.seconds or inf) < HORIZON_SECONDS:
        text += f", but at this growth it is full in {eta(death.seconds)}: find what grows"
    return text


def unfixed_sentence(unfixed: Unfixed) -> str:
    """Return a death without a fix, and why it has none."""
    death = unfixed.death
    who = f"{victim(death)}: " if death.has_victim else ""
    far = "" if death.waits else f", {distance(death)}"
    return f"{who}{killer_words(death)}{far}: {no_fix_sentence(unfixed)}"


def fix_summary(fix: Fix) -> str:
    """Return a fix for people who know the pod: `container c: memory limit 1Gi → 2Gi, now, in place`."""
    names = dict[str, list[str]]()
    for edit in fix.edits:
        owner = f"container {escape(edit.owner)}" if edit.owner else "pod"
        old = current_value(fix.pod, *edit.target)
        values = f"{quantity_text(old)} {ARROW} {quantity_text(edit.quantity)}"
        names.setdefault(owner, []).append(f"{edit.resource} {edit.side.removesuffix('s')} {values}")
    changes = (f"{owner}: {', '.join(values)}" for owner, values in names.items())
    how = fix_how(fix).removesuffix(_UNTIL_REPLACED)
    waits = f"{resize_sentence(fix.pod)}; " if is_resizing(fix.pod) else ""
    whose = f"{fix_object(fix)} " if fix.pod.key != fix.death.key else ""
    if fix.kind is FixKind.NEIGHBOUR:
        whose = f"{fix_object(fix)} would die instead: "
    room = "" if fix.fits else "none that fits: "
    return f"{waits}{room}{whose}{'; '.join(changes)}{_times_peak(fix)}, {_takes_effect(fix, how)}"


def first_fix_text(fixes: Fixes | FixList, shown: str = "") -> str:
    """Return the fix for the first death, or why it has none; "" without deaths.

    `shown` is what the reader sees of a death: one by the same killer is first. Another killer is named. The
    fix at a limit that killed before is named too.
    """

    def turn_of(death: NextDeath) -> tuple[bool, Urgency]:
        return killer_words(death) not in shown, death.urgency

    unfixed = min(fixes.unfixed, key=lambda unfixed: turn_of(unfixed.death), default=None)
    fix = min(fixes.fixes, key=lambda fix: (turn_of(fix.death), order_of_fixes(fix)), default=None)
    if fix is not None and (unfixed is None or turn_of(fix.death) <= turn_of(unfixed.death)):
        return fix_summary(fix)
    if unfixed is None:
        return ""
    killer = killer_words(unfixed.death)
    killed_by = f" for {killer}" if shown and killer not in shown else ""
    again = [fix for fix in fixes.fixes if fix.death.waits]
    others = (f"; for {killer_words(fix.death)}: {fix_summary(fix)}" for fix in again[:1])
    return f"none{killed_by}: {no_fix_sentence(unfixed)}{''.join(others)}"


def first_unfixed(fixes: Fixes | FixList) -> str:
    """Say why the death that comes before that of the first fix has none; "" without one, or without fixes.

    A death after others has to be nearer, because those others may be far away too.
    """
    fixed = next((fix.death for fix in fixes.fixes), None)
    more_urgent = (
        unfixed
        for unfixed in fixes.unfixed
        if fixed is not None
        and _urgency(unfixed) < fixed.urgency
        and (not unfixed.death.is_later or unfixed.death.distance_bytes < fixed.distance_bytes)
    )
    first = min(more_urgent, key=_urgency, default=None)
    return unfixed_sentence(first) if first is not None else ""


def _urgency(unfixed: Unfixed) -> Urgency:
    return unfixed.death.urgency


def unfixed_lines(fixes: FixList) -> Iterator[str]:
    """Yield the deaths without a fix, deaths at limits with headroom last, and how many are left out."""
    listed = sorted(fixes.unfixed, key=_urgency)
    listed.sort(key=lambda unfixed: unfixed.reason is NoFixReason.HAS_ROOM)
    first = first_unfixed(fixes)
    if first:
        yield f"comes first, but has no fix: {first}"
    yield from (line for line in map(unfixed_sentence, listed[:MOST_ROWS]) if line != first)
    if len(fixes.unfixed) > MOST_ROWS:
        more = count(len(fixes.unfixed) - MOST_ROWS, "more death")
        yield f"{more} without a fix: see -o json"


_NODE: Final[Column[FixRow]] = column(
    "node", lambda row: row.fix.effects.after.setup.node.name, "the node, if several have fixes"
)
COLUMNS: Final[tuple[Column[FixRow], ...]] = (
    column("number", lambda row: row.number, "the number for --apply", NUMBER, header="N"),
    _NODE,
    column("object", lambda row: fix_object(row.fix), "what is changed"),
    column("change", lambda row: fix_change(row.fix), "each value before and after"),
    column("effect", lambda row: fix_effect(row.fix), "how far away the death is, before and after"),
    column("when", lambda row: fix_when(row.fix), "when it takes effect"),
    column("requests", lambda row: fix_requests(row.fix), "how much more, of the node's allocatable memory"),
    column("how", lambda row: fix_how(row.fix), "how it is applied"),
    column("evidence", lambda row: fix_evidence(row.fix), "how the need is known"),
)


_HIDDEN_FIRST: Final = ("evidence", "how", "requests", "when")


def lines(
    fixes: FixList, *, headers: bool = True, width: int | None = None, most: int | None = None
) -> Iterator[str]:
    """Yield the table, or that there is nothing to fix; in a narrow terminal a paragraph for each fix."""
    if not fixes.fixes:
        yield from ended_notes(fixes) if is_of_ended(fixes) else [nothing_sentence(fixes)]
        return
    rows = numbered(fixes)[:most]
    is_of_one = len({_NODE.value(row) for row in rows}) == 1
    columns = [column for column in COLUMNS if not is_of_one or column is not _NODE]
    yield from fitted_table(rows, columns, width, ("change", "effect"), _HIDDEN_FIRST, headers=headers)


def is_of_ended(fixes: FixList) -> bool:
    """Return whether pods that have ended are all that there is to report."""
    return bool(fixes.ended) and not fixes.fixes and not fixes.unfixed and not unmeasured(fixes)


def nothing_sentence(fixes: FixList) -> str:
    """Say that there is no fix."""
    if fixes.unfixed:
        is_static = any(unfixed.reason is NoFixReason.STATIC for unfixed in fixes.unfixed)
        return "no fix that the server could apply" if is_static else "no fix"
    why = others_first_text(fixes.others_first) or "no limit and no killer is near"
    return unknown_text(fixes) or f"nothing to fix: {why}"


def without_fix(fixes: FixList) -> Iterator[str]:
    """Say that there is no fix, and why for each death."""
    sentence = nothing_sentence(fixes)
    yield f"{sentence[:1].upper()}{sentence[1:]}."
    yield from unfixed_lines(fixes)


def unknown_text(fixes: FixList) -> str:
    """Say what is unknown about nodes, so that no fix can be searched for, or return ""."""
    return unmeasured(fixes) or next(chain(capacity_notes(fixes.states), fixes.problems), "")


def notes(fixes: FixList, most: int | None = None) -> Iterator[str]:
    """Yield what a table of at most `most` rows leaves out, and the deaths without a fix."""
    more = len(fixes.fixes) - (most or len(fixes.fixes))
    left_out = [count(more, "more fix", "more fixes")] if more > 0 else []
    left_out += [f"those of {count(fixes.further, 'more node')}"] if fixes.further else []
    if left_out:
        yield f"and {' and '.join(left_out)}, for later deaths: --all"
    shown = ((number, finding) for number, finding in fixes.refusals if number <= (most or number))
    yield from (f"{number}: {finding_line(finding)}" for number, finding in shown)
    if len({fix_object(fix) for fix in fixes.fixes}) == 1 and len(fixes.fixes[:most]) > 1:
        yield "; ".join(_choice(fixes, most))
    yield from far_above_usage((number, fix.times_peak) for number, fix in numbered(fixes)[:most])
    limited = [str(number) for number, fix in numbered(fixes)[:most] if fix.lowers_cpu_limit]
    if limited:
        yield f"with a CPU limit: {first_few(limited)}; {THROTTLES}"
    yield from unfixed_lines(fixes)
    unknown = unmeasured(fixes) if fixes.fixes or fixes.unfixed else ""
    yield from filter(None, [unknown])
    yield from () if is_of_ended(fixes) else ended_notes(fixes)
    yield from _conditions(dict.fromkeys(fix.death for fix in fixes.fixes[:most]))
    nothing = "" if fixes.fixes else nothing_sentence(fixes)
    yield from (note for note in basis_notes(fixes) if note != nothing)
    if fixes.kubelet is not None:
        yield f"{kubelet_sentence(fixes.kubelet)}: -o kubelet-config prints the settings"
        yield from kubelet_warnings(fixes.kubelet)


def _conditions(deaths: Iterable[NextDeath]) -> Iterator[str]:
    depending = [(death, condition) for death in deaths if (condition := death_condition(death))]
    for death, condition in depending[:MOST_ROWS]:
        yield f"{killer_words(death)}: {victim(death)}{condition}"
    if len(depending) > MOST_ROWS:
        yield f"{count(len(depending) - MOST_ROWS, 'more death')} may take another pod: see -o json"


def _choice(fixes: FixList, most: int | None) -> Iterator[str]:
    first, *others = numbered(fixes)[:most]
    death, is_refused = first.fix.death, first.number in dict(fixes.refusals)
    if first.fix.puts_off and first.fix.fits and not is_refused:
        aim = f"it delays the first death{' that has a fix' if first_unfixed(fixes) else ''}"
        yield f"apply 1: {'another pod dies in its place' if death.killer.is_node_wide else aim}"
    uses: dict[str, list[str]] = {}
    for number, fix in others:
        use = "for a full node, where others then die before it"
        if fix.death == death:
            use = "instead of 1, for the same death"
        elif death.killer.is_node_wide or not fix.death.killer.is_node_wide:
            use = "for a later death"
        uses.setdefault(use, []).append(str(number))
    yield from (f"{', '.join(numbers)}: {use}" for use, numbers in uses.items())


def no_kubelet_fix(model: NodeModel, missed: Kill | None) -> str:
    """Say why there are no settings for a kubelet that was, or may have been, too late for this kill."""
    if missed is None:
        node = model.setup.node
        text = f"nothing to change: the kubelet of {escape(node.name)} evicts before the kernel kills"
        if model.own_bytes is None:
            return f"{text}; how much the node itself uses, and so how much to reserve, is unknown"
        own = f", of which the node itself uses {binary(model.own_bytes)}" if model.own_bytes else ""
        return f"{text}, and reserves {binary(_reserved(node))}{own}"
    larger = "--growth SIZE finds a threshold for faster growth"
    if missed.diagnosis.killer is None:
        return (
            f"{subject(missed)} was killed ({when(missed)}), maybe by the kernel because the node was full:"
            f" kubectl qos kills says what would make it certain; if so, {larger}"
        )
    killed = f"the kernel killed {subject(missed)} ({when(missed)}) before the kubelet evicted"
    return f"{killed}: memory grew too fast for the kubelet's threshold; {larger}"


def _reserved(node: Node) -> int:
    capacity = node.memory_capacity_bytes or 0
    return capacity - (node.allocatable_memory_bytes or capacity)


def kubelet_sentence(fix: KubeletFix) -> str:
    """Return which kubelet settings have to change, what for, and their cost."""
    old, new = fix.before.kubelet, fix.setup.kubelet
    aims, changes = [], []
    if "systemReserved" in fix.fields:
        aims.append("to reserve what the node itself uses")
        was = binary(_reserved(fix.before.node))
        changes.append(f"{was} {ARROW} {binary(fix.reserved_bytes)} reserved")
    if "evictionHard" in fix.fields:
        aims.append("to evict before the kernel kills")
        values = (kubelet.eviction_hard.get(MEMORY_AVAILABLE, NONE) for kubelet in (old, new))
        least = "" if fix.least_bytes == fix.threshold_bytes else f" (at least {binary(fix.least_bytes)})"
        changes.append(f"evictionHard {f' {ARROW} '.join(values)}{least}")
    missing = f", {binary(fix.missing_bytes)} less than is requested" if fix.missing_bytes else ""
    costs = f"allocatable memory -{binary(fix.cost_bytes)}{missing}"
    name = escape(fix.setup.node.name)
    return f"{' and '.join(aims)}, the kubelet of {name} needs {', '.join(changes)}; {costs}"


def kubelet_warnings(fix: KubeletFix) -> Iterator[str]:
    """Yield whom the kubelet evicts as soon as it has the settings, what to do before, and what they lack."""
    if fix.evicted_now:
        name, left, of = escape(fix.setup.node.name), fix.available.available_bytes, of_limit(fix.available)
        available = f"{binary(max(left, 0))}{of} is available, less than {binary(fix.threshold_bytes)}"
        if left < 0 and of:
            available = "pods use more than the kubepods limit would be, so the kernel may kill before that"
        pods, victims = count(len(fix.evicted_now), "pod"), [full_name(*key) for key in fix.evicted_now]
        yield (
            f"applied now, these settings make the kubelet evict {pods} at once ({first_few(victims)}):"
            f" {available}"
        )
        missing = mebibytes(fix.threshold_bytes - left + (1 << 20) - 1)
        smaller = ""
        if left > 0 and "evictionHard" in fix.fields:
            growth = binary(left // EVICTING.delay_seconds)
            smaller = f"; a threshold of {binary(left)} evicts nobody now, but only growth below {growth} per"
            smaller += " second is slow enough for it"
        yield f"first drain {name}, or free {missing} there{smaller}"
    if fix.soft_bytes and "evictionSoft" not in fix.fields:
        soft, room = binary(fix.soft_bytes), binary(fix.soft_room_bytes)
        yield (
            f"evictionSoft is left out: for this growth it would be {soft}, but what pods use or request"
            f" leaves only {room}"
        )


def kubelet_notes(fix: KubeletFix) -> Iterator[str]:
    """Yield what the settings are based on."""
    yield kubelet_sentence(fix)
    yield from kubelet_warnings(fix)
    if fix.growth_bytes:
        grown = binary(fix.growth_bytes * EVICTING.delay_seconds)
        yield f"{KUBELET_CHECKS}; in that time memory grows by {grown} (--growth)"
    else:
        most = binary(fix.threshold_bytes // EVICTING.delay_seconds)
        yield f"{KUBELET_CHECKS}: enough for growth below {most} per second (--growth)"
    yield "kernelMemcgNotification (cgroup v1 only) makes it notice earlier, but it evicts one pod at a time"
    if "systemReserved" in fix.fields:
        used = binary(fix.own_bytes)
        sample = f"the node itself uses {used} in one sample, the pause containers of its pods included"
        yield f"{sample}; {RESERVE_PERCENT} percent of that are reserved, rounded up"
    if "evictionSoft" in fix.fields:
        yield "at the soft threshold pods get evictionMaxPodGracePeriod seconds to end: 0 unless it is set"
    if "evictionHard" in fix.fields:
        name, value = escape(fix.setup.node.name), fix.setup.kubelet.eviction_hard[MEMORY_AVAILABLE]
        assumed = f"--assume 'evictionHard={MEMORY_AVAILABLE}<{value}'"
        yield f"kubectl qos compare node/{name} {assumed} shows when pods would die then"
    if fix.before.kubelet.origin("eviction_hard") is Origin.ASSUMED:
        yield "the kubelet's configuration is assumed: keep its other settings"
    if fix.missing_bytes:
        yield "pods that do not fit any more are rejected when the kubelet restarts"
