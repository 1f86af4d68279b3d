"""`set` on clusters that are only read, and what no transcript shows (test_transcripts.py)."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from kubectl_qos.cluster import working_tree
from kubectl_qos.cluster.inputs import read_kustomization
from tests.cluster.https_server import Answer, Request
from tests.cluster.kubectl import needs_kubectl
from tests.cluster.replay import Replay
from tests.cluster.test_working_tree import build_once
from tests.end_to_end.command import Run
from tests.end_to_end.conftest import Live

MANIFEST = """\
kind: Deployment
apiVersion: apps/v1
metadata: {name: front, namespace: shop}
spec:
  template:
    spec:
      containers:
      - name: app   # ours
        resources: {limits: {memory: 1Gi}}
"""


def test_a_manifest_that_is_like_that_already_is_not_touched(run: Run) -> None:
    manifest = run.home / "deploy.yaml"
    manifest.write_text(MANIFEST)
    before = manifest.stat()
    done = run("set", "-f", manifest, "-c", "app", "--limits", "memory=1Gi", "--write")
    assert done.err.endswith(f"nothing is written: deployment/front already has these values in {manifest}\n")
    after = manifest.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_dry_run_of_a_file_prints_its_diff_and_leaves_it(run: Run) -> None:
    manifest = run.home / "deploy.yaml"
    manifest.write_text(MANIFEST)
    done = run("set", "-f", manifest, "-c", "app", "--limits", "memory=2Gi", "--write", "--dry-run")
    assert (done.code, manifest.read_text()) == (0, MANIFEST)
    assert done.lines[:2] == [f"--- a/{manifest}", f"+++ b/{manifest}"]
    assert [line for line in done.lines[2:] if line[0] in "+-"] == [
        "-        resources: {limits: {memory: 1Gi}}",
        "+        resources: {limits: {memory: 2Gi}}",
    ]
    assert done.err.endswith(f"deployment/front would be changed in {manifest}\n")


def test_what_sets_the_values_of_files_again_is_named(run: Run) -> None:
    manifest = run.home / "deploy.yaml"
    tracked = "metadata: {annotations: {argocd.argoproj.io/tracking-id: 'a:apps/Deployment:shop/front'}, "
    scaler = (
        "---\nkind: HorizontalPodAutoscaler\nmetadata: {name: hpa, namespace: shop}\nspec:\n"
        "  scaleTargetRef: {kind: Deployment, name: front}\n"
        "  metrics: [{resource: {name: memory, target: {averageUtilization: 80}}}]\n"
    )
    manifest.write_text(MANIFEST.replace("metadata: {", tracked, 1) + scaler)
    done = run("set", "-f", manifest, "-c", "app", "--limits", "memory=2Gi", "--requests", "memory=2Gi")
    assert "\n    Argo CD application a: reverts the values" in done.out
    assert "\n    HorizontalPodAutoscaler hpa: once the pods are replaced: its target" in done.out


LIMITED = """\
kind: LimitRange
metadata: {name: defaults, namespace: t}
spec: {limits: [{type: Container, default: {memory: 256Mi, cpu: 500m}, max: {memory: 1Gi}}]}
---
kind: Deployment
metadata: {name: d, namespace: t}
spec: {template: {spec: {containers: [{name: c, resources: {}}]}}}
"""


def test_a_limit_range_of_the_files_completes_the_pod_before_and_after(run: Run) -> None:
    manifest = run.home / "limited.yaml"
    manifest.write_text(LIMITED)
    given = ("set", "-f", manifest, "--node-memory", "8Gi")
    done = run(*given, "--requests", "memory=128Mi")
    assert "* Class: Guaranteed → Burstable when recreated" in done.lines
    assert "    c oom_score_adj  -997 → 985  (+1982)" in done.lines
    assert "  Class: Guaranteed, stays" in run(*given, "--limits", "memory=128Mi").lines
    stays = run(*given, "--class", "besteffort")
    assert "LimitRange defaults completes its pods, so they would be Guaranteed" in stays.err
    refused = run(*given, "--limits", "memory=3Gi", "--write")
    assert "  Server: would accept this, and refuse its pods" in refused.lines
    assert (refused.code, manifest.read_text()) == (1, LIMITED)


def test_another_kind_of_that_name_is_suggested(run: Run) -> None:
    done = run("set", "--demo", "deploy/search", "-n", "shop", "--limits", "memory=1Gi")
    assert (done.code, done.err.splitlines()[1]) == (1, "hint: did you mean statefulset/search?")


def test_a_rollout_that_would_stall_is_shown_and_needs_force(run: Run) -> None:
    words = "set --demo statefulset/db -n data -c a --limits memory=6Gi --requests memory=6Gi"
    given = words.split()
    shown = run(*given)
    assert "  Server: would accept this, and the rollout would stall" in shown.lines
    assert shown.err.endswith("nothing is changed: --yes --force applies it to the demo\n")
    refused = run(*given, "--yes")
    assert refused.code == 1
    assert "statefulset/db is not changed: ResourceQuota memory: the rollout would stall" in refused.err
    assert run(*given, "--yes", "--force", "--wait=false").code == 0


def test_a_recorded_deployment(run: Run, live: Live) -> None:
    replay = Replay()

    def answer(request: Request) -> Answer:
        """No list of a node or a single name was recorded, so that of the pods answers, with a node."""
        query = {name: value for name, value in request.query.items() if name != "fieldSelector"}
        path = request.path
        if path == "/api/v1/pods":
            path, query = "/api/v1/namespaces/rec/pods", {**query, "labelSelector": "app=web"}
        found = replay(replace(request, path=path, query=query))
        if "labelSelector" not in query:
            return found
        return replace(found, body=re.sub(rb'"spec": ?{', b'"spec":{"nodeName":"n1",', found.body))

    server = live(answer)
    flags = ("-n", "rec", "--limits", "memory=1Gi")
    done = run("set", "deploy/web", *flags, "-o", "patch")
    assert done.code == 0, done.err
    container = {"name": "web", "resources": {"limits": {"memory": "1Gi"}}}
    assert yaml.safe_load(done.out) == {"spec": {"template": {"spec": {"containers": [container]}}}}
    assert "kubectl patch deployment web -n rec --patch-file FILE\n" in done.err
    shown = run("set", "deploy/web", *flags, "--dry-run=client")
    assert "  How to apply: new pods from the template" in shown.lines
    assert "  Pods: 2 pods on 1 node, once all are recreated" in shown.lines
    assert {request.method for request in server.requests} == {"GET"}


OWNER = "change its owner: kubectl qos set deployment/web -n team-a"


@pytest.mark.parametrize(
    ("about", "hint"),
    [
        ("pod/crunch-x2k9f --limits memory=400Mi", "delete and recreate the job with these values"),
        ("pod/etl-28930-9xw2c --limits memory=400Mi", "delete and recreate the job with these values"),
        ("pod/web-5d4f8c-8szcd --class burstable", f"{OWNER} -c c --limits cpu-, or add --by template"),
    ],
)
def test_a_preview_has_the_hint_of_the_refusal(run: Run, about: str, hint: str) -> None:
    """A new Guaranteed pod, a job's pod and an ended one must be recreated: --yes does not apply that."""
    shown, refused = (run("set", "--demo", *about.split(), *yes) for yes in ([], ["--yes"]))
    assert (shown.code, refused.code) == (0, 1)
    assert "\n  How to apply: the pod must be recreated\n" in shown.out
    assert shown.err.endswith(f"nothing is changed: --yes cannot apply it: {hint}\n")
    assert refused.err.endswith(f"\nhint: {hint}\n")
    assert "impossible" not in refused.out


