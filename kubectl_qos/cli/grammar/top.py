"""The grammar of `top`."""

from __future__ import annotations

import argparse
from typing import Final

OUTPUTS: Final = ("wide", "json", "yaml", "csv", "name")
RISKS: Final = ("none", "low", "medium", "high", "next")
EXAMPLES: Final = """\
examples:
  kubectl qos top -A --min-risk high         pods that their own limit is about to kill, and next victims
  kubectl qos top -A --min-risk next         the next victim of each node
  kubectl qos top nodes                      nodes: memory by class, requests, limits, worst case, pressure
  kubectl qos top nodes -o wide              and in Mi, with the kubelets' eviction thresholds
  kubectl qos top nodes -l pool=a            nodes with this label, as in kubectl
  kubectl qos top pod/nodes                  a pod that is called nodes

columns of nodes:
  MEM_G MEM_B MEM_E   in use (working set) by Guaranteed, Burstable and BestEffort pods
  %USED               in use by pods, of the capacity
  %REQ                requests, of what is allocatable
  %LIM                limits, of the capacity; + where some containers have none
  %WORST              in use once every container with a limit has reached it and the others stay as they
                      are, of the capacity; + as above, UNLIMITED (-o wide) counts the pods
  TO_EVICTION         (-o wide) how much more pods can use, at most, before the kubelet evicts some
  NEXT_VICTIM         whom the kernel kills first when the node runs out, and the letter of its class
"""
SUMMARY: Final = "pods by OOM kill priority; top nodes: the memory of nodes"
DESCRIPTION: Final = (
    "Pods by OOM kill priority: the next victim of each node first.\n"
    "Or nodes: those in trouble first, then the fullest."
)


def fill(parser: argparse.ArgumentParser) -> None:
    """The flags of `top`."""
    parser.add_argument(
        "names",
        nargs="*",
        metavar="TYPE/NAME",
        default=[],
        help="only these pods: web-0, pod/web-0 or pods web-0; or nodes: all as nodes, node/worker-1 or"
        " nodes worker-1",
    )
    parser.add_argument("--containers", action="store_true", help="one row for each container")
    parser.add_argument(
        "--min-risk",
        choices=RISKS,
        metavar="|".join(RISKS),
        help="only pods of at least this risk: low has processes, medium is flagged PRIORITY or OVER-REQUEST,"
        " high is flagged NEAR-LIMIT, next is the next victim of its node (RANK 1)",
    )
    parser.add_argument("-o", "--output", choices=OUTPUTS, metavar="|".join(OUTPUTS), help="output format")
    parser.add_argument("-w", "--watch", action="store_true", help="follow the cluster; ctrl-c ends it")
    parser.add_argument("--no-headers", action="store_true", help="no header line")
    parser.add_argument(
        "--sort-by",
        metavar="COLUMN",
        help="any column, in wide output or not; of pods `eviction` shows the kubelet's order instead",
    )
