"""`kubectl qos compare TYPE/NAME --to RELEASE --set KEY=VALUE`: what an upgrade or a setting changes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

from kubectl_qos.cli import streams
from kubectl_qos.cli.sources import resolve_source
from kubectl_qos.cli.targets import find_pod, node_name, parse_targets
from kubectl_qos.edit.compare import Comparison, compare
from kubectl_qos.edit.preview import Effects
from kubectl_qos.errors import EXIT_ERROR, InputError, UsageError
from kubectl_qos.k8s.node_overrides import NodeOverride, apply_overrides
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.present.effects import (
    changed_pods,
    comparison_subject,
    comparison_table,
    comparison_values,
    kubelet_sections,
    node_sections,
    pod_sections,
)
from kubectl_qos.present.output import marked_lines, to_json, to_yaml
from kubectl_qos.present.reasons import missing_sentence


def run(options: argparse.Namespace) -> int:
    """Print what changes; exit code 1 if a document was wanting. Raises QosError."""
    release = getattr(options, "to", None)
    settings = [NodeOverride.parse(text) for text in getattr(options, "settings", [])]
    if release is None and not settings:
        raise UsageError("nothing to compare with", hint="give --to 1.37, or --set cgroupDriver=cgroupfs")
    words = getattr(options, "target", [])
    node = node_name(words)
    targets = [] if node is not None else parse_targets(words)
    if len(targets) > 1:
        raise UsageError("one pod, workload or node can be compared at a time")
    if node is not None:
        options.node = node
    wanted = resolve_source(options)
    if targets:
        wanted = replace(wanted, scope=replace(wanted.scope, names=frozenset({targets[0].name})))
    snapshot = wanted.source.snapshot(wanted.scope)
    pod = find_pod(targets[0], snapshot, wanted) if targets else None
    comparisons = _comparisons(snapshot, wanted.scope, settings, release, pod)
    output = getattr(options, "output", None)
    if output is None:
        _print(comparisons, settings, wanted.scope, pod)
    else:
        _print_values(comparisons, settings, wanted.scope, pod, output)
    streams.notes(map(missing_sentence, snapshot.missing))
    streams.notes(f"error: {problem}" for problem in wanted.problems)
    return EXIT_ERROR if wanted.failed else 0


def _comparisons(
    snapshot: Snapshot, scope: Scope, settings: Sequence[NodeOverride], release: str | None, pod: Pod | None
) -> list[Comparison]:
    """A comparison for each node that has pods asked for, with all of its pods, because they share ranks."""
    by_node = {
        name: [one for one in pods if not one.is_terminal] for name, pods in snapshot.by_node().items()
    }
    if pod is not None:
        names = [pod.node_name]
        if all(one is not pod for one in by_node.get(pod.node_name, ())):
            by_node.setdefault(pod.node_name, []).append(pod)
    else:
        names = sorted({one.node_name for one in snapshot.pods if scope.matches(one) and not one.is_terminal})
    if not names:
        raise InputError("no pods to compare", hint="look at the namespace, the node and the selector")
    setups = {name: snapshot.setup(name) for name in names}
    return [
        compare(by_node[name], setup, apply_overrides(setup, settings, release), snapshot.usage)
        for name, setup in setups.items()
    ]


def _of_scope(comparison: Comparison, scope: Scope, pod: Pod | None) -> list[Effects]:
    if pod is not None:
        return [comparison.of(pod)]
    return [one for one in comparison.pods if scope.matches(one.before.pod)]


def _print(
    comparisons: Sequence[Comparison], settings: Sequence[NodeOverride], scope: Scope, pod: Pod | None
) -> None:
    if pod is not None:
        found = comparisons[0]
        parts = (*kubelet_sections(found), *pod_sections(found.of(pod)))
        streams.out([comparison_subject(found, settings), *marked_lines(parts)])
        return
    for comparison in comparisons:
        streams.out(
            [
                comparison_subject(comparison, settings),
                *marked_lines((*kubelet_sections(comparison), *node_sections(comparison))),
            ]
        )
    shown = {id(one) for comparison in comparisons for one in _of_scope(comparison, scope, None)}
    differing = [one for one in changed_pods(comparisons) if id(one) in shown]
    if differing:
        streams.out(["", *comparison_table(differing)])
    same = len(shown) - len(differing)
    if same:
        streams.notes([f"{same} of {len(shown)} pods stay as they are"])


def _print_values(
    comparisons: Sequence[Comparison],
    settings: Sequence[NodeOverride],
    scope: Scope,
    pod: Pod | None,
    output: str,
) -> None:
    values = [comparison_values(one, settings, _of_scope(one, scope, pod)) for one in comparisons]
    found = values[0] if len(values) == 1 else {"kind": "List", "items": values}
    streams.out_text(to_json(found) if output == "json" else to_yaml(found))
