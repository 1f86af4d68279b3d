"""The findings on a change: each code once, its severity, and the laws that hold."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from kubectl_qos.edit.compare import with_admitted_values
from kubectl_qos.edit.edits import POD_LEVEL, Edit, Side
from kubectl_qos.edit.findings import Finding, FindingCode, Severity, find_findings
from kubectl_qos.edit.preview import Preview, StrategyKind, preview
from kubectl_qos.edit.related import Owner, RelatedObjects
from kubectl_qos.edit.server_response import expected_response
from kubectl_qos.k8s.kinds import pod_from_workload
from kubectl_qos.k8s.kubelet import Kubelet, Node, NodeSetup
from kubectl_qos.k8s.managers import HorizontalAutoscaler, VerticalAutoscaler
from kubectl_qos.k8s.objects import Pod, convert, resource_list
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.quota import LimitRange, ResourceQuota
from kubectl_qos.k8s.releases import OciRuntime, Release
from kubectl_qos.k8s.selectors import DisruptionBudget
from kubectl_qos.k8s.usage import ContainerHistory, ContainerUsage, PodUsage
from kubectl_qos.present.findings import finding_line, findings_section
from kubectl_qos.qos.resize import ResizeStatus
from tests.qos.corner import GI, spec

MI: Final = 1 << 20
NODE: Final = Node(
    name="n1",
    memory_capacity_bytes=16 * GI,
    allocatable_memory_bytes=15 * GI,
    status_allocatable=resource_list({"cpu": "4", "memory": "15Gi"}),
)
SETUP: Final = NodeSetup.of(NODE, Kubelet(), "1.36")
STATUS: Final = (
    "{phase: Running, qosClass: Burstable, "
    "containerStatuses: [{name: app, state: {running: {}}, resources: {}}]}"
)
RESOURCES: Final = "requests: {cpu: 100m, memory: 256Mi}, limits: {cpu: 1, memory: 1Gi}"


def pod(resources: str = RESOURCES, more: str = "", status: str = STATUS) -> Pod:
    return spec(f"nodeName: n1, containers: [{{name: app, resources: {{{resources}}}}}]{more}", status=status)


def edit(side: str, resource: str, value: str | None, owner: str = "app") -> Edit:
    return Edit(owner, Side(side), resource, None if value is None else Quantity.parse(value))


LESS: Final = edit("limits", "memory", "512Mi")
MORE: Final = edit("requests", "memory", "512Mi")


def limits(name: str = "caps", **item: Any) -> LimitRange:
    return convert(
        {"metadata": {"name": name}, "spec": {"limits": [{"type": "Container", **item}]}}, LimitRange
    )


def quota(hard: dict[str, str], used: dict[str, str]) -> ResourceQuota:
    return convert(
        {"metadata": {"name": "q"}, "spec": {"hard": hard}, "status": {"hard": hard, "used": used}},
        ResourceQuota,
    )


def related(subject: Pod, **more: Any) -> RelatedObjects:
    return RelatedObjects(raw={"kind": subject.kind, "metadata": {"name": subject.name}, "spec": {}}, **more)


def of(
    *edits: Edit,
    subject: Pod | None = None,
    kind: StrategyKind = StrategyKind.IN_PLACE,
    usage: int | None = None,
    neighbours: tuple[Pod, ...] = (),
    seen: Mapping[str, ContainerHistory] = MappingProxyType({}),
    **more: Any,
) -> tuple[Finding, ...]:
    """The findings on edits of a pod with this memory usage, and what a store has seen of it."""
    subject = subject or pod()
    used = PodUsage.of_containers({"app": ContainerUsage(usage)}) if usage is not None else None
    held = {(subject.namespace, subject.name): used} if used is not None else {}
    found = preview(subject, edits, SETUP, neighbours, held)
    return find_findings(found, related(subject, **more), kind, used, seen)


def said(found: tuple[Finding, ...]) -> list[tuple[Severity, str, FindingCode]]:
    return [(finding.severity, finding.subject, finding.code) for finding in found]


# -- the server --------------------------------------------------------------------------------------


def test_a_change_without_problems_has_no_findings() -> None:
    assert of(MORE) == ()
    assert of() == ()


def test_invalid_values_are_refused_with_every_strategy_and_shown_by_the_preview() -> None:
    bad = edit("requests", "memory", "2Gi")
    for kind in (StrategyKind.IN_PLACE, StrategyKind.RECREATE):
        [found] = of(bad, kind=kind)
        assert (found.severity, found.code, found.in_preview) == (Severity.REFUSAL, FindingCode.INVALID, True)
        assert found.text.endswith("must be less than or equal to memory limit of 1Gi")
        assert findings_section([found]) is None


def test_a_change_of_class_is_refused_in_place_only() -> None:
    same = [edit("requests", "cpu", "1"), edit("requests", "memory", "1Gi")]
    [found] = of(*same)
    assert (found.severity, found.code, found.in_preview) == (
        Severity.REFUSAL,
        FindingCode.RESIZE_REFUSED,
        True,
    )
    assert of(*same, kind=StrategyKind.RECREATE) == ()


def test_a_node_that_does_not_say_it_can_is_refused() -> None:
    init = pod(more=", initContainers: [{name: i, resources: {requests: {memory: 64Mi}}}]")
    old_node = NodeSetup.of(structs.replace(NODE, declared_features=()), Kubelet(), "1.36")
    found = preview(init, [edit("requests", "memory", "96Mi", "i")], old_node)
    assert found.strategy_kind is StrategyKind.RECREATE
    [finding] = find_findings(found, related(init), StrategyKind.IN_PLACE, None)
    assert finding.code is FindingCode.RESIZE_REFUSED
    assert "InPlacePodVerticalScalingInitContainers" in finding.text
    before = NodeSetup.of(structs.replace(NODE, declared_features=()), Kubelet(), "1.35")
    assert "requires features" not in str(preview(init, found.edits, before).resize_refusals)


def test_a_limit_range_refuses_in_place_and_as_a_new_pod() -> None:
    ranges = (limits(max={"memory": "1Gi"}), limits("other", min={"memory": "16Mi"}))
    for kind in (StrategyKind.IN_PLACE, StrategyKind.RECREATE):
        [found] = of(edit("limits", "memory", "2Gi"), kind=kind, limit_ranges=ranges)
        assert said((found,)) == [(Severity.REFUSAL, "LimitRange caps", FindingCode.LIMIT_RANGE_REFUSES)]
        assert found.text == "maximum memory usage per Container is 1Gi, but limit is 2Gi"


def test_what_is_removed_comes_back_from_a_limit_range() -> None:
    ranges = (limits(defaultRequest={"cpu": "50m"}),)
    bare = pod("requests: {cpu: 100m, memory: 256Mi}")
    [found] = of(edit("requests", "cpu", None), subject=bare, kind=StrategyKind.RECREATE, limit_ranges=ranges)
    assert said((found,)) == [(Severity.WARNING, "LimitRange caps", FindingCode.LIMIT_RANGE_ADDS)]
    assert (str(found.facts["value"]), found.facts["removed"]) == ("50m", True)
    assert "requests.cpu of container app is not removed: its default 50m" in finding_line(found)


def test_a_limit_range_adds_to_a_pod_that_is_changed_in_place() -> None:
    """Made before the LimitRange was, it gets its defaults with the first resize."""
    ranges = (limits(default={"memory": "1Gi"}),)
    old = pod("requests: {cpu: 100m, memory: 256Mi}")
    [found] = of(edit("requests", "cpu", "200m"), subject=old, limit_ranges=ranges)
    assert said((found,)) == [(Severity.WARNING, "LimitRange caps", FindingCode.LIMIT_RANGE_ADDS)]
    assert found.facts["removed"] is False
    assert (
        of(edit("requests", "cpu", "200m"), subject=old, kind=StrategyKind.RECREATE, limit_ranges=ranges)
        == ()
    )


def test_a_limit_range_that_changes_the_class_is_a_finding() -> None:
    ranges = (limits(default={"memory": "256Mi"}),)
    old = pod("requests: {cpu: 1, memory: 128Mi}, limits: {cpu: 1}")
    change = edit("requests", "memory", "256Mi")
    found = of(change, subject=old, kind=StrategyKind.RECREATE, limit_ranges=ranges)
    assert {one.code for one in found} == {
        FindingCode.LIMIT_RANGE_ADDS,
        FindingCode.LIMIT_RANGE_CHANGES_CLASS,
    }
    [changes] = [one for one in found if one.code is FindingCode.LIMIT_RANGE_CHANGES_CLASS]
    assert changes.facts == {"becomes": "Guaranteed", "expected": "Burstable"}
    [refused] = [
        one for one in of(change, subject=old, limit_ranges=ranges) if one.severity is Severity.REFUSAL
    ]
    assert "QOS Class may not change" in refused.text
    assert not refused.in_preview, "the preview knows nothing of LimitRanges"


def test_a_quota_counts_the_growth_of_a_resize_and_all_of_a_new_pod() -> None:
    tight = (quota({"requests.memory": "1Gi"}, {"requests.memory": "768Mi"}),)
    [counts] = of(MORE, quotas=tight)
    assert said((counts,)) == [(Severity.NOTE, "ResourceQuota q", FindingCode.QUOTA_COUNTS)]
    assert finding_line(counts) == "ResourceQuota q: allows it: requests.memory would be 1Gi of 1Gi"
    [refused] = of(edit("requests", "memory", "513Mi"), quotas=tight)
    assert said((refused,)) == [(Severity.REFUSAL, "ResourceQuota q", FindingCode.QUOTA_REFUSES)]
    assert said(of(MORE, quotas=tight, kind=StrategyKind.RECREATE)) == said((counts,)), (
        "the old pod is gone by then"
    )
    manifest = pod(status="{}")
    fresh = msgspec.structs.replace(manifest, metadata=msgspec.structs.replace(manifest.metadata, uid=""))
    [refused] = of(MORE, subject=fresh, quotas=tight, kind=StrategyKind.RECREATE)
    assert refused.code is FindingCode.QUOTA_REFUSES


def test_a_manifest_may_not_contradict_its_priority_class() -> None:
    wrong = pod(more=", priorityClassName: system-cluster-critical, priority: 5", status="{}")
    wrong = msgspec.structs.replace(wrong, metadata=msgspec.structs.replace(wrong.metadata, uid=""))
    found = of(MORE, subject=wrong, kind=StrategyKind.RECREATE)
    assert said(found)[0] == (
        Severity.REFUSAL,
        "PriorityClass system-cluster-critical",
        FindingCode.PRIORITY_REFUSED,
    )
    answer = expected_response(preview(wrong, [MORE], SETUP), related(wrong), StrategyKind.RECREATE)
    assert answer is not None
    assert answer.message.endswith("computed 2000000000 from the given PriorityClass name")


def test_in_a_manifest_a_request_follows_its_limit() -> None:
    manifest = {
        "kind": "Pod",
        "metadata": {"name": "m"},
        "spec": {"containers": [{"name": "app", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}]},
    }
    found = preview(convert(manifest, Pod), [edit("limits", "memory", "2Gi")], SETUP)
    held = (quota({"requests.memory": "2Gi"}, {"requests.memory": "1Mi"}),)
    [refused] = find_findings(found, RelatedObjects(raw=manifest, quotas=held), StrategyKind.RECREATE, None)
    assert "requested: requests.memory=2Gi" in refused.text


def test_a_job_cannot_be_changed() -> None:
    job = {
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {"template": {"spec": {"containers": [{"name": "app"}]}}},
    }
    found = preview(pod_from_workload("Job", job), [MORE], SETUP)
    [finding] = find_findings(found, RelatedObjects(raw=job), StrategyKind.TEMPLATE, None)
    assert (finding.severity, finding.code, finding.in_preview) == (
        Severity.REFUSAL,
        FindingCode.IMMUTABLE,
        True,
    )


# -- through the template ----------------------------------------------------------------------------


def deployment(replicas: int = 4, **more: Any) -> dict[str, Any]:
    containers = [
        {"name": "app", "resources": {"requests": {"memory": "256Mi"}, "limits": {"memory": "1Gi"}}}
    ]
    return {
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": replicas, "template": {"spec": {"containers": containers}}, **more},
    }


def rolled(raw: dict[str, Any], *edits: Edit, **more: Any) -> tuple[Finding, ...]:
    found = preview(pod_from_workload(raw["kind"], raw), edits, SETUP)
    return find_findings(found, RelatedObjects(raw=raw, **more), StrategyKind.TEMPLATE, None)


@pytest.mark.parametrize(
    ("hard", "made", "left"), [("2Gi", 4, 0), ("1792Mi", 3, 0), ("1280Mi", 1, 2), ("1Gi", 0, 3)]
)
def test_a_rollout_stalls_if_a_quota_has_no_room_while_the_old_pods_run(
    hard: str, made: int, left: int
) -> None:
    """Four pods of 256Mi become 512Mi: one may be missing and one too many at any time."""
    held = (quota({"requests.memory": hard}, {"requests.memory": "1Gi"}),)
    found = rolled(deployment(), MORE, quotas=held)
    if made == 4:
        assert found == ()
        return
    [stalls] = found
    assert said(found) == [(Severity.WARNING, "ResourceQuota q", FindingCode.ROLLOUT_STALLS)]
    assert (stalls.facts["made"], stalls.facts["left"], stalls.facts["total"]) == (made, left, 4)
    old = f", with {left} old pods left" if left else ""
    assert f"stall after {made} of 4 new pods{old}: each adds requests.memory 512Mi" in finding_line(stalls)


def test_new_pods_that_are_always_refused_stop_a_rollout_before_it_starts() -> None:
    ranges = (limits(max={"memory": "1Gi"}),)
    [found] = rolled(deployment(), edit("limits", "memory", "2Gi"), limit_ranges=ranges)
    assert said((found,)) == [(Severity.WARNING, "LimitRange caps", FindingCode.NEW_PODS_REFUSED)]
    assert found.facts["left"] == 3
    wants = (quota({"limits.cpu": "9"}, {"limits.cpu": "0"}),)
    [found] = rolled(deployment(), MORE, quotas=wants)
    assert found.text == "failed quota: q: must specify limits.cpu for: app"
    assert rolled(deployment(0), MORE, quotas=wants) == (), "there is nothing to roll"
    clash = (limits(default={"cpu": "100m"}),)
    [found] = [
        one for one in rolled(deployment(), edit("requests", "cpu", "1"), limit_ranges=clash) if one.text
    ]
    assert found.text.endswith("must be less than or equal to cpu limit of 100m")


def test_the_template_of_a_pods_topmost_owner_is_what_changes() -> None:
    raw = deployment()
    replica_set = {**raw, "kind": "ReplicaSet", "metadata": {"name": "web-1"}}
    owners = tuple(Owner(one, pod_from_workload(one["kind"], one)) for one in (replica_set, raw))
    held = (quota({"requests.memory": "1Gi"}, {"requests.memory": "1Gi"}),)
    [found] = of(MORE, kind=StrategyKind.TEMPLATE, owners=owners, quotas=held)
    assert (found.code, found.facts["name"]) == (FindingCode.ROLLOUT_STALLS, "web")
    assert of(edit("requests", "memory", "1Gi", POD_LEVEL), kind=StrategyKind.TEMPLATE, owners=owners) == ()


def test_the_path_of_a_refusal_is_that_in_the_workload() -> None:
    raw = deployment()
    found = preview(pod_from_workload("Deployment", raw), [edit("requests", "memory", "2Gi")], SETUP)
    answer = expected_response(found, RelatedObjects(raw=raw), StrategyKind.TEMPLATE)
    assert answer is not None
    assert answer.message == (
        'Deployment.apps "web" is invalid: spec.template.spec.containers[0].resources.requests: '
        'Invalid value: "2Gi": must be less than or equal to memory limit of 1Gi'
    )


# -- afterwards --------------------------------------------------------------------------------------


def autoscaler(mode: str) -> VerticalAutoscaler:
    target = {"targetRef": {"kind": "Deployment", "name": "web"}, "updatePolicy": {"updateMode": mode}}
    raw = {"metadata": {"name": "vpa"}, "spec": target}
    return convert(raw, VerticalAutoscaler)


def test_managers_of_the_values() -> None:
    raw = deployment()
    raw["metadata"]["annotations"] = {"argocd.argoproj.io/tracking-id": "shop:apps/Deployment:default/web"}
    found = rolled(raw, MORE, autoscalers=(autoscaler("Recreate"),))
    assert said(found) == [
        (Severity.WARNING, "Argo CD application shop", FindingCode.MANAGER),
        (Severity.WARNING, "VerticalPodAutoscaler vpa", FindingCode.MANAGER),
    ]


def test_a_manager_of_the_workload_does_not_manage_its_running_pod() -> None:
    raw = deployment()
    raw["metadata"]["annotations"] = {"argocd.argoproj.io/tracking-id": "shop:apps/Deployment:default/web"}
    owners = (Owner(raw, pod_from_workload("Deployment", raw)),)
    assert of(MORE, owners=owners) == ()
    [found] = of(MORE, owners=owners, autoscalers=(autoscaler("Initial"),))
    assert said((found,)) == [(Severity.NOTE, "VerticalPodAutoscaler vpa", FindingCode.MANAGER)]
    assert of(MORE, owners=owners, autoscalers=(autoscaler("Off"),)) == ()


def scaler(resource: str, container: str = "") -> HorizontalAutoscaler:
    target = {"type": "Utilization", "averageUtilization": 70}
    metric = {"type": "Resource", "resource": {"name": resource, "target": target}}
    if container:
        measured = {"name": resource, "container": container, "target": target}
        metric = {"type": "ContainerResource", "containerResource": measured}
    raw = {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "metrics": [metric]}
    return convert({"metadata": {"name": "hpa"}, "spec": raw}, HorizontalAutoscaler)


@pytest.mark.parametrize("container", ["", "app"])
def test_a_request_moves_what_an_autoscaler_measures(container: str) -> None:
    [found] = rolled(deployment(), MORE, scalers=(scaler("memory", container),))
    assert (found.severity, found.code) == (Severity.NOTE, FindingCode.UTILIZATION)
    whose = "container app" if container else "a pod"
    values = f"its target for {whose} is 358.4Mi of memory instead of 179.2Mi (70% of the request)"
    more = "if the average is above, it adds pods"
    subject = "HorizontalPodAutoscaler hpa"
    assert finding_line(found) == f"{subject}: once the pods are replaced: {values}; {more}"
    owners = (Owner(deployment(), pod_from_workload("Deployment", deployment())),)
    [found] = of(MORE, owners=owners, scalers=(scaler("memory", container),))
    assert finding_line(found) == f"{subject}: from now on, for this pod alone: {values}; {more}"
    assert rolled(deployment(), MORE, scalers=(scaler("cpu", container), scaler("memory", "other"))) == ()
    removed = edit("requests", "memory", None), edit("limits", "memory", None)
    [found] = rolled(deployment(), *removed, scalers=(scaler("memory", container),))
    assert (found.severity, finding_line(found)) == (
        Severity.WARNING,
        f"HorizontalPodAutoscaler hpa: can no longer measure {whose}: a container has no memory request",
    )


def budget(allowed: int | None, **labels: str) -> DisruptionBudget:
    raw: dict[str, Any] = {"metadata": {"name": "keep", "namespace": "default"}}
    raw["spec"] = {"selector": {"matchLabels": labels}}
    raw["status"] = {} if allowed is None else {"disruptionsAllowed": allowed}
    return convert(raw, DisruptionBudget)


def test_a_rollout_does_not_respect_a_disruption_budget_and_an_eviction_does() -> None:
    for allowed, severity, known in (
        (0, Severity.WARNING, "allows 0 disruptions now"),
        (1, Severity.NOTE, "allows 1 disruption now"),
        (None, Severity.NOTE, "how many disruptions it allows is unknown"),
    ):
        [found] = rolled(deployment(), MORE, budgets=(budget(allowed),))
        assert (found.severity, found.code) == (severity, FindingCode.DISRUPTION_BUDGET)
        assert finding_line(found) == (
            f"PodDisruptionBudget keep: {known}: the rollout ignores the budget and removes up to 1 pod"
            " at a time; kubectl drain and other evictions respect it, and have to wait"
        )
    [paused] = rolled(deployment(paused=True), MORE, budgets=(budget(0),))
    assert finding_line(paused) == (
        "PodDisruptionBudget keep: allows 0 disruptions now: kubectl delete pod ignores the budget;"
        " kubectl drain and other evictions respect it"
    )
    assert rolled(deployment(), MORE, budgets=(budget(0, app="other"),)) == ()
    assert of(MORE, budgets=(budget(0),)) == ()


def test_a_limit_below_usage_has_no_effect_in_place_and_kills_a_new_pod() -> None:
    not_done, below = of(LESS, usage=700 * MI)
    assert (not_done.code, not_done.in_preview) == (FindingCode.RESIZE_NOT_DONE, True)
    assert not_done.facts["answer"] is ResizeStatus.ERROR
    assert (below.code, below.facts["restarts"], below.in_preview) == (
        FindingCode.LIMIT_BELOW_USAGE,
        False,
        False,
    )
    assert "the kubelet keeps the old limit" in finding_line(below)
    restarts = pod(status=STATUS)
    policy = '[{"resourceName": "memory", "restartPolicy": "RestartContainer"}]'
    restarts = spec(
        f"nodeName: n1, containers: [{{name: app, resources: {{{RESOURCES}}}, resizePolicy: {policy}}}]",
        status=STATUS,
    )
    below = next(
        one for one in of(LESS, subject=restarts, usage=700 * MI) if one.code is FindingCode.LIMIT_BELOW_USAGE
    )
    assert "the restarted container is OOM killed" in finding_line(below)
    [below] = of(LESS, usage=700 * MI, kind=StrategyKind.RECREATE)
    assert "a new pod is OOM killed as soon as it uses that much again; choose a limit above 700Mi" in (
        finding_line(below)
    )


NEAR, NOT_DONE = FindingCode.LIMIT_NEAR_USAGE, FindingCode.RESIZE_NOT_DONE


@pytest.mark.parametrize(
    ("used", "codes"), [(460 * MI, []), (461 * MI, [NEAR]), (512 * MI, [NOT_DONE, NEAR])]
)
def test_a_limit_near_what_is_used_is_warned_of(used: int, codes: list[FindingCode]) -> None:
    assert [one.code for one in of(LESS, usage=used)] == codes


def test_a_limit_that_grows_is_not_warned_of() -> None:
    assert of(edit("limits", "memory", "1100Mi"), usage=1020 * MI) == ()


def test_a_request_that_falls_below_usage_is_a_note() -> None:
    [found] = of(edit("requests", "memory", "100Mi"), usage=200 * MI)
    assert said((found,)) == [(Severity.NOTE, "memory request", FindingCode.REQUEST_BELOW_USAGE)]
    assert of(edit("requests", "memory", "100Mi"), usage=300 * MI) == (), "it was below before"


WEEK: Final = {"app": ContainerHistory(700 * MI, 600 * MI, over="7d")}


def test_a_limit_below_the_peak_of_a_week_is_warned_of_with_the_number_and_the_time() -> None:
    [found] = of(LESS, usage=100 * MI, seen=WEEK)
    assert said((found,)) == [(Severity.WARNING, "container app", FindingCode.LIMIT_BELOW_PEAK)]
    assert finding_line(found) == (
        "container app: used 700Mi at most in 7d, more than the new memory limit of 512Mi: it is OOM killed"
        " once it needs that much again"
    )
    assert of(LESS, seen=WEEK) == (found,), "also where its usage is not known, as of a workload"
    assert of(edit("limits", "memory", "700Mi"), usage=100 * MI, seen=WEEK) == ()
    [of_request] = of(MORE, seen=WEEK)
    assert of_request.code is FindingCode.REQUEST_BELOW_P99, "the limit stays"
    [now] = of(LESS, usage=600 * MI, seen=WEEK, kind=StrategyKind.RECREATE)
    assert now.code is FindingCode.LIMIT_BELOW_USAGE, "said once"


def test_a_new_request_below_the_p99_of_a_week_is_a_note_with_what_it_means_for_eviction() -> None:
    [found] = of(edit("requests", "memory", "599Mi"), usage=100 * MI, seen=WEEK)
    assert said((found,)) == [(Severity.NOTE, "memory request", FindingCode.REQUEST_BELOW_P99)]
    assert finding_line(found) == (
        "memory request: the pod used more than the 599Mi it would request in 7d: 600Mi at P99; under memory"
        " pressure at such times it is evicted before those within their requests"
    )
    assert of(edit("requests", "memory", "600Mi"), usage=100 * MI, seen=WEEK) == ()
    assert of(edit("limits", "memory", "1100Mi"), usage=100 * MI, seen=WEEK) == (), "the request stays"
    [now] = of(edit("requests", "memory", "100Mi"), usage=200 * MI, seen=WEEK)
    assert now.code is FindingCode.REQUEST_BELOW_USAGE, "said once"


def test_no_room_is_deferred_in_place_and_pending_or_refused_as_a_new_pod() -> None:
    full = (spec("nodeName: n1, containers: [{name: x, resources: {requests: {memory: 14849Mi}}}]"),)
    full = (
        msgspec.structs.replace(full[0], metadata=msgspec.structs.replace(full[0].metadata, name="full")),
    )
    [deferred] = of(MORE, neighbours=full)
    assert (deferred.code, deferred.facts["answer"]) == (FindingCode.RESIZE_NOT_DONE, ResizeStatus.DEFERRED)
    [moved] = of(MORE, neighbours=full, kind=StrategyKind.RECREATE)
    assert "stays Pending" in finding_line(moved), "its manifest leaves the choice to the scheduler"
    written = msgspec.structs.replace(pod(), metadata=msgspec.structs.replace(pod().metadata, uid=""))
    [bound] = of(MORE, subject=written, neighbours=full, kind=StrategyKind.RECREATE)
    assert bound.code is FindingCode.NO_ROOM_FOR_NEW_POD
    assert "OutOfmemory" in finding_line(bound)
    raw = deployment()
    owners = (Owner(raw, pod_from_workload("Deployment", raw)),)
    [pending] = of(MORE, neighbours=full, kind=StrategyKind.TEMPLATE, owners=owners)
    assert finding_line(pending) == (
        "node n1: has too little memory left: a new pod stays Pending unless it fits on another node"
    )


def test_what_no_request_changes() -> None:
    critical = pod(more=", priorityClassName: system-node-critical, priority: 2000001000")
    assert said(of(MORE, subject=critical)) == [
        (Severity.NOTE, "PriorityClass system-node-critical", FindingCode.NODE_CRITICAL)
    ]
    assert of(MORE, subject=pod(more=", priorityClassName: batch, priority: -10")) == ()


def test_a_template_has_the_class_and_its_pods_the_number() -> None:
    raw = deployment()
    raw["spec"]["template"]["spec"]["priorityClassName"] = "system-node-critical"
    assert said(rolled(raw, MORE)) == [
        (Severity.NOTE, "PriorityClass system-node-critical", FindingCode.NODE_CRITICAL)
    ]
    raw["spec"]["template"]["spec"]["priorityClassName"] = "gold"
    # Its pods have the number.
    template = pod_from_workload(raw["kind"], raw)
    metadata = {
        "name": "a",
        "namespace": "default",
        "ownerReferences": [{"kind": "Deployment", "name": "web"}],
    }
    template = msgspec.structs.replace(
        template, spec=msgspec.structs.replace(template.spec, runtime_class_name="kata")
    )
    spec = {"nodeName": "n", "priorityClassName": "gold", "priority": 7}
    spec |= {"runtimeClassName": "kata", "overhead": {"memory": "1Mi"}}
    template = with_admitted_values(
        template, [convert({"kind": "Pod", "metadata": metadata, "spec": spec}, Pod)]
    )
    assert (template.spec.priority, template.spec.overhead) == (7, {"memory": Quantity.parse("1Mi")})
    found = preview(template, [MORE], SETUP)
    assert find_findings(found, RelatedObjects(raw=raw), StrategyKind.TEMPLATE, None) == ()


def test_a_container_without_a_cpu_request_loses_its_weight() -> None:
    shared = pod("", ", resources: {requests: {cpu: 1}, limits: {cpu: 2}}")
    change = edit("limits", "cpu", "3", POD_LEVEL)
    assert FindingCode.WEIGHT_DROPS in {one.code for one in of(change, subject=shared)}
    assert of(change, subject=shared, kind=StrategyKind.RECREATE) == ()


@pytest.mark.parametrize(("release", "said_of"), [("1.35", 0), ("1.36", 1)])
def test_a_runtime_may_refuse_a_resize_at_pod_level(release: str, said_of: int) -> None:
    setup = NodeSetup.of(
        NODE, Kubelet(), Release.of(release, {"InPlacePodLevelResourcesVerticalScaling": True})
    )
    shared = pod(RESOURCES, ", resources: {requests: {cpu: 1, memory: 1Gi}, limits: {memory: 2Gi}}")
    for change, count in (edit("limits", "memory", "3Gi", POD_LEVEL), said_of), (MORE, 0):
        found = find_findings(preview(shared, [change], setup), related(shared), StrategyKind.IN_PLACE, None)
        refusing = [finding for finding in found if finding.code is FindingCode.RUNTIME_MAY_REFUSE]
        assert [finding.severity for finding in refusing] == [Severity.NOTE] * count
        assert ("NRI plugin may refuse a resize at pod level") in "".join(
            map(finding_line, refusing)
        ) or not count


@pytest.mark.parametrize(
    ("runtime", "oci", "limit", "warns"),
    [
        ("cri-o://1.30.1", "runc 1.1.12", "31Mi", True),
        ("cri-o://1.30.1", "runc 1.1.12", "32Mi", False),
        ("cri-o://1.30.1", "crun 1.14", "31Mi", False),
        ("containerd://2.3.4", "runc 1.4", "31Mi", False),
    ],
)
def test_a_limit_too_small_for_cri_o_to_create_the_container(
    runtime: str, oci: str, limit: str, warns: bool
) -> None:
    node = structs.replace(NODE, runtime=runtime, oci_runtime=OciRuntime.parse(oci))
    setup = NodeSetup.of(node, Kubelet(), "1.36")
    subject = pod("requests: {cpu: 100m, memory: 16Mi}, limits: {memory: 64Mi}")
    found = preview(subject, [edit("limits", "memory", limit)], setup)
    small = [
        finding_line(finding)
        for finding in find_findings(found, related(subject), StrategyKind.RECREATE, None)
        if finding.code is FindingCode.LIMIT_BELOW_CREATION
    ]
    assert bool(small) is warns
    assert all("about 20Mi of the 31Mi limit" in line for line in small)
    running = find_findings(found, related(subject), StrategyKind.IN_PLACE, None)
    assert FindingCode.LIMIT_BELOW_CREATION not in {finding.code for finding in running}


# -- laws --------------------------------------------------------------------------------------------

VALUES = st.sampled_from([None, "0", "100m", "1", "64Mi", "512Mi", "1Gi", "2Gi"])
EDITS = st.lists(
    st.builds(edit, st.sampled_from(["requests", "limits"]), st.sampled_from(["cpu", "memory"]), VALUES),
    max_size=4,
)
RANGES = st.sampled_from(
    [
        (),
        (limits(max={"memory": "1Gi"}),),
        (limits(default={"cpu": "1", "memory": "256Mi"}),),
        (limits(min={"cpu": "50m"}),),
    ]
)
QUOTAS = st.sampled_from(
    [
        (),
        (quota({"requests.memory": "1Gi"}, {"requests.memory": "768Mi"}),),
        (quota({"limits.cpu": "2"}, {"limits.cpu": "1"}), quota({"pods": "1"}, {"pods": "1"})),
    ]
)


@given(EDITS, RANGES, QUOTAS, st.sampled_from([StrategyKind.IN_PLACE, StrategyKind.RECREATE]))
def test_a_finding_refuses_exactly_where_the_server_is_expected_to(
    edits: list[Edit], ranges: tuple[LimitRange, ...], quotas: tuple[ResourceQuota, ...], kind: StrategyKind
) -> None:
    found = preview(pod(), edits, SETUP)
    place = related(pod(), limit_ranges=ranges, quotas=quotas)
    answer = expected_response(found, place, kind)
    findings = find_findings(found, place, kind, None)
    if not found.edits:
        return
    refusals = [one for one in findings if one.severity is Severity.REFUSAL]
    assert (answer is not None) is bool(refusals)
    if answer is not None:
        assert any(one.text in answer.message for one in refusals)
    severities = [one.severity for one in findings]
    assert severities == sorted(severities, key=list(Severity).index)
    assert all(map(finding_line, findings))


@given(EDITS)
def test_what_the_preview_applies_in_place_a_server_without_limits_accepts(edits: list[Edit]) -> None:
    found: Preview = preview(pod(), edits, SETUP)
    accepted = expected_response(found, related(pod()), StrategyKind.IN_PLACE) is None
    assert accepted is (found.strategy_kind is StrategyKind.IN_PLACE and not found.resize_refusals)
