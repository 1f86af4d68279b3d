"""Compare predictions with golden vectors made by running real Kubernetes code.

    python tests/golden/compare.py --cases CASES.jsonl.xz RESULTS...
    python tests/golden/compare.py quantity-dev.jsonl.xz

Prints, per field, the values checked and the mismatches, the first few of them in full, and as its last line
`N values checked, M mismatches`. The release is read from a results file's name (`v1.36-...`), or the file
is called `results-...`, begins with its releases and has a result of each for every case. Cases that a
real cluster refuses, or in which the real code panicked or changed its input, are counted apart and fail the
run only with --strict.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.golden import oracle

LEFT_OUT: Mapping[str, str] = {
    "mutated": "names the sections in which the real code changed its own input; sorts the cases here",
}
"""Fields of the result files that are not compared, each with the reason."""

REFUSALS = ("validation", "kubeletConfigErrors")
"""Lists of sentences: compared in refused cases as strictly as elsewhere, and sorted, because the real code
takes the resources of a container in the random order of a Go map."""

SHOWN_MISMATCHES = 5
STABLE_SORT_MOST = 12
_REFUSAL_PATHS = tuple(f"{kind}.{key}" for kind in ("pod", "qos", "node") for key in REFUSALS)
_VERSION = re.compile(r"^v(1\.\d+)-")
_OPENERS: Mapping[str, Any] = {".gz": gzip.open, ".xz": lzma.open}


@dataclass
class Tally:
    """What was checked so far; `examples` are the first mismatches in full."""

    checked: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    refused_checked: int = 0
    refused_wrong: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    refused_examples: list[str] = field(default_factory=list)

    def add_equal(self, fields: Mapping[str, int], *, refused: bool) -> None:
        for name, number in fields.items():
            self.checked[name] += number
            self.refused_checked += refused * number

    def add(self, where: str, leaf: Leaf, *, refused: bool) -> None:
        self.checked[leaf.field] += 1
        self.refused_checked += refused
        if leaf.equal:
            return
        (self.refused_wrong if refused else self.wrong)[leaf.field] += 1
        examples = self.refused_examples if refused else self.examples
        if len(examples) < SHOWN_MISMATCHES:
            examples.append(
                f"{where} {leaf.path}\n    real:      {leaf.real!r}\n    predicted: {leaf.predicted!r}"
            )


class Leaf(NamedTuple):
    """One value of the real result, and ours; `field` is the path without indices and keys of maps."""

    path: str
    field: str
    real: Any
    predicted: Any
    equal: bool


class _Absent:
    def __repr__(self) -> str:
        return "(absent)"


ABSENT = _Absent()


def leaves(real: Any, predicted: Any, path: str, field_: str, found: list[Leaf]) -> list[Leaf]:
    """Every scalar (and empty collection) that either side has, behind what was found before."""
    if isinstance(real, dict) and isinstance(predicted, dict) and (real or predicted):
        is_keyed = path.endswith(_KEYED)
        for key in {**real, **predicted}:
            name = "*" if is_keyed else key
            values = real.get(key, ABSENT), predicted.get(key, ABSENT)
            leaves(*values, f"{path}.{key}", f"{field_}.{name}", found)
    elif isinstance(real, list) and isinstance(predicted, list) and (real or predicted):
        for index, values in enumerate(zip_longest(real, predicted, fillvalue=ABSENT)):
            leaves(*values, f"{path}[{index}]", f"{field_}[]", found)
    else:
        equal = type(real) is type(predicted) and real == predicted
        found.append(Leaf(path, field_, real, predicted, equal))
    return found


_KEYED = (
    "requests",
    "limits",
    "overhead",
    "files",
    "unified",
    "hugePageLimit",
    "gates",
    "evictionRequest",
    "capacity",
    "reservation",
    "allocatableAbsolute",
    "AllocatableAbsolute",
)


def is_refused(real: Mapping[str, Any]) -> bool:
    """Whether a real cluster would never act on the case."""
    return bool(
        real.get("validation")
        or real.get("kubeletConfigErrors")
        or real.get("mutated")
        or b'"panic"' in msgspec.json.encode(real)
    )


def _sorted_within_ties(order: list[int], position: Mapping[int, int]) -> list[int]:
    """The order with neighbours that compare equal put in ascending order.

    Go's sort is unstable for more than twelve pods. Which pods are equal is the prediction's claim, so a
    wrong claim still shows as a wrong order or a wrong `ties`.
    """
    result: list[int] = []
    run: list[int] = []
    for index in order:
        if run and position[run[0]] != position[index]:
            result += sorted(run)
            run = []
        run.append(index)
    return result + sorted(run)


def read(path: Path, release: str = "") -> Iterator[dict[str, Any]]:
    """The JSON objects of a file, compressed or not; of a file of several releases, those of one."""
    releases = releases_of(path) if path.name.startswith("results-") else []
    with _OPENERS.get(path.suffix, open)(path, "rt") as lines:
        first = 1 + releases.index(release) if releases else 0
        for line in islice(lines, first, None, len(releases) or 1):
            yield json.loads(line)


@cache
def read_by_id(path: Path) -> Mapping[str, dict[str, Any]]:
    """The cases of a file, which nothing changes."""
    return {case["id"]: case for case in read(path)}


def releases_of(path: Path) -> list[str]:
    """The releases whose results a file has, which its first line or its name says."""
    if not path.name.startswith("results-"):
        return _VERSION.findall(path.name)
    with lzma.open(path, "rt") as lines:
        releases: list[str] = json.loads(next(lines))["releases"]
    return releases


def compare_results(cases: Path, results: Path, version: str, tally: Tally) -> None:
    by_id = read_by_id(cases)
    for real in read(results, version):
        case = by_id[real["id"]]
        predicted = oracle.run(case, version)
        if case["kind"] == "eviction" and len(case["pods"]) > STABLE_SORT_MOST:
            for signal in ("memory", "pid", "disk"):
                position = oracle.eviction_positions(case, signal, version)
                for side in (real, predicted):
                    order = _sorted_within_ties(side[signal]["order"], position)
                    side[signal] = {**side[signal], "order": order}
        _compare(f"{version} {real['id']}", real, predicted, tally)


def _compare(where: str, real: dict[str, Any], predicted: dict[str, Any], tally: Tally) -> None:
    refused = is_refused(real)
    kind = real["kind"]
    real = {key: value for key, value in real.items() if key not in LEFT_OUT}
    for key in REFUSALS:
        if key in real:
            real[key] = sorted(real[key])
    for section in {**real, **predicted}:
        path = f"{kind}.{section}"
        values = real.get(section, ABSENT), predicted.get(section, ABSENT)
        is_refused_case = refused and not path.startswith(_REFUSAL_PATHS)
        if ABSENT not in values and (text := _encoded(values[0])) == _encoded(values[1]):
            tally.add_equal(_fields(path, text), refused=is_refused_case)
            continue
        for leaf in leaves(*values, path, path, []):
            tally.add(where, leaf, refused=is_refused_case)


_encoded = msgspec.json.Encoder(order="deterministic").encode


@cache
def _fields(path: str, text: bytes) -> Mapping[str, int]:
    """How many values each field of a section has; most sections are those of the release before."""
    found: Counter[str] = Counter()
    _count(json.loads(text), path, path, found)
    return found


def _count(value: Any, name: str, field_: str, found: Counter[str]) -> None:
    """Count the leaves of a value that both sides have; `name` is the last part of its path."""
    if isinstance(value, dict) and value:
        is_keyed = name.endswith(_KEYED)
        for key, one in value.items():
            _count(one, key, f"{field_}.*" if is_keyed else f"{field_}.{key}", found)
    elif isinstance(value, list) and value:
        for one in value:
            _count(one, "", f"{field_}[]", found)
    else:
        found[field_] += 1


def report(tally: Tally) -> None:
    """The table by field, the examples, and the last line."""
    width = max((len(name) for name in tally.checked), default=0)
    for name in sorted(tally.checked):
        wrong = tally.wrong[name]
        refused = tally.refused_wrong[name]
        note = f"   ({refused} more in refused cases)" if refused else ""
        print(f"{name:<{width}}  {tally.checked[name]:>8} checked  {wrong:>6} mismatches{note}")
    for name, reason in LEFT_OUT.items():
        print(f"{name:<{width}}  not compared: {reason}")
    for example in (*tally.examples, *tally.refused_examples):
        print(example)
    refused = sum(tally.refused_wrong.values())
    total = sum(tally.wrong.values()) + refused
    if tally.refused_checked:
        print(
            f"of these {refused} in refused cases ({tally.refused_checked} values of refused cases checked)"
        )
    print(f"{sum(tally.checked.values())} values checked, {total} mismatches")


def main(arguments: list[str] | None = None) -> int:
    """Exit code 1 if anything differs (in refused cases: only with --strict)."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("results", nargs="+", type=Path, help="result or quantity files")
    parser.add_argument("--cases", type=Path, help="the inputs of the result files")
    parser.add_argument("--release", help="instead of those of the file, such as 1.36")
    parser.add_argument("--strict", action="store_true", help="refused cases fail the run too")
    options = parser.parse_args(arguments)
    tally = Tally()
    for path in options.results:
        if path.name.startswith("quantity"):
            for real in read(path):
                _compare(real["id"], real, oracle.quantity(real), tally)
            continue
        versions = [options.release] if options.release else releases_of(path)
        if not versions:
            parser.error(f"{path.name}: no release in the name (v1.36-...); give --release")
        if options.cases is None:
            parser.error(f"{path.name} needs --cases CASES.jsonl.xz")
        for version in versions:
            compare_results(options.cases, path, version, tally)
    report(tally)
    failed = sum(tally.wrong.values()) + (sum(tally.refused_wrong.values()) if options.strict else 0)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
