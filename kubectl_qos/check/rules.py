"""The rules of `check`: pure functions that yield violations of pods, with path and facts.

They read init, sidecar and ephemeral containers too. rule_texts.yaml has the words, policy.py the same rules
in CEL. Sources: pkg/apis/core/validation/validation.go (through k8s/validation.py),
plugin/pkg/admission/limitranger and resourcequota (k8s/quota.py), pkg/apis/core/v1/helper/qos/qos.go
(qos/qos_class.py), pkg/kubelet/qos/policy.go (qos/oom_score.py).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from operator import itemgetter
from typing import Any, Final, cast

import msgspec

from kubectl_qos.check.findings import (
    CLASS_MARK,
    MARKS,
    POD_LEVEL,
    Case,
    Context,
    Finding,
    Hit,
    ResourceOwner,
    Subject,
)
from kubectl_qos.check.runtimes import runtime_problems
from kubectl_qos.check.settings import CRIO_LEAST, LEAST_TO_START, RUNC_MOST, Level, RuleId
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.defaulting import SYSTEM_NODE_CRITICAL, SYSTEM_PRIORITIES, admitted, default_pod
from kubectl_qos.k8s.kinds import spec_path, template_path
from kubectl_qos.k8s.objects import (
    CPU,
    LEAST_MEMORY,
    MEMORY,
    NO_RESOURCES,
    Container,
    Json,
    ResourceList,
    all_containers,
    nested,
    nested_list,
)
from kubectl_qos.k8s.quantity import ZERO, Quantity
from kubectl_qos.k8s.quota import (
    QuotaPod,
    charges,
    crosses_namespaces,
    is_terminating,
    limit_range_refusals,
    quota_refusals,
)
from kubectl_qos.k8s.releases import Gate
from kubectl_qos.k8s.resources import pod_requests, resources_of_pod
from kubectl_qos.k8s.validation import MOST_CPU_MILLI, MistakeCode, manifest_mistakes, pod_refusals
from kubectl_qos.qos.cgroup.values import UNWRITTEN
from kubectl_qos.qos.oom_score import is_node_critical
from kubectl_qos.qos.prediction import Prediction, predict_running
from kubectl_qos.qos.qos_class import QosClass, computed_class, is_decided_at_pod_level, qos_class
from kubectl_qos.qos.ranking import ContainerKind, Profiles

_INSTRUMENTATION: Final = "the auto-instrumentation of OpenTelemetry"
_GKE: Final = "GKE"
_KNATIVE: Final = "Knative"
INJECTORS: Final[Mapping[str, tuple[str, str]]] = {
    "sidecar.istio.io/inject": ("true", "Istio"),
    "istio-injection": ("enabled", "Istio"),
    "istio.io/rev": ("", "Istio"),
    "linkerd.io/inject": ("enabled", "Linkerd"),
    "kuma.io/sidecar-injection": ("enabled", "Kuma"),
    "consul.hashicorp.com/connect-inject": ("true", "Consul"),
    "dapr.io/enabled": ("true", "Dapr"),
    "vault.hashicorp.com/agent-inject": ("true", "the Vault agent injector"),
    "sidecar.opentelemetry.io/inject": ("", "the OpenTelemetry operator"),
    **{
        f"instrumentation.opentelemetry.io/inject-{language}": ("", _INSTRUMENTATION)
        for language in ("java", "nodejs", "python", "dotnet")
    },
    "sidecar.jaegertracing.io/inject": ("", "the Jaeger operator"),
    "gke-gcsfuse/volumes": ("true", _GKE),
    "appmesh.k8s.aws/sidecarInjectorWebhook": ("enabled", "App Mesh"),
    "openservicemesh.io/sidecar-injection": ("enabled", "Open Service Mesh"),
}
"""Labels and annotations of pods or namespaces that make an injector add containers: key to value, injector.

