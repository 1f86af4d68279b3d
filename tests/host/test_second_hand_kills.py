"""Kills by the kernel that a kubelet or a runtime logs, and those of which a daemon had part."""

import json

import pytest

from kubectl_qos.host.kernel_log import read_log
from kubectl_qos.k8s.events import EventList
from kubectl_qos.k8s.objects import Pod, convert
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.qos.killers import Mechanism
from kubectl_qos.qos.kills.analyze import find_kills
from kubectl_qos.qos.reason import Confidence
from tests.host.broken_reports import NOW
from tests.host.test_pasted_logs import ID, KILLED, MESSAGES, UID, kill_of, kills_of, report_of, text_of

CGROUP = f"/kubepods/burstable/pod{UID}/{ID}"
KLOG = "I1120 12:00:07.446437    1432 oom_watcher_linux.go:77] "
LOGRUS = 'time="2026-11-20T12:00:07.123456789Z" level=info msg='
OOM_INSTANCE = f"&{{4711 leaky 2026-11-20 12:00:07.3 +0000 UTC m=+100.1 {CGROUP} / CONSTRAINT_NONE}}"
BY_NAME = f"&{{Pid:4711 ProcessName:leaky TimeOfDeath:2026-11-20 12:00:07.3 +0000 UTC ContainerName:{CGROUP}"
IN_JSON = {
    "Pid": 4711,
    "ProcessName": "leaky",
    "TimeOfDeath": "2026-11-20T12:00:07Z",
    "ContainerName": CGROUP,
}
LAST = {"VictimContainerName": "/", "Constraint": "CONSTRAINT_NONE"}
PREFIXES = ("", "Nov 20 12:00:07 n1 kubelet[1432]: ", "2026-11-20T12:00:07.4Z n1 k3s[7]: ")


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize(
    "message",
    [
        f"Got sys oom event: {OOM_INSTANCE}",
        f'"Got sys oom event" event="{BY_NAME} VictimContainerName:/ Constraint:CONSTRAINT_NONE}}"',
        f'"Got sys oom event" event={json.dumps(IN_JSON | LAST, separators=(",", ":"))}',
    ],
)
def test_a_kubelet_names_the_victim_of_a_full_node(prefix: str, message: str) -> None:
    kill = kill_of([f"{prefix}{KLOG}{message}"])
    assert (kill.diagnosis.mechanism, kill.diagnosis.confidence) == ("node", Confidence.CERTAIN)
    assert (kill.pod_uid, kill.container_id) == (UID, ID)
    assert (kill.time[:19], kill.node) == ("2026-11-20T12:00:07", "n1" if prefix else "")
    assert "the kubelet says that the kernel killed leaky (4711): CONSTRAINT_NONE (line 1)" in text_of(kill)
    of_limit = kill_of([f"{prefix}{KLOG}{message.replace('_NONE', '_MEMCG')}"])
    assert of_limit.diagnosis.mechanism is Mechanism.MEMORY_LIMIT


CREATED = KLOG + 'Created an OOM event in container "{}" at 2026-11-20 12:00:07 +0000 UTC m=+150.7'
SECOND_HAND = {
    CREATED.format(CGROUP): "kubelet",
    f"{LOGRUS}" + json.dumps(f'TaskOOM event container_id:"{ID}"'): "containerd",
    f'{LOGRUS}"TaskOOM event &TaskOOM{{ContainerID:{ID},XXX_unrecognized:[],}}"': "containerd",
    f"2026-11-20T12:00:07.123456789Z container oom {ID} (image=web:1, name=k8s_web_web-0_shop)": "Docker",
}


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("line", SECOND_HAND)
def test_what_ran_out_of_memory_is_unknown(prefix: str, line: str) -> None:
    kill = kill_of([prefix + line])
    assert (kill.diagnosis.mechanism, kill.diagnosis.confidence) == (Mechanism.KERNEL, Confidence.LIKELY)
    assert (kill.container_id, kill.time[:19]) == (ID, "2026-11-20T12:00:07")
    assert f"{SECOND_HAND[line]} says that the kernel killed a process" in text_of(kill)
    message = (prefix + line).partition("]: ")[2] or line
    entry = {"SYSLOG_IDENTIFIER": SECOND_HAND[line], "_TRANSPORT": "stdout", "MESSAGE": message}
    assert kill_of([json.dumps(entry)]).container_id == ID


