"""Flags of the commands that write to a cluster: `set` and `undo`."""

from __future__ import annotations

import argparse

from kubectl_qos.cli.flags import add_switch
from kubectl_qos.errors import QosError


def add_landing(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """How a change is written; the group, for flags of one command alone."""
    group = parser.add_argument_group("how it is written to a cluster")
    group.add_argument(
        "--dry-run",
        choices=("none", "client", "server"),
        metavar="client|server",
        help="client: the server is only read from; server: it tries the change without doing it",
    )
    group.add_argument(
        "-y", "--yes", action="store_true", help="do not ask; without a terminal nothing is written otherwise"
    )
    group.add_argument("--readonly", action="store_true", help="refuse everything that would be sent")
    add_switch(group, "--wait", "follow the change until it has settled, which is so if not said")
    group.add_argument(
        "--timeout",
        type=_seconds,
        metavar="TIME",
        help="follow it no longer than this: 30s, 5m; 0 is no end. The change stays",
    )
    return group


def _seconds(text: str) -> float:
    from kubectl_qos.transport.net_errors import parse_timeout

    try:
        return parse_timeout(text) or 0
    except QosError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
