"""Pods that a server would refuse: every rule gives an answer or one sentence, never another exception."""

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from kubectl_qos.analysis.pod_table import build_rows
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.kubelet import CgroupDriver, Kubelet, MemoryReservationPolicy, Node, NodeSetup
from kubectl_qos.k8s.objects import Pod, convert
from kubectl_qos.k8s.releases import SUPPORTED_MINORS, OciRuntime, Release
from kubectl_qos.k8s.snapshot import NodeOverrides, Scope, Snapshot
from kubectl_qos.k8s.usage import PodUsage
from kubectl_qos.k8s.validation import pod_refusals
from kubectl_qos.present.explanation import explain_pod, text_lines
from kubectl_qos.qos.cgroup.tree import cgroup_tree
from kubectl_qos.qos.prediction import predict
from kubectl_qos.qos.ranking import rank_node
from kubectl_qos.qos.resize import node_fit, resize_outcome, resize_refusals
from kubectl_qos.qos.simulation.ceiling import Scenario
from kubectl_qos.qos.simulation.engine import simulate
from tests.node_states import build_node_state

NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
QUANTITIES: Final = st.one_of(
    st.sampled_from(
        [
            *(
                "0",
                "-1",
                "-8Gi",
                "1",
                "64Mi",
                "0.7Gi",
                "1e-9",
                "-0.5m",
                "33m",
                "12E",
                "-12Ei",
                "7Ei",
                "1e999",
            ),
            *(str(sign * number) for sign in (1, -1) for number in ((1 << 63) - 1, 1 << 63, 1 << 64)),
        ]
    ),
    st.integers(-(1 << 70), 1 << 70).map(str),
    st.floats(allow_nan=False, allow_infinity=False, width=32).map(lambda number: f"{number:.6e}"),
)
RESOURCES: Final = (
    "cpu",
    "memory",
    "hugepages-2Mi",
    "hugepages-",
    "hugepages-3x",
    "pids",
    "example.com/gpu",
    "",
)
REQUIREMENTS: Final = st.dictionaries(st.sampled_from(RESOURCES), QUANTITIES, max_size=4)
NAMES: Final = st.sampled_from(
    ["a", "b", "", "A B", "é", "../..", "x" * 300, "a/b", "a_b", "\x1b[31m", "pod\n"]
)
CONTAINERS: Final = st.lists(
    st.fixed_dictionaries(
        {
            "name": NAMES,
            "resources": st.fixed_dictionaries(
                {}, optional={"requests": REQUIREMENTS, "limits": REQUIREMENTS}
            ),
        },
        optional={"restartPolicy": st.sampled_from(["Always", "Never", "", "always"])},
    ),
    max_size=3,
)
PODS: Final = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {"name": NAMES, "namespace": NAMES, "uid": NAMES},
            optional={"annotations": st.just({"kubernetes.io/config.mirror": "x"})},
        ),
        "spec": st.fixed_dictionaries(
            {},
            optional={
                "nodeName": st.just("n"),
                "containers": CONTAINERS,
                "initContainers": CONTAINERS,
                "ephemeralContainers": CONTAINERS,
                "overhead": REQUIREMENTS,
                "priority": st.integers(-(1 << 31), (1 << 31) - 1),
                "priorityClassName": st.sampled_from(["system-node-critical", "nope", ""]),
                "runtimeClassName": st.sampled_from(["crun", "runc-1", "gvisor", ""]),
                "resources": st.fixed_dictionaries(
                    {}, optional={"requests": REQUIREMENTS, "limits": REQUIREMENTS}
                ),
            },
        ),
        "status": st.fixed_dictionaries(
            {},
            optional={
                "phase": st.sampled_from(["Running", "Pending", "?"]),
                "qosClass": NAMES,
                "resize": NAMES,
            },
        ),
    }
)
SETUPS: Final = st.builds(
    lambda minor, gates, capacity, **more: NodeSetup.of(
        Node(
            name="n",
            memory_capacity_bytes=capacity,
            swap_capacity_bytes=more["swap"],
            oci_runtime=more["runtime"],
            cgroup_version=more["version"],
            operating_system=more["system"],
            hugepage_sizes=("2MB",),
        ),
        Kubelet(
            cgroup_driver=more["driver"],
            feature_gates=dict.fromkeys(gates, True),
            memory_reservation_policy=more["policy"],
            memory_swap_behavior=more["swap_behavior"],
        ),
        f"1.{minor}",
    ),
    minor=st.sampled_from(SUPPORTED_MINORS),
    gates=st.lists(st.sampled_from(["MemoryQoS", "PerPodPIDLimit", "NodeSwap", "QOSReserved"])),
    capacity=st.sampled_from([None, 1, 4096, 16 << 30, 1 << 62]),
    swap=st.sampled_from([0, 1 << 30]),
    runtime=st.sampled_from([OciRuntime(), OciRuntime("crun")]),
    version=st.sampled_from([1, 2]),
    system=st.sampled_from(["linux", "windows"]),
    driver=st.sampled_from(CgroupDriver),
    policy=st.sampled_from(MemoryReservationPolicy),
    swap_behavior=st.sampled_from(["", "LimitedSwap"]),
)


def pod_or_none(raw: dict[str, Any]) -> Pod | None:
    """The decoded pod; None where the decoder itself refuses it, with a sentence."""
    try:
        return convert(raw, Pod)
    except (msgspec.ValidationError, QosError):
        return None


def answers(pod: Pod, other: Pod, setup: NodeSetup) -> None:
    node, release = setup.node, setup.release
    usage = {(pod.namespace, pod.name): PodUsage(("a",), (100 << 20,))}
    snapshot = Snapshot(pods=(pod, other), usage=usage, overrides=NodeOverrides(16 << 30))
    for compute in (
        lambda: predict(pod, node, kubelet=setup.kubelet, release=release),
        lambda: rank_node([pod, other], node, release, usage),
        lambda: cgroup_tree([pod, other], setup),
        lambda: pod_refusals(pod, release),
        lambda: resize_refusals(pod, pod, release, node),
        lambda: resize_outcome(pod, pod, setup, node_fit(pod, [other], setup)),
        lambda: simulate(build_node_state([pod, other], setup, usage), Scenario(all_at_limit=True)),
        lambda: build_rows(snapshot, Scope(), containers=True),
        lambda: list(text_lines(explain_pod(pod, snapshot, NOW))),
    ):
        with suppress(QosError):
            compute()


@given(PODS, PODS, SETUPS)
def test_an_answer_or_a_sentence(raw: dict[str, Any], other: dict[str, Any], setup: NodeSetup) -> None:
    first, second = pod_or_none(raw), pod_or_none(other)
    if first is not None and second is not None:
        answers(first, second, setup)


def test_a_node_smaller_than_a_page_has_no_scores_but_its_limits_kill() -> None:
    limits = [
        {"name": name, "resources": {"limits": {"memory": size}}}
        for name, size in (("a", "-1"), ("b", "1Gi"))
    ]
    raw = {"metadata": {"name": "p", "namespace": "n"}, "spec": {"nodeName": "n", "containers": limits}}
    setup = NodeSetup(Node(name="n", memory_capacity_bytes=1), Kubelet(), Release.of("1.36"))
    state = build_node_state([convert(raw, Pod)], setup, {})
    steps = simulate(state, Scenario(all_at_limit=True)).steps
    assert {step.score for step in steps} == {None}
