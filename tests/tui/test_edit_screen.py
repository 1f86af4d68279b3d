from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from textual.pilot import Pilot
from textual.widgets import Input, Label, Static

from kubectl_qos.cluster.files import DemoSource
from kubectl_qos.edit.edits import POD_LEVEL, Edit, Side, parse_quantity
from kubectl_qos.edit.patch import build_manifest, build_patch
from kubectl_qos.edit.preview import Preview, preview
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.objects import ObjectMeta, resource_list
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.quota import ResourceQuota, ResourceQuotaStatus
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.present.effects import preview_sections
from kubectl_qos.present.output import to_yaml
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.tui.app import QosApp
from kubectl_qos.tui.screens.dialogs import ConfirmDialog, SaveAs
from kubectl_qos.tui.screens.edit import EditScreen
from kubectl_qos.tui.screens.main import MainScreen
from kubectl_qos.tui.screens.patch import PatchScreen
from kubectl_qos.tui.widgets.line_table import LineTable
from kubectl_qos.tui.widgets.resource_form import QuantityField
from kubectl_qos.tui.widgets.text_view import TextScroll, TextView, effects_layout
from tests.tui.sources import ScriptedSource, app_of, demo, pod_named, press, settled, type_text, until, words
from tests.tui.writers import around

API = "api-7d9c5b6f8-x2mzq"
Open = Callable[[str], Any]


@pytest.fixture
async def pilot() -> AsyncIterator[Pilot[Any]]:
    async with QosApp(DemoSource(), Scope()).run_test(size=(120, 40)) as found:
        await settled(found)
        yield found


async def edit(pilot: Pilot[Any], name: str) -> EditScreen:
    app_of(pilot).edit(pod_named(demo(), name))
    await pilot.pause()
    return edit_of(pilot)


def edit_of(pilot: Pilot[Any]) -> EditScreen:
    screen = pilot.app.screen
    assert isinstance(screen, EditScreen)
    return screen


def field(screen: EditScreen, owner: str, side: Side, resource: str) -> QuantityField:
    wanted = (owner, side, resource)
    return next(one for one in screen.form.fields if (one.owner, one.side, one.resource) == wanted)


async def put(pilot: Pilot[Any], owner: str, side: Side, resource: str, text: str) -> None:
    """Type into a field what shall stand in it."""
    found = field(edit_of(pilot), owner, side, resource)
    found.focus()
    await pilot.pause()
    found.select_all()
    await press(pilot, "delete")
    await type_text(pilot, text)


def remarks(screen: EditScreen) -> str:
    return "\n".join(str(one.render()) for one in screen.query(".remarks").results(Static))


def effects(screen: EditScreen) -> str:
    return "\n".join(line.text for line in screen.query_one("#effects", TextView).text_lines(200))


def expected(name: str, *edits: Edit) -> Preview:
    snapshot = demo()
    pod = pod_named(snapshot, name)
    neighbours = [one for one in snapshot.pods if one.node_name == pod.node_name and one is not pod]
    return preview(pod, edits, snapshot.setup(pod.node_name), neighbours, snapshot.usage)


def quantity_edit(owner: str, side: Side, resource: str, text: str) -> Edit:
    return Edit(owner, side, resource, parse_quantity(text))


async def test_fields_show_what_is_stored(pilot: Pilot[Any]) -> None:
    screen = await edit(pilot, API)
    texts = [(one.owner, one.name_in_spec, one.value) for one in screen.form.fields]
    assert texts == [
        ("c", "requests.cpu", "250m"),
        ("c", "requests.memory", "512Mi"),
        ("c", "limits.cpu", "2"),
        ("c", "limits.memory", "2Gi"),
    ]
    assert not screen.unsaved


async def test_init_sidecar_and_pod_level_have_fields(pilot: Pilot[Any]) -> None:
    for name, owners, kind in (
        ("search-0", ["s", "c"], "sidecar s"),
        ("mailer-", ["i", "c"], "init i"),
        ("trainer-gpu-0", [POD_LEVEL, "a", "b"], "pod spec.resources"),
        ("cart-6c7fd9b5d-9qj4t", ["a", "b", "d"], "app a"),
    ):
        screen = await edit(pilot, name)
        assert list(dict.fromkeys(one.owner for one in screen.form.fields)) == owners
        assert kind in words(pilot)
        await press(pilot, "escape")


