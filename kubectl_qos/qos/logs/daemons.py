"""Kills by daemons, which act before the kernel: lines of logs, by the `log_lines` of each killer.

Sources: Talos' OOMController (internal/app/machined/pkg/controllers/runtime/oom.go, since 1.12), systemd's
src/oom/oomd-manager.c and src/core/unit.c (since 247), earlyoom's kill.c (since 1.2).
"""

from __future__ import annotations

import re
from typing import Final

from kubectl_qos.k8s.kubelet import Daemon
from kubectl_qos.qos.killers import KILLERS
from kubectl_qos.qos.kills.report import Killed
from kubectl_qos.qos.logs.oom_lines import ReportBuilder, Stage
from kubectl_qos.qos.logs.record import LogRecord

_FORMS: Final = tuple(
    (killer.daemon, re.compile(form, re.ASCII))
    for killer in KILLERS
    if killer.daemon is not None
    for form in killer.log_lines
)
_RESIDENT: Final = re.compile(r"VmRSS (\d{1,9}) MiB", re.ASCII)
_ADJ: Final = re.compile(r"oom_score_adj (-?\d{1,4})\b", re.ASCII)


def is_daemon_line(message: str) -> bool:
    """Whether a daemon writes such a line, and no kernel."""
    return any(form.match(message) is not None for _, form in _FORMS)


class DaemonKill(ReportBuilder):
    """The report of a daemon that killed a cgroup or a process."""

    def take(self, record: LogRecord) -> bool:
        """Add a line; False if it is about another kill."""
        for daemon, form in _FORMS:
            match = form.match(record.message)
            if match is not None and "names" not in form.groupindex:
                return self._take(daemon, match.groupdict())
            if match is not None and self._stage:
                self._set(names=tuple(re.findall(r'"([^"]*)"', match["names"])))
                return True
        return False

    def _take(self, daemon: Daemon, fields: dict[str, str | None]) -> bool:
        cgroup = (fields.get("cgroup") or "").removeprefix("/sys/fs/cgroup")
        pid, before = int(fields.get("pid") or 0), self._report
        if self._stage:
            # systemd says it too, and earlyoom sends SIGKILL where SIGTERM does not suffice.
            is_same = bool(cgroup) and before.group_kill.endswith(cgroup) and daemon is Daemon.SYSTEMD_OOMD
            return is_same or (pid > 0 and pid in {victim.pid for victim in self._victims})
        if pid:
            size, adj = (form.search(fields["why"] or "") for form in (_RESIDENT, _ADJ))
            resident = int(size[1]) << 10 if size is not None else None
            uid = int(fields["uid"]) if fields["uid"] else None
            own = int(adj[1]) if adj is not None else None
            self._victims.append(Killed(pid, fields["comm"] or "", anon_rss_kb=resident, uid=uid, adj=own))
        why = "" if pid else fields.get("why") or ""
        self._set(daemon=daemon, why=why, task_memcg=cgroup, group_kill=cgroup)
        self._stage = Stage.KILLED
        return True
