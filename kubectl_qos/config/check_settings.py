"""The settings of `check`: `.kubectl-qos.yaml` beside manifests, whose errors name the line."""

import fnmatch
import re
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

import msgspec

from kubectl_qos.check.settings import FILE_NAME, PARAMETERS, Exemption, Level, RuleId, Settings
from kubectl_qos.config.settings import suggestion
from kubectl_qos.errors import InputError, QuantityError
from kubectl_qos.k8s.manifest import memory_bytes
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.yaml_loader import YamlDocument, read_yaml

_Class = Literal["Guaranteed", "Burstable", "BestEffort"]
_Level = bool | Literal["off", "note", "warning", "error"]
_Text = Annotated[str, msgspec.Meta(min_length=1)]
_Error = Callable[[str, str], InputError]
"""Makes an error of a field's path and a message."""
_LEVELS: Final = "off, note, warning, error"
_ALLOWED: Final[Mapping[str, str]] = {
    "rules": "a mapping of rules by their ids",
    "level": _LEVELS,
    "resources": "a list of cpu, memory",
    "ratio": "a whole number from 1",
    "minimum": "a quantity such as 16Mi",
    "classes": ", ".join(get_args(_Class)),
    "priority": "a whole number",
    "namespaces": "a list of names or patterns",
    "nodeMemory": "a quantity such as 16Gi",
    "exceptions": "a list of mappings with rules and reason",
    "exceptions.rules": "a list of ids or patterns, such as [QOS006]",
    "until": "a day such as 2027-03-31",
}


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    pass


class _Rule(_Strict, frozen=True):
    level: _Level | None = None
    resources: Annotated[tuple[Literal["cpu", "memory"], ...], msgspec.Meta(min_length=1)] | None = None
    ratio: Annotated[int, msgspec.Meta(ge=1)] | None = None
    minimum: Quantity | None = None
    classes: dict[str, Any] | None = None
    priority: int | None = None


class _Exception(_Strict, frozen=True):
    rules: tuple[_Text, ...]
    reason: _Text
    object: str = "*"
    namespace: str = "*"
    container: str = "*"
    until: date | None = None


class _File(_Strict, frozen=True):
    rules: dict[str, Any] = {}
    namespaces: tuple[str, ...] = ()
    node_memory: Quantity | None = None
    exceptions: tuple[_Exception, ...] = ()


def find_check_settings(path: str) -> Path | None:
    """The file beside a path, or in a folder above it, up to the one with .git.

    What is no path, as standard input, has that of the working directory.
    """
    start = Path(path).resolve()
    for folder in (start, *start.parents) if start.is_dir() else start.parents:
        if (folder / FILE_NAME).is_file():
            return folder / FILE_NAME
        if (folder / ".git").exists():
            break
    return None


def read_check_settings(path: Path) -> Settings:
    """The settings of a file. Raises InputError with file and line."""
    import yaml

    try:
        document = read_yaml(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark is not None else 1
        raise InputError(f"{path}, line {line}: {error.problem}") from None
    except yaml.YAMLError as error:
        raise InputError(f"{path}: {error}") from None
    for field, number in document.duplicates() if document is not None else ():
        raise InputError(f"{path}, line {number + 1}: {field} is there twice", hint="keep one")
    return _settings(path, document)


def _settings(path: Path, document: YamlDocument | None) -> Settings:
    def line(field: str) -> int:
        return document.position(field)[0] + 1 if document is not None else 1

    def error(field: str, message: str) -> InputError:
        return InputError(f"{path}, line {line(field)}: {message}")

    file: _File = _convert(document.value if document is not None else {}, _File, "", error)
    levels: dict[RuleId, Level | None] = {}
    parameters: dict[str, Any] = {}
    for name, entry in file.rules.items():
        where = f"rules.{name}"
        if name not in _IDS:
            raise error(where, f"there is no rule {name!r}: {', '.join(_IDS)}")
        rule = _IDS[name]
        own = _rule(entry, rule, where, error)
        if own.level is not None and own.level is not True:
            levels[rule] = None if own.level in {False, "off"} else Level(str(own.level))
        given = {key: value for key, value in msgspec.structs.asdict(own).items() if value is not None}
        parameters |= {key: value for key, value in given.items() if key != "level"}
    for index, exception in enumerate(file.exceptions):
        for number, pattern in enumerate(exception.rules):
            if not fnmatch.filter(_IDS, pattern):
                where = f"exceptions[{index}].rules[{number}]"
                raise error(where, f"there is no rule {pattern!r}: {', '.join(_IDS)}")
    try:
        memory = memory_bytes(str(file.node_memory)) if file.node_memory is not None else None
    except QuantityError as wrong:
        raise error("nodeMemory", f"nodeMemory: {wrong}") from None
    return Settings(
        levels=levels,
        namespaces=file.namespaces,
        place=f"{path}:{line('namespaces')}",
        node_memory_bytes=memory,
        exceptions=tuple(
            Exemption(**msgspec.structs.asdict(exception), place=f"{path}:{line(f'exceptions[{index}]')}")
            for index, exception in enumerate(file.exceptions)
        ),
        **parameters,
    )


def _rule(entry: object, rule: RuleId, where: str, error: _Error) -> _Rule:
    names = [name for name in ("level", PARAMETERS.get(rule)) if name is not None]
    for key in entry if isinstance(entry, dict) else ():
        if key not in names:
            raise error(f"{where}.{key}", f"{rule} has no {key}: {', '.join(names)}")
    own = _convert(entry, _Level | _Rule, where, error)
    own = own if isinstance(own, _Rule) else _Rule(level=own)
    for pattern, qos in (own.classes or {}).items():
        _convert(qos, _Class, f"{where}.classes.{pattern}", error, "classes")
    return own


def _convert(value: object, type_: Any, where: str, error: _Error, allowed: str = "") -> Any:
    """A value as its type; the error names the field, and what `_ALLOWED` has of it or of `allowed`."""

    def hook(_: Any, value: object) -> Quantity:
        try:
            return Quantity.from_json(value)
        except QuantityError as wrong:
            raise ValueError(str(wrong)) from None

    try:
        return msgspec.convert(value, type_, dec_hook=hook)
    except msgspec.ValidationError as wrong:
        message, _, inner = str(wrong).partition(" - at `$")
        # msgspec writes [...] for any key of a mapping.
        field = f"{where}{inner.rstrip('`')}".lstrip(".").partition("[...]")[0]
        plain = re.sub(r"\[\d+\]", "", field)
        last = plain.rpartition(".")[2]
        values = _LEVELS if last in _IDS else _ALLOWED.get(plain) or _ALLOWED.get(allowed or last, "")
        if unknown := re.search("unknown field `(.*)`$", message):
            fields = msgspec.structs.fields(_Exception if field else _File)
            names = [option.encode_name for option in fields]
            field = f"{field}.{unknown[1]}".lstrip(".")
            raise error(field, f"{field}: unknown field; {suggestion(unknown[1], names)}") from None
        place = f"{field}: " if field else ""
        raise error(field, f"{place}{message}{f'; allowed: {values}' if values else ''}") from None


_IDS: Final[Mapping[str, RuleId]] = {rule.value: rule for rule in RuleId}
