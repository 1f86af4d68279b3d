"""predict(): everything about one pod on one node, with reasons and the origin of each input.

This is the public API of the predictions (`kubectl_qos.predict`). The modules that it calls have the rules.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, NamedTuple

import msgspec
from msgspec import structs

from kubectl_qos.errors import InputError
from kubectl_qos.k8s.allocation import desired_pod, other_pod_limit, running_pod
from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kubelet import WINDOWS, Kubelet, Node, NodeSetup, Origin, with_origin
from kubectl_qos.k8s.objects import Container, Pod
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.releases import Release
from kubectl_qos.qos import oom_score
from kubectl_qos.qos.cgroup import names, values
from kubectl_qos.qos.cgroup.pod import (
    PodTotals,
    container_reasons,
    container_resources,
    pod_reasons,
    pod_settings,
    pod_totals,
)
from kubectl_qos.qos.cgroup.values import has_memory_qos
from kubectl_qos.qos.qos_class import QosClass, class_reason, computed_class, qos_class
from kubectl_qos.qos.ranking import UNKNOWN_BURSTABLE_ADJ, ContainerKind, container_kinds
from kubectl_qos.qos.reason import Reason

NO_UID: Final = "<uid>"
NO_ID: Final = "<id>"


@dataclass(frozen=True, slots=True)
class CgroupPrediction:
    """A directory of the cgroup tree: path below the mount, and files."""

    path: str
    files: Mapping[str, str]
    _explain: Callable[[Mapping[str, str]], Mapping[str, Reason]] = field(repr=False, compare=False)

    @property
    def reasons(self) -> Mapping[str, Reason]:
        """Reason for the content of each file; computed on access, because few predictions are explained."""
        return self._explain(self.files)


NO_CGROUP: Final = CgroupPrediction("", {}, lambda _: {})


@dataclass(frozen=True, slots=True)
class ContainerPrediction:
    """Prediction for one container.

    `oom_score_adj` is None if the node's memory is unknown; then `oom_score_adj_range` bounds it. Windows has
    neither, and no cgroups. `cri_resources` is the CRI message of the kubelet, `cgroup` the runtime's result.
    Processes are in `process_cgroup`, which crun puts below `cgroup`.
    """

    name: str
    kind: ContainerKind
    container: Container
    oom_score_adj: int | None
    oom_score_adj_range: tuple[int, int] | None
    adj_steps: oom_score.AdjSteps | None = field(repr=False)
    runtime_adj: int | None = field(repr=False)
    cri_resources: values.CriResources
    cgroup: CgroupPrediction
    process_cgroup: CgroupPrediction

    @property
    def oom_score_adj_reason(self) -> Reason | None:
        """The steps to oom_score_adj, None without one; computed on access, as few are explained."""
        return oom_score.adj_reason(self.adj_steps, self.runtime_adj) if self.adj_steps is not None else None

    @property
    def has_process_cgroup(self) -> bool:
        """Whether the processes have a separate cgroup below the container's."""
        return self.process_cgroup is not self.cgroup


class Assumption(NamedTuple):
    """An input of the prediction that was neither measured nor configured, with the assumed value.

    `basis` is evidence for the value, such as `containerd 1.7.27` or `profile eks`.
    """

    name: str
    value: object
    basis: str = ""


class Prediction(msgspec.Struct, frozen=True):
    """Prediction for one pod on one node; `pod` has the API server's defaults."""

    pod: Pod
    setup: NodeSetup
    qos_class: QosClass
    computed_class: QosClass
    critical: bool
    node_critical: bool
    static: bool
    mirror: bool
    totals: PodTotals
    containers: tuple[ContainerPrediction, ...]
    cgroup: CgroupPrediction
    class_cgroup_path: str

    @property
    def class_reason(self) -> Reason:
        """Reason for the class of the spec; computed on access, as few predictions are explained."""
        return class_reason(desired_pod(self.pod), self.computed_class, self.setup.release)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """Inputs that were neither measured nor configured."""
        return tuple(assumptions(self.setup))

    def container(self, name: str) -> ContainerPrediction:
        """Return the container of that name. Raises InputError if there is none."""
        for container in self.containers:
            if container.name == name:
                return container
        raise InputError(
            f"container {name} is not valid for pod {self.pod.metadata.name}",
            hint=f"its containers are: {', '.join(container.name for container in self.containers)}",
        )


def predict(
    pod: Pod, node: Node, *, kubelet: Kubelet | None = None, release: str | Release | None = None
) -> Prediction:
    """Predict what Kubernetes and Linux do with a pod on a node.

    The pod may be a manifest or an API object, and is defaulted here. The release defaults to
    `node.kubelet_version`, the kubelet's configuration to that of the release. Without the node's
    `memory_capacity_bytes`, a Burstable container only has a range of oom_score_adj. Raises InputError if the
    pod has no containers, or its UID cannot be part of a cgroup name.

    >>> from kubectl_qos import Node, pod_from_yaml, predict
    >>> pod = pod_from_yaml("spec: {containers: [{name: a, resources: {requests: {memory: 1Gi}}}]}")
    >>> result = predict(pod, Node(memory_capacity_bytes=16 * 1024**3), release="1.36")
    >>> result.qos_class.value, result.containers[0].oom_score_adj
    ('Burstable', 938)
    """
    return _predict(pod, NodeSetup.of(node.for_runtime_class(pod.spec.runtime_class_name), kubelet, release))


