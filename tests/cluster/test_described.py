"""What kubectl prints for people, as objects: describe pod, describe node, get events."""

import json
import re
from pathlib import Path
from textwrap import indent
from typing import Any, Final

import pytest
import yaml

from kubectl_qos.analysis.fix_list import fixes_on_nodes
from kubectl_qos.cluster.described import MORE
from kubectl_qos.cluster.documents import ParsedObjects, plain_documents
from kubectl_qos.cluster.files import FileSource
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.events import EventList
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.present.evidence import EVENT_MEANINGS
from kubectl_qos.present.kills import detail_lines, other_causes
from kubectl_qos.qos.eviction import lacks_stats
from kubectl_qos.qos.killers import Mechanism
from kubectl_qos.qos.kills.analyze import Kill, find_kills
from kubectl_qos.qos.reason import Confidence

STATE: Final = """\
State:          Waiting
  Reason:       CrashLoopBackOff
Last State:     Terminated
  Reason:       OOMKilled
  Exit Code:    137
  Started:      Tue, 10 Nov 2026 09:00:00 +0100
  Finished:     Tue, 10 Nov 2026 09:05:10 +0100
Ready:          False
Restart Count:  7
"""
RESOURCES: Final = """\
Limits:
  memory:  256Mi
Requests:
  memory:     128Mi
Environment:  <none>
Mounts:
  /cache from cache (rw)
"""
POD: Final = f"""\
Name:             web-0
Namespace:        shop
Priority:         1000
Node:             worker-2/10.0.0.12
Start Time:       Tue, 10 Nov 2026 08:12:01 +0100
Annotations:      example.com/note: kubectl: any text
Status:           Running
IPs:
  IP:  10.1.1.5
Init Containers:
  init:
    Container ID:  containerd://11
    Command:
      sleep: 1
    State:          Terminated
      Reason:       Completed
      Exit Code:    0
      Finished:     Tue, 10 Nov 2026 08:12:04 +0100
    Environment:    <none>
    Mounts:         <none>
Containers:
  app:
    Container ID:   containerd://22
{indent(STATE + RESOURCES, "    ")}\
Conditions:
  Type              Status
  Ready             False
Volumes:
  cache:
    Type:       EmptyDir (a temporary directory that shares a pod's lifetime)
    Medium:     Memory
QoS Class:                   Burstable
Events:
  Type     Reason     Age                  From     Message
  ----     ------     ----                 ----     -------
  Warning  BackOff    4m (x90 over 50m)    kubelet  Back-off restarting failed container app
"""
OOM_KILLING: Final = (
    "Memory cgroup out of memory: Killed process 350 (worker) total-vm:753508kB, anon-rss:58776kB,"
    " file-rss:29400kB, shmem-rss:0kB, UID:0 pgtables:288kB oom_score_adj:999"
)
NODE: Final = f"""\
Name:               worker-2
Roles:              <none>
Conditions:
  Type             Status  LastHeartbeatTime                 Reason                       Message
  ----             ------  -----------------                 ------                       -------
  MemoryPressure   True    Tue, 10 Nov 2026 09:05:10 +0100   KubeletHasInsufficientMemory not enough
Capacity:
  memory:             16374096Ki
Allocatable:
  memory:             15656272Ki
System Info:
  Kernel Version:             5.15.0-1050-aws
  Kubelet Version:            v1.28.3
Events:
  Type     Reason      Age              From            Message
  ----     ------      ----             ----            -------
  Warning  SystemOOM   12m              kubelet         System OOM encountered, victim process: a b, pid: 48
  Warning  OOMKilling  3m (x2 over 9m)  kernel-monitor  {OOM_KILLING}
"""
PODS: Final = """\
Non-terminated Pods:          (2 in total)
  Namespace                   Name          CPU Requests  CPU Limits  Memory Requests  Memory Limits  Age
  ---------                   ----          ------------  ----------  ---------------  -------------  ---
  shop                        api-0         250m (6%)     500m (12%)  128Mi (1%)       256Mi (3%)     10h
  kube-system                 kube-proxy-x  100m (2%)     0 (0%)      0 (0%)           0 (0%)         10h
"""
EVICTED: Final = "The node was low on resource: memory. Container app was using 900Mi, request is 128Mi."
EVENTS: Final = f"""\
NAMESPACE   LAST SEEN          TYPE      REASON      OBJECT          MESSAGE
default     12m                Warning   OOMKilling  node/worker-2   {OOM_KILLING}
shop        3m (x4 over 10m)   Warning   Evicted     pod/web-0       {EVICTED}
shop        5m                 Normal    Scheduled   pod/web-1       Successfully assigned shop/web-1
"""
OLD_EVENTS: Final = f"""\
LAST SEEN   TYPE      REASON    KIND   SUBOBJECT   NAME    MESSAGE
3m          Warning   Evicted   Pod                web-0   {EVICTED}
"""
_WIDE: Final = "{:12}{:10}{:13}{:16}{:12}{:19}{:207}{:13}{:8}{}\n"
WIDE_EVENTS: Final = "".join(
    _WIDE.format(*row)
    for row in (
        (
            "LAST SEEN",
            "TYPE",
            "REASON",
            "OBJECT",
            "SUBOBJECT",
            "SOURCE",
            "MESSAGE",
            "FIRST SEEN",
            "COUNT",
            "NAME",
        ),
        (
            "12m",
            "Warning",
            "OOMKilling",
            "node/worker-2",
            "",
            "monitor, worker-2",
            OOM_KILLING,
            "12m",
            "1",
            "a.17",
        ),
        ("3m", "Warning", "Evicted", "pod/web-0", "", "kubelet, worker-2", EVICTED, "3m", "1", "b.18"),
    )
)
_OLD: Final = "  {:12}{:12}{:8}{:28}{:15}{:11}{:13}{}\n"
OLD_EVENTS_OF_NODE: Final = "Events:\n" + "".join(
    _OLD.format(*row)
    for row in (
        ("FirstSeen", "LastSeen", "Count", "From", "SubobjectPath", "Type", "Reason", "Message"),
        ("14m", "14m", "1", "kernel-monitor, gke-a-default-1", "", "Warning", "OOMKilling", OOM_KILLING),
        ("14m", "14m", "1", "kubelet, gke-a-default-1", "", "Warning", "Evicted", EVICTED),
    )
)


def read(text: str) -> ParsedObjects:
    parsed = ParsedObjects()
    parsed.add_file(text.encode(), "x.txt")
    assert not parsed.problems
    assert [warning for warning in parsed.warnings if MORE not in warning] == []
    return parsed


def kills(text: str) -> list[Kill]:
    parsed = read(text)
    snapshot = Snapshot(pods=(*parsed.pods, *parsed.partial_pods), nodes=parsed.nodes)
    return find_kills(snapshot, EventList(tuple(parsed.events)))


def mechanisms(text: str) -> dict[str, Mechanism]:
    return {kill.pod or kill.node: kill.diagnosis.mechanism for kill in kills(text)}


