"""A previewed change in words: before and after, part by part, the same for the command line and the UI."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kubectl_qos.edit.change import Edit, current
from kubectl_qos.edit.effects import Effects, FileChange
from kubectl_qos.edit.preview import Landing, Preview
from kubectl_qos.edit.spelling import as_flags
from kubectl_qos.k8s.objects import CPU, Pod
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.present.amounts import NONE, UNKNOWN, binary, cpu, escape
from kubectl_qos.present.explanation import short_path
from kubectl_qos.present.words import sentence
from kubectl_qos.qos.class_steps import SPEC_RESOURCES
from kubectl_qos.qos.resize import Answer

NOT_WRITTEN = "not written"
SHOWN_PODS = 4
"""So many pods of a list are named; the others are counted."""


@dataclass(frozen=True, slots=True)
class Change:
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
class Part:
    """One subject of the preview: its answer, the values in it, and sentences below."""

    title: str
    answer: str
    changes: tuple[Change, ...] = ()
    sentences: tuple[str, ...] = ()
    changed: bool = False
    warns: bool = False


def preview_subject(preview: Preview) -> str:
    """Whose change it is, and what decides what it does: `pod shop/web-0 on worker-2, kubelet 1.36`."""
    pod, setup = preview.before.pod, preview.before.setup
    name = f"{pod.namespace}/{pod.name}" if pod.namespace else pod.name or "(unnamed)"
    where = f" on {escape(setup.node.name)}" if setup.node.name else ""
    return f"{pod.kind.lower()} {escape(name)}{where}, kubelet {setup.release}"


def change_part(pod: Pod, edits: Sequence[Edit], *, with_flags: bool = False) -> Part:
    """The values that change, of a pod as stored or written; `with_flags` adds how to ask for the same."""
    if not edits:
        return Part("Change", "none, requests and limits are like that already")
    changes = [
        Change(
            f"{escape(edit.owner) or SPEC_RESOURCES} {edit.side.value}.{escape(edit.resource)}",
            _quantity(current(pod, edit.owner, edit.side, edit.resource)),
            _quantity(edit.quantity),
        )
        for edit in edits
    ]
    flags = [f"as flags: {escape(line)}" for line in as_flags(edits)] if with_flags else []
    return Part("Change", "", tuple(changes), tuple(flags), changed=True)


def _quantity(value: Quantity | None) -> str:
    return NONE if value is None else str(value)


def preview_parts(preview: Preview) -> tuple[Part, ...]:
    """Class, OOM, rank, cgroup files, room on the node, the server's verdict and how it can land."""
    return (
        *effect_parts(preview.effects),
        *_room(preview),
        _server(preview),
        _landing(preview),
    )


def effect_parts(effects: Effects) -> tuple[Part, ...]:
    """Class, OOM, rank and cgroup files."""
    return (_class(effects), _oom(effects), _rank(effects), *_cgroup(effects))


def _class(effects: Effects) -> Part:
    before, after = effects.before.qos_class, effects.after.qos_class
    stored = effects.after.computed_class is not after
    sentences = (sentence(effects.after.class_reason),) if stored else ()
    if before is after:
        return Part("Class", f"{before.value}, stays", sentences=sentences)
    return Part("Class", f"{before.value} → {after.value}", sentences=sentences, changed=True)


def _oom(effects: Effects) -> Part:
    changes = []
    for one in effects.containers:
        name = escape(one.name)
        changes.append(_numbers(f"{name} oom_score_adj", one.adj_before, one.adj_after))
        changes.append(_numbers(f"{name} oom_score", one.score_before, one.score_after))
    return Part("OOM", "", tuple(changes), changed=any(change.changed for change in changes))


def _numbers(label: str, before: int | None, after: int | None) -> Change:
    delta = f"{after - before:+d}" if before is not None and after is not None and after != before else ""
    return Change(label, _number(before), _number(after), delta)


def _number(value: int | None) -> str:
    return UNKNOWN if value is None else str(value)


def _rank(effects: Effects) -> Part:
    node = effects.after.setup.node.name
    title = f"Kill rank on {escape(node)}" if node else "Kill rank"
    if effects.rank_before is None or effects.rank_after is None:
        return Part(title, UNKNOWN)
    before, after = effects.rank_before, effects.rank_after
    sentences = []
    if effects.overtaken_by:
        sentences.append(f"now killed before it: {_pods(effects.overtaken_by)}")
    if effects.overtakes:
        sentences.append(f"now killed after it: {_pods(effects.overtakes)}")
    if before == after:
        return Part(title, f"{before} of {effects.ranked}, stays", sentences=tuple(sentences))
    answer = f"{before} → {after} of {effects.ranked}"
    return Part(title, answer, sentences=tuple(sentences), changed=True)


