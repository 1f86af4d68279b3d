"""The grammar of `version`."""

from __future__ import annotations

import argparse
from typing import Final

from kubectl_qos.cli.grammar.switches import add_switch

SUMMARY: Final = "the versions of kubectl-qos, of the server and of the kubelets"
DESCRIPTION: Final = (
    "The version of kubectl-qos, the releases of Kubernetes that it knows, and the versions of the server and"
    " of the kubelets; those of the kubelets only where nodes may be listed. Exit code 1 if no server can be"
    " asked; what is known without it is printed all the same."
)
EXAMPLES: Final = """\
examples:
  kubectl qos version                        ours, the server's and those of the kubelets
  kubectl qos version --client               ours alone: no kubeconfig is read, and nobody asked
  kubectl qos version -o json                with all that the server says of its version
"""


def fill(parser: argparse.ArgumentParser) -> None:
    """The flags of `version`."""
    add_switch(parser, "--client", "say nothing of the server and its nodes")
    parser.add_argument("-o", "--output", choices=("json", "yaml"), metavar="json|yaml", help="output format")
