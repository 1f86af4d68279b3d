"""The app: it follows one source, keeps the view model that all screens show, and opens the screens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

from textual import events
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.binding import BindingType
from textual.filter import LineFilter
from textual.notifications import Notification
from textual.screen import Screen
from textual.widgets import Input

from kubectl_qos.analysis.trends import Trends
from kubectl_qos.cluster.background import run_in_background
from kubectl_qos.cluster.source import LIVE, Source
from kubectl_qos.config.settings import UserSettings
from kubectl_qos.config.state import HistoryFile, UiState
from kubectl_qos.edit.edits import Edit
from kubectl_qos.errors import InputError, QosError
from kubectl_qos.k8s.kinds import WORKLOADS, Workload
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.tui.actions import (
    ACTIONS,
    BY_NAME,
    BindingGroup,
    Keys,
    actions_in_group,
    bindings,
    shown_key,
)
from kubectl_qos.tui.follower import FindPod, Follower, Updated, UpdateFailed
from kubectl_qos.tui.lists.base import ListCache
from kubectl_qos.tui.lists.clusters import ClusterPoller
from kubectl_qos.tui.screens.base import QosScreen, SingleDismissScreen, TitleLine
from kubectl_qos.tui.screens.dialogs import HelpScreen, LeaveDialog, SaveAs, TextScreen, help_sections
from kubectl_qos.tui.screens.main import MainScreen
from kubectl_qos.tui.screens.search import Command, Palette, SelectDialog
from kubectl_qos.tui.shell import NO_CONTEXTS, ContextSwitch, Past, Shell, WriteService
from kubectl_qos.tui.terminal import AsciiFilter, KeyOrder, Output, Passed
from kubectl_qos.tui.themes import ANSI, COLOURS, THEMES, find_theme, next_name
from kubectl_qos.tui.view import (
    Detail,
    FollowStatus,
    ListKind,
    Location,
    Navigation,
    View,
    freshness,
    past_words,
    title_words,
    usage_age,
    view_from_values,
    view_values,
)
from kubectl_qos.tui.view_model import ViewModel, newest

NO_SETTINGS: Final = UserSettings()
NO_STATE: Final = UiState()
AGE_SECONDS: Final = 1
"""How often the ages in the title, and the seconds until the next try, are updated."""


class QosApp(Shell):
    """The app. `find` finds a pod whose edit screen is opened at once."""

    TITLE = "kubectl qos"
    CSS_PATH = "app.tcss"
    BINDINGS: ClassVar[list[BindingType]] = bindings(BindingGroup.APP)
    ALLOW_SELECT = False
    ENABLE_COMMAND_PALETTE = False

    def __init__(  # noqa: PLR0913 - what the shell is made of
        self,
        source: Source,
        scope: Scope,
        *,
        find: FindPod | None = None,
        notes: Sequence[str] = (),
        settings: UserSettings = NO_SETTINGS,
        state: UiState = NO_STATE,
        readonly: bool = False,
        ascii_only: bool = False,
        contexts: ContextSwitch = NO_CONTEXTS,
        history: HistoryFile | None = None,
    ) -> None:
        self._more_filters: list[LineFilter] = [AsciiFilter()] if ascii_only else []
        self._output = Output(self._send)
        super().__init__()
        self.source = source
        self.notes = tuple(notes)
        self.settings = settings
        self.state = state
        self.keys = Keys(settings.keys)
        self.writing = WriteService(
            self, settings, self.keys, history or HistoryFile(None), readonly=readonly
        )
        self.lists = ListCache()
        self._clusters = ClusterPoller(self, contexts)
        self.cluster_rows, self.poll_clusters = self._clusters.rows, self._clusters.poll
        self.read_open_cluster = self._clusters.read_open
        self._contexts = contexts
        self._context_name: str | None = None
        self._live = source if source.past is None else None
        self._scope = scope
        self.navigation = Navigation(Location(self._first_view()))
        self.trends = Trends()
        self._follower = self._new_follower(find)
        self._health = LIVE
        self._key_order = KeyOrder(self, self._output, super().on_event)
        self.set_reactive(QosApp.status, FollowStatus(is_live=source.is_live))
        self._theme_names = [*(theme.name for theme in THEMES), *settings.themes]
        # On 16 colours all others would be mapped to the nearest one.
        has_16_colours = not self.no_color and self.console.color_system in {"standard", "windows"}
        name = settings.theme or (ANSI.name if has_16_colours else state.theme)
        theme = find_theme(name or "", settings.themes) or THEMES[0]
        self._first_theme = theme.name
        self.choose_theme(theme.name)
        self.set_keymap({action: ",".join(keys) for action, keys in settings.keys.items()})
        if settings.motion == "reduced":
            self.animation_level = "none"

    def _new_follower(self, find: FindPod | None = None) -> Follower:
        return Follower(self, self.source, self._scope, self.trends, self.lists.build, find)

    def refresh_css(self, animate: bool = True) -> None:  # noqa: FBT002 - as Textual declares it
        """Refresh the style sheets. Before there is a screen, only the variables have to be set."""
        if self._screen_stack:
            super().refresh_css(animate)
        else:
            self.stylesheet.set_variables(self.get_css_variables())

    def get_line_filters(self) -> Sequence[LineFilter]:
        return [*super().get_line_filters(), *self._more_filters]

    def get_default_screen(self) -> MainScreen:
        """Return the first screen. Not a Textual mode: Textual composes modes too early on Python 3.12+."""
        return MainScreen(self.trends, self.navigation.location.view)

    def _display(self, screen: Screen[Any], renderable: Any) -> None:
        if isinstance(renderable, LayoutUpdate | ChopsUpdate):
            renderable = self._output.changes(renderable)
        if not isinstance(screen, SingleDismissScreen) or screen.is_settled:
            with self._output.lock:
                super()._display(screen, renderable)

    def _send(self, text: str) -> None:
        if self._driver is not None and self.is_running:
            self._driver.write(text)

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Resize):
            self._output.forget()
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            await self._key_order.take(event)
        else:
            await super().on_event(event)

    async def on_key(self, event: events.Key) -> None:
        """Say that a key does nothing here, unless a toast says so already."""
        event.prevent_default()
        if await self._check_bindings(event.key):
            return
        key = event.character if event.is_printable and event.character != " " else shown_key(event.key)
        answer = f"{key} does nothing here"
        if isinstance(self.screen, QosScreen):
            answer += f": {self.keys.first('app.help')} shows the keys"
        if all(shown.message != answer for shown in self._notifications):
            self.notify(answer, timeout=2)

    async def on_passed(self, message: Passed) -> None:
        await self._key_order.passed(message.number)

    def on_mount(self) -> None:
        self.status = replace(self.status, loading=True)
        self._follower.start()
        self.app_resume_signal.subscribe(self, lambda _: self.action_redraw())
        if self.source.is_live or self.source.past is not None:
            self.set_interval(AGE_SECONDS, self._show_age)

    def on_unmount(self) -> None:
        self._output.stop_waiting()
        self._follower.close()

    def action_redraw(self) -> None:
        """Paint everything again: another program may have written to the terminal."""
        self._output.forget()
        self.refresh(layout=True)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        if self.settings.motion == "reduced" and isinstance(event.widget, Input):
            event.widget.cursor_blink = False

    def on_updated(self, message: Updated) -> None:
        if message.source is not self.source:
            return
        error = self.lists.take(message.built, is_update=True) if message.built is not None else None
        if error is not None:
            self.warn(error)
        self._health = self._follower.health()
        self.status = replace(self.status, loading=False, health=self._health)
        self.view_model = message.view_model
        if message.target is not None:
            self.edit(message.target)

    def on_update_failed(self, message: UpdateFailed) -> None:
        if message.source is not self.source:
            return
        if message.fatal:
            # Through the screen's own queue: it may still be composing, and cannot be left before that.
            self.screen.call_later(self.exit, message.health.error)
            return
        self.status = replace(self.status, loading=False, health=message.health)

    def _show_age(self) -> None:
        before, self._health = self._health, self._follower.health()
        if self._health != before:
            self.status = replace(self.status, health=self._health)
            if self._health.error is None:
                self._follower.end_rest()
        self.show_title()

    def show_title(self) -> None:
        title, past = self.source.title, self.source.past
        state = freshness(self.view_model, self.status, self._follower.behind_seconds())
        if past is not None:
            title, state = past.context, f"-- {past_words(past)} --  {state}"
        now, view_model = self.source.now(), self.view_model
        words = title_words(title, view_model, now, readonly=self.readonly)
        usage = usage_age(view_model, now) if view_model is not None else ""
        messages = [notification.message for notification in self._notifications]
        for screen in reversed(self.screen_stack):
            for line in screen.query(TitleLine):
                line.show(words, state, messages, usage)
            if not screen.is_modal:  # it covers those below
                break

    watch_view_model = watch_status = show_title

    def _refresh_notifications(self) -> None:
        super()._refresh_notifications()
        self.show_title()

    def _unnotify(self, notification: Notification, refresh: bool = True) -> None:  # noqa: FBT002 - Textual's
        super()._unnotify(notification, refresh)
        self.show_title()

    def exit(self, *arguments: Any, **options: Any) -> None:
        self._save_state()
        super().exit(*arguments, **options)

    def _save_state(self) -> None:
        main = self.main
        theme = self.theme if self.theme != self._first_theme else self.state.theme
        self.state = main.saved(replace(self.state, theme=theme, wide=main.view.wide))
        self.keep_view(main.view)

    def keep_view(self, view: View) -> None:
        """Remember the cluster's view; the cluster list belongs to no cluster, so it is not saved."""
        if view.kind is not ListKind.CLUSTERS and self.source.past is None:
            self.state = self.state.with_view(self.source.title, view_values(view))

    def _first_view(self) -> View:
        """Return the first view of a source: the one in the settings, else its last one."""
        saved = view_from_values(self.state.views.get(self.source.title, {}))
        everything = self._scope.namespace is None and self._scope.node is None
        view = saved if saved is not None and everything else View()
        if self.settings.view is not None:
            view = replace(view, kind=ListKind(self.settings.view))
        return replace(view, wide=self.state.wide)

    @property
    def readonly(self) -> bool:
        return self.writing.is_readonly(self.source.title)

    def go_into(self, name: str) -> None:
        """Go to a cluster. If it is already open, just leave the cluster list."""
        if name == self.source.title:
            self.main.go(self._first_view())
        else:
            self.go_to_context(name)

    def go_to_context(self, name: str | None) -> None:
        """Go to another cluster; without a name, one is selected in a dialog."""
        if name is not None:
            self.notify(f"switching to {name} …")
            run_in_background(self, partial(self._contexts.open, name), partial(self._context_opened, name))
            return
        try:
            names = self._contexts.names()
        except QosError as error:
            self.warn(error)
            return
        if not names:
            self.warn(f"{self.source.title} has no other contexts")
            return
        self.push_screen(
            SelectDialog("Contexts", names, self.source.title),
            lambda name: self.go_to_context(name) if name is not None else None,
        )

    def _context_opened(self, name: str, source: Source | QosError) -> None:
        if not isinstance(source, QosError):
            self._save_state()
            self._context_name = name
        elif self._clusters.take(name, source):
            self.warn(f"{name} cannot be opened: see below the list")
            return
        self._go_to_source(source)

    def choose_time(self) -> None:
        """Ask for a time of the last hours, and go there."""
        from kubectl_qos.tui.screens.kills import TimeSlider

        past = partial(self._contexts.past, self._context_name)

        def go(chosen: datetime | Literal["present"] | None) -> None:
            if chosen == "present":
                self.go_to_present()
            elif chosen is not None:
                self._go_to_source(past().source(chosen), self.main.view)

        self.push_screen(TimeSlider(lambda: past().track(), self.source.past), go)

    def past(self) -> Past | None:
        """Return the past of the cluster; None if the source is no context of a kubeconfig."""
        return self._contexts.past(self._context_name) if self._contexts is not NO_CONTEXTS else None

    def go_to_present(self) -> None:
        """Go back to the present, with the current view."""
        if self.source.past is None:
            return
        live = self._live
        work = partial(self._contexts.open, self._context_name) if live is None else lambda: live
        run_in_background(self, work, partial(self._go_to_source, view=self.main.view))

    def _go_to_source(self, source: Source | QosError, view: View | None = None) -> None:
        """Follow another source. A cluster begins with its own first view unless another one is given."""
        if isinstance(source, QosError):
            self.warn(source.with_hint())
            return
        self._follower.close()
        self.trends.clear()
        self.source = source
        self._live = source if source.past is None else self._live
        self.notes = ()
        self.navigation = Navigation(Location(view or self._first_view()))
        self.view_model = None
        self.status = FollowStatus(is_live=source.is_live, loading=True)
        self.main.view = self.navigation.location.view
        self._follower = self._new_follower()
        self._follower.start()

    def has_chosen_row(self) -> bool:
        return self.main.has_chosen_row

    def is_listing(self, kind: ListKind) -> bool:
        return self.is_running and self.main.view.kind is kind

    def show_rows(self) -> None:
        self.main.show_rows()

    @property
    def main(self) -> MainScreen:
        screen = self.screen_stack[0]
        assert isinstance(screen, MainScreen)
        return screen

    def open(self, detail: Detail, pod: Pod, edits: tuple[Edit, ...] = ()) -> None:
        if detail is Detail.EDIT and self.refuses_change():
            return
        self.navigation.go(Location(self.main.view, detail, pod, edits))
        self._open(self.navigation.location)

    def edit(self, pod: Pod, edits: tuple[Edit, ...] = ()) -> None:
        self.open(Detail.EDIT, pod, edits)

    def edit_workload(self, workload: Workload, pod: Pod, edits: tuple[Edit, ...] = ()) -> None:
        """Edit all pods of a workload through its template, or only `pod` if the template cannot be read."""
        if self.refuses_change():
            return
        if workload.kind not in WORKLOADS:
            self.edit(pod, edits)
            return
        find = partial(self.source.find, workload.kind, workload.namespace, workload.name)
        run_in_background(self, find, partial(self._workload_found, workload, pod, edits))

    def _workload_found(
        self, workload: Workload, pod: Pod, edits: tuple[Edit, ...], answer: Pod | QosError
    ) -> None:
        from kubectl_qos.tui.screens.kills import KillsScreen

        if not isinstance(self.screen, MainScreen | KillsScreen):
            return
        if isinstance(answer, QosError):
            name = f"{workload.kind.lower()}/{workload.name}"
            self.warn(f"{name} cannot be read: {answer}; showing its pod that dies first")
        self.edit(pod if isinstance(answer, QosError) else answer, edits)

    def _open(self, location: Location) -> None:
        pod = location.pod
        if self.view_model is not None and pod is not None and pod.kind == "Pod":
            pod = newest(self.view_model, pod)
        if pod is None or self.view_model is None or location.detail is None:
            self.navigation.back()
            self.warn("that pod is gone")
        else:
            self.push_screen(_detail_screen(location, pod, self.view_model), self._detail_left)

    def _detail_left(self, _: None) -> None:
        self.navigation.back()

    def go_back(self) -> bool:
        main = self.main
        main.remember_row()
        location = self.navigation.back()
        if location is not None:
            main.return_to(location)
        elif self.source.past is not None:
            self.go_to_present()
        return location is not None or self.source.past is not None

    def action_previous(self) -> None:
        if isinstance(self.screen, MainScreen):
            if not self.go_back():
                self.notify("there is no previous location")
        elif isinstance(self.screen, QosScreen):
            self.screen.action_back()

    def action_next(self) -> None:
        if not isinstance(self.screen, QosScreen):
            return
        if isinstance(self.screen, MainScreen):
            self.screen.remember_row()
        location = self.navigation.forward()
        if location is None:
            self.notify("there is no next location")
        elif location.detail is not None:
            self._open(location)
        else:
            self.main.return_to(location)

    def show_log(self, pod: Pod, container: str = "") -> None:
        from kubectl_qos.tui.screens.explain import log_screen

        try:
            self.push_screen(log_screen(self.source, pod, container))
        except QosError as error:
            self.warn(error)

    def show_text(self, title: str, lines: Iterable[str]) -> None:
        self.push_screen(TextScreen(title, lines))

    def save_as(
        self, what: str, name: str, text_for: Callable[[Path], str], saved: Callable[[], None] | None = None
    ) -> None:

        def notify(path: Path | None) -> None:
            if path is not None:
                self.notify(f"saved {what} to {path}")
                if saved is not None:
                    saved()

        self.push_screen(SaveAs(what, name, text_for), notify)

    def action_save_screenshot(self) -> None:
        """Save the screen as svg or text.

        The palette may have just closed: after one refresh the footer is laid out again, after two painted.
        """
        self.screen.call_after_refresh(self.screen.call_after_refresh, self._save_screenshot)

    def _save_screenshot(self) -> None:
        svg, text = self.export_screenshot(title=self.TITLE), screen_text(self.screen)

        def screenshot(path: Path) -> str:
            if path.suffix == ".svg":
                return svg
            if path.suffix == ".txt":
                return text
            raise InputError(f"{path.name}: the extension chooses the format", hint="end it in .svg or .txt")

        self.save_as("a screenshot", "kubectl-qos.svg", screenshot)

    def action_help(self) -> None:
        """Show all keys, first those that work here."""
        screen = self.screen
        if isinstance(screen, SingleDismissScreen) and not isinstance(screen, HelpScreen):
            bound = (BY_NAME.get(active.binding.id or "") for active in screen.active_bindings.values())
            active = {action.group for action in bound if action is not None}
            here = [group for group in BindingGroup if group in active]
            here.sort(key=lambda group: (group is not screen.group, group is BindingGroup.APP))
            actions = (action for group in here for action in actions_in_group(group))
            idle = {action.name for action in actions if screen.check_action(action.verb, ()) is False}
            self.push_screen(HelpScreen(help_sections(self.keys, here, idle)))

    def action_refresh(self) -> None:
        if self.source.past is not None and self.view_model is not None:
            self.notify("the past does not change: there is nothing to refresh")
        elif self.source.past is not None:
            self._go_to_source(self.source, self.main.view)
        else:
            self.status = replace(self.status, loading=True)
            self._follower.refresh()
        self.poll_clusters()

    def action_pause(self) -> None:
        if not self.source.is_live:
            self.notify(f"{self.source.title} is read once, there is nothing to pause")
            return
        self.status = replace(self.status, paused=not self.status.paused)
        self._follower.pause(self.status.paused)

    def action_undo(self) -> None:
        from kubectl_qos.tui.screens.apply import UndoScreen

        if self.refuses_change():
            return
        is_open = any(isinstance(screen, UndoScreen) for screen in self.screen_stack)
        view_model = self.whole_view_model()
        if is_open:
            self.notify("the change history is open already: esc leads back to it")
        elif view_model is not None and isinstance(self.screen, QosScreen):
            self.push_screen(UndoScreen(view_model, self.source))

    def action_theme(self) -> None:
        self.choose_theme(next_name(self.theme, self._theme_names))
        self.notify(f"theme {self.theme}")

    def choose_theme(self, name: str) -> None:
        theme = find_theme(name, self.settings.themes)
        assert theme is not None
        self.register_theme(theme)
        self.theme = name

    action_suspend = Shell.action_suspend_process

    def action_command_palette(self) -> None:
        def run(command: Command | None) -> None:
            if command is not None:
                # Once the palette is gone: actions are those of the screen below.
                self.call_later(command.run)

        if isinstance(self.screen, QosScreen):
            self.push_screen(Palette(tuple(self._commands(self.screen)), self.source.now()), run)

    async def action_quit(self) -> None:
        self.leave()

    def leave(self) -> None:
        """Leave; ask first if something is not saved, or has no answer yet."""
        screens = [screen for screen in self.screen_stack if isinstance(screen, QosScreen)]
        questions = (self.writing.leave_question, *(screen.leave_question for screen in reversed(screens)))
        question = next(filter(None, questions), "")
        if question:
            self.push_screen(LeaveDialog(question), lambda really: self.exit() if really else None)
        else:
            self.exit()

    def end(self, code: int) -> None:
        """Leave with an exit code, without a question. This also works before the first screen exists."""
        self.call_later(self.exit, return_code=code)

    def action_interrupt(self) -> None:
        if isinstance(self.screen, LeaveDialog):
            self.exit()
        else:
            self.leave()

    def _commands(self, screen: QosScreen) -> Iterable[Command]:
        groups = {BindingGroup.APP, screen.group}
        for action in ACTIONS:
            target = self if action.group is BindingGroup.APP else screen
            is_here = action.palette and action.group in groups
            if is_here and target.check_action(action.verb, ()) is not False:
                run = partial(self.run_action, action.call, target)
                yield Command(action.label, self.keys.first(action.name), action.help, run)
        if isinstance(screen, MainScreen):
            for column in screen.table.shown_columns:
                sort = partial(screen.table.sort_by, column.key)
                yield Command(f"sort by {column.header}", "", column.help, sort)
        for name in dict.fromkeys((*self._theme_names, *COLOURS)):
            yield Command(f"theme {name}", "", "these colours", partial(self.choose_theme, name))


def _detail_screen(location: Location, pod: Pod, view_model: ViewModel) -> QosScreen:
    """Return a screen about a pod; each is imported when it is opened for the first time."""
    detail = location.detail
    if detail is Detail.EXPLAIN:
        from kubectl_qos.tui.screens.explain import ExplainScreen

        return ExplainScreen(pod, view_model)
    if detail is Detail.EDIT:
        from kubectl_qos.tui.screens.edit import EditScreen

        return EditScreen(pod, view_model, location.edits)
    from kubectl_qos.tui.screens.node import CompareScreen, TreeScreen

    return TreeScreen(pod, view_model) if detail is Detail.TREE else CompareScreen(pod, view_model)


def screen_text(screen: Screen[Any]) -> str:
    """Return what is on a screen, line by line."""
    strips = screen._compositor.render_strips()  # noqa: SLF001 - Textual exports SVG only
    return "".join(f"{strip.text.rstrip()}\n" for strip in strips)
