"""One word for one thing: the field's words, and none that only this project had for them.

`make test` shows each place as file:line, with the word that people know.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import pytest

ROOT = Path(__file__).parents[2]

NOT_YET: Final = frozenset(
    [
        "kubectl_qos/cli",
        "tests/cli",
        "tests/end_to_end",
        "docs",
    ]
)
"""Places that still have such words; none when all is renamed."""

PLACES = (
    *sorted(
        f"{folder}/{path.name}"
        for folder in ("kubectl_qos", "tests")
        for path in (ROOT / folder).iterdir()
        if path.suffix == ".py" or (path.is_dir() and path.name != "__pycache__")
    ),
    "benchmarks",
    "docs",
    "release",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "ARCHITECTURE.md",
)

PARTS: Final = {
    "anew": "again, recreated",
    "ask": "request, prompt, dialog",
    "asked": "requested",
    "asking": "loading",
    "asks": "requests",
    "besides": "also",
    "chronicle": "event list",
    "door": "auth",
    "entitle": "set_title",
    "feed": "stream",
    "foot": "footer",
    "grower": "growing container",
    "happenings": "event list",
    "harmless": "escape",
    "heir": "subclass",
    "heirs": "subclasses",
    "hindered": "blocked",
    "impatient": "request_once",
    "inquest": "kill analyzer",
    "keeper": "manager",
    "keepers": "managers",
    "land": "apply",
    "landed": "applied",
    "landing": "apply, strategy",
    "landings": "strategies",
    "lands": "applies",
    "lister": "list worker",
    "met": "reached",
    "overstepped": "violated",
    "poke": "notify",
    "rehearsal": "dry run",
    "rehearsals": "dry runs",
    "rehearse": "dry_run",
    "rehearsed": "dry_run",
    "road": "strategy",
    "sheet": "dialog",
    "situation": "node state",
    "spelled": "formatted",
    "spelling": "flag syntax",
    "standing": "apply state",
    "surroundings": "related objects",
    "tabled": "table view",
    "taker": "callback",
    "tell": "log, notify",
    "tells": "logs, notifies",
    "tenant": "pod state",
    "told": "logged, notified",
    "topic": "code",
    "turned": "reversed",
    "verdict": "finding",
    "verdicts": "findings",
    "wanting": "missing",
    "wish": "options, request",
    "wishes": "options",
}
"""Words that no identifier has as a part, with the field's."""

CLASSES: Final = {
    "Asked": "Request",
    "Asking": "Poller",
    "Building": "ReportBuilder",
    "By": "Cause",
    "Care": "ImportanceRules",
    "Chronicle": "part of Source",
    "Following": "Informer",
    "Foot": "Footer",
    "Grower": "GrowingContainer",
    "Happenings": "EventList",
    "Keeper": "Manager",
    "Landing": "Strategy",
    "Later": "Future",
    "Lister": "Pager",
    "Member": "ContainerState",
    "Met": "LimitHit",
    "Moment": "Update",
    "Question": "ListWatch",
    "Rehearsed": "DryRunResult",
    "Room": "BindingGroup",
    "Shown": "TableView",
    "Sink": "EventHandler",
    "Stale": "Conflict",
    "Stop": "Location",
    "Sure": "Confidence",
    "Surroundings": "RelatedObjects",
    "Tabled": "TableCommand",
    "Taker": "Callback",
    "Tenant": "PodState",
    "Told": "the name of its message",
    "Topic": "Code",
    "Unsure": "UnknownOutcome",
    "Way": "Strategy",
    "Weight": "Severity",
    "Whose": "Scope",
    "Wish": "SetOptions, SimulationOptions",
    "Written": "ApplyResult",
    "_Inquest": "KillAnalyzer",
}

FUNCTIONS: Final = {
    "asked": "a verb",
    "at_once": "request_once",
    "bear_silence": "set_read_timeout",
    "does_without": "is_optional",
    "guarded": "exit_code_for",
    "harmless": "escape",
    "impatient": "without_retries",
    "in_step": "synced",
    "say": "notify",
    "tell": "log",
    "told": "log",
}

MODULES: Final = frozenset(
    f"kubectl_qos/{folder}/{name}.py"
    for folder, names in {
        "cli": "wish land watching verbosity verify_reading",
        "cli/grammar": "landing",
        "cli/complete": "completing offer place position table",
        "cluster": "answers refusals surroundings nearby missing census prefetch spans rewriting nesting"
        " problems follow watch lists feed",
        "cluster/access": "faults usable header_values pools changing",
        "edit": "landing stall following forecast verdict verdicts spelling replacement ownership resizing"
        " journal",
        "k8s": "keepers kind_words sharing settings rights",
        "qos": "situation filling",
        "present": "words amounts marks bars",
        "config": "folders document",
        "tui": "standing asking situations deaths around change landing writing host facts saving exports"
        " patterns commands contexts",
        "tui/lists": "lister fitting side",
        "tui/screens": "browsing once choose details landing",
        "tui/widgets": "answers ways watching why fold victims",
        "web": "door visitor child",
    }.items()
    for name in names.split()
)

