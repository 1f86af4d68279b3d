"""Every list there is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubectl_qos.tui.lists.base import Listing
from kubectl_qos.tui.lists.containers import Containers
from kubectl_qos.tui.lists.groups import Namespaces, Workloads
from kubectl_qos.tui.lists.nodes import Nodes
from kubectl_qos.tui.lists.pods import Pods
from kubectl_qos.tui.trends import Trends
from kubectl_qos.tui.view import Kind


def listings(trends: Trends) -> Mapping[Kind, Listing[Any]]:
    """Each list by its kind, in the order of their keys."""
    pods = Pods(trends)
    found = (Nodes(), Namespaces(pods), Workloads(pods), pods, Containers(pods))
    return {listing.kind: listing for listing in found}
