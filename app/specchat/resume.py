"""Leaving a chat and coming back to it: the target's cache is put on the disk, and taken up where that saves time."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from specchat.conversation import Message, Role
from specchat.kept import Kept
from specchat.loading import Engines
from specchat.session import ChatSession
from specchat.states import NoState, Owner, StateFiles
from specchat.template import TemplateError
from speculation.context import common_prefix
from speculation.llama import ENGINE_VERSION
from speculation.types import SpeculationError, Tokens

WORTH_S = 1.0  # reading that takes less than this is simply done again
RESTORING = 400e6  # bytes a second, until it was measured here
PACE = 50.0  # tokens a second of reading where nothing is known of it: a slow machine, which has most to gain

_SAMPLES, _SAMPLE = 256, 4096  # blocks of a model file that say which one it is, and their bytes


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a state."""

    tokens: int  # that were saved, or that need not be read; 0 where nothing was done
    reason: str  # why nothing was done; empty where something was
    n_bytes: int = 0
    seconds: float = 0.0


def reading_s(n_tokens: int, pace: float | None) -> float:
    """Seconds that reading takes at `pace` tokens a second."""
    return n_tokens / (pace or PACE)


def is_faster(n_bytes: int, n_tokens: int, pace: float | None, bytes_per_s: float) -> bool:
    """Whether taking up a state of n bytes beats reading the n tokens of it that are needed."""
    return n_bytes / bytes_per_s < reading_s(n_tokens, pace)


def keep_state(
    session: ChatSession, states: StateFiles, key: str, clock: Callable[[], float] = perf_counter
) -> Outcome:
    """Save the cache of a chat, that of the session's messages, where reading it again would take long.

    Nothing is written where the cache holds something else by now, or where what it holds is saved already.
    """
    started = clock()
    try:
        tokens, target = session.cached.copy(), session.engines.target
        shared = common_prefix(tokens, next_prompt(session))
        if reading_s(shared, session.reading_pace) < WORTH_S:
            return Outcome(0, f"the cache holds {shared} tokens of this chat, which are soon read again")
        if shared < len(tokens):
            if not target.rewinds_freely:
                return Outcome(0, "the cache holds more than this chat, and cannot go back")
            target.rewind(shared)
            tokens = tokens[:shared]
        owner = owner_of(session.engines)
        if _is_there(states, key, owner, tokens):
            return Outcome(0, "it is saved already")
        state = target.save_state()
        states.put(key, owner, tokens, state)
        return Outcome(len(tokens), "", len(state), clock() - started)
    except (NoState, SpeculationError, TemplateError) as error:
        return Outcome(0, f"the cache was not saved: {error}")


def resume_state(
    session: ChatSession, states: StateFiles, key: str, clock: Callable[[], float] = perf_counter
) -> Outcome:
    """Take up the saved cache of a chat, whose messages the session has already, where that is faster than reading.

    Whatever is wrong with it, the next reply reads what is missing.
    """
    started = clock()
    try:
        found = states.find(key, owner_of(session.engines))
        shared = common_prefix(found.tokens, next_prompt(session))
        target = session.engines.target
        if shared < len(found.tokens) and not target.rewinds_freely:
            return Outcome(0, "the chat goes another way than its saved state, which cannot go back")
        if shared <= common_prefix(session.cached, found.tokens[:shared]):
            return Outcome(0, "the cache holds it already")
        rates = Kept(states.folder / "rates.json")
        if not is_faster(found.n_bytes, shared, session.reading_pace, _rate(rates)):
            return Outcome(0, f"{shared} tokens are read as fast")
        if len(found.tokens) > target.n_ctx:
            return Outcome(0, f"the saved state has {len(found.tokens)} tokens and the context holds {target.n_ctx}")
        session.take_state(found.tokens, states.load(found))
        seconds = clock() - started
        if seconds > 0:
            rates.put("restoring", found.n_bytes / seconds)
        return Outcome(shared, "", found.n_bytes, seconds)
    except (NoState, SpeculationError, TemplateError) as error:
        return Outcome(0, f"the saved state of this chat is not used: {error}")


def next_prompt(session: ChatSession) -> Tokens:
    """What the next question of a chat will have in front of it, with a question that nobody asked."""
    messages: Sequence[Message] = session.messages
    if not messages or messages[-1].role is not Role.USER:
        messages = [*messages, Message(Role.USER, "?")]
    return session.engines.format.prompt(messages)


def owner_of(engines: Engines) -> Owner:
    """What states of this model's cache belong to. Raises NoState where its file is gone."""
    weights = engines.target.weights
    return Owner(weights.name, fingerprint(weights.path), ENGINE_VERSION, engines.target.state_kind)


def fingerprint(path: Path) -> str:
    """Which weights a file holds, all parts of it: sizes, times of change, and blocks from beginning to end.

    Reading all of it would take longer than reading a chat. Raises NoState.
    """
    found = re.fullmatch(r"(.*)-\d{5}-of-(\d{5})\.gguf", path.name)
    parts = [path]
    if found is not None:
        parts = [path.with_name(f"{found[1]}-{i:05}-of-{found[2]}.gguf") for i in range(1, int(found[2]) + 1)]
    digest = hashlib.blake2b(digest_size=16)
    try:
        for part in parts:
            known = part.stat()
            digest.update(f"{known.st_size} {known.st_mtime_ns} ".encode())
            with part.open("rb") as file:
                for i in range(_SAMPLES):
                    file.seek(max(0, known.st_size - _SAMPLE) * i // (_SAMPLES - 1))
                    digest.update(file.read(_SAMPLE))
    except OSError as error:
        raise NoState(f"{path.name} cannot be read: {error.strerror or error}") from error
    return digest.hexdigest()


def _is_there(states: StateFiles, key: str, owner: Owner, tokens: Tokens) -> bool:
    try:
        found = states.find(key, owner)
    except NoState:
        return False
    return len(found.tokens) == len(tokens) == common_prefix(found.tokens, tokens)


def _rate(rates: Kept) -> float:
    known = rates.get("restoring")
    return known if isinstance(known, float) and known > 0 else RESTORING
