"""Changing a cluster: a dry run first, sent once, recorded before and after; and its progress."""

import json
from dataclasses import replace
from typing import Any

import pytest

from kubectl_qos.cluster.live import LiveSource
from kubectl_qos.cluster.writer import Writer
from kubectl_qos.edit.apply_state import ConflictError
from kubectl_qos.edit.edits import Edit, PatchRequest, Side, build_request
from kubectl_qos.edit.history import Entry, EntryState, undo_edits
from kubectl_qos.edit.related import decode_pod
from kubectl_qos.edit.status import Progress, Stage
from kubectl_qos.errors import ApiError, QosError
from kubectl_qos.k8s.kinds import pod_from_workload
from kubectl_qos.k8s.objects import Pod, convert
from kubectl_qos.k8s.quantity import Quantity
from tests.cluster.changing_server import ChangingServer, Fault, workload
from tests.cluster.cluster_objects import pod
from tests.cluster.conftest import ConnectTo
from tests.cluster.https_server import Answer
from tests.cluster.https_server import Request as Sent
from tests.cluster.replay import answer_of, exchanges, recorded
from tests.cluster.serving import Serve

RESOURCES = {"requests": {"memory": "64Mi"}, "limits": {"memory": "128Mi"}}


class History:
    """A change history in memory: every entry, in order."""

    def __init__(self) -> None:
        self.kept: list[Entry] = []

    def put(self, entry: Entry) -> None:
        self.kept.append(entry)

    def entries(self) -> tuple[Entry, ...]:
        return tuple(self.kept)

    @property
    def states(self) -> list[EntryState]:
        return [entry.state for entry in self.kept]


def memory(text: str | None, side: Side = Side.REQUESTS, owner: str = "app") -> Edit:
    return Edit(owner, side, "memory", None if text is None else Quantity.parse(text))


def deployment(**spec: Any) -> dict[str, Any]:
    return workload("Deployment", "web", RESOURCES, replicas=2, **spec)


def deployment_request(server: ChangingServer, *edits: Edit) -> PatchRequest:
    raw = server.find("Deployment", "web")
    return build_request(raw, pod_from_workload("Deployment", raw), edits or [memory("96Mi")], in_place=False)


def resize_request(server: ChangingServer, *edits: Edit) -> PatchRequest:
    raw = server.find("Pod", "web-1")
    return build_request(raw, convert(raw, Pod), edits or [memory("96Mi")], in_place=True)


def serving(**objects: Any) -> ChangingServer:
    objects = objects or {"workloads": [deployment()], "pods": [pod("web-1", request="64Mi", limit="128Mi")]}
    return ChangingServer(**objects)


def now_in(server: ChangingServer, kind: str, name: str) -> Any:
    spec = server.find(kind, name)["spec"]
    return (spec if kind == "Pod" else spec["template"]["spec"])["containers"][0]["resources"]


def test_a_template_is_tried_and_written(connect_to: ConnectTo) -> None:
    server, history = serving(), History()
    server.warnings = ['would violate \\"restricted\\"', "two"]
    writer = Writer(connect_to(server))
    before = server.find("Deployment", "web")
    dry_run_result = writer.dry_run(deployment_request(server))
    assert server.find("Deployment", "web") == before
    assert dry_run_result.warnings == ('would violate "restricted"', "two")
    assert dry_run_result.stored == (memory("96Mi"),)
    assert dry_run_result.raw["metadata"]["generation"] == 2
    written = writer.apply(dry_run_result, history)
    assert now_in(server, "Deployment", "web")["requests"] == {"memory": "96Mi"}
    assert written.raw == server.find("Deployment", "web")
    assert history.states == [EntryState.SENT, EntryState.ACCEPTED]
    assert written.entry == history.kept[-1]
    entry = written.entry
    assert (entry.context, entry.server) == (writer.context, writer.server)
    assert (entry.kind, entry.namespace, entry.name, entry.subresource) == ("Deployment", "shop", "web", "")
    assert (entry.before, entry.after) == ((memory("64Mi"),), (memory("96Mi"),))
    assert history.kept[0] == replace(entry, state=EntryState.SENT)
    dry, real = server.patches
    assert dry.query == {"dryRun": "All", "fieldManager": "kubectl-qos", "fieldValidation": "Strict"}
    assert real.query == {"fieldManager": "kubectl-qos", "fieldValidation": "Strict"}
    assert dry.body == real.body
    assert json.loads(real.body) == {
        "metadata": {"uid": "uid-of-web", "resourceVersion": "500"},
        "spec": {
            "template": {
                "spec": {"containers": [{"name": "app", "resources": {"requests": {"memory": "96Mi"}}}]}
            }
        },
    }


