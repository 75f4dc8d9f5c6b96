"""What front ends ask of a model that runs here: its names, its context, and how many tokens something has."""

from __future__ import annotations

from collections.abc import Sequence

from specchat.conversation import Message, PromptFormat
from specchat.reply import Guess
from speculation.heads.head import Head
from speculation.llama import Eagle3Layers, LlamaModel, MultiTokenLayers
from speculation.types import Tokens


class EngineFacts:
    """The ways of `dialogue.Answerer`, from a loaded target and its draft model."""

    target: LlamaModel
    draft: LlamaModel | None
    heads: dict[Guess, Head]
    next_layer: MultiTokenLayers | None
    why_no_next_layer: str
    eagle3: Eagle3Layers | None
    format: PromptFormat

    @property
    def name(self) -> str:
        """The name of the target."""
        return self.target.weights.name

    @property
    def draft_name(self) -> str | None:
        """The name of the draft model, or of the EAGLE-3 head that was given in place of one."""
        beside = self.draft or self.eagle3
        return None if beside is None else beside.weights.name

    @property
    def own(self) -> tuple[Guess, ...]:
        """The guessers that belong to the target and are here."""
        given = ((Guess.MTP, self.next_layer), (Guess.EAGLE3, self.eagle3))
        return (*self.heads, *(guess for guess, layers in given if layers is not None))

    def why_without(self, guess: Guess) -> str:
        """Why one that would belong to the target is not here."""
        if guess is Guess.MTP:
            return f"{self.name} has no layers for multi-token prediction: {self.why_no_next_layer}"
        if guess is Guess.EAGLE3:
            return f"no EAGLE-3 head is loaded for {self.name}: give its file in place of a draft model (--draft FILE)"
        return f"{self.name} has no {guess} head: specchat heads train MODEL --kind {guess} makes one"

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
