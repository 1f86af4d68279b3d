"""The manifests of deploy/: least rights, least privileges, and a pod that follows its own advice."""

import json
import shutil
import subprocess
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_qos import Node, pod_from_yaml, predict
from kubectl_qos.cli.commands.exporter import Options
from kubectl_qos.cli.main import parse
from kubectl_qos.cli.options import parse_options
from kubectl_qos.k8s.rbac import TIERS
from tests.exporter.test_samples import PROMTOOL, needs_promtool

DEPLOY = Path(__file__).parents[2] / "deploy"
KUBECTL = shutil.which("kubectl")
NAME = "kubectl-qos-exporter"


def objects(path: str) -> dict[str, dict[str, Any]]:
    """The objects of a file by kind."""
    return {one["kind"]: one for one in yaml.safe_load_all((DEPLOY / path).read_text())}


def rules_text() -> str:
    return yaml.safe_dump(objects("components/rules/prometheusrule.yaml")["PrometheusRule"]["spec"])


def rules(folder: Path) -> Path:
    """The rules as a Prometheus without the operator takes them."""
    path = folder / "rules.yaml"
    path.write_text(rules_text())
    return path


def test_its_rights_are_no_more_than_those_of_three_tiers() -> None:
    role = objects("base/rbac.yaml")["ClusterRole"]
    granted = {
        right
        for rule in role["rules"]
        for right in product(rule["verbs"], rule["resources"], rule["apiGroups"])
    }
    tiers = [tier for tier in TIERS if tier.name in {"cluster", "nodes", "metrics"}]
    useful = {(right.verb, right.resource, right.group) for tier in tiers for right in tier.permissions}
    assert granted <= useful
    assert {verb for verb, _, _ in granted} == {"list", "watch"}


def test_the_pod_is_guaranteed_and_killed_late() -> None:
    pod = objects("base/deployment.yaml")["Deployment"]["spec"]["template"]
    node = Node(memory_capacity_bytes=16 << 30, kubelet_version="1.36")
    manifest = yaml.safe_dump({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "x"}, **pod})
    found = predict(pod_from_yaml(manifest), node)
    assert found.qos_class == "Guaranteed"
    assert [container.oom_score_adj for container in found.containers] == [-997]


def test_the_pod_meets_the_restricted_standard() -> None:
    spec = objects("base/deployment.yaml")["Deployment"]["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"volumes", "hostNetwork", "hostPID", "hostIPC"} & spec.keys()
    labels = objects("base/namespace.yaml")["Namespace"]["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


def test_its_arguments_port_and_probes_are_those_of_the_program() -> None:
    (container,) = objects("base/deployment.yaml")["Deployment"]["spec"]["template"]["spec"]["containers"]
    options = parse_options(Options, parse(container["args"]))
    (port,) = container["ports"]
    service = objects("base/service.yaml")["Service"]["spec"]["ports"]
    assert options.listen == ("", port["containerPort"])
    assert [(one["targetPort"], one["port"]) for one in service] == [(port["name"], port["containerPort"])]
    assert {container[name]["httpGet"]["path"] for name in ("livenessProbe", "readinessProbe")} == {
        "/healthz",
        "/readyz",
    }


@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")
def test_kubectl_builds_it_with_every_component(tmp_path: Path) -> None:
    shutil.copytree(DEPLOY, tmp_path / "deploy")
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    names = sorted(path.name for path in (DEPLOY / "components").iterdir())
    built = {
        "resources": ["../deploy/base"],
        "components": [f"../deploy/components/{name}" for name in names],
    }
    (overlay / "kustomization.yaml").write_text(yaml.safe_dump(built))
    done = subprocess.run([str(KUBECTL), "kustomize", overlay], capture_output=True, text=True, check=True)
    found = {one["kind"]: one for one in yaml.safe_load_all(done.stdout)}
    assert found.keys() >= {
        *("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Deployment", "Service"),
        *("NetworkPolicy", "ServiceMonitor", "PrometheusRule", "ConfigMap"),
    }
    template = found["Deployment"]["spec"]["template"]["metadata"]["labels"]
    for selector in (
        found["Deployment"]["spec"]["selector"]["matchLabels"],
        found["Service"]["spec"]["selector"],
        found["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
    ):
        assert selector.items() <= template.items()
    monitored = found["ServiceMonitor"]["spec"]["selector"]["matchLabels"]
    assert monitored.items() <= found["Service"]["metadata"]["labels"].items()
    assert json.loads(found["ConfigMap"]["data"]["dashboard.json"])["uid"] == "kubectl-qos"


@needs_promtool
def test_alerts_fire_and_resolve(tmp_path: Path) -> None:
    rules(tmp_path)
    shutil.copy(Path(__file__).parent / "rules_test.yaml", tmp_path)
    done = subprocess.run(
        [str(PROMTOOL), "test", "rules", "rules_test.yaml"], cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr).decode()


def test_every_alert_is_tested() -> None:
    alerts = [
        rule["alert"]
        for group in yaml.safe_load(rules_text())["groups"]
        for rule in group["rules"]
        if "alert" in rule
    ]
    tested = yaml.safe_load((Path(__file__).parent / "rules_test.yaml").read_text())["tests"]
    assert {case["alertname"] for one in tested for case in one["alert_rule_test"]} == set(alerts)


def test_the_dashboard_is_what_its_script_makes() -> None:
    namespace: dict[str, Any] = {"__name__": "make_dashboard", "__file__": str(DEPLOY / "make_dashboard.py")}
    exec((DEPLOY / "make_dashboard.py").read_text(), namespace)
    assert (DEPLOY / "components/dashboard/dashboard.json").read_text() == namespace["text"]()
