"""What is said of manifests that are wrong in some way: each with its exit code, rows and stderr."""

from __future__ import annotations

import json
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Final

import yaml

from kubectl_qos.cli.options import SourceOptions
from kubectl_qos.cli.sources import resolve_source
from tests.end_to_end.command import Run
from tests.end_to_end.golden_text import assert_as_kept

MANIFESTS: Final = {
    **yaml.safe_load(Path(__file__).with_name("manifests.yaml").read_text(encoding="utf-8")),
    "too deep": "kind: Pod\nspec: " + "[" * 100_000,
}
BINARY: Final = {
    "UTF-16, as of PowerShell": MANIFESTS["an unknown field of a container"].encode("utf-16"),
    "half of UTF-16": "kind: Pod\n".encode("utf-16")[:-1],
    "an image": b"\x89PNG\r\n\x1a\n\0\0\0",
    "not UTF-8 in one document": (
        b"{kind: Pod, metadata: {name: p}, spec: {containers: [{name: a}]}}\n---\nkind: \xff\n"
    ),
}


def test_every_manifest_is_answered_as_is_kept(run: Run) -> None:
    contents = {name: text.encode() for name, text in MANIFESTS.items()} | BINARY
    file, parts = run.home / "x.yaml", []
    for name, content in contents.items():
        file.write_bytes(content)
        done = run("top", "-f", file.name, "-o", "name")
        lines = [*done.out.splitlines(), *(f"2> {line}" for line in done.err.splitlines())]
        parts.append("\n".join([f"{name} [{done.code}]", *(f"  {line}" for line in lines), ""]))
        assert "unexpected" not in done.err, name
    assert_as_kept("manifests", "\n".join(parts))


THREE: Final = """\
apiVersion: v1
kind: Pod
metadata: {name: plain, namespace: shop}
spec: {containers: [{name: app}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: api, namespace: shop}
spec:
  template:
    spec:
      containers: [{name: app, resources: {requests: {memory: 1Gi}, limits: {memory: 2Gi}}}, {name: log}]
---
apiVersion: v1
kind: Pod
metadata: {name: db, namespace: shop}
spec:
  containers:
  - name: db
    resources: {limits: {cpu: 1, memory: 4Gi}}
"""
USAGE: Final = """\
---
apiVersion: metrics.k8s.io/v1beta1
kind: PodMetrics
metadata: {name: db, namespace: shop}
containers: [{name: db, usage: {memory: 3900Mi}}]
"""


def test_a_text_without_requests_needs_them(run: Run) -> None:
    (run.home / "ended.txt").write_text("Last State:     Terminated\n  Reason:       OOMKilled\n")
    for command in ("explain", "fix", "next"):
        error = run(command, "-f", "ended.txt").err
        assert "no pods whose requests are known" in error
        assert "kubectl qos kills takes a status alone too" in error


UNREAD: Final = """\
error: cut.json: not valid JSON: Input data was truncated
Warning: the answer leaves out what could not be read
"""


def test_what_could_not_be_read_is_said_before_anything_else(run: Run) -> None:
    (run.home / "cut.json").write_text('{"kind": "List", "items": [')
    node = {"kind": "Node", "metadata": {"name": "n"}, "status": {"capacity": {"memory": "8Gi"}}}
    (run.home / "node.yaml").write_text(yaml.safe_dump(node))
    files = ("-f", "node.yaml", "-f", "cut.json")
    of_node = ["top", "nodes"], ["simulate", "node/n"], ["tree", "node/n"], ["host"], ["report", "node/n"]
    for words in (["next"], ["fix"], ["top"], ["kills"], ["explain", "pod/a"], *of_node):
        done = run(*words, *files)
        assert (done.err.startswith(UNREAD), done.err.count("cut.json: not valid")) == (True, 1), words
        assert done.code == 1
    options = SourceOptions(files=(str(run.home / "node.yaml"), str(run.home / "cut.json")))
    with redirect_stderr(StringIO()) as stderr:
        resolve_source(options)
    assert "cut.json: not valid" in stderr.getvalue(), "also before anything is printed on stdout"
    assert "No OOM kills or evictions found in what could be read\n" in run("kills", *files).err
    page = run("report", *files).out
    assert "covering all known deaths in what could be read.\n" in page
    assert "\nThis page leaves out what could not be read: cut.json: not valid JSON: Input data was" in page
    assert "truncated. No OOM kills or evictions found in what could be read.\n" in page


