from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from textual.widgets import Input, Label, Static

from kubectl_qos.cluster.files import DemoSource
from kubectl_qos.edit.compare import DeathsAt, recreate_all
from kubectl_qos.edit.edits import POD_LEVEL, Edit, Side, build_manifest, build_patch, parse_quantity
from kubectl_qos.edit.preview import Preview, preview
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.kinds import Workload
from kubectl_qos.k8s.objects import PodStatus
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.present.effects import apply_sections, preview_sections
from kubectl_qos.present.output import Section, ValueChange, to_yaml
from kubectl_qos.present.preview import replicas_section
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.simulation.node_state import state_of_node
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.edit_target import deaths_layout, ladder_layout, values_layout
from kubectl_qos.tui.screens.apply import PatchScreen
from kubectl_qos.tui.screens.dialogs import LeaveDialog, SaveAs
from kubectl_qos.tui.screens.edit import EditScreen
from kubectl_qos.tui.screens.main import MainScreen
from kubectl_qos.tui.widgets.line_table import LineTable
from kubectl_qos.tui.widgets.resource_form import QuantityField
from kubectl_qos.tui.widgets.text_view import TextScroll, TextView, effects_layout
from tests.tui.sources import (
    API,
    Run,
    ScriptedSource,
    demo,
    given,
    pod_named,
    renamed,
    running,
    with_usage,
)


@pytest.fixture
async def pilot() -> AsyncIterator[Run]:
    async with running() as found:
        yield found


async def edit(pilot: Run, name: str) -> EditScreen:
    """The fields of a pod as they are stored, from whatever is open: perhaps these."""
    pod = pod_named(demo(), name)
    while not isinstance(screen := pilot.app.screen, MainScreen):
        if isinstance(screen, EditScreen) and screen._pod == pod:
            screen.form.reset()
            screen.form.fields[0].focus()
            await pilot.pause()
            return screen
        await pilot.keys("y" if isinstance(screen, LeaveDialog) else "escape")
    pilot.qos.edit(pod)
    await pilot.pause()
    return edit_of(pilot)


def edit_of(pilot: Run) -> EditScreen:
    screen = pilot.app.screen
    assert isinstance(screen, EditScreen)
    return screen


def field(screen: EditScreen, owner: str, side: Side, resource: str) -> QuantityField:
    wanted = (owner, side, resource)
    return next(one for one in screen.form.fields if (one.owner, one.side, one.resource) == wanted)


async def fill(pilot: Run, owner: str, side: Side, resource: str, text: str) -> None:
    """Replace the text of a field."""
    field(edit_of(pilot), owner, side, resource).focus()
    await pilot.pause()
    await pilot.paste(text)


def remarks(screen: EditScreen) -> str:
    return "\n".join(str(one.render()) for one in screen.query(".remarks").results(Static))


def effects(screen: EditScreen) -> str:
    views = screen.query("#preview TextView").results(TextView)
    return "\n".join(line.text for view in views for line in view.text_lines(200))


def expected(name: str, *edits: Edit) -> Preview:
    snapshot = demo()
    pod = pod_named(snapshot, name)
    neighbours = [one for one in snapshot.pods if one.node_name == pod.node_name and one is not pod]
    return preview(pod, edits, snapshot.setup(pod.node_name), neighbours, snapshot.usage)


def quantity_edit(owner: str, side: Side, resource: str, text: str) -> Edit:
    return Edit(owner, side, resource, parse_quantity(text))


async def test_the_footer_of_a_static_pod_has_no_key_that_applies(pilot: Run) -> None:
    def shown() -> set[str]:
        active = pilot.app.screen.active_bindings.values()
        return {one.binding.action for one in active if one.binding.show}

    await edit(pilot, API)
    assert "apply" in shown()
    await edit(pilot, "etcd-control-1")
    await pilot.seen("Where to change it")
    assert "apply" not in shown()
    await fill(pilot, "c", Side.REQUESTS, "memory", "1Gi")
    await pilot.keys("ctrl+s")
    await pilot.seen("> impossible")
    assert {"patch", "back"} <= shown()
    assert not {"apply", "dry_run", "trial"} & shown()


