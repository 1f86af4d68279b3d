"""How deep a YAML text is nested. libyaml composes recursively, and ends the process where its stack ends."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Any, Final

DEEPEST: Final = 1_000
"""Kubernetes' own objects end at about 20."""
_BRACKETS: Final = re.compile(r"[\[{\]}]")
_INDENTED: Final = re.compile(rf"^[ ?-]{{{DEEPEST}}}", re.MULTILINE)


def is_too_deep(text: str, loader: Any) -> bool:
    """Whether something in it is nested deeper than DEEPEST, read by events, which need no stack.

    Texts that cannot be that deep, by their brackets and their indentation, are not read for it.
    """
    if not _may_be_deep(text):
        return False
    import yaml

    depth = 0
    try:
        for event in yaml.parse(text, Loader=loader):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > DEEPEST:
                    return True
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
    except yaml.YAMLError:
        return False  # whoever reads the values says where it is wrong
    return False


def _may_be_deep(text: str) -> bool:
    steps = (1 if bracket in "[{" else -1 for bracket in _BRACKETS.findall(text))
    return max(accumulate(steps), default=0) > DEEPEST or _INDENTED.search(text) is not None
