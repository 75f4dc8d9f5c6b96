"""Chat templates: the jinja source in a GGUF file, run where it can neither reach out nor run away.

A template is a program that came with a download. It runs in jinja2's immutable sandbox, which limits neither
time nor memory: a trace function does, and what could take much of either between two looks of it is refused.
"""

from __future__ import annotations

import functools
import json
import re
import sys
import tracemalloc
from collections.abc import Callable, ItemsView, Iterable, KeysView, Mapping, Sequence, ValuesView
from datetime import datetime
from time import monotonic
from types import FrameType
from typing import Any, TypeVar

import jinja2
from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.ext import Extension
from jinja2.filters import do_indent, make_attrgetter
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedFormatter
from jinja2.utils import Namespace

MAX_CHARACTERS = 32_000_000  # more than any context holds
MAX_SECONDS = 5.0
MAX_BYTES = 500_000_000  # of memory

# For files that bring no template, or one that cannot be used. ChatML is what most small models were taught.
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

# No template of a known model uses these, and one call of each can fill the memory or take hours.
_REFUSED_FILTERS = (
    "batch", "center", "format", "pprint", "slice", "striptags", "sum", "urlize", "wordwrap", "xmlattr",
)  # fmt: skip
_REFUSED_METHODS = frozenset(
    {"center", "encode", "expandtabs", "ljust", "rjust", "to_bytes", "translate", "zfill"}
)
_MAX_BITS = 4096  # of an integer
_CONTAINERS = (list, tuple, set, frozenset, KeysView, ValuesView, ItemsView)

T = TypeVar("T")


class TemplateError(Exception):
    """A chat template that cannot be used; the text says why."""


class Template:
    """A compiled chat template."""

    def __init__(
        self, source: str, *, bos: str = "", eos: str = "", now: Callable[[], datetime] = datetime.now
    ) -> None:
        """Compile; bos and eos are the texts of those tokens. Raises TemplateError."""
        self.source = source
        self._special = {"bos_token": bos, "eos_token": eos}
        environment = _Sandbox(now)
        try:
            self._template = environment.from_string(source)
        except jinja2.TemplateSyntaxError as error:
            raise TemplateError(
                f"the model's chat template does not parse: line {error.lineno}: {error.message}"
            ) from error
        except Exception as error:  # it is somebody else's program: anything may go wrong in it
            raise TemplateError(f"the model's chat template does not parse: {error}") from error

    def render(self, messages: Sequence[Mapping[str, str]]) -> str:
        """The prompt that asks for the next reply. Raises TemplateError, also past the caps above."""
        values = {"messages": list(messages), "add_generation_prompt": True, **self._special}
        try:
            return _watched(lambda: _concatenated(_limited(self._template.generate(values))))
        except TemplateError:
            raise
        except Exception as error:
            raise TemplateError(f"the chat template refuses these messages: {error}") from error


class _Sandbox(ImmutableSandboxedEnvironment):
    """Refuses what takes much time or memory in one operation, where no trace function looks."""

    intercepted_binops = frozenset(["*", "**", "%", "//"])

    def __init__(self, now: Callable[[], datetime]) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            optimized=False,  # or constant expressions would be computed while compiling, unwatched
            extensions=["jinja2.ext.loopcontrols", _Generation],
            finalize=_sized,
        )
        self.filters |= {"tojson": _tojson, "replace": _replaced, "join": _joined_by, "indent": _indented}
        self.filters = {
            name: _sizes_checked(function)
            for name, function in self.filters.items()
            if name not in _REFUSED_FILTERS
        }
        del self.globals["lipsum"]
        self.globals["raise_exception"] = _refuse
        self.globals["strftime_now"] = lambda pattern: now().strftime(pattern)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if isinstance(left, int) and isinstance(right, int):
            bits = left.bit_length() * (right if operator == "**" else 1) + right.bit_length()
            if bits > _MAX_BITS:
                raise ValueError("a number would be too large")
        elif operator == "*" and (isinstance(left, int) or isinstance(right, int)):
            times, repeated = (left, right) if isinstance(left, int) else (right, left)
            _fit(times * _size(repeated))
        elif operator == "%" and isinstance(left, str):
            if len(left) > 10_000 or re.search(r"\*|\d{5}", left):
                raise ValueError("a format is too long or too wide")
            _sized(right)
        return super().call_binop(context, operator, left, right)

    def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        _sized((args, kwargs))
        text, name = getattr(__obj, "__self__", None), getattr(__obj, "__name__", "")
        if isinstance(text, str) and name in ("replace", "join"):
            given = {
                key: value for key, value in kwargs.items() if not key.startswith("_")
            }  # jinja2 adds some
            return (
                _replaced(text, *args, **given) if name == "replace" else _joined_with(text, *args, **given)
            )
        return super().call(__context, __obj, *args, **kwargs)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        refused = isinstance(obj, str | int) and attr in _REFUSED_METHODS
        return not refused and super().is_safe_attribute(obj, attr, value)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        if super().wrap_str_format(value) is None:
            return None
        text, formatter = value.__self__, _Formatter(self)
        if value.__name__ == "format_map":
            return lambda fields: formatter.vformat(text, (), fields)
        return lambda *args, **kwargs: formatter.vformat(text, args, kwargs)

    @staticmethod
    def concat(pieces: Iterable[str]) -> str:
        return _concatenated(pieces)

    class code_generator_class(CodeGenerator):  # the name that jinja2 looks for
        def _output_child_to_const(self, node: nodes.Expr, frame: Frame, finalize: Any) -> str:
            if not isinstance(node, nodes.TemplateData):
                raise nodes.Impossible  # as `optimized`
            return str(super()._output_child_to_const(node, frame, finalize))

        def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:
            self.write("environment.concat(map(str, map(environment.finalize, (")
            for part in node.nodes:
                self.visit(part, frame)
                self.write(", ")
            self.write("))))")


