"""What happens when a chat outgrows the context: which turns are left out, and what cannot be. No engine, no screens.

Where something has to go, the oldest rounds go until half of the context is free: a prompt that loses its beginning is
read anew from there on, so it should happen once in many turns and not with each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from specchat.conversation import Role
from speculation.engine import ContextFull

REPLY_ROOM = 512  # tokens kept free for a reply that may be longer
CUT = "the context is full, so the reply ends here"


class Policy(StrEnum):
    """What to do when a chat outgrows the context."""

    ASK = "ask"  # say what would be left out, and leave it out on a yes
    DROP = "drop"  # leave it out, and say so
    STOP = "stop"  # refuse the question


@dataclass(frozen=True, slots=True)
class Weighed:
    """A message of the path, by what it takes up."""

    role: Role
    tokens: int
    is_pinned: bool = False
    is_dropped: bool = False  # left out of earlier prompts


@dataclass(frozen=True, slots=True)
class Fitted:
    """Which messages of the path are read, by index."""

    kept: tuple[int, ...]
    dropped: tuple[int, ...]
    tokens: int  # of those that are kept
    newly_dropped: tuple[int, ...] = ()  # that were read so far
    back: tuple[int, ...] = ()  # that were left out so far
    rounds: int = 0  # questions with their replies among the newly dropped
    freed: int = 0  # tokens of the newly dropped

    @property
    def notice(self) -> str:
        """What changed, for people; empty where nothing did."""
        if self.newly_dropped:
            what = (
                "the oldest question and its reply are" if self.rounds == 1 else f"the {self.rounds} oldest rounds are"
            )
            return f"the context is full: {what} not read any more ({self.freed} tokens)"
        return "there is room again: all turns are read" if self.back else ""


class DoesNotFit(ContextFull):
    """A prompt that does not fit although everything was left out that may be; the text names what is too large."""

    def __init__(self, text: str, needed: int, n_ctx: int) -> None:
        super().__init__(needed, n_ctx)
        self.args = (text,)


def reply_room(n_ctx: int, max_tokens: int | None) -> int:
    """Tokens to keep free for the reply."""
    return min(max_tokens or REPLY_ROOM, REPLY_ROOM, n_ctx // 4)


def fit_context(
    messages: Sequence[Weighed], n_ctx: int, room: int, policy: Policy = Policy.DROP, most: int | None = None
) -> Fitted:
    """Which messages to read, the last being the question. Under ASK, `newly_dropped` is what to ask about.

    The system prompt, pinned messages and the rounds they are in, and the present question stay. What was left out
    stays out until everything fits into half of the context. `most`: the largest context that the model can have.
    Raises DoesNotFit; under STOP already where the prompt does not fit as it is.
    """
    rounds = list(_rounds(messages))
    free = [each for each in rounds[:-1] if not any(m.role is Role.SYSTEM or m.is_pinned for m in _of(messages, each))]
    total = sum(message.tokens for message in messages)
    before = {i for i, message in enumerate(messages) if message.is_dropped}
    gone = {i for each in free if before.intersection(each) for i in each}
    if total + room <= n_ctx // 2:
        gone = set()
    tokens = total - sum(messages[i].tokens for i in gone)
    if policy is Policy.STOP and tokens > n_ctx and any(not gone.issuperset(each) for each in free):
        raise DoesNotFit(_stopped(tokens, n_ctx), tokens, n_ctx)
    if policy is not Policy.STOP and tokens + room > n_ctx:
        for each in free:
            if tokens + room <= n_ctx // 2:
                break
            tokens -= sum(messages[i].tokens for i in each if i not in gone)
            gone |= set(each)
    if tokens > n_ctx:
        raise DoesNotFit(_too_large(messages, rounds[-1], n_ctx, most), tokens, n_ctx)
    kept = tuple(i for i in range(len(messages)) if i not in gone)
    fresh = tuple(sorted(gone - before))
    return Fitted(
        kept=kept,
        dropped=tuple(sorted(gone)),
        tokens=tokens,
        newly_dropped=fresh,
        back=tuple(sorted(before - gone)),
        rounds=sum(1 for each in free if set(each) & set(fresh)),
        freed=sum(messages[i].tokens for i in fresh),
    )


def _rounds(messages: Sequence[Weighed]) -> Iterator[list[int]]:
    """Indices of what goes together: each system prompt, and each question with its replies, as templates want them."""
    begun: list[int] = []
    for i, message in enumerate(messages):
        if begun and not (message.role is Role.ASSISTANT and messages[begun[0]].role is not Role.SYSTEM):
            yield begun
            begun = []
        begun.append(i)
    if begun:
        yield begun


def _of(messages: Sequence[Weighed], indices: Sequence[int]) -> list[Weighed]:
    return [messages[i] for i in indices]


def _stopped(tokens: int, n_ctx: int) -> str:
    return (
        f"the chat has {tokens} tokens and the context holds {n_ctx}; begin a new one, or let the oldest turns be "
        "dropped (--on-full drop, context.policy in the settings)"
    )


def _too_large(messages: Sequence[Weighed], last: Sequence[int], n_ctx: int, most: int | None) -> str:
    """What is too large, with the sizes of what has to stay."""
    question = sum(messages[i].tokens for i in last)
    system = sum(m.tokens for m in messages if m.role is Role.SYSTEM)
    pinned = sum(
        sum(m.tokens for m in _of(messages, each))
        for each in list(_rounds(messages))[:-1]
        if any(m.is_pinned for m in _of(messages, each))
    )
    parts = [f"the question ({question} tokens)"]
    parts += [f"pinned turns ({pinned})"] if pinned else []
    parts += [f"the system prompt ({system})"] if system else []
    verb = "do" if len(parts) > 1 else "does"
    larger = most is None or most > n_ctx
    advice = f", or load the model with a larger context (--ctx{f', up to {most}' if most else ''})" if larger else ""
    shorter = "unpin turns, shorten the question" if pinned else "shorten the question"
    return f"{', '.join(parts)} {verb} not fit into the context of {n_ctx} tokens; {shorter} or attach less{advice}"
