"""A change as the exact request that makes it, or as a manifest."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from kubectl_qos.edit.edits import POD_LEVEL, Edit, current_value
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.kinds import KINDS, CustomWorkload, api_path, spec_path, template_path
from kubectl_qos.k8s.managers import Manager
from kubectl_qos.k8s.objects import Pod, nested

FIELD_MANAGER: Final = "kubectl-qos"
METHOD: Final = "PATCH"
CONTENT_TYPE: Final = "application/strategic-merge-patch+json"
RESIZE: Final = "resize"
_SERVER_FIELDS: Final = frozenset(
    {"managedFields", "uid", "resourceVersion", "creationTimestamp", "generation", "selfLink"}
)


@dataclass(frozen=True, slots=True)
class PatchRequest:
    """A strategic merge patch of one object."""

    kind: str
    namespace: str
    name: str
    uid: str
    """With `resource_version`: the object that was read, so that no other of its name is changed."""
    resource_version: str
    subresource: str
    """`resize` for a change in place, else empty."""
    edits: tuple[Edit, ...]
    before: tuple[Edit, ...]
    """The old values of `edits`."""
    patch: Mapping[str, Any]
    """The change alone, without the precondition."""

    @property
    def path(self) -> str:
        """Return the path on the server."""
        path = api_path(self.kind, self.namespace, self.name)
        return f"{path}/{self.subresource}" if self.subresource else path

    @property
    def reference(self) -> str:
        """Return the object for sentences: `deployment/web`."""
        return f"{self.kind.lower()}/{self.name}"

    @property
    def body(self) -> dict[str, Any]:
        """Return the patch with its precondition."""
        identity = {"uid": self.uid, "resourceVersion": self.resource_version}
        return {"metadata": {name: value for name, value in identity.items() if value}, **self.patch}

    def query(self, *, dry_run: bool) -> dict[str, str]:
        """Return the query of the URL."""
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict"}
        return {"dryRun": "All", **query} if dry_run else query


class FileEdit(NamedTuple):
    """A manifest before and after edits; `before` is empty for a new file."""

    name: str
    before: bytes
    after: bytes


@dataclass(frozen=True, slots=True)
class WriteBack:
    """A change that was written to a working tree; nothing was written without `edits`."""

    pod: Pod
    """The pod with the values before."""
    edits: tuple[Edit, ...]
    source: str
    """The deployed folder, or the manifest."""
    by: Manager | None
    """The Argo CD or Flux object that names the source."""
    places: tuple[str, ...]
    """Manifests and patches with the new values."""
    others: tuple[tuple[str, str], ...]
    """Other folders that change too, with their objects."""
    is_built: bool
    """The source is a kustomization."""
    files: tuple[FileEdit, ...] = ()


def build_request(raw: Mapping[str, Any], pod: Pod, edits: Iterable[Edit], *, in_place: bool) -> PatchRequest:
    """Return the request for these edits, one for each value; in place through the resize subresource.

    `raw` is the pod or workload as the server has it, `pod` the same decoded, for workloads the pod of the
    template under the workload's kind and name.
    """
    edits = tuple(edits)
    metadata = nested(raw, "metadata")
    return PatchRequest(
        kind=pod.kind,
        namespace=pod.namespace,
        name=pod.name,
        uid=str(metadata.get("uid", "")),
        resource_version=str(metadata.get("resourceVersion", "")),
        subresource=RESIZE if in_place else "",
        edits=edits,
        before=tuple(Edit(*edit.target, current_value(pod, *edit.target)) for edit in edits),
        patch=build_patch(pod, edits),
    )


def build_patch(pod: Pod, edits: Iterable[Edit]) -> dict[str, Any]:
    """Return the strategic merge patch of a pod, or of the workload whose template `pod` is.

    Raises InputError for other kinds, whose lists a server would replace.
    """
    if isinstance(pod, CustomWorkload):
        raise InputError(
            f"a {pod.kind} takes no strategic merge patch", hint="-o manifest prints the changed object"
        )
    spec: dict[str, Any] = {}
    init = {container.name for container in pod.init_containers}
    for edit in edits:
        value = None if edit.quantity is None else str(edit.quantity)
        if edit.owner == POD_LEVEL:
            resources = spec.setdefault("resources", {})
        else:
            kind = "initContainers" if edit.owner in init else "containers"
            resources = _container_patch(spec.setdefault(kind, []), edit.owner).setdefault("resources", {})
        resources.setdefault(edit.side.value, {})[edit.resource] = value
    patch: dict[str, Any] = {"spec": spec}
    for key in reversed(template_path(pod.kind)):
        patch = {key: patch}
    return patch


def kustomize_patch(pod: Pod, edits: Iterable[Edit], namespace: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the entry in the `patches` of a kustomization, and the patch file.

    The target has the namespace that the object declares in its file: a kustomization sets its own only
    after patches. A merge puts the containers of a patch first, so the patch names all of them. Errors are
    those of `build_patch`.
    """
    edits = tuple(edits)
    patch = build_patch(pod, edits)
    spec: Any = patch
    for key in spec_path(pod):
        spec = spec[key]
    for key, containers in (("initContainers", pod.init_containers), ("containers", pod.containers)):
        changed = {entry["name"]: entry for entry in spec.get(key, ())}
        if changed:
            names = [container.name for container in containers]
            spec[key] = [changed.get(name, {"name": name}) for name in names]
    version = KINDS[pod.kind].group.removeprefix("/apis/").removeprefix("/api/")
    identity = {"apiVersion": version, "kind": pod.kind, "metadata": {"name": pod.name}}
    file = f"qos-{pod.kind.lower()}-{pod.name}.yaml"
    target = {"kind": pod.kind, "name": pod.name}
    if namespace:
        target["namespace"] = namespace
    return {"path": file, "target": target}, identity | patch


