"""Candidates for a word, and what tells a shell what to do with them: cobra's protocol."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

FILES: Final = 0
"""The shell completes file names where there are no candidates."""
NO_SPACE: Final = 2
NO_FILES: Final = 4
EXTENSIONS: Final = 8
"""The candidates are endings of file names."""
FOLDERS: Final = 16

_UNFINISHED: Final = ("=", "/", ":", "-")
"""The ends of candidates after which more is to be typed."""
_MAX_DESCRIPTION: Final = 80
_UNSAFE: Final = frozenset("`$\\\"'*?[]{}()<>|&;!#")
"""Some versions of the shells' scripts evaluate candidates, and these come from servers and files."""


class Candidate(NamedTuple):
    """What the word being typed may become, with a description in a few words."""

    value: str
    description: str = ""


class Completions(NamedTuple):
    """Candidates, and a directive for the shell."""

    candidates: tuple[Candidate, ...] = ()
    directive: int = NO_FILES

    @staticmethod
    def of(values: Iterable[str]) -> Completions:
        """These values, without descriptions."""
        return Completions(tuple(map(Candidate, values)))

    def starting_with(self, word: str) -> Completions:
        """The candidates that continue a word, each once; endings of files are no candidates."""
        if self.directive != NO_FILES:
            return self
        kept = {item.value: item for item in self.candidates if item.value.startswith(word)}
        return Completions(tuple(kept.values()))

    def text(self) -> str:
        """The lines that shells read, one for each candidate whatever its name has in it."""
        kept = [item for item in self.candidates if _is_safe(item.value)]
        is_unfinished = any(item.value.endswith(_UNFINISHED) for item in kept)
        directive = self.directive | (NO_SPACE if is_unfinished else 0)
        return "".join(f"{line}\n" for line in (*map(_line, kept), f":{directive}"))


NOTHING: Final = Completions()


def _is_safe(value: str) -> bool:
    return bool(value) and value == value.strip() and value.isprintable() and _UNSAFE.isdisjoint(value)


def _line(candidate: Candidate) -> str:
    printable = (char if char.isprintable() else " " for char in candidate.description)
    description = " ".join("".join(printable).split())
    if len(description) > _MAX_DESCRIPTION:
        description = f"{description[: _MAX_DESCRIPTION - 1].rstrip()}…"
    return f"{candidate.value}\t{description}" if description else candidate.value
