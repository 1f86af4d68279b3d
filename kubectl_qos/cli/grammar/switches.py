"""Flags without a value that several commands have, or that kubectl takes with `=true` and `=false` too."""

from __future__ import annotations

import argparse


def add_switch(group: argparse._ActionsContainer, name: str, meaning: str) -> None:
    """A flag that may be followed by `=true` or `=false`, which argparse takes as words of their own."""
    destination = name.removeprefix("--").replace("-", "_")
    group.add_argument(name, action="store_true", help=meaning)
    for said in ("true", "false"):
        group.add_argument(
            f"{name}={said}",
            dest=destination,
            action="store_const",
            const=said == "true",
            help=argparse.SUPPRESS,
        )


def add_readonly(parser: argparse.ArgumentParser) -> None:
    """The flag of what opens the terminal UI."""
    parser.add_argument(
        "--readonly",
        action="store_true",
        help="start the terminal UI without any way to change the cluster",
    )