async def test_the_preview_is_that_of_the_edit_room_at_every_key(pilot: Pilot[Any]) -> None:
    screen = await edit(pilot, API)
    await put(pilot, "c", Side.REQUESTS, "memory", "")
    for text in ("1", "1.", "1.5", "1.5G", "1.5Gi"):
        await type_text(pilot, text[-1])
        wanted = expected(API, quantity_edit("c", Side.REQUESTS, "memory", text))
        assert screen.preview_now() == wanted
        layout = effects_layout(preview_sections(wanted))
        assert effects(screen).endswith("\n".join(line.text for line in layout(200)))


async def test_what_changes_bears_a_sign(pilot: Pilot[Any]) -> None:
    screen = await edit(pilot, API)
    assert "*" not in effects(screen)
    await put(pilot, "c", Side.REQUESTS, "memory", "1Gi")
    text = effects(screen)
    assert "  * c oom_score_adj   969 → 938  (-31)" in text
    assert "* Kill rank on worker-2: 1 → 3 of 17" in text
    assert "now killed before it: batch/crunch-x2k9f, ml/notebook-0" in text
    assert "a running container keeps its oom_score_adj until it restarts" in text
    assert "  Class: Burstable, stays" in text
    assert "* not saved" in words(pilot)
    assert "* requests.memory was 512Mi" in words(pilot)


async def test_another_class_moves_the_pod_in_the_cgroup_tree(pilot: Pilot[Any]) -> None:
    screen = await edit(pilot, API)
    await press(pilot, "ctrl+g")
    assert screen.preview_now().after.qos_class is QosClass.GUARANTEED
    text = effects(screen)
    assert "* Class: Burstable → Guaranteed" in text
    assert "* cgroup: moves in the tree" in text
    assert "* cpu.weight  10 → 79" in text
    assert "How to apply: the pod must be recreated" in text
    assert field(screen, "c", Side.REQUESTS, "memory").value == "2Gi"
    await press(pilot, "ctrl+r")
    assert not screen.unsaved
    assert "*" not in effects(screen)


async def test_guaranteed_does_what_is_known_and_says_what_is_not(pilot: Pilot[Any]) -> None:
    screen = await edit(pilot, "notebook-0")
    await press(pilot, "ctrl+g")
    assert field(screen, "c", Side.REQUESTS, "memory").value == "8Gi"
    assert field(screen, "c", Side.LIMITS, "cpu").value == ""
    await until(pilot, lambda: bool(pilot.app._notifications))
    said = [notification.message for notification in pilot.app._notifications]
    assert said == ["still to do: c: set limits.cpu to a number of your choice"]


async def test_guaranteed_at_the_pod_level(pilot: Pilot[Any]) -> None:
    screen = await edit(pilot, "trainer-gpu-0")
    await press(pilot, "ctrl+g")
    assert field(screen, POD_LEVEL, Side.REQUESTS, "memory").value == "256Mi"
    assert screen.preview_now().after.qos_class is QosClass.GUARANTEED


async def test_a_wrong_quantity_says_why_and_blocks_the_patch(pilot: Pilot[Any]) -> None:
    screen = await edit(pilot, API)
    for text, reason in (
        ("1x", "quantities must match the regular expression"),
        ("-1", "must be greater than or equal to 0"),
        ("1 Gi", "quantities must match the regular expression"),
    ):
        await put(pilot, "c", Side.LIMITS, "memory", text)
        assert f"! limits.memory: {reason}" in remarks(screen)
        assert "! a field is wrong and counted as it was" in effects(screen)
        field(screen, "c", Side.REQUESTS, "cpu").focus()
        await press(pilot, "ctrl+s")
        assert edit_of(pilot) is screen
        assert screen.focused is field(screen, "c", Side.LIMITS, "memory")
    await press(pilot, "ctrl+g")
    assert field(screen, "c", Side.REQUESTS, "memory").value == "512Mi", "nothing is filled in meanwhile"
    assert field(screen, "c", Side.LIMITS, "memory").value == text, "nothing typed is lost"
    assert screen.focused is field(screen, "c", Side.LIMITS, "memory")
    assert screen.unsaved
    await put(pilot, "c", Side.LIMITS, "memory", "3Gi")
    assert "wrong" not in effects(screen)
    await press(pilot, "ctrl+s", "m")
    assert isinstance(pilot.app.screen, PatchScreen)


