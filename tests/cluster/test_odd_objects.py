"""Odd names, odd messages, odd clocks: one line a row, nothing that a terminal acts on, no negative age."""

import csv
import io
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_qos.__main__ import main
from tests.cluster.cluster_objects import metrics, node, pod
from tests.cluster.conftest import ConnectTo
from tests.cluster.object_server import ObjectServer, status
from tests.cluster.odd_objects import ODD_NAMES, has_controls, odd_cluster


@pytest.fixture
def top(connect_to: ConnectTo, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run `top` on these objects: exit code, stdout and stderr."""

    def run(objects: ObjectServer, *arguments: str) -> tuple[int, str, str]:
        connect_to(objects)
        code = main(["top", "-n", "shop", "--kubeconfig", str(tmp_path / "kubeconfig"), *arguments])
        return (code, *capsys.readouterr())

    return run


@pytest.mark.parametrize("output", ["", "wide", "csv", "json", "yaml", "name"])
def test_odd_names_are_escaped(top: Any, output: str) -> None:
    code, out, err = top(ObjectServer(**odd_cluster()), *(["-o", output] if output else []))
    assert code == 0
    # JSON and YAML keep what programs read; what a terminal acts on is escaped in them too.
    assert not has_controls(out)
    assert not has_controls(err)
    if output == "json":
        assert {item["pod"] for item in json.loads(out)["items"]} == set(ODD_NAMES)
    elif output == "yaml":
        assert {item["pod"] for item in yaml.safe_load(out)["items"]} == set(ODD_NAMES)
    elif output == "csv":
        rows = list(csv.DictReader(io.StringIO(out)))
        assert {row["pod"] for row in rows} == set(ODD_NAMES.values())
        assert len(out.splitlines()) == len(ODD_NAMES) + 1
    else:
        assert len(out.splitlines()) == len(ODD_NAMES) + (output != "name")
        for line in ODD_NAMES.values():
            assert line in out


def test_an_odd_message_is_one_line(top: Any) -> None:
    objects = ObjectServer()
    message = "no\n\x1b[2Jscreen\r\u202e" + "x" * 50
    objects.faults["/api/v1/namespaces/shop/pods"] = status(500, "Inter\x1bnal", message)
    code, out, err = top(objects)
    assert (code, out) == (1, "")
    assert err.splitlines()[0] == (r"Error from server (Inter\x1bnal): no\n\x1b[2Jscreen\r\x202e" + "x" * 50)
    assert not has_controls(err)


@pytest.mark.parametrize(
    "times",
    [
        lambda now: now + timedelta(hours=1),
        lambda now: now - timedelta(hours=1),
        lambda _: datetime(1, 1, 1, tzinfo=UTC),
        lambda _: datetime(9999, 12, 31, tzinfo=UTC),
    ],
    ids=["an hour ahead", "an hour behind", "never", "for ever"],
)
def test_a_clock_that_is_wrong_makes_no_negative_age(top: Any, times: Any) -> None:
    moment = times(datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")
    found = pod("web", request="1Mi")
    found["metadata"]["creationTimestamp"] = moment
    sample = {**metrics("web", "5Mi"), "timestamp": moment}
    objects = ObjectServer(pods=[found], nodes=[node()], metrics=[sample])
    for output in ("wide", "csv", "json"):
        code, out, err = top(objects, "-o", output)
        assert code == 0
        assert len(out.splitlines()) >= 2
        assert "unexpected" not in err
        assert re.search(r"-\d+[smhdy]\b", out + err) is None


@pytest.mark.parametrize("moment", ["yesterday", "", "2026-13-45T99:99:99Z", "2026-11-20T08:00:00+99:00"])
def test_a_time_that_is_none_is_unknown(top: Any, moment: str) -> None:
    found = pod("web", request="1Mi")
    found["metadata"]["creationTimestamp"] = moment
    sample = {**metrics("web", "5Mi"), "timestamp": moment}
    code, out, err = top(ObjectServer(pods=[found], nodes=[node()], metrics=[sample]), "-o", "wide")
    assert (code, len(out.splitlines())) == (0, 2)
    assert "<unknown>" in out
    assert "unexpected" not in err
