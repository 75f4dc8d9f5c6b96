"""What a model wrote and a rewrite did not use can be looked at."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from specchat.folders import refused_folder
from specchat.rewrite.refused import KEEP_S, MOST, RefusedStore
from specchat.rewrite.source import joined
from tests.specchat.rewrite.scripted import Script, edited
from tests.specchat.rewrite.shell import LINES, TEXT, Done, Shell, put, rows


def kept(done: Done) -> Path:
    """The file that the refusal names."""
    folder = str(refused_folder())
    name = done.err[done.err.index(folder) + len(folder) + 1 :].split("\n")[0].split(";")[0]
    return refused_folder() / name


RAILS: dict[str, tuple[list[str], Script]] = {
    "a share": (["--max-change", "1"], edited(rows)),
    "numbers": (["--keep", "numbers"], edited(lambda text: text.replace("line 20", "line 21"))),
    "an expression": (["--protect", "line 20.*own"], edited(rows)),
    "a doubtful change": (["--strict"], edited(lambda text: text.replace("line 20", "line 21"))),
    "a remark for lines": ([], edited(lambda text: text[: text.index("line 30")] + "... rest unchanged ...\n")),
    "a lost tail": ([], lambda text, closing: text[: text.index("line 30")] + closing),
}


@pytest.mark.parametrize("mode", ["-w", "-O", "--check", "--diff"])
@pytest.mark.parametrize("rail", RAILS)
def test_what_a_guard_rail_refuses_is_kept_as_it_would_be_and_its_place_is_said(
    shell: Shell, rail: str, mode: str
) -> None:
    flags, script = RAILS[rail]
    path = put("notes of mine.md", TEXT.replace("\n", "\r\n"))
    shell.model.script = script

    done = shell("rewrite", path.name, "do it", mode, *flags)

    assert path.read_bytes() == TEXT.replace("\n", "\r\n").encode()
    assert done.code == 5
    new = script(TEXT, "").replace("\n", "\r\n")
    assert kept(done).read_bytes() == new.encode()
    assert kept(done).name.endswith("-notes_of_mine.md")
    assert stat.S_IMODE(kept(done).stat().st_mode) == 0o600
    assert stat.S_IMODE(refused_folder().stat().st_mode) == 0o700


def test_json_names_the_place(shell: Shell) -> None:
    put("a.txt")
    line, _ = shell("rewrite", "a.txt", "do it", "-w", "--json", "--max-change", "1").lines
    other, _ = shell("rewrite", "a.txt", "do it", "-w", "--json").lines

    assert Path(line["kept"]).read_text() == rows(TEXT)
    assert other["kept"] is None


def test_what_was_cut_off_in_a_pipe_is_kept_as_far_as_it_came(shell: Shell) -> None:
    done = shell("--max-tokens", "1500", "rewrite", "-", "do it", stdin=TEXT.encode())

    assert (done.code, done.out) == (5, b"")
    assert rows(TEXT).startswith(kept(done).read_text())
    assert len(kept(done).read_text()) > 1000


def test_a_sorry_in_the_place_of_the_file_is_kept_and_nothing_at_all_is_not(shell: Shell) -> None:
    put("a.txt")
    shell.model.script = lambda text, closing: "Sorry, I cannot.\n" + closing
    sorry = shell("rewrite", "a.txt", "do it", "-w")
    shell.model.script = lambda text, closing: "\n\n" + closing
    nothing = shell("rewrite", "a.txt", "do it", "-w", "--force")

    assert (sorry.code, nothing.code) == (5, 5)
    assert kept(sorry).read_text() == "Sorry, I cannot.\n"
    assert str(refused_folder()) not in nothing.err


def test_a_character_that_no_text_holds_is_kept_with_the_rest(shell: Shell) -> None:
    put("a.txt", TEXT.encode("latin-1") + "é\n".encode("latin-1"))
    shell.model.script = edited(lambda text: text.replace("line 20", "line \u2014"))

    done = shell("rewrite", "a.txt", "do it", "-w", "--force")

    assert done.code == 5
    assert "line \u2014 of the file" in kept(done).read_text("utf-8")


def test_what_the_user_chose_is_kept_when_the_file_changed_meanwhile(shell: Shell) -> None:
    path = put("a.txt")

    def other(written: int) -> None:
        path.write_text("other\n")

    shell.model.before_forward = other

    done = shell("rewrite", "a.txt", "do it", stdin=b"n\ny\n", terminal=True)

    assert done.code == 7
    assert path.read_text() == "other\n"
    assert kept(done).read_text() == TEXT.replace("line 40 of", "inserted\nline 40 of")


def test_what_no_yes_can_write_is_not_said_to_be_taken_by_force(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put("a.txt", "one\n")
    editor = put("editor.py", "import sys\nopen(sys.argv[1], 'w').close()\n")
    monkeypatch.setenv("VISUAL", f"{sys.executable} {editor.absolute()}")
    shell.model.script = edited(lambda text: text.replace("one", "two"))

    done = shell("rewrite", "a.txt", "do it", stdin=b"e\n", terminal=True)

    assert done.code == 5
    assert "nothing is left of the file" in done.err
    assert "--force" not in done.err
    assert path.read_text() == "one\n"


def test_only_the_last_ones_are_kept_and_for_a_month(shell: Shell) -> None:
    put("a.txt")
    for _ in range(2):
        shell("rewrite", "a.txt", "do it", "-w", "--max-change", "1")
    first, second = refused_folder().iterdir()
    for i in range(MOST):
        (refused_folder() / f"{i}").touch()
    os.utime(first, (0, 0))
    os.utime(second, (1, 1))

    shell("rewrite", "a.txt", "do it", "-w", "--max-change", "1")

    assert len(list(refused_folder().iterdir())) == MOST
    assert not first.exists()
    RefusedStore(refused_folder(), lambda: KEEP_S * 100_000).prune()
    assert list(refused_folder().iterdir()) == []


@pytest.mark.parametrize("broken", ["a file stands there", "nobody may write"])
def test_where_it_cannot_be_kept_the_refusal_is_the_same(shell: Shell, broken: str) -> None:
    path = put("a.txt")
    refused_folder().parent.mkdir(exist_ok=True)
    if broken == "a file stands there":
        refused_folder().write_text("")
    else:
        refused_folder().symlink_to(path.parent / "nowhere" / "at all")

    done = shell("rewrite", "a.txt", "do it", "-w", "--max-change", "1")

    assert done.code == 5
    assert "2 % of the lines change" in done.err or "3 % of the lines change" in done.err
    assert path.read_text() == joined(LINES)
