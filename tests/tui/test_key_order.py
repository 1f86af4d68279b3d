"""Keys that are typed faster than they are handled keep their order."""

from __future__ import annotations

from typing import Any

import pytest
from textual import events

from kubectl_qos.cluster.demo import DemoSource
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.tui import key_order
from kubectl_qos.tui.app import QosApp
from tests.tui.sources import (
    main_of,
    names,
    settled,
    until,
)


def typed(pilot: Any, *keys: str) -> None:
    """What is typed faster than it is taken."""
    named = {"/": "slash", ":": "colon", " ": "space", "-": "minus", "\r": "enter", "\x1b": "escape"}
    for key in keys:
        pilot.app._driver.send_message(events.Key(named.get(key, key), key))


async def test_the_letters_of_a_filter_typed_at_once_are_no_commands() -> None:
    async with QosApp(DemoSource(), Scope()).run_test(size=(120, 36)) as pilot:
        await settled(pilot)
        typed(pilot, *"/edex")
        await until(pilot, lambda: main_of(pilot).view.filter.text == "edex")
        assert not main_of(pilot).view.wide
        assert len(pilot.app.screen_stack) == 1


async def test_what_is_typed_behind_enter_goes_where_enter_led() -> None:
    async with QosApp(DemoSource(), Scope()).run_test(size=(120, 36)) as pilot:
        await settled(pilot)
        typed(pilot, *":node worker-1\rjj fcart\r")
        await until(pilot, lambda: names(pilot)[main_of(pilot).table.cursor].startswith("cart-"))
        assert main_of(pilot).view.node == "worker-1"
        assert len(main_of(pilot).table.marked) == 1


async def test_keys_after_escape_are_not_kept_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_order, "PATIENCE_SECONDS", 60)
    async with QosApp(DemoSource(), Scope()).run_test(size=(120, 36)) as pilot:
        await settled(pilot)
        for _ in range(3):
            typed(pilot, *"d\x1bj")
        await until(pilot, lambda: main_of(pilot).table.cursor == 3)
        assert len(pilot.app.screen_stack) == 1


async def test_a_key_whose_way_is_lost_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    async with QosApp(DemoSource(), Scope()).run_test(size=(120, 36)) as pilot:
        await settled(pilot)
        monkeypatch.setattr(QosApp, "on_passed", lambda *_: None)
        typed(pilot, *"jjj")
        await until(pilot, lambda: main_of(pilot).table.cursor == 3)
