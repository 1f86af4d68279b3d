"""When each effect of a change takes place, and what holds before it: on recorded nodes and by law."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_qos.cluster.files import pod_from_yaml
from kubectl_qos.edit.apply_state import Apply
from kubectl_qos.edit.compare import compare, with_manifests
from kubectl_qos.edit.edits import Edit, Side, apply_edits
from kubectl_qos.edit.findings import FindingCode, find_findings
from kubectl_qos.edit.goals import RankGoal, outlive
from kubectl_qos.edit.preview import (
    ContainerEffects,
    FileChange,
    NumberChange,
    Preview,
    StrategyKind,
    When,
    preview,
)
from kubectl_qos.edit.related import RelatedObjects
from kubectl_qos.edit.strategy import find_strategies
from kubectl_qos.k8s.kinds import pod_from_workload
from kubectl_qos.k8s.kubelet import Kubelet, NodeSetup
from kubectl_qos.k8s.objects import MEMORY, Pod
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.usage import ContainerUsage, PodUsage
from kubectl_qos.present.effects import goal_section, later_sentence, preview_sections, rank_change
from kubectl_qos.present.findings import finding_line
from kubectl_qos.present.values.changes import GoalValues, comparison_values, preview_values
from kubectl_qos.qos.resize import ResizeStatus
from tests.edit.test_preview import GI, SETUP
from tests.qos.recorded import pods_c, processes_c, setup_c

RUNNING = "containerStatuses: [{name: c, state: {running: {}}, containerID: 'containerd://1', %s}]"
ALLOCATED = "allocatedResources: {memory: 1Gi}, resources: {requests: {memory: 1Gi}, limits: {memory: 2Gi}}"
DEFERRED = "conditions: [{type: PodResizePending, status: 'True', reason: Deferred, message: no room}]"


def pod(name: str, resources: str, status: str = "", more: str = "") -> Pod:
    return pod_from_yaml(
        f"kind: Pod\nmetadata: {{name: {name}, namespace: n, uid: u-{name}}}\n"
        f"spec: {{nodeName: n1, containers: [{{name: c, resources: {{{resources}}}{more}}}]}}\n"
        f"status: {{phase: Running, qosClass: Burstable, {status}}}\n"
    )


def request(text: str, side: Side = Side.REQUESTS, owner: str = "c") -> Edit:
    return Edit(owner, side, MEMORY, Quantity.parse(text))


def used(*pods: Pod) -> dict[tuple[str, str], PodUsage]:
    return {
        (one.namespace, one.name): PodUsage.of_containers({"c": ContainerUsage(GI, GI, 0)}) for one in pods
    }


def of(mine: Pod, *edits: Edit, others: tuple[Pod, ...] = (), setup: NodeSetup = SETUP) -> Preview:
    return preview(mine, edits, setup, others, used(mine, *others))


PENDING = pod("mine", "requests: {memory: 8Gi}, limits: {memory: 9Gi}", f"{RUNNING % ALLOCATED}, {DEFERRED}")
LOW, HIGH = pod("low", "requests: {memory: 64Mi}"), pod("high", "requests: {memory: 4Gi}")


def test_before_is_what_the_node_runs_and_after_what_the_spec_desires() -> None:
    """W1: 1Gi to 8Gi, Deferred: the kernel has 938, not 500."""
    found = of(PENDING, others=(LOW, HIGH))
    (change,) = found.effects.containers
    assert change.oom_score_adj == NumberChange(938, 500)
    assert (found.effects.rank_before, found.effects.rank_after) == (2, 3)
    edited = of(PENDING, request("4Gi"), others=(LOW, HIGH))
    (change,) = edited.effects.containers
    assert change.oom_score_adj == NumberChange(938, 750)


def test_the_recorded_pending_resize() -> None:
    """R1: adj 975 and rank 1 are in force, also where the spec has 300Mi."""
    pods, setup = pods_c("pending-resize"), setup_c("pending-resize")
    mine = next(one for one in pods if one.name == "bu-over")
    found = preview(mine, (), setup, pods)
    assert found.before.container("c").oom_score_adj == 975
    assert found.after.container("c").oom_score_adj == 924
    (container_id,) = (one.container_id.rpartition("/")[2] for one in mine.status.every_container)
    measured = {one.adj for one in processes_c("pending-resize") if one.container_id == container_id}
    assert measured == {975}


def test_neighbours_count_with_what_they_have() -> None:
    """The kubelet counts what is allocated, the scheduler what is desired; each in its own case."""
    mine = pod("other", "requests: {memory: 1Gi}")
    in_place = of(mine, request("8Gi"), others=(PENDING,))
    assert in_place.strategy_kind is StrategyKind.IN_PLACE
    assert in_place.outcome.answer is ResizeStatus.ACTUATED
    assert {one.resource: one.free for one in in_place.node_fit}["memory"] == 14 * GI
    recreated = of(msgspec.structs.replace(mine, kind="Deployment"), request("8Gi"), others=(PENDING,))
    assert {one.resource: one.free for one in recreated.node_fit}["memory"] == 7 * GI
    assert [row.qos for row in in_place.effects.ranking_before.pods]
    adjs = {row.pod.name: row.containers[0].adj for row in in_place.effects.ranking_before.pods}
    assert adjs["mine"] == 938


def test_a_goal_counts_with_what_neighbours_have() -> None:
    (edit,) = outlive(pod("other", "requests: {memory: 64Mi}"), PENDING, SETUP, [PENDING]).edits
    assert edit.quantity is not None
    assert edit.quantity.value() < 2 * GI


def test_a_changed_manifest_replaces_what_was_allocated() -> None:
    changed = with_manifests([PENDING], [apply_edits(pod("mine", ""), [request("4Gi")])]).pods
    effects = compare(changed, SETUP, SETUP).pods[0]
    assert effects.before.container("c").oom_score_adj == 750


SIZES = st.integers(1, 12 << 10).map(lambda size: f"{size}Mi")


@st.composite
def changes(draw: st.DrawFn) -> Preview:
    policies = ["", ", resizePolicy: [{resourceName: memory, restartPolicy: RestartContainer}]"]
    mine = pod("mine", f"requests: {{memory: {draw(SIZES)}}}", more=draw(st.sampled_from(policies)))
    others = tuple(
        pod(f"p{n}", f"requests: {{memory: {draw(SIZES)}}}") for n in range(draw(st.integers(0, 4)))
    )
    kind = draw(st.sampled_from(["Pod", "Pod", "Pod", "Deployment"]))
    mine = msgspec.structs.replace(mine, kind=kind)
    return of(mine, request(draw(SIZES)), others=others)


@given(changes())
def test_the_rank_of_now_is_todays_unless_a_container_restarts(found: Preview) -> None:
    effects = found.effects
    if not found.restarts or not found.is_carried_out:
        assert effects.rank_now == effects.rank_before
    elif found.strategy_kind is StrategyKind.IN_PLACE:
        assert effects.rank_now == effects.rank_after
    by_template = found.effects_of(StrategyKind.TEMPLATE)
    assert by_template.rank_now == effects.rank_before
    assert {one.when for one in by_template.containers} <= {When.RECREATED}
    assert {one.when for one in by_template.files} <= {When.RECREATED}


@given(changes())
def test_every_effect_has_its_moment_and_the_sentence_has_the_values(found: Preview) -> None:
    effects = found.effects
    for type_ in (ContainerEffects, FileChange):
        assert "when" in type_.__struct_fields__
    if found.strategy_kind is StrategyKind.IN_PLACE and found.is_carried_out:
        assert {one.when for one in effects.files} <= {When.NOW}
        expected = When.NOW if found.restarts else When.RESTART
        assert {one.when for one in effects.containers} == {expected}
    sentence = rank_change(effects)
    ranks = (effects.rank_before, effects.rank_now, effects.rank_after)
    assert sentence.startswith(f"{ranks[0]} ")
    if len(set(ranks)) == 1:
        assert sentence == f"{ranks[0]} of {effects.ranked}, stays"
    elif ranks[1] != ranks[2]:
        assert sentence.startswith(f"{ranks[1]} of {effects.ranked} now; {ranks[2]} ")
        assert (effects.rank_when is When.RESTART) == sentence.endswith(" c restarts")
    else:
        assert sentence == f"{ranks[0]} → {ranks[2]} of {effects.ranked} now"
    assert bool(later_sentence(effects)) == bool(effects.restarting_later)


@pytest.mark.parametrize(
    ("size", "when", "sentence"),
    [
        ("14Gi", When.RETRIED, "2 of 3 now; 3 once the kubelet resizes it and c restarts"),
        ("8Gi", When.NOW, "2 of 3 now; 3 when c restarts"),
    ],
)
def test_what_the_kubelet_puts_off_is_not_now(size: str, when: When, sentence: str) -> None:
    found = of(pod("mine", "requests: {memory: 1Gi}"), request(size), others=(LOW, HIGH))
    assert found.effects.when is when
    assert rank_change(found.effects) == sentence


def test_infeasible_is_never() -> None:
    setup = NodeSetup(SETUP.node, SETUP.kubelet, Release.of("1.34"))
    found = of(pod("mine", "requests: {memory: 1Gi}"), request("15500Mi"), others=(HIGH,), setup=setup)
    assert found.outcome.answer is ResizeStatus.INFEASIBLE
    assert {found.effects.when, found.effects.rank_when} == {When.NEVER}
    assert rank_change(found.effects) == "1 of 2 now; 2 never on this node"


def waiting(reason: str) -> Pod:
    """A pod whose container waits after it has ended so."""
    return pod(
        "mine",
        "requests: {memory: 1Gi}, limits: {memory: 2Gi}",
        "containerStatuses: [{name: c, restartCount: 7, state: {waiting: {reason: CrashLoopBackOff}}, "
        f"lastState: {{terminated: {{reason: {reason}, exitCode: 137}}}}, "
        "resources: {limits: {memory: 2Gi}}}]",
    )


FAILING, LOOPING = waiting("Error"), waiting("OOMKilled")


@pytest.mark.parametrize(
    ("version", "of_pod"),
    [("1.36.2", When.RECREATED), ("1.36.9", When.RESTART), ("1.37.0", When.RESTART)],
)
def test_the_limit_of_a_pod_stays_while_its_container_waits(version: str, of_pod: When) -> None:
    """W3, kubernetes#138760: the container starts with the new limit, the pod's cgroup keeps the old one."""
    setup = NodeSetup(SETUP.node, SETUP.kubelet, Release.of(version))
    found = of(FAILING, request("4Gi", Side.LIMITS), setup=setup)
    moments = {(file.container, file.file): file.when for file in found.effects.files}
    assert (moments[None, "memory.max"], moments["c", "memory.max"]) == (of_pod, When.RESTART)
    related = RelatedObjects(raw={"kind": "Pod", "metadata": {"name": "mine"}})
    said = [
        finding_line(one)
        for one in find_findings(found, related, StrategyKind.IN_PLACE, None)
        if one.code is FindingCode.POD_LIMIT_STAYS
    ]
    assert bool(said) is (of_pod is When.RECREATED)
    assert all("2Gi while c does not run" in one and "resize it while it runs" in one for one in said)


