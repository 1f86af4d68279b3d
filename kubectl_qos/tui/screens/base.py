"""The base of all screens: title line, footer, least size, and leaving once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, Final, Generic, TypeVar, cast

from rich.cells import cell_len, set_cell_size
from textual import events
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import ActiveBinding, Binding
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.widget import Widget
from textual.widgets import Static
from textual.widgets._toast import ToastRack

from kubectl_qos.cluster.background import run_in_background
from kubectl_qos.errors import QosError
from kubectl_qos.present.format import shortened
from kubectl_qos.tui.actions import BY_NAME, BindingGroup, actions_in_group, bindings, footer_sections
from kubectl_qos.tui.shell import Shell
from kubectl_qos.tui.view_model import ViewModel
from kubectl_qos.tui.widgets.text_view import TextScroll

ResultT = TypeVar("ResultT")
BuiltT = TypeVar("BuiltT")

MIN_WIDTH: Final = 60
MIN_HEIGHT: Final = 15
_SEPARATOR: Final = "  "
_PADDING: Final = 1
_BORDER_CELLS: Final = 4
"""The corners of a dialog, and the gaps around its keys."""
_LEAST_SOURCE: Final = 12
"""The cells that the name of the source keeps in the title line."""
WIDE_GAP: Final = 2
MINOR: Final = 3
"""Keys with this `footer` or more are left out before gaps become narrower."""
_SECTIONS: Final = footer_sections()
MAX_TOAST_PERCENT: Final = 60
"""The widest toast, as in app.tcss, of the width of the screen."""


class KeyFooter(Widget):
    """The most important keys of the screen that fit, in groups.

    Textual's own footer has a widget for each key, and is empty while the terminal has no focus.
    """

    ALLOW_SELECT = False
    shown: Sequence[ActiveBinding] = ()
    _gap = 1
    _hovered: ActiveBinding | None = None

    def on_mount(self) -> None:
        self._choose(self.app.size.width - 2 * _PADDING)
        self.screen.bindings_updated_signal.subscribe(self, lambda _: self.call_after_refresh(self._show))

    def on_unmount(self) -> None:
        self.screen.bindings_updated_signal.unsubscribe(self)

    def on_resize(self) -> None:
        self.call_after_refresh(self._show)

    def _show(self) -> None:
        """Show the keys that work now, if they are other ones."""
        before = self.shown, self._gap
        if self.is_attached:
            self._choose(self.content_size.width)
        if (self.shown, self._gap) != before:
            self.refresh()

    def _choose(self, width: int) -> None:
        bindings = reversed(self.screen.active_bindings.values())
        by_name = {active.binding.id: active for active in bindings if active.binding.show}
        keys = [by_name[name] for name in BY_NAME if name in by_name]
        roomy = fitting_keys(keys, self.app.get_key_display, width, WIDE_GAP)
        dropped = [active for active in keys if active not in roomy]
        is_roomy = all(BY_NAME[active.binding.id or ""].footer >= MINOR for active in dropped)
        self._gap = WIDE_GAP if is_roomy else 1
        self.shown = (
            roomy if is_roomy else fitting_keys(keys, self.app.get_key_display, width)
        ) or self.shown

    def places(self) -> Iterator[tuple[int, str, ActiveBinding]]:
        """Yield the first cell of each key, its displayed name, and its binding."""
        begin = 0
        sections = [_SECTIONS[active.binding.id or ""] for active in self.shown]
        for active, section, following in zip(self.shown, sections, [*sections[1:], None], strict=True):
            display = self.app.get_key_display(active.binding)
            yield begin, display, active
            width = cell_len(f"{display} {active.binding.description}")
            begin += width + self._gap * (1 + (following != section))

    def render(self) -> Content:
        line = Content()
        for begin, display, active in self.places():
            key = Content.styled(display, "bold $footer-key-foreground")
            key = Content.assemble(key, f" {active.binding.description}")
            if active is self._hovered:
                key = key.stylize("on $block-hover-background")
            line = Content.assemble(line.pad_right(begin - line.cell_length), key)
        return line

    def _at(self, event: events.MouseEvent) -> ActiveBinding | None:
        for begin, display, active in self.places():
            if 0 <= event.x - _PADDING - begin < cell_len(f"{display} {active.binding.description}"):
                return active
        return None

    def on_mouse_move(self, event: events.MouseMove) -> None:
        self._hover(self._at(event))

    def on_leave(self) -> None:
        self._hover(None)

    def _hover(self, active: ActiveBinding | None) -> None:
        if active is not self._hovered:
            self._hovered = active
            self.tooltip = active.tooltip if active is not None else None
            self.refresh()

    def on_mouse_down(self, event: events.MouseDown) -> None:
        active = self._at(event)
        if active is not None:
            self.app.simulate_key(active.binding.key)


def fitting_keys(
    keys: Sequence[ActiveBinding], display: Callable[[Binding], str], available: int, gap: int = 1
) -> Sequence[ActiveBinding]:
    """Return the keys that fit into a width in cells; the last of the least important ones go first.

    There are `gap` cells between two keys, and twice as many between two groups.
    """
    shown = list(keys)

    def width() -> int:
        sections = [_SECTIONS[active.binding.id or ""] for active in shown]
        gaps = sum((before != after) + 1 for before, after in pairwise(sections))
        words = (f"{display(active.binding)} {active.binding.description}" for active in shown)
        return sum(map(cell_len, words)) + gaps * gap

    while shown and width() > available:
        importance = [BY_NAME[active.binding.id or ""].footer for active in shown]
        kept = [active.binding.id in {"app.help", "app.quit"} for active in shown]
        last = max(range(len(shown)), key=lambda index: (not kept[index], importance[index], index))
        del shown[last]
    return shown


class TitleLine(Widget):
    """The first line: words to the left, then the state, which is never cut off, and toasts to the right.

    Without room the last words are left out first, but that on usage last, for which the source is shortened.

    Its colour is another one if the state says that the past is shown: `-- 2h ago, 14:02:10 UTC --`.
    """

    def __init__(self) -> None:
        super().__init__()
        self._words: tuple[str, ...] = ("kubectl qos",)
        self._state = self._usage = ""
        self._toast_width = 0

    def show(self, words: Sequence[str], state: str, messages: Sequence[str], usage: str) -> None:
        """Show other words, to the left of the toasts with these messages."""
        longest = max((cell_len(line) for message in messages for line in message.split("\n")), default=-2)
        toast_width = min(longest + 1 + _PADDING, self.app.size.width * MAX_TOAST_PERCENT // 100)
        shown = tuple(words), state, usage, toast_width
        if shown != (self._words, self._state, self._usage, self._toast_width):
            self._words, self._state, self._usage, self._toast_width = shown
            self.set_class(state.startswith("--"), "-past")
            self.refresh()

    async def on_click(self, event: events.Click) -> None:
        """Pause or resume by a click on the state."""
        if event.x >= self.size.width - self._toast_width - cell_len(self._state) - _PADDING:
            await self.run_action("app.pause")

    def render(self) -> Content:
        width = self.content_size.width - self._toast_width
        words = list(self._words[1:])
        room = max(width - cell_len(self._words[0]) - cell_len(self._state) - 1, 0)
        while len(words) > 1 and (more := cell_len(_SEPARATOR + _SEPARATOR.join(words)) - room) > 0:
            is_usage = words[-1] == self._usage
            if is_usage and len(words) == 2 and cell_len(words[0]) - more > _LEAST_SOURCE:
                # Perhaps its middle has been left out: again, and more of it.
                words[0] = shortened(words[0].replace("…", "__"), cell_len(words[0]) - more - 1)
                break
            words.pop(-2 if is_usage and len(words) > 2 else -1)
        rest = _SEPARATOR + _SEPARATOR.join(words)
        if cell_len(rest) > room:
            rest = set_cell_size(rest, max(room - 1, 0)) + "…"
        colour = {"!": " $error", "-": "", "l": " $success"}.get(self._state[:1], " $warning")
        return Content.assemble(
            Content.styled(self._words[0], "bold"),
            Content(set_cell_size(rest, room + 1)),
            Content.styled(self._state, f"bold{colour}"),
        )


class TooSmall(Static):
    """Shown instead of everything else if the terminal is too small."""

    def __init__(self) -> None:
        super().__init__(
            f"This terminal is a little small for kubectl qos: {MIN_WIDTH} columns and "
            f"{MIN_HEIGHT} lines are needed. Please enlarge it; q quits.",
            markup=False,
        )


class SingleDismissScreen(Screen[ResultT]):
    """A screen that can only be left while it is the uppermost one; Textual would remove another one.

    A subclass names the `group` of its actions.
    """

    group: ClassVar[BindingGroup | None] = None
    is_settled = False
    """True once it may be painted. Before that its content is laid out for other sizes."""

    def on_mount(self) -> None:
        self.call_after_refresh(self.call_after_refresh, self._settle)

    def _settle(self) -> None:
        self.is_settled = True
        self.refresh()

    def __init_subclass__(cls, group: BindingGroup | None = None, **options: Any) -> None:
        if group is not None:
            cls.group, cls.BINDINGS = group, bindings(group)
        super().__init_subclass__(**options)

    @property
    def qos(self) -> Shell:
        return cast("Shell", self.app)

    @property
    def is_uppermost(self) -> bool:
        """Return whether this screen gets the keys; `is_current` is also True below a modal screen."""
        return self.is_current and self.app.screen is self

    def dismiss(self, result: ResultT | None = None) -> AwaitComplete:
        """Leave with a result; a second time does nothing."""
        return super().dismiss(result) if self.is_uppermost else AwaitComplete()

    def action_page_up(self) -> None:
        for scroll in self.query(TextScroll):
            scroll.action_page_up()

    def action_page_down(self) -> None:
        for scroll in self.query(TextScroll):
            scroll.action_page_down()


class Dialog(ModalScreen[ResultT], SingleDismissScreen[ResultT]):
    """A dialog over a screen, with its keys on the border; a narrow one has the first keys and the last."""

    enter_does: ClassVar[str] = ""
    """What enter does, if no action of the dialog does it."""

    def on_mount(self) -> None:
        self.show_keys()

    def on_resize(self) -> None:
        self.call_after_refresh(self.show_keys)

    def show_keys(self) -> None:
        keys = [Content.assemble(Content.styled(key, "bold"), f" {does}") for key, does in self.border_keys()]
        dialog = self.query_one(Vertical)
        room = dialog.outer_size.width - _BORDER_CELLS
        while len(keys) > 2 and 0 < room < sum(key.cell_length + len(_SEPARATOR) for key in keys):
            del keys[-2]
        dialog.border_subtitle = Content(_SEPARATOR).join(keys)

    def border_keys(self) -> list[tuple[str, str]]:
        actions = [action for action in actions_in_group(self.group) if action.footer] if self.group else []
        entered = [("enter", self.enter_does)] if self.enter_does else []
        return [*entered, *((self.qos.keys.first(action.name), action.label) for action in actions)]

    def on_key(self, event: events.Key) -> None:
        """Open the help, unless the dialog uses its key: the app's bindings do not work in a dialog."""
        if event.key in self.qos.keys.of(BY_NAME["app.help"]) and event.key not in self.active_bindings:
            self.qos.action_help()

    def action_leave(self) -> None:
        self.dismiss()

    action_close = action_leave


