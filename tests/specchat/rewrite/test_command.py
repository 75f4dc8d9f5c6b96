"""`specchat rewrite` and `specchat undo` from their words to files, output and exit codes, on a scripted model."""

from __future__ import annotations

import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.cells import cell_len

from specchat import cli
from specchat.console import printable
from specchat.folders import undo_folder
from specchat.rewrite import dry_run
from specchat.rewrite.patch import patch
from specchat.rewrite.source import joined, read_source, source_of
from specchat.rewrite.undo import KEEP_S, UndoStore
from tests.specchat.rewrite.scripted import COPY, Script, edited
from tests.specchat.rewrite.shell import LINES, TEXT, Shell, put, rows, without_styles


def test_a_copy_changes_nothing_and_is_no_failure(shell: Shell) -> None:
    path = put("a.txt")
    shell.model.script = COPY
    before = path.stat()

    done = shell("rewrite", "a.txt", "do it", "-w")

    assert done.code == 0
    assert "a.txt: nothing to change" in done.err
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == (before.st_mtime_ns, before.st_ino)
    assert shell("undo").code == 3


def test_write_changes_those_lines_alone_and_keeps_the_mode(shell: Shell) -> None:
    path = put("a.txt", TEXT.replace("\n", "\r\n"))
    path.chmod(0o751)

    done = shell("rewrite", "a.txt", "do it", "--write")

    assert done.code == 0
    assert done.out == b""
    assert path.read_bytes() == rows(TEXT).replace("\n", "\r\n").encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o751
    assert "takes it back" in done.err


def test_without_a_terminal_and_a_mode_it_prints_a_patch_and_says_so(shell: Shell) -> None:
    path = put("a.txt")

    done = shell("rewrite", "a.txt", "do it")

    assert done.code == 0
    assert path.read_text() == TEXT
    assert done.out == patch(source_of(TEXT.encode(), "a.txt"), rows(TEXT).encode())
    assert "nothing is written" in done.err


@pytest.mark.skipif(shutil.which("git") is None, reason="applies the patch with git")
@pytest.mark.parametrize(
    "text", [TEXT, TEXT.replace("\n", "\r\n"), TEXT[:-1], TEXT.replace("something", "é\tü \r x").encode("latin-1")]
)
def test_the_patch_applies(shell: Shell, text: str | bytes) -> None:
    path = put("a.txt", text)
    before = path.read_bytes()
    shell.model.script = edited(lambda text: rows(text).replace("line 59", "the last line"))
    done = shell("rewrite", "a.txt", "do it", "--diff")
    written = shell("rewrite", "a.txt", "do it", "--write", "--force")
    after = path.read_bytes()
    path.write_bytes(before)

    subprocess.run(["git", "apply", "-"], input=done.out, check=True)

    assert written.code == 0
    assert path.read_bytes() == after != before


@pytest.mark.skipif(shutil.which("git") is None, reason="applies the patch with git")
def test_what_looks_wrong_in_a_patch_is_told_beside_it_by_file_and_line(shell: Shell) -> None:
    path = put("a b.txt")
    shell.model.script = edited(
        lambda text: text.replace("line 20 of", "line 99 of").replace(
            "line 50 of", "... rest unchanged ...\nline 50 of"
        )
    )

    done = shell("rewrite", "a b.txt", "do it", "--diff", "--force")
    subprocess.run(["git", "apply", "-"], input=done.out, check=True)

    assert path.read_text() == shell.model.script(TEXT, "")
    first, second, *_ = done.err.splitlines()
    assert first == "a b.txt:21: quiet edit: a number changed that the request does not name"
    assert second == "a b.txt:51: a remark stands for lines: ... rest unchanged ..."
    assert done.out.startswith(b"--- a/a b.txt\t\n+++ b/a b.txt\t\n")


