"""The predictions against vectors made by running real Kubernetes code, release by release."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.golden import compare, oracle

DATA = Path(__file__).with_name("data")
CASES = DATA / "cases-dev.jsonl.xz"
RESULTS = DATA / "results-dev.jsonl.xz"
RELEASES = compare.releases_of(RESULTS)


def last_line(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize("release", RELEASES)
def test_every_predicted_value_is_what_real_code_computed(
    release: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """From 1.34 upstream adds a refused pod's overhead again on each call; the vectors hold the second."""
    assert compare.main(["--cases", str(CASES), str(RESULTS), "--release", release]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert int(last.split()[0]) > 350_000
    differing = ("files.*", "libcontainer.resources.unified.*", "resourceConfig.unified.*")
    assert [line.split()[0] for line in lines if "more in refused cases" in line] == [
        f"qos.update[].{name}" for name in differing if release in {"1.34", "1.35", "1.36"}
    ]


def test_there_are_nine_releases() -> None:
    assert len(RELEASES) == 9


def test_every_quantity_is_parsed_and_printed_as_real_code_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert compare.main([str(DATA / "quantity-dev.jsonl.xz"), "--strict"]) == 0
    assert last_line(capsys) == "28001 values checked, 0 mismatches"


def changed(tmp_path: Path, kind: str, change: Any, *, is_refused: bool = False) -> list[str]:
    """A results file with its first case of a kind, one of whose values is changed, and the cases."""
    rows = compare.read(RESULTS, "1.36")
    row = next(row for row in rows if row["kind"] == kind and compare.is_refused(row) is is_refused)
    results = tmp_path / "v1.36-changed.jsonl"
    results.write_text(json.dumps(row))
    assert compare.main(["--cases", str(CASES), str(results)]) == 0
    change(row)
    results.write_text(json.dumps(row))
    return ["--cases", str(CASES), str(results)]


def _bump_adj(row: Any) -> None:
    row["containers"][0]["oomScoreAdj"] += 1


def _drop_file(row: Any) -> None:
    row["podCgroup"]["files"].popitem()


def _add_file(row: Any) -> None:
    row["podCgroup"]["files"]["memory.high"] = "1"


def _swap_order(row: Any) -> None:
    row["memory"]["order"][0], row["memory"]["order"][-1] = (
        row["memory"]["order"][-1],
        row["memory"]["order"][0],
    )


def _bump_weight(row: Any) -> None:
    row["values"][0]["libcontainerSharesToWeight"] += 1


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("pod", _bump_adj),
        ("pod", _drop_file),
        ("pod", _add_file),
        ("eviction", _swap_order),
        ("conv", _bump_weight),
    ],
)
def test_one_changed_value_in_a_file_is_noticed(
    tmp_path: Path, kind: str, change: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare.main(changed(tmp_path, kind, change)) == 1
    assert " 0 mismatches" not in last_line(capsys)


def test_a_changed_value_of_a_refused_case_fails_only_with_strict(tmp_path: Path) -> None:
    arguments = changed(tmp_path, "pod", _drop_file, is_refused=True)
    assert [compare.main(arguments), compare.main([*arguments, "--strict"])] == [0, 1]


def test_a_results_file_without_a_release_in_its_name_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "unnamed.jsonl"
    path.write_text("")
    with pytest.raises(SystemExit):
        compare.main(["--cases", str(CASES), str(path)])
    assert compare.main(["--cases", str(CASES), str(path), "--release", "1.36"]) == 0


def test_everything_left_out_has_a_reason() -> None:
    assert all(reason for reason in compare.LEFT_OUT.values())


# -- cases that the vectors lack, made from theirs ---------------------------------------------------


def cases(kind: str) -> list[dict[str, Any]]:
    return [row for row in compare.read_by_id(CASES).values() if row["kind"] == kind]


@pytest.mark.parametrize("version", RELEASES)
def test_pods_without_app_containers_are_answered(version: str) -> None:
    """From 1.32 on the real code panics at a sidecar among them; a server refuses such pods."""
    sidecars = 0
    for case in cases("pod")[:200]:
        spec = case["pod"]["spec"]
        init = [{**one, "restartPolicy": "Always"} for one in spec.get("containers") or ()]
        sidecars += len(init)
        found = oracle.run(
            {**case, "pod": {**case["pod"], "spec": {**spec, "containers": [], "initContainers": init}}},
            version,
        )
        assert "spec.containers: Required value" in found["validation"]
        assert all(isinstance(one["oomScoreAdj"], int) for one in found["containers"])
    assert sidecars > 200


@pytest.mark.parametrize("version", RELEASES)
def test_reservations_beyond_int64_are_printed_as_pointers(version: str) -> None:
    for case in cases("node")[:20]:
        kubelet = {**case["kubelet"], "systemReserved": {"memory": "9223372036854775808"}}
        sentences = oracle.run({**case, "kubelet": kubelet}, version)["validate"]
        assert any("{{0 0} {0xPTR}  " in text for text in sentences), sentences