PROSE: Final = {
    r"\bland(ed|ing|ings|s)?\b": "apply, how to apply",
    r"\brehears(e|ed|es|al|als|ing)\b": "dry run",
    r"\bwish(es|ed)?\b": "options, request",
    r"\bkeepers?\b": "manager",
    r"\bsurroundings\b": "related objects",
    r"\bheirs?\b": "subclass",
    r"\boverstepped\b": "violated",
    r"\bhindered\b": "blocked",
    r"\banew\b": "again, recreated",
    r"\binquest\b": "kill analyzer",
    r"\bverdicts?\b": "finding",
    r"\bgrowers?\b": "growing container",
    r"\bt(ake|akes|aken|aking|ook) (it|that|them|this|a change|changes) back\b": "undo, revert",
    r"\bt(ake|akes|aken|aking|ook) back\b": "undo, revert",
    r"\bthe same road\b": "the same way",
    r"\bpictures? of the screen\b": "screenshot",
    r"\bby [A-Z-]+ turned\b": "by RANK, ascending",
    r"0 is no end": "0 means no timeout",
    r"what must not be missed": "flags",
    r"the answer was not yes": "aborted",
    r"the only place there is": "no other contexts",
    r"the kernel kills pods, not what makes them": "--outlive takes a pod, not a workload",
    r"the server is only read from": "client: preview only, nothing is sent",
    r"take any certificate of the server": "skip server certificate verification",
    r"tell on stderr": "log verbosity",
    r"until so much is free that was not": "simulate kills until SIZE has been freed",
    r"how far it has come cannot be seen": "cannot read rollout status",
    r"it goes on by itself": "stopped waiting; the rollout continues",
    r"or nothing that is still remembered": "no recorded changes",
    r"something named was wanting": "a named object was not found",
    r"what is around it is not known yet": "still loading owners and quotas",
    r"hold what is shown as it is": "pause or resume updates",
    r"give ours up and edit what is there now": "discard mine, reload",
    r"no pod rolls": "no pods are replaced",
    r"keys are its heirs": "bindings live in the subclass",
    r"files are no cluster": "not supported for files",
    r"may have nothing to say for so long": "set the read timeout",
    r"who may come in": "authentication",
    r"what comes, and what was": "simulation and kill history",
    r"stops the looking": "stops watching only; the change goes on",
    r"which cluster, as whom and how": "use kubectl's connection flags",
    r"how little has to happen": "how close the pod is to being killed",
    r"hands remember": "k9s users press them by reflex",
    r"have the name of a room": "action names are screen.verb",
    r"usage without pods ranks nothing": "usage data is useless without pod access",
    r"if not said\b": "(default)",
    r"asks nobody": "without contacting a server",
    r"one Mi less would not do": "to the smallest sufficient whole Mi",
    r"for who may apply it": "for someone with permission to apply it",
    r"who else was in the running": "the other candidates",
    r"asked for the memory that there was not": "triggered the OOM",
}
"""Turns of phrase that no text, comment or message has, with a colleague's."""

ANY_PROSE: Final = re.compile("|".join(PROSE), re.IGNORECASE)


class Allowed(NamedTuple):
    """Words that mean something else there."""

    place: str
    line: str
    reason: str


EXCEPTIONS: Final = (
    Allowed("tests/distribution/test_glossary.py", "", "the list itself"),
    Allowed("", r"\bfeed\(", "the method of an incremental parser, as in html.parser"),
    Allowed("", r"\.tell\(\)", "the method of a file"),
    Allowed("", r"\basked(:|=|`|\.)", "the public ContainerPrediction.asked: what the runtime is asked for"),
    Allowed("tests/qos", "oc-crit-grower", "the name of a recorded container"),
)


@cache
def files(place: str) -> tuple[Path, ...]:
    path = ROOT / place
    if path.is_file():
        return (path,)
    found = (one for one in path.rglob("*") if one.suffix in {".py", ".md", ".tcss", ".toml", ".yaml"})
    return tuple(sorted(one for one in found if "__pycache__" not in one.parts and "data" not in one.parts))


def is_exception(name: str, line: str) -> bool:
    return any(name.startswith(one.place) and re.search(one.line, line) for one in EXCEPTIONS)


def hits(place: str) -> Iterator[str]:
    """Each word of ours in these files: where it is, and the field's."""
    for path in files(place):
        name = path.relative_to(ROOT).as_posix()
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        found = list(prose(text))
        if path.suffix == ".py":
            found += [*identifiers(text), *definitions(text)]
        for number, word, better in found:
            if not is_exception(name, lines[number - 1]):
                yield f"{name}:{number}: {word} → {better}"


def prose(text: str) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        if ANY_PROSE.search(line):
            for pattern, better in PROSE.items():
                for match in re.finditer(pattern, line, re.IGNORECASE):
                    yield number, match[0], better


def identifiers(text: str) -> Iterator[tuple[int, str, str]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            for part in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", token.string):
                if part.lower() in PARTS:
                    yield token.start[0], token.string, PARTS[part.lower()]


def definitions(text: str) -> Iterator[tuple[int, str, str]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef) and node.name in CLASSES:
            yield node.lineno, node.name, CLASSES[node.name]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name in FUNCTIONS:
            yield node.lineno, node.name, FUNCTIONS[node.name]


@pytest.mark.parametrize("place", [place for place in PLACES if place not in NOT_YET])
def test_the_fields_words(place: str) -> None:
    assert not list(hits(place))


def test_modules_have_the_fields_names() -> None:
    left = {name for name in MODULES if (ROOT / name).exists()}
    assert not {name for name in left if not name.startswith(tuple(NOT_YET))}


def test_words_of_ours_are_found() -> None:
    text = "class Wish:\n    def tell(self, is_asked): ...\n# it lands by MEMORY turned\n"
    found = {word for _, word, _ in (*prose(text), *identifiers(text), *definitions(text))}
    assert found == {"Wish", "tell", "is_asked", "lands", "by MEMORY turned"}


def test_no_exception_is_left_over() -> None:
    found = [path for place in PLACES for path in files(place)]
    for one in EXCEPTIONS:
        below = (path for path in found if path.relative_to(ROOT).as_posix().startswith(one.place))
        assert any(re.search(one.line, path.read_text(encoding="utf-8")) for path in below), one
