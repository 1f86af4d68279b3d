"""Rules about requests and limits that the server refuses, drops or changes, and about likely mistakes.

Init, sidecar and ephemeral containers are read too. Sources: pkg/apis/core/validation/validation.go (through
k8s/validation.py).
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Final, Literal

from msgspec import Meta

from kubectl_qos.check.policy import compared, each, expanded, is_windows, quoted
from kubectl_qos.check.rule import Case, Hit, Parameter, Rule
from kubectl_qos.check.settings import CheckSettings, Level
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.defaulting import SYSTEM_CRITICAL_PRIORITY, SYSTEM_NODE_CRITICAL, admitted, default_pod
from kubectl_qos.k8s.objects import CPU, LEAST_MEMORY, MEMORY, NO_RESOURCES, all_containers
from kubectl_qos.k8s.quantity import ZERO, Quantity
from kubectl_qos.k8s.releases import Gate
from kubectl_qos.k8s.resources import resources_of_pod
from kubectl_qos.k8s.validation import MOST_CPU_MILLI, MistakeCode, pod_refusals
from kubectl_qos.qos.cgroup.values import UNWRITTEN
from kubectl_qos.qos.oom_score import is_node_critical
from kubectl_qos.qos.prediction import Prediction, predict_running
from kubectl_qos.qos.qos_class import SPEC_RESOURCES, QosClass
from kubectl_qos.qos.ranking import ContainerKind


def _refusals(case: Case, *, above_limit: bool) -> Iterator[Hit]:
    """Yield mistakes that the server refuses: requests above limits, or all others but unknown fields."""
    # The server does not validate pod templates of custom resources; their group has a domain.
    group, _, _ = str(case.subject.raw.get("apiVersion")).partition("/")
    what = "its pods" if "." in group else "it"
    for code, path, message, _ in case.mistakes:
        is_above = path.endswith(".requests") and "less than or equal" in message
        if is_above is above_limit and code not in {MistakeCode.UNKNOWN_FIELD, MistakeCode.ODD_SIZE}:
            yield Hit(case, path, {"what": what, "text": message})


class _Refused(Rule):
    id, level = "QOS001", Level.ERROR
    title = "the API server refuses it"
    message = "the API server refuses {what}: {text}"
    why = """The API server does not create the object. If that is a custom resource with a pod template, the
    API server refuses its pods."""
    remedy = "Correct the field. Its path is in the message, which is the server's own."
    no_policy = "the API server refuses it before a policy sees it"
    refuses = True

    def find(self, case: Case) -> Iterator[Hit]:
        """Yield mistakes of validation, and resources of ephemeral containers."""
        for owner in case.owners:
            if owner.kind is ContainerKind.EPHEMERAL and owner.resources != NO_RESOURCES:
                path = f"{owner.path}.resources"
                text = f"{path}: Forbidden: cannot be set for an Ephemeral Container"
                yield Hit(case, path, {"what": "it", "text": text}, owner.name)
        yield from _refusals(case, above_limit=False)


class _RequestAboveLimit(Rule):
    id, level = "QOS002", Level.ERROR
    title = "a request is above its limit"
    message = "the API server refuses {what}: {text}"
    why = """The API server refuses a pod, and a workload by its pod template, that requests more of a
    resource than its limit."""
    remedy = "Lower the request, or raise the limit to it."
    no_policy = "the API server refuses it before a policy sees it"
    refuses = True

    def find(self, case: Case) -> Iterator[Hit]:
        return _refusals(case, above_limit=True)


class _UnknownField(Rule):
    id, level = "QOS003", Level.ERROR
    title = "a field that does not exist"
    message = 'unknown field "{field}"'
    why = "Without strict validation the server drops the field silently: a misspelled `limits` is no limit."
    remedy = """Correct the name of the field, or remove it. In custom resources only the containers are
    checked."""
    no_policy = "the API server drops such a field before a policy sees it"

    def find(self, case: Case) -> Iterator[Hit]:
        for mistake in case.mistakes:
            if mistake.code is MistakeCode.UNKNOWN_FIELD:
                yield Hit(case, mistake.path, {"field": mistake.path})


class _DuplicateField(Rule):
    id, level = "QOS004", Level.WARNING
    title = "a duplicate field"
    message = 'duplicate field "{field}": the last one counts'
    why = "The last value wins silently; it is often the one that was copied from elsewhere."
    remedy = "Keep one of them."
    no_policy = "a policy sees one value only"

    def find(self, case: Case) -> Iterator[Hit]:
        for path in case.subject.duplicates if not case.is_stored else ():
            yield Hit(case, path, {"field": path})


_NAMES: Final = Annotated[tuple[Literal["cpu", "memory"], ...], Meta(min_length=1)]
_RESOURCES: Final = ("resources", _NAMES, "a list of cpu, memory", (CPU, MEMORY))
_ODD_MEMORY: Final = "less than a process needs to start; did you mean Mi?"
_ODD_CPU: Final = "more cores than any node has; did you mean m?"


class _OddSize(Rule):
    id, level = "QOS005", Level.ERROR
    title = "a size that looks like a typo"
    message = "{owner}: {side}.{resource} of {value} is {problem}"
    why = """`600` is 600 bytes and `512m` is half a byte: no process starts with that. A CPU of `500` is 500
    cores: no node has them, and the pod stays Pending."""
    remedy = "Write the unit, as in `512Mi` and `500m`."

    def find(self, case: Case) -> Iterator[Hit]:
        for owner in case.owners:
            for side in ("limits", "requests"):
                amounts = owner.amounts(side)
                memory, cpu = amounts.get(MEMORY, ZERO), amounts.get(CPU, ZERO)
                is_tiny = 0 < memory.milli_value() < LEAST_MEMORY * 1000
                odd = [(MEMORY, memory, _ODD_MEMORY)] if is_tiny else []
                odd += [(CPU, cpu, _ODD_CPU)] if cpu.milli_value() >= MOST_CPU_MILLI else []
                for name, value, problem in odd:
                    facts = {"side": side, "resource": name, "value": value, "problem": problem}
                    yield case.hit(owner, f"resources.{side}[{name}]", **facts)

    def cel(self, settings: CheckSettings, spec: str) -> str:
        hits = []
        for side in ("limits", "requests"):
            tiny = f"{compared(f'{side}.memory', '>', 0)} && {compared(f'{side}.memory', '<', '1Mi')}"
            many = compared(f"{side}.cpu", ">=", MOST_CPU_MILLI // 1000)
            for name, condition, problem in ((MEMORY, tiny, _ODD_MEMORY), (CPU, many, _ODD_CPU)):
                texts = {"side": quoted(side), "resource": quoted(name), "problem": quoted(problem)}
                hits.append(each(condition, pod=True, value=f"${side}.{name}", **texts))
        return " + ".join(hits)


_MEANING: Final = ": the pod is BestEffort, with oom_score_adj 1000, the highest"


class _RequestMissing(Rule):
    id, level = "QOS006", Level.NOTE
    title = "a container without a request"
    message = "no request for {resources} in {owner}{meaning}"
    why = """The scheduler counts nothing for it, so nodes become overcommitted. Without any request the pod
    is BestEffort. Under memory pressure all of its usage is above its request, so it is evicted early; in a
    Burstable pod it has nearly the highest oom_score_adj."""
    remedy = """Request what it uses. A request of `0` is accepted as intended. Sidecars count too; init
    containers do not, as they run before the others and within their requests. Containers need not repeat
    what spec.resources has."""
    parameter = Parameter(*_RESOURCES, "the resources that must be requested, `[cpu, memory]`")

    def find(self, case: Case) -> Iterator[Hit]:
        """Yield containers without a request, after LimitRanges have set theirs.

        Skip ephemeral containers, and init containers, which run before the others within their requests.
        """
        shared: set[str] = set()
        if case.release.enabled(Gate.POD_LEVEL_RESOURCES):
            shared = {*resources_of_pod(case.pod, "requests"), *resources_of_pod(case.pod, "limits")}
        pod, qos = (case.pod, case.qos) if case.is_stored else (case.created, case.created_class)
        has_other_score = is_node_critical(admitted(pod)) or pod.spec.is_windows
        meaning = _MEANING if qos is QosClass.BEST_EFFORT and not has_other_score else ""
        names = self.value_in(case.settings)
        for owner, container in zip(case.owners, all_containers(pod), strict=False):
            requested = {*shared, *container.requests, *container.limits}
            resources = [name for name in names if name not in requested]
            if resources and owner.kind in {ContainerKind.APP, ContainerKind.SIDECAR}:
                yield case.hit(owner, "resources", resources=" and ".join(resources), meaning=meaning)

    def cel(self, settings: CheckSettings, spec: str) -> str:
        lacks = {}
        for name in self.value_in(settings):
            shared = expanded(f"?requests.{name} || ?limits.{name}", "variables.shared")
            lacks[name] = f"!(?requests.{name} || ?limits.{name} || {shared})"
        named = quoted(" and ".join(lacks))
        for name in lacks if len(lacks) > 1 else ():
            others = " && ".join(f"!({lack})" for other, lack in lacks.items() if other != name)
            named = f"({others} ? {quoted(name)} : {named})"
        critical = f"has({spec}.priorityClassName) && {spec}.priorityClassName == '{SYSTEM_NODE_CRITICAL}'"
        critical += f" && (!has({spec}.priority) || {spec}.priority >= {SYSTEM_CRITICAL_PRIORITY})"
        has_other_score = f"({critical}) || {is_windows(spec)}"
        has_worst_score = f"!variables.unknown && variables.class == 'BestEffort' && !({has_other_score})"
        meaning = f"({has_worst_score} ? {quoted(_MEANING)} : '')"
        sidecars = "variables.initContainers.filter(c, string(c.label).startsWith('sidecar '))"
        lacking = " || ".join(lacks.values())
        return each(lacking, f"({sidecars} + variables.containers)", resources=named, meaning=meaning)


class _LimitWithoutRequest(Rule):
    id, level = "QOS007", Level.NOTE
    title = "a limit without a request"
    message = """a limit without a request for {resources}, so the API server sets the request to the limit:
    {owner}"""
    why = """The API server sets the missing request to the limit. The pod then reserves its maximum on a
    node. That is rarely intended, and the manifest does not show it."""
    remedy = "Write the request, even if it equals the limit."
    parameter = Parameter(*_RESOURCES, "the resources of which a limit needs a request, `[cpu, memory]`")
    no_policy = "the API server has set the request before a policy sees the pod"

    def find(self, case: Case) -> Iterator[Hit]:
        for owner in case.owners if not case.is_stored else ():
            limits, requests = owner.amounts("limits"), owner.amounts("requests")
            names = self.value_in(case.settings)
            resources = [name for name in names if name in limits and name not in requests]
            if resources and owner.name != SPEC_RESOURCES:
                yield case.hit(owner, "resources.limits", resources=" and ".join(resources))


class _LimitFarAboveRequest(Rule):
    id, level = "QOS008", Level.NOTE
    title = "a memory limit far above the request"
    message = "a memory limit more than {ratio} times the request in {owner} ({limit}, request {request})"
    why = """The scheduler places the pod by its request. A node full of such pods has promised a multiple of
    its memory. When they use it, the kernel or the kubelet kills some, those far above their request
    first."""
    remedy = "Request what it uses at its busiest, or lower the limit."
    parameter = Parameter(
        "ratio",
        Annotated[int, Meta(ge=1)],
        "a whole number from 1",
        4,
        "how many times the request the limit may be, a whole number, `4`",
    )

    def find(self, case: Case) -> Iterator[Hit]:
        ratio = self.value_in(case.settings)
        for owner in case.owners:
            limit = owner.amounts("limits").get(MEMORY, ZERO)
            request = owner.amounts("requests").get(MEMORY, limit)
            if request.sign > 0 and limit.nano > ratio * request.nano:
                yield case.hit(owner, _LIMIT, limit=limit, request=request, ratio=ratio)

    def cel(self, settings: CheckSettings, spec: str) -> str:
        ratio = self.value_in(settings)
        condition = (
            f"{compared('limits.memory', '>', 0)} && {compared('requests.memory', '>', 0)}"
            f" && #limits.memory.asApproximateFloat() > {ratio}.0 * #requests.memory.asApproximateFloat()"
        )
        facts = {"limit": "$limits.memory", "request": "$requests.memory", "ratio": quoted(ratio)}
        return each(condition, pod=True, **facts)


_LIMIT: Final = f"resources.limits[{MEMORY}]"
_LEAST_TO_START: Final = Quantity.parse("6Mi")
"""Docker's minimum (moby, daemon/daemon_unix.go, linuxMinMemory); runc needs it to start a process."""
_CRIO_LEAST: Final = Quantity.parse("12Mi")
"""CRI-O refuses less (server/container_create_linux.go), from 1.30 on not with crun."""
_RUNC_MOST: Final = Quantity.parse("22Mi")
"""Runc of early 2019 and 1.1.15 copies itself into the cgroup (opencontainers/runc 1980, 4427), and CRI-O
runs it in the cgroup of the pod (kubernetes/kubernetes 135680)."""


