"""What a server calls its things is only text, wherever it is shown and in every file."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
import yaml
from textual.widgets import Input

from kubectl_qos.analysis.trends import Trends
from kubectl_qos.cluster.files import DEMO_TIME
from kubectl_qos.k8s.objects import OwnerReference
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.tui.lists.base import export_rows
from kubectl_qos.tui.screens.browse import list_definitions
from kubectl_qos.tui.view import ListKind, View
from kubectl_qos.tui.view_model import build_view_model
from kubectl_qos.tui.widgets.line_table import LineTable
from tests.contract import check_document
from tests.tui.sources import Run, ScriptedSource, demo, one_cluster, pod_named, running

NASTY = "[bold]x\x1b[31m"
KINDS = {
    ListKind.CLUSTERS: "ClusterMemoryList",
    ListKind.NODES: "NodeMemoryList",
    ListKind.NAMESPACES: "NamespaceRankList",
    ListKind.WORKLOADS: "WorkloadRankList",
    ListKind.PODS: "PodRankList",
    ListKind.CONTAINERS: "PodRankList",
    ListKind.DEATHS: "DeathList",
}
SHOWN = "[bold]x\\x1b[31m"
NAMES = [NASTY, '[/]a,"b";c two\nlines\t \u202eback née \x00', "", "=1+1"]


def called(name: str, snapshot: Snapshot | None = None) -> Snapshot:
    """The demo in which the worst pod, its node, namespace, owner and container have a name."""
    found = snapshot or demo()
    old = pod_named(found, "api-7d9c5b6f8-x2mzq")
    owner = OwnerReference(kind=name, name=name, controller=True)
    metadata = msgspec.structs.replace(
        old.metadata, name=name, namespace=name, owner_references=(owner,), labels={name: name}
    )
    container = msgspec.structs.replace(old.containers[0], name=name)
    spec = msgspec.structs.replace(old.spec, node_name=name, containers=(container,))
    statuses = tuple(msgspec.structs.replace(one, name=name) for one in old.status.container_statuses or ())
    status = msgspec.structs.replace(old.status, container_statuses=statuses)
    pod = msgspec.structs.replace(old, metadata=metadata, spec=spec, status=status)
    usage = found.usage[old.namespace, old.name]
    node = found.nodes[old.node_name]
    named = msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, name=name))
    return replace(
        found,
        pods=tuple(pod if one is old else one for one in found.pods),
        nodes={**found.nodes, name: named},
        usage={**found.usage, (name, name): msgspec.structs.replace(usage, names=(name,))},
    )


def painted(pilot: Run) -> str:
    """What is on the screen; no character of it is one that a terminal acts on."""
    text = pilot.text
    assert text.replace("\n", "").isprintable()
    return text


async def put_cursor(pilot: Run) -> None:
    """On the row that has the name."""
    screen = pilot.main
    keys = [screen.definition.key(row) for row in screen.table.rows]
    key = next(key for key in keys if key == NASTY or (isinstance(key, tuple) and NASTY in key))
    screen.table.move_to(key)
    await pilot.pause()


async def test_every_list_panel_and_title_shows_it_escaped() -> None:
    async with running(ScriptedSource(called(NASTY)), size=(140, 40)) as pilot:
        for key in "12345":
            await pilot.keys(key)
            await pilot.listed()
            await put_cursor(pilot)
            assert painted(pilot).count(SHOWN) >= 2, "in the list and below it"
            await pilot.keys("c")
            assert SHOWN in pilot.app.clipboard
            assert pilot.app.clipboard.replace("\n", "").isprintable()
            if key == "3":
                await pilot.keys("enter")
                title = f"{SHOWN}/{SHOWN}  1 pod  in "
                assert title in painted(pilot)
                await pilot.keys("escape")
        await pilot.keys("4", "i")
        await pilot.listed()
        assert f"{SHOWN} / {SHOWN} / {SHOWN}  1 container  in " in painted(pilot)
        assert f"container {SHOWN} of {SHOWN}/{SHOWN}" in " ".join(painted(pilot).split())


async def test_the_finder_and_the_columns_dialog_show_it_escaped() -> None:
    async with running(ScriptedSource(called(NASTY)), "f", size=(140, 40)) as pilot:
        pilot.app.screen.query_one(Input).value = "[b"
        await pilot.pause()
        assert painted(pilot).count(SHOWN) >= 2
        found = pilot.app.screen.query_one(LineTable).row
        assert found is not None
        assert found.name == NASTY
        pilot.app.screen.query_one(Input).value = "\x1b[0m[x]"
        await pilot.pause()
        assert "No pod matches \\x1b[0m[x]." in pilot.text
        await pilot.keys("escape", "C")
        painted(pilot)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", list(ListKind))
def test_every_file_of_every_list_can_be_read_again(kind: ListKind, name: str, tmp_path: Path) -> None:
    view_model = build_view_model(called(name), Scope(), DEMO_TIME)
    listing = list_definitions(Trends(), clusters=lambda: one_cluster(name, view_model.snapshot))[kind]
    answer = listing.build(view_model, View(kind), None)
    columns = list(listing.columns.values())

    def text(extension: str) -> str:
        path = tmp_path / f"a.{extension}"
        found = export_rows(
            path, kind=kind, rows=answer.rows, columns=columns, notes=answer.notes, now=DEMO_TIME
        )
        assert found.encode()
        assert found.replace("\n", "").isprintable(), "nothing that a terminal acts on"
        return found

    document = json.loads(text("json"))
    check_document(document)
    assert (document["kind"], document["notes"]) == (KINDS[kind], list(answer.notes))
    assert len(document["items"]) == len(answer.rows)
    assert yaml.safe_load(text("yaml"))["items"] == document["items"]
    header, *lines = csv.reader(io.StringIO(text("csv")))
    assert header == [column.field for column in columns]
    assert [len(line) for line in lines] == [len(columns)] * len(answer.rows)
    assert len(text("txt").splitlines()) == len(answer.rows) + 1
