"""`kubectl qos set TYPE/NAME --requests … --limits …`: what a change does, and its patch or manifest."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from kubectl_qos.cli import streams
from kubectl_qos.cli.sources import Asked, asked
from kubectl_qos.cli.targets import Target, find_pod, parse_targets
from kubectl_qos.edit.change import POD_LEVEL, Edit, Side, apply
from kubectl_qos.edit.goals import goal
from kubectl_qos.edit.patch import kubectl_command, manifest_of, patch_of
from kubectl_qos.edit.preview import Landing, Preview, preview
from kubectl_qos.edit.spelling import Amount, parse_amounts, selected, spelled
from kubectl_qos.errors import EXIT_ERROR, InputError, QosError, UsageError
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.releases import Gate, Release
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.present.comparison import part_lines
from kubectl_qos.present.diff import change_part, never_sentence, preview_parts, preview_subject
from kubectl_qos.present.notes import capacity_sentence, missing_sentence
from kubectl_qos.present.structured import to_json, to_yaml
from kubectl_qos.present.words import step_sentence
from kubectl_qos.qos.class_steps import SPEC_RESOURCES
from kubectl_qos.qos.qos_class import QosClass

EXIT_CHANGES: Final = 1
"""With --exit-code, as `kubectl diff` ends where something differs."""
EXIT_TROUBLE: Final = 2
"""With --exit-code, the least of an error."""


def run(options: argparse.Namespace) -> int:
    """Print what the change does, or the change; 1 where it cannot be made, or as --exit-code has it."""
    if not getattr(options, "exit_code", False):
        return EXIT_ERROR if _set(options).failed else 0
    try:
        done = _set(options)
    except QosError as error:
        error.exit_code = max(error.exit_code, EXIT_TROUBLE)
        raise
    if done.failed:
        return EXIT_TROUBLE
    return EXIT_CHANGES if done.changes else 0


class _Done(NamedTuple):
    """Whether the change changes anything, and whether a document of the input was wanting."""

    changes: bool
    failed: bool


class _Wish(NamedTuple):
    """What the flags ask for, whatever the pod."""

    amounts: tuple[tuple[Side, Amount], ...]
    patterns: tuple[str, ...]
    pod_level: bool
    target: QosClass | None


def _set(options: argparse.Namespace) -> _Done:
    wish = _wish(options)
    targets = parse_targets(getattr(options, "target", []))
    if len(targets) > 1:
        raise UsageError("one pod or workload can be changed at a time")
    if not targets and not getattr(options, "filename", None):
        raise UsageError(
            "You must provide one or more resources by argument or filename.",
            hint="kubectl qos set pod/web-0 --limits memory=1Gi, or kubectl qos set -f pod.yaml …",
        )
    if getattr(options, "write", False):
        _check_write(options)
    wanted = asked(options)
    scope = replace(wanted.scope, names=frozenset(target.name for target in targets))
    snapshot = wanted.source.snapshot(scope)
    pod = _the_one(targets, snapshot, wanted)
    setup = snapshot.setup(pod.node_name)
    neighbours = snapshot.by_node().get(pod.node_name, ())
    found = preview(pod, _edits(wish, pod, setup.release), setup, neighbours, snapshot.usage)
    _print(found, pod, wanted, options)
    writes = getattr(options, "write", False)
    if getattr(options, "output", None) == "patch" and not writes:
        streams.notes(_how_to_apply(found, pod))
    streams.notes(_notes(found, snapshot))
    streams.notes(f"error: {problem}" for problem in wanted.problems)
    if found.edits:
        _complain(found, writes=writes)
    if writes:
        streams.note(_written(found, pod, wanted))
    return _Done(bool(found.edits), wanted.failed)


def _wish(options: argparse.Namespace) -> _Wish:
    amounts = tuple(
        (side, amount)
        for side in Side
        for text in [",".join(getattr(options, side.value, []))]
        if text or hasattr(options, side.value)
        for amount in parse_amounts(text, f"--{side.value}")
    )
    patterns = tuple(getattr(options, "containers", []))
    pod_level = getattr(options, "pod_level", False)
    to = getattr(options, "to", None)
    if not amounts and to is None:
        raise UsageError(
            "you must specify an update to requests or limits (in the form of --requests/--limits)",
            hint="--to guaranteed finds the values of a class by itself",
        )
    if patterns and pod_level:
        raise UsageError(
            "--pod-level changes the pod's own resources, -c those of containers: give one of them"
        )
    if not amounts and (patterns or pod_level):
        flag = "-c" if patterns else "--pod-level"
        raise UsageError(
            f"{flag} says what --requests and --limits change; the class of --to is that of the whole pod"
        )
    target = next((one for one in QosClass if one.value.lower() == to), None)
    return _Wish(amounts, patterns, pod_level, target)


def _the_one(targets: Sequence[Target], snapshot: Snapshot, wanted: Asked) -> Pod:
    """The pod or workload that is meant. Raises InputError where that could be several."""
    scope = wanted.scope
    for_names = replace(scope, namespace=None)
    matching = [
        pod
        for pod in snapshot.pods
        if scope.namespace is None or pod.namespace in {scope.namespace, ""}
        if (
            any((pod.kind, pod.name) == (target.kind, target.name) for target in targets)
            if targets
            else for_names.matches(pod)
        )
    ]
    if len(matching) > 1:
        places = _places(matching, wanted)
        if targets:
            raise InputError(
                f"{_reference(matching[0])} is in {len(places)} places: {', '.join(places)}",
                hint="say which one: -n has its namespace, -f its file",
            )
        raise InputError(
            f"there are {len(places)} pods and workloads: {', '.join(places)}",
            hint=f"name the one to change, such as {_reference(matching[0])}",
        )
    if targets:
        return find_pod(targets[0], snapshot, wanted)
    if not matching:
        raise InputError(
            "no pod or workload to change", hint="look at the namespace, the node and the selector"
        )
    return matching[0]


def _places(pods: Sequence[Pod], wanted: Asked) -> list[str]:
    from kubectl_qos.cluster.files import FileSource

    if isinstance(wanted.source, FileSource):
        return wanted.source.places(pods)
    return [f"{pod.namespace}/{pod.name}" for pod in pods]


def _reference(pod: Pod) -> str:
    return f"{pod.kind.lower()}/{pod.name}"


def _edits(wish: _Wish, pod: Pod, release: Release) -> list[Edit]:
    """The edits of the flags, and those towards the class that is asked for. Raises InputError."""
    owners: list[str] = []
    if wish.pod_level:
        if not release.enabled(Gate.POD_LEVEL_RESOURCES):
            raise InputError(
                f"{_reference(pod)}: Kubernetes {release} has no pod-level resources here",
                hint="leave --pod-level out, or say --feature-gates PodLevelResources=true if it is on",
            )
        owners = [POD_LEVEL]
    elif wish.amounts:
        owners = selected(pod, wish.patterns)
    given = [
        Edit(owner, side, amount.resource, amount.quantity)
        for owner in owners
        for side, amount in wish.amounts
    ]
    return given if wish.target is None else [*given, *_towards(wish.target, given, pod, release)]


def _towards(target: QosClass, given: Sequence[Edit], pod: Pod, release: Release) -> Sequence[Edit]:
    found = goal(apply(pod, given), target, release)
    asked_for = {edit.target: edit for edit in given}
    for edit in found.edits:
        if edit.target in asked_for:
            owner = edit.owner or SPEC_RESOURCES
            kept, needed = (
                spelled([Amount(one.resource, one.quantity)]) for one in (asked_for[edit.target], edit)
            )
            raise InputError(
                f"{_reference(pod)}: {owner}: --{edit.side.value} {kept} keeps it from {target.value},"
                f" which needs {needed}",
                hint="leave out one of the two",
            )
    if found.to_choose:
        raise InputError(
            f"{_reference(pod)}: {target.value} needs more than what is there:"
            f" {'; '.join(map(step_sentence, found.to_choose))}",
            hint=f"give numbers together with --to {target.value.lower()}, by -c, --requests and --limits",
        )
    return found.edits


def _print(found: Preview, pod: Pod, wanted: Asked, options: argparse.Namespace) -> None:
    output = getattr(options, "output", None)
    if output == "patch":
        streams.out_text(to_yaml(patch_of(pod, found.edits) if found.edits else {}))
    elif output is not None:
        manifest = manifest_of(wanted.source.raw(pod), pod, found.edits)
        streams.out_text(to_yaml(manifest) if output == "yaml" else to_json(manifest))
    else:
        parts = [change_part(pod, found.edits, with_flags=getattr(options, "to", None) is not None)]
        if found.edits:
            parts += preview_parts(found)
        streams.out([preview_subject(found), *part_lines(parts)])


def _how_to_apply(found: Preview, pod: Pod) -> Iterator[str]:
    if not found.edits or found.refusals:
        return
    if found.landing is Landing.RECREATE:
        yield "a server refuses this patch: take the manifest of -o yaml, delete the pod and create it anew"
    elif found.landing is not Landing.NEVER:
        yield kubectl_command(pod, in_place=found.landing is Landing.IN_PLACE)


def _notes(found: Preview, snapshot: Snapshot) -> Iterator[str]:
    yield from map(missing_sentence, snapshot.missing)
    node = found.after.setup.node
    if node.memory_capacity_bytes is None:
        yield capacity_sentence([node.name])


def _check_write(options: argparse.Namespace) -> None:
    files = getattr(options, "filename", [])
    if not files:
        raise UsageError("--write changes a manifest file", hint="give it with -f FILE")
    if "-" in files:
        raise UsageError(
            "--write cannot change standard input",
            hint="give a file, or take what -o yaml prints without --write",
        )
    if hasattr(options, "dry_run"):
        raise UsageError(
            "--write and --dry-run exclude each other", hint="without --write nothing is written"
        )


def _written(found: Preview, pod: Pod, wanted: Asked) -> str:
    """Write the edits to the file that holds the object, and say so."""
    from kubectl_qos.cluster.files import FileSource
    from kubectl_qos.cluster.manifests import write

    assert isinstance(wanted.source, FileSource), "--write needs -f"
    if not found.edits:
        return f"nothing is written: {_reference(pod)} is like that already in {wanted.source.title}"
    return f"{_reference(pod)} is changed in {write(wanted.source, pod, found.edits)}"


def _complain(found: Preview, *, writes: bool) -> None:
    """Raise InputError where the change cannot be made, after it was shown.

    A manifest may be written whose object cannot be changed: it can be created anew from it.
    """
    pod = found.before.pod
    if found.refusals:
        first, *others = found.refusals
        error = InputError(
            f"{_reference(pod)}: a server would refuse this: {first}",
            hint="change values that belong together in one command"
            + ("; nothing is written" if writes else ""),
        )
        for other in others:
            error.add_note(f"{_reference(pod)}: {other}")
        raise error
    if found.landing is Landing.NEVER and not writes:
        what, _, remedy = never_sentence(found).partition(": ")
        raise InputError(f"{_reference(pod)}: {what}", hint=remedy)
