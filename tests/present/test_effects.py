"""Effects of a change in sections: what they say, and what a terminal must not get."""

from collections import Counter
from typing import Any

import msgspec
import pytest
from msgspec import structs

from kubectl_qos.cluster.files import DemoSource, pod_from_yaml
from kubectl_qos.edit.compare import Comparison, compare
from kubectl_qos.edit.edits import Edit, Side, parse_quantity
from kubectl_qos.edit.preview import Preview, preview
from kubectl_qos.k8s.kubelet import Node, NodeSetup
from kubectl_qos.k8s.node_overrides import NodeOverride, apply_overrides
from kubectl_qos.k8s.objects import Pod, ResizePolicy
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.k8s.usage import ContainerUsage, PodUsage
from kubectl_qos.present.effects import (
    changed_cells,
    comparison_answer,
    comparison_subject,
    comparison_table,
    file_notes,
    kubelet_sections,
    preview_sections,
)
from kubectl_qos.present.output import Section, ValueChange

API = "api-7d9c5b6f8-x2mzq"


def previewed(name: str, *edits: tuple[str, str, str], **changes: Any) -> Preview:
    """A pod of the demo with edits (`requests`, `memory`, `1Gi`) of its first container."""
    snapshot = DemoSource().snapshot(Scope())
    pod = next(pod for pod in snapshot.pods if pod.name.startswith(name))
    neighbours = [one for one in snapshot.pods if one.node_name == pod.node_name and one is not pod]
    if changes:
        pod = msgspec.structs.replace(pod, **changes)
    made = [
        Edit(pod.containers[0].name, Side(side), resource, parse_quantity(text))
        for side, resource, text in edits
    ]
    return preview(pod, made, snapshot.setup(pod.node_name), neighbours, snapshot.usage)


def part(found: Preview, title: str) -> Section:
    return next(one for one in preview_sections(found) if one.title == title)


def texts(section: Section) -> list[str]:
    return [line.text for line in section.lines]


def test_nothing_changed_is_said_part_by_part() -> None:
    found = previewed(API)
    parts = preview_sections(found)
    assert [one.title for one in parts] == [
        "Class",
        "OOM",
        "Kill rank on worker-2",
        "cgroup",
        "Room on worker-2",
        "Server",
        "How to apply",
    ]
    assert not any(one.changed or one.warns for one in parts)
    assert part(found, "cgroup").answer == "no file changes"
    assert part(found, "How to apply").answer == "nothing to apply yet"


def test_scores_have_before_after_and_difference() -> None:
    found = previewed(API, ("requests", "memory", "1Gi"))
    change = found.effects.containers[0]
    assert part(found, "OOM").changes == (
        ValueChange("c oom_score_adj", "969", "938", "-31"),
        ValueChange("c oom_score", str(change.oom_score.before), str(change.oom_score.after), "-20"),
    )
    assert part(found, "OOM").changed


def test_the_rank_names_those_who_are_passed() -> None:
    found = part(previewed(API, ("requests", "memory", "1Gi")), "Kill rank on worker-2")
    assert found.answer == "1 of 17 now; 3 when c restarts"
    assert texts(found) == ["killed before it when c restarts: batch/crunch-x2k9f, ml/notebook-0"]
    many = part(previewed(API, ("requests", "memory", "2Gi")), "Kill rank on worker-2")
    assert many.lines[0].text.endswith(" more")
    worse = part(previewed("front-58d6c7d4f-abcde", ("requests", "memory", "1Mi")), "Kill rank on worker-2")
    assert worse.lines[0].text.startswith("killed after it when c restarts: ")


def test_every_file_that_changes_is_there_under_its_owner() -> None:
    found = previewed(API, ("limits", "memory", "3Gi"), ("limits", "cpu", "1"))
    shown = {
        (one.title, change.label, change.before, change.after)
        for one in preview_sections(found)
        if one.title.startswith("cgroup of")
        for change in one.changes
    }
    assert shown == {
        (
            f"cgroup of {f'container {file.container}' if file.container else 'pod'}",
            file.file,
            file.before or "not written",
            file.after or "not written",
        )
        for file in found.effects.files
    }
    assert ("cgroup of container c", "memory.max", str(2 << 30), str(3 << 30)) in shown
    assert ("cgroup of pod", "memory.max", str(2 << 30), str(3 << 30)) in shown


