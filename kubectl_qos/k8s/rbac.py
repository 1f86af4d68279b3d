"""The rights that the program can use, tier by tier: one table, from which everything about them follows.

`kubectl qos can-i` asks for them, docs/rbac grants them, docs/rights.md lists them. Not here: asking a
server (cluster/rights.py), the words and tables (present/rights.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final


class PermissionScope(Enum):
    """Where a right holds."""

    NAMESPACE = "one namespace"
    EVERYWHERE = "all namespaces"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class Permission:
    """One verb on one resource; without an optional one its tier still works, slower or with less to say."""

    verb: str
    resource: str
    group: str = ""
    subresource: str = ""
    where: PermissionScope = PermissionScope.NAMESPACE
    optional: bool = False

    @property
    def target(self) -> str:
        """The resource as kubectl names it: `pods.metrics.k8s.io`, `nodes/proxy`."""
        name = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{name}/{self.subresource}" if self.subresource else name

    def namespace(self, asked: str | None) -> str | None:
        """The namespace that it is about where a person asks about this one; None for all and for none."""
        return asked if self.where is PermissionScope.NAMESPACE else None


@dataclass(frozen=True, slots=True)
class AccessReview:
    """What a server says of a right, and why if it says that; `allowed` is None where it did not say."""

    allowed: bool | None
    reason: str = ""


class AccessLevel(Enum):
    """How much of a tier a person has."""

    YES = "yes"
    PARTLY = "partly"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Tier:
    """Rights that give something together; `caution` warns of granting them without a second thought."""

    name: str
    gives: str
    rights: tuple[Permission, ...]
    caution: str = ""

    @property
    def role(self) -> str:
        """The ClusterRole that grants it."""
        return f"kubectl-qos-{self.name}"

    @property
    def file(self) -> str:
        """The manifest of that role."""
        return f"docs/rbac/{self.name}.yaml"

    def granted(self, reviews: Mapping[Permission, AccessReview]) -> AccessLevel:
        """How much of it these verdicts grant."""
        allowed = {reviews[right].allowed for right in self.rights}
        if allowed == {True}:
            return AccessLevel.YES
        if True in allowed:
            return AccessLevel.PARTLY
        return AccessLevel.UNKNOWN if None in allowed else AccessLevel.NO

    def works(self, reviews: Mapping[Permission, AccessReview]) -> bool:
        """Whether these verdicts grant all of it that is not optional."""
        return all(right.optional or reviews[right].allowed for right in self.rights)

    def denied(self, reviews: Mapping[Permission, AccessReview]) -> tuple[Permission, ...]:
        """The rights that these verdicts deny."""
        return tuple(right for right in self.rights if reviews[right].allowed is False)


def _read(resource: str, where: PermissionScope) -> tuple[Permission, ...]:
    """Get and list, and a watch in whose place lists can be asked for again."""
    return (
        Permission("get", resource, where=where),
        Permission("list", resource, where=where),
        Permission("watch", resource, where=where, optional=True),
    )


_APPS: Final = ("daemonsets", "deployments", "replicasets", "statefulsets")

TIERS: Final = (
    Tier("namespace", "pods of one namespace", _read("pods", PermissionScope.NAMESPACE)),
    Tier("cluster", "ranks among all pods", _read("pods", PermissionScope.EVERYWHERE)),
    Tier("nodes", "exact oom_score_adj", _read("nodes", PermissionScope.CLUSTER)),
    Tier(
        "metrics",
        "ranks by memory usage",
        (
            Permission("list", "pods", "metrics.k8s.io"),
            Permission("list", "pods", "metrics.k8s.io", where=PermissionScope.EVERYWHERE),
        ),
    ),
    Tier(
        "workloads",
        "deployments, jobs and so on",
        (
            *(Permission("get", name, "batch") for name in ("jobs", "cronjobs")),
            *(Permission("get", name, "apps") for name in _APPS),
            Permission("get", "replicationcontrollers"),
        ),
    ),
    Tier(
        "events",
        "what happened to a pod",
        (
            Permission("list", "events"),
            # Those of nodes are in the namespace default.
            Permission("list", "events", where=PermissionScope.EVERYWHERE, optional=True),
        ),
    ),
    Tier(
        "policy",
        "limits and quotas for edits",
        (
            Permission("list", "limitranges"),
            Permission("list", "resourcequotas"),
            Permission("list", "verticalpodautoscalers", "autoscaling.k8s.io", optional=True),
        ),
    ),
    Tier(
        "kubelet",
        "kubelet settings, RSS",
        (Permission("get", "nodes", subresource="proxy", where=PermissionScope.CLUSTER),),
        caution="DANGER",
    ),
    Tier(
        "exec",
        "verify",
        (
            # Websockets begin with a GET; from 1.35 on the server asks for both.
            Permission("get", "pods", subresource="exec"),
            Permission("create", "pods", subresource="exec"),
        ),
        caution="DANGER",
    ),
    Tier(
        "write",
        "landing edits",
        (
            Permission("patch", "pods", subresource="resize"),
            Permission("patch", "cronjobs", "batch"),
            *(Permission("patch", name, "apps") for name in _APPS),
            Permission("patch", "replicationcontrollers"),
        ),
        caution="WRITES",
    ),
)
"""Each tier gives more; the first alone is enough to begin with. The template of a Job cannot be changed."""