@pytest.mark.parametrize(
    ("version", "fixed"),
    [
        *[(old, "1.35.9") for old in ("1.33.9", "1.34.9", "1.35.8")],
        *[("1.36.3", "1.36.4"), ("1.35.9", ""), ("1.36.4", ""), ("1.37.0", "")],
    ],
)
def test_a_loop_of_oom_kills_is_ended_in_place_by_new_kubelets_alone(version: str, fixed: str) -> None:
    """kubernetes#138760; a kubelet before the fix would start it below the pod's old limit again."""
    setup = NodeSetup(SETUP.node, SETUP.kubelet, Release.of(version))
    found = of(LOOPING, request("4Gi", Side.LIMITS), setup=setup)
    raw = {"kind": "Pod", "metadata": {"name": "mine", "uid": "u-mine"}}
    strategies = find_strategies(LOOPING, found.edits, found, RelatedObjects(raw=raw))
    in_place = next(one for one in strategies if one.kind is StrategyKind.IN_PLACE)
    assert in_place.is_possible is not bool(fixed)
    assert (in_place.request is None, found.strategy_kind is StrategyKind.RECREATE) == (bool(fixed),) * 2
    why = f"c was OOMKilled and waits in CrashLoopBackOff (7 restarts): before {fixed} kubelets raise"
    assert in_place.reason.startswith(why if fixed else "")
    assert {file.when for file in found.effects.files} == {When.RECREATED if fixed else When.RESTART}
    said = " ".join(line.text for section in preview_sections(found) for line in section.lines)
    assert (f"not in place: {why}" in said) is bool(fixed)


