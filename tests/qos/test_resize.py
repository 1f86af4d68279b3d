"""In-place resizes: what a real server refused and a real kubelet answered, then each release."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import structs

from kubectl_qos.edit.edits import Edit, Side, apply_edits
from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kubelet import Kubelet, Node, NodeSetup, node_from_object
from kubectl_qos.k8s.objects import NodeObject, Pod, convert, resource_list
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.usage import ContainerUsage, PodUsage
from kubectl_qos.qos.resize import ResizeStatus, node_fit, resize_outcome, resize_refusals, restarting
from tests.qos.corner import one, spec
from tests.recordings.files import read_json

R136 = Release.of("1.36")


def edits_of(body: dict[str, Any]) -> Iterator[Edit]:
    """The resources that a recorded patch sets or removes."""
    owners = [("", body.get("resources", {}))]
    for kind in ("containers", "initContainers"):
        owners += [(one["name"], one.get("resources", {})) for one in body.get(kind, ())]
    for owner, resources in owners:
        for side, values in resources.items():
            for name, text in values.items():
                yield Edit(owner, Side(side), name, None if text is None else Quantity.parse(text))


def changed(old: Pod, body: dict[str, Any]) -> Pod:
    return default_pod(apply_edits(old, edits_of(body)), R136)


def exchanges() -> Iterator[Any]:
    """Every recorded resize of resources on the real node: name, the pod before, the patch, the answer."""
    rounds = read_json("node-1.36/resize-exchanges.json")
    for part in rounds[:3]:
        for number, exchange in enumerate(part["exchanges"]):
            path, body = exchange["request"]["path"], exchange["request"]["body"]["spec"]
            if not path.endswith("/resize") or not list(_known_edits(body)):
                continue
            name = path.split("/")[-2]
            if name not in part["before"]:
                continue
            before = part["before"][name]["pod"]
            yield pytest.param(
                before, body, exchange["response"], id=f"{part['round']}-{number}-{name}-{_short(body)}"
            )


def _known_edits(body: dict[str, Any]) -> Iterator[Edit]:
    if all(one["name"] != "nope" for one in body.get("containers", ())):
        yield from edits_of(body)


def _short(body: dict[str, Any]) -> str:
    return re.sub(r"\W+", "-", json.dumps(body))[-40:].strip("-")


def said(answer: dict[str, Any]) -> str | None:
    """The server's sentence without the name of the object, None where it agreed."""
    if answer["status"] == 200:
        return None
    return re.sub(r'^(Pod|pods) "[^"]+" is (invalid|forbidden): ', "", answer["body"]["message"])


def real_node() -> NodeObject:
    found = read_json("node-1.36/node-systemd.json")["node"]
    return convert(found, NodeObject)


@pytest.mark.parametrize(("before", "body", "answer"), exchanges())
def test_a_real_server_said_the_same(before: dict[str, Any], body: dict[str, Any], answer: Any) -> None:
    old = convert(before, Pod)
    found = resize_refusals(old, changed(old, body), R136, node_from_object(real_node(), Kubelet()))
    assert (", ".join(map(str, found)) or None) == said(answer)


@pytest.mark.parametrize(
    "name",
    ["063-resize-qos-change-422", "065-resize-limit-below-request-422", "068-resize-ephemeral-storage-422"],
)
def test_another_real_server_said_the_same(name: str) -> None:
    exchange = read_json(f"apiserver-1.36/{name}.json")
    old = convert(read_json("apiserver-1.36/062-resize-ok.json")["response"]["body"], Pod)
    found = resize_refusals(old, changed(old, exchange["request"]["body"]["spec"]), R136)
    assert [str(refusal) for refusal in found] == [said(exchange["response"])]


# -- what the kubelet then does ----------------------------------------------------------------------


def recorded(round_: int, name: str) -> tuple[Pod, Pod]:
    """A pod of a recorded round before, and as it was accepted."""
    part = read_json("node-1.36/resize-exchanges.json")[round_]
    before = convert(part["before"][name]["pod"], Pod)
    return before, convert(part["after"][name]["pod"], Pod)


def setup(**kubelet: Any) -> NodeSetup:
    configured = Kubelet(**kubelet)
    return NodeSetup.of(node_from_object(real_node(), configured), configured, "1.36")


def test_a_pod_that_restarts_says_so() -> None:
    assert restarting(*recorded(1, "rz-restart")) == ["c"]
    assert restarting(*recorded(2, "rz-restart")) == [], "its CPU may change without a restart"
    assert restarting(*recorded(1, "rz-bu")) == []


