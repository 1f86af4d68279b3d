"""Writing what is shown to a file that a person names; nothing that exists is overwritten unasked."""

from __future__ import annotations

from pathlib import Path

from kubectl_qos.errors import InputError


def path_of(name: str) -> Path:
    """The whole path of a name as typed, `~` included. Raises InputError for a name that is none."""
    name = name.strip()
    if not name:
        raise InputError("a file name is needed")
    try:
        path = Path(name).expanduser()
        return path if path.is_absolute() else Path.cwd() / path
    except (OSError, RuntimeError) as error:
        raise InputError(f"{name}: {error}") from None


def save(path: Path, text: str, *, overwrite: bool = False) -> None:
    """Write the text.

    Raises:
        FileExistsError: the file is there already, and `overwrite` was not said.
        InputError: it cannot be written; the message names it and says why.
    """
    try:
        with path.open("w" if overwrite else "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"{path}: {reason}") from None
