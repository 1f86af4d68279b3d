"""`kubectl qos completion SHELL`: a script that completes commands and flags, made from the grammar."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping

from kubectl_qos.cli import streams
from kubectl_qos.cli.parser import build

_BASH = """\
# bash completion of kubectl-qos; load it with: source <(kubectl-qos completion bash)
_kubectl_qos() {
    local word words command="" current="${COMP_WORDS[COMP_CWORD]}"
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case "$word" in
@commands@) command="$word"; break ;;
        esac
    done
    case "$command" in
@cases@
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _kubectl_qos kubectl-qos
"""
_ZSH = """\
# zsh completion of kubectl-qos; load it with: source <(kubectl-qos completion zsh)
autoload -Uz bashcompinit && bashcompinit
"""


def run(options: argparse.Namespace) -> int:
    """Print the script of the shell."""
    script = bash_script(words_of(build()))
    streams.out_text(script if options.shell == "bash" else _ZSH + script)
    return 0


def words_of(parser: argparse.ArgumentParser) -> Mapping[str, list[str]]:
    """The words that may follow each command; under the empty name those that stand before any."""
    found = {"": sorted(_flags(parser))}
    for action in parser._actions:  # noqa: SLF001 - argparse has no public way to ask
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - likewise
            for name, command in action.choices.items():
                found[name] = sorted(_flags(command))
            found[""] = [*action.choices, *found[""]]
    return found


def _flags(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:  # noqa: SLF001 - likewise
        yield from (flag for flag in action.option_strings if flag.startswith("--"))


def bash_script(words: Mapping[str, list[str]]) -> str:
    """The script for these words."""
    commands = "|".join(name for name in words if name)
    cases = "\n".join(f'        "{name}") words="{" ".join(found)}" ;;' for name, found in words.items())
    return _BASH.replace("@commands@", f"            {commands}").replace("@cases@", cases)
