"""Values changed in a text: it says exactly what is wanted, and no line but theirs is another one."""

import json
import textwrap
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubectl_qos.cluster.documents import FileDocument, plain_documents
from kubectl_qos.cluster.yaml_patch import patch_document
from kubectl_qos.errors import InputError

TABLES: Final = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))

RESOURCE_WORDS = ("resources", "requests", "limits", "cpu", "memory", "hugepages", "gpu")


def changed(text: str, wanted: Any) -> str:
    return patch_document(text.encode(), the_document(text), wanted).decode()


def values(text: str) -> Any:
    return the_document(text).value


def the_document(text: str) -> FileDocument:
    """The only one that says something; comments before the first `---` are one too."""
    (document,) = (one for one in plain_documents(text.encode(), "x.yaml") if one.value is not None)
    return document


def with_resources(text: str, resources: Mapping[str, Any], name: str = "a") -> Any:
    """What the text says, with other resources of one container."""
    wanted = json.loads(json.dumps(values(text)))
    for container in wanted["spec"]["containers"]:
        if container["name"] == name:
            container["resources"] = resources
    return wanted


BLOCK = """\
# a pod
kind: Pod   # of its own
spec:
  containers:
  - name: a
    resources:   # what it needs
      requests:
        cpu: 250m  # a quarter
        memory: "1Gi"
      # not more
      limits:
        memory: 2Gi
    args:
    - |
      text
  - {name: b, resources: {limits: {memory: '1Gi'}}}
"""


@pytest.mark.parametrize(("name", "resources", "lines"), TABLES["block"])
def test_only_the_lines_of_the_values_change(name: str, resources: dict[str, Any], lines: list[str]) -> None:
    wanted = with_resources(BLOCK, resources, name)
    text = changed(BLOCK, wanted)
    assert values(text) == wanted
    assert difference(BLOCK, text) == lines


def difference(before: str, after: str) -> list[str]:
    old, new = before.splitlines(), after.splitlines()
    found = []
    for tag, start, end, begin, stop in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            found += [f"-{line}" for line in old[start:end]] + [f"+{line}" for line in new[begin:stop]]
    return found


def test_what_is_empty_becomes_a_block_of_the_files_own_indentation() -> None:
    text = "spec:\n    containers:\n    -   name: a\n        resources: {}  # none yet\n        image: x\n"
    wanted = with_resources(text, {"limits": {"memory": "1Gi"}})
    assert changed(text, wanted) == (
        "spec:\n    containers:\n    -   name: a\n        resources:  # none yet\n"
        "            limits:\n                memory: 1Gi\n        image: x\n"
    )


@pytest.mark.parametrize("nothing", ["", " ", " null", " ~", " {}", " { }"])
def test_nothing_in_its_spellings(nothing: str) -> None:
    text = f"spec:\n  containers:\n  - name: a\n    resources:{nothing}\n  - name: b\n"
    wanted = with_resources(text, {"limits": {"memory": "1Gi"}})
    found = changed(text, wanted)
    assert values(found) == wanted
    assert "    resources:" in found
    assert found.endswith("      limits:\n        memory: 1Gi\n  - name: b\n")


@pytest.mark.parametrize("text", ["true", "false", "null", "yes", "off"])
def test_a_text_that_yaml_takes_for_another_type_is_quoted(text: str) -> None:
    assert changed("name: a\n", {"name": text}) == f'name: "{text}"\n'
    assert changed("name: a\n", {"name": f"{text}-1"}) == f"name: {text}-1\n"


def test_a_container_without_resources_gets_them_behind_its_last_plain_line() -> None:
    text = (
        "spec:\n  containers:\n  - name: a\n    image: x # y\n    args:\n    - |\n      text\n\n"
        "  restartPolicy: Never"
    )
    wanted = with_resources(text, {"limits": {"memory": "1Gi"}})
    assert difference(text, changed(text, wanted)) == [
        "+    resources:",
        "+      limits:",
        "+        memory: 1Gi",
    ]


