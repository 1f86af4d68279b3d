"""Findings on a change, and obstacles to a goal, in words: one line each, with what to do next."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from kubectl_qos.edit.findings import Finding, FindingCode, Severity
from kubectl_qos.edit.goals import Obstacle, ObstacleReason
from kubectl_qos.k8s.managers import Manager, ManagerKind, UtilizationTarget
from kubectl_qos.k8s.objects import MEMORY
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.quota import QuotaCharge
from kubectl_qos.present.format import binary, count, cpu, escape, percent
from kubectl_qos.present.output import Section, sentences
from kubectl_qos.qos.resize import ResizeOutcome, ResizeStatus


def findings_section(findings: Iterable[Finding]) -> Section | None:
    """Return the findings that the preview does not show, or None."""
    shown = [finding for finding in findings if not finding.in_preview]
    numbers = Counter(finding.severity for finding in shown)
    answer = ", ".join(count(numbers[level], level.value) for level in Severity if level in numbers)
    warns = bool(numbers.keys() - {Severity.NOTE})
    lines = sentences(*map(finding_line, shown))
    return Section("Findings", answer, lines, warns=warns) if shown else None


def finding_line(finding: Finding) -> str:
    """Return a finding as one line, with what to do next: `LimitRange caps: refuses this: …`."""
    return f"{escape(finding.subject)}: {finding_sentence(finding)}"


def finding_sentence(finding: Finding) -> str:
    """Return a finding without its subject."""
    text, facts, words = escape(finding.text), finding.facts, _SENTENCES[finding.code]
    return words.format(text=text, **facts) if isinstance(words, str) else words(text, facts)


Facts = Mapping[str, Any]


def _new_pods_refused(text: str, facts: Facts) -> str:
    if facts["kind"] in {"CronJob", "Job"}:
        return f"accepts the template, then refuses the pods of the next job: {text}"
    left = facts["left"]
    rest = f"{left} of {facts['total']} old pods keep running" if left else "no pod is left running"
    return f"accepts the template, then refuses every new pod, so that {rest}: {text}"


def _rollout_stalls(_: str, facts: Facts) -> str:
    charges: tuple[QuotaCharge, ...] = facts["charges"]
    why = ", ".join(
        f"each adds {escape(charge.resource)} {charge.added}, {charge.used} of {charge.hard} are used now"
        for charge in charges
    )
    what = "the next job" if facts["kind"] in {"CronJob", "Job"} else "the rollout"
    old = f", with {count(facts['left'], 'old pod')} left" if facts["left"] else ""
    return (
        f"{what} would stall after {facts['made']} of {facts['total']} new pods{old}: {why}; "
        "free some, request less, or have the quota raised"
    )


def _limit_range_adds(_: str, facts: Facts) -> str:
    where = f"{facts['side']}.{escape(facts['resource'])} of container {escape(facts['container'])}"
    if facts["removed"]:
        return f"{where} is not removed: its default {facts['value']} replaces it; set a number instead"
    return f"sets {where} to its default {facts['value']}; set a number if you want another"


_MANAGERS: Final[Mapping[ManagerKind, str]] = {
    ManagerKind.ARGO_CD: (
        "reverts the values, within minutes with self-heal, else at the next sync: change them in its source "
        "too, or turn auto-sync off first"
    ),
    ManagerKind.FLUX_KUSTOMIZATION: (
        "reverts the values at its next reconciliation: change them in its source too"
    ),
    ManagerKind.FLUX_HELM_RELEASE: (
        "reverts the values at its next upgrade, sooner with drift detection: change them in its source too"
    ),
    ManagerKind.HELM: (
        "the next helm upgrade may restore the chart's values: change the values of the release too"
    ),
    ManagerKind.OPERATOR: (
        "creates this object and will probably restore its own values: change {name} instead"
    ),
    ManagerKind.OLM: (
        "installed this operator and restores its own values: set spec.config.resources of its Subscription"
    ),
    ManagerKind.APPLIER: (
        "manages {evidence} by server-side apply; its next apply restores the old value "
        "or fails with a conflict: change it there too"
    ),
    ManagerKind.CLIENT_APPLIER: (
        "created this object: applying the same file again restores the old values; change the file too"
    ),
    ManagerKind.VERTICAL_AUTOSCALER: (
        "sets the requests of these pods (mode {mode}) and will overwrite these values: "
        "change its resourcePolicy, or set its updateMode to Off"
    ),
}
_FLUX: Final = {ManagerKind.FLUX_KUSTOMIZATION: "kustomization", ManagerKind.FLUX_HELM_RELEASE: "helmrelease"}


def _manager(_: str, facts: Facts) -> str:
    manager: Manager = facts["manager"]
    name, evidence, mode = map(escape, (manager.name, manager.evidence, manager.mode))
    if mode == "Initial":
        return "sets the requests of every new pod (mode Initial): only the running pod keeps these values"
    words = _MANAGERS[manager.kind].format(name=name or "its resource", evidence=evidence, mode=mode)
    namespace, _, name = name.partition("/")
    if manager.kind in _FLUX and name:
        words += f"; to pause it: flux suspend {_FLUX[manager.kind]} {name} -n {namespace}"
    return words


def manager_line(manager: Manager) -> str:
    """Say what a manager will do to other values: `VerticalPodAutoscaler api: sets the requests …`."""
    subject = f"{manager.kind.value} {escape(manager.name)}".rstrip()
    return f"{subject}: {_manager('', {'manager': manager})}"


_THEN: Final[Mapping[ResizeStatus, str]] = {
    ResizeStatus.DEFERRED: "it retries whenever resources are freed",
    ResizeStatus.INFEASIBLE: "it will not happen on this node: undo it, or recreate the pod on another",
    ResizeStatus.ERROR: "it retries; the old limit stays until then",
}


def answer_sentence(outcome: ResizeOutcome) -> str:
    """Return the kubelet's answer to a resize that it does not carry out at once, and what it does next."""
    return f"answers {outcome.answer.value}: {escape(outcome.message)}; {_THEN[outcome.answer]}"


