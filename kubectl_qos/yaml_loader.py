"""Read YAML as Kubernetes does, with line numbers.

PyYAML composes the nodes. This module constructs their values, since PyYAML's constructor is slower than its
parser, expands aliases without a bound, and yields types that JSON lacks.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate
from typing import Any, Final, NamedTuple, NoReturn

MAX_DEPTH: Final = 200
"""Real objects reach about 20 levels; Python's stack overflows before kubectl's own limit of 10,000."""
_BRACKETS: Final = re.compile(r"[\[{\]}]")
_INDENTED: Final = re.compile(rf"^[ ?-]{{{MAX_DEPTH}}}", re.MULTILINE)
_STEP: Final = re.compile(r"[^.\[\]]+")
_TAG: Final = "tag:yaml.org,2002:"
_TEXT: Final = f"{_TAG}str"
_MERGE: Final = f"{_TAG}merge"

MAX_REPEATED: Final = 100_000
"""The most values that aliases may add to a document, which otherwise has at most one per character."""


class YamlDocument(NamedTuple):
    """A document as JSON types, its node, and the nodes of mappings with duplicate keys."""

    value: Any
    node: Any
    repeating: list[Any]

    def position(self, path: str | Sequence[str]) -> tuple[int, int]:
        """Return line and column, from 0, of a field, or of its nearest existing parent.

        The path is a text such as `spec.containers[0].name`, or a list of its steps.
        """
        node, mark = self.node, self.node.start_mark
        for step in _STEP.findall(path) if isinstance(path, str) else path:
            entry = next((entry for entry in _entries(node) if entry[0] == step), None)
            if entry is None:
                break
            _, key, node = entry
            mark = key.start_mark
        return int(mark.line), int(mark.column)

    def duplicates(self) -> Iterator[tuple[str, int]]:
        """Yield the path of each duplicate key, and its line from 0."""
        stack = [("", self.node)] if self.repeating else []
        while stack:
            path, node = stack.pop()
            names = set()
            for name, key, value in _entries(node):
                inner = f"{path}[{name}]" if node.id == "sequence" else f"{path}.{name}".removeprefix(".")
                if name in names and any(node is mapping for mapping in self.repeating):
                    yield inner, key.start_mark.line
                names.add(name)
                stack.append((inner, value))


def _entries(node: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the name or index of each entry, and the nodes of its key (of a list, the item) and value."""
    if node.id == "sequence":
        yield from ((str(index), item, item) for index, item in enumerate(node.value))
    elif node.id == "mapping":
        yield from ((key.value if key.id == "scalar" else "", key, value) for key, value in node.value)


