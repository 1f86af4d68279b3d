"""The effects of a change in sections: of edits of a pod, or of other settings of a node."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import structs

from kubectl_qos.edit.compare import Comparison
from kubectl_qos.edit.edits import Edit, Side, as_flags, current_value
from kubectl_qos.edit.findings import Finding, FindingCode
from kubectl_qos.edit.preview import Effects, FileChange, NumberChange, Preview, StrategyKind, When
from kubectl_qos.edit.status import unchanged_pods_note
from kubectl_qos.edit.strategy import loop_obstacles, replaced_pods
from kubectl_qos.errors import first_few
from kubectl_qos.k8s.allocation import is_resizing
from kubectl_qos.k8s.kinds import STATIC, find_workload
from kubectl_qos.k8s.kubelet import MEMORY_AVAILABLE
from kubectl_qos.k8s.node_overrides import NodeOverride
from kubectl_qos.k8s.objects import CPU, Json, Pod
from kubectl_qos.k8s.releases import Change, Gate
from kubectl_qos.present.format import (
    NONE,
    UNKNOWN,
    binary,
    count,
    cpu,
    escape,
    full_name,
    quantity_text,
    short_path,
)
from kubectl_qos.present.killers import killer_sentence
from kubectl_qos.present.output import ARROW, Section, ValueChange, cell_table, sentences
from kubectl_qos.present.reasons import resize_sentence, sentence
from kubectl_qos.qos.eviction import evictable_capacity, schedulable_bytes
from kubectl_qos.qos.qos_class import SPEC_RESOURCES, QosClass
from kubectl_qos.qos.resize import ResizeStatus


def change_section(
    pod: Pod, edits: Sequence[Edit], already: str = "", *, with_flags: bool = False
) -> Section:
    """Show the values that change, and with `with_flags` also as flags.

    `already` names the goal that the pod has reached without edits.
    """
    if not edits:
        unfinished = f", but {resize_sentence(pod)}" if is_resizing(pod) else ""
        why = f"it {already}" if already else "requests and limits already have these values"
        return Section("Change", f"none: {why}{unfinished}")
    changes = []
    for edit in edits:
        before, after = quantity_text(current_value(pod, *edit.target)), quantity_text(edit.quantity)
        changes.append(ValueChange(value_name(*edit.target), before, after))
    flags = [f"as flags: {escape(line)}" for line in as_flags(edits)] if with_flags else []
    return Section("Change", lines=sentences(*flags), changes=tuple(changes), changed=True)


def value_name(owner: str, side: str, resource: str) -> str:
    """Return the name of a value: `app requests.memory`."""
    return f"{escape(owner) or SPEC_RESOURCES} {side}.{escape(resource)}"


def edits_text(pod: Pod, edits: Sequence[Edit], minimal: Sequence[Edit] = ()) -> str:
    """Return values before and after in one line; `minimal` are the smallest edits with the same effect."""
    least = {edit.target: edit.quantity for edit in minimal}
    names: dict[str, list[str]] = {}
    for edit in edits:
        old, smallest = current_value(pod, *edit.target), least.get(edit.target, edit.quantity)
        values = f"{quantity_text(old)} {ARROW} {quantity_text(edit.quantity)}"
        values += "" if smallest == edit.quantity else f" (at least {quantity_text(smallest)})"
        names.setdefault(values, []).append(value_name(*edit.target))
    return ", ".join(f"{' and '.join(changed)} {values}" for values, changed in names.items())


_STOPS: Final = {
    FindingCode.NEW_PODS_REFUSED: "would accept this, and refuse its pods",
    FindingCode.ROLLOUT_STALLS: "would accept this, and the rollout would stall",
}


def preview_sections(
    preview: Preview,
    effects: Effects | None = None,
    workload: Json | None = None,
    findings: Iterable[Finding] = (),
) -> tuple[Section, ...]:
    """Return class, OOM, rank, cgroup files, room on the node, the server's answer and how to apply.

    If the preview is of a workload, `effects` are those on one of its pods, `workload` is its object.
    `findings` are those of related objects, none if these were not read.
    """
    sections = _effect_sections(effects or preview.effects)
    return (*sections, *apply_sections(preview, workload, findings))


def apply_sections(
    preview: Preview, workload: Json | None = None, findings: Iterable[Finding] = ()
) -> tuple[Section, ...]:
    """Return room on the node, the server's answer and how to apply the change."""
    refusals = sentences(*(escape(str(refusal)) for refusal in preview.refusals))
    stops = [finding for finding in findings if finding.stops and not finding.in_preview]
    answer = "valid; a dry run also checks the quota"
    if refusals:
        answer = "would refuse these values"
    elif stops:
        answer = _STOPS.get(stops[0].code, "would refuse this")
    server = Section("Server", answer, refusals, warns=bool(refusals))
    return (*_room(preview), server, _how_to_apply(preview, workload or {}))