@pytest.mark.parametrize(
    "text",
    [
        POD,
        POD.replace("\n", "\r\n"),
        f"```\n{indent(POD, '    ')}```\n",
        indent(POD, "> ", lambda _: True),
        f"me@host:~$ kubectl describe pod web-0 -n shop\n{POD}",
        f"[root@host ~]# kubectl -n shop describe pod web-0\n{POD}",
        f"\u276f k describe po web-0\n{POD}",
    ],
    ids=["as it is", "Windows", "indented", "quoted", "with its command", "of root", "by an alias"],
)
def test_a_pod(text: str) -> None:
    parsed = read(text)
    (pod,), (event,) = parsed.pods, parsed.events
    assert (pod.namespace, pod.name, pod.node_name, pod.spec.priority) == ("shop", "web-0", "worker-2", 1000)
    assert [container.name for container in (*pod.init_containers, *pod.containers)] == ["init", "app"]
    assert [str(pod.containers[0].limits["memory"]), str(pod.containers[0].requests["memory"])] == [
        "256Mi",
        "128Mi",
    ]
    (volume,) = pod.spec.volumes or ()
    assert volume.empty_dir is not None
    assert (volume.name, volume.empty_dir.medium) == ("cache", "Memory")
    assert (event.reason, event.involved_object.name, event.times, event.component) == (
        "BackOff",
        "web-0",
        90,
        "kubelet",
    )
    (kill,) = kills(text)
    assert (kill.pod, kill.container, kill.exit_code, kill.container_id) == ("web-0", "app", 137, "")
    assert kill.time == "2026-11-10T09:05:10+01:00"
    assert (kill.diagnosis.mechanism, kill.diagnosis.confidence) == (
        "container limit",
        Confidence.LIKELY,
    )


@pytest.mark.parametrize(
    ("text", "pod"),
    [
        (STATE, "<unknown>"),
        (f"$ kubectl describe po web-0\n{indent(STATE, '    ')}", "web-0"),
        (f"$ kubectl describe pod -l app=web\n{indent(STATE, '    ')}", "<unknown>"),
        (STATE.replace("Last State: ", "Last Termination State: "), "<unknown>"),
        (POD.replace(indent(RESOURCES, "    "), ""), "web-0"),
        (f"% kubectl describe pod -n shop web-0\nName:   web-0\n<snip>\n{indent(STATE, '    ')}", "web-0"),
        (f"$ kubectl describe pod -n shop web-0\n  app:\n{indent(STATE, '    ')}", "web-0"),
        (f"Status:  Failed\nInit Containers:\n  app:\n{indent(STATE, '    ')}\n...", "<unknown>"),
    ],
    ids=[
        "no name",
        "named in the command",
        "by a label",
        "before Kubernetes 1.2",
        "cut",
        "left out",
        "of a container",
        "of init containers",
    ],
)
def test_what_a_container_requests_is_unknown_where_the_text_does_not_have_it(text: str, pod: str) -> None:
    parsed = read(text)
    assert not parsed.pods
    (kill,) = kills(text)
    assert (kill.pod, kill.diagnosis.mechanism, kill.diagnosis.confidence) == (
        pod,
        Mechanism.KERNEL,
        Confidence.LIKELY,
    )
    assert "has a memory limit" not in " ".join(detail_lines(kill))


@pytest.mark.parametrize("rest", ["", "Containers:\n  proxy:\n    State:  Running\nQoS Class:  Burstable\n"])
def test_a_limit_counts_for_its_container_where_those_of_others_are_cut(rest: str) -> None:
    setup = f"Init Containers:\n  setup:\n{indent(STATE + RESOURCES.partition('Env')[0], '    ')}"
    text = f"Name:       web-0\nNode:       worker-2/10.0.0.12\n{setup}{rest}"
    assert not read(text).pods, "its class is unknown"
    (kill,) = kills(text)
    assert (kill.container, kill.diagnosis.mechanism) == ("setup", "container limit")
    assert "the container's memory limit is 256Mi now" in " ".join(detail_lines(kill))
    (cut,) = kills(text.replace("    Requests:\n      memory:     128Mi\n", ""))
    assert cut.diagnosis.mechanism is Mechanism.KERNEL, "the number may be cut too"


@pytest.mark.parametrize("time", ["Mon, 01 Jan 0001 00:00:00 +0000", "<unknown>", ""])
def test_a_time_that_is_none(time: str) -> None:
    (kill,) = kills(POD.replace("Tue, 10 Nov 2026 09:05:10 +0100", time))
    assert kill.time == ""


def test_a_text_that_ends_behind_the_requests_has_them() -> None:
    (pod,) = read(f"Containers:\n  app:\n{indent(STATE + RESOURCES.partition('Env')[0], '    ')}").pods
    assert str(pod.containers[0].limits["memory"]) == "256Mi"


def test_of_one_container_the_limit_of_its_pod_is_unknown() -> None:
    text = f"{STATE}{RESOURCES}"
    (pod,), (kill,) = read(text).pods, kills(text)
    (fix,) = fixes_on_nodes(Snapshot(pods=(pod,)), ["<unknown>"], Scope()).fixes
    assert [str(edit.quantity) for edit in fix.edits] == ["512Mi"]
    assert "the kernel log of the node: kubectl qos kills --kernel-log FILE" in " ".join(detail_lines(kill))
    assert (kill.diagnosis.mechanism, kill.diagnosis.confidence) == (
        "container limit",
        Confidence.LIKELY,
    )


def test_the_pods_of_a_node_have_their_sums_and_those_of_kube_system_no_rank() -> None:
    parsed = read(NODE.replace("Events:", f"{PODS}Events:"))
    api, proxy = parsed.pods
    assert (api.namespace, api.name, api.node_name) == ("shop", "api-0", "worker-2")
    assert [str(api.containers[0].limits[name]) for name in ("cpu", "memory")] == ["500m", "256Mi"]
    assert {**proxy.containers[0].limits} == {}
    assert [pod.status.every_container[0].has_processes for pod in (api, proxy)] == [True, False]
    assert not lacks_stats(proxy), "it may run, so it is not evicted before all others"
    assert (
        "pods of a described node count as one container each, and those of kube-system" in parsed.warnings[0]
    )
    (prometheus, _) = read(NODE.replace("Events:", f"{PODS.replace('256Mi (3%)', '50Mi (0%) ')}Events:")).pods
    assert [*prometheus.containers[0].limits] == ["cpu"], "50Mi is the limit of one container of several"


def test_the_tables_of_a_node_without_their_headings() -> None:
    text = re.sub("^(Conditions|Non-terminated Pods|Events):.*\n", "\n", NODE + PODS, flags=re.MULTILINE)
    parsed = read(text)
    (condition,) = parsed.nodes["worker-2"].status.conditions or ()
    assert condition.is_memory_pressure
    assert [event.reason for event in parsed.events] == ["SystemOOM", "OOMKilling"]
    assert [(pod.node_name, pod.name) for pod in parsed.pods] == [
        ("worker-2", "api-0"),
        ("worker-2", "kube-proxy-x"),
    ]
    assert "pods of a described node count as one container each" in parsed.warnings[0]


