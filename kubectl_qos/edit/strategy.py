"""The ways in which a change of an object can land, each with its exact request. Pure.

Not here: what a change does (preview.py), what speaks against it (verdicts.py), sending (cluster/write.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubectl_qos.edit.edits import POD_LEVEL, Edit, effective
from kubectl_qos.edit.patch import PatchRequest, build_request
from kubectl_qos.edit.preview import Preview, StrategyKind
from kubectl_qos.edit.related import OWNER, Owner, RelatedObjects
from kubectl_qos.edit.status import ON_DELETE, number, text
from kubectl_qos.k8s.kinds import WORKLOADS, find_controller
from kubectl_qos.k8s.objects import Pod, all_containers

JOB: Final = "Job"


@dataclass(frozen=True, slots=True)
class Strategy:
    """One way to land a change.

    Attributes:
        landing: which way.
        request: what is sent; None where it is not possible, or possible by hand only, as a manifest.
        reason: why it is not possible, empty where it is.
        restarts: the containers that restart in place.
        pods: how many pods are replaced by new ones; None where that is not known.
        note: what else there is to know: pods that keep their values.
    """

    strategy_kind: StrategyKind
    request: PatchRequest | None
    reason: str = ""
    restarts: tuple[str, ...] = ()
    pods: int | None = None
    note: str = ""

    @property
    def is_possible(self) -> bool:
        """Whether the change can land so."""
        return not self.reason


def strategies(
    pod: Pod, edits: Iterable[Edit], preview: Preview, related: RelatedObjects
) -> tuple[Strategy, ...]:
    """Every way that there is for this object, the possible ones first.

    Args:
        pod: the object as it is; for workloads the pod of its template.
        edits: the values to change; those that change nothing are dropped.
        preview: of the same edits.
        related: the object as the server has it, and its owners.
    """
    edits = effective(pod, edits)
    if pod.kind == "Pod":
        found = _of_pod(pod, edits, preview, related)
    else:
        own = Owner({"kind": pod.kind, **related.raw}, pod)
        found = [_through(_topmost(related) or own, edits, preview, related)]
    return tuple(sorted(found, key=lambda strategy: not strategy.is_possible))


def _of_pod(pod: Pod, edits: tuple[Edit, ...], preview: Preview, related: RelatedObjects) -> list[Strategy]:
    if preview.before.static or preview.before.mirror:
        sentence = "its kubelet makes it from a file: edit that file on the node"
        return [
            Strategy(StrategyKind.NEVER, None, f"{sentence}{f' {pod.node_name}' if pod.node_name else ''}")
        ]
    in_place = _in_place(pod, edits, preview, related)
    owner = _topmost(related)
    if owner is not None:
        return [in_place, _through(owner, edits, preview, related)]
    unread = _unread(related, related.raw)
    if unread:
        return [in_place, Strategy(StrategyKind.TEMPLATE, None, unread)]
    if related.owners:
        nearest = related.owners[0]
        reason = f"{nearest.kind.lower()}/{nearest.name} has no pod template that is known"
        return [in_place, Strategy(StrategyKind.TEMPLATE, None, reason)]
    return [in_place, Strategy(StrategyKind.RECREATE, None, _unfit(edits, preview))]


def _in_place(pod: Pod, edits: tuple[Edit, ...], preview: Preview, related: RelatedObjects) -> Strategy:
    refused = "; ".join(dict.fromkeys(map(str, preview.resize_refusals)))
    reason = (
        f"the pod has ended: {pod.status.phase}" if pod.is_terminal else _unfit(edits, preview) or refused
    )
    if reason:
        return Strategy(StrategyKind.IN_PLACE, None, reason)
    request = build_request(related.raw, pod, edits, in_place=True)
    return Strategy(StrategyKind.IN_PLACE, request, restarts=preview.restarts)


def _through(owner: Owner, edits: tuple[Edit, ...], preview: Preview, related: RelatedObjects) -> Strategy:
    """Through the template of the topmost workload that is known."""
    unread = _unread(related, owner.raw)
    if unread or owner.template is None:
        return Strategy(StrategyKind.TEMPLATE, None, unread or "it has no pod template")
    name = f"{owner.kind.lower()}/{owner.name}"
    if owner.kind == JOB:
        return Strategy(
            StrategyKind.NEVER, None, f"the template of {name} cannot be changed: delete it and make it anew"
        )
    template = owner.template
    present = {container.name for container in all_containers(template)}
    absent = [edit.owner for edit in edits if edit.owner != POD_LEVEL and edit.owner not in present]
    if absent:
        names = ", ".join(dict.fromkeys(absent))
        reason = f"{name} does not have the container {names} in its template: it is injected into pods"
        return Strategy(StrategyKind.TEMPLATE, None, reason)
    reason = _unfit(edits, preview)
    needed = effective(template, edits)
    if not reason and not needed:
        reason = f"the template of {name} has these values already"
    if reason:
        return Strategy(StrategyKind.TEMPLATE, None, reason)
    pods, note = _rolls(owner.kind, owner.raw)
    request = build_request(owner.raw, template, needed, in_place=False)
    return Strategy(StrategyKind.TEMPLATE, request, pods=pods, note=note)


def _topmost(related: RelatedObjects) -> Owner | None:
    """The highest workload above with a template; a ReplicaSet below a Deployment is never changed itself."""
    above = [owner for owner in related.owners if owner.kind in WORKLOADS and owner.template is not None]
    return above[-1] if above else None


def _unread(related: RelatedObjects, raw: Mapping[str, Any]) -> str:
    """Why the controller of an object is not known where it should be: it would change back what it owns."""
    above = find_controller(raw)
    if above is None or above.get("kind") not in WORKLOADS:
        return ""
    if any((owner.kind, owner.name) == (above.get("kind"), above.get("name")) for owner in related.owners):
        return ""
    name = f"{above['kind'].lower()}/{above.get('name')}"
    why = next((one.why for one in related.missing if one.what.startswith(OWNER)), "")
    return f"its owner {name} could not be read{f': {why}' if why else ''}"


def _unfit(edits: tuple[Edit, ...], preview: Preview) -> str:
    """Why no server takes it, in any way."""
    if not edits:
        return "nothing changes"
    return "; ".join(dict.fromkeys(map(str, preview.refusals)))


def _rolls(kind: str, raw: Mapping[str, Any]) -> tuple[int | None, str]:
    """How many pods are replaced, and what becomes of others."""
    strategy = text(raw, "spec", "updateStrategy", "type")
    if kind in {"ReplicaSet", "ReplicationController"}:
        return 0, "existing pods keep their values: only new ones are made from the template"
    if kind == "CronJob":
        return 0, "the next run has the values; running jobs keep theirs"
    if strategy == ON_DELETE:
        return 0, f"updateStrategy {ON_DELETE}: pods keep their values until they are deleted"
    if kind == "DaemonSet":
        return number(raw, "status", "desiredNumberScheduled"), ""
    replicas = number(raw, "spec", "replicas")
    replicas = 1 if replicas is None else replicas
    if kind == "Deployment" and (raw.get("spec") or {}).get("paused") is True:
        return 0, "it is paused: its pods keep their values until it is resumed"
    partition = number(raw, "spec", "updateStrategy", "rollingUpdate", "partition") or 0
    if kind == "StatefulSet" and partition:
        return max(replicas - partition, 0), f"pods below the partition {partition} keep their values"
    return replicas, ""
