"""The permissions that the program can use, tier by tier.

`kubectl qos can-i` checks them, docs/rbac grants them, docs/rights.md lists them. cluster/kube_api.py reviews
access, present/list_notes.py has tables and sentences.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final

import msgspec


class PermissionScope(Enum):
    """Where a permission is needed."""

    NAMESPACE = "one namespace"
    EVERYWHERE = "all namespaces"
    CLUSTER = "cluster"


class Permission(msgspec.Struct, frozen=True):
    """A verb on a resource. Without an `optional` permission its tier works slower or shows less."""

    verb: str
    resource: str
    group: str = ""
    subresource: str = ""
    scope: PermissionScope = PermissionScope.NAMESPACE
    optional: bool = False

    @property
    def target(self) -> str:
        """Return the resource as kubectl names it: `pods.metrics.k8s.io`, `nodes/proxy`."""
        name = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{name}/{self.subresource}" if self.subresource else name

    def namespace(self, requested: str | None) -> str | None:
        """Return the namespace of its access review; None for all of them and for resources without one."""
        return requested if self.scope is PermissionScope.NAMESPACE else None


class AccessReview(msgspec.Struct, frozen=True):
    """A server's answer about a permission, and its reason; `allowed` is None if there was no answer."""

    allowed: bool | None
    reason: str = ""


class AccessLevel(Enum):
    """How much of a tier is allowed."""

    YES = "yes"
    PARTLY = "partly"
    NO = "no"
    UNKNOWN = "unknown"


class Tier(msgspec.Struct, frozen=True):
    """Permissions that enable something together; `caution` warns of granting them carelessly."""

    name: str
    gives: str
    permissions: tuple[Permission, ...]
    caution: str = ""

    @property
    def file(self) -> str:
        """Return the manifest of its ClusterRole, `kubectl-qos-NAME`."""
        return f"docs/rbac/{self.name}.yaml"

    def level(self, reviews: Mapping[Permission, AccessReview]) -> AccessLevel:
        """Return how much of it these reviews allow."""
        allowed = {reviews[permission].allowed for permission in self.permissions}
        if allowed == {True}:
            return AccessLevel.YES
        if True in allowed:
            return AccessLevel.PARTLY
        return AccessLevel.UNKNOWN if None in allowed else AccessLevel.NO

    def works(self, reviews: Mapping[Permission, AccessReview]) -> bool:
        """Return whether these reviews allow all of it that is not optional."""
        return all(permission.optional or reviews[permission].allowed for permission in self.permissions)

    def denied(self, reviews: Mapping[Permission, AccessReview]) -> tuple[Permission, ...]:
        """Return the permissions that these reviews deny."""
        return tuple(right for right in self.permissions if reviews[right].allowed is False)


_WORKLOADS: Final = (
    *("jobs.batch", "cronjobs.batch", "daemonsets.apps", "deployments.apps", "replicasets.apps"),
    *("statefulsets.apps", "replicationcontrollers"),
)


def _permit(
    verbs: str, *targets: str, scope: PermissionScope = PermissionScope.NAMESPACE, optional: bool = False
) -> tuple[Permission, ...]:
    """Return a permission for each of the verbs (`get,list`) on each target (`pods`, `pods/exec`)."""
    permissions = []
    for target in targets:
        name, _, subresource = target.partition("/")
        resource, _, group = name.partition(".")
        permissions += [
            Permission(verb, resource, group, subresource, scope, optional) for verb in verbs.split(",")
        ]
    return tuple(permissions)


def _read(resource: str, scope: PermissionScope) -> tuple[Permission, ...]:
    """Return get, list and watch; polled lists can replace the watch."""
    return _permit("get,list", resource, scope=scope) + _permit("watch", resource, scope=scope, optional=True)


_NAMESPACE, _EVERYWHERE, _CLUSTER = PermissionScope
TIERS: Final = (
    Tier("namespace", "pods of one namespace", _read("pods", _NAMESPACE)),
    Tier("cluster", "ranks among all pods", _read("pods", _EVERYWHERE)),
    Tier(
        "nodes",
        "exact scores and distances",
        _read("nodes", _CLUSTER) + _permit("list", "nodes.metrics.k8s.io", scope=_CLUSTER, optional=True),
    ),
    Tier(
        "metrics",
        "ranks by memory usage",
        _permit("list", "pods.metrics.k8s.io") + _permit("list", "pods.metrics.k8s.io", scope=_EVERYWHERE),
    ),
    Tier(
        "history",
        "a Prometheus in the cluster",
        # The proxy is needed only in the namespace of Prometheus.
        _permit("list", "services", scope=_EVERYWHERE) + _permit("get", "services/proxy"),
    ),
    Tier("workloads", "deployments, jobs and so on", _permit("get", *_WORKLOADS)),
    Tier(
        "events",
        "what happened to a pod",
        # Events of nodes are in the namespace default.
        _permit("list", "events") + _permit("list", "events", scope=_EVERYWHERE, optional=True),
    ),
    Tier("logs", "logs of dead containers", _permit("get", "pods/log")),
    Tier(
        "policy",
        "limits and quotas for edits",
        _permit("list", "limitranges", "resourcequotas")
        + _permit(
            "list",
            "horizontalpodautoscalers.autoscaling",
            "verticalpodautoscalers.autoscaling.k8s.io",
            "poddisruptionbudgets.policy",
            optional=True,
        ),
    ),
    Tier("kubelet", "kubelet settings, RSS", _permit("get", "nodes/proxy", scope=_CLUSTER), caution="DANGER"),
    # Websockets begin with a GET; from 1.35 on the server checks both.
    Tier("exec", "verify", _permit("get,create", "pods/exec"), caution="DANGER"),
    Tier("write", "applying edits", _permit("patch", "pods/resize", *_WORKLOADS), caution="WRITES"),
)
"""The first tier is enough to begin with; the others enable more. Only suspended Jobs can be changed."""
PERMISSIONS: Final = tuple(permission for tier in TIERS for permission in tier.permissions)
