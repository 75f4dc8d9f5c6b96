"""Settings of the lookups, tried on texts that are written: the real engine writes them again by a price list. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from specchat.bench.replay import Trace, longest_copies, write_again
from specchat.reply import Guess
from specchat.settings import GuessSettings
from speculation.controllers.adaptive import Adaptive
from speculation.controllers.base import Controller
from speculation.controllers.fixed import Fixed
from speculation.cost import CostTable
from speculation.guessers.prompt_lookup import PromptLookup
from speculation.stats import ENOUGH_STEPS
from speculation.survival import Survival

LEAST_COPY = 4  # tokens in a row that count as copied: fewer are found anywhere
WORTH = 0.02  # of the speed: gains below this are noise
LEAST_TEXTS = 6
_LENGTHS = (2, 4, 8, 16, 32, 63)
_PAUSES = (0.0, 0.8, 0.95, 1.0)
_MATCHES = (2, 3, 4, 6, 8)


@dataclass(frozen=True, slots=True)
class Choice:
    """How lookups guess. What there is a setting for, and the shortest match, for which there is none yet."""

    mode: Guess  # off, lookup or auto
    length: int | None = None  # tokens a lookup chosen by hand drafts; None: as many as look best
    pause_below: float = 0.95
    min_match: int = 1  # tokens

    def __str__(self) -> str:
        if self.min_match > 1:
            return f"{self.mode}, match of {self.min_match} or more"
        if self.mode is Guess.OFF:
            return "off"
        if self.mode is Guess.AUTO:
            return f"auto, pause below {self.pause_below:g}"
        return f"lookup, length {self.length or 'auto'}"

    @property
    def can_be_set(self) -> bool:
        """Whether settings can say it."""
        return self.min_match == 1

    def controller(self, cost: CostTable) -> Controller:
        """Who decides, as a chat would have it."""
        if self.mode is Guess.AUTO:
            auto = Adaptive(cost)
            auto.losing = self.pause_below
            return auto
        if self.mode is Guess.OFF:
            return Fixed()
        return (
            Adaptive(cost, insist=PromptLookup.name) if self.length is None else Fixed(PromptLookup.name, self.length)
        )


@dataclass(frozen=True, slots=True)
class Tried:
    """What a choice would have come to."""

    choice: Choice
    seconds: tuple[float, ...]  # of each text, estimated
    plain_s: tuple[float, ...]
    tokens: int
    steps: int

    @property
    def speed_up(self) -> float:
        """Over plain decoding, estimated."""
        return sum(self.plain_s) / sum(self.seconds)

    @property
    def tokens_per_step(self) -> float:
        return self.tokens / self.steps

    def seconds_of(self, half: int) -> float:
        """Of every other text, from the first (0) or the second (1) on."""
        return sum(self.seconds[half::2])


@dataclass(frozen=True, slots=True)
class Tuning:
    """All that was tried, and what follows."""

    copied: float  # the share of the tokens that stand in a copy
    present: Tried
    tried: tuple[Tried, ...]  # the present choice among them
    best: Tried | None  # a choice that settings can say; None: nothing is worth changing, or too little is known
    is_enough: bool

    @property
    def gain(self) -> float:
        """The speed with the best choice over that with the present one, less 1; estimated."""
        return 0.0 if self.best is None else self.best.speed_up / self.present.speed_up - 1.0


def present_choice(settings: GuessSettings) -> Choice:
    """The choice that the settings make. Only lookups are replayed: another guesser counts as `auto`."""
    mode = Guess(settings.mode)
    mode = mode if mode in (Guess.OFF, Guess.LOOKUP) else Guess.AUTO
    return Choice(mode, settings.length if mode is Guess.LOOKUP else None, settings.pause_below)


def choices(present: Choice) -> Iterator[Choice]:
    """What to try, the present choice first."""
    yield present
    wanted = [
        Choice(Guess.OFF),
        *(Choice(Guess.AUTO, pause_below=pause) for pause in _PAUSES),
        *(Choice(Guess.LOOKUP, length) for length in (None, *_LENGTHS)),
        *(Choice(Guess.AUTO, pause_below=present.pause_below, min_match=match) for match in _MATCHES),
    ]
    same = str(present)  # which leaves out what does not matter in its mode
    yield from (each for each in wanted if str(each) != same)


def tune(
    texts: Sequence[tuple[Trace, CostTable]], present: Choice, progress: Callable[[float], object] = lambda _: None
) -> Tuning:
    """Try everything on all texts, which are in the order of time; `progress` hears 0..1."""
    wanted = list(choices(present))
    total, done = len(wanted) * len(texts) or 1, 0

    def advanced() -> None:
        nonlocal done
        done += 1
        progress(done / total)

    tried = tuple(_tried(choice, texts, advanced) for choice in wanted)
    tokens = sum(len(trace.out) for trace, _ in texts)
    copied = sum(copied_tokens(trace) for trace, _ in texts) / max(1, tokens)
    is_enough = len(texts) >= LEAST_TEXTS and tokens >= 2 * ENOUGH_STEPS
    best = better(tried[0], tried[1:]) if is_enough else None
    return Tuning(copied, tried[0], tried, best, is_enough)


def better(present: Tried, others: Sequence[Tried]) -> Tried | None:
    """A choice that beats the present one in both halves of the texts. The best of many looks better than it is.

    It is picked by one half, and must keep its lead in the other, which had no part in the picking.
    """
    can_be_set = [each for each in others if each.choice.can_be_set]
    found = [
        picked
        for half in (0, 1)
        if (picked := min(can_be_set, key=lambda each: each.seconds_of(half), default=None)) is not None
        and all(each >= 1.0 + WORTH for each in _leads(present, picked))
    ]
    return max(found, key=lambda each: each.speed_up, default=None)


def _leads(present: Tried, other: Tried) -> tuple[float, float]:
    return tuple(present.seconds_of(half) / other.seconds_of(half) for half in (0, 1))  # type: ignore[return-value]


def copied_tokens(trace: Trace) -> int:
    """How many tokens of a text stand in a verbatim copy of what came before, at least `LEAST_COPY` long."""
    copies = longest_copies(trace).tolist()
    count = at = 0
    while at < len(copies):
        if copies[at] >= LEAST_COPY:
            count += min(copies[at], len(copies) - at)
            at += copies[at]
        else:
            at += 1
    return count


def _tried(choice: Choice, texts: Sequence[tuple[Trace, CostTable]], advanced: Callable[[], None]) -> Tried:
    """As in a chat, what was learned of one text is known in the next one."""
    controllers: dict[int, Controller] = {}
    survival = Survival()
    seconds, plain_s, tokens, steps = [], [], 0, 0
    for trace, cost in texts:
        controller = controllers.setdefault(id(cost), choice.controller(cost))
        counted, taken = write_again(trace, cost, controller, PromptLookup(choice.min_match, survival))
        seconds.append(taken)
        plain_s.append(len(trace.out) * cost.forward_s(1))
        tokens, steps = tokens + counted.emitted, steps + counted.steps
        advanced()
    return Tried(choice, tuple(seconds), tuple(plain_s), tokens, steps)
