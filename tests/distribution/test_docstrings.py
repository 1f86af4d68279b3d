"""What docstrings have to say beyond that they are there: errors, units, and the upstream source of a rule.

That every public module, class, function and method has one is what ruff's rules D say: they have to be on.
"""

from __future__ import annotations

import ast
import builtins
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import pytest
import yaml

from kubectl_qos import errors

TABLES: Final = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "kubectl_qos"

SUBJECT = re.compile(
    r"(^|_)(memory|swap|cpu|limit|request|capacity|usage|used|free|freed|size|quota|period|shares|timeout|rss"
    r"|working_set|threshold|reserved)(_|$)"
)
NO_AMOUNT = re.compile(r"^(without|may)_")
UNIT_IN_NAME = re.compile(
    r"(^|_)(bytes|milli|pages|us|ms|kb|seconds|percent|shares|points|version|count)(_|$)"
)
UNIT = re.compile(
    r"\b(bytes?|millicores?|pages?|microseconds?|seconds?|percent|shares|units of 1e-9)\b", re.IGNORECASE
)
NUMBER = re.compile(r"(int|float)( \| None)?")
SOURCE = re.compile(r"\.go\b|\bmm/|\bfs/proc|\bkernel/|\.c\b|\bKEP-\d+|\bk8s\.io/|\bpkg/|\bgo\.dev/")

WITHOUT_AN_UPSTREAM = TABLES["without_an_upstream"]
"""Modules of the rules that hold none of Kubernetes or the kernel themselves, and why."""


class Function(NamedTuple):
    where: str
    node: ast.FunctionDef | ast.AsyncFunctionDef
    docstring: str


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def named(paths: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("path", paths, ids=lambda path: str(path.relative_to(PACKAGE)))


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def public(path: Path) -> Iterator[ast.AST]:
    """The public classes, functions and methods of a module; functions inside of functions are not."""
    left: list[ast.stmt] = list(parsed(path).body)
    while left:
        node = left.pop(0)
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name[0] != "_":
            yield node
            left += node.body if isinstance(node, ast.ClassDef) else []


def functions(path: Path) -> Iterator[Function]:
    for node in public(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield Function(f"{path.name}:{node.lineno} {node.name}", node, ast.get_docstring(node) or "")


def test_ruff_requires_a_docstring_of_everything_public() -> None:
    lint = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"]["lint"]
    assert lint["select"] == ["ALL"]
    required = {f"D10{number}" for number in range(8)} - {"D105", "D107"}
    ignored = [*lint["ignore"], *(rule for rules in found_for_the_package(lint) for rule in rules)]
    assert not [rule for rule in ignored if any(one.startswith(rule) for one in required)]


def found_for_the_package(lint: dict[str, dict[str, list[str]]]) -> list[list[str]]:
    """What is ignored in files of the package; handlers of the UI are named by Textual and its actions."""
    per_file = {**lint["per-file-ignores"]}
    assert per_file.pop("kubectl_qos/tui/**") == ["D102"]
    return [rules for pattern, rules in per_file.items() if pattern.startswith(("kubectl_qos", "**"))]


def raised(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The names of the errors that its own body raises; not those of functions inside of it."""
    found, left = set(), list[ast.AST](function.body)
    while left:
        node = left.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            continue
        if isinstance(node, ast.Raise) and node.exc is not None:
            error = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            if isinstance(error, ast.Name) and error.id[0].isupper():
                found.add(error.id)
        left += ast.iter_child_nodes(node)
    return found


def names_that_cover(error: str) -> list[str]:
    """The error's own name and those of its parents, as far as they say anything."""
    found = getattr(errors, error, None) or getattr(builtins, error, None)
    parents = found.__mro__ if isinstance(found, type) else ()
    return [error, *(one.__name__ for one in parents if one not in {Exception, BaseException, object})]


@named(modules())
def test_a_docstring_names_the_errors_that_are_raised(path: Path) -> None:
    for where, node, docstring in functions(path):
        for error in raised(node):
            assert any(re.search(rf"\b{name}\b", docstring) for name in names_that_cover(error)), (
                f"{where} raises {error}"
            )


def is_amount(name: str, annotation: ast.expr | None) -> bool:
    """Whether it is a number of something that has a unit, and its name does not say which."""
    if annotation is None or not NUMBER.fullmatch(ast.unparse(annotation)):
        return False
    return bool(SUBJECT.search(name)) and not UNIT_IN_NAME.search(name) and not NO_AMOUNT.search(name)


@named(modules())
def test_a_function_says_the_units_of_its_amounts(path: Path) -> None:
    for where, node, docstring in functions(path):
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        found = [one.arg for one in arguments if is_amount(one.arg, one.annotation)]
        if is_amount(node.name, node.returns):
            found.append("what it returns")
        assert not found or UNIT.search(docstring), f"{where}: in what unit is {', '.join(found)}?"


@named(modules())
def test_a_class_says_the_units_of_its_fields(path: Path) -> None:
    for node in public(path):
        if not isinstance(node, ast.ClassDef):
            continue
        for field, following in zip(node.body, [*node.body[1:], None], strict=True):
            if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
                continue
            if is_amount(field.target.id, field.annotation):
                said = f"{ast.get_docstring(node)} {ast.unparse(following) if following else ''}"
                assert UNIT.search(said), f"{path.name}: {node.name}.{field.target.id}: in what unit?"


RULES = [path for room in ("qos", "k8s") for path in sorted((PACKAGE / room).rglob("*.py"))]


@named(RULES)
def test_a_module_of_the_rules_names_its_upstream_source(path: Path) -> None:
    name = path.relative_to(PACKAGE).as_posix()
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    said = [ast.get_docstring(node) or "" for node in ast.walk(parsed(path)) if isinstance(node, documented)]
    has_one = any(map(SOURCE.search, said))
    assert has_one or name in WITHOUT_AN_UPSTREAM, "which file of Kubernetes or Linux has the rule?"
    assert not (has_one and name in WITHOUT_AN_UPSTREAM), "it has a source: it is none of the table above"


def test_every_reason_is_of_a_module() -> None:
    assert all((PACKAGE / name).exists() for name in WITHOUT_AN_UPSTREAM)


def test_the_rules_themselves_find_what_is_missing() -> None:
    source = "def read(limit: int) -> int:\n    '''A number.'''\n    raise InputError('no')\n"
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    assert raised(function) == {"InputError"}
    assert is_amount("limit", function.args.args[0].annotation)
    assert not is_amount("limit_bytes", function.args.args[0].annotation)
    assert {"QuantityError", "InputError", "QosError"} <= set(names_that_cover("QuantityError"))