@pytest.mark.parametrize(
    "begin", ["Conditions:", "  Type", "Capacity:", "Allocatable:", "Non-term", "  Namespace"]
)
def test_a_description_of_a_node_that_is_cut_at_its_beginning(begin: str) -> None:
    text = NODE.replace("Events:", f"{PODS}Events:")
    parsed = read(text[text.index(f"\n{begin}") + 1 :])
    assert [pod.name for pod in parsed.pods] == ["api-0", "kube-proxy-x"]
    ((name, node),) = parsed.nodes.items()
    has_sizes = begin not in {"Non-term", "  Namespace"}
    assert (name, "memory" in (node.status.allocatable or ())) == ("<unknown>", has_sizes)
    assert {event.reason for event in parsed.events} == {"SystemOOM", "OOMKilling"}
    notes = " ".join(other_causes(Snapshot(nodes=parsed.nodes), parsed.events))
    assert ("memory is short on the node" in notes) is (begin in {"Conditions:", "  Type"})


def test_why_a_pod_has_no_node_is_in_its_last_event() -> None:
    waits = [
        f"  Warning  FailedScheduling  {age}m  default-scheduler  0/3 nodes are available: {why}.\n"
        for age, why in ((9, "3 Insufficient cpu"), (2, "3 Insufficient memory"))
    ]
    (pod,) = read(POD.replace("Ready             False", "PodScheduled      False") + "".join(waits)).pods
    messages = [condition.message for condition in pod.status.conditions or ()]
    assert messages == ["0/3 nodes are available: 3 Insufficient memory."]


TOP: Final = """\
$ kubectl top pod -A
NAMESPACE   NAME    CPU(cores)   MEMORY(bytes)
shop        api-0   12m          250Mi
$ kubectl top nodes
NAME       CPU(cores)   CPU(%)      MEMORY(bytes)   MEMORY(%)
worker-2   120m         6%          3100Mi          78%
worker-3   <unknown>    <unknown>   <unknown>       <unknown>
"""


@pytest.mark.parametrize(
    ("text", "usage"),
    [
        (NODE.replace("Events:", f"{PODS}Events:") + TOP, {("api-0", "<unknown>"): 250}),
        (
            TOP.replace("NAMESPACE   ", "").replace("shop        api-0", "web-0") + POD,
            {("web-0", "app"): 250},
        ),
        (
            f"POD    NAME  CPU(cores)  MEMORY(bytes)\nweb-0  app   1m   250Mi\nweb-0  init  0m   1Mi\n{POD}",
            {("web-0", "app"): 250, ("web-0", "init"): 1},
        ),
    ],
    ids=["of a described node", "without a namespace", "of containers"],
)
def test_kubectl_top_has_the_usage(text: str, usage: dict[tuple[str, str], int], tmp_path: Path) -> None:
    file = tmp_path / "x.txt"
    file.write_text(text)
    snapshot = FileSource([str(file)]).snapshot(Scope())
    amounts = {
        (pod.name, name): amount
        for pod in snapshot.pods
        if pod.key in snapshot.usage
        for name, amount in zip(snapshot.usage[pod.key].names, snapshot.usage[pod.key].amounts, strict=True)
    }
    assert amounts == {key: mi << 20 for key, mi in usage.items()}
    assert snapshot.node_usage == ({"worker-2": 3100 << 20} if "worker-2 " in text else {})


def test_a_name_of_two_namespaces_gets_no_usage_without_one(tmp_path: Path) -> None:
    file = tmp_path / "x.txt"
    top = "NAME    CPU(cores)   MEMORY(bytes)\nweb-0   12m          250Mi\n"
    file.write_text(top + POD + POD.replace("shop", "other"))
    snapshot = FileSource([str(file)]).snapshot(Scope())
    assert not {pod.key for pod in snapshot.pods} & snapshot.usage.keys()


def test_the_status_of_a_pod_that_was_evicted_alone() -> None:
    text = f"`Status:       Failed\nReason:       Evicted\nMessage:      {EVICTED}\n`"
    (kill,) = kills(text)
    assert (kill.diagnosis.mechanism, kill.diagnosis.confidence) == ("kubelet eviction", Confidence.CERTAIN)
    assert "then by priority, then by how far above" in " ".join(" ".join(detail_lines(kill)).split())


EXCESS: Final = f"{EVICTED.removesuffix('.')}, has larger consumption of memory."


def broken(*places: str, with_: str = "") -> str:
    """The sentence, with a line's end behind each of these places."""
    text = EXCESS
    for place in places:
        text = text.replace(place, f"{place.rstrip()}\n{with_}", 1)
    return text


DESCRIBED: Final = "Name:   web-0\nStatus:  Failed\nReason:  Evicted\nMessage: "


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (EXCESS, "<unknown>"),
        ("$ oc get pod -o yaml | yq .status.message\n" + broken("memory. ", "128Mi, "), "<unknown>"),
        ("message: '" + broken("was ", with_="  ") + " '\nphase: Failed\nreason: Evicted", "<unknown>"),
        ('involvedObject: {\nname: "web-0",\napiVersion: "v1",\n},\nmessage: "' + EXCESS + ' ",', "web-0"),
        (DESCRIBED + broken("requ"), "web-0"),
        (DESCRIBED + broken("request "), "web-0"),
        (re.sub(r", request is.*", ", which exceeds its request of 128Mi", EXCESS), "<unknown>"),
    ],
    ids=[
        *("alone", "of yq", "of a status", "of an event", "broken in a word", "broken between words"),
        "without its full stop",
    ],
)
def test_what_the_kubelet_says_of_an_eviction_is_enough(text: str, name: str) -> None:
    (kill,) = kills(text)
    assert (kill.pod, kill.diagnosis.mechanism) == (name, "kubelet eviction")
    assert "used 900Mi of memory, 772Mi above its request," in " ".join(" ".join(detail_lines(kill)).split())


@pytest.mark.parametrize(
    ("text", "reason", "mechanism"),
    [
        (
            "lastState:\n  terminated:\n    exitCode: 137\n    reason: OOMKilled\n",
            "OOMKilled",
            Mechanism.KERNEL,
        ),
        (
            '"lastState": {\n"terminated": {\n"exitCode": 137,\n"reason": "Error"\n}\n},',
            "Error",
            Mechanism.UNKNOWN,
        ),
        (
            '"State": {\n"Status": "exited",\n"OOMKilled": true,\n"ExitCode": 137\n},',
            "OOMKilled",
            Mechanism.KERNEL,
        ),
        (
            '"State": {\n"Status": "exited",\n"OOMKilled": false,\n"ExitCode": 137\n},',
            "Error",
            Mechanism.UNKNOWN,
        ),
        ("map[terminated:map[exitCode:137 reason:OOMKilled ...]]", "OOMKilled", Mechanism.KERNEL),
        ("map[terminated:map[exitCode:137 reason:OOM Killed ...]]", "OOMKilled", Mechanism.KERNEL),
        ("Last State: Terminated Reason: OOMKilled Exit Code: 137 Started: x", "OOMKilled", Mechanism.KERNEL),
        ("      Reason:       OOMKilled\n      Exit Code:    137\n", "OOMKilled", Mechanism.KERNEL),
        ("Error in container build: exit code: 137, reason: 'OOMKilled'", "OOMKilled", Mechanism.KERNEL),
        ("[a0-n0-0] terminated with exit code (137). Reason [Error].", "Error", Mechanism.UNKNOWN),
        ("main: OOMKilled (exit code 137)", "OOMKilled", Mechanism.KERNEL),
        (
            """exit code 137.\nThe API gave this brief reason: null\nterminated=ContainerStateTerminated(
            exitCode=137, finishedAt=Time(time=2020-01-10T00:51:06Z), reason=OOMKilled)""",
            "OOMKilled",
            Mechanism.KERNEL,
        ),
    ],
    ids=[
        "a status",
        "of JSON",
        "of docker inspect",
        "that the runtime did not count",
        "of Go",
        "of the first kubelets",
        "in a line",
        "lines that were searched for",
        "of GitLab",
        "of Flyte",
        "of Argo",
        "of Spark",
    ],
)
def test_a_part_of_a_status_says_how_its_container_ended(
    text: str, reason: str, mechanism: Mechanism
) -> None:
    (kill,) = kills(f"restartCount: 3\n{text}")
    assert (kill.exit_code, kill.reason, kill.diagnosis.mechanism) == (137, reason, mechanism)
    assert (kill.pod, kill.container) == ("<unknown>", "<unknown>")
    assert kill.time == ("2020-01-10T00:51:06Z" if "00:51:06" in text else "")


