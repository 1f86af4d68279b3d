"""Where the two files are; each system has its own folders for them. Nothing is read or made here."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

NAME: Final = "kubectl-qos"


def config_file() -> Path | None:
    """The file with a person's settings, whether it is there or not.

    $KUBECTL_QOS_CONFIG names another one, or none if it is empty. None where there is no such folder either.
    """
    given = os.environ.get("KUBECTL_QOS_CONFIG")
    if given is not None:
        return _expanded(given)
    import platformdirs

    return _usable(platformdirs.user_config_path(NAME, appauthor=False), "config.yaml")


def state_dir() -> Path | None:
    """The folder of what is kept between runs, whether it is there or not.

    $KUBECTL_QOS_STATE names another one; if it is empty nothing is kept, which is None, as where there is no
    such folder.
    """
    given = os.environ.get("KUBECTL_QOS_STATE")
    if given is not None:
        return _expanded(given)
    import platformdirs

    return _usable(platformdirs.user_state_path(NAME, appauthor=False))


def state_file() -> Path | None:
    """The file in that folder for `load_state` and `save_state`."""
    folder = state_dir()
    return None if folder is None else folder / "state.json"


def _expanded(given: str) -> Path | None:
    try:
        return Path(given).expanduser() if given else None
    except RuntimeError:
        return Path(given)


def _usable(folder: Path, *names: str) -> Path | None:
    """Without a home, as in some containers, the folder is the word `~` and would be made where we stand."""
    return folder.joinpath(*names) if folder.is_absolute() else None
