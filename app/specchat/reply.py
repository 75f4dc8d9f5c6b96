"""The nouns of a reply: how it is asked for, what it yields, and what it took. No engine, no screens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from specchat.remote.figures import ServerFigures
from speculation.sampling import SamplingConfig
from speculation.stats import Totals
from speculation.types import Finish, Step


class Guess(StrEnum):
    """Who guesses: what the user chose."""

    AUTO = "auto"
    DRAFT = "draft"
    LOOKUP = "lookup"
    RECYCLING = "recycling"
    EAGLE = "eagle"
    EAGLE3 = "eagle3"
    MEDUSA = "medusa"
    MTP = "mtp"
    OFF = "off"


# Those who need something that belongs to the target: a head that was trained for it, or a layer that its file brings.
OWN = (Guess.EAGLE, Guess.EAGLE3, Guess.MEDUSA, Guess.MTP)


@dataclass(frozen=True, slots=True)
class ReplySettings:
    """How replies are written."""

    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    seed: int | None = None  # None draws a new one for each reply
    max_tokens: int | None = None  # None: until the context is full
    stop: tuple[str, ...] = ()
    rule: str = "coupled"
    guess_max: int | None = None  # tokens of a draft of a guesser chosen by hand; None: as many as look best
    pause_below: float = 0.95  # realised speed over plain below which `auto` pauses guessing; 0: never


@dataclass(frozen=True, slots=True)
class Wrote:
    """One step, and the text that it decided, which may be empty."""

    text: str
    step: Step | None  # None: text that was held back until it was clear that the reply ends


@dataclass(frozen=True, slots=True)
class Reply:
    """A finished or stopped reply, and what it took."""

    text: str
    finish: Finish | None  # None: stopped by the user
    seed: int
    totals: Totals
    steps: Sequence[Step]
    prompt_tokens: int
    reused_tokens: int  # of the prompt, that stood in the cache
    read_tokens: int  # of the prompt, that were evaluated; fewer than the rest when the reading was stopped
    read_s: float
    first_token_s: float | None
    plain_step_s: float | None  # seconds of a plain step: measured in this reply where it had enough of them
    server: ServerFigures | None = (
        None  # of a server that wrote it, which tells no steps; then the rest is what it said
    )
    exact: bool = True  # whether its text follows the model exactly, see `specchat.exactness`

    @property
    def speed_up(self) -> float | None:
        """Estimated speed over plain decoding; None from too few steps."""
        return self.totals.speed_up(self.plain_step_s)

    def behind(self, begun: Reply | None) -> Reply:
        """This reply as what goes on with another: not exact where that was not."""
        return self if begun is None or begun.exact else replace(self, exact=False)


@dataclass(frozen=True, slots=True)
class Checked:
    """How a reply compares with what the target writes without any guess."""

    tokens: int  # that are the same, from the first one on
    differs: tuple[str, str] | None  # the texts of the first two tokens that differ: the reply's, the plain run's
    chances: tuple[float, float] | None  # the target's probabilities of these two, nothing cut
