"""What commands print as JSON or YAML, against docs/schema: every command that a test runs is looked at."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml
from jsonschema import Draft202012Validator

SCHEMAS: Final = Path(__file__).parents[1] / "docs" / "schema"
_FORMAT: Final = re.compile(r"(?:-o=?|--output=)(json|yaml)")


def check_output(words: Sequence[str], out: str) -> None:
    """Assert that what a command line printed is documents of known kinds, with no fields but theirs."""
    if words[:1] == ["__complete"] or "--help" in words or "-h" in words:
        return
    joined = " ".join(words).replace("-o ", "-o").replace("--output ", "--output=").split()
    for found in filter(None, map(_FORMAT.fullmatch, joined)):
        for document in documents(out, found[1]):
            check_document(document)


def documents(text: str, format_: str) -> Iterator[Any]:
    """The documents of an output; those of -w follow one another."""
    if format_ == "yaml":
        yield from filter(None, yaml.safe_load_all(text))
        return
    while text := text.lstrip():
        document, end = json.JSONDecoder().raw_decode(text)
        yield document
        text = text[end:]


def check_document(document: Any) -> None:
    """Assert that a document is as the schema of its kind says."""
    assert document["apiVersion"] == "kubectl-qos/v1"
    assert next(iter(document)) == "apiVersion"
    errors = [
        f"{error.json_path}: {error.message}" for error in validator(document["kind"]).iter_errors(document)
    ]
    assert not errors, f"{document['kind']}: {errors[:5]}"
    if document["kind"] == "List":
        for item in document["items"]:
            check_document(item)


@cache
def validator(kind: str) -> Draft202012Validator:
    """The schema of a kind without room for other fields, which a later release may add."""
    return Draft202012Validator(_closed(json.loads((SCHEMAS / f"{kind}.json").read_text(encoding="utf-8"))))


def _closed(schema: Any) -> Any:
    if isinstance(schema, list):
        return list(map(_closed, schema))
    if not isinstance(schema, dict):
        return schema
    more = {"additionalProperties": False} if isinstance(schema.get("properties"), dict) else {}
    return {name: _closed(value) for name, value in schema.items()} | more
