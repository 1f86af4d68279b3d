"""`kubectl qos options`: the flags that every command has; --help of a command leaves them out."""

import argparse
from typing import Final, NamedTuple

from kubectl_qos.cli import output

DESCRIPTION: Final = "Print the flags that every command has: which pods, where from, connection, facts."


class Options(NamedTuple):
    """It has only the flags of every command."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `options`: it has none."""


def run(_options: Options) -> int:
    """Print the flags."""
    from kubectl_qos.cli.main import build_parser

    output.print_text(build_parser().format_options())
    return 0
