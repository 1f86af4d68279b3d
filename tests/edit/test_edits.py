"""Changes as words: what is written is what is meant, and what is meant can be written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_qos.cluster.files import pod_from_yaml
from kubectl_qos.edit.edits import (
    POD_LEVEL,
    Amount,
    Edit,
    Side,
    as_flags,
    format_amounts,
    lowers_cpu_limit,
    parse_amounts,
    select_containers,
)
from kubectl_qos.errors import InputError, QosError, UsageError
from kubectl_qos.k8s.quantity import Quantity

POD = pod_from_yaml(
    "kind: Pod\nmetadata: {name: web}\n"
    "spec: {initContainers: [{name: init-a}], containers: [{name: app}, {name: app-log}, {name: c}]}\n"
)


def amount(resource: str, text: str | None) -> Amount:
    return Amount(resource, None if text is None else Quantity.parse(text))


def test_values_and_removals() -> None:
    assert parse_amounts("cpu=250m,memory-,example.com/gpu=1", "--limits") == (
        amount("cpu", "250m"),
        amount("memory", None),
        amount("example.com/gpu", "1"),
    )


def test_a_cpu_limit_throttles_if_it_is_new_or_lower() -> None:
    pod = pod_from_yaml(
        "kind: Pod\nmetadata: {name: web}\n"
        "spec: {containers: [{name: a, resources: {limits: {cpu: 500m}}}, {name: b}]}\n"
    )
    for owner, text, throttles in (
        ("a", "400m", True),
        ("a", "1", False),
        ("b", "1", True),
        ("a", None, False),
    ):
        quantity = None if text is None else Quantity.parse(text)
        assert lowers_cpu_limit(pod, Edit(owner, Side.LIMITS, "cpu", quantity)) is throttles


def test_a_plus_adds_to_what_is_stored() -> None:
    """As `simulate --grow` reads it; what has no value cannot be added to."""
    pod = pod_from_yaml(
        "kind: Pod\nmetadata: {name: web}\n"
        "spec: {containers: [{name: a, resources: {limits: {memory: 64Mi, cpu: 500m}}}, {name: b}]}\n"
    )
    memory, cpu = parse_amounts("memory=+1Gi,cpu=+250m", "--limits")
    assert format_amounts((memory, cpu)) == "memory=+1Gi,cpu=+250m"
    assert str(memory.edit(pod, "a", Side.LIMITS).quantity) == "1088Mi"
    assert str(cpu.edit(pod, "a", Side.LIMITS).quantity) == "750m"
    with pytest.raises(InputError, match="there is no value to add 1Gi to") as caught:
        memory.edit(pod, "b", Side.LIMITS)
    assert str(caught.value) == "web: b: limits.memory: there is no value to add 1Gi to"
    assert caught.value.hint == "write memory=1Gi"


RESOURCES = ("cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "example.com/gpu")
AMOUNTS = st.lists(
    st.builds(
        amount,
        st.sampled_from(RESOURCES),
        st.none() | st.sampled_from(["0", "1", "250m", "1Gi", "1.5Gi", "1e3", "64Mi", "100n", "12345678901"]),
    ),
    min_size=1,
    unique_by=lambda one: one.resource,
)


@given(AMOUNTS)
def test_flags_are_parsed_as_what_they_were_written_from(amounts: list[Amount]) -> None:
    found = parse_amounts(format_amounts(amounts), "--limits")
    assert found == tuple(amounts)
    assert format_amounts(found) == format_amounts(amounts)


@pytest.mark.parametrize(
    ("text", "error", "sentence"),
    [
        ("memory", UsageError, "--limits: invalid argument syntax memory, expected <resource>=<value>"),
        ("", UsageError, "--limits: invalid argument syntax , expected <resource>=<value>"),
        ("-", UsageError, "--limits: invalid argument syntax -, expected <resource>=<value>"),
        ("cpu=", UsageError, "--limits: invalid argument syntax cpu=, expected <resource>=<value>"),
        ("cpu=1=2", UsageError, "--limits: invalid argument syntax cpu=1=2, expected <resource>=<value>"),
        ("cpu=1,cpu-", UsageError, "--limits cpu=1,cpu-: cpu is given twice"),
        ("cpu=-1", UsageError, "--limits cpu=-1: must be greater than or equal to 0"),
        ("cpu=1 ,", UsageError, "--limits: invalid argument syntax"),
        ("memory=1GB", UsageError, "--limits memory=1GB: this is not a quantity"),
        ("memory=+10%", UsageError, "--limits memory=+10%: a percentage is not a quantity"),
        (
            "mem=1Gi",
            UsageError,
            '--limits mem=1Gi: "mem" must be a standard resource for containers or fully qualified',
        ),
        ("Memory-", UsageError, '--limits Memory-: "Memory" must be a standard resource'),
    ],
)
def test_what_is_wrong_is_named_with_its_flag(text: str, error: type[QosError], sentence: str) -> None:
    with pytest.raises(error) as caught:
        parse_amounts(text, "--limits")
    assert type(caught.value) is error
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        ([], ["app", "app-log", "c", "init-a"]),
        (["*"], ["app", "app-log", "c", "init-a"]),
        (["app"], ["app"]),
        (["app*"], ["app", "app-log"]),
        (["*-a", "c"], ["c", "init-a"]),
        (["c", "c"], ["c"]),
    ],
)
def test_containers_are_selected_as_kubectl_does(patterns: list[str], names: list[str]) -> None:
    assert select_containers(POD, patterns) == names


@pytest.mark.parametrize("pattern", ["x", "a.p", "log*", ""])
def test_a_container_that_is_not_there_is_named_with_those_that_are(pattern: str) -> None:
    with pytest.raises(InputError, match="unable to find container named") as caught:
        select_containers(POD, [pattern])
    assert caught.value.hint == "its containers are: app, app-log, c, init-a"


def test_edits_as_flags() -> None:
    edits = [
        Edit("app", Side.LIMITS, "memory", Quantity.parse("2Gi")),
        Edit("app", Side.REQUESTS, "memory", None),
        Edit("app", Side.LIMITS, "cpu", Quantity.parse("1")),
        Edit(POD_LEVEL, Side.LIMITS, "cpu", Quantity.parse("2")),
    ]
    assert as_flags(edits) == [
        "-c app --requests memory- --limits memory=2Gi,cpu=1",
        "--pod-level --limits cpu=2",
    ]
