"""Quantities and durations: laws that the golden vectors cannot show, and examples."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_qos.errors import InputError, QuantityError
from kubectl_qos.k8s.quantity import MAX_INT64, MILLI, Format, Quantity, parse_duration, quantity_hint

SUFFIXES = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E-2"]
NUMBERS = st.from_regex(r"[+-]?[0-9]{1,20}(\.[0-9]{0,6})?", fullmatch=True)
TEXTS = st.builds(lambda number, suffix: number + suffix, NUMBERS, st.sampled_from(SUFFIXES))


@given(TEXTS)
def test_printing_and_parsing_again_gives_the_same_value(text: str) -> None:
    quantity = Quantity.parse(text)
    if abs(quantity.nano) < 10**27:
        assert Quantity.parse(str(quantity)) == quantity
        assert Quantity.parse(quantity.canonical()) == quantity
        assert Quantity.parse(quantity.canonical()).canonical() == quantity.canonical()


@given(TEXTS, TEXTS)
def test_addition_is_exact_and_the_order_of_values_does_not_matter(left: str, right: str) -> None:
    a, b = Quantity.parse(left), Quantity.parse(right)
    assert (a + b).nano == a.nano + b.nano
    assert (b + a) == (a + b)
    assert (a - b).nano == a.nano - b.nano


@given(TEXTS)
def test_rounding_up_never_shrinks_and_moves_less_than_a_milli(text: str) -> None:
    quantity = Quantity.parse(text)
    rounded = quantity.rounded_up(MILLI)
    assert abs(rounded.nano) - abs(quantity.nano) in range(10**6)
    assert rounded.rounded_up(MILLI) == rounded


@given(st.text(max_size=12))
def test_any_text_is_a_quantity_or_one_of_three_errors(text: str) -> None:
    problem = "quantities must match"
    try:
        Quantity.parse(text)
    except QuantityError as error:
        problem = str(error)
    assert problem.startswith(("quantities must match", "unable to parse"))


@pytest.mark.parametrize(
    ("text", "value", "milli"),
    [("1Gi", 1 << 30, 1000 << 30), ("100u", 1, 1), ("512m", 1, 512), ("1.5", 2, 1500), ("0.0001", 1, 1)],
)
def test_values_round_up(text: str, value: int, milli: int) -> None:
    quantity = Quantity.parse(text)
    assert (quantity.value(), quantity.milli_value()) == (value, milli)


def test_equal_values_are_equal_whatever_their_texts() -> None:
    assert Quantity.parse("1Gi") == Quantity.parse("1024Mi")
    assert hash(Quantity.parse("1")) == hash(Quantity.parse("1000m"))
    assert Quantity.parse("1G") != Quantity.parse("1Gi")
    assert Quantity.parse("1G") < Quantity.parse("1Gi") <= Quantity.parse("1024Mi")


def test_an_absurd_exponent_costs_nothing() -> None:
    assert Quantity.parse("1e1000000000").value() == 0
    assert (Quantity.parse("1e1000000000") + Quantity.parse("1")).sign == 1


def test_space_is_allowed_around_a_json_text_only() -> None:
    assert Quantity.from_json(" 5 ") == Quantity.parse("5")
    with pytest.raises(QuantityError):
        Quantity.parse(" 5 ")


@pytest.mark.parametrize("value", [True, [], {}])
def test_other_json_is_refused(value: object) -> None:
    with pytest.raises(QuantityError):
        Quantity.from_json(value)


def test_null_is_zero() -> None:
    """As `Quantity.UnmarshalJSON` has it: a server stores `memory: null` as 0."""
    assert str(Quantity.from_json(None)) == "0"


def test_bare_json_numbers_are_read_by_their_digits() -> None:
    assert Quantity.from_json(2) == Quantity.parse("2")
    assert Quantity.from_json(0.5) == Quantity.parse("500m")


def test_a_sum_takes_the_format_of_its_first_value_that_is_not_zero() -> None:
    assert str(Quantity.parse("0") + Quantity.parse("1Gi")) == "1Gi"
    assert (Quantity.parse("1G") + Quantity.parse("1Gi")).format is Format.DECIMAL_SI


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        *[("0", 0), ("+0", 0), ("1ns", 1), ("2us", 2000), ("2µs", 2000), ("2μs", 2000), ("100ms", 10**8)],
        *[("1h2m3.5s", 3_723_500_000_000), ("-1.5s", -1_500_000_000), (".5s", 500_000_000), ("1.s", 10**9)],
        *[("9223372036854775807ns", MAX_INT64), ("0.0000000001s", 0)],
    ],
)
def test_durations_of_go(text: str, nanoseconds: int) -> None:
    assert parse_duration(text) == nanoseconds


@pytest.mark.parametrize(
    "text", ["", "-", ".s", "5", "s", "1d", "1h ", "1 h", "1m1", "9223372036854775808ns", "1" * 5000 + "h"]
)
def test_what_go_refuses_as_a_duration(text: str) -> None:
    with pytest.raises(InputError, match="is not a duration such as 100ms"):
        parse_duration(text)


def test_days_are_ours() -> None:
    assert parse_duration("1d12h", days=True) == 36 * 3_600 * 10**9


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        *(("512MB", "512Mi"), ("1g", "1Gi"), ("6GiB", "6Gi"), ("1000mi", "1000Mi"), ("1,5 Gi", "1.5Gi")),
        *(("100K", "100Ki"), ("one", "250m, 1.5 or 512Mi"), ("5MBs", "250m, 1.5 or 512Mi")),
    ],
)
def test_the_units_of_other_programs_are_understood(text: str, meant: str) -> None:
    assert quantity_hint(text) == f"write a quantity such as {meant}"


@pytest.mark.parametrize(
    ("text", "resource", "meant"),
    [("one", "memory", "512Mi or 1.5Gi"), ("one", "cpu", "250m or 1.5"), ("5g", "cpu", "250m or 1.5")],
)
def test_the_examples_are_quantities_of_the_resource(text: str, resource: str, meant: str) -> None:
    assert quantity_hint(text, resource) == f"write a quantity such as {meant}"
