"""Explanations: the sentence and the number come from the same reason."""

import json
import re
from dataclasses import replace

import msgspec
import pytest
from msgspec import structs

from kubectl_qos.analysis.pod_table import PodRow, build_rows
from kubectl_qos.cluster.files import DEMO_TIME, DemoSource
from kubectl_qos.k8s.kubelet import CgroupDriver, Node
from kubectl_qos.k8s.node_overrides import NodeOverride
from kubectl_qos.k8s.objects import Container, NodeObject, Pod, PodStatus, Volume, convert
from kubectl_qos.k8s.releases import OciRuntime, Release
from kubectl_qos.k8s.snapshot import NodeOverrides, Scope, Snapshot
from kubectl_qos.k8s.usage import ContainerUsage, MemoryParts, PodUsage, Pressure, Psi, PsiData
from kubectl_qos.present.explanation import _cgroup, _parts_text, explain_pod, text_lines, with_fix
from kubectl_qos.present.output import json_parts, to_yaml
from kubectl_qos.present.reasons import class_sentence, formula, score_formula, sentence
from kubectl_qos.present.values import as_document
from kubectl_qos.present.values.pods import explanation_values
from kubectl_qos.qos.prediction import predict
from kubectl_qos.qos.reason import Reason, Rule
from tests.qos.corner import MACHINE, on, one
from tests.qos.corner import spec as pod_of

DEMO = DemoSource().snapshot(Scope())
ROWS = build_rows(DEMO, Scope())


def explained(name: str, snapshot: Snapshot = DEMO) -> str:
    pod = next(pod for pod in snapshot.pods if pod.name == name)
    return "\n".join(text_lines(explain_pod(pod, snapshot, DEMO_TIME)))


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ("requests: {memory: 1Gi}", "1000 - 1000 × 1Gi / 16Gi = 938"),
        (
            "requests: {cpu: 1}",
            "1000 - 1000 × 0 / 16Gi = 1000, lowered to 999, to stay below BestEffort's 1000",
        ),
        (
            "requests: {memory: 17Gi}",
            "1000 - 1000 × 17Gi / 16Gi = -62, raised to 3, the minimum of Burstable containers",
        ),
        ("", "BestEffort pods get 1000"),
        ("limits: {cpu: 1, memory: 1Gi}", "Guaranteed pods get -997"),
    ],
)
def test_the_formula_with_this_containers_numbers(resources: str, expected: str) -> None:
    reason = on(one(resources)).containers[0].oom_score_adj_reason
    assert reason is not None
    assert formula(reason) == expected


def test_the_formula_of_a_sidecar_and_of_pod_level_requests() -> None:
    sidecar = pod_of(
        "containers: [{name: c1, resources: {requests: {memory: 1Gi}}}],"
        " initContainers: [{name: s, restartPolicy: Always}]"
    )
    reason = on(sidecar).container("s").oom_score_adj_reason
    assert reason is not None
    assert formula(reason).endswith("= 1000, a sidecar gets no more than the app containers: 938")
    shared = pod_of("containers: [{name: a}, {name: b}], resources: {requests: {memory: 2Gi}}")
    reason = on(shared).container("a").oom_score_adj_reason
    assert reason is not None
    assert formula(reason) == "1000 - 1000 × (0 + 1Gi of the pod's request) / 16Gi = 938"


def test_a_best_effort_pod_is_not_resized_in_place() -> None:
    """The API server refuses a resize that changes the class (ValidatePodResize)."""
    why = (
        "Resize     not in place: any request or limit would change the class, and a resize may not change it"
    )
    for resources, is_refused in (("", True), ("requests: {cpu: 1}", False)):
        pod = one(resources)
        lines = text_lines(explain_pod(pod, Snapshot(pods=(pod,)), DEMO_TIME))
        assert (why in lines) is is_refused


def test_every_rule_has_a_source() -> None:
    assert all(rule.source for rule in Rule)