OWN_STORAGE: Final = "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. "
ENDED: Final = {"exitCode": 137, "finishedAt": None, "message": "lost", "reason": "ContainerStatusUnknown"}
CONTAINER: Final = {"name": "app", "restartCount": 1, "state": {"terminated": ENDED}, "lastState": {}}
STATUS: Final = {
    "containerStatuses": [CONTAINER],
    "message": OWN_STORAGE,
    "phase": "Failed",
    "reason": "Evicted",
}


@pytest.mark.parametrize(
    ("status", "container", "mechanism"),
    [
        (STATUS, "app", Mechanism.STORAGE_LIMIT),
        ({"status": STATUS}, "app", Mechanism.STORAGE_LIMIT),
        ([CONTAINER], "app", Mechanism.UNKNOWN),
        ({"containerStatuses": [CONTAINER]}, "app", Mechanism.UNKNOWN),
        ({"terminated": ENDED}, "<unknown>", Mechanism.UNKNOWN),
        (ENDED, "<unknown>", Mechanism.UNKNOWN),
    ],
    ids=[
        "a status",
        "with its name",
        "of containers",
        "of containers with their name",
        "an end",
        "its fields",
    ],
)
def test_a_status_alone_in_json_and_yaml(status: Any, container: str, mechanism: Mechanism) -> None:
    for text in (json.dumps(status), json.dumps(status, indent=2), yaml.safe_dump(status)):
        (kill,) = kills(text)
        assert (kill.pod, kill.container, kill.diagnosis.mechanism) == ("<unknown>", container, mechanism)
        assert kill.reason == "ContainerStatusUnknown"


LABELS: Final = {f"io.kubernetes.{name}": name for name in ("container.name", "pod.name", "pod.namespace")}
DOCKER: Final = {"Status": "exited", "OOMKilled": True, "ExitCode": 137, "FinishedAt": "2026-11-20T12:00:00Z"}
CRICTL: Final = {
    "state": "CONTAINER_EXITED",
    "exitCode": 137,
    "reason": "OOMKilled",
    "finishedAt": DOCKER["FinishedAt"],
}


@pytest.mark.parametrize(
    ("inspected", "is_named"),
    [
        ({"status": {"id": "7f" * 32, "labels": LABELS, **CRICTL}, "info": {"pid": 0}}, True),
        ([{"Id": "7f" * 32, "State": DOCKER, "Config": {"Labels": LABELS}}], True),
        (DOCKER, False),
    ],
    ids=["crictl inspect", "docker inspect", "its state"],
)
def test_what_a_runtime_says_of_a_container(inspected: Any, *, is_named: bool) -> None:
    names = ("pod.namespace", "pod.name", "container.name") if is_named else ("", "<unknown>", "<unknown>")
    for text in (json.dumps(inspected, indent=4), yaml.safe_dump(inspected).replace("'", "")):
        (kill,) = kills(text)
        assert (kill.time, kill.exit_code, kill.reason) == ("2026-11-20T12:00:00Z", 137, "OOMKilled")
        assert (kill.container_id == "7f" * 32) == is_named
        assert (kill.namespace, kill.pod, kill.container) == names
        head = (
            "pod pod.namespace/pod.name, container container.name" if is_named else "a pod without its name"
        )
        assert next(detail_lines(kill)) == head


REFUSED: Final = (
    "Node didn't have enough resource: memory, requested: 2254438400, used: 573025, capacity: 576395"
)


def test_a_status_as_a_client_in_python_prints_it() -> None:
    end = {"exit_code": 137, "finished_at": "2026-11-20 12:00:00+00:00", "reason": "OOMKilled"}
    container = {"name": "build", "last_state": {"terminated": None}, "state": {"terminated": end}}
    (kill,) = kills(
        json.dumps({"container_statuses": [container], "phase": "Failed", "qos_class": "Burstable"})
    )
    assert (kill.container, kill.time, kill.reason) == ("build", "2026-11-20T12:00:00+00:00", "OOMKilled")


def test_what_is_left_of_what_a_runtime_says() -> None:
    (kill,) = kills('{\n"state": "CONTAINER_EXITED",\n"reason": "OOMKilled",\n}')
    assert (kill.exit_code, kill.reason, kill.diagnosis.mechanism) == (None, "OOMKilled", Mechanism.KERNEL)


@pytest.mark.parametrize(
    ("text", "mechanism"),
    [
        (
            "The API gave this brief reason: Preempting\nmessage: Preempted in order to admit critical pod",
            Mechanism.PREEMPTION,
        ),
        (
            "CannotStartContainerError: OCI runtime create failed: container init was OOM-killed: unknown",
            Mechanism.START_LIMIT,
        ),
        (f"OutOfmemory: Pod {REFUSED}", Mechanism.REJECTION),
        ("status:\n  phase: Failed\n  reason: OutOfmemory\n", Mechanism.REJECTION),
        (
            "NAME        READY   STATUS       RESTARTS  AGE\n<unknown>   0/1     OutOfmemory  0         7s",
            Mechanism.REJECTION,
        ),
        ("web Evicted n1  Pod The node had condition: [DiskPressure].", Mechanism.REJECTION),
    ],
    ids=[
        *("of Spark", "of docker", "a refusal", "the status of a refusal", "a refusal in a list"),
        "a refusal under pressure",
    ],
)
def test_what_a_kubelet_or_a_runtime_said_alone(text: str, mechanism: Mechanism) -> None:
    (kill,) = kills(text)
    assert (kill.pod, kill.diagnosis.mechanism) == ("<unknown>", mechanism)
    assert kill.diagnosis.confidence is Confidence.CERTAIN
    assert kill.reason in {"", "CannotStartContainerError"}


