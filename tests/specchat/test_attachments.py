"""Attachments: which files can be one, what the model sees of them, and how they are found."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat import attachments
from specchat.attachments import (
    Attachment,
    complete_path,
    find_files,
    fuzzy,
    is_typed_path,
    label,
    matched,
    read_attachment,
    typed_path,
    with_attachments,
)
from specchat.errors import InputRefused

NAMES = ["app/cache.py", "app/old/cached_items.py", "docs/my cache.md", "tests/test_cache.py", "cart/cli/hooks.py"]


def write(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")


def git(root: Path, *args: str) -> None:
    subprocess.run(["git", *args], cwd=root, check=True, capture_output=True)


def test_a_message_is_each_attachment_under_its_name_and_then_the_text() -> None:
    joined = with_attachments("why", [Attachment("a.md", "one\n"), Attachment("b.md", "two")])

    assert joined == "[a.md]\none\n\n\n[b.md]\ntwo\n\nwhy"
    assert with_attachments("", [Attachment("a.md", "one\n")]) == "[a.md]\none\n"


def test_a_message_without_attachments_is_its_text() -> None:
    assert with_attachments("why ", []) == "why "


def test_a_file_is_read_without_its_byte_order_mark_and_keeps_its_line_ends(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_bytes(b"\xef\xbb\xbfa\r\nb\n")

    assert read_attachment(tmp_path / "notes.md") == Attachment("notes.md", "a\r\nb\n")


@pytest.mark.parametrize(
    ("data", "said"),
    [(b"a\0b", "holds NUL bytes"), (b"caf\xe9", "is not UTF-8 text (byte 3)"), (None, "No such file")],
)
def test_what_is_no_text_is_refused_in_one_line_that_names_it(tmp_path: Path, data: bytes | None, said: str) -> None:
    if data is not None:
        (tmp_path / "odd").write_bytes(data)

    with pytest.raises(InputRefused) as refusal:
        read_attachment(tmp_path / "odd")

    assert said in str(refusal.value)
    assert str(tmp_path / "odd") in str(refusal.value)


def test_a_folder_and_an_impossible_path_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "a\0b"):
        with pytest.raises(InputRefused):
            read_attachment(path)


def test_a_file_beyond_every_context_is_refused_without_being_read_whole(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(attachments, "MOST_BYTES", 1 << 20)
    with (tmp_path / "endless").open("wb") as file:
        file.truncate(1 << 40)  # sparse; reading it would take all memory

    with pytest.raises(InputRefused, match="larger than 1 MiB"):
        read_attachment(tmp_path / "endless")


@given(st.text(st.characters(codec=None, exclude_characters="/")))
def test_a_label_is_one_line_that_can_be_encoded_and_steers_nothing(name: str) -> None:
    shown = label(name)

    shown.encode()
    assert len(shown.splitlines()) <= 1
    assert not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in shown)


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="this system refuses such names")
def test_a_file_with_a_hostile_name_is_found_and_attached_under_a_harmless_one(tmp_path: Path) -> None:
    name = os.fsdecode(b"[bold\n\x1b]0;x\x07caf\xe9")
    write(tmp_path, name)

    assert find_files(tmp_path) == [name]
    assert read_attachment(tmp_path / name).name == "[bold\u240a\u241b]0;x\u2407caf\ufffd"


def test_files_are_listed_near_ones_first_without_hidden_and_made_ones(tmp_path: Path) -> None:
    write(tmp_path, "b/deep/c.py", "b/a.py", "z.md", "A.md", ".secret", ".venv/x.py", "node_modules/m/index.js")

    assert find_files(tmp_path) == ["A.md", "z.md", "b/a.py", "b/deep/c.py"]


def test_a_huge_folder_is_left_out_unless_it_is_the_one_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(attachments, "MOST_ENTRIES", 3)
    write(tmp_path, "few/a", "many/a", "many/b", "many/c", "many/d")

    assert find_files(tmp_path) == ["few/a"]
    assert len(find_files(tmp_path / "many")) == 4


def test_a_list_that_is_cut_has_the_near_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(attachments, "MOST_FILES", 2)
    write(tmp_path, "a/b/c/far", "z/near", "here")

    assert find_files(tmp_path) == ["here", "z/near"]


def test_a_listing_that_nobody_wants_any_more_ends(tmp_path: Path) -> None:
    write(tmp_path, "a", "b")

    assert find_files(tmp_path, lambda: False) == []


def test_a_link_to_a_folder_above_is_not_followed_round_and_round(tmp_path: Path) -> None:
    write(tmp_path, "sub/a")
    (tmp_path / "sub" / "up").symlink_to(tmp_path, target_is_directory=True)

    assert find_files(tmp_path) == ["sub/a"]


def test_no_folder_has_no_files(tmp_path: Path) -> None:
    assert find_files(tmp_path / "absent") == []


def test_git_says_what_is_ignored_and_what_is_gone(tmp_path: Path) -> None:
    write(tmp_path, "kept.py", "gone.py", "out.log", ".github/ci.yml", "new.py")
    (tmp_path / ".gitignore").write_text("*.log\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "kept.py", "gone.py", ".github", ".gitignore")
    (tmp_path / "gone.py").unlink()

    assert find_files(tmp_path) == [".gitignore", "kept.py", "new.py", ".github/ci.yml"]


def test_the_configuration_of_a_folder_from_elsewhere_runs_no_program(tmp_path: Path) -> None:
    write(tmp_path, "a.py")
    git(tmp_path, "init", "-q")
    git(tmp_path, "config", "core.fsmonitor", "touch ran; false")

    assert find_files(tmp_path) == ["a.py"]


def test_an_ignored_folder_lists_its_own_files(tmp_path: Path) -> None:
    write(tmp_path, "build/a.txt")
    (tmp_path / ".gitignore").write_text("build\n")
    git(tmp_path, "init", "-q")

    assert find_files(tmp_path / "build") == ["a.txt"]


def test_a_name_is_found_by_its_beginning_before_its_middle_before_scattered_letters() -> None:
    assert fuzzy("cache", NAMES) == [
        "app/cache.py",
        "app/old/cached_items.py",
        "docs/my cache.md",
        "tests/test_cache.py",
    ]
    assert fuzzy("cch", NAMES)[-1] == "cart/cli/hooks.py"


def test_blanks_in_a_query_stand_between_parts_of_a_path_or_for_themselves() -> None:
    assert fuzzy("app items", NAMES) == ["app/old/cached_items.py"]
    assert fuzzy("my cache", NAMES) == ["docs/my cache.md"]


def test_an_empty_query_finds_everything_in_its_order() -> None:
    assert fuzzy(" ", NAMES) == NAMES


@given(st.lists(st.text("abAB/. ", min_size=1, max_size=8), min_size=1, unique=True), st.data())
def test_a_name_in_full_finds_itself_first(names: list[str], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(names).filter(lambda name: bool(name.strip())))

    assert fuzzy(name, names)[0] == name


@given(st.text("abcİ/ ", max_size=5), st.lists(st.text("abcİ/ ", max_size=12)))
def test_what_is_found_holds_the_letters_in_order(query: str, names: list[str]) -> None:
    for name in fuzzy(query, names):
        letters = iter(name.lower())
        assert all(letter in letters for letter in query.lower().replace(" ", ""))


@given(st.text("abc/ ", max_size=5), st.text("abcABC/ ", max_size=12))
def test_the_letters_that_matched_are_where_it_is_said(query: str, name: str) -> None:
    places = matched(query, name)

    assert places == sorted(set(places))
    if places:
        found = "".join(name[place] for place in places).lower()
        assert found in (query.lower(), query.lower().replace(" ", ""))
    else:
        assert not query.strip() or not fuzzy(query, [name])


@pytest.mark.parametrize("text", ["/etc/hosts", "~", "~/x", "..", "../x", "./x", "C:\\x", "c:/x"])
def test_a_path_of_its_own_is_known_by_its_beginning(text: str) -> None:
    assert is_typed_path(text)


@pytest.mark.parametrize("text", ["", "x", "a/b", "..x", ".x", "c:"])
def test_letters_of_a_name_are_no_path(text: str) -> None:
    assert not is_typed_path(text)


def test_a_typed_path_is_seen_from_the_folder_and_knows_the_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))

    assert typed_path(tmp_path, "../x") == tmp_path / ".." / "x"
    assert typed_path(tmp_path, "~/x") == tmp_path / "home" / "x"
    assert typed_path(tmp_path, str(tmp_path / "y")) == tmp_path / "y"


def test_a_path_that_is_being_typed_goes_on_with_what_is_there(tmp_path: Path) -> None:
    write(tmp_path, "work/Notes/a.md", "work/notes.txt", "work/.hidden", "work/other")
    start = f"{tmp_path}/work/"

    assert complete_path(tmp_path, f"{start}no") == [f"{start}Notes/", f"{start}notes.txt"]
    assert complete_path(tmp_path, "./work/.") == ["./work/.hidden"]
    assert complete_path(tmp_path / "work", "..") == ["../work/"]
    assert complete_path(tmp_path, f"{tmp_path}/absent/x") == []