def test_a_limit_below_usage_is_an_error_in_the_kubelets_words() -> None:
    old, new = recorded(1, "rz-hog")
    usage = PodUsage.of_containers({"c": ContainerUsage(105504768)})
    answer, message = resize_outcome(old, new, setup(), usage=usage)
    assert answer is ResizeStatus.ERROR
    assert message.startswith(
        "cannot decrease memory limits: [attempting to set pod memory limit (67108864) below current usage"
        ' (105504768), attempting to set container "c" memory limit (671'
    )


def of_two(memory: str, policy: str) -> Pod:
    """A container `a` with that memory limit, and a sidecar."""
    limit = f"limits: {{memory: {memory}}}" if memory else ""
    return spec(
        f"containers: [{{name: a, resizePolicy: [{{resourceName: memory, restartPolicy: {policy}}}],"
        f" resources: {{requests: {{memory: 100Mi}}, {limit}}}}}],"
        " initContainers: [{name: b, restartPolicy: Always, resources: {limits: {memory: 1000Mi}}}]"
    )


@pytest.mark.parametrize(
    ("before", "after", "policy", "below"),
    [
        (
            "1Gi",
            "500Mi",
            "NotRequired",
            ["pod memory limit (1572864000)", 'container "a" memory limit (524288000)'],
        ),
        ("1Gi", "500Mi", "RestartContainer", []),
        ("1Gi", "800Mi", "NotRequired", ['container "a" memory limit (838860800)']),
        ("", "500Mi", "NotRequired", ['container "a" memory limit (524288000)']),
        ("", "5Gi", "NotRequired", []),
        ("500Mi", "600Mi", "NotRequired", []),
    ],
    ids=["lower", "lower by a restart", "as much as is used", "added", "added above", "raised"],
)
def test_a_new_limit_must_be_above_the_usage_of_what_runs_on(
    before: str, after: str, policy: str, below: list[str]
) -> None:
    usage = PodUsage.of_containers({"a": ContainerUsage(800 << 20), "b": ContainerUsage(900 << 20)})
    _, message = resize_outcome(of_two(before, policy), of_two(after, policy), setup(), usage=usage)
    assert re.findall(r"attempting to set (.+?) below current usage \(1782579200\)", message) == below
    assert bool(message) == bool(below)


def test_what_does_not_fit_now_is_deferred_in_the_kubelets_words() -> None:
    old, new = recorded(1, "rz-defer")
    blocker = one("requests: {cpu: 1438m}")
    assert resize_outcome(old, new, setup(), node_fit(new, [blocker], setup())) == (
        ResizeStatus.DEFERRED,
        "Node didn't have enough resource: cpu, requested: 1500, used: 1438, capacity: 1800",
    )
    assert resize_outcome(old, new, setup()).answer is ResizeStatus.ACTUATED


def test_a_pod_that_requests_no_cpu_fits_on_a_node_without_any_left() -> None:
    """Upstream fitsRequest skips a resource that is not requested; the kubelet admits a resize by it."""
    old, new = pod("requests: {memory: 1Gi}"), pod("requests: {memory: 2Gi}")
    overfull = one("requests: {cpu: 1801m}")
    assert (
        resize_outcome(old, new, setup(), node_fit(new, [overfull], setup())).answer is ResizeStatus.ACTUATED
    )
    requesting = pod("requests: {memory: 2Gi, cpu: 1m}")
    fits = {fit.resource: fit.fits for fit in node_fit(requesting, [overfull], setup())}
    assert fits == {"cpu": False, "memory": True}


@pytest.mark.parametrize(
    ("resources", "release", "fits"),
    [
        ("requests: {memory: 2Gi}", "1.27", False),
        ("requests: {memory: 2Gi}", "1.28", True),
        ("requests: {}", "1.27", True),
    ],
)
def test_before_1_28_a_pod_with_any_request_is_compared_whole(
    resources: str, release: str, fits: bool
) -> None:
    old = structs.replace(setup(), release=Release.of(release))
    assert all(fit.fits for fit in node_fit(pod(resources), [one("requests: {cpu: 1801m}")], old)) is fits


def test_exclusive_cpus_and_swap_make_it_infeasible() -> None:
    old, new = recorded(1, "rz-gu")
    assert resize_outcome(old, new, setup(cpu_manager_policy="static")).answer is ResizeStatus.INFEASIBLE
    old, new = recorded(1, "rz-bu")
    swapping = setup(memory_swap_behavior="LimitedSwap")
    swapping = structs.replace(swapping, node=structs.replace(swapping.node, swap_capacity_bytes=1 << 30))
    assert (
        resize_outcome(old, new, swapping).message
        == "In-place resize of containers with swap is not supported."
    )


