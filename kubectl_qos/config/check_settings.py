"""The settings of `check`: `.kubectl-qos.yaml` beside manifests, whose errors name the line."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec

from kubectl_qos.check.settings import FILE_NAME, PARAMETERS, Exemption, Level, RuleId, Settings
from kubectl_qos.errors import InputError, QuantityError
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.yaml_loader import YamlDocument, read_yaml

_Class = Literal["Guaranteed", "Burstable", "BestEffort"]
_Level = bool | Literal["off", "note", "warning", "error"]
_Text = Annotated[str, msgspec.Meta(min_length=1)]


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    pass


class _Rule(_Strict, frozen=True):
    level: _Level | None = None
    resources: Annotated[tuple[Literal["cpu", "memory"], ...], msgspec.Meta(min_length=1)] | None = None
    ratio: Annotated[int, msgspec.Meta(ge=1)] | None = None
    minimum: Quantity | None = None
    classes: dict[str, _Class] | None = None
    priority: int | None = None


class _Exception(_Strict, frozen=True):
    rules: tuple[_Text, ...]
    reason: _Text
    object: str = "*"
    namespace: str = "*"
    container: str = "*"
    until: date | None = None


class _File(_Strict, frozen=True):
    rules: dict[str, _Level | _Rule] = {}
    namespaces: tuple[str, ...] = ()
    node_memory: Quantity | None = None
    exceptions: tuple[_Exception, ...] = ()


def find_check_settings(paths: Iterable[str]) -> Path | None:
    """The file beside the first of these paths, or in a folder above it, up to the one with .git."""
    for path in map(Path, paths):
        if not path.exists():
            continue
        start = path.resolve()
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
        file = _convert(document)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark is not None else 1
        raise InputError(f"{path}, line {line}: {error.problem}") from None
    except yaml.YAMLError as error:
        raise InputError(f"{path}: {error}") from None
    except msgspec.ValidationError as error:
        message, _, where = str(error).partition(" - at `$")
        field = where.rstrip("`").lstrip(".")
        # msgspec writes [...] for any key of a mapping and any item of a list.
        line = document.position(field.partition("[...]")[0])[0] if document is not None else 0
        place = f"{field}: " if field else ""
        raise InputError(f"{path}, line {line + 1}: {place}{message}") from None
    return _settings(file, lambda field, message: _error(path, document, field, message))


def _settings(file: _File, error: Callable[[str, str], InputError]) -> Settings:
    levels: dict[RuleId, Level | None] = {}
    parameters: dict[str, Any] = {}
    for name, entry in file.rules.items():
        if name not in _IDS:
            raise error(f"rules.{name}", f"there is no rule {name!r}: {', '.join(_IDS)}")
        rule, own = _IDS[name], entry if isinstance(entry, _Rule) else _Rule(level=entry)
        if own.level is not None and own.level is not True:
            levels[rule] = None if own.level in {False, "off"} else Level(str(own.level))
        given = {key: value for key, value in msgspec.structs.asdict(own).items() if value is not None}
        for parameter in given.keys() - {"level", PARAMETERS.get(rule)}:
            raise error(f"rules.{name}.{parameter}", f"{name} has no {parameter}")
        parameters |= {key: value for key, value in given.items() if key != "level"}
    for pattern in chain.from_iterable(one.rules for one in file.exceptions):
        if not fnmatch.filter(_IDS, pattern):
            raise error("exceptions", f"there is no rule {pattern!r}: {', '.join(_IDS)}")
    return Settings(
        levels=levels,
        namespaces=file.namespaces,
        node_memory_bytes=file.node_memory.value() if file.node_memory is not None else None,
        exceptions=tuple(Exemption(**msgspec.structs.asdict(one)) for one in file.exceptions),
        **parameters,
    )


def _convert(document: YamlDocument | None) -> _File:
    def hook(_: Any, value: object) -> Quantity:
        try:
            return Quantity.from_json(value)
        except QuantityError as error:
            raise ValueError(str(error)) from None

    return msgspec.convert(document.value if document is not None else {}, _File, dec_hook=hook)


_IDS: Final[Mapping[str, RuleId]] = {rule.value: rule for rule in RuleId}


def _error(path: Path, document: YamlDocument | None, field: str, message: str) -> InputError:
    line = document.position(field)[0] if document is not None else 0
    return InputError(f"{path}, line {line + 1}: {message}")
