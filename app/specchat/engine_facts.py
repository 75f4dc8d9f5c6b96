"""What front ends ask of a model that runs here: its names, its context, and how many tokens something has."""

from __future__ import annotations

from collections.abc import Sequence

from specchat.conversation import Message, PromptFormat
from speculation.llama import LlamaModel
from speculation.types import Tokens


class EngineFacts:
    """The ways of `dialogue.Answerer`, from a loaded target and its draft model."""

    target: LlamaModel
    draft: LlamaModel | None
    format: PromptFormat

    @property
    def name(self) -> str:
        """The name of the target."""
        return self.target.weights.name

    @property
    def draft_name(self) -> str | None:
        return None if self.draft is None else self.draft.weights.name

    @property
    def where(self) -> str:
        """The back end."""
        return self.target.weights.back_end

    @property
    def is_remote(self) -> bool:
        return False

    @property
    def n_ctx(self) -> int:
        """Tokens of context."""
        return self.target.n_ctx

    @property
    def n_ctx_train(self) -> int | None:
        """Tokens of context that the target was trained for."""
        return self.target.weights.n_ctx_train

    def count(self, text: str) -> int:
        """How many tokens a text has."""
        return len(self.target.weights.vocabulary.encode(text))

    def ids(self, text: str) -> tuple[int, ...]:
        """The token ids of a text."""
        return tuple(int(token) for token in self.target.weights.vocabulary.encode(text))

    def prompt_ids(self, messages: Sequence[Message]) -> Tokens:
        """The ids that ask for the next reply, shape (n,). Raises TemplateError."""
        return self.format.prompt(messages)

    def prompt_length(self, messages: Sequence[Message]) -> int:
        """Tokens of the prompt that asks for the next reply. Raises TemplateError."""
        return len(self.format.prompt(messages))

    def costs(self, messages: Sequence[Message]) -> list[int]:
        """Tokens that each message takes up in the prompt, as `PromptFormat.costs` counts them."""
        return self.format.costs(messages)