# -- releases ----------------------------------------------------------------------------------------


RUNNING = "{qosClass: Burstable, containerStatuses: [{name: c1, state: {running: {}}, resources: {}}]}"


def pod(resources: str, more: str = "", status: str = RUNNING) -> Pod:
    return spec(f"containers: [{{name: c1, resources: {{{resources}}}}}]{more}", status=status)


def sentences(old: Pod, new: Pod, release: str, **gates: bool) -> list[str]:
    return [str(refusal) for refusal in resize_refusals(old, new, Release.of(release, gates))]


SMALL, LARGE = pod("requests: {memory: 1Gi}"), pod("requests: {memory: 2Gi}")


def test_the_subresource_came_with_1_32_and_its_gate_with_1_33() -> None:
    assert sentences(SMALL, LARGE, "1.31") == [
        "Kubernetes 1.31 has no resize subresource (it came with 1.32)"
    ]
    assert sentences(SMALL, LARGE, "1.32") == ["the server could not find the requested resource"]
    assert sentences(SMALL, LARGE, "1.32", InPlacePodVerticalScaling=True) == []
    assert sentences(SMALL, LARGE, "1.33") == []


def test_a_memory_limit_only_grew_in_1_33() -> None:
    old, less = pod("limits: {memory: 2Gi}, requests: {memory: 1Gi}"), pod("limits: {memory: 1Gi}")
    unless = "unless resizePolicy is RestartContainer"
    path = "spec.containers[0].resources.limits: Forbidden: memory limits cannot be"
    assert sentences(old, default_pod(less, R136), "1.33") == [f"{path} decreased {unless}"]
    assert sentences(SMALL, default_pod(old, R136), "1.33") == [f"{path} added {unless}"]
    assert sentences(old, default_pod(less, R136), "1.34") == []


def test_pod_level_resources_became_resizable() -> None:
    old = pod("", ", resources: {requests: {memory: 1Gi}}")
    new = pod("", ", resources: {requests: {memory: 2Gi}}")
    assert sentences(old, new, "1.34") == ["Forbidden: pods with pod-level resources cannot be resized"]
    assert "feature gate is disabled" in sentences(old, new, "1.35")[0]
    assert sentences(old, new, "1.36") == []
    removed = pod("requests: {memory: 1Gi}")
    assert "spec.resources: Forbidden: pod-level resources cannot be removed" in sentences(
        old, removed, "1.36"
    )


def test_init_containers_became_resizable() -> None:
    def with_init(memory: str, more: str = "") -> Pod:
        init = f"[{{name: i, resources: {{requests: {{memory: {memory}}}}}{more}}}]"
        return pod("requests: {memory: 1Gi}", f", initContainers: {init}")

    refused = "spec: Forbidden: resources for non-sidecar init containers are immutable"
    assert sentences(with_init("1Gi"), with_init("2Gi"), "1.35") == [refused]
    assert sentences(with_init("1Gi"), with_init("2Gi"), "1.36") == []
    sidecar = ", restartPolicy: Always"
    assert sentences(with_init("1Gi", sidecar), with_init("2Gi", sidecar), "1.33") == []


def test_static_pods_and_old_nodes_are_refused() -> None:
    static = spec(
        "containers: [{name: c1}]", annotations="{kubernetes.io/config.mirror: abc}", status=RUNNING
    )
    assert sentences(static, static, "1.36") == ["Forbidden: static pods cannot be resized"]
    old_node = pod(
        "requests: {memory: 1Gi}", status="{containerStatuses: [{name: c1, state: {running: {}}}]}"
    )
    assert sentences(old_node, LARGE, "1.36") == [
        "spec: Forbidden: Pod running on node without support for resize"
    ]


@pytest.mark.parametrize(
    ("release", "answer"), [("1.33", ResizeStatus.INFEASIBLE), ("1.36", ResizeStatus.DEFERRED)]
)
def test_more_than_the_node_has_is_infeasible_or_deferred(release: str, answer: ResizeStatus) -> None:
    node = Node(memory_capacity_bytes=2 << 30, status_allocatable=resource_list({"memory": "1500Mi"}))
    assert resize_outcome(SMALL, LARGE, NodeSetup.of(node, Kubelet(), release)).answer is answer
