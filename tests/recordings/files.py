"""Recordings are read by their names; long ones are compressed (`xz -9e`), which the names do not show."""

import json
import lzma
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent


def read(name: str) -> bytes:
    """What a file has, such as `node-1.36/node-systemd.json`."""
    path = HERE / name
    return path.read_bytes() if path.exists() else lzma.decompress((HERE / f"{name}.xz").read_bytes())


def read_json(name: str) -> Any:
    """The value that a file has."""
    return json.loads(read(name))


def read_lines(name: str) -> list[str]:
    """The lines of a file."""
    return read(name).decode().splitlines()


def read_rows(name: str) -> list[Any]:
    """The values of a file that has one on each line."""
    return [json.loads(line) for line in read_lines(name)]


def names_in(folder: str) -> list[str]:
    """The names of the JSON files of a folder, sorted."""
    return sorted(f"{folder}/{path.name.removesuffix('.xz')}" for path in (HERE / folder).glob("*.json*"))