class QosScreen(SingleDismissScreen[None]):
    """A screen with title and footer; the palette lists its actions."""

    # Textual types both as variables of instances.
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (MIN_WIDTH, "-narrow"), (100, "-framed"), (160, "-huge")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-short"), (MIN_HEIGHT, "-low"), (20, "-tall"), (30, "-roomy")]  # noqa: RUF012

    def compose(self) -> ComposeResult:
        width, height = self.app.size
        # Set before there are widgets: otherwise Textual styles each of them twice.
        for size, breakpoints in ((width, self.HORIZONTAL_BREAKPOINTS), (height, self.VERTICAL_BREAKPOINTS)):
            self.add_class(max(least for least in breakpoints if least[0] <= size)[1])
        yield TitleLine()
        yield from self.compose_content()
        yield KeyFooter()
        yield TooSmall()

    def compose_content(self) -> ComposeResult:
        yield from ()

    def _extend_compose(self, widgets: list[Widget]) -> None:
        """Put Textual's toasts after the title, and so above it: both are docked at the top."""
        super()._extend_compose(widgets)
        widgets.sort(key=lambda widget: isinstance(widget, ToastRack))

    def on_screen_resume(self) -> None:
        self.qos.show_title()
        self.refresh_bindings()

    def on_unmount(self) -> None:
        """Remove the watchers of this screen, which Textual keeps."""
        watchers: dict[str, list[tuple[Any, Any]]] = getattr(self.app, "__watchers", {})
        for entries in watchers.values():
            entries[:] = [entry for entry in entries if entry[0] is not self]

    @property
    def not_in_footer(self) -> Collection[str]:
        """Return the verbs of actions that are impossible now: their keys only say why."""
        return ()

    @property
    def active_bindings(self) -> dict[str, ActiveBinding]:
        active, hidden = super().active_bindings, self.not_in_footer
        for key, (_, binding, *_) in active.items():
            if binding.action in hidden:
                active[key] = active[key]._replace(binding=replace(binding, show=False))
        return active

    @property
    def unsaved(self) -> bool:
        """Return whether typed values would be lost by leaving."""
        return False

    @property
    def leave_question(self) -> str:
        """Return the question that is asked before the UI is left; "" for none."""
        return "The changes are not saved. Leave anyway?" if self.unsaved else ""

    no_notes = "there are no notes"

    def notes_now(self) -> list[str]:
        return []

    def action_notes(self) -> None:
        """Show the notes in a dialog, or say that there are none."""
        if notes := self.notes_now():
            self.qos.show_text("Notes", notes)
        else:
            self.qos.notify(self.no_notes)

    def action_back(self) -> None:
        self.dismiss()


