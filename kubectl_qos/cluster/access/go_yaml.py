"""YAML and JSON read as kubectl reads them: the first document, unknown tags ignored, dates kept as text.

Source: sigs.k8s.io/yaml and its go-yaml/v2 (the words and line numbers of its errors).
"""

from __future__ import annotations

from functools import cache
from typing import Any

from kubectl_qos.cluster.nesting import DEEPEST, is_too_deep


class NotYaml(ValueError):
    """A text is no YAML; the message is go-yaml's."""


def first_document(text: bytes) -> Any:
    """The first document, None for an empty text. Raises NotYaml."""
    import yaml

    if is_too_deep(text.decode(errors="replace"), _loader()):
        raise NotYaml(f"yaml: exceeded max depth of {DEEPEST}")
    try:
        loader = _loader()(text)
        try:
            return loader.get_data() if loader.check_data() else None
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        raise NotYaml(f"yaml: {_line_of(error)}{error.problem}") from None
    except yaml.reader.ReaderError as error:
        raise NotYaml(f"yaml: {error.reason}") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise NotYaml(f"yaml: {' '.join(str(error).split())}") from None


@cache
def _loader() -> Any:
    """The safe loader without dates, and with a plain value for every tag that it does not know."""
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        pass

    Loader.yaml_implicit_resolvers = {
        first: [pair for pair in pairs if not pair[0].endswith((":timestamp", ":value"))]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def plain(loader: Any, node: Any) -> Any:
        if isinstance(node, yaml.MappingNode):
            return loader.construct_mapping(node, deep=True)
        if isinstance(node, yaml.SequenceNode):
            return loader.construct_sequence(node, deep=True)
        return loader.construct_scalar(node)

    Loader.add_constructor(None, plain)
    return Loader


def _line_of(error: Any) -> str:
    """The line as go-yaml counts it: a parser's from zero, a scanner's from one, and never the first."""
    import yaml

    for mark in (error.problem_mark, error.context_mark):
        if mark is not None and mark.line:
            return f"line {mark.line + isinstance(error, yaml.scanner.ScannerError)}: "
    return ""
