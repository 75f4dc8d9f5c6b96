"""Long replies and long chats: no text is lost, the screen follows until the user looks elsewhere, and then stays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Console
from textual.pilot import Pilot

from specchat.chat import Chat
from specchat.conversation import Role
from specchat.tui.app import SpecchatApp
from specchat.tui.lines import Line
from specchat.tui.markdown import Parser
from specchat.tui.markdown import draw as drawn
from specchat.tui.rendering import Body, Colours, rendered_lines
from specchat.tui.widgets.transcript import AT_ONCE, Transcript
from specchat.tui.widgets.turn import GUTTER, TurnView
from tests.tui.driving import ask, drive
from tests.tui.scripted import Piece, Script, app_on, engine_of, mixed, words

TABLE = "Rows:\n\n| n | name | what |\n|---|---|---|\n" + "".join(
    f"| {n} | name {n} | some words about row {n} |\n" for n in range(300)
)
CODE = "Code:\n\n```python\n" + "".join(f"value_{n} = call({n}, 'x')  # {n}\n" for n in range(2_000)) + "```\n\nDone.\n"
COLOURS = Colours("blue", "white", "green", "cyan", "monokai", None)
LOOKS = ("/raw", "/tint token", "/tint off", "/theme textual-light", "/tint gutter", "/raw", "/theme textual-dark")


def transcript(app: SpecchatApp) -> Transcript:
    return app.chat_view.transcript


async def draw(pilot: Pilot[None], app: SpecchatApp) -> TurnView:
    """Draw what has come, however slow this machine is."""
    view = transcript(app).growing
    assert view is not None
    view._took_s = 0.0
    view.settle()
    await settled(pilot, app)
    return view


async def settled(pilot: Pilot[None], app: SpecchatApp) -> None:
    """Until the layout has come to rest, however slow this machine is."""
    shown, before = transcript(app), None
    for _ in range(50):
        await pilot.pause()
        now = (shown.scroll_y, shown.max_scroll_y, shown.virtual_size)
        if now == before and 0 <= shown.scroll_y <= shown.max_scroll_y:
            return
        before = now


def whole(view: TurnView) -> list[str]:
    """The lines of a message that came in one piece."""
    return [line.text for line in rendered_lines(view.source, view.size.width - GUTTER, view._colours)]


@pytest.mark.parametrize(
    ("pieces", "bursts"),
    [
        (mixed("word " * 2_000 + "\n\n" + "- more **words** here\n" * 500), (1, 400, 3, 37, 600, 5)),
        ([Piece(line) for line in TABLE.splitlines(keepends=True)], (1, 50, 7, 100)),
        ([Piece(line) for line in CODE.splitlines(keepends=True)], (1, 90, 300, 700)),
    ],
)
def test_no_piece_of_a_long_reply_is_lost_and_its_end_is_drawn_as_if_it_had_come_whole(
    tmp_path: Path, pieces: Sequence[Piece], bursts: Sequence[int]
) -> None:
    app = app_on(tmp_path, Script([list(pieces)], steps_at_once=0))
    text = "".join(piece.text for piece in pieces)

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "write")
        done = 0
        for burst in bursts:
            engine_of(app).go(burst)
            done += burst
            view = await draw(pilot, app)
            assert view.source == "".join(piece.text for piece in pieces[:done])
            assert "".join(line.text for line in view._lines).strip()
        engine_of(app).go()
        await pilot.pause()
        await pilot.pause()
        view = transcript(app).views[-1]
        assert app.chat_view.busy is None
        assert view.source == text
        assert app.chat_view.chat.path()[-1].text == text
        assert [line.text for line in view._lines] == whole(view)
        assert view.size.height == len(view._lines) + 2

    drive(app, steps, (100, 30))


@pytest.fixture
def heights(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lines of each piece of Markdown that is laid out."""
    counted: list[int] = []

    def counting(parser: Parser, console: Console, text: str, code_theme: str) -> list[Line] | None:
        counted.append(text.count("\n"))
        return drawn(parser, console, text, code_theme)

    monkeypatch.setattr("specchat.tui.rendering.draw", counting)
    return counted


