"""A draft model tried on replies that are written: read on the engine's thread, then unloaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from textual.message import Message

from specchat.chat import Chat
from specchat.conversation import Role
from specchat.errors import in_one_line
from specchat.tui.messages import ONLY_HERE, TryEnded, TryMoved

if TYPE_CHECKING:  # loading these takes longer than the first frame may
    from specchat.conversation import Message as Said
    from specchat.dialogue import Dialogue
    from specchat.draft_replay import PastReply
    from specchat.history.keeper import Keeper
    from specchat.loading import Engines

MOST = 20  # replies
NONE_YET = "no reply has been written yet to try a draft model on"


@dataclass(frozen=True, slots=True)
class Written:
    """A reply of a chat, and what the model had read before it."""

    history: tuple[Said, ...]
    tokens: tuple[int, ...]


def last_replies(chats: Sequence[Chat]) -> list[Written]:
    """The last replies whose tokens are known, the newest chat last; for chats that are not kept."""
    found = [
        (chat, turn.parent, turn.tokens)
        for chat in chats
        for turn in chat.path()
        if turn.role is Role.ASSISTANT and turn.tokens and turn.parent is not None
    ]
    return [Written(tuple(chat.messages(chat.turn(question))), tokens) for chat, question, tokens in found[-MOST:]]


def kept_replies(keeper: Keeper, model: str, most: int) -> list[Written]:
    """The last replies that a model wrote in kept chats, the newest last. Waits for the disk. Raises StoreRefused."""
    from specchat.statistics.past import last_written

    if keeper.path is None or most < 1:
        return []
    keeper.flush()
    return [Written(each.history, each.tokens) for each in last_written(keeper.store(), most, model=model)]


class ReplayJob:
    """Tries one draft model. `stop` may be called from any thread."""

    def __init__(
        self,
        draft: str,
        target: str | None,
        replies: Sequence[Written],
        kept: Callable[[str, int], Sequence[Written]] = lambda model, most: (),
    ) -> None:
        """`draft` is an id, a path, or "auto" for the one that the catalogue pairs with `target`.

        `kept` gives the last replies that a model wrote before these, at most so many.
        """
        self.draft = draft
        self._target = target
        self._replies = replies
        self._kept = kept
        self._stopped = False

    def stop(self) -> None:
        self._stopped = True

    def refuse(self, post: Callable[[Message], object], text: str, /) -> None:
        post(TryEnded(text, is_problem=True))

    def run(self, session: Dialogue, post: Callable[[Message], object], between_steps: Callable[[], None], /) -> None:
        from specchat.session import ChatSession

        if not isinstance(session, ChatSession):
            post(TryEnded(f"a draft model is tried {ONLY_HERE}", is_problem=True))
            return
        try:
            post(TryEnded(self._said(session.engines, post)))
        except Exception as error:
            post(TryEnded(f"{self.draft} was not tried: {in_one_line(error)}", is_problem=not self._stopped))

    def _said(self, engines: Engines, post: Callable[[Message], object]) -> str:
        from specchat.draft_replay import agreements, verdict

        shown = -1.0

        def progress(done: float) -> bool:
            nonlocal shown
            if done - shown >= 0.01:
                shown = done
                post(TryMoved(self.draft, done))
            return not self._stopped

        progress(0.0)
        past = self._past(engines)
        if not past:
            return NONE_YET
        path = self._path(progress)
        if engines.cost is None:
            raise ValueError(f"{engines.target.weights.name} cannot take tokens back, so nothing can guess for it")
        started = perf_counter()
        spare = replace(engines, draft=None, draft_step_s=None, eagle3=None, notices=[])  # beside what is in use
        spare.load_draft(path)
        try:
            assert spare.draft is not None
            assert spare.draft_step_s is not None
            spare.draft.interrupt = lambda: self._stopped
            agreed = agreements(spare.draft, engines.target.n_vocab, past, progress)
            found = verdict(past, agreed, engines.cost, spare.draft_step_s, perf_counter() - started)
            return found.line(spare.draft.weights.name)
        finally:
            spare.drop_draft()

    def _past(self, engines: Engines) -> list[PastReply]:
        from specchat.draft_replay import PastReply, kinds_of

        weights, n_vocab = engines.target.weights, engines.target.n_vocab
        piece = weights.vocabulary.piece
        kept = self._kept(weights.name, MOST - len(self._replies))
        return [
            PastReply(
                tuple(engines.format.prompt(each.history).tolist()), each.tokens, kinds_of([*map(piece, each.tokens)])
            )
            for each in (*kept, *self._replies)
            if max(each.tokens) < n_vocab  # else another model of this name wrote it
        ]

    def _path(self, progress: Callable[[float], bool]) -> Path:
        from specchat.kept import kept_trials
        from specchat.shelf import Shelf, is_path
        from specchat.trial import tried, vouched_for

        shelf = Shelf(lambda _: None)  # what is wrong with it was told when the target was loaded
        if self.draft == "auto":
            paired = None if self._target is None else shelf.paired_draft(self._target)
            if paired is None:
                raise ValueError("the catalogue knows no draft for this model; name one: /try NAME")
            self.draft = paired.id
        if is_path(self.draft):
            path = Path(self.draft).expanduser()
        else:
            model = shelf.catalogue.find(self.draft)
            if not shelf.store.has(model):
                raise ValueError("it is not here yet: fetch it in the models screen (Ctrl+L)")
            path = shelf.store.path(model)
        return path if vouched_for(path, shelf.catalogue.models, shelf.store) else tried(path, kept_trials(), progress)
