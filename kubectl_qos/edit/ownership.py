"""Who set a value, as the server keeps it: managedFields.

Source: k8s.io/apimachinery/pkg/apis/meta/v1/types.go (ManagedFieldsEntry), and structured-merge-diff for the
keys of fieldsV1: `f:NAME` for a field, `k:{...}` for an item of a list by its keys.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kubectl_qos.edit.change import POD_LEVEL, Edit
from kubectl_qos.edit.request import FIELD_MANAGER, Request
from kubectl_qos.k8s.kinds import template_path


def is_ours(raw: Mapping[str, Any], request: Request, stored: Iterable[Edit]) -> bool:
    """Whether the values that a request leads to are set by us, through the same road.

    A value that is removed has no manager any more: who removed it cannot be told, unless something is set
    along with it.
    """
    values = [edit for edit in stored if edit.quantity is not None]
    entries = [
        entry.get("fieldsV1") or {}
        for entry in (raw.get("metadata") or {}).get("managedFields") or ()
        if entry.get("manager") == FIELD_MANAGER and (entry.get("subresource") or "") == request.subresource
    ]
    return bool(values) and all(
        any(_has(fields, list(_path(request, edit))) for fields in entries) for edit in values
    )


def _path(request: Request, edit: Edit) -> Iterator[tuple[str, ...]]:
    """The keys on the way to a value; where two are possible, either."""
    for name in (*template_path(request.kind), "spec"):
        yield (f"f:{name}",)
    if edit.owner != POD_LEVEL:
        yield "f:containers", "f:initContainers"
        yield (f"k:{json.dumps({'name': edit.owner}, separators=(',', ':'))}",)
    for name in ("resources", edit.side.value, edit.resource):
        yield (f"f:{name}",)


def _has(fields: Any, path: list[tuple[str, ...]]) -> bool:
    if not path:
        return True
    if not isinstance(fields, Mapping):
        return False
    keys, *rest = path
    return any(key in fields and _has(fields[key], rest) for key in keys)
