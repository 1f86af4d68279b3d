"""Verdicts on a change in words: one line each, with what to do next; the same for both shells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from kubectl_qos.edit.verdict import Topic, Verdict, Weight
from kubectl_qos.k8s.keepers import Keeper, KeeperKind
from kubectl_qos.k8s.resource_quota import Charge
from kubectl_qos.present.amounts import binary, escape
from kubectl_qos.present.diff import Part
from kubectl_qos.qos.resize import Answer


def verdict_line(verdict: Verdict) -> str:
    """A verdict as one line: `LimitRange caps: refuses this: …`."""
    return f"{escape(verdict.subject)}: {verdict_sentence(verdict)}"


def verdict_sentence(verdict: Verdict) -> str:
    """What a verdict says of its subject, and what to do next."""
    return _WORDED[verdict.topic](escape(verdict.text), verdict.facts)


def verdict_lines(verdicts: Iterable[Verdict], *, beside_preview: bool = True) -> list[str]:
    """The lines of verdicts; beside a preview without those that it shows already."""
    return [verdict_line(one) for one in verdicts if not (beside_preview and one.in_preview)]


def verdict_part(verdicts: Iterable[Verdict], *, beside_preview: bool = True) -> Part | None:
    """The verdicts as a part of the preview, None where it shows all there is to say."""
    found = [one for one in verdicts if not (beside_preview and one.in_preview)]
    if not found:
        return None
    counts = [(weight, sum(1 for one in found if one.weight is weight)) for weight in Weight]
    answer = ", ".join(
        f"{count} {_COUNTED[weight]}{'' if count == 1 else 's'}" for weight, count in counts if count
    )
    warns = any(one.weight is not Weight.TELLS for one in found)
    return Part("Verdicts", answer, sentences=tuple(map(verdict_line, found)), warns=warns)


_COUNTED: Final = {Weight.REFUSES: "refusal", Weight.WARNS: "warning", Weight.TELLS: "note"}

Facts = Mapping[str, Any]


def _quoted(before: str, after: str = "") -> Callable[[str, Facts], str]:
    """The server's sentence with ours around it."""
    return lambda text, _: f"{before}{text}{after}"


def _new_pods_refused(text: str, facts: Facts) -> str:
    if facts["kind"] == "CronJob":
        return f"takes the template, then refuses the pods of the next job: {text}"
    left = facts["left"]
    then = f"{left} of {facts['wanted']} old pods keep running" if left else "no pod is left running"
    return f"takes the template, then refuses every new pod, so that {then}: {text}"


def _stalls(_: str, facts: Facts) -> str:
    charges: tuple[Charge, ...] = facts["charges"]
    why = ", ".join(
        f"each adds {escape(one.resource)} {one.added}, {one.used} of {one.hard} are used now"
        for one in charges
    )
    what = "the next job" if facts["kind"] == "CronJob" else "the rollout"
    left = facts["left"]
    old = f", with {left} old ones left" if left else ""
    how = "free some, ask for less, or have the quota raised"
    return f"{what} would stall after {facts['made']} of {facts['wanted']} new pods{old}: {why}; {how}"


def _counts(_: str, facts: Facts) -> str:
    charge: Charge = facts["charge"]
    return f"lets it in: {escape(charge.resource)} would be {charge.used + charge.added} of {charge.hard}"


def _adds(_: str, facts: Facts) -> str:
    where = f"{facts['side']}.{escape(facts['resource'])} of container {escape(facts['container'])}"
    if facts["removed"]:
        return f"{where} does not go away: its default {facts['value']} takes the place; set a number instead"
    return f"sets {where} to {facts['value']}, its default; set a number where you want another"


def _changes_class(_: str, facts: Facts) -> str:
    return f"its defaults make new pods {facts['becomes']}, not {facts['asked']} as shown here"


def _keeper(_: str, facts: Facts) -> str:
    keeper: Keeper = facts["keeper"]
    return _KEEPERS[keeper.kind](keeper)


def _flux(what: str, when: str) -> Callable[[Keeper], str]:
    def worded(keeper: Keeper) -> str:
        namespace, _, name = escape(keeper.name).partition("/")
        pause = f"; to pause it: flux suspend {what} {name} -n {namespace}" if name else ""
        return f"puts the old values back {when}: change them in its source too{pause}"

    return worded


def _helm(_: Keeper) -> str:
    return "the next helm upgrade may put the chart's values back: change the values of the release too"


def _argo(_: Keeper) -> str:
    return (
        "puts the old values back: within minutes where it heals itself, else at the next sync; "
        "change them in its source too, or turn auto-sync off first"
    )


def _operator(keeper: Keeper) -> str:
    what = escape(keeper.name) or "its resource"
    return f"makes this object and is likely to put its own values back: change {what} instead"


def _applier(keeper: Keeper) -> str:
    return (
        f"owns {escape(keeper.evidence)} by server-side apply; this takes it over, so its next apply sets "
        "the old value again or fails with a conflict: change it there too"
    )


def _client_applier(_: Keeper) -> str:
    return "made this object: the next apply of the same file sets the old values again; change the file too"


