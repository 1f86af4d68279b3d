from kubectl_qos.analysis.pod_table import build_rows
from kubectl_qos.edit.edits import Edit, Side, parse_quantity
from kubectl_qos.edit.preview import preview
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.present.effects import OF_FILE
from kubectl_qos.present.preview import cheapest_section
from tests.tui.sources import API, demo, pod_named

DEMO = demo()
ROWS = [row for row in build_rows(DEMO, Scope()).rows if row.score is not None]


def test_the_cheapest_change_does_what_it_says_and_one_step_less_does_not() -> None:
    pod = pod_named(DEMO, API)
    row = next(one for one in ROWS if one.name == API)
    section = cheapest_section(pod, row, DEMO)
    assert section is not None
    line = section.lines[0]
    assert (line.text, line.note) == (
        "c requests.memory 512Mi → 705Mi",
        "outlives batch/crunch-x2k9f: rank 2 when c restarts",
    )
    neighbours = DEMO.by_node()[pod.node_name]
    ranks = [
        preview(
            pod,
            [Edit("c", Side.REQUESTS, "memory", parse_quantity(text))],
            DEMO.setup(pod.node_name),
            neighbours,
            DEMO.usage,
        ).effects.rank_after
        for text in ("704Mi", "705Mi")
    ]
    assert ranks == [1, 2]


def test_a_change_that_outlives_several_is_offered_once() -> None:
    row = next(one for one in ROWS if one.name == "promo-7c4b-l9dk2")
    section = cheapest_section(row.pod, row, DEMO)
    assert section is not None
    assert [(line.text, line.note) for line in section.lines] == [
        (
            "c requests.memory and c limits.memory 64Mi → 66Mi",
            "outlives monitoring/node-exporter-2qk6d: rank 10 when c restarts",
        )
    ]


def test_a_static_pod_is_changed_by_its_file() -> None:
    pod = pod_named(DEMO, "etcd-control-1")
    section = cheapest_section(pod, next(one for one in ROWS if one.name == pod.name), DEMO)
    assert section is not None
    assert [line.text for line in section.lines] == [OF_FILE]


def test_nothing_is_cheap_without_a_rank() -> None:
    assert cheapest_section(pod_named(DEMO, "huge-0"), None, DEMO) is None