def test_the_last_line_needs_no_end() -> None:
    text = "spec:\n  containers:\n  - name: a"
    wanted = with_resources(text, {"limits": {"memory": "1Gi"}})
    assert changed(text, wanted) == f"{text}\n    resources:\n      limits:\n        memory: 1Gi"


def test_a_block_that_is_emptied_says_so_and_keeps_its_comment() -> None:
    text = (
        "spec:\n  containers:\n  - name: a\n    resources: # why\n      limits:\n        memory: 1Gi\n"
        "    image: x\n"
    )
    assert changed(text, with_resources(text, {})) == (
        "spec:\n  containers:\n  - name: a\n    resources: {} # why\n    image: x\n"
    )


ANCHORED = """\
spec:
  containers:
  - name: a
    resources: &r
      limits: {memory: 1Gi}
  - name: b
    resources: *r
"""


def test_an_alias_that_no_longer_says_the_same_gets_its_own_values() -> None:
    wanted = with_resources(ANCHORED, {"limits": {"memory": "2Gi"}}, "b")
    assert changed(ANCHORED, wanted) == ANCHORED.replace("*r", "{limits: {memory: 2Gi}}")
    wanted = with_resources(ANCHORED, {"limits": {"memory": "2Gi"}}, "a")
    assert changed(ANCHORED, wanted) == ANCHORED.replace("1Gi", "2Gi").replace(
        "*r", "{limits: {memory: 1Gi}}"
    )


def test_where_all_of_an_anchor_change_alike_it_stays() -> None:
    wanted = with_resources(ANCHORED, {"limits": {"memory": "2Gi"}}, "a")
    wanted["spec"]["containers"][1]["resources"] = {"limits": {"memory": "2Gi"}}
    assert changed(ANCHORED, wanted) == ANCHORED.replace("1Gi", "2Gi")


MERGED = """\
x: &base {cpu: 1, memory: 1Gi}
spec:
  containers:
  - name: a
    resources:
      limits:
        <<: *base
        memory: 2Gi
"""


def test_a_merged_value_is_overridden_and_one_that_would_have_to_go_is_refused() -> None:
    wanted = with_resources(MERGED, {"limits": {"cpu": 2, "memory": "2Gi"}})
    assert changed(MERGED, wanted) == f"{MERGED}        cpu: 2\n"
    with pytest.raises(
        InputError, match=r"^x.yaml: the values cannot be changed in place: the file uses anch"
    ):
        changed(MERGED, with_resources(MERGED, {"limits": {"memory": "2Gi"}}))
    whole = ANCHORED.replace("1Gi", "1Gi, cpu: 1").replace("*r", "{<<: *r}")
    wanted = with_resources(whole, {"limits": {"cpu": 1}}, "b")
    assert changed(whole, wanted) == whole.replace("<<: *r", "<<: *r, limits: {cpu: 1}")


