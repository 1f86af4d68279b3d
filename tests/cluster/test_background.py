"""Work in a thread meanwhile: order, errors, and no thread that outlives its reader."""

import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from kubectl_qos.cluster.background import Future, ahead, run_all
from kubectl_qos.errors import QosError
from tests.cluster.following import wait_for

PATIENCE_SECONDS = 5.0


def test_items_come_in_order() -> None:
    assert list(ahead(range(100))) == list(range(100))
    assert list(ahead([])) == []


def test_the_next_item_is_made_while_one_is_worked_on() -> None:
    made: list[int] = []
    taken: list[int] = []
    waiting: list[int] = []

    def items() -> Iterator[int]:
        for number in range(10):
            waiting.append(len(made) - len(taken))
            made.append(number)
            yield number

    reader = ahead(items())
    for number in range(10):
        taken.append(next(reader))
        wait_for(lambda number=number: len(made) >= min(number + 2, 10))  # type: ignore[misc]
    assert taken == made
    assert max(waiting) <= 2, "no more than one waits while one is made"


def test_an_error_comes_after_the_items_before_it() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("broken")

    reader = ahead(items())
    assert next(reader) == 1
    with pytest.raises(ValueError, match="broken"):
        next(reader)


@pytest.mark.parametrize("fails", [False, True])
def test_a_reader_that_stops_early_or_fails_leaves_no_thread(fails: bool) -> None:
    threads: list[threading.Thread] = []

    def items() -> Iterator[int]:
        threads.append(threading.current_thread())
        yield from range(10)

    def read() -> None:
        for _ in ahead(items()):
            if fails:
                raise KeyboardInterrupt
            break

    with pytest.raises(KeyboardInterrupt) if fails else nullcontext():
        read()
    wait_for(lambda: not threads[0].is_alive())


def test_stopping_does_not_wait_for_the_item_on_its_way() -> None:
    may_end = threading.Event()

    def items() -> Iterator[int]:
        yield 1
        may_end.wait(PATIENCE_SECONDS)
        yield 2

    reader = ahead(items())
    next(reader)
    started = time.monotonic()
    reader.close()  # type: ignore[attr-defined]
    assert time.monotonic() - started < PATIENCE_SECONDS / 2
    may_end.set()


def test_a_later_value_is_waited_for() -> None:
    may_end = threading.Event()

    def compute() -> int:
        may_end.wait(PATIENCE_SECONDS)
        return 7

    later = Future(compute)
    may_end.set()
    assert later.result() == 7
    assert later.result() == 7


def test_a_later_error_is_raised_where_the_value_is_read() -> None:
    def compute() -> int:
        raise ValueError("broken")

    later = Future(compute)
    with pytest.raises(ValueError, match="broken"):
        later.result()


def test_several_items_at_once_keep_their_own_errors() -> None:
    def work(number: int) -> int:
        if number % 2:
            raise QosError(f"odd: {number}")
        return number * 10

    outcomes = run_all(work, range(5), at_once=2)
    assert [outcome for outcome in outcomes.values() if not isinstance(outcome, QosError)] == [0, 20, 40]
    assert {number: str(outcomes[number]) for number in (1, 3)} == {1: "odd: 1", 3: "odd: 3"}
    with pytest.raises(ZeroDivisionError):
        run_all(lambda number: 1 // number, range(3), at_once=2)
