"""Who kills on a node: the kernel, Talos' OOM controller or systemd-oomd before it, or nobody (Windows)."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from kubectl_qos.analysis.deaths import DeathRow, deaths_on_nodes
from kubectl_qos.analysis.fix_list import fixes_on_nodes
from kubectl_qos.analysis.group_table import build_node_rows
from kubectl_qos.analysis.pod_table import build_rows
from kubectl_qos.cluster.files import DEMO_TIME as NOW
from kubectl_qos.cluster.files import DemoSource
from kubectl_qos.edit.compare import compare
from kubectl_qos.edit.edits import Edit, Side
from kubectl_qos.edit.preview import preview
from kubectl_qos.errors import InputError, UsageError
from kubectl_qos.k8s.kubelet import Node, NodeSetup, Origin, with_origin
from kubectl_qos.k8s.node_overrides import NodeOverride, apply_overrides
from kubectl_qos.k8s.objects import Pod, convert
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.snapshot import NodeOverrides, Scope, Snapshot
from kubectl_qos.k8s.usage import PodKey
from kubectl_qos.present.effects import kubelet_sections, preview_sections
from kubectl_qos.present.explanation import explain_pod, text_lines
from kubectl_qos.present.fix_sentences import unfixed_sentence
from kubectl_qos.present.killers import WORDS, killer_sentence
from kubectl_qos.present.list_notes import node_table_notes, pod_table_notes
from kubectl_qos.present.next_death import distance, victim
from kubectl_qos.present.node_columns import NODE_COLUMNS
from kubectl_qos.present.output import ValueChange
from kubectl_qos.present.pod_columns import BY_KEY
from kubectl_qos.present.reasons import why_lines
from kubectl_qos.present.simulation import simulation_notes, simulation_summary
from kubectl_qos.present.tree import tree_notes, tree_subject
from kubectl_qos.present.values.incidents import death_values
from kubectl_qos.present.values.pods import explanation_values
from kubectl_qos.qos import killers
from kubectl_qos.qos.cgroup.tree import cgroup_tree
from kubectl_qos.qos.killers import KILLERS, OOM_KILLERS, Killer, Mechanism, daemon_on, parse_assumed
from kubectl_qos.qos.killers.daemons import EARLYOOM, NOHANG, SYSTEMD_OOMD, Earlyoom
from kubectl_qos.qos.killers.kernel import FULL_NODE
from kubectl_qos.qos.killers.killer import Candidate
from kubectl_qos.qos.killers.talos import TALOS
from kubectl_qos.qos.oom_score import is_critical
from kubectl_qos.qos.prediction import predict_running
from kubectl_qos.qos.qos_class import QosClass
from kubectl_qos.qos.restart import Restart
from kubectl_qos.qos.simulation.ceiling import ContainerGrowth, Scenario
from kubectl_qos.qos.simulation.engine import Run, SimulationStep, simulate
from kubectl_qos.qos.simulation.next_death import deaths_of, next_deaths
from kubectl_qos.qos.simulation.node_state import NodeState, state_of_node
from tests.node_states import build_node_state


def demo(*assumed: str) -> Snapshot:
    settings = tuple(map(parse_assumed, assumed))
    return DemoSource(NodeOverrides(settings=settings)).snapshot(Scope())


def on(image: str = "", given: str = "", system: str = "linux") -> NodeSetup:
    node = with_origin(Node(), Origin.API, os_image=image, operating_system=system)
    return NodeSetup.of(with_origin(node, Origin.GIVEN, userspace_oom_killer=given))


@pytest.mark.parametrize(
    ("image", "daemon", "strict"),
    [
        ("Debian GNU/Linux 12 (bookworm)", None, False),
        ("Talos (v1.11.5)", None, False),
        ("Talos (v1.12.0)", TALOS, False),
        ("Talos (v1.12.9)", TALOS, True),
        ("Talos (v1.13.3)", TALOS, False),
        ("Talos (v1.13.4)", TALOS, True),
        ("Talos (v1.14.0-beta.1)", TALOS, True),
        ("Talos (v2.0.0)", TALOS, True),
    ],
)
def test_talos_has_its_own_since_1_12(image: str, daemon: Killer | None, *, strict: bool) -> None:
    """Class after class since 1.12.9, 1.13.4 and 1.14.0: DefaultOOMStrictCgroupClassOrdering of its tags."""
    setup = on(image)
    assert daemon_on(setup) is daemon
    assert daemon is None or (TALOS.is_strict(setup), TALOS.is_assumed(setup)) == (strict, False)


def test_what_is_given_counts_before_the_image() -> None:
    def found(image: str, given: str) -> tuple[Killer | None, bool, bool]:
        setup = on(image, given)
        return daemon_on(setup), TALOS.is_strict(setup), TALOS.is_assumed(setup)

    assert daemon_on(on("Talos (v1.14.0)", "none")) is None
    assert found("", "talos-1.12.0") == (TALOS, False, True)
    assert found("", "talos") == (TALOS, True, True)
    assert found("Talos (v1.12.0)", "talos") == (TALOS, False, False)
    assert daemon_on(on("", "systemd-oomd")) is SYSTEMD_OOMD
    assert SYSTEMD_OOMD.is_assumed(on("", "systemd-oomd"))
    assert daemon_on(on("Windows Server 2022 Datacenter", "talos", "windows")) is None


PODS = [
    Candidate(("n", "small"), QosClass.BEST_EFFORT, is_limited=False, used_bytes=10),
    Candidate(("n", "large"), QosClass.BEST_EFFORT, is_limited=False, used_bytes=30),
    Candidate(("n", "burstable"), QosClass.BURSTABLE, is_limited=False, used_bytes=50),
    Candidate(("n", "limited"), QosClass.BURSTABLE, is_limited=True, used_bytes=900),
    Candidate(("n", "guaranteed"), QosClass.GUARANTEED, is_limited=True, used_bytes=900),
    Candidate(("n", "idle"), QosClass.BEST_EFFORT, is_limited=False, used_bytes=0),
]


def test_the_order_of_talos() -> None:
    """The scores of DefaultOOMCgroupRankingExpression; nothing of rank zero is killed."""

    def order(*, strict: bool) -> list[str] | None:
        found = TALOS.pod_order(PODS, on("Talos (v1.14.0)" if strict else "Talos (v1.12.0)"))
        return None if found is None else [name for _, name in found]

    assert order(strict=True) == ["large", "small", "burstable"]
    assert order(strict=False) == ["large", "burstable", "small"]


def test_an_order_that_cannot_be_known() -> None:
    unknown = PODS[0]._replace(used_bytes=None)
    assert TALOS.pod_order([*PODS, unknown], on("Talos (v1.14.0)")) is None
    assert SYSTEMD_OOMD.pod_order(PODS, on("", "systemd-oomd")) is None


@pytest.mark.parametrize(
    "given",
    [f"userspaceOOMKiller={name.replace('VERSION', '1.12')}" for name in OOM_KILLERS if name != "none"],
)
def test_every_list_says_who_kills_before_the_kernel(given: str) -> None:
    snapshot = demo(given)
    setup = snapshot.setup("worker-2")
    text = killer_sentence(setup, has_ranks=False)
    assert killer_sentence(setup) == f"{text}. RANK is the kernel's order"
    assert " (assumed) " in text
    pods = snapshot.by_node()["worker-2"]
    state = build_node_state(pods, setup, snapshot.usage)
    for notes in (
        pod_table_notes(snapshot, build_rows(snapshot, Scope(node="worker-2"))),
        node_table_notes(snapshot, build_node_rows(snapshot, lambda name, _: name == "worker-2")),
        simulation_notes(state, simulate(state, Scenario(until_oom=True))),
        tree_notes([cgroup_tree(pods, setup)], ()),
        "\n".join(text_lines(explain_pod(pods[0], snapshot, NOW))).replace("\n    ", " ").splitlines(),
    ):
        assert any(text in note for note in notes)
    assert not any("OOM" in note for note in pod_table_notes(demo(), build_rows(demo(), Scope())))


def test_a_pod_has_its_place_in_the_order_of_talos() -> None:
    snapshot = demo("userspaceOOMKiller=talos")
    lines = {
        name: [line.strip() for line in text_lines(explain_pod(pod, snapshot, NOW)) if "of Talos:" in line]
        for pod in snapshot.by_node()["worker-2"]
        for name in [pod.name]
    }
    assert lines["db-0"] == ["by the OOM controller of Talos: never killed"]
    assert lines["crunch-x2k9f"] == ["by the OOM controller of Talos: rank 1 of 8"]


def talos_state(*, restarts: bool = False) -> tuple[NodeState, list[SimulationStep]]:
    """A node of Talos, and who is killed there until nothing is left to kill."""
    snapshot = demo("userspaceOOMKiller=talos")
    state = state_of_node(snapshot, "worker-2")
    return state, list(simulate(state, Scenario(free_bytes=1 << 40, restarts=restarts)).steps)


def test_talos_kills_in_its_order_before_the_kernel() -> None:
    """Whole pods, those without a limit; the kernel kills who is left."""
    state, steps = talos_state()
    pods = [
        Candidate(pod.key, pod.qos, bool(pod.limit_bytes), pod_bytes(state, pod.key)) for pod in state.pods
    ]
    order = TALOS.pod_order(pods, state.setup)
    by_talos = [step for step in steps if step.mechanism == TALOS.id]
    assert order is not None
    assert len(order) == 8
    assert [step.key for step in by_talos] == order == [step.key for step in steps[:8]]
    assert {(step.container, step.score, step.restart) for step in by_talos} <= {
        ("", None, Restart.CONTAINER),
        ("", None, Restart.NONE),
    }
    assert {step.mechanism for step in steps[8:]} == {FULL_NODE.id}


def pod_bytes(state: NodeState, key: PodKey) -> int:
    containers = [one for one in state.containers if state.pod_for(one).key == key]
    return sum(container.working_set_bytes for container in containers)


def test_a_pod_that_talos_killed_restarts() -> None:
    _, steps = talos_state(restarts=True)
    first = next(step for step in steps if step.qos is QosClass.BURSTABLE and step.mechanism == TALOS.id)
    assert (first.restarts, first.restart) == (True, Restart.CONTAINER)
    assert sum(step.key == first.key for step in steps) == 1, "its containers are killed once"


def test_talos_waits_at_most_as_far_as_the_kernel() -> None:
    snapshot = demo("userspaceOOMKiller=talos")
    deaths = next_deaths(state_of_node(snapshot, "worker-2"))
    place = next(place for place, death in enumerate(deaths) if death.killer is TALOS)
    talos, kernel = deaths[place : place + 2]
    assert (talos.key, talos.container) == (("batch", "crunch-x2k9f"), "")
    assert (talos.is_upper_bound, distance(talos)) == (True, "at most +1.2Gi")
    assert (kernel.killer, kernel.is_upper_bound, distance(kernel)) == (FULL_NODE, False, "+1.2Gi")
    (mine,) = (
        death
        for death in deaths_of(state_of_node(snapshot, "worker-2"), {("shop", "search-0")})
        if death.killer is TALOS
    )
    assert mine.before == 3
    assert not any(death.killer is TALOS for death in next_deaths(state_of_node(demo(), "worker-2")))


GIB = 1 << 30


@pytest.mark.parametrize(
    ("killer", "swap", "usable", "at"),
    [
        (EARLYOOM, 0, 0, 9 * GIB),
        (EARLYOOM, 2 * GIB, 2 * GIB, 108 * GIB // 10),
        (EARLYOOM, 2 * GIB, GIB, None),
        (NOHANG, 2 * GIB, 2 * GIB, 113 * GIB // 10),
    ],
)
def test_earlyoom_acts_at_a_tenth_of_ram_and_of_swap(
    killer: Earlyoom, swap: int, usable: int, at: int | None
) -> None:
    """Both have to fall so far: swap that containers may not use stays free. nohang waits for 5 % of RAM."""
    state = state_of_node(demo(f"userspaceOOMKiller={killer.id}"), "worker-2")
    state = replace(state, capacity_bytes=10 * GIB, total_bytes=10 * GIB + swap, own_bytes=usable)
    ceilings = [ceiling.at_bytes for ceiling in killer.ceilings(state)]
    assert ceilings == ([] if at is None else [at])


def test_earlyoom_kills_in_the_kernels_order_and_sooner() -> None:
    state, plain = (
        state_of_node(demo(*given), "worker-2") for given in (["userspaceOOMKiller=earlyoom"], [])
    )
    steps, kernel = (simulate(one, Scenario(free_bytes=4 * GIB)).steps for one in (state, plain))
    assert {step.mechanism for step in steps} == {EARLYOOM.id}
    assert [(step.key, step.score) for step in steps] == [(step.key, step.score) for step in kernel]
    deaths = {death.killer: death for death in next_deaths(state)}
    tenth = state.total_bytes - state.total_bytes * 9 // 10
    assert deaths[FULL_NODE].distance_bytes - deaths[EARLYOOM].distance_bytes == tenth
    assert deaths[EARLYOOM].distance_bytes < 0, "it acts at once where nothing grows"
    assert simulate(state, Scenario()).steps[0].mechanism == EARLYOOM.id


def test_a_killer_of_unknown_order_may_choose_anybody_before_those_after_it() -> None:
    snapshot = demo("userspaceOOMKiller=systemd-oomd")
    state, plain = state_of_node(snapshot, "worker-2"), state_of_node(demo(), "worker-2")
    (ceiling,) = Run(state, Scenario()).ceilings[SYSTEMD_OOMD.id]
    assert (ceiling.at_bytes, ceiling.latest_bytes) == (None, state.capacity_bytes)
    deaths = next_deaths(state)
    (oomd,) = (death for death in deaths if death.killer is SYSTEMD_OOMD)
    assert (oomd.key, victim(oomd), distance(oomd)) == (("", ""), "unknown", "at most +1.2Gi")
    others = [death for death in deaths if death is not oomd]
    assert [death._replace(earlier=None) for death in others] == next_deaths(plain)
    assert [death.killer for death in deaths if death.earlier == oomd] == [FULL_NODE]
    values = death_values(DeathRow("worker-2", oomd))
    assert (values.namespace, values.pod, values.process, values.container) == (None, None, None, None)
    pod = ("batch", "crunch-x2k9f")
    assert oomd in deaths_of(state, {pod}, contests=True)
    assert oomd not in deaths_of(state, {pod}), "a change of the pod does not bring it nearer"
    unfixed = fixes_on_nodes(snapshot, ["worker-2"], Scope()).unfixed
    (why,) = (unfixed_sentence(one) for one in unfixed if one.death.killer is SYSTEMD_OOMD)
    assert why.startswith("systemd-oomd: pressure, at most +1.2Gi: its victim is unknown")


@pytest.mark.parametrize(
    ("scenario", "step"),
    [
        (Scenario(free_bytes=1), 1),
        (Scenario(growth=(ContainerGrowth(None, 2 * GIB),)), 1),
        (Scenario(until_oom=True), None),
        (Scenario(all_at_limit=True), None),
    ],
)
def test_a_simulation_says_from_where_on_a_killer_of_unknown_order_may_act(
    scenario: Scenario, step: int | None
) -> None:
    snapshots = demo(), demo("userspaceOOMKiller=systemd-oomd")
    of_demo, state = (state_of_node(one, "worker-2") for one in snapshots)
    plain, simulation = simulate(of_demo, scenario), simulate(state, scenario)
    assert simulation.steps == plain.steps
    said = f"from step {step} on systemd-oomd may kill first, and its victim is unknown"
    assert (said in simulation_summary(state, simulation)) is (step is not None)
    oomd = [reach for reach in simulation.distances if reach.mechanism == SYSTEMD_OOMD.id]
    assert [reach.key for reach in oomd] == [("", "")] * scenario.until_oom


def test_every_killer_and_every_end_has_its_words() -> None:
    assert set(WORDS) == set(Mechanism)
    for killer in KILLERS:
        words = WORDS[killer.id]
        assert all((words.name, words.by, words.order)), killer.id


ELSEWHERE = {"node", "talos"}
"""Names of other things too: a kind of object, and a profile of clusters."""


def test_only_its_module_and_its_words_name_a_killer() -> None:
    """All else walks the registry, so that a new killer is one file, one line and its words."""
    folder = Path(killers.__file__).parent
    programs = {name for killer in KILLERS for name in (killer.id, *killer.settings, *killer.log.programs)}
    modules = "|".join(type(killer).__module__ for killer in KILLERS)
    name = re.compile(rf"['\"](?:{'|'.join(programs - ELSEWHERE)})['\"]|(?:{modules}) import")
    files = (path for path in folder.parents[1].rglob("*.py") if folder not in path.parents)
    assert [path.name for path in files if name.search(path.read_text(encoding="utf-8"))] == ["killers.py"]


@pytest.mark.parametrize("text", ["lowmemd", "talos-", "talos-1.x", "talos-VERSION", "none,talos"])
def test_an_unknown_daemon_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=f"must be none, .*{SYSTEMD_OOMD.id}, talos or talos-VERSION$"):
        parse_assumed(f"userspaceOOMKiller={text}")


def test_compare_switches_killers() -> None:
    snapshot = demo()
    before = snapshot.setup("worker-2")
    after = apply_overrides(before, [NodeOverride.parse("userspaceOOMKiller=talos")])
    found = compare(snapshot.by_node()["worker-2"], before, after, snapshot.usage)
    (section,) = kubelet_sections(found)
    assert (section.title, section.changed) == ("Who kills", True)
    assert kubelet_sections(compare((), before, before)) == ()


def test_compare_says_when_the_kubelet_would_evict() -> None:
    before = demo().setup("worker-2")
    after = apply_overrides(before, [NodeOverride.parse("evictionHard=memory.available<1Gi")])
    section, allocatable = kubelet_sections(compare((), before, after))
    assert [one for one in section.changes if one.changed] == [ValueChange("below", "100Mi", "1Gi")]
    assert allocatable.changes == (ValueChange("for pods", "15.4Gi", "14.5Gi"),)
    assert section.title == "Eviction by memory.available"


# -- Windows -----------------------------------------------------------------------------------------

WINDOWS = "operatingSystem=windows"


def test_windows_has_no_kernel_order() -> None:
    snapshot = demo(WINDOWS)
    rows = build_rows(snapshot, Scope(node="worker-2"))
    assert rows.rows
    for row in rows.rows:
        assert (row.rank, row.adj, row.adj_range, row.score) == (None, None, None, None)
        assert BY_KEY["oom_score_adj"].cell(row, NOW) == BY_KEY["oom_score"].cell(row, NOW) == "<none>"
    may_be_evicted = [row for row in rows.rows if not is_critical(row.pod)]
    assert {row.eviction_rank for row in may_be_evicted} == set(range(1, len(may_be_evicted) + 1))
    (note,) = [note for note in pod_table_notes(snapshot, rows) if "Windows" in note]
    assert note.removeprefix("worker-2: ") == killer_sentence(snapshot.setup("worker-2"))
    (node,) = build_node_rows(snapshot, lambda name, _: name == "worker-2").rows
    assert NODE_COLUMNS["kernel_victim"].cell(node, NOW) == "<none>"


def test_windows_pods_have_a_class_and_no_cgroups() -> None:
    snapshot = demo(WINDOWS)
    pod = next(pod for pod in snapshot.pods if pod.name == "db-0" and pod.node_name == "worker-2")
    found = predict_running(pod, snapshot.setup("worker-2"))
    assert found.qos_class is QosClass.GUARANTEED
    assert (found.cgroup.path, found.cgroup.files, found.class_cgroup_path) == ("", {}, "")
    for container in found.containers:
        assert (container.oom_score_adj, container.oom_score_adj_range) == (None, None)
        assert container.cgroup.files == container.process_cgroup.files == {}
    explanation = explain_pod(pod, snapshot, NOW)
    text = "\n".join(text_lines(explanation))
    assert text.count("oom_score_adj") == 1
    assert "at a memory limit nothing is killed, but an allocation fails" in " ".join(text.split())
    assert "cgroup " not in text
    assert "memory.max" not in text
    assert explanation_values(explanation).containers[0].oom_score_adj_range is None
    assert explanation.facts.row is not None
    assert next(iter(why_lines(found, explanation.facts.row, build_rows(snapshot, Scope())))) == (
        "data/db-0 is Guaranteed, not ranked: Windows has no OOM killer"
    )


@pytest.mark.parametrize(
    "spec", [{"os": {"name": "windows"}}, {"nodeSelector": {"kubernetes.io/os": "windows"}}]
)
def test_a_windows_pod_without_a_node_has_no_cgroups_either(spec: dict[str, Any]) -> None:
    containers = [{"name": "c", "resources": {"limits": {"memory": "1Gi"}}}]
    pod = convert({"metadata": {"name": "win"}, "spec": {"containers": containers, **spec}}, Pod)
    found = Snapshot((pod,), overrides=NodeOverrides(16 << 30))
    text = "\n".join(text_lines(explain_pod(pod, found, NOW)))
    assert "OOM        none" in text
    assert not any(word in text for word in ("cgroup v", "memory.max", "  adj"))
    (row,) = build_rows(found, Scope()).rows
    assert (BY_KEY["oom_score_adj"].cell(row, NOW), row.rank, row.score) == ("<none>", None, None)
    assert not deaths_on_nodes(found, [""]).rows
    roots = cgroup_tree([pod], found.setup("")).roots
    assert all(directory.pod is None for root in roots for directory in root.walk())


def test_windows_has_no_tree_and_no_simulation() -> None:
    snapshot = demo(WINDOWS)
    pods, setup = snapshot.by_node()["worker-2"], snapshot.setup("worker-2")
    tree = cgroup_tree(pods, setup)
    assert (tree.roots, tree_subject(tree)) == ((), "node worker-2, kubelet 1.36, Windows")
    assert tree_notes([tree], ()) == [killer_sentence(setup)]
    with pytest.raises(InputError, match="no OOM killer: only its kubelet ends pods"):
        build_node_state(pods, setup, snapshot.usage)
    with pytest.raises(InputError, match="its kubelet does not evict for memory: nothing is killed there"):
        build_node_state(
            pods, structs.replace(setup, kubelet=structs.replace(setup.kubelet, eviction_hard={})), {}
        )


def test_a_change_of_a_windows_pod() -> None:
    snapshot = demo(WINDOWS)
    setup = snapshot.setup("worker-2")
    pods = snapshot.by_node()["worker-2"]
    pod = next(pod for pod in pods if pod.name.startswith("api-"))
    edit = Edit(pod.containers[0].name, Side.LIMITS, "memory", Quantity.parse("9Gi"))
    found = preview(pod, [edit], setup, pods, snapshot.usage)
    assert found.outcome.message == "In-place pod resize is not supported on Windows"
    titles = [section.title for section in preview_sections(found)]
    assert titles.count("OOM") == 1
    assert not [title for title in titles if title.startswith(("cgroup", "Kill rank"))]


@pytest.mark.parametrize(("release", "threshold"), [("1.30", None), ("1.31", "500Mi"), ("1.37", "500Mi")])
def test_windows_evicts_for_memory_since_1_31(release: str, threshold: str | None) -> None:
    setup = demo(WINDOWS, f"kubeletVersion={release}").setup("worker-2")
    assert setup.kubelet.eviction_hard.get("memory.available") == threshold
