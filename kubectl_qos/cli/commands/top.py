"""`kubectl qos top`: pods by OOM kill priority, or namespaces, workloads and nodes by their memory."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kubectl_qos.cli import flags, output, resources, sources
from kubectl_qos.errors import EXIT_ERROR, UsageError

if TYPE_CHECKING:
    from kubectl_qos.cli.options import SourceOptions, TableOptions
    from kubectl_qos.cli.tables import TableView
    from kubectl_qos.cli.top_tables import GroupTable, NodeTable, PodTable

OUTPUTS: Final = ("wide", "json", "yaml", "csv", "name")
RISKS: Final = ("none", "low", "medium", "high", "next")
DESCRIPTION: Final = (
    "List pods by OOM kill priority, node by node: the node of the next death and its next victim first.\n"
    "Or list namespaces or workloads, those with the next victims first, or nodes, those under pressure"
    " first, then the fullest."
)
EXAMPLES: Final = """\
examples:
  kubectl qos top -A --min-risk high         # pods near a limit, and the next victim of each node
  kubectl qos top -A --min-risk next         # the next victim of each node
  kubectl qos top namespaces                 # namespaces: memory in use, requests and limits of their pods
  kubectl qos top workloads -A --sort-by memory  # Deployments and so on, the largest first
  kubectl qos top nodes                      # nodes: memory by class, requests, limits, worst case, pressure
  kubectl qos top nodes -o wide              # and in Mi, with the kubelets' eviction thresholds
  kubectl qos top nodes --contexts 'prod-*'  # the nodes of several clusters, those under pressure first
  kubectl qos top nodes -l pool=a            # nodes with this label, as in kubectl
  kubectl qos top deploy/api -n shop -L app  # the pods of a Deployment, with a label

columns of nodes:
  MEM_G MEM_B MEM_E   in use (working set) by Guaranteed, Burstable and BestEffort pods
  %USED               in use by the node, of the allocatable memory, as kubectl top nodes shows it
  %REQ                requests, of what is allocatable
  %LIM                limits, of the capacity; + where some containers have none
  %WORST              in use once every container with a limit has reached it and the others stay as they
                      are, of the capacity; + as above, UNLIMITED (-o wide) counts the pods
  TO_EVICTION         (-o wide) how much more pods can use, at most, before the kubelet evicts some
  NEXT_DEATH          who dies next, by which limit or killer, and how much more memory that takes
"""


class Options(NamedTuple):
    """Which pods or nodes are shown, and how."""

    source: SourceOptions
    target: tuple[str, ...]
    table: TableOptions


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `top`."""
    parser.add_argument(
        "target",
        nargs="*",
        metavar="TYPE/NAME",
        help="only these pods: search-0, pod/search-0, pods search-0, or deploy/api for its pods; or"
        " namespaces, workloads or nodes; of nodes also node/worker-2 or nodes worker-2",
    )
    flags.add_switch(parser, "--containers", help="one row for each container")
    flags.add_choice(
        parser,
        "--min-risk",
        RISKS,
        help="only pods of at least this risk: low has processes, medium is flagged PRIORITY or OVER-REQUEST,"
        " high is flagged NEAR-LIMIT, next is the next victim of its node (RANK 1)",
    )
    flags.add_output(parser, *OUTPUTS)
    flags.add_switch(parser, "-w", "--watch", help="follow the cluster; ctrl-c ends it")
    flags.add_no_headers(parser)
    flags.add_repeated(parser, "-L", "--label-columns", metavar="LABEL,…", help="labels to show as columns")
    flags.add_switch(parser, "--show-labels", help="all labels as the last column")
    flags.add_switch(parser, "--show-kind", help="names as pod/search-0")
    parser.add_argument(
        "--chunk-size",
        type=int,
        metavar="N",
        help="accepted as in kubectl, without effect: lists come in pages of 500",
    )
    flags.add_switch(parser, "--ignore-not-found", help="do not fail if a name does not exist")
    parser.add_argument(
        "--sort-by",
        metavar="COLUMN",
        help="any column, also one of -o wide; for pods `eviction` gives the kubelet's order",
    )
    flags.add_contexts(parser)
    flags.add_at(parser)


