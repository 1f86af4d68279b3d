from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_qos.cluster.documents import ParsedObjects
from kubectl_qos.yaml_loader import MAX_DEPTH, is_too_deep, read_yaml

READ: Final[dict[str, Any]] = {
    "": None,
    "# nothing": None,
    "2020-01-01": "2020-01-01",
    "12:30": "12:30",
    "1.5e+3": 1500.0,
    "{yes: 1, 7: b, 0.5: c}": {"true": 1, "7": "b", "0.5": "c"},
    "!!binary aGk=": "aGk=",
    "{a: &a {x: 1, y: 2}, b: {<<: *a, y: 3}}": {"a": {"x": 1, "y": 2}, "b": {"x": 1, "y": 3}},
    "{a: &a {x: 1}, b: &b {x: 2, y: 2}, c: {<<: [*a, *b]}}": {
        "a": {"x": 1},
        "b": {"x": 2, "y": 2},
        "c": {"x": 1, "y": 2},
    },
    "{a: =}": {"a": "="},
    "!odd x": "x",
    "!odd {a: [1]}": {"a": [1]},
    "[!odd [1], !!python/name:os.system ]": [[1], ""],
    "!!python/object/apply:os.abort []": [],
    "!!timestamp x": "x",
    "[yes, 1.5, ~]": [True, 1.5, None],
}
DEEP = {
    "flow": "[" * 100_000,
    "maps": "{a: " * 100_000,
    "indented": "".join(f"{' ' * depth}a:\n" for depth in range(MAX_DEPTH + 10)),
    "items": "- " * 100_000 + "a",
    "keys": "? " * 100_000 + "a",
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_deep_texts_are_found(text: str) -> None:
    assert is_too_deep(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a: [1, {b: 2}]",
        json.dumps([[]] * 5_000),
        f"text: '{'[' * 5_000}'",
        "text: |\n" + " " * 5_000 + "x",
        "a: [" + "{" * 3,
        "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1),
    ],
    ids=lambda text: text[:30],
)
def test_others_are_not(text: str) -> None:
    assert not is_too_deep(text)


@pytest.mark.parametrize(("flag", "name"), zip(["-f", "--kubeconfig"], DEEP, strict=False))
def test_commands_say_so_in_one_sentence(flag: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / "deep.yaml"
    path.write_text(DEEP[name])
    command = [sys.executable, "-m", "kubectl_qos", "top", flag, str(path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert "deep" in ended.stderr
    assert "Traceback" not in ended.stderr


def value_of(text: str) -> Any:
    document = read_yaml(text)
    return document.value if document is not None else None


@pytest.mark.parametrize("text", READ)
def test_values_are_those_of_kubectl(text: str) -> None:
    assert value_of(text) == READ[text]


BOMB: Final = "a0: &a0 [x, x, x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 40)
)
REFUSED: Final = {
    BOMB: "document contains excessive aliasing",
    f"a: &a [{'x, ' * 100}]\nb: [{'*a, ' * 50_000}]\n": "document contains excessive aliasing",
    "kind: List\nitems: &own\n- kind: List\n  items: *own\n": "exceeded max depth of 200",
    "&top {a: [*top]}": "exceeded max depth of 200",
    "a0: &a0 []\n"
    + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 300)): "exceeded max depth of 200",
    "a: {<<: 7}": "map merge requires map or sequence of maps as the value",
    "? [a]\n: b": "invalid map key",
    "~: b": "unsupported map key of type: null",
    "a: *b": "found undefined alias",
}


@pytest.mark.parametrize(("text", "problem"), REFUSED.items(), ids=map(str, range(len(REFUSED))))
def test_what_kubectl_refuses(text: str, problem: str) -> None:
    with pytest.raises(yaml.YAMLError, match=problem.replace("[", ".")):
        read_yaml(text)


def test_a_bomb_is_refused_before_it_takes_memory() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(yaml.YAMLError):
            read_yaml(BOMB)
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()


def test_aliases_that_repeat_little_are_read() -> None:
    value = value_of(f"base: &base {{a: [1, 2], b: x}}\nuses: [{', '.join(['*base'] * 30)}]\n")
    assert value["uses"] == [value["base"]] * 30
    many = value_of(f"base: &base [{'x, ' * 1000}]\nuses: [{', '.join(['*base'] * 90)}]\n")
    assert len(many["uses"]) == 90, "values of which a twentieth is written are few enough"


LINES: Final = """\
spec:
  containers:
  - name: a
    resources:
      limits: {memory: 1Gi, memory: 2Gi}
  - {name: b,
     name: c}
spec: 7
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("", 0),
        ("spec", 0),
        ("spec.containers[0].name", 2),
        ("spec.containers[0].resources.limits[memory]", 4),
        ("spec.containers[0].resources.requests[memory]", 3),
        ("spec.containers[1].name", 5),
        ("spec.containers[7].name", 1),
        ("nothing.here", 0),
    ],
)
def test_the_line_of_a_field_or_of_the_nearest_one_above(path: str, line: int) -> None:
    document = read_yaml(LINES)
    assert document is not None
    assert document.position(path)[0] == line


def test_keys_that_are_there_twice() -> None:
    document = read_yaml(LINES)
    assert document is not None
    assert sorted(document.duplicates()) == [
        ("spec", 7),
        ("spec.containers[0].resources.limits.memory", 4),
        ("spec.containers[1].name", 6),
    ]


_SCALARS = st.sampled_from(
    [
        "x",
        "1",
        "~",
        "yes",
        "2Gi",
        "'a: b'",
        '"\\u0041"',
        "!!int 3",
        "!!bool x",
        "!odd y",
        "*a",
        "*b",
        "|\n  z",
        "=",
    ]
)
_FLOWS = st.recursive(
    _SCALARS,
    lambda inner: st.builds(
        lambda items, anchor, is_map: (
            f"{anchor}{{{', '.join(f'{key}: {item}' for key, item in zip('abc<kind', items, strict=False))}}}"
            if is_map
            else f"{anchor}[{', '.join(items)}]"
        ),
        st.lists(inner, max_size=4),
        st.sampled_from(["", "&a ", "&b ", "!!set ", "!!omap ", "!!python/tuple "]),
        st.booleans(),
    ),
    max_leaves=30,
)


@given(
    st.lists(
        st.tuples(st.sampled_from(["kind", "items", "spec", "<<", "metadata", "- x", "? k"]), _FLOWS),
        max_size=6,
    ),
    st.integers(0, 300),
)
def test_no_anchors_tags_or_depth_crash(entries: list[tuple[str, str]], depth: int) -> None:
    text = "".join(f"{key}: {value}\n" for key, value in entries) + "deep: " + "[" * depth + "]" * depth
    found = ParsedObjects()
    found.add_file(f"kind: Pod\n---\n{text}\n---\n- {text}".encode(), "x")
    assert all("\n" not in str(problem) for problem in found.problems)


@settings(max_examples=settings().max_examples // 2)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
        max_leaves=20,
    )
)
def test_what_is_written_is_read(value: Any) -> None:
    for flow in (None, True, False):
        assert value_of(yaml.safe_dump(value, default_flow_style=flow)) == value
