"""The message that asks for a file again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from specchat.rewrite.prompt import ask_for
from specchat.rewrite.source import joined
from tests.specchat.rewrite.files import AWKWARD


@given(st.lists(st.sampled_from(AWKWARD)), st.sampled_from(AWKWARD), st.sampled_from(AWKWARD))
def test_the_mark_stands_nowhere_in_what_the_user_gave(lines: list[str], instruction: str, title: str) -> None:
    asked = ask_for(lines, instruction, title)

    assert all(
        f"{mark}{asked.tag}" not in text.lower() for mark in ("<", "</") for text in (*lines, instruction, title)
    )


@given(st.lists(st.sampled_from(AWKWARD)))
def test_the_file_stands_where_the_message_says(lines: list[str]) -> None:
    asked = ask_for(lines, "do it")

    assert asked.message[asked.start : asked.end] == joined(lines)


def test_one_request_begins_alike_for_all_files() -> None:
    one, other = ask_for(["a"], "fix it", "a.py"), ask_for(["b"], "fix it", "b.py")

    common = one.message.index("a.py")
    assert one.message[:common] == other.message[:common]
    assert "fix it" in one.message[:common]