def test_every_reason_of_every_demo_pod_can_be_said() -> None:
    said = set()

    def check(reason: Reason) -> None:
        assert sentence(reason)
        said.add(reason.rule)
        for child in reason.children:
            check(child)

    for pod in DEMO.pods:
        setup = DEMO.setup(pod.node_name)
        found = predict(pod, setup.node, kubelet=setup.kubelet, release=setup.release)
        check(found.class_reason)
        for container in found.containers:
            if container.oom_score_adj_reason is not None:
                check(container.oom_score_adj_reason)
            for reason in container.cgroup.reasons.values():
                check(reason)
        for reason in found.cgroup.reasons.values():
            check(reason)
    assert len(said) > 18


@pytest.mark.parametrize("pod", DEMO.pods, ids=lambda pod: pod.name)
def test_every_demo_pod_is_explained_in_text_json_and_yaml(pod: object) -> None:
    name = getattr(pod, "name")  # noqa: B009 - the parameter is untyped
    text = explained(name)
    assert "Class" in text
    assert "None" not in text
    assert max(map(len, text.splitlines())) <= 140
    found = next(one for one in DEMO.pods if one.name == name)
    values = as_document(explanation_values(explain_pod(found, DEMO, DEMO_TIME)))
    assert json.loads("".join(json_parts(values)))["pod"] == name
    assert to_yaml(values).startswith("apiVersion: kubectl-qos/v1\nkind: PodExplanation")


def test_the_next_victim_is_called_so() -> None:
    text = explained("api-7d9c5b6f8-x2mzq").replace("\n    ", " ")
    known = "the kernel's next victim on a full node, if one process holds 1748Mi, else batch/crunch-x2k9f:c"
    assert f"\n  {known}\n" in text


@pytest.mark.parametrize("row", ROWS.rows, ids=lambda row: row.name)
def test_the_formula_of_a_score_leads_to_it(row: PodRow) -> None:
    """By the numbers that it shows, on kernels with the formula in use and with the one before."""
    if row.score is None:
        return
    pod = next(one for one in DEMO.pods if one.metadata == row.pod.metadata)
    (line,) = [one for one in explained(pod.name).splitlines() if "oom_score " in one and "memory " in one]
    numbers = re.fullmatch(
        r"  \S+  oom_score (-?\d+) +memory \S+[MG]i \((\d+ pages)\) ([+-] \d+) × (\d+)"
        r" = (-?\d+), (-?\d+)/1000 of (\d+) pages; \(1000 ([+-] \d+)\) × 2 / 3",
        line,
    )
    assert numbers is not None, line
    words = [one.replace(" pages", "") for one in numbers.groups()]
    score, memory, adj, thousandth, points, share, total, _ = (int(word.replace(" ", "")) for word in words)
    assert (score, adj) == (row.score, row.adj)
    assert thousandth == total // 1000
    assert points == memory + adj * thousandth
    assert share == int(points * 1000 / total)
    assert score == int((1000 + share) * 2 / 3)


def test_an_old_kernel_shows_the_share_itself() -> None:
    node = Node(name="n", memory_capacity_bytes=1 << 30, kernel="5.4.0")
    used = ContainerUsage(512 << 20)
    shown = "memory 512Mi (131072 pages) + 0 × 262 = 131072, 500/1000 of 262144 pages"
    assert score_formula(used, 0, node) == shown


def test_a_kill_that_is_only_perhaps_for_memory_is_not_called_one() -> None:
    text = explained("search-0")
    assert "last ended Error, exit code 137" in text
    assert "the status alone does not tell" in text
    assert "the limit of all pods was full; it has no limit" in explained("crunch-x2k9f")
    assert "OOM killed: its own limit, its pod's" in explained("api-7d9c5b6f8-x2mzq")


def test_a_critical_pod_is_spared_by_eviction() -> None:
    """It takes no place among those that may be evicted: two of the node's 17 pods are critical."""
    unseen = "the kernel ignores that: only system-node-critical lowers oom_score_adj"
    for name, is_node_critical in (("kube-proxy-7hc2x", True), ("coredns-6f6b679f8f-4bqjx", False)):
        text = explained(name)
        assert "never: critical pods are not evicted" in text
        assert (unseen in text) is not is_node_critical
    assert "rank 9 of 15 under memory pressure" in explained("api-7d9c5b6f8-x2mzq")


