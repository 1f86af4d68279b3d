"""The manifests of docs/rbac and the table of docs/rights.md are exactly what the program can use."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_qos.k8s.rbac import TIERS, Tier
from kubectl_qos.present.list_notes import gives, phrases

ROOT = Path(__file__).parents[2]
TIER = pytest.mark.parametrize("tier", TIERS, ids=lambda tier: tier.name)


def text_of(tier: Tier) -> str:
    return (ROOT / tier.file).read_text(encoding="utf-8")


def role_of(tier: Tier) -> dict[str, Any]:
    (found,) = yaml.safe_load_all(text_of(tier))
    assert isinstance(found, dict)
    return found


@TIER
def test_a_role_grants_its_tier_and_nothing_else(tier: Tier) -> None:
    role = role_of(tier)
    assert role.keys() == {"apiVersion", "kind", "metadata", "rules"}
    assert (role["apiVersion"], role["kind"]) == ("rbac.authorization.k8s.io/v1", "ClusterRole")
    assert role["metadata"] == {"name": f"kubectl-qos-{tier.name}"}
    granted: list[tuple[str, str, str]] = []
    for rule in role["rules"]:
        assert rule.keys() == {"apiGroups", "resources", "verbs"}
        granted += product(rule["verbs"], rule["resources"], rule["apiGroups"])
    wanted = {
        (right.verb, "/".join(filter(None, (right.resource, right.subresource))), right.group)
        for right in tier.permissions
    }
    assert sorted(granted) == sorted(wanted)


@TIER
def test_a_role_says_how_to_bind_it(tier: Tier) -> None:
    text = text_of(tier)
    assert f"kubectl apply -f {Path(tier.file).name}\n" in text
    role = f"kubectl-qos-{tier.name}"
    binding = re.search(rf"create (\w+)binding {role} --clusterrole {role} --user NAME(.*)", text)
    assert binding is not None
    in_one = {right.scope.name for right in tier.permissions} == {"NAMESPACE"}
    assert binding.groups() == (("role", " -n NAMESPACE") if in_one else ("clusterrole", ""))


@TIER
def test_a_role_says_what_its_tier_warns_of(tier: Tier) -> None:
    first = text_of(tier).splitlines()[0].lower()
    for caution in ("DANGER", "not used yet"):
        assert (caution.lower() in first) is (tier.caution == caution)


def test_every_role_is_of_a_tier() -> None:
    assert {str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "rbac").iterdir()} == {
        tier.file for tier in TIERS
    }


def test_the_table_of_the_page_is_that_of_the_code() -> None:
    (table,) = re.findall(
        r"^\| tier \|.*\n\|.*\n((?:\|.*\n)+)", (ROOT / "docs" / "rights.md").read_text(), re.MULTILINE
    )
    rows = [tuple(map(str.strip, row[1:-1].split("|"))) for row in table.splitlines()]
    assert rows == [
        (
            f"[{tier.name}]({tier.file.removeprefix('docs/')})",
            ", ".join(f"`{phrase}`" for phrase in phrases(tier.permissions)),
            ", ".join(dict.fromkeys(right.scope.value for right in tier.permissions)),
            gives(tier),
        )
        for tier in TIERS
    ]


def test_get_on_the_node_proxy_is_called_dangerous() -> None:
    proxying = [tier for tier in TIERS if any(right.target == "nodes/proxy" for right in tier.permissions)]
    assert [tier.caution for tier in proxying] == ["DANGER"]
    for page in (text_of(proxying[0]), (ROOT / "docs" / "rights.md").read_text()):
        words = " ".join(page.replace("#", " ").replace("*", "").split())
        assert "run commands in any container of any node" in words
        assert "Neither admission control nor audit rules for pods/exec see it" in words
