"""What is said of one node in several places is the same, also where its own processes are known."""

from __future__ import annotations

from dataclasses import replace

from kubectl_qos.edit.preview import preview
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.present.fixes import fixes_on_nodes, node_model
from kubectl_qos.present.moments import deaths_at_moments
from kubectl_qos.present.next_death import deaths_on_node
from kubectl_qos.qos.simulation.next_death import NextDeath
from kubectl_qos.qos.simulation.node_state import state_of_node
from tests.tui.sources import API, demo, pod_named

NODE, MIB = "worker-2", 1 << 20


def known() -> Snapshot:
    """The demo, with 300Mi that its nodes use besides their pods."""
    snapshot = demo()
    by_pods = sum(one.working_set_bytes for one in state_of_node(snapshot, NODE).containers)
    return replace(snapshot, node_usage={NODE: by_pods + 300 * MIB})


def places(deaths: tuple[NextDeath, ...]) -> list[tuple[str, int, str]]:
    return [(one.mechanism.name, one.distance_bytes, one.key[1]) for one in deaths]


def test_the_picture_the_edit_screen_and_the_fixes_speak_of_the_same_deaths() -> None:
    snapshot = known()
    found = deaths_on_node(snapshot, NODE)
    assert found.state.own_bytes == 300 * MIB
    pod = pod_named(snapshot, API)
    shown = preview(pod, (), snapshot.setup(NODE), snapshot.by_node()[NODE], snapshot.usage)
    at_present = deaths_at_moments(shown.effects, snapshot.own_bytes(NODE))[0]
    assert set(places(at_present.deaths)) <= set(places(found.deaths))
    assert "NODE" in {one.mechanism.name for one in at_present.deaths}
    model = node_model(snapshot, NODE)
    assert model.state() == found.state
    fixes = fixes_on_nodes(snapshot, [NODE], Scope()).fixes
    assert fixes
    assert set(places(tuple(fix.death for fix in fixes))) <= set(places(found.deaths))