@pytest.mark.parametrize(
    ("version", "resources", "is_ignored"),
    [
        ("v1.21.9", {"requests": {"memory": "1Gi"}}, False),
        ("v1.22.0", {"requests": {"memory": "1Gi"}}, True),
        ("v1.36.0", {"limits": {"memory": "1Gi", "cpu": "1"}}, False),
    ],
)
def test_a_critical_pod_that_the_kernel_spares_too(version: str, resources: object, is_ignored: bool) -> None:
    container = {"name": "c", "resources": resources}
    spec = {"nodeName": "n", "priority": 2_000_000_000, "containers": [container]}
    status = {"capacity": {"memory": "16Gi"}, "nodeInfo": {"kubeletVersion": version}}
    node = convert({"kind": "Node", "metadata": {"name": "n"}, "status": status}, NodeObject)
    pod = convert({"kind": "Pod", "metadata": {"name": "dns"}, "spec": spec}, Pod)
    text = explained("dns", Snapshot(pods=(pod,), nodes={"n": node}))
    assert ("the kernel ignores that" in text) is is_ignored
    assert ("adj -997   before kubelet 1.22 all critical pods get -997" in text) is (version == "v1.21.9")


def test_a_kubelet_without_a_threshold_evicts_no_pod_for_memory() -> None:
    settings = ("profile=k3s", "evictionHard=memory.available=0%", "evictionHard=memory.available=5%")
    said = "never: the kubelet has no memory.available threshold"
    for setting, is_said in zip(settings, (True, True, False), strict=True):
        overrides = NodeOverrides(settings=(NodeOverride.parse(setting),))
        text = explained("api-7d9c5b6f8-x2mzq", replace(DEMO, overrides=overrides))
        has_rank = "rank 9 of 15 under memory pressure" in text
        assert (said in text, has_rank) == (is_said, not is_said), setting
        spared = explained("kube-proxy-7hc2x", replace(DEMO, overrides=overrides))
        assert said not in spared, "it is never evicted in any case"


def test_an_eviction_rank_names_its_neighbours() -> None:
    text = explained("crunch-x2k9f")
    assert "rank 1 of 15" in text
    assert "evicted before it" not in text
    assert "evicted after it: ml/notebook-0" in text
    assert "evicted before it: batch/crunch-x2k9f\n" in explained("notebook-0")


@pytest.mark.parametrize(
    ("spec", "node", "expected"),
    [
        ("containers: [{name: a}]", MACHINE, "BestEffort, oom_score_adj 1000"),
        (
            "containers: [{name: a, resources: {requests: {memory: 1Gi}}}, {name: b}]",
            MACHINE,
            "Burstable, oom_score_adj 938 to 999",
        ),
        (
            "priorityClassName: system-node-critical, priority: 2000001000, containers: [{name: a}]",
            MACHINE,
            "BestEffort, oom_score_adj -997, as system-node-critical",
        ),
        (
            "containers: [{name: a, resources: {requests: {memory: 1Gi}}}]",
            structs.replace(MACHINE, memory_capacity_bytes=None),
            "Burstable, oom_score_adj 3 to 999",
        ),
        (
            "containers: [{name: a}]",
            structs.replace(MACHINE, runtime_oom_score_adj=0),
            "BestEffort, oom_score_adj 1000",
        ),
    ],
)
def test_a_class_is_said_with_the_adj_of_its_own_containers(spec: str, node: Node, expected: str) -> None:
    assert class_sentence(on(pod_of(spec), node=node)) == expected


@pytest.mark.parametrize(
    ("limit", "driver", "quota", "said"),
    [
        ("1", CgroupDriver.SYSTEMD, "100000", ""),
        ("5m", CgroupDriver.SYSTEMD, "1000", ", raised to the minimum of 1 ms"),
        ("5m", CgroupDriver.CGROUPFS, "1000", ", raised to the minimum of 1 ms"),
        ("133m", CgroupDriver.SYSTEMD, "14000", ", rounded up to whole percents by systemd"),
        ("133m", CgroupDriver.CGROUPFS, "13300", ""),
    ],
)
def test_a_quota_says_what_rounded_it(limit: str, driver: CgroupDriver, quota: str, said: str) -> None:
    pod = one(f"limits: {{cpu: {limit}, memory: 1Gi}}")
    found = on(pod, cgroup_driver=driver)
    for cgroup in (found.cgroup, found.containers[0].cgroup):
        assert cgroup.files["cpu.max"] == f"{quota} 100000"
        assert sentence(cgroup.reasons["cpu.max"]) == f"cpu limit {limit} per 100 ms{said}"


