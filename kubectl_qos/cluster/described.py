"""Parse text that kubectl prints for people, and parts of a status, into objects with the fields it shows.

Source: k8s.io/kubectl/pkg/describe/describe.go. The times of events are not read, because they count from
the unknown time of the command.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from itertools import pairwise, product
from textwrap import dedent
from typing import Any, Final

from kubectl_qos.errors import QosError
from kubectl_qos.k8s.events import NODE_MEMORY_REASONS
from kubectl_qos.k8s.objects import SIGNALLED, UNKNOWN_CONTAINER, UNKNOWN_EXIT
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.qos.kills.evidence import REFUSED
from kubectl_qos.qos.restart import oom_at_start
from kubectl_qos.yaml_loader import read_yaml

MORE: Final = "kubectl get pods,nodes,events -A -o json"
"""The command whose output is complete."""
PODS_OF_NODE: Final = b"  Memory Requests  "
"""The heading of a column in the description of a node, which has the requests of its pods."""
_UNKNOWN_NAME: Final = "<unknown>"
_UNNAMED: Final = {"name": _UNKNOWN_NAME}
_ON_A_NODE: Final = {"nodeName": _UNKNOWN_NAME}
_LISTED: Final = re.compile(rf"(?:Init:)?OOMKilled|Evicted|Preempting|{REFUSED}")
_POD_ROW: Final = r"(?:([a-z0-9-]+) +)?(?:pod/)?([a-z0-9][a-z0-9.-]*) +(\d+/\d+) +"
"""A row of kubectl get pods, of which grep has dropped the headings."""
_UNTITLED: Final = rf"(?:[a-z0-9][a-z0-9.-]*:? {{2,}}){{1,3}}(?:{_LISTED.pattern})(?: |$)"
"""A row of -o jsonpath or of --no-headers: names, then how the pod ended."""
_TABBED: Final = re.compile(rf"^[a-z0-9].*\t(?:{_LISTED.pattern})(?:\t.*)?$", re.MULTILINE)
_CHOSEN: Final = r"(?:(?:NAMESPACE|NS) +)?(?:POD[_-]?)?(?:NAME|(?<=POD)) *(?: {2,}[A-Z][A-Z_-]+)+"
"""The headings of -o custom-columns."""
_TEXT: Final = re.compile(
    rf"^ *(?:{_POD_ROW}(?:{_LISTED.pattern})(?: |$)|{_UNTITLED}|{_CHOSEN}$|"
    r"(?:Last )?State: +(?:Terminated|Waiting|Running)$|Name: {2,}\S.*\n[A-Z][\w ]{2,40}: "
    r"|Reason: +(?:Evicted|Preempting)$"
    r"|(?:NAMESPACE +)?NAME +READY +STATUS\b|(?:\w+ +){1,3}CPU\(cores\)"
    r"|(?:NAMESPACE +)?(?:LAST|FIRST) ?SEEN .{0,200}\bREASON\b.{0,200}\bMESSAGE\b"
    r"|(?:\S{1,253} {2,}){0,2}(?:Normal|Warning) {2,}[A-Z]\w+ {2,}\S.{0,400} {2,}\S"
    r"|(?:Type|FirstSeen|LastSeen) .{0,200}\bReason\b.{0,200}\bMessage$"
    r"|(?:Capacity|Allocatable):\n +[a-z]|Namespace +Name +CPU Requests )",
    re.MULTILINE,
)
_LEFT_OUT: Final = re.compile(
    r"^\*\*|\*\*$|</?(?:code|pre)\b[^<>\n]{0,40}>|^(?:[>#|│┃] ?)+|[ \t]*[│┃]$|^`{3}.*|^`(?=\w)|`$"
    r"|\x1b\[[0-9;]*m"
    r"|^.*(?:\b(?:kubectl|oc)|[^\w\s] ?k\w{0,2}) (?:-\S+ (?:[\w.-]+ )?)*(?:describe|get|top) .*"
    r"|(?<=\S)[ \t]+(?:←|<-+|#)[ \t].*$",
    re.MULTILINE,
)
"""Marks of quotations, commands, and remarks after a line."""
_COMMAND: Final = re.compile(
    r"\bdescribe (?P<kind>po|no)(?:d|de)?s?[ /](?:-\S+ (?:[\w.-]+ )?)*(?P<name>[a-z0-9][\w.-]*+)(?!=)"
)
_OTHER_WORDS: Final[tuple[tuple[re.Pattern[str], Any], ...]] = (
    (re.compile("Last Termination State:"), "Last State:"),
    (re.compile("OOM Killed"), "OOMKilled"),
    (re.compile(r"Failed to admit pod ([a-z0-9.-]+)_([a-z0-9-]+)\("), r"name: \1 namespace: \2 ("),
    (re.compile(r"- node has conditions\s*: "), "The node had condition: "),
    (re.compile(r"\bcontainer_(?=(?:reason|message)\b)"), ""),
    (re.compile(r"\bcontainer[_ ]name(?=:)"), "io.kubernetes.container.name"),
    (re.compile(r'\bcontainer="(?=[a-z0-9.-]+")'), 'io.kubernetes.container.name="'),
    (re.compile(r'\bnamespace="(?=[a-z0-9-]+")'), 'io.kubernetes.pod.namespace="'),
    (re.compile(r'\bpod="(?=[a-z0-9.-]+")'), 'io.kubernetes.pod.name="'),
    (re.compile(r"\bcontainer finished at(?=:)"), "finishedAt"),
    (re.compile(r"\bcontainer oom (?=[\da-f]{64}\b)"), "OOMKilled: true, id: "),
    (re.compile(r"(?<=[a-z])_([a-z])(?=[a-z_]*[\"'] ?:)"), lambda match: match[1].upper()),
    (re.compile(r"(?<=\d{4}-\d\d-\d\d) (?=[\d:.]{8,15}\+00:00\b)"), "T"),
)
"""Of kubectl and the kubelet before 1.2, the documentation, Airflow, Prometheus, Spark, docker and Python."""
_FLUSH_LEFT: Final = re.compile(r"^(?=(?:Type|----|Normal|Warning) +\S)", re.MULTILINE)
"""Rows of events that have lost their indent."""
_PART: Final = re.compile(r"^(?:Init )?Containers:$", re.MULTILINE)
_OF_CONTAINER: Final = re.compile(
    "Container ID|Image(?: ID)?|(?:Host )?Ports?|Command|Args|(?:Last )?State|Ready|Restart Count|Limits"
    "|Requests|Liveness|Readiness|Startup|Environment(?: Variables from)?|Mounts"
)
_AFTER_CONTAINERS: Final = re.compile("Conditions|Volumes|QoS Class|Node-Selectors|Events|Name")
_ONE_SPACE: Final = re.compile(
    r"^(?:(\S+) )?(\S+) (READY|\d+/\d+) (\S+) (RESTARTS|\d+)(?: (.*))?$", re.MULTILINE
)
"""Rows of pods from a page that shows several spaces as one."""
_TOP_ONE_SPACE: Final = re.compile(
    r"^(?:\S+ ){1,3}(?:CPU\(cores\)(?: \S+)+|\d+m(?: \d+%)? \d+[KMGT]i(?: \d+%)?)$", re.MULTILINE
)
"""Rows of kubectl top from such a page."""
_END_WORD: Final = re.compile(r"\b(?:[eE]xitCode|Evicted|Preempting|OutOfmemory)\b")
_OF_RUNTIME: Final = re.compile(
    r'\bio\.kubernetes\.(container\.name|pod\.\w{3,9})"?[:=] ?"?([^"\s,)]{1,253})'
    r'|\b([iI]d)"?: ?"?([\da-f]{64})\b'
)
"""The pod and ID of a container in the JSON or YAML of `crictl inspect` and `docker inspect`."""
_IN_PROSE: Final = re.compile(r"\b[Pp]od:? [\"'`]?([a-z0-9-]+)/([a-z0-9][a-z0-9.-]*[a-z0-9])")
_STATUSES: Final = frozenset({"True", "False", "Unknown"})
_STATES: Final = frozenset({"state", "lastState"})
_STATUS_FIELDS: Final = frozenset({"phase", "containerStatuses", "initContainerStatuses"})
_SECOND_LINE: Final = re.compile(r"(?<=or sacrifice child)\n *(?=Killed process \d)")
"""Between the lines of node-problem-detector's message, which kubectl describe prints unchanged."""
_LOW: Final = re.compile(
    r"The node was low on resource: [\w-]+\.(?: Threshold(?: quantity)?: \S+, available: \S+\.)?"
    r"(?: Container \S+ was using \S+, "
    r"(?:which exceeds its request of \d[\w.]*|request is \S+(?:, has larger consumption of [\w-]+\.?)?))*"
)
"""A kubelet's message about a pod that it evicts: pkg/kubelet/eviction/helpers.go (evictionMessage)."""
_LOGGED: Final = re.compile(
    r'(?:resourceName="(?P<resource>[\w-]+)"(?:(?!resourceName=).)*?)? evicted successfully"'
    r' pod="(?P<namespace>[^"/]*)/(?P<name>[^"]*)"'
    r"|(?:to reclaim (?P<old_resource>[\w-]+)(?:(?! to reclaim ).)*?)?"
    r" pods? (?P<old_name>[a-z0-9.-]+)_(?P<old_namespace>[a-z0-9-]+)\([\w-]+\)"
    r" (?:is evicted successfully|evicted, waiting)"
)
"""The lines of a kubelet's log about an eviction, and before 1.19: eviction_manager.go (synchronize,
waitForPodsCleanup)."""
_MESSAGES: Final = (
    ("Evicted", _LOW),
    ("Evicted", re.compile(r"The node had condition: \[\w+\]")),
    ("Preempting", re.compile("Preempted in order to admit critical pod")),
    ("OutOfmemory", re.compile(r"Node didn't have enough resource: memory(?:, \w+: \d+)*")),
)
_WORDS_OF_LOW: Final = frozenset(re.findall(r"[A-Za-z]{2,}:?", re.sub(r"\[.*?\]|\\S", "", _LOW.pattern)))
_END: Final = re.compile(
    r"\b(?:lastState\W{1,6}terminated|state\W{1,6}terminated|State\W{1,6}Status|terminated:map"
    r"|(?:Last )?State: +Terminated|state\W{1,6}CONTAINER_EXITED|Status\W{1,6}exited)\b"
    r"(?:(?!\b[sS]tate\W{1,6}\w+\W{1,6}|\blastState\b).){0,600}"
)
_END_FIELD: Final = re.compile(
    r"\b([eE]xit(?:ed with)?[ _]?[cC]ode|Exited(?= \(\d)|[rR]eason|[fF]inishedAt|OOMKilled)"
    r"\W{1,4}(?:Time\(time=)?(?=([\w.:+-]{1,64}))"
)
_COUNTED: Final = frozenset({"true", "exit"})
"""What follows `OOMKilled` in texts of docker, and of Argo: `OOMKilled (exit code 137)`."""
_SIGKILLED: Final = 137
_OF_PROCESS: Final = re.compile(
    r"\bsignal[ =:]*-?(?:9|SIGKILL)\b|\b(?:sent|Negsignal\.)\W?SIGKILL\b|\b(?:code|status):? -9\b"
    r"|: line \d+: +\d+ Killed\b|\bKilled signal terminated program\b"
)
"""What nginx, uWSGI, Gunicorn, Celery, npm, Airflow, shells and gcc say of a process that SIGKILL ended."""
_ERROR: Final = re.compile(r"\b\w*Error\b|$")
_NAMED: Final = re.compile(r"\b(name|namespace): ?\"?([a-z0-9][\w.-]*)\b(?!:)")
_TITLE: Final = re.compile(r"\S+(?: \S+)*")
_EVENT_TITLES: Final = (
    ("TYPE", "REASON", "AGE", "FROM", "MESSAGE"),
    ("LASTSEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"),
    ("NAMESPACE", "LASTSEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"),
    ("TYPE", "REASON", "OBJECT", "MESSAGE"),
)
"""The headings of describe, get events, and get events -A; the last may remain in a shortened copy."""
_MAY_BE_EMPTY: Final = frozenset({"SUBOBJECT", "SUBOBJECTPATH"})
"""Names of a column that most events leave empty: of get events -o wide, and of older descriptions."""
_TITLES: Final = (
    *({"REASON", "MESSAGE"}, {"TYPE", "STATUS"}, {"NAMESPACE", "NAME"}, {"NAME", "READY"}),
    {"NAME", "MEMORY(BYTES)"},
)
"""The headings of events, conditions, the pods of a node, of any pods, and of kubectl top."""
_CHOSEN_TITLES: Final = re.compile(rf"\s*{_CHOSEN}")
_SAME_TITLES: Final = {"POD_NAME": "NAME", "POD-NAME": "NAME", "PODNAME": "NAME", "NS": "NAMESPACE"}
_OF_REPLICA: Final = re.compile(r".+-(?:[a-z0-9]{5}|\d+)")
_OF_NODE: Final = frozenset({"Roles", "Capacity", "Allocatable", "System Info"})
_TABLE_OF_NODE: Final = re.compile(rf"{PODS_OF_NODE.decode()}| LastHeartbeatTime ")
_OF_POD: Final = frozenset({"Containers", "Init Containers", "State", "Last State", "Node"})
_OBJECT: Final = "Object"
"""Kind of a described object whose text has no field of a pod or node."""
_KINDS: Final = {"po": "Pod", "pod": "Pod", "no": "Node", "node": "Node"}


