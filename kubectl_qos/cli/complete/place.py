"""What a place of names is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from kubectl_qos.k8s.objects import Pod


class Named(NamedTuple):
    """An object's name, with a few words about it."""

    name: str
    about: str = ""
    labels: Mapping[str, str] = {}


class Place(Protocol):
    """Where names come from. Each question may raise whatever a server or a file makes it raise."""

    def of(self, kind: str, *, node: str | None, labels: bool) -> list[Named]:
        """The objects of a kind in scope, pods only of a node if one is given; with their labels if asked."""

    def containers(self, kind: str, name: str) -> list[str]:
        """The names of the containers of a pod or workload, init containers too."""


def container_names(pod: Pod) -> list[str]:
    """Of a pod or a template: its containers, then its init containers."""
    return [one.name for one in (*(pod.spec.containers or ()), *(pod.spec.init_containers or ()))]