@pytest.mark.parametrize(
    ("resources", "said"),
    [
        ("limits: {cpu: 1, memory: 1Gi}", ""),
        (
            "limits: {cpu: 1500m, memory: 1Gi}",
            "has no exclusive CPUs: its cpu request, 1500m, is not a whole number",
        ),
        (
            "requests: {cpu: 1}",
            "no exclusive CPUs: the static CPU Manager gives them only to Guaranteed pods",
        ),
    ],
)
def test_what_a_container_lacks_for_exclusive_cpus_is_said(resources: str, said: str) -> None:
    for policy in ("static", "none"):
        section = _cgroup(on(one(resources), cpu_manager_policy=policy))
        assert section is not None
        lines = [line.text for line in section.lines if "exclusive CPUs" in line.text]
        assert lines == [f"c1 {said}" if said.startswith("has") else said] * (
            policy == "static" and bool(said)
        )


def test_a_quota_of_cgroup_v1_is_followed_by_its_period() -> None:
    found = on(one("limits: {cpu: 5m, memory: 1Gi}"), node=structs.replace(MACHINE, cgroup_version=1)).cgroup
    said = {name: sentence(found.reasons[f"cpu/cpu.cfs_{name}_us"]) for name in ("quota", "period")}
    assert said == {
        "quota": "cpu limit 5m per 100 ms, raised to the minimum of 1 ms",
        "period": "the quota is for each 100000 µs",
    }


def test_a_pod_without_a_node_has_no_unknown_capacity() -> None:
    text = explained("huge-0")
    assert "OOM        not ranked: not on a node yet" in text
    assert "Eviction   not ranked: not on a node yet" in text
    assert "capacity is unknown" not in text


def test_who_decided_before_the_node_is_quoted() -> None:
    """LimitRanger says what it set, the scheduler why there is no node; an empty spec.resources decides."""
    pod = pod_of(
        "resources: {}, containers: [{name: c, resources: {requests: {cpu: 100m}}}]",
        annotations="{kubernetes.io/limit-ranger: 'LimitRanger plugin set: cpu request for container c'}",
        status="{conditions: [{type: PodScheduled, status: 'False', message: 3 Insufficient memory.}]}",
    )
    silent = pod_of("containers: [{name: c}]", status="{conditions: [{type: PodScheduled, status: 'False'}]}")
    assert "the scheduler says" not in str(explain_pod(silent, Snapshot(pods=(silent,)), DEMO_TIME))
    text = "\n".join(text_lines(explain_pod(pod, Snapshot(pods=(pod,)), DEMO_TIME)))
    assert "LimitRanger plugin set: cpu request for container c" in text
    assert "the scheduler says: 3 Insufficient memory." in text
    assert "add a cpu or memory request or limit to spec.resources" in text


def test_a_workload_is_its_template_with_the_nodes_and_ranks_of_its_pods() -> None:
    def of(workload: str, name: str, kind: str) -> str:
        pod = next(pod for pod in DEMO.pods if pod.name == name)
        template = msgspec.structs.replace(
            pod,
            kind=kind,
            metadata=msgspec.structs.replace(pod.metadata, name=workload),
            spec=msgspec.structs.replace(pod.spec, node_name="", priority=None),
        )
        return "\n".join(text_lines(explain_pod(template, DEMO, DEMO_TIME)))

    text = of("api", "api-7d9c5b6f8-x2mzq", "Deployment")
    assert text.startswith("deployment shop/api, kubelet 1.36, the template of 2 pods on worker-2\n")
    assert "OOM        ranks 1, 5 of 17 on worker-2\n  c  adj 969 " in text
    assert "Eviction   ranks 9, 10 of 15 on worker-2 under memory pressure" in text
    assert "priority 100000" in text
    text = of("log-agent", "log-agent-4kx8d", "DaemonSet")
    assert "oom_score_adj 985 to 997" in text
    assert (
        "OOM        rank 2 of 6 on control-1, rank 8 of 19 on worker-1, rank 6 of 17 on worker-2 and" in text
    )
    assert "adj 985..997   1000 - 1000 × request / capacity, by the node" in text
    assert "unknown" not in text


