"""`specchat chats`, as it is typed."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from specchat.cli import main
from specchat.folders import history_path, texts_folder
from specchat.history.store import Store
from tests.specchat.history.making import said


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECCHAT_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("SPECCHAT_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def store() -> Store:
    """With three chats."""
    with Store.open(history_path()) as opened:
        opened.put(said("why is the sky blue?", "light is scattered", title="The sky", changed=1e9))
        opened.put(said("and the sea?", title="The sea", changed=2e9))
        opened.put(replace(said("\x1b[31mred", title="Red\x1b[0m\nline"), changed=3e9))
        return opened


def ids() -> list[int]:
    with Store.open(history_path()) as opened:
        return [chat.id for chat in opened.chats()]


def out(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out


@pytest.mark.parametrize("argv", [["chats"], ["chats", "list"]])
def test_chats_are_listed(store: Store, capsys: pytest.CaptureFixture[str], argv: list[str]) -> None:
    assert main(argv) == 0

    lines = out(capsys).splitlines()
    assert [line.split()[0] for line in lines] == ["3", "2", "1"]
    assert lines[2].endswith("2 messages   2.50  The sky")
    assert "\x1b" not in "".join(lines)


@pytest.mark.parametrize("argv", [["chats", "--limit", "1"], ["chats", "list", "--limit", "1"]])
def test_a_list_can_be_short(store: Store, capsys: pytest.CaptureFixture[str], argv: list[str]) -> None:
    assert main(argv) == 0

    assert len(out(capsys).splitlines()) == 1


@pytest.mark.parametrize("argv", [["chats", "--json"], ["chats", "list", "--json"]])
def test_a_list_can_be_json(store: Store, capsys: pytest.CaptureFixture[str], argv: list[str]) -> None:
    assert main(argv) == 0

    assert [chat["id"] for chat in json.loads(out(capsys))] == [3, 2, 1]


def test_an_empty_list_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chats"]) == 0

    assert capsys.readouterr().err == "no chat is kept yet\n"


@pytest.mark.parametrize("wanted", ["1", "The sk", "the sky"])
def test_a_chat_is_shown_by_number_or_title(store: Store, capsys: pytest.CaptureFixture[str], wanted: str) -> None:
    assert main(["chats", "show", wanted]) == 0

    assert "## You\n\nwhy is the sky blue?\n" in out(capsys)


def test_the_last_chat_is_shown_without_steering_the_terminal(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chats", "show", "last"]) == 0

    text = out(capsys)
    assert "[31mred" in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("wanted", "complaint"),
    [
        ("9", "9 is no chat"),
        ("The", r"2 chats \(2, 1\): give a number"),
        ("none", "none is no chat"),
        ("", "is no chat"),
    ],
)
def test_a_chat_that_cannot_be_told_is_refused(
    store: Store, capsys: pytest.CaptureFixture[str], wanted: str, complaint: str
) -> None:
    assert main(["chats", "show", wanted]) == 3

    assert re.search(complaint, capsys.readouterr().err)


def test_words_are_found(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chats", "search", "scattered"]) == 0

    assert re.fullmatch(r"1  - +The sky +2: light is scattered\n", out(capsys))


def test_words_in_quotes_stand_side_by_side(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chats", "search", "sky blue", "--json"]) == 0
    assert [hit["turn"] for hit in json.loads(out(capsys))] == [1]

    assert main(["chats", "search", "blue sky"]) == 0
    assert capsys.readouterr() == ("", "nothing found\n")


def test_a_chat_is_renamed(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chats", "rename", "1", "  Another\n title"]) == 0
    assert main(["chats", "rename", "1", " "]) == 2

    main(["chats"])
    assert "Another title" in out(capsys)


def test_nothing_is_deleted_without_a_yes(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chats", "delete", "1", "2"]) == 6

    assert 'about 1 "The sky", 2 "The sea"; add -y' in capsys.readouterr().err
    assert ids() == [3, 2, 1]


def test_enter_alone_deletes_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specchat.history.command.can_ask", lambda: True)
    monkeypatch.setattr("specchat.console.can_ask", lambda: True)
    answers = iter(["", "y"])
    monkeypatch.setattr("specchat.console.answer_to", lambda _: next(answers))

    assert main(["chats", "delete", "1"]) == 6
    assert ids() == [3, 2, 1]

    assert main(["chats", "delete", "1"]) == 0
    assert ids() == [3, 2]


def test_chats_are_deleted(store: Store) -> None:
    assert main(["chats", "delete", "-y", "1", "The sea", "1"]) == 0

    assert ids() == [3]


@pytest.mark.parametrize("argv", [["delete", "1"], ["purge", "--older-than", "1y"]], ids=["delete", "purge"])
def test_what_heads_read_from_chats_goes_with_any_chat_and_what_models_wrote_stays(
    store: Store, argv: list[str]
) -> None:
    read, cut_off, written = (texts_folder() / "m" / name for name in ("chats", "chats.1f.gone", "written"))
    for folder in (read, cut_off, written):
        folder.mkdir(parents=True)
        (folder / "text-00001.npz").write_bytes(b"words")

    assert main(["chats", *argv, "-y"]) == 0

    assert sorted(texts_folder().rglob("*.npz")) == [written / "text-00001.npz"]
    assert list((texts_folder() / "m").iterdir()) == [written]


def test_chats_whose_words_cannot_all_be_deleted_are_told_of_in_one_line(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(folder: Path) -> None:
        raise PermissionError(13, "Permission denied", str(folder))

    (texts_folder() / "m" / "chats").mkdir(parents=True)
    monkeypatch.setattr("specchat.heads.places.shutil.rmtree", refused)

    assert main(["chats", "delete", "1", "-y"]) == 1

    assert re.fullmatch(
        r"specchat: the chats are deleted, and what heads read from chats is not: \S+/m/chats\S+: Permission denied\n",
        capsys.readouterr().err,
    )
    assert ids() == [3, 2]


def test_one_wrong_name_deletes_nothing(store: Store) -> None:
    assert main(["chats", "delete", "-y", "1", "none"]) == 3

    assert ids() == [3, 2, 1]


def test_old_chats_are_purged(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chats", "purge", "--older-than", "1y", "-y"]) == 0

    assert capsys.readouterr().err == "1 chat deleted\n"
    assert ids() == [3, 2]
    assert main(["chats", "purge", "--older-than", "1y", "-y"]) == 0


@pytest.mark.parametrize("age", ["90", "d", "-1d", "1.5d", "90 days"])
def test_an_age_must_be_a_number_of_days_weeks_or_years(store: Store, age: str) -> None:
    assert main(["chats", "purge", f"--older-than={age}", "-y"]) == 2

    assert len(ids()) == 3


@pytest.mark.parametrize(
    ("flags", "begin"), [([], "# The sky"), (["--format", "json"], "{"), (["--format", "html"], "<!DOCTYPE html>")]
)
def test_a_chat_is_exported(store: Store, capsys: pytest.CaptureFixture[str], flags: list[str], begin: str) -> None:
    assert main(["chats", "export", "1", *flags]) == 0

    assert out(capsys).startswith(begin)


@pytest.mark.parametrize(("name", "begin"), [("a.md", b"# "), ("a.html", b"<!DOC"), ("a.json", b"{"), ("a.txt", b"# ")])
def test_the_name_of_the_file_says_the_form(store: Store, tmp_path: Path, name: str, begin: bytes) -> None:
    assert main(["chats", "export", "1", "-o", str(tmp_path / name)]) == 0

    assert (tmp_path / name).read_bytes().startswith(begin)
    assert [path.name for path in tmp_path.iterdir()] != [name]


def test_a_file_that_cannot_be_written_is_said_in_a_line(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["chats", "export", "1", "-o", str(tmp_path / "none" / "a.md")]) == 5

    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("is_archive", [False, True])
def test_chats_are_imported_from_a_pipe(
    store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, is_archive: bool
) -> None:
    main(["chats", "export", "1", "--format", "json"])
    data = out(capsys).encode()
    if is_archive:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("conversations.json", data)
        data = packed.getvalue()
    main(["chats", "delete", "1", "-y"])
    reading, writing = os.pipe()
    with open(writing, "wb") as pipe:
        pipe.write(data)

    with open(reading) as piped:
        monkeypatch.setattr(sys, "stdin", piped)
        assert main(["chats", "import", "-"]) == 0

    assert len(ids()) == 3
    assert "1 chat taken up" in capsys.readouterr().err


def test_a_pipe_without_chats_is_refused_by_that_name(
    store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"no chats")))

    assert main(["chats", "import", "-"]) == 3
    assert "standard input, line 1" in capsys.readouterr().err


def test_what_was_exported_is_imported_once(store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "a.json")
    main(["chats", "export", "1", "-o", file])
    assert main(["chats", "import", file]) == 0
    assert "0 chats taken up; 1 was here already" in capsys.readouterr().err

    main(["chats", "delete", "1", "-y"])
    assert main(["chats", "import", file]) == 0

    assert capsys.readouterr().err.endswith("1 chat taken up\n")
    assert len(ids()) == 3


def test_what_was_taken_up_before_the_damage_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from specchat.history.portable import to_json

    (tmp_path / "a.json").write_text(f"[{json.dumps(to_json(said('one')))}, 5]")

    assert main(["chats", "import", str(tmp_path / "a.json")]) == 3

    error = capsys.readouterr().err
    assert "1 chat taken up before this:" in error
    assert "a chat must be an object" in error
    assert len(ids()) == 1


@pytest.mark.parametrize("argv", [["chats", "show"], ["chats", "nothing"], ["chats", "export", "1", "--format", "pdf"]])
def test_wrong_words_are_a_usage_error(argv: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(argv)

    assert ended.value.code == 2


def test_a_limit_below_one_is_refused(store: Store) -> None:
    assert main(["chats", "--limit", "0"]) == 2
