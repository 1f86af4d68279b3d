"""Settings next to manifests, waivers and baselines: what counts, and what is wrong with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest
import yaml

from kubectl_qos.check.rules import RULES
from kubectl_qos.check.settings import waiver
from kubectl_qos.config.check_settings import find_check_settings, read_check_settings
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.quantity import Quantity
from tests.check.test_rules import EXAMPLES, found
from tests.end_to_end.command import Run

BARE = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec: {template: {spec: {containers: [{name: app}, {name: log}]}}}
"""


def settle(run: Run, text: str) -> None:
    (run.home / ".kubectl-qos.yaml").write_text(text, encoding="utf-8")


def test_every_setting_is_read(tmp_path: Path) -> None:
    file = tmp_path / ".kubectl-qos.yaml"
    file.write_text("""\
rules:
  QOS006: {level: error, resources: [memory]}
  QOS007: off
  QOS008: {ratio: 2}
  QOS009: {minimum: 16Mi}
  QOS010: {classes: {payments: Guaranteed, "team-*": Burstable}}
  QOS011: {priority: 1000}
  QOS012: note
  QOS013: true
namespaces: [shop, "team-*"]
nodeMemory: 16Gi
exceptions:
- rules: [QOS006]
  object: deployment/web
  reason: moves in March
  until: 2027-03-31
""")
    read = read_check_settings(file)
    levels = {name: RULES[name].level_in(read) for name in ("QOS006", "QOS007", "QOS012", "QOS013")}
    assert levels == {"QOS006": "error", "QOS007": None, "QOS012": "note", "QOS013": "warning"}
    values = {name: rule.value_in(read) for name, rule in RULES.items() if rule.parameter is not None}
    assert values == {
        "QOS006": ("memory",),
        "QOS007": ("cpu", "memory"),
        "QOS008": 2,
        "QOS009": Quantity.parse("16Mi"),
        "QOS010": {"payments": "Guaranteed", "team-*": "Burstable"},
        "QOS011": 1000,
    }
    assert (read.namespaces, read.node_memory_bytes) == (("shop", "team-*"), 16 << 30)
    ((_, exception),) = read.exceptions
    assert (exception.reason, exception.container, str(exception.until)) == (
        "moves in March",
        "*",
        "2027-03-31",
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("rules:\n  QOS099: off\n", "line 2: unknown rule 'QOS099'"),
        ("rules:\n  QOS006:\n    ratio: 2\n", "line 3: QOS006 has no ratio: level, resources"),
        (
            "rules:\n  QOS008:\n    ratio: 0\n",
            "line 3: rules.QOS008.ratio must be a whole number from 1, not 0",
        ),
        (
            "rules:\n  QOS007: off\n  QOS006: fatal\n",
            'line 3: rules.QOS006 must be off, note, warning or error, not "fatal"',
        ),
        (
            "rules:\n  QOS006: {\n    level: fatal}\n",
            'line 3: rules.QOS006.level must be off, note, warning or error, not "fatal"',
        ),
        (
            "rules:\n  QOS010:\n    classes:\n      a: Burstable\n      b: Best\n",
            'line 5: rules.QOS010.classes.b must be Guaranteed, Burstable or BestEffort, not "Best"',
        ),
        (
            "rules:\n  QOS006:\n    resources:\n    - gpu\n",
            'line 4: rules.QOS006.resources must be a list of cpu, memory, not ["gpu"]',
        ),
        ("\nruls: {}\n", "line 2: unknown setting 'ruls'"),
        ("exceptions:\n- rules: [QOS006]\n  reason: x\n  raison: x\n", "line 4: unknown setting 'raison'"),
        (
            "exceptions:\n- rules: QOS006\n  reason: x\n",
            'line 2: exceptions[0].rules must be a list of ids or patterns, such as [QOS006], not "QOS006"',
        ),
        ("rules:\n  QOS006: off\n  QOS006: note\n", "line 3: rules.QOS006 occurs twice"),
        ("exceptions:\n- rules: [QOS006]\n", "line 2: exceptions[0] needs reason"),
        ("exceptions:\n- reason: x\n  rules: [QOS06]\n", "line 3: unknown rule 'QOS06'"),
        ("nodeMemory: 16GB\n", "line 1: nodeMemory: "),
        ("nodeMemory: 16\n", "line 1: nodeMemory: 16 is 16 bytes; 16Gi was meant?"),
        ("rules: [\n", "line 2: invalid YAML: "),
    ],
)
def test_a_mistake_is_named_with_its_line(text: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / ".kubectl-qos.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as raised:
        read_check_settings(file)
    assert str(raised.value).startswith(f"{file}, {problem}")


def test_the_nearest_file_above_counts_up_to_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "repository" / "manifests" / "web"
    folder.mkdir(parents=True)
    (tmp_path / ".kubectl-qos.yaml").touch()
    assert find_check_settings(str(folder)) == tmp_path / ".kubectl-qos.yaml"
    (tmp_path / "repository" / ".git").mkdir()
    assert find_check_settings(str(folder)) is None
    (folder.parent / ".kubectl-qos.yaml").touch()
    monkeypatch.chdir(folder)
    assert find_check_settings("-") == folder.parent / ".kubectl-qos.yaml"


def test_each_file_has_its_nearest_settings(run: Run) -> None:
    for name, settings in {"a": "rules: {QOS006: off}", "b": "rules: {QOS006: error}", "c": ""}.items():
        (run.home / name / "in").mkdir(parents=True)
        (run.home / name / ".kubectl-qos.yaml").write_text(settings)
        (run.home / name / "in" / "x.yaml").write_text(BARE)
    files = [f"{name}/in/x.yaml" for name in "abc"]
    for given in (["-R", "."], files, [*reversed(files)]):
        levels = {
            (one.partition(":")[0], one.split(": ")[1]) for one in run("check", *given).lines if "QOS" in one
        }
        assert levels == {("b/in/x.yaml", "error"), ("c/in/x.yaml", "note")}
    assert len(run("check", *files, "--config", "b/.kubectl-qos.yaml").lines) == 6
    done = run("check", *files, "--to-policy")
    assert (done.code, done.out) == (2, "")
    assert "policies use the settings of one file, not of " in done.err
    settle(run, "rules: {QOS006: off}")
    assert run("check", "-", given=BARE).out == ""


def test_pods_are_compared_on_nodes_of_one_size(run: Run) -> None:
    """Those of files with other settings are for other nodes."""
    for number, text in enumerate(EXAMPLES["QOS014"]["fails"].split("---\n")):
        (run.home / str(number)).mkdir()
        (run.home / str(number) / "x.yaml").write_text(text)
    found = []
    for sizes in ("16Gi", "16Gi"), ("16Gi", "8Gi"):
        for number, size in enumerate(sizes):
            (run.home / str(number) / ".kubectl-qos.yaml").write_text(f"nodeMemory: {size}\n")
        found.append("QOS014" in run("check", "0", "1").out)
    assert found == [True, False]


SKIPPED: Final = "documents without apiVersion and kind, so no objects, are skipped: 1\n"


def test_the_settings_of_a_folder_are_no_manifest(run: Run) -> None:
    (run.home / "web.yaml").write_text(BARE)
    settle(run, "rules: {QOS006: off}\n")
    (run.home / "package.json").write_text("{}")
    done = run("check", "-f", ".")
    assert (done.code, done.out, done.err) == (
        0,
        "",
        f"{SKIPPED}nothing found in 1 object\n",
    )
    done = run("check", "package.json")
    assert (done.code, done.err) == (0, f"nothing found in 0 objects\n{SKIPPED}"), "the last line says why"
    settle(run, "namespaces: [skipped]\n")
    done = run("check", "-f", ".")
    place = f"{run.home}/.kubectl-qos.yaml:1: "
    left_out = f"{place}1 object left out by namespaces\n{place}namespaces: no object matches skipped\n"
    assert done.err == f"{left_out}nothing found in 0 objects\n{SKIPPED}"


@pytest.mark.parametrize(
    ("until", "left"), [("", 1), ("  until: 2026-11-22\n", 2), ("  until: 9999-01-01\n", 1)]
)
def test_an_exception_has_a_reason_and_an_end(until: str, left: int, run: Run) -> None:
    settle(
        run, f'exceptions:\n- rules: ["QOS*"]\n  object: "*/web"\n  container: log\n  reason: soon\n{until}'
    )
    assert len(found(run, BARE)) == left
    done = run("check", "-f", "x.yaml", "-o", "json")
    assert [one["reason"] for one in json.loads(done.out)["waived"]] == ["soon"] * (2 - left)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("QOS006: batch job", "batch job"),
        ("QOS008,QOS006: both ; QOS001: x", "both"),
        ("QOS008: other\nQOS006:  mine", "mine"),
        ("QOS006", ""),
        ("QOS006: ", ""),
        ("QOS0061: x", ""),
        ("see QOS008: about QOS006", ""),
    ],
)
def test_a_waiver_needs_a_reason(text: str, reason: str) -> None:
    assert waiver(text, "QOS006") == reason


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("QOS006", "'QOS006' has no reason: write one, as in 'QOS006: a batch job'"),
        ("QOS007: x; QOS006: ", "'QOS006:' has no reason: write one, as in 'QOS006: a batch job'"),
        ("QOS06: a job", "unknown rule 'QOS06': use QOS001, QOS002"),
        ("", "'' has no reason: write one, as in 'QOS006: a batch job'"),
        (None, "'' has no reason: write one, as in 'QOS006: a batch job'"),
    ],
)
@pytest.mark.parametrize("where", ["metadata", "template"])
def test_a_waiver_that_waives_nothing_is_said_with_its_line(
    text: str | None, said: str, where: str, run: Run
) -> None:
    raw = yaml.safe_load(BARE)
    owner = raw if where == "metadata" else raw["spec"]["template"]
    owner["metadata"] = {**owner.get("metadata", {}), "annotations": {"kubectl-qos/waive": text}}
    manifest = yaml.safe_dump(raw)
    (run.home / "x.yaml").write_text(manifest)
    done = run("check", "-f", "x.yaml")
    (line,) = [number for number, one in enumerate(manifest.split("\n"), 1) if "kubectl-qos/waive" in one]
    (note,) = [one for one in done.err.splitlines() if "waive" in one]
    assert note.startswith(f"x.yaml:{line}:")
    assert f" shop/deployment/web: kubectl-qos/waive: {said}" in note


