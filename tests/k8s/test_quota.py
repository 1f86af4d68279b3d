"""ResourceQuota: what a real server said, the rows of upstream's own tables, and what must always hold."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.objects import Pod, PodStatus, convert, resource_list
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.quota import (
    QuotaPod,
    ResourceQuota,
    charges,
    crosses_namespaces,
    is_terminating,
    matches,
    quota_refusals,
    quota_usage,
)
from kubectl_qos.k8s.releases import Release
from tests.cluster.replay import recorded
from tests.qos.corner import one, spec

R136 = Release.of("1.36")


def quota(
    hard: dict[str, str], used: dict[str, str] | None = None, name: str = "q", **more: Any
) -> ResourceQuota:
    """As it stands in a namespace; what is not said to be used is not used."""
    status = {"hard": hard, "used": dict.fromkeys(hard, "0") | (used or {})}
    return convert(
        {"metadata": {"name": name}, "spec": {"hard": hard, **more}, "status": status}, ResourceQuota
    )


def claim(pod: Pod, **more: Any) -> QuotaPod:
    found = default_pod(pod, R136)
    return QuotaPod(found, is_best_effort=not any(c.requests or c.limits for c in found.containers), **more)


def said(new: QuotaPod, *quotas: ResourceQuota, before: QuotaPod | None = None) -> list[str]:
    return [refused.message for refused in quota_refusals(new, quotas, R136, before)]


SMALL = claim(one("requests: {cpu: 100m, memory: 64Mi}, limits: {cpu: 200m, memory: 128Mi}"))
LARGE = claim(one("requests: {cpu: 100m, memory: 96Mi}, limits: {cpu: 200m, memory: 256Mi}"))


def test_what_a_real_server_refused() -> None:
    listed = recorded("quota-get")["response"]["body"]["items"]
    quotas = [convert(item, ResourceQuota) for item in listed]
    created = recorded("pod-create-quota-exceeded-403")
    [message] = said(claim(convert(created["request"]["body"], Pod)), *quotas)
    used_later = created["response"]["body"]["message"].replace("3956Mi", "3312Mi")
    assert used_later == f'pods "q5" is forbidden: {message}'


def test_what_a_real_controller_counted() -> None:
    """The quota was counted from the pods of the namespace, the pending ones of workloads among them."""
    quotas = [convert(item, ResourceQuota) for item in recorded("quota-get")["response"]["body"]["items"]]
    body = recorded("quota-besteffort-create")["request"]["body"]
    assert {found.name for found in quotas} == {"q", body["metadata"]["name"]}
    [best_effort] = [found for found in quotas if found.name == "be"]
    assert matches(best_effort, claim(one("")))
    assert not matches(best_effort, SMALL)


def test_every_name_that_a_pod_counts_under() -> None:
    pod = one(
        "requests: {cpu: 1, memory: 1Gi, ephemeral-storage: 1Gi, hugepages-2Mi: 4Mi, example.com/gpu: 2},"
        " limits: {cpu: 2, memory: 1Gi, hugepages-2Mi: 4Mi, example.com/gpu: 2}"
    )
    found = {name: str(amount) for name, amount in quota_usage(default_pod(pod, R136), R136).items()}
    assert found == {
        "count/pods": "1",
        "pods": "1",
        "cpu": "1",
        "requests.cpu": "1",
        "limits.cpu": "2",
        "memory": "1Gi",
        "requests.memory": "1Gi",
        "limits.memory": "1Gi",
        "ephemeral-storage": "1Gi",
        "requests.ephemeral-storage": "1Gi",
        "hugepages-2Mi": "4Mi",
        "requests.hugepages-2Mi": "4Mi",
        "requests.example.com/gpu": "2",
    }


def test_a_pod_that_has_ended_counts_as_an_object_only() -> None:
    ended = msgspec.structs.replace(SMALL.pod, status=PodStatus(phase="Succeeded"))
    assert list(quota_usage(ended, R136)) == ["count/pods"]


def test_the_sum_with_init_containers_and_overhead_counts() -> None:
    pod = spec(
        "containers: [{name: a, resources: {requests: {cpu: 1}}},"
        " {name: b, resources: {requests: {cpu: 1}}}],"
        " initContainers: [{name: i, resources: {requests: {cpu: 3}}}], overhead: {cpu: 250m}"
    )
    assert str(quota_usage(default_pod(pod, R136), R136)["requests.cpu"]) == "3250m"


def test_a_resize_is_charged_for_its_growth_alone() -> None:
    held = quota({"requests.memory": "100Mi", "limits.memory": "1Gi"}, {"requests.memory": "64Mi"})
    assert [str(c.added) for c in charges(LARGE, [held], R136, SMALL)] == ["128Mi", "32Mi"]
    assert said(LARGE, held, before=SMALL) == []
    tight = quota({"requests.memory": "80Mi"}, {"requests.memory": "64Mi"})
    [message] = said(LARGE, tight, before=SMALL)
    assert message == (
        "exceeded quota: q, requested: requests.memory=32Mi, used: requests.memory=64Mi, "
        "limited: requests.memory=80Mi"
    )


def test_what_shrinks_is_let_in_by_a_quota_that_is_exceeded_already() -> None:
    full = quota({"requests.memory": "32Mi"}, {"requests.memory": "96Mi"})
    assert said(SMALL, full, before=LARGE) == []


def test_several_resources_are_listed_in_order_and_only_those_that_are_too_much() -> None:
    held = quota({"requests.memory": "1Mi", "pods": "9", "limits.cpu": "100m"}, {"pods": "3"})
    [message] = said(SMALL, held)
    assert message == (
        "exceeded quota: q, requested: limits.cpu=200m,requests.memory=64Mi, "
        "used: limits.cpu=0,requests.memory=0, limited: limits.cpu=100m,requests.memory=1Mi"
    )


def test_a_quota_on_cpu_or_memory_wants_it_of_every_container() -> None:
    pod = spec(
        "containers: [{name: c0, resources: {requests: {cpu: 1}}}, {name: a}],"
        " initContainers: [{name: i, resources: {limits: {memory: 1Gi}}}]"
    )
    held = quota({"limits.memory": "9Gi", "requests.cpu": "9", "requests.ephemeral-storage": "1Gi"})
    assert said(claim(pod), held) == [
        "failed quota: q: must specify limits.memory for: a,c0; requests.cpu for: a,i"
    ]
    zero = one("requests: {cpu: 0}, limits: {memory: 0}")
    assert said(claim(zero), held) == []


def test_pod_level_resources_need_not_be_repeated_in_containers() -> None:
    pod = spec("containers: [{name: a}], resources: {requests: {cpu: 1}, limits: {cpu: 1, memory: 1Gi}}")
    held = quota({"limits.memory": "9Gi"})
    assert said(claim(pod), held) == []
    refused = quota_refusals(claim(pod), [held], Release.of("1.33"))
    assert [one.message for one in refused] == ["failed quota: q: must specify limits.memory for: a"]


def test_constraints_of_any_quota_come_before_amounts() -> None:
    full = quota({"pods": "0"}, name="a")
    wants = quota({"limits.cpu": "9"}, name="b")
    pod = claim(one("requests: {cpu: 1}"))
    assert [line.split(",")[0] for line in said(pod, full, wants)] == [
        "failed quota: b: must specify limits.cpu for: c1",
        "exceeded quota: a",
    ]


def test_only_status_counts() -> None:
    fresh = convert({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}}, ResourceQuota)
    assert said(SMALL, fresh) == [], "the quota controller has not seen it yet"
    unknown = convert(
        {"metadata": {"name": "q"}, "status": {"hard": {"pods": "5", "services": "1"}}}, ResourceQuota
    )
    assert said(SMALL, unknown)[0] == "status unknown for quota: q, resources: pods"
    others = quota({"services": "0", "count/secrets": "0"})
    assert not matches(others, SMALL)


SCOPED = spec("containers: [{name: c}], priorityClassName: high")


@pytest.mark.parametrize(
    ("operator", "values", "high", "none"),
    [
        ("Exists", [], True, False),
        ("DoesNotExist", [], False, True),
        ("In", ["high", "low"], True, False),
        ("In", ["low"], False, False),
        ("NotIn", ["low"], True, True),
        ("NotIn", ["high"], False, True),
    ],
)
def test_priority_class_scopes(operator: str, values: list[str], high: bool, none: bool) -> None:
    expression = {"scopeName": "PriorityClass", "operator": operator, "values": values}
    held = quota({"pods": "1"}, scopeSelector={"matchExpressions": [expression]})
    assert (matches(held, claim(SCOPED)), matches(held, claim(one("")))) == (high, none)


@pytest.mark.parametrize(
    ("scope", "about", "other"),
    [
        ("BestEffort", claim(one("")), SMALL),
        ("NotBestEffort", SMALL, claim(one(""))),
        ("Terminating", claim(one(""), is_terminating=True), claim(one(""))),
        ("NotTerminating", claim(one("")), claim(one(""), is_terminating=True)),
        ("CrossNamespacePodAffinity", claim(one(""), crosses_namespaces=True), claim(one(""))),
        ("PriorityClass", claim(SCOPED), claim(one(""))),
    ],
)
def test_scopes(scope: str, about: QuotaPod, other: QuotaPod) -> None:
    held = quota({"pods": "1"}, scopes=[scope])
    assert matches(held, about)
    assert not matches(held, other)


def test_every_scope_must_hold_and_an_unknown_one_never_does() -> None:
    assert not matches(quota({"pods": "1"}, scopes=["NotBestEffort", "Terminating"]), SMALL)
    assert not matches(quota({"pods": "1"}, scopes=["VolumeAttributesClass"]), SMALL)


def test_a_pod_that_comes_into_a_scope_is_charged_in_full() -> None:
    held = quota({"requests.memory": "1Gi"}, scopes=["NotBestEffort"])
    [charge] = charges(SMALL, [held], R136, claim(one("")))
    assert str(charge.added) == "64Mi"


def test_scopes_of_raw_specs() -> None:
    assert is_terminating({"activeDeadlineSeconds": 0})
    assert not is_terminating({})
    term = {"namespaces": ["other"]}
    required = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    preferred = {
        "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"podAffinityTerm": term}]}
    }
    everywhere: dict[str, Any] = {
        "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"namespaceSelector": {}}]}
    }
    here = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}}
    assert all(crosses_namespaces({"affinity": one}) for one in (required, preferred, everywhere))
    assert not crosses_namespaces({"affinity": here})
    assert not crosses_namespaces({"affinity": None})


AMOUNTS = st.integers(min_value=0, max_value=10**6)


@given(old=AMOUNTS, new=AMOUNTS, others=AMOUNTS, hard=AMOUNTS)
def test_a_resize_is_refused_exactly_where_it_grows_over_what_is_left(
    old: int, new: int, others: int, hard: int
) -> None:
    def pod(amount: int) -> QuotaPod:
        return claim(one(f"requests: {{memory: {amount}}}"))

    held = quota({"requests.memory": str(hard)}, {"requests.memory": str(old + others)})
    refused = said(pod(new), held, before=pod(old))
    assert bool(refused) is (new > old and others + new > hard)


@given(used=AMOUNTS, hard=AMOUNTS, amount=st.integers(min_value=1, max_value=10**6))
def test_a_charge_that_does_not_exceed_leaves_room_and_one_more_byte_of_use_would_not(
    used: int, hard: int, amount: int
) -> None:
    held = quota({"requests.memory": str(hard)}, {"requests.memory": str(used)})
    [charge] = charges(claim(one(f"requests: {{memory: {amount}}}")), [held], R136)
    assert charge.exceeds is (used + amount > hard)
    assert charge.hard == Quantity.parse(str(hard))
    assert resource_list({"a": str(used)})["a"] == charge.used