class _LimitTooSmall(Rule):
    id, level = "QOS009", Level.ERROR
    title = "a memory limit too small to start with"
    message = "{owner} has a memory limit of {limit}, and starting a container takes {minimum}"
    why = """The container runtime runs inside the container's cgroup before the process starts. If the limit
    is too small for it, the container is OOM killed or fails to start again and again, also with EBUSY of
    memory.limit_in_bytes. The minimum differs by runtime: below 12Mi, which CRI-O refuses with runc, this is
    a warning, below 22Mi a note."""
    remedy = "Raise the limit. With CRI-O and runc even 32Mi for the whole pod is little, see `explain`."
    parameter = Parameter(
        "minimum", Quantity, "a quantity such as 16Mi", _LEAST_TO_START, "the least memory limit, `6Mi`"
    )

    def find(self, case: Case) -> Iterator[Hit]:
        minimum = self.value_in(case.settings)
        for owner in case.owners:
            limit = owner.amounts("limits").get(MEMORY, ZERO)
            if limit.milli_value() >= LEAST_MEMORY * 1000 and limit < minimum:
                yield case.hit(owner, _LIMIT, limit=limit, minimum=minimum)
            elif minimum <= limit < _RUNC_MOST and minimum == _LEAST_TO_START:
                facts = {"limit": limit, "minimum": "12Mi with CRI-O, up to 22Mi with runc, by its version"}
                level = Level.WARNING if limit < _CRIO_LEAST else Level.NOTE
                yield case.hit(owner, _LIMIT, **facts)._replace(level=level)

    def cel(self, settings: CheckSettings, spec: str) -> str:
        minimum = self.value_in(settings)
        condition = f"{compared('limits.memory', '>=', '1Mi')} && {compared('limits.memory', '<', minimum)}"
        return each(condition, pod=True, limit="$limits.memory", minimum=quoted(minimum))