An empty value matches every value except "false".
"""
_AMOUNTS: Final = "cpu-request cpu-limit memory-request memory-limit"
_ADDED: Final = {
    "Istio": ("istio-proxy istio-init", "sidecar.istio.io/proxy", "CPU CPULimit Memory MemoryLimit"),
    "Linkerd": ("linkerd-proxy linkerd-init", "config.linkerd.io/proxy-", _AMOUNTS),
    "Kuma": ("kuma-sidecar kuma-init", "", ""),
    "Consul": ("consul-dataplane", "consul.hashicorp.com/sidecar-proxy-", _AMOUNTS),
    "Dapr": ("daprd", "dapr.io/sidecar-", _AMOUNTS),
    "the Vault agent injector": (
        *("vault-agent vault-agent-init", "vault.hashicorp.com/agent-"),
        "requests-cpu limits-cpu requests-mem limits-mem",
    ),
    "the OpenTelemetry operator": ("otc-container", "", ""),
    _INSTRUMENTATION: ("opentelemetry-auto-instrumentation", "", ""),
    "the Jaeger operator": ("jaeger-agent", "", ""),
    _GKE: ("gke-gcsfuse-sidecar", "gke-gcsfuse/", _AMOUNTS),
    "App Mesh": (*("envoy proxyinit", "appmesh.k8s.aws/"), "cpuRequest cpuLimit memoryRequest memoryLimit"),
    "Open Service Mesh": ("envoy osm-init", "", ""),
    _KNATIVE: (
        *("queue-proxy", "queue.sidecar.serving.knative.dev/"),
        "cpu-resource-request cpu-resource-limit memory-resource-request memory-resource-limit",
    ),
}
"""Containers that each injector adds, and prefix and suffixes of the annotations for their resources."""
_WITHOUT_LIMITS: Final = {"Linkerd", "Consul", "Dapr", _KNATIVE}
"""Injectors whose containers have no limits by default."""
INJECTED: Final = tuple(name for names, *_ in _ADDED.values() for name in names.split())


def _mistakes(case: Case) -> Iterator[Hit]:
    """Yield what strict validation refuses, duplicate fields, and resources of ephemeral containers."""
    for owner in case.owners:
        if owner.kind is ContainerKind.EPHEMERAL and owner.resources != NO_RESOURCES:
            text = f"{owner.path}.resources: Forbidden: cannot be set for an Ephemeral Container"
            facts = {"what": "it", "text": text}
            yield Hit(RuleId.REFUSED, f"{owner.path}.resources", facts, owner.name)
    if case.is_stored:
        return
    for path in case.subject.duplicates:
        yield Hit(RuleId.DUPLICATE_FIELD, path, {"field": path})
    # A custom resource is accepted as it is: its group has a domain.
    group, _, _ = str(case.subject.raw.get("apiVersion")).partition("/")
    what = "its pods" if "." in group else "it"
    for mistake in manifest_mistakes(case.subject.raw, case.pod):
        if mistake.code is MistakeCode.UNKNOWN_FIELD:
            yield Hit(RuleId.UNKNOWN_FIELD, mistake.path, {"field": mistake.path})
        elif mistake.code is not MistakeCode.ODD_SIZE:
            is_above = mistake.path.endswith(".requests") and "less than or equal" in mistake.message
            rule = RuleId.REQUEST_ABOVE_LIMIT if is_above else RuleId.REFUSED
            yield Hit(rule, mistake.path, {"what": what, "text": mistake.message})


ODD_MEMORY: Final = "less than a process needs to start; did you mean Mi?"
ODD_CPU: Final = "more cores than any node has; did you mean m?"


def _odd_sizes(case: Case) -> Iterator[Hit]:
    for owner in case.owners:
        for side in ("limits", "requests"):
            amounts = owner.amounts(side)
            memory, cpu = amounts.get(MEMORY, ZERO), amounts.get(CPU, ZERO)
            where = f"resources.{side}"
            if 0 < memory.milli_value() < LEAST_MEMORY * 1000:
                facts = {"side": side, "resource": MEMORY, "value": memory, "problem": ODD_MEMORY}
                yield case.hit(RuleId.ODD_SIZE, owner, f"{where}[{MEMORY}]", **facts)
            if cpu.milli_value() >= MOST_CPU_MILLI:
                facts = {"side": side, "resource": CPU, "value": cpu, "problem": ODD_CPU}
                yield case.hit(RuleId.ODD_SIZE, owner, f"{where}[{CPU}]", **facts)


MEANING: Final = ": the pod is BestEffort, with oom_score_adj 1000, the highest"


def _missing_requests(case: Case) -> Iterator[Hit]:
    """Count requests from LimitRanges.

    Skip init containers, which run before the others, within what those request, and ephemeral containers.
    """
    shared: set[str] = set()
    if case.release.enabled(Gate.POD_LEVEL_RESOURCES):
        shared = {*resources_of_pod(case.pod, "requests"), *resources_of_pod(case.pod, "limits")}
    pod, qos = (case.pod, case.qos) if case.is_stored else (case.created, case.created_class)
    has_other_score = is_node_critical(admitted(pod)) or pod.spec.is_windows
    meaning = MEANING if qos is QosClass.BEST_EFFORT and not has_other_score else ""
    names = case.settings.resources[RuleId.REQUEST_MISSING]
    for owner, container in zip(case.owners, all_containers(pod), strict=False):
        requested = {*shared, *container.requests, *container.limits}
        resources = [name for name in names if name not in requested]
        if resources and owner.kind in {ContainerKind.APP, ContainerKind.SIDECAR}:
            facts = {"resources": " and ".join(resources), "meaning": meaning}
            yield case.hit(RuleId.REQUEST_MISSING, owner, "resources", **facts)


def _limits_alone(case: Case) -> Iterator[Hit]:
    names = case.settings.resources[RuleId.LIMIT_WITHOUT_REQUEST]
    for owner in case.owners if not case.is_stored else ():
        limits, requests = owner.amounts("limits"), owner.amounts("requests")
        resources = [name for name in names if name in limits and name not in requests]
        if resources and owner.name != POD_LEVEL:
            facts = {"resources": " and ".join(resources)}
            yield case.hit(RuleId.LIMIT_WITHOUT_REQUEST, owner, "resources.limits", **facts)


def _far_limits(case: Case) -> Iterator[Hit]:
    ratio, where = case.settings.ratio, f"resources.limits[{MEMORY}]"
    for owner in case.owners:
        limit = owner.amounts("limits").get(MEMORY, ZERO)
        request = owner.amounts("requests").get(MEMORY, limit)
        if request.sign > 0 and limit.nano > ratio * request.nano:
            facts = {"limit": limit, "request": request, "ratio": ratio}
            yield case.hit(RuleId.LIMIT_FAR_ABOVE_REQUEST, owner, where, **facts)


def _small_limits(case: Case) -> Iterator[Hit]:
    minimum, where = case.settings.minimum, f"resources.limits[{MEMORY}]"
    for owner in case.owners:
        limit = owner.amounts("limits").get(MEMORY, ZERO)
        if limit.milli_value() >= LEAST_MEMORY * 1000 and limit < minimum:
            yield case.hit(RuleId.LIMIT_TOO_SMALL, owner, where, limit=limit, minimum=minimum)
        elif minimum <= limit < RUNC_MOST and minimum == LEAST_TO_START:
            facts = {"limit": limit, "minimum": "12Mi with CRI-O, up to 22Mi with runc, by its version"}
            level = Level.WARNING if limit < CRIO_LEAST else Level.NOTE
            yield case.hit(RuleId.LIMIT_TOO_SMALL, owner, where, **facts)._replace(level=level)


OTHER_CLASS: Final = "the class is {class}, but {required} is required"
NO_CLASS: Final = f'{CLASS_MARK}: unknown class "{{required}}": use Guaranteed, Burstable or BestEffort'


def _class(case: Case) -> Iterator[Hit]:
    own = case.subject.mark(CLASS_MARK)
    required = own or case.settings.required_class(case.subject.namespace)
    if required and required != case.qos:
        is_known = required in list(QosClass)
        text = (OTHER_CLASS if is_known else NO_CLASS).format_map({"class": case.qos, "required": required})
        path = case.prefix if is_known else case.subject.mark_path(CLASS_MARK)
        yield Hit(RuleId.OTHER_CLASS, path, {"text": text})


def _best_effort(case: Case) -> Iterator[Hit]:
    """Skip node-critical pods, whose oom_score_adj is low, and those for Windows, which has none."""
    least, most = case.settings.priority, SYSTEM_PRIORITIES[SYSTEM_NODE_CRITICAL]
    qos = case.qos if case.is_stored else case.created_class
    name, number = case.pod.spec.priority_class_name, admitted(case.pod).spec.priority or 0
    if qos is QosClass.BEST_EFFORT and least <= number < most and not case.pod.spec.is_windows:
        priority = f"PriorityClass {name}" if name else f"priority {number}"
        field_ = "priorityClassName" if name else "priority"
        yield Hit(RuleId.BEST_EFFORT_WITH_PRIORITY, f"{case.prefix}.{field_}", {"priority": priority})


OTHERS: Final = "the application's containers", "the other containers"


def _init_costs(case: Case) -> Iterator[Hit]:
    """Yield init, sidecar and injected containers without which the pod would be Guaranteed.

    Yield also an app container that alone costs the class, as a note: it may be what the pod is for.
    """
    pod, release = case.defaulted, case.release
    every = (*pod.init_containers, *pod.containers)
    apps = tuple(container for container in pod.containers if container.name not in INJECTED)
    if case.qos is QosClass.GUARANTEED or not apps or is_decided_at_pod_level(pod, release):
        return
    costly = [place for place in zip(case.owners, every, strict=False) if not _is_guaranteed(case, place[1])]
    if not any(container in apps for _, container in costly):
        for owner, _ in costly:
            yield case.hit(RuleId.INIT_COSTS_CLASS, owner, "resources", others=OTHERS[0])
    elif len(costly) == 1 and len(apps) > 1:
        hit = case.hit(RuleId.INIT_COSTS_CLASS, costly[0][0], "resources", others=OTHERS[1])
        yield hit._replace(level=Level.NOTE)


def _is_guaranteed(case: Case, container: Container) -> bool:
    """Return whether a pod of this container alone would be Guaranteed."""
    spec = msgspec.structs.replace(case.defaulted.spec, init_containers=(), containers=(container,))
    alone = msgspec.structs.replace(case.defaulted, spec=spec)
    return computed_class(alone, case.release) is QosClass.GUARANTEED


def _gets_containers_injected(case: Case) -> Iterator[Hit]:
    """Yield a hit for a pod whose class an injected container costs, or which a quota refuses for it.

    A stored pod has it already, and a pod on the host network gets none.
    """
    stated = injector(case.subject.metadata())
    name = stated if stated is not None else case.context.injectors.get(case.pod.namespace)
    if str(case.subject.raw.get("apiVersion")).startswith("serving.knative.dev/"):
        name = _KNATIVE
    if not name or case.is_stored or _spec(case).get("hostNetwork") is True:
        return
    present = {container.name for container in all_containers(case.pod)}
    containers, prefix, ends = _ADDED[name]
    added = [container for container in containers.split() if container not in present]
    settings, unless = [prefix + end for end in ends.split()], "their requests equal their limits"
    if settings:
        unless = "the annotations {} and {} are equal, and {} and {} are equal".format(*settings)
    annotations = nested(next(case.subject.metadata()), "annotations")
    amounts = [annotations.get(setting) for setting in settings]
    pairs = [*zip(amounts[::2], amounts[1::2], strict=True)]
    if name == _GKE:  # A request or limit that is missing is as the other, and a limit of 0 is none.
        pairs = [(request or limit, None if limit == "0" else limit or request) for request, limit in pairs]
    is_equal = bool(pairs) and all(request and request == limit for request, limit in pairs)
    what = " and ".join(added)
    if added and not is_equal and case.qos is QosClass.GUARANTEED:
        facts = {"injector": name, "containers": what, "unless": unless}
        yield Hit(RuleId.INJECTED, case.prefix, facts)
    for quota in case.context.quotas if name in _WITHOUT_LIMITS and added and not all(amounts) else ():
        required = [key for key in quota.spec.hard if key.startswith("limits.")]
        if required and quota.metadata.namespace == case.pod.namespace and not case.limit_ranges:
            text = (
                f"{name} adds {what}, which need {', '.join(required)} too, by annotations of the pod, its"
                " settings or the defaults of a LimitRange"
            )
            facts = {"name": quota.name, "text": text}
            yield Hit(RuleId.QUOTA_REFUSES, case.prefix, facts, level=Level.WARNING)


def injector(metadata: Iterable[Json]) -> str | None:
    """Return what adds containers to pods with this metadata, or to pods of this namespace.

    Returns "" if injection is disabled, None if nothing is set.
    """
    marks = [nested(raw, side) for raw in metadata for side in MARKS]
    names = [
        name if str(mark[key]).lower() == value or (not value and str(mark[key]).lower() != "false") else ""
        for key, (value, name) in INJECTORS.items()
        for mark in marks
        if key in mark
    ]
    return max(names, default=None)


def _spec(case: Case) -> Json:
    """Return the pod's spec as written, {} for pods of a cluster."""
    spec: Any = case.subject.raw
    for key in spec_path(case.pod) if spec else ():
        spec = spec[key]
    return cast("Json", spec)


