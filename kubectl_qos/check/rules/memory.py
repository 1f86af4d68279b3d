"""Rules about memory limits: settings of Java, Node.js, Go, .NET, Redis, Postgres, and volumes in memory.

Sources: hotspot/share/runtime/arguments.cpp (set_heap_size, and the order of variables and arguments), Node's
doc/api/cli.md, Go's runtime/mgcpacer.go (readGOMEMLIMIT) and runtime/string.go (parseByteCount), Redis'
src/util.c (memtoull), .NET's coreclr/gc/gc.cpp (compute_hard_limit).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from kubectl_qos.check.rule import Case, Hit, ResourceOwner, Rule
from kubectl_qos.check.settings import Level
from kubectl_qos.errors import QosError, QuantityError
from kubectl_qos.k8s.objects import MEMORY, Json, all_containers, nested, nested_list
from kubectl_qos.k8s.quantity import ZERO, Quantity
from kubectl_qos.k8s.resources import resources_of_pod

_ARGUMENTS: Final = "its arguments"
_ORDER: Final = {"JAVA_TOOL_OPTIONS": 0, "JDK_JAVA_OPTIONS": 1, _ARGUMENTS: 3, "_JAVA_OPTIONS": 4}
"""The precedence of variables: the highest number wins. All others have 2: scripts pass them as arguments."""
_JAVA_UNITS: Final = {"": 1, **{unit: 1024 ** ("kmgt".index(unit.lower()) + 1) for unit in "kmgtKMGT"}}
_GO_UNITS: Final = {"": 1, "B": 1, **{f"{unit}iB": 1024**power for power, unit in enumerate("KMGT", 1)}}
_REDIS_UNITS: Final = {"": 1, "b": 1} | {
    f"{unit}{ending}": base**power
    for power, unit in enumerate("kmg", 1)
    for ending, base in (("", 1000), ("b", 1024))
}
_POSTGRES_UNITS: Final = {"": 8192, "B": 1, "kB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
_DEFAULT_HEAP: Final = (96 << 20) * 13 // 10
"""The default of MaxHeapSize. MinRAMPercentage sets a smaller heap, MaxRAMPercentage a larger one."""


class _Runtime(NamedTuple):
    """A runtime with a setting for its memory."""

    setting: str
    others: str
    """What else needs memory."""
    advice: str
    """What to write, with a placeholder for Mi."""
    most_percent: int = 75
    """The highest share of the memory limit that leaves enough for the others."""


_JAVA: Final = _Runtime("a Java heap", "metaspace, threads, code and buffers", "-XX:MaxRAMPercentage=75")
_NODE: Final = _Runtime("an old space of Node.js", "buffers, code and stacks", "--max-old-space-size={}")
_GO: Final = _Runtime("a Go memory limit", "cgo, mapped files and the kernel", "GOMEMLIMIT={}MiB", 95)
_REDIS: Final = _Runtime("a maxmemory of Redis", "buffers, fragmentation and a fork", "--maxmemory {}mb")
_DOTNET: Final = _Runtime(
    "a .NET heap",
    "the runtime, native memory and threads",
    "DOTNET_GCHeapHardLimitPercent=0x4B (75 %: its numbers are hexadecimal)",
)
_POSTGRES: Final = _Runtime(
    "a shared memory of Postgres", "its sessions, sorts and maintenance", "shared_buffers={}MB"
)
_SIZES: Final = (
    (_NODE, r"--max[-_]old[-_]space[-_]size[-_]percentage[=\s]", None),
    (_NODE, r"--max[-_]old[-_]space[-_]size[=\s]", {"": 1 << 20}),
    (_GO, "GOMEMLIMIT=", _GO_UNITS),
    (_REDIS, r"--maxmemory\s", _REDIS_UNITS),
    (_POSTGRES, r"shared_buffers\s*=\s*", _POSTGRES_UNITS),
)
"""Flags in order of precedence; bytes by unit, None for a percentage."""
_UNLIMITED: Final = 1 << 40
_NO_LIMIT: Final = "without one that is the node's memory: set a limit"
_LEAST_GO: Final = 1 << 20
_TINY: Final = (
    "so garbage collection never stops: without a unit it counts bytes, as resourceFieldRef does without a"
    " divisor"
)
_OTHER_JAVA_MEMORY: Final = "-XX:MaxDirectMemorySize=", "-XX:MaxMetaspaceSize=", "-XX:ReservedCodeCacheSize="
_PROGRAM: Final = re.compile(
    r"(\bjava\s(?:(?!-jar\s)[^;&|])*(-jar\s+[^\s;&|]+)"
    r"|\bnode\s(?:(?:-r|--require|--import)\s+\S+\s+|-\S+\s+)*(\S+\.[cm]?[jt]s))(?=\s)([^;&|]*)"
)
"""A program of Java or Node.js and its own arguments."""
_LATE: Final = re.compile(r"(?<!\S)(?:-Xmx|-XX:\w*(?:Heap|RAM)\w*=|--max[-_]old[-_]space[-_]size)\S*")
_Texts = Sequence[tuple[str, str]]
"""Variables and arguments with their texts; the last one wins."""


class _Setting(NamedTuple):
    """A size set by a variable or an argument; `size` is None if the runtime rejects it."""

    source: str
    words: str
    size: float | None


def runtime_problems(container: Json, limit_bytes: int) -> Iterator[tuple[str, str]]:
    """Yield each variable or argument that leaves too little of a memory limit (0: none), and the reason."""
    is_unlimited, limit_bytes = not limit_bytes, limit_bytes or _UNLIMITED
    by_source = _texts(container, limit_bytes)
    yield from _late(_arguments(container, _variables(container, limit_bytes)))
    texts = [*by_source.items()]
    if re.search(r"(?:^|[\s/])(?:java|node)\s", by_source[_ARGUMENTS]):
        # Only scripts read JAVA_OPTS and the like; without a script they count where arguments name them.
        texts = [item for item in texts if item[0] in {*_ORDER, "NODE_OPTIONS", "GOMEMLIMIT"}]
    texts.sort(key=lambda item: _ORDER.get(item[0], 2))
    with_a_higher_limit = _texts(container, 2 * limit_bytes)
    heap = _java_heap(texts, limit_bytes)
    heaps = {_JAVA: heap, _DOTNET: _dotnet_heap(texts, limit_bytes)}
    settings = {runtime: setting for runtime, setting in heaps.items() if setting is not None}
    yield from _heap_with_others(texts, heap, limit_bytes) if heap is not None else ()
    for runtime, flag, units in _SIZES:
        setting = _last(texts, flag, units)
        if setting is not None and setting.size is not None and units is None:
            setting = setting._replace(size=limit_bytes * setting.size / 100)
        if setting is not None:
            settings.setdefault(runtime, setting)
    for runtime, (source, setting_words, size) in settings.items():
        is_share = re.search("ercent|RAMFraction", setting_words) is not None
        follows_limit = is_share or with_a_higher_limit[source] != by_source[source]
        if size is None:
            yield source, f"{setting_words} is not a valid size: the runtime will not start"
        elif is_unlimited and follows_limit:
            yield source, f"{source} sets {runtime.setting} by the memory limit; {_NO_LIMIT}"
        elif runtime is _GO and size < _LEAST_GO:
            yield source, f"{setting_words} is {runtime.setting} of {int(size)} bytes, {_TINY}"
        elif size * 100 > limit_bytes * runtime.most_percent:
            left = f"{int(limit_bytes - size) >> 20}Mi" if size < limit_bytes else "nothing"
            what = f"{runtime.setting} of {int(size) >> 20}Mi in a memory limit of {limit_bytes >> 20}Mi"
            advice = runtime.advice.format(limit_bytes * runtime.most_percent // 100 >> 20)
            enough = f", or a limit of {(int(size) * 100 // runtime.most_percent >> 20) + 1}Mi"
            remedy = advice if follows_limit else f"{advice}{enough}"
            yield (
                source,
                f"{setting_words} is {what}, which leaves {left} for {runtime.others}: write {remedy}",
            )


def _texts(container: Json, limit_bytes: int) -> dict[str, str]:
    """Return each variable and the arguments as the container sees them with this memory limit."""
    variables = _variables(container, limit_bytes)
    texts = {name: f"{name}={text}" for name, text in variables.items()}
    return texts | {_ARGUMENTS: _PROGRAM.sub(r"\1", _arguments(container, variables))}


def _arguments(container: Json, variables: Mapping[str, str]) -> str:
    parts = [container.get(name) for name in ("command", "args")]
    words = [str(word) for part in parts if isinstance(part, list) for word in part]
    return _expanded(" ".join(words), variables)


def _late(arguments: str) -> Iterator[tuple[str, str]]:
    """Yield each size after the program's name, which the program gets and not its runtime."""
    for program in _PROGRAM.finditer(arguments):
        for late in _LATE.findall(program[4]):
            name = program[2] or program[3]
            where = f"{late} comes after {name}, which gets it as an argument: it sets no heap"
            yield _ARGUMENTS, f"{where}: write it before {name}"