def _no_room(_: str, facts: Facts) -> str:
    resources: tuple[str, ...] = facts["resources"]
    what = f"has too little {' and '.join(map(escape, resources))} left"
    if facts["bound"]:
        return (
            f"{what}, and the manifest names the node: its kubelet would refuse the pod "
            f"(OutOf{escape(resources[0])}); remove spec.nodeName"
        )
    return f"{what}: a new pod stays Pending unless it fits on another node"


def _limit_below_usage(_: str, facts: Facts) -> str:
    used, limit = binary(facts["used"]), binary(facts["limit"])
    now = f"uses {used} now, more than the new memory limit of {limit}"
    if not facts["restarts"]:
        return (
            f"{now}: the kubelet keeps the old limit until it uses less; choose a limit above {used}, "
            "or free memory first"
        )
    who = "a new pod" if facts["new_pod"] else "the restarted container"
    return f"{now}: {who} is OOM killed as soon as it uses that much again; choose a limit above {used}"


def _utilization(_: str, facts: Facts) -> str:
    target: UtilizationTarget = facts["target"]
    resource, is_memory = escape(target.resource), target.resource == MEMORY
    whose = f"container {escape(target.container)}" if target.container else "a pod"
    if facts["after"] is None:
        return f"can no longer measure {whose}: a container has no {resource} request"

    def at(request: Quantity | None) -> str:
        if request is None:
            return "unknown"
        if is_memory:
            return binary(request.value() * target.percent // 100)
        return cpu(request.milli_value() * target.percent // 100)

    when = "from now on, for this pod alone" if facts["alone"] else "once the pods are replaced"
    return (
        f"{when}: its target for {whose} is {at(facts['after'])} of {resource} instead of"
        f" {at(facts['before'])} ({target.percent}% of the request); if the average is above, it adds pods"
    )


def _budget(_: str, facts: Facts) -> str:
    allows = "how many disruptions it allows is unknown"
    if facts["allowed"] is not None:
        allows = f"allows {count(facts['allowed'], 'disruption')} now"
    others = "kubectl drain and other evictions respect it"
    if not facts["rollout"]:
        return f"{allows}: kubectl delete pod ignores the budget; {others}"
    missing = facts["missing"]
    away = f" and removes up to {count(missing, 'pod')} at a time" if missing else ""
    return f"{allows}: the rollout ignores the budget{away}; {others}, and have to wait"


_SENTENCES: Final[Mapping[FindingCode, str | Callable[[str, Facts], str]]] = {
    FindingCode.INVALID: "would refuse this: {text}",
    FindingCode.IMMUTABLE: "does not allow changing this object",
    FindingCode.RESIZE_REFUSED: "would refuse this in place: {text}; new pods may still have these values",
    FindingCode.PRIORITY_REFUSED: "refuses this: {text}; leave spec.priority out of the manifest",
    FindingCode.LIMIT_RANGE_REFUSES: "refuses this: {text}; stay within its bounds, or change them",
    FindingCode.LIMIT_RANGE_ADDS: _limit_range_adds,
    FindingCode.LIMIT_RANGE_CHANGES_CLASS: (
        "its defaults make new pods {becomes}, not {expected} as shown here"
    ),
    FindingCode.QUOTA_REFUSES: "refuses this: {text}; request less, free some, or have the quota raised",
    FindingCode.QUOTA_COUNTS: lambda _, facts: (
        f"allows it: {escape(facts['charge'].resource)} would be"
        f" {facts['charge'].used + facts['charge'].added} of {facts['charge'].hard}"
    ),
    FindingCode.NEW_PODS_REFUSED: _new_pods_refused,
    FindingCode.ROLLOUT_STALLS: _rollout_stalls,
    FindingCode.MANAGER: _manager,
    FindingCode.UTILIZATION: _utilization,
    FindingCode.DISRUPTION_BUDGET: _budget,
    FindingCode.RESIZE_NOT_DONE: lambda text, facts: answer_sentence(ResizeOutcome(facts["answer"], text)),
    FindingCode.POD_LIMIT_STAYS: lambda _, facts: (
        f"leaves the memory limit of the whole pod at {binary(facts['limit'])} while"
        f" {' and '.join(map(escape, facts['containers']))} does not run, so it is killed again"
        " (kubernetes#138760): resize it while it runs, or recreate the pod"
    ),
    FindingCode.WEIGHT_DROPS: (
        "has no CPU request: this resize drops its cpu.weight to 1 until it restarts, so it starves when the "
        "CPU is busy; set a request"
    ),
    FindingCode.NO_ROOM_FOR_NEW_POD: _no_room,
    FindingCode.LIMIT_BELOW_USAGE: _limit_below_usage,
    FindingCode.LIMIT_NEAR_USAGE: lambda _, facts: (
        f"uses {binary(facts['used'])} now, {percent(facts['used'], facts['limit'])} of the new memory"
        f" limit: {binary(facts['limit'] - facts['used'])} more and it is OOM killed"
    ),
    FindingCode.REQUEST_BELOW_USAGE: lambda _, facts: (
        f"the pod uses {binary(facts['used'])} now, more than the {binary(facts['request'])} it would"
        " request: under memory pressure such pods are evicted before those within their requests"
    ),
    FindingCode.LIMIT_BELOW_PEAK: lambda _, facts: (
        f"used {binary(facts['used'])} at most in {facts['over']}, more than the new memory limit of"
        f" {binary(facts['limit'])}: it is OOM killed once it needs that much again"
    ),
    FindingCode.REQUEST_BELOW_P99: lambda _, facts: (
        f"the pod used more than the {binary(facts['request'])} it would request in {facts['over']}:"
        f" {binary(facts['used'])} at P99; under memory pressure at such times it is evicted before those"
        " within their requests"
    ),
    FindingCode.NODE_CRITICAL: "neither its oom_score_adj nor its eviction depends on requests",
    FindingCode.RUNTIME_MAY_REFUSE: (
        "it or an NRI plugin may refuse a resize at pod level: the kubelet then keeps the old values"
    ),
    FindingCode.LIMIT_BELOW_CREATION: lambda _, facts: (
        f"its conmon and runc run inside the pod while a container is created and take about 20Mi of the"
        f" {binary(facts['limit'])} limit, so the pod may be OOM killed at its start; choose 32Mi or more"
    ),
}


def obstacle_sentence(obstacle: Obstacle) -> str:
    """Say what prevents a goal, with the numbers filled in."""
    return _OBSTACLES[obstacle.reason].format(
        needs=f"container {escape(obstacle.container)} needs an oom_score_adj of {obstacle.needed} or less",
        least=obstacle.least,
        ranked=obstacle.ranked,
    )


def obstacle_remedy(obstacle: Obstacle) -> str:
    """Say what to do instead, or return ""."""
    return _REMEDIES.get(obstacle.reason, "")


_OBSTACLES: Final[Mapping[ObstacleReason, str]] = {
    ObstacleReason.NO_CAPACITY: "the memory capacity of its node is unknown",
    ObstacleReason.NO_PROCESSES: "it has no processes on a node",
    ObstacleReason.NO_USAGE: "its memory usage is unknown, unlike that of other pods on the node",
    ObstacleReason.OTHER_NOT_THERE: "the two are not on the same node",
    ObstacleReason.OTHER_HAS_NO_PROCESSES: "the other pod has no processes on the node",
    ObstacleReason.TOO_FEW_PODS: "the last rank on its node is {ranked}",
    ObstacleReason.CRITICAL: "it is critical: its oom_score_adj is {least} whatever it requests",
    ObstacleReason.GUARANTEED: "it is Guaranteed: its oom_score_adj is {least} whatever it requests",
    ObstacleReason.BEYOND_BURSTABLE: "{needs}, but a Burstable container has at least {least}",
    ObstacleReason.RESTRICTED: "{needs}, but containerd's restrict_oom_score_adj keeps it at {least} or more",
    ObstacleReason.NOT_BY_REQUESTS: "its node uses allocated resources, not requests",
    ObstacleReason.BEST_EFFORT: "it is BestEffort: a request would change its class",
    ObstacleReason.STATIC: "a static pod is changed by its file on the node",
    ObstacleReason.NOT_SELECTED: "it is not among the selected pods",
    ObstacleReason.NO_ROOM: (
        "its node, or the node of another pod of its workload, has no room for the request"
    ),
    ObstacleReason.REPLICAS: (
        "its template has one value for all pods of the workload, and on one of their nodes that value has no"
        " room, overtakes a pod of higher priority or changes the class"
    ),
    ObstacleReason.ANOTHER_FIRST: (
        "a pod of higher priority, whose request cannot be raised enough, would be killed before it"
    ),
}

_REMEDIES: Final[Mapping[ObstacleReason, str]] = {
    ObstacleReason.NO_CAPACITY: "--node-memory 16Gi assumes one",
    ObstacleReason.NO_USAGE: "retry once it has been measured, or ignore usage with --usage none",
    ObstacleReason.OTHER_NOT_THERE: "name two pods of one node: its kernel chooses only among those",
    ObstacleReason.BEYOND_BURSTABLE: "Guaranteed pods have -997: set --class guaranteed",
    ObstacleReason.GUARANTEED: "only using less memory helps",
    ObstacleReason.CRITICAL: "only using less memory helps",
    ObstacleReason.NO_ROOM: "lower requests of other pods there, or move one away",
}