def test_a_class_that_there_is_not_is_an_error_where_it_is_required(run: Run) -> None:
    (one,) = found(run, BARE.replace("shop}", "shop, annotations: {kubectl-qos/class: Gold}}"))[:1]
    assert (one["rule"], one["path"]) == ("QOS010", "metadata.annotations[kubectl-qos/class]")
    assert (
        one["message"] == 'kubectl-qos/class: unknown class "Gold": use Guaranteed, Burstable or BestEffort'
    )


def test_what_is_waived_is_printed_with_its_reason(run: Run) -> None:
    settle(run, "exceptions:\n- rules: [QOS006]\n  container: log\n  reason: it logs\n")
    (run.home / "x.yaml").write_text(BARE)
    done = run("check", "-f", "x.yaml")
    assert done.lines[-1] == (
        "x.yaml:4:52: waived: shop/deployment/web: no request for cpu and memory in container log: the pod is"
        " BestEffort, with oom_score_adj 1000, the highest [QOS006]: it logs"
    )
    assert done.err == "1 note in 1 object, 1 waived\n"


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ("until: 2026-11-22", "for * has expired: it was valid until 2026-11-22"),
        ("object: job/*", "for job/* is unused: no finding matches it"),
    ],
)
def test_an_exception_that_waives_nothing_is_said_with_its_line(rest: str, said: str, run: Run) -> None:
    settle(
        run,
        "exceptions:\n- rules: [QOS006]\n  reason: a\n  container: log\n"
        f"- rules: [QOS006]\n  reason: b\n  {rest}\n",
    )
    (run.home / "x.yaml").write_text(BARE)
    (note, _) = run("check", "-f", "x.yaml").err.splitlines()
    assert note.endswith(f".kubectl-qos.yaml:5: the exception of QOS006 {said}")