@pytest.mark.parametrize(
    ("status", "edit"),
    [
        (LOOPING, request("512Mi")),
        (FAILING, request("4Gi", Side.LIMITS)),
        (pod("mine", "requests: {memory: 1Gi}, limits: {memory: 2Gi}"), request("4Gi", Side.LIMITS)),
    ],
    ids=["no limit is raised", "it fails by itself", "it runs"],
)
def test_other_changes_are_made_in_place_by_an_old_kubelet_too(status: Pod, edit: Edit) -> None:
    setup = NodeSetup(SETUP.node, SETUP.kubelet, Release.of("1.36.2"))
    found = of(status, edit, setup=setup)
    assert (found.strategy_kind, found.endless_loops) == (StrategyKind.IN_PLACE, ())


def test_lowering_the_limit_of_what_waits_needs_no_finding() -> None:
    setup = NodeSetup(SETUP.node, SETUP.kubelet, Release.of("1.36.2"))
    found = of(FAILING, request("1536Mi", Side.LIMITS), setup=setup)
    related = RelatedObjects(raw={"kind": "Pod", "metadata": {"name": "mine"}})
    codes = {one.code for one in find_findings(found, related, StrategyKind.IN_PLACE, None)}
    assert FindingCode.POD_LIMIT_STAYS not in codes


