"""The grammar of `version`."""

from __future__ import annotations

import argparse
from typing import Final

SUMMARY: Final = "print the version of kubectl-qos"
DESCRIPTION: Final = "Print the version of kubectl-qos."


def fill(parser: argparse.ArgumentParser) -> None:
    """The flags of `version`."""
    parser.add_argument("--client", action="store_true", help="ignored: no server is asked")
