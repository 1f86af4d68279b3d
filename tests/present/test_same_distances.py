"""What is said of one node in several places is the same, also where its own processes are known."""

from dataclasses import replace

from kubectl_qos.analysis.deaths import deaths_on_node
from kubectl_qos.analysis.fix_list import fixes_for_pods, fixes_on_nodes, node_model
from kubectl_qos.cluster.files import DemoSource
from kubectl_qos.edit.compare import deaths_at_moments, recreate_all
from kubectl_qos.edit.fixes import FixKind
from kubectl_qos.edit.preview import preview
from kubectl_qos.k8s.kinds import find_workload
from kubectl_qos.k8s.managers import VerticalAutoscaler
from kubectl_qos.k8s.objects import ObjectMeta, Pod, convert
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.present.fix_sentences import fix_effect
from kubectl_qos.present.next_death import distance, killer_words, turn
from kubectl_qos.present.preview import deaths_section, replicas_section
from kubectl_qos.qos.simulation.next_death import NextDeath
from kubectl_qos.qos.simulation.node_state import state_of_node
from kubectl_qos.tui.screens.fix_dialog import find_fixes, suggested_line
from tests.tui.sources import API, demo, pod_named

NODE, MIB = "worker-2", 1 << 20


def known() -> Snapshot:
    """The demo; its nodes use 300Mi more than their pods."""
    snapshot = demo()
    by_pods = sum(one.working_set_bytes for one in state_of_node(snapshot, NODE).containers)
    return replace(snapshot, node_usage={NODE: by_pods + 300 * MIB})


def places(deaths: tuple[NextDeath, ...]) -> list[tuple[str, int, str]]:
    return [(one.mechanism, one.distance_bytes, one.key[1]) for one in deaths]


def test_the_picture_the_edit_screen_and_the_fixes_speak_of_the_same_deaths() -> None:
    snapshot = known()
    found = deaths_on_node(snapshot, NODE)
    assert found.state.own_bytes == 300 * MIB
    pod = pod_named(snapshot, API)
    shown = preview(pod, (), snapshot.setup(NODE), snapshot.by_node()[NODE], snapshot.usage)
    at_present = deaths_at_moments(shown.effects, snapshot.own_bytes(NODE))[0]
    assert set(places(at_present.deaths)) <= set(places(found.deaths))
    assert "node" in {one.mechanism for one in at_present.deaths}
    model = node_model(snapshot, NODE)
    assert model.state() == found.state
    fixes = fixes_on_nodes(snapshot, [NODE], Scope()).fixes
    assert fixes
    assert set(places(tuple(fix.death for fix in fixes))) <= set(places(found.deaths))


def test_a_fix_names_the_next_death_that_its_preview_names() -> None:
    """The effect has two values where another killer comes before the one that is put off."""
    snapshot, seen = known(), 0
    for fix in (one for node in snapshot.nodes for one in fixes_on_nodes(snapshot, [node], Scope()).fixes):
        if fix.kind is FixKind.NEIGHBOUR:
            continue
        found = deaths_at_moments(fix.effects, snapshot.own_bytes(fix.pod.node_name))
        nearest, first = fix.sooner or fix.after, found[-1].of_pod[0]
        assert nearest is not None
        assert nearest.distance_bytes <= first.distance_bytes
        section = deaths_section(fix.effects, snapshot.own_bytes(fix.pod.node_name))
        assert section is not None
        assert f"{distance(nearest)} {killer_words(nearest)}" in section.answer
        assert fix.after is None or fix.after in found[-1].of_pod
        for one in filter(None, (fix.after, fix.sooner)):
            assert distance(one) in fix_effect(fix)
            assert any(distance(one) in line.text for line in section.lines)
            seen += one.before > 0
    assert seen, "others are killed before it"


def test_what_an_autoscaler_recommends_is_in_the_dialog_of_a_node_and_of_a_pod() -> None:
    class Recommending(DemoSource):
        def with_autoscalers(self, snapshot: Snapshot, namespace: str | None) -> Snapshot:
            del namespace
            container = {"containerName": "c", "target": {"memory": "3Gi"}}
            raw = {
                "metadata": {"name": "vpa", "namespace": "shop"},
                "spec": {"targetRef": {"kind": "Deployment", "name": "api"}},
                "status": {"recommendation": {"containerRecommendations": [container]}},
            }
            return replace(snapshot, autoscalers=(convert(raw, VerticalAutoscaler),))

    for keys in ([], [("shop", API)]):
        found = find_fixes(Recommending(), NODE, keys, None, known(), None)
        again = find_fixes(DemoSource(), NODE, keys, None, known(), found)
        for fixes in (found.fixes, again.fixes):
            assert [fix.pod.name for fix in fixes if fix.kind is FixKind.RECOMMENDED][:1] == [API]


def test_a_workload_s_fix_names_the_next_death_that_its_preview_names() -> None:
    snapshot = known()
    pods = [pod for pod in snapshot.pods if find_workload(pod) == ("Deployment", "shop", "api")]
    keys = [(pod.namespace, pod.name) for pod in pods]
    for fix in fixes_for_pods(snapshot, keys, ("Deployment", "api")).fixes:
        assert fix.after is not None
        [node] = recreate_all(Pod("Deployment", ObjectMeta("api", "shop"), pods[0].spec), fix.edits, snapshot)
        first = node.own_deaths_after[0]
        assert (fix.sooner or fix.after) in node.own_deaths_after
        changes = {one.label: one.after for one in replicas_section([node]).changes}
        if fix.death.killer.is_node_wide:
            killer = changes[f"{NODE}: of these, {killer_words(fix.death)}"]
            assert killer == f"{distance(fix.after)}{turn(fix.after)}"
        text = f"{distance(first)} {killer_words(first)}"
        assert changes[f"{NODE}: next death of these"].removesuffix(", as before").endswith(text)


def test_why_a_node_has_no_fix_is_suggested_in_place_of_one() -> None:
    words = "none: enough headroom above its known usage"
    assert suggested_line(demo(), "control-1")[0].startswith(words)
    assert suggested_line(demo(), NODE)[0] == "container c: memory limit 117.7Mi → 144Mi, now, in place"
    unmeasured = replace(demo(), usage={}, node_usage={})
    assert suggested_line(unmeasured, "control-1")[0] == "", "the headline says it"
    named = "shop/promo-7c4b-l9dk2 container c: memory limit 64Mi → 128Mi, now, in place"
    assert suggested_line(unmeasured, "worker-1")[0] == named, "the headline names no pod"
