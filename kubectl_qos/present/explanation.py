"""One pod explained: sections for people, plain values for programs."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec
from msgspec import structs

from kubectl_qos.analysis.deaths import NodeDeaths, deaths_of_pod
from kubectl_qos.analysis.pod_facts import NO_COUNTS, PodFacts, pod_facts
from kubectl_qos.analysis.pod_table import PodRow, PodRows
from kubectl_qos.edit.edits import Edit, Side
from kubectl_qos.edit.preview import Effects
from kubectl_qos.edit.strategy import raised_while_running
from kubectl_qos.errors import first_few
from kubectl_qos.k8s.allocation import desired_pod, resize_condition
from kubectl_qos.k8s.kinds import find_workload
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.objects import CPU, MEMORY, Pod, PodStatus, all_containers
from kubectl_qos.k8s.quantity import ZERO, Quantity
from kubectl_qos.k8s.releases import Change, Gate, Release
from kubectl_qos.k8s.resources import eviction_request, is_sidecar
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.k8s.usage import MemoryParts, PodUsage, Pressure, Sampled, UsageOrigin, memory_psi
from kubectl_qos.k8s.validation import kubelet_config_errors
from kubectl_qos.present import reasons
from kubectl_qos.present.format import (
    NONE,
    binary,
    count,
    escape,
    full_name,
    psi_text,
    quantity_text,
    short_path,
)
from kubectl_qos.present.killers import WORDS, killer_sentence
from kubectl_qos.present.list_notes import killer_notes, pod_table_notes, profile_notes
from kubectl_qos.present.next_death import ITS_DEATH, NO_STATS, death_condition, dies_next
from kubectl_qos.present.output import ARROW, Line, Section, ValueChange, sentences, spaced_lines
from kubectl_qos.present.pod_columns import WITH_PSI
from kubectl_qos.present.restart_notes import loop_texts
from kubectl_qos.present.tree import is_noise
from kubectl_qos.qos.cgroup.values import MEMORY_SWAP_MAX, has_memory_qos
from kubectl_qos.qos.eviction import evicts_for_memory, lacks_stats
from kubectl_qos.qos.killers import daemon_on
from kubectl_qos.qos.killers.killer import Candidate
from kubectl_qos.qos.kills.report import KernelLog
from kubectl_qos.qos.oom_score import GUARANTEED_ADJ
from kubectl_qos.qos.prediction import CgroupPrediction, ContainerPrediction, Prediction
from kubectl_qos.qos.qos_class import QosClass, steps_by_class
from kubectl_qos.qos.ranking import UNKNOWN_BURSTABLE_ADJ, Basis, ContainerKind, has_processes
from kubectl_qos.qos.reason import Rule
from kubectl_qos.qos.resize import pinned, waiting_containers
from kubectl_qos.qos.restart import Restart, restart_after_kill

_NEAR: Final = 0.9
"""The fullness of a limit from which on tasks wait, or not, because of it."""


class Explanation(msgspec.Struct, frozen=True):
    """A pod explained: `subject` is the first line, `summary` its class and rank in a sentence.

    `formula` is its score with the numbers filled in, empty if one of them is unknown.
    """

    subject: str
    facts: PodFacts
    sections: tuple[Section, ...]
    summary: str
    formula: str


def explain_pod(  # noqa: PLR0913 - facts that a snapshot does not have
    pod: Pod,
    snapshot: Snapshot,
    now: datetime,
    sampled: Sampled | None = None,
    events: Mapping[str, Mapping[str, int]] = NO_COUNTS,
    logs: Sequence[KernelLog] = (),
    neighbour: PodFacts | None = None,
) -> Explanation:
    """Explain a pod of a snapshot, with its rank on its node; `logs` say how it died before.

    The facts of a `neighbour` on its node, in this snapshot, save time.
    """
    facts = pod_facts(pod, snapshot, sampled, events, neighbour)
    deaths = deaths_of_pod(facts.state, pod)
    prediction, row, rows, replicas = facts.prediction, facts.row, facts.rows, facts.replicas
    history = None
    if pod.status != PodStatus():  # a manifest has no past
        from kubectl_qos.present.pod_history import history_section

        history = history_section(pod, facts, snapshot, now, logs)
    used = facts.usage.of(row.worst) if row is not None and facts.usage is not None else None
    formula = ""
    if row is not None and row.score is not None and row.adj is not None and used is not None:
        formula = reasons.score_formula(used, row.adj, prediction.setup.node)
    starts = () if replicas else tuple(loop_texts(pod, snapshot.usage, prediction.setup))
    sections = (
        _dies_next(deaths, facts.usage, events, starts),
        _class(prediction),
        _oom(facts, deaths, formula),
        _cgroup(prediction),
        _swap(prediction, facts.usage),
        _eviction(facts),
        _memory(facts),
        _pressure(facts.pressure, facts.usage),
        _resize(prediction, facts.resize),
        history,
        _assumed(prediction, rows, snapshot),
    )
    subject = reasons.pod_subject(prediction)
    if replicas:
        nodes = first_few([*map(escape, facts.nodes)])
        subject += f", the template of {count(len(replicas), 'pod')} on {nodes}"
    summary = next(reasons.why_lines(prediction, row, rows)) if row is not None else ""
    return Explanation(subject, facts, tuple(filter(None, sections)), summary, formula)


def with_fix(explanation: Explanation, snapshot: Snapshot) -> Explanation:
    """Add the fix for the pod's first death, or why there is none; this searches, which takes time."""
    first, *others = explanation.sections
    pod = explanation.facts.prediction.pod
    if first.title != ITS_DEATH:
        return explanation
    text = fix_text(pod, snapshot, first.answer)
    first = structs.replace(first, lines=(Line(f"fix: {text}"), *first.lines)) if text else first
    return structs.replace(explanation, sections=(first, *others))


