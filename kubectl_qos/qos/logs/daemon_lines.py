"""Parse what daemons log about their kills; qos/killers/ has how the lines of each look."""

import re
from typing import Final

from kubectl_qos.qos.killers import KILLERS, Killer, Mechanism
from kubectl_qos.qos.kills.report import Killed
from kubectl_qos.qos.logs.oom_lines import ReportBuilder, ReportPart
from kubectl_qos.qos.logs.record import LogRecord

_DAEMON_LINES: Final = tuple(
    (killer, re.compile(form, re.ASCII)) for killer in KILLERS for form in killer.log.lines
)
_DETAILS: Final = tuple(re.compile(form, re.ASCII) for killer in KILLERS for form in killer.log.details)
_RESIDENT: Final = re.compile(r"RSS:? +(\d{1,9})\b", re.ASCII)
_ADJ: Final = re.compile(r"oom_score_adj:? +(-?\d{1,4})\b", re.ASCII)


def is_daemon_line(message: str) -> bool:
    """Return whether a daemon writes such a line, and no kernel."""
    forms = (*_DETAILS, *(form for _, form in _DAEMON_LINES))
    return any(form.match(message.strip()) is not None for form in forms)


class DaemonKill(ReportBuilder):
    """A report of a daemon that killed a cgroup or a process."""

    def __init__(self, record: LogRecord) -> None:
        super().__init__(record)
        self._details = {"why": ""}

    @property
    def _is_slow(self) -> bool:
        """Whether it may have to kill its victim again: earlyoom waits 10 s for its end."""
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
        return (
            detail is not None
            and self._part < ReportPart.KILLED
            and self._add_detail(message, _groups(detail))
        )

    def _add_detail(self, message: str, fields: dict[str, str]) -> bool:
        """Add what the daemon says of the victim before it kills."""
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
            # Some say it twice, and earlyoom sends SIGKILL where SIGTERM does not suffice.
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


def _groups(match: re.Match[str]) -> dict[str, str]:
    """Return the named groups that took part in a match."""
    return {name: text for name, text in match.groupdict().items() if text is not None}