AIRFLOW: Final = (
    "Task t1 failed in pod shop/t1-9. reason: None, container_name: base, container_reason: OOMKilled,"
    " exit_code: 137"
)
SPARK: Final = (
    "container name: executor\n container finished at: 2026-11-20T12:00:00Z\n exit code: 137\n"
    " termination reason: OOMKilled"
)
DOCKER_EVENTS: Final = (
    f"container oom {'7f' * 32} (io.kubernetes.pod.name=t1, io.kubernetes.pod.namespace=shop)\n"
    f"container die {'7f' * 32} (exitCode=137, image=a:1)"
)


@pytest.mark.parametrize(
    ("text", "where", "how"),
    [
        (
            "Pod shop/web-1, container app OOMKilled (exit code 137), 5 restarts.",
            ("shop", "web-1"),
            "OOMKilled",
        ),
        (
            "'state': {'terminated': {'exit_code': 137, 'reason': 'OOMKilled'}}",
            ("", "<unknown>"),
            "OOMKilled",
        ),
        ("app_1 exited with code 137", ("", "<unknown>"), "Error"),
        ("3f9a   app:1   Exited (137) 5 minutes ago   app_1", ("", "<unknown>"), "Error"),
        (AIRFLOW, ("shop", "t1-9"), "OOMKilled"),
        (SPARK, ("", "<unknown>"), "OOMKilled"),
        (DOCKER_EVENTS, ("shop", "t1"), "OOMKilled"),
    ],
    ids=["a sentence", "Python", "docker compose", "docker ps", "Airflow", "Spark", "docker events"],
)
def test_an_end_in_the_words_of_other_programs(text: str, where: tuple[str, str], how: str) -> None:
    (kill,) = kills(text)
    assert ((kill.namespace, kill.pod), kill.exit_code, kill.reason) == (where, 137, how)


@pytest.mark.parametrize(
    "text",
    [
        "2026/11/20 12:00:07 [alert] 1#0: worker process 31 exited on signal 9",
        "DAMN ! worker 1 (pid: 9) died, killed by signal 9 :( trying respawn ...",
        "[1] [ERROR] Worker (pid:27) was sent SIGKILL! Perhaps out of memory?",
        "WorkerLostError: Worker exited prematurely: signal 9 (SIGKILL) Job: 3.",
        "npm ERR! code ELIFECYCLE\nnpm ERR! signal SIGKILL",
        "INFO - Task exited with return code Negsignal.SIGKILL",
        "Process exited with return code -9",
        "/app/run.sh: line 10:    93 Killed                  python run.py",
        "c++: fatal error: Killed signal terminated program cc1plus",
    ],
)
def test_a_program_says_that_sigkill_ended_a_process(text: str) -> None:
    (kill,) = kills(text)
    assert (kill.exit_code, kill.diagnosis.mechanism) == (None, Mechanism.UNKNOWN)
    assert kill.diagnosis.confidence is Confidence.POSSIBLE
    said = " ".join(" ".join(detail_lines(kill)).split())
    assert "a program says that SIGKILL ended one of its processes" in said
    assert "no OOM kill" not in said, "nobody has counted"
    assert "exit code 137 and OOMKilled" in " ".join(detail_lines(kills(f"{text}\n{STATE}")[0]))


def test_a_list_of_pods_in_which_nothing_ended_hides_no_eviction() -> None:
    listed = (
        "NAME    READY   STATUS                   RESTARTS   AGE\nweb-0   0/2     ContainerStatusUnknown   2"
    )
    (kill,) = kills(f"$ oc get pods\n{listed}   31m\n\n$ oc get pods | yq .message\n{EXCESS}")
    assert kill.diagnosis.mechanism == "kubelet eviction"


def test_a_described_pod_has_its_priority_class_its_owner_and_the_size_of_its_volumes() -> None:
    text = POD.replace(
        "Priority:  ", "Priority Class Name:  system-node-critical\nControlled By:  DaemonSet/net\n    X:"
    )
    (pod,) = read(text.replace("Medium:     Memory", "Medium:     Memory\n    SizeLimit:  2Gi")).pods
    (volume,), (owner,) = pod.spec.volumes or (), pod.metadata.owner_references or ()
    assert pod.spec.priority_class_name == "system-node-critical"
    assert volume.empty_dir is not None
    assert (owner.kind, owner.name, volume.empty_dir.size_limit) == ("DaemonSet", "net", "2Gi")
    (pod,) = read(POD.replace("Medium:     Memory", "Medium:     Memory\n    SizeLimit:  <unset>")).pods
    (volume,) = pod.spec.volumes or ()
    assert volume.empty_dir is not None
    assert volume.empty_dir.size_limit is None


@pytest.mark.parametrize(
    ("message", "sender"),
    [
        ("Container app failed liveness probe, will be restarted", "its kubelet, which was stopping it"),
        ("", ""),
    ],
)
def test_a_sigkill_of_the_kubelet_is_not_from_elsewhere(message: str, sender: str) -> None:
    text = POD.replace("OOMKilled", "Error").replace("BackOff    4m", "Killing    4m", 1)
    text = text.replace("Back-off restarting failed container app", message or "Container app is fine")
    (kill,) = kills(text)
    said = next(line for line in detail_lines(kill) if "likely:" in line or "possible:" in line)
    assert said.startswith(f"likely: SIGKILL from {sender}: no sign") if sender else "SIGKILL" not in said


def test_a_text_that_begins_within_a_container() -> None:
    text = POD[POD.index("    State:          Waiting") :]
    (kill,) = kills(f"      --metrics-addr=127.0.0.1:8080\n{text}")
    assert (kill.exit_code, kill.reason, kill.diagnosis.mechanism) == (137, "OOMKilled", "container limit")


def test_what_a_person_wrote_above_the_lines_is_no_container() -> None:
    (kill,) = kills(f"Hello, this is what I see:\n\n{indent(STATE + RESOURCES, '    ')}\nWhat can I do?\n")
    assert (kill.container, kill.diagnosis.mechanism) == ("<unknown>", "container limit")


def test_what_a_person_wrote_next_to_the_lines() -> None:
    state = STATE.replace("OOMKilled\n", "OOMKilled   ← here\n").replace("137\n", "137   <-- SIGKILL\n")
    (kill,) = kills(f"# {state}".replace("\n", "\n# "))
    assert (kill.exit_code, kill.reason) == (137, "OOMKilled")


def test_a_container_that_runs() -> None:
    runs = "State:          Running\n      Started:      Tue, 10 Nov 2026 09:05:11 +0100\n"
    waits = "State:          Waiting\n      Reason:       CrashLoopBackOff\n"
    assert waits in POD
    (kill,) = kills(POD.replace(waits, runs))
    assert (kill.container, kill.reason) == ("app", "OOMKilled")


def test_a_page_in_the_frame_of_a_terminal() -> None:
    framed = "\n".join(f"│ {line:<120} │" for line in POD.splitlines())
    assert kills(framed) == kills(POD)


def test_a_page_that_ends_within_its_init_containers() -> None:
    begin = POD[: POD.index("Containers:\n  app")].replace("Completed", "OOMKilled").replace(": sleep", "")
    (kill,) = kills(f"{begin}    Limits:\n      memory: 20Mi\n    Requests:\n      memory: 20Mi\n")
    assert (kill.pod, kill.container) == ("web-0", "init")


