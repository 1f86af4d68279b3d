"""The policies of `--to-policy`, evaluated: they refuse what `check` finds, with its words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from functools import reduce
from typing import Any, Final

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_qos.check.policy import policies
from kubectl_qos.check.rule import Context, Subject, select
from kubectl_qos.check.rules import RULES, check
from kubectl_qos.check.settings import CheckSettings, Level
from kubectl_qos.k8s.kinds import pod_from_workload
from kubectl_qos.k8s.objects import Pod, convert
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.present.check import sentence
from tests.check.cel import Request
from tests.check.test_rules import EXAMPLES
from tests.end_to_end.command import Run

SETTINGS: Final = CheckSettings(parameters={"QOS010": {"team-*": "Burstable", "payments": "Guaranteed"}})
WITH_POLICY: Final = [name for name, rule in RULES.items() if not rule.no_policy]


def manifests(chosen: CheckSettings = SETTINGS) -> list[dict[str, Any]]:
    return list(policies(chosen, Release.of("1.36"), RULES.values()))


POLICIES: Final = manifests()
OWNER: Final = {"ownerReferences": [{"apiVersion": "x/v1", "kind": "X", "name": "x", "uid": "1"}]}


def messages(raw: Mapping[str, Any]) -> dict[str, set[str]]:
    """What `check` says of an object, by the rule."""
    pod = convert(raw, Pod) if raw["kind"] == "Pod" else pod_from_workload(raw["kind"], raw)
    found = check([Subject(pod, raw, settings=SETTINGS)], Context(Snapshot()))
    said: dict[str, set[str]] = {}
    for finding in select(found, (), date(2026, 11, 23)).open:
        said.setdefault(finding.rule.id, set()).add(f"{finding.rule.id}: {sentence(finding)}")
    return {rule: texts for rule, texts in said.items() if rule in WITH_POLICY}


def assert_equal(raw: Mapping[str, Any]) -> None:
    """Policies and `check` have findings of the same rules; policies have the sentence of the first."""
    said, refusals = messages(raw), Request(raw).refusals(POLICIES)
    expected = {name: "Deny" if RULES[name].level is Level.ERROR else "Warn" for name in said}
    assert {text[:6]: action for action, texts in refusals.items() for text in texts} == expected
    assert all(text in said[text[:6]] for texts in refusals.values() for text in texts), (refusals, said)


@pytest.mark.parametrize("rule", WITH_POLICY)
def test_the_examples_of_a_rule_are_judged_alike(rule: str) -> None:
    for name, is_refused in (("fails", True), ("passes", False)):
        (raw,) = yaml.safe_load_all(EXAMPLES[rule][name])
        assert (rule in messages(_stored(raw))) is is_refused
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
                "os": st.sampled_from([{"name": "windows"}, {"name": "linux"}]),
                "nodeSelector": st.sampled_from([{"kubernetes.io/os": "windows"}, {"disk": "fast"}]),
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


@settings(max_examples=settings().max_examples // 2)
@given(objects())
def test_a_random_object_is_judged_alike(raw: dict[str, Any]) -> None:
    assert_equal(raw)


@pytest.mark.parametrize(
    "of_windows", [{"os": {"name": "windows"}}, {"nodeSelector": {"kubernetes.io/os": "windows"}}]
)
def test_a_pod_for_windows_has_no_oom_score_adj(of_windows: dict[str, Any]) -> None:
    spec = {"containers": [{"name": "app", "image": "b"}], "priority": 5, **of_windows}
    assert_equal({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec})


@pytest.mark.parametrize("priority", [{}, {"priority": 0}, {"priority": 2_000_001_000}])
def test_a_critical_pod_has_the_name_and_the_priority(priority: dict[str, int]) -> None:
    spec = {"containers": [{"name": "app"}], "priorityClassName": "system-node-critical", **priority}
    assert_equal({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec})


POD_LEVEL = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}


@pytest.mark.parametrize("required", ["Guaranteed", "Burstable"])
def test_resources_of_a_pod_decide_its_class(required: str) -> None:
    spec = {"containers": [{"name": "app", "resources": {"limits": {"cpu": "2"}}}], "resources": POD_LEVEL}
    metadata = {"name": "web", "annotations": {"kubectl-qos/class": required}}
    assert_equal({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


TINY: Final = {"name": "a", "image": "b", "resources": {"limits": {"memory": "600"}}}


def made(kind: str, metadata: Mapping[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """An object whose pods have a limit of 600 bytes, which is an error."""
    inner = {"containers": [TINY], **spec}
    if kind != "Pod":
        inner = {"replicas": 1, "template": {"spec": inner}}
    if kind == "CronJob":
        inner = {"suspend": True, "jobTemplate": {"spec": inner}}
    return {"kind": kind, "metadata": {"name": "web", "namespace": "shop", **(metadata or {})}, "spec": inner}


@pytest.mark.parametrize(
    ("kind", "actions"),
    [
        ("Deployment", "Deny"),
        ("StatefulSet", "Deny"),
        ("DaemonSet", "Deny"),
        ("CronJob", "Deny"),
        ("ReplicationController", "Deny"),
        ("ReplicaSet", ""),
        ("Job", ""),
        ("Pod", "Warn,Audit"),
    ],
)
def test_what_a_controller_creates_for_a_workload_is_not_refused(kind: str, actions: str) -> None:
    def actions_of(raw: dict[str, Any]) -> set[str]:
        texts = Request(raw).refusals(POLICIES).items()
        return {action for action, refused in texts if any("QOS005" in text for text in refused)}

    assert actions_of(made(kind)) == {"Deny"}
    assert actions_of(made(kind, OWNER)) == {actions} - {""}


@pytest.mark.parametrize(
    ("edit", "is_judged"),
    [
        ({"spec.replicas": 3}, False),
        ({"metadata.labels": {"a": "b"}}, False),
        ({"spec.template.metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}}, False),
        ({"spec.template.spec.containers": [{**TINY, "image": "c"}]}, False),
        ({"spec.template.spec.containers": [{**TINY, "resources": {"limits": {"memory": "700"}}}]}, True),
        ({"spec.template.spec.containers": [TINY, {"name": "b"}]}, True),
        ({"spec.template.spec.initContainers": [{"name": "b"}]}, True),
        ({"spec.template.spec.resources": {"limits": {"memory": "700"}}}, True),
        ({"spec.template.spec.priorityClassName": "high"}, True),
        ({"spec.template.metadata": {"annotations": {"kubectl-qos/class": "Guaranteed"}}}, True),
        ({"metadata.annotations": {"kubectl-qos/waive": "QOS006: batch"}}, True),
    ],
    ids=str,
)
def test_an_update_is_judged_that_changes_what_rules_read(edit: dict[str, Any], is_judged: bool) -> None:
    new = made("Deployment")
    ((path, value),) = edit.items()
    *parents, key = path.split(".")
    reduce(dict.__getitem__, parents, new)[key] = value
    assert ("Deny" in Request(new, made("Deployment")).refusals(POLICIES)) is is_judged


def test_a_resize_is_judged_whoever_owns_the_pod() -> None:
    old = made("Pod", OWNER, containers=[{"name": "a"}])
    assert "Deny" in Request(made("Pod", OWNER), old, subresource="resize").refusals(POLICIES)


def test_levels_are_actions_and_rules_that_are_off_have_no_policy() -> None:
    chosen = CheckSettings({"QOS005": None, "QOS006": Level.ERROR}, namespaces=("shop", "data"))
    validated: dict[str, set[str]] = {}
    for manifest in manifests(chosen):
        spec, name = manifest["spec"], manifest["metadata"]["name"]
        if "validations" in spec:
            validated[name] = {item["messageExpression"][1:7] for item in spec["validations"]}
            continue
        (names,) = spec["matchResources"]["namespaceSelector"]["matchExpressions"]
        assert (names["operator"], names["values"]) == ("In", ["shop", "data"])
        assert spec["policyName"] == name
    denied, warned = validated["kubectl-qos-deny-pods"], validated["kubectl-qos-warn-cronjobs"]
    assert ("QOS006" in denied, "QOS008" in warned) == (True, True)
    assert validated["kubectl-qos-owned-pods"] == denied | warned == {*WITH_POLICY} - {"QOS005"}
    assert list(manifests(CheckSettings(dict.fromkeys(RULES)))) == []


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
    assert list(yaml.safe_load_all(done.out)) == json.loads(json.dumps(manifests(CheckSettings())))
    assert len(done.err.splitlines()) == len(RULES) - len(WITH_POLICY)
    assert "QOS015 has no policy: a policy does not know the nodes" in done.err
