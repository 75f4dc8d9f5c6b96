"""Text of messages -> lines of styled segments in which every character knows its place in the source.

No widgets here: a width and colours go in, lines come out. The places are what gutter, tint, selection and the jump to
a copied text work on, in the rendered view as in the raw one.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.style import Style
from rich.theme import Theme
from textual.app import App
from textual.color import Color

from specchat.tui.lines import Line, raw_lines
from specchat.tui.markdown import Parser, draw

_HEAVY_LINES = 20  # of a table or list; longer ones are drawn as their source while they grow
_CHUNK_LINES = 40  # of code; longer blocks are drawn in pieces while they grow, or each token would colour them anew
_SURE_LINES = 2  # whole lines from which on a block stays what it is: the second tells a table from a paragraph


@dataclass(frozen=True, slots=True)
class Colours:
    """What the screen's theme gives to text. Any colour name that rich knows."""

    accent: str
    muted: str
    draft: str  # tokens that a draft model proposed
    lookup: str  # tokens that were copied
    code_theme: str  # of pygments
    code_background: str | None  # None: the terminal's own

    def theme(self) -> Theme:
        """The styles of rich's Markdown in these colours."""
        accent, muted = Style.parse(self.accent), Style.parse(self.muted)
        bold = Style(bold=True)
        inline = Style.parse(self.accent) + Style(bgcolor=self.code_background)
        headings = {f"markdown.h{n}": accent + bold for n in range(1, 8)}
        headings |= {"markdown.h1": accent + bold + Style(underline=True), "markdown.h1.border": muted}
        return Theme(
            {
                **headings,
                "markdown.code": inline,
                "markdown.code_block": Style(),
                "markdown.item.bullet": accent,
                "markdown.item.number": accent,
                "markdown.block_quote": muted,
                "markdown.hr": muted,
                "markdown.link": accent,
                "markdown.link_url": muted,
                "markdown.table.border": muted,
                "markdown.table.header": bold,
            }
        )


def rendered_lines(source: str, width: int, colours: Colours) -> list[Line]:
    """Markdown as it is read, blank lines between blocks included. `source` must be printable."""
    return Body(colours).lines(source, width, growing=False)


@dataclass(frozen=True, slots=True)
class _Block:
    """A top-level block of Markdown, or a piece of a long block of code."""

    start: int  # in the source
    end: int
    kind: str = ""  # "code" or nothing
    opening: str = ""  # put in front for rendering: the fence of a piece of code
    closing: str = ""


@dataclass
class Body:
    """The rendered lines of a text that may still grow; blocks that are complete are rendered once."""

    colours: Colours
    _width: int = 0
    _lines: list[Line] = field(default_factory=list)  # of the settled blocks
    _has_pieces: bool = False  # among the settled blocks
    _at: int = 0  # in the source, where the unsettled part begins
    _fence: str = ""  # the opening line of a block of code of which pieces are settled
    _console: Console | None = None
    _parser: Parser = field(default_factory=Parser)

    def lines(self, source: str, width: int, *, growing: bool) -> list[Line]:
        """All lines. `source` must begin with what was given before, unless `reset` was called."""
        width = max(8, width)
        if width != self._width or (not growing and self._has_pieces):
            self.reset()
            self._width = width
        blocks = _blocks(self._parser, source, self._at, self._fence)
        if growing:
            blocks = self._settle(source, blocks)
        lines = list(self._lines)
        for block in blocks:
            drawn = self._heavy(source, block) if growing else None
            lines += _separated(lines, block, drawn or self._block_lines(source, block))
        return lines

    def reset(self) -> None:
        """Forget everything that was rendered."""
        self._lines, self._has_pieces, self._at, self._fence = [], False, 0, ""
        self._console = None

    def _settle(self, source: str, blocks: list[_Block]) -> list[_Block]:
        """Keep what more text cannot change; the other blocks.

        The beginning of a line can still become part of the block before it: "2" of a list when a "." follows.
        """
        sure = [i for i, block in enumerate(blocks) if source.count("\n", block.start) >= _SURE_LINES]
        done, rest = blocks[: sure[-1] if sure else 0], blocks[sure[-1] if sure else 0 :]
        while rest and (pieces := _pieces(source, rest[0])) is not None:
            done.append(pieces[0])
            rest[0] = pieces[1]
            self._has_pieces = True
        for block in done:
            self._lines += _separated(self._lines, block, self._block_lines(source, block))
        if done:
            self._at, self._fence = rest[0].start, rest[0].opening
        return rest

    def _heavy(self, source: str, block: _Block) -> list[Line] | None:
        """A long table or list as its source, until it is complete: each new row would lay out all of it anew."""
        if block.kind == "code" or source.count("\n", block.start, block.end) <= _HEAVY_LINES:
            return None
        return self._raw(source, block)

    def _raw(self, source: str, block: _Block) -> list[Line]:
        lines = raw_lines(source[block.start : block.end].rstrip("\n"), self._width)
        return [line.moved(block.start, block.kind) for line in lines]

    def _block_lines(self, source: str, block: _Block) -> list[Line]:
        text = block.opening + source[block.start : block.end] + block.closing
        console = self._console = self._console or _console(self._width, self.colours)
        drawn = draw(self._parser, console, text, self.colours.code_theme)
        if drawn is None:
            return self._raw(source, block)
        while drawn and block.kind != "code" and not drawn[-1].text.strip():
            drawn.pop()
        while drawn and block.kind != "code" and not drawn[0].text.strip():
            drawn.pop(0)
        return [line.moved(block.start - len(block.opening), block.kind) for line in drawn]


