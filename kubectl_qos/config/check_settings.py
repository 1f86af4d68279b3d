"""The settings of `check`: `.kubectl-qos.yaml` next to manifests."""

import fnmatch
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from kubectl_qos.check.rule import Rule
from kubectl_qos.check.rules import RULES
from kubectl_qos.check.settings import FILE_NAME, CheckSettings, Exemption, Level
from kubectl_qos.config.settings import SettingsFile, StrictStruct, stated
from kubectl_qos.errors import InputError, QuantityError
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.validation import memory_bytes

_LEVEL: Final = Meta(description="off, note, warning or error")
_Level = bool | Literal["off", "note", "warning", "error"]


class _File(StrictStruct, frozen=True):
    rules: Annotated[dict[str, Any] | None, Meta(description="a mapping of rules by their ids")] = None
    namespaces: Annotated[tuple[str, ...], Meta(description="a list of names or patterns")] = ()
    node_memory: Annotated[Quantity | None, Meta(description="a quantity such as 16Gi")] = None
    exceptions: Annotated[tuple[Any, ...], Meta(description="a list of mappings with rules and reason")] = ()


def find_check_settings(path: str) -> Path | None:
    """Return the settings file next to a path, or in a folder above it, up to the folder with .git.

    For standard input the search begins in the working directory.
    """
    start = Path(path).resolve()
    for folder in (start, *start.parents) if start.is_dir() else start.parents:
        if (folder / FILE_NAME).is_file():
            return folder / FILE_NAME
        if (folder / ".git").exists():
            break
    return None


def read_check_settings(path: Path) -> CheckSettings:
    """Read the settings of a file. Raises InputError with file and line."""
    try:
        file = SettingsFile.read(path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    fields: _File = file.convert(_File)
    levels: dict[str, Level | None] = {}
    parameters: dict[str, Any] = {}
    for name in fields.rules or ():
        level, *parameter = _read_rule(file, RULES[file.choice(name, RULES, "rule", "rules", name)])
        if level is not True:
            levels[name] = None if level in {False, "off"} else Level(level)
        if parameter:
            [parameters[name]] = parameter
    exceptions = [_read_exception(file, str(index)) for index in range(len(fields.exceptions))]
    try:
        memory = memory_bytes(str(fields.node_memory)) if fields.node_memory is not None else None
    except QuantityError as wrong:
        raise file.error(("nodeMemory",), f"nodeMemory: {wrong}") from None
    return CheckSettings(
        levels, parameters, fields.namespaces, file.place("namespaces"), memory, tuple(exceptions)
    )


def _read_rule(file: SettingsFile, rule: Rule) -> Iterator[Any]:
    """Yield the level of a rule (True for its default), and its parameter if the file sets it."""
    where = ("rules", rule.id)
    entry = file.convert(Annotated[_Level | dict[str, Any], _LEVEL], *where)
    if not isinstance(entry, dict):
        yield entry
        return
    fields: list[tuple[str, Any, None]] = [("level", Annotated[_Level | None, _LEVEL], None)]
    parameter = rule.parameter
    if parameter is not None:
        form = Meta(description=parameter.form)
        fields.append((parameter.name, Annotated[parameter.type | None, form], None))
    names = [name for name, *_ in fields]
    for name in entry:
        if name not in names:
            raise file.error((*where, name), f"{rule.id} has no {name}: {', '.join(names)}")
    struct = msgspec.defstruct("_Rule", fields, bases=(StrictStruct,), frozen=True)
    read = stated(file.convert(struct, *where))
    yield read.get("level", True)
    if parameter is not None and parameter.name in read:
        value = read[parameter.name]
        for key in value if isinstance(value, dict) else ():
            file.convert(parameter.values, *where, parameter.name, key)
        yield value


def _read_exception(file: SettingsFile, index: str) -> tuple[str, Exemption]:
    exemption: Exemption = file.convert(Exemption, "exceptions", index)
    for number, pattern in enumerate(exemption.rules):
        if not fnmatch.filter(RULES, pattern):
            file.choice(pattern, RULES, "rule", "exceptions", index, "rules", str(number))
    return file.place("exceptions", index), exemption
