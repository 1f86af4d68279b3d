"""How far a rollout gets where a quota has room for some of its pods only.

Old and new pods exist side by side for a while, and quotas count both. Sources:
pkg/controller/deployment/rolling.go (reconcileNewReplicaSet, reconcileOldReplicaSets),
pkg/controller/deployment/util/deployment_util.go (ResolveFenceposts),
pkg/controller/statefulset/stateful_set_control.go, pkg/controller/daemon/update.go. A new pod is taken to
become ready at once, and a refused one to be tried again once an old one is gone.

Not here: watching a rollout that is under way (progress.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.quota import QuotaPod, ResourceQuota, charges, matches, quota_usage
from kubectl_qos.k8s.releases import Release

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RolloutPlan:
    """How a workload replaces its pods: so many at once may be too many, and so many may be missing.

    `running` is how many old ones there are; a CronJob's pods replace none.
    """

    pods: int
    running: int
    surge: int
    missing: int


@dataclass(frozen=True, slots=True)
class RolloutReach:
    """Where it ends: new pods that were made, of so many, and old ones that are left."""

    made: int
    wanted: int
    left: int

    @property
    def stalls(self) -> bool:
        """Whether it ends before it is done."""
        return self.made < self.wanted


def rollout_plan(raw: Json) -> RolloutPlan:
    """How the workload would replace its pods, with the defaults that a server fills in."""
    spec: Json = raw.get("spec") or {}
    kind = raw.get("kind")
    if kind == "CronJob":
        job: Json = (spec.get("jobTemplate") or {}).get("spec") or {}
        pods = _whole(job.get("parallelism"), 1)
        return RolloutPlan(pods, 0, pods, 0)
    pods = _whole(spec.get("replicas"), 1)
    if kind == "DaemonSet":
        pods = _whole((raw.get("status") or {}).get("desiredNumberScheduled"), 1)
    strategy: Json = spec.get("strategy" if kind == "Deployment" else "updateStrategy") or {}
    rolling: Json = strategy.get("rollingUpdate") or {}
    if kind == "Deployment":
        if strategy.get("type") == "Recreate":
            return RolloutPlan(pods, pods, 0, pods)
        surge = _share(rolling.get("maxSurge", "25%"), pods, up=True)
        missing = _share(rolling.get("maxUnavailable", "25%"), pods, up=False)
        return RolloutPlan(pods, pods, surge, missing if surge or missing else 1)
    if kind == "StatefulSet":
        pods = max(0, pods - _whole(rolling.get("partition"), 0))
    surge = _share(rolling.get("maxSurge", 0), pods, up=True)
    missing = _share(rolling.get("maxUnavailable", 1), pods, up=True)
    return RolloutPlan(pods, pods, surge, missing if surge or missing else 1)


def reach(plan: RolloutPlan, fits: Callable[[int, int], bool]) -> RolloutReach:
    """How far it gets; `fits` says whether one more pod may be made beside so many new and old ones."""
    made, left = 0, plan.running
    while True:
        before = made, left
        while made < plan.pods and made + left < plan.pods + plan.surge and fits(made, left):
            made += 1
        while left and made + left > plan.pods - plan.missing:
            left -= 1
        if (made, left) == before:
            return RolloutReach(made, plan.pods, left)


def room_for(
    new: QuotaPod,
    old: QuotaPod,
    running: int,
    quotas: Sequence[ResourceQuota],
    release: Release,
    resource: str | None = None,
) -> Callable[[int, int], bool]:
    """Whether the quotas let one more new pod in, once so many are made and so many old ones are left.

    Args:
        new: a pod of the changed template.
        old: a pod as the template makes them now.
        running: how many of them the quotas count.
        quotas: of the namespace.
        release: the server's.
        resource: the only one to look at.
    """
    freed, added = quota_usage(old.pod, release), quota_usage(new.pod, release)
    concerned = [
        (charge, freed.get(charge.resource) if matches(quota, old) else None, added[charge.resource])
        for quota in quotas
        for charge in charges(new, [quota], release)
        if resource in {None, charge.resource}
    ]

    def fits(made: int, left: int) -> bool:
        return all(
            charge.used.nano + (made + 1) * one.nano - (running - left) * _nano(gone) <= charge.hard.nano
            for charge, gone, one in concerned
        )

    return fits


def _nano(amount: Quantity | None) -> int:
    return 0 if amount is None else amount.nano


def _whole(value: object, otherwise: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else otherwise


def _share(value: object, pods: int, *, up: bool) -> int:
    """A number, or a percentage of the pods rounded up or down (`GetScaledValueFromIntOrPercent`)."""
    if isinstance(value, str) and value.endswith("%") and value[:-1].isdecimal():
        product = int(value[:-1]) * pods
        return -(-product // 100) if up else product // 100
    return _whole(value, 0)
