"""The process that renders a chat template for template.py, which starts it by this file's path and kills it.

It reads and writes one JSON object a line: first what to compile, then what to render. It imports nothing of
specchat, which may not be on its path.
"""

from __future__ import annotations

import faulthandler
import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from jinja2 import TemplateSyntaxError, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment


class _Generation(Extension):
    """The {% generation %} of templates made for training: what stands in it is written as it is."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Renderer:
    """One compiled template."""

    def __init__(self, setup: Mapping[str, Any]) -> None:
        self._characters = setup["characters"]
        self._special = {"bos_token": setup["bos"], "eos_token": setup["eos"]}
        _limit_memory(setup["memory_bytes"])
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", _Generation]
        )
        environment.filters["tojson"] = _tojson  # jinja2's own escapes for HTML
        environment.globals["raise_exception"] = _refuse
        self._template = environment.from_string(setup["source"])

    def render(self, request: Mapping[str, Any]) -> str:
        values = {"messages": request["messages"], "add_generation_prompt": True, **self._special}
        values["strftime_now"] = lambda pattern: datetime.fromisoformat(request["time"]).strftime(pattern)
        pieces, length = list[str](), 0
        for piece in self._template.generate(values):
            length += len(piece)
            if length > self._characters:
                raise ValueError(f"it writes more than {self._characters:,} characters")
            pieces.append(piece)
        return "".join(pieces)


def main() -> None:
    _write()  # everything is imported: from here on time counts
    renderer: _Renderer | None = None
    for line in sys.stdin.buffer:
        request = json.loads(line)
        # The parent ends what takes too long, if it still lives by then. This does not wait for the GIL.
        faulthandler.dump_traceback_later(request["seconds"] + 1, exit=True)
        try:
            text = renderer.render(request) if renderer else ""
            renderer = renderer or _Renderer(request)
            _write(text=text)
        except TemplateSyntaxError as error:
            _write(error=f"the model's chat template does not parse: line {error.lineno}: {error.message}")
        except RecursionError:
            _write(error="the chat template does not come to an end")
        except MemoryError:
            _write(error="the chat template takes too much memory")
        except Exception as error:  # it is somebody else's program: anything may go wrong in it
            what = "chat template refuses these messages" if renderer else "model's chat template does not parse"
            _write(error=f"the {what}: {str(error)[:1000]}")
        faulthandler.cancel_dump_traceback_later()


def _limit_memory(more: int) -> None:
    """Let this process have so many bytes more. Only on Linux: macOS does not hold to such a limit."""
    if sys.platform == "linux":
        import resource

        with suppress(OSError, ValueError):  # no /proc here, or a lower limit is set already
            with open("/proc/self/statm") as file:
                most = int(file.read().split()[0]) * resource.getpagesize() + more
            resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _write(**answer: str) -> None:
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
    sys.stdout.buffer.flush()


def _refuse(message: str) -> None:
    raise ValueError(message)


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


if __name__ == "__main__":
    main()
