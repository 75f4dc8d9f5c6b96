"""The cells of a table, shown one by one as they are measured, until the user stops."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from specchat.console import on_interrupt
from speculation.types import Interrupted

Cell = TypeVar("Cell")


def shown(
    cells: Iterable[Cell],
    head: str,
    row: Callable[[Cell], str] | None,
    stop_measuring: Callable[[], None] | None = None,
) -> list[Cell]:
    """All cells, each printed as a row below the head unless there are no rows. Raises Interrupted on Ctrl-C."""
    found: list[Cell] = []
    stopped = False

    def stop() -> None:
        nonlocal stopped
        stopped = True
        if stop_measuring is not None:
            stop_measuring()

    with on_interrupt(stop):
        for cell in cells:
            if stopped:
                raise Interrupted("the bench was stopped")
            found.append(cell)
            if row is not None:
                print(head if len(found) == 1 else "", row(cell), sep="\n" if len(found) == 1 else "", flush=True)
    return found
