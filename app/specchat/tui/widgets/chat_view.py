"""The chat on the screen: what is sent becomes a request to the engine, what comes back grows a message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Static

from specchat.attachments import Attachment
from specchat.chat import Chat, Turn
from specchat.console import printable
from specchat.conversation import Role
from specchat.provenance import Author
from specchat.tui.messages import CheckEnded, CheckProgress, Ended, Grew, ReadingShown, Refused
from specchat.tui.notes import CopyTour, Look, Shown, copied_pieces, figures_line, reading_line, verdict
from specchat.tui.screens.text import TextScreen
from specchat.tui.streaming import Request
from specchat.tui.widgets.transcript import Transcript
from specchat.tui.widgets.turn import TurnView

if TYPE_CHECKING:
    from specchat.tui.engine_thread import EngineThread


class ChatView(Vertical):
    """Transcript and activity. The app gives it text to send."""

    DEFAULT_CSS = """
    ChatView { width: 1fr; height: 1fr; }
    ChatView > #activity { height: 1; padding: 0 1; color: $text-muted; display: none; }
    ChatView > #activity.-busy { display: block; }
    ChatView > #welcome { height: 1fr; padding: 1 2; color: $text-muted; }
    ChatView > #transcript { display: none; }
    ChatView.-begun > #welcome { display: none; }
    ChatView.-begun > #transcript { display: block; }
    """

    @dataclass
    class Told(Message):
        """One line for the user."""

        text: str
        severity: str = "information"

    @dataclass
    class TakenBack(Message):
        """A question whose reply never began; it belongs into the prompt box again."""

        text: str
        attachments: tuple[Attachment, ...]

    @dataclass
    class Changed(Message):
        """Title, length or state of the chat may have changed."""

    @dataclass
    class Edit(Message):
        """A question is to be edited and sent as a branch."""

        turn: Turn

    def __init__(self, look: Look, engine: Callable[[], EngineThread], now: Callable[[], datetime], *, id: str) -> None:
        super().__init__(id=id)
        self.chat = Chat()
        self.busy: int | None = None  # the reply that is being written
        self.editing: Turn | None = None
        self.sources: tuple[str, ...] = ("prompt", "reply", "turn", "file")
        self._look = look
        self._engine = engine
        self._now = now
        self._shown: dict[Turn, Shown] = {}  # of every chat: ids are the same in all of them
        self._copies = CopyTour()
        self._checking: int | None = None
        self._transcript = Transcript(self._make, id="transcript")

    def compose(self) -> ComposeResult:
        yield Static(id="welcome", markup=False)
        yield self._transcript
        yield Static(id="activity", markup=False)

    @property
    def transcript(self) -> Transcript:
        return self._transcript

    @property
    def last_reply(self) -> Turn | None:
        """The last reply of the path."""
        return next((turn for turn in reversed(self.chat.path()) if turn.role is Role.ASSISTANT), None)

    def welcome(self, text: str) -> None:
        """What stands where there are no messages yet."""
        self.query_one("#welcome", Static).update(text)

    def look(self, look: Look) -> None:
        """Draw all messages in another way."""
        self._look = look
        for view in self.transcript.views:
            view.show(look.view, look.colours)

    def activity(self, text: str) -> None:
        """What is going on, above the prompt; empty: nothing."""
        line = self.query_one("#activity", Static)
        line.update(printable(text))
        line.set_class(bool(text), "-busy")

    async def open(self, chat: Chat) -> None:
        """Show another chat."""
        self.chat, self.editing = chat, None
        await self._draw()

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
        self.transcript.grow(turn.id)
        seed = None if turn.reply is None else turn.reply.seed
        self._engine().write(self._request(turn, "go_on", turn, seed=seed, begun=turn.text))
        self.activity("reading ...")

    def check(self, turn: Turn | None = None) -> None:
        """Write a reply again without guesses and compare."""
        turn = turn or self.last_reply
        if turn is None or turn.reply is None or self._shown[turn].continued:
            self._tell("only a whole reply of this session can be checked")
            return
        question = self.chat.turn(turn.parent) if turn.parent is not None else turn
        tokens = tuple(token for step in turn.reply.steps for token in step.tokens)
        self._checking = turn.id
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

    async def delete(self, turn: Turn) -> None:
        """Forget a message and all that follow it."""
        if self.busy is not None:
            self._tell("a reply is being written: Esc stops it")
            return
        self.chat.remove(turn)
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
            if first:
                self.activity("")
                view.settle()

    @on(Ended)
    async def _ended(self, message: Ended) -> None:
        turn, shown, reply = self.chat.turn(message.turn), self._shown[self.chat.turn(message.turn)], message.reply
        self.busy = None
        self.activity("")
        if message.said is None:  # stopped before its first token
            await self._take_back(turn)
            return
        view = self.transcript.view(turn.id)
        turn.text, turn.tokens, turn.reply = message.said.text, message.said.tokens, reply
        begun = min((span.start for span in message.spans), default=0)
        shown.spans = (*(span for span in shown.spans if span.end <= begun), *message.spans)
        stopped = {None: "stopped  ", "length": "cut at the limit  ", "context": "the context is full  "}
        how = stopped.get(None if reply.finish is None else str(reply.finish), "")
        shown.figures = how + figures_line(reply)
        if view is not None:
            if view.source != printable(turn.text):
                view.replace(turn.text, shown.spans)
            view.mark(shown.spans)
            view.marker = None  # plain decoding is no longer on its way
            view.figures = shown.figures
            view.finish()
        self.post_message(self.Changed())

    @on(Refused)
    async def _refused(self, message: Refused) -> None:
        self.busy = None
        self.activity("")
        turn = self.chat.turn(message.turn)
        self._tell(message.text, "error")
        if message.said is not None:
            turn.text, turn.tokens = message.said.text, message.said.tokens
        view = self.transcript.view(turn.id)
        if view is not None:
            view.finish()
        if not turn.text:
            await self._take_back(turn)
        self.post_message(self.Changed())

    @on(CheckProgress)
    def _check_moves(self, message: CheckProgress) -> None:
        self.activity(f"writing it again without guesses: {message.done}/{message.total} tokens  Esc stops")

    @on(CheckEnded)
    def _checked(self, message: CheckEnded) -> None:
        self._checking = None
        self.activity("")
        if message.checked is None:
            return
        text = verdict(message.checked)
        self._note(self.chat.turn(message.turn), text)
        self._tell(text)

    # Looking.

    @on(Transcript.Asked)
    async def _asked(self, message: Transcript.Asked) -> None:
        turn = self.chat.turn(message.turn)
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

    def _look_at_copies(self, turn: Turn) -> None:
        """Mark the next copied piece of a reply and say where it is from."""
        if self._copies.turn is not turn:
            self._copies = CopyTour(turn, copied_pieces(self._shown[turn].spans))
        piece = self._copies.next()
        if piece is not None and (view := self.transcript.view(turn.id)) is not None:
            view.highlighted = piece[:2]
        self._note(turn, self._copies.line())

    async def _jump(self, turn: Turn) -> None:
        piece = self._copies.piece if self._copies.turn is turn else None
        if piece is None:
            self._look_at_copies(turn)
            return
        origin = piece[2]
        if origin.author is Author.FILE and origin.turn is not None:
            file = next((a for a in self.chat.turn(origin.turn).attachments if a.name == origin.title), None)
            if file is not None:
                self.app.push_screen(TextScreen(file.name, file.text, origin.line))
        elif origin.turn is not None:
            await self.transcript.reveal(origin.turn, origin.offset)
        else:
            self._tell(f"copied from {origin.title}, which no message shows")

    def _unfold(self, turn: Turn) -> None:
        view = self.transcript.view(turn.id)
        if view is not None:
            view.unfold()

    def _edit(self, turn: Turn) -> None:
        if turn.role is Role.USER:
            self.editing = turn
            self.post_message(self.Edit(turn))
        else:
            self._tell("this is a reply: r writes it anew")

    def _note(self, turn: Turn, text: str) -> None:
        self._shown[turn].note = text
        view = self.transcript.view(turn.id)
        if view is not None:
            view.note = printable(text)
            view.update_notes()

    # Inside.

    async def _ask(self, question: Turn) -> None:
        reply = self.chat.add(Role.ASSISTANT, "")
        self._shown[reply] = Shown(f"{self._now():%H:%M}")
        self.busy = reply.id
        await self._draw()
        self.transcript.grow(reply.id)
        self.activity("reading ...")
        self._engine().write(self._request(reply, "reply", question))

    def _request(
        self,
        reply: Turn,
        kind: str,
        upto: Turn,
        *,
        seed: int | None = None,
        tokens: tuple[int, ...] = (),
        begun: str = "",
    ) -> Request:
        return Request(
            turn=reply.id,
            kind=kind,
            history=tuple(self.chat.messages(upto)),
            path=tuple(self.chat.path(upto)),
            sources=self.sources,
            tokens=tokens,
            seed=seed,
            system=self.chat.system,
            begun=begun,
        )

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
            self.chat.remove(question)
            self.post_message(self.TakenBack(question.text, question.attachments))
        await self._draw()

    async def _draw(self) -> None:
        path = self.chat.path()
        self.set_class(bool(path), "-begun")
        await self.transcript.show(path)
        for turn in path:
            siblings = self.chat.siblings(turn)
            view = self.transcript.view(turn.id)
            if view is not None:
                branch = f"{siblings.index(turn) + 1}/{len(siblings)}" if len(siblings) > 1 else ""
                if branch != view.branch:
                    view.branch = branch
                    view.update_notes()
        self.post_message(self.Changed())

    def _make(self, turn: Turn) -> TurnView:
        shown = self._shown.setdefault(turn, Shown(""))
        who = "You" if turn.role is Role.USER else self._look.model
        view = TurnView(turn.id, who, self._look.view, self._look.colours, when=shown.when)
        view.source = printable(turn.text)
        view.mark(shown.spans)
        view.note, view.figures = printable(shown.note), shown.figures
        if turn.attachments:
            names = ", ".join(attachment.name for attachment in turn.attachments)
            view.figures = printable(f"with {names}")
        return view

    def _tell(self, text: str, severity: str = "information") -> None:
        self.post_message(self.Told(text, severity))