async def test_the_right_fields_count_while_another_is_wrong(pilot: Pilot[Any]) -> None:
    screen = await edit(pilot, API)
    await put(pilot, "c", Side.REQUESTS, "memory", "1Gi")
    await put(pilot, "c", Side.LIMITS, "cpu", "?")
    assert screen.preview_now() == expected(API, quantity_edit("c", Side.REQUESTS, "memory", "1Gi"))


async def test_an_emptied_field_removes_the_value(pilot: Pilot[Any]) -> None:
    screen = await edit(pilot, API)
    await put(pilot, "c", Side.LIMITS, "memory", "")
    assert screen.preview_now().edits == (Edit("c", Side.LIMITS, "memory", None),)
    await press(pilot, "ctrl+s", "m")
    patch = yaml.safe_load(shown(pilot))
    assert patch["spec"]["containers"][0]["resources"]["limits"] == {"memory": None}


async def test_a_request_above_its_limit_is_what_a_server_refuses(pilot: Pilot[Any]) -> None:
    screen = await edit(pilot, API)
    await put(pilot, "c", Side.REQUESTS, "memory", "3Gi")
    text = effects(screen)
    assert "! Server: would refuse these values" in text
    assert "must be less than or equal to memory limit of 2Gi" in text
    assert "! Room on worker-2: the node has no room" in text
    assert "! How to apply: impossible while the server refuses it" in text


def shown(pilot: Pilot[Any]) -> str:
    screen = pilot.app.screen
    assert isinstance(screen, PatchScreen)
    document = screen.query_one("#text", TextView)
    return "\n".join(line.text for line in document.text_lines(200)) + "\n"


async def test_the_patch_and_the_manifest_are_those_of_the_edit_room(pilot: Pilot[Any]) -> None:
    await edit(pilot, API)
    await put(pilot, "c", Side.REQUESTS, "memory", "1Gi")
    await press(pilot, "ctrl+s", "m")
    pod = pod_named(demo(), API)
    edits = (quantity_edit("c", Side.REQUESTS, "memory", "1Gi"),)
    assert shown(pilot) == to_yaml(build_patch(pod, edits))
    assert f"kubectl patch pod {API} -n shop --subresource resize --patch-file FILE" in words(pilot)
    await press(pilot, "m")
    await until(pilot, lambda: "kind: Pod" in shown(pilot))
    assert shown(pilot) == to_yaml(build_manifest(DemoSource().raw(pod), pod, edits))
    await press(pilot, "tab")
    assert shown(pilot) == to_yaml(build_patch(pod, edits))
    await press(pilot, "escape", "escape")
    assert edit_of(pilot).unsaved, "looking at a patch does not save it"


async def test_a_patch_that_changes_the_class_comes_with_a_warning(pilot: Pilot[Any]) -> None:
    await edit(pilot, API)
    await press(pilot, "ctrl+g", "ctrl+s", "m")
    assert "a server refuses this patch: save the manifest" in words(pilot)


async def test_nothing_changed_has_nothing_to_land(pilot: Pilot[Any]) -> None:
    screen = await edit(pilot, API)
    await press(pilot, "ctrl+s")
    assert pilot.app.screen is screen
    await put(pilot, "c", Side.REQUESTS, "memory", "512Mi ")
    await press(pilot, "ctrl+s")
    assert pilot.app.screen is screen
    await press(pilot, "escape")
    assert isinstance(pilot.app.screen, MainScreen), "the same text is no change"


async def save_as(pilot: Pilot[Any], path: Path) -> None:
    await press(pilot, "s")
    assert isinstance(pilot.app.screen, SaveAs)
    pilot.app.screen.query_one(Input).value = str(path)
    await press(pilot, "enter")