class _Fields(dict[str, "_Fields"]):
    """The fields at the least indentation of some lines, each with its value and the lines below it."""

    def __init__(self, lines: list[str], value: str = "") -> None:
        super().__init__()
        self.value, self.lines = value, lines
        least = min((len(line) - len(line.lstrip()) for line in lines if ":" in line), default=0)
        begins = [
            number for number, line in enumerate(lines) if ":" in line and not line[: least + 1].isspace()
        ]
        for begin, end in pairwise([*begins, len(lines)]):
            key, _, rest = lines[begin].strip().partition(":")
            self.setdefault(key, _Fields(lines[begin + 1 : end], rest.strip()))
        for key, field in _Fields(lines[: begins[0]]).items() if begins else ():
            self.setdefault(key, field)  # The text begins in the middle of a part.

    def __missing__(self, key: str) -> _Fields:
        return _Fields([])

    @property
    def text(self) -> str:
        """The value joined with the lines below it, where a terminal broke it, with or without a space."""
        text = self.value
        for line in self.lines:
            is_between = bool({text.rpartition(" ")[2], line.strip().partition(" ")[0]} & _WORDS_OF_LOW)
            text += f" {line.strip()}" if line[:1].isspace() or is_between else line
        return text

    @property
    def values_below(self) -> dict[str, str]:
        return {key: field.value for key, field in self.items()}


