"""The second recorded node (systemd driver, runc 1.5.1, and crun 1.21 for a RuntimeClass): every file."""

from collections.abc import Iterator
from typing import Any

from msgspec import structs

from kubectl_qos.analysis.verification import Observed, ObservedContainer, verify_pod
from kubectl_qos.k8s.kubelet import NodeSetup
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.releases import OciRuntime
from kubectl_qos.present.explanation import _cgroup
from kubectl_qos.present.measured import cause_sentence
from kubectl_qos.present.reasons import assumption_sentence
from kubectl_qos.qos.cgroup.tree import CgroupLevel, cgroup_tree
from kubectl_qos.qos.prediction import CgroupPrediction, Prediction, predict_running
from tests.qos.recorded import measured_c, pods_c, setup_c

RUN = "crun-systemd"
CRUN = OciRuntime("crun", (1, 21))


def setup(**node: Any) -> NodeSetup:
    found = setup_c(RUN)
    return structs.replace(
        found, node=structs.replace(found.node, **{"oci_runtimes": {"crun": CRUN}, **node})
    )


def cgroups(prediction: Prediction) -> Iterator[CgroupPrediction]:
    yield prediction.cgroup
    for container in prediction.containers:
        yield container.cgroup
        if container.has_process_cgroup:
            yield container.process_cgroup


def test_every_predicted_file_is_the_measured_one() -> None:
    tree, checked, absent = measured_c(RUN)["tree"], 0, []
    for pod in pods_c(RUN):
        for cgroup in cgroups(predict_running(pod, setup())):
            if cgroup.path not in tree:
                absent.append(pod.name)
                continue
            measured = tree[cgroup.path]
            assert {name: measured[name].strip() for name in cgroup.files} == dict(cgroup.files), pod.name
            checked += len(cgroup.files)
    assert checked > 600
    # Pods that are not scheduled, init containers that have ended, and one that has not started yet.
    assert set(absent) == {"bu-large-req", "toolarge", "in-be-limits", "in-large", "sc-bu", "in-running"}


def crun_pod() -> Pod:
    return next(pod for pod in pods_c(RUN) if pod.spec.runtime_class_name == "crun")


def test_crun_writes_the_rest_below_the_scope() -> None:
    (container,) = predict_running(crun_pod(), setup()).containers
    scope, inner = container.cgroup.files, container.process_cgroup.files
    assert "memory.oom.group" not in scope
    assert (scope["cpu.max"], scope["memory.swap.max"]) == ("14000 100000", "67108864")
    assert (inner["cpu.max"], inner["memory.swap.max"]) == ("13300 100000", "0")
    assert inner["memory.oom.group"] == "1"
    section = _cgroup(predict_running(crun_pod(), setup()))
    assert section is not None
    lines = {line.text: line.note for line in section.lines}
    assert lines["container/"] == "its processes, by crun"
    assert lines["memory.oom.group = 1"] == "the kernel kills all processes of the container together"


def test_the_tree_has_the_files_of_both() -> None:
    levels = {one.level: one.files for one in cgroup_tree([crun_pod()], setup()).walk()}
    assert "memory.oom.group" not in levels[CgroupLevel.CONTAINER]
    assert levels[CgroupLevel.PROCESSES]["memory.oom.group"] == "1"


def test_the_name_of_a_runtime_class_says_that_it_is_crun() -> None:
    """Without anything given its version is assumed, which only the weight shows."""
    prediction = predict_running(crun_pod(), setup(oci_runtimes={}))
    tree = measured_c(RUN)["tree"]
    differing = {
        name
        for cgroup in cgroups(prediction)
        for name, text in cgroup.files.items()
        if tree[cgroup.path][name].strip() != text
    }
    assert differing == {"cpu.weight"}
    (assumed,) = [one for one in prediction.assumptions if one.name == "oci_runtime"]
    assert (assumed.value, assumed.basis) == (OciRuntime("crun"), "RuntimeClass crun")
    others = predict_running(next(pod for pod in pods_c(RUN) if pod.name == "ov-bu"), setup())
    assert others.setup.node.oci_runtime.name == "runc"


def test_a_container_of_crun_read_from_inside_has_no_drift() -> None:
    prediction = predict_running(crun_pod(), setup())
    (container,) = prediction.containers
    inside = measured_c(RUN)["tree"][container.process_cgroup.path]
    checks = verify_pod(prediction, Observed({container.name: ObservedContainer(inside)}))
    assert len(checks) > 4
    assert not [check for check in checks if check.drift]


def test_another_crun_is_assumed_by_the_flag_of_its_runtime_class() -> None:
    """Its weight is the linear one of crun before 1.23; the other pods of the node have runc."""
    prediction = predict_running(crun_pod(), setup(oci_runtimes={}))
    (container,) = prediction.containers
    inside = measured_c(RUN)["tree"][container.process_cgroup.path]
    checks = verify_pod(prediction, Observed({container.name: ObservedContainer(inside)}))
    causes = {check.file: check.cause for check in checks if check.drift}
    assert causes.keys() == {"cpu.weight"}
    cause = causes["cpu.weight"]
    assert cause is not None
    assert cause_sentence(cause).endswith("(--assume ociRuntime.crun=crun-1.22)")
    (assumed,) = [one for one in prediction.assumptions if one.name == "oci_runtime"]
    words = "a current crun (from RuntimeClass crun, else --assume ociRuntime.crun=crun-VERSION)"
    assert assumption_sentence(assumed) == words
