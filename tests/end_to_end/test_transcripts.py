"""Commands and all that they print, to the letter: snapshots/text/transcripts.

A transcript is prose with indented commands. Lines behind `> ` are the input of the command above, the others
are what it prints: stdout, stderr behind `2> `, and `[N]` for an exit code other than 0. Its commands run one
after the other, at the time of the demo, in a folder of their own (what it has and its clusters: stages.py).
`cat > FILE` and `cat FILE` are the only other programs. UPDATE_TEXTS=1 writes what is printed now.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubectl_qos import __version__
from kubectl_qos.cluster.files import DEMO_TIME, FileSource
from tests.cluster.serving import Serve
from tests.end_to_end.command import Done, Run
from tests.end_to_end.golden_text import FOLDER, assert_as_kept
from tests.end_to_end.stages import STAGES

NAMES = sorted(path.stem for path in (FOLDER / "transcripts").glob("*.txt"))
INDENT = "  "
CHOICES = re.compile(r"\(choose from .*\)")
"""How argparse lists choices differs by the version of Python."""


def blocks(text: str) -> Iterator[tuple[str, str]]:
    """Each line that is kept as it is, and each command with its input in place of what it prints."""
    command, given = "", ""
    for line in [*text.splitlines(), ""]:
        if command and not line.startswith(INDENT):
            yield command, given
            command, given = "", ""
        if line.startswith(f"{INDENT}$ "):
            if command:
                yield command, given
            command, given = line.removeprefix(f"{INDENT}$ "), ""
        elif line.startswith(f"{INDENT}> "):
            given += f"{line.removeprefix(f'{INDENT}> ')}\n"
        elif not line.startswith(INDENT):
            yield "", line


def result(run: Run, command: str, given: str) -> Done:
    """What a command does in the folder of the transcript."""
    words = shlex.split(command)
    if words[:2] == ["cat", ">"]:
        file = run.home / words[2]
        file.parent.mkdir(exist_ok=True)
        file.write_text(given)
        return Done(0, "", "")
    if words[0] == "cat":
        return Done(0, (run.home / words[1]).read_text(), "")
    assert words[:2] == ["kubectl", "qos"], command
    return run(*words[2:], given=given)


def played(run: Run, text: str) -> str:
    """The transcript with what its commands print now."""
    lines = []
    for command, kept in blocks(text):
        if not command:
            lines.append(kept)
            continue
        done = result(run, command, kept)
        lines += [f"{INDENT}$ {command}", *(f"{INDENT}> {line}" for line in kept.splitlines())]
        printed = [*done.lines, *(f"2> {line}" for line in done.err.splitlines())]
        printed += [f"[{done.code}]"] if done.code else []
        assert all(line.isprintable() for line in printed), f"{command} writes to the terminal"
        lines += [INDENT + everywhere_the_same(line, run.home) for line in printed]
    return "\n".join(lines).rstrip("\n") + "\n"


def everywhere_the_same(line: str, home: Path) -> str:
    """Without what differs by the machine, the Python or the version."""
    line = line.replace(f"v{__version__}", "vVERSION").replace(
        f"kubectl-qos {__version__}", "kubectl-qos VERSION"
    )
    return CHOICES.sub("(choose from …)", line.replace(str(home), "HOME"))


@pytest.mark.parametrize("name", NAMES)
def test_commands_print_what_the_transcript_says(
    run: Run, serve: Serve, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FileSource, "now", lambda _: DEMO_TIME)
    if name in STAGES:
        STAGES[name](run.home, serve)
    path = Path("transcripts") / name
    assert_as_kept(str(path), played(run, (FOLDER / f"{path}.txt").read_text(encoding="utf-8")))
