"""Kills by Talos, systemd-oomd, oomd, earlyoom and nohang: lines of their own kills in the logs of nodes."""

import json
from pathlib import Path
from typing import Any

import pytest

from kubectl_qos.host.kernel_log import read_file, read_log
from kubectl_qos.k8s.events import EventList
from kubectl_qos.k8s.objects import Pod, convert
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.qos.killers import Mechanism
from kubectl_qos.qos.kills.analyze import find_kills
from kubectl_qos.qos.reason import Confidence
from tests.host.broken_reports import NOW
from tests.host.test_pasted_logs import ID, MESSAGES, SCOPE, UID, kill_of, kills_of, text_of

POD = f"/kubepods/burstable/pod{UID}"
COMPONENT = '"component": "controller-runtime", "controller": "runtime.OOMController"'
KILLING = f'Sending SIGKILL to cgroup {{{COMPONENT}, "cgroup": "/sys/fs/cgroup{POD}"}}'
VICTIMS = f'victim processes: {{{COMPONENT}, "processes": ["node", "sh"]}}'
TALOS = [
    f"user: warning: [2026-01-12T20:27:31.913Z]: [talos] OOM controller triggered {{{COMPONENT}}}",
    f"user: warning: [2026-01-12T20:27:31.914Z]: [talos] {KILLING}",
    f"user: warning: [2026-01-12T20:27:31.915Z]: [talos] {VICTIMS}",
]


def test_talos() -> None:
    kill = kill_of(TALOS)
    assert (kill.diagnosis.mechanism, kill.diagnosis.confidence) == ("Talos", Confidence.CERTAIN)
    assert (kill.pod_uid, kill.time, kill.choice) == (UID, "2026-01-12T20:27:31.914000Z", None)
    text = text_of(kill)
    assert "killed by the OOM controller of Talos under memory pressure, not by the kernel" in text
    assert f"Talos killed node, sh in {POD} (line 2)" in text
    assert "why this process" not in text


@pytest.mark.parametrize(
    "form",
    [
        "10.0.0.7: {}",
        "<12>[ 77.123] {}",
        "[ 77.123] {}",
        "12,9,77123456,-;{}",
        "JSON",
        "fields",
        "10.0.0.7: 2026-01-12T20:27:31.9139Z WARN {}",
        "{}",
    ],
)
def test_forms_of_talos(form: str) -> None:
    messages = [line.split("]: ", 1)[1] for line in TALOS]
    lines = [form.format(line) for line in TALOS] if ":" in form else [form.format(text) for text in messages]
    if form == "JSON":
        lines = [
            json.dumps({"facility": "user", "msg": text, "talos-time": "2026-01-12T20:27:31Z"})
            for text in messages
        ]
    if form == "fields":
        common: dict[str, Any] = {"controller": "runtime.OOMController", "talos-time": "2026-01-12T20:27:31Z"}
        fields: tuple[dict[str, Any], ...] = ({"cgroup": POD}, {"processes": ["node", "sh"]})
        texts = "Sending SIGKILL to cgroup", "victim processes:"
        lines = [json.dumps({**common, "msg": msg, **own}) for msg, own in zip(texts, fields, strict=True)]
        assert f"Talos killed node, sh in {POD}" in text_of(kill_of(lines))
    if "WARN" in form:
        lines = [form.format(text.removeprefix("[talos] ")) for text in messages]
    if form != "{}":
        assert kill_of(lines).diagnosis.mechanism == "Talos"
    plain = [f"[talos] Sending SIGKILL to cgroup .../kubepods/besteffort/pod{UID}"]
    assert kill_of([f"user: warning: [2026-01-12T20:27:31Z]: {plain[0]}"]).pod_uid == UID
    for path in (".../besteffort/pode37f8fd9-...", "…/besteffort/kube-proxy..."):
        text = text_of(kill_of([f'[talos] Sending SIGKILL to cgroup {{"cgroup": "{path}"}}']))
        assert text.startswith("a BestEffort pod (the log has only part of its uid)")
        assert "the container ends as Error" in text
    left_out = kill_of(['[talos] Sending SIGKILL to cgroup {"cgroup": ".../app.service"}'])
    assert "a process in an unknown cgroup" in text_of(left_out)


