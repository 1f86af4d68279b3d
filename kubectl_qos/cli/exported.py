"""`--from-exporter`: the tables of `top` and `next` from what `kubectl qos exporter` has published.

They have the columns and fields that they always have: what the exporter does not publish is `<unknown>`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kubectl_qos.analysis.node_table import percent
from kubectl_qos.cli import output
from kubectl_qos.cli.sources import open_any_store
from kubectl_qos.cli.watch import TableView, print_table
from kubectl_qos.errors import EXIT_ERROR, ApiError, UsageError
from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.metrics.exported import Exported, ExportedNode, read_exported
from kubectl_qos.present import next_death, node_columns, pod_columns
from kubectl_qos.present.format import UNKNOWN, count, duration, escape, mebibytes
from kubectl_qos.present.output import Column, column, find_column, table
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.reason import Mechanism
from kubectl_qos.qos.simulation.next_death import NextDeath, is_upper_bound

if TYPE_CHECKING:
    from kubectl_qos.cli.commands import next as next_command
    from kubectl_qos.cli.commands import top
    from kubectl_qos.cli.options import SourceOptions
    from kubectl_qos.cli.resources import Reference

_ASCENDING: Final = frozenset({"rank", "to_eviction", "to_soft_eviction", "death_in"})

_LISTED: Final = "kubectl qos top {} --from-exporter lists those that the exporter has published"


class _Row(NamedTuple):
    """Values by the keys of columns; `cells` are texts of those that are shown otherwise."""

    key: tuple[str, ...]
    values: Mapping[str, Any]
    cells: Mapping[str, str] = {}


def print_top(options: top.Options, references: Sequence[Reference]) -> int:
    """The table of pods or nodes; exit code 1 where one that is named is not among those published."""
    flags: dict[str, object] = {
        "-w": options.watch,
        "--containers": options.containers,
        "--min-risk": options.min_risk,
        "-L": options.label_columns,
        "--show-labels": options.show_labels,
        **{str(one): True for one in references if one.kind not in {"Pod", "Node"}},
    }
    published, namespace, header = _read(options.source, flags)
    format_, node = options.format, options.source.node
    names = {one.name for one in references if one.name}
    nodes = {name: one for name, one in published.nodes.items() if node in {None, name}}
    is_wide = format_.output == "wide"
    columns: Iterable[Column[Any]]
    keys: Sequence[str]
    if references and references[0].kind == "Node":
        kind, resource, columns = "NodeMemory", "nodes", node_columns.NODE_COLUMNS.values()
        other_names, keys = node_columns.OTHER_NAMES, node_columns.DEFAULT_KEYS
        keys = node_columns.WIDE_KEYS if is_wide else keys
        chosen = [_node_row(name, node) for name, node in nodes.items()]
        chosen.sort(key=lambda row: (-row.values["in_trouble"], -(row.values["used_percent"] or -1), row.key))
    else:
        kind, resource, columns = "PodRank", "pods", pod_columns.VALUE_COLUMNS
        other_names, keys = pod_columns.OTHER_NAMES, pod_columns.DEFAULT_KEYS
        keys = pod_columns.ALL_WIDE_KEYS if is_wide else (*keys[:3], "node", *keys[3:])
        chosen = [
            _pod_row(name, key, values)
            for name, node in nodes.items()
            for key, values in node.pods.items()
            if namespace in {None, key[0]}
        ]
        chosen.sort(
            key=lambda row: (-(row.values["oom_score"] or 0), row.values["node"], row.values["rank"] or 0)
        )
    rows = [row for row in chosen if not names or row.key[-1] in names]
    stored = {one.key: _stored(one) for one in columns}
    if options.sort_by:
        rows.sort(key=find_column(options.sort_by, stored, other_names).sort_key)
    missing = sorted(names - {row.key[-1] for row in rows})
    if rows or not missing:
        view = TableView(
            kind=kind,
            rows=rows,
            columns=[*stored.values()] if format_.has_every_column else [stored[key] for key in keys],
            notes=(header,),
            key=lambda row: row.key,
            reference=lambda row: escape(f"{resource[:-1]}/{row.key[-1]}"),
            nothing="No resources found",
        )
        print_table(view, format_, datetime.now(UTC))
    for name in missing:
        output.print_error(ApiError.not_found(resource, name, hint=_LISTED.format(resource)))
    return EXIT_ERROR if missing else 0


def print_next(options: next_command.Options, node: str | None, reference: Reference | None) -> int:
    """The next death of each node, or of one. Raises UsageError, and ApiError for an unknown node."""
    if reference is not None and reference.kind != "Pod":
        raise UsageError(f"--from-exporter and {reference} cannot be used together: no owner is published")
    published, of_context, header = _read(options.source, {})
    if node is not None and node not in published.nodes:
        raise ApiError.not_found("nodes", node, hint=_LISTED.format("nodes"))
    namespace = options.source.namespace if reference is None else of_context
    deaths = []
    for name, one in published.nodes.items():
        death = _death(one) if node in {None, name} else None
        wanted = namespace, reference.name if reference is not None else None
        if death is not None and all(one in {None, of} for one, of in zip(wanted, death.key, strict=True)):
            deaths.append((name, death))
    deaths.sort(key=lambda one: (one[1].distance_bytes, one[0]))
    if options.output is not None:
        from kubectl_qos.present.values.incidents import DeathListValues, death_values

        unknown = {"freed_bytes": None, "tied": None}
        items = tuple(death_values(next_death.DeathRow(*one), **unknown) for one in deaths)
        output.print_document(DeathListValues(items=items, notes=(header,)), options.output)
        return 0
    rows = [_node_row(name, published.nodes[name]) for name, _ in deaths]
    columns = [_stored(one) for one in next_death.COLUMNS if one.key not in {"eta", "before"}]
    nothing = ["no next death is published of these nodes and pods"]
    output.print_lines(table(rows, columns, headers=options.headers) if rows else nothing)
    return 0


def _read(source: SourceOptions, flags: Mapping[str, object]) -> tuple[Exported, str | None, str]:
    """What was published, the namespace that is shown (None for all), and the line that says whose it is.

    Raises UsageError for a flag that needs what the exporter does not publish.
    """
    others = {
        "--at": source.at,
        "--demo": source.demo,
        "-f": source.files,
        "-k": source.kustomize,
        "-l": source.selector,
        "--field-selector": source.field_selector,
        "--usage": source.usage != "metrics",
    }
    for flag, value in {**flags, **others}.items():
        if value:
            raise UsageError(
                f"--from-exporter and {flag} cannot be used together: only ranks, scores, distances and sums"
                " of nodes are published",
                hint="-n, -A, --node and names select among them",
            )
    store, connection = open_any_store(source)
    exported = read_exported(store)
    namespace = source.namespace
    if namespace is None and source.node is None:
        namespace = connection.namespace if connection is not None else "default"
    header = _header(exported, store.name)
    output.note(header)
    return exported, None if source.all_namespaces else namespace, header


def _header(exported: Exported, store: str) -> str:
    """Whose values these are, how old they are, and of how many pods."""
    names, known = sorted(exported.ages), exported.ages.values()
    ages = dict.fromkeys(duration(round(age)) for age in (min(known), max(known)))
    who = f"exporter {escape(names[0])}" if len(names) == 1 else count(len(names), "exporter")
    text = f"FROM THE EXPORTER: {who} in {store}, scraped {' to '.join(ages)} ago"
    if exported.stale_seconds:
        text += f", when the API server had been silent for {duration(round(exported.stale_seconds))}"
    most = exported.per_node
    if most is None:
        return f"{text}; pods without a rank are not known"
    return f"{text}; only the first {count(most, 'pod')} of each node's kill order are known"


def _stored(of: Column[Any]) -> Column[_Row]:
    """A column of values that are known already; what is not is `<unknown>`."""

    def value(row: _Row) -> Any:
        return row.values.get(of.key)

    plain: Column[_Row] = column(of.key, value, type=of.type, empty=UNKNOWN)
    return column(
        of.key,
        value,
        of.help,
        of.type,
        field=of.field,
        header=of.header,
        align=of.align,
        ascending=of.key in _ASCENDING,
        cell=lambda row: row.cells.get(of.key) or plain.cell(row, datetime.now(UTC)),
    )


def _pod_row(node: str, key: PodKey, values: Mapping[str, int]) -> _Row:
    by_column = {
        "rank": "pod_kill_rank",
        "oom_score": "pod_oom_score",
        "oom_score_adj": "pod_oom_score_adj",
        "frees": "pod_freed_bytes",
    }
    names = {"namespace": key[0], "pod": key[1], "node": node}
    return _Row(key, names | {column: values.get(name) for column, name in by_column.items()})


def _node_row(name: str, node: ExportedNode) -> _Row:
    get, death = node.values.get, _death(node)
    by_class = {qos.name.lower(): get(f"node_memory_used_bytes {qos}") for qos in QosClass}
    capacity, worst = get("node_memory_capacity_bytes"), get("node_memory_worst_case_bytes")
    own = get("node_own_memory_bytes")
    known = [one for one in (*by_class.values(), own) if one is not None]
    used = sum(known) if known else None
    values = {
        "node": name,
        "in_trouble": get("node_in_trouble", 0),
        "pods": get("node_pods"),
        **by_class,
        "used": used,
        "own": own,
        "capacity": capacity,
        "used_percent": percent(used, capacity),
        "worst": worst,
        "worst_percent": percent(worst, capacity),
    }
    left = {
        "to_eviction": get("node_eviction_distance_bytes hard"),
        "to_soft_eviction": get("node_eviction_distance_bytes soft"),
    }
    values |= left
    ranked = [key for key, pod in node.pods.items() if pod.get("pod_kill_rank") == 1]
    first = min((key for key in ranked if "pod_freed_bytes" in node.pods[key]), default=None)
    if first is not None:
        victim_score = node.pods[first].get("pod_oom_score")
        values |= {"kernel_victim": "/".join(first), "victim_score": victim_score}
    at_most = next_death.AT_MOST if _is_upper_bound(node, Mechanism.EVICTION) else ""
    cells = {key: f"{at_most}{mebibytes(size)}" for key, size in left.items() if size is not None}
    if death is None:
        return _Row((name,), values, cells)
    victim, by = next_death.victim(death), next_death.killed_by(death)
    far = next_death.distance(death)
    values |= {"death_in": death.distance_bytes, "death_by": by, "next_death": victim}
    cells |= {"next_death": f"{far} {victim}, {by}", "distance": far, "victim": victim, "by": by}
    return _Row((name,), values, cells)


def _death(node: ExportedNode) -> NextDeath | None:
    """Who dies next; what the exporter does not publish of it is not shown."""
    known, distance = node.death, node.values.get("node_next_death_distance_bytes")
    mechanism, qos = known.get("mechanism"), known.get("qos_class")
    # Of another release, or of something else of that name.
    if distance is None or mechanism not in set(Mechanism) or qos not in {None, "", *QosClass}:
        return None
    by, key = Mechanism(mechanism), (known["namespace"], known["pod"])
    is_own = by is Mechanism.CONTAINER_LIMIT or bool(known.get("own_limit"))
    death = NextDeath(by, distance, key, known["container"], QosClass(qos) if qos else None, 0, is_own=is_own)
    return death._replace(is_upper_bound=_is_upper_bound(node, by))


def _is_upper_bound(node: ExportedNode, mechanism: Mechanism) -> bool:
    is_measured = not node.values.get("node_pods_without_usage")
    return is_upper_bound(mechanism, node.values.get("node_own_memory_bytes"), is_measured=is_measured)
