"""ResourceQuota: what a real server answered, upstream's own tables, and what must always hold."""

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
    status = {"hard": hard, "used": dict.fromkeys(hard, "0") | (used or {})}
    raw = {"metadata": {"name": name}, "spec": {"hard": hard, **more}, "status": status}
    return convert(raw, ResourceQuota)


def quota_pod(pod: Pod, **more: Any) -> QuotaPod:
    pod = default_pod(pod, R136)
    return QuotaPod(pod, is_best_effort=not any(c.requests or c.limits for c in pod.containers), **more)


def recorded_quotas() -> list[ResourceQuota]:
    return [convert(item, ResourceQuota) for item in recorded("quota-get")["response"]["body"]["items"]]


def refusals(new: QuotaPod, *quotas: ResourceQuota, before: QuotaPod | None = None) -> list[str]:
    return [refusal.message for refusal in quota_refusals(new, quotas, R136, before)]


SMALL = quota_pod(one("requests: {cpu: 100m, memory: 64Mi}, limits: {cpu: 200m, memory: 128Mi}"))
LARGE = quota_pod(one("requests: {cpu: 100m, memory: 96Mi}, limits: {cpu: 200m, memory: 256Mi}"))
EMPTY = quota_pod(one(""))


def test_what_a_real_server_refused() -> None:
    created = recorded("pod-create-quota-exceeded-403")
    [message] = refusals(quota_pod(convert(created["request"]["body"], Pod)), *recorded_quotas())
    used_later = created["response"]["body"]["message"].replace("3956Mi", "3312Mi")
    assert used_later == f'pods "q5" is forbidden: {message}'


def test_what_a_real_controller_counted() -> None:
    quotas = {quota.name: quota for quota in recorded_quotas()}
    assert quotas.keys() == {"q", recorded("quota-besteffort-create")["request"]["body"]["metadata"]["name"]}
    assert matches(quotas["be"], EMPTY)
    assert not matches(quotas["be"], SMALL)


def test_every_name_that_a_pod_counts_for() -> None:
    pod = one(
        "requests: {cpu: 1, memory: 1Gi, ephemeral-storage: 1Gi, hugepages-2Mi: 4Mi, example.com/gpu: 2},"
        " limits: {cpu: 2, memory: 1Gi, hugepages-2Mi: 4Mi, example.com/gpu: 2}"
    )
    usage = {name: str(amount) for name, amount in quota_usage(default_pod(pod, R136), R136).items()}
    assert usage == {
        **dict.fromkeys(("count/pods", "pods", "cpu", "requests.cpu"), "1"),
        **dict.fromkeys(("limits.cpu", "requests.example.com/gpu"), "2"),
        **dict.fromkeys(("memory", "requests.memory", "limits.memory"), "1Gi"),
        **dict.fromkeys(("ephemeral-storage", "requests.ephemeral-storage"), "1Gi"),
        **dict.fromkeys(("hugepages-2Mi", "requests.hugepages-2Mi"), "4Mi"),
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


def test_a_resize_is_only_charged_for_its_growth() -> None:
    limits = quota({"requests.memory": "100Mi", "limits.memory": "1Gi"}, {"requests.memory": "64Mi"})
    assert [str(c.added) for c in charges(LARGE, [limits], R136, SMALL)] == ["128Mi", "32Mi"]
    assert refusals(LARGE, limits, before=SMALL) == []
    tight = quota({"requests.memory": "80Mi"}, {"requests.memory": "64Mi"})
    [message] = refusals(LARGE, tight, before=SMALL)
    assert message == (
        "exceeded quota: q, requested: requests.memory=32Mi, used: requests.memory=64Mi, "
        "limited: requests.memory=80Mi"
    )


def test_an_exceeded_quota_accepts_what_shrinks() -> None:
    full = quota({"requests.memory": "32Mi"}, {"requests.memory": "96Mi"})
    assert refusals(SMALL, full, before=LARGE) == []


def test_only_exceeded_resources_are_listed_in_order() -> None:
    limits = quota({"requests.memory": "1Mi", "pods": "9", "limits.cpu": "100m"}, {"pods": "3"})
    [message] = refusals(SMALL, limits)
    assert message == (
        "exceeded quota: q, requested: limits.cpu=200m,requests.memory=64Mi, "
        "used: limits.cpu=0,requests.memory=0, limited: limits.cpu=100m,requests.memory=1Mi"
    )


def test_a_quota_on_cpu_or_memory_requires_it_of_every_container() -> None:
    pod = spec(
        "containers: [{name: c0, resources: {requests: {cpu: 1}}}, {name: a}],"
        " initContainers: [{name: i, resources: {limits: {memory: 1Gi}}}]"
    )
    limits = quota({"limits.memory": "9Gi", "requests.cpu": "9", "requests.ephemeral-storage": "1Gi"})
    assert refusals(quota_pod(pod), limits) == [
        "failed quota: q: must specify limits.memory for: a,c0; requests.cpu for: a,i"
    ]
    zero = one("requests: {cpu: 0}, limits: {memory: 0}")
    assert refusals(quota_pod(zero), limits) == []


def test_pod_level_resources_need_not_be_repeated_in_containers() -> None:
    pod = spec("containers: [{name: a}], resources: {requests: {cpu: 1}, limits: {cpu: 1, memory: 1Gi}}")
    limits = quota({"limits.memory": "9Gi"})
    assert refusals(quota_pod(pod), limits) == []
    refused = quota_refusals(quota_pod(pod), [limits], Release.of("1.33"))
    assert [one.message for one in refused] == ["failed quota: q: must specify limits.memory for: a"]


def test_constraints_of_any_quota_come_before_amounts() -> None:
    full = quota({"pods": "0"}, name="a")
    wants = quota({"limits.cpu": "9"}, name="b")
    pod = quota_pod(one("requests: {cpu: 1}"))
    assert [line.split(",")[0] for line in refusals(pod, full, wants)] == [
        "failed quota: b: must specify limits.cpu for: c1",
        "exceeded quota: a",
    ]


def test_only_status_counts() -> None:
    fresh = convert({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}}, ResourceQuota)
    assert refusals(SMALL, fresh) == [], "the quota controller has not seen it yet"
    unknown = convert(
        {"metadata": {"name": "q"}, "status": {"hard": {"pods": "5", "services": "1"}}}, ResourceQuota
    )
    assert refusals(SMALL, unknown)[0] == "status unknown for quota: q, resources: pods"
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
    limits = quota({"pods": "1"}, scopeSelector={"matchExpressions": [expression]})
    assert (matches(limits, quota_pod(SCOPED)), matches(limits, EMPTY)) == (high, none)


