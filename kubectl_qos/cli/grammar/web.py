"""The grammar of `web`."""

from __future__ import annotations

import argparse
from typing import Final

WEB_PORT: Final = 8767
_LAST_PORT: Final = 0xFFFF
SUMMARY: Final = "the terminal UI in a browser"
DESCRIPTION: Final = (
    "Serve the terminal UI to browsers, each page with a process of its own that has your credentials, to"
    " whoever has the URL that is printed. Needs pip install 'kubectl-qos[web]'."
)


def fill(parser: argparse.ArgumentParser) -> None:
    """The flags of `web`."""
    parser.add_argument(
        "--port",
        type=_port,
        default=WEB_PORT,
        metavar="PORT",
        help=f"where to listen, {WEB_PORT} if not said; 0 is any free port",
    )
    parser.add_argument(
        "--address",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="where to listen, 127.0.0.1 if not said: only this machine",
    )
    parser.add_argument(
        "--allow-host",
        dest="allow_hosts",
        action="append",
        metavar="NAME",
        help="a name that browsers reach it by, such as that of a reverse proxy; may repeat",
    )
    parser.add_argument(
        "--allow-writes", action="store_true", help="without it the UI starts with --readonly"
    )
    parser.add_argument("--open", action="store_true", help="open the page in a browser")


def _port(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) > _LAST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: a number from 0 to {_LAST_PORT}")
    return int(text)