@cache
def yaml_loader() -> Any:
    """Return PyYAML's safe loader, changed to read times and `=` as text."""
    import yaml

    plain_tags = {yaml.ScalarNode: _TEXT, yaml.SequenceNode: f"{_TAG}seq", yaml.MappingNode: f"{_TAG}map"}

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        def resolve(self, kind: type, value: str, implicit: Any) -> str:
            # Skip the path resolvers that PyYAML's method tests for every node: there are none.
            if kind is yaml.ScalarNode and implicit[0]:
                for tag, form in self.yaml_implicit_resolvers.get(value[:1], ()):
                    if form.match(value):
                        return str(tag)
            return plain_tags[kind]

        def descend_resolver(self, *_: object) -> None:
            pass

        def ascend_resolver(self) -> None:
            pass

    Loader.yaml_implicit_resolvers = {
        first: [(tag, form) for tag, form in pairs if not tag.endswith((":timestamp", ":value"))]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    return Loader


def read_yaml(text: str | bytes, *, first: bool = False, as_text: bool = False) -> YamlDocument | None:
    """Return the only document of a text, or the `first` of several; None for an empty text.

    With `as_text`, numbers and `~` stay text. Raises yaml.YAMLError.
    """
    import yaml

    plain = text if isinstance(text, str) else text.decode(errors="replace")
    if is_too_deep(plain):
        raise yaml.YAMLError(f"exceeded max depth of {MAX_DEPTH}")
    loader = yaml_loader()(text)
    try:
        has_any = loader.check_node()
        node = loader.get_node() if has_any else None
        if has_any and not first and loader.check_node():
            raise _error("but found another document", loader.get_node())
        if node is None:
            return None
        construct = _Constructor(loader, len(plain) + MAX_REPEATED, as_text=as_text)
        return YamlDocument(construct(node), node, construct.repeating)
    except RecursionError:
        raise yaml.YAMLError(f"exceeded max depth of {MAX_DEPTH}") from None
    except (ValueError, KeyError) as error:
        raise yaml.YAMLError(f"{error}") from None
    finally:
        loader.dispose()


class _Constructor:
    """Constructs at most `max_values` values, since aliases of aliases could yield any number."""

    def __init__(self, loader: Any, max_values: int, *, as_text: bool) -> None:
        self.repeating: list[Any] = []
        self._values_left = max_values
        self._depth = 0
        self._scalars = {
            f"{_TAG}null": (lambda node: node.value or None) if as_text else lambda _: None,
            f"{_TAG}bool": loader.construct_yaml_bool,
        }
        if not as_text:
            self._scalars[f"{_TAG}int"] = loader.construct_yaml_int
            self._scalars[f"{_TAG}float"] = loader.construct_yaml_float

    def __call__(self, node: Any) -> Any:
        """Return the value of a node; an unknown tag is ignored."""
        if node.tag == _TEXT:
            return node.value
        if node.id == "scalar":
            scalar = self._scalars.get(node.tag)
            # Only PyYAML reads 12:30 as a number of base 60.
            return node.value if scalar is None or ":" in node.value else scalar(node)
        self._depth += 1
        self._values_left -= len(node.value)
        if self._depth > MAX_DEPTH or self._values_left < 0:
            self._refuse()
        if node.id == "sequence":
            items = []
            for item in node.value:
                items.append(self(item))  # noqa: PERF401 - a comprehension would need a frame for each level
            self._depth -= 1
            return items
        result: dict[str, Any] = {}
        merged = []
        for key, value in node.value:
            if key.tag == _MERGE:
                merged.append(value)
            else:
                result[key.value if key.tag == _TEXT else self._key(key)] = self(value)
        if len(result) + len(merged) < len(node.value):
            self.repeating.append(node)
        result = self._merge(result, merged) if merged else result
        self._depth -= 1
        return result

    def _refuse(self) -> NoReturn:
        import yaml

        is_deep = self._depth > MAX_DEPTH  # such as an anchor that contains itself
        problem = f"exceeded max depth of {MAX_DEPTH}" if is_deep else "document contains excessive aliasing"
        raise yaml.YAMLError(problem)

    def _key(self, node: Any) -> str:
        """Return a key as text, as sigs.k8s.io/yaml converts it to JSON."""
        if node.id != "scalar":
            raise _error("invalid map key", node)
        key = self(node)
        if key is None:
            raise _error("unsupported map key of type: null", node)
        return str(key).lower() if isinstance(key, bool) else str(key)

    def _merge(self, result: dict[str, Any], merged: list[Any]) -> dict[str, Any]:
        """Add the keys of `<<`: explicit keys win, then earlier mappings."""
        for node in merged:
            for source in node.value if node.id == "sequence" else (node,):
                if source.id != "mapping":
                    raise _error("map merge requires map or sequence of maps as the value", source)
                result = {**self(source), **result}
        return result


def _error(problem: str, node: Any) -> Exception:
    import yaml

    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


def is_too_deep(text: str) -> bool:
    """Return whether values nest deeper than MAX_DEPTH, so that loading them would overflow the stack.

    A text is parsed only if its brackets or indentation make that possible.
    """
    depths = accumulate(1 if bracket in "[{" else -1 for bracket in _BRACKETS.findall(text))
    if max(depths, default=0) <= MAX_DEPTH and not _INDENTED.search(text):
        return False
    import yaml

    depth = 0
    try:
        for event in yaml.parse(text, Loader=yaml_loader()):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > MAX_DEPTH:
                    return True
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
    except yaml.YAMLError:
        return False  # the loader names the place
    return False