class _ReleaseChanges(Rule):
    id, level = "QOS019", Level.WARNING
    title = "changed by another release"
    message = "{release} changes it: {changes}"
    why = """With `--to RELEASE`: the class, oom_score_adj or files of its cgroups differ there, or the server
    refuses it."""
    remedy = "`kubectl qos compare -f FILE --to RELEASE` shows the values."
    no_policy = "a policy is on one release"

    def find(self, case: Case) -> Iterator[Hit]:
        """Yield the changes that the release of --to makes (k8s/releases.py)."""
        if case.context.after is None:
            return
        after = case.context.after(case.setup)
        refused_now = set(pod_refusals(case.defaulted, case.release))
        refused_then = pod_refusals(default_pod(case.pod, after.release), after.release)
        refused = [text for text in refused_then if text not in refused_now]
        if refused and not case.is_stored:
            changes = [f"refuses it: {refused[0]}"]
        else:
            try:
                old, new = (predict_running(case.pod, setup) for setup in (case.setup, after))
            except QosError:
                return
            changes = list(_changes(old, new))
        if changes:
            yield Hit(case, case.prefix, {"release": str(after.release), "changes": "; ".join(changes)})


def _changes(old: Prediction, new: Prediction) -> Iterator[str]:
    if old.computed_class is not new.computed_class:
        yield f"the class is {new.computed_class}, not {old.computed_class}"
    files = {*_differing(old.cgroup.files, new.cgroup.files)}
    for before, after in zip(old.containers, new.containers, strict=True):
        if before.oom_score_adj_range != after.oom_score_adj_range:
            yield f"another oom_score_adj of container {after.name}"
        files.update(_differing(before.cgroup.files, after.cgroup.files))
    if files:
        yield f"another value of {', '.join(sorted(files))}"


def _differing(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    """Return the names of files with different content; a file that is not written has its default."""
    old, new = {**UNWRITTEN, **old}, {**UNWRITTEN, **new}
    return (name for name in {**old, **new} if old.get(name) != new.get(name))
