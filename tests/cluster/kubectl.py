"""kubectl itself, where it is installed: the yardstick for words and for what can be reached."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest
from hypothesis import settings

KUBECTL = shutil.which("kubectl")
SAMPLE: Final = 1 if settings().max_examples > 100 else 8
"""Of kubectl's answers one in SAMPLE is compared: they change only with its version."""

_LOG_LINE = re.compile(r"[EIWF]\d{4} ")

needs_kubectl = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")


def said_by_kubectl(kubeconfig: Path | None, *arguments: str) -> str:
    """What kubectl writes to stderr, or to stdout if it writes nothing there; its log lines left out.

    Without a kubeconfig it takes what the environment names, as we do.
    """
    assert KUBECTL is not None
    where = ["--kubeconfig", str(kubeconfig)] if kubeconfig is not None else []
    done = subprocess.run(
        [KUBECTL, *where, "--cache-dir", os.environ["HOME"], *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    lines = (done.stderr or done.stdout).strip().splitlines()
    return "\n".join(line for line in lines if not _LOG_LINE.match(line))
