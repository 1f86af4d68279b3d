"""Entries of the change history."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from kubectl_qos.edit.edits import Edit, PatchRequest, Side
from kubectl_qos.edit.history import Entry, EntryState
from kubectl_qos.k8s.quantity import Quantity

_MADE: Final = Entry(
    id="1",
    at="2026-11-20T11:58:00Z",
    context="c",
    server="s",
    kind="Deployment",
    namespace="shop",
    name="web",
    uid="u",
    subresource="",
    before=(Edit("app", Side.REQUESTS, "memory", Quantity.parse("512Mi")),),
    after=(Edit("app", Side.REQUESTS, "memory", Quantity.parse("1Gi")),),
    state=EntryState.DONE,
)


def entry(**values: Any) -> Entry:
    """A change that was made, with some other values."""
    return replace(_MADE, **values)


def entry_of(request: PatchRequest, **values: Any) -> Entry:
    """The entry of a request that the server has accepted, with some other values."""
    names = ("kind", "namespace", "name", "uid", "subresource", "before")
    return entry(**{name: getattr(request, name) for name in names}, after=request.edits, **values)
