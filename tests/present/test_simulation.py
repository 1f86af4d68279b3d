"""The words of a simulation: what each scenario ends with, and which notes go with it."""

from dataclasses import replace

import pytest
from msgspec import structs

from kubectl_qos.analysis.deaths import victim_rows
from kubectl_qos.k8s.kubelet import Node, NodeSetup
from kubectl_qos.k8s.objects import MEMORY, Pod, ResourceList
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.present.output import table
from kubectl_qos.present.simulation import (
    STEP_COLUMNS,
    question,
    scenario_sentence,
    simulation_lines,
    simulation_notes,
    simulation_subject,
    simulation_summary,
    what_if_lines,
)
from kubectl_qos.present.values import as_document
from kubectl_qos.present.values.incidents import simulation_values
from kubectl_qos.qos.eviction import Thresholds
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.simulation.ceiling import ContainerGrowth, Scenario
from kubectl_qos.qos.simulation.engine import simulate
from kubectl_qos.qos.simulation.next_death import first_deaths, next_deaths
from kubectl_qos.qos.simulation.node_state import NodeProcess, NodeState, SimulatedContainer
from tests.edit.test_rank_goals import pod as manifest
from tests.node_states import build_node_state
from tests.qos.test_simulation import GIB, MIB, container, node_state

TWO: list[tuple[str, SimulatedContainer]] = [("a", container(1000, 300)), ("b", container(900, 200, 250))]


def said(at: NodeState, scenario: Scenario) -> str:
    return simulation_summary(at, simulate(at, scenario))


def noted(at: NodeState, scenario: Scenario) -> str:
    return "\n".join(simulation_notes(at, simulate(at, scenario)))


def test_the_last_sentence() -> None:
    at = node_state(TWO)
    assert said(at, Scenario(free_bytes=1)) == "after 1 kill 824Mi is free; no important pod is killed"
    assert said(at, Scenario(free_bytes=GIB)).startswith("after 2 kills 1Gi is free: 1Gi cannot be freed;")
    some = node_state([*TWO, ("u", structs.replace(container(0, 0), has_usage=False))])
    assert said(some, Scenario(free_bytes=GIB)).startswith(
        "after 3 kills at most 1Gi is free: whether 1Gi can be freed is unknown;"
    )
    assert (
        said(node_state([("a", container(-1000, 1))]), Scenario(free_bytes=1)) == "there is nothing to kill"
    )
    assert said(at, Scenario(all_at_limit=True)) == "nothing is killed: 474Mi is free then"
    assert said(at, Scenario(eviction=True)) == (
        "nothing is killed or evicted: 460Mi of the kubepods limit is available"
    )
    of_node = replace(at, own_bytes=65 * MIB)
    assert said(of_node, Scenario(eviction=True)) == "nothing is killed or evicted: 459Mi is available"
    empty = said(node_state([("a", container(0, 0))]), Scenario(until_oom=True))
    assert empty == "nothing is killed, however much all containers grow"
    full = said(node_state([("a", container(-1000, 300))]), Scenario(growth=(ContainerGrowth(0, 2 * GIB),)))
    assert full.endswith("; otherwise nothing is killed: the node is full then")
    until = said(node_state([("a", container(1000, 300))]), Scenario(until_oom=True, eviction=True))
    assert "a, by eviction; no important" in until
    over = said(node_state([("a", container(1000, 900)), ("b", container(0, 300))]), Scenario(until_oom=True))
    assert "; otherwise after 1 kill 724Mi is free, without any growth; no important" in over
    # b dies at its limit, and a grows on.
    grows_on = simulate(at, Scenario(growth=(ContainerGrowth(0, 500 * MIB), ContainerGrowth(1, 300 * MIB))))
    assert grows_on.steps[-1].level != grows_on.after
    assert simulation_summary(at, grows_on).startswith(
        "after 1 kill 524Mi is free in the end, and some growing"
    )
    node = said(node_state([("a", container(1000, 512))], kubepods_bytes=None), Scenario(until_oom=True))
    assert "each container at 200%" in node
    assert "by the kernel, because the node is full" in node


def test_a_simulation_says_which_question_it_does_not_answer() -> None:
    at, scenario = node_state(TWO), Scenario(free_bytes=1)
    simulation = simulate(at, scenario)
    deaths = {death.key[1]: death for death in next_deaths(at)}
    assert question(at, scenario, simulation, deaths["a"]) == "free 1 B"
    assert question(at, scenario, simulation, deaths["b"]) == (
        "free 1 B (the next death is of x/b:c, own limit 80%, +50Mi)"
    )


def test_swap_is_not_memory_of_the_node() -> None:
    at = replace(node_state(TWO), total_bytes=3 * GIB)
    assert simulation_subject(at).endswith("its pods use 500Mi of 1Gi and 2Gi of swap")


