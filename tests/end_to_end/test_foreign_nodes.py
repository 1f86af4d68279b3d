"""Nodes whose kubeletVersion is no Kubernetes release: virtual and simulated ones, as clusters have them."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from kubectl_qos.analysis.group_table import server_version
from kubectl_qos.cluster.files import DEMO_TIME, FileSource
from kubectl_qos.exporter.collector import ClusterSamples
from kubectl_qos.k8s.node_overrides import NodeOverride
from kubectl_qos.k8s.snapshot import NodeOverrides, Scope, Snapshot
from kubectl_qos.tui.view_model import build_view_model
from tests.cluster.cluster_objects import metrics, node, pod
from tests.end_to_end.command import Run

VERSIONS: Final = ("fake", "kwok-v0.5.0", "v0.21.0", "v2.0.0", "", "v1.36.2")
OF: Final = "the release of "
WHY: Final = " is missing: kubeletVersion is none of 1.20 to 1.37 (treated as 1.36)"
ALL: Final = f"{OF}node-0 ('fake'), node-1 ('kwok-v0.5.0'), node-2 ('v0.21.0') and 2 more{WHY}"
COMMANDS: Final = (
    "top -A",
    "top nodes",
    "next",
    "next node/node-0",
    "fix",
    "fix --priorities",
    "simulate node/node-0 --free 1Gi",
    "explain pod/web-0 -n shop",
    "tree node/node-0",
    "report node/node-0",
    "kills -A",
    "check",
    "compare --to 1.37",
    "set pod/web-0 -n shop --limits memory=300Mi",
)


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """A node of each version with a pod and its sample."""
    objects = []
    for number, version in enumerate(VERSIONS):
        raw = node(f"node-{number}")
        raw["status"]["nodeInfo"]["kubeletVersion"] = version
        web = pod(f"web-{number}", node=f"node-{number}", request="100Mi", limit="200Mi")
        objects += [raw, web, metrics(f"web-{number}", "150Mi")]
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": objects}))
    return path


@pytest.mark.parametrize("words", COMMANDS)
def test_no_command_ends_and_one_note_names_the_nodes(run: Run, dump: Path, words: str) -> None:
    done = run(*words.split(), "-f", dump)
    assert done.code == 0, done.err
    note = f"{OF}node-0 ('fake'){WHY}" if re.search("(?:node|web)-0", words) else ALL
    assert " ".join((done.out + done.err).split()).count(note) == 1


@pytest.mark.parametrize("words", ["next node/node-5", "explain pod/web-5 -n shop", "report node/node-5"])
def test_of_a_node_with_a_known_release_there_is_no_note(run: Run, dump: Path, words: str) -> None:
    done = run(*words.split(), "-f", dump)
    assert OF not in done.out + done.err


def test_exporter_and_screens_have_every_node(dump: Path) -> None:
    snapshot = FileSource([str(dump)]).snapshot(Scope())
    assert ClusterSamples(None).update(snapshot, Scope()) == len(VERSIONS)
    view_model = build_view_model(snapshot, Scope(), DEMO_TIME)
    assert all(view_model.deaths(name) is not None for name in snapshot.nodes)
    assert server_version(snapshot) == "v1.36.2", "others are no versions of a server"


def test_the_release_is_the_servers_where_that_is_known_or_the_given_one(dump: Path) -> None:
    snapshot = FileSource([str(dump)]).snapshot(Scope())
    assert _releases(snapshot) == ["1.36"] * 6
    assert _releases(replace(snapshot, server_version="v1.33.1")) == ["1.33"] * 5 + ["1.36"]
    given = NodeOverrides(settings=(NodeOverride("kubeletVersion", "1.34"),))
    stated = FileSource([str(dump)], overrides=given).snapshot(Scope())
    assert _releases(stated) == ["1.34"] * 6
    assert stated.missing == ()


def _releases(snapshot: Snapshot) -> list[str]:
    return [str(snapshot.setup(name).release) for name in sorted(snapshot.nodes)]
