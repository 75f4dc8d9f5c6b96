"""The chat on the screen: what is sent becomes a request to the engine, what comes back grows a message."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from textual import on
from textual.message import Message

from specchat.attachments import Attachment, label
from specchat.chat import Chat, Turn
from specchat.console import printable
from specchat.conversation import Role
from specchat.history.keeper import Keeper
from specchat.settings import SOURCES
from specchat.tui.messages import CheckEnded, CheckProgress, Ended, Grew, Outgrown, ReadingShown, Refused
from specchat.tui.notes import CopyTour, Look, Shown, full_text, reading_line, reply_figures, verdict
from specchat.tui.screens.question import Question
from specchat.tui.streaming import Keep, Request
from specchat.tui.widgets.shown_chat import ShownChat
from specchat.tui.widgets.transcript import Transcript

if TYPE_CHECKING:
    from specchat.fitting import FittedTurns
    from specchat.history.records import About
    from specchat.tui.engine_thread import EngineThread


FULL_ANSWERS = ("Drop the oldest", "Always do so", "New chat", "Stop")
PINNED = "pinned: it stays in the prompt however full the context is"


class ChatView(ShownChat):
    """A chat that goes on. The app gives it text to send."""

    @dataclass
    class TakenBack(Message):
        """A question whose reply never began; it belongs into the prompt box again."""

        text: str
        attachments: tuple[Attachment, ...]

    class AlwaysDrop(Message):
        """From now on the oldest turns are dropped without a question."""

    @dataclass
    class Edit(Message):
        """A question is to be edited and sent as a branch."""

        turn: Turn

    def __init__(
        self,
        look: Look,
        engine: Callable[[], EngineThread],
        now: Callable[[], datetime],
        keeper: Keeper,
        about: Callable[[], About],
        *,
        id: str,
    ) -> None:
        """`about` says who writes replies now."""
        super().__init__(look, id=id)
        self._keeper, self._about = keeper, about
        self.busy: int | None = None  # the reply that is being written
        self.editing: Turn | None = None
        self.sources: tuple[str, ...] = SOURCES
        self.policy = "ask"
        self._asked_for: Request | None = None  # the reply that waits until it is said what it reads
        self._engine = engine
        self._now = now
        self._checking: Turn | None = None

    async def open(self, chat: Chat, shown: Mapping[int, Shown] | None = None) -> None:
        """Show another chat; `shown` is what stands beside the messages of one that was loaded."""
        self._keeper.save(self.chat)
        self.chat, self.editing = chat, None
        for turn_id, one in (shown or {}).items():
            self._shown[chat.turn(turn_id)] = one
        await self._draw()

    def pin(self) -> None:
        """Keep the current message in the prompt however full the context is, or no longer."""
        turn = self.transcript.current
        if turn is None:
            self._tell("there is no message to pin")
            return
        turn.is_pinned = not turn.is_pinned
        self._update_marks()
        self._tell(PINNED if turn.is_pinned else "no longer pinned")
        self.post_message(self.Changed())

    # Asking.

    async def send(self, text: str, attachments: Sequence[Attachment] = ()) -> None:
        """Ask; the reply is written after whatever the engine is at."""
        if self.editing is not None:
            self.chat.branch_from(self.editing)
            self.editing = None
        question = self.chat.add(Role.USER, text, attachments=tuple(attachments))
        self._shown[question] = Shown(f"{self._now():%H:%M}")
        await self._ask(question)

    async def redo(self, turn: Turn | None = None) -> None:
        """Write a reply anew, as another version of it."""
        turn = turn or self.last_reply
        if turn is None:
            self._tell("there is no reply to write anew")
            return
        reply = turn if turn.role is Role.ASSISTANT else None
        if reply is None:
            self._tell("this is a question: e edits it")
            return
        self.chat.branch_from(reply)
        question = self.chat.tip
        assert question is not None
        await self._ask(question)

    async def go_on(self) -> None:
        """Go on with the last reply."""
        turn = self.chat.tip
        if turn is None or turn.role is not Role.ASSISTANT:
            self._tell("there is no reply to go on with")
            return
        self.busy = turn.id
        shown = self._shown[turn]
        shown.continued = True
        await self.transcript.go_to(turn)
        self.transcript.grow(turn.id)
        seed = None if turn.reply is None else turn.reply.seed
        self._engine().write(self._request(turn, "go_on", turn, seed=seed, begun=turn.text, keep=self._begin(turn)))
        self.activity("reading ...")

    def check(self, turn: Turn | None = None) -> None:
        """Write a reply again without guesses and compare."""
        turn = turn or self.last_reply
        if turn is not None and turn.reply is not None and turn.reply.server is not None:
            self._tell("a server wrote this reply: only those of a model that runs here can be checked")
            return
        if turn is None or turn.reply is None or self._shown[turn].continued:
            self._tell("only a whole reply of this session can be checked")
            return
        if self._checking is not None:
            self._tell("a reply is being checked: Esc stops it")
            return
        question = self.chat.turn(turn.parent) if turn.parent is not None else turn
        tokens = tuple(token for step in turn.reply.steps for token in step.tokens)
        self._checking = turn
        self._engine().write(self._request(turn, "check", question, seed=turn.reply.seed, tokens=tokens))

    def stop(self) -> bool:
        """Stop what is being written; False when nothing is."""
        if self.busy is None and self._checking is None:
            return False
        self._engine().stop()
        return True

    async def choose_version(self, turn: Turn, step: int) -> None:
        """Lead the path through an older or newer version of a message."""
        siblings = self.chat.siblings(turn)
        at = siblings.index(turn) + step
        if self.busy is not None or not 0 <= at < len(siblings):
            return
        self.chat.choose(siblings[at])
        await self._draw()
        await self.transcript.go_to(siblings[at])

    async def delete(self, turn: Turn) -> None:
        """Forget a message and all that follow it."""
        if self.busy is not None:
            self._tell("a reply is being written: Esc stops it")
            return
        self.chat.remove(turn)
        if self.editing is not None and self._turn(self.editing.id) is not self.editing:
            self.editing = None
        await self._draw()

    # What comes back.

    @on(ReadingShown)
    def _reading(self, message: ReadingShown) -> None:
        if self.busy != message.turn or message.read >= message.total:
            self.activity("")
        elif message.total > 0:
            self.activity(reading_line(message))

    @on(Grew)
    def _grew(self, message: Grew) -> None:
        view = self._transcript.growing
        if view is not None and view.turn == message.turn:
            first = not view.source
            view.append(message.text, message.spans)
            view.marker = message.marker
            self.activity("")
            if first:
                view.settle()

    @on(Ended)
    async def _ended(self, message: Ended) -> None:
        turn = self.chat.turn(message.turn)
        reply = message.reply.behind(turn.reply)
        shown, view = self._shown[turn], self.transcript.view(turn.id)
        self.busy = None
        self.activity("")
        if message.said is None:  # stopped before its first token
            if view is not None:
                view.finish()
            await self._take_back(turn)
            return
        begun = min((span.start for span in message.spans), default=len(turn.text))  # a server tells no spans
        turn.text, turn.tokens, turn.reply = message.said.text, message.said.tokens, reply
        shown.spans = (*(span for span in shown.spans if span.end <= begun), *message.spans)
        shown.took, shown.who = reply_figures(reply), self._look.model
        self._keeper.end(self.chat, turn, reply, message.spans)
        if self._copies.turn is turn:
            self._copies = CopyTour()
        if view is not None:
            view.who = label(shown.who)
            if view.source != printable(turn.text):
                view.replace(turn.text, shown.spans)
            view.mark(shown.spans)
            view.marker = None  # plain decoding is no longer on its way
            view.took = shown.took
            view.finish()
        self.post_message(self.Changed())

    @on(Refused)
    async def _refused(self, message: Refused) -> None:
        self.busy = self._checking = None
        self.activity("")
        self._tell(message.text, "error")
        turn = self._turn(message.turn)
        if turn is None:  # of a check, and another chat is shown by now
            return
        if message.said is not None:
            turn.text, turn.tokens = message.said.text, message.said.tokens
        view = self.transcript.view(turn.id)
        if view is not None:
            view.finish()
        self._keeper.end(self.chat, turn, None)
        if not turn.text:
            await self._take_back(turn)
        self.post_message(self.Changed())

    @on(CheckProgress)
    def _check_moves(self, message: CheckProgress) -> None:
        self.activity(f"writing it again without guesses: {message.done}/{message.total} tokens  Esc stops")

    @on(CheckEnded)
    def _checked(self, message: CheckEnded) -> None:
        turn, self._checking = self._checking, None
        self.activity("")
        if message.checked is not None and turn is not None:  # another chat may be shown by now
            text = verdict(message.checked, exact=turn.reply is None or turn.reply.exact)
            self._note(turn, text)
            self._tell(text)

    @on(Outgrown)
    def _outgrown(self, message: Outgrown) -> None:
        fitted = message.fitted
        if self.busy != message.turn:
            return
        if not fitted.dropping or self.policy == "drop":
            self._read_less(fitted)
            return

        async def answered(number: int | None) -> None:
            if number in (0, 1):
                if number == 1:
                    self.post_message(self.AlwaysDrop())
                self._read_less(fitted)
                return
            self.busy = None
            self.activity("")
            turn = self._turn(message.turn)
            if turn is not None:
                self._keeper.end(self.chat, turn, None)
                await self._take_back(turn)
            if number == 2:
                await self.app.run_action("new_chat")

        self.app.push_screen(Question("The context is full", full_text(fitted), FULL_ANSWERS), answered)

    def _read_less(self, fitted: FittedTurns) -> None:
        """Mark the turns that are not read any more, or that are read again, and ask for the reply once more."""
        asked = self._asked_for
        if asked is None or asked.turn != self.busy:
            return
        fitted.mark()
        self._update_marks()
        self._tell(fitted.fitted.notice)
        self.post_message(self.Changed())
        question = asked.whole[-1]
        self._asked_for = replace(
            asked, history=tuple(self.chat.messages(question)), path=tuple(self.chat.read_path(question))
        )
        self._engine().write(self._asked_for)

    # Looking.

    @on(Transcript.Asked)
    async def _asked(self, message: Transcript.Asked) -> None:
        turn = self._turn(message.turn)
        if turn is None:  # deleted by the key before
            message.stop()
            return
        verbs: dict[str, Callable[[], Any]] = {
            "redo": lambda: self.redo(turn),
            "delete": lambda: self.delete(turn),
            "older": lambda: self.choose_version(turn, -1),
            "newer": lambda: self.choose_version(turn, 1),
            "check": lambda: self.check(turn),
            "provenance": lambda: self._look_at_copies(turn),
            "jump": lambda: self._jump(turn),
            "unfold": lambda: self._unfold(turn),
            "edit": lambda: self._edit(turn),
        }
        if message.verb in verbs:
            message.stop()
            if self.busy is not None and message.verb in ("redo", "check", "edit"):
                self._tell("a reply is being written: Esc stops it")
                return
            result = verbs[message.verb]()
            if result is not None:
                await result

    def _edit(self, turn: Turn) -> None:
        if turn.role is Role.USER:
            self.editing = turn
            self.post_message(self.Edit(turn))
        else:
            self._tell("this is a reply: r writes it anew")

    # Inside.

    async def _ask(self, question: Turn) -> None:
        reply = self.chat.add(Role.ASSISTANT, "")
        self._shown[reply] = Shown(f"{self._now():%H:%M}")
        self.busy = reply.id
        await self._draw()
        self.transcript.grow(reply.id)
        self.activity("reading ...")
        self._asked_for = self._request(reply, "reply", question, keep=self._begin(reply))
        self._engine().write(self._asked_for)

    def _request(
        self,
        reply: Turn,
        kind: str,
        upto: Turn,
        *,
        seed: int | None = None,
        tokens: tuple[int, ...] = (),
        begun: str = "",
        keep: Keep | None = None,
    ) -> Request:
        return Request(
            turn=reply.id,
            kind=kind,
            history=tuple(self.chat.messages(upto)),
            path=tuple(self.chat.read_path(upto)),
            whole=tuple(self.chat.path(upto)),
            policy=self.policy,
            key=self._keeper.key_of(self.chat),
            sources=self.sources,
            tokens=tokens,
            seed=seed,
            system=self.chat.system,
            begun=begun,
            keep=keep,
        )

    def _begin(self, reply: Turn) -> Keep | None:
        """Where the steps of a reply are written down; None in a chat that is not kept."""
        writing = self._keeper.begin(self.chat, reply, self._about)
        return None if writing is None else writing.step

    async def _take_back(self, reply: Turn) -> None:
        """A reply that never began leaves no trace; nor does its question, when nothing else answers it."""
        if reply.text:
            return
        siblings = self.chat.siblings(reply)
        question = self.chat.turn(reply.parent) if reply.parent is not None else None
        self.chat.remove(reply)
        if len(siblings) > 1:
            self.chat.choose(siblings[-1] if siblings[-1] is not reply else siblings[-2])
        elif question is not None:
            versions = [version for version in self.chat.siblings(question) if version is not question]
            self.chat.remove(question)
            if versions:  # it was an edited one
                self.chat.choose(versions[-1])
                self.editing = versions[-1]
            self.post_message(self.TakenBack(question.text, question.attachments))
        await self._draw()
