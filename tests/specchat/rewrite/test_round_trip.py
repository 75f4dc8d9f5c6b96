"""A model that copies changes no bit of any file, whatever it wraps the file in."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings

from specchat.errors import InputRefused
from specchat.rewrite.extract import extract
from specchat.rewrite.hunks import review
from specchat.rewrite.merge import merge
from specchat.rewrite.prompt import ask_for
from specchat.rewrite.source import SourceFile, source_of
from tests.specchat.rewrite.files import REPLIES, copied, encoded, files


def rewritten(source: SourceFile, kind: str) -> bytes:
    asked = ask_for(source.texts, "copy it", source.name)
    reply, finish = REPLIES[kind](asked, copied(asked))
    return merge(source, extract(reply, asked, source.texts, finish).lines)


@given(files())
@example(b"")
@example(b"\n")
@example(b"\r")
@example(b"\xef\xbb\xbf")
@example(b"\xff\xfe")
@example(b"x" * 200_000)
@example("é, \t".encode("latin-1") * 50_000)
@example(b"</file>\n" * 300)
@example(b"```\n")
@example(b"a\x00b\n")
@settings(max_examples=300)
def test_a_copied_file_is_bit_identical_or_was_refused(data: bytes) -> None:
    try:
        source = source_of(data, "a.txt")
    except InputRefused:
        return

    assert rewritten(source, "as asked") == data


@given(encoded())
@settings(max_examples=300)
def test_text_without_nul_is_not_refused(data: bytes) -> None:
    assert source_of(data, "a.txt").data == data


@pytest.mark.parametrize("kind", REPLIES)
@given(data=encoded())
@settings(max_examples=150)
def test_a_wrapper_leaves_no_trace(kind: str, data: bytes) -> None:
    source = source_of(data, "a.txt")

    assert rewritten(source, kind) == data


@given(encoded())
def test_a_copied_file_has_no_hunks(data: bytes) -> None:
    source = source_of(data, "a.txt")

    assert review(source, source.texts).hunks == ()
