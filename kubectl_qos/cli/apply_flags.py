"""Flags of the commands that change a cluster, `set` and `undo`, and what they become.

Completion and --help import this room, so it imports little. Not here: what the flags do (apply.py).
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Literal

from kubectl_qos.cli.flags import add_switch
from kubectl_qos.errors import QosError


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """How a change is applied; `given` are those of its flags that make no sense without a cluster."""

    dry_run: Literal["none", "client", "server"]
    yes: bool
    readonly: bool
    wait: bool
    timeout_seconds: float
    given: tuple[str, ...]


def add_apply_flags(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add them; returns the group, for flags of one command alone."""
    group = parser.add_argument_group("how it is applied to a cluster")
    group.add_argument(
        "--dry-run",
        choices=("none", "client", "server"),
        default="none",
        metavar="client|server",
        help="client: preview only, nothing is sent; server: a dry run of the server, nothing is changed",
    )
    group.add_argument(
        "-y", "--yes", action="store_true", help="do not ask for confirmation; required without a terminal"
    )
    group.add_argument(
        "--readonly", action="store_true", default=argparse.SUPPRESS, help="refuse to change the cluster"
    )
    add_switch(group, "--wait", "watch the change until it has settled (default)", default=None)
    group.add_argument(
        "--timeout",
        type=_parse_seconds,
        metavar="TIME",
        help="how long to watch it: 30s, 5m; 0 = wait forever; a timeout does not revert the change",
    )
    return group


def parse_apply(namespace: argparse.Namespace) -> ApplyOptions:
    """The options of a parsed command line."""
    flags = {
        "--yes": namespace.yes,
        "--wait": namespace.wait is not None,
        "--timeout": namespace.timeout is not None,
        "--dry-run=server": namespace.dry_run == "server",
    }
    return ApplyOptions(
        dry_run=namespace.dry_run,
        yes=namespace.yes,
        readonly=namespace.readonly,
        wait=namespace.wait is not False,
        timeout_seconds=namespace.timeout or 0,
        given=tuple(flag for flag, is_given in flags.items() if is_given),
    )


def _parse_seconds(text: str) -> float:
    from kubectl_qos.transport.net_errors import parse_timeout

    try:
        return parse_timeout(text) or 0
    except QosError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
