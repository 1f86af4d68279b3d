"""Samples of the metrics API: bytes, whatever their text."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_qos.errors import QuantityError
from kubectl_qos.k8s.objects import JsonDecoder
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.usage import MemoryBytes, PodMetrics


@given(st.integers(0, 2**50), st.sampled_from(["Ki", "Mi", "", "k", "m", "e3"]))
def test_the_fast_path_gives_what_a_quantity_gives(number: int, suffix: str) -> None:
    assert MemoryBytes.from_json(f"{number}{suffix}") == Quantity.parse(f"{number}{suffix}").value()


@pytest.mark.parametrize("text", ["Ki", "-5Ki", "+5Ki", "1.5Ki", " 5Ki"])
def test_odd_texts_take_the_slow_path(text: str) -> None:
    try:
        expected = Quantity.from_json(text).value()
    except QuantityError:
        with pytest.raises(QuantityError):
            MemoryBytes.from_json(text)
    else:
        assert MemoryBytes.from_json(text) == expected


@pytest.mark.parametrize("text", ["", "\u0665Ki", "lots", True])
def test_other_values_are_refused(text: object) -> None:
    with pytest.raises(QuantityError):
        MemoryBytes.from_json(text)
    assert MemoryBytes.from_json(None) == 0, "as quantities read null"


def test_a_sample() -> None:
    raw = {
        "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}},
        "timestamp": "2026-11-20T12:00:00Z",
        "window": "15s",
        "containers": [
            {"name": "a", "usage": {"cpu": "1n", "memory": "2Ki"}},
            {"name": "b", "usage": {"cpu": "1"}},
        ],
    }
    sample = JsonDecoder(PodMetrics).decode(msgspec.json.encode(raw))
    assert (sample.metadata.namespace, sample.metadata.name) == ("shop", "web")
    assert [(one.name, one.usage.memory) for one in sample.containers] == [("a", 2048), ("b", None)]
