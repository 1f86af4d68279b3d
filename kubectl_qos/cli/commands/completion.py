"""`kubectl qos completion SHELL`: scripts by which kubectl and shells ask for candidates (cli/completion)."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

from kubectl_qos.cli import streams
from kubectl_qos.cli.grammar.completion import EXAMPLES

FOLDER: Final = Path(__file__).parents[1] / "completion" / "shells"


def run(options: argparse.Namespace) -> int:
    """Print the script for a shell; without one, how scripts are installed."""
    shell = getattr(options, "shell", None)
    streams.out_text(EXAMPLES if shell is None else script(shell))
    return 0


def script(shell: str, *, windows: bool = sys.platform == "win32") -> str:
    """The script for a shell; kubectl starts another one on Windows."""
    name = "kubectl.cmd" if shell == "kubectl" and windows else shell
    return (FOLDER / name).read_text(encoding="utf-8")