def _effect_sections(effects: Effects) -> tuple[Section, ...]:
    before, after = effects.eviction_ranks
    answer = f"{_moved(before, after)} {moment(effects.when)}"
    eviction = [Section("Eviction rank", answer, changed=True)] if before != after else []
    if effects.after.setup.node.is_windows:
        oom = Section("OOM", "none", sentences(killer_sentence(effects.after.setup)))
        return (_class(effects), oom, *eviction)
    return (_class(effects), _oom(effects), _rank(effects), *eviction, *cgroup_sections(effects))


_MOMENTS: Final = {
    When.NOW: "now",
    When.RESTART: "when it restarts",
    When.RETRIED: "once the kubelet resizes it",
    When.RECREATED: "when recreated",
    When.NEVER: "never on this node",
}


def moment(when: When, names: Sequence[str] = (), first: When = When.NOW) -> str:
    """Say when an effect takes place: `now`, or `when app restarts` with the `names` of containers.

    `first` is the step before which a restart does not count.
    """
    if when is not When.RESTART or not names:
        return _MOMENTS[when]
    start = f"{_MOMENTS[first]} and" if first is When.RETRIED else "when"
    return f"{start} {' and '.join(map(escape, names))} {'restarts' if len(names) == 1 else 'restart'}"


def effect_moment(effects: Effects, when: When) -> str:
    """Say when an effect on a pod takes place, with the containers that have to restart first."""
    return moment(when, effects.restarting_later, effects.when)


def _class(effects: Effects) -> Section:
    before, after = effects.before.qos_class, effects.after.qos_class
    is_stored = effects.after.computed_class is not after
    lines = sentences(sentence(effects.after.class_reason)) if is_stored else ()
    return Section("Class", class_change(effects), lines, changed=before is not after)


def class_change(effects: Effects) -> str:
    """Return `Burstable → Guaranteed when recreated`, or `Burstable, stays`."""
    before, after = effects.before.qos_class, effects.after.qos_class
    if before is after:
        return f"{before.value}, stays"
    return f"{before.value} {ARROW} {after.value} {moment(effects.when)}"


def _oom(effects: Effects) -> Section:
    changes = []
    for container in effects.containers:
        name, when = escape(container.name), moment(container.when, [container.name], effects.when)
        changes.append((_number_change(f"{name} oom_score_adj", container.oom_score_adj), when))
        changes.append((_number_change(f"{name} oom_score", container.oom_score), when))
    return _changes_section("OOM", "", changes)


def _changes_section(title: str, answer: str, changes: Iterable[tuple[ValueChange, str]]) -> Section:
    """Show changes and when they take place: in the heading if all at once, otherwise after each."""
    changes = list(changes)
    moments = {when for change, when in changes if change.changed}
    values = [change for change, _ in changes]
    if len(moments) > 1:
        deltas = [", ".join(filter(None, [change.delta, when])) for change, when in changes]
        values = [
            structs.replace(change, delta=delta) for (change, _), delta in zip(changes, deltas, strict=True)
        ]
    answer = " ".join(filter(None, [answer, *(moments if len(moments) == 1 else ())]))
    return Section(title, answer, changes=tuple(values), changed=bool(moments))


def _number_change(label: str, change: NumberChange) -> ValueChange:
    before, after = change.before, change.after
    delta = f"{after - before:+d}" if before is not None and after is not None and after != before else ""
    old, new = (UNKNOWN if value is None else str(value) for value in (before, after))
    return ValueChange(label, old, new, delta)


def _rank(effects: Effects) -> Section:
    node = effects.after.setup.node.name
    title = f"Kill rank on {escape(node)}" if node else "Kill rank"
    if effects.rank_before is None or effects.rank_after is None:
        return Section(title, UNKNOWN)
    then = effect_moment(effects, effects.rank_when)
    lines = [
        f"killed {when} it {then}: {first_few([full_name(*key) for key in keys], most=4)}"
        for when, keys in zip(("before", "after"), effects.passing, strict=True)
        if keys
    ]
    changed = effects.rank_before != effects.rank_after
    return Section(title, rank_change(effects), sentences(*lines), changed=changed)