async def test_a_patch_is_saved_and_leaving_asks_no_more(pilot: Pilot[Any], tmp_path: Path) -> None:
    screen = await edit(pilot, API)
    await put(pilot, "c", Side.REQUESTS, "memory", "1Gi")
    await press(pilot, "ctrl+s", "m")
    path = tmp_path / "patch.yaml"
    await save_as(pilot, path)
    patch = yaml.safe_load(path.read_text())
    resources = {"requests": {"memory": "1Gi"}}
    assert patch == {"spec": {"containers": [{"name": "c", "resources": resources}]}}
    assert [one.message for one in pilot.app._notifications] == [f"saved the patch to {path}"]
    await press(pilot, "escape", "escape")
    assert not screen.unsaved
    assert "not saved" not in words(pilot)
    await press(pilot, "escape")
    assert isinstance(pilot.app.screen, MainScreen)


async def test_a_manifest_is_saved_whole(pilot: Pilot[Any], tmp_path: Path) -> None:
    await edit(pilot, API)
    await put(pilot, "c", Side.REQUESTS, "memory", "1Gi")
    await press(pilot, "ctrl+s", "m", "m")
    await until(pilot, lambda: "kind: Pod" in shown(pilot))
    await save_as(pilot, tmp_path / "pod.yaml")
    manifest = yaml.safe_load((tmp_path / "pod.yaml").read_text())
    container = manifest["spec"]["containers"][0]
    assert container["image"]
    assert container["resources"]["requests"]["memory"] == "1Gi"
    assert "status" not in manifest


async def test_an_existing_file_is_overwritten_only_when_asked_twice(
    pilot: Pilot[Any], tmp_path: Path
) -> None:
    await edit(pilot, API)
    await put(pilot, "c", Side.REQUESTS, "memory", "1Gi")
    await press(pilot, "ctrl+s", "m")
    await save_as(pilot, tmp_path / "no" / "patch.yaml")
    assert isinstance(pilot.app.screen, SaveAs)
    verdict = pilot.app.screen.query_one("#verdict", Label)
    assert "No such file or directory" in str(verdict.render())
    await press(pilot, "escape")
    path = tmp_path / "patch.yaml"
    path.write_text("precious")
    await save_as(pilot, path)
    verdict = pilot.app.screen.query_one("#verdict", Label)
    assert str(verdict.render()) == f"! {path} exists: enter again overwrites it, esc leaves"
    await press(pilot, "escape", "escape", "escape")
    assert path.read_text() == "precious"
    assert edit_of(pilot).unsaved
    await press(pilot, "ctrl+s", "m")
    await save_as(pilot, path)
    await press(pilot, "x", "backspace", "enter")
    assert path.read_text() == "precious", "another name in between asks again"
    await press(pilot, "enter")
    assert "1Gi" in path.read_text()


async def test_a_copied_patch_counts_as_saved(pilot: Pilot[Any]) -> None:
    screen = await edit(pilot, API)
    await put(pilot, "c", Side.REQUESTS, "memory", "1Gi")
    await press(pilot, "ctrl+s", "m", "c")
    assert yaml.safe_load(pilot.app.clipboard)["spec"]
    await press(pilot, "escape", "escape")
    assert not screen.unsaved
    await put(pilot, "c", Side.REQUESTS, "memory", "2Gi")
    assert screen.unsaved


async def test_leaving_with_something_unsaved_asks(pilot: Pilot[Any]) -> None:
    screen = await edit(pilot, API)
    await put(pilot, "c", Side.REQUESTS, "memory", "1Gi")
    for key in ("n", "escape", "enter"):
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, ConfirmDialog)
        await press(pilot, key)
        assert edit_of(pilot) is screen
        assert field(screen, "c", Side.REQUESTS, "memory").value == "1Gi"
    await press(pilot, "escape", "y")
    assert isinstance(pilot.app.screen, MainScreen)


async def test_quitting_with_something_unsaved_asks_and_insisting_helps(pilot: Pilot[Any]) -> None:
    await edit(pilot, API)
    await put(pilot, "c", Side.REQUESTS, "memory", "1Gi")
    await press(pilot, "ctrl+c")
    assert isinstance(pilot.app.screen, ConfirmDialog)
    assert not pilot.app._exit
    await press(pilot, "n")
    edit_of(pilot)
    await press(pilot, "ctrl+s", "m", "q")
    assert isinstance(pilot.app.screen, ConfirmDialog), "a screen below counts too"
    await press(pilot, "ctrl+c")
    assert pilot.app._exit


