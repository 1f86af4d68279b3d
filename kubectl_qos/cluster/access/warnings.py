"""The warnings that an API server sends along with an answer, as texts.

Source: k8s.io/apimachinery/pkg/util/net/http.go (ParseWarningHeaders): `299 - "text"`, with a comma between
two of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_WARNING: Final = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')


def warnings_of(values: Iterable[str]) -> tuple[str, ...]:
    """The texts, each once, on one line and without what is not to be printed."""
    found = (re.sub(r"\\(.)", r"\1", quoted) for value in values for quoted in _WARNING.findall(value))
    return tuple(dict.fromkeys(" ".join(_printable(text).split()) for text in found))


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)
