"""The grammar of `compare`."""

from __future__ import annotations

import argparse
from typing import Final

SUMMARY: Final = "what a node upgrade or another setting would change"
DESCRIPTION: Final = "The same pods on the same node with another release or setting: what differs."


def fill(parser: argparse.ArgumentParser) -> None:
    """The flags of `compare`."""
    parser.add_argument(
        "target",
        nargs="*",
        metavar="TYPE/NAME",
        default=[],
        help="pod/web-0 in full, node/worker-1 or nothing as a table",
    )
    parser.add_argument("--to", metavar="RELEASE", help="the kubelet's release after it, such as 1.37")
    parser.add_argument(
        "--set",
        dest="settings",
        action="append",
        metavar="KEY=VALUE",
        help="a setting after it: cgroupDriver=cgroupfs, cgroupVersion=1, featureGates.MemoryQoS=true, …",
    )
    parser.add_argument("-o", "--output", choices=("json", "yaml"), metavar="json|yaml", help="output format")