def _written(case: Case) -> Iterator[tuple[ResourceOwner, Quantity, Json]]:
    """Yield each container with the memory limit that applies (its own, the pod's, or 0) and as written."""
    lists = ("initContainers", "containers", "ephemeralContainers")
    raws = chain.from_iterable(nested_list(_spec(case), name) for name in lists)
    shared = resources_of_pod(case.created, "limits").get(MEMORY, ZERO)
    for owner, container, raw in zip(case.owners, all_containers(case.created), raws, strict=False):
        yield owner, container.limits.get(MEMORY, shared), raw


def _runtimes(case: Case) -> Iterator[Hit]:
    """Yield heap sizes that do not fit the limit; the env of cluster pods is not read."""
    for owner, limit, raw in _written(case):
        environment = [*_environment(case, raw)]
        fields = {entry.get("name"): field for field, entry in environment}
        read = {**raw, "env": [entry for _, entry in environment]}
        for source, text in runtime_problems(read, max(limit.value(), 0)):
            yield case.hit(RuleId.RUNTIME_MEMORY, owner, fields.get(source, "args"), text=text)


def _environment(case: Case, raw: Json) -> Iterator[tuple[str, Json]]:
    """Yield each variable with its field, and with the value that a ConfigMap of the input gives it."""
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