def described_objects(content: bytes) -> list[dict[str, Any]]:
    """Return the pods, nodes and events in a text of kubectl; an empty list for any other text.

    A pod has no containers if the text does not show their requests.
    """
    whole = content.decode(errors="replace")
    text = _TABBED.sub(lambda row: row[0].replace("\t", "  "), _LEFT_OUT.sub("", whole)).expandtabs()
    text = "\n".join(line.rstrip() for line in text.splitlines())
    text = _ONE_SPACE.sub(lambda row: "  ".join(filter(None, row.groups())), _FLUSH_LEFT.sub("  ", text))
    text = _indented(_TOP_ONE_SPACE.sub(lambda row: row[0].replace(" ", "  "), text))
    for form, words in _OTHER_WORDS:
        text = form.sub(words, text)
    return (_printed(whole, text) if _TEXT.search(text) is not None else []) or _fragments(text)


def _indented(text: str) -> str:
    """Restore the indents of a described pod from a page that has lost them."""
    if _PART.search(text) is None or re.search(r"^ +(?:Last )?State:", text, re.MULTILINE):
        return text
    lines, is_inside = list[str](), False
    for line in text.splitlines():
        key, _, value = line.partition(":")
        is_name = not value and re.fullmatch("[a-z0-9-]+", key) is not None
        is_part = _PART.fullmatch(line) is not None
        is_inside = is_part or (is_inside and _AFTER_CONTAINERS.fullmatch(key) is None)
        depth = 2 if is_name else 4 if _OF_CONTAINER.fullmatch(key) is not None else 6
        depth = depth if is_inside and not is_part else 0
        lines.append(" " * depth + line)
    return "\n".join(lines)


