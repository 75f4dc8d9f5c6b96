"""The guessers of a session, and who chooses between them, for what the user wants just now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from specchat.own_guessers import DRAFT_MIN_P, OwnGuessers
from specchat.reply import OWN, Guess, ReplySettings
from speculation.controllers.adaptive import Adaptive
from speculation.controllers.base import Controller
from speculation.controllers.fixed import Fixed
from speculation.cost import CostTable
from speculation.engine import Engine
from speculation.guessers.base import Guesser
from speculation.guessers.draft_model import DraftModel
from speculation.guessers.extending import Extending
from speculation.guessers.leftovers import Leftovers
from speculation.guessers.prompt_lookup import PromptLookup
from speculation.guessers.recycling import Recycling
from speculation.sampling import SamplingConfig

if TYPE_CHECKING:
    from specchat.loading import Engines


class Equipment:
    """Makes each guesser when it is first wanted and keeps it, with what it has learned."""

    def __init__(self, engines: Engines, clock: Callable[[], float]) -> None:
        self.lookup = PromptLookup()
        self.draft: DraftModel | None = None
        self._engines, self._clock = engines, clock
        self._recycling = Recycling()
        self._leftovers = Leftovers()
        self._own = OwnGuessers(engines)
        self._auto: Adaptive | None = None
        self._auto_knows: object = None  # the draft model and the head that it has a price for

    def fit(self, engine: Engine, guess: Guess, settings: ReplySettings) -> None:
        """Give an engine its guessers and a controller for what the user chose."""
        guessers = self._guessers(guess, settings.sampling)
        if guess is Guess.AUTO:  # a guesser that was chosen by hand guesses alone
            lookup = self.lookup
            guessers = {name: each if each is lookup else Extending(each, lookup) for name, each in guessers.items()}
        engine.guessers = guessers
        engine.controller = self._controller(guess, settings, guessers)

    def take_off(self, engine: Engine, settings: ReplySettings) -> None:
        """Let an engine write plainly, and its target keep its states to itself."""
        engine.guessers = {self.lookup.name: self.lookup, **self._own.equipped(settings.sampling, ())}
        engine.controller = Fixed()

    @property
    def auto(self) -> Adaptive | None:
        """The controller of `auto`: one for the session, so that it keeps what it learned, anew for another draft.

        None where steps have no price.
        """
        cost = self._engines.cost
        loaded = (self._engines.draft, self._engines.eagle3)
        if cost is not None and (self._auto is None or self._auto_knows != loaded):
            heads, alphas = self._own.steps_s(self._clock), self._own.alphas()
            self._auto = Adaptive(cost, self._draft_step_s(cost), heads=heads, alphas=alphas)
            self._auto_knows = loaded
        return self._auto

    def _guessers(self, guess: Guess, sampling: SamplingConfig) -> dict[str, Guesser]:
        draft = self._engines.draft
        guessers: dict[str, Guesser] = {self.lookup.name: self.lookup}
        if draft is None:
            self.draft = None
        else:
            if self.draft is None or self.draft.model is not draft:
                self.draft = DraftModel(draft, sampling, self._engines.target.n_vocab, DRAFT_MIN_P)
            self.draft.sampling = sampling
            guessers[self.draft.name] = self.draft
        if guess is Guess.RECYCLING:  # not in `auto`: they seldom hold often enough to pay for the look at every row
            guessers |= {self._recycling.name: self._recycling, self._leftovers.name: self._leftovers}
        return guessers | self._own.equipped(sampling, OWN if guess is Guess.AUTO else (guess,))

    def _controller(self, guess: Guess, settings: ReplySettings, guessers: Mapping[str, Guesser]) -> Controller:
        name, cost, auto = str(guess), self._engines.cost, None
        if cost is None or guess is Guess.OFF:
            return Fixed()
        if guess is Guess.AUTO and (auto := self.auto) is not None:
            auto.losing = settings.pause_below
            return auto
        if name in guessers and settings.guess_max is None:
            along = (self._leftovers.name,) if guess is Guess.RECYCLING else ()
            own = self._own.steps_s(self._clock)
            return Adaptive(cost, self._draft_step_s(cost), heads=own, insist=name, along=along)
        return Fixed(name, settings.guess_max or 0) if name in guessers else Fixed()

    def _draft_step_s(self, cost: CostTable) -> float | None:
        """Seconds of a token of the draft model, roughly: decoding one is bound by reading the weights."""
        draft = self._engines.draft
        if draft is None or self._engines.draft_step_s is not None:
            return self._engines.draft_step_s
        return draft.weights.size_bytes / self._engines.target.weights.size_bytes * cost.forward_s(1)
