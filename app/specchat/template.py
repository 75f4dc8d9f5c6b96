"""Chat templates: the jinja source in a GGUF file, run where it can neither reach out nor run away.

A template is a program that came with a download. It runs in jinja2's immutable sandbox; its output and its time
are capped, because the sandbox itself limits neither.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from time import monotonic
from types import FrameType
from typing import Any

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

MAX_CHARACTERS = 32_000_000  # more than any context holds
MAX_SECONDS = 5.0

# For files that bring no template, or one that cannot be used. ChatML is what most small models were taught.
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


class TemplateError(Exception):
    """A chat template that cannot be used; the text says why."""


class Template:
    """A compiled chat template."""

    def __init__(self, source: str, *, bos: str = "", eos: str = "", now: Callable[[], datetime] = datetime.now) -> None:
        """Compile; bos and eos are the texts of those tokens. Raises TemplateError."""
        self._special = {"bos_token": bos, "eos_token": eos}
        environment = _Sandbox(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
        environment.filters["tojson"] = _tojson
        environment.globals["raise_exception"] = _refuse
        environment.globals["strftime_now"] = lambda pattern: now().strftime(pattern)
        try:
            self._template = environment.from_string(source)
        except jinja2.TemplateError as error:
            raise TemplateError(f"the model's chat template does not parse: {error}") from error

    def render(self, messages: Sequence[Mapping[str, str]]) -> str:
        """The prompt that asks for the next reply. Raises TemplateError, also past the caps on length and time."""
        values = {"messages": list(messages), "add_generation_prompt": True, **self._special}
        pieces: list[str] = []
        length = 0
        before = sys.gettrace()
        sys.settrace(_deadline(monotonic() + MAX_SECONDS))
        try:
            for piece in self._template.generate(values):
                length += len(piece)
                if length > MAX_CHARACTERS:
                    raise TemplateError(f"the chat template writes more than {MAX_CHARACTERS:,} characters")
                pieces.append(piece)
        except (jinja2.TemplateError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise TemplateError(f"the chat template refuses these messages: {error}") from error
        except (RecursionError, MemoryError) as error:
            raise TemplateError("the chat template does not come to an end") from error
        finally:
            sys.settrace(before)
        return "".join(pieces)


class _Sandbox(ImmutableSandboxedEnvironment):
    """Refuses the one-expression ways to fill the memory; a loop meets the caps above."""

    intercepted_binops = frozenset(["*", "**", "%", "<<"])

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator != "%" and not (isinstance(left, int | float) and isinstance(right, int | float)):
            size = max((len(side) for side in (left, right) if hasattr(side, "__len__")), default=0)
            times = max((side for side in (left, right) if isinstance(side, int)), default=0)
            if size * times > MAX_CHARACTERS:
                raise ValueError("a repeated text would be too long")
        elif operator in ("**", "<<") and abs(right) > 64:
            raise ValueError("a number would be too large")
        elif operator == "%" and isinstance(left, str) and len(left) > 200:
            raise ValueError("a format is too long")
        return super().call_binop(context, operator, left, right)


def _deadline(at: float) -> Callable[[FrameType, str, Any], Any]:
    # jinja2 compiles loops to plain Python, and only a trace function sees a loop that writes nothing.
    def trace(frame: FrameType, event: str, value: Any) -> Any:
        if monotonic() > at:
            raise TemplateError(f"the chat template takes more than {MAX_SECONDS:.0f} seconds")
        return trace

    return trace


def _refuse(message: str) -> None:
    raise ValueError(message)


def _tojson(value: Any, indent: int | None = None, **_: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)
