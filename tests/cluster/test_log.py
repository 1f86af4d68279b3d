"""The log of a container that has died: what is requested, and what is said where that is refused."""

import pytest

from kubectl_qos.cluster.live import LiveSource
from kubectl_qos.errors import ApiError
from kubectl_qos.k8s.objects import ObjectMeta, Pod
from tests.cluster.conftest import ConnectTo
from tests.cluster.https_server import Answer, Request
from tests.cluster.object_server import status

POD = Pod(metadata=ObjectMeta(name="web-0", namespace="shop"))


@pytest.mark.parametrize("is_previous", [True, False])
def test_it_is_what_kubectl_logs_requests(connect_to: ConnectTo, is_previous: bool) -> None:
    requests: list[Request] = []

    def answer(request: Request) -> Answer:
        requests.append(request)
        return Answer(body=b"starting\nfull \xff", headers={"Content-Type": "text/plain"})

    source = LiveSource(connect_to(answer))
    assert source.log(POD, "app", is_previous=is_previous) == "starting\nfull \ufffd"
    (request,) = requests
    assert request.method == "GET"
    assert request.path == "/api/v1/namespaces/shop/pods/web-0/log"
    wanted = {"container": "app", "tailLines": "200", "limitBytes": "1048576"}
    assert request.query == wanted | ({"previous": "true"} if is_previous else {})


def test_without_the_right_it_is_named(connect_to: ConnectTo) -> None:
    source = LiveSource(connect_to(lambda _: status(403, "Forbidden", "no logs for you")))
    with pytest.raises(ApiError, match="no logs for you") as raised:
        source.log(POD, "app", is_previous=True)
    assert raised.value.hint == "grant get on pods/log in the namespace shop, as docs/rbac/logs.yaml does"
