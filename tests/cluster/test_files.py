"""Files as a source: read, changed in place, and refused; and objects of programs."""

import gzip
import io
import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.client import ApiClient, V1Container, V1Node, V1NodeStatus, V1ObjectMeta, V1Pod, V1PodSpec
from kubernetes.client import V1ResourceRequirements as Resources

from kubectl_qos import node_from_client, pod_from_client, predict
from kubectl_qos.cluster import files
from kubectl_qos.cluster.documents import FileDocument
from kubectl_qos.cluster.documents import plain_documents as documents
from kubectl_qos.cluster.files import FileSource, pod_from_yaml
from kubectl_qos.edit.edits import Edit, Side
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.kubelet import CgroupDriver, Origin
from kubectl_qos.k8s.objects import JsonDecoder, Pod, resource_list
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.snapshot import NodeOverrides, Scope, Snapshot
from kubectl_qos.k8s.usage import memory_psi
from tests.cluster.cluster_objects import metrics, pod, recorded_node, recorded_pods
from tests.recordings.files import read, read_json

POD = """\
kind: Pod
metadata: {name: NAME, namespace: shop}
spec:
  containers:
  - name: a  # é
    resources: {limits: {memory: 1Gi}}
"""
GOOD = "kind: Pod\nmetadata: {name: good}\nspec: {containers: [{name: a}]}\n"
MORE = [Edit("a", Side.LIMITS, "memory", Quantity.parse("2Gi"))]


def names(found: Snapshot) -> list[str]:
    return [one.name for one in found.pods]


def changed(path: Path, name: str = "web", edits: list[Edit] | None = None) -> str:
    source = FileSource([str(path)])
    pod = next(one for one in source.snapshot(Scope()).pods if one.name == name)
    return source.change_file(pod, MORE if edits is None else edits).name


