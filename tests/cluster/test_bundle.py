"""Bundles: that nothing secret is in one, whose bytes they are, and what is said of bad ones."""

import gzip
import io
import json
import re
import tarfile
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs

from kubectl_qos.cluster import bundle, files
from kubectl_qos.cluster.bundle import REDACTED, BundleSource, collect, write_bundle
from kubectl_qos.cluster.files import FileSource
from kubectl_qos.errors import InputError
from kubectl_qos.host.kernel_log import read_log
from kubectl_qos.k8s.interning import Interner
from kubectl_qos.k8s.kinds import find_workload
from kubectl_qos.k8s.kubelet import Kubelet, kubelet_from_configz
from kubectl_qos.k8s.node_overrides import NodeOverride
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.selectors import Selector
from kubectl_qos.k8s.snapshot import Missing, NodeOverrides, Scope, Snapshot
from kubectl_qos.k8s.usage import (
    ContainerHistory,
    ContainerUsage,
    History,
    PodDetails,
    PodUsage,
    Pressure,
    Psi,
)
from kubectl_qos.qos.kills.report import KernelLog, OomReport, OomTask
from tests.cluster.cluster_objects import pod, recorded_node
from tests.demo.living import FULL_AT, IMPORTER, Stepped
from tests.host.kernel_logs import recorded_log
from tests.recordings.files import read_json