def test_the_hint_for_pods_without_a_node_leads_on(run: Run) -> None:
    """Pods of manifests are on one such node, in the order of oom_score_adj where usage is unknown."""
    (run.home / "x.yaml").write_text(THREE)
    order = (
        "by oom_score_adj alone the kernel kills in this order: shop/plain (1000), shop/deployment/api (999),"
        " shop/db (-997)"
    )
    for words in (["fix"], ["fix", "--priorities"], ["next"]):
        done = run(*words, "-f", "x.yaml")
        assert (done.code, "puts the others on a node of that size" in done.err) == (1, True)
        done = run(*words, "-f", "x.yaml", "--node-memory", "16Gi")
        assert (done.code, order in done.out) == (0, True), words
    assert (
        "; a memory request of 1Gi lowers a pod's oom_score_adj by 62\n"
        in run("fix", "-f", "x.yaml", "--node-memory", "16Gi").out
    )


def test_manifests_can_be_simulated_on_one_node(run: Run) -> None:
    """Without usage what needs none; the node has no name."""
    (run.home / "x.yaml").write_text(THREE)
    lines = run("simulate", "-f", "x.yaml", "--node-memory", "5Gi", "--all-at-limit").lines
    assert lines[0] == "a node, kubelet 1.36: it has 5Gi; the usage of its pods is unknown"
    assert lines[4].split()[1:6] == ["kernel:", "node", "full", "shop/api", "app"]
    assert "--node-memory 16Gi puts" in run("simulate", "-f", "x.yaml", "--all-at-limit").err
    on_a_node = THREE.split("---")[0].replace("spec: {", "spec: {nodeName: n, ")
    (run.home / "y.yaml").write_text(on_a_node)
    on_n = run("simulate", "-f", "y.yaml", "--node-memory", "5Gi", "--all-at-limit")
    assert on_n.lines[0].startswith("node n, kubelet 1.36"), "it is the only node"
    (run.home / "z.yaml").write_text(
        on_a_node.replace("nodeName: n", "nodeName: m").replace("plain", "other")
    )
    both = "simulate", "-f", "y.yaml", "-f", "z.yaml", "--node-memory", "5Gi", "--all-at-limit"
    assert "which node?" in run(*both).err
    grows = ("--node-memory", "5Gi", "--grow", "pod/other=+1Gi")
    grown = run(*both[:5], *grows)
    of_two = run(*both[:5], *grows, "--grow", "pod/plain=+1Gi").err
    assert "the pods of --grow are on several nodes: m, n\n" in of_two
    assert grown.lines[0].startswith("node m, kubelet 1.36"), "the node of the pod that grows"
    text = (run.home / "y.yaml").read_text() + "---" + (run.home / "z.yaml").read_text()
    assert run("simulate", "-f", "-", *grows, given=text).lines[0] == grown.lines[0], "stdin is read once"
    assert run("simulate", "--demo", "--grow", "pod/search-0:c=+1Gi").lines[0].startswith("node w")


def test_manifests_with_usage_have_distances(run: Run) -> None:
    (run.home / "x.yaml").write_text(THREE + USAGE)
    flags = ("-f", "x.yaml", "--node-memory", "16Gi", "-n", "shop")
    assert "shop/db:db" in run("next", *flags).out
    for words in (["fix"], ["fix", "pod/db"]):
        assert "db limits.memory 4Gi → 5Gi" in run(*words, *flags).out, words


PART: Final = "containers:\n- {name: app, resources: {limits: {cpu: 1, memory: 1Gi}}}\n"


def test_parts_of_manifests_as_people_quote_them(run: Run) -> None:
    spec = "spec:\n  " + PART.replace("\n", "\n  ")
    template = "spec:\n  template:\n    " + spec.replace("\n", "\n    ")
    resources = "resources: {limits: {cpu: 1, memory: 1Gi}}\n"
    for kind, text in (("pod", resources), ("pod", PART), ("pod", spec), ("deployment", template)):
        (run.home / "x.yaml").write_text(text)
        done = run("explain", "-f", "x.yaml")
        assert (done.lines[0], done.lines[2].split()[1]) == (f"{kind} <unknown>, kubelet 1.36", "Guaranteed,")
        assert f"so it is read as a part of a {kind.title()}\n" in done.err
    (run.home / "x.yaml").write_text(PART)
    done = run("set", "-f", "x.yaml", "--limits", "memory=2Gi", "--requests", "memory=2Gi", "--write")
    assert (done.code, "only a part of a manifest" in done.err) == (1, True)
    assert (run.home / "x.yaml").read_text() == PART
    ended = "metadata: {name: web}\n" + spec.rstrip() + "\nstatus: {phase: Failed, reason: Evicted}\n"
    (run.home / "x.yaml").write_text(ended)
    assert "web" in run("kills", "-f", "x.yaml").out


