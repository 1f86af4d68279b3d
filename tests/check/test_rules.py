"""Each rule on a manifest that fails it and on one that just passes; and the words and pages of all."""

from __future__ import annotations

import json
import runpy
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from textwrap import dedent
from typing import Annotated, Any, Final

import pytest
import yaml
from msgspec import Meta

from kubectl_qos.check.policy import policies
from kubectl_qos.check.rule import Case, Hit, Parameter, Rule
from kubectl_qos.check.rules import RULES
from kubectl_qos.check.settings import CheckSettings, Level
from kubectl_qos.k8s.releases import Release
from tests.end_to_end.command import Run

EXAMPLES: Final[dict[str, dict[str, Any]]] = yaml.safe_load(
    Path(__file__).with_name("rules.yaml").read_text(encoding="utf-8")
)
PAGES: Final = Path(__file__).parents[2] / "docs" / "check-rules"
each = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)


def found(run: Run, manifest: str, *flags: str) -> list[dict[str, Any]]:
    """What is found in a manifest."""
    (run.home / "x.yaml").write_text(manifest, encoding="utf-8")
    done = run("check", "-f", "x.yaml", "-o", "json", *flags)
    assert done.code in {0, 1}, done.err
    items: list[dict[str, Any]] = json.loads(done.out)["items"]
    return items


@each
def test_one_manifest_fails_and_one_just_passes(rule: Rule, run: Run) -> None:
    example = EXAMPLES[rule.id]
    flags = example.get("flags", ())
    (failing, *others) = [one for one in found(run, example["fails"], *flags) if one["rule"] == rule.id]
    assert not others
    assert failing["level"] == rule.level
    assert failing["line"] is not None
    assert failing["message"].strip()
    assert not [one for one in found(run, example["passes"], *flags) if one["rule"] == rule.id]


@each
def test_a_rule_that_is_off_finds_nothing(rule: Rule, run: Run) -> None:
    (run.home / ".kubectl-qos.yaml").write_text(f"rules: {{{rule.id}: off}}\n", encoding="utf-8")
    example = EXAMPLES[rule.id]
    assert rule.id not in {one["rule"] for one in found(run, example["fails"], *example.get("flags", ()))}