def test_a_preview_names_the_flag_that_the_change_needs(run: Run) -> None:
    about = ("set", "--demo", "pod/db-0", "--limits", "cpu=5", "-c", "a", "--requests", "cpu=5")
    assert "nothing is changed: --yes --force applies it to the demo\n" in run(*about).err
    assert "or add --force to apply it anyway\n" in run(*about, "--yes").err


def test_a_strategy_that_is_not_possible_is_no_remedy(run: Run) -> None:
    about = ("set", "--demo", "pod/crunch-x2k9f", "--limits", "memory=400Mi", "--yes", "--by", "template")
    assert run(*about).err.endswith("the template of job/crunch is immutable: delete and recreate the job\n")


def test_the_least_request_with_which_a_pod_outlives_another(run: Run) -> None:
    api = ("set", "--demo", "pod/api-7d9c5b6f8-x2mzq")
    found = run(*api, "--outlive", "pod/notebook-0", "-o", "patch")
    assert found.code == 0, found.err
    (one,) = yaml.safe_load(found.out)["spec"]["containers"]
    wanted = one["resources"]["requests"]["memory"]
    assert wanted.endswith("Mi")
    shown = run(*api, "--requests", f"memory={wanted}", "--limits", "memory=3Gi")
    assert "killed before it when c restarts: batch/crunch-x2k9f, ml/notebook-0" in shown.out
    less = run(*api, "--requests", f"memory={int(wanted[:-2]) - 1}Mi", "--limits", "memory=3Gi")
    assert "ml/notebook-0" not in less.out
    assert run(*api, "--rank-below", "3", "-o", "patch").out == found.out


