"""The text inside of a block of Markdown: what its tokens show, with styles, and where that stands in the source."""

from __future__ import annotations

import re
from collections.abc import Sequence

from markdown_it.helpers import parseLinkDestination
from markdown_it.token import Token
from rich.text import Text

from specchat.console import printable
from specchat.tui.lines import NOWHERE

_BLANKS = re.compile(r"\s*")
_TITLE = re.compile(r"""\s*(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\((?:\\.|[^()\\])*\))?\s*\)""", re.S)


class Inline:
    """Puts the parts of a paragraph or a cell together."""

    def __init__(self, content: str, places: Sequence[int]) -> None:
        self.text = Text()
        self.places: list[int] = []
        self._content = content
        self._places = places  # of the content's characters
        self._at = 0  # in the content
        self._open: list[int] = []  # where styles began

    def take(self, token: Token) -> None:
        """Add what a token shows."""
        if token.type == "text":
            self._put(token.content, self._find(token.content))
        elif token.type == "text_special":  # an escape or an entity, as written in its markup
            self._find(token.markup)
            is_same = token.markup.endswith(token.content)
            self._put(token.content, self._at - len(token.content) if is_same else NOWHERE)
        elif token.type in ("softbreak", "hardbreak"):
            self._put("\n" if token.type == "hardbreak" else " ", self._find("\n"))
        elif token.type == "code_inline":
            self._code(token)
        elif token.nesting == 1:
            self._open.append(len(self.text))
        elif token.nesting == -1:
            self.text.stylize("markdown.link" if token.tag == "a" else f"markdown.{token.tag}", self._open.pop())
            if token.type == "link_close" and token.info != "auto":
                self._destination()

    def _code(self, token: Token) -> None:
        start = self._find(token.markup) + len(token.markup)
        written = self._content[start:].replace("\n", " ")
        start += 0 if written.startswith(token.content) else 1  # a blank on both sides is not shown
        self._put(token.content, start, "markdown.code")
        self._at = start + len(token.content)
        self._find(token.markup)

    def _destination(self) -> None:
        """Where a link goes, behind its text."""
        content, opening = self._content, self._content.find("](", self._at)
        blanks = _BLANKS.match(content, opening + 2)
        assert blanks is not None
        parsed = parseLinkDestination(content, blanks.end(), len(content))
        closing = _TITLE.match(content, parsed.pos if parsed.ok else blanks.end())
        if opening < 0 or closing is None:
            return
        self._put(" ", NOWHERE)
        self._put("(", opening + 1)
        self._put(content[opening + 2 : closing.end() - 1], opening + 2, "markdown.link_url")
        self._put(")", closing.end() - 1)
        self._at = closing.end()

    def _find(self, written: str) -> int:
        found = self._content.find(written, self._at)
        if found >= 0:
            self._at = found + len(written)
        return found

    def _put(self, shown: str, at: int, style: str = "") -> None:
        """Characters that stand in the content from `at` on; NOWHERE: they do not."""
        known = [NOWHERE] * len(shown) if at < 0 else list(self._places[at : at + len(shown)])
        self.places += known + [NOWHERE] * (len(shown) - len(known))
        clean = printable(shown).replace("\t", " ")  # an entity may stand for anything
        self.text.append(clean if shown == "\n" else clean.replace("\n", " "), style)
