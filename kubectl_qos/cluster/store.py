"""What is held of a cluster that is followed: the one mutable state, filled by watches, read in snapshots.

A snapshot is consistent: it is made under the lock that every change is made under, and what did not change
since the snapshot before is the very same object in both.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from typing import Final

from kubectl_qos.errors import ApiError, QosError
from kubectl_qos.k8s.kubelet import Kubelet
from kubectl_qos.k8s.objects import NodeObject, Pod
from kubectl_qos.k8s.snapshot import Missing, NodeOverrides, PodsByNode, Snapshot
from kubectl_qos.k8s.usage import PodKey, PodUsage

PODS: Final = "pods"
NODES: Final = "nodes"
_WAIT_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class Health:
    """How what is shown relates to what is: live without an error, else stale since a moment.

    `retry_at` is when the server is asked again, by the monotonic clock.
    """

    error: QosError | None = None
    since: datetime | None = None
    retry_at: float = 0.0


LIVE: Final = Health()


@dataclass(slots=True)
class _WatchState:
    """How one of the watches stands; `dispensable` where the rest is said without it."""

    listed: bool = False
    dispensable: bool = False
    health: Health = LIVE


@dataclass(slots=True)
class _ClusterFacts:
    """Facts that come with every snapshot, each replaced as a whole."""

    usage: Mapping[PodKey, PodUsage] = field(default_factory=dict)
    kubelets: Mapping[str, Kubelet] = field(default_factory=dict)
    missing: dict[str, Missing] = field(default_factory=dict)
    server_version: str = ""


class Store:
    """Pods by node, nodes, and everything else that a snapshot is made of."""

    def __init__(self, known: NodeOverrides, now: Callable[[], datetime]) -> None:
        self._known = known
        self._now = now
        self._changed = threading.Condition()
        self._version = 0
        self._pods: dict[str, dict[PodKey, Pod]] = {}
        self._in_order: dict[str, tuple[Pod, ...]] = {}
        self._nodes: dict[str, NodeObject] = {}
        self._facts = _ClusterFacts()
        self._links = {PODS: _WatchState(), NODES: _WatchState()}
        self._refused: ApiError | None = None

    def wait(self, version: int, timeout: float | None = None) -> int:
        """The version that there is, once it is newer than the given one or after `timeout` seconds."""
        end = time.monotonic() + timeout if timeout is not None else math.inf
        with self._changed:
            # In pieces: a signal that comes just before a wait begins does not end it.
            while self._version <= version and (left := end - time.monotonic()) > 0:
                self._changed.wait(min(left, _WAIT_SECONDS))
            return self._version

    def snapshot(self) -> Snapshot:
        """Everything as it is held now."""
        with self._changed:
            for name in [name for name in self._pods if name not in self._in_order]:
                held = self._pods[name]
                if held:
                    self._in_order[name] = tuple(held.values())
                else:
                    del self._pods[name]
            facts = self._facts
            return Snapshot(
                pods=PodsByNode(dict(self._in_order)),
                nodes=dict(self._nodes),
                usage=facts.usage,
                kubelets=facts.kubelets,
                missing=tuple(facts.missing.values()),
                overrides=self._known,
                server_version=facts.server_version,
            )

    def health(self) -> Health:
        """The worst of the watches."""
        with self._changed:
            ailing = [link.health for link in self._links.values() if link.health.error is not None]
            return min(ailing, key=lambda health: health.since or self._now(), default=LIVE)

    def is_complete(self) -> bool:
        """Whether everything that is watched, and cannot be done without, has been listed."""
        with self._changed:
            return all(link.listed or link.dispensable for link in self._links.values())

    def is_listed(self, link: str) -> bool:
        """Whether a watch has brought all there is, or never will."""
        with self._changed:
            return self._links[link].listed

    def does_without(self, link: str) -> bool:
        """Whether the rest is said without a watch that has not brought anything yet."""
        with self._changed:
            return self._links[link].dispensable

    def do_without(self, link: str, missing: Missing) -> None:
        """Until a watch brings something, say the rest without it."""
        with self._changed:
            self._links[link].dispensable = True
            self._note(link, missing)
            self._tell()

    def refusal(self) -> ApiError | None:
        """Why no pod may be listed at all."""
        with self._changed:
            return self._refused

    def poke(self) -> None:
        """Let whoever waits look again."""
        with self._changed:
            self._tell()

    def set_usage(self, usage: Mapping[PodKey, PodUsage], missing: Missing | None) -> None:
        """Usage, measured anew; where some of it is missing, what was measured before stands in for it."""
        with self._changed:
            if missing is not None:
                before = self._usage_of_pods()
                if before and not usage:
                    missing = Missing("newer memory usage", missing.why)
                usage = {**before, **usage}
            self._facts.usage = usage
            self._note("usage", missing)
            self._tell()

    def set_kubelets(self, kubelets: Mapping[str, Kubelet]) -> None:
        """What kubelets are configured with."""
        with self._changed:
            if kubelets != self._facts.kubelets:
                self._facts.kubelets = kubelets
                self._tell()

    def set_server_version(self, version: str) -> None:
        """What stands in for the kubelets' releases where no node is known."""
        with self._changed:
            self._facts.server_version = version

    def nodes(self) -> Mapping[str, NodeObject]:
        """The nodes that are known."""
        with self._changed:
            return dict(self._nodes)

    def note(self, subject: str, missing: Missing | None) -> None:
        """Something that cannot be known, or can be again."""
        with self._changed:
            self._note(subject, missing)
            self._tell()

    def replace_pods(self, pods: Iterable[Pod]) -> None:
        """These are all pods there are; nodes whose pods are the same stay as they are."""
        found: dict[str, dict[PodKey, Pod]] = {}
        for pod in pods:
            found.setdefault(pod.node_name, {})[_key(pod)] = pod
        with self._changed:
            for name, held in found.items():
                if held == self._pods.get(name):
                    found[name] = self._pods[name]
                else:
                    self._in_order.pop(name, None)
            for name in self._pods.keys() - found.keys():
                self._in_order.pop(name, None)
            self._pods = found
            self._tell()

    def put_pod(self, pod: Pod) -> None:
        """A pod is new or has changed, or has come to a node; the same facts change nothing."""
        with self._changed:
            held = self._pods.setdefault(pod.node_name, {})
            key = _key(pod)
            if held.get(key) == pod:
                return
            if key not in held:
                self._remove(key, "")
            held[key] = pod
            self._in_order.pop(pod.node_name, None)
            self._tell()

    def drop_pod(self, pod: Pod) -> None:
        """A pod is gone, wherever it was held."""
        with self._changed:
            if self._remove(_key(pod), pod.node_name):
                self._tell()

    def replace_nodes(self, nodes: Iterable[NodeObject]) -> None:
        """These are all nodes there are."""
        with self._changed:
            before = self._nodes
            found = {node.name: node for node in nodes}
            self._nodes = {
                name: before[name] if before.get(name) == node else node for name, node in found.items()
            }
            self._tell()

    def put_node(self, node: NodeObject) -> None:
        """A node is new or has changed."""
        with self._changed:
            if self._nodes.get(node.name) != node:
                self._nodes[node.name] = node
                self._tell()

    def drop_node(self, node: NodeObject) -> None:
        """A node is gone."""
        with self._changed:
            if self._nodes.pop(node.name, None) is not None:
                self._tell()

    def in_step(self, link: str) -> None:
        """A watch has everything that the server has."""
        with self._changed:
            found = self._links[link]
            if not found.listed or found.health is not LIVE:
                found.listed, found.health = True, LIVE
                self._tell()

    def out_of_step(self, link: str, error: QosError, retry_seconds: float) -> None:
        """A watch has lost the server; what it brought stays."""
        with self._changed:
            found = self._links[link]
            since = found.health.since or self._now()
            found.health = Health(error, since, time.monotonic() + retry_seconds)
            self._tell()

    def refuse(self, link: str, error: ApiError, missing: Missing | None) -> None:
        """A watch will never bring anything: without pods nothing can be said, without others less."""
        with self._changed:
            self._links[link] = _WatchState(listed=True)
            self._note(link, missing)
            if missing is None:
                self._refused = error
            self._tell()

    def _remove(self, key: PodKey, node: str) -> bool:
        """Forget a pod, which is at this node most of the time."""
        for name in chain((node,), self._pods):
            if self._pods.get(name, {}).pop(key, None) is not None:
                self._in_order.pop(name, None)
                return True
        return False

    def _usage_of_pods(self) -> Mapping[PodKey, PodUsage]:
        """What is known of the usage of pods that are held."""
        known = self._facts.usage
        return {key: known[key] for held in self._pods.values() for key in held.keys() & known.keys()}

    def _note(self, subject: str, missing: Missing | None) -> None:
        if missing is None:
            self._facts.missing.pop(subject, None)
        else:
            self._facts.missing[subject] = missing

    def _tell(self) -> None:
        self._version += 1
        self._changed.notify_all()


def _key(pod: Pod) -> PodKey:
    return pod.metadata.namespace, pod.metadata.name