def test_a_block_of_code_of_2000_lines_is_coloured_in_pieces_while_it_grows(heights: list[int]) -> None:
    body = Body(COLOURS)
    for end in range(600, len(CODE), 600):
        body.lines(CODE[:end], 80, growing=True)

    assert max(heights) < 90
    assert sum(heights) < 3 * CODE.count("\n") + len(CODE) // 600 * 45


def test_a_table_is_laid_out_when_it_is_complete_and_not_with_each_row(heights: list[int]) -> None:
    body = Body(COLOURS)
    for end in range(100, len(TABLE), 100):
        body.lines(TABLE[:end], 80, growing=True)
    assert max(heights) < 45

    rows = body.lines(TABLE, 80, growing=False)
    assert [height for height in heights if height > 45] == [302]
    assert len(rows) == 304


def test_looks_and_sizes_may_change_in_mid_reply(tmp_path: Path) -> None:
    pieces = mixed("one **two** three\n\n```py\nx = 1\n```\n\n| a | b |\n|---|---|\n| c | d |\n\n1. e\n\n2. f\n" * 4)
    app = app_on(tmp_path, Script([pieces], steps_at_once=0))

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "write")
        for i, command in enumerate(LOOKS):
            engine_of(app).go(5)
            await draw(pilot, app)
            await ask(pilot, command)
            await pilot.resize_terminal(40 + 17 * i % 90, 12 + i)
            engine_of(app).go(3)
            await pilot.pause()
        engine_of(app).go()
        await pilot.resize_terminal(100, 30)
        await pilot.pause()
        await pilot.pause()
        view = transcript(app).views[-1]
        assert view.source == "".join(piece.text for piece in pieces)
        assert [line.text for line in view._lines] == whole(view)

    drive(app, steps, (100, 30))


# Where the screen looks.


def long_script() -> Script:
    return Script([words("\n\n".join(f"paragraph {n}" for n in range(60)))], steps_at_once=0)


def test_the_screen_follows_a_reply_until_the_user_scrolls_up_and_again_from_the_end(tmp_path: Path) -> None:
    app = app_on(tmp_path, long_script())

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "write")
        engine_of(app).go(60)
        await draw(pilot, app)
        shown = transcript(app)
        assert shown.scroll_y == shown.max_scroll_y > 0
        shown.focus()
        await pilot.press("pageup")
        await pilot.pause()
        at = shown.scroll_y
        assert at < shown.max_scroll_y
        for _ in range(3):
            engine_of(app).go(10)
            await draw(pilot, app)
        assert shown.scroll_y == at
        await pilot.press("end")
        engine_of(app).go(10)
        await draw(pilot, app)
        assert shown.scroll_y == shown.max_scroll_y > at

    drive(app, steps, (100, 30))


def test_a_reply_that_ends_while_the_user_looks_elsewhere_leaves_the_place_alone(tmp_path: Path) -> None:
    app = app_on(tmp_path, long_script())

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "write")
        engine_of(app).go(100)
        await draw(pilot, app)
        shown = transcript(app)
        shown.scroll_to(y=7, animate=False)
        await pilot.pause()
        engine_of(app).go()
        await pilot.pause()
        await pilot.pause()
        assert app.chat_view.busy is None
        assert shown.scroll_y == 7

    drive(app, steps, (100, 30))


def test_scrolling_back_to_the_end_by_hand_follows_again(tmp_path: Path) -> None:
    app = app_on(tmp_path, long_script())

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await ask(pilot, "write")
        engine_of(app).go(60)
        await draw(pilot, app)
        shown = transcript(app)
        shown.focus()
        await pilot.press("k")
        await pilot.pause()
        assert shown.scroll_y == 0
        shown.scroll_end(animate=False)
        await pilot.pause()
        engine_of(app).go(30)
        await draw(pilot, app)
        assert shown.scroll_y == shown.max_scroll_y > 0

    drive(app, steps, (100, 30))


# Long chats.


