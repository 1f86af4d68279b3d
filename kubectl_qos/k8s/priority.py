"""The PriorityClasses that every cluster has, and their numbers.

Source: pkg/apis/scheduling/types.go, plugin/pkg/admission/priority/admission.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from kubectl_qos.k8s.objects import Pod

SYSTEM_CRITICAL_PRIORITY: Final = 2_000_000_000
SYSTEM_NODE_CRITICAL: Final = "system-node-critical"
SYSTEM_PRIORITIES: Final[Mapping[str, int]] = {
    "system-cluster-critical": SYSTEM_CRITICAL_PRIORITY,
    SYSTEM_NODE_CRITICAL: SYSTEM_CRITICAL_PRIORITY + 1_000,
}


def with_system_priority(pod: Pod) -> Pod:
    """A pod that no server has seen, with the number that one gives it for such a class.

    Templates and manifests name the class alone, and kubelets go by the number.
    """
    number = SYSTEM_PRIORITIES.get(pod.spec.priority_class_name)
    if number is None or pod.spec.priority is not None:
        return pod
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, priority=number))
