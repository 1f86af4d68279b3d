"""Every list there is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubectl_qos.tui.lists.base import ListDefinition
from kubectl_qos.tui.lists.groups import NamespaceList, WorkloadList
from kubectl_qos.tui.lists.nodes import NodeList
from kubectl_qos.tui.lists.pods import ContainerList, PodList
from kubectl_qos.tui.view import ListKind
from kubectl_qos.tui.view_model import Trends


def listings(trends: Trends) -> Mapping[ListKind, ListDefinition[Any]]:
    """Each list by its kind, in the order of their keys."""
    pods = PodList(trends)
    found = (NodeList(), NamespaceList(pods), WorkloadList(pods), pods, ContainerList(pods))
    return {listing.kind: listing for listing in found}
