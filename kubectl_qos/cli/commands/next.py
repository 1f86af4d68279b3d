"""`kubectl qos next [TYPE/NAME]`: who dies next, what kills it, and how far away that is."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from kubectl_qos.cli import flags, output, resources, sources
from kubectl_qos.errors import InputError
from kubectl_qos.present.format import count

if TYPE_CHECKING:
    from kubectl_qos.analysis.deaths import DeathRow, Deaths
    from kubectl_qos.cli.options import SourceOptions, TableFormat
    from kubectl_qos.cli.tables import TableView
    from kubectl_qos.k8s.snapshot import Scope, Snapshot
    from kubectl_qos.present.output import Column
    from kubectl_qos.qos.kills.analyze import Kill

WIDTH: Final = 100
"""The width of the picture if stdout is not a terminal."""
MOST_ROWS: Final = 10
DESCRIPTION: Final = (
    "Show the next deaths from every cause: the limits of containers, of pods and of all pods, eviction by"
    " the kubelet, and the kernel on a full node. Deaths that are due come first, then those expected"
    " within half an hour (ETA), then the others by FULL, the fullest limit or threshold first. A container"
    " that is killed at a limit again and again counts as expected within a minute. Killers of a whole node,"
    " and a limit of their victim that is nearly full, are ordered by distance. Without a name, show the next"
    " death of each node."
)
EXAMPLES: Final = """\
examples:
  kubectl qos next                       # the next death of each node, the most urgent first
  kubectl qos next -w                    # follow them, with times estimated from growth
  kubectl qos next node/worker-2         # every coming death on one node
  kubectl qos next pod/db-0 -n data      # what kills this pod, and after which others
  kubectl qos next deploy/api -n shop    # what kills its pods
  kubectl qos next db-0 cache-0 -n data  # which of two pods dies first
  kubectl qos next -n shop               # the next deaths that hit a namespace
  kubectl qos next --all-contexts        # the next deaths of every cluster, the most urgent first

columns:
  IN      how much more memory until then, of the container, the pod, all pods or the node
  ETA     when, if memory keeps growing at its present rate (-w, --watch-for, a store of metrics)
  VICTIM  the container that is killed, or the pod that is evicted
  FULL    how full the limit or threshold is at which the killer acts
  BY      which limit or which killer
  FREES   what the node gets back
  BEFORE  how many are killed before it by the same killer
"""


class Options(NamedTuple):
    """Whose deaths are shown, and how they are printed."""

    source: SourceOptions
    target: tuple[str, ...]
    all: bool
    watch: bool
    format: TableFormat


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `next`."""
    flags.add_target(parser, "db-0, deployment/api or node/worker-2, also several; every node without it")
    flags.add_switch(
        parser,
        "--all",
        help="show every death: for a node also limits far from full, and on a terminal more than ten rows",
    )
    flags.add_switch(
        parser, "-w", "--watch", help="follow the cluster, with what grows and who has died; ctrl-c ends it"
    )
    flags.add_no_headers(parser)
    flags.add_output(parser, "wide", "json", "yaml")
    flags.add_contexts(parser)
    flags.add_at(parser)


