"""The guessers that belong to one target: heads that were made for it, and a layer that its file brings."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Protocol

from specchat.reply import Guess
from speculation.guessers.base import Guesser
from speculation.guessers.eagle3 import Eagle3
from speculation.guessers.multi_token import MultiToken
from speculation.guessers.trained_head import TrainedHead
from speculation.sampling import SamplingConfig

if TYPE_CHECKING:
    from specchat.loading import Engines

DRAFT_MIN_P = 0.4  # a guesser that believes less in its own token stops there, where nobody gives a price


class OwnGuesser(Guesser, Protocol):
    """One whose tokens have a price, and which cuts its rows as the target's are cut."""

    @property
    def sampling(self) -> SamplingConfig: ...

    @sampling.setter
    def sampling(self, sampling: SamplingConfig) -> None: ...

    def token_s(self, clock: Callable[[], float]) -> float:
        """Seconds of a token, measured."""
        ...


class OwnGuessers:
    """Makes each when it is first wanted, and keeps it."""

    def __init__(self, engines: Engines) -> None:
        self._engines = engines
        self._made: dict[str, OwnGuesser] = {}

    def equipped(self, sampling: SamplingConfig, wanted: Container[str]) -> dict[str, OwnGuesser]:
        """Those of the wanted ones that are here; without them the target keeps its states to itself."""
        eagle3 = self._made.get(Eagle3.name)
        if isinstance(eagle3, Eagle3) and eagle3.head is not self._engines.eagle3:
            del self._made[Eagle3.name]  # its head was unloaded
        for name in self._engines.own:
            if name not in self._made:
                self._made[name] = self._new(name, sampling)
            self._made[name].sampling = sampling
        found = {name: guesser for name, guesser in self._made.items() if name in wanted}
        self._engines.target.keeps_hidden = any(name in found for name in self._engines.heads)
        if self._engines.next_layer is not None:
            self._engines.next_layer.follows = MultiToken.name in found
        if self._engines.eagle3 is not None:
            self._engines.eagle3.follows = Eagle3.name in found
        return found

    def steps_s(self, clock: Callable[[], float]) -> dict[str, float]:
        """Seconds of a token of each, measured; what happens refines it."""
        return {name: guesser.token_s(clock) for name, guesser in self._made.items()}

    def alphas(self) -> dict[str, float]:
        """How often the next token of those is right that were tried when they were trained."""
        return {name: head.accuracy[0] for name, head in self._engines.heads.items() if head.accuracy}

    def _new(self, name: str, sampling: SamplingConfig) -> OwnGuesser:
        engines = self._engines
        if name == MultiToken.name:
            assert engines.next_layer is not None
            return MultiToken(engines.next_layer, sampling, DRAFT_MIN_P)
        if name == Eagle3.name:
            assert engines.eagle3 is not None
            return Eagle3(engines.eagle3, sampling, DRAFT_MIN_P)
        return TrainedHead(engines.heads[Guess(name)], engines.target, sampling, DRAFT_MIN_P)