def fix_text(pod: Pod, snapshot: Snapshot, shown: str = "") -> str:
    """Return the fix for a pod's first death, or why it has none; the reader sees the `shown` death."""
    from kubectl_qos.analysis.fix_list import fixes_for_pods
    from kubectl_qos.present.fix_sentences import first_fix_text

    return first_fix_text(fixes_for_pods(snapshot, [pod.key]), shown)


def text_lines(explanation: Explanation) -> Iterable[str]:
    """Yield the explanation as plain text."""
    yield explanation.subject
    yield from spaced_lines(explanation.sections)


def _dies_next(
    deaths: NodeDeaths | None,
    usage: PodUsage | None,
    events: Mapping[str, Mapping[str, int]],
    starts: Sequence[str],
) -> Section | None:
    """Return the section on a pod's deaths, with signs of pressure at the limit that ends it first.

    `starts` are sentences about containers that start again with a limit.
    """
    section = dies_next(deaths)
    first = next(iter(deaths.deaths if deaths is not None else ()), None)
    if first is None and starts:
        return Section(ITS_DEATH, starts[0], sentences(*starts[1:]))
    if section is None or first is None or usage is None or not first.limit_bytes:
        return section
    used = usage.of(first.container) if first.is_own else None
    waits = memory_psi(used.pressure if used is not None else usage.details.pressure).avg60
    lines, is_near = [], first.fullness >= _NEAR
    stalls = next(reasons.stalls(waits), "")
    if stalls:
        lines.append(f"{stalls}: the kernel already has to reclaim" if is_near else stalls)
    elif waits is not None and is_near:
        lines.append(
            "tasks hardly waited for memory in the last minute (PSI): the kernel does not have to reclaim yet"
        )
    reached = events.get(first.container, {}).get("max", 0) if first.is_own else 0
    if reached:
        lines.append(f"it has reached this limit {count(reached, 'time')} since it started (memory.events)")
    return structs.replace(section, lines=(*map(Line, lines), *section.lines))


