"""`kubectl qos tree [node/NAME | pod/NAME]`: the cgroup tree with the values that are written there."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kubectl_qos.cli import streams
from kubectl_qos.cli.sources import ResolvedSource, resolve_source
from kubectl_qos.cli.targets import Target, find_pod, node_name, parse_targets
from kubectl_qos.errors import EXIT_ERROR, InputError, UsageError
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.present.output import to_json, to_yaml
from kubectl_qos.present.tree import file_lines, tree_lines, tree_notes, tree_subject, tree_values
from kubectl_qos.qos.cgroup.tree import CgroupTree, cgroup_tree, path_to, with_cgroup_version


@dataclass(frozen=True, slots=True)
class _Found:
    """The trees, the snapshot that they were made from, and how many pods have no node to be on."""

    trees: tuple[CgroupTree, ...]
    snapshot: Snapshot
    unbound: int = 0


def run(options: argparse.Namespace) -> int:
    """Print the trees; exit code 1 if a document was wanting. Raises QosError."""
    words = getattr(options, "target", [])
    files, output = getattr(options, "files", False), getattr(options, "output", None)
    if files and output:
        raise UsageError("--files and -o cannot be used together")
    options.usage = "none"  # cgroup values do not depend on it, and asking takes time
    node = node_name(words)
    targets = [] if node is not None else parse_targets(words)
    if len(targets) > 1:
        raise UsageError("one node or pod can be shown at a time")
    if node is not None:
        options.node = node
    wanted = resolve_source(options)
    if not targets and getattr(options, "namespace", None) is None:
        # A node's tree is of all its pods; the context's own namespace restricts single pods only.
        wanted = replace(wanted, scope=replace(wanted.scope, namespace=None))
    version = getattr(options, "cgroup_version", None)
    found = _one_pod(targets[0], wanted, version) if targets else _nodes(wanted, version)
    notes = tree_notes(found.trees, found.snapshot.missing)
    if found.unbound:
        pods = "pod without a node is" if found.unbound == 1 else "pods without a node are"
        notes.append(f"{found.unbound} {pods} in no tree")
    if output is None:
        _print(found.trees, files=files)
        streams.notes(notes)
    else:
        _print_values(found, output)
    streams.notes(f"error: {problem}" for problem in wanted.problems)
    return EXIT_ERROR if wanted.failed else 0


def _nodes(wanted: ResolvedSource, version: int | None) -> _Found:
    """The tree of the node asked for or of each one; of pods without any node, that of an assumed one."""
    scope = wanted.scope
    snapshot = wanted.source.snapshot(scope)
    by_node = snapshot.by_node()
    names = sorted(name for name in {*snapshot.nodes, *by_node} if name)
    if scope.node is not None:
        if scope.node not in names:
            raise InputError(
                f'nodes "{scope.node}" not found in {wanted.source.title}',
                hint="kubectl qos top -A -o wide names the nodes that have pods",
            )
        names = [scope.node]
    unbound = [pod for pod in by_node.get("", []) if scope.matches(pod)]
    if not names and not unbound:
        raise InputError("no nodes and no pods to show", hint="look at the namespace and the selector")
    trees = tuple(
        cgroup_tree(by_node.get(name, []), _setup(snapshot, name, version), scope.matches)
        for name in names or [""]
    )
    return _Found(trees, snapshot, len(unbound) if names else 0)


def _one_pod(target: Target, wanted: ResolvedSource, version: int | None) -> _Found:
    """The way to one pod, or to the pod that a workload's template would make."""
    snapshot = wanted.source.snapshot(replace(wanted.scope, names=frozenset({target.name})))
    pod = find_pod(target, snapshot, wanted)
    if pod.is_terminal:
        raise InputError(f"pod {pod.name} has ended: its cgroup is gone")
    pods = snapshot.by_node().get(pod.node_name, [])
    if all(one is not pod for one in pods):
        pods = [*pods, pod]
    return _Found((path_to(pod, pods, _setup(snapshot, pod.node_name, version)),), snapshot)


def _setup(snapshot: Snapshot, node: str, version: int | None) -> NodeSetup:
    setup = snapshot.setup(node)
    return setup if version is None else with_cgroup_version(setup, version)


def _print(trees: Sequence[CgroupTree], *, files: bool) -> None:
    """The trees, each under its node; flat lines name the node only where there are several."""
    width = shutil.get_terminal_size().columns if sys.stdout is not None and sys.stdout.isatty() else None
    for number, tree in enumerate(trees):
        if number:
            streams.out([""])
        if not files:
            streams.out([tree_subject(tree), *(line.text for line in tree_lines(tree, width))])
            continue
        if len(trees) > 1:
            streams.out([f"# {tree_subject(tree)}"])
        streams.out(file_lines(tree))


def _print_values(found: _Found, output: str) -> None:
    trees = [tree_values(tree, tree_notes([tree], found.snapshot.missing)) for tree in found.trees]
    values = trees[0] if len(trees) == 1 else {"kind": "List", "items": trees}
    streams.out_text(to_json(values) if output == "json" else to_yaml(values))
