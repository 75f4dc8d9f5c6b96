"""The lines in which a TOML text says things."""

from __future__ import annotations

import string
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.toml_lines import line_of

TEXT = """\
# A comment, then [not.a.table]
top = 1

[[model]]
id = "a"
list = [
    "[[model]]",  # in a text
    "b",
]
inline = { x = 1, deep.y = 2 }
dotted."a key".z = 3
many = [{ n = 1 },
  { n = 2 }]
[model.file]
text = \"\"\"
[[model]]
id = "no"
\"\"\"
[[model.source]]
kind = 1
[[model.source]]
kind = 2
[model.source.inner]
deep = 3

[[ model ]]
id = "b"
[[model.source]]
kind = 3
[last]
"""


@pytest.mark.parametrize(
    ("place", "line"),
    [
        (("top",), 2),
        (("model",), 4),
        (("model", 0), 4),
        (("model", 0, "id"), 5),
        (("model", 0, "list"), 6),
        (("model", 0, "list", 1), 6),
        (("model", 0, "inline", "x"), 10),
        (("model", 0, "inline", "deep", "y"), 10),
        (("model", 0, "dotted", "a key"), 11),
        (("model", 0, "dotted", "a key", "z"), 11),
        (("model", 0, "many", 1, "n"), 12),
        (("model", 0, "file"), 14),
        (("model", 0, "file", "text"), 15),
        (("model", 0, "source", 0, "kind"), 20),
        (("model", 0, "source", 1), 21),
        (("model", 0, "source", 1, "kind"), 22),
        (("model", 0, "source", 1, "inner", "deep"), 24),
        (("model", 1), 26),
        (("model", 1, "id"), 27),
        (("model", 1, "source", 0, "kind"), 29),
        (("last",), 30),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_each_place_has_the_line_of_the_statement_that_makes_it(
    place: tuple[str | int, ...], line: int, newline: str
) -> None:
    assert line_of(TEXT.replace("\n", newline), place) == line


@pytest.mark.parametrize(
    ("place", "line"),
    [
        (("model", 1, "title"), 26),
        (("model", 0, "source", 1, "packages"), 21),
        (("model", 0, "file", "name"), 14),
        (("last", "deep", "er"), 30),
        (("model", 2, "id"), 4),
    ],
)
def test_what_is_not_there_has_the_line_of_what_is_around_it(place: tuple[str | int, ...], line: int) -> None:
    assert line_of(TEXT, place) == line


def test_what_is_nowhere_has_no_line() -> None:
    assert line_of(TEXT, ("schema",)) is None
    assert line_of("", ("schema",)) is None
    assert line_of(TEXT, ()) is None


names = st.text(string.ascii_lowercase, min_size=1, max_size=3)
texts = st.text(st.sampled_from("ab[]{}=#'\n\\ "), max_size=12)
values = st.one_of(
    st.integers(0, 9).map(str),
    texts.map(lambda text: "'''" + text.replace("'", "") + "'''"),
    st.lists(texts.map(lambda text: "'''" + text.replace("'", "") + "'''"), max_size=3).map(
        lambda items: "[\n" + ",\n".join(items) + "\n]"
    ),
)
tables = st.lists(st.dictionaries(names, values, max_size=4), max_size=4)


@given(tables, tables)
def test_in_any_text_of_tables_each_key_is_found_where_it_was_written(
    first: list[dict[str, str]], second: list[dict[str, str]]
) -> None:
    lines: list[str] = []
    wanted: dict[tuple[str | int, ...], int] = {}
    for array, entries in (("one", first), ("two", second)):
        for number, entry in enumerate(entries):
            wanted[array, number] = len(lines) + 1
            lines.append(f"[[{array}]]")
            for name, value in entry.items():
                wanted[array, number, name] = len(lines) + 1
                lines += f"{name} = {value}".split("\n")
    text = "\n".join(lines)
    tomllib.loads(text)

    assert {place: line_of(text, place) for place in wanted} == wanted