def _class(prediction: Prediction) -> Section:
    qos, release = prediction.qos_class, prediction.setup.release
    reason, texts = prediction.class_reason, []
    if reason.rule is Rule.CLASS_STORED and prediction.computed_class is not qos:
        texts.append(reasons.sentence(reason))
    texts.append(reasons.sentence(reason.children[0] if reason.rule is Rule.CLASS_STORED else reason))
    texts += reasons.class_lacks(reason) if qos is not QosClass.GUARANTEED else []
    texts.append(escape(prediction.pod.annotations.limit_ranger or ""))
    lines = [*sentences(*filter(None, texts))]
    for target, steps in steps_by_class(desired_pod(prediction.pod), release).items():
        if steps:
            lines.append(Line(f"to become {target.value}:"))
            lines += [Line(reasons.step_sentence(step), depth=1) for step in steps]
    return Section("Class", reasons.class_sentence(prediction), tuple(lines))


def _oom(facts: PodFacts, on_node: NodeDeaths | None, formula: str) -> Section:
    prediction, row, rows = facts.prediction, facts.row, facts.rows
    who_kills = sentences(*filter(None, [killer_sentence(prediction.setup)]))
    if prediction.setup.node.is_windows:
        return Section("OOM", "none", who_kills)
    lines = [_container_line(container) for container in prediction.containers]
    lines += _restarts(prediction)
    if prediction.node_critical:
        lines.append(Line("system-node-critical is the only priority class that affects the kernel's order"))
    lines += [
        Line(f"the scheduler says: {escape(condition.message)}")
        for condition in prediction.pod.status.conditions or ()
        if condition.is_unscheduled and condition.message
    ]
    if row is None:
        ranks = _ranks(facts.replicas, rows, lambda row: row.rank) if facts.replicas else ""
        return Section("OOM", ranks or reasons.NOT_SCHEDULED, (*lines, *who_kills))
    node = rows.nodes[row.node]
    if formula:
        lines.append(Line(f"{escape(row.worst)}  oom_score {row.score}", formula))
    if row.rank is not None:
        if row.is_next_victim:
            by_rank = (death for death in on_node.deaths if death.killer.has_ranks) if on_node else ()
            first = next((death for death in by_rank if death.rival is not None and not death.before), None)
            lines.append(Line(f"{reasons.next_victim(tied=row.tied)}{death_condition(first)}"))
        named = [
            (other.rank, _name(other) if other.score is None else f"{_name(other)} ({other.score})")
            for other in node.rows
            if other.rank is not None
        ]
        lines += _neighbours("killed", row.rank, named)
        if node.basis is Basis.ADJ:
            lines.append(Line("memory usage is unknown: the rank is by oom_score_adj alone"))
        if text := reasons.cache_text(facts.usage, row.worst):
            lines.append(Line(text))
    lines += _daemon_lines(row, rows, prediction.setup)
    return Section("OOM", reasons.rank_sentence(row, node), (*lines, *who_kills))


def _ranks(pod_rows: Sequence[PodRow], rows: PodRows, rank_of: Callable[[PodRow], int | None]) -> str:
    """Return the ranks of a workload's pods, such as `ranks 1, 5 of 17 on worker-2`."""
    texts = []
    for name in sorted({row.node for row in pod_rows}):
        ranks = sorted(filter(None, (rank_of(row) for row in pod_rows if row.node == name)))
        total = sum(rank_of(row) is not None for row in rows.nodes[name].rows)
        if ranks:
            label = "rank" if len(ranks) == 1 else "ranks"
            texts.append(f"{label} {', '.join(map(str, ranks))} of {total} on {escape(name)}")
    return first_few(texts) or "rank unknown"


def _daemon_lines(row: PodRow, rows: PodRows, setup: NodeSetup) -> Iterable[Line]:
    """Yield the pod's place in the order of the node's daemon, if that daemon has its own order."""
    pods = [
        Candidate(pod.key[:2], pod.qos, pod.limit is not None, pod.memory)
        for pod in rows.rows
        if pod.node == row.node and not pod.ended
    ]
    daemon = daemon_on(setup)
    order = daemon.pod_order(pods, setup) if daemon is not None else None
    if daemon is None or order is None or row.ended:
        return
    key = row.key[:2]
    place = f"rank {order.index(key) + 1} of {len(order)}" if key in order else "never killed"
    yield Line(f"by {WORDS[daemon.id].name}: {place}")


