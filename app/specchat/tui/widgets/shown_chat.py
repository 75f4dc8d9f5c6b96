"""A chat on the screen: its messages, how they look, what is said below them, and where copied words are from."""

from __future__ import annotations

from dataclasses import dataclass

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Static

from specchat.attachments import label
from specchat.chat import Chat, Turn
from specchat.console import printable
from specchat.conversation import Role
from specchat.provenance import Author
from specchat.tui.notes import CopyTour, Look, Shown, copied_pieces
from specchat.tui.screens.text import TextScreen
from specchat.tui.widgets.transcript import Transcript
from specchat.tui.widgets.turn import TurnView


class ShownChat(Vertical):
    """Transcript and activity."""

    DEFAULT_CSS = """
    ShownChat { width: 1fr; height: 1fr; }
    ShownChat > #activity { height: 1; padding: 0 1; color: $text-muted; display: none; }
    ShownChat > #activity.-busy { display: block; }
    ShownChat > #welcome { height: 1fr; padding: 1 2; color: $text-muted; }
    ShownChat > #transcript { display: none; }
    ShownChat.-begun > #welcome { display: none; }
    ShownChat.-begun > #transcript { display: block; }
    """

    @dataclass
    class Told(Message):
        """One line for the user."""

        text: str
        severity: str = "information"

    @dataclass
    class Changed(Message):
        """Title, length or state of the chat may have changed."""

    def __init__(self, look: Look, *, id: str) -> None:
        super().__init__(id=id)
        self.chat = Chat()
        self._look = look
        self._shown: dict[Turn, Shown] = {}  # of every chat: ids are the same in all of them
        self._copies = CopyTour()
        self._activity = ""
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
        self.query_one("#welcome", Static).update(printable(text))

    def look(self, look: Look) -> None:
        """Draw all messages in another way."""
        self._look = look
        for view in self.transcript.views:
            view.show(look.view, look.colours)

    def activity(self, text: str) -> None:
        """What is going on, above the prompt; empty: nothing."""
        if text != self._activity:
            self._activity = text
            line = self.query_one("#activity", Static)
            line.update(label(text))
            line.set_class(bool(text), "-busy")

    async def find(self, turn_id: int, words: str) -> None:
        """Show the place of words in a message, be it on another branch."""
        turn = self._turn(turn_id)
        if turn is None:
            return
        if turn not in self.chat.path():
            self.chat.choose(turn)
            await self._draw()
        await self.transcript.reveal(turn_id, max(0, turn.text.casefold().find(words.casefold())))

    def _look_at_copies(self, turn: Turn) -> None:
        """Mark the next copied piece of a reply and say where it is from."""
        if turn.reply is not None and turn.reply.server is not None and not self._shown[turn].spans:
            self._note(turn, "a server wrote this: what it copied is not reported")
            return
        if self._copies.turn is not turn:
            self._copies = CopyTour(turn, copied_pieces(self._shown[turn].spans))
        piece = self._copies.next()
        if piece is not None and (view := self.transcript.view(turn.id)) is not None:
            self.transcript.highlight(view, piece[:2])
        self._note(turn, self._copies.line())

    async def _jump(self, turn: Turn) -> None:
        piece = self._copies.piece if self._copies.turn is turn else None
        if piece is None:
            self._look_at_copies(turn)
            return
        origin = piece[2]
        source = None if origin.turn is None else self._turn(origin.turn)
        files = () if source is None or origin.author is not Author.FILE else source.attachments
        if (file := next((file for file in files if file.name == origin.title), None)) is not None:
            self.app.push_screen(TextScreen(file.name, file.text, origin.line))
        elif source is not None and origin.author is not Author.FILE:
            await self.transcript.reveal(source.id, origin.offset)
        else:
            self._tell(f"copied from {origin.title}, which no message shows")

    def _unfold(self, turn: Turn) -> None:
        view = self.transcript.view(turn.id)
        if view is not None:
            view.unfold()

    def _note(self, turn: Turn, text: str) -> None:
        self._shown[turn].note = text
        view = self.transcript.view(turn.id) if self._turn(turn.id) is turn else None
        if view is not None:
            view.note = text
            view.update_notes()

    async def _draw(self) -> None:
        path = self.chat.path()
        self.set_class(bool(path), "-begun")
        await self.transcript.show(path)
        self._update_marks()
        self.post_message(self.Changed())

    def _update_marks(self) -> None:
        for view in self.transcript.views:
            self._mark(view, self.chat.turn(view.turn))

    def _mark(self, view: TurnView, turn: Turn) -> None:
        """Which version it is, whether it is pinned, whether it is still read."""
        siblings = self.chat.siblings(turn)
        branch = f"{siblings.index(turn) + 1}/{len(siblings)}" if len(siblings) > 1 else ""
        marks = ["not read any more" if turn.is_dropped else "", "pinned" if turn.is_pinned else "", branch]
        text = "  ".join(mark for mark in marks if mark)
        view.set_class(turn.is_dropped, "-dropped")
        if text != view.branch:
            view.branch = text
            view.update_notes()

    def beside(self, chat: Chat) -> dict[Turn, Shown]:
        """What stands beside the messages of a chat."""
        return {turn: self._shown[turn] for turn in chat.turns if turn in self._shown}

    def _make(self, turn: Turn) -> TurnView:
        shown = self._shown.setdefault(turn, Shown(""))
        asked, look = turn.role is Role.USER, self._look
        who = "You" if asked else shown.who or look.model
        view = TurnView(turn.id, who, look.view, look.colours, when=shown.when, as_written=asked)
        view.source = printable(turn.text)
        view.mark(shown.spans)
        view.note, view.took = shown.note, shown.took
        if turn.attachments:
            view.took = [(0, f"with {', '.join(attachment.name for attachment in turn.attachments)}")]
        return view

    def _turn(self, id: int) -> Turn | None:
        """The message of the shown chat with an id, if it still is there."""
        try:
            return self.chat.turn(id)
        except KeyError:
            return None

    def _tell(self, text: str, severity: str = "information") -> None:
        self.post_message(self.Told(text, severity))