def _memory_volumes(case: Case) -> Iterator[Hit]:
    """Yield tmpfs volumes, which count against the writer's limit (pkg/volume/emptydir/empty_dir.go)."""
    for index, volume in enumerate(nested_list(_spec(case), "volumes")):
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
        level = None if owner and not 0 < size.nano < limit.nano else Level.NOTE
        path, facts = f"{case.prefix}.volumes[{index}].emptyDir", {"bound": bound, "whose": whose}
        yield Hit(RuleId.MEMORY_VOLUME, path, {"volume": str(name), **facts}, level=level)


def _fits_no_node(case: Case) -> Iterator[Hit]:
    requests, settings = pod_requests(case.defaulted, case.release), case.settings
    if case.is_stored:
        return
    nodes = [node.status.allocatable for node in case.context.snapshot.nodes.values()]
    for resource in (CPU, MEMORY):
        sizes = [amounts[resource] for amounts in nodes if amounts is not None and resource in amounts]
        # A node of --node-memory has what --assume leaves of it: reservations, or a profile that has them.
        if not sizes and resource in case.setup.node.status_allocatable:
            sizes = [case.setup.node.status_allocatable[resource]]
        elif not sizes and resource == MEMORY and settings.node_memory_bytes is not None:
            sizes = [Quantity.parse(f"{settings.node_memory_bytes >> 10}Ki")]
        amount = requests.get(resource, ZERO)
        if sizes and amount > max(sizes):
            facts = {"resource": resource, "amount": str(amount), "largest": str(max(sizes))}
            yield Hit(RuleId.FITS_NO_NODE, case.prefix, facts)


