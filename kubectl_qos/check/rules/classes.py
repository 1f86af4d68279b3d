"""Rules about a pod's class, and about its cluster: injectors, other pods, nodes, LimitRanges and quotas.

Sources: pkg/apis/core/v1/helper/qos/qos.go (qos/qos_class.py), pkg/kubelet/qos/policy.go (qos/oom_score.py),
plugin/pkg/admission/limitranger and resourcequota (k8s/quota.py).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from operator import itemgetter
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec
from msgspec import Meta

from kubectl_qos.check.policy import GUARANTEED, each, expanded, fact_map, filled, is_windows, quoted
from kubectl_qos.check.rule import CLASS_MARK, MARKS, Case, Hit, Parameter, Rule
from kubectl_qos.check.settings import CheckSettings, Level
from kubectl_qos.k8s.defaulting import SYSTEM_NODE_CRITICAL, SYSTEM_PRIORITIES, admitted
from kubectl_qos.k8s.kinds import template_path
from kubectl_qos.k8s.objects import CPU, MEMORY, Container, Json, ResourceList, all_containers, nested
from kubectl_qos.k8s.quantity import ZERO, Quantity
from kubectl_qos.k8s.quota import (
    QuotaPod,
    charges,
    crosses_namespaces,
    is_terminating,
    limit_range_refusals,
    quota_refusals,
)
from kubectl_qos.k8s.resources import pod_requests
from kubectl_qos.k8s.validation import pod_refusals
from kubectl_qos.qos.qos_class import QosClass, computed_class, is_decided_at_pod_level, qos_class
from kubectl_qos.qos.ranking import ContainerKind, Profiles

_INSTRUMENTATION: Final = "the auto-instrumentation of OpenTelemetry"
_GKE: Final = "GKE"
_KNATIVE: Final = "Knative"
_INJECTORS: Final[Mapping[str, tuple[str, str]]] = {
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
"""Labels and annotations that make an injector add containers to pods: key to value and injector.

