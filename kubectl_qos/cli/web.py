"""`kubectl qos web`: the terminal UI in a browser."""

from __future__ import annotations

import argparse
import gc
from importlib.util import find_spec

from kubectl_qos.cli import streams
from kubectl_qos.cli.parser import spelled
from kubectl_qos.cli.sources import resolve_source
from kubectl_qos.config.paths import state_dir
from kubectl_qos.errors import QosError, UsageError


def run(options: argparse.Namespace) -> int:
    """Serve until ctrl-c; the URL goes to stdout. Raises QosError."""
    allow_writes = getattr(options, "allow_writes", False)
    if allow_writes and options.readonly:
        raise UsageError("--readonly and --allow-writes cannot be used together")
    if "-" in getattr(options, "filename", []):
        raise UsageError(
            "web cannot take its objects from standard input: every page reads them anew",
            hint="write them to a file and name that with -f",
        )
    if find_spec("textual_serve") is None:
        raise QosError("kubectl qos web needs textual-serve; pip install 'kubectl-qos[web]' brings it")
    # What is wrong with the flags is said here, and a credential plugin may ask the person who starts it.
    streams.notes(resolve_source(argparse.Namespace(**{**vars(options), "command": None})).problems)
    if getattr(options, "verbosity", 0):
        streams.note(f"each page logs to a file of its own in {state_dir() or 'no folder: there is none'}")
    from kubectl_qos.web.server import ServerOptions, serve

    gc.enable()
    return serve(
        ServerOptions(
            words=[*([] if allow_writes else ["--readonly"]), *spelled(options)],
            address=options.address,
            port=options.port,
            names=getattr(options, "allow_hosts", []),
            browse=getattr(options, "open", False),
        ),
        started=lambda url: streams.out([f"Starting to serve on {url}"]),
        warn=streams.note,
    )
