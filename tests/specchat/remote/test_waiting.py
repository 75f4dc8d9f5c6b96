"""Whoever waits for a call can leave before it ends, and what comes later is handed to somebody."""

from __future__ import annotations

from concurrent.futures import Future
from threading import Event

import pytest

from specchat.remote.waiting import waited_for


def test_what_a_call_gives_or_raises_is_had() -> None:
    assert waited_for(lambda: 5, lambda: True, not_called) == 5
    with pytest.raises(OSError, match="no such host"):
        waited_for(lambda: int_of("no such host"), lambda: True, not_called)


def not_called(future: Future[int]) -> None:
    pytest.fail("it was taken")


def int_of(problem: str) -> int:
    raise OSError(problem)


@pytest.mark.parametrize("leaves", ["does not want it", "is interrupted"])
def test_who_leaves_waits_no_longer_and_the_result_is_dropped(leaves: str) -> None:
    goes_on, dropped = Event(), Event()
    late: list[int] = []

    def call() -> int:
        assert goes_on.wait(20)
        return 7

    def is_wanted() -> bool:
        if leaves == "is interrupted":
            raise KeyboardInterrupt
        return False

    def drop(future: Future[int]) -> None:
        late.append(future.result())
        dropped.set()

    if leaves == "is interrupted":
        with pytest.raises(KeyboardInterrupt):
            waited_for(call, is_wanted, drop)
    else:
        assert waited_for(call, is_wanted, drop) is None
    assert not late
    goes_on.set()
    assert dropped.wait(20)
    assert late == [7]