@pytest.mark.parametrize("where", ["metadata", "template"])
def test_an_annotation_waives_a_rule(where: str, run: Run) -> None:
    raw = yaml.safe_load(BARE)
    mark = {"annotations": {"kubectl-qos/waive": "QOS006: tried out"}}
    owner = raw if where == "metadata" else raw["spec"]["template"]
    owner["metadata"] = {**owner.get("metadata", {}), **mark}
    assert found(run, yaml.safe_dump(raw)) == []


def test_only_what_is_new_counts_with_a_baseline(run: Run) -> None:
    assert len(found(run, BARE)) == 2
    (run.home / "baseline.json").write_text(run("check", "-f", "x.yaml", "-o", "json").out)
    moved = f"# a comment\n{BARE}".replace("{name: app}, ", "{name: new}, {name: app}, ")
    (new,) = found(run, moved, "--baseline", "baseline.json")
    assert new["container"] == "new"


@pytest.mark.parametrize("text", ["", "[]", '{"items": [{}]}', '{"items": 1}'])
def test_what_is_no_baseline_is_said(text: str, run: Run) -> None:
    (run.home / "x.yaml").write_text(BARE)
    (run.home / "baseline.json").write_text(text)
    done = run("check", "-f", "x.yaml", "--baseline", "baseline.json")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: baseline.json: not a baseline\n")