def _separated(before: Sequence[Line], block: _Block, lines: list[Line]) -> list[Line]:
    blank = bool(before) and bool(lines) and not block.opening
    return [Line((), ()), *lines] if blank else lines


def _console(width: int, colours: Colours) -> Console:
    return Console(
        width=width,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        theme=colours.theme(),
        legacy_windows=False,
        _environ={},
    )


def _blocks(parser: Parser, source: str, start: int, fence: str) -> list[_Block]:
    """The top-level blocks from `start` on. `fence`: the part begins inside a block of code opened by this line."""
    text = fence + source[start:]
    line_starts = [0, *(match.end() for match in re.finditer("\n", text)), len(text)]
    shift = start - len(fence)
    blocks = []
    for token in parser.top_level(text):
        first, last = token.map or (0, 0)
        begin, end = line_starts[first] + shift, line_starts[min(last, len(line_starts) - 1)] + shift
        kind = "code" if token.type in ("fence", "code_block") else ""
        blocks.append(_Block(max(begin, start), end, kind, fence if begin < start else ""))
    return blocks


def _pieces(source: str, block: _Block) -> tuple[_Block, _Block] | None:
    """A long, growing block of code as a piece that is complete and the rest; None for anything else."""
    body = source[block.start : block.end]
    opening = block.opening
    if not opening:
        match = re.match(r" {0,3}(`{3,}|~{3,})[^\n]*\n", body)
        if block.kind != "code" or match is None:
            return None
        opening, body = match[0], body[match.end() :]
    lines = body.split("\n")
    if len(lines) <= _CHUNK_LINES + 1:
        return None
    end = block.end - len(body) + len("\n".join(lines[:_CHUNK_LINES])) + 1
    mark = re.match(r"`+|~+", opening.lstrip(" "))
    closing = "```" if mark is None else mark[0]
    return _Block(block.start, end, "code", block.opening, closing), _Block(end, block.end, "code", opening)


def theme_colours(app: App[Any]) -> Colours:
    """The colours of the app's theme, as rich names them."""
    theme = app.current_theme
    if theme.ansi:
        code = "ansi_dark" if theme.dark else "ansi_light"
        return Colours("blue", "bright_black", "green", "cyan", code, None)
    variables = app.theme_variables
    foreground, background = Color.parse(variables["foreground"]), Color.parse(variables["background"])
    return Colours(
        accent=Color.parse(variables["primary"]).hex6
        if theme.dark is False
        else Color.parse(variables["text-primary"]).hex6,
        muted=background.blend(foreground, 0.6 if theme.dark else 0.7).hex6,
        draft=Color.parse(variables["text-success"]).hex6,
        lookup=Color.parse(variables["text-warning"]).hex6,
        code_theme="monokai" if theme.dark else "friendly",
        code_background=background.blend(foreground, 0.06).hex6,
    )