def rank_change(effects: Effects, where: str = "") -> str:
    """Return `1 of 17, stays`, `1 → 3 of 17 now`, or `1 of 17 now; 3 when app restarts`."""
    before, now, after = effects.rank_before, effects.rank_now, effects.rank_after
    if before is None or after is None:
        return UNKNOWN
    if before == now == after:
        return f"{before} of {effects.ranked}{where}, stays"
    today = f"{_moved(before, now)} of {effects.ranked}{where} now"
    return today if now == after else f"{today}; {after} {effect_moment(effects, effects.rank_when)}"


def goal_reached(preview: Preview) -> When:
    """Return when a pod gets the requested kill rank: never if a server refuses the change."""
    if preview.refusals:
        return When.NEVER
    return preview.effects.rank_when if preview.before.pod.kind == "Pod" else When.RECREATED


def goal_section(preview: Preview, limits: Iterable[str] = ()) -> Section:
    """Say when a requested kill rank is reached, how to reach it at once, and what `limits` its use."""
    when = goal_reached(preview)
    if when is When.NEVER:
        return Section("Goal", "not reached", warns=True)
    answer = f"reached on a full node {effect_moment(preview.effects, when)}"
    if when is not When.RESTART:
        return Section("Goal", answer, sentences(*limits))
    owner = find_workload(preview.before.pod)
    how = "recreate the pod"
    if owner.kind in _ROLLED_OUT:
        how = f"change the template of {owner.kind} {escape(owner.name)} (--by template)"
    elif owner.kind != "Pod":
        how = f"change its owner, {escape(owner.kind)} {escape(owner.name)}, too, then recreate the pod"
    return Section("Goal", answer, sentences(f"to reach it now: {how}", *limits), warns=True)


_ROLLED_OUT: Final = {"Deployment", "StatefulSet", "DaemonSet"}


def cgroup_sections(effects: Effects) -> Iterator[Section]:
    """Yield the changed files of the pod and of each container, and moves in the tree."""
    old, new = effects.before.cgroup.path, effects.after.cgroup.path
    if old != new:
        answer = f"moves in the tree {moment(effects.when)}"
        yield Section("cgroup", answer, sentences(f"from {old}", f"to {new}"), changed=True)
    elif effects.changes_path:
        moved = [
            f"{escape(after.name)}: from {_below(old, before.process_cgroup.path)}"
            f" to {_below(new, after.process_cgroup.path)}"
            for before, after in zip(effects.before.containers, effects.after.containers, strict=True)
            if before.process_cgroup.path != after.process_cgroup.path
        ]
        yield Section("cgroup", "the containers' processes move", sentences(*moved), changed=True)
    for container, path in dict.fromkeys((file.container, file.path) for file in effects.files):
        files = [file for file in effects.files if (file.container, file.path) == (container, path)]
        owner = f"container {escape(container)}" if container else "pod"
        names = [container] if container else []
        changes = [(_file_change(file), moment(file.when, names)) for file in files]
        yield _changes_section(f"cgroup of {owner}", f"{short_path(files[0].path)}/", changes)
    same = same_effect_sentence(effects.same_effect)
    if same or (not effects.changes_path and not effects.files):
        yield Section("cgroup", same or "no file changes")


def same_effect_sentence(files: Iterable[FileChange]) -> str:
    """Name the files that change without effect, because the kernel's default is the same; or ""."""
    names = ", ".join(sorted({file.file for file in files if file.same_effect}))
    return f"the kernel's default is written to {names}, which changes nothing" if names else ""


def _below(pod_path: str, path: str) -> str:
    return "/".join(map(short_path, path.removeprefix(f"{pod_path}/").split("/")))


def _file_change(file: FileChange) -> ValueChange:
    before, after = ("not written" if value is None else value for value in (file.before, file.after))
    return ValueChange(file.file, before, after)


def _room(preview: Preview) -> Iterator[Section]:
    lines, has_room = [], all(fit.fits for fit in preview.node_fit)
    for fit in preview.node_fit:
        amount, fits = cpu if fit.resource == CPU else binary, "fits" if fit.fits else "does not fit"
        of = f"{amount(fit.needed)} of {amount(fit.free)} free without it"
        lines.append(f"{fit.resource}: requests {of}: {fits}")
    if lines:
        answer = "the node has room" if has_room else "the node has no room"
        title = f"Room on {escape(preview.after.setup.node.name)}"
        yield Section(title, answer, sentences(*lines), warns=not has_room)


