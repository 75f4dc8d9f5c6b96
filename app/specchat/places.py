"""Where the tokens of a prompt come from: a file, a turn, the template. No engine, no screens."""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from specchat.attachments import with_attachments
from specchat.chat import BETWEEN_TURNS, Turn, as_rounds
from specchat.conversation import Role
from specchat.settings import SOURCES

if TYPE_CHECKING:
    from speculation.types import Tokens

THIS_REPLY = "this reply"
_HEADER_LENGTH = 64  # characters: templates write no longer line in front of a message
_THOUGHT = "</think>"  # templates leave out what stands before it in earlier replies


class Author(StrEnum):
    """Who proposed an emitted token."""

    MODEL = "model"
    DRAFT = "draft"
    PROMPT = "prompt"  # copied from the present question, the system prompt or the template
    REPLY = "reply"  # from the reply itself
    TURN = "turn"  # from an earlier question or reply
    FILE = "file"  # from an attachment


@dataclass(frozen=True, slots=True)
class Origin:
    """A place that tokens were copied from."""

    author: Author
    title: str  # the name of a file, or words like "your question"; may hold anything that a file name may
    line: int  # 1-based, in the text of that file or turn
    turn: int | None  # the turn's id; None: it has none, like the system prompt
    offset: int  # in characters, in the text of that file or turn


class _Section(NamedTuple):
    """A stretch of the prompt, in characters, that is known to come from somewhere."""

    start: int
    end: int
    author: Author
    title: str
    turn: int | None
    line_ends: list[int]  # in the text of that turn or file
    skipped: int = 0  # characters of that text in front of the stretch


class Places:
    """Where the tokens of a prompt come from; made once for each reply."""

    def __init__(
        self, prompt: Sequence[int] | Tokens, piece: Callable[[int], bytes], path: Sequence[Turn], system: str = ""
    ) -> None:
        """`path` is what the prompt was made of, the question last; `piece` gives a token's bytes."""
        pieces = [piece(int(token)) for token in prompt]
        self._empty = [not each for each in pieces]  # control tokens, which only templates write
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        texts = [decoder.decode(each) for each in pieces]
        self._starts = [0, *accumulate(map(len, texts))]
        controls = {start for start, empty in zip(self._starts, self._empty, strict=False) if empty}
        if path and path[-1].role is Role.ASSISTANT:
            controls.add(self._starts[-1])  # a reply that goes on
        self._sections = _located("".join(texts), controls, path, system)
        self._section_starts = [section.start for section in self._sections]

    @property
    def prompt_tokens(self) -> int:
        return len(self._empty)

    def author(self, context_index: int) -> Author:
        """Who wrote a token of the context."""
        if context_index >= self.prompt_tokens:
            return Author.REPLY
        section = self._section_of(context_index)
        return Author.PROMPT if section is None else section.author

    def find(self, context_index: int) -> Origin:
        """Where a token of the context stands; behind the prompt that is the reply, where in it is not known here."""
        if context_index >= self.prompt_tokens:
            return Origin(Author.REPLY, THIS_REPLY, 1, None, 0)
        section = self._section_of(context_index)
        if section is None:
            return Origin(Author.PROMPT, "the prompt", 1, None, 0)
        offset = max(0, self._starts[context_index] - section.start) + section.skipped
        line = bisect_left(section.line_ends, offset) + 1
        return Origin(section.author, section.title, line, section.turn, offset)

    def _section_of(self, context_index: int) -> _Section | None:
        if self._empty[context_index]:
            return None
        # A token may begin in what stands between two texts, as with the space that some tokenizers put in front.
        return self._section(self._starts[context_index]) or self._section(self._starts[context_index + 1] - 1)

    def _section(self, at: int) -> _Section | None:
        i = bisect_right(self._section_starts, at) - 1
        return self._sections[i] if i >= 0 and at < self._sections[i].end else None


class _Text(NamedTuple):
    """A message that a prompt holds, and what its characters are."""

    whole: str
    skipped: int  # characters at its beginning that the template may leave out
    sections: list[_Section]  # with places in the message


