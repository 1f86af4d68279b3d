"""Candidates for what commands are about: `pod/web-0`, `deployment/web`, `nodes worker-1`, `web-0`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubectl_qos.cli.complete.names import Names
from kubectl_qos.cli.complete.offer import NOTHING, Candidate, Offer
from kubectl_qos.cli.complete.position import Position
from kubectl_qos.k8s.kind_words import KIND_WORDS, kind_of

POD: Final = "Pod"
NODE: Final = "Node"
EVERY_TYPE: Final = tuple(KIND_WORDS)
WORKLOADS: Final = tuple(kind for kind in EVERY_TYPE if kind not in {POD, NODE})


class Targets:
    """Completes targets of some types; `bare` are pods without their type, `most` of them are taken."""

    def __init__(self, *types: str, bare: bool = False, most: int | None = 1) -> None:
        self._types = types
        self._bare = bare
        self._most = most

    def __call__(self, at: Position, names: Names) -> Offer:
        """A type with its slash, the names behind a slash, or those of a type that is a word of its own."""
        first = at.operands[0] if at.operands else ""
        kind = _kind_of(first, self._types)
        is_typed_apart = kind is not None
        if self._most is not None and len(at.operands) - is_typed_apart >= self._most:
            return NOTHING
        typed, slash, _ = at.word.partition("/")
        if is_typed_apart and kind is not None:
            found = _named(kind, "", names)
        elif slash:
            kind = _kind_of(typed, self._types)
            found = _named(kind, f"{typed}/", names) if kind is not None else iter(())
        else:
            found = self._beginnings(at, names)
        return Offer(tuple(one for one in found if one.value not in at.operands))

    def _beginnings(self, at: Position, names: Names) -> Iterator[Candidate]:
        """What a target may begin with; names with and without a type are not mixed."""
        if not self._bare or not at.operands or "/" in at.operands[0]:
            for one in self._types:
                yield Candidate(f"{KIND_WORDS[one][0]}/")
        if self._bare and "/" not in "".join(at.operands):
            yield from _named(POD, "", names)


def target_of(at: Position) -> tuple[str, str] | None:
    """The kind and the name of the first target among the words before, if it is one."""
    first, *rest = at.operands or ("",)
    typed, slash, name = first.partition("/")
    kind = kind_of(typed)
    if not slash:
        name = rest[0] if rest else ""
    return (kind, name) if kind is not None and name else None


def _kind_of(word: str, types: tuple[str, ...]) -> str | None:
    kind = kind_of(word)
    return kind if kind in types else None


def _named(kind: str, before: str, names: Names) -> Iterator[Candidate]:
    for one in names.of(kind):
        yield Candidate(before + one.name, one.about)