def _how_to_apply(preview: Preview, workload: Json) -> Section:
    title, kind = "How to apply", preview.strategy_kind
    if not preview.edits:
        return Section(title, "nothing to apply yet")
    if preview.refusals:
        return Section(title, "impossible while the server refuses it", warns=True)
    lines: list[str] = []
    if kind is StrategyKind.IN_PLACE:
        lines += _in_place(preview)
    elif kind is StrategyKind.RECREATE:
        refusals = (escape(str(refusal)) for refusal in preview.resize_refusals)
        lines += [f"in place, the server would answer: {refusal}" for refusal in refusals]
        lines += ["not in place: the pod has ended"] if preview.before.pod.is_terminal else []
        lines += _stays_guaranteed(preview)
        lines += [f"not in place: {escape(obstacle)}" for obstacle in loop_obstacles(preview)]
    elif kind is StrategyKind.TEMPLATE:
        template = preview.before.pod.kind, workload
        if replaced_pods(*template) != 0:
            lines.append("running pods keep their values until the rollout replaces them")
        lines += filter(None, [unchanged_pods_note(*template)])
    else:
        lines.append(never_sentence(preview))
    lines += _owner(preview)
    warns = kind is StrategyKind.NEVER or bool(preview.endless_loops)
    warns = warns or preview.outcome.answer is not ResizeStatus.ACTUATED
    return Section(title, kind.value, sentences(*lines), warns=warns)


def _stays_guaranteed(preview: Preview) -> Iterator[str]:
    """Yield what else to set so that a Guaranteed pod keeps its class, and can be resized in place."""
    effects, edits = preview.effects, preview.edits
    if effects.before.qos_class is not QosClass.GUARANTEED or any(edit.quantity is None for edit in edits):
        return
    both = [structs.replace(edit, side=side) for edit in edits for side in Side]
    targets = {edit.target for edit in edits}
    missing = [edit for edit in both if edit.target not in targets]
    if effects.after.qos_class is not QosClass.GUARANTEED and missing:
        flags = escape(" ".join(as_flags(missing)))
        yield f"to stay Guaranteed and change in place, also set {flags}"


OF_FILE: Final = "a static pod comes from a file on its node: change that file"


def never_sentence(preview: Preview) -> str:
    """Say why an object cannot be changed, and what to do instead."""
    if preview.before.pod.kind == "Job":
        may_suspend = preview.before.setup.release.enabled(Gate.MUTABLE_SUSPENDED_JOBS)
        remedy = "suspend it first, or " if may_suspend else ""
        return f"the pod template of a Job is immutable: {remedy}delete and recreate the Job"
    return OF_FILE


def _in_place(preview: Preview) -> Iterator[str]:
    for name in preview.restarts:
        yield f"{escape(name)} restarts, by its resizePolicy"
    if not preview.is_carried_out:
        yield f"the kubelet answers {preview.outcome.answer.value}: {escape(preview.outcome.message)}"
    if preview.effects.restarting_later:
        yield later_sentence(preview.effects)
        yield (
            "a recreated pod has the new one at once; so does a container with resizePolicy RestartContainer"
        )


def later_sentence(effects: Effects) -> str:
    """Say what waits for a restart, or return ""."""
    names = effects.restarting_later
    keeps = "keeps its" if len(names) == 1 else "keep their"
    return f"{' and '.join(map(escape, names))} {keeps} oom_score_adj until a restart" if names else ""


def _owner(preview: Preview) -> Iterator[str]:
    kind, _, name = find_workload(preview.before.pod)
    if kind not in {preview.before.pod.kind, STATIC}:
        owner = f"{escape(kind.lower())}/{escape(name)}"
        but = ": a job's template is immutable" if kind == "Job" else ", unless its template changes too"
        yield f"new pods of {owner} get the old values{but}"


def comparison_subject(comparison: Comparison, overrides: Iterable[NodeOverride]) -> str:
    """Name the node and the difference: `node worker-2, kubelet 1.34 → 1.36, cgroupVersion=1`."""
    before, after = comparison.before.release, comparison.after.release
    words = [
        f"node {escape(comparison.before.node.name)}"
        if comparison.before.node.name
        else "pods without a node"
    ]
    words.append(f"kubelet {before}" if str(before) == str(after) else f"kubelet {before} {ARROW} {after}")
    return ", ".join([*words, *(escape(str(override)) for override in overrides)])


