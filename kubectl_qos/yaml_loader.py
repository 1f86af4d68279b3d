"""YAML as Kubernetes reads it: one loader for kubeconfigs, manifests and settings."""

from __future__ import annotations

import re
from functools import cache
from itertools import accumulate
from typing import Any, Final

MAX_DEPTH: Final = 1_000
"""Kubernetes' own objects end at about 20."""
_BRACKETS: Final = re.compile(r"[\[{\]}]")
_INDENTED: Final = re.compile(rf"^[ ?-]{{{MAX_DEPTH}}}", re.MULTILINE)


@cache
def yaml_loader() -> Any:
    """PyYAML's safe loader, with times and `=` as text, and the plain value of unknown tags."""
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        pass

    def plain_value(loader: Any, node: Any) -> Any:
        if isinstance(node, yaml.MappingNode):
            return loader.construct_mapping(node, deep=True)
        if isinstance(node, yaml.SequenceNode):
            return loader.construct_sequence(node, deep=True)
        return loader.construct_scalar(node)

    Loader.yaml_implicit_resolvers = {
        first: [(tag, form) for tag, form in pairs if not tag.endswith((":timestamp", ":value"))]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    for tag in (None, "tag:yaml.org,2002:timestamp"):
        Loader.add_constructor(tag, plain_value)
    return Loader


def is_too_deep(text: str) -> bool:
    """Whether values are nested deeper than MAX_DEPTH, which would overflow the stack of who loads them.

    Texts that cannot be that deep, by their brackets and their indentation, are not parsed for it.
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
        return False  # loading it names the place
    return False
