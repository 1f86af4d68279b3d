"""Run a command of the command line; the one place that turns errors into exit codes."""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable
from importlib import import_module

from kubectl_qos import __version__
from kubectl_qos.cli import streams
from kubectl_qos.errors import EXIT_ERROR, EXIT_INTERRUPTED, QosError

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
    "completion": "kubectl_qos.cli.completion",
    "web": "kubectl_qos.cli.web",
}


def run(options: argparse.Namespace) -> int:
    """The exit code of a parsed command."""
    if getattr(options, "version", False) or options.command == "version":
        streams.out([f"kubectl-qos {__version__}"])
        return 0
    command: Callable[[argparse.Namespace], int] = import_module(_COMMANDS[options.command]).run
    # A command keeps what it makes until it ends: looking for garbage took a fifth of its time.
    gc.disable()
    try:
        return command(options)
    finally:
        gc.enable()


def guarded(action: Callable[[], int], *, verbosity: int = 0) -> int:
    """Run an action; an error becomes its sentence and exit code. Tracebacks only with -v=9."""
    streams.prepare()
    try:
        return action()
    except QosError as error:
        if verbosity >= 9:
            raise
        streams.error(error)
        return error.exit_code
    except KeyboardInterrupt:
        streams.end_progress()
        return EXIT_INTERRUPTED
    except Exception as error:
        if verbosity >= 9:
            raise
        streams.note(f"error: unexpected {type(error).__name__}: {error}")
        streams.note("hint: this is a defect of kubectl-qos; run again with -v=9 and report the traceback")
        return EXIT_ERROR