def _restarts(prediction: Prediction) -> Iterable[Line]:
    pod, release = prediction.pod, prediction.setup.release
    for container in prediction.containers:
        restart = restart_after_kill(pod, container.container, container.kind, release)
        rules = container.container.restart_policy_rules
        if rules or restart is not Restart.CONTAINER:
            why = "restartPolicyRules, exit code 137" if rules else ""
            yield Line(f"once killed, {escape(container.name)} {restart.value}", why)


def _container_line(container: ContainerPrediction) -> Line:
    name = escape(container.name)
    if container.kind is not ContainerKind.APP:
        name += f" ({container.kind.value})"
    reason = container.oom_score_adj_reason
    if reason is not None:
        return Line(f"{name}  adj {container.oom_score_adj}", reasons.formula(reason))
    if container.oom_score_adj_range is None:
        return Line(name)
    low, high = container.oom_score_adj_range
    unknown = container.oom_score_adj_range == UNKNOWN_BURSTABLE_ADJ
    capacity = "capacity unknown" if unknown else "by the node"
    return Line(f"{name}  adj {low}..{high}", f"{reasons.adj_formula()}, {capacity}")


def _neighbours(ended: str, rank: int, named: Iterable[tuple[int, str]]) -> Iterable[Line]:
    ordered = sorted(named, key=lambda place: place[0])
    before = [name for place, name in ordered if place < rank]
    after = [name for place, name in ordered if place > rank]
    if before:
        yield Line(f"{ended} before it: {first_few(before)}")
    if after:
        yield Line(f"{ended} after it: {after[0]}")


def _name(row: PodRow) -> str:
    return full_name(row.namespace, row.name)


def _cgroup(prediction: Prediction) -> Section | None:
    if prediction.setup.node.is_windows:
        return None
    version, driver = prediction.setup.node.cgroup_version, prediction.setup.kubelet.cgroup_driver
    lines = [Line(prediction.class_cgroup_path), *_cgroup_lines("pod", prediction.cgroup, 1)]
    for container in prediction.containers:
        lines += _cgroup_lines(f"container {escape(container.name)}", container.cgroup, 2)
        if container.has_process_cgroup:
            lines += _cgroup_lines("its processes, by crun", container.process_cgroup, 3)
    lines += _without_exclusive_cpus(prediction)
    answer = f"v{version}, {driver} driver"
    if version != 1:
        answer += f", MemoryQoS {'on' if has_memory_qos(prediction.setup) else 'off'}"
    return Section("cgroup", answer, tuple(lines))


def _without_exclusive_cpus(prediction: Prediction) -> Iterator[Line]:
    """Say what a container lacks for exclusive CPUs (cpu_manager/policy_static.go guaranteedCPUs)."""
    if prediction.setup.kubelet.cpu_manager_policy != "static":
        return
    if prediction.qos_class is not QosClass.GUARANTEED:
        yield Line("no exclusive CPUs: the static CPU Manager gives them only to Guaranteed pods")
        return
    for container in prediction.containers:
        request = container.container.requests.get(CPU, ZERO)
        if request.value() * 1000 != request.milli_value():
            why = f"its cpu request, {quantity_text(request)}, is not a whole number"
            yield Line(f"{escape(container.name)} has no exclusive CPUs: {why}")


def _cgroup_lines(title: str, cgroup: CgroupPrediction, depth: int) -> Iterable[Line]:
    yield Line(f"{short_path(cgroup.path)}/", title, depth)
    reasons_by_file = cgroup.reasons
    for name, value in cgroup.files.items():
        if is_noise(name, value):
            continue
        reason = reasons_by_file.get(name)
        yield Line(f"{name} = {value}", reasons.sentence(reason) if reason is not None else "", depth + 1)


_SWAP_FILES: Final = {
    "memory.swap.max": "",
    "memory/memory.memsw.limit_in_bytes": "memory and swap together ",
}


