"""A conversation in line mode: what is said becomes the turns of a chat, and is kept as the app keeps it. No screen."""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from contextlib import closing

from specchat.attachments import Attachment
from specchat.chat import Chat, Turn
from specchat.context_policy import Policy
from specchat.conversation import Message, Role
from specchat.dialogue import Dialogue, Event
from specchat.fitting import FittedTurns, fit_turns
from specchat.history.keeper import Keeper
from specchat.history.records import AT, About, ChatRecord
from specchat.places import copyable
from specchat.provenance import Authorship, Places, clipped
from specchat.resume import keep_state, resume_state
from specchat.session import ChatSession, Reading, Reply, Wrote
from specchat.settings import SOURCES
from specchat.states import StateFiles


class Talk:
    """One chat after another on a session, whose messages are those of the present one."""

    def __init__(
        self,
        session: Dialogue,
        keeper: Keeper,
        states: StateFiles | None = None,
        sources: Collection[str] = SOURCES,
    ) -> None:
        """The first chat has the system prompt of the session. `states` are those of kept chats; None: save none.

        `sources` are those that lookups may copy from.
        """
        self._sources = sources
        self._session = session
        self._here = session if isinstance(session, ChatSession) else None  # with a cache that can be saved
        self._keeper = keeper
        self._states = states
        self.chat = Chat("".join(message.text for message in session.messages if message.role is Role.SYSTEM))
        keeper.keep(self.chat)

    def begin(self, chat: Chat, record: ChatRecord | None = None) -> None:
        """Go on with another chat; `record` is what it was made from, None: it is new."""
        self.leave()
        self.chat = chat
        self._keeper.keep(chat, record)
        self._session.messages = chat.messages()
        if self._here is not None and self._states is not None and (key := self._keeper.key_of(chat)):
            resume_state(self._here, self._states, key)

    def leave(self) -> None:
        """Save the cache of a chat that is kept, where reading it again would take long."""
        if self._here is not None and self._states is not None and (key := self._keeper.key_of(self.chat)):
            keep_state(self._here, self._states, key)

    def change_system(self, text: str) -> None:
        """Replace the system prompt of the chat; empty text removes it."""
        self.chat.system = text
        self._session.set_system(text)
        self._keeper.save(self.chat)

    def ask(self, text: str, attachments: Sequence[Attachment], policy: Policy) -> FittedTurns:
        """Put a question, which `answer` is to follow or `take_back`; what of the chat would be read with it.

        Raises DoesNotFit and TemplateError; the question is then taken back.
        """
        self.chat.add(Role.USER, text, attachments=attachments)
        try:
            session = self._session
            most = session.settings.max_tokens
            return fit_turns(session.model, self.chat.system, self.chat.path(), policy, most)
        except BaseException:
            self.take_back()
            raise

    def take_back(self) -> None:
        """The question is not to be answered."""
        self.chat.remove_last()

    def answer(self) -> Generator[Event, None, None]:
        """Answer the question, as `Dialogue.reply` does. A question without an answer leaves no trace."""
        chat, session = self.chat, self._session
        asked, path = chat.messages(), chat.read_path()
        session.messages = history = asked[:-1]
        reply = chat.add(Role.ASSISTANT, "")
        writing = self._keeper.begin(chat, reply, self._about)
        written, authorship = None, None
        piece = session.engines.target.weights.vocabulary.piece if isinstance(session, ChatSession) else None
        try:
            with closing(session.reply(asked[-1].text)) as events:  # type: ignore[type-var]
                for event in events:
                    if isinstance(event, Reading):
                        if authorship is None and piece is not None and session.prompt is not None:
                            places = Places(session.prompt, piece, path, chat.system)
                            authorship = Authorship(places, reply.id)
                            if self._here is not None:
                                self._here.copy_only_from(copyable(places, self._sources))
                    elif isinstance(event, Reply):
                        written = event
                    elif authorship is not None and event.step is not None and piece is not None:
                        authorship.feed(event.step, [piece(token) for token in event.step.tokens])
                    if isinstance(event, Wrote) and writing is not None:
                        spans = () if event.step is None or authorship is None else authorship.last
                        writing.step(event.text, event.step, spans)
                    yield event
        finally:
            said = session.messages[-1] if len(session.messages) > len(history) else None
            self._end(reply, said, written, authorship)

    def _end(self, turn: Turn, said: Message | None, reply: Reply | None, authorship: Authorship | None) -> None:
        if said is None:
            self.take_back()
            self.take_back()
            self._keeper.save(self.chat)
            return
        turn.text, turn.tokens, turn.reply = said.text, said.tokens, reply
        if authorship is not None:
            authorship.finish()
        spans = () if authorship is None else clipped(authorship.spans, len(said.text))
        self._keeper.end(self.chat, turn, reply, spans)

    def _about(self) -> About:
        session, model = self._session, self._session.model
        settings = session.settings
        return About(
            model=f"{model.name}{AT}{model.where}" if model.is_remote else model.name,
            draft=model.draft_name,
            guess=str(session.guess),
            rule=settings.rule,
            temperature=settings.sampling.temperature,
        )
