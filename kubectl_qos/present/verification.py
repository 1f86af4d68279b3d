"""Computed beside measured in words: rows, causes as sentences, the sum of it, and plain values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kubectl_qos.present.format import NONE, UNKNOWN, binary, escape
from kubectl_qos.present.output import lines
from kubectl_qos.present.pod_columns import Align
from kubectl_qos.present.reasons import assumption_sentence
from kubectl_qos.qos.cgroup.tree import CgroupLevel
from kubectl_qos.qos.prediction import Assumption
from kubectl_qos.qos.reason import Confidence
from kubectl_qos.qos.verify.compare import CheckedValue, Unread, Verified
from kubectl_qos.qos.verify.drift import DriftCause, DriftReason

_HEADERS: Final = ("LEVEL", "FILE", "COMPUTED", "MEASURED", "DRIFT", "CAUSE")
_MOST_NAMED: Final = 3


def check_lines(found: Sequence[Verified], *, everything: bool) -> Iterator[str]:
    """A row for each value that drifted, or for every value; of several pods each row names its own."""
    many = sum(one.pod is not None for one in found) > 1
    cells = [
        (*((_owner(one),) if many else ()), *_cells(check))
        for one in found
        for check in one.checks
        if check.drift or everything
    ]
    if not cells:
        return iter(())
    headers = ("POD", *_HEADERS) if many else _HEADERS
    return lines(cells, [Align.LEFT] * len(headers), headers)


def summary(found: Sequence[Verified]) -> str:
    """`43 values of 5 containers as computed, 1 drift`."""
    compared = [check for one in found for check in one.compared]
    drift = sum(check.drift for check in compared)
    containers = {
        (id(one), check.container)
        for one in found
        for check in one.compared
        if check.level is CgroupLevel.CONTAINER
    }
    same = len(compared) - drift
    return (
        f"{_count(same, 'value')} of {_count(len(containers), 'container')} as computed, "
        f"{drift or 'no'} drift"
    )


def verification_notes(found: Sequence[Verified], assumed: Iterable[Assumption]) -> Iterator[str]:
    """What could not be looked at, and what a drift may depend on that nobody measured."""
    for one in found:
        for unread in one.unread:
            yield unread_sentence(one, unread)
    for one in found:
        runtime = one.pod.spec.runtime_class_name if one.pod is not None else None
        if one.drift and runtime:
            yield (
                f"{_owner(one)} has the RuntimeClass {escape(runtime)}: in a sandbox such as Kata or gVisor a"
                " container shows values of the sandbox, not of the node"
            )
    if any(one.drift for one in found):
        taken = ", ".join(map(assumption_sentence, assumed))
        if taken:
            yield f"not measured, assumed: {taken}"


def unread_sentence(of: Verified, unread: Unread) -> str:
    """Which container was not looked at, why, and what would help."""
    remedy = f" ({unread.remedy})" if unread.remedy else ""
    name = f" container {unread.container}" if unread.container else ""
    return f"{_owner(of)}{escape(name)}: {escape(unread.why)}{escape(remedy)}"


def verification_values(found: Sequence[Verified], notes: Iterable[str]) -> dict[str, Any]:
    """All of it for JSON and YAML, drift or not."""
    return {
        "kind": "Verification",
        "drift": sum(len(one.drift) for one in found),
        "items": [
            {
                "namespace": one.pod.namespace if one.pod is not None else None,
                "pod": one.pod.name if one.pod is not None else None,
                "checks": [_check_values(check) for check in one.checks],
                "unread": [
                    {
                        "container": unread.container or None,
                        "why": unread.why,
                        "remedy": unread.remedy or None,
                    }
                    for unread in one.unread
                ],
            }
            for one in found
        ],
        "notes": list(notes),
    }


def cause_sentence(cause: DriftCause) -> str:
    """`likely: …`; what is certain is said without a word for it."""
    said = _SENTENCES[cause.reason](cause.inputs)
    return said if cause.confidence is Confidence.CERTAIN else f"{cause.confidence.value}: {said}"


def _cells(check: CheckedValue) -> tuple[str, ...]:
    level = f"{check.level.value} {escape(check.container)}".strip()
    drift = UNKNOWN if check.measured is None else "yes" if check.drift else "no"
    return (
        level,
        _file(check),
        NONE if check.computed is None else escape(check.computed) or '""',
        UNKNOWN if check.measured is None else escape(check.measured) or '""',
        drift,
        cause_sentence(check.cause) if check.cause is not None else _no_cause(check),
    )


def _no_cause(check: CheckedValue) -> str:
    return "none known" if check.drift else NONE


def _file(check: CheckedValue) -> str:
    """The file's name; of oom_score_adj, whose it is."""
    if not check.processes:
        return escape(check.file)
    named = ", ".join(escape(f"{one.pid} {one.name}".strip()) for one in check.processes[:_MOST_NAMED])
    more = len(check.processes) - _MOST_NAMED
    return f"{escape(check.file)} of {named}" + (f" and {more} more" if more > 0 else "")