def _swap(prediction: Prediction, usage: PodUsage | None) -> Section | None:
    swap = prediction.setup.node.swap_capacity_bytes
    if not swap:
        return None
    behavior = prediction.setup.kubelet.memory_swap_behavior or "NoSwap"
    lines = []
    for container in prediction.containers:
        cgroup = container.process_cgroup
        for file, what in _SWAP_FILES.items():
            value, reason = cgroup.files.get(file), cgroup.reasons.get(file)
            if value is not None:
                shown = binary(int(value)) if value.isdigit() else "max"
                why = reasons.sentence(reason) if reason is not None else ""
                lines.append(Line(f"{escape(container.name)}  {what}{shown}", why))
        used = usage.of(container.name) if usage is not None else None
        in_swap, most = used.swap_bytes or 0 if used is not None else 0, cgroup.files.get(MEMORY_SWAP_MAX, "")
        if most.isdigit() and in_swap > int(most):
            text = (
                f"{escape(container.name)} has {binary(in_swap)} in swap, so the node's swap behavior differs"
            )
            lines.append(Line(f"{text}: --assume memorySwap.swapBehavior=LimitedSwap"))
    return Section("Swap", f"{behavior}, node has {binary(swap)}", tuple(lines))


def _counted_request(pod: Pod, release: Release) -> tuple[int, str]:
    """Return the memory request that eviction counts, and how to say it."""
    request = eviction_request(pod, release, MEMORY).value()
    initial = [init for init in pod.init_containers if not is_sidecar(init, release)]
    lasting = tuple(init for init in pod.init_containers if init not in initial)
    spec = structs.replace(pod.spec, init_containers=lasting)
    later = eviction_request(structs.replace(pod, spec=spec), release, MEMORY).value()
    if request <= later:
        return request, binary(request)
    name = max(initial, key=lambda init: init.requests.get(MEMORY, ZERO)).name
    return request, f"{binary(request)} (init container {escape(name)}; without it {binary(later)})"


def _eviction(facts: PodFacts) -> Section:
    prediction, row, rows, pod_rows = facts.prediction, facts.row, facts.rows, facts.replicas
    pod = prediction.pod
    request, text = _counted_request(pod, prediction.setup.release)
    # Only pods have the number of a priority class.
    own = (pod_rows[0].pod if pod_rows else pod).spec
    priority = f"{own.priority or 0}"
    if own.priority is None and own.priority_class_name and not prediction.critical:
        priority += f" (assumed: PriorityClass {escape(own.priority_class_name)} is unknown)"
    is_of_daemon_set = find_workload(pod).kind == "DaemonSet" and not prediction.critical
    like_others = "; belonging to a DaemonSet does not protect it" if is_of_daemon_set else ""
    lines = []
    lines.append(Line(f"request counted for eviction: {text}, priority {priority}{like_others}"))
    if row is not None and row.memory is not None:
        over = row.memory - request
        lines.append(Line(f"usage is {binary(abs(over))} {'above' if over > 0 else 'below'} that request"))
    if prediction.critical:
        answer = "never: critical pods are not evicted"
        if any((container.oom_score_adj or 0) > GUARANTEED_ADJ for container in prediction.containers):
            lines.append(Line("the kernel ignores that: only system-node-critical lowers oom_score_adj"))
    elif not evicts_for_memory(prediction.setup):
        answer = "never: the kubelet has no memory.available threshold"
    elif pod_rows:
        answer = f"{_ranks(pod_rows, rows, lambda row: row.eviction_rank)} under memory pressure"
    elif row is None or (not row.node and row.rank is None):
        answer = reasons.NOT_SCHEDULED
    elif row.memory is None and lacks_stats(row.pod):
        answer = f"before all others under memory pressure: {NO_STATS}"
    elif row.eviction_rank is not None:
        others = rows.nodes[row.node].rows
        named = [(other.eviction_rank, _name(other)) for other in others if other.eviction_rank is not None]
        shared = " (shared)" if [rank for rank, _ in named].count(row.eviction_rank) > 1 else ""
        answer = f"rank {row.eviction_rank}{shared} of {len(named)} under memory pressure"
        lines += _neighbours("evicted", row.eviction_rank, named)
    else:
        answer = "rank unknown: memory usage is unknown" if has_processes(row.pod) else reasons.NO_PROCESS
    return Section("Eviction", answer, tuple(lines))