@pytest.mark.parametrize(
    ("size", "held", "said"),
    [("128Mi", None, "up to 128Mi"), (None, 3 << 20, "no sizeLimit, 3Mi now")],
)
def test_a_volume_in_memory_counts_to_its_writer(size: str | None, held: int | None, said: str) -> None:
    key = ("shop", "api-7d9c5b6f8-x2mzq")
    volume = {"name": "scratch", "emptyDir": {"medium": "Memory", "sizeLimit": size}}
    pod = next(pod for pod in DEMO.pods if (pod.namespace, pod.name) == key)
    pod = msgspec.structs.replace(
        pod, spec=msgspec.structs.replace(pod.spec, volumes=convert([volume], tuple[Volume, ...]))
    )
    usage = DEMO.usage[key]
    if held is not None:
        details = msgspec.structs.replace(usage.details, volumes=(("scratch", held),))
        usage = msgspec.structs.replace(usage, details=details)
    snapshot = replace(DEMO, usage={**DEMO.usage, key: usage})
    text = "\n".join(text_lines(explain_pod(pod, snapshot, DEMO_TIME)))
    assert f"  volume scratch  in memory, {said}\n    counts toward the container that writes it" in text
    assert "df shows the smallest of sizeLimit, the pod's memory limit and allocatable memory" in " ".join(
        text.split()
    )
    assert ("; above 128Mi the kubelet evicts the pod" in " ".join(text.split())) == bool(size)


def test_bytes_of_a_manifest_are_read_with_a_unit_and_written_exactly() -> None:
    text = explained("importer-5f7b9c-2vtxk")
    assert "container c has memory request 95.4Mi and limit 117.7Mi\n" in text
    assert "c: set requests.memory to 123456789 (its limit, 117.7Mi)\n" in text


def test_parts_that_a_source_counts_together_are_one_sum() -> None:
    parts = MemoryParts(40 << 20, other_bytes=272 << 10, swap_bytes=0)
    assert _parts_text(parts) == "anon 40Mi, swap 0; file, shmem and kernel together 272Ki"


def test_what_was_assumed_is_listed_once() -> None:
    text = explained("db-0")
    assert text.count("not measured, assumed: ") == 1
    assert "cgroup v2" in text
    unlimited = NodeOverrides(settings=(NodeOverride.parse("memorySwap.swapBehavior=UnlimitedSwap"),))
    refused = text_lines(explain_pod(DEMO.pods[0], replace(DEMO, overrides=unlimited), DEMO_TIME))
    assert (
        "  a kubelet 1.36 does not start with this: invalid configuration: memorySwap.swapBehavior" in refused
    )
    note = "RuntimeClass kata adds its overhead"
    for uid, overhead, is_unknown in (("", None, True), ("", {"cpu": "1"}, False), ("u", None, False)):
        spec = {"containers": [{"name": "a"}], "runtimeClassName": "kata", "overhead": overhead}
        pod = convert({"kind": "Pod", "metadata": {"name": "a", "uid": uid}, "spec": spec}, Pod)
        lines = [*text_lines(explain_pod(pod, Snapshot(pods=(pod,)), DEMO_TIME))]
        assert any(note in line for line in lines) is is_unknown
        assert ("RuntimeClass kata has an overhead, like sandboxes" in " ".join(lines)) is bool(overhead)


def test_predict_is_what_the_documentation_shows() -> None:
    found = predict(one("requests: {memory: 1Gi}"), MACHINE, release="1.36")
    assert (found.qos_class.value, found.containers[0].oom_score_adj) == ("Burstable", 938)


def test_an_init_container_may_decide_what_is_requested() -> None:
    for later, said in (("2Gi", "5Gi (init container first; without it 2Gi)"), ("5Gi", "5Gi")):
        request = {"resources": {"requests": {"memory": "5Gi"}}}
        inits = [{"name": "first", **request}]
        app = {"name": "app", "resources": {"requests": {"memory": later}}}
        pod = convert({"kind": "Pod", "spec": {"containers": [app], "initContainers": inits}}, Pod)
        lines = text_lines(explain_pod(pod, Snapshot(pods=(pod,)), DEMO_TIME))
        assert f"  request counted for eviction: {said}, priority 0" in lines


