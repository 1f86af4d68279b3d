"""The grammar of `completion`."""

from __future__ import annotations

import argparse
from typing import Final

SUMMARY: Final = "print a script that completes commands and flags"
DESCRIPTION: Final = "A completion script: source <(kubectl-qos completion bash)"


def fill(parser: argparse.ArgumentParser) -> None:
    """The flags of `completion`."""
    parser.add_argument("shell", choices=("bash", "zsh"), metavar="bash|zsh", help="the shell")
