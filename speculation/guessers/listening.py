"""What a draft model would have proposed for a text that was written without it, read off rows of a whole batch."""

from __future__ import annotations

from dataclasses import dataclass

from speculation.accept import Rule
from speculation.guessers.drafting import sureness
from speculation.sampling import SamplingConfig, distribution, probabilities
from speculation.types import Logits, Tokens


@dataclass(frozen=True, slots=True)
class Heard:
    """A token of a text, and what the draft model would have said in its place."""

    at: int  # its index in the text
    sure: float  # how sure it would have been: as the rule foresees it, or the probability of its best token
    held: bool  # whether what it would have proposed is what was written


def heard(rows: Logits, tokens: Tokens, first: int, rule: Rule, sampling: SamplingConfig) -> list[Heard]:
    """One for each token from `first` on that has a row, the row before it, shape (n, V).

    Proposals are drawn by the rule, as they would have been at that place.
    """
    found = []
    for at, row in enumerate(rows, first):
        seen = tokens[:at] if sampling.repeat_last_n < 0 else tokens[max(0, at - sampling.repeat_last_n) : at]
        q = distribution(row, sampling, seen)
        p_best = float(probabilities(row, q.ids[:1])[0])
        if foreseen := rule.foreseen(q, at, 1):
            token, share = foreseen[0]
            sure = sureness(share, p_best, q)
        else:
            token, sure = rule.draw(q, at)[0], p_best
        found.append(Heard(at, sure, token == int(tokens[at])))
    return found
