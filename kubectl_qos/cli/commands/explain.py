"""`kubectl qos explain TYPE/NAME`: why this class, score, cgroup values and eviction rank."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from kubectl_qos.cli import output
from kubectl_qos.cli.flags import add_at, add_output, add_target
from kubectl_qos.cli.resources import Reference, find_pod, parse_references, reference, require_places
from kubectl_qos.cli.sources import ResolvedSource, resolve_source
from kubectl_qos.errors import InputError, QosError, UsageError

if TYPE_CHECKING:
    from kubectl_qos.cli.options import SourceOptions
    from kubectl_qos.cluster.source import Source
    from kubectl_qos.k8s.objects import Pod
    from kubectl_qos.k8s.snapshot import Snapshot
    from kubectl_qos.k8s.usage import PodKey
    from kubectl_qos.present.explanation import Explanation

DESCRIPTION: Final = "Everything about one pod: class, oom_score_adj, rank, cgroup values, eviction."


@dataclass(frozen=True, slots=True)
class Options:
    """What to explain."""

    source: SourceOptions
    target: tuple[str, ...]
    output: str | None
    from_dump: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `explain`."""
    add_target(parser, "pod/web-0")
    add_output(parser, "json", "yaml")
    add_at(parser)
    parser.add_argument(
        "--from-dump",
        metavar="FILE|-",
        help="with memory.events of its containers from what `kubectl qos host -o json` wrote on the node",
    )


def run(options: Options) -> int:
    """Print one explanation per pod; exit code 1 if a document could not be read. Raises QosError."""
    from kubectl_qos.present.explanation import text_lines

    references = parse_references(options.target, any_kind=options.source.has_files)
    if not references and not options.source.has_files:
        raise UsageError(
            "You must provide one or more resources by argument or filename.",
            hint="kubectl qos explain pod/web-0, or kubectl qos explain -f pod.yaml",
        )
    # Only the demo that lives has workloads.
    resolved = resolve_source(options.source, lives=any(one.kind != "Pod" for one in references))
    explanations, at = _explain(resolved, references, options)
    if options.output is not None:
        from kubectl_qos.present.values.pods import explanation_values

        output.print_items([*map(explanation_values, explanations)], options.output, at=at)
    else:
        for number, explanation in enumerate(explanations):
            if number:
                output.print_lines([""])
            output.print_lines(text_lines(explanation))
    return resolved.print_notes()


def _explain(
    resolved: ResolvedSource, references: list[Reference], options: Options
) -> tuple[list[Explanation], str]:
    """Each pod, ranked among the pods of its node, and `Snapshot.at`; without references, every pod.

    Raises InputError.
    """
    from kubectl_qos.present.explanation import explain_pod

    # The pods of a workload have other names than it has.
    only_pods = references and all(one.kind == "Pod" for one in references)
    scope = resolved.named(references) if only_pods else resolved.scope
    snapshot, notes = _with_limit_ranges(resolved.source, resolved.source.snapshot(scope))
    pods = [find_pod(one, snapshot, resolved) for one in references]
    if not references:
        pods = [pod for pod in snapshot.pods if scope.matches(pod)]
        if not pods:
            require_places(resolved, snapshot)
            raise InputError("no pods to explain", hint="look at the namespace and the selector")
    if options.source.at is not None or options.source.has_history:
        snapshot = _with_parts(snapshot, pods, options.source)
    events = _read_events(snapshot, pods, options.from_dump) if options.from_dump is not None else {}
    output.notes(notes[key] for pod in pods if (key := (pod.kind, pod.namespace, pod.name)) in notes)
    now, none = resolved.source.now(), dict[str, dict[str, int]]()
    found = [
        explain_pod(pod, snapshot, now, events=events.get((pod.namespace, pod.name), none)) for pod in pods
    ]
    return found, snapshot.at


def _with_limit_ranges(
    source: Source, snapshot: Snapshot
) -> tuple[Snapshot, Mapping[tuple[str, str, str], str]]:
    """With what LimitRanges in the same files add to pods that no server has stored, and sentences on it."""
    from kubectl_qos.cluster.files import FileSource

    if not isinstance(source, FileSource) or all(pod.metadata.uid for pod in snapshot.pods):
        return snapshot, {}
    from kubectl_qos.edit.findings import added_values
    from kubectl_qos.edit.related import LIMIT_RANGES, convert_all
    from kubectl_qos.k8s.defaulting import default_pod
    from kubectl_qos.k8s.quota import with_limit_ranges
    from kubectl_qos.present.effects import value_name

    ranges, pods, notes = convert_all([*source.raw_objects()], LIMIT_RANGES), [*snapshot.pods], {}
    for index, pod in enumerate(pods):
        own = [one for one in ranges if one.metadata.namespace == pod.namespace and not pod.metadata.uid]
        defaulted = default_pod(pod, snapshot.setup(pod.node_name).release) if own else pod
        filled = with_limit_ranges(defaulted, own)
        added = [f"{value_name(*target)} {value}" for *target, value in added_values(defaulted, filled)]
        if added:
            pods[index], names = filled, ", ".join(one.metadata.name for one in own)
            text = f"{reference(pod)}: LimitRange {names} adds {', '.join(added)}"
            notes[pod.kind, pod.namespace, pod.name] = text
    return replace(snapshot, pods=tuple(pods)), notes


def _with_parts(snapshot: Snapshot, pods: Sequence[Pod], source: SourceOptions) -> Snapshot:
    """With what the memory of these pods consists of, which is read of few pods alone: it is much."""
    from kubectl_qos.cli.sources import open_any_store
    from kubectl_qos.k8s.quantity import parse_time
    from kubectl_qos.k8s.snapshot import Missing
    from kubectl_qos.metrics.series import with_parts

    at, usage = parse_time(snapshot.at), dict(snapshot.usage)
    moment = at.timestamp() if at is not None else None
    try:
        store, _ = open_any_store(source)
        keys = [key for pod in pods if (key := (pod.namespace, pod.name)) in usage]
        usage |= {key: with_parts(store, key, usage[key], moment) for key in keys}
    except QosError as error:
        missing = Missing("what memory consists of", str(error), error.hint)
        return replace(snapshot, missing=(*snapshot.missing, missing))
    return replace(snapshot, usage=usage)


def _read_events(
    snapshot: Snapshot, pods: Sequence[Pod], dump: str
) -> dict[PodKey, dict[str, dict[str, int]]]:
    """memory.events of the containers of these pods, in a dump of their node."""
    from kubectl_qos.cli.verify_readers import VerifiedPods, read_from_dump

    readings, _ = read_from_dump(dump, VerifiedPods(tuple(pods), snapshot, pods[0].node_name))
    return {
        (pod.namespace, pod.name): reading.observed.memory_events
        for pod, reading in zip(pods, readings, strict=True)
    }
