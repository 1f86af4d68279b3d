"""Numbers and texts as people read them."""

from datetime import UTC, datetime

import pytest

from kubectl_qos.present import format as amounts

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1023, "1023 B"),
        (1 << 20, "1Mi"),
        (1536 << 20, "1.5Gi"),
        (67432841216, "62.8Gi"),
        (1 << 40, "1Ti"),
    ],
)
def test_binary(value: int, text: str) -> None:
    assert amounts.binary(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(1023 << 20, "1023Mi"), (1536 << 20, "1.5Gi"), (40323 << 30, "39.4Ti")]
)
def test_what_changes_all_the_time_has_few_digits(value: int, text: str) -> None:
    assert amounts.rounded(value) == text


def test_tables_have_one_unit() -> None:
    assert [amounts.mebibytes(value) for value in (0, 1 << 20, 1 << 30, 1536 << 20)] == [
        "0Mi",
        "1Mi",
        "1024Mi",
        "1536Mi",
    ]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (119, "119s"),
        (125, "2m5s"),
        (600, "10m"),
        (3 * 3600 + 60, "3h1m"),
        (10 * 3600, "10h"),
        (76 * 3600, "3d4h"),
        (40 * 86400, "40d"),
        (800 * 86400, "2y70d"),
    ],
)
def test_ages_are_kubectls(seconds: int, text: str) -> None:
    assert amounts.duration(seconds) == text


def test_an_age_needs_a_time() -> None:
    assert amounts.age("2026-11-20T11:00:00Z", NOW) == "60m"
    assert amounts.age(None, NOW) == amounts.age("yesterday", NOW) == "<unknown>"
    assert amounts.age("2026-11-20T13:00:00Z", NOW) == "0s", "a clock that is ahead is no negative age"


def test_control_characters_of_a_server_are_escaped() -> None:
    assert amounts.escape("a\x1b[31mb\nc\u202ed") == "a\\x1b[31mb\\nc\\x202ed"
    assert amounts.escape("größe-1.web") == "größe-1.web"
