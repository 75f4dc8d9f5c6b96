"""A file as bytes and lines, and what is refused before a model runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given

from specchat.errors import InputRefused, UsageError
from specchat.rewrite.source import read_source, source_of
from tests.specchat.rewrite.files import encoded, spoilt


@given(encoded())
def test_the_mark_and_the_lines_are_all_the_bytes(data: bytes) -> None:
    source = source_of(data, "a")

    assert source.mark + b"".join(line.raw for line in source.lines) == data


@given(spoilt())
def test_bytes_are_kept_or_refused_in_one_line(data: bytes) -> None:
    said, kept = "", data
    try:
        source = source_of(data, "a")
        kept = source.mark + b"".join(line.raw for line in source.lines)
    except InputRefused as error:
        said = str(error)

    assert (kept, said.count("\n")) == (data, 0)


def test_only_line_ends_end_lines() -> None:
    source = source_of("a\x0bb\x0cc\u2028d\u0085e\r\nf\rg\n\nh".encode(), "a")

    assert source.texts == ("a\x0bb\x0cc\u2028d\u0085e", "f", "g", "", "h")
    assert [line.end for line in source.lines] == ["\r\n", "\r", "\n", "\n", ""]


@pytest.mark.parametrize(
    ("data", "encoding", "text"),
    [
        (b"\xef\xbb\xbfa", "utf-8", "a"),
        (b"\xff\xfea\0", "utf-16-le", "a"),
        (b"\xfe\xff\0a", "utf-16-be", "a"),
        (b"caf\xe9", "latin-1", "café"),
        (b"\x93caf\xe9\x94", "cp1252", "“café”"),
        (b"caf\xc3\xa9", "utf-8", "café"),
    ],
)
def test_an_encoding_is_found(data: bytes, encoding: str, text: str) -> None:
    source = source_of(data, "a")

    assert (source.encoding, source.texts) == (encoding, (text,))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"a\0b", "NUL"),
        (b"\xff\xfea", "utf-16-le"),
        (b"\xff\xfe\x00\xd8", "utf-16-le"),
        (b"\xff\xfe\0\0a\0\0\0", "NUL"),
        (b"\xef\xbb\xbf\xff", "utf-8"),
        (b"\xff\x01\x02", "not text"),
        (b"\x81\xff", "not text"),
        (b"\x00\xff", "NUL"),
    ],
)
def test_what_is_no_text_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(InputRefused, match=said):
        source_of(data, "a")


def test_a_file_over_the_limit_is_refused() -> None:
    with pytest.raises(InputRefused, match="larger than 10 bytes"):
        source_of(b"x" * 11, "a", most_bytes=10)


def test_an_encoding_that_the_user_names_is_used() -> None:
    assert source_of("表\n".encode("shift_jis"), "a", encoding="shift_jis").texts == ("表",)


def test_the_name_of_a_marked_encoding_keeps_the_mark() -> None:
    source = source_of(b"\xff\xfea\0", "a", encoding="utf-16")

    assert (source.mark, source.encoding) == (b"\xff\xfe", "utf-16-le")


@pytest.mark.parametrize("encoding", ["no-such", "rot13", "base64", "a\0b"])
def test_an_encoding_that_is_none_is_a_wrong_option(encoding: str) -> None:
    with pytest.raises(UsageError):
        source_of(b"a", "a", encoding=encoding)


@pytest.mark.parametrize(
    ("data", "encoding"),
    [(b"+AGE-\n", "utf-7"), (b"a\0\n\0b\0", "utf-16"), (b"a\nb", "utf-8-sig")],
)
def test_an_encoding_that_would_change_bytes_is_refused(data: bytes, encoding: str) -> None:
    with pytest.raises(InputRefused, match="byte for byte"):
        source_of(data, "a", encoding=encoding)


def test_a_file_is_read_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"a\r\n")
    (tmp_path / "link").symlink_to("a.txt")

    source = read_source(tmp_path / "link")

    assert source.data == b"a\r\n"
    assert source.place is not None
    assert source.place.named == tmp_path / "link"
    assert source.place.real == (tmp_path / "a.txt").resolve()


@pytest.mark.parametrize("name", ["missing", "folder", "missing/a", "loop", "pipe", "a\0b", "dangling"])
def test_what_is_no_file_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(InputRefused) as raised:
        read_source(tmp_path / name)

    assert "\n" not in str(raised.value)


def test_a_device_is_refused() -> None:
    with pytest.raises(InputRefused, match="not a regular file"):
        read_source(Path("/dev/zero"))


def test_a_name_cannot_steer_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "a\x1b[31m\nb").write_text("x")

    assert not set("\x1b\n") & set(read_source(tmp_path / "a\x1b[31m\nb").name)


def test_a_name_that_is_no_utf8_is_read(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.txt"))
    path.write_text("x")

    assert read_source(path).texts == ("x",)


def test_a_file_behind_a_link_is_known_to_stand_outside(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "secret").write_text("x")
    (tmp_path / "project" / "link").symlink_to("../secret")
    (tmp_path / "project" / "own").write_text("x")

    assert read_source(tmp_path / "project" / "link").outside(tmp_path / "project")
    assert read_source(tmp_path / "project" / ".." / "secret").outside(tmp_path / "project")
    assert not read_source(tmp_path / "project" / "own").outside(tmp_path / "project")