BASE = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: api
spec:
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: api}}
    spec:
      containers:
      - name: c
        image: api   # pinned elsewhere
        resources:
          limits:
            memory: 2Gi   # as measured in May
"""
PAGE = Path(__file__).parents[2] / "docs" / "write-back.md"


@pytest.fixture(autouse=True)
def _each_folder_is_built_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(working_tree, "read_kustomization", build_once)


@pytest.fixture
def tree(run: Run) -> Path:
    """A repository in which two overlays share a base, as on the page."""
    root = run.home / "gitops"
    for name, text in {
        ".git/HEAD": "",
        "base/deployment.yaml": BASE,
        "base/kustomization.yaml": "resources: [deployment.yaml]\n",
        "prod/kustomization.yaml": "namespace: shop\nresources: [../base]\n",
        "staging/kustomization.yaml": "namespace: shop-staging\nresources: [../base]\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@needs_kubectl
def test_a_patch_for_kustomize_is_built_by_kubectl(run: Run, tree: Path) -> None:
    for words in (("fix", "deploy/api"), ("set", "deploy/api", "--limits", "memory=3Gi")):
        printed = run(*words, "--demo", "-o", "kustomize")
        assert printed.code == 0, printed.err
        first, *entry = [line[2:] for line in printed.out.splitlines() if line.startswith("# ")]
        assert first == "qos-deployment-api.yaml, and in kustomization.yaml:"
        (tree / "prod" / "qos-deployment-api.yaml").write_text(printed.out)
        listed = "\n".join(entry)
        (tree / "prod" / "kustomization.yaml").write_text(
            f"namespace: shop\nresources: [../base]\n{listed}\n"
        )
        built = yaml.safe_load(read_kustomization(str(tree / "prod")))
        patch = yaml.safe_load(printed.out)
        change, container = (one["spec"]["template"]["spec"]["containers"][0] for one in (patch, built))
        assert change["resources"].items() <= container["resources"].items()
        assert (container["name"], container["image"]) == ("c", "api")
    (run.home / "declared.yaml").write_text(BASE.replace("  name: api", "  name: api\n  namespace: other", 1))
    of_file = run("set", "deploy/api", "-n", "other", "-f", "declared.yaml", *words[2:], "-o", "kustomize")
    assert "#     namespace: other" in of_file.out.splitlines(), "another namespace may have one too"
    owned = run("set", "pod/api-7d9c5b6f8-x2mzq", "--limits", "memory=3Gi", "--demo", "-o", "kustomize")
    assert owned.out == run("set", "deploy/api", "--limits", "memory=3Gi", "--demo", "-o", "kustomize").out
    both = run("set", "deploy/api", "--limits", "memory=3Gi", "--demo", "--yes", "-o", "kustomize")
    assert both.err.startswith("error: -o kustomize only prints a patch file\n")


@needs_kubectl
def test_a_fix_is_written_where_its_object_comes_from(run: Run, tree: Path) -> None:
    """What is printed is what the page shows, from the refusal of a shared base on."""
    page = PAGE.read_text(encoding="utf-8")
    words = ("fix", "deploy/api", "-n", "shop", "--demo", "--apply", "1", "--write", "gitops")
    refused = run(*words)
    assert refused.code == 1
    assert "".join(refused.err.splitlines(keepends=True)[-2:]) in page
    tried = run(*words, "--into", "overlay", "--dry-run")
    assert tried.code == 0, tried.err
    assert not (tree / "prod" / "qos-deployment-api.yaml").exists()
    done = run(*words, "--into", "overlay")
    assert done.code == 0, done.err
    patch = (tree / "prod" / "qos-deployment-api.yaml").read_text().splitlines()
    assert "--- /dev/null\n+++ b/prod/qos-deployment-api.yaml\n" in tried.out
    assert {f"+{line}" for line in patch} <= set(tried.lines)
    assert f"```text\n{done.out}```" in page
    assert done.err.startswith("deployment shop/api, kubelet 1.36\n")
    assert (tree / "prod" / "qos-deployment-api.yaml").read_text() in page
    assert (tree / "base" / "deployment.yaml").read_text() == BASE
    again = run(*words, "--into", "overlay")
    assert "nothing is written: deployment/api in shop already has these values in prod\n" in again.err
    both = run("set", *words[1:5], "--limits", "memory=4Gi", "--write", "gitops", "--into", "base")
    assert "Warning: c limits.memory differed before: 3Gi in prod, 2Gi in the cluster\n" in both.err
    assert both.code == 0, both.err
    lower = run(*words)
    assert lower.code == 1
    assert lower.err.endswith(
        "error: prod has c limits.memory 4Gi already, more than 3Gi: roll it out; nothing is written\n"
    )


@needs_kubectl
def test_a_pod_is_changed_through_the_source_of_its_workload(run: Run, tree: Path) -> None:
    words = ("pod/api-7d9c5b6f8-x2mzq", "-n", "shop", "--demo", "--limits", "memory=3Gi")
    done = run("set", *words, "--write", "gitops", "--into", "base", "-o", "patch")
    assert done.code == 0, done.err
    assert (tree / "base" / "deployment.yaml").read_text() == BASE.replace("2Gi", "3Gi")
    assert yaml.safe_load(done.out)["spec"]["containers"][0]["resources"]["limits"] == {"memory": "3Gi"}
    assert "staging changes too: deployment/api in shop-staging" in done.err


@needs_kubectl
def test_a_kustomization_is_its_own_working_tree(run: Run, tree: Path) -> None:
    words = ("-k", "gitops/staging", "--requests", "memory=1Gi", "--write", "--into", "overlay")
    tried = run("set", "deploy/api", *words, "--dry-run")
    assert (tried.code, (tree / "staging" / "qos-deployment-api.yaml").exists()) == (0, False), tried.err
    assert "+++ b/staging/kustomization.yaml\n" in tried.out
    done = run("set", "deploy/api", *words)
    assert done.code == 0, done.err
    assert (tree / "staging" / "qos-deployment-api.yaml").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("set --demo pod/x --limits memory=1Gi --write", "--write changes a manifest file"),
        ("set --demo pod/x --limits memory=1Gi --into base", "--into needs --write DIR"),
        ("set --demo pod/x --limits memory=1Gi --write . --dry-run=server", "--write and --dry-run=server"),
        ("set pod/x --limits memory=1Gi --write .", "hint: without a cluster: -k FOLDER --write"),
        ("set --demo pod/x --limits memory=1Gi --yes --write .", "--yes does nothing with --write DIR"),
        ("fix --demo --write .", "--write needs --apply N"),
    ],
)
def test_what_does_not_go_with_a_working_tree(run: Run, words: str, message: str) -> None:
    done = run(*words.split())
    assert (done.code, message in done.err) == (1 if "without" in message else 2, True), done.err