def run(options: Options) -> int:
    """Print the deaths; exit code 1 if a document could not be read. Raises QosError."""
    format_ = options.format
    if options.source.is_fleet:
        from kubectl_qos.cli import tables

        tables.refuse_for_several(options.source, {"-w": options.watch})
        return tables.print_tables(
            options.source,
            format_,
            "Death",
            lambda source: NextTable(options._replace(source=source)).table(),
        )
    command = NextTable(options)
    if options.watch:
        from kubectl_qos.cli.tables import watch

        return watch(command, command.resolved, format_)
    deaths, now = command.read(), command.resolved.source.now()
    if format_.output not in {None, "wide"}:
        from kubectl_qos.present.values.incidents import death_list_values

        output.print_document(death_list_values(deaths), str(format_.output), at=deaths.snapshot.at)
    else:
        from kubectl_qos.present import timeline
        from kubectl_qos.present.list_notes import old_usage_notes
        from kubectl_qos.present.next_death import apart_notes, first_of_named
        from kubectl_qos.present.output import hidden_note

        width = output.terminal_width()
        near, far = command.near(deaths)
        left_out = len(near.rows) - MOST_ROWS
        if left_out > 0 and width is not None and near.state is None and not options.all:
            near, far = near._replace(rows=near.rows[:MOST_ROWS]), [f"and {left_out} more: --all"]
        every = timeline.table_columns(near, None)
        is_fitted = width is not None and format_.output != "wide"
        shown = timeline.table_columns(near, width) if is_fitted else every
        output.print_prose(first_of_named(near) if command.of_pods else ())
        output.print_lines(timeline.lines(near, shown, width or WIDTH, headers=format_.headers))
        hidden = hidden_note(every, shown, width or WIDTH)
        apart = apart_notes(near) if command.of_pods else ()
        output.notes((*apart, *far, *hidden, *old_usage_notes(deaths.snapshot, now), *_notes(near, shown)))
    return command.resolved.print_notes()


class NextTable:
    """The deaths that the options ask for, of pods or of nodes."""

    def __init__(self, options: Options) -> None:
        from kubectl_qos.cli.tables import first_rows

        references = resources.parse_references_or_names(options.target)
        references = [reference for reference in references if reference.name]
        self._named_nodes = [reference.name for reference in references if reference.kind == "Node"]
        node = self._named_nodes[0] if len(self._named_nodes) == 1 else options.source.node
        show_first = first_rows(self.view, options.format)
        needs = sources.SourceNeeds(ids="pods", living_demo=options.watch, show_first=show_first)
        resolved = sources.resolve_source(options.source.on_node(node), needs)
        # Who dies depends on all pods of a node: namespace and labels only say whose deaths are shown.
        self.of_pods = references if references and not self._named_nodes else []
        namespace = resolved.scope.namespace if self.of_pods else options.source.namespace
        self._wanted = resolved.scope._replace(namespace=namespace, node=node, names=frozenset())
        self._options, self.resolved = options, resolved
        self._before: Snapshot | None = None
        self._kills: list[Kill] = []

    def scope(self, resolved: sources.ResolvedSource) -> Scope:
        """Return the scope to read."""
        scope = resolved.scope_of(self.of_pods)
        return scope if scope.names else self._wanted

    def read(self) -> Deaths:
        """Return the deaths. Raises QosError."""
        snapshot, _ = resources.with_limit_ranges(self.resolved, self.scope(self.resolved))
        resources.require_places(self.resolved, snapshot)
        resources.note_injectors(self.resolved, snapshot, filter(self._wanted.matches, snapshot.pods))
        return self._deaths(snapshot)

    def table(self) -> TableView[DeathRow]:
        """Return the table of one of several clusters. Raises QosError."""
        return _view(self.read(), self.resolved.source.now())

    def view(self, snapshot: Snapshot, scope: Scope, now: datetime) -> TableView[DeathRow]:
        """Return the table to follow; its columns are always the same."""
        from kubectl_qos.analysis.deaths import Deaths
        from kubectl_qos.present.next_death import COLUMNS

        columns = [column for column in COLUMNS if column.key != "before"]
        try:
            deaths = self._deaths(snapshot)
        except InputError as error:  # A workload may be without pods for a while.
            return _view(Deaths((), snapshot), now, columns)._replace(nothing=str(error))
        near, far = self.near(deaths)
        # Notes on who else may die would change with every sample.
        rows = [row._replace(death=row.death._replace(rival=None, growing=())) for row in near.rows]
        view = _view(near._replace(rows=tuple(rows)), now, columns)
        return view._replace(notes=(*self._died(deaths, now), *far, *view.notes))

    def _died(self, deaths: Deaths, now: datetime) -> list[str]:
        """Say who has died in the last minutes since the table was first shown, the newest first."""
        from kubectl_qos.k8s.events import NODE_EVENTS_NAMESPACE
        from kubectl_qos.present.kills import death_line
        from kubectl_qos.qos.kills.analyze import is_since
        from kubectl_qos.qos.kills.new_kills import kills_since, without_repeats

        before, self._before, source = self._before, deaths.snapshot, self.resolved.source
        if before is not None:
            events = partial(source.event_list, NODE_EVENTS_NAMESPACE)
            newer = kills_since(before, deaths.snapshot, source.kernel_logs, events)
            pods = {pod.key for pod in deaths.pods}
            shown = [
                kill
                for kill in newer
                if (kill.namespace, kill.pod) in pods or (not kill.pod and kill.node in deaths.states)
            ]
            self._kills = [*shown, *without_repeats(self._kills, newer)]
        return [death_line(kill) for kill in self._kills if is_since(kill, now - timedelta(minutes=5))]

    def near(self, deaths: Deaths) -> tuple[Deaths, list[str]]:
        """Return the deaths without far limits of a single node, and a note that counts those."""
        from kubectl_qos.analysis.deaths import without_far
        from kubectl_qos.qos.simulation.next_death import FAR_PERCENT

        is_whole = self._options.all or deaths.state is None
        near = deaths if is_whole else deaths._replace(rows=without_far(deaths.rows))
        hidden = len(deaths.rows) - len(near.rows)
        return near, [f"and {count(hidden, 'limit')} below {FAR_PERCENT} %: --all"] if hidden else []

    def _deaths(self, snapshot: Snapshot) -> Deaths:
        from kubectl_qos.analysis.deaths import deaths_of_pods, deaths_on_nodes

        if self.of_pods:
            groups = (resources.find_members(named, snapshot, self.resolved) for named in self.of_pods)
            pods = {pod.key: pod for pod in chain.from_iterable(groups)}
            return deaths_of_pods(snapshot, [*pods.values()])
        wanted, is_fleet = self._wanted, self._options.source.is_fleet
        for name in self._named_nodes:
            resources.require_node(name, snapshot)
        may_be_none = is_fleet or self.resolved.source.is_live
        nodes = self._named_nodes or resources.find_nodes(
            wanted.node, snapshot, wanted, may_be_none=may_be_none
        )
        return deaths_on_nodes(snapshot, nodes, wanted, only_next=is_fleet and wanted.node is None)