def run(options: Options) -> int:
    """Print the table; exit code 1 if a document could not be read or a named object was not found."""
    from kubectl_qos.cli.tables import print_table, watch

    group = resources.parse_group(options.target)
    references = [] if group else resources.parse_references_or_names(options.target)
    if options.source.is_fleet:
        from kubectl_qos.cli import tables

        tables.refuse_for_several(options.source, {"-w": options.table.watch})
        kind = f"{group}Rank" if group else "NodeMemory" if _is_of_nodes(references) else "PodRank"

        def read(source: SourceOptions) -> TableView[Any]:
            command, resolved = _resolve(options._replace(source=source), group, references)
            return _read(command, resolved, references, options.table)

        return tables.print_tables(options.source, options.table.format, kind, read)
    command, resolved = _resolve(options, group, references)
    if options.table.watch:
        return watch(command, resolved, options.table.format)
    view = _read(command, resolved, references, options.table)
    if view.rows or not (view.missing or resolved.failed):
        print_table(view, options.table.format, resolved.source.now())
    resolved.print_notes()
    output.notes((*(view.ages if options.table.format.output != "name" else ()), *view.notes))
    for error in view.missing:
        output.print_error(error)
    return EXIT_ERROR if resolved.failed or view.missing else 0


def _is_of_nodes(references: Sequence[resources.Reference]) -> bool:
    return bool(references) and references[0].kind == "Node"


def _workloads(references: Iterable[resources.Reference]) -> list[resources.Reference]:
    return [reference for reference in references if reference.kind not in {"Pod", "Node"}]


def _resolve(
    options: Options, group: str | None, references: Sequence[resources.Reference]
) -> tuple[GroupTable | PodTable | NodeTable, sources.ResolvedSource]:
    from kubectl_qos.cli.tables import first_rows
    from kubectl_qos.cli.top_tables import GroupTable, NodeTable, PodTable

    source, names = options.source, [reference.name for reference in references if reference.name]
    of_nodes = _is_of_nodes(references)
    if of_nodes and source.field_selector:
        raise UsageError("--field-selector cannot be used with nodes", "it works with kubectl qos top pods")
    command: GroupTable | PodTable | NodeTable
    if group:
        command = GroupTable(options.table, group)
    elif of_nodes:
        command = NodeTable(options.table, names)
    else:
        command = PodTable(options.table, references, is_fleet=source.is_fleet)
    if of_nodes and len(names) == 1 and source.node is None:
        source = source.on_node(names[0])
    # Pods of a workload have other names.
    pod_names = () if _workloads(references) and not source.selector else names
    needs = sources.SourceNeeds(
        only_ranking=command.only_ranking,
        living_demo=options.table.watch,
        show_first=first_rows(command.view, options.table.format),
    )
    return command, sources.resolve_source(source, needs, pod_names)


def _read(
    command: GroupTable | PodTable | NodeTable,
    resolved: sources.ResolvedSource,
    references: Sequence[resources.Reference],
    options: TableOptions,
) -> TableView[Any]:
    """Return the table and errors for missing names. Raises ApiError without the node or namespace."""
    snapshot = command.snapshot(resolved)
    view: TableView[Any] = command.view(snapshot, command.scope(resolved), resolved.source.now())
    missing = view.missing
    if not view.rows:
        missing = (*missing, *resources.missing_workloads(_workloads(references), resolved))
        if missing:
            missing = resources.missing_namespace(resolved) or missing
        elif not resolved.failed:
            resources.require_places(resolved, snapshot, may_be_empty=True)
    if options.ignore_not_found and missing:
        others = (error for error in missing if getattr(error, "reason", "") != "NotFound")
        return view._replace(missing=tuple(others), nothing="")
    return view._replace(missing=missing)
