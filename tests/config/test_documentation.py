"""The page about configuration tells all of it, and its example is one."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from kubectl_qos.config.settings import AllowedNames, Settings, read_settings
from kubectl_qos.errors import InputError
from kubectl_qos.present.pod_columns import BY_KEY
from kubectl_qos.tui.actions import ACTIONS
from kubectl_qos.tui.themes import THEMES

PAGE = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()
KNOWN = AllowedNames(
    columns=tuple(BY_KEY),
    themes=tuple(theme.name for theme in THEMES),
    views=("cluster", "namespaces", "workloads", "pods", "containers"),
    actions={action.name: action.keys for action in ACTIONS},
)


def test_the_example_is_valid_and_shows_every_setting(tmp_path: Path) -> None:
    (example,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    file = tmp_path / "config.yaml"
    file.write_text(example)
    found = read_settings(file, KNOWN)
    shown = set(re.findall(r"^(\w+):", example, re.MULTILINE))
    assert {one.name.removesuffix("_seconds") for one in fields(Settings)} == shown
    assert found.for_context("prod-1").readonly
    assert not found.for_context("prod-maintenance").readonly
    assert found.for_context("prod-maintenance").confirm == "name"


def test_the_table_has_every_setting_in_its_order() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .* \| .* \|$", PAGE, re.MULTILINE)
    assert rows == [one.name.removesuffix("_seconds") for one in fields(Settings)]


def test_the_words_that_settings_take_are_all_named() -> None:
    for word in (*KNOWN.themes, *KNOWN.views, "KUBECTL_QOS_CONFIG", "KUBECTL_QOS_STATE"):
        assert f"`{word}" in PAGE


def test_the_error_of_the_page_is_what_is_said(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("\n\n\nthme: x")
    with pytest.raises(InputError) as caught:
        read_settings(file, KNOWN)
    assert str(caught.value).removeprefix(str(file)) in PAGE
    assert f"hint: {caught.value.hint}" in PAGE
