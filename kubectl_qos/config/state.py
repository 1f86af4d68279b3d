"""What is kept between runs, in one small JSON file; what cannot be used of it is left out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, get_type_hints

import msgspec

from kubectl_qos.atomic_file import replace_file

VERSION: Final = 1
MAX_BYTES: Final = 1 << 20
MAX_LINES: Final = 50
MAX_CONTEXTS: Final = 50
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class UiState:
    """What the last run left.

    `sort` and `columns` are by the name of the list; `sort` has a column and whether its
    order is reversed. Of `filters` and `places` the newest is last, as of `views`, by the context's title.
    """

    theme: str | None = None
    view: Json | None = None
    sort: Mapping[str, tuple[str, bool]] = field(default_factory=dict)
    wide: bool = False
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    filters: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    views: Mapping[str, Json] = field(default_factory=dict)

    def with_view(self, title: str, view: Json) -> UiState:
        """The state after this was shown of this context."""
        others = {other: kept for other, kept in self.views.items() if other != title}
        return replace(self, view=view, views={**others, title: view}).shortened()

    def shortened(self) -> UiState:
        """The state with the newest filters, places and contexts only."""
        return replace(
            self,
            filters=self.filters[-MAX_LINES:],
            places=self.places[-MAX_LINES:],
            views=dict(list(self.views.items())[-MAX_CONTEXTS:]),
        )


def load_state(path: Path | None) -> UiState:
    """What can be used of the file; never fails."""
    try:
        if path is None or not path.is_file() or path.stat().st_size > MAX_BYTES:
            return UiState()
        values = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return UiState()
    if not isinstance(values, dict) or values.get("version") != VERSION:
        return UiState()
    fields: dict[str, Any] = {}
    for name, type_ in get_type_hints(UiState).items():
        with suppress(KeyError, msgspec.ValidationError):
            fields[name] = msgspec.convert(values[name], type_)
    return UiState(**fields).shortened()


def save_state(path: Path | None, state: UiState) -> bool:
    """Write the file for its owner only, if possible. Raises TypeError or ValueError if `view` is no JSON."""
    if path is None:
        return False
    text = json.dumps({"version": VERSION, **asdict(state.shortened())}, allow_nan=False)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(path, text.encode())
    except OSError:
        return False
    return True
