"""The rights that the program can use, tier by tier: one table, from which everything about them follows.

`kubectl qos can-i` asks for them, docs/rbac grants them, docs/rights.md lists them. Not here: asking a
server (cluster/rights.py), the words and tables (present/rights.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final


class Where(Enum):
    """Where a right holds."""

    NAMESPACE = "one namespace"
    EVERYWHERE = "all namespaces"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class Right:
    """One verb on one resource; without an optional one its tier still works, slower or with less to say."""

    verb: str
    resource: str
    group: str = ""
    subresource: str = ""
    where: Where = Where.NAMESPACE
    optional: bool = False

    @property
    def target(self) -> str:
        """The resource as kubectl names it: `pods.metrics.k8s.io`, `nodes/proxy`."""
        name = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{name}/{self.subresource}" if self.subresource else name

    def namespace(self, asked: str | None) -> str | None:
        """The namespace that it is about where a person asks about this one; None for all and for none."""
        return asked if self.where is Where.NAMESPACE else None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a server says of a right, and why if it says that; `allowed` is None where it did not say."""

    allowed: bool | None
    reason: str = ""


class Granted(Enum):
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
    rights: tuple[Right, ...]
    caution: str = ""

    @property
    def role(self) -> str:
        """The ClusterRole that grants it."""
        return f"kubectl-qos-{self.name}"

    @property
    def file(self) -> str:
        """The manifest of that role."""
        return f"docs/rbac/{self.name}.yaml"

    def granted(self, verdicts: Mapping[Right, Verdict]) -> Granted:
        """How much of it these verdicts grant."""
        allowed = {verdicts[right].allowed for right in self.rights}
        if allowed == {True}:
            return Granted.YES
        if True in allowed:
            return Granted.PARTLY
        return Granted.UNKNOWN if None in allowed else Granted.NO

    def works(self, verdicts: Mapping[Right, Verdict]) -> bool:
        """Whether these verdicts grant all of it that is not optional."""
        return all(right.optional or verdicts[right].allowed for right in self.rights)

    def denied(self, verdicts: Mapping[Right, Verdict]) -> tuple[Right, ...]:
        """The rights that these verdicts deny."""
        return tuple(right for right in self.rights if verdicts[right].allowed is False)


def _read(resource: str, where: Where) -> tuple[Right, ...]:
    """Get and list, and a watch in whose place lists can be asked for again."""
    return (
        Right("get", resource, where=where),
        Right("list", resource, where=where),
        Right("watch", resource, where=where, optional=True),
    )


_APPS: Final = ("daemonsets", "deployments", "replicasets", "statefulsets")

TIERS: Final = (
    Tier("namespace", "pods of one namespace", _read("pods", Where.NAMESPACE)),
    Tier("cluster", "ranks among all pods", _read("pods", Where.EVERYWHERE)),
    Tier("nodes", "exact oom_score_adj", _read("nodes", Where.CLUSTER)),
    Tier(
        "metrics",
        "ranks by memory usage",
        (
            Right("list", "pods", "metrics.k8s.io"),
            Right("list", "pods", "metrics.k8s.io", where=Where.EVERYWHERE),
        ),
    ),
    Tier(
        "workloads",
        "deployments, jobs and so on",
        (
            *(Right("get", name, "batch") for name in ("jobs", "cronjobs")),
            *(Right("get", name, "apps") for name in _APPS),
            Right("get", "replicationcontrollers"),
        ),
    ),
    Tier(
        "events",
        "what happened to a pod",
        (
            Right("list", "events"),
            # Those of nodes are in the namespace default.
            Right("list", "events", where=Where.EVERYWHERE, optional=True),
        ),
    ),
    Tier(
        "policy",
        "limits and quotas for edits",
        (
            Right("list", "limitranges"),
            Right("list", "resourcequotas"),
            Right("list", "verticalpodautoscalers", "autoscaling.k8s.io", optional=True),
        ),
    ),
    Tier(
        "kubelet",
        "kubelet settings, RSS",
        (Right("get", "nodes", subresource="proxy", where=Where.CLUSTER),),
        caution="DANGER",
    ),
    Tier(
        "exec",
        "verify",
        (
            # Websockets begin with a GET; from 1.35 on the server asks for both.
            Right("get", "pods", subresource="exec"),
            Right("create", "pods", subresource="exec"),
        ),
        caution="DANGER",
    ),
    Tier(
        "write",
        "landing edits",
        (
            Right("patch", "pods", subresource="resize"),
            Right("patch", "cronjobs", "batch"),
            *(Right("patch", name, "apps") for name in _APPS),
            Right("patch", "replicationcontrollers"),
        ),
        caution="WRITES",
    ),
)
"""Each tier gives more; the first alone is enough to begin with. The template of a Job cannot be changed."""
