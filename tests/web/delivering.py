"""A UI that delivers a text as a download when a key is pressed, and opens what it should not."""

from __future__ import annotations

from io import StringIO

from textual.app import App

NAME = 'größe "1"; x=.csv'
LINK = "http://127.0.0.1:9/"
TEXT = "größe\n" * 50_000


class Delivering(App[None]):
    """Takes any key."""

    def on_key(self) -> None:
        self.open_url("javascript:alert(1)")
        self.open_url(LINK)
        self.deliver_text(StringIO(TEXT), save_filename=NAME)


if __name__ == "__main__":
    Delivering().run()