async def test_fields(pilot: Run) -> None:
    screen = await edit(pilot, API)
    texts = [(one.owner, one.name_in_spec, one.value) for one in screen.form.fields]
    assert texts == [
        ("c", "requests.memory", "512Mi"),
        ("c", "limits.memory", "2Gi"),
        ("c", "requests.cpu", "250m"),
        ("c", "limits.cpu", "2"),
    ]
    assert not screen.unsaved
    # Arrows go from field to field and the mouse too.
    fields = screen.form.fields
    assert screen.focused is fields[0]
    await pilot.keys("down", "down")
    assert screen.focused is fields[2], "there is no line below the limits"
    await pilot.keys("tab")
    assert screen.focused is fields[3]
    await pilot.keys("up")
    assert screen.focused is fields[1]
    await pilot.keys("up", "shift+tab")
    assert screen.focused is fields[0]
    await pilot.click(fields[1])
    assert screen.focused is fields[1]
    # Letters in a field are text not commands.
    await fill(pilot, "c", Side.REQUESTS, "cpu", "")
    await pilot.type("qrtpgcs?")
    assert pilot.app.screen is screen
    assert field(screen, "c", Side.REQUESTS, "cpu").value == "qrtpgcs?"
    # Nothing changed has nothing to apply.
    screen = await edit(pilot, API)
    await pilot.keys("ctrl+s")
    assert pilot.app.screen is screen
    await fill(pilot, "c", Side.REQUESTS, "memory", "512Mi ")
    await pilot.keys("ctrl+s")
    assert pilot.app.screen is screen
    await pilot.keys("escape")
    assert isinstance(pilot.app.screen, MainScreen), "the same text is no change"
    # Init sidecar and pod level have fields.
    for name, owners, kind in (
        ("search-0", ["s", "c"], "sidecar s"),
        ("mailer-", ["i", "c"], "init i"),
        ("trainer-gpu-0", [POD_LEVEL, "a", "b"], "pod spec.resources"),
        ("cart-6c7fd9b5d-9qj4t", ["a", "b", "d"], "app a"),
    ):
        screen = await edit(pilot, name)
        assert list(dict.fromkeys(one.owner for one in screen.form.fields)) == owners
        await pilot.seen(kind)
        await pilot.keys("escape")
    # A pod without a node can be edited.
    screen = await edit(pilot, "huge-0")
    await fill(pilot, "c", Side.REQUESTS, "memory", "1Gi")
    assert "oom_score_adj   <unknown>" in effects(screen)
    assert "kill rank       <unknown>" in effects(screen)
    assert "not ranked: not on a node yet" in effects(screen)


def test_a_pod_on_a_node_that_has_not_started_says_why_it_has_no_rank() -> None:
    snapshot = demo()
    pod = pod_named(snapshot, API)
    waiting = msgspec.structs.replace(pod, status=PodStatus(phase="Pending"))
    setup, neighbours = snapshot.setup("worker-2"), snapshot.by_node()["worker-2"]
    wanted = preview(waiting, (), setup, neighbours, snapshot.usage).effects
    assert [line.text for line in ladder_layout(wanted, 5)(80)] == ["not ranked: no running process"]


def test_unknown_usage_is_no_axis_without_deaths() -> None:
    snapshot = replace(demo(), usage={}, node_usage={})
    pod = pod_named(snapshot, API)
    wanted = preview(pod, (), snapshot.setup("worker-2"), snapshot.by_node()["worker-2"], {}).effects
    state = state_of_node(snapshot, "worker-2")
    lines = deaths_layout([DeathsAt(None, state, (), ())], wanted)(80)
    assert [line.text.strip() for line in lines] == ["unknown: memory usage is unknown"]


async def test_the_preview_is_that_of_the_command_at_every_key(pilot: Run) -> None:
    screen = await edit(pilot, API)
    await fill(pilot, "c", Side.REQUESTS, "memory", "")
    for text in ("1", "1.", "1.5", "1.5G", "1.5Gi"):
        await pilot.type(text[-1])
        wanted = expected(API, quantity_edit("c", Side.REQUESTS, "memory", text))
        assert screen.preview_now() == wanted
        for layout in (values_layout(wanted.effects), effects_layout(apply_sections(wanted))):
            assert "\n".join(line.text for line in layout(200)) in effects(screen)
    # The right fields count while another is wrong.
    await fill(pilot, "c", Side.REQUESTS, "memory", "1Gi")
    await fill(pilot, "c", Side.LIMITS, "cpu", "?")
    assert screen.preview_now() == expected(API, quantity_edit("c", Side.REQUESTS, "memory", "1Gi"))


