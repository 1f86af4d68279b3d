"""Make the pictures of docs/pictures from the demo cluster: `make pictures`."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

os.environ["TEXTUAL_ANIMATIONS"] = "none"
os.environ["TEXTUAL_COLOR_SYSTEM"] = "truecolor"
os.environ.pop("NO_COLOR", None)

from textual.widgets import Input

from kubectl_qos.cluster.files import DEMO_TIME
from kubectl_qos.demo.source import LivingDemo
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.tui.app import QosApp, screen_text
from kubectl_qos.tui.screens.main import MainScreen

PICTURES = Path(__file__).parent / "pictures"
FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""Fonts from elsewhere: a page must not load any, and a picture in a page cannot."""
WORKING = ("reading ", "Reading …", "Simulating …", "Looking for fixes …", "loading related objects")
SHOTS = (
    ("cluster", (120, 24), ("1",)),
    ("pods", (120, 36), ("tab", "j", "enter")),
    ("workloads", (120, 30), ("3",)),
    ("containers", (120, 30), ("5",)),
    ("find", (100, 24), ("f", "a", "p", "i", "c")),
    ("columns", (100, 30), ("C",)),
    ("narrow", (80, 24), ("tab", "j", "enter")),
    ("fixes", (120, 36), ("F",)),
    ("explain", (120, 44), ("d",)),
    ("edit", (120, 40), ("e", "tab", *"160Mi")),
    ("apply", (100, 24), ("e", "tab", *"160Mi", "ctrl+s")),
    ("simulation", (110, 30), ("o", "shift+right", "shift+right", "shift+right")),
    ("kills", (110, 26), ("K",)),
    ("patch", (100, 24), ("e", "tab", *"160Mi", "ctrl+s", "m")),
)


async def shoot(name: str, size: tuple[int, int], keys: tuple[str, ...]) -> None:
    """Press the keys in a terminal of that size and keep what is on the screen."""
    demo = LivingDemo(may_write=True, now=lambda: DEMO_TIME, tick_seconds=None)
    app = QosApp(demo, Scope())
    async with app.run_test(size=size) as pilot:
        while app.view_model is None:
            await pilot.pause(0.01)
        await pilot.pause()
        await pilot.press(*keys)
        while isinstance(app.screen, MainScreen) and app.screen.is_building:
            await pilot.pause(0.01)
        while any(word in screen_text(app.screen) for word in WORKING):
            await pilot.pause(0.01)
        await pilot.pause()
        for line in app.screen.query(Input):
            line.cursor_blink = False
        await pilot.pause()
        picture = FONTS.sub("", app.export_screenshot(title="kubectl qos"))
        (PICTURES / f"{name}.svg").write_text(picture, encoding="utf-8")
    print(PICTURES / f"{name}.svg")


async def main() -> None:
    """Every picture, one after the other."""
    PICTURES.mkdir(exist_ok=True)
    for name, size, keys in SHOTS:
        await shoot(name, size, keys)


if __name__ == "__main__":
    asyncio.run(main())