def test_a_talos_log_without_lines_of_the_kernel_is_understood(tmp_path: Path) -> None:
    (tmp_path / "talos.log").write_text("\n".join(TALOS))
    assert len(read_file(str(tmp_path / "talos.log")).reports) == 1
    (tmp_path / "talos.log").write_text(TALOS[0])
    assert not read_file(str(tmp_path / "talos.log")).reports


def test_a_storm_of_talos_is_many_kills() -> None:
    again = [line.replace("20:27:31", "20:27:33") for line in TALOS]
    assert len(kills_of([*TALOS, *again])) == 2
    assert "killed all processes" in text_of(kill_of(TALOS[:2]))


def test_the_death_of_a_container_in_a_cgroup_that_talos_killed() -> None:
    end = {
        "exitCode": 137,
        "reason": "Error",
        "finishedAt": "2026-01-12T20:27:32Z",
        "containerID": "containerd://ab",
    }
    raw: dict[str, Any] = {
        "metadata": {"name": "web", "namespace": "shop", "uid": UID},
        "spec": {"nodeName": "n1", "containers": [{"name": "app"}, {"name": "proxy"}]},
        "status": {
            "containerStatuses": [
                {"name": name, "lastState": {"terminated": {**end, "containerID": f"containerd://{name}"}}}
                for name in ("app", "proxy")
            ]
        },
    }
    pod = convert(raw, Pod)
    kills = find_kills(Snapshot(pods=(pod,)), EventList(), [read_log(TALOS, NOW)])
    assert {kill.container: kill.diagnosis.mechanism for kill in kills} == dict.fromkeys(
        ("app", "proxy"), "Talos"
    )
    assert {kill.diagnosis.confidence for kill in kills} == {Confidence.CERTAIN}


@pytest.mark.parametrize(
    "message",
    [
        f"Killed {SCOPE} due to memory pressure for /kubepods.slice being 52.63% > 50.00% for > 20s",
        f"Marked {SCOPE} for killing due to memory used (16260) / total (16419) being more than 90.00%",
    ],
)
def test_systemd_oomd(message: str) -> None:
    unit = SCOPE.rpartition("/")[2]
    lines = [
        f"2026-03-24T16:04:39Z n1 systemd-oomd[854]: {message}",
        f"2026-03-24T16:04:39Z n1 systemd[1]: {unit}: systemd-oomd killed 25 process(es) in this unit.",
    ]
    kill = kill_of(lines)
    assert kill.diagnosis.mechanism == "systemd-oomd"
    assert (kill.pod_uid, kill.container_id, kill.node) == (UID, ID, "n1")
    assert "due to" not in text_of(kill)
    assert "systemd-oomd killed all processes in" in text_of(kill)
    assert "pressure for /kubepods.slice" in text_of(kill) or "more than 90.00%" in text_of(kill)
    entry = {
        "_TRANSPORT": "journal",
        "SYSLOG_IDENTIFIER": "systemd-oomd",
        "MESSAGE": message,
        "_HOSTNAME": "n1",
    }
    assert kill_of([json.dumps(entry)]).pod_uid == UID
    assert kill_of(lines[1:]).cgroup == unit
    monotonic = [f"  [   77.7495{number}] {line.split(' ', 2)[2]}" for number, line in enumerate(lines)]
    assert kill_of(monotonic).pod_uid == UID


def test_a_line_of_systemd_oomd_that_is_wrapped_and_repeated() -> None:
    path = "/user.slice/user-1000.slice/app.slice/ide-7.scope"
    said = (f"Killed {path}", "due to memory pressure for /user.slice", "being 82.63% > 50.00% for > 20s")
    alone = text_of(
        kill_of(["$ journalctl -u systemd-oomd | tail -1", said[0], *(f"  {part}" for part in said[1:])])
    )
    assert (
        f"all processes in {path}: memory pressure for /user.slice being 82.63% > 50.00% for > 20s (" in alone
    )
    before = "Sep 18 02:27:12 systemd[7]: ide-7.scope: systemd-oomd killed some process(es) in this unit."
    lines = [f"Sep 18 02:27:12 systemd-oomd[9]: {said[0]}", *said[1:]]
    for both in ([before, *lines], [*lines, before]):
        kill = kill_of(both)
        assert kill.cgroup == path
        assert "container" not in text_of(kill)
    assert "container" not in text_of(kill_of([before]))