def _autoscaler(keeper: Keeper) -> str:
    if keeper.mode == "Initial":
        return "sets the requests of every new pod (mode Initial): only a running pod keeps what is set here"
    return (
        f"sets the requests of these pods itself (mode {escape(keeper.mode)}) and will replace what is set "
        "here: change its resourcePolicy, or set its updateMode to Off"
    )


_KEEPERS: Final[Mapping[KeeperKind, Callable[[Keeper], str]]] = {
    KeeperKind.ARGO_CD: _argo,
    KeeperKind.FLUX_KUSTOMIZATION: _flux("kustomization", "at its next reconciliation"),
    KeeperKind.FLUX_HELM_RELEASE: _flux("helmrelease", "at its next upgrade, sooner with drift detection"),
    KeeperKind.HELM: _helm,
    KeeperKind.OPERATOR: _operator,
    KeeperKind.APPLIER: _applier,
    KeeperKind.CLIENT_APPLIER: _client_applier,
    KeeperKind.VERTICAL_AUTOSCALER: _autoscaler,
}


_THEN: Final[Mapping[Answer, str]] = {
    Answer.DEFERRED: "it is tried again whenever room is freed",
    Answer.INFEASIBLE: "it will not happen on this node: take it back, or have the pod made anew elsewhere",
    Answer.ERROR: "it is tried again, until then the old limit stays",
}


def _not_done(text: str, facts: Facts) -> str:
    answer: Answer = facts["answer"]
    return f"answers {answer.value}: {text}; {_THEN[answer]}"


def _no_room(_: str, facts: Facts) -> str:
    resources: tuple[str, ...] = facts["resources"]
    what = " and ".join(map(escape, resources))
    if facts["bound"]:
        return (
            f"has not enough {what} left, and the manifest names it: its kubelet would refuse the pod "
            f"(OutOf{escape(resources[0])}); take spec.nodeName out of it"
        )
    return f"has not enough {what} left: a new pod stays Pending unless another node has"


def _below(_: str, facts: Facts) -> str:
    used, limit = binary(facts["used"]), binary(facts["limit"])
    now = f"uses {used} now, more than the new memory limit of {limit}"
    if not facts["restarts"]:
        return (
            f"{now}: the kubelet leaves the old limit in force until it uses less; choose a limit "
            f"above {used}, or free memory first"
        )
    who = "a new pod" if facts["new_pod"] else "the restarted container"
    return f"{now}: {who} is OOM killed as soon as it needs as much again; choose a limit above {used}"


def _near(_: str, facts: Facts) -> str:
    used, limit = facts["used"], facts["limit"]
    return (
        f"uses {binary(used)} now, {used * 100 // limit}% of the new memory limit: "
        f"{binary(limit - used)} more and it is OOM killed"
    )


def _request(_: str, facts: Facts) -> str:
    return (
        f"the pod uses {binary(facts['used'])} now, more than the {binary(facts['request'])} it would "
        "request: under memory pressure such pods are evicted before those within their requests"
    )


def _low(_: str, facts: Facts) -> str:
    lowest = ", the lowest on its node" if facts["lowest"] else ""
    return (
        f"priority {facts['priority']}{lowest}: preempted first, and evicted first of the pods that use more "
        "than they request, whatever the class; only another PriorityClass changes that"
    )


def _unknown_priority(_: str, __: Facts) -> str:
    return "its number is not known here: eviction looks at it once a pod uses more than it requests"


_WORDED: Final[Mapping[Topic, Callable[[str, Facts], str]]] = {
    Topic.INVALID: _quoted("would refuse this: "),
    Topic.IMMUTABLE: _quoted("does not let this object be changed"),
    Topic.RESIZE_REFUSED: _quoted("would refuse this in place: ", "; new pods may still have it"),
    Topic.PRIORITY_REFUSED: _quoted("refuses this: ", "; leave spec.priority out of the manifest"),
    Topic.LIMIT_RANGE_REFUSES: _quoted("refuses this: ", "; stay within it, or have it changed"),
    Topic.LIMIT_RANGE_ADDS: _adds,
    Topic.LIMIT_RANGE_CHANGES_CLASS: _changes_class,
    Topic.QUOTA_REFUSES: _quoted("refuses this: ", "; ask for less, free some, or have the quota raised"),
    Topic.QUOTA_COUNTS: _counts,
    Topic.NEW_PODS_REFUSED: _new_pods_refused,
    Topic.ROLLOUT_STALLS: _stalls,
    Topic.KEEPER: _keeper,
    Topic.RESIZE_NOT_DONE: _not_done,
    Topic.WEIGHT_DROPS: _quoted(
        "has no CPU request of its own: this resize leaves it the least cpu.weight (1) until it restarts, "
        "so it starves when the CPU is busy; give it a request"
    ),
    Topic.NO_ROOM_FOR_NEW_POD: _no_room,
    Topic.LIMIT_BELOW_USAGE: _below,
    Topic.LIMIT_NEAR_USAGE: _near,
    Topic.REQUEST_BELOW_USAGE: _request,
    Topic.NODE_CRITICAL: _quoted(
        "oom_score_adj stays -997 and eviction spares the pod, whatever it requests"
    ),
    Topic.LOW_PRIORITY: _low,
    Topic.PRIORITY_UNKNOWN: _unknown_priority,
}
