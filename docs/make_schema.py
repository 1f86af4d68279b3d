"""Write docs/schema from the typed outputs of `-o json|yaml`: `make reference`.

A JSON Schema for each kind. Objects may get more fields in a later release, so none forbids others.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec

from kubectl_qos.present import measured, node_columns, pod_columns
from kubectl_qos.present.output import Column, ColumnType
from kubectl_qos.present.values import (
    API_VERSION,
    ClusterValues,
    Document,
    changes,
    facts,
    fixes,
    incidents,
    pods,
)
from kubectl_qos.qos.process_order import HostView

FOLDER: Final = Path(__file__).parent / "schema"
SITE: Final = "https://kubectl-qos.github.io/kubectl-qos/schema"
MODULES: Final = (changes, facts, fixes, incidents, pods)
TABLES: Final[Mapping[str, tuple[str, Iterable[Column[Any]]]]] = {
    "PodRank": ("A pod or container by OOM kill priority: `top`", pod_columns.VALUE_COLUMNS),
    "NodeMemory": ("A node by memory: `top nodes`", node_columns.NODE_COLUMNS.values()),
    "ProcessRank": ("A process of a node: `host -w`", measured.host_columns(every=True)),
    "ClusterMemory": ("A cluster, saved from the terminal UI", node_columns.CLUSTER_COLUMNS.values()),
    "NamespaceRank": ("A namespace by memory: `top namespaces`", node_columns.NAMESPACE_COLUMNS.values()),
    "WorkloadRank": ("A workload by memory: `top workloads`", node_columns.WORKLOAD_COLUMNS.values()),
}
"""The kinds of rows, each with a list of them."""
LABELLED: Final = frozenset({"PodRank", "NodeMemory"})
"""Those that have labels with --show-labels, a time with --at, and clusters with --contexts."""
TYPES: Final[Mapping[ColumnType, Any]] = {
    ColumnType.NUMBER: int | None,
    ColumnType.BYTES: int | None,
    ColumnType.PERCENT: float | None,
}
OTHER_TYPES: Final[Mapping[str, Any]] = {
    "flags": list[str] | None,
    "qosClasses": list[str],
    "pressure": list[str] | None,
    "evictionConfigured": bool | None,
}
NAMES: Final = {
    "EditFindingValues": "Finding",
    "FileChange": "File",
    "ImportanceReason": "Important",
    "MemoryLevel": "Level",
    "MemoryUser": "User",
    "RuleFindingValues": "Finding",
}
"""What a value is called in the schemas where its class has another name."""


class Usage(msgspec.Struct, frozen=True, rename="camel"):
    """Where usage comes from, and the times of its oldest and newest samples, empty where unknown."""

    origin: str
    oldest_time: str
    newest_time: str


def schemas() -> dict[str, dict[str, Any]]:
    """The schema of each kind by its name."""
    found = {"List": _list()}
    for kind, (text, columns) in TABLES.items():
        labels = [("labels", dict[str, str] | msgspec.UnsetType, msgspec.UNSET)] if kind in LABELLED else []
        row: list[Any] = [
            (one.field, Annotated[_column_type(one), msgspec.Meta(description=one.help)]) for one in columns
        ]
        row += labels
        row += [("cluster", str | msgspec.UnsetType, msgspec.UNSET)] if kind in LABELLED else []
        found[kind] = _schema(kind, text, [("kind", Literal[kind]), *row])
        items = msgspec.defstruct("Row", row, namespace={"__doc__": text})
        more: list[Any] = [("at", str | msgspec.UnsetType, msgspec.UNSET)] if kind in LABELLED else []
        clusters = list[ClusterValues] | msgspec.UnsetType
        more += [("clusters", clusters, msgspec.UNSET)] if kind in LABELLED else []
        more += [("usage", Usage | None, None)] if kind == "PodRank" else []
        fields = [("kind", Literal[f"{kind}List"]), ("items", list[items]), ("notes", list[str]), *more]
        found[f"{kind}List"] = _schema(f"{kind}List", f"{text}, in order", fields)
    for document in (*_documents(Document), HostView):
        kind = str(document.__struct_config__.tag)
        found[kind] = _finished(kind, msgspec.json.schema(document))
    return dict(sorted(found.items()))


def _documents(base: type[Document]) -> Iterator[type[Document]]:
    for document in base.__subclasses__():
        yield from _documents(document)
        if document.__module__ in {module.__name__ for module in MODULES}:
            yield document


def _list() -> dict[str, Any]:
    items = {"type": "array", "items": {"type": "object", "required": ["apiVersion", "kind"]}}
    return {
        **_head("List"),
        "description": "Several documents, each with its kind: `explain`, `tree` and `compare` of several.",
        "type": "object",
        "properties": {
            "apiVersion": {"const": API_VERSION},
            "kind": {"const": "List"},
            "items": items,
            "at": {"type": "string"},
        },
        "required": ["apiVersion", "kind", "items"],
    }


def _column_type(column: Column[Any]) -> Any:
    if column.field in OTHER_TYPES:
        return OTHER_TYPES[column.field]
    if column.choices:
        return Literal[*column.choices] | None
    return TYPES.get(column.type, str | None)


def _schema(kind: str, text: str, fields: list[Any]) -> dict[str, Any]:
    return _finished(
        kind, msgspec.json.schema(msgspec.defstruct(kind, fields, namespace={"__doc__": f"{text}."}))
    )


def _finished(kind: str, schema: dict[str, Any]) -> dict[str, Any]:
    """With names for readers, and apiVersion, which every document has."""
    text = re.sub(r"\w+", lambda word: NAMES.get(word[0], word[0].removesuffix("Values")), json.dumps(schema))
    schema = json.loads(text, object_hook=_dedented)
    top = schema["$defs"][kind]
    top["properties"] = {"apiVersion": {"const": API_VERSION}} | {
        name: value for name, value in top["properties"].items() if name != "apiVersion"
    }
    top["required"] = ["apiVersion", *top["required"]]
    return {**_head(kind), **schema}


def _dedented(value: dict[str, Any]) -> dict[str, Any]:
    """A docstring as every Python has it: 3.13 takes the indentation away itself."""
    text = value.get("description")
    return value | {"description": inspect.cleandoc(text)} if isinstance(text, str) else value


def _head(kind: str) -> dict[str, Any]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"{SITE}/{kind}.json",
        "title": kind,
    }


def contract() -> str:
    """Every field of every kind with its type, a line each: what a change of the contract shows in review."""
    return "".join(f"{line}\n" for kind, schema in schemas().items() for line in _lines(kind, schema, schema))


def _lines(
    path: str, schema: Mapping[str, Any], whole: Mapping[str, Any], above: tuple[str, ...] = ()
) -> Iterator[str]:
    reference = schema.get("$ref", "").rpartition("/")[2]
    if reference:
        if reference in above:
            yield f"{path}: {reference}"
            return
        schema, above = whole["$defs"][reference], (*above, reference)
    if "properties" in schema:
        for name, value in schema["properties"].items():
            optional = "" if name in schema.get("required", ()) else "?"
            yield from _lines(f"{path}.{name}{optional}", value, whole, above)
        return
    for one in schema.get("anyOf", ()):
        if "$ref" in one:
            yield from _lines(f"{path}?", one, whole, above)
            return
        if one.get("type") in {"array", "object"}:
            yield from _lines(f"{path}?", one, whole, above)
            return
    inner = schema.get("items") or schema.get("additionalProperties")
    if isinstance(inner, dict) and inner:
        yield from _lines(f"{path}[]" if schema["type"] == "array" else f"{path}{{}}", inner, whole, above)
        return
    yield f"{path}: {_type(schema)}"


def _type(schema: Mapping[str, Any]) -> str:
    if "const" in schema or "enum" in schema:
        return " | ".join(json.dumps(one) for one in schema.get("enum", [schema.get("const")]))
    if "anyOf" in schema:
        return " | ".join(map(_type, schema["anyOf"]))
    return str(schema.get("type", "any"))


def main() -> None:
    """Write every schema, and remove those of kinds that are gone."""
    FOLDER.mkdir(exist_ok=True)
    made = schemas()
    for path in FOLDER.glob("*.json"):
        if path.stem not in made:
            path.unlink()
    for kind, schema in made.items():
        text = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        (FOLDER / f"{kind}.json").write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
