import pytest

from kubectl_qos.edit.compare import deaths_at_moments, ladder, moments
from kubectl_qos.edit.edits import Edit, Side, parse_quantity
from kubectl_qos.edit.preview import Effects, StrategyKind, When, preview
from kubectl_qos.present.preview import deaths_section, heading, moment_table
from kubectl_qos.qos.simulation.next_death import next_deaths
from tests.node_states import build_node_state
from tests.tui.sources import API, demo, pod_named

DEMO = demo()


def effects(
    name: str = API, kind: StrategyKind = StrategyKind.IN_PLACE, container: str = "c", **values: str
) -> Effects:
    """Of a change of memory in place, or as if the pod were recreated."""
    pod = pod_named(DEMO, name)
    edits = [Edit(container, Side(side), "memory", parse_quantity(text)) for side, text in values.items()]
    neighbours = [one for one in DEMO.pods if one.node_name == pod.node_name]
    return preview(pod, edits, DEMO.setup(pod.node_name), neighbours, DEMO.usage).effects_of(kind)


def cells(found: Effects) -> dict[str, tuple[str, ...]]:
    headings, rows = moment_table(found)
    return {"": headings, **{row.label: row.cells for row in rows}}


def test_each_value_at_each_moment() -> None:
    assert cells(effects())[""] == ("now",)
    later = cells(effects(requests="1Gi"))
    assert later[""] == ("before", "when c restarts")
    assert later["kill rank"] == ("1 of 17", "3 of 17")
    assert later["oom_score_adj"] == ("969", "938")
    both = cells(effects(requests="2Gi", limits="3Gi"))
    assert both[""] == ("before", "at once", "when c restarts")
    assert cells(effects(limits="3Gi"))[""] == ("before", "after")
    assert both["eviction rank"] == ("9", "12", "12"), "the kubelet counts a new request at once"
    assert both["oom_score_adj"] == ("969", "969", "875"), "the kernel not before a restart"
    recreated = effects(kind=StrategyKind.TEMPLATE, requests="2Gi", limits="3Gi")
    assert moments(recreated) == (When.RECREATED,)


@pytest.mark.parametrize("requests", ["64Mi", "512Mi", "700Mi", "1Gi", "1500Mi", "2Gi"])
@pytest.mark.parametrize("most", [1, 2, 5, 30])
def test_the_ladder_is_the_kill_order_around_both_ranks(requests: str, most: int) -> None:
    found = effects(requests=requests)
    rungs = ladder(found, most)
    assert len(rungs) == min(most, found.ranked + (found.rank_before != found.rank_after))
    last = [rung for rung in rungs if rung.is_changed and rung.is_last]
    assert [rung.rank for rung in last] == [found.rank_after] or most == 1
    others = [rung.rank for rung in rungs if rung.is_last]
    assert others == sorted(others)
    if most == 30:
        order = [row.pod for row in found.ranking_after.pods if row.rank is not None]
        assert [rung.pod for rung in rungs if rung.is_last] == order
        before = [row.pod.name for row in found.ranking_before.pods if row.rank is not None]
        today = [rung.pod.name for rung in rungs if not (rung.is_changed and rung.is_last and rung.when)]
        assert today == before, "without the later rung it is the order of today"
    elif most > 1:
        assert sum(rung.skipped for rung in rungs) + len(rungs) <= found.ranked + 1


def test_no_ladder_without_a_node() -> None:
    assert ladder(effects("huge-0"), 9) == ()
    assert deaths_at_moments(effects("huge-0"), 0) == ()


def test_the_next_deaths_before_and_after() -> None:
    changed = effects(requests="2Gi", limits="3Gi")
    before, now, later = deaths_at_moments(changed, 0)
    headings = [heading(changed, at.when) for at in (before, now, later)]
    assert headings == [
        "before",
        "at once",
        "when c restarts",
    ]
    pod = pod_named(DEMO, API)
    setup = DEMO.setup(pod.node_name)
    state = build_node_state(DEMO.by_node()[pod.node_name], setup, DEMO.usage, own_bytes=0)
    assert set(before.deaths) <= set(next_deaths(state)), "as `kubectl qos next` has them"

    own = [
        next(death.distance_bytes for death in one.deaths if death.mechanism == "pod limit")
        for one in (before, now)
    ]
    assert own[1] - own[0] == 1 << 30, "the limit holds at once"
    victims = [
        next(death.key[1] for death in one.deaths if death.mechanism == "node")
        for one in (before, now, later)
    ]
    assert victims[0] == victims[1] == pod.name
    assert victims[2] != pod.name, "another is first after the restart"
    assert len(deaths_at_moments(effects(), 0)) == 1


def test_a_death_that_was_there_before_is_no_consequence_of_a_change() -> None:
    """The limit of b was nearer in bytes already, and after the raise of a it is the fullest."""
    section = deaths_section(effects("db-0", container="a", limits="5Gi", requests="5Gi"), 0)
    assert section is not None
    assert section.answer == (
        "of this pod a: +556Mi own limit 86% → +1.5Gi own limit 69%;"
        " first is then b: +32Mi own limit 75%, as before"
    )


def test_a_death_is_not_first_after_a_change_if_another_of_the_pod_is_nearer() -> None:
    """Although others are evicted before it, the limit of all pods is further away."""
    section = deaths_section(effects("prometheus-0", requests="1615Mi"), None)
    assert section is not None
    eviction = "at most +8.2Gi kubelet evicts → at most +8.3Gi kubelet evicts (after 1 other death) at once"
    assert section.answer == f"of this pod {eviction}"


def test_a_preview_says_what_becomes_of_the_next_death() -> None:
    section = deaths_section(effects(limits="3Gi"), 0)
    assert section is not None
    first = "first is then +687Mi kubepods limit, as before"
    assert section.answer == f"of this pod +118Mi own limit 94% → +1.1Gi own limit 63%; {first}"
    before, later, after = (line.text for line in section.lines)
    assert later == "of this pod before: +3.5Gi kubelet evicts, after 8 other deaths"
    assert before.startswith("before: +118Mi shop/api-7d9c5b6f8-x2mzq:c, own limit 94%; ")
    assert after == "after: +1.1Gi shop/api-7d9c5b6f8-x2mzq:c, own limit 63%; the others as before"
    assert deaths_section(effects("huge-0"), 0) is None
