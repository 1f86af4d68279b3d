"""What the flags of `kubectl qos set` ask for, and the edits that this is of one pod or workload."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from kubectl_qos.cli.targets import Target, parse_targets, reference
from kubectl_qos.edit.edits import (
    POD_LEVEL,
    Amount,
    Edit,
    Side,
    apply_edits,
    format_amounts,
    parse_amounts,
    select_containers,
)
from kubectl_qos.edit.goals import Goal, reach_class
from kubectl_qos.errors import InputError, UsageError
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.releases import Gate
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.present.findings import obstacle_remedy, obstacle_sentence
from kubectl_qos.present.reasons import step_sentence
from kubectl_qos.qos.qos_class import SPEC_RESOURCES, QosClass

_GOALS = ("to", "outlive", "rank_below")


@dataclass(frozen=True, slots=True)
class SetOptions:
    """What the flags ask for, whatever the pod: amounts, and at most one of the goals."""

    amounts: tuple[tuple[Side, Amount], ...]
    patterns: tuple[str, ...]
    pod_level: bool
    target: QosClass | None = None
    outlived: Target | None = None
    rank: int | None = None

    @property
    def has_goal(self) -> bool:
        """Whether the edits have to be found."""
        return self.target is not None or self.outlived is not None or self.rank is not None


def parse_set_options(options: argparse.Namespace) -> SetOptions:
    """What the flags ask for. Raises UsageError where that makes no wish."""
    amounts = tuple(
        (side, amount)
        for side in Side
        for text in [",".join(getattr(options, side.value, []))]
        if text or hasattr(options, side.value)
        for amount in parse_amounts(text, f"--{side.value}")
    )
    patterns = tuple(getattr(options, "containers", []))
    pod_level = getattr(options, "pod_level", False)
    goals = [name for name in _GOALS if getattr(options, name, None) is not None]
    if len(goals) > 1:
        flags = " and ".join(f"--{name.replace('_', '-')}" for name in goals)
        raise UsageError(f"{flags} are two goals", hint="ask for one at a time")
    if not amounts and not goals:
        raise UsageError(
            "you must specify an update to requests or limits (in the form of --requests/--limits)",
            hint="--to guaranteed finds the values of a class by itself, --outlive pod/web-1 those of a rank",
        )
    if patterns and pod_level:
        raise UsageError(
            "--pod-level changes the pod's own resources, -c those of containers: give one of them"
        )
    if not amounts and (patterns or pod_level):
        flag = "-c" if patterns else "--pod-level"
        raise UsageError(
            f"{flag} says what --requests and --limits change;"
            + (
                " the class of --to is that of the whole pod"
                if goals == ["to"]
                else " a kill rank is the whole pod's"
            )
        )
    to = getattr(options, "to", None)
    target = next((one for one in QosClass if one.value.lower() == to), None)
    rank = getattr(options, "rank_below", None)
    return SetOptions(
        amounts, patterns, pod_level, target, _outlived(getattr(options, "outlive", None)), rank
    )


def dry_run(options: argparse.Namespace) -> str:
    """`client` or `server`, empty where it is done for real."""
    found: str = getattr(options, "dry_run", "none")
    return "" if found == "none" else found


def _outlived(text: str | None) -> Target | None:
    if text is None:
        return None
    found = parse_targets([text if "/" in text else f"pod/{text}"])[0]
    if found.kind != "Pod":
        raise UsageError(
            f"--outlive {text}: the kernel kills pods, not what makes them",
            hint="name a pod of the same node",
        )
    return found


def build_edits(wish: SetOptions, pod: Pod, snapshot: Snapshot) -> list[Edit]:
    """The edits of the flags, and those towards the goal. Raises InputError."""
    setup = snapshot.setup(pod.node_name)
    owners: list[str] = []
    if wish.pod_level:
        if not setup.release.enabled(Gate.POD_LEVEL_RESOURCES):
            raise InputError(
                f"{reference(pod)}: Kubernetes {setup.release} has no pod-level resources here",
                hint="leave --pod-level out, or say --feature-gates PodLevelResources=true if it is on",
            )
        owners = [POD_LEVEL]
    elif wish.amounts:
        owners = select_containers(pod, wish.patterns)
    given = [
        Edit(owner, side, amount.resource, amount.quantity)
        for owner in owners
        for side, amount in wish.amounts
    ]
    if not wish.has_goal:
        return given
    found, name = _goal(wish, apply_edits(pod, given), setup, snapshot)
    return [*given, *_towards(found, name, given, pod)]


def _goal(wish: SetOptions, pod: Pod, setup: NodeSetup, snapshot: Snapshot) -> tuple[Goal, str]:
    """What reaches the goal, and what a sentence calls it: `Guaranteed`, `outliving pod/web-1`."""
    if wish.target is not None:
        return reach_class(pod, wish.target, setup.release), wish.target.value
    from kubectl_qos.edit.rank_goals import outlive, rank_at_least

    neighbours = snapshot.by_node().get(pod.node_name, ())
    if wish.outlived is not None:
        other = _other(wish.outlived, pod, snapshot)
        return outlive(pod, other, setup, neighbours, snapshot.usage), f"outliving {reference(other)}"
    assert wish.rank is not None, "there is a goal"
    return rank_at_least(pod, wish.rank, setup, neighbours, snapshot.usage), f"rank {wish.rank}"


def _other(wanted: Target, pod: Pod, snapshot: Snapshot) -> Pod:
    """The pod to outlive, one of the same namespace sooner than another. Raises InputError."""
    named = [one for one in snapshot.pods if (one.kind, one.name) == (wanted.kind, wanted.name)]
    near = [one for one in named if one.namespace == pod.namespace] or named
    if not near:
        raise InputError(
            f'pods "{wanted.name}" not found beside {reference(pod)}',
            hint="the kernel of a node chooses among its own pods: kubectl qos top --node lists them",
        )
    if len(near) > 1:
        places = ", ".join(one.namespace for one in near)
        raise InputError(f"there is a {reference(near[0])} in several namespaces: {places}")
    if near[0] is pod:
        raise InputError(f"{reference(pod)} cannot outlive itself", hint="name another pod of its node")
    return near[0]


def _towards(found: Goal, name: str, given: Sequence[Edit], pod: Pod) -> Sequence[Edit]:
    """The edits that are left to make. Raises InputError where a person has to decide."""
    if found.obstacle is not None:
        raise InputError(
            f"{reference(pod)}: no memory request leads to {name}: {obstacle_sentence(found.obstacle)}",
            hint=obstacle_remedy(found.obstacle),
        )
    asked_for = {edit.target: edit for edit in given}
    for edit in found.edits:
        if edit.target in asked_for:
            owner = edit.owner or SPEC_RESOURCES
            kept, needed = (
                format_amounts([Amount(one.resource, one.quantity)]) for one in (asked_for[edit.target], edit)
            )
            raise InputError(
                f"{reference(pod)}: {owner}: --{edit.side.value} {kept} keeps it from {name},"
                f" which needs {needed}",
                hint="leave out one of the two",
            )
    if found.to_choose:
        raise InputError(
            f"{reference(pod)}: {name} needs more than what is there:"
            f" {'; '.join(map(step_sentence, found.to_choose))}",
            hint=f"give numbers together with --to {name.lower()}, by -c, --requests and --limits",
        )
    return found.edits
