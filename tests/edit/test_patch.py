"""Patches and manifests: only what changes, and nothing that is not read gets lost."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubectl_qos.cluster.files import pod_from_yaml
from kubectl_qos.edit.edits import (
    POD_LEVEL,
    Edit,
    Side,
    apply_edits,
    build_manifest,
    build_patch,
    edit_object,
    kubectl_command,
)
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.kinds import pod_from_workload
from kubectl_qos.k8s.objects import Pod, convert
from kubectl_qos.k8s.quantity import Quantity

RAW: dict[str, Any] = yaml.safe_load(
    """
    apiVersion: v1
    kind: Pod
    metadata: {name: web, namespace: shop, uid: u, resourceVersion: "7", managedFields: [{}], labels: {a: b}}
    spec:
      serviceAccountName: web
      initContainers: [{name: i, image: x}]
      containers:
      - name: c
        image: y
        env: [{name: A, value: B}]
        resources: {requests: {memory: 1Gi, cpu: 100m}, claims: [{name: gpu}]}
    status: {phase: Running}
    """
)
POD = pod_from_yaml(yaml.safe_dump(RAW))


def edit(owner: str, side: Side, resource: str, text: str | None) -> Edit:
    return Edit(owner, side, resource, None if text is None else Quantity.parse(text))


def test_a_patch_names_only_what_changes() -> None:
    edits = [
        edit("c", Side.REQUESTS, "memory", "2Gi"),
        edit("c", Side.REQUESTS, "cpu", None),
        edit("i", Side.LIMITS, "memory", "64Mi"),
        edit(POD_LEVEL, Side.LIMITS, "cpu", "2"),
    ]
    assert build_patch(POD, edits) == {
        "spec": {
            "containers": [{"name": "c", "resources": {"requests": {"memory": "2Gi", "cpu": None}}}],
            "initContainers": [{"name": "i", "resources": {"limits": {"memory": "64Mi"}}}],
            "resources": {"limits": {"cpu": "2"}},
        }
    }


@pytest.mark.parametrize(
    ("kind", "path"),
    [("Deployment", ["spec", "template"]), ("CronJob", ["spec", "jobTemplate", "spec", "template"])],
)
def test_a_workload_is_patched_in_its_template(kind: str, path: list[str]) -> None:
    inner: dict[str, Any] = {"spec": RAW["spec"]}
    for key in reversed(path):
        inner = {key: inner}
    raw = {"kind": kind, "metadata": {"name": "web", "namespace": "shop"}, **inner}
    pod = pod_from_workload(kind, raw)
    change = [edit("c", Side.LIMITS, "memory", "2Gi")]
    patch: Any = build_patch(pod, change)
    manifest: Any = build_manifest(raw, pod, change)
    for key in path:
        patch, manifest = patch[key], manifest[key]
    assert patch["spec"]["containers"][0]["resources"] == {"limits": {"memory": "2Gi"}}
    assert manifest["spec"]["containers"][0]["resources"]["limits"] == {"memory": "2Gi"}


def test_a_manifest_keeps_what_is_not_read_and_drops_what_a_server_fills_in() -> None:
    manifest = build_manifest(RAW, POD, [edit("c", Side.REQUESTS, "cpu", None)])
    assert manifest["spec"]["serviceAccountName"] == "web"
    container = manifest["spec"]["containers"][0]
    assert container["env"] == [{"name": "A", "value": "B"}]
    assert container["resources"] == {"requests": {"memory": "1Gi"}, "claims": [{"name": "gpu"}]}
    assert manifest["metadata"] == {"name": "web", "namespace": "shop", "labels": {"a": "b"}}
    assert "status" not in manifest
    assert RAW["status"] == {"phase": "Running"}, "the original is left alone"


@pytest.mark.parametrize(
    ("held", "text", "written"),
    [(1, "2", 2), ("1", "2", "2"), (1, "500m", "500m"), (None, "2", "2"), (True, "2", "2")],
)
def test_a_number_stays_a_number(held: object, text: str, written: object) -> None:
    raw = {"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": held}}}]}}
    found = edit_object(raw, POD, [edit("c", Side.LIMITS, "cpu", text)])
    (value,) = found["spec"]["containers"][0]["resources"]["limits"].values()
    assert (value, type(value)) == (written, type(written))


def test_a_side_that_is_emptied_is_removed() -> None:
    change = [edit("c", Side.REQUESTS, "cpu", None), edit("c", Side.REQUESTS, "memory", None)]
    manifest = build_manifest(RAW, POD, change)
    assert "requests" not in manifest["spec"]["containers"][0]["resources"]


def test_an_object_that_lost_the_container_is_refused() -> None:
    with pytest.raises(InputError, match="has no container gone"):
        build_manifest(RAW, POD, [edit("gone", Side.LIMITS, "cpu", "1")])


VALUES = st.sampled_from([None, "0", "250m", "1", "64Mi", "1Gi"])
EDITS = st.lists(
    st.builds(
        edit,
        st.sampled_from(["c", "i"]),
        st.sampled_from(list(Side)),
        st.sampled_from(["cpu", "memory"]),
        VALUES,
    ),
    max_size=5,
    unique_by=lambda one: one.target,
)


@given(EDITS)
def test_manifest_and_patch_make_the_same_pod_as_the_edits(edits: list[Edit]) -> None:
    wanted = resources_of(apply_edits(POD, edits))
    manifest = build_manifest(RAW, POD, edits)
    assert resources_of(pod_from_yaml(yaml.safe_dump(manifest))) == wanted
    assert resources_of(pod_from_yaml(yaml.safe_dump(_merged(RAW, build_patch(POD, edits))))) == wanted


def resources_of(pod: Pod) -> dict[str, tuple[dict[str, str], dict[str, str]]]:
    return {
        one.name: (
            {name: str(value) for name, value in one.requests.items()},
            {name: str(value) for name, value in one.limits.items()},
        )
        for one in (*pod.containers, *pod.init_containers)
    }


def _merged(raw: Any, patch: Any) -> Any:
    """A strategic merge as a server does it: lists of containers by name, null removes."""
    if isinstance(patch, dict):
        merged = dict(raw or {})
        for key, value in patch.items():
            if value is None:
                merged.pop(key, None)
            else:
                merged[key] = _merged(merged.get(key), value)
        return merged
    if isinstance(patch, list):
        by_name = {one["name"]: one for one in raw or ()}
        for one in patch:
            by_name[one["name"]] = _merged(by_name.get(one["name"]), one)
        return list(by_name.values())
    return patch


def test_the_command_to_apply_it_by_hand() -> None:
    assert kubectl_command(POD, in_place=True) == (
        "kubectl patch pod web -n shop --subresource resize --patch-file FILE"
    )


def test_a_recreated_pod_is_scheduled_again() -> None:
    raw = {
        "kind": "Pod",
        "metadata": {"name": "web", "uid": "u"},
        "spec": {"nodeName": "n1", "containers": [{"name": "app"}]},
    }
    assert "nodeName" not in build_manifest(raw, convert(raw, Pod), [])["spec"]
    del raw["metadata"]["uid"]  # type: ignore[attr-defined]
    assert build_manifest(raw, convert(raw, Pod), [])["spec"]["nodeName"] == "n1", "somebody wrote it"


def test_removing_what_the_whole_pod_does_not_have_leaves_it_as_it_is() -> None:
    """Empty spec.resources are not the same as none: up to 1.36 they decide the class."""
    pod = pod_from_yaml("kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n")
    assert apply_edits(pod, [Edit(POD_LEVEL, Side.LIMITS, "memory", None)]) == pod
