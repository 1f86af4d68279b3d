"""The expected response against every recorded response about an edit.

The state before each exchange is made from the recordings alone: what was created, in order, and what later
answers made of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import pytest
from msgspec import structs

from kubectl_qos.edit.edits import Edit, PatchRequest, Side, build_request
from kubectl_qos.edit.preview import Preview, StrategyKind, preview
from kubectl_qos.edit.related import RelatedObjects
from kubectl_qos.edit.server_response import (
    ELIDED,
    ServerRefusal,
    changed_object,
    expected_response,
    quota_pod,
)
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.kinds import pod_from_workload
from kubectl_qos.k8s.kubelet import Kubelet, NodeSetup, node_from_object
from kubectl_qos.k8s.objects import NodeObject, Pod, ResourceList, convert
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.quota import LimitRange, ResourceQuota, charges
from tests.cluster.replay import exchanges, recorded
from tests.qos.corner import one, spec
from tests.qos.recorded import setup_of
from tests.qos.test_resize import edits_of
from tests.recordings.files import read_json

NOT_KNOWABLE: Final = {
    "deployment-apply-conflict-409": "another manager's server-side apply, which we never send",
    "deployment-patch-forbidden-403": "rights are no part of the object",
    "resize-forbidden-403": "rights are no part of the object",
    "patch-wrong-content-type-415": "a request always carries the type of its patch",
    "pod-create-invalid-quantity-400": "an edit holds quantities, not texts",
    "pod-create-already-exists-409": "a manifest takes the place of the pod that it was made from",
}
NODE_NOT_AN_EDIT: Final = {
    "change resizePolicy": "an edit holds requests and limits alone",
    "unknown container": "an edit names a container of its pod",
}


@dataclass(frozen=True, slots=True)
class Case:
    """One recorded exchange with the state before it."""

    name: str
    preview: Preview
    related: RelatedObjects
    kind: StrategyKind
    request: PatchRequest | None
    answer: dict[str, Any]


class World:
    """What a recorded server holds, as far as its answers show."""

    def __init__(self, setup: NodeSetup) -> None:
        self.setup = setup
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        self.ranges: list[LimitRange] = []
        self.quotas: list[ResourceQuota] = []

    def related(self, raw: dict[str, Any]) -> RelatedObjects:
        return RelatedObjects(raw=raw, limit_ranges=tuple(self.ranges), quotas=tuple(self.quotas))

    def learn(self, exchange: dict[str, Any]) -> None:
        body = exchange["response"].get("body")
        if not isinstance(body, dict) or exchange["response"]["status"] >= 300 or "dryRun" in _path(exchange):
            return
        kind = body.get("kind")
        if kind in {"Pod", "Deployment", "Job"}:
            self.objects[kind, body["metadata"]["name"]] = body
        elif kind == "LimitRange":
            self.ranges.append(convert(body, LimitRange))
        elif kind == "ResourceQuotaList":
            self.quotas = [convert(item, ResourceQuota) for item in body["items"]]

    def charge(self, case: Case) -> None:
        """An accepted resize is charged by admission itself, before the quota controller counts again."""
        target = changed_object(case.preview, case.related, case.kind)
        before = quota_pod(target.old, target, self.setup.release)
        after = quota_pod(case.preview.after.pod, target, self.setup.release)
        for charge in list(charges(after, self.quotas, self.setup.release, before)):
            self.quotas = [
                _with_used(quota, charge.resource, charge.used + charge.added)
                if quota.name == charge.quota
                else quota
                for quota in self.quotas
            ]


def _with_used(quota: ResourceQuota, name: str, amount: Quantity) -> ResourceQuota:
    used = ResourceList({**quota.status.used, name: amount})
    return msgspec.structs.replace(quota, status=msgspec.structs.replace(quota.status, used=used))


def _path(exchange: dict[str, Any]) -> str:
    path: str = exchange["request"]["path"]
    return path


def apiserver_cases() -> Iterator[Case]:
    found = recorded("node-get")["response"]["body"]
    world = World(NodeSetup.of(node_from_object(convert(found, NodeObject), Kubelet()), Kubelet(), "1.36"))
    for exchange in exchanges():
        case = _case(exchange, world) if exchange["name"] not in NOT_KNOWABLE else None
        if case is not None:
            yield case
            if (
                case.kind is StrategyKind.IN_PLACE
                and case.answer["status"] == 200
                and "dry" not in _path(exchange)
            ):
                world.charge(case)
        world.learn(exchange)


def _case(exchange: dict[str, Any], world: World) -> Case | None:
    parts = _path(exchange).partition("?")[0].strip("/").split("/")
    method, body = exchange["request"]["method"], exchange["request"].get("body")
    name, answer = exchange["name"], exchange["response"]
    if method == "POST" and parts[-1] == "pods":
        pod = convert(body, Pod)
        return Case(
            name, preview(pod, [], world.setup), world.related(body), StrategyKind.RECREATE, None, answer
        )
    if method != "PATCH":
        return None
    in_place = parts[-1] == "resize"
    plural, named = parts[-3:-1] if in_place else parts[-2:]
    kind = {"pods": "Pod", "deployments": "Deployment", "jobs": "Job"}[plural]
    raw = world.objects.get((kind, named), {})
    if not raw:
        pod = spec("containers: [{name: c0}]")
        pod = msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, name=named))
    else:
        pod = convert(raw, Pod) if kind == "Pod" else pod_from_workload(kind, raw)
    changes = body["spec"] if kind == "Pod" else body["spec"]["template"]["spec"]
    edits = list(edits_of(changes))
    request = build_request(raw, pod, edits, in_place=in_place)
    version = (body.get("metadata") or {}).get("resourceVersion")
    request = structs.replace(request, resource_version=version or "")
    kind = StrategyKind.IN_PLACE if in_place else StrategyKind.TEMPLATE
    return Case(name, preview(pod, edits, world.setup), world.related(raw), kind, request, answer)


def node_cases() -> Iterator[Case]:
    recorded = setup_of("systemd")
    node, kubelet = recorded.node, recorded.kubelet
    setup = NodeSetup.of(node, kubelet, "1.36")
    rounds = read_json("node-1.36/resize-exchanges.json")
    for part in rounds:
        world = World(setup)
        for name, found in part.get("before", {}).items():
            world.objects["Pod", name] = found["pod"]
        for number, exchange in enumerate(part.get("exchanges", ())):
            note = exchange["note"]
            if note not in NODE_NOT_AN_EDIT:
                case = _case({"name": f"{part['round']}-{number}-{note}", **exchange}, world)
                assert case is not None
                yield case
            world.learn(exchange)


def _agrees(found: ServerRefusal | None, answer: dict[str, Any]) -> None:
    if answer["status"] < 300:
        assert found is None
        return
    assert found is not None
    body = answer["body"]
    assert (found.status, found.reason) == (answer["status"], body["reason"])
    before, elided, after = found.message.partition(ELIDED)
    if not elided:
        assert found.message == body["message"]
    assert body["message"].startswith(before)
    assert body["message"].endswith(after)


APISERVER = list(apiserver_cases())
NODE = list(node_cases())


@pytest.mark.parametrize("case", APISERVER, ids=lambda case: case.name)
def test_a_recorded_api_server_answered_so(case: Case) -> None:
    _agrees(expected_response(case.preview, case.related, case.kind, case.request), case.answer)


@pytest.mark.parametrize("case", NODE, ids=lambda case: case.name)
def test_the_server_of_a_recorded_node_answered_so(case: Case) -> None:
    _agrees(expected_response(case.preview, case.related, case.kind, case.request), case.answer)


def test_every_exchange_about_an_edit_is_a_case_or_says_why_not() -> None:
    about = [
        exchange["name"]
        for exchange in exchanges()
        if exchange["request"]["method"] == "PATCH" or exchange["name"].startswith("pod-create")
    ]
    assert sorted([*(case.name for case in APISERVER), *NOT_KNOWABLE]) == sorted(about)
    rounds = read_json("node-1.36/resize-exchanges.json")
    recorded_ = sum(len(part.get("exchanges", ())) for part in rounds)
    assert len(NODE) + len(NODE_NOT_AN_EDIT) == recorded_ == 28
    assert len([case for case in NODE if case.answer["status"] < 300]) == 17


def test_a_container_that_is_not_there_is_no_edit() -> None:
    with pytest.raises(InputError, match="container nope is not valid"):
        preview(
            one(""), [Edit("nope", Side.REQUESTS, "cpu", Quantity.parse("10m"))], NODE[0].preview.before.setup
        )


def test_why_a_resize_was_let_in_although_there_was_a_quota() -> None:
    """It was charged for its growth alone: 644Mi more, of the 784Mi that were left."""
    case = next(case for case in APISERVER if case.name == "resize-quota-exceeded")
    target = changed_object(case.preview, case.related, case.kind)
    release = case.preview.before.setup.release
    old, new = quota_pod(target.old, target, release), quota_pod(case.preview.after.pod, target, release)
    [charge] = charges(new, case.related.quotas, release, old)
    assert (charge.quota, charge.resource) == ("q", "requests.memory")
    assert [str(value) for value in charge[2:]] == ["3312Mi", "644Mi", "4Gi"]
    creation = next(case for case in APISERVER if case.name == "pod-create-quota-exceeded-403")
    used = next(quota for quota in creation.related.quotas if quota.name == "q").status.used
    assert str(used["requests.memory"]) == "3956Mi"


CHANGE: Final = Edit("c1", Side.REQUESTS, "memory", Quantity.parse("2Gi"))


def answer_for(pod: Pod, release: str = "1.36", **gates: bool) -> ServerRefusal | None:
    setup = NodeSetup.of(NODE[0].preview.before.setup.node, Kubelet(feature_gates=gates), release)
    raw = {"kind": "Pod", "metadata": {"name": "p"}, "spec": {}}
    return expected_response(preview(pod, [CHANGE], setup), RelatedObjects(raw=raw), StrategyKind.IN_PLACE)


def test_a_refusal_of_the_whole_pod_has_the_path_that_go_prints_for_none() -> None:
    mirror = spec(
        "nodeName: n, containers: [{name: c1, resources: {requests: {memory: 1Gi}}}]",
        annotations="{kubernetes.io/config.mirror: abc}",
    )
    assert answer_for(mirror) == ServerRefusal(
        422, "Invalid", 'Pod "p" is invalid: []: Forbidden: static pods cannot be resized'
    )


@pytest.mark.parametrize("release", ["1.31", "1.32"])
def test_a_server_that_cannot_resize_does_not_know_the_path(release: str) -> None:
    pod = one("requests: {memory: 1Gi}")
    found = answer_for(pod, release)
    assert found == ServerRefusal(404, "NotFound", "the server could not find the requested resource")
    assert answer_for(pod, "1.32", InPlacePodVerticalScaling=True) is None


def test_several_refusals_are_one_sentence_in_brackets() -> None:
    pod = one("requests: {memory: 1Gi}, limits: {memory: 1Gi, cpu: 1}")
    found = answer_for(pod)
    assert found is not None
    assert found.message == (
        'Pod "p" is invalid: [spec.containers[0].resources.requests: Invalid value: "2Gi": '
        "must be less than or equal to memory limit of 1Gi, "
        'spec: Invalid value: "Guaranteed": Pod QOS Class may not change as a result of resizing]'
    )
