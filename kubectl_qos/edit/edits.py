"""Edits of requests and limits, and their forms: the edited pod, flags, a request, and a manifest."""

import copy
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

import msgspec

from kubectl_qos.errors import InputError, QuantityError, UsageError
from kubectl_qos.k8s.defaulting import with_containers
from kubectl_qos.k8s.kinds import KINDS, CustomWorkload, api_path, spec_path, template_path
from kubectl_qos.k8s.managers import Manager
from kubectl_qos.k8s.objects import (
    CPU,
    EMPTY_RESOURCES,
    MEMORY,
    Container,
    Pod,
    ResourceList,
    ResourceRequirements,
    nested,
)
from kubectl_qos.k8s.quantity import ZERO, Quantity, parse_typed, quantity_hint
from kubectl_qos.k8s.resources import is_container_resource
from kubectl_qos.k8s.validation import odd_size
from kubectl_qos.qos.qos_class import SPEC_RESOURCES

POD_LEVEL = ""
"""The owner of edits to spec.resources."""


class Side(StrEnum):
    """One of the two maps of a container's resources."""

    REQUESTS = "requests"
    LIMITS = "limits"


class Edit(msgspec.Struct, frozen=True):
    """One value of one container (or of the pod, `POD_LEVEL`); None removes it."""

    owner: str
    side: Side
    resource: str
    quantity: Quantity | None

    @property
    def target(self) -> tuple[str, Side, str]:
        """Return which value the edit sets."""
        return self.owner, self.side, self.resource

    @property
    def warning(self) -> str:
        """Return what is odd about a size that a server accepts, or ""."""
        return odd_size(self.resource, self.quantity) if self.quantity is not None else ""


def parse_quantity(text: str, stored: Quantity | None = None) -> Quantity | None:
    """Parse a typed quantity, "" as None; `+1Gi` adds to what is stored. Raises QuantityError."""
    text = text.strip()
    if not text:
        return None
    quantity = parse_typed(text)
    if quantity.sign < 0:
        raise QuantityError("must be greater than or equal to 0")
    if not text.startswith("+"):
        return quantity
    if stored is None:
        raise QuantityError(f"there is no value to add {text[1:]} to")
    return stored + quantity


def current_value(pod: Pod, owner: str, side: Side, resource: str) -> Quantity | None:
    """Return the value that an edit would replace. Raises InputError for a missing container."""
    resources = pod.spec.resources if owner == POD_LEVEL else _find_container(pod, owner).resources
    quantities: ResourceList | None = getattr(resources, side.value) if resources is not None else None
    return (quantities or EMPTY_RESOURCES).get(resource)


def memory_value(pod: Pod, owner: str, side: Side) -> int:
    """Return the bytes of a memory request or limit; 0 without one, as for ephemeral containers."""
    if any(container.name == owner for container in pod.ephemeral_containers):
        return 0
    quantity = current_value(pod, owner, side, MEMORY)
    return quantity.value() if quantity is not None else 0


def value_now(pod: Pod, edit: Edit) -> Quantity | None:
    """Return the value at the edit's target; None also without the container."""
    try:
        return current_value(pod, *edit.target)
    except InputError:
        return None


def has_more(pod: Pod, edit: Edit) -> bool:
    """Return whether an edit would lower a value."""
    now = value_now(pod, edit)
    return now is not None and edit.quantity is not None and now > edit.quantity


def lowers_cpu_limit(pod: Pod, edit: Edit) -> bool:
    """Return whether an edit sets a CPU limit where there was none, or a lower one."""
    if (edit.side, edit.resource) != (Side.LIMITS, CPU) or edit.quantity is None:
        return False
    now = value_now(pod, edit)
    return now is None or edit.quantity < now


def apply_edits(pod: Pod, edits: Iterable[Edit]) -> Pod:
    """Return the edited pod. Raises InputError for a container that does not exist."""
    for edit in edits:
        pod = _apply_edit(pod, edit)
    return pod


