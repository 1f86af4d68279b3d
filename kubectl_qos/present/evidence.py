"""The evidence of a death in words: one sentence for each fact that a diagnosis rests on."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from kubectl_qos.edit.status import low_limit_sentence
from kubectl_qos.k8s.objects import EPHEMERAL_STORAGE, MEMORY, SIGNALLED
from kubectl_qos.present.format import count, escape, in_mi
from kubectl_qos.present.restart_notes import volume_sentence
from kubectl_qos.qos.cgroup.names import CUT, class_of_path, container_of_unit, pod_cgroup
from kubectl_qos.qos.killers import BY_ID
from kubectl_qos.qos.kills.evidence import BY_KUBELET, OOM_KILLED, SIGKILLED, WAITING, Evidence, Fact


def evidence_sentence(evidence: Evidence) -> str:
    """Put a fact into words."""
    words, details = _FACTS[evidence.fact], evidence.details
    if not isinstance(words, str):
        return words(details)
    return words.format(**{name: _shown(name, value) for name, value in details.items()})


Details = Mapping[str, Any]


def _shown(name: str, value: Any) -> str:
    is_size = name.endswith("bytes") and value is not None
    return in_mi(value) if is_size else escape(str(value))


def _ended(details: Details) -> str:
    subject = "it" if details["state"] == "state" else "its previous run"
    reason = escape(str(details["reason"])) or "no reason"
    if details["state"] == WAITING:
        return f"it could not be started: {reason}"
    code, child = details["exit_code"], ""
    if reason == SIGNALLED:
        return (
            "a program says that SIGKILL ended one of its processes. At a limit the kernel kills the largest:"
            " if the container's main process lives on, no status shows that. Others send SIGKILL too"
        )
    if code is None:
        return f"{subject} ended with {reason}; its exit code is unknown"
    if (details["reason"], code) == ("Unknown", 255):
        # containerd reports this for a task that is gone when it starts (internal/cri/server/restart.go).
        return f"{subject} ended unobserved, as in a restart of its node (exit code 255, Unknown)"
    if details["reason"] == OOM_KILLED and code != SIGKILLED:
        by = {0: "normally", 143: "by SIGTERM, as on a normal stop"}.get(code, "by itself")
        since = f"at some time since {escape(details['since'])}" if details.get("since") else "in that run"
        child = f": {since} a process in it was killed, and its main process ended {by}"
    return f"{subject} ended with exit code {code} and {reason}{child}"


def _quoted(what: str) -> Callable[[Details], str]:
    def sentence(details: Details) -> str:
        message = _one_line(details["message"])
        return f"{what} {escape(str(details['reason']))}" + (f": {message}" if message else "")

    return sentence


EVENT_MEANINGS: Final = {
    "SystemOOM": "the node ran out of memory and the kernel killed by oom_score; no limit was involved",
    "OOMKilling": "the kernel killed a process for memory, at a limit or because the node ran out",
    "EvictionThresholdMet": "the node is short of memory: the kubelet evicts pods by the rank under Eviction",
    "NodeHasInsufficientMemory": "memory pressure: the kubelet evicts pods and admits no BestEffort ones",
    "Evicted": "the kubelet ended the pod to free memory on its node, by the rank under Eviction; no OOM",
    "Preempted": "the scheduler removed the pod for one of higher priority: by requests, not by usage",
    "EvictedByVPA": "the VPA updater evicted the pod to give it other requests; no OOM, no pressure",
    "TaintManagerEviction": "the pod was deleted for a taint of its node; no OOM",
    "Preempting": "the kubelet ended the pod to make room for a critical one: by requests, not by usage",
    "FailedScheduling": "memory is insufficient by requests: usage does not count",
    "OutOfmemory": "the kubelet refused the pod: it requests more memory than other pods leave unrequested",
    "ResizeDeferred": "the resize fits the node, but other pods request too much now: it waits",
    "ResizeInfeasible": "the resize can never fit the node: the pod keeps its values",
    "ResizeError": "the resize failed and is retried; until then the cgroup keeps its old values",
}
"""Reasons of pkg/kubelet/events and eviction, of the scheduler and of node-problem-detector."""
DISRUPTIONS: Final = {
    "TerminationByKubelet": "ended by its kubelet: node pressure, a shutdown or room for a critical pod",
    "PreemptionByScheduler": "removed by the scheduler for a pod of higher priority",
    "EvictionByEvictionAPI": "evicted through the API, as by kubectl drain: not for memory",
    "DeletionByTaintManager": "evicted by a taint of its node",
    "DeletionByPodGC": "deleted because its node is gone",
}
"""k8s.io/api/core/v1/types.go PodReason, the reasons of the condition DisruptionTarget."""


def _disrupted(details: Details) -> str:
    reason = details["reason"]
    if reason == BY_KUBELET or reason not in DISRUPTIONS:
        return _quoted("the pod's condition DisruptionTarget says")(details)
    return f"the pod was {DISRUPTIONS[reason]} ({reason})"


def _event(details: Details) -> str:
    reason, what, times = escape(str(details["reason"])), escape(str(details["object"])), details["times"]
    often = f", {times} times" if times > 1 else ""
    return f"event {reason} of {what}{often}: {_one_line(details['message'])}"


def _excess(details: Details) -> str:
    """Say why this pod was evicted first, and which requests would have prevented that."""
    resource, above = escape(details["resource"]), details["above"]
    if resource not in {MEMORY, EPHEMERAL_STORAGE}:
        return f"pods do not request {resource}: the order is by priority, then by usage"
    priority = f" ({escape(str(details['priority']))})" if details["priority"] is not None else ""
    order = f"pods above their requests are evicted first, whatever their size, then by priority{priority}"
    if above is None:
        return f"{order}; what it used is not said here (kubelets before 1.13 never say it)"
    if not above:
        why = f"none of its containers was above its request: {order}"
        is_memory = resource == MEMORY
        return f"{why}. {_BELOW_REQUESTS}" if is_memory else why
    users = [(f"container {escape(name)}", *sizes, "") for name, sizes in above.items()]
    if details["is_all"]:
        users = [("it", *map(sum, zip(*above.values(), strict=True)), "s")]
    used = ", and ".join(
        f"{who} used {in_mi(size)} of {resource}, {in_mi(size - request)} above its request{s}"
        for who, size, request, s in users
    )
    used += ", by the working set, which includes page cache in use" if resource == MEMORY else ""
    used += "" if details["is_all"] else ", while the kubelet compares the pod's totals"
    kept = ", ".join(f"{-(-size >> 20)}Mi for {escape(name)}" for name, (size, _) in above.items())
    return (
        f"{used}: {order}, then by how far above. Requests of {kept} would have put it behind all pods"
        " above their requests"
    )


_BELOW_REQUESTS: Final = (
    "So no such pod was left: usually memory outside pods has outgrown what kubeReserved and systemReserved"
    " keep for it"
)
_OWN_STORAGE: Final = {
    "container": "container {name} wrote more than its ephemeral-storage limit of {limit}, logs included",
    "pod": "its containers and emptyDirs held more than its ephemeral-storage limits together, {limit}",
    "volume": "the emptyDir {name} held more than its sizeLimit of {limit}",
}


def _own_storage(details: Details) -> str:
    what = _OWN_STORAGE[details["of"]].format(name=escape(details["name"]), limit=escape(details["limit"]))
    if details["is_memory"]:
        raised = (
            "raise the sizeLimit, and the memory limit of the container that writes: the volume counts toward"
            " it"
        )
    else:
        raised = f"raise {'the sizeLimit' if details['of'] == 'volume' else 'that limit'}"
    return f"{what}; the node need not be full. Write less there, or {raised}"


def _one_line(message: object) -> str:
    return escape(" ".join(str(message).split()))


_LOGGERS: Final = {
    "kubelet": "the kubelet",
    "containerd": "containerd",
    "conmon": "conmon",
    "docker": "Docker",
    "oomkill": "oomkill of bcc",
}


def _kernel(details: Details) -> str:
    line = f"line {details['line']}"
    where = f"{escape(str(details['title']))} {line}" if details["title"] else line
    outcome, why = details.get("outcome"), escape(str(details.get("why") or ""))
    if outcome == "panic":
        set_again = ": the kubelet sets it to 0 at its start, so something else has set it since"
        return f"the kernel panicked{why}{set_again if 'panic_on_oom' in why else ''} ({where})"
    who = "a process that the log does not name"
    if details["command"] is not None:
        who = escape(str(details["command"]))
        who += f" ({details['pid']})" if details["pid"] is not None else ""
    what = f": {escape(details['constraint'])}" if details["constraint"] else ""
    nodes = str(details.get("memory_nodes") or "")
    what += f", NUMA node{'' if nodes.isdigit() else 's'} {nodes}" if nodes else ""
    limit, of = "", details.get("limit_of") or "memory"
    if details["memcg"] or details["limit_bytes"] is not None:
        size = f" of {in_mi(details['limit_bytes'])}" if details["limit_bytes"] is not None else ""
        limit = f", the limit{size}{f' for {of}' if of != 'memory' else ''}"
        limit += f" of {escape(str(details['memcg']))}" if details["memcg"] else ""
    verb = "chose" if details.get("is_only_chosen") else "killed"
    child = ", or killed one of its children" if verb == "chose" else ""
    if outcome == "nobody":
        return f"the kernel found no process that it may kill{what}{limit} ({where})"
    if outcome == "unknown":
        return f"the log has only a middle part of an OOM report{what}{limit} ({where})"
    says = f"{_LOGGERS[details['logged_by']]} says that " if "logged_by" in details else ""
    by_time = ""
    if "named_by" in details:
        by_time = f"; its container is the one that {_LOGGERS[details['named_by']]} names at that time"
    return f"{says}the kernel {verb} {who}{child}{what}{limit} ({where}){by_time}"


def _daemon(details: Details) -> str:
    title = f"{escape(str(details['title']))} " if details["title"] else ""
    names = ", ".join(escape(str(name)) for name in details["processes"])
    whom = f" in {escape(str(details['cgroup']))}" if details["cgroup"] else ""
    why = f": {_one_line(details['why'])}" if details["why"] else ""
    code = "143 (SIGTERM) or 137" if BY_ID[details["daemon"]].sends_sigterm else "137"
    whose = f"{names or ('all processes' if whom else 'a process that the log does not name')}{whom}"
    ends = f"; the container ends as Error with exit code {code}, not as OOMKilled: the kernel counts no kill"
    cgroup = details["cgroup"] or ""
    is_of_host = bool(cgroup) and class_of_path(cgroup) is None and not container_of_unit(cgroup)
    text = f"{details['daemon']} killed {whose}{why} ({title}line {details['line']})"
    return text if is_of_host else text + ends


def _group(details: Details) -> str:
    path = str(details["path"])
    if pod_cgroup(path) is None and not path.endswith(CUT):
        return f"memory.oom.group is set: all processes of {escape(path)} were killed with it"
    whose = "its container" if details["is_own"] else escape(path)
    return (
        f"memory.oom.group is set: all processes of {whose} were killed with it, as on cgroup v2 since"
        " kubelet 1.28; singleProcessOOMKill: true (since 1.32) kills one process alone"
    )


def _event_victim(details: Details) -> str:
    adj = details["adj"]
    least, most = details["range"] or (adj, adj)
    other = least if least == most else f"{least} to {most}"
    fits = "which fits this container" if least <= adj <= most else f"but this container has {other}"
    doubt = "" if least <= adj <= most else ": the process set its own, or belongs to another container"
    return f"the event names the process {escape(details['command'])}, oom_score_adj {adj}, {fits}{doubt}"


def _neighbours(details: Details) -> str:
    more = count(details["count"], "more container", "more containers")
    verb = "was" if details["count"] == 1 else "were"
    return f"within a minute {more} without a limit on the node {verb} OOMKilled"


_AT_ONCE: Final = (
    ". Within a second the log has {}, with no report between: all may be one kill of a container's processes"
)
_FACTS: Final[Mapping[Fact, str | Callable[[Details], str]]] = {
    Fact.ENDED: _ended,
    Fact.OOM_AT_START: lambda details: (
        "the runtime says:"
        f" {escape(details['words'])}{'' if details['is_named'] else ', as it does when memory runs out'}."
        " Starting takes 6Mi to 22Mi, depending on the runtime and its version: choose 32Mi or more"
    ),
    Fact.OOM_KILLED: "OOMKilled: the runtime counted an OOM kill in its cgroup, at a limit or of the node",
    Fact.INIT_RUNS_AGAIN: (
        "an OOMKilled init container counts as failed, even with exit code 0: it runs again, or the pod"
        " fails if its restartPolicy is Never"
    ),
    Fact.NOT_COUNTED: (
        "137 without OOMKilled: SIGKILL, but the runtime counted no OOM kill. Usual on a full node,"
        " possible at a limit, certain after a failed liveness probe or a stop that exceeded its grace"
        " period"
    ),
    Fact.EXIT_IS_MADE_UP: "ContainerStatusUnknown: the kubelet lost track of it, as after an eviction or"
    " a reboot, and fills in exit code 137: kubectl describe pod and its events may say more",
    Fact.POD_ENDED: _quoted("the pod's status says"),
    Fact.DISRUPTED: _disrupted,
    Fact.REFUSED_BEST_EFFORT: (
        "a kubelet under MemoryPressure admits no BestEffort pod: request cpu or memory, or tolerate"
        " node.kubernetes.io/memory-pressure"
    ),
    Fact.REFUSED_BY_REQUESTS: (
        "this compares requests, not usage: its request does not fit with those of the other pods on its node"
    ),
    Fact.EXCESS: _excess,
    Fact.COMES_BACK: (
        "its DaemonSet recreates it on this node even under pressure: it can be evicted again and again"
    ),
    Fact.OWN_STORAGE_LIMIT: _own_storage,
    Fact.EVENT: _event,
    Fact.SYSTEM_OOM_OF_LIMIT: (
        "kubelet {release} also reports SystemOOM for kills at a limit, on kernels from 5.0 on"
    ),
    Fact.NO_SYSTEM_OOM: "no SystemOOM event at that time: no sign that the node ran out of memory",
    Fact.NO_EVENTS: "the node's events at that time are unknown: it may have run out of memory",
    Fact.BEING_DELETED: "the pod is being deleted, which ends in SIGKILL after its grace period",
    Fact.OWN_LIMIT: "the container's memory limit is {limit_bytes} now",
    Fact.POD_LIMIT: "the memory limit of its pod's cgroup is {limit_bytes} now",
    Fact.LOW_POD_LIMIT: lambda details: low_limit_sentence(
        in_mi(details["limit_bytes"]),
        *(escape(details[name]) for name in ("namespace", "pod", "container", "class")),
    ),
    Fact.MEMORY_VOLUME: lambda details: volume_sentence(details["volumes"]),
    Fact.SAME_LIMIT: "the pod's cgroup also holds the pause container: with the same limit it fills first",
    Fact.KUBELET_NAMES_POD: "a line of the kubelet in the same log names the pod",
    Fact.NO_LIMIT: "neither the container nor its pod has a memory limit",
    Fact.PEAK: "its peak in the minutes before was {bytes} ({title})",
    Fact.LIMIT_NOT_SEEN: "no sample shows it at the limit: memory can grow between two samples",
    Fact.NODE_PEAK: "its node used {bytes} of {capacity_bytes} at most then",
    Fact.NODE_PRESSURE: "its node had MemoryPressure in the minutes before",
    Fact.OOM_EVENTS: lambda details: (
        f"cAdvisor counted {count(details['count'], 'OOM kill')} in the container"
    ),
    Fact.KERNEL: _kernel,
    Fact.DAEMON: _daemon,
    Fact.ALSO_SIGNALLED: "{daemon} sent it a signal too: either was enough",
    Fact.NOT_FULL: "its memory limit of {limit_bytes} was not reached: it used {usage_bytes}",
    Fact.ALL_PODS: (
        "that limit is allocatable memory plus the hard eviction threshold: the machine itself was not full"
    ),
    Fact.MIXED_DRIVERS: lambda details: (
        "the kubelet uses the systemd cgroup driver and the runtime cgroupfs, so the limits of its pod do"
        " not apply to it: set the runtime's driver to systemd"
        + (" (SystemdCgroup = true of runc)" if details["runtime"] == "containerd" else "")
    ),
    Fact.ALONE: lambda details: (
        "only this process was killed, because memory.oom.group is not set: "
        + ("its container" if details["is_in_container"] else "if it was in a container, that")
        + " kept running, and no status shows the kill, unless this was its main process"
        + (
            f"; {escape(str(details['command']))} ({details['pid']}), which is older, was not killed"
            if "pid" in details
            else ""
        )
    ),
    Fact.MAYBE_ALONE: lambda details: (
        "no line shows that the rest of its container was killed too (memory.oom.group). If it was not,"
        " the container kept running, and no status shows the kill, unless this was its main process"
        + (_AT_ONCE.format(count(details["at_once"], "more kill")) if "at_once" in details else "")
    ),
    Fact.GROUP: _group,
    Fact.OTHER_PROCESSES: lambda details: (
        f"before that the kernel killed other processes of it, {count(details['count'], 'time')}"
    ),
    Fact.WENT_ON: "the container kept running: only one of its processes was killed",
    Fact.KERNEL_SILENT: lambda details: (
        f"{escape(str(details['title'])) or 'the kernel log'} covers that time and has no OOM kill"
    ),
    Fact.BY_NAME: (
        "the killed process is called {command}, like this container or its workload: another process may"
        " have that name"
    ),
    Fact.EVENT_VICTIM: _event_victim,
    Fact.OF_NODE: lambda details: (
        f"{escape(details['command'])} is a service of the node, no container: kubeReserved and"
        " systemReserved keep memory for these from the pods"
    ),
    Fact.NEIGHBOURS: _neighbours,
}
