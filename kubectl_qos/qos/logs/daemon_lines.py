"""Parse what others log about kills: daemons about their own, kubelet and containerd about the kernel's.

Node events repeat both. qos/killers/ has how the lines of each daemon look. Sources of the others:
pkg/kubelet/oom (oom_watcher_linux.go), cAdvisor's manager/manager.go and utils/oomparser, containerd's
internal/cri/server/events.go, conmon's src/cgroup.c, bcc's tools/oomkill.py, node-problem-detector's
config/kernel-monitor.json. Not here: node events as
evidence of a container's death (qos/kills/evidence.py).
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from msgspec import structs

from kubectl_qos.k8s.events import OOM_KILLING, Event, without_repeats
from kubectl_qos.k8s.kinds import find_workload
from kubectl_qos.k8s.objects import Pod, all_containers
from kubectl_qos.qos.killers import KILLERS, Killer, Mechanism
from kubectl_qos.qos.kills.report import Constraint, Killed, OomReport
from kubectl_qos.qos.logs.oom_grammar import ReportPart
from kubectl_qos.qos.logs.oom_lines import ReportBuilder
from kubectl_qos.qos.logs.record import LogRecord

_DAEMON_LINES: Final = tuple(
    (killer, re.compile(form, re.ASCII)) for killer in KILLERS for form in killer.log.lines
)
_DETAILS: Final = tuple(re.compile(form, re.ASCII) for killer in KILLERS for form in killer.log.details)
_RESIDENT: Final = re.compile(r"RSS:? +(\d{1,9})\b", re.ASCII)
_ADJ: Final = re.compile(r"oom_score_adj:? +(-?\d{1,4})\b", re.ASCII)

SECOND_HAND: Final = "kubelet"
"""Stands for the program of a line that repeats a kill by the kernel."""
_OOM_INSTANCE: Final = (
    r"Got sys oom event: &\{(?P<pid>\d{1,10}) (?P<comm>.{1,64}?) \d{4}-\d\d-\d\d .{0,80}?"
    r" (?P<task>/\S*) /\S*? ?(?:(?P<constraint>CONSTRAINT_\w+))?\}"
)
_NAMED_FIELDS: Final = (
    r"Got sys oom event.{0,20}event=\W{0,8}Pid\W{1,5}(?P<pid>\d{1,10})\W{1,6}ProcessName\W{1,5}"
    r"(?P<comm>.{1,64}?)\W{1,6}TimeOfDeath\b.{0,120}?\WContainerName\W{1,5}?(?P<task>/[^\s\"\\,]*)"
    r".{0,400}?\bConstraint\W{1,5}(?P<constraint>CONSTRAINT_\w+)?"
)
_LOGGED: Final = tuple(
    (by, re.compile(form))
    for by, form in (
        ("kubelet", _OOM_INSTANCE),
        ("kubelet", _NAMED_FIELDS),
        ("kubelet", r"Got sys oom event from cadvisor: &\{(?P<task>/\S*) "),
        ("kubelet", r"Created an OOM event in container \W{0,2}(?P<task>/[^\s\"\\]*)"),
        ("containerd", r"TaskOOM event .{0,20}?(?i:container_?ID)\W{1,6}(?P<id>[\da-f]{64})"),
        ("conmon", r"conmon (?P<id>[\da-f]{20}) <ninfo>: OOM (?:event )?received"),
        ("oomkill", r'OOM kill of PID (?P<pid>\d{1,10}) \("(?P<comm>[^"]{0,64})"'),
        ("docker", r"\bcontainer oom (?P<id>[\da-f]{64})(?:.*?\.pod\.uid=(?P<uid>[\da-f-]{36}))?"),
    )
)
_WORDS: Final = ("OOM event", "OOM received", "OOM kill of PID", "sys oom event", "container oom ")


def is_second_hand(text: str) -> bool:
    """Return whether a line repeats a kill by the kernel."""
    has_words = any(words in text for words in _WORDS)
    return has_words and any(form.search(text) is not None for _, form in _LOGGED)


def is_daemon_line(message: str) -> bool:
    """Return whether the line is a daemon's, not the kernel's."""
    forms = (*_DETAILS, *(form for _, form in _DAEMON_LINES))
    return any(form.match(message.strip()) is not None for form in forms)


class DaemonKill(ReportBuilder):
    """A report of a daemon that killed a cgroup or a process."""

    def __init__(self, record: LogRecord) -> None:
        super().__init__(record)
        self._details = {"why": ""}

    @property
    def _is_slow(self) -> bool:
        """Whether it may signal its victim again later: earlyoom waits 10 s for its end."""
        return bool(self._victims)

    def add_line(self, record: LogRecord) -> bool:
        """Add a line; return False if it is about another kill."""
        message = record.message.strip()
        for killer, form in _DAEMON_LINES:
            match = form.match(message)
            if match is not None and "names" not in form.groupindex:
                return self._add(killer, self._details | _groups(match))
            if match is not None and self._part:
                self._set(names=tuple(re.findall(r'"([^"]*)"', match["names"])))
                return True
        detail = next((match for form in _DETAILS if (match := form.match(message)) is not None), None)
        if detail is None or self._part == ReportPart.KILLED:
            return False
        # What the daemon says of the victim before it kills.
        fields = _groups(detail)
        is_other = bool(self._part) and not fields.keys().isdisjoint(self._details.keys() - {"cgroup"})
        if is_other or not (self._part or "begins" in fields):
            return False
        self._part = ReportPart.HEAD
        self._details = fields | self._details | {"why": f"{self._details['why']} {message}"}
        return True

    def _add(self, killer: Killer, fields: dict[str, str]) -> bool:
        cgroup = f"/{fields['below_root']}" if "below_root" in fields else fields.get("cgroup", "")
        cgroup = cgroup.removeprefix("/sys/fs/cgroup")
        pid, before = int(fields.get("pid", 0)), self._report
        if self._part == ReportPart.KILLED:
            # Some daemons report a kill twice, and earlyoom sends SIGKILL if SIGTERM was not enough.
            paths = cgroup, before.group_kill
            is_same = all(paths) and max(paths, key=len).endswith(min(paths, key=len))
            is_same = is_same and killer.log.is_twice
            if is_same and len(cgroup) > len(before.group_kill):
                self._set(why=fields["why"], task_memcg=cgroup, group_kill=cgroup)
            return is_same or (pid > 0 and pid in {victim.pid for victim in self._victims})
        if pid:
            size, adj = (form.search(fields["why"]) for form in (_RESIDENT, _ADJ))
            resident = int(size[1]) << 10 if size is not None else None
            uid = int(fields["uid"]) if "uid" in fields else None
            own = int(adj[1]) if adj is not None else None
            self._victims.append(Killed(pid, fields.get("comm", ""), anon_rss_kb=resident, uid=uid, adj=own))
        why, group = ("", "") if pid else (fields["why"], cgroup)
        self._set(daemon=Mechanism(killer.id), why=why, task_memcg=cgroup, group_kill=group)
        self._part = ReportPart.KILLED
        return True


class SecondHandKill(ReportBuilder):
    """What a line of a kubelet or a runtime says about a kill by the kernel."""

    def add_line(self, record: LogRecord) -> bool:
        """Add a line; return False if it is about another kill."""
        matches = ((by, form.search(record.message)) for by, form in _LOGGED)
        by, match = next((pair for pair in matches if pair[1] is not None), ("", None))
        if match is None or self._part:
            return False
        fields = _groups(match)
        if "pid" in fields:
            self._victims.append(Killed(int(fields["pid"]), fields["comm"]))
        pod = f"/kubepods/pod{fields['uid']}/" if "uid" in fields else ""
        task = fields.get("task", "")
        path = f"{pod}cri-containerd-{fields['id']}.scope" if "id" in fields else task.rstrip("/")
        # The cgroup of the machine itself ran out.
        constraint = Constraint.NONE if task == "/" else _CONSTRAINTS.get(fields.get("constraint", ""))
        self._set(logged_by=by, task_memcg=path, constraint=constraint)
        self._part = ReportPart.KILLED
        return True


_CONSTRAINTS: Final = {member.value: member for member in Constraint}


def _groups(match: re.Match[str]) -> dict[str, str]:
    """Return the named groups that took part in a match."""
    return {name: text for name, text in match.groupdict().items() if text is not None}


_VICTIM: Final = re.compile(
    r"System OOM encountered(?:, victim process: (?P<comm>.{0,64}), pid: (?P<pid>\d{1,10})|$)"
)
"""Kubelets before 1.15 do not name the process."""
_OF_KERNEL: Final = re.compile(r"(?:Memory cgroup out|Out) of memory: Kill(?:ed)? process (?P<pid>\d{1,10})")
SERVICES: Final = frozenset(
    {"containerd", "crio", "dockerd", "k3s-agent", "k3s-server", "kubelet", "kubelite", "systemd-journal"}
)
"""Processes that run on the node itself."""
_OF_POD: Final = re.compile(r"\bpod:(\S+) namespace:(\S+)(?: uuid:(\S+))?")
"""How the node-problem-detector of Alibaba Cloud (ACK) names the pod of an event of its node."""
_LONGEST_NAME: Final = 15
"""Maximum length of a process name; longer names are truncated."""


def without_second_hand(events: Iterable[Event]) -> tuple[Event, ...]:
    """Drop a kubelet's SystemOOM if another event quotes the kernel about the same process.

    An old kubelet takes a newer kernel's message about a limit for one about a full node. An event of a node
    that names a pod becomes one of the pod.
    """
    events = tuple(map(_of_pod, events))
    kernels = {_node_and_pid(event, _OF_KERNEL) for event in events if event.reason in OOM_KILLING}
    kernels -= {None}
    return tuple(
        event
        for event in events
        if event.reason != "SystemOOM" or _node_and_pid(event, _VICTIM) not in kernels
    )


def _of_pod(event: Event) -> Event:
    match = _OF_POD.search(event.message) if event.reason in OOM_KILLING and event.is_of_node else None
    if match is None:
        return event
    pod = {"kind": "Pod", "name": match[1], "namespace": match[2], "uid": match[3] or ""}
    return structs.replace(event, involved_object=structs.replace(event.involved_object, **pod))


def _node_and_pid(event: Event, form: re.Pattern[str]) -> tuple[str, str] | None:
    match = form.search(event.own_message)
    return (event.involved_object.name, match["pid"]) if match is not None and match["pid"] else None


def event_reports(events: Iterable[Event]) -> Iterator[tuple[Event, OomReport]]:
    """Yield node events about kills, each with the kernel's report as far as it quotes it."""
    for event in without_repeats(events):
        first, *others = event.own_message.split("\n")
        record = LogRecord(first, time=event.last, node=event.involved_object.name)
        builder = ReportBuilder.begin(record) if event.reason in OOM_KILLING else None
        victim = _VICTIM.match(first) if event.reason == "SystemOOM" else None
        if event.is_of_node and builder is not None:
            for message in others:
                builder.add_line(structs.replace(record, message=message.strip()))
            yield event, replace(builder.report(is_filtered=True), incomplete=False)
        elif event.is_of_node and victim is not None:
            killed = (Killed(int(victim["pid"]), victim["comm"]),) if victim["pid"] else ()
            yield event, OomReport(record.time, node=record.node, constraint=Constraint.NONE, victims=killed)


def container_by_name(pods: Iterable[Pod], process: str) -> tuple[Pod, str] | None:
    """Return the container that has the name of a process, or whose workload has it; None if several do."""
    matching = [
        (pod, container.name)
        for pod in pods
        for container in all_containers(pod)
        if process in {container.name[:_LONGEST_NAME], find_workload(pod).name[:_LONGEST_NAME]}
    ]
    return matching[0] if len(matching) == 1 else None
