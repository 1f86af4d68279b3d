"""Files of a normal repository, few of which are objects of Kubernetes."""

from __future__ import annotations

from pathlib import Path

GOOD = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: app
        image: web:1
        resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 64Mi}}
"""
FILES = {
    "manifests/web.yaml": GOOD,
    "docker-compose.yaml": "services:\n  web: {image: web:1, deploy: {resources: {limits: {memory: 64M}}}}\n",
    ".github/workflows/ci.yml": "on: push\njobs: {test: {steps: [{run: kind create cluster}]}}\n",
    ".gitlab-ci.yml": "test: {script: !reference [.base, script]}\n",
    "chart/Chart.yaml": "apiVersion: v2\nname: web\nversion: 0.1.0\n",
    "chart/values.yaml": "kind: web\nresources: {limits: {memory: 64Mi}}\n",
    "chart/values-prod.yaml": "replicas: 3\n",
    "chart/templates/web.yaml": "{{- if .Values.on }}\napiVersion: v1\nkind: Pod\n{{- end }}\n",
    "prod/kustomization.yaml": "resources: [../manifests/web.yaml]\npatches: [{path: patches/more.yaml}]\n",
    "prod/patches/more.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"
    "spec: {template: {spec: {containers: [{name: app, resources: {limits: {memory: 64m}}}]}}}\n",
    "mkdocs.yml": "site_name: kinds\nmarkdown_extensions: [{x: {y: !!python/name:a.b }}]\n",
    "empty.yaml": "# nothing here\n",
}


def write(folder: Path) -> list[str]:
    """Write the files; returns their names, as pre-commit gives them."""
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return [*FILES]