def build_manifest(raw: Mapping[str, Any], pod: Pod, edits: Iterable[Edit]) -> dict[str, Any]:
    """Return the edited object without the fields that only a server sets.

    The node of a stored pod is left out too: the scheduler will choose again. Arguments and errors are those
    of `edit_object`.
    """
    manifest = edit_object(raw, pod, edits)
    manifest.pop("status", None)
    metadata = manifest.get("metadata")
    if isinstance(metadata, dict):
        if pod.kind == "Pod" and metadata.get("uid"):
            manifest["spec"].pop("nodeName", None)
        for name in _SERVER_FIELDS:
            metadata.pop(name, None)
    return manifest


def edit_object(raw: Mapping[str, Any], pod: Pod, edits: Iterable[Edit]) -> dict[str, Any]:
    """Return the edited object, all else unchanged. Raises InputError if a container is missing.

    `raw` is the object as the file or the server has it, `pod` the same decoded, for workloads its template.
    """
    result = copy.deepcopy(dict(raw))
    spec: Any = result
    for key in spec_path(pod):
        spec = spec[key]
    for edit in edits:
        owner: Any = spec if edit.owner == POD_LEVEL else _find_container(spec, edit.owner)
        resources = owner.get("resources") or {}
        values = dict(resources.get(edit.side.value) or {})
        if edit.quantity is None:
            values.pop(edit.resource, None)
        else:
            text = str(edit.quantity)
            was_number = type(values.get(edit.resource)) is int
            values[edit.resource] = int(text) if was_number and text.isdecimal() else text
        resources = {**resources, edit.side.value: values}
        if not values:
            del resources[edit.side.value]
        owner["resources"] = resources
    return result


def kubectl_command(pod: Pod, *, in_place: bool) -> str:
    """Return the command that applies the saved patch."""
    where = f" -n {pod.namespace}" if pod.namespace else ""
    subresource = " --subresource resize" if in_place else ""
    return f"kubectl patch {pod.kind.lower()} {pod.name}{where}{subresource} --patch-file FILE"


def _container_patch(containers: list[dict[str, Any]], name: str) -> dict[str, Any]:
    for container in containers:
        if container["name"] == name:
            return container
    containers.append({"name": name})
    return containers[-1]


def _find_container(spec: Mapping[str, Any], name: str) -> Any:
    for kind in ("containers", "initContainers"):
        for container in spec.get(kind) or ():
            if container.get("name") == name:
                return container
    raise InputError(f"the object has no container {name}")
