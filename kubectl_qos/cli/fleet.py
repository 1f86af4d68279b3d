"""Commands on several clusters: one table or document of all their answers, in one order.

Each answer is reduced to texts or values before the next cluster is asked. Not here: which contexts are
meant, and how many are asked at once (cluster/background.py).
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from kubectl_qos.cli import output
from kubectl_qos.errors import EXIT_ERROR, QosError, UsageError, first_few
from kubectl_qos.present.format import UNKNOWN, escape

if TYPE_CHECKING:
    from kubectl_qos.cli.options import SourceOptions, TableFormat
    from kubectl_qos.cli.watch import TableView
    from kubectl_qos.present.output import Align
    from kubectl_qos.present.values import ClusterValues

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Answer:
    """A cluster's answer; a row is its place among those of other clusters, and its cells, values or name."""

    headers: Mapping[str, Align]
    """The columns of the cells."""
    rows: list[tuple[Any, Any]]
    notes: tuple[str, ...]
    facts: Mapping[str, Any]
    nothing: str
    missing: tuple[QosError, ...]
    hidden_first: tuple[str, ...] = ()


def refuse(source: SourceOptions, flags: Mapping[str, object]) -> None:
    """Raise UsageError if one of these flags, which need a single cluster, is given for several clusters."""
    for flag, value in flags.items():
        if source.is_fleet and value:
            name = "--all-contexts" if source.all_contexts else "--contexts"
            raise UsageError(f"{flag} and {name} cannot be used together", hint="--context names one cluster")


def read_clusters(
    source: SourceOptions, work: Callable[[SourceOptions], T]
) -> tuple[dict[str, T], dict[str, QosError]]:
    """Return what each cluster answered and why others did not, in the kubeconfig's order.

    Print each failure as it comes. Raises UsageError for flags that no cluster can answer.
    """
    from kubectl_qos.cluster.background import find_contexts, read_each

    connection = source.connection
    refuse(source, {"--demo": source.demo, "-f": source.files, "-k": source.kustomize, "--at": source.at})
    refuse(source, {"--contexts": source.contexts if source.all_contexts else ()})
    refuse(source, connection.cluster_flags)
    patterns = None if source.all_contexts else [name for text in source.contexts for name in text.split(",")]
    contexts = find_contexts(connection, patterns)
    answers: dict[str, T] = {}
    errors: dict[str, QosError] = {}
    gc.freeze()
    for name, answer in read_each(contexts, lambda name: work(replace(source, connection=contexts[name]))):
        gc.collect()  # an error's traceback may keep itself, and with it all that its cluster answered
        if isinstance(answer, UsageError):
            raise answer
        if isinstance(answer, QosError):
            errors[name] = answer
        else:
            answers[name] = answer
    failed = {name: errors[name] for name in contexts if name in errors}
    for name, error in failed.items():
        output.note(f"{name}: {error}")
    return {name: answers[name] for name in contexts if name in answers}, failed


def print_tables(
    source: SourceOptions,
    format_: TableFormat,
    kind: str,
    read: Callable[[SourceOptions], TableView[Any]],
    facts: Mapping[str, Any] = MappingProxyType({}),
) -> int:
    """Print the tables of all clusters as one; exit code 1 if a cluster failed or lacks a named object.

    `facts` are further keys of documents; lists among them hold the values of all clusters.
    """
    answers, errors = read_clusters(source, lambda cluster: _reduced(read(cluster), format_))
    for name, answer in answers.items():
        for error in answer.missing:
            errors.setdefault(name, error)
            output.note(f"{name}: {error}")
    rows = [(order, name, content) for name, answer in answers.items() for order, content in answer.rows]
    rows.sort(key=lambda row: row[0])
    notes = merged_notes({name: answer.notes for name, answer in answers.items()})
    contents = [row[1:] for row in rows]
    if format_.has_values or (format_.output == "name" and contents and not isinstance(contents[0][1], str)):
        document = {"kind": f"{kind}List", "items": _items(contents), "notes": list(notes), **facts}
        for key in (key for key, value in facts.items() if isinstance(value, list)):
            document[key] = _items(
                (name, item) for name, answer in answers.items() for item in answer.facts[key]
            )
        document["clusters"] = clusters(answers, errors)
        output.print_document(document, str(format_.output), headers=format_.headers)
    elif format_.output == "csv":
        _print_csv(contents)
    elif format_.output == "name":
        output.print_lines(dict.fromkeys(content for _, content in contents))
    elif contents:
        _print_cells(contents, answers, format_)
    elif not errors:
        output.note(next(iter(answers.values())).nothing)
    if format_.output != "name":
        output.notes(notes)
    return EXIT_ERROR if errors else 0


