"""The grammar of `verify`."""

from __future__ import annotations

import argparse
from typing import Final

SUMMARY: Final = "computed beside measured: what differs, and why it may"
DESCRIPTION: Final = """\
Read oom_score_adj and cgroup files where they are, and show what differs from
what was computed, with a cause where one is plausible.

In each running container of the pod, or of every pod of the node, one command
is run by exec: sh, with a line that reads files below /proc and /sys/fs/cgroup
and starts no further process; without sh, cat with the names of those files.
--dry-run prints it and where it would be run, and runs nothing. It needs get
on pods/exec, from 1.35 on create as well (docs/rbac/exec.yaml). --local and
--dump read a node in place of its containers, and run nothing.

Exit code 0 if nothing differs, 1 if something does, 2 if it could not be told.
"""
EXAMPLES: Final = """\
examples:
  kubectl qos verify pod/web-0 -n shop            what differs in its containers
  kubectl qos verify pod/web-0 -o wide            every value, with those that are as computed
  kubectl qos verify node/worker-2 --dry-run      what would be run, and in which containers
  kubectl qos verify node/worker-2 -n shop        the pods of one namespace on it
  kubectl qos verify node/$(hostname) --local     on the node itself: pod and class levels too
  kubectl qos verify node/worker-2 --dump host.json    what `kubectl qos host -o json` wrote there
"""


def fill(parser: argparse.ArgumentParser) -> None:
    """The flags of `verify`."""
    parser.add_argument(
        "target", nargs="+", metavar="TYPE/NAME", help="pod/web-0, or node/worker-1 for every pod on it"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print the command and the containers, and run nothing"
    )
    parser.add_argument(
        "-o",
        "--output",
        choices=("wide", "json", "yaml"),
        metavar="wide|json|yaml",
        help="output format; all but the default have every value, not only those that differ",
    )
    where = parser.add_argument_group("where it is read")
    where.add_argument("--local", action="store_true", help="on this machine, which is the node")
    where.add_argument(
        "--proc-root", metavar="DIR", help="with --local: where its /proc is, /proc if not said"
    )
    where.add_argument(
        "--cgroup-root", metavar="DIR", help="with --local: where its /sys/fs/cgroup is, that if not said"
    )
    where.add_argument("--dump", metavar="FILE", help="in what `kubectl qos host -o json` wrote on the node")
