"""Going to another cluster: the contexts that there are, and the sources behind them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from textual.message import Message

from kubectl_qos.cluster.source import Source
from kubectl_qos.errors import QosError


@dataclass(frozen=True, slots=True)
class ContextSwitch:
    """`names` reads which contexts there are, `open` connects to one, which may take time.

    Both raise QosError.
    """

    names: Callable[[], tuple[str, ...]]
    open: Callable[[str], Source]


class ContextOpened(Message):
    """Another source, or why there is none."""

    def __init__(self, found: Source | QosError) -> None:
        super().__init__()
        self.found = found


def open_context(contexts: ContextSwitch, name: str) -> ContextOpened:
    """The source of a context; runs in a thread, since credentials may come from a program."""
    try:
        return ContextOpened(contexts.open(name))
    except QosError as error:
        return ContextOpened(error)


def _nowhere(name: str) -> Source:
    raise QosError(f'context "{name}" does not exist')


NO_CONTEXTS = ContextSwitch(tuple, _nowhere)
