"""Requests and answers of the chat completions interface as data: settings -> body, event -> piece. No network."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from specchat.conversation import Message, Role
from specchat.remote.errors import RemoteError, StreamBroken, clipped
from specchat.remote.figures import ServerFigures, read_figures
from specchat.remote.kinds import Kind, ServerFacts
from specchat.reply import ReplySettings

DONE = "[DONE]"
_THINK, _THOUGHT = "<think>\n", "\n</think>\n\n"  # as models write it that send their thinking as text
_SEEDS = 1 << 31  # what every server takes as a seed
_SPARE = ("prediction", "return_spec_tokens_details", "stream_options")  # without which a request is as good


@dataclass(frozen=True, slots=True)
class Piece:
    """One event of a reply."""

    text: str = ""
    thinking: str = ""
    finish: str | None = None
    at_stop: bool = False  # it ended before a text that was to end it; not every server says so
    figures: ServerFigures = field(default_factory=ServerFigures)


def request_body(
    facts: ServerFacts,
    messages: Sequence[Message],
    settings: ReplySettings,
    seed: int,
    *,
    goes_on: bool = False,
    prediction: str | None = None,
) -> dict[str, Any]:
    """What to send. With `goes_on` the last message is a reply that the model continues."""
    sampling = settings.sampling
    body: dict[str, Any] = {
        "model": facts.model,
        "messages": [{"role": message.role.value, "content": message.text} for message in messages if _says(message)],
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "seed": seed % _SEEDS,
    }
    for setting, name in facts.fields.items():
        body[name] = getattr(sampling, setting)
    if facts.kind is not Kind.LLAMA and body.get("top_k") == 0:
        body["top_k"] = -1  # which is how the others spell "all"
    if settings.max_tokens is not None:
        body["max_tokens"] = settings.max_tokens
    if settings.stop:
        body["stop"] = list(settings.stop)
    if facts.kind is Kind.SGLANG:
        body["return_spec_tokens_details"] = True
    if goes_on:
        body.update(facts.continues or {})
    if prediction is not None:
        body["prediction"] = {"type": "content", "content": prediction}
    return body


def without_refused(body: dict[str, Any], refusal: str) -> dict[str, Any] | None:
    """The request without the spare fields that a refusal names; None where it names none of them."""
    refused = [name for name in _SPARE if name in body and name in refusal]
    return {name: value for name, value in body.items() if name not in refused} if refused else None


def unsent(facts: ServerFacts) -> list[str]:
    """Settings of sampling that the server is not sent, because the common interface has none like them."""
    return [name for name in ("top_k", "min_p", "repeat_penalty") if name not in facts.fields]


def read_piece(data: str) -> Piece:
    """One event. Raises StreamBroken for what is no reply, RemoteError for an error that the server reports in it."""
    try:
        answer = json.loads(data)
    except (ValueError, RecursionError):
        raise StreamBroken(f'the server sends what is no part of a reply: "{clipped(data)}"') from None
    if not isinstance(answer, dict):
        raise StreamBroken(f'the server sends what is no part of a reply: "{clipped(data)}"')
    if answer.get("error"):
        raise RemoteError(f"the server broke off: {said_in(answer) or 'it does not say why'}")
    figures = read_figures(answer)
    choices = answer.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    said = choice.get("delta") or choice.get("message")
    said = said if isinstance(said, dict) else {}
    finish = choice.get("finish_reason")
    return Piece(
        text=_text(said.get("content")),
        thinking=_text(said.get("reasoning_content") or said.get("reasoning")),
        finish=finish if isinstance(finish, str) else None,
        at_stop=isinstance(choice.get("stop_reason"), str) or isinstance(choice.get("matched_stop"), str),
        figures=figures,
    )


def said_in(answer: object) -> str:
    """Why a server refuses, in its own words: one line, or empty."""
    if isinstance(answer, dict):
        for key in ("error", "message", "detail"):
            if answer.get(key):
                return said_in(answer[key])
        return ""
    return clipped(answer if isinstance(answer, str) else json.dumps(answer)) if answer else ""


class Thinking:
    """Puts what a server sends as thinking back into the text, between the marks that models write."""

    def __init__(self) -> None:
        self._is_open = False

    def text_of(self, piece: Piece) -> str:
        """The text of a piece, marks included."""
        text = ""
        if piece.thinking:
            text = piece.thinking if self._is_open else _THINK + piece.thinking
            self._is_open = True
        if piece.text:
            text += self.end() + piece.text
        return text

    def end(self) -> str:
        """What closes thinking that is open."""
        closing, self._is_open = _THOUGHT if self._is_open else "", False
        return closing


def _says(message: Message) -> bool:
    return bool(message.text) or message.role is not Role.ASSISTANT


def _text(value: object) -> str:
    """A text that can be written to a terminal and a file; half a pair of code units is none."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""