async def test_another_class_is_previewed(pilot: Run) -> None:
    screen = await edit(pilot, API)
    await pilot.keys("ctrl+g")
    assert screen.preview_now().after.qos_class is QosClass.GUARANTEED
    assert field(screen, "c", Side.REQUESTS, "memory").value == "2Gi"
    await pilot.keys("ctrl+r")
    assert not screen.unsaved
    assert "*" not in effects(screen)
    # The preview scrolls while a field is typed in.
    await pilot.resize_terminal(80, 24)
    # The class of a width may come after its first lines.
    screen.remove_class("-narrow")
    screen.on_resize()
    assert len(screen.query_one("#ladder", TextView).text_lines(80)) == 5
    screen.add_class("-narrow")
    await pilot.keys("ctrl+g")
    scroll = screen.query_one("#preview", TextScroll)
    await pilot.keys("ctrl+f")
    assert scroll.scroll_offset.y > 0
    assert field(screen, "c", Side.REQUESTS, "cpu").value == "2"
    await pilot.keys("pageup")
    assert scroll.scroll_offset.y == 0


async def test_guaranteed_and_ranks(pilot: Run) -> None:
    screen = await edit(pilot, "notebook-0")
    await pilot.keys("ctrl+g")
    assert field(screen, "c", Side.REQUESTS, "memory").value == "8Gi"
    assert field(screen, "c", Side.LIMITS, "cpu").value == ""
    await pilot.until(lambda: bool(pilot.notifications))
    assert pilot.notifications[-1] == "still to do: c: set limits.cpu to a number of your choice"
    # Guaranteed at the pod level.
    screen = await edit(pilot, "trainer-gpu-0")
    await pilot.keys("ctrl+g")
    assert field(screen, POD_LEVEL, Side.REQUESTS, "memory").value == "256Mi"
    assert screen.preview_now().after.qos_class is QosClass.GUARANTEED
    # A rank or a later one.
    screen = await edit(pilot, API)
    await pilot.keys("ctrl+n")
    assert "Kill rank on its node once full, or later (1 dies first):" in pilot.words
    for wrong in ("", "0", "18", "x"):
        pilot.app.screen.query_one(Input).value = wrong
        await pilot.keys("enter")
        assert "! a number from 1 to 17 is needed" in pilot.words
    pilot.app.screen.query_one(Input).value = "5"
    await pilot.keys("enter")
    rank = screen.preview_now().effects.rank_after
    assert rank is not None
    assert rank >= 5
    await pilot.keys("ctrl+n", "1", "enter")
    assert pilot.notifications[-1] == "its kill rank is 1 or later with these values"
    # Goals wait for fields that are right.
    screen = await edit(pilot, API)
    await fill(pilot, "c", Side.LIMITS, "memory", "x")
    for key in ("ctrl+o", "ctrl+n", "ctrl+s"):
        await pilot.keys(key)
        assert pilot.app.screen is screen
        assert pilot.notifications[-1].startswith("limits.memory: ")


