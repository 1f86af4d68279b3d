"""The paths of the settings file and the state folder, by each system's conventions."""

import os
from pathlib import Path
from typing import Final, Literal

NAME: Final = "kubectl-qos"


def config_file() -> Path | None:
    """Return the path of the settings file, or $KUBECTL_QOS_CONFIG; None if the variable is empty."""
    return _path("KUBECTL_QOS_CONFIG", "user_config_path", "config.yaml")


def state_dir() -> Path | None:
    """Return the path of the state folder, or $KUBECTL_QOS_STATE; None if the variable is empty."""
    return _path("KUBECTL_QOS_STATE", "user_state_path")


def state_path(name: str) -> Path | None:
    """Return a path in the state folder; None if there is no folder."""
    folder = state_dir()
    return None if folder is None else folder / name


def _path(variable: str, kind: Literal["user_config_path", "user_state_path"], *names: str) -> Path | None:
    value = os.environ.get(variable)
    if value is None:
        import platformdirs

        folder: Path = getattr(platformdirs, kind)(NAME, appauthor=False)
        # Without a home, as in some containers, the path begins with `~`: a folder in the current one.
        return folder.joinpath(*names) if folder.is_absolute() else None
    try:
        return Path(value).expanduser() if value else None
    except RuntimeError:  # `~` of an unknown user
        return Path(value)
