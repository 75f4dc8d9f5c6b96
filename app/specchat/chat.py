"""A conversation as a tree of turns: the path that is shown, and the branches beside it. No engine, no screens."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from specchat.attachments import Attachment, with_attachments
from specchat.conversation import Message, Role

if TYPE_CHECKING:  # the session loads the engine, which the first frame of the app does not wait for
    from specchat.session import Reply

TITLE_LENGTH = 60
BETWEEN_TURNS = "\n\n"  # that make one message together


@dataclass(slots=True, eq=False)
class Turn:
    """What one side said at one place of the tree. A reply's text grows while it is written."""

    id: int
    parent: int | None  # the id of the turn that this one answers; None: it begins the conversation
    role: Role
    text: str  # as typed or written
    tokens: tuple[int, ...] | None = None  # a reply's own ids, where they spell its text
    attachments: tuple[Attachment, ...] = ()
    reply: Reply | None = None  # the figures of a reply
    is_pinned: bool = False  # stays in the prompt however full the context is
    is_dropped: bool = False  # left out of the prompt because the context was full

    @property
    def prompt_text(self) -> str:
        """The turn as the model reads it."""
        return with_attachments(self.text, self.attachments)


class Chat:
    """The turns of one conversation and which of them are the path from its beginning to its tip."""

    def __init__(self, system: str = "") -> None:
        self.system = system
        self.named = ""  # the title that the user gave; empty: none
        self._turns: dict[int, Turn] = {}
        self._children: dict[int | None, list[Turn]] = {None: []}
        self._latest: dict[int | None, Turn] = {}  # parent -> which of its children was on the path last
        self._tip: Turn | None = None
        self._ids = itertools.count(1)

    @classmethod
    def restored(cls, system: str, turns: Iterable[Turn], latest: Mapping[int | None, int], tip: int | None) -> Self:
        """A conversation as it was: parents come before what answers them, `latest` and `tip` are ids of turns.

        Raises ValueError where they do not make a tree.
        """
        chat = cls(system)
        for turn in turns:
            if turn.id in chat._turns or turn.parent not in chat._children:
                raise ValueError(f"turn {turn.id} has no place in the conversation")
            chat._turns[turn.id] = turn
            chat._children[turn.id] = []
            chat._children[turn.parent].append(turn)
        for parent, child in latest.items():
            if child not in chat._turns or chat._turns[child].parent != parent:
                raise ValueError(f"turn {child} does not answer turn {parent}")
            chat._latest[parent] = chat._turns[child]
        if tip is not None and tip not in chat._turns:
            raise ValueError(f"turn {tip} is not part of the conversation")
        chat._tip = None if tip is None else chat._turns[tip]
        chat._ids = itertools.count(max(chat._turns, default=0) + 1)
        return chat

    @property
    def title(self) -> str:
        """The user's, or the first line of the first question, at most 60 characters; empty before there is one."""
        if self.named:
            return self.named
        question = next(iter(self._turns.values()), None)
        if question is None:
            return ""
        names = [attachment.name for attachment in question.attachments]
        line = next((line.strip() for line in [*question.text.splitlines(), *names] if line.strip()), "")
        return line if len(line) <= TITLE_LENGTH else f"{line[: TITLE_LENGTH - 1].rstrip()}…"

    @property
    def tip(self) -> Turn | None:
        """The last turn of the path: what is added next answers it."""
        return self._tip

    @property
    def turns(self) -> list[Turn]:
        """All turns of all branches, parents before what answers them."""
        return list(self._turns.values())

    @property
    def latest(self) -> dict[int | None, int]:
        """For each turn that was on the path, and for the beginning (None), the answer that was on it last."""
        return {parent: turn.id for parent, turn in self._latest.items()}

    def turn(self, turn_id: int) -> Turn:
        """The turn with an id. Raises KeyError."""
        return self._turns[turn_id]

    def path(self, upto: Turn | None = None) -> list[Turn]:
        """The turns from the beginning to `upto`, which may stand on any branch, or to the tip."""
        turn = self._tip if upto is None else self._known(upto)
        found = []
        while turn is not None:
            found.append(turn)
            turn = self._parent(turn)
        return found[::-1]

    def read_path(self, upto: Turn | None = None) -> list[Turn]:
        """The turns of the path that the model reads: all but dropped ones, or all up to one that is dropped itself."""
        path = self.path(upto)
        return path if path and path[-1].is_dropped else [turn for turn in path if not turn.is_dropped]

    def messages(self, upto: Turn | None = None) -> list[Message]:
        """The path as a prompt: the system prompt first, then the questions and replies that are read, in turn."""
        found = [Message(Role.SYSTEM, self.system)] if self.system else []
        for turns in as_rounds(self.read_path(upto)):
            text = BETWEEN_TURNS.join(turn.prompt_text for turn in turns)
            found.append(Message(turns[0].role, text, turns[0].tokens if len(turns) == 1 else None))
        return found

    def add(
        self,
        role: Role,
        text: str,
        *,
        tokens: tuple[int, ...] | None = None,
        attachments: Sequence[Attachment] = (),
        reply: Reply | None = None,
    ) -> Turn:
        """A new tip that answers the present one. Raises ValueError for a reply without a question."""
        tip = self._tip
        if role is Role.SYSTEM:
            raise ValueError("the system prompt is no turn: set `system`")
        if role is Role.ASSISTANT and (tip is None or tip.role is not Role.USER):
            raise ValueError("a reply needs a question in front of it")
        turn = Turn(next(self._ids), None if tip is None else tip.id, role, text, tokens, tuple(attachments), reply)
        self._turns[turn.id] = turn
        self._children[turn.id] = []
        self._children[turn.parent].append(turn)
        self._move(turn)
        return turn

    def siblings(self, turn: Turn) -> list[Turn]:
        """The other versions of a turn and itself, oldest first: same place, same role."""
        return [other for other in self._children[self._known(turn).parent] if other.role is turn.role]

    def choose(self, turn: Turn) -> None:
        """Lead the path through a turn, and on as it went when the turn was on the path last."""
        self._move(turn)
        while (below := self._latest.get(turn.id)) is not None:
            turn = self._tip = below

    def branch_from(self, turn: Turn) -> None:
        """End the path before a turn: what is added next is its sibling."""
        self._move(turn)  # so that `choose` of anything above comes back to it
        self._tip = self._parent(turn)

    def remove(self, turn: Turn) -> None:
        """Forget a turn and everything below it; a path through it ends before it."""
        self._known(turn)
        on_path = turn in self.path()
        self._children[turn.parent].remove(turn)
        if self._latest.get(turn.parent) is turn:
            del self._latest[turn.parent]
            if self._children[turn.parent]:
                self._latest[turn.parent] = self._children[turn.parent][-1]
        gone = [turn]
        for below in gone:
            gone.extend(self._children.pop(below.id))
            self._latest.pop(below.id, None)
            del self._turns[below.id]
        if on_path:
            self._tip = None if turn.parent is None else self._turns[turn.parent]

    def remove_last(self) -> Turn | None:
        """Take back the tip; what it was, or None when the path is empty."""
        tip = self._tip
        if tip is not None:
            self.remove(tip)
        return tip

    def _move(self, tip: Turn) -> None:
        for turn in self.path(tip):
            self._latest[turn.parent] = turn
        self._tip = tip

    def _parent(self, turn: Turn) -> Turn | None:
        return None if turn.parent is None else self._turns[turn.parent]

    def _known(self, turn: Turn) -> Turn:
        if self._turns.get(turn.id) is not turn:
            raise ValueError(f"turn {turn.id} is not part of this conversation")
        return turn


def as_rounds(path: Iterable[Turn]) -> list[list[Turn]]:
    """The turns that make one message together: all questions without a reply between them; empty replies are none."""
    said = (turn for turn in path if turn.role is not Role.ASSISTANT or turn.text or turn.tokens)
    return [list(turns) for _, turns in itertools.groupby(said, key=lambda turn: turn.role)]
