"""What a rewrite will take, before it runs: a copy of the file is replayed against the prices of the loaded model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from specchat.bench.replay import LONGEST_COPY, Clock, Recording
from specchat.dialogue import Dialogue
from specchat.rewrite.copies import file_begins
from specchat.rewrite.generate import Rewriting
from specchat.rewrite.long import AnyRewriting
from specchat.rewrite.prompt import Asked
from specchat.session import ChatSession, Guess
from speculation.accept import rule_named
from speculation.controllers.adaptive import Adaptive
from speculation.cost import CostTable
from speculation.engine import EndTokens, Engine
from speculation.guessers.prompt_lookup import PromptLookup
from speculation.sampling import GREEDY

_READ_AT_ONCE = 128  # tokens of a forward that reads, as the engine has it
_MOST_REPLAYS = 6  # pieces of a long file that are replayed; the others are like them
_ENOUGH_READ = 256  # tokens whose reading says what a token takes to be read


@dataclass(frozen=True, slots=True)
class Forecast:
    """Estimates, in seconds, reading included."""

    prompt_tokens: int
    file_tokens: int
    read_s: float
    unchanged_s: float  # if the model copies the file
    changed_s: float  # if no guess helps, which is the time of plain decoding

    def __str__(self) -> str:
        """As one line for people."""
        return (
            f"{self.file_tokens} tokens: about {told(self.unchanged_s)} if little changes, "
            f"{told(self.changed_s)} if all of it does (est)"
        )


def forecast(session: Dialogue, rewriting: AnyRewriting) -> Forecast | None:
    """What a rewrite that was planned will take; None on a server, and for a model without a price list.

    Nothing is evaluated.
    """
    if not isinstance(session, ChatSession) or (cost := session.engines.cost) is None:
        return None
    pieces = [rewriting] if isinstance(rewriting, Rewriting) else list(rewriting.planned)
    # The prompt has the template's tokens too, which say nothing to lookups.
    read_s = rewriting.prompt_tokens * _read_token_s(session, cost)
    replayed = pieces[:: -(-len(pieces) // _MOST_REPLAYS) or 1]
    plain_s = copied_s = 0.0
    for piece in replayed:
        prompt, copy = _tokens(session, piece.asked)
        source = file_begins(prompt, session.engines.target.weights.vocabulary.piece, piece.asked)
        piece_s = len(copy) * cost.forward_s(1)
        plain_s += piece_s
        guesses = session.guess is not Guess.OFF
        copied_s += (
            copying_s(prompt, copy, cost, session.learned(), source, session.engines.target.max_rows)
            if guesses
            else piece_s
        )
    left_out = sum(each.file_tokens for each in pieces) - sum(each.file_tokens for each in replayed)
    scale = 1 + left_out / max(1, sum(each.file_tokens for each in replayed))
    return Forecast(
        prompt_tokens=rewriting.prompt_tokens,
        file_tokens=rewriting.file_tokens,
        read_s=read_s,
        unchanged_s=read_s + copied_s * scale,
        changed_s=read_s + plain_s * scale,
    )


def copying_s(
    prompt: Sequence[int],
    copy: Sequence[int],
    cost: CostTable,
    learned: object = None,
    source: int | None = None,
    max_rows: int = LONGEST_COPY + 1,
) -> float:
    """Seconds to write a copy of what begins at an index of the prompt with lookups, by a price list."""
    number = {token: i for i, token in enumerate(dict.fromkeys((*prompt, *copy)))}  # a small vocabulary
    given, out = [number[token] for token in prompt], [number[token] for token in copy]
    clock = Clock()
    model = Recording(given + out, len(number), cost, clock, max_rows)
    lookup = PromptLookup()
    if isinstance(learned, dict):
        lookup.survival.load(learned)
    if source is not None:
        lookup.expect_copy(source)
    engine = Engine(model, {lookup.name: lookup}, Adaptive(cost), rule_named("coupled", 0), GREEDY, clock)
    for _ in engine.read(np.array(given, dtype=np.int32)):
        pass
    for _ in engine.steps(limit=len(out), ends=EndTokens()):
        pass
    return clock.now_s


def told(seconds: float) -> str:
    """A duration as people read it: 9 s, 2 min 10 s."""
    whole = max(1, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _tokens(session: ChatSession, asked: Asked) -> tuple[list[int], list[int]]:
    """The request, and the reply that copies its lines."""
    encode = session.engines.target.weights.vocabulary.encode
    prompt = encode(asked.message + asked.opening).tolist()
    return prompt, encode(asked.message[asked.start : asked.end] + asked.closing).tolist()


def _read_token_s(session: ChatSession, cost: CostTable) -> float:
    """Seconds to read a token: as the last reply did, or by the price of many rows."""
    last = session.last_reply
    if last is not None and last.read_tokens >= _ENOUGH_READ:
        return last.read_s / last.read_tokens
    return cost.forward_s(_READ_AT_ONCE) / _READ_AT_ONCE
