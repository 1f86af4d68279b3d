"""`set` from the outside: previews, patches, manifests, exit codes, and what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tests.cluster.cluster_objects import metrics, node, pod
from tests.cluster.https_server import Answer, Request
from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.object_server import ObjectServer
from tests.cluster.replay import Replay
from tests.cluster.serving import Serve
from tests.end_to_end.command import Run

DB = ("set", "--demo", "pod/db-0", "-n", "data")
MANIFEST = """\
kind: Deployment
apiVersion: apps/v1
metadata: {name: front, namespace: shop}
spec:
  template:
    spec:
      initContainers: [{name: warm}]
      containers:
      - name: app   # ours
        resources: {limits: {memory: 1Gi}}
      - name: log
"""


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    path = tmp_path / "deploy.yaml"
    path.write_text(MANIFEST)
    return path


def test_a_patch_of_one_container(run: Run) -> None:
    done = run(*DB, "-c", "b", "--requests", "memory=64Mi", "--limits", "memory=64Mi,cpu=1", "-o", "patch")
    resources = {"requests": {"memory": "64Mi"}, "limits": {"memory": "64Mi", "cpu": "1"}}
    assert yaml.safe_load(done.out) == {"spec": {"containers": [{"name": "b", "resources": resources}]}}
    assert done.code == 0
    assert done.err.startswith("a server refuses this patch: ")


def test_a_patch_that_lands_in_place_says_how(run: Run) -> None:
    done = run("set", "--demo", "pod/cni-agent-8kt7s", "--requests", "memory=256Mi", "-o", "patch")
    assert done.code == 0
    assert done.err == (
        "kubectl patch pod cni-agent-8kt7s -n kube-system --subresource resize --patch-file FILE\n"
    )


def test_all_containers_if_none_is_named_and_removals(run: Run, manifest: Path) -> None:
    done = run("set", "-f", manifest, "--limits", "memory-,cpu=1", "-o", "patch")
    found = yaml.safe_load(done.out)["spec"]["template"]["spec"]
    assert [one["name"] for kind in found.values() for one in kind] == ["app", "log", "warm"]
    assert found["containers"][0]["resources"] == {"limits": {"memory": None, "cpu": "1"}}
    assert found["initContainers"][0]["resources"] == {"limits": {"cpu": "1"}}


@pytest.mark.parametrize("flag", ["-c", "--containers", "--container"])
def test_containers_by_patterns(run: Run, manifest: Path, flag: str) -> None:
    done = run("set", "-f", manifest, flag, "*o*", flag, "app", "--limits=cpu=1", "-o", "patch")
    found = yaml.safe_load(done.out)["spec"]["template"]["spec"]
    assert [one["name"] for one in found["containers"]] == ["app", "log"]
    assert "initContainers" not in found


def test_the_pods_own_resources(run: Run, manifest: Path) -> None:
    done = run("set", "-f", manifest, "--pod-level", "--limits", "memory=4Gi", "-o", "patch")
    assert yaml.safe_load(done.out)["spec"]["template"]["spec"] == {
        "resources": {"limits": {"memory": "4Gi"}}
    }
    older = run(
        "set",
        "-f",
        manifest,
        "--pod-level",
        "--limits",
        "memory=4Gi",
        "--feature-gates",
        "PodLevelResources=false",
    )
    assert (older.code, older.out) == (1, "")
    assert "has no pod-level resources here" in older.err


@pytest.mark.parametrize("output", ["yaml", "json"])
def test_the_whole_manifest_from_standard_input(run: Run, output: str) -> None:
    done = run("set", "-f", "-", "-c", "app", "--requests", "cpu=1", "-o", output, given=MANIFEST)
    assert done.code == 0
    found = yaml.safe_load(done.out)
    wanted = yaml.safe_load(MANIFEST)
    wanted["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "1"}
    assert found == wanted


def test_a_manifest_is_written_in_place(run: Run, manifest: Path) -> None:
    done = run("set", "-f", manifest, "-c", "app", "--limits", "memory=2Gi", "--requests", "cpu=1", "--write")
    assert done.code == 0
    assert done.err.endswith(f"deployment/front is changed in {manifest}\n")
    line = '        resources: {limits: {memory: 2Gi}, requests: {cpu: "1"}}\n'
    assert manifest.read_text() == MANIFEST.replace("        resources: {limits: {memory: 1Gi}}\n", line)
    before = manifest.stat()
    again = run(
        "set", "-f", manifest, "-c", "app", "--limits", "memory=2Gi", "--requests", "cpu=1", "--write"
    )
    assert (again.code, again.err.splitlines()[-1]) == (
        0,
        f"nothing is written: deployment/front is like that already in {manifest}",
    )
    assert manifest.stat() == before


def test_what_a_server_would_refuse_is_shown_and_not_written(run: Run, manifest: Path) -> None:
    done = run("set", "-f", manifest, "-c", "app", "--requests", "memory=2Gi", "--write")
    sentence = (
        'spec.containers[0].resources.requests: Invalid value: "2Gi": must be less than or equal to memory'
        " limit of 1Gi"
    )
    assert done.code == 1
    assert "! Server: would refuse these values" in done.lines
    assert f"    {sentence}" in done.lines
    assert f"error: deployment/front: a server would refuse this: {sentence}\n" in done.err
    assert manifest.read_text() == MANIFEST


def test_a_job_cannot_be_changed_but_its_manifest_can(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(MANIFEST.replace("Deployment", "Job"))
    done = run("set", "-f", path, "--limits", "cpu=1")
    assert done.code == 1
    assert "! How to apply: impossible" in done.lines
    assert done.err.splitlines()[-2:] == [
        "error: job/front: the pod template of a Job is immutable",
        "hint: delete and recreate the Job",
    ]
    assert run("set", "-f", path, "--limits", "cpu=1", "--write").code == 0
    assert 'cpu: "1"' in path.read_text()


def test_a_static_pod_comes_from_its_file(run: Run) -> None:
    done = run("set", "--demo", "pod/kube-apiserver-control-1", "--limits", "memory=1Gi")
    assert done.code == 1
    assert done.err.splitlines() == [
        "error: pod/kube-apiserver-control-1: a static pod comes from a file on its node",
        "hint: change that file",
    ]
    assert "Node control-1" not in done.out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--limits", "memory=4Gi", "-c", "a"], 0),
        (["--to", "guaranteed"], 0),
        (["--to", "burstable"], 1),
        (["--limits", "cpu=3", "-c", "a", "--requests", "cpu=3"], 1),
        (["--limits", "cpu=1", "-c", "a"], 2),
        (["--limits", "cpu=1x"], 2),
        (["--limits", "cpu"], 2),
        (["-c", "none", "--limits", "cpu=1"], 2),
    ],
)
def test_exit_codes_as_kubectl_diff_has_them(run: Run, arguments: list[str], code: int) -> None:
    done = run(*DB, *arguments, "--exit-code", "--dry-run=client")
    assert done.code == code
    assert run(*DB, *arguments).code == (0 if code < 2 else 2 if arguments == ["--limits", "cpu"] else 1)


def test_what_a_document_lacks_is_above_one_too(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(f"{MANIFEST}---\nkind: [\n")
    assert run("set", "-f", path, "--limits", "cpu=1").code == 1
    assert run("set", "-f", path, "--limits", "cpu=1", "--exit-code").code == 2


def test_nothing_to_change_is_an_empty_patch(run: Run) -> None:
    done = run(*DB, "--to", "guaranteed", "-o", "patch")
    assert (done.code, done.out, done.err) == (0, "{}\n", "")


def test_a_number_to_choose_is_named_and_can_be_given(run: Run, manifest: Path) -> None:
    done = run("set", "-f", manifest, "--to", "guaranteed")
    assert (done.code, done.out) == (1, "")
    missing = ["warm: cpu", "warm: memory", "app: cpu", "log: cpu", "log: memory"]
    steps = "; ".join(one.replace(": ", ": set limits.") + " to a number of your choice" for one in missing)
    assert done.err.splitlines()[0] == (
        f"error: deployment/front: Guaranteed needs more than what is there: {steps}"
    )
    given = run("set", "-f", manifest, "--to", "Guaranteed", "--limits", "cpu=1,memory=1Gi")
    assert given.code == 0
    assert "* Class: Burstable → Guaranteed" in given.lines


def test_a_value_that_keeps_the_pod_from_the_class_is_named(run: Run) -> None:
    done = run(*DB, "--to", "guaranteed", "--requests", "memory=64Mi")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(
        "error: pod/db-0: a: --requests memory=64Mi keeps it from Guaranteed, which needs memory=4Gi"
    )


def test_ambiguous_names_are_refused_with_their_places(run: Run, tmp_path: Path) -> None:
    other = MANIFEST.replace("shop", "test").replace("front", "other")
    (tmp_path / "a.yaml").write_text(f"{MANIFEST}---\n{other}")
    (tmp_path / "b.yaml").write_text(MANIFEST)
    nothing = run("set", "-f", ".", "--limits", "cpu=1", "--write")
    assert (nothing.code, nothing.out) == (1, "")
    places = "a.yaml: document 1 (line 1), a.yaml: document 2 (line 12), b.yaml"
    assert nothing.err.startswith(f"error: there are 3 pods and workloads: {places}\n")
    twice = run("set", "-f", ".", "deploy/front", "--limits", "cpu=1", "--write")
    assert twice.err.startswith(
        "error: deployment/front is in 2 places: a.yaml: document 1 (line 1), b.yaml\n"
    )
    assert run("set", "-f", ".", "deploy/other", "--limits", "cpu=1", "--write").code == 0
    assert (tmp_path / "a.yaml").read_text().startswith(f"{MANIFEST}---\n")
    assert run("set", "-f", ".", "-n", "test", "--limits", "cpu=2", "--write").code == 0
    assert (tmp_path / "b.yaml").read_text() == MANIFEST


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--demo", "pod/db-0"], 2, "error: you must specify an update to requests or limits"),
        (["--demo", "--limits", "cpu=1"], 2, "error: You must provide one or more resources"),
        (["--demo", "pod/a", "pod/b", "--limits", "cpu=1"], 2, "error: one pod or workload"),
        (["--demo", "pod/db-0", "--limits", "cpu=1", "--dry-run=server"], 2, "error: --dry-run=server is"),
        (["--demo", "pod/db-0", "--limits", "cpu=1", "--dry-run=all"], 2, "error: argument --dry-run"),
        (["--demo", "pod/db-0", "--limits", "cpu=1", "--yes"], 2, "error: --yes is about a cluster"),
        (
            ["-f", "x", "--limits", "cpu=1", "--by=template"],
            2,
            "error: --by is about a cluster, and -f is none",
        ),
        (
            ["--demo", "pod/db-0", "--to", "burstable", "--outlive", "a"],
            2,
            "error: --to and --outlive are two",
        ),
        (["--demo", "pod/db-0", "--rank-below", "0"], 2, "error: argument --rank-below: '0' is no rank"),
        (["--demo", "pod/db-0", "--outlive", "deploy/api"], 2, "error: --outlive deploy/api: the kernel"),
        (["--demo", "pod/db-0", "--outlive", "none"], 1, 'error: pods "none" not found beside pod/db-0'),
        (["--demo", "pod/db-0", "--outlive", "db-0"], 1, "error: pod/db-0 cannot outlive itself"),
        (["--demo", "pod/db-0", "--rank-below", "9", "-c", "a"], 2, "error: -c says what --requests and"),
        (["--demo", "pod/db-0", "--limits", "cpu=1", "--write"], 2, "error: --write changes a manifest file"),
        (["-f", "-", "--limits", "cpu=1", "--write"], 2, "error: --write cannot change standard input"),
        (["-f", "x", "--limits", "cpu=1", "--write", "--dry-run=client"], 2, "error: --write and --dry-run"),
        (["--demo", "pod/db-0", "--to", "burstable", "-c", "a"], 2, "error: -c says what --requests"),
        (["--demo", "pod/db-0", "--to", "best"], 2, "error: argument --to: invalid choice"),
        (
            ["--demo", "pod/db-0", "--limits", "cpu=1", "-c", "a", "--pod-level"],
            2,
            "error: --pod-level changes",
        ),
        (["--demo", "pod/none", "--limits", "cpu=1"], 1, 'error: pods "none" not found in demo'),
        (["--demo", "pod/db-0", "--limits", "mem=1Gi"], 1, 'error: --limits mem=1Gi: "mem" must be'),
        (["--demo", "pod/db-0", "--limits", "cpu=-1"], 1, "error: --limits cpu=-1: must be greater"),
        (
            ["--demo", "pod/db-0", "--limits", "cpu=1", "-c", "x"],
            1,
            "error: unable to find container named x in pod/db-0\nhint: its containers are: a, b\n",
        ),
        (["--demo", "--node", "none", "-f", "x", "--limits", "cpu=1"], 2, "error: --demo and -f cannot"),
    ],
)
def test_what_is_refused(run: Run, arguments: list[str], code: int, sentence: str) -> None:
    done = run("set", *arguments)
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith(sentence)


def test_a_live_pod_among_those_of_its_node(run: Run, serve: Serve, tmp_path: Path) -> None:
    objects = ObjectServer(
        pods=[pod("web", request="1Gi"), pod("other", request="2Gi")],
        nodes=[node("worker-1")],
        metrics=[metrics("web", "1Gi"), metrics("other", "1Gi")],
    )
    server = serve(objects)
    config = write(tmp_path / "config", kubeconfig(server))
    flags = ("-n", "shop", "--kubeconfig", config, "--requests", "memory=4Gi", "--usage=metrics")
    done = run("set", "pod/web", *flags, "--dry-run=client")
    assert done.code == 0
    assert done.lines[0] == "pod shop/web on worker-1, kubelet 1.36"
    assert "* Kill rank on worker-1: 1 → 2 of 2" in done.lines
    assert {request.method for request in server.requests} == {"GET"}
    whole = run("set", "pod/web", *flags, "-o", "json")
    assert (whole.code, whole.err) == (0, "")
    found = json.loads(whole.out)
    assert found["spec"]["containers"][0]["resources"] == {"requests": {"memory": "4Gi"}}
    assert "uid" not in found["metadata"]


def test_a_recorded_deployment(run: Run, serve: Serve, tmp_path: Path) -> None:
    replay = Replay()

    def answer(request: Request) -> Answer:
        """No list of a single name was recorded, so the whole list answers."""
        query = {name: value for name, value in request.query.items() if name != "fieldSelector"}
        return replay(replace(request, query=query))

    server = serve(answer)
    config = write(tmp_path / "config", kubeconfig(server))
    flags = ("-n", "rec", "--kubeconfig", config, "--limits", "memory=1Gi")
    done = run("set", "deploy/web", *flags, "-o", "patch")
    assert done.code == 0, done.err
    container = {"name": "web", "resources": {"limits": {"memory": "1Gi"}}}
    assert yaml.safe_load(done.out) == {"spec": {"template": {"spec": {"containers": [container]}}}}
    assert "kubectl patch deployment web -n rec --patch-file FILE\n" in done.err
    shown = run("set", "deploy/web", *flags, "--dry-run=client")
    assert "  How to apply: new pods from the template" in shown.lines
    assert {request.method for request in server.requests} == {"GET"}


def test_the_least_request_with_which_a_pod_outlives_another(run: Run) -> None:
    api = ("set", "--demo", "pod/api-7d9c5b6f8-x2mzq")
    found = run(*api, "--outlive", "pod/notebook-0", "-o", "patch")
    assert found.code == 0, found.err
    (one,) = yaml.safe_load(found.out)["spec"]["containers"]
    wanted = one["resources"]["requests"]["memory"]
    assert wanted.endswith("Mi")
    shown = run(*api, "--requests", f"memory={wanted}", "--limits", "memory=3Gi")
    assert "now killed before it: batch/crunch-x2k9f, ml/notebook-0" in shown.out
    less = run(*api, "--requests", f"memory={int(wanted[:-2]) - 1}Mi", "--limits", "memory=3Gi")
    assert "ml/notebook-0" not in less.out
    assert run(*api, "--rank-below", "3", "-o", "patch").out == found.out


def test_what_no_request_reaches_is_said(run: Run) -> None:
    done = run("set", "--demo", "pod/api-7d9c5b6f8-x2mzq", "--rank-below", "99")
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "error: pod/api-7d9c5b6f8-x2mzq: no memory request leads to rank 99:"
        " the last rank on its node is 17\n"
    )
    given = run("set", "--demo", "pod/api-7d9c5b6f8-x2mzq", "--rank-below", "3", "--requests", "memory=1Mi")
    assert "--requests memory=1Mi keeps it from rank 3, which needs memory=" in given.err
