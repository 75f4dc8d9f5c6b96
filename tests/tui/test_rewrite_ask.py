"""The question which files to rewrite and how, and the words that answer it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.pilot import Pilot
from textual.widgets import Input, OptionList, Static

from specchat.rewrite.checks import Kept, Rails
from specchat.rewrite.recipes import Recipe, Variable
from specchat.tui.rewrite_words import (
    MOST_FILES,
    RewriteWanted,
    Target,
    files_and_instruction,
    files_meant,
    fitting_files,
    quoted,
    words_in,
)
from specchat.tui.screens.question import Question
from specchat.tui.screens.recipes import RecipePicker
from specchat.tui.screens.rewrite_ask import RewriteAsk
from specchat.tui.screens.several_files import FilesPicker
from specchat.tui.widgets.request import VariableLine
from tests.tui.test_rewriting import HOSTILE, SIZES, Host, drive, settle

PROOFREAD = Recipe(
    "proofread",
    "spelling [b]only[/b]",
    "Fix it. Tone: {tone}.",
    (Variable("tone", "plain"),),
    frozenset({Kept.NUMBERS}),
)
TRANSLATE = Recipe(
    "translate", "to another language", "To {to}, {how}.", (Variable("to", None), Variable("how", "well"))
)
SHORTER = Recipe("shorter", "fewer words", "Make it\nshorter.")


def wanted(instruction: str, *paths: Path, lines: str = "", guard: Rails | None = None) -> RewriteWanted:
    targets = tuple(Target(path, path.resolve(), lines) for path in paths)
    return RewriteWanted(targets, instruction, guard or Rails())


def files(folder: Path, *names: str) -> list[Path]:
    paths = [folder / name for name in names]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x\n" * 50)
    return paths


def say(host: Host, part: str, text: str) -> None:
    host.shown.query_one(f"#ask-{part}", Input).value = text


# Words.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ("", "")),
        ("gone.md", ("gone.md", "")),
        ("gone.md  fix spelling ", ("gone.md", "fix spelling")),
        ('"my notes.md" fix it', ('"my notes.md"', "fix it")),
        ("'my notes.md'", ("'my notes.md'", "")),
        ('"no end fix', ('"no', "end fix")),
        ("[/red] x", ("[/red]", "x")),
        ('a.md b.md "fix it\'s spelling"', ("a.md b.md", "fix it's spelling")),
        ("a.md b.md:10-40 fix a.md", ("a.md b.md:10-40", "fix a.md")),
        ("a.md src/*.py add hints", ("a.md src/*.py", "add hints")),
        ("a.md *this* in bold", ("a.md", "*this* in bold")),
        ('a.md say "no" often', ("a.md", 'say "no" often')),
    ],
)
def test_behind_the_command_stand_files_then_what_to_do(tmp_path: Path, text: str, expected: tuple[str, str]) -> None:
    files(tmp_path, "a.md", "b.md")
    assert files_and_instruction(text, tmp_path) == expected


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1), max_size=4))
def test_what_is_quoted_is_one_word_unless_it_holds_both_quotes(words: list[str]) -> None:
    words = [word for word in words if not {'"', "'"} <= set(word)]
    assert [word.text for word in words_in(" ".join(quoted(word) for word in words))] == words


@given(st.text())
def test_no_text_stops_the_words(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    root = tmp_path_factory.getbasetemp()
    names, instruction = files_and_instruction(text, root)
    assert text.strip().startswith(names)
    assert instruction in text
    assert files_meant(text, root, {}, {}).targets == ()


def test_a_name_may_hold_blanks_colons_and_signs_of_patterns(tmp_path: Path) -> None:
    for path in files(tmp_path, "my notes.md", "a:10-20", "a", "[x].md"):
        assert [each.path for each in files_meant(path.name, tmp_path, {}, {}).targets] == [path]


def test_lines_of_a_file_stand_behind_its_name_or_beside_it(tmp_path: Path) -> None:
    one, two = files(tmp_path, "one.md", "two.md")
    for text, lines in (("one.md:10-40", ""), ("one.md:10:40", ""), ("one.md", "10-40"), ("one.md", " 10:40 ")):
        assert files_meant(text, tmp_path, {}, {}, lines).targets == (Target(one, one, "10:40"),)
    meant = files_meant("one.md:5 two.md", tmp_path, {}, {})
    assert meant.targets == (Target(one, one, "5"), Target(two, two))
    assert "lines are of one file" in files_meant("one.md two.md", tmp_path, {}, {}, "3:4").problem


def test_a_file_that_is_named_twice_is_rewritten_once(tmp_path: Path) -> None:
    one, two = files(tmp_path, "one.md", "two.md")
    (tmp_path / "link.md").symlink_to(one)
    assert [each.path for each in files_meant("one.md two.md ./one.md link.md", tmp_path, {}, {}).targets] == [one, two]


def test_a_pattern_means_files_below_its_folder_and_no_links_or_hidden_ones(tmp_path: Path) -> None:
    made = files(tmp_path, "a.py", "src/b.py", "src/deep/er/c.py", "src/d.txt", "src/.e.py")
    (tmp_path / "src" / "link.py").symlink_to(made[0])
    a, b, c = made[:3]
    assert fitting_files("*.py", tmp_path) == [a]
    assert fitting_files("src/*.py", tmp_path) == [b]
    assert set(fitting_files("**/*.py", tmp_path)) == {a, b, c}
    assert set(fitting_files("src/**", tmp_path)) == {b, c, made[3]}
    assert fitting_files("src/**/er/*.py", tmp_path) == [c]
    assert fitting_files(f"{tmp_path}/*/b.?y", Path("/")) == [b]
    assert [path.resolve() for path in fitting_files("../*/*.py", tmp_path / "src")] == [b]
    assert fitting_files("gone/*.py", tmp_path) == []


def test_a_pattern_is_looked_up_once_and_may_fit_nothing_or_too_much(tmp_path: Path) -> None:
    (one,) = files(tmp_path, "one.md")
    assert files_meant("one.md *.py", tmp_path, {}, {}).sought == "*.py"
    assert files_meant("*.py", tmp_path, {}, {"*.py": []}).problem == "no text file fits *.py"
    many = [tmp_path / f"{i}.md" for i in range(MOST_FILES + 1)]
    assert str(MOST_FILES) in files_meant("*.md", tmp_path, {}, {"*.md": many}).problem
    assert files_meant("*.md", tmp_path, {}, {"*.md": [one]}).targets == (Target(one, one),)


def test_a_folder_says_how_its_files_are_named(tmp_path: Path) -> None:
    files(tmp_path, "src/a.md")
    assert files_meant("src/", tmp_path, {}, {}).problem == "src/ is no file; src/* means the files in it"


# The screen.


def test_a_path_and_an_instruction_are_handed_back(tmp_path: Path) -> None:
    (path,) = files(tmp_path, "notes.md")

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await pilot.press(*"notes.md", "enter")
        assert host.answers == []
        await pilot.press(*"shorter", "enter")

    assert drive(RewriteAsk(tmp_path), steps).answers == [wanted("shorter", path)]


def test_what_was_said_already_is_not_asked_again(tmp_path: Path) -> None:
    paths = files(tmp_path, "notes.md", "my notes.md")

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await pilot.press("enter")

    ask = RewriteAsk(tmp_path, 'notes.md "my notes.md"', "fix it")
    assert drive(ask, steps).answers == [wanted("fix it", *paths)]


def test_a_pattern_is_looked_up_while_one_types_on(tmp_path: Path) -> None:
    paths = files(tmp_path, "a.md", "b.md")

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        say(host, "files", "*.md")
        await pilot.press("enter", *"shorter")
        await settle(pilot)
        assert host.text("ask-about") == "2 files"
        await pilot.press("enter")
        await settle(pilot)

    assert drive(RewriteAsk(tmp_path), steps).answers == [wanted("shorter", *paths)]


def test_lines_are_asked_for_and_wrong_ones_are_told(tmp_path: Path) -> None:
    (path,) = files(tmp_path, "notes.md")

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        for lines in ("x", "9:2", "0:3"):
            say(host, "lines", lines)
            await pilot.press("enter")
            assert "lines are counted from 1" in host.text("ask-about")
        say(host, "lines", "10-40")
        await pilot.press("enter")

    ask = RewriteAsk(tmp_path, "notes.md", "fix it")
    assert drive(ask, steps).answers == [wanted("fix it", path, lines="10:40")]


def test_what_is_no_file_is_said_and_stays(tmp_path: Path) -> None:
    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await pilot.press("enter")
        assert "which file?" in host.text("ask-about")
        for path in ("gone.md", str(tmp_path), "a\0b", "[/red]\x1b"):
            say(host, "files", path)
            await settle(pilot)
            await pilot.press("enter")
            assert "is no file" in host.text("ask-about") or "no text file fits [/red]" in host.text("ask-about")
        assert "\x1b" not in host.export_screenshot()
        assert host.answers == []
        await pilot.press("escape")

    assert drive(RewriteAsk(tmp_path), steps).answers == [None]


def test_an_at_sign_adds_a_file_and_one_that_cannot_be_typed_is_still_meant(tmp_path: Path) -> None:
    name = "[red] \x1b[31m\"'.py" if os.name != "nt" else "[red].py"
    hostile, plain = files(tmp_path, name, "plain.py")

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        say(host, "files", "plain.py")
        await pilot.press("@")
        assert isinstance(host.screen, FilesPicker)
        await settle(pilot)
        await pilot.press(*"red")
        await settle(pilot)
        await pilot.press("enter")
        await settle(pilot)
        assert "\x1b" not in host.export_screenshot()
        await pilot.press(*"shorter", "enter")

    assert drive(RewriteAsk(tmp_path), steps).answers == [wanted("shorter", plain, hostile)]


def test_space_marks_several_files_whatever_is_typed_between_and_enter_takes_them(tmp_path: Path) -> None:
    one, two, three, four = files(tmp_path, "one.py", "two words.py", "three.py", "four.py")

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await pilot.press("@")
        await settle(pilot)
        await pilot.press(*"three")
        await settle(pilot)
        await pilot.press("space", *(["backspace"] * 5))
        await settle(pilot)
        picker = host.screen
        assert isinstance(picker, FilesPicker)
        shown = [str(option.prompt) for option in picker.query_one(OptionList).options]
        assert sorted(shown) == ["  four.py", "  one.py", "  two words.py", "* three.py"]
        for name in ("one.py", "four.py", "four.py", "two words.py"):  # the second time takes the mark away
            at = [str(option.prompt)[2:] for option in picker.query_one(OptionList).options].index(name)
            picker.query_one(OptionList).highlighted = at
            await pilot.press("space")
        assert "; 3 marked" in str(picker.query_one("#files-state", Static).content)
        await pilot.press("enter")
        await settle(pilot)
        assert host.shown.query_one("#ask-files", Input).value == 'three.py one.py "two words.py"'
        await pilot.press(*"do it", "enter")

    assert drive(RewriteAsk(tmp_path), steps).answers == [wanted("do it", three, one, two)]
    assert four.exists()


def test_a_blank_in_a_path_is_a_blank_and_the_path_comes_to_the_marked_ones(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (inside,) = files(work, "in.py")
    (outside,) = files(tmp_path, "o u t.py")

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await pilot.press("@")
        await settle(pilot)
        await pilot.press("space", *"../o u t.py")
        await settle(pilot)
        await pilot.press("enter")
        await settle(pilot)
        ask = host.shown
        assert isinstance(ask, RewriteAsk)
        assert [each.real for each in ask.meant.targets] == [inside, outside]

    drive(RewriteAsk(work), steps)


def test_space_marks_nothing_where_there_is_nothing(tmp_path: Path) -> None:
    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await pilot.press("@")
        await settle(pilot)
        await pilot.press(*"zzz", "space", "enter")
        await settle(pilot)
        assert isinstance(host.screen, FilesPicker)
        assert host.screen.query_one(Input).value == "zzz"
        await pilot.press("escape")

    drive(RewriteAsk(tmp_path), steps)


def test_an_at_sign_stands_for_itself_in_the_instruction(tmp_path: Path) -> None:
    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await pilot.press("down", "down", "@")
        assert host.shown.query_one("#ask-instruction", Input).value == "@"

    drive(RewriteAsk(tmp_path), steps)


def test_a_file_that_really_stands_elsewhere_is_shown_and_asked_about(tmp_path: Path) -> None:
    inside = tmp_path / "work"
    inside.mkdir()
    (outside,) = files(tmp_path, "elsewhere.txt")
    os.symlink(outside, inside / "link.txt")

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        for path in ("link.txt", "../elsewhere.txt", str(outside)):
            say(host, "files", path)
            await settle(pilot)
            assert host.text("ask-about") == f"outside this folder: {outside.resolve()}"
            await pilot.press("enter")
            assert isinstance(host.screen, Question)
            await pilot.press("enter")  # the first answer is no
            await settle(pilot)
            assert host.answers == []
        await pilot.press("enter")
        await settle(pilot)
        await pilot.press("right", "enter")

    assert drive(RewriteAsk(inside, "", "x"), steps, (200, 24)).answers == [wanted("x", outside)]


def test_the_price_stands_below_the_files_it_is_of_also_when_it_is_nothing_good(tmp_path: Path) -> None:
    files(tmp_path, "a.md", "b.md")
    ask = RewriteAsk(tmp_path, "a.md", "")

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        a = ask.meant.targets
        ask.tell_price(a, "about 9 s", is_problem=False)
        assert host.text("ask-about") == "about 9 s"
        say(host, "files", "b.md")
        await settle(pilot)
        assert host.text("ask-about") == ""
        ask.tell_price(a, "about 9 s", is_problem=False)  # late
        assert host.text("ask-about") == ""
        ask.tell_price(ask.meant.targets, "b.md is not text", is_problem=True)
        assert host.text("ask-about") == "b.md is not text"
        assert host.shown.query_one("#ask-about").has_class("-problem")
        say(host, "files", "c.md")
        await settle(pilot)
        assert host.text("ask-about") == ""

    drive(ask, steps)


def test_the_arrow_up_brings_back_what_was_asked_for_before(tmp_path: Path) -> None:
    (path,) = files(tmp_path, "a.md")

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        line = host.shown.query_one("#ask-instruction", Input)
        await pilot.press(*"new", "up")
        assert line.value == "second"
        await pilot.press("up", "up")
        assert line.value == "first"
        await pilot.press("down", "down")
        assert line.value == "new"
        await pilot.press("up", "enter")

    ask = RewriteAsk(tmp_path, "a.md", "", ("first", "second"))
    assert drive(ask, steps).answers == [wanted("second", path)]


def test_a_recipe_is_chosen_and_its_variables_are_asked_for(tmp_path: Path) -> None:
    (path,) = files(tmp_path, "a.md")

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await pilot.press("ctrl+r")
        assert isinstance(host.screen, RecipePicker)
        assert str(host.screen.query_one(OptionList).get_option_at_index(1).prompt) == "proofread  spelling [b]only[/b]"
        await pilot.press("down", "enter")
        await settle(pilot)
        assert host.text("ask-recipe") == "translate: To {to}, {how}."
        assert [line.variable for line in host.shown.query(VariableLine)] == ["to", "how"]
        await pilot.press("enter")
        assert host.text("ask-about") == "what is to?"
        await pilot.press(*"[b]Dutch", "enter")

    ask = RewriteAsk(tmp_path, "a.md", "", (), lambda: [PROOFREAD, TRANSLATE])
    assert drive(ask, steps).answers == [wanted("To [b]Dutch, well.", path)]


def test_a_recipe_brings_its_guard_rails_and_can_be_left_for_own_words(tmp_path: Path) -> None:
    (path,) = files(tmp_path, "a.md")

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await pilot.press(*"mine", "ctrl+r", "enter")
        await settle(pilot)
        await pilot.press("ctrl+r", "up", "enter")
        await settle(pilot)
        assert host.shown.query_one("#ask-instruction", Input).display
        await pilot.press("ctrl+r", "enter")
        await settle(pilot)
        await pilot.press("enter")

    ask = RewriteAsk(tmp_path, "a.md", "", (), lambda: [PROOFREAD])
    guard = Rails(keep=frozenset({Kept.NUMBERS}))
    assert drive(ask, steps).answers == [wanted("Fix it. Tone: plain.", path, guard=guard)]


def test_a_recipe_without_variables_needs_only_enter(tmp_path: Path) -> None:
    (path,) = files(tmp_path, "a.md")

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await pilot.press("ctrl+r", "enter")
        await settle(pilot)
        await pilot.press("enter")

    ask = RewriteAsk(tmp_path, "a.md", "", (), lambda: [SHORTER])
    assert drive(ask, steps).answers == [wanted("Make it\nshorter.", path)]


@pytest.mark.parametrize("size", SIZES)
def test_the_question_fits_every_size(tmp_path: Path, size: tuple[int, int]) -> None:
    (path,) = files(tmp_path, "a")
    hostile = Recipe(HOSTILE, HOSTILE, f"{HOSTILE} {{x}}", (Variable("x", None),))

    async def steps(host: Host, pilot: Pilot[None]) -> None:
        await pilot.resize_terminal(*size[::-1])
        await pilot.resize_terminal(*size)
        await pilot.press("ctrl+r", "enter")
        await settle(pilot)
        assert not set("\x1b\x07\u202e") & set(host.export_screenshot())
        await pilot.press("ctrl+r", "up", "enter")
        await settle(pilot)
        say(host, "files", "a")
        await pilot.press("b", "enter")

    ask = RewriteAsk(tmp_path, "", "", (), lambda: [hostile])
    assert drive(ask, steps, size).answers == [wanted("b", path)]
