"""VerticalPodAutoscalers as far as they bear on requests: whose pods, and whether they are changed.

Source: autoscaling.k8s.io/v1 (kubernetes/autoscaler, vertical-pod-autoscaler/pkg/apis).
"""

from __future__ import annotations

import msgspec

from kubectl_qos.k8s.objects import ObjectMeta


class _Part(msgspec.Struct, frozen=True, rename="camel", gc=False, kw_only=True):
    """Frozen, unknown fields skipped."""


class TargetRef(_Part, frozen=True):
    """The workload whose pods are meant."""

    api_version: str = ""
    kind: str = ""
    name: str = ""


class UpdatePolicy(_Part, frozen=True):
    """`update_mode`: Off, Initial, Recreate, InPlaceOrRecreate, or Auto, which is the default."""

    update_mode: str | None = None


class VerticalAutoscalerSpec(_Part, frozen=True):
    """What a VerticalPodAutoscaler is told."""

    target_ref: TargetRef = TargetRef()
    update_policy: UpdatePolicy | None = None


class VerticalAutoscaler(_Part, frozen=True):
    """One VerticalPodAutoscaler."""

    metadata: ObjectMeta = ObjectMeta()
    spec: VerticalAutoscalerSpec = VerticalAutoscalerSpec()

    @property
    def mode(self) -> str:
        """How it changes pods; `Off` only recommends."""
        policy = self.spec.update_policy
        return (policy.update_mode if policy is not None else None) or "Auto"