def _printed(whole: str, text: str) -> list[dict[str, Any]]:
    """Return the objects of a text that kubectl prints; `whole` also has the commands in it."""
    commands = [(_KINDS[command["kind"]], command["name"]) for command in _COMMAND.finditer(whole)]
    kind, name = commands[0] if commands else ("", _UNKNOWN_NAME)
    node = next((name for kind, name in commands if kind == "Node"), name)
    parts = re.split(r"^(?=Name: )", dedent(_SECOND_LINE.sub("\v", text)), flags=re.MULTILINE)
    fields = [_with_container(_Fields(list(filter(None, part.split("\n"))))) for part in parts]
    described = {part["Name"].value for part in fields}
    return [raw for part in fields for raw in _objects(part, kind, name, node, described)]


def _fragments(text: str) -> list[dict[str, Any]]:
    """Return the pods of a text that has only a part of a status, or a message of a kubelet or runtime."""
    pod = _status_fragment(text) if _END_WORD.search(text) is not None else None
    if pod is not None:
        return [pod]
    line = " ".join(text.split())
    start = oom_at_start(line)
    if start:
        waiting = {"reason": _ERROR.findall(line)[0], "message": start}
        status = {"name": UNKNOWN_CONTAINER, "state": {"waiting": waiting}}
        return [_pod_of_status({"phase": "Pending", "containerStatuses": [status]})]
    evicted = [*_eviction_messages(line)]
    return [*evicted, *_ends(line, are_evicted=bool(evicted))]


def _status_fragment(text: str) -> dict[str, Any] | None:
    """Return the pod of a text in YAML or JSON that is a status, or a complete part of one."""
    import yaml

    document = None
    with suppress(yaml.YAMLError):
        document = read_yaml(text)
    if document is None and text.lstrip().startswith('"'):  # A part of JSON has lost its braces.
        with suppress(yaml.YAMLError):
            document = read_yaml(f"{{{text}}}")
    status: Any = document.value if document is not None else None
    if isinstance(status, dict) and isinstance(status.get("status"), dict):
        status = status["status"]
    if isinstance(status, dict) and "exitCode" in status and "state" not in status:
        status = {"terminated": status}
    if isinstance(status, dict) and "terminated" in status:
        status = {"lastState": status}
    containers = status if isinstance(status, list) else [status]
    if all(isinstance(item, dict) and _STATES & {*item} and "exitCode" not in item for item in containers):
        status = {"containerStatuses": [{"name": UNKNOWN_CONTAINER, **item} for item in containers]}
    is_status = isinstance(status, dict) and not _STATUS_FIELDS.isdisjoint(status)
    return _pod_of_status(status) if is_status else None


