"""Every shell example of the documentation is run, and prints what is shown under it.

Those of each --help are on its page of docs/reference. A command is run as it is printed, with its own --demo
or -f, else with --demo added, as a newcomer would without a cluster. What cannot run here is named below with
the reason; a line of any other kind fails. New outputs are written with UPDATE_TEXTS=1.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
import yaml

from kubectl_qos.cli.commands import COMMANDS
from kubectl_qos.cli.main import parse
from kubectl_qos.cli.options import SourceOptions, parse_options
from kubectl_qos.cluster.files import DEMO_FILE
from tests.distribution import stage
from tests.distribution.shell_examples import examples, with_shown
from tests.end_to_end.command import Run
from tests.end_to_end.golden_text import UPDATE
from tests.end_to_end.test_pages import PAGES as WITH_A_STAGE
from tests.host.fake_node import FakeNode

TABLES: Final = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))

ROOT = Path(__file__).parents[2]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md"))]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")

ONLY_PARSED = TABLES["only_parsed"]
"""Commands and flags that cannot be run here; that the parser takes them is tried."""

NOT_OURS = TABLES["not_ours"]
"""Lines that are not about a command of ours, or happen elsewhere."""

PIPED_IN: dict[str, Callable[[], str]] = {
    r"kubectl get \S+ .*-o (json|yaml)": lambda: DEMO_FILE.read_text(encoding="utf-8"),
    r"ssh \S+ (sudo )?(journalctl -k.*|dmesg)": stage.kernel_log,
}
"""What another program would print into a pipe."""


RAN: Final[set[str]] = set()
"""Commands that have run on another page, and have nothing to do with its files: once is enough."""
OF_FILES: Final = re.compile(r" -f|[<>|]|=\S*/|\.(ya?ml|json)|--(write|bundle|apply|kernel-log)| undo")


class Stage:
    """Runs examples one after the other in one folder."""

    def __init__(self, folder: Path, node: FakeNode) -> None:
        self.node = node
        self._run = Run(folder)

    def run(self, command: str) -> tuple[int, str]:
        """The exit code and all that is printed; of a command that cannot run, that the parser takes it."""
        hides_errors = " 2> /dev/null" in command
        line, _, target = command.replace(" 2> /dev/null", "").partition(" > ")
        *before, line = line.split(" | ")
        filters: list[str] = []
        while re.fullmatch(r"(head|tail) -n [+]?\d+|grep \S+", line):
            filters.insert(0, line)
            line = before.pop()
        words = our_words(line)
        if words is None:
            check_that_it_is_known(command)
            return 0, ""
        given = ""
        if before:
            (maker,) = (make for pattern, make in PIPED_IN.items() if re.fullmatch(pattern, before[0]))
            given = maker()
        if is_only_parsed(words):
            return 0, ""
        code, out, err = self._run(*self._placed(words), given=given)
        if target:
            path = self._run.home / target.removeprefix("~/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(out, encoding="utf-8")
            out = ""
        for program in filters:
            out = filtered(out, program)
        return code, out + ("" if hides_errors else err)

    def _placed(self, words: list[str]) -> list[str]:
        """With the demo in place of a cluster, and the recorded node in place of this machine."""
        options = parse([word for word in words if not word.startswith("-v=")])
        if options.command == "completion":
            return words
        if options.command == "host" and options.from_dump:
            return [*words, "-f", "dump.json"]
        if options.command == "host":
            return [*words, "--proc-root", str(self.node.proc), "--cgroup-root", str(self.node.cgroup)]
        source = parse_options(SourceOptions, options)
        reads_files = not source.is_cluster or getattr(options, "paths", None)
        return words if reads_files else [*words, "--demo"]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, FakeNode]:
    folder = tmp_path_factory.mktemp("examples") / "here"
    return folder, stage.build(folder)


@pytest.fixture
def on_stage(prepared: tuple[Path, FakeNode], tmp_path: Path) -> Stage:
    folder, node = prepared
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return Stage(tmp_path, node)


def our_words(line: str) -> list[str] | None:
    """The arguments of a command of ours, None for any other."""
    for start in ("kubectl qos", "kubectl-qos", "sudo kubectl-qos"):
        if line == start or line.startswith(f"{start} "):
            return shlex.split(line.removeprefix(start))
    return None


def is_only_parsed(words: list[str]) -> bool:
    """Whether it cannot run here; then the parser takes it all the same."""
    options = parse(words)
    given = {options.command, *(word.partition("=")[0] for word in words)}
    given |= {"--watch"} if "-w" in given else set()
    return bool(given & ONLY_PARSED.keys())


def check_that_it_is_known(command: str) -> None:
    target = re.fullmatch(r"make ([a-z-]+)", command)
    if target is not None:
        assert re.search(rf"^{target[1]}:", MAKEFILE, re.MULTILINE), f"the Makefile has no {target[1]}"
        return
    assert any(re.fullmatch(pattern, command) for pattern in NOT_OURS), f"unknown kind of line: {command}"


def filtered(text: str, command: str) -> str:
    """As head, tail or grep would let it through."""
    lines = text.splitlines(keepends=True)
    program, *_, last = command.split()
    if program == "grep":
        return "".join(line for line in lines if last in line)
    if last.startswith("+"):
        return "".join(lines[int(last) - 1 :])
    return "".join(lines[: int(last)] if program == "head" else lines[-int(last) :])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_example_of_a_page_runs_and_prints_what_is_shown(page: Path, on_stage: Stage) -> None:
    text = page.read_text(encoding="utf-8")
    printed: dict[int, str] = {}
    for one in examples(text):
        if one.shown is not None and page.parent.name == "docs" and page.stem in WITH_A_STAGE:
            continue
        if one.shown is None and one.command in RAN:
            continue
        code, out = on_stage.run(one.command)
        assert one.shown is not None or code == 0, f"line {one.line}: {one.command}\n{out}"
        if one.shown is not None:
            printed[one.line] = out
        elif not OF_FILES.search(one.command):
            RAN.add(one.command)
    if os.environ.get(UPDATE):
        page.write_text(with_shown(text, printed), encoding="utf-8")
    else:
        assert with_shown(text, printed) == text, f"if it is right: {UPDATE}=1 pytest {Path(__file__).name}"


def test_every_command_that_is_named_exists() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert set(re.findall(r"`kubectl[ -]qos ([a-z][a-z-]*)", text)) <= COMMANDS.keys()


def test_an_unknown_kind_of_line_is_refused(on_stage: Stage) -> None:
    with pytest.raises(AssertionError, match="unknown kind of line"):
        on_stage.run("make-believe install")
    with pytest.raises(ValueError, match="no program that is known"):
        examples("```sh\nfrobnicate --all\n```\n")
    with pytest.raises(ValueError, match="an explanation that is no comment"):
        examples("    kubectl qos next  who dies next\n")


def test_a_shell_reads_every_example() -> None:
    commands = [one.command for page in PAGES for one in examples(page.read_text(encoding="utf-8"))]
    done = subprocess.run(
        ["sh", "-n"], input="\n".join(commands), capture_output=True, text=True, check=False
    )
    assert done.stderr == ""


def test_no_reason_is_left_without_an_example() -> None:
    commands = [one.command for page in PAGES for one in examples(page.read_text(encoding="utf-8"))]
    for pattern in NOT_OURS:
        assert any(re.fullmatch(pattern, command) for command in commands), pattern
