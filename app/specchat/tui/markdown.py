"""Markdown -> styled segments, drawn by rich, in which every character of the source knows its place.

rich lays out blocks; the text inside of them is put together here, as runs: a paragraph, a cell of a table, a block of
code. What rich draws of a run carries its number as the link of its style, which nothing else uses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar

from markdown_it import MarkdownIt
from markdown_it.rules_block.table import escapedSplit
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import (
    CodeBlock,
    Heading,
    HorizontalRule,
    Markdown,
    MarkdownContext,
    Paragraph,
    TableDataElement,
    TableElement,
)
from rich.rule import Rule
from rich.segment import Segment
from rich.style import Style
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text, TextType

from specchat.tui.inline import Inline
from specchat.tui.lines import NOWHERE, Line

_NARROWEST = 6  # columns that nested lists and quotes must leave for text


class Parser(MarkdownIt):
    """CommonMark with tables and struck out text, in which nothing is hidden: HTML, images, definitions stay text."""

    def __init__(self) -> None:
        super().__init__("commonmark")
        self.enable(["table", "strikethrough"])
        self.disable(["html_block", "html_inline", "image", "reference"])
        self.core.ruler.disable("text_join")  # what an escape or an entity stood for is told apart from plain text
        self.core.ruler.after("block", "whole_rows", _keep_surplus_cells)

    def normalizeLink(self, url: str) -> str:
        """As it was written."""
        return url

    def normalizeLinkText(self, link: str) -> str:
        """As it was written."""
        return link

    def top_level(self, text: str) -> list[Token]:
        """The blocks of a text, one token each; what is inside of them is not looked at."""
        tokens: list[Token] = []
        self.block.parse(text, self, {}, tokens)
        return [token for token in tokens if token.level == 0 and token.map is not None and token.nesting >= 0]


def code_blocks(text: str) -> list[tuple[str, str]]:
    """Language and exact text of each block of code, also in lists and quotes."""
    blocks = [token for token in Parser().parse(text) if token.type in ("fence", "code_block")]
    return [(token.info.strip().partition(" ")[0], token.content) for token in blocks]


def draw(parser: Parser, console: Console, text: str, code_theme: str) -> list[Line] | None:
    """The lines of a block of Markdown; None where there is no room for it or something would be missing."""
    tokens = parser.parse(text)
    if _indent(tokens) > console.width - _NARROWEST or any(t.level >= parser.options.maxNesting - 1 for t in tokens):
        return None
    markdown = _Markdown(text, tokens, code_theme)
    drawn = console.render_lines(markdown, console.options, pad=False)
    lines = [_placed(line, markdown.runs) for line in drawn]
    return lines if all(run.is_drawn for run in markdown.runs) else None


class _Run:
    """Text that is drawn in its own order, whatever stands beside it."""

    def __init__(self, text: str, places: Sequence[int]) -> None:
        self.text = text
        self.places = places
        self._at = 0

    @property
    def is_drawn(self) -> bool:
        return not self.text[self._at :].strip()

    def begin_line(self) -> None:
        while self.text.startswith("\n", self._at):
            self._at += 1

    def take(self, shown: str) -> Sequence[int]:
        """Where the next characters to be drawn stand in the source."""
        if self.text.startswith(shown, at := self._at):
            self._at += len(shown)
            return self.places[at : self._at]
        return [self._take(character) for character in shown]

    def _take(self, character: str) -> int:
        at = self._at
        if not character.isspace():
            while (
                at < len(self.text) and self.text[at].isspace()
            ):  # lines are broken at blanks, which then are left out
                at += 1
            if at >= len(self.text) or self.text[at] != character:
                return NOWHERE
        elif at >= len(self.text) or not self.text[at].isspace() or self.text[at] == "\n":
            return NOWHERE
        self._at = at + 1
        return self.places[at]


def _placed(line: Iterable[Segment], runs: Sequence[_Run]) -> Line:
    segments, places, begun = [], list[int](), set[str]()
    for segment in line:
        if segment.control or not segment.text:
            continue
        style, text = segment.style, segment.text
        link = None if style is None else style.link
        if style is None or link is None:
            segments.append(segment)
            places += [NOWHERE] * len(text)
            continue
        run = runs[int(link)]
        if link not in begun:
            begun.add(link)
            run.begin_line()
        segments.append(Segment(text, _unlinked(style)))
        places += run.take(text)
    return Line(tuple(segments), tuple(places))


@lru_cache(maxsize=1024)
def _unlinked(style: Style) -> Style:
    return style.update_link(None)


class _Drawn(str):
    """The text of a token with its styles."""

    drawn: Text

    def __new__(cls, drawn: Text) -> _Drawn:
        made = super().__new__(cls, drawn.plain)
        made.drawn = drawn
        return made


def _append(element: Text, context: MarkdownContext, text: TextType) -> None:
    if isinstance(text, _Drawn):
        drawn = text.drawn
        drawn.stylize_before(context.current_style)
        element.append_text(drawn)


class _Paragraph(Paragraph):
    def on_text(self, context: MarkdownContext, text: TextType) -> None:
        _append(self.text, context, text)


class _Heading(Heading):
    """A heading that begins where the text begins."""

    def on_text(self, context: MarkdownContext, text: TextType) -> None:
        _append(self.text, context, text)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text.assemble(self.text, justify="left")


class _Cell(TableDataElement):
    def on_text(self, context: MarkdownContext, text: TextType) -> None:
        _append(self.content, context, text)


class _Table(TableElement):
    """A table that breaks long words: rich's own cuts them."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(box=box.SIMPLE, pad_edge=False, style="markdown.table.border", collapse_padding=True)
        for heading in self.header.row.cells if self.header and self.header.row else ():
            content = heading.content.copy()
            content.stylize("markdown.table.header")
            table.add_column(content, overflow="fold")
        for row in self.body.rows if self.body else ():
            table.add_row(*(cell.content for cell in row.cells))
        yield table