async def test_arrows_go_from_field_to_field_and_the_mouse_too(pilot: Pilot[Any]) -> None:
    screen = await edit(pilot, API)
    fields = screen.form.fields
    assert screen.focused is fields[0]
    await press(pilot, "down", "down")
    assert screen.focused is fields[2], "there is no line below the limits"
    await press(pilot, "tab")
    assert screen.focused is fields[3]
    await press(pilot, "up")
    assert screen.focused is fields[1]
    await press(pilot, "up", "shift+tab")
    assert screen.focused is fields[0]
    await pilot.click(fields[1])
    assert screen.focused is fields[1]


async def test_the_preview_scrolls_while_a_field_is_typed_in(pilot: Pilot[Any]) -> None:
    screen = await edit(pilot, API)
    await pilot.resize_terminal(80, 24)
    await press(pilot, "ctrl+g")
    scroll = screen.query_one("#preview", TextScroll)
    await press(pilot, "ctrl+f")
    assert scroll.scroll_offset.y > 0
    assert field(screen, "c", Side.REQUESTS, "cpu").value == "2"
    await press(pilot, "pageup")
    assert scroll.scroll_offset.y == 0


async def test_letters_in_a_field_are_text_not_commands(pilot: Pilot[Any]) -> None:
    screen = await edit(pilot, API)
    await put(pilot, "c", Side.REQUESTS, "cpu", "qrtpgcs?")
    assert pilot.app.screen is screen
    assert field(screen, "c", Side.REQUESTS, "cpu").value == "qrtpgcs?"


async def test_a_pod_without_a_node_can_be_edited(pilot: Pilot[Any]) -> None:
    screen = await edit(pilot, "huge-0")
    await put(pilot, "c", Side.REQUESTS, "memory", "1Gi")
    assert "c oom_score_adj  <unknown>" in effects(screen)
    assert "Kill rank: <unknown>" in effects(screen)


async def test_pods_of_every_kind_can_be_opened_and_made_guaranteed() -> None:
    async with QosApp(DemoSource(), Scope()).run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        for pod in demo().pods[::8]:
            app_of(pilot).edit(pod)
            await pilot.pause()
            screen = edit_of(pilot)
            await press(pilot, "ctrl+g", "pagedown", "pageup")
            assert preview_sections(screen.preview_now())[0].title == "Class"
            screen.dismiss()
            await pilot.pause()


async def test_the_edit_screen_of_a_named_pod_is_opened_at_once() -> None:
    def find(snapshot: Any) -> Any:
        return pod_named(snapshot, "db-0")

    async with QosApp(DemoSource(), Scope(), find=find).run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert "edit pod data/db-0 on worker-2" in words(pilot)
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, MainScreen)
        await press(pilot, "r")
        await settled(pilot)
        assert isinstance(pilot.app.screen, MainScreen), "a refresh does not open it again"


async def test_a_named_pod_that_does_not_exist_is_the_result() -> None:
    def find(_: Any) -> Any:
        raise InputError('pods "x" not found in demo')

    app = QosApp(DemoSource(), Scope(), find=find)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app._exit)
    assert str(app.return_value) == 'pods "x" not found in demo'


async def test_a_manifest_that_cannot_be_read_again_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    source = ScriptedSource(demo())

    def gone(_: Any) -> Any:
        raise InputError("standard input cannot be read twice")

    monkeypatch.setattr(source, "raw", gone)
    async with QosApp(source, Scope()).run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await edit(pilot, API)
        await put(pilot, "c", Side.REQUESTS, "memory", "1Gi")
        await press(pilot, "ctrl+s", "m")
        await until(pilot, lambda: bool(pilot.app._notifications))
        said = [one.message for one in pilot.app._notifications]
        assert said == ["there is no manifest: standard input cannot be read twice"]
        await press(pilot, "m", "s")
        assert isinstance(pilot.app.screen, PatchScreen), "there is nothing to save"
        await press(pilot, "m")
        assert "memory: 1Gi" in shown(pilot)


def said(pilot: Pilot[Any]) -> list[str]:
    return [one.message for one in pilot.app._notifications]


