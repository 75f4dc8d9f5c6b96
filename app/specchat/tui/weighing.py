"""What each message of a chat takes up of the context, counted on the engine's thread and shown as a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

from specchat.attachments import label
from specchat.chat import Turn
from specchat.conversation import Role
from specchat.errors import in_one_line
from specchat.tui.messages import NotKept

if TYPE_CHECKING:  # loading it takes longer than the first frame may
    from specchat.dialogue import Dialogue

_SHOWN = 60  # characters of a message


@dataclass
class ChatWeighed(Message):
    """The page of `/context`."""

    text: str


class WeighJob:
    """Counts the tokens of a chat."""

    def __init__(self, system: str, path: Sequence[Turn], policy: str) -> None:
        self._system = system
        self._path = tuple(path)
        self._policy = policy

    def refuse(self, post: Callable[[Message], object], text: str, /) -> None:
        """Say why it cannot be done."""
        post(NotKept(text))

    def run(self, session: Dialogue, post: Callable[[Message], object], between_steps: Callable[[], None], /) -> None:
        """Count, and post the page."""
        from specchat.fitting import turn_costs

        try:
            costs, system = turn_costs(session.model, self._system, self._path)
        except Exception as error:
            post(NotKept(in_one_line(error)))
        else:
            post(ChatWeighed(weighed(self._path, costs, system, session.model.n_ctx, self._policy)))


def weighed(path: Sequence[Turn], costs: dict[int, int], system: int, n_ctx: int | None, policy: str) -> str:
    """A line for each message with its tokens, and what they come to."""
    read = system + sum(costs[turn.id] for turn in path if not turn.is_dropped)
    share = f"{read} of {n_ctx} tokens are taken ({read / n_ctx:.0%})" if n_ctx else f"about {read} tokens are taken"
    lines = [
        share,
        f"when it is full: {policy} (context.policy in the settings)",
        "",
    ]
    lines += [f"{system:7}  system prompt, always read"] if system else []
    for turn in path:
        who = "you" if turn.role is Role.USER else "reply"
        marks = [name for name, holds in (("pinned", turn.is_pinned), ("not read any more", turn.is_dropped)) if holds]
        note = f"  ({', '.join(marks)})" if marks else ""
        first = label(" ".join(turn.text.split()))
        cut = first if len(first) <= _SHOWN else f"{first[: _SHOWN - 1]}…"
        lines.append(f"{costs[turn.id]:7}  {who:5}{note}  {cut}")
    return "\n".join(lines)
