"""Messages -> the token ids of a prompt. Knows templates and vocabularies, but no models and no screens.

Only the template writes control tokens. What a user typed or a file holds is text, even where it spells one.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

import numpy as np

from specchat.template import CHATML, Template, TemplateError
from speculation.types import Tokens


class Role(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class Message:
    """One turn. `tokens` are a reply's own ids, which tokenizing its text again need not give back."""

    role: Role
    text: str
    tokens: tuple[int, ...] | None = None


class Encoder(Protocol):
    """What a prompt needs of a vocabulary."""

    @property
    def controls(self) -> Mapping[str, int]: ...
    @property
    def adds_bos(self) -> bool: ...
    @property
    def bos(self) -> int: ...
    def encode(self, text: str) -> Tokens: ...
    def decode(self, tokens: Sequence[int]) -> bytes: ...


def as_read(message: Message, vocabulary: Encoder) -> Message:
    """A message without its ids where they do not spell its text: a model of another vocabulary wrote them."""
    if not message.tokens:
        return message
    try:
        spelled = vocabulary.decode(message.tokens).decode("utf-8", "replace")
    except ValueError:  # this vocabulary has no such token
        spelled = None
    return message if spelled == message.text else replace(message, tokens=None)


class PromptFormat:
    """Turns conversations into prompts, the way one model wants them."""

    def __init__(self, template: Template, vocabulary: Encoder, notice: str = "") -> None:
        self._template = template
        self._vocabulary = vocabulary
        self.notice = notice  # what the user should know about this format; empty if nothing
        # A control text of one character cannot be broken; a template that writes it gets it as text.
        controls = sorted((text for text in vocabulary.controls if len(text) > 1), key=len, reverse=True)
        any_control = "|".join(map(re.escape, controls)) or r"(?!)"
        self._control = re.compile(any_control)
        self._control_begin = re.compile(f"(?=(?:{any_control}))(.)", re.DOTALL)
        self._control_parts = frozenset(text[:n] for text in controls for n in range(1, len(text)))
        self._longest = max(map(len, controls), default=0)
        self._control_ids = frozenset(vocabulary.controls.values())

    def prompt(self, messages: Sequence[Message]) -> Tokens:
        """The ids that ask for the next reply, shape (n,). Raises TemplateError."""
        messages = [as_read(message, self._vocabulary) for message in _mended(messages)]
        guard = _unused_character([self._template.source, *(message.text for message in messages)])
        guarded = [replace(message, text=self._guard(message.text, guard)) for message in messages]
        rendered = self._render(guarded)
        parts = self._with_replies(guarded, rendered, guard) or [rendered]
        ids: list[int] = []
        for part in parts:
            ids.extend(self._encode(part, guard) if isinstance(part, str) else part)
        bos = self._vocabulary.bos
        if self._vocabulary.adds_bos and bos >= 0 and ids[:1] != [bos]:
            ids.insert(0, bos)
        return np.array(ids, dtype=np.int32)

    def costs(self, messages: Sequence[Message]) -> list[int]:
        """Tokens that each message takes up, with what the template writes around it. Raises TemplateError.

        Their sum is that of the prompt up to a few tokens: they are counted apart, and without a reply's own ids.
        """
        grouped = _grouped(messages)
        merged = [message for message, _ in grouped]
        guard = _unused_character([self._template.source, *(message.text for message in merged)])
        marked = [
            replace(message, text=f"{self._guard(message.text, guard)}{guard}{guard}{i}{guard}{guard}")
            for i, message in enumerate(merged)  # behind the text, because templates take thoughts from its beginning
        ]
        pieces = re.split(f"{guard}{guard}(\\d+){guard}{guard}", self._render(marked))
        spent, last = [0] * len(merged), len(merged) - 1
        for i in range(0, len(pieces), 2):
            of = int(pieces[i + 1]) if i + 1 < len(pieces) else last
            spent[of] += sum(1 for _ in self._encode(pieces[i], guard))
        found = [0] * len(messages)
        for total, (_, members) in zip(spent, grouped, strict=True):
            for member in members[1:]:
                found[member] = min(total, len(self._encoded(messages[member].text)))
                total -= found[member]
            found[members[0]] = total
        return found

    def _guard(self, text: str, guard: str) -> str:
        """Break every control text with a character that is taken out again before tokenizing."""
        whole = text
        for at in range(len(whole) - 1, max(0, len(whole) - self._longest) - 1, -1):
            if whole[at:] in self._control_parts:  # what the template writes next could complete it
                text = text[: at + 1] + guard + text[at + 1 :]
        return self._control_begin.sub(rf"\1{guard}", text)

    def _render(self, messages: Sequence[Message]) -> str:
        try:
            return self._template.render([{"role": m.role.value, "content": m.text} for m in messages])
        except TemplateError:
            folded = _without_system(messages)
            if folded == messages:
                raise
            rendered = self._template.render([{"role": m.role.value, "content": m.text} for m in folded])
            self.notice = "this model takes no system prompt; it stands in front of the first message instead"
            return rendered

    def _with_replies(
        self, messages: Sequence[Message], rendered: str, guard: str
    ) -> list[str | tuple[int, ...]] | None:
        """The rendered text in parts, each reply's own ids in place of its text; None where that is not safe.

        It is safe where the template writes replies as they are: then rendering marks in their place and
        putting the texts back gives the same prompt.
        """
        replies = [m for m in messages if m.role is Role.ASSISTANT and m.tokens]
        if not replies:
            return None
        marks = iter(range(len(replies)))
        marked = [
            replace(m, text=f"{guard}{guard}{next(marks)}{guard}{guard}")
            if m.role is Role.ASSISTANT and m.tokens
            else m
            for m in messages
        ]
        try:
            pieces = re.split(f"{guard}{guard}(\\d+){guard}{guard}", self._render(marked))
        except TemplateError:
            return None
        order = [int(piece) for piece in pieces[1::2]]
        if order != list(range(len(replies))):
            return None
        texts = [piece if i % 2 == 0 else replies[int(piece)].text for i, piece in enumerate(pieces)]
        if "".join(texts) != rendered:
            return None
        # Text that goes on right behind a reply must not be tokenized as if it began there.
        if not all(self._control.match(after) for after in pieces[2::2]):
            return None
        return [piece if i % 2 == 0 else replies[int(piece)].tokens or () for i, piece in enumerate(pieces)]

    def _encode(self, text: str, guard: str) -> Iterator[int]:
        at = 0
        for found in self._control.finditer(text):
            yield from self._plain(text[at : found.start()], guard)
            yield self._vocabulary.controls[found[0]]
            at = found.end()
        yield from self._plain(text[at:], guard)

    def _plain(self, text: str, guard: str) -> list[int]:
        ids = self._encoded(text.replace(guard, ""))
        if self._control_ids.isdisjoint(ids):
            return ids
        # Some tokenizers put a control token together from its letters.
        return [token for part in text.split(guard) for token in self._encoded(part)]

    def _encoded(self, text: str) -> list[int]:
        ids: list[int] = self._vocabulary.encode(text).tolist() if text else []
        return ids


