"""The model on a server, as front ends see every model. Its tokens are estimated from the characters of a text."""

from __future__ import annotations

import math
from collections.abc import Sequence

from specchat.conversation import Message
from specchat.remote.figures import ServerFigures
from specchat.remote.kinds import ServerFacts, takes_prediction
from specchat.settings.endpoints import Endpoint

TOKEN_CHARACTERS = 3.5  # of most texts, until a reply has told better
_AROUND = 4  # tokens that a template writes around a message


class RemoteModel:
    """Names, sizes, and estimates that get better with each reply."""

    draft_name = None
    is_remote = True
    n_ctx_train = None

    def __init__(self, endpoint: Endpoint, facts: ServerFacts, load_s: float) -> None:
        """`load_s` is how long it took to ask the server what it is."""
        self.endpoint = endpoint
        self.facts = facts
        self.load_s = load_s
        self._token_characters = TOKEN_CHARACTERS

    @property
    def name(self) -> str:
        """The model's name."""
        return self.facts.title

    @property
    def where(self) -> str:
        """The host that answers."""
        return self.endpoint.host

    @property
    def n_ctx(self) -> int | None:
        """Tokens of context, where the server says so."""
        return self.facts.n_ctx

    @property
    def takes_prediction(self) -> bool:
        """Whether an old text is worth sending as a prediction."""
        wanted = self.endpoint.prediction
        return takes_prediction(self.endpoint.url) if wanted is None else wanted

    def count(self, text: str) -> int:
        """About how many tokens a text has."""
        return math.ceil(len(text) / self._token_characters)

    def ids(self, text: str) -> None:
        """Nobody here knows them."""
        return

    def prompt_ids(self, messages: Sequence[Message]) -> None:
        """Nobody here knows them."""
        return

    def prompt_length(self, messages: Sequence[Message]) -> int:
        """About how many tokens the prompt has."""
        return sum(self.costs(messages))

    def costs(self, messages: Sequence[Message]) -> list[int]:
        """About how many tokens each message takes up."""
        return [self.count(message.text) + _AROUND for message in messages]

    def learn(self, messages: Sequence[Message], figures: ServerFigures) -> None:
        """Take up how long the prompt of a reply really was."""
        tokens = (figures.prompt_tokens or 0) - _AROUND * len(messages)
        characters = sum(len(message.text) for message in messages)
        if tokens > 100:  # else it is mostly what the template writes
            self._token_characters = min(8.0, max(0.5, characters / tokens))
