"""The grammar of `can-i`."""

from __future__ import annotations

import argparse
from typing import Final

SUMMARY: Final = "which rights you have here, and what each tier of them gives"
DESCRIPTION: Final = (
    "The tiers of rights as the API server judges them for you: in the namespace of -n or of the context,"
    " with -A in all. Exit code 0 if pods can be read, which is enough to begin with; 1 if not, or if the"
    " server could not be asked."
)


def fill(parser: argparse.ArgumentParser) -> None:
    """The flags of `can-i`."""
    parser.add_argument(
        "-o",
        "--output",
        choices=("wide", "json", "yaml"),
        metavar="wide|json|yaml",
        help="output format; wide has a row for each right",
    )
