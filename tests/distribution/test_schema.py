"""The contract of `-o json|yaml`: docs/schema is current, and a change of it is seen in review."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from tests.end_to_end.golden_text import assert_as_kept

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "schema"
UNITS = re.compile(r"(?<![a-z])(kb|kib|mb|mib|millis|ms)(?![a-z])", re.IGNORECASE)


def made(name: str) -> Any:
    """What a function of docs/make_schema.py makes."""
    return runpy.run_path(str(ROOT / "docs" / "make_schema.py"))[name]()


def test_the_schemas_are_those_of_the_program() -> None:
    kept = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in FOLDER.iterdir()}
    assert kept == made("schemas"), "make reference renews them"


def test_the_page_leads_to_each_kind_or_to_its_list() -> None:
    page = (ROOT / "docs" / "output.md").read_text(encoding="utf-8")
    linked = {name.removesuffix("List") for name in re.findall(r"\(schema/(\w+)\.json\)", page)}
    assert linked == {path.stem.removesuffix("List") for path in FOLDER.iterdir()}


def test_a_change_of_the_contract_is_seen() -> None:
    assert_as_kept("contract", made("contract"))


def test_every_schema_is_one_of_2020_12() -> None:
    for schema in made("schemas").values():
        Draft202012Validator.check_schema(schema)


def test_every_field_is_camel_case_with_a_unit_of_kubernetes() -> None:
    for line in made("contract").splitlines():
        path, _, type_ = line.partition(": ")
        for name in re.split(r"[.\[\]{}?]+", path)[1:]:
            assert re.fullmatch("([a-z][A-Za-z0-9]*)?", name), line
        assert not UNITS.search(re.sub("([A-Z])", r"_\1", path)), line
        is_size = re.search(r"(memory|rss|swap|request|limit|freed)$", path.rpartition(".")[2])
        assert not (is_size and type_.startswith("integer")), line


def test_one_name_has_one_type() -> None:
    """`qos` was a text here and an object there, `eviction` a rank or bytes."""
    types: dict[str, dict[str, str]] = {}
    for line in made("contract").splitlines():
        path, _, type_ = line.partition(": ")
        name = path.rpartition(".")[2].rstrip("?")
        kinds = {word for word in type_.split(" | ") if word != "null"}
        plain = "string" if all(kind.startswith('"') for kind in kinds) else " | ".join(sorted(kinds))
        types.setdefault(name, {})[plain] = path
    several = {name: found for name, found in types.items() if len(found) > 1}
    assert several.keys() <= {"before", "after"}, several
