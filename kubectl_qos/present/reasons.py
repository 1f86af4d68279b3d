"""Sentences for reasons (the values behind numbers), steps, classes, flags and ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kubectl_qos.k8s.allocation import RESIZE_PENDING, low_pod_limit, resize_condition
from kubectl_qos.k8s.kubelet import Node
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.quantity import Quantity, truncating_div
from kubectl_qos.k8s.usage import ContainerUsage, PodUsage, UsageOrigin
from kubectl_qos.present.format import binary, cpu, escape, full_name, psi_text, quantity_text
from kubectl_qos.qos.cgroup.values import MIN_QUOTA_US
from kubectl_qos.qos.oom_score import Kernel, badness, kernel_formula
from kubectl_qos.qos.qos_class import ClassStep, ClassStepKind, QosClass
from kubectl_qos.qos.ranking import NEAR_LIMIT_PERCENT, Basis, Flag, has_processes
from kubectl_qos.qos.reason import Reason, Rule

if TYPE_CHECKING:
    from kubectl_qos.analysis.pod_table import PodRow, PodRows, RankedNode
    from kubectl_qos.qos.prediction import Assumption, Prediction

Inputs = Mapping[str, Any]


class ClassSign(NamedTuple):
    """How a class looks; colour is never the only sign. `token` is a theme colour, not a colour."""

    letter: str
    glyph: str
    token: str


CLASSES: Final = {
    QosClass.GUARANTEED: ClassSign("G", "●", "success"),
    QosClass.BURSTABLE: ClassSign("B", "◐", "calm"),
    QosClass.BEST_EFFORT: ClassSign("E", "○", "warning"),
}

FLAG_MEANINGS: Final = {
    Flag.CRITICAL: "system-node-critical: neither class nor requests decide its oom_score_adj",
    Flag.PRIORITY: "killed before a pod of lower priority",
    Flag.NEAR_LIMIT: f"at {NEAR_LIMIT_PERCENT}% of a memory limit or above",
    Flag.OVER_REQUEST: "uses more than it requests",
    Flag.RESIZING: "a resize has not taken effect yet",
    Flag.STATIC: "comes from a file on its node",
    Flag.CLASS_DIFFERS: "the stored class differs from the spec's",
}


def sentence(reason: Reason) -> str:
    """Return a reason as one sentence, without its children."""
    words, inputs, result = _SENTENCES[reason.rule], reason.inputs, reason.result
    return words.format(result=result, **inputs) if isinstance(words, str) else words(inputs, result)


def class_rule(qos: QosClass) -> str:
    """Say which pods have a class."""
    return sentence(Reason(Rule[f"CLASS_{qos.name}"], qos))


def class_sentence(prediction: Prediction) -> str:
    """Return a pod's class with its oom_score_adj, if known: `Burstable, oom_score_adj 938`."""
    bounds = [bound for container in prediction.containers for bound in container.oom_score_adj_range or ()]
    if not bounds:
        return prediction.qos_class.value
    low, high = min(bounds), max(bounds)
    adj = str(low) if low == high else f"{low} to {high}"
    why = ", as system-node-critical" if prediction.node_critical else ""
    return f"{prediction.qos_class.value}, oom_score_adj {adj}{why}"


def adj_formula(request: str = "request", capacity: str = "capacity") -> str:
    """Return how the kubelet computes the oom_score_adj of a Burstable container (`burstable_adj`)."""
    return f"1000 - 1000 × {request} / {capacity}"


def formula(reason: Reason) -> str:
    """Return an oom_score_adj with its numbers filled in: `1000 - 1000 x 1Gi / 16Gi = 938`."""
    text = sentence(reason)
    if reason.rule is Rule.ADJ_BURSTABLE:
        inputs: Inputs = reason.inputs
        request = binary(inputs["request"])
        if inputs["share"]:
            request = f"({request} + {binary(inputs['share'])} of the pod's request)"
        text = f"{adj_formula(request, binary(inputs['capacity']))} = {inputs['raw']}"
    for child in reason.children:
        if child.rule is not Rule.ADJ_POD_LEVEL_SHARE:
            text += f", {sentence(child)}"
    return text