def _limit_ranges(case: Case) -> Iterator[Hit]:
    for limit_range in case.limit_ranges:
        for text in dict.fromkeys(limit_range_refusals(case.created, [limit_range], case.release)):
            facts = {"name": limit_range.metadata.name, "text": text}
            yield Hit(RuleId.LIMIT_RANGE_REFUSES, case.prefix, facts)
    refused = {*pod_refusals(case.defaulted, case.release)} if case.limit_ranges else set()
    for refusal in pod_refusals(case.created, case.release) if case.limit_ranges else ():
        if refusal not in refused:
            names = ", ".join(limit_range.metadata.name for limit_range in case.limit_ranges)
            facts = {"name": names, "text": f"its default gives {refusal}"}
            yield Hit(RuleId.LIMIT_RANGE_REFUSES, case.prefix, facts, refusal.owner)
    if case.created_class is not case.qos:
        facts = {"becomes": case.created_class.value, "expected": case.qos.value}
        yield Hit(RuleId.LIMIT_RANGE_CHANGES_CLASS, case.prefix, facts)


def _release(case: Case) -> Iterator[Hit]:
    """Yield what changes with the release of --to (k8s/releases.py)."""
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
            changes = list(_changes(predict_running(case.pod, case.setup), predict_running(case.pod, after)))
        except QosError:
            return
    if changes:
        facts = {"release": str(after.release), "changes": "; ".join(changes)}
        yield Hit(RuleId.RELEASE_CHANGES, case.prefix, facts)


