"""Text of messages -> lines of styled segments in which every character knows its place in the source.

No widgets here: a width and colours go in, lines come out. The places are what gutter, tint, selection and the jump to
a copied text work on, in the rendered view as in the raw one.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, HorizontalRule, Markdown
from rich.rule import Rule
from rich.segment import Segment
from rich.style import Style
from rich.syntax import Syntax
from rich.text import Text
from rich.theme import Theme
from textual.app import App
from textual.color import Color

NOWHERE = -1  # the place of characters that the source does not have: bullets, borders, padding
_SEEK = 400  # characters that markup may put between two visible words
_CHUNK_LINES = 40  # of code; longer blocks are drawn in pieces while they grow, or each token would colour them anew


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


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the screen."""

    segments: tuple[Segment, ...]
    places: tuple[int, ...]  # for each character, its index in the source or NOWHERE
    kind: str = ""  # "code" inside a block of code

    @property
    def text(self) -> str:
        return "".join(segment.text for segment in self.segments)


class _Code(CodeBlock):
    """A block of code without the margin that rich puts around it, so that its lines stay the source's."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip("\n")
        yield Syntax(code, self.lexer_name, theme=self.theme, word_wrap=True, background_color="default", padding=0)


class _Heading(Heading):
    """A heading that begins where the text begins."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text.assemble(self.text, justify="left")


class _Rule(HorizontalRule):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Rule(style=console.get_style("markdown.hr"))


class _Markdown(Markdown):
    elements: ClassVar = {
        **Markdown.elements,
        "fence": _Code,
        "code_block": _Code,
        "heading_open": _Heading,
        "hr": _Rule,
    }

    def __init__(self, parser: MarkdownIt, markup: str, code_theme: str) -> None:
        # Not rich's own, which builds a parser for each text: more work than drawing a paragraph.
        self.markup = markup
        self.parsed = parser.parse(markup)
        self.code_theme = self.inline_code_theme = code_theme
        self.justify, self.style, self.hyperlinks, self.inline_code_lexer = None, "none", False, None


def rendered_lines(source: str, width: int, colours: Colours) -> list[Line]:
    """Markdown as it is read, blank lines between blocks included."""
    return Body(colours).lines(source, width, growing=False)


def raw_lines(source: str, width: int) -> list[Line]:
    """The source as it stands; long lines are broken behind a blank, or anywhere where a word is too long."""
    lines = []
    start = 0
    for text in source.split("\n"):
        shown = text.replace("\t", " ")  # one character, and so one place
        for piece in _broken(shown, max(1, width)):
            lines.append(Line((Segment(piece),), tuple(range(start, start + len(piece)))))
            start += len(piece)
        start += 1
    return lines


def _broken(text: str, width: int) -> list[str]:
    pieces, at = [], 0
    while cell_len(ahead := text[at : at + width + 1]) > width:
        fits = len(chop_cells(ahead, width)[0]) or 1
        blank = ahead.rfind(" ", 0, fits + 1)
        cut = blank + 1 if blank > 0 else fits
        pieces.append(ahead[:cut])
        at += cut
    return [*pieces, text[at:]]


@dataclass(frozen=True, slots=True)
class _Block:
    """A top-level block of Markdown, or a piece of a long block of code."""

    start: int  # in the source
    end: int
    opening: str = ""  # put in front for rendering: the fence of a piece of code
    closing: str = ""


@dataclass
class Body:
    """The rendered lines of a text that may still grow; blocks that are complete are rendered once."""

    colours: Colours
    _width: int = 0
    _settled: list[_Block] = field(default_factory=list)
    _lines: list[Line] = field(default_factory=list)  # of the settled blocks
    _at: int = 0  # in the source, where the unsettled part begins
    _fence: str = ""  # the opening line of a block of code of which pieces are settled
    _console: Console | None = None
    _parser: MarkdownIt = field(default_factory=lambda: MarkdownIt().enable("strikethrough").enable("table"))

    def lines(self, source: str, width: int, *, growing: bool) -> list[Line]:
        """All lines. `source` must begin with what was given before, unless `reset` was called."""
        width = max(8, width)
        if width != self._width or (not growing and any(block.closing for block in self._settled)):
            self.reset()
            self._width = width
        blocks = _blocks(self._parser, source, self._at, self._fence)
        while blocks and growing and (pieces := _piece(source, blocks[-1])) is not None:
            blocks[-1:] = pieces
        if growing and len(blocks) > 1:
            for block in blocks[:-1]:
                self._settle(source, block)
            del blocks[:-1]
            self._at, self._fence = blocks[0].start, blocks[0].opening
        tail = list(self._lines)
        for block in blocks:
            drawn = self._heavy(source, block) if growing else None
            tail += self._separated(tail, block, drawn or self._block_lines(source, block))
        return tail

    def _heavy(self, source: str, block: _Block) -> list[Line] | None:
        """A long table or list as its source, until it is complete: each new row would lay out all of it anew."""
        text = source[block.start : block.end]
        if _is_code(block.opening + text) or text.count("\n") <= _CHUNK_LINES:
            return None
        return [
            Line(line.segments, tuple(place + block.start for place in line.places))
            for line in raw_lines(text.rstrip("\n"), self._width)
        ]

    def reset(self) -> None:
        """Forget everything that was rendered."""
        self._settled, self._lines, self._at, self._fence = [], [], 0, ""
        self._console = None

    def _settle(self, source: str, block: _Block) -> None:
        self._lines += self._separated(self._lines, block, self._block_lines(source, block))
        self._settled.append(block)

    def _separated(self, before: Sequence[Line], block: _Block, lines: list[Line]) -> list[Line]:
        blank = bool(before) and bool(lines) and not block.opening
        return [Line((), ()), *lines] if blank else lines

    def _block_lines(self, source: str, block: _Block) -> list[Line]:
        text = block.opening + source[block.start : block.end] + block.closing
        console = self._console = self._console or _console(self._width, self.colours)
        markdown = _Markdown(self._parser, text, self.colours.code_theme)
        drawn = console.render_lines(markdown, console.options.update(width=self._width), pad=False)
        while drawn and not "".join(segment.text for segment in drawn[-1]).strip() and not _is_code(text):
            drawn.pop()
        while drawn and not "".join(segment.text for segment in drawn[0]).strip() and not _is_code(text):
            drawn.pop(0)
        places = _aligned([_text(line) for line in drawn], text)
        shift = block.start - len(block.opening)
        end, kind = block.end, "code" if _is_code(text) else ""
        return [
            Line(tuple(_plain(line)), tuple(p + shift if block.start <= p + shift < end else NOWHERE for p in at), kind)
            for line, at in zip(drawn, places, strict=True)
        ]


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


