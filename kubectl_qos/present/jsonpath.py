"""Render `-o jsonpath` and `-o custom-columns` as kubectl does; a library evaluates the paths.

Source: k8s.io/client-go/util/jsonpath (parser.go, jsonpath.go), k8s.io/kubectl/pkg/cmd/get/customcolumn.go.
Beyond kubectl, a filter may join comparisons with && and ||. Not here: Go templates.
"""

import ast
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from kubectl_qos.errors import InputError, UsageError
from kubectl_qos.present.format import NONE

_ACTION: Final = re.compile(r"""\{((?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^{}"'])*)\}|(\{)""")
_ESCAPED: Final = re.compile(r"\.((?:[^\s.\[\]()'\"\\]|\\.)*\\\.(?:[^\s.\[\]()'\"\\]|\\.)*)")
_UNION: Final = re.compile(r"\[([^\[\]?()]*,[^\[\]?()]*)\]")
_SLICE: Final = re.compile(r"\[(-?\d*)(:?)(-?\d*)(?::-?\d*)?\]")
_UNEQUAL: Final = re.compile(r"(@[^\s!=<>()&|]+)\s*!=")
_LEAST_WIDTH: Final = 6
_TYPES: Final = {dict: "map[string]interface {}", str: "string", bool: "bool", type(None): "null"}


def render_jsonpath(template: str, document: Any) -> str:
    """Render a template such as `{range .items[*]}{.pod} {end}`. Raises InputError or UsageError."""
    blocks: list[list[Any]] = [[]]
    at = 0
    for match in _ACTION.finditer(template):
        blocks[-1].append(template[at : match.start()])
        at, action = match.end(), (match[1] or "").strip()
        if match[2]:
            raise UsageError(f"error parsing jsonpath {template}, unclosed action")
        if action.startswith("range "):
            block: list[Any] = []
            blocks[-1].append((action.removeprefix("range "), block))
            blocks.append(block)
        elif action == "end":
            blocks.pop()
            if not blocks:
                raise UsageError(f'error executing jsonpath "{template}": not in range, nothing to end')
        else:
            blocks[-1].append((action, None))
    blocks[-1].append(template[at:])
    try:
        return "".join(_render(blocks[0], json.loads(json.dumps(document, sort_keys=True))))
    except (InputError, UsageError) as error:
        raise type(error)(f'error executing jsonpath "{template}": {error}') from None


def _render(block: Sequence[Any], node: Any) -> Iterator[str]:
    for part in block:
        if isinstance(part, str):
            yield part
            continue
        action, body = part
        if body is not None:
            for item in _find(action, node):
                yield from _render(body, item)
        elif action[:1] in {'"', "'"}:
            yield str(ast.literal_eval(action))
        else:
            yield " ".join(map(_text, _find(action, node)))


def _find(path: str, node: Any) -> list[Any]:
    """Return the values at a path of kubectl's dialect. Raises InputError or UsageError."""
    rest = path.strip().removeprefix("@").removeprefix("$")
    if rest and rest[0] not in ".[":
        raise UsageError(f"unrecognized identifier {path.strip()}")
    union = _UNION.search(rest)
    if union is not None:  # values of the first key, then of the next one
        keys = union[1].split(",")
        paths = (f"{rest[: union.start()]}[{key}]{rest[union.end() :]}" for key in keys)
        return [match for path in paths for match in _find(path, node)]
    rest = _ESCAPED.sub(lambda name: f"['{name[1]}']", rest).replace("\\.", ".")
    rest = _UNEQUAL.sub(r"\1 && \1!=", rest)
    for index in _SLICE.finditer(rest):
        for values in _query(rest[: index.start()], node):
            _check_bounds(values, index)
    return _query(rest, node)


def _query(path: str, node: Any) -> list[Any]:
    from jsonpath import JSONPathError, findall

    try:
        return list(findall(f"${path if path != '.' else ''}", node))
    except JSONPathError as error:
        raise UsageError(str(error).partition("\n")[0]) from None


def _check_bounds(values: Any, index: re.Match[str]) -> None:
    """Raise InputError if kubectl would: the library ignores elements that do not exist."""
    if not isinstance(values, list):
        raise InputError(f"{_TYPES.get(type(values), 'a number')} is not array or slice")
    length, (start, colon, end) = len(values), index.group(1, 2, 3)
    first = int(start or 0) + (length if start.startswith("-") else 0)
    last = first + 1 if not colon else int(end or length) + (length if end.startswith("-") else 0)
    if first != last:
        for place in (first, last - 1):
            if not 0 <= place < length:
                raise InputError(f"array index out of bounds: index {place}, length {length}")


def _text(value: Any) -> str:
    """Return a value as kubectl prints it: texts as they are, other values as Go's JSON."""
    if isinstance(value, str):
        return value
    text = json.dumps(_numbers(value), separators=(",", ":"), ensure_ascii=False)
    return re.sub("[<>&]", lambda match: f"\\u{ord(match[0]):04x}", text)


def _numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _numbers(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e21 else value


def render_columns(spec: str, document: Any, *, headers: bool = True) -> str:
    """Render a spec such as `POD:.pod`: a row for each item. Raises InputError or UsageError."""
    if not spec:
        hint = "-o custom-columns=POD:.pod; -o json shows the fields"
        raise UsageError("custom-columns format specified but no custom columns given", hint)
    names, paths = [], []
    for column in spec.split(","):
        name, colon, path = column.partition(":")
        if not colon:
            raise UsageError(f"unexpected custom-columns spec: {column}, expected <header>:<json-path-expr>")
        path = path.strip().removeprefix("{").removesuffix("}")
        names.append(name)
        paths.append(path if path[:1] in {".", "[", ""} else f".{path}")
    items = document.get("items", [document])
    rows = [
        [",".join(map(_cell, _find(path, item) if path else [])) or NONE for path in paths] for item in items
    ]
    rows = [names, *rows] if headers else rows
    widths = (
        [max(_LEAST_WIDTH, *(len(row[at]) + 3 for row in rows)) for at in range(len(names) - 1)]
        if rows
        else []
    )
    return "".join(
        "".join(cell.ljust(width) for cell, width in zip(row, [*widths, 0], strict=True)) + "\n"
        for row in rows
    )


def _cell(value: Any) -> str:
    """Return a value as Go's fmt prints it; null is `<none>`, like a field that is absent."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{_cell(item)}' for name, item in sorted(value.items()))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(_cell, value))}]"
    return NONE if value is None else _text(value)