def test_a_priority_that_only_its_class_has_is_assumed() -> None:
    """A manifest names the class; what an API server has stored has the number too."""
    unknown = "0 (assumed: PriorityClass low is unknown)"
    for priority, shown in ((None, unknown), (0, "0"), (-5, "-5")):
        fields = {"containers": [{"name": "a"}], "priorityClassName": "low", "priority": priority}
        pod = convert({"kind": "Pod", "spec": fields}, Pod)
        lines = text_lines(explain_pod(pod, Snapshot(pods=(pod,)), DEMO_TIME))
        assert f"  request counted for eviction: 0, priority {shown}" in lines


def test_swap_in_use_contradicts_an_assumed_behavior() -> None:
    pod = one("requests: {memory: 256Mi}, limits: {memory: 1Gi}", "nodeName: n1")
    snapshot = Snapshot(
        pods=(pod,),
        usage={pod.key: PodUsage.of_containers({"c1": ContainerUsage(1 << 20, swap_bytes=200 << 20)})},
    )
    for behavior, is_said in (("NoSwap", True), ("LimitedSwap", False)):
        settings = (f"memorySwap.swapBehavior={behavior}", "swap=16Gi", "memory=16Gi")
        overrides = NodeOverrides(settings=tuple(map(NodeOverride.parse, settings)))
        text = explained(pod.name, replace(snapshot, overrides=overrides))
        assert ("c1 has 200Mi in swap, so the node's swap behavior differs" in text) is is_said


def test_on_cgroup_v1_there_are_shares_and_one_limit_of_memory_and_swap() -> None:
    settings = ("cgroupVersion=1", "swap=1Gi", "memory=16Gi")
    overrides = NodeOverrides(settings=tuple(map(NodeOverride.parse, settings)))
    pod = one("requests: {cpu: 100m}, limits: {memory: 1Gi}")
    lines = text_lines(explain_pod(pod, Snapshot(pods=(pod,), overrides=overrides), DEMO_TIME))
    assert any(line.endswith("cpu request 100m: 102 shares") for line in lines)
    assert any(line.endswith("memory and swap together 1Gi   no swap") for line in lines)


def test_the_processes_of_crun_are_a_level_below() -> None:
    node = structs.replace(MACHINE, oci_runtime=OciRuntime.parse("crun 1.22"))
    section = _cgroup(on(one("requests: {memory: 1Gi}"), node=node))
    assert section is not None
    lines = {line.text: line.note for line in section.lines}
    assert lines["container/"] == "its processes, by crun"
    assert "linear curve" in lines["cpu.weight = 1"]


def with_status(name: str, **status: object) -> str:
    """A pod of the demo explained whose status says this, in the API's own form."""
    pod = next(pod for pod in DEMO.pods if pod.name == name)
    changed = msgspec.structs.replace(pod, status=convert({"phase": "Running", **status}, PodStatus))
    pods = tuple(changed if one is pod else one for one in DEMO.pods)
    return " ".join(explained(name, replace(DEMO, pods=pods)).split())


def container(**state: object) -> dict[str, object]:
    return {"containerStatuses": [{"name": "c", **state}]}


def ended(reason: str, code: int, **times: str) -> dict[str, object]:
    return {"terminated": {"reason": reason, "exitCode": code, **times}}


@pytest.mark.parametrize(
    ("times", "said"),
    [
        (
            {"startedAt": "2026-11-20T10:00:00Z", "finishedAt": "2026-11-20T11:00:00Z"},
            "exit code 1, 60m ago after 60m",
        ),
        ({"finishedAt": "2026-11-20T11:00:00Z"}, "exit code 1, 60m ago Assumed"),
        ({"startedAt": "2026-11-20T10:00:00Z"}, "exit code 1 Assumed"),
        (
            {"startedAt": "2026-11-20T11:30:00Z", "finishedAt": "2026-11-20T11:00:00Z"},
            "exit code 1, 60m ago Assumed",
        ),
        ({"startedAt": "long ago", "finishedAt": "lately"}, "exit code 1 Assumed"),
    ],
)
def test_an_end_has_its_time_and_how_long_it_ran(times: dict[str, str], said: str) -> None:
    assert said in with_status("db-0", **container(lastState=ended("Error", 1, **times)))


