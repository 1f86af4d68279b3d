"""`set` on clusters that are only read, and what no transcript shows (test_transcripts.py)."""

from __future__ import annotations

from dataclasses import replace

import yaml

from tests.cluster.https_server import Answer, Request
from tests.cluster.replay import Replay
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
    assert done.err.endswith(f"nothing is written: deployment/front has these values already in {manifest}\n")
    assert manifest.stat() == before


def test_a_recorded_deployment(run: Run, live: Live) -> None:
    replay = Replay()

    def answer(request: Request) -> Answer:
        """No list of a single name was recorded, so the whole list answers."""
        query = {name: value for name, value in request.query.items() if name != "fieldSelector"}
        return replay(replace(request, query=query))

    server = live(answer)
    flags = ("-n", "rec", "--limits", "memory=1Gi")
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
    assert "killed before it when c restarts: batch/crunch-x2k9f, ml/notebook-0" in shown.out
    less = run(*api, "--requests", f"memory={int(wanted[:-2]) - 1}Mi", "--limits", "memory=3Gi")
    assert "ml/notebook-0" not in less.out
    assert run(*api, "--rank-below", "3", "-o", "patch").out == found.out
