"""The door of the terminal UI: everything that it works on comes in here."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from kubectl_qos.cluster.source import Source
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.live import Finder


def start(source: Source, scope: Scope, *, find: Finder | None = None, notes: Sequence[str] = ()) -> int:
    """Run the UI until it is left; the exit code.

    Args:
        source: where pods, nodes and usage come from.
        scope: which pods are asked for.
        find: finds the pod whose edit screen is opened at once, in the first snapshot.
        notes: what there is to say about the source, such as documents that could not be read.

    Raises:
        QosError: `find` found none, or there is no terminal to take keys from.
    """
    _take_keys_from_the_terminal()
    app = QosApp(source, scope, find=find, notes=notes)
    refused = app.run()
    if isinstance(refused, QosError):
        raise refused
    return app.return_code or 0


def _take_keys_from_the_terminal() -> None:
    """Standard input may be the file that was read (`-f -`): keys then come from the terminal itself."""
    if sys.__stdin__ is not None and sys.__stdin__.isatty():
        return
    try:
        os.dup2(os.open(os.ctermid(), os.O_RDONLY), 0)
    except (OSError, AttributeError):
        raise QosError(
            "the terminal UI needs a terminal for its keys", hint="kubectl qos top prints the ranking"
        ) from None
