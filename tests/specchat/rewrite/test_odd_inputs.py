"""Names, folders and words that nobody expects: one clear line, the right exit code, and nothing lost."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest

from specchat import console
from specchat.folders import undo_folder
from tests.specchat.rewrite.shell import TEXT, Shell, put, rows

posix = pytest.mark.skipif(sys.platform == "win32", reason="such files are made on POSIX systems")


@posix
@pytest.mark.parametrize("pattern", ["*", "**", "[ab]*"])
def test_a_pipe_among_the_files_of_a_pattern_is_left_out_and_not_waited_for(shell: Shell, pattern: str) -> None:
    put("a.txt")
    os.mkfifo("b")

    done = shell("rewrite", pattern, "do it", "-w")

    assert done.code == 0
    assert "1 (no regular files)" in done.err
    assert Path("a.txt").read_text() == rows(TEXT)


@posix
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda name: os.symlink(name, name)])
def test_what_is_no_file_is_refused_by_its_name(shell: Shell, make: object) -> None:
    assert callable(make)
    make("odd")

    done = shell("rewrite", "odd", "do it", "-w")

    assert (done.code, shell.loaded) == (3, 0)
    assert done.err.count("\n") == 1
    assert "odd" in done.err


@posix
def test_two_names_of_one_file_are_one_file(shell: Shell) -> None:
    put("a.txt")
    Path("b.txt").hardlink_to("a.txt")

    done = shell("rewrite", "a.txt", "b.txt", "do it", "-w")

    assert done.code == 0
    assert Path("a.txt").read_text() == Path("b.txt").read_text() == rows(TEXT)


def test_an_instruction_that_is_no_utf8_is_wrong_usage(shell: Shell) -> None:
    put("a.txt")

    done = shell("rewrite", "a.txt", "fix \udcff it", "-w")

    assert (done.code, shell.loaded) == (2, 0)
    assert done.err == "specchat: what is to be done is no UTF-8 text, so no model can read it\n"


@pytest.mark.parametrize("words", [["a.txt", ""], ["a.txt", " \n"], ["", "do it"], ["a.txt", "x" * 100_000]])
def test_no_words_and_too_many_words_are_refused_and_nothing_is_written(shell: Shell, words: list[str]) -> None:
    put("a.txt")

    done = shell("rewrite", *words, "-w")

    assert done.code in (2, 3)
    assert done.err.count("\n") == 1
    assert len(done.err) < 300
    assert Path("a.txt").read_text() == TEXT


@posix
def test_in_a_folder_that_is_gone_it_says_so(shell: Shell, tmp_path: Path) -> None:
    path = put("a.txt").absolute()
    (tmp_path / "gone").mkdir()
    os.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()

    for words in (["rewrite", str(path), "do it", "-w"], ["undo", "--list"]):
        done = shell(*words)
        assert done.code == 3
        assert done.err == "specchat: the folder that you are in is gone; go to one that is there\n"
    assert path.read_text() == TEXT


@posix
def test_a_file_of_three_gigabytes_is_refused_without_being_read(shell: Shell) -> None:
    with Path("a.txt").open("wb") as file:
        file.truncate(3 << 30)

    done = shell("rewrite", "a.txt", "do it", "-w")

    assert (done.code, shell.loaded) == (3, 0)
    assert "too much for a rewrite" in done.err


def test_an_encoding_without_a_name_is_wrong_usage(shell: Shell) -> None:
    put("a.txt")

    assert shell("rewrite", "a.txt", "do it", "-D", "--encoding", "").code == 2


def test_how_to_go_on_with_a_name_that_begins_with_a_dash_can_be_typed(shell: Shell) -> None:
    put("-a.txt")

    done = shell("--max-tokens", "1500", "rewrite", "-w", "--", "-a.txt", "do it")
    assert "`specchat rewrite ./-a.txt --continue` goes on" in done.err

    assert shell("rewrite", "./-a.txt", "--continue", "-w").code == 0
    assert Path("-a.txt").read_text() == rows(TEXT)


def test_a_read_only_file_among_several_fails_before_the_model_works_and_the_others_are_written(shell: Shell) -> None:
    put("a.txt").chmod(0o444)
    put("b.txt")

    done = shell("rewrite", "a.txt", "b.txt", "do it", "-w")

    assert done.code == 8
    assert len(shell.model.prompts) == 1
    assert (Path("a.txt").read_text(), Path("b.txt").read_text()) == (TEXT, rows(TEXT))


def test_a_read_only_file_loads_no_model_unless_nothing_is_to_be_written(shell: Shell) -> None:
    put("a.txt").chmod(0o444)

    done = shell("rewrite", "a.txt", "do it", "-w")
    assert (done.code, shell.loaded) == (5, 0)
    assert done.err.count("\n") == 1

    assert shell("rewrite", "a.txt", "do it", "-D").code == 0


@pytest.mark.parametrize(("mode", "code", "loaded"), [("-w", 5, 0), ("--diff", 0, 1)])
def test_a_full_disk_of_the_copies_is_found_out_before_the_model_works(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, mode: str, code: int, loaded: int
) -> None:
    path = put("a.txt")

    def full(handle: int, data: bytes, offset: int = 0) -> None:
        if len(data) > len(TEXT):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("specchat.rewrite.disk.write_all", full)

    done = shell("rewrite", "a.txt", "do it", mode)

    assert (done.code, shell.loaded) == (code, loaded)
    assert path.read_text() == TEXT
    if loaded == 0:
        assert "cannot keep a copy of" in done.err
        assert list((undo_folder() / "copies").iterdir()) == []


def test_a_rewrite_goes_on_although_nobody_can_be_told(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    put("a.txt")

    def full(*args: object, **more: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(console, "print", full, raising=False)

    assert shell("rewrite", "a.txt", "do it", "-w").code == 0
    assert Path("a.txt").read_text() == rows(TEXT)
