"""Several files, stops, limits, links and undoing in the app, on a real session over a scripted model."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Button, Static

from specchat.folders import refused_folder, undo_folder, unfinished_folder
from specchat.rewrite.flags import Kind
from specchat.rewrite.undo import UndoStore
from specchat.tui.app import SpecchatApp
from specchat.tui.rewrite_jobs import RewriteJob
from specchat.tui.screens.question import Question
from specchat.tui.screens.review import ReviewScreen
from specchat.tui.screens.rewrite_ask import RewriteAsk
from specchat.tui.screens.rewriting import RewritingScreen
from specchat.tui.screens.summary import SummaryScreen
from specchat.tui.screens.undo import MergeReview, UndoScreen
from tests.specchat.rewrite.scripted import COPY, ScriptedModel, edited
from tests.tui.driving import drive, told
from tests.tui.test_rewrite_in_app import TEXT, RewritingEngine, app_that, own_state, until

CHANGE = edited(lambda text: text.replace("beta = 2", "beta = 20").replace("omega = 9", "omega = 90"))
BOTH = TEXT.replace("beta = 2\n", "beta = 20\n").replace("omega = 9\n", "omega = 90\n")

__all__ = ["own_state"]


async def rewrite(pilot: Pilot[None], app: SpecchatApp, words: str) -> None:
    app.action_rewrite(words)
    await pilot.pause()
    assert isinstance(app.screen, RewriteAsk)
    await pilot.press("enter")
    await pilot.pause()


async def answer(pilot: Pilot[None], app: SpecchatApp, text: str) -> None:
    await until(pilot, lambda: isinstance(app.screen, Question))
    await pilot.click(next(button for button in app.screen.query(Button) if str(button.label) == text))
    await pilot.pause()


def engine_of(app: SpecchatApp) -> RewritingEngine:
    assert isinstance(app.engine, RewritingEngine)
    return app.engine


def rows(app: SpecchatApp) -> dict[str, str]:
    """What the summary says of each file."""
    assert isinstance(app.screen, SummaryScreen)
    return dict(app.screen._rows)


def stopping(app: SpecchatApp, at: int) -> None:
    """Let the user stop the first run when so many bytes are written."""
    jobs: list[RewriteJob] = []
    stopped: list[int] = []

    def before(written: int) -> None:
        if written >= at and not stopped:
            stopped.append(written)
            jobs[-1].stop()

    engine_of(app).before = lambda job: jobs.append(job) if isinstance(job, RewriteJob) else None
    engine_of(app).prepared = lambda model: setattr(model, "before_forward", before)


# Several files.


def test_several_files_are_rewritten_reviewed_and_summed_up_and_one_failure_stops_no_other(tmp_path: Path) -> None:
    for name, text in (("a.py", TEXT), ("b.py", "x = 1\n"), ("c.bin", "\0"), ("d.py", TEXT)):
        (tmp_path / name).write_text(text)
    app = app_that(tmp_path, CHANGE)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await rewrite(pilot, app, 'a.py b.py c.bin d.py "rename them"')
        await until(pilot, lambda: isinstance(app.screen, ReviewScreen))
        assert isinstance(app.screen, ReviewScreen)
        assert [file.name for file in app.screen.state.files] == ["a.py", "d.py"]
        assert any("2 changed, 1 unchanged, 1 not done" in each for each in told(app))
        await pilot.press("a", "y", "n", "w")
        await until(pilot, lambda: isinstance(app.screen, SummaryScreen))
        said = rows(app)
        assert list(said) == ["a.py", "b.py", "c.bin", "d.py"]
        first, second, third, fourth = said.values()
        assert first.startswith("written, 2 of 2 changes; /undo ")
        assert second == "nothing to change"
        assert "is not text" in third
        assert fourth.startswith("written, 1 of 2 changes")
        await pilot.press("escape")
        assert len(app.screen_stack) == 1

    drive(app, keys)
    assert (tmp_path / "a.py").read_text() == BOTH
    assert (tmp_path / "d.py").read_text() == TEXT.replace("beta = 2\n", "beta = 20\n")


def test_one_file_of_several_is_written_alone(tmp_path: Path) -> None:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(TEXT)
    app = app_that(tmp_path, CHANGE)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await rewrite(pilot, app, 'a.py b.py "rename"')
        await until(pilot, lambda: isinstance(app.screen, ReviewScreen))
        await pilot.press("A", "{", "W")
        await until(pilot, lambda: (tmp_path / "a.py").read_text() == BOTH)
        assert (tmp_path / "b.py").read_text() == TEXT
        await pilot.press("q")
        await answer(pilot, app, "Leave without")
        await until(pilot, lambda: isinstance(app.screen, SummaryScreen))
        assert list(rows(app).values())[1] == "not written; it had 2 changes"

    drive(app, keys)
    assert (tmp_path / "b.py").read_text() == TEXT


def test_files_without_changes_are_listed_at_once(tmp_path: Path) -> None:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(TEXT)
    app = app_that(tmp_path, COPY)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await rewrite(pilot, app, "a.py b.py x")
        await until(pilot, lambda: isinstance(app.screen, SummaryScreen))
        assert set(rows(app).values()) == {"nothing to change"}

    drive(app, keys)


def test_only_named_lines_change_and_the_review_names_them(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text(TEXT)
    app = app_that(tmp_path, CHANGE)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await rewrite(pilot, app, "a.py:1-3 rename")
        await until(pilot, lambda: isinstance(app.screen, ReviewScreen))
        assert "lines 1-3" in str(app.screen.query_one("#review-file", Static).content)
        await pilot.press("a", "w")
        await until(pilot, lambda: "beta = 20" in file.read_text())

    drive(app, keys)
    assert file.read_text() == TEXT.replace("beta = 2\n", "beta = 20\n")


def test_the_price_is_told_before_it_starts_and_what_was_asked_is_offered_again(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(TEXT)
    app = app_that(tmp_path, COPY)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        app.action_rewrite("a.py rename")
        await until(pilot, lambda: "est" in str(app.screen.query_one("#ask-about", Static).content))
        assert "if little changes" in str(app.screen.query_one("#ask-about", Static).content)
        await pilot.press("enter")
        await until(pilot, lambda: "nothing to change" in told(app))
        app.action_rewrite("a.py")
        await pilot.pause()
        await pilot.press("up")
        assert app.screen.query_one("#ask-instruction").value == "rename"  # type: ignore[attr-defined]

    drive(app, keys)


# Stops and limits.


def test_a_stop_asks_and_can_go_on_to_the_same_result(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text(TEXT)
    app = app_that(tmp_path, CHANGE)
    stopping(app, 150)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await rewrite(pilot, app, "a.py rename")
        await answer(pilot, app, "Continue")
        await until(pilot, lambda: isinstance(app.screen, ReviewScreen))
        await pilot.press("a", "w")
        await until(pilot, lambda: file.read_text() == BOTH)

    drive(app, keys)


def test_what_there_is_of_a_stopped_rewrite_is_reviewed_and_the_rest_stays(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text(TEXT)
    app = app_that(tmp_path, CHANGE)
    stopping(app, 150)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await rewrite(pilot, app, "a.py rename")
        await answer(pilot, app, "Review what there is")
        await until(pilot, lambda: isinstance(app.screen, ReviewScreen))
        assert isinstance(app.screen, ReviewScreen)
        assert app.screen.state.file.unread_from is not None
        await pilot.press("a", "w")
        await until(pilot, lambda: "beta = 20" in file.read_text())

    drive(app, keys)
    assert file.read_text() == TEXT.replace("beta = 2\n", "beta = 20\n")


@pytest.mark.parametrize("key", ["Drop it", "escape"])
def test_a_rewrite_that_was_stopped_in_the_middle_of_nothing_can_be_dropped(tmp_path: Path, key: str) -> None:
    file = tmp_path / "a.py"
    file.write_text(TEXT)
    app = app_that(tmp_path, CHANGE)
    stopping(app, 0)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await rewrite(pilot, app, "a.py rename")
        await until(pilot, lambda: isinstance(app.screen, Question))
        if key == "escape":  # goes on: nothing is thrown away without a word
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(app.screen, ReviewScreen))
        else:
            await answer(pilot, app, key)
            await until(pilot, lambda: len(app.screen_stack) == 1 and app._job is None)

    drive(app, keys)
    assert file.read_text() == TEXT


def test_of_several_files_a_stopped_one_is_skipped_and_the_others_follow(tmp_path: Path) -> None:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(TEXT)
    app = app_that(tmp_path, CHANGE)
    stopping(app, 150)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await rewrite(pilot, app, "a.py b.py rename")
        await answer(pilot, app, "Skip it")
        await until(pilot, lambda: isinstance(app.screen, ReviewScreen))
        await pilot.press("a", "w")
        await until(pilot, lambda: isinstance(app.screen, SummaryScreen))
        assert rows(app)["a.py"] == "dropped"

    drive(app, keys)
    assert (tmp_path / "a.py").read_text() == TEXT
    assert (tmp_path / "b.py").read_text() == BOTH


def test_a_file_that_cannot_be_completed_is_listed_and_stays(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(TEXT)
    (tmp_path / "b.py").write_text("beta = 2\n")
    app = app_that(tmp_path, lambda text, closing: "x\n" * 2000 if "line" in text else "beta = 20\n" + closing)
    engine_of(app).n_ctx = 1200

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await rewrite(pilot, app, "a.py b.py rename")
        await until(pilot, lambda: isinstance(app.screen, ReviewScreen))
        await pilot.press("a", "w")
        await until(pilot, lambda: isinstance(app.screen, SummaryScreen))
        assert "not complete: the context is full" in rows(app)["a.py"]

    drive(app, keys)
    assert (tmp_path / "a.py").read_text() == TEXT
    assert (tmp_path / "b.py").read_text() == "beta = 20\n"


@pytest.mark.parametrize("chosen", ["Continue", "Review what there is", "Drop it"])
def test_a_file_that_reached_a_limit_is_asked_about_behind_all_others(tmp_path: Path, chosen: str) -> None:
    a, b = tmp_path / "a.py", tmp_path / "b.py"
    a.write_text(TEXT)
    b.write_text("beta = 2\n")
    app = app_that(tmp_path, CHANGE)
    engine_of(app).limit = 160

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await rewrite(pilot, app, "a.py b.py rename")
        await answer(pilot, app, chosen)
        await until(pilot, lambda: isinstance(app.screen, ReviewScreen))
        await pilot.press("A", "w")
        await until(pilot, lambda: isinstance(app.screen, SummaryScreen))

    drive(app, keys)
    half = TEXT.replace("beta = 2\n", "beta = 20\n")
    assert a.read_text() == {"Continue": BOTH, "Review what there is": half, "Drop it": TEXT}[chosen]
    assert b.read_text() == "beta = 20\n"


def test_the_help_over_the_progress_does_not_keep_it_on_the_screen(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(TEXT)
    app = app_that(tmp_path, COPY)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        engine_of(app).before = lambda job: app.action_show_help() if isinstance(job, RewriteJob) else None
        await rewrite(pilot, app, "a.py rename")
        await until(pilot, lambda: "nothing to change" in told(app))
        await pilot.press("f1")
        await until(pilot, lambda: not any(isinstance(screen, RewritingScreen) for screen in app.screen_stack))

    drive(app, keys)


# What the review is told.


def test_a_word_of_which_the_model_was_not_sure_is_flagged(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(TEXT)
    app = app_that(tmp_path, CHANGE)

    def prepared(model: ScriptedModel) -> None:
        model.doubts = TEXT

    engine_of(app).prepared = prepared

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await rewrite(pilot, app, "a.py rename")
        await until(pilot, lambda: isinstance(app.screen, ReviewScreen))
        assert isinstance(app.screen, ReviewScreen)
        kinds = {flag.kind for flag in app.screen.state.file.flags}
        assert {Kind.SHAKY, Kind.QUIET} <= kinds
        assert "SHAKY" in str(app.screen.query_one("#review-why", Static).content)

    drive(app, keys)


# Paths.


@pytest.mark.parametrize("named", ["../victim.txt", "link.txt", "{absolute}", "deep/../../victim.txt"])
def test_a_file_elsewhere_is_asked_about_and_left_alone_without_a_yes(tmp_path: Path, named: str) -> None:
    work, victim = tmp_path / "work", tmp_path / "victim.txt"
    (work / "deep").mkdir(parents=True)
    victim.write_text(TEXT)
    (work / "link.txt").symlink_to(victim)
    app = app_that(work, CHANGE)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await rewrite(pilot, app, f'{named.format(absolute=victim)} "rename"')
        assert isinstance(app.screen, Question)
        assert str(victim) in app.screen._text
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, RewriteAsk))
        assert app._job is None

    drive(app, keys)
    assert victim.read_text() == TEXT


def test_a_link_that_leads_elsewhere_once_it_was_asked_about_is_refused(tmp_path: Path) -> None:
    work, victim = tmp_path / "work", tmp_path / "victim.txt"
    work.mkdir()
    victim.write_text(TEXT)
    (work / "mine.txt").write_text(TEXT)
    (work / "link.txt").symlink_to(work / "mine.txt")
    app = app_that(work, CHANGE)

    def swapped(job: object) -> None:
        if isinstance(job, RewriteJob):
            (work / "link.txt").unlink()
            (work / "link.txt").symlink_to(victim)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        engine_of(app).before = swapped
        await rewrite(pilot, app, "link.txt rename")
        await until(pilot, lambda: any("leads to another file" in each for each in told(app)))

    drive(app, keys)
    assert victim.read_text() == TEXT


@pytest.mark.parametrize(
    "words",
    ["../x [red]", "\x1b]0;title\x07 x", "[/red] [b]x[/b]", "a\0b x", "/dev/zero x", "/etc x", "..", "~root/x x"],
)
def test_hostile_words_rewrite_nothing_and_show_literally(tmp_path: Path, words: str) -> None:
    app = app_that(tmp_path, CHANGE)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await rewrite(pilot, app, words)
        assert isinstance(app.screen, RewriteAsk)
        assert not set("\x1b\x07\0") & set(app.export_screenshot())
        assert app._job is None

    before = sorted(tmp_path.rglob("*"))
    drive(app, keys)
    assert [path for path in sorted(tmp_path.rglob("*")) if "state" not in path.parts and path not in before] == []


# Undoing.


async def written(pilot: Pilot[None], app: SpecchatApp, file: Path) -> None:
    await rewrite(pilot, app, f"{file.name} rename")
    await until(pilot, lambda: isinstance(app.screen, ReviewScreen))
    await pilot.press("a", "w")
    await until(pilot, lambda: file.read_text() == BOTH and len(app.screen_stack) == 1)


@pytest.mark.parametrize("named", ["", "a.py", "{id}"])
def test_the_last_write_is_taken_back_without_a_name_by_file_and_by_id(tmp_path: Path, named: str) -> None:
    file = tmp_path / "a.py"
    file.write_text(TEXT)
    app = app_that(tmp_path, CHANGE)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await written(pilot, app, file)
        app.action_undo(named.format(id=app._written[-1]))
        await until(pilot, lambda: file.read_text() == TEXT)
        await until(pilot, lambda: any("is as it was before" in each for each in told(app)))
        assert app._written == []

    drive(app, keys)


def test_writes_of_other_sessions_are_listed_to_choose_one(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text(TEXT)
    app = app_that(tmp_path, CHANGE)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        app.action_undo()
        await until(pilot, lambda: any("nothing can be taken back" in each for each in told(app)))
        await written(pilot, app, file)
        app._written.clear()
        app.action_undo()
        await until(pilot, lambda: isinstance(app.screen, UndoScreen))
        await pilot.press("enter")
        await until(pilot, lambda: file.read_text() == TEXT)

    drive(app, keys)


@pytest.mark.parametrize("chosen", ["Leave it", "Write the merge", "Review"])
def test_a_file_that_changed_since_is_left_alone_or_merged(tmp_path: Path, chosen: str) -> None:
    file = tmp_path / "a.py"
    file.write_text(TEXT)
    app = app_that(tmp_path, CHANGE)
    later = BOTH.replace("line 10\n", "line ten\n")
    merged = TEXT.replace("line 10\n", "line ten\n")

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await written(pilot, app, file)
        file.write_text(later)
        app.action_undo()
        await answer(pilot, app, chosen)
        if chosen == "Review":
            await until(pilot, lambda: isinstance(app.screen, MergeReview))
            await pilot.press("r", "y", "n", "w")
            await until(pilot, lambda: file.read_text() != later)
        elif chosen == "Write the merge":
            await until(pilot, lambda: file.read_text() == merged)
        await until(pilot, lambda: len(app.screen_stack) == 1)

    drive(app, keys)
    half = later.replace("beta = 20\n", "beta = 2\n")
    assert file.read_text() == {"Leave it": later, "Write the merge": merged, "Review": half}[chosen]


def test_what_names_no_write_is_told(tmp_path: Path) -> None:
    app = app_that(tmp_path, CHANGE)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        app.action_undo("[red]\x1bgone.py")
        await until(pilot, lambda: any("neither the id of a write nor a file" in each for each in told(app)))

    drive(app, keys)


def test_old_writes_are_forgotten_at_the_start(tmp_path: Path) -> None:
    from specchat.rewrite.source import read_source

    file = tmp_path / "a.py"
    file.write_text(TEXT)
    UndoStore(undo_folder(), clock=lambda: 1000.0).save(read_source(file), b"x")
    assert UndoStore(undo_folder()).past()

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await until(pilot, lambda: not UndoStore(undo_folder()).past())

    drive(app_that(tmp_path, CHANGE), keys)


@pytest.mark.parametrize("folder", [refused_folder, unfinished_folder])
def test_old_files_of_what_was_refused_or_cut_off_are_forgotten_at_the_start(
    tmp_path: Path, folder: Callable[[], Path]
) -> None:
    folder().mkdir(parents=True)
    old, new = folder() / "old.json", folder() / "new.json"
    for each in (old, new):
        each.touch()
    os.utime(old, (1000.0, 1000.0))

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await until(pilot, lambda: not old.exists())

    drive(app_that(tmp_path, CHANGE), keys)
    assert new.exists()


# What was cut off, in a later session.


def about(app: SpecchatApp) -> str:
    return str(app.screen.query_one("#ask-about", Static).content)


async def leave_cut_off(tmp_path: Path, pilot: Pilot[None], app: SpecchatApp) -> None:
    await rewrite(pilot, app, "a.py rename them")
    await until(pilot, lambda: isinstance(app.screen, Question))


def test_a_rewrite_that_was_stopped_is_offered_and_done_in_a_later_session(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text(TEXT)
    first = app_that(tmp_path, CHANGE)
    stopping(first, 60)
    drive(first, lambda pilot, app: leave_cut_off(tmp_path, pilot, app))
    later = app_that(tmp_path, CHANGE)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        app.action_rewrite("a.py")
        await until(pilot, lambda: "unfinished" in about(app))
        assert 'of 24 lines of "rename them"' in about(app)
        await pilot.press("ctrl+o")
        await until(pilot, lambda: isinstance(app.screen, ReviewScreen))
        assert isinstance(app.screen, ReviewScreen)
        assert app.screen.instruction == "rename them"
        await pilot.press("a", "w")
        await until(pilot, lambda: file.read_text() == BOTH)

    drive(later, keys)
    assert not list((tmp_path / "state" / "unfinished").iterdir())


@pytest.mark.parametrize("why", ["dropped", "changed", "other lines"])
def test_nothing_is_offered_of_what_was_dropped_or_is_another_text_by_now(tmp_path: Path, why: str) -> None:
    file = tmp_path / "a.py"
    file.write_text(TEXT)
    app = app_that(tmp_path, CHANGE)
    stopping(app, 150)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await rewrite(pilot, app, "a.py rename")
        await until(pilot, lambda: isinstance(app.screen, Question))
        assert list((tmp_path / "state" / "unfinished").iterdir())
        await answer(pilot, app, "Drop it" if why == "dropped" else "Review what there is")
        if why != "dropped":
            await until(pilot, lambda: isinstance(app.screen, ReviewScreen))
            await pilot.press("q")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        if why == "changed":
            file.write_text(f"{TEXT}more\n")
        app.action_rewrite("a.py:1-3" if why == "other lines" else "a.py")
        await until(pilot, lambda: "est" in about(app))
        assert "unfinished" not in about(app)
        await pilot.press("ctrl+o")
        assert about(app) == "nothing of this file is unfinished"

    drive(app, keys)
    assert file.read_text() == (f"{TEXT}more\n" if why == "changed" else TEXT)


def test_a_long_file_that_was_stopped_goes_on_in_the_middle_of_its_part(tmp_path: Path) -> None:
    """What could be reviewed already is only looked at: it is no end of the part."""
    file = tmp_path / "a.py"
    text = "".join(f"line {i} says something of its own\n" for i in range(120))
    file.write_text(text)
    app = app_that(tmp_path, edited(lambda old: old.replace("line 9 ", "row 9 ").replace("line 24 ", "row 24 ")))
    engine_of(app).n_ctx = 3000
    stopping(app, 500)

    async def keys(pilot: Pilot[None], app: SpecchatApp) -> None:
        await rewrite(pilot, app, "a.py rename")
        await answer(pilot, app, "Continue")
        await until(pilot, lambda: isinstance(app.screen, ReviewScreen))
        await pilot.press("a", "w")
        await until(pilot, lambda: "row 9 " in file.read_text())

    drive(app, keys)
    assert file.read_text() == text.replace("line 9 ", "row 9 ").replace("line 24 ", "row 24 ")