class _Rule(HorizontalRule):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Rule(style=console.get_style("markdown.hr"))


class _Code(CodeBlock):
    """A block of code without the margin that rich puts around it, so that its lines stay the source's."""

    run = 0

    @classmethod
    def create(cls, markdown: Markdown, token: Token) -> _Code:
        assert isinstance(markdown, _Markdown)
        made = cls(token.info.partition(" ")[0] or "text", markdown.code_theme)
        made.run = markdown.code_run(token)
        return made

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).removesuffix("\n")
        syntax = Syntax(code, self.lexer_name, theme=self.theme, word_wrap=True, background_color="default", padding=0)
        yield from Segment.apply_style(console.render(syntax, options), post_style=Style(link=str(self.run)))


class _Markdown(Markdown):
    elements: ClassVar = {
        **Markdown.elements,
        "paragraph_open": _Paragraph,
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
        "hr": _Rule,
        "table_open": _Table,
        "td_open": _Cell,
        "th_open": _Cell,
    }

    def __init__(self, text: str, tokens: list[Token], code_theme: str) -> None:
        # Not rich's own, which builds a parser for each text: more work than drawing a paragraph.
        self.markup, self.parsed = text, tokens
        self.code_theme = self.inline_code_theme = code_theme
        self.justify, self.style, self.hyperlinks, self.inline_code_lexer = None, "none", False, None
        self.runs: list[_Run] = []
        self._starts = [0, *(found.end() for found in re.finditer("\n", text)), len(text) + 1]
        self._at = 0  # in the source, behind the last run

    def code_run(self, token: Token) -> int:
        """The number of the run that a block of code is."""
        assert token.map is not None
        content = token.content.removesuffix("\n")
        places: list[int] = []
        for number, line in enumerate(content.split("\n"), token.map[0] + (token.type == "fence")):
            start, end = self._line(number)
            indent = 0 if self.markup.endswith(line, start, end) else len(line) - len(line.lstrip())
            is_there = self.markup.endswith(line[indent:], start, end)
            known = end - len(line) + indent if is_there else NOWHERE
            places += [NOWHERE] * indent  # of a tab of which a list has taken a part
            places += range(known, end + 1) if is_there else [NOWHERE] * (len(line) - indent + 1)
        self.runs.append(_Run(content, places))
        return len(self.runs) - 1

    def _flatten_tokens(self, tokens: Iterable[Token]) -> Iterable[Token]:
        before = ""
        for token in tokens:
            if token.type == "inline":
                inline = Inline(token.content, self._content_places(token, in_cell=before in ("td_open", "th_open")))
                for child in token.children or ():
                    inline.take(child)
                inline.text.stylize(Style(link=str(len(self.runs))))
                self.runs.append(_Run(inline.text.plain, inline.places))
                yield Token("text", "", 0, content=_Drawn(inline.text))
            else:
                yield token
            before = token.type

    def _content_places(self, token: Token, *, in_cell: bool) -> list[int]:
        """For each character of a token's text, which may be of several lines, its place."""
        places: list[int] = []
        assert token.map is not None
        for number, line in enumerate(token.content.split("\n"), token.map[0]):
            start, end = self._line(number)
            find = self.markup.find if in_cell else self.markup.rfind  # in a cell the first, else what ends the line
            found = find(line, max(start, self._at), end)
            if found >= 0:
                where = list(range(found, found + len(line)))
            else:  # an escaped bar in a cell
                where = _letters(line, self.markup, max(start, self._at), end)
            self._at = max([self._at, *(place + 1 for place in where)])
            places += [*where, end]
        return places[:-1]

    def _line(self, number: int) -> tuple[int, int]:
        """Start and end of a line of the source, without what ends it."""
        number = min(number, len(self._starts) - 2)
        return self._starts[number], self._starts[number + 1] - 1


def _keep_surplus_cells(state: StateCore) -> None:
    """Cells that a row has more than the table's head stay, in its last cell."""
    lines, cells = state.src.split("\n"), list[Token]()
    for before, token in pairwise(state.tokens):
        if token.type == "tr_open":
            cells = []
        elif before.type == "td_open":
            cells.append(token)
        elif token.type == "tr_close" and cells and cells[-1].map is not None:
            columns = escapedSplit(re.sub(r"^[\s>]+", "", lines[cells[-1].map[0]]).rstrip())
            columns = columns[1 if columns[0] == "" else 0 : -1 if columns[-1] == "" else None]
            if len(columns) > len(cells):
                cells[-1].content = "|".join(columns[len(cells) - 1 :]).strip()


def _indent(tokens: Iterable[Token]) -> int:
    """Columns that the deepest list or quote has in front of its text."""
    open_, deepest = list[int](), 0
    for token in tokens:
        if token.type in ("blockquote_open", "bullet_list_open", "ordered_list_open"):
            number = len(str(token.attrs.get("start", 1))) + 4 if token.type == "ordered_list_open" else 4
            open_.append(number)
            deepest = max(deepest, sum(open_))
        elif token.type in ("blockquote_close", "bullet_list_close", "ordered_list_close"):
            open_.pop()
    return deepest


def _letters(wanted: str, text: str, start: int, end: int) -> list[int]:
    places = []
    for letter in wanted:
        found = text.find(letter, start, end)
        places.append(found if found >= 0 else NOWHERE)
        start = max(start, found + 1)
    return places