SECRET = "s3cr3t"
QUANTITIES = {"requests", "limits", "capacity", "allocatable", "overhead", "allocatedResources"}
VALUES = {"env": [{"name": "A", "value": "b", "valueFrom": {"secretKeyRef": {"name": "c", "key": "d"}}}]}
CONTAINER = {
    **VALUES,
    "name": "app",
    "image": "registry/app:1",
    "command": ["sh"],
    "args": ["--password=x"],
    "envFrom": [{"secretRef": {"name": "db"}}],
    "livenessProbe": {"httpGet": {"path": "/", "httpHeaders": [{"name": "Authorization", "value": "x"}]}},
    "lifecycle": {"preStop": {"exec": {"command": ["curl"]}}},
    "volumeMounts": [{"name": "v", "mountPath": "/v", "subPathExpr": "x"}],
    "resources": {"requests": {"memory": "1Gi"}, "claims": [{"name": "c"}]},
    "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
    "securityContext": {"seLinuxOptions": {"user": "u"}},
    "terminationMessagePath": "/x",
}
METADATA = {
    "name": "web-0",
    "namespace": "shop",
    "uid": "u",
    "labels": {"app": "web"},
    "annotations": {
        "kubectl.kubernetes.io/last-applied-configuration": "x",
        "kubernetes.io/config.source": "api",
        "kubectl-qos/class": "Guaranteed",
        "vault/token": "x",
    },
    "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {"f:x": "y"}}}],
    "ownerReferences": [{"kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}],
    "finalizers": ["x"],
    "selfLink": "x",
}
SPEC = {
    "containers": [CONTAINER],
    "initContainers": [CONTAINER],
    "ephemeralContainers": [{**CONTAINER, "targetContainerName": "app"}],
    "nodeName": "worker-1",
    "priorityClassName": "p",
    "runtimeClassName": "r",
    "restartPolicy": "Always",
    "serviceAccountName": "s",
    "imagePullSecrets": [{"name": "registry"}],
    "hostAliases": [{"ip": "1", "hostnames": ["db"]}],
    "nodeSelector": {"zone": "z"},
    "tolerations": [{"key": "k", "value": "v"}],
    "volumes": [
        {"name": "v", "secret": {"secretName": "db", "items": [{"key": "k", "path": "p"}]}},
        {"name": "w", "csi": {"driver": "d", "volumeAttributes": {"token": "t"}}},
        {"name": "h", "hostPath": {"path": "/p"}},
        {"name": "e", "emptyDir": {"medium": "Memory"}},
    ],
}
END = {"reason": "Error", "message": "panic: password=x", "containerID": "c://1", "finishedAt": "t"}
STATUS = {
    "phase": "Running",
    "reason": "Evicted",
    "message": "m",
    "podIP": "10.0.0.1",
    "conditions": [{"type": "Ready", "status": "True", "reason": "r", "message": "m"}],
    "containerStatuses": [
        {
            "name": "app",
            "image": "registry/app:1",
            "imageID": "i",
            "containerID": "c://1",
            "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "m"}},
            "lastState": {"terminated": END},
        }
    ],
}
POD = {"kind": "Pod", "metadata": METADATA, "spec": SPEC, "status": STATUS}
TEMPLATE = {"metadata": METADATA, "spec": SPEC}
OBJECTS: dict[str, dict[str, Any]] = {
    "pod": POD,
    "deployment": {
        "kind": "Deployment",
        "apiVersion": "apps/v1",
        "metadata": METADATA,
        "spec": {
            "template": TEMPLATE,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}},
        },
        "status": {"conditions": [{"message": "m"}]},
    },
    "cronjob": {
        "kind": "CronJob",
        "apiVersion": "batch/v1",
        "metadata": METADATA,
        "spec": {
            "schedule": "* * * * *",
            "jobTemplate": {"metadata": METADATA, "spec": {"template": TEMPLATE}},
        },
    },
    "node": {**recorded_node(), "kind": "Node"},
    "event": {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": METADATA,
        "involvedObject": {"kind": "Pod", "name": "web-0", "namespace": "shop", "uid": "u", "fieldPath": "f"},
        "type": "Warning",
        "reason": "Unhealthy",
        "message": "Readiness probe failed: token=x",
        "source": {"component": "kubelet", "host": "worker-1"},
        "related": {"name": "x"},
        "lastTimestamp": "t",
    },
}
KEPT = {
    *("metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels.app"),
    *("metadata.ownerReferences.kind", "metadata.ownerReferences.name"),
    *("metadata.annotations.kubectl-qos/class", "metadata.annotations.kubernetes.io/config.source"),
    *("spec.containers.name", "spec.nodeName", "spec.priorityClassName", "spec.runtimeClassName"),
    *("spec.containers.resizePolicy.resourceName", "spec.containers.resizePolicy.restartPolicy"),
    *("spec.restartPolicy", "spec.volumes.name", "spec.volumes.emptyDir.medium"),
    *("status.phase", "status.reason", "status.containerStatuses.name"),
    *("status.containerStatuses.containerID", "status.containerStatuses.state.waiting.reason"),
    "status.containerStatuses.lastState.terminated.containerID",
    "status.containerStatuses.lastState.terminated.finishedAt",
    "status.containerStatuses.lastState.terminated.reason",
    *("spec.strategy.type", "spec.strategy.rollingUpdate.maxSurge"),
    *("metadata.creationTimestamp", "metadata.resourceVersion", "status.declaredFeatures"),
    *("metadata.managedFields.subresource", "metadata.managedFields.time"),
    *("metadata.labels.kubernetes.io", "metadata.labels.beta.kubernetes.io"),
    *("status.conditions.lastTransitionTime", "status.conditions.lastHeartbeatTime"),
    "status.conditions.reason",
    *("status.conditions.status", "status.conditions.type"),
    *("status.nodeInfo.containerRuntimeVersion", "status.nodeInfo.kernelVersion"),
    *("status.nodeInfo.kubeletVersion", "status.nodeInfo.operatingSystem", "status.nodeInfo.osImage"),
    *("involvedObject.fieldPath", "involvedObject.kind", "involvedObject.name"),
    *(
        "involvedObject.namespace",
        "involvedObject.uid",
        "lastTimestamp",
        "reason",
        "source.component",
        "source.host",
        "type",
    ),
}
"""Every text that is in a bundle, whatever it is, without the way to a template."""
_TO_TEMPLATE = re.compile(r"^spec\.(?:jobTemplate\.(?:spec\.)?)?(?:template\.)?(?=metadata|spec)")