def _predict(pod: Pod, setup: NodeSetup, limit: Quantity | None = None) -> Prediction:
    """Predict with another memory limit of the pod's cgroup, if `limit` is given."""
    if not pod.containers:
        raise InputError(
            f"pod {pod.metadata.name or '(unnamed)'} has no containers: spec.containers is required",
            hint="a pod needs at least one container to have a QoS class",
        )
    if pod.spec.is_windows:
        setup = structs.replace(setup, node=with_origin(setup.node, Origin.API, operating_system=WINDOWS))
    pod = default_pod(pod, setup.release)
    stated = desired_pod(pod)  # A resize under way may leave requests and limits unequal.
    qos, computed = qos_class(pod, setup.release), computed_class(stated, setup.release)
    totals = pod_totals(pod, qos, setup, limit)
    uid = names.pod_uid(pod)  # "" for a manifest
    path = names.literal(names.pod_name(uid or "UID", qos, setup.kubelet), setup.kubelet.cgroup_driver)
    path = path if uid else path.replace("podUID", f"pod{NO_UID}")
    settings = pod_settings(pod, qos, totals, setup)
    files = values.files_on_node(settings, setup) if setup.kubelet.cgroups_per_qos else {}
    prediction = Prediction(
        pod=pod,
        setup=setup,
        qos_class=qos,
        computed_class=computed,
        critical=oom_score.is_critical(pod),
        node_critical=oom_score.is_node_critical(pod),
        static=oom_score.is_static(pod),
        mirror=oom_score.is_mirror(pod),
        totals=totals,
        containers=tuple(_containers(pod, qos, path, setup)),
        cgroup=CgroupPrediction(path, files, partial(pod_reasons, totals=totals, qos=qos, setup=setup)),
        class_cgroup_path=names.literal(names.class_name(qos, setup.kubelet), setup.kubelet.cgroup_driver),
    )
    return _without_linux(prediction) if setup.node.is_windows else prediction


def _without_linux(prediction: Prediction) -> Prediction:
    containers = [
        replace(
            container,
            oom_score_adj=None,
            oom_score_adj_range=None,
            adj_steps=None,
            cgroup=NO_CGROUP,
            process_cgroup=NO_CGROUP,
        )
        for container in prediction.containers
    ]
    return structs.replace(prediction, containers=tuple(containers), cgroup=NO_CGROUP, class_cgroup_path="")


def predict_running(pod: Pod, setup: NodeSetup) -> Prediction:
    """Predict for a pod of a cluster with its allocated resources. Raises as `predict`."""
    running = running_pod(pod, setup.release)
    node = setup.node.for_runtime_class(pod.spec.runtime_class_name)
    return _predict(running, NodeSetup.of(node, setup.kubelet, setup.release), other_pod_limit(pod))


def _containers(pod: Pod, qos: QosClass, pod_path: str, setup: NodeSetup) -> Iterator[ContainerPrediction]:
    node, kubelet, release = setup.node, setup.kubelet, setup.release
    adj = oom_score.PodAdj(pod, qos, node.memory_capacity_bytes, release)
    ids = {status.name: status.container_id for status in pod.status.every_container}
    for container, kind in container_kinds(pod, release):
        steps = adj.steps_for(container) if node.memory_capacity_bytes else adj.fixed
        resources = container_resources(pod, container, qos, steps.adj if steps is not None else 0, setup)
        path = names.container_path(pod_path, ids.get(container.name) or NO_ID, kubelet, node.runtime)
        is_scope = values.has_process_cgroup(setup)
        reasons_of = partial(
            container_reasons, pod=pod, container=container, resources=resources, setup=setup
        )
        files = values.container_files(resources, setup)
        cgroup = process_cgroup = CgroupPrediction(path, files, partial(reasons_of, is_scope=is_scope))
        if is_scope:
            files = values.process_files(resources, setup)
            process_cgroup = CgroupPrediction(f"{path}/container", files, partial(reasons_of, is_scope=False))
        runtime_adj = node.runtime_oom_score_adj
        value = oom_score.restrict_adj(steps.adj, runtime_adj) if steps is not None else None
        yield ContainerPrediction(
            name=container.name,
            kind=kind,
            container=container,
            oom_score_adj=value,
            oom_score_adj_range=UNKNOWN_BURSTABLE_ADJ if value is None else (value, value),
            adj_steps=steps,
            runtime_adj=runtime_adj,
            cri_resources=resources,
            cgroup=cgroup,
            process_cgroup=process_cgroup,
        )


_NODE_INPUTS: Final = (
    "memory_capacity_bytes swap_capacity_bytes page_size_bytes cgroup_version kubelet_version runtime"
    " oci_runtime"
)
_KUBELET_INPUTS: Final = (
    "cgroup_driver cgroup_root cpu_cfs_quota cpu_manager_policy pod_pids_limit memory_swap_behavior"
    " single_process_oom_kill feature_gates"
)
_WINDOWS_INPUTS = frozenset({"memory_capacity_bytes", "kubelet_version", "eviction_hard", "kube_reserved"})


def assumptions(setup: NodeSetup) -> Iterator[Assumption]:
    """Yield the inputs that were neither measured nor configured, and facts with a `basis`."""
    node, kubelet, release = setup.node, setup.kubelet, setup.release
    for facts, inputs in ((node, _NODE_INPUTS), (kubelet, _KUBELET_INPUTS)):
        for name in dict.fromkeys((*inputs.split(), *facts.basis)):
            is_assumed = name == "kubelet_version" and release.assumed
            is_known = facts.origin(name) is not Origin.ASSUMED and not is_assumed
            if is_known or (node.is_windows and name not in _WINDOWS_INPUTS):
                continue
            value = str(release) if name == "kubelet_version" else getattr(facts, name)
            yield Assumption(name, value, facts.basis.get(name, ""))
    if has_memory_qos(setup) and setup.assumes_no_reservations:
        yield Assumption("kube_reserved", kubelet.kube_reserved)
