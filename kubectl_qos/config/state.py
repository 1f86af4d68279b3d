"""What is kept from one run to the next, in one small JSON file that nobody has to look after.

Reading it never fails: what cannot be used is left out, field by field. Writing it replaces it as a whole, so
that whoever reads meanwhile finds the old one or the new one.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

VERSION: Final = 1
MAX_BYTES: Final = 1 << 20
MAX_LINES: Final = 50
MAX_CONTEXTS: Final = 50
MAX_WIDTH: Final = 1000

Json = Mapping[str, Any]
"""A JSON object that the UI makes and reads."""


@dataclass(frozen=True, slots=True)
class UiState:
    """What the last run left.

    Attributes:
        theme: the theme's name.
        view: what was shown.
        sort: by the name of the list, the key of the column and whether its order is turned round.
        wide: whether all columns were shown.
        widths: by the name of the list, widths of columns in cells by their keys.
        columns: by the name of the list, the keys of the columns that a person chose, in their order.
        filters: the last filters that were entered, the newest last; `places` likewise.
        views: what was shown of each context, by its title, the one that was left last at the end.
    """

    theme: str | None = None
    view: Json | None = None
    sort: Mapping[str, tuple[str, bool]] = field(default_factory=dict)
    wide: bool = False
    widths: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    filters: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    views: Mapping[str, Json] = field(default_factory=dict)

    def with_view(self, title: str, view: Json) -> UiState:
        """The state after this was shown of this context."""
        others = {other: kept for other, kept in self.views.items() if other != title}
        return replace(self, view=view, views=_last({**others, title: view}))


def load_state(path: Path | None) -> UiState:
    """What the file holds and can be used; never fails."""
    try:
        found = json.loads(_bytes(path)) if path is not None else None
    except (OSError, ValueError, RecursionError):
        return UiState()
    if not isinstance(found, dict) or found.get("version") != VERSION:
        return UiState()
    theme, view = found.get("theme"), found.get("view")
    return UiState(
        theme=theme if isinstance(theme, str) else None,
        view=view if isinstance(view, dict) else None,
        sort={
            name: (said[0], said[1])
            for name, said in _object(found, "sort").items()
            if isinstance(said, list) and [type(part) for part in said] == [str, bool]
        },
        wide=found.get("wide") is True,
        widths={name: _widths(said) for name, said in _object(found, "widths").items() if _widths(said)},
        columns={
            name: _texts(said) for name, said in _object(found, "columns").items() if isinstance(said, list)
        },
        filters=_texts(found.get("filters"))[-MAX_LINES:],
        places=_texts(found.get("places"))[-MAX_LINES:],
        views=_last(
            {title: said for title, said in _object(found, "views").items() if isinstance(said, dict)}
        ),
    )


def save_state(path: Path | None, state: UiState) -> bool:
    """Write the file, for its owner's eyes only; False where that is not possible.

    Raises TypeError or ValueError for a `view` that is no JSON.
    """
    if path is None:
        return False
    kept = replace(
        state,
        filters=state.filters[-MAX_LINES:],
        places=state.places[-MAX_LINES:],
        views=_last(state.views),
    )
    text = json.dumps({"version": VERSION, **asdict(kept)}, allow_nan=False)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _replace(path, text)
    except OSError:
        return False
    return True


def _replace(path: Path, text: str) -> None:
    """A file of its own for each writer, which then takes the place of the old one. Raises OSError."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


def _bytes(path: Path) -> bytes:
    """What is in the file. Raises OSError, ValueError for one that is none or too large to be ours."""
    if not path.is_file():
        raise FileNotFoundError
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError
    return content


def _object(found: Json, name: str) -> Json:
    said = found.get(name)
    return said if isinstance(said, dict) else {}


def _widths(said: Any) -> dict[str, int]:
    if not isinstance(said, dict):
        return {}
    return {key: width for key, width in said.items() if type(width) is int and 0 < width <= MAX_WIDTH}


def _texts(said: Any) -> tuple[str, ...]:
    return tuple(text for text in said if isinstance(text, str)) if isinstance(said, list) else ()


def _last(views: Mapping[str, Json]) -> dict[str, Json]:
    return dict(list(views.items())[-MAX_CONTEXTS:])
