"""Markdown and hostile text on the screen: nothing is lost, nothing steers, and every character knows its place."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from specchat.console import printable
from specchat.tui.lines import NOWHERE, Line, cell_to_character, character_to_cell, raw_lines
from specchat.tui.rendering import Body, Colours, rendered_lines

COLOURS = Colours("blue", "bright_black", "green", "cyan", "monokai", "#222222")

# Markup, its beginnings and ends, wide and zero-width characters, what steers terminals, what cuts lines.
PARTS = (
    *"*_`~#>-+|[]()<>!\\&;:=.\"'$ \n\t",
    "**", "```", "~~~~", "\n\n", "\n    ", "  \n", "- ", "1. ", "10) ", "> ", "# ", "---", "===",
    "| a | b |\n|---|:-:|\n",
    "[x](http://y.z \"t\")", "![i](j.png)", "<http://a.b>", "<b>", "</div>", "<!-- c -->", "[r]: http://q\n", "[r]",
    "&amp;", "&copy;", "&#x202e;", "&#27;", "&#12;", "&#10;", "\\*", "\\\n", "[/]", "[bold]", "[@click=app.quit]x[/]",
    "\x1b[31m", "\x1b]8;;http://e\x1b\\", "\x1b]52;c;AAAA\x07", "\x9b", "\x00", "\r", "\x7f", "\u202e", "\u2066",
    "\u2028", "\ud800", "日本", "e\u0301", "\u200b", "\ufe0f", "👩‍👩‍👧", "한", "\u0301", "ﷺ", "a", "word", "x1", "café",
)  # fmt: skip
PART = st.sampled_from(PARTS) | st.text(max_size=4)
HOSTILE = (st.lists(PART, max_size=40) | st.lists(PART, min_size=20, max_size=60)).map("".join).map(printable)
WIDTHS = st.integers(1, 200)

WORD = st.text("abcdefghijkmnoprstuvwxyzäß日", min_size=1, max_size=9)
TEXT = st.lists(WORD, min_size=1, max_size=12).map(" ".join)


def styled(word: str) -> st.SearchStrategy[str]:
    forms = (
        "{}",
        "**{}**",
        "*{}*",
        "`{}`",
        "~~{}~~",
        "[{}](http://e.x)",
        "<{}>",
        "_**{}**_",
        "{}\\*",
        "&lt;{}",
        "\\[{}",
    )
    return st.sampled_from(forms).map(lambda form: form.format(word))


INLINE = st.lists(WORD.flatmap(styled), min_size=1, max_size=12).map(" ".join)
CODE = st.lists(st.sampled_from(["", "  ", "    "]).flatmap(lambda indent: TEXT.map(indent.__add__)), max_size=8)


@st.composite
def tables(draw: st.DrawFn) -> str:
    columns = draw(st.integers(1, 5))
    rows = draw(st.lists(st.lists(INLINE, min_size=columns, max_size=columns + 1), min_size=1, max_size=5))
    lines = ["| " + " | ".join(row) + " |" for row in [rows[0][:columns], *rows[1:]]]
    return "\n".join([lines[0], "|" + "---|" * columns, *lines[1:]])


def nested(block: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    def in_list(item: tuple[str, str]) -> str:
        mark, text = item
        return mark + text.replace("\n", "\n" + " " * len(mark))

    items = st.lists(
        st.tuples(st.sampled_from(["- ", "* ", "1. ", "12. "]), block).map(in_list), min_size=1, max_size=3
    )
    return items.map("\n".join) | block.map(lambda text: "> " + text.replace("\n", "\n> "))


LEAF = st.one_of(
    INLINE,
    st.lists(INLINE, min_size=2, max_size=3).map("\n".join),
    st.tuples(st.sampled_from(["# ", "## ", "### "]), INLINE).map("".join),
    CODE.map(lambda lines: "\n".join(["```python", *lines, "```"])),
    CODE.map(lambda lines: "\n".join(["~~~~", *lines, "```", *lines, "~~~~"])),
    tables(),
    st.just("---"),
    TEXT.map(lambda text: f"<div>{text}</div>"),
    TEXT.map(lambda text: f"[{text}]: http://e.x"),
)
MARKDOWN = st.lists(st.recursive(LEAF, nested, max_leaves=4), max_size=6).map("\n\n".join)


def shown(lines: Sequence[Line]) -> str:
    return "\n".join(line.text for line in lines)


def checked(source: str, lines: Sequence[Line], width: int) -> None:
    """What holds for any text: sound places, no steering, nothing beside the screen."""
    for line in lines:
        assert len(line.places) == len(line.text)
        for character, place in zip(line.text, line.places, strict=True):
            assert place == NOWHERE or 0 <= place < len(source)
            if place != NOWHERE and not character.isspace():
                assert source[place] == character
        for segment in line.segments:
            assert segment.control is None
            assert segment.style is None or segment.style.link is None
        assert printable(line.text) == line.text
        assert not [c for c in line.text if unicodedata.category(c) == "Cc"]
        assert cell_len(line.text.rstrip()) <= max(8, width)


def missing(source: str, lines: Sequence[Line]) -> str:
    """The letters of a source that no line shows; languages of code are not shown, numbers of lists not by place."""
    seen = {place for line in lines for place in line.places}
    hidden = {i for found in re.finditer(r"^[ >\d.*-]*```python", source, re.M) for i in range(*found.span())}
    entities = {i for found in re.finditer(r"&\w+;", source) for i in range(*found.span())}
    return "".join(c for i, c in enumerate(source) if c.isalpha() and i not in seen | hidden | entities)


@given(HOSTILE, WIDTHS)
def test_whatever_a_model_writes_is_drawn_without_steering_and_in_its_place(source: str, width: int) -> None:
    checked(source, rendered_lines(source, width, COLOURS), width)
    checked(source, raw_lines(source, width), width)


@given(MARKDOWN, WIDTHS)
def test_no_letter_of_a_document_is_missing_from_the_screen(source: str, width: int) -> None:
    lines = rendered_lines(source, width, COLOURS)

    checked(source, lines, width)
    assert missing(source, lines) == ""


@given(MARKDOWN | HOSTILE, st.integers(8, 120), st.data())
def test_a_text_that_grew_in_pieces_is_drawn_as_if_it_had_come_whole(
    source: str, width: int, data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(source)), max_size=12)))
    body = Body(COLOURS)
    for cut in cuts:
        growing = body.lines(source[:cut], width, growing=True)
        checked(source[:cut], growing, width)

    assert body.lines(source, width, growing=False) == rendered_lines(source, width, COLOURS)


@given(MARKDOWN, st.integers(8, 120), st.data())
def test_no_letter_is_missing_while_a_document_grows(source: str, width: int, data: st.DataObject) -> None:
    body = Body(COLOURS)
    for cut in sorted(data.draw(st.lists(st.integers(0, len(source)), max_size=8))):
        part = source[:cut]
        last = part.rfind("\n") + 1
        if re.match(r"[ >\d.*-]*(`|~)*p?y?t?h?o?n?$", part[last:]):  # the language of a block of code
            continue
        assert missing(re.sub(r"&\w*$", "", part), body.lines(part, width, growing=True)) == ""


@given(HOSTILE, WIDTHS)
def test_raw_lines_put_together_are_the_source(source: str, width: int) -> None:
    lines = raw_lines(source, width)

    assert [place for line in lines for place in line.places] == [i for i, c in enumerate(source) if c != "\n"]
    assert "".join(line.text for line in lines) == source.replace("\n", "").replace("\t", " ")


@given(st.text("ab日\u0301\u200d👩\ufe0f", max_size=30), st.integers(0, 70))
def test_a_column_leads_to_the_character_that_covers_it(text: str, cell: int) -> None:
    index = cell_to_character(text, cell)

    assert character_to_cell(text, index) <= cell or index == 0
    assert index == len(text) or cell < character_to_cell(text, index + 1)
