"""The grammar of `edit`."""

from __future__ import annotations

import argparse
from typing import Final

from kubectl_qos.cli.grammar.switches import add_readonly

SUMMARY: Final = "the terminal UI, opened on the edit screen"
DESCRIPTION: Final = "Change requests and limits with a live preview; ends in a patch or manifest."


def fill(parser: argparse.ArgumentParser) -> None:
    """The flags of `edit`."""
    parser.add_argument("target", nargs="+", metavar="TYPE/NAME", help="pod/web-0")
    add_readonly(parser)