async def test_what_is_unsaved_is_confirmed_before_it_is_left(pilot: Run) -> None:
    screen = await edit(pilot, API)
    for text, reason in (
        ("1x", "this is not a quantity: write a quantity such as 512Mi or 1.5Gi"),
        ("-1", "must be greater than or equal to 0: write a quantity such as"),
        ("1 Gi", "this is not a quantity: write a quantity such as"),
    ):
        await fill(pilot, "c", Side.LIMITS, "memory", text)
        assert f"! limits.memory: {reason}" in remarks(screen)
        assert "! a field is wrong: the old value counts" in effects(screen)
        field(screen, "c", Side.REQUESTS, "cpu").focus()
        await pilot.keys("ctrl+s")
        assert edit_of(pilot) is screen
        assert screen.focused is field(screen, "c", Side.LIMITS, "memory")
    await pilot.keys("ctrl+g")
    assert field(screen, "c", Side.REQUESTS, "memory").value == "512Mi", "nothing is filled in meanwhile"
    assert field(screen, "c", Side.LIMITS, "memory").value == text, "nothing typed is lost"
    assert screen.focused is field(screen, "c", Side.LIMITS, "memory")
    assert screen.unsaved
    await fill(pilot, "c", Side.LIMITS, "memory", "3Gi")
    assert "wrong" not in effects(screen)
    await pilot.keys("ctrl+s", "m")
    assert isinstance(pilot.app.screen, PatchScreen)
    # Leaving with something unsaved is confirmed.
    screen = await edit(pilot, API)
    await fill(pilot, "c", Side.REQUESTS, "memory", "1Gi")
    for key in ("n", "escape", "enter"):
        await pilot.keys("escape")
        assert isinstance(pilot.app.screen, LeaveDialog)
        await pilot.keys(key)
        assert edit_of(pilot) is screen
        assert field(screen, "c", Side.REQUESTS, "memory").value == "1Gi"
    await pilot.keys("escape", "y")
    assert isinstance(pilot.app.screen, MainScreen)
    # Quitting with something unsaved is confirmed and insisting helps.
    await edit(pilot, API)
    await fill(pilot, "c", Side.REQUESTS, "memory", "1Gi")
    await pilot.keys("ctrl+c")
    assert isinstance(pilot.app.screen, LeaveDialog)
    assert not pilot.app._exit
    await pilot.keys("n")
    edit_of(pilot)
    await pilot.keys("ctrl+s", "m", "ctrl+c")
    assert isinstance(pilot.app.screen, LeaveDialog), "a screen below counts too"
    await pilot.keys("ctrl+c")
    assert pilot.app._exit


def shown(pilot: Run) -> str:
    screen = pilot.app.screen
    assert isinstance(screen, PatchScreen)
    document = screen.query_one("#text", TextView)
    return "\n".join(line.text for line in document.text_lines(200)) + "\n"


async def test_the_patch_and_the_manifest(pilot: Run) -> None:
    await edit(pilot, API)
    await fill(pilot, "c", Side.REQUESTS, "memory", "1Gi")
    await pilot.keys("ctrl+s", "m")
    pod = pod_named(demo(), API)
    edits = (quantity_edit("c", Side.REQUESTS, "memory", "1Gi"),)
    assert shown(pilot) == to_yaml(build_patch(pod, edits))
    assert f"kubectl patch pod {API} -n shop --subresource resize --patch-file FILE" in pilot.words
    await pilot.keys("m")
    await pilot.until(lambda: "kind: Pod" in shown(pilot))
    assert shown(pilot) == to_yaml(build_manifest(DemoSource().raw(pod), pod, edits))
    await pilot.keys("tab")
    assert shown(pilot) == to_yaml(build_patch(pod, edits))
    await pilot.keys("escape", "escape")
    assert edit_of(pilot).unsaved, "looking at a patch does not save it"
    # An emptied field removes the value.
    screen = await edit(pilot, API)
    await fill(pilot, "c", Side.LIMITS, "memory", "")
    assert screen.preview_now().edits == (Edit("c", Side.LIMITS, "memory", None),)
    await pilot.keys("ctrl+s", "m")
    patch = yaml.safe_load(shown(pilot))
    assert patch["spec"]["containers"][0]["resources"]["limits"] == {"memory": None}
    # A patch that changes the class comes with a warning.
    await edit(pilot, API)
    await pilot.keys("ctrl+g", "ctrl+s", "m")
    assert "the server refuses this patch: save the manifest" in pilot.words


async def save_as(pilot: Run, path: Path) -> None:
    await pilot.keys("s")
    assert isinstance(pilot.app.screen, SaveAs)
    pilot.app.screen.query_one(Input).value = str(path)
    await pilot.keys("enter")


async def test_an_existing_file_is_overwritten_only_when_confirmed(pilot: Run, tmp_path: Path) -> None:
    await edit(pilot, API)
    await fill(pilot, "c", Side.REQUESTS, "memory", "1Gi")
    await pilot.keys("ctrl+s", "m")
    await save_as(pilot, tmp_path / "no" / "patch.yaml")
    assert isinstance(pilot.app.screen, SaveAs)
    finding = pilot.app.screen.query_one("#finding", Label)
    assert "No such file or directory" in str(finding.render())
    await pilot.keys("escape")
    path = tmp_path / "patch.yaml"
    path.write_text("precious")
    await save_as(pilot, path)
    finding = pilot.app.screen.query_one("#finding", Label)
    assert str(finding.render()) == f"! {path} exists: enter again overwrites it, esc leaves"
    await pilot.keys("escape", "escape", "escape")
    assert path.read_text() == "precious"
    assert edit_of(pilot).unsaved
    await pilot.keys("ctrl+s", "m")
    await save_as(pilot, path)
    await pilot.keys("x", "backspace", "enter")
    assert path.read_text() == "precious", "another name in between asks again"
    await pilot.keys("enter")
    assert "1Gi" in path.read_text()


