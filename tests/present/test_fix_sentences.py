"""Fixes in words: the demo's rows, the sentence of one, and deaths without a fix."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from kubectl_qos.analysis.fix_list import FixList, fixes_for_pods, fixes_on_nodes, of_template
from kubectl_qos.cluster.files import DemoSource
from kubectl_qos.edit.findings import Finding, FindingCode, Severity
from kubectl_qos.edit.fixes import (
    EvidenceKind,
    Fix,
    FixKind,
    NeedEvidence,
    NoFixReason,
    Unfixed,
    order_of_fixes,
)
from kubectl_qos.edit.preview import StrategyKind
from kubectl_qos.k8s.objects import MEMORY, NodeObject, Pod, ResourceList, convert
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.k8s.usage import ContainerHistory, ContainerUsage, History, PodKey, PodUsage
from kubectl_qos.present.fix_sentences import (
    MOST_ROWS,
    PRIORITY,
    basis_notes,
    ended_text,
    first_fix_text,
    first_unfixed,
    fix_change,
    fix_effect,
    fix_evidence,
    fix_how,
    fix_requests,
    fix_sentence,
    fix_summary,
    fix_when,
    lines,
    notes,
    unfixed_lines,
    unfixed_sentence,
    without_fix,
)

IMPORTER = "data/importer-5f7b9c-2vtxk"
LEAK = "it grows without bound, so no limit is enough: look for a leak"


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    return DemoSource().snapshot(Scope())


@pytest.fixture(scope="module")
def found(snapshot: Snapshot) -> FixList:
    return fixes_on_nodes(snapshot, ["worker-2"], Scope())


def test_what_is_unknown_keeps_its_names(snapshot: Snapshot) -> None:
    bare = replace(snapshot, usage={}, node_usage={})
    assert next(iter(without_fix(fixes_on_nodes(bare, ["worker-2"], Scope())))).startswith(
        "Memory usage is unknown; it comes from the metrics API, or with -f from PodMetrics"
    )


def first(found: FixList, kind: FixKind) -> Fix:
    return next(fix for fix in found.fixes if fix.kind is kind)


LOW = "The node was low on resource: {}. Threshold quantity: 10Gi, available: 9Gi. "
OOM_END = {"reason": "OOMKilled", "exitCode": 137}
USED = "Container c was using {}, request is {}, has larger consumption of x. "


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (
            {"reason": "Evicted", "message": LOW.format("memory") + USED.format("70Mi", "0")},
            "88Mi for c in deployment/api. Below its requests, priority decides; raise limits.memory",
        ),
        (
            {"reason": "Evicted", "message": LOW.format("memory") + USED.format("40Mi", "0")},
            "evicted for memory above its requests: request memory 52Mi for c in deployment/api. Below its",
        ),
        (
            {"reason": "Evicted", "message": LOW.format("ephemeral-storage") + USED.format("3Gi", "1Gi")},
            "evicted for ephemeral-storage above its requests: request ephemeral-storage 3.8Gi for c in",
        ),
        (
            {"reason": "Evicted", "message": LOW.format("pids")},
            "evicted for pids: pods do not request pids: the order is by priority",
        ),
        (
            {
                "reason": "Evicted",
                "message": 'Container c exceeded its local ephemeral storage limit "2Gi". ',
            },
            "was evicted: container c wrote more than its ephemeral-storage limit of 2Gi, logs included",
        ),
        (
            {"reason": "Evicted", "message": "Pod was rejected: The node had condition: [MemoryPressure]. "},
            "not admitted by the kubelet: it never ran; no OOM: Pod was rejected",
        ),
        (
            {"containerStatuses": [{"name": "c", "state": {"terminated": OOM_END}}]},
            "n/p ended OOMKilled with a limit of 64Mi: kubectl qos fix pod/p -n n raises it",
        ),
        (
            {"containerStatuses": [{"name": "c", "state": {"terminated": {**OOM_END, "exitCode": 0}}}]},
            "n/p succeeded, but a process in c was OOM killed with a limit of 64Mi: ",
        ),
        (
            {"containerStatuses": [{"name": "gone", "state": {"terminated": OOM_END}}]},
            "n/p ended OOMKilled without a memory limit: a memory request lowers its oom_score_adj",
        ),
    ],
)
def test_what_would_have_kept_a_pod_that_ended(status: dict[str, object], text: str) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "api-5d4f8c9b7", "controller": True}
    labels = {"pod-template-hash": "5d4f8c9b7"}
    metadata = {"name": "p", "namespace": "n", "ownerReferences": [owner], "labels": labels}
    spec = {"containers": [{"name": "c", "resources": {"limits": {"memory": "64Mi"}}}]}
    pod = convert({"metadata": metadata, "spec": spec, "status": {"phase": "Failed", **status}}, Pod)
    assert text in ended_text(pod, Release.of("1.36"))


def test_a_raised_limit(found: FixList) -> None:
    fix = first(found, FixKind.LIMIT)
    assert fix_sentence(fix) == (
        "data/importer-5f7b9c-2vtxk c limits.memory 117.7Mi → 144Mi, now, in place until the pod is replaced"
    )
    assert fix_effect(fix) == "own limit 98%: +2Mi → +29Mi"
    assert (fix_requests(fix), fix_evidence(fix)) == ("unchanged", "usage seen: 115Mi")
    guaranteed = next(fix for fix in found.fixes if fix.pod.name == "db-0")
    assert fix_change(guaranteed) == "a limits.memory and a requests.memory 4Gi → 4608Mi (at least 4425Mi)"


def test_how_long_a_fix_lasts_at_the_present_growth(snapshot: Snapshot) -> None:
    """The importer grows by 256 KiB a second: 2.7 MiB are full in 11 s, 29 MiB in two minutes."""
    grows = {(("data", "importer-5f7b9c-2vtxk"), "c"): ContainerHistory(115 << 20, rate=float(1 << 18))}
    growing = replace(snapshot, history=History(grows, snapshot.usage))
    fixes = fixes_on_nodes(growing, ["worker-2"], Scope())
    assert fix_effect(first(fixes, FixKind.LIMIT)) == "own limit 98%: +2Mi, ~11 s → +29Mi, ~2 min"


def test_a_gain_is_shown_in_the_value_that_changes(snapshot: Snapshot) -> None:
    """Pods that are evicted before free too little memory to show in a distance of some Gi."""
    of_promo = fixes_for_pods(snapshot, [("shop", "promo-7c4b-l9dk2")])
    fix = next(fix for fix in of_promo.fixes if fix.death.killer.evicts)
    assert fix_effect(fix) == (
        "kubelet evicts at +10.0Gi: after 4 other deaths → after 5 other deaths,"
        " but first own limit 92% (+5Mi)"
    )
    firsts = replace(fix, death=fix.death._replace(before=0), sooner=None)
    assert fix_effect(firsts) == "kubelet evicts at +10.0Gi: first → after 5 other deaths"
    due = replace(firsts, death=firsts.death._replace(distance_bytes=0))
    due = replace(due, after=due.death._replace(before=2))
    assert fix_effect(due) == "kubelet evicts, due: first → after 2 other deaths"
    same = replace(fix, after=fix.death, kind=FixKind.RECOMMENDED, sooner=None)
    assert fix_effect(same) == "kubelet evicts: still +10.0Gi, after 4 other deaths"


def test_a_raised_limit_that_another_killer_does_not_wait_for(found: FixList) -> None:
    fix = next(one for one in found.fixes if one.kind is FixKind.LIMIT and "api" in one.pod.name)
    assert fix.sooner is not None
    assert fix_effect(fix) == ("own limit 94%: +118Mi → +1.1Gi, but first kubepods limit (+687Mi)")
    due = replace(fix, sooner=fix.sooner._replace(distance_bytes=0))
    assert fix_effect(due).endswith(", but first kubepods limit (due)")


def test_a_pod_that_was_killed_and_has_ended_needs_a_limit_above_that(snapshot: Snapshot) -> None:
    ended = next(pod for pod in snapshot.pods if pod.name == "etl-28930-9xw2c")
    (fix,) = fixes_for_pods(snapshot, [("batch", ended.name)], ("Job", "etl-28930")).fixes
    assert fix.pod is ended
    assert fix_sentence(fix) == (
        "batch/etl-28930-9xw2c c limits.memory 200Mi → 400Mi, once job/etl-28930 is recreated"
    )
    assert (fix_effect(fix), fix_evidence(fix)) == (
        "own limit 100%: due → +200Mi",
        "OOMKilled, need unknown: 200Mi",
    )


def test_a_raised_request_and_its_moment(found: FixList) -> None:
    fix = first(found, FixKind.REQUEST)
    assert fix_effect(fix) == (
        "kubepods limit: +687Mi → +1.9Gi, after batch/crunch-x2k9f:c, but first own limit 94% (+118Mi)"
    )
    assert (fix_when(fix), fix_requests(fix)) == ("when c restarts", "+209Mi of 1.6Gi free")
    assert fix_effect(replace(fix, after=None, sooner=None)) == "kubepods limit: +687Mi → never"


def test_a_request_far_above_usage_says_what_it_is_for(snapshot: Snapshot) -> None:
    found = fixes_for_pods(snapshot, [("data", "importer-5f7b9c-2vtxk")])
    limit, near, *_, far = found.fixes
    assert fix_summary(far).startswith(
        "container c: memory request 95.4Mi → 1655Mi, memory limit 117.7Mi → 1655Mi"
        " (14 times its usage, so that others die first), when c restarts"
    )
    assert "(14 times its usage, so that others die first)" in fix_sentence(far)
    assert not any("times its usage" in fix_summary(fix) for fix in (limit, near))
    text = (
        "far above usage: 3 (2 times), 4 (14 times), 5 (14 times); such a request only makes others die first"
    )
    assert text in list(notes(found))


def test_a_cheaper_fix_comes_before_a_request_far_above_usage(snapshot: Snapshot) -> None:
    front = [pod.key for pod in snapshot.pods if pod.name.startswith("front-")]
    found = fixes_for_pods(snapshot, front, ("Deployment", "front"))
    first, second = found.fixes
    throttles = "with a CPU limit: 1; above it the kernel throttles the container, even on an idle node"
    assert throttles in list(notes(found))
    assert (first.more_bytes, first.times_peak, second.times_peak) == (0, 0, 6)


def test_a_class_is_named_and_how_a_new_pod_gets_it(found: FixList) -> None:
    of_job, *_, guaranteed = (fix for fix in found.fixes if fix.kind is FixKind.CLASS)
    assert fix_effect(of_job).endswith("; BestEffort → Burstable")
    assert (fix_how(of_job), fix_when(of_job)) == ("recreate job/crunch", "when recreated")
    assert fix_effect(guaranteed).endswith("; Burstable → Guaranteed")
    assert fix_how(guaranteed) == "through deployment/api"


def test_a_limited_neighbour_ends_itself(found: FixList) -> None:
    fix, other, *_ = found.fixes
    assert fix_effect(replace(fix, kind=FixKind.NEIGHBOUR, after=other.death, sooner=None)) == (
        "own limit 98%: data/importer-5f7b9c-2vtxk:c survives; batch/crunch-x2k9f dies instead after +587Mi"
    )
    assert fix_summary(replace(fix, kind=FixKind.NEIGHBOUR, pod=other.pod, edits=other.edits)).startswith(
        "batch/crunch-x2k9f would die instead: container c: memory request <none> → "
    )


def test_what_does_not_fit_is_said(found: FixList) -> None:
    fix = first(found, FixKind.REQUEST)
    full = replace(fix, free_bytes=fix.node_bytes - 1)
    assert fix_summary(full) == f"none that fits: {fix_summary(fix)}"
    assert fix_requests(replace(fix, free_bytes=fix.node_bytes - 1)) == "+209Mi of 209Mi free: no room"
    assert fix_requests(replace(fix, free_bytes=None)) == "+209Mi"


def test_evidence_in_words(found: FixList) -> None:
    fix = found.fixes[0]
    texts = [fix_evidence(replace(fix, evidence=NeedEvidence(kind, 300 << 20))) for kind in EvidenceKind]
    known = [
        "usage seen: 300Mi",
        "limit too small to start, need unknown",
        "OOMKilled, need unknown: 300Mi",
        "OOMKilled, perhaps at its limit: 300Mi",
        "peak seen: 300Mi",
        "VPA recommends: 300Mi",
    ]
    assert texts == ["no usage", *known]


def test_a_pod_that_is_evicted_whole_is_named_without_a_container(snapshot: Snapshot) -> None:
    nodes = (fixes_on_nodes(snapshot, [name], Scope()) for name in snapshot.nodes)
    of_node, evicted = next((one, fix) for one in nodes for fix in one.fixes if fix.death.killer.evicts)
    killed = replace(evicted, evidence=NeedEvidence(EvidenceKind.KILLED_EACH_TIME, 60 << 20))
    notes = list(basis_notes(replace(of_node, fixes=(killed,))))
    assert any(
        note.startswith(f"{'/'.join(killed.death.key)}: it was OOMKilled at this limit") for note in notes
    )


@pytest.mark.parametrize(
    ("key", "second"),
    [
        (("team-a", "web-5d4f8c-8szcd"), "instead of 1, for the same death"),
        (("shop", "search-0"), "for a later death"),
    ],
)
def test_of_several_changes_it_says_which_to_take(key: PodKey, second: str, snapshot: Snapshot) -> None:
    of_pod = fixes_for_pods(snapshot, [key])
    assert f"apply 1: another pod dies in its place; 2: {second}" in notes(of_pod)
    assert not any(note.startswith("take") for note in notes(replace(of_pod, fixes=of_pod.fixes[:1])))


def test_a_workload_gets_one_change_for_all_of_its_pods(snapshot: Snapshot) -> None:
    keys = [(pod.namespace, pod.name) for pod in snapshot.pods if pod.name.startswith("api-7d9c5b6f8")]
    of_workload = fixes_for_pods(snapshot, keys, ("Deployment", "api"))
    assert len(keys) > 1
    for fix in of_workload.fixes:
        assert fix_sentence(fix).startswith("shop/deployment/api ")
        assert fix_how(fix) == "through deployment/api"
        assert fix.strategy is StrategyKind.TEMPLATE
    assert [fix.death.killer.id for fix in of_workload.fixes if fix.fits] == [
        "pod limit", *("kubepods limit",) * 2,
    ], "in the order of its deaths"  # fmt: skip
    others = "2, 3, 4, 5: for a full node, where others then die before it"
    assert f"apply 1: it delays the first death; {others}" in notes(of_workload)
    refused = replace(of_workload, refusals=((1, Finding(Severity.REFUSAL, "q", FindingCode.QUOTA_REFUSES)),))
    assert others in notes(refused), "which to take is not said where the first one is refused"
    texts = [fix_requests(fix) for fix in of_workload.fixes]
    assert texts[1] == "+418Mi for 2 pods of 1.6Gi free", "both are on one node"
    assert texts[0] == "unchanged", "a limit"
    assert [fix.fits for fix in of_workload.fixes] == [": no room" not in text for text in texts]
    assert not all(fix.fits for fix in of_workload.fixes)
    effects = [fix_effect(fix) for fix in of_workload.fixes]
    assert [effect.endswith("; no room") for effect in effects] == [not fix.fits for fix in of_workload.fixes]
    first = of_workload.fixes[1]
    assert first.instead is not None
    assert first.instead.key == ("batch", "crunch-x2k9f"), "whose death the request brings about"
    assert "+1.9Gi, after batch/crunch-x2k9f:c, but first" in effects[1]
    assert "+3.0Gi, after batch/crunch-x2k9f:c and 1 other death" in effects[2]


def test_a_nearer_death_of_another_pod_keeps_a_full_node_away() -> None:
    """After the eviction at +192Mi the node has not +292Mi left, but what it freed too."""
    used = {"batch": 1024, "web": 1900, "db": 3500}
    requests = {"batch": {}, "web": {"requests": {"memory": "1Gi"}}, "db": {"requests": {"memory": "4Gi"}}}
    pods = [
        convert(
            {
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "d"},
                "spec": {"nodeName": "n1", "containers": [{"name": "c", "resources": resources}]},
                "status": {"phase": "Running"},
            },
            Pod,
        )
        for name, resources in requests.items()
    ]
    usage = {pod.key: PodUsage.of_containers({"c": ContainerUsage(used[pod.name] << 20)}) for pod in pods}
    memory = {"memory": "6800Mi"}
    node = {"metadata": {"name": "n1"}, "status": {"capacity": memory, "allocatable": memory}}
    nodes = {"n1": convert(node, NodeObject)}
    fix = fixes_for_pods(Snapshot(tuple(pods), nodes, usage), [("d", "batch")]).fixes[0]
    assert ", after d/web, but first kubepods limit (" in fix_effect(fix)
    assert ", unless d/web dies before)" in fix_effect(fix)


def test_what_has_no_room_on_the_node_comes_after_what_fits(snapshot: Snapshot) -> None:
    node = snapshot.nodes["worker-2"]
    allocatable = ResourceList({**(node.status.allocatable or {}), MEMORY: Quantity.parse("14200Mi")})
    status = msgspec.structs.replace(node.status, allocatable=allocatable)
    small = {**snapshot.nodes, "worker-2": msgspec.structs.replace(node, status=status)}
    listed = fixes_for_pods(replace(snapshot, nodes=small), [("ml", "trainer-gpu-0")])
    fits = [fix.fits for fix in listed.fixes if fix.death.killer.is_node_wide]
    assert set(fits) == {True, False}
    assert fits == sorted(fits, reverse=True)


def test_several_nodes_show_the_nearest_and_a_namespace_its_own(snapshot: Snapshot) -> None:
    nodes = sorted(snapshot.nodes)
    of_all = fixes_on_nodes(snapshot, nodes, Scope())
    assert [fix.effects.after.setup.node.name for fix in of_all.fixes] == [
        "worker-2",
        "worker-1",
        "worker-3",
    ]
    header, nearest, *_ = lines(of_all)
    assert (header.split()[1], nearest.split()[1]) == ("NODE", "worker-2")
    in_shop = fixes_on_nodes(snapshot, nodes, Scope(namespace="shop"))
    assert {fix.death.key[0] for fix in in_shop.fixes} == {"shop"}
    others_first = fixes_on_nodes(snapshot, ["worker-2"], Scope(namespace="kube-system"))
    assert list(lines(others_first)) == [
        "nothing to fix: no limit of these pods is near, and on worker-2 others die first"
    ]
    assert list(lines(fixes_on_nodes(replace(snapshot, pods=()), ["worker-2"], Scope()))) == [
        "nothing to fix: no limit and no killer is near"
    ]


def test_a_static_pod_has_none_that_the_server_could_apply(snapshot: Snapshot) -> None:
    found = fixes_for_pods(snapshot, [("kube-system", "kube-scheduler-control-1")])
    assert list(lines(found)) == ["no fix that the server could apply"]
    assert all(line.endswith("; kubectl qos set previews values for it") for line in unfixed_lines(found))


def test_what_is_left_out_and_what_has_no_fix(found: FixList) -> None:
    fix = found.fixes[0]
    many = FixList(
        (fix, replace(fix, workload=("Deployment", "web"))) * (MOST_ROWS // 2 + 1),
        (Unfixed("n", fix.death, NoFixReason.LEAK),),
        found.snapshot,
        problems=(PRIORITY,),
    )
    assert len(list(lines(many))) == MOST_ROWS + 3
    assert len(list(lines(many, most=MOST_ROWS))) == MOST_ROWS + 1
    assert next(notes(many)).endswith(LEAK)
    assert next(notes(replace(many, further=3), MOST_ROWS)) == (
        "and 2 more fixes and those of 3 more nodes, for later deaths: --all"
    )
    assert list(notes(many, MOST_ROWS)) == [
        "and 2 more fixes, for later deaths: --all",
        f"{IMPORTER}:c: own limit 98%, +2Mi: {LEAK}",
        PRIORITY,
    ]
    assert list(lines(FixList((), many.unfixed, found.snapshot))) == ["no fix"]
    for reason in NoFixReason:
        assert unfixed_sentence(Unfixed("n", fix.death, reason))


def test_conditions_are_those_of_shown_fixes_and_at_most_ten(found: FixList) -> None:
    fix = found.fixes[0]
    grown = [fix.death._replace(grown_bytes=size << 20) for size in range(200, 212)]
    many = FixList((fix, *(replace(fix, death=death) for death in grown)), (), found.snapshot)

    def conditions(most: int | None) -> list[str]:
        return [note for note in notes(many, most) if "if it alone grows" in note or "another pod" in note]

    assert conditions(2) == [f"own limit 98%: {IMPORTER}:c, if it alone grows (the victim from 200Mi on)"]
    *_, last, more = conditions(None)
    assert last.endswith("the victim from 209Mi on)")
    assert more == "2 more deaths may take another pod: see -o json"


def test_a_limit_with_room_for_more_is_no_fix_and_comes_last(snapshot: Snapshot) -> None:
    own = fixes_for_pods(snapshot, [("sandboxed", "vm-runner-0")]).unfixed[0]
    room = "enough headroom above its known usage, unless it grows (usage seen: 24Mi)"
    assert unfixed_sentence(own) == f"sandboxed/vm-runner-0:c: own limit 75%, +8Mi: {room}"
    leak = own._replace(
        reason=NoFixReason.LEAK, evidence=None, death=own.death._replace(distance_bytes=1 << 40)
    )
    first, *_, last = notes(FixList((), (own,) * MOST_ROWS + (leak,), snapshot))
    assert first.endswith(LEAK)
    assert last == "1 more death without a fix: see -o json"


def test_a_first_fix_that_is_not_against_the_nearest_death_says_why(snapshot: Snapshot) -> None:
    of_pod = fixes_for_pods(snapshot, [("data", "db-0")])
    assert not first_unfixed(of_pod), "db-0:b is nearer in bytes, and less full"
    [unfixed] = [one for one in of_pod.unfixed if one.death.container == "b"]
    of_pod = replace(of_pod, unfixed=(unfixed._replace(death=unfixed.death._replace(seconds=40.0)),))
    line = first_unfixed(of_pod)
    assert line == (
        "data/db-0:b: own limit 75%, +32Mi: enough headroom above its known usage, unless it grows"
        " (usage seen: 96Mi),"
        " but at this growth it is full in ~40 s: find what grows"
    )
    assert of_pod.fixes[0].death.distance_bytes > of_pod.unfixed[0].death.distance_bytes
    said = list(unfixed_lines(of_pod))
    assert said[0] == f"comes first, but has no fix: {line}"
    assert line not in said, "once"
    assert not first_unfixed(fixes_on_nodes(snapshot, ["worker-2"], Scope())), "db-0:b is further away"
    assert not first_unfixed(FixList((), of_pod.unfixed, snapshot)), "there is no first one"
    fix, later = of_pod.fixes[0], unfixed.death._replace(before=1, distance_bytes=1, ceiling_bytes=2)
    looping = replace(fix, death=fix.death._replace(waits=True, distance_bytes=0))
    after_others = (unfixed._replace(death=later),)
    assert later.urgency < looping.death.urgency
    assert not first_unfixed(FixList((looping,), after_others, snapshot)), "others die before it"


def test_the_first_fix_is_against_the_killer_that_the_reader_sees(snapshot: Snapshot) -> None:
    of_pod = fixes_for_pods(snapshot, [("ml", "notebook-0")])
    assert first_fix_text(of_pod, "own limit 13%").startswith("none: enough headroom")
    assert first_fix_text(of_pod, "kubelet evicts, +587Mi").startswith(
        "container c: memory request 4Mi → 896Mi"
    )


def test_what_brings_its_death_nearer_is_never_first(found: FixList) -> None:
    fix = found.fixes[0]
    assert fix.after is not None
    sooner = fix.after._replace(distance_bytes=fix.death.distance_bytes - 1)
    recommended = replace(fix, kind=FixKind.RECOMMENDED)
    assert min(recommended, fix, key=order_of_fixes) is recommended
    assert min(replace(recommended, after=sooner), fix, key=order_of_fixes) is fix


def test_on_a_node_of_unknown_size_only_own_limits_are_tried(snapshot: Snapshot) -> None:
    """Who pastes the pods alone has no Node, and no limit of a pod needs one."""
    nodes = {name: node for name, node in snapshot.nodes.items() if name != "worker-2"}
    unknown = replace(snapshot, nodes=nodes)
    alone = fixes_on_nodes(unknown, ["worker-2"], Scope())
    assert {fix.kind for fix in alone.fixes} == {FixKind.LIMIT}
    assert "db-0" in {fix.pod.name for fix in alone.fixes}
    of_pod = fixes_for_pods(unknown, [("data", "db-0")])
    among = fixes_on_nodes(unknown, ["worker-1", "worker-2"], Scope())
    for found in (alone, of_pod, among):
        assert next(basis_notes(found)).startswith("the memory capacity of worker-2 is unknown: only limits")
    without = fixes_on_nodes(replace(unknown, nodes={}), sorted(nodes), Scope(namespace="nobody"))
    assert next(lines(without)).startswith("the memory capacity of control-1, worker-1, worker-3 is unknown")
    assert not any("capacity" in note for note in notes(without)), "it is said once"


def test_a_container_that_the_template_lacks_is_changed_by_what_injects_it(snapshot: Snapshot) -> None:
    pods = {pod.name: pod for pod in snapshot.pods}
    keys = [("shop", "search-0"), ("shop", "search-1")]
    found = fixes_for_pods(snapshot, keys, ("StatefulSet", "search"))
    kept = of_template(found, pods["search-0"])
    assert {edit.owner for fix in found.fixes for edit in fix.edits} == {"a", "b", "c", "s"}
    assert {edit.owner for fix in kept.fixes for edit in fix.edits} == {"c"}
    assert (
        list(basis_notes(kept))[-1] == "not offered: 3 changes of containers that the template lacks (a, b)"
    )
    assert of_template(kept, pods["search-0"]) is kept


def test_a_cpu_limit_that_holds_a_container_back_is_named_with_the_class_without_it(
    snapshot: Snapshot,
) -> None:
    keys = [("shop", "promo-7c4b-l9dk2"), ("shop", "api-7d9c5b6f8-x2mzq"), ("data", "db-0")]
    containers = {
        ((pod.namespace, pod.name), one.name): ContainerHistory(1, throttled=0.43)
        for pod in snapshot.pods
        if (pod.namespace, pod.name) in keys
        for one in pod.containers[:1]
    }
    known = replace(snapshot, history=History(containers, snapshot.usage))
    notes = [
        note for key in keys for note in basis_notes(fixes_for_pods(known, [key])) if "throttled" in note
    ]
    was = "was throttled in 43% of its CPU periods in the last hour by its limit of 2"
    was += ": raise or remove the limit"
    of_api = f"shop/api-7d9c5b6f8-x2mzq:c {was} (set -c c --limits cpu-)"
    of_db = f"data/db-0:a {was} (set -c a --limits cpu-, Guaranteed → Burstable)"
    assert notes == [of_api, of_db], "promo has no limit"
    of_node = fixes_on_nodes(known, ["worker-2"], Scope(namespace="data"))
    assert [note for note in list(basis_notes(of_node)) if "throttled" in note] == [of_db]