class BuiltInBackground(Generic[BuiltT]):
    """A screen whose content a thread builds from the newest view model, one content at a time."""

    _view_model: ViewModel
    """The view model of the shown content."""
    _newest: ViewModel
    """The newest view model, which may not be shown yet."""
    _is_building = _is_stale = False

    @abstractmethod
    def build(self, view_model: ViewModel) -> BuiltT:
        """Build the content; runs in a thread. May raise QosError."""

    @abstractmethod
    def show_built(self, built: BuiltT | QosError) -> None:
        """Show the content of `_view_model`, or why it could not be built."""

    def rebuild(self) -> None:
        """Build the content from the newest view model, now or after the one that is being built."""
        self._is_stale = self._is_building
        if not self._is_building:
            self._is_building = True
            view_model, screen = self._newest, cast("Screen[Any]", self)
            run_in_background(screen, partial(self.build, view_model), partial(self._take, view_model))

    def _take(self, view_model: ViewModel, built: BuiltT | QosError) -> None:
        self._is_building, self._view_model = False, view_model
        self.show_built(built)
        if self._is_stale:
            self.rebuild()

    def follow(self, view_model: ViewModel | None) -> None:
        """Show a newer view model; this is what a screen watches the app's view model with."""
        if view_model is not None and view_model is not self._newest:
            self._newest = view_model
            self.rebuild()
