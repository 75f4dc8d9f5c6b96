"""What a request is about, where it names a function or a class, and what then lies elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from specchat.rewrite.flags import Kind
from specchat.rewrite.hunks import review
from specchat.rewrite.scope import definitions, elsewhere
from specchat.rewrite.source import source_of
from tests.specchat.rewrite.test_flags import flagged

FILES = Path(__file__).parents[2] / "gguf" / "files"

PYTHON = """\
import os


# the first
@cached
def first(x):
    if x:

        return x
    return 0


class Other:
    def second(self, x):
        return first(x)

    def third(self, x):
        return x
""".splitlines()

C = (FILES / "matrix.c").read_text().splitlines()

RUST = """\
pub async fn load(path: &str) -> Vec<u8> {
    read(path)
}

fn save(path: &str) {
    write(path);
}
""".splitlines()


@pytest.mark.parametrize(
    ("texts", "name", "block"),
    [
        (PYTHON, "first", (3, 10)),
        (PYTHON, "Other", (12, 18)),
        (PYTHON, "second", (13, 15)),
        (PYTHON, "third", (16, 18)),
        (C, "multiply", (2, 12)),
        (C, "largest", (13, 24)),
        (RUST, "load", (0, 3)),
        (RUST, "save", (4, 7)),
    ],
)
def test_a_definition_reaches_from_its_comment_to_its_last_line(
    texts: list[str], name: str, block: tuple[int, int]
) -> None:
    assert definitions(texts, name) == [block]


@pytest.mark.parametrize("name", ["x", "return", "cached", "path", "nothing"])
def test_what_is_only_used_is_not_defined(name: str) -> None:
    assert definitions(PYTHON, name) == []
    assert definitions(RUST, name) == []


def far(instruction: str, texts: list[str], line: int, other: str) -> str:
    new = [*texts[:line], other, *texts[line + 1 :]]
    source = source_of("".join(f"{text}\n" for text in texts).encode(), "a")
    [hunk] = review(source, new).hunks
    return elsewhere(texts, hunk, instruction)


@pytest.mark.parametrize(
    "instruction", ["rename x of the function first to y", "rename x of `first` to y", "first() takes y instead of x"]
)
def test_a_change_outside_the_function_that_is_named_is_told(instruction: str) -> None:
    assert far(instruction, PYTHON, 16, "    def third(self, y):") == "first"
    assert far(instruction, PYTHON, 5, "def first(y):") == ""


def test_a_caller_of_the_function_and_an_import_may_change_too() -> None:
    assert far("rename `first` to `one`", PYTHON, 14, "        return one(x)") == ""
    assert far("let `first` log", PYTHON, 0, "import logging") == ""


@pytest.mark.parametrize("instruction", ["put this first", "fix the spelling", "rename `unknown` to `known`", ""])
def test_a_request_that_names_nothing_of_the_file_is_about_all_of_it(instruction: str) -> None:
    assert far(instruction, PYTHON, 16, "    def third(self, y):") == ""


def test_such_a_hunk_is_flagged() -> None:
    new = [line.replace("x", "vector") if "largest" in line else line for line in C]

    [flag] = flagged(C, new, instruction="Rename the parameter `x` of the function `multiply` to `vector`.")

    assert (flag.kind, flag.line) == (Kind.ELSEWHERE, 15)
    assert "multiply" in flag.reason
