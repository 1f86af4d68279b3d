"""Rights as the server judges them; and that the table of tiers is what the program asks of a cluster."""

import itertools
import re
import threading
from collections import Counter
from contextlib import suppress

import pytest

from kubectl_qos.cluster.exec import read_container
from kubectl_qos.cluster.kube_api import REVIEWS_AT_ONCE, UsageChoice, review_access
from kubectl_qos.cluster.live import LiveSource
from kubectl_qos.edit.edits import build_request
from kubectl_qos.errors import ApiError, QosError, ServerUnreachable
from kubectl_qos.k8s.kinds import WORKLOADS, api_path
from kubectl_qos.k8s.rbac import PERMISSIONS, TIERS, AccessLevel, AccessReview, Permission
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.transport.client import REVIEWS
from tests.cluster.cluster_objects import node, pod
from tests.cluster.conftest import ConnectTo
from tests.cluster.https_server import Answer, Request
from tests.cluster.object_server import ObjectServer, status
from tests.cluster.replay import Replay
from tests.cluster.reviewer import READER, Reviewer, review, reviewed_right
from tests.cluster.serving import Serve

RESIZE = Permission("patch", "pods", subresource="resize")
NAMESPACE = TIERS[0]
NO_REVIEWS = "selfsubjectaccessreviews.authorization.k8s.io is forbidden"


def allowed(reviews: dict[Permission, AccessReview]) -> set[Permission]:
    return {right for right, review in reviews.items() if review.allowed}


@pytest.mark.parametrize(("token", "expected"), [("admin", True), ("viewer", False)])
def test_a_recorded_review(connect_to: ConnectTo, token: str, expected: bool) -> None:
    connection = connect_to(Replay(), user={"token": token})
    assert review_access(connection, [RESIZE], "rec") == {RESIZE: AccessReview(expected)}


def test_only_what_is_allowed_is(connect_to: ConnectTo) -> None:
    reviewer = Reviewer([*READER, "get nodes/proxy", "list pods.metrics.k8s.io in shop"])
    reviews = review_access(connect_to(reviewer), PERMISSIONS, "shop")
    assert reviews.keys() == set(PERMISSIONS)
    assert all(review.allowed is not None for review in reviews.values())
    assert {f"{right.verb} {right.target} {right.scope.name}" for right in allowed(reviews)} == {
        "get pods NAMESPACE",
        "list pods NAMESPACE",
        "watch pods NAMESPACE",
        "list pods.metrics.k8s.io NAMESPACE",
        "get nodes/proxy CLUSTER",
    }
    granted = {tier.name: tier.level(reviews) for tier in TIERS}
    assert granted.pop("namespace") is granted.pop("kubelet") is AccessLevel.YES
    assert granted.pop("metrics") is AccessLevel.PARTLY
    assert set(granted.values()) == {AccessLevel.NO}


def test_each_right_is_reviewed_once(serve: Serve, connect_to: ConnectTo) -> None:
    server = serve(Reviewer())
    connection = connect_to(server)
    review_access(connection, PERMISSIONS, "shop")
    counts = Counter(map(reviewed_right, server.requests))
    assert set(counts.values()) == {1}
    assert len(counts) == len(PERMISSIONS)
    server.requests.clear()
    review_access(connection, PERMISSIONS, None)
    everywhere = list(map(reviewed_right, server.requests))
    assert not any(" in " in right for right in everywhere)
    assert sorted(everywhere) == sorted({right.removesuffix(" in shop") for right in counts})


def test_a_few_are_requested_at_a_time(serve: Serve, connect_to: ConnectTo) -> None:
    together = threading.Barrier(REVIEWS_AT_ONCE)
    numbers = itertools.count()

    def slow(request: Request) -> Answer:
        if 1 <= next(numbers) <= REVIEWS_AT_ONCE:  # the first one is asked alone
            together.wait(120)
        return review(allowed=True)

    server = serve(slow)
    reviews = review_access(connect_to(server), PERMISSIONS, "shop")
    assert allowed(reviews) == set(PERMISSIONS)
    assert not together.broken, "as many as may be are asked at the same time"
    assert server.connections <= REVIEWS_AT_ONCE


def test_without_a_watch_the_first_tier_still_works(connect_to: ConnectTo) -> None:
    for rights, works in ((READER, True), (READER[:2], True), (READER[:1], False), (READER[1:], False)):
        reviews = review_access(connect_to(Reviewer(rights)), NAMESPACE.permissions, "shop")
        assert NAMESPACE.works(reviews) is works
        assert NAMESPACE.level(reviews) is (AccessLevel.YES if rights == READER else AccessLevel.PARTLY)


def test_the_reasons_of_the_server_are_kept(connect_to: ConnectTo) -> None:
    said = {"reason": 'RBAC: allowed by RoleBinding "x"', "evaluationError": 'role "y" not found'}
    reviews = review_access(connect_to(Reviewer(**said)), [RESIZE], "shop")
    assert reviews == {RESIZE: AccessReview(False, 'RBAC: allowed by RoleBinding "x"; role "y" not found')}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (status(403, "Forbidden", NO_REVIEWS), f"Error from server (Forbidden): {NO_REVIEWS}"),
        (
            Answer(404, b"404 page not found\n", "text/plain"),
            "Error from server (NotFound): the server could not find the requested resource",
        ),
        (Answer(200, b"<html>", "text/html"), "the server's answer for the access review cannot be read"),
        (Answer(200, b"{}"), "the server's answer for the access review cannot be read"),
        (review(), "the server's answer for the access review cannot be read"),
        (review(allowed="yes"), "the server's answer for the access review cannot be read"),
    ],
    ids=["forbidden", "none such", "html", "empty", "no decision", "no boolean"],
)
def test_a_review_that_fails_at_first_is_not_tried_for_each_right(
    serve: Serve, connect_to: ConnectTo, answer: Answer, reason: str
) -> None:
    server = serve(lambda _: answer)
    reviews = review_access(connect_to(server), PERMISSIONS, "shop")
    assert len(server.requests) == 1
    assert reviews.keys() == set(PERMISSIONS)
    assert {review.allowed for review in reviews.values()} == {None}
    assert all(review.reason.startswith(reason) for review in reviews.values())
    assert {tier.level(reviews) for tier in TIERS} == {AccessLevel.UNKNOWN}
    assert not NAMESPACE.works(reviews)


