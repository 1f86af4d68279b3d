"""The one request that lands a change: an exact PATCH, as a value. Sent by cluster/write.py alone.

A request names only what changes, and the version of the object that the change was worked out for: a server
that meanwhile has another one refuses it (409).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubectl_qos.edit.change import Edit, current
from kubectl_qos.edit.patch import patch_of
from kubectl_qos.k8s.kinds import path_of
from kubectl_qos.k8s.objects import Pod

FIELD_MANAGER: Final = "kubectl-qos"
METHOD: Final = "PATCH"
CONTENT_TYPE: Final = "application/strategic-merge-patch+json"
RESIZE: Final = "resize"


@dataclass(frozen=True, slots=True)
class Request:
    """A strategic merge patch of one object.

    Attributes:
        kind: of the object: `Pod`, `Deployment`.
        namespace: of the object.
        name: of the object.
        uid: of the object that was looked at; another one of the same name is not meant.
        resource_version: of the object that was looked at.
        subresource: `resize` for a change in place, else empty.
        edits: what changes.
        before: the same values as they were, None for those that were not there.
        patch: the change alone, without the precondition.
    """

    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str
    subresource: str
    edits: tuple[Edit, ...]
    before: tuple[Edit, ...]
    patch: Mapping[str, Any]

    @property
    def path(self) -> str:
        """The path on the server."""
        path = path_of(self.kind, self.namespace, self.name)
        return f"{path}/{self.subresource}" if self.subresource else path

    @property
    def reference(self) -> str:
        """What a sentence calls the object: `deployment/web`."""
        return f"{self.kind.lower()}/{self.name}"

    @property
    def body(self) -> dict[str, Any]:
        """The patch with its precondition."""
        identity = {"uid": self.uid, "resourceVersion": self.resource_version}
        return {"metadata": {name: value for name, value in identity.items() if value}, **self.patch}

    def query(self, *, dry_run: bool) -> dict[str, str]:
        """The query of the URL."""
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict"}
        return {"dryRun": "All", **query} if dry_run else query


def request_of(raw: Mapping[str, Any], pod: Pod, edits: Iterable[Edit], *, in_place: bool) -> Request:
    """The request that makes the edits.

    Args:
        raw: the object as the server has it: the pod, or the workload.
        pod: the same, decoded; for workloads the pod of its template, under its kind and name.
        edits: the values to change, each of them once.
        in_place: through the pod's resize subresource.
    """
    edits = tuple(edits)
    metadata = raw.get("metadata") or {}
    return Request(
        kind=pod.kind,
        namespace=pod.namespace,
        name=pod.name,
        uid=str(metadata.get("uid", "")),
        resource_version=str(metadata.get("resourceVersion", "")),
        subresource=RESIZE if in_place else "",
        edits=edits,
        before=tuple(
            Edit(edit.owner, edit.side, edit.resource, current(pod, edit.owner, edit.side, edit.resource))
            for edit in edits
        ),
        patch=patch_of(pod, edits),
    )
