"""How often a head is right on texts that it has not learned from."""

from __future__ import annotations

import numpy as np

from speculation.heads.examples import Examples, Positions
from speculation.heads.head import Head, Kind
from speculation.heads.network import forward
from speculation.types import Tokens

_CHUNK = 1000  # positions of one product


def accuracy(head: Head, examples: Examples, depths: int) -> list[float]:
    """The share of held-out positions where the best guess is the token so many places ahead, for 1, 2 ... `depths`.

    EAGLE's head is given the true tokens in between, but its own features, as behind accepted guesses.
    Raises ValueError where nothing is held out: a share of nothing would be made up.
    """
    at = examples.with_ahead(1 + depths)
    at = at[examples.held_out(at)]
    if not len(at):
        raise ValueError("no text is held out to judge a head by")
    places = head.places_of(examples.tokens)
    right = np.zeros(depths)
    for start in range(0, len(at), _CHUNK):
        right += _right(head, examples, places, at[start : start + _CHUNK], depths)
    return [float(each) for each in right / len(at)]


def _right(head: Head, examples: Examples, places: Tokens, at: Positions, depths: int) -> list[int]:
    given = examples.hidden[at].astype(np.float32)
    features, right = given, []
    for depth in range(1, depths + 1):
        is_eagle = head.kind is Kind.EAGLE
        weights = head.networks[0 if is_eagle else depth - 1]
        features, _ = forward(weights, head.inputs(features if is_eagle else given, places[at + depth]))
        best = head.ids[(features @ head.output.T).argmax(axis=1)]
        right.append(int((best == examples.tokens[at + depth + 1]).sum()))
    return right