def _owner(found: Verified) -> str:
    pod = found.pod
    return escape(f"{pod.namespace}/{pod.name}" if pod is not None else "node")


def _check_values(check: CheckedValue) -> dict[str, Any]:
    cause = check.cause
    return {
        "level": check.level.value,
        "container": check.container or None,
        "file": check.file,
        "computed": check.computed,
        "measured": check.measured,
        "drift": check.drift if check.measured is not None else None,
        "processes": [{"pid": one.pid, "name": one.name} for one in check.processes],
        "cause": None
        if cause is None
        else {
            "why": cause.reason.value,
            "confidence": cause.confidence.value,
            "sentence": cause_sentence(cause),
        },
    }


def _own_adj(inputs: Mapping[str, object]) -> str:
    if inputs["raised"]:
        return "the application set its own, which any process may raise"
    return "the application set its own, with CAP_SYS_RESOURCE since it is lower"


def _setting(inputs: Mapping[str, object]) -> str:
    texts: Any = inputs["settings"]
    values = " ".join(texts)
    if inputs["assumed"]:
        flags = " ".join(f"--assume '{text}'" if " " in text else f"--assume {text}" for text in texts)
        return f"the node has {values}, which was assumed otherwise ({flags})"
    return f"made while the kubelet had {values}"


def _before_resize(inputs: Mapping[str, object]) -> str:
    least, most = (int(str(inputs.get(name, 0))) for name in ("least", "most"))
    then = f", then {binary(least)} to {binary(most)}" if most else ""
    return f"started before a resize of its memory request{then}; a restart gives it the computed one"


def _resize_under_way(inputs: Mapping[str, object]) -> str:
    condition = f" ({escape(str(inputs['condition']))})" if inputs["condition"] else ""
    return f"a resize is not in force yet{condition}"


_SENTENCES: Final[Mapping[DriftReason, Callable[[Mapping[str, object]], str]]] = {
    DriftReason.OWN_ADJ: _own_adj,
    DriftReason.SETTING: _setting,
    DriftReason.OLDER_RELEASE: lambda inputs: f"made by a kubelet of {inputs['release']}, before an upgrade",
    DriftReason.RESIZE_UNDER_WAY: _resize_under_way,
    DriftReason.BEFORE_RESIZE: _before_resize,
    DriftReason.RESIZED: lambda _: (
        "the pod was changed since it was made, and a resize does not write every value"
    ),
    DriftReason.OTHER_DRIVER: lambda inputs: (
        f"the driver is {inputs['driver']} (--assume cgroupDriver={inputs['driver']})"
    ),
    DriftReason.STALE_HIERARCHY: lambda inputs: (
        f"made before the driver was switched; new pods are in {inputs['path']}"
    ),
    DriftReason.LEFT_HIERARCHY: lambda _: "left behind when the driver was switched",
    DriftReason.OTHER_CLASS: lambda inputs: f"the pod was made as {inputs['qos']}",
    DriftReason.OTHER_RUNTIME: lambda _: "the directory is named by another container runtime",
    DriftReason.MEMORY_QOS_LEFT: lambda _: "left behind by MemoryQoS, which the kubelet does not take back",
    DriftReason.INNER_CGROUP: lambda _: (
        "crun puts processes into a cgroup below the limits, and the container sees but that one"
    ),
    DriftReason.LAGS: lambda _: "the kubelet writes the classes once a minute, and pods came or went",
}


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
