"""The scale of risk, and that it says no more than flags and ranks do."""

import pytest

from kubectl_qos.cli.commands.top import RISKS as OF_THE_COMMAND_LINE
from kubectl_qos.qos.flags import RISKS, WORDS, Flag, Risk, risk


@pytest.mark.parametrize(
    ("flags", "rank", "expected"),
    [
        ((), 2, Risk.LOW),
        ((), None, Risk.LOW),
        ((Flag.CRITICAL, Flag.STATIC, Flag.RESIZING, Flag.CLASS_DIFFERS), 2, Risk.LOW),
        ((Flag.PRIORITY,), 2, Risk.MEDIUM),
        ((Flag.OVER_REQUEST,), None, Risk.MEDIUM),
        ((Flag.NEAR_LIMIT, Flag.OVER_REQUEST), 2, Risk.HIGH),
        ((), 1, Risk.NEXT),
        ((Flag.NEAR_LIMIT,), 1, Risk.NEXT),
    ],
)
def test_the_levels(flags: tuple[Flag, ...], rank: int | None, expected: Risk) -> None:
    assert risk(flags, rank, has_processes=True) is expected
    assert risk(flags, rank, has_processes=False) is Risk.NONE


def test_every_flag_of_risk_raises_the_level() -> None:
    assert {flag for flag in Flag if risk((flag,), 2, has_processes=True) > Risk.LOW} == RISKS


def test_the_command_line_knows_every_level_in_order() -> None:
    assert OF_THE_COMMAND_LINE == WORDS == tuple(level.word for level in sorted(Risk))
