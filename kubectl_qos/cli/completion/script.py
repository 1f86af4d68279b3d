"""The program that kubectl and the shells call: silent, in time, and never an error.

A complaint in the middle of a command line that is being typed helps nobody. BASH_COMP_DEBUG_FILE names a
file that gets what went wrong, as for all programs made with cobra.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Final

from kubectl_qos.cli import output
from kubectl_qos.cli.completion.directives import NOTHING, Completions

MOST_SECONDS: Final = 3.0
"""How long all of it may take: a server has a second, and the rest is for plugins that fetch credentials."""


def main() -> int:
    """`kubectl_complete-qos WORDS…`, which kubectl calls."""
    return answer(sys.argv[1:])


def answer(words: Sequence[str], *, seconds: float = MOST_SECONDS) -> int:
    """Print the offer for the last of these words, none if it is not there in time; the exit code is 0."""
    # The process ends before garbage could matter.
    gc.disable()
    _be_silent()
    found: list[Completions] = []
    thread = threading.Thread(target=lambda: found.append(_offered(words)), daemon=True)
    thread.start()
    thread.join(seconds)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    output.print_text((found[0] if found else NOTHING).text())
    return 0


def _offered(words: Sequence[str]) -> Completions:
    from kubectl_qos.cli.completion.complete import complete

    try:
        return complete(words)
    except Exception:  # noqa: BLE001 - see the module
        import traceback

        traceback.print_exc()
        return NOTHING


def _be_silent() -> None:
    """No questions and no complaints, of ours and of plugins that are run."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    log = os.environ.get("BASH_COMP_DEBUG_FILE") or os.devnull
    try:
        descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    except OSError:
        descriptor = os.open(os.devnull, os.O_WRONLY)
    os.dup2(descriptor, 2)
