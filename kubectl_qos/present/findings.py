"""Verdicts on a change in words: one line each, with what to do next; the same for both shells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from kubectl_qos.edit.findings import Finding, FindingCode, Severity
from kubectl_qos.k8s.managers import Manager, ManagerKind
from kubectl_qos.k8s.quota import QuotaCharge
from kubectl_qos.present.diff import EffectSection
from kubectl_qos.present.format import binary, escape
from kubectl_qos.qos.resize import ResizeStatus


def finding_line(finding: Finding) -> str:
    """A verdict as one line: `LimitRange caps: refuses this: …`."""
    return f"{escape(finding.subject)}: {finding_sentence(finding)}"


def finding_sentence(finding: Finding) -> str:
    """What a verdict says of its subject, and what to do next."""
    return _WORDED[finding.topic](escape(finding.text), finding.facts)


def finding_lines(findings: Iterable[Finding], *, beside_preview: bool = True) -> list[str]:
    """The lines of verdicts; beside a preview without those that it shows already."""
    return [finding_line(one) for one in findings if not (beside_preview and one.in_preview)]


def findings_section(findings: Iterable[Finding], *, beside_preview: bool = True) -> EffectSection | None:
    """The verdicts as a part of the preview, None where it shows all there is to say."""
    found = [one for one in findings if not (beside_preview and one.in_preview)]
    if not found:
        return None
    counts = [(weight, sum(1 for one in found if one.weight is weight)) for weight in Severity]
    answer = ", ".join(
        f"{count} {_COUNTED[weight]}{'' if count == 1 else 's'}" for weight, count in counts if count
    )
    warns = any(one.weight is not Severity.TELLS for one in found)
    return EffectSection("Verdicts", answer, sentences=tuple(map(finding_line, found)), warns=warns)


_COUNTED: Final = {Severity.REFUSES: "refusal", Severity.WARNS: "warning", Severity.TELLS: "note"}

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
    charges: tuple[QuotaCharge, ...] = facts["charges"]
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
    charge: QuotaCharge = facts["charge"]
    return f"lets it in: {escape(charge.resource)} would be {charge.used + charge.added} of {charge.hard}"


def _adds(_: str, facts: Facts) -> str:
    where = f"{facts['side']}.{escape(facts['resource'])} of container {escape(facts['container'])}"
    if facts["removed"]:
        return f"{where} does not go away: its default {facts['value']} takes the place; set a number instead"
    return f"sets {where} to {facts['value']}, its default; set a number where you want another"


def _changes_class(_: str, facts: Facts) -> str:
    return f"its defaults make new pods {facts['becomes']}, not {facts['asked']} as shown here"


def _manager(_: str, facts: Facts) -> str:
    manager: Manager = facts["keeper"]
    return _MANAGERS[manager.kind](manager)


def _flux(what: str, when: str) -> Callable[[Manager], str]:
    def worded(manager: Manager) -> str:
        namespace, _, name = escape(manager.name).partition("/")
        pause = f"; to pause it: flux suspend {what} {name} -n {namespace}" if name else ""
        return f"puts the old values back {when}: change them in its source too{pause}"

    return worded


def _helm(_: Manager) -> str:
    return "the next helm upgrade may put the chart's values back: change the values of the release too"


def _argo(_: Manager) -> str:
    return (
        "puts the old values back: within minutes where it heals itself, else at the next sync; "
        "change them in its source too, or turn auto-sync off first"
    )


def _operator(manager: Manager) -> str:
    what = escape(manager.name) or "its resource"
    return f"makes this object and is likely to put its own values back: change {what} instead"


def _applier(manager: Manager) -> str:
    return (
        f"owns {escape(manager.evidence)} by server-side apply; this takes it over, so its next apply sets "
        "the old value again or fails with a conflict: change it there too"
    )


def _client_applier(_: Manager) -> str:
    return "made this object: the next apply of the same file sets the old values again; change the file too"


def _autoscaler(manager: Manager) -> str:
    if manager.mode == "Initial":
        return "sets the requests of every new pod (mode Initial): only a running pod keeps what is set here"
    return (
        f"sets the requests of these pods itself (mode {escape(manager.mode)}) and will replace what is set "
        "here: change its resourcePolicy, or set its updateMode to Off"
    )


_MANAGERS: Final[Mapping[ManagerKind, Callable[[Manager], str]]] = {
    ManagerKind.ARGO_CD: _argo,
    ManagerKind.FLUX_KUSTOMIZATION: _flux("kustomization", "at its next reconciliation"),
    ManagerKind.FLUX_HELM_RELEASE: _flux("helmrelease", "at its next upgrade, sooner with drift detection"),
    ManagerKind.HELM: _helm,
    ManagerKind.OPERATOR: _operator,
    ManagerKind.APPLIER: _applier,
    ManagerKind.CLIENT_APPLIER: _client_applier,
    ManagerKind.VERTICAL_AUTOSCALER: _autoscaler,
}


_THEN: Final[Mapping[ResizeStatus, str]] = {
    ResizeStatus.DEFERRED: "it is tried again whenever room is freed",
    ResizeStatus.INFEASIBLE: "it will not happen on this node: undo it, or recreate the pod on another",
    ResizeStatus.ERROR: "it is tried again, until then the old limit stays",
}


def _not_done(text: str, facts: Facts) -> str:
    answer: ResizeStatus = facts["answer"]
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


_WORDED: Final[Mapping[FindingCode, Callable[[str, Facts], str]]] = {
    FindingCode.INVALID: _quoted("would refuse this: "),
    FindingCode.IMMUTABLE: _quoted("does not let this object be changed"),
    FindingCode.RESIZE_REFUSED: _quoted("would refuse this in place: ", "; new pods may still have it"),
    FindingCode.PRIORITY_REFUSED: _quoted("refuses this: ", "; leave spec.priority out of the manifest"),
    FindingCode.LIMIT_RANGE_REFUSES: _quoted("refuses this: ", "; stay within it, or have it changed"),
    FindingCode.LIMIT_RANGE_ADDS: _adds,
    FindingCode.LIMIT_RANGE_CHANGES_CLASS: _changes_class,
    FindingCode.QUOTA_REFUSES: _quoted(
        "refuses this: ", "; ask for less, free some, or have the quota raised"
    ),
    FindingCode.QUOTA_COUNTS: _counts,
    FindingCode.NEW_PODS_REFUSED: _new_pods_refused,
    FindingCode.ROLLOUT_STALLS: _stalls,
    FindingCode.MANAGER: _manager,
    FindingCode.RESIZE_NOT_DONE: _not_done,
    FindingCode.WEIGHT_DROPS: _quoted(
        "has no CPU request of its own: this resize leaves it the least cpu.weight (1) until it restarts, "
        "so it starves when the CPU is busy; give it a request"
    ),
    FindingCode.NO_ROOM_FOR_NEW_POD: _no_room,
    FindingCode.LIMIT_BELOW_USAGE: _below,
    FindingCode.LIMIT_NEAR_USAGE: _near,
    FindingCode.REQUEST_BELOW_USAGE: _request,
    FindingCode.NODE_CRITICAL: _quoted(
        "oom_score_adj stays -997 and eviction spares the pod, whatever it requests"
    ),
    FindingCode.LOW_PRIORITY: _low,
    FindingCode.PRIORITY_UNKNOWN: _unknown_priority,
}