class _Formatter(SandboxedFormatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        if re.search(r"\d{5}", format_spec):
            raise ValueError("a field is too wide")
        return str(super().format_field(value, format_spec))


class _Generation(Extension):
    """The {% generation %} of templates made for training: what stands in it is written as it is."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Stop(BaseException):
    """Not an Exception: jinja2 swallows those here and there."""


class _Watch:
    """A trace function: nothing else sees a loop that writes nothing, which jinja2 makes plain Python."""

    def __init__(self) -> None:
        self.on = True  # frames that outlive the watch still hold this function
        self._until = monotonic() + MAX_SECONDS
        self._most_bytes = tracemalloc.get_traced_memory()[0] + MAX_BYTES

    def __call__(self, frame: FrameType, event: str, value: Any) -> Any:
        if not self.on:
            return None
        if monotonic() > self._until:
            self.on = False
            raise _Stop(f"the chat template takes more than {MAX_SECONDS:g} seconds")
        if tracemalloc.get_traced_memory()[0] > self._most_bytes:
            self.on = False
            raise _Stop("the chat template takes too much memory")
        # Calls are seen everywhere, but lines only of the template: looking at all takes three times as long.
        return self if frame.f_code.co_filename == "<template>" else None


def _watched(work: Callable[[], T]) -> T:
    """Do work within the limits on time and memory. Raises TemplateError."""
    before, measured = sys.gettrace(), tracemalloc.is_tracing()
    if not measured:
        tracemalloc.start()
    watch = _Watch()
    try:
        sys.settrace(watch)
        try:
            return work()
        finally:
            sys.settrace(before)
            watch.on = False
            if not measured:
                tracemalloc.stop()
    except _Stop as stop:
        raise TemplateError(str(stop)) from None
    except (RecursionError, MemoryError) as error:
        raise TemplateError("the chat template does not come to an end") from error


def _limited(pieces: Iterable[str]) -> list[str]:
    kept, length = list[str](), 0
    for piece in pieces:
        length += len(piece)
        _fit(length)
        kept.append(piece)
    return kept


def _fit(characters: int) -> None:
    if characters > MAX_CHARACTERS:
        raise ValueError(f"it writes more than {MAX_CHARACTERS:,} characters")


def _size(value: Any) -> int:
    """Characters and items, each as often as it is reached: a list of twice one list of twice one list..."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Namespace):
        value = value._Namespace__attrs
    if isinstance(value, dict):
        value = (*value.keys(), *value.values())
    if value is None or isinstance(value, int) or not isinstance(value, _CONTAINERS):
        return 1
    size = 1
    for item in value:
        size += len(item) if isinstance(item, str) else _size(item)
    return size


def _sized(value: T) -> T:
    """The same value. Raises ValueError where turning it into text would be too much."""
    _fit(_size(value))
    return value


def _sizes_checked(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)  # also copies the marks that tell jinja2 what to pass first
    def checked(*args: Any, **kwargs: Any) -> Any:
        _sized((args, kwargs))
        return function(*args, **kwargs)

    return checked


def _concatenated(pieces: Iterable[str]) -> str:
    pieces = list(pieces)
    _fit(sum(map(len, pieces)))
    return "".join(pieces)


def _replaced(text: Any, old: Any, new: Any, count: int | None = None) -> str:
    text, old, new = str(text), str(old), str(new)
    _fit(len(text) + text.count(old) * len(new))
    return str(text.replace(old, new, -1 if count is None else count))


@jinja2.pass_environment
def _joined_by(
    environment: jinja2.Environment, values: Iterable[Any], separator: Any = "", attribute: Any = None
) -> str:
    if attribute is not None:
        values = map(make_attrgetter(environment, attribute), values)
    return _joined_with(str(separator), values)


def _joined_with(separator: str, values: Iterable[Any]) -> str:
    texts = [str(_sized(value)) for value in values]
    _fit(sum(map(len, texts)) + len(texts) * len(separator))
    return separator.join(texts)


def _indented(text: str, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    _fit(len(text) + (len(text.splitlines()) + 1) * (width if isinstance(width, int) else len(width)))
    return str(do_indent(text, width, first, blank))


def _refuse(message: str) -> None:
    raise ValueError(message)


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    if (indent or 0) > 100 or len("".join(separators or ())) > 100:
        raise ValueError("an indent is too wide")
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )
