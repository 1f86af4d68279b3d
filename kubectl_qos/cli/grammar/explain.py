"""The grammar of `explain`."""

from __future__ import annotations

import argparse
from typing import Final

SUMMARY: Final = "why this class, score, cgroup values and eviction rank"
DESCRIPTION: Final = "Everything about one pod: class, oom_score_adj, rank, cgroup values, eviction."


def fill(parser: argparse.ArgumentParser) -> None:
    """The flags of `explain`."""
    parser.add_argument("target", nargs="*", metavar="TYPE/NAME", default=[], help="pod/web-0")
    parser.add_argument("-o", "--output", choices=("json", "yaml"), metavar="json|yaml", help="output format")