def test_the_node_of_an_event_is_in_its_source() -> None:
    (kill,) = kills("  Warning  SystemOOM  12m (x4 over 25m)  kubelet, worker-2  System OOM encountered")
    assert kill.node == "worker-2"


def test_an_event_in_a_table_that_names_no_pod() -> None:
    row = "38m         Warning   Evicted   Pod    The node was low on resource: memory."
    (kill,) = kills(f"LAST SEEN   TYPE      REASON    KIND   MESSAGE\n{row}")
    assert next(detail_lines(kill)) == "a pod without its name"


@pytest.mark.parametrize("end", ["}", "},"])
def test_a_part_of_a_status_between_its_braces(end: str) -> None:
    (kill,) = kills(f'"name": "app",\n"lastState": {{"terminated": {json.dumps(CRICTL)}}}{end[1:]}')
    assert (kill.container, kill.exit_code) == ("app", 137)


def test_a_kubelet_logs_an_eviction() -> None:
    source = "I1120 12:00:07.1 9 eviction_manager.go"
    lines = (
        f'{source}:373] "Eviction manager: must evict pod(s) to reclaim" resourceName="memory"',
        f'{source}:612] "Eviction manager: pod is evicted successfully" pod="db/pg-0"',
    )
    (kill,) = kills("\n".join(lines))
    assert (kill.namespace, kill.pod, kill.diagnosis.mechanism) == ("db", "pg-0", "kubelet eviction")
    assert "what it used is not said here" in " ".join(" ".join(detail_lines(kill)).split())
    (alone,) = kills(lines[1])
    assert (alone.pod, alone.diagnosis.mechanism) == ("pg-0", Mechanism.UNKNOWN_EVICTION)


@pytest.mark.parametrize(
    "end", ["pod {} is evicted successfully", "pods {} evicted, waiting for pod to be x"]
)
def test_a_kubelet_before_1_19_logs_an_eviction(end: str) -> None:
    source, ranked = "I1120 12:00:07.1 9 eviction_manager.go", "api-n1_kube-system(12ab), pg-0_db(34cd)"
    lines = (
        f"{source}:357] eviction manager: must evict pod(s) to reclaim memory",
        f"{source}:375] eviction manager: pods ranked for eviction: {ranked}",
        f"{source}:578] eviction manager: {end.format('pg-0_db(34cd)')}",
    )
    (kill,) = kills("\n".join(lines))
    assert (kill.namespace, kill.pod, kill.diagnosis.mechanism) == ("db", "pg-0", "kubelet eviction")


def test_usage_whose_columns_are_one_space_apart() -> None:
    parsed = read("NAMESPACE NAME CPU(cores) MEMORY(bytes)\nshop web-1 12m 512Mi\nshop db-0 3m 1800Mi\n")
    amounts = {name: usage.amounts for (_, name), usage in parsed.usage.items()}
    assert amounts == {"web-1": (512 << 20,), "db-0": (1800 << 20,)}
    nodes = read("NAME CPU(cores) CPU% MEMORY(bytes) MEMORY%\nn1 120m 6% 1200Mi 31%\n")
    assert [*nodes.node_usage] == ["n1"]


@pytest.mark.parametrize("status", ['[{"state": 7, "exitCode": 1}]', '{"exitCode": "x"}'])
def test_a_status_that_is_none(status: str) -> None:
    parsed = ParsedObjects()
    parsed.add_file(status.encode(), "status.json")
    assert parsed.problems


def test_an_end_whose_indent_was_lost() -> None:
    for form in ("  {}", "#   {}"):
        lines = ("Last State:     Terminated", "Reason:       OOMKilled", "Exit Code:    137\n")
        (kill,) = kills("\n".join(map(form.format, lines)))
        assert (kill.exit_code, kill.diagnosis.confidence) == (137, Confidence.LIKELY)


def test_a_message_of_two_lines_hides_no_event() -> None:
    old = "Memory cgroup out of memory: Kill process 8 (py) score 9 or sacrifice child\nKilled process 8 (py)"
    text = NODE.replace(
        OOM_KILLING, f"{old} total-vm:9kB, anon-rss:2048kB\n  Normal  Starting  2m  kubelet  x"
    )
    (event,) = [event for event in read(text).events if event.reason == "OOMKilling"]
    assert event.message.endswith("child\nKilled process 8 (py) total-vm:9kB, anon-rss:2048kB")
    assert read(text).events[-1].reason == "Starting"


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (NODE.partition("Events:")[0], "worker-2"),
        (
            "  Warning  EvictionThresholdMet  2m (x3 over 5m)  kubelet  Attempting to reclaim memory",
            "the node",
        ),
        ("  Warning  EvictionThresholdMet  2m (x3 over 5m)  kubelet  Attempting to reclaim inodes", ""),
    ],
)
def test_a_text_that_has_pressure_and_no_kill(text: str, where: str) -> None:
    parsed = read(text)
    assert kills(text) == []
    notes = [*other_causes(Snapshot(nodes=parsed.nodes), parsed.events)]
    assert [note.startswith(f"memory is short on {where}, but") for note in notes] == (
        [True] if where else []
    )


def test_a_pod_that_was_removed_for_another_reason_is_named_with_it() -> None:
    text = (
        "LAST SEEN   TYPE      REASON         OBJECT      MESSAGE\n"
        "3m12s       Normal    EvictedByVPA   pod/web-7   Pod was evicted by VPA Updater to apply resource"
        " recommendation.\n"
        "5m          Normal    Preempted      pod/job-1   Preempted by pod 8a7f2c1e on node n1\n"
    )
    assert [*other_causes(Snapshot(), read(text).events)] == [
        f"web-7: {EVENT_MEANINGS['EvictedByVPA']} (EvictedByVPA)"
    ]
    (kill,) = kills(text)
    assert (kill.pod, kill.diagnosis.mechanism) == ("job-1", Mechanism.SCHEDULER)
    said = (
        "certain: removed by the scheduler for a pod of higher priority, by requests and not by usage; no OOM"
    )
    assert said in " ".join(detail_lines(kill))


def test_a_refusal_in_a_kubelets_log_names_its_pod() -> None:
    line = "W0317 12:44:53 eviction_manager.go:159] Failed to admit pod web-0_shop(d228d315-f1c8) - node"
    for rest in (" has conditions: [DiskPressure]", " has conditions\n: [DiskPressure]"):
        (kill,) = kills(f"Mar 17 12:44:53 n1 kubelet[2278]: {line}{rest}\n")
        assert (kill.namespace, kill.pod, kill.diagnosis.mechanism) == ("shop", "web-0", Mechanism.REJECTION)


def test_several_pods_and_one_that_was_evicted() -> None:
    evicted = (
        f"Name:  old\nNamespace:  shop\nNode:  n/\nStatus:  Failed\nReason:  Evicted\nMessage:  {EVICTED}\n"
    )
    assert mechanisms(f"{POD}\n\n{evicted}") == {
        "web-0": "container limit",
        "old": "kubelet eviction",
    }


def test_a_node_has_the_name_of_its_own_command() -> None:
    text = f"$ kubectl describe pod web-9\nMessage:  {EVICTED}\n"
    parsed = read(f"{text}{TOP}$ kubectl describe node worker-2\nCapacity:\n  memory:  4Gi\n")
    assert [*parsed.nodes] == [*parsed.node_usage] == ["worker-2"]


