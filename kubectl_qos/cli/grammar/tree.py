"""The grammar of `tree`."""

from __future__ import annotations

import argparse
from typing import Final

SUMMARY: Final = "the cgroup tree of a node, with the values that are written there"
DESCRIPTION: Final = "Kubepods, the classes, pods and containers, with what kubelet and runtime write there."


def fill(parser: argparse.ArgumentParser) -> None:
    """The flags of `tree`."""
    parser.add_argument(
        "target",
        nargs="*",
        metavar="TYPE/NAME",
        default=[],
        help="node/worker-1, or pod/web-0 for the way to that pod; every node without it",
    )
    parser.add_argument(
        "--cgroup-version", type=int, choices=(1, 2), help="as if the nodes had this cgroup version"
    )
    parser.add_argument("--files", action="store_true", help="one line for each file, with its whole path")
    parser.add_argument("-o", "--output", choices=("json", "yaml"), metavar="json|yaml", help="output format")