async def test_what_is_saved(pilot: Run, tmp_path: Path) -> None:
    screen = await edit(pilot, API)
    await fill(pilot, "c", Side.REQUESTS, "memory", "1Gi")
    await pilot.keys("ctrl+s", "m", "c")
    assert yaml.safe_load(pilot.app.clipboard)["spec"]
    await pilot.keys("escape", "escape")
    assert not screen.unsaved
    await fill(pilot, "c", Side.REQUESTS, "memory", "2Gi")
    assert screen.unsaved
    # A manifest is saved whole.
    await edit(pilot, API)
    await fill(pilot, "c", Side.REQUESTS, "memory", "1Gi")
    await pilot.keys("ctrl+s", "m", "m")
    await pilot.until(lambda: "kind: Pod" in shown(pilot))
    await save_as(pilot, tmp_path / "pod.yaml")
    manifest = yaml.safe_load((tmp_path / "pod.yaml").read_text())
    container = manifest["spec"]["containers"][0]
    assert container["image"]
    assert container["resources"]["requests"]["memory"] == "1Gi"
    assert "status" not in manifest
    # A patch is saved and leaving needs no confirmation.
    screen = await edit(pilot, API)
    await fill(pilot, "c", Side.REQUESTS, "memory", "1Gi")
    await pilot.keys("ctrl+s", "m")
    path = tmp_path / "patch.yaml"
    await save_as(pilot, path)
    patch = yaml.safe_load(path.read_text())
    resources = {"requests": {"memory": "1Gi"}}
    assert patch == {"spec": {"containers": [{"name": "c", "resources": resources}]}}
    assert pilot.notifications[-1] == f"saved the patch to {path}"
    await pilot.keys("escape", "escape")
    assert not screen.unsaved
    assert "not saved" not in pilot.words
    await pilot.keys("escape")
    assert isinstance(pilot.app.screen, MainScreen)


async def test_pods_of_every_kind_can_be_opened_and_made_guaranteed() -> None:
    async with running(size=(80, 24)) as pilot:
        for pod in demo().pods[::16]:
            pilot.qos.edit(pod)
            await pilot.pause()
            screen = edit_of(pilot)
            await pilot.keys("ctrl+g", "pagedown", "pageup")
            assert preview_sections(screen.preview_now())[0].title == "Class"
            screen.dismiss()
            await pilot.pause()


async def test_the_edit_screen_of_a_named_pod_is_opened_at_once() -> None:
    def find(snapshot: Any) -> Any:
        return pod_named(snapshot, "db-0")

    async with running(size=(80, 24), find=find) as pilot:
        assert "edit pod data/db-0 on worker-2" in pilot.words
        await pilot.keys("escape")
        assert isinstance(pilot.app.screen, MainScreen)
        await pilot.refresh()
        assert isinstance(pilot.app.screen, MainScreen), "a refresh does not open it again"


async def test_a_named_pod_that_does_not_exist_is_the_result() -> None:
    def find(_: Any) -> Any:
        raise InputError('pods "x" not found in demo')

    app = QosApp(DemoSource(), Scope(), find=find)
    async with running(app, size=(80, 24), ready=False) as pilot:
        await pilot.until(lambda: app._exit)
    assert str(app.return_value) == 'pods "x" not found in demo'


async def test_a_manifest_that_cannot_be_read_again_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    source = ScriptedSource(demo())

    def gone(_: Any) -> Any:
        raise InputError("standard input cannot be read twice")

    monkeypatch.setattr(source, "raw", gone)
    async with running(source) as pilot:
        await edit(pilot, API)
        await fill(pilot, "c", Side.REQUESTS, "memory", "1Gi")
        await pilot.keys("ctrl+s", "m")
        await pilot.until(lambda: bool(pilot.notifications))
        said = pilot.notifications
        assert said == ["there is no manifest: standard input cannot be read twice"]
        await pilot.keys("m", "s")
        assert isinstance(pilot.app.screen, PatchScreen), "there is nothing to save"
        await pilot.keys("m")
        assert "memory: 1Gi" in shown(pilot)


