"""The numbers of the PriorityClasses that every cluster has: who names such a class gets its number."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubectl_qos.cluster.documents import ParsedObjects, read_documents
from kubectl_qos.k8s.kinds import pod_from_workload
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.qos.oom_score import is_critical, is_node_critical


def spec(name: str, **more: Any) -> dict[str, Any]:
    return {"priorityClassName": name, "containers": [{"name": "c"}], **more}


def from_file(metadata: dict[str, Any], **spec: Any) -> Pod:
    found = ParsedObjects()
    text = json.dumps({"kind": "Pod", "metadata": {"name": "p", **metadata}, "spec": spec})
    read_documents(text.encode(), "p.json", found)
    return found.pods[0]


@pytest.mark.parametrize("name", ["system-node-critical", "system-cluster-critical", "gold", ""])
def test_a_template_and_a_manifest_become_as_critical_as_their_class(name: str) -> None:
    template = pod_from_workload("DaemonSet", {"spec": {"template": {"spec": spec(name)}}})
    for pod in (template, from_file({}, **spec(name))):
        assert is_critical(pod) is name.startswith("system-")
        assert is_node_critical(pod) is (name == "system-node-critical")


def test_a_number_that_is_written_counts() -> None:
    written = spec("system-node-critical", priority=5)
    template = pod_from_workload("DaemonSet", {"spec": {"template": {"spec": written}}})
    assert template.spec.priority == 5
    assert not is_critical(template)


def test_of_a_pod_that_a_server_has_seen_its_own_number_counts() -> None:
    """A server without that admission plugin gave it none, and its kubelet goes by that."""
    seen = from_file({"uid": "u"}, **spec("system-node-critical"))
    assert seen.spec.priority is None
    assert not is_critical(seen)
