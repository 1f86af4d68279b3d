"""Computed and measured values: the table, the causes of drift, and a summary."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kubectl_qos.analysis.verification import CheckedValue, DriftCause, DriftReason, Verified
from kubectl_qos.errors import first_few
from kubectl_qos.present.format import NONE, UNKNOWN, binary, count, escape
from kubectl_qos.present.output import cell_table
from kubectl_qos.present.reasons import assumption_sentence
from kubectl_qos.qos.cgroup.tree import CgroupLevel
from kubectl_qos.qos.prediction import Assumption
from kubectl_qos.qos.reason import Confidence


def check_lines(verified: Sequence[Verified], *, everything: bool, width: int | None = None) -> Iterator[str]:
    """Yield a row for each value that drifted, or for every value; with the pod if there are several."""
    many = sum(result.pod is not None for result in verified) > 1
    cells = [
        (*((_owner(result),) if many else ()), *_cells(check))
        for result in verified
        for check in result.checks
        if check.drift or everything
    ]
    headers = (*(("POD",) if many else ()), "LEVEL", "FILE", "COMPUTED", "MEASURED", "DRIFT", "CAUSE")
    return cell_table(cells, headers, width, ("DRIFT", "CAUSE"))


def summary(verified: Sequence[Verified]) -> str:
    """Return `43 values of 5 containers match, 1 drift`, or that nothing was measured."""
    unread = sum(bool(unread.container) for result in verified for unread in result.unread)
    compared = [check for result in verified for check in result.compared]
    drift = sum(check.drift for check in compared)
    containers = {
        (id(result), check.container)
        for result in verified
        for check in result.compared
        if check.level is CgroupLevel.CONTAINER
    }
    if not compared:
        of = f": {count(unread, 'container')} could not be read" if unread else ""
        return f"nothing was measured{of}"
    same = count(len(compared) - drift, "value")
    return f"{same} of {count(len(containers), 'container')} match, {drift or 'no'} drift"


def verification_notes(verified: Sequence[Verified], assumed: Iterable[Assumption]) -> Iterator[str]:
    """Yield what could not be read, and the assumptions that a drift may depend on."""
    reasons: dict[tuple[str, str | None], list[str]] = {}
    for result in verified:
        for unread in result.unread:
            name = f" container {unread.container}" if unread.container else ""
            owners = reasons.setdefault((unread.message, unread.remedy), [])
            owners.append(f"{_owner(result)}{escape(name)}")
    for (message, remedy), names in reasons.items():
        yield f"{first_few(names)}: {escape(message)}" + (f" ({escape(remedy)})" if remedy else "")
    yield from _multi_process_notes(verified)
    yield from _reached_notes(verified)
    for result in verified:
        runtime = result.pod.spec.runtime_class_name if result.pod is not None else None
        if result.drift and runtime:
            yield (
                f"{_owner(result)} has the RuntimeClass {escape(runtime)}: in a sandbox such as Kata or"
                " gVisor a container shows values of the sandbox, not of the node"
            )
    assumptions = ", ".join(map(assumption_sentence, assumed))
    if assumptions and any(result.drift for result in verified):
        yield f"not measured, assumed: {assumptions}"


def _reached_notes(verified: Iterable[Verified]) -> Iterator[str]:
    names = []
    for result in verified:
        for name, counts in result.events.items():
            events = [f"{event} {times}" for event, times in counts.items() if times]
            if events:
                names.append(f"{_owner(result)} container {escape(name)} ({', '.join(events)})")
    if names:
        yield f"hit a memory bound since they started (memory.events): {first_few(names)}"


def _multi_process_notes(verified: Iterable[Verified]) -> Iterator[str]:
    """Yield the containers with several processes, which a ranking does not know."""
    names = []
    for result in verified:
        for container, processes in result.multi_process.items():
            scores = [process.oom_score for process in processes if process.oom_score is not None]
            highest = f", the highest oom_score {max(scores)}" if scores else ""
            names.append(f"{_owner(result)} container {escape(container)} ({len(processes)}{highest})")
    if names:
        yield f"several processes, which the kernel scores one by one but RANK as one: {first_few(names)}"


def cause_sentence(cause: DriftCause) -> str:
    """Put a cause into words."""
    words = _SENTENCES[cause.reason]
    text = words.format(**cause.inputs) if isinstance(words, str) else words(cause.inputs)
    return text if cause.confidence is Confidence.CERTAIN else f"{cause.confidence.value}: {text}"


def _cells(check: CheckedValue) -> tuple[str, ...]:
    no_cause = "none known" if check.drift else NONE
    processes = [escape(f"{process.pid} {process.name}".strip()) for process in check.processes]
    return (
        f"{check.level.value} {escape(check.container)}".strip(),
        f"{escape(check.file)} of {first_few(processes)}" if processes else escape(check.file),
        NONE if check.computed is None else escape(check.computed) or '""',
        UNKNOWN if check.measured is None else escape(check.measured) or '""',
        UNKNOWN if check.measured is None else "yes" if check.drift else "no",
        no_cause if check.cause is None else cause_sentence(check.cause),
    )


def _owner(verified: Verified) -> str:
    pod = verified.pod
    return escape(f"{pod.namespace}/{pod.name}" if pod is not None else "node")


Inputs = Mapping[str, object]


def _setting(inputs: Inputs) -> str:
    texts: Any = inputs["settings"]
    values = " ".join(texts)
    if inputs["assumed"]:
        flags = " ".join(f"--assume '{text}'" if " " in text else f"--assume {text}" for text in texts)
        return f"the node has {values}, but another value was assumed ({flags})"
    return f"created while the kubelet had {values}"


def _before_resize(inputs: Inputs) -> str:
    least, most = (int(str(inputs.get(name, 0))) for name in ("least", "most"))
    request = f" (then {binary(least)} to {binary(most)})" if most else ""
    return f"started before a resize of its memory request{request}; a restart corrects it"


_SENTENCES: Final[Mapping[DriftReason, str | Callable[[Inputs], str]]] = {
    DriftReason.OWN_ADJ: lambda inputs: (
        "set by the application: a process may raise its own value"
        if inputs["raised"]
        else "set by the application, which has CAP_SYS_RESOURCE: only that allows lowering it"
    ),
    DriftReason.SETTING: _setting,
    DriftReason.OLDER_RELEASE: "created by a kubelet of {release}, before an upgrade",
    DriftReason.RESIZE_UNDER_WAY: lambda inputs: (
        f"a resize has not taken effect yet ({escape(str(inputs['condition']))})".removesuffix(" ()")
    ),
    DriftReason.BEFORE_RESIZE: _before_resize,
    DriftReason.RESIZED: "the pod was resized since it was created, and a resize does not write every value",
    DriftReason.OTHER_DRIVER: "the driver is {driver} (--assume cgroupDriver={driver})",
    DriftReason.STALE_HIERARCHY: "created before the driver was changed; new pods are in {path}",
    DriftReason.LEFT_HIERARCHY: "left behind when the driver was changed",
    DriftReason.OTHER_CLASS: "the pod was created as {qos}",
    DriftReason.OTHER_RUNTIME: "the directory is named by another container runtime",
    DriftReason.MEMORY_QOS_LEFT: "left behind by MemoryQoS: the kubelet does not reset it",
    DriftReason.INNER_CGROUP: "crun puts processes into an inner cgroup, the only one the container sees",
    DriftReason.LAGS: "the kubelet updates the classes once a minute, and pods came or went",
}