@pytest.mark.parametrize("indent", [None, 2, 4, "\t"])
@pytest.mark.parametrize(
    "resources",
    [
        {},
        {"limits": {"memory": "2Gi"}},
        {"requests": {"cpu": 2}, "limits": {"memory": "1Gi"}},
        {"requests": {"cpu": 1}},
        {"requests": {"cpu": 1, "memory": "64Mi"}, "limits": {"memory": "1Gi", "cpu": "2"}},
    ],
)
def test_json_keeps_its_indentation(indent: int | str | None, resources: dict[str, Any]) -> None:
    was = {"requests": {"cpu": 1}, "limits": {"memory": "1Gi"}}
    value = {
        "kind": "Pod",
        "spec": {"containers": [{"name": "a", "é": '\\"', "resources": was}, {"name": "b"}]},
    }
    for name in ("a", "b"):
        text = json.dumps(value, indent=indent, ensure_ascii=False) + "\n"
        wanted = with_resources(text, resources, name)
        assert changed(text, wanted) == json.dumps(wanted, indent=indent, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("odd", ["\\ud83d\\ude00", "\\\\ud83d", '\\"', "\x7f", "\x85", "\uffff", "\u2028"])
def test_json_may_have_what_yaml_refuses(odd: str) -> None:
    text = """{"spec": {"containers": [{
\t"name": "a",
\t"x%s": "%s",
\t"resources": {"limits": {"x%s": 1}}}]}}""".replace("%s", odd)
    limits = {json.loads(f'"x{odd}"'): 2}
    assert changed(text, with_resources(text, {"limits": limits})) == text.replace(": 1", ": 2")


def test_compact_json_stays_compact() -> None:
    text = '{"spec":{"containers":[{"name":"a","resources":{"limits":{"memory":"1Gi"}}}]}}'
    wanted = with_resources(text, {"limits": {"memory": "2Gi", "cpu": "1"}, "requests": {"cpu": "1"}})
    assert changed(text, wanted) == json.dumps(wanted, separators=(",", ":"))


# -- any style ---------------------------------------------------------------------------------------

QUANTITIES = st.sampled_from(["1", "2", "250m", "64Mi", "1Gi", "1.5Gi", "1e3", "0"])
RESOURCES = st.fixed_dictionaries(
    {},
    optional={
        side: st.dictionaries(
            st.sampled_from(["cpu", "memory", "hugepages-2Mi", "example.com/gpu"]), QUANTITIES, min_size=1
        )
        for side in ("requests", "limits")
    },
)


@st.composite
def styled(draw: st.DrawFn, value: Any, column: int = 0, *, key: str = "") -> str:
    """A value in some style, to be put after `key:` or `-`: on the same line, or below it."""
    if isinstance(value, str):
        quote = draw(st.sampled_from(["", "'", '"']))
        quote = '"' if not quote and value[:1].isdigit() and value[-1:].isdigit() else quote
        return f" {quote}{value}{quote}{draw(comments())}"
    if not value:
        return draw(st.sampled_from([" {}", " { }"])) + draw(comments())
    if draw(st.integers(0, 3)) == 0:
        space = draw(st.sampled_from(["", " "]))
        return f" {flow(value, space)}{draw(comments())}"
    step = draw(st.sampled_from([2, 2, 2, 4]))
    parts = []
    if isinstance(value, list):
        inner = column + draw(st.sampled_from([0, step]))
        for one in value:
            lead = draw(between(inner))
            parts.append(f"{lead}{' ' * inner}-{draw(item(one, inner))}")
        return "".join(["\n", *parts]).removesuffix("\n")
    for name, one in value.items():
        inner = column + step
        parts.append(f"{draw(between(inner))}{' ' * inner}{name}:{draw(styled(one, inner, key=name))}\n")
    return f"{draw(comments())}\n{''.join(parts)}".removesuffix("\n")


@st.composite
def item(draw: st.DrawFn, value: dict[str, Any], column: int) -> str:
    """A mapping that begins behind the dash of a list."""
    if draw(st.integers(0, 3)) == 0:
        return f" {flow(value, draw(st.sampled_from(['', ' '])))}{draw(comments())}\n"
    spaces = draw(st.sampled_from([1, 1, 3]))
    lines = [f"{name}:{draw(styled(one, column + 1 + spaces))}\n" for name, one in value.items()]
    return " " * spaces + (" " * (column + 1 + spaces)).join(lines)


def comments() -> st.SearchStrategy[str]:
    return st.sampled_from(["", "", "", "  # because", " #é"])


def between(column: int) -> st.SearchStrategy[str]:
    return st.sampled_from(["", "", "", "\n", f"{' ' * column}# said before\n"])


def flow(value: Any, space: str) -> str:
    if isinstance(value, dict):
        return f"{{{space}{', '.join(f'{key}: {flow(one, space)}' for key, one in value.items())}{space}}}"
    if isinstance(value, list):
        return f"[{space}{', '.join(flow(one, space) for one in value)}{space}]"
    return f'"{value}"' if value[-1:].isdigit() else value


def only_of_resources(lines: Sequence[str]) -> bool:
    """A container in brackets is on one line with its resources, or gets them there. Empty lines may move."""
    return lines.count("+") == lines.count("-") and all(
        any(word in line for word in RESOURCE_WORDS) or "{name: " in line.replace("{ ", "{")
        for line in lines
        if line not in {"+", "-"}
    )


@st.composite
def texts(draw: st.DrawFn) -> str:
    containers = [
        {
            "name": name,
            "image": "é/x",
            **({"resources": found} if (found := draw(st.none() | RESOURCES)) is not None else {}),
        }
        for name in "abc"[: draw(st.integers(1, 3))]
    ]
    value = {
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": containers, "dnsPolicy": "Default"},
    }
    lines = [f"{draw(between(0))}{key}:{draw(styled(one, 0))}\n" for key, one in value.items()]
    text = draw(st.sampled_from(["", "---\n", "# top\n---\n"])) + "".join(lines)
    if draw(st.booleans()):
        text = text.removesuffix("\n")
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


@given(texts(), st.data())
def test_any_style_keeps_all_but_the_lines_of_the_values(text: str, data: st.DataObject) -> None:
    containers = values(text)["spec"]["containers"]
    name = data.draw(st.sampled_from([one["name"] for one in containers]))
    wanted = with_resources(text, data.draw(RESOURCES), name)
    found = changed(text, wanted)
    assert values(found) == wanted
    assert only_of_resources(difference(text, found)), difference(text, found)
    assert ("\r\n" in found) == ("\r\n" in text)
    assert found.count("\n") - found.count("\r\n") in {0, found.count("\n")}


@given(texts(), st.sampled_from(["", "-", "+"]), st.booleans(), st.data())
def test_a_text_in_a_block_changes_in_the_same_lines(
    inner: str, chomping: str, is_last: bool, data: st.DataObject
) -> None:
    """A patch in a kustomization: what is around it stays to the byte, and its lines keep their indent."""
    lines = textwrap.indent(inner.replace("\r\n", "\n").removesuffix("\n"), " " * 6)
    end = data.draw(st.sampled_from(["", "\n"])) if is_last else "\n    target: {name: p}   # it\n"
    end = data.draw(st.sampled_from(["", "\n\n"])) + end if end else end
    head = f"# all\npatches:\n  - patch: |{chomping}\n"
    text = f"{head}{lines}{end}"
    old = values(text)["patches"][0]["patch"]
    name = data.draw(st.sampled_from([one["name"] for one in values(old)["spec"]["containers"]]))
    new = changed(old, with_resources(old, data.draw(RESOURCES), name))
    wanted = json.loads(json.dumps(values(text)))
    wanted["patches"][0]["patch"] = new
    found = changed(text, wanted)
    assert values(found) == wanted
    assert only_of_resources(difference(text, found)), difference(text, found)
    assert found.startswith(head)
    assert found.endswith(end)


LISTED = """\
resources: [../base]   # all
patches:
  - path: a.yaml
  - patch: |
      kind: Pod

  # the end
"""


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (LISTED, ["+  - path: more-2.yaml"]),
        (LISTED.rstrip("\n"), ["+  - path: more-2.yaml"]),
        (
            "patches: [{path: a.yaml}]",
            ["-patches: [{path: a.yaml}]", "+patches: [{path: a.yaml}, {path: more-2.yaml}]"],
        ),
        ("patches:\n- patch: |\n    kind: Pod\nresources: []\n", ["+- path: more-2.yaml"]),
        ("resources:\n- a", ["+patches:", "+- path: more-2.yaml"]),
    ],
)
def test_an_item_is_added_to_a_list(text: str, lines: list[str]) -> None:
    value = values(text)
    wanted = {**value, "patches": [*value.get("patches", ()), {"path": "more-2.yaml"}]}
    found = changed(text, wanted)
    assert values(found) == wanted
    assert difference(text, found) == lines