def _items(named_values: Iterable[tuple[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows' values, each with its cluster."""
    import msgspec

    return [{"cluster": name, **msgspec.to_builtins(values)} for name, values in named_values]


def _print_csv(contents: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
    from kubectl_qos.present.output import Column, column, to_csv

    def of_row(field: str) -> Column[tuple[str, Mapping[str, Any]]]:
        return column(field, lambda row: row[1].get(field), field=field)

    fields = dict.fromkeys(field for _, content in contents for field in content)
    output.print_text(to_csv(contents, [column("cluster", lambda row: row[0]), *map(of_row, fields)]))


def _print_cells(
    contents: Iterable[tuple[str, str]], answers: Mapping[str, _Answer], format_: TableFormat
) -> None:
    """Print the union of the clusters' columns, ordered as in the widest table."""
    from kubectl_qos.present.output import SEPARATOR, Align, fitted_table, text_columns

    aligns: dict[str, Align] = {}
    for answer in sorted(answers.values(), key=lambda answer: -len(answer.headers)):
        aligns |= answer.headers

    def cells(name: str, content: str) -> list[str]:
        by_header = dict(zip(answers[name].headers, content.split(SEPARATOR), strict=True))
        return [escape(name), *(by_header.get(header, UNKNOWN) for header in aligns)]

    rows, columns = [cells(*row) for row in contents], text_columns({"CLUSTER": Align.LEFT, **aligns})
    width = output.terminal_width() if format_.output != "wide" else None
    hidden_first = [header for answer in answers.values() for header in answer.hidden_first]
    output.print_lines(fitted_table(rows, columns, width, (), hidden_first, headers=format_.headers))


def merged_notes(notes: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """Return each note once, with its clusters unless it is about all."""
    about: dict[str, list[str]] = {}
    for name, texts in notes.items():
        for text in dict.fromkeys(texts):
            about.setdefault(text, []).append(name)
    return tuple(
        text if len(names) == len(notes) > 1 else f"{first_few(names)}: {text}"
        for text, names in about.items()
    )


def clusters(answered: Iterable[str], errors: Mapping[str, QosError]) -> tuple[ClusterValues, ...]:
    """Return the asked clusters for a document."""
    from kubectl_qos.present.values import ClusterValues

    names = (name for name in answered if name not in errors)
    answering = [ClusterValues(cluster=name, error=None, hint=None) for name in names]
    failed = [
        ClusterValues(cluster=name, error=str(error), hint=error.hint or None)
        for name, error in errors.items()
    ]
    return (*answering, *failed)


def _reduced(view: TableView[Any], format_: TableFormat) -> _Answer:
    from kubectl_qos.present.output import SEPARATOR, row_values

    if view.missing and not view.rows:
        raise view.missing[0]
    now, columns = datetime.now(UTC), view.columns
    content: Callable[[Any], Any]
    if view.values is not None and (format_.has_values or format_.output == "name"):
        content = view.values
    elif format_.has_every_column:
        content = lambda row: row_values(row, columns)  # noqa: E731
    elif format_.output == "name":
        content = view.reference
    else:
        content = lambda row: SEPARATOR.join(column.cell(row, now) for column in columns)  # noqa: E731
    return _Answer(
        {column.header: column.align for column in columns},
        [(view.order(row), content(row)) for row in view.rows],
        (*view.ages, *view.notes),
        view.facts,
        view.nothing,
        view.missing,
        tuple(column.header for key in view.hidden_first for column in columns if column.key == key),
    )
