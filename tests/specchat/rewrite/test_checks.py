"""What is never written, and what only after a yes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given

from specchat.errors import UsageError
from specchat.rewrite.checks import Finding, Kept, Problem, check, rails
from specchat.rewrite.merge import changes
from specchat.rewrite.placeholders import is_placeholder
from specchat.rewrite.source import source_of
from tests.specchat.rewrite.files import encoded

CODE = [f"def f{i}(x):\n    return x + {i}\n" for i in range(40)]


def found(old: str | bytes, new: Sequence[str], complete: bool = True, **guard: Any) -> list[Finding]:
    source = source_of(old.encode() if isinstance(old, str) else old, "a")
    return check(source, changes(source, new), rails(**guard), complete=complete)


def problems(old: str | bytes, new: Sequence[str], complete: bool = True, **guard: Any) -> set[Problem]:
    return {finding.problem for finding in found(old, new, complete, **guard)}


@given(encoded())
def test_a_copy_has_no_findings(data: bytes) -> None:
    source = source_of(data, "a")

    assert check(source, changes(source, source.texts)) == []


def test_a_cut_reply_is_never_written() -> None:
    (finding,) = [each for each in found("a\nb\n", ["a", "b"], complete=False) if each.never]

    assert finding.problem is Problem.TRUNCATED


@pytest.mark.parametrize("new", [[], [""], [" ", "\t"]])
def test_an_empty_reply_is_never_written(new: list[str]) -> None:
    (finding,) = found("a\nb\n", new)

    assert (finding.problem, finding.never) == (Problem.EMPTY, True)


def test_an_empty_file_may_stay_empty() -> None:
    assert found("", []) == []


REMARKS = [
    "# ... rest of the code unchanged ...",
    "// ... existing code ...",
    "    # rest of the code remains the same",
    "<!-- rest of file unchanged -->",
    "... (rest of the file is unchanged) ...",
    "    # ... (other methods remain unchanged)",
    "/* ... rest of the implementation ... */",
    "The rest of the file stays the same.",
    "[... unchanged ...]",
    "// other functions unchanged",
    "# (unchanged)",
    "// code omitted for brevity",
    "...rest unchanged...",
    "# Rest bleibt unverändert",
    "# ... remaining methods ...",
    "// rest of your code here",
    "# all other functions remain the same",
    "{/* ... existing code ... */}",
    "// 其余代码不变",
]
NO_REMARKS = [
    "x = 1",
    "    ...",
    "def f(x): ...",
    "The remaining lines are printed in order.",
    "    return the_rest",
    "# unchanged since 1994, see the appendix",
    "    return unchanged",
    "print('...')",
    "# the original value is kept for comparison",
    "He waited... the rest is silence.",
    "# ... and so on",
    "",
    "---",
]


@pytest.mark.parametrize("remark", REMARKS)
def test_a_remark_that_stands_for_lines_is_found(remark: str) -> None:
    lines = "".join(CODE).splitlines()
    (finding,) = [each for each in found("".join(CODE), [*lines[:70], remark, *lines[72:]]) if each.line == 71]

    assert finding.problem is Problem.PLACEHOLDER
    assert not finding.never


@pytest.mark.parametrize("line", NO_REMARKS)
def test_a_line_of_code_or_prose_is_no_remark(line: str) -> None:
    assert not is_placeholder(line)


@pytest.mark.parametrize("remark", REMARKS)
def test_a_remark_of_the_old_file_may_stay(remark: str) -> None:
    assert problems(f"a\n{remark}\nb\n", ["x", f"  {remark}", "b"]) == set()


def test_dots_where_lines_went_are_a_remark_and_elsewhere_code() -> None:
    assert problems("a\nb\nc\nd\n", ["a", "# ...", "d"]) == {Problem.PLACEHOLDER}
    assert problems("a\nd\n", ["a", "# ...", "d"]) == set()


@pytest.mark.timeout(20)
@pytest.mark.parametrize("line", ["." * 200_000, "rest of the " * 20_000, "same " * 50_000, " " * 200_000])
def test_no_line_takes_long_to_judge(line: str) -> None:
    assert problems("a\n", [line, "b", "c"]) <= {Problem.EMPTY}


def test_a_lost_tail_is_found_with_its_line() -> None:
    lines = "".join(CODE).splitlines()
    (finding,) = found("".join(CODE), lines[:-6])

    assert (finding.problem, finding.line) == (Problem.LOST_TAIL, 75)


def test_a_tail_that_was_rewritten_is_not_lost() -> None:
    lines = "".join(CODE).splitlines()

    assert problems("".join(CODE), [*lines[:-6], *(f"{line} # new" for line in lines[-6:])]) == set()


def test_a_long_line_that_ends_early_has_lost_its_tail() -> None:
    line = "word " * 400

    assert problems(line, [line[:1500]]) == {Problem.LOST_TAIL}


def test_half_a_file_is_much_shorter() -> None:
    lines = "".join(CODE).splitlines()
    (finding,) = found("".join(CODE), [*lines[:10], *lines[-25:]])

    assert (finding.problem, finding.never) == (Problem.SHORTER, False)


@pytest.mark.parametrize(
    ("old", "line", "said"),
    [
        ("a\n", "x\0y", "U\\+0000"),
        ("a\n", "x\ufffdy", "U\\+FFFD"),
        ("a\n", "\ufeffx", "U\\+FEFF"),
        (b"\xe9\n", "5 €", r"latin-1 cannot hold U\+20AC"),
    ],
)
def test_a_broken_character_is_never_written(old: str | bytes, line: str, said: str) -> None:
    (finding,) = found(old, [line])

    assert finding.never
    assert re.search(said, finding.reason)


def test_a_replacement_mark_of_the_old_file_may_stay() -> None:
    assert problems("a \ufffd\n", ["b \ufffd"]) == set()


def test_more_change_than_allowed_is_found_with_figures() -> None:
    (finding,) = found("a\nb\nc\nd\n", ["a", "B", "C", "d"], max_change=25)

    assert (finding.problem, finding.line) == (Problem.MAX_CHANGE, 2)
    assert "50 %" in finding.reason


def test_as_much_change_as_allowed_is_none() -> None:
    assert problems("a\nb\nc\nd\n", ["a", "B", "c", "d"], max_change=25) == set()


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("numbers", "wait 3000 ms\n", "wait 30000 ms"),
        ("numbers", "pi is 3.14\n", "pi is 3.15"),
        ("urls", "see https://a.org/x\n", "see https://a.org/y"),
        ("quotes", 'he said "no"\n', 'he said "yes"'),
        ("quotes", "> quoted\n", "> quoted better"),
        ("headings", "# One\n", "# Two"),
        ("headings", "One\n===\n", "Two\n==="),
    ],
)
def test_what_is_to_be_kept_is_missed(kind: str, old: str, new: str) -> None:
    assert problems(old, new.split("\n"), keep=[kind]) == {Problem.KEEP}
    assert problems(old, new.split("\n")) == set()


@pytest.mark.parametrize("kind", ["numbers", "urls", "quotes", "headings"])
def test_words_around_what_is_to_be_kept_may_change(kind: str) -> None:
    old = '# Title\nsee https://a.org/1 and "this" for 42 reasons\n'

    assert problems(old, ["# Title", 'look at https://a.org/1 or "this" with 42 reasons'], keep=[kind]) == set()


@pytest.mark.parametrize("new", [["a", "B", "c"], ["a", "c"], ["a", "b", "x", "c"]])
def test_protected_lines_are_not_to_be_touched(new: list[str]) -> None:
    protect = [r"^b\nc" if new[1:2] == ["b"] else "^b"]

    assert problems("a\nb\nc\n", new, protect=protect) == {Problem.PROTECTED}


def test_lines_beside_protected_ones_may_change() -> None:
    assert problems("a\nb\nc\n", ["A", "b", "x", "c"], protect=["^b$"]) == set()


@pytest.mark.parametrize("guard", [{"keep": ["words"]}, {"protect": ["("]}])
def test_a_guard_that_is_none_is_a_wrong_option(guard: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        rails(**guard)


@pytest.mark.parametrize("unit", ["a.", '"', "“", "„", "«", "1,", "http:/", "www.", "# ", "> "])
def test_a_long_line_of_half_things_to_be_kept_is_looked_through_once(unit: str) -> None:
    """Not once from each of its places: else this does not end."""
    half = unit * 100_000
    source = source_of(f"{half}\n".encode(), "a.txt")

    found = check(source, changes(source, [f"{half} and more"]), rails(keep=Kept))

    assert {finding.problem for finding in found} <= {Problem.KEEP}