@pytest.mark.skipif(shutil.which("git") is None, reason="applies the patch with git")
@pytest.mark.parametrize("tool", [["git", "apply", "-"], ["patch", "-p1", "--silent"]], ids=lambda tool: tool[0])
@pytest.mark.parametrize(
    "name", ["a b", "é", 'q"uo"te', "back\\slash", "line\nend", "tab\tbed", "esc\x1b[31m", "\u202egnp", "\udcff", " "]
)
def test_a_patch_finds_the_file_by_any_name(shell: Shell, name: str, tool: list[str]) -> None:
    if shutil.which(tool[0]) is None:
        pytest.skip(f"there is no {tool[0]} here")
    path = put(name)

    done = shell("rewrite", name, "do it", "--diff")
    subprocess.run(tool, input=done.out, check=True)

    assert path.read_text() == rows(TEXT)
    assert printable(done.out.decode("utf-8", "surrogateescape")) == done.out.decode("utf-8", "surrogateescape")


def test_stdout_is_the_whole_result_and_writes_nothing(shell: Shell) -> None:
    path = put("a.txt", TEXT.replace("\n", "\r\n"))

    done = shell("rewrite", "a.txt", "do it", "-O")

    assert done.out == rows(TEXT).replace("\n", "\r\n").encode()
    assert path.read_bytes() == TEXT.replace("\n", "\r\n").encode()


@pytest.mark.parametrize("data", [TEXT.encode(), TEXT.encode("utf-16"), b""])
def test_a_pipe_gets_the_result_and_nothing_else(shell: Shell, data: bytes) -> None:
    shell.model.script = COPY

    done = shell("rewrite", "-", "do it", stdin=data)

    assert done.code == 0
    assert done.out == data


def test_a_pipe_without_the_mark_at_its_end_gets_nothing_when_it_is_cut_off(shell: Shell) -> None:
    done = shell("--max-tokens", "1500", "rewrite", "-", "do it", stdin=TEXT.encode())

    assert done.code == 5
    assert done.out == b""


def test_check_says_by_its_exit_code_whether_anything_would_change(shell: Shell) -> None:
    path = put("a.txt")

    would = shell("rewrite", "a.txt", "do it", "--check")
    shell.model.script = COPY
    would_not = shell("rewrite", "a.txt", "do it", "--check")

    assert (would.code, would_not.code) == (1, 0)
    assert (would.out, would_not.out) == (b"", b"")
    assert path.read_text() == TEXT


@pytest.mark.parametrize("mode", ["--write", "--diff", "--check", "--stdout"])
def test_what_is_cut_off_is_never_used(shell: Shell, mode: str) -> None:
    path = put("a.txt")

    done = shell("--max-tokens", "1500", "rewrite", "a.txt", "do it", mode, "--force")

    assert done.code == 5
    assert done.out == b""
    assert "not complete" in done.err
    assert path.read_text() == TEXT


