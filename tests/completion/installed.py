"""What a person has after installing: the program, and what kubectl calls, in a folder of PATH."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from kubectl_qos.cli.commands.completion import script as script_of
from tests.end_to_end.command import TIMEOUT_SECONDS, environment


class Bin:
    """The folder; what runs in it has a home of its own, and no kubeconfig."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir()
        self.program("kubectl-qos", f'#!/bin/sh\nexec "{sys.executable}" -m kubectl_qos "$@"\n')
        self.program("kubectl_complete-qos", script_of("kubectl"))

    def program(self, name: str, text: str) -> None:
        file = self.folder / name
        file.write_text(text)
        file.chmod(0o755)

    def variables(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        path = f"{self.folder}{os.pathsep}{os.environ['PATH']}"
        return environment(self.home, {"PATH": path, "KUBECONFIG": str(self.home / "config"), **(more or {})})

    def run(
        self,
        program: str,
        *words: str,
        variables: Mapping[str, str] | None = None,
        stdin: int = subprocess.DEVNULL,
    ) -> subprocess.CompletedProcess[str]:
        """What a program answers, one of this folder or of PATH."""
        own = self.folder / program
        return subprocess.run(
            [str(own) if own.exists() else program, *words],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
            stdin=stdin,
            env=self.variables(variables),
            cwd=self.home,
        )
