"""The policies of `--to-policy`, evaluated: they refuse what `check` finds, with its words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from typing import Any, Final

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubectl_qos.check.findings import Context, Subject, select
from kubectl_qos.check.policy import policies
from kubectl_qos.check.rule_texts import rule_texts
from kubectl_qos.check.rules import check
from kubectl_qos.check.settings import Level, RuleId, Settings
from kubectl_qos.k8s.kinds import pod_from_workload
from kubectl_qos.k8s.objects import Pod, convert
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.present.check import sentence
from tests.check.cel import Request
from tests.check.test_rules import EXAMPLES
from tests.end_to_end.command import Run

SETTINGS: Final = Settings(classes={"team-*": "Burstable", "payments": "Guaranteed"})
RULES: Final = [rule for rule, text in rule_texts().items() if not text.no_policy]


def manifests(chosen: Settings = SETTINGS) -> list[dict[str, Any]]:
    messages = {rule: text.message for rule, text in rule_texts().items()}
    return list(policies(chosen, Release.of("1.36"), messages))


POLICIES: Final = {
    rule: next(one for one in manifests() if one["metadata"]["name"].endswith(rule.lower())) for rule in RULES
}


def messages(raw: Mapping[str, Any]) -> dict[str, set[str]]:
    """What `check` says of an object, by the rule."""
    pod = convert(raw, Pod) if raw["kind"] == "Pod" else pod_from_workload(raw["kind"], raw)
    found = check([Subject(pod, raw, settings=SETTINGS)], Context(Snapshot()))
    said: dict[str, set[str]] = {}
    for finding in select(found, (), date(2026, 11, 23)).open:
        said.setdefault(finding.rule, set()).add(f"{finding.rule}: {sentence(finding)}")
    return said


def assert_equal(raw: Mapping[str, Any]) -> None:
    said, request = messages(raw), Request(raw)
    for rule, policy in POLICIES.items():
        refusal = request.refusal(policy)
        assert bool(refusal) is (rule in said), (rule, refusal, said)
        assert not refusal or refusal in said[rule], (refusal, said[rule])


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_the_examples_of_a_rule_are_judged_alike(rule: RuleId) -> None:
    for name, is_refused in (("fails", True), ("passes", False)):
        (raw,) = yaml.safe_load_all(EXAMPLES[rule][name])
        assert bool(Request(_stored(raw)).refusal(POLICIES[rule])) is is_refused
        assert_equal(_stored(raw))


def _stored(raw: dict[str, Any]) -> dict[str, Any]:
    """Quantities as a server sends them: as texts."""
    loaded: dict[str, Any] = yaml.safe_load(yaml.safe_dump(raw))
    for spec in (loaded["spec"], loaded["spec"].get("template", {}).get("spec", {})):
        for list_ in ("initContainers", "containers"):
            for container in spec.get(list_, ()):
                for amounts in container.get("resources", {}).values():
                    amounts.update({name: str(value) for name, value in amounts.items()})
    return loaded


def _amounts(*texts: str) -> st.SearchStrategy[tuple[str | None, str | None]]:
    """A request and a limit, the request not above the limit, either or both absent."""
    some = st.sampled_from([None, *texts])
    return st.tuples(some, some).filter(
        lambda pair: None in pair or Quantity.parse(str(pair[0])) <= Quantity.parse(str(pair[1]))
    )


@st.composite
def resources(draw: st.DrawFn) -> dict[str, Any]:
    made: dict[str, Any] = {}
    is_there: bool = draw(st.booleans())
    amounts = {
        "cpu": draw(_amounts("0", "100m", "1", "300")),
        "memory": draw(_amounts("0", "600", "5Mi", "64Mi", "256Mi", "256M", "1Gi")),
    }
    for name, (request, limit) in amounts.items():
        for side, value in (("requests", request), ("limits", limit)):
            if value is not None:
                made.setdefault(side, {})[name] = value
    return {"resources": made} if made or is_there else {}


@st.composite
def containers(draw: st.DrawFn, *, init: bool = False) -> dict[str, Any]:
    sidecar = {"restartPolicy": "Always"} if init and draw(st.booleans()) else {}
    return {"name": draw(st.sampled_from(["a", "b", "istio-proxy"])), **sidecar, **draw(resources())}


marks = st.fixed_dictionaries(
    {},
    optional={
        "kubectl-qos/class": st.sampled_from(["Guaranteed", "Burstable", "BestEffort", "Gold"]),
        "kubectl-qos/waive": st.sampled_from(
            [
                "QOS006: batch",
                "QOS006, QOS008: a job; QOS010: moved",
                "QOS006",
                "QOS006:",
                "",
                "QOS0061: no",
            ]
        ),
    },
)


@st.composite
def objects(draw: st.DrawFn) -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": draw(st.lists(containers(), min_size=1, max_size=2))}
    if draw(st.booleans()):
        spec["initContainers"] = draw(st.lists(containers(init=True), max_size=2))
    spec |= draw(
        st.fixed_dictionaries(
            {},
            optional={
                "priority": st.sampled_from([0, 1, -5, 2_000_000_000]),
                "priorityClassName": st.sampled_from(["", "high", "system-node-critical"]),
            },
        )
    )
    metadata = {
        "name": "web",
        "namespace": draw(st.sampled_from(["", "team-a", "payments", "payments-2"])),
        draw(st.sampled_from(["annotations", "labels"])): draw(marks),
    }
    kind = draw(st.sampled_from(["Pod", "Deployment", "CronJob"]))
    if kind == "Pod":
        return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec}
    template: dict[str, Any] = {"template": {"metadata": {"annotations": draw(marks)}, "spec": spec}}
    if kind == "CronJob":
        template = {"jobTemplate": {"spec": template}}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": template}


@given(objects())
def test_a_random_object_is_judged_alike(raw: dict[str, Any]) -> None:
    assert_equal(raw)


POD_LEVEL = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}


@pytest.mark.parametrize("required", ["Guaranteed", "Burstable"])
def test_resources_of_a_pod_decide_its_class(required: str) -> None:
    spec = {"containers": [{"name": "app", "resources": {"limits": {"cpu": "2"}}}], "resources": POD_LEVEL}
    metadata = {"name": "web", "annotations": {"kubectl-qos/class": required}}
    assert_equal({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def test_only_another_spec_of_what_is_there_is_judged() -> None:
    raw = yaml.safe_load(EXAMPLES[RuleId.LIMIT_FAR_ABOVE_REQUEST]["fails"])
    policy = POLICIES[RuleId.LIMIT_FAR_ABOVE_REQUEST]
    relabelled = {**raw, "metadata": {**raw["metadata"], "labels": {"a": "b"}}}
    assert not Request(relabelled, raw).refusal(policy)
    changed = {**raw, "spec": {**raw["spec"], "nodeName": "n"}}
    assert Request(changed, raw).refusal(policy)


def test_levels_are_actions_and_rules_that_are_off_have_no_policy() -> None:
    chosen = Settings(
        levels={RuleId.ODD_SIZE: None, RuleId.REQUEST_MISSING: Level.ERROR}, namespaces=("shop", "data")
    )
    bindings = {
        one["spec"]["policyName"]: one["spec"] for one in manifests(chosen) if one["kind"].endswith("Binding")
    }
    assert "kubectl-qos-qos005" not in bindings
    assert bindings["kubectl-qos-qos006"]["validationActions"] == ["Deny"]
    assert bindings["kubectl-qos-qos008"]["validationActions"] == ["Warn"]
    (names,) = bindings["kubectl-qos-qos006"]["matchResources"]["namespaceSelector"]["matchExpressions"]
    assert (names["operator"], names["values"]) == ("In", ["shop", "data"])


@pytest.mark.parametrize("flags", [("gone",), ("-f", "gone"), ("-k", "gone")])
def test_a_path_that_does_not_exist_has_no_policies(flags: tuple[str, ...], run: Run) -> None:
    done = run("check", "--to-policy", *flags)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith('error: the path "gone" does not exist\n')


@pytest.mark.parametrize("flags", [("-o", "json"), ("--baseline", "b.json")])
def test_flags_that_do_nothing_are_refused(flags: tuple[str, str], run: Run) -> None:
    done = run("check", "--to-policy", *flags)
    assert (done.code, done.out) == (2, "")
    flag = " ".join(flags) if flags[0] == "-o" else flags[0]
    assert f"--to-policy and {flag} cannot be used together" in done.err


@pytest.mark.parametrize("path", ["github.com/x/y//prod?ref=v1", "https://example.com/x"])
def test_a_kustomization_to_be_fetched_is_not_looked_for(path: str, run: Run) -> None:
    assert run("check", "--to-policy", "-k", path).code == 0


def test_the_command_prints_them_and_what_has_none(run: Run) -> None:
    done = run("check", "--to-policy")
    assert done.code == 0
    assert "&id001" not in done.out
    assert list(yaml.safe_load_all(done.out)) == json.loads(json.dumps(manifests(Settings())))
    assert len(done.err.splitlines()) == len(RuleId) - len(RULES)
    assert "QOS015 has no policy: a policy does not know the nodes" in done.err