async def test_outliving_a_pod_that_is_chosen_by_some_letters(pilot: Pilot[Any]) -> None:
    screen = await edit(pilot, API)
    await press(pilot, "ctrl+o")
    assert "Outlive which pod?" in words(pilot)
    assert API not in [row.name for row in pilot.app.screen.query_one(LineTable).rows]
    await type_text(pilot, "notebook")
    await press(pilot, "enter")
    assert edit_of(pilot) is screen
    after = screen.preview_now()
    assert after.edits
    assert ("ml", "notebook-0") in after.effects.overtaken_by
    unit = Quantity.parse("1Mi")
    raised = field(screen, "c", Side.REQUESTS, "memory")
    less = Quantity.parse(raised.value).value() - unit.value()
    found = expected(API, quantity_edit("c", Side.REQUESTS, "memory", str(less)))
    assert ("ml", "notebook-0") not in found.effects.overtaken_by, "one step less does not do"


async def test_nobody_chosen_changes_nothing(pilot: Pilot[Any]) -> None:
    screen = await edit(pilot, API)
    await press(pilot, "ctrl+o", "escape", "ctrl+n", "escape")
    assert edit_of(pilot) is screen
    assert not screen.unsaved


async def test_a_pod_that_cannot_be_outlived_says_why(pilot: Pilot[Any]) -> None:
    screen = await edit(pilot, API)
    await press(pilot, "ctrl+o")
    await type_text(pilot, "kube-proxy")
    await press(pilot, "enter")
    assert "Not by memory requests" in words(pilot)
    assert "ctrl-g makes it Guaranteed" in words(pilot)
    await press(pilot, "escape")
    assert edit_of(pilot) is screen
    assert not screen.unsaved


async def test_one_that_is_outlived_already_says_so(pilot: Pilot[Any]) -> None:
    await edit(pilot, "db-0")
    await press(pilot, "ctrl+o")
    await press(pilot, "enter")
    assert said(pilot)[-1].endswith("with these values")


async def test_a_rank_or_a_later_one(pilot: Pilot[Any]) -> None:
    screen = await edit(pilot, API)
    await press(pilot, "ctrl+n")
    assert "Kill rank on its node, or later (1 dies first):" in words(pilot)
    for wrong in ("", "0", "18", "x"):
        pilot.app.screen.query_one(Input).value = wrong
        await press(pilot, "enter")
        assert "! a number from 1 to 17 is needed" in words(pilot)
    pilot.app.screen.query_one(Input).value = "5"
    await press(pilot, "enter")
    rank = screen.preview_now().effects.rank_after
    assert rank is not None
    assert rank >= 5
    await press(pilot, "ctrl+n", "1", "enter")
    assert said(pilot)[-1] == "its kill rank is 1 or later with these values"


async def test_goals_wait_for_fields_that_are_right(pilot: Pilot[Any]) -> None:
    screen = await edit(pilot, API)
    await put(pilot, "c", Side.LIMITS, "memory", "x")
    for key in ("ctrl+o", "ctrl+n", "ctrl+s"):
        await press(pilot, key)
        assert pilot.app.screen is screen
        assert said(pilot)[-1].startswith("limits.memory: ")


async def test_without_a_node_there_is_nobody_to_outlive(pilot: Pilot[Any]) -> None:
    name = next(pod.name for pod in demo().pods if not pod.node_name)
    screen = await edit(pilot, name)
    await press(pilot, "ctrl+o", "ctrl+n")
    assert pilot.app.screen is screen
    assert said(pilot) == [
        "there is no other pod on its node to outlive",
        "there are no ranks on its node to choose among",
    ]


QUOTA = ResourceQuota(
    metadata=ObjectMeta(name="team"),
    status=ResourceQuotaStatus(
        hard=resource_list({"requests.memory": "1Gi"}), used=resource_list({"requests.memory": "1Gi"})
    ),
)


async def test_what_would_refuse_it_stands_above_the_effects() -> None:
    source = ScriptedSource(demo())
    source.around = lambda pod: replace(around(pod), quotas=(QUOTA,))
    async with QosApp(source, Scope()).run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        screen = await edit(pilot, API)
        await until(pilot, lambda: len(source.looked_around) == 1)
        await put(pilot, "c", Side.REQUESTS, "memory", "1Gi")
        await until(pilot, lambda: effects(screen).startswith("! Refused: ResourceQuota team"))
        assert "exceeded quota: team" in effects(screen)
        await press(pilot, "ctrl+s")
        assert "! Refused: ResourceQuota team: refuses this" in words(pilot)
        assert "expected:" not in words(pilot), "once is enough"