def test_another_class_is_another_place_in_the_tree() -> None:
    found = previewed(API, ("requests", "memory", "2Gi"), ("requests", "cpu", "2"))
    assert part(found, "Class") == Section("Class", "Burstable → Guaranteed when recreated", changed=True)
    moved = part(found, "cgroup")
    assert "kubepods-burstable.slice" in moved.lines[0].text
    assert "burstable" not in moved.lines[1].text
    strategy_kind = part(found, "How to apply")
    assert strategy_kind.answer == "the pod must be recreated"
    assert any("Pod QOS Class may not change" in sentence for sentence in texts(strategy_kind))
    kept = part(previewed("db-0", ("limits", "memory", "5Gi")), "How to apply")
    assert texts(kept)[1] == "to stay Guaranteed and change in place, also set -c a --requests memory=5Gi"


def test_no_room_and_a_refusal_are_warnings() -> None:
    found = previewed(API, ("requests", "memory", "3Gi"))
    room = part(found, "Room on worker-2")
    assert room.warns
    assert room.lines[1].text.endswith("does not fit")
    assert room.lines[0].text.endswith("fits")
    server = part(found, "Server")
    assert server.warns
    assert texts(server) == [str(refusal) for refusal in found.refusals]
    assert part(found, "How to apply") == Section(
        "How to apply", "impossible while the server refuses it", warns=True
    )


def test_in_place_says_who_restarts_and_what_stays() -> None:
    pod = next(pod for pod in DemoSource().snapshot(Scope()).pods if pod.name.startswith(API))
    policy = (ResizePolicy(resource_name="memory", restart_policy="RestartContainer"),)
    containers = tuple(msgspec.structs.replace(one, resize_policy=policy) for one in pod.containers)
    spec = msgspec.structs.replace(pod.spec, containers=containers)
    memory = part(previewed(API, ("requests", "memory", "1Gi"), spec=spec), "How to apply")
    assert memory.answer == "in place"
    assert memory.lines[0].text == "c restarts, by its resizePolicy"
    assert not any("keeps its oom_score_adj" in text for text in texts(memory))
    assert memory.lines[-1].text == (
        "new pods of deployment/api get the old values, unless its template changes too"
    )
    cpu = part(previewed(API, ("requests", "cpu", "300m"), spec=spec), "How to apply")
    assert not any("restarts," in sentence for sentence in texts(cpu))
    kept = part(previewed(API, ("requests", "memory", "1Gi")), "How to apply")
    assert kept.lines[0].text == "c keeps its oom_score_adj until a restart"


@pytest.mark.parametrize(
    ("name", "kind", "answer", "sentence"),
    [
        (API, "Deployment", "new pods from the template", "running pods keep their values"),
        (API, "Job", "impossible", "the pod template of a Job is immutable"),
        ("kube-scheduler-", "Pod", "impossible", "a static pod comes from a file on its node"),
    ],
)
def test_other_strategies(name: str, kind: str, answer: str, sentence: str) -> None:
    found = part(previewed(name, ("requests", "memory", "1Gi"), kind=kind), "How to apply")
    assert found.answer == answer
    assert found.lines[0].text.startswith(sentence)
    assert found.warns is (answer == "impossible")


def test_what_is_not_known_is_unknown() -> None:
    found = previewed("huge-0", ("requests", "memory", "1Gi"))
    assert part(found, "OOM").changes[0] == ValueChange("c oom_score_adj", "<unknown>", "<unknown>")
    assert part(found, "Kill rank").answer == "<unknown>"
    assert not [one for one in preview_sections(found) if one.title.startswith("Room")]


def test_names_of_a_server_are_only_text() -> None:
    def nasty(pod: Pod) -> Any:
        containers = tuple(msgspec.structs.replace(one, name="a\x1b[2J") for one in pod.containers)
        return msgspec.structs.replace(pod.spec, containers=containers)

    pod = next(pod for pod in DemoSource().snapshot(Scope()).pods if pod.name.startswith(API))
    found = previewed(API, ("limits", "memory", "3Gi"), spec=nasty(pod))
    parts = preview_sections(found)
    texts = [one.title for one in parts]
    texts += [change.label for one in parts for change in one.changes]
    assert len([text for text in texts if "a\\x1b[2J" in text]) == 3
    assert not [text for text in texts if "\x1b" in text]