def _view(
    deaths: Deaths, now: datetime, columns: Sequence[Column[DeathRow]] | None = None
) -> TableView[DeathRow]:
    """Return the deaths as a table, with all columns that have values unless some are given."""
    from kubectl_qos.cli.tables import TableView
    from kubectl_qos.present.list_notes import old_usage_notes
    from kubectl_qos.present.next_death import columns as all_columns
    from kubectl_qos.present.next_death import nothing
    from kubectl_qos.present.values.incidents import death_values

    columns = columns or all_columns(deaths.rows)
    return TableView(
        kind="Death",
        rows=deaths.rows,
        columns=columns,
        notes=_notes(deaths, columns),
        ages=(*old_usage_notes(deaths.snapshot, now),),
        key=lambda row: (row.node, row.death.mechanism, row.death.key, row.death.container),
        reference=lambda row: row.node,
        nothing=nothing(deaths),
        order=lambda row: row.death.urgency,
        values=death_values,
    )


def _notes(deaths: Deaths, columns: Iterable[Column[DeathRow]]) -> tuple[str, ...]:
    from kubectl_qos.present.list_notes import missing_notes
    from kubectl_qos.present.next_death import BEFORE, notes

    before = [BEFORE for column in columns if column.key == "before"]
    of_deaths = tuple(notes(deaths))
    shown = of_deaths if deaths.rows else of_deaths[1:]
    return (*missing_notes(deaths.snapshot.missing, of_deaths), *before, *shown)
