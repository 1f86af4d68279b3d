"""What is wrong with a manifest that can be read: what a strict server refuses, and what nobody means.

Source: k8s.io/apimachinery/pkg/runtime/serializer/json (strict decoding), and fields.json, which
tests/k8s/make_fields.py generates from the OpenAPI of Kubernetes. Not here: objects that a server has stored,
which is newer than that file perhaps, and their lines.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from kubectl_qos.errors import QuantityError
from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kinds import CustomWorkload, dotted, spec_path
from kubectl_qos.k8s.objects import CPU, LEAST_MEMORY, MEMORY, Pod
from kubectl_qos.k8s.quantity import Format, Quantity
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.validation import Refusal, pod_refusals

FIELDS_FILE: Final = Path(__file__).with_name("fields.json")
_RELEASE: Final = Release.of("1.36", {})
MOST_CPU_MILLI: Final = 256_000
"""More than a container is ever given: 500 is written for 500m."""


_APPS: Final = ("apps/v1", "apps/v1beta2")
_VERSIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "Pod": ("v1",),
    "ReplicationController": ("v1",),
    "Deployment": (*_APPS, "apps/v1beta1", "extensions/v1beta1"),
    "StatefulSet": (*_APPS, "apps/v1beta1"),
    "DaemonSet": (*_APPS, "extensions/v1beta1"),
    "ReplicaSet": (*_APPS, "extensions/v1beta1"),
    "Job": ("batch/v1",),
    "CronJob": ("batch/v1", "batch/v1beta1"),
}
"""The versions of each kind that kubectl reads (k8s.io/api, register.go), the present one first."""
_OWN: Final = frozenset(chain.from_iterable(_VERSIONS.values()))
_TEMPLATES: Final = frozenset(
    ("PodTemplate", "ControllerRevision", "JobTemplate", "DeploymentConfig", "Template")
)
"""Other kinds of those versions that have pod templates, the last two in the v1 of OpenShift."""


class MistakeCode(StrEnum):
    """What a mistake is about."""

    VERSION = "version"
    UNKNOWN_FIELD = "unknown field"
    REFUSAL = "refusal"
    ODD_SIZE = "odd size"


class Mistake(NamedTuple):
    """What is wrong at a path of an object; `is_refused` is whether a server refuses it."""

    code: MistakeCode
    path: str
    message: str
    is_refused: bool


def manifest_mistakes(raw: Mapping[str, Any], pod: Pod) -> Iterator[Mistake]:
    """The mistakes in a manifest of a pod or workload.

    Of kinds that Kubernetes does not have only the containers are known, and a server takes their objects.
    """
    is_own, spec = not isinstance(pod, CustomWorkload), dotted(spec_path(pod))
    yield from _version_mistakes(raw, pod)
    for field in unknown_fields(raw, pod.kind) if is_own else _unknown_in_containers(raw, pod):
        yield Mistake(MistakeCode.UNKNOWN_FIELD, field, f'unknown field "{field}"', is_refused=is_own)
    for refusal in _refusals(pod):
        path = re.sub("^spec", spec, refusal.path)
        yield Mistake(MistakeCode.REFUSAL, path, f"{path}: {refusal.message}", is_refused=is_own)
    for where, message in _odd_sizes(pod):
        path = re.sub("^spec", spec, where)
        yield Mistake(MistakeCode.ODD_SIZE, path, f"{path}: {message}", is_refused=False)


def _version_mistakes(raw: Mapping[str, Any], pod: Pod) -> Iterator[Mistake]:
    """What is wrong with apiVersion and kind; old versions are those that only servers before 1.25 have."""
    version, is_own = raw.get("apiVersion"), not isinstance(pod, CustomWorkload)
    versions = _VERSIONS[pod.kind] if is_own else ()
    if not version and "kind" in raw:
        missing = "Object 'apiVersion' is missing: kubectl does not take it"
        yield Mistake(MistakeCode.VERSION, "kind", missing, is_refused=False)
    elif version in versions and version != versions[0]:
        old = f'no server has kind "{pod.kind}" of version "{version}" any more: write {versions[0]}'
        yield Mistake(MistakeCode.VERSION, "apiVersion", old, is_refused=False)
    elif version and version not in versions and (is_own or (version in _OWN and pod.kind not in _TEMPLATES)):
        no_kind = f'no kind "{pod.kind}" is registered for version "{version}"'
        yield Mistake(MistakeCode.VERSION, "apiVersion", no_kind, is_refused=True)


def _refusals(pod: Pod) -> Iterable[Refusal]:
    """The first refusal of each field, without those of a request that is only defaulted from its limit."""
    written = {refusal.path for refusal in pod_refusals(pod, _RELEASE)}
    refusals: dict[str, Refusal] = {}
    for refusal in pod_refusals(default_pod(pod, _RELEASE), _RELEASE):
        if ".requests[" not in refusal.path or refusal.path in written:
            refusals.setdefault(refusal.path, refusal)
    return (*refusals.values(), *_taken_names(pod))


def _taken_names(pod: Pod) -> Iterator[Refusal]:
    """Names that containers before have (`validateContainers`, `validateInitContainers`)."""
    names: set[str] = set()
    for kind, containers in (("containers", pod.containers), ("initContainers", pod.init_containers)):
        for index, name in enumerate(container.name for container in containers):
            if name and name in names:
                yield Refusal(f"spec.{kind}[{index}].name", f'Duplicate value: "{name}"', name)
            names.add(name)


def _unknown_in_containers(raw: Any, pod: Pod) -> Iterator[str]:
    """What is not in a pod's spec, as the containers of Argo's containerSet, has fields of its own beside."""
    for key in spec_path(pod):
        raw = raw[key]
    for index, container in enumerate(raw["containers"]):
        path = f"{dotted(spec_path(pod))}.containers[{index}]."
        fields = unknown_fields(container, "Container", path)
        is_pod = spec_path(pod)[-1] == "spec"
        yield from (field for field in fields if is_pod or "." in field.removeprefix(path))


def unknown_fields(raw: Mapping[str, Any], type_: str, path: str = "") -> Iterator[str]:
    """The paths of fields that an object of this type does not have."""
    fields = _fields()[type_]
    for name, value in raw.items():
        inner = fields.get(name)
        if inner is None:
            yield f"{path}{name}"
        elif inner:
            if isinstance(value, Mapping):
                yield from unknown_fields(value, inner, f"{path}{name}.")
            elif isinstance(value, list):
                for index, item in enumerate(value):
                    if isinstance(item, Mapping):
                        yield from unknown_fields(item, inner, f"{path}{name}[{index}].")


def odd_size(resource: str, quantity: Quantity, unit: str = "Mi") -> str:
    """What a size says and what was meant, for memory and CPU that no container has; else empty.

    `unit` is that of memory which is meant most likely.
    """
    text = str(quantity)
    number = text.rstrip("numkKMGTPEi")
    if resource == MEMORY and 0 < quantity.milli_value() < LEAST_MEMORY * 1000:
        size = f"{quantity.milli_value() / 1000:,.3f}".rstrip("0").rstrip(".")
        return f"{text} is {size} bytes; {number}{unit} was meant?"
    if resource == CPU and quantity.format is Format.BINARY_SI and quantity.sign > 0:
        return f"{text} is {quantity.value():,} cores; is it a size of memory?"
    if resource == CPU and quantity.milli_value() >= MOST_CPU_MILLI:
        return f"{text} is {quantity.value():,} cores; {number}m was meant?"
    return ""


def memory_bytes(text: str) -> int:
    """The bytes of a person's size of memory. Raises QuantityError, also for what nobody means."""
    size = Quantity.parse(text)
    if size.sign <= 0:
        raise QuantityError("must be positive")
    if odd := odd_size(MEMORY, size, "Gi" if text.isdecimal() else "Mi"):
        raise QuantityError(odd)
    return size.value()


def _odd_sizes(pod: Pod) -> Iterator[tuple[str, str]]:
    owners = [(f"spec.containers[{index}]", item.resources) for index, item in enumerate(pod.containers)]
    owners += [
        (f"spec.initContainers[{index}]", item.resources) for index, item in enumerate(pod.init_containers)
    ]
    if pod.spec.resources is not None:
        owners.append(("spec", pod.spec.resources))
    for owner, resources in owners:
        for side, quantities in (("limits", resources.limits), ("requests", resources.requests)):
            for name, quantity in (quantities or {}).items():
                message = odd_size(name, quantity)
                if message:
                    yield f"{owner}.resources.{side}[{name}]", message


@cache
def _fields() -> dict[str, dict[str, str]]:
    """For each type the fields it has, with the type of those that are objects or lists of them."""
    return msgspec.json.decode(FIELDS_FILE.read_bytes(), type=dict[str, dict[str, str]])