def _last(texts: _Texts, flag: str, units: Mapping[str, int] | None) -> _Setting | None:
    pattern = re.compile(rf"(?<![\w-])(?:{flag})(\d+(?:\.\d+)?)(\w*)(?=[\s\"';]|$)")
    matches = [(source, match) for source, text in texts for match in pattern.finditer(text)]
    if not matches:
        return None
    source, match = matches[-1]
    words = match[0] if match[0].startswith(source) else f"{match[0]} in {source}"
    if units is None:
        return _Setting(source, words, float(match[1]))
    unit = match[2].lower() if units is _REDIS_UNITS else match[2]
    is_read = match[1].isdecimal() and unit in units
    return _Setting(source, words, int(match[1]) * units[unit] if is_read else None)


def _java_heap(texts: _Texts, limit_bytes: int) -> _Setting | None:
    """Return the largest heap as arguments.cpp computes it, or None if nothing sets it."""
    heap = _last(texts, "-Xmx|-XX:MaxHeapSize=", _JAVA_UNITS)
    most, least = (_percentage(texts, f"-XX:{name}RAM") for name in ("Max", "Min"))
    ram = _last(texts, "-XX:MaxRAM=", _JAVA_UNITS)
    if heap is not None or (ram or most or least) is None:
        return heap
    memory = (ram.size if ram is not None else None) or limit_bytes
    size = memory * ((least.size if least is not None else None) or 50) / 100
    if size >= _DEFAULT_HEAP:
        size = max(memory * ((most.size if most is not None else None) or 25) / 100, _DEFAULT_HEAP)
        least = None
    setting = ram or least or most
    return setting._replace(size=size) if setting is not None else None