@pytest.mark.parametrize(
    ("scope", "about", "other"),
    [
        ("BestEffort", EMPTY, SMALL),
        ("NotBestEffort", SMALL, EMPTY),
        ("Terminating", quota_pod(one(""), is_terminating=True), EMPTY),
        ("NotTerminating", EMPTY, quota_pod(one(""), is_terminating=True)),
        ("CrossNamespacePodAffinity", quota_pod(one(""), crosses_namespaces=True), EMPTY),
        ("PriorityClass", quota_pod(SCOPED), EMPTY),
    ],
)
def test_scopes(scope: str, about: QuotaPod, other: QuotaPod) -> None:
    limits = quota({"pods": "1"}, scopes=[scope])
    assert matches(limits, about)
    assert not matches(limits, other)


def test_every_scope_must_hold_and_an_unknown_one_never_does() -> None:
    assert not matches(quota({"pods": "1"}, scopes=["NotBestEffort", "Terminating"]), SMALL)
    assert not matches(quota({"pods": "1"}, scopes=["VolumeAttributesClass"]), SMALL)


def test_a_pod_that_gets_into_a_scope_is_charged_in_full() -> None:
    limits = quota({"requests.memory": "1Gi"}, scopes=["NotBestEffort"])
    [charge] = charges(SMALL, [limits], R136, EMPTY)
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
def test_a_resize_is_refused_exactly_where_it_grows_over_the_rest(
    old: int, new: int, others: int, hard: int
) -> None:
    def pod(amount: int) -> QuotaPod:
        return quota_pod(one(f"requests: {{memory: {amount}}}"))

    limits = quota({"requests.memory": str(hard)}, {"requests.memory": str(old + others)})
    refused = refusals(pod(new), limits, before=pod(old))
    assert bool(refused) is (new > old and others + new > hard)


@given(used=AMOUNTS, hard=AMOUNTS, amount=st.integers(min_value=1, max_value=10**6))
def test_a_charge_exceeds_exactly_where_usage_grows_over_the_limit(used: int, hard: int, amount: int) -> None:
    limits = quota({"requests.memory": str(hard)}, {"requests.memory": str(used)})
    [charge] = charges(quota_pod(one(f"requests: {{memory: {amount}}}")), [limits], R136)
    assert charge.exceeds is (used + amount > hard)
    assert charge.hard == Quantity.parse(str(hard))
    assert resource_list({"a": str(used)})["a"] == charge.used
