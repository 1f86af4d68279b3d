"""What the kubelets of a cluster are configured with, as far as it may be read.

The configz endpoint of a kubelet is reached through the API server's node proxy, which needs `get` on
nodes/proxy. That right also allows more than reading, so few people have it, and none is asked to: without
it the defaults of the kubelet's release are assumed, and explanations say so.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

import msgspec

from kubectl_qos.cluster.access import log
from kubectl_qos.cluster.api import Api
from kubectl_qos.errors import ApiError, QosError
from kubectl_qos.k8s.configz import kubelet_of
from kubectl_qos.k8s.kubelet import Kubelet
from kubectl_qos.k8s.objects import NodeObject
from kubectl_qos.k8s.releases import Release

MOST_NODES: Final = 8
"""The configuration of more nodes than this is not asked for, one request each."""


class KubeletConfigurations:
    """The configurations that were readable; each kubelet is asked once."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._asked: set[str] = set()
        self._found: dict[str, Kubelet] = {}
        self._forbidden = False

    @property
    def found(self) -> Mapping[str, Kubelet]:
        """By node name; what has been read so far."""
        return dict(self._found)

    def read(self, nodes: Mapping[str, NodeObject]) -> None:
        """Ask the kubelets of these nodes that were not asked before, unless there are too many."""
        if len(nodes) > MOST_NODES:
            log.say(log.DECISIONS, f"configz is not read: {len(nodes)} nodes are more than {MOST_NODES}")
            return
        for name, node in nodes.items():
            if name not in self._asked and not self._forbidden:
                self._asked.add(name)
                self._read(name, Release.of(node.status.node_info.kubelet_version or "1.36", {}))

    def _read(self, name: str, release: Release) -> None:
        try:
            self._found[name] = kubelet_of(self._api.configz(name), release)
        except ApiError as error:
            self._forbidden = error.status == HTTPStatus.FORBIDDEN
            log.say(log.DECISIONS, f"configz of {name} is not known: {error}")
        except (QosError, msgspec.ValidationError, ValueError) as error:
            log.say(log.DECISIONS, f"configz of {name} is not known: {error}")
        else:
            log.say(log.DECISIONS, f"configz of {name} is read")
