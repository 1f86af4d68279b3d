"""The names of what there is where the flags lead: on a server, in files, in the demo.

Not here: how each of them is asked (server_names.py, file_names.py), which is imported with the question.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from kubectl_qos.cli.complete.place import Named, Place

T = TypeVar("T")


class Names:
    """The names where the flags lead; nothing is read or asked before there is a question.

    What cannot be had is nothing, for there may be other candidates. Why goes to stderr: a log, if anything.
    """

    def __init__(self, options: argparse.Namespace, seconds: float) -> None:
        self._options = options
        self._seconds = seconds

    def of(self, kind: str, *, node: str | None = None, labels: bool = False) -> list[Named]:
        """The objects of a kind in scope; pods only of a node if one is given here or by --node."""
        node = node or getattr(self._options, "node", None)
        return self._or_nothing(lambda place: place.of(kind, node=node, labels=labels))

    def containers(self, kind: str, name: str) -> list[str]:
        """The names of the containers of a pod or workload, init containers too."""
        return self._or_nothing(lambda place: place.containers(kind, name))

    def _or_nothing(self, question: Callable[[Place], list[T]]) -> list[T]:
        try:
            return question(self._place())
        except Exception:  # noqa: BLE001 - whatever a server, a kubeconfig or a file makes it raise
            import traceback

            traceback.print_exc()
            return []

    def _place(self) -> Place:
        if getattr(self._options, "demo", False) or getattr(self._options, "filename", None):
            from kubectl_qos.cli.complete.file_names import FileNames

            return FileNames(self._options)
        from kubectl_qos.cli.complete.server_names import ServerNames

        return ServerNames(self._options, self._seconds)
