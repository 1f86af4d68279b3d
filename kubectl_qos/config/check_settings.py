"""The settings of `check`: `.kubectl-qos.yaml` beside manifests."""

import fnmatch
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from kubectl_qos.check.settings import FILE_NAME, PARAMETERS, Exemption, Level, RuleId, Settings
from kubectl_qos.config.settings import SettingsFile, StrictStruct, stated
from kubectl_qos.errors import InputError, QuantityError
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.validation import memory_bytes

_LEVEL: Final = Meta(description="off, note, warning or error")
_Level = bool | Literal["off", "note", "warning", "error"]
_Class = Annotated[
    Literal["Guaranteed", "Burstable", "BestEffort"], Meta(description="Guaranteed, Burstable or BestEffort")
]
_Resources = Annotated[tuple[Literal["cpu", "memory"], ...], Meta(min_length=1)]
_AtLeastOne = Annotated[int, Meta(ge=1)]
_Text = Annotated[str, Meta(min_length=1)]


class _Rule(StrictStruct, frozen=True):
    level: Annotated[_Level | None, _LEVEL] = None
    resources: Annotated[_Resources | None, Meta(description="a list of cpu, memory")] = None
    ratio: Annotated[_AtLeastOne | None, Meta(description="a whole number from 1")] = None
    minimum: Annotated[Quantity | None, Meta(description="a quantity such as 16Mi")] = None
    classes: Annotated[dict[str, Any] | None, Meta(description="a mapping of namespaces to classes")] = None
    priority: Annotated[int | None, Meta(description="a whole number")] = None


class _Exception(StrictStruct, frozen=True):
    rules: Annotated[tuple[_Text, ...], Meta(description="a list of ids or patterns, such as [QOS006]")]
    reason: Annotated[_Text, Meta(description="a text")]
    object: Annotated[str, Meta(description="a name or a pattern")] = "*"
    namespace: Annotated[str, Meta(description="a name or a pattern")] = "*"
    container: Annotated[str, Meta(description="a name or a pattern")] = "*"
    until: Annotated[date | None, Meta(description="a day such as 2027-03-31")] = None


class _File(StrictStruct, frozen=True):
    rules: Annotated[dict[str, Any] | None, Meta(description="a mapping of rules by their ids")] = None
    namespaces: Annotated[tuple[str, ...], Meta(description="a list of names or patterns")] = ()
    node_memory: Annotated[Quantity | None, Meta(description="a quantity such as 16Gi")] = None
    exceptions: Annotated[tuple[Any, ...], Meta(description="a list of mappings with rules and reason")] = ()


def find_check_settings(path: str) -> Path | None:
    """Return the file beside a path, or in a folder above it, up to the folder with .git.

    For standard input, which has no path, the search begins in the working directory.
    """
    start = Path(path).resolve()
    for folder in (start, *start.parents) if start.is_dir() else start.parents:
        if (folder / FILE_NAME).is_file():
            return folder / FILE_NAME
        if (folder / ".git").exists():
            break
    return None


def read_check_settings(path: Path) -> Settings:
    """Read the settings of a file. Raises InputError with file and line."""
    try:
        file = SettingsFile.read(path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    fields: _File = file.convert(_File)
    levels: dict[RuleId, Level | None] = {}
    parameters: dict[str, Any] = {"resources": {**Settings().resources}}
    for name in fields.rules or ():
        rule = _IDS[file.choice(name, _IDS, "rule", "rules", name)]
        rule_fields = _read_rule(file, rule)
        level = rule_fields.pop("level", True)
        if level is not True:
            levels[rule] = None if level in {False, "off"} else Level(level)
        if "resources" in rule_fields:
            parameters["resources"][rule] = rule_fields.pop("resources")
        parameters |= rule_fields
    exceptions = [_read_exception(file, str(index)) for index in range(len(fields.exceptions))]
    try:
        memory = memory_bytes(str(fields.node_memory)) if fields.node_memory is not None else None
    except QuantityError as wrong:
        raise file.error(("nodeMemory",), f"nodeMemory: {wrong}") from None
    return Settings(
        levels=levels,
        namespaces=fields.namespaces,
        place=file.place("namespaces"),
        node_memory_bytes=memory,
        exceptions=tuple(exceptions),
        **parameters,
    )


def _read_rule(file: SettingsFile, rule: RuleId) -> dict[str, Any]:
    """Return the level and the parameter of a rule, as far as the file has them."""
    where = ("rules", str(rule))
    entry = file.convert(Annotated[_Level | dict[str, Any], _LEVEL], *where)
    if not isinstance(entry, dict):
        return {"level": entry}
    names = [name for name in ("level", PARAMETERS.get(rule)) if name is not None]
    for name in entry:
        if name not in names:
            raise file.error((*where, name), f"{rule} has no {name}: {', '.join(names)}")
    fields: _Rule = file.convert(_Rule, *where)
    for pattern in fields.classes or ():
        file.convert(_Class, *where, "classes", pattern)
    return stated(fields)


def _read_exception(file: SettingsFile, index: str) -> Exemption:
    fields: _Exception = file.convert(_Exception, "exceptions", index)
    for number, pattern in enumerate(fields.rules):
        if not fnmatch.filter(_IDS, pattern):
            file.choice(pattern, _IDS, "rule", "exceptions", index, "rules", str(number))
    return Exemption(**stated(fields), place=file.place("exceptions", index))


_IDS: Final[Mapping[str, RuleId]] = {rule.value: rule for rule in RuleId}
