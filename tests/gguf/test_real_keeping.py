"""The app on a real model, left and opened again; and a chat that is much longer than its context."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot

from specchat import resume as resuming
from specchat.chat import Chat, Turn
from specchat.context_policy import DoesNotFit, Policy
from specchat.conversation import Role
from specchat.fitting import turn_costs
from specchat.history.keeper import Keeper
from specchat.history.store import Store
from specchat.session import ChatSession, Reply, ReplySettings
from specchat.settings import ContextSettings, GuessSettings, SamplingSettings, Settings, SettingsFile
from specchat.states import StateFiles
from specchat.talk import Talk
from specchat.tui.app import SpecchatApp
from specchat.tui.seat import Wanted
from specchat.tui.start import Start
from specchat.tui.widgets.prompt import Prompt
from speculation.llama import EngineLog, LlamaModel
from speculation.sampling import GREEDY
from tests.conftest import model_file
from tests.gguf.test_real import assert_same_up_to_near_ties, engines_on

pytestmark = pytest.mark.gguf

SYSTEM = "You are a helpful assistant. Always be brief."
N_CTX = 256

Steps = Callable[[Pilot[None], SpecchatApp], Awaitable[None]]


class Home:
    """A user with a store of chats, saved states and one model."""

    def __init__(self, folder: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("CACHE", "STATE", "DATA"):
            monkeypatch.setenv(f"SPECCHAT_{name}_DIR", str(folder / name.lower()))
        monkeypatch.setattr(resuming, "WORTH_S", 0.0)  # as if the model were large
        monkeypatch.setattr(resuming, "RESTORING", 1e12)
        self.folder = folder
        self.model = model
        self.history = folder / "data" / "chats" / "chats.db"
        self.states = StateFiles(folder / "cache" / "states")

    def use(self, steps: Steps, resume: int | None = None) -> None:
        """Start the app, do something, and leave as the command line does."""
        settings = Settings(
            model=str(self.model),
            system=SYSTEM,
            guess=GuessSettings(mode="lookup"),
            sampling=SamplingSettings(temperature=0.0, seed=1, max_tokens=24),
            context=ContextSettings(size=2048, threads=1),
        )
        wanted = Wanted(settings.model, "auto", "lookup", 2048, 1)
        file = SettingsFile(self.folder / "config.toml")
        app = SpecchatApp(
            Start(settings, settings, file, wanted, history=self.history, resume=resume), folder=self.folder
        )

        async def go() -> None:
            async with app.run_test(size=(110, 32)) as pilot:
                await until(pilot, lambda: app.loaded is not None)
                if resume is not None:
                    await until(pilot, lambda: bool(app.chat_view.chat.turns))
                await steps(pilot, app)

        asyncio.run(go())
        assert app.end_chats()
        assert app.engine.close()

    def chat(self) -> tuple[int, Chat]:
        """The only chat, as it is stored."""
        from specchat.history.restore import to_chat

        with Store.open(self.history) as store:
            [found] = store.chats()
            return found.id, to_chat(store.load(found.id))


@pytest.fixture
def fresh(smollm: LlamaModel, log: EngineLog) -> Iterator[LlamaModel]:
    """The same model with an empty cache. One thread: two wait for each other where others want the cores too."""
    yield from with_context(smollm, log, 2048)


@pytest.fixture
def small(smollm: LlamaModel, log: EngineLog) -> Iterator[LlamaModel]:
    """The same model with a context that is soon full."""
    yield from with_context(smollm, log, N_CTX)


def with_context(smollm: LlamaModel, log: EngineLog, n_ctx: int) -> Iterator[LlamaModel]:
    model = LlamaModel(smollm.weights, log, n_ctx=n_ctx, n_threads=1)
    yield model
    model.close()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    return Home(tmp_path, model_file("smollm2-135m"), monkeypatch)


async def until(pilot: Pilot[None], holds: Callable[[], bool]) -> None:
    for _ in range(2400):
        if holds():
            return
        await pilot.pause(0.05)
    raise AssertionError("nothing happened for two minutes")


async def answered(pilot: Pilot[None], app: SpecchatApp) -> Turn:
    """The reply that is being written, when it is."""
    await until(pilot, lambda: app.chat_view.busy is None)
    tip = app.chat_view.chat.tip
    assert tip is not None
    assert tip.reply is not None
    return tip


async def ask(pilot: Pilot[None], app: SpecchatApp, text: str) -> Turn:
    app.query_one(Prompt).put(text)
    await pilot.press("enter")
    await until(pilot, lambda: app.chat_view.busy is not None or app.chat_view.chat.tip is not None)
    await pilot.pause()
    return await answered(pilot, app)


def assert_as_fresh(chat: Chat, reply: Turn, model: LlamaModel, log: EngineLog) -> None:
    """A reply is what a fresh conversation with the same history gets."""
    assert reply.parent is not None
    *history, question = chat.messages(chat.turn(reply.parent))
    session = ChatSession(engines_on(model, log), ReplySettings(GREEDY, seed=1, max_tokens=24))
    session.messages = history
    *_, expected = session.reply(question.text)
    assert isinstance(expected, Reply)
    assert expected.reused_tokens == 0
    ours, plain = reply.tokens, session.messages[-1].tokens
    assert ours is not None
    assert plain is not None
    assert_same_up_to_near_ties(model, session.prompt, list(ours), list(plain))


def test_a_chat_that_is_opened_again_goes_on_from_its_saved_cache(
    home: Home, fresh: LlamaModel, log: EngineLog
) -> None:
    async def before(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, app, "Here is a list. " + "apples, pears, plums, " * 30 + "What is it about?")
        await ask(pilot, app, "Name one of them.")

    home.use(before)
    chat_id, chat = home.chat()
    last = chat.path()[-1].reply
    assert last is not None
    assert home.states.n_bytes > 1_000_000

    async def after(pilot: Pilot[None], app: SpecchatApp) -> None:
        reply = (await ask(pilot, app, "Name another one.")).reply
        assert reply is not None
        # Nothing of the old chat is read again.
        assert reply.reused_tokens >= last.prompt_tokens
        assert reply.read_tokens < 60

    home.use(after, resume=chat_id)
    _, chat = home.chat()
    assert len(chat.path()) == 6
    assert_as_fresh(chat, chat.path()[-1], fresh, log)


def test_after_every_edit_redo_branch_and_resume_a_reply_is_that_of_a_fresh_conversation(
    home: Home, fresh: LlamaModel, log: EngineLog
) -> None:
    async def edit(pilot: Pilot[None], app: SpecchatApp, question: Turn, text: str) -> None:
        app.chat_view._edit(question)
        await pilot.pause()
        app.query_one(Prompt).put(text)
        await pilot.press("enter")
        await pilot.pause()
        await answered(pilot, app)

    async def before(pilot: Pilot[None], app: SpecchatApp) -> None:
        view = app.chat_view
        await ask(pilot, app, "Name a colour.")
        await ask(pilot, app, "Name an animal of that colour.")
        await pilot.press("ctrl+r")
        await answered(pilot, app)
        await edit(pilot, app, view.chat.path()[2], "Name a fruit of that colour.")
        first = view.chat.path()[0]
        await edit(pilot, app, first, "Name a country.")
        await ask(pilot, app, "What is its capital?")
        await view.choose_version(view.chat.path()[0], -1)
        await pilot.pause()
        await ask(pilot, app, "And one more.")

    home.use(before)
    chat_id, _ = home.chat()

    async def after(pilot: Pilot[None], app: SpecchatApp) -> None:
        view = app.chat_view
        await ask(pilot, app, "Thank you.")
        await view.choose_version(view.chat.path()[0], 1)
        await pilot.pause()
        await ask(pilot, app, "Say that again.")
        await app.action_redo()
        await answered(pilot, app)

    home.use(after, resume=chat_id)
    _, chat = home.chat()
    replies = [turn for turn in chat.turns if turn.role is Role.ASSISTANT]
    assert len(replies) == 10
    for reply in replies:
        assert_as_fresh(chat, reply, fresh, log)


PINNED = "Remember: my cat is called Minka."
QUESTIONS = (
    PINNED,
    *(f"Here are words: {'red green blue yellow ' * 12}. What do you think of the number {n}?" for n in range(40)),
)


def talk_for_long(model: LlamaModel, log: EngineLog, policy: Policy) -> tuple[Chat, list[str]]:
    """Talk for three times the context; the chat, and what was said about turns that are dropped."""
    session = ChatSession(engines_on(model, log), ReplySettings(GREEDY, seed=1, max_tokens=12))
    session.set_system(SYSTEM)
    talk, notices = Talk(session, Keeper()), list[str]()
    for question in QUESTIONS:
        found = talk.ask(question, (), policy)
        if found.dropping:
            notices.append(found.fitted.notice)
        found.mark()
        *_, reply = talk.answer()
        assert isinstance(reply, Reply)
        assert reply.text
        talk.chat.path()[0].is_pinned = True
        read = model.weights.vocabulary.decode(session.prompt).decode()
        assert SYSTEM in read
        assert PINNED in read
        assert question in read
        costs, _ = turn_costs(session.engines, SYSTEM, talk.chat.path())
        if sum(costs.values()) > 3 * model.n_ctx:
            break
    return talk.chat, notices


@pytest.mark.parametrize("policy", [Policy.DROP, Policy.ASK])
def test_a_chat_of_three_times_the_context_goes_on_and_says_what_it_drops(
    small: LlamaModel, log: EngineLog, policy: Policy
) -> None:
    chat, notices = talk_for_long(small, log, policy)

    dropped = [turn for turn in chat.path() if turn.is_dropped]
    assert len(notices) >= 2
    assert all("oldest" in notice and "not read any more" in notice for notice in notices)
    assert not any(turn.is_dropped for turn in chat.path()[:2])  # the pinned round
    assert len(dropped) > 6
    assert [message.text for message in chat.messages()][:2] == [SYSTEM, PINNED]


def test_under_stop_it_goes_on_until_the_context_is_full_and_is_refused_then(small: LlamaModel, log: EngineLog) -> None:
    with pytest.raises(DoesNotFit, match="begin a new one"):
        talk_for_long(small, log, Policy.STOP)

    assert small.n_past > small.n_ctx // 2