def job(suspend: bool, status: dict[str, Any]) -> dict[str, Any]:
    return {
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "n", "uid": "u", "resourceVersion": "5"},
        "spec": {
            "suspend": suspend,
            "template": {
                "spec": {"containers": [{"name": "c", "resources": {"requests": {"memory": "1Gi"}}}]}
            },
        },
        "status": status,
    }


SEEN = {"conditions": [{"type": "Suspended", "status": "True"}]}


@pytest.mark.parametrize(
    ("version", "suspend", "status", "kind"),
    [
        ("1.36", True, SEEN, StrategyKind.TEMPLATE),
        ("1.36", True, {}, StrategyKind.NEVER),
        ("1.36", True, {**SEEN, "active": 1}, StrategyKind.NEVER),
        ("1.36", False, SEEN, StrategyKind.NEVER),
        ("1.35", True, SEEN, StrategyKind.NEVER),
    ],
)
def test_a_suspended_job_may_change(
    version: str, suspend: bool, status: dict[str, Any], kind: StrategyKind
) -> None:
    """W4: suspended, seen to be, and without active pods (kubernetes#132441, #136077)."""
    from kubectl_qos.edit.server_response import expected_response
    from kubectl_qos.edit.status import Stage, check_progress
    from kubectl_qos.edit.strategy import find_strategies

    raw = job(suspend, status)
    mine = pod_from_workload("Job", raw)
    setup = NodeSetup(SETUP.node, SETUP.kubelet, Release.of(version))
    found = of(mine, request("2Gi"), setup=setup)
    related = RelatedObjects(raw=raw)
    assert found.strategy_kind is kind
    (strategy,) = find_strategies(mine, found.edits, found, related)
    assert strategy.kind is kind
    response = expected_response(found, related, StrategyKind.TEMPLATE)
    codes = {one.code for one in find_findings(found, related, strategy.kind, None)}
    if kind is StrategyKind.TEMPLATE:
        assert (response, strategy.pods) == (None, 0)
        assert strategy.request is not None
        assert strategy.request.path == "/apis/batch/v1/namespaces/n/jobs/j"
        assert strategy.note == "it is suspended: its pods get the new values once it is resumed"
        written = {**raw, "spec": {**raw["spec"], "template": strategy.request.patch["spec"]["template"]}}
        assert check_progress(strategy.request, written, written).stage is Stage.DONE
        assert FindingCode.IMMUTABLE not in codes
    else:
        assert response is not None
        assert "immutable" in response.message
        assert FindingCode.IMMUTABLE in codes