_SHOWN_BY_DF: Final = (
    "df shows the smallest of sizeLimit, the pod's memory limit and allocatable memory; before kubelet 1.22"
    " half of the node's memory"
)


def _memory(facts: PodFacts) -> Section | None:
    """Show what memory consists of, and how often it hit its bounds, if a source has either."""
    lines, answer, usage = [], "", facts.usage
    if usage is not None:
        for name, used in ((name, usage.of(name)) for name in usage.names):
            if used is not None and used.parts is not None:
                answer = f"by {usage.origin}"
                lines.append(Line(f"{escape(name)}  {_parts_text(used.parts)}"))
    for volume in facts.prediction.pod.spec.volumes or ():
        if volume.empty_dir is not None and volume.empty_dir.medium == "Memory":
            size, in_use = volume.empty_dir.size_limit, facts.tmpfs.get(volume.name)
            bound = f"up to {escape(str(size))}" if size else "no sizeLimit"
            now = f", {binary(in_use)} now" if in_use is not None else ""
            lines.append(Line(f"volume {escape(volume.name)}  in memory, {bound}{now}"))
            evicts = f"; above {escape(str(size))} the kubelet evicts the pod" if size else ""
            counts = f"counts toward the container that writes it, survives its restart{evicts}"
            lines += [Line(counts, depth=1), Line(_SHOWN_BY_DF, depth=1)]
    for name, times in facts.events.items():
        counted = ", ".join(f"{event} {number}" for event, number in times.items())
        hidden = "; while the container runs, no status shows oom_kill" if times.get("oom_kill") else ""
        lines.append(Line(f"{escape(name)}  memory.events: {counted}{hidden}"))
    return Section("Memory", answer, tuple(lines)) if lines else None


def _parts_text(parts: MemoryParts) -> str:
    """Name the parts of memory, and the sum of the parts that the source does not tell apart."""
    kinds = ("anon", "file", "shmem", "kernel", "swap")
    sizes = {kind: getattr(parts, f"{kind}_bytes") for kind in kinds}
    words = ", ".join(f"{kind} {binary(size)}" for kind, size in sizes.items() if size is not None)
    other = parts.other_bytes
    return words if other is None else f"{words}; file, shmem and kernel together {binary(other)}"


def _pressure(pressure: Mapping[str, Pressure], usage: PodUsage | None) -> Section | None:
    """Return nothing for usage from the metrics API, which never has pressure."""
    if usage is None or usage.origin is UsageOrigin.METRICS_API:
        return None
    if not pressure:
        return Section("Pressure", NONE, sentences(f"{usage.origin} has no pressure (PSI); {WITH_PSI}"))
    is_stored = usage.origin is UsageOrigin.PROMETHEUS
    over = "2 minutes, by Prometheus" if is_stored else "minute"
    lines = [Line(f"{resource}  {_waits(waits)}") for resource, waits in pressure.items()]
    if len(usage.names) > 1:
        of_each = {name: used.pressure for name in usage.names if (used := usage.of(name)) is not None}
        lines[1:1] = [Line(f"{escape(name)}  {_waits(own)}", depth=1) for name, own in of_each.items() if own]
    return Section("Pressure", f"tasks waited, in the last {over} (PSI)", tuple(lines))


def _waits(pressure: Pressure) -> str:
    return "; ".join(
        f"{name} {psi_text(psi.some.avg60)} some, {psi_text(psi.full.avg60)} all"
        for name, psi in pressure._asdict().items()
        if psi is not None
    )


def _resize_refusal(prediction: Prediction) -> str:
    """Say why the pod cannot be resized in place, or return ""."""
    release = prediction.setup.release
    if prediction.static or prediction.mirror:
        return "static pods cannot be resized"
    if prediction.setup.node.is_windows:
        return "Windows pods cannot be resized in place"
    if not release.enabled(Gate.IN_PLACE_RESIZE):
        return f"not in place on {release}: the pod must be recreated"
    if prediction.qos_class is QosClass.BEST_EFFORT:
        return "not in place: any request or limit would change the class, and a resize may not change it"
    return ""


