"""The protocol, by processes as kubectl starts them: lines, a directive, silence, and always success."""

import os
import stat
import subprocess
import sys
from collections.abc import Mapping

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kubectl_qos.cli import completion as protocol
from kubectl_qos.cli.commands import COMMANDS
from kubectl_qos.cli.completion import complete
from kubectl_qos.cli.completion.candidates import Completion, Completions
from kubectl_qos.cli.main import build_parser
from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.kubectl import KUBECTL, needs_kubectl
from tests.completion.installed import Bin
from tests.completion.offers import SHORT_SECONDS, lines

posix_only = pytest.mark.skipif(os.name == "nt", reason="the script of Windows is another one")


@posix_only
@pytest.mark.parametrize("words", [["top", "--demo", "pod/db"], [], ["=", "-"]])
def test_the_script_answers_as_the_program_does(installed: Bin, words: list[str]) -> None:
    by_script = installed.run("kubectl_complete-qos", *words)
    assert (by_script.returncode, by_script.stderr) == (0, "")
    assert by_script.stdout.splitlines() == lines(*words)
    by_program = installed.run("kubectl-qos", "__complete", *words)
    assert (by_program.returncode, by_program.stdout) == (0, by_script.stdout)


@posix_only
def test_the_program_of_pip_answers_the_same(installed: Bin) -> None:
    main = "import sys; from kubectl_qos.cli.completion import main; sys.exit(main())"
    installed.program("kubectl_complete-qos", f'#!/bin/sh\nexec "{sys.executable}" -c "{main}" "$@"\n')
    assert installed.run("kubectl_complete-qos", "expl").stdout.splitlines() == lines("expl")


@needs_kubectl
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["simulate", "--demo", ""], ["node/", ":6"]),
        (["top", "-o=w"], ["wide", ":4"]),
        (["explain", "--demo", "pod/db-1"], ["pod/db-1\tworker-1", ":4"]),
        (["explain", "-f", ""], ["yaml", "yml", "json", ":8"]),
        (["nonsense", ""], [":4"]),
    ],
)
def test_kubectl_hands_it_on(installed: Bin, words: list[str], expected: list[str]) -> None:
    assert KUBECTL is not None
    done = installed.run(KUBECTL, "__complete", "qos", *words)
    assert done.returncode == 0
    assert done.stdout.splitlines() == expected


@needs_kubectl
def test_kubectl_offers_the_plugin_itself(installed: Bin) -> None:
    assert KUBECTL is not None
    done = installed.run(KUBECTL, "__complete", "qo")
    assert done.stdout.startswith("qos\t")


@posix_only
def test_a_plugin_for_credentials_has_no_terminal(installed: Bin) -> None:
    """Its questions would end up in the middle of a command line."""
    heard = installed.folder / "heard"
    installed.program("asks", f'#!/bin/sh\necho "password?" >&2\ncat > "{heard}"\necho garbage\n')
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": str(installed.folder / "asks"),
        "interactiveMode": "IfAvailable",
    }
    config = write(installed.home / "config", kubeconfig("https://127.0.0.1:1", user={"exec": plugin}))
    person, terminal = os.openpty()
    os.write(person, b"secret\n\x04")
    words = ("__complete", "--kubeconfig", str(config), "explain", "pod/")
    done = installed.run("kubectl-qos", *words, stdin=terminal)
    os.close(person)
    os.close(terminal)
    assert (done.returncode, done.stdout, done.stderr) == (0, ":4\n", "")
    assert heard.read_bytes() == b""


def test_what_takes_too_long_is_left_in_time(installed: Bin) -> None:
    code = (
        "import threading; from kubectl_qos.cli import completion as protocol;"
        "protocol.complete = lambda words: threading.Event().wait();"
        f"protocol.MAX_SECONDS = {SHORT_SECONDS}; raise SystemExit(protocol.answer(['top', '']))"
    )
    done = installed.run(sys.executable, "-c", code)
    assert (done.returncode, done.stdout, done.stderr) == (0, ":4\n", "")


