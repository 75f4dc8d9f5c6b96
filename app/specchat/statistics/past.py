"""Kept replies as token ids behind the prompts that led to them, for those who write or read them again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from statistics import median

from specchat.attachments import label
from specchat.catalogue import Model
from specchat.conversation import Message, PromptFormat, prompt_format
from specchat.errors import NotHere
from specchat.history.packing import PackedSteps
from specchat.history.records import ChatRecord
from specchat.history.restore import to_chat
from specchat.history.store import Store
from specchat.kept import kept_prices, prices_of
from specchat.machine import decoding_threads
from specchat.opening import harmless
from specchat.shelf import Shelf, is_path
from specchat.template import TemplateError
from speculation.cost import CostTable
from speculation.llama import ENGINE_VERSION, EngineLog, LlamaWeights, Vocabulary
from speculation.types import SpeculationError, Step

_ENOUGH_OF_A_WIDTH = 5  # steps


@dataclass(frozen=True, slots=True)
class Written:
    """A kept reply whose tokens are known, and what the model had read before it."""

    ended: float  # seconds since 1970
    model: str
    history: tuple[Message, ...]
    tokens: tuple[int, ...]
    steps: Sequence[Step]  # of its last part; unpacked when looked at


def last_written(store: Store, most: int, since: float = 0.0, model: str | None = None) -> list[Written]:
    """The last replies, the oldest of them first; written by `model` if it is given. Raises StoreRefused."""
    found: list[Written] = []
    for chat in sorted(store.chats(), key=lambda each: -each.changed):
        oldest = found[-1].ended if len(found) == most else since
        if chat.changed < oldest:
            break
        found += (
            each
            for each in written_in(store.load(chat.id))
            if each.ended >= oldest and (model is None or each.model == model)
        )
        found = sorted(found, key=lambda each: -each.ended)[:most]
    return found[::-1]


def written_in(record: ChatRecord) -> list[Written]:
    """The replies of one chat, on all its branches."""
    chat = to_chat(record)
    found = []
    for turn in record.turns:
        last = turn.parts[-1] if turn.parts else None
        if turn.tokens and turn.parent is not None and last is not None and last.ended is not None:
            history = tuple(chat.messages(chat.turn(turn.parent)))
            found.append(Written(last.ended, last.about.model, history, turn.tokens, PackedSteps(last.steps)))
    return found


class Reader:
    """The vocabulary and the template of a model file, which is not loaded."""

    def __init__(self, weights: LlamaWeights) -> None:
        self.name = weights.name
        self.vocabulary: Vocabulary = weights.vocabulary
        special = {"bos": self.vocabulary.bos, "eos": self.vocabulary.eos}
        text = self.vocabulary.text
        texts = {name: text(token).decode("utf-8", "replace") for name, token in special.items() if token >= 0}
        self.format: PromptFormat = prompt_format(weights.chat_template, self.vocabulary, texts)

    def prompt(self, written: Written) -> tuple[int, ...]:
        """The ids that a reply followed; empty where the messages make no prompt, or the ids are of another model."""
        if max(written.tokens) >= self.vocabulary.n_tokens or min(written.tokens) < 0:
            return ()
        try:
            return tuple(self.format.prompt(written.history).tolist())
        except (TemplateError, SpeculationError):
            return ()


@contextmanager
def reader_of(shelf: Shelf, path: Path) -> Iterator[Reader]:
    """Who reads for a model in a file. Raises CannotLoad, Interrupted."""
    weights = LlamaWeights(harmless(shelf, path), EngineLog(), only_vocabulary=True)
    try:
        yield Reader(weights)
    finally:
        weights.close()


def file_of(shelf: Shelf, name: str, asked: str | None = None) -> Path:
    """The file of a model that wrote kept replies; where somebody asked for it by its path, that. Raises NotHere."""
    if asked is not None and is_path(asked):
        return Path(asked).expanduser()
    model = _model(shelf, name)
    if model is None:
        raise NotHere(f"{label(name) or 'the model'} wrote these replies and is not here; see: specchat models list")
    return shelf.store.path(model)


def name_in_store(shelf: Shelf, asked: str | None) -> str | None:
    """What the replies of a model are kept under: the name of its file."""
    if asked is None or is_path(asked):
        return None if asked is None else Path(asked).stem
    model = _model(shelf, asked)
    return asked if model is None else shelf.store.path(model).stem


def name_in_catalogue(shelf: Shelf, name: str) -> str:
    """The name by which the catalogue knows a model that wrote kept replies; one like a path where it does not."""
    model = _model(shelf, name)
    return f"{name}.gguf" if model is None else model.id


def _model(shelf: Shelf, name: str) -> Model | None:
    here = (model for model in shelf.catalogue.models if shelf.store.has(model))
    return next((model for model in here if name in (model.id, shelf.store.path(model).stem)), None)


def price_list(name: str, written: Sequence[Written], threads: int | None = None) -> CostTable | None:
    """What checks of a model cost on this machine: as measured when it was loaded, or as its replies took."""
    known = prices_of(kept_prices(), name, threads or decoding_threads(), ENGINE_VERSION)[0]
    return known or prices_from(step for each in written for step in each.steps)


def prices_from(steps: Iterable[Step]) -> CostTable | None:
    """The usual time of a check by the number of its rows; None without enough plain steps.

    A wider check is never cheaper than a narrower one: where it seems so, the few steps of one width are to blame.
    """
    taken: dict[int, list[float]] = {}
    for step in steps:
        taken.setdefault(step.drafted + 1, []).append(step.verify_s + step.accept_s)
    usual = {rows: median(seconds) for rows, seconds in sorted(taken.items()) if len(seconds) >= _ENOUGH_OF_A_WIDTH}
    if usual.get(1, 0.0) <= 0.0:
        return None
    return CostTable(dict(zip(usual, accumulate(usual.values(), max), strict=True)))


def of_one_model(written: Sequence[Written]) -> tuple[str, list[Written]]:
    """The model of the last reply, and its replies."""
    model = written[-1].model
    return model, [each for each in written if each.model == model]