def _pod_of_status(
    status: dict[str, Any], metadata: Mapping[str, Any] = _UNNAMED, spec: Mapping[str, Any] = _ON_A_NODE
) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def _eviction_messages(text: str) -> Iterator[dict[str, Any]]:
    """Yield the pods of a text that has only a kubelet's messages about evicting them."""
    metadata = {"name": _UNKNOWN_NAME, **dict(_NAMED.findall(text)[::-1])}
    for logged in _LOGGED.finditer(text):
        resource, namespace, name = (
            logged[field] or logged[f"old_{field}"] for field in ("resource", "namespace", "name")
        )
        message = f"low on resource: {resource}" if resource else ""
        yield _evicted({"namespace": namespace, "name": name}, message)
    messages = dict.fromkeys((why, match[0]) for why, form in _MESSAGES for match in form.finditer(text))
    for reason, message in messages:
        yield _evicted(metadata, message, reason)


def _evicted(metadata: Mapping[str, str], message: str, reason: str = "Evicted") -> dict[str, Any]:
    return _pod_of_status({"phase": "Failed", "reason": reason, "message": message}, metadata)


def _ends(text: str, *, are_evicted: bool) -> Iterator[dict[str, Any]]:
    """Yield the pods of a text with parts of their statuses, or with a runtime's output about a container.

    `are_evicted`: what ended as Evicted is known by the kubelet's message.
    """
    names = {name or "id": value or id_ for name, value, _, id_ in _OF_RUNTIME.findall(text)[::-1]}
    metadata = {field: names.get(f"pod.{field}", "") for field in ("name", "namespace", "uid")}
    if not metadata["name"]:
        metadata["namespace"], metadata["name"] = next(iter(_IN_PROSE.findall(text)), ("", _UNKNOWN_NAME))
    ends = [(match[0], end) for match in _END.finditer(text) if (end := _end(match[0])) is not None]
    whole = _end(text) if not ends else None
    if whole is not None and (whole["reason"] == "OOMKilled" or whole["exitCode"] == _SIGKILLED):
        ends = [("state", whole)]
    if not ends and _OF_PROCESS.search(text) is not None:
        ends = [("state", {"reason": SIGNALLED, "exitCode": UNKNOWN_EXIT, "signal": 9})]
    for where, end in ends:
        if are_evicted and end["reason"] == "Evicted":
            continue
        state = "lastState" if where.lower().startswith("last") else "state"
        status = {"name": names.get("container.name", UNKNOWN_CONTAINER), state: {"terminated": end}}
        status |= {"containerID": names.get("id", "")}
        yield _pod_of_status({"phase": "Running", "containerStatuses": [status]}, metadata)


def _end(text: str) -> dict[str, Any] | None:
    """Return how a container ended; None if a text has neither an exit code nor OOMKilled."""
    pairs = (
        (re.sub("^exit.*", "exitcode", name.lower()), value.strip("."))
        for name, value in _END_FIELD.findall(text)[::-1]
    )
    fields = {name: value for name, value in pairs if value not in {"null", "None"}}
    code, reason = _number(fields.get("exitcode", "")), fields.get("reason", "Error")
    reason = "OOMKilled" if fields.get("oomkilled") in _COUNTED else reason
    if code is None and reason != "OOMKilled":
        return None
    code = UNKNOWN_EXIT if code is None else code
    return {"exitCode": code, "reason": reason, "finishedAt": fields.get("finishedat")}


def _with_container(fields: _Fields) -> _Fields:
    """Lift the fields of a container to the top if the lines between are missing in the copied text."""
    for name, field in [*fields.items()]:
        if not {"State", "Last State"}.isdisjoint(field):
            if field.value or re.fullmatch("[a-z0-9-]+", name) is None:  # A user's remark above the copy.
                fields.update(field)
            else:
                fields.setdefault("Containers", _Fields([]))[name] = field
    return fields


def _objects(
    fields: _Fields, kind: str, name: str, node: str, described: set[str]
) -> Iterator[dict[str, Any]]:
    if "Involved Object" in fields:
        yield _described_event(fields)
        return
    is_node = not _OF_NODE.isdisjoint(fields) or any(map(_TABLE_OF_NODE.search, fields.lines))
    has_heading = "Events" in fields or ("Name" in fields and not is_node)
    rows = [*_rows(fields["Events"].lines if has_heading else fields.lines)]
    listed = [row for row in rows if _ended(row) and row["NAME"] not in described]
    only = listed[0] if len(listed) == 1 else {}
    own = next((row for row in listed if row["NAME"] == name), only)
    name = fields["Name"].value or own.get("NAME", name)
    involved = {
        "kind": _OBJECT if "Name" in fields else kind,
        "name": name,
        "namespace": fields["Namespace"].value or own.get("NAMESPACE", ""),
    }
    if is_node:
        node = fields["Name"].value or node
        involved |= {"kind": "Node", "name": node}
        yield _node(node, fields)
        pods = _rows(fields.lines)
        yield from (_summed_pod(row, node) for row in pods if row.keys() >= {"NAME", "MEMORYREQUESTS"})
    elif not _OF_POD.isdisjoint(fields) or fields["Reason"].value:
        involved["kind"] = "Pod"
        yield _pod(involved, fields)
        listed = [row for row in listed if own and row is not own]
    low = _LOW.search(fields["Message"].text) if own else None
    message = low[0] if low is not None and "Container" in low[0] else ""
    yield from (_listed_pod(row, row.get("MESSAGE") or (message if row is own else "")) for row in listed)
    has_event = {"REASON", "MESSAGE"}.issubset
    events = (row for row in rows if has_event(row) and row not in listed)
    yield from (_event(row, involved) for row in events if not (is_node and "STATUS" in row))
    yield from _measured([row for row in rows if row.get("MEMORY(BYTES)", "")[:1].isdecimal()])