def _blocks(parser: MarkdownIt, source: str, start: int, fence: str) -> list[_Block]:
    """The top-level blocks from `start` on. `fence`: the part begins inside a block of code opened by this line."""
    text = fence + source[start:]
    line_starts = [0, *(match.end() for match in re.finditer("\n", text)), len(text)]
    found, tokens = [], list[Token]()
    parser.block.parse(text, parser, {}, tokens)  # what is inside of the blocks does not matter here
    for token in tokens:
        if token.level == 0 and token.map is not None and token.nesting >= 0:
            first, last = token.map
            begin, end = line_starts[first], line_starts[min(last, len(line_starts) - 1)]
            found.append((begin, end))
    shift = start - len(fence)
    blocks = []
    for i, (begin, end) in enumerate(found):
        opening = fence if fence and i == 0 else ""
        blocks.append(_Block(max(begin + shift, start), end + shift, opening))
    return blocks


def _piece(source: str, block: _Block) -> list[_Block] | None:
    """A long, growing block of code as a piece that is complete and the rest; None for anything else."""
    text = source[block.start : block.end]
    opening = block.opening
    body = text
    if not opening:
        match = re.match(r" {0,3}(`{3,}|~{3,})[^\n]*\n", text)
        if match is None:
            return None
        opening, body = match[0], text[match.end() :]
    lines = body.split("\n")
    if len(lines) <= _CHUNK_LINES + 1:
        return None
    end = block.end - len(body) + len("\n".join(lines[:_CHUNK_LINES])) + 1
    closing = re.match(r" *[`~]+", opening)
    mark = closing[0].strip() if closing else "```"
    return [_Block(block.start, end, block.opening, mark), _Block(end, block.end, opening)]


def _is_code(text: str) -> bool:
    return re.match(r" {0,3}(`{3,}|~{3,})", text) is not None


def _text(line: Iterable[Segment]) -> str:
    return "".join(segment.text for segment in line if not segment.control)


def _plain(line: Iterable[Segment]) -> Iterator[Segment]:
    """Segments without control codes and links: nothing but characters and colours."""
    for segment in line:
        if not segment.control and segment.text:
            style = segment.style
            yield Segment(segment.text, None if style is None else style.update_link(None))


def _aligned(visible: Sequence[str], source: str) -> list[list[int]]:
    """For each visible character its index in the source: words in order, letter by letter where markup divides one."""
    at = 0
    aligned = []
    for line in visible:
        places = [NOWHERE] * len(line)
        for word in re.finditer(r"\S+", line):
            found = source.find(word[0], at, at + _SEEK + len(word[0]))
            if found >= 0:
                places[word.start() : word.end()] = range(found, found + len(word[0]))
                at = found + len(word[0])
                continue
            for i in range(word.start(), word.end()):
                one = source.find(line[i], at, at + 16)
                if one >= 0:
                    places[i] = one
                    at = one + 1
        _fill_spaces(line, places, source)
        aligned.append(places)
    return aligned


def _fill_spaces(line: str, places: list[int], source: str) -> None:
    """Blanks before and between words of the source belong to it too, or every word would be a selection of its own."""
    first = next((i for i, place in enumerate(places) if place != NOWHERE), 0)
    for i in range(first - 1, -1, -1):
        before = places[i + 1] - 1
        if before < 0 or not line[i].isspace() or source[before] not in " \t":
            break
        places[i] = before
    for i in range(1, len(line)):
        if line[i].isspace() and places[i] == NOWHERE and places[i - 1] != NOWHERE:
            after = places[i - 1] + 1
            if after < len(source) and source[after].isspace() and source[after] != "\n":
                places[i] = after


def cell_to_character(text: str, cell: int) -> int:
    """The index of the character that covers a column; len(text) behind the end."""
    at = 0
    for index, character in enumerate(text):
        at += cell_len(character)
        if cell < at:
            return index
    return len(text)


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
