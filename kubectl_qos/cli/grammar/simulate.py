"""The grammar of `simulate`."""

from __future__ import annotations

import argparse
from typing import Final

THE_SAME_FILES: Final = ""
"""What --what-if says where the files are those of -f."""
SUMMARY: Final = "who dies, in which order, as a node's memory fills"
DESCRIPTION: Final = (
    "Kill after kill by the kernel, eviction after eviction by the kubelet: who is hit, what that frees, and"
    " when an important pod is among them. Nothing is changed anywhere."
)
EXAMPLES: Final = """\
examples:
  kubectl qos simulate node/worker-2 --free 4Gi          kill after kill until so much is free
  kubectl qos simulate node/worker-2 --grow pod/api-0=3Gi -n shop   what its growth meets first, and who dies
  kubectl qos simulate node/worker-2 --grow node=+2Gi    the node's own processes grow
  kubectl qos simulate node/worker-2 --until-oom         how much more, until whom, by which limit
  kubectl qos simulate node/worker-2 --all-at-limit      each container uses its limit
  kubectl qos simulate node/worker-2 --all-at-limit --eviction      with the kubelet evicting before that
  kubectl qos simulate node/worker-2 --free 4Gi --important app=db  mark where these pods are hit
  kubectl qos simulate node/worker-2 --free 4Gi --what-if -f change.yaml   who dies now, and who then
  kubectl qos simulate node/worker-2 -f dump.json --free 4Gi --what-if change.yaml
"""


def fill(parser: argparse.ArgumentParser) -> None:
    """The flags of `simulate`."""
    parser.add_argument("target", nargs="*", metavar="node/NAME", default=[], help="the node")
    _add_what(parser)
    parser.add_argument(
        "--eviction",
        action="store_true",
        help="the kubelet evicts below evictionHard memory.available, before the kernel kills",
    )
    parser.add_argument(
        "--restarts",
        action="store_true",
        help="killed containers that restart have their memory back at once: only what lasts counts",
    )
    parser.add_argument(
        "--important",
        metavar="LABELS",
        help="pods with these labels are important, beside those of priority 1000000000 and more, static pods"
        " and pods whose PodDisruptionBudget (in the files of -f) is overstepped",
    )
    parser.add_argument(
        "--what-if",
        nargs="?",
        const=THE_SAME_FILES,
        metavar="FILE",
        help="the same with the pods and workloads of these manifests changed, side by side; without FILE,"
        " those of -f, and the node is that of the cluster or --demo",
    )
    parser.add_argument("-o", "--output", choices=("json", "yaml"), metavar="json|yaml", help="output format")


def _add_what(parser: argparse.ArgumentParser) -> None:
    what = parser.add_argument_group("what happens (one of these, or --eviction alone)")
    what.add_argument("--free", metavar="SIZE", help="kill after kill, until so much is free that was not")
    what.add_argument(
        "--grow",
        action="append",
        metavar="pod/NAME[:CONTAINER]=SIZE",
        help="it grows to SIZE, or by +SIZE; node=SIZE are the node's own processes. May repeat: all grow at"
        " once, and reach their size together",
    )
    what.add_argument(
        "--until-oom", action="store_true", help="all containers grow alike, until the first kill"
    )
    what.add_argument(
        "--all-at-limit",
        action="store_true",
        help="each container grows to its limit; those without stay as they are",
    )