An empty value matches every value except "false".
"""


class _Injector(NamedTuple):
    """What an injector adds: names of containers, and the annotations that set their resources."""

    containers: str
    prefix: str = ""
    """How the annotations begin, "" without any."""
    amounts: str = "cpu-request cpu-limit memory-request memory-limit"
    """How they end: each request before its limit."""
    sets_limits: bool = True
    """Whether the containers have limits by default."""


_ADDED: Final = {
    "Istio": _Injector("istio-proxy istio-init", "sidecar.istio.io/proxy", "CPU CPULimit Memory MemoryLimit"),
    "Linkerd": _Injector("linkerd-proxy linkerd-init", "config.linkerd.io/proxy-", sets_limits=False),
    "Kuma": _Injector("kuma-sidecar kuma-init"),
    "Consul": _Injector("consul-dataplane", "consul.hashicorp.com/sidecar-proxy-", sets_limits=False),
    "Dapr": _Injector("daprd", "dapr.io/sidecar-", sets_limits=False),
    "the Vault agent injector": _Injector(
        "vault-agent vault-agent-init",
        "vault.hashicorp.com/agent-",
        "requests-cpu limits-cpu requests-mem limits-mem",
    ),
    "the OpenTelemetry operator": _Injector("otc-container"),
    _INSTRUMENTATION: _Injector("opentelemetry-auto-instrumentation"),
    "the Jaeger operator": _Injector("jaeger-agent"),
    _GKE: _Injector("gke-gcsfuse-sidecar", "gke-gcsfuse/"),
    "App Mesh": _Injector(
        "envoy proxyinit", "appmesh.k8s.aws/", "cpuRequest cpuLimit memoryRequest memoryLimit"
    ),
    "Open Service Mesh": _Injector("envoy osm-init"),
    _KNATIVE: _Injector(
        "queue-proxy",
        "queue.sidecar.serving.knative.dev/",
        "cpu-resource-request cpu-resource-limit memory-resource-request memory-resource-limit",
        sets_limits=False,
    ),
}
_INJECTED: Final = tuple(name for added in _ADDED.values() for name in added.containers.split())

_CLASS: Final = Annotated[
    Literal["Guaranteed", "Burstable", "BestEffort"], Meta(description="Guaranteed, Burstable or BestEffort")
]
_OTHER_CLASS: Final = "the class is {class}, but {required} is required"
_NO_CLASS: Final = f'{CLASS_MARK}: unknown class "{{required}}": use Guaranteed, Burstable or BestEffort'


class _OtherClass(Rule):
    id, level = "QOS010", Level.ERROR
    title = "not the required class"
    message = "{text}"
    why = """The annotation or label `kubectl-qos/class` of the object or its template, or the settings,
    require a class. One container without a limit is enough to lose Guaranteed, and with it the protection
    from the OOM killer and exclusive CPUs."""
    remedy = "`kubectl qos set -f FILE --class guaranteed` shows what is missing, and `--write` adds it."
    parameter = Parameter(
        "classes",
        dict[str, Any],
        "a mapping of namespaces to classes",
        {},
        "required classes by a pattern of namespaces, such as `{payments: Guaranteed, 'team-*': Burstable}`",
        _CLASS,
    )

    def find(self, case: Case) -> Iterator[Hit]:
        namespace, by_pattern = case.subject.namespace, self.value_in(case.settings).items()
        own = case.subject.mark(CLASS_MARK)
        required = own or next((qos for pattern, qos in by_pattern if fnmatchcase(namespace, pattern)), "")
        if required and required != case.qos:
            is_known = required in list(QosClass)
            text = (_OTHER_CLASS if is_known else _NO_CLASS).format(
                **{"class": case.qos, "required": required}
            )
            path = case.prefix if is_known else case.subject.mark_path(CLASS_MARK)
            yield Hit(case, path, {"text": text})

    def cel(self, settings: CheckSettings, spec: str) -> str:
        differs = "!variables.unknown && variables.required != '' && variables.required != variables.class"
        text, no_class = filled(_OTHER_CLASS, "variables"), filled(_NO_CLASS, "variables")
        is_class = f"variables.required in {[qos.value for qos in QosClass]}"
        return f"{differs} ? [{fact_map(text=f'{is_class} ? {text} : {no_class}')}] : []"


class _BestEffortWithPriority(Rule):
    id, level = "QOS011", Level.ERROR
    title = "a BestEffort pod with a high priority"
    message = """it is BestEffort with {priority}: the kernel ignores priority and sees oom_score_adj 1000,
    the highest"""
    why = """Priority decides who is scheduled, preempted and evicted. The kernel ignores it, and chooses by
    memory in use and oom_score_adj, which for BestEffort pods is 1000, the highest there is."""
    remedy = """Request memory, or require less priority. Pods with system-node-critical are left out, as
    their oom_score_adj is -997."""
    parameter = Parameter("priority", int, "a whole number", 1, "the least priority that counts as high, `1`")

    def find(self, case: Case) -> Iterator[Hit]:
        """Skip node-critical pods, whose oom_score_adj is low, and pods for Windows, which have none."""
        least, most = self.value_in(case.settings), SYSTEM_PRIORITIES[SYSTEM_NODE_CRITICAL]
        qos = case.qos if case.is_stored else case.created_class
        name, number = case.pod.spec.priority_class_name, admitted(case.pod).spec.priority or 0
        if qos is QosClass.BEST_EFFORT and least <= number < most and not case.pod.spec.is_windows:
            priority = f"PriorityClass {name}" if name else f"priority {number}"
            field = "priorityClassName" if name else "priority"
            yield Hit(case, f"{case.prefix}.{field}", {"priority": priority})

    def cel(self, settings: CheckSettings, spec: str) -> str:
        name = f"{spec}.priorityClassName"
        classes = SYSTEM_PRIORITIES.items()
        system = "".join(f"has({name}) && {name} == '{system}' ? {value} : " for system, value in classes)
        number = f"(has({spec}.priority) ? {spec}.priority : {system}0)"
        text = f"'PriorityClass ' + {name} : 'priority ' + string({number})"
        priority = f"(has({name}) && {name} != '' ? {text})"
        return (
            f"!variables.unknown && variables.class == 'BestEffort' && {number} >= {self.value_in(settings)}"
            f" && {number} < {SYSTEM_PRIORITIES[SYSTEM_NODE_CRITICAL]} && !({is_windows(spec)})"
            f" ? [{fact_map(priority=priority)}] : []"
        )


_APP_CONTAINERS: Final = "the application's containers"
_OTHER_CONTAINERS: Final = "the other containers"


class _InitCostsClass(Rule):
    id, level = "QOS012", Level.WARNING
    title = "one container costs the class"
    message = "{owner} costs the pod its class: {others} alone would be Guaranteed"
    why = """Init containers and sidecars count for the class like any other. All app containers have equal
    requests and limits, so Guaranteed was meant, and this container makes the pod Burstable. Containers that
    Istio, Linkerd and others add are known by their names. The finding is a note if the container is one of
    several app containers, and the only one that costs the class."""
    remedy = """Give it equal requests and limits for CPU and memory. The requests of an init container cost
    nothing while the app containers request more. QOS013 has the annotations of injected containers."""

    def find(self, case: Case) -> Iterator[Hit]:
        """Yield init, sidecar and injected containers without which the pod would be Guaranteed.

        An app container that alone costs the class is only a note: it may be the pod's main container.
        """
        pod, release = case.defaulted, case.release
        every = (*pod.init_containers, *pod.containers)
        apps = tuple(container for container in pod.containers if container.name not in _INJECTED)
        if case.qos is QosClass.GUARANTEED or not apps or is_decided_at_pod_level(pod, release):
            return
        pairs = zip(case.owners, every, strict=False)
        costly = [(owner, container) for owner, container in pairs if not _is_guaranteed(case, container)]
        if not any(container in apps for _, container in costly):
            for owner, _ in costly:
                yield case.hit(owner, "resources", others=_APP_CONTAINERS)
        elif len(costly) == 1 and len(apps) > 1:
            yield case.hit(costly[0][0], "resources", others=_OTHER_CONTAINERS)._replace(level=Level.NOTE)

    def cel(self, settings: CheckSettings, spec: str) -> str:
        injected = f"c.name in {[*_INJECTED]}"
        apps = f"variables.containers.all(c, {injected} || {expanded(GUARANTEED, 'c')})"
        costly = f"!({GUARANTEED})"
        costs = each(costly, others=quoted(_APP_CONTAINERS))
        is_one = f"size(variables.every.filter(c, {expanded(costly, 'c')})) == 1"
        is_one += f" && size(variables.containers.filter(c, !({injected}))) > 1"
        alone = f"{is_one} ? {each(costly, others=quoted(_OTHER_CONTAINERS))} : []"
        is_judged = f"!variables.podLevel && variables.containers.exists(c, !({injected}))"
        return f"!({is_judged}) ? [] : {apps} ? {costs} : {alone}"


def _is_guaranteed(case: Case, container: Container) -> bool:
    """Return whether a pod of this container alone would be Guaranteed."""
    spec = msgspec.structs.replace(case.defaulted.spec, init_containers=(), containers=(container,))
    alone = msgspec.structs.replace(case.defaulted, spec=spec)
    return computed_class(alone, case.release) is QosClass.GUARANTEED


def _injection(case: Case) -> tuple[str, str, Json] | None:
    """Return a pod's injector, the names of its containers, and the annotations for their resources.

    None if nothing is added: without an injector, on the host network, and in a stored pod, which has the
    containers already.
    """
    stated = injector(case.subject.metadata())
    name = stated if stated is not None else case.context.injectors.get(case.pod.namespace)
    if str(case.subject.raw.get("apiVersion")).startswith("serving.knative.dev/"):
        name = _KNATIVE
    if not name or case.is_stored or case.spec.get("hostNetwork") is True:
        return None
    present = {container.name for container in all_containers(case.pod)}
    injected = _ADDED[name]
    added = [container for container in injected.containers.split() if container not in present]
    annotations = nested(next(case.subject.metadata()), "annotations")
    keys = [injected.prefix + amount for amount in injected.amounts.split()] if injected.prefix else []
    return (name, " and ".join(added), {key: annotations.get(key) for key in keys}) if added else None


class Injected(Rule):
    """Containers that an injector adds to a Guaranteed pod."""

    id, level = "QOS013", Level.WARNING
    title = "injected containers are about to cost the class"
    message = "{injector} adds {containers} to this Guaranteed pod, which becomes Burstable unless {unless}"
    why = """Injected containers are not in the manifest, but count for the class. By default their requests
    are below their limits."""
    remedy = """Set the annotations of the pod template, with one value for each request and its limit. Or
    write the injected containers into the template, with equal requests and limits, which Istio merges with
    its own. If they are set in the values of the injector, the rule cannot see them; waive it then."""
    no_policy = "a policy sees the pod with what was added to it, and QOS010 and QOS012 judge that"

    def find(self, case: Case) -> Iterator[Hit]:
        """Yield the pod unless its annotations keep it Guaranteed."""
        added = _injection(case) if case.qos is QosClass.GUARANTEED else None
        if added is None:
            return
        name, containers, settings = added
        amounts = [*settings.values()]
        pairs = [*zip(amounts[::2], amounts[1::2], strict=True)]
        if name == _GKE:  # A missing request or limit equals the other one; a limit of 0 means no limit.
            pairs = [
                (request or limit, None if limit == "0" else limit or request) for request, limit in pairs
            ]
        if pairs and all(request and request == limit for request, limit in pairs):
            return
        unless = "their requests equal their limits"
        if settings:
            unless = "the annotations {} and {} are equal, and {} and {} are equal".format(*settings)
        yield Hit(case, case.prefix, {"injector": name, "containers": containers, "unless": unless})


class _EmptyPodResources(Rule):
    id, level = "QOS022", Level.WARNING
    title = "an empty spec.resources costs the class"
    message = "spec.resources is empty, but makes the pod {class}: by its containers it would be {other}"
    why = """From 1.34 to 1.36 spec.resources alone decides the class if it is there, even without any request
    or limit (kubernetes#135082). The API server accepts it. The pod is BestEffort, with oom_score_adj 1000,
    and first in line for eviction, whatever its containers request."""
    remedy = "Remove spec.resources, or give it the requests and limits of the pod."
    no_policy = "it depends on the release of the nodes, which a policy does not know"

    def find(self, case: Case) -> Iterator[Hit]:
        resources = case.pod.spec.resources
        if resources is None or resources.requests or resources.limits:
            return
        spec = msgspec.structs.replace(case.defaulted.spec, resources=None)
        other = computed_class(msgspec.structs.replace(case.defaulted, spec=spec), case.release)
        if other is not case.qos:
            yield Hit(case, f"{case.prefix}.resources", {"class": case.qos, "other": other})


def namespace_injectors(objects: Iterable[Json]) -> dict[str, str | None]:
    """Return the injector that each Namespace among the objects asks for, by its name."""
    namespaces = (nested(raw, "metadata") for raw in objects if raw.get("kind") == "Namespace")
    return {str(metadata.get("name")): injector([metadata]) for metadata in namespaces}


def injector(metadata: Iterable[Json]) -> str | None:
    """Return the injector that metadata of a pod or a namespace asks for.

    Returns "" if injection is disabled, None if the metadata does not mention it.
    """
    marks = [nested(raw, side) for raw in metadata for side in MARKS]
    names = [
        name if str(mark[key]).lower() == value or (not value and str(mark[key]).lower() != "false") else ""
        for key, (value, name) in _INJECTORS.items()
        for mark in marks
        if key in mark
    ]
    return max(names, default=None)


class _PriorityInversion(Rule):
    id, level = "QOS014", Level.WARNING
    title = "killed before a pod of lower priority"
    message = """on {place} the kernel kills it before {other}, whose priority is lower: oom_score_adj {adj}
    against {other_adj}"""
    why = """The kernel does not look at priority. Of two pods on one node with the same usage, the one with
    the higher oom_score_adj dies: the one that requests less memory."""
    remedy = """Request more memory for the important one, or less for the other. The rule needs the memory of
    nodes, from a cluster, a dump, `--node-memory` or `nodeMemory`."""
    no_policy = "a policy sees one object at a time"

    def compare(self, cases: Sequence[Case]) -> Iterator[Hit]:
        """Yield pods that the kernel kills before a pod of lower priority.

        Unscheduled pods are compared on one node of the given size; a pod has the worst score of its
        containers.
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
            safest: tuple[int, Case] | None = None  # The lowest oom_score_adj of all lower priorities.
            for _, pods in sorted(by_priority.items()):
                for adj, case in pods:
                    if safest is not None and adj > safest[0]:
                        other_adj, other = safest
                        facts = {"adj": str(adj), "other_adj": str(other_adj)}
                        facts["other"] = other.subject.reference
                        facts["place"] = f"node {node}" if node else "one node"
                        yield Hit(case, case.prefix, facts)
                best = min(pods, key=itemgetter(0))
                if safest is None or best[0] < safest[0]:
                    safest = best


class _FitsNoNode(Rule):
    id, level = "QOS015", Level.ERROR
    title = "no node can hold it"
    message = "it requests {resource} {amount}, and no node has more than {largest} of it"
    why = "The pod stays Pending until there is a larger node."
    remedy = """Request less, or add a node. The nodes are those of the cluster or the dump. Without any,
    `--node-memory` is the size of one, less what `--assume kubeReserved=memory=1Gi` or
    `--assume profile=eks` reserves."""
    no_policy = "a policy does not know the nodes"

    def find(self, case: Case) -> Iterator[Hit]:
        requests, settings = pod_requests(case.defaulted, case.release), case.settings
        if case.is_stored:
            return
        nodes = [node.status.allocatable for node in case.context.snapshot.nodes.values()]
        for resource in (CPU, MEMORY):
            sizes = [amounts[resource] for amounts in nodes if amounts is not None and resource in amounts]
            # The node of --node-memory, less the reservations of --assume or its profile.
            if not sizes and resource in case.setup.node.status_allocatable:
                sizes = [case.setup.node.status_allocatable[resource]]
            elif not sizes and resource == MEMORY and settings.node_memory_bytes is not None:
                sizes = [Quantity.parse(f"{settings.node_memory_bytes >> 10}Ki")]
            amount = requests.get(resource, ZERO)
            if sizes and amount > max(sizes):
                facts = {"resource": resource, "amount": str(amount), "largest": str(max(sizes))}
                yield Hit(case, case.prefix, facts)


_MOST_REPLICAS: Final = 1000
"""The most replicas of an object that are counted."""


class _LimitRangeRefuses(Rule):
    id, level = "QOS016", Level.ERROR
    title = "a LimitRange refuses its pods"
    message = "LimitRange {name} refuses its pods: {text}"
    why = """The server accepts the workload, then refuses all of its pods. LimitRanges are those of the same
    namespace, in the files or the cluster."""
    remedy = """Stay within its bounds, or change the LimitRange. Where its default limit is below your
    request, set a limit."""
    no_policy = "the API server refuses it itself, after the LimitRange's defaults are set"
    refuses = True

    def find(self, case: Case) -> Iterator[Hit]:
        for limit_range in case.limit_ranges:
            for text in dict.fromkeys(limit_range_refusals(case.created, [limit_range], case.release)):
                yield Hit(case, case.prefix, {"name": limit_range.metadata.name, "text": text})
        refused = {*pod_refusals(case.defaulted, case.release)} if case.limit_ranges else set()
        for refusal in pod_refusals(case.created, case.release) if case.limit_ranges else ():
            if refusal not in refused:
                names = ", ".join(limit_range.metadata.name for limit_range in case.limit_ranges)
                facts = {"name": names, "text": f"its default gives {refusal}"}
                yield Hit(case, case.prefix, facts, refusal.owner)


class _LimitRangeChangesClass(Rule):
    id, level = "QOS017", Level.WARNING
    title = "a LimitRange changes the class"
    message = "the defaults of LimitRanges make it {becomes}, not {expected} as it is written"
    why = """Missing requests and limits are filled in when the pod is created, so the manifest does not show
    the class of its pods."""
    remedy = "Write the intended values."
    no_policy = "the defaults are set before a policy sees the pod"

    def find(self, case: Case) -> Iterator[Hit]:
        if case.created_class is not case.qos:
            yield Hit(case, case.prefix, {"becomes": case.created_class.value, "expected": case.qos.value})


class _QuotaRefuses(Rule):
    id, level = "QOS018", Level.ERROR
    title = "a ResourceQuota refuses its pods"
    message = "ResourceQuota {name} refuses its pods: {text}"
    why = """`check` fills the quota with the replicas of the given objects, in their order, except objects
    that the server refuses anyway. The pods of this object no longer fit, or one of its containers lacks a
    value that the quota requires."""
    remedy = """Request less, write what is required, or have the quota raised. A DaemonSet counts as one pod
    here."""
    no_policy = "the API server refuses it itself"

    def find(self, case: Case) -> Iterator[Hit]:
        """Yield quotas that require limits where an injector adds a container without them."""
        added = _injection(case) if case.context.quotas and not case.limit_ranges else None
        if added is None:
            return
        injector, containers, settings = added
        if _ADDED[injector].sets_limits or all(settings.values()):
            return
        for quota in case.context.quotas:
            required = [key for key in quota.spec.hard if key.startswith("limits.")]
            if required and quota.metadata.namespace == case.pod.namespace:
                text = (
                    f"{injector} adds {containers}, which need {', '.join(required)} too: set them in"
                    " annotations of the pod, in the settings of the injector or in a LimitRange"
                )
                yield Hit(case, case.prefix, {"name": quota.name, "text": text}, level=Level.WARNING)

    def compare(self, cases: Sequence[Case]) -> Iterator[Hit]:
        """Fill the quotas of files, which start empty, with all replicas of the objects in their order."""
        quotas = {}
        for quota in cases[0].context.quotas if cases else ():
            if not quota.status.hard:
                none = ResourceList(dict.fromkeys(quota.spec.hard, ZERO))
                status = msgspec.structs.replace(quota.status, hard=quota.spec.hard, used=none)
                quota = msgspec.structs.replace(quota, status=status)  # noqa: PLW2901 - the same quota, counted
            quotas[quota.metadata.namespace, quota.name] = quota
        for case in cases:
            keys = [key for key in quotas if key[0] == case.pod.namespace]
            if not keys or case.is_stored or case.is_refused:
                continue
            raw = nested(case.subject.raw, *template_path(case.pod.kind), "spec")
            best_effort = qos_class(case.created, case.release) is QosClass.BEST_EFFORT
            claim = QuotaPod(case.created, best_effort, is_terminating(raw), crosses_namespaces(raw))
            job = ("jobTemplate", "spec") if case.pod.kind == "CronJob" else ()
            spec = nested(case.subject.raw, "spec", *job)
            # A DaemonSet counts once, because the number of its nodes is unknown.
            number = spec.get("replicas", spec.get("parallelism", 1))
            replicas = min(number, _MOST_REPLICAS) if isinstance(number, int) else 1
            for key in keys:
                for _ in range(replicas):
                    quota = quotas[key]
                    refusal = next(quota_refusals(claim, [quota], case.release), None)
                    if refusal is not None:
                        yield Hit(case, case.prefix, {"name": refusal.quota, "text": refusal.message})
                        break
                    used = dict(quota.status.used)
                    for charge in charges(claim, [quota], case.release):
                        used[charge.resource] = charge.used + charge.added
                    status = msgspec.structs.replace(quota.status, used=ResourceList(used))
                    quotas[key] = msgspec.structs.replace(quota, status=status)
