"""Commands and all that they print, to the letter: snapshots/text/transcripts.

A transcript is prose with indented commands. Lines behind `> ` are the input of the command above, the
others are what it prints: stdout, stderr behind `2> `, and `[N]` for an exit code other than 0. Its
commands run one after the other, at the time of the demo, in a folder of their own (what it has and its
clusters: stages.py). The only other programs are `cat > FILE`, `cat FILE` and, where a cluster can be
changed, `server` (changing.py). UPDATE_TEXTS=1 writes what is printed now.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from kubectl_qos import __version__
from kubectl_qos.cluster import live
from kubectl_qos.cluster.files import DEMO_TIME, FileSource
from tests.cluster.serving import Serve
from tests.end_to_end.changing import Cluster
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


def result(run: Run, cluster: Cluster | None, command: str, given: str) -> Done:
    """What a command does in the folder of the transcript."""
    for id_, name in cluster.ids().items() if cluster is not None else ():
        command = command.replace(name, id_.rpartition("-")[2])
    words = shlex.split(command)
    if cluster is not None and words[0] == "server":
        return Done(0, cluster(*words[1:]), "")
    if words[:2] == ["cat", ">"]:
        file = run.home / words[2]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(given)
        return Done(0, "", "")
    if words[0] == "cat":
        return Done(0, (run.home / words[1]).read_text(), "")
    assert words[:2] == ["kubectl", "qos"], command
    return run(*words[2:], given=given)


def played(run: Run, cluster: Cluster | None, text: str) -> str:
    """The transcript with what its commands print now."""
    lines = []
    for command, kept in blocks(text):
        if not command:
            lines.append(kept)
            continue
        done = result(run, cluster, command, kept)
        lines += [f"{INDENT}$ {command}", *(f"{INDENT}> {line}" for line in kept.splitlines())]
        printed = [*done.lines, *(f"2> {line}" for line in done.err.splitlines())]
        printed += [f"[{done.code}]"] if done.code else []
        assert all(line.isprintable() for line in printed), f"{command} writes to the terminal"
        printed = [everywhere_the_same(line, run.home) for line in printed]
        lines += [INDENT + (cluster.everywhere_the_same(line) if cluster else line) for line in printed]
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
    later = timedelta(hours=12 if name == "report" else 0)  # than what its dump has
    monkeypatch.setattr(FileSource, "now", lambda _: DEMO_TIME + later)
    monkeypatch.setattr(live, "RELATED_SECONDS", 60.0)  # A busy machine is no server that does not answer.
    staged = STAGES[name](run.home, serve) if name in STAGES else None
    cluster = staged if isinstance(staged, Cluster) else None
    path = Path("transcripts") / name
    assert_as_kept(str(path), played(run, cluster, (FOLDER / f"{path}.txt").read_text(encoding="utf-8")))