@pytest.mark.parametrize("line", SECOND_HAND)
@pytest.mark.parametrize("place", [0, 3, len(MESSAGES) - 1, len(MESSAGES)])
def test_the_kernels_own_report_counts(line: str, place: int) -> None:
    for messages in (MESSAGES, [KILLED]):
        lines = [f"Nov 20 12:00:07 n1 kernel: {message}" for message in messages]
        own = report_of(lines)
        report = kill_of([*lines[:place], f"Nov 20 12:00:07 n1 k3s[7]: {line}", *lines[place:]]).report
        assert report is not None
        assert (report.victims, report.memory, report.tasks) == (own.victims, own.memory, own.tasks)
    later = line.replace("12:00:07", "13:00:07").replace("20T12", "20T13").replace(ID, "8e" * 32)
    assert len(kills_of([*(f"Nov 20 12:00:07 n1 kernel: {text}" for text in MESSAGES), later])) == 2


def test_an_event_of_docker_names_the_pod() -> None:
    labels = f"image=web:1, io.kubernetes.container.name=web, io.kubernetes.pod.uid={UID}, name=k8s_web"
    kill = kill_of([f"2026-11-20T12:00:07.123456789Z container oom {ID} ({labels})"])
    assert (kill.pod_uid, kill.container_id) == (UID, ID)


def test_of_two_lines_about_one_kill_the_one_with_the_victim_counts() -> None:
    created, task, *_ = SECOND_HAND
    named = kill_of([task, created, f"{KLOG}Got sys oom event: {OOM_INSTANCE}"])
    assert named.report is not None
    assert named.report.victim is not None
    assert len(kills_of([task, created])) == 1
    root = CREATED.format("/")
    assert kill_of([root, created]).container_id == ID


def test_the_cgroup_of_the_machine_is_the_nodes_memory() -> None:
    """The kubelet's parser names it where a report has no cgroup that ran out (oomparser.go)."""
    root, created = CREATED.format("/"), CREATED.format(CGROUP)
    kill = kill_of([root])
    assert (kill.diagnosis.mechanism, kill.diagnosis.confidence) == ("node", Confidence.LIKELY)
    later = root.replace("12:00:07", "13:00:07")
    kernel = [f"Nov 20 12:00:07 n1 kernel: {message}" for message in MESSAGES]
    for others in ([created], kernel):
        kills = kills_of([*others, f"Nov 20 13:00:07 n1 kubelet[1]: {later}"])
        assert len(kills) == 2, "another kill"
        assert kills[0].diagnosis.mechanism == "node"
    assert len(kills_of([*kernel, f"Nov 20 12:00:08 n1 kubelet[1]: {root}"])) == 1


OOMKILL = (
    '12:00:07 Triggered by PID 99 ("web"), OOM kill of PID {} ("{}"), 32768 pages, loadavg: 0.1 0.1 0.1 2/8 9'
)


def test_bccs_oomkill_names_the_victim() -> None:
    lines = ["Tracing OOM kills... Ctrl-C to stop.", OOMKILL.format(4711, "leaky"), OOMKILL.format(51, "a b")]
    kills = kills_of(lines)
    victims = [
        (kill.report.victim.pid, kill.report.victim.comm)
        for kill in kills
        if kill.report and kill.report.victim
    ]
    assert victims == [(4711, "leaky"), (51, "a b")]
    assert "oomkill of bcc says that the kernel killed leaky (4711) (line 2)" in text_of(kills[0])
    assert len(kills_of([*lines[:2], KILLED])) == 1