@pytest.mark.parametrize(("fail_on", "code"), [("error", 0), ("warning", 0), ("note", 1)])
def test_the_exit_code_follows_the_level(fail_on: str, code: int, run: Run) -> None:
    (run.home / "x.yaml").write_text(BARE)
    assert run("check", "-f", "x.yaml", "--fail-on", fail_on).code == code


def test_a_rule_has_the_level_of_the_command_line(run: Run) -> None:
    (run.home / "x.yaml").write_text(BARE)
    (run.home / ".kubectl-qos.yaml").write_text("rules: {QOS006: off}\n")
    assert run("check", "x.yaml").code == 0
    done = run("check", "x.yaml", "--rule", "QOS006=error")
    assert (done.code, "error: " in done.out) == (1, True)
    assert "unknown rule 'QOS99'" in run("check", "x.yaml", "--rule", "QOS99=error").err
    assert "unknown level 'fatal'" in run("check", "x.yaml", "--rule", "QOS006=fatal").err


@pytest.mark.parametrize("fail_on", ["error", "warning"])
def test_what_cannot_be_read_is_trouble_whatever_is_found(fail_on: str, run: Run) -> None:
    (run.home / "x.yaml").write_text(f"{BARE}---\n- a list\n")
    done = run("check", "-f", "x.yaml", "--fail-on", fail_on)
    assert done.code == 2
    assert "an object was expected, not a list" in done.err
    assert run("check", "-f", "gone.yaml").code == 2


def test_a_file_without_pods_has_nothing_to_find(run: Run) -> None:
    (run.home / "x.yaml").write_text("apiVersion: v1\nkind: ConfigMap\n")
    done = run("check", "-f", "x.yaml")
    assert (done.code, done.out, done.err) == (0, "", "nothing found in 0 objects\n")


@pytest.mark.parametrize(
    ("manifest", "flags", "checked", "said"),
    [
        (BARE, (), False, "1 object left out by namespaces\nnamespaces: no object matches data*\n"),
        (BARE, ("-n", "shop"), False, "1 object left out by namespaces\n"),
        (BARE.replace("shop", "data-1"), (), True, ""),
        (BARE.replace(", namespace: shop", ""), ("-n", "data"), True, ""),
    ],
)
def test_only_some_namespaces_are_checked(
    manifest: str, flags: tuple[str, ...], checked: bool, said: str, run: Run
) -> None:
    settle(run, "rules: {}\nnamespaces: ['data*']\n")
    (run.home / "x.yaml").write_text(manifest)
    done = run("check", "-f", "x.yaml", *flags)
    assert bool(done.out) is checked
    summary = "1 note in 1 object" if checked else "nothing found in 0 objects"
    assert done.err.replace(f"{run.home / '.kubectl-qos.yaml'}:2: ", "") == f"{said}{summary}\n"
    assert ("<testcase" in run("check", "-f", "x.yaml", *flags, "-o", "junit").out) is checked


def test_an_object_without_a_namespace_is_in_the_default_one(run: Run) -> None:
    settle(run, "namespaces: [default]\nrules: {QOS006: off, QOS010: {classes: {default: Guaranteed}}}\n")
    assert [one["rule"] for one in found(run, BARE.replace(", namespace: shop", ""))] == ["QOS010"]


def test_a_limit_needs_a_request_of_the_chosen_resources(run: Run) -> None:
    limits = (
        EXAMPLES["QOS007"]["fails"]
        .replace("requests: {cpu: 100m}\n", "")
        .replace("memory:", "cpu: 1, memory:")
    )
    for resources, said in (("[memory]", "memory"), ("[cpu, memory]", "cpu and memory")):
        settle(run, f"rules: {{QOS007: {{resources: {resources}}}}}\n")
        (item,) = found(run, limits)
        assert f"without a request for {said}, so" in item["message"]


def test_parameters_change_what_is_found(run: Run) -> None:
    settle(run, "rules: {QOS008: {ratio: 5}, QOS011: {priority: 3000000000}}\n")
    for rule in ("QOS008", "QOS011"):
        assert rule not in {one["rule"] for one in found(run, EXAMPLES[rule]["fails"])}
