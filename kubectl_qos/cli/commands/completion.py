"""`kubectl qos completion SHELL`: scripts that complete commands in kubectl and shells."""

import argparse
import os
import sys
from typing import Final, NamedTuple

from kubectl_qos.cli import output

SHELLS: Final = ("kubectl", "bash", "zsh", "fish", "powershell")
DESCRIPTION: Final = (
    "Print the script with which TAB completes commands, flags, contexts, namespaces, nodes, pods and more:\n"
    "for kubectl, which then completes `kubectl qos`, or for a shell, which then completes `kubectl-qos`.\n"
    "Without an argument, print how to install it."
)
EXAMPLES: Final = """\
kubectl qos, where the completion of kubectl itself is loaded; pip and pipx have installed it already:
  kubectl qos completion kubectl > ~/.local/bin/kubectl_complete-qos  # in any folder of PATH
  chmod +x ~/.local/bin/kubectl_complete-qos
kubectl qos on Windows:
  kubectl qos completion kubectl > kubectl_complete-qos.cmd  # in any folder of PATH

kubectl-qos:
  bash        echo 'eval "$(kubectl-qos completion bash)"' >> ~/.bashrc
  zsh         kubectl-qos completion zsh > "${fpath[1]}/_kubectl-qos"
  fish        kubectl-qos completion fish > ~/.config/fish/completions/kubectl-qos.fish
  PowerShell  kubectl-qos completion powershell >> $PROFILE
"""


class Options(NamedTuple):
    """The shell of the script; None for instructions to install scripts."""

    shell: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `completion`."""
    parser.add_argument(
        "shell", nargs="?", choices=SHELLS, metavar="|".join(SHELLS), help="what the script is for"
    )


def run(options: Options) -> int:
    """Print the script for a shell; without a shell, instructions to install scripts."""
    output.print_text(EXAMPLES if options.shell is None else script(options.shell))
    return 0


def script(shell: str, *, windows: bool = sys.platform == "win32") -> str:
    """Return the script for a shell; for kubectl it is a .cmd file on Windows."""
    name = "kubectl.cmd" if shell == "kubectl" and windows else shell
    folder = __file__.rpartition(os.sep)[0].rpartition(os.sep)[0]
    with open(f"{folder}/completion/shells/{name}", encoding="utf-8") as file:  # noqa: PTH123 - pathlib takes 5 ms
        return file.read()
