"""What commands read of the settings: whether they may write, and nothing else."""

from pathlib import Path

import pytest

from kubectl_qos.config.settings import ContextSettings, read_settings
from kubectl_qos.errors import InputError


def rules_of(folder: Path, text: str, context: str) -> ContextSettings:
    file = folder / "config.yaml"
    file.write_text(text)
    return read_settings(file).for_context(context)


@pytest.mark.parametrize(
    ("text", "readonly", "by_name"),
    [
        ("", False, False),
        ("readonly: true", True, False),
        ("readonly:", False, False),
        ("contexts:", False, False),
        ("contexts: {prod: {readonly: true}}", True, False),
        ("contexts: {'pr*': {readonly: true, confirm: name}}", True, True),
        ("readonly: true\ncontexts: {prod: {readonly: false, confirm: name}}", False, True),
        ("theme: no-such\nkeys: {nothing: 1}\nreadonly: true", True, False),
    ],
)
def test_what_is_said_about_writing(tmp_path: Path, text: str, readonly: bool, by_name: bool) -> None:
    assert rules_of(tmp_path, text, "prod") == ContextSettings(readonly, "name" if by_name else "key")


@pytest.mark.parametrize(
    "text",
    ["readonly: maybe", "contexts: {prod: {readonly: 3}}", "- readonly", "readonly: true\nreadonly: false"],
)
def test_what_cannot_be_used_stops(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"config\.yaml, line"):
        rules_of(tmp_path, text, "prod")


def test_without_a_file_everything_is_at_its_default(tmp_path: Path) -> None:
    for path in (None, tmp_path / "none.yaml"):
        assert read_settings(path).for_context("prod") == ContextSettings(False, "key")
