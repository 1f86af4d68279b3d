"""The app: one source, one set of facts that all screens follow, and the way from screen to screen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from textual.app import App, SystemCommand
from textual.binding import BindingType
from textual.reactive import reactive
from textual.screen import Screen

from kubectl_qos.cluster.source import Source
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.tui.actions import ACTIONS, Room, bindings, shown_key
from kubectl_qos.tui.facts import Facts
from kubectl_qos.tui.live import Answered, Finder, Follower, Refused, Status
from kubectl_qos.tui.screens.base import QosScreen
from kubectl_qos.tui.screens.dialogs import Confirm, SaveAs
from kubectl_qos.tui.screens.main import MainScreen
from kubectl_qos.tui.themes import THEMES, next_theme
from kubectl_qos.tui.view import freshness, title_words
from kubectl_qos.tui.widgets.document import harmless
from kubectl_qos.tui.widgets.title_line import TitleLine

AGE_SECONDS = 1
"""So often the ages in the title are counted anew, and the seconds to the next try."""


class QosApp(App[QosError]):
    """Everything comes in from outside: where facts come from, which pods, and a pod to edit at once."""

    TITLE = "kubectl qos"
    CSS_PATH: ClassVar = ["app.tcss", "screens/main.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = bindings(Room.APP)
    ALLOW_SELECT = False

    facts: reactive[Facts | None] = reactive(None)
    status: reactive[Status] = reactive(Status(is_live=False))

    def __init__(
        self, source: Source, scope: Scope, *, find: Finder | None = None, notes: Sequence[str] = ()
    ) -> None:
        super().__init__()
        self.source = source
        self.notes = tuple(notes)
        self._follower = Follower(self, source, scope, find)
        self.set_reactive(QosApp.status, Status(is_live=source.is_live))
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = THEMES[0].name

    def get_default_screen(self) -> MainScreen:
        """The first screen. Not a mode: from Python 3.12 on, Textual composes those before it has them."""
        return MainScreen()

    def on_mount(self) -> None:
        """Follow the source from now on."""
        self.status = replace(self.status, asking=True)
        self._follower.start()
        if self.source.is_live:
            self.set_interval(AGE_SECONDS, self.show_title)

    def on_unmount(self) -> None:
        """Let the source go."""
        self._follower.close()

    def on_answered(self, message: Answered) -> None:
        """Show what is known."""
        self.status = replace(self.status, asking=False, health=message.health)
        self.facts = message.facts
        if message.target is not None:
            self.edit(message.target)

    def on_refused(self, message: Refused) -> None:
        """Keep what is shown and say what went wrong."""
        if message.fatal:
            # Through the screen's own queue: it may still be composing, and cannot leave before it came.
            self.screen.call_later(self.exit, message.health.error)
            return
        self.status = replace(self.status, asking=False, health=message.health)

    def watch_facts(self) -> None:
        """The title counts."""
        self.show_title()

    def watch_status(self) -> None:
        """The title says how fresh the facts are."""
        self.show_title()

    def show_title(self) -> None:
        """The title line of every open screen."""
        words = title_words(self.source.title, self.facts, self.source.now())
        for screen in self.screen_stack:
            for line in screen.query(TitleLine):
                line.show(words, freshness(self.facts, self.status))

    def as_of(self, facts: Facts) -> str:
        """When facts were taken, for screens that do not follow refreshes; empty if nothing can change."""
        return f", as of {facts.taken:%H:%M:%S %Z}" if self.source.is_live else ""

    def explain(self, pod: Pod) -> None:
        """Open the explanation of a pod."""
        from kubectl_qos.tui.screens.explain import ExplainScreen

        if self.facts is not None:
            self.push_screen(ExplainScreen(pod, self.facts))

    def edit(self, pod: Pod) -> None:
        """Open the edit screen of a pod."""
        from kubectl_qos.tui.screens.edit import EditScreen

        if self.facts is not None:
            self.push_screen(EditScreen(pod, self.facts))

    def show_cgroups(self, pod: Pod) -> None:
        """Open the cgroup tree of a pod's node."""
        from kubectl_qos.tui.screens.tree import TreeScreen

        if self.facts is not None:
            self.push_screen(TreeScreen(pod, self.facts))

    def compare(self, pod: Pod) -> None:
        """Open the question what another release or setting would change for a pod."""
        from kubectl_qos.tui.screens.compare import CompareScreen

        if self.facts is not None:
            self.push_screen(CompareScreen(pod, self.facts))

    def read(self, title: str, lines: Iterable[str]) -> None:
        """Show a text over the screen."""
        from kubectl_qos.tui.screens.help import TextScreen

        self.push_screen(TextScreen(title, lines))

    def tell(self, text: str, *, wrong: bool = False) -> None:
        """Say in passing how something went."""
        self.notify(harmless(text), severity="warning" if wrong else "information", timeout=4, markup=False)

    def copy(self, text: str, what: str) -> None:
        """Hand a text to the terminal's clipboard."""
        self.copy_to_clipboard(text)
        self.tell(f"copied {what}: {len(text.splitlines())} lines")

    def ask_and_save(
        self,
        what: str,
        name: str,
        text_for: Callable[[Path], str],
        saved: Callable[[], None] | None = None,
    ) -> None:
        """Ask for a file name, write the file and say where it is."""

        def told(path: Path | None) -> None:
            if path is not None:
                self.tell(f"saved {what} to {path}")
                if saved is not None:
                    saved()

        self.push_screen(SaveAs(what, name, text_for), told)

    def action_help(self) -> None:
        """Keys, columns and marks."""
        from kubectl_qos.tui.screens.help import TextScreen, help_lines

        if not isinstance(self.screen, TextScreen):
            self.push_screen(TextScreen("Help", help_lines()))

    def action_refresh(self) -> None:
        """Ask now."""
        self.status = replace(self.status, asking=True)
        self._follower.refresh()

    def action_pause(self) -> None:
        """Hold what is shown, or go on."""
        if not self.source.is_live:
            self.tell(f"{self.source.title} is read once, there is nothing to pause")
            return
        self.status = replace(self.status, paused=not self.status.paused)
        self._follower.pause(self.status.paused)

    def action_theme(self) -> None:
        """The next theme."""
        self.theme = next_theme(self.theme)
        self.tell(f"theme {self.theme}")

    async def action_quit(self) -> None:
        """Leave, unless something would be lost: then ask."""
        self.leave()

    def leave(self) -> None:
        """Leave; asks first where something is not saved."""
        if any(isinstance(screen, QosScreen) and screen.unsaved for screen in self.screen_stack):
            self.push_screen(
                Confirm("The changes are not saved. Leave all the same?", "leave", "stay"), self._left
            )
        else:
            self.exit()

    def _left(self, really: bool | None) -> None:
        if really:
            self.exit()

    def action_interrupt(self) -> None:
        """Leave from anywhere; a second time without a question."""
        if isinstance(self.screen, Confirm):
            self.exit()
        else:
            self.leave()

    def get_system_commands(self, screen: Screen[None]) -> Iterable[SystemCommand]:
        """The palette: every action that can be used on this screen, by its words."""
        rooms = {Room.APP, *getattr(screen, "rooms", ())}
        for action in ACTIONS:
            if action.palette and action.room in rooms:
                target = self if action.room is Room.APP else screen

                def run(verb: str = action.verb, target: Screen[None] | QosApp = target) -> None:
                    self.call_later(self.run_action, verb, target)

                yield SystemCommand(f"{action.label} ({shown_key(action.keys[0])})", action.help, run)
        for theme in THEMES:
            yield SystemCommand(f"theme {theme.name}", "", lambda name=theme.name: self._take_theme(name))

    def _take_theme(self, name: str) -> None:
        self.theme = name