def prompt_format(source: str | None, vocabulary: Encoder, control_text: Mapping[str, str]) -> PromptFormat:
    """The format for a model's own template, or ChatML with a notice when it has none that can be used.

    `control_text` holds the texts of the tokens "bos" and "eos".
    """
    notice = "this model brings no chat template; using ChatML, which it may not have been taught"
    if source is not None:
        try:
            template = Template(source, bos=control_text.get("bos", ""), eos=control_text.get("eos", ""))
            template.render([{"role": "user", "content": "Hello"}])
            return PromptFormat(template, vocabulary)
        except TemplateError as error:
            notice = f"{error}; using ChatML instead"
    return PromptFormat(Template(CHATML), vocabulary, notice)


def _mended(messages: Sequence[Message]) -> list[Message]:
    """Empty replies dropped and neighbours of one role merged: many templates insist that roles alternate."""
    return [message for message, _ in _grouped(messages)]


def _grouped(messages: Sequence[Message]) -> list[tuple[Message, list[int]]]:
    """The messages as they are read, each with the indices of those that it was made of."""
    kept: list[tuple[Message, list[int]]] = []
    for i, message in enumerate(messages):
        if message.role is Role.ASSISTANT and not message.text and not message.tokens:
            continue
        if kept and kept[-1][0].role is message.role:
            before, members = kept[-1]
            kept[-1] = Message(message.role, f"{before.text}\n\n{message.text}"), [*members, i]
        else:
            kept.append((message, [i]))
    return kept


def _without_system(messages: Sequence[Message]) -> list[Message]:
    system = "\n\n".join(m.text for m in messages if m.role is Role.SYSTEM)
    rest = [m for m in messages if m.role is not Role.SYSTEM]
    if not system or not rest or rest[0].role is not Role.USER:
        return list(messages)
    return [replace(rest[0], text=f"{system}\n\n{rest[0].text}"), *rest[1:]]


def _unused_character(texts: Iterable[str]) -> str:
    """A private-use character that stands in none of the texts."""
    used = set().union(*map(set, texts))
    private = itertools.chain(range(0xE000, 0xF900), range(0xF0000, 0xFFFFE), range(0x100000, 0x10FFFE))
    return next(chr(point) for point in private if chr(point) not in used)