def test_the_table_and_ties() -> None:
    at = node_state(
        [("a", container(1000, 300)), ("b", container(1000, 300))],
        own_processes=(NodeProcess("sshd", 0, MIB),),
    )
    lines = list(table(victim_rows(simulate(at, Scenario(free_bytes=GIB))), STEP_COLUMNS))
    assert lines[0].split() == [
        "STEP",
        "BY",
        "VICTIM",
        "CONTAINER",
        "QOS",
        "OOM_SCORE",
        "FREED",
        "FREE_AFTER",
        "NOTE",
    ]
    assert lines[1].endswith("tied with 1")
    assert "sshd" in lines[3].split()
    assert lines[3].endswith("a process of the node")
    assert simulation_subject(replace(at, own_bytes=MIB)).endswith(
        "its pods use 600Mi of 1Gi, the node itself 1Mi"
    )
    nothing = simulate(at, Scenario())
    shown = [simulation_subject(at), "nothing grows", "", simulation_summary(at, nothing)]
    assert list(simulation_lines(at, nothing)) == shown


def test_the_first_victim_of_a_scenario_is_not_taken_for_the_next_death() -> None:
    at = node_state([("a", container(900, 500)), ("b", container(900, 100, 110))])
    dies = first_deaths(at)[0]
    shown = [*simulation_lines(at, simulate(at, Scenario(free_bytes=GIB)), dies)]
    assert shown[1] == "free 1Gi (the next death is of x/b:c, own limit 91%, +10Mi)"
    shown = [*simulation_lines(at, simulate(at, Scenario(until_oom=True)), dies)]
    assert shown[1] == "all containers grow by the same share of their usage"


def test_of_the_own_limits_of_a_container_the_nearer_one_has_a_row() -> None:
    """With swap the limit of a pod and that of its only container are reached one after the other."""
    at = node_state([("a", container(900, 100, 150))], limits={"a": 190 * MIB})
    found = simulate(at, Scenario(until_oom=True))
    assert [one.mechanism for one in found.distances][:2] == ["container limit", "pod limit"]
    assert [line[:9] for line in simulation_lines(at, found)].count("own limit") == 1


@pytest.mark.parametrize(
    ("growth", "words"),
    [
        (ContainerGrowth(0, GIB, is_more=True), "x/a, container c, grows by 724Mi to 1Gi"),
        (ContainerGrowth(1, GIB, is_more=True), "x/u, container c, grows by 1Gi"),
        (ContainerGrowth(1, GIB), "x/u, container c, grows to 1Gi"),
        (ContainerGrowth(None, GIB, is_more=True), "the node itself grows by 1Gi"),
        (ContainerGrowth(None, GIB), "the node itself grows to 1Gi"),
    ],
)
def test_growth_of_unknown_usage_says_only_what_is_known(growth: ContainerGrowth, words: str) -> None:
    at = node_state([TWO[0], ("u", structs.replace(container(0, 0), has_usage=False))])
    assert scenario_sentence(at, Scenario(growth=(growth,))) == words


def test_what_differs_is_marked() -> None:
    before = simulate(node_state([TWO[0], ("b", container(900, 20))]), Scenario(free_bytes=GIB))
    after = simulate(node_state(TWO[:1]), Scenario(free_bytes=GIB))
    lines = list(what_if_lines(before, after))
    assert [line[0] for line in lines[1:]] == [" ", "*"]
    assert {line.index("Mi") + 2 for line in lines[1:]} == {lines[0].index("FREED") + 5}
    assert (
        list(what_if_lines(simulate(node_state(TWO), Scenario()), simulate(node_state(TWO), Scenario())))
        == []
    )


def test_the_outcome_begins_with_an_eviction_that_is_left_out() -> None:
    at, grown = node_state(TWO), Scenario(growth=(ContainerGrowth(None, MIB),))
    grows = grown._replace(growth=(ContainerGrowth(None, GIB),))
    assert simulation_summary(at, simulate(at, grows), "E").startswith(
        "the kubelet would evict x/a first (E simulates that); otherwise after "
    )
    own = grown._replace(growth=(ContainerGrowth(1, 500 * MIB), ContainerGrowth(None, 900 * MIB)))
    assert simulation_summary(at, simulate(at, own)).startswith(
        "the kubelet would evict x/a after step 1 (--eviction simulates that); otherwise after "
    )
    for scenario in (Scenario(free_bytes=1), grown, grows._replace(eviction=True)):
        assert "would evict" not in simulation_summary(at, simulate(at, scenario))


