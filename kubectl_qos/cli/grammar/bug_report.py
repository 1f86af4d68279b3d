"""The grammar of `bug-report`."""

from __future__ import annotations

import argparse
from typing import Final

SUMMARY: Final = "what a report of a defect needs, without names and secrets"
DESCRIPTION: Final = (
    "Print, as Markdown for an issue, what a report of a defect needs: versions, terminal, settings, flags,"
    " the shape of the kubeconfig and of the cluster. No names of hosts, users, contexts, namespaces, nodes"
    " or pods, no paths and no secrets are in it. What cannot be had says so: the exit code is 0. Give the"
    " flags of the command that failed."
)
EXAMPLES: Final = """\
examples:
  kubectl qos bug-report > report.md         to look through, and to paste into an issue
  kubectl qos bug-report --context prod --usage summary  the flags of the command that failed
  kubectl qos bug-report --demo              without a cluster
"""


def fill(parser: argparse.ArgumentParser) -> None:
    """The flags of `bug-report`."""
    parser.add_argument("-o", "--output", choices=("json",), metavar="json", help="output format")
