"""What else a server has that bears on a change of a pod: values, read by cluster/surroundings.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubectl_qos.k8s.objects import LimitRange, Pod
from kubectl_qos.k8s.resource_quota import ResourceQuota
from kubectl_qos.k8s.snapshot import Missing
from kubectl_qos.k8s.vertical_autoscaler import VerticalAutoscaler

Json = Mapping[str, Any]

OWNER: Final = "the owner"
"""How `Missing.what` begins where a controller could not be read."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A workload above the pod: as the server has it, and the pod that its template makes.

    `template` is None for what has no pod template, an operator's own resource say.
    """

    raw: Json
    template: Pod | None

    @property
    def kind(self) -> str:
        """Such as `Deployment`."""
        return str(self.raw.get("kind", ""))

    @property
    def name(self) -> str:
        """Its name."""
        return str((self.raw.get("metadata") or {}).get("name", ""))


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What was read for one pod or workload.

    Attributes:
        raw: the object itself as the server has it.
        owners: the chain of controllers above it, the nearest first: ReplicaSet, Deployment. It ends where
            there is no controller, or where that may not be read (then `missing` says so).
        limit_ranges: of its namespace.
        quotas: of its namespace.
        autoscalers: the VerticalPodAutoscalers of its namespace; none where the cluster has no such kind.
        missing: what could not be read, and why.
    """

    raw: Json
    owners: tuple[Owner, ...] = ()
    limit_ranges: tuple[LimitRange, ...] = ()
    quotas: tuple[ResourceQuota, ...] = ()
    autoscalers: tuple[VerticalAutoscaler, ...] = ()
    missing: tuple[Missing, ...] = ()


def controller_of(raw: Json) -> Json | None:
    """The reference to the controller of an object, else to its only owner, as plain JSON."""
    found = (raw.get("metadata") or {}).get("ownerReferences")
    references = [one for one in found or () if isinstance(one, Mapping)]
    controller = next((one for one in references if one.get("controller") is True), None)
    return controller if controller is not None or len(references) != 1 else references[0]
