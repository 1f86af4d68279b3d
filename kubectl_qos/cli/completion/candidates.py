"""Candidates for a word, with a directive that says what a shell does with them: cobra's protocol."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

FILES: Final = 0
"""Directive: complete file names if there are no candidates."""
NO_SPACE: Final = 2
NO_FILES: Final = 4
EXTENSIONS: Final = 8
"""Directive: the candidates are file extensions."""
FOLDERS: Final = 16

_UNFINISHED: Final = ("=", "/", ":", "-")
"""Suffixes of candidates after which no space is added."""
_MAX_DESCRIPTION: Final = 80
_UNSAFE: Final = frozenset("`$\\\"'*?[]{}()<>|&;!#")
"""Names from servers and files that have one are left out: some shells' scripts evaluate candidates."""


class Candidate(NamedTuple):
    """A completion of the word, with a short description."""

    value: str
    description: str = ""


class Completions(NamedTuple):
    """Candidates, and a directive for the shell."""

    candidates: tuple[Candidate, ...] = ()
    directive: int = NO_FILES

    @staticmethod
    def of(values: Iterable[str]) -> Completions:
        """Make candidates of values without descriptions."""
        return Completions(tuple(map(Candidate, values)))

    def starting_with(self, word: str) -> Completions:
        """Keep the candidates that begin with the word, without duplicates; file extensions all stay."""
        if self.directive != NO_FILES:
            return self
        kept = {item.value: item for item in self.candidates if item.value.startswith(word)}
        return Completions(tuple(kept.values()))

    def text(self) -> str:
        """Format one line for each safe candidate, then the directive."""
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