async def test_goals(pilot: Run) -> None:
    screen = await edit(pilot, API)
    await pilot.keys("ctrl+o")
    assert "Outlive which pod?" in pilot.words
    assert API not in [row.name for row in pilot.app.screen.query_one(LineTable).rows]
    await pilot.type("notebook")
    await pilot.keys("enter")
    assert edit_of(pilot) is screen
    after = screen.preview_now()
    assert after.edits
    assert ("ml", "notebook-0") in after.effects.passing[0]
    unit = Quantity.parse("1Mi")
    raised = field(screen, "c", Side.REQUESTS, "memory")
    less = Quantity.parse(raised.value).value() - unit.value()
    found = expected(API, quantity_edit("c", Side.REQUESTS, "memory", str(less)))
    assert ("ml", "notebook-0") not in found.effects.passing[0], "one step less does not do"
    # Nobody chosen changes nothing.
    screen = await edit(pilot, API)
    await pilot.keys("ctrl+o", "escape", "ctrl+n", "escape")
    assert edit_of(pilot) is screen
    assert not screen.unsaved
    # A pod that cannot be outlived says why.
    screen = await edit(pilot, API)
    await pilot.keys("ctrl+o")
    await pilot.type("kube-proxy")
    await pilot.keys("enter")
    assert "Not by memory requests" in pilot.words
    assert "ctrl-g makes it Guaranteed" in pilot.words
    await pilot.keys("escape")
    assert edit_of(pilot) is screen
    assert not screen.unsaved
    # One that is outlived already says so.
    await edit(pilot, "db-0")
    await pilot.keys("ctrl+o")
    await pilot.keys("enter")
    assert pilot.notifications[-1].endswith("with these values")
    # Without a node there is nobody to outlive.
    name = next(pod.name for pod in demo().pods if not pod.node_name)
    screen = await edit(pilot, name)
    await pilot.keys("ctrl+o", "ctrl+n")
    assert pilot.app.screen is screen
    assert pilot.notifications[-2:] == [
        "there is no other pod on its node to outlive",
        "there are no ranks on its node to choose among",
    ]


async def test_a_long_name_leaves_the_edit_screen_its_subject() -> None:
    snapshot = renamed(demo(), "crunch", "x" * 253)
    async with running(ScriptedSource(snapshot), size=(80, 24)) as pilot:
        pilot.qos.edit(pod_named(snapshot, "x" * 253))
        await pilot.until(lambda: isinstance(pilot.app.screen, EditScreen))
        assert "x" * 60 in pilot.text


async def test_the_ladder_moves_and_the_files_unfold(pilot: Run) -> None:
    screen = await edit(pilot, API)
    await fill(pilot, "c", Side.REQUESTS, "memory", "1Gi")
    ladder = [line.text.split() for line in screen.query_one("#ladder", TextView).text_lines(80)]
    mine = [words for words in ladder if words[0] == "▸"]
    assert [words[1] for words in mine] == ["1", "3"]
    assert mine[0][-1] == "before"
    assert mine[1][-3:] == ["when", "c", "restarts"]
    assert ladder.index(mine[1]) == 3, "behind the two that overtake it"
    assert not screen.query_one("#files").display
    await fill(pilot, "c", Side.LIMITS, "memory", "3Gi")
    assert "2 files changed" in effects(screen)
    assert "memory.max" not in effects(screen)
    await pilot.keys("ctrl+t")
    assert "memory.max  2147483648 → 3221225472" in effects(screen)


