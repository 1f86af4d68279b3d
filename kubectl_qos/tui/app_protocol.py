"""What screens ask of the app. They know it by this alone, so that the app may know them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol, cast

from textual.app import App
from textual.screen import Screen

from kubectl_qos.cluster.source import Source
from kubectl_qos.config.settings import Settings
from kubectl_qos.config.state import UiState
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.tui.actions import Keys
from kubectl_qos.tui.follower import FollowStatus
from kubectl_qos.tui.go_to import Detail, Navigation
from kubectl_qos.tui.view_model import ViewModel
from kubectl_qos.tui.write_service import WriteService


class Host(Protocol):
    """The app, as screens see it."""

    @property
    def source(self) -> Source:
        """Where the facts come from."""

    @property
    def facts(self) -> ViewModel | None:
        """What is known now, None before the first answer."""

    @property
    def status(self) -> FollowStatus:
        """How asking goes."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What there is to say about the source."""

    @property
    def settings(self) -> Settings:
        """What the person's file says."""

    @property
    def state(self) -> UiState:
        """What the last run left."""

    @property
    def keys(self) -> Keys:
        """The keys of actions."""

    @property
    def navigation(self) -> Navigation:
        """Where the person has been."""

    @property
    def writing(self) -> WriteService:
        """Who may write where, and what was written."""

    def show_title(self) -> None:
        """Fill the title lines of all open screens."""

    def as_of(self, facts: ViewModel) -> str:
        """When facts were taken, for screens that do not follow them."""

    def open(self, detail: Detail, pod: Pod) -> None:
        """Open a screen about a pod."""

    def edit(self, pod: Pod) -> None:
        """Open the edit screen of a pod."""

    def read(self, title: str, lines: Iterable[str]) -> None:
        """Show a text over the screen."""

    def tell(self, text: str, *, wrong: bool = False) -> None:
        """Say in passing how something went."""

    def copy(self, text: str, what: str) -> None:
        """Hand a text to the clipboard."""

    def ask_and_save(
        self,
        what: str,
        name: str,
        text_for: Callable[[Path], str],
        saved: Callable[[], None] | None = None,
    ) -> None:
        """Ask for a file name and write the file."""

    def push_screen(self, screen: Screen[Any], callback: Callable[[Any], None] | None = None) -> Any:
        """Put a screen above this one; the callback gets its answer."""

    def go_to_context(self, name: str | None) -> None:
        """Go to another cluster."""

    def leave(self) -> None:
        """Leave the UI; asks first where something is not saved."""

    def action_previous(self) -> None:
        """The place before this one."""

    def action_undo(self) -> None:
        """What was applied, and taking it back."""

    def action_help(self) -> None:
        """Keys, columns and marks."""


def host(app: App[Any]) -> Host:
    """The app of a screen or widget, by what it can be asked."""
    return cast("Host", app)
