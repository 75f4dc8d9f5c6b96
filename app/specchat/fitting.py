"""The context policy on the messages and turns of a chat, counted with the tokens of a loaded model."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from specchat.chat import Turn
from specchat.context_policy import DoesNotFit, Fitted, Policy, Weighed, fit_context, reply_room
from specchat.conversation import Message, Role
from specchat.dialogue import Answerer


@dataclass(frozen=True, slots=True)
class FittedTurns:
    """What becomes of the turns of a path; nothing changes before `mark`."""

    fitted: Fitted
    dropping: tuple[Turn, ...]  # that will not be read any more
    returning: tuple[Turn, ...]  # that will be read again
    costs: dict[int, int]  # tokens of each turn by its id, with what the template writes around it
    system_tokens: int

    def mark(self) -> None:
        """Make it so: from now on `Chat.messages` leaves out what is dropped."""
        for turn in self.dropping:
            turn.is_dropped = True
        for turn in self.returning:
            turn.is_dropped = False


def fit_messages(
    model: Answerer,
    messages: Sequence[Message],
    policy: Policy,
    *,
    max_tokens: int | None = None,
    pinned: Collection[int] = (),
    dropped: Collection[int] = (),
) -> Fitted:
    """Which messages a reply to the last of them reads; `pinned` and `dropped` are indices.

    Raises DoesNotFit, TemplateError.
    """
    n_ctx = model.n_ctx
    everything = Fitted(tuple(range(len(messages))), (), sum(model.costs(messages)))
    if n_ctx is None:
        return everything
    costs = model.costs(messages)
    costs[-1] += model.prompt_length(messages) - sum(costs)
    weighed = [
        Weighed(message.role, cost, is_pinned=i in pinned, is_dropped=i in dropped)
        for i, (message, cost) in enumerate(zip(messages, costs, strict=True))
    ]
    room = reply_room(n_ctx, max_tokens)
    try:
        return fit_context(weighed, n_ctx, room, policy, model.n_ctx_train)
    except DoesNotFit:
        if model.is_remote:  # estimates refuse nothing: the server knows, and says it
            return everything
        raise


def fit_turns(
    model: Answerer, system: str, path: Sequence[Turn], policy: Policy, max_tokens: int | None = None
) -> FittedTurns:
    """Which turns of a whole path, dropped ones included, a reply to its last turn reads.

    Raises DoesNotFit, TemplateError.
    """
    messages, first = _said(system, path)
    fitted = fit_messages(
        model,
        messages,
        policy,
        max_tokens=max_tokens,
        pinned=[i for i, turn in enumerate(path, first) if turn.is_pinned],
        dropped=[i for i, turn in enumerate(path, first) if turn.is_dropped],
    )
    costs, system_tokens = turn_costs(model, system, path)
    return FittedTurns(
        fitted,
        dropping=tuple(path[i - first] for i in fitted.newly_dropped),
        returning=tuple(path[i - first] for i in fitted.back),
        costs=costs,
        system_tokens=system_tokens,
    )


def turn_costs(model: Answerer, system: str, path: Sequence[Turn]) -> tuple[dict[int, int], int]:
    """Tokens of each turn by its id, and those of the system prompt. Raises TemplateError."""
    messages, first = _said(system, path)
    costs = model.costs(messages)
    return {turn.id: cost for turn, cost in zip(path, costs[first:], strict=True)}, sum(costs[:first])


def _said(system: str, path: Sequence[Turn]) -> tuple[list[Message], int]:
    """A message for each turn, and how many stand in front of them."""
    found = [Message(Role.SYSTEM, system)] if system else []
    return [*found, *(Message(turn.role, turn.prompt_text, turn.tokens) for turn in path)], len(found)