def _dotnet_heap(texts: _Texts, limit_bytes: int) -> _Setting | None:
    """Return the limit of a .NET heap in hexadecimal; a percentage counts only below 100."""
    for name, unit, end in (("", 1.0, _UNLIMITED), ("Percent", limit_bytes / 100, 100)):
        for source, text in texts:
            match = re.fullmatch(rf"(?:DOTNET|COMPlus)_GCHeapHardLimit{name}=(?:0[xX])?([\da-fA-F]+)", text)
            if match is not None and 0 < int(match[1], 16) < end:
                return _Setting(source, text, int(match[1], 16) * unit)
    return None


def _percentage(texts: _Texts, flag: str) -> _Setting | None:
    """Return the flag for a percentage of the memory, or the older one for a fraction."""
    setting, fraction = _last(texts, f"{flag}Percentage=", None), _last(texts, f"{flag}Fraction=", {"": 1})
    if setting is not None or fraction is None:
        return setting
    return fraction._replace(size=100 / fraction.size if fraction.size else None)


def _heap_with_others(texts: _Texts, heap: _Setting, limit_bytes: int) -> Iterator[tuple[str, str]]:
    """Yield the heap if it fits the limit alone, but not together with other Java memory."""
    others = filter(None, (_last(texts, flag, _JAVA_UNITS) for flag in _OTHER_JAVA_MEMORY))
    settings = [heap, *others]
    total = int(sum(setting.size or 0 for setting in settings))
    if total > limit_bytes and (heap.size or 0) * 100 <= limit_bytes * _JAVA.most_percent:
        words = ", ".join(setting.words for setting in settings)
        sizes = f"together {total >> 20}Mi in a memory limit of {limit_bytes >> 20}Mi"
        yield heap.source, f"{words} are {sizes}: lower them, or set a limit above {total >> 20}Mi"