def test_ends_of_this_and_the_last_run_are_both_explained() -> None:
    text = with_status(
        "db-0", **container(restartCount=2, state=ended("Completed", 0), lastState=ended("OOMKilled", 137))
    )
    assert "History restarted 2 times c ended Completed, exit code 0 c last ended OOMKilled" in text


@pytest.mark.parametrize(
    ("reason", "code", "warned"),
    [("OOMKilled", 137, True), ("OOMKilled", 0, True), ("Error", 137, True), ("Error", 1, False)],
)
def test_what_proves_nothing_is_said_to(reason: str, code: int, warned: bool) -> None:
    text = with_status("db-0", **container(lastState=ended(reason, code)))
    assert ("neither OOMKilled nor exit code 137 proves what happened" in text) is warned


RUNC = "OCI runtime create failed: runc create failed: container init was OOM-killed (memory limit too low?)"


def test_what_a_runtime_says_of_a_start_that_failed() -> None:
    """Not started, so it did not run since 1970; the back-off that follows has another message."""
    times = {"startedAt": "1970-01-01T00:00:00Z", "finishedAt": "2026-11-20T11:00:00Z"}
    text = with_status(
        "db-0",
        **container(
            state={"waiting": {"reason": "RunContainerError", "message": RUNC}},
            lastState=ended("StartError", 128, message=RUNC, **times),
        ),
    )
    assert f"c waits: RunContainerError too little memory to start it: {RUNC}" in text
    assert f"StartError, exit code 128, 60m ago too little memory to start it: {RUNC}" in text


def test_messages_are_one_line_and_have_an_end() -> None:
    text = with_status(
        "db-0", **container(lastState=ended("Error", 1, message="a\n\nb\x1b[31m" + "x" * 4096))
    )
    assert "exit code 1 a b\\x1b[31mxxx" in text
    assert "x" * 400 not in text
    assert "x… " in text


def test_rules_say_what_restarts_after_a_kill() -> None:
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [137]}}
    raw = {"name": "c", "restartPolicy": "Never", "restartPolicyRules": [rule]}
    found = next(pod for pod in DEMO.pods if pod.name == "db-0")
    spec_of = msgspec.structs.replace(found.spec, containers=(convert(raw, Container),))
    changed = msgspec.structs.replace(found, spec=spec_of)
    pods = tuple(changed if one is found else one for one in DEMO.pods)
    text = " ".join(explained("db-0", replace(DEMO, pods=pods)).split())
    assert "once killed, c makes all containers of its pod restart restartPolicyRules, exit code 137" in text
    assert "killed, c" not in " ".join(explained("db-0").split())


def test_a_container_that_waits_says_for_what() -> None:
    text = with_status("db-0", **container(state={"waiting": {"reason": "CrashLoopBackOff"}}))
    assert "c waits: CrashLoopBackOff" in text
    raised = "before 1.36.4 kubelets raise the limit of the pod's cgroup only while the container runs"
    assert f"not while c waits: {raised}" in text


def test_an_eviction_is_explained_by_reason_or_by_condition_alone() -> None:
    """A pod that ends well on SIGTERM has no reason Evicted; only the condition tells."""
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
    by_reason = with_status("db-0", reason="Evicted")
    assert "History evicted, never restarted the pod's status says Evicted" in by_reason
    by_condition = with_status("db-0", phase="Succeeded", conditions=[condition | {"message": "low on x"}])
    assert "ended by its kubelet: node pressure" in by_condition
    assert "(TerminationByKubelet) low on x" in by_condition
    dated = condition | {"lastTransitionTime": "2026-11-18T18:00:00Z"}
    shutdown = {"message": "Pod was terminated in response to imminent node shutdown."}
    stopped = with_status("db-0", conditions=[dated | shutdown])
    assert (
        "ended by the kubelet as its node shut down; not for memory (TerminationByKubelet), 42h ago"
        in stopped
    )
    assert "its kubelet ended it" not in with_status("db-0", conditions=[condition | {"status": "False"}])
    drained = with_status("db-0", conditions=[condition | {"reason": "EvictionByEvictionAPI"}])
    assert "not for memory" in drained
    assert "disrupted (Odd)" in with_status("db-0", conditions=[condition | {"reason": "Odd"}])


