"""The app: one source, one set of facts that all screens follow, and the way from screen to screen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from textual import events
from textual.app import App
from textual.binding import BindingType
from textual.filter import LineFilter
from textual.reactive import reactive
from textual.screen import Screen
from textual.widgets import Input

from kubectl_qos.cluster.source import Source
from kubectl_qos.config.history_file import HistoryFile
from kubectl_qos.config.settings import Settings
from kubectl_qos.config.state import UiState
from kubectl_qos.errors import InputError, QosError
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.tui.actions import ACTIONS, BindingGroup, Keys, bindings
from kubectl_qos.tui.context_switch import NO_CONTEXTS, ContextOpened, ContextSwitch, open_context
from kubectl_qos.tui.export import screen_text
from kubectl_qos.tui.follower import Finder, Follower, FollowStatus, Updated, UpdateFailed, in_background
from kubectl_qos.tui.go_to import Detail, Location, Navigation
from kubectl_qos.tui.key_order import KeyOrder, Passed
from kubectl_qos.tui.screens.base import QosScreen
from kubectl_qos.tui.screens.dialogs import Confirm, SaveAs, SelectDialog
from kubectl_qos.tui.screens.factory import detail_screen
from kubectl_qos.tui.screens.main import MainScreen
from kubectl_qos.tui.screens.search import Command, Palette
from kubectl_qos.tui.themes import THEMES, AsciiFilter, next_theme
from kubectl_qos.tui.view import ListKind, View, freshness, title_words, view_from_values, view_values
from kubectl_qos.tui.view_model import Trends, ViewModel, newest
from kubectl_qos.tui.widgets.text_view import escape_lines
from kubectl_qos.tui.widgets.title_line import TitleLine
from kubectl_qos.tui.write_service import WriteService

NO_SETTINGS = Settings()
NO_STATE = UiState()
AGE_SECONDS = 1
"""So often the ages in the title are counted anew, and the seconds to the next try."""


class QosApp(App[QosError]):
    """Everything comes in from outside: where facts come from, which pods, and a pod to edit at once."""

    TITLE = "kubectl qos"
    CSS_PATH: ClassVar = ["app.tcss", "screens/main.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = bindings(BindingGroup.APP)
    ALLOW_SELECT = False
    ENABLE_COMMAND_PALETTE = False

    facts: reactive[ViewModel | None] = reactive(None)
    status: reactive[FollowStatus] = reactive(FollowStatus(is_live=False))

    def __init__(
        self,
        source: Source,
        scope: Scope,
        *,
        find: Finder | None = None,
        notes: Sequence[str] = (),
        settings: Settings = NO_SETTINGS,
        state: UiState = NO_STATE,
        readonly: bool = False,
        ascii_only: bool = False,
        contexts: ContextSwitch = NO_CONTEXTS,
        history: HistoryFile | None = None,
    ) -> None:
        self._more_filters: list[LineFilter] = [AsciiFilter()] if ascii_only else []
        super().__init__()
        self.source = source
        self.notes = tuple(notes)
        self.settings = settings
        self.state = state
        self.keys = Keys(settings.keys)
        self.writing = WriteService(self, settings, history or HistoryFile(None), readonly=readonly)
        self._contexts = contexts
        self._scope = scope
        self.navigation = Navigation(Location(self._first_view()))
        self._trends = Trends()
        self._follower = Follower(self, source, scope, self._trends, find)
        self._key_order = KeyOrder(self, super().on_event)
        self.set_reactive(QosApp.status, FollowStatus(is_live=source.is_live))
        for theme in THEMES:
            self.register_theme(theme)
        wanted = settings.theme or state.theme
        self.theme = wanted if wanted in self.available_themes else THEMES[0].name
        self.set_keymap(settings.keymap())
        if settings.motion == "reduced":
            self.animation_level = "none"

    def get_line_filters(self) -> Sequence[LineFilter]:
        """What changes every painted line: for poor terminals, all of it to ASCII."""
        return [*super().get_line_filters(), *self._more_filters]

    def get_default_screen(self) -> MainScreen:
        """The first screen. Not a mode: from Python 3.12 on, Textual composes those before it has them."""
        return MainScreen(self._trends, self.navigation.place.view)

    async def on_event(self, event: events.Event) -> None:
        """What is typed or pasted waits for what was typed before it."""
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            await self._key_order.take(event)
        else:
            await super().on_event(event)

    async def on_passed(self, message: Passed) -> None:
        """A key has done what it does."""
        await self._key_order.passed(message.number)

    def on_mount(self) -> None:
        """Follow the source from now on."""
        self.status = replace(self.status, asking=True)
        self._follower.start()
        self.app_resume_signal.subscribe(self, self._repaint)
        if self.source.is_live:
            self.set_interval(AGE_SECONDS, self.show_title)

    def on_unmount(self) -> None:
        """Let the source go."""
        self._follower.close()

    def _repaint(self, _: object) -> None:
        """Back from the background: the shell has painted over everything."""
        self.refresh(layout=True)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """With reduced motion nothing blinks."""
        if self.settings.motion == "reduced" and isinstance(event.widget, Input):
            event.widget.cursor_blink = False

    def on_updated(self, message: Updated) -> None:
        """Show what is known."""
        if message.source is not self.source:
            return
        self.status = replace(self.status, asking=False, health=message.health)
        self.facts = message.facts
        if message.target is not None:
            self.edit(message.target)

    def on_update_failed(self, message: UpdateFailed) -> None:
        """Keep what is shown and say what went wrong."""
        if message.source is not self.source:
            return
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
        words = title_words(self.source.title, self.facts, self.source.now(), readonly=self.readonly)
        for screen in self.screen_stack:
            for line in screen.query(TitleLine):
                line.show(words, freshness(self.facts, self.status))

    def exit(self, *arguments: Any, **options: Any) -> None:
        """Leave, and keep what the next run begins with."""
        self._keep()
        super().exit(*arguments, **options)

    def _keep(self) -> None:
        main = self.main
        kept = replace(self.state, theme=self.theme, wide=main.view.wide)
        self.state = main.kept(kept).with_view(self.source.title, view_values(main.view))

    def _first_view(self) -> View:
        """What is shown first of a source: what was said, else what was shown last of it."""
        kept = view_from_values(self.state.views.get(self.source.title, {}))
        everything = self._scope.namespace is None and self._scope.node is None
        view = kept if kept is not None and everything else View()
        if self.settings.view is not None:
            view = replace(view, kind=ListKind(self.settings.view))
        return replace(view, wide=self.state.wide)

    @property
    def readonly(self) -> bool:
        """Whether everything that could change this cluster is out of reach."""
        return self.writing.is_readonly(self.source.title)

    def go_to_context(self, name: str | None) -> None:
        """Another cluster, chosen among those that there are where none is named."""
        if name is not None:
            self.tell(f"going to {name} …")
            in_background(self, partial(open_context, self._contexts, name))
            return
        try:
            names = self._contexts.names()
        except QosError as error:
            self.tell(str(error), wrong=True)
            return
        if not names:
            self.tell(f"{self.source.title} is the only place there is", wrong=True)
            return
        self.push_screen(SelectDialog("Contexts", names, self.source.title), self._context_chosen)

    def _context_chosen(self, name: str | None) -> None:
        if name is not None:
            self.go_to_context(name)

    def on_context_opened(self, message: ContextOpened) -> None:
        """Leave the present source for another one."""
        if isinstance(message.found, QosError):
            hint = f"; {message.found.hint}" if message.found.hint else ""
            self.tell(f"{message.found}{hint}", wrong=True)
            return
        self._keep()
        self._follower.close()
        self._trends.clear()
        self.source = message.found
        self.notes = ()
        self.navigation = Navigation(Location(self._first_view()))
        self.facts = None
        self.status = FollowStatus(is_live=self.source.is_live, asking=True)
        self.main.view = self.navigation.place.view
        self._follower = Follower(self, self.source, self._scope, self._trends)
        self._follower.start()

    def as_of(self, facts: ViewModel) -> str:
        """When facts were taken, for screens that do not follow refreshes; empty if nothing can change."""
        return f", as of {facts.taken:%H:%M:%S %Z}" if self.source.is_live else ""

    @property
    def main(self) -> MainScreen:
        """The screen below all others."""
        found = self.screen_stack[0]
        assert isinstance(found, MainScreen)
        return found

    def open(self, detail: Detail, pod: Pod) -> None:
        """Open a screen about a pod."""
        self.navigation.go(Location(self.main.view, detail, pod))
        self._open(self.navigation.place)

    def edit(self, pod: Pod) -> None:
        """Open the edit screen of a pod."""
        self.open(Detail.EDIT, pod)

    def _open(self, stop: Location) -> None:
        pod = newest(self.facts, stop.pod) if self.facts is not None and stop.pod is not None else None
        if pod is None or self.facts is None or stop.detail is None:
            self.navigation.back()
            self.tell("that pod is gone", wrong=True)
        else:
            self.push_screen(detail_screen(stop.detail, pod, self.facts), self._came_out)

    def _came_out(self, _: None) -> None:
        self.navigation.back()

    def action_previous(self) -> None:
        """The place before this one."""
        if isinstance(self.screen, MainScreen):
            self.screen.remember()
            place = self.navigation.back()
            if place is not None:
                self.screen.return_to(place)
        elif isinstance(self.screen, QosScreen):
            self.screen.action_back()

    def action_next_place(self) -> None:
        """The place that was left with back."""
        if not isinstance(self.screen, QosScreen):
            return
        if isinstance(self.screen, MainScreen):
            self.screen.remember()
        place = self.navigation.forward()
        if place is None:
            return
        if place.detail is not None:
            self._open(place)
        else:
            self.main.return_to(place)

    def read(self, title: str, lines: Iterable[str]) -> None:
        """Show a text over the screen."""
        from kubectl_qos.tui.screens.help import TextScreen

        self.push_screen(TextScreen(title, lines))

    def tell(self, text: str, *, wrong: bool = False) -> None:
        """Say in passing how something went."""
        self.notify(
            escape_lines(text), severity="warning" if wrong else "information", timeout=4, markup=False
        )

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

    def action_picture(self) -> None:
        """What is on the screen, as a file that a browser or a pager shows.

        Behind the palette the foot comes back first: made anew after one refresh, painted with the next.
        """
        self.screen.call_after_refresh(self.screen.call_after_refresh, self._save_picture)

    def _save_picture(self) -> None:
        svg, text = self.export_screenshot(title=self.TITLE), screen_text(self.screen)

        def picture(path: Path) -> str:
            if path.suffix == ".svg":
                return svg
            if path.suffix == ".txt":
                return text
            raise InputError(f"{path.name}: the extension chooses the format", hint="end it in .svg or .txt")

        self.ask_and_save("a picture of the screen", "kubectl-qos.svg", picture)

    def action_help(self) -> None:
        """Keys, columns and marks."""
        from kubectl_qos.tui.screens.help import TextScreen, help_lines

        if not isinstance(self.screen, TextScreen):
            self.push_screen(TextScreen("Help", help_lines(self.keys)))

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

    def action_undo(self) -> None:
        """The change history, and reverting its entries."""
        from kubectl_qos.tui.screens.undo import UndoScreen

        is_open = any(isinstance(screen, UndoScreen) for screen in self.screen_stack)
        if self.facts is None:
            self.tell("there is nothing to undo before the cluster has answered", wrong=True)
        elif isinstance(self.screen, QosScreen) and not is_open:
            self.push_screen(UndoScreen(self.facts, self.source))

    def action_theme(self) -> None:
        """The next theme."""
        self.theme = next_theme(self.theme)
        self.tell(f"theme {self.theme}")

    def action_suspend(self) -> None:
        """To the background of the shell, where there is one."""
        self.action_suspend_process()

    def action_command_palette(self) -> None:
        """Every action by its name."""
        if isinstance(self.screen, QosScreen):
            self.push_screen(Palette(tuple(self._commands(self.screen)), self.source.now()), self._do)

    def _do(self, command: Command | None) -> None:
        """Once the palette is gone: actions are those of the screen below."""
        if command is not None:
            self.call_later(command.run)

    async def action_quit(self) -> None:
        """Leave, unless something would be lost: then ask."""
        self.leave()

    def leave(self) -> None:
        """Leave; asks first where something is not saved, or has no answer yet."""
        screens = [screen for screen in self.screen_stack if isinstance(screen, QosScreen)]
        questions = (self.writing.last_question, *(screen.last_question for screen in reversed(screens)))
        question = next(filter(None, questions), "")
        if question:
            self.push_screen(Confirm(question, "leave", "stay"), self._left)
        else:
            self.exit()

    def _left(self, really: bool | None) -> None:
        if really:
            self.exit()

    def end(self, code: int) -> None:
        """Leave unasked, with that exit code; also before the first screen is there."""
        self.call_later(self.exit, return_code=code)

    def action_interrupt(self) -> None:
        """Leave from anywhere; a second time without a question."""
        if isinstance(self.screen, Confirm):
            self.exit()
        else:
            self.leave()

    def _commands(self, screen: Screen[Any]) -> Iterable[Command]:
        """Every action that can be used on this screen, by its words."""
        rooms = {BindingGroup.APP, *getattr(screen, "rooms", ())}
        for action in ACTIONS:
            if action.palette and action.room in rooms:
                target = self if action.room is BindingGroup.APP else screen
                run = partial(self.run_action, action.verb, target)
                yield Command(action.label, self.keys.first(action.name), action.help, run)
        if isinstance(screen, MainScreen):
            for column in screen.table.shown_columns:
                sort = partial(screen.table.sort_by, column.key)
                yield Command(f"sort by {column.header}", "", column.help, sort)
        for theme in THEMES:
            yield Command(f"theme {theme.name}", "", "these colours", partial(self._take_theme, theme.name))

    def _take_theme(self, name: str) -> None:
        self.theme = name