BAD: dict[str, Script] = {
    "a remark": edited(lambda text: text[: text.index("line 30")] + "... rest unchanged ...\n"),
    "no tail": lambda text, closing: text[: text.index("line 30")] + closing,
    "talk": lambda text, closing: "I am sorry, but I cannot do this.\n" + closing,
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("mode", ["--write", "--stdout"])
def test_a_lazy_reply_is_refused_without_force(shell: Shell, kind: str, mode: str) -> None:
    path = put("a.txt")
    shell.model.script = BAD[kind]

    done = shell("rewrite", "a.txt", "do it", mode)

    assert done.code == 5
    assert done.out == b""
    assert "--force" in done.err
    assert path.read_text() == TEXT


def test_force_writes_what_somebody_may_have_meant_and_never_an_empty_file(shell: Shell) -> None:
    path = put("a.txt")
    shell.model.script = BAD["no tail"]
    assert shell("rewrite", "a.txt", "do it", "-w", "--force").code == 0
    assert path.read_text() == joined(LINES[:30])
    shell.model.script = lambda text, closing: closing

    assert shell("rewrite", "a.txt", "do it", "-w", "--force").code == 5
    assert path.read_text() == joined(LINES[:30])


def test_write_stops_at_a_doubtful_change(shell: Shell) -> None:
    path = put("a.txt", TEXT + "TIMEOUT = 3000\n")
    shell.model.script = edited(lambda text: text.replace("3000", "30000"))

    done = shell("rewrite", "a.txt", "do it", "-w")
    strict = shell("rewrite", "a.txt", "do it", "-D", "--strict")
    lenient = shell("rewrite", "a.txt", "do it", "-D")

    assert (done.code, strict.code, lenient.code) == (5, 5, 0)
    assert "a number changed" in done.err
    assert "3000\n" in path.read_text()
    assert shell("rewrite", "a.txt", "do it", "-w", "--force").code == 0
    assert "30000\n" in path.read_text()


@pytest.mark.parametrize(
    "rail", [["--max-change", "1"], ["--protect", "line 20.*own"], ["--keep", "numbers"]], ids=lambda rail: rail[0]
)
def test_guard_rails_refuse(shell: Shell, rail: list[str]) -> None:
    path = put("a.txt")
    shell.model.script = edited(lambda text: text.replace("line 20 of", "line 21 of"))

    done = shell("rewrite", "a.txt", "do it about 21", "-O", *rail)

    assert done.code == 5
    assert shell("rewrite", "a.txt", "do it about 21", "-O").code == 0
    assert path.read_text() == TEXT


def test_a_file_that_changes_meanwhile_is_left_alone(shell: Shell) -> None:
    path = put("a.txt")

    def edit(written: int) -> None:
        if written > 500:
            path.write_text("mine now\n")

    shell.model.before_forward = edit

    done = shell("rewrite", "a.txt", "do it", "-w")

    assert done.code == 7
    assert path.read_text() == "mine now\n"
    assert "changed since it was read" in done.err


def test_one_bad_file_does_not_stop_the_others(shell: Shell) -> None:
    for name in ("a.txt", "c.txt"):
        put(name)
    put("b.bin", b"\0\1\2")

    done = shell("rewrite", "a.txt", "b.bin", "gone.txt", "c.txt", "do it", "-w")

    assert done.code == 8
    assert Path("a.txt").read_text() == Path("c.txt").read_text() == rows(TEXT)
    assert Path("b.bin").read_bytes() == b"\0\1\2"
    assert "4 of 4 files: 2 written, 2 failed" in done.err
    assert "b.bin is not text" in done.err
    assert "gone.txt" in done.err


def test_many_files_share_the_beginning_of_the_prompt(shell: Shell) -> None:
    put("a.txt")
    put("b.txt", "quite another text\n")

    assert shell("rewrite", "a.txt", "b.txt", "a long instruction", "--check").code == 1

    one, other = shell.model.prompts
    shared = one[: next(i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)]
    assert shared.startswith("a long instruction")
    assert shared.endswith("The file is called ")


def test_a_file_that_is_named_twice_is_rewritten_once(shell: Shell) -> None:
    put("a.txt")
    Path("b.txt").symlink_to("a.txt")

    done = shell("rewrite", "./a.txt", "b.txt", "a.txt", "do it", "-w", "--json")

    assert [line["type"] for line in done.lines] == ["file", "summary"]


def test_nothing_readable_loads_no_model(shell: Shell) -> None:
    put("b.bin", b"\0")

    assert shell("rewrite", "b.bin", "do it", "-w").code == 3
    assert shell("rewrite", "b.bin", "gone", "do it", "-w").code == 8
    assert shell.loaded == 0


def test_a_file_that_does_not_fit_is_refused_before_anything_is_read(shell: Shell) -> None:
    put("a.txt")
    shell.model.n_ctx = 4000

    done = shell("rewrite", "a.txt", "do it", "-w", "--chunk", "never")

    assert done.code == 3
    assert "the context holds 4000" in done.err
    assert shell.model.n_past == 0


def test_ctrl_c_ends_the_run_and_writes_nothing(shell: Shell) -> None:
    for name in ("a.txt", "b.txt"):
        put(name)

    def interrupt(written: int) -> None:
        if written > 500:
            signal.raise_signal(signal.SIGINT)

    shell.model.before_forward = interrupt

    done = shell("rewrite", "a.txt", "b.txt", "do it", "-w")

    assert done.code == 130
    assert Path("a.txt").read_text() == Path("b.txt").read_text() == TEXT
    assert "it was stopped at line" in done.err
    assert len(shell.model.prompts) == 1


def test_json_is_a_line_for_each_file_and_a_summary(shell: Shell) -> None:
    put("a.txt")
    put("b.bin", b"\0")

    done = shell("rewrite", "a.txt", "b.bin", "do it", "-w", "--json")

    changed, bad, summary = done.lines
    assert done.code == 8
    assert {line["schema"] for line in done.lines} == {"specchat.rewrite/1"}
    assert (changed["path"], changed["status"], changed["exit_code"]) == ("a.txt", "written", 0)
    assert changed["undo_id"] in changed["message"]
    assert (changed["hunks"], changed["changed_lines"], changed["flags"], changed["findings"]) == (2, 2, [], [])
    assert changed["undo_id"] in shell("undo", "--list").out.decode()
    speculation = changed["speculation"]
    assert speculation["accepted"] <= speculation["checked"] <= speculation["drafted"]
    assert speculation["output_tokens"] > len(TEXT)
    assert (bad["path"], bad["status"], bad["exit_code"], bad["speculation"]) == ("b.bin", "failed", 3, None)
    assert summary == {
        "schema": "specchat.rewrite/1",
        "type": "summary",
        "files": 2,
        "exit_code": 8,
        "written": 1,
        "failed": 1,
    }


def test_json_of_a_diff_holds_it_and_findings_have_their_lines(shell: Shell) -> None:
    put("a.txt")
    diff = shell("rewrite", "a.txt", "do it", "-D", "--json").lines[0]["diff"]
    shell.model.script = BAD["no tail"]

    refused = shell("rewrite", "a.txt", "do it", "-D", "--json").lines[0]

    assert "\n+inserted\n" in diff
    assert refused["status"] == "refused"
    assert [(each["problem"], each["line"]) for each in refused["findings"]] == [("shorter", 1), ("lost-tail", 31)]


class TestUndo:
    def test_it_takes_back_the_last_write_and_that_too(self, shell: Shell) -> None:
        path = put("a.txt", TEXT.replace("\n", "\r\n"))
        shell("rewrite", "a.txt", "do it", "-w")

        back = shell("undo")
        assert back.code == 0
        assert path.read_bytes() == TEXT.replace("\n", "\r\n").encode()

        again = shell("undo", back.err.split("`specchat undo ")[1].split("`")[0])
        assert again.code == 0
        assert path.read_bytes() == rows(TEXT).replace("\n", "\r\n").encode()

    def test_a_file_names_its_last_write(self, shell: Shell) -> None:
        for name in ("a.txt", "b.txt"):
            put(name)
            shell("rewrite", name, "do it", "-w")

        assert shell("undo", "a.txt").code == 0
        assert Path("a.txt").read_text() == TEXT
        assert Path("b.txt").read_text() == rows(TEXT)
        assert shell("undo", "a.txt").code == 3
        assert shell("undo", "no-such-thing").code == 3

    def test_the_list_names_files_requests_and_what_was_undone(self, shell: Shell) -> None:
        put("a.txt")
        shell("rewrite", "a.txt", "make\x1b[2J it better", "-w")
        shell("undo")

        undone, written = shell("undo", "--list").out.decode().splitlines()

        assert "make\u241b[2J it better" in written
        assert written.endswith("(undone)")
        assert f"undo of {written.split()[0]}" in undone

    def test_the_list_has_columns_and_paths_from_here(self, shell: Shell, tmp_path: Path) -> None:
        (tmp_path / "elsewhere.txt").write_text(TEXT)
        for name in ("a.txt", "世.txt", "../elsewhere.txt"):
            Path(name).write_text(TEXT)
            shell("rewrite", name, "do it", "-w")

        lines = shell("undo", "--list").out.decode().splitlines()

        assert [line.split()[3] for line in lines] == ["../elsewhere.txt", "世.txt", "a.txt"]
        assert len({cell_len(line[: line.index("do it")]) for line in lines}) == 1

    def test_what_is_older_than_a_month_is_forgotten(self, shell: Shell) -> None:
        path = put("a.txt")
        old = UndoStore(undo_folder(), clock=lambda: time.time() - KEEP_S - 1)
        entry = old.save(read_source(path), rows(TEXT).encode())

        assert entry is not None
        assert entry.id in [past.entry.id for past in old.past()]
        assert shell("undo").code == 3
        assert path.read_text() == rows(TEXT)

    def test_a_file_that_changed_since_is_left_alone(self, shell: Shell) -> None:
        path = put("a.txt")
        shell("rewrite", "a.txt", "do it", "-w")
        path.write_text(path.read_text() + "more\n")

        done = shell("undo")

        assert done.code == 7
        assert path.read_text() == rows(TEXT) + "more\n"

    def test_a_merge_is_offered_on_a_terminal(self, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
        path = put("a.txt")
        shell("rewrite", "a.txt", "do it", "-w")
        path.write_text(path.read_text() + "more\n")
        monkeypatch.setattr("specchat.rewrite.taking_back.can_ask", lambda: True)

        refused, done = shell("undo", stdin=b"\n"), shell("undo", stdin=b"y\n")

        assert (refused.code, done.code) == (7, 0)
        assert path.read_text() == f"{TEXT}more\n"
        assert "is taken out of" in done.err
        assert "as it was" not in done.err
        assert "-row 20 of the file" in refused.err  # what the merge would do
        assert "+line 20 of the file" in refused.err

    def test_no_backup_leaves_nothing_to_undo(self, shell: Shell) -> None:
        path = put("a.txt")

        done = shell("rewrite", "a.txt", "do it", "-w", "--no-backup")

        assert done.code == 0
        assert path.read_text() == rows(TEXT)
        assert shell("undo", "--list").out == b""


class TestReview:
    def test_each_change_is_asked_about(self, shell: Shell) -> None:
        path = put("a.txt")

        done = shell("rewrite", "a.txt", "do it", stdin=b"n\ny\n", terminal=True)

        assert done.code == 0
        assert path.read_text() == TEXT.replace("line 40 of", "inserted\nline 40 of")
        out = without_styles(done.out)
        assert "- 21 line 20 of the file" in out
        assert "+    row 20 of the file" in out
        assert "change 2 of 2" in out

    @pytest.mark.parametrize(
        ("answers", "code", "rest"),
        [
            (b"a\n", 0, rows(TEXT)),
            (b"y\nd\n", 0, TEXT.replace("line 20", "row 20")),
            (b"n\nn\n", 6, TEXT),
            (b"q\n", 6, TEXT),
            (b"y\nq\n", 0, TEXT.replace("line 20", "row 20")),
            (b"", 6, TEXT),
            (b"?\nwhat\nY\nn\n", 0, TEXT.replace("line 20", "row 20")),
        ],
    )
    def test_keys_are_those_of_git(self, shell: Shell, answers: bytes, code: int, rest: str) -> None:
        path = put("a.txt")

        done = shell("rewrite", "a.txt", "do it", stdin=answers, terminal=True)

        assert done.code == code
        assert path.read_text() == rest

    def test_a_change_can_be_split(self, shell: Shell) -> None:
        path = put("a.txt")
        shell.model.script = edited(
            lambda text: text.replace("line 20 of", "row 20 of").replace("line 21 of", "row 21 of")
        )

        done = shell("rewrite", "a.txt", "do it", stdin=b"s\nn\ny\n", terminal=True)

        assert done.code == 0
        assert path.read_text() == TEXT.replace("line 21 of", "row 21 of")

    def test_a_change_can_be_edited(self, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
        path = put("a.txt")
        editor = put("editor.py", "import sys\nwith open(sys.argv[1], 'a') as file:\n    file.write('and mine\\n')\n")
        monkeypatch.setenv("VISUAL", f"{sys.executable} {editor.absolute()}")

        done = shell("rewrite", "a.txt", "do it", stdin=b"e\nn\n", terminal=True)

        assert done.code == 0
        row = f"{LINES[20].replace('line', 'row')}\n"
        assert path.read_text() == TEXT.replace(f"{LINES[20]}\n", f"{row}and mine\n")

    def test_q_asks_about_no_other_file(self, shell: Shell) -> None:
        for name in ("a.txt", "b.txt"):
            put(name)

        done = shell("rewrite", "a.txt", "b.txt", "do it", stdin=b"q\n", terminal=True)

        assert done.code == 6
        assert len(shell.model.prompts) == 1

    def test_a_much_shorter_file_needs_a_second_yes(self, shell: Shell) -> None:
        path = put("a.txt")
        shell.model.script = BAD["no tail"]

        declined = shell("rewrite", "a.txt", "do it", stdin=b"y\n\n", terminal=True)
        assert declined.code == 6
        assert path.read_text() == TEXT

        assert shell("rewrite", "a.txt", "do it", stdin=b"y\ny\n", terminal=True).code == 0
        assert path.read_text() == joined(LINES[:30])

    def test_one_that_reached_a_limit_may_go_on(self, shell: Shell) -> None:
        path = put("a.txt")

        done = shell("--max-tokens", "2000", "rewrite", "a.txt", "do it", stdin=b"y\na\n", terminal=True)

        assert done.code == 0
        assert path.read_text() == rows(TEXT)

    def test_names_and_text_are_no_markup_and_steer_no_terminal(self, shell: Shell) -> None:
        name = "[red]\x1b[31m[b].txt"
        put(name, TEXT + "[/bold]\x1b]0;x\x07 end\n")
        shell.model.script = edited(lambda text: text.replace("end", "END"))

        done = shell("rewrite", name, "do it", stdin=b"y\n", terminal=True)

        assert done.code == 0
        assert "\x1b" not in done.err + without_styles(done.out)
        assert "[red]\u241b[31m[b].txt" in done.err
        assert "[/bold]\u241b]0;x\u2407 END" in without_styles(done.out)


class TestAfter:
    def test_a_command_gets_the_file_and_its_output_stays_off_stdout(self, shell: Shell) -> None:
        put("a b.txt")

        done = shell("rewrite", "a b.txt", "do it", "-w", "--after", "cp {} '{}.copy; true'")

        assert done.code == 0
        assert Path("a b.txt.copy; true").read_text() == rows(TEXT)

    @pytest.mark.parametrize("words", ["false {}", "no-such-program {}"])
    def test_a_failure_is_said_and_the_change_kept(self, shell: Shell, words: str) -> None:
        path = put("a.txt")

        done = shell("rewrite", "a.txt", "do it", "-w", "--after", words)

        assert done.code == 8
        assert path.read_text() == rows(TEXT)
        assert "written, but" in done.err
        assert shell("undo").code == 0

    def test_it_does_not_run_where_nothing_was_written(self, shell: Shell) -> None:
        put("a.txt")
        shell.model.script = COPY

        assert shell("rewrite", "a.txt", "do it", "-w", "--after", "false").code == 0


class TestInputs:
    @pytest.mark.parametrize("names", [b"a.txt\nb.txt\n", b"a.txt\r\nb.txt"])
    def test_names_may_be_piped_in(self, shell: Shell, names: bytes) -> None:
        put("a.txt")
        put("b.txt")

        done = shell("rewrite", "--files-from", "-", "do it", "-w", stdin=names)

        assert done.code == 0
        assert Path("a.txt").read_text() == Path("b.txt").read_text() == rows(TEXT)

    def test_names_may_be_between_nul_characters(self, shell: Shell) -> None:
        put("a\nb.txt")
        put("list", b"a\nb.txt\0")

        assert shell("rewrite", "do it", "-w", "--files-from", "list", "--null").code == 0
        assert Path("a\nb.txt").read_text() == rows(TEXT)

    def test_an_empty_list_is_no_work(self, shell: Shell) -> None:
        done = shell("rewrite", "do it", "--files-from", "-", "--json")

        assert done.code == 0
        assert [line["files"] for line in done.lines] == [0]
        assert shell.loaded == 0

    def test_patterns_that_no_shell_expanded_are_expanded(self, shell: Shell) -> None:
        Path("sub").mkdir()
        for name in ("sub/a.txt", "sub/b.txt", "sub/c.md"):
            put(name)

        assert shell("rewrite", "sub/*.txt", "do it", "-w").code == 0
        assert [Path(name).read_text() == TEXT for name in ("sub/a.txt", "sub/b.txt", "sub/c.md")] == [
            False,
            False,
            True,
        ]

    def test_only_the_lines_that_were_named_may_change(self, shell: Shell) -> None:
        path = put("a.txt")
        shell.model.script = edited(lambda text: text.replace("line", "LINE"))

        assert shell("rewrite", "a.txt", "--lines", "21:30", "do it", "-w", "--force").code == 0
        assert path.read_text() == joined(
            line.replace("line", "LINE") if 20 <= i < 30 else line for i, line in enumerate(LINES)
        )

    def test_an_encoding_can_be_named(self, shell: Shell) -> None:
        path = put("a.txt", "é\n".encode("cp850"))
        shell.model.script = edited(lambda text: text.replace("é", "ü"))

        assert shell("rewrite", "a.txt", "do it", "-w", "--force", "--encoding", "cp850").code == 0
        assert path.read_bytes() == "ü\n".encode("cp850")

    @pytest.mark.parametrize(
        "words",
        [
            [],
            ["do it"],
            ["a.txt", " "],
            ["b.txt", "a.txt"],
            ["-", "do it", "-w"],
            ["-", "a.txt", "do it"],
            ["a.txt", "b.txt", "do it", "-O"],
            ["a.txt", "b.txt", "do it", "--lines", "1:2"],
            ["a.txt", "do it", "--keep", "everything"],
            ["a.txt", "do it", "--protect", "("],
            ["a.txt", "do it", "--max-change", "101"],
            ["a.txt", "do it", "--max-change", "nan"],
            ["a.txt", "do it", "--after", "x", "-D"],
            ["a.txt", "do it", "-w", "--after", "'"],
            ["a.txt", "do it", "-w", "--encoding", "klingon"],
            ["a.txt", "do it", "-w", "--lines", "x"],
        ],
        ids=" ".join,
    )
    def test_wrong_usage_is_one_line_and_exit_2(self, shell: Shell, words: list[str]) -> None:
        put("a.txt")

        done = shell("rewrite", *words)

        assert done.code == 2
        assert Path("a.txt").read_text() == TEXT
        assert shell.loaded == 0

    def test_an_unknown_flag_is_wrong_usage(self, shell: Shell) -> None:
        with pytest.raises(SystemExit) as ended:
            shell("rewrite", "a.txt", "do it", "--bogus")

        assert ended.value.code == 2


class TestDryRun:
    def test_it_plans_and_writes_nothing(self, shell: Shell) -> None:
        put("a.txt")
        put("b.bin", b"\0")

        done = shell("rewrite", "a.txt", "b.bin", "do it", "-n")

        assert done.code == 8
        assert f"a.txt: utf-8, 60 lines, {len(TEXT)} tokens; about " in done.out.decode()
        assert shell.model.prompts == []

    def test_json_has_the_numbers(self, shell: Shell) -> None:
        put("a.txt")

        plan, summary = shell("rewrite", "a.txt", "do it", "-n", "--json").lines

        assert plan["tokens"] == len(TEXT)
        assert plan["context_tokens"] > 2 * len(TEXT)
        assert plan["seconds"]["unchanged"] < plan["seconds"]["changed"]
        assert summary["planned"] == 1

    def test_without_the_model_it_estimates(self, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
        put("a.txt")
        monkeypatch.setattr(dry_run, "_is_here", lambda args: False)

        done = shell("rewrite", "a.txt", "do it", "-n")

        assert done.code == 0
        assert "about" in done.out.decode()
        assert shell.loaded == 0


def test_the_patch_of_utf_16_is_readable() -> None:
    source = source_of("a\nb\n".encode("utf-16"), "a.txt")

    assert b"-b\n+c\n" in patch(source, "a\nc\n".encode("utf-16"))


def test_help_names_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--help"])

    assert "rewrite" in capsys.readouterr().out
