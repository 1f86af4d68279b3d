"""What reaches a terminal, and what a pipe gets unchanged."""

import io

import pytest

from kubectl_qos.cli import output

NAME = "web\x1b]0;owned\x07\u202e\tb"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        ('jsonpath={.name}{"\\n"}', "web\\x1b]0;owned\\x07\\x202e\tb\n"),
        ("custom-columns=NAME:.name", "NAME\nweb\\x1b]0;owned\\x07\\x202e\tb\n"),
    ],
)
def test_a_template_prints_no_escapes_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, template: str, shown: str
) -> None:
    for stream, expected in ((Terminal(), shown), (io.StringIO(), NAME)):
        monkeypatch.setattr("sys.stdout", stream)
        output.print_document({"name": NAME}, template)
        assert expected in stream.getvalue()
        assert ("\x1b" in stream.getvalue()) is not stream.isatty()
