"""The `@` picker, driven by its keys."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from textual.app import App
from textual.events import Paste
from textual.pilot import Pilot
from textual.widgets import Input, OptionList, Static

from specchat.attachments import find_files
from specchat.tui.screens.files import SHOWN, FilePicker, Find

Drive = Callable[["Host", Pilot[None]], Awaitable[None]]


class Host(App[None]):
    """Shows the picker and keeps what it hands back."""

    def __init__(self, root: Path, find: Find) -> None:
        super().__init__()
        self.picker = FilePicker(root, find)
        self.answers: list[Path | None] = []

    def on_mount(self) -> None:
        """Open it at once."""
        self.push_screen(self.picker, self.answers.append)

    @property
    def shown(self) -> list[str]:
        """The results on the screen."""
        return [str(option.prompt) for option in self.picker.query_one(OptionList).options]

    @property
    def state(self) -> str:
        """The line below them."""
        return str(self.picker.query_one("#files-state", Static).content)


def drive(
    root: Path, steps: Drive, *, find: Find | None = None, names: Sequence[str] = (), size: tuple[int, int] = (100, 30)
) -> Host:
    host = Host(root, find or (lambda *_: list(names)))

    async def run() -> None:
        async with host.run_test(size=size) as pilot:
            await settle(pilot)
            await steps(host, pilot)

    asyncio.run(run())
    return host


async def settle(pilot: Pilot[None]) -> None:
    """Until no search is left: the end of one may start the next."""
    while True:
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        if not list(pilot.app.workers):
            return


async def type_in(pilot: Pilot[None], text: str) -> None:
    for character in text:
        await pilot.press(character)
    await settle(pilot)


def test_letters_of_a_name_and_enter_hand_back_its_path(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    for name in ("notes.md", "src/cache.py", "src/clock.py"):
        (tmp_path / name).write_text("x")

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await type_in(pilot, "cac")
        assert host.shown == ["src/cache.py"]
        await pilot.press("enter")

    assert drive(tmp_path, steps, find=find_files).answers == [tmp_path / "src" / "cache.py"]


def test_all_files_are_offered_before_anything_is_typed_and_arrows_choose(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("x")

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        assert host.shown == ["a", "b"]
        assert "2 of 2 files" in host.state
        await pilot.press("down", "enter")

    assert drive(tmp_path, steps, names=["a", "b"]).answers == [tmp_path / "b"]


def test_escape_leaves_without_a_file(tmp_path: Path) -> None:
    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await pilot.press("escape")

    assert drive(tmp_path, steps, names=["a"]).answers == [None]


def test_a_hundred_thousand_files_show_fifty_and_say_how_many_there_are(tmp_path: Path) -> None:
    names = [f"folder{number % 100}/file{number}.py" for number in range(100_000)]

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        assert len(host.shown) == SHOWN
        assert "100,000 of 100,000" in host.state
        await type_in(pilot, "file77777")
        assert host.shown == ["folder77/file77777.py"]

    drive(tmp_path, steps, names=names)


def test_typing_goes_on_while_the_files_are_being_listed(tmp_path: Path) -> None:
    listed = threading.Event()

    def find(root: Path, wanted: Callable[[], bool]) -> list[str]:
        assert listed.wait(30)
        return ["cache.py", "other.py"]

    host = Host(tmp_path, find)

    async def run() -> None:
        async with host.run_test() as pilot:
            await pilot.press("c", "a")
            typed, state = host.picker.query_one(Input).value, host.state
            listed.set()
            await settle(pilot)
            assert typed == "ca"
            assert "listing" in state
            assert host.shown == ["cache.py"]

    asyncio.run(run())


def test_enter_before_the_results_are_there_takes_what_was_typed_and_not_what_was_shown(tmp_path: Path) -> None:
    for name in ("aa", "bb"):
        (tmp_path / name).write_text("x")

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        picker = host.picker
        assert host.shown == ["aa", "bb"]
        # Both in one turn of the loop: no search can have ended between them.
        picker.query_one(Input).value = "bb"
        await picker.query_one(Input).action_submit()
        await settle(pilot)

    assert drive(tmp_path, steps, names=["aa", "bb"]).answers == [tmp_path / "bb"]


def test_leaving_tells_a_listing_that_nobody_wants_it_any_more(tmp_path: Path) -> None:
    stopped = threading.Event()

    def find(root: Path, wanted: Callable[[], bool]) -> list[str]:
        while wanted():
            stopped.wait(0.001)
        stopped.set()
        return []

    async def run() -> None:
        host = Host(tmp_path, find)
        async with host.run_test() as pilot:
            await pilot.press("escape")
            await pilot.pause()

    asyncio.run(run())  # which waits for the thread
    assert stopped.is_set()


def test_an_absolute_path_typed_in_full_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    target = tmp_path / "elsewhere.txt"
    target.write_text("x")

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        host.picker.query_one(Input).value = str(target)
        await settle(pilot)
        await pilot.press("enter")

    assert drive(tmp_path / "work", steps).answers == [target]


def test_a_path_above_the_folder_and_one_from_home_are_accepted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / "work").mkdir()
    (tmp_path / "above.txt").write_text("x")

    def accept(text: str) -> Path | None:
        async def steps(host: Host, pilot: Pilot[None]) -> None:
            await type_in(pilot, text)
            await pilot.press("enter")

        (answer,) = drive(tmp_path / "work", steps).answers
        return None if answer is None else answer.resolve()

    assert accept("../above.txt") == (tmp_path / "above.txt").resolve()
    assert accept("~/above.txt") == (tmp_path / "above.txt").resolve()


def test_a_path_is_completed_by_tab_and_a_folder_is_gone_into_by_enter(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "papers" / "deep").mkdir(parents=True)
    (tmp_path / "papers" / "deep" / "x.txt").write_text("x")

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await type_in(pilot, "../pa")
        await pilot.press("tab")
        await settle(pilot)
        assert host.picker.query_one(Input).value == "../papers/"
        await pilot.press("enter")
        await settle(pilot)
        assert host.picker.query_one(Input).value == "../papers/deep/"
        await pilot.press("enter")

    (answer,) = drive(tmp_path / "work", steps).answers
    assert answer is not None
    assert answer.resolve() == (tmp_path / "papers" / "deep" / "x.txt").resolve()


def test_nothing_that_matches_is_said_and_enter_stays(tmp_path: Path) -> None:
    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await type_in(pilot, "zzz")
        assert host.shown == []
        assert "no name" in host.state
        await pilot.press("enter")
        await settle(pilot)
        assert host.answers == []

    drive(tmp_path, steps, names=["a"])


def test_a_file_that_is_gone_meanwhile_is_said_and_the_picker_stays(tmp_path: Path) -> None:
    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await pilot.press("enter")
        assert "gone is gone, or no file" in host.state
        assert host.answers == []

    drive(tmp_path, steps, names=["gone"])


def test_hostile_names_are_shown_as_they_are_and_can_be_picked(tmp_path: Path) -> None:
    names = ["[bold", "[/]", "[red]x[/red]", "a\nb", "a\x1b]0;title\x07", os.fsdecode(b"caf\xe9"), "\u202etxt"]

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        assert host.shown == [
            "[bold",
            "[/]",
            "[red]x[/red]",
            "a\u240ab",
            "a\u241b]0;title\u2407",
            "caf\ufffd",
            "\ufffdtxt",
        ]
        svg = host.export_screenshot()
        assert "\x1b" not in svg
        await pilot.press("tab")
        await settle(pilot)
        assert host.shown[0] == "[bold"
        for character in ("[", "/", "]"):
            await type_in(pilot, character)

    drive(tmp_path, steps, names=names)


@pytest.mark.skipif(os.name == "nt", reason="no such names there")
def test_a_name_that_is_no_utf8_hands_back_the_path_that_opens_the_file(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9\n"))
    try:
        path.write_text("x")
    except OSError:
        pytest.skip("this file system refuses such names")

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await type_in(pilot, "caf")
        await pilot.press("enter")

    (answer,) = drive(tmp_path, steps, find=find_files).answers
    assert answer is not None
    assert answer.read_text() == "x"


def test_pasted_control_bytes_do_not_reach_the_screen(tmp_path: Path) -> None:
    async def steps(host: Host, pilot: Pilot[None]) -> None:
        host.picker.query_one(Input).post_message(Paste("\x1b[31m[/]\x07"))
        await settle(pilot)
        assert "\x1b" not in host.export_screenshot()

    drive(tmp_path, steps, names=["a"])


@pytest.mark.parametrize("size", [(80, 24), (20, 5), (5, 2), (1, 1)])
def test_it_works_at_every_size(tmp_path: Path, size: tuple[int, int]) -> None:
    (tmp_path / "a").write_text("x")

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await pilot.resize_terminal(60, 10)
        await pilot.resize_terminal(*size)
        await type_in(pilot, "a")
        await pilot.press("enter")

    assert drive(tmp_path, steps, names=["a"], size=size).answers == [tmp_path / "a"]