@pytest.mark.parametrize("event", ["OOM received", "OOM event received"])
def test_conmon_has_the_beginning_of_the_containers_id(event: str) -> None:
    line = f"Nov 20 12:00:07 n1 conmon[77]: conmon {ID[:20]} <ninfo>: {event}"
    kill = kill_of([line])
    assert (kill.diagnosis.confidence, kill.container_id) == (Confidence.LIKELY, ID[:20])
    kernel = [f"Nov 20 12:00:07 n1 kernel: {message}" for message in MESSAGES]
    assert kill_of([*kernel, line]).container_id == ID


def test_a_runtime_names_the_container_of_a_kill_at_its_time() -> None:
    kernel = f"Nov 20 12:00:06 n1 kernel: {KILLED}"
    created, task, _, docker = (f"Nov 20 12:00:07 n1 k3s[7]: {line}" for line in SECOND_HAND)
    for named, logger in ((created, "the kubelet"), (task, "containerd"), (docker, "Docker")):
        for lines in ([kernel, named], [named, kernel]):
            kill = kill_of(lines)
            assert (kill.diagnosis.mechanism, kill.container_id) == (Mechanism.MEMORY_LIMIT, ID)
            assert f"its container is the one that {logger} names at that time" in text_of(kill)
    other = task.replace(ID, "8e" * 32)
    for lines in (
        [kernel, task, other],
        [kernel, kernel.replace("4711", "4712"), task],
        [kernel.replace("12:00:06", "11:59:50"), task],
        [kernel.replace("n1", "n2"), task],
    ):
        assert {kill.container_id for kill in kills_of(lines) if kill.report and kill.report.victim} == {""}
    untimed = [KILLED, list(SECOND_HAND)[2].partition("msg=")[2]]
    assert {kill.container_id for kill in kills_of(untimed)} == {""}, "two examples are not one kill"


def test_a_status_says_more_than_a_runtime() -> None:
    end = {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-11-20T12:00:08Z"}
    limits = {"name": "app", "resources": {"requests": {"memory": "64Mi"}, "limits": {"memory": "128Mi"}}}
    status = {"name": "app", "lastState": {"terminated": {**end, "containerID": f"containerd://{ID}"}}}
    raw = {
        "metadata": {"name": "web", "namespace": "shop", "uid": UID},
        "spec": {"nodeName": "n1", "containers": [limits]},
        "status": {"containerStatuses": [status]},
    }
    log = read_log([f"Nov 20 12:00:07 n1 containerd[9]: {list(SECOND_HAND)[1]}"], NOW)
    (kill,) = find_kills(Snapshot(pods=(convert(raw, Pod),)), EventList(), [log])
    assert (kill.diagnosis.mechanism, kill.container) == ("pod limit", "app")


@pytest.mark.parametrize("second", ["04", "59"])
def test_a_process_that_a_daemon_and_the_kernel_killed_died_once(second: str) -> None:
    message = 'sending SIGTERM to process 4711 uid 0 "leaky": badness 9, VmRSS 9 MiB'
    signalled = f"Nov 20 12:00:01 n1 earlyoom[7]: {message}"
    kernel = [f"Nov 20 12:00:{second} n1 kernel: {message}" for message in MESSAGES]
    for lines in ([signalled, *kernel], [*kernel[:5], signalled, *kernel[5:]]):
        kill = kill_of(lines)
        assert (kill.diagnosis.mechanism, kill.container_id) == ("pod limit", ID)
        assert "earlyoom sent it a signal too" in text_of(kill)
    others = kills_of([signalled.replace("4711", "9"), *kernel])
    assert {kill.diagnosis.mechanism for kill in others} == {"earlyoom", "pod limit"}
    assert len(kills_of([signalled.replace("n1", "n2"), *kernel])) == 2
