"""A stand-in for `helm template`: the few actions of templates that the tests use, and nothing else.

It merges values as Helm does and fails as Helm does where a template divides by what is absent. That real
Helm renders real charts in the same way is not shown by it.
"""

import re
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import yaml


def merged(old: Any, new: Any) -> Any:
    """Maps are merged, null removes a key, all else replaces."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    both = {**old, **{key: merged(old.get(key), value) for key, value in new.items()}}
    return {key: value for key, value in both.items() if value is not None}


def set_value(values: Any, text: str) -> Any:
    """`--set a.b=1`."""
    name, _, value = text.partition("=")
    found: Any = yaml.safe_load(value)
    for step in reversed(name.split(".")):
        found = {step: found}
    return merged(values, found)


def result(expression: str, dot: Any, scope: dict[str, Any]) -> Any:
    """Of a pipeline: a field, `toYaml FIELD`, a text; then default, quote and nindent."""
    first, *functions = [part.strip() for part in expression.split("|")]
    is_yaml, name = first.startswith("toYaml "), first.removeprefix("toYaml ")
    value = dot if name == "." else scope
    for step in name.strip(".").split(".") if name != "." else ():
        value = value.get(step) if isinstance(value, dict) else None
    if is_yaml:
        value = yaml.safe_dump(value, sort_keys=False).strip()
    for function in functions:
        word, _, rest = function.partition(" ")
        if word == "default":
            value = value or yaml.safe_load(rest)
        elif word == "quote":
            value = f'"{value}"'
        elif word == "nindent":
            value = "".join(f"\n{' ' * int(rest)}{line}" for line in str(value).splitlines())
        elif word == "required":
            sys.exit(f"Error: execution error: {rest}") if value is None else None
    return "" if value is None else value


def rendered(text: str, scope: dict[str, Any]) -> str:
    """A template, with `with` blocks that are not nested."""

    def block(found: re.Match[str]) -> str:
        value = result(found[1], None, scope)
        return actions(found[2], value) if value else ""

    def actions(text: str, dot: Any) -> str:
        return re.sub(
            r"\s*\{\{- (.+?) \}\}|\{\{ (.+?) \}\}",
            lambda one: str(result(one[1] or one[2], dot, scope)),
            text,
        )

    text = re.sub(r"\s*\{\{- with (.+?) \}\}(.*?)\s*\{\{- end \}\}", block, text, flags=re.DOTALL)
    return actions(text, None)


def main(words: list[str]) -> str:
    """`helm template [--namespace NS] [--values FILE]… [--set A=B]… -- RELEASE CHART`."""
    parser = ArgumentParser()
    parser.add_argument("template")
    parser.add_argument("--namespace", default="default")
    parser.add_argument("--values", action="append", default=[])
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--set-string", action="append", default=[])
    parser.add_argument("release")
    parser.add_argument("chart", type=Path)
    given, texts = parser.parse_args(words), []
    values = yaml.safe_load((given.chart / "values.yaml").read_text()) or {}
    for name in given.values:
        values = merged(values, yaml.safe_load(Path(name).read_text()) or {})
    for text in (*given.set, *given.set_string):
        values = set_value(values, text)
    release = {"Name": given.release, "Namespace": given.namespace}
    for chart in (*sorted(given.chart.glob("charts/*")), given.chart):
        mine = values
        if chart != given.chart:
            own = yaml.safe_load((chart / "values.yaml").read_text()) or {}
            mine = merged(own, values.get(chart.name) or {})
        paths = sorted((chart / "templates").glob("*.yaml"))
        scope = {"Values": mine, "Release": release}
        texts += [rendered(path.read_text(), scope) for path in paths]
    return "\n---\n".join(texts)


if __name__ == "__main__":
    sys.stdout.write(main(sys.argv[1:]))
