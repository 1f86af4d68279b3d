"""The picture of the next deaths: where each mark is, what is left out, and when."""

import pytest

from kubectl_qos.present.format import eta
from kubectl_qos.present.timeline import rate, text, timeline
from kubectl_qos.qos.eviction import Due
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.simulation.next_death import NextDeath, seconds_until
from kubectl_qos.qos.simulation.node_state import NO_GROWTH, Growth

MIB = 1 << 20
FULL = NextDeath("node", 100 * MIB, ("shop", "api"), "c", QosClass.BURSTABLE, 30 * MIB)
OWN = FULL._replace(mechanism="container limit", limit_bytes=400 * MIB, used_bytes=399 * MIB, is_own=True)


def own(number: int) -> NextDeath:
    return OWN._replace(distance_bytes=number * MIB, key=("x", f"p{number}"))


def drawn(deaths: list[NextDeath], width: int, growth: Growth = NO_GROWTH, head: str = "") -> list[str]:
    return list(map(text, timeline(deaths, width, head=head, growth=growth)))


def test_below_each_mark_are_its_victim_its_killer_and_its_time() -> None:
    deaths = [own(1)._replace(seconds=60.0), own(2), FULL._replace(seconds=100.0)]
    lines = drawn(deaths, 90, Growth(MIB), "n 5Mi \nused")
    axis, victims, killers = lines
    assert max(map(len, lines)) <= 90
    for mark, victim, killer, time in (
        ("+1Mi", "p1", "own limit 100%", " ~60 s "),
        ("+2Mi", "p2", "own limit 100%", " ─"),
        ("+100Mi", "api", "kernel: node full", " ~2 min"),
    ):
        place = axis.index(f"◆ {mark}{time}")
        assert victims[place:].startswith(victim)
        assert killers[place:].startswith(killer)
    assert axis.startswith("n 5Mi ●─")
    assert victims.startswith("used  used ")
    assert drawn([FULL], 50, head="5Mi  \nused")[0] == "5Mi used"
    assert "↗ 60Mi/min" in killers


def test_killers_of_the_node_stay_and_nearer_own_limits_are_counted() -> None:
    evicted = FULL._replace(mechanism="kubelet eviction", due=Due.MAYBE)
    deaths = [*map(own, range(1, 9)), evicted, FULL]
    axis, victims, killers = drawn(deaths, 70)
    assert axis.startswith("●──────◆ +1Mi")
    assert "┄ 7 ┄ ◆ +100Mi" in axis
    assert "p2" not in victims
    assert "kubelet evicts  " in killers, "a sentence says that pressure has just ended"
    assert "kernel: node full" in killers


def test_the_next_death_is_called_so_if_others_are_nearer() -> None:
    deaths = [own(1), own(2), FULL]
    assert "next" not in drawn(deaths, 90)[0]
    axis, victims, _ = drawn([deaths[1], deaths[0], FULL], 90)
    assert axis.index("◆ +1Mi") == victims.index("p1")
    assert axis.index("◆ next +2Mi") == victims.index("p2")


def test_deaths_that_are_due_keep_their_order() -> None:
    later = FULL._replace(mechanism="kubelet eviction", distance_bytes=-200 * MIB)
    _, _, killers = drawn([FULL._replace(distance_bytes=-MIB), later], 70)
    assert killers.index("kernel: node full") < killers.index("kubelet evicts")


def test_a_name_is_cut_only_for_a_killer_of_the_node() -> None:
    kinds = ("kubelet eviction", "kubepods limit", "node")
    long = "name-of-twenty-four-x2k9"
    deaths = [own(1)._replace(key=("x", long)), *(FULL._replace(mechanism=kind) for kind in kinds)]
    assert [long in drawn(deaths, width)[1] for width in (66, 74, 82)] == [True, False, True]


def test_a_narrow_picture_is_a_list_that_ends_with_the_killers_of_the_node() -> None:
    deaths = [*map(own, range(1, 9)), FULL]
    lines = drawn(deaths, 40)
    assert max(map(len, lines)) <= 40
    assert [line.split()[:2] for line in lines[:5]] == [
        *([["◆", f"+{number}Mi"] for number in (1, 2, 3, 4)]),
        ["◆", "+100Mi"],
    ]
    assert lines[5] == "  and 4 more limits"


def test_a_time_is_a_straight_line_and_never_without_growth() -> None:
    of_pod = OWN._replace(mechanism="pod limit")
    growth = Growth(2 * MIB, {("shop", "api"): 4 * MIB}, {(("shop", "api"), "c"): 5 * MIB})
    assert seconds_until(FULL, growth) == 50
    assert seconds_until(FULL._replace(mechanism="kubelet eviction", grace_seconds=90), growth) == 140
    assert seconds_until(of_pod, growth) == 25
    assert seconds_until(OWN, growth) == 20
    assert seconds_until(OWN._replace(distance_bytes=-5), growth) == 0
    assert {seconds_until(death, NO_GROWTH) for death in (FULL, of_pod, OWN)} == {None}
    assert seconds_until(FULL, Growth(-1.0)) is None


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(None, ""), (0, "~1 s"), (89, "~89 s"), (500, "~8 min"), (9000, "~2 h"), (10**6, "~12 d")],
)
def test_a_time_is_rounded(seconds: float | None, words: str) -> None:
    assert eta(seconds) == words


def test_growth_is_by_the_minute() -> None:
    assert rate(Growth(42 * MIB / 60)) == "↗ 42Mi/min"
    assert rate(Growth(100 * 1024 / 60)) == "↗ 100Ki/min"
    assert rate(NO_GROWTH) == ""
