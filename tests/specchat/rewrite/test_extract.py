"""What of a reply is the file, what is not, and when that is left to the person."""

from __future__ import annotations

import pytest

from specchat.rewrite.extract import Extracted, extract
from specchat.rewrite.prompt import ask_for
from speculation.types import Finish

README = ["# Title", "```sh", "make", "```", "end"]


def taken(reply: str, original: list[str], finish: Finish | None = Finish.END) -> Extracted:
    return extract(reply, ask_for(original, "do it"), original, finish)


def test_what_is_stripped_is_said() -> None:
    found = taken("<think>hm</think>\nSure:\n<file>\nx = 2\n</file>\nDone!", ["x = 1"])

    assert found.lines == ("x = 2",)
    assert [each.what for each in found.stripped] == ["text before the file", "text after the file"]
    assert "hm" in found.stripped[0].text
    assert "Done!" in found.stripped[1].text


def test_a_line_knows_where_it_begins_in_the_reply() -> None:
    reply = "Sure:\n<file>\n```\none\ntwo\n```\n</file>"
    found = taken(reply, ["one", "two"])

    assert [reply[offset:][:3] for offset in found.offsets] == list(found.lines)


@pytest.mark.parametrize("finish", [Finish.LENGTH, Finish.CONTEXT, None])
def test_a_reply_that_was_cut_off_is_not_complete(finish: Finish | None) -> None:
    found = taken("<file>\none\ntw", ["one", "two"], finish)

    assert found.lines == ("one", "tw")
    assert not found.complete


def test_a_reply_with_its_closing_mark_is_complete_even_at_the_limit() -> None:
    assert taken("<file>\none\n</file>", ["one"], Finish.LENGTH).complete


def test_a_reply_that_ends_without_its_mark_is_complete_but_not_closed() -> None:
    found = taken("<file>\none\n", ["one"])

    assert (found.complete, found.closed) == (True, False)


def test_thinking_that_never_ends_is_not_the_file() -> None:
    found = taken("<think>I should begin with\n", ["one"], Finish.LENGTH)

    assert found.lines == ()
    assert not found.complete


def test_a_cut_reply_loses_the_fence_that_it_begins_with() -> None:
    assert taken("```python\nimport os\nx", ["import os", "x = 1"], Finish.LENGTH).lines == ("import os", "x")


@pytest.mark.parametrize(
    "lines",
    [
        ["```sh", "make install", "```", *README],
        [*README, "```", "more", "```"],
        ["```sh", "make install", "```", "# Title", "```sh", "make", "```", "END"],
        ["```", "a", "```", "# Other", "```", "b", "```"],
    ],
)
@pytest.mark.parametrize("reply", ["<file>\n{}\n</file>", "{}"])
def test_a_block_that_the_model_adds_is_no_wrapper(lines: list[str], reply: str) -> None:
    assert taken(reply.format("\n".join(lines)), README).lines == tuple(lines)


def test_an_edited_file_in_a_fence_with_talk_behind_it_is_found() -> None:
    reply = "```markdown\n# Title\n```sh\nmake all\n```\nend\n```\n\nI changed make to make all.\n"

    assert taken(reply, README).lines == ("# Title", "```sh", "make all", "```", "end")


def test_a_greeting_of_the_file_itself_stays_when_it_is_edited() -> None:
    found = taken("Here is the report:\n\nAll well.\n", ["Here's the raport:", "", "All well."])

    assert found.lines == ("Here is the report:", "", "All well.")


def test_a_letter_keeps_its_last_paragraph() -> None:
    found = taken("Dear Ann,\n\nI've attached it.\n", ["Dear Ann,", "", "I have attach it."])

    assert found.lines == ("Dear Ann,", "", "I've attached it.")


def test_an_indented_closing_mark_adds_no_line() -> None:
    assert taken("<file>\none\n  </file>", ["one"]).lines == ("one",)


def test_the_first_line_keeps_its_indentation_beside_the_mark() -> None:
    assert taken("<file>    one\n</file>", ["    one"]).lines == ("    one",)


def test_blank_lines_around_a_reply_without_marks_are_not_the_file() -> None:
    assert taken("\n\none\n\n\n", ["one"]).lines == ("one",)


def test_blank_lines_inside_the_marks_are_the_file() -> None:
    assert taken("<file>\n\none\n\n</file>", ["one"]).lines == ("", "one", "")


def test_a_second_copy_behind_the_first_is_talk() -> None:
    found = taken("<file>\none\n</file>\nAgain:\n<file>\ntwo\n</file>", ["one"])

    assert found.lines == ("one",)


def test_a_path_in_the_reply_is_nothing_but_text() -> None:
    found = taken('<file name="../../etc/passwd">\none\n</file>', ["one"])

    assert found.lines == ("one",)