def test_notes_say_what_is_not_known() -> None:
    at = node_state(TWO)
    free = Scenario(free_bytes=1)
    assert "node's own processes" in noted(at, free)
    assert "node's own processes" not in noted(replace(at, own_bytes=1), free)
    important = replace(at, pods=(structs.replace(at.pods[0], qos=QosClass.GUARANTEED), *at.pods[1:]))
    before = f"x/{at.pods[0].pod.name}:c: on a full node the kernel kills processes outside pods before"
    for own in (None, 1):
        assert before in noted(replace(important, own_bytes=own), Scenario(free_bytes=GIB))
        assert "outside pods" not in noted(replace(at, own_bytes=own), Scenario(free_bytes=GIB))
    assert "memory is swap and the larger of RSS and working set: the kernel counts" in noted(at, free)
    assert "memory is the working set: the kernel counts" in noted(replace(at, by_working_set=True), free)
    unmeasured = node_state([("a", structs.replace(container(0, 0), has_usage=False))])
    assert "memory is swap" not in noted(unmeasured, Scenario(all_at_limit=True))
    grown = free._replace(free_bytes=None, growth=(ContainerGrowth(None, MIB),))
    assert "the growth of the node itself counts as one process with oom_score_adj 0" in noted(at, grown)
    assert "1 pod without usage" in noted(replace(at, without_usage=1), free)
    assert "2 pods without usage" in noted(replace(at, without_usage=2), free)
    assert "memory.oom.group" in noted(replace(at, has_oom_group=False), free)
    assert "memory.oom.group" not in noted(at, free)
    assert "--restarts simulates" in noted(at, free)
    assert ": R simulates" in "\n".join(simulation_notes(at, simulate(at, free), "R"))
    assert noted(at, Scenario(eviction=True)).startswith("nothing grows here: add --grow, ")
    assert "killed only once" in noted(at, free._replace(restarts=True))
    stays = node_state([("a", container(1000, 300, restarts=False))])
    assert "--restarts" not in noted(stays, free)
    never = noted(replace(at, thresholds=Thresholds(None, None, 0)), Scenario(eviction=True))
    assert "never evicts" in never
    assert "one pod at a time" not in never
    soft = noted(replace(at, thresholds=Thresholds(None, None, 0, 0, 2 * MIB, 90)), Scenario(eviction=True))
    assert "evicts when less than 2Mi of the node is available for 90s" in soft
    assert "evicts only by the soft one" in soft
    assert "one pod at a time" in soft
    greedy = replace(at, thresholds=Thresholds(MIB, None, 2 * MIB))
    assert "less than 1Mi is available, until 2Mi more is (assumed)" in noted(greedy, Scenario(eviction=True))
    for kubepods, words in (
        (MIB, "of the node or of the kubepods limit"),
        (0, "of the node or 0 of the kubepods"),
    ):
        evicts = replace(at, thresholds=Thresholds(MIB, kubepods, 0))
        assert f"less than 1Mi {words}" in noted(evicts, Scenario(eviction=True))


def test_a_pod_that_the_kubelet_would_not_admit_is_named() -> None:
    """Source: pkg/kubelet/lifecycle/predicate.go (OutOfmemory)."""

    def spec(name: str, request: str, phase: str = "") -> Pod:
        pod = manifest(name, f"requests: {{memory: {request}}}")
        return structs.replace(pod, status=structs.replace(pod.status, phase=phase))

    def admitted(*pods: Pod) -> list[str]:
        allocatable = ResourceList({MEMORY: Quantity.parse("2Gi")})
        setup = NodeSetup.of(Node(name="n", memory_capacity_bytes=4 * GIB, status_allocatable=allocatable))
        at = build_node_state(pods, setup, {})
        return [note for note in noted(at, Scenario(all_at_limit=True)).split("\n") if "admit" in note]

    runs, added = spec("a", "1Gi", "Running"), spec("b", "1Gi")
    assert admitted(runs, added) == []
    assert admitted(runs, spec("d", "1536Mi", "Running")) == [], "it was admitted"
    with_it = "2.5Gi of memory is requested, and 2Gi is allocatable"
    assert admitted(runs, spec("b", "1536Mi")) == [f"the kubelet would not admit n/b: with it {with_it}"]
    assert admitted(runs, added, spec("d", "512Mi")) == [
        f"the kubelet would not admit all of n/b, n/d: with them {with_it}"
    ]


def test_values_name_what_grows() -> None:
    at = node_state(TWO)
    scenario = Scenario(growth=(ContainerGrowth(1, 240 * MIB), ContainerGrowth(None, MIB)))
    assert as_document(simulation_values(at, simulate(at, scenario)))["scenario"]["grow"] == [
        {"namespace": "x", "pod": "b", "container": "c", "toBytes": 240 * MIB},
        {"namespace": None, "pod": None, "container": None, "toBytes": MIB},
    ]
