"""One word for one thing: the field's words, and none that only this project had for them.

`make test` shows each place as file:line, with the word that people know. The words: test_glossary.yaml.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import yaml

ROOT = Path(__file__).parents[2]

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

WORDS: Final[dict[str, dict[str, str]]] = yaml.safe_load(
    Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
)
PARTS, CLASSES, FUNCTIONS, PROSE = (WORDS[name] for name in ("parts", "classes", "functions", "prose"))
MODULES: Final = frozenset(
    f"kubectl_qos/{folder}/{name}.py" for folder, names in WORDS["modules"].items() for name in names.split()
)

ANY_PROSE: Final = re.compile(r"\b(?:" + "|".join(word.lower().removeprefix(r"\b") for word in PROSE) + ")")
"""Of a text in lower case, and with one boundary before all of them: each of that halves the time."""
DEFINITION: Final = re.compile(
    rf"^ *(?:class (?P<class>{'|'.join(CLASSES)})|(?:async )?def (?P<function>{'|'.join(FUNCTIONS)}))\b",
    re.MULTILINE,
)
NAME: Final = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+")


class Allowed(NamedTuple):
    """Words that mean something else there."""

    place: str
    line: str
    reason: str


EXCEPTIONS: Final = (
    Allowed("tests/distribution/test_glossary.", "", "the list itself"),
    Allowed("", r"\bfeed\b", "the method of an incremental parser, as in html.parser"),
    Allowed("", r"\.tell\(\)", "the method of a file"),
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
        if ANY_PROSE.search(line.lower()):
            for pattern, better in PROSE.items():
                for match in re.finditer(pattern, line, re.IGNORECASE):
                    yield number, match[0], better


def identifiers(text: str) -> Iterator[tuple[int, str, str]]:
    if not {*map(str.lower, NAME.findall(text))} & PARTS.keys():
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            for part in NAME.findall(token.string):
                if part.lower() in PARTS:
                    yield token.start[0], token.string, PARTS[part.lower()]


def definitions(text: str) -> Iterator[tuple[int, str, str]]:
    for found in DEFINITION.finditer(text):
        name = found["class"] or found["function"]
        yield text.count("\n", 0, found.end()) + 1, name, (CLASSES if found["class"] else FUNCTIONS)[name]


def test_the_fields_words() -> None:
    assert not [hit for place in PLACES for hit in hits(place)]


def test_modules_have_the_fields_names() -> None:
    assert not [name for name in MODULES if (ROOT / name).exists()]


def test_words_of_ours_are_found() -> None:
    text = "class Wish:\n    def tell(self, is_asked): ...\n# it lands by MEMORY turned\n"
    found = {word for _, word, _ in (*prose(text), *identifiers(text), *definitions(text))}
    assert found == {"Wish", "tell", "is_asked", "lands", "by MEMORY turned"}


def test_no_exception_is_left_over() -> None:
    found = [path for place in PLACES for path in files(place)]
    for one in EXCEPTIONS:
        below = (path for path in found if path.relative_to(ROOT).as_posix().startswith(one.place))
        assert any(re.search(one.line, path.read_text(encoding="utf-8")) for path in below), one
