"""A change as the exact request that makes it, as a patch or as a manifest."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubectl_qos.edit.edits import POD_LEVEL, Edit, current
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.kinds import api_path, template_path
from kubectl_qos.k8s.objects import Pod

FIELD_MANAGER: Final = "kubectl-qos"
METHOD: Final = "PATCH"
CONTENT_TYPE: Final = "application/strategic-merge-patch+json"
RESIZE: Final = "resize"


@dataclass(frozen=True, slots=True)
class PatchRequest:
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
        path = api_path(self.kind, self.namespace, self.name)
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


def build_request(raw: Mapping[str, Any], pod: Pod, edits: Iterable[Edit], *, in_place: bool) -> PatchRequest:
    """The request that makes the edits.

    Args:
        raw: the object as the server has it: the pod, or the workload.
        pod: the same, decoded; for workloads the pod of its template, under its kind and name.
        edits: the values to change, each of them once.
        in_place: through the pod's resize subresource.
    """
    edits = tuple(edits)
    metadata = raw.get("metadata") or {}
    return PatchRequest(
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
        patch=build_patch(pod, edits),
    )


_SERVER_FIELDS: Final = (
    "managedFields",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "selfLink",
)


def build_patch(pod: Pod, edits: Iterable[Edit]) -> dict[str, Any]:
    """The strategic merge patch of the object (a pod, or the workload whose template `pod` is)."""
    spec: dict[str, Any] = {}
    init = {container.name for container in pod.init_containers}
    for edit in edits:
        value = None if edit.quantity is None else str(edit.quantity)
        if edit.owner == POD_LEVEL:
            resources = spec.setdefault("resources", {})
        else:
            kind = "initContainers" if edit.owner in init else "containers"
            resources = _named(spec.setdefault(kind, []), edit.owner).setdefault("resources", {})
        resources.setdefault(edit.side.value, {})[edit.resource] = value
    patch: dict[str, Any] = {"spec": spec}
    for key in reversed(template_path(pod.kind)):
        patch = {key: patch}
    return patch


def build_manifest(raw: Mapping[str, Any], pod: Pod, edits: Iterable[Edit]) -> dict[str, Any]:
    """The whole object with the edits made and without what only a server fills in.

    A pod that a server has seen names its node because the scheduler chose it; made anew it is chosen again.

    Args:
        raw: the object as the file or the server has it.
        pod: the same, decoded; for workloads its template.
        edits: the values to change.

    Raises:
        InputError: the object has no such container.
    """
    manifest = edited(raw, pod, edits)
    manifest.pop("status", None)
    metadata = manifest.get("metadata")
    if isinstance(metadata, dict):
        if pod.kind == "Pod" and metadata.get("uid"):
            manifest["spec"].pop("nodeName", None)
        for name in _SERVER_FIELDS:
            metadata.pop(name, None)
    return manifest


def edited(raw: Mapping[str, Any], pod: Pod, edits: Iterable[Edit]) -> dict[str, Any]:
    """The whole object with the edits made, and all else as it is. Arguments and errors as `manifest_of`."""
    whole = copy.deepcopy(dict(raw))
    place: Any = whole
    for key in template_path(pod.kind):
        place = place[key]
    spec = place["spec"]
    for edit in edits:
        _edit_raw(spec, edit)
    return whole


def kubectl_command(pod: Pod, *, in_place: bool) -> str:
    """How to apply the saved patch by hand."""
    where = f" -n {pod.namespace}" if pod.namespace else ""
    how = " --subresource resize" if in_place else ""
    return f"kubectl patch {pod.kind.lower()} {pod.name}{where}{how} --patch-file FILE"


def _named(containers: list[dict[str, Any]], name: str) -> dict[str, Any]:
    for container in containers:
        if container["name"] == name:
            return container
    containers.append({"name": name})
    return containers[-1]


def _edit_raw(spec: dict[str, Any], edit: Edit) -> None:
    owner: Any = spec if edit.owner == POD_LEVEL else _raw_container(spec, edit.owner)
    resources = owner.get("resources") or {}
    values = dict(resources.get(edit.side.value) or {})
    if edit.quantity is None:
        values.pop(edit.resource, None)
    else:
        values[edit.resource] = _written(str(edit.quantity), values.get(edit.resource))
    resources = {**resources, edit.side.value: values}
    if not values:
        del resources[edit.side.value]
    owner["resources"] = resources


def _written(text: str, held: object) -> str | int:
    """A number stays a number where it was written as one."""
    return int(text) if type(held) is int and text.isdecimal() else text


def _raw_container(spec: Mapping[str, Any], name: str) -> dict[str, Any]:
    for kind in ("containers", "initContainers"):
        for container in spec.get(kind) or ():
            if container.get("name") == name:
                found: dict[str, Any] = container
                return found
    raise InputError(f"the object has no container {name}")