def score_formula(used: ContainerUsage, adj: int, node: Node) -> str:
    """Return an oom_score with its numbers filled in, as oom_badness and /proc/PID/oom_score compute it.

    `memory 1930Mi (494080 pages) + 969 x 4194 = 4558066, 1086/1000 of 4194304 pages; (1000 + 1086) x 2 / 3`:
    every division drops its fraction, also that of the node's pages by 1000.
    """
    page, kernel = node.page_size_bytes, kernel_formula(node.kernel)
    total = ((node.memory_capacity_bytes or 0) + node.swap_capacity_bytes) // page
    memory = used.scored_bytes
    points = badness(memory // page, adj, total, kernel)
    share = truncating_div(points * 1000, total)
    text = f"memory {binary(memory)} ({memory // page} pages)"
    text += (
        f" {'-' if adj < 0 else '+'} {abs(adj)} × {total // 1000} = {points}, {share}/1000 of {total} pages"
    )
    if kernel is not Kernel.SIGNED:
        return text
    return f"{text}; (1000 {'-' if share < 0 else '+'} {abs(share)}) × 2 / 3"


def class_lacks(reason: Reason) -> list[str]:
    """Return what a pod lacks for Guaranteed, a line for each container and resource."""
    lines = []
    for child in reason.children:
        lines += [sentence(child)] if child.rule in _LACKS else class_lacks(child)
    return lines


def _exact(quantity: Quantity | None, origin: str) -> str:
    """Return a quantity as it must be written, with its size if that is plain bytes."""
    text = quantity_text(quantity)
    return f"{quantity} ({origin})" if text == str(quantity) else f"{quantity} ({origin}, {text})"


def step_sentence(step: ClassStep) -> str:
    """Return one step towards a class as an instruction."""
    where = escape(step.owner)
    if step.kind is ClassStepKind.SET_LIMIT:
        return f"{where}: set limits.{step.resource} to {_exact(step.value, 'its request')}"
    if step.kind is ClassStepKind.SET_REQUEST:
        return f"{where}: set requests.{step.resource} to {_exact(step.value, 'its limit')}"
    if step.kind is ClassStepKind.CHOOSE_LIMIT:
        return f"{where}: set limits.{step.resource} to a number of your choice"
    if step.kind is ClassStepKind.REMOVE_ALL:
        return f"{where}: remove every cpu and memory request and limit"
    if step.kind is ClassStepKind.ADD_ANY_REQUEST:
        return f"add a cpu or memory request or limit to {where or 'any container'}"
    return "make any cpu or memory request smaller than its limit, or remove a limit"


def assumption_sentence(assumption: Assumption) -> str:
    """Return an assumed value: `cgroup v2`, `no swap`."""
    name, value = assumption.name, assumption.value
    words = _ASSUMPTIONS.get(name)
    text = words(value) if words is not None else f"{name.replace('_', ' ')} {value}"
    basis = escape(assumption.basis)
    if name == "oci_runtime" and basis.startswith("RuntimeClass "):
        basis += (
            f", else --assume ociRuntime.{basis.partition(' ')[2]}={str(value).partition(' ')[0]}-VERSION"
        )
    return f"{text} (from {basis})" if basis else text


def _owner(inputs: Inputs) -> str:
    owner = escape(str(inputs["owner"]))
    return "spec.resources" if owner == "pod" else f"container {owner}"


def _whose(inputs: Inputs) -> str:
    return "" if inputs.get("own", True) else "the pod's "


def _cpu_weight(inputs: Inputs, result: object) -> str:
    """Return the request with its shares, and the curve that turns them into the weight of cgroup v2."""
    milli, shares = inputs["cpu_milli"], inputs["shares"]
    request = f"cpu request {cpu(milli)}" if milli else "no cpu request"
    if inputs.get("limit_milli"):
        request += f", so the cpu limit {cpu(inputs['limit_milli'])} counts"
    curve = "" if result == str(shares) else f" on the {inputs['curve']} curve"
    return f"{request}: {shares} shares{curve}"


def _cpu_quota(inputs: Inputs, result: object) -> str:
    """Return the limit, and what changed the quota (`1000 100000`, or `1000` on cgroup v1)."""
    milli, period = inputs["cpu_milli"], inputs["period_us"]
    text = f"{_whose(inputs)}cpu limit {cpu(milli)} per {period // 1000} ms"
    exact, written = milli * period // 1000, int(str(result).split()[0])
    if exact < MIN_QUOTA_US:
        return f"{text}, raised to the minimum of {MIN_QUOTA_US // 1000} ms"
    return f"{text}, rounded up to whole percents by systemd" if written > exact else text


def _no_limit(what: str, inputs: Inputs, limit: object) -> str:
    if inputs.get("declared") is False and limit:
        return f"not every container has a {what} limit"
    return f"no {what} limit"


def _memory_limit(inputs: Inputs, result: object) -> str:
    text = f"{_whose(inputs)}memory limit {binary(inputs['limit'])}"
    if str(result) != str(inputs["limit"]):
        text += f", in whole pages of {binary(inputs['page'])}"
    return text


def _memory_high(inputs: Inputs, _: object) -> str:
    """Return how the value is computed; without a memory limit, the limit of all pods counts."""
    base, upper, factor = inputs["base"], binary(inputs["upper"]), inputs["factor"]
    text = f"{binary(base)} + {factor} × ({upper} - {binary(base)})" if base else f"{factor} × {upper}"
    text = f"MemoryQoS throttles above {text}"
    return text if inputs["limit"] else f"{text}, {upper} being the limit of all pods"


def _stored(inputs: Inputs, result: object) -> str:
    text = f"status.qosClass says {result}"
    if inputs["stored"] == inputs["computed"]:
        return text
    return f"{text}, though the spec computes {inputs['computed']}"


_LACKS: Final = frozenset({Rule.LACKS_LIMIT, Rule.REQUEST_DIFFERS, Rule.REQUEST_ZERO})

_SENTENCES: Final[Mapping[Rule, str | Callable[[Inputs, object], str]]] = {
    Rule.CLASS_BEST_EFFORT: "no container requests or limits cpu or memory; 0 counts as none",
    Rule.CLASS_BURSTABLE: "requests or limits are set, but not equal ones for every container",
    Rule.CLASS_GUARANTEED: "every container has cpu and memory limits, and equal requests",
    Rule.CLASS_POD_LEVEL: "spec.resources decides; the containers do not count",
    Rule.ADJ_CRITICAL: "before kubelet 1.22 all critical pods get {result}",
    Rule.ADJ_NODE_CRITICAL: "system-node-critical pods get {result}",
    Rule.ADJ_GUARANTEED: "Guaranteed pods get {result}",
    Rule.ADJ_BEST_EFFORT: "BestEffort pods get {result}",
    Rule.ADJ_SIDECAR_FLOOR: "a sidecar gets no more than the app containers: {result}",
    Rule.ADJ_RESTRICTED: "raised to {result}, containerd's own value: its restrict_oom_score_adj is on",
    Rule.ADJ_CLAMPED_LOW: "raised to {result}, the minimum of Burstable containers",
    Rule.ADJ_BELOW_BEST_EFFORT: "lowered to {result}, to stay below BestEffort's 1000",
    Rule.CPU_EXCLUSIVE: "has exclusive CPUs, so no quota",
    Rule.MEMORY_HIGH: _memory_high,
    Rule.MEMORY_OOM_GROUP: "the kernel kills all processes of the container together",
    Rule.SWAP_OF_SCOPE: "memory and swap together, as crun tells systemd; the cgroup below it decides",
    Rule.SWAP_NONE: "no swap",
    Rule.SWAP_UNLIMITED: "UnlimitedSwap: as much swap as the node has",
    Rule.HUGEPAGES: "hugepages requested, 0 by default",
    Rule.CLASS_STORED: _stored,
    Rule.LACKS_LIMIT: lambda inputs, _: f"{_owner(inputs)} has no {inputs['resource']} limit",
    Rule.REQUEST_DIFFERS: lambda inputs, _: (
        f"{_owner(inputs)} has {inputs['resource']} request"
        f" {quantity_text(inputs['request'])} and limit {quantity_text(inputs['limit'])}"
    ),
    Rule.REQUEST_ZERO: lambda inputs, _: (
        f"{_owner(inputs)} has an explicit {inputs['resource']} request of zero, which counts as none"
    ),
    Rule.ADJ_BURSTABLE: lambda inputs, result: (
        f"{adj_formula()}, request {binary(inputs['request'])} of {binary(inputs['capacity'])} gives {result}"
    ),
    Rule.ADJ_POD_LEVEL_SHARE: lambda inputs, _: f"plus {binary(inputs['share'])} of the pod-level request",
    Rule.CPU_WEIGHT: _cpu_weight,
    Rule.CPU_QUOTA: _cpu_quota,
    Rule.CPU_PERIOD: "the quota is for each {result} µs",
    Rule.CPU_UNLIMITED: lambda inputs, _: (
        _no_limit("cpu", inputs, inputs["cpu_milli"])
        if inputs["enforced"]
        else "cpuCFSQuota is off on this node"
    ),
    Rule.MEMORY_LIMIT: _memory_limit,
    Rule.MEMORY_UNLIMITED: lambda inputs, _: _no_limit("memory", inputs, inputs["limit"]),
    Rule.MEMORY_PROTECTION: lambda inputs, result: (
        "MemoryQoS protects nothing here"
        if result == "0"
        else f"MemoryQoS protects the request of {binary(inputs['request'])}"
    ),
    Rule.SWAP_SHARE: lambda inputs, _: (
        f"LimitedSwap: swap in proportion to the memory request of {binary(inputs['request'])}"
    ),
    Rule.PIDS: lambda inputs, result: (
        f"podPidsLimit {inputs['limit']}" if str(inputs["limit"]) == result else "limits.pids of the pod"
    ),
}

_ASSUMPTIONS: Final[Mapping[str, Callable[[Any], str]]] = {
    "memory_capacity_bytes": lambda v: "memory capacity unknown" if v is None else f"memory {binary(v)}",
    "swap_capacity_bytes": lambda v: "no swap" if not v else f"swap {binary(v)}",
    "page_size_bytes": lambda v: f"{binary(v)} pages",
    "cgroup_version": lambda v: f"cgroup v{v}",
    "kubelet_version": lambda v: f"kubelet {v}",
    "runtime": lambda v: f"runtime {v}",
    "oci_runtime": lambda v: str(v) if v.version else f"a current {v}",
    "cgroup_driver": lambda v: f"cgroup driver {v}",
    "cgroup_root": lambda v: f"cgroup root {v}",
    "cpu_cfs_quota": lambda v: "cpuCFSQuota on" if v else "cpuCFSQuota off",
    "cpu_manager_policy": lambda v: f"CPU manager policy {v}",
    "pod_pids_limit": lambda v: "no podPidsLimit" if v <= 0 else f"podPidsLimit {v}",
    "memory_swap_behavior": lambda v: f"swap behavior {v or 'NoSwap'}",
    "single_process_oom_kill": lambda v: f"singleProcessOOMKill {'on' if v else 'off'}",
    "feature_gates": lambda v: (
        ", ".join([f"gate {name} {'on' if on else 'off'}" for name, on in v.items()])
        or "feature gates at their defaults"
    ),
    "enforce_node_allocatable": lambda v: f"enforceNodeAllocatable {', '.join(v)}",
    "kube_reserved": lambda v: "nothing reserved" if not v else f"kubeReserved {_amounts(v)}",
    "system_reserved": lambda v: f"systemReserved {_amounts(v)}",
    "eviction_hard": lambda v: f"evictionHard {', '.join(f'{key}<{text}' for key, text in v.items())}",
    "userspace_oom_killer": lambda v: f"userspace OOM killer {v}",
}


def _amounts(reserved: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={amount}" for name, amount in reserved.items())


def pod_subject(prediction: Prediction) -> str:
    """Return the pod with its node and release: `pod shop/web-0 on worker-2, kubelet 1.36`."""
    pod, setup = prediction.pod, prediction.setup
    where = f" on {escape(setup.node.name)}" if setup.node.name else ""
    return f"{pod.kind.lower()} {full_name(pod.namespace, pod.name)}{where}, kubelet {setup.release}"


def why_lines(prediction: Prediction, row: PodRow, rows: PodRows, *, is_named: bool = False) -> Iterator[str]:
    """Yield a pod's rank, the numbers behind it, and what its flags mean; `rows` include its node's.

    `is_named`: the reader knows the pod's name.
    """
    node = rows.nodes[row.node]
    if row.is_next_victim:
        rank = f"{next_victim(tied=row.tied, node=row.node)}: {rank_sentence(row, node)}"
    else:
        rank = rank_sentence(row, node, f" on {escape(row.node)}" if row.node else "")
    yield f"{'' if is_named else f'{full_name(row.pod.namespace, row.name)} is '}{row.qos.value}, {rank}"
    yield _numbers(prediction, row)
    yield from stalls(row.psi.avg60)
    if row.flags:
        meanings = FLAG_MEANINGS | {Flag.RESIZING: resize_sentence(row.pod)}
        yield "; ".join(f"{flag}: {meanings[flag]}" for flag in row.flags)


def stalls(psi60: float | None) -> Iterator[str]:
    """Say how long tasks waited for memory, if that was 1 % of the last minute or more."""
    if psi60 is not None and psi60 >= 1:
        yield f"tasks waited for memory in {psi_text(psi60)} of the last minute (PSI)"


_RESIZES: Final = {
    "Deferred": "a resize is Deferred: it waits for room on the node",
    "Infeasible": "a resize is Infeasible: it will not happen on this node",
    "Error": "a resize failed (Error) and is tried again",
}


def resize_sentence(pod: Pod) -> str:
    """Return the state of a pod's unfinished resize, in the kubelet's word for it."""
    from kubectl_qos.edit.status import low_limit_sentence

    condition = resize_condition(pod)
    if condition is None:
        limit = low_pod_limit(pod)
        if limit is None:
            return "a resize waits for the kubelet"
        who = pod.namespace, pod.name, pod.containers[0].name, pod.status.qos_class
        return low_limit_sentence(str(limit), *who)
    waits = "waits" if condition.type == RESIZE_PENDING else "is in progress"
    return _RESIZES.get(condition.reason, f"a resize {waits}")


def next_victim(*, tied: bool, node: str = "") -> str:
    """Say what rank 1 means; limits and the kubelet may kill others before."""
    full = f"if {escape(node)} is full" if node else "on a full node"
    return f"{'one of ' if tied else ''}the kernel's next victim{'s' if tied else ''} {full}"


def rank_sentence(row: PodRow, node: RankedNode, where: str = "") -> str:
    """Return a pod's rank on its node with its score, or why it has none."""
    if row.rank is not None:
        shared = " (shared)" if row.tied else ""
        score = row.score if row.score is not None else "unknown"
        is_alone = node.ranked == 1
        rank = "no other pod to compare with" if is_alone else f"rank {row.rank}{shared} of {node.ranked}"
        return f"{rank}{where}, oom_score {score}"
    return no_rank_sentence(row.pod, node.basis)


def no_rank_sentence(pod: Pod, basis: Basis) -> str:
    """Return why a pod has no rank in an order of its node."""
    if not pod.node_name:
        return NOT_SCHEDULED
    if basis is Basis.NOTHING and has_processes(pod):
        return "rank unknown: the node's memory capacity is unknown"
    return "not ranked: Windows has no OOM killer" if basis is Basis.NO_KERNEL_ORDER else NO_PROCESS


NOT_SCHEDULED: Final = "not ranked: not on a node yet"
NO_PROCESS: Final = "not ranked: no running process"


def _numbers(prediction: Prediction, row: PodRow) -> str:
    containers = prediction.containers
    container = next((container for container in containers if container.name == row.worst), containers[0])
    text = escape(container.name)
    reason = container.oom_score_adj_reason
    if container.oom_score_adj_range is None:
        text += ": no oom_score_adj"
    elif reason is None:
        low, high = container.oom_score_adj_range
        text += f": oom_score_adj {low}..{high}"
    else:
        text += f": oom_score_adj {container.oom_score_adj} ({formula(reason)})"
    if row.memory is None:
        return f"{text}; usage unknown"
    of = f" of {binary(row.limit)}" if row.limit is not None else ""
    text += f"; the pod uses {binary(row.memory)}{of}"
    return text if row.frees in {None, row.memory} else f"{text}, its death frees {binary(row.frees or 0)}"


PAGE_CACHE: Final = "the working set includes page cache, which the kernel drops before it kills: "
_NO_SPLIT: Final = "the kubelets' summary does not say how much"
_SPLIT: Final = "explain --usage=summary shows how much is anonymous memory, which it cannot drop"
_MOSTLY: Final = 0.75


def cache_text(usage: PodUsage | None, container: str) -> str:
    """Say how much of a container's working set may be page cache; "" if little can be."""
    used = usage.of(container) if usage is not None else None
    if usage is None or used is None or (used.rss_bytes or 0) > _MOSTLY * used.working_set_bytes:
        return ""
    if used.rss_bytes is None:
        is_summary = usage.origin is UsageOrigin.KUBELET_SUMMARY
        return f"{PAGE_CACHE}{_NO_SPLIT if is_summary else _SPLIT}"
    size, anonymous = binary(used.working_set_bytes), binary(used.rss_bytes)
    return (
        f"{anonymous} of its working set of {size} is anonymous memory. Of the rest, the kernel drops page"
        " cache before it kills, but not tmpfs"
    )