def _resize(prediction: Prediction, effects: Effects | None) -> Section:
    pod, refusal = prediction.pod, _resize_refusal(prediction)
    if refusal:
        return Section("Resize", refusal)
    lines = [Line(f"the class stays {prediction.qos_class.value}: a resize may not change it")]
    managers = pinned(prediction.setup) if prediction.qos_class is QosClass.GUARANTEED else {}
    for resource, manager in managers.items():
        lines.append(
            Line(f"{resource} cannot change in place: the static policy of the {manager} Manager refuses it")
        )
    for container in prediction.containers:
        restarts = [
            policy.resource_name
            for policy in container.container.resize_policy or ()
            if policy.restart_policy == "RestartContainer"
        ]
        if restarts:
            lines.append(Line(f"{escape(container.name)} restarts when its {' or '.join(restarts)} changes"))
    waiting, release = sorted(waiting_containers(pod)), prediction.setup.release
    if waiting and prediction.totals.memory_limit and not release.has(Change.RESIZE_OF_STARTING_CONTAINER):
        names = " and ".join(map(escape, waiting))
        lines.append(Line(f"not while {names} waits: {raised_while_running(release)}"))
    lines.append(Line("oom_score_adj changes only when a container restarts"))
    if effects is None:
        return Section("Resize", "cpu and memory may change in place", tuple(lines))
    condition = resize_condition(pod)
    if condition is not None and condition.message:
        lines.append(Line(f"the kubelet says: {escape(condition.message)}"))
    then = [
        f"{escape(container.name)} oom_score_adj {adj.before} {ARROW} {adj.after}"
        for container in effects.containers
        if (adj := container.oom_score_adj).before != adj.after
    ]
    if effects.rank_before != effects.rank_after:
        then.append(f"kill rank {effects.rank_before} {ARROW} {effects.rank_after}")
    if then:
        lines.append(Line(f"once the resize is done and the container restarts: {', '.join(then)}"))
    return Section("Resize", reasons.resize_sentence(pod), tuple(lines), tuple(_desired(pod)))


def _desired(pod: Pod) -> Iterable[ValueChange]:
    from kubectl_qos.present.effects import value_name

    for edit, value in desired_values(pod):
        name = value_name(*edit.target)
        yield ValueChange(name, quantity_text(value), quantity_text(edit.quantity), "desired")


def desired_values(pod: Pod) -> Iterable[tuple[Edit, Quantity | None]]:
    """Yield the values of the spec that are not in force, each with the value that is."""
    for now, desired in zip(all_containers(pod), all_containers(desired_pod(pod)), strict=True):
        for side in Side:
            for resource, quantity in getattr(desired, side.value).items():
                value = getattr(now, side.value).get(resource)
                if value != quantity:
                    yield Edit(now.name, side, resource, quantity), value


def _assumed(prediction: Prediction, rows: PodRows, snapshot: Snapshot) -> Section | None:
    assumed = [reasons.assumption_sentence(assumption) for assumption in prediction.assumptions]
    setups = {name: node.setup for name, node in rows.nodes.items()}
    shown = set(killer_notes(setups))
    notes = [note for note in pod_table_notes(snapshot, rows) if note not in shown]
    setup, spec = prediction.setup, prediction.pod.spec
    refusals = kubelet_config_errors(setup.kubelet, setup.release, cgroup_version=setup.node.cgroup_version)
    notes += [f"a kubelet {setup.release} does not start with this: {text}" for text in refusals]
    name = escape(spec.runtime_class_name or "")
    if name and spec.overhead is None and not prediction.pod.metadata.uid:
        notes.append(
            f"RuntimeClass {name} adds its overhead to the requests and limits of pods. None is assumed:"
            " add the RuntimeClass to the files of -f"
        )
    if name and spec.overhead:
        notes.append(
            f"RuntimeClass {name} has an overhead, like sandboxes such as Kata: a container's cgroup and"
            " oom_score_adj are then inside the sandbox, and the node's kernel kills the whole pod at its"
            " limit"
        )
    notes += [f"not measured, assumed: {', '.join(assumed)}"] if assumed else []
    notes += profile_notes(prediction.assumptions)
    return Section("Assumed", lines=sentences(*notes)) if notes else None
