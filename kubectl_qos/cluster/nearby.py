"""What bears on a change of an object among the objects of the same files: owners, limits, autoscalers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from kubectl_qos.cluster.answers import UNDECODABLE
from kubectl_qos.cluster.surroundings import MOST_OWNERS, owner_of
from kubectl_qos.edit.surroundings import Owner, Surroundings, controller_of
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.objects import LimitRange, convert
from kubectl_qos.k8s.resource_quota import ResourceQuota
from kubectl_qos.k8s.vertical_autoscaler import VerticalAutoscaler

T = TypeVar("T")
Json = Mapping[str, Any]


def nearby(raw: Json, objects: Sequence[Json], namespace: str) -> Surroundings:
    """The surroundings of one object among others of the same files; what is not there is not missed."""
    near = [one for one in objects if _metadata(one, "namespace") == namespace]
    return Surroundings(
        raw=raw,
        owners=tuple(_owners(raw, near)),
        limit_ranges=_decoded(near, "LimitRange", LimitRange),
        quotas=_decoded(near, "ResourceQuota", ResourceQuota),
        autoscalers=_decoded(near, "VerticalPodAutoscaler", VerticalAutoscaler),
    )


def _owners(raw: Json, near: Sequence[Json]) -> list[Owner]:
    found: list[Owner] = []
    reference = controller_of(raw)
    while reference is not None and len(found) < MOST_OWNERS:
        kind, name = reference.get("kind"), reference.get("name")
        owner = next((one for one in near if (one.get("kind"), _metadata(one, "name")) == (kind, name)), None)
        if owner is None:
            version = reference.get("apiVersion", "")
            found.append(Owner({"apiVersion": version, "kind": kind, "metadata": {"name": name}}, None))
            break
        try:
            found.append(owner_of(owner))
        except QosError:
            found.append(Owner(owner, None))
        reference = controller_of(owner)
    return found


def _decoded(near: Sequence[Json], kind: str, wanted: type[T]) -> tuple[T, ...]:
    """The objects of a kind, without those that cannot be read."""
    found = []
    for raw in near:
        if raw.get("kind") == kind:
            try:
                found.append(convert(raw, wanted))
            except UNDECODABLE:
                continue
    return tuple(found)


def _metadata(raw: Json, name: str) -> str:
    metadata = raw.get("metadata")
    return str(metadata.get(name) or "") if isinstance(metadata, Mapping) else ""
