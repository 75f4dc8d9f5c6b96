"""From texts to a head: collect, solve, learn, judge; each of them can be stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from specchat.heads.collected import Collected
from specchat.heads.file import About
from specchat.heads.writing import Replies, Written
from speculation.heads.budget import sizes
from speculation.heads.examples import Examples
from speculation.heads.fitting import Learner, Recipe
from speculation.heads.head import MEDUSA_DEPTHS, Head, Kind
from speculation.heads.judging import accuracy
from speculation.heads.network import fresh

if TYPE_CHECKING:
    from specchat.heads.matrices import Matrices

FEWEST = 1000  # positions
_FEWEST_JUDGED = 30  # positions, of fewer of which a share says nothing

Progress = Callable[[float], bool]  # hears how much is done; False stops


def collect(collected: Collected, texts: Iterator[list[Written]], positions: int, progress: Progress) -> bool:
    """Take texts until there are so many positions, or no more texts; False where it was stopped.

    What there is then is on the disk in any case. Raises OSError, EngineFailure.
    """

    def there() -> int:
        return collected.positions + (texts.growing if isinstance(texts, Replies) else 0)

    wanted = progress(there())
    try:
        while wanted and there() < positions and (found := next(texts, None)) is not None:
            collected.add(found)
            wanted = progress(there())
    finally:
        collected.add(texts.unfinished() if isinstance(texts, Replies) else [])
        collected.keep()
    return wanted


def untrained(
    kind: Kind, examples: Examples, matrices: Matrices, target_bytes: int, n_vocab: int, seed: int
) -> tuple[Head, int]:
    """A head of the right size for a model, and the width of its stream."""
    n_hidden = examples.hidden.shape[1]
    n_in = n_hidden * (2 if kind is Kind.EAGLE else 1)
    size = sizes(target_bytes, n_hidden, n_in, n_vocab)
    ids = examples.vocabulary(size.n_ids, n_vocab)
    output = matrices.output(ids)
    embeddings = output if matrices.are_tied else matrices.embeddings(ids)
    rng = np.random.default_rng([seed, 2])
    networks = tuple(fresh(n_in, size.width, n_hidden, rng) for _ in range(1 if kind is Kind.EAGLE else MEDUSA_DEPTHS))
    scale = 1.0 / float(examples.hidden[:4096].astype(np.float32).std())
    of_embeddings = 1.0 / float(embeddings.std())
    shown = embeddings if kind is Kind.EAGLE else output[:0]
    return Head(kind, networks, ids, output, shown, scale, of_embeddings), size.width


def too_few(examples: Examples, recipe: Recipe, model: str) -> str:
    """What is there and what is needed, where a head cannot learn from so few and be judged; "" where it can."""
    if len(examples) < FEWEST:
        return f"{len(examples)} tokens of {model}, and {FEWEST} are needed"
    positions = examples.with_ahead(1 + len(recipe.depths))
    judged = int(examples.held_out(positions).sum())
    if min(judged, len(positions) - judged) < _FEWEST_JUDGED:
        n_texts = examples.n_texts
        replies = f"{n_texts} {'reply' if n_texts == 1 else 'replies'} of {model}"
        return f"{replies}, and 10 of some length are needed, one of them to judge the head by"
    return ""


def learn(learner: Learner, progress: Progress, keep: Callable[[], None]) -> bool:
    """Go on to the end of the last epoch; False where it was stopped.

    `keep` is called behind each epoch and where it was stopped. Raises what that does.
    """
    while learner.step < learner.steps:
        for learned in learner.learn():
            if not progress(learned.step / learned.steps):
                keep()
                return False
        keep()
    return True


def about(head: Head, width: int, examples: Examples, recipe: Recipe, model: str, weights: str, *, tied: bool) -> About:
    """What is to be said of a head that has learned."""
    return About(
        kind=head.kind,
        model=model,
        weights=weights,
        n_hidden=head.n_features,
        width=width,
        n_ids=len(head.ids),
        feature_scale=head.feature_scale,
        embedding_scale=head.embedding_scale,
        is_tied=tied,
        positions=len(examples),
        epochs=recipe.epochs,
        accuracy=tuple(round(each, 4) for each in accuracy(head, examples, len(recipe.depths))),
    )
