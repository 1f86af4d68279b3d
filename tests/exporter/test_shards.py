"""A shard of a live cluster holds the pods, nodes and usage of its nodes alone."""

import pytest

from kubectl_qos.cluster.usage import UsageChoice
from kubectl_qos.k8s.snapshot import Scope, Shard
from tests.cluster.cluster_objects import metrics, node, pod
from tests.cluster.following import Follow, follow, has, held, names
from tests.cluster.serving import authority, connect_to, own_home, serve
from tests.cluster.watch_server import WatchServer

__all__ = ["authority", "connect_to", "follow", "own_home", "serve"]
NODES = [f"worker-{number}" for number in range(8)]


@pytest.mark.parametrize("streams", [True, False], ids=["streaming", "plain"])
def test_it_follows_its_nodes_and_no_others(follow: Follow, streams: bool) -> None:
    shard = Shard(0, 2)
    mine = [name for name in NODES if shard.has(name)]
    others = [name for name in NODES if not shard.has(name)]
    assert mine
    assert others
    objects = WatchServer(
        streams=streams,
        pods=[pod(f"on-{name}", node=name) for name in NODES],
        nodes=[node(name) for name in NODES],
        metrics=[metrics(f"on-{name}", "1Mi") for name in NODES],
    )
    followed, _ = follow(objects, Scope(shard=shard), usage=UsageChoice.METRICS)
    first = sorted(f"on-{name}" for name in mine)
    update = followed.until(lambda update: has(*first)(update) and bool(held(update).usage))
    assert sorted(held(update).nodes) == mine
    assert sorted(name for _, name in held(update).usage) == first
    objects.put(pod("late", node=others[0]))
    objects.put(pod("early", node=""))
    objects.put(pod("later", node=mine[0]))
    followed.until(has(*first, "later"))
    seen = [set(names(one)) for one in followed.updates if one.snapshot is not None]
    assert not any({"late", "early"} & one for one in seen)