def test_a_rule_is_known_everywhere_by_being_declared(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class _ManyCores(Rule):
        id, level = "QOS999", Level.NOTE
        title, why, remedy = "many cores", "Few nodes have them.", "Request less."
        message = "{owner} requests more than {most} cores"
        parameter = Parameter("most", Annotated[int, Meta(ge=1)], "a whole number from 1", 8, "the most")
        no_policy = "it is a trial"

        def find(self, case: Case) -> Iterator[Hit]:
            most = self.value_in(case.settings)
            for owner in case.owners:
                if owner.amounts("requests")["cpu"].value() > most:
                    yield case.hit(owner, "resources.requests[cpu]", most=most)

    monkeypatch.setitem(RULES, "QOS999", _ManyCores())
    pod = "{name: a, resources: {requests: {cpu: 3, memory: 1Gi}}}"
    manifest = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\nspec: {{containers: [{pod}]}}\n"
    assert found(run, manifest) == [], "its default is 8"
    settings = run.home / ".kubectl-qos.yaml"
    settings.write_text("rules: {QOS999: {most: 2, level: error}}\n")
    (item,) = found(run, manifest)
    assert (item["rule"], item["title"], item["level"]) == ("QOS999", "many cores", "error")
    assert item["message"] == "container a requests more than 2 cores"
    assert found(run, manifest, "--rule", "QOS999=off") == []
    [sarif] = json.loads(run("check", "x.yaml", "-o", "sarif").out)["runs"]
    (*_, declared), (result,) = sarif["tool"]["driver"]["rules"], sarif["results"]
    assert (declared["id"], declared["name"], result["ruleIndex"]) == ("QOS999", "ManyCores", len(RULES) - 1)
    assert "QOS999 has no policy: it is a trial" in run("check", "--to-policy").err
    waived = manifest.replace("name: web", 'name: web, annotations: {kubectl-qos/waive: "QOS999: few"}')
    assert found(run, waived) == []
    settings.write_text("rules: {QOS999: {most: 0}}\n")
    assert "rules.QOS999.most must be a whole number from 1, not 0" in run("check", "x.yaml").err


@pytest.mark.parametrize(
    ("limit", "level"),
    [("5Mi", "error"), ("10Mi", "warning"), ("12Mi", "note"), ("21Mi", "note"), ("22Mi", "")],
)
def test_what_a_runtime_takes_to_start_depends_on_its_version(limit: str, level: str, run: Run) -> None:
    resources = f"{{requests: {{cpu: 1, memory: 5Mi}}, limits: {{memory: {limit}}}}}"
    manifest = (
        f"kind: Pod\nmetadata: {{name: a}}\nspec: {{containers: [{{name: c, resources: {resources}}}]}}\n"
    )
    levels = [finding["level"] for finding in found(run, manifest) if finding["rule"] == "QOS009"]
    assert levels == ([level] if level else [])


def test_a_pod_of_lower_priority_is_named_with_its_namespace(run: Run) -> None:
    apart = EXAMPLES["QOS014"]["fails"].replace("{name: report}", "{name: report, namespace: batch}")
    (finding,) = [one for one in found(run, apart, "--node-memory", "16Gi") if one["rule"] == "QOS014"]
    assert "before batch/pod/report, whose priority is lower" in finding["message"]


def test_a_quota_counts_no_pod_that_is_refused_anyway(run: Run) -> None:
    quota, pods = EXAMPLES["QOS018"]["passes"].split("---\n")
    for first, is_full in ((f"{pods}          limits: {{memory: 1Mi}}\n", False), (pods, True)):
        rules = {one["rule"] for one in found(run, f"{quota}---\n{first}---\n{pods}")}
        assert ("QOS018" in rules, "QOS002" in rules) == (is_full, not is_full)


RANGE: Final = """\
apiVersion: v1
kind: LimitRange
metadata: {name: caps, namespace: shop}
spec: {limits: [{type: Container, default: {memory: 512Mi}, defaultRequest: {memory: 128Mi, cpu: 100m}}]}
---
"""
MARKED: Final = """\
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec: {priorityClassName: system-cluster-critical, containers: [{name: a}]}
"""


def test_limit_ranges_come_before_the_rules(run: Run) -> None:
    """A stored pod has what they added when it was created: those of today add nothing."""
    stored = MARKED.replace("namespace: shop", "namespace: shop, uid: u")
    above = MARKED.replace("{name: a}", "{name: a, resources: {requests: {cpu: 1, memory: 1Gi}}}")
    for manifest, rules in (
        (RANGE + above, {"QOS016"}),
        (MARKED, {"QOS006", "QOS011"}),
        (RANGE + MARKED, {"QOS017"}),
        (RANGE + stored, {"QOS006", "QOS011", "QOS017"}),
    ):
        items = found(run, manifest)
        assert {one["rule"] for one in items} == rules
    (message,) = [one["message"] for one in items if one["rule"] == "QOS011"]
    assert message == (
        "it is BestEffort with PriorityClass system-cluster-critical: the kernel ignores priority and sees"
        " oom_score_adj 1000, the highest"
    )


def test_a_missing_request_matters_by_what_the_container_and_its_pod_are(run: Run) -> None:
    requests = MARKED.replace("{name: a}", "{name: a, resources: {requests: {cpu: 1, memory: 1Gi}}}")
    before = requests.replace("containers:", "initContainers: [{name: setup}], containers:")
    assert found(run, before) == [], "it runs within what the others request"
    sidecar = before.replace("{name: setup}", "{name: setup, restartPolicy: Always}")
    assert [one["container"] for one in found(run, sidecar)] == ["setup"]
    (item,) = found(run, MARKED.replace("cluster", "node"))
    assert item["message"] == "no request for cpu and memory in container a", "its oom_score_adj is -997"
    (item,) = found(run, MARKED.replace("{priority", "{os: {name: windows}, priority"))
    assert item["message"] == "no request for cpu and memory in container a", "Windows has none"


def test_explain_applies_the_limit_ranges_of_the_input(run: Run) -> None:
    (run.home / "x.yaml").write_text(RANGE + MARKED)
    done = run("explain", "pod/web", "-n", "shop", "-f", "x.yaml", "--node-memory", "16Gi")
    assert "Burstable, oom_score_adj 993" in done.out
    assert "memory.max = 536870912" in done.out
    assert done.err == "pod/web has the defaults of LimitRange caps\n"
    limited = MARKED.replace("{name: a}", "{name: a, resources: {limits: {cpu: 1, memory: 128Mi}}}")
    (run.home / "x.yaml").write_text(RANGE + limited)
    done = run("explain", "pod/web", "-n", "shop", "-f", "x.yaml", "--node-memory", "16Gi")
    assert done.err == "", "they add nothing to it"
    above = MARKED.replace("{name: a}", "{name: a, resources: {requests: {memory: 1Gi}}}")
    (run.home / "x.yaml").write_text(RANGE + above)
    done = run("explain", "pod/web", "-n", "shop", "-f", "x.yaml", "--node-memory", "16Gi")
    assert "with which the API server refuses it: spec.containers[0].resources.requests: Invalid" in done.err


def test_what_a_node_reserves_does_not_hold_pods(run: Run) -> None:
    (run.home / "x.yaml").write_text(
        MARKED.replace("{name: a}", "{name: a, resources: {requests: {memory: 3Gi}}}")
    )
    for reserved, largest in (("none", None), ("memory=2Gi", "1948Mi")):
        assumed = f"kubeReserved={reserved}"
        done = run("check", "x.yaml", "--node-memory", "4Gi", "--assume", assumed, "-o", "json")
        findings = [finding for finding in json.loads(done.out)["items"] if finding["rule"] == "QOS015"]
        assert [finding["message"].partition("no node has more than ")[2] for finding in findings] == (
            [f"{largest} of it"] if largest else []
        )


def test_the_kinds_of_openshift_are_its_own_in_v1(run: Run) -> None:
    """Its old API has no group: `kind: DeploymentConfig` of v1 is not one that no server has."""
    config = MARKED.partition("spec:")[0].replace("kind: Pod", "kind: DeploymentConfig")
    config += (
        "spec: {template: {spec: {containers: [{name: a, resources: {limits: {cpu: 1, memory: 1Gi}}}]}}}"
    )
    assert "QOS001" not in {one["rule"] for one in found(run, config)}
    assert "QOS001" in {one["rule"] for one in found(run, config.replace("DeploymentConfig", "Rollout"))}


def test_a_server_takes_a_custom_resource_and_refuses_its_pods(run: Run) -> None:
    container = "{name: a, resources: {requests: {nvidia.com/gpu: 1}}}"
    for kind, what in (("apps/v1\nkind: Deployment", "it"), ("a.io/v1\nkind: Rollout", "its pods")):
        spec = f"{{template: {{spec: {{containers: [{container}]}}}}}}"
        text = f"apiVersion: {kind}\nmetadata: {{name: a}}\nspec: {spec}"
        messages = [item["message"] for item in found(run, text) if "overcommitable" in item["message"]]
        assert [message.partition(":")[0] for message in messages] == [f"the API server refuses {what}"]


@each
def test_a_rule_has_a_policy_or_the_reason_why_none(rule: Rule) -> None:
    made = list(policies(CheckSettings(), Release.of("1.36"), [rule]))
    assert bool(made) is not bool(rule.no_policy)


def test_every_rule_has_its_page() -> None:
    kept = {path.name: path.read_text(encoding="utf-8") for path in PAGES.iterdir()}
    assert kept == runpy.run_path(str(PAGES.with_name("make_checks.py")))["pages"](), (
        "make reference renews them"
    )


def test_no_message_has_another_format_than_the_policies_know() -> None:
    for rule in RULES.values():
        for _, _, format_, conversion in Formatter().parse(rule.message):
            assert not format_
            assert conversion is None


def test_a_pod_that_failed_is_checked(run: Run) -> None:
    """An evicted pod was left out without a word; one that has succeeded still is."""
    text = """\
        apiVersion: v1
        kind: Pod
        metadata: {{name: web, uid: 1-1}}
        spec: {{priorityClassName: vital, containers: [{{name: app}}]}}
        status: {{phase: {phase}, reason: Evicted}}
        """
    (run.home / "x.yaml").write_text(dedent(text.format(phase="Failed")))
    done = run("check", "x.yaml")
    assert "no request for cpu and memory in container app: the pod is BestEffort" in done.out
    assert done.err.startswith("PriorityClass vital is not in the files: 0 is assumed\n")
    assert found(run, dedent(text.format(phase="Succeeded"))) == []


@pytest.mark.parametrize(("name", "extra"), [("spec", ["imagePullPolcy"]), ("containerSet", [])])
def test_containers_outside_of_a_pod_may_have_fields_of_their_own(
    name: str, extra: list[str], run: Run
) -> None:
    """Those of Argo's containerSet and of a SidecarSet have some; a mistyped field is still named."""
    container = "{name: app, dependencies: [a], imagePullPolcy: Always, resources: {limit: {memory: 1Gi}}}"
    text = (
        f"apiVersion: a.io/v1\nkind: Flow\nmetadata: {{name: web}}\n{name}: {{containers: [{container}]}}\n"
    )
    fields = [one["path"] for one in found(run, text) if one["rule"] == "QOS003"]
    assert fields == [f"{name}.containers[0].{field}" for field in (*extra, "resources.limit")]
