"""The terminal UI: `kubectl qos`, and `kubectl qos edit TYPE/NAME` on the edit screen of an object.

It has no `run`, because `kubectl_qos.__main__` opens the UI.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final, NamedTuple

from kubectl_qos.cli.flags import add_readonly, add_target

if TYPE_CHECKING:
    from kubectl_qos.cli.options import SourceOptions

DESCRIPTION: Final = "Change requests and limits with a live preview; ends in a patch or manifest."


class Options(NamedTuple):
    """The object that the terminal UI opens; without a target it opens its lists."""

    source: SourceOptions
    readonly: bool
    target: tuple[str, ...] = ()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `edit`."""
    add_target(parser, "pod/notebook-0", nargs="+")
    add_readonly(parser)
