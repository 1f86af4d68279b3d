"""`kubectl qos set`: an adapter for options that are no typed value yet."""

from __future__ import annotations

import argparse

from kubectl_qos.cli.grammar.set import DESCRIPTION, EXAMPLES, fill

__all__ = ["DESCRIPTION", "EXAMPLES"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `set`."""
    parser.argument_default = argparse.SUPPRESS
    fill(parser)


def parse(namespace: argparse.Namespace) -> argparse.Namespace:
    """The options of a parsed command line."""
    return namespace


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from kubectl_qos.cli.set import run as run_set

    return run_set(options)