def kubelet_sections(comparison: Comparison) -> tuple[Section, ...]:
    """Say why the new kubelet would not start; who kills on the node and when it evicts, if that changes."""
    refusals = kubelet_refusals(comparison)
    sections = [Section("Kubelet", "would not start", sentences(*refusals), warns=True)] if refusals else []
    setups = comparison.before, comparison.after
    old, new = map(killer_sentence, setups)
    if old != new:
        answer = "the kernel kills by oom_score" if not new else ""
        sections.append(Section("Who kills", answer, sentences(*filter(None, [new])), changed=True))
    thresholds = tuple(
        ValueChange(label, *(getattr(setup.kubelet, name).get(MEMORY_AVAILABLE, "never") for setup in setups))
        for label, name in (("below", "eviction_hard"), ("soft, below", "eviction_soft"))
    )
    capacities = (evictable_capacity(setup) for setup in setups)
    counted = ValueChange("of", *(UNKNOWN if size is None else binary(size) for size in capacities))
    is_aware = {setup.release.enabled(Gate.HUGEPAGE_AWARE_EVICTION) for setup in setups}
    is_moved = counted.changed and len(is_aware) > 1
    without = sentences(HUGEPAGES_LEFT_OUT) if is_moved else ()
    changes = (*thresholds, *([counted] if is_moved else []))
    if any(change.changed for change in changes):
        title = f"Eviction by {MEMORY_AVAILABLE}"
        sections.append(Section(title, "", without, changes=changes, changed=True))
    allocatable = [schedulable_bytes(setup.node) for setup in setups]
    if None not in allocatable and len({*allocatable}) > 1:
        change = ValueChange("for pods", *(binary(size or 0) for size in allocatable))
        missing = missing_bytes(comparison)
        text = f"{binary(missing)} less than the pods request: some are rejected when the kubelet restarts"
        short = sentences(text) if missing else ()
        sections.append(
            Section("Allocatable memory", "", short, changes=(change,), changed=True, warns=bool(missing))
        )
    return tuple(sections)


def missing_bytes(comparison: Comparison) -> int:
    """Return how much of the pods' memory requests fits before the change, and no longer after it."""
    allocatable = schedulable_bytes(comparison.after.node)
    pods = comparison.pods[0].ranking_after.pods if comparison.pods else ()
    requested = sum(row.profile.request_bytes for row in pods if not row.pod.is_terminal)
    was_short = requested > (schedulable_bytes(comparison.before.node) or 0)
    return 0 if allocatable is None or was_short else max(requested - allocatable, 0)


HUGEPAGES_LEFT_OUT: Final = (
    "from 1.37 on the kubelet does not count hugepages as available memory, so it evicts before the rest is"
    " used up"
)
_FILE_NOTES: Final = {
    "memory.oom.group": (
        f"memory.oom.group: from 1.{Change.MEMORY_OOM_GROUP.since} on, with cgroup v2, the kernel kills all"
        f" processes of a container together; from 1.{Change.SINGLE_PROCESS_OOM_KILL.since} on the kubelet"
        " setting singleProcessOOMKill: true turns that off"
    ),
    "memory.high": (
        "memory.high: above it the kernel throttles the container instead of killing; before Linux 5.9 its"
        " processes may hang"
    ),
}


def file_notes(comparisons: Iterable[Comparison]) -> Iterator[str]:
    """Yield what files do that change, and how to turn that off."""
    pods = (effects for comparison in comparisons for effects in comparison.pods)
    files = {file.file for effects in pods for file in effects.files}
    yield from (note for file, note in _FILE_NOTES.items() if file in files)


def kubelet_refusals(comparison: Comparison) -> list[str]:
    """Return why the new kubelet would not start."""
    refusals = list(map(escape, comparison.refusals))
    if comparison.refuses_cgroup_v1:
        refusals.append("cgroup v1 is refused from 1.35 on, unless failCgroupV1 is set to false")
    return refusals


def pod_sections(effects: Effects) -> tuple[Section, ...]:
    """Return the effects on one pod."""
    if effects.before.pod.is_terminal:
        return (Section("The pod stays as it is", "it has ended, and has no processes"),)
    if not effects.changes_anything:
        same = sentences(*filter(None, [same_effect_sentence(effects.same_effect)]))
        return (Section("The pod stays as it is", "class, scores, rank and cgroup files", same),)
    return _effect_sections(effects)


