"""What reaches a terminal, and what a pipe gets unchanged."""

import io

import pytest

from kubectl_qos.cli import output

NAME = "web\x1b]0;owned\x07\u202e\tb"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_sentences_fit_a_terminal_but_commands_stay_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    command = "to raise it: kubectl qos fix pod/search-0 -n shop"
    for stream, shown in ((Terminal(), "words that are\n  longer\n"), (io.StringIO(), "that are longer\n")):
        monkeypatch.setattr("sys.stderr", stream)
        output.notes(["nine words that are longer", command])
        assert stream.getvalue().endswith(f"{shown}{command}\n")


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


def test_first_rows_are_above_the_count_until_something_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr(output, "_PROGRESS_SECONDS", 60)
    output.progress()
    for rows in (["a", "b"], ["c"]):
        output.show_first_rows(rows)
    output.note("done")
    output.show_first_rows(["late"])
    dim = "\x1b[2m{}\x1b[0m\n".format
    assert terminal.getvalue() == (
        f"\r\x1b[J{dim('a')}{dim('b')}\r\x1b[2A\x1b[J{dim('c')}\r\x1b[1A\x1b[Jdone\n"
    )