def _located(text: str, controls: set[int], path: Sequence[Turn], system: str) -> list[_Section]:
    """Where the texts of a conversation stand in a prompt, in its order.

    From the end to the beginning: what templates add of their own, such as a system prompt, stands in front.
    """
    found: list[_Section] = []
    before = len(text)
    for message in reversed(_texts(path, system)):
        place = _last_place(text, controls, message, before)
        if place is None:
            continue
        begin, start, end = place
        before = start
        found[:0] = [
            each._replace(
                start=max(start, begin + each.start),
                end=min(end, begin + each.end),
                skipped=max(0, start - begin - each.start),
            )
            for each in message.sections
            if begin + each.start < end and begin + each.end > start
        ]
    return found


def _texts(path: Sequence[Turn], system: str) -> list[_Text]:
    rounds = as_rounds(path)
    told = _Section(0, len(system), Author.PROMPT, "the system prompt", None, _line_ends(system))
    found = [_Text(system, 0, [told])]
    for i, turns in enumerate(rounds):
        whole = BETWEEN_TURNS.join(turn.prompt_text for turn in turns)
        skipped = whole.rfind(_THOUGHT) + len(_THOUGHT) if turns[0].role is Role.ASSISTANT and _THOUGHT in whole else 0
        found.append(_Text(whole, skipped, list(_sections(turns, is_last=i == len(rounds) - 1))))
    return found


def _sections(turns: Sequence[Turn], *, is_last: bool) -> Iterator[_Section]:
    """What one message consists of."""
    begin = 0
    for turn in turns:
        author, title = _named(turn, is_last=is_last)
        whole_end = begin + len(turn.prompt_text)
        for i, each in enumerate(turn.attachments):
            place = whole_end - len(with_attachments(turn.text, turn.attachments[i:]))
            end = place + len(with_attachments("", [each]))
            yield _Section(end - len(each.text), end, Author.FILE, each.name, turn.id, _line_ends(each.text))
        yield _Section(whole_end - len(turn.text), whole_end, author, title, turn.id, _line_ends(turn.text))
        begin = whole_end + len(BETWEEN_TURNS)


def _line_ends(text: str) -> list[int]:
    return [found.start() for found in re.finditer("\n", text)]


def _named(turn: Turn, *, is_last: bool) -> tuple[Author, str]:
    if turn.role is Role.USER:
        return (Author.PROMPT, "your question") if is_last else (Author.TURN, "an earlier question")
    return (Author.REPLY, THIS_REPLY) if is_last else (Author.TURN, "an earlier reply")


def _last_place(text: str, controls: set[int], message: _Text, before: int) -> tuple[int, int, int] | None:
    """Where a message begins, and from where to where the prompt holds it; the last such place, None without one."""
    whole = message.whole
    for skipped in (0, message.skipped):
        core = whole[skipped:].strip()  # templates trim
        at = _last(text, controls, core, before) if core else -1
        if at >= 0:
            begin = at - whole.index(core, skipped)
            start, end = at, at + len(core)
            while start > max(0, begin) and text[start - 1] == whole[start - 1 - begin]:
                start -= 1
            while end < min(before, begin + len(whole)) and text[end] == whole[end - begin]:
                end += 1
            return begin, start, end
    return None


def _last(text: str, controls: set[int], core: str, before: int) -> int:
    """Where a text stands last; -1 when nowhere.

    In front of a control token wins over a little behind it: there it is a word of the template.
    """
    last = at = text.rfind(core, 0, before)
    while at >= 0 and not _ends_message(text, controls, at + len(core)):
        at = text.rfind(core, max(0, last - _HEADER_LENGTH), at + len(core) - 1)
    return last if at < 0 else at


def _ends_message(text: str, controls: set[int], at: int) -> bool:
    while at not in controls:
        if at >= len(text) or not text[at].isspace():
            return False
        at += 1
    return True


def copyable(places: Places, sources: Collection[str]) -> Callable[[int], bool] | None:
    """Whether lookups may copy what begins at an index of a prompt, as `guess.sources` says; None: all of it."""
    allowed = set(sources)
    if allowed >= set(SOURCES):
        return None
    return lambda index: str(places.author(index)) in allowed