DESCRIBED: Final = """\
```
    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
```
"""


def test_what_people_write_around_a_manifest_is_left_out(run: Run) -> None:
    whole = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  " + PART.replace("\n", "\n  ").rstrip()
    )
    for text in (
        f"My pod:\n\n```yaml\n{whole}\n```\n\nWhich class: is it?\n",
        f"```\n{whole}\n```",
        f"$ kubectl get pod web -o yaml\n{whole}\n",
        f"{whole}\n  [...]\n  restartPolicy: Always\nstatus:\n  …\n  phase: Running\n",
    ):
        (run.home / "x.yaml").write_text(text)
        done = run("check", "x.yaml")
        line = text.partition("- {name: app")[0].count("\n") + 1
        assert f"x.yaml:{line}:" in done.out, text
        assert "pod/web" in done.out
    (run.home / "x.txt").write_text(f"{DESCRIBED}\n```yaml\n{whole}\n```\n")
    assert "OOMKilled" in run("kills", "-f", "x.txt", "-o", "wide").out, "what describe says, too"
    log = "12.1 oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/kubepods/pod{0},task_memcg=/kubepods/pod{0}"
    (run.home / "k.log").write_text(f"{log.format('1' * 32)},task=web,pid=7,uid=0\n")
    done = run("kills", "-f", "x.txt", "--kernel-log", "k.log", "-o", "wide")
    assert f"\na pod, uid {'1' * 32}\n" in done.out, "the pod of the text, without its UID, may be that one"
    (run.home / "x.yaml").write_text("```\nno: [manifest\n```\n")
    assert run("top", "-f", "x.yaml").err.startswith("error: x.yaml: line 1, column 1: found character")


def test_a_manifest_without_requests_stays_guaranteed_in_its_file(run: Run) -> None:
    """A missing request counts as the limit: it was refused as a change of the class."""
    text = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  " + PART.replace("\n", "\n  ").rstrip()
    (run.home / "x.yaml").write_text(text)
    done = run("set", "-f", "x.yaml", "--limits", "memory=2Gi", "--requests", "memory=2Gi", "--write")
    assert (done.code, "memory: 2Gi" in (run.home / "x.yaml").read_text()) == (0, True), done.err


def test_own_limits_need_no_node(run: Run) -> None:
    (run.home / "x.yaml").write_text(THREE + USAGE)
    done = run("next", "-f", "x.yaml")
    assert [line.split()[:4] for line in done.lines[-1:]] == [["+196Mi", "shop/db:db", "95%", "own"]]
    assert "the memory capacity of the node is unknown" in done.err
    (item,) = json.loads(run("next", "-f", "x.yaml", "-o", "json").out)["items"]
    assert (item["mechanism"], item["isOwn"]) == ("pod limit", True), "as the text says"


def test_every_command_leaves_out_the_same_of_a_folder(run: Run) -> None:
    """Values of Helm made top and explain fail, which check left out."""
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {nodeName: n, containers: [{name: app}]}\n"
    folder = {
        "web.yaml": pod,
        "chart/Chart.yaml": "name: chart\n",
        "chart/values.yaml": "image: web\n",
        "chart/templates/web.yaml": "kind: {{ .kind }}\n",
        "overlay/kustomization.yaml": "patches: [{path: memory.yaml}]\n",
        "overlay/memory.yaml": pod.replace("containers: [{name: app}]", "containers: []"),
        "flat__values.yaml": "kind: Deployment\nimage: web\n",
    }
    for name, text in folder.items():
        (run.home / "all" / name).parent.mkdir(parents=True, exist_ok=True)
        (run.home / "all" / name).write_text(text)
    notes = None
    for words in (
        ["check"],
        ["top"],
        ["top", "nodes"],
        ["explain", "pod/web"],
        ["tree", "pod/web"],
        ["next"],
    ):
        done = run(*words, "-f", "all", "-R", "--node-memory", "16Gi")
        said = [line for line in done.err.splitlines() if "skipped" in line]
        notes = notes or said
        assert (done.code, len(said), said) == (0, 3, notes), (words, done.err)


