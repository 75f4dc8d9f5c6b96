"""Chats, steps and replies for the tests of the store: small ones by hand, any by hypothesis."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from specchat.attachments import Attachment
from specchat.chat import Chat, Turn
from specchat.conversation import Role
from specchat.history.keeping import KeptChat, Writing
from specchat.history.packing import pack_steps
from specchat.history.records import About, ChatRecord, PartRecord, TurnRecord
from specchat.provenance import Author, Origin, Span
from specchat.session import Reply
from speculation.stats import Totals, totals
from speculation.types import PLAIN, Finish, Step

ABOUT = About("qwen", "small", "auto", "coupled", 0.5)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
counts = st.integers(0, 2**31 - 1)
singles = st.floats(0, 1e6, width=32)
moments = st.floats(0, 4e9)

steps = st.builds(
    Step,
    guesser=st.sampled_from([PLAIN, "prompt_lookup", "draft_model"]),
    drafted=counts,
    examined=counts,
    accepted=counts,
    tokens=st.lists(counts, max_size=5).map(tuple),
    context=counts,
    draft_s=singles,
    verify_s=singles,
    accept_s=singles,
    source=st.none() | counts,
    match=counts,
    p_rejected=st.none() | singles,
    p_chosen=st.none() | singles,
    finish=st.none() | st.sampled_from(Finish),
    probe=st.booleans(),
    sources=st.none() | st.lists(st.none() | counts, max_size=3).map(tuple),
)
origins = st.builds(Origin, st.sampled_from(Author), texts, counts, st.none() | counts, counts)
spans = st.builds(Span, counts, counts, st.sampled_from(Author), counts, st.none() | origins)
abouts = st.builds(About, texts, st.none() | texts, texts, texts, st.none() | st.floats(0, 9))
counted = st.lists(steps, max_size=3).map(totals)
parts = st.builds(
    PartRecord,
    about=abouts,
    begun=moments,
    ended=moments,
    finish=st.none() | st.sampled_from([str(finish) for finish in Finish]),
    seed=st.none() | st.integers(0, 2**64 - 1),
    prompt_tokens=counts,
    reused_tokens=counts,
    read_tokens=counts,
    read_s=singles,
    first_token_s=st.none() | singles,
    plain_step_s=st.none() | singles,
    totals=counted,
    steps=st.lists(steps, max_size=4).map(pack_steps),
    spans=st.lists(spans, max_size=3).map(tuple),
)


@st.composite
def records(draw: st.DrawFn) -> ChatRecord:
    """Any chat, with branches."""
    turns: list[TurnRecord] = []
    for turn_id in sorted(draw(st.sets(st.integers(1, 50), max_size=6))):
        parent = draw(st.none() | st.sampled_from([turn.id for turn in turns])) if turns else None
        role = draw(st.sampled_from([Role.USER, Role.ASSISTANT]))
        attached = st.lists(st.builds(Attachment, texts, texts), max_size=2).map(tuple)
        turns.append(
            TurnRecord(
                id=turn_id,
                parent=parent,
                role=role,
                text=draw(texts),
                tokens=draw(st.none() | st.lists(counts, max_size=40).map(tuple)),
                attachments=draw(attached),
                created=draw(moments),
                latest=draw(st.none() | st.integers(1, 50)),
                is_pinned=draw(st.booleans()),
                is_dropped=draw(st.booleans()),
                parts=draw(st.lists(parts, max_size=2).map(tuple)) if role is Role.ASSISTANT else (),
            )
        )
    return ChatRecord(
        key=draw(st.uuids().map(str)),
        created=draw(moments),
        changed=draw(moments),
        title=draw(texts),
        is_named=draw(st.booleans()),
        system=draw(texts),
        model=draw(texts),
        unsent=draw(texts),
        settings=draw(st.dictionaries(texts, st.none() | st.booleans() | counts | texts, max_size=2)),
        is_pinned=draw(st.booleans()),
        latest=draw(st.none() | st.integers(1, 50)),
        tip=draw(st.none() | st.integers(1, 50)),
        turns=tuple(turns),
    ).mended()


def said(*words: str, title: str = "a chat", key: str = "", changed: float = 0.0) -> ChatRecord:
    """A chat of questions and replies in turn."""
    turns = tuple(
        TurnRecord(
            id=number,
            parent=number - 1 or None,
            role=Role.USER if number % 2 else Role.ASSISTANT,
            text=text,
            latest=number + 1 if number < len(words) else None,
            parts=() if number % 2 else (PartRecord(ABOUT, 1.0, 2.0, totals=Totals(steps=2, emitted=5)),),
        )
        for number, text in enumerate(words, 1)
    )
    return ChatRecord(
        key=key, title=title, is_named=True, changed=changed, latest=1 if turns else None, tip=len(turns), turns=turns
    )


def step(*tokens: int, finish: Finish | None = None) -> Step:
    """A step that emitted these tokens, all but the last of them guessed."""
    guessed = len(tokens) - 1
    return Step("prompt_lookup", guessed, guessed, guessed, tokens, 100, 0.25, 0.5, 0.125, 3, 2, None, None, finish)


def reply_of(text: str, written: Sequence[Step]) -> Reply:
    """The figures of a reply that these steps wrote."""
    return Reply(text, Finish.END, 7, totals(written), tuple(written), 100, 60, 40, 0.5, 0.75, 0.03)


def answer(kept: KeptChat, *pieces: str, spans: Sequence[Span] = ()) -> Turn:
    """Write a reply to the tip of a chat, a step for each piece."""
    turn = kept.chat.add(Role.ASSISTANT, "")
    return finish(kept.begin_reply(turn, ABOUT), turn, *pieces, spans=spans)


def finish(writing: Writing, turn: Turn, *pieces: str, spans: Sequence[Span] = ()) -> Turn:
    """Write the rest of a reply and end it."""
    written = [step(number, number + 1) for number in range(len(pieces))]
    for piece, each in zip(pieces, written, strict=True):
        writing.step(piece, each)
    turn.text += "".join(pieces)
    turn.tokens = tuple(token for each in written for token in each.tokens)
    turn.reply = reply_of("".join(pieces), written)
    writing.end(turn, turn.reply, spans)
    return turn


def shape(chat: Chat) -> list[tuple[object, ...]]:
    """All that a chat is, to compare two."""
    facts = (chat.system, chat.title, chat.latest, None if chat.tip is None else chat.tip.id)
    turns = [
        (turn.id, turn.parent, turn.role, turn.text, turn.tokens, turn.attachments, turn.is_pinned, turn.is_dropped)
        for turn in chat.turns
    ]
    return [facts, *turns]