def _measured(rows: list[dict[str, str]]) -> Iterator[dict[str, Any]]:
    """Yield the samples that kubectl top prints; without --containers a pod's container has no name."""
    pods: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        usage, name = {"memory": row["MEMORY(BYTES)"]}, row.get("POD", row["NAME"])
        if not {"MEMORY%", "MEMORY(%)"}.isdisjoint(row):
            yield {"kind": "NodeMetrics", "metadata": {"name": name}, "usage": usage}
        else:
            container = row["NAME"] if "POD" in row else UNKNOWN_CONTAINER
            sample = {"name": container, "usage": usage}
            pods.setdefault((row.get("NAMESPACE", ""), name), []).append(sample)
    for (namespace, name), containers in pods.items():
        metadata = {"namespace": namespace, "name": name}
        yield {"kind": "PodMetrics", "metadata": metadata, "containers": containers}


def _rows(lines: list[str]) -> Iterator[dict[str, str]]:
    """Yield the rows of tables; a cell begins under its heading, unless the columns were shifted."""
    titles: list[re.Match[str]] = []
    for line in lines:
        cells = [*_TITLE.finditer(line)]
        words = {cell[0].upper() for cell in cells}
        if any(words >= marks for marks in _TITLES) or _CHOSEN_TITLES.fullmatch(line):
            titles = cells
        elif titles and not set(line) <= {"-", " "}:
            begins = [title.start() for title in titles]
            values = [line[begin:end].strip() for begin, end in zip(begins, [*begins[1:], None], strict=True)]
            if any(line[begin - 1 : begin].strip() for begin in begins[1:]) or not values[-1]:
                values = re.split(r"  +", line.strip(), maxsplit=len(titles) - 1)
            names = [title[0].upper().replace(" ", "") for title in titles]
            names = [_SAME_TITLES.get(name, name) for name in names]
            if len(values) < len(names):
                names = [name for name in names if name not in _MAY_BE_EMPTY]
            if len(values) == len(names):
                row = dict(zip(names, values, strict=True))
                name = row.get("NAME", row.get("POD", "")).removeprefix("pod/")
                yield row | {"NAME": name} if "NAME" in row or "POD" in row else row
        elif not titles:
            yield from _row_without_titles(line.strip())


def _row_without_titles(line: str) -> Iterator[dict[str, str]]:
    pod = re.match(rf"{_POD_ROW}(\S+)", line)
    if pod is not None:
        yield dict(zip(("NAMESPACE", "NAME", "READY", "STATUS"), pod.groups(default=""), strict=True))
    elif re.match(_UNTITLED, line) is not None:
        cells = re.split(r":? {2,}", line)
        end = next(place for place, cell in enumerate(cells) if _LISTED.fullmatch(cell))
        *names, status = cells[: end + 1]
        # What follows a pod's name may be its namespace, node or container.
        own = next(
            (place for place, name in enumerate(names) if _OF_REPLICA.fullmatch(name)), len(names[:2]) - 1
        )
        namespace = names[0] if own == 1 else ""
        code = next((cell for cell in cells[end:] if cell.isdecimal()), "")
        message = next((cell for cell in cells[end:] if " " in cell), "")
        yield {"NAMESPACE": namespace, "NAME": names[own], "STATUS": status, "CODE": code, "MESSAGE": message}
    for titles in _EVENT_TITLES:
        values = re.split(r"  +", line, maxsplit=len(titles) - 1)
        row = dict(zip(titles, values, strict=False))
        is_event = len(values) == len(titles) and row["TYPE"] in {"Normal", "Warning"}
        if is_event and "/" in row.get("OBJECT", "/"):
            yield row


