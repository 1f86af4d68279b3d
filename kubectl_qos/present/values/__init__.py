"""What `-o json|yaml` prints, as typed structs; docs/schema is generated from them.

Names are camelCase as in Kubernetes, times RFC 3339, sizes bytes (`memoryBytes`), durations seconds; what is
unknown or does not apply is null. The modules are imported when such an output is requested. Not here:
tables, whose columns are their fields (output.py), and the dump of a node (qos/process_order.py).
"""

import re
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, Literal, TypeVar

import msgspec

API_VERSION: Final = "kubectl-qos/v1"
_INITIALS: Final = frozenset({"id", "oom", "qos", "uid"})


def camel(name: str) -> str:
    """Return a name as Kubernetes spells it: `pod_uid` is `podUID`, `server address` is `serverAddress`."""
    first, *others = re.split(r"[^A-Za-z0-9]+", name)
    more = (word.upper() if word in _INITIALS else word[:1].upper() + word[1:] for word in others)
    return first[:1].lower() + first[1:] + "".join(more)


def reason_name(reason: Enum) -> str:
    """Return a member as Kubernetes writes reasons: `LimitRangeRefuses` of LIMIT_RANGE_REFUSES."""
    return camel(f"_{reason.name.lower()}")


class Values(msgspec.Struct, frozen=True, kw_only=True, rename=camel):
    """An object inside of a document."""


ValuesT = TypeVar("ValuesT", bound=Values)


class Document(Values, frozen=True, kw_only=True, tag_field="kind"):
    """A whole output, with its kind."""

    api_version: Literal["kubectl-qos/v1"] = API_VERSION


class TimedDocument(Document, frozen=True, kw_only=True):
    """A document that may be about the past; then `at` is its time."""

    at: str | msgspec.UnsetType = msgspec.UNSET


class ListValues(TimedDocument, frozen=True, kw_only=True, tag="List"):
    """Several documents, each with its own kind."""

    items: tuple[Any, ...]


class ClusterValues(Values, frozen=True):
    """A cluster of --contexts or --all-contexts; `error` says why it did not answer."""

    cluster: str
    error: str | None
    hint: str | None


class OfCluster(Values, frozen=True, kw_only=True):
    """An item that has the context of its cluster if there are several."""

    cluster: str | msgspec.UnsetType = msgspec.UNSET


def copied(to: type[ValuesT], source: object, **others: Any) -> ValuesT:
    """Return values with the fields of an object, except `others`; an empty text becomes null."""
    fields = {name: getattr(source, name) for name in to.__annotations__ if name not in others}
    return to(**{name: None if value == "" else value for name, value in fields.items()}, **others)


class TextChange(Values, frozen=True):
    """A text before and after."""

    before: str | None
    after: str | None


def as_document(values: Document | Mapping[str, Any], at: str = "") -> dict[str, Any]:
    """Return the plain values of a document, apiVersion first, then the time of one about the past."""
    document = streamed_document(values, at)
    return document | ({"items": [*document["items"]]} if "items" in document else {})


def streamed_document(values: Document | Mapping[str, Any], at: str = "") -> dict[str, Any]:
    """Return the plain values of a document, with an iterator as `items`: a large cluster has many."""
    if isinstance(values, Mapping):
        items, values = values.get("items"), {**values, "items": ()} if "items" in values else values
    elif (items := getattr(values, "items", None)) is not None:
        values = msgspec.structs.replace(values, items=())
    past = {"at": at} if at else {}
    document = {"apiVersion": API_VERSION, **past, **_plain(values)}
    return document | ({"items": map(_plain, items)} if items is not None else {})


def _plain(value: object) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def plain(value: object) -> Any:
    """Return a value of a reason with its names in camelCase."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {camel(str(name)): plain(item) for name, item in value.items()}
    return str(value)
