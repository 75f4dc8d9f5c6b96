"""How a head learns: the skip in closed form, then all of it by Adam against the target's own distribution.

The labels are the target's: its hidden states are known, so its distribution behind each position is too, which says
more than the one token that it wrote (distillation, as EAGLE does). EAGLE's head also learns on features that it made
itself, as it will meet them behind its first guess (the training-time test of EAGLE-3; Li et al. 2025, 2503.01840).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from speculation.heads.examples import Examples, Positions
from speculation.heads.head import Head, Kind
from speculation.heads.network import Matrix, backward, forward
from speculation.types import Tokens

_CHUNK = 2000  # positions of one product of the closed form
_FIRST, _SECOND = 0.9, 0.99  # what Adam keeps of the first and second moment (Kingma and Ba 2015)


@dataclass(frozen=True, slots=True)
class Recipe:
    """How long and how fast to learn."""

    epochs: int = 3
    batch: int = 256
    rate: float = 1e-3  # of Adam, at its highest; it falls to a twentieth
    skip_rate: float = 0.1  # of that, for what was solved already
    warm_up: int = 100  # steps
    decay: float = 0.1  # of weights, at each step, times the rate
    dropout: float = 0.1  # of inputs
    closeness: float = 1.0  # weight of the distance to the target's feature beside the cross-entropy
    hard: float = 0.0  # share of the written token in the label, beside the target's distribution
    depths: tuple[float, ...] = (1.0, 0.5, 0.25)  # weight of each position ahead
    ridge: float = 300.0
    own_from: float = 0.34  # share of the steps after which EAGLE's head meets its own features


class Learned(NamedTuple):
    """How far the learning is."""

    step: int
    steps: int
    loss: float  # of the last batch, behind the first guess, in nats


class Learner:
    """A head that learns from examples. Everything follows from the seed, also when it was stopped and taken up."""

    def __init__(self, head: Head, examples: Examples, recipe: Recipe, seed: int) -> None:
        self.head = head
        self.step = 0
        self._weights = [dict(weights) for weights in head.networks]
        self._moments = [
            {name: (np.zeros_like(each), np.zeros_like(each)) for name, each in weights.items()}
            for weights in self._weights
        ]
        self._examples, self._recipe, self._seed = examples, recipe, seed
        self._places: Tokens = head.places_of(examples.tokens)
        found = examples.with_ahead(1 + len(recipe.depths))
        self._positions = found[~examples.held_out(found)]

    @property
    def steps(self) -> int:
        """Of all epochs."""
        return self._recipe.epochs * self.steps_of_epoch

    @property
    def steps_of_epoch(self) -> int:
        return max(1, len(self._positions) // self._recipe.batch)

    @property
    def present(self) -> Head:
        """The head as it is now; its numbers change with every step."""
        return replace(self.head, networks=tuple(self._weights))

    def state(self) -> dict[str, Matrix]:
        """All that has been learned, for `load`."""
        found: dict[str, Matrix] = {}
        for i, (weights, moments) in enumerate(zip(self._weights, self._moments, strict=True)):
            for name, weight in weights.items():
                found[f"{i}.{name}"] = weight
                found[f"{i}.{name}.first"], found[f"{i}.{name}.second"] = moments[name]
        return found

    def load(self, state: Mapping[str, Matrix], step: int) -> None:
        """Go on from a state. Raises KeyError, ValueError where it is not one of such a head."""
        taken = {name: np.array(state[name], dtype=np.float32) for name in self.state()}
        if any(taken[name].shape != each.shape for name, each in self.state().items()) or not 0 <= step <= self.steps:
            raise ValueError("the state of another head")
        for i, (weights, moments) in enumerate(zip(self._weights, self._moments, strict=True)):
            for name in weights:
                weights[name] = taken[f"{i}.{name}"]
                moments[name] = taken[f"{i}.{name}.first"], taken[f"{i}.{name}.second"]
        self.step = step

    def solve(self) -> None:
        """Set the skip of each network to the ridge regression of the target's feature on its inputs."""
        for depth, weights in enumerate(self._weights, 1):
            n_in, n_out = weights["skip"].shape
            inside, across = np.zeros((n_in, n_in)), np.zeros((n_in, n_out))
            for start in range(0, len(self._positions), _CHUNK):
                at = self._positions[start : start + _CHUNK]
                x = self.head.inputs(self._hidden(at), self._places[at + 1])
                inside += x.T @ x
                across += x.T @ self._hidden(at + depth)
            solved = np.linalg.solve(inside + self._recipe.ridge * np.eye(n_in), across)
            weights["skip"] = solved.astype(np.float32)

    def learn(self) -> Iterator[Learned]:
        """Go on to the end of the present epoch, a batch between two yields."""
        epoch, first = divmod(self.step, self.steps_of_epoch)
        order = np.random.default_rng([self._seed, epoch]).permutation(self._positions)
        size = self._recipe.batch
        for batch in range(first, self.steps_of_epoch):
            yield Learned(self.step, self.steps, self._learn_from(order[batch * size : (batch + 1) * size]))

    def _learn_from(self, at: Positions) -> float:
        rng = np.random.default_rng([self._seed, 1, self.step])
        losses = (self._eagle if self.head.kind is Kind.EAGLE else self._medusa)(at, rng)
        self.step += 1
        return losses

    def _eagle(self, at: Positions, rng: np.random.Generator) -> float:
        """The same network again and again, behind the first time on what it made itself."""
        weights, features = self._weights[0], self._hidden(at)
        found: dict[str, Matrix] = {}
        first = 0.0
        depths = self._recipe.depths if self.step >= self._recipe.own_from * self.steps else self._recipe.depths[:1]
        for depth, share in enumerate(depths, 1):
            x = self._dropped(self.head.inputs(features, self._places[at + depth]), rng)
            features, trace = forward(weights, x)
            loss, slope = self._loss(features, at + depth)
            first = first if depth > 1 else loss
            for name, each in backward(weights, trace, share * slope).items():
                found[name] = found[name] + each if name in found else each
        self._descend(0, found)
        return first

    def _medusa(self, at: Positions, rng: np.random.Generator) -> float:
        """A network for each position ahead."""
        x = self._dropped(self.head.inputs(self._hidden(at), np.empty(0, dtype=np.int32)), rng)
        first = 0.0
        for depth, weights in enumerate(self._weights, 1):
            features, trace = forward(weights, x)
            loss, slope = self._loss(features, at + depth)
            first = first if depth > 1 else loss
            self._descend(depth - 1, backward(weights, trace, slope))
        return first

    def _loss(self, features: Matrix, at: Positions) -> tuple[float, Matrix]:
        """The mean cross-entropy of what the target says at these positions, and the slope of the whole loss."""
        output, scale = self.head.output, np.float32(self.head.feature_scale)
        true, label = self._hidden(at), self._places[at + 1]
        known = label >= 0
        wanted = _softmax(true @ output.T)
        wanted *= 1.0 - self._recipe.hard
        wanted[known, label[known]] += self._recipe.hard
        found = _softmax(features @ output.T)
        loss = -float((wanted[known] * np.log(found[known] + 1e-9)).sum()) / max(1, int(known.sum()))
        found -= wanted
        found[~known] = 0.0
        away = np.clip((features - true) * scale, -1.0, 1.0)
        slope: Matrix = (found @ output + away * (scale * self._recipe.closeness / features.shape[1])) / len(at)
        return loss, slope

    def _descend(self, which: int, slopes: Mapping[str, Matrix]) -> None:
        """A step of Adam with decoupled decay (Loshchilov and Hutter 2019)."""
        recipe, t = self._recipe, self.step + 1
        rate = recipe.rate * min(1.0, t / recipe.warm_up) * (0.05 + 0.95 * (1.0 - self.step / max(1, self.steps)))
        for name, slope in slopes.items():
            weight, (first, second) = self._weights[which][name], self._moments[which][name]
            first += (1.0 - _FIRST) * (slope - first)
            second += (1.0 - _SECOND) * (slope * slope - second)
            step = first / (1.0 - _FIRST**t) / (np.sqrt(second / (1.0 - _SECOND**t)) + 1e-8) + recipe.decay * weight
            weight -= np.float32(rate * (recipe.skip_rate if name == "skip" else 1.0)) * step

    def _dropped(self, x: Matrix, rng: np.random.Generator) -> Matrix:
        share = self._recipe.dropout
        if share == 0.0:
            return x
        kept: Matrix = np.where(rng.random(x.shape, dtype=np.float32) >= share, x, np.float32(0.0))
        return kept / np.float32(1.0 - share)

    def _hidden(self, at: Positions) -> Matrix:
        rows: Matrix = self._examples.hidden[at].astype(np.float32)
        return rows


def _softmax(logits: Matrix) -> NDArray[np.float32]:
    logits = logits - logits.max(axis=1, keepdims=True)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=1, keepdims=True)
    return logits