def test_what_the_kubelet_would_not_do_is_a_warning() -> None:
    found = part(
        previewed(API, ("requests", "memory", "2100Mi"), ("limits", "memory", "2100Mi")), "How to apply"
    )
    assert found.answer == "in place"
    deferred = part(
        previewed(API, ("requests", "memory", "4Gi"), ("limits", "memory", "4Gi")), "How to apply"
    )
    assert deferred.warns
    assert deferred.lines[0].text.startswith("the kubelet answers Deferred: Node didn't have enough resource")
    shrunk = part(previewed(API, ("limits", "memory", "1Gi")), "How to apply")
    assert shrunk.warns
    assert shrunk.lines[0].text.startswith("the kubelet answers Error: cannot decrease memory limits")


GI = 1 << 30
SETUP = NodeSetup.of(Node(name="n\x1b1", memory_capacity_bytes=16 * GI), release="1.36")
POD = pod_from_yaml(
    "kind: Pod\nmetadata: {name: p, namespace: d, uid: u}\n"
    "spec:\n  nodeName: n1\n"
    "  initContainers: [{name: side, restartPolicy: Always}]\n"
    "  containers: [{name: app, resources: {requests: {memory: 1Gi}}}]\n"
)


def older(used_by_app: int) -> Comparison:
    usage = {
        ("d", "p"): PodUsage.of_containers({"app": ContainerUsage(used_by_app), "side": ContainerUsage(0)})
    }
    return compare([POD], SETUP, apply_overrides(SETUP, [], "1.30"), usage)


def cells(found: Comparison) -> list[str]:
    return [cell for cell in list(comparison_table([*changed_cells(found.pods)]))[1].split("   ") if cell]


def test_a_row_shows_what_is_killed_first_before_and_after() -> None:
    assert cells(older(0))[5:7] == ["938 → 999", "1291 → 1332"]


def test_where_that_container_stays_another_that_changes_is_named() -> None:
    assert cells(older(8 * GI))[5:7] == ["side: 938 → 999", "side: 1291 → 1332"]


def test_names_cannot_write_to_the_terminal() -> None:
    found = compare([POD], SETUP, apply_overrides(SETUP, []))
    assert comparison_subject(found, [NodeOverride("cgroupRoot", "a\x1b[31m")]) == (
        "node n\\x1b1, kubelet 1.36, cgroupRoot=a\\x1b[31m"
    )


def test_a_kubelet_that_kills_whole_containers_says_how_to_turn_that_off() -> None:
    old = structs.replace(SETUP, release=Release.of("1.27"))
    (note,) = file_notes([compare([POD], old, structs.replace(old, release=Release.of("1.28")))])
    assert "from 1.28 on" in note
    assert "from 1.32 on the kubelet setting singleProcessOOMKill: true turns that off" in note
    assert list(file_notes([compare([POD], old, old)])) == []


def test_the_answer_of_a_comparison_counts_pods_by_what_changes() -> None:
    kinds = Counter({"memory.high": 17, "memory.min": 1, "rank": 2, "cpu.max": 1, "path": 1, "scores": 1})
    assert comparison_answer(48, 17, kinds, refusing=0, short=0, moved={}) == (
        "17 of 48 pods would change: rank (2), path (1), scores (1), memory.high (17) and 2 more;"
        " compare pod/NAME has the values"
    )
    refused = comparison_answer(1, 0, Counter(), refusing=2, short=1, moved={"sooner": 2, "of others": 1})
    assert refused.startswith(
        "the kubelet would not start on 2 nodes; the pods' requests no longer fit on 1 node; 1 pod stays as"
    )
    assert refused.endswith("; next deaths: sooner on 2 nodes, of others on 1 node")


def test_a_kubelet_that_starts_is_not_mentioned() -> None:
    assert kubelet_sections(older(0)) == ()