def _changes(old: Prediction, new: Prediction) -> Iterator[str]:
    if old.computed_class is not new.computed_class:
        yield f"the class is {new.computed_class}, not {old.computed_class}"
    files: Counter[str] = Counter()
    files.update(_differing(old.cgroup.files, new.cgroup.files))
    for before, after in zip(old.containers, new.containers, strict=True):
        if before.oom_score_adj_range != after.oom_score_adj_range:
            yield f"another oom_score_adj of container {after.name}"
        files.update(_differing(before.cgroup.files, after.cgroup.files))
    if files:
        yield f"another value of {', '.join(sorted(files))}"


def _differing(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    """Return the files with different content; files that are not written have their defaults."""
    old, new = {**UNWRITTEN, **old}, {**UNWRITTEN, **new}
    return (name for name in {**old, **new} if old.get(name) != new.get(name))


_POD_RULES: Final[Sequence[Callable[[Case], Iterator[Hit]]]] = (
    _mistakes,
    _odd_sizes,
    _missing_requests,
    _limits_alone,
    _far_limits,
    _small_limits,
    _class,
    _best_effort,
    _init_costs,
    _gets_containers_injected,
    _runtimes,
    _memory_volumes,
    _fits_no_node,
    _limit_ranges,
    _release,
)


def _inversions(cases: Sequence[Case]) -> Iterator[tuple[Case, Hit]]:
    """Yield pods that die before a pod of lower priority: the kernel ignores priority.

    Unscheduled pods are compared on one node of the given size, by the container with the worst score.
    """
    nodes: dict[tuple[str, int | None], list[Case]] = {}
    for case in cases:
        memory = case.setup.node.memory_capacity_bytes or case.settings.node_memory_bytes
        nodes.setdefault((case.pod.node_name, memory), []).append(case)
    for (node, memory), group in nodes.items():
        if not memory:
            continue
        profiles = Profiles(memory, group[0].release)
        by_priority: dict[int, list[tuple[int, Case]]] = {}
        for case in group:
            containers = profiles.profile_for(case.defaulted).containers
            apps = (container for container in containers if container.kind is not ContainerKind.INIT)
            adjs = [container.adj for container in apps if container.adj is not None]
            priority = admitted(case.pod).spec.priority or 0
            by_priority.setdefault(priority, []).append((max(adjs, default=0), case))
        safest: tuple[int, Case] | None = None  # Of all lower priorities.
        for _, pods in sorted(by_priority.items()):
            for adj, case in pods:
                if safest is not None and adj > safest[0]:
                    kind, name = safest[1].subject.kind_and_name
                    facts = {"adj": str(adj), "other_adj": str(safest[0]), "other": f"{kind.lower()}/{name}"}
                    facts["place"] = f"node {node}" if node else "one node"
                    yield case, Hit(RuleId.PRIORITY_INVERSION, case.prefix, facts)
            best = min(pods, key=itemgetter(0))
            if safest is None or best[0] < safest[0]:
                safest = best


def _quotas(cases: Sequence[Case]) -> Iterator[tuple[Case, Hit]]:
    """Fill quotas of files, as if empty, with all replicas of the objects in their order."""
    quotas = {}
    for quota in cases[0].context.quotas if cases else ():
        if not quota.status.hard:
            none = ResourceList(dict.fromkeys(quota.spec.hard, ZERO))
            status = msgspec.structs.replace(quota.status, hard=quota.spec.hard, used=none)
            quota = msgspec.structs.replace(quota, status=status)  # noqa: PLW2901 - the same quota, counted
        quotas[quota.metadata.namespace, quota.name] = quota
    for case in cases:
        keys = [key for key in quotas if key[0] == case.pod.namespace]
        if not keys or case.is_stored:
            continue
        raw = nested(case.subject.raw, *template_path(case.pod.kind), "spec")
        best_effort = qos_class(case.created, case.release) is QosClass.BEST_EFFORT
        claim = QuotaPod(case.created, best_effort, is_terminating(raw), crosses_namespaces(raw))
        job = ("jobTemplate", "spec") if case.pod.kind == "CronJob" else ()
        spec = nested(case.subject.raw, "spec", *job)
        number = spec.get("replicas", spec.get("parallelism", 1))  # of a DaemonSet 1: its nodes are unknown
        replicas = min(number, _MOST_REPLICAS) if isinstance(number, int) else 1
        for key in keys:
            for _ in range(replicas):
                quota = quotas[key]
                refusal = next(quota_refusals(claim, [quota], case.release), None)
                if refusal is not None:
                    facts = {"name": refusal.quota, "text": refusal.message}
                    yield case, Hit(RuleId.QUOTA_REFUSES, case.prefix, facts)
                    break
                used = dict(quota.status.used)
                for charge in charges(claim, [quota], case.release):
                    used[charge.resource] = charge.used + charge.added
                status = msgspec.structs.replace(quota.status, used=ResourceList(used))
                quotas[key] = msgspec.structs.replace(quota, status=status)


_MOST_REPLICAS: Final = 1000
"""Cap on the replicas that are counted."""


_REFUSALS: Final = (RuleId.REFUSED, RuleId.REQUEST_ABOVE_LIMIT, RuleId.LIMIT_RANGE_REFUSES)
"""Rules whose findings mean that the pod is never created, so that no quota counts it."""


def check(subjects: Iterable[Subject], context: Context) -> list[Finding]:
    """Return all findings, also on failed pods; pods of a workload share a finding that all of them have."""
    cases = [Case(subject, context) for subject in subjects if subject.pod.status.phase != "Succeeded"]
    running = [case for case in cases if not case.pod.is_terminal]
    own = list[tuple[Case, Hit]]()
    for case in cases:
        own += [(case, hit) for rule in _POD_RULES for hit in rule(case)]
        case.forget_owners()
    refused = {id(case) for case, hit in own if hit.rule in _REFUSALS}
    hits = chain(own, _inversions(running), _quotas([case for case in running if id(case) not in refused]))
    keys = {(id(case), (case.workload, hit.rule, hit.owner)) for case, hit in own}
    pods_with = Counter(key for _, key in keys)
    pods = Counter(case.workload for case in cases if case.is_stored)
    findings: dict[object, Finding] = {}
    for case, hit in hits:
        level = case.settings.level(hit.rule)
        if level is not None and hit.rule not in case.settings.levels:
            level = hit.level or level
        if level is not None:
            is_alone = 0 < pods_with[case.workload, hit.rule, hit.owner] < pods[case.workload]
            subject = case.alone if is_alone else case.subject
            finding = Finding(hit.rule, level, subject, hit.path, hit.facts, hit.owner)
            # An object of a file is its own, whatever it is called.
            whose = None if case.is_stored else id(case.subject)
            findings.setdefault((finding.key, hit.path, tuple(hit.facts.values()), whose), finding)
    return list(findings.values())