async def test_present_and_past_usage_is_next_to_the_fields() -> None:
    source = ScriptedSource(demo(), with_usage(demo(), API, 2040 << 20), with_usage(demo(), API, 1 << 30))
    async with running(source) as pilot:
        screen = await edit(pilot, API)
        assert "1.9Gi used, 94% of limit" in pilot.words
        await pilot.keys("escape")
        for _ in range(2):
            await pilot.refresh()
        screen = await edit(pilot, API)
        assert "1Gi used, peak 2Gi, 50% of limit" in pilot.words
        await fill(pilot, "c", Side.LIMITS, "memory", "4Gi")
        assert "25% of limit" in pilot.words
        await fill(pilot, "c", Side.LIMITS, "memory", "+2Gi")
        assert "25% of limit" in pilot.words, "2Gi more than its 2Gi"
        assert "limits.memory 4Gi" not in pilot.words
        await fill(pilot, "c", Side.LIMITS, "memory", "4294967296")
        assert "app c limits.memory 4Gi" in pilot.words, "plain bytes have units there too"
        await fill(pilot, "c", Side.LIMITS, "memory", "4Gi")
        assert [str(one.quantity) for one in screen.form.edits] == ["4Gi"]
        await fill(pilot, "c", Side.LIMITS, "memory", "")
        assert "200% of request" in pilot.words
        await fill(pilot, "c", Side.REQUESTS, "memory", "")
        assert "nothing requested, no limit" in pilot.words
        assert screen.form.wrong == []


async def test_e_on_a_workload_edits_all_its_pods() -> None:
    source = ScriptedSource(demo())
    pod = pod_named(demo(), API)
    metadata = msgspec.structs.replace(pod.metadata, name="api", owner_references=None)
    spec = msgspec.structs.replace(pod.spec, node_name="")
    template = msgspec.structs.replace(pod, kind="Deployment", metadata=metadata, spec=spec)
    found: list[Any] = [template, InputError("it is gone")]
    source.find = lambda *_: given(found.pop(0), source.hold)  # type: ignore[method-assign]
    async with running(source) as pilot:
        await pilot.press_each("3")
        row = pilot.main.table.row
        assert row is not None
        assert row.key.name == "api"
        await pilot.keys("e")
        await pilot.seen("edit deployment shop/api")
        await fill(pilot, "c", Side.REQUESTS, "memory", "1Gi")
        await pilot.seen("Pods: 2 pods on 1 node, once all are recreated")
        screen = edit_of(pilot)
        section = replicas_section(recreate_all(template, screen.preview_now().edits, demo()))
        changes = [f"{one.label} {one.before} → {one.after}" for one in section.changes if one.changed]
        assert "worker-2: kill ranks of 17 1, 5 → 3, 12" in changes
        shown = " ".join(effects(screen).split())
        assert all(change in shown for change in changes), "as set prints them"
        assert "when recreated" in pilot.words
        await pilot.keys("escape", "y", "e")
        await pilot.seen(f"edit pod shop/{API}")
        assert pilot.notifications[-1].startswith("deployment/api cannot be read: it is gone; ")
        before = len(pilot.notifications)
        late = Workload("Deployment", "shop", "late"), pod, (), InputError("it is gone")
        assert isinstance(pilot.app, QosApp)
        pilot.app._workload_found(*late)
        assert len(pilot.notifications) == before, "it came after the list was left"


@pytest.mark.parametrize("after", ["+68Mi own limit 88%", "+3.4Gi, after 8 other deaths"])
def test_a_value_that_is_wider_than_the_preview_is_wrapped_also_where_it_stays(after: str) -> None:
    row = ValueChange("worker-2: next death of these", "+68Mi own limit 88%", after, "when recreated")
    lines = [line.text for line in effects_layout((Section("Pods", changes=(row,)),))(35)[1:]]
    assert max(map(len, lines)) <= 35
    words = " ".join(" ".join(lines).split())
    assert row.before in words
    assert row.after in words


async def test_a_tall_screen_draws_memory_below_the_limit_that_is_typed(pilot: Run) -> None:
    for more in range(5):
        pilot.qos.trends.add(with_usage(demo(), API, (1000 + 100 * more) << 20).usage)
    screen = await edit(pilot, API)
    await pilot.resize_terminal(200, 50)
    await pilot.settled()
    assert "2Gi ▆▆┄" in pilot.text
    field(screen, "c", Side.LIMITS, "memory").value = "4Gi"
    await pilot.settled()
    assert "4Gi ┄┄┄" in pilot.text
    assert "the last 6 samples, 1000Mi to 1.9Gi" in pilot.words
    await pilot.resize_terminal(200, 40)
    await pilot.settled()
    assert "samples" not in pilot.words
