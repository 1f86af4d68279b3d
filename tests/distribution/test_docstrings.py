"""What docstrings have to say beyond that they are there: errors, units, and the upstream source of a rule.

That every public module, class, function and method has one is what ruff's rules D say.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import yaml

from kubectl_qos import errors

TABLES: Final = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "kubectl_qos"
MODULES = sorted(PACKAGE.rglob("*.py"))

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

RELATIVE = re.compile(r"(What|Whether|How|Why|Which|Those|Where|Of|When)\b")
"""Openings of relative clauses: the docstring of a function is a sentence."""

WITHOUT_AN_UPSTREAM = TABLES["without_an_upstream"]
"""Modules of the rules that hold none of Kubernetes or the kernel themselves, and why."""


class Function(NamedTuple):
    where: str
    node: ast.FunctionDef | ast.AsyncFunctionDef
    docstring: str


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


def functions() -> Iterator[Function]:
    for path in MODULES:
        for node in public(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield Function(f"{path.name}:{node.lineno} {node.name}", node, ast.get_docstring(node) or "")


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


def test_a_docstring_names_the_errors_that_are_raised() -> None:
    for where, node, docstring in functions():
        for error in raised(node):
            assert any(re.search(rf"\b{name}\b", docstring) for name in names_that_cover(error)), (
                f"{where} raises {error}"
            )


def is_amount(name: str, annotation: ast.expr | None) -> bool:
    """Whether it is a number of something that has a unit, and its name does not say which."""
    if annotation is None or not NUMBER.fullmatch(ast.unparse(annotation)):
        return False
    return bool(SUBJECT.search(name)) and not UNIT_IN_NAME.search(name) and not NO_AMOUNT.search(name)


def test_a_function_says_the_units_of_its_amounts() -> None:
    for where, node, docstring in functions():
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        found = [one.arg for one in arguments if is_amount(one.arg, one.annotation)]
        if is_amount(node.name, node.returns):
            found.append("what it returns")
        assert not found or UNIT.search(docstring), f"{where}: in what unit is {', '.join(found)}?"


def test_a_class_says_the_units_of_its_fields() -> None:
    classes = [(path, node) for path in MODULES for node in public(path) if isinstance(node, ast.ClassDef)]
    for path, node in classes:
        for field, following in zip(node.body, [*node.body[1:], None], strict=True):
            if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
                continue
            if is_amount(field.target.id, field.annotation):
                said = f"{ast.get_docstring(node)} {ast.unparse(following) if following else ''}"
                assert UNIT.search(said), f"{path.name}: {node.name}.{field.target.id}: in what unit?"


def test_a_module_of_the_rules_names_its_upstream_source() -> None:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    without = []
    for path in (path for folder in ("qos", "k8s") for path in sorted((PACKAGE / folder).rglob("*.py"))):
        nodes = (node for node in ast.walk(parsed(path)) if isinstance(node, documented))
        if not any(SOURCE.search(ast.get_docstring(node) or "") for node in nodes):
            without.append(path.relative_to(PACKAGE).as_posix())
    assert sorted(without) == sorted(WITHOUT_AN_UPSTREAM), "which file of Kubernetes or Linux has the rule?"


def test_the_docstring_of_a_function_is_not_a_relative_clause() -> None:
    """Properties are nouns, and may be defined like one."""
    for path in MODULES:
        for node in ast.walk(parsed(path)):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            docstring = ast.get_docstring(node) or ""
            is_property = any(ast.unparse(item).endswith("property") for item in node.decorator_list)
            assert is_property or not RELATIVE.match(docstring), f"{path.name}:{node.lineno}: {docstring}"