class Planted(FileSource):
    """Files with secrets in every text, and a kubelet with some."""

    def snapshot(self, scope: Scope) -> Snapshot:
        configz = read_json("node-1.36/configz-systemd.json")["kubeletconfig"]
        configz |= {"staticPodURLHeader": {"Authorization": [SECRET]}, "clusterDomain": SECRET}
        kubelet = kubelet_from_configz(configz, Release.of("1.36"))
        return replace(super().snapshot(scope), kubelets={"worker-1": kubelet})


def planted(value: Any, path: str = "") -> Any:
    """The same with a secret in each text, which names the place, as far as that can still be decoded."""
    if isinstance(value, dict):
        return {
            name: inner if name in QUANTITIES else planted(inner, f"{path}.{name}")
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [planted(inner, path) for inner in value]
    return f"{SECRET}<{path[1:]}>" if isinstance(value, str) else value


def unpacked(path: Path) -> str:
    """Everything that is in an archive."""
    with tarfile.open(path) as tar:
        return "".join(tar.extractfile(one).read().decode() for one in tar)  # type: ignore[union-attr]


@pytest.mark.parametrize("name", OBJECTS)
def test_only_what_is_read_is_in_a_bundle(tmp_path: Path, name: str) -> None:
    raw, file, path = OBJECTS[name], tmp_path / "dump.json", tmp_path / "b.tar.gz"
    made = planted(raw) | {key: raw[key] for key in ("kind", "apiVersion") if key in raw}
    file.write_text(json.dumps({"kind": "List", "items": [made, pod("other")]}))
    log = read_log([f"{SECRET}<first line>", *recorded_log("global-A")])
    write_bundle(path, collect(Planted([str(file)]), Scope(), [log]))
    found = set(re.findall(rf"{SECRET}<?([^>\"]*)", unpacked(path)))
    assert {"metadata.name"} <= found
    # Of volumes those with a medium, or of which it matters that they are there.
    volumes = len(re.findall(rf"{SECRET}<[^>]*spec\.volumes\.name>", unpacked(path)))
    assert volumes == (0 if name in {"node", "event"} else 2)
    places = {_TO_TEMPLATE.sub("", place) for place in found}
    places = {re.sub(r"(?:init|ephemeral)Containers", "containers", place) for place in places}
    assert {
        place.partition("kubernetes.io/")[0] + "kubernetes.io"
        if ".labels." in place and "/" in place
        else place
        for place in places
    } <= KEPT


class Known(Stepped):
    """The demo with all that a snapshot may have."""

    def snapshot(self, scope: Scope) -> Snapshot:
        found = super().snapshot(scope)
        key = found.pods[0].namespace, found.pods[0].name
        usage = PodUsage(
            ("c",),
            (ContainerUsage(5, 4, 3, Pressure(None, Psi(), None)),),
            timestamp="t",
            details=PodDetails(2),
        )
        return replace(
            found,
            kubelets={"worker-1": Kubelet(feature_gates={"MemoryQoS": True}, eviction_soft={"a": "1"})},
            missing=(Missing("the watch of nodes", "no", "yes"),),
            server_version="v1.36.1",
            overrides=NodeOverrides(1 << 30, (NodeOverride("cgroupVersion", "1"),)),
            pressure={"worker-1": Pressure(Psi(), None, None)},
            node_usage={"worker-1": 7},
            node_swap={"worker-1": 6},
            history=History({(key, "c"): ContainerHistory(9, 8, 0.5, True)}, {key: usage}, "7d", "max"),
            at="2026-11-20T12:00:00Z",
        )


def test_all_that_is_known_comes_back(tmp_path: Path) -> None:
    demo, path = Known(FULL_AT + 1), tmp_path / "b.tar.gz"
    contents = collect(demo, Scope(), demo.kernel_logs())
    write_bundle(path, contents._replace(facts=msgspec.structs.replace(contents.facts, namespace="shop")))
    assert '"overrides": {' in unpacked(path)  # An array would need another version of bundles.
    source = BundleSource(str(path))
    before = demo.snapshot(Scope())
    assert source.snapshot(Scope()) == replace(before, pods=tuple(map(Interner().pod, before.pods)))
    assert (source.now(), source.default_namespace, source.is_live) == (demo.now(), "shop", False)
    assert source.kernel_logs() == tuple(structs.replace(one, first_line="") for one in demo.kernel_logs())
    for namespace in ("data", "shop"):
        found = (one.event_list(namespace).events for one in (source, demo))
        assert len({frozenset(event.metadata.name for event in events) for events in found}) == 1
    own = BundleSource(str(path), overrides=NodeOverrides(None, (NodeOverride("cgroupVersion", "2"),)))
    assert own.snapshot(Scope()).setup("worker-1").node.cgroup_version == 2
    assert own.snapshot(Scope()).overrides.memory_bytes == 1 << 30


def test_messages_stay_that_kubernetes_makes(tmp_path: Path) -> None:
    demo, path = Stepped(FULL_AT + 1), tmp_path / "b.tar.gz"
    write_bundle(path, collect(demo, Scope(), demo.kernel_logs()))
    source = BundleSource(str(path))
    before, after = demo.event_list(None).events, source.event_list(None).events
    changed = [one for one, other in zip(before, after, strict=True) if one != other]
    assert [one.message for one in changed] == ["Readiness probe failed: context deadline exceeded"]
    assert f'"{REDACTED}"' in unpacked(path)


def test_a_bundle_opens_in_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As much as is read takes two and a half times its size, and more is not read."""
    raw = {**POD, "spec": {**SPEC, "volumes": []}}
    pods = [
        {**raw, "metadata": {**METADATA, "name": f"web-{number}", "uid": str(number)}}
        for number in range(500)
    ]
    dump, path = tmp_path / "dump.json", tmp_path / "b.tar.gz"
    dump.write_text(json.dumps({"kind": "List", "items": pods}))
    write_bundle(path, collect(FileSource([str(dump)]), Scope()))
    size = len(unpacked(path))
    tracemalloc.start()
    BundleSource(str(path)).snapshot(Scope())
    opened = tracemalloc.get_traced_memory()[1]
    monkeypatch.setattr(bundle, "MAX_UNPACKED_BYTES", 8 << 20)
    path.write_bytes(gzip.compress(bytes(3 * bundle.MAX_UNPACKED_BYTES), compresslevel=1))
    tracemalloc.reset_peak()
    with pytest.raises(InputError, match="more than 8 MiB when it is unpacked"):
        BundleSource(str(path))
    refused = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert opened < 2.5 * size
    assert refused < 2.5 * bundle.MAX_UNPACKED_BYTES


def test_what_is_secret_in_a_url_is_not_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "read_path", lambda path, **_: [(path, json.dumps(pod("web")).encode())])
    source, path = FileSource([f"https://me:{SECRET}@host/a.yaml?sig={SECRET}"]), tmp_path / "b.tar.gz"
    write_bundle(path, collect(source, Scope()))
    assert BundleSource(str(path)).origin == source.title == "https://host/a.yaml"
    assert SECRET not in unpacked(path)


def test_the_same_contents_are_the_same_bytes(tmp_path: Path) -> None:
    demo, contents = Stepped(FULL_AT + 1), []
    for name in ("a.tar.gz", "b.tar.gz"):
        write_bundle(
            tmp_path / name, collect(demo, Scope(), demo.kernel_logs()), anonymize=name == "b.tar.gz"
        )
        first = (tmp_path / name).read_bytes()
        write_bundle(
            tmp_path / name, collect(demo, Scope(), demo.kernel_logs()), anonymize=name == "b.tar.gz"
        )
        assert (tmp_path / name).read_bytes() == first
        contents.append(first)
    assert contents[0] != contents[1]


def test_names_are_replaced_alike_and_nothing_else_changes(tmp_path: Path) -> None:
    demo, path = Stepped(FULL_AT + 1), tmp_path / "b.tar.gz"
    about = demo.find("Pod", None, IMPORTER)
    assert about.metadata.labels is not None
    selected = Scope(selector_text=f"app={about.metadata.labels['app']}")
    write_bundle(path, collect(demo, selected, demo.kernel_logs(), about=("Pod", about.name)), anonymize=True)
    text = unpacked(path).replace("batch/v1", "")
    before, after = demo.snapshot(Scope()), BundleSource(str(path)).snapshot(Scope())
    names = {name for one in before.pods for name in (one.namespace, one.name, one.node_name)} - {""}
    names |= {value for one in before.pods for value in (one.metadata.labels or {}).values()}
    names |= {name for one in before.pods for name in find_workload(one)[1:]}
    names |= {killed.comm for log in demo.kernel_logs() for one in log.reports for killed in one.victims}
    left = {name for name in names if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)}
    assert left == {"kube-system"}

    def shape(found: Snapshot) -> list[object]:
        """What of each pod is no name, and which of them belong together."""
        numbers: dict[object, int] = {}
        return [
            (
                numbers.setdefault(find_workload(one), len(numbers)),
                numbers.setdefault(one.node_name, len(numbers)),
                find_workload(one).kind,
                [container.resources for container in one.containers],
                amounts.amounts if (amounts := found.usage_of(one)) is not None else None,
            )
            for one in found.pods
        ]

    assert shape(after) == shape(before)
    report = BundleSource(str(path)).report
    assert report is not None
    (same,) = (one for one in after.pods if one.name == report.name)
    assert Selector.parse(report.selector).matches(same.metadata.labels)


def event(reason: str, message: str, **more: Any) -> dict[str, Any]:
    about = {"kind": "Pod", "namespace": "shop", "name": "web-0", "uid": "u"}
    return {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {"name": reason, "namespace": "shop"},
        "involvedObject": about,
        "reason": reason,
        "message": message,
        "lastTimestamp": "t",
        **more,
    }


def test_no_word_of_a_process_or_a_text_is_in_an_anonymous_bundle(tmp_path: Path) -> None:
    """Each has the word acme, or база; what decides on a diagnosis stays."""
    made = {
        **POD,
        "metadata": {
            **METADATA,
            "annotations": {"kubectl-qos/class": "acme says so", "kubernetes.io/config.source": "api"},
        },
        "status": {
            "phase": "Failed",
            "reason": "Evicted",
            "message": "The node was low on resource: memory.",
        },
    }
    killed = "Memory cgroup out of memory: Killed process 7 (acme-db) total-vm:8kB, anon-rss:6kB, UID:0"
    objects = [
        made,
        event("OOMKilling", killed, source={"component": "acme-watcher"}),
        event("SystemOOM", "System OOM encountered, victim process: база, pid: 7"),
        event("Scheduled", "Successfully assigned acme/acme-0 to acme-node-7"),
        event("FailedScheduling", "0/4 nodes are available: 1 node(s) had untolerated taint {acme.com/x: }."),
        event("NodeNotReady", "Node acme-node-8 status is now: NodeNotReady"),
    ]
    file, path = tmp_path / "dump.json", tmp_path / "b.tar.gz"
    file.write_text(json.dumps({"kind": "List", "items": objects}))
    report = OomReport(line=1, tasks=(OomTask(7, "acme-db"), OomTask(8, "база")))
    log = KernelLog(title="acme.log", reports=(report,))
    write_bundle(path, collect(FileSource([str(file)]), Scope(), [log]), anonymize=True)
    text = unpacked(path)
    assert [one for one in ("acme", "\\u0431", "база") if one in text.lower()] == []
    assert "The node was low on resource: memory." in text
    assert re.search(r"Memory cgroup out of memory: Killed process 7 \(x\d+-x\d+\) total-vm:8kB", text)
    assert re.search(r"Node x\d+-node-8 status is now: NodeNotReady", text)
    assert '"kubernetes.io/config.source": "api"' in text


def archive(**members: bytes | tarfile.TarInfo) -> bytes:
    """A bundle of these files, whose names have an underscore for the dot."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, content in members.items():
            is_info = isinstance(content, tarfile.TarInfo)
            info = (
                content if isinstance(content, tarfile.TarInfo) else tarfile.TarInfo(name.replace("_", "."))
            )
            info.size = 0 if is_info else len(content)  # type: ignore[arg-type]
            tar.addfile(info, None if is_info else io.BytesIO(content))  # type: ignore[arg-type]
    return gzip.compress(made.getvalue())


def _link() -> tarfile.TarInfo:
    info = tarfile.TarInfo("bundle.json")
    info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
    return info


NEWER = b'{"version": 2, "written_by": "kubectl-qos 9.9"}'
BAD: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "cut": (lambda good: good[:-40], "the archive is cut off"),
    "no gzip": (lambda _: b'{"kind": "List"}', "not a bundle: not compressed by gzip"),
    "damaged": (lambda good: good[:200] + bytes(200) + good[400:], "damaged"),
    "a bomb": (lambda _: gzip.compress(bytes(2_000_001)), "more than 1 MiB when it is unpacked"),
    "no tar": (lambda _: gzip.compress(b"x" * 2048), "not a bundle: no tar archive"),
    "empty": (lambda _: archive(), "not a bundle: bundle.json is missing"),
    "without objects": (lambda _: archive(bundle_json=NEWER), "not a bundle: objects.json is missing"),
    "a link": (lambda _: archive(a=_link()), "not a bundle: it contains more than plain files"),
    "many files": (
        lambda _: archive(**{f"f{number}": b"" for number in range(17)}),
        "not a bundle: it contains more than plain files",
    ),
    "newer": (
        lambda _: archive(bundle_json=NEWER, objects_json=b"{}"),
        "version 2 of bundles is newer than 1, which is read here",
    ),
    "no version": (
        lambda _: archive(bundle_json=b"{}", objects_json=b"{}"),
        "bundle.json: Object missing required field `version`",
    ),
    "half a version": (
        lambda _: archive(bundle_json=b'{"version": 1}', objects_json=b"{}"),
        "bundle.json: Object missing required field `title`",
    ),
    "no time zone": (
        lambda good: _changed(good, "bundle.json", b'12:00:01Z"', b'12:00:01"'),
        "bundle.json: Expected `datetime` with a timezone component",
    ),
    "no objects": (
        lambda good: _changed(good, "objects.json", b"{", b"[1"),
        "not a bundle: objects.json is no JSON",
    ),
}


def _changed(good: bytes, name: str, old: bytes, new: bytes) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(good)) as tar:
        members = {one.name: tar.extractfile(one).read() for one in tar}  # type: ignore[union-attr]
    assert old in members[name]
    members[name] = members[name].replace(old, new, 1)
    return archive(**members)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("good") / "b.tar.gz"
    write_bundle(path, collect(Stepped(1), Scope()))
    return path.read_bytes()


@pytest.mark.parametrize("name", BAD)
def test_a_bad_bundle_is_one_sentence(
    good: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    spoil, sentence = BAD[name]
    path = tmp_path / "b.tar.gz"
    path.write_bytes(spoil(good))
    monkeypatch.setattr(bundle, "MAX_UNPACKED_BYTES", 1 << 20)
    with pytest.raises(InputError) as caught:
        BundleSource(str(path))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    assert {one.name for one in tmp_path.iterdir()} == {"b.tar.gz", "home"}
