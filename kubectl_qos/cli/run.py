"""Run a command of the command line; the one place that turns errors into exit codes."""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable
from importlib import import_module
from typing import Final

from kubectl_qos import __version__
from kubectl_qos.cli import streams
from kubectl_qos.errors import EXIT_INTERRUPTED, QosError

EXIT_DEFECT: Final = 2
"""As of a Go program that panics; 1 is how some commands say that they found something."""
DEFECT_HINT: Final = (
    "this is a defect of kubectl-qos; please report it with what -v=9 and kubectl qos bug-report print"
)

_COMMANDS = {
    "top": "kubectl_qos.cli.top",
    "explain": "kubectl_qos.cli.explain",
    "tree": "kubectl_qos.cli.tree",
    "compare": "kubectl_qos.cli.compare",
    "set": "kubectl_qos.cli.set",
    "undo": "kubectl_qos.cli.undo",
    "verify": "kubectl_qos.cli.verify",
    "simulate": "kubectl_qos.cli.simulate",
    "kills": "kubectl_qos.cli.kills",
    "can-i": "kubectl_qos.cli.can_i",
    "host": "kubectl_qos.cli.host",
    "completion": "kubectl_qos.cli.commands.completion",
    "web": "kubectl_qos.cli.web",
    "version": "kubectl_qos.cli.version",
    "bug-report": "kubectl_qos.cli.bug_report",
}


def run(options: argparse.Namespace) -> int:
    """The exit code of a parsed command."""
    if getattr(options, "version", False):
        streams.out([f"kubectl-qos {__version__}"])
        return 0
    command: Callable[[argparse.Namespace], int] = import_module(_COMMANDS[options.command]).run
    # A command keeps what it makes until it ends: looking for garbage took a fifth of its time.
    gc.disable()
    try:
        return command(options)
    finally:
        gc.enable()


def exit_code_for(action: Callable[[], int]) -> int:
    """Run an action; an error becomes its sentence and exit code."""
    streams.prepare()
    try:
        return action()
    except QosError as error:
        streams.error(error)
        return error.exit_code
    except KeyboardInterrupt:
        streams.end_progress()
        return EXIT_INTERRUPTED
    except Exception as error:  # noqa: BLE001 - whatever is wrong with us
        streams.note(f"error: unexpected {type(error).__name__}: {error}")
        streams.note(f"hint: {DEFECT_HINT}")
        return EXIT_DEFECT