def test_a_review_that_fails_later_is_unknown_alone(connect_to: ConnectTo) -> None:
    reviewer = Reviewer(READER)
    reviewer.faults["watch nodes"] = status(500, "InternalError", "no authorizer")
    reviewer.faults["get nodes/proxy"] = Answer(201, b'{"status": ', promised_bytes=400)
    reviews = review_access(connect_to(reviewer), PERMISSIONS, "shop")
    unknown = {right.target: review for right, review in reviews.items() if review.allowed is None}
    assert unknown == {
        "nodes": AccessReview(None, "Error from server (InternalError): no authorizer"),
        "nodes/proxy": AccessReview(None, "Unable to connect to the server: unexpected EOF"),
    }
    assert [tier.level(reviews) for tier in TIERS if tier.name in {"nodes", "kubelet"}] == [
        AccessLevel.UNKNOWN
    ] * 2


def test_a_busy_server_is_retried(serve: Serve, connect_to: ConnectTo) -> None:
    answers = [Answer(429, headers={"Retry-After": "0"}), Answer(503, headers={"Retry-After": "0"})]
    server = serve(lambda _: answers.pop() if answers else review(allowed=True))
    assert review_access(connect_to(server), [RESIZE], "shop") == {RESIZE: AccessReview(True)}
    assert len(server.requests) == 3
    assert len({request.body for request in server.requests}) == 1


def test_who_is_not_known_has_no_table(serve: Serve, connect_to: ConnectTo) -> None:
    server = serve(Replay())
    with pytest.raises(ApiError, match="You must be logged in"):
        review_access(connect_to(server, user={"token": "expired"}), PERMISSIONS, "shop")
    assert len(server.requests) == 1


def test_a_server_that_is_gone_has_no_table(connect_to: ConnectTo) -> None:
    with pytest.raises(ServerUnreachable, match="was refused"):
        review_access(connect_to("https://127.0.0.1:1"), PERMISSIONS, "shop")


def test_every_kind_with_pods_is_in_the_tier_of_workloads() -> None:
    (workloads,) = (tier for tier in TIERS if tier.name == "workloads")
    groups = {"/api/v1": "", "/apis/apps/v1": "apps", "/apis/batch/v1": "batch"}
    wanted = {Permission("get", f"{kind.lower()}s", groups[found.group]) for kind, found in WORKLOADS.items()}
    assert set(workloads.permissions) == wanted


_PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/v[^/]+/(?:namespaces/[^/]+/)?"
    r"(?P<resource>[^/]+)(?:/(?P<name>[^/]+)(?:/(?P<subresource>[^/]+))?)?"
)


def used_right(request: Request) -> str:
    match = _PATH.match(request.path)
    assert match is not None, request.path
    verb = {"PATCH": "patch", "GET": "get"}[request.method]
    if not match["name"]:
        verb = "watch" if "watch" in request.query else "list"
    return (
        f"{verb} {Permission('', match['resource'], match['group'] or '', match['subresource'] or '').target}"
    )


@pytest.mark.parametrize("count", [1, 9], ids=["one node", "more nodes than are asked one by one"])
def test_every_request_of_the_program_is_in_a_tier(serve: Serve, connect_to: ConnectTo, count: int) -> None:
    names = [f"worker-{number}" for number in range(count)]
    objects = ObjectServer(
        pods=[pod(f"of-{name}", node=name) for name in names],
        nodes=[node(name) for name in names],
        metrics=[],
    )
    objects.others = {
        api_path(kind, "shop", "x"): {
            "kind": kind,
            "metadata": {"name": "x", "namespace": "shop"},
            "spec": {},
        }
        for kind in WORKLOADS
    }
    server = serve(objects)
    connection = connect_to(server)
    for usage in UsageChoice:
        source = LiveSource(connection, usage=usage)
        for scope in (Scope(), Scope(namespace="shop"), Scope(node="worker-0")):
            for found in source.snapshot(scope).pods:
                source.raw(found)
                with suppress(ApiError):
                    source.events(found)
                with suppress(QosError):
                    source.related(found)
    writer = LiveSource(connection, may_write=True).writer()
    for kind in WORKLOADS:
        found = source.find(kind, "shop", "x")
        with suppress(QosError):
            writer.dry_run(build_request(source.raw(found), found, (), in_place=False))
    of_worker = source.find("Pod", "shop", "of-worker-0")
    with suppress(QosError):
        writer.dry_run(build_request(source.raw(of_worker), of_worker, (), in_place=True))
    with suppress(QosError):
        read_container(connection, "shop", "of-worker-0", "app")
    used = {used_right(request) for request in server.requests if request.path != "/version"}
    assert "get pods/exec" in used
    assert len(used) > 24
    # Of a Job nobody is granted it: no strategy (edit/strategy.py) changes its template.
    assert used - {"patch jobs.batch"} <= {f"{right.verb} {right.target}" for right in PERMISSIONS}
    assert REVIEWS not in server.paths()