def test_a_node_that_states_no_memory_has_that_of_the_flag(run: Run) -> None:
    """The error asked for --node-memory, which was there."""
    node = "apiVersion: v1\nkind: Node\nmetadata: {name: n}\n---\n"
    (run.home / "x.yaml").write_text(node + THREE.split("---")[0].replace("spec: {", "spec: {nodeName: n, "))
    done = run("next", "-f", "x.yaml", "--node-memory", "16Gi")
    assert (done.code, "shop/plain (1000)" in done.out) == (0, True), done.err


def test_what_limit_ranges_of_the_files_add_counts_in_every_command(run: Run) -> None:
    """It did in explain and check only: the others spoke of a BestEffort pod."""
    limits = "[{type: Container, default: {memory: 512Mi}, defaultRequest: {memory: 256Mi}}]"
    range_ = f"kind: LimitRange\nmetadata: {{name: r, namespace: shop}}\nspec: {{limits: {limits}}}\n---\n"
    (run.home / "x.yaml").write_text(range_ + THREE.split("---")[0])
    for words in (["explain", "pod/plain", "-n", "shop"], ["top"], ["next"], ["fix"]):
        assert "875" in run(*words, "-f", "x.yaml", "--node-memory", "2Gi").out, words
    done = run("simulate", "-f", "x.yaml", "--node-memory", "2Gi", "--all-at-limit")
    assert "nothing is killed: 1.5Gi is free then" in done.out


def test_an_injector_that_changes_the_class_is_named_where_the_class_is(run: Run) -> None:
    """Only check did: explain, top and next spoke of a Guaranteed pod."""
    namespace = (
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {istio-injection: enabled}}\n---\n"
    )
    limits = "resources: {limits: {cpu: 1, memory: 64Mi}}"
    pod = "kind: Pod\nmetadata: {name: a, namespace: shop}\nspec: {containers: [{name: c, %s}]}\n"
    (run.home / "x.yaml").write_text(namespace + "apiVersion: v1\n" + pod % limits)
    text = "shop/pod/a: Istio adds istio-proxy and istio-init to this Guaranteed pod, which becomes Burstable"
    for command in ("explain", "top", "next"):
        assert text in run(command, "-f", "x.yaml", "--node-memory", "2Gi").err, command
    assert text in run("check", "x.yaml").out
    (run.home / "x.yaml").write_text(namespace + "apiVersion: v1\n" + pod % "resources: {}")
    assert "Istio" not in run("explain", "-f", "x.yaml", "--node-memory", "2Gi").err


def test_a_kind_that_nobody_knows_is_refused_in_the_words_of_kubectl(run: Run) -> None:
    """With files it was a name that was not found, of a kind in an invented plural."""
    pod = "kind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c}]}\n"
    (run.home / "x.yaml").write_text(f"apiVersion: v1\n{pod}")
    for words in (["explain"], ["set", "--limits", "memory=1Gi"]):
        done = run(*words, "dploy/a", "-f", "x.yaml")
        assert done.err.startswith('error: the server doesn\'t have a resource type "dploy" with pods\n')


def test_equal_objects_have_one_order_in_every_command(run: Run) -> None:
    """Top put the pod c before deployment/b, next after it."""
    spec = "{containers: [{name: c}]}"
    deployment = f"kind: Deployment\nmetadata: {{name: b}}\nspec: {{template: {{spec: {spec}}}}}\n"
    pod = f"kind: Pod\nmetadata: {{name: c}}\nspec: {spec}\n"
    (run.home / "x.yaml").write_text(f"apiVersion: apps/v1\n{deployment}---\napiVersion: v1\n{pod}")
    top, next_ = (run(word, "-f", "x.yaml", "--node-memory", "2Gi") for word in ("top", "next"))
    assert [line.split()[2] for line in top.lines[1:]] == ["deployment/b", "c"]
    assert "deployment/b (1000), c (1000)" in next_.out