def _event(row: Mapping[str, str], involved: Mapping[str, str]) -> dict[str, Any]:
    kind, _, name = row.get("OBJECT", f"{row.get('KIND', '')}/{row.get('NAME', '')}").partition("/")
    name = name or _UNKNOWN_NAME
    component, _, host = row.get("FROM", "").partition(", ")  # kubectl before 1.19 has the node too.
    if kind:
        involved = {"kind": _KINDS.get(kind, kind), "name": name, "namespace": row.get("NAMESPACE", "")}
    elif not involved["kind"] or (involved["kind"] == _OBJECT and component == "kubelet"):
        # A kubelet has events of pods and of its node.
        is_of_node = row["REASON"] in NODE_MEMORY_REASONS
        of_node = {"kind": "Node", "name": host if not involved["kind"] else involved["name"]}
        involved = {**involved, **(of_node if is_of_node else {"kind": "Pod"})}
    times = re.search(r"\(x(\d{1,9}) ", row.get("LASTSEEN", row.get("AGE", "")))
    return {
        "kind": "Event",
        "involvedObject": {**involved, "fieldPath": row.get("SUBOBJECT", row.get("SUBOBJECTPATH", ""))},
        "type": row.get("TYPE", ""),
        "reason": row["REASON"],
        "message": row["MESSAGE"].replace("\v", "\n"),
        "count": int(times[1]) if times is not None else None,
        "source": {"component": component, "host": host},
    }


def _ended(row: Mapping[str, str]) -> str:
    """Return why a pod in a list ended; "" for other pods and rows. In custom columns it may be anywhere."""
    if "NAME" not in row or not {"TYPE", "KIND"}.isdisjoint(row):
        return ""
    cells = [row.get("STATUS", "")] if "READY" in row else row.values()
    return next(filter(_LISTED.fullmatch, cells), "")


def _listed_pod(row: Mapping[str, str], message: str) -> dict[str, Any]:
    """Return a pod in a list; the name of a killed container, and mostly its exit code, are unknown."""
    reason = _ended(row).removeprefix("Init:")
    codes = [_number(cell) for title, cell in row.items() if title.endswith(("EXIT", "CODE"))]
    code = UNKNOWN_EXIT if codes[:1] in ([], [None]) else codes[0]
    end = {"name": UNKNOWN_CONTAINER, "state": {"terminated": {"reason": reason, "exitCode": code}}}
    metadata = {"name": row["NAME"], "namespace": row.get("NAMESPACE", "")}
    is_killed = reason == "OOMKilled"
    pod = (
        _pod_of_status({"containerStatuses": [end]}, metadata)
        if is_killed
        else _evicted(metadata, message, reason)
    )
    return pod | {"spec": {"nodeName": row.get("NODE", _UNKNOWN_NAME)}}


def _described_event(fields: _Fields) -> dict[str, Any]:
    involved, source = fields["Involved Object"].values_below, fields["Source"].values_below
    return {
        "kind": "Event",
        "involvedObject": {name[0].lower() + name[1:].replace(" ", ""): involved[name] for name in involved},
        "type": fields["Type"].value,
        "reason": fields["Reason"].value,
        "message": fields["Message"].text,
        "count": _number(fields["Count"].value),
        "lastTimestamp": fields["Last Timestamp"].value,
        "source": {"component": source.get("Component", ""), "host": source.get("Host", "")},
    }


def _conditions(fields: _Fields) -> list[dict[str, str]]:
    """Return the conditions; the message of PodScheduled is that of the scheduler's last event."""
    names = ("TYPE", "STATUS", "REASON", "MESSAGE")
    events = [row for row in _rows(fields["Events"].lines) if row.get("REASON") == "FailedScheduling"]
    message = {"PodScheduled": events[-1]["MESSAGE"]} if events else {}
    # The heading of the table may be missing.
    rows = [
        row for row in _rows(fields["Conditions"].lines or fields.lines) if {"TYPE", "STATUS"} <= row.keys()
    ]
    rows = [{"MESSAGE": message.get(row["TYPE"], ""), **row} for row in rows if row["STATUS"] in _STATUSES]
    return [{name.lower(): row.get(name, "") for name in names} for row in rows]


def _node(name: str, fields: _Fields) -> dict[str, Any]:
    info = fields["System Info"].values_below
    titles = {"kubeletVersion": "Kubelet Version", "kernelVersion": "Kernel Version", "osImage": "OS Image"}
    status = {
        "capacity": fields["Capacity"].values_below,
        "allocatable": fields["Allocatable"].values_below,
        "conditions": _conditions(fields),
        "nodeInfo": {field: info[title] for field, title in titles.items() if title in info},
    }
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def _summed_pod(row: Mapping[str, str], node: str) -> dict[str, Any]:
    """Return a pod with one container that has the sums in its node's description.

    Pods in kube-system may be critical, which the text does not say: they get no process, and so no rank.
    Limits below the requests mean that some containers have no limit, so they are dropped.
    """
    resources: dict[str, dict[str, str]] = {"requests": {}, "limits": {}}
    for side, resource in product(resources, ("cpu", "memory")):
        amount = row.get(f"{resource}{side}".upper(), "0").partition(" ")[0]
        if amount != "0":
            resources[side][resource] = amount
    for resource, limit in [*resources["limits"].items()]:
        with suppress(QosError):
            if Quantity.parse(limit) < Quantity.parse(resources["requests"].get(resource, "0")):
                del resources["limits"][resource]
    state = "waiting" if row["NAMESPACE"] == "kube-system" else "running"
    containers = [{"name": UNKNOWN_CONTAINER, "resources": resources}]
    return _pod_of_status(
        {"phase": "Running", "containerStatuses": [{"name": UNKNOWN_CONTAINER, "state": {state: {}}}]},
        {"name": row["NAME"], "namespace": row["NAMESPACE"]},
        {"nodeName": node, "containers": containers},
    )


