"""Who proposed which characters, as compact JSON: every origin once, and numbers that point to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import astuple, replace
from typing import Any

from specchat.provenance import Author, Origin, Span

_AUTHORS = tuple(Author)


def spans_as_json(spans: Iterable[Span]) -> dict[str, Any] | None:
    """Spans as values that JSON has; None for no spans."""
    origins: dict[Origin | None, int] = {None: -1}
    rows = []
    for span in spans:
        origin = origins.setdefault(span.origin, len(origins) - 1)
        rows.append([span.start, span.end, _AUTHORS.index(span.author), span.step, origin])
    return {"origins": [astuple(origin) for origin in origins if origin is not None], "spans": rows} if rows else None


def spans_from_json(found: Any) -> tuple[Span, ...]:
    """The spans that were written. Raises ValueError, TypeError or LookupError for anything else."""
    if found is None:
        return ()
    origins = [_origin(*row) for row in found["origins"]]
    return tuple(
        Span(int(start), int(end), _AUTHORS[author], int(step), origins[origin] if origin >= 0 else None)
        for start, end, author, step, origin in found["spans"]
    )


def with_turns(spans: Iterable[Span], stored: Callable[[int], int | None]) -> tuple[Span, ...]:
    """The same spans, the turns of their origins called by other ids."""
    return tuple(
        span
        if span.origin is None or span.origin.turn is None
        else replace(span, origin=replace(span.origin, turn=stored(span.origin.turn)))
        for span in spans
    )


def _origin(author: str, title: str, line: int, turn: int | None, offset: int) -> Origin:
    return Origin(Author(author), str(title), int(line), None if turn is None else int(turn), int(offset))