def test_what_systemd_says_of_a_kill_by_the_kernel() -> None:
    unit = SCOPE.rpartition("/")[2]
    newer = f"2026-03-24T16:04:40Z n1 systemd[7]: {unit}: The kernel OOM killer killed some processes in this"
    said = f"{unit}: A process of this unit has been killed by the OOM killer."
    entry = {"_TRANSPORT": "journal", "SYSLOG_IDENTIFIER": "systemd", "MESSAGE": said, "_HOSTNAME": "n1"}
    line = f"2026-03-24T16:04:40Z n1 systemd[1]: {said}"
    for form in (line, json.dumps(entry), f"{newer} unit."):
        kill = kill_of([form])
        assert (kill.diagnosis.mechanism, kill.cgroup, kill.node) == (Mechanism.KERNEL, unit, "n1")
        assert f"container {ID[:12]}… on n1, whose pod the log does not name" in text_of(kill)
    assert "a process outside pods, in a.service" in text_of(
        kill_of([f"{newer} unit.".replace(unit, "a.service")])
    )
    kernel = [f"2026-03-24T16:04:39Z n1 kernel: {message}" for message in MESSAGES]
    kill = kill_of([*kernel, line])
    assert (kill.diagnosis.mechanism, kill.container_id) == ("pod limit", ID)
    assert len(kills_of([*kernel, line.replace("cri-containerd-7f", "cri-containerd-8f")])) == 2
    assert "systemd then ended" not in text_of(kill)
    assert kill_of([line.replace("04:40", "04:38"), *kernel]).report == kill.report, "it may come first"
    assert len(kills_of([line.replace("04:40", "02:38"), *kernel])) == 2
    alone = kernel[-1]
    kill = kill_of([alone, line])
    assert (kill.diagnosis.mechanism, kill.container_id) == (Mechanism.MEMORY_LIMIT, ID)
    assert "If it was not, the container kept running" in text_of(kill)
    late = kills_of([alone, line.replace("04:40", "04:49")])
    others = kills_of([alone, alone.replace("4711", "4712"), line])
    assert {kill.container_id for kill in (*late, *others)} == {""}, "it may be of another one"
    failed = line.replace(said, f"{unit}: Failed with result 'oom-kill'.")
    for lines in ([*kernel, line, failed], [*kernel, failed], [line, failed], [failed]):
        assert f"systemd then ended all of {unit}: OOMPolicy=continue" in text_of(kill_of(lines))


def test_earlyoom() -> None:
    lines = [
        "Mar 24 16:04:39 n1 earlyoom[7]: low memory! at or below SIGTERM limits: mem 10.00%",
        'Mar 24 16:04:39 n1 earlyoom[7]: sending SIGTERM to process 41 uid 0 "java": badness, VmRSS 500 MiB',
        'Mar 24 16:04:40 n1 earlyoom[7]: sending SIGKILL to process 41 "java": badness 910, VmRSS 500 MiB',
    ]
    kill = kill_of(lines)
    assert (kill.diagnosis.mechanism, kill.freed_bytes) == ("earlyoom", 500 << 20)
    assert "earlyoom killed java (41)" in text_of(kill)
    newer = 'sending SIGTERM to process 42 "web": oom_score 1020, oom_score_adj 5, VmRSS 100 MiB, cmdline "w"'
    for prefix in ("Mar 24 16:04:39 n1 earlyoom[7]: ", "earlyoom[7]: ", "", "wrapped"):
        wrapped = newer.replace("oom_score 1", "\noom_score 1").split("\n")
        kill = kill_of(wrapped if prefix == "wrapped" else [f"{prefix}{newer}"])
        assert kill.freed_bytes == 100 << 20
        assert "the victim was web, process 42, oom_score_adj 5, 100Mi in memory" in text_of(kill)
        assert "ends as Error with exit code 143 (SIGTERM) or 137, not as OOMKilled" in text_of(kill)
    without = [line.partition("]: ")[2] for line in lines]
    assert [kill.report.victim.pid for kill in kills_of([*without, newer])] == [41, 42]  # type: ignore[union-attr]
    oldest = 'killing process 43 "bash" with signal 15: badness 550, VmRSS 7609 MiB'
    assert kill_of([oldest, "process 43 exited after 1.9 seconds"]).freed_bytes == 7609 << 20
    assert not kills_of([f"[ 77.1] {newer}"]), "a kernel writes no such line"
    first = "Killing process 'bash' with signal 15, pid: 43, badness: 550, VmRSS: 7609 MiB"
    assert kill_of([first, "Low Memory! At or below sigterm limits", first]).freed_bytes == 7609 << 20


