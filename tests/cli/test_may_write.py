"""Who may write: commands that bring the person's settings, unless a flag or these say otherwise."""

from __future__ import annotations

import argparse

import pytest

from kubectl_qos.cli.sources import may_write
from kubectl_qos.config.settings import ContextSettings, Settings

ANY = Settings()
NONE = Settings(readonly=True)
ALL_BUT_ONE = Settings(readonly=True, contexts={"maintenance": ContextSettings(readonly=False)})
PRODUCTION = Settings(contexts={"prod-*": ContextSettings(readonly=True)})


@pytest.mark.parametrize(
    ("flags", "context", "expected"),
    [
        ({}, "test", False),
        ({"settings": ANY}, "test", True),
        ({"settings": ANY, "readonly": True}, "test", False),
        ({"settings": ANY, "readonly": False}, "test", True),
        ({"settings": NONE}, "test", False),
        ({"settings": ALL_BUT_ONE}, "test", False),
        ({"settings": ALL_BUT_ONE}, "maintenance", True),
        ({"settings": ALL_BUT_ONE, "readonly": True}, "maintenance", False),
        ({"settings": PRODUCTION}, "prod-1", False),
        ({"settings": PRODUCTION}, "test", True),
    ],
)
def test_who_may_write(flags: dict[str, object], context: str, expected: bool) -> None:
    assert may_write(argparse.Namespace(**flags), context) is expected
