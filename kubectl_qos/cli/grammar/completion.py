"""The grammar of `completion`."""

from __future__ import annotations

import argparse
from typing import Final

SHELLS: Final = ("kubectl", "bash", "zsh", "fish", "powershell")
SUMMARY: Final = "print a script that completes commands, flags and names"
DESCRIPTION: Final = (
    "Print what makes TAB complete commands, flags, contexts, namespaces, nodes, pods and so on:\n"
    "for kubectl, so that it completes `kubectl qos`, or for a shell, so that it completes `kubectl-qos`.\n"
    "Without a word, say how it is installed."
)
EXAMPLES: Final = """\
kubectl qos, where the completion of kubectl itself is loaded; pip and pipx have installed it already:
  kubectl qos completion kubectl > ~/.local/bin/kubectl_complete-qos   in any folder of PATH
  chmod +x ~/.local/bin/kubectl_complete-qos
kubectl qos on Windows:
  kubectl qos completion kubectl > kubectl_complete-qos.cmd            likewise

kubectl-qos:
  bash        echo 'eval "$(kubectl-qos completion bash)"' >> ~/.bashrc
  zsh         kubectl-qos completion zsh > "${fpath[1]}/_kubectl-qos"
  fish        kubectl-qos completion fish > ~/.config/fish/completions/kubectl-qos.fish
  PowerShell  kubectl-qos completion powershell >> $PROFILE
"""


def fill(parser: argparse.ArgumentParser) -> None:
    """The operand of `completion`."""
    parser.add_argument(
        "shell",
        nargs="?",
        default=None,
        choices=SHELLS,
        metavar="|".join(SHELLS),
        help="what the script is for",
    )