def _pods(keys: Iterable[PodKey]) -> str:
    names = [escape(f"{namespace}/{name}" if namespace else name) for namespace, name in keys]
    more = f" and {len(names) - SHOWN_PODS} more" if len(names) > SHOWN_PODS else ""
    return ", ".join(names[:SHOWN_PODS]) + more


def _cgroup(effects: Effects) -> Iterator[Part]:
    """One part for the pod and each container whose files change, and one for a new place in the tree."""
    old, new = effects.before.cgroup.path, effects.after.cgroup.path
    if old != new:
        sentences = (f"from {old}", f"to {new}")
        yield Part("cgroup", "another place in the tree", sentences=sentences, changed=True)
    elif effects.changes_path:
        moves = zip(effects.before.containers, effects.after.containers, strict=True)
        moved = tuple(
            f"{escape(now.name)}: from {_below(old, was.process_path)} to {_below(new, now.process_path)}"
            for was, now in moves
            if was.process_path != now.process_path
        )
        yield Part("cgroup", "the containers' processes move", sentences=moved, changed=True)
    for container in dict.fromkeys(file.container for file in effects.files):
        files = [file for file in effects.files if file.container == container]
        whose = f"container {escape(container)}" if container else "pod"
        path = short_path(files[0].path)
        changes = tuple(_file(file) for file in files)
        yield Part(f"cgroup of {whose}", f"{path}/", changes, changed=True)
    if not effects.changes_path and not effects.files:
        yield Part("cgroup", "no file changes")


def _below(pod_path: str, path: str) -> str:
    return "/".join(map(short_path, path.removeprefix(f"{pod_path}/").split("/")))


def file_parts(files: Iterable[FileChange]) -> Iterator[Part]:
    """Files of the cgroups above the pods, one part for each directory."""
    by_path: dict[str, list[FileChange]] = {}
    for file in files:
        by_path.setdefault(file.path, []).append(file)
    for path, found in by_path.items():
        yield Part(f"cgroup {escape(path)}", "", tuple(map(_file, found)), changed=True)


def _file(file: FileChange) -> Change:
    return Change(
        file.name,
        NOT_WRITTEN if file.before is None else file.before,
        NOT_WRITTEN if file.after is None else file.after,
    )


def _room(preview: Preview) -> Iterator[Part]:
    node = escape(preview.after.setup.node.name)
    sentences = []
    for room in preview.room:
        amount = cpu if room.resource == CPU else binary
        verdict = "fits" if room.fits else "does not fit"
        sentences.append(
            f"{room.resource}: requests {amount(room.needed)}, {amount(room.free)} is free: {verdict}"
        )
    if not sentences:
        return
    fits = all(room.fits for room in preview.room)
    answer = "the node has room" if fits else "the node has no room"
    yield Part(f"Room on {node}", answer, sentences=tuple(sentences), warns=not fits)


def _server(preview: Preview) -> Part:
    refusals = tuple(escape(str(refusal)) for refusal in preview.refusals)
    if refusals:
        return Part("Server", "would refuse this", sentences=refusals, warns=True)
    return Part("Server", "nothing to refuse in these values")


def _landing(preview: Preview) -> Part:
    if not preview.edits:
        return Part("How it lands", "nothing is changed yet")
    if preview.refusals:
        return Part("How it lands", "not at all, while a server refuses it", warns=True)
    sentences: list[str] = []
    if preview.landing is Landing.IN_PLACE:
        sentences += _in_place(preview)
    elif preview.landing is Landing.RECREATE:
        sentences += [f"in place, a server answers: {escape(str(one))}" for one in preview.resize_refusals]
    elif preview.landing is Landing.TEMPLATE:
        sentences.append("running pods keep their values until the rollout replaces them")
    else:
        sentences.append(never_sentence(preview))
    sentences += _owner(preview)
    warns = preview.landing is Landing.NEVER or preview.outcome.answer is not Answer.ACTUATED
    return Part("How it lands", preview.landing.value, sentences=tuple(sentences), warns=warns)


def never_sentence(preview: Preview) -> str:
    """Why a change that lands not at all does not, and what would."""
    if preview.before.pod.kind == "Job":
        return "the pod template of a Job cannot be changed: delete it and create it anew"
    return "a static pod comes from a file on its node: change that file"


def _in_place(preview: Preview) -> Iterator[str]:
    for name in preview.restarts:
        yield f"{escape(name)} restarts: its resizePolicy says so"
    found = preview.outcome
    if found.answer is not Answer.ACTUATED:
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