def _expanded(text: str, variables: Mapping[str, str]) -> str:
    pattern = re.compile(r"\$\((\w+)\)|\$\{(\w+)\}|\$(\w+)")
    return pattern.sub(lambda match: variables.get(match[match.lastindex or 0], match[0]), text)


def _variables(container: Json, limit_bytes: int) -> dict[str, str]:
    """Return the container's environment, with references to earlier variables expanded."""
    variables: dict[str, str] = {}
    for entry in nested_list(container, "env"):
        text, field = entry.get("value") or "", nested(entry, "valueFrom", "resourceFieldRef")
        if field.get("resource") == "limits.memory":
            with suppress(QuantityError):
                text = -(-limit_bytes // max(Quantity.from_json(field.get("divisor") or 1).value(), 1))
        variables[str(entry.get("name"))] = _expanded(str(text), variables)
    return variables


def _written(case: Case) -> Iterator[tuple[ResourceOwner, Quantity, Json]]:
    """Yield each container, the memory limit that applies (its own, the pod's, or 0), and its manifest."""
    lists = ("initContainers", "containers", "ephemeralContainers")
    raws = [raw for name in lists for raw in nested_list(case.spec, name)]
    shared = resources_of_pod(case.created, "limits").get(MEMORY, ZERO)
    for owner, container, raw in zip(case.owners, all_containers(case.created), raws, strict=False):
        yield owner, container.limits.get(MEMORY, shared), raw


class _RuntimeMemory(Rule):
    id, level = "QOS020", Level.WARNING
    title = "a runtime that may use its whole limit"
    message = "{owner}: {text}"
    why = """The memory limit counts all that a program uses, not only its heap. A heap as large as the limit
    is not yet full when the kernel kills the container: no OutOfMemoryError is logged, only exit code 137."""
    remedy = """Java: `-XX:MaxRAMPercentage=75` instead of `-Xmx` follows the limit. Node.js: an old space of
    75 % of the limit. Redis: a maxmemory of 75 % of it. Go: a GOMEMLIMIT of at most 95 %, with a unit of Go,
    `460MiB`; with `460Mi` a program ends at its start, and a number without a unit counts bytes. .NET reads
    DOTNET_GCHeapHardLimit and DOTNET_GCHeapHardLimitPercent as hexadecimal, and takes 75 % without them.
    `limits.memory` of a resourceFieldRef needs a memory limit: without one it is the node's memory. What
    comes after `-jar FILE` or a script of Node.js is an argument of the program, and sets no heap.
    The rule reads `-Xmx`, `MaxRAM`, its percentages and fractions, the sizes of direct memory, metaspace and
    code, `--max-old-space-size`, GOMEMLIMIT, those of .NET, `--maxmemory` and `shared_buffers`. It reads them
    in the command, arguments and variables of manifests, and in ConfigMaps among the files, but not in pods
    of a cluster."""
    no_policy = "CEL reads no sizes of Java, Node.js, Go, .NET, Redis and Postgres"

    def find(self, case: Case) -> Iterator[Hit]:
        """Yield heap sizes that do not fit the limit; the env of cluster pods is not read."""
        for owner, limit, raw in _written(case):
            environment = [*_environment(case, raw)]
            fields = {entry.get("name"): field for field, entry in environment}
            read = {**raw, "env": [entry for _, entry in environment]}
            for source, text in runtime_problems(read, max(limit.value(), 0)):
                yield case.hit(owner, fields.get(source, "args"), text=text)


def _environment(case: Case, raw: Json) -> Iterator[tuple[str, Json]]:
    """Yield each variable and its field; values of ConfigMaps among the files are filled in."""
    for source in nested_list(raw, "envFrom"):
        for key, text in _config_map(case, nested(source, "configMapRef")).items():
            yield "envFrom", {"name": f"{source.get('prefix') or ''}{key}", "value": text}
    for index, entry in enumerate(nested_list(raw, "env")):
        reference = nested(entry, "valueFrom", "configMapKeyRef")
        value = _config_map(case, reference).get(str(reference.get("key")))
        yield f"env[{index}]", entry if value is None else {"name": entry.get("name"), "value": value}


def _config_map(case: Case, reference: Json) -> Json:
    key = case.pod.namespace, str(reference.get("name"))
    return nested(case.context.config_maps.get(key, {}), "data")


class _MemoryVolume(Rule):
    id, level = "QOS021", Level.WARNING
    title = "a volume in memory"
    message = """volume {volume} is memory{bound}: its files count toward the memory {whose}, and
    survive a restart of the container"""
    why = """An emptyDir of medium Memory is a tmpfs: its files are memory of the container that writes them.
    At the container's limit the kernel kills a process, although no process uses that much. The files outlive
    the container, which is killed again until the pod is deleted. Without a sizeLimit the volume may grow to
    the pod's memory limit, without that to all memory of the node's pods."""
    remedy = """Set a sizeLimit, and a memory limit with room for it and the processes. It is a note
    where the sizeLimit is at least half of the memory limit, and where there is no memory limit."""
    no_policy = "which container writes to a volume is a matter of several lists, and of amounts"

    def find(self, case: Case) -> Iterator[Hit]:
        """Yield tmpfs volumes, which count against the writer's limit (pkg/volume/emptydir/empty_dir.go)."""
        for index, volume in enumerate(nested_list(case.spec, "volumes")):
            size, name, directory = ZERO, volume.get("name"), nested(volume, "emptyDir")
            if directory.get("medium") != "Memory":
                continue
            with suppress(QosError):
                size = Quantity.from_json(directory.get("sizeLimit"))
            writers = [
                (limit, owner.label)
                for owner, limit, raw in _written(case)
                for mount in nested_list(raw, "volumeMounts")
                if mount.get("name") == name and mount.get("readOnly") is not True
            ]
            limit, owner = min((writer for writer in writers if writer[0].sign > 0), default=(ZERO, ""))
            # A volume of less than half of the limit leaves enough for the processes.
            is_small = size.sign > 0 and (limit.sign <= 0 or size.nano * 2 < limit.nano)
            if not writers or is_small:
                continue
            bound = f" of up to {size}" if size.sign > 0 else " without a sizeLimit"
            whose = f"limit of {owner}, {limit}" if owner else "of the container that writes"
            if owner and len(writers) > 1:
                whose = f"limit of the container that writes ({limit} for {owner})"
            level = None if owner and not 0 < size.nano < limit.nano else Level.NOTE
            facts = {"volume": str(name), "bound": bound, "whose": whose}
            yield Hit(case, f"{case.prefix}.volumes[{index}].emptyDir", facts, level=level)
