"""What a container's flags and variables let Java, Node.js and Go use of its memory limit.

Sources: hotspot/share/runtime/arguments.cpp (set_heap_size, and the order of variables and arguments), Node's
doc/api/cli.md, Go's runtime/mgcpacer.go (readGOMEMLIMIT) and runtime/string.go (parseByteCount).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final

from kubectl_qos.errors import QuantityError
from kubectl_qos.k8s.objects import Json, nested, nested_list
from kubectl_qos.k8s.quantity import Quantity

_ARGUMENTS: Final = "its arguments"
_ORDER: Final = {"JAVA_TOOL_OPTIONS": 0, "JDK_JAVA_OPTIONS": 1, _ARGUMENTS: 3, "_JAVA_OPTIONS": 4}
"""The later one wins; other variables, which scripts make arguments of, are in between."""
_JAVA_UNITS: Final = {"": 0, **{unit: "kmgt".index(unit.lower()) + 1 for unit in "kmgtKMGT"}}
_GO_UNITS: Final = {"": 0, "B": 0, "KiB": 1, "MiB": 2, "GiB": 3, "TiB": 4}
_LEAST_HEAP: Final = (96 << 20) * 13 // 10
"""MaxHeapSize by default: of less than twice that the JVM takes half, whatever MaxRAMPercentage is."""


_JAVA: Final = ("a Java heap", "metaspace, threads, code and buffers", 75, "-XX:MaxRAMPercentage=75")
_NODE: Final = ("an old space of Node.js", "buffers, code and stacks", 75, "--max-old-space-size={}")
_GO: Final = ("a Go memory limit", "cgo, mapped files and the kernel", 95, "GOMEMLIMIT={}MiB")
"""What is set, what needs memory beside it, how many percent of a limit it may be, and what to write."""
_FLAGS: Final[tuple[tuple[tuple[str, str, int, str], str, Mapping[str, int] | None], ...]] = (
    (_JAVA, "-Xmx|-XX:MaxHeapSize=", _JAVA_UNITS),
    (_JAVA, "-XX:MaxRAMPercentage=", None),
    (_NODE, r"--max[-_]old[-_]space[-_]size[-_]percentage[=\s]", None),
    (_NODE, r"--max[-_]old[-_]space[-_]size[=\s]", {"": 2}),
    (_GO, "GOMEMLIMIT=", _GO_UNITS),
)
"""The flags, the first of a runtime that is there counts; powers of 1024 by unit, None for a percentage."""


def runtime_problems(container: Json, limit_bytes: int) -> Iterator[tuple[str, str]]:
    """The variable, or the arguments, that leave too little of a memory limit, and why."""
    variables, seen = _variables(container, limit_bytes), set()
    parts = [container.get(name) for name in ("command", "args")]
    words = [str(word) for part in parts if isinstance(part, list) for word in part]
    arguments = _expanded(" ".join(words), variables)
    texts = [*((name, f"{name}={text}") for name, text in variables.items()), (_ARGUMENTS, arguments)]
    if re.search(r"(?:^|[\s/])(?:java|node)\s", arguments):
        # Without a script in between, JAVA_OPTS and the like only count where the arguments name them.
        texts = [item for item in texts if item[0] in {*_ORDER, "NODE_OPTIONS", "GOMEMLIMIT"}]
    texts.sort(key=lambda item: _ORDER.get(item[0], 2))
    for runtime, flag, units in _FLAGS:
        pattern = re.compile(rf"(?<![\w-])(?:{flag})(\d+(?:\.\d+)?)(\w*)(?=[\s\"';]|$)")
        matches = [(name, match) for name, text in texts for match in pattern.finditer(text)]
        if not matches or runtime in seen:
            continue
        seen.add(runtime)
        source, match = matches[-1]
        setting = match[0] if match[0].startswith(source) else f"{match[0]} in {source}"
        if units is None:
            is_half = runtime is _JAVA and limit_bytes < 2 * _LEAST_HEAP
            size = int(limit_bytes * (50 if is_half else float(match[1])) / 100)
        elif match[1].isdecimal() and match[2] in units:
            size = int(match[1]) << 10 * units[match[2]]
        else:
            yield source, f"{setting} is no size that the runtime reads: it does not start"
            continue
        kind, others, most, advice = runtime
        if size * 100 > limit_bytes * most:
            left = f"{(limit_bytes - size) >> 20}Mi" if size < limit_bytes else "nothing"
            enough = f", or a limit of {(size * 100 // most >> 20) + 1}Mi" if units is not None else ""
            text = f"{setting} is {kind} of {size >> 20}Mi in a memory limit of {limit_bytes >> 20}Mi"
            fitting = advice.format(limit_bytes * most // 100 >> 20)
            yield source, f"{text}, which leaves {left} for {others}: write {fitting}{enough}"


def _expanded(text: str, variables: Mapping[str, str]) -> str:
    pattern = re.compile(r"\$\((\w+)\)|\$\{(\w+)\}|\$(\w+)")
    return pattern.sub(lambda match: variables.get(match[match.lastindex or 0], match[0]), text)


def _variables(container: Json, limit_bytes: int) -> dict[str, str]:
    """The environment as far as the container says; a variable may name those before it."""
    variables: dict[str, str] = {}
    for entry in nested_list(container, "env"):
        text, field = entry.get("value") or "", nested(entry, "valueFrom", "resourceFieldRef")
        if field.get("resource") == "limits.memory":
            with suppress(QuantityError):
                text = -(-limit_bytes // max(Quantity.from_json(field.get("divisor") or 1).value(), 1))
        variables[str(entry.get("name"))] = _expanded(str(text), variables)
    return variables