def test_a_node() -> None:
    parsed = read(NODE)
    node = parsed.nodes["worker-2"]
    assert node.status.capacity is not None
    assert str(node.status.capacity["memory"]) == "16374096Ki"
    assert node.status.node_info.kubelet_version == "v1.28.3"
    assert node.status.conditions is not None
    assert [(condition.type, condition.status) for condition in node.status.conditions] == [
        ("MemoryPressure", "True")
    ]
    assert [kill.diagnosis.mechanism for kill in kills(NODE)] == ["node", Mechanism.MEMORY_LIMIT]
    victims = [kill.report.victim for kill in kills(NODE) if kill.report is not None]
    assert [(victim.comm, victim.pid) for victim in victims if victim is not None] == [
        ("a b", 48),
        ("worker", 350),
    ]


@pytest.mark.parametrize(
    "text",
    [
        EVENTS,
        EVENTS.replace("         ", "  "),
        f"$ kubectl get events -A\n{EVENTS}",
        OLD_EVENTS,
        WIDE_EVENTS,
        WIDE_EVENTS.replace("monitor,", "a longer monitor,"),
    ],
    ids=["aligned", "shifted", "with its command", "old", "wide", "wide and shifted"],
)
def test_events(text: str) -> None:
    expected = {"web-0": "kubelet eviction"} | (
        {"worker-2": Mechanism.MEMORY_LIMIT} if "OOMKilling" in text else {}
    )
    assert mechanisms(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Events:\n" + NODE.partition("Events:\n")[2], ["node", Mechanism.MEMORY_LIMIT]),
        (
            "Events:\n" + "\n".join(line.strip() for line in NODE.partition("Events:\n")[2].splitlines()),
            ["node", Mechanism.MEMORY_LIMIT],
        ),
        (OLD_EVENTS_OF_NODE, [Mechanism.MEMORY_LIMIT, "kubelet eviction"]),
        (f"Warning   OOMKilling   104s   kernel-monitor   {OOM_KILLING}", [Mechanism.MEMORY_LIMIT]),
        (f"  Warning  Evicted  2m (x3 over 5m)  kubelet  {EVICTED}\n", ["kubelet eviction"]),
        (f"> 3m11s   Warning   OOMKilling   node/n1   {OOM_KILLING}", [Mechanism.MEMORY_LIMIT]),
        (f"shop   3m11s   Warning   Evicted   pod/web-0   {EVICTED}", ["kubelet eviction"]),
        (f"Warning  OOMKilling  node/n1  {OOM_KILLING}", [Mechanism.MEMORY_LIMIT]),
        (
            f"Name:      web-0\nNamespace: shop\n...\nEvents:\n  Warning  Evicted  9m  kubelet  {EVICTED}",
            ["kubelet eviction"],
        ),
        ("Name:   n1\n...\nEvents:\n  Warning  SystemOOM  9m  kubelet  System OOM encountered", ["node"]),
    ],
    ids=[
        "events of a node",
        "without their indent",
        "of 2017",
        "a row",
        "a row of a pod",
        "a row of get events",
        "a row of all namespaces",
        "a row without its time",
        "a pod without its fields",
        "a node without its fields",
    ],
)
def test_events_alone_and_without_titles(text: str, expected: list[Mechanism]) -> None:
    assert [kill.diagnosis.mechanism for kill in kills(text)] == expected


def test_an_event_that_is_described() -> None:
    text = """\
Name:             worker-2.17e5
Namespace:        default
API Version:      v1
Count:            1
Involved Object:
  Kind:           Node
  Name:           worker-2
Kind:             Event
Last Timestamp:   2026-11-20T12:00:00Z
Message:          System OOM encountered, victim process: a b, pid: 48
Reason:           SystemOOM
Source:
  Component:  kubelet
  Host:       worker-2
Type:         Warning
Events:       <none>
"""
    (kill,) = kills(text)
    assert (kill.node, kill.time, kill.diagnosis.mechanism) == (
        "worker-2",
        "2026-11-20T12:00:00Z",
        "node",
    )


@pytest.mark.parametrize("prefix", ["", "$ kubectl get pods\n", "> "])
def test_a_list_of_pods(prefix: str) -> None:
    lines = (
        "NAMESPACE   NAME    READY   STATUS           RESTARTS       AGE",
        "shop        api-0   0/1     OOMKilled        3 (20s ago)    5m",
        "shop        api-1   0/1     Init:OOMKilled   3              5m",
        "shop        web-0   0/1     Evicted          0              3h",
        "shop        db-0    1/1     Running          7 (4h ago)     2d",
    )
    quote = prefix if prefix == "> " else ""
    killed = kills(prefix + f"\n{quote}".join(lines))
    assert {kill.pod: (kill.diagnosis.mechanism, kill.exit_code) for kill in killed} == {
        "api-0": (Mechanism.KERNEL, None),
        "api-1": (Mechanism.KERNEL, None),
        "web-0": (Mechanism.UNKNOWN_EVICTION, None),
    }
    of_all = kills("\n".join(re.sub("^shop {8}", "shop        pod/", line) for line in lines))
    assert [kill.pod for kill in of_all] == [kill.pod for kill in killed]
    assert "it ended with OOMKilled; its exit code is unknown" in " ".join(detail_lines(killed[0]))
    evicted = (
        f"kubectl get pods\n{lines[0]}\n{lines[3]}\n\nkubectl describe pods web-0\n**Message: {EXCESS}**"
    )
    (kill,) = kills(evicted)
    assert "used 900Mi of memory, 772Mi above its request," in " ".join(" ".join(detail_lines(kill)).split())
    (kill,) = kills(f"{lines[0]}\n{lines[1]}\n{STATE}")
    assert (kill.namespace, kill.pod, kill.exit_code) == ("shop", "api-0", 137)
    command = "kubectl describe pod api-0"
    for described in (f"{command}\n{STATE}", f"{command}\n{POD.replace('web-0', 'api-0')}", POD):
        both = kills("\n".join((*lines, described)))
        assert len({kill.pod for kill in both}) == len(both) == 3
    one_space = (re.sub(" +", " ", line) for line in lines)
    assert [kill.pod for kill in kills("\n".join(one_space))] == [kill.pod for kill in killed]


def test_a_list_of_pods_of_which_grep_has_dropped_the_headings() -> None:
    rows = "shop        api-0   0/1     OOMKilled   3 (20s ago)    5m\nshop   web-0   0/1   Evicted   0   3h"
    for text in (rows, re.sub(" +", " ", rows), f"$ kubectl get pods -A | grep -v Running\n{rows}"):
        assert {(kill.namespace, kill.pod): kill.diagnosis.mechanism for kill in kills(text)} == {
            ("shop", "api-0"): Mechanism.KERNEL,
            ("shop", "web-0"): Mechanism.UNKNOWN_EVICTION,
        }
    (kill,) = kills("api-0   0/1     OOMKilled   3   5m\nweb-0   1/1     Running   0   5m")
    assert (kill.namespace, kill.pod) == ("", "api-0")


