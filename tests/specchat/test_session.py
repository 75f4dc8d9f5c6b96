"""What a front end is given, on a tiny random model: everything that is kept was shown, and stops stop."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from specchat.conversation import Message, Role
from specchat.kept import Kept, as_prices
from specchat.loading import EngineOptions, Engines, UnfitDraft, load_engines
from specchat.session import ChatSession, Checked, ContextFull, Guess, Reading, Reply, ReplySettings, Wrote
from speculation.guessers.draft_model import DraftModel
from speculation.guessers.extending import Extending
from speculation.guessers.prompt_lookup import PromptLookup
from speculation.llama import EngineLog
from speculation.sampling import GREEDY, SamplingConfig
from speculation.types import PLAIN, CannotRewind, Finish
from tests.gguf import tiny

QUESTION = "one two three one two three one two"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("session")
    return {
        "target": tiny.write_attention(folder / "target.gguf"),
        "near": tiny.write_attention(folder / "near.gguf", drift=0.05),
        "recurrent": tiny.write_recurrent(folder / "recurrent.gguf"),
        "other": tiny.write_attention(folder / "other.gguf", replace_token=(99, "odd one")),
    }


@pytest.fixture
def engines(files: dict[str, Path]) -> Iterator[Engines]:
    loaded = load_engines(files["target"], EngineOptions(n_ctx=1024, n_threads=1), EngineLog())
    yield loaded
    loaded.close()


def session_on(engines: Engines, **settings: object) -> ChatSession:
    given = {"sampling": GREEDY, "seed": 1, "max_tokens": 40, **settings}
    return ChatSession(engines, ReplySettings(**given))  # type: ignore[arg-type]


def answer(session: ChatSession, question: str = QUESTION) -> Reply:
    *_, last = session.reply(question)
    assert isinstance(last, Reply)
    return last


@pytest.mark.parametrize("stop_at", range(0, 40, 3))
def test_what_is_kept_was_shown_also_where_text_is_held_back(engines: Engines, stop_at: int) -> None:
    text = answer(session_on(engines)).text
    never = tuple(text[i : i + 2] + "\0 never" for i in range(0, len(text), 2))  # every few characters are held
    session = session_on(engines, stop=never)

    shown = ""
    for i, event in enumerate(session.reply(QUESTION)):
        if isinstance(event, Wrote):
            shown += event.text
            if i == stop_at:
                session.stop()

    assert session.messages[-1].text == shown
    assert text.startswith(shown.rstrip("\ufffd"))


def test_a_stop_before_the_first_token_leaves_the_conversation_as_it_was(engines: Engines) -> None:
    session = session_on(engines)
    answer(session)
    before = list(session.messages)
    for event in session.reply("word " * 150):
        if isinstance(event, Reading):
            session.stop()
    assert session.last_reply is not None
    assert session.last_reply.finish is None
    assert session.last_reply.text == ""
    assert session.last_reply.read_tokens < session.last_reply.prompt_tokens - session.last_reply.reused_tokens
    assert session.messages == before
    assert answer(session).totals.emitted > 0


def test_a_stop_while_the_draft_model_reads_ends_the_reply(engines: Engines, files: dict[str, Path]) -> None:
    session = session_on(engines)
    answer(session, "word " * 150)
    engines.load_draft(files["near"])
    assert engines.draft is not None
    session.guess = Guess.DRAFT
    draft, forwards = engines.draft, 0
    forward = draft.forward

    def stopping(*args: object, **kwargs: object) -> object:
        nonlocal forwards
        forwards += 1
        session.stop()
        return forward(*args, **kwargs)  # type: ignore[arg-type]

    draft.forward = stopping  # type: ignore[method-assign, assignment]
    reply = answer(session)
    del draft.forward

    assert reply.finish is None
    assert forwards == 1
    assert answer(session).totals.accepted_by.get("draft", 0) > 0


def test_a_draft_runs_on_into_copies_in_auto_and_a_draft_model_chosen_by_hand_guesses_alone(
    engines: Engines, files: dict[str, Path]
) -> None:
    engines.load_draft(files["near"])
    session = session_on(engines)

    found = []
    for guess in (Guess.AUTO, Guess.DRAFT):
        session.guess = guess
        found.append({name: type(guesser) for name, guesser in session._engine.guessers.items()})

    assert found == [{"lookup": PromptLookup, "draft": Extending}, {"lookup": PromptLookup, "draft": DraftModel}]


def test_the_guesser_can_be_switched_in_mid_reply_and_the_text_stays(engines: Engines, files: dict[str, Path]) -> None:
    plain = answer(session_on(engines)).text
    engines.load_draft(files["near"])
    session = session_on(engines)
    turns = [Guess.LOOKUP, Guess.OFF, Guess.DRAFT, Guess.AUTO]

    used = set()
    for i, event in enumerate(session.reply(QUESTION)):
        if isinstance(event, Wrote) and event.step is not None:
            used.add(event.step.guesser)
            session.guess = turns[i % len(turns)]

    assert {PLAIN, "draft", "lookup"} <= used
    assert session.last_reply is not None
    assert session.last_reply.text == plain


def test_a_draft_cannot_be_chosen_before_one_is_loaded(engines: Engines) -> None:
    with pytest.raises(ValueError, match="no draft model is loaded"):
        session_on(engines).guess = Guess.DRAFT


def test_an_unfit_draft_leaves_the_one_that_was_loaded(engines: Engines, files: dict[str, Path]) -> None:
    engines.load_draft(files["near"])
    loaded = engines.draft

    with pytest.raises(UnfitDraft, match="token 99 is 'odd one'"):
        engines.load_draft(files["other"])

    assert engines.draft is loaded


def test_a_prompt_that_does_not_fit_changes_nothing(engines: Engines) -> None:
    session = session_on(engines)
    answer(session)
    before = list(session.messages)

    with pytest.raises(ContextFull):
        list(session.reply("word " * 2000))

    assert session.messages == before
    assert answer(session).reused_tokens > 0


def test_new_forgets_the_conversation_but_not_the_system_prompt(engines: Engines) -> None:
    session = session_on(engines)
    session.set_system("be brief")
    answer(session)

    session.new()

    assert [message.role for message in session.messages] == [Role.SYSTEM]


def test_a_random_seed_is_new_each_time_and_recorded(engines: Engines) -> None:
    session = session_on(engines, seed=None)

    assert len({answer(session).seed for _ in range(3)}) == 3


def test_a_recurrent_target_chats_plainly_turn_after_turn_and_reads_only_what_is_new(files: dict[str, Path]) -> None:
    engines = load_engines(files["recurrent"], EngineOptions(n_ctx=1024, n_threads=1), EngineLog())
    try:
        session = session_on(engines, max_tokens=400)
        assert any("cannot take tokens back" in notice for notice in session.notices)
        first = answer(session)
        assert first.finish is Finish.END  # the end token itself must not cost the cache
        second = answer(session, "and then?")
        assert second.reused_tokens >= first.prompt_tokens + first.totals.emitted - 1
        assert {step.guesser for step in second.steps} == {PLAIN}
        with pytest.raises(UnfitDraft, match="nothing can guess for it"):
            engines.load_draft(files["near"])
        for guess in (Guess.LOOKUP, Guess.DRAFT):
            with pytest.raises(CannotRewind, match="nothing can guess for it"):
                session.guess = guess
        assert session.guess is Guess.AUTO
    finally:
        engines.close()


def test_closing_the_iterator_keeps_what_was_given_and_not_a_character_more(engines: Engines) -> None:
    text = answer(session_on(engines)).text
    session = session_on(engines, stop=(text[4:6] + "\0 never",))
    shown = ""
    events = session.reply(QUESTION)
    for event in events:
        if isinstance(event, Wrote):
            shown += event.text
            if len(shown) >= 4:
                break
    events.close()  # type: ignore[attr-defined] # it is a generator

    assert session.messages[-1].text == shown


def test_prices_are_measured_once_and_kept(files: dict[str, Path], tmp_path: Path) -> None:
    kept = tmp_path / "cache" / "prices.json"
    tables = []
    for content in (None, None, "{broken"):
        if content is not None:
            kept.write_text(content)
        engines = load_engines(files["target"], EngineOptions(n_ctx=512), EngineLog(), prices=Kept(kept))
        assert engines.cost is not None
        tables.append(dict(engines.cost.seconds))
        engines.close()

    assert tables[0] == tables[1] != tables[2]


def test_a_context_that_is_cut_to_what_the_model_was_trained_for_says_so(files: dict[str, Path]) -> None:
    engines = load_engines(files["target"], EngineOptions(n_ctx=100_000), EngineLog())

    assert any("trained for no more" in notice for notice in engines.notices)
    engines.close()


@pytest.mark.parametrize("kept", [None, [], {}, {"1": "x"}, {"2": 0.1}, {"1": -1.0}, {"a": 1.0}])
def test_prices_that_make_no_sense_are_measured_again(kept: object) -> None:
    assert as_prices(kept) is None


def test_what_a_session_learned_is_taken_up_by_the_next(engines: Engines) -> None:
    first = session_on(engines, max_tokens=200)
    answer(first, "a b c d " * 20)
    learned = json.loads(json.dumps(first.learned()))
    assert learned["cells"]

    second = session_on(engines)
    assert second.learned() != first.learned()
    second.take_up(learned)

    assert second.learned() == first.learned()
    nonsense: list[object] = [None, [], {"version": 9}, {"version": 1, "cells": {"x": 1}}]
    for kept in nonsense:
        second.take_up(kept)
    assert second.learned() == first.learned()


def test_a_reply_written_anew_takes_the_place_of_the_old_one_which_stands_until_then(engines: Engines) -> None:
    session = session_on(engines, sampling=SamplingConfig(), seed=None)
    first = answer(session)
    *_, second = session.redo()
    assert isinstance(second, Reply)
    assert [message.role for message in session.messages] == [Role.USER, Role.ASSISTANT]
    assert session.messages[-1].text == second.text
    assert second.reused_tokens == first.prompt_tokens - 1  # nothing of the question is read again

    for event in session.redo():
        if isinstance(event, Reading):
            session.stop()
    assert session.messages[-1].text == second.text


@pytest.mark.parametrize("guess", [Guess.OFF, Guess.LOOKUP, Guess.AUTO])
@pytest.mark.parametrize("sampling", [GREEDY, SamplingConfig()])
@pytest.mark.parametrize("cut", [1, 7, 23])
def test_a_reply_that_was_cut_and_continued_is_what_one_run_writes(
    engines: Engines, guess: Guess, sampling: SamplingConfig, cut: int
) -> None:
    whole = answer(session_on(engines, sampling=sampling, seed=5, max_tokens=40)).text
    session = session_on(engines, sampling=sampling, seed=5, max_tokens=cut)
    session.guess = guess
    answer(session)
    session.settings = replace(session.settings, max_tokens=40 - cut)
    *_, rest = session.go_on(seed=5)

    assert isinstance(rest, Reply)
    assert session.messages[-1].text == whole
    assert len(session.messages) == 2
    assert rest.read_tokens == 0  # it goes on in the cache


@pytest.mark.parametrize("foreign", [(5, 5, 5), (10**6,)])
def test_what_a_model_of_another_vocabulary_began_goes_on_from_its_text(
    engines: Engines, foreign: tuple[int, ...]
) -> None:
    texts = []
    for tokens in (None, foreign):
        session = session_on(engines, sampling=GREEDY, max_tokens=20)
        session.messages = [
            Message(Role.USER, "hello there"),
            Message(Role.ASSISTANT, "hello"),
            Message(Role.USER, "and again"),
            Message(Role.ASSISTANT, "well then", tokens),
        ]
        list(session.go_on(seed=5))
        texts.append(session.messages[-1].text)

    assert texts[0] == texts[1]
    assert texts[0].startswith("well then")


def test_there_is_nothing_to_redo_or_continue_in_an_empty_chat(engines: Engines) -> None:
    session = session_on(engines)
    with pytest.raises(ValueError, match="no reply to write anew"):
        session.redo()
    with pytest.raises(ValueError, match="no reply to continue"):
        session.go_on()


def test_a_check_finds_a_reply_identical_and_leaves_the_conversation_alone(engines: Engines) -> None:
    session = session_on(engines, sampling=SamplingConfig(), seed=9)
    session.guess = Guess.LOOKUP
    reply = answer(session)
    tokens = [token for step in reply.steps for token in step.tokens]
    before = list(session.messages)

    *_, checked = session.check(before[:-1], tokens, reply.seed)

    assert checked == Checked(len(tokens), None, None)
    assert session.messages == before
    assert session.guess is Guess.LOOKUP
    assert any(step.guesser == "lookup" for step in answer(session, "more").steps)


def test_a_check_names_the_first_token_that_differs_and_how_likely_both_were(engines: Engines) -> None:
    session = session_on(engines)
    reply = answer(session)
    tokens = [token for step in reply.steps for token in step.tokens]
    forged = [*tokens[:11], (tokens[11] + 1) % 60, *tokens[12:]]

    *_, checked = session.check(session.messages[:-1], forged, reply.seed)

    assert isinstance(checked, Checked)
    assert checked.tokens == 11
    assert checked.differs is not None
    assert checked.chances is not None
    assert 0 <= checked.chances[0] < checked.chances[1] <= 1  # greedy: the plain one was the likelier


def test_a_stopped_check_has_no_verdict(engines: Engines) -> None:
    session = session_on(engines)
    reply = answer(session)
    tokens = [token for step in reply.steps for token in step.tokens]
    events = []
    for event in session.check(session.messages[:-1], tokens, reply.seed):
        events.append(event)
        if len(events) == 5:
            session.stop()
    assert not any(isinstance(event, Checked) for event in events)


def test_lookups_copy_only_from_where_they_may(engines: Engines) -> None:
    session = session_on(engines)
    session.guess = Guess.LOOKUP
    text = answer(session).text
    session.new()
    session.copy_only_from(lambda index: False)
    reply = answer(session)
    assert {step.guesser for step in reply.steps} == {PLAIN}
    assert reply.text == text
    session.new()
    session.copy_only_from(lambda index: index < reply.prompt_tokens)
    sources = [step.source for step in answer(session).steps if step.source is not None]
    assert sources
    assert max(sources) < reply.prompt_tokens


def test_a_guesser_chosen_by_hand_drafts_as_far_as_looks_best_or_a_fixed_length(
    engines: Engines, files: dict[str, Path]
) -> None:
    engines.load_draft(files["near"])
    session = session_on(engines, max_tokens=60)
    session.guess = Guess.DRAFT
    free = answer(session).steps
    assert {step.guesser for step in free if step.drafted} == {"draft"}
    assert all(step.drafted >= 1 for step in free[:-1])  # also where a draft does not pay: it was asked for
    session.settings = replace(session.settings, guess_max=3)
    session.new()
    fixed = answer(session).steps
    assert {step.drafted for step in fixed if step.guesser == "draft"} <= {1, 2, 3}
    assert 3 in {step.drafted for step in fixed}
