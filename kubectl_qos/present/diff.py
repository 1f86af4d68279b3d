"""A previewed change in words: before and after, part by part, the same for the command line and the UI."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kubectl_qos.edit.edits import Edit, as_flags, current
from kubectl_qos.edit.goals import Obstacle, ObstacleReason
from kubectl_qos.edit.preview import Effects, FileChange, Preview, StrategyKind
from kubectl_qos.k8s.objects import CPU, Pod
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.present.explanation import short_path
from kubectl_qos.present.format import NONE, UNKNOWN, binary, cpu, escape
from kubectl_qos.present.reasons import sentence
from kubectl_qos.qos.qos_class import SPEC_RESOURCES
from kubectl_qos.qos.resize import ResizeStatus

NOT_WRITTEN = "not written"
SHOWN_PODS = 4
"""So many pods of a list are named; the others are counted."""


@dataclass(frozen=True, slots=True)
class ValueChange:
    """One value before and after; `delta` is the difference of numbers, empty where there is none."""

    label: str
    before: str
    after: str
    delta: str = ""

    @property
    def changed(self) -> bool:
        """Whether the value is another one."""
        return self.before != self.after


@dataclass(frozen=True, slots=True)
class EffectSection:
    """One subject of the preview: its answer, the values in it, and sentences below."""

    title: str
    answer: str
    changes: tuple[ValueChange, ...] = ()
    sentences: tuple[str, ...] = ()
    changed: bool = False
    warns: bool = False


def preview_subject(preview: Preview) -> str:
    """Whose change it is, and what decides what it does: `pod shop/web-0 on worker-2, kubelet 1.36`."""
    pod, setup = preview.before.pod, preview.before.setup
    name = f"{pod.namespace}/{pod.name}" if pod.namespace else pod.name or "(unnamed)"
    where = f" on {escape(setup.node.name)}" if setup.node.name else ""
    return f"{pod.kind.lower()} {escape(name)}{where}, kubelet {setup.release}"


def change_part(pod: Pod, edits: Sequence[Edit], *, with_flags: bool = False) -> EffectSection:
    """The values that change, of a pod as stored or written; `with_flags` adds how to ask for the same."""
    if not edits:
        return EffectSection("Change", "none, requests and limits are like that already")
    changes = [
        ValueChange(
            f"{escape(edit.owner) or SPEC_RESOURCES} {edit.side.value}.{escape(edit.resource)}",
            _quantity(current(pod, edit.owner, edit.side, edit.resource)),
            _quantity(edit.quantity),
        )
        for edit in edits
    ]
    flags = [f"as flags: {escape(line)}" for line in as_flags(edits)] if with_flags else []
    return EffectSection("Change", "", tuple(changes), tuple(flags), changed=True)


def _quantity(value: Quantity | None) -> str:
    return NONE if value is None else str(value)


def preview_parts(preview: Preview) -> tuple[EffectSection, ...]:
    """Class, OOM, rank, cgroup files, room on the node, the server's verdict and how it can land."""
    return (
        *effect_parts(preview.effects),
        *_room(preview),
        _server(preview),
        _strategy_kind(preview),
    )


def effect_parts(effects: Effects) -> tuple[EffectSection, ...]:
    """Class, OOM, rank and cgroup files."""
    return (_class(effects), _oom(effects), _rank(effects), *_cgroup(effects))


def _class(effects: Effects) -> EffectSection:
    before, after = effects.before.qos_class, effects.after.qos_class
    stored = effects.after.computed_class is not after
    sentences = (sentence(effects.after.class_reason),) if stored else ()
    if before is after:
        return EffectSection("Class", f"{before.value}, stays", sentences=sentences)
    return EffectSection("Class", f"{before.value} → {after.value}", sentences=sentences, changed=True)


def _oom(effects: Effects) -> EffectSection:
    changes = []
    for one in effects.containers:
        name = escape(one.name)
        changes.append(_numbers(f"{name} oom_score_adj", one.adj_before, one.adj_after))
        changes.append(_numbers(f"{name} oom_score", one.score_before, one.score_after))
    return EffectSection("OOM", "", tuple(changes), changed=any(change.changed for change in changes))


def _numbers(label: str, before: int | None, after: int | None) -> ValueChange:
    delta = f"{after - before:+d}" if before is not None and after is not None and after != before else ""
    return ValueChange(label, _number(before), _number(after), delta)


def _number(value: int | None) -> str:
    return UNKNOWN if value is None else str(value)


