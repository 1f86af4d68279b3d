"""Candidates and what a shell is to do with them, as kubectl and all programs made with cobra say it.

Source: github.com/spf13/cobra/completions.go (ShellCompDirective) and
k8s.io/kubectl/pkg/cmd/plugin/plugin_completion.go (getPluginCompletions).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

FILES: Final = 0
"""The shell completes file names where there are no candidates."""
NO_SPACE: Final = 2
NO_FILES: Final = 4
EXTENSIONS: Final = 8
"""The candidates are the endings of the files that are wanted."""
FOLDERS: Final = 16

_UNFINISHED: Final = ("=", "/", ":", "-")
"""What a candidate ends in after which more is to be typed."""
_LONGEST_ABOUT: Final = 80
_SHELLS_OWN: Final = frozenset("`$\\\"'*?[]{}()<>|&;!#")
"""Some versions of the shells' scripts evaluate candidates, and these come from servers and files."""


class Candidate(NamedTuple):
    """What the word being typed may become, and what that is in a few words."""

    value: str
    about: str = ""


class Completions(NamedTuple):
    """Candidates, and beside what they say themselves the directive for the shell."""

    candidates: tuple[Candidate, ...] = ()
    directive: int = NO_FILES

    def starting_with(self, word: str) -> Completions:
        """The candidates that go on from a word, each once; endings of files are no candidates."""
        if self.directive != NO_FILES:
            return self
        kept = {one.value: one for one in self.candidates if one.value.startswith(word)}
        return Completions(tuple(kept.values()))

    def text(self) -> str:
        """The lines that shells read; whatever is in a name, it stays one line of them."""
        kept = [one for one in self.candidates if _is_harmless(one.value)]
        open_ended = any(one.value.endswith(_UNFINISHED) for one in kept)
        directive = self.directive | (NO_SPACE if open_ended else 0)
        return "".join(f"{line}\n" for line in (*map(_line, kept), f":{directive}"))


NOTHING: Final = Completions()


def completions(values: Iterable[str]) -> Completions:
    """These values, without words about them."""
    return Completions(tuple(map(Candidate, values)))


def _is_harmless(value: str) -> bool:
    return bool(value) and value == value.strip() and value.isprintable() and _SHELLS_OWN.isdisjoint(value)


def _line(candidate: Candidate) -> str:
    about = " ".join("".join(one if one.isprintable() else " " for one in candidate.about).split())
    if len(about) > _LONGEST_ABOUT:
        about = f"{about[: _LONGEST_ABOUT - 1].rstrip()}…"
    return f"{candidate.value}\t{about}" if about else candidate.value
