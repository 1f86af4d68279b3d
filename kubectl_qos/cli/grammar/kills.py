"""The grammar of `kills`."""

from __future__ import annotations

import argparse
from typing import Final

from kubectl_qos.errors import InputError

SUMMARY: Final = "what was killed, by which mechanism, and why it was chosen"
DESCRIPTION: Final = (
    "Every death of a container that memory may explain, the newest first: by which mechanism, how sure that"
    " is and why, from pod statuses, events and, where they are given, kernel logs. Neither OOMKilled nor"
    " exit code 137 decides alone. With a pod or workload, the evidence of each death, and why this process."
)
EXAMPLES: Final = """\
examples:
  kubectl qos kills -A --since 1h                    what was killed in the last hour
  kubectl qos kills pod/web-0 -n shop                the evidence, and what would make it certain
  kubectl qos kills node/worker-2                    of one node
  ssh worker-2 journalctl -k -o short-iso | kubectl qos kills -A --kernel-log worker-2=-
  kubectl qos kills -A --kernel-log worker-2=w2.log --kernel-log worker-3=w3.log -o wide
  kubectl qos kills --local -A                       on a node: with what its kernel still remembers

columns:
  BY      container limit, pod limit, kubepods limit, node, kubelet eviction, kubelet preemption,
          other SIGKILL, unknown; other limit is that of a cgroup which is no pod's
  SURE    certain, likely, possible
  SCORE   /proc/PID/oom_score of the process that the kernel chose, then, by the numbers in its report
  FREED   what the killed processes held in memory, by that report
  ~       before a time: from seconds since boot, and deaths in the same log whose time is known
"""


def fill(parser: argparse.ArgumentParser) -> None:
    """The flags of `kills`."""
    parser.add_argument(
        "target",
        nargs="*",
        metavar="TYPE/NAME",
        default=[],
        help="pod/web-0, deployment/web, node/worker-1; a name alone is a pod's",
    )
    parser.add_argument(
        "--kernel-log",
        dest="kernel_logs",
        action="append",
        metavar="[NODE=]FILE|-",
        help="a kernel log: dmesg, journalctl -k (also -o json), syslog, talosctl dmesg; gzipped or not; may"
        " repeat. With NODE it is known whose it is even where its lines do not say so",
    )
    parser.add_argument("--local", action="store_true", help="on a node: read its /dev/kmsg")
    parser.add_argument(
        "--since",
        type=_seconds,
        metavar="DURATION",
        help="only deaths of the last 30m, 2h, 1d12h; those of unknown time too",
    )
    parser.add_argument(
        "-o",
        "--output",
        choices=("table", "wide", "json", "yaml"),
        metavar="table|wide|json|yaml",
        help="output format; wide has more columns, and the evidence of each death below",
    )
    parser.add_argument("--no-headers", action="store_true", help="no header line")


def _seconds(text: str) -> int:
    from kubectl_qos.k8s.quantity import parse_duration

    try:
        seconds = parse_duration(text, days=True) // 10**9
    except InputError:
        seconds = -1
    if seconds < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration: write 30m, 2h, 1d12h")
    return seconds