def test_a_list_of_chosen_columns() -> None:
    low = "The node was low on resource: ephemeral-storage. Container web was using 9Ki, request is 0."
    lines = (
        "NAMESPACE   POD     QOS          LAST_REASON   EXIT     MESSAGE",
        "shop        api-0   Burstable    OOMKilled     137      <none>",
        f"shop        web-0   BestEffort   Evicted       <none>   {low}",
        "shop        db-0    Guaranteed   <none>        <none>   <none>",
    )
    found = {kill.pod: (kill.diagnosis.mechanism, kill.exit_code) for kill in kills("\n".join(lines))}
    assert found == {"api-0": (Mechanism.KERNEL, 137), "web-0": (Mechanism.OTHER_EVICTION, None)}
    (kill,) = kills("NAME    WHY\nweb-1   OOMKilled\n")
    assert (kill.pod, kill.exit_code) == ("web-1", None)


def test_the_labels_of_a_metric_name_the_pod() -> None:
    labels = 'container="app",namespace="shop",pod="api-0",reason="OOMKilled"'
    (kill,) = kills(f"kube_pod_container_status_last_terminated_reason{{{labels}}} 1")
    assert (kill.namespace, kill.pod, kill.container) == ("shop", "api-0", "app")


def test_a_list_of_pods_that_their_kubelet_refused_or_ended() -> None:
    reasons = ("Preempting", "OutOfcpu", "UnexpectedAdmissionError", "TopologyAffinityError", "Unknown")
    rows = "\n".join(f"{reason.lower()}   0/1   {reason}   0   3h" for reason in reasons)
    assert {
        kill.pod: kill.diagnosis.mechanism for kill in kills(f"NAME  READY  STATUS  RESTARTS  AGE\n{rows}")
    } == {
        "preempting": Mechanism.PREEMPTION,
        **dict.fromkeys(
            ("outofcpu", "unexpectedadmissionerror", "topologyaffinityerror"), Mechanism.REJECTION
        ),
    }


def test_a_reason_without_its_exit_code() -> None:
    (kill,) = kills("    Last State:     Terminated\n      Reason:       OOMKilled\n")
    assert (kill.exit_code, kill.reason, kill.diagnosis.mechanism) == (None, "OOMKilled", Mechanism.KERNEL)


def test_the_pod_of_an_event_that_is_in_the_list_is_that_pod() -> None:
    events = EVENTS.replace("pod/web-0", "pod/old")
    listed = (
        f"Name:  old\nNamespace:  shop\nNode:  n/\nStatus:  Failed\nReason:  Evicted\nMessage:  {EVICTED}\n"
    )
    parsed = read(f"{listed}")
    found = find_kills(Snapshot(pods=tuple(parsed.partial_pods)), EventList(tuple(read(events).events)))
    assert [kill.pod for kill in found if kill.pod] == ["old"]


def test_other_descriptions_and_manifests_are_not_read_so(tmp_path: Path) -> None:
    file = tmp_path / "x.txt"
    file.write_text(
        "Name:  web\nNamespace:  shop\nReplicas:  1 desired\nPod Template:\n  Containers:\n   app:\n"
    )
    with pytest.raises(InputError):
        FileSource([str(file)])
    log = tmp_path / "dmesg"
    for text in (
        f"[ 12.5] oom-kill:constraint=CONSTRAINT_NONE,task=a\n[ 12.5] {OOM_KILLING}\n",
        'earlyoom[454]: sending SIGTERM to process 9994 uid 1000 "web": badness 1181\n',
        'time="x" level=info msg="TaskOOM event container_id:1"\n',
        'E1120 12:00:07.437366    1234 kubelet.go:1846] "Skipping" err="PLEG is not healthy"\n',
        'Nov 20 12:00:07 n1 crio[77]: time="x" level=info msg="Started container" PID=1\n',
    ):
        log.write_text(text)
        with pytest.raises(InputError, match="a log without an eviction") as error:
            FileSource([str(log)])
        assert "--kernel-log" in error.value.hint
    manifest = b"apiVersion: v1\nkind: ConfigMap\ndata:\n  x: |\n    Last State: Terminated\n"
    assert [document.value["kind"] for document in plain_documents(manifest, "x")] == ["ConfigMap"]


@pytest.mark.parametrize(
    "text",
    [
        "NAME    READY   STATUS\nweb-0   1/1     Running\n",
        "Previous State: Terminated\n Exit: 1",
    ],
)
def test_other_text_says_what_is_needed(text: str) -> None:
    parsed = ParsedObjects()
    parsed.add_file(text.encode(), "x.txt")
    (problem,) = parsed.problems
    assert problem.hint.startswith("kubectl get pods,nodes,events -A -o json > FILE has what is needed")


def test_a_source_has_the_objects_and_the_command_that_gives_more(tmp_path: Path) -> None:
    file = tmp_path / "x.txt"
    file.write_text(POD + NODE + STATE)
    source = FileSource([str(file)])
    (note,) = source.notes
    assert MORE in note
    (pod,) = source.snapshot(Scope()).pods
    assert source.raw(pod)["metadata"]["name"] == "web-0"
    assert len(source.events(pod)) == 3


@pytest.mark.parametrize(
    ("text", "pod", "code"),
    [
        ("shop\tweb-0\tOOMKilled\t137\nshop\tweb-1\t\t\n", "shop/web-0", 137),
        ("web-0   main   OOMKilled   137", "/web-0", 137),
        ("web-5f7c9d4b8-x2k4q     shop     OOMKilled   node-3", "/web-5f7c9d4b8-x2k4q", None),
        ("NS     POD_NAME   WHY         CODE\nshop   web-0      OOMKilled   137\n", "shop/web-0", 137),
    ],
    ids=["jsonpath", "with a container", "the namespace behind", "custom columns"],
)
def test_rows_without_headings_of_kubectl(text: str, pod: str, code: int | None) -> None:
    (kill,) = kills(text)
    assert f"{kill.namespace}/{kill.pod}" == pod
    assert (kill.exit_code, kill.reason) == (code, "OOMKilled")


def test_what_was_low_is_said_first_and_one_eviction_is_one_death() -> None:
    (kill,) = kills(
        "reason=Evicted\nThe node was low on resource: ephemeral-storage.\nThreshold: 1000, available: 900.\n"
        "Container app was using 2Mi, request is 0\nexitCode 137\n"
    )
    lines = [*detail_lines(kill)]
    assert lines[2].startswith("certain: evicted by the kubelet for ephemeral-storage, not for memory")
    assert "container app used 2Mi of ephemeral-storage, 2Mi above its request" in "\n".join(lines)


def test_a_description_whose_indents_are_lost() -> None:
    """The page of a pod without them had no container and no limit."""
    flush = "\n".join(line.strip() for line in POD.splitlines())
    (pod,), (whole,) = (read(text).pods for text in (flush, POD))
    assert [container.name for container in pod.containers] == [each.name for each in whole.containers]
    assert [each.resources for each in pod.containers] == [each.resources for each in whole.containers]
    (kill,), (same,) = kills(flush), kills(POD)
    assert (kill.container, kill.time, kill.diagnosis.mechanism) == (
        same.container,
        same.time,
        same.diagnosis.mechanism,
    )
