"""`kubectl qos web`: the terminal UI in a browser."""

from __future__ import annotations

import argparse
import gc
from typing import TYPE_CHECKING, Final, NamedTuple

from kubectl_qos.cli import output
from kubectl_qos.cli.flags import add_repeated, add_switch, whole_number
from kubectl_qos.cli.sources import SourceNeeds, resolve_source
from kubectl_qos.errors import QosError, UsageError

if TYPE_CHECKING:
    from kubectl_qos.cli.options import SourceOptions

DEFAULT_PORT: Final = 8767
_LAST_PORT: Final = 0xFFFF
DESCRIPTION: Final = (
    "Serve the terminal UI in a browser. Each page runs a process with your credentials; anyone who has the"
    " printed URL can use it. Needs pip install 'kubectl-qos[web]'."
)


class Options(NamedTuple):
    """Where the UI is served, and the flags that it is started with."""

    source: SourceOptions
    flags: tuple[str, ...]
    address: str
    port: int
    allowed_hosts: tuple[str, ...]
    allow_writes: bool
    readonly: bool
    open: bool
    verbosity: int = 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `web`."""
    parser.add_argument(
        "--port",
        type=whole_number(f"a port: a number from 0 to {_LAST_PORT}", 0, _LAST_PORT),
        default=DEFAULT_PORT,
        metavar="PORT",
        help=f"the port to listen on (default: {DEFAULT_PORT}); 0 is any free port",
    )
    parser.add_argument(
        "--address",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="the address to listen on (default: 127.0.0.1, only this machine)",
    )
    help_ = "another host name to accept, such as a reverse proxy's; may repeat"
    add_repeated(parser, "--allow-host", dest="allowed_hosts", metavar="NAME", help=help_)
    add_switch(parser, "--allow-writes", help="allow changes; without it the UI starts with --readonly")
    add_switch(parser, "--open", help="open the page in a browser")


def run(options: Options) -> int:
    """Serve until ctrl-c; the URL goes to stdout. Raises QosError."""
    from importlib.util import find_spec

    if options.allow_writes and options.readonly:
        raise UsageError("--readonly and --allow-writes cannot be used together")
    if "-" in options.source.files:
        raise UsageError(
            "web cannot read standard input: every page reads its objects again",
            hint="write them to a file, and give it with -f",
        )
    if find_spec("textual_serve") is None:
        raise QosError("kubectl qos web needs textual-serve; pip install 'kubectl-qos[web]' brings it")
    # Resolve once now: wrong flags fail here, and a credential plugin can ask the person at the terminal.
    output.notes(resolve_source(options.source, SourceNeeds(progress=False)).notes)
    if options.verbosity:
        from kubectl_qos.config import state_dir

        output.note(f"each page logs to its own file in {state_dir() or 'no folder: there is none'}")
    import asyncio

    from kubectl_qos.web.server import serve

    gc.enable()
    serving = serve(
        [*([] if options.allow_writes else ["--readonly"]), *options.flags],
        options.address,
        options.port,
        names=options.allowed_hosts,
        browse=options.open,
        started=lambda url: output.print_lines([f"Starting to serve on {url}"]),
        warn=output.note,
    )
    return asyncio.run(serving)
