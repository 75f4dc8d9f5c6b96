"""Which files and which of their lines `specchat rewrite` takes: folders, patterns, exclusions, parts."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from specchat.rewrite.source import joined
from tests.specchat.rewrite.scripted import edited
from tests.specchat.rewrite.shell import LINES, TEXT, Shell, put, rows

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="asks git")


def tree(*names: str) -> None:
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        put(name)


def repository(*ignored: str) -> None:
    subprocess.run(["git", "init", "-q"], check=True)
    Path(".gitignore").write_text(joined(ignored))


def written(names: Sequence[str]) -> set[str]:
    return {name for name in names if Path(name).read_text() == rows(TEXT)}


FILES = ("docs/a.md", "docs/sub/b.md", "docs/c.txt", "docs/.hidden/d.md", "docs/.e.md", "docs/out/f.md")


class TestFolders:
    def test_a_folder_stands_for_the_texts_below_it(self, shell: Shell) -> None:
        tree(*FILES, "other.md")
        put("docs/picture.png", b"\x89PNG\0\0")
        put("docs/empty.md", b"")
        Path("docs/link.md").symlink_to("../other.md")

        done = shell("rewrite", "docs", "do it", "-w")

        assert done.code == 0
        assert written([*FILES, "other.md"]) == {"docs/a.md", "docs/sub/b.md", "docs/c.txt", "docs/out/f.md"}
        assert "left out of docs: 1 (empty), 1 (links), 1 (not text)" in done.err

    @needs_git
    def test_what_git_ignores_is_left_out_unless_it_is_wanted(self, shell: Shell) -> None:
        tree(*FILES)
        repository("out/")

        assert shell("rewrite", "docs/", "do it", "-w").code == 0
        assert written(FILES) == {"docs/a.md", "docs/sub/b.md", "docs/c.txt"}
        assert shell("rewrite", "docs/", "do it", "-w", "--force", "--no-ignore").code == 0
        assert Path("docs/out/f.md").read_text() == rows(TEXT)

    @needs_git
    def test_a_file_that_is_named_is_taken_although_git_ignores_it(self, shell: Shell) -> None:
        tree(*FILES)
        repository("out/", "a.md")

        assert shell("rewrite", "docs/a.md", "docs/out/f.md", "docs/.e.md", "do it", "-w").code == 0
        assert written(FILES) == {"docs/a.md", "docs/out/f.md", "docs/.e.md"}

    def test_a_folder_without_texts_is_refused(self, shell: Shell) -> None:
        Path("bin").mkdir()
        put("bin/a", b"\0")

        done = shell("rewrite", "bin", "do it", "-w")

        assert done.code == 3
        assert "bin stands for no text file; left out: 1 (not text)" in done.err
        assert shell.loaded == 0

    @needs_git
    def test_patterns_leave_out_what_git_ignores(self, shell: Shell) -> None:
        tree(*FILES)
        repository("out/")

        assert shell("rewrite", "docs/**/*.md", "do it", "-w").code == 0
        assert written(FILES) == {"docs/a.md", "docs/sub/b.md"}

    def test_a_pattern_that_matches_nothing_is_refused(self, shell: Shell) -> None:
        done = shell("rewrite", "*.rst", "do it", "-w")

        assert done.code == 3
        assert "*.rst stands for no text file" in done.err


class TestExclude:
    @pytest.mark.parametrize(
        ("pattern", "left"),
        [
            ("*.md", {"docs/c.txt"}),
            ("sub", {"docs/a.md", "docs/c.txt", "docs/out/f.md"}),
            ("docs/out", {"docs/a.md", "docs/sub/b.md", "docs/c.txt"}),
            ("./docs/out/", {"docs/a.md", "docs/sub/b.md", "docs/c.txt"}),
            ("out/f.md", {"docs/a.md", "docs/sub/b.md", "docs/c.txt", "docs/out/f.md"}),
            ("*/out/*", {"docs/a.md", "docs/sub/b.md", "docs/c.txt"}),
        ],
    )
    def test_it_names_files_or_folders(self, shell: Shell, pattern: str, left: set[str]) -> None:
        tree(*FILES)

        assert shell("rewrite", "docs", "do it", "-w", "--exclude", pattern).code == 0
        assert written(FILES) == left

    def test_it_is_also_about_names_that_a_shell_expanded_and_that_are_piped_in(self, shell: Shell) -> None:
        tree("a.md", "a_test.md", "b_test.md")

        piped = shell("rewrite", "do it", "-w", "--files-from", "-", "--exclude", "*_test.md", stdin=b"b_test.md\n")
        done = shell("rewrite", "a.md", os.path.abspath("a_test.md"), "do it", "-w", "--exclude", "*_test.md")

        assert (piped.code, done.code) == (0, 0)
        assert written(["a.md", "a_test.md", "b_test.md"]) == {"a.md"}


class TestParts:
    def test_between_two_lines_that_match(self, shell: Shell) -> None:
        put("a.txt")
        shell.model.script = edited(lambda text: text.replace("line", "LINE"))

        done = shell("rewrite", "a.txt", "do it", "-w", "--force", "--between", "^line 20 ", "^line 30 ")

        assert done.code == 0
        assert Path("a.txt").read_text() == joined(
            line.replace("line", "LINE") if 20 < i < 30 else line for i, line in enumerate(LINES)
        )

    def test_paragraphs_that_match_in_several_files(self, shell: Shell) -> None:
        paragraphs = ["one apple\nand more", "two pears", "three apples"]
        put("a.txt", "\n\n".join(paragraphs) + "\n")
        put("b.txt", "no fruit\n")
        shell.model.script = edited(str.upper)

        done = shell("rewrite", "a.txt", "b.txt", "upper case please", "-w", "--force", "--match", "apple")

        assert done.code == 0
        assert Path("a.txt").read_text() == "ONE APPLE\nAND MORE\n\ntwo pears\n\nTHREE APPLES\n"
        assert Path("b.txt").read_text() == "no fruit\n"
        assert "no line of b.txt matches" in done.err

    def test_no_match_in_the_only_file_is_refused_without_a_model(self, shell: Shell) -> None:
        put("a.txt")

        done = shell("rewrite", "a.txt", "do it", "-w", "--match", "nowhere")

        assert done.code == 3
        assert shell.loaded == 0

    @pytest.mark.parametrize("part", [["--match", "("], ["--between", "a", "["]], ids=lambda part: part[0])
    def test_no_expression_is_wrong_usage(self, shell: Shell, part: list[str]) -> None:
        put("a.txt")

        assert shell("rewrite", "a.txt", "do it", *part).code == 2
        assert shell.loaded == 0

    def test_two_ways_of_naming_a_part_are_wrong_usage(self, shell: Shell) -> None:
        with pytest.raises(SystemExit) as ended:
            shell("rewrite", "a.txt", "do it", "--lines", "1:2", "--match", "x")

        assert ended.value.code == 2

    def test_a_dry_run_counts_the_part_alone(self, shell: Shell) -> None:
        put("a.txt")

        plan, _ = shell("rewrite", "a.txt", "do it", "-n", "--json", "--between", "line 20 ", "line 30 ").lines

        assert plan["lines"] == 9
        assert plan["tokens"] == len(joined(LINES[21:30]))


@pytest.mark.parametrize(
    "name", [b"../out/a.txt", b"\x1b[31m.txt", b"[red]x", b"a\xffb", b"$(touch x)", b"-w", b"*", b"a b"]
)
def test_a_name_from_a_list_is_just_a_name(shell: Shell, tmp_path: Path, name: bytes) -> None:
    (tmp_path / "out").mkdir()
    path = Path(os.fsdecode(name))
    path.write_text(TEXT)
    others = {other for other in (put("near.txt"), tmp_path / "out" / "b.txt") if other.exists()}

    done = shell("rewrite", "do it", "-w", "--files-from", "-", "--null", "--json", stdin=name + b"\0")

    assert done.code == 0
    assert path.read_text() == rows(TEXT)
    assert {other.read_text() for other in others} == {TEXT}
    assert os.fsencode(done.lines[0]["path"]) == name
    assert b"\x1b" not in done.out + done.err.encode()


def test_a_name_with_a_nul_character_is_one_refusal(shell: Shell) -> None:
    put("a.txt")

    done = shell("rewrite", "do it", "-w", "--files-from", "-", stdin=b"a\0b\na.txt\n")

    assert done.code == 8
    assert written(["a.txt"]) == {"a.txt"}


def test_the_real_path_of_a_link_is_told(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text(TEXT)
    Path("link.txt").symlink_to(tmp_path / "real.txt")

    done = shell("rewrite", "link.txt", "do it", "-w", "--json")

    assert done.code == 0
    assert done.lines[0]["real_path"] == str(tmp_path / "real.txt")
    assert f"link.txt is {tmp_path / 'real.txt'}" in done.err