def test_of_several_documents_only_one_is_touched(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    text = "# é\n---\n".join(["", *(POD.replace("NAME", name) for name in ("db", "web", "last"))]) + "...\n"
    path.write_text(text)
    assert changed(path) == str(path)
    parts = text.split("---\n")
    parts[2] = parts[2].replace("1Gi", "2Gi")
    assert path.read_text() == "---\n".join(parts)


def test_of_several_files_only_one_is_touched(tmp_path: Path) -> None:
    for name in ("db", "web"):
        (tmp_path / f"{name}.yaml").write_text(POD.replace("NAME", name))
    before = (tmp_path / "db.yaml").stat()
    assert changed(tmp_path) == str(tmp_path / "web.yaml")
    after = (tmp_path / "db.yaml").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert (tmp_path / "web.yaml").read_text() == POD.replace("NAME", "web").replace("1Gi", "2Gi")


@pytest.mark.parametrize("kind", ["List", "PodList"])
@pytest.mark.parametrize("is_json", [True, False])
def test_of_a_list_only_one_item_is_touched(tmp_path: Path, kind: str, *, is_json: bool) -> None:
    items = [yaml.safe_load(POD.replace("NAME", name)) for name in ("db", "web", "last")]
    if kind == "PodList":
        for item in items:
            del item["kind"]
    value = {"kind": kind, "items": items}
    path = tmp_path / "x"
    path.write_text(json.dumps(value, indent=2) if is_json else yaml.safe_dump(value))
    before = path.read_text().splitlines()
    changed(path)
    items[1]["spec"]["containers"][0]["resources"] = {"limits": {"memory": "2Gi"}}
    assert yaml.safe_load(path.read_text()) == value
    after = path.read_text().splitlines()
    assert sum(old != new for old, new in zip(before, after, strict=True)) == 1


def test_an_item_of_a_list_in_a_list_is_changed(tmp_path: Path) -> None:
    pods = [yaml.safe_load(POD.replace("NAME", name)) for name in ("db", "web")]
    inner = {"kind": "List", "apiVersion": "v1", "items": pods}
    path = tmp_path / "x.yaml"
    path.write_text(yaml.safe_dump({"kind": "List", "items": [pods[0], {"kind": "List", "items": [inner]}]}))
    before = path.read_text()
    source = FileSource([str(path)])
    web = next(one for one in source.snapshot(Scope()).pods if one.name == "web")
    assert source.locations([web]) == [f"{path}: items[1].items[0].items[1]"]
    changed(path)
    assert path.read_text().count("2Gi") == 1
    assert path.read_text().replace("2Gi", "1Gi") == before


CUSTOM = """\
apiVersion: example.com/v1
kind: Crew
metadata: {name: web, namespace: shop}
spec:
  roles:
  - template: {spec: {containers: [{name: a, resources: {limits: {memory: 1Gi}}}]}}
  - template: {spec: {containers: [{name: a, resources: {limits: {memory: 3Gi}}}]}}
"""


def test_one_template_of_any_kind_is_changed(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(CUSTOM)
    changed(path, "web:roles[0]")
    assert path.read_text() == CUSTOM.replace("1Gi", "2Gi")


def test_a_file_in_utf_16_is_read_and_not_written(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(POD.replace("NAME", "web"), encoding="utf-16")
    with pytest.raises(InputError, match="only plain UTF-8 is written"):
        changed(path)
    assert path.read_text(encoding="utf-16") == POD.replace("NAME", "web")


def test_two_json_texts_in_one_file(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    texts = [
        json.dumps(yaml.safe_load(POD.replace("NAME", name)), ensure_ascii=False) for name in ("é", "web")
    ]
    path.write_text("\n".join(texts))
    changed(path)
    assert path.read_text() == "\n".join([texts[0], texts[1].replace("1Gi", "2Gi")])


def test_the_byte_order_mark_and_the_ends_of_lines_stay(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    content = b"\xef\xbb\xbf" + POD.replace("NAME", "web").replace("\n", "\r\n").encode()
    path.write_bytes(content)
    changed(path)
    assert path.read_bytes() == content.replace(b"1Gi", b"2Gi")


def test_a_deployment_is_changed_in_its_template(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    text = (
        "kind: Deployment\nmetadata: {name: web}\nspec:\n  template:\n    spec:\n      containers:\n"
        "        - name: a\n          resources:\n            limits:\n              memory: 1Gi\n"
    )
    path.write_text(text)
    changed(path)
    assert path.read_text() == text.replace("1Gi", "2Gi")


def test_mode_and_link_stay_and_nothing_else_is_left(tmp_path: Path) -> None:
    folder = tmp_path / "real"
    folder.mkdir()
    real = folder / "x.yaml"
    real.write_text(POD.replace("NAME", "web"))
    real.chmod(0o640)
    link = tmp_path / "link.yaml"
    link.symlink_to(real)
    assert changed(link) == str(link)
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert "2Gi" in real.read_text()
    assert [one.name for one in folder.iterdir()] == ["x.yaml"]


def test_a_read_only_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(POD.replace("NAME", "web"))
    path.chmod(0o444)
    with pytest.raises(InputError, match="the file is read-only"):
        changed(path)
    assert "1Gi" in path.read_text()


def test_a_write_that_fails_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(POD.replace("NAME", "web"))

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=r"x\.yaml: cannot be written: No space left on device"):
        changed(path)
    assert path.read_text() == POD.replace("NAME", "web")
    assert [one.name for one in tmp_path.iterdir() if "x.yaml" in one.name] == ["x.yaml"]


def test_an_object_that_went_away_or_came_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(POD.replace("NAME", "web"))
    source = FileSource([str(path)])
    (pod,) = source.snapshot(Scope()).pods
    path.write_text(POD.replace("NAME", "other"))
    with pytest.raises(InputError, match="pod/web is no longer there"):
        source.change_file(pod, MORE)
    path.write_text("---\n".join([POD.replace("NAME", "web")] * 2))
    with pytest.raises(InputError, match="pod/web is there 2 times"):
        source.change_file(pod, MORE)


def test_of_equal_objects_the_last_one_counts(tmp_path: Path) -> None:
    """As after kubectl apply -f of the folder; only check looks at each file for itself."""
    (tmp_path / "a.yaml").write_text(f"{POD.replace('NAME', 'web')}---\n{POD.replace('NAME', 'db')}")
    (tmp_path / "b.yaml").write_text(POD.replace("NAME", "web").replace("1Gi", "2Gi"))
    nameless = POD.replace("name: NAME", "generateName: job-")
    (tmp_path / "c.yaml").write_text(f"{nameless}---\n{nameless}")
    source = FileSource([str(tmp_path)])
    web, db, *jobs = source.snapshot(Scope()).pods
    assert (web.name, db.name) == ("web", "db")
    assert [job.name for job in jobs] == ["job-1", "job-2"], "each has a rank of its own"
    assert source.raw(jobs[0])["metadata"]["generateName"] == "job-"
    assert str(web.containers[0].limits["memory"]) == "2Gi"
    assert source.raw(web)["spec"]["containers"][0]["resources"]["limits"] == {"memory": "2Gi"}
    note = "Warning: shop/pod/web: there more than once; the last one counts, as for kubectl apply"
    assert note in source.notes
    assert (source.is_repeated(web), source.is_repeated(db)) == (True, False)
    of_check = FileSource([str(tmp_path)], keep_objects=True)
    assert names(of_check.snapshot(Scope())).count("web") == 2


def test_a_broken_document_in_the_same_file_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    broken = "kind: Pod\nmetadata: x\n---\nkind: [\n---\n"
    path.write_text(broken + POD.replace("NAME", "web"))
    changed(path)
    assert path.read_text() == broken + POD.replace("NAME", "web").replace("1Gi", "2Gi")


def test_what_cannot_be_changed_in_place_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    text = POD.replace("NAME", "web").replace("{memory: 1Gi}", "{<<: {memory: 1Gi, cpu: 1}}")
    path.write_text(text)
    with pytest.raises(InputError, match="cannot be changed in place") as caught:
        changed(path, edits=[Edit("a", Side.LIMITS, "memory", None)])
    assert caught.value.hint
    assert path.read_text() == text


def test_objects_of_a_kind_are_read_without_parsing_other_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits, other = tmp_path / "limits.yaml", tmp_path / "pod.yaml"
    limits.write_text("kind: LimitRangeList\nitems:\n- {kind: LimitRange, metadata: {name: x}}\n")
    other.write_text(POD)
    parsed = []

    def parse(content: bytes, name: str) -> Iterator[FileDocument]:
        parsed.append(name)
        return documents(content, name)

    monkeypatch.setattr(files, "plain_documents", parse)
    source = FileSource([str(tmp_path)])
    assert [raw["metadata"]["name"] for raw in source.raw_objects("LimitRange")] == ["x"]
    assert str(limits) in parsed
    assert str(other) not in parsed
    assert len([*source.raw_objects()]) == 2


def test_a_folder_is_read_in_order_of_names(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.yml", "c.json", "ignored.txt"):
        (tmp_path / name).write_text(json.dumps(pod(name.replace(".", "-"))))
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "d.yaml").write_text(GOOD)
    assert names(FileSource([str(tmp_path)]).snapshot(Scope())) == ["a-yml", "b-yaml", "c-json"]
    assert names(FileSource([str(tmp_path)], recursive=True).snapshot(Scope())) == [
        "a-yml",
        "b-yaml",
        "good",
        "c-json",
    ]


def refusal(*paths: Path | str) -> InputError:
    with pytest.raises(InputError) as caught:
        FileSource([str(path) for path in paths])
    return caught.value


def test_what_is_not_there_is_named_as_kubectl_does(tmp_path: Path) -> None:
    assert str(refusal(tmp_path / "none")) == f'the path "{tmp_path}/none" does not exist'


def test_a_folder_without_manifests(tmp_path: Path) -> None:
    error = refusal(tmp_path)
    assert str(error) == f'the folder "{tmp_path}" holds no .json, .yaml, .yml files'
    assert error.hint == "-R looks into the folders below it too"


def test_packed_files_of_a_folder_are_named_and_not_read(tmp_path: Path) -> None:
    """Dumps of a node are often several of the same pods."""
    for name in "abcd":
        (tmp_path / f"{name}.json.gz").write_bytes(gzip.compress(json.dumps(pod("good")).encode()))
    assert refusal(tmp_path).hint == f"each of its 4 packed files needs its own -f: -f {tmp_path}/a.json.gz"
    (tmp_path / "a.json").write_text(json.dumps(pod("plain")))
    source = FileSource([str(tmp_path)])
    assert names(source.snapshot(Scope())) == ["plain"]
    first = ", ".join(f"{tmp_path}/{name}.json.gz" for name in "abc")
    assert source.notes == (
        f"packed files of a folder are skipped, each needs its own -f: {first} and 1 more",
    )
    packed = f"{tmp_path}/a.json.gz"
    assert names(FileSource([packed], keep_objects=True, any_files=[packed]).snapshot(Scope())) == ["good"]


def test_a_named_file_that_is_binary_or_a_part_of_a_manifest(tmp_path: Path) -> None:
    """The binary one passed, and explain reads the part."""
    for name, content in (("a.bin", b"\x7fELF\0\0"), ("b.yaml", b"resources: {limits: {memory: 1Gi}}")):
        (tmp_path / name).write_bytes(content)
    paths = [f"{tmp_path}/a.bin", f"{tmp_path}/b.yaml"]
    source = FileSource(paths, keep_objects=True, any_files=paths)
    (problem,) = source.problems
    assert str(problem) == f"{paths[0]}: not a text file (byte 4)"
    part = f"parts of manifests are skipped (kubectl qos check -f FILE checks them): {paths[1]}"
    assert [*source.skipped] == [part]


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(GOOD)

    def denied(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", denied)
    assert str(refusal(path)) == f"{path}: Permission denied"


def test_samples_of_nodes_and_a_kubelets_summary_are_read(tmp_path: Path) -> None:
    """A summary has no kind, and its node's name decides whose it is."""
    raws = read("node-1.36-d/node-set-pods.json")
    (tmp_path / "pods.json").write_bytes(raws)
    summary = tmp_path / "summary.json"
    summary.write_bytes(read("node-1.36-d/node-set-summary.json"))
    sample = {"kind": "NodeMetrics", "metadata": {"name": "node2"}, "usage": {"memory": "1Gi"}}
    (tmp_path / "nodes.json").write_text(json.dumps({"kind": "List", "items": [sample]}))
    source = FileSource([str(tmp_path)])
    snapshot = source.snapshot(Scope())
    assert source.notes == (), "in a folder too it is no file of something else"
    assert snapshot.node_usage == {"node1": 1787060224, "node2": 1 << 30}
    assert memory_psi(snapshot.pressure["node1"]).avg60 is not None
    assert snapshot.usage["oom", "be-kids"].details.processes == 5
    with pytest.raises(InputError, match="no pods found"):
        FileSource([str(summary)])


def test_the_configuration_of_a_kubelet_is_that_of_the_only_node(tmp_path: Path) -> None:
    """`kubectl get --raw /api/v1/nodes/NAME/proxy/configz` names no node."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    files = {"node": node, "configz": {"kubeletconfig": {"evictionHard": {"memory.available": "500Mi"}}}}
    for name, raw in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(raw))
    source = FileSource([str(tmp_path)])
    assert source.snapshot(Scope()).setup("n1").kubelet.eviction_hard == {"memory.available": "500Mi"}
    assert source.notes == ()
    (tmp_path / "other.json").write_text(json.dumps({**node, "metadata": {"name": "n2"}}))
    source = FileSource([str(tmp_path)])
    assert source.snapshot(Scope()).kubelets == {}
    assert "does not name its node" in source.notes[0]
    (tmp_path / "configz.json").write_text('{"kubeletconfig": {"evictionHard": 5}}')
    assert "evictionHard" in FileSource([str(tmp_path)]).notes[0]


def test_the_configuration_of_a_kubelet_counts_for_the_node_that_a_manifest_would_be_on(
    tmp_path: Path,
) -> None:
    kubelet = {
        "kind": "KubeletConfiguration",
        "kubeReserved": {"memory": "2Gi"},
        "systemReserved": {"memory": "1Gi"},
    }
    kubelet |= {"apiVersion": "kubelet.config.k8s.io/v1beta1", "memorySwap": {"swapBehavior": "LimitedSwap"}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "c"}]},
    }
    (tmp_path / "all.yaml").write_text(f"{json.dumps(kubelet)}\n---\n{json.dumps(pod)}\n")
    source = FileSource([str(tmp_path)], overrides=NodeOverrides(memory_bytes=32 << 30))
    setup = source.snapshot(Scope()).setup("")
    assert (setup.kubelet.memory_swap_behavior, setup.node.allocatable_memory_bytes) == (
        "LimitedSwap",
        29 << 30,
    )
    assert source.notes == ()


def test_the_file_of_a_kubelet_leaves_the_rest_at_its_defaults(tmp_path: Path) -> None:
    (tmp_path / "all.yaml").write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\npodPidsLimit: 4096\n"
        "systemReserved: {memory: 1Gi}\nmemorySwap: {swapBehavior: LimitedSwap}\ncpuCFSQuotaPeriod: 50ms\n"
        "---\napiVersion: v1\nkind: Node\nmetadata: {name: n1}\n"
    )
    kubelet = FileSource([str(tmp_path)]).snapshot(Scope()).setup("n1").kubelet
    stated = {name for name, origin in kubelet.origins.items() if origin is Origin.CONFIGZ}
    assert stated == {
        "pod_pids_limit",
        "system_reserved",
        "memory_swap_behavior",
        "cpu_cfs_quota_period_us",
    }
    assert (kubelet.pod_pids_limit, kubelet.memory_swap_behavior) == (4096, "LimitedSwap")
    assert kubelet.eviction_hard["memory.available"] == "100Mi"
    assert kubelet.cgroup_driver is CgroupDriver.SYSTEMD


def test_manifests_get_what_their_classes_give_them(tmp_path: Path) -> None:
    """The pod of a cluster has the values of its classes already: of these, none."""
    pod = "---\nkind: Pod\nmetadata: {name: %s}\nspec: {containers: [{name: a}]%s}\n"
    pods = {
        "sandboxed": (", runtimeClassName: kata, priorityClassName: gold", 7, {"memory": "160Mi"}),
        "own": (", runtimeClassName: kata, overhead: {cpu: 1}, priority: 3", 3, {"cpu": "1"}),
        "plain": (", runtimeClassName: runc", 5, None),
        "stored, uid: u": (", runtimeClassName: kata, priorityClassName: gold", None, None),
    }
    (tmp_path / "x.yaml").write_text(
        "".join(pod % (name, spec) for name, (spec, *_) in pods.items())
        + "---\nkind: PriorityClass\nmetadata: {name: gold}\nvalue: 7\n"
        "---\nkind: PriorityClass\nmetadata: {name: usual}\nvalue: 5\nglobalDefault: true\n"
        "---\nkind: RuntimeClass\nmetadata: {name: kata}\noverhead: {podFixed: {memory: 160Mi}}\n"
        "---\nkind: RuntimeClass\nmetadata: {name: runc}\n"
    )
    for source in (FileSource([str(tmp_path)]), FileSource([str(tmp_path)], keep_objects=True)):
        specs = [pod.spec for pod in source.snapshot(Scope()).pods]
        assert [(spec.priority, spec.overhead) for spec in specs] == [
            (priority, None if overhead is None else resource_list(overhead))
            for _, priority, overhead in pods.values()
        ]
        assert [pod.spec for read in source.objects for pod in read.pods] == specs * bool(source.objects)


def test_the_recorded_configuration_of_a_kubelet_is_read(tmp_path: Path) -> None:
    """A real one has numbers with a fraction."""
    for name in ("configz.json", "nodes.json"):
        (tmp_path / name).write_bytes(read(f"node-1.36-b/{name}"))
    source = FileSource([str(tmp_path)])
    (kubelet,) = source.snapshot(Scope()).kubelets.values()
    configz = read_json("node-1.36-b/configz.json")["kubeletconfig"]
    assert kubelet.memory_throttling_factor == configz["memoryThrottlingFactor"]
    assert kubelet.eviction_hard == configz["evictionHard"]
    assert source.notes == ()


def test_the_lines_of_a_watch_and_of_an_event_router_are_the_objects_in_them(tmp_path: Path) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    event = {"reason": "OOMKilling", "involvedObject": {"kind": "Node", "name": "n1"}, "message": "x"}
    lines = {"type": "ADDED", "object": node}, {"verb": "ADDED", "event": event}
    path = tmp_path / "watch.json"
    path.write_text("\n".join(json.dumps(line, indent=1) for line in lines))
    source = FileSource([str(path)])
    assert [*source.snapshot(Scope()).nodes] == ["n1"]
    assert [event.reason for event in source.event_list(None).events] == ["OOMKilling"]
    assert source.notes == ()


def test_the_processes_of_a_node_are_read_with_its_pods(tmp_path: Path) -> None:
    """What `kubectl qos host -o json` has written: the largest process of each container."""
    paths = []
    for name in ("pods", "summary", "host"):
        paths.append(str(tmp_path / f"{name}.json"))
        Path(paths[-1]).write_bytes(read(f"node-1.36-d/node-set-{name}.json"))
    usage = FileSource(paths).snapshot(Scope()).usage["oom", "be-kids"].of("c")
    assert usage is not None
    assert (usage.kernel_bytes >> 20, usage.scored_bytes >> 20) == (171, 40)


def test_files_without_any_pod(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("kind: Service\n---\nkind: Secret\n")
    assert str(refusal(tmp_path / "x.yaml")) == f"{tmp_path}/x.yaml: no pods found, 1 Secret, 1 Service"


def test_a_custom_resource_whose_controller_makes_the_pods_is_named(tmp_path: Path) -> None:
    spec = {"shards": [{"resources": {"limits": {"memory": "1Gi"}}}]}
    custom = {"apiVersion": "db.example.com/v1", "kind": "Cluster", "metadata": {"name": "a"}, "spec": spec}
    others = [{**custom, "apiVersion": "x.k8s.io/v1"}, {**custom, "spec": {}}, {**custom, "apiVersion": "v1"}]
    path = tmp_path / "x.yaml"
    path.write_text(yaml.safe_dump_all([custom, *others]))
    theirs = "a controller creates their pods: add the output of kubectl get pods -A -o json"
    assert FileSource([str(path)], keep_objects=True).notes == (f"not checked: 1 Cluster: {theirs}",)
    assert (str(refusal(path)), refusal(path).hint) == (f"{path}: no pods found, 4 Cluster", theirs)
    path.write_text(yaml.safe_dump_all(others))
    assert FileSource([str(path)], keep_objects=True).notes == ()


def test_of_several_problems_the_first_few_are_reported(tmp_path: Path) -> None:
    """A file of another kind has a problem in every line, and a folder of answers may hold no pod at all."""
    (tmp_path / "x.yaml").write_text("a: 1\n" + "---\n- b\n" * 5)
    error = refusal(tmp_path / "x.yaml")
    assert "document 1" in str(error)
    others = [note.partition(" (")[0].removeprefix(f"{tmp_path}/x.yaml: ") for note in error.__notes__]
    assert others == ["document 2", "document 3", "document 4", "and 2 more like these"]
    (tmp_path / "y.yaml").write_text(GOOD)
    notes = FileSource([str(tmp_path / name) for name in ("x.yaml", "y.yaml")]).notes
    assert [note for note in notes if note.startswith("error: ")][3] == "error: and 3 more like these"
    folder = tmp_path / "answers"
    folder.mkdir()
    for name in "abcde":
        (folder / f"{name}.yaml").write_text("apiVersion: v1\nkind: Service\n")
    first = ", ".join(f"{folder}/{name}.yaml" for name in "abc")
    assert str(refusal(folder)) == f"{first} and 2 more: no pods found, 5 Service"


def test_every_quantity_that_cannot_be_read_is_named_and_a_hint_follows_its_error(tmp_path: Path) -> None:
    containers = [{"name": text, "resources": {"requests": {"memory": text}}} for text in ("1mi", "1Gi", "?")]
    bad = {"kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": containers}}
    (tmp_path / "a.yaml").write_text(json.dumps(bad))
    (tmp_path / "b.yaml").write_text("kind: [1\nb: {")
    lines = FileSource([str(tmp_path)], keep_objects=True).notes
    hints = [f"hint: write a quantity such as {text}" for text in ("1Mi", "512Mi or 1.5Gi")]
    assert lines[1::2] == (*hints,)
    assert [("[0]" in line, "[2]" in line, "b.yaml" in line).index(True) for line in lines[::2]] == [0, 1, 2]


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(GOOD.encode())))
    source = FileSource(["-"])
    assert source.title == "standard input"
    (pod,) = source.snapshot(Scope()).pods
    assert source.raw(pod)["metadata"] == {"name": pod.name}


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    """As of `-f <(kubectl get pods -o json)`."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=(GOOD,))
    writer.start()
    source = FileSource([str(path)])
    writer.join()
    (pod,) = source.snapshot(Scope()).pods
    assert source.raw(pod)["metadata"] == {"name": pod.name}


def test_the_whole_object_is_found_again(tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    path.write_text(
        json.dumps(
            {
                "kind": "List",
                "items": [pod("a"), pod("a", namespace="other") | {"extra": 7}, metrics("a", "1Mi")],
            }
        )
    )
    source = FileSource([str(path)])
    second = source.snapshot(Scope()).pods[1]
    assert source.raw(second)["extra"] == 7
    path.write_text(GOOD)
    with pytest.raises(InputError, match="pod a is no longer in"):
        source.raw(second)


def test_a_text_as_a_pod() -> None:
    assert pod_from_yaml("spec: {containers: [{name: a}]}").containers[0].name == "a"
    with pytest.raises(InputError, match="Required value"):
        pod_from_yaml("kind: Pod")
    with pytest.raises(InputError, match="the text holds no pod"):
        pod_from_yaml("kind: Service")


def of_client(raw: Any, kind: str) -> Any:
    """What the client makes of a server's answer."""
    return ApiClient().deserialize(json.dumps(raw), kind, "application/json")


def test_every_recorded_pod_is_predicted_as_from_its_json() -> None:
    node = node_from_client(of_client(recorded_node(), "V1Node"))
    assert node.memory_capacity_bytes == 3984140 * 1024
    for raw in recorded_pods():
        from_client = predict(pod_from_client(of_client(raw, "V1Pod")), node, release="1.36")
        from_json = predict(JsonDecoder(Pod).decode(json.dumps(raw).encode()), node, release="1.36")
        assert from_client.qos_class is from_json.qos_class
        assert from_client.containers == from_json.containers
        assert dict(from_client.cgroup.files) == dict(from_json.cgroup.files)


def test_a_pod_made_in_a_program() -> None:
    container = V1Container(name="a", resources=Resources(requests={"memory": "1Gi"}))
    pod = V1Pod(metadata=V1ObjectMeta(name="p"), spec=V1PodSpec(containers=[container]))
    node = V1Node(
        metadata=V1ObjectMeta(name="n"), status=V1NodeStatus(capacity={"memory": "16Gi", "cpu": "4"})
    )
    result = predict(pod_from_client(pod), node_from_client(node))
    assert result.containers[0].oom_score_adj == 938


def test_anything_else_is_refused() -> None:
    wrong: list[Any] = [V1Node(), {"spec": {}}, None]
    for one in wrong:
        with pytest.raises(InputError, match=r"a kubernetes\.client\.V1Pod was expected, not"):
            pod_from_client(one)
    container = V1Container(name="a", resources=Resources(requests={"memory": "1GG"}))
    with pytest.raises(InputError, match="memory: '1GG': unable to parse"):
        pod_from_client(V1Pod(spec=V1PodSpec(containers=[container])))


FOLDER = {
    "deploy/web.yaml": GOOD,
    "deploy/web/kustomization.yaml": "patches: [{path: ./limits.yaml}, {target: {}}]\n"
    "patchesStrategicMerge: [old.yaml]\n",
    "deploy/web/limits.yaml": GOOD,
    "deploy/web/old.yaml": GOOD,
    "deploy/web/new.yaml": GOOD,
    "charts/a/Chart.yaml": "apiVersion: v2\nname: a\n",
    "charts/a/values-prod.yaml": "kind: Deployment\n",
    "charts/a/templates/in/web.yaml": "kind: Pod\nmetadata: {{ name }}\n",
    "charts/a/charts/b/templates/web.yaml": GOOD,
    "charts/a/files/proxy.yaml": "kind: Pod\nmetadata:\n{{- if a }}\n",
    "charts/a/crds/c.yaml": GOOD,
    ".github/workflows/ci.yml": "on: push\njobs: {kind: {}}\n",
    "tsconfig.json": "{ // no JSON\n}\n",
    "tasks.yaml": "- kind: a\n",
    "flat__values.yaml": "kind: Deployment\nimage: web\n",
    "overlay.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n$patch: delete\n",
    "empty.yaml": "# nothing yet\n",
    "none.yaml": "",
}


def test_a_folder_may_hold_what_is_no_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that are named are objects, and a kustomization needs no kind."""
    monkeypatch.chdir(tmp_path)
    for name, text in FOLDER.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    source = FileSource(["."], recursive=True, keep_objects=True)
    assert {one.location.name: one.kind for one in source.objects} == {
        "charts/a/crds/c.yaml": "Pod",
        "deploy/web.yaml": "Pod",
        "deploy/web/kustomization.yaml": "Kustomization",
        "deploy/web/new.yaml": "Pod",
    }
    charts, patches, others = source.skipped
    assert charts.endswith("skipped (helm template DIR | kubectl qos check - checks them): charts/a")
    assert patches.endswith("skipped (kubectl qos check -k DIR checks them): deploy/web")
    assert others == "documents without apiVersion and kind, so no objects, are skipped: 7"
    assert not source.problems
    named = FileSource([*FOLDER], keep_objects=True)
    assert len({one.place[0] for one in named.problems}) == 10
    assert len(named.objects) == 7


@pytest.mark.parametrize(
    "text", ["kind: Pod\n", "apiVersion: v1\n", "kind: List\nitems: [{a: b}]\n", "kind: @"]
)
def test_a_broken_object_of_a_folder_is_a_problem(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(text)
    source = FileSource([str(tmp_path)], keep_objects=True)
    assert (len(source.problems), [*source.skipped]) == (1, [])