def _pod(involved: Mapping[str, str], fields: _Fields) -> dict[str, Any]:
    groups = {"container": fields["Containers"], "initContainer": fields["Init Containers"]}
    is_container = not {"State", "Last State"}.isdisjoint(fields)
    if is_container:
        groups["container"][UNKNOWN_CONTAINER] = fields
    node = _UNKNOWN_NAME if is_container else fields["Node"].value.partition("/")[0].replace("<none>", "")
    spec: dict[str, Any] = {
        "nodeName": node,
        "priority": _number(fields["Priority"].value),
        "priorityClassName": fields["Priority Class Name"].value,
    }
    containers = [container for group in groups.values() for container in group.values()]
    is_whole = bool(groups["container"]) and all(map(_has_resources, containers))
    if is_whole:
        for kind, group in groups.items():
            spec[f"{kind}s"] = [
                {
                    "name": name,
                    "resources": {key.lower(): container[key].values_below for key in ("Limits", "Requests")},
                    "env": [
                        {"name": key, "value": field.value} for key, field in container["Environment"].items()
                    ],
                    **{key.lower(): [*map(str.strip, container[key].lines)] for key in ("Command", "Args")},
                }
                for name, container in group.items()
            ]
        spec["volumes"] = [
            {
                "name": name,
                "emptyDir": {"medium": volume["Medium"].value, "sizeLimit": _set(volume["SizeLimit"])},
            }
            for name, volume in fields["Volumes"].items()
            if volume["Type"].value.startswith("EmptyDir")
        ]
    status = {
        "phase": fields["Status"].value.partition(" ")[0],
        "reason": "" if is_container else fields["Reason"].value,
        "message": "" if is_container else fields["Message"].text,
        "qosClass": fields["QoS Class"].value,
        "conditions": _conditions(fields),
    }
    for kind, group in groups.items():
        # Where the spec is not whole, a limit that it shows counts for its container alone.
        status[f"{kind}Statuses"] = [
            _status(*pair) | ({} if is_whole else _shown_limit(pair[1])) for pair in group.items()
        ]
    kind, _, owner = fields["Controlled By"].value.partition("/")
    owners = [{"kind": kind, "name": owner, "controller": True}] if owner else []
    metadata = {"name": involved["name"], "namespace": involved["namespace"], "ownerReferences": owners}
    return _pod_of_status(status, metadata, spec)


def _set(field: _Fields) -> str | None:
    """Return a value, or None for what kubectl shows as `<unset>`."""
    return None if field.value.startswith("<") else field.value or None


def _has_resources(container: _Fields) -> bool:
    """Return whether the text has all of Limits and Requests: their last line, or what follows them."""
    return not {"Environment", "Mounts"}.isdisjoint(container) or "memory" in container["Requests"]


def _shown_limit(container: _Fields) -> dict[str, Any]:
    """Return the resources of a status with the memory limit, if lines behind it prove that it is whole."""
    limit = container["Limits"]["memory"].value
    with suppress(QosError):
        Quantity.parse(limit)
        return {"resources": {"limits": {"memory": limit}}} if "Requests" in container else {}
    return {}


def _status(name: str, fields: _Fields) -> dict[str, Any]:
    restarts, container_id = _number(fields["Restart Count"].value), fields["Container ID"].value
    status: dict[str, Any] = {"name": name, "containerID": container_id, "restartCount": restarts or 0}
    for state, title in (("state", "State"), ("lastState", "Last State")):
        # Without their indent, the fields of a state are at its level.
        details = fields if fields[title].value and "Exit Code" in fields else fields[title]
        code = _number(details["Exit Code"].value)
        end: dict[str, Any] = {"reason": details["Reason"].value, "message": details["Message"].value}
        code = UNKNOWN_EXIT if code is None and end["reason"] == "OOMKilled" else code
        if code is not None:
            end |= {"exitCode": code, "finishedAt": _time(details["Finished"].value)}
        if fields[title].value in {"Waiting", "Running"} or code is not None:
            kind = fields[title].value.lower()
            status[state] = {kind: {} if kind == "running" else end}
    return status


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"-?[0-9]{1,10}", text) else None


def _time(text: str) -> str | None:
    """Return a time in RFC 3339; None for Go's zero time."""
    try:
        moment = datetime.strptime(text, "%a, %d %b %Y %H:%M:%S %z")
    except ValueError:
        return None
    return moment.isoformat().replace("+00:00", "Z") if moment.year > 1 else None
