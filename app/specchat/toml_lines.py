"""Where in a TOML text something is said, which tomllib does not tell."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from typing import Any

Step = str | int  # a key, or the number of a table in an array of tables, from 0


def line_of(text: str, place: Sequence[Step]) -> int | None:
    """The line, from 1, of the first statement that makes what is at a place of a valid text, else what is around it.

    None where not even that is said anywhere.
    """
    best, depth = None, 0
    for line, made in _made(text):
        if len(made) > depth and made == tuple(place[: len(made)]):
            best, depth = line, len(made)
    return best


def _made(text: str) -> Iterator[tuple[int, tuple[Step, ...]]]:
    """Each place and the line of its statement, in the order of the text."""
    table: tuple[Step, ...] = ()
    counts: dict[tuple[Step, ...], int] = {}
    for line, statement, values in _statements(text):
        if statement.lstrip().startswith("["):
            table = _header(values, counts)
            yield from ((line, table[:depth]) for depth in range(1, len(table) + 1))
        else:
            yield from ((line, (*table, *inner)) for inner in _inside(values))


def _statements(text: str) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Each header or key with its value: the least lines that are TOML by themselves."""
    statement, first = "", 1
    for line, content in enumerate(text.split("\n"), 1):
        statement += f"{content}\n"
        try:
            values = tomllib.loads(statement)
        except ValueError:
            continue  # amid a value of several lines
        if values:
            yield first, statement, values
        statement, first = "", line + 1


def _header(values: dict[str, Any], counts: dict[tuple[Step, ...], int]) -> tuple[Step, ...]:
    """The place of the table that a header opens; arrays of tables are counted on."""
    place: tuple[Step, ...] = ()
    inner: Any = values
    while inner:
        name, inner = next(iter(inner.items()))
        place = (*place, name)
        if isinstance(inner, list):  # [[name]]
            counts[place] = counts.get(place, 0) + 1
            inner = {}
        if place in counts:
            place = (*place, counts[place] - 1)
    return place


def _inside(value: Any) -> Iterator[tuple[Step, ...]]:
    steps: Iterator[tuple[Step, Any]] = iter(())
    if isinstance(value, dict):
        steps = iter(value.items())
    elif isinstance(value, list):
        steps = iter(enumerate(value))
    for step, inner in steps:
        yield (step,)
        yield from ((step, *deeper) for deeper in _inside(inner))