def effective_edits(pod: Pod, edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """Return the edits that change a value or its spelling; the last edit of a target counts."""
    last = {edit.target: edit for edit in edits}.values()
    return tuple(edit for edit in last if str(current_value(pod, *edit.target)) != str(edit.quantity))


def edits_between(before: Pod, after: Pod) -> Iterator[Edit]:
    """Yield the edits that turn the requests and limits of a pod into those of its changed self."""
    changed = [(POD_LEVEL, before.spec.resources, after.spec.resources)]
    pairs = zip(
        (*before.init_containers, *before.containers),
        (*after.init_containers, *after.containers),
        strict=True,
    )
    changed += [(old.name, old.resources, new.resources) for old, new in pairs]
    for owner, old, new in changed:
        for side in Side:
            had = getattr(old, side.value, None) or EMPTY_RESOURCES
            has = getattr(new, side.value, None) or EMPTY_RESOURCES
            for resource in dict.fromkeys((*had, *has)):
                if had.get(resource) != has.get(resource):
                    yield Edit(owner, side, resource, has.get(resource))


def own_edits(pod: Pod, edits: Iterable[Edit]) -> list[Edit]:
    """Return the edits of the pod itself and of containers that it has."""
    names = {POD_LEVEL, *(container.name for container in (*pod.containers, *pod.init_containers))}
    return [edit for edit in edits if edit.owner in names]


def _apply_edit(pod: Pod, edit: Edit) -> Pod:
    if edit.owner == POD_LEVEL:
        if edit.quantity is None and pod.spec.resources is None:
            return pod
        resources = _edit_resources(pod.spec.resources or ResourceRequirements(), edit)
        return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, resources=resources))
    _find_container(pod, edit.owner)

    def edited(container: Container) -> Container:
        if container.name != edit.owner:
            return container
        return msgspec.structs.replace(container, resources=_edit_resources(container.resources, edit))

    return msgspec.structs.replace(pod, spec=with_containers(pod.spec, edited))


def _edit_resources(resources: ResourceRequirements, edit: Edit) -> ResourceRequirements:
    quantities = dict(getattr(resources, edit.side.value) or {})
    quantities.pop(edit.resource, None)
    if edit.quantity is not None:
        quantities[edit.resource] = edit.quantity
    return msgspec.structs.replace(resources, **{edit.side.value: ResourceList(quantities)})


def _find_container(pod: Pod, name: str) -> Container:
    for container in (*pod.containers, *pod.init_containers):
        if container.name == name:
            return container
    names = ", ".join(container.name for container in (*pod.init_containers, *pod.containers))
    raise InputError(f"container {name} is not valid for pod {pod.name}", hint=f"its containers are: {names}")


class Amount(NamedTuple):
    """A value of one resource for the selected containers. None removes it; `is_more` adds to it (`+1Gi`)."""

    resource: str
    quantity: Quantity | None
    is_more: bool = False

    def edit(self, pod: Pod, owner: str, side: Side) -> Edit:
        """Return the edit of one container, or of the pod. Raises InputError without a value to add to."""
        text = "" if self.quantity is None else f"{'+' * self.is_more}{self.quantity}"
        try:
            quantity = parse_quantity(text, current_value(pod, owner, side, self.resource))
        except QuantityError as error:
            place = f"{pod.title}: {owner or SPEC_RESOURCES}: {side.value}.{self.resource}"
            raise InputError(f"{place}: {error}", hint=f"write {self.resource}={self.quantity}") from None
        return Edit(owner, side, self.resource, quantity)


def parse_amounts(text: str, flag: str) -> tuple[Amount, ...]:
    """Parse the amounts of a flag such as `cpu=250m,memory-`, in order.

    Raises UsageError, which names the flag.
    """
    amounts: dict[str, Amount] = {}
    for part in text.split(","):
        amount = _parse_amount(part, flag)
        if amount.resource in amounts:
            raise UsageError(f"{flag} {text}: {amount.resource} is given twice")
        amounts[amount.resource] = amount
    return tuple(amounts.values())


def format_amounts(amounts: Iterable[Amount]) -> str:
    """Return the text that `parse_amounts` reads as these amounts."""
    return ",".join(
        f"{resource}-" if quantity is None else f"{resource}={'+' * is_more}{quantity}"
        for resource, quantity, is_more in amounts
    )


def as_flags(edits: Sequence[Edit]) -> list[str]:
    """Return the edits as flags, one line for each container and for the pod."""
    lines = []
    for owner in dict.fromkeys(edit.owner for edit in edits):
        words = ["--pod-level" if owner == POD_LEVEL else f"-c {owner}"]
        for side in Side:
            of_side = [edit for edit in edits if (edit.owner, edit.side) == (owner, side)]
            if of_side:
                amounts = format_amounts(Amount(edit.resource, edit.quantity) for edit in of_side)
                words.append(f"--{side.value} {amounts}")
        lines.append(" ".join(words))
    return lines


