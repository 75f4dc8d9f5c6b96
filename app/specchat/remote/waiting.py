"""Calls that may take long and that nothing can end, such as looking up a host: whoever waits can leave at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from threading import Thread
from typing import TypeVar

_LOOK_S = 0.05  # between two looks at whether the result is still wanted

T = TypeVar("T")


def waited_for(call: Callable[[], T], is_wanted: Callable[[], bool], drop: Callable[[Future[T]], object]) -> T | None:
    """What a call gives, made in a thread of its own; None once that is not wanted. Raises what the call does.

    `drop` is given what comes after everybody has left, by an interrupt too.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=run, name="waiting", daemon=True).start()
    is_taken = False
    try:
        while is_wanted():
            if wait([future], _LOOK_S).done:
                is_taken = True
                return future.result()
    finally:
        if not is_taken:
            future.add_done_callback(drop)
    return None
