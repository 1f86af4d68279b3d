"""`kubectl qos explain TYPE/NAME`: why this class, score, cgroup values and eviction rank."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from kubectl_qos.cli import output, resources
from kubectl_qos.cli.flags import add_at, add_output, add_target
from kubectl_qos.cli.resources import Reference, find_pod, parse_references, reference, require_places
from kubectl_qos.cli.sources import ResolvedSource, SourceNeeds, open_any_store, resolve_source
from kubectl_qos.errors import InputError, QosError, UsageError
from kubectl_qos.k8s.quantity import parse_time

if TYPE_CHECKING:
    from kubectl_qos.cli.options import SourceOptions
    from kubectl_qos.k8s.objects import Pod
    from kubectl_qos.k8s.snapshot import Snapshot
    from kubectl_qos.k8s.usage import PodKey
    from kubectl_qos.present.explanation import Explanation

DESCRIPTION: Final = "Everything about one pod: class, oom_score_adj, rank, cgroup values, eviction."
EXAMPLES: Final = """\
examples:
  kubectl qos explain deploy/api -n shop                    # the pod of a Deployment that dies first
  kubectl qos explain pod/search-0 -n shop --usage=summary  # with what the kernel cannot drop
  kubectl qos explain -f deployment.yaml --node-memory 16Gi  # a manifest: its class, and how to be Guaranteed
"""


class Options(NamedTuple):
    """What to explain."""

    source: SourceOptions
    target: tuple[str, ...]
    output: str | None
    from_dump: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `explain`."""
    add_target(parser, "search-0, pod/search-0 or deployment/api, also several")
    add_output(parser, "json", "yaml")
    add_at(parser)
    parser.add_argument(
        "--from-dump",
        metavar="FILE|-",
        help="read memory.events of its containers from the output of `kubectl qos host -o json` on its node",
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
    # Only the living demo has workloads.
    needs = SourceNeeds(living_demo=any(target.kind != "Pod" for target in references))
    resolved = resolve_source(options.source, needs)
    explanations, at, missing = _explain(resolved, references, options)
    if options.output is not None:
        from kubectl_qos.present.values.pods import explanation_values

        output.print_items([*map(explanation_values, explanations)], options.output, at=at)
    else:
        for number, explanation in enumerate(explanations):
            if number:
                output.print_lines([""])
            output.print_prose(text_lines(explanation))
    code = resolved.print_notes()
    if missing:
        raise missing[0]
    return code


def _explain(
    resolved: ResolvedSource, references: list[Reference], options: Options
) -> tuple[list[Explanation], str, list[QosError]]:
    """Explain each named pod, or every pod in scope, ranked among the pods of its node.

    Return the explanations, `Snapshot.at`, and the errors of references without a pod. Raises QosError if no
    reference has one.
    """
    from kubectl_qos.analysis.pod_facts import PodFacts
    from kubectl_qos.present.explanation import explain_pod, with_fix

    scope = resolved.scope_of(references)
    snapshot, ranges = resources.with_limit_ranges(resolved, scope)
    pods, missing = _find_pods(references, snapshot, resolved)
    if not references:
        pods = [pod for pod in snapshot.pods if scope.matches(pod)]
        if not pods:
            require_places(resolved, snapshot)
            resources.require_requests(snapshot)
            raise InputError("no pods to explain", hint="look at the namespace and the selector")
    if options.source.at is not None or options.source.has_history:
        snapshot = _with_parts(snapshot, pods, options.source)
    events = _read_events(snapshot, pods, options.from_dump) if options.from_dump is not None else {}
    for pod in pods:
        if names := ranges.get((pod.kind, pod.namespace, pod.name)):
            output.note(f"{reference(pod)} has the defaults of LimitRange {names}")
    resources.note_injectors(resolved, snapshot, pods)
    now = resolved.source.now()
    logs = resolved.source.kernel_logs()
    explanations, on_node = [], dict[str, PodFacts]()
    for pod in pods:
        counts, neighbour = events.get(pod.key, {}), on_node.get(pod.node_name)
        explanation = explain_pod(pod, snapshot, now, events=counts, logs=logs, neighbour=neighbour)
        on_node[pod.node_name] = explanation.facts
        explanations.append(explanation)
    # The search for fixes of all pods of a file would take minutes.
    if references or len(explanations) == 1:
        explanations = [with_fix(explanation, snapshot) for explanation in explanations]
    return explanations, snapshot.at, missing


def _find_pods(
    references: list[Reference], snapshot: Snapshot, resolved: ResolvedSource
) -> tuple[list[Pod], list[QosError]]:
    """Return the named pods, and the errors of missing ones. Raises QosError if none is there."""
    pods, missing = [], list[QosError]()
    for target in references:
        try:
            pods.append(find_pod(target, snapshot, resolved))
        except QosError as error:
            missing.append(error)
    for other in missing[1:]:
        missing[0].add_note(str(other))
    if missing and not pods:
        raise missing[0]
    return pods, missing


def _with_parts(snapshot: Snapshot, pods: Sequence[Pod], source: SourceOptions) -> Snapshot:
    """Add the parts of these pods' memory. For all pods of a cluster this would be too much to read."""
    from dataclasses import replace

    from kubectl_qos.k8s.snapshot import Missing
    from kubectl_qos.metrics.series import with_parts

    at, usage = parse_time(snapshot.at), dict(snapshot.usage)
    moment = at.timestamp() if at is not None else None
    try:
        store, _ = open_any_store(source)
        keys = [key for pod in pods if (key := pod.key) in usage]
        usage |= {key: with_parts(store, key, usage[key], moment) for key in keys}
    except QosError as error:
        missing = Missing("what memory consists of", str(error), error.hint)
        return replace(snapshot, missing=(*snapshot.missing, missing))
    return replace(snapshot, usage=usage)


def _read_events(
    snapshot: Snapshot, pods: Sequence[Pod], dump: str
) -> dict[PodKey, dict[str, dict[str, int]]]:
    """Return memory.events of the containers of these pods, from a dump of their node."""
    from kubectl_qos.cli.verify_readers import VerifiedPods, read_from_dump

    readings, _ = read_from_dump(dump, VerifiedPods(tuple(pods), snapshot, pods[0].node_name))
    return {pod.key: reading.observed.memory_events for pod, reading in zip(pods, readings, strict=True)}