def test_a_resize_that_waits_is_explained() -> None:
    condition = {
        "type": "PodResizePending",
        "status": "True",
        "reason": "Deferred",
        "message": "Node didn't have enough resource: memory",
    }
    text = with_status("db-0", conditions=[condition])
    assert "a resize is Deferred: it waits for room on the node" in text
    assert "the kubelet says: Node didn't have enough resource: memory" in text
    assert "a resize" not in with_status("db-0", conditions=[condition | {"status": "False"}]).replace(
        "a resize may not", ""
    )
    assert "a resize is Infeasible" in with_status("db-0", resize="Infeasible")


@pytest.mark.parametrize(("gates", "said"), [({}, "MemoryQoS off"), ({"MemoryQoS": True}, "MemoryQoS on")])
def test_whether_memory_qos_is_on_is_said(gates: dict[str, bool], said: str) -> None:
    release = Release.of("1.36", gates)
    section = _cgroup(predict(one("requests: {memory: 1Gi}"), MACHINE, release=release))
    assert section is not None
    assert section.answer == f"v2, systemd driver, {said}"


def test_it_begins_with_the_killer_that_comes_first_and_what_puts_it_off() -> None:
    pod = next(pod for pod in DEMO.pods if pod.name.startswith("importer-"))
    lines = list(text_lines(with_fix(explain_pod(pod, DEMO, DEMO_TIME), DEMO)))
    assert lines[2:5] == [
        "Its death   own limit 98%, +2Mi",
        "  fix: container c: memory limit 117.7Mi → 144Mi, now, in place",
        "  kubelet evicts, after 5 other deaths, +3.3Gi",
    ]


@pytest.mark.parametrize(
    ("name", "waits", "said"),
    [
        (
            "importer-",
            12.3,
            "tasks waited for memory in 12.3% of the last minute (PSI): the kernel already has",
        ),
        (
            "importer-",
            0.0,
            "tasks hardly waited for memory in the last minute (PSI): the kernel does not have to",
        ),
        ("importer-", None, ""),
        ("db-0", 0.0, ""),
        ("db-0", 12.3, "tasks waited for memory in 12.3% of the last minute (PSI)\n"),
        ("crunch-", 12.3, ""),
    ],
)
def test_stalls_say_whether_the_kernel_reclaims_at_the_limit(
    name: str, waits: float | None, said: str
) -> None:
    pod = next(pod for pod in DEMO.pods if pod.name.startswith(name))
    pressure = Pressure(None, Psi(PsiData(avg60=waits)), None)
    seen = DEMO.usage[pod.key]
    amounts = {own: (seen.of(own) or ContainerUsage(0))._replace(pressure=pressure) for own in seen.names}
    usage = {**DEMO.usage, pod.key: PodUsage.of_containers(amounts)}
    text = explained(pod.name, replace(DEMO, usage=usage))
    assert said in text
    assert ("tasks" in text.partition("Class")[0]) is bool(said)


def test_how_often_a_limit_was_reached_is_said_of_the_container_that_dies_there() -> None:
    pod = next(pod for pod in DEMO.pods if pod.name.startswith("importer-"))
    for counts, is_said in (({"high": 2, "max": 3}, True), ({"high": 2, "max": 0}, False)):
        section, *_ = explain_pod(pod, DEMO, DEMO_TIME, events={"c": counts}).sections
        said = "it has reached this limit 3 times since it started (memory.events)"
        assert (said in [line.text for line in section.lines]) is is_said


def test_what_an_owner_or_a_policy_does_not_change_is_said() -> None:
    assert "priority 0; belonging to a DaemonSet does not protect it" in explained("log-agent-4kx8d")
    assert "being of a DaemonSet" not in explained("cni-agent-bx9td"), "it is critical"
    given = NodeOverrides(settings=(NodeOverride.parse("cpuManagerPolicy=static"),))
    pods = {pod.name: pod for pod in DEMO.pods}
    for name, is_kept in (("cache-0", True), ("search-0", False)):
        lines = text_lines(explain_pod(pods[name], replace(DEMO, overrides=given), DEMO_TIME))
        refusal = "  cpu cannot change in place: the static policy of the CPU Manager refuses it"
        assert (refusal in lines) is is_kept
