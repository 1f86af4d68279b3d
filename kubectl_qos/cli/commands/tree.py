"""`kubectl qos tree [node/NAME | pod/NAME]`: the cgroup tree with the values written to it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from kubectl_qos.cli import output, resources, sources
from kubectl_qos.cli.flags import add_at, add_output, add_switch, add_target
from kubectl_qos.errors import InputError, UsageError
from kubectl_qos.present.format import count

if TYPE_CHECKING:
    from kubectl_qos.cli.options import SourceOptions
    from kubectl_qos.k8s.snapshot import Snapshot
    from kubectl_qos.qos.cgroup.tree import CgroupTree

DESCRIPTION: Final = (
    "Show the cgroups of kubepods, the classes, pods and containers, with the values that kubelet and runtime"
    " write there."
)


class Options(NamedTuple):
    """Whose trees are printed, and how."""

    source: SourceOptions
    target: tuple[str, ...]
    by_file: bool
    output: str | None


class _Trees(NamedTuple):
    trees: Iterator[CgroupTree]
    """An iterator: for 50,000 pods all trees together take 300 MB."""
    total: int
    snapshot: Snapshot
    unbound: int = 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `tree`."""
    add_target(
        parser, "node/worker-2, or for the paths to pods pod/db-0 or deploy/api; every node without it"
    )
    add_switch(parser, "--files", dest="by_file", help="one line for each file, with its whole path")
    add_output(parser, "json", "yaml")
    add_at(parser)


def run(options: Options) -> int:
    """Print the trees; exit code 1 if a document could not be read. Raises QosError."""
    from kubectl_qos.present.tree import tree_notes

    if options.by_file and options.output:
        raise UsageError("--files and -o cannot be used together")
    node, reference = resources.parse_node_or_reference(
        options.target, "one node or pod can be shown at a time"
    )
    resolved = sources.resolve_source(options.source.without_usage().on_node(node))
    if reference is None and options.source.namespace is None:
        # A node's tree has all of its pods, so the namespace of the context does not count.
        resolved = resolved._replace(scope=resolved.scope._replace(namespace=None))
    trees = _pod_tree(reference, resolved) if reference else _node_trees(resolved)
    if options.output is None:
        notes = tree_notes(_printed(trees, by_file=options.by_file), trees.snapshot.missing)
        if trees.unbound:
            notes.append(f"{count(trees.unbound, 'pod')} without a node left out")
        output.notes(notes)
    else:
        from kubectl_qos.present.values.pods import tree_values

        missing = trees.snapshot.missing
        values = (tree_values(tree, tree_notes([tree], missing)) for tree in trees.trees)
        output.print_items(values, options.output, at=trees.snapshot.at)
    return resolved.print_notes()


def _node_trees(resolved: sources.ResolvedSource) -> _Trees:
    """Return the trees of one node or of all; if no pod has a node, the tree of an assumed node."""
    from kubectl_qos.qos.cgroup.tree import cgroup_tree

    scope = resolved.scope
    snapshot = resolved.source.snapshot(scope)
    by_node = snapshot.by_node()
    names = sorted(name for name in {*snapshot.nodes, *by_node} if name)
    if scope.node is not None:
        resources.require_node(scope.node, snapshot)
        names = [scope.node]
    unbound = [pod for pod in by_node.get("", []) if scope.matches(pod)]
    resources.require_places(resolved, snapshot)
    if not names and not unbound:
        raise InputError("no nodes and no pods to show", hint="look at the namespace and the selector")
    trees = (
        cgroup_tree(by_node.get(name, []), snapshot.setup(name), scope.matches) for name in names or [""]
    )
    return _Trees(trees, max(len(names), 1), snapshot, len(unbound) if names else 0)


def _pod_tree(reference: resources.Reference, resolved: sources.ResolvedSource) -> _Trees:
    from kubectl_qos.qos.cgroup.tree import path_to

    snapshot, trees = resolved.source.snapshot(resolved.scope_of([reference])), []
    for pod in resources.find_pods_or_template(reference, snapshot, resolved):
        resources.require_cgroup(pod)
        pods = snapshot.by_node().get(pod.node_name, [])
        if all(other is not pod for other in pods):
            pods = [*pods, pod]
        trees.append(path_to(pod, pods, snapshot.setup(pod.node_name)))
    return _Trees(iter(trees), len(trees), snapshot)


def _printed(trees: _Trees, *, by_file: bool) -> Iterator[CgroupTree]:
    """Print trees and yield them; the node's name is above each, but not above the only list of files."""
    from kubectl_qos.present.tree import file_lines, tree_lines, tree_subject

    width = output.terminal_width()
    for number, tree in enumerate(trees.trees):
        if number:
            output.print_lines([""])
        if not by_file:
            output.print_lines([tree_subject(tree), *tree_lines(tree, width)])
        else:
            output.print_lines([f"# {tree_subject(tree)}"] if trees.total > 1 else [])
            output.print_lines(file_lines(tree))
        yield tree