def _rank(effects: Effects) -> EffectSection:
    node = effects.after.setup.node.name
    title = f"Kill rank on {escape(node)}" if node else "Kill rank"
    if effects.rank_before is None or effects.rank_after is None:
        return EffectSection(title, UNKNOWN)
    before, after = effects.rank_before, effects.rank_after
    sentences = []
    if effects.overtaken_by:
        sentences.append(f"now killed before it: {_pods(effects.overtaken_by)}")
    if effects.overtakes:
        sentences.append(f"now killed after it: {_pods(effects.overtakes)}")
    if before == after:
        return EffectSection(title, f"{before} of {effects.ranked}, stays", sentences=tuple(sentences))
    answer = f"{before} → {after} of {effects.ranked}"
    return EffectSection(title, answer, sentences=tuple(sentences), changed=True)


def _pods(keys: Iterable[PodKey]) -> str:
    names = [escape(f"{namespace}/{name}" if namespace else name) for namespace, name in keys]
    more = f" and {len(names) - SHOWN_PODS} more" if len(names) > SHOWN_PODS else ""
    return ", ".join(names[:SHOWN_PODS]) + more


def _cgroup(effects: Effects) -> Iterator[EffectSection]:
    """One part for the pod and each container whose files change, and one for a new place in the tree."""
    old, new = effects.before.cgroup.path, effects.after.cgroup.path
    if old != new:
        sentences = (f"from {old}", f"to {new}")
        yield EffectSection("cgroup", "another place in the tree", sentences=sentences, changed=True)
    elif effects.changes_path:
        moves = zip(effects.before.containers, effects.after.containers, strict=True)
        moved = tuple(
            f"{escape(now.name)}: from {_below(old, was.process_path)} to {_below(new, now.process_path)}"
            for was, now in moves
            if was.process_path != now.process_path
        )
        yield EffectSection("cgroup", "the containers' processes move", sentences=moved, changed=True)
    for container in dict.fromkeys(file.container for file in effects.files):
        files = [file for file in effects.files if file.container == container]
        whose = f"container {escape(container)}" if container else "pod"
        path = short_path(files[0].path)
        changes = tuple(_file(file) for file in files)
        yield EffectSection(f"cgroup of {whose}", f"{path}/", changes, changed=True)
    if not effects.changes_path and not effects.files:
        yield EffectSection("cgroup", "no file changes")


def _below(pod_path: str, path: str) -> str:
    return "/".join(map(short_path, path.removeprefix(f"{pod_path}/").split("/")))


def file_parts(files: Iterable[FileChange]) -> Iterator[EffectSection]:
    """Files of the cgroups above the pods, one part for each directory."""
    by_path: dict[str, list[FileChange]] = {}
    for file in files:
        by_path.setdefault(file.path, []).append(file)
    for path, found in by_path.items():
        yield EffectSection(f"cgroup {escape(path)}", "", tuple(map(_file, found)), changed=True)


def _file(file: FileChange) -> ValueChange:
    return ValueChange(
        file.name,
        NOT_WRITTEN if file.before is None else file.before,
        NOT_WRITTEN if file.after is None else file.after,
    )


def _room(preview: Preview) -> Iterator[EffectSection]:
    node = escape(preview.after.setup.node.name)
    sentences = []
    for room in preview.room:
        amount = cpu if room.resource == CPU else binary
        finding = "fits" if room.fits else "does not fit"
        sentences.append(
            f"{room.resource}: requests {amount(room.needed)}, {amount(room.free)} is free: {finding}"
        )
    if not sentences:
        return
    fits = all(room.fits for room in preview.room)
    answer = "the node has room" if fits else "the node has no room"
    yield EffectSection(f"Room on {node}", answer, sentences=tuple(sentences), warns=not fits)


def _server(preview: Preview) -> EffectSection:
    refusals = tuple(escape(str(refusal)) for refusal in preview.refusals)
    if refusals:
        return EffectSection("Server", "would refuse this", sentences=refusals, warns=True)
    return EffectSection("Server", "nothing to refuse in these values")


def _strategy_kind(preview: Preview) -> EffectSection:
    if not preview.edits:
        return EffectSection("How it lands", "nothing is changed yet")
    if preview.refusals:
        return EffectSection("How it lands", "not at all, while a server refuses it", warns=True)
    sentences: list[str] = []
    if preview.strategy_kind is StrategyKind.IN_PLACE:
        sentences += _in_place(preview)
    elif preview.strategy_kind is StrategyKind.RECREATE:
        sentences += [f"in place, a server answers: {escape(str(one))}" for one in preview.resize_refusals]
    elif preview.strategy_kind is StrategyKind.TEMPLATE:
        sentences.append("running pods keep their values until the rollout replaces them")
    else:
        sentences.append(never_sentence(preview))
    sentences += _owner(preview)
    warns = preview.strategy_kind is StrategyKind.NEVER or preview.outcome.answer is not ResizeStatus.ACTUATED
    return EffectSection("How it lands", preview.strategy_kind.value, sentences=tuple(sentences), warns=warns)


