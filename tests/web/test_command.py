"""`kubectl qos web` as a command: its flags, what it refuses, and what it hands on to the UI."""

from __future__ import annotations

import argparse
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_qos.cli.flags import given_shared_flags
from kubectl_qos.cli.main import parse
from kubectl_qos.cli.options import SourceOptions, parse_options
from tests.end_to_end.command import TIMEOUT_SECONDS, Run, environment
from tests.web.serving import served

TABLES: Final = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))

HOSTILE = TABLES["hostile"]
VALUED = TABLES["valued"]
REPEATED = ["--filename", "--as-group", "--assume", "--feature-gates"]
SWITCHES = TABLES["switches"]


def shared(namespace: argparse.Namespace) -> SourceOptions:
    """The options that are not those of `web` itself."""
    return parse_options(SourceOptions, namespace)


VALUES = st.one_of(
    st.sampled_from(HOSTILE), st.text(st.characters(exclude_categories=["Cs"], min_codepoint=1))
)
WORDS = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from([*(flag for flag, _ in VALUED if flag.startswith("--")), *REPEATED]), VALUES
        ).map(lambda pair: f"{pair[0]}={pair[1]}"),
        st.sampled_from(SWITCHES),
    ).filter(lambda word: not word.endswith("=--")),
    max_size=8,
)


@settings(max_examples=40, deadline=None)
@given(WORDS)
def test_what_is_handed_on_says_the_same_when_parsed(words: list[str]) -> None:
    parsed = parse(["web", *words])
    assert shared(parse(given_shared_flags(parsed))) == shared(parsed)
    assert shared(parse(given_shared_flags(parse([*words, "web"])))) == shared(parsed)


@pytest.mark.parametrize(("flag", "name"), VALUED)
def test_each_flag_is_handed_on(flag: str, name: str) -> None:
    for value in ("x", "a b'\"$(id)"):
        (word,) = given_shared_flags(parse(["web", flag, value]))
        assert word.endswith(f"={value}")
        assert getattr(parse([word]), name) == value


@pytest.mark.parametrize(("arguments", "sentence"), TABLES["wrong"])
def test_wrong_words_are_refused(run: Run, arguments: list[str], sentence: str) -> None:
    done = run("web", *arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(sentence)


def test_readonly_and_allow_writes_contradict_each_other(run: Run) -> None:
    done = run("--readonly", "web", "--demo", "--allow-writes")
    assert (done.code, done.err) == (2, "error: --readonly and --allow-writes cannot be used together\n")


def test_what_cannot_be_read_is_said_before_anything_is_served(run: Run) -> None:
    done = run("web", "-f", "none.yaml")
    assert (done.code, done.out, done.err) == (1, "", 'error: the path "none.yaml" does not exist\n')
    done = run("web")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: no kubeconfig found")


def test_a_port_that_is_taken_is_one_sentence(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("web", "--demo", f"--port={port}")
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        f"error: cannot listen on 127.0.0.1 port {port}: Address already in use\n"
        "hint: --port 0 takes any free port\n"
    )


def test_an_address_of_another_machine_is_one_sentence(run: Run) -> None:
    done = run("web", "--demo", "--address=192.0.2.1", "--port=0")
    assert (done.code, done.out) == (1, "")
    assert done.err == "error: cannot listen on 192.0.2.1 port 0: Cannot assign requested address\n"


async def test_an_address_that_others_reach_is_warned_about(tmp_path: Path) -> None:
    async with served(tmp_path, "--demo", "--address=0.0.0.0") as server:
        assert server.base == f"http://localhost:{server.port}/"
        assert await server.stop() == 130
        assert server.process.stderr is not None
        said = await server.process.stderr.read()
    assert said.startswith(
        b"warning: everybody who reaches 0.0.0.0 and has the URL can see what these credentials"
    )


WITHOUT = """
import sys
sys.modules["textual_serve"] = None
from kubectl_qos.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def test_without_the_extra_it_is_said_how_to_get_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, "web", "--demo"],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
        cwd=tmp_path,
        env=environment(tmp_path),
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        done.stderr
        == "error: kubectl qos web needs textual-serve; pip install 'kubectl-qos[web]' brings it\n"
    )
