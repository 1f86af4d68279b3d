"""The grammar of `host`."""

from __future__ import annotations

import argparse
from typing import Final

SUMMARY: Final = "on a node: its processes in the order in which the kernel kills them"
DESCRIPTION: Final = (
    "All processes of the node that this runs on, those of pods and the others, in the order in which the"
    " kernel kills them when the node runs out of memory. No cluster is asked unless --names is given."
)
EXAMPLES: Final = """\
examples:
  kubectl qos host                                on a node, as root
  kubectl qos host -w                             and again and again
  kubectl qos host --proc-root /host/proc --cgroup-root /host/sys/fs/cgroup   in a debug pod
  kubectl qos host -o json > node.json            what it reads, to be looked at elsewhere:
  kubectl qos host --from-dump node.json --names  on a laptop, with the names of pods
"""


def fill(parser: argparse.ArgumentParser) -> None:
    """The flags of `host`."""
    parser.add_argument(
        "--all", dest="everything", action="store_true", help="those too that are never killed (adj -1000)"
    )
    parser.add_argument(
        "--names",
        action="store_true",
        help="the names of pods and containers, from a cluster (with --node only of that node) or from the"
        " files of -f",
    )
    parser.add_argument("--proc-root", metavar="DIR", help="where the node's /proc is, as /host/proc")
    parser.add_argument("--cgroup-root", metavar="DIR", help="where its /sys/fs/cgroup is")
    parser.add_argument("--from-dump", metavar="FILE|-", help="what -o json has written, instead of a node")
    parser.add_argument(
        "-o",
        "--output",
        choices=("wide", "json", "csv"),
        metavar="wide|json|csv",
        help="output format; json is all that was read, for --from-dump",
    )
    parser.add_argument("-w", "--watch", action="store_true", help="read again and again; ctrl-c ends it")
    parser.add_argument("--no-headers", action="store_true", help="no header line")