@posix_only
def test_what_went_wrong_is_in_the_file_that_is_named_for_it(installed: Bin) -> None:
    log = installed.folder / "log"
    variables = {"BASH_COMP_DEBUG_FILE": str(log)}
    done = installed.run("kubectl-qos", "__complete", "explain", "pod/", variables=variables)
    assert (done.returncode, done.stdout, done.stderr) == (0, ":4\n", "")
    assert "no kubeconfig found" in log.read_text()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    unwritable = {"BASH_COMP_DEBUG_FILE": str(installed.folder)}
    assert installed.run("kubectl-qos", "__complete", "ex", variables=unwritable).stdout.startswith("explain")


@posix_only
def test_nothing_is_written_at_home(installed: Bin) -> None:
    installed.home.chmod(0o555)
    variables = {"KUBECTL_QOS_STATE": str(installed.home / "state")}
    for words in (["undo", ""], ["top", ""], ["--context", ""]):
        done = installed.run("kubectl-qos", "__complete", *words, variables=variables)
        assert (done.returncode, done.stderr) == (0, "")
    assert not list(installed.home.iterdir())


@posix_only
@pytest.mark.parametrize("variables", [{"LANG": "C", "PYTHONIOENCODING": "ascii"}, {"LC_ALL": "POSIX"}])
def test_names_beyond_ascii_arrive_in_any_locale(installed: Bin, variables: Mapping[str, str]) -> None:
    config = write(installed.home / "config", kubeconfig("https://127.0.0.1:1", context="grün"))
    given_flags = ("--kubeconfig", str(config), "--context", "gr")
    assert (
        installed.run("kubectl-qos", "__complete", *given_flags, variables=variables).stdout == "grün\n:4\n"
    )


def test_nothing_slow_is_imported() -> None:
    lines_of_words = [["ex"], ["top", "--sort-by", ""], ["--demo", "explain", "pod/"]]
    code = (
        "import sys; from kubectl_qos.cli.completion import complete;"
        f"print(*(complete(words).text() for words in {lines_of_words}));"
        "print(*sorted(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert loaded.isdisjoint({"textual", "rich", "kubernetes", "asyncio", "aiohttp"})
    assert "urllib3" not in loaded


def test_a_defect_is_no_answer_and_no_noise(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_: object) -> Completions:
        raise RuntimeError("a defect")

    monkeypatch.setattr("kubectl_qos.cli.completion.complete", broken)
    assert protocol._complete_quietly(["top"]).text() == ":4\n"
    assert "a defect" in capsys.readouterr().err


def test_long_words_about_a_candidate_are_cut() -> None:
    text = Completions((Completion("a", "x" * 200), Completion("b", "one\n  two\t\x1b[0m"))).text()
    first, second, _ = text.splitlines()
    assert first == f"a\t{'x' * 79}…"
    assert second == "b\tone two [0m"


_KNOWN_WORDS = st.sampled_from(
    [
        *COMMANDS,
        *build_parser()._option_string_actions,
        *(
            "pod/",
            "node/worker-1",
            "nodes",
            "deploy",
            "--",
            "-",
            "--=",
            "=",
            "-=",
            "-c=",
            "-Aw",
            "-nshop",
            "",
        ),
        *(
            "--grow",
            "--assume",
            "-c",
            "--class=",
            "--sort-by",
            "--requests",
            "pod/db-1:",
            "cgroupVersion=",
            "a,b=",
        ),
    ]
)


@given(st.lists(_KNOWN_WORDS | st.text(max_size=8), max_size=6))
@example(["undo", "\ud800"])
@example(["--grow", "pod/\n:"])
def test_any_words_have_an_answer_in_the_protocol(words: list[str]) -> None:
    *candidates, last = Completions.text(_of_demo(words)).splitlines()
    assert last in {":0", ":4", ":6", ":8", ":16"}
    for line in candidates:
        value, _, about = line.partition("\t")
        assert value
        assert value.isprintable()
        assert about.isprintable()
    "\n".join(candidates).encode()


def _of_demo(words: list[str]) -> Completions:
    return complete(["--demo", "--kubeconfig", os.devnull, *words])
