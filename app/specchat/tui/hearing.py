"""One reply of a server on its way to the screen: text as it comes, and no steps. In the engine's thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter
from typing import TYPE_CHECKING

from textual.message import Message

from specchat.tui.messages import Ended, Grew, Heard, Noticed
from specchat.tui.streaming import POST_S, Request

if TYPE_CHECKING:  # loading these takes longer than the first frame may
    from specchat.dialogue import Dialogue, Event

NO_STEPS = "a server wrote this reply and tells no steps"
NOTHING_CAME = "the server ended its reply without a word"


def hear(
    session: Dialogue,
    request: Request,
    events: Iterator[Event],
    post: Callable[[Message], object],
    between_events: Callable[[], None],
) -> None:
    """Post the reply to its end: all text, in order. Raises what the session does; what came is posted before."""
    from specchat.session import Reply, Wrote

    known, begun, posted, text = len(session.notices), perf_counter(), 0.0, ""

    def flush() -> None:
        nonlocal posted, text
        if text:
            post(Grew(request.turn, text, (), None))
        posted, text = perf_counter(), ""

    try:
        for event in events:
            if isinstance(event, Wrote):
                if request.keep is not None:
                    request.keep(event.text, None, ())
                text += event.text
                if perf_counter() - posted >= POST_S:
                    flush()
                    post(Heard(perf_counter() - begun))
            elif isinstance(event, Reply):
                flush()
                post(Heard(perf_counter() - begun, event))
                said = session.messages[-1] if event.text else None
                if said is None and event.finish is not None:
                    post(Noticed(NOTHING_CAME))
                post(Ended(request.turn, event, said, ()))
            between_events()
    finally:
        flush()
    for line in session.notices[known:]:
        post(Noticed(line))