def test_earlyoom_with_its_own_times_waits_for_the_end_of_its_victim() -> None:
    line = 'Mar 24 16:04:{}: sending SIGTERM to process 41 uid 0 "java": badness 757, VmRSS 500 MiB'
    kill = kill_of([line.format("39"), "Mar 24 16:04:49: kill failed: Timer expired", line.format("49")])
    assert (kill.time, kill.freed_bytes) == ("2026-03-24T16:04:39", 500 << 20)


NOHANG = [
    "Victim status (found in 4ms):",
    "  PID:       71, name: my app, state: S (sleeping), EUID: 0, SID: 71 (my app), lifetime: 2h",
    "  badness:   849, oom_score:  849, oom_score_adj:  5",
    "  Vm, MiB:   Size: 900, RSS: 500 (Anon: 490, File: 10, Shmem: 0), Swap: 0",
    "  cgroup_v1: ",
    f"  cgroup_v2: {SCOPE}",
    "Implementing a corrective action:",
    "  Sending SIGTERM to the victim",
]
OLDER_NOHANG = [
    NOHANG[0],
    "  Name:      my app",
    "  PID:       71",
    NOHANG[2],
    "  VmRSS:     500 MiB  (Anon: 490 MiB, File: 10 MiB, Shmem: 0 MiB)",
    f"  CGroup_v1: {SCOPE}",
    "  CGroup_v2: /",
    "Implement a corrective action:",
    "  Send SIGTERM to the victim; total response time: 24 ms",
]


@pytest.mark.parametrize("lines", [NOHANG, OLDER_NOHANG])
@pytest.mark.parametrize(
    "form", ["Mar 24 16:04:39 n1 nohang-desktop[7]: {}", "2026-03-24 16:04:39,470: {}", "{}"]
)
def test_nohang(lines: list[str], form: str) -> None:
    """In a file of its own only the first line of a message has a time."""
    is_file = form.startswith("2026")
    log = [line if is_file and line[0] == " " else form.format(line) for line in lines]
    kill = kill_of(log)
    assert (kill.diagnosis.mechanism, kill.freed_bytes, kill.container_id) == (
        "nohang",
        500 << 20,
        ID,
    )
    text = text_of(kill)
    assert f"nohang killed my app (71) in {SCOPE}" in text
    assert "process 71, oom_score_adj 5, 500Mi in memory" in text
    assert "exit code 143 (SIGTERM) or 137" in text
    again = [line.replace("71", "72").replace(":39", ":49") for line in log]
    assert len(kills_of([*log[:-1], *again])) == 1, "whom it does not kill, lives"
    assert "nohang killed a process that the log does not name" in text_of(kill_of(log[-1:]))


OOMD = "62.10 41.03 12.99 {} 734003200 ruleset:[pods] detectorgroup:[60 for 30s] killer:{}kill_by_pressure v2"


@pytest.mark.parametrize(
    "form",
    [
        "[ 8812.1] oomd kill: {}",
        "<12>[ 8812.1] oomd kill: {}",
        "Mar 24 16:04:39 n1 oomd[7]: [../Log.cpp:9] {}",
    ],
)
def test_oomd(form: str) -> None:
    lines = [form.format(OOMD.format(SCOPE[1:], dry)) for dry in ("", "", "(dry)")]
    kill = kill_of(lines)
    assert (kill.diagnosis.mechanism, kill.container_id) == ("oomd", ID)
    assert "killed by oomd by a rule of its configuration, not by the kernel" in text_of(kill)
    assert f"oomd killed all processes in {SCOPE}: 60 for 30s" in text_of(kill)
    assert not kills_of(lines[2:]), "a dry run kills nothing"
    outside = text_of(kill_of([form.format(OOMD.format("system.slice/a.service", ""))]))
    assert "/system.slice/a.service: 60 for 30s (line 1)" in outside
    assert "container" not in outside


@pytest.mark.parametrize("program", ["kubelet", "app", "sshd"])
def test_what_others_write_is_no_kill(program: str) -> None:
    for text in (
        f"Killed {SCOPE} due to memory pressure",
        "[talos] Sending SIGKILL to cgroup /a",
        "sending SIGTERM",
    ):
        assert not kills_of([f"Mar 24 16:04:39 n1 {program}[7]: {text}"])