def node_sections(comparison: Comparison) -> Iterator[Section]:
    """Yield the changed cgroups above the pods, a section for each directory."""
    files: dict[str, list[FileChange]] = {}
    for file in comparison.node_files:
        if not file.same_effect:
            files.setdefault(file.path, []).append(file)
    for path, changed in files.items():
        yield Section(f"cgroup {escape(path)}", changes=tuple(map(_file_change, changed)), changed=True)
    same = same_effect_sentence(comparison.node_files)
    if same:
        yield Section("cgroups above the pods", same)


def changed_cells(pods: Iterable[Effects]) -> Iterator[list[str]]:
    """Yield the cells of each pod of a node with any effect, in today's kill order."""

    def rank(effects: Effects) -> tuple[bool, int]:
        return effects.rank_before is None, effects.rank_before or 0

    return (_cells(effects) for effects in sorted(pods, key=rank) if effects.changes_anything)


def changed_kinds(effects: Effects) -> set[str]:
    """Return what changes for a pod: its class, scores, rank, path, and the names of its cgroup files."""
    others = {
        "path": effects.changes_path,
        "scores": any(container.changed for container in effects.containers),
        "rank": effects.rank_before != effects.rank_after,
        "class": effects.before.qos_class is not effects.after.qos_class,
    }
    return {file.file for file in effects.files} | {kind for kind, changes in others.items() if changes}


def comparison_answer(
    pods: int, changed: int, kinds: Counter[str], *, refusing: int, short: int, moved: Mapping[str, int]
) -> str:
    """Say how many pods change and in what, the files last.

    `refusing` kubelets would not start, on `short` nodes the pods' requests no longer fit; `moved` counts
    nodes whose killers kill sooner, later, or others first.
    """
    where = [f"{how} on {count(nodes, 'node')}" for how, nodes in moved.items()]
    deaths = f"; next deaths: {', '.join(where)}" if where else ""
    refused = f"the kubelet would not start on {count(refusing, 'node')}; " if refusing else ""
    refused += f"the pods' requests no longer fit on {count(short, 'node')}; " if short else ""
    if not changed:
        stay = "stays as it is" if pods == 1 else "stay as they are"
        return f"{refused}{count(pods, 'pod')} {stay}: class, scores, rank and cgroup files{deaths}"
    ordered = sorted(kinds, key=lambda kind: ("." in kind, -kinds[kind], kind))
    what = ", ".join(f"{kind} ({kinds[kind]})" for kind in ordered[:_KINDS])
    more = f" and {len(ordered) - _KINDS} more" if len(ordered) > _KINDS else ""
    of = f"{refused}{changed} of {count(pods, 'pod')}"
    return f"{of} would change: {what}{more}{deaths}; compare pod/NAME has the values"


_KINDS: Final = 4


def comparison_table(changed: Sequence[Sequence[str]], width: int | None = None) -> Iterator[str]:
    """Yield a row for each changed pod: differences as `before → after`, other values unchanged."""
    headers = ("RANK", "NAMESPACE", "POD", "NODE", "QOS", "OOM_ADJ", "OOM_SCORE", "FILES", "PATH")
    return cell_table(changed, headers, width, hidden_first=("PATH", "FILES", "NODE", "QOS"))


def _cells(effects: Effects) -> list[str]:
    pod = effects.before.pod
    adj, score = _worst_scores(effects)
    return [
        _moved(effects.rank_before, effects.rank_after, "-"),
        escape(pod.namespace) or NONE,
        escape(pod.title),
        escape(pod.node_name) or NONE,
        _moved(effects.before.qos_class.value, effects.after.qos_class.value),
        adj,
        score,
        str(len(effects.files)),
        "moves" if effects.changes_path else "stays",
    ]


def _worst_scores(effects: Effects) -> tuple[str, str]:
    """Return oom_score_adj and oom_score of the container that dies first, or of one that changes."""
    rows = effects.row_before, effects.row_after
    before, after = (row.worst or max(row.containers, key=lambda score: score.adj or 0) for row in rows)
    other = next((container for container in effects.containers if container.changed), None)
    if (before.adj, before.oom_score) == (after.adj, after.oom_score) and other is not None:
        changes = other.oom_score_adj, other.oom_score
        adj, score = (_moved(change.before, change.after) for change in changes)
        return f"{escape(other.name)}: {adj}", f"{escape(other.name)}: {score}"
    old, new = (row.worst and row.worst.oom_score for row in rows)
    return _moved(before.adj, after.adj), _moved(old, new)


def _moved(before: object, after: object, unknown: str = UNKNOWN) -> str:
    old, new = (unknown if value is None else str(value) for value in (before, after))
    return old if old == new else f"{old} {ARROW} {new}"
