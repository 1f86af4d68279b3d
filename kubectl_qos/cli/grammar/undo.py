"""The grammar of `undo`."""

from __future__ import annotations

import argparse
from typing import Final

from kubectl_qos.cli.grammar.landing import add_landing

SUMMARY: Final = "take back what set or the UI changed"
DESCRIPTION: Final = """\
Take back a change that `set` or the terminal UI made: the values that were
there before, after a dry run of the server and a question. Without an ID the
last change of this context. Values that somebody else has changed since are
shown, and not overwritten without a question.
"""
EXAMPLES: Final = """\
examples:
  kubectl qos undo --list                  what was changed, the newest first
  kubectl qos undo                         take back the last change in this context
  kubectl qos undo 1f3a9c02 --yes          that one, in a script
"""


def fill(parser: argparse.ArgumentParser) -> None:
    """The flags of `undo`."""
    parser.add_argument(
        "id", nargs="?", metavar="ID", default=None, help="which change, as --list and set name it"
    )
    parser.add_argument(
        "--list", action="store_true", help="what was changed, the newest first; no cluster is asked"
    )
    parser.add_argument("-o", "--output", choices=("json",), metavar="json", help="output format of --list")
    add_landing(parser)