def never_sentence(preview: Preview) -> str:
    """Why a change that lands not at all does not, and what would."""
    if preview.before.pod.kind == "Job":
        return "the pod template of a Job cannot be changed: delete it and create it anew"
    return "a static pod comes from a file on its node: change that file"


def _in_place(preview: Preview) -> Iterator[str]:
    for name in preview.restarts:
        yield f"{escape(name)} restarts: its resizePolicy says so"
    found = preview.outcome
    if found.answer is not ResizeStatus.ACTUATED:
        yield f"the kubelet answers {found.answer.value}: {escape(found.message)}"
    yield "a running container keeps its oom_score_adj until it restarts"


def _owner(preview: Preview) -> Iterator[str]:
    """Pods of a workload are made from its template: the change does not outlive the pod.

    The owner of a static pod is its node, which has no template.
    """
    for owner in preview.before.pod.metadata.owner_references or ():
        if owner.controller and owner.kind != "Node":
            yield (
                f"the pod belongs to {escape(owner.kind)} {escape(owner.name)}: "
                "change the template too, or the next pod has the old values"
            )


def obstacle_sentence(obstacle: Obstacle) -> str:
    """What stands in the way, with the numbers put in."""
    return _WORDED[obstacle.why](obstacle)


def obstacle_remedy(obstacle: Obstacle) -> str:
    """What to do instead, empty where there is nothing."""
    return _REMEDIES.get(obstacle.why, "")


def _too_few(obstacle: Obstacle) -> str:
    return f"the last rank on its node is {obstacle.ranked}"


def _needs(obstacle: Obstacle) -> str:
    return f"container {escape(obstacle.container)} needs an oom_score_adj of {obstacle.needed} or less"


def _beyond_burstable(obstacle: Obstacle) -> str:
    return f"{_needs(obstacle)}, and a Burstable container has at least {obstacle.least}"


def _beyond_guaranteed(obstacle: Obstacle) -> str:
    return f"{_needs(obstacle)}, and even a Guaranteed one has {obstacle.least}"


def _restricted(obstacle: Obstacle) -> str:
    return f"{_needs(obstacle)}, and containerd's restrict_oom_score_adj keeps it at {obstacle.least} or more"


def _fixed(what: str) -> Callable[[Obstacle], str]:
    return lambda obstacle: f"it is {what}: its oom_score_adj is {obstacle.least} whatever it requests"


def _plain(text: str) -> Callable[[Obstacle], str]:
    return lambda _: text


_WORDED: Final[Mapping[ObstacleReason, Callable[[Obstacle], str]]] = {
    ObstacleReason.NO_CAPACITY: _plain("the memory capacity of its node is unknown"),
    ObstacleReason.NO_PROCESSES: _plain("it has no processes on a node"),
    ObstacleReason.NO_USAGE: _plain(
        "its memory usage is unknown, while that of other pods of the node is known"
    ),
    ObstacleReason.OTHER_NOT_THERE: _plain("the two are not on the same node"),
    ObstacleReason.OTHER_HAS_NO_PROCESSES: _plain("the other one has no processes on the node"),
    ObstacleReason.TOO_FEW_PODS: _too_few,
    ObstacleReason.CRITICAL: _fixed("critical"),
    ObstacleReason.GUARANTEED: _fixed("Guaranteed"),
    ObstacleReason.BEYOND_BURSTABLE: _beyond_burstable,
    ObstacleReason.BEYOND_GUARANTEED: _beyond_guaranteed,
    ObstacleReason.RESTRICTED: _restricted,
    ObstacleReason.NOT_BY_REQUESTS: _plain("its node goes by what was allocated, not by what it requests"),
}

_REMEDIES: Final[Mapping[ObstacleReason, str]] = {
    ObstacleReason.NO_CAPACITY: "--node-memory 16Gi assumes one",
    ObstacleReason.NO_USAGE: "ask again when it has been measured, or leave usage out with --usage none",
    ObstacleReason.OTHER_NOT_THERE: "the kernel of a node chooses among its own pods: name two of one node",
    ObstacleReason.BEYOND_BURSTABLE: "Guaranteed pods have -997: --to guaranteed",
    ObstacleReason.GUARANTEED: "less memory in use is what helps",
    ObstacleReason.CRITICAL: "less memory in use is what helps",
}