def select_containers(pod: Pod, patterns: Sequence[str]) -> list[str]:
    """Return the names of the containers that the patterns select, app containers first as in kubectl.

    `*` in a pattern matches any text; without patterns all are selected. Raises InputError for a pattern
    that matches no container.
    """
    names = [container.name for container in (*pod.containers, *pod.init_containers)]
    selected: set[str] = set()
    for pattern in patterns or ("*",):
        regex = re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)
        matching = [name for name in names if regex.fullmatch(name)]
        if not matching:
            raise InputError(
                f"unable to find container named {pattern} in {pod.kind.lower()}/{pod.name}",
                hint=f"its containers are: {', '.join(names)}",
            )
        selected.update(matching)
    return [name for name in names if name in selected]


def _parse_amount(part: str, flag: str) -> Amount:
    resource, equals, text = part.partition("=")
    if not equals and part.endswith("-") and len(part) > 1:
        return Amount(_parse_resource(part.removesuffix("-"), part, flag), None)
    if not resource or not text or "=" in text:
        raise UsageError(
            f"{flag}: invalid argument syntax {part}, expected <resource>=<value>",
            hint=f"{flag} cpu=250m,memory=1Gi sets two values, {flag} memory- removes one",
        )
    resource = _parse_resource(resource, part, flag)
    try:
        is_more = text.startswith("+")
        return Amount(resource, parse_quantity(text, ZERO if is_more else None), is_more)
    except QuantityError as error:
        raise UsageError(f"{flag} {part}: {error}", hint=quantity_hint(text, resource)) from None


_QUALIFIED: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


def _parse_resource(name: str, part: str, flag: str) -> str:
    """Return a resource that containers may request (`validateContainerResourceName`)."""
    if is_container_resource(name) and ("/" not in name or _QUALIFIED.fullmatch(name)):
        return name
    raise UsageError(
        f'{flag} {part}: "{name}" must be a standard resource for containers or fully qualified',
        hint="cpu, memory, ephemeral-storage, hugepages-2Mi, or a name with its domain: example.com/device",
    )


FIELD_MANAGER: Final = "kubectl-qos"
METHOD: Final = "PATCH"
CONTENT_TYPE: Final = "application/strategic-merge-patch+json"
RESIZE: Final = "resize"
_SERVER_FIELDS: Final = frozenset(
    {"managedFields", "uid", "resourceVersion", "creationTimestamp", "generation", "selfLink"}
)


class PatchRequest(msgspec.Struct, frozen=True):
    """A strategic merge patch of one object."""

    kind: str
    namespace: str
    name: str
    uid: str
    """With `resource_version`: identifies the object that was read, so that no other one is changed."""
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


class WriteBack(msgspec.Struct, frozen=True):
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
    kept: tuple[Edit, ...] = ()
    """Edits that are left out, because the source has more."""


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
    by_owner: dict[str, dict[str, Any]] = {}
    for edit in edits:
        value = None if edit.quantity is None else str(edit.quantity)
        by_owner.setdefault(edit.owner, {}).setdefault(edit.side.value, {})[edit.resource] = value
    spec: dict[str, Any] = {}
    init = {container.name for container in pod.init_containers}
    for owner, resources in by_owner.items():
        if owner == POD_LEVEL:
            spec["resources"] = resources
        else:
            kind = "initContainers" if owner in init else "containers"
            spec.setdefault(kind, []).append({"name": owner, "resources": resources})
    patch: dict[str, Any] = {"spec": spec}
    for key in reversed(template_path(pod.kind)):
        patch = {key: patch}
    return patch


def kustomize_patch(pod: Pod, edits: Iterable[Edit], namespace: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the entry in the `patches` of a kustomization, and the patch file.

    The target has the namespace in the object's file: a kustomization sets its own only after patches. A
    merge puts the containers of a patch first, so the patch names all of them. Raises as `build_patch`.
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

    The node of a stored pod is left out too: the scheduler will choose again. Raises as `edit_object`.
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

    `raw` is the object in the file or on the server, `pod` the decoded one (for workloads their template).
    """
    result = copy.deepcopy(dict(raw))
    spec: Any = result
    for key in spec_path(pod):
        spec = spec[key]
    for edit in edits:
        owner: Any = spec if edit.owner == POD_LEVEL else _find_written(spec, edit.owner)
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


def _find_written(spec: Mapping[str, Any], name: str) -> Any:
    for kind in ("containers", "initContainers"):
        for container in spec.get(kind) or ():
            if container.get("name") == name:
                return container
    raise InputError(f"the object has no container {name}")
