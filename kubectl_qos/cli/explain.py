"""`kubectl qos explain TYPE/NAME`: why this class, score, cgroup values and eviction rank."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

from kubectl_qos.cli import streams
from kubectl_qos.cli.sources import ResolvedSource, resolve_source
from kubectl_qos.cli.targets import Target, find_pod, parse_targets
from kubectl_qos.errors import EXIT_ERROR, InputError, UsageError
from kubectl_qos.present.explanation import Explanation, as_values, explain_pod, text_lines
from kubectl_qos.present.output import to_json, to_yaml


def run(options: argparse.Namespace) -> int:
    """Print one explanation per pod; exit code 1 if a document was wanting. Raises QosError."""
    targets = parse_targets(getattr(options, "target", []))
    files = getattr(options, "filename", None)
    if not targets and not files:
        raise UsageError(
            "You must provide one or more resources by argument or filename.",
            hint="kubectl qos explain pod/web-0, or kubectl qos explain -f pod.yaml",
        )
    wanted = resolve_source(options)
    found = explanations(wanted, targets)
    output = getattr(options, "output", None)
    values = [as_values(one) for one in found]
    if output == "json":
        streams.out_text(to_json(values[0] if len(values) == 1 else {"kind": "List", "items": values}))
    elif output == "yaml":
        streams.out_text(to_yaml(values[0] if len(values) == 1 else {"kind": "List", "items": values}))
    else:
        for number, one in enumerate(found):
            if number:
                streams.out([""])
            streams.out(text_lines(one))
    streams.notes(f"error: {problem}" for problem in wanted.problems)
    return EXIT_ERROR if wanted.failed else 0


def explanations(wanted: ResolvedSource, targets: Sequence[Target]) -> list[Explanation]:
    """Each target explained, ranked among the pods of its node; without targets, every pod.

    Raises InputError where there is none.
    """
    scope = wanted.scope
    if targets:
        scope = replace(scope, names=frozenset(target.name for target in targets))
    snapshot = wanted.source.snapshot(scope)
    pods = [find_pod(target, snapshot, wanted) for target in targets]
    if not targets:
        pods = [pod for pod in snapshot.pods if scope.matches(pod)]
        if not pods:
            raise InputError("no pods to explain", hint="look at the namespace and the selector")
    return [explain_pod(pod, snapshot, wanted.source.now()) for pod in pods]
