"""One message on the screen: what a selection copies, who proposed what, where plain decoding would be, thoughts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

import pytest
from rich.segment import Segment
from rich.style import Style
from textual.app import App, ComposeResult
from textual.containers import VerticalScroll
from textual.geometry import Offset
from textual.pilot import Pilot
from textual.selection import Selection

from specchat.provenance import Author, Span
from specchat.tui.rendering import Colours
from specchat.tui.widgets.turn import GUTTER, TurnView, View

COLOURS = Colours("#4488ff", "#888888", "#00cc00", "#cccc00", "monokai", "#222222")
Steps = Callable[[Pilot[None], TurnView], Awaitable[None]]

ANSWER = """\
Say **bold words** and `code` here, 日本 too.

```python
def get(self, key):
    return  self.d[key]

x = 1
```

| name | what it does in the long run |
|---|---|
| first | it takes **all** that there is to take |
| second | no |

- one *item*
- [link](http://example.org) last
"""


class Host(App[None]):
    """Shows one message."""

    def __init__(self, view: TurnView) -> None:
        super().__init__()
        self.view = view

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield self.view


def on_screen(view: TurnView, steps: Steps, *, width: int = 60) -> None:
    async def go() -> None:
        async with Host(view).run_test(size=(width, 60)) as pilot:
            await pilot.pause()
            await steps(pilot, view)

    asyncio.run(go())


def message(source: str, spans: Iterable[Span] = (), view: View | None = None, who: str = "model") -> TurnView:
    made = TurnView(1, who, view or View(), COLOURS, when="12:04")
    made.source = source
    made.mark(spans)
    return made


def rows(view: TurnView) -> list[str]:
    """What the lines show, head and all, without the columns of the gutter."""
    return [view.render_line(y).text.rstrip()[GUTTER:] for y in range(view.size.height)]


def styled(view: TurnView, wanted: Callable[[Style], object]) -> str:
    """The characters of a style."""
    parts = []
    for y in range(1, view.size.height):
        parts += [s.text for s in view.render_line(y) if s.style is not None and wanted(s.style)]
    return "".join(parts)


def span(source: str, text: str, author: Author) -> Span:
    start = source.index(text)
    return Span(start, start + len(text), author, 0, None)


def find(view: TurnView, text: str) -> tuple[int, int]:
    """Line of the message, and character of that line, where a text is shown."""
    for y in range(1, view.size.height):
        shown = view.render_line(y).text
        if text in shown:
            return y, shown.index(text)
    raise AssertionError(f"{text!r} is not shown")


def selected(view: TurnView, first: str, last: str) -> str:
    """The source of what a selection from the beginning of one shown text to the end of another gives."""
    (y1, x1), (y2, x2) = find(view, first), find(view, last)
    found = view.get_selection(Selection.from_offsets(Offset(x1, y1), Offset(x2 + len(last), y2)))
    assert found is not None
    return found[0]


@pytest.mark.parametrize(
    ("first", "last", "source"),
    [
        ("bold", "bold", "bold"),
        ("Say", "words", "Say **bold words"),
        ("bold", "here", "bold words** and `code` here"),
        ("日", "too", "日本 too"),
        ("too", "too", "too"),
        ("def", "key]", "def get(self, key):\n    return  self.d[key]"),
        ("return", "x = 1", "return  self.d[key]\n\nx = 1"),
        ("takes", "to take", "takes **all** that there is to take"),
        ("second", "no", "second | no"),
        ("item", "link", "item*\n- [link"),
        ("link", "last", "link](http://example.org) last"),
    ],
)
def test_a_selection_gives_the_source_of_what_it_covers(first: str, last: str, source: str) -> None:
    async def steps(pilot: Pilot[None], view: TurnView) -> None:
        assert selected(view, first, last) == source

    on_screen(message(ANSWER), steps)


@pytest.mark.parametrize("rendered", [True, False])
def test_everything_selected_is_the_source_from_its_first_to_its_last_letter(rendered: bool) -> None:
    async def steps(pilot: Pilot[None], view: TurnView) -> None:
        assert view.get_selection(Selection(None, None)) == (ANSWER.rstrip("\n"), "\n")

    on_screen(message(ANSWER, view=View(rendered=rendered)), steps)


def test_a_selection_of_head_and_figures_is_none() -> None:
    async def steps(pilot: Pilot[None], view: TurnView) -> None:
        assert view.get_selection(Selection.from_offsets(Offset(0, 0), Offset(9, 0))) is None
        last = view.size.height - 1
        assert view.get_selection(Selection.from_offsets(Offset(0, last), Offset(20, last))) is None

    view = message("some text")
    view.took = [(0, "12 tok")]
    on_screen(view, steps)


def test_what_the_mouse_drags_over_is_shown_as_selected_and_copied_exactly() -> None:
    async def steps(pilot: Pilot[None], view: TurnView) -> None:
        await pilot.mouse_down(view, offset=(GUTTER + 3, 1))  # the right half of 本
        await pilot.hover(view, offset=(GUTTER + 9, 1))
        await pilot.mouse_up(view, offset=(GUTTER + 9, 1))
        copied = pilot.app.screen.get_selected_text()
        highlight = view.screen.get_component_rich_style("screen--selection")
        assert copied is not None
        assert copied in "日本 **bold** text"
        assert styled(view, lambda style: style.bgcolor == highlight.bgcolor) == copied.replace("*", "")

    on_screen(message("日本 **bold** text"), steps)


def test_a_long_line_of_code_is_copied_as_one_line_from_a_narrow_screen() -> None:
    line = "value = [" + ", ".join(f"name_{i}" for i in range(20)) + "]"
    source = f"Look:\n\n1. in a list\n   ````py\n   {line}\n   ```\n     tail\n   ````\n\n~~~\n{line}\n"

    async def steps(pilot: Pilot[None], view: TurnView) -> None:
        assert view.code_blocks() == [("py", f"{line}\n```\n  tail\n"), ("", f"{line}\n")]
        (top, _), (end, _) = find(view, "value = ["), find(view, "name_19")
        assert end > top
        assert selected(view, "value = [", "name_19]") == line

    on_screen(message(source), steps, width=80)


def test_a_block_that_is_still_being_written_can_be_copied() -> None:
    view = message("")
    view.begin()
    view.append("```js\nlet a = 1;\nlet ", ())

    async def steps(pilot: Pilot[None], view: TurnView) -> None:
        assert view.code_blocks() == [("js", "let a = 1;\nlet ")]

    on_screen(view, steps)


def test_every_shown_character_leads_to_its_place_and_every_place_to_its_line() -> None:
    async def steps(pilot: Pilot[None], view: TurnView) -> None:
        hits = 0
        for y in range(view.size.height):
            for x in range(view.size.width):
                place = view.place_at(x, y)
                if place is not None and not ANSWER[place].isspace():
                    hits += 1
                    assert view.render_line(y).crop(x, x + 1).text in (ANSWER[place], " ")  # half of a wide one is " "
                    assert view.line_of(place) == y
        assert hits > 160
        assert view.place_at(0, 1) is None
        assert view.place_at(GUTTER, 0) is None

    on_screen(message(ANSWER), steps, width=44)


# Who proposed what.


def test_the_gutter_says_how_much_of_a_line_was_guessed() -> None:
    source = "plain\n\nhalf guess\n\nall of it\n\nfew of a long line of text"
    spans = [
        span(source, "guess", Author.DRAFT),
        span(source, "all of it", Author.FILE),
        span(source, "few", Author.TURN),
        span(source, "plain", Author.MODEL),
    ]

    async def steps(pilot: Pilot[None], view: TurnView) -> None:
        gutter = {view.render_line(y).text[GUTTER:].split(" ")[0]: view.render_line(y).text[0] for y in range(1, 8)}
        assert gutter == {"plain": "·", "half": "▒", "all": "█", "few": "░", "": " "}
        view.show(View(tint="off"), COLOURS)
        await pilot.pause()
        assert {view.render_line(y).text[:GUTTER] for y in range(1, 8)} == {"  "}

    on_screen(message(source, spans), steps)


def test_tokens_of_each_kind_can_be_told_apart_without_colours() -> None:
    source = "model draft copy file **raw**"
    spans = [
        span(source, "draft", Author.DRAFT),
        span(source, "copy", Author.TURN),
        span(source, "file", Author.FILE),
    ]

    async def steps(pilot: Pilot[None], view: TurnView) -> None:
        assert styled(view, lambda s: s.underline and not s.italic) == "draft"
        assert styled(view, lambda s: s.italic and not s.underline) == "copy"
        assert styled(view, lambda s: s.italic and s.underline) == "file"
        assert "**raw**" in rows(view)[1]

    on_screen(message(source, spans, View(tint="token")), steps)


def test_a_highlighted_copy_is_reversed_and_nothing_else_is() -> None:
    async def steps(pilot: Pilot[None], view: TurnView) -> None:
        start = ANSWER.index("bold")
        view.highlighted = (start, start + len("bold words** and"))
        view.update_notes()
        await pilot.pause()
        assert styled(view, lambda style: style.reverse) == "bold words and"

    on_screen(message(ANSWER), steps)


def test_the_mark_of_plain_decoding_is_one_cell_that_moves_on() -> None:
    view = message("")
    view.begin()
    text = "one two three four five six seven"

    async def steps(pilot: Pilot[None], view: TurnView) -> None:
        for at in range(0, len(text), 4):
            view.append(text[at : at + 4], ())
            view.marker = at // 2
            view._took_s = 0.0  # this machine may be slow
            view.settle()
            await pilot.pause()
            assert styled(view, lambda style: style.reverse) == text[at // 2]
        view.replace("one **two**\n\nthree", ())
        view.marker = 4  # of markup, which is not shown
        view.update_notes()
        await pilot.pause()
        assert styled(view, lambda style: style.reverse) == "t"
        for marker, looks in ((len(view.source), View()), (4, View(plain_marker=False))):
            view.marker = marker
            view.show(looks, COLOURS)
            view.update_notes()
            await pilot.pause()
            assert styled(view, lambda style: style.reverse) == ""

    on_screen(view, steps)


# Thoughts.


def test_a_thought_is_folded_while_it_is_written_and_after_and_can_be_read() -> None:
    view = message("")
    view.begin()
    source = "<think>\nfirst this\n\n```py\nsecret = 1\n```\n</think>\n\nThe **answer**.\n"

    async def steps(pilot: Pilot[None], view: TurnView) -> None:
        for at in range(0, len(source), 7):
            view.append(source[at : at + 7], ())
            view._took_s = 0.0
            view.settle()
            await pilot.pause()
            shown = " ".join(rows(view))
            assert "first" not in shown
            assert ("answer" in shown) == ("answer" in view.source)
        assert rows(view)[1].startswith("> thought")
        assert view.code_blocks() == []
        view.finish()
        await pilot.pause()
        assert rows(view)[1:3] == ["> thought; t shows it", "The answer."]
        assert selected(view, "answer", "answer") == "answer"
        view.unfold()
        await pilot.pause()
        assert "first this" in " ".join(rows(view))
        assert view.code_blocks() == [("py", "secret = 1\n")]
        view.unfold()
        await pilot.pause()
        assert "first this" not in " ".join(rows(view))

    on_screen(view, steps)


def test_an_empty_thought_leaves_no_line() -> None:
    async def steps(pilot: Pilot[None], view: TurnView) -> None:
        assert rows(view)[1] == "Yes."

    on_screen(message("<think>\n\n</think>\n\nYes."), steps)


def test_unfolding_in_mid_thought_shows_what_is_there_and_what_comes() -> None:
    view = message("")
    view.begin()

    async def steps(pilot: Pilot[None], view: TurnView) -> None:
        view.append("<think>\nfirst ", ())
        view.settle()
        await pilot.pause()
        view.unfold()
        await pilot.pause()
        view.append("second\n</think>\n\ndone", ())
        view._took_s = 0.0
        view.settle()
        await pilot.pause()
        shown = " ".join(rows(view))
        assert "first second" in shown
        assert "done" in shown

    on_screen(view, steps)


# Looks.


def test_text_stays_whole_when_looks_change_in_mid_reply() -> None:
    view = message("")
    view.begin()
    looks = [View(rendered=False), View(tint="token"), View(tint="off"), View(), View(fold_thinking=False)]
    light = Colours("blue", "bright_black", "green", "cyan", "ansi_light", None)

    async def steps(pilot: Pilot[None], view: TurnView) -> None:
        for i in range(0, len(ANSWER), 9):
            view.append(ANSWER[i : i + 9], [Span(i, i + 4, Author.DRAFT, i, None)])
            view.show(looks[i // 9 % len(looks)], light if i % 2 else COLOURS)
            await pilot.pause()
            if i % 4 == 0:
                await pilot.resize_terminal(30 + i % 50, 60)
        view.finish()
        await pilot.pause()
        whole = message(ANSWER, view=view._view)
        whole._lay_out(view.size.width)
        assert view.source == ANSWER
        assert [line.text for line in view._lines] == [line.text for line in whole._lines]

    on_screen(view, steps)


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (80, "21 tokens  30.1 tok/s by the server  accepted 10 of 16 drafted  seed 7"),
        (60, "21 tokens  30.1 tok/s by the server  seed 7"),
        (30, "30.1 tok/s by the server"),
        (12, "30.1 tok/s b"),
    ],
)
def test_figures_give_way_by_importance_where_there_is_not_room_for_all(width: int, shown: str) -> None:
    view = message("text")
    view.took = [
        (3, "21 tokens"),
        (0, "30.1 tok/s by the server"),
        (4, "accepted 10 of 16 drafted"),
        (5, "seed 7"),
        (6, "read 1234, reused 0"),
    ]

    assert view._below(width + GUTTER)[-1] == shown


def test_names_and_notes_of_any_kind_stay_in_their_line() -> None:
    view = message("text", who="evil\n\x1b[31m[bold]name\t")
    view.note, view.took = "a\nb\x1b]0;x\x07", [(0, "12 tok\r\n")]

    async def steps(pilot: Pilot[None], view: TurnView) -> None:
        assert view.size.height == 4
        shown = "".join(view.render_line(y).text for y in range(4))
        assert not set(shown) & set("\n\r\t\x1b\x07")
        assert "[bold]name" in shown
        assert [segment for y in range(4) for segment in view.render_line(y) if segment.control] == []

    on_screen(view, steps)


def test_a_strip_can_be_styled_at_both_ends() -> None:
    from textual.strip import Strip

    from specchat.tui.widgets.turn import _styled

    strip = Strip([Segment("ab"), Segment("日c")])
    for start in range(6):
        for end in range(7):
            made = _styled(strip, start, end, Style(reverse=True))
            assert made.cell_length == 5
            reversed_ = sum(segment.cell_length for segment in made if segment.style and segment.style.reverse)
            assert reversed_ == max(0, min(end, 5) - start)