def long_chat(messages: int = 500) -> Chat:
    chat = Chat()
    for n in range(messages // 2):
        chat.add(Role.USER, f"question {n}\n" + "with many words " * 40)
        chat.add(Role.ASSISTANT, f"# answer {n}\n\n" + "some **words** of it. " * 60 + "\n\n```py\nx = 1\n```\n")
    return chat


def top(app: SpecchatApp) -> tuple[str, int]:
    """The message at the top of the screen, and which of its lines."""
    shown = transcript(app)
    view = next(view for view in shown.views if view.virtual_region.bottom > shown.scroll_y)
    return view.source.split("\n")[0], round(shown.scroll_y - view.virtual_region.y)


def test_a_chat_of_500_long_messages_opens_with_its_last_ones_and_the_others_come_by_scrolling(tmp_path: Path) -> None:
    app = app_on(tmp_path)

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await app.chat_view.open(long_chat())
        await settled(pilot, app)
        shown = transcript(app)
        assert len(shown.views) == AT_ONCE
        assert shown.views[-1].source.startswith("# answer 249")
        assert shown.scroll_y == shown.max_scroll_y
        shown.focus()
        shown.scroll_to(y=1, animate=False)
        await settled(pilot, app)
        before = top(app)
        await shown._more_above()
        await settled(pilot, app)
        assert len(shown.views) > AT_ONCE
        assert top(app) == before
        while len(shown.views) < 60:
            await pilot.press("pageup")
            await pilot.pause()
        sources = [view.source.split("\n")[0] for view in shown.views]
        assert sources == [f"{kind} {n}" for n in range(250) for kind in ("question", "# answer")][-len(sources) :]

    drive(app, steps, (100, 30))


def test_a_page_up_at_the_top_goes_one_page_up_in_what_came(tmp_path: Path) -> None:
    app = app_on(tmp_path)

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await app.chat_view.open(long_chat())
        await pilot.pause()
        shown = transcript(app)
        shown.focus()
        shown.scroll_to(y=0, animate=False)
        await pilot.pause()
        first = shown.views[0]
        await pilot.press("pageup")
        await pilot.pause()
        await pilot.pause()
        assert first.virtual_region.y - shown.scroll_y == shown.scrollable_content_region.height

    drive(app, steps, (100, 30))


def test_the_first_message_of_a_long_chat_is_one_key_away(tmp_path: Path) -> None:
    app = app_on(tmp_path)

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        await app.chat_view.open(long_chat(60))
        await pilot.pause()
        shown = transcript(app)
        shown.focus()
        await pilot.press("g")
        await pilot.pause()
        await pilot.pause()
        assert top(app) == ("question 0", 0)
        assert shown.current is not None
        assert shown.current.text.startswith("question 0")
        await pilot.press("G")
        await pilot.pause()
        assert shown.scroll_y == shown.max_scroll_y

    drive(app, steps, (100, 30))


def test_a_place_in_a_message_that_was_not_laid_out_is_scrolled_to(tmp_path: Path) -> None:
    app = app_on(tmp_path)

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        chat = long_chat(80)
        await app.chat_view.open(chat)
        await pilot.pause()
        shown = transcript(app)
        turn = chat.path()[11]
        place = turn.text.index("x = 1")
        await shown.reveal(turn.id, place)
        await pilot.pause()
        await pilot.pause()
        view = shown.view(turn.id)
        assert view is not None
        line = view.virtual_region.y + view.line_of(place) - shown.scroll_y
        assert 0 <= line < shown.scrollable_content_region.height
        assert view.highlighted == (place, place + len("x = 1"))
        other = chat.path()[-1]
        await shown.reveal(other.id, 0)
        assert view.highlighted is None

    drive(app, steps, (100, 30))


def test_a_long_chat_that_is_cut_above_what_was_laid_out_shows_its_new_end(tmp_path: Path) -> None:
    app = app_on(tmp_path)

    async def steps(pilot: Pilot[None], app: SpecchatApp) -> None:
        chat = long_chat(100)
        await app.chat_view.open(chat)
        await pilot.pause()
        for left in (50, 45, 3):
            await app.chat_view.delete(chat.path()[left])
            await pilot.pause()
            sources = [view.source for view in transcript(app).views]
            assert sources == [turn.text for turn in chat.path()[-len(sources) :]]
            assert len(sources) >= min(left, AT_ONCE // 2)

    drive(app, steps, (100, 30))
