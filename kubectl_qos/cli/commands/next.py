"""`kubectl qos next [TYPE/NAME]`: who dies next, by whom, and how far away that is."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Final

from kubectl_qos.cli import flags, output, resources, sources

if TYPE_CHECKING:
    from kubectl_qos.analysis.deaths import DeathRow, Deaths
    from kubectl_qos.cli.options import SourceOptions
    from kubectl_qos.cli.watch import TableView
    from kubectl_qos.k8s.snapshot import Snapshot

WIDTH: Final = 100
"""Of the picture, where stdout is no terminal."""
DESCRIPTION: Final = (
    "The coming deaths over all killers: by each limit of a container, a pod or all pods, by the kubelet's"
    " eviction, and by the kernel on a full node. What is due comes first, then the soonest where memory is"
    " known to grow, then the fullest. Without a name, the next one of each node."
)
EXAMPLES: Final = """\
examples:
  kubectl qos next                       # the next death of each node, the most urgent first
  kubectl qos next node/worker-2         # all that wait on one node
  kubectl qos next pod/db-0 -n data      # what kills this pod, and after which others
  kubectl qos next deploy/api -n shop    # what kills its pods
  kubectl qos next db-0 cache-0 -n data  # which of two pods dies first
  kubectl qos next -n shop               # the next deaths that hit a namespace
  kubectl qos next --all-contexts        # the next deaths of every cluster, the most urgent first
"""


@dataclass(frozen=True, slots=True)
class Options:
    """Of what, and how it is printed."""

    source: SourceOptions
    target: tuple[str, ...]
    all: bool
    headers: bool
    output: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `next`."""
    flags.add_target(parser, "web-0, deployment/api or node/worker-1, also several; every node without it")
    flags.add_switch(
        parser, "--all", help="of a node also limits that are far from full and that nothing approaches"
    )
    flags.add_no_headers(parser)
    flags.add_output(parser, "wide", "json", "yaml")
    flags.add_contexts(parser)
    flags.add_at(parser)


def run(options: Options) -> int:
    """Print the deaths; exit code 1 if a document could not be read. Raises QosError."""
    if options.source.is_fleet:
        from kubectl_qos.cli import fleet
        from kubectl_qos.cli.options import TableFormat

        format_ = TableFormat(options.output, options.headers)
        return fleet.print_tables(
            options.source,
            format_,
            "Death",
            lambda source: _view(*_read(replace(options, source=source))[:2]),
        )
    from kubectl_qos.analysis.deaths import FAR_PERCENT, without_far
    from kubectl_qos.present import timeline
    from kubectl_qos.present.format import count

    deaths, snapshot, resolved = _read(options)
    if options.output not in {None, "wide"}:
        from kubectl_qos.present.values.incidents import death_list_values

        output.print_document(death_list_values(deaths), str(options.output), at=snapshot.at)
    else:
        width = output.terminal_width()
        fits = width is not None and options.output != "wide"
        near = deaths if options.all or deaths.state is None else without_far(deaths)
        output.print_lines(timeline.lines(near, width or WIDTH, headers=options.headers, fits=fits))
        hidden = len(deaths.rows) - len(near.rows)
        more = [f"and {count(hidden, 'limit')} below {FAR_PERCENT} %: --all"] if hidden else []
        output.notes((*more, *_notes(near, snapshot)))
    return resolved.print_notes()


def _read(options: Options) -> tuple[Deaths, Snapshot, sources.ResolvedSource]:
    from kubectl_qos.analysis.deaths import deaths_of_pods, deaths_on_nodes

    references = resources.parse_references_or_names(options.target)
    references = [reference for reference in references if reference.name]
    named_nodes = [reference.name for reference in references if reference.kind == "Node"]
    node = named_nodes[0] if len(named_nodes) == 1 else options.source.node
    resolved = sources.resolve_source(options.source.on_node(node))
    # Who dies depends on all pods of a node: namespace and labels only say whose deaths are shown.
    is_of_pods = bool(references) and not named_nodes
    namespace = resolved.scope.namespace if is_of_pods else options.source.namespace
    wanted = replace(resolved.scope, namespace=namespace, node=node, names=frozenset())
    only_pods = is_of_pods and all(reference.kind == "Pod" for reference in references)
    scope = resolved.named(*(reference.name for reference in references)) if only_pods else wanted
    snapshot, _ = resources.with_limit_ranges(resolved, scope)
    resources.require_places(resolved, snapshot)
    if is_of_pods:
        members = (resources.find_members(reference, snapshot, resolved) for reference in references)
        pods = {(pod.namespace, pod.name): pod for pod in chain.from_iterable(members)}
        return deaths_of_pods(snapshot, [*pods.values()]), snapshot, resolved
    is_fleet = options.source.is_fleet
    for name in named_nodes:
        resources.require_node(name, snapshot)
    nodes = named_nodes or resources.find_nodes(node, snapshot, wanted, is_fleet=is_fleet)
    deaths = deaths_on_nodes(snapshot, nodes, wanted, only_next=is_fleet and node is None)
    return deaths, snapshot, resolved


def _view(deaths: Deaths, snapshot: Snapshot) -> TableView[DeathRow]:
    """The deaths of one of several clusters."""
    from kubectl_qos.cli.watch import TableView
    from kubectl_qos.present.next_death import columns, nothing
    from kubectl_qos.present.values.incidents import death_values

    return TableView(
        kind="Death",
        rows=deaths.rows,
        columns=columns(deaths.rows),
        notes=_notes(deaths, snapshot),
        key=lambda row: row,
        reference=lambda row: row.node,
        nothing=nothing(deaths),
        order=lambda row: row.death.urgency,
        values=death_values,
    )


def _notes(deaths: Deaths, snapshot: Snapshot) -> tuple[str, ...]:
    from kubectl_qos.present.next_death import BEFORE, notes
    from kubectl_qos.present.reasons import missing_sentence

    before = [BEFORE] if any(row.death.before for row in deaths.rows) else []
    of_deaths = tuple(notes(deaths))
    shown = of_deaths if deaths.rows else of_deaths[1:]
    return (*map(missing_sentence, snapshot.missing), *before, *shown)