def test_a_pod_is_resized(connect_to: ConnectTo) -> None:
    server, history = serving(), History()
    writer = Writer(connect_to(server))
    written = writer.apply(writer.dry_run(resize_request(server)), history, undoes="earlier")
    assert {request.path for request in server.patches} == {"/api/v1/namespaces/shop/pods/web-1/resize"}
    assert now_in(server, "Pod", "web-1") == {"requests": {"memory": "96Mi"}, "limits": {"memory": "128Mi"}}
    assert (written.entry.subresource, written.entry.undoes) == ("resize", "earlier")
    assert writer.progress(written, history).stage is Stage.WAITING
    assert history.kept[-1] == written.entry
    server.delete("Pod", "web-1")
    assert writer.progress(written, history).stage is Stage.GONE
    assert (history.states[-1], history.kept[-1].message) == (
        EntryState.ACCEPTED,
        "gone: pod/web-1 no longer exists",
    )


def test_a_change_is_recorded_as_done_once_it_was_seen_to_be(
    connect_to: ConnectTo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R2: the server stores a limit that the kubelet refuses; that is accepted, not done."""
    server, history = serving(), History()
    writer = Writer(connect_to(server))
    written = writer.apply(writer.dry_run(resize_request(server)), history)
    steps = [(Progress(Stage.ERROR, False), 2), (Progress(Stage.DONE, True), 3)]
    for progress, length in steps:
        monkeypatch.setattr("kubectl_qos.cluster.writer.check_progress", lambda *_, found=progress: found)
        writer.progress(written, history)
        assert len(history.states) == length
    assert history.states == [EntryState.SENT, EntryState.ACCEPTED, EntryState.DONE]
    assert [entry.is_stored for entry in history.kept] == [False, True, True]


def test_a_rollout_says_why_its_pods_have_no_node(connect_to: ConnectTo) -> None:
    """The reason is that of pods with the new values; without the right to list pods there is none."""
    server, history = serving(workloads=[deployment()], pods=[]), History()
    writer = Writer(connect_to(server))
    written = writer.apply(writer.dry_run(deployment_request(server)), history)
    server.edit(
        "Deployment", "web", {"status": {"observedGeneration": 9, "updatedReplicas": 1, "replicas": 3}}
    )
    waiting = "waiting: 1 out of 2 new replicas have been updated"
    assert writer.progress(written, history).message == waiting
    why = {
        "type": "PodScheduled",
        "status": "False",
        "message": "0/3 nodes are available: 3 Insufficient memory.",
    }
    for name, request, node in (("old", "64Mi", ""), ("new", "96Mi", ""), ("placed", "96Mi", "worker-1")):
        raw = pod(name, request=request, node=node)
        raw["status"] = {"phase": "Pending", "conditions": [why] if not node else []}
        server.pods.append(raw)
    assert writer.progress(written, history).message == f"{waiting}; new has no node: {why['message']}"
    server.forbidden = {"/api/v1/namespaces/shop/pods"}
    assert writer.progress(written, history).message == waiting


def test_who_has_changed_it_again(connect_to: ConnectTo) -> None:
    """An undo of ours is no change of someone else; one that was refused has changed nothing."""
    server, history = serving(), History()
    writer = Writer(connect_to(server))
    written = writer.apply(writer.dry_run(resize_request(server)), history)
    undo = writer.dry_run(resize_request(server, memory("64Mi")))
    undone = writer.apply(undo, History(), undoes=written.entry.id).entry
    for state, stage in (
        (EntryState.REFUSED, Stage.OVERTAKEN),
        (EntryState.SENT, Stage.REVERTING),
        (EntryState.ACCEPTED, Stage.REVERTING),
        (EntryState.DONE, Stage.UNDONE),
    ):
        length = len(history.kept)
        history.put(replace(undone, state=state))
        assert writer.progress(written, history) == Progress(stage, settled=True)
        assert len(history.kept) == length + 1 + (stage is Stage.OVERTAKEN)


def test_each_entry_sorts_after_the_one_before(connect_to: ConnectTo) -> None:
    server, history = serving(), History()
    writer = Writer(connect_to(server))
    for text in ("65Mi", "66Mi", "67Mi"):
        writer.apply(writer.dry_run(resize_request(server, memory(text))), history)
    ids = list(dict.fromkeys(entry.id for entry in history.kept))
    assert ids == sorted(ids)
    assert len(ids) == 3


def test_an_object_that_changed_elsewhere_is_tried_as_it_is_now(connect_to: ConnectTo) -> None:
    server = serving()
    writer = Writer(connect_to(server))
    request = deployment_request(server)
    server.edit("Deployment", "web", {"spec": {"replicas": 5}})
    dry_run_result = writer.dry_run(request)
    assert (
        dry_run_result.request.resource_version
        == server.find("Deployment", "web")["metadata"]["resourceVersion"]
    )
    assert dry_run_result.request.resource_version != request.resource_version
    writer.apply(dry_run_result, History())
    assert server.find("Deployment", "web")["spec"]["replicas"] == 5


def test_values_that_somebody_changed_are_a_conflict(connect_to: ConnectTo) -> None:
    server = serving()
    writer = Writer(connect_to(server))
    request = resize_request(server)
    server.edit("Pod", "web-1", {"spec": {"containers": [{"name": "app", **_requests("80Mi")}]}})
    with pytest.raises(ConflictError, match="pod/web-1 was changed by someone else") as caught:
        writer.dry_run(request)
    (conflict,) = caught.value.conflicts
    assert list(map(str, (conflict.before, conflict.ours, conflict.theirs))) == ["64Mi", "96Mi", "80Mi"]
    assert server.patches == []


def test_another_object_of_that_name_is_not_meant(connect_to: ConnectTo) -> None:
    server = serving()
    writer = Writer(connect_to(server))
    request = deployment_request(server)
    server.recreate("Deployment", "web")
    with pytest.raises(ConflictError, match="another object now: it was deleted and recreated") as caught:
        writer.dry_run(request)
    assert caught.value.conflicts == ()
    assert server.patches == []


def test_what_the_server_makes_of_the_values_is_reported(connect_to: ConnectTo) -> None:
    server, history = serving(), History()

    def webhook(raw: dict[str, Any]) -> None:
        raw["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["memory"] = "100Mi"

    server.mutate = webhook
    writer = Writer(connect_to(server))
    dry_run_result = writer.dry_run(deployment_request(server))
    assert dry_run_result.stored == (memory("100Mi"),)
    written = writer.apply(dry_run_result, history)
    assert [entry.after for entry in history.kept] == [(memory("96Mi"),), (memory("100Mi"),)]
    raw = server.find("Deployment", "web")
    assert undo_edits(written.entry, decode_pod(written.request.kind, raw)) == (memory("64Mi"),)


def test_a_removed_request_is_the_limit(connect_to: ConnectTo) -> None:
    server, history = serving(), History()
    writer = Writer(connect_to(server))
    dry_run_result = writer.dry_run(resize_request(server, memory(None)))
    assert dry_run_result.stored == (memory("128Mi"),)
    writer.apply(dry_run_result, history)
    assert history.kept[-1].after == (memory("128Mi"),)


def test_a_refused_dry_run_has_no_result(connect_to: ConnectTo) -> None:
    server = serving()
    writer = Writer(connect_to(server))
    request = resize_request(server, memory(None, Side.LIMITS))
    with pytest.raises(ApiError, match="resource limits cannot be removed") as caught:
        writer.dry_run(request)
    assert (caught.value.status, caught.value.reason) == (422, "Invalid")
    assert len(server.patches) == 1


def test_a_viewer_writes_nothing(connect_to: ConnectTo) -> None:
    server = serving()
    writer = Writer(connect_to(server, user={"token": "viewer"}))
    with pytest.raises(ApiError, match='User "viewer" cannot patch resource "pods/resize"') as caught:
        writer.dry_run(resize_request(server))
    assert caught.value.status == 403


def test_a_dry_run_that_is_done_for_real_is_reported(connect_to: ConnectTo) -> None:
    server = serving()
    server.ignores_dry_run = True
    writer = Writer(connect_to(server))
    with pytest.raises(QosError, match="the server ignored dryRun: deployment/web has changed"):
        writer.dry_run(deployment_request(server))
    assert len(server.patches) == 1


def test_in_read_only_mode_there_is_no_writer(connect_to: ConnectTo) -> None:
    connection = connect_to(serving())
    with pytest.raises(QosError, match="nothing is written: test is read-only here"):
        LiveSource(connection).writer()
    assert LiveSource(connection, may_write=True).writer().context == "test"


def _requests(text: str) -> dict[str, Any]:
    return {"resources": {"requests": {"memory": text}}}


REFUSED = [
    found["name"]
    for found in exchanges()
    if found["request"]["method"] == "PATCH" and found["response"]["status"] >= 400
]


@pytest.mark.parametrize("name", REFUSED)
def test_recorded_refusals_in_kubectls_words(serve: Serve, connect_to: ConnectTo, name: str) -> None:
    exchange = recorded(name)
    server = serving()
    history = History()
    running = serve(server)
    writer = Writer(connect_to(running))
    dry_run_result = writer.dry_run(resize_request(server))
    server.fault = lambda _: Fault(applies=False, answer=answer_of(exchange))
    body = exchange["response"]["body"]
    said = f"Error from server ({body['reason']}): {body['message']}"
    with pytest.raises(ApiError) as refused:
        writer.dry_run(resize_request(server))
    assert (str(refused.value), refused.value.status) == (said, body["code"])
    with pytest.raises(ApiError) as refused:
        writer.apply(dry_run_result, history)
    assert (str(refused.value), refused.value.reason) == (said, body["reason"])
    assert history.states == [EntryState.SENT, EntryState.REFUSED]
    assert history.kept[-1].message == said
    assert now_in(server, "Pod", "web-1")["requests"] == {"memory": "64Mi"}


@pytest.mark.parametrize(
    "name", ["deployment-patch-dryrun", "deployment-patch", "resize-ok", "resize-sidecar"]
)
def test_recorded_successes(connect_to: ConnectTo, name: str) -> None:
    """The recorded object, the recorded answer; a dry run's answer has the version that was read."""
    exchange = recorded(name)
    after = exchange["response"]["body"]
    is_pod = after["kind"] == "Pod"
    patch = exchange["request"]["body"]
    spec = patch["spec"] if is_pod else patch["spec"]["template"]["spec"]
    edits = [
        Edit(container["name"], Side(side), resource, Quantity.parse(value))
        for key in ("containers", "initContainers")
        for container in spec.get(key, ())
        for side, values in container["resources"].items()
        for resource, value in values.items()
    ]
    before = recorded(
        "pod-create-sidecar" if "sidecar" in name else "pod-get" if is_pod else "deployment-get"
    )
    held = before["response"]["body"]

    def answer(request: Sent) -> Answer:
        if request.method == "GET":
            return answer_of(before)
        body = dict(after)
        if "dryRun" in request.query:
            version = held["metadata"]["resourceVersion"]
            body["metadata"] = after["metadata"] | {"resourceVersion": version}
        return Answer(200, json.dumps(body).encode())

    writer = Writer(connect_to(answer))
    pod_now = convert(held, Pod) if is_pod else pod_from_workload("Deployment", held)
    request = build_request(held, pod_now, edits, in_place=is_pod)
    assert request.patch == patch
    assert request.path == exchange["request"]["path"].partition("?")[0]
    dry_run_result = writer.dry_run(request)
    assert dry_run_result.stored == tuple(edits)
    history = History()
    assert writer.apply(dry_run_result, history).raw == after
    assert history.states == [EntryState.SENT, EntryState.ACCEPTED]


def test_the_recorded_dry_run_has_the_version_that_was_read() -> None:
    read = recorded("deployment-get")["response"]["body"]["metadata"]
    tried = recorded("deployment-patch-dryrun")["response"]["body"]["metadata"]
    assert read["resourceVersion"] == tried["resourceVersion"]
    assert read["generation"] + 1 == tried["generation"]