def test_the_gate_is_an_alpha_of_1_35() -> None:
    setup = NodeSetup(
        SETUP.node, SETUP.kubelet, Release.of("1.35", {"MutablePodResourcesForSuspendedJobs": True})
    )
    assert of(pod_from_workload("Job", job(True, SEEN)), request("2Gi"), setup=setup).strategy_kind is (
        StrategyKind.TEMPLATE
    )


@pytest.mark.parametrize(
    ("owner", "more", "answer", "remedy"),
    [
        ("", "", "reached on a full node when c restarts", "to reach it now: recreate the pod"),
        (
            "ownerReferences: [{kind: StatefulSet, name: db, controller: true}]",
            "",
            "reached on a full node when c restarts",
            "to reach it now: change the template of StatefulSet db (--by template)",
        ),
        (
            "ownerReferences: [{kind: Rollout, name: db, controller: true}]",
            "",
            "reached on a full node when c restarts",
            "to reach it now: change its owner, Rollout db, too, then recreate the pod",
        ),
        (
            "",
            ", resizePolicy: [{resourceName: memory, restartPolicy: RestartContainer}]",
            "reached on a full node now",
            None,
        ),
    ],
)
def test_a_goal_says_when_it_is_reached(owner: str, more: str, answer: str, remedy: str | None) -> None:
    mine = pod_from_yaml(
        f"kind: Pod\nmetadata: {{name: mine, namespace: n, uid: u, {owner}}}\n"
        f"spec: {{nodeName: n1, containers: [{{name: c, resources: {{requests: {{memory: 1Gi}}}}{more}}}]}}\n"
        "status: {phase: Running, qosClass: Burstable}\n"
    )
    usage = used(mine, LOW, HIGH)
    goal = outlive(mine, HIGH, SETUP, [LOW, HIGH], usage)
    section = goal_section(of(mine, *goal.edits, others=(LOW, HIGH)))
    assert section.answer == answer
    assert [line.text for line in section.lines] == ([remedy] if remedy else [])
    assert section.warns is bool(remedy)


def test_a_goal_of_a_refused_change_is_not_reached() -> None:
    mine = pod("mine", "requests: {memory: 1Gi}, limits: {memory: 2Gi}")
    refused = of(mine, request("8Gi"), others=(LOW, HIGH))
    assert goal_section(refused).answer == "not reached"
    values = preview_values(
        Apply(refused.before.pod, refused.edits, refused),
        goal=RankGoal(rank=2),
        patch=None,
        manifest={},
        notes=(),
    )
    assert (values.goal, values.kubelet) == (
        GoalValues(outlive=None, rank_below=2, when=When.NEVER),
        None,
    )


def test_compared_settings_take_effect_in_recreated_pods() -> None:
    comparison = compare([PENDING, LOW], SETUP, NodeSetup(SETUP.node, Kubelet(), Release.of("1.37")))
    values = comparison_values(comparison, [], comparison.pods)
    assert {one.when for one in values.pods} == {"recreated"}
