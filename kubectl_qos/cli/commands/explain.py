"""`kubectl qos explain TYPE/NAME`: why this class, score, cgroup values and eviction rank."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kubectl_qos.cli import output
from kubectl_qos.cli.flags import add_at, add_output, add_target
from kubectl_qos.cli.resources import Reference, find_pod, parse_references, require_places
from kubectl_qos.cli.sources import ResolvedSource, resolve_source
from kubectl_qos.errors import InputError, UsageError

if TYPE_CHECKING:
    from kubectl_qos.cli.options import SourceOptions
    from kubectl_qos.present.explanation import Explanation

DESCRIPTION: Final = "Everything about one pod: class, oom_score_adj, rank, cgroup values, eviction."


@dataclass(frozen=True, slots=True)
class Options:
    """What to explain."""

    source: SourceOptions
    target: tuple[str, ...]
    output: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `explain`."""
    add_target(parser, "pod/web-0")
    add_output(parser, "json", "yaml")
    add_at(parser)


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
    explanations, at = _explain(resolved, references)
    if options.output is not None:
        from kubectl_qos.present.values.pods import explanation_values

        output.print_items([*map(explanation_values, explanations)], options.output, at=at)
    else:
        for number, explanation in enumerate(explanations):
            if number:
                output.print_lines([""])
            output.print_lines(text_lines(explanation))
    return resolved.print_notes()


def _explain(resolved: ResolvedSource, references: list[Reference]) -> tuple[list[Explanation], str]:
    """Each pod, ranked among the pods of its node, and `Snapshot.at`; without references, every pod.

    Raises InputError.
    """
    from kubectl_qos.present.explanation import explain_pod

    scope = resolved.named(references) if references else resolved.scope
    snapshot = resolved.source.snapshot(scope)
    pods = [find_pod(reference, snapshot, resolved) for reference in references]
    if not references:
        pods = [pod for pod in snapshot.pods if scope.matches(pod)]
        if not pods:
            require_places(resolved, snapshot)
            raise InputError("no pods to explain", hint="look at the namespace and the selector")
    return [explain_pod(pod, snapshot, resolved.source.now()) for pod in pods], snapshot.at
