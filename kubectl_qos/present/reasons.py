"""Reasons and steps as sentences, with the numbers put in.

Each sentence is made from a Reason, the same value that the number came from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from kubectl_qos.k8s.kubelet import Origin
from kubectl_qos.present.format import binary, cpu, escape, exact_binary
from kubectl_qos.present.pod_rows import PodRow, PodRows, RankedNode
from kubectl_qos.qos.flags import NEAR_LIMIT_PERCENT, Flag
from kubectl_qos.qos.prediction import Assumption, ContainerPrediction, Prediction
from kubectl_qos.qos.qos_class import ClassStep, ClassStepKind, QosClass
from kubectl_qos.qos.ranking import Basis
from kubectl_qos.qos.reason import Reason, Rule


def sentence(reason: Reason) -> str:
    """One reason as one sentence, without its children."""
    worded = _WORDED.get(reason.rule)
    if worded is not None:
        return worded(dict(reason.inputs), reason.result)
    return _PLAIN[reason.rule].format(result=reason.result)


def formula(reason: Reason) -> str:
    """An oom_score_adj with the numbers of this container put in: `1000 - 1000 x 1Gi / 16Gi = 938`."""
    text = sentence(reason)
    if reason.rule is Rule.ADJ_BURSTABLE:
        inputs: dict[str, Any] = dict(reason.inputs)
        request = exact_binary(inputs["request"])
        if inputs["share"]:
            request = f"({request} + {exact_binary(inputs['share'])} of the pod's request)"
        text = f"1000 - 1000 × {request} / {exact_binary(inputs['capacity'])} = {inputs['raw']}"
    for child in reason.children:
        if child.rule is not Rule.ADJ_POD_LEVEL_SHARE:
            text += f", {sentence(child)}"
    return text


def class_lacks(reason: Reason) -> list[str]:
    """What keeps a pod from Guaranteed, a line for each container and resource."""
    found = []
    for child in reason.children:
        if child.rule in _LACKS:
            found.append(sentence(child))
        else:
            found.extend(class_lacks(child))
    return found


def step_sentence(step: ClassStep) -> str:
    """One step towards a class, as an instruction."""
    where = escape(step.owner)
    if step.kind is ClassStepKind.SET_LIMIT:
        return f"{where}: set limits.{step.resource} to {step.value} (its request)"
    if step.kind is ClassStepKind.SET_REQUEST:
        return f"{where}: set requests.{step.resource} to {step.value} (its limit)"
    if step.kind is ClassStepKind.CHOOSE_LIMIT:
        return f"{where}: set limits.{step.resource} to a number of your choice"
    if step.kind is ClassStepKind.REMOVE_ALL:
        return f"{where}: remove every cpu and memory request and limit"
    if step.kind is ClassStepKind.ADD_ANY_REQUEST:
        return "add a cpu or memory request or limit to any container"
    return "make any cpu or memory request smaller than its limit, or remove a limit"


def assumption_sentence(assumption: Assumption) -> str:
    """`cgroup version 2`, `no swap`: what was taken because nobody said otherwise."""
    name, value = assumption.name, assumption.value
    known = _ASSUMPTIONS.get(name)
    return known(value) if known is not None else f"{name.replace('_', ' ')} {value}"


def origin_word(origin: Origin) -> str:
    """Where a value came from, in the words of the house."""
    return origin.value


def _lacks_limit(inputs: dict[str, Any], _: object) -> str:
    return f"{_owner(inputs)} has no {inputs['resource']} limit"


def _differs(inputs: dict[str, Any], _: object) -> str:
    request = "none" if inputs["request"] is None else inputs["request"]
    return f"{_owner(inputs)} has {inputs['resource']} request {request} and limit {inputs['limit']}"


def _zero(inputs: dict[str, Any], _: object) -> str:
    return f"{_owner(inputs)} has an explicit {inputs['resource']} request of zero, which counts as none"


def _owner(inputs: dict[str, Any]) -> str:
    owner = escape(str(inputs["owner"]))
    return "spec.resources" if owner == "pod" else f"container {owner}"


def _burstable_adj(inputs: dict[str, Any], result: object) -> str:
    return (
        f"1000 - 1000 × request / capacity, request {binary(inputs['request'])}"
        f" of {binary(inputs['capacity'])} gives {result}"
    )


def _cpu_weight(inputs: dict[str, Any], _: object) -> str:
    milli = inputs["cpu_milli"]
    asked = "no cpu request" if not milli else f"cpu request {cpu(milli)}"
    return f"{asked}: {inputs['shares']} shares on the {inputs['curve']} curve"


def _quota(inputs: dict[str, Any], _: object) -> str:
    whose = "" if inputs.get("own", True) else "the pod's "
    return f"{whose}cpu limit {cpu(inputs['cpu_milli'])} per {inputs['period_us'] // 1000} ms"


def _no_quota(inputs: dict[str, Any], _: object) -> str:
    if not inputs["enforced"]:
        return "cpuCFSQuota is off on this node"
    if inputs.get("declared") is False and inputs["cpu_milli"]:
        return "not every container has a cpu limit"
    return "no cpu limit"


def _memory_limit(inputs: dict[str, Any], result: object) -> str:
    whose = "" if inputs.get("own", True) else "the pod's "
    text = f"{whose}memory limit {exact_binary(inputs['limit'])}"
    if str(result) != str(inputs["limit"]):
        text += f", in whole pages of {binary(inputs['page'])}"
    return text


def _no_memory_limit(inputs: dict[str, Any], _: object) -> str:
    if inputs.get("declared") is False and inputs["limit"]:
        return "not every container has a memory limit"
    return "no memory limit"


_LACKS: Final = frozenset({Rule.LACKS_LIMIT, Rule.REQUEST_DIFFERS, Rule.REQUEST_ZERO})

_PLAIN: Final[Mapping[Rule, str]] = {
    Rule.CLASS_BEST_EFFORT: "no container requests or limits cpu or memory",
    Rule.CLASS_BURSTABLE: "something is requested or limited, but not all of it equally",
    Rule.CLASS_GUARANTEED: "every container limits cpu and memory and requests as much",
    Rule.CLASS_POD_LEVEL: "spec.resources decides, the containers do not count",
    Rule.ADJ_NODE_CRITICAL: "system-node-critical pods get {result}",
    Rule.ADJ_GUARANTEED: "Guaranteed pods get {result}",
    Rule.ADJ_BEST_EFFORT: "BestEffort pods get {result}",
    Rule.ADJ_SIDECAR_FLOOR: "as a sidecar no higher than the app containers: {result}",
    Rule.ADJ_RESTRICTED: "raised to {result}, containerd's own: its restrict_oom_score_adj is on",
    Rule.ADJ_CLAMPED_LOW: "raised to {result}, the least of a Burstable container",
    Rule.ADJ_BELOW_BEST_EFFORT: "lowered to {result}, to stay below BestEffort's 1000",
    Rule.CPU_EXCLUSIVE: "owns its CPUs exclusively, so no quota",
    Rule.MEMORY_HIGH: "MemoryQoS throttles above this",
    Rule.MEMORY_OOM_GROUP: "the kernel kills all processes of the container together",
    Rule.SWAP_NONE: "no swap",
    Rule.SWAP_UNLIMITED: "UnlimitedSwap: as much swap as the node has",
    Rule.HUGEPAGES: "hugepages requested, 0 unless asked for",
}
"""Rules that need no numbers but their result."""


def _stored(inputs: dict[str, Any], result: object) -> str:
    text = f"status.qosClass says {result}"
    if inputs["stored"] == inputs["computed"]:
        return text
    return f"{text}, though the spec computes {inputs['computed']}"


def _share(inputs: dict[str, Any], _: object) -> str:
    return f"plus {binary(inputs['share'])} of the pod-level request"


def _protection(inputs: dict[str, Any], result: object) -> str:
    if result == "0":
        return "MemoryQoS protects nothing here"
    return f"MemoryQoS protects the request of {binary(inputs['request'])}"


def _swap_share(inputs: dict[str, Any], _: object) -> str:
    return f"LimitedSwap: the share of swap that {binary(inputs['request'])} is of memory"


def _pids(inputs: dict[str, Any], _: object) -> str:
    return f"podPidsLimit {inputs['limit']}"


_WORDED: Final[Mapping[Rule, Callable[[dict[str, Any], object], str]]] = {
    Rule.CLASS_STORED: _stored,
    Rule.LACKS_LIMIT: _lacks_limit,
    Rule.REQUEST_DIFFERS: _differs,
    Rule.REQUEST_ZERO: _zero,
    Rule.ADJ_BURSTABLE: _burstable_adj,
    Rule.ADJ_POD_LEVEL_SHARE: _share,
    Rule.CPU_WEIGHT: _cpu_weight,
    Rule.CPU_QUOTA: _quota,
    Rule.CPU_UNLIMITED: _no_quota,
    Rule.MEMORY_LIMIT: _memory_limit,
    Rule.MEMORY_UNLIMITED: _no_memory_limit,
    Rule.MEMORY_PROTECTION: _protection,
    Rule.SWAP_SHARE: _swap_share,
    Rule.PIDS: _pids,
}
"""Rules whose sentence depends on the inputs."""

CLASS_MEANINGS: Final = {
    QosClass.GUARANTEED: "killed last: oom_score_adj -997",
    QosClass.BURSTABLE: "killed by how little it requests: oom_score_adj 3 to 999",
    QosClass.BEST_EFFORT: "killed first: oom_score_adj 1000",
}

FLAG_MEANINGS: Final[Mapping[Flag, str]] = {
    Flag.CRITICAL: "system-node-critical, spared longest",
    Flag.PRIORITY: "dies before a pod of lower priority",
    Flag.NEAR_LIMIT: f"a container is at {NEAR_LIMIT_PERCENT}% of its limit or above",
    Flag.OVER_REQUEST: "uses more than it requests",
    Flag.RESIZING: "a resize is under way",
    Flag.STATIC: "comes from a file on its node",
    Flag.CLASS_DIFFERS: "the stored class is not the one that the spec gives",
}

_ASSUMPTIONS: Final[Mapping[str, Callable[[Any], str]]] = {
    "memory_capacity_bytes": lambda v: "memory capacity unknown" if v is None else f"memory {binary(v)}",
    "swap_capacity_bytes": lambda v: "no swap" if not v else f"swap {binary(v)}",
    "page_size_bytes": lambda v: f"{binary(v)} pages",
    "cgroup_version": lambda v: f"cgroup v{v}",
    "kubelet_version": lambda v: f"kubelet {v}",
    "runtime": lambda v: f"runtime {v}",
    "oci_runtime": lambda v: f"{v} or later" if v.version else f"a current {v}",
    "cgroup_driver": lambda v: f"cgroup driver {v}",
    "cgroup_root": lambda v: f"cgroup root {v}",
    "cpu_cfs_quota": lambda v: "cpuCFSQuota on" if v else "cpuCFSQuota off",
    "cpu_manager_policy": lambda v: f"CPU manager policy {v}",
    "pod_pids_limit": lambda v: "no podPidsLimit" if v <= 0 else f"podPidsLimit {v}",
    "memory_swap_behavior": lambda v: f"swap behavior {v or 'NoSwap'}",
    "single_process_oom_kill": lambda v: f"singleProcessOOMKill {'on' if v else 'off'}",
    "feature_gates": lambda v: "feature gates at their defaults" if not v else f"feature gates {v}",
    "enforce_node_allocatable": lambda v: f"enforceNodeAllocatable {', '.join(v)}",
    "kube_reserved": lambda v: "nothing reserved" if not v else f"kubeReserved {v}",
}


def why_lines(prediction: Prediction, row: PodRow, rows: PodRows) -> Iterator[str]:
    """The verdict, the numbers behind it, and what its flags mean.

    Args:
        prediction: of the pod on its node.
        row: the pod's row.
        rows: the rows that it is among, with the ranking of its node.
    """
    name = escape(f"{row.pod.namespace}/{row.name}" if row.pod.namespace else row.name)
    yield f"{name} is {row.qos.value}{rank_clause(row, rows.nodes.get(row.node))}"
    yield _numbers(prediction, row)
    if row.flags:
        yield "; ".join(f"{flag}: {FLAG_MEANINGS[flag]}" for flag in row.flags)


def rank_clause(row: PodRow, node: RankedNode | None) -> str:
    """What follows the class: `, the next victim of worker-2` or its place in the order."""
    where = escape(row.node)
    if row.rank is None:
        if not where:
            return ", without a rank: it is on no node"
        if node is not None and node.basis is Basis.NOTHING:
            return ", rank unknown: the node's memory capacity is not known"
        return ", without a rank: it has no processes on a node"
    total = node.ranked if node is not None else 0
    of_node = f" of {where}" if where else ""
    if row.rank == 1:
        what = "one of the next victims" if row.tied else "the next victim"
        return f", {what}{of_node}: rank 1 of {total}, oom_score {row.score}"
    shared = " (shared)" if row.tied else ""
    on_node = f" on {where}" if where else ""
    return f", rank {row.rank}{shared} of {total}{on_node}, oom_score {row.score}"


def _numbers(prediction: Prediction, row: PodRow) -> str:
    found = _worst(prediction, row)
    text = escape(found.name)
    reason = found.oom_score_adj_reason
    if reason is None:
        low, high = found.oom_score_adj_range
        text += f": oom_score_adj {low}..{high}"
    elif reason.rule is Rule.ADJ_BURSTABLE:
        text += f": oom_score_adj = {formula(reason)}"
    else:
        text += f": oom_score_adj {found.oom_score_adj} ({formula(reason)})"
    if row.memory is None:
        return f"{text}; usage unknown"
    of = f" of {binary(row.limit)}" if row.limit is not None else ""
    return f"{text}; the pod uses {binary(row.memory)}{of}"


def _worst(prediction: Prediction, row: PodRow) -> ContainerPrediction:
    """The container by which the pod is ranked; without any the first one."""
    return next((one for one in prediction.containers if one.name == row.worst), prediction.containers[0])
